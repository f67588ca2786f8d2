"""Exports: the whole collection in ranges of ids that are read side by side, or what a filter leaves of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman_api import DragomanError, ExportPart, ExportRequest, QueryError
from dragoman_api.errors import WindowExceededError
from dragoman_api.exchanges import encode
from dragoman_api.exports import ExportForm

from . import faults, graphql, rows
from .exchange import Exchange, ask, get
from .fields import Family
from .filters import where_of
from .graphql import Where
from .schema import View

if TYPE_CHECKING:
    from collections.abc import Iterator

_LANES = 4
_LEAST, _FIRST, _MOST = 20, 1_000, 2_500  # rows of one request
_BYTES = 4 * 2**20  # of one part, about
_EMPTY, _NULL = Raw(b"{}"), Raw(b"null")


class _Row(msgspec.Struct, rename="camel", gc=False):
    """One object as it is read and as it is written; what it stores stays bytes."""

    collection: str = msgspec.field(name="class")
    id: str
    creation_time_unix: int | UnsetType = 0
    last_update_time_unix: int | UnsetType = 0
    properties: Raw = _EMPTY
    vector: Raw | UnsetType = UNSET
    vectors: Raw | UnsetType = UNSET
    tenant: str | UnsetType = UNSET  # a list does not repeat it


class _List(msgspec.Struct):
    objects: list[_Row] | None = None


class _Checkpoint(msgspec.Struct):
    """Ranges that are not at their end: behind which id each goes on, and its last."""

    lanes: list[tuple[str, str]]


_list = msgspec.json.Decoder(_List)
_encoder = msgspec.json.Encoder()


@dataclass(slots=True)
class Lane:
    """One range of ids.

    Attributes:
        position: The id behind which the next page begins, empty for the start.
        bound: The last id that belongs to it, empty for none.
        size: Rows of the next page.
        most: Rows of a page at most.
        told: The id of the last row that was handed on.
        ended: Its last row was handed on.
    """

    position: str
    bound: str
    size: int
    most: int
    told: str
    ended: bool = False


@dataclass(slots=True)
class Piece:
    """Some lines of one lane, how many they are, the id of the last, and whether the lane ends with it."""

    lane: Lane
    data: bytes
    rows: int
    last: str
    ends: bool = False


@dataclass(slots=True)
class Export:
    """One export on its way.

    Attributes:
        request: What is wanted.
        view: The collection.
        tenant: Whose rows.
        where: What the filter leaves.
        total: Rows of all, where they could be counted.
    """

    request: ExportRequest
    view: View
    tenant: str | None = None
    where: Where | None = None
    lanes: list[Lane] = field(default_factory=list)
    total: int | None = None

    def __post_init__(self) -> None:
        """Cut the ids into ranges, or go on with those of a checkpoint.

        Raises:
            QueryError: The checkpoint is none, a tenant is missing, or the server is too old for a cursor.
        """
        self.tenant = self.view.tenant(self.request.tenant)
        self.where = where_of(self.request.object, self.request.filter)
        if not self.view.features.cursor:
            raise QueryError("servers below 1.18 have no cursor, so an export would stop at the window")
        size = _FIRST if self.where is None else _MOST  # a search evaluates its filter for every page
        bounds = [f"{at * 256 // _LANES - 1:02x}ffffff-ffff-ffff-ffff-ffffffffffff" for at in range(1, _LANES)]
        ranges = list(zip(["", *bounds], [*bounds, ""], strict=True))
        if self.request.checkpoint is not None:
            try:
                ranges = msgspec.json.decode(self.request.checkpoint, type=_Checkpoint).lanes
            except msgspec.DecodeError as error:
                raise QueryError(f"the checkpoint is none of this driver: {error}") from error
        self.lanes = [Lane(position, bound, size, _MOST, position) for position, bound in ranges]

    @property
    def vectors(self) -> bool:
        """Tell whether vectors are wanted: they would be most of the bytes, so only those who name them get them."""
        return "vector" in (self.request.columns or ())

    def count(self) -> Exchange[None]:
        """Learn how many rows there are; without GraphQL nobody knows."""
        try:
            self.total = yield from graphql.count_of(self.view, self.where, self.tenant)
        except DragomanError:
            self.total = None

    def pieces(self, lane: Lane) -> Exchange[list[Piece]]:
        """Fetch the next page of a lane; nothing at its end.

        Raises:
            QueryError: The server repeats itself or answers nothing: the export would not be whole.
        """
        found = yield from self._smaller(lane)
        ends = len(found) < lane.size
        if lane.bound and found and found[-1].id > lane.bound:
            found, ends = [row for row in found if row.id <= lane.bound], True
        if any(row.id <= lane.position for row in found[:1]) or not all(row.id for row in found):
            raise QueryError(
                f"the export is not whole: the server repeats itself behind {lane.position or 'the start'}"
            )
        pieces = list(self._cut(lane, found))
        if pieces:
            line = len(pieces[-1].data) // pieces[-1].rows
            lane.position, lane.size = found[-1].id, min(lane.most, max(_LEAST, _BYTES // max(1, line)))
        pieces = pieces or [Piece(lane, b"", 0, lane.position)]
        pieces[-1].ends = ends
        return pieces

    def part(self, piece: Piece) -> ExportPart:
        """Make a part of the export: the checkpoint says where every lane goes on behind this part."""
        piece.lane.told, piece.lane.ended = piece.last, piece.ends
        checkpoint = _Checkpoint([(lane.told, lane.bound) for lane in self.lanes if not lane.ended])
        return ExportPart(data=piece.data, rows=piece.rows, total=self.total, checkpoint=encode(checkpoint))

    def _smaller(self, lane: Lane) -> Exchange[list[_Row]]:
        """Ask for less where an answer was too long, or too long in coming."""
        while True:
            try:
                return (yield from (self._listed(lane) if self.where is None else self._found(lane)))
            except WindowExceededError as error:  # the server's limit is lower than usual, and it says how low
                lane.most = lane.size = int(str(error.details["window"]))
            except DragomanError as error:
                if "status" in error.details or error.details.get("sent") is False or lane.size <= _LEAST:
                    raise
                lane.size = max(_LEAST, lane.size // 4)

    def _listed(self, lane: Lane) -> Exchange[list[_Row]]:
        request = get(
            "/v1/objects",
            **{"class": self.view.target},
            limit=lane.size,
            after=lane.position or None,
            include="vector" if self.vectors else None,
            tenant=self.tenant,
        )
        return faults.decode((yield from ask(request)), _list).objects or []

    def _found(self, lane: Lane) -> Exchange[list[_Row]]:
        edges = [("GreaterThan", lane.position), ("LessThanEqual", lane.bound)]
        clauses = [{"path": ["id"], "operator": op, "valueText": edge} for op, edge in edges if edge]
        where: Where = {"operator": "And", "operands": [self.where, *clauses]} if clauses else self.where or {}
        fields = [each for each in self.view.fields.values() if self.vectors or each.family is not Family.VECTOR]
        asked = graphql.search(self.view, fields=fields, where=where, limit=lane.size, tenant=self.tenant)
        items, doubts = rows.from_graphql(graphql.objects((yield from ask(asked)), self.view), self.view)
        yield from rows.repaired(items, doubts, self.view, self.tenant)
        return [
            _Row(
                collection=item.collection,
                id=item.id,
                creation_time_unix=item.creation_time_unix,
                last_update_time_unix=item.last_update_time_unix,
                properties=Raw(encode(item.properties or {}).encode()),
                vector=item.vector,
                vectors=item.vectors,
            )
            for item in items
        ]

    def _cut(self, lane: Lane, found: list[_Row]) -> Iterator[Piece]:
        """Write rows as lines, in pieces that travel well."""
        if not found:
            return
        data = self._lines(found)
        if len(data) > 2 * _BYTES and len(found) > 1:  # rows of another length than those before
            yield from self._cut(lane, found[: len(found) // 2])
            yield from self._cut(lane, found[len(found) // 2 :])
        else:
            yield Piece(lane, data, len(found), found[-1].id)

    def _lines(self, found: list[_Row]) -> bytes:
        for row in found:
            if row.properties == _NULL:
                row.properties = _EMPTY
        if self.request.form is ExportForm.DOCUMENTS:
            return b"\n".join([*(row.properties for row in found), b""])
        for row in found:
            row.vector, row.vectors = _filled(row.vector), _filled(row.vectors)
            if self.tenant:
                row.tenant = self.tenant
            if self.request.form is ExportForm.BULK:
                row.creation_time_unix = row.last_update_time_unix = UNSET
        return _encoder.encode_lines(found)


def _filled(vector: Raw | UnsetType) -> Raw | UnsetType:
    return vector if vector is not UNSET and rows.filled(vector) else UNSET
