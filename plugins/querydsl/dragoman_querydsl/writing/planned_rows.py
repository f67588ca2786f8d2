"""Rows in a plan: what is stored, and what the changes so far make of it.

The rows of a load are new documents of one index, each a row of its own, of which nothing is read beforehand.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import Delete, Insert, OutcomeStatus, QueryError, RowKey
from dragoman_api.changes import InsertBatch, object_of
from dragoman_api.errors import RowNotFoundError
from dragoman_api.grid import text_id
from dragoman_api.json_text import MAX_DIGITS, encode
from dragoman_api.kit.exchanges import post
from dragoman_api.kit.row_changes import NotSentError
from dragoman_querydsl import protocol
from dragoman_querydsl.protocol import target, whole_documents
from dragoman_querydsl.search import StoredHit, documents

from . import edited_values
from .requests import RowWrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import DragomanError, PlanRequest
    from dragoman_api.changes import Change
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_api.kit.row_changes import PlanDraft
    from dragoman_querydsl.columns.grid_columns import View


def digest(document: bytes) -> str:
    """Return the digest of a document by value: `_update` reorders and respells it. Raises ValueError as `loaded`."""
    return sha256(json.dumps(loaded(document), sort_keys=True).encode()).hexdigest()


def same(document: bytes, other: bytes) -> bool:
    """Return whether two documents are equal by value; False if one cannot be read."""
    try:
        return document == other or (bool(document) and digest(document) == digest(other))
    except (ValueError, RecursionError):
        return False


def loaded(document: bytes) -> Any:
    """Read a document by value; an integer too long for Python is a text in an array.

    Raises:
        ValueError: It is not UTF-8, or is nested too deeply.
    """
    try:
        return json.loads(document, parse_int=lambda digits: int(digits) if len(digits) <= MAX_DIGITS else [digits])
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


class _StoredDoc(StoredHit, frozen=True):
    exists: bool = msgspec.field(default=False, name="found")
    error: dict[str, Any] | None = None


class _Answer(msgspec.Struct, frozen=True):
    docs: list[_StoredDoc]


_answer = msgspec.json.Decoder(_Answer)
RowId = tuple[str, str | None]
"""Id and routing."""


def read_rows(name: str, keys: Sequence[RowId]) -> Exchange[list[tuple[StoredHit, bool] | DragomanError]]:
    """Read stored rows.

    Returns:
        For each key the row and whether its bytes are exact, or the reason why it cannot be read.
    """
    addresses = [{"_id": key, **({} if routing is None else {"routing": routing})} for key, routing in keys]
    fault, docs, exact = None, [], True
    try:
        answer, exact = yield from documents(
            whole_documents(post(f"/{target(name)}/_mget", {"docs": addresses})), _answer
        )
        docs = answer.docs
    except QueryError as error:
        fault = error
    if not fault and len(docs) != len(keys):
        fault = QueryError(f"the server answered {len(docs)} of {len(keys)} documents")
    if (fault or not exact) and len(keys) > 1:  # find the one invalid document, or read less at once
        alone = []
        for key in keys:
            alone += yield from read_rows(name, [key])
        return alone
    if fault:
        return [fault]
    return [_read(name, key, doc, exact=exact) for (key, _), doc in zip(keys, docs, strict=True)]


def _read(name: str, key: str, doc: _StoredDoc, *, exact: bool) -> tuple[StoredHit, bool] | DragomanError:
    if doc.id != key:
        return QueryError(f"the server answered the document {doc.id!r} in place of {key!r}")
    if doc.error is not None:
        return protocol.exception(protocol.describe(400, doc.error))
    if not doc.exists:
        return RowNotFoundError(
            f"'{name}' holds no document '{doc.id}'", hint="it may have been deleted: read the page again"
        )
    if bytes(doc.source)[:1] not in (b"", b"{"):
        return QueryError(f"the document '{key}' in the answer is not a JSON object")
    return doc, exact


KeyPath = tuple[str, ...]
SHA = "sha256"
"""The guard of a row whose sequence number is not known yet: the digest of its document, see `digest`."""

_BACKING = re.compile(r"\.ds-(.+)-\d{4}\.\d{2}\.\d{2}-\d{6,}")


class PlannedRow(RowWrite, kw_only=True):
    """One row to be written; `index` is concrete unless the row is new, `routing` is as stored.

    Attributes:
        before: The stored document; empty if the index keeps none, None if no row exists or was read.
        exact: `before` holds the stored bytes.
        now: The document after the changes so far; None if the row is gone.
        ways: The values of a partial update, by path.
        whole: The whole document must be written; a partial update cannot express the change.
        blind: It replaces whatever is stored.
        change_guard: The guard in the changes.
    """

    before: bytes | None = None
    exact: bool = True
    now: bytes | None = None
    ways: dict[KeyPath, object] = msgspec.field(default_factory=dict)
    whole: bool = False
    blind: bool = False
    change_guard: dict[str, int | str] = msgspec.field(default_factory=dict)

    def expect(self, guard: dict[str, int | str]) -> None:
        """Check the guard of a change against the row, and keep the guard.

        Raises:
            NotSentError: The guard does not hold.
        """
        parameters = {f"if_{name}": value for name, value in guard.items()}
        if not guard or guard == self.change_guard or parameters == self.guard:
            return
        if self.change_guard or self.changes:
            reason = "an earlier change of the set has another guard for this row"
            raise NotSentError(reason, status=OutcomeStatus.CONFLICT)
        if set(guard) == {SHA}:
            if not self.before or digest(self.before) != guard[SHA]:
                raise NotSentError("the row was changed after that change", status=OutcomeStatus.CONFLICT)
        elif set(guard) == {"seq_no", "primary_term"} and all(isinstance(number, int) for number in guard.values()):
            self.guard = {f"if_{name}": guard[name] for name in ("seq_no", "primary_term")}  # in the order of previews
        else:
            raise NotSentError(f"a guard has the whole numbers seq_no and primary_term, not {encode(guard)}")
        self.change_guard = guard

    def settle(self, *, undo: bool) -> bool:
        """Choose the request, and return whether there is anything to send.

        Raises:
            NotSentError: The document is too long to be planned.
        """
        self.action, self.body = self._write()
        self.check(max(len((self.body or "").encode()), len(self.before or b"") if undo else 0))
        if self.action and undo:
            try:
                self.undo = self._undo()
            except RecursionError:
                raise NotSentError("the document is nested too deeply for the change to be undone") from None
        return bool(self.action)

    def _write(self) -> tuple[str, str | None]:
        if self.now is None:
            return "" if self.before is None and not self.blind else "delete", None
        if self.before is None:
            return "index" if self.blind else "create", self.now.decode()
        if not self.whole:
            with suppress(ValueError):  # one change sets a part of what another sets as a whole
                return "update", encode({"doc": edited_values.tree(self.ways)})
        return "index", self.now.decode()

    def _undo(self) -> Change:
        assert self.id is not None
        guard: dict[str, int | str] = {} if self.now is None else {SHA: digest(self.now)}
        if self.before is None:
            return Delete(RowKey(self.index, self.id, self.routing, guard))
        stream = _BACKING.fullmatch(self.index)  # a data stream takes new rows through its own name only
        name = stream[1] if stream and self.now is None else self.index
        text, replace = self.before.decode(), self.now is not None
        return Insert(name, {}, self.id, replace=replace, routing=self.routing, guard=guard, document=text)


def is_load(request: PlanRequest) -> bool:
    """Return whether a plan has only such rows; then no change of it depends on another one, nor on what is stored."""
    if not request.bulk or request.undo or not request.changes:
        return False
    if isinstance(request.changes, InsertBatch):
        return not any(request.changes.values) and None not in (request.changes.documents or [None])
    name, id_count, keys = object_of(request.changes[0]), 0, set()
    for change in request.changes:
        if (
            not isinstance(change, Insert)
            or change.object != name
            or change.document is None
            or change.values
            or change.guard
        ):
            return False
        if change.id is not None:
            if not isinstance(change.id, str):
                return False
            id_count += 1
            keys.add((change.id, change.routing))
    return len(keys) == id_count


def check_routing(view: View, routing: str | None) -> None:
    """Refuse a row with an empty routing, and one without the routing that its index requires.

    The server says so of a row with an id only; without one, and for a read, 7.17 answers "id must not be null" (500)
    and "type must not be null" (seen on 7.17.29).

    With an empty routing the server writes a row as if it had none, and then looks for it elsewhere (seen on 8.19.21).

    Raises:
        NotSentError: The routing is missing, or empty.
    """
    if routing == "":
        raise NotSentError("its routing is an empty text, which the server takes for none; leave it out")
    if view.routed and routing is None:
        raise NotSentError(f"'{view.target}' needs a routing for every row (_routing.required), and this one has none")


def writes(draft: PlanDraft, view: View, *, refresh: bool) -> list[RowWrite]:
    """Return the write of each row; a row that cannot be written is refused in the draft."""
    row_writes = []
    for number, change in enumerate(draft.changes):
        with draft.judging(number):
            assert isinstance(change, Insert)
            check_routing(view, change.routing)
            document = edited_values.whole(change.document or "")
            row = RowWrite(
                action="index" if change.replace else "create", index=change.object,
                id=None if change.id is None else text_id(change.id), body=change.document, routing=change.routing,
                refresh=refresh, changes=[number],
            )  # fmt: skip
            row.check(len(document))
            row_writes.append(row)
    return row_writes
