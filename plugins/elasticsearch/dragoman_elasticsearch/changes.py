"""Changes to exact requests, and answers to outcomes (E23, E28-E31, E33)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from dragoman_api import (
    Delete,
    DragomanError,
    Drop,
    HttpRequest,
    Insert,
    Note,
    Outcome,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    PlanRequest,
    QueryError,
    RowKey,
    Update,
)
from dragoman_api.errors import AccessDeniedError, ConnectionFailedError, ObjectNotFoundError, RowNotFoundError

from . import edits, faults, objects, routes
from .exchange import Exchange, encode, get, segment, target
from .mapping import View

if TYPE_CHECKING:
    from .documents import Stored
    from .exchange import Reply
    from .fields import Field

ID_BYTES = 512
"""Length of an `_id` at most, in bytes of UTF-8."""

_UNSAFE = re.compile(r'[*,?/\\<>|"#%:\s]|^[-_+.]')
_SEQ_NO = re.compile(r"required seqNo \[(-?\d+)\].*current document has seqNo \[(\d+)\]")
_DOUBT = "it is not known whether it was applied: "
_GONE = "the row was deleted since it was read"


class _Refusal(Exception):  # noqa: N818 - not an error: a change that is not sent
    """A change is not sent, and why."""

    def __init__(self, reason: str, *, status: OutcomeStatus = OutcomeStatus.REFUSED) -> None:
        super().__init__(reason)
        self.status = status


class _Settings(msgspec.Struct, frozen=True):
    settings: dict[str, str] = {}


@dataclass(slots=True)
class _Planner:
    """One plan in the making, and what was learned of its objects."""

    views: dict[str, View]
    notes: list[Note] = field(default_factory=list)
    settings: dict[str, Mapping[str, _Settings] | None] = field(default_factory=dict)
    rows: set[tuple[str, str]] = field(default_factory=set)

    def change(self, change: Insert | Update | Delete | Drop) -> Exchange[HttpRequest]:
        """Turn one change into its request."""
        if isinstance(change, Insert):
            return (yield from self._insert(change))
        if isinstance(change, Drop):
            return (yield from self._drop(change.object))
        return (yield from self._row(change))

    def _insert(self, change: Insert) -> Exchange[HttpRequest]:
        options = yield from self._options(change.object)
        view = yield from self._view(change.object)
        tree: edits.Tree = {}
        given = {name: value for name, value in change.values.items() if value is not None}
        for found, value in _typed(view, given):
            edits.plant(tree, found.keys, value)
        where = f"/{target(change.object)}/_doc"
        if change.id is None:
            return HttpRequest("POST", _path(where, options), encode(tree))
        if not 0 < len(change.id.encode()) <= ID_BYTES:
            raise _Refusal(f"an _id has 1 to {ID_BYTES} bytes")
        self._once(change.object, change.id)
        # A plain PUT would silently overwrite a document that has this id.
        options = options if change.replace else {"op_type": "create", **options}
        return HttpRequest("PUT", _path(f"{where}/{segment(change.id)}", options), encode(tree))

    def _row(self, change: Update | Delete) -> Exchange[HttpRequest]:
        key = change.key
        options = yield from self._options(key.object)
        if isinstance(change, Update):
            view = yield from self._view(key.object)
            typed = _typed(view, change.values)
        hit: Stored = yield from objects.document(key.object, key.id, key.routing)
        guard = key.guard or hit.key.guard
        options = {"if_seq_no": guard.get("seq_no"), "if_primary_term": guard.get("primary_term"), **options}
        options |= {"routing": segment(key.routing)} if key.routing else {}
        where, name = f"/{target(hit.index)}", segment(key.id)  # the concrete index: an alias may hold several
        self._once(hit.index, key.id)
        if isinstance(change, Delete):
            return HttpRequest("DELETE", _path(f"{where}/_doc/{name}", options))
        return self._write(hit, view, typed, (where, name, options))

    def _write(
        self, hit: Stored, view: View, typed: list[tuple[Field, object]], to: tuple[str, str, dict[str, Any]]
    ) -> HttpRequest:
        (where, name, options), source = to, bytes(hit.source)
        if not source:
            raise _Refusal("the index keeps no documents (_source), so none can be changed")
        if view.synthetic and any(isinstance(value, (list, dict)) for _, value in typed):
            raise _Refusal("the index rebuilds its documents (synthetic _source): arrays come back changed")
        ways = [(edits.spelled(source, found), value) for found, value in typed]
        if any(isinstance(value, dict) for _, value in ways):
            # A partial update merges objects, so a removed key would stay; the whole document is written instead.
            for way, value in ways:
                source = edits.replaced(source, way, value)
            return HttpRequest("PUT", _path(f"{where}/_doc/{name}", options), source.decode())
        tree: edits.Tree = {}
        for way, value in ways:
            edits.plant(tree, way, value)
        if digits := edits.rewritten(source):
            reason = f"a partial update makes the server write numbers anew: {digits} may come back with other digits"
            self.notes.append(Note(code="digits-rewritten", reason=reason))
        return HttpRequest("POST", _path(f"{where}/_update/{name}", options), encode({"doc": tree}))

    def _drop(self, name: str) -> Exchange[HttpRequest]:
        if not name or name == "_all" or _UNSAFE.search(name) or name != name.lower():
            raise _Refusal(f"{name!r} is not the exact name of one index; a drop takes no pattern and no list")
        found = yield from self._known(name)
        if found is not None and list(found) != [name]:
            raise _Refusal(f"'{name}' is an alias or a data stream of {', '.join(found)}; drop the index itself")
        return HttpRequest("DELETE", f"/{segment(name)}")

    def _once(self, index: str, key: str) -> None:
        # The second request would carry the guard of before the first, and conflict with it.
        if (index, key) in self.rows:
            raise _Refusal(f"the plan changes '{key}' already; merge the changes or plan them one after the other")
        self.rows.add((index, key))

    def _view(self, name: str) -> Exchange[View]:
        if name not in self.views:
            self.views[name] = yield from objects.view(name)
        return self.views[name]

    def _known(self, name: str) -> Exchange[Mapping[str, _Settings] | None]:
        """Look whether an index is there: writing to one that is not would create it. None where that is hidden."""
        if name not in self.settings:
            self.settings[name] = yield from _settings(name)
        return self.settings[name]

    def _options(self, name: str) -> Exchange[dict[str, Any]]:
        found = yield from self._known(name)
        if any(each.settings.get("index.refresh_interval") == "-1" for each in (found or {}).values()):
            # wait_for would wait until somebody refreshes.
            reason = f"'{name}' refreshes on request only (index.refresh_interval is -1): a search sees this later"
            self.notes.append(Note(code="refresh-off", reason=reason))
            return {}
        return {"refresh": "wait_for"}


def plan(request: PlanRequest, views: dict[str, View]) -> Exchange[Plan]:
    """Turn changes into the exact requests that carry them out; reads, never writes.

    Args:
        request: The changes.
        views: What is known of objects; grows.
    """
    planner = _Planner(views)
    planned, refusals = [], []
    for number, change in enumerate(request.changes):
        try:
            made = yield from planner.change(change)
            planned.append(PlannedRequest(request=made, changes=[number]))
        except _Refusal as refusal:
            status, reason = refusal.status, str(refusal)
            refusals.append(Outcome(change=number, status=status, id=_id(change), reason=reason))
        except (ValueError, ObjectNotFoundError, RowNotFoundError) as error:
            reason = error.message if isinstance(error, DragomanError) else str(error)
            refusals.append(Outcome(change=number, status=OutcomeStatus.REFUSED, id=_id(change), reason=reason))
    return Plan(planned=planned, refusals=refusals, notes=planner.notes)


def _id(change: Insert | Update | Delete | Drop) -> str | None:
    if isinstance(change, Insert):
        return change.id
    return change.key.id if isinstance(change, (Update, Delete)) else None


def _typed(view: View, values: Mapping[str, object]) -> list[tuple[Field, object]]:
    """Type the values of a row; every fault is told at once."""
    typed: list[tuple[Field, object]] = []
    faulty, leaves = [], []
    for name, value in values.items():
        found = view.find(name)
        reason = "there is no such column" if found is None else found.support[1].get("edit", "")
        if found is not None and not reason:
            try:
                typed.append((found, edits.edited(found, value)))
            except ValueError as error:
                reason = str(error)
        if reason and found is not None and found.nested and not found.alias:
            leaves.append(f"{name} is a nested leaf; edit '{found.nested[0]}'")
        elif reason:
            faulty.append(f"{name}: {reason}")
    if faulty:
        raise _Refusal("; ".join([*faulty, *leaves]))
    if leaves:
        raise _Refusal("; ".join(leaves), status=OutcomeStatus.SKIPPED)
    if not typed:
        raise _Refusal("there is nothing to write")
    return typed


def _path(path: str, options: Mapping[str, Any]) -> str:
    query = "&".join(f"{name}={value}" for name, value in options.items() if value is not None)
    return f"{path}?{query}" if query else path


def _settings(name: str) -> Exchange[Mapping[str, _Settings] | None]:
    reply = yield get(f"/{target(name)}/_settings/index.uuid,index.refresh_interval?flat_settings=true")
    try:
        found = faults.decode(reply, dict[str, _Settings])
    except AccessDeniedError:
        return None
    if not found:
        raise ObjectNotFoundError(f"there is no index '{name}', and writing to it would create it")
    return found


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
                yield from _settings(index)  # it may have been dropped since the plan, and the write would revive it
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
