"""Changes: rows as the bodies of requests, planned from the stored records and sent after another look at them.

The server compares nothing, answers 200 whatever became of a row, and merges what it writes (C32-C38). So a plan keeps
digests of its rows, which are compared just before the request is sent: no compare-and-set, but a narrow gap.
"""

from __future__ import annotations

from array import array
from decimal import Decimal
from itertools import groupby
from math import isinf
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    Column,
    ColumnKind,
    Delete,
    Drop,
    HttpRequest,
    Insert,
    Json,
    Outcome,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    QueryError,
    RowKey,
    Update,
)
from dragoman_api.changes import Change, object_of
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
from dragoman_api.kit.writing import batches, stored_value

from .columns import DOCUMENT, EMBEDDING, ID, OWN, URI, kept, key_of, name_of
from .queries import MOST_IDS, FilterBody, Records, StoredRecord, View, get_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from dragoman_api import PlanRequest
    from dragoman_api.changes import NewObject, Values
    from dragoman_api.kit.rest import RestClient
    from dragoman_api.kit.row_changes import Folded

_LONGEST = 8 * 2**20  # characters of a body; the server takes 40 MB
_GONE, _THERE = "the record is gone", "a record with this id exists; 'replace' would overwrite it"
_CHANGED = "the record changed since it was read"
_OTHERS = "not sent: another record of the same request changed"
_REMAIN = "the server keeps the arrays in the metadata of a dropped collection and may show them in new records:"
APPLIED, CONFLICT = OutcomeStatus.APPLIED, OutcomeStatus.CONFLICT


class _Write(msgspec.Struct, frozen=True):
    """What one folded change writes: the parts of a record, the record's state until then, and what undoes it."""

    numbers: tuple[int, ...]
    verb: str
    parts: StoredRecord
    state: str
    undo: Change


def plan_creation(path: str, name: str, new: NewObject) -> Plan:
    """Plan a collection with the metadata and the distance of another one, whose definition is given.

    Raises:
        QueryError: It is to have columns of metadata, which a collection has only once its records have them.
    """
    own = {*OWN, *(column.name for column in new.columns if column.is_id)}
    if not new.like and (others := [column.name for column in new.columns if column.name not in own]):
        text = f"a new collection has no column {others[0]!r}: its columns are those of its records"
        raise QueryError(text, hint="add a first record that has all of them, then load the rows into the collection")
    definition = decode(new.like, dict[str, Any]) if new.like else {}
    space = ((definition.get("configuration_json") or {}).get("hnsw") or {}).get("space")
    members = {
        "name": name,
        "metadata": definition.get("metadata"),
        "configuration": space and {"hnsw": {"space": space}},
    }
    body = encode({part: value for part, value in members.items() if value})
    return Plan(planned=[PlannedRequest(request=HttpRequest("POST", path, body), changes=[])])


async def plan_rows(
    request: PlanRequest,
    read_view: Callable[[str], Awaitable[View]],
    stored: Callable[[View, Sequence[str]], Awaitable[dict[str, StoredRecord]]],
    limit: int,
) -> Plan:
    """Plan changes, at most some rows in each request: those that follow one another with one verb."""
    draft, undo = PlanDraft(request.changes), list[Change]()
    rows: dict[str, list[tuple[Folded, str]]] = {}
    for folded in fold(draft, keyed=_keyed):
        change = folded.change
        with draft.judging(*folded.numbers):
            if isinstance(change, Drop):
                _drop(draft, await read_view(change.object), folded.numbers)
            else:
                key = change.id or str(uuid4()) if isinstance(change, Insert) else change.key.id
                rows.setdefault(object_of(change), []).append((folded, text_id(key)))
    for name, changes in rows.items():
        for start in range(0, len(changes), MOST_IDS):
            part = changes[start : start + MOST_IDS]
            with draft.judging(*(number for folded, _ in part for number in folded.numbers)):
                view = await read_view(name)
                records, writes = await stored(view, [key for _, key in part]), list[_Write]()
                for folded, key in part:
                    with draft.judging(*folded.numbers):
                        writes.append(_write(folded, key, records.get(key), view, undo=request.undo))
                _send(draft, view.path, writes, limit)
                undo += [write.undo for write in writes]
    return draft.plan(undo if request.undo else ())


def _send(draft: PlanDraft, path: str, writes: Sequence[_Write], limit: int) -> None:
    for verb, group in groupby(writes, key=lambda write: write.verb):
        for batch in batches([*group], lambda write: len(encode(write.parts)), limit=limit, size_limit=_LONGEST):
            request = HttpRequest("POST", f"{path}/{verb}", encode(Records.of([write.parts for write in batch])))
            guard = {write.parts.id: write.state for write in batch}
            draft.send(request, guard=guard, rows=[write.numbers for write in batch])


def _drop(draft: PlanDraft, view: View, numbers: Sequence[int]) -> None:
    path = f"{view.path.rpartition('/')[0]}/{view.name.rpartition('/')[2]}"
    draft.send(HttpRequest("DELETE", path), *numbers)
    if any(column.repeated and column.name != EMBEDDING for column in view.columns.values()):
        draft.note("arrays-remain", view.name, f"{_REMAIN} '{view.name}'")


def _write(folded: Folded, key: str, record: StoredRecord | None, view: View, *, undo: bool) -> _Write:
    """Return what one change writes, or raise the reason why it is not sent."""
    change = folded.change
    assert not isinstance(change, Drop)
    guard = change.guard if isinstance(change, Insert) else change.key.guard
    if record is None and not isinstance(change, Insert):
        raise NotSentError(_GONE, status=CONFLICT)
    if guard and (record is None or not guard.items() <= record.guard.items()):
        raise NotSentError(_CHANGED, status=CONFLICT)
    back: Change
    if isinstance(change, Insert):
        verb, parts, back = _inserted(change, key, record, view)
    elif isinstance(change, Delete):
        assert record is not None
        verb, parts, back = "delete", StoredRecord(key), Insert(view.name, _values(record, record), id=key)
    else:
        assert record is not None
        verb, parts = "update", _parts(change.values, key, view)
        if undo and any(getattr(record, name) is None and getattr(parts, name) is not None for name in (DOCUMENT, URI)):
            raise NotSentError("Chroma cannot remove a document or a uri again, so that this could not be undone")
        back = Update(RowKey(view.name, key, guard=record.after(parts).guard), _values(record, parts))
    return _Write(folded.numbers, verb, parts, _state(record), back)


def _inserted(change: Insert, key: str, record: StoredRecord | None, view: View) -> tuple[str, StoredRecord, Change]:
    """Return verb and parts of a new or replaced record, and what undoes it; an `upsert` merges (C38)."""
    if record is not None and not change.replace:
        raise NotSentError(_THERE, status=CONFLICT)
    parts = _parts(change.values, key, view)
    if parts.embedding is None:
        raise NotSentError("Chroma computes no embedding; name the column 'embedding'")
    plain = StoredRecord(key).after(parts)
    if record is None:
        return "add", plain, Delete(RowKey(view.name, key, guard=plain.guard))
    if any(getattr(record, name) is not None and getattr(parts, name) is None for name in (DOCUMENT, URI)):
        raise NotSentError("Chroma keeps the document and the uri of a record that is replaced; name them, too")
    back = Insert(view.name, _values(record, record), id=key, replace=True, guard=plain.guard)
    return "upsert", replace(parts, metadata={**dict.fromkeys(record.metadata), **plain.metadata}), back


def _state(record: StoredRecord | None) -> str:
    return "" if record is None else "".join(map(str, record.guard.values()))


def _values(record: StoredRecord, parts: StoredRecord) -> Values:
    """Return the stored values of the columns that another record names."""
    own = [name for name in OWN[1:] if getattr(parts, name) is not None and getattr(record, name) is not None]
    return {name: record.value(name) for name in [*own, *map(name_of, parts.metadata)]}


def _keyed(insert: Insert) -> Insert:
    """Return an insert with its id, and the members of a document, as an export writes them, as its values."""
    if insert.document is not None:
        document = decode(insert.document, dict[str, Any])
        metadata = document.pop("metadata", None) or {}
        if strange := {*document} - {*OWN}:
            raise NotSentError(f"a record has no member {min(strange)!r}; metadata is an object under 'metadata'")
        own = {name: value for name, value in document.items() if value is not None}
        values = {name_of(key): Json(encode(value)) for key, value in metadata.items()}
        insert = replace(insert, document=None, values={**own, **values, **insert.values})
    return insert.with_key(ID)


def _parts(values: Mapping[str, Any], key: str, view: View) -> StoredRecord:
    def convert(name: str, value: object) -> Any:
        if name == ID:
            raise ValueError("the id of a record cannot be changed")
        if name == EMBEDDING:
            return stored_embedding(value, view.dimension)
        if name not in (DOCUMENT, URI):
            return stored_metadata(name, view.columns.get(name), value)
        text = stored_value(view.columns[name], value)
        if text is None:
            raise ValueError("Chroma keeps what it has if this is set to null; store an empty text")
        if not isinstance(text, str):
            raise ValueError("it is a text")  # noqa: TRY004 - a reason like the others
        return operands.text(text)

    parts = typed({name: value for name, value in values.items() if (name, value) != (ID, key)}, convert)
    own = {name: parts.pop(name, None) for name in OWN[1:]}
    return StoredRecord(key, **own, metadata={key_of(name): value for name, value in parts.items()})


async def send_planned(plan: Plan, client: RestClient) -> list[Outcome]:
    """Send the requests of a plan, and report what became of each row."""
    outcomes = Outcomes()
    for planned in plan.planned:
        with outcomes.sending(planned.changes):
            if planned.guard:
                await _send_rows(planned, outcomes, client)
            else:  # a drop
                outcomes.tell(planned.changes, await _sent(planned.request, client))
    return outcomes.of_plan(plan)


async def _sent(request: HttpRequest, client: RestClient) -> Outcome:
    reply = await client.send(request)
    status = status_of(reply.status)
    return Outcome(change=0, status=status, reason="" if status is APPLIED else client.error(reply).message)


async def _send_rows(planned: PlannedRequest, outcomes: Outcomes, client: RestClient) -> None:
    """Send a request of rows that are still as planned; what the server says of them is looked up (C33-C35)."""
    path, _, verb = planned.request.path.rpartition("/")
    rows = dict(zip(planned.guard, planned.by_row, strict=True))

    async def stored(ids: Sequence[str]) -> dict[str, StoredRecord]:
        answer = await client.ask(get_request(path, FilterBody(ids=[*ids]), [EMBEDDING]), Records)
        return {record.id: record for record in answer.records()}

    def tell(key: str, status: OutcomeStatus, reason: str = "", *, busy: bool = False) -> None:
        outcomes.tell(rows[key], Outcome(change=0, status=status, id=key, reason=reason, busy=busy))

    with before_writing():
        before = await stored([*rows])
    left = [key for key in rows if _state(before.get(key)) == planned.guard[key]]
    for key in rows.keys() - left:
        tell(key, CONFLICT, _THERE if verb == "add" else _CHANGED if key in before else _GONE)
    if len(left) < len(rows) and (verb != "add" or not left):  # an add leaves out by itself what exists (C34)
        for key in left:
            tell(key, OutcomeStatus.FAILED, _OTHERS, busy=True)
        return
    written = dict[str, StoredRecord]()
    if verb != "delete":
        parts = decode(planned.request.body or "", Records).records()
        written = {part.id: before.get(part.id, StoredRecord(part.id)).after(part) for part in parts}
    with outcomes.sending([number for key in left for number in rows[key]]):
        outcome = await _sent(planned.request, client)
        after = dict[str, StoredRecord]()
        if outcome.status is APPLIED and verb != "delete":
            with after_writing():
                after = await stored(left)
        for key in left:  # a success alone says nothing of a row
            if outcome.status is not APPLIED or verb == "delete":
                tell(key, outcome.status, outcome.reason)
            elif key not in after:
                tell(key, CONFLICT, _GONE)
            elif verb == "add" and _state(after[key]) != _state(written[key]):
                tell(key, CONFLICT, _THERE)
            else:
                tell(key, APPLIED)

    async def holding(keys: list[RowId]) -> list[RowId]:
        now = await stored([*map(text_id, keys)])
        return [key for key in keys if _state(now.get(text_id(key))) == _state(written.get(text_id(key)))]

    await outcomes.look([(key, rows[key]) for key in left], holding)


def stored_metadata(name: str, column: Column | None, value: object) -> Any:
    """Return an edited metadata value as it is sent; None removes the key.

    Raises:
        ValueError: The server would store another value, or none.
    """
    key = key_of(name)
    if not key or key.startswith(("#", "$", "chroma:")):
        raise ValueError("Chroma takes no metadata key that is empty or begins with '#', '$' or 'chroma:'")
    column = column or Column(name=name, type=ColumnKind.TEXT)
    value = stored_value(replace(column, kind=ColumnKind.FLOAT) if column.kind.numeric else column, value)
    if not isinstance(value, list | tuple):
        return None if value is None else _scalar(value)
    items = [_scalar(item) for item in value]
    if len({float if isinstance(item, int) and not isinstance(item, bool) else type(item) for item in items}) != 1:
        raise ValueError("an array holds at least one element, and all of them are texts, numbers or booleans")
    return items


def _scalar(value: object) -> str | bool | int | float:
    if isinstance(value, str) and not isinstance(value, Json):
        return operands.text(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        value = operands.decimal(value) or (float(value) if value.is_signed() else 0)
    if isinstance(value, int):
        return operands.integer(value)
    if isinstance(value, float | Decimal):
        return kept(value)
    raise ValueError("a metadata value is a text, a number, a boolean, or an array of one of these")


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
