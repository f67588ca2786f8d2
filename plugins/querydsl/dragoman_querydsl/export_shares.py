"""Split an export into shares that several processes read: slices of one point in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import Note
from dragoman_api.errors import ObjectNotFoundError, QueryError
from dragoman_api.exports import NO_SNAPSHOT, ExportPart, ExportSplit
from dragoman_api.kit import cursors
from dragoman_api.kit.exchanges import Exchange, ask, post
from dragoman_querydsl import protocol
from dragoman_querydsl.protocol import raw

from .export import ExportReader, Slice

if TYPE_CHECKING:
    from dragoman_api import ExportRequest, HttpRequest
    from dragoman_api.exports import SnapshotHold, SplitRequest
    from dragoman_querydsl.protocol import PointInTime

    from .export import SlicePage

_SCROLLED = (
    "this server has no points in time that an export can use: it is one part, which scrolls, and a part read again "
    "has the rows of that time"
)


class _Share(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pit: str
    number: int
    of: int
    query: str


def split(request: SplitRequest, query: Raw, *, points: PointInTime | None) -> Exchange[ExportSplit]:
    """Open a point in time, count its rows and divide them into slices; one share where exports scroll.

    Raises:
        QueryError: A shard failed, or the point in time spans so many shards that its id does not fit a share.
    """
    export = request.export
    if points is None:
        shares = [_seal(export, "", 0, 1, query)]
        return ExportSplit(shares=shares, notes=[Note(code=NO_SNAPSHOT, reason=_SCROLLED)])
    reader = ExportReader(export, query, points=points)
    try:
        yield from reader.open()
        of = max(1, min(request.shares, reader.total))
        shares = [_seal(export, reader.pit, number, of, query) for number in range(of)]
    except BaseException:
        if reader.pit:
            yield from ask(points.close(reader.pit))
        raise
    return ExportSplit(shares=shares, snapshot=reader.pit, total=reader.total)


def _seal(export: ExportRequest, pit: str, number: int, of: int, query: Raw) -> str:
    share = _Share(pit=pit, number=number, of=of, query=bytes(query).decode())
    try:
        return cursors.seal(cursors.query_of(export), share)
    except ValueError as error:
        reason = f"'{export.object}' cannot be split: {error}"
        raise QueryError(reason, hint="export fewer indices at a time, or shorten the filter") from error


def hold(request: SnapshotHold, points: PointInTime) -> Exchange[bool]:
    """Renew a point in time, or free it; return whether the server had it."""
    if not request.seconds:
        reply = yield from ask(points.close(request.snapshot))
        if reply.status == 404:
            return False
        protocol.check(reply)
        return True
    pit = {"id": request.snapshot, "keep_alive": f"{request.seconds}s"}
    try:
        protocol.check((yield from ask(post("/_search", {"size": 0, "track_total_hits": False, "pit": pit}))))
    except (ObjectNotFoundError, QueryError) as error:
        if error.details.get("type") == protocol.CONTEXT_LOST:
            return False
        raise
    return True


class ShareReader(ExportReader):
    """One share in progress: a single slice, whose point in time others free."""

    def __init__(self, request: ExportRequest, points: PointInTime) -> None:
        """Read the share's text.

        Raises:
            QueryError: It is not one, or belongs to another export (code ``export-not-resumable``).
        """
        query, hint = cursors.query_of(request), "split the export again"
        text, code = request.share or "", "export-not-resumable"
        self._share = cursors.unseal(text, query, _Share, what="share", code=code, hint=hint)
        super().__init__(request, raw(self._share.query), points=points if self._share.pit else None)

    def open(self) -> Exchange[None]:
        """Count the rows of the slice; an export that scrolls is opened as a whole.

        Raises:
            QueryError: The point in time is gone (code ``context-lost``), or a shard failed.
        """
        if not self._share.pit:
            yield from super().open()
            return
        self._source.pit = self._share.pit
        part = Slice(self._source, self._share.number, self._share.of)
        self.slices, self._marks = [part], [False]
        try:
            _, self._total = yield from self._count(part.share())
        except (ObjectNotFoundError, QueryError) as error:
            if error.details.get("type") == protocol.CONTEXT_LOST:
                raise self._source.lost(error) from error
            raise

    def part(self, page: SlicePage) -> ExportPart | None:
        """Turn a page into a part of the export, an empty one if the server was busy; None for a page without rows."""
        if page.turned_away:
            return ExportPart(data=b"", rows=0, turned_away=1)
        return super().part(replace(page, slice=0) if self._share.pit else page)

    def close(self) -> HttpRequest | None:
        """Return the request that frees a scroll; None for a point in time."""
        return None if self._share.pit else super().close()

    def _checkpoint(self) -> str | None:
        return None
