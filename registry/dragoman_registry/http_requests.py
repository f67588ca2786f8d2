"""One GET request with one deadline, bounded headers and a single origin; its answer is judged before it is parsed."""

from __future__ import annotations

import io
import os
import threading
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    AbstractHTTPHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
    getproxies,
    proxy_bypass,
)

from anyio import from_thread

from dragoman_api.errors import IndexInvalidError, RegistryError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from http.client import HTTPMessage
    from typing import IO

T = TypeVar("T")

CONNECT = 30.0
"""Maximum seconds for name lookup, connection, proxy tunnel and TLS handshake together."""
HEAD = 64 * 1024
"""Maximum bytes before the body: status line, headers, and any interim answers before them."""
_SLICE = 0.25  # seconds between two checks for cancellation
_SHOWN = 300  # maximum characters to show of a reason or an address, which a server may have written

_SIGN_IN = "open it in a browser: a network's sign-in page or a proxy may have answered in place of the registry"
_PAGES = (b"<!doctype html", b"<html", b"<?xml")
_INDEX = ("catalog", "types", "advisories")
_STATUSES = {
    401: ("wants a user and a password", "let your own proxy add them; a registry's address holds none"),
    403: ("is forbidden: the server answered 403", ""),
    407: ("cannot be read: a proxy wants a user and a password (HTTP 407)", ""),
    511: ("cannot be read: the network wants you to sign in (HTTP 511)", _SIGN_IN),
}


def get(url: str, *, silence: float, seconds: float) -> HTTPResponse:
    """Send a GET request and return the answer; the same deadline covers its body.

    It uses the proxies of the environment, and follows redirects only within scheme, host and port.

    Args:
        url: An ``http:`` or ``https:`` address.
        silence: Maximum seconds without a byte.
        seconds: Maximum seconds for the whole request, from the name lookup to the last byte of the body.

    Raises:
        OSError: It failed, or took too long (TimeoutError); HTTPError for an unsuccessful status.
        HTTPException: The answer is not HTTP, or its headers are too long.
        ValueError: The address cannot be used.
    """
    opener = OpenerDirector()  # a ready-made one would also open file: and ftp: addresses
    own = (_Handler(_Pace(silence=silence, seconds=seconds)), _SameOrigin(), ProxyHandler())
    for handler in (*own, HTTPDefaultErrorHandler(), HTTPErrorProcessor(), UnknownHandler()):
        opener.add_handler(handler)
    return opener.open(Request(url), timeout=silence)  # type: ignore[no-any-return]  # noqa: S310 - see above


class _Pace:
    """The remaining time of a request."""

    def __init__(self, *, silence: float, seconds: float) -> None:
        self._silence, self._seconds = silence, seconds
        self._end = time.monotonic() + seconds

    def receive(self, sock: socket.socket, buffer: Any) -> int:
        """Wait for bytes; 0 at the end."""

        def step(wait: float) -> int:
            sock.settimeout(wait)
            return sock.recv_into(buffer)

        return self._wait(step, patience=self._silence, reason="no data")

    def aside(self, work: Callable[[], None], *, undo: Callable[[], None]) -> None:
        """Run uninterruptible work, such as a name lookup, in a thread; call `undo` if it fails or ends too late."""
        done, late = SimpleQueue[BaseException | None](), threading.Event()

        def run() -> None:
            try:
                work()
                done.put(None)
            except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
                done.put(error)
            if late.is_set():
                undo()

        def step(wait: float) -> BaseException | None:
            try:
                return done.get(timeout=wait)
            except Empty:
                raise TimeoutError from None

        threading.Thread(target=run, daemon=True, name="connecting to a registry").start()
        try:
            failure = self._wait(step, patience=CONNECT, reason="no connection")
        except BaseException:
            late.set()
            if not done.empty():
                undo()
            raise
        if failure is not None:
            undo()
            raise failure

    def _wait(self, step: Callable[[float], T], *, patience: float, reason: str) -> T:
        enough = time.monotonic() + patience
        while True:
            with suppress(RuntimeError):  # outside anyio's threads, interrupts arrive by themselves
                from_thread.check_cancelled()
            now = time.monotonic()
            if now >= self._end:
                raise TimeoutError(f"not complete after {self._seconds:g} s")
            if now >= enough:
                raise TimeoutError(f"{reason} for {patience:g} s")
            with suppress(TimeoutError):
                return step(min(_SLICE, self._end - now, enough - now))


class _Reader(io.RawIOBase):
    """Reads from a socket within time and size limits."""

    def __init__(self, sock: socket.socket, pace: _Pace) -> None:
        self.in_head, self._received = True, 0
        self._sock, self._pace = sock, pace
        self._socket_file = sock.makefile("rb", buffering=0)  # keeps the socket open after its connection closes it

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._pace.receive(self._sock, buffer)
        self._received += count
        if self.in_head and self._received > HEAD:
            raise HTTPException(f"its headers are longer than {HEAD:,} bytes")
        return count

    def close(self) -> None:
        if not self.closed:
            self._socket_file.close()
        super().close()


class _Response(HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, pace: _Pace, **options: Any) -> None:
        self._reader = _Reader(sock, pace)
        super().__init__(self._reader, *arguments, **options)  # type: ignore[arg-type]  # it calls makefile alone

    def begin(self) -> None:
        super().begin()
        self._reader.in_head = False


class _Connection(HTTPConnection):
    def __init__(self, *arguments: Any, pace: _Pace, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._pace, self._answers = pace, list[_Response]()
        self.response_class = self._answer  # type: ignore[assignment]

    def _answer(self, *arguments: Any, **options: Any) -> _Response:
        self._answers.append(response := _Response(*arguments, pace=self._pace, **options))
        return response

    def connect(self) -> None:
        self._pace.aside(super().connect, undo=self._give_up)

    def _give_up(self) -> None:
        self.close()
        for answer in self._answers:  # a proxy's, which older Pythons leave open
            answer.close()


class _SecureConnection(_Connection, HTTPSConnection): ...


class _Handler(AbstractHTTPHandler):
    def __init__(self, pace: _Pace) -> None:
        super().__init__()
        self._pace = pace

    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(partial(_Connection, pace=self._pace), request)

    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(partial(_SecureConnection, pace=self._pace), request)

    http_request = https_request = AbstractHTTPHandler.do_request_


class _SameOrigin(HTTPRedirectHandler):
    def redirect_request(  # the standard library's signature
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        # We only contact configured registries, so a redirect to another origin is an error.
        if _origin(req.full_url) != _origin(newurl) or "@" in urlsplit(newurl).netloc:  # urllib looks up `user@host`
            fp.close()
            reason = f"redirects to {newurl[:_SHOWN]}, which has another scheme, host or port"
            raise HTTPError(req.full_url, code, reason, headers, fp)
        fp.close()  # otherwise urllib reads its whole body
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def unreachable(url: str, reason: object, *, hint: str = "", status: int | None = None) -> RegistryError:
    """Build the error of a file that could not be read, with the proxy if one is used."""
    return _failure(url, f"cannot be read: {str(reason)[:_SHOWN]}", hint=hint, status=status)


def of_status(url: str, path: str, error: HTTPError) -> RegistryError:
    """Build the error that the status of an unsuccessful answer stands for."""
    code, reason = error.code, str(error.reason)
    if code in (404, 410):
        return IndexInvalidError(f"{url} is missing from the registry (HTTP {code})", details={"path": path})
    if code in _STATUSES:
        clause, hint = _STATUSES[code]
        if code == 403:
            hint = f"ask the registry's operator for read access; on S3, to list it, too: curl -I {url}"
        return _failure(url, clause, hint=hint, status=code)
    hint = _SIGN_IN if 300 <= code <= 399 else ""
    return unreachable(url, f"HTTP {code} {reason}", hint=hint, status=code)


def judge(url: str, status: int, headers: HTTPMessage) -> None:
    """Refuse an answer that cannot be a whole file as it is stored. Raises RegistryError."""
    if status != 200:
        raise unreachable(url, f"the server answered HTTP {status} instead of the file", status=status)
    encoding = str(headers.get("Content-Encoding", "identity")).strip().lower()
    if encoding not in ("", "identity"):
        reason = f"the answer is compressed (Content-Encoding: {encoding[:40]}), which was not asked for"
        raise unreachable(url, reason, hint="let the server, or the proxy before it, send files as they are stored")


def judge_beginning(url: str, path: str, head: bytes, headers: HTTPMessage) -> None:
    """Refuse an answer whose first bytes are those of a web page, or of no file of that name. Raises RegistryError."""
    beginning = head[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    kind = str(headers.get("Content-Type", ""))[:60]
    is_json = path.endswith(".json") or path.rpartition("/")[2].rpartition(".")[2] in _INDEX
    if beginning.startswith(_PAGES) or ((is_json or path.endswith(".whl")) and beginning.startswith(b"<")):
        remark = f" ({kind})" if kind else ""
        raise unreachable(url, f"the answer is a web page{remark}, not the file", hint=_SIGN_IN)
    if is_json and beginning and not beginning.startswith((b"{", b"[")):
        raise unreachable(url, f"the answer is not JSON{f' but {kind}' if kind else ''}", hint=_SIGN_IN)


def _failure(url: str, clause: str, *, hint: str, status: int | None) -> RegistryError:
    details: dict[str, str | int] = {"url": url}
    route = url
    if status is not None:
        details["status"] = status
    if proxy := _proxy_of(url):
        address, variable = proxy
        route += f", through the proxy {address} of {variable},"
        details["proxy"] = address
        hint = hint or f"check {variable}, or except the host: NO_PROXY={urlsplit(url).hostname}"
    text = f"{route} {clause}"
    return RegistryError(text, code="registry-unreachable", hint=hint or "dragoman registry list", details=details)


def _proxy_of(url: str) -> tuple[str, str] | None:
    """Return the proxy of the environment for an address, without its password, and the variable that names it."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or not parts.hostname or proxy_bypass(parts.netloc):
        return None
    name = f"{parts.scheme}_proxy"
    variable = next(
        (spelling for spelling in (name, name.upper()) if os.environ.get(spelling)), "the system's settings"
    )
    place = urlsplit(proxy if "://" in proxy else f"http://{proxy}").netloc.rpartition("@")[2]
    return f"http://{place}"[:_SHOWN], variable
