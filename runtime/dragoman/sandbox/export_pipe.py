"""The host side of an export: announcements on the control socket, bytes through a pipe of their own."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

from dragoman_api.exports import ExportPart
from dragoman_worker.values import ValueFaultError
from dragoman_worker.wire import CREDITS, Chunk, Part, Result

if TYPE_CHECKING:
    import io

    from dragoman_api.errors import DragomanError

_PIECE = 1 << 20
_LATE_SECONDS = 0.5
"""Seconds to wait for bytes written before the reply ended, since they travel through a separate pipe."""


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
            raise ValueFaultError("a part of a result as the answer to an export")
        if isinstance(message, Result):
            self._end()
        else:
            self._credit -= 1
            if self._credit < 0:
                raise ValueFaultError("a piece of an export without credit")
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
                    raise ValueFaultError(f"{len(surplus):,} bytes of an export that no part announced")
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
                raise ValueFaultError(f"{chunk.size - missing:,} bytes of a part of {chunk.size:,}")
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
