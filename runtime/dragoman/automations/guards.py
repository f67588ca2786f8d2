"""The automations that run according to `config.toml`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

import anyio

from dragoman.spellings import cell_command, spell_id
from dragoman_api.cells import CELL_CUT, ELLIPSIS, is_cut
from dragoman_api.changes import Drop, Insert, InsertBatch, Update
from dragoman_api.console import Answer
from dragoman_api.errors import ConfigurationError, DeadlineExceededError, DragomanError, Refused
from dragoman_api.events import CallRefused
from dragoman_api.grid import Page
from dragoman_api.hookspecs import hookimpl
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_api.summaries import ColumnSummary
from dragoman_api.wording import failure

from .audit import Audit
from .consent import Question, ask_consent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from dragoman.settings import Guards, Limit
    from dragoman_api.changes import HttpRequest
    from dragoman_api.events import Call, Event
    from dragoman_api.exports import ExportPart
    from dragoman_api.masking import Mask

    from .consent import Confirm

GROUP = "dragoman.automations"
"""Entry points that `config.toml` may name; they never run only because they are installed."""
SHOWN = 5
"""Requests that a question shows; the rest are counted."""
LOCKED = "production-locked"
"""Code of the refusal of a write to a production connection that is locked."""
LIMIT_EXCEEDED = "limit-exceeded"
"""Code of the refusal of a call, or of its result, that passes a limit."""


class ProductionLocks:
    """The locks of connections that are marked as production: read-only until a person unlocks one for a time."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def until(self, connection: str) -> float | None:
        """Return the time until which writes are allowed, in seconds since the epoch; None while it is locked."""
        until = self._until.get(connection, 0.0)
        return until if until > self._clock() else None

    def unlock(self, connection: str, *, minutes: int) -> None:
        """Allow writes for a few minutes; 0 locks it again."""
        self._until[connection] = self._clock() + 60 * minutes


def shipped(
    guards: Guards, *, confirm: Confirm | None, locks: ProductionLocks | None, log: Path, mask: Mask
) -> list[object]:
    """Make the built-in automations that the settings switch on for at least one connection.

    Args:
        guards: Their settings in `config.toml`.
        confirm: Asks a person; None when unattended.
        locks: The locks of production connections; None where no person could unlock one.
        log: The file of the audit.
        mask: Removes secrets from it.
    """
    special = {name: guards.of(name) for name in guards.connections}

    def of(connection: str) -> Guards:
        return special.get(connection, guards)

    automations: list[object] = []
    if guards.any("read_only") or (locks is not None and guards.any("production")):
        automations.append(ReadOnly(of, confirm=confirm, locks=locks))
    if guards.any("cut_cells"):
        automations.append(CutCells(lambda name: of(name).cut_cells))
    if guards.any("limits"):
        automations.append(Limits(lambda name: of(name).limits))
    if guards.any("audit"):
        automations.append(Audit(log, lambda name: of(name).audit, mask=mask))
    return automations


def named(names: Sequence[str]) -> list[object]:
    """Load the entry points of these names.

    Raises:
        ConfigurationError: One is not installed, or cannot be loaded.
    """
    if not names:
        return []
    import importlib.metadata

    entry_points = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP)}
    if missing := [name for name in names if name not in entry_points]:
        hint = f"installed are: {', '.join(sorted(entry_points)) or 'none'}"
        text = f"config.toml names automations that are not installed: {', '.join(missing)}"
        raise ConfigurationError(text, hint=hint)
    return [_load(entry_points[name]) for name in names]


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the module may raise anything, an exit included
        text = f"the automation {entry.name} of config.toml cannot be loaded from {entry.value}: {failure(error)}"
        hint = error.hint if isinstance(error, DragomanError) and error.hint else "correct it"
        raise ConfigurationError(text, hint=f"{hint}, or remove it from config.toml") from error


class ReadOnly:
    """Refuses writes or asks before them; console requests are writes if `parse_console` marks them.

    A connection that is marked as production is read-only while it is locked, whatever else its settings allow.
    """

    name: ClassVar = "read_only"
    seconds: ClassVar = 600.0  # a person answers, and may read first

    def __init__(
        self, guards_of: Callable[[str], Guards], *, confirm: Confirm | None, locks: ProductionLocks | None = None
    ) -> None:
        self._guards_of, self._confirmation, self._locks = guards_of, ConfirmWrites(confirm), locks

    @hookimpl
    async def before_call(self, call: Call) -> None:
        if not call.writes or call.connection is None:
            return
        name = call.connection.name
        guards = self._guards_of(name)
        level = guards.read_only
        if self._locks is not None and guards.production and self._locks.until(name) is None:
            remedy = Remedy(RemedyKind.UNLOCK, {"connection": name})
            reason = f"{name} is marked as production, and locked"
            raise Refused(reason, code=LOCKED, remedies=[remedy], details={"connection": name})
        if level == "read-only":
            hint = f'set read_only = "confirm-writes" below [guards.connections.{name}] in config.toml'
            raise Refused(f"{name} is read-only", hint=hint)
        drops = any(isinstance(change, Drop) for change in call.changes)
        if level == "confirm-writes" or (level == "confirm-drops" and drops):
            await self._confirmation.ask(call, name)


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
            answer = await ask_consent(self._confirm, Question(subject="change", text=text, details=tuple(lines)))
        if not answer:
            raise Refused("not confirmed")


def _line(request: HttpRequest, statement: str) -> str:
    line = f"{request.method} {request.path}"
    return f"{line}   # {statement}" if statement else line


class CutCells:
    """Refuses a change that would store what a grid shows of a cut cell."""

    name: ClassVar = "cut_cells"
    decides_on: ClassVar = frozenset({"plan_change"})

    def __init__(self, watches: Callable[[str], bool]) -> None:
        self._watches = watches

    @hookimpl
    async def before_call(self, call: Call) -> None:
        if call.connection is None or not self._watches(call.connection.name):
            return
        if isinstance(call.changes, InsertBatch) and not call.changes.values:  # whole documents, which no grid cut
            return
        for change in call.changes:
            if not isinstance(change, (Insert, Update)):
                continue
            for column, value in change.values.items():
                if is_cut(value) or _looks_cut(value):
                    key = change.key.id if isinstance(change, Update) else change.id
                    row = spell_id(key) if key else "a new row"
                    command = cell_command(call.connection.name, str(call.object), key or "ID", column)
                    hint = f"fetch the whole value first, and edit that\n{command}"
                    raise Refused(f"{column} of {row} is the beginning of a longer value", hint=hint)


def _looks_cut(value: object) -> bool:
    """Return whether a text is a grid's truncated display of a long array or object, pasted back."""
    return (
        isinstance(value, str)
        and value.endswith(ELLIPSIS)
        and len(value) == CELL_CUT + len(ELLIPSIS)
        and value[0] in "[{"
    )


class Limits:
    """Refuses a page of more rows than a call may have, before it is requested; a `Meter` enforces the other limits."""

    name: ClassVar = "limits"
    decides_on: ClassVar = frozenset({"fetch_page"})

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
        return min(usual, max(0.0, self._seconds - self.passed())) if self._seconds else usual

    def passed(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self._began

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Report a deadline as a limit's if the limit, not the usual deadline, caused it."""
        try:
            yield
        except (DeadlineExceededError, TimeoutError) as error:
            if not self._seconds or self.passed() < self._seconds:
                raise
            reason = f"it was stopped after {self.passed():.1f} s"
            raise self._end("seconds", self._seconds, reached=self.passed(), reason=reason) from error

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
    return Refused(text, hint=hint, code=LIMIT_EXCEEDED, details={"limit": name, "most": limit, "reached": reached})
