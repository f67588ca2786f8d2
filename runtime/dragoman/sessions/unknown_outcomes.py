"""Writes whose outcome is unknown: they were sent, and no answer came back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.changes import OutcomeStatus
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

HINT = "check the result before sending it again"
_DETAIL = "outcome"
_SAID = "the write was handed over, and it is unknown whether it was applied: "
_UNSENT = (Refused, UnsupportedOperationError, ConfigurationError, ConsoleSyntaxError)
_ANSWERS = (AuthenticationError, AccessDeniedError)


def tell_unknown(error: DragomanError, call: Call) -> None:
    """Mark an error of a driver call if it leaves the outcome of a write unknown.

    The outcome is known if nothing was sent (the detail ``sent`` is False) or the server refused the only request.
    """
    error.details.pop(_DETAIL, None)  # a driver must not set this
    answered = len(call.requests) == 1 and isinstance(error, _ANSWERS)
    if not call.writes or answered or isinstance(error, _UNSENT) or error.details.get("sent") is False:
        return
    error.details[_DETAIL] = str(OutcomeStatus.UNKNOWN)
    error.message = f"{error.prefix}{_SAID}{error.message.removeprefix(error.prefix)}"
    error.args = (error.message,)
    error.advise(HINT)


def unknown(error: DragomanError) -> bool:
    """Return whether an error leaves the outcome of a write unknown."""
    return error.details.get(_DETAIL) == OutcomeStatus.UNKNOWN


def reason_of(error: DragomanError) -> str:
    """Return why an error leaves the outcome unknown, as the reason of an outcome."""
    return error.message.partition(_SAID)[2]
