"""Requests: how they are built, and whether one only reads or may write; if in doubt, it counts as a write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import msgspec

from dragoman_api.json_text import decode

if TYPE_CHECKING:
    from dragoman_api import HttpRequest


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
