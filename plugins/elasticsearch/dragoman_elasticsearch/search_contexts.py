"""Search contexts, which the server keeps open between requests: points in time and scrolls."""

from __future__ import annotations

import msgspec

from dragoman_api import HttpRequest
from dragoman_api.json_text import encode

from . import error_answers
from .http_requests import Exchange, target


class _Opened(msgspec.Struct, frozen=True):
    id: str


def open_context(name: str, *, keep_alive: str, preference: str = "") -> Exchange[str]:
    """Open a point in time and return its id; ids grow with the shards, so they go into bodies only.

    Args:
        name: The object's name.
        keep_alive: How long the server keeps the unused context; each request renews it.
        preference: The name for the choice of shards.
    """
    parameter = f"&preference={preference}" if preference else ""
    reply = yield HttpRequest("POST", f"/{target(name)}/_pit?keep_alive={keep_alive}{parameter}")
    return error_answers.decode(reply, _Opened).id


def close_context(pit: str) -> HttpRequest:
    """Free a point in time."""
    return HttpRequest("DELETE", "/_pit", encode({"id": pit}))


def close_scroll(scroll: str) -> HttpRequest:
    """Free a scroll."""
    return HttpRequest("DELETE", "/_search/scroll", encode({"scroll_id": [scroll]}))
