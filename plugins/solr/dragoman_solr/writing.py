"""Changes: the documents of many rows in one update, each with the version that the server compares.

The rule of a measured fact is in parentheses, as in S21.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

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
from dragoman_api.changes import Change, object_of
from dragoman_api.grid import text_id
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.page_columns import MEMBERS
from dragoman_api.kit.row_changes import (
    NotSentError,
    Outcomes,
    PlanDraft,
    before_writing,
    fold,
    row_of,
    status_of,
    typed,
)
from dragoman_api.kit.writing import batches, digest_guard, writable

from .cores import Cores
from .fields import NEST, ROOT, VERSION, View, stored
from .queries import Filters, search

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dragoman_api.grid import RowId
    from dragoman_api.kit.row_changes import Folded

ROWS = 500  # most of one request
LONGEST = 4 * 2**20  # characters of their texts together
WITHIN = 10_000  # milliseconds until searches see what no request commits
_NAMED = 200  # documents that a search for nested ones names, each in four conditions (S15)
_COMMIT = "&commit=true"
_OF_ONE_ROW = (400, 409, 413)  # answers that one row, or the number of rows, may be the reason of
_NESTED = "the document is part of a nested one, which Solr replaces or deletes as a whole"
_EXISTS = "a document with this key exists"
_CHANGED = "the document changed or is gone"


class _Body(msgspec.Struct, omit_defaults=True):
    """The body of an update."""

    add: list[msgspec.Raw] = []
    delete: list[msgspec.Raw] = []


class _Write(msgspec.Struct, frozen=True):
    """What becomes of one row: a document to add, or a deletion; and the change that undoes it."""

    numbers: tuple[int, ...]
    deletes: bool
    text: msgspec.Raw
    undo: Change | None = None


class _Row(msgspec.Struct, frozen=True):
    """One row of a request, with the document that it adds or the key and the version that it deletes."""

    key: str
    numbers: list[int]
    deletes: bool
    text: msgspec.Raw
    parts: dict[str, Any]


class _Written(msgspec.Struct, rename="camel"):
    """The answer to an update: keys of documents, each before its version."""

    response_header: dict[str, Any] = {}
    adds: list[Any] = []
    deletes: list[Any] = []


class _Known(msgspec.Struct, frozen=True):
    """What the server has of the rows of some changes: documents, and which are nested or would lose a field."""

    documents: dict[str, dict[str, Any]] = {}
    nested: set[str] = set()
    losses: dict[str, str] = {}


class ChangeHooks(Cores):
    """The hooks of changes, over what the driver sends."""

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Read the documents of the changes, and make requests of many rows (S21-S27)."""
        if request.new is not None:
            raise UnsupportedOperationError("this driver makes no cores; the server needs a set of settings for one")
        draft, undo = PlanDraft(request.changes), list[Change]()
        names = dict.fromkeys(map(object_of, request.changes))
        views = {name: await self.view(name) if request.bulk else (await self.read_view(name))[0] for name in names}
        rows: dict[str, list[Folded]] = {name: [] for name in names}
        drops: list[Folded] = []
        for folded in fold(draft, keyed=lambda insert: _keyed(insert, views[insert.object], draft)):
            (drops if isinstance(folded.change, Drop) else rows[object_of(folded.change)]).append(folded)
        groups = [
            (view, sorted(part, key=lambda write: write.deletes))
            for name, view in views.items()
            for part in batches(
                await self._writes(rows[name], view, request, draft), _length, limit=ROWS, size_limit=LONGEST
            )
        ]
        for at, (view, group) in enumerate(groups, 1):
            commits = not request.bulk or (request.last and at == len(groups))
            path = f"{self.path(view.name)}/update?versions=true&failOnVersionConflicts=false&json.nl=flat&wt=json"
            path += f"&commitWithin={WITHIN}{_COMMIT if commits else ''}"
            draft.send(HttpRequest("POST", path, _body(group)), rows=[write.numbers for write in group])
            undo += [write.undo for write in group if write.undo is not None]
        for folded in drops:
            with draft.judging(*folded.numbers):
                base, _, core = self.path(name := object_of(folded.change)).rpartition("/")
                gone = "&deleteIndex=true&deleteDataDir=true&deleteInstanceDir=true"
                draft.send(
                    HttpRequest("POST", f"{base}/admin/cores?action=UNLOAD&core={core}{gone}&wt=json"), *folded.numbers
                )
                draft.note("settings-go", name, f"the schema and the settings of '{name}' go, too")
        return draft.plan(undo if request.undo else ())

    async def _writes(self, rows: Sequence[Folded], view: View, request: PlanRequest, draft: PlanDraft) -> list[_Write]:
        """Return what becomes of the rows of a core, as far as it is not refused."""
        keys: dict[str, Folded] = {}
        for folded in rows:
            with draft.judging(*folded.numbers):
                if keys.setdefault(_key(folded.change, view), folded) is not folded:
                    raise NotSentError("an earlier change of the set is about the same document, in another spelling")
        columns = {name for folded in rows for name in getattr(folded.change, "values", ())} - view.columns.keys()
        grown = view.grow(columns) if columns else view
        writes: list[_Write] = []
        for part in batches([*keys.items()], lambda _: 0, limit=ROWS, size_limit=0):
            with draft.judging(*(number for _, folded in part for number in folded.numbers)):
                current = await self._known(view, dict(part), undo=request.undo)
                for key, folded in part:
                    with draft.judging(*folded.numbers):
                        writes.append(_write(folded, key, grown, current, draft, undo=request.undo))
        return writes

    async def _known(self, view: View, rows: Mapping[str, Folded], *, undo: bool) -> _Known:
        """Read the documents that changes are about, but not those that a new one must not meet."""
        changing = [key for key, folded in rows.items() if not _is_new(folded.change)]
        documents = await self.stored(view, [*rows] if undo else changing)
        existing = [key for key in changing if key in documents]
        losses = await self._losses(view, documents, existing)
        return _Known(documents, await self._nested(view, existing), losses)

    async def _losses(self, view: View, documents: Mapping[str, dict[str, Any]], keys: Sequence[str]) -> dict[str, str]:
        """Return a field of each document that would not be the same when it is written again (S22, S29)."""
        losses = {key: name for key in keys for name in documents[key] if name in view.doubled}
        if view.copied and keys:
            condition = Filters([{"bool": {"should": [{"field": {"f": view.key, "query": key}} for key in keys]}}])
            for row in (await self.search(view.name, search(view, condition, limit=len(keys)))).response.docs:
                key = str(row.get(view.key))
                name = view.own_value(row)
                if name and key in documents and documents[key].get(VERSION) == row.get(VERSION):
                    losses.setdefault(key, name)
        return {**dict.fromkeys(keys, view.lost[0]), **losses} if view.lost else losses

    async def _nested(self, view: View, keys: Sequence[str]) -> set[str]:
        """Return the keys of documents that are parts of nested ones (S23)."""
        if ROOT not in view.fields or not keys:
            return set()
        if len(keys) <= _NAMED:
            pairs = [[{"field": {"f": name, "query": key}} for name in (ROOT, view.key)] for key in keys]
            parts = [
                {"bool": {"must": [condition], "must_not": [other]}}
                for root, own in pairs for condition, other in ((root, own), (own, root))
            ]  # fmt: skip
            rows = await self.search(view.name, search(view, Filters([{"bool": {"should": parts}}]), limit=0))
            if not rows.response.num_found or len(keys) == 1:
                return {*keys} if rows.response.num_found else set()
        half = len(keys) // 2
        return await self._nested(view, keys[:half]) | await self._nested(view, keys[half:])

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Send the requests of a plan; the server compares the versions (S21); look after what is unclear (S26)."""
        outcomes = Outcomes()
        for planned in plan.planned:
            request, change = planned.request, plan.changes[planned.changes[0]]
            with outcomes.sending(planned.changes):
                if isinstance(change, Drop):
                    outcomes.tell(planned.changes, self._judged(await self.send(request)))
                    continue
                with before_writing():
                    view = await self.view(object_of(change))
                    rows = _rows(request.body or "", planned.by_row, view)
                await self._send_rows(request, rows, view, outcomes, joins=plan.bulk)
        return outcomes.told if plan.bulk else outcomes.of_plan(plan)

    async def _send_rows(
        self, request: HttpRequest, rows: list[_Row], view: View, outcomes: Outcomes, *, joins: bool
    ) -> None:
        """Send rows; if the server refuses one of them, send those that were not written again, in halves (S30)."""
        waiting, failed, wrote = [rows], False, False
        while waiting:
            part, left = waiting.pop(), list[_Row]()
            failed = True
            with outcomes.sending([number for row in part for number in row.numbers]):
                reply = await self.send(replace(request, body=_body(part)))
                failed, versions = reply.status != 200, _versions(reply, {row.key for row in part})
                for row in part:
                    if row.key not in versions:
                        left.append(row)
                    elif joins:
                        outcomes.applied(row.numbers)
                    else:
                        key = None if row.deletes else RowKey(view.name, row.key, guard={VERSION: versions[row.key]})
                        applied = Outcome(change=0, status=OutcomeStatus.APPLIED, id=row.key, key=key)
                        outcomes.tell(row.numbers, applied)
                wrote |= bool(versions)
                if reply.status in _OF_ONE_ROW and len(left) > 1:
                    half = len(left) // 2
                    waiting += [left[half:], left[:half]]
                    continue
                for row in left:
                    outcomes.tell(row.numbers, self._judged(reply, row))
            await outcomes.look([(row.key, row.numbers) for row in part], partial(self._holding, view, part))
        if failed and wrote and request.path.endswith(_COMMIT):  # an error ends an update before its commit
            with suppress(DragomanError):
                await self.send(replace(request, body="{}"))

    async def _holding(self, view: View, rows: Sequence[_Row], keys: Sequence[RowId]) -> list[RowId]:
        """Return the keys of documents that are known to be as a request would leave them."""
        documents = await self.stored(view, [*map(text_id, keys)])
        return [row.key for row in rows if row.key in keys and _holds(row, documents.get(row.key), view)]

    def _judged(self, reply: Any, row: _Row | None = None) -> Outcome:
        """Return the outcome of a drop, or of a row that was not written: the server passes over a conflict."""
        status = status_of(reply.status, conflicts=(409,))
        reason = "" if status is OutcomeStatus.APPLIED else self.error(reply).message
        if row is not None and status is OutcomeStatus.APPLIED:
            status, reason = OutcomeStatus.CONFLICT, _EXISTS if row.parts[VERSION] == -1 else _CHANGED
        return Outcome(change=0, status=status, id=row.key if row else None, reason=reason)


def _key(change: Change, view: View) -> str:
    """Return the key of a row as the server's answers spell it."""
    if not view.key or VERSION not in view.fields:
        raise NotSentError(next(iter(view.columns.values())).reasons["edit"])
    if not (key := row_of(change)):
        raise NotSentError(f"a new document needs a value for its key, '{view.key}'")
    return str(stored(view.key, text_id(key), view))


def _is_new(change: Change) -> bool:
    return isinstance(change, Insert) and not change.replace


def _write(folded: Folded, key: str, view: View, current: _Known, draft: PlanDraft, *, undo: bool) -> _Write:
    """Return what becomes of a row, with the version that it has to have; the reason if it is not written."""
    change, now = folded.change, current.documents.get(key)
    assert not isinstance(change, Drop)
    guard = change.guard if isinstance(change, Insert) else change.key.guard
    if now is None and (guard or not isinstance(change, Insert)):
        raise NotSentError("the document is gone", status=OutcomeStatus.CONFLICT)
    before = {name: value for name, value in (now or {}).items() if view.writes(name)}
    states = {VERSION: now.get(VERSION), **digest_guard(before)} if now is not None else {}
    if any(states.get(name) != value for name, value in guard.items()):
        raise NotSentError("the document changed since it was read", status=OutcomeStatus.CONFLICT)
    if key in current.nested:
        raise NotSentError(_NESTED)
    if (loss := current.losses.get(key)) and (undo or isinstance(change, Update)):
        raise NotSentError(f"Solr would lose values of '{loss}', which it does not return, or fills from other fields")
    version = -1 if now is None or _is_new(change) else now[VERSION]
    back = {name: _kept(value) for name, value in before.items()}
    if isinstance(change, Delete):
        return _write_of(folded, {"id": key, VERSION: version}, Insert(view.name, back, id=key), deletes=True)
    identity = {view.key: stored(view.key, key, view), VERSION: version}
    values = typed(writable(change, view.columns.values()), lambda name, value: stored(name, value, view))
    if isinstance(change, Update):
        if view.remade:
            names = ", ".join(f"'{name}'" for name in view.remade)
            reason = f"Solr fills {names} from other fields again, and loses what else was written there"
            draft.note("fields-remade", view.name, reason)
        after = {name: value for name, value in {**before, **values}.items() if value is not None}
        place = RowKey(view.name, key, guard=digest_guard(after))
        sets = {name: {"set": value} for name, value in values.items()}
        return _write_of(folded, identity | sets, Update(place, {name: back.get(name) for name in values}))
    if loss:
        reason = "a document that is replaced loses what it holds in this field"
        draft.note("values-lost", view.name, reason, column=loss)
    written = {name: value for name, value in values.items() if value is not None}
    left = digest_guard(written) if undo else {}
    if now is None:
        return _write_of(folded, identity | written, Delete(RowKey(view.name, key, guard=left)))
    return _write_of(folded, identity | written, Insert(view.name, back, id=key, replace=True, guard=left))


def _write_of(folded: Folded, parts: Mapping[str, Any], undo: Change, *, deletes: bool = False) -> _Write:
    return _Write(folded.numbers, deletes, msgspec.Raw(encode(parts).encode()), undo)


def _length(write: _Write) -> int:
    return len(write.text)


def _body(rows: Sequence[_Write] | Sequence[_Row]) -> str:
    """Return the body of an update: the documents to add before those to delete."""
    return encode(_Body(*([row.text for row in rows if row.deletes is deletes] for deletes in (False, True))))


def _rows(body: str, by_row: Sequence[Sequence[int]], view: View) -> list[_Row]:
    """Return the rows of a body."""
    update, rows = decode(body, _Body), list[_Row]()
    texts = [(text, False) for text in update.add] + [(text, True) for text in update.delete]
    for (text, deletes), numbers in zip(texts, by_row, strict=True):
        parts = decode(bytes(text), dict[str, Any])
        rows.append(_Row(str(parts["id" if deletes else view.key]), [*numbers], deletes, text, parts))
    return rows


def _versions(reply: Any, keys: Collection[str]) -> dict[str, Any]:
    """Return the versions of the documents that an update wrote, which answers with an error may have, too (S21).

    Raises:
        ValueError: The answer does not say what was written.
    """
    answer = _Written()
    with suppress(ValueError) if reply.status != 200 else nullcontext():
        answer = decode(reply.body, _Written)
    if reply.status == 200 and answer.response_header.get("status") != 0:
        raise ValueError("the server does not say what it wrote")
    entries = answer.adds + answer.deletes
    versions = dict(zip(map(str, entries[::2]), entries[1::2], strict=True))
    if versions.keys() - keys or not all(isinstance(version, int) for version in versions.values()):
        raise ValueError(f"the server says that it wrote others: {encode(entries)[:200]}")
    return versions


def _holds(row: _Row, document: Mapping[str, Any] | None, view: View) -> bool:
    """Return whether a document is known to be as a request would leave it."""
    if row.deletes or document is None:
        return row.deletes and document is None
    whole = not any(isinstance(value, dict) for value in row.parts.values())
    if whole and document.keys() - row.parts.keys() - {ROOT, NEST, *view.doubled}:
        return False
    expected = {name: value["set"] if isinstance(value, dict) else value for name, value in row.parts.items()}
    return all(encode(document.get(name)) == encode(value) for name, value in expected.items() if name != VERSION)


def _kept(value: Any) -> Any:
    return Json(encode(value)) if isinstance(value, list) else value


def _keyed(insert: Insert, view: View, draft: PlanDraft) -> Insert:
    """Return an insert with its id, and the members of a document as values, but those that the server computes."""
    if insert.document is not None:
        members = decode(insert.document, dict[str, Any])
        computed = [name for name in members if name in view.columns and view.columns[name].written is Written.NEVER]
        for name in computed:
            reason = f"it is left out: {view.columns[name].reasons['edit']}"
            draft.note(MEMBERS, insert.object, reason, column=name)
        values = {name: _kept(value) for name, value in members.items() if name not in computed}
        insert = replace(insert, document=None, values=values)
    return insert.with_key(view.key) if view.key else insert
