"""What a driver says of changes, checked: its plan before anything is sent, and its outcomes afterwards."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.spellings import spell_id
from dragoman_api import events
from dragoman_api.changes import Delete, Drop, Insert, InsertBatch, Outcome, OutcomeStatus, Plan, PlanRequest, object_of
from dragoman_api.errors import DriverFaultError
from dragoman_worker.values import encode_request

from .driver_calls import AUTHOR_HINT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dragoman_api.changes import Change, Update
    from dragoman_api.events import Event


_SENT = (OutcomeStatus.APPLIED, OutcomeStatus.UNKNOWN)


def check_plan(plan: Plan, request: PlanRequest, *, plugin: str) -> None:
    """Check that a plan is one of the changes that were requested, each once, those of one row in their order.

    Raises:
        DriverFaultError: It is not; nothing was sent.
    """
    if fault := _plan_fault(plan, request):
        raise DriverFaultError(f"the plan of {plugin} {fault}; nothing was sent", hint=AUTHOR_HINT)


def _plan_fault(plan: Plan, request: PlanRequest) -> str:
    """Return what is wrong with a plan, as the end of a sentence; empty if nothing is."""
    changes = request.changes
    if request.new is not None and (len(plan.planned) > 1 or plan.refusals):
        return "contains more than the one request that makes an object"
    if plan.changes and not _equal(plan.changes, changes):
        return "is about other changes than those that were requested"
    rows = [row for planned in plan.planned for row in planned.by_row]
    numbers = [*chain(*rows), *(refusal.change for refusal in plan.refusals)]
    if sorted(numbers) != [*range(len(changes))] or (changes and not all(rows)):
        return "does not contain every change exactly once"
    if any(planned.rows and sorted(chain(*planned.rows)) != sorted(planned.changes) for planned in plan.planned):
        return "names other changes in the rows of a request than in the request"
    if any(refusal.status in _SENT or refusal.rows > 1 for refusal in plan.refusals):
        return "says of a change that is not sent that it may have been applied"
    if not isinstance(changes, InsertBatch) and not _in_order(changes, chain(*rows)):
        return "carries out changes of one row in another order"
    undoable = [*undoable_rows(plan, changes)] if plan.undo else []
    if len(plan.undo) != len(undoable) or any(isinstance(change, Drop) for change in plan.undo):
        return f"has {len(plan.undo):,} changes that undo {len(undoable):,} rows"
    return ""


def undoable_rows(plan: Plan, changes: Sequence[Change] | InsertBatch) -> Iterator[list[int]]:
    """Yield the changes of each row that a plan writes: `Plan.undo` has one change for each of them.

    Args:
        plan: The plan.
        changes: Its changes; a drop among them cannot be undone.
    """
    for planned in plan.planned:
        for row in planned.by_row:
            if isinstance(changes, InsertBatch) or not isinstance(changes[row[0]], Drop):
                yield row


def _equal(changes: Sequence[Change] | InsertBatch, others: Sequence[Change] | InsertBatch) -> bool:
    """Return whether changes are the same in every value and its kind."""
    first, second = (
        encode_request(Plan(planned=[], changes=sequence if isinstance(sequence, InsertBatch) else [*sequence]))
        for sequence in (changes, others)
    )
    return first == second


def _in_order(changes: Sequence[Change], numbers: Iterable[int]) -> bool:
    """Return whether numbers of changes keep the order of those that concern the same row, or a drop of its object."""
    last_of_row: dict[object, int] = {}
    last_of_object: dict[str, int] = {}
    last_drop: dict[str, int] = {}
    for number in numbers:
        change = changes[number]
        name = object_of(change)
        if number < last_drop.get(name, -1):
            return False
        if isinstance(change, Drop):
            if number < last_of_object.get(name, -1):
                return False
            last_drop[name] = number
        elif (key := _row_key(change)) is not None:
            if number < last_of_row.get((name, key), -1):
                return False
            last_of_row[name, key] = number
        last_of_object[name] = max(number, last_of_object.get(name, -1))
    return True


def _row_key(change: Insert | Update | Delete) -> tuple[object, str | None] | None:
    """Return the id of a change's row with its tenant or routing; None if it names no row."""
    row = change if isinstance(change, Insert) else change.key
    owner = row.tenant if isinstance(row, Insert) else None
    key = tuple(row.id) if isinstance(row.id, list) else row.id
    return None if not key else (key, owner or row.routing)


def event_of(outcome: Outcome, change: Change | None, *, connection: str) -> Event:
    """Return the event that reports the outcome of a change."""
    name = object_of(change) if change else ""
    fields: dict[str, Any] = {"connection": connection, "object": name}
    row = spell_id(outcome.id) if outcome.id else ""
    if outcome.status is not OutcomeStatus.APPLIED:
        return events.RowSkipped(**fields, id=row, status=outcome.status, reason=outcome.reason)
    match change:
        case Drop():
            return events.ObjectDropped(**fields)
        case Insert():
            return events.RowInserted(**fields, id=row)
        case Delete():
            return events.RowDeleted(**fields, id=row)
    return events.RowUpdated(**fields, id=row)


def total_of(outcomes: Sequence[Outcome], *, object: str, connection: str) -> Event:  # noqa: A002 - the event's field
    """Return the event that reports how many changes of one call were applied."""
    applied = sum(outcome.rows for outcome in outcomes if outcome.status is OutcomeStatus.APPLIED)
    return events.RowsWritten(connection=connection, object=object, rows=applied)


def completed(
    outcomes: Sequence[Outcome], *, refusals: Sequence[Outcome] = (), changes: int | None, bulk: bool
) -> list[Outcome]:
    """Return the outcomes of a plan in the order of its changes, one for each, whatever the driver told.

    Args:
        outcomes: What the driver told after it sent the plan. Outcomes that are joined stand for several rows only if
            they may, and if no other one is about any of these. A change with several statuses has an unknown one.
        refusals: Those of the plan, whose changes were not sent: nothing that was told later replaces them.
        changes: The number of changes; None if they are not known.
        bulk: The changes are rows of a load.
    """
    by_change: dict[int, Outcome] = {}
    for outcome in outcomes:
        first = by_change.setdefault(outcome.change, outcome)
        if outcome.status is not first.status:
            by_change[outcome.change] = untold(outcome.change, "the driver reported several outcomes for it")
        elif outcome.rows < first.rows:
            by_change[outcome.change] = outcome
    by_change |= {refusal.change: refusal for refusal in refusals}
    numbers = sorted(by_change)
    if changes is None:
        return [by_change[number] for number in numbers]
    in_order: list[Outcome] = []
    following = 0
    for change, after in zip_longest(numbers, numbers[1:], fillvalue=changes):
        if not 0 <= change < changes:
            continue
        outcome = by_change[change]
        may_be_joined = bulk and outcome.status is OutcomeStatus.APPLIED and outcome.id is None and outcome.key is None
        if outcome.rows > 1 and not (may_be_joined and change + outcome.rows <= min(after, changes)):
            outcome = msgspec.structs.replace(outcome, rows=1)
        in_order += map(untold, range(following, change))
        in_order.append(outcome)
        following = change + outcome.rows
    return [*in_order, *map(untold, range(following, changes))]


def untold(change: int, reason: str = "the driver reported no outcome for it") -> Outcome:
    """Return the outcome of a change that the driver did not report."""
    return Outcome(change=change, status=OutcomeStatus.UNKNOWN, reason=reason)
