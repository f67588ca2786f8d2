"""The HTTP client of one connection: TLS as SSL mode says, authorization, compression, and useful errors."""

from __future__ import annotations

import io
import socket
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakSet

import aiohttp
import anyio
import anyio.lowlevel
import msgspec
from aiohttp.resolver import ThreadedResolver
from multidict import CIMultiDict
from yarl import URL

from . import _connection_errors, _http_profile, tls
from ._http_profile import authorization, credential
from ._transport import (
    CALL_ENDS,
    HEADER,
    NEVER_SENT,
    Answered,
    Connector,
    Disconnected,
    IncomingAnswer,
    Node,
    NodeAddress,
    Nodes,
    check_request,
    ends_with_its_connection,
    read_body,
    request_body,
    send_once,
    sent_whole,
    too_long,
)
from .connections import AuthScheme
from .errors import AccessDeniedError, AuthenticationError, ConfigurationError, QueryError
from .masking import Mask, MaskedStream
from .replies import CHUNK, Response, Stream, error_text, redirection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from aiohttp.connector import AddrInfoType

    from ._tokens import Tokens
    from .changes import RequestPath
    from .columns import Note
    from .connections import Profile
    from .errors import DragomanError
    from .replies import Reply

__all__ = ["BODY_LIMIT", "CALL_ENDS", "Http"]

T = TypeVar("T")
A = TypeVar("A", bound=Answered)

BODY_LIMIT = 128 * 2**20
"""Maximum size of one answer in bytes, decompressed."""

_CONNECT = 15  # seconds for name, socket and TLS handshake; the host's side of the sandbox gives up after 10
_HANG_UP = 1  # seconds for the end of all connections
_CONNECTIONS = 32  # more than the slices of an export; aiohttp's own limit of 100 would only burden the server
_QUOTED = 2**14  # bytes of an answer that an error examines
_BIG = 2**20  # above this aiohttp wants a body as a file, so that sending does not block the loop
_UNREAD = 2**14  # above this a server may answer with an error before it has read the body


class Http:
    """The HTTP client of one connection, an async context manager.

    It reaches the connection's hosts and ports, sends its credentials and extra headers, and puts the path prefix
    before every path. It follows no redirects, keeps no cookies and ignores proxy settings of the environment. It keeps
    connections alive.

    If the connection has several hosts, a request goes to the one that answered last. A read goes on to the next one
    if that fails, or says 502, 503 or 504; any other request only if it certainly has not been sent.

    Attributes:
        profile: The connection.
    """

    def __init__(self, profile: Profile, *, on_token: Callable[[str], None] | None = None) -> None:
        """Prepare a client; entering the context opens it.

        Args:
            profile: The saved connection, secrets included.
            on_token: Receives each token that `hide` is called with.

        Raises:
            ConfigurationError: Host, credentials or certificates of the profile cannot be used.
        """
        self.profile = profile
        self._nodes, self._prefix = Nodes(profile), profile.path_prefix
        self._headers = CIMultiDict(
            {
                "User-Agent": "dragoman",
                "Accept-Encoding": "gzip" if _http_profile.compresses(profile) else "identity",
            }
        )
        self._headers.update(_http_profile.extra_headers(profile))
        if header := authorization(profile):
            self._headers["Authorization"] = header
        secret = self._headers.get("Authorization", "").partition(" ")[2]
        self._mask = Mask([*profile.secrets.texts, secret])
        self._on_token = on_token
        endpoint = _token_endpoint(profile)
        self._token_client = Http(endpoint) if endpoint else None
        self._tokens = _tokens_from(self._token_client, profile, hide=self.hide) if self._token_client else None
        self._session: aiohttp.ClientSession | None = None
        self._addresses: dict[str, NodeAddress] = {}  # by origin
        self._sockets = WeakSet[socket.socket]()
        self._answered = False

    def __repr__(self) -> str:
        return f"Http({self._nodes.first.origin})"

    @property
    def warnings(self) -> list[Note]:
        """What a person should know about the TLS settings, and about nodes that failed a short while ago."""
        return [*tls.warnings(self.profile), *self.faults]

    @property
    def faults(self) -> list[Note]:
        """Which of several nodes failed a short while ago, and how."""
        return self._nodes.notes()

    async def __aenter__(self) -> Self:
        self._connector = Connector(
            limit=_CONNECTIONS,
            socket_factory=self._socket,
            resolver=ThreadedResolver(),  # asks the loop, which in the sandbox asks the host
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_timeouts(None, _CONNECT),
            middlewares=(send_once,),
            max_line_size=HEADER,
            max_field_size=HEADER,
        )
        if self._token_client is not None:
            await self._token_client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if self._token_client is not None:
            await self._token_client.__aexit__(kind, error, traceback)
        with anyio.move_on_after(_HANG_UP, shield=True):  # even if the caller is cancelled
            if session is not None:
                await session.close()
            await self._hang_up()

    def _socket(self, address: AddrInfoType) -> socket.socket:
        sock = socket.socket(*address[:3])
        self._sockets.add(sock)
        return sock

    async def _hang_up(self) -> None:
        """End abandoned connections, each of which would wait 30 seconds for the peer to close TLS."""
        while left := [sock for sock in self._sockets if sock.fileno() >= 0]:
            for sock in left:
                with suppress(OSError):  # it has ended already
                    sock.shutdown(socket.SHUT_RDWR)
            await anyio.lowlevel.checkpoint()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | str | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float = 60,  # noqa: ASYNC109 - the name that drivers know; an anyio scope enforces it
        read: bool | None = None,
        limit: int | None = None,
    ) -> Response:
        """Send one request and return its answer, whatever its status.

        Args:
            method: In capitals.
            path: Percent-encoded, with its query string; goes out byte for byte, after the connection's path prefix.
            body: The bytes to send; None for no body.
            content_type: The content type of the body.
            headers: Additional headers.
            timeout: Seconds until the whole answer must have arrived.
            read: The request changes nothing on the server, so it may be sent once more if a kept connection turns
                out to be closed. None treats GET and HEAD as reads. No other request is sent twice.
            limit: Maximum size of this answer in bytes, if less than the client's limit.

        Returns:
            Status, headers and the whole body.

        Raises:
            ConnectionFailedError: No complete answer came; ``details["sent"]`` is False if nothing reached the server.
            QueryError: The path or the method cannot be sent (``details["sent"]`` is False too), or the answer is
                longer than ``details["limit"]``.
        """
        target = check_request(method, path, prefix=self._prefix)
        data, request_headers = request_body(body, content_type, headers)
        read = method in ("GET", "HEAD") if read is None else read

        async def send(node: Node, seconds: float, connect: float | None) -> Response:
            with self._diagnosing(node, method, path, seconds), anyio.fail_after(seconds):
                return await self._resent(
                    lambda: self._send(node, method, target, data, request_headers, limit, connect), read
                )

        return await self._signed(request_headers, lambda: self._nodes.ask(send, seconds=timeout, read=read))

    async def _signed(
        self, headers: dict[str, str], ask: Callable[[], Awaitable[A]], drop: Callable[[A], None] | None = None
    ) -> A:
        """Send a request with a token, and after a 401 once more with a new one: a 401 has carried out nothing."""
        if self._tokens is None:
            return await ask()
        token = await self._tokens.get()
        headers.update(token.headers)
        answer = await ask()
        if answer.status != 401:
            return answer
        if drop is not None:
            drop(answer)
        headers.update((await self._tokens.get(rejected=token)).headers)
        return await ask()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: bytes | str | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float = 60,  # noqa: ASYNC109 - as in `request`
        read: bool | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Stream]:
        """Send one request and yield its answer, whatever its status, to be read while it arrives.

        The answer must be read inside the context, which ends the connection of one that is not read to its end.

        Args:
            method: In capitals.
            path: Percent-encoded, with its query string; goes out byte for byte, after the connection's path prefix.
            body: The bytes to send; None for no body.
            content_type: The content type of the body.
            headers: Additional headers.
            timeout: Seconds until the headers, and then until each further piece, must have arrived.
            read: The request changes nothing on the server, so it may be sent once more if a kept connection turns
                out to be closed. None treats GET and HEAD as reads.
            limit: Maximum size of the whole answer in bytes, decompressed; None for any size.

        Yields:
            Status, headers and an iterator of chunks.

        Raises:
            ConnectionFailedError: No answer came, or it stopped before its end; the chunks before that are valid.
            QueryError: The path or the method cannot be sent, or the answer is longer than ``details["limit"]``; the
                chunks up to the limit are valid.
        """
        target = check_request(method, path, prefix=self._prefix)
        data, request_headers = request_body(body, content_type, headers)
        read = method in ("GET", "HEAD") if read is None else read
        answering_node = self._nodes.first

        async def send(node: Node, seconds: float, connect: float | None) -> aiohttp.ClientResponse:
            nonlocal answering_node
            answering_node = node
            with self._diagnosing(node, method, path, seconds), anyio.fail_after(seconds):
                return await self._resent(
                    lambda: self._open(node, method, target, data, request_headers, connect), read
                )

        end = aiohttp.ClientResponse.close
        answer = await self._signed(
            request_headers, lambda: self._nodes.ask(send, seconds=timeout, read=read, drop=end), end
        )
        try:
            self._check_end(answering_node, answer, method, path)
            self._check_body(answer, data)
            self._answered = True
            async with aclosing(self._chunks(answering_node, answer, method, path, timeout, limit)) as chunks:
                yield Stream(answer.status, answer.headers, chunks)
        finally:
            answer.close()

    async def _chunks(
        self,
        node: Node,
        answer: aiohttp.ClientResponse,
        method: str,
        path: str,
        timeout: float,  # noqa: ASYNC109 - as in `request`
        limit: int | None,
    ) -> AsyncGenerator[bytes, None]:
        pieces, size = answer.content.iter_any(), 0
        while True:
            with self._diagnosing(node, method, path, timeout), anyio.fail_after(timeout):
                piece = await anext(pieces, b"")
            if not piece:
                return
            for at in range(0, len(piece), CHUNK):
                chunk = piece[at : at + CHUNK]
                if limit is not None and (size := size + len(chunk)) > limit:
                    raise too_long(limit)
                yield chunk

    async def _resent(self, send: Callable[[], Awaitable[T]], read: bool) -> T:  # noqa: FBT001
        """Send a request, and a read once more, on a new connection, if its kept one turns out to be closed."""
        try:
            return await send()
        except Disconnected:
            if not (self._answered and read):
                raise
            self._connector.distrust_kept()
            return await send()

    @contextmanager
    def _diagnosing(self, node: Node, method: str, path: str, timeout: float) -> Iterator[None]:
        """Raise what aiohttp and the network raise as an error that says what to do."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            hint = "check Host, Port and the firewalls on the way"
            reason = f"no connection within {min(_CONNECT, timeout):.3g} s"
            raise _connection_errors.failure(node.profile, reason, hint=hint, sent=False) from error
        except TimeoutError as error:
            hint = "check that the server is not overloaded, or raise the deadline"
            reason = f"no complete answer to {method} {path} within {timeout:.3g} s"
            raise _connection_errors.failure(node.profile, reason, hint=hint, sent=True) from error
        except aiohttp.ClientPayloadError as error:
            reason = f"the answer to {method} {path} stopped before its end, or cannot be decoded ({_root(error)})"
            raise _connection_errors.failure(node.profile, reason, hint="read the server's log", sent=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _connection_errors.diagnose(error, node.profile, sent=not isinstance(error, NEVER_SENT)) from error

    async def get_json(self, path: str, *, timeout: float = 60) -> Any:  # noqa: ASYNC109 - as in `request`
        """Get a JSON document.

        Raises:
            AuthenticationError: 401.
            AccessDeniedError: 403.
            QueryError: Any other status that is not a success, or a body that is not JSON.
            ConnectionFailedError: No complete answer came; ``details["sent"]`` is False if nothing reached the server.
        """
        return self.check(await self.request("GET", path, timeout=timeout)).json()

    async def post_json(
        self,
        path: str,
        body: object,
        *,
        read: bool = False,
        timeout: float = 60,  # noqa: ASYNC109 - as in `request`
    ) -> Any:
        """Post a document as JSON and return the JSON answer.

        Args:
            path: Percent-encoded, with its query string; goes out byte for byte, after the connection's path prefix.
            body: Anything that msgspec encodes, or JSON as bytes.
            read: The request changes nothing, as a search does, so it may be sent once more if a kept connection turns
                out to be closed.
            timeout: Seconds until the whole answer must have arrived.

        Raises:
            AuthenticationError: 401.
            AccessDeniedError: 403.
            QueryError: Any other status that is not a success, or a body that is not JSON.
            ConnectionFailedError: No complete answer came; ``details["sent"]`` is False if nothing reached the server.
        """
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.check(await self.request("POST", path, body=data, timeout=timeout, read=read)).json()

    def check(self, response: Response) -> Response:
        """Raise the error of any status that is not a success.

        Raises:
            AuthenticationError: 401.
            AccessDeniedError: 403.
            QueryError: Any other status that is not a success.
        """
        if 200 <= response.status < 300:
            return response
        raise self.error(response)

    def error(self, response: Reply) -> DragomanError:
        """Build the error that a status stands for, with the server's text shortened and free of secrets.

        Args:
            response: Any answer of this server, as `request` returns it or as an exchange receives it.
        """
        where, quotation = self.profile.where, self.quote(response)
        if response.status == 401:
            reason = _REJECTED.get(self.profile.auth_scheme, f"the {credential(self.profile)} was rejected by {{}}")
            if self._token_client is not None:
                reason = f"{{}} rejected the token of {self._token_client.profile.where}"
            reason = reason.format(where)
            return AuthenticationError(f"{reason} (401){quotation}", hint="check Auth Method and credentials")
        if response.status == 403:
            return AccessDeniedError(f"{where} does not allow this with these credentials (403){quotation}")
        hint = self._harmless(redirection(response))
        details = {"status": response.status}
        return QueryError(f"{where} answered HTTP {response.status}{quotation}", hint=hint, details=details)

    def hide(self, token: str) -> None:
        """Mask a token that the driver learned from now on, in the errors of this client and in the driver's log."""
        self._mask.learn(token)
        if self._on_token is not None:
            self._on_token(token)

    def quote(self, response: Reply) -> str:
        """Return a colon and the beginning of the server's message, without secrets; empty if there is none."""
        return f": {text}" if (text := self._harmless(error_text(response.body) or response.body)) else ""

    def _harmless(self, text: str | bytes) -> str:
        """Return the beginning of the server's text, on one line and without secrets."""
        stream = MaskedStream(self._mask)
        begin = text[:_QUOTED] if isinstance(text, str) else text[:_QUOTED].decode(errors="replace")
        return _connection_errors.shorten(stream.feed(begin) + stream.end(torn=len(text) > _QUOTED))

    async def _send(
        self,
        node: Node,
        method: str,
        path: RequestPath,
        data: bytes | None,
        headers: dict[str, str],
        limit: int | None,
        connect: float | None,
    ) -> Response:
        async with self._sent(node, method, path, data, headers, connect) as answer:
            self._check_end(node, answer, method, path)
            self._check_body(answer, data)
            body = await read_body(answer, min(limit or BODY_LIMIT, BODY_LIMIT))
            self._answered = True
        if answer.status == 400 and node.tls is None and any(text in body for text in _connection_errors.HTTPS_PORT):
            raise _connection_errors.plain_on_tls(node.profile)
        if answer.status == 400 and node.tls and any(text in body for text in _connection_errors.CLIENT_CERTIFICATE):
            raise _connection_errors.certificate_wanted(node.profile)
        return Response(answer.status, answer.headers, body)

    def _sent(
        self,
        node: Node,
        method: str,
        path: RequestPath,
        data: bytes | None,
        headers: dict[str, str],
        connect: float | None,
    ) -> AbstractAsyncContextManager[IncomingAnswer | aiohttp.ClientResponse]:
        if self._session is None or (data is not None and len(data) >= _BIG):
            return self._open(node, method, path, data, headers, connect)
        address = self._addresses.get(node.origin)
        if address is None:
            address = self._addresses[node.origin] = NodeAddress(node, self._headers, self._session)
        request = (method.upper(), self._prefix + path, data)
        return sent_whole(self._connector, address, request, headers, _timeouts(connect, _CONNECT))

    def _open(
        self,
        node: Node,
        method: str,
        path: RequestPath,
        data: bytes | None,
        headers: dict[str, str],
        connect: float | None,
    ) -> aiohttp.client._RequestContextManager:
        if self._session is None:
            raise RuntimeError("the client is not open: use 'async with'")
        url = URL(node.origin + path, encoded=True)
        payload = io.BytesIO(data) if data is not None and len(data) >= _BIG else data
        limits = _timeouts(connect, _CONNECT)
        return self._session.request(
            method, url, data=payload, headers=headers, allow_redirects=False, timeout=limits, ssl=node.tls or True
        )

    def _check_end(self, node: Node, answer: IncomingAnswer | aiohttp.ClientResponse, method: str, path: str) -> None:
        if node.tls is not None and ends_with_its_connection(answer):
            reason = f"the answer to {method} {path} does not state its length, so it may be truncated"
            hint = "configure the server, or the proxy before it, to send Content-Length or chunks"
            raise _connection_errors.failure(node.profile, reason, hint=hint, sent=True)

    def _check_body(self, answer: IncomingAnswer | aiohttp.ClientResponse, data: bytes | None) -> None:
        """Give up a connection whose server may not have read the whole body: it would read it as the next request.

        The socket's buffer may still hold the rest, and nothing tells whether the server takes it.
        """
        if data is not None and len(data) > _UNREAD and not 200 <= answer.status < 300:
            self._connector.distrust_kept()


def _tokens_from(client: Http, profile: Profile, *, hide: Callable[[str], None]) -> Tokens:
    from ._tokens import Endpoint, Tokens  # which most connections do without

    return Tokens(Endpoint(profile, client, hide=hide).sign_in)


def _token_endpoint(profile: Profile) -> Profile | None:
    try:
        return profile.token_endpoint
    except ValueError as error:
        raise ConfigurationError(f"token_url: {error}", hint="enter the address of the token endpoint") from error


@lru_cache(maxsize=4)
def _timeouts(connect: float | None, longest: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=longest if connect is None else min(longest, connect))


_REJECTED = {
    AuthScheme.NONE: "{} asks for credentials, but Auth Method is None",
    AuthScheme.BASIC: "the user name or the password was rejected by {}",
}


def _root(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _connection_errors.shorten(getattr(error, "message", None) or str(error) or type(error).__name__)
