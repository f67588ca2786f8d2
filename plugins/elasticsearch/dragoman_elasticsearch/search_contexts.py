"""Search contexts, which the server keeps open between requests: points in time and scrolls."""

from __future__ import annotations

import msgspec

from dragoman_api import HttpRequest
from dragoman_api.exchanges import encode

from . import error_answers
from .http_requests import Exchange, target

KEEP_ALIVE = "2m"
"""How long the server keeps an unused context; each request renews it."""


class _Opened(msgspec.Struct, frozen=True):
    id: str


def open_context(name: str, preference: str = "", keep_alive: str = KEEP_ALIVE) -> Exchange[str]:
    """Open a point in time and return its id; ids grow with the shards, so they go into bodies only."""
    more = f"&preference={preference}" if preference else ""
    reply = yield HttpRequest("POST", f"/{target(name)}/_pit?keep_alive={keep_alive}{more}")
    return error_answers.decode(reply, _Opened).id


def close_context(pit: str) -> HttpRequest:
    """Free a point in time."""
    return HttpRequest("DELETE", "/_pit", encode({"id": pit}))


def close_scroll(scroll: str) -> HttpRequest:
    """Free a scroll."""
    return HttpRequest("DELETE", "/_search/scroll", encode({"scroll_id": [scroll]}))
