"""Walks beyond the result window: where a grid's pages lie in a point in time, or in a scroll (E41)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from dragoman_api import HttpRequest
from dragoman_api.errors import QueryError
from dragoman_api.exchanges import encode

from . import faults
from .documents import Read
from .exchange import Exchange, target
from .search import READ, Found, search
from .sorting import SHARD_DOC, Keys, reverse

KEEP_ALIVE = "2m"
"""How long the server keeps a context that nobody uses; each request renews it."""

KEPT = 1_000
"""Rows that stay in hand behind the place of a scroll, which goes forward only."""

SKIPPED = {"_source": False, "stored_fields": "_none_"}
"""Rows that are passed over need their sort values only, not even ids."""

_MARKS = 4_096  # bookmarks of one walk at most
_Mark = tuple[Raw, ...]


class _Opened(msgspec.Struct, frozen=True):
    id: str


def open_context(name: str, preference: str = "", keep_alive: str = KEEP_ALIVE) -> Exchange[str]:
    """Open a point in time and give its id; ids grow with the shards, so they travel in bodies only."""
    more = f"&preference={preference}" if preference else ""
    reply = yield HttpRequest("POST", f"/{target(name)}/_pit?keep_alive={keep_alive}{more}")
    return faults.decode(reply, _Opened).id


def close_context(pit: str) -> HttpRequest:
    """Free a point in time."""
    return HttpRequest("DELETE", "/_pit", encode({"id": pit}))


def close_scroll(scroll: str) -> HttpRequest:
    """Free a scroll."""
    return HttpRequest("DELETE", "/_search/scroll", encode({"scroll_id": [scroll]}))


@dataclass(slots=True)
class Walk:
    """One result, sorted, in one point in time, and the bookmarks that were met on the way.

    Attributes:
        name: The object.
        query: What is asked.
        keys: The user's sort keys; the tiebreaker is added here.
        window: Rows one request may ask for.
        preference: Keeps pages and walk on the same copies of the shards.
        pit: The point in time, empty before the first page and after the last.
        total: Rows of the whole result.
        renewed: A context ended and another was opened: the snapshot is a newer one.
    """

    name: str
    query: Raw
    keys: Keys
    window: int
    preference: str
    pit: str = ""
    total: int = 0
    renewed: bool = False
    _marks: dict[int, _Mark] = field(default_factory=dict)

    def fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[Read]]:
        """Fetch rows by their place in the result.

        Args:
            offset: Rows before the first.
            limit: Rows at most.
            options: What the search body holds besides.
        """
        for last in (False, True):
            try:
                if not self.pit:
                    yield from self._open()
                return (yield from self._fetch(offset, limit, options))
            except QueryError as error:
                if last or error.details.get("type") != faults.CONTEXT_LOST:
                    raise
                # Sort values mean nothing in another point in time: all bookmarks are void.
                self.pit, self.renewed = "", True
                self._marks.clear()
        raise AssertionError

    def close(self) -> HttpRequest | None:
        """Give the request that frees what the server holds."""
        return close_context(self.pit) if self.pit else None

    def _open(self) -> Exchange[None]:
        self.pit = yield from open_context(self.name, self.preference)
        found = yield from self._ask(self._sorted(self.keys), 0, None, {"track_total_hits": True})
        self.total = found.count or 0

    def _fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[Read]]:
        limit = min(limit, self.total - offset)
        if limit <= 0:
            return []
        backward, at = self._start(offset, limit)
        end = offset if backward else offset + limit
        rows: list[Read] = []
        while at != end:
            goal = offset + limit if backward else offset
            skipping = at > goal if backward else at < goal
            size = min(self.window, abs((goal if skipping else end) - at))
            hits = yield from self._step(at, size, SKIPPED if skipping else options, backward=backward)
            at += -len(hits) if backward else len(hits)
            if not skipping:
                rows += hits
            if len(hits) < size:
                raise QueryError(f"the result ended at row {at:,} of {self.total:,}", hint="reload the page")
        return rows[::-1] if backward else rows

    def _start(self, offset: int, limit: int) -> tuple[bool, int]:
        """Choose the nearest place to walk from: forward up to the page, or backward down to its end."""
        end = offset + limit
        forward = max((at for at in self._marks if at <= offset), default=0)
        # A mark holds the sort values of the row before it, so backward it leads to the rows before that one.
        backward = min((at - 1 for at in self._marks if at - 1 >= end), default=self.total)
        return (True, backward) if backward - end < offset - forward else (False, forward)

    def _step(self, at: int, size: int, options: dict[str, Any], *, backward: bool) -> Exchange[list[Read]]:
        keys = self._sorted(self.keys)
        if backward:
            after = self._marks[at + 1] if at < self.total else None
            found = yield from self._ask(reverse(keys), size, after, options)
            edges = [(at - number, hit) for number, hit in enumerate(found.hits.hits)]
        else:
            after = self._marks[at] if at else None
            found = yield from self._ask(keys, size, after, options)
            edges = [(at + number + 1, hit) for number, hit in enumerate(found.hits.hits)]
        for place, hit in (edges[0], edges[-1]) if edges else ():
            self._remember(place, hit.sort)
        return found.hits.hits

    def _ask(self, keys: Keys, size: int, after: _Mark | None, options: dict[str, Any]) -> Exchange[Found[Read]]:
        body: dict[str, Any] = {
            "size": size,
            "query": self.query,
            "pit": {"id": self.pit, "keep_alive": KEEP_ALIVE},
            "sort": keys,
            "track_total_hits": False,
        } | options
        if after is not None:
            if len(after) != len(keys):  # the server would take it, and lose the ties
                raise QueryError(f"{len(after)} sort values for {len(keys)} keys; the walk cannot go on")
            body["search_after"] = after
        found = yield from search("/_search?allow_partial_search_results=false", body, READ)
        if found.partial():
            raise QueryError(found.partial()[0].reason)
        self.pit = found.pit_id or self.pit
        return found

    def _sorted(self, keys: Keys) -> Keys:
        # Without a sort a page is in order of score, ties by shard and place in it; so is the walk.
        return [*(keys or [{"_score": {"order": "desc"}}]), SHARD_DOC]

    def _remember(self, at: int, values: _Mark) -> None:
        if len(self._marks) >= _MARKS:
            self._marks.pop(next(iter(self._marks)))
        self._marks[at] = values


@dataclass(slots=True)
class Scroll:
    """The same for servers without `_shard_doc`: forward only, going back begins anew.

    Attributes:
        name: The object.
        query: What is asked.
        keys: The user's sort keys.
        window: Rows one request may ask for.
        preference: As in `Walk`.
        scroll: The context's id.
        total: Rows of the whole result.
        renewed: A context ended and another was opened.
    """

    name: str
    query: Raw
    keys: Keys
    window: int
    preference: str
    scroll: str = ""
    total: int = 0
    renewed: bool = False
    _at: int = 0  # rows before the first of `_rest`
    _rest: Sequence[Read] = ()

    def fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[Read]]:
        """Fetch rows by their place in the result; see `Walk.fetch`."""
        try:
            try:
                return (yield from self._fetch(offset, limit, options))
            except QueryError as error:
                if error.details.get("type") != faults.CONTEXT_LOST:
                    raise
                self.scroll, self.renewed = "", True
                return (yield from self._fetch(offset, limit, options))
        except BaseException:
            self.scroll = ""  # a page of a scroll whose answer was lost cannot be had again
            raise

    def close(self) -> HttpRequest | None:
        """Give the request that frees what the server holds."""
        return close_scroll(self.scroll) if self.scroll else None

    def _fetch(self, offset: int, limit: int, options: dict[str, Any]) -> Exchange[list[Read]]:
        if offset < self._at:
            if (request := self.close()) is not None:
                yield request
            self.scroll = ""
        if not self.scroll:
            body = {
                "size": min(self.window, max(limit, 1_000)),
                "query": self.query,
                "track_total_hits": True,
            } | options
            body |= {"sort": self.keys} if self.keys else {}
            where = f"/{target(self.name)}/_search?scroll={KEEP_ALIVE}&preference={self.preference}"
            found = yield from search(f"{where}&allow_partial_search_results=false", body, READ)
            self.total, self._at, self._rest = found.count or 0, 0, ()
            self._take(found)
        while self._at + len(self._rest) < min(offset + limit, self.total):
            self._at, self._rest = self._drop(offset)
            found = yield from search("/_search/scroll", {"scroll": KEEP_ALIVE, "scroll_id": self.scroll}, READ)
            if not found.hits.hits:
                break
            self._take(found)
        return list(self._rest[offset - self._at :][:limit])

    def _drop(self, offset: int) -> tuple[int, Sequence[Read]]:
        """Let go of the rows before an offset, but for some pages to which a reader may turn back."""
        gone = min(max(offset - KEPT - self._at, 0), len(self._rest))
        return self._at + gone, self._rest[gone:]

    def _take(self, found: Found[Read]) -> None:
        if found.partial():
            raise QueryError(found.partial()[0].reason)
        self.scroll = found.scroll_id or self.scroll
        self._rest = [*self._rest, *found.hits.hits]
