"""Column values in exported rows, as the JSON texts that are stored: no number is parsed and rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.errors import ExportError
from dragoman_api.json_text import exact_number, widened
from dragoman_api.kit.page_columns import KEYS, VALUES, LeftOut, ShownKeys, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dragoman_api import Column

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
_row = msgspec.json.Decoder(dict[str, Any], float_hook=exact_number).decode

_Members = Mapping[str, msgspec.Raw]
_Inner = dict[str, msgspec.Raw] | list[msgspec.Raw] | None

Opened = dict[tuple[int, str | int], _Inner]
"""Objects and arrays that were read of one row, by the `id` of their holder and their place in it."""

UNREADABLE = (ValueError, RecursionError, ArithmeticError)
"""The errors that reading a row may raise; its text comes from a driver."""
CELLS = 1 << 22
"""Maximum number of cells of a block: an empty row of three bytes has as many cells as the object has columns."""


def unreadable(what: str, error: BaseException) -> ExportError:
    """Return the error for a malformed row."""
    hint = "export documents, whose bytes are not parsed; if it fails again, tell the driver's author"
    return ExportError(f"{what} cannot be read: {error}", hint=hint)


class RowKeys:
    """Counts the fields of exported rows that no column of their object shows.

    Attributes:
        shown: The keys that columns show, by the members that lead to them.
        server_members: Members that the server adds to every row, which are not counted.
        left_out: The counts so far.
    """

    def __init__(self, columns: Sequence[Column], *, server_members: Iterable[str] = ()) -> None:
        """Note the keys that the columns show.

        Args:
            columns: All columns of the object.
            server_members: Members that the server adds to every row, so that no row loses a value without them.
        """
        self.server_members = frozenset(server_members)
        names: dict[tuple[str, ...], set[str]] = {(): {*self.server_members}}
        for column in columns:
            for end in range(len(column.path)):
                names.setdefault(column.path[:end], set()).add(column.path[end])
        self.shown = {group: ShownKeys(keys) for group, keys in names.items()}
        self.left_out = LeftOut()

    def missed(self, line: bytes) -> tuple[set[tuple[tuple[str, ...], str]], set[str]]:
        """Return the keys of a row that no column shows, each after the path to its object, and columns shown in part.

        Raises:
            ExportError: The line is not a JSON object.
        """
        row = read_row(line)
        unknown: set[tuple[tuple[str, ...], str]] = set()
        twice: set[str] = set()
        for group, shown_keys in self.shown.items():
            members: Any = row
            for key in group:
                members = members.get(key) if isinstance(members, dict) else None
            if isinstance(members, dict):
                pairs, names = shown_keys.missed(members)
                unknown |= {((*group, *at.split(".")) if at else group, key) for at, key in pairs}
                twice |= names
        return unknown, twice

    def add(self, line: bytes) -> None:
        """Count the keys of one row that no column shows. Raises ExportError if the line is not a JSON object."""
        if self.left_out.full:
            return
        unknown, twice = self.missed(line)
        self.add_keys(unknown)
        self.left_out.add(VALUES, twice)

    def add_keys(self, unknown: set[tuple[tuple[str, ...], str]]) -> None:
        """Count one row with these keys."""
        groups = sorted(self.shown, key=len, reverse=True)
        names = set()
        for way, key in unknown:
            group = next(group for group in groups if way[: len(group)] == group)
            names.add(joined(".".join(way[len(group) :]), key))
        self.left_out.add(KEYS, names)


class ValueReader:
    """Finds the values of chosen columns in rows."""

    def __init__(self, columns: Sequence[Column], keys: RowKeys | None = None) -> None:
        """Plan how to find the columns, once for all rows.

        Args:
            columns: The columns.
            keys: Counts the fields of each row that no column shows; None for no count.
        """
        self._keys = keys
        self._width = len(columns)
        plain: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        dotted: dict[tuple[str, ...], list[tuple[int, str, tuple[str, ...]]]] = {}
        pairs: dict[tuple[str, ...], list[tuple[int, str, str, str]]] = {}
        for at, column in enumerate(columns):
            group, name = column.path[:-1], column.path[-1]
            plain.setdefault(group, [])
            head, _, rest = name.partition(".")
            if head and rest and "." not in rest and not column.arrays:  # most dotted names
                pairs.setdefault(group, []).append((at, name, head, rest))
            elif "." in name:
                dotted.setdefault(group, []).append((at, name, column.arrays))
            else:
                plain[group].append((at, name))
        if keys is not None:
            plain.setdefault((), [])
        self._groups = [
            (group, names, pairs.get(group, []), dotted.get(group, []), None if keys is None else keys.shown[group])
            for group, names in plain.items()
        ]

    def read(self, line: bytes) -> list[bytes | None]:
        """Return the JSON text of each column, None if it is null or missing.

        Raises:
            ValueError, RecursionError: The line is not a JSON object.
        """
        texts: list[bytes | None] = [None] * self._width
        row = _members(line)
        strange = False
        for group, names, pairs, dotted, shown_keys in self._groups:
            members = row
            for key in group:
                value = bytes(members.get(key, b""))
                members = _members(value) if value[:1] == b"{" else {}
            for at, name in names:
                if (raw := members.get(name)) is not None and (text := bytes(raw)) != b"null":
                    texts[at] = text
            opened: Opened = {}
            for at, name, head, rest in pairs:
                if (raw := members.get(name)) is None:
                    holder = _open(members, head, opened)
                    if holder.__class__ is not dict:
                        texts[at] = None if holder is None else follow(members, name, (), opened)
                        continue
                    if (raw := holder.get(rest)) is None:
                        continue
                if (text := bytes(raw)) != b"null":
                    texts[at] = text
            for at, name, arrays in dotted:
                inner = follow(members, name, arrays, opened)
                texts[at] = None if inner == b"null" else inner
            if shown_keys is not None and not (shown_keys.flat and shown_keys.flat.issuperset(members)):
                strange = strange or not is_plain(shown_keys, members, opened)
        if strange and self._keys is not None:
            self._keys.add(line)
        return texts


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


def follow(members: _Members, name: str, arrays: Sequence[str], opened: Opened, before: str = "") -> bytes | None:
    """Find the JSON text of a dotted name; a literal key wins over a nested path.

    Args:
        members: The JSON texts of an object's members.
        name: The dotted name.
        arrays: Beginnings of the name at which each row has an array, outermost first.
        opened: The objects and arrays that were read for other names of the same row, empty for the first name.
        before: The beginning of the name that leads to this object, for `arrays`.
    """
    if (raw := members.get(name)) is not None:
        return bytes(raw)
    end = name.rfind(".")
    while end > 0:
        inner = _open(members, name[:end], opened)
        if inner is not None:
            rest = name[end + 1 :]
            path = before + name[:end] if arrays else ""
            if isinstance(inner, list):
                return _gather(inner, rest, arrays, opened, path)
            text = follow(inner, rest, arrays, opened, f"{path}." if arrays else "")
            if path in arrays:
                return b"[%b]" % (text or b"null")
            if text is not None:
                return text
        end = name.rfind(".", 0, end)
    return None


def _gather(array: list[msgspec.Raw], name: str, arrays: Sequence[str], opened: Opened, before: str) -> bytes:
    """Return an array with the value of each element, null if it is missing."""
    texts = []
    for at in range(len(array)):
        value, inner = _open(array, at, opened), None
        if isinstance(value, list):
            inner = _gather(value, name, arrays, opened, before)
        elif value is not None:
            inner = follow(value, name, arrays, opened, f"{before}.")
        texts.append(inner or b"null")
    return b"[" + b",".join(texts) + b"]"


def is_plain(shown: ShownKeys, members: _Members, opened: Opened, at: str = "") -> bool:
    """Return whether an object holds only keys that columns show, each once.

    Args:
        shown: The keys that columns show.
        members: The JSON texts of the object's members.
        opened: The objects and arrays that were read for other names of the same row.
        at: The dotted name of the object; empty for the row.
    """
    keys, objects = shown.known[at], shown.objects[at]
    if not keys.issuperset(members):
        for key in members:
            if key not in keys and bytes(members[key]) != b"null":
                return False
    if not objects or objects.isdisjoint(members):
        return True
    if not shown.dotted[at].isdisjoint(members) and shown.spells_twice(members, at):
        return False
    for key, name in shown.inner[at]:
        if key in members:
            inner = _open(members, key, opened)
            if isinstance(inner, dict):
                if not is_plain(shown, inner, opened, name):
                    return False
            elif isinstance(inner, list):
                if not _are_plain(shown, inner, opened, name):
                    return False
            elif bytes(members[key]) != b"null":
                return False
    return True


def _are_plain(shown_keys: ShownKeys, items: list[msgspec.Raw], opened: Opened, at: str) -> bool:
    for number, item in enumerate(items):
        inner = _open(items, number, opened)
        if isinstance(inner, dict):
            plain = is_plain(shown_keys, inner, opened, at)
        elif isinstance(inner, list):
            plain = _are_plain(shown_keys, inner, opened, at)
        else:
            plain = bytes(item) == b"null"
        if not plain:
            return False
    return True


def _open(holder: Any, key: str | int, opened: Opened) -> _Inner:
    """Read an object or an array inside another one; None if the value is neither."""
    cache_key = id(holder), key  # those of a row stay as long as `opened`
    if cache_key in opened:
        return opened[cache_key]
    try:
        value = bytes(holder[key])
    except KeyError:
        value = b""
    inner = _members(value) if value[:1] == b"{" else _items(value) if value[:1] == b"[" else None
    opened[cache_key] = inner
    return inner


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
