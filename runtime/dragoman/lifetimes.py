"""The life of what is opened and closed: its tasks, and the event loop and the process that it belongs to."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from dragoman_api.errors import ConfigurationError, DriverCrashedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import TaskGroup

CONNECTION_CLOSED = "connection-closed"
"""Code of the error of a call on a closed connection."""
_OPEN_AGAIN = "open it again with dragoman.open or dragoman.connect"
_OWN = "open a connection of its own there"


def connection_closed() -> ConfigurationError:
    """Return the error of a call on a connection that is closed."""
    return ConfigurationError("the connection is closed", code=CONNECTION_CLOSED, hint=_OPEN_AGAIN)


def connection_closed_meanwhile() -> DriverCrashedError:
    """Return the error of a call that was under way when its connection was closed; a write may have been applied."""
    return DriverCrashedError("the connection is closed", code=CONNECTION_CLOSED, hint=_OPEN_AGAIN)


def runtime_closed() -> ConfigurationError:
    """Return the error of a call on a runtime that is closed."""
    hint = "make another Runtime, or enter this one again"
    return ConfigurationError("the runtime is closed", code="runtime-closed", hint=hint)


def check_process(pid: int, subject: str) -> None:
    """Refuse a process that was forked from the one that opened something.

    A fork has neither the threads nor the event loop of its parent, and everything it would send goes into the parent's
    sockets.

    Args:
        pid: The process that opened it.
        subject: What was opened, with its article.

    Raises:
        ConfigurationError: This process is another one (code ``process-forked``).
    """
    if (own := os.getpid()) != pid:
        reason = f"{subject} was opened by process {pid}, and this is process {own}, a fork of it"
        raise ConfigurationError(reason, code="process-forked", hint=_OWN)


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of the caller. Raises ConfigurationError if it is none of asyncio's."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        text = "dragoman runs on asyncio (with uvloop or without), and this code does not run in an asyncio event loop"
        hint = "on trio or without a loop, use dragoman.connect in a thread"
        raise ConfigurationError(text, code="asyncio-needed", hint=hint) from None


class Lifetime:
    """Tasks beside a caller that may open in one task and close in another, and the checks of who may call.

    Only the task that entered an anyio task group can leave it. Fixtures, cells of a notebook and exit stacks of
    services close in another task than they opened, so the group lives in a task of its own.

    Attributes:
        closed: It was closed; set before what it holds is ended.
    """

    def __init__(self, subject: str, *, error: Callable[[], ConfigurationError]) -> None:
        """Prepare; nothing runs before `begin`.

        Args:
            subject: What lives, with its article.
            error: Builds the error of a call after its end.
        """
        self._subject, self._error = subject, error
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.closed = False

    async def begin(self) -> TaskGroup:
        """Begin, or begin again after the end; return the group of tasks that end with this life.

        Raises:
            ConfigurationError: No asyncio loop runs here (code ``asyncio-needed``), or it has begun already.
        """
        loop = running_loop()
        if self._task is not None and self._loop is not None and not self._task.done() and not self._loop.is_closed():
            raise ConfigurationError(f"{self._subject} is open already", hint="close it first, or make another one")
        self._loop, self._pid, self._stop, self.closed = loop, os.getpid(), asyncio.Event(), False
        entered: asyncio.Future[TaskGroup] = loop.create_future()
        self._task = loop.create_task(self._live(entered), name=self._subject)
        try:
            return await entered
        except BaseException:
            self.closed = True
            self._task.cancel()
            raise

    async def _live(self, entered: asyncio.Future[TaskGroup]) -> None:
        async with anyio.create_task_group() as tasks:
            if not entered.done():
                entered.set_result(tasks)
                await self._stop.wait()
            tasks.cancel_scope.cancel()

    @property
    def is_own(self) -> bool:
        """Whether the caller runs in the loop and the process to which this belongs, so that it can end it."""
        return self._pid == os.getpid() and self._loop is not None and self._loop is asyncio._get_running_loop()  # noqa: SLF001 - documented; None outside a loop

    def check_usable(self) -> None:
        """Refuse callers that cannot use it.

        Raises:
            ConfigurationError: It is closed; or the caller is a fork (``process-forked``), or runs in another event
                loop (``other-loop``).
        """
        self.check_open()
        if self._task is None:
            reason = f"{self._subject} is not open yet"
            raise ConfigurationError(reason, hint="enter it: async with …")
        if running_loop() is not self._loop:
            reason = f"{self._subject} was opened in another event loop, which alone can use it"
            hint = "call it there (asyncio.run_coroutine_threadsafe), or use dragoman.connect, which any thread can use"
            raise ConfigurationError(reason, code="other-loop", hint=hint)
        if self._task.done():
            raise self._error()

    def check_open(self) -> None:
        """Refuse calls after the end, and those of a fork; for what works before the beginning, and in any loop."""
        if self.closed:
            raise self._error()
        check_process(self._pid, self._subject)

    def can_end(self) -> bool:
        """Return whether the caller has to end it: not if it is closed, a fork's copy, or gone with its loop.

        Raises:
            ConfigurationError: It lives in another event loop, which still runs (code ``other-loop``).
        """
        if self.closed or self._pid != os.getpid() or self._loop is None:
            return False
        if not self.is_own and self._loop.is_running():
            self.check_usable()
        return self.is_own

    async def end(self) -> None:
        """Cancel its tasks and wait for them. Raises what one of them failed with, as a group."""
        self.closed = True
        if self._task is None or not self.is_own:
            return  # the loop is gone, and its tasks with it; or they are those of the parent process
        self._stop.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._task])
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """Run tasks beside a block and cancel them at its end; raise the block's own error without a group."""
    tasks = await anyio.create_task_group().__aenter__()
    try:
        yield tasks
    finally:
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)
