"""Batches are sent: planned, judged row by row, and sent again where a busy server or a lost answer leaves doubt."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from dragoman.sessions.driver_calls import after_a_write, unknown
from dragoman_api.changes import OutcomeStatus
from dragoman_api.columns import Note
from dragoman_api.errors import DragomanError, DriverCrashedError, QueryError, UnsupportedOperationError
from dragoman_worker.wire import PLAN_DROPPED

from .batches import Rejection, batch_of, no_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio import CapacityLimiter

    from dragoman.sessions.session import Session
    from dragoman_api.changes import Outcome, Plan, PlannedRequest

    from .batches import Batch
    from .checkpoints import Ledger
    from .records import Record

ON_CONFLICT = ("fail", "skip", "overwrite")
"""Ways to treat a row whose id exists."""

TOO_LARGE = "plan-too-large"
"""The code of the error of a driver that wants fewer changes in one plan."""

AGAIN = (1.0, 3.0)
"""Pauses in seconds before rows in doubt are sent again."""

BUSY = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Pauses in seconds before rows that a busy server turned away are sent again, after the driver's own pauses."""

PLANS_AGAIN = 3
"""How often rows of a batch are planned again after the driver's process ended or dropped their plan."""

_NAMED = 20
"""How many rows of a dry run that would not be sent are named."""

_SAME = "a row with this id exists already, and holds the same"


class Writer:
    """Writes batches.

    Attributes:
        stopped: The error because of which nothing more is sent; None while there is none.
        notes: The notes of all plans, each once, by code, column and reason.
        settled: The event that is set after the next batch, and then replaced by a new one.
    """

    def __init__(
        self, session: Session, ledger: Ledger, *, object: str, one: CapacityLimiter, on_conflict: str, sends: bool,  # noqa: A002
        preview: Callable[[PlannedRequest], None],
    ) -> None:  # fmt: skip
        self._session, self._ledger, self._object, self._one = session, ledger, object, one
        self._on_conflict, self._sends, self._preview = on_conflict, sends, preview
        self.stopped: Exception | None = None
        self.notes: dict[tuple[str, str | None, str], Note] = {}
        self._refused = 0
        self.settled = anyio.Event()

    def ended(self) -> bool:
        """Whether sending has stopped."""
        return self.stopped is not None

    def stop(self, error: Exception) -> None:
        """Send nothing more because of an error; an earlier error stays the reason."""
        self.stopped = self.stopped or error

    def check(self) -> None:
        """Raise the error that stopped the load, if any."""
        if self.stopped is not None:
            raise self.stopped

    async def write(self, batch: Batch) -> None:
        """Write a batch; an error of the whole load goes to `stopped`."""
        try:
            pauses, busy = list(AGAIN), list(BUSY)
            while batch.records and self.stopped is None:
                turned_away = await self._attempt(batch, last=not pauses)
                if not batch.records:
                    break
                await anyio.sleep(self._pause(busy) if turned_away else pauses.pop(0))
        except Exception as error:  # noqa: BLE001 - `check` raises it
            self.stop(error)
        finally:
            self.settled.set()
            self.settled = anyio.Event()

    def _pause(self, busy: list[float]) -> float:
        if not busy:
            text = "the server was too busy to take more rows for a minute"
            raise QueryError(text, hint="resume the load when it has less to do", code="server-busy")
        return busy.pop(0)

    async def _attempt(self, batch: Batch, *, last: bool) -> bool:
        """Send the rows of a batch that have no outcome yet; return whether a busy server turned some away."""
        waiting = [batch.records]
        busy, whole, attempts = False, not self._sends or self._ledger.undo is not None, PLANS_AGAIN
        while waiting:
            records, plan = waiting.pop(), None
            try:
                plan = await self._plan(records, waiting, last=batch.last, whole=whole)
                if plan is not None:
                    busy |= await self._send(batch, records, plan, last=last)
            except (QueryError, DriverCrashedError) as error:
                if unknown(error) or not attempts or not _is_lost(plan, error):
                    raise
                attempts -= 1
                waiting.append(records)  # nothing of them was sent
                whole |= plan is not None
        return busy

    async def _plan(
        self, records: list[Record], waiting: list[list[Record]], *, last: bool, whole: bool
    ) -> Plan | None:
        """Plan some rows; if they are too many at once, put two halves into `waiting` and return None."""
        undo = self._ledger.undo is not None
        try:
            batch = batch_of(records, object=self._object)
            plan = await self._session.plan(batch=batch, undo=undo, last=last, whole=whole)
        except QueryError as error:
            if error.code != TOO_LARGE or len(records) == 1:
                raise
            half = len(records) // 2
            waiting += [records[half:], records[:half]]
            return None
        self.notes |= {(note.code, note.column, note.reason): note for note in plan.notes}
        rows = [row for planned in plan.planned for row in planned.by_row]
        if undo and len(plan.undo) != len(rows):
            text = f"the driver {self._session.plugin} cannot build an undo for these changes"
            raise UnsupportedOperationError(text, hint="load without an undo file")
        return plan

    async def _send(self, batch: Batch, records: list[Record], plan: Plan, *, last: bool) -> bool:
        if not self._sends:
            self._pretend(batch, records, plan)
            return False
        if self._ledger.undo is not None and plan.undo:
            rows = [records[row[0]] for planned in plan.planned for row in planned.by_row]
            await run_sync(self._ledger.undo_of, zip(rows, plan.undo, strict=True), limiter=self._one)
        sent = [records[number] for planned in plan.planned for number in planned.changes]
        for record in sent:
            record.sent = True
        try:
            outcomes = await self._session.apply(plan)
        except DragomanError as error:
            in_doubt = unknown(error)
            for record in sent:
                record.sent, record.doubt = False, record.doubt or in_doubt
            raise
        counts, rejections, again = self._judge(records, outcomes, last=last)
        left = again
        if len(records) < len(batch.records):
            done = {id(record) for record in records} - {id(record) for record in again}
            left = [record for record in batch.records if id(record) not in done]
        settle = partial(self._ledger.settle, batch, counts=counts, rejections=rejections, left=left)
        with anyio.CancelScope(shield=True), after_a_write():  # what is known is kept; else the rows stay in doubt
            await run_sync(settle, limiter=self._one)
        for record in sent:
            record.sent = False
        return any(outcome.busy for outcome in outcomes)

    def _judge(
        self, records: Sequence[Record], outcomes: Sequence[Outcome], *, last: bool
    ) -> tuple[dict[str, int], list[Rejection], list[Record]]:
        """Return the counts of applied and skipped rows, the rejected rows, and the rows to send again."""
        counts, rejections, again = no_counts(), [], []
        lost = any(outcome.status is OutcomeStatus.UNKNOWN and not outcome.holds for outcome in outcomes)
        for outcome in outcomes:
            record, status, reason = records[outcome.change], outcome.status, outcome.reason
            if outcome.holds and status in (OutcomeStatus.UNKNOWN, OutcomeStatus.CONFLICT):
                status, reason = (OutcomeStatus.APPLIED, "") if record.doubt else (OutcomeStatus.CONFLICT, _SAME)
            repeated = status is OutcomeStatus.FAILED and (outcome.busy or (lost and not last))
            if status is OutcomeStatus.UNKNOWN and record.key is not None and not last:
                record.doubt = repeated = True
            if repeated:
                again.append(record)
            elif status is OutcomeStatus.APPLIED:
                counts[status] += outcome.rows
            elif status is OutcomeStatus.CONFLICT and self._on_conflict == "skip":
                counts[OutcomeStatus.SKIPPED] += 1
            else:
                rejections.append(Rejection(record, str(status), reason, outcome.id or record.id))
        return counts, rejections, again

    # dry runs

    def pretend(self, batch: Batch) -> None:
        """Count the rows of a dry run that are not even planned."""
        self._ledger.read = batch.read
        for rejection in batch.rejections:
            self._refuse(rejection.record, "refused", rejection.reason)

    def _pretend(self, batch: Batch, records: list[Record], plan: Plan) -> None:
        for planned in plan.planned:
            self._preview(planned)
        for outcome in plan.refusals:
            self._refuse(records[outcome.change], outcome.status, outcome.reason)
        done = {id(record) for record in records}
        batch.records = [record for record in batch.records if id(record) not in done]

    def _refuse(self, record: Record, status: str, reason: str) -> None:
        """Count a row of a dry run that would not be sent; the first ones are named, with their reasons."""
        self._ledger.counts[status] += 1
        self._refused += 1
        if self._refused <= _NAMED + 1:
            row = f"row {record.number}: {reason}"
            text = row if self._refused <= _NAMED else "further rows would not be sent"
            self.notes["row-refused", None, text] = Note(code="row-refused", reason=text)


def _is_lost(plan: Plan | None, error: DragomanError) -> bool:
    """Return whether rows have no plan any more: the driver's process ended, or dropped the plan that it kept."""
    return isinstance(error, DriverCrashedError) or (
        plan is not None and plan.number > 0 and bool(error.details.get(PLAN_DROPPED))
    )
