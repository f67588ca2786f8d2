"""Plan changes: check them and build the exact requests; side effects are refused or noted (W22-W24, W27).

With an undo, each row is read first, and its changes become one, so that one change takes them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman_api import (
    Delete,
    HttpRequest,
    Insert,
    OutcomeStatus,
    Plan,
    PlanRequest,
    QueryError,
    RowKey,
    Update,
)
from dragoman_api.grid import text_id
from dragoman_api.json_text import decode, encode
from dragoman_api.kit import operands
from dragoman_api.kit.exchanges import Exchange, ask, get, with_query
from dragoman_api.kit.row_changes import Folded, NotSentError, PlanDraft, fold, typed
from dragoman_weaviate import protocol, stored_objects
from dragoman_weaviate.columns import grid_columns
from dragoman_weaviate.columns.field_types import Schema
from dragoman_weaviate.protocol import object_path
from dragoman_weaviate.stored_objects import filled

from . import batches, before_images, edited_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_api.changes import Change
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.protocol import Features
    from dragoman_weaviate.stored_objects import StoredObject

PLAN_BYTES = 24 * 2**20
"""Maximum size of the requests and before-images of one plan in bytes; a driver's answer has 64 MiB."""


VECTOR = "vector"
"""The column of vectors; a property of that name is called `properties.vector`."""


_UNGUARDED = (
    "the server's batches overwrite: which ids are taken is asked just before each is sent, and a row that another "
    "writer makes in that instant is overwritten"
)


def _vectors(view: View, values: Mapping[str, object]) -> dict[str, Raw]:
    """Return the members of a body that hold the vectors among some values.

    Raises:
        NotSentError: The value is none.
    """
    vector_values = {name: value for name, value in values.items() if name == VECTOR}
    members = typed(vector_values, lambda _, value: edited_values.vectors(value, view.named_vectors))
    return members.get(VECTOR, {})


def _body(row: RowKey, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body that makes a row."""
    body: dict[str, Any] = {"class": row.object} | ({"id": row.id} if row.id else {}) | {**parts}
    return body | ({"tenant": row.routing} if row.routing else {})


class _Planner:
    """Plans one request per change; fetches each collection once.

    Attributes:
        undo: The changes that take the requests back, one for each; None if they are not requested.
        size: The bytes of what was planned.
        state: The guard of the last planned row as it is stored, if its change has none.
    """

    def __init__(self, features: Features, draft: PlanDraft, *, by_query: bool, undo: bool) -> None:
        self.features = features
        self.draft = draft
        self.by_query = by_query
        self.undo: list[Change] | None = [] if undo else None
        self.size = 0
        self.views: dict[str, View] = {}
        self.state: Mapping[str, int | str] = {}
        self._rows: set[tuple[str, str, str | None]] = set()
        self._inserted: set[tuple[str, str, str | None]] = set()

    def check_size(self) -> None:
        """Refuse a plan that is too long."""
        if self.size > PLAN_BYTES and len(self.draft.changes) > 1:
            text = f"these changes have more than {PLAN_BYTES:,} bytes, which is what one plan takes"
            raise QueryError(text, hint="plan fewer changes at a time", code="plan-too-large")

    def change(self, change: Change) -> Exchange[HttpRequest]:
        """Plan one change."""
        self.state = {}
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

    def load(self) -> Exchange[None]:
        """Plan the rows of a load: many in one request, each with an id; nothing is read of what is stored."""
        drafts = batches.Drafts()
        for number, change in enumerate(self.draft.changes):
            with self.draft.judging(number):
                assert isinstance(change, Insert)
                view = yield from self._view(change.object)
                tenant, row_id, parts = self._parts(view, change)
                row = RowKey(view.target, row_id or str(uuid4()), tenant)
                drafts.add(number, row, encode(_body(row, parts)))
                if batches.must_be_new(change):
                    self.draft.note(batches.UNGUARDED, view.target, _UNGUARDED)
        drafts.close()
        self.draft.planned += drafts.planned
        self.size = sum(len(planned_request.request.body or "") for planned_request in drafts.planned)

    def _parts(self, view: View, change: Insert) -> tuple[str | None, str | None, dict[str, Any]]:
        """Return the tenant of a new row, its id if it has one, and its properties and vectors."""
        if change.tenant and change.routing and change.tenant != change.routing:
            text = f"its tenant is {change.tenant!r}, and its routing, which is the tenant, too, {change.routing!r}"
            raise NotSentError(text)
        tenant = view.tenant(change.tenant or change.routing)
        if "uuid" in change.values:
            change = change.with_key("uuid")
        row_id = operands.uuid(text_id(change.id)) if change.id else None
        values = {name: value for name, value in change.values.items() if name != VECTOR}
        if change.document is None:
            parts: dict[str, Any] = {"properties": self._typed(view, values)}
        elif values:
            raise NotSentError("a new row has either values or a whole document, and beside it its vector")
        else:
            parts = self._whole(view, change.document)
        if change.values.get(VECTOR) is not None:
            if not parts.keys() <= {"properties"}:
                raise NotSentError("its document holds vectors, and its values a vector; give one of the two")
            parts = parts | _vectors(view, change.values)
        return tenant, row_id, parts

    def _insert(self, change: Insert) -> Exchange[HttpRequest]:
        view = yield from self._view(change.object)
        tenant, row_id, parts = self._parts(view, change)
        key = row_id or (str(uuid4()) if self.undo is not None else None)
        row = RowKey(view.target, key or "", tenant, change.guard)
        before = (yield from self._before(view, row, restores=_restores(change))) if row_id else None
        if before is not None and not change.replace:
            sent = {name: Raw(encode(value).encode()) for name, value in parts.items()}
            vectors = (sent.get(name, Raw()) for name in ("vector", "vectors"))
            holds = stored_objects.same(before, sent.get("properties", Raw(b"{}")), *vectors)
            raise NotSentError("a row with this uuid exists already", status=OutcomeStatus.CONFLICT, holds=holds)
        exists = before is not None
        if row_id and change.replace and self.undo is None and not exists:
            head = HttpRequest("HEAD", with_query(object_path(view.target, row_id), tenant=tenant))
            exists = (yield from ask(head)).status == 204
        self._take_back(view, row, before, parts)
        self._inserted.add((row.object, row.text, row.routing))
        body = encode(_body(row, parts))
        if exists:
            return HttpRequest("PUT", object_path(view.target, key or ""), body)
        return HttpRequest("POST", "/v1/objects", body)

    def _whole(self, view: View, document: str) -> dict[str, Any]:
        """Check a row that is given as a document, and return the members of its body; its bytes are sent unchanged."""
        image, properties = before_images.opened(view, document)
        parts = image.parts
        for member, is_named in (("vector", False), ("vectors", True)):
            if member not in parts or not filled(vector := parts[member]):
                continue
            if is_named is not bool(view.named_vectors):
                raise NotSentError(f"{member}: {edited_values.misplaced(view.named_vectors, vector)}")
            edited_values.vectors(bytes(vector).decode(), view.named_vectors)
        self._refuse_unknown(view, properties)
        if isinstance(properties, dict):
            for name, entry in edited_values.exact_document(bytes(image.properties)).items():
                self._note_rounding(name, entry, properties[name])
        return parts

    def _refuse_unknown(self, view: View, document: object) -> None:
        if unknown := edited_values.unknown_keys(document, view.collection.properties or []):
            raise NotSentError(f"the schema has no property {', '.join(unknown)}, and the server would make it")

    def _update(self, change: Update) -> Exchange[HttpRequest]:
        view, row = yield from self._row(change.key)
        key, tenant = row.text, row.routing
        values = self._typed(view, {name: value for name, value in change.values.items() if name != VECTOR})
        vectors = _vectors(view, change.values)
        if not (values or vectors):
            raise NotSentError("there is nothing to write")
        if (before := (yield from self._before(view, row, restores=False))) is not None:
            after = {"vector": before.vector, "vectors": before.vectors} | vectors
            if "vectors" in vectors:  # the server keeps those that are not named
                after["vectors"] = edited_values.merged_vectors(before.vectors, vectors["vectors"])
            self._take_back(view, row, before, {"properties": (before.properties or {}) | values, **after})
        elif self.undo is not None:
            raise NotSentError("the row was deleted since it was read", status=OutcomeStatus.CONFLICT)
        yield from self._compare(view, row, before)
        body: dict[str, Any] = {"class": view.target, "id": key, "properties": values, **vectors}
        if (modules := view.collection.vectorizers) and values:
            reason = f"'{view.target}' computes vectors with {', '.join(modules)}: each change makes a new one"
            self.draft.note("revectorised", view.target, reason)
        body |= {"tenant": tenant} if tenant else {}
        # The server takes the collection from the body, so body and path must agree.
        return HttpRequest("PATCH", with_query(f"/v1/objects/{key}", **{"class": view.target}), encode(body))

    def _delete(self, row: RowKey) -> Exchange[HttpRequest]:
        view, row = yield from self._row(row)
        key, tenant = row.text, row.routing
        if (before := (yield from self._before(view, row, restores=False))) is not None:
            self._take_back(view, row, before, None)
        elif self.undo is not None:
            raise NotSentError("the row was deleted since it was read", status=OutcomeStatus.CONFLICT)
        yield from self._compare(view, row, before)
        if not self.by_query:
            return HttpRequest("DELETE", with_query(object_path(view.target, key), tenant=tenant))
        if elsewhere := (yield from other_holders(view.target, key)):
            raise NotSentError(elsewhere)
        return HttpRequest("DELETE", with_query(f"/v1/objects/{key}", **{"class": view.target}))

    def _row(self, row: RowKey) -> Exchange[tuple[View, RowKey]]:
        """Return the view of a row and its address there."""
        if not row.id:
            raise NotSentError("the row has no uuid", status=OutcomeStatus.SKIPPED)
        view = yield from self._view(row.object)
        return view, RowKey(view.target, operands.uuid(row.text), view.tenant(row.routing), row.guard)

    def _before(self, view: View, row: RowKey, *, restores: bool) -> Exchange[StoredObject | None]:
        """Read a row if an undo or its guard needs it, or if the change brings back what may never have been deleted.

        Raises:
            NotSentError: The guard is a digest, and the row does not fit it.
        """
        if self.undo is None and before_images.SHA not in row.guard and not restores:
            return None
        stored = yield from before_images.read(view, row.text, row.routing)
        if before_images.SHA in row.guard and (stored is None or before_images.guard_of(view, stored) != row.guard):
            raise NotSentError("the row was changed after that change", status=OutcomeStatus.CONFLICT)
        return stored

    def _compare(self, view: View, row: RowKey, before: StoredObject | None) -> Exchange[None]:
        """Keep the state of a row whose change has no guard: it must still have it when the change is sent.

        Raises:
            NotSentError: There is no such row, and no change of the set makes it.
        """
        if row.guard or (row.object, row.text, row.routing) in self._inserted:
            return
        if before is None:
            reply = yield from ask(get(object_path(view.target, row.text), tenant=row.routing))
            before = stored_objects.read_one(reply, view.target, row.text)
        if before is None:
            raise NotSentError("there is no such row, or it was deleted", status=OutcomeStatus.CONFLICT)
        self.state = before.key(row.routing).guard

    def _take_back(self, view: View, row: RowKey, before: StoredObject | None, after: Mapping[str, Any] | None) -> None:
        """Plan the undo of a change, if that is requested."""
        if self.undo is None:
            return
        if (address := (row.object, row.text, row.routing)) in self._rows:
            raise NotSentError("an earlier change of the set names this row otherwise, so no undo could follow both")
        guard = None
        if after is not None:
            properties = after["properties"]
            properties = decode(bytes(properties), dict[str, Any]) if isinstance(properties, Raw) else properties
            guard = before_images.guard(view, properties, [after.get(name, UNSET) for name in ("vector", "vectors")])
        undo = before_images.undo(view, row, before, guard)
        self._rows.add(address)
        self.undo.append(undo)
        self.size += len(undo.document or "") if isinstance(undo, Insert) else 0
        reason = (
            f"'{view.target}': the server compares nothing, so an undo compares each row just before it is sent; what "
            "another writer changes in that instant is lost"
        )
        self.draft.note("undo-unguarded", view.target, reason)

    def _typed(self, view: View, values: Mapping[str, object]) -> dict[str, Any]:
        """Type the values of a row, and report all faults at once."""

        def edited(name: str, value: object) -> tuple[str, Any]:
            field = view.fields.get(name)
            if field is None or field.spec is None or field.edit_reason:
                raise ValueError("there is no such column" if field is None else field.edit_reason)
            stored = edited_values.edited(field.spec, value)
            self._note_rounding(name, value, stored)
            return field.prop, stored

        return dict(typed(values, edited).values())

    def _note_rounding(self, name: str, entry: Any, stored: Any) -> None:
        """Note a number that the server will not hold as it was entered."""
        if pair := edited_values.rounded(entry, stored):
            reason = f"it holds 64-bit floats, so {pair[0]} is stored as {pair[1]}"
            self.draft.note("number-rounded", "", reason, column=name)
        if edited_values.large_integers(stored):
            reason = "it holds an integer beyond 2^53: the server rounds it"
            self.draft.note("integer-rounded", "", reason, column=name)

    def _view(self, name: str) -> Exchange[View]:
        if name not in self.views:
            self.views[name] = yield from grid_columns.view(name, self.features)
        return self.views[name]


def plan_changes(request: PlanRequest, features: Features, *, by_query: bool) -> Exchange[Plan]:
    """Plan the exact requests that carry out changes; this may read, and never writes.

    Args:
        request: The changes.
        features: What the server's version can do.
        by_query: Delete by the route that takes the collection as a parameter, which the server ignores.
    """
    draft = PlanDraft(request.changes)
    planner = _Planner(features, draft, by_query=by_query, undo=request.undo)
    if batches.is_load(request):
        yield from planner.load()
        planner.check_size()
        return replace(draft.plan(), changes=request.changes)
    for folded in _folded(draft, request):
        with draft.judging(*folded.numbers):
            sent = yield from planner.change(folded.change)
            planner.size += len(sent.body or "")
            draft.send(sent, *folded.numbers, guard=planner.state)
        planner.check_size()
    return replace(draft.plan(planner.undo or ()), changes=request.changes)


def _folded(draft: PlanDraft, request: PlanRequest) -> list[Folded]:
    if request.undo:
        return fold(draft, keyed=lambda change: change.with_key("uuid"))
    return [Folded(change, (number,)) for number, change in enumerate(request.changes)]


def _restores(change: Insert) -> bool:
    """Return whether a change brings a deleted row back, as an undo file does: the row may never have been deleted."""
    return change.document is not None and not change.replace


def other_holders(collection: str, key: str) -> Exchange[str]:
    """Return why a deletion without a collection would hit more than one row; empty if it would not.

    The server deletes a uuid in every collection, and answers 422 as soon as one of them has tenants.
    """
    reply = yield from ask(get("/v1/schema"))
    others = [other for other in protocol.decode(reply, Schema).classes or [] if other.name != collection]
    if shared := [other.name for other in others if other.tenancy.enabled]:
        return f"'{shared[0]}' has tenants, and then the server deletes no object without its collection"
    replies = yield [HttpRequest("HEAD", object_path(other.name, key)) for other in others]
    holding = [other.name for other, reply in zip(others, replies, strict=True) if reply.status != 404]
    return f"{', '.join(holding)} may hold {key} too, and the server would delete it there as well" if holding else ""
