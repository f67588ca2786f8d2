"""Apply a plan: send its requests, and return the outcome of each change."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    DragomanError,
    Outcome,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    QueryError,
    RowKey,
)
from dragoman_api.changes import InsertBatch
from dragoman_api.errors import RowNotFoundError
from dragoman_api.kit.exchanges import Exchange, ask
from dragoman_api.kit.row_changes import Outcomes, before_writing
from dragoman_querydsl import objects, protocol
from dragoman_querydsl.search import Count

from . import requests
from .planned_rows import digest, loaded, read_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dragoman_api.replies import Reply
    from dragoman_querydsl.search import StoredHit

_SEQ_NO = re.compile(r"required seqNo \[(-?\d+)\].*current document has seqNo \[(\d+)\]")
_GONE = "the row was deleted since it was read"
_RESULTS = {
    "create": ("created",),
    "index": ("created", "updated"),
    "update": ("updated", "noop"),
    "delete": ("deleted",),
}
_CREATED, _REPLACED = _RESULTS["create"], _RESULTS["index"]
_AGAIN = "an earlier attempt was turned away, or its answer was lost; the row holds the change"
_SAME = "the row holds this change: somebody else made it as well, or it was sent twice on its way"
_UNREAD = "the row cannot be read"


class _Shards(msgspec.Struct, frozen=True, gc=False):
    failed: int = 0


class _Written(msgspec.Struct, frozen=True, gc=False):
    """The answer to one write; in a bulk request each has its own status or error."""

    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")
    result: str = ""
    seq_no: Count | None = msgspec.field(name="_seq_no", default=None)
    primary_term: Count | None = msgspec.field(name="_primary_term", default=None)
    shards: _Shards = msgspec.field(name="_shards", default=_Shards())
    status: int = 0
    error: dict[str, Any] | str | None = None
    acknowledged: bool = False


class _Item(msgspec.Struct, frozen=True, gc=False):
    """The answer to one action of a bulk request, under the action's name."""

    create: _Written | None = None
    index: _Written | None = None
    update: _Written | None = None
    delete: _Written | None = None

    @property
    def written(self) -> list[_Written]:
        return [answer for answer in (self.create, self.index, self.update, self.delete) if answer is not None]


class _Bulk(msgspec.Struct, frozen=True):
    items: list[_Item]


class _Action(msgspec.Struct, frozen=True, gc=False):
    id: str | None = msgspec.field(name="_id", default=None)
    routing: str | None = None


class _Head(msgspec.Struct, frozen=True, gc=False):
    """The first line of a row of a bulk request."""

    create: _Action | None = None
    index: _Action | None = None
    update: _Action | None = None
    delete: _Action | None = None


_Answer = tuple[_Written, protocol.ErrorAnswer | None]

_head = msgspec.json.Decoder(_Head)
_bulk = msgspec.json.Decoder(_Bulk)


class _Row(msgspec.Struct):
    """One row of a planned request."""

    changes: list[int]
    lines: str
    action: str
    index: str
    id: str | None
    routing: str | None
    body: str | None


def _rows(planned: PlannedRequest) -> Iterator[_Row]:
    request, (index, *parts) = planned.request, protocol.segments(planned.request.path)
    if not planned.rows:
        action = "delete" if request.method == "DELETE" else "update" if parts[0] == "_update" else "index"
        routing = parse_qs(request.path.partition("?")[2]).get("routing", [None])[0]
        yield _Row(planned.changes, "", action, index, next(iter(parts[1:]), None), routing, request.body)
        return
    lines = iter((request.body or "").split("\n"))  # not splitlines: JSON text may hold other line separators
    for changes in planned.rows:
        action, address = _action(head := next(lines))
        body = None if action == "delete" else next(lines)
        lines_text = f"{head}\n" if body is None else f"{head}\n{body}\n"
        yield _Row(changes, lines_text, action, index, address.id, address.routing, body)


def _action(head: str) -> tuple[str, _Action]:
    head_line = _head.decode(head)
    addresses = ((name, getattr(head_line, name)) for name in ("create", "index", "update", "delete"))
    return next((name, address) for name, address in addresses if address is not None)


class Sender:
    """A plan while it is sent.

    Attributes:
        waiting: Requests that the server was too busy for; a retried bulk request holds only those rows.
    """

    def __init__(self, plan: Plan) -> None:
        self.waiting = plan.planned
        self._outcomes = Outcomes()
        plain = plan.bulk and not plan.undo  # with an undo, ids are made by the plan
        self._batch = plan.changes if plain and isinstance(plan.changes, InsertBatch) else None
        self._indices: dict[str, Collection[str]] = {}  # the concrete indices behind a name, empty if hidden
        self._again = False

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcome of each change; one that still waits counts as failed."""
        return self._outcomes.told

    def send(self) -> Exchange[bool]:
        """Send the waiting requests exactly as planned; return whether a busy server turned some away.

        Raises:
            ConnectionFailedError: The first request was not sent; later failures become outcomes.
        """
        planned, self.waiting = self.waiting, []
        for request in planned:
            with self._outcomes.sending(request.changes):
                yield from self._send(request)
                continue
            yield from self._lost(list(_rows(request)))
        self._again = True
        return bool(self.waiting)

    def _send(self, planned: PlannedRequest) -> Exchange[None]:
        index = protocol.segments(planned.request.path)[0]
        if planned.request.method != "DELETE" and index not in self._indices:
            with before_writing():  # the write would create an index that was dropped since the plan
                self._indices[index] = (yield from objects.index_settings(index)) or ()
        reply = yield from ask(planned.request)
        answers = _answers(planned, reply)
        special: Sequence[int] = range(len(answers))
        if self._batch is not None and planned.rows:
            special = self._take_plain(self._batch, index, planned, answers)
        if special:
            rows = list(_rows(planned))
            yield from self._take(planned, [(rows[at], *answers[at]) for at in special])

    def _take_plain(
        self, batch: InsertBatch, index: str, planned: PlannedRequest, answers: Sequence[_Answer]
    ) -> Sequence[int]:
        """Take the answers for rows of a load that were written as asked; return the places of the others.

        This is what `_judge` and `_applied` see in each of them.
        """
        ids = batch.ids or [None] * len(batch)
        concrete = index in self._indices.get(index, (index,))
        applied: list[int] = []
        special: list[int] = []
        for at, (number, (written, fault)) in enumerate(zip(planned.changes, answers, strict=True)):
            row_id = ids[number]
            results = _REPLACED if batch.replace and batch.replace[number] else _CREATED
            if (
                fault is None
                and written.id
                and (row_id is None or written.id == row_id)
                and (written.index == index or not concrete)
                and written.result in results
                and written.error is None
                and not written.shards.failed
            ):
                applied.append(number)
            else:
                special.append(at)
        self._outcomes.applied(applied)
        return special

    def _take(self, planned: PlannedRequest, answered: Sequence[tuple[_Row, *_Answer]]) -> Exchange[None]:
        """Take the answers for some rows of a request."""
        busy, unclear = [], []
        for row, written, fault in answered:
            outcome = _failure(row, written, fault) if fault and _names_row(row, written) else self._judge(row, written)
            if fault and fault.busy and outcome.status is not OutcomeStatus.UNKNOWN:
                outcome = replace(outcome, busy=True)
                busy.append(row)
            if outcome.status is OutcomeStatus.UNKNOWN or (fault and fault.conflict):
                unclear.append(row)
            self._outcomes.tell(row.changes, outcome)
        if busy:
            body = "".join(row.lines for row in busy)
            lines = requests.bulk_request(replace(planned.request, body=body), [row.changes for row in busy])
            self.waiting.append(lines if planned.rows else planned)
        if unclear:
            yield from self._look(unclear)

    def _judge(self, row: _Row, written: _Written) -> Outcome:
        """Return the outcome of a successful answer; one that does not name the row proves nothing."""
        concrete = row.index in self._indices.get(row.index, (row.index,))  # an answer names a deleted row's index
        matches = written.id and _names_row(row, written) and (written.index == row.index or not concrete)
        drop = row.action == "delete" and row.id is None
        if drop and written.acknowledged:
            return Outcome(change=0, status=OutcomeStatus.APPLIED)
        if not drop and matches and written.result in _RESULTS[row.action] and written.error is None:
            return _applied(row, written)
        answer_text = f"{written.index}/{written.id} {written.result}".strip(" /") or "nothing of it"
        return Outcome(change=0, status=OutcomeStatus.UNKNOWN, id=row.id, reason=f"the answer says {answer_text}")

    def _lost(self, rows: list[_Row]) -> Exchange[None]:
        """Name the rows of a request that got no answer, and read them if it may have been applied."""
        for row in rows:
            self._outcomes.tell(row.changes, replace(self._outcomes.of(row.changes[0]), id=row.id))
        if self._outcomes.of(rows[0].changes[0]).status is OutcomeStatus.UNKNOWN:
            yield from self._look(rows)

    def _look(self, rows: list[_Row]) -> Exchange[None]:
        """Read rows of unknown outcome, and those in a conflict, perhaps with an earlier attempt of the same write."""
        keyed_rows = [(row, row.id) for row in rows if row.id is not None]
        hits: list[tuple[StoredHit, bool] | DragomanError] = []
        with suppress(DragomanError):
            hits = (
                (yield from read_rows(keyed_rows[0][0].index, [(key, row.routing) for row, key in keyed_rows]))
                if keyed_rows
                else []
            )
        for (row, key), hit in zip_longest(keyed_rows, hits):
            before, holds = self._outcomes.of(row.changes[0]), False
            unknown = before.status is OutcomeStatus.UNKNOWN
            with suppress(ValueError, RecursionError):  # too deep, or too many digits, to compare
                holds = _holds(row, hit)
            if holds and (self._again or unknown):
                at = hit[0].key if isinstance(hit, tuple) else None
                seen = Outcome(change=0, status=OutcomeStatus.APPLIED, id=key, reason=_AGAIN, key=at)
                self._outcomes.tell(row.changes, seen)
            elif not unknown and (holds or not isinstance(hit, (tuple, RowNotFoundError))):
                reason = f"{before.reason}, and {_SAME if holds else _UNREAD}"
                unsure = replace(before, status=OutcomeStatus.UNKNOWN, reason=reason, holds=holds)
                self._outcomes.tell(row.changes, unsure)


def _answers(planned: PlannedRequest, reply: Reply) -> list[_Answer]:
    """Return the answer for each row, and its error if the row was not written."""
    if not 200 <= reply.status < 300:
        written = _Written()
        with suppress(QueryError):  # a deletion of a missing row says `not_found`, and has no error
            written = protocol.parsed(reply.body, _Written)
        return [(written, protocol.read(reply))] * len(planned.by_row)
    try:
        if not planned.rows:
            return [(protocol.decode(reply, _Written), None)]
        answers = [written for item in protocol.decode(reply, _bulk).items for written in item.written]
    except QueryError as error:
        error.details["sent"] = True
        raise
    if len(answers) != len(planned.rows) or not all(answer.status for answer in answers):
        number = sum(answer.status > 0 for answer in answers)
        reason = f"the answer has the outcomes of {number} rows instead of {len(planned.rows)}"
        raise QueryError(reason, details={"sent": True})
    return [
        (answer, None if 200 <= answer.status < 300 else protocol.describe(answer.status, answer.error))
        for answer in answers
    ]


def _names_row(row: _Row, written: _Written) -> bool:
    """Return whether an answer is about a row; an answer to a failed request names no row."""
    return row.id is None or written.id in ("", row.id)


def _applied(row: _Row, written: _Written) -> Outcome:
    reasons = ["nothing changed: the values were there already"] if written.result == "noop" else []
    reasons += [f"{written.shards.failed} copies of the shard failed to store it"] if written.shards.failed else []
    guard: dict[str, int | str] = {}
    if written.seq_no is not None and written.primary_term is not None:
        guard = {"seq_no": written.seq_no, "primary_term": written.primary_term}
    gone = written.result == "deleted"
    key = None if gone else RowKey(written.index, written.id, row.routing, guard)
    return Outcome(change=0, status=OutcomeStatus.APPLIED, id=written.id, reason="; ".join(reasons), key=key)


def _failure(row: _Row, written: _Written, fault: protocol.ErrorAnswer) -> Outcome:
    status, reason = OutcomeStatus.CONFLICT, _GONE
    if fault.unsure:
        status, reason = OutcomeStatus.UNKNOWN, protocol.exception(fault).message
    elif fault.conflict and "document already exists" in fault.text:
        reason = "a row with this id exists already"
    elif fault.conflict and (moved := _SEQ_NO.search(fault.text)):
        reason = f"changed since it was read (seq_no {moved[1]} → {moved[2]})"
    elif fault.conflict and "no document was found" not in fault.text:
        reason = fault.text
    elif not (fault.conflict or fault.type == "document_missing_exception" or written.result == "not_found"):
        status, reason = OutcomeStatus.FAILED, protocol.exception(fault).message
    return Outcome(change=0, status=status, id=row.id, reason=reason)


def _holds(row: _Row, hit: tuple[StoredHit, bool] | DragomanError | None) -> bool:
    """Return whether a row is as the write should have left it."""
    if not isinstance(hit, tuple):
        return row.action == "delete" and isinstance(hit, RowNotFoundError)
    source = bytes(hit[0].source)
    if row.action == "delete" or not source or row.body is None:
        return False
    document = row.body.encode()
    try:
        if row.action == "update":
            document = json.dumps(_merged(loaded(source), loaded(document)["doc"])).encode()
        return digest(source) == digest(document)
    except ValueError:
        return False


def _merged(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{name: _merged(old.get(name), value) for name, value in new.items()}}
