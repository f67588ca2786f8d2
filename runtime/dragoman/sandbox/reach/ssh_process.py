"""One `ssh -W` process: its start, what it says, and its certain end."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
from collections import deque
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

import anyio

from dragoman.sandbox.process_output import harmless

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

LINES, LINE = 20, 300
"""Lines of an `ssh` process that are kept, and characters of each."""
GRACE_SECONDS = 1.0
"""Time for the last bytes after the driver's process has closed its end."""
_PIECE = 1 << 16
_DEBUG = (b"debug1: ", b"debug2: ", b"debug3: ")
# On Linux the process ends with this one, however this one ends; the signal survives the exec.
_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])
"""


class SshProcess:
    """A started `ssh -W`.

    Attributes:
        decided: Set once the other end has accepted, or the process has ended.
        accepted: Whether the other end has accepted.
        ended: Set once the process has ended and is reaped.
        said: The last lines that it printed, without its debug messages, harmless and short.
    """

    def __init__(
        self, command: list[str], end: socket.socket, *, there: str, environment: dict[str, str],
        on_end: Callable[[], None],
    ) -> None:  # fmt: skip
        """Start it.

        Args:
            command: Its words, the path of the program first.
            end: Its standard input and output, closed here.
            there: The argument of ``-W``.
            environment: Its environment.
            on_end: Called once it has ended.

        Raises:
            OSError: It cannot be started.
        """
        self.decided, self.ended = anyio.Event(), anyio.Event()
        self.accepted = False
        self.said: deque[str] = deque(maxlen=LINES)
        self._channel_requested, self._destination, self._line, self._on_end = False, there.encode(), b"", on_end
        self._loop = asyncio.get_running_loop()
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-B", "-c", _WITH_PARENT, str(os.getpid()), *command]
        self._process = subprocess.Popen(  # noqa: S603 - its words cannot be options
            command,
            stdin=end.fileno(),
            stdout=end.fileno(),
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stderr is not None
        self._stderr = self._process.stderr
        os.set_blocking(self._stderr.fileno(), False)
        self._loop.add_reader(self._stderr.fileno(), self._read)
        self._watch_end()
        self._watch_hang_up(end)

    def end(self) -> None:
        """Ask it to end, if it runs."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Kill it, if it runs."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def _watch_end(self) -> None:
        if hasattr(os, "pidfd_open"):
            pidfd = os.pidfd_open(self._process.pid)

            def reap() -> None:
                self._loop.remove_reader(pidfd)
                os.close(pidfd)
                self._reaped()

            self._loop.add_reader(pidfd, reap)
        else:

            def wait() -> None:
                self._process.wait()
                with suppress(RuntimeError):  # the loop may be gone
                    self._loop.call_soon_threadsafe(self._reaped)

            Thread(target=wait, name=f"ssh {self._process.pid}", daemon=True).start()

    def _watch_hang_up(self, end: socket.socket) -> None:
        """End the process after the driver's process has closed its end, even if the server keeps the other one open.

        A second descriptor of the process's end tells this. It is closed with the process, or the driver would see no
        end of it. Systems without epoll leave it to ssh, which ends when the server does.
        """
        self._end = end
        self._hang_up: Any = None
        if (epoll := getattr(select, "epoll", None)) is None:
            end.close()
            return
        self._hang_up = epoll()
        self._hang_up.register(end.fileno(), 0)  # a hang-up is always reported, and nothing else is asked for
        self._loop.add_reader(self._hang_up.fileno(), self._hung_up)

    def _hung_up(self) -> None:
        self._loop.remove_reader(self._hang_up.fileno())
        self._loop.call_later(GRACE_SECONDS, self._end_if_running)

    def _end_if_running(self) -> None:
        if not self.ended.is_set():
            self.end()

    def _reaped(self) -> None:
        self._process.wait()
        self._read()  # what it printed before its end
        self._loop.remove_reader(self._stderr.fileno())
        self._stderr.close()
        if self._hang_up is not None:
            self._loop.remove_reader(self._hang_up.fileno())
            self._hang_up.close()
            self._end.close()
        self.ended.set()
        self.decided.set()
        self._on_end()

    def _read(self) -> None:
        try:
            data = os.read(self._stderr.fileno(), _PIECE)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._stderr.fileno())
            return
        *lines, self._line = (self._line + data).split(b"\n")
        self._line = self._line[:LINE]
        for line in lines:
            self._take(line.rstrip(b"\r"))

    def _take(self, line: bytes) -> None:
        if not line.startswith(_DEBUG):
            if text := " ".join(harmless(line[: 4 * LINE].decode("utf-8", "replace")).split())[:LINE]:
                self.said.append(text)
        elif self.accepted:
            return
        # A host on the way (ProxyJump) prints the same about its own channel, before this one is asked for.
        elif b"channel_connect_stdio_fwd" in line and self._destination in line:
            self._channel_requested = True
        elif self._channel_requested and b": open confirm " in line:
            self.accepted = True
            self.decided.set()
