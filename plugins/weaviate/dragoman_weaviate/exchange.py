"""Exchanges: what an operation sends and makes of the answers, as generators, so that only the driver does I/O."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from dragoman_api import HttpRequest

T = TypeVar("T")


class Reply(Protocol):
    """What a server answered to one request."""

    @property
    def status(self) -> int:
        """Give the HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Give the headers, case-insensitive."""

    @property
    def body(self) -> bytes:
        """Give the whole body."""


Exchange = Generator[Sequence[HttpRequest], list[Reply], T]
"""An operation that yields requests which may be under way together, is sent their replies, and returns a result."""

_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> str:
    """Write JSON text; Decimal keeps its digits, Raw its bytes."""
    return _encoder.encode(value).decode()


def ask(request: HttpRequest) -> Exchange[Reply]:
    """Send one request and wait for its reply."""
    [reply] = yield [request]
    return reply


def get(path: str, /, **query: object) -> HttpRequest:
    """Ask for something; parameters that are None stay away."""
    return HttpRequest("GET", with_query(path, **query))


def post(path: str, body: object) -> HttpRequest:
    """Send a JSON body."""
    return HttpRequest("POST", path, encode(body))


def with_query(path: str, /, **query: object) -> str:
    """Add parameters to a path; those that are None stay away."""
    given = urlencode({name: value for name, value in query.items() if value is not None}, quote_via=quote)
    return f"{path}?{given}" if given else path


def object_path(collection: str, key: str) -> str:
    """Give the path of one object in its collection."""
    return f"/v1/objects/{collection}/{quote(key, safe='')}"
