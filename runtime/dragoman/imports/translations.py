"""Translations: rows of one type of database become rows of a table, which a connection of another type takes.

A row is read by the columns of its object, from the JSON text of each value, so that no number is parsed and rewritten.
What a value becomes depends on its own column and on the one that receives it; if neither says, the target's driver
judges the value, and the row is rejected with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_DNS, uuid5

import msgspec

from dragoman.exports.values import UNREADABLE, RowKeys, ValueReader
from dragoman.spellings import value_of
from dragoman_api.cells import Json
from dragoman_api.columns import Column, ColumnKind, Note

from .records import Record, usual_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dragoman_api.columns import Description

RESPELLED = "values-respelled"
"""The code of a note on values that are spelled otherwise where they go."""

NULLS = "nulls-left-out"
"""The code of a note on nulls that become missing values."""

NESTED_KINDS = (ColumnKind.JSON, ColumnKind.RANGE, ColumnKind.GEO, ColumnKind.OTHER)
"""Kinds whose values may be any JSON."""

_UNQUOTED = (ColumnKind.BOOLEAN, ColumnKind.INTEGER, ColumnKind.FLOAT)
"""Kinds whose values are no texts; a driver reads a text there."""

_text = msgspec.json.Decoder(str).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_DAY = r"\d{4}-\d\d-\d\d"
_INSTANT = re.compile(rf"({_DAY})(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """One column on its way to a connection of another type.

    Attributes:
        source: The column that a row is read by.
        name: The name of the column that receives its values.
        kind: What that column's values are; None if nothing is known of it.
        repeated: Each of them is an array.
    """

    source: Column
    name: str
    kind: ColumnKind | None
    repeated: bool = False


def derived_uuid(row_id: str) -> str:
    """Return the UUID of version 5 that stands for an id, as ``generate_uuid5`` of Weaviate's clients does.

    >>> derived_uuid("17")
    'db680066-c83d-5ed7-89a4-1d79466ea62d'
    """
    return str(uuid5(NAMESPACE_DNS, row_id))


def full_instant(text: str) -> str:
    """Return an ISO 8601 time with all of its parts: a day begins at midnight, and what names no offset is UTC.

    >>> full_instant("2024-01-31"), full_instant("2024-01-31T12:00+0200"), full_instant("soon")
    ('2024-01-31T00:00:00Z', '2024-01-31T12:00:00+02:00', 'soon')
    """
    if (match := _INSTANT.fullmatch(text)) is None:
        return text
    day, minute, second, zone = match.groups()
    zone = (zone or "Z").upper()
    if zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        zone = f"{zone[0]}{digits[:2]}:{digits[2:]}"
    return f"{day}T{minute or '00:00'}{second or ':00'}{zone}"


def holds_null(line: bytes) -> bool:
    """Return whether a member of a row, or of an object in it, is null. An array's nulls stay in it."""
    if b"null" not in line:
        return False
    try:
        return _has_null(_decode(line))
    except UNREADABLE:
        return False


def _has_null(value: Any) -> bool:
    return isinstance(value, dict) and any(member is None or _has_null(member) for member in value.values())


def null_note(rows: int) -> Note:
    """Return the note on rows with nulls, which a table does not tell from missing values."""
    text = f"{'1 row holds' if rows == 1 else f'{rows:,} rows hold'} a null, which is not written: the value is missing"
    return Note(code=NULLS, reason=text)


def members_of(description: Description) -> list[str]:
    """Return the members of an exported row that hold no column: those that the server adds, and the object's name."""
    return [*filter(None, (*description.server_members, description.object_member))]


def object_paths(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    """List where objects lie whose members are columns, the outermost first, if the description says no array there."""
    paths: dict[tuple[str, ...], None] = {}
    for column in columns:
        *group, name = column.path
        parts = name.split(".")
        for end in range(1, len(parts)):
            if (prefix := ".".join(parts[:end])) not in column.arrays:
                paths[(*group, prefix)] = None
    return sorted(paths, key=lambda path: path[-1].count("."))


class ObjectReader:
    """Reads the values of columns, and tells where an array lies whose objects' members are columns."""

    def __init__(self, columns: Sequence[Column], keys: RowKeys | None = None) -> None:
        """Plan how to find the columns.

        Args:
            columns: The columns.
            keys: Counts the fields of each row that no column shows; None for no count.
        """
        self._paths = object_paths(columns)
        holders = [Column(name=f"\0{'.'.join(path)}", type="object", path=path) for path in self._paths]
        self._width = len(columns)
        self._reader = ValueReader([*columns, *holders], keys)

    def read(self, line: bytes) -> tuple[list[bytes | None], list[tuple[str, ...]]]:
        """Return the JSON text of each column, None if it is null or missing, and the paths at which arrays lie.

        Raises:
            ValueError, RecursionError: The line is not a JSON object.
        """
        texts = self._reader.read(line)
        holders = zip(self._paths, texts[self._width :], strict=True)
        return texts[: self._width], [path for path, text in holders if text is not None and text[:1] == b"["]


class Translation:
    """Makes rows of a table of the lines that another type of database exports.

    Attributes:
        names: The names of the table's columns: those of the source.
        id_name: The name of the table's column of ids; empty if no ids are carried.
        origin: The name of the table's column of ids as they were read, which tell rejected rows; empty if another
            column holds them.
        labels: The names of the columns that receive them, by those of the table; without those two.
        uuids: The ids there are UUIDs, which have one spelling.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        description: Description,
        *,
        id_column: Column | None,
        derives: bool,
    ) -> None:
        """Prepare to read rows.

        Args:
            passages: The columns that are carried.
            description: The source's object.
            id_column: The column of the ids; None to carry no ids.
            derives: Each id becomes a UUID that is derived from it.
        """
        ids = [] if id_column is None else [id_column]
        sources = [passage.source for passage in passages]
        keys = [column for column in description.columns if column.is_key and column.path]
        carried_names = {column.name for column in [*([] if derives else ids), *sources]}
        origins = keys if len(keys) == 1 and keys[0].name not in carried_names else []
        columns = [*ids, *sources, *origins]
        self._keys = RowKeys([*description.columns, *columns], server_members=members_of(description))
        self._reader = ObjectReader(columns, self._keys)
        self._respelled: Counter[str] = Counter()
        self._nulls = 0
        self._derives, self.uuids = derives, False
        self.id_name = "" if id_column is None else f"{id_column.name} as UUID" if derives else id_column.name
        self.labels: dict[str, str] = {}
        for passage in passages:
            self.labels[_label(passage, [self.id_name, *self.labels])] = passage.name
        self.origin = origins[0].name if origins else ""
        self.names = [*filter(None, [self.id_name]), *self.labels, *filter(None, [self.origin])]
        self._converters = [*(self._of_id for _ in ids), *map(self._converter, passages), *(_plain for _ in origins)]

    @property
    def new_names(self) -> dict[str, str]:
        """The names that the table's columns get; empty for the columns of ids."""
        names = {label: name for label, name in self.labels.items() if label != name}
        return names | dict.fromkeys(filter(None, [self.id_name, self.origin]), "")

    @property
    def notes(self) -> list[Note]:
        """Notes on what the rows so far held beside the columns, and on values that are spelled otherwise now."""
        notes = [
            Note(
                code=RESPELLED,
                column=name,
                reason=f"{'1 value is' if count == 1 else f'{count:,} values are'} spelled as the column there needs",
            )
            for name, count in self._respelled.items()
        ]
        return [*self._keys.left_out.notes(), *([null_note(self._nulls)] if self._nulls else ()), *notes]

    def records(self, lines: Iterator[Record]) -> Iterator[Record]:
        """Yield a row of the table for each line; one that cannot be read has a fault."""
        for record in lines:
            yield record if record.fault else self._record(record)

    def _record(self, record: Record) -> Record:
        assert isinstance(record.data, bytes)
        try:
            texts, arrays = self._reader.read(record.data)
            if arrays:
                raise ValueError(
                    f"it holds an array at {arrays[0][-1]!r}, and the members of one object are columns there"
                )
            converters = zip(self._converters, texts, strict=True)
            self._nulls += holds_null(record.data)
            fields = [None if text is None else convert(text) for convert, text in converters]
        except UNREADABLE as error:
            return Record(record.number, record.data, str(error))
        return Record(record.number, fields)

    def _of_id(self, text: bytes) -> str:
        row_id = _plain(text)
        if self._derives:
            return derived_uuid(row_id)
        if self.uuids and usual_uuid(row_id) != row_id:
            self._respelled[self.id_name] += 1
        return row_id

    def _converter(self, passage: Passage) -> Callable[[bytes], Any]:
        """Return what makes of a JSON text the value of a change for the column that receives it."""
        kind, source = passage.kind, passage.source.kind
        nests = source in NESTED_KINDS and passage.source.dimensions is None
        texts = kind is ColumnKind.TEXT
        element = self._element(passage)

        def convert(text: bytes) -> Any:
            first = text[:1]
            if first == b"[" and not (texts and nests and not passage.repeated):
                if element is not None:
                    return Json(f"[{','.join(map(element, _items(text)))}]")
                return Json(text.decode())
            if passage.repeated:
                self._respelled[passage.source.name] += 1
                return Json(f"[{text.decode() if element is None else element(msgspec.Raw(text))}]")
            if first == b'"':
                if kind is None or kind in NESTED_KINDS:
                    return Json(text.decode())
                plain = _text(text)
                if kind in _UNQUOTED:
                    self._respelled[passage.source.name] += 1
                return self._instant(plain, passage) if kind is ColumnKind.TIMESTAMP else plain
            if texts and first == b"{" and not nests:  # an object where texts are expected
                return Json(text.decode())
            if texts:
                if not nests and source is ColumnKind.TEXT:
                    self._respelled[passage.source.name] += 1
                return text.decode()
            return value_of(text)

        return convert

    def _element(self, passage: Passage) -> Callable[[msgspec.Raw], str] | None:
        """Return what makes an element of an array, as JSON; None if elements stay as they are."""
        if passage.kind is ColumnKind.TIMESTAMP:

            def instant(item: msgspec.Raw) -> str:
                text = bytes(item)
                if text[:1] != b'"':
                    return text.decode()
                return _encode(self._instant(_text(text), passage)).decode()

            return instant
        if passage.kind is ColumnKind.TEXT and passage.repeated:

            def quoted(item: msgspec.Raw) -> str:
                text = bytes(item).decode()
                if text[:1] in '"n[' or (text[:1] == "{" and passage.source.kind not in NESTED_KINDS):
                    return text
                if passage.source.kind is ColumnKind.TEXT:
                    self._respelled[passage.source.name] += 1
                return _encode(text).decode()

            return quoted
        return None

    def _instant(self, text: str, passage: Passage) -> str:
        full = full_instant(text)
        if full != text:
            self._respelled[passage.source.name] += 1
        return full


def _plain(text: bytes) -> str:
    return _text(text) if text[:1] == b'"' else text.decode()


def _label(passage: Passage, labels: Sequence[str]) -> str:
    """Return the name of a column of the table; the column of the ids is carried a second time under another one."""
    label = passage.source.name
    while label in labels:
        label = f"{label} as {passage.name}"
    return label
