"""The values of columns in exported rows, as the JSON text that was stored: no digit is read and written again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode

_Members = Mapping[str, msgspec.Raw]


class ValueReader:
    """Finds chosen columns in rows."""

    def __init__(self, paths: Sequence[tuple[str, ...]]) -> None:
        """Begin.

        Args:
            paths: `Column.path` of each.
        """
        self._columns = [(path[:-1], path[-1]) for path in paths]

    def read(self, line: bytes) -> list[bytes | None]:
        """Give the JSON text of each column, None for null and for what the row does not have.

        Raises:
            msgspec.DecodeError: The line is no JSON object.
        """
        opened: dict[tuple[str, ...], _Members] = {(): _members(line)}
        values = [_follow(_open(opened, prefix), name) for prefix, name in self._columns]
        return [None if value == b"null" else value for value in values]


def text_of(value: bytes) -> str:
    """Give a value as a person reads it: texts without quotes, everything else as stored."""
    return _text(value) if value[:1] == b'"' else value.decode()


def items_of(value: bytes) -> list[bytes]:
    """Give the JSON texts of an array's elements."""
    return [bytes(item) for item in _items(value)]


def _open(opened: dict[tuple[str, ...], _Members], path: tuple[str, ...]) -> _Members:
    if path not in opened:
        value = bytes(_open(opened, path[:-1]).get(path[-1], b""))
        opened[path] = _members(value) if value[:1] == b"{" else {}
    return opened[path]


def _follow(members: _Members, name: str) -> bytes | None:
    """Find a dotted name: the literal key comes first, where a document has both."""
    if (raw := members.get(name)) is not None:
        return bytes(raw)
    end = name.rfind(".")
    while end > 0:
        value = bytes(members.get(name[:end], b""))
        if value[:1] == b"[":
            return _gather(value, name[end + 1 :])
        if value[:1] == b"{" and (found := _follow(_members(value), name[end + 1 :])) is not None:
            return found
        end = name.rfind(".", 0, end)
    return None


def _gather(array: bytes, name: str) -> bytes:
    """Give one entry per element, null where it has nothing."""
    found = []
    for value in items_of(array):
        inner = None
        if value[:1] == b"{":
            inner = _follow(_members(value), name)
        elif value[:1] == b"[":
            inner = _gather(value, name)
        found.append(inner or b"null")
    return b"[" + b",".join(found) + b"]"
