"""The pace of an export in parts: where a busy server turns one request away, all parts slow down, and recover."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from dragoman_api.kit.retries import jittered

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from dragoman_api.exports import ExportPart

FIRST, MOST, LEAST = 0.5, 8.0, 0.1
"""Seconds of the first pause before a page, of the longest one, and of the last one that is worth while."""

EASED = 4.0
"""After so many seconds without a request that was turned away, the pause is half as long."""

TOGETHER = 1.0
"""Requests that are turned away within so many seconds are one overload."""


class Pace:
    """How long a process waits before it takes the next page of each part.

    Every process of an export has its own; one that hears of a busy server tells the others, which slow down alike.
    """

    def __init__(self, tell: Callable[[], None] | None = None) -> None:
        """Begin without a pause.

        Args:
            tell: Called when a request of this process was turned away, to tell the other processes.
        """
        self._tell = tell
        self._pause, self._since = 0.0, -TOGETHER

    @property
    def pause(self) -> float:
        """The present pause, in seconds."""
        pause = self._pause * 0.5 ** ((time.monotonic() - self._since) // EASED)
        return float(pause) if pause >= LEAST else 0.0

    def slow_down(self) -> None:
        """Double the pause, for the server is busy; at most once for one overload. May be called from any thread."""
        now = time.monotonic()
        if now - self._since >= TOGETHER:
            self._pause, self._since = min(max(2 * self.pause, FIRST), MOST), now

    async def wait(self) -> None:
        """Wait for the pause, a random part shorter or longer, so that the processes do not come back together."""
        if pause := self.pause:
            await anyio.sleep(jittered(pause))

    @asynccontextmanager
    async def parts(
        self, stream: AbstractAsyncContextManager[AsyncIterator[ExportPart]]
    ) -> AsyncIterator[AsyncIterator[ExportPart]]:
        """Stream the parts of an export at this pace."""
        await self.wait()
        async with stream as parts:
            yield self._paced(parts)

    async def _paced(self, parts: AsyncIterator[ExportPart]) -> AsyncGenerator[ExportPart, None]:
        async for part in parts:
            if part.turned_away:
                self.slow_down()
                if self._tell is not None:
                    self._tell()
            if part.rows or not part.turned_away:
                yield part
            await self.wait()
