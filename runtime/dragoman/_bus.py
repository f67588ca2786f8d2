"""The one event bus: what happened, to everybody who listens."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from dragoman_api.events import Event, EventsDropped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

BUFFER = 1_024
"""Events that wait for one subscriber; beyond that the oldest are dropped and counted."""


class Subscription:
    """An async iterator over events; a slow reader is told how many it lost."""

    def __init__(self, buffer: int = BUFFER) -> None:
        self._waiting: deque[Event] = deque()
        self._buffer = buffer
        self._dropped = 0
        self._arrived = anyio.Event()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Count the events that were not read yet, lost ones included."""
        return len(self._waiting) + self._dropped

    def put(self, event: Event) -> None:
        """Add an event; never waits."""
        if len(self._waiting) >= self._buffer:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(event)
        self._arrived.set()

    def close(self) -> None:
        """End the iteration after what still waits."""
        self._closed = True
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            if self._dropped:
                count, self._dropped = self._dropped, 0
                yield EventsDropped(count=count)
            if self._waiting:
                yield self._waiting.popleft()
            elif self._closed:
                return
            else:
                self._arrived = anyio.Event()
                await self._arrived.wait()


class Bus:
    """Hands every event to subscriptions (buffered) and to sinks (called at once, for writing a log)."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []
        self._sinks: list[Callable[[Event], None]] = []

    def emit(self, event: Event) -> None:
        """Tell everybody; never waits, never fails for a subscriber's sake."""
        for sink in self._sinks:
            sink(event)
        for subscription in self._subscriptions:
            subscription.put(event)

    def add_sink(self, sink: Callable[[Event], None]) -> None:
        """Call a function with every event, in order, before `emit` returns."""
        self._sinks.append(sink)

    @contextmanager
    def subscribe(self, *, buffer: int = BUFFER) -> Iterator[Subscription]:
        """Listen from now on, until the block ends."""
        subscription = Subscription(buffer)
        self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)
            subscription.close()
