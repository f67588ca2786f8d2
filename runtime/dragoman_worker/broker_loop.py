"""An event loop that cannot connect and asks the host's broker for connected sockets instead."""

from __future__ import annotations

import array
import asyncio
import errno
import io
import ipaddress
import os
import socket
from typing import TYPE_CHECKING, Any

from .channel import FrameReader
from .wire import BROKER_FRAME, BrokerReply, Families, Lookup, Open, Opened, Pipe, SocketRefused, decoder, pack

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_NAMES = 256
_CONNECT_ONLY = ("family", "proto", "flags", "local_addr", "happy_eyeballs_delay", "interleave", "all_errors")
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # some systems lack it
_SPACE = socket.CMSG_SPACE(array.array("i").itemsize)


class BrokerClient:
    """The child's end of the broker socket: sends requests, receives sockets and pipes."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._replies = decoder(BrokerReply)
        self._frames = FrameReader(limit=BROKER_FRAME)
        self._passed = PassedResources()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pipes: dict[int, asyncio.Future[io.RawIOBase]] = {}
        self._last = 0

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read replies."""
        self._socket.settimeout(0)
        self._loop = loop
        loop.add_reader(self._socket.fileno(), self._read)

    def _read(self) -> None:
        try:
            # Never read beyond the current frame: a descriptor arrives with its frame's first bytes.
            data = self._passed.receive(self._socket, self._frames.missing)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)
        for body in self._frames.feed(data):
            self._answer(self._replies.decode(body))
            self._passed.clear()

    def _answer(self, reply: Families | Opened | SocketRefused | Pipe) -> None:
        if isinstance(reply, Pipe):
            self._pipe(reply.id).set_result(self._passed.take_pipe())
            return
        future = self._waiting.pop(reply.id, None)
        if future is None or future.done():
            return
        if isinstance(reply, Opened):
            future.set_result(self._passed.take_socket())
        elif isinstance(reply, Families):
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
        """Ask for a socket that is connected to a host and port. Family 0 leaves the choice to the host.

        Raises:
            OSError: EACCES if the connection does not permit the pair, else the error of connecting.
        """
        self._last += 1
        return await self._ask(Open(self._last, host, port, family))  # type: ignore[no-any-return]

    async def families(self, host: str) -> tuple[int, ...]:
        """Ask in which address families a name has addresses.

        Raises:
            OSError: EACCES if the connection does not permit the name, else the error of the lookup.
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
    """An event loop that connects through the broker and never resolves names itself.

    `getaddrinfo` returns a placeholder address per name and family, which `sock_connect` and `create_connection` turn
    back into the name. Each family has its own, since a socket that replaces one of another family misreads its peer.
    """

    def __init__(self, broker: BrokerClient) -> None:
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
        type: int = 0,  # noqa: A002 - asyncio's own name
        proto: int = 0,
        flags: int = 0,
    ) -> list[tuple[Any, ...]]:
        """Return placeholder addresses for a name. Literal addresses are returned unchanged.

        Raises:
            OSError: EACCES for a name that the connection does not permit, or the error of the lookup.
        """
        name = host.decode() if isinstance(host, bytes) else str(host)
        number = int(port or 0)
        try:
            addresses = [str(ipaddress.ip_address(name))]
        except ValueError:
            addresses = self._tokens(name, await self._broker.families(name))
        address_infos: list[tuple[Any, ...]] = []
        for address in addresses:
            six = ":" in address
            kind = socket.AF_INET6 if six else socket.AF_INET
            if family in (0, kind):
                where = (address, number, 0, 0) if six else (address, number)
                address_infos.append((kind, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where))
        if not address_infos:
            raise socket.gaierror(socket.EAI_FAMILY, "the host has no address of that family")
        return address_infos

    def _tokens(self, name: str, families: tuple[int, ...]) -> list[str]:
        tokens = [token for token, stands_for in self._names.items() if stands_for == name]
        if not tokens:
            if len(self._names) >= 2 * _MAX_NAMES:
                raise socket.gaierror(socket.EAI_MEMORY, f"the driver asked for more than {_MAX_NAMES} host names")
            number = len(self._names) // 2
            tokens = [f"100::{number + 1:x}", f"240.0.{number >> 8}.{number & 255}"]  # discard-only and reserved ranges
            self._names.update(dict.fromkeys(tokens, name))
        six, four = tokens
        return [six if family == socket.AF_INET6 else four for family in families]

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Replace this socket with a connected one from the broker.

        Raises:
            OSError: EACCES for an address that the connection does not permit, or the error of connecting.
        """
        real = await self._broker.open(self._names.get(address[0], address[0]), address[1], int(sock.family))
        put_over(real, sock)
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
        raise PermissionError(errno.EACCES, "the sandbox permits connections to the database only")

    create_datagram_endpoint = _refuse
    create_unix_connection = _refuse
    create_unix_server = _refuse
    create_server = _refuse
    subprocess_exec = _refuse
    subprocess_shell = _refuse


class PassedResources:
    """Receives messages and keeps the descriptors that came with the last one."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def receive(self, sock: socket.socket, size: int) -> bytes:
        """Read at most `size` bytes and the descriptors beside them. Raises BlockingIOError if none are there."""
        data, ancillary, flags, _ = sock.recvmsg(size, _SPACE, _CLOEXEC)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._descriptors += array.array("i", content)
        if flags & socket.MSG_CTRUNC:
            os._exit(4)
        return data

    def take_socket(self) -> socket.socket:
        """Return the received socket."""
        return socket.socket(fileno=self._descriptors.pop())

    def take_pipe(self) -> io.RawIOBase:
        """Return the write end of the received pipe."""
        return io.FileIO(self._descriptors.pop(), "w")

    def clear(self) -> None:
        """Close resources that were not taken."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def put_over(real: socket.socket, sock: socket.socket) -> None:
    """Make `sock` the connection of `real`, of its family, and detach `real`."""
    socket.close(sock.detach())
    sock.__init__(fileno=real.detach())  # type: ignore[misc]
