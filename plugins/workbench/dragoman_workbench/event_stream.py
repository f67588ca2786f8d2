"""What reaches every tab: events of the runtime, questions that wait for an answer, and files that changed."""

from __future__ import annotations

import secrets
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import msgspec

from .messages.routes import OpenQuestion, ServerEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Protocol

    from dragoman import Question
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
ANSWER_SECONDS = 600.0
"""Seconds for an answer; then it counts as no."""
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


class Questions:
    """The open questions; the first answer of any tab counts."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._open: dict[str, OpenQuestion] = {}
        self._answered: dict[str, anyio.Event] = {}
        self._yes: set[str] = set()

    @property
    def open(self) -> list[OpenQuestion]:
        """The questions that wait."""
        return [*self._open.values()]

    async def ask(self, question: Question) -> bool:
        """Ask in every tab, and wait for the first answer; the runtime's `confirm`."""
        number = secrets.token_urlsafe(8)
        message = OpenQuestion(id=number, subject=question.subject, text=question.text, details=[*question.details])
        self._open[number], self._answered[number] = message, anyio.Event()
        self._stream.send(ServerEvent(kind="question", question=message))
        try:
            with anyio.move_on_after(ANSWER_SECONDS):
                await self._answered[number].wait()
            return number in self._yes
        finally:
            del self._open[number], self._answered[number]
            self._yes.discard(number)
            self._stream.send(ServerEvent(kind="answered", answered=number))

    def answer(self, number: str, *, yes: bool) -> bool:
        """Answer a question; False if it no longer waits."""
        if (answered := self._answered.get(number)) is None or answered.is_set():
            return False
        if yes:
            self._yes.add(number)
        answered.set()
        return True


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
