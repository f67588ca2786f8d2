"""The hooks: what a driver implements, and what an automation may.

A driver is a plain class whose methods carry `hookimpl`; what it implements is what it can do. Hooks take one
request model, because pluggy sees positional parameters only. Unless a hook says otherwise, the host guarantees:
`connect` has succeeded, calls on one connection may run concurrently, each call has a deadline after which it is
cancelled, and an exception that is no `DragomanError` is reported as a fault of the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .calls import Call
    from .cells import Cell
    from .changes import Outcome, Plan, PlanRequest
    from .columns import Description, Object
    from .connections import Health, Profile, Server
    from .console import Answer, ConsoleRequest, ConsoleText
    from .events import Event
    from .exports import ExportPart, ExportRequest
    from .filters import CompiledFilter, FilterRequest
    from .grid import CellRequest, CountRequest, Page, PageRequest
    from .http import Http

PROJECT = "dragoman"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class DriverSpec:
    """The hooks of a driver, grouped as a connection uses them."""

    # connection ---------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def connect(self, profile: Profile, http: Http) -> Server | None:
        """Open the connection: prove that the right server answers to the credentials.

        The host guarantees: called once, before every other hook, inside the proven sandbox; `http` reaches the
        connection's host and port, and nothing else is reachable.

        Args:
            profile: The saved connection, secrets included.
            http: The HTTP client of this connection, TLS and authorization done; keep it.

        Returns:
            Product, version and notes of the server.

        Raises:
            AuthenticationError: The credentials were rejected.
            ConnectionFailedError: TLS or the network failed.
            ServerNotSupportedError: Another product or version answered.

        *When it is called*: on open, and again after a crash of the driver's process.
        """

    @hookspec(firstresult=True)
    async def ping(self) -> Health | None:
        """Look whether the connection still works, with a request that needs its credentials.

        The host guarantees: never two at once.

        Returns:
            Health, with a reason when it is not ok.

        Raises:
            Nothing that a failed health could be; a failure is a value.

        *When it is called*: on `connections test`, and now and then while a connection is watched.
        """

    @hookspec(firstresult=True)
    async def close(self) -> None:
        """Free what the server holds for this connection: points in time, scrolls.

        The host guarantees: the last hook that is called; the HTTP client is closed afterwards by the host.

        *When it is called*: once, when the connection closes in an orderly way.
        """

    # objects ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def list_objects(self) -> list[Object] | None:
        """List what can be browsed.

        Returns:
            Objects in the order a sidebar shows them.

        Raises:
            AccessDeniedError: The credentials may not list.

        *When it is called*: when a sidebar is shown or refreshed.
        """

    @hookspec(firstresult=True)
    async def describe_object(self, name: str) -> Description | None:
        """Describe the columns of one object: type, operators, flags, and why something does not work.

        The host guarantees: called for an object before any other hook names it on this connection, again after a
        restart of the driver's process; what it learned may be kept.

        Args:
            name: The object's name, as the person wrote it.

        Returns:
            Its columns in grid order.

        Raises:
            ObjectNotFoundError: There is no such object.

        *When it is called*: when a grid opens or is refreshed.
        """

    # grid ---------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter | None:
        """Translate filter rows into the driver's own form, or refuse the one that cannot run. Does no I/O.

        The host guarantees: `describe_object` has been called for the object.

        Args:
            request: At least one row.

        Returns:
            The filter with one explanation per row.

        Raises:
            FilterNotSupportedError: A row cannot run as asked; details name column, operator and reason.

        *When it is called*: before a filtered page, count or export.
        """

    @hookspec(firstresult=True)
    async def fetch_page(self, request: PageRequest) -> Page | None:
        """Fetch one page of rows.

        The host guarantees: `describe_object` has been called for the object; `limit` is within 1 and 10,000.

        Args:
            request: Object, compiled filter, sort, offset and limit.

        Returns:
            The page; everything dropped, cut, partial or approximate is one of its notes.

        Raises:
            WindowExceededError: The server does not reach that far.
            QueryError: The server refused.

        *When it is called*: whenever a grid moves, sorts or filters.
        """

    @hookspec(firstresult=True)
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch the whole value of one cell, uncut.

        Args:
            request: The row's key and the column.

        Returns:
            The value; Json for an array or object.

        Raises:
            RowNotFoundError: The row is gone.

        *When it is called*: when a person opens a cut cell, or a script asks for it.
        """

    @hookspec(firstresult=True)
    async def count_rows(self, request: CountRequest) -> int | None:
        """Count the rows of an object under a filter, exactly.

        Returns:
            The number of rows.

        Raises:
            QueryError: The server refused, or counted a part only.

        *When it is called*: on `count`, and when a grid asks for a total by itself.
        """

    # changes ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def plan_change(self, request: PlanRequest) -> Plan | None:
        """Turn changes into the exact requests that carry them out. May read, never writes.

        Args:
            request: The changes.

        Returns:
            Requests as they will be sent, and an outcome for each change that will not be.

        Raises:
            UnsupportedOperationError: The server has nothing like this change.

        *When it is called*: before every write, and alone for a preview.
        """

    @hookspec(firstresult=True)
    async def apply_change(self, plan: Plan) -> list[Outcome] | None:
        """Send exactly the planned bytes and report what became of each change.

        Args:
            plan: As `plan_change` gave it.

        Returns:
            One outcome per planned change; a conflict or a failure is a value, not an exception.

        Raises:
            ConnectionFailedError: The server went away; what had been applied before is in doubt.

        *When it is called*: after a plan was confirmed.
        """

    # console ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest] | None:
        """Split a console text into requests, each marked read or write. Does no I/O.

        Args:
            text: What a person typed.

        Returns:
            Requests in order.

        Raises:
            ConsoleSyntaxError: With line and column.

        *When it is called*: before execution, and alone to check a file.
        """

    @hookspec(firstresult=True)
    async def execute_console(self, request: ConsoleRequest) -> Answer | None:
        """Send one console request exactly as parsed and shape its answer.

        Args:
            request: One of `parse_console`.

        Returns:
            The answer; an HTTP error status is an answer too.

        Raises:
            ConnectionFailedError: No answer came.

        *When it is called*: once per request, in order.
        """

    # exports ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Stream the rows of an object as raw newline-delimited JSON.

        The host guarantees: parts are taken one at a time; the iterator is closed on every path.

        Args:
            request: Object, filter, and where to go on.

        Yields:
            Parts of whole lines, at most a few MiB each.

        Raises:
            QueryError: A shard failed or a time-out made the result partial.

        *When it is called*: once per export.
        """
        yield  # type: ignore[misc]  # the colour of the spec: an async generator, not a coroutine


class AutomationSpec:
    """The two hooks of an automation: trusted code in the host that sees everything and may veto."""

    @hookspec
    async def before_call(self, call: Call) -> None:
        """Look at an operation before it happens; raise Refused to veto it.

        The host guarantees: nothing has been sent; every surface (command line, API, console, scripts) passes here.

        Args:
            call: Hook, connection, object, whether it writes, and the exact requests where there are some.

        Raises:
            Refused: The call must not happen; code, message and hint reach the caller. So does any other exception,
                as a refusal, and an automation that has not decided after 30 seconds.

        *When it is called*: before every operation, all automations concurrently; one veto is enough.
        """

    @hookspec
    async def on_event(self, event: Event) -> None:
        """Learn what happened.

        The host guarantees: events of one connection arrive in order; a failure here is reported and never
        reaches the caller. An automation that lags more than 1,024 events behind loses the oldest, and is told how
        many; one that takes more than 30 seconds for an event is interrupted.

        Args:
            event: One of `dragoman_api.events`.

        *When it is called*: after everything that happens.
        """
