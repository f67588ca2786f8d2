"""Open connections of a server for agents: opened by the first tool that needs one, and closed after idling."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from msgspec.structs import replace

from dragoman import Session
from dragoman_api import Column, Description, DragomanError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from anyio.abc import TaskGroup

    from dragoman import Runtime

IDLE_SECONDS = 900.0
"""Seconds without a call after which a connection is closed; the next call opens it again."""

COLUMN_SECONDS = 30.0
"""Seconds for which columns count as those of the object, where rules have to know them."""


@dataclass(eq=False)
class _Opening:
    """One connection: its session once it is open, and what ends it."""

    ready: anyio.Event = field(default_factory=anyio.Event)
    closing: anyio.Event = field(default_factory=anyio.Event)
    session: Session | None = None
    error: DragomanError | None = None
    calls: int = 0
    used_at: float = field(default_factory=time.monotonic)
    descriptions: dict[str, tuple[float, Description]] = field(default_factory=dict)


class OpenSessions:
    """The sessions of one server by connection, each held open by a task of its own."""

    def __init__(self, runtime: Runtime, tasks: TaskGroup) -> None:
        self._runtime, self._tasks = runtime, tasks
        self._openings: dict[str, _Opening] = {}

    @asynccontextmanager
    async def using(self, name: str) -> AsyncIterator[Session]:
        """Open a connection, or use the open one, while the block runs.

        Raises:
            DragomanError: What `Runtime.open` raises.
        """
        opening = self._openings.get(name)
        if opening is None:
            opening = self._openings[name] = _Opening()
            self._tasks.start_soon(self._hold, name, opening)
        opening.calls += 1
        try:
            await opening.ready.wait()
            if opening.session is None:
                raise opening.error or DragomanError(f"opening {name} was cancelled", code="cancelled")
            yield opening.session
        finally:
            opening.calls -= 1
            opening.used_at = time.monotonic()

    async def described(self, session: Session, object_name: str) -> Description:
        """Describe an object, as it was at most half a minute ago, without its structure, which may be long."""
        opening = self._openings[session.name]
        read_at, description = opening.descriptions.get(object_name, (0.0, None))
        if description is None or not description.columns or time.monotonic() - read_at > COLUMN_SECONDS:
            description = replace(await session.describe(object_name), structure="")
            opening.descriptions[object_name] = time.monotonic(), description
        return description

    async def columns(self, session: Session, object_name: str) -> Sequence[Column]:
        """Return the columns of an object, as they were at most half a minute ago."""
        return (await self.described(session, object_name)).columns

    async def _hold(self, name: str, opening: _Opening) -> None:
        try:
            async with self._runtime.open(name) as opening.session:
                opening.ready.set()
                while not opening.closing.is_set():
                    with anyio.move_on_after(IDLE_SECONDS):
                        await opening.closing.wait()
                    if not opening.calls and time.monotonic() - opening.used_at >= IDLE_SECONDS:
                        del self._openings[name]  # the next call opens it anew
                        break
        except DragomanError as error:
            opening.error = error
        finally:
            opening.session = None
            if self._openings.get(name) is opening:
                del self._openings[name]
            opening.ready.set()

    def close(self) -> None:
        """Begin to close all connections."""
        for opening in self._openings.values():
            opening.closing.set()
