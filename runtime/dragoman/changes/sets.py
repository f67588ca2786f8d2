"""Change sets: a change file is planned as a whole, then applied in parts, with an undo file."""

from __future__ import annotations

import shlex
import tempfile
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Self

import anyio
import msgspec
from anyio import to_thread

from dragoman.sessions.driver_calls import reason_of, unknown
from dragoman.spellings import did_you_mean, near_names, spell_id
from dragoman_api.changes import Outcome, OutcomeStatus, Plan
from dragoman_api.columns import Note
from dragoman_api.errors import (
    ConfigurationError,
    DragomanError,
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

    from dragoman.sessions.session import Session
    from dragoman_api.changes import PlannedRequest
    from dragoman_api.grid import RowKey

    from .files import Lines

AT_ONCE = 4
"""The number of parts that are sent at the same time; each waits until searches see its rows."""

TOO_LARGE = "plan-too-large"
"""The code of the error of a driver that wants fewer changes in one plan."""


class LineOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one line that was not applied."""

    line: int
    id: str | None
    status: str
    reason: str


class ChangeReport(msgspec.Struct, kw_only=True):
    """The outcome of a change set.

    Attributes:
        lines: The number of changes in the file.
        counts: The number of changes per status; contains every status.
        left: The lines that were not applied, in order.
        notes: Notes for the user.
        undo: The file that reverts the applied changes; None if there is none.
    """

    lines: int
    counts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(map(str, OutcomeStatus), 0))
    left: list[LineOutcome] = msgspec.field(default_factory=list)
    notes: list[Note] = msgspec.field(default_factory=list)
    undo: str | None = None

    def tell(self, line: int, outcome: Outcome) -> None:
        """Record the outcome of one line."""
        self.counts[outcome.status] += 1
        if outcome.status is not OutcomeStatus.APPLIED:
            line_outcome = LineOutcome(line=line, id=_spelled(outcome), status=outcome.status, reason=outcome.reason)
            self.left.append(line_outcome)


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that are sent together: their places in the file, their plan and their undo."""

    numbers: list[int]
    offset: int
    size: int
    undo: int


class ChangeSet:
    """The changes of a file on an open connection: planned first, then applied. An async context manager.

    Args:
        session: The open connection.
        path: The path of the change file.
        stdin: A stream to read instead of the file.
        undo: The path of the undo file, which must not exist; None for no undo file.
        progress: Called with the number of lines done and the total, first for planning, then for applying.

    Attributes:
        file: The changes.
        refused: The lines that will not be sent; set by planning.
        notes: Notes for the user before sending.
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
        self._state = "not open yet"
        self.refused: list[LineOutcome] = []
        self.notes: dict[tuple[str, str], Note] = {}

    async def __aenter__(self) -> Self:
        path, stdin = self._source
        # It may wait for a pipe without a writer.
        self.file = await to_thread.run_sync(partial(ChangeFile, path, stdin=stdin), abandon_on_cancel=True)
        with anyio.CancelScope(shield=True):  # what it makes is there, or is not
            await to_thread.run_sync(self._open)
        self._state = ""
        return self

    def _open(self) -> None:
        with ExitStack() as stack:
            stack.enter_context(closing(self.file))
            self._report = ChangeReport(lines=self.file.lines)
            self._spool = stack.enter_context(tempfile.TemporaryFile())
            if self._undo_path is not None:
                self._undo = UndoFile(self._undo_path)
            self._resources = stack.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "closed"
        self._resources.close()
        with anyio.CancelScope(shield=True):
            if self._undo is not None:  # it was not applied
                await to_thread.run_sync(self._undo.remove)

    def _check_open(self) -> None:
        if self._state:
            hint = "use it inside its block: async with ChangeSet(…)"
            raise ConfigurationError(f"the change set is {self._state}", code="change-set-closed", hint=hint)

    # planning

    async def plan(self) -> None:
        """Plan all changes; only the undo file is written.

        Raises:
            ConfigurationError: Lines are not changes, or name missing objects (the error names all of them), or the
                change set is closed (code ``change-set-closed``).
        """
        self._check_open()
        for name, line in self.file.objects.items():
            try:
                await self._session.describe(name)
            except ObjectNotFoundError as error:
                self.file.fault(line, error.message + did_you_mean(near_names(name, await self._objects())))
        self.file.check(shlex.join(["dragoman", "objects", self._session.name]))
        for places in self.file.chunks:
            await self._plan(await self._read(places), depth=0)

    async def _objects(self) -> list[str]:
        try:
            return [o.name for o in await self._session.objects(counts=False)]
        except DragomanError:  # the line's own fault is reported
            return []

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
        rows = [row for planned in plan.planned for row in planned.by_row]
        if self._undo is not None and len(plan.undo) != len(rows):
            text = f"the driver {self._session.plugin} cannot build an undo for these changes"
            raise UnsupportedOperationError(text, hint="apply them without an undo file")
        await to_thread.run_sync(self._keep, lines, plan, limiter=self._one)
        self._done += len(lines)
        self._progress("planned", self._done, self.file.lines)

    def _keep(self, lines: Lines, plan: Plan) -> None:
        numbers = [line for line, _ in lines]
        for refusal in plan.refusals:
            line_outcome = LineOutcome(
                line=numbers[refusal.change], id=_spelled(refusal), status=refusal.status, reason=refusal.reason
            )
            self.refused.append(line_outcome)
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

    async def planned(self) -> AsyncIterator[PlannedRequest]:
        """Yield the exact requests that `apply` sends. Raises ConfigurationError if the change set is closed."""
        self._check_open()
        for part in self._parts:
            for planned in (await to_thread.run_sync(self._load, part, limiter=self._one)).planned:
                yield planned

    # applying

    async def apply(self) -> ChangeReport:
        """Send the planned changes, several parts at once, and report the outcome of every line.

        Raises:
            DragomanError: The first part could not be sent; nothing was applied.
        """
        self._check_open()
        if self._undo is not None:
            await to_thread.run_sync(self._undo.sync, limiter=self._one)
        self._done = 0
        parts, failures = iter(self._parts), list[Exception]()
        try:
            for part in parts:  # send the first part alone, to see whether sending works at all
                await self._send(part)
                break
            if self._stopped is not None and not self._report.counts["applied"] and not unknown(self._stopped):
                raise self._stopped

            async def send() -> None:
                try:
                    while not failures and (part := next(parts, None)) is not None:
                        await self._send(part)
                except Exception as error:  # noqa: BLE001 - raised below: what is under way has its outcome first
                    failures.append(error)

            async with anyio.create_task_group() as tasks:
                for _ in range(AT_ONCE):
                    tasks.start_soon(send)
            if failures:
                raise failures[0]
        finally:
            with anyio.CancelScope(shield=True):
                await self._complete()
        self._report.left.sort(key=lambda line_outcome: line_outcome.line)
        self._report.notes = list(self.notes.values())
        return self._report

    async def _send(self, part: _Part) -> None:
        plan = await to_thread.run_sync(self._load, part, limiter=self._one)
        if self._stopped is not None:
            outcomes = _not_sent(plan, self._stopped)
        else:
            rows = [row for planned in plan.planned for row in planned.by_row]
            undo_rows: dict[int, RowKey | None] = {} if self._undo is None else self._undo.rows
            # In flight: its undo finds the row by content.
            undo_rows |= {part.undo + at: None for at in range(len(rows))}
            try:
                outcomes = await self._session.apply(plan)
            except DragomanError as error:
                self._stopped = error
                outcomes = _unanswered(plan, error) if unknown(error) else _not_sent(plan, error)
            outcomes_by_change = {outcome.change: outcome for outcome in outcomes}
            outcomes = [outcomes_by_change[at] for at in range(len(part.numbers))]
            for at, row in enumerate(rows):
                end = outcomes[row[0]]
                if end.status is OutcomeStatus.APPLIED:
                    undo_rows[part.undo + at] = end.key
                elif end.status is not OutcomeStatus.UNKNOWN:
                    del undo_rows[part.undo + at]
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


def _spelled(outcome: Outcome) -> str | None:
    return None if outcome.id is None else spell_id(outcome.id)


def _not_sent(plan: Plan, error: DragomanError) -> list[Outcome]:
    """Return the outcomes of a part that could not be sent because of an error."""
    status = OutcomeStatus.REFUSED if isinstance(error, Refused) else OutcomeStatus.FAILED
    return _all(plan, status, f"not sent: {error.message}")


def _unanswered(plan: Plan, error: DragomanError) -> list[Outcome]:
    """Return the outcomes of a part that was sent but has no answer."""
    return _all(plan, OutcomeStatus.UNKNOWN, reason_of(error))


def _all(plan: Plan, status: OutcomeStatus, reason: str) -> list[Outcome]:
    numbers = [number for planned in plan.planned for number in planned.changes]
    return [*plan.refusals, *(Outcome(change=number, status=status, reason=reason) for number in numbers)]


_kept = msgspec.msgpack.Decoder(tuple[Plan, bytes])
