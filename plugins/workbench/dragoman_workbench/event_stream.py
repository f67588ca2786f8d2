"""What reaches every tab: events of the runtime, what the server says, and files that changed."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import msgspec

from .messages.routes import ServerEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Protocol

    from dragoman_api.events import Event

    class WatchedFiles(Protocol):
        """The files of a home."""

        @property
        def connections(self) -> Path:
            """The file of saved connections."""

        @property
        def settings(self) -> Path:
            """The settings file."""


BUFFER = 512
"""Messages that wait for one tab."""
BEAT_SECONDS = 15.0
MAX_TABS = 32
LOOK_SECONDS = 2.0


def encode(message: ServerEvent) -> bytes:
    """Encode a message as the event stream carries it."""
    return b"data: " + msgspec.json.encode(message) + b"\n\n"


LOST = encode(ServerEvent(kind="lost"))
BEAT = encode(ServerEvent(kind="beat"))
BYE = encode(ServerEvent(kind="bye"))


class Listener:
    """The messages that wait for one tab."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._lost = False
        self._arrived = anyio.Event()

    def put(self, data: bytes) -> None:
        """Add a message; never waits. Too many are dropped, and the tab is told."""
        if len(self._waiting) >= BUFFER:
            self._waiting.clear()
            self._lost = True
        self._waiting.append(data)
        self._arrived.set()

    async def next(self) -> bytes:
        """Wait for messages; a beat if none arrives in time."""
        if not self._waiting:
            self._arrived = anyio.Event()
            with anyio.move_on_after(BEAT_SECONDS):
                await self._arrived.wait()
        data = (LOST if self._lost else b"") + b"".join(self._waiting)
        self._waiting.clear()
        self._lost = False
        return data or BEAT


class EventStream:
    """The tabs that listen."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    @property
    def full(self) -> bool:
        """Whether no further tab may listen."""
        return len(self._listeners) >= MAX_TABS

    @contextmanager
    def listen(self) -> Iterator[Listener]:
        """Listen until the block ends."""
        listener = Listener()
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)

    def send(self, message: ServerEvent) -> None:
        """Send a message to every tab; never waits."""
        if self._listeners:
            data = encode(message)
            for listener in self._listeners:
                listener.put(data)

    def forward(self, event: Event) -> None:
        """Send an event of the runtime; without secrets, which the runtime has removed."""
        if self._listeners:
            self.send(ServerEvent(kind="event", event=msgspec.to_builtins(event)))

    def end(self) -> None:
        """Tell every tab that the server ends."""
        for listener in self._listeners:
            listener.put(BYE)


class FileWatch:
    """Looks at the two files from time to time.

    Attributes:
        settings_changed: `config.toml` is not what this workbench read at its start.
    """

    def __init__(self, paths: WatchedFiles, *, stream: EventStream) -> None:
        self._paths, self._stream = paths, stream
        self.settings_changed = False

    async def run(self) -> None:
        """Tell every tab when one of the files has changed, until it is cancelled."""
        before = await self._stamps()
        first = before[1]
        while True:
            await anyio.sleep(LOOK_SECONDS)
            now = await self._stamps()
            if now != before:
                before = now
                self.settings_changed = now[1] != first
                self._stream.send(ServerEvent(kind="files"))

    async def _stamps(self) -> list[tuple[int, int, int] | None]:
        stamps: list[tuple[int, int, int] | None] = []
        for path in (self._paths.connections, self._paths.settings):
            try:
                status = await anyio.Path(path).stat()
            except OSError:
                stamps.append(None)
            else:
                stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return stamps
