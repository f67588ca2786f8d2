"""Serves a registry over HTTP, by default only on this machine: its files, and an inbox for uploads."""

from __future__ import annotations

import os
from asyncio import Protocol, get_running_loop
from contextlib import asynccontextmanager
from ipaddress import ip_address
from shlex import quote
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from aiohttp import web

from dragoman_api.errors import ConfigurationError
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.tuf_repository import Repository

from .folder import belongs
from .upload_requests import Uploads

if TYPE_CHECKING:
    from asyncio import Task, TimerHandle, Transport
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from dragoman_api.events import Event

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

GRACE = 0.25
"""Seconds for running answers when the server stops; aiohttp waits twice as long."""
HEADER = 15.0
"""Maximum seconds until a connection sends its first request, and each further one."""
RATE = 32 << 10
"""Minimum bytes per second that a client must receive; otherwise its answer is cut."""
CONNECTIONS = 200
"""Maximum number of connections; a further one replaces the connection that was silent longest."""

SIMPLE = "application/vnd.pypi.simple"
_JSON = (f"{SIMPLE}.v1+json", f"{SIMPLE}.latest+json")
_HTML = ("text/html", f"{SIMPLE}.v1+html", f"{SIMPLE}.latest+html")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".metadata": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".v1+json": _JSON[0],
}


@asynccontextmanager
async def serving(
    root: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    names: Iterable[str] = (),
    tokens: Mapping[str, str] | None = None,
    on_event: Callable[[Event], None] = lambda _: None,
) -> AsyncIterator[str]:
    """Serve a registry while the block runs.

    Args:
        root: The registry's folder.
        host: The address to listen on.
        port: The port; zero for a free one.
        names: Further host names that it answers to, as behind a proxy. On a loopback address it refuses all others;
            otherwise any page in a local browser could read it through DNS rebinding.
        tokens: Maps the name of each publisher who may upload to a token; without it, uploads are off.
        on_event: Called for every upload.

    Yields:
        The address, without a trailing slash.

    Raises:
        ConfigurationError: The folder is not a registry, or the address is not available.
    """
    if not await anyio.to_thread.run_sync((root / "targets" / "catalog").is_file):
        raise ConfigurationError(f"{root} is not a registry", hint=f"dragoman registry init {quote(str(root))}")
    uploads = Uploads(root, tokens=tokens or {}, on_event=on_event)
    files = _Files(root, names=frozenset(map(str.lower, names)) if names or is_loopback(host) else None)
    app = web.Application(middlewares=[files.answer])
    app.on_response_prepare.append(_head)
    for path in ("/upload", "/upload/") if tokens else ():
        app.router.add_post(path, uploads.upload, expect_handler=uploads.expect)
    app.router.add_get("/{path:.*}", files.file)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=GRACE)
    await runner.setup()
    assert runner.server is not None
    files.doors = doors = _Doors(runner.server)
    try:
        try:
            listening = await get_running_loop().create_server(doors.open, host, port, backlog=CONNECTIONS)
        except (OSError, OverflowError) as error:
            number = getattr(error, "errno", None) or 0  # the text of asyncio's error repeats the address
            why = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or error
            reason = f"the server cannot listen on {host}:{port}: {why}"
            raise ConfigurationError(reason, hint="--port 0 picks a free port") from error
        try:
            url_host = f"[{host}]" if ":" in host else host
            yield f"http://{url_host}:{listening.sockets[0].getsockname()[1]}"
        finally:
            listening.close()
            await uploads.end()
    finally:
        doors.close()
        await runner.cleanup()


def root_digest(root: Path) -> str:
    """Return the digest of a registry's root, by which users verify that it is the right registry."""
    return Repository(root, Keys(beside(root))).root_digest


def is_loopback(host: str) -> bool:
    """Check whether only this machine can reach a server on this host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Doors:
    """The connections of a server, limited in their number and in the time that each may be idle."""

    def __init__(self, server: web.Server) -> None:
        self._server = server
        self._until: dict[Protocol, TimerHandle] = {}

    def open(self) -> Protocol:
        """Accept a connection; if there are too many, close the one that was silent longest."""
        door: web.RequestHandler = self._server()
        if len(self._server.connections) >= CONNECTIONS:
            silent = next(
                (other_door for other_door in self._until if getattr(other_door, "transport", None) is not None), door
            )
            if silent is door:
                return _Closed()
            self._cut(silent, None)
        self._wait(door, HEADER, None)
        return door

    def busy(self, request: web.Request) -> None:
        """Note that a connection has sent a request."""
        if (timer := self._until.pop(request.protocol, None)) is not None:
            timer.cancel()

    def answered(self, request: web.Request, size: int) -> None:
        """Allow a connection time to receive the answer and to send another request."""
        self._wait(request.protocol, HEADER + size / RATE, request.task)

    def close(self) -> None:
        """Forget every connection; the server's runner closes them."""
        while self._until:
            self._until.popitem()[1].cancel()

    def _wait(self, door: Protocol, seconds: float, task: Task[None] | None) -> None:
        self._until[door] = get_running_loop().call_later(seconds, self._cut, door, task)

    def _cut(self, door: Protocol, task: Task[None] | None) -> None:
        if (timer := self._until.pop(door, None)) is not None:
            timer.cancel()
        transport: Transport | None = getattr(door, "transport", None)
        if transport is not None:
            transport.abort()
            if task is not None:
                task.cancel()


class _Closed(Protocol):
    """A connection above the limit."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Close it."""
        transport.abort()


class _Files:
    def __init__(self, root: Path, *, names: frozenset[str] | None) -> None:
        self.root, self._names = root.resolve(), names
        self.doors: _Doors

    @web.middleware
    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer requests in bounded time; refuse those whose Host header names another server."""
        self.doors.busy(request)
        size = 0
        try:
            if self._names is not None and not self._is_own(request.headers.get("Host", "")):
                raise web.HTTPMisdirectedRequest(text="this host name is unknown; see dragoman registry serve --name\n")
            origin = request.headers.get("Origin")
            if origin is not None and request.method == "POST" and urlsplit(origin).netloc != request.headers["Host"]:
                raise web.HTTPForbidden(text="a page of another site may not upload\n")
            response = await handler(request)
            size = response.stat_size if isinstance(response, _File) else 0
            return response
        finally:
            self.doors.answered(request, size)

    def _is_own(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
        except ValueError:
            return False
        return is_loopback(name) or name in (self._names or ())

    async def file(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        file = await anyio.to_thread.run_sync(self._find, path)
        if file is None:
            raise web.HTTPNotFound(text="there is no such file\n")
        if file.name == "index.html" and path and not path.endswith(("/", "index.html")):
            raise web.HTTPMovedPermanently(f"{request.path.rpartition('/')[2]}/")
        kind = _TYPES.get(file.suffix, "application/octet-stream")
        headers = {"Cache-Control": "max-age=31536000, immutable" if file.suffix == ".whl" else "no-cache"}
        if path.startswith("targets/simple/") and path.endswith("/"):
            chosen = _negotiated(request.headers.get("Accept", ""))
            if chosen is None:
                raise web.HTTPNotAcceptable(text=f"this page is available as {', '.join((*_JSON[:1], *_HTML[:2]))}\n")
            kind, headers["Vary"] = f"{chosen}; charset=utf-8", "Accept"
            if chosen in _JSON:
                kind, file = _JSON[0], file.with_name("index.v1+json")
        elif path.startswith("targets/docs/"):  # show an author's text without running scripts
            headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        size = (await anyio.to_thread.run_sync(file.stat)).st_size
        return _File(file, size, headers=headers | {"Content-Type": kind})

    def _find(self, path: str) -> Path | None:
        """Find a file of the registry to serve; never a link out of it, never a folder listing."""
        if "\0" in path or "\\" in path or any(part.startswith(".") for part in path.split("/")):
            return None
        try:
            file = (self.root / path.lstrip("/")).resolve()
            if file.is_dir():
                file = (file / "index.html").resolve()
            own = file.is_relative_to(self.root) and belongs(file.relative_to(self.root).as_posix())
            return file if own and file.is_file() else None
        except (OSError, RuntimeError):  # too long a name, or a loop of links
            return None


class _File(web.FileResponse):
    def __init__(self, path: Path, size: int, *, headers: Mapping[str, str]) -> None:
        super().__init__(path, headers=headers)
        self.stat_size = size


def _negotiated(accept: str) -> str | None:
    """Choose the form of a page by PEP 691; without a preference, HTML for people."""
    best, chosen = 0.0, None
    for entry in (accept or "*/*").split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        try:
            weight = next((float(parameter[2:]) for parameter in parameters if parameter.startswith("q=")), 1.0)
        except ValueError:
            weight = 0.0
        offered = _HTML[0] if kind in ("*/*", "text/*") else kind
        if weight > best and offered in (*_JSON, *_HTML):
            best, chosen = weight, offered
    return chosen


async def _head(_: web.Request, response: web.StreamResponse) -> None:
    """Keep browsers from guessing the type of any answer."""
    response.headers.update(
        {"Server": "dragoman", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    )
