"""The control socket: frames, each a little-endian u32 and that many bytes of msgpack, and one end of the socket.

A process imports this module before it knows where the host's packages are.
"""

from __future__ import annotations

import asyncio
import struct

TYPE_CHECKING = False  # without typing, which the host imports later
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    import anyio

_LENGTH = struct.Struct("<I")

FROM_CHILD = 4 << 20
"""Maximum size, in bytes, of a frame that the host accepts from a child."""

FROM_HOST = 64 << 20
"""Maximum size, in bytes, of a frame that a child accepts from the host, such as a console text or a plan."""

FORK_REQUEST = b"f"
"""Asks a fork server for one process. Its two sockets and its output come beside it, in this order."""

FORK_REPLY = struct.Struct("=i")
"""The process's number, or the negated number of the error."""

FORK_UNSUPPORTED = 4
"""The exit status of a fork server that can never fork on this machine."""


class FrameError(Exception):
    """A frame is empty or longer than allowed. Its body is not read."""


def frame(body: bytes) -> bytes:
    """Prefix a message with its length."""
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts a byte stream into frames, whatever the size of its chunks."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes and return the frames they complete.

        Raises:
            FrameError: A length is zero or above the limit. The reader cannot go on.
        """
        buffer = self._buffer
        buffer += data
        frames, at = [], 0
        while len(buffer) - at >= 4:
            (length,) = _LENGTH.unpack_from(buffer, at)
            if not 0 < length <= self._limit:
                raise FrameError(f"a frame of {length:,} bytes; 1 to {self._limit:,} are allowed")
            if len(buffer) - at - 4 < length:
                break
            with memoryview(buffer) as view:
                frames.append(bytes(view[at + 4 : at + 4 + length]))
            at += 4 + length
        del buffer[:at]
        return frames

    @property
    def missing(self) -> int:
        """The number of bytes that must still arrive before the reader can go on."""
        have = len(self._buffer)
        return 4 - have if have < 4 else int(_LENGTH.unpack_from(self._buffer)[0]) + 4 - have


def receive(sock: socket.socket, *, limit: int) -> bytes | None:
    """Read one frame from a blocking socket, and no byte beyond it.

    Returns:
        The message, or None at the end of the stream.

    Raises:
        FrameError: The length is zero or above the limit.
    """
    reader = FrameReader(limit=limit)
    while data := sock.recv(reader.missing):
        if frames := reader.feed(data):
            return frames[0]
    return None


class Channel(asyncio.Protocol):
    """Sends messages and hands each frame that arrives to a callback.

    This is a protocol, not a stream: an answer reaches its caller without a reading task in between.
    """

    def __init__(
        self,
        *,
        limit: int,
        encode: Callable[[Any], bytes],
        on_frame: Callable[[bytes], None],
        on_fault: Callable[[str], None],
        on_end: Callable[[], None],
    ) -> None:
        self._frames, self._encode = FrameReader(limit=limit), encode
        self._on_frame, self._on_fault, self._on_end = on_frame, on_fault, on_end
        self._transport: asyncio.Transport | None = None
        self._flowing: anyio.Event | None = None
        self._closed = False

    async def attach(self, sock: socket.socket) -> None:
        """Begin to read from a connected socket. The channel owns it from now on."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=sock)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport. asyncio calls this once; other loops, such as uvloop, have other classes."""
        self._transport = transport  # type: ignore[assignment]

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
        self.resume_writing()
        self._on_end()

    def pause_writing(self) -> None:
        """Hold back senders while the kernel's buffer is full."""
        import anyio

        self._flowing = anyio.Event()

    def resume_writing(self) -> None:
        """Let senders continue."""
        if self._flowing is not None:
            self._flowing.set()
            self._flowing = None

    def send(self, *messages: Any) -> None:
        """Queue messages as one write. A closed channel drops them."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join([frame(self._encode(message)) for message in messages]))

    async def drain(self) -> None:
        """Wait until the other end has taken most of what was sent."""
        if self._flowing is not None:
            await self._flowing.wait()

    def close(self) -> None:
        """Close the socket and drop what was not sent yet. A channel that was never attached ends at once."""
        if self._transport is not None:
            self._transport.abort()
        elif not self._closed:
            self._closed = True
            self._on_end()
