"""The sidebar and the grid: objects, columns, pages, counts, cells, what a filter sends, and saved queries."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import asdict

from dragoman import Filter, RawQuery, Sort, Span
from dragoman_api.columns import LISTS, VALUELESS, Operator
from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import as_typed, shell_line
from dragoman_workbench.cells import answer_page, answer_summary, read_key, shown
from dragoman_workbench.messages.base import Done
from dragoman_workbench.messages.connections import Described, Objects
from dragoman_workbench.messages.rows import (
    CellAnswer,
    Counted,
    Explained,
    FilterRow,
    QueryList,
    RowsAsked,
    SavedQuery,
    SortKey,
    TimeSpan,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from dragoman import Rows, Runtime, Session
    from dragoman_workbench.messages.base import RouteAnswer
    from dragoman_workbench.messages.connections import DescriptionAsked, ObjectsAsked, OnConnection
    from dragoman_workbench.messages.rows import (
        CellAsked,
        CountAsked,
        ExplainAsked,
        PageAnswer,
        PageAsked,
        QueryNamed,
        SaveQuery,
        Summarized,
        SummaryAsked,
    )
    from dragoman_workbench.open_connections import OpenConnections


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
    if op in VALUELESS:
        return Filter(row.column, op, None, row.group, row.case)
    return Filter(row.column, op, [*row.values] if op in LISTS else row.value or "", row.group, row.case)


def span_of(span: TimeSpan | None) -> Span:
    """Return the span of time as the session takes it."""
    return Span() if span is None else Span(since=span.since, until=span.until, all_time=span.all_time)


def rows_of(session: Session, view: RowsAsked) -> Rows:
    """Return the rows that a message chooses.

    Raises:
        ConfigurationError: A filter row has an unknown operator (code ``filter-syntax``, ``details["row"]``).
    """
    return session.rows(
        view.object,
        filters=filters_of(view.filters),
        match=view.match,
        sort=[Sort(key.column, key.descending) for key in view.sort],
        columns=view.columns,
        tenant=view.tenant,
        revision=view.revision,
        span=span_of(view.span),
        now=view.now,
        residual=view.residual,
    )


def view_of(connection: str, selection: Any) -> RowsAsked:
    """Return the message that chooses the rows of a selection."""
    span = None if selection.span == Span() else TimeSpan(**asdict(selection.span))
    return RowsAsked(
        connection=connection,
        object=selection.object,
        filters=[_row(row) for row in selection.filters],
        match=selection.match,
        sort=[SortKey(column=key.column, descending=key.descending) for key in selection.sort],
        columns=None if selection.columns is None else [*selection.columns],
        span=span,
        tenant=selection.tenant,
        revision=selection.revision,
        now=None if selection.now is None else selection.now.isoformat(),
        residual=selection.residual,
    )


def _row(row: Filter | RawQuery) -> FilterRow:
    if isinstance(row, RawQuery):
        return FilterRow(value=row.text)
    values = [as_typed(value) for value in row.value] if isinstance(row.value, list) else []
    value = None if row.value is None or isinstance(row.value, list) else as_typed(row.value)
    return FilterRow(column=row.column, op=str(row.op), value=value, values=values, group=row.group, case=row.case)


class GridRoutes:
    """Routes that read from open connections, and keep what rows a person reads again."""

    def __init__(self, connections: OpenConnections, runtime: Runtime) -> None:
        self._open, self._runtime = connections, runtime

    @property
    def routes(self) -> Mapping[str, Callable[[Any], Awaitable[RouteAnswer]]]:
        """The routes by name."""
        return {
            "objects": self.objects,
            "describe": self.describe,
            "page": self.page,
            "count": self.count,
            "cell": self.cell,
            "summarize": self.summarize,
            "explain": self.explain,
            "queries": self.queries,
            "queries/save": self.save_query,
            "queries/remove": self.remove_query,
        }

    async def objects(self, request: ObjectsAsked) -> Objects:
        """List objects."""
        session = await self._open.session(request.connection)
        listing = await session.objects(
            parent=request.parent, contains=request.contains, cursor=request.cursor, limit=request.limit
        )
        return Objects(objects=listing.objects, notes=listing.notes, next=listing.next)

    async def describe(self, request: DescriptionAsked) -> Described:
        """Describe the columns of an object."""
        session = await self._open.session(request.connection)
        description = await session.describe(request.object)
        return Described(
            object=description.object,
            columns=description.columns,
            structure=description.structure,
            notes=description.notes,
            time=description.time,
        )

    async def page(self, request: PageAsked) -> PageAnswer:
        """Fetch a page of rows."""
        session = await self._open.session(request.connection)
        began = time.perf_counter()
        page = await rows_of(session, request).page(
            limit=request.limit, offset=request.offset, total=request.total, cursor=request.cursor
        )
        return answer_page(page, seconds=time.perf_counter() - began)

    async def count(self, request: CountAsked) -> Counted:
        """Count rows."""
        session = await self._open.session(request.connection)
        count = await rows_of(session, request).count()
        return Counted(rows=str(int(count)), notes=count.notes)

    async def cell(self, request: CellAsked) -> CellAnswer:
        """Fetch a whole value."""
        session = await self._open.session(request.connection)
        key = read_key(request.key)
        return CellAnswer(
            cell=shown(await session.rows(key.object, revision=request.revision).cell(key, request.column))
        )

    async def summarize(self, request: SummaryAsked) -> Summarized:
        """Summarize a column."""
        session = await self._open.session(request.connection)
        began = time.perf_counter()
        summary = await rows_of(session, request).summarize(
            request.column, values=request.values, buckets=request.buckets
        )
        return answer_summary(summary, seconds=time.perf_counter() - began)

    async def explain(self, request: ExplainAsked) -> Explained:
        """Explain what is sent for each row of the filter."""
        session = await self._open.session(request.connection)
        rows = rows_of(session, request)
        explained = (await rows.explain()).rows if request.filters else []
        words = rows.command()
        command = "" if any("\0" in word for word in words) else shell_line(words)  # no argument can hold that
        return Explained(rows=explained, command=command, python=rows.script())

    async def queries(self, request: OnConnection) -> QueryList:
        """List the saved queries of a connection."""
        name = request.connection
        texts, hidden = await run_sync(self._runtime.queries(name).all)
        queries = []
        for query, (place, content) in texts.items():
            try:
                rows = view_of(name, content.read())
            except ConfigurationError as error:
                hidden[query] = error
            else:
                queries.append(SavedQuery(name=query, shared=place != name, rows=rows))
        return QueryList(queries=queries, unusable={query: error.message for query, error in hidden.items()})

    async def save_query(self, request: SaveQuery) -> Done:
        """Save rows under a name."""
        session = await self._open.session(request.connection)
        selection = rows_of(session, request.rows).selection
        text = msgspec.json.encode(selection).decode()
        if self._runtime.masked(text) != text:
            hint = "save the query without it, and add the filter when you use the query"
            raise ConfigurationError("the query holds a secret of a connection", hint=hint, code="secret-in-query")
        save = partial(self._runtime.queries(request.connection).save, replace=request.replace)
        await run_sync(save, request.name, selection)
        return Done()

    async def remove_query(self, request: QueryNamed) -> Done:
        """Remove a query of a connection."""
        await run_sync(self._runtime.queries(request.connection).remove, request.name)
        return Done()
