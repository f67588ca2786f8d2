"""The lock of connections that are marked as production: read-only until a person unlocks one for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from dragoman_api.errors import Refused
from dragoman_api.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.calls import Call

LOCKED = "production-locked"
"""Code of the error."""


class ProductionLock:
    """An automation that refuses writes to a locked production connection."""

    name: ClassVar = "production_lock"

    def __init__(self, marked: Callable[[str], bool], *, clock: Callable[[], float] = time.time) -> None:
        """Lock every connection that `marked` returns true for."""
        self._marked, self._clock = marked, clock
        self._until: dict[str, float] = {}

    def until(self, connection: str) -> float | None:
        """Return the time until which writes are allowed (seconds since the epoch); None while it is locked."""
        until = self._until.get(connection, 0.0)
        return until if until > self._clock() else None

    def unlock(self, connection: str, *, minutes: int) -> None:
        """Allow writes for a few minutes; 0 locks it again."""
        self._until[connection] = self._clock() + 60 * minutes

    @hookimpl
    async def before_call(self, call: Call) -> None:
        name = call.connection.name if call.connection else ""
        if call.writes and name and self._marked(name) and self.until(name) is None:
            reason = f"{name} is marked as production, and locked"
            hint = f"unlock {name} for some minutes in the header of the page"
            raise Refused(reason, hint=hint, code=LOCKED, details={"connection": name})
