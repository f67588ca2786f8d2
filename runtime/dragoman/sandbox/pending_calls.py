"""The host side of calls: those that wait for a child, those that were abandoned, and exports, which come in parts."""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from dragoman_api.exports import ExportPart
from dragoman_worker import values
from dragoman_worker.wire import CREDITS, Chunk, Failure, Part, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.errors import DragomanError

GRACE_SECONDS = 1.0
"""Time a driver has to obey a cancellation before its process is killed."""
_PIECE = 1 << 20  # bytes of the pipe, and of one read
_LATE_SECONDS = 0.5
"""Seconds to wait for bytes written before the reply ended, since they travel through a separate pipe."""


class Waiting(Protocol):
    """One call that waits."""

    def take(self, message: Part | Chunk | Result) -> None:
        """Handle a message for this call.

        Raises:
            values.FAULTS: The message is malformed.
        """

    def fail(self, error: DragomanError) -> None:
        """End it by an error."""


class PendingCall:
    """A call that waits for its result."""

    def __init__(self, kind: Any) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._assembly = values.Assembly(kind)

    def take(self, message: Part | Chunk | Result) -> None:
        """Collect parts; the result ends the wait."""
        if isinstance(message, Part):
            self._assembly.add(message)
        elif isinstance(message, Result):
            value = self._assembly.finish(message.value)
            if not self.future.done():
                self.future.set_result(value)
        else:
            raise values.ValueFaultError("a piece of an export as the answer to a call")

    def fail(self, error: DragomanError) -> None:
        """End it by an error."""
        if not self.future.done():
            self.future.set_exception(error)


class PendingCalls:
    """All calls of one child, by number."""

    def __init__(self, *, on_disobedience: Callable[[], None]) -> None:
        """Begin with none.

        Args:
            on_disobedience: Called when a cancelled call outlasts the grace period.
        """
        self._on_disobedience = on_disobedience
        self._waiting: dict[int, Waiting] = {}
        self._abandoned: dict[int, asyncio.TimerHandle] = {}
        self._last = 0

    def add(self, waiting: Waiting) -> int:
        """Number a call."""
        self._last += 1
        self._waiting[self._last] = waiting
        return self._last

    def dispatch(self, message: Part | Chunk | Result | Failure, *, error: DragomanError | None) -> None:
        """Hand a message to its call.

        Args:
            message: From the child.
            error: Builds the error for a failure.

        Raises:
            values.FAULTS: It belongs to no call, or makes no sense there.
        """
        final = isinstance(message, (Result, Failure))
        if (waiting := self._waiting.get(message.id)) is not None:
            if isinstance(message, Failure):
                assert error is not None
                waiting.fail(error)
            else:
                waiting.take(message)
            if final:  # only now: a call whose answer makes no sense still waits, for the error
                del self._waiting[message.id]
        elif message.id not in self._abandoned:
            raise values.ValueFaultError(f"an answer to call {message.id}, which is not in progress")
        elif final:
            self._abandoned.pop(message.id).cancel()

    def abandon(self, number: int) -> bool:
        """Stop waiting for a call; return whether the child must be notified."""
        if self._waiting.pop(number, None) is None:
            return False
        loop = asyncio.get_running_loop()
        self._abandoned[number] = loop.call_later(GRACE_SECONDS, self._on_disobedience)
        return True

    def end(self, make_error: Callable[[], DragomanError]) -> None:
        """Fail everything that still waits."""
        for timer in self._abandoned.values():
            timer.cancel()
        self._abandoned.clear()
        while self._waiting:
            self._waiting.popitem()[1].fail(make_error())


def open_pipe() -> tuple[io.RawIOBase, io.FileIO]:
    """Create a non-blocking pipe for an export; return the read end and the end to hand over."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    with suppress(AttributeError, OSError):  # Linux; where a user's pipes may not be larger, it works all the same
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIECE)  # so that both ends wake up seldom
    return io.FileIO(reading), io.FileIO(writing, "w")


class ExportReply:
    """A stream that waits for its next chunk; accepts only as many as it gave credit for."""

    def __init__(self, pipe: io.RawIOBase) -> None:
        """Begin.

        Args:
            pipe: The read end, non-blocking.
        """
        self._pipe = pipe
        self._chunks: deque[Chunk] = deque()
        self._arrived = anyio.Event()
        self._credit = CREDITS
        self._over = False
        self._error: DragomanError | None = None
        self._waiting = anyio.CancelScope()

    def take(self, message: Part | Chunk | Result) -> None:
        """Queue a chunk; the result ends the stream."""
        if isinstance(message, Part):
            raise values.ValueFaultError("a part of a result as the answer to an export")
        if isinstance(message, Result):
            self._end()
        else:
            self._credit -= 1
            if self._credit < 0:
                raise values.ValueFaultError("a piece of an export without credit")
            self._chunks.append(message)
        self._arrived.set()

    def fail(self, error: DragomanError) -> None:
        """End the stream with an error, after the announced parts."""
        self._error = error
        self._end()
        self._arrived.set()

    def _end(self) -> None:
        """Note that no more is written to the pipe, though it may stay open."""
        self._over = True
        self._waiting.cancel()

    async def part(self) -> ExportPart | None:
        """Wait for the next part and its bytes; None at the end.

        Raises:
            DragomanError: The driver's, or its process ended.
            ValueFaultError: The pipe or the reply ended inside a part, or bytes came that belong to none.
        """
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._over:
                if surplus := self._pipe.read(_PIECE):
                    raise values.ValueFaultError(f"{len(surplus):,} bytes of an export that no part announced")
                return None
            self._arrived = anyio.Event()
            await self._arrived.wait()
        chunk = self._chunks.popleft()
        pieces, missing = [], chunk.size
        while missing:
            piece = self._pipe.read(min(missing, _PIECE))
            if piece is None and await self._more():
                continue
            if not piece:
                if self._error is not None:
                    raise self._error
                raise values.ValueFaultError(f"{chunk.size - missing:,} bytes of a part of {chunk.size:,}")
            pieces.append(piece)
            missing -= len(piece)
        self._credit += 1
        fields = {name: getattr(chunk, name) for name in ("rows", "total", "checkpoint", "notes", "turned_away")}
        return ExportPart(data=b"".join(pieces), **fields)

    async def _more(self) -> bool:
        """Wait until the pipe may have data; return False if no more will come."""
        if not self._over:
            with anyio.CancelScope() as self._waiting:
                await anyio.wait_readable(self._pipe)
            return True
        with anyio.move_on_after(_LATE_SECONDS) as late:
            await anyio.wait_readable(self._pipe)
        return not late.cancelled_caught
