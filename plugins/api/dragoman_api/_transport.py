"""What aiohttp is taught about connections: no resent writes, no leftovers of an earlier answer, no open ends."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import aiohttp
import anyio.lowlevel

NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors before any byte of a request reached the server."""


class Disconnected(aiohttp.ClientError):
    """The connection ended before the answer; replaces the aiohttp error that would trigger a resend."""


class Connector(aiohttp.TCPConnector):
    """Skips kept connections with unrequested data, which would be read as the next answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used_protocols = WeakSet[object]()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> aiohttp.connector.Connection:
        """Return a new connection, or a kept one without unread data."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            assert protocol is not None
            if protocol not in self._used_protocols:
                self._used_protocols.add(protocol)
                return connection
            try:
                for _ in range(2):  # the loop looks for what has arrived in one turn, and reads it in the next
                    await anyio.lowlevel.checkpoint()
                if protocol.is_connected() and not protocol.should_close:
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()


async def send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Stop aiohttp from resending PUT and DELETE after a disconnect.

    The server may already have carried out the first attempt.
    """
    try:
        return await handler(request)
    except NEVER_SENT:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise Disconnected(*error.args[-1:]) from error


def ends_with_its_connection(answer: aiohttp.ClientResponse) -> bool:
    """Check whether only the connection's end ends a body; anyone on the path can cause that."""
    bodiless = answer.method == "HEAD" or answer.status < 200 or answer.status in (204, 304)
    chunked = "chunked" in answer.headers.get("Transfer-Encoding", "").lower()
    return not (bodiless or chunked or "Content-Length" in answer.headers)
