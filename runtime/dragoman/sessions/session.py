"""One open connection, with a typed method for each operation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec

from dragoman.settings import Limit
from dragoman_api import events
from dragoman_api.changes import Drop, Insert, InsertBatch, OutcomeStatus, PlanRequest, object_of
from dragoman_api.columns import ObjectList, ObjectsRequest
from dragoman_api.connections import Health, ServerStatus
from dragoman_api.console import CompletionRequest, ConsoleText
from dragoman_api.errors import ConfigurationError, DeadlineExceededError, DragomanError, DriverFaultError, Refused
from dragoman_api.filters import RawQuery
from dragoman_api.hookspecs import DriverSpec
from dragoman_api.masking import Mask
from dragoman_worker.oversized_results import MAX_ANSWERS

from .driver_calls import DriverCalls, after_a_write
from .object_lists import list_level
from .plans import check_plan, completed, event_of, total_of
from .relative_times import DEFAULT, whole_now
from .rows import Rows
from .selections import RowSelection, check_changes, check_filters, check_names, check_owner, check_sort

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman.connections.curl_commands import CurlCommands
    from dragoman_api.changes import Change, HttpRequest, NewObject, Outcome, Plan
    from dragoman_api.columns import Description
    from dragoman_api.connections import Server
    from dragoman_api.console import Answer, Completion, ConsoleRequest
    from dragoman_api.events import Event
    from dragoman_api.filters import Filter
    from dragoman_api.grid import Sort

    from .live_driver import LiveDriver
    from .relative_times import Span


class Session:
    """An open connection.

    `dragoman.open` and `Runtime.open` make it. Every method raises DragomanError and nothing else, for example Refused
    (an automation vetoed the call), UnsupportedOperationError (the driver cannot do it) or a SandboxError (the driver's
    process failed; the next call starts a new one).

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
        self._calls = DriverCalls(driver, emit=emit, limit=limit or Limit(), keep_alive=keep_alive, time_zone=time_zone)
        self._healthy = True
        self._pinging, self._reading_status = anyio.Lock(), anyio.Lock()  # one call at a time, as drivers are promised
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
        """The driver's sandbox level and what it lacks, such as ``full`` or ``partial: no Landlock …``."""
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
        return self._calls.capabilities

    @property
    def console_example(self) -> str:
        """A request that only reads, with which a console begins; empty if the driver's manifest has none."""
        return self._driver.generation.manifest.console_example

    def request_docs(self, request: ConsoleRequest) -> str:
        """Return the address of the page that explains a request of the console; empty if the driver names none.

        It is from the driver's manifest: an https address of a named host. Nothing is fetched from there.
        """
        return self._driver.generation.manifest.request_docs(request.request.method, request.request.path)

    async def objects(
        self,
        *,
        parent: str | None = None,
        contains: str = "",
        cursor: str | None = None,
        limit: int | None = None,
        counts: bool = True,
    ) -> ObjectList:
        """List the objects that can be browsed: one level of their tree.

        Args:
            parent: The branch whose children are listed; None for the top.
            contains: List only objects whose name contains this text, ignoring case; empty for all.
            cursor: `ObjectList.next` of an earlier list, to continue after it; None to begin.
            limit: The maximum number of objects to list, which may end before a level does: `ObjectList.next` then
                continues it, and `ObjectList.total` is the number of all. None for the whole level.
            counts: Whether rows and sizes are wanted. Without, they may be None, and the list comes sooner.

        Raises:
            ConfigurationError: The limit is not positive, or the cursor is not one of a list of objects.
        """
        if limit is not None and limit < 1:
            raise ConfigurationError(f"limit is a positive number of objects, not {limit:,}")
        request = ObjectsRequest(parent=parent, contains=contains, cursor=cursor, counts=counts)
        return await list_level(request, self._listed, limit=limit)

    async def _listed(self, request: ObjectsRequest) -> ObjectList:
        listed: ObjectList = await self._calls.run(DriverSpec.list_objects, request, object=request.parent)
        return listed

    async def describe(self, object: str) -> Description:  # noqa: A002 - the design's word
        """Describe the columns of one object, as the server has them now."""
        return await self._calls.describe(object)

    def rows(
        self,
        object: str,  # noqa: A002 - the design's word
        *,
        filters: Sequence[Filter | RawQuery] = (),
        match: Literal["all", "any"] = "all",
        raw: Sequence[str] = (),
        sort: Sequence[Sort] = (),
        columns: Sequence[str] | None = None,
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        now: str | None = None,
        residual: int | None = None,
    ) -> Rows:
        """Choose rows of an object, to read them with the methods of the result; nothing is sent yet.

        Args:
            object: The object's name.
            filters: The filter rows; empty for all rows of the object.
            match: Whether ``all`` filter rows must match, or ``any``.
            raw: Further filter rows, in the server's own syntax.
            sort: The sort keys of pages, the most significant first. Other reads come in the order of the server, as a
                note says.
            columns: The columns to read, in order; None for all. A driver may omit costly columns that are not listed.
            tenant: The tenant whose rows are read, if the object has tenants.
            revision: `Page.revision` of an earlier page, to read the rows as they were then; empty for now.
            span: The span of time that the rows must lie in; by default the time window that the object's description
                names, if any.
            now: The instant that relative times count from, such as `Page.now` of an earlier page; None for the
                beginning of each read. A note ``relative-time`` says what a relative time in a filter row (``today``,
                ``last 24h``) stands for.
            residual: The maximum number of rows, 1 to 10,000, that the driver may read to run filter rows and sorts of
                a page that the server cannot; None for none. Notes ``residual-filter`` and ``residual-sort`` say how
                many it read.

        Returns:
            The rows, an immutable value.

        Raises:
            ConfigurationError: An argument has the wrong kind, or a value that is not allowed, such as an empty tenant.
            UnsupportedOperationError: The driver has no tenants, or no revisions.
        """
        check_filters(filters)
        check_sort(sort)
        check_names(raw, name="raw")
        check_names(columns or (), name="columns")
        selection = RowSelection(
            object=object,
            filters=(*filters, *map(RawQuery, raw)),
            match=match,
            sort=tuple(sort),
            columns=None if columns is None else tuple(columns),
            tenant=tenant,
            revision=revision,
            span=span,
            now=None if now is None else whole_now(now),
            residual=residual,
        )
        return self.select(selection)

    def select(self, selection: RowSelection) -> Rows:
        """Return the rows of a selection, as `rows` does for its arguments.

        Raises:
            UnsupportedOperationError: The driver has no tenants, or no revisions.
        """
        self._calls.check(tenant=selection.tenant, revision=selection.revision)
        return Rows(self._calls, selection=selection)

    async def plan(
        self,
        *changes: Change,
        undo: bool = False,
        batch: InsertBatch | None = None,
        last: bool = False,
        whole: bool = True,
        new: NewObject | None = None,
    ) -> Plan:
        """Build the exact requests that would apply the changes; nothing is written.

        Args:
            changes: The changes; those to the same row are applied in this order.
            undo: Fill `Plan.undo` with the changes that restore the rows.
            batch: Rows of a load instead of changes, so the requests need not wait until searches see them.
            last: No row of the load follows, so the requests wait as usual.
            whole: The requests have their bodies. Without, those of a batch may lack them, if no automation looks at
                requests before they are sent; such a plan can be applied once, and only by this session.
            new: An object to create, without changes. `execute` sends the request of the plan; a plan without one means
                that the driver creates no objects.

        Raises:
            ConfigurationError: A tenant or a routing is an empty text.
            DriverFaultError: The driver planned something other than these changes, each once and in their order.
        """
        check_changes(changes)
        planned: list[Change] | InsertBatch = list(changes)
        tenants = {change.tenant for change in changes if isinstance(change, Insert)}
        names = {object_of(change) for change in changes if not isinstance(change, Drop)}
        first = object_of(changes[0]) if changes else new.name if new else None
        outline = False
        if batch is not None:
            if "" in batch.routings:
                check_owner(routing="")
            planned, tenants, names, first = batch, {*batch.tenants}, {batch.object}, batch.object
            outline = not (whole or (await self._driver.hooks()).decides("apply_change"))
        for tenant in tenants:
            self._calls.check(tenant=tenant)
        for name in sorted(names):
            await self._calls.know(name)
        request = PlanRequest(changes=planned, undo=undo, bulk=batch is not None, last=last, new=new, outline=outline)
        plan = await self._calls.run(DriverSpec.plan_change, request, object=first, changes=batch or changes)
        check_plan(plan, request, plugin=self.plugin)
        number = plan.number if outline else 0
        return msgspec.structs.replace(plan, changes=planned, bulk=batch is not None, number=number)

    async def apply(self, plan: Plan) -> list[Outcome]:
        """Send a plan's exact requests and report the outcome of each change, including refusals.

        Rows of a load that were applied emit one event, `rows.written`, instead of one each; their outcomes may be
        joined (`Outcome.rows`).
        """
        self._driver.check_usable()
        changes = plan.changes if isinstance(plan.changes, InsertBatch) else tuple(plan.changes)
        outcomes: list[Outcome] = []
        if plan.planned:
            outcomes = await self._calls.run(
                DriverSpec.apply_change,
                plan,
                object=object_of(changes[0]) if changes else None,
                writes=True,
                requests=tuple(plan.requests),
                statements=tuple(planned.statement for planned in plan.planned),
                changes=changes,
            )
        number = len(changes) if changes else None
        outcomes = completed(outcomes, refusals=plan.refusals, changes=number, bulk=plan.bulk)
        if plan.bulk:
            self._emit(total_of(outcomes, object=object_of(changes[0]) if changes else "", connection=self.name))
        for outcome in outcomes:
            if not plan.bulk or outcome.status is not OutcomeStatus.APPLIED:
                self._emit(event_of(outcome, changes[outcome.change] if changes else None, connection=self.name))
        return outcomes

    async def parse(self, text: str, *, variables: Mapping[str, str] | None = None) -> list[ConsoleRequest]:
        """Split a console text into requests, each marked read or write; nothing is sent.

        Args:
            text: The console text, in the server's own language.
            variables: The values of `${name}` in the text; None leaves the text as it is.

        Raises:
            ConsoleSyntaxError: The text cannot be read; details hold line and column.
            ConfigurationError: A variable has no value (code ``variable-unknown``).
        """
        if variables is not None:
            from dragoman.console.variables import fill

            text = fill(text, variables)
        return await self._calls.run(DriverSpec.parse_console, ConsoleText(text))

    async def complete(self, text: str, position: int | None = None) -> Completion:
        """Suggest how to continue a console text; nothing is sent once the driver knows the names and columns.

        Args:
            text: The console text, which need not be complete.
            position: The number of characters (code points) before the cursor; None for the end of the text.

        Returns:
            Suggestions, each with the characters that it replaces.

        Raises:
            ConfigurationError: The position is not in the text.
            UnsupportedOperationError: The driver has no completion.
        """
        at = len(text) if position is None else position
        if not 0 <= at <= len(text):
            raise ConfigurationError(f"position is 0 to {len(text):,}, the length of the text, not {at:,}")
        completion = await self._calls.run(DriverSpec.complete_console, CompletionRequest(text=text, position=at))
        last = max((suggestion.end for suggestion in completion.suggestions), default=0)
        if last > len(text):
            raise DriverFaultError(f"the driver suggested to replace characters up to {last:,} of {len(text):,}")
        return completion

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
        with after_a_write(writes=request.writes):
            _check_answers(answer)
        return answer

    async def console(self, text: str, *, variables: Mapping[str, str] | None = None) -> list[Answer]:
        """Split a console text into requests as `parse` does, send them in order, and return their results."""
        answers: list[Answer] = []
        for request in await self.parse(text, variables=variables):
            answer: Answer | None = await self.execute(request)
            while answer is not None:
                answers.append(msgspec.structs.replace(answer, next=None))
                answer = answer.next
        return answers

    async def ping(self) -> Health:
        """Check whether the connection still works; a change of health emits an event (W35)."""
        self._driver.check_usable()
        try:
            async with self._pinging:
                health = await self._calls.run(DriverSpec.ping)
        except Refused:
            raise
        except DeadlineExceededError as error:  # the server hangs, which the error tells of the hook
            reason = f"{self._driver.info.host}:{self._driver.info.port} gave no answer in time"
            health = Health(ok=False, reason=reason, code=error.code)
        except DragomanError as error:
            health = Health(ok=False, reason=error.message, code=error.code)
        if health.ok != self._healthy:
            self._healthy = health.ok
            state = "ok" if health.ok else "failed"
            fields: dict[str, Any] = {"connection": self.name, "reason": health.reason, "code": health.code}
            self._emit(events.ConnectionHealthChanged(state=state, **fields))
        return health

    async def status(self) -> ServerStatus:
        """Read how the server and its nodes are, with one cheap request.

        Raises:
            UnsupportedOperationError: The driver does not know it.
        """
        self._driver.check_usable()
        async with self._reading_status:
            status: ServerStatus = await self._calls.run(DriverSpec.read_status)
        return status


def _check_answers(answer: Answer) -> None:
    """Raise DriverFaultError if a request has too many answers."""
    following: Answer | None = answer
    for _ in range(MAX_ANSWERS):
        if following is None:
            return
        following = following.next
    if following is not None:
        raise DriverFaultError(f"more than {MAX_ANSWERS:,} answers to one request")
