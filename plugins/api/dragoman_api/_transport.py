"""Requests and answers on aiohttp's connections: no resent writes, no leftovers of an earlier answer, no open ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import aiohttp
import anyio.lowlevel

from .errors import QueryError
from .http_settings import request_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .http_settings import RequestPath

_CLIMBS = re.compile(r"(/|%2f|\\|%5c)(\.|%2e){1,2}(/|%2f|\\|%5c|;|$)", re.IGNORECASE)  # what servers take for . and ..

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


def check_request(method: str, path: str, *, prefix: str) -> RequestPath:
    """Return a path that can be sent below a prefix. Raises QueryError for any other, and for what is no method."""
    try:
        target = request_path(path)
    except ValueError as error:
        hint = "encode ids, for example / as %2F and a space as %20"
        raise QueryError(str(error), hint=hint, details={"sent": False}) from None
    if prefix and _CLIMBS.search(path.partition("?")[0]):
        raise QueryError(
            f"the path {path!r} contains a dot segment, which could lead out of the path prefix {prefix}",
            hint="enter the path without . and .. segments",
            details={"sent": False},
        )
    if not (method.isascii() and method.isalpha()):
        raise QueryError(f"{method!r} is not an HTTP method", details={"sent": False})
    return target


def request_body(
    body: bytes | str | None, content_type: str, headers: Mapping[str, str] | None
) -> tuple[bytes | None, dict[str, str]]:
    """Return the bytes to send, and the headers that go with them."""
    data = body.encode() if isinstance(body, str) else body
    return data, {**({} if data is None else {"Content-Type": content_type}), **(headers or {})}


async def read_body(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read a whole body. Raises QueryError if it is longer than the limit in bytes, without reading the rest."""
    parts, size = list[bytes](), answer.content_length or 0
    try:
        if size <= limit:
            size = 0
            async for part in answer.content.iter_any():
                parts.append(part)
                if (size := size + len(part)) > limit:
                    break
            else:
                return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        parts.clear()  # an error's traceback would keep them
    raise too_long(limit)


def too_long(limit: int) -> QueryError:
    """Return the error for an answer above a limit in bytes."""
    hint = "ask for fewer rows or columns at a time"
    return QueryError(f"the answer is longer than {limit:,} bytes", hint=hint, details={"limit": limit})
