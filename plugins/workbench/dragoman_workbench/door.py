"""The door of the server: how many connections strangers may hold, and for how long.

Any user of this machine can connect. Until a connection has shown that it is a tab's, it is a guest: there are only so
many guests, each has a few seconds for a request, and the oldest goes when a further one comes. So descriptors are left
for the tabs, whatever others do.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_GUESTS = 256
"""Connections of guests at once, if there are enough descriptors; at most a quarter of these."""
GUEST_SECONDS = 10.0
"""Seconds that a guest may be idle, or take for the head of a request."""
BUSY_SECONDS = 60.0
"""Seconds for answering a guest, whose line may be slow."""
LOOK_SECONDS = 1.0
DESCRIPTORS = 8_192
"""Descriptors that a server of many connections and drivers needs."""


class _Guest:
    """A connection that has not shown whose it is.

    Attributes:
        since: When it began to be idle, or to be answered.
        busy: Its requests that are being answered.
    """

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.busy = 0

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() - self.since > (BUSY_SECONDS if self.busy else GUEST_SECONDS)


class Door:
    """Watches over the connections of a server."""

    def __init__(self) -> None:
        self._guests: dict[asyncio.BaseTransport, _Guest] = {}
        self._max_guests = min(MAX_GUESTS, raise_descriptors() // 4)

    def before(self, server: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """Return what makes the protocol of a new connection: that of a server, which is watched."""
        return lambda: _Watched(server(), self)

    def entered(self, transport: asyncio.BaseTransport) -> None:
        """Count a new guest, and let the oldest go if there are too many."""
        while len(self._guests) >= self._max_guests:
            self._show_out(next(iter(self._guests)))
        self._guests[transport] = _Guest()

    def left(self, transport: asyncio.BaseTransport) -> None:
        """Forget a connection that is closed."""
        self._guests.pop(transport, None)

    @contextmanager
    def answering(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """Note that a request is answered while the block runs."""
        guest = self._guests.get(transport) if transport is not None else None
        if guest is None:
            yield
            return
        guest.busy += 1
        guest.since = time.monotonic()
        try:
            yield
        finally:
            guest.busy -= 1
            guest.since = time.monotonic()

    def welcome(self, transport: asyncio.BaseTransport | None) -> None:
        """Treat a connection as a tab's from now on: it has sent a secret, or a ticket."""
        if transport is not None:
            self._guests.pop(transport, None)

    async def watch(self) -> None:
        """Let guests go whose time is over, until it is cancelled."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            for transport in [transport for transport, guest in self._guests.items() if guest.late]:
                self._show_out(transport)

    def _show_out(self, transport: asyncio.BaseTransport) -> None:
        del self._guests[transport]
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()


class _Watched(asyncio.Protocol):
    """A protocol that tells the door when its connection begins and ends."""

    def __init__(self, inner: asyncio.Protocol, door: Door) -> None:
        self._inner, self._door = inner, door
        self._transport: asyncio.BaseTransport | None = None
        self.data_received = inner.data_received  # type: ignore[method-assign]  # no call more for each piece
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._inner.connection_made(transport)
        self._door.entered(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._door.left(self._transport)
        self._inner.connection_lost(exc)


DOOR = web.AppKey("door", Door)
"""Where the application keeps its door."""


def welcome(request: web.Request) -> None:
    """Treat the connection of a request as a tab's from now on."""
    if (door := request.app.get(DOOR)) is not None:
        door.welcome(request.transport)


def raise_descriptors() -> int:
    """Raise this process's soft limit of descriptors as far as it may, up to `DESCRIPTORS`; return the limit."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    limit = DESCRIPTORS if hard == unlimited else min(DESCRIPTORS, hard)
    if soft != unlimited and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return limit
    return DESCRIPTORS if soft == unlimited else soft
