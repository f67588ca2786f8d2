"""From stored documents to cells: dotted paths, nested arrays, digits as stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import Cell, Json, RowKey
from dragoman_api.cells import cut

from .fields import Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Found = dict[int, bytes]
"""JSON text by number of the column."""


class Hit(msgspec.Struct, frozen=True):
    """One row of a search answer; the document and its sort values stay bytes."""

    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")
    score: float | None = msgspec.field(name="_score", default=None)
    seq_no: int | None = msgspec.field(name="_seq_no", default=None)
    primary_term: int | None = msgspec.field(name="_primary_term", default=None)
    routing: str | None = msgspec.field(name="_routing", default=None)
    ignored: tuple[str, ...] = msgspec.field(name="_ignored", default=())
    source: Raw = msgspec.field(name="_source", default=Raw())  # empty where the index keeps none
    fields: dict[str, Raw] = {}
    sort: tuple[Raw, ...] = ()

    @property
    def key(self) -> RowKey:
        """Give the row's address, with what protects a change of it."""
        guard: dict[str, int | str] = {}
        if self.seq_no is not None and self.primary_term is not None:
            guard = {"seq_no": self.seq_no, "primary_term": self.primary_term}
        return RowKey(self.index, self.id, self.routing, guard)


def number(text: str) -> float | Decimal:
    """Read a number that is no integer; Decimal where a float would not give the text back."""
    value = float(text)
    return value if repr(value) == text else Decimal(text)


_scalar = msgspec.json.Decoder(float_hook=number)
_object = msgspec.json.Decoder(dict[str, Raw])
_array = msgspec.json.Decoder(list[Raw])


def compact(text: bytes) -> bytes:
    """Write JSON on one line, digits and escapes untouched."""
    return msgspec.json.format(text, indent=-1) if any(blank in text for blank in b" \n\t\r") else text


def full_cell(text: bytes) -> Cell:
    """Make the uncut cell of a JSON text."""
    return Json(compact(text).decode()) if text[:1] in (b"[", b"{") else _scalar.decode(text)


def cell(text: bytes) -> Cell:
    """Make a cell of a JSON text; arrays and objects are cut at the seed's limit (E21, E22)."""
    return cut(compact(text).decode()) if text[:1] in (b"[", b"{") else _scalar.decode(text)


@dataclass(slots=True)
class _Node:
    """One key of the documents' tree and the columns that hang on it."""

    children: dict[str, _Node] = field(default_factory=dict)
    columns: list[int] = field(default_factory=list)  # an alias shows the column of its target once more
    below: list[int] = field(default_factory=list)
    nested: bool = False


class Reader:
    """Reads the cells of chosen columns out of hits."""

    def __init__(self, columns: Sequence[Field], nested: Iterable[str] = ()) -> None:
        """Lay out the columns as a tree, so that each document is walked once.

        Args:
            columns: In the order of the cells.
            nested: Names of all nested arrays of the object.
        """
        self._width = len(columns)
        self._root = _Node()
        self._special: list[tuple[int, Family]] = []
        self._runtime: list[tuple[int, str]] = []
        for at, each in enumerate(columns):
            if each.family in (Family.ID, Family.INDEX, Family.SCORE):
                self._special.append((at, each.family))
            elif each.runtime:
                self._runtime.append((at, each.field))
            else:
                self._plant(each.field.split("."), at)
        for name in nested:
            if (node := _follow(self._root, name.split("."))) is not None:
                node.nested = True
        self.needs_source = bool(self._root.children)
        self.computed = [name for _, name in self._runtime]

    def _plant(self, path: list[str], at: int) -> None:
        node = self._root
        for key in path:
            node = node.children.setdefault(key, _Node())
            node.below.append(at)
        node.below.pop()
        node.columns.append(at)

    def cells(self, hit: Hit) -> list[Cell]:
        """Give one cell per column; None where the document has nothing."""
        cells: list[Cell] = [None] * self._width
        for at, family in self._special:
            cells[at] = hit.id if family is Family.ID else hit.index if family is Family.INDEX else hit.score
        for at, text in self.texts(hit).items():
            cells[at] = cell(text)
        return cells

    def texts(self, hit: Hit) -> Found:
        """Give the whole JSON text of each column the document has something for."""
        found: Found = {}
        if self.needs_source and bytes(hit.source):
            _read_object(_object.decode(hit.source), self._root, found)
        for at, name in self._runtime:
            if name in hit.fields:  # the API always answers arrays
                values = _array.decode(hit.fields[name])
                found[at] = bytes(values[0] if len(values) == 1 else hit.fields[name])
        return found


def _follow(node: _Node, path: Iterable[str]) -> _Node | None:
    here: _Node | None = node
    for key in path:
        here = here.children.get(key) if here is not None else None
    return here


def _read_object(document: Mapping[str, Raw], node: _Node, found: Found) -> None:
    literal = []
    for key, raw in document.items():
        child = node.children.get(key)
        if child is not None:
            _read_value(bytes(raw), child, found)
        elif "." in key:
            literal.append((key, raw))
    # {"a.b":1} and {"a":{"b":1}} are both legal; where a document has both, the literal key is shown.
    for key, raw in literal:
        if (child := _follow(node, key.split("."))) is not None:
            _read_value(bytes(raw), child, found)


def _read_value(text: bytes, node: _Node, found: Found) -> None:
    for at in node.columns:
        found[at] = text
    if not node.below:
        return
    if text[:1] == b"{":
        inner: Found = {}
        _read_object(_object.decode(text), node, inner)
        # A bare object under a nested mapping is an array of one.
        found.update({at: b"[%b]" % inner.get(at, b"null") for at in node.below} if node.nested else inner)
    elif text[:1] == b"[":
        rows: list[Found] = []
        for element in _array.decode(text):
            row: Found = {}
            if bytes(element)[:1] in (b"{", b"["):
                _read_element(bytes(element), node, row)
            rows.append(row)
        for at in node.below:
            found[at] = b"[%b]" % b",".join(row.get(at, b"null") for row in rows)


def _read_element(text: bytes, node: _Node, found: Found) -> None:
    if text[:1] == b"{":
        _read_object(_object.decode(text), node, found)
    else:  # arrays of arrays are legal; the server flattens them
        _read_value(text, node, found)
