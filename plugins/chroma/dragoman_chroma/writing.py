"""Changes: rows as the bodies of requests, planned from the stored records and sent after another look at them.

The server compares nothing, answers 200 whatever became of a row, and merges what it writes (C32-C38). So a plan keeps
digests of its rows, which are compared just before the request is sent: no compare-and-set, but a narrow gap.
"""

from __future__ import annotations

from array import array
from decimal import Decimal
from itertools import chain, groupby
from math import isinf
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    ColumnKind,
    Delete,
    Drop,
    HttpRequest,
    Insert,
    Json,
    Outcome,
    OutcomeStatus,
    Plan,
    RowKey,
    Update,
)
from dragoman_api.changes import Change
from dragoman_api.grid import RowId, text_id
from dragoman_api.json_text import decode, encode
from dragoman_api.kit import operands
from dragoman_api.kit.row_changes import (
    NotSentError,
    Outcomes,
    PlanDraft,
    after_writing,
    before_writing,
    fold,
    status_of,
    typed,
)
from dragoman_api.kit.writing import batches

from .records import (
    DOCUMENT,
    EMBEDDING,
    ID,
    MOST_IDS,
    URI,
    StoredRecord,
    View,
    key_of,
    name_of,
    survives,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from dragoman_api import Column, DragomanError, PlannedRequest, PlanRequest
    from dragoman_api.changes import Values
    from dragoman_api.kit.row_changes import Folded

_LONGEST = 8 * 2**20  # characters of a body; the server takes 40 MB
_GONE, _THERE = "the record is gone", "a record with this id exists; 'replace' would overwrite it"
_CHANGED = "the record changed since it was read"
_REMAIN = "the server keeps the arrays in the metadata of a dropped collection and may show them in new records:"


class _Body(msgspec.Struct, frozen=True, omit_defaults=True):
    ids: list[str]
    embeddings: list[Any] | None = None
    documents: list[str | None] | None = None
    uris: list[str | None] | None = None
    metadatas: list[dict[str, Any] | None] | None = None


class _Write(msgspec.Struct, frozen=True):
    """What one folded change writes: the parts of a record, and the change that undoes it."""

    verb: str
    parts: StoredRecord
    undo: Change | None = None


async def plan_rows(
    request: PlanRequest,
    stored: Callable[[str, Sequence[str]], Awaitable[tuple[Any, dict[str, StoredRecord]]]],
    batch: int,
) -> Plan:
    """Plan changes: one request for each row, or for many new rows of a load."""
    draft = PlanDraft(request.changes)
    undo: list[Change] = []
    rows: dict[str, list[tuple[Folded, str]]] = {}
    for folded in fold(draft, keyed=_keyed):
        with draft.judging(*folded.numbers):
            change = folded.change
            if isinstance(change, Drop):
                view, _ = await stored(change.object, ())
                path = f"{view.path.rpartition('/')[0]}/{view.name.rpartition('/')[2]}"
                draft.send(HttpRequest("DELETE", path), *folded.numbers)
                if any(column.repeated and column.name != EMBEDDING for column in view.columns.values()):
                    draft.note("arrays-remain", view.name, f"{_REMAIN} '{view.name}'")
                continue
            name = change.object if isinstance(change, Insert) else change.key.object
            key = (change.id or str(uuid4())) if isinstance(change, Insert) else change.key.id
            rows.setdefault(name, []).append((folded, text_id(key)))
    for name, changes in rows.items():
        for start in range(0, len(changes), MOST_IDS):
            part = changes[start : start + MOST_IDS]
            with draft.judging(*(number for folded, _ in part for number in folded.numbers)):
                view, records = await stored(name, [key for _, key in part])
                writes: list[tuple[Folded, _Write, str]] = []
                for folded, key in part:
                    with draft.judging(*folded.numbers):
                        record = records.get(key)
                        write = _write(folded.change, key, record, view, undo=request.undo)
                        writes.append((folded, write, record.state + record.vector if record else ""))
                undo += _send(draft, view.path, writes, batch if request.bulk else 1)
    return draft.plan(undo if request.undo else ())


def _send(draft: PlanDraft, path: str, writes: Sequence[tuple[Folded, _Write, str]], batch: int) -> list[Change]:
    """Plan the requests of some rows: those that follow one another with one verb share a request, up to a size."""
    undo: list[Change] = []
    for verb, alike in groupby(writes, key=lambda row: row[1].verb):
        for group in batches([*alike], lambda row: len(encode(row[1].parts)), limit=batch, size_limit=_LONGEST):
            body = _body(verb, [write.parts for _, write, _ in group])
            guard = {write.parts.id: state for _, write, state in group}
            rows = [folded.numbers for folded, _, _ in group]
            draft.send(HttpRequest("POST", f"{path}/{verb}", body), rows=rows, guard=guard)
            undo += [write.undo for _, write, _ in group if write.undo is not None]
    return undo


def _body(verb: str, parts: Sequence[StoredRecord]) -> str:
    ids = [part.id for part in parts]
    if verb == "delete":
        return encode(_Body(ids))
    vectors = [msgspec.Raw(part.embedding.encode()) if part.embedding else None for part in parts]
    columns: list[list[Any] | None] = [
        vectors,
        [part.document for part in parts],
        [part.uri for part in parts],
        [part.metadata or None for part in parts],
    ]
    return encode(
        _Body(ids, *(values if any(value is not None for value in values or ()) else None for values in columns))
    )


def _write(change: Change, key: str, record: StoredRecord | None, view: View, *, undo: bool) -> _Write:
    """Return what one change writes, or raise the reason why it is not sent."""
    if not isinstance(change, Insert) and record is None:
        raise NotSentError(_GONE, status=OutcomeStatus.CONFLICT)
    guard = change.guard if isinstance(change, Insert) else change.key.guard  # type: ignore[union-attr]
    if guard and (record is None or not guard.items() <= {**record.guard}.items()):
        raise NotSentError(_CHANGED, status=OutcomeStatus.CONFLICT)
    if isinstance(change, Delete):
        assert record is not None
        return _Write("delete", StoredRecord(key), Insert(view.name, _values(record, record), id=key))
    if isinstance(change, Insert):
        if record is not None and not change.replace:
            raise NotSentError(_THERE, status=OutcomeStatus.CONFLICT)
        parts = _parts(_of_document(change) if change.document is not None else change.values, key, view)
        if parts.embedding is None:
            raise NotSentError("Chroma computes no embedding; name the column 'embedding'")
        plain = replace(parts, metadata={name: value for name, value in parts.metadata.items() if value is not None})
        if record is None:
            return _Write("add", plain, Delete(RowKey(view.name, key, guard=plain.guard)))
        if (record.document is not None and parts.document is None) or (record.uri is not None and parts.uri is None):
            raise NotSentError("Chroma keeps the document and the uri of a record that is replaced; name them, too")
        parts = replace(parts, metadata={**dict.fromkeys(record.metadata), **plain.metadata})
        back = Insert(view.name, _values(record, record), id=key, replace=True, guard=plain.guard)
        return _Write("upsert", parts, back)
    assert record is not None
    assert isinstance(change, Update)
    parts = _parts(change.values, key, view)
    metadata = {name: value for name, value in {**record.metadata, **parts.metadata}.items() if value is not None}
    document = record.document if parts.document is None else parts.document
    uri = record.uri if parts.uri is None else parts.uri
    after = StoredRecord(key, document, uri, metadata, parts.embedding or record.embedding)
    if undo and (
        (record.document is None and parts.document is not None) or (record.uri is None and parts.uri is not None)
    ):
        raise NotSentError("Chroma cannot remove a document or a uri again, so that this could not be undone")
    return _Write("update", parts, Update(RowKey(view.name, key, guard=after.guard), _values(record, parts)))


def _values(record: StoredRecord, parts: StoredRecord) -> Values:
    """Return the stored values of the columns that another record names."""
    values: Values = {name_of(key): record.metadata.get(key) for key in parts.metadata}
    own = ((DOCUMENT, record.document), (URI, record.uri), (EMBEDDING, record.embedding))
    stored = {name: value for name, value in own if value is not None and getattr(parts, name) is not None}
    return {**stored, **values}


def _keyed(insert: Insert) -> Insert:
    """Return an insert with its id, which its values or its document may hold."""
    if insert.document is None:
        return insert.with_key(ID)
    key = decode(insert.document, dict[str, Any]).get(ID)
    if key is not None and (not isinstance(key, str) or insert.id not in (None, key)):
        raise NotSentError("the document has another id than the row, or one that is no text")
    return replace(insert, id=insert.id or key)


def _of_document(insert: Insert) -> Values:
    """Return the values of a row that was exported."""
    document = decode(insert.document or "", dict[str, Any])
    metadata = document.pop("metadata", None) or {}
    values = {name_of(key): Json(encode(value)) for key, value in metadata.items()}
    if strange := {*document} - {ID, DOCUMENT, URI, EMBEDDING}:
        raise NotSentError(f"a record has no member {min(strange)!r}; metadata is an object under 'metadata'")
    document.pop(ID, None)
    return {**{name: value for name, value in document.items() if value is not None}, **values, **insert.values}


def _parts(values: Mapping[str, Any], key: str, view: View) -> StoredRecord:
    def convert(name: str, value: Any) -> Any:
        if name == ID:
            raise ValueError("the id of a record cannot be changed")
        if name == EMBEDDING:
            return stored_embedding(value, view.dimension)
        if name not in (DOCUMENT, URI):
            return stored_metadata(name, view.columns.get(name), value)
        value = decode(value, Any) if isinstance(value, Json) else value
        if value is None:
            raise ValueError("Chroma keeps what it has if this is set to null; store an empty text")
        if not isinstance(value, str):
            raise ValueError("it is a text")  # noqa: TRY004 - a reason like the others
        return operands.text(value)

    parts = typed({name: value for name, value in values.items() if (name, value) != (ID, key)}, convert)
    own = {name: parts.pop(name, None) for name in (DOCUMENT, URI, EMBEDDING)}
    return StoredRecord(key, **own, metadata={key_of(name): value for name, value in parts.items()})


def body_of_new(name: str, like: str) -> str:
    """Return the body that makes a collection, with the metadata and the distance of another one."""
    definition = decode(like, dict[str, Any]) if like else {}
    configuration = definition.get("configuration_json") or {}
    space = (configuration.get("hnsw") or {}).get("space")
    new = {"name": name, "metadata": definition.get("metadata"), "configuration": space and {"hnsw": {"space": space}}}
    return encode({part: value for part, value in new.items() if value})


async def send_planned(
    plan: Plan,
    stored: Callable[[str, Sequence[str]], Awaitable[dict[str, StoredRecord]]],
    send: Callable[[HttpRequest], Awaitable[Any]],
    error: Callable[[Any], DragomanError],
) -> list[Outcome]:
    """Send the requests of a plan, and report what became of each row."""
    outcomes = Outcomes()
    for planned in plan.planned:
        with outcomes.sending(planned.changes):
            await _send_one(planned, outcomes, stored, send, error)
    return outcomes.of_plan(plan)


async def _send_one(planned: PlannedRequest, outcomes: Outcomes, stored: Any, send: Any, error: Any) -> None:
    path, _, verb = planned.request.path.rpartition("/")
    if not planned.guard:  # a drop
        response = await send(planned.request)
        return outcomes.tell(planned.changes, _judged(response, error))
    ids = [*planned.guard]
    rows = dict(zip(ids, planned.by_row, strict=True))
    with before_writing():
        before = await stored(path, ids)
    states = {key: before[key].state + before[key].vector if key in before else "" for key in ids}
    changed = [key for key in ids if states[key] != planned.guard[key]]
    for key in changed:
        reason = _THERE if verb == "add" else _CHANGED if key in before else _GONE
        outcomes.tell(rows[key], Outcome(change=0, status=OutcomeStatus.CONFLICT, id=key, reason=reason))
    left = [key for key in ids if key not in changed]
    if changed and (verb != "add" or not left):  # an add leaves out by itself what exists (C34)
        for key in left:
            reason = "not sent: another record of the same request changed"
            outcomes.tell(rows[key], Outcome(change=0, status=OutcomeStatus.FAILED, id=key, reason=reason, busy=True))
        return None
    sent = _sent(planned.request) if verb != "delete" else {}
    numbers = [*chain.from_iterable(rows[key] for key in left)]
    with outcomes.sending(numbers):
        judged = _judged(await send(planned.request), error)
        if judged.status is OutcomeStatus.APPLIED and verb != "delete":
            with after_writing():
                after = await stored(path, left)
            for key in left:
                outcomes.tell(rows[key], _proven(key, after.get(key), sent[key] if verb == "add" else None))
            return None
        for key in left:
            outcomes.tell(rows[key], replace(judged, id=key))

    async def holding(keys: list[RowId]) -> list[RowId]:
        now = await stored(path, [*map(text_id, keys)])
        return [key for key in keys if _holds(before.get(text_id(key)), sent.get(text_id(key)), now.get(text_id(key)))]

    await outcomes.look([(key, rows[key]) for key in left], holding)
    return None


def _holds(before: StoredRecord | None, sent: StoredRecord | None, now: StoredRecord | None) -> bool:
    """Return whether a record is as a request leaves it, which deletes it if it sends none, and else merges (C35)."""
    if sent is None or now is None:
        return sent is now
    metadata = {**(before.metadata if before else {}), **sent.metadata}
    merged = StoredRecord(
        sent.id,
        sent.document if sent.document is not None or before is None else before.document,
        sent.uri if sent.uri is not None or before is None else before.uri,
        {name: value for name, value in metadata.items() if value is not None},
        sent.embedding if sent.embedding is not None or before is None else before.embedding,
    )
    return merged.guard == now.guard


def _judged(response: Any, error: Any) -> Outcome:
    status = status_of(response.status)
    return Outcome(change=0, status=status, reason="" if status is OutcomeStatus.APPLIED else error(response).message)


def _sent(request: HttpRequest) -> dict[str, StoredRecord]:
    """Return the parts of records that a request writes, by their ids."""
    body = decode(request.body or "", _Body)
    none = [None] * len(body.ids)
    columns = (body.documents or none, body.uris or none, body.metadatas or none, body.embeddings or none)
    rows = zip(body.ids, *columns, strict=True)
    return {
        key: StoredRecord(key, text, uri, metadata or {}, None if vector is None else encode(vector))
        for key, text, uri, metadata, vector in rows
    }


def _proven(key: str, record: StoredRecord | None, sent: StoredRecord | None) -> Outcome:
    """Return what a look after the write proves: a 200 alone says nothing of a row (C34, C35)."""
    if record is None:
        return Outcome(change=0, status=OutcomeStatus.CONFLICT, id=key, reason=_GONE)
    if sent is not None and sent.guard != record.guard:
        return Outcome(change=0, status=OutcomeStatus.CONFLICT, id=key, reason=_THERE)
    return Outcome(change=0, status=OutcomeStatus.APPLIED, id=key)


def stored_metadata(name: str, column: Column | None, value: object) -> Any:
    """Return an edited metadata value as it is sent; None removes the key.

    Raises:
        ValueError: The server would store another value, or none.
    """
    key = key_of(name)
    if not key or key.startswith(("#", "$", "chroma:")):
        raise ValueError("Chroma takes no metadata key that is empty or begins with '#', '$' or 'chroma:'")
    if isinstance(value, Json):
        value = decode(value, Any)
    elif isinstance(value, str) and column is not None and column.repeated:
        value = decode(value, list[Any])
    elif isinstance(value, str) and column is not None and column.kind.numeric:
        value = operands.decimal(value)
    elif isinstance(value, str) and column is not None and column.kind is ColumnKind.BOOLEAN:
        value = operands.boolean(value)
    if isinstance(value, list | tuple):
        items = [_scalar(item) for item in value]
        kinds = {
            float if isinstance(item, int | float) and not isinstance(item, bool) else type(item) for item in items
        }
        if len(kinds) != 1:
            raise ValueError("an array holds at least one element, and all of them are texts, numbers or booleans")
        return items
    return None if value is None else _scalar(value)


def _scalar(value: object) -> str | bool | int | float:
    if isinstance(value, str):
        return operands.text(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        value = operands.decimal(value) or (float(value) if value.is_signed() else 0)
    if isinstance(value, int):
        return operands.integer(value)
    number = operands.floating(value) if isinstance(value, float | Decimal) else None
    if number is None:
        raise ValueError("a metadata value is a text, a number, a boolean, or an array of one of these")
    if Decimal(repr(number)) != operands.decimal(value) or not survives(number) or repr(number) == "-0.0":
        raise ValueError(f"Chroma would store {value} as another number")
    return number


def stored_embedding(value: object, dimension: int | None) -> str:
    """Return an embedding as JSON text. Raises ValueError if the server would refuse it or store another vector."""
    numbers = decode(value, list[Any]) if isinstance(value, str) else value
    if not isinstance(numbers, list | tuple) or not numbers:
        raise ValueError("an embedding is an array of at least one number")
    if dimension and len(numbers) != dimension:
        raise ValueError(f"an embedding of this collection has {dimension} numbers, not {len(numbers)}")
    if any(isinstance(number, bool) or not isinstance(number, int | float | Decimal) for number in numbers):
        raise ValueError("an embedding holds numbers only")
    if any(isinf(single) or single != single for single in array("f", map(float, numbers))):
        raise ValueError("an embedding holds 32-bit floats, and one of the numbers is too large")
    return str(value) if isinstance(value, Json) else encode(list(numbers))
