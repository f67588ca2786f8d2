"""Events that report the outcomes of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.row_ids import spell_id
from dragoman_api import events
from dragoman_api.changes import Delete, Drop, Insert, Outcome, OutcomeStatus, object_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.changes import Change
    from dragoman_api.events import Event


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
    applied = sum(outcome.status is OutcomeStatus.APPLIED for outcome in outcomes)
    return events.RowsWritten(connection=connection, object=object, rows=applied)


def untold(change: int) -> Outcome:
    """Return the outcome of a change that the driver did not report."""
    reason = "the driver reported no outcome for it"
    return Outcome(change=change, status=OutcomeStatus.UNKNOWN, reason=reason)
