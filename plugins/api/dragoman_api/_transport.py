"""How a request travels: to which node of a cluster, and on which of aiohttp's connections.

No write is sent twice, no answer has leftovers of an earlier one, and none ends with its connection.
"""

from __future__ import annotations

import math
import re
import select
import ssl
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

import aiohttp
import anyio
import anyio.lowlevel
import msgspec
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from . import _http_profile, tls
from .changes import request_path
from .columns import Note
from .connections import Profile
from .errors import ConfigurationError, ConnectionFailedError, QueryError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from .changes import RequestPath
    from .errors import Detail

_CLIMBS = re.compile(r"(/|%2f|\\|%5c)(\.|%2e){1,2}(/|%2f|\\|%5c|;|$)", re.IGNORECASE)  # what servers take for . and ..

NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors before any byte of a request reached the server."""

CALL_ENDS: ContextVar[float] = ContextVar("CALL_ENDS", default=math.inf)
"""The time of the event loop at which the host gives up on the present call: no node may use up all of it."""

HEADER = 64 * 2**10
"""Maximum length of a header, in bytes: deprecations come in Warning headers, far longer than the 8 KiB of aiohttp."""

AWAY = (502, 503, 504)
"""Statuses of a node, or of a gateway before it, that serves nothing at the moment."""

_REST = 30.0  # seconds for which a node that failed is asked last


class Disconnected(aiohttp.ClientError):
    """The connection ended before the answer; replaces the aiohttp error that would trigger a resend."""


class Connector(aiohttp.TCPConnector):
    """Skips kept connections with unrequested data, which would be read as the next answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used_protocols = WeakSet[object]()
        self._distrusted_protocols = WeakSet[object]()

    def distrust_kept(self) -> None:
        """Use no connection that was in use until now for another request.

        A server that closed one of them may have closed them all.
        """
        self._distrusted_protocols.update(self._used_protocols)

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
                if protocol.transport is not None and _is_readable(protocol.transport):
                    for _ in range(2):  # the loop looks for what has arrived in one turn, and reads it in the next
                        await anyio.lowlevel.checkpoint()
                usable = protocol.is_connected() and not protocol.should_close
                if usable and protocol not in self._distrusted_protocols:
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()


def _is_readable(transport: asyncio.Transport) -> bool:
    """Check whether something arrived at a connection that the loop has not read yet, or may have."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class NodeAddress:
    """One node's address as aiohttp's connector takes it, and the headers that go to it with every request."""

    def __init__(self, node: Node, headers: CIMultiDict[str], session: aiohttp.ClientSession) -> None:
        """Read the address. The event loop has to run."""
        url, tls_context = URL(node.origin, encoded=True), node.tls or True
        self.template = aiohttp.ClientRequest("GET", url, headers=headers, session=session, ssl=tls_context)


class IncomingAnswer(msgspec.Struct, frozen=True):
    """An answer whose headers have arrived."""

    method: str
    status: int
    headers: CIMultiDictProxy[str]
    content: aiohttp.StreamReader

    @property
    def content_length(self) -> int | None:
        """The stated length of the body; None if it is not stated."""
        length = self.headers.get("Content-Length", "")
        return int(length) if length.isdecimal() and length.isascii() else None


def _head(method: str, path: str, headers: CIMultiDict[str]) -> bytes:
    """Write the head of a request. Raises QueryError for a header that would be several."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    text = "\r\n".join(lines)
    if "\0" in text or not text.count("\r") == text.count("\n") == len(lines) - 1:
        raise QueryError("a header contains a line break or a null character", details={"sent": False})
    return text.encode()


@asynccontextmanager
async def sent_whole(
    connector: Connector,
    address: NodeAddress,
    request: tuple[str, str, bytes | None],
    headers: Mapping[str, str],
    timeouts: aiohttp.ClientTimeout,
) -> AsyncIterator[IncomingAnswer]:
    """Send a request with a small body, or none, in one write, and yield its answer.

    It takes aiohttp's connections and parser, and half the time of `aiohttp.ClientSession.request`: nothing is built
    anew that all requests of a connection share, no task writes the body, and nothing is traced.

    Raises:
        Disconnected: The connection ended before the answer.
        aiohttp.ClientError: As from aiohttp.
    """
    method, path, data = request
    fields = address.template.headers.copy()
    fields.update(headers)
    if data is not None or method not in aiohttp.ClientRequest.GET_METHODS:
        fields["Content-Length"] = str(len(data or b""))
    head = _head(method, path, fields)
    try:
        connection = await connector.connect(address.template, [], timeouts)
    except TimeoutError as error:
        raise aiohttp.ConnectionTimeoutError(f"no connection to {address.template.url}") from error
    try:
        protocol = connection.protocol
        assert protocol is not None
        protocol.set_response_params(
            skip_payload=method == "HEAD", read_until_eof=True, max_line_size=HEADER, max_field_size=HEADER
        )
        assert protocol.transport is not None
        protocol.transport.write(head + data if data else head)
        try:
            while True:
                message, content = await protocol.read()
                if not 100 <= message.code < 200 or message.code == 101:
                    break
        except HttpProcessingError as error:
            template = address.template
            raise aiohttp.ClientResponseError(
                template.request_info, (), status=error.code, message=error.message, headers=error.headers
            ) from error
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            raise Disconnected(*error.args[-1:]) from error
        yield IncomingAnswer(method, message.code, message.headers, content)
    except BaseException:
        connection.close()
        raise
    connection.release()  # one with unread data is closed


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


def ends_with_its_connection(answer: IncomingAnswer | aiohttp.ClientResponse) -> bool:
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


async def read_body(answer: IncomingAnswer | aiohttp.ClientResponse, limit: int) -> bytes:
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


class Answered(Protocol):
    """An answer, whole or still arriving."""

    @property
    def status(self) -> int:
        """The HTTP status."""


T = TypeVar("T", bound=Answered)


class Node(msgspec.Struct, eq=False):
    """One host and port of a connection.

    Attributes:
        profile: The connection as if this node were its only one.
        origin: Scheme, host, port and path prefix, the host as sent.
        tls: How its certificate is checked; None for plain HTTP.
        fault: What was wrong with it when it was asked last; empty if it answered.
        rests_until: The time of the event loop until which it is asked last.
    """

    profile: Profile
    origin: str
    tls: ssl.SSLContext | None
    fault: str = ""
    rests_until: float = 0.0


class Nodes:
    """The nodes of a connection, in the order in which a person entered them."""

    def __init__(self, profile: Profile) -> None:
        """Read a connection's hosts. Raises ConfigurationError if they are no addresses."""
        try:
            endpoints = profile.endpoints
        except ValueError as error:
            raise ConfigurationError(f"hosts: {error}", hint="enter host:port, separated by commas") from error
        profiles = [msgspec.structs.replace(profile, host=host, port=port) for host, port in endpoints]
        unpinned = [node_profile for node_profile in profiles if not node_profile.pinned_certificate]
        usual = tls.context(unpinned[0]) if unpinned else None
        self._nodes = [
            Node(
                node_profile,
                _http_profile.origin(node_profile),
                tls.context(node_profile) if node_profile.pinned_certificate else usual,
            )
            for node_profile in profiles
        ]
        self._current = 0

    @property
    def first(self) -> Node:
        """The node that answered last, or the first one."""
        return self._nodes[self._current]

    def notes(self) -> list[Note]:
        """Return a note for each node that failed a short while ago."""
        failed = [node for node in self._nodes if node.fault]
        now = anyio.current_time() if failed else 0.0
        return [Note(code="node-away", reason=node.fault) for node in failed if now < node.rests_until]

    async def ask(
        self,
        send: Callable[[Node, float, float | None], Awaitable[T]],
        *,
        seconds: float,
        read: bool,
        drop: Callable[[T], None] | None = None,
    ) -> T:
        """Send a request to one node after the other until one answers.

        A read goes on to the next node after any failure of the network, and after a status of `AWAY`. Anything else
        goes on only if it certainly has not been sent. Each node gets an equal share of the time that is left.

        Args:
            send: Sends it to a node, given seconds for the answer and to connect (None for the usual ones).
            seconds: Seconds for all nodes together.
            read: The request changes nothing on the server.
            drop: Ends an answer that is not wanted, if it is still arriving.

        Raises:
            ConnectionFailedError: No node answered; the message tells the fault of each.
        """
        if len(self._nodes) == 1:
            return await send(self.first, seconds, None)
        until, order, failures, away = _until(seconds), self._order(), list[ConnectionFailedError](), 0
        for at, node in enumerate(order):
            whole = until - anyio.current_time()
            share = max(whole / (len(order) - at), 0.0)
            try:
                answer = await send(node, share if read else whole, share)
            except ConnectionFailedError as error:
                failures.append(self._failed(node, error))
                if not read and error.details.get("sent") is not False:
                    break
            else:
                if answer.status not in AWAY:
                    node.fault, node.rests_until, self._current = "", 0.0, self._nodes.index(node)
                    return answer
                gone = ConnectionFailedError(f"{node.profile.where}: HTTP {answer.status}", details={"sent": True})
                failures.append(self._failed(node, gone))
                away += 1
                if not read or away == len(order):  # the caller may wait for a cluster that is busy
                    return answer
                if drop is not None:
                    drop(answer)
        raise told(failures)

    def _order(self) -> list[Node]:
        now, ahead = anyio.current_time(), self._nodes[self._current :] + self._nodes[: self._current]
        return sorted(ahead, key=lambda node: now < node.rests_until)

    def _failed(self, node: Node, error: ConnectionFailedError) -> ConnectionFailedError:
        node.fault, node.rests_until = error.message.removeprefix(error.prefix), anyio.current_time() + _REST
        return error


def told(failures: list[ConnectionFailedError]) -> ConnectionFailedError:
    """Return one error for the failures of all nodes that were asked."""
    if len(failures) == 1:
        return failures[0]
    reasons = [error.message.removeprefix(error.prefix) for error in failures]
    details: dict[str, Detail] = {}
    for error in failures:
        details |= error.details
    details["sent"] = any(error.details.get("sent") is not False for error in failures)
    helpful = next((error for error in failures if error.hint or error.remedies), failures[0])
    text = "; ".join(reasons)
    return ConnectionFailedError(text, hint=helpful.hint, remedies=helpful.remedies, details=details)


def _until(seconds: float) -> float:
    now = anyio.current_time()
    ends = CALL_ENDS.get()
    return min(now + seconds, ends) if ends > now else now + seconds
