"""Change sets: a file of changes, planned as a whole, then applied in parts, with a file that takes them back."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import anyio
import msgspec
from anyio import to_thread

from dragoman_api.changes import Outcome, OutcomeStatus, Plan
from dragoman_api.columns import Note
from dragoman_api.errors import (
    DragomanError,
    DriverFaultError,
    ObjectNotFoundError,
    QueryError,
    Refused,
    UnsupportedOperationError,
)

from .files import ChangeFile, halves, read_line, write_line
from .undo import UndoFile

if TYPE_CHECKING:
    from array import array
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from types import TracebackType
    from typing import BinaryIO

    from dragoman.session import Session
    from dragoman_api.changes import HttpRequest
    from dragoman_api.grid import RowKey

    from .files import Lines

AT_ONCE = 4
"""Parts that are sent at the same time; each waits until searches see its rows."""

TOO_LARGE = "plan-too-large"
"""Code of the error of a driver that wants fewer changes in one plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOutcome:
    """What became of one line that was not applied."""

    line: int
    id: str | None
    status: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Report:
    """What became of a change set.

    Attributes:
        lines: Changes in the file.
        counts: How many ended how; all five statuses are there.
        left: The lines that were not applied, in order.
        notes: What a person should know.
        undo: The file that takes back what was applied, if there is one.
    """

    lines: int
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, OutcomeStatus), 0))
    left: list[LineOutcome] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    undo: str | None = None

    def tell(self, line: int, outcome: Outcome) -> None:
        """Take in what became of one line."""
        self.counts[outcome.status] += 1
        if outcome.status is not OutcomeStatus.APPLIED:
            told = LineOutcome(line=line, id=outcome.id, status=outcome.status, reason=outcome.reason)
            self.left.append(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Changes that are sent together: where they, their plan and their undo are kept."""

    numbers: list[int]
    offset: int
    size: int
    undo: int


class ChangeSet:
    """The changes of a file on an open connection: planned first, then applied. An async context manager.

    Args:
        session: The connection.
        path: Of the file.
        stdin: Is read in its place.
        undo: Where to write what takes the changes back; a file that is there is not written over.
        progress: Is told how many of how many lines are planned, and then applied.

    Attributes:
        file: The changes.
        refused: Lines that will not be sent, known after planning.
        notes: What a person should know before sending.
    """

    def __init__(
        self,
        session: Session,
        path: Path,
        *,
        stdin: BinaryIO | None = None,
        undo: Path | None = None,
        progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
    ) -> None:
        self._session, self._progress = session, progress
        self._source, self._undo_path = (path, stdin), undo
        self.file: ChangeFile
        self._undo: UndoFile | None = None
        self._one = anyio.CapacityLimiter(1)  # thread at a time, for the files have one position each
        self._parts: list[_Part] = []
        self._done = 0
        self._stopped: DragomanError | None = None
        self.refused: list[LineOutcome] = []
        self.notes: dict[tuple[str, str], Note] = {}

    async def __aenter__(self) -> Self:
        await to_thread.run_sync(self._open)
        return self

    def _open(self) -> None:
        path, stdin = self._source
        with ExitStack() as held:
            self.file = held.enter_context(closing(ChangeFile(path, stdin=stdin)))
            self._report = Report(lines=self.file.lines)
            self._spool = held.enter_context(tempfile.TemporaryFile())
            if self._undo_path is not None:
                self._undo = UndoFile(self._undo_path)
            self._held = held.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        with anyio.CancelScope(shield=True):
            if self._undo is not None:  # it was not applied
                await to_thread.run_sync(self._undo.remove)

    # planning

    async def plan(self) -> None:
        """Plan all changes; nothing is written but the undo file.

        Raises:
            ConfigurationError: Lines are no changes, or name objects that are not there; all of them are named.
        """
        for name, line in self.file.objects.items():
            try:
                await self._session.describe(name)
            except ObjectNotFoundError as error:
                self.file.fault(line, error.message)
        self.file.check()
        for places in self.file.chunks:
            await self._plan(await self._read(places), depth=0)

    async def _read(self, places: array[int]) -> Lines:
        return await to_thread.run_sync(self.file.read, places, limiter=self._one)

    async def _plan(self, lines: Lines, *, depth: int) -> None:
        if not lines:
            return
        try:
            plan = await self._session.plan(*(change for _, change in lines), undo=self._undo is not None)
        except QueryError as error:
            if error.code != TOO_LARGE or len(lines) == 1 or depth == 60:
                raise
            for half in halves(lines, depth):
                await self._plan(half, depth=depth + 1)
            return
        rows = [row for each in plan.planned for row in each.by_row]
        spoken = [number for row in rows for number in row] + [each.change for each in plan.refusals]
        if sorted(spoken) != [*range(len(lines))] or not all(rows):
            raise DriverFaultError(f"the plan of {self._session.plugin} does not speak of every change once")
        if self._undo is not None and len(plan.undo) != len(rows):
            text = f"the driver {self._session.plugin} cannot tell what would take these changes back"
            raise UnsupportedOperationError(text, hint="apply them without an undo file")
        await to_thread.run_sync(self._keep, lines, plan, limiter=self._one)
        self._done += len(lines)
        self._progress("planned", self._done, self.file.lines)

    def _keep(self, lines: Lines, plan: Plan) -> None:
        numbers = [line for line, _ in lines]
        for each in plan.refusals:
            told = LineOutcome(line=numbers[each.change], id=each.id, status=each.status, reason=each.reason)
            self.refused.append(told)
        self.notes |= {(note.code, note.reason): note for note in plan.notes}
        undone = 0
        if self._undo is not None:
            undone = self._undo.lines
            self._undo.add(plan.undo)
        slim = msgspec.structs.replace(plan, undo=[], changes=[])
        rows = b"".join(write_line(change) for _, change in lines)
        data = msgspec.msgpack.encode((slim, rows))
        self._parts.append(_Part(numbers=numbers, offset=self._spool.tell(), size=len(data), undo=undone))
        self._spool.write(data)

    def _load(self, part: _Part) -> Plan:
        self._spool.seek(part.offset)
        plan, rows = _kept.decode(self._spool.read(part.size))
        return msgspec.structs.replace(plan, changes=[read_line(line) for line in rows.splitlines()])

    async def requests(self) -> AsyncIterator[HttpRequest]:
        """Give the exact requests that applying sends."""
        for part in self._parts:
            for request in (await to_thread.run_sync(self._load, part, limiter=self._one)).requests:
                yield request

    # applying

    async def apply(self) -> Report:
        """Send what was planned, several parts at once, and tell what became of every line.

        Raises:
            DragomanError: The first part could not be sent; nothing was applied.
        """
        if self._undo is not None:
            await to_thread.run_sync(self._undo.sync, limiter=self._one)
        self._done = 0
        parts = iter(self._parts)
        try:
            for part in parts:  # the first one alone: it tells whether there is a way at all
                await self._send(part)
                break
            if self._stopped is not None and not self._report.counts["applied"] and _unsent(self._stopped):
                raise self._stopped

            async def send() -> None:
                for part in parts:
                    await self._send(part)

            async with anyio.create_task_group() as tasks:
                for _ in range(AT_ONCE):
                    tasks.start_soon(send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._complete()
        self._report.left.sort(key=lambda each: each.line)
        self._report.notes = list(self.notes.values())
        return self._report

    async def _send(self, part: _Part) -> None:
        plan = await to_thread.run_sync(self._load, part, limiter=self._one)
        if self._stopped is not None:
            outcomes = _not_done(plan, self._stopped, doubt=False)
        else:
            rows = [row for each in plan.planned for row in each.by_row]
            known: dict[int, RowKey | None] = {} if self._undo is None else self._undo.rows
            known |= {part.undo + at: None for at in range(len(rows))}  # on its way: to be taken back by its content
            try:
                outcomes = await self._session.apply(plan)
            except DragomanError as error:
                self._stopped = error
                outcomes = _not_done(plan, error, doubt=not _unsent(error))
            told = {outcome.change: outcome for outcome in outcomes}
            outcomes = [told.get(at) or _untold(at) for at in range(len(part.numbers))]
            for at, row in enumerate(rows):
                end = outcomes[row[0]]
                if end.status is OutcomeStatus.APPLIED:
                    known[part.undo + at] = end.key
                elif not end.doubt:
                    del known[part.undo + at]
        for outcome in outcomes:
            self._report.tell(part.numbers[outcome.change], outcome)
        self._done += len(part.numbers)
        self._progress("applied", self._done, self.file.lines)

    async def _complete(self) -> None:
        if (undo := self._undo) is None:
            return
        self._undo = None
        try:
            await to_thread.run_sync(undo.complete, limiter=self._one)
        except OSError as error:
            reason = f"the undo file could not be finished ({error.strerror}); it finds the rows by their content"
            self.notes["undo-unfinished", ""] = Note(code="undo-unfinished", reason=reason)
        self._report.undo = str(undo.path) if undo.rows else None


def _unsent(error: DragomanError) -> bool:
    return isinstance(error, Refused) or error.details.get("sent") is False


def _untold(change: int) -> Outcome:
    reason = "the driver does not tell what became of it"
    return Outcome(change=change, status=OutcomeStatus.FAILED, reason=reason, doubt=True)


def _not_done(plan: Plan, error: DragomanError, *, doubt: bool) -> list[Outcome]:
    """Give the outcomes of a part that an error kept from being sent, or from being answered."""
    status = OutcomeStatus.REFUSED if isinstance(error, Refused) else OutcomeStatus.FAILED
    reason = f"{'it is not known whether it was applied' if doubt else 'not sent'}: {error.message}"
    numbers = [number for each in plan.planned for number in each.changes]
    return [
        *plan.refusals,
        *(Outcome(change=number, status=status, reason=reason, doubt=doubt) for number in numbers),
    ]


_kept = msgspec.msgpack.Decoder(tuple[Plan, bytes])
