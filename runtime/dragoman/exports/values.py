"""Column values in exported rows, as the stored JSON text: numbers are never parsed and rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.cells import exact_number, widened
from dragoman_api.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import Column

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
_row = msgspec.json.Decoder(dict[str, Any], float_hook=exact_number).decode

_Members = Mapping[str, msgspec.Raw]
_Inner = dict[str, msgspec.Raw] | list[msgspec.Raw] | None

Opened = dict[tuple[int, str | int], _Inner]
"""Objects and arrays of one row that were read, by the `id` of what holds them and their place there."""

UNREADABLE = (ValueError, RecursionError, ArithmeticError)
"""All that reading a row may raise; a driver gave it."""


def unreadable(what: str, error: BaseException) -> ExportError:
    """Build the error for a malformed row."""
    hint = "export documents, whose bytes are not parsed; if it fails again, tell the driver's author"
    return ExportError(f"{what} cannot be read: {error}", hint=hint)


class ValueReader:
    """Finds chosen columns in rows."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """Plan how to find the columns, once for all rows."""
        self._width = len(columns)
        groups: dict[tuple[str, ...], list[tuple[int, str, tuple[str, ...]]]] = {}
        for at, column in enumerate(columns):
            groups.setdefault(column.path[:-1], []).append((at, column.path[-1], column.arrays))
        self._groups = list(groups.items())

    def read(self, line: bytes) -> list[bytes | None]:
        """Return each column's JSON text, None if it is null or missing.

        Raises:
            ValueError, RecursionError: The line is not a JSON object.
        """
        found: list[bytes | None] = [None] * self._width
        row = _members(line)
        for prefix, names in self._groups:
            members = row
            for key in prefix:
                value = bytes(members.get(key, b""))
                members = _members(value) if value[:1] == b"{" else {}
            opened: Opened = {}
            for at, name, arrays in names:
                raw = members.get(name)
                text = bytes(raw) if raw is not None else follow(members, name, arrays, opened) if "." in name else None
                found[at] = None if text == b"null" else text
        return found


def read_row(line: bytes) -> dict[str, Any]:
    """Read a whole row, keeping every digit of its numbers.

    Raises:
        ExportError: The line is not a JSON object.
    """
    try:
        try:
            return _row(line)
        except msgspec.ValidationError:  # an integer with more digits than Python parses
            return _row(widened(line))
    except UNREADABLE as error:
        raise unreadable("a row", error) from error


def text_of(value: bytes) -> str:
    """Return a value for display: texts without quotes, everything else as stored."""
    return _text(value) if value[:1] == b'"' else value.decode()


def items_of(value: bytes) -> list[bytes]:
    """Return the JSON texts of an array's elements."""
    return [bytes(item) for item in _items(value)]


def follow(members: _Members, name: str, arrays: Sequence[str], opened: Opened, before: str = "") -> bytes | None:
    """Find the JSON text of a dotted name; a literal key wins over a nested path.

    Args:
        members: The JSON texts of an object's members.
        name: The name.
        arrays: As in `Column.arrays`.
        opened: What was read for other names of the same row, empty for the first: nothing is read once for each name.
        before: What leads to the object, for `arrays`.
    """
    if (raw := members.get(name)) is not None:
        return bytes(raw)
    end = name.rfind(".")
    while end > 0:
        inner = _open(members, name[:end], opened)
        if inner is not None:
            here, rest = before + name[:end], name[end + 1 :]
            if isinstance(inner, list):
                return _gather(inner, rest, arrays, opened, here)
            if here in arrays:
                found = follow(inner, rest, arrays, opened, f"{here}.")
                return b"[%b]" % (found or b"null")
            if (found := follow(inner, rest, arrays, opened, f"{here}.")) is not None:
                return found
        end = name.rfind(".", 0, end)
    return None


def _gather(array: list[msgspec.Raw], name: str, arrays: Sequence[str], opened: Opened, before: str) -> bytes:
    """Return one entry per element, null for a missing value."""
    found = []
    for at in range(len(array)):
        value, inner = _open(array, at, opened), None
        if isinstance(value, list):
            inner = _gather(value, name, arrays, opened, before)
        elif value is not None:
            inner = follow(value, name, arrays, opened, f"{before}.")
        found.append(inner or b"null")
    return b"[" + b",".join(found) + b"]"


def _open(holder: Any, key: str | int, opened: Opened) -> _Inner:
    """Read an object or an array in another one; None if the value is neither."""
    known = id(holder), key  # those of a row stay as long as `opened`
    if known in opened:
        return opened[known]
    try:
        value = bytes(holder[key])
    except KeyError:
        value = b""
    inner = _members(value) if value[:1] == b"{" else _items(value) if value[:1] == b"[" else None
    opened[known] = inner
    return inner
