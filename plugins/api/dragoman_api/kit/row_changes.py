"""Changes of rows: folded per row, made into a plan in which every change has a request, and what became of each.

Outcomes never claim more than the server said: ``failed`` means that the server certainly did not carry out a change;
whatever it may have done without saying so is ``unknown``, and only a proof that the change was made ends that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman_api.changes import (
    Change,
    Delete,
    Drop,
    Insert,
    InsertBatch,
    Outcome,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    Update,
    Values,
    object_of,
)
from dragoman_api.columns import Note
from dragoman_api.errors import (
    AccessDeniedError,
    ConnectionFailedError,
    DragomanError,
    ObjectNotFoundError,
    QueryError,
    RowNotFoundError,
)
from dragoman_api.grid import RowId, RowKey
from dragoman_api.wording import failure

from .exchanges import MISREAD, unsure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Hashable, Iterable, Iterator, Mapping

    from dragoman_api.changes import HttpRequest

T = TypeVar("T")
_JUDGED = (ObjectNotFoundError, RowNotFoundError, QueryError, AccessDeniedError)
_UNDONE = "a later change of the set deletes the row again"
_UNCLEAR = (OutcomeStatus.UNKNOWN, OutcomeStatus.CONFLICT)
_DONE = (200, 201, 204)
_SEEN = "no answer said so, but the row holds the change"
_UNTOLD = "the driver says nothing of it"
_APPLIED = Outcome(change=0, status=OutcomeStatus.APPLIED)


class NotSentError(Exception):
    """A change is not sent; the message says why.

    Attributes:
        status: The outcome of the change: refused, skipped or in conflict.
        holds: In a conflict: the row is known to hold what the change would write.
    """

    def __init__(self, reason: str, *, status: OutcomeStatus = OutcomeStatus.REFUSED, holds: bool = False) -> None:
        super().__init__(reason)
        self.status, self.holds = status, holds


def row_of(change: Change) -> RowId | None:
    """Return the id of the row that a change is about; None for a drop, and for a row without an id."""
    if isinstance(change, Drop):
        return None
    return (change.id if isinstance(change, Insert) else change.key.id) or None


def typed(values: Mapping[str, object], convert: Callable[[str, object], T]) -> dict[str, T]:
    """Convert the values of a row, and report all faults at once.

    Args:
        values: The values by column name.
        convert: Converts one value of a column; raises ValueError or NotSentError with the reason against it.

    Raises:
        NotSentError: Some values do not fit; refused, unless all errors of `convert` have the same other status.
    """
    converted: dict[str, T] = {}
    faults: list[NotSentError] = []
    for name, value in values.items():
        try:
            converted[name] = convert(name, value)
        except NotSentError as error:
            faults.append(error)
        except ValueError as error:
            faults.append(NotSentError(f"{name}: {error}"))
    if faults:
        statuses = {fault.status for fault in faults}
        status = statuses.pop() if len(statuses) == 1 else OutcomeStatus.REFUSED
        raise NotSentError("; ".join(map(str, faults)), status=status)
    return converted


class PlanDraft(msgspec.Struct):
    """A plan while it is made.

    >>> from dragoman_api import HttpRequest
    >>> draft = PlanDraft([Drop("a"), Drop("b")])
    >>> with draft.judging(0):
    ...     draft.send(HttpRequest("DELETE", "/a"), 0)
    >>> with draft.judging(1):
    ...     raise NotSentError("'b' is an alias")
    >>> draft.plan().refusals[0].reason
    "'b' is an alias"

    Attributes:
        changes: The changes of the plan.
        planned: The requests so far, in their order.
        notes: Remarks by code, object and column, each once.
    """

    changes: Sequence[Change] | InsertBatch
    planned: list[PlannedRequest] = msgspec.field(default_factory=list)
    notes: dict[tuple[str, str, str | None], Note] = msgspec.field(default_factory=dict)
    _refused: dict[int, Outcome] = msgspec.field(default_factory=dict)

    def send(
        self,
        request: HttpRequest,
        *changes: int,
        statement: str = "",
        guard: Mapping[str, int | str] | None = None,
        rows: Sequence[Sequence[int]] = (),
    ) -> None:
        """Plan one request that carries out some changes of one row, a drop, or the changes of several `rows`."""
        by_row, guard = [*map(list, rows)], dict(guard or {})
        numbers = [*changes, *chain.from_iterable(by_row)]
        self.planned.append(
            PlannedRequest(request=request, changes=numbers, rows=by_row, statement=statement, guard=guard)
        )

    def refuse(
        self, change: int, reason: str, status: OutcomeStatus = OutcomeStatus.REFUSED, *, holds: bool = False
    ) -> None:
        """Record that a change is not sent."""
        key = row_of(self.changes[change])
        self._refused[change] = Outcome(change=change, status=status, id=key, reason=reason, holds=holds)

    def note(self, code: str, about: str, reason: str, *, column: str | None = None) -> None:
        """Add a remark, unless there is one of that code about the same thing, or about the same column of it."""
        self.notes.setdefault((code, about, column), Note(code=code, reason=reason, column=column))

    def judging(self, *changes: int) -> Judging:
        """Plan some changes in a `with` block: an error that is about them refuses only them.

        These are NotSentError, ValueError, and the errors for queries, rights, and missing objects and rows.
        """
        return Judging(self, changes)

    def plan(self, undo: Sequence[Change] = ()) -> Plan:
        """Return the plan.

        Raises:
            RuntimeError: A change has neither a request nor an outcome, or more than one: a fault of the driver.
        """
        numbers = [*(number for request in self.planned for number in request.changes), *self._refused]
        if sorted(numbers) != [*range(len(self.changes))]:
            raise RuntimeError(f"{len(self.changes)} changes have the requests and outcomes {sorted(numbers)}")
        refusals = [self._refused[number] for number in sorted(self._refused)]
        return Plan(planned=self.planned, refusals=refusals, notes=[*self.notes.values()], undo=list(undo))


class Judging(msgspec.Struct, frozen=True):
    """A `with` block of `PlanDraft.judging`, in which some changes are planned."""

    draft: PlanDraft
    changes: tuple[int, ...]

    def __enter__(self) -> None:
        """Begin to plan them."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Refuse the changes if an error is about them, and return whether it is."""
        holds = isinstance(error, NotSentError) and error.holds
        if isinstance(error, NotSentError):
            reason, status = str(error), error.status
        elif isinstance(error, _JUDGED):
            reason, status = error.message, OutcomeStatus.REFUSED
        elif isinstance(error, ValueError):
            reason, status = str(error), OutcomeStatus.REFUSED
        else:
            return False
        for number in self.changes:
            self.draft.refuse(number, reason, status, holds=holds)
        return True


class _Row(msgspec.Struct):
    """What the changes of a set so far make of one row.

    Attributes:
        stored: Whether the row was there before the set; None if a replacing insert leaves that open.
        whole: The last insert, if the row was written as a whole.
        values: The values of updates, or of an insert.
        gone: The last change deletes it.
    """

    key: RowKey
    stored: bool | None
    whole: Insert | None = None
    values: Values = msgspec.field(default_factory=dict)
    gone: bool = False
    numbers: list[int] = msgspec.field(default_factory=list)

    def expect(self, guard: Mapping[str, int | str]) -> None:
        """Keep the guard of a change; all guards of a row were read before the set, so they are the same."""
        if not guard or guard == self.key.guard:
            return
        if self.key.guard or (self.numbers and self.stored is False):
            reason = "an earlier change of the set has another guard for this row"
            raise NotSentError(reason, status=OutcomeStatus.CONFLICT)
        self.key = replace(self.key, guard=dict(guard))

    def insert(self, change: Insert) -> None:
        if self.numbers and not self.gone and not change.replace:
            raise NotSentError("an earlier change of the set writes this row; 'replace' would overwrite it")
        self.expect(change.guard)
        self.whole, self.values, self.gone = change, dict(change.values), False

    def update(self, change: Update) -> None:
        if self.gone:
            raise NotSentError("an earlier change of the set deletes this row")
        if self.whole is not None and self.whole.document is not None:
            raise NotSentError("an earlier change of the set writes this row as a document; put the values there")
        self.expect(change.key.guard)
        self.values |= change.values

    def delete(self, change: Delete) -> None:
        if self.gone:
            raise NotSentError("an earlier change of the set deletes this row")
        self.expect(change.key.guard)
        self.gone = True

    def change(self) -> Change | None:
        """Return the one change that does the same; None if nothing is left to do."""
        if self.gone:
            return None if self.stored is False else Delete(self.key)
        if self.whole is None:
            return Update(self.key, self.values)
        exists = self.stored is not False
        return replace(self.whole, values=self.values, replace=exists, guard=self.key.guard if exists else {})


class Folded(msgspec.Struct, frozen=True):
    """One change that does what several changes of one row do in their order.

    Attributes:
        change: The change.
        numbers: The numbers of those it stands for, in their order.
    """

    change: Change
    numbers: tuple[int, ...]


def fold(draft: PlanDraft, *, keyed: Callable[[Insert], Insert] | None = None) -> list[Folded]:
    """Fold the changes of each row into one, so that no guard fails because of an earlier change of the same set.

    A change that contradicts an earlier one is refused in the draft, one that a later one undoes is skipped there;
    every other one is in exactly one of the results. New rows without an id stay as they are. A guard of an insert that
    names no row to replace is refused: no server could compare it.

    >>> key = RowKey("books", "1", guard={"rev": "1-a"})
    >>> draft = PlanDraft([Update(key, {"n": 1}), Update(key, {"m": 2}), Drop("old")])
    >>> [(each.numbers, type(each.change).__name__) for each in fold(draft)]
    [((0, 1), 'Update'), ((2,), 'Drop')]

    Args:
        draft: The plan that is made.
        keyed: Returns an insert with its key columns as `id`, by `Insert.with_key`; an error that `PlanDraft.judging`
            knows refuses only that insert. None for a server whose keys are no columns.

    Returns:
        Folded changes in the order of their first ones.
    """
    rows: dict[Hashable, _Row] = {}
    alone: list[Folded] = []
    dropped: set[str] = set()
    for number, change in enumerate(draft.changes):
        with draft.judging(number):
            if object_of(change) in dropped:
                raise NotSentError(f"an earlier change of the set drops '{object_of(change)}'")
            if isinstance(change, Insert) and keyed is not None:
                change = keyed(change)
            if isinstance(change, Insert) and change.guard and not (change.replace and change.id):
                raise NotSentError("a guard needs a stored row; give the row's id, and 'replace' to overwrite it")
            if isinstance(change, Drop):
                dropped.add(change.object)
                alone.append(Folded(change, (number,)))
            elif isinstance(change, Insert) and not change.id:
                alone.append(Folded(change, (number,)))
            else:
                _add(rows, number, change)
    folded = alone
    for row in rows.values():
        if (net_change := row.change()) is not None:
            folded.append(Folded(net_change, tuple(row.numbers)))
            continue
        for number in row.numbers:
            draft.refuse(number, _UNDONE, OutcomeStatus.SKIPPED)
    return sorted(folded, key=lambda folded_change: folded_change.numbers)


def _add(rows: dict[Hashable, _Row], number: int, change: Insert | Update | Delete) -> None:
    if isinstance(change, Insert):
        key = RowKey(change.object, change.id or "", change.tenant or change.routing)
    elif change.key.id:
        key = replace(change.key, guard={})
    else:
        raise NotSentError("the row has no id, so no request can name it", status=OutcomeStatus.SKIPPED)
    address = (key.object, tuple(key.id) if isinstance(key.id, list) else key.id, key.routing)
    stored = (None if change.replace else False) if isinstance(change, Insert) else True
    row = rows.get(address) or _Row(key, stored)
    if isinstance(change, Insert):
        row.insert(change)
    elif isinstance(change, Update):
        row.update(change)
    else:
        row.delete(change)
    row.numbers.append(number)
    rows[address] = row


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


@contextmanager
def after_writing() -> Iterator[None]:
    """Mark errors of what is sent after a write, such as a look at its rows: the write itself was sent."""
    try:
        yield
    except DragomanError as error:
        error.details["sent"] = True
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
        """The outcomes that were told, in the order in which they were told first; those of `applied` are joined."""
        outcomes: list[Outcome] = []
        first = following = -1  # of a run of applied rows
        for number, outcome in self._by_change.items():
            if outcome is not _APPLIED:
                outcomes.append(outcome)
            elif number == following:
                following += 1
            else:
                if following > first:
                    outcomes.append(replace(_APPLIED, change=first, rows=following - first))
                first, following = number, number + 1
        if following > first:
            outcomes.append(replace(_APPLIED, change=first, rows=following - first))
        return outcomes

    def of(self, change: int) -> Outcome:
        """Return the outcome of a change. Raises KeyError if none was told."""
        return self._by_change[change]

    def applied(self, changes: Iterable[int]) -> None:
        """Record that rows of a load were applied as asked; `told` joins them."""
        self._by_change.update(dict.fromkeys(changes, _APPLIED))

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

    async def look(
        self,
        rows: Iterable[tuple[RowId, Sequence[int]]],
        holding: Callable[[list[RowId]], Awaitable[Container[RowId]]],
    ) -> None:
        """Look at the rows whose outcome is unknown: a row that holds what was to be written has it applied.

        Any other row stays unknown: its request may still be carried out. One in a conflict says if it holds it.

        Args:
            rows: The ids of the rows of a request, each with its changes.
            holding: Reads rows, and returns the ids of those that are as the request leaves them.
        """
        named_rows = ((key, numbers, self._by_change.get(numbers[0])) for key, numbers in rows)
        unclear = [
            (key, numbers, before) for key, numbers, before in named_rows if before and before.status in _UNCLEAR
        ]
        for key, numbers, before in unclear:
            self.tell(numbers, replace(before, id=key))
        try:
            written_rows = await holding([key for key, _, _ in unclear]) if unclear else ()
        except (DragomanError, *MISREAD):
            return
        for key, numbers, before in unclear:
            if key in written_rows and before.status is OutcomeStatus.UNKNOWN:
                self.tell(numbers, Outcome(change=0, status=OutcomeStatus.APPLIED, id=key, reason=_SEEN))
            elif key in written_rows:
                self.tell(numbers, replace(before, id=key, holds=True))

    def of_plan(self, plan: Plan) -> list[Outcome]:
        """Return one outcome for each planned change, unknown where none was told."""
        planned = (number for request in plan.planned for number in request.changes)
        untold = Outcome(change=0, status=OutcomeStatus.UNKNOWN, reason=_UNTOLD)
        return [replace(self._by_change.get(number, untold), change=number) for number in dict.fromkeys(planned)]


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
