"""Requests: how they are built, and whether one only reads or may write; if in doubt, it counts as a write."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import TypeVar
from urllib.parse import quote, unquote, urlencode

import msgspec

from dragoman_api import HttpRequest
from dragoman_api.json_text import decode, encode
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


_READING = re.compile(r"/v1/(graphql(/batch)?|objects/validate|search/[^/]+/[^/]+|aggregate/[^/]+)/?")


class _DryRun(msgspec.Struct, rename="camel"):
    dry_run: bool = False


def may_write(request: HttpRequest) -> bool:
    """Return whether a request may change something; True if in doubt.

    GraphQL has no mutations here. A deletion by filter counts as a read only with a literal `dryRun: true`.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return False
    path = unquote(request.path.partition("?")[0])
    if request.method == "POST":
        return _READING.fullmatch(path) is None
    return not (request.method == "DELETE" and path == "/v1/batch/objects" and _dry(request.body))


def _dry(body: str | None) -> bool:
    keys = re.findall(r'"dryRun"', body or "", re.IGNORECASE)
    try:
        return len(keys) == 1 and decode(body or "", _DryRun).dry_run
    except ValueError:
        return False
