"""Exchanges: generators that yield requests and receive replies, so that only the driver does I/O."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Raw

from dragoman_api import HttpRequest
from dragoman_api.json_text import encode
from dragoman_api.replies import Reply

T = TypeVar("T")

Exchange = Generator[HttpRequest, Reply, T]
"""An operation that yields requests, is sent their replies and returns a result."""

NDJSON = "application/x-ndjson"
"""The content type of several JSON values, one per line."""


class DocumentsRequest(HttpRequest, frozen=True):
    """A request whose answer has to hold whole documents; some servers leave vectors out unless asked for them."""


def raw(text: str) -> Raw:
    """Embed JSON text in a value that is encoded later."""
    return Raw(text.encode())


def get(path: str) -> HttpRequest:
    """Build a GET request."""
    return HttpRequest("GET", path)


def post(path: str, body: object = None) -> HttpRequest:
    """Build a POST request with a JSON body; searches use it too, since some proxies drop the body of a GET."""
    return HttpRequest("POST", path, None if body is None else encode(body))


def whole_documents(request: HttpRequest) -> DocumentsRequest:
    """Say of a request that its answer holds whole documents."""
    return DocumentsRequest(**msgspec.structs.asdict(request))


def segment(text: str) -> str:
    """Percent-encode one path segment, `/` and `%` included: ids may hold anything."""
    return quote(text, safe="")


def target(name: str) -> str:
    """Percent-encode the name of one or several indices; `,` and `*` stay: encoding would not change their meaning."""
    return quote(name, safe=",*")
