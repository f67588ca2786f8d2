"""A registry over HTTP, on this machine alone unless told otherwise: its files to read, and an inbox for uploads."""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
import anyio
from aiohttp import web

from dragoman_api import events
from dragoman_api.errors import ConfigurationError, DragomanError, RegistryError, WheelRejectedError

from .folder import belongs
from .inbox import MAX_WHEEL, Inbox
from .trust.keys import Keys, beside
from .trust.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from .inbox import Draft, Upload

SECONDS = 600.0
"""How long one upload may take."""
GRACE = 5.0
"""Seconds for answers that are under way when the server ends."""
CHUNK = 256 * 1024
MAX_FORM = 4 << 20
"""Bytes of an upload beside its file."""

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
_CONTENT = "content"
_FIELDS = (":action", "protocol_version", "filetype", "sha256_digest", "blake2_256_digest")
_STATUS = {"immutable": 409, "inbox-full": 507, "token-unknown": 401, "upload-conflict": 409, "upload-too-large": 413}


@asynccontextmanager
async def serving(
    root: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tokens: Mapping[str, str] | None = None,
    on_event: Callable[[events.Event], None] = lambda _: None,
) -> AsyncIterator[str]:
    """Serve a registry while the block runs.

    Args:
        root: The registry's folder.
        host: Where to listen.
        port: Zero for a free one.
        tokens: Who may upload: name → token; nobody when it is left out.
        on_event: Told of every upload.

    Yields:
        The address, without a slash at its end.

    Raises:
        ConfigurationError: The folder is no registry, or the address cannot be had.
    """
    if not await anyio.to_thread.run_sync((root / "targets" / "catalog").is_file):
        raise ConfigurationError(f"{root} is no registry", hint=f"dragoman registry init {root}")
    server = _Server(root, tokens=tokens or {}, on_event=on_event)
    runner = web.AppRunner(server.application(), access_log=None, handle_signals=False, shutdown_timeout=GRACE)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, OverflowError) as error:
            reason = f"{host}:{port} cannot be listened on: {error.__cause__ or error}"
            raise ConfigurationError(reason, hint="--port 0 takes a free port") from error
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def root_digest(root: Path) -> str:
    """Give the digest by which others know a registry to be the one that was meant."""
    return Ledger(root, Keys(beside(root))).root_digest


class _Server:
    def __init__(self, root: Path, *, tokens: Mapping[str, str], on_event: Callable[[events.Event], None]) -> None:
        self.root, self.inbox = root.resolve(), Inbox(root)
        self._tokens = {name: _digest(token) for name, token in tokens.items()}
        self._on_event = on_event
        self._limiter = anyio.Semaphore(4)

    def application(self) -> web.Application:
        app = web.Application()
        app.on_response_prepare.append(_head)
        for path in ("/upload", "/upload/") if self._tokens else ():
            app.router.add_post(path, self.upload, expect_handler=self.expect)
        app.router.add_get("/{path:.*}", self.file)
        return app

    async def file(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        found = await anyio.to_thread.run_sync(self._find, path)
        if found is None:
            raise web.HTTPNotFound(text="there is no such file\n")
        if found.name == "index.html" and path and not path.endswith(("/", "index.html")):
            raise web.HTTPMovedPermanently(f"{request.path.rpartition('/')[2]}/")
        kind = _TYPES.get(found.suffix, "application/octet-stream")
        headers = {"Cache-Control": "max-age=31536000, immutable" if found.suffix == ".whl" else "no-cache"}
        if path.startswith("targets/simple/") and path.endswith("/"):
            chosen = _negotiated(request.headers.get("Accept", ""))
            if chosen is None:
                raise web.HTTPNotAcceptable(text=f"this page comes as {', '.join((*_JSON[:1], *_HTML[:2]))}\n")
            kind, headers["Vary"] = f"{chosen}; charset=utf-8", "Accept"
            if chosen in _JSON:
                kind, found = _JSON[0], found.with_name("index.v1+json")
        elif path.startswith("targets/docs/"):  # what an author wrote is shown, and runs nothing
            headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        return web.FileResponse(found, headers=headers | {"Content-Type": kind})

    def _find(self, path: str) -> Path | None:
        """Find a file to serve: one of a registry's own, none that a link leads out to, no list of a folder."""
        if "\0" in path or "\\" in path or any(part.startswith(".") for part in path.split("/")):
            return None
        try:
            found = (self.root / path.lstrip("/")).resolve()
            if found.is_dir():
                found = (found / "index.html").resolve()
            own = found.is_relative_to(self.root) and belongs(found.relative_to(self.root).as_posix())
            return found if own and found.is_file() else None
        except (OSError, RuntimeError):  # a name too long, a loop of links
            return None

    async def expect(self, request: web.Request) -> web.StreamResponse | None:
        """Refuse before the body is sent what its header alone gives away."""
        try:
            self._admit(request)
        except DragomanError as error:
            return self._refused(request, error)
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # type: ignore[union-attr]
        return None

    async def upload(self, request: web.Request) -> web.StreamResponse:
        try:
            publisher = self._admit(request)
            async with self._limiter:
                with anyio.fail_after(SECONDS):
                    upload, new = await self._receive(request, publisher)
        except DragomanError as error:
            return self._refused(request, error)
        except TimeoutError:
            return self._refused(request, RegistryError(f"the upload took more than {SECONDS:.0f} s"))
        except (aiohttp.ClientError, ConnectionError, ValueError, AssertionError, web.RequestPayloadError) as error:
            reason = f"the upload was cut or is no form: {str(error) or type(error).__name__}"
            return self._refused(request, RegistryError(reason, hint="upload it again"))
        except OSError as error:
            reason = f"the inbox cannot be written: {error.strerror}"
            return self._refused(request, RegistryError(reason, code="inbox-full"))
        told = events.RegistryUploadReceived(
            registry=str(self.root), file=upload.file, sha256=upload.sha256, publisher=publisher, new=new
        )
        self._on_event(told)
        said = "waits for its author's signature" if new else "is here already, with these bytes"
        return web.Response(text=f"{upload.file} {said}\n")

    def _admit(self, request: web.Request) -> str:
        """Tell whose token a request carries."""
        publisher, (kind, _, packed) = "", request.headers.get("Authorization", "").partition(" ")
        try:
            user, _, token = b64decode(packed, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user, token = "", ""
        for name, digest in self._tokens.items():  # all of them, so that the time tells nothing
            if hmac.compare_digest(digest, _digest(token)) and user in (name, "__token__"):
                publisher = name
        if kind.lower() != "basic" or not publisher:
            hint = "give the user name __token__ and the token as the password"
            raise RegistryError("the token is not known here", code="token-unknown", hint=hint)
        if (request.content_length or 0) > MAX_WHEEL + MAX_FORM:
            raise RegistryError(f"the file is larger than {MAX_WHEEL >> 20} MiB", code="upload-too-large")
        return publisher

    async def _receive(self, request: web.Request, publisher: str) -> tuple[Upload, bool]:
        """Stream an upload into a draft, check it, and let it wait."""
        if request.content_type != "multipart/form-data":
            raise RegistryError("it is no form; use twine or uv publish", code="upload-invalid")
        with anyio.CancelScope(shield=True):  # short, and it makes the draft that has to be removed
            making = self.inbox.draft()
            draft = await anyio.to_thread.run_sync(making.__enter__)
        try:
            file, claimed = await _read(request, draft)
            return await anyio.to_thread.run_sync(partial(self._keep, draft, file, claimed, publisher))
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(making.__exit__, None, None, None)

    def _keep(self, draft: Draft, file: str, claimed: dict[str, str], publisher: str) -> tuple[Upload, bool]:
        wheel = draft.finish(file, claimed)
        if (claimed.get(":action"), claimed.get("protocol_version")) != ("file_upload", "1"):
            raise RegistryError("only uploads of files are taken, protocol version 1", code="upload-invalid")
        if claimed.get("filetype", "bdist_wheel") != "bdist_wheel":
            raise RegistryError(f"{claimed['filetype']!r} is no wheel", code="upload-invalid")
        self.inbox.sweep()
        return self.inbox.keep(draft, wheel, publisher=publisher)

    def _refused(self, request: web.Request, error: DragomanError) -> web.Response:
        """Say why, twice: twine shows only the reason phrase, uv only the body."""
        faults = error.faults if isinstance(error, WheelRejectedError) else ()
        codes = {code for code, _ in faults} or {error.code}
        status = next((_STATUS[code] for code in sorted(codes) if code in _STATUS), 400)
        said = [f"{code}: {reason}" for code, reason in faults or ((error.code, error.message),)]
        more = [f"try: {error.hint}"] if error.hint else []
        self._on_event(events.RegistryUploadRefused(registry=str(self.root), codes=sorted(codes), reason=error.message))
        said = [one if one.isprintable() else ascii(one)[1:-1] for one in said]  # a terminal will show it
        response = web.Response(status=status, reason=_phrase(said), text="\n".join([*said, *more]) + "\n")
        if status == 401:
            response.headers["WWW-Authenticate"] = 'Basic realm="registry"'
        return response


def _phrase(said: list[str]) -> str:
    """Put reasons into one line of a header, as many as surely fit."""
    kept = [reason for index, reason in enumerate(said) if sum(map(len, said[: index + 1])) <= 900] or [said[0][:900]]
    kept += [f"and {len(said) - len(kept)} more"] if len(kept) < len(said) else []
    return "".join(character if " " <= character <= "~" else "?" for character in "; ".join(kept))


async def _read(request: web.Request, draft: Draft) -> tuple[str, dict[str, str]]:
    """Read the parts of the form: the file into the draft, and the fields that matter."""
    file, claimed, size = "", dict[str, str](), 0
    async for part in await request.multipart():
        if not isinstance(part, aiohttp.BodyPartReader):
            raise RegistryError("a part of the form is a form itself", code="upload-invalid")
        if part.name in claimed or (part.name == _CONTENT and file):
            raise RegistryError(f"{part.name!r} is there twice", code="upload-invalid")
        if part.name == _CONTENT:
            file = part.filename or "a file without a name"
            while data := await part.read_chunk(CHUNK):
                await anyio.to_thread.run_sync(draft.write, data)
            continue
        value = bytearray()
        while data := await part.read_chunk(CHUNK):
            size += len(data)
            if size > MAX_FORM:
                raise RegistryError(f"the form is larger than {MAX_FORM >> 20} MiB", code="upload-too-large")
            if part.name in _FIELDS:
                value += data
        if part.name in _FIELDS:
            claimed[part.name] = value.decode()
    if not file:
        raise RegistryError("there is no file in it", code="upload-invalid")
    return file, claimed


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _negotiated(accept: str) -> str | None:
    """Choose the form of a page as PEP 691 says; for whoever does not care, it is for people."""
    best, chosen = 0.0, None
    for entry in (accept or "*/*").split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        try:
            weight = next((float(each[2:]) for each in parameters if each.startswith("q=")), 1.0)
        except ValueError:
            weight = 0.0
        offered = _HTML[0] if kind in ("*/*", "text/*") else kind
        if weight > best and offered in (*_JSON, *_HTML):
            best, chosen = weight, offered
    return chosen


async def _head(_: web.Request, response: web.StreamResponse) -> None:
    """Keep a browser from guessing, whatever the answer is."""
    response.headers.update(
        {"Server": "dragoman", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    )
