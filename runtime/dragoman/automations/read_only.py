"""Read-only connections: the automation that refuses writes, or has a person confirm them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dragoman_api.changes import Drop
from dragoman_api.errors import Refused
from dragoman_api.hookspecs import hookimpl

from .confirm_writes import ConfirmWrites

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.questions import Confirm
    from dragoman.settings import Level
    from dragoman_api.calls import Call


class ReadOnly:
    """Refuses writes or asks before them; console requests are writes if `parse_console` marks them."""

    name: ClassVar = "read_only"
    seconds: ClassVar = 600.0  # a person answers, and may read first

    def __init__(self, level: Callable[[str], Level], *, confirm: Confirm | None) -> None:
        self._level, self._confirmation = level, ConfirmWrites(confirm)

    @hookimpl
    async def before_call(self, call: Call) -> None:
        if not call.writes or call.connection is None:
            return
        name = call.connection.name
        level = self._level(name)
        if level == "read-only":
            hint = f'set read_only = "confirm-writes" below [guards.connections.{name}] in config.toml'
            raise Refused(f"{name} is read-only", hint=hint)
        drops = any(isinstance(change, Drop) for change in call.changes)
        if level == "confirm-writes" or (level == "confirm-drops" and drops):
            await self._confirmation.ask(call, name)
