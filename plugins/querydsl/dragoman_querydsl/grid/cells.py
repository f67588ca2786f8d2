"""Stored documents to cells: dotted paths, nested arrays, digits as stored."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from itertools import accumulate, chain, pairwise
from operator import attrgetter, itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Cell, Json
from dragoman_api.cells import CELL_CUT, MISSING, cut
from dragoman_api.grid import CellColumns
from dragoman_api.json_text import decode, exact_number, narrowed
from dragoman_querydsl.columns.field_types import DATE_FORMAT, SPECIAL, Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dragoman_querydsl.search import DecodedHit

_encoder = msgspec.json.Encoder()
_floats = msgspec.json.Decoder(list[float])
_CONTAINERS = {list, dict, NoneType, tuple}
_PLAIN = {NoneType, bool, int, float, str, tuple}
FLOATS = msgspec.json.Decoder(float_hook=Raw)  # ten times faster than a hook in Python
DOCUMENT = msgspec.json.Decoder(dict[str, Any], float_hook=Raw)


def parse(text: bytes | str) -> Any:
    """Read JSON whose floats stay Raw. Raises ValueError as `decode`."""
    return decode(text, FLOATS)


def whole(value: Any) -> Cell:
    """Return the uncut cell of a value."""
    if isinstance(value, (dict, list)):
        return Json(narrowed(_encoder.encode(value).decode()))
    return exact_number(bytes(value).decode()) if isinstance(value, Raw) else value


def show(rows: Sequence[Sequence[Any]]) -> list[list[Cell]]:
    """Turn rows of values into cells; arrays and objects become JSON, cut at the limit (E21, E22)."""
    return _shown(list(zip(*rows, strict=True)), len(rows)).rows


def _shown(columns: Sequence[Sequence[Any]], length: int) -> CellColumns:
    cells: list[Sequence[Cell]] = []
    json: list[int] = []
    for at, column in enumerate(columns):
        kinds = set(map(type, column))
        if kinds <= _PLAIN:
            pass
        elif kinds <= _CONTAINERS and (texts := _texts(column, kinds)) is not None:
            json.append(at)
            column = texts
        else:
            column = _show_column(column, kinds)
        cells.append(column)
    return CellColumns(cells, length, json=json)


def _texts(column: Sequence[Any], kinds: set[type]) -> list[Any] | None:
    """Return the JSON texts of a column of containers; None if one has to be cut."""
    alone = kinds <= {list, dict}
    containers = column if alone else [value for value in column if value.__class__ in (list, dict)]
    # JSON on one line holds no line break.
    texts = narrowed(_encoder.encode_lines(containers).decode()).split("\n")[:-1]
    return _filled(column, (list, dict), iter(texts), alone=alone) if max(map(len, texts)) <= CELL_CUT else None


def _show_column(column: Sequence[Any], kinds: set[type]) -> Sequence[Cell]:
    if Raw in kinds:
        numbers = _numbers([value for value in column if value.__class__ is Raw])
        column = _filled(column, (Raw,), numbers, alone=len(kinds) == 1)
    if dict in kinds or list in kinds:
        containers = [value for value in column if value.__class__ in (list, dict)]
        texts = narrowed(_encoder.encode_lines(containers).decode()).split("\n")[:-1]
        column = _filled(column, (list, dict), map(cut, texts), alone=False)
    return column


def _numbers(texts: list[Raw]) -> Iterator[Cell]:
    """Read many numbers that are not integers, as `exact_number` does."""
    array = b"[%b]" % b",".join(texts)
    # msgspec writes floats as Python does, except exponents and values below 0.0001.
    if b"e" not in array and b"0.0000" not in array:
        with suppress(msgspec.DecodeError):
            floats = _floats.decode(array)
            written = _encoder.encode(floats)
            if written == array:
                return iter(floats)
            pairs = zip(floats, *(text[1:-1].decode().split(",") for text in (written, array)), strict=True)
            return (value if spelling == original else Decimal(original) for value, spelling, original in pairs)
    return (exact_number(bytes(text).decode()) for text in texts)


def _filled(column: Sequence[Any], kinds: tuple[type, ...], values: Iterator[Any], *, alone: bool) -> list[Any]:
    """Replace the values of some types, in order."""
    return list(values) if alone else [next(values) if value.__class__ in kinds else value for value in column]


_Way = tuple[tuple[str, bool, Any], ...]  # for each spelling of the next keys: key, nested, the paths after it


class _IrregularError(Exception):
    """Documents are spelled or nested in a way that must be read one by one."""


class _Key:
    """One key of stored documents, and the columns at it and below it."""

    def __init__(self) -> None:
        self.nested = False
        self.here: list[int] = []
        self.behind: list[int] = []
        self.literal: set[str] = set()  # dotted keys that spell a path below this one
        self.inner: dict[str, _Key] = {}

    def add(self, at: int, parts: Sequence[str], before: str, arrays: frozenset[str]) -> None:
        """Plan the path to a column."""
        self.literal.update(".".join(parts[:end]) for end in range(2, len(parts) + 1))
        name = before + parts[0]
        self.nested = name in arrays
        if len(parts) == 1:
            self.here.append(at)
        else:
            self.behind.append(at)
            self.inner.setdefault(parts[1], _Key()).add(at, parts[1:], f"{name}.", arrays)

    def read(self, key: str, documents: Sequence[dict[str, Any]], keys: set[str], columns: list[Any]) -> None:
        """Fill the columns for all documents at once.

        Raises:
            _IrregularError: A literal dotted key, or an array of arrays.
        """
        if not self.literal.isdisjoint(keys):
            raise _IrregularError
        if key not in keys:
            return
        values: list[Any]
        try:
            values = list(map(itemgetter(key), documents))
        except KeyError:
            values = [document.get(key, MISSING) for document in documents]
        for at in self.here:
            columns[at] = values
        if not self.inner:
            return
        flat, shape = self._flat(values)
        inner = set[str]().union(*flat)
        for name, child in self.inner.items():
            child.read(name, flat, inner, columns)
        if shape:
            for at in self.behind:
                columns[at] = _folded([MISSING] * len(flat) if columns[at] is None else columns[at], shape)

    def _flat(self, values: list[Any]) -> tuple[list[dict[str, Any]], list[int | slice | None]]:
        """Flatten arrays of objects into one list, with the slice that belongs to each value (E20)."""
        kinds = set(map(type, values))
        if not self.nested and kinds == {dict}:
            return values, []
        flat: list[Any] = []
        shape: list[int | slice | None] = []
        if kinds == {list}:
            flat += chain.from_iterable(values)
            shape += (slice(*ends) for ends in pairwise(accumulate(map(len, values), initial=0)))
        else:
            for value in values:
                at, kind = len(flat), value.__class__
                if kind is list:
                    flat += value
                    shape.append(slice(at, len(flat)))
                elif kind is dict:
                    flat.append(value)
                    shape.append(slice(at, at + 1) if self.nested else at)  # a bare object is an array of one
                else:
                    shape.append(None)
        kinds = set(map(type, flat))
        if list in kinds:
            raise _IrregularError
        if kinds != {dict}:
            flat = [element if element.__class__ is dict else {} for element in flat]
        return flat, shape


def _folded(column: list[Any], shape: list[int | slice | None]) -> list[Any]:
    """Reverse `_Key._flat` for one column: an element that lacks the key is null in the array (E20)."""
    elements = [None if value is MISSING else value for value in column]
    return [
        MISSING if where is None else elements[where] if where.__class__ is slice else column[where] for where in shape
    ]


class CellReader:
    """Reads the cells of chosen columns out of hits."""

    def __init__(self, columns: Sequence[Field], nested: Iterable[str] = ()) -> None:
        """Plan how to read the columns, once for all rows.

        Args:
            columns: The columns, in the order of the cells.
            nested: Names of all nested arrays of the object.
        """
        self._arrays = frozenset(nested)
        self._width = len(columns)
        self._keys: dict[str, _Key] = {}
        self._paths: dict[int, list[str]] = {}
        self._special: list[tuple[int, str]] = []
        self._runtime: list[tuple[int, str]] = []
        self._within = [(at, frozenset(field.within)) for at, field in enumerate(columns) if field.within]
        for at, field in enumerate(columns):
            if field.family in SPECIAL:
                self._special.append((at, field.family.removeprefix("_")))
            elif field.computed:
                self._runtime.append((at, field.field))
            else:
                self._paths[at] = parts = field.field.split(".")
                self._keys.setdefault(parts[0], _Key()).add(at, parts, "", self._arrays)
        self.needs_source = bool(self._keys)
        # A format of the column's own may leave out digits of an instant.
        self.computed: list[str | dict[str, str]] = [
            {"field": field.field, "format": "strict_date_optional_time"}
            if field.family is Family.DATE and field.formats != (DATE_FORMAT,)
            else field.field
            for field in columns
            if field.computed
        ]

    def cells(self, hits: Sequence[DecodedHit]) -> CellColumns:
        """Return one cell per row and column."""
        return _shown(self.columns(hits), len(hits))

    def columns(self, hits: Sequence[DecodedHit]) -> list[list[Any]]:
        """Return one list of uncut values per column.

        `MISSING` is a key that the stored document does not have. A document that was not stored, or a computed column
        without a value, is None: nothing tells whether there is a null.
        """
        columns: list[Any] = [None] * self._width
        for at, name in self._special:
            columns[at] = list(map(attrgetter(name), hits))
        documents = [hit.source or {} for hit in hits]
        keys = set[str]().union(*documents)
        for key, reader in self._keys.items():
            try:
                reader.read(key, documents, keys, columns)
            except _IrregularError:
                for at in (*reader.here, *reader.behind):
                    ways = _ways(self._paths[at], "", self._arrays)
                    columns[at] = [_follow(document, ways) for document in documents]
        for at, name in self._runtime:
            computed = [hit.fields.get(name) or [None] for hit in hits]  # the API always answers arrays
            columns[at] = [values[0] if len(values) == 1 else values for values in computed]
        for at, indices in self._within:
            read = zip(hits, columns[at] or [MISSING] * len(hits), strict=True)
            columns[at] = [value if hit.index in indices else MISSING for hit, value in read]
        nothing = [MISSING] * len(hits)
        columns = [nothing if column is None else column for column in columns]
        if any(hit.source is None for hit in hits):
            for at in self._paths:
                read = zip(hits, columns[at], strict=True)
                columns[at] = [None if hit.source is None else value for hit, value in read]
        return columns


def _ways(parts: list[str], before: str, arrays: frozenset[str]) -> _Way:
    """Return all spellings of a path; the literal dotted key comes first, if a document has both."""
    ways = []
    for end in range(len(parts), 0, -1):
        key = ".".join(parts[:end])
        name = before + key
        ways.append((key, name in arrays, _ways(parts[end:], f"{name}.", arrays) if end < len(parts) else None))
    return tuple(ways)


def _follow(document: Mapping[str, Any], ways: _Way) -> Any:
    for key, nested, behind in ways:
        value = document.get(key, MISSING)
        if value is MISSING:
            continue
        if behind is None:
            return value
        kind = value.__class__
        if kind is dict:
            inner_value = _follow(value, behind)
            if nested:  # a bare object under a nested mapping is an array of one
                return [None if inner_value is MISSING else inner_value]
            if inner_value is not MISSING:
                return inner_value
        elif kind is list:
            return _gather(value, behind)
    return MISSING


def _gather(values: list[Any], ways: _Way) -> list[Any]:
    """Return one entry per element, None if it has no value (E20)."""
    if len(ways) == 1:  # nearly all leaves: one spelling, nothing below
        key = ways[0][0]
        return [
            element.get(key)
            if element.__class__ is dict
            else _gather(element, ways)
            if element.__class__ is list
            else None
            for element in values
        ]
    entries = []
    for element in values:
        kind = element.__class__
        value = _follow(element, ways) if kind is dict else _gather(element, ways) if kind is list else None
        entries.append(None if value is MISSING else value)
    return entries
