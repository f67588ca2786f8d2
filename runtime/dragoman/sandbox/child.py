"""The bare process of a driver: started, not yet configured; a warm spare is one of these."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from dragoman_worker.main import BOOT

if TYPE_CHECKING:
    from .closure import Closure


class Child:
    """One process with its two sockets and its log pipe."""

    def __init__(self, closure: Closure) -> None:
        """Start the process, which imports what it trusts and then waits for its configuration.

        Must be called in the thread that outlives the child: the kernel ends it together with that thread.

        Args:
            closure: What it may import.
        """
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
        self.pidfd = os.pidfd_open(self.process.pid)

    @property
    def alive(self) -> bool:
        """Tell whether it has not ended."""
        return self.process.poll() is None

    def discard(self) -> None:
        """Kill and reap a child that no worker has taken over."""
        self.process.kill()
        self.process.wait()
        os.close(self.pidfd)
        self._close()

    def _close(self) -> None:
        self.control.close()
        self.broker.close()
        os.close(self.log)
