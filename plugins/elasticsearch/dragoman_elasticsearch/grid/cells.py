"""Stored documents to cells: dotted paths, nested arrays, digits as stored."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Cell, Json
from dragoman_api.cells import CELL_CUT, MISSING, cut, exact_number, narrowed
from dragoman_api.json_text import decode
from dragoman_elasticsearch.columns.field_types import DATE_FORMAT, SPECIAL, Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dragoman_elasticsearch.search_hits import DecodedHit

_encoder = msgspec.json.Encoder()
_floats = msgspec.json.Decoder(list[float])
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
    return _rows(map(_shown, zip(*rows, strict=True))) or [[] for _ in rows]


def _rows(columns: Iterable[Sequence[Cell]]) -> list[list[Cell]]:
    return list(map(list, zip(*columns, strict=True)))


def _shown(column: Sequence[Any]) -> Sequence[Cell]:
    kinds = set(map(type, column))
    if Raw in kinds:
        numbers = _numbers([value for value in column if value.__class__ is Raw])
        column = _filled(column, (Raw,), numbers, alone=len(kinds) == 1)
    if dict in kinds or list in kinds:
        alone = kinds <= {list, dict}
        found = column if alone else [value for value in column if value.__class__ in (list, dict)]
        texts = narrowed(_encoder.encode_lines(found).decode()).split("\n")[:-1]  # JSON on one line holds no line break
        fits = max(map(len, texts)) <= CELL_CUT
        column = _filled(column, (list, dict), map(Json if fits else cut, texts), alone=alone)
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
            return (value if one == other else Decimal(other) for value, one, other in pairs)
    return (exact_number(bytes(text).decode()) for text in texts)


def _filled(column: Sequence[Any], kinds: tuple[type, ...], values: Iterator[Any], *, alone: bool) -> list[Any]:
    """Replace the values of some types, in order."""
    return list(values) if alone else [next(values) if each.__class__ in kinds else each for each in column]


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

    def read(self, key: str, documents: Sequence[dict[str, Any]], keys: set[str], found: list[Any]) -> None:
        """Fill the columns for all documents at once.

        Raises:
            _IrregularError: A literal dotted key, or an array of arrays.
        """
        if not self.literal.isdisjoint(keys):
            raise _IrregularError
        if key not in keys:
            return
        values: list[Any] = [document.get(key, MISSING) for document in documents]
        for at in self.here:
            found[at] = values
        if not self.inner:
            return
        flat, shape = self._flat(values)
        inner = set(chain.from_iterable(flat))
        for name, each in self.inner.items():
            each.read(name, flat, inner, found)
        if shape:
            for at in self.behind:
                found[at] = _folded([MISSING] * len(flat) if found[at] is None else found[at], shape)

    def _flat(self, values: list[Any]) -> tuple[list[dict[str, Any]], list[int | slice | None]]:
        """Flatten arrays of objects into one list, with the slice that belongs to each value (E20)."""
        if not self.nested and set(map(type, values)) == {dict}:
            return values, []
        flat: list[Any] = []
        shape: list[int | slice | None] = []
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
            flat = [each if each.__class__ is dict else {} for each in flat]
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
        self._within = [(at, frozenset(each.within)) for at, each in enumerate(columns) if each.within]
        for at, each in enumerate(columns):
            if each.family in SPECIAL:
                self._special.append((at, each.family.removeprefix("_")))
            elif each.computed:
                self._runtime.append((at, each.field))
            else:
                self._paths[at] = parts = each.field.split(".")
                self._keys.setdefault(parts[0], _Key()).add(at, parts, "", self._arrays)
        self.needs_source = bool(self._keys)
        # A format of the column's own may leave out digits of an instant.
        self.computed: list[str | dict[str, str]] = [
            {"field": each.field, "format": "strict_date_optional_time"}
            if each.family is Family.DATE and each.formats != (DATE_FORMAT,)
            else each.field
            for each in columns
            if each.computed
        ]

    def cells(self, hits: Sequence[DecodedHit]) -> list[list[Cell]]:
        """Return one cell per row and column."""
        return _rows(map(_shown, self.columns(hits))) or [[] for _ in hits]

    def columns(self, hits: Sequence[DecodedHit]) -> list[list[Any]]:
        """Return one list of uncut values per column.

        `MISSING` is a key that the stored document does not have. A document that was not stored, or a computed column
        without a value, is None: nothing tells whether there is a null.
        """
        found: list[Any] = [None] * self._width
        for at, name in self._special:
            found[at] = list(map(attrgetter(name), hits))
        documents = [hit.source or {} for hit in hits]
        keys = set(chain.from_iterable(documents))
        for key, each in self._keys.items():
            try:
                each.read(key, documents, keys, found)
            except _IrregularError:
                for at in (*each.here, *each.behind):
                    ways = _ways(self._paths[at], "", self._arrays)
                    found[at] = [_follow(document, ways) for document in documents]
        for at, name in self._runtime:
            computed = [hit.fields.get(name) or [None] for hit in hits]  # the API always answers arrays
            found[at] = [values[0] if len(values) == 1 else values for values in computed]
        for at, indices in self._within:
            read = zip(hits, found[at] or [MISSING] * len(hits), strict=True)
            found[at] = [value if hit.index in indices else MISSING for hit, value in read]
        nothing = [MISSING] * len(hits)
        found = [nothing if column is None else column for column in found]
        if any(hit.source is None for hit in hits):
            for at in self._paths:
                read = zip(hits, found[at], strict=True)
                found[at] = [None if hit.source is None else value for hit, value in read]
        return found


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
            found = _follow(value, behind)
            if nested:  # a bare object under a nested mapping is an array of one
                return [None if found is MISSING else found]
            if found is not MISSING:
                return found
        elif kind is list:
            return _gather(value, behind)
    return MISSING


def _gather(values: list[Any], ways: _Way) -> list[Any]:
    """Return one entry per element, None if it has no value (E20)."""
    if len(ways) == 1:  # nearly all leaves: one spelling, nothing below
        key = ways[0][0]
        return [
            each.get(key) if each.__class__ is dict else _gather(each, ways) if each.__class__ is list else None
            for each in values
        ]
    found = []
    for each in values:
        kind = each.__class__
        value = _follow(each, ways) if kind is dict else _gather(each, ways) if kind is list else None
        found.append(None if value is MISSING else value)
    return found
