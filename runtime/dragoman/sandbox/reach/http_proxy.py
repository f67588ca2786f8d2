"""The route through an HTTP proxy: one CONNECT request, and a bounded reading of its answer."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from typing import TYPE_CHECKING

import anyio

from .address_resolver import NearerError, connect
from .route import NAME, RouteError, authority, is_host

if TYPE_CHECKING:
    from .address_resolver import AddressResolver
    from .route import HttpProxy

SECONDS = 10.0
"""Time from the lookup of the proxy's name to the end of its answer."""
MAX_ANSWER = 16 << 10
"""Maximum size of an answer's status line and headers in bytes."""
MAX_SAID = 100
"""Maximum number of characters of the proxy's own words that an error repeats."""

_END = b"\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: ([^\r\n]*))?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*")
_CREDENTIALS = f"dragoman connections edit {NAME} --proxy-user NAME --proxy-password env:NAME"
_ADDRESS = f"check the proxy's address, and enter it: dragoman connections edit {NAME} --proxy http://HOST:PORT"
_REFUSALS = {
    400: "does not understand a request for {there}",
    403: "does not allow connections to {there}",
    404: "does not know CONNECT; it may be an ordinary web server",
    405: "does not allow CONNECT; it may be an ordinary web server",
    429: "takes no more requests at the moment",
    501: "does not know CONNECT; it may be an ordinary web server",
    502: "cannot reach {there}",
    503: "cannot reach {there} at the moment",
    504: "got no connection to {there} in time",
}
_ADVICE = {
    403: "ask the proxy's operator to allow it; many proxies allow port 443 alone",
    **dict.fromkeys((404, 405, 501), _ADDRESS),
    **dict.fromkeys(
        (502, 503, 504), "check Host and Port, as the proxy knows them: it looks the name up, not this machine"
    ),
}


class ProxyConnector:
    """Connects to servers through one proxy."""

    def __init__(self, proxy: HttpProxy, password: str, resolver: AddressResolver) -> None:
        """Prepare; nothing is looked up or connected to yet.

        Args:
            proxy: The proxy.
            password: Its user's password.
            resolver: Judges the proxy's addresses as those of a host that a person entered.
        """
        self._proxy, self._resolver = proxy, resolver
        self._credentials = base64.b64encode(f"{proxy.user}:{password}".encode()).decode() if proxy.user else ""

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a socket on which everything goes to, and comes from, a host and port.

        Raises:
            RouteError: The proxy cannot be reached, refuses, or sends something other than an answer.
        """
        if not is_host(host):
            raise self._failure("cannot be asked for such a host", hint="check Host")
        try:
            with anyio.fail_after(SECONDS):
                sock = await self._reached()
                try:
                    await self._ask(sock, authority(host, port))
                except BaseException:
                    sock.close()
                    raise
                return sock
        except TimeoutError:
            raise self._failure(f"gave no answer within {SECONDS:g} s", hint=_ADDRESS) from None

    async def close(self) -> None:
        """Do nothing: the connections belong to the driver's process."""

    async def _reached(self) -> socket.socket:
        try:
            return await connect(self._resolver, self._proxy.host, self._proxy.port)
        except NearerError as error:
            raise self._failure("leads to a nearer address than before", nearer=error) from error
        except socket.gaierror as error:
            raise self._failure("has a name that cannot be resolved", hint=_ADDRESS) from error
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            reason = "does not listen" if refused else f"cannot be reached ({type(error).__name__})"
            raise self._failure(reason, hint=_ADDRESS) from error

    async def _ask(self, sock: socket.socket, destination: str) -> None:
        lines = [f"CONNECT {destination} HTTP/1.1", f"Host: {destination}"]
        if self._credentials:
            lines.append(f"Proxy-Authorization: Basic {self._credentials}")
        try:
            await asyncio.get_running_loop().sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode())
            head = await _read_head(sock)
        except _AnswerError as error:
            raise self._failure(str(error), hint=_ADDRESS) from None
        except OSError as error:
            raise self._failure(f"ended the connection ({type(error).__name__})") from error
        self._judge(head, destination)

    def _judge(self, head: bytes, destination: str) -> None:
        first, *rest = head.removesuffix(_END).split(b"\r\n")
        status, headers = _STATUS.fullmatch(first), [_HEADER.fullmatch(line) for line in rest]
        if status is None or not all(headers):
            raise self._failure("does not speak HTTP/1.1", hint=_ADDRESS)
        values = [(header[1].lower(), header[2]) for header in headers if header]
        code, phrase = int(status[1]), _harmless(status[2] or b"")
        if not 200 <= code <= 299:
            raise self._refusal(code, phrase, values, destination)
        # Standards say that no body follows, and clients skip these. What a proxy sends nevertheless would look like
        # the beginning of the server's own answer.
        if any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in values):
            raise self._failure("announces a page where the connection should begin", hint=_ADDRESS)

    def _refusal(self, code: int, phrase: str, headers: list[tuple[bytes, bytes]], destination: str) -> RouteError:
        if code == 407:
            offers = [value.split(b" ", 1)[0].lower() for name, value in headers if name == b"proxy-authenticate"]
            if offers and b"basic" not in offers:
                schemes = ", ".join(_harmless(offer) for offer in offers[:5])
                return self._failure(
                    "wants another kind of credentials than Basic (HTTP 407)",
                    words=schemes,
                    hint="ask the proxy's operator for Basic credentials, or for a rule by your machine's address",
                )
            reason = "rejects the credentials" if self._credentials else "wants credentials"
            return self._failure(f"{reason} (HTTP 407)", words=phrase, hint=_CREDENTIALS)
        usual = "redirects to another address" if 300 <= code <= 399 else "refuses a connection to {there}"
        reason = _REFUSALS.get(code, usual).format(there=destination)
        return self._failure(f"{reason} (HTTP {code})", words=phrase, hint=_ADVICE.get(code, _ADDRESS))

    def _failure(
        self, reason: str, *, words: str = "", hint: str = "", nearer: NearerError | None = None
    ) -> RouteError:
        return RouteError(str(self._proxy), reason, words=words, hint=hint, nearer=nearer)


class _AnswerError(Exception):
    """What a proxy sent is no answer; the text is a clause about it."""


async def _read_head(sock: socket.socket) -> bytes:
    """Read an answer's status line and headers, and leave in the socket what follows them."""
    head = b""
    while True:
        await anyio.wait_readable(sock)
        try:
            piece = sock.recv(MAX_ANSWER - len(head), socket.MSG_PEEK)
        except BlockingIOError:
            continue
        if not piece:
            raise _AnswerError("ended the connection before its answer was complete" if head else "gave no answer")
        seen = len(head)
        end = (head + piece).find(_END, max(0, seen - len(_END) + 1))
        length = len(piece) if end < 0 else end + len(_END) - seen
        head += sock.recv(length)
        if end >= 0:
            return head
        if not head.startswith(b"HTTP/"[: len(head)]):
            raise _AnswerError("does not speak HTTP/1.1")
        if len(head) >= MAX_ANSWER:
            raise _AnswerError(f"sends more than {MAX_ANSWER:,} bytes of headers")


def _harmless(text: bytes) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text.decode("ascii", "replace"))
    return " ".join(printable.split())[:MAX_SAID]
