"""How sockets and pipes enter this process: as descriptors beside a message."""

from __future__ import annotations

import array
import io
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # some systems lack it
_SPACE = socket.CMSG_SPACE(array.array("i").itemsize)


def first_two(arguments: Sequence[str]) -> tuple[socket.socket, socket.socket]:
    """Return the two sockets inherited from the host. Their descriptors are the first two arguments."""
    control, broker = (socket.socket(fileno=int(text)) for text in arguments[:2])
    for sock in (control, broker):
        sock.set_inheritable(False)
    return control, broker


class PassedResources:
    """Receives messages and keeps the descriptors that came with the last one."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def receive(self, sock: socket.socket, size: int) -> bytes:
        """Read at most `size` bytes and the descriptors beside them. Raises BlockingIOError if none are there."""
        data, ancillary, flags, _ = sock.recvmsg(size, _SPACE, _CLOEXEC)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._descriptors += array.array("i", content)
        if flags & socket.MSG_CTRUNC:
            os._exit(4)
        return data

    def take_socket(self) -> socket.socket:
        """Return the received socket."""
        return socket.socket(fileno=self._descriptors.pop())

    def take_pipe(self) -> io.RawIOBase:
        """Return the write end of the received pipe."""
        return io.FileIO(self._descriptors.pop(), "w")

    def clear(self) -> None:
        """Close resources that were not taken."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def put_over(real: socket.socket, sock: socket.socket) -> None:
    """Make `sock` the connection of `real`, of its family, and detach `real`."""
    socket.close(sock.detach())
    sock.__init__(fileno=real.detach())  # type: ignore[misc]
