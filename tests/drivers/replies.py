"""Replies without a server, for exchanges that are pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from multidict import CIMultiDict

from dragoman_api import HttpRequest

if TYPE_CHECKING:
    from dragoman_api.kit.exchanges import Exchange

T = TypeVar("T")


@dataclass(frozen=True)
class Canned:
    status: int
    headers: Mapping[str, str]
    body: bytes


def reply(body: Any = "", status: int = 200, headers: Mapping[str, str] | None = None) -> Canned:
    """Make a reply; a text or bytes go as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Canned(status, CIMultiDict({"Content-Type": "application/json", **(headers or {})}), data)


@dataclass
class Answers:
    """Runs an exchange, hands it replies in order, and keeps what it asked for, and what of it together."""

    replies: list[Canned]
    asked: list[HttpRequest] = field(default_factory=list)
    together: list[Sequence[HttpRequest]] = field(default_factory=list)

    def __init__(self, *replies: Canned) -> None:
        self.replies, self.asked, self.together = list(replies), [], []

    def run(self, exchange: Exchange[T]) -> T:
        try:
            requests = next(exchange)
            while True:
                self.asked += requests
                self.together.append(requests)
                requests = exchange.send([self.replies.pop(0) for _ in requests])
        except StopIteration as end:
            assert self.replies == []
            return end.value
