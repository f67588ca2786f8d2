"""Frames: the length as a little-endian u32, then that many bytes of msgpack. A fork server has fixed ones."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

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
