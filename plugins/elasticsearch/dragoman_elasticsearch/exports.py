"""Exports: the stored documents of a whole object as newline-delimited JSON, not capped by the window (E32)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import ExportPart
from dragoman_api.errors import QueryError, WindowExceededError

from . import walks
from .documents import compact
from .exchange import Exchange, encode, target
from .search import STORED, Found, search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import HttpRequest

    from .documents import Stored

# `_shard_doc` alone would make the server look through the whole result for every page, `_doc` alone loses rows.
_SORT = [{"_doc": {"order": "asc"}}, {"_shard_doc": {"order": "asc"}}]
_FIRST, _LEAST, _MOST = 1_000, 100, 10_000  # rows of one request
_BYTES = 4 * 2**20  # of one part, about


class _Line(msgspec.Struct, omit_defaults=True):
    index: str = msgspec.field(name="_index")
    id: str = msgspec.field(name="_id")
    source: Raw = msgspec.field(name="_source")
    routing: str | None = msgspec.field(name="_routing", default=None)


@dataclass(slots=True)
class Export:
    """One export on its way: a point in time, or a scroll where the server has none that keeps every row.

    Attributes:
        name: The object.
        query: What is asked.
        metadata: Each line is the document with its index, id and routing.
        scrolls: The server knows scrolls only.
        window: Rows one request may ask for.
    """

    name: str
    query: Raw
    metadata: bool
    scrolls: bool
    window: int = _MOST
    _context: str = ""
    _after: tuple[Raw, ...] = ()
    _size: int = _FIRST
    _total: int | None = None

    def part(self) -> Exchange[ExportPart | None]:
        """Fetch the next part; None at the end.

        Raises:
            QueryError: A shard failed or a time-out made the result partial: the export would not be whole.
        """
        try:
            found = yield from self._next()
        except WindowExceededError as error:  # the index allows smaller pages only, and says how small
            self.window = self._size = int(str(error.details["window"]))
            found = yield from self._next()
        if found.partial():
            raise QueryError(f"the export is not whole: {found.partial()[0].reason}")
        self._total = found.count if self._total is None else self._total
        hits = found.hits.hits
        if not hits:
            return None
        self._after = hits[-1].sort
        data = self._lines(hits)
        self._size = min(self.window, max(_LEAST, _BYTES * len(hits) // len(data)))
        return ExportPart(data=data, rows=len(hits), total=self._total)

    def close(self) -> HttpRequest | None:
        """Give the request that frees what the server holds."""
        if not self._context:
            return None
        return walks.close_scroll(self._context) if self.scrolls else walks.close_context(self._context)

    def _next(self) -> Exchange[Found[Stored]]:
        return self._scroll() if self.scrolls else self._search()

    def _search(self) -> Exchange[Found[Stored]]:
        if not self._context:
            self._context = yield from walks.open_context(self.name)
        body: dict[str, Any] = {
            "size": self._size,
            "query": self.query,
            "pit": {"id": self._context, "keep_alive": walks.KEEP_ALIVE},
            "sort": _SORT,
            "track_total_hits": self._total is None,
        }
        if self._after:
            body["search_after"] = self._after
        found = yield from search("/_search?allow_partial_search_results=false", body, STORED)
        self._context = found.pit_id or self._context
        return found

    def _scroll(self) -> Exchange[Found[Stored]]:
        if self._context:
            body: dict[str, Any] = {"scroll": walks.KEEP_ALIVE, "scroll_id": self._context}
            found = yield from search("/_search/scroll", body, STORED)
        else:
            body = {"size": self._size, "query": self.query, "sort": ["_doc"], "track_total_hits": True}
            where = f"/{target(self.name)}/_search?scroll={walks.KEEP_ALIVE}&allow_partial_search_results=false"
            found = yield from search(where, body, STORED)
        self._context = found.scroll_id or self._context
        return found

    def _lines(self, hits: Sequence[Stored]) -> bytes:
        if not all(bytes(hit.source) for hit in hits):
            raise QueryError(f"'{self.name}' keeps no documents (_source), so there is nothing to export")
        sources = [_one_line(bytes(hit.source)) for hit in hits]
        if self.metadata:
            lines = (_Line(hit.index, hit.id, Raw(text), hit.routing) for hit, text in zip(hits, sources, strict=True))
            sources = [encode(line).encode() for line in lines]
        return b"\n".join(sources) + b"\n"


def _one_line(source: bytes) -> bytes:
    return compact(source) if b"\n" in source or b"\r" in source else source
