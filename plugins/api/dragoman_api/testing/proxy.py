"""A proxy on the loopback interface that records what a driver sends, and spoils answers of the server."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Literal

import aiohttp
import anyio
from aiohttp import web
from multidict import CIMultiDictProxy
from yarl import URL

from dragoman_api._transport import send_once
from dragoman_api.changes import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from multidict import CIMultiDict

Fault = Literal["lost", "cut", "delayed", "closed"]

_HOP = ("Connection", "Date", "Host", "Keep-Alive", "Server", "Transfer-Encoding", "Upgrade")
"""Headers of one connection, and those that aiohttp writes itself."""

_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp's client adds unless it is told not to."""

_GATEWAY = b"<html><head><title>Bad Gateway</title></head><body>the answer was lost</body></html>\n"


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """A request as it arrived.

    Attributes:
        method: The HTTP method.
        path: The path as it was sent, percent-encoded, with its query string.
        headers: Its headers; a name is found in any spelling.
        body: The body, as bytes.
    """

    method: str
    path: str
    headers: CIMultiDictProxy[str]
    body: bytes


@dataclass
class _Trouble:
    fault: Fault
    path: str = ""
    after: int = 0
    status: int = 502
    seconds: float = 0.0
    begins: HttpRequest | None = None

    def spoils(self, request: HttpRequest) -> bool:
        if self.begins is not None:
            begins = self.begins
            if (request.method, request.path, request.body) != (begins.method, begins.path, begins.body):
                return False
            self.begins = None
        if not request.path.startswith(self.path):
            return False
        self.after -= 1
        return self.after < 0


class Proxy:
    """Passes requests on to a server, fake or real, records them, and spoils answers if a test says so.

    An async context manager. It passes answers on as they arrive, and speaks HTTP without TLS on both sides. `spoil`
    knows four faults: ``lost`` (the server carries the request out, and its answer is lost), ``cut`` (the connection
    ends in the middle of the answer's body), ``delayed`` (the answer begins ``seconds`` later) and ``closed`` (the
    connection ends, and the server never gets the request).

    Args:
        upstream: The address of the server: ``http://HOST:PORT``.

    Attributes:
        host: Where it listens.
        port: The port, from the start on.
        requests: The requests that arrived, in order, whatever became of them.
        log: The same as the driver named them, for `Target.log`.
    """

    def __init__(self, upstream: str) -> None:
        self.host, self.port = "127.0.0.1", 0
        self.requests: list[RecordedRequest] = []
        self.log: list[HttpRequest] = []
        self._upstream = upstream.rstrip("/")
        self._troubles: list[_Trouble] = []
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None, max_line_size=65_536, max_field_size=65_536), shutdown_timeout=0.1
        )

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://{self.host}:{self.port}"

    @contextmanager
    def lose(self, request: HttpRequest, status: int) -> Iterator[None]:
        """Lose the answers from one request on, as `Target.lose` says.

        Args:
            request: The server still carries it out, and what follows.
            status: The status of a gateway that answers instead; 0 to end the connection.
        """
        with self._spoiled(_Trouble("lost", status=status, begins=request)):
            yield

    @contextmanager
    def spoil(
        self, fault: Fault, *, path: str = "", after: int = 0, status: int = 502, seconds: float = 1.0
    ) -> Iterator[None]:
        """Spoil the answers to requests until the block ends.

        Args:
            fault: What goes wrong.
            path: Only requests whose path begins with this text.
            after: Number of such requests that pass first.
            status: The status of a gateway that answers in place of a lost answer; 0 to end the connection.
            seconds: How long an answer is delayed.
        """
        with self._spoiled(_Trouble(fault, path, after, status, seconds)):
            yield

    @contextmanager
    def _spoiled(self, trouble: _Trouble) -> Iterator[None]:
        self._troubles.append(trouble)
        try:
            yield
        finally:
            self._troubles.remove(trouble)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        # No cookies, no old connection, no second attempt: each request reaches the server once, as it came.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_ADDED,
            timeout=aiohttp.ClientTimeout(total=None),
            max_line_size=65_536,
            max_field_size=65_536,
            middlewares=(send_once,),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._runner.cleanup()
        finally:
            await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()  # of any size: `request.read` has a limit of its own, 1 MiB
        self.requests.append(
            RecordedRequest(method=request.method, path=request.raw_path, headers=request.headers, body=body)
        )
        text = body.decode(errors="replace") if body else None
        content_type = request.headers.get("Content-Type", "application/json")
        sent = HttpRequest(request.method, request.raw_path, text, content_type)
        self.log.append(sent)
        trouble = next((trouble for trouble in self._troubles if trouble.spoils(sent)), None)
        if trouble is not None and trouble.fault == "closed":
            return _ended(request)
        try:
            async with self._session.request(
                request.method,
                URL(self._upstream + request.raw_path, encoded=True),
                data=BytesIO(body) if body else None,  # aiohttp warns of long bytes
                headers=_passed(request.headers),
                allow_redirects=False,
            ) as answer:
                return await _answered(request, answer, trouble)
        except aiohttp.ClientError:
            return _ended(request)


async def _answered(
    request: web.BaseRequest, answer: aiohttp.ClientResponse, trouble: _Trouble | None
) -> web.StreamResponse:
    """Pass an answer on, or spoil it."""
    fault = None if trouble is None else trouble.fault
    if trouble is not None and fault == "lost":
        await answer.read()
        if trouble.status == 0:
            return _ended(request)
        return web.Response(status=trouble.status, body=_GATEWAY, content_type="text/html")
    if trouble is not None and fault == "delayed":
        await anyio.sleep(trouble.seconds)
    passed = web.StreamResponse(status=answer.status, reason=answer.reason, headers=_passed(answer.headers))
    if fault == "cut":
        body = await answer.read()
        await passed.prepare(request)
        await passed.write(body[: len(body) // 2])
        return _ended(request, passed)
    await passed.prepare(request)
    async for part in answer.content.iter_any():
        await passed.write(part)
    await passed.write_eof()
    return passed


def _passed(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    passed = headers.copy()
    for name in _HOP:
        passed.popall(name, None)
    return passed


def _ended(request: web.BaseRequest, answer: web.StreamResponse | None = None) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort() if answer is None else request.transport.close()
    return answer or web.Response()
