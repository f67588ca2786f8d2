"""Uploads from twine and uv: received at a minimum speed into a draft, and judged in a separate process."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import time
from base64 import b64decode
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import aiohttp
import anyio
import anyio.to_thread
from aiohttp import web

from dragoman_api import events
from dragoman_api.errors import DragomanError, RegistryError, WheelRejectedError
from dragoman_registry.isolation import Apart

from .inbox import MAX_UPLOAD, Inbox, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from .inbox import Draft, Upload

SECONDS = 600.0
"""Maximum seconds for one upload, including its wait for a turn and its check."""
STALL = 20.0
"""Maximum seconds without a byte."""
RATE = 32 << 10
"""Minimum bytes per second of an upload, after its first `STALL` seconds."""
TURNS = 2
"""Maximum concurrent uploads per publisher; further ones wait, without delaying other publishers."""
CHUNK = 256 * 1024
MAX_FORM = 4 << 20
"""Maximum bytes of an upload besides its file."""
MAX_PARTS = 1000
"""Maximum number of fields in a form."""
_CONTENT = "content"
_FIELDS = (":action", "protocol_version", "filetype", "sha256_digest", "blake2_256_digest")
_STATUS = {
    "immutable": 409, "inbox-full": 507, "token-unknown": 401, "upload-conflict": 409, "upload-too-large": 413,
    "upload-too-slow": 408, "length-required": 411, "server-ends": 503,
}  # fmt: skip


class Uploads:
    """Receives uploads into the inbox of a registry."""

    def __init__(self, root: Path, *, tokens: Mapping[str, str], on_event: Callable[[events.Event], None]) -> None:
        self.root, self.inbox = root.resolve(), Inbox(root)
        self._tokens = {name: _digest(token) for name, token in tokens.items()}
        self._turns = {name: anyio.Semaphore(TURNS) for name in tokens}
        self._on_event = on_event
        self._under_way: dict[anyio.CancelScope, anyio.Event] = {}
        self._ends = False

    async def expect(self, request: web.Request) -> web.StreamResponse | None:
        """Refuse a request before its body is sent if its headers already show a fault."""
        try:
            self._admit(request)
        except DragomanError as error:
            return self._refused(request, error)
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # type: ignore[union-attr]
        return None

    async def upload(self, request: web.Request) -> web.StreamResponse:
        """Answer one upload."""
        try:
            publisher = self._admit(request)
            with self._ending():
                async with self._turns[publisher]:
                    upload, new = await self._receive(request, publisher)
        except DragomanError as error:
            return self._refused(request, error)
        except TimeoutError:
            reason = f"the upload was too slow, or took more than {SECONDS:.0f} s"
            return self._refused(request, RegistryError(reason, code="upload-too-slow"))
        except (aiohttp.ClientError, ConnectionError, ValueError, AssertionError, web.RequestPayloadError) as error:
            reason = f"the upload is incomplete or not a form: {str(error) or type(error).__name__}"
            return self._refused(request, RegistryError(reason, hint="upload it again"))
        except OSError as error:
            reason = f"the inbox cannot be written: {error.strerror}"
            return self._refused(request, RegistryError(reason, code="inbox-full"))
        event = events.RegistryUploadReceived(
            registry=str(self.root), file=upload.file, sha256=upload.sha256, publisher=publisher, new=new
        )
        self._on_event(event)
        outcome = "waits for its author's signature" if new else "is already here with the same bytes"
        return web.Response(text=f"{upload.file} {outcome}\n")

    async def end(self) -> None:
        """End every running upload; its draft is removed when this returns."""
        self._ends = True
        for scope in self._under_way:
            scope.cancel()
        for done in list(self._under_way.values()):
            await done.wait()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Refuse the upload if its time runs out or the server stops."""
        if not self._ends:
            with anyio.fail_after(SECONDS), anyio.CancelScope() as scope:
                done = self._under_way[scope] = anyio.Event()
                try:
                    yield
                    return
                finally:
                    del self._under_way[scope]
                    done.set()
        raise RegistryError("the server is stopping", code="server-ends", hint="upload it again")

    def _admit(self, request: web.Request) -> str:
        """Return the publisher whose token a request carries."""
        publisher, (kind, _, packed) = "", request.headers.get("Authorization", "").partition(" ")
        try:
            user, _, token = b64decode(packed, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user, token = "", ""
        for name, digest in self._tokens.items():  # compare with every token, so that timing reveals no match
            if hmac.compare_digest(digest, _digest(token)) and user in (name, "__token__"):
                publisher = name
        if kind.lower() != "basic" or not publisher:
            hint = "use the user name __token__ and the token as the password"
            raise RegistryError("the token is unknown", code="token-unknown", hint=hint)
        if request.content_length is None:
            raise RegistryError("the upload has no Content-Length", code="length-required")
        if request.content_length > MAX_UPLOAD + MAX_FORM:
            raise RegistryError(f"the file is larger than {MAX_UPLOAD >> 20} MiB", code="upload-too-large")
        return publisher

    async def _receive(self, request: web.Request, publisher: str) -> tuple[Upload, bool]:
        """Stream an upload into a draft, judge it, and keep it."""
        if request.content_type != "multipart/form-data":
            raise RegistryError("the upload is not a form; use twine or uv publish", code="upload-invalid")
        with anyio.CancelScope(shield=True):  # short; it makes the draft, which must be removed later
            making = self.inbox.draft()
            draft = await anyio.to_thread.run_sync(making.__enter__)
        work = Apart()
        try:
            file, claimed = await _read(request, draft)
            upload = await anyio.to_thread.run_sync(partial(draft.finish, file, claimed, publisher=publisher))
            _check(claimed)
            judging = partial(work.call, judge, self.inbox.registry, draft.folder, upload)
            return await anyio.to_thread.run_sync(judging, abandon_on_cancel=True)
        finally:
            work.end()  # end it first, so that a thread waiting for it returns
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(making.__exit__, None, None, None)

    def _refused(self, request: web.Request, error: DragomanError) -> web.Response:
        """Build a refusal with the reasons in two places: twine shows only the reason phrase, uv only the body."""
        faults = error.faults if isinstance(error, WheelRejectedError) else ()
        codes = {code for code, _ in faults} or {error.code}
        status = next((_STATUS[code] for code in sorted(codes) if code in _STATUS), 400)
        reasons = [f"{code}: {reason}" for code, reason in faults or ((error.code, error.message),)]
        hints = [f"try: {error.hint}"] if error.hint else []
        self._on_event(events.RegistryUploadRefused(registry=str(self.root), codes=sorted(codes), reason=error.message))
        reasons = [
            reason if reason.isprintable() else ascii(reason)[1:-1] for reason in reasons
        ]  # terminals show this text
        response = web.Response(status=status, reason=phrase(reasons), text="\n".join([*reasons, *hints]) + "\n")
        if status == 401:
            response.headers["WWW-Authenticate"] = 'Basic realm="registry"'
        return response


class _Pace:
    """Enforces a minimum speed on a sender."""

    def __init__(self) -> None:
        self._began, self._size = time.monotonic(), 0

    async def chunk(self, part: aiohttp.BodyPartReader) -> bytes:
        with anyio.fail_after(STALL):
            data = await part.read_chunk(CHUNK)
        self._size += len(data)
        if time.monotonic() > self._began + STALL + self._size / RATE:
            raise TimeoutError
        return data


async def _read(request: web.Request, draft: Draft) -> tuple[str, dict[str, str]]:
    """Read the parts of the form: the file into the draft, and the relevant fields."""
    file, claimed, size, pace = "", dict[str, str](), 0, _Pace()
    form = await request.multipart()
    for _ in range(MAX_PARTS):
        with anyio.fail_after(STALL):
            part = await form.next()
        if part is None:
            break
        if not isinstance(part, aiohttp.BodyPartReader):
            raise RegistryError("a part of the form is itself a form", code="upload-invalid")
        if part.name in claimed or (part.name == _CONTENT and file):
            raise RegistryError(f"the form has {part.name!r} twice", code="upload-invalid")
        if part.name == _CONTENT:
            file = part.filename or "a file without a name"
            while data := await pace.chunk(part):
                await anyio.to_thread.run_sync(draft.write, data)
            continue
        value = bytearray()
        while data := await pace.chunk(part):
            size += len(data)
            if size > MAX_FORM:
                raise RegistryError(f"the form is larger than {MAX_FORM >> 20} MiB", code="upload-too-large")
            if part.name in _FIELDS:
                value += data
        if part.name in _FIELDS:
            claimed[part.name] = value.decode()
    else:
        raise RegistryError(f"the form has more than {MAX_PARTS} fields", code="upload-too-large")
    if not file:
        raise RegistryError("the form has no file", code="upload-invalid")
    return file, claimed


def _check(claimed: Mapping[str, str]) -> None:
    if (claimed.get(":action"), claimed.get("protocol_version")) != ("file_upload", "1"):
        raise RegistryError("only file uploads with protocol version 1 are accepted", code="upload-invalid")
    if (kind := claimed.get("filetype", "bdist_wheel")) != "bdist_wheel":
        raise RegistryError(f"{kind[:100]!r} is not a wheel", code="upload-invalid")


def phrase(reasons: list[str]) -> str:
    """Join as many reasons as safely fit into one header line."""
    room = sum(1 for length in accumulate(map(len, reasons)) if length <= 900)
    parts = reasons[:room] or [reasons[0][:900]]
    parts += [f"and {len(reasons) - len(parts)} more"] if len(parts) < len(reasons) else []
    return "".join(character if " " <= character <= "~" else "?" for character in "; ".join(parts))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
