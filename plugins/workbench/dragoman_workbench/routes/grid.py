"""The sidebar and the grid: objects, columns, pages, counts, cells, what a filter sends, and saved queries."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from anyio.to_thread import run_sync

from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import shell_line
from dragoman_workbench.cells import answer_page, answer_similar, answer_summary, read_key, shown
from dragoman_workbench.messages.base import Done
from dragoman_workbench.messages.rows import CellAnswer, Counted, Explained, QueryList, SavedQuery

if TYPE_CHECKING:
    from dragoman import Rows, Runtime
    from dragoman_api.columns import Description, ObjectList
    from dragoman_api.connections import ServerStatus
    from dragoman_workbench.messages.connections import DescriptionAsked, ObjectsAsked, OnConnection
    from dragoman_workbench.messages.rows import (
        CellAsked,
        PageAnswer,
        PageAsked,
        QueryNamed,
        RowsAsked,
        SaveQuery,
        SimilarAsked,
        Summarized,
        SummaryAsked,
    )
    from dragoman_workbench.open_connections import OpenConnections


class GridRoutes:
    """Routes that read from open connections."""

    def __init__(self, connections: OpenConnections) -> None:
        self._open = connections

    async def objects(self, request: ObjectsAsked) -> ObjectList:
        """List objects."""
        session = await self._open.session(request.connection)
        return await session.objects(
            parent=request.parent, contains=request.contains, cursor=request.cursor, limit=request.limit
        )

    async def status(self, request: OnConnection) -> ServerStatus:
        """Read how the server and its nodes are."""
        return await (await self._open.session(request.connection)).status()

    async def describe(self, request: DescriptionAsked) -> Description:
        """Describe the columns of an object."""
        return await (await self._open.session(request.connection)).describe(request.object)

    async def page(self, request: PageAsked) -> PageAnswer:
        """Fetch a page of rows."""
        session = await self._open.session(request.connection)
        began = time.perf_counter()
        page = await session.select(request.rows).page(
            limit=request.limit, offset=request.offset, total=request.total, cursor=request.cursor
        )
        return answer_page(page, seconds=time.perf_counter() - began)

    async def similar(self, request: SimilarAsked) -> PageAnswer:
        """Find the rows nearest to a row."""
        session, key = await self._open.session(request.connection), read_key(request.key)
        began = time.perf_counter()
        page = await session.select(request.rows).similar(key, column=request.column, limit=request.limit)
        return answer_similar(page, key, seconds=time.perf_counter() - began)

    async def count(self, request: RowsAsked) -> Counted:
        """Count rows."""
        session = await self._open.session(request.connection)
        count = await session.select(request.rows).count()
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
        summary = await session.select(request.rows).summarize(
            request.column, values=request.values, buckets=request.buckets
        )
        return answer_summary(summary, seconds=time.perf_counter() - began)

    async def explain(self, request: RowsAsked) -> Explained:
        """Explain what is sent for each row of the filter."""
        session = await self._open.session(request.connection)
        rows = session.select(request.rows)
        explained = (await rows.explain()).rows if request.rows.filters else []
        command, python = await run_sync(_spelled, rows)  # many values take long
        return Explained(rows=explained, command=command, python=python)


class QueryRoutes:
    """Routes about the rows that a person reads again."""

    def __init__(self, connections: OpenConnections, runtime: Runtime) -> None:
        self._open, self._runtime = connections, runtime

    async def queries(self, request: OnConnection) -> QueryList:
        """List the saved queries of a connection."""
        name = request.connection
        texts, hidden = await run_sync(self._runtime.queries(name).all)
        queries = []
        for query, (place, content) in texts.items():
            try:
                rows = content.read()
            except ConfigurationError as error:
                hidden[query] = error
            else:
                queries.append(SavedQuery(name=query, shared=place != name, rows=rows))
        return QueryList(queries=queries, unusable={query: error.message for query, error in hidden.items()})

    async def save(self, request: SaveQuery) -> Done:
        """Save rows under a name."""
        (await self._open.session(request.connection)).select(request.rows)
        text = msgspec.json.encode(request.rows).decode()
        if self._runtime.masked(text) != text:
            hint = "save the query without it, and add the filter when you use the query"
            raise ConfigurationError("the query holds a secret of a connection", hint=hint, code="secret-in-query")
        save = partial(self._runtime.queries(request.connection).save, replace=request.replace)
        await run_sync(save, request.name, request.rows)
        return Done()

    async def remove(self, request: QueryNamed) -> Done:
        """Remove a query of a connection."""
        await run_sync(self._runtime.queries(request.connection).remove, request.name)
        return Done()


def _spelled(rows: Rows) -> tuple[str, str]:
    """Return the command that reads rows, and the script; no command if no argument can hold a part of it."""
    words = rows.command()
    return "" if any("\0" in word for word in words) else shell_line(words), rows.script()
