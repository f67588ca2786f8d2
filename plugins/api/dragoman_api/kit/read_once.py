"""What a driver reads once and keeps, so that completion sends nothing for each key that a person types."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from dragoman_api.errors import DragomanError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_PAUSE = 60.0  # seconds until a read that failed is tried again
_SECONDS = 5.0
_MOST = 64  # values that are kept


class ReadOnce(Generic[T]):
    """Values by name, each read when it is first asked for."""

    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        """Begin with none.

        Args:
            read: Reads a value from the server.
        """
        self._read = read
        self._values: OrderedDict[str, tuple[T | None, float]] = OrderedDict()
        self._reading = anyio.Lock()

    async def get(self, name: str) -> T | None:
        """Return a value; None if it could not be read within five seconds, which is tried again after a minute."""
        async with self._reading:
            value, again = self._values.get(name, (None, 0.0))
            if anyio.current_time() < again:
                return value
            fresh_value = None
            try:
                with anyio.move_on_after(_SECONDS):
                    fresh_value = await self._read(name)
            except DragomanError:
                fresh_value = None
            self.keep(name, fresh_value)
            return fresh_value

    def keep(self, name: str, value: T | None) -> None:
        """Keep a value that was read elsewhere; the least recently read ones make room."""
        self._values[name] = value, anyio.current_time() + _PAUSE if value is None else float("inf")
        self._values.move_to_end(name)
        while len(self._values) > _MOST:
            self._values.popitem(last=False)
