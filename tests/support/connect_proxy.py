"""An HTTP proxy for CONNECT on real sockets, in a thread of its own; it can be told to misbehave."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from typing import Self

    from anyio.abc import TaskGroup

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class ConnectProxy:
    """A proxy that connects to what it is asked for; a context manager.

    Attributes:
        names: What it looks up: name → address. Other hosts are 502.
        user: ``NAME:PASSWORD`` that it wants; empty for none.
        allowed: The ports that it connects to; None for all.
        misbehave: Takes the place of its answer, with its streams, once a request was read.
        heads: The requests that it read, decoded.
        host: Where it listens.
        port: The port.
    """

    names: dict[str, str] = field(default_factory=dict)
    user: str = ""
    allowed: set[int] | None = None
    misbehave: Any = None
    heads: list[str] = field(default_factory=list)
    host: str = "127.0.0.1"
    port: int = 0

    @property
    def url(self) -> str:
        """The address that a person saves."""
        return f"http://{self.host}:{self.port}"

    @property
    def targets(self) -> list[str]:
        """What it was asked to connect to, in order."""
        return [head.split(" ")[1] for head in self.heads]

    def __enter__(self) -> Self:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    async def _run(self) -> None:
        """Listen until told to stop.

        A server of asyncio's own is no help: in Python 3.11, one that is closed in the moment in which it accepts a
        connection leaves that open (python/cpython issue 109564).
        """
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.create_server((self.host, self.port), family=family) as listener:
            listener.setblocking(False)
            self.port = listener.getsockname()[1]
            async with anyio.create_task_group() as tasks:
                self._loop.add_reader(listener, self._accept, listener, tasks)
                self._ready.set()
                await self._stop.wait()
                self._loop.remove_reader(listener)
                tasks.cancel_scope.cancel()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # their sockets are closed in the next round of the loop

    def _accept(self, listener: socket.socket, tasks: TaskGroup) -> None:
        with suppress(OSError):  # the other side has gone
            accepted, _ = listener.accept()
            accepted.setblocking(False)
            tasks.start_soon(self._track, accepted)

    async def _track(self, accepted: socket.socket) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):  # the other side has gone
            reader, writer = await asyncio.open_connection(sock=accepted)
            self._writers.append(writer)
            try:
                await self._serve(reader, writer)
            finally:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if self.misbehave is not None:
            await self.misbehave(reader, writer)
            return
        host, _, port = head.split(" ")[1].rpartition(":")
        wanted = base64.b64encode(self.user.encode()).decode()
        if self.user and f"\r\nProxy-Authorization: Basic {wanted}\r\n" not in head:
            writer.write(
                b'HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n'
            )
        elif self.allowed is not None and int(port) not in self.allowed:
            writer.write(b"HTTP/1.1 403 By policy\r\nContent-Length: 4\r\n\r\nno!\n")
        else:
            await self._pass_on((reader, writer), host.strip("[]"), int(port))
            return
        await writer.drain()

    async def _pass_on(self, here: Streams, host: str, port: int) -> None:
        try:
            there = await asyncio.open_connection(self.names.get(host, host), port)
        except OSError:
            here[1].write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        self._writers.append(there[1])
        here[1].write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
        try:
            async with anyio.create_task_group() as copying:
                copying.start_soon(_copy, here[0], there[1])
                copying.start_soon(_copy, there[0], here[1])
        except* OSError:
            pass  # one side has gone
        finally:
            there[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    with suppress(OSError):
        writer.write_eof()
