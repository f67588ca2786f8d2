r"""Parts of an export: lines of rows, whole lines of bounded size, and how many rows to ask for so that a part fits.

>>> [(part.data, part.rows) for part in split_lines(b"1\n22\n333\n", most=5)]
[(b'1\n22\n', 2), (b'333\n', 1)]
>>> rows_that_fit(1_000_000, rows=100, size=40_000, most=5_000)
2500
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.cells import MISSING, Json
from dragoman_api.exports import ExportPart
from dragoman_api.json_text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman_api.columns import Note

PART = 4 * 2**20
"""Bytes of one part, unless a single line is longer."""


class LinePart(msgspec.Struct, frozen=True):
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


def export_parts(
    lines: bytes, *, total: int | None, checkpoint: str | None, notes: Sequence[Note] = ()
) -> Iterator[ExportPart]:
    """Yield whole lines as parts of an export: the first one has the notes, the last one the checkpoint.

    Args:
        lines: As for `split_lines`; none make no part, or an empty one that has the notes.
        total: The number of rows of the whole export; None if it is not known.
        checkpoint: The position after the last line; None if the export cannot continue there.
        notes: Remarks on these rows, or on the export.
    """
    parts = [*split_lines(lines)] or [LinePart(b"", 0)] * bool(notes)
    for at, part in enumerate(parts, 1):
        last = checkpoint if at == len(parts) else None
        yield ExportPart(
            data=part.data, rows=part.rows, total=total, checkpoint=last, notes=[*notes] if at == 1 else []
        )


def rows_that_fit(room: int, *, rows: int, size: int, most: int, least: int = 1) -> int:
    """Return how many rows to ask for, judged by the rows that came last.

    Args:
        room: The bytes that the next answer may have.
        rows: The number of those rows.
        size: Their bytes.
        most: The maximum result; the server's own limit takes precedence over `least`.
        least: The minimum result, however long the rows are.
    """
    return min(most, max(least, room * rows // max(1, size)))


class RowLines:
    r"""Writes rows as lines of JSON, with each value at its path.

    A value whose path is the beginning of another one is the object or array that holds the other value. Members that
    an object lacks are added to it; the elements of an array are not looked at. A missing value leaves no member.

    >>> RowLines([("a", "b"), ("a",)]).line([1, Json('{"c": 1.10}')])
    b'{"a":{"c":1.10,"b":1}}\n'
    >>> RowLines([("a", "b"), ("c",), ("d",)]).line([MISSING, MISSING, None])
    b'{"d":null}\n'
    """

    def __init__(self, paths: Sequence[tuple[str, ...]]) -> None:
        """Begin with the paths of a row's values, none of them empty."""
        self._paths = paths
        self._order: Sequence[int] = range(len(paths))
        first = {path: at for at, path in reversed([*enumerate(paths)])}
        self._same = [(first[path], at) for at, path in enumerate(paths) if first[path] != at]
        inner = {path[:size] for path in paths for size in range(1, len(path))}
        if not inner.isdisjoint(paths):
            self._order = sorted(self._order, key=lambda at: len(paths[at]))

    def line(self, values: Sequence[Any]) -> bytes:
        """Return the line of a row.

        Raises:
            ValueError: Two different values lie at one place, one lies in a text, a number or a boolean, or there are
                more or fewer values than paths.
        """
        if len(values) != len(self._paths):
            raise ValueError(f"{len(values)} values stand for {len(self._paths)} columns")
        row: dict[str, Any] = {}
        for first, at in self._same:
            both = (values[first], values[at])
            if not any(cell is None or cell is MISSING for cell in both) and both[0] != both[1]:
                raise ValueError(f"two different values lie at {'.'.join(self._paths[at])}")
        for at in self._order:
            if (value := values[at]) is MISSING:
                continue
            _place(row, self._paths[at], msgspec.Raw(value.encode()) if isinstance(value, Json) else value)
        return encode(row).encode() + b"\n"


def _place(row: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        child = row.get(name)
        if isinstance(child, msgspec.Raw):
            child = _members(child)
        if child is None and (value is not None or name not in row):
            child = {}
        if isinstance(child, msgspec.Raw) or (value is None and not isinstance(child, dict)):
            return  # an array, or nothing to add
        if isinstance(child, dict):
            row[name] = row = child
            continue
        raise ValueError(f"the value at {'.'.join(path)} lies in one that is not an object, at '{name}'")
    if row.get(path[-1]) is None:
        row[path[-1]] = value


def _members(raw: msgspec.Raw) -> Any:
    """Return the members of an object, an array as it is, and what is neither as its text."""
    text = bytes(raw).strip()
    return decode(text, dict[str, msgspec.Raw]) if text.startswith(b"{") else raw if text.startswith(b"[") else text
