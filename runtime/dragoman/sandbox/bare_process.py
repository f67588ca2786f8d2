"""The bare process of a driver: started, not yet configured; a warm spare is one of these.

A command starts it before all else, so this module and what it imports avoid `typing`, which takes as long to import as
the rest of them together.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from threading import Lock, Thread
from weakref import WeakSet

import dragoman_worker
from dragoman_worker.main import BOOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Protocol, Self

    from .host_imports import HostImports

    Start = Callable[[socket.socket, socket.socket, int], tuple["Process", str]]

    class Forgotten(Protocol):
        """What a fork of its process closes."""

        def let_go(self) -> None:
            """Close the descriptors."""


_P_PIDFD = getattr(os, "P_PIDFD", 3)  # a Python that was built with older headers lacks the name


class Process:
    """A child process. The import of `subprocess` would take as long as the start itself.

    A program may reap all its children, or have the kernel do so, and the process's number is then free for another
    one. Where the system has descriptors of processes, such another one can be neither reaped nor killed.

    Attributes:
        pid: Its number.
        pidfd: A descriptor that is readable once it has ended, for `close`; negative if the system gives none.
        returncode: Its exit status, or the negated number of the signal that ended it; None until it is reaped, and
            if something else reaped it.
        words: Its command line, as the kernel shows it; empty if another process started it.
    """

    def __init__(self, pid: int) -> None:
        """Take over a child of this process."""
        self.pid, self.pidfd, self.words = pid, -1, b""
        self.returncode: int | None = None
        self._gone = False
        self._parent = os.getpid()
        self._lock = Lock()
        if hasattr(os, "pidfd_open"):
            try:
                self.pidfd = os.pidfd_open(pid)
            except ProcessLookupError:
                self._gone = True
            except OSError:  # the kernel has none, or a filter forbids them, or too many descriptors are open
                pass

    @property
    def ended(self) -> bool:
        """Whether it has ended; it is reaped then."""
        if not self.is_own:
            return True
        with self._lock:
            self._reap(os.WNOHANG)
        return self._gone

    @property
    def is_own(self) -> bool:
        """Whether this process started it, and is not a fork of the one that did."""
        return self._parent == os.getpid()

    def wait(self) -> None:
        """Wait for the end of the process, and reap it."""
        self._reap(0)  # without the lock: another thread may kill it meanwhile

    def kill(self) -> None:
        """End the process if it is running; not from a fork of its parent, which it does not belong to."""
        if not self.is_own:
            return
        with self._lock:  # so that neither its number nor the descriptor's goes to another one meanwhile
            self._reap(os.WNOHANG)
            if self._gone:
                return
            with suppress(ProcessLookupError):
                if self.pidfd >= 0:
                    from signal import pidfd_send_signal

                    pidfd_send_signal(self.pidfd, 9)
                else:
                    os.kill(self.pid, 9)

    def end(self) -> None:
        """Kill and reap the process, and close its descriptor."""
        self.kill()
        self.wait()
        self.close()

    def close(self) -> None:
        """Close the descriptor, also in a fork of the parent; a second call does nothing."""
        with self._lock if self.is_own else Lock():  # another thread may have held it when the parent forked
            pidfd, self.pidfd = self.pidfd, -1
            if pidfd >= 0:
                os.close(pidfd)

    def _reap(self, options: int) -> None:
        if self._gone:
            return
        with suppress(ChildProcessError):  # another thread reaps it at this moment and notes its status; or others did
            if self.pidfd >= 0:
                if (result := os.waitid(_P_PIDFD, self.pidfd, os.WEXITED | options)) is None:
                    return
                self.returncode = result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
            else:
                pid, status = os.waitpid(self.pid, options)
                if not pid:
                    return
                self.returncode = os.waitstatus_to_exitcode(status)
        self._gone = True


def spawn(
    program: str, *arguments: str, environment: dict[str, str], output: int, passed: Mapping[int, int]
) -> Process:
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
    process = Process(os.posix_spawn(program, [program, *arguments], environment, file_actions=streams))
    process.words = b"".join(os.fsencode(word) + b"\0" for word in (program, *arguments))
    return process


def spawn_worker(*sockets: socket.socket, output: int, word: str = "") -> Process:
    """Start a driver's process, or a fork server, with what `BOOT` takes.

    Args:
        sockets: Its ends of its sockets.
        output: The descriptor that it prints to.
        word: What it gets in place of a second socket.

    Raises:
        OSError: It cannot be started.
    """
    ends = [sock.fileno() for sock in sockets]
    passed = dict(zip(ends, sorted({*range(3, 8)}.difference(ends, (output,)))))  # noqa: B905 - the first ones
    [package] = dragoman_worker.__path__
    folder = os.path.dirname(package)  # noqa: PTH120 - pathlib takes long, too
    words = ("-I", "-S", "-B", "-c", BOOT, *map(str, passed.values()), *filter(None, [word]), str(os.getpid()), folder)
    process = spawn(sys.executable, *words, environment={"LANG": "C.UTF-8"}, output=output, passed=passed)
    if sys.platform == "linux":  # before the child is told anything: it would take as long as half of the start
        from dragoman_worker.lockdown import process_limits

        process_limits.hide_memory()  # this process's memory holds the secrets of all connections
    return process


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


class Child:
    """One process with its two sockets and its log pipe.

    Attributes:
        origin: The kernel's status of the process that it was forked from; None if it was spawned.
    """

    def __init__(self, start: Start | None = None) -> None:
        """Start the process.

        Must be called in the thread that outlives the child, unless `start` forks it: the kernel ends it together with
        that thread.

        Args:
            start: Starts the process with its ends of the sockets, and what it prints to; returns it and its origin.
                None spawns one, which imports of the standard library what it needs and then waits for `admit`.

        Raises:
            OSError: The process cannot be started.
        """
        (self.control, its_control), (self.broker, its_broker) = socket.socketpair(), socket.socketpair()
        reading, writing = os.pipe()
        self.origin: str | None = None
        try:
            if start is None:
                self.process = spawn_worker(its_control, its_broker, output=writing)
            else:
                self.process, self.origin = start(its_control, its_broker, writing)
        except BaseException:
            self.control.close()
            self.broker.close()
            os.close(reading)
            raise
        finally:
            its_control.close()
            its_broker.close()
            os.close(writing)
        self.output = Output(reading)
        close_in_forks(self)

    def admit(self, host_imports: HostImports) -> None:
        """Tell a spawned process once what it may import; it imports what it trusts and waits for its configuration."""
        admit(self.control, host_imports)

    def watch(self, loop: AbstractEventLoop, ended: Callable[[], None]) -> None:
        """Call a function in an event loop once the process has ended and is reaped; the loop must outlive it."""

        def reap() -> None:
            loop.remove_reader(self.process.pidfd)
            self.process.wait()
            self.process.close()
            ended()

        def wait() -> None:
            self.process.wait()
            loop.call_soon_threadsafe(ended)

        if self.process.pidfd >= 0:
            loop.add_reader(self.process.pidfd, reap)
        else:
            Thread(target=wait, name=f"driver {self.process.pid}", daemon=True).start()

    def discard(self) -> None:
        """Kill and reap a child that no worker has taken over."""
        self.process.end()
        self.control.close()
        self.broker.close()
        self.output.close()

    def let_go(self) -> None:
        """Close the descriptors in a fork of this process."""
        for sock in (self.control, self.broker):
            # Detached, because loops count their uses of a socket and would not let it close.
            if (descriptor := sock.detach()) >= 0:
                with suppress(OSError):
                    os.close(descriptor)
        with suppress(OSError):
            self.output.close()
        self.process.close()


def admit(control: socket.socket, host_imports: HostImports) -> None:
    """Tell a spawned process once what it may import.

    A process that has ended is noticed later, by the one who talks to it.
    """
    import json

    from dragoman_worker.channel import frame

    control.settimeout(0)  # the frame is far smaller than the socket's buffer
    with suppress(OSError):
        control.sendall(frame(json.dumps(host_imports.modules).encode()))


_living: WeakSet[Forgotten] = WeakSet()


def close_in_forks(owner: Forgotten) -> None:
    """Have a fork of this process close an object's descriptors with `let_go`."""
    _living.add(owner)


def _leave_to_parent() -> None:
    """Close what a fork inherits: its end must neither keep a driver alive nor touch what the parent's loop watches."""
    for owner in list(_living):
        owner.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class Spare:
    """Keeps at most one child ready; for a Runtime that lives on, never for a one-shot command."""

    def __init__(self, host_imports: HostImports, *, started: Child | None = None) -> None:
        """Prepare a spare; `started` is a child that was started for it and is not admitted to its imports yet."""
        self.host_imports = host_imports
        self._child = started
        if started is not None:
            started.admit(host_imports)

    def fill(self) -> None:
        """Start the spare if there is none; it becomes warm by itself within 0.2 s."""
        if self._child is None:
            self._child = Child()
            self._child.admit(self.host_imports)

    def take(self) -> Child | None:
        """Hand over the spare, or None if there is no live one."""
        child, self._child = self._child, None
        if child is not None and child.process.ended:
            child.discard()
            return None
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._child is not None:
            self._child.discard()
            self._child = None
