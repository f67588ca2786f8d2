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
        self._width = len(paths)
        groups: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for at, path in enumerate(paths):
            groups.setdefault(path[:-1], []).append((at, path[-1]))
        self._groups = list(groups.items())

    def read(self, line: bytes) -> list[bytes | None]:
        """Give the JSON text of each column, None for null and for what the row does not have.

        Raises:
            msgspec.DecodeError: The line is no JSON object.
        """
        found: list[bytes | None] = [None] * self._width
        row = _members(line)
        for prefix, names in self._groups:
            members = row
            for key in prefix:
                value = bytes(members.get(key, b""))
                members = _members(value) if value[:1] == b"{" else {}
            for at, name in names:
                raw = members.get(name)
                text = bytes(raw) if raw is not None else _follow(members, name) if "." in name else None
                found[at] = None if text == b"null" else text
        return found


def text_of(value: bytes) -> str:
    """Give a value as a person reads it: texts without quotes, everything else as stored."""
    return _text(value) if value[:1] == b'"' else value.decode()


def items_of(value: bytes) -> list[bytes]:
    """Give the JSON texts of an array's elements."""
    return [bytes(item) for item in _items(value)]


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
