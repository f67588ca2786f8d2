"""Jobs that outlive the requests that start them: each is listed, told to every tab, and can be cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
from msgspec.structs import replace

from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_workbench.failures import failure_of
from dragoman_workbench.messages.base import Done
from dragoman_workbench.messages.imports import ImportJob
from dragoman_workbench.messages.work import ExportJob

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman_workbench.open_connections import OpenConnections

MAX_RUNNING = 4
MAX_KEPT = 100
"""Jobs of a kind that are listed; the oldest finished ones are forgotten."""
CANCELLED = "cancelled"
"""The code of the error with which a job ends because a person cancelled it."""
ENDED = ("finished", "failed", "cancelled")

Job = TypeVar("Job", ExportJob, ImportJob)


class Jobs(Generic[Job]):
    """All jobs of a kind since the start."""

    def __init__(self, noun: str, connections: OpenConnections, *, send: Callable[[Job], None]) -> None:
        """Begin without jobs.

        Args:
            noun: What a job is called: ``export``.
            connections: The open connections, which a job keeps open.
            send: Tells every tab of a job.
        """
        self._noun, self._open = noun, connections
        self._send: Callable[[Job], None] = send
        self._jobs: dict[str, Job] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}

    @property
    def all(self) -> list[Job]:
        """The jobs, the oldest first."""
        return list(self._jobs.values())

    def get(self, number: str) -> Job | None:
        """Return a job as it is now."""
        return self._jobs.get(number)

    def make_room(self) -> list[str]:
        """Forget the oldest jobs if there are too many, and return which. Raises DragomanError if too many run."""
        ended = [job.id for job in self.all if job.state in ENDED]
        if len(self._jobs) - len(ended) >= MAX_RUNNING:
            text = f"{MAX_RUNNING} {self._noun}s are running"
            raise ConfigurationError(text, hint="wait for one, or cancel it", code="too-many")
        forgotten = ended[: max(0, len(self._jobs) - MAX_KEPT)]
        for number in forgotten:
            del self._jobs[number]
        return forgotten

    def tell(self, job: Job) -> None:
        """Keep a job as it is now, and tell every tab."""
        job = replace(job, changes=job.changes + 1)
        self._jobs[job.id] = job
        self._send(job)

    async def run(
        self,
        number: str,
        work: Callable[[], Awaitable[Job]],
        *,
        resumable: Callable[[DragomanError | None], bool],
        translate: Callable[[DragomanError], DragomanError] = lambda error: error,
    ) -> None:
        """Run a job until it has ended, in whichever way.

        Args:
            number: The job.
            work: What it does; returns the job as it is in the end.
            resumable: Tells whether it can go on after an error, or after it was cancelled.
            translate: Returns an error as a person sees it.
        """
        scope = self._scopes[number] = anyio.CancelScope()
        connection = self._jobs[number].connection
        try:
            with scope, self._open.busy(connection):
                self.tell(await work())
        except DragomanError as error:
            again = resumable(error)
            if error.code == CANCELLED:
                self.tell(replace(self._jobs[number], state="cancelled", resumable=again))
            else:
                failure = failure_of(translate(error), connection=connection)
                self.tell(replace(self._jobs[number], state="failed", error=failure, resumable=again))
        finally:
            del self._scopes[number]
            if self._jobs[number].state == "running":
                self.tell(replace(self._jobs[number], state="cancelled", resumable=resumable(None)))

    def cancel(self, number: str) -> Done:
        """Cancel a job. Raises ConfigurationError if there is none."""
        if number not in self._jobs:
            raise ConfigurationError(f"there is no such {self._noun}", code="not-found")
        if (scope := self._scopes.get(number)) is not None:
            scope.cancel()
        return Done()
