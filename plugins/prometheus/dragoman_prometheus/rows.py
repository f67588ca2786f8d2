"""The rows of a query, read in spans of time that hold a bounded number of samples each."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from dragoman_api import Cell, Column, HttpRequest, Note, QueryError, TimeRange
from dragoman_api.errors import ObjectChangedError, WindowExceededError
from dragoman_api.kit.exchanges import send_all
from dragoman_api.kit.operands import instant

from . import selectors
from .answers import FORM, MATRIX, VECTOR, Features, counted, instant_text, number_cell, samples
from .selectors import SERIES, TIME, VALUE, Query, Sample, View

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .answers import Matrix

Send = Callable[[HttpRequest, list[Note], Any, Callable[[Any], Any]], Awaitable[Any]]

CHUNK = 20_000
"""Samples that one request reads at most, unless more share one millisecond (M4)."""

SCAN = 200_000
"""Samples that a page, a count or a summary reads at most where the server cannot filter or sort (M10)."""

DAY = 86_400_000
EARLIEST = 2 * DAY
"""The first instant that is read: VictoriaMetrics finds nothing at all in a range that begins on 1970-01-01 (M5)."""

_PARTS = 8
_TOO_MANY = re.compile(r"too many samples|maxSamplesPer|cannot select more than|timed out", re.IGNORECASE)


class SpanRows(NamedTuple):
    """The rows of one span.

    Attributes:
        until: The end of the span.
        skipped: The number of samples before it that were not read.
        read: The number of samples that were read so far, whatever the driver filters.
        rows: The rows.
    """

    until: int
    skipped: int
    read: int
    rows: list[Sample]


class SampleRows:
    """The rows of a query up to one instant, in the order of time, then of series; a walk reads them in spans (M4)."""

    def __init__(
        self,
        view: View,
        query: Query,
        span: TimeRange | None,
        until: int | None,
        *,
        features: Features,
        send: Send,
        forget: Callable[[str, None], object],
    ) -> None:
        self.view, self.query, self.notes, self._features, self._send = view, query, list[Note](), features, send
        self._forget = forget
        now = until or int(time.time() * 1000) + 1
        self.since = max(query.since, _first(span.since, EARLIEST) if span else EARLIEST)
        end = _first(span.until, now) if span else now
        self.until = end if query.until is None else min(end, query.until)
        self.selector = f"{{{','.join([view.matcher, *query.matchers])}}}"
        self._number: int | None = None

    async def count(self) -> int:
        """Count the samples on the server, once."""
        if self._number is None:
            self._number = await self._count(self.since, self.until)
        return self._number

    def go_on(self, since: int) -> None:
        """Leave out what lies before an instant; the next count is one of the rest."""
        self.since, self._number = since, None

    async def _count(self, since: int, until: int) -> int:
        """Count the samples of a span; in parts if that is too much for the server."""
        if since >= until:
            return 0
        if self._features.victoria and (until - 1) % DAY == 0:
            return await self._count(since, until - 1) + len(await self._read(until - 1, until))
        length = until - since - self._features.closed
        if length == 0:
            return len(await self._read(since, until))
        try:
            expression = f"sum(count_over_time({self.selector}{self._range(length)}))"
            count: int = await self._ask(expression, until, VECTOR, counted)
        except QueryError as error:
            if until - since < 2 or not _TOO_MANY.search(error.message):
                raise
            middle = (since + until) // 2
            return await self._count(since, middle) + await self._count(middle, until)
        return count

    async def batches(self, *, backwards: bool = False, skip: int = 0) -> AsyncIterator[SpanRows]:
        """Yield the samples of each span that has any; those before `skip` are not read if the server filters alone."""
        skipped = read = 0
        keeps = selectors.predicate(self.query, self.view)
        spans = [(self.since, self.until, await self.count())]
        while spans:
            since, until, number = spans.pop()
            if number == 0:
                continue
            if skipped + number <= skip and not self.query.tests:
                skipped += number
            elif number <= CHUNK or until - since < 2:
                rows = await self._read(since, until)
                rows.sort(key=lambda row: (row.at, row.series), reverse=backwards)
                if len(rows) < number:
                    reason = f"the server counted {number:,} samples of '{self.view.name}', and then sent {len(rows):,}"
                    raise QueryError(reason, hint="samples may have been deleted meanwhile: send the call again")
                read += len(rows)
                if self.query.tests:
                    rows = [*filter(keeps, rows)]
                yield SpanRows(until, skipped, read, rows)
            else:
                step = -(-(until - since) // _PARTS)
                edges = [(at, min(at + step, until)) for at in range(since, until, step)]
                counts = await send_all(edges, lambda edge: self._count(*edge))
                parts = [(*edge, count) for edge, count in zip(edges, counts, strict=True)]
                spans += parts if backwards else parts[::-1]

    async def take(self, offset: int, limit: int, *, backwards: bool) -> tuple[list[Sample], bool, int]:
        """Return the rows of a page, whether the rows end there, and how many were seen."""
        page_rows, seen = list[Sample](), 0
        async for _, skipped, read, rows in self.batches(backwards=backwards, skip=offset):
            first = max(0, offset - skipped - seen)
            page_rows += rows[first : first + limit - len(page_rows)]
            seen += len(rows)
            if skipped + seen > offset + limit or (len(page_rows) == limit and not self.query.tests):
                return page_rows, False, skipped + seen
            if self.query.tests and read > SCAN:
                raise self._beyond("this filter")
        return page_rows, True, seen

    async def all(self, purpose: str) -> list[Sample]:
        """Return all rows, for what the server cannot do."""
        if await self.count() > SCAN:
            raise self._beyond(purpose)
        return [row async for batch in self.batches() for row in batch.rows]

    def _beyond(self, purpose: str) -> WindowExceededError:
        reason = f"{purpose} is evaluated here, over {SCAN:,} samples at most, and '{self.view.name}' has more"
        return WindowExceededError(reason, hint="name a shorter time, or filter by labels", details={"window": SCAN})

    def cells(self, rows: list[Sample], columns: list[Column]) -> list[list[Cell]]:
        """Return the cells of rows. Raises ObjectChangedError for a label that is new since the view was read (M7)."""
        labels, lines = self.view.labels, list[list[Cell]]()
        label_names = {*labels.values(), "__name__"}
        names = [(column.name, labels.get(column.name)) for column in columns]
        for row in rows:
            if not label_names.issuperset(row.labels):
                self._forget(self.view.name, None)
                raise ObjectChangedError(f"'{self.view.name}' has new labels", hint="send the call again")
            own: dict[str, Any] = {TIME: instant_text(row.at), VALUE: number_cell(row.value), SERIES: row.series}
            lines.append([own[name] if label is None else row.labels.get(label) for name, label in names])
        return lines

    async def _read(self, since: int, until: int) -> list[Sample]:
        def shape(matrix: Matrix) -> list[Sample]:
            rows = [*samples(matrix, self._features)]
            if strays := [row.at for row in rows if not since - 1 <= row.at <= until]:  # the ends differ, see M4
                raise ValueError(f"a sample of {strays[0]} ms does not lie in the span that was asked for")
            return [row for row in rows if since <= row.at < until]

        # VictoriaMetrics looks into no day of which a range reaches the first millisecond only.
        end = until + self._features.victoria
        rows: list[Sample] = await self._ask(self.selector + self._range(end - since), end, MATRIX, shape)
        return rows

    def _range(self, length: int) -> str:
        """Spell milliseconds; VictoriaMetrics reckons in floats and rounds down: 4007 would be 4006 (M4)."""
        return f"[{length}.5ms]" if self._features.victoria else f"[{length}ms]"

    async def _ask(self, expression: str, until: int, kind: Any, shape: Callable[[Any], Any]) -> Any:
        form = {"query": expression, "time": f"{(until - 1) / 1000:.3f}"}
        form |= {"nocache": "1"} if self._features.victoria else {}  # or the last 30 s are left out
        request = HttpRequest("POST", "/api/v1/query", urlencode(form), FORM)
        return await self._send(request, self.notes, kind, shape)


def _first(instant_or_none: str | None, default: int) -> int:
    """Return the first millisecond that is not before an instant."""
    return default if instant_or_none is None else ceil(instant(instant_or_none) * 1000)
