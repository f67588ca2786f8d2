"""A driver's process on Windows: it gets shares of sockets as bytes, and is in a job that ends with this process."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import weakref
from collections import deque
from contextlib import suppress
from ctypes import wintypes
from threading import Semaphore, Thread
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman_worker.wire import pack

if TYPE_CHECKING:
    import io
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from dragoman_worker.wire import BrokerReply, Lockdown

assert sys.platform == "win32"

Passed = socket.socket
LAYERS: tuple[str, ...] = ("job",)
_SETTLE_SECONDS = 1.0
_PIECES = 4  # of output that are read ahead
_EXTENDED_LIMITS, _ONE_PROCESS, _PROCESS_MEMORY, _KILL_ON_CLOSE = 9, 0x8, 0x100, 0x2000

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel32.CreateJobObjectW.restype = wintypes.HANDLE


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("times", ctypes.c_int64 * 2),
        ("flags", wintypes.DWORD),
        ("working_set", ctypes.c_size_t * 2),
        ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", wintypes.DWORD * 2),
        ("counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("rest", ctypes.c_size_t * 3),
    )


class Process(subprocess.Popen[bytes]):
    """A process in a job of its own, which the system ends together with this process."""

    _job: wintypes.HANDLE | None = None

    def tie(self) -> None:
        """Put it into its job, as far as the system does that."""
        job = wintypes.HANDLE(_kernel32.CreateJobObjectW(None, None))
        weakref.finalize(self, _kernel32.CloseHandle, job)
        if _kernel32.AssignProcessToJobObject(job, wintypes.HANDLE(int(self._handle))):  # type: ignore[attr-defined]
            self._job = job
            self._limit(_Limits(flags=_KILL_ON_CLOSE))

    def bound(self, plan: Lockdown) -> None:
        """Forbid further processes and memory beyond the plan; the process itself tests that this holds."""
        if self._job is not None and "job" in plan.layers:
            flags = _KILL_ON_CLOSE | _ONE_PROCESS | _PROCESS_MEMORY
            self._limit(_Limits(flags=flags, processes=1, process_memory=plan.memory))

    def _limit(self, limits: _Limits) -> None:
        _kernel32.SetInformationJobObject(self._job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))


class Output:
    """A process's output; a thread reads it, since a pipe cannot be watched."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pieces: deque[bytes] = deque()
        self._room = Semaphore(_PIECES)
        self._watching: tuple[AbstractEventLoop, Callable[[], object]] | None = None
        self._thread = Thread(target=self._pump, name="output of a driver", daemon=True)
        self._thread.start()

    def _pump(self) -> None:
        data = b"-"
        while data:
            self._room.acquire()
            data = os.read(self._descriptor, 1 << 16)
            self._pieces.append(data)
            if (watching := self._watching) is not None:
                with suppress(RuntimeError):  # the loop was closed this moment
                    watching[0].call_soon_threadsafe(self._tell)
        os.close(self._descriptor)

    def _tell(self) -> None:
        while self._pieces and self._watching is not None:
            self._watching[1]()

    def watch(self, loop: AbstractEventLoop, ready: Callable[[], object]) -> None:
        """Call a function whenever there is something to read."""
        self._watching = (loop, ready)
        loop.call_soon(self._tell)

    def unwatch(self, _loop: AbstractEventLoop) -> None:
        """Stop calling the function."""
        self._watching = None

    def read(self) -> bytes:
        """Return the available bytes, empty at the end. Raises BlockingIOError if none are available yet."""
        try:
            data = self._pieces.popleft()
        except IndexError:
            raise BlockingIOError from None
        self._room.release()
        return data

    def settle(self) -> None:
        """Wait briefly until the output from before a process's end can be read."""
        self._thread.join(_SETTLE_SECONDS)

    def close(self) -> None:
        """Leave the pipe to the thread, which ends with the last process that can print into it."""
        self._watching = None
        self._pieces.clear()
        self._room.release(1 << 30)


def start(boot: str, *arguments: str) -> tuple[Process, socket.socket, socket.socket, Output]:
    """Start a process with two sockets of its own, whose shares it reads from its standard input.

    Args:
        boot: Program text; it receives two placeholder words, then `arguments`.
        arguments: Further ones.

    Returns:
        The process, the host's ends of its sockets, and its output.
    """
    (control, its_control), (broker, its_broker) = socket.socketpair(), socket.socketpair()
    reading, writing = os.pipe()
    try:
        process = Process(
            # In a virtual environment sys.executable is a program that starts the interpreter as a further process.
            [getattr(sys, "_base_executable", sys.executable), "-I", "-S", "-B", "-c", boot, "-", "-", *arguments],
            stdin=subprocess.PIPE,
            stdout=writing,
            stderr=writing,
            env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},  # no sockets without it
            cwd=sys.base_prefix,
            creationflags=subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP,  # Ctrl-C is the host's
        )
        process.tie()
        assert process.stdin is not None
        try:
            with process.stdin as stdin:
                stdin.write(its_control.share(process.pid) + its_broker.share(process.pid))
        except OSError:
            process.kill()
            process.wait()
            raise
    except BaseException:
        control.close()
        broker.close()
        os.close(reading)
        raise
    finally:
        its_control.close()
        its_broker.close()
        os.close(writing)
    return process, control, broker, Output(reading)


def pipe() -> tuple[io.RawIOBase, socket.socket]:
    """Create a watchable replacement for a pipe; return the read end and the end to hand over."""
    reading, writing = socket.socketpair()
    with reading:  # it lives on in its file
        reading.settimeout(0)
        return reading.makefile("rb", buffering=0), writing


def send(sock: socket.socket, reply: BrokerReply, passed: Passed | None = None, *, to: int) -> bool:
    """Send a reply that holds a share of the resource for the process `to`; return whether it was sent completely.

    Raises:
        OSError: The process does not read, or is gone.
    """
    message = pack(reply if passed is None else replace(reply, share=passed.share(to)))
    return sock.send(message) == len(message)
