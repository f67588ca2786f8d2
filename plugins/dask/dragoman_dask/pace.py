"""The pace of an export in parts: when a busy server turns a request away, all parts slow down for a while."""

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
"""The first pause before a page, the longest one, and the shortest one that is worthwhile, in seconds."""

EASED = 4.0
"""The number of seconds without a request that was turned away after which the pause is halved."""

TOGETHER = 1.0
"""The number of seconds within which requests that are turned away count as one overload."""


class Pace:
    """The time that a process waits before it takes the next page of each part.

    Every process of an export has its own pace. One that hears of a busy server tells the others, which slow down too.
    """

    def __init__(self, tell: Callable[[], None] | None = None) -> None:
        """Begin without a pause.

        Args:
            tell: Called when a request of this process was turned away, to tell the other processes; None if there are
                none.
        """
        self._tell = tell
        self._pause, self._since = 0.0, -TOGETHER

    @property
    def pause(self) -> float:
        """The current pause, in seconds."""
        pause = self._pause * 0.5 ** ((time.monotonic() - self._since) // EASED)
        return float(pause) if pause >= LEAST else 0.0

    def slow_down(self) -> None:
        """Double the pause, since the server is busy; at most once for each overload. Any thread may call this."""
        now = time.monotonic()
        if now - self._since >= TOGETHER:
            self._pause, self._since = min(max(2 * self.pause, FIRST), MOST), now

    async def wait(self) -> None:
        """Wait for the pause, randomly shortened or lengthened so that the processes do not all return at once."""
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
