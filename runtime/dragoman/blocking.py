"""A connection for code without ``async``: an event loop in a thread of its own, and methods that wait for it."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from concurrent.futures import CancelledError, Future
from contextlib import aclosing
from functools import partial, wraps
from itertools import chain
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, Generic, ParamSpec, Self, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from dragoman_api.errors import ConfigurationError, DragomanError

from .lifetimes import check_process, connection_closed
from .runtime import open as open_session
from .sessions.driver_calls import unknown
from .sessions.rows import Rows
from .sessions.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from anyio.abc import TaskStatus
    from anyio.streams.memory import MemoryObjectReceiveStream

    from dragoman_api.changes import PlannedRequest
    from dragoman_api.columns import Note
    from dragoman_api.connections import Server
    from dragoman_api.events import Event

    from .connections.curl_commands import CurlCommands
    from .imports.load_run import LoadProgress, LoadReport
    from .sessions.selections import RowSelection
    from .sessions.whole_reads import Batches, RowStream

A = TypeVar("A")
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

STOP_SECONDS = 5.0
"""How long an interrupted call may take to stop before the caller goes on without it."""


class LoopThread:
    """An event loop in a thread of its own, which does not keep the interpreter running.

    Attributes:
        home: The home of its connection; None for the usual one.
        ending: The connection closes, and its driver with it: a call says that, whatever it meets on the way.
    """

    ending = False

    def __init__(self, home: Path | None = None) -> None:
        """Start it."""
        self.pid, self.home = os.getpid(), home
        started: Future[BlockingPortal] = Future()
        self._thread = Thread(target=self._run, args=(started,), name="dragoman", daemon=True)
        self._thread.start()
        self.portal = started.result()

    def _run(self, started: Future[BlockingPortal]) -> None:
        try:
            anyio.run(self._serve, started)
        except RuntimeError:
            # Python 3.12 starts no thread at its end, and asyncio would start one to wait for its own threads.
            if threading.main_thread().is_alive():
                raise

    @staticmethod
    async def _serve(started: Future[BlockingPortal]) -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    def begin(self, task: Callable[..., Awaitable[object]], *args: object) -> tuple[Future[Any], Any]:
        """Start a task that reports when it has begun; return its future and its report.

        Raises:
            ConfigurationError: The loop has ended (code ``connection-closed``), it is the caller's own, or the caller
                is a fork of its process (code ``process-forked``).
        """
        self._check()
        try:
            return self.portal.start_task(task, *args)
        except (RuntimeError, CancelledError):  # it was stopped
            raise connection_closed() from None

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in the thread of the loop."""
        return threading.get_ident() == self._thread.ident

    def _check(self) -> None:
        check_process(self.pid, "the connection")
        if self.is_current:
            raise ConfigurationError("code in the connection's own event loop cannot wait for it", hint="use Session")
        if self.ending:
            raise connection_closed()

    def wait(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine there and return its result; Ctrl-C cancels it first.

        Raises:
            ConfigurationError: The loop has ended (code ``connection-closed``), it is the caller's own, or the caller
                is a fork of its process (code ``process-forked``).
        """
        self._check()
        done = threading.Event()

        async def run() -> T:
            try:
                return await call()
            finally:
                done.set()

        try:
            future = self.portal.start_task_soon(run)
        except RuntimeError:  # it was stopped
            raise connection_closed() from None
        try:
            return future.result()
        except CancelledError:  # by another thread that closed the connection
            raise connection_closed() from None
        except DragomanError as error:
            if self.ending and not unknown(error):
                raise connection_closed() from error
            raise
        except KeyboardInterrupt:
            future.cancel()
            done.wait(STOP_SECONDS)
            raise

    def stop(self) -> None:
        """Cancel what still runs there, and end the loop and its thread."""
        self.portal.call(partial(self.portal.stop, cancel_remaining=True))
        self._thread.join()


class _Blocking(Generic[A]):
    """Something of an open connection, with methods that wait for those of its asynchronous counterpart."""

    __slots__ = ("_loop", "_owner", "_wrapped")

    def __init__(self, loop: LoopThread, wrapped: A, *, owner: object = None) -> None:
        self._loop, self._wrapped = loop, wrapped
        self._owner = owner  # where it comes from, so that the connection stays open as long as it is used


def _waiting(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_Blocking[A], P], T]:
    """Make the method that waits for an asynchronous one; it has the same signature and documentation."""

    @wraps(method)
    def waiting(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.wait(lambda: method(self._wrapped, *args, **kwargs))

    waiting.__qualname__ = f"Blocking{method.__qualname__}"
    return waiting


def _passing(method: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[_Blocking[A], P], T]:
    """Make the method that calls one which waits for nothing; it has the same signature and documentation."""

    @wraps(method)
    def passing(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(self._wrapped, *args, **kwargs)

    passing.__qualname__ = f"Blocking{method.__qualname__}"
    return passing


def _wrapping(
    method: Callable[Concatenate[A, P], T], counterpart: Callable[..., S]
) -> Callable[Concatenate[_Blocking[A], P], S]:
    """Make the method that returns the blocking counterpart of what one returns at once, such as an iterator."""

    @wraps(method)
    def wrapping(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> S:
        return counterpart(self._loop, method(self._wrapped, *args, **kwargs), owner=self)

    wrapping.__qualname__ = f"Blocking{method.__qualname__}"
    wrapping.__doc__ = (method.__doc__ or "").replace("async with aclosing(", "with closing(")
    return wrapping


class _BlockingStream(Generic[T]):
    """An iterator that reads while it is used, in the loop of its connection."""

    most = 1
    """The most items that cross the threads at once."""

    def __init__(self, loop: LoopThread, items: Any, *, owner: object = None) -> None:
        self.notes: list[Note] = items.notes
        self._loop, self._owner = loop, owner
        self._reading, self._parts = loop.begin(partial(_read, items, self.most))
        self._ready: Iterator[T] = iter(())
        self._end = weakref.finalize(self, _cancel, loop, self._reading)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while True:
            if (item := next(self._ready, None)) is not None:
                return item
            if not self._end.alive:
                raise StopIteration
            try:
                self._ready = iter(self._loop.wait(self._parts.receive))
            except (anyio.EndOfStream, anyio.ClosedResourceError) as error:
                error.__traceback__ = None  # a future that it refers to keeps it, and this frame keeps the connection
                self._end.detach()
                self._reading.result()  # raises what ended the reading too early
                raise StopIteration from None

    def close(self) -> None:
        """Release the server's resources; a second call does nothing."""
        self._ready = iter(())
        self._end()


class BlockingRowStream(_BlockingStream[dict[str, Any]]):
    """The rows of an object, an iterator that reads them while they arrive.

    Attributes:
        notes: Remarks on the rows, as for an export; known from the first row on, and complete after the last one.
    """

    most = 1024

    def __init__(self, loop: LoopThread, rows: RowStream, *, owner: object = None) -> None:
        """Begin to read ahead in the loop's thread."""
        super().__init__(loop, rows, owner=owner)


class BlockingBatches(_BlockingStream[Any]):
    """The rows of an object as Arrow record batches, an iterator that reads them while they arrive.

    Libraries that read an Arrow stream, such as DuckDB, take it as it is, once.

    Attributes:
        notes: Remarks on the rows, as for an export; known from the first batch on, and complete after the last one.
    """

    def __init__(self, loop: LoopThread, batches: Batches, *, owner: object = None) -> None:
        """Begin to read ahead in the loop's thread."""
        super().__init__(loop, batches, owner=owner)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return what is left as an Arrow stream: a PyCapsule of the Arrow C stream interface.

        A stream that is not read takes nothing: DuckDB asks for one to see the schema, and for another one to read.

        Raises:
            ConfigurationError: Everything has been read.
        """
        from pyarrow import RecordBatchReader

        if (first := next(self, None)) is None:
            raise ConfigurationError("these batches have been read", hint="call batches again")
        self._ready = chain([first], self._ready)
        return RecordBatchReader.from_batches(first.schema, iter(self)).__arrow_c_stream__(requested_schema)


def _cancel(loop: LoopThread, reading: Future[Any]) -> None:
    if loop.pid == os.getpid():  # a fork has no thread that could stop it
        reading.cancel()


async def _read(items: Any, part_limit: int, *, task_status: TaskStatus[MemoryObjectReceiveStream[list[Any]]]) -> None:
    """Send the items in parts, the first ones small, so that a caller sees them soon; the next part is read ahead."""
    send, receive = anyio.create_memory_object_stream[list[Any]]()
    part: list[Any] = []
    enough = 1
    async with receive, send, aclosing(items):
        task_status.started(receive)
        async for item in items:
            part.append(item)
            if len(part) >= enough:
                await send.send(part)
                part, enough = [], min(2 * enough, part_limit)
        if part:
            await send.send(part)


class BlockingRows(_Blocking[Rows]):
    """Rows of an object for code without ``async``; see `Rows`, whose methods it has.

    Made by `BlockingSession.rows`. ``for row in rows`` reads documents in constant memory; see `stream`.
    """

    __slots__ = ()

    @property
    def selection(self) -> RowSelection:
        """Which rows, as a plain value."""
        return self._wrapped.selection

    @property
    def connection(self) -> str:
        """The name of the connection."""
        return self._wrapped.connection

    @property
    def type(self) -> str:
        """The database type of the connection."""
        return self._wrapped.type

    @property
    def home(self) -> Path | None:
        """The home of the connection, as `connect` took it."""
        return self._loop.home

    def __repr__(self) -> str:
        return repr(self._wrapped)

    def __eq__(self, other: object) -> bool:
        return self._wrapped == other._wrapped if isinstance(other, BlockingRows) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._wrapped)

    def __iter__(self) -> BlockingRowStream:
        return self.stream()

    def run(self, function: Callable[[Rows], Awaitable[T]]) -> T:
        """Call an asynchronous function with these rows, in the event loop of their connection, and wait for it.

        Args:
            function: What takes the rows as `Rows`, such as a function of another package.
        """
        return self._loop.wait(lambda: function(self._wrapped))

    def emit(self, event: Event) -> None:
        """Emit an event as this connection does its own, such as the progress of an export that a caller runs."""
        self._loop.portal.call(self._wrapped.emit, event)

    command = _passing(Rows.command)
    script = _passing(Rows.script)
    check_origin = _passing(Rows.check_origin)
    describe = _waiting(Rows.describe)
    page = _waiting(Rows.page)
    count = _waiting(Rows.count)
    explain = _waiting(Rows.explain)
    preview_page = _waiting(Rows.preview_page)
    preview_count = _waiting(Rows.preview_count)
    summarize = _waiting(Rows.summarize)
    similar = _waiting(Rows.similar)
    cell = _waiting(Rows.cell)
    export = _waiting(Rows.export)
    split = _waiting(Rows.split)
    part = _waiting(Rows.part)
    hold = _waiting(Rows.hold)
    table = _waiting(Rows.table)
    stream = _wrapping(Rows.stream, BlockingRowStream)
    batches = _wrapping(Rows.batches, BlockingBatches)
    part_batches = _wrapping(Rows.part_batches, BlockingBatches)


class BlockingSession(_Blocking[Session]):
    """An open connection for code without ``async``, such as a notebook; see `Session`, whose methods it has.

    Made by `connect`. It may be used from several threads, and in a program that runs an event loop of its own. Ctrl-C
    cancels a call, on the server too. It closes with its block, by `close`, when it is no longer used, or with the
    interpreter. Every method raises DragomanError, as those of `Session` do, or KeyboardInterrupt.

    Attributes:
        name: The connection's name.
        type: Its database type.
    """

    def __init__(self, name: str, *, home: Path | None = None, use: Sequence[object] = ()) -> None:
        """Open a saved connection; on an error, its loop stops."""
        loop = LoopThread(home)
        try:
            opened = loop.portal.wrap_async_context_manager(open_session(name, home=home, use=use))
            super().__init__(loop, opened.__enter__())
        except BaseException:
            loop.stop()
            raise
        self._end = weakref.finalize(self, _end_collected, loop, opened)
        self.name, self.type = self._wrapped.name, self._wrapped.type

    def close(self) -> None:
        """Close the connection and end its thread; a second call does nothing."""
        if (ending := self._end.detach()) is not None:
            _end(*ending[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"{self.type}, {self._wrapped.plugin} {self._wrapped.plugin_version}" if self._end.alive else "closed"
        return f"<dragoman connection {self.name!r}: {state}>"

    @property
    def server(self) -> Server:
        """The product and version of the server that answered."""
        return self._wrapped.server

    @property
    def plugin(self) -> str:
        """The id of the driver's plugin."""
        return self._wrapped.plugin

    @property
    def plugin_version(self) -> str:
        """The driver's version."""
        return self._wrapped.plugin_version

    @property
    def sandbox(self) -> str:
        """The driver's sandbox level and what it lacks, such as ``full`` or ``partial: no Landlock …``."""
        return self._wrapped.sandbox

    @property
    def curl(self) -> CurlCommands:
        """Requests of this connection as curl commands: ``session.curl.command(request)``."""
        return self._wrapped.curl

    @property
    def warnings(self) -> list[str]:
        """Warnings about this connection."""
        return self._wrapped.warnings

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities that the driver's manifest announces."""
        return self._wrapped.capabilities

    @property
    def console_example(self) -> str:
        """A request that only reads, with which a console begins; empty if the driver's manifest has none."""
        return self._wrapped.console_example

    def load(
        self,
        object: str,  # noqa: A002 - the design's word
        *,
        file: Path | BinaryIO,
        format: str | None = None,  # noqa: A002
        delimiter: str | None = None,
        encoding: str | None = None,
        id: str | None = None,  # noqa: A002
        on_conflict: str = "fail",
        renamed: Mapping[str, str] | None = None,
        types: Mapping[str, str] | None = None,
        readings: Mapping[str, str] | None = None,
        batch: int = 2_000,
        tenant: str | None = None,
        undo: Path | None = None,
        resume: bool = False,
        create: bool = False,
        dry_run: bool = False,
        progress: Callable[[LoadProgress], None] | None = None,
        preview: Callable[[PlannedRequest], None] | None = None,
    ) -> LoadReport:
        """Load the rows of a file into an object; see `dragoman.load`, whose arguments and errors it has.

        It copies no rows of another connection, which has a thread of its own.
        `progress` and `preview` are called in the thread of the connection.
        """
        from .imports.loads import load

        return self._loop.wait(
            lambda: load(
                self._wrapped,
                object,
                file=file,
                format=format,
                delimiter=delimiter,
                encoding=encoding,
                id=id,
                on_conflict=on_conflict,
                renamed=renamed,
                types=types,
                readings=readings,
                batch=batch,
                tenant=tenant,
                undo=undo,
                resume=resume,
                create=create,
                dry_run=dry_run,
                progress=progress,
                preview=preview,
            )
        )

    can = _passing(Session.can)
    request_docs = _passing(Session.request_docs)
    objects = _waiting(Session.objects)
    describe = _waiting(Session.describe)
    plan = _waiting(Session.plan)
    apply = _waiting(Session.apply)
    parse = _waiting(Session.parse)
    complete = _waiting(Session.complete)
    execute = _waiting(Session.execute)
    console = _waiting(Session.console)
    ping = _waiting(Session.ping)
    status = _waiting(Session.status)
    rows = _wrapping(Session.rows, BlockingRows)
    select = _wrapping(Session.select, BlockingRows)


def _end_collected(loop: LoopThread, opened: AbstractContextManager[Session]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _end(loop, opened)
    else:  # the garbage collector came there, where nothing may wait for the end
        Thread(target=_end, args=(loop, opened), name="dragoman-end").start()


def _end(loop: LoopThread, opened: AbstractContextManager[Session]) -> None:
    if loop.pid != os.getpid():  # a fork's copy; the connection is the parent's
        return
    if loop.is_current:  # a guard closes its own connection; nothing there can wait for the end
        Thread(target=_end, args=(loop, opened), name="dragoman-end").start()
        return
    loop.ending = True
    try:
        opened.__exit__(None, None, None)
    finally:
        loop.stop()


def connect(name: str, *, home: Path | None = None, use: Sequence[object] = ()) -> BlockingSession:
    """Open a saved connection for code without ``async``, in its own Runtime.

    Args:
        name: The connection's name.
        home: Root of everything on disk; None for DRAGOMAN_HOME, else the platform's places.
        use: Automations: modules or objects with the hooks `before_call` and `on_event`.

    Returns:
        The connection, which is open; ``with dragoman.connect("shop") as shop`` closes it at the end of the block.

    Raises:
        DragomanError: The connection does not exist, or its driver or its server cannot be reached.
    """
    return BlockingSession(name, home=home, use=use)
