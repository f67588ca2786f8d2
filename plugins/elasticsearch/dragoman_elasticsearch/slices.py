"""One slice of an export: page after page, smaller or later where the server asks for it, every row once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api.errors import ConnectionFailedError, QueryError, WindowExceededError

from . import faults
from .exchange import Exchange, target
from .search import Found, search

if TYPE_CHECKING:
    from dragoman_api import DragomanError

LIMIT = 24 * 2**20
"""Bytes of one answer at most; a longer one is asked for again in pieces."""

Mark = tuple[int, int]
"""The sort values of a row, by which its slice goes on after it; they mean something in one point in time only."""

# `_shard_doc` alone would make the server look through the whole result for every page, `_doc` alone loses rows.
_SORT = [{"_doc": {"order": "asc"}}, {"_shard_doc": {"order": "asc"}}]
_FIRST, _MOST = 1_000, 10_000  # rows of one request
_BUSY = (0.25, 0.5, 1, 2, 4, 8, 8, 8)  # seconds before a page is asked for again, where the server has no time
_LOST = (0.2, 0.6, 1.8)  # where no answer came
_PATIENCE = 75.0  # seconds without a page of a slice; the host gives up soon after
NOTHING = Raw()


class Document(msgspec.Struct, frozen=True, gc=False):
    """What an export reads of a hit; all of it stays bytes."""

    source: Raw = msgspec.field(name="_source", default=NOTHING)
    sort: Raw = NOTHING


class Row(Document, frozen=True, gc=False):
    """The same with what leads back to the document."""

    index: Raw = msgspec.field(name="_index", default=NOTHING)
    id: Raw = msgspec.field(name="_id", default=NOTHING)
    routing: Raw = msgspec.field(name="_routing", default=NOTHING)


DOCUMENTS: Decoder[Found[Any]] = Decoder(Found[Document])
ROWS: Decoder[Found[Any]] = Decoder(Found[Row])


@dataclass(slots=True)
class Source:
    """What all slices of an export ask.

    Attributes:
        name: The object.
        query: Which rows.
        decoder: `DOCUMENTS` or `ROWS`.
        hold: How long the server keeps the context between two requests.
        pit: The point in time, empty where scrolls are used.
        room: Bytes of one page, about.
        window: Rows one request may ask for.
        size: Rows the next request asks for.
    """

    name: str
    query: Raw
    decoder: Decoder[Found[Any]]
    hold: str
    pit: str = ""
    room: int = 4 * 2**20
    window: int = _MOST
    size: int = _FIRST

    def fit(self, rows: int, size: int) -> None:
        """Ask for pages of the room there is, and recover slowly from having asked for too much."""
        self.size = max(1, min(self.window, self.size * 4, self.room * rows // size))

    def check(self, found: Found[Any]) -> None:
        """Take the newest context's name.

        Raises:
            QueryError: The answer is partial, so the export would not be whole.
        """
        if found.partial():
            raise QueryError(f"the export is not whole: {found.partial()[0].reason}")
        self.pit = found.pit_id or self.pit


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, in the order of their slice.

    Attributes:
        slice: The number of the slice.
        hits: The rows.
        mark: Where the slice goes on: behind the last one; True where nothing is left, False without a way.
        odd: Where the documents may be no JSON, or not on one line, the bytes they stand in.
    """

    slice: int
    hits: Sequence[Document]
    mark: Mark | bool
    odd: bytes = b""


@dataclass(slots=True)
class Slice:
    """A part of the result that is walked by itself, in a point in time or a scroll.

    Attributes:
        source: Whose slice it is.
        number: Among its siblings, from 0.
        of: How many they are.
        mark: The last row that was read; False at the beginning, True at the end.
        scroll: The scroll's id; None with points in time.
        rows: Rows of the slice as the scroll counts them.
    """

    source: Source
    number: int
    of: int
    mark: Mark | bool = False
    scroll: str | None = None
    rows: int = 0
    _failures: int = 0
    _waited: float = 0.0

    def page(self) -> Exchange[Page | float]:
        """Fetch the next page, or give the seconds to wait before it is asked for again.

        Raises:
            DragomanError: The page cannot be had; for a lost context with the code `context-lost`.
        """
        asked = self.source.size
        try:
            found = yield from self._search(asked) if self.scroll is None else self._scroll(asked)
        except (ConnectionFailedError, QueryError) as error:
            return self._again(error, asked)
        self.source.check(found)
        self._failures, self._waited, hits = 0, 0.0, found.hits.hits
        if self.scroll is not None:
            self.rows, self.scroll = found.count or 0, found.scroll_id or self.scroll
            self.mark = not hits
        else:  # a whole answer with fewer rows than were asked for is the last one
            self.mark = True if len(hits) < asked else msgspec.json.decode(hits[-1].sort, type=Mark)
        return Page(self.number, hits, self.mark, found.odd)

    def _search(self, size: int) -> Exchange[Found[Any]]:
        source = self.source
        body: dict[str, Any] = {
            "size": size,
            "query": source.query,
            "pit": {"id": source.pit, "keep_alive": source.hold},
            "sort": _SORT,
            "track_total_hits": False,
        } | self._share()
        if self.mark:
            body["search_after"] = self.mark
        return (yield from search("/_search?allow_partial_search_results=false", body, source.decoder))

    def _scroll(self, size: int) -> Exchange[Found[Any]]:
        source = self.source
        if self.scroll:
            body: dict[str, Any] = {"scroll": source.hold, "scroll_id": self.scroll}
            return (yield from search("/_search/scroll", body, source.decoder))
        body = {"size": size, "query": source.query, "sort": ["_doc"], "track_total_hits": True} | self._share()
        where = f"/{target(source.name)}/_search?scroll={source.hold}&allow_partial_search_results=false"
        return (yield from search(where, body, source.decoder))

    def _share(self) -> dict[str, Any]:
        return {"slice": {"id": self.number, "max": self.of}} if self.of > 1 else {}

    def _again(self, error: DragomanError, asked: int) -> float:
        """Decide by the error whether to ask again: for less, later, or not at all."""
        source, details = self.source, error.details
        if details.get("type") == faults.CONTEXT_LOST:
            raise QueryError(
                f"the server no longer holds the state of '{source.name}' that is exported (kept for {source.hold})",
                hint="export anew; where the output is slower than that, raise the keep-alive",
                code="context-lost",
                details=details,
            ) from error
        if self.scroll:  # the server may have moved on: the next answer could be the page after this one
            raise error
        if isinstance(error, WindowExceededError) and int(str(details["window"])) < asked:
            source.window = source.size = int(str(details["window"]))
            return 0
        if "limit" in details and asked > 1:
            source.size = max(1, min(source.size, asked // 4))
            return 0
        pauses = _BUSY if "retry_after" in details else _LOST if isinstance(error, ConnectionFailedError) else ()
        pause = max([float(str(details.get("retry_after", 0))), *pauses[self._failures : self._failures + 1]])
        if self._failures == len(pauses) or self._waited + pause > _PATIENCE:
            if pauses:
                error.hint = f"export again later, or go on with --resume within {source.hold}"
            raise error
        self._failures, self._waited = self._failures + 1, self._waited + pause
        source.size = max(1, min(source.size, asked // 2))
        return pause
