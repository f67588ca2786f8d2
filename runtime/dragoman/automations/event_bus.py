"""The event bus, which passes events to all listeners."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from msgspec.structs import replace

from dragoman_api.events import AutomationFailed, Event, EventsDropped
from dragoman_api.masking import Mask
from dragoman_api.wording import failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

BUFFER = 1_024
"""Events that wait for one subscriber; beyond that the oldest are dropped and counted."""


LONGEST = 4_000
"""Characters of one text of an event; strangers choose some of them."""


class Subscription:
    """An async iterator over events; a slow reader is told how many it lost."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        self._arrived = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of unread events, including lost ones."""
        return len(self._waiting) + self._dropped

    def put(self, event: Event) -> None:
        """Add an event; never waits."""
        if len(self._waiting) >= BUFFER:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(event)
        self._wake()

    def close(self) -> None:
        """End the iteration after what still waits."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        """Wake the reader, which may run in another thread's loop."""
        if self._loop is None or self._loop is asyncio._get_running_loop():  # noqa: SLF001 - documented; None outside a loop
            self._arrived.set()
        else:
            with suppress(RuntimeError):  # its loop is closed
                self._loop.call_soon_threadsafe(self._arrived.set)

    async def __aiter__(self) -> AsyncIterator[Event]:
        self._loop = asyncio.get_running_loop()
        while True:
            arrived = self._arrived = anyio.Event()  # before the look, so that no event falls between
            if self._dropped:
                count, self._dropped = self._dropped, 0
                yield EventsDropped(count=count)
            if self._waiting:
                yield self._waiting.popleft()
            elif self._closed:
                return
            else:
                await arrived.wait()


class Bus:
    """Hands every event to subscriptions (buffered) and to sinks (called at once, for writing a log).

    Attributes:
        mask: Removes secrets from every event; code that learns of a secret adds it here.
    """

    def __init__(self) -> None:
        self.mask = Mask()
        self._subscriptions: list[Subscription] = []
        self._sinks: list[Callable[[Event], None]] = []

    def emit(self, event: Event) -> None:
        """Pass an event to all listeners; never waits, and never fails because of one.

        What happened has happened, so an error of a sink is not the caller's: it is an event for all listeners.
        """
        if not (self._sinks or self._subscriptions):
            return
        event = self._harmless(event)
        failures: list[AutomationFailed] = []
        for sink in tuple(self._sinks):
            try:
                sink(event)
            except Exception as error:  # noqa: BLE001 - a sink is code of others
                name = getattr(sink, "__qualname__", type(sink).__qualname__)
                failures.append(AutomationFailed(automation=name, hook="on_event", reason=failure(error)))
        for subscription in self._subscriptions:
            subscription.put(event)
        if not isinstance(event, AutomationFailed):  # else a failure reports itself endlessly
            for failed in failures:
                self.emit(failed)

    def _harmless(self, event: Event) -> Event:
        """Leave secrets out of an event, and bound its texts."""
        changed = {}
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if isinstance(value, str) and (text := self._text(value)) != value:
                changed[name] = text
        return replace(event, **changed) if changed else event

    def _text(self, text: str) -> str:
        text = self.mask(text)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"

    def add_sink(self, sink: Callable[[Event], None]) -> None:
        """Call a function with every event, in order, before `emit` returns; if it raises, that is an event, too."""
        self._sinks.append(sink)

    def close(self) -> None:
        """End all subscriptions: no more events come."""
        for subscription in self._subscriptions:
            subscription.close()

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Listen from now on, until the block ends."""
        subscription = Subscription()
        self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)
            subscription.close()
