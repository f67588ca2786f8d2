"""Apply a plan: send exactly its requests, and return the outcome of each change."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

import msgspec
from msgspec import Raw
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
from dragoman_api.kit.outcomes import Outcomes, before_writing
from dragoman_weaviate import error_answers, objects, stored_objects
from dragoman_weaviate.http_requests import Exchange, ask, get, object_path

from . import before_images, edited_values
from .plan import other_holders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_api.changes import Change
    from dragoman_api.replies import Reply
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.connect import Features

_GONE = "the row was deleted since it was read"


class _Body(msgspec.Struct):
    """The row that a request is about."""

    collection: str = msgspec.field(name="class", default="")
    id: str = ""
    tenant: str | None = None
    properties: Raw = Raw(b"{}")
    vector: Raw = Raw()
    vectors: Raw = Raw()


class _Sender:
    """Sends the requests of one plan."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.known: dict[str, View] = {}
        self.written: set[tuple[str, str, str | None]] = set()

    def carry_out(self, number: int, changes: Sequence[Change], request: HttpRequest) -> Exchange[Outcome]:
        """Check that the row is unchanged, send the request, and return the outcome."""
        row = _row(request)
        if not isinstance(changes[0], Drop):
            with before_writing():
                reason = yield from self._stale(_guard(changes), request, row)
            if reason:
                return Outcome(change=number, status=OutcomeStatus.CONFLICT, id=row.id or None, reason=reason)
        reply = yield from ask(request)
        outcome = _outcome(number, request, row, reply)
        if outcome.status is OutcomeStatus.CONFLICT and request.method == "POST" and row.id:
            outcome = replace(outcome, holds=(yield from self._holds(row)))
        if outcome.status is OutcomeStatus.APPLIED:
            self.written.add((row.collection, row.id, row.tenant))
        return outcome

    def _stale(self, guard: Mapping[str, int | str], request: HttpRequest, row: _Body) -> Exchange[str]:
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

    def _holds(self, row: _Body) -> Exchange[bool]:
        """Return whether the stored object is the one that was to be inserted."""
        try:
            reply = yield from ask(get(object_path(row.collection, row.id), tenant=row.tenant, include="vector"))
            item = stored_objects.read_one(reply, row.collection, row.id)
        except DragomanError:
            return False
        return item is not None and stored_objects.same(item, row.properties, row.vector, row.vectors)

    def _unknown(self, row: _Body) -> Exchange[str]:
        """Check that collection and properties still exist: the server would create missing ones."""
        known = (yield from self._view(row.collection)).collection.properties or []
        unknown = edited_values.unknown_keys(msgspec.json.decode(row.properties), known)
        return f"the schema has no property {', '.join(unknown)} any more" if unknown else ""

    def _view(self, collection: str) -> Exchange[View]:
        if collection not in self.known:
            self.known[collection] = yield from objects.view(collection, self.features)
        return self.known[collection]


def apply_plan(plan: Plan, features: Features) -> Exchange[list[Outcome]]:
    """Send exactly the planned requests, and return the outcome of each change.

    Raises:
        ConnectionFailedError: The first request was not sent; later failures become outcomes.
    """
    sender, outcomes = _Sender(features), Outcomes()
    for planned in plan.planned:
        changes = [plan.changes[number] for number in planned.changes]
        key = None if isinstance(changes[0], Drop) else _row(planned.request).id or None
        with outcomes.sending(planned.changes, row=key):
            outcome = yield from sender.carry_out(planned.changes[0], changes, planned.request)
            outcomes.tell(planned.changes, outcome)
    return outcomes.told


def _guard(changes: Sequence[Change]) -> Mapping[str, int | str]:
    """Return the guard of a row's changes; all that have one have the same."""
    guards = [
        each.guard if isinstance(each, Insert) else each.key.guard for each in changes if not isinstance(each, Drop)
    ]
    return next(filter(None, guards), {})


def _row(request: HttpRequest) -> _Body:
    """Return the row that a planned request is about."""
    if request.body is not None:
        return msgspec.json.decode(request.body, type=_Body)
    path, _, query = request.path.partition("?")
    named = {name: values[0] for name, values in parse_qs(query).items()}
    *_, collection, key = path.split("/")
    return _Body(named.get("class", collection), unquote(key), named.get("tenant"))


def _outcome(number: int, request: HttpRequest, row: _Body, reply: Reply) -> Outcome:
    drop = request.path.startswith("/v1/schema/")
    status, reason, key, found = OutcomeStatus.APPLIED, "", None, None if drop else row.id or None
    if error_answers.unsure(reply):
        status, reason = OutcomeStatus.UNKNOWN, error_answers.exception(reply).message
    elif not 200 <= reply.status < 300:
        status, reason = _failure(reply)
    elif request.method in ("POST", "PUT"):
        try:
            item = stored_objects.read_one(reply, row.collection, row.id)
        except QueryError as error:
            status, reason = OutcomeStatus.UNKNOWN, error.message
        else:
            key, found = (item.key(row.tenant), item.id) if item else (None, found)
    elif reply.status != (200 if drop else 204) or reply.body:
        status = OutcomeStatus.UNKNOWN
        reason = f"the answer is HTTP {reply.status} and says {error_answers.message(reply) or 'nothing'}"
    return Outcome(change=number, status=status, id=found, reason=reason, key=key)


def _failure(reply: Reply) -> tuple[OutcomeStatus, str]:
    if reply.status == 422 and "already exists" in error_answers.message(reply):
        return OutcomeStatus.CONFLICT, "a row with this uuid exists already"
    if reply.status == 404 and not reply.body:  # a path that a proxy does not know has a page
        return OutcomeStatus.CONFLICT, _GONE
    return OutcomeStatus.FAILED, error_answers.exception(reply).message
