"""Exchanges: generators that yield requests and receive replies, so that only the driver does I/O."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar
from urllib.parse import quote, urlencode

from dragoman_api import HttpRequest
from dragoman_api.json_text import encode
from dragoman_api.replies import Reply

T = TypeVar("T")

Exchange = Generator[Sequence[HttpRequest], list[Reply], T]
"""An operation that yields requests which may be under way together, is sent their replies, and returns a result."""


def ask(request: HttpRequest) -> Exchange[Reply]:
    """Send one request and wait for its reply."""
    [reply] = yield [request]
    return reply


def get(path: str, /, **query: object) -> HttpRequest:
    """Build a GET request; parameters that are None are left out."""
    return HttpRequest("GET", with_query(path, **query))


def post(path: str, body: object) -> HttpRequest:
    """Build a POST request with a JSON body."""
    return HttpRequest("POST", path, encode(body))


def with_query(path: str, /, **query: object) -> str:
    """Add parameters to a path; those that are None are left out."""
    parameters = urlencode({name: value for name, value in query.items() if value is not None}, quote_via=quote)
    return f"{path}?{parameters}" if parameters else path


def object_path(collection: str, key: str) -> str:
    """Return the path of one object in its collection."""
    return f"/v1/objects/{quote(collection, safe='')}/{quote(key, safe='')}"
