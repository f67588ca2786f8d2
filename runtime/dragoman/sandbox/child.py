"""The bare process of a driver: started, not yet configured; a warm spare is one of these."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from threading import Thread
from typing import TYPE_CHECKING

from dragoman_api.errors import SandboxError
from dragoman_worker.main import BOOT

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from .closure import Closure


class Child:
    """One process with its two sockets and its log pipe."""

    def __init__(self, closure: Closure) -> None:
        """Start the process, which imports what it trusts and then waits for its configuration.

        Must be called in the thread that outlives the child: the kernel ends it together with that thread.

        Args:
            closure: What it may import.

        Raises:
            SandboxError: This system cannot hand a process the sockets it needs (code ``platform-unsupported``).
            OSError: The process cannot be started.
        """
        if sys.platform == "win32":
            raise SandboxError(
                "drivers cannot be started on Windows itself yet",
                code="platform-unsupported",
                hint="use the Windows Subsystem for Linux (wsl --install), where they are confined fully",
            )
        if sys.platform == "linux":
            from dragoman_worker.lockdown import limits

            limits.hide_memory()  # of this process, from every child: the secrets of all connections are in it
        self.closure = closure
        self.control, control = socket.socketpair()
        self.broker, broker = socket.socketpair()
        self.log, log = os.pipe()
        where = closure.modules["dragoman_worker"]
        ends = [str(control.fileno()), str(broker.fileno()), str(os.getpid())]
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and a constant program
                [sys.executable, "-I", "-S", "-B", "-c", BOOT, *ends, json.dumps(closure.modules), where],
                pass_fds=(control.fileno(), broker.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            control.close()
            broker.close()
            os.close(log)
        self._pidfd = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else -1

    @property
    def alive(self) -> bool:
        """Tell whether it has not ended."""
        return self.process.poll() is None

    def watch(self, loop: AbstractEventLoop, ended: Callable[[], None]) -> None:
        """Call a function in an event loop once the process has ended and is reaped; the loop must outlive it."""

        def reap() -> None:
            loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self.process.wait()
            ended()

        def wait() -> None:
            self.process.wait()
            loop.call_soon_threadsafe(ended)

        if self._pidfd >= 0:
            loop.add_reader(self._pidfd, reap)
        else:
            Thread(target=wait, name=f"driver {self.process.pid}", daemon=True).start()

    def discard(self) -> None:
        """Kill and reap a child that no worker has taken over."""
        self.process.kill()
        self.process.wait()
        if self._pidfd >= 0:
            os.close(self._pidfd)
        self._close()

    def _close(self) -> None:
        self.control.close()
        self.broker.close()
        os.close(self.log)
