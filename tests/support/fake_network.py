"""A stand-in for names and far addresses: what is looked up is made up, and nothing leaves this machine."""

from __future__ import annotations

import ipaddress
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    import asyncio

CODE = """
import asyncio
from dragoman_api import hookimpl
from dragoman_api.columns import Description
from dragoman_api.connections import Server
from dragoman_api.errors import ConnectionFailedError


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        await self.reach(profile.host, profile.port)
        return Server("Demo", "1")

    @hookimpl
    async def describe_object(self, name):
        host, port = name.split()
        await self.reach(host, int(port))
        return Description(object=name, columns=[])

    async def reach(self, host, port):
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            raise ConnectionFailedError(f"{host}: {error.strerror}")
        said = await reader.readline()
        writer.close()
        if said != b"hello\\n":
            raise ConnectionFailedError("no hello")
"""
"""A driver that connects to its host when it opens, and to whatever it is asked to describe."""

_HERE = ("::1", "::ffff:127.0.0.1")


class Names:
    """Answers for names ending in ``.example``; takes connections to far addresses to this machine instead.

    Attributes:
        answers: Name → its addresses; a name without any cannot be resolved.
        looked_up: Names, in order.
        tried: Addresses that a connection was attempted to, in order.
        dead: Addresses where nothing listens.
    """

    def __init__(self, patch: Any) -> None:  # a MonkeyPatch, or what has its setattr
        self.answers: dict[str, list[str]] = {}
        self.looked_up: list[str] = []
        self.tried: list[str] = []
        self.dead: set[str] = set()
        self._look_up, self._connect = anyio.getaddrinfo, BaseSelectorEventLoop.sock_connect
        patch.setattr(anyio, "getaddrinfo", self._getaddrinfo)
        names = self

        async def sock_connect(loop: Any, sock: socket.socket, address: Any) -> None:
            await names._sock_connect(loop, sock, address)

        patch.setattr(BaseSelectorEventLoop, "sock_connect", sock_connect)

    async def _getaddrinfo(self, host: str, port: Any, **options: Any) -> Any:
        self.looked_up.append(host)
        if not host.rstrip(".").endswith((".example", ".internal")) and host not in self.answers:
            return await self._look_up(host, port, **options)
        found = []
        for text in self.answers.get(host, []):
            kind = socket.AF_INET6 if ":" in text else socket.AF_INET
            rest = (0, 0) if kind == socket.AF_INET6 else ()
            if options.get("family") in (None, 0, kind):
                found.append((kind, socket.SOCK_STREAM, 6, "", (text, port or 0, *rest)))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return found

    async def _sock_connect(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, address: Any) -> None:
        self.tried.append(address[0])
        if address[0] in self.dead or (sock.family == socket.AF_INET6 and address[0] not in _HERE):
            raise ConnectionRefusedError(111, "nothing listens there")
        if sock.family == socket.AF_INET and not ipaddress.ip_address(address[0]).is_loopback:
            address = ("127.0.0.1", *address[1:])
        await self._connect(loop, sock, address)  # type: ignore[arg-type]
