"""Outcomes of writes that never claim more than the server said.

``failed`` means that the server certainly did not carry out a change; whatever it may have done without saying so is
``unknown``, and only a proof that the change was made ends that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from dragoman_api.changes import Outcome, OutcomeStatus
from dragoman_api.columns import Note
from dragoman_api.errors import ConnectionFailedError, DragomanError
from dragoman_api.grid import RowId
from dragoman_api.wording import failure

from .exchanges import MISREAD

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from dragoman_api.changes import Plan

_DONE = (200, 201, 204)
_UNTOLD = "the driver says nothing of it"


def unsure(status: int, *, turned_away: bool = False) -> bool:
    """Return whether a write may have been carried out in spite of an error answer.

    It may after 408 and 5xx: a server can fail after a part of its work, and a gateway's 502, 503 or 504 can come after
    the server did all of it. Any other 3xx or 4xx says that the request was judged and not carried out.

    >>> unsure(502), unsure(408), unsure(503, turned_away=True), unsure(429), unsure(404)
    (True, True, False, False, False)

    Args:
        status: The HTTP status.
        turned_away: The body says that the server was too busy to begin.
    """
    return status == 408 or status < 200 or (status >= 500 and not turned_away)


def status_of(status: int, *, conflicts: Container[int] = (), turned_away: bool = False) -> OutcomeStatus:
    """Return what the HTTP status of an answer proves about a write.

    ``applied`` after 200, 201 and 204 alone: 202 promises to carry it out later, and 207 reports row by row. A caller
    that knows more of the answer looks at its body, too.

    >>> [str(status_of(each, conflicts=(409,))) for each in (201, 202, 409, 422, 500)]
    ['applied', 'unknown', 'conflict', 'failed', 'unknown']

    Args:
        status: The HTTP status.
        conflicts: The statuses by which this server says that the row is not as expected.
        turned_away: The body says that the server was too busy to begin.
    """
    if status in _DONE:
        return OutcomeStatus.APPLIED
    if status in conflicts:
        return OutcomeStatus.CONFLICT
    doubtful = 200 <= status < 300 or unsure(status, turned_away=turned_away)
    return OutcomeStatus.UNKNOWN if doubtful else OutcomeStatus.FAILED


def unknown_note(reason: str) -> Note:
    """Return the note of a console request that may have been carried out in spite of its error answer."""
    return Note(code="outcome-unknown", reason=f"it is unknown whether it was applied: {reason}")


@contextmanager
def before_writing() -> Iterator[None]:
    """Mark errors of what is sent before a write: the write itself was not sent."""
    try:
        yield
    except DragomanError as error:
        error.details["sent"] = False
        raise


class Outcomes:
    """The outcomes of a plan while it is sent.

    >>> outcomes = Outcomes()
    >>> with outcomes.sending([0]):
    ...     raise ConnectionFailedError("the connection ended", details={"sent": True})
    >>> with outcomes.sending([1]):
    ...     outcomes.tell([1], Outcome(change=1, status=OutcomeStatus.APPLIED))
    >>> [str(each.status) for each in outcomes.told]
    ['unknown', 'applied']
    """

    def __init__(self) -> None:
        self._by_change: dict[int, Outcome] = {}

    @property
    def told(self) -> list[Outcome]:
        """One outcome for each change that was told, in the order in which they were told first."""
        return list(self._by_change.values())

    def of(self, change: int) -> Outcome:
        """Return the outcome of a change. Raises KeyError if none was told."""
        return self._by_change[change]

    def tell(self, changes: Sequence[int], outcome: Outcome) -> None:
        """Record the outcome of a row for each of its changes; its number of the change does not matter.

        A later outcome replaces an earlier one, as after another attempt; but one that is unknown stays so until the
        change is known to be applied.
        """
        for number in changes:
            before = self._by_change.get(number)
            unknown = before is not None and before.status is OutcomeStatus.UNKNOWN
            if not unknown or outcome.status in (OutcomeStatus.APPLIED, OutcomeStatus.UNKNOWN):
                self._by_change[number] = replace(outcome, change=number)

    def sending(self, changes: Sequence[int], *, row: RowId | None = None) -> Sending:
        """Send one request in a `with` block: an error of the block is the outcome of its changes.

        Args:
            changes: The changes of the request.
            row: The row's id, if the request has one row.

        Raises:
            ConnectionFailedError: Nothing was sent, and nothing has an outcome yet: the whole plan can be sent again.
        """
        return Sending(self, changes, row)

    def of_plan(self, plan: Plan) -> list[Outcome]:
        """Return one outcome for each planned change, unknown where none was told."""
        planned = (number for request in plan.planned for number in request.changes)
        untold = Outcome(change=0, status=OutcomeStatus.UNKNOWN, reason=_UNTOLD)
        return [self._by_change.get(number) or replace(untold, change=number) for number in dict.fromkeys(planned)]


class Sending(msgspec.Struct, frozen=True):
    """A request that is sent, see `Outcomes.sending`."""

    outcomes: Outcomes
    changes: Sequence[int]
    row: RowId | None

    def __enter__(self) -> None:
        """Begin to send."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Record what an error means for the changes, and return whether they have their outcomes."""
        if isinstance(error, DragomanError):
            sent, reason = error.details.get("sent") is not False, error.message
            if isinstance(error, ConnectionFailedError) and not self.outcomes.told and not sent:
                return False
        elif isinstance(error, MISREAD):
            sent, reason = True, f"the answer cannot be read: {failure(error)}"
        else:
            return False
        status = OutcomeStatus.UNKNOWN if sent else OutcomeStatus.FAILED
        outcome = Outcome(change=0, status=status, id=self.row, reason=reason if sent else f"not sent: {reason}")
        self.outcomes.tell(self.changes, outcome)
        return True
