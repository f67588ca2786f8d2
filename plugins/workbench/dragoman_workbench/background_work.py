"""Work that outlives, or ends with, the request that asked for it; all of it ends with the server."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from dragoman_api.errors import DragomanError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from anyio.abc import TaskGroup

T = TypeVar("T")

_abandoned: ContextVar[anyio.Event | None] = ContextVar("abandoned", default=None)


def nobody_waits() -> bool:
    """Return whether the caller of this work has gone: what it has not begun yet, it need not begin."""
    event = _abandoned.get()
    return event is not None and event.is_set()


class _Result(Generic[T]):
    value: T
    error: Exception | None = None
    is_set = False


class Work:
    """Runs work in the server's task group, apart from the tasks of requests, which the browser may abort."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks

    async def run(self, work: Callable[[], Awaitable[T]], *, abortable: bool) -> T:
        """Run work and wait for it.

        Args:
            work: A coroutine function without arguments.
            abortable: Cancel it if the wait is cancelled; otherwise it goes on without the caller.

        Raises:
            DragomanError: What the work raised, or it was cancelled (code ``cancelled``).
        """
        result, done, scope = _Result[T](), anyio.Event(), anyio.CancelScope()
        abandoned = anyio.Event()

        async def go() -> None:
            _abandoned.set(abandoned)  # for this task
            try:
                with scope:
                    try:
                        result.value = await work()
                        result.is_set = True
                    except Exception as error:  # noqa: BLE001 - the caller raises it
                        result.error = error
            finally:
                done.set()

        self._tasks.start_soon(go)
        try:
            await done.wait()
        except BaseException:
            abandoned.set()
            if abortable:
                scope.cancel()
            raise
        if result.error is not None:
            raise result.error
        if not result.is_set:
            raise DragomanError("it was cancelled", code="cancelled")
        return result.value

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run work without waiting for it; it must handle its own errors."""
        self._tasks.start_soon(work)
