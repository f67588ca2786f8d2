"""Changes of rows on their way to a server: values read as their columns hold them, and a look before each write.

A server that compares a row with its expected state by itself needs the first part only. For one that does not, the
second part reads each row just before it writes it; between the two, another writer may still come first, so the plan
carries the note of `unguarded_note`. `WholeRows` makes both hooks of that, for rows that are written as a whole.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.json import Decoder
from msgspec.structs import replace

from dragoman_api.cells import Json, as_bytes, is_cut
from dragoman_api.changes import Delete, Drop, Insert, Outcome, OutcomeStatus, Plan, PlanRequest, Update
from dragoman_api.columns import ColumnKind, Note, Written
from dragoman_api.errors import UnsupportedOperationError
from dragoman_api.grid import RowId, RowKey, text_id
from dragoman_api.hookspecs import hookimpl
from dragoman_api.json_text import decode, encode, exact_number
from dragoman_api.wording import failure

from . import operands
from .rest import RestClient
from .row_changes import NotSentError, Outcomes, PlanDraft, before_writing, fold, row_of, status_of, typed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from dragoman_api.changes import Change, HttpRequest, PlannedRequest
    from dragoman_api.columns import Column, Description
    from dragoman_api.replies import Reply

    from .row_changes import Folded

    Look = Callable[[RowKey], Awaitable[Mapping[str, int | str] | None]]

T = TypeVar("T")

_json = Decoder(Any, float_hook=exact_number)


def _signed(value: object) -> int | Decimal:
    """Read a number with all its digits, and with the sign of a zero, which no integer has."""
    number = operands.decimal(value)
    return number or (Decimal("-0.0") if str(value).lstrip().startswith("-") else number)


_TYPED: dict[ColumnKind, Callable[[object], Any]] = {
    ColumnKind.TEXT: operands.text,
    ColumnKind.INTEGER: operands.decimal,
    ColumnKind.UNSIGNED: operands.decimal,
    ColumnKind.FLOAT: _signed,
    ColumnKind.DECIMAL: _signed,
    ColumnKind.BOOLEAN: operands.boolean,
    ColumnKind.TIMESTAMP: operands.timestamp,
    ColumnKind.DATE: operands.day,
    ColumnKind.BINARY: as_bytes,
}
_STRUCTURES = (ColumnKind.JSON, ColumnKind.RANGE, ColumnKind.GEO)
_WHOLE = (ColumnKind.INTEGER, ColumnKind.UNSIGNED)

_DIGITS = 300  # of an integer that is compared by its value

GUARD = "sha256"
"""The member of a guard that holds the digest of a row."""


def stored_value(column: Column, value: object) -> Any:
    """Return the value of a change as its column stores it, however it was spelled; see `dragoman_api.changes.Values`.

    >>> from dragoman_api import Column
    >>> price = Column(name="price", type="float", kind=ColumnKind.FLOAT)
    >>> tags = Column(name="tags", type="text", repeated=True)
    >>> stored_value(price, "12.50"), stored_value(price, Json('"12"')), stored_value(tags, '["a"]')
    (Decimal('12.50'), '12', ['a'])
    >>> stored_value(price, "-0.0")
    Decimal('-0.0')

    Args:
        column: The column.
        value: A text that a person typed, a Python value, or JSON text as `Json`.

    Raises:
        ValueError: The value does not fit the column; the message says why.
    """
    if is_cut(value):
        raise ValueError("the value is only the beginning of a long one; fetch the whole cell and edit that")
    if value is None:
        return None
    if column.kind is ColumnKind.BINARY and not column.repeated:
        return as_bytes(_parsed(value) if isinstance(value, Json) else value)
    if isinstance(value, bytes):
        raise ValueError("it takes no bytes")  # noqa: TRY004 - a reason like the others
    if isinstance(value, Json):
        return _parsed(value)
    if not isinstance(value, str):
        return value
    if column.repeated or column.kind in _STRUCTURES:
        return _parsed(value)
    if column.multiple and value.lstrip()[:1] == "[":
        return _parsed(value)
    number_or_text = _TYPED.get(column.kind, operands.text)(value)
    if column.kind in _WHOLE and not isinstance(number_or_text, int):
        raise ValueError(f"{value[:100]!r} is not an integer")
    return number_or_text


def _parsed(text: str) -> Any:
    try:
        return decode(text, _json)
    except ValueError as error:
        raise ValueError(f"it takes JSON, such as [1,2]: {failure(error)}") from None


def writable(change: Insert | Update, columns: Iterable[Column]) -> dict[str, Any]:
    """Return the values of a change as its columns store them.

    An insert takes its key by `Insert.with_key` first: the key is no value of the row.

    Args:
        change: The change.
        columns: All columns of its object.

    Raises:
        NotSentError: A column does not exist, the change may not name it, or a value does not fit; all faults at once.
    """
    columns_by_name = {column.name: column for column in columns}

    def convert(name: str, value: object) -> Any:
        if (column := columns_by_name.get(name)) is None:
            raise ValueError("there is no such column")
        inserts = isinstance(change, Insert) and column.written is Written.INSERT
        if column.written is not Written.ALWAYS and not inserts:
            raise ValueError(column.reasons.get("edit") or "the server keeps it")
        return stored_value(column, value)

    if isinstance(change, Insert) and change.document is not None:
        raise NotSentError("this driver takes a row as values, not as a document")
    return typed(change.values, convert)


def digest_guard(stored: object) -> dict[str, int | str]:
    """Return the guard of a row by all that it holds, for a server that keeps no version of it.

    >>> digest_guard({"a": 1, "b": 2}) == digest_guard({"b": 2, "a": Decimal("1.0")})
    True

    Args:
        stored: The row as it was read: values of JSON, in which neither the order of members nor the spelling of a
            number matters, or bytes.
    """
    data = stored if isinstance(stored, bytes) else encode(_canonical(stored)).encode()
    return {GUARD: sha256(data).hexdigest()}


def _canonical(value: object) -> object:
    if isinstance(value, dict):
        return {name: _canonical(value[name]) for name in sorted(value)}
    if isinstance(value, float | Decimal) and Decimal(value).is_finite():
        sign, digits, exponent = Decimal(repr(value) if isinstance(value, float) else value).as_tuple()
        assert isinstance(exponent, int)
        significant = [*digits]
        while len(significant) > 1 and significant[-1] == 0:
            significant.pop()
        exponent = exponent + len(digits) - len(significant) if any(digits) else 0
        if exponent >= 0 and len(significant) + exponent <= _DIGITS:
            return int("".join(map(str, significant))) * 10**exponent * (-1 if sign else 1)
        return Decimal((sign, significant, exponent))
    return [*map(_canonical, value)] if isinstance(value, list) else value


def batches(rows: Sequence[T], size: Callable[[T], int], *, limit: int, size_limit: int) -> Iterator[Sequence[T]]:
    """Divide rows into those of one request each, in their order.

    >>> [*batches(["a", "bb", "cc", "dddddd"], len, limit=3, size_limit=3)]
    [['a', 'bb'], ['cc'], ['dddddd']]

    Args:
        rows: The rows.
        size: Returns the size of a row.
        limit: The maximum number of rows.
        size_limit: The maximum size of all rows together; a row that is larger goes alone.
    """
    start = total = 0
    for end, row in enumerate(rows):
        total += (length := size(row))
        if end > start and (end - start == limit or total > size_limit):
            yield rows[start:end]
            start, total = end, length
    if start < len(rows):
        yield rows[start:]


def unguarded_note(server: str) -> Note:
    """Return the note of a plan whose writes the server does not guard.

    Args:
        server: The product, for the sentence.
    """
    reason = (
        f"{server} compares nothing when it writes: each row is read just before, "
        "and a change between the two would be overwritten"
    )
    return Note(code="unguarded", reason=reason)


async def send_after_a_look(
    plan: Plan,
    *,
    look: Look,
    send: Callable[[PlannedRequest, Change], Awaitable[Outcome]],
    written: Callable[[PlannedRequest, Change], Mapping[str, int | str] | None] | None = None,
) -> list[Outcome]:
    """Send the requests of a plan, each only if its row is still as the plan expects it; for `apply_change`.

    The expected state is the guard of the change, or else `PlannedRequest.guard`, which `plan_change` takes from the
    row that it reads. An insert expects no row, unless it replaces one.

    Args:
        plan: The plan; each request is of one row, or of a drop, which is sent as it is.
        look: Returns the guard of a row as it is now, such as `digest_guard` of it; None if there is no such row.
        send: Sends one request, which carries out a change, and says what became of it; `Outcome.change` does not
            matter.
        written: Returns the guard of a row as a request leaves it; None for a deletion. A row whose outcome is unknown
            is then read again: if it is so, the change is applied. Without, it stays unknown.

    Returns:
        One outcome for each planned change.
    """
    outcomes = Outcomes()
    for planned in plan.planned:
        change = plan.changes[planned.changes[0]]
        with outcomes.sending(planned.changes, row=row_of(change)):
            with before_writing():
                conflict = None if isinstance(change, Drop) else await _conflict(change, planned, look)
            if conflict:
                outcome = Outcome(change=0, status=OutcomeStatus.CONFLICT, id=row_of(change), reason=conflict)
            else:
                outcome = await send(planned, change)
            outcomes.tell(planned.changes, outcome)
        if written is not None and (key := _key_of(change)) is not None:
            holding = partial(_holding, key, written(planned, change), look)
            await outcomes.look([(key.id, planned.changes)], holding)
    return outcomes.of_plan(plan)


def _key_of(change: Change) -> RowKey | None:
    """Return the key of a change's row without its guard; None if it has none."""
    if isinstance(change, Insert):
        return None if change.id is None else RowKey(change.object, change.id, change.tenant or change.routing)
    return None if isinstance(change, Drop) else replace(change.key, guard={})


async def _holding(key: RowKey, expected: Mapping[str, int | str] | None, look: Look, ids: list[RowId]) -> list[RowId]:
    return ids if await look(key) == expected else []


async def _conflict(
    change: Insert | Update | Delete,
    planned: PlannedRequest,
    look: Look,
) -> str:
    """Return why a row is not as a change expects it; empty if it is."""
    key, expected = _key_of(change), change.guard if isinstance(change, Insert) else change.key.guard
    if key is None:
        return ""
    expected, now = expected or planned.guard, await look(key)
    if isinstance(change, Insert) and not change.replace:
        return "" if now is None else "a row with this id exists; 'replace' would overwrite it"
    if now is None:
        return "" if isinstance(change, Insert) and not expected else "the row is gone"
    changed = any(now.get(name) != value for name, value in expected.items())
    return "the row has changed since it was read" if changed else ""


class WholeRows(RestClient):
    """Both hooks of changes, for a server that stores a row as one document and compares nothing when it writes.

    The driver writes `stored` and `write_request`, and `drop_request` if objects can be dropped. Its keys hold
    `digest_guard` of the row as `guard`, so that a change cannot overwrite a newer row. For a server that compares when
    it writes, the driver writes `compared_request` and `lost_comparison` instead of `write_request`, which closes the
    gap between the look at a row and the write.

    Attributes:
        product: The server's name, for a note.
        key_column: The column that holds the key, a text; it is no part of the document.
    """

    product: str = "the server"
    key_column: str = "id"

    async def stored(self, key: RowKey) -> dict[str, Any] | None:
        """Return a row as it is now, without its key column; None if there is none."""
        raise NotImplementedError("a driver with WholeRows writes 'stored'")

    def write_request(self, key: RowKey, document: Mapping[str, Any] | None) -> HttpRequest:
        """Return the request that writes a row as a whole, or deletes it if there is no document."""
        raise NotImplementedError("a driver with WholeRows writes 'write_request'")

    def compared_request(
        self, key: RowKey, document: Mapping[str, Any] | None, stored: Mapping[str, Any] | None
    ) -> HttpRequest:
        """Return the request that writes or deletes a row only if it is as it was read; None if there was none."""
        return self.write_request(key, document)

    def lost_comparison(self, reply: Reply) -> bool:
        """Return whether the server wrote nothing because the row was another one."""
        return False

    def drop_request(self, name: str) -> HttpRequest:
        """Return the request that drops an object."""
        raise NotSentError("this driver drops nothing")

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Read the rows of the changes, and make one request for each."""
        if request.new is not None:
            raise UnsupportedOperationError("this driver makes no objects")
        draft = PlanDraft(request.changes)
        columns: dict[str, list[Column]] = {}
        undo: list[Change] = []
        for folded in fold(draft, keyed=self._keyed):
            with draft.judging(*folded.numbers):
                if isinstance(folded.change, Drop):
                    await self.describe_object(folded.change.object)  # type: ignore[attr-defined] # there is one
                    draft.send(self.drop_request(folded.change.object), *folded.numbers)
                else:
                    undo.append(await self._plan(draft, folded, columns))
        compares = type(self).compared_request is not WholeRows.compared_request
        if draft.planned and not compares:
            note = unguarded_note(self.product)
            draft.note(note.code, self.product, note.reason)
        return draft.plan(undo if request.undo else ())

    def _keyed(self, change: Insert) -> Insert:
        return change.with_key(self.key_column)

    async def _plan(self, draft: PlanDraft, folded: Folded, columns: dict[str, list[Column]]) -> Change:
        """Plan what becomes of one row, and return the change that undoes it."""
        change = folded.change
        assert not isinstance(change, Drop)
        if isinstance(change, Insert):
            if not change.id:
                raise NotSentError(f"a new row needs a value for its key, '{self.key_column}'")
            key = RowKey(change.object, text_id(change.id))
        else:
            key = replace(change.key, guard={})
        document: dict[str, Any] | None
        values: dict[str, Any] = {}
        if not isinstance(change, Delete):
            if key.object not in columns:
                described: Description = await self.describe_object(key.object)  # type: ignore[attr-defined]
                columns[key.object] = described.columns
            values = writable(change, columns[key.object])
        stored = await self.stored(key)
        if stored is None and not isinstance(change, Insert):
            raise NotSentError("the row is gone", status=OutcomeStatus.CONFLICT)
        guard = {} if stored is None else digest_guard(stored)
        document = {**(stored or {}), **values} if isinstance(change, Update) else values
        document = None if isinstance(change, Delete) else document
        draft.send(self.compared_request(key, document, stored), *folded.numbers, guard=guard)
        if document is None:
            return Insert(key.object, stored or {}, id=key.id)
        written = digest_guard(decode(encode(document), _json))
        if stored is None:
            return Delete(replace(key, guard=written))
        return Insert(key.object, stored, id=key.id, replace=True, guard=written)

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Send what was planned, each request only if its row is still as it was."""
        keyed = [self._keyed(change) if isinstance(change, Insert) else change for change in plan.changes]
        return await send_after_a_look(
            replace(plan, changes=keyed), look=self._look, send=self._send, written=self._written
        )

    @staticmethod
    def _written(planned: PlannedRequest, change: Change) -> dict[str, int | str] | None:
        """Return the guard of the row as a request leaves it, if its body is the document; else one of no row."""
        if isinstance(change, Delete):
            return None
        try:
            return digest_guard(decode(planned.request.body or "null", _json))
        except ValueError:
            return {}

    async def _look(self, key: RowKey) -> dict[str, int | str] | None:
        stored = await self.stored(key)
        return None if stored is None else digest_guard(stored)

    async def _send(self, planned: PlannedRequest, change: Change) -> Outcome:
        reply = await self.send(planned.request)
        if not isinstance(change, Drop) and self.lost_comparison(reply):
            reason = "the row has changed since it was read"
            return Outcome(change=0, status=OutcomeStatus.CONFLICT, id=row_of(change), reason=reason)
        status = status_of(reply.status)
        reason = "" if status is OutcomeStatus.APPLIED else self.error(reply).message
        return Outcome(change=0, status=status, id=row_of(change), reason=reason)
