"""One GET request with one deadline for all its parts, bounded headers, and a single origin."""

from __future__ import annotations

import io
import threading
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
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
)

from anyio import from_thread

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
_SHOWN = 200  # maximum characters to show of an address that a server sent


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
            _refuse(req, code, headers, fp, newurl)
        fp.close()  # otherwise urllib reads its whole body
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refuse(request: Request, code: int, headers: HTTPMessage, answer: IO[bytes], to: str) -> NoReturn:
    answer.close()
    reason = f"redirects to {to[:_SHOWN]}, which has another scheme, host or port"
    raise HTTPError(request.full_url, code, reason, headers, answer)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
