"""Exchanges: what an operation sends and makes of the answers, as generators, so that only the driver does I/O."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Raw

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


Exchange = Generator[HttpRequest, Reply, T]
"""An operation that yields requests, is sent their replies and returns a result."""

_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> str:
    """Write JSON text; Decimal keeps its digits, Raw its bytes."""
    return _encoder.encode(value).decode()


def raw(text: str) -> Raw:
    """Make JSON text part of a value that is encoded later."""
    return Raw(text.encode())


def get(path: str) -> HttpRequest:
    """Ask for something."""
    return HttpRequest("GET", path)


def post(path: str, body: object = None) -> HttpRequest:
    """Send a JSON body; POST is the safe default for searches, some proxies drop the body of a GET."""
    return HttpRequest("POST", path, None if body is None else encode(body))


def segment(text: str) -> str:
    """Percent-encode one path segment, `/` and `%` included: ids may hold anything."""
    return quote(text, safe="")


def target(name: str) -> str:
    """Percent-encode the name of one or several indices; `,` and `*` stay readable, encoding would not tame them."""
    return quote(name, safe=",*")
