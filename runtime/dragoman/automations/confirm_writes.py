"""Confirmation of writes: the question that shows a person the exact requests before they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from dragoman.questions import Question, ask_consent
from dragoman_api.errors import Refused

if TYPE_CHECKING:
    from dragoman.questions import Confirm
    from dragoman_api.calls import Call
    from dragoman_api.changes import HttpRequest

SHOWN = 5
"""Requests that a question shows; the rest are counted."""


class ConfirmWrites:
    """Asks a person before a call is sent, one question at a time."""

    def __init__(self, confirm: Confirm | None) -> None:
        self._confirm = confirm
        self._lock = anyio.Lock()  # one question at a time: calls that run side by side share one terminal

    async def ask(self, call: Call, name: str) -> None:
        """Ask whether the requests of a call may be sent.

        Args:
            call: The call.
            name: The name of its connection.

        Raises:
            Refused: The person did not agree, or no person can be asked.
        """
        statements = call.statements or [""] * len(call.requests)
        lines = [
            _line(request, statement) for request, statement in zip(call.requests[:SHOWN], statements, strict=False)
        ]
        if (surplus := len(call.requests) - SHOWN) > 0:
            lines.append(f"and {surplus:,} more")
        if self._confirm is None:
            raise Refused(f"cannot ask to confirm {lines[0]} on {name}: not a terminal", hint="add --yes")
        text = f"Send {'this' if len(call.requests) == 1 else 'these'} to {name}?"
        async with self._lock:
            answer = await ask_consent(self._confirm, Question(about="change", text=text, details=tuple(lines)))
        if not answer:
            raise Refused("not confirmed")


def _line(request: HttpRequest, statement: str) -> str:
    line = f"{request.method} {request.path}"
    return f"{line}   # {statement}" if statement else line
