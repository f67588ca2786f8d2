"""Keeps one connection's driver running: starts it again after it ended, within limits."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

from dragoman_api.errors import DriverCrashedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from anyio.abc import TaskStatus

    from .process import Worker

RESTARTS = 3
"""Restarts within `WINDOW_SECONDS` at most."""

WINDOW_SECONDS = 60.0


class Supervisor:
    """Owns the workers of one connection, one at a time; an async context manager.

    A worker lives in a task of the supervisor's own, so that any task may ask for it.

    Attributes:
        incarnation: Number of the worker that runs now, from 1.
    """

    def __init__(self, make: Callable[[], Worker]) -> None:
        """Begin without a worker.

        Args:
            make: Makes a worker that is not yet started.
        """
        self.incarnation = 0
        self._make = make
        self._worker: Worker | None = None
        self._restarts: deque[float] = deque(maxlen=RESTARTS)
        self._starting = anyio.Lock()
        self._closing = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()
        await self._tasks.__aexit__(None, None, None)  # without the error, which the task group would wrap

    async def worker(self) -> Worker:
        """Give the worker, started if none runs.

        Raises:
            DriverCrashedError: It ended too often within a minute.
            SandboxError: It cannot be started, or not as confined as asked.
        """
        async with self._starting:
            if self._worker is not None and not self._worker.ended.is_set():
                return self._worker
            if self.incarnation:
                now = anyio.current_time()
                if len(self._restarts) == RESTARTS and now - self._restarts[0] < WINDOW_SECONDS:
                    raise DriverCrashedError(
                        f"the driver's process ended {RESTARTS + 1} times within a minute and is not started again",
                        hint="wait a minute, or look at the driver's last lines in the log",
                    )
                self._restarts.append(now)
            self._worker = await self._tasks.start(self._keep)
            self.incarnation += 1
            return self._worker

    async def _keep(self, *, task_status: TaskStatus[Worker]) -> None:
        async with self._make() as worker, anyio.create_task_group() as waiting:
            task_status.started(worker)
            waiting.start_soon(_first, worker.ended, waiting.cancel_scope)
            waiting.start_soon(_first, self._closing, waiting.cancel_scope)


async def _first(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
