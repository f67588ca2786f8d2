"""Limits of one call that reads: rows, bytes, seconds."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

import anyio

from dragoman_api.console import Answer
from dragoman_api.errors import DeadlineExceededError, Refused
from dragoman_api.events import CallRefused
from dragoman_api.grid import Page
from dragoman_api.hookspecs import hookimpl
from dragoman_api.summaries import ColumnSummary

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

    from dragoman.settings import Limit
    from dragoman_api.calls import Call
    from dragoman_api.events import Event
    from dragoman_api.exports import ExportPart

CODE = "limit-exceeded"


class Limits:
    """Refuses a page of more rows than a call may have, before it is requested; a `Meter` enforces the other limits."""

    name: ClassVar = "limits"

    def __init__(self, limit: Callable[[str], Limit]) -> None:
        self._limit = limit

    @hookimpl
    async def before_call(self, call: Call) -> None:
        if call.connection is not None and call.rows is not None:
            limit = self._limit(call.connection.name).rows
            if limit and call.rows > limit:
                reason = f"{call.rows:,} rows were asked for"
                raise _refusal(call, "rows", limit, reached=call.rows, reason=reason, less=f"--limit {limit}")


class Meter:
    """Measures what one call reads, and ends the call if it exceeds a limit.

    Writes are not ended, since their outcome would be unknown, nor are calls that maintain the connection.
    """

    def __init__(self, limit: Limit, call: Call, *, emit: Callable[[Event], None]) -> None:
        self._call, self._emit = call, emit
        measured = not call.writes and call.hook not in ("connect", "ping", "close")
        self._rows = limit.rows if measured else None
        self._bytes = limit.bytes if measured else None
        self._seconds = limit.seconds if measured else None
        self._began = time.monotonic()
        self._seen = [0, 0]

    def left(self, usual: float) -> float:
        """Return the seconds left for the call, at most the usual deadline."""
        return min(usual, max(0.0, self._seconds - self._passed())) if self._seconds else usual

    def _passed(self) -> float:
        return time.monotonic() - self._began

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Report a deadline as a limit's if the limit, not the usual deadline, caused it."""
        try:
            yield
        except (DeadlineExceededError, TimeoutError) as error:
            if not self._seconds or self._passed() < self._seconds:
                raise
            reason = f"it was stopped after {self._passed():.1f} s"
            raise self._end("seconds", self._seconds, reached=self._passed(), reason=reason) from error

    def take(self, *, rows: int, size: int, total: int | None = None) -> None:
        """Add what arrived; `total` rows will come if nothing stops them.

        Raises:
            Refused: The call exceeds its limit; the data is not passed on.
        """
        self._seen = [self._seen[0] + rows, self._seen[1] + size]
        row_count = max(self._seen[0], total or 0)
        if self._rows and row_count > self._rows:
            raise self._end("rows", self._rows, reached=row_count, reason=f"there are {row_count:,} rows")
        if self._bytes and self._seen[1] > self._bytes:
            raise self._end("bytes", self._bytes, reached=self._seen[1], reason=f"{self._seen[1]:,} bytes arrived")

    def take_result(self, result: object) -> None:
        """Add what a call gave in one piece: bytes count as they are, other values as text.

        Raises:
            Refused: It is more than the call may have.
        """
        match result:
            case Page():
                size = sum(_size(cell) for row in result.cells for cell in row) if self._bytes else 0
                self.take(rows=len(result.cells), size=size)
            case Answer():
                answer: Answer | None = result
                while answer is not None:  # there may be more of them than calls fit into one another
                    self._take_answer(answer)
                    answer = answer.next
            case ColumnSummary():
                cells = [result.minimum, result.maximum, *(count.value for count in result.values)]
                self.take(rows=0, size=sum(map(_size, cells)) if self._bytes else 0)
            case str() | bytes():
                self.take(rows=0, size=_size(result))

    def _take_answer(self, answer: Answer) -> None:
        if answer.page is not None and not answer.text:
            self.take_result(answer.page)
        else:
            self.take(rows=len(answer.page.cells) if answer.page else 0, size=_size(answer.text))

    async def parts(self, stream: AsyncIterator[ExportPart]) -> AsyncGenerator[ExportPart, None]:
        """Yield the parts of an export while they stay within the limits."""
        while True:
            with self.timing(), anyio.fail_after(self.left(float("inf"))):
                part = await anext(stream, None)
            if part is None:
                return
            self.take(rows=part.rows, size=len(part.data), total=part.total)
            yield part

    def _end(self, name: str, limit: float, *, reached: float, reason: str) -> Refused:
        refusal = _refusal(self._call, name, limit, reached=reached, reason=f"{reason}; the received data was withheld")
        connection = self._call.connection.name if self._call.connection else None
        self._emit(
            CallRefused(hook=self._call.hook, automation=Limits.name, reason=refusal.message, connection=connection)
        )
        return refusal


def _size(value: object) -> int:
    return len(value) if isinstance(value, bytes) else len(str(value).encode(errors="replace"))


def _refusal(
    call: Call, name: str, limit: float, *, reached: float, reason: str, less: str = "ask for less"
) -> Refused:
    connection = call.connection.name if call.connection else ""
    of = f" of {call.object}" if call.object else ""
    text = f"{Limits.name}: {call.hook}{of} on {connection} may have {limit:,} {name}, and {reason}"
    hint = f"{less}, or raise {name} below [guards.connections.{connection}.limits] in config.toml"
    return Refused(text, hint=hint, code=CODE, details={"limit": name, "most": limit, "reached": reached})
