"""A line to a server that a test can hold up in the middle of an answer."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SlowLine:
    """A TCP proxy on the loopback. Bytes of the server pass while some are allowed.

    Attributes:
        port: Where it listens.
        passed: Bytes of the server that have passed.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._change = threading.Condition()
        self._allowed: int | None = None
        self._ends: list[socket.socket] = []
        self._cut = False
        self.passed = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *about: object) -> None:
        thread = threading.Thread(target=work, args=about, daemon=True)
        self._threads.append(thread)
        thread.start()

    def allow(self, count: int | None) -> None:
        """Let so many further bytes of the server pass; None for all."""
        with self._change:
            self._allowed = None if count is None else self.passed + count
            self._change.notify_all()

    @property
    def held(self) -> bool:
        """Whether the allowed bytes have passed, so that the next ones wait."""
        return self._allowed is not None and self.passed >= self._allowed

    def cut(self) -> None:
        """Break every connection, and accept none until `mend`."""
        self._cut = True
        self._drop()

    def mend(self) -> None:
        """Accept connections again."""
        self._cut = False

    def _drop(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends.clear()

    def close(self) -> None:
        """Accept no further connection, and let go of those that wait."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.allow(None)
        self._drop()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with self._listener, suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._cut:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self._server))
                except OSError:
                    near.close()
                    continue
                self._ends += [near, far]
                self._start(self._pass, near, far, False)
                self._start(self._pass, far, near, True)

    def _pass(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with source, suppress(OSError):
            while data := source.recv(16_384):
                if counted:
                    with self._change:
                        self._change.wait_for(lambda: self._allowed is None or self.passed < self._allowed)
                        self.passed += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
