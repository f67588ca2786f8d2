"""The sidebar and the grid: objects, columns, pages, counts, cells, and what a filter sends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dragoman import Filter, RawQuery, Sort, Span
from dragoman_api.columns import Operator
from dragoman_api.errors import ConfigurationError
from dragoman_workbench.cells import answer_page, answer_summary, read_key, shown
from dragoman_workbench.equivalents import command_line, python_code
from dragoman_workbench.messages import CellAnswer, Counted, Described, Explained, Objects

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from dragoman_workbench.messages import (
        CellAsked,
        CountAsked,
        DescriptionAsked,
        ExplainAsked,
        FilterRow,
        Message,
        ObjectsAsked,
        PageAnswer,
        PageAsked,
        Selection,
        SortKey,
        Summarized,
        SummaryAsked,
        TimeSpan,
    )
    from dragoman_workbench.open_connections import OpenConnections

_LISTS = (Operator.IN, Operator.NOT_IN, Operator.BETWEEN)
_VALUELESS = (Operator.NULL, Operator.NOT_NULL, Operator.EMPTY, Operator.NOT_EMPTY)


def filters_of(rows: Sequence[FilterRow]) -> list[Filter | RawQuery]:
    """Return the filter rows of the page as the session takes them.

    Raises:
        ConfigurationError: A row has an unknown operator (code ``filter-syntax``, ``details["row"]``).
    """
    return [_filter(number, row) for number, row in enumerate(rows)]


def _filter(number: int, row: FilterRow) -> Filter | RawQuery:
    if not row.column:
        return RawQuery(row.value or "")
    try:
        op = Operator(row.op)
    except ValueError:
        details = {"row": number}
        raise ConfigurationError(f"{row.op!r} is not an operator", code="filter-syntax", details=details) from None
    if op in _VALUELESS:
        return Filter(row.column, op, None, row.group, row.case)
    return Filter(row.column, op, [*row.values] if op in _LISTS else row.value or "", row.group, row.case)


def span_of(span: TimeSpan | None) -> Span:
    """Return the span of time as the session takes it."""
    return Span() if span is None else Span(since=span.since, until=span.until, all_time=span.all_time)


def sort_of(keys: Sequence[SortKey]) -> list[Sort]:
    """Return the sort keys as the session takes them."""
    return [Sort(key.column, key.descending) for key in keys]


def chosen(asked: Selection) -> dict[str, Any]:
    """Return the arguments that all reads of rows share."""
    return {
        "filters": filters_of(asked.filters),
        "match": asked.match,
        "tenant": asked.tenant,
        "revision": asked.revision,
        "span": span_of(asked.span),
        "now": asked.now,
    }


class GridRoom:
    """Routes that read from open connections."""

    def __init__(self, connections: OpenConnections) -> None:
        self._open = connections

    @property
    def routes(self) -> Mapping[str, Callable[[Any], Awaitable[Message]]]:
        """The routes by name."""
        return {
            "objects": self.objects,
            "describe": self.describe,
            "page": self.page,
            "count": self.count,
            "cell": self.cell,
            "summarize": self.summarize,
            "explain": self.explain,
        }

    async def objects(self, asked: ObjectsAsked) -> Objects:
        """List objects."""
        session = await self._open.session(asked.connection)
        found = await session.objects(
            parent=asked.parent, contains=asked.contains, cursor=asked.cursor, limit=asked.limit
        )
        return Objects(objects=found.objects, notes=found.notes, next=found.next)

    async def describe(self, asked: DescriptionAsked) -> Described:
        """Describe the columns of an object."""
        session = await self._open.session(asked.connection)
        found = await session.describe(asked.object)
        return Described(
            object=found.object, columns=found.columns, structure=found.structure, notes=found.notes, time=found.time
        )

    async def page(self, asked: PageAsked) -> PageAnswer:
        """Fetch a page of rows."""
        session = await self._open.session(asked.connection)
        began = time.perf_counter()
        page = await session.page(
            asked.object,
            **chosen(asked),
            sort=sort_of(asked.sort),
            offset=asked.offset,
            limit=asked.limit,
            columns=asked.columns,
            total=asked.total,
            cursor=asked.cursor,
            residual=asked.residual,
        )
        return answer_page(page, seconds=time.perf_counter() - began)

    async def count(self, asked: CountAsked) -> Counted:
        """Count rows."""
        session = await self._open.session(asked.connection)
        found = await session.count(asked.object, **chosen(asked))
        return Counted(rows=str(int(found)), notes=found.notes)

    async def cell(self, asked: CellAsked) -> CellAnswer:
        """Fetch a whole value."""
        session = await self._open.session(asked.connection)
        return CellAnswer(cell=shown(await session.cell(read_key(asked.key), asked.column, revision=asked.revision)))

    async def summarize(self, asked: SummaryAsked) -> Summarized:
        """Summarize a column."""
        session = await self._open.session(asked.connection)
        began = time.perf_counter()
        found = await session.summarize(
            asked.object, asked.column, **chosen(asked), values=asked.values, buckets=asked.buckets
        )
        return answer_summary(found, seconds=time.perf_counter() - began)

    async def explain(self, asked: ExplainAsked) -> Explained:
        """Explain what is sent for each row of the filter."""
        session = await self._open.session(asked.connection)
        rows = []
        if asked.filters:
            compiled = await session.compile(
                asked.object, filters=filters_of(asked.filters), match=asked.match, residual=asked.residual
            )
            rows = compiled.rows
        return Explained(rows=rows, command=command_line(asked), python=python_code(asked))
