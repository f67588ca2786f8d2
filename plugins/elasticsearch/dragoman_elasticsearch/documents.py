"""From stored documents to cells: dotted paths, nested arrays, digits as stored."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Cell, Json, RowKey
from dragoman_api.cells import CELL_CUT, cut

from .fields import Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Hit(msgspec.Struct, frozen=True):
    """What every row of an answer has besides its document; sort values stay bytes, to be sent back as they came."""

    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")
    score: float | None = msgspec.field(name="_score", default=None)
    seq_no: int | None = msgspec.field(name="_seq_no", default=None)
    primary_term: int | None = msgspec.field(name="_primary_term", default=None)
    routing: str | None = msgspec.field(name="_routing", default=None)
    ignored: tuple[str, ...] = msgspec.field(name="_ignored", default=())
    fields: dict[str, list[Any]] = {}
    sort: tuple[Raw, ...] = ()

    @property
    def key(self) -> RowKey:
        """Give the row's address, with what protects a change of it."""
        guard: dict[str, int | str] = {}
        if self.seq_no is not None and self.primary_term is not None:
            guard = {"seq_no": self.seq_no, "primary_term": self.primary_term}
        return RowKey(self.index, self.id, self.routing, guard)


class Read(Hit, frozen=True):
    """A row whose document is read; its floats are Raw, so that they keep their digits."""

    source: dict[str, Any] | None = msgspec.field(name="_source", default=None)


class Stored(Hit, frozen=True):
    """A row whose document stays bytes; empty where the index keeps none."""

    source: Raw = msgspec.field(name="_source", default=Raw())


def number(text: str) -> float | Decimal:
    """Read a number that is no integer; Decimal where a float would not give the text back."""
    value = float(text)
    return value if repr(value) == text else Decimal(text)


_encoder = msgspec.json.Encoder()
_floats = msgspec.json.Decoder(list[float])
_decode = msgspec.json.Decoder(float_hook=Raw).decode  # ten times as fast as a hook written in Python


def parse(text: bytes | str) -> Any:
    """Read JSON whose floats stay Raw."""
    return _decode(text)


def whole(value: Any) -> Cell:
    """Make the uncut cell of a value."""
    if isinstance(value, (dict, list)):
        return Json(_encoder.encode(value).decode())
    return number(bytes(value).decode()) if isinstance(value, Raw) else value


def show(rows: Sequence[Sequence[Any]]) -> list[list[Cell]]:
    """Turn values into cells; arrays and objects become JSON, cut at the limit (E21, E22)."""
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
        texts = _encoder.encode_lines(found).decode().split("\n")[:-1]  # JSON on one line holds no line break
        fits = max(map(len, texts)) <= CELL_CUT
        column = _filled(column, (list, dict), map(Json if fits else cut, texts), alone=alone)
    return column


def _numbers(texts: list[Raw]) -> Iterator[float | Decimal]:
    """Read many numbers that are no integers, as `number` does."""
    array = b"[%b]" % b",".join(texts)
    # msgspec writes a float as Python does, but for exponents and for what is less than 0.0001.
    if b"e" not in array and b"0.0000" not in array:
        with suppress(msgspec.DecodeError):
            floats = _floats.decode(array)
            written = _encoder.encode(floats)
            if written == array:
                return iter(floats)
            pairs = zip(floats, *(text[1:-1].decode().split(",") for text in (written, array)), strict=True)
            return (value if one == other else Decimal(other) for value, one, other in pairs)
    return (number(bytes(text).decode()) for text in texts)


def _filled(column: Sequence[Any], kinds: tuple[type, ...], values: Iterator[Any], *, alone: bool) -> list[Any]:
    """Put values, in order, in place of those of some types."""
    return list(values) if alone else [next(values) if each.__class__ in kinds else each for each in column]


_MISSING: Any = object()
_Way = tuple[tuple[str, bool, Any], ...]  # for each spelling of the next keys: key, nested, the ways behind it


class _IrregularError(Exception):
    """Documents are spelled or nested in a way that is read one by one."""


class _Key:
    """One key of stored documents, and the columns at and behind it."""

    def __init__(self) -> None:
        self.nested = False
        self.here: list[int] = []
        self.behind: list[int] = []
        self.literal: set[str] = set()  # dotted keys beside this one, that mean something behind it
        self.inner: dict[str, _Key] = {}

    def add(self, at: int, parts: Sequence[str], before: str, arrays: frozenset[str]) -> None:
        """Plan the way to a column."""
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
        values = [document.get(key) for document in documents]
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
                column = found[at] or [None] * len(flat)
                found[at] = [None if where is None else column[where] for where in shape]

    def _flat(self, values: list[Any]) -> tuple[list[dict[str, Any]], list[int | slice | None]]:
        """Lay the objects of arrays in one row, and note which belong to which value, unless each is one (E20)."""
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


class Reader:
    """Reads the cells of chosen columns out of hits."""

    def __init__(self, columns: Sequence[Field], nested: Iterable[str] = ()) -> None:
        """Find the ways to the columns once for all rows.

        Args:
            columns: In the order of the cells.
            nested: Names of all nested arrays of the object.
        """
        self._arrays = frozenset(nested)
        self._width = len(columns)
        self._keys: dict[str, _Key] = {}
        self._paths: dict[int, list[str]] = {}
        self._special: list[tuple[int, str]] = []
        self._runtime: list[tuple[int, str]] = []
        for at, each in enumerate(columns):
            if each.family in (Family.ID, Family.INDEX, Family.SCORE):
                self._special.append((at, each.family.removeprefix("_")))
            elif each.runtime:
                self._runtime.append((at, each.field))
            else:
                self._paths[at] = parts = each.field.split(".")
                self._keys.setdefault(parts[0], _Key()).add(at, parts, "", self._arrays)
        self.needs_source = bool(self._keys)
        self.computed = [name for _, name in self._runtime]

    def cells(self, hits: Sequence[Read]) -> list[list[Cell]]:
        """Give one cell per row and column; None where a document has nothing."""
        return _rows(map(_shown, self.columns(hits))) or [[] for _ in hits]

    def columns(self, hits: Sequence[Read]) -> list[list[Any]]:
        """Give one list of values per column, uncut."""
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
                    values = (_follow(document, ways) for document in documents)
                    found[at] = [None if value is _MISSING else value for value in values]
        for at, name in self._runtime:
            computed = [hit.fields.get(name) or [None] for hit in hits]  # the API always answers arrays
            found[at] = [values[0] if len(values) == 1 else values for values in computed]
        nothing = [None] * len(hits)
        return [nothing if column is None else column for column in found]


def _ways(parts: list[str], before: str, arrays: frozenset[str]) -> _Way:
    """Spell out a path: the literal dotted key comes first, where a document has both."""
    ways = []
    for end in range(len(parts), 0, -1):
        key = ".".join(parts[:end])
        name = before + key
        ways.append((key, name in arrays, _ways(parts[end:], f"{name}.", arrays) if end < len(parts) else None))
    return tuple(ways)


def _follow(document: Mapping[str, Any], ways: _Way) -> Any:
    for key, nested, behind in ways:
        value = document.get(key, _MISSING)
        if value is _MISSING:
            continue
        if behind is None:
            return value
        kind = value.__class__
        if kind is dict:
            found = _follow(value, behind)
            if nested:  # a bare object under a nested mapping is an array of one
                return [None if found is _MISSING else found]
            if found is not _MISSING:
                return found
        elif kind is list:
            return _gather(value, behind)
    return _MISSING


def _gather(values: list[Any], ways: _Way) -> list[Any]:
    """Give one entry per element, None where it has nothing (E20)."""
    if len(ways) == 1 and ways[0][2] is None:  # nearly all leaves: no other spelling, nothing behind
        key = ways[0][0]
        return [
            each.get(key) if each.__class__ is dict else _gather(each, ways) if each.__class__ is list else None
            for each in values
        ]
    found = []
    for each in values:
        kind = each.__class__
        value = _follow(each, ways) if kind is dict else _gather(each, ways) if kind is list else None
        found.append(None if value is _MISSING else value)
    return found
