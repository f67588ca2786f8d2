"""Replies: a server's answer to one request, whole or while it arrives, and what its status and headers ask for."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from multidict import CIMultiDictProxy

from . import _connection_errors, endpoints
from .errors import ConnectionFailedError, QueryError
from .json_text import decode
from .remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from .connections import Profile

PROXY_HINT = "check Host and Port: a proxy may have answered instead of the database"
"""What helps if an answer is none of the database's."""

_MESSAGES = ("message", "reason", "detail", "title", "error", "errors", "error_description", "msg")
_ERROR_BODY, _DEPTH, _SEVERAL = 2**16, 5, 10  # bytes, levels and messages that are looked at
_DIGITS = 9  # of a number of seconds
_REDIRECTS = (301, 302, 303, 307, 308)

CHUNK = 2**20
"""Maximum size of one chunk of a streamed answer in bytes, decompressed."""


class Reply(Protocol):
    """A server's answer to one request, as `dragoman_api.http` returns it."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, case-insensitive."""

    @property
    def body(self) -> bytes:
        """The whole body."""


def redirection(reply: Reply) -> str:
    """Return a hint about an answer that redirects; empty for any other answer."""
    to = reply.headers.get("Location") if reply.status in _REDIRECTS else None
    return (
        f"it redirects to {to}, and redirects are not followed; if the database is there, enter that address"
        if to
        else ""
    )


def turned_away(reply: Reply, profile: Profile) -> ConnectionFailedError | None:
    """Return the error for a first request that something on the way answered: a redirect, or too many requests.

    Returns:
        The error; None for any other answer.
    """
    where = profile.where
    if hint := redirection(reply):
        hint, *remedies = _prefixed(reply, profile) or (hint,)
        return ConnectionFailedError(f"{where} redirects (HTTP {reply.status})", hint=hint, remedies=remedies)
    if reply.status != 429:
        return None
    seconds = seconds_asked(reply)
    wait = f"wait {seconds:,} s, then try again" if seconds else "wait a minute, then try again"
    reason = f"{where} takes no more requests at the moment (HTTP 429)"
    return ConnectionFailedError(reason, hint=wait, details={"status": 429, "retry_after": seconds})


def _prefixed(reply: Reply, profile: Profile) -> tuple[str, Remedy] | None:
    """Return what sets the path prefix, in words and as data, if an answer redirects into a path of the same server."""
    origin = profile.base_url.removesuffix(profile.path_prefix)
    to = reply.headers.get("Location", "").removeprefix(origin)
    try:
        prefix = endpoints.path_prefix(to)
    except ValueError:
        return None
    if not prefix or prefix == profile.path_prefix:
        return None
    remedy = Remedy(RemedyKind.EDIT_FIELD, {"field": "path_prefix", "value": prefix})
    return f"it redirects to {to}; if the database is there, set the path prefix", remedy


def error_text(body: bytes) -> str:
    """Return what the body of an error answer says to people: the messages of JSON, empty for none, or the text itself.

    >>> error_text(b'{"error": {"type": "x", "reason": "no such index"}, "status": 404}')
    'no such index'
    >>> error_text(b'{"error": {"metadata": ["root-error-class"], "msg": "undefined field", "code": 400}}')
    'undefined field'
    >>> error_text(b"Not Found")
    'Not Found'
    """
    if len(body) <= _ERROR_BODY:
        with suppress(ValueError):
            return _message(decode(body, object), _DEPTH)
    return body[:_ERROR_BODY].decode(errors="replace")


def _message(value: object, depth: int) -> str:
    if isinstance(value, dict):
        parts = [value.get(name) for name in _MESSAGES]
    else:
        parts = value[:_SEVERAL] if isinstance(value, list) else []
    if isinstance(value, str) or not (depth and parts):
        return value if isinstance(value, str) else ""
    texts = (text for part in parts if (text := _message(part, depth - 1)))
    return next(texts, "") if isinstance(value, dict) else "; ".join(dict.fromkeys(texts))


def seconds_asked(reply: Reply) -> int:
    """Return the seconds that an answer asks to wait; 0 if its Retry-After holds none, or a date (RFC 9110 10.2.3)."""
    after = str(reply.headers.get("Retry-After", ""))
    return int(after) if after.isdecimal() and len(after) <= _DIGITS else 0


class Response(msgspec.Struct, frozen=True):
    """A server's answer.

    Attributes:
        status: HTTP status.
        headers: Case-insensitive; `headers.getall` returns all values of one name.
        body: The whole body, decompressed.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Decode the body; integers keep every digit.

        Raises:
            QueryError: The body is not JSON, for example a proxy's HTML page.
        """
        try:
            return decode(self.body, object)
        except ValueError as error:
            raise QueryError(
                f"HTTP {self.status}, and the answer is not JSON ({error}): {_connection_errors.shorten(self.text)}",
                hint="check Host and Port: a proxy may have answered instead of the database",
            ) from error


class Stream:
    """A server's answer while it arrives: iterate over it to read its chunks.

    Attributes:
        status: HTTP status.
        headers: Case-insensitive.
    """

    def __init__(self, status: int, headers: CIMultiDictProxy[str], chunks: AsyncIterator[bytes]) -> None:
        self.status, self.headers, self._chunks = status, headers, chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the chunks, decompressed, at most `CHUNK` bytes each; the errors are those of `Http.stream`."""
        return self._chunks

    async def response(self) -> Response:
        """Read the rest of the body, from which `Http.check` can build an error; read a long one only in part."""
        body = b""
        async for chunk in self._chunks:
            body += chunk
            if len(body) >= CHUNK:
                break
        return Response(self.status, self.headers, body)
