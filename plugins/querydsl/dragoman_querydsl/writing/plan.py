"""Plan changes: read the rows, refuse what cannot be written, and build the exact requests (E23, E28-E31, E33)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import (
    Delete,
    DragomanError,
    Drop,
    HttpRequest,
    Insert,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    PlanRequest,
    QueryError,
    Update,
)
from dragoman_api.cells import is_cut
from dragoman_api.changes import InsertBatch, object_of
from dragoman_api.columns import ColumnKind, Note
from dragoman_api.errors import ObjectNotFoundError
from dragoman_api.grid import text_id
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.row_changes import NotSentError, PlanDraft, row_of, typed
from dragoman_querydsl import objects
from dragoman_querydsl.columns.grid_columns import COMPUTED, View
from dragoman_querydsl.protocol import segment
from dragoman_querydsl.search import StoredHit

from . import edited_values, planned_rows
from .planned_rows import PlannedRow, RowId, read_rows, same
from .requests import ID_BYTES, RowWrite, batch_request, planned_requests

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dragoman_api import RowKey
    from dragoman_api.changes import Change, NewColumn, NewObject
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_querydsl.columns.field_types import Field

PLAN_BYTES = 24 * 2**20
"""Bytes of documents in one plan at most, before-images included; a driver's answer has 64 MiB."""

_SOON = 10.0  # maximum seconds that a request waits for a refresh
_WAITING = 100.0  # maximum seconds that all requests of a plan wait
_BATCH = 500  # rows of one _mget
_CUT = "the value is only the beginning of a long one; fetch the whole cell and edit that"
_BROKEN = "the stored document is not valid JSON (a comment, half a character): only its own bytes would bring it back"
_PRUNED = "the index keeps fields that its stored documents leave out"
_ONE = re.compile(r'(?![-_+])(?!\.\.?$)[^*,?/\\<>|"#:\s\x00-\x1f\x7f]+')
_UNSAFE = re.compile(r'[*,?/\\<>|"#%:\s]|^[-_+.]')


class _Planner(msgspec.Struct, kw_only=True):
    """Builds one plan, and keeps what it read of objects and rows."""

    views: dict[str, View]
    undo: bool
    bulk: bool
    last: bool
    draft: PlanDraft
    settings: dict[str, Mapping[str, objects.IndexSettings] | None] = msgspec.field(default_factory=dict)
    hits: dict[tuple[str, RowId], tuple[StoredHit, bool] | DragomanError] = msgspec.field(default_factory=dict)
    rows: dict[object, PlannedRow] = msgspec.field(default_factory=dict)
    drops: list[PlannedRequest] = msgspec.field(default_factory=list)
    dropped: set[str] = msgspec.field(default_factory=set)
    slowest: float = 0.0  # seconds between two refreshes

    def read(self, changes: Sequence[Change]) -> Exchange[None]:
        """Read the rows of several changes, many at once."""
        keys_by_object: dict[str, dict[RowId, None]] = {}
        for change in changes:
            if isinstance(change, (Update, Delete)) and change.key.id:
                keys_by_object.setdefault(change.key.object, {})[change.key.text, change.key.routing] = None
            elif (
                isinstance(change, Insert)
                and change.id
                and (self.undo or change.guard or (_restores(change) and not self.bulk))
            ):
                keys_by_object.setdefault(change.object, {})[text_id(change.id), change.routing] = None
        size = 0
        for name, keys in keys_by_object.items():
            try:
                yield from self._read_settings(name)
            except (ObjectNotFoundError, QueryError):
                continue  # each change reports it
            for batch in (list(keys)[at : at + _BATCH] for at in range(0, len(keys), _BATCH)):
                read = yield from read_rows(name, batch)
                self.hits |= {(name, key): hit for key, hit in zip(batch, read, strict=True)}
                size += sum(len(bytes(hit[0].source)) for hit in read if isinstance(hit, tuple))
                _check_size(size, len(changes))

    def load(self) -> Exchange[list[RowWrite]]:
        """Return the writes of a load; all rows are refused if the index is missing."""
        with self.draft.judging(*range(len(self.draft.changes))):
            name = object_of(self.draft.changes[0])
            refresh = yield from self._index(name)
            view = yield from self._view(name)
            batch = self.draft.changes
            if isinstance(batch, InsertBatch) and (whole := batch_request(batch, routed=view.routed, refresh=refresh)):
                self.draft.planned.append(whole)
                return []
            return planned_rows.writes(self.draft, view, refresh=refresh)
        return []

    def change(self, number: int, change: Change) -> Exchange[None]:
        """Apply one change to its planned row."""
        if object_of(change) in self.dropped:  # drops are sent last
            raise NotSentError(f"an earlier change of the set drops '{object_of(change)}'")
        if isinstance(change, Insert):
            row = yield from self._insert(change, number)
        elif isinstance(change, Drop):
            request = yield from self._drop(change.object)
            self.dropped.add(change.object)
            return self.drops.append(PlannedRequest(request=request, changes=[number]))
        elif isinstance(change, Update):
            row = yield from self._update(change)
        else:
            row = yield from self._row(change.key)
            if not row.exact and self.undo:
                raise NotSentError(_BROKEN)
            yield from self._returns(change.key.object)
            row.now = None
        return row.changes.append(number)

    def _insert(self, change: Insert, number: int) -> Exchange[PlannedRow]:
        if change.guard and not change.replace:
            raise NotSentError("a guard needs a stored row; give 'replace' to overwrite it")
        refresh = yield from self._index(change.object)
        planned_rows.check_routing((yield from self._view(change.object)), change.routing)
        if change.document is not None and not change.values:
            document = edited_values.whole(change.document)
        else:
            document = yield from self._filled(change)
        # The undo needs an id before the row is written.
        row_id = None if change.id is None else text_id(change.id)
        key = secrets.token_urlsafe(15) if row_id is None and self.undo else row_id
        if key is not None and not 0 < len(key.encode()) <= ID_BYTES:
            raise NotSentError(f"an _id has 1 to {ID_BYTES} bytes")
        address = number if key is None else (change.object, (key, change.routing))
        row = self.rows.get(address)
        if row is None:
            hit = self.hits.get(address) if isinstance(address, tuple) else None
            if isinstance(hit, tuple) and not change.replace:  # while sending, it could be the change itself
                holds = same(bytes(hit[0].source), document)
                raise NotSentError("a row with this id exists already", status=OutcomeStatus.CONFLICT, holds=holds)
            if isinstance(hit, tuple):
                yield from self._returns(change.object)
                row = self._stored(change.object, (row_id or "", change.routing), hit, refresh=refresh)
            elif change.guard:
                raise NotSentError("the row that it was to replace is gone", status=OutcomeStatus.CONFLICT)
            else:
                blind = change.replace and hit is None
                row = PlannedRow(index=change.object, id=key, routing=change.routing, refresh=refresh, blind=blind)
                self.rows[address] = row
        elif row.now is not None and not change.replace:
            raise NotSentError("an earlier change of the set writes this row; 'replace' would overwrite it")
        row.expect(change.guard)
        row.now, row.whole = document, True
        return row

    def _index(self, name: str) -> Exchange[bool]:
        """Check that a name is that of an index which takes new rows, and return whether to wait for its refresh."""
        if not _ONE.fullmatch(name):
            raise NotSentError(f"{name!r} is not the name of one index; an insert takes one index")
        return (yield from self._refresh(name))

    def _filled(self, change: Insert) -> Exchange[bytes]:
        if change.document is not None:
            raise NotSentError("it has both values and a document; give one of the two")
        view = yield from self._view(change.object)
        values = {name: value for name, value in change.values.items() if value is not None}
        if not values:  # a document without fields, unless all of them are null
            return b"{}"
        return encode(edited_values.tree({field.keys: value for field, value in _typed(view, values)})).encode()

    def _update(self, change: Update) -> Exchange[PlannedRow]:
        yield from self._refresh(change.key.object)
        view = yield from self._view(change.key.object)
        typed = _typed(view, change.values)
        row = yield from self._row(change.key)
        document = row.now or b""
        if not document:
            raise NotSentError("the index keeps no documents (_source), so none can be changed")
        if view.pruned and row.before and not row.whole:  # the server indexes the document as it is stored
            raise NotSentError(f"{_PRUNED} ({view.pruned}), and an edit would remove them from the index for good")
        own_settings = (self.settings[change.key.object] or {}).get(row.index)
        synthetic = view.synthetic or (own_settings is not None and own_settings.synthetic)
        if synthetic and any(edited_values.opens(value, b"[", b"{") for _, value in typed):
            raise NotSentError("the index rebuilds its documents (synthetic _source): arrays come back changed")
        ways = {edited_values.spelled(document, field): value for field, value in typed}
        edited_values.tree(ways)
        # A partial update merges objects and keeps removed keys: write the whole document instead.
        whole = row.whole or any(edited_values.opens(value, b"{") for value in ways.values())
        if not row.exact and (whole or self.undo):
            raise NotSentError(_BROKEN)
        # A partial update respells numbers, those that it sets too.
        whole |= (
            row.exact
            and not synthetic
            and any(edited_values.respelled(encode(value).encode()) for value in ways.values())
        )
        if whole:
            self._rebuilt(view)
        for way, value in ways.items():
            document = edited_values.replaced(document, way, value)
        row.now, row.whole, row.ways = document, whole, row.ways | ways
        return row

    def note_respelling(self, row: PlannedRow) -> None:
        """Note what a row's write changes besides what it was asked to."""
        if row.action == "update" and row.now and (digits := edited_values.respelled(row.now)):
            reason = f"a partial update makes the server rewrite numbers: {digits} may come back with other digits"
            self.draft.note("digits-rewritten", "", reason)

    def _row(self, key: RowKey) -> Exchange[PlannedRow]:
        if not key.id:
            raise NotSentError("the row has no _id, so no request can name it", status=OutcomeStatus.SKIPPED)
        address = (key.object, (key.text, key.routing))
        if (row := self.rows.get(address)) is None:
            refresh = yield from self._refresh(key.object)
            hit = self.hits[address]
            if isinstance(hit, DragomanError):
                planned_rows.check_routing((yield from self._view(key.object)), key.routing)
                raise hit
            row = self._stored(*address, hit, refresh=refresh)
        if row.now is None:
            raise NotSentError("an earlier change of the set deletes this row")
        row.expect(key.guard)
        return row

    def _stored(self, name: str, key: RowId, hit: tuple[StoredHit, bool], *, refresh: bool) -> PlannedRow:
        stored, exact = hit
        indices = self.settings[name]
        if stored.index not in indices if indices is not None else not _ONE.fullmatch(stored.index):
            raise NotSentError(f"the server answered a row of '{stored.index}', and '{name}' does not stand for that")
        source = bytes(stored.source)
        if self.undo and not source:
            raise NotSentError("the index keeps no documents (_source), so nothing could be taken back")
        # Use the concrete index, since an alias may have several, and the stored routing, which PUT would lose.
        at = (stored.index, (stored.id, stored.routing))
        guard = {f"if_{name}": value for name, value in stored.key.guard.items()}
        fresh = PlannedRow(
            index=stored.index, id=stored.id, routing=stored.routing, refresh=refresh, before=source, now=source,
            guard=guard, exact=exact,
        )  # fmt: skip
        row = self.rows[name, key] = self.rows.setdefault(at, fresh)
        return row

    def _returns(self, name: str) -> Exchange[None]:
        """Check that the rows of an object can be taken back, if that is requested."""
        if self.undo:
            view = yield from self._view(name)
            if view.pruned:
                raise NotSentError(f"{_PRUNED} ({view.pruned}), so the row could not be taken back whole")
            self._rebuilt(view)

    def _rebuilt(self, view: View) -> None:
        """Note that a document that is written whole, now or by an undo, may not be the stored one to the byte."""
        for note in view.rebuilt_notes():
            self.draft.note(note.code, "", note.reason)

    def _drop(self, name: str) -> Exchange[HttpRequest]:
        if not name or name == "_all" or _UNSAFE.search(name) or name != name.lower():
            raise NotSentError(f"{name!r} is not the exact name of one index; a drop takes one index")
        indices = yield from self._read_settings(name)
        if indices is not None and list(indices) != [name]:
            raise NotSentError(f"'{name}' is an alias or a data stream of {', '.join(indices)}; drop the index itself")
        return HttpRequest("DELETE", f"/{segment(name)}")

    def _view(self, name: str) -> Exchange[View]:
        if name not in self.views:
            self.views[name] = yield from objects.view(name)
        return self.views[name]

    def _read_settings(self, name: str) -> Exchange[Mapping[str, objects.IndexSettings] | None]:
        """Check that an index exists: writing to a missing one would create it. None if it is hidden."""
        if name not in self.settings:
            self.settings[name] = yield from objects.index_settings(name)
        return self.settings[name]

    def _refresh(self, name: str) -> Exchange[bool]:
        """Return whether to wait for a refresh; a request that waits longer than its deadline would be in doubt."""
        indices = yield from self._read_settings(name)
        text, seconds = max(
            (settings.refresh for settings in (indices or {}).values()), key=itemgetter(1), default=("", 1.0)
        )
        if self.bulk and not self.last:
            return False
        if seconds <= _SOON:
            self.slowest = max(self.slowest, seconds)
            return True
        rarely = f"refreshes every {text} only" if seconds < inf else "refreshes on request only"
        reason = f"'{name}' {rarely} (index.refresh_interval is {text}): a search sees this later"
        code = "refresh-late" if seconds < inf else "refresh-off"
        self.draft.note(code, name, reason)
        return False

    def requests(self, rows: Sequence[RowWrite]) -> list[tuple[PlannedRequest, list[RowWrite]]]:
        """Build the requests; many do not wait for a refresh each."""
        sent = list(planned_requests(rows))
        if sum(batch[0].refresh for _, batch in sent) * self.slowest > _WAITING:
            for row in rows:
                row.refresh = False
            reason = f"these are {len(sent):,} requests, which do not wait for a refresh each: a search sees this later"
            self.draft.note("refresh-late", "", reason)
            sent = list(planned_requests(rows))
        return sent


def _restores(change: Insert) -> bool:
    """Return whether a change brings a deleted row back, as an undo file does: the row may never have been deleted."""
    return change.document is not None and not change.replace


def described(request: PlanRequest) -> set[str]:
    """Name the objects of which a plan needs a view."""
    if isinstance(request.changes, InsertBatch):
        return {request.changes.object}
    return {object_of(change) for change in request.changes if request.undo or isinstance(change, Insert | Update)}


def plan_changes(request: PlanRequest, views: dict[str, View]) -> Exchange[Plan]:
    """Plan the exact requests that carry out changes; this may read, and never writes.

    Args:
        request: The changes.
        views: Views of objects as they are now; the others are read.
    """
    draft = PlanDraft(request.changes)
    planner = _Planner(views=views, undo=request.undo, bulk=request.bulk, last=request.last, draft=draft)
    if planned_rows.is_load(request):
        rows = yield from planner.load()
        _check_size(sum(row.size for row in rows), len(request.changes))
        draft.planned += [planned for planned, _ in planner.requests(rows)]
        return draft.plan()
    keyed: dict[int, Change] = {}
    for number, change in enumerate(request.changes):
        with draft.judging(number):
            keyed[number] = _keyed(change)
    yield from planner.read([*keyed.values()])
    for number, change in keyed.items():
        with draft.judging(number):
            yield from planner.change(number, change)
    final_rows: list[PlannedRow] = []
    for row in {id(row): row for row in planner.rows.values() if row.changes}.values():
        with draft.judging(*row.changes):
            if not row.settle(undo=request.undo):
                raise NotSentError("a later change of the set deletes the row again", status=OutcomeStatus.SKIPPED)
            planner.note_respelling(row)
            final_rows.append(row)
    _check_size(sum(row.size for row in final_rows), len(request.changes))
    sent = planner.requests(final_rows)
    draft.planned += [*(planned for planned, _ in sent), *planner.drops]
    return draft.plan(undo=[write.undo for _, batch in sent for write in batch if write.undo is not None])


def _check_size(size: int, changes: int) -> None:
    if size > PLAN_BYTES and changes > 1:
        text = f"the documents of these changes have {size:,} bytes; one plan takes {PLAN_BYTES:,}"
        raise QueryError(text, hint="plan fewer changes at a time", code="plan-too-large")


def _keyed(change: Change) -> Change:
    """Return a change whose key is in its `id`, and a text.

    Raises:
        ValueError, QueryError: There is no such key here.
    """
    keyed = change.with_key("_id") if isinstance(change, Insert) else change
    if (key := row_of(keyed)) is not None:
        text_id(key)
    return keyed


def _typed(view: View, values: Mapping[str, object]) -> list[tuple[Field, object]]:
    """Type the values of a row, and report all faults at once."""

    def edited(name: str, value: object) -> tuple[Field, object]:
        field = view.find(name)
        if field is None:
            raise ValueError("there is no such column")
        reason = field.support[1].get("edit", "")
        if reason and field.nested and not field.alias:
            nested = f"{name} is a nested leaf; edit '{field.nested[0]}'"
            raise NotSentError(nested, status=OutcomeStatus.SKIPPED)
        if reason or is_cut(value):
            raise ValueError(reason or _CUT)
        return field, edited_values.edited(field, value)

    if not values:
        raise NotSentError("there is nothing to write")
    return [*typed(values, edited).values()]


_NAME = re.compile(r'(?![-_+])(?!\.\.?$)[^*,?/\\<>|"#:\s\x00-\x1f\x7f]{1,255}')


class _Index(msgspec.Struct):
    mappings: Raw


_TYPES: dict[ColumnKind, dict[str, object]] = {
    ColumnKind.TEXT: {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},  # as dynamic
    ColumnKind.INTEGER: {"type": "long"},
    ColumnKind.FLOAT: {"type": "double"},
    ColumnKind.BOOLEAN: {"type": "boolean"},
    ColumnKind.TIMESTAMP: {"type": "date"},
    ColumnKind.DATE: {"type": "date"},
    ColumnKind.BINARY: {"type": "binary"},
    ColumnKind.JSON: {"type": "object", "enabled": False},  # kept as it is, and not searched
}
_OWN = ("_id", "_index", "_routing", "_source", *COMPUTED)


def _fields(columns: Collection[NewColumn], types: Collection[str]) -> dict[str, object]:
    """Return the mapping of columns; what the server keeps of each document itself, such as ``_id``, is no field."""
    if unknown := next((column for column in columns if column.kind not in _TYPES), None):
        text = f"an index has no type for {unknown.name!r} as {unknown.kind}"
        raise QueryError(text, hint=f"use one of: {', '.join(_TYPES)}")
    return {
        column.name: _TYPES[column.kind] if column.dimensions is None else _vector(column, types)
        for column in columns
        if column.name not in _OWN
    }


def _vector(column: NewColumn, types: Collection[str]) -> dict[str, object]:
    """Return the mapping of vectors: both kinds of servers have one, under different names."""
    if column.kind is not ColumnKind.FLOAT or column.dimensions is None:
        raise QueryError(f"the vectors of {column.name!r} hold floats, not {column.kind}")
    if not column.dimensions:
        raise QueryError(f"nothing says how many numbers the vectors of {column.name!r} have")
    if "dense_vector" in types:
        return {"type": "dense_vector", "dims": column.dimensions}
    return {"type": "knn_vector", "dimension": column.dimensions}


def plan_index(new: NewObject, *, types: Collection[str] = ()) -> Plan:
    """Plan the index; the server maps each field that nothing is said of when a document has it (dynamic).

    Args:
        new: The index.
        types: The types of fields that the server has beside the usual ones.

    Raises:
        QueryError: No index can have the name, the other object has more than one mapping, or a column has a kind that
            no field has.
    """
    if not _NAME.fullmatch(new.name) or new.name != new.name.lower():
        raise QueryError(
            f"{new.name!r} cannot be the name of an index", hint="use lower case, without * , ? / and blanks"
        )
    body, notes = None, list[Note]()
    if new.like:
        indices = [*decode(new.like, dict[str, _Index]).values()]
        if len(indices) != 1:
            text = f"the rows come from indices with {len(indices)} mappings, and one index has one"
            raise QueryError(text, hint="make the index in the console")
        body = encode({"mappings": indices[0].mappings})
    elif new.columns:
        vectors = "knn_vector" in types and any(column.dimensions is not None for column in new.columns)
        settings = {"settings": {"index": {"knn": True}}} if vectors else {}
        notes = [
            Note(code="column-kept-apart", column=column.name, reason="the server keeps one of that name itself")
            for column in new.columns
            if column.name in _OWN and not column.is_id
        ]
        body = encode({**settings, "mappings": {"properties": _fields(new.columns, types)}})
    request = HttpRequest("PUT", f"/{segment(new.name)}", body)
    return Plan(planned=[PlannedRequest(request=request, changes=[])], notes=notes)
