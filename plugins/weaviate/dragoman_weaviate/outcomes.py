"""Sends a plan and tells what became of each change; nothing is written but the planned bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

import msgspec
from msgspec import Raw

from dragoman_api import (
    ConnectionFailedError,
    DragomanError,
    HttpRequest,
    Insert,
    Outcome,
    OutcomeStatus,
    Plan,
    QueryError,
    Update,
)
from dragoman_api.changes import Delete, Drop

from . import edits, faults, rows, schema
from .changes import other_holders
from .exchange import Exchange, ask, get, object_path

if TYPE_CHECKING:
    from dragoman_api.changes import Change
    from dragoman_api.exchanges import Reply

    from .server import Features

_DOUBT = "it is not known whether it was applied: "
_GONE = "the row was deleted since it was read"


class _Body(msgspec.Struct):
    """What a request says of the row it is about."""

    collection: str = msgspec.field(name="class", default="")
    id: str = ""
    tenant: str | None = None
    properties: Raw = Raw(b"{}")


class _Sender:
    """Sends the requests of one plan."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.known: dict[str, schema.View] = {}
        self.written: set[tuple[str, str, str | None]] = set()

    def carry_out(self, number: int, change: Change, request: HttpRequest) -> Exchange[Outcome]:
        """Look whether the row is as it was, send, and tell what came of it."""
        row = _row(request)
        if not isinstance(change, Drop):
            reason = yield from self._stale(change, request, row)
            if reason:
                return Outcome(change=number, status=OutcomeStatus.CONFLICT, id=row.id or None, reason=reason)
        reply = yield from ask(request)
        outcome = _outcome(number, request, row, reply)
        if outcome.status is OutcomeStatus.APPLIED:
            self.written.add((row.collection, row.id, row.tenant))
        return outcome

    def _stale(self, change: Insert | Update | Delete, request: HttpRequest, row: _Body) -> Exchange[str]:
        """Compare what a change relies on just before it is sent: the server itself compares nothing (W23)."""
        if request.method != "DELETE" and (reason := (yield from self._unknown(row))):
            return reason
        guard = change.guard if isinstance(change, Insert) else change.key.guard
        if request.method == "POST" and not guard:
            return ""
        item = rows.read_one((yield from ask(get(object_path(row.collection, row.id), tenant=row.tenant))))
        if item is None:
            return _GONE
        expected = guard.get("lastUpdateTimeUnix")
        mine = (row.collection, row.id, row.tenant) in self.written
        if expected is not None and not mine and str(expected) != str(item.last_update_time_unix):
            return f"changed since it was read (lastUpdateTimeUnix {expected} → {item.last_update_time_unix})"
        if request.method == "DELETE" and not request.path.startswith(f"/v1/objects/{row.collection}/"):
            return (yield from other_holders(row.collection, row.id))
        return ""

    def _unknown(self, row: _Body) -> Exchange[str]:
        """Look whether collection and properties still are as planned: the server would make what is missing."""
        if row.collection not in self.known:
            self.known[row.collection] = yield from schema.view(row.collection, self.features)
        known = self.known[row.collection].collection.properties or []
        unknown = edits.unknown_keys(msgspec.json.decode(row.properties), known)
        return f"the schema has no property {', '.join(unknown)} any more" if unknown else ""


def apply(plan: Plan, features: Features) -> Exchange[list[Outcome]]:
    """Send exactly the planned requests, and tell what became of each change.

    Raises:
        ConnectionFailedError: The first request did not reach its end; later ones become outcomes.
    """
    sender = _Sender(features)
    outcomes: list[Outcome] = []
    for planned in plan.planned:
        [number] = planned.changes
        try:
            outcomes.append((yield from sender.carry_out(number, plan.changes[number], planned.request)))
        except DragomanError as error:
            if not outcomes and isinstance(error, ConnectionFailedError):
                raise
            doubt = bool(error.details.get("sent"))
            reason = f"{_DOUBT if doubt else 'not sent: '}{error.message}"
            outcomes.append(Outcome(change=number, status=OutcomeStatus.FAILED, reason=reason, doubt=doubt))
    return outcomes


def _row(request: HttpRequest) -> _Body:
    """Find out which row a planned request is about."""
    if request.body is not None:
        return msgspec.json.decode(request.body, type=_Body)
    path, _, query = request.path.partition("?")
    named = {name: values[0] for name, values in parse_qs(query).items()}
    *_, collection, key = path.split("/")
    return _Body(named.get("class", collection), unquote(key), named.get("tenant"))


def _outcome(number: int, request: HttpRequest, row: _Body, reply: Reply) -> Outcome:
    status, reason, key, found = OutcomeStatus.APPLIED, "", None, row.id or None
    if not 200 <= reply.status < 300:
        status, reason = _failure(reply)
    elif request.method in ("POST", "PUT"):
        try:
            item = rows.read_one(reply)
        except QueryError as error:
            why = f"{_DOUBT}{error.message}"
            return Outcome(change=number, status=OutcomeStatus.FAILED, id=found, reason=why, doubt=True)
        if item is not None:
            key, found = item.key(row.tenant), item.id
    if request.path.startswith("/v1/schema/"):
        found = None
    return Outcome(change=number, status=status, id=found, reason=reason, key=key)


def _failure(reply: Reply) -> tuple[OutcomeStatus, str]:
    text = faults.message(reply)
    if "already exists" in text:
        return OutcomeStatus.CONFLICT, "a row with this uuid exists already"
    if reply.status == 404:
        return OutcomeStatus.CONFLICT, _GONE
    return OutcomeStatus.FAILED, faults.error(reply).message
