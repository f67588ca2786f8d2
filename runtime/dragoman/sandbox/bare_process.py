"""The bare process of a driver: started, not yet configured; a warm spare is one of these.

A command starts it before all else, so this module and what it imports avoid `typing`, which takes as long to import as
the rest of them together.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Thread
from weakref import WeakSet

import dragoman_worker
from dragoman_worker.main import BOOT

from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from .host_imports import HostImports


_living: WeakSet[Child] = WeakSet()


def _leave_to_parent() -> None:
    """Close what a fork inherits: its end must neither keep a driver alive nor touch what the parent's loop watches."""
    for child in list(_living):
        child.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class Child:
    """One process with its two sockets and its log pipe."""

    def __init__(self) -> None:
        """Start the process, which imports of the standard library what it needs and then waits for `admit`.

        Must be called in the thread that outlives the child: the kernel ends it together with that thread.

        Raises:
            OSError: The process cannot be started.
        """
        [package] = dragoman_worker.__path__
        self.process, self.control, self.broker, self.output = system.start(
            BOOT,
            str(os.getpid()),
            os.path.dirname(package),  # noqa: PTH120 - pathlib takes long, too
        )
        self._pidfd = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else -1
        self._parent = os.getpid()
        _living.add(self)

    def admit(self, host_imports: HostImports) -> None:
        """Tell the process once what it may import; it imports what it trusts and waits for its configuration.

        A process that has ended is noticed later, by the one who talks to it.
        """
        import json

        from dragoman_worker.frames import frame

        self.control.settimeout(0)  # the frame is far smaller than the socket's buffer
        with suppress(OSError):
            self.control.sendall(frame(json.dumps(host_imports.modules).encode()))

    @property
    def is_own(self) -> bool:
        """Whether this process started it, and is not a fork of the one that did."""
        return self._parent == os.getpid()

    @property
    def alive(self) -> bool:
        """Whether the process is still running."""
        return self.process.poll() is None

    def watch(self, loop: AbstractEventLoop, ended: Callable[[], None]) -> None:
        """Call a function in an event loop once the process has ended and is reaped; the loop must outlive it."""

        def reap() -> None:
            loop.remove_reader(self._pidfd)
            self._close_pidfd()
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
        self._close_pidfd()
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
        self._close_pidfd()

    def _close_pidfd(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
