"""Deep pages, past the result window: through a point in time, or a scroll on old servers (E41)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Note
from dragoman_api.errors import QueryError
from dragoman_api.kit.exchanges import Exchange, ask
from dragoman_querydsl import protocol
from dragoman_querydsl.protocol import PointInTime, target
from dragoman_querydsl.search import (
    READ,
    DecodedHit,
    SearchAnswer,
    close_scroll,
    open_context,
    search,
)

if TYPE_CHECKING:
    from dragoman_api import HttpRequest

SortKeys = list[dict[str, Any]]

KEPT = 1_000
"""Rows kept from before the position of a scroll, which only moves forward."""

KEEP_ALIVE = "2m"
"""How long the server keeps an unused context; each request renews it."""

SKIPPED = {"_source": False, "stored_fields": "_none_"}
"""Options for skipped rows, of which only the sort values are needed."""

_BOOKMARKS = 4_096  # maximum bookmarks of one pager
_Bookmark = tuple[Raw, ...]


class _Result(msgspec.Struct):
    """One sorted result that is read page by page.

    Attributes:
        name: The object.
        query: The query.
        keys: The user's sort keys.
        window: Rows one request may ask for.
        preference: Keeps all pages on the same copies of the shards.
        total: Rows of the whole result.
        renewed: A context expired and another was opened: the snapshot is a newer one.
        odd: A note on each document that is not shown as stored, by index and id.
    """

    name: str
    query: Raw
    keys: SortKeys
    window: int
    preference: str
    total: int = 0
    renewed: bool = False
    odd: dict[tuple[str, str], Note] = msgspec.field(default_factory=dict)

    def check(self, answer: SearchAnswer[DecodedHit]) -> None:
        """Check an answer, and keep notes on its documents.

        Raises:
            QueryError: The answer is partial.
        """
        if answer.partial():
            raise QueryError(answer.partial()[0].reason)
        numbers = answer.read.commented or range(len(answer.hits.hits))
        rows = [answer.hits.hits[number] for number in numbers]
        self.odd |= {(hit.index, hit.id): note for note in answer.notes() for hit in rows}


class PointInTimePager(_Result, kw_only=True):
    """Pages from a point in time, reached from the nearest bookmark; the tiebreakers are added to the sort keys.

    Attributes:
        points: How the server opens and frees points in time.
        pit: The point in time, empty before the first page and after the last.
    """

    points: PointInTime
    pit: str = ""
    _bookmarks: dict[int, _Bookmark] = msgspec.field(default_factory=dict)

    def fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[DecodedHit]]:
        """Fetch rows by their place in the result.

        Args:
            offset: The number of rows before the first.
            limit: The maximum number of rows.
            options: Further keys of the search body.
        """
        for last in (False, True):
            try:
                if not self.pit:
                    yield from self._open()
                return (yield from self._fetch(offset, limit, options))
            except QueryError as error:
                if last or error.details.get("type") != protocol.CONTEXT_LOST:
                    raise
                # Bookmarks are valid in their own point in time only.
                self.pit, self.renewed = "", True
                self._bookmarks.clear()
        raise AssertionError

    def close(self) -> HttpRequest | None:
        """Return the request that frees the search context, None if there is none."""
        return self.points.close(self.pit) if self.pit else None

    def _open(self) -> Exchange[None]:
        self.pit = yield from open_context(self.points, self.name, keep_alive=KEEP_ALIVE, preference=self.preference)
        answer = yield from self._ask(self._sorted(self.keys), 0, None, {"track_total_hits": True})
        self.total = answer.count or 0

    def _fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[DecodedHit]]:
        limit = min(limit, self.total - offset)
        if limit <= 0:
            return []
        backward, at = self._start(offset, limit)
        end = offset if backward else offset + limit
        rows: list[DecodedHit] = []
        while at != end:
            goal = offset + limit if backward else offset
            skipping = at > goal if backward else at < goal
            size = min(self.window, abs((goal if skipping else end) - at))
            hits = yield from self._step(at, size, SKIPPED if skipping else options, backward=backward)
            at += -len(hits) if backward else len(hits)
            if not skipping:
                rows += hits
            if len(hits) < size:
                raise QueryError(f"the result ended at row {at:,} of {self.total:,}", hint="read the page again")
        return rows[::-1] if backward else rows

    def _start(self, offset: int, limit: int) -> tuple[bool, int]:
        """Choose the nearest start: forward to the page's first row, or backward to its last."""
        end = offset + limit
        forward = max((at for at in self._bookmarks if at <= offset), default=0)
        # A bookmark holds the sort values of the row before it: going backward, it leads to the rows before that row.
        backward = min((at - 1 for at in self._bookmarks if at - 1 >= end), default=self.total)
        return (True, backward) if backward - end < offset - forward else (False, forward)

    def _step(self, at: int, size: int, options: dict[str, Any], *, backward: bool) -> Exchange[list[DecodedHit]]:
        keys = self._sorted(self.keys)
        if backward:
            after = self._bookmarks[at + 1] if at < self.total else None
            answer = yield from self._ask(reverse(keys), size, after, options)
            edges = [(at - number, hit) for number, hit in enumerate(answer.hits.hits)]
        else:
            after = self._bookmarks[at] if at else None
            answer = yield from self._ask(keys, size, after, options)
            edges = [(at + number + 1, hit) for number, hit in enumerate(answer.hits.hits)]
        if edges and edges[-1][1].sort == after:
            raise QueryError("the pages end here: the server repeated rows", hint="read the page again")
        for place, hit in (edges[0], edges[-1]) if edges else ():
            self._remember(place, hit.sort)
        return answer.hits.hits

    def _ask(
        self, keys: SortKeys, size: int, after: _Bookmark | None, options: dict[str, Any]
    ) -> Exchange[SearchAnswer[DecodedHit]]:
        body: dict[str, Any] = {
            "size": size,
            "query": self.query,
            "pit": {"id": self.pit, "keep_alive": KEEP_ALIVE},
            "sort": keys,
            "track_total_hits": False,
        } | options
        if after is not None:
            if len(after) != len(keys):  # the server would accept it, and lose ties
                raise QueryError(f"{len(after)} sort values for {len(keys)} keys; the pages end here")
            body["search_after"] = after
        answer = yield from search("/_search?allow_partial_search_results=false", body, READ)
        self.check(answer)
        self.pit = answer.pit_id or self.pit
        return answer

    def _sorted(self, keys: SortKeys) -> SortKeys:
        # Without a sort, pages by offset are ordered by score, then shard and position; use the same order.
        return [*(keys or [{"_score": {"order": "desc"}}]), *self.points.order]

    def _remember(self, at: int, values: _Bookmark) -> None:
        if len(self._bookmarks) >= _BOOKMARKS:
            self._bookmarks.pop(next(iter(self._bookmarks)))
        self._bookmarks[at] = values


class ScrollPager(_Result):
    """Pages from a scroll, for servers whose points in time lose rows: forward only; going back starts again.

    Attributes:
        scroll: The context's id.
    """

    scroll: str = ""
    _at: int = 0  # rows before the first of `_rest`
    _rest: Sequence[DecodedHit] = ()

    def fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[DecodedHit]]:
        """Fetch rows by their place in the result; a scroll that the server lost begins again, once."""
        try:
            try:
                return (yield from self._fetch(offset, limit, options))
            except QueryError as error:
                if error.details.get("type") != protocol.CONTEXT_LOST:
                    raise
                self.scroll, self.renewed = "", True
                return (yield from self._fetch(offset, limit, options))
        except BaseException:
            self.scroll = ""  # a lost page of a scroll cannot be fetched again
            raise

    def close(self) -> HttpRequest | None:
        """Return the request that frees the search context, None if there is none."""
        return close_scroll(self.scroll) if self.scroll else None

    def _fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[DecodedHit]]:
        if offset < self._at:
            if (request := self.close()) is not None:
                yield from ask(request)
            self.scroll = ""
        if not self.scroll:
            body = {
                "size": min(self.window, max(limit, 1_000)),
                "query": self.query,
                "track_total_hits": True,
            } | options
            body |= {"sort": self.keys} if self.keys else {}
            where = f"/{target(self.name)}/_search?scroll={KEEP_ALIVE}&preference={self.preference}"
            answer = yield from search(f"{where}&allow_partial_search_results=false", body, READ)
            self.total, self._at, self._rest = answer.count or 0, 0, ()
            self._take(answer)
        while self._at + len(self._rest) < min(offset + limit, self.total):
            self._at, self._rest = self._drop(offset)
            answer = yield from search("/_search/scroll", {"scroll": KEEP_ALIVE, "scroll_id": self.scroll}, READ)
            if not answer.hits.hits:
                at = self._at + len(self._rest)
                raise QueryError(f"the result ended at row {at:,} of {self.total:,}", hint="read the page again")
            self._take(answer)
        return list(self._rest[offset - self._at :][:limit])

    def _drop(self, offset: int) -> tuple[int, Sequence[DecodedHit]]:
        """Drop the rows before an offset, except for a few pages to turn back to."""
        gone = min(max(offset - KEPT - self._at, 0), len(self._rest))
        return self._at + gone, self._rest[gone:]

    def _take(self, answer: SearchAnswer[DecodedHit]) -> None:
        self.check(answer)
        self.scroll = answer.scroll_id or self.scroll
        self._rest = [*self._rest, *answer.hits.hits]


Pager = PointInTimePager | ScrollPager


def reverse(keys: SortKeys) -> SortKeys:
    """Reverse every sort key, so that the last row comes first."""
    return [{name: _reversed(key) for name, key in sort_key.items()} for sort_key in keys]


def _reversed(key: dict[str, Any]) -> dict[str, Any]:
    turned = key | {"order": "asc" if key["order"] == "desc" else "desc"}
    if "missing" in key:
        turned["missing"] = {"_last": "_first", "_first": "_last"}.get(key["missing"], key["missing"])
    return turned
