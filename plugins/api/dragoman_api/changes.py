"""Changes as values: planned as exact requests first, then sent as planned."""

from __future__ import annotations

import re
from datetime import date, time
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NewType

import msgspec

from .cells import MISSING, CutBytes, CutJson, CutText, Json, Value
from .columns import ColumnKind, Note
from .grid import RowId, RowKey, check_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_PATH = 1 << 17
"""Maximum length of a request's path with its query, in characters."""

# Visible ASCII. yarl drops '#…' and a '?' without a query; some clients read '\\' as '/', so '/\\host' as '//host'.
_PATH = re.compile(r"/(?![/\\])[!\"$->@-\[\]-~]*(\?[!\"$-\[\]-~]+)?")

Values = dict[str, Value | list[object] | dict[str, object]]
"""Values of a row by column.

A value keeps its kind: a number is stored as a number and a boolean as a boolean, if the server takes one there, else
the change is refused. A text is what a person typed, and the column decides: one of texts stores it as it is, whatever
it looks like; one of numbers, booleans, objects or arrays reads it as such. `Json` is the JSON text of any value, which
is stored as it is spelled: ``Json("1e3")`` with these digits, ``Json('"12"')`` as a text also in a column of numbers.
"""


_SENDABLE = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, Json, CutJson, CutText, CutBytes, msgspec.msgpack.Ext}
)
"""Types of values that travel to a driver; an extension is one that is on its way."""


def _check_values(values: Mapping[str, object]) -> None:
    """Refuse values that are none. A subclass, such as a member of an enumeration, may be spelled otherwise elsewhere.

    Raises:
        ValueError: A value can be stored nowhere, or is nested too deeply.
    """
    if _SENDABLE.issuperset(map(type, values.values())):  # a load has millions
        return
    for name, value in values.items():
        try:
            reason = _against(value)
        except RecursionError:
            reason = "the value is nested too deeply"
        if reason:
            raise ValueError(f"{name}: {reason}")


def _against(value: object) -> str:
    """Return why a value is none; empty if it is one."""
    if value.__class__ in _SENDABLE:
        return ""
    if value is MISSING:
        return "a change takes no MISSING; leave the column out, or store a null with None"
    if isinstance(value, list | tuple):
        return next(filter(None, map(_against, value)), "")
    if isinstance(value, dict):
        if any(key.__class__ is not str for key in value):
            return "the keys of an object are texts"
        return next(filter(None, map(_against, value.values())), "")
    text = f"a change takes no {type(value).__name__}"
    if isinstance(value, date | time):
        return f"{text}; give its text, such as value.isoformat()"
    return f"{text}; give None, a bool, int, float, Decimal, str or bytes, or a list or dict of them"


class Insert(msgspec.Struct, frozen=True, tag="insert", forbid_unknown_fields=True, gc=False):
    """A new row; the server makes the id if none is given.

    Attributes:
        object: The object that receives the row.
        values: The values by column name. They may name the key by its columns, in place of `id`.
        id: The row's primary key: a text, bytes, or the parts of a composite key; None to let the server make one.
        replace: The row may replace an existing row with that id.
        tenant: The tenant that owns the row, if the object has tenants.
        routing: What the server needs besides the id to find the row again, such as a routing value.
        guard: Values, by the server's names, that the replaced row must still have, such as a sequence number; only
            with `replace`.
        document: The whole row as the server stores it, as JSON text that is sent unchanged. Beside it, `values` may
            name what the server keeps outside of the document, such as a vector, and nothing else.
    """

    object: str
    values: Values = {}
    id: RowId | None = None
    replace: bool = False
    tenant: str | None = None
    routing: str | None = None
    guard: dict[str, int | str] = {}
    document: str | None = None

    def __post_init__(self) -> None:
        if self.values:
            _check_values(self.values)
        if self.id is not None and self.id.__class__ is not str:  # a load has thousands of texts
            check_id(self.id)

    def with_key(self, *key_columns: str) -> Insert:
        """Return the insert with the values of the key columns, if they are given, as `id`.

        Raises:
            ValueError: Only some of several columns are given, they and `id` name different rows, or a value cannot be
                a part of a key.
        """
        present = [name for name in key_columns if self.values.get(name) is not None]
        if present and len(present) < len(key_columns):
            raise ValueError(f"a key needs all of its columns: {', '.join(key_columns)}")
        key: RowId | None = self.id
        if present:
            texts = [_part(name, self.values[name], alone=len(key_columns) == 1) for name in key_columns]
            key = texts if len(texts) > 1 else texts[0] if isinstance(texts[0], bytes) else str(texts[0])
        if self.id is not None and key != self.id:
            raise ValueError(f"the row's id is {self.id!r}, but its columns {', '.join(key_columns)} say {key!r}")
        values = {name: value for name, value in self.values.items() if name not in key_columns}
        return msgspec.structs.replace(self, values=values, id=key)


def _part(column: str, value: object, *, alone: bool) -> str | int | bytes:
    """Return the value of a key column as a part of an id, which holds integers of 64 bits if it has several parts."""
    part = value if isinstance(value, int | bytes) else str(value)
    if isinstance(part, int) and not alone:
        try:
            check_id([part])
        except ValueError:
            description = "a boolean" if isinstance(part, bool) else f"an integer of {part.bit_length()} bits"
            reason = (
                f"{column} is {description}, but a key of several columns holds texts, integers of 64 bits and bytes"
            )
            raise ValueError(reason) from None
    return part


class Update(msgspec.Struct, frozen=True, tag="update", forbid_unknown_fields=True):
    """New values for some columns of one row."""

    key: RowKey
    values: Values

    def __post_init__(self) -> None:
        _check_values(self.values)


class Delete(msgspec.Struct, frozen=True, tag="delete", forbid_unknown_fields=True):
    """The deletion of one row."""

    key: RowKey


class Drop(msgspec.Struct, frozen=True, tag="drop", forbid_unknown_fields=True):
    """The deletion of a whole object."""

    object: str


Change = Insert | Update | Delete | Drop


class InsertBatch(msgspec.Struct, frozen=True, tag="batch", forbid_unknown_fields=True, gc=False):
    """Rows of a load, by column: a sequence of `Insert`, each of which is made when it is looked at.

    A load has millions of rows, so whoever can do with the columns leaves the inserts alone. A list is empty if no row
    has anything in it; any other has an entry for each row. No id occurs twice with the same tenant and routing.

    >>> batch = InsertBatch("books", documents=['{"n":1}', '{"n":2}'], ids=["a", None])
    >>> len(batch), batch[0].id, batch[1].document
    (2, 'a', '{"n":2}')

    Attributes:
        object: The object that receives the rows.
        documents: `Insert.document` of each row. The host has checked that each is a JSON object in UTF-8.
        values: `Insert.values` of each row.
        ids: The rows' ids.
        tenants: `Insert.tenant` of each row.
        routings: `Insert.routing` of each row.
        replace: `Insert.replace` of each row.

    Raises:
        ValueError: The lists have different lengths, or a value can be stored nowhere.
    """

    object: str
    documents: list[str | None] = []
    values: list[Values] = []
    ids: list[str | None] = []
    tenants: list[str | None] = []
    routings: list[str | None] = []
    replace: list[bool] = []

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, name)) for name in self.__struct_fields__[1:]}
        if len(lengths - {0}) > 1:
            raise ValueError(f"the columns of a batch have {sorted(lengths)} rows")
        for values in self.values:
            _check_values(values)

    def __len__(self) -> int:
        return len(self.documents or self.values or self.ids)

    def __iter__(self) -> Iterator[Insert]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> Insert:
        return Insert(
            self.object,
            self.values[number] if self.values else {},
            self.ids[number] if self.ids else None,
            replace=bool(self.replace) and self.replace[number],
            tenant=self.tenants[number] if self.tenants else None,
            routing=self.routings[number] if self.routings else None,
            document=self.documents[number] if self.documents else None,
        )


def object_of(change: Change) -> str:
    """Return the name of the object that a change concerns."""
    return change.object if isinstance(change, (Insert, Drop)) else change.key.object


_METHOD_LENGTH = 40


RequestPath = NewType("RequestPath", str)
"""The path of one request, with its query, as `request_path` returns it."""


def request_path(text: str) -> RequestPath:
    r"""Return the path of a request, with its query: joined to an address, it can only lead to that address.

    It begins with exactly one slash and holds visible ASCII characters, percent-encoded, without ``#`` and ``\``: no
    client reads a scheme, a user, a host or a port in it, and no terminal anything that is not visible.

    >>> request_path("/books/_doc/a%2Fb?refresh=true")
    '/books/_doc/a%2Fb?refresh=true'

    Raises:
        ValueError: It is no such path.
    """
    if len(text) > LONGEST_PATH:
        raise ValueError(f"the path has {len(text):,} characters; {LONGEST_PATH:,} are the most")
    if not _PATH.fullmatch(text):
        beginning = f"{text[:120]!r}{'…' if len(text) > 120 else ''}"
        raise ValueError(
            f"the path {beginning} cannot be sent: it must begin with one '/', be percent-encoded and not end in '?'"
        )
    return RequestPath(text)


class HttpRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exact request: what a preview shows is what is sent, byte for byte.

    Attributes:
        method: The HTTP method, in capitals.
        path: A `RequestPath`: percent-encoded, with its query string, from its one slash at the beginning.
        body: The bytes that are sent, as text; None for no body.
        content_type: The content type of the body.

    Raises:
        ValueError: The path could lead elsewhere, or is not one; or method or content type could be more than that.
    """

    method: str
    path: RequestPath
    body: str | None = None
    content_type: str = "application/json"

    if TYPE_CHECKING:  # HttpRequest("GET", "/books") is the usual spelling

        def __init__(
            self, method: str, path: str, body: str | None = None, content_type: str = "application/json"
        ) -> None: ...

    def __post_init__(self) -> None:
        request_path(self.path)
        if not (self.method.isascii() and self.method.isalpha() and len(self.method) <= _METHOD_LENGTH):
            raise ValueError(f"{self.method[:40]!r} is not an HTTP method")
        if not (self.content_type.isascii() and self.content_type.isprintable()):
            raise ValueError(f"{self.content_type[:40]!r} is not a content type")

    def __str__(self) -> str:
        return f"{self.method} {self.path}" + (f"\n{self.body}" if self.body is not None else "")


class OutcomeStatus(StrEnum):
    """The result of one change.

    ``UNKNOWN`` if the server may have carried it out without saying so; ``FAILED`` only if it certainly did not.
    """

    APPLIED = "applied"
    SKIPPED = "skipped"
    REFUSED = "refused"
    CONFLICT = "conflict"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The result of one change, and its reason.

    Attributes:
        change: Its number in the plan's changes, from 0.
        status: Applied, or why not.
        id: The row's primary key; None if it has none.
        reason: One sentence; empty when applied as asked.
        key: The row's new key, with the guard for a further change.
        holds: In a conflict, or where the result is unknown: the row is known to hold what the change would write.
        busy: The server had too much to do to begin, so the change can be sent again later; only with ``FAILED``.
        rows: The number of changes, from `change` on, that have this outcome. More than one only for rows of a load
            (`Plan.bulk`) that were applied as asked; then `id` and `key` are None.
    """

    change: int
    status: OutcomeStatus
    id: RowId | None = None
    reason: str = ""
    key: RowKey | None = None
    holds: bool = False
    busy: bool = False
    rows: Annotated[int, msgspec.Meta(ge=1)] = 1

    def __post_init__(self) -> None:
        if self.id is not None and self.id.__class__ is not str:
            check_id(self.id)


class NewColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of an object that is to be made.

    Attributes:
        name: Its name; a dotted one is a path.
        kind: What its values are.
        repeated: Every value is an array of such values.
        is_id: Its values become the ids of the rows, so a driver that keeps ids apart may leave the column out.
        dimensions: Every value is a vector: an array of so many numbers, 0 if nothing says how many. None for other
            values. A driver whose objects have no vectors refuses it.
    """

    name: str
    kind: ColumnKind
    repeated: bool = False
    is_id: bool = False
    dimensions: Annotated[int, msgspec.Meta(ge=0)] | None = None


class NewObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object that is to be made for the rows of a load.

    Attributes:
        name: Its name.
        like: `Description.structure` of the object that the rows come from; empty if it is not known.
        samples: The first rows of the load as JSON texts: documents, or lines of an export in rows.
        columns: The columns of a table with the types that a person has confirmed; then there are no samples. A driver
            leaves out what it keeps itself, such as the id, and refuses a kind that it has no type for. The kinds are
            those of a table's fields, and ``json`` for the nested values of another database.
    """

    name: str
    like: str = ""
    samples: list[str] = []
    columns: list[NewColumn] = []


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to plan together; outcome n is about `changes[n]`.

    Several changes of one row are carried out in their order.

    Attributes:
        changes: The changes to plan; rows of a load come as an `InsertBatch`.
        undo: Also plan the changes that undo each row; every new row then gets its id in the plan.
        bulk: These are rows of a load. A driver need not wait until searches see them, nor read beforehand what the
            server checks by itself, and may send many in one request.
        last: No row of the load follows, so searches should see these, and with them all others.
        new: An object that is to be made; then there are no changes. The plan has the one request that makes it,
            without changes of its own, which the host sends as a console request. A driver that makes no objects plans
            nothing. The notes of the plan say what the object would not keep as it is; ``ids-are-uuids`` among them
            says that the ids of its rows are UUIDs, and ``column-kept-apart`` names a column that the object does not
            get, because the server keeps one of that name itself.
        outline: The plan stays in the driver's process (`Plan.number`), because nobody looks at its requests before
            they are sent. This is no matter of the driver.
    """

    changes: list[Change] | InsertBatch
    undo: bool = False
    bulk: bool = False
    last: bool = False
    new: NewObject | None = None
    outline: bool = False


class PlannedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a plan and the changes it carries out.

    Attributes:
        request: The request exactly as sent.
        changes: The numbers of its changes.
        rows: The same numbers by row, in the order of the request, if it carries several rows; all changes of one
            row have the same outcome.
        statement: What the request does, in the server's language, if its path or body is hard to read:
            ``DELETE FROM "cpu" WHERE …``. Shown beside the request, never sent; empty if the request is readable.
        guard: The state of its row when it was planned, for a driver that compares it just before it sends: the server
            compares nothing, and the change has no guard.
    """

    request: HttpRequest
    changes: list[int]
    rows: list[list[int]] = []
    statement: str = ""
    guard: dict[str, int | str] = {}

    @property
    def by_row(self) -> list[list[int]]:
        """The changes of each row, in the order of the request."""
        return self.rows or [self.changes]


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The requests that applying would send, and the changes it would leave out.

    Attributes:
        planned: Exact requests, in the order they are sent.
        refusals: Outcomes of the changes that are not sent: skipped or refused, with the reason.
        notes: Remarks for a person to read before sending.
        changes: The planned changes, which the host fills in; outcomes refer to them by number.
        undo: Changes that undo the plan, one for each row of each request in order. Their guards match a row only
            as the plan leaves it. Empty unless requested.
        bulk: The changes are rows of a load, so outcomes of rows that were applied may be joined (`Outcome.rows`). The
            host fills it in.
        number: The number by which the driver's process keeps the plan: then the requests here lack their bodies and
            rows. 0 for a whole plan. No driver sees another one.
    """

    planned: list[PlannedRequest]
    refusals: list[Outcome] = []
    notes: list[Note] = []
    changes: list[Change] | InsertBatch = []
    undo: list[Change] = []
    bulk: bool = False
    number: int = 0

    @property
    def requests(self) -> list[HttpRequest]:
        """The exact requests, in the order they are sent."""
        return [planned.request for planned in self.planned]
