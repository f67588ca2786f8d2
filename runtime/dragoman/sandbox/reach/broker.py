"""The broker: the only way from a driver's process to the network, and only to the connection's host and port."""

from __future__ import annotations

import asyncio
import errno
import io
import socket
from typing import TYPE_CHECKING

import anyio

from dragoman_registry.ip_addresses import canonical
from dragoman_worker.channel import FrameError, FrameReader
from dragoman_worker.wire import (
    BROKER_FRAME,
    MALFORMED,
    BrokerRequest,
    Families,
    Lookup,
    Opened,
    Pipe,
    SocketRefused,
    decoder,
    pack,
)

from .address_resolver import NearerError, connect
from .route import RouteError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_worker.wire import BrokerReply, Open

    from .address_resolver import AddressResolver
    from .route import RouteConnector

Passed = io.FileIO | socket.socket
"""What can be handed over."""

_CONNECT_SECONDS = 10.0
_IN_FLIGHT = 8
_PER_MINUTE = 1_200  # connections; a child that requests more waits


class Broker:
    """Serves one child: checks the host, resolves it, connects, and passes the connected socket on."""

    def __init__(
        self,
        sock: socket.socket,
        resolver: AddressResolver,
        *,
        connector: RouteConnector | None = None,
        on_denied: Callable[[str, int | None], None],
        on_nearer: Callable[[NearerError, int | None], None],
        on_fault: Callable[[str], None],
        on_route_failed: Callable[[RouteError], None] = lambda _: None,
    ) -> None:
        """Prepare to serve.

        Args:
            sock: The host's end of the child's socket.
            resolver: Compares hosts and ports, and judges addresses.
            connector: Reaches the hosts that a person entered; None reaches them directly, as it is for those of a
                manifest.
            on_denied: Receives each host that was requested without permission, and the port if given.
            on_nearer: Receives each name that resolved nearer than allowed, and the port if given.
            on_fault: Receives the reason why the child has to end.
            on_route_failed: Receives each failure of `connector`.
        """
        sock.settimeout(0)
        self._socket = sock
        self._resolver, self._connector = resolver, connector
        self._on_denied, self._on_nearer, self._on_fault = on_denied, on_nearer, on_fault
        self._on_route_failed = on_route_failed
        self._slots = anyio.Semaphore(_IN_FLIGHT)
        self._serving = anyio.CancelScope()

    def close(self) -> None:
        """Stop serving and close the socket.

        The event loop must not watch it any longer by then: the next socket gets its number, and could not be watched.
        """
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._serving.cancel()

    async def serve(self) -> None:
        """Answer requests until the child is gone or misbehaves, or the broker is closed."""
        with self._serving:
            await self._serve()

    async def _serve(self) -> None:
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
                    if (served := served + 1) > _PER_MINUTE:
                        await anyio.sleep(minute + 60 - anyio.current_time())
                    if self._allows(request):
                        await self._slots.acquire()
                        connecting.start_soon(self._answer, request)

    def _allows(self, request: Lookup | Open) -> bool:
        # Compared before any lookup: a name could carry data to a name server.
        port = None if isinstance(request, Lookup) else request.port
        if self._resolver.allows(request.host, port):
            return True
        self._on_denied(request.host, port)
        self._reply(SocketRefused(request.id, errno.EACCES, "the sandbox does not allow this host and port"))
        return False

    async def _answer(self, request: Lookup | Open) -> None:
        try:
            if isinstance(request, Lookup):
                self._reply(Families(request.id, await self._families(request)))
                return
            with await self._opened(request) as sock:
                self._reply(Opened(request.id), sock)
        except RouteError as error:
            self._on_route_failed(error)
            self._reply(SocketRefused(request.id, errno.EPROTO, error.strerror or ""))
        except NearerError as error:
            self._on_nearer(error, None if isinstance(request, Lookup) else request.port)
            self._reply(SocketRefused(request.id, errno.EACCES, (error.strerror or "")[:500]))
        except TimeoutError:
            self._reply(SocketRefused(request.id, errno.ETIMEDOUT, f"no connection within {_CONNECT_SECONDS:g} s"))
        except OSError as error:
            self._reply(SocketRefused(request.id, _number(error), (error.strerror or str(error))[:500]))
        finally:
            self._slots.release()

    async def _families(self, request: Lookup) -> tuple[int, ...]:
        if self._connector is not None and self._resolver.is_own(request.host, None):
            return (socket.AF_INET,)  # any: the name is looked up elsewhere, and the socket leads to something else
        with anyio.fail_after(_CONNECT_SECONDS):
            places = await self._resolver.find(request.host)
        return tuple(dict.fromkeys(place.family for place in places))

    async def _opened(self, request: Open) -> socket.socket:
        if self._connector is not None and self._resolver.is_own(request.host, request.port):
            return await self._connector.connect(canonical(request.host), request.port)
        with anyio.fail_after(_CONNECT_SECONDS):
            return await connect(self._resolver, request.host, request.port, family=request.family)

    def hand_over(self, call: int, end: Passed) -> None:
        """Pass the write end of an export's pipe."""
        self._reply(Pipe(call), end)

    def _reply(self, reply: BrokerReply, passed: Passed | None = None) -> None:
        try:
            whole = _send(self._socket, reply, passed)
        except BlockingIOError:
            whole = False
        except OSError:
            return  # the child is gone; other code handles that
        if not whole:
            self._on_fault("requests and read no replies")


def _number(error: OSError) -> int:
    """Return the number that tells the child the error; `getaddrinfo` errors are negative."""
    number = error.errno or errno.EHOSTUNREACH
    return -abs(number) if isinstance(error, socket.gaierror) else number


def _send(sock: socket.socket, reply: BrokerReply, passed: Passed | None = None) -> bool:
    """Send a reply, perhaps with a resource; return whether it was sent completely.

    Raises:
        OSError: The process does not read, or is gone.
    """
    message = pack(reply)
    # Send header, body and descriptor in one message, so the child can match the descriptor to its reply.
    sent = socket.send_fds(sock, [message], [passed.fileno()]) if passed is not None else sock.send(message)
    return sent == len(message)
