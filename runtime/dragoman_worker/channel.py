"""One end of the control socket: frames in, frames out, with the kernel's back-pressure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import anyio

from .frames import FrameError, FrameReader
from .wire import pack

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from .wire import Message


class Channel(asyncio.Protocol):
    """Sends messages and hands each frame that arrives to a callback.

    This is a protocol, not a stream: an answer reaches its caller without a reading task in between.
    """

    def __init__(
        self,
        *,
        limit: int,
        on_frame: Callable[[bytes], None],
        on_fault: Callable[[str], None],
        on_end: Callable[[], None],
    ) -> None:
        self._frames = FrameReader(limit=limit)
        self._on_frame, self._on_fault, self._on_end = on_frame, on_fault, on_end
        self._transport: asyncio.Transport | None = None
        self._flowing = anyio.Event()
        self._flowing.set()
        self._closed = False

    async def attach(self, sock: socket.socket) -> None:
        """Begin to read from a connected socket. The channel owns it from now on."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=sock)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport. asyncio calls this once; other loops, such as uvloop, have other classes."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Cut the received bytes into frames, and report malformed ones as a fault."""
        try:
            frames = self._frames.feed(data)
        except FrameError as error:
            self._on_fault(str(error))
            return
        for body in frames:
            self._on_frame(body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the owner that the socket ended, and release the senders that wait for it."""
        self._flowing.set()
        self._on_end()

    def pause_writing(self) -> None:
        """Hold back senders while the kernel's buffer is full."""
        self._flowing = anyio.Event()

    def resume_writing(self) -> None:
        """Let senders continue."""
        self._flowing.set()

    def send(self, *messages: Message) -> None:
        """Queue messages as one write. A closed channel drops them."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(map(pack, messages)))

    async def drain(self) -> None:
        """Wait until the other end has taken most of what was sent."""
        if not self._flowing.is_set():
            await self._flowing.wait()

    def close(self) -> None:
        """Close the socket and drop what was not sent yet. A channel that was never attached ends at once."""
        if self._transport is not None:
            self._transport.abort()
        elif not self._closed:
            self._closed = True
            self._on_end()
