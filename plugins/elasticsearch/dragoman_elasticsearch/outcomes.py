"""Sends a plan and tells what became of each change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from dragoman_api import (
    ConnectionFailedError,
    DragomanError,
    HttpRequest,
    Outcome,
    OutcomeStatus,
    Plan,
    QueryError,
    RowKey,
)

from . import faults, routes
from .changes import settings

if TYPE_CHECKING:
    from .exchange import Exchange, Reply

_SEQ_NO = re.compile(r"required seqNo \[(-?\d+)\].*current document has seqNo \[(\d+)\]")
_DOUBT = "it is not known whether it was applied: "
_GONE = "the row was deleted since it was read"


class _Shards(msgspec.Struct, frozen=True):
    failed: int = 0


class _Written(msgspec.Struct, frozen=True):
    """The answer to one write."""

    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")
    result: str = ""
    seq_no: int | None = msgspec.field(name="_seq_no", default=None)
    primary_term: int | None = msgspec.field(name="_primary_term", default=None)
    shards: _Shards = msgspec.field(name="_shards", default=_Shards())


def apply(plan: Plan) -> Exchange[list[Outcome]]:
    """Send exactly the planned requests, and tell what became of each change.

    Raises:
        ConnectionFailedError: The first request did not reach its end; later ones become outcomes.
    """
    outcomes: list[Outcome] = []
    seen: set[str] = set()
    for planned in plan.planned:
        [number] = planned.changes
        try:
            index = routes.segments(planned.request.path)[0]
            if planned.request.method != "DELETE" and index not in seen:
                yield from settings(index)  # it may have been dropped since the plan, and the write would revive it
                seen.add(index)
            reply = yield planned.request
            outcomes.append(_outcome(number, planned.request, reply))
        except DragomanError as error:
            if not outcomes and isinstance(error, ConnectionFailedError):
                raise
            doubt = _DOUBT if error.details.get("sent") else "not sent: "
            outcomes.append(Outcome(change=number, status=OutcomeStatus.FAILED, reason=f"{doubt}{error.message}"))
    return outcomes


def _outcome(number: int, request: HttpRequest, reply: Reply) -> Outcome:
    name = next(iter(routes.segments(request.path)[2:]), None)
    if reply.status not in (200, 201):
        status, reason = _failure(request, reply)
        return Outcome(change=number, status=status, id=name, reason=reason)
    try:
        done = faults.decode(reply, _Written)
    except QueryError as error:
        return Outcome(change=number, status=OutcomeStatus.FAILED, id=name, reason=f"{_DOUBT}{error.message}")
    if not done.id:  # a drop
        return Outcome(change=number, status=OutcomeStatus.APPLIED)
    reasons = ["nothing changed: the values were there already"] if done.result == "noop" else []
    reasons += [f"{done.shards.failed} copies of the shard failed to store it"] if done.shards.failed else []
    guard: dict[str, int | str] = {}
    if done.seq_no is not None and done.primary_term is not None:
        guard = {"seq_no": done.seq_no, "primary_term": done.primary_term}
    routing = re.search(r"[?&]routing=([^&]+)", request.path)
    key = RowKey(done.index, done.id, unquote(routing[1]) if routing else None, guard)
    gone = done.result == "deleted"
    return Outcome(
        change=number,
        status=OutcomeStatus.APPLIED,
        id=done.id,
        reason="; ".join(reasons),
        key=None if gone else key,
    )


def _failure(request: HttpRequest, reply: Reply) -> tuple[OutcomeStatus, str]:
    fault = faults.read(reply)
    if fault.conflict:
        if "document already exists" in fault.text:
            return OutcomeStatus.CONFLICT, "a row with this id exists already"
        if moved := _SEQ_NO.search(fault.text):
            return OutcomeStatus.CONFLICT, f"changed since it was read (seq_no {moved[1]} → {moved[2]})"
        return OutcomeStatus.CONFLICT, _GONE if "no document was found" in fault.text else fault.text
    if fault.type == "document_missing_exception" or (reply.status == 404 and not fault.type):
        return OutcomeStatus.CONFLICT, _GONE
    return OutcomeStatus.FAILED, faults.error(fault).message
