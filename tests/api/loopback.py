"""Servers on loopback that answer, and misbehave, as a test says."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterator


@dataclass(frozen=True)
class Request:
    """One request as its bytes arrived."""

    connection: int
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]


@dataclass(frozen=True)
class Reply:
    """Bytes to write, and what happens then: keep, close, reset or hang."""

    data: bytes
    then: str = "keep"


NO_HTTP = Reply(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "close")
"""What an HTTP server says to bytes that are no HTTP."""


@dataclass
class Loopback:
    """What a server saw."""

    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)


def http(body: bytes | str = b"{}", *, status: int = 200, headers: str = "", then: str = "keep") -> Reply:
    """Make a whole answer."""
    data = body.encode() if isinstance(body, str) else body
    return Reply(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(data)}\r\n\r\n".encode() + data, then)


@asynccontextmanager
async def serving(
    reply: Callable[[Request], Reply], *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Loopback]:
    """Serve requests by a function until the block ends."""
    seen = Loopback()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        seen.writers.append(writer)
        number = seen.connections
        try:
            while (request := await _read(reader, number)) is not None:
                seen.requests.append(request)
                answer = reply(request) if request.line else NO_HTTP
                writer.write(answer.data)
                await writer.drain()
                if answer.then == "reset":
                    writer.transport.abort()
                if answer.then == "hang":
                    await reader.read()
                if answer.then != "keep":
                    break
        except OSError:
            pass  # the client left
        finally:
            writer.close()

    server = await asyncio.start_server(talk, host, 0, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for writer in seen.writers:
            writer.close()
        await asyncio.sleep(0.01 if tls else 0)  # transports of TLS end a turn later


async def _read(reader: asyncio.StreamReader, connection: int) -> Request | None:
    try:
        if (first := await reader.readexactly(1)) == b"\x16":  # a TLS greeting: no method begins so
            return Request(connection, "", {}, first)
        head = first + await reader.readuntil(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest)}
        return Request(connection, line, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
    except asyncio.IncompleteReadError:
        return None


@contextmanager
def tls_without_a_farewell(tls: ssl.SSLContext, data: bytes) -> Iterator[int]:
    """Serve connections and end none: each is read and answered once, its farewell is not."""
    listener, over = socket.create_server(("localhost", 0)), threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.settimeout(10)
        with connection, suppress(OSError), tls.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(data)
            over.wait(10)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


@contextmanager
def serving_tls_in_a_thread(tls: ssl.SSLContext) -> Iterator[int]:
    """Serve one connection with blocking sockets: unlike asyncio, they send the alert when they end a handshake."""
    listener = socket.create_server(("localhost", 0))
    listener.settimeout(10)

    def serve() -> None:
        connection = listener.accept()[0]
        connection.settimeout(10)
        secured = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        try:
            secured.do_handshake()
            secured.recv(65536)
            secured.sendall(http('"ok"').data)
            secured.close()
        except OSError:
            with socket.socket(fileno=secured.detach()) as raw, suppress(OSError):
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):  # closing with unread bytes would reset the connection and lose the alert
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join()
        listener.close()
