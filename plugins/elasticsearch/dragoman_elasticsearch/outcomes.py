"""Sends a plan and tells what became of each change."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    ConnectionFailedError,
    DragomanError,
    Outcome,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    QueryError,
    RowKey,
)
from dragoman_api.errors import RowNotFoundError

from . import faults, routes, writes
from .changes import settings
from .rows import digest, find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.exchanges import Reply

    from .documents import Stored
    from .exchange import Exchange

_SEQ_NO = re.compile(r"required seqNo \[(-?\d+)\].*current document has seqNo \[(\d+)\]")
_DOUBT = "it is not known whether it was applied: "
_GONE = "the row was deleted since it was read"
_FAILED = OutcomeStatus.FAILED
_AGAIN = "an earlier attempt was turned away, or its answer was lost; the row holds the change"


class _Shards(msgspec.Struct, frozen=True):
    failed: int = 0


class _Written(msgspec.Struct, frozen=True):
    """The answer to one write; in a bulk request it has a status or an error of its own."""

    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")
    result: str = ""
    seq_no: int | None = msgspec.field(name="_seq_no", default=None)
    primary_term: int | None = msgspec.field(name="_primary_term", default=None)
    shards: _Shards = msgspec.field(name="_shards", default=_Shards())
    status: int = 0
    error: dict[str, Any] | None = None


class _Bulk(msgspec.Struct, frozen=True):
    items: list[dict[str, _Written]]


class _Action(msgspec.Struct, frozen=True):
    id: str | None = msgspec.field(name="_id", default=None)
    routing: str | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a plan, as its request shows it."""

    changes: list[int]
    lines: str
    action: str
    index: str
    id: str | None
    routing: str | None
    body: str | None


def _rows(planned: PlannedRequest) -> Iterator[_Row]:
    request, (index, *parts) = planned.request, routes.segments(planned.request.path)
    if not planned.rows:
        action = "delete" if request.method == "DELETE" else "update" if parts[0] == "_update" else "index"
        routing = parse_qs(request.path.partition("?")[2]).get("routing", [None])[0]
        yield _Row(planned.changes, "", action, index, next(iter(parts[1:]), None), routing, request.body)
        return
    lines = iter((request.body or "").split("\n"))  # a text may hold other characters that Python ends a line at
    for changes in planned.rows:
        [(action, about)] = msgspec.json.decode(head := next(lines), type=dict[str, _Action]).items()
        body = None if action == "delete" else next(lines)
        told = f"{head}\n" if body is None else f"{head}\n{body}\n"
        yield _Row(changes, told, action, index, about.id, about.routing, body)


class Sending:
    """A plan on its way.

    Attributes:
        waiting: What the server was too busy for; a bulk request that is sent again holds only those rows.
    """

    def __init__(self, plan: Plan) -> None:
        self.waiting = plan.planned
        self._outcomes: dict[int, Outcome] = {}
        self._seen: set[str] = set()
        self._again = False

    @property
    def outcomes(self) -> list[Outcome]:
        """Give what became of each change; one that still waits has failed."""
        return list(self._outcomes.values())

    def send(self) -> Exchange[bool]:
        """Send what waits, exactly as planned, and tell whether some of it was turned away by a busy server.

        Raises:
            ConnectionFailedError: The first request did not get there; in any other case the outcomes tell.
        """
        planned, self.waiting = self.waiting, []
        for each in planned:
            try:
                yield from self._send(each)
            except DragomanError as error:
                yield from self._lost(list(_rows(each)), error)
        self._again = True
        return bool(self.waiting)

    def _send(self, planned: PlannedRequest) -> Exchange[None]:
        rows = list(_rows(planned))
        index = rows[0].index
        if planned.request.method != "DELETE" and index not in self._seen:
            try:
                yield from settings(index)  # it may have been dropped since the plan, and the write would revive it
            except DragomanError as error:
                error.details["sent"] = False  # the write, that is
                raise
            self._seen.add(index)
        reply = yield planned.request
        busy, doubted = [], []
        for row, (written, fault) in zip(rows, _answers(planned, reply), strict=True):
            outcome = _failure(row, fault) if fault else _applied(row, written)
            if fault and fault.busy:
                busy.append(row)
            if fault and fault.conflict and self._again:
                doubted.append(row)
            self._tell(row, outcome)
        if busy:
            body = "".join(row.lines for row in busy)
            lines = writes.joined(replace(planned.request, body=body), [row.changes for row in busy])
            self.waiting.append(lines if planned.rows else planned)
        if doubted:
            yield from self._look(doubted)

    def _tell(self, row: _Row, outcome: Outcome) -> None:
        self._outcomes |= {number: replace(outcome, change=number) for number in row.changes}

    def _lost(self, rows: list[_Row], error: DragomanError) -> Exchange[None]:
        """Tell of a request that has no answer; one that was sent may have been carried out."""
        sent = bool(error.details.get("sent"))
        if isinstance(error, ConnectionFailedError) and not self._outcomes and not sent:
            raise error
        reason = f"{_DOUBT if sent else 'not sent: '}{error.message}"
        for row in rows:
            self._tell(row, Outcome(change=0, status=_FAILED, id=row.id, reason=reason, doubt=sent))
        if sent:
            yield from self._look(rows)

    def _look(self, rows: list[_Row]) -> Exchange[None]:
        """Tell of rows that hold their change after all."""
        named = [(row, row.id) for row in rows if row.id is not None]
        found: list[tuple[Stored, bool] | DragomanError] = []
        with suppress(DragomanError):
            found = (yield from find(named[0][0].index, [(key, row.routing) for row, key in named])) if named else []
        for (row, _), hit in zip(named, found, strict=False):
            if _holds(row, hit):
                key = hit[0].key if isinstance(hit, tuple) else None
                self._tell(row, Outcome(change=0, status=OutcomeStatus.APPLIED, id=row.id, reason=_AGAIN, key=key))


def _answers(planned: PlannedRequest, reply: Reply) -> list[tuple[_Written, faults.Fault | None]]:
    """Give for each row what was answered, and its fault if it was not written."""
    if not 200 <= reply.status < 300:
        return [(_Written(), faults.read(reply))] * len(planned.by_row)
    try:
        if not planned.rows:
            return [(faults.decode(reply, _Written), None)]
        told = [written for item in faults.decode(reply, _Bulk).items for written in item.values()]
    except QueryError as error:
        error.details["sent"] = True
        raise
    if len(told) != len(planned.rows):
        reason = f"the answer speaks of {len(told)} rows in place of {len(planned.rows)}"
        raise QueryError(reason, details={"sent": True})
    return [(each, None if 200 <= each.status < 300 else faults.describe(each.status, each.error)) for each in told]


def _applied(row: _Row, written: _Written) -> Outcome:
    if not written.id:  # a drop
        return Outcome(change=0, status=OutcomeStatus.APPLIED)
    reasons = ["nothing changed: the values were there already"] if written.result == "noop" else []
    reasons += [f"{written.shards.failed} copies of the shard failed to store it"] if written.shards.failed else []
    guard: dict[str, int | str] = {}
    if written.seq_no is not None and written.primary_term is not None:
        guard = {"seq_no": written.seq_no, "primary_term": written.primary_term}
    gone = written.result == "deleted"
    key = None if gone else RowKey(written.index, written.id, row.routing, guard)
    return Outcome(change=0, status=OutcomeStatus.APPLIED, id=written.id, reason="; ".join(reasons), key=key)


def _failure(row: _Row, fault: faults.Fault) -> Outcome:
    status, reason = OutcomeStatus.CONFLICT, _GONE
    if fault.conflict and "document already exists" in fault.text:
        reason = "a row with this id exists already"
    elif fault.conflict and (moved := _SEQ_NO.search(fault.text)):
        reason = f"changed since it was read (seq_no {moved[1]} → {moved[2]})"
    elif fault.conflict and "no document was found" not in fault.text:
        reason = fault.text
    elif not (fault.conflict or fault.type == "document_missing_exception" or (fault.status == 404 and not fault.type)):
        status, reason = _FAILED, faults.error(fault).message
    return Outcome(change=0, status=status, id=row.id, reason=reason)


def _holds(row: _Row, hit: tuple[Stored, bool] | DragomanError) -> bool:
    """Tell whether a row is as a write was to leave it."""
    if not isinstance(hit, tuple):
        return row.action == "delete" and isinstance(hit, RowNotFoundError)
    source = bytes(hit[0].source)
    if row.action == "delete" or not source or row.body is None:
        return False
    wanted = row.body.encode()
    if row.action == "update":
        wanted = json.dumps(_merged(json.loads(source), json.loads(wanted)["doc"])).encode()
    return digest(source) == digest(wanted)


def _merged(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{name: _merged(old.get(name), value) for name, value in new.items()}}
