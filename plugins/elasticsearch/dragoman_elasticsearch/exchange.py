"""Exchanges: what an operation sends and makes of the answers, as generators, so that only the driver does I/O."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar
from urllib.parse import quote

from msgspec import Raw

from dragoman_api import HttpRequest
from dragoman_api.exchanges import Reply, encode

T = TypeVar("T")

Exchange = Generator[HttpRequest, Reply, T]
"""An operation that yields requests, is sent their replies and returns a result."""


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
