"""Blocks of lines: a part of an export, divided so that its rows fit into memory as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CELLS = 1 << 22
"""Maximum number of cells of a block: an empty row of three bytes has as many cells as the object has columns."""


def blocks(data: bytes, *, rows: int, columns: int) -> Iterator[bytes]:
    r"""Yield the lines of a part in blocks; if one block is enough, without a copy.

    Args:
        data: Whole lines, one for each row.
        rows: The number of lines.
        columns: The number of columns that each row becomes; 0 if it stays as it is.

    >>> list(blocks(b"{}\n" * 3, rows=3, columns=CELLS // 2))
    [b'{}\n{}\n', b'{}\n']
    """
    block_rows = max(1, CELLS // max(columns, 1))
    if rows <= block_rows:
        yield data
        return
    start = 0
    while start < len(data):
        end = start
        for _ in range(block_rows):
            end = data.find(b"\n", end) + 1
            if end in (0, len(data)):
                end = len(data)
                break
        yield data[start:end]
        start = end
