"""The requests that read records, their answers, and records as rows. Pure.

The rule of a measured fact is in parentheses, as in C12.
"""

from __future__ import annotations

from array import array
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import (
    Column,
    HttpRequest,
    Json,
    Page,
    QueryError,
    RowKey,
)
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.page_columns import KEYS, LeftOut
from dragoman_api.kit.residual import ResidualFilter

from .columns import EMBEDDING, ID, OWN, key_of, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import Cell, Note

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
