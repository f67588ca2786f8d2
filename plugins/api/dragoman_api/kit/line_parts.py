r"""Parts of an export: whole lines of bounded size, and how many rows to ask for so that a part fits.

>>> [(part.data, part.rows) for part in split_lines(b"1\n22\n333\n", most=5)]
[(b'1\n22\n', 2), (b'333\n', 1)]
>>> rows_that_fit(1_000_000, rows=100, size=40_000, most=5_000)
2500
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PART = 4 * 2**20
"""Bytes of one part, unless a single line is longer."""


@dataclass(frozen=True, slots=True)
class LinePart:
    """Whole lines, and their number."""

    data: bytes
    rows: int


def split_lines(data: bytes, *, most: int = PART) -> Iterator[LinePart]:
    """Split whole lines into parts; they hold every byte, in order.

    Args:
        data: Lines that end with a line break each; line breaks occur nowhere else.
        most: Bytes of a part, at least 1; a longer line is a part of its own.

    Raises:
        ValueError: The last line has no end.
    """
    if data and not data.endswith(b"\n"):
        raise ValueError("the last line does not end with a line break")
    start = 0
    while start < len(data):
        end = (data.rfind(b"\n", start, start + most) + 1) or data.index(b"\n", start) + 1
        part = data[start:end]
        yield LinePart(part, part.count(b"\n"))
        start = end


def rows_that_fit(room: int, *, rows: int, size: int, most: int, least: int = 1) -> int:
    """Return how many rows to ask for, judged by the rows that came last.

    Args:
        room: The bytes that the next answer may have.
        rows: The number of those rows.
        size: Their bytes.
        most: The result at most; the server's own limit goes before `least`.
        least: The result at least, however long the rows are.
    """
    return min(most, max(least, room * rows // max(1, size)))
