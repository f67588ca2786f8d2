"""The host's end of an export: announcements on the control socket, bytes through a pipe of their own."""

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


class ExportReply:
    """A stream that waits for its next chunk; takes no more than it has given credit for."""

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

    def take(self, message: Part | Chunk | Result) -> None:
        """Queue a chunk; the result ends the stream."""
        if isinstance(message, Part):
            raise ValueFaultError("a part of a result, in answer to an export")
        if isinstance(message, Result):
            self._over = True
        else:
            self._credit -= 1
            if self._credit < 0:
                raise ValueFaultError("a piece of an export without credit")
            self._chunks.append(message)
        self._arrived.set()

    def fail(self, error: DragomanError) -> None:
        """End the stream by an error, after what was announced."""
        self._error, self._over = error, True
        self._arrived.set()

    async def part(self) -> ExportPart | None:
        """Wait for the next part and its bytes; None at the end.

        Raises:
            DragomanError: The driver's, or its process ended.
            ValueFaultError: The pipe ended inside a part.
        """
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._over:
                return None
            self._arrived = anyio.Event()
            await self._arrived.wait()
        chunk = self._chunks.popleft()
        pieces, missing = [], chunk.size
        while missing:
            if (piece := self._pipe.read(min(missing, _PIECE))) is None:
                await anyio.wait_readable(self._pipe)
                continue
            if not piece:
                if self._error is not None:
                    raise self._error
                raise ValueFaultError(f"{chunk.size - missing:,} bytes of a part of {chunk.size:,}")
            pieces.append(piece)
            missing -= len(piece)
        self._credit += 1
        return ExportPart(data=b"".join(pieces), rows=chunk.rows, total=chunk.total, checkpoint=chunk.checkpoint)
