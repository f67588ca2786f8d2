"""Refusals in the shapes in which the server writes them."""

from __future__ import annotations

from typing import Any


class ServerError(Exception):
    """A refusal: HTTP status, body (`None`: none at all), and the media type where it is not JSON."""

    def __init__(
        self, status: int, body: Any = None, *, fault: str = "", media: str = "application/json", text: str = ""
    ) -> None:
        super().__init__(f"{status}: {body or text}")
        self.status, self.body, self.fault, self.media, self.text = status, body, fault, media, text


class InvalidError(Exception):
    """A message on its way to the place that knows how to wrap it."""


class PanicError(InvalidError):
    """What the server says when it stumbles over itself; no place wraps it either."""


class MissingIndexError(InvalidError):
    """A message that no place wraps."""


def refused(status: int, *messages: str) -> ServerError:
    """Return an error response: a list of messages."""
    return ServerError(status, {"error": [{"message": message} for message in messages]})


def coded(status: int, message: str, code: int | None = None) -> ServerError:
    """Return the shape that routing, authentication and the checks of parameters use."""
    return ServerError(status, {"code": code or status, "message": message})


def not_reproduced(feature: str) -> ServerError:
    """Return the refusal of something that the real server can do, or ignores, and the fake cannot."""
    reason = f"the fake does not reproduce {feature}"
    return ServerError(501, {"error": [{"message": reason}]}, fault=reason)
