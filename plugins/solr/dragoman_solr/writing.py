"""Changes: documents as the bodies of updates, each with the version that the server compares.

The rule of a measured fact is in parentheses, as in S21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    Delete,
    DragomanError,
    Drop,
    HttpRequest,
    Insert,
    Json,
    Outcome,
    OutcomeStatus,
    Plan,
    PlanRequest,
    RowKey,
    UnsupportedOperationError,
    Update,
    Written,
    hookimpl,
)  # fmt: skip
from dragoman_api.changes import object_of
from dragoman_api.grid import text_id
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.page_columns import MEMBERS
from dragoman_api.kit.row_changes import NotSentError, Outcomes, PlanDraft, fold, row_of, status_of, typed
from dragoman_api.kit.writing import digest_guard, writable

from .fields import ROOT, VERSION, View, stored
from .queries import Filters, search

if TYPE_CHECKING:
    from dragoman_api import Http
    from dragoman_api.changes import Change

WITHIN = 10_000  # milliseconds until searches see a row of a load
_NESTED = "the document is part of a nested one, which Solr replaces or deletes as a whole"


class _Document(msgspec.Struct):
    doc: dict[str, Any] | None = None


class ChangeHooks:
    """The hooks of changes, over what the driver sends.

    Attributes:
        http: The client, which the driver sets in `connect`.
    """

    http: Http

    async def view(self, name: str) -> View:
        """Return a core as it was read last."""
        raise NotImplementedError

    def path(self, name: str) -> str:
        """Return the path of a core."""
        raise NotImplementedError

    async def get(self, path: str, kind: Any) -> Any:
        """Get a path, and read the answer."""
        raise NotImplementedError

    async def search(self, name: str, body: str) -> Any:
        """Send a search."""
        raise NotImplementedError

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Read the documents of the changes, and make one request for each (S21-S27)."""
        if request.new is not None:
            raise UnsupportedOperationError("this driver makes no cores; the server needs a set of settings for one")
        draft = PlanDraft(request.changes)
        undo: list[Change] = []
        views = {name: await self.view(name) for name in {object_of(change) for change in request.changes}}
        for folded in fold(draft, keyed=lambda insert: _keyed(insert, views[insert.object], draft)):
            with draft.judging(*folded.numbers):
                change = folded.change
                if isinstance(change, Drop):
                    base, _, core = self.path(change.object).rpartition("/")
                    gone = "&deleteIndex=true&deleteDataDir=true&deleteInstanceDir=true"
                    path = f"{base}/admin/cores?action=UNLOAD&core={core}{gone}&wt=json"
                    draft.send(HttpRequest("POST", path), *folded.numbers)
                    draft.note(
                        "settings-go", change.object, f"the schema and the settings of '{change.object}' go, too"
                    )
                    continue
                view = views[object_of(change)]
                body, back = await self._change(change, view, undo=request.undo)
                waits = request.bulk and not (request.last and len(request.changes) - 1 in folded.numbers)
                path = f"{self.path(view.name)}/update?versions=true&wt=json&"
                path += f"commitWithin={WITHIN}" if waits else "commit=true"
                draft.send(HttpRequest("POST", path, body), *folded.numbers)
                undo += [] if back is None else [back]
        return draft.plan(undo if request.undo else ())

    async def _change(self, change: Insert | Update | Delete, view: View, *, undo: bool) -> tuple[str, Change | None]:
        """Return the body of one change, with the version that it expects, and the change that undoes it."""
        if not view.key or VERSION not in view.fields:
            raise NotSentError(next(iter(view.columns.values())).reasons["edit"])
        if isinstance(change, Insert):
            key, guard = change.id, change.guard
            if not key:
                raise NotSentError(f"a new document needs a value for its key, '{view.key}'")
        else:
            key, guard = change.key.id, change.key.guard
        key, fresh = text_id(key), isinstance(change, Insert) and not change.replace
        now = None if fresh and not undo else await self._stored(view, key)
        if now is None and (guard or not isinstance(change, Insert)):
            raise NotSentError("the document is gone", status=OutcomeStatus.CONFLICT)
        before = {name: value for name, value in (now or {}).items() if view.writes(name)}
        states = {VERSION: now.get(VERSION), **digest_guard(before)} if now is not None else {}
        if any(states.get(name) != value for name, value in guard.items()):
            raise NotSentError("the document changed since it was read", status=OutcomeStatus.CONFLICT)
        if now is not None and not fresh:
            await self._refuse_nested(view, key)
        if undo and now is not None and view.lost and not isinstance(change, Update):
            raise NotSentError(f"the server does not return '{view.lost[0]}', so that this could not be undone")
        version = -1 if now is None or fresh else now[VERSION]
        back = {name: _kept(value) for name, value in before.items()}
        if isinstance(change, Delete):
            body: Any = {"delete": {"id": key, VERSION: version}}
            return encode(body), Insert(view.name, back, id=key)
        identity = {view.key: stored(view.key, key, view), VERSION: version}
        lost = view.lost
        if new := [column for column in change.values if column not in view.columns]:
            view = view.grow(new)
        values = typed(writable(change, view.columns.values()), lambda name, value: stored(name, value, view))
        if isinstance(change, Update):
            if lost:
                raise NotSentError(f"Solr would lose '{lost[0]}', which it searches and does not return")
            after = {name: value for name, value in {**before, **values}.items() if value is not None}
            place = RowKey(view.name, key, guard=digest_guard(after))
            body = [identity | {name: {"set": value} for name, value in values.items()}]
            return encode(body), Update(place, {name: back.get(name) for name in values})
        written = {name: value for name, value in values.items() if value is not None}
        left = digest_guard(written)
        if now is None:
            return encode([identity | written]), Delete(RowKey(view.name, key, guard=left))
        return encode([identity | written]), Insert(view.name, back, id=key, replace=True, guard=left)

    async def _stored(self, view: View, key: str) -> dict[str, Any] | None:
        """Return a document as it is now, seen by searches or not (S25)."""
        path = f"{self.path(view.name)}/get?id={quote(key, safe='')}&fl=*&wt=json"
        document: dict[str, Any] | None = (await self.get(path, _Document)).doc
        return document

    async def _refuse_nested(self, view: View, key: str) -> None:
        if ROOT in view.fields:
            root, own = ({"field": {"f": name, "query": key}} for name in (ROOT, view.key))
            pairs = ((root, own), (own, root))
            parts = [{"bool": {"must": [condition], "must_not": [other]}} for condition, other in pairs]
            body = search(view, Filters([{"bool": {"should": parts}}]), limit=0)
            if (await self.search(view.name, body)).response.num_found:
                raise NotSentError(_NESTED)

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Send the requests of a plan; the server compares the version (S21); look after an unanswered one (S26)."""
        outcomes = Outcomes()
        for planned in plan.planned:
            change, sent = plan.changes[planned.changes[0]], planned.request
            with outcomes.sending(planned.changes, row=row_of(change)):
                reply = await self.http.request(sent.method, sent.path, body=sent.body)
                outcomes.tell(planned.changes, self._outcome(reply, change, sent))
            first = outcomes.of(planned.changes[0])
            if first.status is OutcomeStatus.UNKNOWN and not isinstance(change, Drop):
                holds = await self._holds(object_of(change), sent)
                outcomes.tell(planned.changes, replace(first, holds=holds))
        return outcomes.of_plan(plan)

    def _outcome(self, reply: Any, change: Change, sent: HttpRequest) -> Outcome:
        status, key = status_of(reply.status, conflicts=(409,)), None
        if status is OutcomeStatus.APPLIED:
            answer = decode(reply.body, dict[str, Any])
            added = answer.get("adds") or []
            if len(added) == 2:
                key = RowKey(object_of(change), str(added[0]), guard={VERSION: added[1]})
            elif not (answer.get("deletes") or isinstance(change, Drop)):
                raise ValueError("the server names no version of what it wrote")
            return Outcome(change=0, status=status, id=key.id if key else row_of(change), key=key)
        reason = "the document changed or is gone" if status is OutcomeStatus.CONFLICT else ""
        reason = (reason and f"{reason}: ") + self.http.error(reply).message
        return Outcome(change=0, status=status, id=row_of(change), reason=reason)

    async def _holds(self, name: str, sent: HttpRequest) -> bool:
        """Return whether a document is known to be as a request would leave it."""
        view = await self.view(name)
        body: Any = decode(sent.body or "", object)
        row = body["delete"] if isinstance(body, dict) else body[0]
        try:
            now = await self._stored(view, str(row["id" if isinstance(body, dict) else view.key]))
        except DragomanError:
            return False
        if isinstance(body, dict) or now is None:
            return isinstance(body, dict) and now is None
        expected = {name: value["set"] if isinstance(value, dict) else value for name, value in row.items()}
        return all(now.get(name) == value for name, value in expected.items() if name != VERSION)


def _kept(value: Any) -> Any:
    return Json(encode(value)) if isinstance(value, list) else value


def _keyed(insert: Insert, view: View, draft: PlanDraft) -> Insert:
    """Return an insert with its id, and the members of a document as values, but those that the server computes."""
    if insert.document is not None:
        members = decode(insert.document, dict[str, Any])
        computed = [name for name in members if name in view.columns and view.columns[name].written is Written.NEVER]
        for name in computed:
            draft.note(MEMBERS, name, f"'{name}' is left out: {view.columns[name].reasons['edit']}")
        values = {name: _kept(value) for name, value in members.items() if name not in computed}
        insert = replace(insert, document=None, values=values)
    return insert.with_key(view.key) if view.key else insert
