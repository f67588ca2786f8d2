"""Records as rows: columns from samples, the requests that read records, and their answers. Pure.

The rule of a measured fact is in parentheses, as in C12.
"""

from __future__ import annotations

from array import array
from decimal import Decimal
from hashlib import sha256
from math import isinf
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import (
    Column,
    ColumnKind,
    HttpRequest,
    Json,
    Page,
    QueryError,
    Role,
    RowKey,
    Written,
)
from dragoman_api.columns import NULLS
from dragoman_api.columns import Operator as Op
from dragoman_api.json_text import decode, encode
from dragoman_api.kit import operands, row_tests
from dragoman_api.kit.page_columns import KEYS, LeftOut, kinds_of
from dragoman_api.kit.residual import ResidualFilter
from dragoman_api.kit.row_tests import ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dragoman_api import Cell, Note

ID, DOCUMENT, URI, EMBEDDING = "id", "document", "uri", "embedding"
OWN = (ID, DOCUMENT, URI, EMBEDDING)
METADATA = "metadata."  # before the name of a key that is spelled like another column
NO_SORT = "Chroma has no order; the rows of a page can be sorted here, if the call allows it"
NO_FILTER = "the values are of several kinds or vectors, which Chroma compares with nothing"
EQUAL = {Op.EQ: "$eq", Op.NE: "$ne", Op.IN: "$eq", Op.NOT_IN: "$ne"}
ORDERED = {Op.GT: "$gt", Op.GE: "$gte", Op.LT: "$lt", Op.LE: "$lte"}
_COMPARED = {
    ValueKind.TEXT: (*EQUAL, Op.EMPTY),
    ValueKind.NUMBER: (*EQUAL, *ORDERED, Op.BETWEEN),
    ValueKind.BOOLEAN: (*EQUAL,),
}
NO_CONDITION = "Chroma has no such condition on it"
MOST_IDS = 5_000
"""Maximum number of ids in one request; the server fails beyond about 32,000 (C26)."""


class StoredRecord(msgspec.Struct, frozen=True):
    """One record: as the server returns it, or the parts of it that a request writes. The embedding is JSON text."""

    id: str
    document: str | None = None
    uri: str | None = None
    metadata: dict[str, Any] = {}
    embedding: str | None = None

    @property
    def guard(self) -> dict[str, int | str]:
        """What a change compares: digests of the embedding as 32-bit floats, if it was read, and of the rest (C33)."""
        rest = [self.document, self.uri, sorted(self.metadata.items())]
        vector = array("f", decode(self.embedding, list[float])).tobytes() if self.embedding else None
        guard: dict[str, int | str] = {"state": _digest(msgspec.json.encode(rest))}
        return guard if vector is None else {**guard, "vector": _digest(vector)}

    def after(self, sent: StoredRecord) -> StoredRecord:
        """Return the record as a request leaves it that sends these parts: it keeps what is not sent (C36, C38)."""
        metadata = {name: value for name, value in {**self.metadata, **sent.metadata}.items() if value is not None}
        own = {name: new if (new := getattr(sent, name)) is not None else getattr(self, name) for name in OWN}
        return StoredRecord(**own, metadata=metadata)

    def value(self, name: str) -> Any:
        """Return the stored value of a column; None if there is none."""
        return getattr(self, name) if name in OWN else self.metadata.get(key_of(name))

    def cell(self, name: str) -> Cell:
        """Return the cell of a column."""
        value = self.value(name)
        if name == EMBEDDING:
            return None if value is None else Json(value)
        return Json(encode(value)) if isinstance(value, list | dict) else value


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:24]


class FilterBody(msgspec.Struct, frozen=True):
    """A compiled filter: a condition as JSON text, ids, and what is evaluated here; empty or None for all rows."""

    where: str = ""
    ids: list[str] | None = None
    residual: ResidualFilter | None = None

    @property
    def whole(self) -> bool:
        """Whether the server is asked for all rows."""
        return not self.where and self.ids is None


def key_of(name: str) -> str:
    """Return the metadata key of a column (C14).

    >>> key_of("year"), key_of("metadata.id")
    ('year', 'id')
    """
    return name.removeprefix(METADATA)


def name_of(key: str) -> str:
    """Return the column of a metadata key (C14)."""
    return METADATA + key if key in OWN or key.startswith(METADATA) else key


def columns_of(metadatas: Iterable[Mapping[str, Any]], dimension: int | None) -> dict[str, Column]:
    """Return the columns of a collection: its own, and the metadata keys of some records with the kinds of values."""
    rows = [{name_of(key): value for key, value in metadata.items()} for metadata in metadatas]
    arrays = [{name: item} for row in rows for name, value in row.items() if isinstance(value, list) for item in value]
    inner, outer = kinds_of(arrays), kinds_of(rows)
    columns = [
        _column(ID, ColumnKind.TEXT, role=Role.KEY, written=Written.INSERT, path=(ID,)),
        _column(DOCUMENT, ColumnKind.TEXT, path=(DOCUMENT,)),
        _column(URI, ColumnKind.TEXT, path=(URI,)),
    ]
    for name, kind in outer.items():
        repeated = kind is ColumnKind.JSON and name in inner
        columns.append(
            _column(name, inner[name] if repeated else kind, repeated=repeated, path=("metadata", key_of(name)))
        )
    columns.append(_column(EMBEDDING, ColumnKind.FLOAT, repeated=True, path=(EMBEDDING,), dimensions=dimension or 0))
    return {column.name: column for column in columns}


def _column(name: str, kind: ColumnKind, **options: Any) -> Column:
    column = Column(name=name, type=("array of " if options.get("repeated") else "") + kind, kind=kind, **options)
    compared = value_kind(column)
    reasons = {"sort": NO_SORT}
    if name == ID:
        reasons |= {
            "edit": "the id of a record cannot be changed",
            "any": "Chroma joins ids and conditions by 'and' only",
        }
    operators: tuple[Op, ...] = ()
    if name == DOCUMENT:
        operators = (Op.CONTAINS, Op.NOT_CONTAINS, *NULLS)
    elif name == ID:
        operators = (Op.EQ, Op.IN)
    elif name != URI and compared is not None:
        operators = _COMPARED[compared] if not column.repeated else (*EQUAL,)
    if not operators:
        reasons["filter"] = (
            NO_FILTER if compared is None else f"{NO_CONDITION}; it can be evaluated here, if the call allows it"
        )
    return replace(column, operators=operators, reasons=reasons)


def value_kind(column: Column) -> ValueKind | None:
    """Return how the values of a column compare; None if they do not."""
    return None if column.name == EMBEDDING else row_tests.value_kind(column.kind)


def kept(value: object) -> float:
    """Read a float that the server keeps as it is (C18). Raises ValueError for any other number."""
    number = operands.floating(value)
    if Decimal(repr(number)) != operands.decimal(value) or not survives(number) or repr(number) == "-0.0":
        raise ValueError(f"Chroma reads and stores {value} as another number")
    return number


def survives(number: float) -> bool:
    """Return whether the server reads a float as it is: its parser rounds twice where digits are many (C18).

    >>> survives(0.1), survives(4.561046178936247e-13), survives(-7.312715117751976e-237)
    (True, True, False)
    """
    digits, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = digits.partition(".")
    power = int(exponent or 0) - len(fraction)
    try:
        scale = float(f"1e{abs(power)}")
        read = float(int(whole + fraction)) / scale if power < 0 else float(int(whole + fraction)) * scale
    except OverflowError:
        return False
    return not isinf(scale) and read == abs(number)


class View(msgspec.Struct, frozen=True):
    """A collection as it was read: its full name, path, columns, number of dimensions, and the server's definition."""

    name: str
    path: str
    columns: dict[str, Column]
    dimension: int | None
    definition: str

    def count_unshown(self, records: Sequence[StoredRecord], left_out: LeftOut) -> None:
        """Count the keys of records that no column shows."""
        for record in records:
            left_out.add(KEYS, (key for key in record.metadata if name_of(key) not in self.columns))


class Definition(msgspec.Struct, frozen=True):
    """A collection or a database in a list, or the definition of a collection."""

    id: str
    name: str
    dimension: int | None = None


class Checks(msgspec.Struct, frozen=True):
    """What the server tells of its limits."""

    max_batch_size: int | None = None


class Records(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parts of records by column, as the server answers a `get` and takes a write."""

    ids: list[str]
    documents: list[str | None] | None = None
    uris: list[str | None] | None = None
    metadatas: list[dict[str, Any] | None] | None = None
    embeddings: list[Raw] | None = None

    @classmethod
    def of(cls, records: Sequence[StoredRecord]) -> Records:
        """Return the parts that some records have."""
        columns: tuple[list[Any], ...] = (
            [record.document for record in records],
            [record.uri for record in records],
            [record.metadata or None for record in records],
            [None if record.embedding is None else Raw(record.embedding.encode()) for record in records],
        )
        parts = ([*values] if any(value is not None for value in values) else None for values in columns)
        return cls([record.id for record in records], *parts)

    def records(self) -> list[StoredRecord]:
        """Return the records; QueryError if the lists do not fit together."""
        size = len(self.ids)
        none: list[Any] = [None] * size
        parts = [self.documents or none, self.uris or none, self.metadatas or none, self.embeddings or none]
        if any(len(part) != size for part in parts):
            raise QueryError("the server's answer is wrong: it has more or fewer values than ids")
        return [
            StoredRecord(
                key, text, uri, metadata or {}, bytes(vector).decode() if vector not in (None, b"null") else None
            )
            for key, text, uri, metadata, vector in zip(self.ids, *parts, strict=True)
        ]


class QueryAnswer(msgspec.Struct, frozen=True):
    """The answer to a `query` of one embedding: as that to a `get`, each part in a list of one, with distances."""

    ids: list[list[str]]
    distances: list[list[float]]
    documents: list[list[str | None]] | None = None
    uris: list[list[str | None]] | None = None
    metadatas: list[list[dict[str, Any] | None]] | None = None
    embeddings: list[list[Raw]] | None = None

    def nearest(self) -> tuple[list[StoredRecord], list[float]]:
        """Return the records and their distances; QueryError if the lists do not fit together."""
        parts: list[Any] = [self.ids, self.documents, self.uris, self.metadatas, self.embeddings]
        if any(len(part) != 1 for part in (*parts, self.distances) if part is not None):
            raise QueryError("the server's answer is wrong: it answers more or fewer queries than one")
        records = Records(*(part and part[0] for part in parts)).records()
        if len(records) != len(self.distances[0]):
            raise QueryError("the server's answer is wrong: it has more or fewer distances than ids")
        return records, self.distances[0]


def page_of(view: View, columns: Sequence[Column], records: Sequence[StoredRecord], notes: Sequence[Note]) -> Page:
    """Return records as the rows of a page, with a note on keys that no column shows."""
    left_out = LeftOut()
    view.count_unshown(records, left_out)
    return Page(
        columns=[*columns],
        cells=[[record.cell(column.name) for column in columns] for record in records],
        keys=[RowKey(view.name, record.id, guard=record.guard) for record in records],
        notes=[*notes, *left_out.notes()],
    )


def get_request(path: str, body: FilterBody, names: Sequence[str] | None, **window: int) -> HttpRequest:
    """Return the request of some records: what a guard needs, and the embedding if it is named (C33); None for ids."""
    parts = {**_where(body, names), **window}
    return HttpRequest("POST", f"{path}/get", encode(parts))


def query_request(path: str, body: FilterBody, names: Sequence[str], vector: str, limit: int) -> HttpRequest:
    """Return the request of the records nearest to an embedding, which is JSON text (C42)."""
    parts = {**_where(body, names, "distances"), "query_embeddings": [Raw(vector.encode())], "n_results": limit}
    return HttpRequest("POST", f"{path}/query", encode(parts))


def _where(body: FilterBody, names: Sequence[str] | None, *further_parts: str) -> dict[str, Any]:
    include = [] if names is None else ["documents", "uris", "metadatas", *further_parts]
    parts: dict[str, Any] = {"include": [*include, *(["embeddings"] if EMBEDDING in (names or ()) else [])]}
    if body.ids is not None:
        parts["ids"] = body.ids
    if body.where:
        parts["where"] = Raw(body.where.encode())
    return parts


def line_of(record: StoredRecord, names: Sequence[str] | None) -> bytes:
    """Return a record as a line of an export: all of it, or the id and the parts of the named columns."""
    line: dict[str, Any] = {name: getattr(record, name) for name in OWN if names is None or name in names}
    if EMBEDDING in line:
        line[EMBEDDING] = Raw((record.embedding or "null").encode())
    metadata = {key: value for key, value in record.metadata.items() if names is None or name_of(key) in names}
    return encode({ID: record.id, **line, "metadata": metadata}).encode() + b"\n"
