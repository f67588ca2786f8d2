"""One slice of an export: its pages, their size, and the retries of a busy server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api.errors import ConnectionFailedError, QueryError, WindowExceededError
from dragoman_api.kit.line_parts import rows_that_fit
from dragoman_api.kit.retries import Patience
from dragoman_elasticsearch import error_answers
from dragoman_elasticsearch.http_requests import Exchange, target
from dragoman_elasticsearch.search import VERBATIM, Reading, SearchAnswer, search

if TYPE_CHECKING:
    from dragoman_api import DragomanError

_SLICES, _MOST_SLICES = 4, 16  # the least if there are rows enough, and the most
_SCROLLS = 8  # a scroll holds a context per slice and shard; the server allows 500
_WORTH = 5_000  # rows of a slice
LIMIT = 24 * 2**20
"""Maximum bytes of one answer; a longer one is requested again in smaller pages."""

Bookmark = tuple[int, int]
"""The sort values of a row, after which its slice continues; valid in one point in time only."""

# `_shard_doc` alone makes the server scan the whole result for every page; `_doc` alone loses rows.
_SORT = [{"_doc": {"order": "asc"}}, {"_shard_doc": {"order": "asc"}}]
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
        pit: The point in time, empty if scrolls are used.
        room: The approximate bytes of one page.
        window: Rows one request may ask for.
        size: Rows the next request asks for.
    """

    name: str
    query: Raw
    decoder: Decoder[SearchAnswer[Any]]
    hold: str
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
        mark: Bookmark = error_answers.parsed(bytes(last.sort), _mark)
        if isinstance(self.mark, tuple) and mark <= self.mark:
            raise QueryError(f"the export is incomplete: the server repeated rows after {self.mark}")
        return mark

    def _search(self, size: int) -> Exchange[SearchAnswer[Any]]:
        source = self.source
        body: dict[str, Any] = {
            "size": size,
            "query": source.query,
            "pit": {"id": source.pit, "keep_alive": source.hold},
            "sort": _SORT,
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
        if details.get("type") == error_answers.CONTEXT_LOST:
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
