"""How sockets and pipes come into this process: as descriptors beside a message, on Windows as shares within it."""

from __future__ import annotations

import io
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

if sys.platform == "win32":

    def first_two(_arguments: Sequence[str]) -> tuple[socket.socket, socket.socket]:
        """Take the two sockets that the host shares with a process which it starts."""
        shares = sys.stdin.buffer.read()
        half = len(shares) // 2
        return socket.fromshare(shares[:half]), socket.fromshare(shares[half:])

    class Inbox:
        """What came with the message that is just read."""

        def receive(self, sock: socket.socket, size: int) -> bytes:
            """Read some bytes. Raises BlockingIOError."""
            return sock.recv(size)

        def take_socket(self, share: bytes) -> socket.socket:
            """Give the socket."""
            return socket.fromshare(share)

        def take_pipe(self, share: bytes) -> io.RawIOBase:
            """Give the end of a pipe to write to."""
            with socket.fromshare(share) as end:  # it lives on in its file
                end.settimeout(0)
                return end.makefile("wb", buffering=0)

        def clear(self) -> None:
            """Drop what nobody took."""

    def put_over(real: socket.socket, sock: socket.socket) -> None:
        """Let a socket be another one, which is used up."""
        socket.close(sock.detach())
        sock.__init__(fileno=real.detach())  # type: ignore[misc]

else:
    import array

    _CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # not every system has it
    _SPACE = socket.CMSG_SPACE(array.array("i").itemsize)

    def first_two(arguments: Sequence[str]) -> tuple[socket.socket, socket.socket]:
        """Take the two sockets that a process inherits from its host, whose descriptors are its first arguments."""
        control, broker = (socket.socket(fileno=int(text)) for text in arguments[:2])
        for sock in (control, broker):
            sock.set_inheritable(False)
        return control, broker

    class Inbox:
        """What came with the message that is just read."""

        def __init__(self) -> None:
            self._descriptors: list[int] = []

        def receive(self, sock: socket.socket, size: int) -> bytes:
            """Read some bytes, and keep what comes with them. Raises BlockingIOError."""
            data, ancillary, flags, _ = sock.recvmsg(size, _SPACE, _CLOEXEC)
            for level, kind, content in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self._descriptors += array.array("i", content)
            if flags & socket.MSG_CTRUNC:
                os._exit(4)
            return data

        def take_socket(self, _share: bytes) -> socket.socket:
            """Give the socket."""
            return socket.socket(fileno=self._descriptors.pop())

        def take_pipe(self, _share: bytes) -> io.RawIOBase:
            """Give the end of a pipe to write to."""
            return io.FileIO(self._descriptors.pop(), "w")

        def clear(self) -> None:
            """Close what nobody took."""
            while self._descriptors:
                os.close(self._descriptors.pop())

    def put_over(real: socket.socket, sock: socket.socket) -> None:
        """Let a socket be another one, which is used up."""
        with real:
            os.dup2(real.fileno(), sock.fileno(), inheritable=False)
