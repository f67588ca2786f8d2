"""Read-only connections, and confirmation of writes or drops by a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import anyio

from dragoman.questions import Question
from dragoman_api.changes import Drop
from dragoman_api.errors import Refused
from dragoman_api.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.questions import Confirm
    from dragoman.settings import Level
    from dragoman_api.calls import Call
    from dragoman_api.changes import HttpRequest

SHOWN = 5
"""Requests that a question shows; the rest are counted."""


class ReadOnly:
    """Refuses writes or asks before them; console requests are writes if `parse_console` marks them."""

    name: ClassVar = "read_only"
    seconds: ClassVar = 600.0  # a person answers, and may read first

    def __init__(self, level: Callable[[str], Level], *, confirm: Confirm | None) -> None:
        self._level, self._confirm = level, confirm
        self._one = anyio.Lock()  # question at a time: calls that run side by side share one terminal

    @hookimpl
    async def before_call(self, call: Call) -> None:
        """See `dragoman_api.hookspecs.AutomationSpec.before_call`."""
        if not call.writes or call.connection is None:
            return
        name = call.connection.name
        level = self._level(name)
        if level == "read-only":
            hint = f'set read_only = "confirm-writes" below [guards.connections.{name}] in config.toml'
            raise Refused(f"{name} is read-only", hint=hint)
        drops = any(isinstance(change, Drop) for change in call.changes)
        if level == "confirm-writes" or (level == "confirm-drops" and drops):
            await self._ask(call, name)

    async def _ask(self, call: Call, name: str) -> None:
        statements = call.statements or [""] * len(call.requests)
        shown = [_line(*told) for told in zip(call.requests[:SHOWN], statements, strict=False)]
        if (more := len(call.requests) - SHOWN) > 0:
            shown.append(f"and {more:,} more")
        if self._confirm is None:
            raise Refused(f"cannot ask to confirm {shown[0]} on {name}: not a terminal", hint="add --yes")
        text = f"Send {'this' if len(call.requests) == 1 else 'these'} to {name}?"
        async with self._one:
            agreed = await self._confirm(Question(about="change", text=text, details=tuple(shown)))
        if not agreed:
            raise Refused("not confirmed")


def _line(request: HttpRequest, statement: str) -> str:
    line = f"{request.method} {request.path}"
    return f"{line}   # {statement}" if statement else line
