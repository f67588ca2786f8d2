"""What a fake server is besides its answers: a port, a log of requests, a list of faults, and bad days."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

import anyio
from aiohttp import web

from dragoman_api.changes import HttpRequest

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

    from aiohttp.typedefs import Handler

Kind = Literal[
    "answer", "status", "empty", "garbage", "html", "cut", "slow", "hang", "drop", "lost", "twice", "closes", "trickles"
]

_PIECES = 40
"""Of an answer that trickles."""


class ServerTls(Protocol):
    """What a server speaks TLS with."""

    def server_context(self, *, require_client: bool = False) -> ssl.SSLContext:
        """Return the server's side."""


MAX_BODY = 8 << 20
"""Bytes of a request that a sample takes."""
_FOREIGN = "a sample answers programs of this machine alone"
_OWN_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?", re.IGNORECASE)

HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"


@dataclass
class Misbehaviour:
    """What goes wrong, on which paths, after how many good answers, and how often.

    `answer` answers `status`, `headers` and `body`; `status` the same with nothing; `empty` 200 with nothing; `garbage`
    200 and half of some JSON; `html` a proxy's page with `status`; `cut` stops in the middle of the body; `slow` waits
    `seconds` first; `hang` never answers; `drop` closes the connection; `lost` does the work and answers a proxy's page
    with `status`, or closes the connection if that is 0; `twice` does the work, and does it again for the answer, as a
    proxy that repeats a request; `closes` answers with `headers`, too, and ends the connection; `trickles` sends the
    answer in pieces over `seconds`.
    """

    kind: Kind
    on: str = ""
    after: int = 0
    times: int | None = None
    status: int = 502
    body: object = None
    seconds: float = 1.0
    headers: Mapping[str, str] | None = None

    def applies(self, method: str, target: str) -> bool:
        """Count this request, and tell whether it goes wrong."""
        path = target.partition("?")[0]
        if not path.startswith(self.on):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
            return self.times >= 0
        return True

    def instead(self) -> web.Response:
        """Return what is answered in place of the server."""
        if self.kind in ("html", "lost"):
            return web.Response(body=HTML, status=self.status, content_type="text/html")
        if self.kind == "answer":
            return web.json_response(self.body, status=self.status, headers=self.headers)
        if self.kind == "garbage":
            return web.Response(body=b'{"data":{"Get":{"', content_type="application/json")
        return web.Response(status=self.status if self.kind == "status" else 200, content_type="application/json")


@dataclass
class Losing(Misbehaviour):
    """From one request on, what the server does is done, and all its answers are lost."""

    begins: HttpRequest | None = None

    def applies(self, method: str, target: str) -> bool:
        """Tell whether this request is that one, or came after it."""
        if self.begins is not None and (method, target) == (self.begins.method, self.begins.path):
            self.begins = None
        return self.begins is None


@dataclass(frozen=True)
class Logged:
    """One request as it arrived."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Fault:
    """A request that no real server would have understood, or that the fake does not reproduce."""

    method: str
    target: str
    reason: str


def is_foreign(request: web.BaseRequest) -> bool:
    """Whether a page of a browser may have sent a request, also one whose host's name now leads here.

    No driver sends an Origin header. The port is not compared: with ``ssh -L`` the client knows another one.
    """
    hosts = request.headers.getall("Host", [])
    site = request.headers.get("Sec-Fetch-Site", "none")
    return len(hosts) != 1 or not _OWN_HOST.fullmatch(hosts[0]) or "Origin" in request.headers or site != "none"


def _turn_away(status: int, reason: str) -> web.Response:
    response = web.Response(status=status, text=f"{reason}\n")
    response.force_close()
    return response


@web.middleware
async def _own_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn foreign requests away; the application bounds bodies by itself."""
    return _turn_away(403, _FOREIGN) if is_foreign(request) else await handler(request)


@dataclass
class FakeServer:
    """A server on loopback, as an async context manager; a subclass answers.

    Attributes:
        guarded: it is a sample, which anything on the machine may reach: it turns away what a page of a browser sends
            and large bodies, and keeps no request.
        requests: every request, in order.
        faults: the requests that the fake does not claim to answer as a real server does; a test that did not mean to
            send such a request fails when there are any.
    """

    port: int = 0
    host: str = "127.0.0.1"
    tls: ServerTls | None = None
    guarded: bool = False
    requests: list[Logged] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    troubles: list[Misbehaviour] = field(default_factory=list)
    _runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """Return the base address."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def misbehave(
        self,
        kind: Kind,
        *,
        on: str = "",
        after: int = 0,
        times: int | None = None,
        status: int = 502,
        body: object = None,
        seconds: float = 1.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Break the server from now on; see `Misbehaviour`."""
        self.troubles.append(Misbehaviour(kind, on, after, times, status, body, seconds, headers))

    @contextmanager
    def lose(self, request: HttpRequest, status: int) -> Iterator[None]:
        """Lose the answers from one request on: a gateway answers with a status, or the connection ends if it is 0."""
        losing = Losing("lost", status=status, begins=request)
        self.troubles.append(losing)
        try:
            yield
        finally:
            self.troubles.remove(losing)

    def behave(self) -> None:
        """Be a good server again."""
        self.troubles.clear()

    async def answer(self, request: web.BaseRequest, path: str, query: str, raw: bytes) -> web.Response:
        """Answer one request."""
        raise NotImplementedError

    async def read(self, request: web.BaseRequest) -> bytes | web.Response:
        """Read a request's body, or turn it away unread."""
        if not self.guarded:
            return await request.content.read()
        body = bytearray()
        async for piece in request.content.iter_any():
            body += piece
            if len(body) > MAX_BODY:
                return _turn_away(413, f"a sample takes {MAX_BODY:,} bytes")
        return bytes(body)

    def context(self) -> ssl.SSLContext | None:
        """Return what TLS is spoken with."""
        return self.tls.server_context() if self.tls else None

    async def __aenter__(self) -> Self:
        context = self.context()
        # The limits of real servers are higher than aiohttp's defaults.
        server = web.Server(self._handle, access_log=None, max_line_size=16_384, max_field_size=16_384)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.guarded and is_foreign(request):
            return _turn_away(403, _FOREIGN)
        path, _, query = request.raw_path.partition("?")
        body = await self.read(request)
        raw = body if isinstance(body, bytes) else b""
        if self.guarded:
            self.faults.clear()
        else:
            self.requests.append(Logged(request.method, path, query, request.headers, raw))
        if isinstance(body, web.Response):
            return body
        trouble = next(
            (candidate for candidate in self.troubles if candidate.applies(request.method, request.raw_path)), None
        )
        if trouble is None:
            return await self.answer(request, path, query, raw)
        if trouble.kind == "hang":
            await anyio.sleep_forever()
        if trouble.kind == "slow":
            await anyio.sleep(trouble.seconds)
            return await self.answer(request, path, query, raw)
        if trouble.kind in ("lost", "twice"):
            await self.answer(request, path, query, raw)
        if trouble.kind == "twice":
            return await self.answer(request, path, query, raw)
        if trouble.kind == "drop" or (trouble.kind == "lost" and trouble.status == 0):
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if trouble.kind in ("closes", "trickles"):
            answer = await self.answer(request, path, query, raw)
            answer.headers.update(trouble.headers or {})
            seconds = trouble.seconds if trouble.kind == "trickles" else 0
            return await self._send(request, answer, seconds=seconds, close=trouble.kind == "closes")
        if trouble.kind == "cut":
            return await self._cut(request, await self.answer(request, path, query, raw))
        return trouble.instead()

    @staticmethod
    async def _send(
        request: web.BaseRequest, answer: web.Response, *, seconds: float, close: bool
    ) -> web.StreamResponse:
        body = answer.body or b""
        assert isinstance(body, bytes)
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        if answer.status != 204:
            response.content_length = len(body)
        await response.prepare(request)
        pieces = min(_PIECES, len(body)) if seconds else 1
        for number in range(pieces):
            await anyio.sleep(seconds / pieces)
            await response.write(body[len(body) * number // pieces : len(body) * (number + 1) // pieces])
        await response.write_eof()
        if close and request.transport is not None:
            request.transport.close()
        return response

    @staticmethod
    async def _cut(request: web.BaseRequest, whole: web.Response) -> web.StreamResponse:
        body = whole.body
        assert isinstance(body, bytes)
        response = web.StreamResponse(status=whole.status, headers=whole.headers)
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return response


class Routed(Protocol):
    """A fake that is the routes of an application."""

    app: web.Application


Store = TypeVar("Store", bound=Routed)


@asynccontextmanager
async def serving(store: Store, *, port: int = 0, guarded: bool = False) -> AsyncIterator[tuple[Store, str, int]]:
    """Serve a fake of that kind on a port, by default a free one, and yield it with host and port.

    Args:
        store: The fake.
        port: The port.
        guarded: It is a sample; see `FakeServer`.
    """
    if guarded:
        store.app.middlewares.append(_own_only)
    runner = web.AppRunner(store.app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        yield store, "127.0.0.1", runner.addresses[0][1]
    finally:
        await runner.cleanup()
