"""Who may talk to the server: one-time tokens, the secrets they are exchanged for, and how long a stranger may stay.

Any user of this machine can connect. Until a connection has shown that it is a tab's, it is a guest: there are only so
many guests, each has a few seconds for a request, and the oldest goes when a further one comes. So descriptors are left
for the tabs, whatever others do.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN_SECONDS = 60.0
"""Life of a token with which the page opens a further tab."""
ENTRY_SECONDS = 12 * 3_600.0
"""Life of the token in the entry file."""
IDLE_SECONDS = 8 * 3_600.0
"""Seconds without a request after which a secret expires: a working day."""
MAX_SECRETS = 64
"""Tabs that can be signed in at once; a further one replaces the one that was idle longest."""
FAILURES = 20
"""Wrong tokens per minute that are answered at once."""
RATE, BURST = 100.0, 400.0
"""Requests of one tab per second in the long run, and at once."""
AT_ONCE = 24
"""Requests of one tab that may run at the same time."""

Clock = Callable[[], float]
MAX_GUESTS = 256
"""Connections of guests at once, if there are enough descriptors; at most a quarter of these."""
GUEST_SECONDS = 10.0
"""Seconds that a guest may be idle, or take for the head of a request."""
BUSY_SECONDS = 60.0
"""Seconds for answering a guest, whose line may be slow."""
LOOK_SECONDS = 1.0
DESCRIPTORS = 8_192
"""Descriptors that a server of many connections and drivers needs."""


class Tab:
    """One tab that is signed in: its activity, and the requests it may still make.

    Attributes:
        used: When it last made a request.
        running: Its requests that run now.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.used = clock()
        self.running = 0
        self._allowed = BURST

    def admit(self) -> bool:
        """Count a request; False if there are too many."""
        now = self._clock()
        self._allowed = min(BURST, self._allowed + (now - self.used) * RATE)
        self.used = now
        if self._allowed < 1 or self.running >= AT_ONCE:
            return False
        self._allowed -= 1
        return True


class Access:
    """Tokens and secrets. Both are random texts of 256 bits, of which only digests are kept."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._tokens: dict[bytes, float] = {}
        self._tabs: dict[bytes, Tab] = {}
        self._failures: list[float] = []

    def token(self, *, seconds: float = TOKEN_SECONDS) -> str:
        """Return a new token, which can be exchanged once."""
        now = self._clock()
        self._tokens = {digest: until for digest, until in self._tokens.items() if until > now}
        while len(self._tokens) >= MAX_SECRETS:
            del self._tokens[min(self._tokens, key=self._tokens.__getitem__)]
        token = secrets.token_urlsafe(32)
        self._tokens[_digest(token)] = now + seconds
        return token

    def holds(self, token: str) -> bool:
        """Return whether a token can still be exchanged."""
        return self._tokens.get(_digest(token), 0.0) > self._clock()

    def blocked(self) -> bool:
        """Return whether there were too many wrong tokens in the last minute."""
        now = self._clock()
        self._failures = [at for at in self._failures if at > now - 60]
        return len(self._failures) >= FAILURES

    def enter(self, token: str) -> str | None:
        """Exchange a token for a secret; None if it is unknown, used or expired."""
        if self._tokens.pop(_digest(token), 0.0) <= self._clock():
            self._failures = [*self._failures[1 - FAILURES :], self._clock()]
            return None
        self._expire()
        while len(self._tabs) >= MAX_SECRETS:
            del self._tabs[min(self._tabs, key=lambda digest: self._tabs[digest].used)]
        secret = secrets.token_urlsafe(32)
        self._tabs[_digest(secret)] = Tab(self._clock)
        return secret

    def tab(self, secret: str) -> Tab | None:
        """Return the tab of a secret; None if it is unknown or expired."""
        self._expire()
        return self._tabs.get(_digest(secret))

    def leave(self, secret: str) -> None:
        """End a secret."""
        self._tabs.pop(_digest(secret), None)

    def _expire(self) -> None:
        oldest = self._clock() - IDLE_SECONDS
        self._tabs = {digest: tab for digest, tab in self._tabs.items() if tab.used > oldest or tab.running}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


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
