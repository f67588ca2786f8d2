"""The bare process of a driver: started, not yet configured; a warm spare is one of these."""

from __future__ import annotations

import json
import os
from threading import Thread
from typing import TYPE_CHECKING

from dragoman_worker.main import BOOT

from . import system

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from .host_imports import HostImports


class Child:
    """One process with its two sockets and its log pipe."""

    def __init__(self, host_imports: HostImports) -> None:
        """Start the process, which imports what it trusts and then waits for its configuration.

        Must be called in the thread that outlives the child: the kernel ends it together with that thread.

        Args:
            host_imports: The modules it may import.

        Raises:
            OSError: The process cannot be started.
        """
        self.host_imports = host_imports
        where = host_imports.modules["dragoman_worker"]
        self.process, self.control, self.broker, self.output = system.start(
            BOOT, str(os.getpid()), json.dumps(host_imports.modules), where
        )
        self._pidfd = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else -1

    @property
    def alive(self) -> bool:
        """Whether the process is still running."""
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
            self.output.settle()
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
        self.output.close()
