"""The HTTP client of one connection: TLS by SSL mode, authorization, compression, and errors a person can act on."""

from __future__ import annotations

import io
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

import aiohttp
import anyio
import anyio.lowlevel
import msgspec
from aiohttp.resolver import ThreadedResolver
from multidict import CIMultiDictProxy
from yarl import URL

from . import _diagnosis, _profiles, _tls
from .connections import AuthScheme
from .errors import AccessDeniedError, AuthenticationError, QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from aiohttp.connector import AddrInfoType

    from .columns import Note
    from .connections import Profile
    from .errors import DragomanError

BODY_LIMIT = 128 * 2**20
"""Bytes of one answer at most, decompressed."""

_CONNECT = 15  # seconds for name, socket and TLS handshake; the host's side of the sandbox gives up after 10
_HANG_UP = 1  # seconds that ending all connections may take
_CONNECTIONS = 32  # more than the slices of an export; aiohttp's own limit of 100 would only burden the server
_HEADER = 64 * 2**10  # deprecations come in Warning headers, far longer than the 8 KiB aiohttp expects
_BIG = 2**20  # from here on aiohttp wants a body as a file, so that sending it does not hold up the loop
_PATH = re.compile(r"/(?!/)[!\"$->@-~]*(\?[!\"$-~]+)?")  # visible ASCII; yarl drops '#…' and a '?' with nothing behind


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered.

    Attributes:
        status: HTTP status.
        headers: Case-insensitive; `headers.getall` gives all of one name.
        body: The whole body, decompressed.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def text(self) -> str:
        """Give the body as text; bytes that are no UTF-8 are replaced."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Decode the body; integers keep every digit.

        Raises:
            QueryError: The body is no JSON, for example a proxy's HTML page.
        """
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise QueryError(
                f"HTTP {self.status}, and the answer is no JSON ({error}): {_diagnosis.shorten(self.text)}",
                hint="check Host and Port: a proxy may have answered instead of the database",
            ) from error


class Http:
    """The HTTP client of one connection, an async context manager.

    It reaches one host and port, sends the connection's credentials, follows no redirect, keeps no cookie and
    ignores proxies of the environment. Connections are kept alive.

    Attributes:
        profile: The connection.
        warnings: What a person should know about the TLS settings.
    """

    def __init__(self, profile: Profile, *, body_limit: int = BODY_LIMIT) -> None:
        """Prepare a client; nothing is opened before the context is entered.

        Args:
            profile: The saved connection, secrets included.
            body_limit: Bytes of one answer at most.

        Raises:
            ConfigurationError: Host, credentials or certificates of the profile cannot be used.
        """
        self.profile = profile
        self.warnings: list[Note] = _tls.warnings(profile)
        self._body_limit = body_limit
        self._origin = _profiles.origin(profile)
        self._ssl = _tls.context(profile)
        self._headers = {
            "User-Agent": "dragoman",
            "Accept-Encoding": "gzip" if _profiles.compresses(profile) else "identity",
        }
        if authorization := _profiles.authorization(profile):
            self._headers["Authorization"] = authorization
        self._session: aiohttp.ClientSession | None = None
        self._sockets = WeakSet[socket.socket]()
        self._answered = False

    def __repr__(self) -> str:
        return f"Http({self._origin})"

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            ssl=self._ssl or True,
            limit=_CONNECTIONS,
            socket_factory=self._socket,
            resolver=ThreadedResolver(),  # asks the loop, which in the sandbox asks the host
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
            middlewares=(_once,),
            max_line_size=_HEADER,
            max_field_size=_HEADER,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        with anyio.move_on_after(_HANG_UP, shield=True):  # also where whoever uses it is cancelled
            if session is not None:
                await session.close()
            await self._hang_up()

    def _socket(self, address: AddrInfoType) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    async def _hang_up(self) -> None:
        """End connections that were given up: by itself each waits half a minute for the other side to end TLS."""
        while left := [each for each in self._sockets if each.fileno() >= 0]:
            for each in left:
                with suppress(OSError):  # it is ended already
                    each.shutdown(socket.SHUT_RDWR)
            await anyio.lowlevel.checkpoint()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | str | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float = 60,  # noqa: ASYNC109 - the word drivers know; a scope of anyio does the work
        read: bool | None = None,
        limit: int | None = None,
    ) -> Response:
        """Send one request and give its answer, whatever its status.

        Args:
            method: In capitals.
            path: Percent-encoded, with its query string; goes out byte for byte.
            body: What is sent; None for no body.
            content_type: Of the body.
            headers: Further ones.
            timeout: Seconds until the whole answer is here.
            read: It changes nothing on the server, so it may be sent again, once, when a kept connection turns out
                to be closed. None takes GET and HEAD for reads. Anything else is never sent twice.
            limit: Bytes of this answer at most, where that is less than the client's limit.

        Returns:
            Status, headers and the whole body.

        Raises:
            ConnectionFailedError: No whole answer came; ``details["sent"]`` is False if nothing reached the server.
            QueryError: The path or the method cannot be sent, or the answer is longer than ``details["limit"]``.
        """
        if not _PATH.fullmatch(path):
            raise QueryError(
                f"the path {path!r} cannot be sent: it begins with one '/', is percent-encoded, ends in no '?'",
                hint="encode ids, for example / as %2F and a space as %20",
            )
        if not (method.isascii() and method.isalpha()):
            raise QueryError(f"{method!r} is no HTTP method")
        data = body.encode() if isinstance(body, str) else body
        given = {**({} if data is None else {"Content-Type": content_type}), **(headers or {})}
        resend = self._answered and (method in ("GET", "HEAD") if read is None else read)
        try:
            with anyio.fail_after(timeout):
                try:
                    return await self._send(method, path, data, given, limit)
                except _Disconnected:
                    if not resend:
                        raise
                    return await self._send(method, path, data, given, limit)
        except aiohttp.ConnectionTimeoutError as error:
            hint = "check Host, Port and the firewalls between"
            reason = f"no connection within {_CONNECT} s"
            raise _diagnosis.failure(self.profile, reason, hint=hint, sent=False) from error
        except TimeoutError as error:
            hint = "check that the server is not overloaded, or raise the deadline"
            reason = f"no whole answer to {method} {path} within {timeout:g} s"
            raise _diagnosis.failure(self.profile, reason, hint=hint, sent=True) from error
        except aiohttp.ClientPayloadError as error:
            reason = f"the answer to {method} {path} stopped before its end, or cannot be decoded ({_root(error)})"
            raise _diagnosis.failure(self.profile, reason, hint="look into the server's log", sent=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _diagnosis.diagnose(error, self.profile, sent=not isinstance(error, _NEVER_SENT)) from error

    async def get_json(self, path: str, *, timeout: float = 60) -> Any:  # noqa: ASYNC109 - as in `request`
        """Get a JSON document.

        Raises:
            AuthenticationError: 401.
            AccessDeniedError: 403.
            QueryError: Any other status that is no success, or no JSON.
            ConnectionFailedError: As in `request`.
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
        """Post a document as JSON and give the JSON answer.

        Args:
            path: As in `request`.
            body: Anything msgspec encodes, or JSON as bytes.
            read: It changes nothing, as a search does; see `request`.
            timeout: Seconds.

        Raises:
            AuthenticationError: 401.
            AccessDeniedError: 403.
            QueryError: Any other status that is no success, or no JSON.
            ConnectionFailedError: As in `request`.
        """
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.check(await self.request("POST", path, body=data, timeout=timeout, read=read)).json()

    def check(self, response: Response) -> Response:
        """Let a success pass and raise what any other status means.

        Raises:
            AuthenticationError: 401.
            AccessDeniedError: 403.
            QueryError: Any other status that is no success.
        """
        if 200 <= response.status < 300:
            return response
        raise self.error(response)

    def error(self, response: Response) -> DragomanError:
        """Build the error a status stands for, with the server's text shortened and free of secrets."""
        where, said = f"{self.profile.host}:{self.profile.port}", self._quote(response)
        if response.status == 401:
            reason = _REJECTED[self.profile.auth_scheme].format(where)
            return AuthenticationError(f"{reason} (401){said}", hint="check Auth Method and credentials")
        if response.status == 403:
            return AccessDeniedError(f"{where} does not allow this to these credentials (403){said}")
        return QueryError(f"{where} answered HTTP {response.status}{said}", details={"status": response.status})

    def _quote(self, response: Response) -> str:
        text = response.text
        for secret in {*self.profile.secrets.values.values(), self._headers.get("Authorization", "").partition(" ")[2]}:
            if secret:
                text = text.replace(secret, "…")
        return f": {_diagnosis.shorten(text)}" if text.strip() else ""

    async def _send(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], limit: int | None
    ) -> Response:
        if self._session is None:
            raise RuntimeError("the client is not open: use 'async with'")
        url = URL(self._origin + path, encoded=True)
        payload = io.BytesIO(data) if data is not None and len(data) >= _BIG else data
        async with self._session.request(method, url, data=payload, headers=headers, allow_redirects=False) as answer:
            body = await self._read(answer, min(limit or self._body_limit, self._body_limit))
            self._answered = True
        if answer.status == 400 and self._ssl is None and any(text in body for text in _diagnosis.HTTPS_PORT):
            raise _diagnosis.plain_on_tls(self.profile)
        return Response(answer.status, answer.headers, body)

    async def _read(self, answer: aiohttp.ClientResponse, limit: int) -> bytes:
        parts, size = [], answer.content_length or 0
        if size <= limit:
            size = 0
            async for part in answer.content.iter_any():
                parts.append(part)
                if (size := size + len(part)) > limit:
                    break
            else:
                return parts[0] if len(parts) == 1 else b"".join(parts)
        raise QueryError(
            f"the answer is longer than {limit:,} bytes",
            hint="ask for fewer rows or columns at a time",
            details={"limit": limit},
        )


class _Disconnected(aiohttp.ClientError):
    """The connection ended before the answer; raised in place of what aiohttp would answer by sending again."""


_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)

_REJECTED = {
    AuthScheme.NONE: "{} asks for credentials, and Auth Method is None",
    AuthScheme.BASIC: "the user name or the password was rejected by {}",
    AuthScheme.API_KEY: "the API key was rejected by {}",
    AuthScheme.BEARER: "the API key was rejected by {}",
}


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending PUT and DELETE again after a disconnect: the first may have been carried out."""
    try:
        return await handler(request)
    except _NEVER_SENT:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Disconnected(*error.args[-1:]) from error


def _root(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _diagnosis.shorten(getattr(error, "message", None) or str(error) or type(error).__name__)
