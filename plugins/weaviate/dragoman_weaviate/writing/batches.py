"""Batches: many new objects in one request, which the server answers one by one.

It overwrites an object that exists without a word (`POST /v1/batch/objects`, seen on 1.38.11). Which ids are taken is
therefore asked just before: an object that somebody else makes in that instant is overwritten, and plans say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import HttpRequest, Insert, Outcome, OutcomeStatus, PlannedRequest, QueryError, RowKey
from dragoman_api.kit.exchanges import Exchange, ask, with_query
from dragoman_weaviate import graphql, protocol
from dragoman_weaviate.columns.field_types import Count
from dragoman_weaviate.protocol import object_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api import PlanRequest
    from dragoman_api.changes import Change
    from dragoman_api.replies import Reply
    from dragoman_weaviate.columns.grid_columns import View

BATCH_BYTES = 3 * 2**20
"""Maximum bytes of one batch; one element of a driver's answer holds 4 MiB."""

BATCH_ROWS = 1_000
"""Maximum rows of one batch."""

ROUTE = "/v1/batch/objects"
UNGUARDED = "batch-unguarded"
"""Code of the note that ids which must be new are looked up just before they are sent."""

SPLIT = (400, 413, 422)
"""Answers to a batch that may be about one of its rows, or about its length: nothing of it was stored."""

_BEGIN, _END = '{"objects":[', "]}"


class Body(msgspec.Struct):
    """The row that a request is about."""

    collection: str = msgspec.field(name="class", default="")
    id: str = ""
    tenant: str | None = None
    properties: Raw = Raw(b"{}")
    vector: Raw = Raw()
    vectors: Raw = Raw()


class _Batch(msgspec.Struct):
    objects: list[Raw]


class _Error(msgspec.Struct, frozen=True, gc=False):
    message: str = ""


class _Errors(msgspec.Struct, frozen=True, gc=False):
    error: list[_Error] | None = None


class _Result(msgspec.Struct, frozen=True, gc=False):
    status: str = ""
    errors: _Errors | None = None


class _Stored(msgspec.Struct, rename="camel", gc=False):
    """The answer for one object."""

    collection: str = msgspec.field(name="class", default="")
    id: str = ""
    last_update_time_unix: Count = 0
    result: _Result = _Result()


_body = msgspec.json.Decoder(Body)
_batch = msgspec.json.Decoder(_Batch)
_stored = msgspec.json.Decoder(list[_Stored])


class BatchRow(msgspec.Struct):
    """One row of a batch: the numbers of its changes, its text in the request, and what that says."""

    changes: list[int]
    text: str
    body: Body


def is_load(request: PlanRequest) -> bool:
    """Return whether all changes of a plan are rows of a load, which can be sent in batches."""
    plain = (isinstance(change, Insert) and not change.guard for change in request.changes)
    return request.bulk and not request.undo and all(plain)


class Drafts:
    """Batches while they are planned: of one collection and tenant each, with each id once."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._rows: list[list[int]] = []
        self._target: tuple[str, str | None] = ("", None)
        self._keys: set[str] = set()
        self._size = 0
        self.planned: list[PlannedRequest] = []

    def add(self, number: int, key: RowKey, text: str) -> None:
        """Add a row; one that does not fit into the batch begins the next one."""
        target, size = (key.object, key.routing), len(text if text.isascii() else text.encode())
        full = self._size + size > BATCH_BYTES or len(self._rows) == BATCH_ROWS
        if self._rows and (full or target != self._target or key.text in self._keys):
            self.close()
        self._target = target
        self._texts.append(text)
        self._rows.append([number])
        self._keys.add(key.text)
        self._size += size

    def close(self) -> None:
        """End the batch."""
        if self._rows:
            self.planned.append(_planned(self._texts, self._rows))
        self._texts, self._rows, self._keys, self._size = [], [], set(), 0


def _planned(texts: Iterable[str], rows: list[list[int]]) -> PlannedRequest:
    request = HttpRequest("POST", ROUTE, f"{_BEGIN}{','.join(texts)}{_END}")
    return PlannedRequest(request=request, changes=[number for row in rows for number in row], rows=rows)


def planned_again(rows: Sequence[BatchRow]) -> PlannedRequest:
    """Return the request of some rows of a batch, each as it was planned."""
    return _planned((row.text for row in rows), [row.changes for row in rows])


def rows_of(planned: PlannedRequest) -> list[BatchRow]:
    """Return the rows of a planned batch."""
    texts = [bytes(text) for text in _batch.decode(planned.request.body or "").objects]
    return [
        BatchRow(changes, text.decode(), _body.decode(text)) for changes, text in zip(planned.rows, texts, strict=True)
    ]


def taken(view: View, ids: Sequence[str], tenant: str | None) -> Exchange[set[str]]:
    """Return those ids of a collection that objects have; one search finds them, or each is asked for.

    Raises:
        DragomanError: The server does not say it.
    """
    if view.features.contains:
        where = {"path": ["id"], "operator": "ContainsAny", "valueText": [*ids]}
        try:
            reply = yield from ask(graphql.search(view, fields=(), where=where, limit=len(ids), tenant=tenant))
            return {row["_additional"]["id"] for row in graphql.objects(reply, view)}
        except QueryError as error:  # no GraphQL, or a window that is smaller
            if protocol.UNKNOWN_TENANT.search(error.message):
                raise
    heads = [HttpRequest("HEAD", with_query(object_path(view.target, id_), tenant=tenant)) for id_ in ids]
    replies = yield heads
    for head, reply in zip(heads, replies, strict=True):
        if reply.status not in (204, 404):  # an answer to HEAD has no body that says why
            again = yield from ask(HttpRequest("GET", head.path))
            raise protocol.exception(reply if 200 <= again.status < 300 else again)
    return {id_ for id_, reply in zip(ids, replies, strict=True) if reply.status == 204}


def outcomes(rows: Sequence[BatchRow], reply: Reply) -> list[Outcome]:
    """Return the outcome of each row by a successful answer.

    Raises:
        QueryError: It is not an answer to these rows.
    """
    stored_rows = protocol.decode(reply, _stored)
    if len(stored_rows) != len(rows):
        raise QueryError(f"the answer has the outcomes of {len(stored_rows)} rows instead of {len(rows)}")
    return [_outcome(row.body, stored) for row, stored in zip(rows, stored_rows, strict=True)]


def _outcome(row: Body, stored: _Stored) -> Outcome:
    status, reason, key = OutcomeStatus.UNKNOWN, "", None
    errors = (stored.result.errors and stored.result.errors.error) or []
    if (stored.collection, stored.id.lower()) != (row.collection, row.id.lower()):
        reason = f"the answer is about {stored.collection}/{stored.id}"
    elif stored.result.status == "FAILED":
        messages = "; ".join(dict.fromkeys(protocol.refusal_in_words(error.message) for error in errors))
        status, reason = OutcomeStatus.FAILED, protocol.shorten(messages) or "the server gives no reason"
    elif stored.result.status == "SUCCESS" and not errors:
        status = OutcomeStatus.APPLIED
        key = RowKey(row.collection, stored.id, row.tenant, {"lastUpdateTimeUnix": stored.last_update_time_unix})
    else:
        reason = f"the answer says {stored.result.status or 'nothing'}"
    return Outcome(change=0, status=status, id=row.id, reason=reason, key=key)


def refused(reply: Reply, *, busy: bool) -> Outcome:
    """Return the outcome of every row by the answer to a request that failed as a whole."""
    status = OutcomeStatus.UNKNOWN if protocol.unsure(reply) else OutcomeStatus.FAILED
    return Outcome(change=0, status=status, reason=protocol.exception(reply).message, busy=busy)


def must_be_new(change: Change) -> bool:
    """Return whether a row may not replace another one; one whose id the plan made meets none."""
    if not isinstance(change, Insert) or change.replace:
        return False
    return change.id is not None or change.values.get("uuid") is not None
