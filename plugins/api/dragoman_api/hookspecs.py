"""The hooks of drivers and automations.

A driver is a plain class whose methods carry `hookimpl`; it supports the hooks that it implements. A hook
takes one value, except that `connect` takes up to three, and `ping` and `close` none. The parameters are
positional, because pluggy passes no others. Unless a hook says otherwise, the host guarantees: `connect` has succeeded,
calls on one connection may run concurrently, each call has a deadline after which it is cancelled, and any exception
other than a `DragomanError` is reported as a fault of the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .cells import Cell
    from .changes import HttpRequest, Outcome, Plan, PlanRequest
    from .columns import Description, ObjectList, ObjectsRequest
    from .connections import Health, Profile, Server, ServerStatus
    from .console import Answer, Completion, CompletionRequest, ConsoleRequest, ConsoleText
    from .events import Call, Event
    from .exports import ExportPart, ExportRequest, ExportSplit, SnapshotHold, SplitRequest
    from .filters import CompiledFilter, FilterRequest
    from .grid import CellRequest, CountRequest, Page, PageRequest, PreviewRequest, SimilarRequest
    from .http import Http
    from .summaries import ColumnSummary, SummaryRequest

PROJECT = "dragoman"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class DriverSpec:
    """The hooks of a driver, grouped as a connection uses them."""

    # connection ---------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def connect(self, profile: Profile, http: Http, first_object: str | None) -> Server | None:
        """Open the connection: check that the right server answers and accepts the credentials.

        The host guarantees: called once, before every other hook, inside the proven sandbox; `http` reaches the
        connection's hosts and ports, and its token endpoint if it has one; the driver can reach nothing else, unless
        a further permission grants it.

        Args:
            profile: The saved connection, secrets included.
            http: The HTTP client of this connection, TLS and authorization done; keep it.
            first_object: The object that is probably described next; None if that is not known, or if a password or
                what lies between could count several requests at once as several attempts. The automations have agreed
                to its description, so a driver may read its definition together with what it asks to check the server
                (`dragoman_api.kit.exchanges.Exchanges.run_ahead_of`), which saves a round trip. A driver that makes no
                use of it leaves the parameter out.

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
        """Check whether the connection still works, with a request that needs its credentials.

        The host guarantees: at most one call at a time.

        Returns:
            Health, with a reason when it is not ok.

        Raises:
            Nothing for a failed check: return the failure as a value.

        *When it is called*: on `connections test`, and whenever the workbench or a script checks the connection.
        """

    @hookspec(firstresult=True)
    async def read_status(self) -> ServerStatus | None:
        """Read how the server and its nodes are, by what is cheap for it, however many objects it has.

        The host guarantees: at most one call at a time.

        Returns:
            What the server tells; with missing rights or on a server that knows nothing of it, a note instead.

        Raises:
            AuthenticationError: The credentials were rejected.
            ConnectionFailedError: The server does not answer.

        *When it is called*: on `connections test`, and at most once a minute while a person looks at the overview.
        """

    @hookspec(firstresult=True)
    async def close(self) -> None:
        """Free what the server holds for this connection: points in time, scrolls.

        The host guarantees: the last hook that is called; afterwards, the host closes the HTTP client.

        *When it is called*: once, when the connection closes in an orderly way.
        """

    # objects ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def list_objects(self, request: ObjectsRequest) -> ObjectList | None:
        """List the objects that can be browsed: one level of their tree, whole or in parts.

        The host guarantees: `parent` is the name of an object that was listed as a branch. It leaves out objects whose
        parent or name does not match the request, and those beyond its limit, so a driver of a server with few objects
        and without a tree may ignore the request. A server may have ten thousand: a driver that counts rows by further
        requests counts those of the part only (`dragoman_api.kit.object_lists` chooses it), and none if `counts` is
        false.

        Args:
            request: Which level, which part of it, and which names.

        Returns:
            Objects in the order a sidebar shows them, with a note on what could not be listed or counted.

        Raises:
            AccessDeniedError: The credentials may not list.

        *When it is called*: when a sidebar is shown or refreshed.
        """

    @hookspec(firstresult=True)
    async def describe_object(self, name: str) -> Description | None:
        """Describe the columns of one object: type, operators, flags, and why something does not work.

        The host guarantees: called for an object before any other hook names it on this connection, again after a
        restart of the driver's process; the driver may keep what it learned. Objects change while a connection is open:
        a driver that keeps columns checks them in each call that depends on them (`dragoman_api.kit.views`), and raises
        ObjectChangedError from it.

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
        """Translate filter rows into the driver's own form, or refuse one that cannot run.

        It does no I/O, but for one bounded read of stored rows: to learn whether an approximation matters to them
        (`Explanation.unlikely`). The driver keeps what it read for as long as the object's definition holds, and does
        without if the read fails.

        The host guarantees: `describe_object` has been called for the object.

        Args:
            request: At least one filter row.

        Returns:
            The filter with one explanation per filter row.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked; details name column, operator and reason.

        *When it is called*: before a filtered page, count or export.
        """

    @hookspec(firstresult=True)
    async def fetch_page(self, request: PageRequest) -> Page | None:
        """Fetch one page of rows.

        The host guarantees: `describe_object` has been called for the object; `limit` is between 1 and 10,000.

        Args:
            request: Object, compiled filter, sort, offset and limit.

        Returns:
            The page, with a note for everything dropped, cut, partial or approximate. Values beyond the budgets of
            `dragoman_api.cells` are cut and noted after the hook. If it can, a driver distinguishes fields that a row
            does not hold (`MISSING`) from nulls.

        Raises:
            ObjectChangedError: The columns changed since they were read, or since the filter was compiled. The host
                compiles the filter again, repeats the call up to three times, and adds a note to the page.
            WindowExceededError: The server does not reach that far, or has no offset: then each page but the last
                carries `next`.
            RevisionGoneError: The server no longer has the requested revision.
            QueryError: The server refused.

        *When it is called*: whenever a grid moves, sorts or filters.
        """

    @hookspec(firstresult=True)
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch the whole value of one cell, uncut.

        Args:
            request: The row's key and the column.

        Returns:
            The value; Json for an array or object, and `MISSING` as on the page.

        Raises:
            ObjectChangedError: The columns changed since they were read; the host repeats the call.
            RowNotFoundError: The row is gone.

        *When it is called*: when a person opens a cut cell, or a script asks for it.
        """

    @hookspec(firstresult=True)
    async def count_rows(self, request: CountRequest) -> int | None:
        """Count the rows of an object under a filter, exactly.

        Returns:
            The number of rows.

        Raises:
            ObjectChangedError: The columns changed since they were read; the host repeats the call.
            QueryError: The server refused, or counted only a part.

        *When it is called*: on `count`, and when a grid asks for a total without a page.
        """

    @hookspec(firstresult=True)
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary | None:
        """Summarize the values of one column over the rows that a filter selects. Reads no rows one by one.

        The host guarantees: `describe_object` has been called for the object; `values` is at most 100, `buckets` at
        most 50; the filter was compiled without residual rows.

        Args:
            request: Object, column, compiled filter, and how many values and buckets.

        Returns:
            The figures. `approximate` names each that the server only estimates, or that its index makes differ from
            the stored rows; `absent` says why the server cannot provide a figure.

        Raises:
            ObjectChangedError: The columns changed since they were read; the host repeats the call.
            UnsupportedOperationError: The server cannot summarize such a column; the hint says what would help.
            QueryError: There is no such column (details name the ``column``), or the server refused or answered for
                only a part of the rows.

        *When it is called*: on `summarize`, and when a person looks at a column of a grid.
        """

    @hookspec(firstresult=True)
    async def similar_rows(self, request: SimilarRequest) -> Page | None:
        """Find the rows whose vectors are nearest to that of a row, to a vector, or to a text.

        The host guarantees: `describe_object` has been called for the object; `limit` is between 1 and 1,000; the
        filter was compiled without residual rows.

        Args:
            request: Object, column of vectors, what the rows are near to, compiled filter and limit.

        Returns:
            The rows under the filter, the nearest first. The last column holds the distances, in the server's own
            measure; the object has no column of its name (`dragoman_api.kit.similar_rows.nearest` makes it).
            Without `total`, `next` and `offset`. A note says that a server's index may miss near rows, if it may.

        Raises:
            ObjectChangedError: The columns changed since they were read; the host repeats the call.
            RowNotFoundError: The row is gone.
            UnsupportedOperationError: The object has no vectors, or the server makes none of a text.
            QueryError: There is no such column of vectors (details name the ``column``), it is not clear which is
                meant, the row has no vector, or the vector has another length.

        *When it is called*: on `similar`.
        """

    @hookspec(firstresult=True)
    async def preview_read(self, request: PreviewRequest) -> list[HttpRequest] | None:
        """Name the requests of a page or a count without sending them; it sends only what it needs to build them.

        Args:
            request: The page or the count, as its own hook would receive it.

        Returns:
            The requests in order, exactly as the read would send them first; those that depend on an answer, such as
            the repair of a row, are left out.

        Raises:
            ObjectChangedError: The columns changed since they were read; the host repeats the call.
            UnsupportedOperationError: Each request of this read depends on the answer to the one before it.
            QueryError: The read itself would be refused before anything is sent.

        *When it is called*: when a person wants a read as commands of another tool.
        """

    # changes ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def plan_change(self, request: PlanRequest) -> Plan | None:
        """Turn changes into the exact requests that carry them out. May read, never writes.

        Rows of a load come as an `InsertBatch`. A driver takes them as the inserts that they are a sequence of, or, for
        speed, takes whole columns.

        Args:
            request: The changes.

        Returns:
            The requests as they will be sent, and an outcome for each change that will not be sent.

        Raises:
            UnsupportedOperationError: The server does not support such a change.

        *When it is called*: before every write, and alone for a preview.
        """

    @hookspec(firstresult=True)
    async def apply_change(self, plan: Plan) -> list[Outcome] | None:
        """Send exactly the planned bytes and report the outcome of each change.

        Args:
            plan: The plan as `plan_change` returned it.

        Returns:
            One outcome per planned change; a conflict or a failure is a value, not an exception. What the server may
            have carried out without saying so is ``unknown``: no answer came, or a gateway's. For rows of a load
            (`Plan.bulk`) that were applied, one outcome may stand for several that follow each other.

        Raises:
            ConnectionFailedError: Nothing was sent (``details["sent"]`` is False), or all outcomes are unknown.

        *When it is called*: after a plan was confirmed.
        """

    # console ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest] | None:
        """Split a console text into requests, each marked read or write. Does no I/O.

        Args:
            text: The text that a person typed.

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
            request: A request from `parse_console`.

        Returns:
            The answer; an HTTP error status is an answer too.

        Raises:
            ConnectionFailedError: No answer came.

        *When it is called*: once per request, in order.
        """

    @hookspec(firstresult=True)
    async def complete_console(self, request: CompletionRequest) -> Completion | None:
        """Suggest how to continue a console text at the cursor: methods, paths, keywords, names of objects and fields.

        A driver answers from what it keeps. It may read names and columns the first time that it needs them, and if
        that fails, it suggests without them: no request goes out for each key that a person types. Time and memory grow
        at most with the length of the text.

        Args:
            request: The text, which need not be complete or correct, and the place of the cursor.

        Returns:
            Suggestions, none if there is nothing to suggest.

        Raises:
            QueryError: The position is not in the text.

        *When it is called*: while a person types in a console.
        """

    # exports ------------------------------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Stream the rows of an object as raw newline-delimited JSON.

        The host guarantees: parts are taken one at a time; the iterator is closed on every path.

        Args:
            request: Object, filter, and where to continue.

        Yields:
            Parts of whole lines, at most a few MiB each.

        Raises:
            ObjectChangedError: Before the first part: the columns changed since the filter was compiled.
            QueryError: A shard failed, or a timeout made the result partial.

        With `request.share`, it streams the rows of that share, one after another, so that their order does not depend
        on how long answers take. Any connection with the same driver to the same server can read a share, and read it
        again; it sets no checkpoints, and does not free the snapshot.

        *When it is called*: once per export, or per share of a split one.
        """
        yield  # type: ignore[misc]  # the colour of the spec: an async generator, not a coroutine

    @hookspec(firstresult=True)
    async def split_export(self, request: SplitRequest) -> ExportSplit | None:
        """Divide an export into shares that several processes read, of one snapshot where the server has snapshots.

        The host guarantees: `describe_object` has been called for the object; `hold_snapshot` is called for the
        snapshot more often than every `ExportRequest.keep_alive` seconds, and in the end to free it, unless the host
        dies or a person wants to continue later. `close` must not free it.

        Args:
            request: The export and the wanted number of shares.

        Returns:
            The shares. A server that cannot divide an export has one share, and a note says why.

        Raises:
            ObjectChangedError: The columns changed since the filter was compiled.
            QueryError: The server refused, or answered for only a part of the rows.

        *When it is called*: at the start of an export in parts.
        """

    @hookspec(firstresult=True)
    async def hold_snapshot(self, request: SnapshotHold) -> bool | None:
        """Keep the snapshot of a split export for some time, or free it.

        Args:
            request: The snapshot, which another connection may have opened, and the seconds; 0 frees it.

        Returns:
            Whether the server held it.

        *When it is called*: while the shares of an export are read, and at its end.
        """


class AutomationSpec:
    """The two hooks of an automation: trusted code in the host that sees every call and may veto it."""

    @hookspec
    async def before_call(self, call: Call) -> None:
        """Inspect an operation before it happens; raise Refused to veto it.

        The host guarantees: nothing has been sent; the calls of every surface (command line, shell, Python, workbench,
        agents) pass through this hook.

        Args:
            call: Hook, connection, object, whether it writes, and the exact requests if any.

        Raises:
            Refused: The call must not happen; code, message and hint reach the caller. Only an automation that returns
                nothing (or True) has agreed: any other exception, a cancellation, an exit, another value, and 30
                seconds without a decision refuse the call, too.

        *When it is called*: before every operation, all automations concurrently; one veto is enough.
        """

    @hookspec
    async def on_event(self, event: Event) -> None:
        """Receive an event.

        The host guarantees: events of one connection arrive in order; a failure here is reported and never
        reaches the caller. An automation that lags more than 1,024 events behind loses the oldest, and is told how
        many; one that takes more than 30 seconds for an event is interrupted.

        Args:
            event: One of `dragoman_api.events`.

        *When it is called*: after every event.
        """
