"""The HTTP side: who may ask, which route answers, and headers that hold for every answer."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import msgspec
from aiohttp import web

from dragoman_api.errors import DragomanError

from .access import DOOR, Door, welcome
from .event_stream import encode
from .failures import failure_of
from .messages.base import Done, Enter, Entered, Failed, NewToken, Request, RequestFailure
from .messages.imports import Uploaded
from .messages.routes import ROUTES, ServerEvent
from .surfaces import read_surface, surface

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .access import Access, Tab
    from .background_work import Work
    from .event_stream import EventStream
    from .messages.base import Empty
    from .uploads import ReceivedFiles

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
    Route = Callable[[Any], Awaitable[msgspec.Struct]]
    from pathlib import Path

SECRET = "Dragoman-Secret"  # noqa: S105 - the name of the header
CONNECTION = web.RequestKey("connection", str)
"""Where a request keeps the connection that it is about."""
MAX_BODY = 8 << 20
"""Maximum bytes of a request's body."""
WRONG_SECONDS = 1.0
"""Seconds after which one of too many wrong tokens is answered; the right one never waits."""
MAX_FILE_NAME = 255
"""Characters of the name of a file to import."""
CHUNK = 1 << 20
"""Bytes of such a file that are written at a time."""
MAX_SMALL = 64 << 10
"""Bytes of the body of a request that no tab has signed."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types dragoman-reader"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "Server": "dragoman",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer, errors included."""

WRITES = {
    "changes/apply", "connections/add_samples", "connections/remove", "connections/remove_samples", "connections/save",
    "console/execute", "exports/resume", "exports/start",
    "imports/copy", "imports/discard", "imports/resume", "imports/start", "imports/undo", "plugins/disable",
    "plugins/enable", "plugins/pin", "plugins/remove", "plugins/rollback", "queries/remove", "queries/save",
}  # fmt: skip
"""Routes that go on when the browser aborts the request: half of a change helps no person."""


_OWN = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")
"""This machine in a Host header. No parser is asked: each forgives something else."""
_FILTER_ROW = re.compile(r" - at `\$\.rows\.filters\[([0-9]{1,9})\][^`]*`\Z")
"""Where an error of msgspec says that it is about a filter row."""
_LONGEST = 500
"""Characters of the reason why a body is refused."""
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""Kinds of files that are served; others are not."""
INDEX = "index.html"
ICON_CACHE = "private, max-age=3600"
"""For files without a digest in their name: a browser asks for the icon again whenever the address changes."""
NOT_BUILT = (
    '<!doctype html><meta charset="utf-8"><title>dragoman</title><h1>The page is not built</h1>'
    "<p>From a checkout: <code>make workbench</code>. From a wheel: install <code>dragoman-workbench</code> again.\n"
)


class RefusedError(Exception):
    """A request that gets an error without reaching its route."""

    def __init__(self, status: int, code: str, message: str, *, hint: str = "", row: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.failure = RequestFailure(code=code, message=message, hint=hint, row=row)


class HttpSide:
    """The application: the page's files, the routes, the event stream and downloads."""

    def __init__(
        self,
        *,
        access: Access,
        stream: EventStream,
        work: Work,
        assets: Mapping[str, Asset],
        routes: Mapping[str, Route],
        download: Callable[[web.Request, str], Awaitable[web.StreamResponse]],
        uploads: ReceivedFiles,
        entered: Callable[[], Awaitable[None]],
    ) -> None:
        self._access, self._stream, self._work, self._assets = access, stream, work, assets
        self._routes: dict[str, Route] = {**routes, "token": self._token}
        self._download, self._uploads, self._entered = download, uploads, entered

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(middlewares=[self._answer], client_max_size=MAX_BODY)
        app[DOOR] = Door()
        app.on_response_prepare.append(_head)
        app.router.add_post("/api/{route:.+}", self._api)
        app.router.add_get("/api/events", self._events)
        app.router.add_get("/download/{ticket}", self._downloaded)
        app.router.add_post("/upload", self._upload)
        app.router.add_get("/{path:.*}", self._asset)
        return app

    # every request ----------------------------------------------------------------------------------------------------

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            with request.app[DOOR].answering(request.transport):
                _check_origin(request)
                return await handler(request)
        except RefusedError as refusal:
            return _failed(refusal.status, refusal.failure)
        except DragomanError as error:
            return _failed(422, failure_of(error, connection=request.get(CONNECTION, "")))
        except web.HTTPRequestEntityTooLarge:
            return _failed(413, RequestFailure(code="too-large", message="the request is too large"))
        except web.HTTPException as error:
            code = "not-found" if error.status == 404 else "bad-request"
            return _failed(error.status, RequestFailure(code=code, message=error.reason))
        except Exception as error:
            if request.transport is None or request.transport.is_closing():
                raise
            text = f"unexpected {type(error).__name__}; the terminal of the workbench shows where"
            where = "".join(traceback.format_tb(error.__traceback__))  # lines of code; its message may hold a secret
            request.app.logger.error("a request failed: %s\n%s", type(error).__name__, where)  # noqa: TRY400
            return _failed(500, RequestFailure(code="internal", message=text))

    def _tab(self, request: web.Request) -> Tab:
        tab = self._access.tab(request.headers.get(SECRET, ""))
        if tab is None:
            hint = "open the workbench again: dragoman workbench"
            raise RefusedError(401, "no-secret", "this tab is not signed in, or was idle for too long", hint=hint)
        welcome(request)
        if not tab.admit():
            raise RefusedError(429, "too-many", "too many requests at once")
        return tab

    # routes -----------------------------------------------------------------------------------------------------------

    async def _api(self, request: web.Request) -> web.Response:
        name = request.match_info["route"]
        if request.content_type != "application/json":
            raise RefusedError(400, "bad-request", "the body is not application/json")
        if name == "enter":
            return await self._enter(request)
        tab = self._tab(request)
        if name == "leave":
            self._access.leave(request.headers[SECRET])
            return _json(Done())
        if (route := self._routes.get(name)) is None:
            raise RefusedError(404, "not-found", "there is no such route")
        tab.running += 1
        surface.set(read_surface(request.headers))
        try:
            message = _decode(await request.read(), ROUTES[name][0])
            request[CONNECTION] = getattr(message, "connection", "")
            answer = await self._work.run(lambda: route(message), abortable=name not in WRITES)
        finally:
            tab.running -= 1
        return _json(answer)

    async def _enter(self, request: web.Request) -> web.Response:
        if (request.content_length or 0) > MAX_SMALL:
            raise RefusedError(413, "too-large", "the request is too large")
        message = _decode(await request.content.read(MAX_SMALL), Enter)
        if (secret := self._access.enter(message.token)) is None:
            if self._access.blocked():
                await anyio.sleep(WRONG_SECONDS)
                raise RefusedError(429, "too-many", "too many wrong tokens; wait a minute")
            hint = "open the workbench again: dragoman workbench"
            raise RefusedError(401, "no-secret", "this token was used already, or has expired", hint=hint)
        welcome(request)
        await self._entered()

        return _json(Entered(secret=secret))

    async def _token(self, _: Empty) -> NewToken:
        return NewToken(token=self._access.token())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        self._tab(request)
        secret = request.headers[SECRET]
        if self._stream.full:
            raise RefusedError(429, "too-many", "too many tabs are open")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        with self._stream.listen() as listener:
            await response.prepare(request)
            await response.write(encode(ServerEvent(kind="hello")))
            while self._access.tab(secret) is not None:
                await response.write(await listener.next())
        return response

    async def _downloaded(self, request: web.Request) -> web.StreamResponse:
        return await self._download(request, request.match_info["ticket"])

    async def _upload(self, request: web.Request) -> web.Response:
        """Receive a file to import; it is deleted if the browser goes before it is whole."""
        if request.content_type != "application/octet-stream" or (size := request.content_length) is None:
            raise RefusedError(400, "bad-request", "the body is not a file of a known size")
        tab = self._tab(request)
        name = request.query.get("name", "")
        if len(name) > MAX_FILE_NAME:
            raise RefusedError(400, "bad-request", "the name of the file is too long")
        tab.running += 1
        try:
            number = await self._uploads.receive(name, size, request.content.iter_chunked(CHUNK))
        finally:
            tab.running -= 1
        return _json(Uploaded(id=number, name=name, bytes=size))

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        asset = self._assets.get(request.path)
        if asset is None and request.path == "/":
            return web.Response(
                status=503, text=NOT_BUILT, content_type="text/html", headers={"Cache-Control": "no-store"}
            )
        if asset is None:
            raise web.HTTPNotFound
        data = await anyio.Path(asset.path).read_bytes()
        return web.Response(body=data, headers={"Content-Type": asset.kind, "Cache-Control": asset.cache})


def is_loopback(host: str) -> bool:
    """Return whether a host, as a Host header names it, is this machine."""
    return _OWN.fullmatch(host.lower()) is not None


def _check_origin(request: web.Request) -> None:
    """Refuse what a page of another site, or another name for this machine, sends.

    The port is not compared: with ``ssh -L`` the browser knows another one. An Origin header must name the very host
    and port of the Host header, and every browser sends one with a POST.
    """
    hosts = request.headers.getall("Host", [])
    if len(hosts) != 1 or not is_loopback(hosts[0]):
        raise RefusedError(403, "foreign", "this server answers only to localhost")
    origin = request.headers.get("Origin")
    if origin is None and request.method not in ("GET", "HEAD"):
        raise RefusedError(403, "foreign", "a request without an Origin header is not from the page")
    if origin is not None and origin != f"http://{hosts[0]}":
        raise RefusedError(403, "foreign", "a page of another site may not use the workbench")
    site, mode = request.headers.get("Sec-Fetch-Site", "none"), request.headers.get("Sec-Fetch-Mode", "navigate")
    if site not in ("same-origin", "none") and not (mode == "navigate" and request.path == "/"):
        raise RefusedError(403, "foreign", "a page of another site may not use the workbench")


def _decode(body: bytes, kind: type[Request]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except DragomanError as error:  # of the host's own structs, which check themselves
        raise RefusedError(400, "bad-request", error.message[:_LONGEST], hint=error.hint) from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        text, match = str(error), _FILTER_ROW.search(str(error))
        message = f"the body is not what this route takes: {text[:_LONGEST]}"
        raise RefusedError(400, "bad-request", message, row=int(match[1]) if match else None) from error


def _json(answer: msgspec.Struct, *, status: int = 200) -> web.Response:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return web.Response(status=status, body=msgspec.json.encode(answer), headers=headers)


def _failed(status: int, failure: RequestFailure) -> web.Response:
    return _json(Failed(error=failure), status=status)


async def _head(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


class Asset(NamedTuple):
    """One file of the page."""

    path: Path
    kind: str
    cache: str


def find_assets(folder: Path) -> dict[str, Asset]:
    """Return the files below a folder by address (``/``, ``/assets/index-1f2e.js``); links are left out. Blocks."""
    assets = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_symlink() or not path.is_file() or path.suffix not in TYPES:
            continue
        name = path.relative_to(folder).as_posix()
        hashed = name.startswith("assets/")  # Vite puts a digest into these names
        cache = "private, max-age=31536000, immutable" if hashed else "no-store" if name == INDEX else ICON_CACHE
        assets["/" if name == INDEX else f"/{name}"] = Asset(path, TYPES[path.suffix], cache)
    return assets
