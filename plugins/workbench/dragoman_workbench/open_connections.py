"""Open connections: opened on demand, shared by all tabs, closed after idling, and opened again when used."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from dragoman import Session
from dragoman_api.errors import AuthenticationError, ConfigurationError, DragomanError

from .failures import CLOSED
from .messages.connections import OpenConnection
from .messages.routes import ServerEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman import Runtime

    from .background_work import Work
    from .event_stream import EventStream

IDLE_SECONDS = 900.0
"""Seconds without a request after which a connection is closed; the next request opens it again."""
LOOK_SECONDS = 15.0
USED_SECONDS = 60.0
"""Seconds after a request for which a connection counts as looked at: its health is checked."""
HOOKS = (
    "ping", "read_status", "list_objects", "describe_object", "compile_filter", "fetch_page", "fetch_cell",
    "count_rows", "plan_change", "apply_change", "parse_console", "execute_console", "export_rows", "complete_console",
    "summarize_column", "similar_rows",
)  # fmt: skip
"""Hooks that views depend on."""
_LEVELS = {"read-only": "read-only", "confirm-writes": "asks before writes", "confirm-drops": "asks before drops"}


@dataclass(eq=False)
class _Connection:
    """One connection: its session once it is open, and what ends it."""

    ready: anyio.Event = field(default_factory=anyio.Event)
    closing: anyio.Event = field(default_factory=anyio.Event)
    closed: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    session: Session | None = None
    error: Exception | None = None
    waiting: int = 0
    check_under_way: bool = False
    failing: str = ""
    rechecked: bool = False
    used_at: float = field(default_factory=time.monotonic)
    at: float = field(default_factory=time.time)


class OpenConnections:
    """The sessions of one runtime by connection, each held open by a task of its own."""

    def __init__(self, runtime: Runtime, *, stream: EventStream, work: Work) -> None:
        self._runtime, self._stream, self._work = runtime, stream, work
        self._connections: dict[str, _Connection] = {}
        self._idle: set[str] = set()
        self._running = Counter[str]()

    def names(self) -> set[str]:
        """Return the connections that are open, or were closed only because they were not used."""
        return {name for name, connection in self._connections.items() if connection.session is not None} | self._idle

    def all(self) -> list[OpenConnection]:
        """Return what is open."""
        return [self.about(name) for name, connection in self._connections.items() if connection.session is not None]

    async def open(self, name: str) -> OpenConnection:
        """Open a connection, or wait for it to be opened; installs its driver if it is missing.

        The last caller that stops waiting cancels the opening. Raises DragomanError as `Runtime.open`.
        """
        connection = self._connections.get(name)
        if connection is not None and connection.closing.is_set():
            await connection.closed.wait()
            connection = None
        if connection is None:
            connection = self._connections[name] = _Connection()
            self._work.start(lambda: self._hold(name, connection))
        connection.waiting += 1
        try:
            await connection.ready.wait()
        finally:
            connection.waiting -= 1
            if not connection.waiting and not connection.ready.is_set():
                connection.scope.cancel()
        if connection.error is not None:
            raise connection.error
        if connection.session is None:
            raise DragomanError(f"opening {name} was cancelled", code="cancelled")
        return self.about(name)

    async def _hold(self, name: str, connection: _Connection) -> None:
        opened = False
        try:
            with connection.scope:
                async with self._runtime.open(name) as connection.session:
                    opened = True
                    self._idle.discard(name)
                    connection.ready.set()
                    self._stream.send(ServerEvent(kind="opened", opened=self.about(name)))
                    await connection.closing.wait()
        except Exception as error:  # noqa: BLE001 - those who wait for it raise it
            connection.error = error
        finally:
            connection.session = None
            if self._connections.get(name) is connection:
                del self._connections[name]
            connection.ready.set()
            connection.closed.set()
            if opened and name not in self._idle:
                self._stream.send(ServerEvent(kind="closed", closed=name))

    async def session(self, name: str) -> Session:
        """Return the session of a connection that a person opened, and note that it is used.

        Raises:
            ConfigurationError: It is not open (code ``connection-closed``).
            DragomanError: It was closed after idling, and cannot be opened again.
        """
        connection = self._connections.get(name)
        if name in self._idle:
            await self.open(name)
            connection = self._connections.get(name)
        if connection is None or connection.session is None or connection.closing.is_set():
            raise ConfigurationError(f"{name} is not open", code=CLOSED, details={"connection": name})
        connection.used_at = time.monotonic()
        return connection.session

    async def close(self, name: str) -> None:
        """Close a connection if it is open."""
        self._idle.discard(name)
        if (connection := self._connections.get(name)) is not None:
            connection.closing.set()
            if connection.session is None:
                connection.scope.cancel()
            await connection.closed.wait()

    async def close_all(self) -> None:
        """Close every connection."""
        async with anyio.create_task_group() as tasks:
            for name in [*self._connections]:
                tasks.start_soon(self.close, name)

    @contextmanager
    def busy(self, name: str) -> Iterator[None]:
        """Keep a connection open while the block works with it."""
        self._running[name] += 1
        try:
            yield
        finally:
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]
            if (connection := self._connections.get(name)) is not None:
                connection.used_at = time.monotonic()

    async def close_idle(self) -> None:
        """Close connections that are not used, until it is cancelled."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            oldest = time.monotonic() - IDLE_SECONDS
            for name, connection in [*self._connections.items()]:
                if connection.session is not None and not self._running[name] and connection.used_at < oldest:
                    self._idle.add(name)
                    connection.closing.set()

    async def watch_health(self) -> None:
        """Check connections that are looked at, or that did not answer: the event of a change reaches every tab.

        A server that hangs keeps its own check waiting until the deadline of `ping`, and no other: each connection has
        at most one.
        """
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.sleep(LOOK_SECONDS)
                oldest = time.monotonic() - USED_SECONDS
                for connection in self._connections.values():
                    watched = connection.used_at > oldest or connection.rechecked
                    if watched and not connection.check_under_way and connection.session is not None:
                        connection.check_under_way = True
                        tasks.start_soon(self._check, connection, connection.session)

    async def _check(self, connection: _Connection, session: Session) -> None:
        try:
            if not session.can("ping"):
                return
            health = await session.ping()
            connection.failing = "" if health.ok else health.reason or "no reason is known"
            # What was rejected once is not sent again and again while nobody looks: servers lock such users out.
            connection.rechecked = not health.ok and health.code != AuthenticationError.code
        except Exception:  # noqa: BLE001 - a guard's veto, or the connection is being closed
            return
        finally:
            connection.check_under_way = False

    def about(self, name: str) -> OpenConnection:
        """Return what the header shows of an open connection."""
        connection = self._connections[name]
        session = connection.session
        assert session is not None
        guards = self._runtime.settings.guards.of(name)
        limits = guards.limits
        words = [_LEVELS[guards.read_only]] if guards.read_only in _LEVELS else []
        words += [f"at most {limits.rows:,} rows"] if limits.rows else []
        words += [f"at most {limits.bytes:,} bytes"] if limits.bytes else []
        words += [f"at most {limits.seconds:g} s"] if limits.seconds else []
        words += ["audit"] if guards.audit else []
        return OpenConnection(
            connection=name,
            type=session.type,
            product=session.server.product,
            server_version=session.server.version,
            server_notes=[*session.server.notes],
            plugin=session.plugin,
            plugin_version=session.plugin_version,
            sandbox=session.sandbox,
            warnings=[*session.warnings],
            guards=words,
            hooks=[hook for hook in HOOKS if session.can(hook)],
            capabilities=sorted(session.capabilities),
            console_example=session.console_example,
            production=guards.production,
            unlocked_until=self._runtime.locks.until(name) if guards.production else None,
            opened_at=connection.at,
            failing=connection.failing,
        )

    def tell(self, name: str) -> None:
        """Tell all tabs about an open connection again."""
        if (connection := self._connections.get(name)) is not None and connection.session is not None:
            self._stream.send(ServerEvent(kind="opened", opened=self.about(name)))
