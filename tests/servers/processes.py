"""A server as a child process that can neither outlive its parent nor be forgotten."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from servers.faults import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 10.0
_TAIL_LINES = 30


class Process:
    """One server: its process group, its log, and an orderly end."""

    def __init__(
        self, name: str, command: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the command, in a session of its own, with its output in a log and all or this environment.

        Its standard input is a pipe that ends when this process ends, however it dies.
        """
        self.name = name
        self.log = folder / "server.log"
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )

    @property
    def pid(self) -> int:
        """The process, which leads its group."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._child.poll() is None

    def tail(self) -> str:
        """Read the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    def wait_until(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Poll until the server answers.

        Raises:
            EngineError: It ended, or did not answer in time.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.alive:
                raise EngineError(
                    self.name, f"ended with status {self._child.returncode} while starting", tail=self.tail()
                )
            if time.monotonic() > deadline:
                raise EngineError(
                    self.name,
                    f"did not answer within {seconds:.0f} s",
                    tail=self.tail(),
                    remedy="a machine with less to do, or --patience SECONDS",
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End the whole group: politely, then not."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        try:
            self._child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._child.wait()
        if self._child.stdin:
            self._child.stdin.close()


def die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return the code a child runs before its command, so that Linux signals it when its parent is gone."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # found here: nothing may be loaded between fork and exec
    return lambda: prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Find ports that nobody listens on; held together, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((host, 0))
        return [each.getsockname()[1] for each in sockets]


def free_neighbours(host: str = "127.0.0.1") -> int:
    """Find a port such that nobody listens on it nor on the one above it."""
    while True:
        (port,) = free_ports(1, host)
        with contextlib.suppress(OSError), socket.socket() as other:
            other.bind((host, port + 1))
            return port


@contextmanager
def signals_unwind() -> Iterator[None]:
    """Turn the signals that end a program into exceptions, so that everything entered is left again."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def leave(number: int, _frame: object) -> None:
        for each in numbers:  # cleaning up is bounded in time and must not be cut short
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
