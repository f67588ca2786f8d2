"""One open connection, with a typed method for each operation."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import msgspec

from dragoman_api import events
from dragoman_api.changes import Delete, Drop, Insert, Outcome, OutcomeStatus, PlanRequest
from dragoman_api.columns import Note
from dragoman_api.connections import Health
from dragoman_api.console import ConsoleText
from dragoman_api.errors import (
    ConfigurationError,
    DragomanError,
    DriverFaultError,
    FilterNotSupportedError,
    ObjectChangedError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.filters import FilterRequest, RawQuery
from dragoman_api.grid import MAX_ROWS, CellRequest, CountRequest, PageRequest
from dragoman_api.hookspecs import DriverSpec
from dragoman_api.masking import Mask

from .calls import Calls
from .console.variables import fill
from .exports import Export, ExportSource, choose, choose_columns, read_row
from .filter_notes import filter_notes
from .settings import Limit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from dragoman_api.cells import Cell
    from dragoman_api.changes import Change, HttpRequest, Plan
    from dragoman_api.columns import Description, Object
    from dragoman_api.connections import Server
    from dragoman_api.console import Answer, ConsoleRequest
    from dragoman_api.events import Event
    from dragoman_api.filters import CompiledFilter, Filter
    from dragoman_api.grid import Page, RowKey, Sort

    from .exports import ExportResult
    from .live_driver import LiveDriver

T = TypeVar("T")

MAX_ANSWERS = 1_000
"""Answers to one console request at most."""

_CHANGES = 3  # times that a call is made again because its object changed


class Session:
    """An open connection.

    Made by `dragoman.open` and `Runtime.open`. Every method raises DragomanError and nothing else: among them
    Refused (an automation vetoed the call), UnsupportedOperationError (the driver cannot), and the SandboxErrors
    (the driver's process failed; the next call starts it again).

    Attributes:
        name: The connection's name.
        type: Its database type.
    """

    def __init__(
        self, driver: LiveDriver, *, emit: Callable[[Event], None], keep_alive: int = 300, limit: Limit | None = None
    ) -> None:
        self._driver = driver
        self._emit = emit
        self._calls = Calls(driver, emit=emit, limit=limit or Limit())
        self._keep_alive = keep_alive
        self._described: dict[str, int] = {}
        self._describing = anyio.Lock()
        self._healthy = True
        self.name = driver.info.name
        self.type = driver.info.type

    @property
    def server(self) -> Server:
        """The product and version of the server that answered."""
        return self._driver.server

    @property
    def plugin(self) -> str:
        """The id of the driver's plugin."""
        return self._driver.generation.plugin

    @property
    def plugin_version(self) -> str:
        """The driver's version."""
        return self._driver.generation.version

    @property
    def sandbox(self) -> str:
        """The driver's sandbox level and what it lacks: ``full``, ``partial: no Landlock …``."""
        return self._driver.sandbox

    @property
    def warnings(self) -> list[str]:
        """Warnings about this connection."""
        return self._driver.warnings

    def can(self, hook: str) -> bool:
        """Return whether the driver implements a hook (`fetch_cell`, `export_rows`, …)."""
        return self._driver.offers(hook)

    async def objects(self) -> list[Object]:
        """List the objects that can be browsed."""
        return await self._calls.run(DriverSpec.list_objects)

    async def describe(self, object: str) -> Description:  # noqa: A002 - the design's word
        """Describe the columns of one object, as the server has them now."""
        description = await self._calls.run(DriverSpec.describe_object, object, object=object)
        self._described[object] = self._driver.incarnation
        return description

    async def _know(self, name: str) -> bool:
        """Describe an object before another hook names it, as the contract promises; return whether it was needed."""
        if self._driver.alive and self._described.get(name) == self._driver.incarnation:
            return False  # a lock, even a free one, is a turn of the event loop
        async with self._describing:
            await self._driver.hooks()
            if new := self._described.get(name) != self._driver.incarnation:
                await self.describe(name)
            return new

    async def compile(self, object: str, *, filters: Sequence[Filter | RawQuery], match: str = "all") -> CompiledFilter:  # noqa: A002
        """Compile filter rows for the columns as the server has them now, and explain each; no rows are fetched.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        return await self._compile(object, filters, match, fresh=True)

    async def _compile(
        self,
        object: str,  # noqa: A002
        filters: Sequence[Filter | RawQuery],
        match: str,
        *,
        fresh: bool,
    ) -> CompiledFilter:
        if match not in ("all", "any"):
            raise ConfigurationError(f"match is {match!r}; it can be all or any")
        new = await self._know(object)
        if fresh and not new:
            await self.describe(object)
        request = FilterRequest(object=object, rows=list(filters), match=match)
        try:
            compiled = await self._calls.run(DriverSpec.compile_filter, request, object=object)
        except FilterNotSupportedError as error:
            if not (fresh or new):  # the column may have come since
                return await self._compile(object, filters, match, fresh=True)
            column, operator = (str(error.details.get(key, "")) for key in ("column", "operator"))
            reason = str(error.details.get("reason") or error.message)
            self._emit(
                events.FilterRejected(
                    connection=self.name, object=object, column=column, operator=operator, reason=reason
                )
            )
            raise
        if stray := [told.row for told in compiled.rows if not 0 <= told.row < len(filters)]:
            raise DriverFaultError(f"the driver explained row {stray[0]} of a filter of {len(filters)} rows")
        return compiled

    async def _filter(
        self,
        object: str,  # noqa: A002
        filters: Sequence[Filter | RawQuery],
        match: str,
        *,
        fresh: bool = False,
    ) -> CompiledFilter | None:
        rows = [row for row in filters if not (isinstance(row, RawQuery) and not row.text.strip())]
        if rows:
            return await self._compile(object, rows, match, fresh=fresh)
        await self._know(object)
        return None

    async def _unchanged(self, call: Callable[[], Awaitable[T]]) -> tuple[T, list[Note]]:
        """Make a call, and again if the object's columns changed meanwhile; return notes on these changes too."""
        notes: list[Note] = []
        while True:
            try:
                return await call(), notes
            except ObjectChangedError as error:
                if len(notes) == _CHANGES:
                    raise
                notes.append(Note(code=error.code, reason=error.message))

    async def page(
        self,
        object: str,  # noqa: A002
        *,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        sort: Sequence[Sort] = (),
        offset: int = 0,
        limit: int = 100,
        columns: Sequence[str] | None = None,
        total: bool = True,
        cursor: str | None = None,
        tenant: str | None = None,
    ) -> Page:
        """Fetch one page of rows; see `dragoman_api.grid.PageRequest` for the arguments.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked; nothing was fetched.
            WindowExceededError: The page is beyond the server's result window.
        """
        if offset < 0 or not 1 <= limit <= MAX_ROWS:
            text = f"a page has 1 to {MAX_ROWS:,} rows from an offset of 0 or more, not {limit} from {offset}"
            raise ConfigurationError(text)
        self._check_tenant(tenant)
        request = PageRequest(
            object=object,
            sort=list(sort),
            offset=offset,
            limit=limit,
            columns=None if columns is None else list(columns),
            total=total,
            cursor=cursor,
            tenant=tenant,
        )
        began = 0.0
        compiled: CompiledFilter | None = None

        async def fetch() -> Page:
            nonlocal began, compiled
            compiled = await self._filter(object, filters, match)
            asked = msgspec.structs.replace(request, filter=compiled)
            began = time.perf_counter()
            return await self._calls.run(DriverSpec.fetch_page, asked, object=object, rows=limit)

        page, changed = await self._unchanged(fetch)
        page = msgspec.structs.replace(page, notes=[*changed, *filter_notes(compiled), *page.notes])
        self._emit(
            events.PageFetched(
                connection=self.name,
                object=object,
                rows=len(page.cells),
                seconds=time.perf_counter() - began,
                notes=[note.code for note in page.notes],
            )
        )
        return page

    async def count(
        self,
        object: str,  # noqa: A002
        *,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        tenant: str | None = None,
    ) -> int:
        """Count the rows of an object under a filter, exactly; `compile` tells what the filter makes approximate."""
        self._check_tenant(tenant)

        async def count() -> int:
            request = CountRequest(object=object, filter=await self._filter(object, filters, match), tenant=tenant)
            return await self._calls.run(DriverSpec.count_rows, request, object=object)

        return (await self._unchanged(count))[0]

    async def cell(self, key: RowKey, column: str) -> Cell:
        """Fetch the whole value of one cell, uncut."""
        await self._know(key.object)
        request = CellRequest(key=key, column=column)

        async def fetch() -> Cell:
            return await self._calls.run(DriverSpec.fetch_cell, request, object=key.object)

        return (await self._unchanged(fetch))[0]

    def _check_tenant(self, tenant: str | None) -> None:
        if tenant is not None and "tenants" not in self._driver.generation.manifest.capabilities:
            raise UnsupportedOperationError(f"the driver {self.plugin} has no tenants; {tenant!r} cannot be used")

    async def plan(self, *changes: Change, undo: bool = False) -> Plan:
        """Build the exact requests that would apply the changes; nothing is written.

        Args:
            changes: Changes to the same row are applied in this order.
            undo: Fill `Plan.undo` with the changes that restore the rows.
        """
        for change in changes:
            self._check_tenant(change.tenant if isinstance(change, Insert) else None)
        for name in sorted({_object_of(change) for change in changes if not isinstance(change, Drop)}):
            await self._know(name)
        request, first = PlanRequest(changes=list(changes), undo=undo), _object_of(changes[0]) if changes else None
        plan = await self._calls.run(DriverSpec.plan_change, request, object=first, changes=changes)
        return msgspec.structs.replace(plan, changes=list(changes))

    async def apply(self, plan: Plan) -> list[Outcome]:
        """Send a plan's exact requests and report the outcome of each change, including refusals."""
        changes = tuple(plan.changes)
        outcomes: list[Outcome] = list(plan.refusals)
        if plan.planned:
            outcomes += await self._calls.run(
                DriverSpec.apply_change,
                plan,
                object=_object_of(changes[0]) if changes else None,
                writes=True,
                requests=tuple(plan.requests),
                changes=changes,
            )
        told = {outcome.change: outcome for outcome in outcomes}
        numbers = range(len(changes)) if changes else sorted(told)
        outcomes = [told.get(number) or _untold(number) for number in numbers]
        for outcome in outcomes:
            self._emit(self._event_of(outcome, changes[outcome.change] if changes else None))
        return outcomes

    def _event_of(self, outcome: Outcome, change: Change | None) -> Event:
        name = _object_of(change) if change else ""
        about: dict[str, Any] = {"connection": self.name, "object": name}
        if outcome.status is not OutcomeStatus.APPLIED:
            return events.RowSkipped(**about, id=outcome.id or "", status=outcome.status, reason=outcome.reason)
        match change:
            case Drop():
                return events.ObjectDropped(**about)
            case Insert():
                return events.RowInserted(**about, id=outcome.id or "")
            case Delete():
                return events.RowDeleted(**about, id=outcome.id or "")
        return events.RowUpdated(**about, id=outcome.id or "")

    async def parse(self, text: str, *, variables: Mapping[str, str] | None = None) -> list[ConsoleRequest]:
        """Split a console text into requests, each marked read or write; nothing is sent.

        Args:
            text: In the server's own language.
            variables: Values of `${name}` in it; None leaves the text as it is.

        Raises:
            ConsoleSyntaxError: The text cannot be read; details hold line and column.
            ConfigurationError: A variable has no value (code ``variable-unknown``).
        """
        text = text if variables is None else fill(text, variables)
        return await self._calls.run(DriverSpec.parse_console, ConsoleText(text))

    async def execute(self, request: ConsoleRequest) -> Answer:
        """Send one console request and build its result."""
        sent: HttpRequest = request.request
        began = time.perf_counter()
        answer = await self._calls.run(DriverSpec.execute_console, request, writes=request.writes, requests=(sent,))
        self._emit(
            events.ConsoleExecuted(
                connection=self.name,
                method=sent.method,
                path=Mask().request(sent.path),
                status=answer.status,
                seconds=time.perf_counter() - began,
            )
        )
        return answer

    async def console(self, text: str, *, variables: Mapping[str, str] | None = None) -> list[Answer]:
        """Send every request of a console text, in order; see `parse` for the arguments."""
        answers: list[Answer] = []
        for request in await self.parse(text, variables=variables):
            answer: Answer | None = await self.execute(request)
            most = len(answers) + MAX_ANSWERS
            while answer is not None:
                if len(answers) == most:
                    raise DriverFaultError(f"more than {MAX_ANSWERS:,} answers to one request")
                answers.append(msgspec.structs.replace(answer, next=None))
                answer = answer.next
        return answers

    async def ping(self) -> Health:
        """Check whether the connection still works; a change of health emits an event (W35)."""
        try:
            health = await self._calls.run(DriverSpec.ping)
        except Refused:
            raise
        except DragomanError as error:
            health = Health(ok=False, reason=error.message, code=error.code)
        if health.ok != self._healthy:
            self._healthy = health.ok
            state = "ok" if health.ok else "failed"
            about: dict[str, Any] = {"connection": self.name, "reason": health.reason, "code": health.code}
            self._emit(events.ConnectionHealthChanged(state=state, **about))
        return health

    async def rows(
        self,
        object: str,  # noqa: A002
        *,
        form: str = "documents",
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        columns: Sequence[str] | None = None,
        tenant: str | None = None,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Iterate over the rows of an object, in constant memory; integers of any size stay exact.

        An integer of more than 4,300 digits becomes a Decimal; a number beyond Decimal's range becomes its text.

        A caller that stops early must close the iterator to release the server's resources:
        ``async with aclosing(session.rows(...)) as rows``.

        Args:
            object: Its name.
            form: ``documents`` as they are stored, or ``rows`` with id and metadata.
            filters: Rows of the filter.
            match: ``all`` or ``any``.
            columns: The columns to read; a driver may omit costly columns that are not listed.
            tenant: Whose rows, where the object has tenants.
        """
        if form not in list(ExportForm):
            raise ConfigurationError(f"form is {form!r}; it can be {', '.join(ExportForm)}")
        self._check_tenant(tenant)
        request = ExportRequest(
            object=object,
            filter=await self._filter(object, filters, match, fresh=True),
            form=ExportForm(form),
            columns=None if columns is None else list(columns),
            tenant=tenant,
            keep_alive=0,
        )
        async with self._calls.parts(request) as parts:
            async for part in parts:
                for line in part.data.split(b"\n"):
                    if line:
                        yield read_row(line)

    async def export(
        self,
        object: str,  # noqa: A002
        *,
        to: Path | BinaryIO,
        format: str | None = None,  # noqa: A002
        compress: str | None = None,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        columns: Sequence[str] | None = None,
        tenant: str | None = None,
        keep_alive: int | None = None,
        escape_formulas: bool = False,
        resume: bool = False,
        manifest: bool = True,
    ) -> ExportResult:
        """Export an object, or its rows that match a filter, in constant memory.

        Args:
            object: Its name.
            to: A path, which appears only when the export is complete, or an open binary stream.
            format: ``documents`` as they are stored, also called ``ndjson``; ``rows`` with id and metadata; ``csv``;
                ``bulk`` for the server's own bulk endpoint; ``parquet``. None goes by the file's name.
            compress: ``gzip`` or ``zstd``; None goes by the file's name.
            filters: Rows of the filter.
            match: ``all`` or ``any``.
            columns: Of a CSV or Parquet file, in order; None for all.
            tenant: Whose rows, where the object has tenants.
            keep_alive: Seconds for which an interrupted export can be resumed; None for what `config.toml` says.
            escape_formulas: Put an apostrophe before the texts of a CSV file that a spreadsheet would take for a
                formula. If false, the texts stay unchanged and a note counts them.
            resume: Continue an interrupted export of the same rows into the same file.
            manifest: Write ``FILE.manifest.json`` beside the file.

        Returns:
            The content of the manifest: rows, bytes, checksum and so on.

        Raises:
            ConfigurationError: There is no such format or column, or a package for it is missing.
            ExportError: The target cannot be written or resumed.
            QueryError: The server's answer was partial; no file was created.
        """
        source = ExportSource(
            connection=self.name,
            object=object,
            server=f"{self.server.product} {self.server.version}",
            plugin=self.plugin,
            version=self.plugin_version,
        )
        shape = await anyio.to_thread.run_sync(
            partial(choose, to, format=format, compress=compress, escape_formulas=escape_formulas)
        )
        export = Export(source, to=to, shape=shape, resume=resume, emit=self._emit)
        with export.reporting():
            self._check_tenant(tenant)
            table = choose_columns(await self.describe(object), columns) if shape.tabular else []
            compiled = await self._filter(object, filters, match, fresh=not shape.tabular)
            named = [column.name for column in table] if shape.tabular else columns
            request = ExportRequest(
                object=object,
                filter=compiled,
                form=shape.form,
                columns=None if named is None else list(named),
                tenant=tenant,
                keep_alive=(keep_alive or self._keep_alive) if export.resumable else 0,
            )
            return await export.run(request, columns=table, manifest=manifest, parts=self._calls.parts)


def _untold(change: int) -> Outcome:
    reason = "the driver reported no outcome for it"
    return Outcome(change=change, status=OutcomeStatus.UNKNOWN, reason=reason)


def _object_of(change: Change) -> str:
    return change.object if isinstance(change, Insert | Drop) else change.key.object
