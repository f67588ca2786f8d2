"""Changes to exact requests; what the server would do besides is refused, or said (W22-W24, W27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import (
    Delete,
    DragomanError,
    HttpRequest,
    Insert,
    Note,
    Outcome,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    PlanRequest,
    QueryError,
    Update,
)
from dragoman_api.errors import ObjectNotFoundError
from dragoman_api.exchanges import encode

from . import edits, faults, literals, schema
from .definitions import Collection
from .exchange import Exchange, ask, get, object_path, with_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_api import RowKey
    from dragoman_api.changes import Change

    from .schema import View
    from .server import Features


class _Schema(msgspec.Struct):
    classes: list[Collection] | None = None


class _RefusedError(Exception):
    """A change that is not sent, and why."""

    def __init__(self, reason: str, *, status: OutcomeStatus = OutcomeStatus.REFUSED) -> None:
        super().__init__(reason)
        self.status = status


class _Planner:
    """Plans one request after the other; looks at each collection once, as it is now."""

    def __init__(self, features: Features, *, by_query: bool) -> None:
        self.features = features
        self.by_query = by_query
        self.views: dict[str, View] = {}
        self.notes: dict[tuple[str, str], Note] = {}

    def change(self, change: Change) -> Exchange[HttpRequest]:
        """Plan one change."""
        if isinstance(change, Insert):
            return (yield from self._insert(change))
        if isinstance(change, Update):
            return (yield from self._update(change))
        if isinstance(change, Delete):
            return (yield from self._delete(change.key))
        view = yield from self._view(change.object)
        if view.target != change.object:
            raise _RefusedError(
                f"'{change.object}' is not the exact name of a collection; it is called '{view.target}'"
            )
        return HttpRequest("DELETE", f"/v1/schema/{view.target}")

    def _insert(self, change: Insert) -> Exchange[HttpRequest]:
        view = yield from self._view(change.object)
        tenant = view.tenant(change.tenant or change.routing)
        values = dict(change.values)
        given = change.id or values.pop("uuid", None)  # a person who types one into a new row means its key
        key = literals.uuid(given) if given else None
        body: dict[str, Any] = {"class": view.target} | ({"id": key} if key else {})
        body["properties"] = self._typed(view, values) if change.document is None else self._whole(view, change)
        body |= {"tenant": tenant} if tenant else {}
        if key and change.replace:
            path = object_path(view.target, key)
            there = yield from ask(HttpRequest("HEAD", with_query(path, tenant=tenant)))
            if there.status == 204:
                return HttpRequest("PUT", path, encode(body))
        return HttpRequest("POST", "/v1/objects", encode(body))

    def _whole(self, view: View, change: Insert) -> Raw:
        """Check a row that comes as it is stored; its bytes go out as they stand."""
        if change.values:
            raise _RefusedError("a new row has either values or a whole document")
        document = msgspec.json.decode((change.document or "").encode())
        if not isinstance(document, dict):
            raise _RefusedError("the document is no JSON object")
        self._refuse_unknown(view, document)
        return Raw((change.document or "").encode())

    def _refuse_unknown(self, view: View, document: object) -> None:
        if unknown := edits.unknown_keys(document, view.collection.properties or []):
            raise _RefusedError(f"the schema has no property {', '.join(unknown)}, and the server would make it")

    def _update(self, change: Update) -> Exchange[HttpRequest]:
        view, key, tenant = yield from self._row(change.key)
        body: dict[str, Any] = {"class": view.target, "id": key, "properties": self._typed(view, change.values)}
        if not body["properties"]:
            raise _RefusedError("there is nothing to write")
        if modules := view.collection.vectorizers:
            reason = f"'{view.target}' computes vectors with {', '.join(modules)}: each change makes a new one"
            self._note("revectorised", view.target, reason)
        body |= {"tenant": tenant} if tenant else {}
        # The server takes the collection from the body, and patches another one if the two differ.
        return HttpRequest("PATCH", with_query(f"/v1/objects/{key}", **{"class": view.target}), encode(body))

    def _delete(self, row: RowKey) -> Exchange[HttpRequest]:
        view, key, tenant = yield from self._row(row)
        if not self.by_query:
            return HttpRequest("DELETE", with_query(object_path(view.target, key), tenant=tenant))
        if elsewhere := (yield from other_holders(view.target, key)):
            raise _RefusedError(elsewhere)
        return HttpRequest("DELETE", with_query(f"/v1/objects/{key}", **{"class": view.target}))

    def _row(self, row: RowKey) -> Exchange[tuple[View, str, str | None]]:
        if not row.id:
            raise _RefusedError("the row has no uuid", status=OutcomeStatus.SKIPPED)
        view = yield from self._view(row.object)
        return view, literals.uuid(row.id), view.tenant(row.routing)

    def _typed(self, view: View, values: Mapping[str, object]) -> dict[str, Any]:
        """Type the values of a row; every fault is told at once."""
        typed: dict[str, Any] = {}
        faulty = []
        for name, value in values.items():
            field = view.fields.get(name)
            if field is None or field.spec is None or (reason := field.edit_reason):
                reason = "there is no such column" if field is None else field.edit_reason
                faulty.append(f"{name}: {reason}")
                continue
            try:
                typed[field.prop] = edits.edited(field.spec, value)
            except ValueError as error:
                faulty.append(f"{name}: {error}")
        if faulty:
            raise _RefusedError("; ".join(faulty))
        for name, value in typed.items():
            if edits.large_integers(value):
                self._note("integer-rounded", name, f"'{name}' holds an integer beyond 2^53: the server rounds it")
        return typed

    def _view(self, name: str) -> Exchange[View]:
        if name not in self.views:
            self.views[name] = yield from schema.view(name, self.features)
        return self.views[name]

    def _note(self, code: str, about: str, reason: str) -> None:
        self.notes[code, about] = Note(code=code, reason=reason)


def plan(request: PlanRequest, features: Features, *, by_query: bool) -> Exchange[Plan]:
    """Turn changes into the exact requests that carry them out; reads, never writes.

    Args:
        request: The changes.
        features: What the server's version can do.
        by_query: Delete by the route that names the collection as a parameter, which the server ignores.
    """
    planner = _Planner(features, by_query=by_query)
    planned, refusals = [], []
    for number, change in enumerate(request.changes):
        try:
            made = yield from planner.change(change)
            planned.append(PlannedRequest(request=made, changes=[number]))
        except _RefusedError as refusal:
            status, reason = refusal.status, str(refusal)
            refusals.append(Outcome(change=number, status=status, id=_id(change), reason=reason))
        except (ValueError, QueryError, ObjectNotFoundError) as error:
            reason = error.message if isinstance(error, DragomanError) else str(error)
            refusals.append(Outcome(change=number, status=OutcomeStatus.REFUSED, id=_id(change), reason=reason))
    return Plan(planned=planned, refusals=refusals, notes=[*planner.notes.values()], changes=request.changes)


def _id(change: Change) -> str | None:
    if isinstance(change, Insert):
        return change.id
    return (change.key.id or None) if isinstance(change, (Update, Delete)) else None


def other_holders(collection: str, key: str) -> Exchange[str]:
    """Say why a deletion without a collection would hit more than one row; empty where it would not.

    The server deletes a uuid in every collection, and answers 422 as soon as one of them has tenants.
    """
    reply = yield from ask(get("/v1/schema"))
    others = [each for each in faults.decode(reply, _Schema).classes or [] if each.name != collection]
    if shared := [each.name for each in others if each.tenancy.enabled]:
        return f"'{shared[0]}' has tenants, and then the server deletes no object without its collection"
    replies = yield [HttpRequest("HEAD", object_path(each.name, key)) for each in others]
    holding = [each.name for each, reply in zip(others, replies, strict=True) if reply.status != 404]
    return f"{', '.join(holding)} may hold {key} too, and the server would delete it there as well" if holding else ""
