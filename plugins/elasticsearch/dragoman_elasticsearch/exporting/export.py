"""Export a whole object as lines of JSON: slices, parts and checkpoints (E32)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Raw

from dragoman_api import ExportPart, HttpRequest, Note
from dragoman_api.errors import ObjectNotFoundError, QueryError
from dragoman_api.exports import ExportForm
from dragoman_api.json_text import encode
from dragoman_api.kit import cursors
from dragoman_elasticsearch import error_answers
from dragoman_elasticsearch.http_requests import Exchange, post, target
from dragoman_elasticsearch.search import SearchAnswer, mended, search
from dragoman_elasticsearch.search_contexts import close_context, open_context
from dragoman_elasticsearch.search_hits import Hit

from .slices import DOCUMENTS, NO_SHARE, NOTHING, ROWS, Bookmark, ExportQuery, Slice, slice_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dragoman_api import ExportRequest

    from .slices import ExportDocument, ExportRow, SlicePage

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

    def __init__(self, request: ExportRequest, query: Raw, *, scrolls: bool) -> None:
        """Prepare.

        Args:
            request: What to export.
            query: Its filter.
            scrolls: Use scrolls: the server's points in time lose rows, or it has none.
        """
        decoder = DOCUMENTS if request.form is ExportForm.DOCUMENTS else ROWS
        self._source = ExportQuery(request.object, query, decoder, f"{max(request.keep_alive, _HOLD)}s")
        self._request, self._scrolls = request, scrolls
        self._marks: list[Bookmark | bool] = []
        self._rows = self._total = 0
        self.slices: list[Slice] = []

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
            if not self._scrolls:
                source.pit = yield from open_context(source.name, keep_alive=source.hold)
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
            yield post("/_search", {"size": 0, "track_total_hits": False, "pit": pit})

    def close(self) -> HttpRequest | None:
        """Return the request that frees the search context; None while a checkpoint needs it."""
        scrolls = [export_slice.scroll for export_slice in self.slices if export_slice.scroll]
        if scrolls:
            return HttpRequest("DELETE", "/_search/scroll", encode({"scroll_id": scrolls}))
        waiting = self._request.keep_alive and (self._rows and not self.finished)
        return close_context(self._source.pit) if self._source.pit and not waiting else None

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
    rows = error_answers.parsed(mended(page.odd), _NAMES).hits.hits
    row_names = ", ".join(f"'{rows[number].id}' of '{rows[number].index}'" for number in numbers[:_NAMED])
    rest = f", and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
    reason = f"stored with a comment or a byte order mark, and exported without: {row_names}{rest}"
    if page.read.respelled:
        reason = f"the document cannot be read as it is stored, and the server wrote it anew: {row_names}{rest}"
    return [Note(code="documents-rewritten", reason=reason)]


def _refusal(reason: str) -> QueryError:
    return QueryError(reason, hint=_ANEW, code=_REFUSED)
