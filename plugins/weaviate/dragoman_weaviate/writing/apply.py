"""Apply a plan: send exactly its requests, and return the outcome of each change."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    DragomanError,
    HttpRequest,
    Insert,
    Outcome,
    OutcomeStatus,
    Plan,
    QueryError,
)
from dragoman_api.changes import Drop
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.kit.row_changes import Outcomes, before_writing
from dragoman_weaviate import protocol, stored_objects
from dragoman_weaviate.columns import grid_columns
from dragoman_weaviate.protocol import object_path

from . import batches, before_images, edited_values
from .batches import BatchRow, Body
from .plan import other_holders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_api import PlannedRequest
    from dragoman_api.changes import Change
    from dragoman_api.replies import Reply
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.protocol import Features

_GONE = "the row was deleted since it was read"
_EXISTS = "a row with this uuid exists already"
_HELD = "the server reported a failure, or its answer was lost; the row holds the change"


class Sender:
    """A plan while it is sent.

    Attributes:
        waiting: Batches that the server was too busy for; a request of one row is sent once.
    """

    def __init__(self, plan: Plan, features: Features) -> None:
        self.waiting = plan.planned
        self._changes, self._features, self._joins = plan.changes, features, plan.bulk
        self._outcomes = Outcomes()
        self.views: dict[str, View] = {}
        self.written: set[tuple[str, str, str | None]] = set()

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
        for planned_request in planned:
            if planned_request.rows:
                yield from self._send_batch(planned_request)
                continue
            changes = [self._changes[number] for number in planned_request.changes]
            key = None if isinstance(changes[0], Drop) else _row(planned_request.request).id or None
            with self._outcomes.sending(planned_request.changes, row=key):
                outcome = yield from self._carry_out(planned_request, changes)
                self._outcomes.tell(planned_request.changes, outcome)
        return bool(self.waiting)

    # batches

    def _send_batch(self, planned: PlannedRequest) -> Exchange[None]:
        rows: list[BatchRow] = []
        with self._outcomes.sending(planned.changes), before_writing():
            rows = yield from self._sendable(batches.rows_of(planned))
        unclear = yield from self._post(rows)
        if unclear:
            yield from self._look(unclear)

    def _sendable(self, rows: list[BatchRow]) -> Exchange[list[BatchRow]]:
        """Return the rows that may be sent; tell why the others may not."""
        free: list[BatchRow] = []
        for row in rows:
            if reason := (yield from self._unknown(row.body)):
                self._tell(row, OutcomeStatus.CONFLICT, reason)
            else:
                free.append(row)
        new = [row for row in free if batches.must_be_new(self._changes[row.changes[0]])]
        if not new:
            return free
        body = new[0].body
        view = yield from self._view(body.collection)
        taken_ids = yield from batches.taken(view, [row.body.id for row in new], body.tenant)
        existing = [row for row in new if row.body.id in taken_ids]
        for row, holds in zip(existing, (yield from self._check_stored(existing)), strict=True):
            self._tell(row, OutcomeStatus.CONFLICT, _EXISTS, holds=bool(holds))
        return [row for row in free if row.body.id not in taken_ids or row not in existing]

    def _post(self, rows: list[BatchRow]) -> Exchange[list[BatchRow]]:
        """Send rows, and return those of which the answer leaves open what became of them."""
        if not rows:
            return []
        planned = batches.planned_again(rows)
        halves: list[list[BatchRow]] = []
        with self._outcomes.sending(planned.changes):
            reply = yield from ask(planned.request)
            if 200 <= reply.status < 300:
                for row, outcome in zip(rows, batches.outcomes(rows, reply), strict=True):
                    if self._joins and outcome.status is OutcomeStatus.APPLIED:
                        self._outcomes.applied(row.changes)
                    else:
                        self._outcomes.tell(row.changes, outcome)
            elif reply.status in batches.SPLIT and len(rows) > 1:
                halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
            else:
                outcome = batches.refused(reply, busy=_busy(reply))
                for row in rows:
                    self._outcomes.tell(row.changes, replace(outcome, id=row.body.id))
                if outcome.busy:
                    self.waiting.append(planned)
                    return []
        unclear: list[BatchRow] = []
        for half in halves:
            unclear += yield from self._post(half)
        if halves:
            return unclear
        doubtful = (OutcomeStatus.UNKNOWN, OutcomeStatus.FAILED)
        return [row for row in rows if self._outcomes.of(row.changes[0]).status in doubtful]

    def _look(self, rows: list[BatchRow]) -> Exchange[None]:
        """Read rows of unknown outcome, and those that failed: the server may fail after it stored an object."""
        for row, holds in zip(rows, (yield from self._check_stored(rows)), strict=True):
            before = self._outcomes.of(row.changes[0])
            if holds:
                self._tell(row, OutcomeStatus.APPLIED, _HELD)
            elif holds is None and before.status is OutcomeStatus.FAILED:
                self._tell(row, OutcomeStatus.UNKNOWN, f"{before.reason}, and the row cannot be read")

    def _check_stored(self, rows: Sequence[BatchRow]) -> Exchange[list[bool | None]]:
        """Return for each row whether an object with its id holds what was to be written; None if it cannot be read."""
        try:
            replies = yield [
                get(object_path(row.body.collection, row.body.id), tenant=row.body.tenant, include="vector")
                for row in rows
            ]
        except DragomanError:
            return [None] * len(rows)
        return [_holds(row.body, reply) for row, reply in zip(rows, replies, strict=True)]

    def _tell(self, row: BatchRow, status: OutcomeStatus, reason: str, *, holds: bool = False) -> None:
        outcome = Outcome(change=0, status=status, id=row.body.id, reason=reason, holds=holds)
        self._outcomes.tell(row.changes, outcome)

    # requests of one row

    def _carry_out(self, planned: PlannedRequest, changes: Sequence[Change]) -> Exchange[Outcome]:
        """Check that the row is unchanged, send the request, and return the outcome."""
        number, request = planned.changes[0], planned.request
        row = _row(request)
        if not isinstance(changes[0], Drop):
            with before_writing():
                reason = yield from self._stale(_guard(changes) or planned.guard, request, row)
            if reason:
                return Outcome(change=number, status=OutcomeStatus.CONFLICT, id=row.id or None, reason=reason)
        reply = yield from ask(request)
        outcome = _outcome(number, request, row, reply)
        if outcome.status is OutcomeStatus.CONFLICT and request.method == "POST" and row.id:
            [holds] = yield from self._check_stored([BatchRow([number], "", row)])
            outcome = replace(outcome, holds=bool(holds))
        if outcome.status is OutcomeStatus.APPLIED:
            self.written.add((row.collection, row.id, row.tenant))
        return outcome

    def _stale(self, guard: Mapping[str, int | str], request: HttpRequest, row: Body) -> Exchange[str]:
        """Return why a change no longer applies, checked just before it is sent: the server checks nothing (W23)."""
        if request.method != "DELETE" and (reason := (yield from self._unknown(row))):
            return reason
        if request.method == "POST" and not guard:
            return ""
        if before_images.SHA in guard:
            view = yield from self._view(row.collection)
            item = yield from before_images.read(view, row.id, row.tenant)
            if item is not None and before_images.guard_of(view, item) != guard:
                return "the row was changed after that change"
        else:
            reply = yield from ask(get(object_path(row.collection, row.id), tenant=row.tenant))
            item = stored_objects.read_one(reply, row.collection, row.id)
        if item is None:
            return _GONE
        expected = guard.get("lastUpdateTimeUnix")
        mine = (row.collection, row.id, row.tenant) in self.written
        if expected is not None and not mine and str(expected) != str(item.last_update_time_unix):
            return f"changed since it was read (lastUpdateTimeUnix {expected} → {item.last_update_time_unix})"
        if request.method == "DELETE" and not request.path.startswith(f"/v1/objects/{row.collection}/"):
            return (yield from other_holders(row.collection, row.id))
        return ""

    def _unknown(self, row: Body) -> Exchange[str]:
        """Check that collection and properties still exist: the server would create missing ones."""
        properties = (yield from self._view(row.collection)).collection.properties or []
        unknown = edited_values.unknown_keys(msgspec.json.decode(row.properties), properties)
        return f"the schema has no property {', '.join(unknown)} any more" if unknown else ""

    def _view(self, collection: str) -> Exchange[View]:
        if collection not in self.views:
            self.views[collection] = yield from grid_columns.view(collection, self._features)
        return self.views[collection]


def _holds(row: Body, reply: Reply) -> bool | None:
    """Return whether the stored object is the one that was to be written; None if the answer does not say it."""
    try:
        item = stored_objects.read_one(reply, row.collection, row.id)
    except DragomanError:
        return None
    return item is not None and stored_objects.same(item, row.properties, row.vector, row.vectors)


def _busy(reply: Reply) -> bool:
    """Return whether the server was too busy to begin; a 503 may come from a gateway after the work was done."""
    return reply.status == 429


def _guard(changes: Sequence[Change]) -> Mapping[str, int | str]:
    """Return the guard of a row's changes; all that have one have the same."""
    guards = [
        change.guard if isinstance(change, Insert) else change.key.guard
        for change in changes
        if not isinstance(change, Drop)
    ]
    return next(filter(None, guards), {})


def _row(request: HttpRequest) -> Body:
    """Return the row that a planned request is about."""
    if request.body is not None:
        return msgspec.json.decode(request.body, type=Body)
    path, _, query = request.path.partition("?")
    parameters = {name: values[0] for name, values in parse_qs(query).items()}
    *_, collection, key = path.split("/")
    return Body(parameters.get("class", collection), unquote(key), parameters.get("tenant"))


def _outcome(number: int, request: HttpRequest, row: Body, reply: Reply) -> Outcome:
    drop = request.path.startswith("/v1/schema/")
    status, reason, key, row_id = OutcomeStatus.APPLIED, "", None, None if drop else row.id or None
    if protocol.unsure(reply):
        status, reason = OutcomeStatus.UNKNOWN, protocol.exception(reply).message
    elif not 200 <= reply.status < 300:
        status, reason = _failure(reply)
    elif request.method in ("POST", "PUT"):
        try:
            item = stored_objects.read_one(reply, row.collection, row.id)
        except QueryError as error:
            status, reason = OutcomeStatus.UNKNOWN, error.message
        else:
            key, row_id = (item.key(row.tenant), item.id) if item else (None, row_id)
    elif reply.status != (200 if drop else 204) or reply.body:
        status = OutcomeStatus.UNKNOWN
        reason = f"the answer is HTTP {reply.status} and says {protocol.message(reply) or 'nothing'}"
    return Outcome(change=number, status=status, id=row_id, reason=reason, key=key, busy=_busy(reply))


def _failure(reply: Reply) -> tuple[OutcomeStatus, str]:
    if reply.status == 422 and "already exists" in protocol.message(reply):
        return OutcomeStatus.CONFLICT, _EXISTS
    if reply.status == 404 and not reply.body:  # a path that a proxy does not know has a page
        return OutcomeStatus.CONFLICT, _GONE
    return OutcomeStatus.FAILED, protocol.exception(reply).message
