"""Plan changes: check them and build the exact requests; side effects are refused or noted (W22-W24, W27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import (
    Delete,
    HttpRequest,
    Insert,
    OutcomeStatus,
    Plan,
    PlanRequest,
    Update,
)
from dragoman_api.grid import text_id
from dragoman_api.json_text import decode, encode
from dragoman_api.kit import operands
from dragoman_api.kit.row_changes import NotSentError, PlanDraft, typed
from dragoman_weaviate import error_answers, objects
from dragoman_weaviate.columns.schema import Schema
from dragoman_weaviate.http_requests import Exchange, ask, get, object_path, with_query

from . import edited_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_api import RowKey
    from dragoman_api.changes import Change
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.connect import Features


class _Planner:
    """Plans one request per change; fetches each collection once."""

    def __init__(self, features: Features, draft: PlanDraft, *, by_query: bool) -> None:
        self.features = features
        self.draft = draft
        self.by_query = by_query
        self.views: dict[str, View] = {}

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
            raise NotSentError(f"'{change.object}' is not the exact name of a collection; it is called '{view.target}'")
        return HttpRequest("DELETE", f"/v1/schema/{view.target}")

    def _insert(self, change: Insert) -> Exchange[HttpRequest]:
        view = yield from self._view(change.object)
        tenant = view.tenant(change.tenant or change.routing)
        change = change.with_key("uuid")
        key = operands.uuid(text_id(change.id)) if change.id else None
        body: dict[str, Any] = {"class": view.target} | ({"id": key} if key else {})
        body["properties"] = self._typed(view, change.values) if change.document is None else self._whole(view, change)
        body |= {"tenant": tenant} if tenant else {}
        if key and change.replace:
            path = object_path(view.target, key)
            there = yield from ask(HttpRequest("HEAD", with_query(path, tenant=tenant)))
            if there.status == 204:
                return HttpRequest("PUT", path, encode(body))
        return HttpRequest("POST", "/v1/objects", encode(body))

    def _whole(self, view: View, change: Insert) -> Raw:
        """Check a row that is given as a document; its bytes are sent unchanged."""
        if change.values:
            raise NotSentError("a new row has either values or a whole document")
        document = decode(change.document or "", object)
        if not isinstance(document, dict):
            raise NotSentError("the document is not a JSON object")
        self._refuse_unknown(view, document)
        return Raw((change.document or "").encode())

    def _refuse_unknown(self, view: View, document: object) -> None:
        if unknown := edited_values.unknown_keys(document, view.collection.properties or []):
            raise NotSentError(f"the schema has no property {', '.join(unknown)}, and the server would make it")

    def _update(self, change: Update) -> Exchange[HttpRequest]:
        view, key, tenant = yield from self._row(change.key)
        body: dict[str, Any] = {"class": view.target, "id": key, "properties": self._typed(view, change.values)}
        if not body["properties"]:
            raise NotSentError("there is nothing to write")
        if modules := view.collection.vectorizers:
            reason = f"'{view.target}' computes vectors with {', '.join(modules)}: each change makes a new one"
            self.draft.note("revectorised", view.target, reason)
        body |= {"tenant": tenant} if tenant else {}
        # The server takes the collection from the body, so body and path must agree.
        return HttpRequest("PATCH", with_query(f"/v1/objects/{key}", **{"class": view.target}), encode(body))

    def _delete(self, row: RowKey) -> Exchange[HttpRequest]:
        view, key, tenant = yield from self._row(row)
        if not self.by_query:
            return HttpRequest("DELETE", with_query(object_path(view.target, key), tenant=tenant))
        if elsewhere := (yield from other_holders(view.target, key)):
            raise NotSentError(elsewhere)
        return HttpRequest("DELETE", with_query(f"/v1/objects/{key}", **{"class": view.target}))

    def _row(self, row: RowKey) -> Exchange[tuple[View, str, str | None]]:
        if not row.id:
            raise NotSentError("the row has no uuid", status=OutcomeStatus.SKIPPED)
        view = yield from self._view(row.object)
        return view, operands.uuid(row.text), view.tenant(row.routing)

    def _typed(self, view: View, values: Mapping[str, object]) -> dict[str, Any]:
        """Type the values of a row, and report all faults at once."""

        def edited(name: str, value: object) -> tuple[str, Any]:
            field = view.fields.get(name)
            if field is None or field.spec is None or field.edit_reason:
                raise ValueError("there is no such column" if field is None else field.edit_reason)
            stored = edited_values.edited(field.spec, value)
            if edited_values.rounded(value, stored):
                reason = f"'{name}' holds 64-bit floats, so {value} is stored as {stored}"
                self.draft.note("number-rounded", name, reason)
            return field.prop, stored

        made = dict(typed(values, edited).values())
        for name, value in made.items():
            if edited_values.large_integers(value):
                reason = f"'{name}' holds an integer beyond 2^53: the server rounds it"
                self.draft.note("integer-rounded", name, reason)
        return made

    def _view(self, name: str) -> Exchange[View]:
        if name not in self.views:
            self.views[name] = yield from objects.view(name, self.features)
        return self.views[name]


def plan_changes(request: PlanRequest, features: Features, *, by_query: bool) -> Exchange[Plan]:
    """Plan the exact requests that carry out changes; this may read, and never writes.

    Args:
        request: The changes.
        features: What the server's version can do.
        by_query: Delete by the route that takes the collection as a parameter, which the server ignores.
    """
    draft = PlanDraft(request.changes)
    planner = _Planner(features, draft, by_query=by_query)
    for number, change in enumerate(request.changes):
        with draft.judging(number):
            draft.send((yield from planner.change(change)), number)
    return replace(draft.plan(), changes=request.changes)


def other_holders(collection: str, key: str) -> Exchange[str]:
    """Return why a deletion without a collection would hit more than one row; empty if it would not.

    The server deletes a uuid in every collection, and answers 422 as soon as one of them has tenants.
    """
    reply = yield from ask(get("/v1/schema"))
    others = [each for each in error_answers.decode(reply, Schema).classes or [] if each.name != collection]
    if shared := [each.name for each in others if each.tenancy.enabled]:
        return f"'{shared[0]}' has tenants, and then the server deletes no object without its collection"
    replies = yield [HttpRequest("HEAD", object_path(each.name, key)) for each in others]
    holding = [each.name for each, reply in zip(others, replies, strict=True) if reply.status != 404]
    return f"{', '.join(holding)} may hold {key} too, and the server would delete it there as well" if holding else ""
