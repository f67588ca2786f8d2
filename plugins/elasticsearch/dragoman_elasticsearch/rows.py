"""Rows while changes are planned: what each is on the server, and what the changes so far make of it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import Delete, Insert, OutcomeStatus, QueryError, RowKey
from dragoman_api.errors import RowNotFoundError
from dragoman_api.exchanges import encode

from . import edits, faults
from .documents import Stored
from .exchange import post, target
from .search import documents
from .writes import ROW_BYTES, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import DragomanError
    from dragoman_api.changes import Change

    from .exchange import Exchange

Way = tuple[str, ...]
SHA = "sha256"
"""The guard of a row whose sequence number is not known yet: the digest of its document, see `digest`."""

_BACKING = re.compile(r"\.ds-(.+)-\d{4}\.\d{2}\.\d{2}-\d{6,}")


class Refusal(Exception):  # noqa: N818 - not an error: a change that is not sent
    """A change is not sent, and why."""

    def __init__(self, reason: str, *, status: OutcomeStatus = OutcomeStatus.REFUSED) -> None:
        super().__init__(reason)
        self.status = status


def digest(document: bytes) -> str:
    """Give the digest of a document by value: `_update` orders and spells it anew."""
    return sha256(json.dumps(json.loads(document), sort_keys=True).encode()).hexdigest()


@dataclass(slots=True, kw_only=True)
class Row(Write):
    """One row, on its way to be written; `index` is concrete unless it is new, `routing` as stored.

    Attributes:
        before: The stored document; empty where the index keeps none, None where there is no row, or none was read.
        exact: `before` holds the stored bytes.
        now: The document after the changes so far; None for no row.
        ways: What a partial update would hold, by path.
        whole: A partial update cannot bring it about.
        blind: It takes the place of whatever is there.
        given: The guard the changes name.
    """

    before: bytes | None = None
    exact: bool = True
    now: bytes | None = None
    ways: dict[Way, object] = field(default_factory=dict)
    whole: bool = False
    blind: bool = False
    given: dict[str, int | str] = field(default_factory=dict)

    def expect(self, guard: dict[str, int | str]) -> None:
        """Hold the row to the guard of a change.

        Raises:
            Refusal: It cannot hold.
        """
        here = {f"if_{name}": value for name, value in guard.items()}
        if not guard or guard == self.given or here == self.guard:
            return
        if self.given or self.changes:
            reason = "an earlier change of the set speaks of another state of this row"
            raise Refusal(reason, status=OutcomeStatus.CONFLICT)
        if set(guard) == {SHA}:
            if not self.before or digest(self.before) != guard[SHA]:
                raise Refusal("the row is not, or no longer, as that change left it", status=OutcomeStatus.CONFLICT)
        elif set(guard) == {"seq_no", "primary_term"} and all(isinstance(each, int) for each in guard.values()):
            self.guard = {f"if_{name}": guard[name] for name in ("seq_no", "primary_term")}  # in the order of previews
        else:
            raise Refusal(f"a guard has the whole numbers seq_no and primary_term, not {encode(guard)}")
        self.given = guard

    def settle(self, *, undo: bool) -> bool:
        """Decide what is sent, and tell whether there is something to send.

        Raises:
            Refusal: The document is too long to be planned.
        """
        self.action, self.body = self._write()
        size = max(len((self.body or "").encode()), len(self.before or b"") if undo else 0)
        if size > ROW_BYTES:
            raise Refusal(f"the document has {size:,} bytes; a change takes {ROW_BYTES:,}; use the console")
        if self.action and undo:
            self.undo = self._undo()
        return bool(self.action)

    def _write(self) -> tuple[str, str | None]:
        if self.now is None:
            return "" if self.before is None and not self.blind else "delete", None
        if self.before is None:
            return "index" if self.blind else "create", self.now.decode()
        if not self.whole:
            with suppress(ValueError):  # one change set a part of what another set as a whole
                return "update", encode({"doc": edits.tree(self.ways)})
        return "index", self.now.decode()

    def _undo(self) -> Change:
        assert self.id is not None
        guard: dict[str, int | str] = {} if self.now is None else {SHA: digest(self.now)}
        if self.before is None:
            return Delete(RowKey(self.index, self.id, self.routing, guard))
        stream = _BACKING.fullmatch(self.index)  # which takes new rows through its own name only
        name = stream[1] if stream and self.now is None else self.index
        text, replace = self.before.decode(), self.now is not None
        return Insert(name, {}, self.id, replace=replace, routing=self.routing, guard=guard, document=text)


class _Found(Stored, frozen=True):
    found: bool = False
    error: dict[str, Any] | None = None


class _Answer(msgspec.Struct, frozen=True):
    docs: list[_Found]


_answer = msgspec.json.Decoder(_Answer)
Key = tuple[str, str | None]
"""Id and routing."""


def find(name: str, keys: Sequence[Key]) -> Exchange[list[tuple[Stored, bool] | DragomanError]]:
    """Read rows as they are now.

    Returns:
        For each key the row, and whether these are its very bytes; or why it cannot be had.
    """
    wanted = [{"_id": key, **({} if routing is None else {"routing": routing})} for key, routing in keys]
    fault, docs, rewritten = None, [], False
    try:
        answer, rewritten = yield from documents(post(f"/{target(name)}/_mget", {"docs": wanted}), _answer)
        docs = answer.docs
    except QueryError as error:
        fault = error
    if (fault or rewritten) and len(keys) > 1:  # the one document that is no JSON, or too much at once
        alone = []
        for key in keys:
            alone += yield from find(name, [key])
        return alone
    return [fault] if fault else [_read(name, doc, exact=not rewritten) for doc in docs]


def _read(name: str, doc: _Found, *, exact: bool) -> tuple[Stored, bool] | DragomanError:
    if doc.error is not None:
        return faults.error(faults.describe(400, doc.error))
    if not doc.found:
        return RowNotFoundError(f"'{name}' holds no document '{doc.id}'", hint="reload the page")
    return doc, exact
