"""Changes to exact requests, and answers to outcomes (E23, E28-E31, E33)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import (
    CutText,
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
    Update,
)
from dragoman_api.errors import AccessDeniedError, ObjectNotFoundError, RowNotFoundError

from . import edits, faults, objects
from .exchange import Exchange, encode, get, segment, target
from .mapping import View

if TYPE_CHECKING:
    from .documents import Stored
    from .fields import Field

ID_BYTES = 512
"""Length of an `_id` at most, in bytes of UTF-8."""

_UNSAFE = re.compile(r'[*,?/\\<>|"#%:\s]|^[-_+.]')


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
            self.settings[name] = yield from settings(name)
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
        if isinstance(value, CutText):
            reason = reason or "the value is only the beginning of a long one; fetch the whole cell and edit that"
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


def settings(name: str) -> Exchange[Mapping[str, _Settings] | None]:
    """Look which concrete indices a name stands for, and how they refresh; None where that is hidden.

    Raises:
        ObjectNotFoundError: There is no such index.
    """
    reply = yield get(f"/{target(name)}/_settings/index.uuid,index.refresh_interval?flat_settings=true")
    try:
        found = faults.decode(reply, dict[str, _Settings])
    except AccessDeniedError:
        return None
    if not found:
        raise ObjectNotFoundError(f"there is no index '{name}', and writing to it would create it")
    return found
