"""From stored documents to cells: dotted paths, nested arrays, digits as stored."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Cell, Json, RowKey
from dragoman_api.cells import CELL_CUT, cut

from .fields import Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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


def compact(text: bytes) -> bytes:
    """Write JSON on one line, digits and escapes untouched."""
    return msgspec.json.format(text, indent=-1)


def number(text: str) -> float | Decimal:
    """Read a number that is no integer; Decimal where a float would not give the text back."""
    value = float(text)
    return value if repr(value) == text else Decimal(text)


_encoder = msgspec.json.Encoder()
_decode = msgspec.json.Decoder(float_hook=Raw).decode  # ten times as fast as a hook written in Python


def parse(text: bytes | str) -> Any:
    """Read JSON whose floats stay Raw."""
    return _decode(text)


def whole(value: Any) -> Cell:
    """Make the uncut cell of a value."""
    if isinstance(value, (dict, list)):
        return Json(_encoder.encode(value).decode())
    return number(bytes(value).decode()) if isinstance(value, Raw) else value


def show(rows: list[list[Any]]) -> list[list[Cell]]:
    """Turn values into cells in place; arrays and objects become JSON, cut at the limit (E21, E22)."""
    structures: list[tuple[list[Any], int]] = []
    for row in rows:
        for at, value in enumerate(row):
            kind = value.__class__
            if kind is list or kind is dict:
                structures.append((row, at))
            elif kind is Raw:
                row[at] = number(bytes(value).decode())
    # One call for all structures of a page; JSON text on one line holds no line break.
    texts = _encoder.encode_lines([row[at] for row, at in structures]).decode().split("\n")
    for (row, at), text in zip(structures, texts, strict=False):
        row[at] = Json(text) if len(text) <= CELL_CUT else cut(text)
    return rows


_MISSING: Any = object()
_Way = tuple[tuple[str, bool, Any], ...]  # for each spelling of the next keys: key, nested, the ways behind it


class Reader:
    """Reads the cells of chosen columns out of hits."""

    def __init__(self, columns: Sequence[Field], nested: Iterable[str] = ()) -> None:
        """Find the ways to the columns once for all rows.

        Args:
            columns: In the order of the cells.
            nested: Names of all nested arrays of the object.
        """
        arrays = frozenset(nested)
        self._width = len(columns)
        self._plain: list[tuple[int, str]] = []
        self._dotted: list[tuple[int, _Way]] = []
        self._special: list[tuple[int, Family]] = []
        self._runtime: list[tuple[int, str]] = []
        for at, each in enumerate(columns):
            if each.family in (Family.ID, Family.INDEX, Family.SCORE):
                self._special.append((at, each.family))
            elif each.runtime:
                self._runtime.append((at, each.field))
            elif "." in each.field:
                self._dotted.append((at, _ways(each.field.split("."), "", arrays)))
            else:
                self._plain.append((at, each.field))
        self.needs_source = bool(self._plain or self._dotted)
        self.computed = [name for _, name in self._runtime]

    def cells(self, hits: Iterable[Read]) -> list[list[Cell]]:
        """Give one cell per row and column; None where a document has nothing."""
        return show([self.values(hit) for hit in hits])

    def values(self, hit: Read) -> list[Any]:
        """Give one value per column, uncut."""
        found: list[Any] = [None] * self._width
        for at, family in self._special:
            found[at] = hit.id if family is Family.ID else hit.index if family is Family.INDEX else hit.score
        if (source := hit.source) is not None:
            for at, key in self._plain:
                found[at] = source.get(key)
            for at, way in self._dotted:
                value = _follow(source, way)
                if value is not _MISSING:
                    found[at] = value
        for at, name in self._runtime:
            values = hit.fields.get(name, [])  # the API always answers arrays
            found[at] = (values[0] if len(values) == 1 else values) if values else None
        return found


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
