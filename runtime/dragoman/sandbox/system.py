"""A driver's process: it inherits descriptors, and gets further ones beside a message."""

from __future__ import annotations

import fcntl
import io
import os
import socket
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping

    from dragoman_worker.wire import BrokerReply

Passed = io.FileIO | socket.socket
"""What can be handed over."""

LAYERS = ("limits", "capabilities", "landlock", "seccomp") if sys.platform == "linux" else ("limits",)
"""What a process gives up itself, as far as this system has it."""

_PIECE = 1 << 20  # bytes of an export's pipe, so that both ends wake up seldom


class Process:
    """A child process. The import of `subprocess` would take as long as the start itself.

    Attributes:
        pid: Its number.
        returncode: Its exit status, or the negated number of the signal that ended it; None until it is reaped.
    """

    def __init__(
        self, program: str, *arguments: str, environment: dict[str, str], output: int, passed: Mapping[int, int]
    ) -> None:
        """Start a program with this process's inheritable descriptors.

        Args:
            program: The file.
            arguments: What follows the program's name.
            environment: All its variables.
            output: The descriptor that it prints to.
            passed: Descriptors that this program alone gets, and their numbers there, which are others.

        Raises:
            OSError: It cannot be started.
        """
        # They are never inheritable here, where another thread may start a program at the same moment.
        streams = [
            *((os.POSIX_SPAWN_DUP2, descriptor, number) for descriptor, number in passed.items()),
            *((os.POSIX_SPAWN_DUP2, output, stream) for stream in (1, 2)),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        ]
        self.pid = os.posix_spawn(program, [program, *arguments], environment, file_actions=streams)
        self.returncode: int | None = None
        self._parent = os.getpid()

    def poll(self) -> int | None:
        """Reap the process if it has ended, and return its exit status."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for the end of the process, reap it, and return its exit status."""
        return self._reap(0)

    def kill(self) -> None:
        """End the process if it is running; not from a fork of its parent, which it does not belong to."""
        if self.poll() is None and self._parent == os.getpid():
            os.kill(self.pid, 9)  # the module of the names is imported later

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # another thread reaps it at this moment
                pid = 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Output:
    """The pipe with a process's output."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor

    def watch(self, loop: AbstractEventLoop, ready: Callable[[], object]) -> None:
        """Call a function whenever there is something to read."""
        loop.add_reader(self._descriptor, ready)

    def unwatch(self, loop: AbstractEventLoop) -> None:
        """Stop calling the function."""
        loop.remove_reader(self._descriptor)

    def read(self) -> bytes:
        """Return the available bytes, empty at the end. Raises BlockingIOError if none are available yet."""
        return os.read(self._descriptor, 1 << 16)

    def close(self) -> None:
        """Close the pipe; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def start(boot: str, *arguments: str) -> tuple[Process, socket.socket, socket.socket, Output]:
    """Start a process with two sockets of its own.

    Args:
        boot: Program text; it gets the descriptors of both sockets, then what follows.
        arguments: Further ones.

    Returns:
        The process, the host's ends of its sockets, and its output.
    """
    (control, its_control), (broker, its_broker) = socket.socketpair(), socket.socketpair()
    reading, writing = os.pipe()
    ends = (its_control.fileno(), its_broker.fileno())
    passed = dict(zip(ends, sorted({*range(3, 8)}.difference(ends, (writing,)))))  # noqa: B905 - the first two
    try:
        words = ("-I", "-S", "-B", "-c", boot, *map(str, passed.values()), *arguments)
        process = Process(sys.executable, *words, environment={"LANG": "C.UTF-8"}, output=writing, passed=passed)
    except BaseException:
        control.close()
        broker.close()
        os.close(reading)
        raise
    finally:
        its_control.close()
        its_broker.close()
        os.close(writing)
    if sys.platform == "linux":  # before the child is told anything: it would take as long as half of the start
        from dragoman_worker.lockdown import process_limits

        process_limits.hide_memory()  # from its children: this process's memory holds the secrets of all connections
    return process, control, broker, Output(reading)


def pipe() -> tuple[io.RawIOBase, io.FileIO]:
    """Create a non-blocking pipe for an export; return the read end and the end to hand over."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    with suppress(AttributeError, OSError):  # Linux; where a user's pipes may not be larger, it works all the same
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIECE)
    return io.FileIO(reading), io.FileIO(writing, "w")


def send(sock: socket.socket, reply: BrokerReply, passed: Passed | None = None) -> bool:
    """Send a reply with a resource; return whether it was sent completely.

    Raises:
        OSError: The process does not read, or is gone.
    """
    from dragoman_worker.wire import pack  # late: a process starts without it

    message = pack(reply)
    # Send header, body and descriptor in one message, so the child can match the descriptor to its reply.
    sent = socket.send_fds(sock, [message], [passed.fileno()]) if passed is not None else sock.send(message)
    return sent == len(message)
