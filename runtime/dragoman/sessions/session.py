"""One open connection, with a typed method for each operation."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync

from dragoman.settings import Limit
from dragoman_api import events
from dragoman_api.changes import Drop, Insert, OutcomeStatus, PlanRequest, object_of
from dragoman_api.columns import ObjectsRequest
from dragoman_api.completions import CompletionRequest
from dragoman_api.connections import Health
from dragoman_api.console import ConsoleText
from dragoman_api.errors import ConfigurationError, DragomanError, DriverFaultError, Refused
from dragoman_api.grid import MAX_ROWS, CellRequest, CountRequest, PageRequest
from dragoman_api.hookspecs import DriverSpec
from dragoman_api.masking import Mask
from dragoman_api.previews import PreviewRequest
from dragoman_api.summaries import SummaryRequest
from dragoman_worker.oversized_results import MAX_ANSWERS

from .arguments import check_changes, check_key, check_sort
from .change_events import event_of, total_of, untold
from .counts_and_rows import Count, Rows
from .driver_calls import Calls
from .object_lists import matching, whole_level
from .prepared_reads import Preparation, Scope, until_unchanged
from .result_checks import check_position, check_summary, inside, within
from .split_session import SplitSession
from .table_session import TableSession
from .time_spans import DEFAULT, whole_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from dragoman.connections.curl_commands import CurlCommands
    from dragoman.exports import ExportResult
    from dragoman_api.cells import Cell
    from dragoman_api.changes import Change, HttpRequest, NewObject, Outcome, Plan
    from dragoman_api.columns import Description, ObjectList
    from dragoman_api.completions import Completion
    from dragoman_api.connections import Server
    from dragoman_api.console import Answer, ConsoleRequest
    from dragoman_api.events import Event
    from dragoman_api.filters import CompiledFilter, Filter, RawQuery
    from dragoman_api.grid import Page, RowKey, Sort
    from dragoman_api.summaries import ColumnSummary

    from .live_driver import LiveDriver
    from .time_spans import Span


class Session(SplitSession, TableSession):
    """An open connection.

    Made by `dragoman.open` and `Runtime.open`. Every method raises DragomanError and nothing else: among them
    Refused (an automation vetoed the call), UnsupportedOperationError (the driver cannot), and the SandboxErrors
    (the driver's process failed; the next call starts it again).

    Attributes:
        name: The connection's name.
        type: Its database type.
    """

    def __init__(
        self,
        driver: LiveDriver,
        *,
        emit: Callable[[Event], None],
        keep_alive: int = 300,
        limit: Limit | None = None,
        time_zone: str = "UTC",
    ) -> None:
        self._driver = driver
        self._emit = emit
        self._calls = Calls(driver, emit=emit, limit=limit or Limit())
        self._keep_alive = keep_alive
        self._reads = Preparation(driver, self._calls, emit=emit, time_zone=time_zone)
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

    @property
    def curl(self) -> CurlCommands:
        """Requests of this connection as curl commands: ``session.curl.command(request)``."""
        return self._driver.curl

    def can(self, hook: str) -> bool:
        """Return whether the driver implements a hook (`fetch_cell`, `export_rows`, …)."""
        return self._driver.offers(hook)

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities that the driver's manifest announces."""
        return self._reads.capabilities

    async def objects(
        self, *, parent: str | None = None, contains: str = "", cursor: str | None = None, limit: int | None = None
    ) -> ObjectList:
        """List the objects that can be browsed: one level of their tree.

        Args:
            parent: The branch whose children are wanted; None for the top.
            contains: Only objects whose name contains this text, ignoring case.
            cursor: `ObjectList.next` of an earlier list.
            limit: List one part of about so many objects, whose `next` continues it; None for the whole level.
        """
        request = ObjectsRequest(parent=parent, contains=contains, cursor=cursor)
        if limit is not None:
            return await self._listed(msgspec.structs.replace(request, limit=limit))
        return await whole_level(request, self._listed)

    async def _listed(self, request: ObjectsRequest) -> ObjectList:
        return matching(request, await self._calls.run(DriverSpec.list_objects, request, object=request.parent))

    async def describe(self, object: str) -> Description:  # noqa: A002 - the design's word
        """Describe the columns of one object, as the server has them now."""
        return await self._reads.describe(object)

    async def compile(
        self,
        object: str,  # noqa: A002
        *,
        filters: Sequence[Filter | RawQuery],
        match: str = "all",
        residual: int | None = None,
        now: str | None = None,
    ) -> CompiledFilter:
        """Compile filter rows for the columns as the server has them now, and explain each; no rows are fetched.

        Args:
            object: The object's name.
            filters: The filter rows.
            match: ``all`` or ``any``.
            residual: As for `page`.
            now: As for `page`.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        self._reads.check(residual=residual)
        scope = Scope(object=object, filters=filters, match=match, residual=residual, now=whole_now(now))
        return await self._reads.compile(scope, fresh=True)

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
        revision: str = "",
        span: Span = DEFAULT,
        residual: int | None = None,
        now: str | None = None,
    ) -> Page:
        """Fetch one page of rows; see `dragoman_api.grid.PageRequest` for the arguments.

        Args:
            object: Its name.
            filters: Rows of the filter.
            match: ``all`` or ``any``.
            sort: The sort keys.
            offset: Rows before the page.
            limit: Rows of the page.
            columns: The columns to return.
            total: Count all matching rows.
            cursor: `Page.next` of an earlier page, with `now=page.now`; if that page has a `time`, also with
                `span=Span.of(page.time)`.
            tenant: Whose rows, where the object has tenants.
            revision: `Page.revision` of an earlier page, to read the rows as they were then.
            span: The rows' span of time; by default the window that the object's description names, if any.
            residual: If the driver supports it, it runs the filter rows and sorts that the server cannot, over at most
                that many rows that the server returns; notes ``residual-filter`` and ``residual-sort`` say how many.
            now: The instant that relative times count from, such as `Page.now` of an earlier page; by default the
                current one. Those of a filter row (``today``, ``last 24h``) are told in the note ``relative-time``.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked; nothing was fetched.
            WindowExceededError: The page is beyond the server's result window.
        """
        if offset < 0 or not 1 <= limit <= MAX_ROWS:
            begins = f"a page begins at an offset of 0 or more, not {offset:,}"
            raise ConfigurationError(begins if offset < 0 else f"a page has 1 to {MAX_ROWS:,} rows, not {limit:,}")
        self._reads.check(tenant=tenant, revision=revision, residual=residual)
        scope = Scope(
            object=object, filters=filters, match=match, span=span, residual=residual, now=whole_now(now)
        )  # fmt: skip
        check_sort(sort)
        request = PageRequest(
            object=object,
            sort=list(sort),
            offset=offset,
            limit=limit,
            columns=None if columns is None else list(columns),
            total=total,
            cursor=cursor,
            tenant=tenant,
            revision=revision,
            residual=residual,
        )
        began = 0.0

        async def fetch() -> Page:
            nonlocal began
            made = await self._reads.prepare(scope)
            asked = msgspec.structs.replace(request, filter=made.filter, time=made.time)
            began = time.perf_counter()
            page = await self._calls.run(DriverSpec.fetch_page, asked, object=object, rows=limit)
            return msgspec.structs.replace(page, notes=[*made.notes, *page.notes], time=made.time, now=made.now)

        page, changed = await until_unchanged(fetch)
        page = msgspec.structs.replace(page, notes=[*changed, *page.notes])
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
        revision: str = "",
        span: Span = DEFAULT,
        now: str | None = None,
    ) -> Count:
        """Count the rows of an object under a filter, exactly; the count's notes say what makes it approximate.

        See `page` for the arguments.
        """
        self._reads.check(tenant=tenant, revision=revision)
        scope = Scope(object=object, filters=filters, match=match, span=span, now=whole_now(now))

        async def count() -> Count:
            made = await self._reads.prepare(scope)
            request = CountRequest(object=object, filter=made.filter, time=made.time, tenant=tenant, revision=revision)
            number = await self._calls.run(DriverSpec.count_rows, request, object=object)
            return Count(number, made.notes, time=made.time)

        number, changed = await until_unchanged(count)
        return Count(number, [*changed, *number.notes], time=number.time)

    async def preview(
        self,
        read: PageRequest | CountRequest,
        *,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        span: Span = DEFAULT,
        now: str | None = None,
    ) -> list[HttpRequest]:
        """Return the requests that a page or a count would send first. Sends only what is needed to build them.

        Args:
            read: The page or the count; its filter and range of time come from the other arguments.
            filters: As for `page`.
            match: As for `page`.
            span: As for `page`.
            now: As for `page`.

        Raises:
            UnsupportedOperationError: The driver names no requests, or each depends on the answer to another one.
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        residual = read.residual if isinstance(read, PageRequest) else None
        self._reads.check(tenant=read.tenant, revision=read.revision, residual=residual)
        scope = Scope(
            object=read.object, filters=filters, match=match, span=span, residual=residual, now=whole_now(now)
        )  # fmt: skip

        async def name() -> list[HttpRequest]:
            made = await self._reads.prepare(scope)
            if isinstance(read, PageRequest):
                page = msgspec.structs.replace(read, filter=made.filter, time=made.time)
                request = PreviewRequest(page=page)
            else:
                count = msgspec.structs.replace(read, filter=made.filter, time=made.time)
                request = PreviewRequest(count=count)
            return await self._calls.run(DriverSpec.preview_read, request, object=read.object)

        return (await until_unchanged(name))[0]

    async def summarize(
        self,
        object: str,  # noqa: A002
        column: str,
        *,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        values: int = 10,
        buckets: int = 20,
        now: str | None = None,
    ) -> ColumnSummary:
        """Summarize a column under a filter: its most frequent values, its extremes, how its values spread.

        The figures come from the server, not from rows that the driver reads, so no row of the filter can be evaluated
        by the driver. They may come from several requests: rows written meanwhile count in some of them only.

        Args:
            object: The object's name.
            column: The column's name.
            filters: Rows of the filter.
            match: ``all`` or ``any``.
            tenant: Whose rows, where the object has tenants.
            revision: `Page.revision` of an earlier page, to summarize the rows as they were then.
            span: The rows' span of time; by default the window that the object's description names, if any.
            values: The maximum number of frequent values to return, 0 to 100.
            buckets: The maximum number of buckets in the histogram, 0 to 50.
            now: As for `page`.

        Returns:
            The summary; `ColumnSummary.approximate` and `ColumnSummary.notes` say what is not exact.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
            UnsupportedOperationError: The driver, or the server for such a column, has no summaries.
        """
        check_summary(values=values, buckets=buckets)
        self._reads.check(tenant=tenant, revision=revision)
        scope = Scope(object=object, filters=filters, match=match, span=span, now=whole_now(now))
        request = SummaryRequest(
            object=object, column=column, tenant=tenant, revision=revision, values=values, buckets=buckets
        )

        async def summarize() -> ColumnSummary:
            made = await self._reads.prepare(scope)
            asked = msgspec.structs.replace(request, filter=made.filter, time=made.time)
            found = await self._calls.run(DriverSpec.summarize_column, asked, object=object)
            return within(asked, msgspec.structs.replace(found, notes=[*made.notes, *found.notes]))

        found, changed = await until_unchanged(summarize)
        return msgspec.structs.replace(found, notes=[*changed, *found.notes])

    async def cell(self, key: RowKey, column: str, *, revision: str = "") -> Cell:
        """Fetch the whole value of one cell, uncut; `MISSING` if the row does not hold the field."""
        check_key(key)
        self._reads.check(revision=revision)
        await self._reads.know(key.object)
        request = CellRequest(key=key, column=column, revision=revision)

        async def fetch() -> Cell:
            return await self._calls.run(DriverSpec.fetch_cell, request, object=key.object)

        return (await until_unchanged(fetch))[0]

    async def plan(
        self, *changes: Change, undo: bool = False, bulk: bool = False, last: bool = False, new: NewObject | None = None
    ) -> Plan:
        """Build the exact requests that would apply the changes; nothing is written.

        Args:
            changes: Changes to the same row are applied in this order.
            undo: Fill `Plan.undo` with the changes that restore the rows.
            bulk: These are rows of a load; the requests need not wait until searches see them.
            last: No row of the load follows; the requests wait as usual.
            new: An object that is to be made, without changes. `execute` sends the request; none means that the driver
                makes no objects.
        """
        check_changes(changes)
        for tenant in {change.tenant for change in changes if isinstance(change, Insert)}:
            self._reads.check(tenant=tenant)
        for name in sorted({object_of(change) for change in changes if not isinstance(change, Drop)}):
            await self._reads.know(name)
        request = PlanRequest(changes=list(changes), undo=undo, bulk=bulk, last=last, new=new)
        first = object_of(changes[0]) if changes else new.name if new else None
        plan = await self._calls.run(DriverSpec.plan_change, request, object=first, changes=changes)
        return msgspec.structs.replace(plan, changes=list(changes))

    async def apply(self, plan: Plan, *, bulk: bool = False) -> list[Outcome]:
        """Send a plan's exact requests and report the outcome of each change, including refusals.

        Args:
            plan: The plan.
            bulk: Emit one event, `rows.written`, for all rows that were applied, in place of one for each.
        """
        self._driver.check_open()
        changes = tuple(plan.changes)
        outcomes: list[Outcome] = list(plan.refusals)
        if plan.planned:
            outcomes += await self._calls.run(
                DriverSpec.apply_change,
                plan,
                object=object_of(changes[0]) if changes else None,
                writes=True,
                requests=tuple(plan.requests),
                statements=tuple(planned.statement for planned in plan.planned),
                changes=changes,
            )
        told = {outcome.change: outcome for outcome in outcomes}
        numbers = range(len(changes)) if changes else sorted(told)
        outcomes = [told.get(number) or untold(number) for number in numbers]
        if bulk:
            self._emit(total_of(outcomes, object=object_of(changes[0]) if changes else "", connection=self.name))
        for outcome in outcomes:
            if not bulk or outcome.status is not OutcomeStatus.APPLIED:
                self._emit(event_of(outcome, changes[outcome.change] if changes else None, connection=self.name))
        return outcomes

    async def parse(self, text: str, *, variables: Mapping[str, str] | None = None) -> list[ConsoleRequest]:
        """Split a console text into requests, each marked read or write; nothing is sent.

        Args:
            text: In the server's own language.
            variables: Values of `${name}` in it; None leaves the text as it is.

        Raises:
            ConsoleSyntaxError: The text cannot be read; details hold line and column.
            ConfigurationError: A variable has no value (code ``variable-unknown``).
        """
        if variables is not None:
            from dragoman.console.variables import fill

            text = fill(text, variables)
        return await self._calls.run(DriverSpec.parse_console, ConsoleText(text))

    async def complete(self, text: str, position: int | None = None) -> Completion:
        """Suggest how to continue a console text at a place; nothing is sent once the driver knows names and columns.

        Args:
            text: The console text, which need not be complete.
            position: Number of characters (code points) before the cursor; None for the end of the text.

        Returns:
            Suggestions, each with the characters that it replaces.

        Raises:
            ConfigurationError: The position is not in the text.
            UnsupportedOperationError: The driver completes nothing.
        """
        at = len(text) if position is None else position
        check_position(text, at)
        request = CompletionRequest(text=text, position=at)
        return inside(text, await self._calls.run(DriverSpec.complete_console, request))

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
        self._driver.check_open()
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

    def rows(
        self,
        object: str,  # noqa: A002
        *,
        form: str = "documents",
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        columns: Sequence[str] | None = None,
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        now: str | None = None,
    ) -> Rows:
        """Iterate over the rows of an object, in constant memory; integers of any size stay exact.

        `Rows.notes` says what is approximate about them, and which rows a default time window leaves out.

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
            revision: `Page.revision` of an earlier page, to read the rows as they were then.
            span: The rows' span of time; by default the window that the object's description names, if any.
            now: As for `page`.
        """
        scope = Scope(
            object=object, filters=filters, match=match, span=span, tenant=tenant, revision=revision, now=whole_now(now)
        )  # fmt: skip
        from .whole_reads import read_rows

        return Rows(partial(read_rows, self._calls, self._reads, scope, form=form, columns=columns))

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
        lists: Sequence[str] | None = None,
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        keep_alive: int | None = None,
        escape_formulas: bool = False,
        strict: bool = False,
        resume: bool = False,
        manifest: bool = True,
        now: str | None = None,
    ) -> ExportResult:
        """Export an object, or its rows that match a filter, in constant memory.

        Args:
            object: Its name.
            to: A path, which appears only when the export is complete, or an open binary stream.
            format: ``documents`` as they are stored, also called ``ndjson``; ``json`` for one array of them; ``rows``
                with id and metadata; ``csv``, ``tsv``; ``bulk`` for the server's own bulk endpoint; ``arrow`` for an
                Arrow stream; ``parquet``. None goes by the file's ending; a name without one stands for documents.
            compress: ``gzip``, ``bzip2`` or ``zstd``; None goes by the file's name.
            filters: Rows of the filter.
            match: ``all`` or ``any``.
            columns: Of a CSV, TSV, Arrow or Parquet file, in order; None for all.
            lists: Of an Arrow or Parquet file, as for `batches`; an export that is resumed keeps what its first run
                found.
            tenant: Whose rows, where the object has tenants.
            revision: `Page.revision` of an earlier page, to export the rows as they were then.
            span: The rows' span of time; by default the window that the object's description names, if any.
            keep_alive: Seconds for which an interrupted export can be resumed; None for what `config.toml` says.
            escape_formulas: Put an apostrophe before the texts of a CSV or TSV file that a spreadsheet would take for a
                formula. If false, the texts stay unchanged and a note counts them.
            strict: Refuse a value that does not fit its type in an Arrow or Parquet file (code ``values-misfit``); see
                `batches`.
            resume: Continue an interrupted export of the same rows into the same file; times relative to now stay
                relative to its first run.
            manifest: Write ``FILE.manifest.json`` beside the file.
            now: The instant that relative times count from; by default the one at which the first run began.

        Returns:
            The content of the manifest: rows, bytes, checksum and so on.

        Raises:
            ConfigurationError: There is no such format or column, a package for it is missing, or the file's ending
                names no format (code ``format-unknown``).
            ExportError: The target cannot be written or resumed.
            QueryError: The server's answer was partial; no file was created.
        """
        from dragoman.exports import Export, ExportSource, choose

        from .whole_reads import run_export

        self._driver.check_open()
        source = ExportSource(
            connection=self.name,
            object=object,
            server=f"{self.server.product} {self.server.version}",
            plugin=self.plugin,
            version=self.plugin_version,
        )
        about: dict[str, Any] = {"escape_formulas": escape_formulas, "strict": strict}
        shape = await run_sync(partial(choose, to, format=format, compress=compress, **about))
        scope = Scope(object=object, filters=filters, match=match, span=span, tenant=tenant, revision=revision)
        export = Export(source, to=to, shape=shape, resume=resume, emit=self._emit)
        return await run_export(
            export,
            self._calls,
            self._reads,
            scope,
            shape=shape,
            columns=columns,
            lists=lists,
            keep_alive=keep_alive or self._keep_alive,
            manifest=manifest,
            now=None if now is None else whole_now(now),
        )
