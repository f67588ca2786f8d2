"""Export a collection, or its rows that match a filter, in ranges of ids that are read in parallel."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman_api import ConnectionFailedError, DragomanError, ExportPart, ExportRequest, Note, QueryError
from dragoman_api.errors import WindowExceededError
from dragoman_api.exports import NO_SNAPSHOT, ExportForm, ExportSplit
from dragoman_api.json_text import encode
from dragoman_api.kit import cursors
from dragoman_api.kit.cursors import Walk
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.kit.line_parts import rows_that_fit, split_lines
from dragoman_api.kit.retries import Patience
from dragoman_weaviate import graphql, protocol, stored_objects
from dragoman_weaviate.columns.field_types import Family
from dragoman_weaviate.columns.grid_columns import View
from dragoman_weaviate.graphql import Where
from dragoman_weaviate.grid.filters import where_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman_api.exports import SplitRequest

VECTORS = "vectors-left-out"
"""Code of the note that an export does not hold the vectors."""

_RANGES = 4
_LEAST, _FIRST, _MOST = 20, 1_000, 2_500  # rows of one request
_BYTES = 4 * 2**20  # of one part, about
_EMPTY, _NULL = Raw(b"{}"), Raw(b"null")
_ALL = 2**128  # ids
_MORE = 8  # times as many ids are asked for after none of them matched


class _Row(msgspec.Struct, rename="camel", gc=False):
    """One object as read and as written; stored values stay bytes."""

    collection: str = msgspec.field(name="class")
    id: str
    creation_time_unix: int | UnsetType = 0
    last_update_time_unix: int | UnsetType = 0
    properties: Raw = _EMPTY
    vector: Raw | UnsetType = UNSET
    vectors: Raw | UnsetType = UNSET
    tenant: str | UnsetType = UNSET  # lists do not repeat it


class _List(msgspec.Struct):
    objects: list[_Row] | None


_Position = list[tuple[str, str]]
"""Unfinished ranges: the id after which each continues, and its last id."""

_list = msgspec.json.Decoder(_List)
_encoder = msgspec.json.Encoder()


class IdRange(msgspec.Struct):
    """One range of ids.

    Attributes:
        position: The id after which the next page begins, empty for the start.
        bound: The last id of the range, empty for no bound.
        size: Rows of the next page.
        max_rows: The maximum number of rows of a page.
        passed_on_to: The id up to which all was passed on.
        ended: Whether its last row was passed on.
        patience: With the server, until its next page.
        gap: How many ids there are to one row that matches, as far as is known; 0 if it is not.
    """

    position: str
    bound: str
    size: int
    max_rows: int
    passed_on_to: str
    ended: bool = False
    patience: Patience = msgspec.field(default_factory=Patience)
    gap: int = 0

    def edge(self) -> str:
        """Return the id up to which the next page is asked for: the bound, or one before it if that is far.

        The server sorts all rows that match up to there, and returns the first `size` of them.
        """
        try:
            last = _number(self.position) + self.gap * self.size
            near = self.gap > 0 and last < (_number(self.bound) if self.bound else _ALL)
        except ValueError:
            return self.bound
        return str(UUID(int=last)) if near else self.bound

    def go_on(self, rows: int, last: str) -> None:
        """Go on after an id, up to which so many rows match."""
        try:
            passed = _number(last) - _number(self.position)
        except ValueError:
            passed, self.gap = 0, 0
        if self.gap:
            self.gap = max(1, passed // rows) if rows else self.gap * _MORE
        self.position = last

    def again(self, error: DragomanError) -> float:
        """Return the seconds until a page that failed is requested again, with fewer rows.

        The server gives its failures no types: any 5xx may pass, and reading a page twice harms nothing.

        Raises:
            DragomanError: The error itself: another attempt is pointless.
        """
        away = isinstance(error, ConnectionFailedError) or int(str(error.details.get("status", 0))) >= 500
        if (pause := self.patience.pause(error, away=away)) is None:
            raise error
        self.size = max(_LEAST, self.size // 2)
        return pause

    def turned_away(self) -> Piece:
        """Return a piece without rows: a busy server turned the request for it away."""
        return Piece(self, b"", 0, self.position, turned_away=True)


def _number(id_: str) -> int:
    """Return the place of an id among all. Raises ValueError if it is not written as the server writes ids."""
    uuid = UUID(id_) if id_ else UUID(int=0)
    if id_ and str(uuid) != id_:
        raise ValueError(id_)
    return uuid.int


class Piece(msgspec.Struct):
    """Some lines of one range, their number, the id of the last, and whether the range ends with it.

    Or none, because a busy server turned the request away.
    """

    span: IdRange
    data: bytes
    rows: int
    last: str
    ends: bool = False
    turned_away: bool = False


class ExportReader(msgspec.Struct):
    """One export in progress.

    Attributes:
        request: The request.
        view: The collection.
        tenant: The tenant.
        where: The filter.
        total: The number of rows of the whole export, if they could be counted.
        notes: What its next part says.
    """

    request: ExportRequest
    view: View
    tenant: str | None = None
    where: Where | None = None
    ranges: list[IdRange] = msgspec.field(default_factory=list)
    total: int | None = None
    notes: list[Note] = []

    def __post_init__(self) -> None:
        """Divide the ids into ranges, or go on with those of a checkpoint.

        Raises:
            QueryError: The checkpoint is invalid, a tenant is missing, or the server is too old for a cursor.
        """
        self.tenant = self.view.tenant(self.request.tenant)
        self.where = where_of(self.request.object, self.request.filter, operation="an export")
        if not self.view.features.cursor:
            raise QueryError("servers below 1.18 have no cursor, so an export would stop at the window")
        size = _FIRST if self.where is None else _MOST  # a search evaluates its filter for every page
        ranges = ranges_of_ids(_RANGES)
        if self.request.share is not None:
            share = read_share(self.request)
            ranges, self.total = [(share.after, share.last)], share.total
        elif self.request.checkpoint is not None:
            query, hint = cursors.query_of(self.request), "export again, without the checkpoint"
            text, code = self.request.checkpoint, "export-not-resumable"
            ranges = cursors.unseal(text, query, _Position, what="checkpoint", code=code, hint=hint)
        self.ranges = [IdRange(position, bound, size, _MOST, position) for position, bound in ranges]

    @property
    def vectors(self) -> bool:
        """Whether to export vectors: they are most of the bytes, so they are exported only if named."""
        return "vector" in (self.request.columns or ())

    def count(self) -> Exchange[None]:
        """Count the rows; without GraphQL the number stays unknown, and that of a share is not needed."""
        if self.request.share is None:
            try:
                self.total = yield from graphql.count_of(self.view, self.where, self.tenant)
            except DragomanError:
                self.total = None
        if self.where is not None and self.total:
            for span in self.ranges:
                span.gap = _ALL // self.total

    def look_for_vectors(self) -> Exchange[None]:
        """Note that the export leaves out vectors, if its first object shows that there are some."""
        documents = self.request.form is ExportForm.DOCUMENTS  # properties alone
        exports_vectors = self.vectors and not documents
        if exports_vectors or self.request.share is not None or self.request.checkpoint is not None:
            return
        first = get("/v1/objects", **{"class": self.view.target}, limit=1, include="vector", tenant=self.tenant)
        with suppress(DragomanError):  # the export itself says what is wrong
            rows = protocol.decode((yield from ask(first)), _list).objects or []
            if any(_has_vector(row) for row in rows):
                reason = "the objects have vectors, which this export leaves out"
                hint = "export rows with the column vector" if documents else "name the column vector"
                self.notes = [Note(code=VECTORS, column="vector", reason=reason, hint=hint)]

    def pieces(self, span: IdRange) -> Exchange[list[Piece]]:
        """Fetch the next page of a range; it is empty at the end.

        Raises:
            QueryError: The server repeats itself or answers nothing: the export would be incomplete.
        """
        rows, ended, edge = yield from self._next(span)
        while ended and not rows and edge != span.bound:
            span.go_on(0, edge)
            rows, ended, edge = yield from self._next(span)
        pieces = list(self._cut(span, rows))
        if pieces:
            last = pieces[-1]
            if ended and edge != span.bound:
                last.last = edge
            span.go_on(len(rows), last.last)
            span.size = rows_that_fit(_BYTES, rows=last.rows, size=len(last.data), most=span.max_rows, least=_LEAST)
        pieces = pieces or [Piece(span, b"", 0, span.position)]
        pieces[-1].ends = ended and edge == span.bound
        return pieces

    def _next(self, span: IdRange) -> Exchange[tuple[Sequence[_Row], bool, str]]:
        """Return the next rows of a range, whether they are all up to an id, and that id."""
        edge = span.edge()
        rows = yield from self._smaller(span, edge)
        span.patience.renew()
        target = self.view.target
        keys = [row.id for row in rows if row.collection == target]
        if len(keys) < len(rows):
            strange = next(row.collection for row in rows if row.collection != target)
            raise QueryError(f"the export is incomplete: the server returned a row of '{strange}'")
        walk = Walk(key=attrgetter("id"), position=span.position, until=edge or None, what="export")
        return walk.accept(rows, span.size, keys), walk.ended, edge

    def part(self, piece: Piece) -> ExportPart | None:
        """Build a part of the export, whose checkpoint says where each range continues; None for nothing new.

        Only the reader of a share tells others that the server is busy.
        """
        if self.request.share is not None:  # its own number of rows is unknown
            return ExportPart(data=piece.data, rows=piece.rows, turned_away=int(piece.turned_away))
        if piece.turned_away:
            return None
        piece.span.passed_on_to, piece.span.ended = piece.last, piece.ends
        position: _Position = [(span.passed_on_to, span.bound) for span in self.ranges if not span.ended]
        checkpoint = cursors.seal(cursors.query_of(self.request), position)
        notes, self.notes = self.notes, []
        return ExportPart(data=piece.data, rows=piece.rows, total=self.total, checkpoint=checkpoint, notes=notes)

    def _smaller(self, span: IdRange, edge: str) -> Exchange[list[_Row]]:
        """Fetch a page, and a smaller one if the answer is too long."""
        while True:
            try:
                return (yield from (self._list_page(span) if self.where is None else self._search_page(span, edge)))
            except WindowExceededError as error:  # the server names a lower limit than usual
                if not 0 < (window := int(str(error.details["window"]))) < span.size:
                    raise
                span.max_rows = span.size = window
            except DragomanError as error:
                if "limit" not in error.details or span.size <= _LEAST:
                    raise
                span.size = max(_LEAST, span.size // 4)

    def _list_page(self, span: IdRange) -> Exchange[list[_Row]]:
        request = get(
            "/v1/objects",
            **{"class": self.view.target},
            limit=span.size,
            after=span.position or None,
            include="vector" if self.vectors else None,
            tenant=self.tenant,
        )
        return protocol.decode((yield from ask(request)), _list).objects or []

    def _search_page(self, span: IdRange, edge: str) -> Exchange[list[_Row]]:
        search = partial(self._search, span, edge)
        return (yield from stored_objects.following(self.view, self.tenant, search))

    def _search(self, span: IdRange, edge: str) -> Exchange[list[_Row]]:
        edges = [("GreaterThan", span.position), ("LessThanEqual", edge)]
        clauses = [{"path": ["id"], "operator": op, "valueText": id_} for op, id_ in edges if id_]
        where: Where = {"operator": "And", "operands": [self.where, *clauses]} if clauses else self.where or {}
        fields = [field for field in self.view.fields.values() if self.vectors or field.family is not Family.VECTOR]
        by_id = [(["_id"], False)]
        search = graphql.search(self.view, fields=fields, where=where, sort=by_id, limit=span.size, tenant=self.tenant)
        items, suspects = stored_objects.from_graphql(graphql.objects((yield from ask(search)), self.view), self.view)
        yield from stored_objects.repaired(items, suspects, self.view, self.tenant)
        yield from stored_objects.with_all_references(items, fields, self.view, self.tenant)
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

    def _cut(self, span: IdRange, page_rows: Sequence[_Row]) -> Iterator[Piece]:
        """Yield rows as lines, in pieces of bounded size."""
        data, rows = self._lines(page_rows), 0
        if page_rows and len(data) <= 2 * _BYTES:
            yield Piece(span, data, len(page_rows), page_rows[-1].id)
            return
        for part in split_lines(data, most=2 * _BYTES):  # rows may be longer than the previous ones
            rows += part.rows
            yield Piece(span, part.data, part.rows, page_rows[rows - 1].id)

    def _lines(self, rows: Sequence[_Row]) -> bytes:
        lines = [row.properties for row in rows]
        if _NULL in lines:
            for row in rows:
                row.properties = _EMPTY if row.properties == _NULL else row.properties
            lines = [row.properties for row in rows]
        if self.request.form is ExportForm.DOCUMENTS:
            return b"\n".join([*lines, b""])
        for row in rows:
            if row.vector is not UNSET:  # many rows have none
                row.vector = _filled(row.vector)
            if row.vectors is not UNSET:
                row.vectors = _filled(row.vectors)
            if self.tenant:
                row.tenant = self.tenant
        if self.request.form is ExportForm.BULK:
            for row in rows:
                row.creation_time_unix = row.last_update_time_unix = UNSET
        return _encoder.encode_lines(rows)


def _has_vector(row: _Row) -> bool:
    return any(vector is not UNSET and stored_objects.filled(vector) for vector in (row.vector, row.vectors))


def _filled(vector: Raw) -> Raw | UnsetType:
    return vector if stored_objects.filled(vector) else UNSET


_IDS = 2**128
_UNPINNED = (
    "this server has no snapshots: the parts are one state of the data only if nothing is written until the end; a row "
    "that is written meanwhile is in its part as it is when it is read, or not at all"
)


class Share(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One range of ids.

    Attributes:
        after: The id before its first one; empty for the start.
        last: Its last id; empty for the end.
        total: The number of rows of all shares, if it is known.
    """

    after: str
    last: str
    total: int | None


def ranges_of_ids(number: int) -> list[tuple[str, str]]:
    """Divide all ids into ranges of equal length: the id before the first one, empty for the start, and the last."""
    bounds = [str(UUID(int=_IDS * at // number - 1)) for at in range(1, number)]
    return list(zip(["", *bounds], [*bounds, ""], strict=True))


def split_rows(request: SplitRequest, total: int | None, notes: Sequence[Note]) -> ExportSplit:
    """Divide an export into ranges of ids, not into more than it has rows; its shares repeat none of its notes."""
    number = request.shares if total is None else max(1, min(request.shares, total))
    query = cursors.query_of(request.export)
    shares = [cursors.seal(query, Share(after=after, last=last, total=total)) for after, last in ranges_of_ids(number)]
    return ExportSplit(shares=shares, total=total, notes=[Note(code=NO_SNAPSHOT, reason=_UNPINNED), *notes])


def read_share(request: ExportRequest) -> Share:
    """Read the text of a share.

    Raises:
        QueryError: It is not one, or belongs to another export (code ``export-not-resumable``).
    """
    query, hint = cursors.query_of(request), "split the export again"
    text, code = request.share or "", "export-not-resumable"
    return cursors.unseal(text, query, Share, what="share", code=code, hint=hint)
