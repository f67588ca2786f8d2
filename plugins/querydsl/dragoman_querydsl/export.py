"""Export a whole object as lines of JSON: slices, parts and checkpoints (E32)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api import ExportPart, HttpRequest, Note
from dragoman_api.errors import ConnectionFailedError, ObjectNotFoundError, QueryError, WindowExceededError
from dragoman_api.exports import ExportForm
from dragoman_api.json_text import encode
from dragoman_api.kit import cursors
from dragoman_api.kit.exchanges import Exchange, ask, post
from dragoman_api.kit.line_parts import rows_that_fit
from dragoman_api.kit.retries import Patience
from dragoman_api.replies import PROXY_HINT
from dragoman_querydsl import protocol
from dragoman_querydsl.protocol import target
from dragoman_querydsl.search import (
    VERBATIM,
    Hit,
    Reading,
    SearchAnswer,
    mended,
    open_context,
    search,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api import DragomanError, ExportRequest
    from dragoman_querydsl.protocol import PointInTime

_SLICES, _MOST_SLICES = 4, 16  # the least if there are rows enough, and the most
_SCROLLS = 8  # a scroll holds a context per slice and shard; the server allows 500
_WORTH = 5_000  # rows of a slice
LIMIT = 24 * 2**20
"""Maximum bytes of one answer; a longer one is requested again in smaller pages."""

Bookmark = tuple[int | str, ...]
"""The sort values of a row, after which its slice continues; valid in one point in time only."""

# The tiebreakers alone make the server scan the whole result for every page; `_doc` alone loses rows.
_SORT = {"_doc": {"order": "asc"}}
_FIRST, _MOST = 1_000, 10_000  # rows of one request
NOTHING = Raw()
NO_SHARE: Mapping[str, Any] = {}
"""What a search of all slices has in place of `Slice.share`."""

_mark = Decoder(Bookmark)


class ExportDocument(msgspec.Struct, frozen=True, gc=False):
    """The parts of a hit that an export reads; all of them stay bytes."""

    source: Raw = msgspec.field(name="_source", default=NOTHING)
    sort: Raw = NOTHING


class ExportRow(ExportDocument, frozen=True, gc=False):
    """A document with its address."""

    index: Raw = msgspec.field(name="_index", default=NOTHING)
    id: Raw = msgspec.field(name="_id", default=NOTHING)
    routing: Raw = msgspec.field(name="_routing", default=NOTHING)


DOCUMENTS: Decoder[SearchAnswer[Any]] = Decoder(SearchAnswer[ExportDocument])
ROWS: Decoder[SearchAnswer[Any]] = Decoder(SearchAnswer[ExportRow])


class ExportQuery(msgspec.Struct):
    """The query that all slices of an export share.

    Attributes:
        name: The object.
        query: The query.
        decoder: `DOCUMENTS` or `ROWS`.
        hold: How long the server keeps the context between two requests.
        order: The keys by which a point in time is read.
        pit: The point in time, empty if scrolls are used.
        room: The approximate bytes of one page.
        window: Rows one request may ask for.
        size: Rows the next request asks for.
    """

    name: str
    query: Raw
    decoder: Decoder[SearchAnswer[Any]]
    hold: str
    order: list[dict[str, Any]]
    pit: str = ""
    room: int = 4 * 2**20
    window: int = _MOST
    size: int = _FIRST

    def fit(self, rows: int, size: int) -> None:
        """Adapt the page size to the room; it grows slowly after a page that was too large."""
        self.size = rows_that_fit(self.room, rows=rows, size=size, most=min(self.window, self.size * 4))

    def check(self, answer: SearchAnswer[Any]) -> None:
        """Check an answer, and take the newest id of the search context.

        Raises:
            QueryError: The answer is partial, so the export would be incomplete.
        """
        if answer.partial():
            raise QueryError(f"the export is incomplete: {answer.partial()[0].reason}")
        self.pit = answer.pit_id or self.pit

    def lost(self, error: DragomanError) -> QueryError:
        """Build the error for a search context that the server no longer holds."""
        return QueryError(
            f"the server no longer holds the state of '{self.name}' for this export (kept for {self.hold})",
            hint="export again; if the output takes longer than that, raise the keep-alive",
            code="context-lost",
            details=error.details,
        )


class SlicePage(msgspec.Struct, frozen=True):
    """Some rows, in the order of their slice.

    Attributes:
        slice: The number of the slice.
        hits: The rows.
        mark: Where the slice continues; True at the end, False if unknown.
        odd: The answer's bytes without comments, if documents in it may be invalid JSON, or not on one line.
        read: How the documents had to be read.
        turned_away: A busy server turned the request away, which is sent again.
    """

    slice: int
    hits: Sequence[ExportDocument]
    mark: Bookmark | bool
    odd: bytes = b""
    read: Reading = VERBATIM
    turned_away: bool = False


class Slice(msgspec.Struct):
    """A part of the result that is read on its own, from a point in time or a scroll.

    Attributes:
        source: The query it is a slice of.
        number: Its number, from 0.
        of: The number of slices.
        mark: The bookmark of the last row read; False at the beginning, True at the end.
        scroll: The scroll's id; None with points in time.
        rows: Rows of the slice as the scroll counts them.
        turned_away: A busy server turned the last request away.
    """

    source: ExportQuery
    number: int
    of: int
    mark: Bookmark | bool = False
    scroll: str | None = None
    rows: int = 0
    turned_away: bool = False
    _patience: Patience = msgspec.field(default_factory=Patience)

    def page(self) -> Exchange[SlicePage | float]:
        """Fetch the next page, or return the seconds to wait before a retry.

        Raises:
            DragomanError: The page cannot be fetched; code `context-lost` for a lost context.
        """
        size, self.turned_away = self.source.size, False
        try:
            answer = yield from self._search(size) if self.scroll is None else self._scroll(size)
        except (ConnectionFailedError, QueryError) as error:
            return self._again(error, size)
        self.source.check(answer)
        self._patience.renew()
        hits = answer.hits.hits
        if answer.read.respelled and len(hits) > 1:  # find the one row that cannot be read, and spare its neighbours
            self.source.size = max(1, size // 4)
            return 0
        if self.scroll is not None:
            self.rows, self.scroll = answer.count or 0, answer.scroll_id or self.scroll
            self.mark = not hits
        else:  # a complete answer with fewer rows than requested is the last one
            self.mark = True if len(hits) < size else self._behind(hits[-1])
        return SlicePage(self.number, hits, self.mark, answer.odd, answer.read)

    def _behind(self, last: ExportDocument) -> Bookmark:
        """Return the bookmark of a row, which must come after the previous one."""
        mark: Bookmark = protocol.parsed(bytes(last.sort), _mark)
        if len(mark) != len(self.source.order) or not all(isinstance(place, int) for place in mark[:2]):
            raise QueryError(f"the answer is not the expected JSON: a row has the place {mark}", hint=PROXY_HINT)
        if isinstance(self.mark, tuple) and mark <= self.mark:
            raise QueryError(f"the export is incomplete: the server repeated rows after {self.mark}")
        return mark

    def _search(self, size: int) -> Exchange[SearchAnswer[Any]]:
        source = self.source
        body: dict[str, Any] = {
            "size": size,
            "query": source.query,
            "pit": {"id": source.pit, "keep_alive": source.hold},
            "sort": source.order,
            "track_total_hits": False,
            **self.share(),
        }
        if self.mark:
            body["search_after"] = self.mark
        return (yield from search("/_search?allow_partial_search_results=false", body, source.decoder))

    def _scroll(self, size: int) -> Exchange[SearchAnswer[Any]]:
        source = self.source
        if self.scroll:
            body: dict[str, Any] = {"scroll": source.hold, "scroll_id": self.scroll}
            return (yield from search("/_search/scroll", body, source.decoder))
        body = {"size": size, "query": source.query, "sort": ["_doc"], "track_total_hits": True, **self.share()}
        where = f"/{target(source.name)}/_search?scroll={source.hold}&allow_partial_search_results=false"
        return (yield from search(where, body, source.decoder))

    def share(self) -> Mapping[str, Any]:
        """Return what limits a search to the slice."""
        return {"slice": {"id": self.number, "max": self.of}} if self.of > 1 else NO_SHARE

    def _again(self, error: DragomanError, size: int) -> float:
        """Decide by the error whether to retry: with fewer rows, later, or not at all."""
        source, details = self.source, error.details
        if details.get("type") == protocol.CONTEXT_LOST:
            raise source.lost(error) from error
        if self.scroll:  # the server may have moved on: a retry could skip a page
            raise error
        if isinstance(error, WindowExceededError) and 0 < (window := int(str(details["window"]))) < size:
            source.window = source.size = window
            return 0
        if "limit" in details and size > 1:
            source.size = max(1, min(source.size, size // 4))
            return 0
        away = isinstance(error, ConnectionFailedError)
        if (pause := self._patience.pause(error, away=away)) is None:
            if away or "retry_after" in details:
                error.hint = f"export again later, or resume within {source.hold}"
            raise error
        self.turned_away = "retry_after" in details
        source.size = max(1, min(source.size, size // 2))
        return pause


def slice_count(rows: int, shards: int, *, scrolls: bool) -> int:
    """Return the number of slices: a multiple of the shards, which makes slices of equal size and cost."""
    row_slices = -(-rows // _WORTH)
    if scrolls:
        return min(row_slices, shards, _SCROLLS)
    return min(row_slices, _MOST_SLICES, shards * -(-_SLICES // max(shards, 1)))


_ROOM, _PAGE = 16 * 2**20, 2 * 2**20  # bytes of all pages in flight, and of one; larger ones are not faster
_HOLD = 120  # minimum seconds that the server keeps a context: enough to send and write a page
_REFUSED, _ANEW = "export-not-resumable", "export again, without the checkpoint"
_NAMED = 20  # rows that a note names

_NAMES = msgspec.json.Decoder(SearchAnswer[Hit])
_encoder = msgspec.json.Encoder()
_BLANKS = bytes.maketrans(b"\r\n", b"  ")


class _Line(msgspec.Struct, omit_defaults=True, gc=False):
    index: Raw = msgspec.field(name="_index")
    id: Raw = msgspec.field(name="_id")
    source: Raw = msgspec.field(name="_source")
    routing: Raw = msgspec.field(name="_routing", default=NOTHING)


class _Address(msgspec.Struct, omit_defaults=True, gc=False):
    index: Raw = msgspec.field(name="_index")
    id: Raw = msgspec.field(name="_id")
    routing: Raw = NOTHING


class _Action(msgspec.Struct, gc=False):
    index: _Address


class _Position(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pit: str
    total: int
    rows: int
    marks: list[Bookmark | bool]


class ExportReader:
    """One export in progress.

    Attributes:
        slices: Its slices, read in parallel; known once it is open.
    """

    def __init__(self, request: ExportRequest, query: Raw, *, points: PointInTime | None) -> None:
        """Prepare.

        Args:
            request: What to export.
            query: Its filter.
            points: How points in time are opened and freed; None to scroll.
        """
        decoder = DOCUMENTS if request.form is ExportForm.DOCUMENTS else ROWS
        order = [_SORT, *(points.order if points else [])]
        self._source = ExportQuery(request.object, query, decoder, f"{max(request.keep_alive, _HOLD)}s", order)
        self._request, self._points = request, points
        self._marks: list[Bookmark | bool] = []
        self._rows = self._total = 0
        self.slices: list[Slice] = []

    @property
    def _scrolls(self) -> bool:
        return self._points is None

    @property
    def pit(self) -> str:
        """The id of the point in time; empty before it is open, and for scrolls."""
        return self._source.pit

    @property
    def total(self) -> int:
        """The number of rows that were counted at the start."""
        return self._total

    @property
    def finished(self) -> bool:
        """Whether all slices have been read to their ends."""
        return all(mark is True for mark in self._marks)

    def open(self) -> Exchange[None]:
        """Open a search context, count the rows and divide them into slices, or go on from a checkpoint.

        Raises:
            QueryError: The checkpoint cannot be resumed, code `export-not-resumable`; or a shard failed.
        """
        source = self._source
        if self._request.checkpoint is not None:
            yield from self._resume(self._request.checkpoint)
        else:
            if self._points is not None:
                source.pit = yield from open_context(self._points, source.name, keep_alive=source.hold)
            shards, self._total = yield from self._count()
            self._marks = [False] * slice_count(self._total, shards, scrolls=self._scrolls)
        source.room = min(_PAGE, _ROOM // max(len(self._marks), 1))
        scroll, of = "" if self._scrolls else None, len(self._marks)
        self.slices = [Slice(source, at, of, mark, scroll) for at, mark in enumerate(self._marks) if mark is not True]

    def part(self, page: SlicePage) -> ExportPart | None:
        """Turn a page into a part of the export; None for a page without rows.

        Raises:
            QueryError: The number of rows read is not the number counted.
        """
        hits, self._marks[page.slice] = page.hits, page.mark
        self._rows += len(hits)
        total = sum(export_slice.rows for export_slice in self.slices) if self._scrolls else self._total
        if self._rows > total or (self.finished and self._rows != total):
            raise QueryError(f"the export is incomplete: {self._rows:,} of {total:,} rows arrived")
        if not hits:
            return None
        data = self._lines(hits, page.odd)
        if not self._scrolls:
            self._source.fit(len(hits), len(data))
        notes = _notes(page)
        return ExportPart(data=data, rows=len(hits), total=self._total, checkpoint=self._checkpoint(), notes=notes)

    def renew(self) -> Exchange[None]:
        """Keep the point in time alive between two pages; a scroll cannot be kept alive without moving it."""
        if self._source.pit:
            pit = {"id": self._source.pit, "keep_alive": self._source.hold}
            yield from ask(post("/_search", {"size": 0, "track_total_hits": False, "pit": pit}))

    def close(self) -> HttpRequest | None:
        """Return the request that frees the search context; None while a checkpoint needs it."""
        scrolls = [export_slice.scroll for export_slice in self.slices if export_slice.scroll]
        if scrolls:
            return HttpRequest("DELETE", "/_search/scroll", encode({"scroll_id": scrolls}))
        waiting = self._request.keep_alive and (self._rows and not self.finished)
        pit = self._source.pit
        return self._points.close(pit) if self._points is not None and pit and not waiting else None

    def _count(self, share: Mapping[str, object] = NO_SHARE) -> Exchange[tuple[int, int]]:
        source = self._source
        body: dict[str, object] = {"size": 1, "query": source.query, "track_total_hits": True, **share}
        where = f"/{target(source.name)}" if self._scrolls else ""
        if not self._scrolls:
            body["pit"] = {"id": source.pit, "keep_alive": source.hold}
        answer = yield from search(f"{where}/_search?allow_partial_search_results=false", body, source.decoder)
        source.check(answer)
        for hit in answer.hits.hits:  # large documents make small first pages
            source.size = max(1, min(source.size, _PAGE // max(1, len(bytes(hit.source)))))
        return answer.shards.total, answer.count or 0

    def _resume(self, text: str) -> Exchange[None]:
        query = cursors.query_of(self._request)
        position = cursors.unseal(text, query, _Position, what="checkpoint", code=_REFUSED, hint=_ANEW)
        if self._scrolls:
            raise _refusal("this server has no points in time, so an export cannot be resumed")
        self._marks, self._rows, self._total = position.marks, position.rows, position.total
        if self.finished:
            return
        self._source.pit = position.pit
        try:
            _, total = yield from self._count()
        except (ObjectNotFoundError, QueryError) as error:
            raise _refusal(f"the server no longer holds what was exported: {error.message}") from error
        if total != position.total:
            raise _refusal(f"the checkpoint counts {position.total:,} rows, but the server finds {total:,}")

    def _checkpoint(self) -> str | None:
        if self._scrolls or not self._request.keep_alive:
            return None
        position = _Position(pit=self._source.pit, total=self._total, rows=self._rows, marks=self._marks)
        try:
            return cursors.seal(cursors.query_of(self._request), position)
        except ValueError:  # a point in time over a few hundred shards has a longer id
            return None

    def _lines(self, hits: Sequence[ExportDocument], odd: bytes) -> bytes:
        sources = [hit.source for hit in hits]
        if NOTHING in sources:
            raise QueryError(f"'{self._source.name}' does not keep documents (_source), so there is nothing to export")
        if odd:
            sources = list(_as_stored(sources, odd))
        if self._request.form is ExportForm.DOCUMENTS:
            return b"\n".join([*sources, b""])
        rows = zip(cast("Sequence[ExportRow]", hits), sources, strict=True)
        if self._request.form is ExportForm.ROWS:
            return _encoder.encode_lines([_Line(row.index, row.id, source, row.routing) for row, source in rows])
        pairs = ((_Action(_Address(row.index, row.id, row.routing)), source) for row, source in rows)
        return _encoder.encode_lines(list(chain.from_iterable(pairs)))


def _as_stored(sources: list[Raw], answer: bytes) -> Iterator[Raw]:
    """Find the original bytes of documents read from a mended answer, and put each document on one line."""
    readable, at = mended(answer), 0
    for text in map(bytes, sources):
        at = readable.index(text, at)
        yield Raw(answer[at : at + len(text)].translate(_BLANKS))  # line breaks occur between tokens only
        at += len(text)


def _notes(page: SlicePage) -> list[Note]:
    """Name the rows whose documents do not leave as they are stored."""
    numbers = range(len(page.hits)) if page.read.respelled else sorted(page.read.commented)
    if not numbers:
        return []
    rows = protocol.parsed(mended(page.odd), _NAMES).hits.hits
    row_names = ", ".join(f"'{rows[number].id}' of '{rows[number].index}'" for number in numbers[:_NAMED])
    rest = f", and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
    reason = f"stored with a comment or a byte order mark, and exported without: {row_names}{rest}"
    if page.read.respelled:
        reason = f"the document cannot be read as it is stored, and the server wrote it anew: {row_names}{rest}"
    return [Note(code="documents-rewritten", reason=reason)]


def _refusal(reason: str) -> QueryError:
    return QueryError(reason, hint=_ANEW, code=_REFUSED)
