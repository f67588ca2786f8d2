"""An event loop that cannot connect: it asks the host's broker for connected sockets."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from typing import TYPE_CHECKING, Any

from . import passing
from .frames import FrameReader
from .wire import BROKER_FRAME, BrokerReply, Found, Lookup, Open, Opened, Pipe, Refused, decoder, pack

if TYPE_CHECKING:
    import io
    from collections.abc import Callable

_MAX_NAMES = 256
_CONNECT_ONLY = ("family", "proto", "flags", "local_addr", "happy_eyeballs_delay", "interleave", "all_errors")


class Broker:
    """The child's end of the broker socket: requests out, sockets and pipes in."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._replies = decoder(BrokerReply)
        self._frames = FrameReader(limit=BROKER_FRAME)
        self._inbox = passing.Inbox()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pipes: dict[int, asyncio.Future[io.RawIOBase]] = {}
        self._last = 0

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read."""
        self._socket.settimeout(0)
        self._loop = loop
        loop.add_reader(self._socket.fileno(), self._read)

    def _read(self) -> None:
        try:
            # Never more than the frame under way: what comes with its first bytes belongs to it.
            data = self._inbox.receive(self._socket, self._frames.missing)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)
        for body in self._frames.feed(data):
            self._answer(self._replies.decode(body))
            self._inbox.clear()

    def _answer(self, reply: Found | Opened | Refused | Pipe) -> None:
        if isinstance(reply, Pipe):
            self._pipe(reply.id).set_result(self._inbox.take_pipe(reply.share))
            return
        future = self._waiting.pop(reply.id, None)
        if future is None or future.done():
            return
        if isinstance(reply, Opened):
            future.set_result(self._inbox.take_socket(reply.share))
        elif isinstance(reply, Found):
            future.set_result(reply.families)
        else:
            kind = OSError if reply.errno > 0 else socket.gaierror
            future.set_exception(kind(reply.errno, reply.reason))

    def _pipe(self, call: int) -> asyncio.Future[io.RawIOBase]:
        return self._pipes.setdefault(call, self._loop.create_future())

    async def pipe(self, call: int) -> io.RawIOBase:
        """Wait for the write end of an export's pipe."""
        try:
            return await self._pipe(call)
        finally:
            del self._pipes[call]

    async def open(self, host: str, port: int, family: int = 0) -> socket.socket:
        """Ask for a socket connected to a host and port.

        Raises:
            OSError: EACCES where the pair is not the connection's, else what connecting ran into.
        """
        self._last += 1
        return await self._ask(Open(self._last, host, port, family))  # type: ignore[no-any-return]

    async def families(self, host: str) -> tuple[int, ...]:
        """Ask in which address families a name has addresses.

        Raises:
            OSError: EACCES where the name is not the connection's, else what the lookup ran into.
        """
        self._last += 1
        return await self._ask(Lookup(self._last, host))  # type: ignore[no-any-return]

    async def _ask(self, request: Open | Lookup) -> Any:
        future = self._waiting[request.id] = self._loop.create_future()
        try:
            await self._loop.sock_sendall(self._socket, pack(request))
            return await future
        finally:
            self._waiting.pop(request.id, None)


class BrokerLoop(asyncio.SelectorEventLoop):
    """Connects through the broker; names are never resolved here.

    `getaddrinfo` gives a made-up address per name and family, which `sock_connect` and `create_connection` turn
    back into the name. One per family, because a socket placed over one of the other family misreads its peer.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._names: dict[str, str] = {}
        broker.attach(self)

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - asyncio's own word
        proto: int = 0,
        flags: int = 0,
    ) -> list[tuple[Any, ...]]:
        """Give addresses that stand for a name; literal ones pass unchanged."""
        name = host.decode() if isinstance(host, bytes) else str(host)
        number = int(port or 0)
        try:
            addresses = [str(ipaddress.ip_address(name))]
        except ValueError:
            addresses = self._tokens(name, await self._broker.families(name))
        found: list[tuple[Any, ...]] = []
        for address in addresses:
            six = ":" in address
            kind = socket.AF_INET6 if six else socket.AF_INET
            if family in (0, kind):
                where = (address, number, 0, 0) if six else (address, number)
                found.append((kind, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where))
        if not found:
            raise socket.gaierror(socket.EAI_FAMILY, "no address of that family")
        return found

    def _tokens(self, name: str, families: tuple[int, ...]) -> list[str]:
        known = [token for token, stands_for in self._names.items() if stands_for == name]
        if not known:
            if len(self._names) >= 2 * _MAX_NAMES:
                raise socket.gaierror(socket.EAI_MEMORY, f"more than {_MAX_NAMES} host names")
            number = len(self._names) // 2
            known = [f"100::{number + 1:x}", f"240.0.{number >> 8}.{number & 255}"]  # discard-only and reserved ranges
            self._names.update(dict.fromkeys(known, name))
        six, four = known
        return [six if family == socket.AF_INET6 else four for family in families]

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Place a connected socket from the broker over this one."""
        real = await self._broker.open(self._names.get(address[0], address[0]), address[1], int(sock.family))
        passing.put_over(real, sock)
        sock.settimeout(0)

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        ssl: Any = None,
        server_hostname: str | None = None,
        **options: Any,
    ) -> Any:
        """Connect as asyncio does, with a socket from the broker."""
        for name in _CONNECT_ONLY:
            options.pop(name, None)
        if sock is None:
            name = self._names.get(str(host), str(host))
            sock = await self._broker.open(name, int(port or 0))
            sock.settimeout(0)
            server_hostname = server_hostname or (name if ssl else None)
        return await super().create_connection(
            protocol_factory, sock=sock, ssl=ssl, server_hostname=server_hostname, **options
        )

    async def _refuse(self, *_arguments: Any, **_options: Any) -> Any:
        raise PermissionError(errno.EACCES, "the sandbox allows connections to the database only")

    create_datagram_endpoint = _refuse
    create_unix_connection = _refuse
    create_unix_server = _refuse
    create_server = _refuse
    subprocess_exec = _refuse
    subprocess_shell = _refuse
