"""The rows of a query, read in spans of time that hold a bounded number of samples each."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from math import ceil
from typing import TYPE_CHECKING, Any

from dragoman_api import Cell, Column, HttpRequest, Note, QueryError, TimeRange
from dragoman_api.errors import ObjectChangedError, WindowExceededError
from dragoman_api.kit.exchanges import send_all
from dragoman_api.kit.operands import instant

from .answers import Features, Matrix, Vector, counted, form, number_cell, samples
from .columns import SERIES, TIME, VALUE, Sample, View, instant_text
from .filters import Query, predicate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Ask = Callable[[HttpRequest, Any, Callable[[Any], Any], list[Note]], Awaitable[Any]]

CHUNK = 20_000
"""Samples that one request reads at most, unless more share one millisecond (M4)."""

SCAN = 200_000
"""Samples that a page, a count or a summary reads at most where the server cannot filter or sort (M10)."""

DAY = 86_400_000
EARLIEST = 2 * DAY
"""The first instant that is read: VictoriaMetrics finds nothing at all in a range that begins on 1970-01-01 (M5)."""

_PARTS = 8
_TOO_MANY = re.compile(r"too many samples|maxSamplesPer|cannot select more than|timed out", re.IGNORECASE)


class SampleRows:
    """The rows of a query up to one instant, in the order of time, then of series; a walk reads them in spans (M4).

    Attributes:
        since: The first millisecond of the rows.
        until: The first one after them.
        notes: What the answers warn of.
    """

    def __init__(
        self,
        view: View,
        query: Query,
        time_range: TimeRange | None = None,
        until: int | None = None,
        *,
        features: Features,
        ask: Ask,
        forget: Callable[[str, None], object],
    ) -> None:
        self._forget = forget
        self.view, self.query, self.notes, self._features, self._ask = view, query, list[Note](), features, ask
        since, end = (time_range.since, time_range.until) if time_range else (None, None)
        self.since = max(query.since, EARLIEST if since is None else ceil(instant(since) * 1000))
        ends = [(until or int(time.time() * 1000) + 1) if end is None else ceil(instant(end) * 1000), query.until]
        self.until = min(edge for edge in ends if edge is not None)
        self._number: int | None = None

    async def count(self) -> int:
        """Count the samples on the server, once."""
        if self._number is None:
            self._number = await self._count(self.since, self.until)
        return self._number

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
            count: int = await self._query("sum(count_over_time({}))", length, until, Vector, counted)
        except QueryError as error:
            if until - since < 2 or not _TOO_MANY.search(error.message):
                raise
            middle = (since + until) // 2
            return await self._count(since, middle) + await self._count(middle, until)
        return count

    def go_on(self, since: int) -> None:
        """Leave out what lies before an instant; the next count is one of the rest."""
        self.since, self._number = since, None

    async def batches(self, *, backwards: bool = False, skip: int = 0) -> AsyncIterator[tuple[int, int, list[Sample]]]:
        """Yield the end of each span that has samples, the number of those before it, and its samples.

        Args:
            backwards: The last span comes first.
            skip: Spans that lie whole among so many first samples are not read.
        """
        before = 0
        spans = [(self.since, self.until, await self.count())]
        while spans:
            since, until, number = spans.pop()
            if before + number <= skip or number == 0:
                before += number
            elif number <= CHUNK or until - since < 2:
                rows = await self._read(since, until)
                rows.sort(key=lambda row: (row.at, row.series), reverse=backwards)
                if len(rows) < number:
                    reason = f"the server counted {number:,} samples of '{self.view.name}', and then sent {len(rows):,}"
                    raise QueryError(reason, hint="samples may have been deleted meanwhile: send the call again")
                yield until, before, rows
                before += len(rows)
            else:
                step = -(-(until - since) // _PARTS)
                edges = [(at, min(at + step, until)) for at in range(since, until, step)]
                counts = await send_all(edges, lambda edge: self._count(*edge))
                parts = [(*edge, count) for edge, count in zip(edges, counts, strict=True)]
                spans += parts if backwards else parts[::-1]

    async def take(self, offset: int, limit: int, *, backwards: bool) -> list[Sample]:
        """Return the rows of a page of all samples."""
        page_rows = list[Sample]()
        async for _, before, rows in self.batches(backwards=backwards, skip=offset):
            first = max(0, offset - before)
            page_rows += rows[first : first + limit - len(page_rows)]
            if len(page_rows) == limit:
                break
        return page_rows

    async def all(self, purpose: str) -> list[Sample]:
        """Return all rows, for what the server cannot do."""
        if await self.count() > SCAN:
            reason = f"{purpose} is evaluated here, over {SCAN:,} samples at most, and '{self.view.name}' has more"
            hint = "name a shorter time, or filter by labels"
            raise WindowExceededError(reason, hint=hint, details={"window": SCAN})
        return [row async for _, _, rows in self.batches() for row in self.chosen(rows)]

    def chosen(self, rows: list[Sample]) -> list[Sample]:
        """Return the samples that the tests of the filter leave."""
        return [*filter(predicate(self.query, self.view), rows)] if self.query.tests else rows

    def cells(self, rows: list[Sample], columns: list[Column]) -> list[list[Cell]]:
        """Return the cells of rows. Raises ObjectChangedError for a label that is new since the view was read (M7)."""
        if not {*self.view.labels.values(), "__name__"}.issuperset(label for row in rows for label in row.labels):
            self._forget(self.view.name, None)
            raise ObjectChangedError(f"'{self.view.name}' has new labels", hint="send the call again")
        names = [(column.name, self.view.labels.get(column.name)) for column in columns]
        lines = list[list[Cell]]()
        for row in rows:
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
        rows: list[Sample] = await self._query("{}", end - since, end, Matrix, shape)
        return rows

    async def _query(self, promql: str, length: int, until: int, kind: Any, shape: Callable[[Any], Any]) -> Any:
        """Send a query of the samples of some milliseconds before an instant.

        VictoriaMetrics reckons in floats and rounds down: 4007 ms would be 4006 (M4). Without ``nocache`` it leaves out
        the last 30 s.
        """
        victoria = self._features.victoria
        selector = f"{{{','.join([self.view.matcher, *self.query.matchers])}}}[{length}{'.5' if victoria else ''}ms]"
        fields = {"query": promql.replace("{}", selector), "time": f"{(until - 1) / 1000:.3f}"}
        fields |= {"nocache": "1"} if victoria else {}
        return await self._ask(form("/api/v1/query", **fields), kind, shape, self.notes)
