"""Writes in doubt: they were sent, and no outcome was received."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ConsoleSyntaxError,
    Refused,
    UnsupportedOperationError,
)

if TYPE_CHECKING:
    from dragoman_api.calls import Call
    from dragoman_api.errors import DragomanError

DOUBT = "it is not known whether it was applied: "
HINT = "check the result before sending it again"
_UNSENT = (Refused, UnsupportedOperationError, ConfigurationError, ConsoleSyntaxError)
_ANSWERS = (AuthenticationError, AccessDeniedError)


def tell_doubt(error: DragomanError, call: Call) -> None:
    """Mark an error of a driver call if it leaves a write in doubt.

    It does unless nothing was sent (the detail ``sent`` is False) or the server refused the only request.
    """
    error.details.pop("doubt", None)  # a driver must not set this
    answered = len(call.requests) == 1 and isinstance(error, _ANSWERS)
    if not call.writes or answered or isinstance(error, _UNSENT) or error.details.get("sent") is False:
        return
    error.details["doubt"] = True
    error.message = f"{error.prefix}the write was handed over, and {DOUBT}{error.message.removeprefix(error.prefix)}"
    error.args = (error.message,)
    error.advise(HINT)


def in_doubt(error: DragomanError) -> bool:
    """Return whether an error leaves a write in doubt."""
    return error.details.get("doubt") is True
