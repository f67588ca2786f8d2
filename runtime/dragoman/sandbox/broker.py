"""The broker: the only way from a driver's process to the network, and only to the connection's host and port."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from typing import TYPE_CHECKING

import anyio

from dragoman_worker.frames import FrameError, FrameReader
from dragoman_worker.wire import (
    BROKER_FRAME,
    MALFORMED,
    BrokerRequest,
    Found,
    Lookup,
    Opened,
    Pipe,
    Refused,
    decoder,
)

from .system import send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman_worker.wire import BrokerReply, Open

    from .system import Passed

_CONNECT_SECONDS = 10.0
_IN_FLIGHT = 8
_PER_MINUTE = 1_200  # connections; a child that wants more waits

Endpoint = tuple[str, int]


def canonical(host: str) -> str:
    """Write a host name or address in the one form in which both sides are compared.

    >>> canonical("Example.ORG."), canonical("::0001"), canonical("bücher.example")
    ('example.org', '::1', 'xn--bcher-kva.example')
    """
    name = host.lower()
    if not name.isascii():
        try:
            name = name.encode("idna").decode()
        except UnicodeError:
            return name
    if not name.endswith(".."):  # which no name does
        name = name.removesuffix(".")
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


class Broker:
    """Serves one child: compares, resolves, connects, and passes the connected socket on."""

    def __init__(
        self,
        sock: socket.socket,
        approved: Iterable[Endpoint],
        *,
        pid: int,
        on_denied: Callable[[str, int | None], None],
        on_fault: Callable[[str], None],
    ) -> None:
        sock.settimeout(0)
        self._socket, self._pid = sock, pid
        self._approved = frozenset((canonical(host), port) for host, port in approved)
        self._on_denied, self._on_fault = on_denied, on_fault
        self._slots = anyio.Semaphore(_IN_FLIGHT)

    async def serve(self) -> None:
        """Answer requests until the child is gone or misbehaves."""
        loop, frames, requests = asyncio.get_running_loop(), FrameReader(limit=BROKER_FRAME), decoder(BrokerRequest)
        minute, served = anyio.current_time(), 0
        async with anyio.create_task_group() as connecting:
            while True:
                try:
                    # Plain recv: the kernel drops descriptors that a child attaches.
                    data = await loop.sock_recv(self._socket, BROKER_FRAME)
                    arrived = [requests.decode(body) for body in frames.feed(data)]
                except (FrameError, *MALFORMED) as error:
                    self._on_fault(f"a malformed broker request: {error}")
                    return
                except OSError:
                    return
                if not data:
                    return
                for request in arrived:
                    if anyio.current_time() - minute > 60:
                        minute, served = anyio.current_time(), 0
                    elif (served := served + 1) > _PER_MINUTE:
                        await anyio.sleep(minute + 60 - anyio.current_time())
                    if self._allows(request):
                        await self._slots.acquire()
                        connecting.start_soon(self._answer, request)

    def _allows(self, request: Lookup | Open) -> bool:
        # Compared before any lookup: a name could carry data to a name server.
        host, port = canonical(request.host), None if isinstance(request, Lookup) else request.port
        if any(host == name and port in (None, number) for name, number in self._approved):
            return True
        self._on_denied(request.host, port)
        self._reply(Refused(request.id, errno.EACCES, "the sandbox does not allow this host and port"))
        return False

    async def _answer(self, request: Lookup | Open) -> None:
        try:
            with anyio.fail_after(_CONNECT_SECONDS):
                found = await _families(request) if isinstance(request, Lookup) else await _connected(request)
            if isinstance(found, socket.socket):
                with found:
                    self._reply(Opened(request.id), found)
            else:
                self._reply(Found(request.id, found))
        except TimeoutError:
            self._reply(Refused(request.id, errno.ETIMEDOUT, f"no connection within {_CONNECT_SECONDS:g} s"))
        except OSError as error:
            self._reply(Refused(request.id, _number(error), (error.strerror or str(error))[:500]))
        finally:
            self._slots.release()

    def hand_over(self, call: int, end: Passed) -> None:
        """Pass the write end of an export's pipe."""
        self._reply(Pipe(call), end)

    def _reply(self, reply: BrokerReply, passed: Passed | None = None) -> None:
        try:
            whole = send(self._socket, reply, passed, to=self._pid)
        except BlockingIOError:
            whole = False
        except OSError:
            return  # the child is gone, which others notice
        if not whole:
            self._on_fault("it does not read the broker's replies")


def _number(error: OSError) -> int:
    """Give the number by which the child knows an error; those of `getaddrinfo` are negative."""
    if isinstance(error, ConnectionRefusedError):  # whose own number tells nothing on Windows
        return errno.ECONNREFUSED
    number = error.errno or errno.EHOSTUNREACH
    return -abs(number) if isinstance(error, socket.gaierror) else number


async def _families(request: Lookup) -> tuple[int, ...]:
    infos = await anyio.getaddrinfo(request.host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(int(info[0]) for info in infos))


async def _connected(request: Open) -> socket.socket:
    family = socket.AddressFamily(request.family) if request.family in (socket.AF_INET, socket.AF_INET6) else 0
    infos = await anyio.getaddrinfo(request.host, request.port, family=family, type=socket.SOCK_STREAM)
    failure: OSError | None = None
    for kind, type_, proto, _, address in infos:
        sock = socket.socket(kind, type_, proto)
        try:
            sock.settimeout(0)
            whole = (*address, 0, 0)[: 4 if kind == socket.AF_INET6 else 2]  # which Windows insists on
            await asyncio.get_running_loop().sock_connect(sock, whole)
        except OSError as error:
            failure = error
            sock.close()
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
