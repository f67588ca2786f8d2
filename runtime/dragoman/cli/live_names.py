"""Names for completion in `dragoman open`, read from its connection and kept for a while."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from anyio.to_thread import run_sync

from dragoman_api.errors import DragomanError

from .known_names import Known, KnownColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Sequence

    from anyio.from_thread import BlockingPortal

    from dragoman.sessions.session import Session
    from dragoman_api.console import Suggestion

    from .known_names import KnownNames

PATIENCE = 3.0
"""Seconds after which a completion gives up; the answer serves the next one."""

KEPT_SECONDS = 60.0
"""Seconds for which names are not read again."""

MOST_VALUES = 50
"""A column with more different values is not an enumeration."""

LONGEST_VALUE = 100
"""Maximum length of a value that is suggested, in characters."""

T = TypeVar("T")


class LiveNames:
    """The names of one open connection; other connections have those that were kept."""

    def __init__(self, session: Session, portal: BlockingPortal, *, kept: KnownNames) -> None:
        self._session, self._portal, self._others = session, portal, kept
        self._read: dict[Hashable, tuple[float, Any]] = {}

    def objects(self, connection: str) -> Known:
        """Return the names of a connection's objects."""
        if connection != self._session.name:
            return self._others.objects(connection)
        return Known(self._ask("objects", self._objects) or ())

    def columns(self, connection: str, object: str) -> Known:
        """Return the columns of an object, as `KnownColumn`."""
        if connection != self._session.name:
            return self._others.columns(connection, object)
        return Known(self._ask(("columns", object), lambda: self._columns(object)) or ())

    def values(self, connection: str, object: str, column: str) -> Sequence[str]:
        """Return the values of a column that has few different ones, the most frequent first."""
        if connection != self._session.name or not self._session.can("summarize_column"):
            return ()
        return self._ask(("values", object, column), lambda: self._values(object, column)) or ()

    def console(self, text: str, position: int) -> Sequence[Suggestion]:
        """Return how a console text may continue at a place."""
        if not self._session.can("complete_console"):
            return ()

        async def complete() -> Sequence[Suggestion]:
            return (await self._session.complete(text, position)).suggestions

        return self._wait(complete) or ()

    async def _objects(self) -> list[str]:
        names = [node.name for node in await self._session.objects()]
        await run_sync(self._others.remember_objects, self._session.name, names)
        return names

    async def _columns(self, object: str) -> list[KnownColumn]:
        columns = (await self._session.describe(object)).columns
        await run_sync(self._others.remember_columns, self._session.name, object, columns)
        return [
            KnownColumn(column.name, column.type, column.kind, column.sortable, tuple(map(str, column.operators)))
            for column in columns
        ]

    async def _values(self, object: str, column: str) -> list[str]:
        summary = await self._session.rows(object).summarize(column, values=MOST_VALUES, buckets=0)
        if summary.distinct is not None and summary.distinct > MOST_VALUES:
            return []
        texts = [frequency.value for frequency in summary.values if isinstance(frequency.value, str)]
        return [text for text in texts if text.isprintable() and 0 < len(text) <= LONGEST_VALUE]

    def _ask(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return an answer that is not too old, or ask for it. None if there is none in time."""
        at, answer = self._read.get(key, (0.0, None))
        if answer is not None and time.monotonic() - at < KEPT_SECONDS:
            return answer  # type: ignore[no-any-return]

        async def keep() -> T:
            reply = await read()
            self._read[key] = time.monotonic(), reply
            return reply

        return self._wait(keep)

    def _wait(self, read: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        try:
            answer: T = self._portal.start_task_soon(read).result(PATIENCE)
        except (DragomanError, TimeoutError, CancelledError, RuntimeError):  # completion has nothing to say about it
            return None
        return answer
