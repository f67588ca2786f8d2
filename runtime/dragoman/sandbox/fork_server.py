"""The host's side of fork servers: one for each thread that opens connections, shared by the runtimes there."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from contextlib import suppress
from errno import EAGAIN, ENOMEM, errorcode
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from dragoman_worker.channel import FORK_REPLY, FORK_REQUEST, FORK_UNSUPPORTED
from dragoman_worker.main import FORK_SERVER

from . import levels
from .bare_process import Child, Output, Process, Spare, admit, close_in_forks, spawn_worker

if TYPE_CHECKING:
    from types import TracebackType

    from .host_imports import HostImports

SECONDS = 10.0
"""For one process, with the imports of a server that has just started. A server that takes longer is killed."""

MOST_FAILURES = 3
"""After which a thread's processes are spawned."""

_NO_ROOM = (EAGAIN, ENOMEM)

_handed_over: WeakValueDictionary[int, Process] = WeakValueDictionary()
"""The processes that servers forked and told of, by their numbers."""

_numbers = count(1)
"""Each server has one in its command line, which its forks inherit: what a server lost is told by it."""

_log = logging.getLogger("dragoman.sandbox")


class ForkServerError(Exception):
    """The server gave no process, and has ended.

    Attributes:
        final: Every other server would end in this way.
    """

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class ForkServer:
    """A process that forks drivers' processes, which are children of this one.

    Attributes:
        process: The server.
    """

    def __init__(self, host_imports: HostImports) -> None:
        """Start the server; it is ready within 0.2 s, and requests wait for it.

        Must be called in the thread that outlives the processes: the kernel ends them and the server with that thread.

        Raises:
            OSError: The process cannot be started.
        """
        self._control, its_control = socket.socketpair()
        reading, writing = os.pipe()
        try:
            self.process = spawn_worker(its_control, output=writing, word=f"{FORK_SERVER}-{next(_numbers)}")
        except BaseException:
            self._control.close()
            os.close(reading)
            raise
        finally:
            its_control.close()
            os.close(writing)
        self._output = Output(reading)
        self._lock = threading.RLock()
        self._status = ""
        self._thread = threading.get_native_id()
        close_in_forks(self)
        admit(self._control, host_imports)

    def start(self) -> Child:
        """Start a driver's process. Blocks, also while other threads do this.

        Raises:
            ForkServerError: The server has ended, or did not answer in time or cannot fork here, and was killed.
            OSError: The machine has no room for another process.
        """
        with self._lock:
            return Child(self._fork)

    def _fork(self, control: socket.socket, broker: socket.socket, output: int) -> tuple[Process, str]:
        if self.process.ended:
            raise self.obituary()
        try:
            self._control.settimeout(SECONDS)
            socket.send_fds(self._control, [FORK_REQUEST], [control.fileno(), broker.fileno(), output])
            reply = self._control.recv(FORK_REPLY.size, socket.MSG_WAITALL)
        except TimeoutError:
            self.end()
            self._end_lost()
            raise ForkServerError(f"it did not answer within {SECONDS:g} s and was killed") from None
        except OSError:
            reply = b""
        if len(reply) < FORK_REPLY.size:
            error = self.obituary()
            self._end_lost()
            raise error
        (pid,) = FORK_REPLY.unpack(reply)
        if -pid in _NO_ROOM:
            raise OSError(-pid, os.strerror(-pid))
        if pid <= 0:
            self.end()
            raise ForkServerError(f"it cannot fork ({errorcode.get(-pid, pid)})", final=True)
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            self.end()
            raise ForkServerError(f"it named process {pid}, which is no child of this one, and was killed") from None
        process = Process(pid)
        if not self._status:
            # A process's filters are counted beside those of the process that it was forked from.
            status = levels.read_status(self.process.pid)
            if status is None or not levels.counts_filters(status):
                process.end()
                self.end()
                raise ForkServerError("its seccomp filters cannot be counted", final=True)
            self._status = status
        _handed_over[pid] = process
        return process, self._status

    def _end_lost(self) -> None:
        """End the process that the server forked before its end without telling of it, if there is one.

        Its command line is the server's, which no other server has. It is gone once the process has ended, which then
        stays a zombie.
        """
        try:
            children = Path(f"/proc/self/task/{self._thread}/children").read_text(encoding="ascii")
        except OSError:  # not every kernel lists them
            return
        for pid in map(int, children.split()):
            if _read_words(pid) == self.process.words and pid not in _handed_over:
                Process(pid).end()

    def obituary(self) -> ForkServerError:
        """End and reap the server, and return how it ended as an error."""
        last = ""
        with suppress(OSError):
            if lines := self._output.read().decode(errors="replace").splitlines():
                last = f": {lines[-1][:200]!a}"
        self.end()
        code = self.process.returncode
        status = "an unknown status" if code is None else f"exit status {code}" if code >= 0 else f"signal {-code}"
        return ForkServerError(f"it ended with {status}{last}", final=code == FORK_UNSUPPORTED)

    def end(self) -> None:
        """Kill and reap the server. The processes that it forked live on."""
        self.process.kill()  # before the lock: a thread that waits for an answer has it then
        with self._lock:
            self.process.wait()
            with suppress(OSError):  # it may have told of a last process, which nobody waits for
                self._control.settimeout(0)
                reply = self._control.recv(FORK_REPLY.size)
                if len(reply) == FORK_REPLY.size and (pid := FORK_REPLY.unpack(reply)[0]) > 0:
                    Process(pid).end()
            self.let_go()

    def let_go(self) -> None:
        """Close the descriptors, also in a fork of this process."""
        self._control.close()
        self._output.close()
        self.process.close()


def _read_words(pid: int) -> bytes:
    """Return a process's command line as the kernel shows it; empty if it has ended or cannot be read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class ThreadForks:
    """The fork server of one thread. It runs while there are claims, and a server that ended is replaced.

    Attributes:
        claims: How many need it.
        server: The server that was started; it may have ended.
    """

    def __init__(self) -> None:
        self.claims = self._failures = 0
        self.server: ForkServer | None = None

    def ready(self, host_imports: HostImports) -> ForkServer | None:
        """Return the running server, or start one; None if nothing claims it, or if it failed too often."""
        if self.server is not None and self.server.process.ended:
            self.note_failure(self.server, self.server.obituary())
        if sys.platform == "linux" and self.server is None and self.claims and self._failures < MOST_FAILURES:
            try:
                self.server = ForkServer(host_imports)
            except OSError:  # a process that is spawned meets it again, and reports it
                return None
        return self.server

    def note_failure(self, server: ForkServer, error: ForkServerError) -> None:
        """Forget a server that ended, and log why."""
        if self.server is not server:
            return  # another call noted it
        self.server = None
        self._failures = MOST_FAILURES if error.final else self._failures + 1
        if error.final:
            return  # that is how this machine is
        rest = "the next one is started" if self._failures < MOST_FAILURES else "drivers' processes are spawned now"
        _log.warning("the fork server of drivers' processes failed: %s; %s", error, rest)

    def note_success(self) -> None:
        """Forget earlier failures."""
        self._failures = 0

    def release(self) -> None:
        """Give up one claim; the last one ends the server."""
        self.claims -= 1
        if not self.claims:
            self._end()

    def _end(self) -> None:
        server, self.server = self.server, None
        if server is not None and server.process.is_own:
            server.end()

    def __del__(self) -> None:
        self._end()  # its thread has ended


class _Here(threading.local):
    def __init__(self) -> None:
        self.forks, self.pid = ThreadForks(), os.getpid()


_here = _Here()


def forks_here() -> ThreadForks:
    """Return what the current thread of this process shares."""
    if _here.pid != os.getpid():  # a fork of the process that had it
        _here.__init__()  # type: ignore[misc]
    return _here.forks


class ForkClaim(Spare):
    """Keeps the fork server of the current thread, for a Runtime that lives on there; a spare where it has none."""

    def __init__(self, host_imports: HostImports) -> None:
        super().__init__(host_imports)
        self._forks: ThreadForks | None = forks_here()
        self._forks.claims += 1

    def fill(self) -> None:
        """Start the server unless it is running, or the spare; in another thread, do nothing."""
        if self._forks is forks_here() and self._forks.ready(self.host_imports) is None:
            super().fill()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        forks, self._forks = self._forks, None
        try:
            super().__exit__(kind, error, traceback)
        finally:
            if forks is not None:
                forks.release()


async def fork_child(host_imports: HostImports) -> Child | None:
    """Start a driver's process with the fork server of this thread.

    Returns:
        The process; None if it is to be spawned.

    Raises:
        OSError: The machine has no room for another process.
    """
    forks = forks_here()
    if (server := forks.ready(host_imports)) is None:
        return None
    children: list[Child] = []
    abandoned = False

    def start() -> None:
        children.append(server.start())
        if abandoned:
            discard()

    def discard() -> None:
        with suppress(IndexError):
            children.pop().discard()

    try:
        await anyio.to_thread.run_sync(start, abandon_on_cancel=True)
    except ForkServerError as error:
        forks.note_failure(server, error)
        return None
    except BaseException:  # cancelled; the thread goes on
        abandoned = True
        discard()
        raise
    forks.note_success()
    return children.pop()
