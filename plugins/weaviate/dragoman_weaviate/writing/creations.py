"""Collections that are made for a load: like another one, with stated properties, or as the first rows need them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dragoman_api import HttpRequest, Plan, PlannedRequest, QueryError
from dragoman_api.columns import ColumnKind, Note
from dragoman_api.json_text import decode, encode
from dragoman_api.kit import operands

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.changes import NewColumn, NewObject

_NAME = re.compile(r"[A-Z][_0-9A-Za-z]{0,254}")
_PROPERTY = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,230}")
_KEPT = ("description", "properties", "invertedIndexConfig", "multiTenancyConfig")
_ONE_VECTOR = ("vectorizer", "vectorIndexType", "vectorIndexConfig", "moduleConfig")
_MEMBERS = {"class", "id", "properties", "vector", "vectors", "tenant", "creationTimeUnix", "lastUpdateTimeUnix"}


def plan_collection(new: NewObject) -> Plan:
    """Plan the collection. Shards and replicas are the server's own choice.

    Without another one's definition, its properties are those that are said or those of the rows, and no module
    computes vectors.

    Raises:
        QueryError: No collection can have the name, or the rows have no properties that one could have.
    """
    if not _NAME.fullmatch(new.name):
        hint = "begin with a capital, and use letters, digits and _"
        raise QueryError(f"{new.name!r} cannot be the name of a collection", hint=hint)
    notes: list[Note] = []
    if new.columns and not new.like:
        definition: dict[str, Any] = {"properties": _stated(new.columns), **_stated_vectors(new.columns)}
        notes = _notes(new.columns)
    else:
        definition = _copied(decode(new.like, dict[str, Any])) if new.like else _derived(new.samples)
    request = HttpRequest("POST", "/v1/schema", encode({"class": new.name, **definition}))
    return Plan(planned=[PlannedRequest(request=request, changes=[])], notes=notes)


_TYPES = {
    ColumnKind.TEXT: "text",
    ColumnKind.INTEGER: "int",
    ColumnKind.FLOAT: "number",
    ColumnKind.BOOLEAN: "boolean",
    ColumnKind.TIMESTAMP: "date",
    ColumnKind.BINARY: "blob",
}
_KEPT_APART = ("uuid", "vector", "creationTimeUnix", "lastUpdateTimeUnix")
"""Columns of a collection that are no properties."""

_NAMED = 20  # columns in a note


def _stated(columns: Iterable[NewColumn]) -> list[dict[str, Any]]:
    """Return the properties of columns whose types are said."""
    properties = []
    for column in columns:
        if column.is_id or _is_kept_apart(column) or column.dimensions is not None:
            continue
        if not _PROPERTY.fullmatch(column.name) or column.name == "id" or column.name[0].isupper():
            hint = "make it the id of the rows, or map it to another name, which begins with no capital"
            raise QueryError(f"{column.name!r} cannot be the name of a property", hint=hint)
        if (name := _TYPES.get(column.kind)) is None:
            text = f"the server has no type for {column.name!r} as {column.kind}"
            raise QueryError(text, hint=f"use one of: {', '.join(_TYPES)}")
        properties.append({"name": column.name, "dataType": [f"{name}[]" if column.repeated else name]})
    if not properties:
        raise QueryError("the file has no columns that a collection could have as properties")
    return properties


def _stated_vectors(columns: Sequence[NewColumn]) -> dict[str, Any]:
    """Return what a collection says of its vectors: one called ``vector`` has no name, and no module computes any."""
    names = [column.name for column in columns if column.dimensions is not None]
    if names in ([], ["vector"]):
        return {"vectorizer": "none"}
    if odd := next((name for name in names if not _PROPERTY.fullmatch(name) or name == "vector"), None):
        raise QueryError(f"{odd!r} cannot be the name of one of several vectors", hint="map it to another name")
    return {"vectorConfig": _named_vectors(names)}


def _named_vectors(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"vectorizer": {"none": {}}, "vectorIndexType": "hnsw"} for name in names}


def _notes(columns: Iterable[NewColumn]) -> list[Note]:
    """Return notes on what the server does not keep as it is, and on the ids of its rows."""
    notes = [Note(code="ids-are-uuids", reason="the ids of its rows are UUIDs")]
    integers = [column.name for column in columns if column.kind is ColumnKind.INTEGER]
    if integers:
        reason = f"the server rounds an integer beyond 2^53, as {', '.join(integers[:_NAMED])} may hold"
        notes.append(Note(code="integer-rounded", column=integers[0] if len(integers) == 1 else None, reason=reason))
    own = [column.name for column in columns if _is_kept_apart(column) and not column.is_id]
    reason = "the server keeps one of that name itself"
    return notes + [Note(code="column-kept-apart", column=name, reason=reason) for name in own]


def _is_kept_apart(column: NewColumn) -> bool:
    return column.name in _KEPT_APART and column.dimensions is None


def _copied(other: dict[str, Any]) -> dict[str, Any]:
    vectors = ("vectorConfig",) if other.get("vectorConfig") else _ONE_VECTOR
    return {name: other[name] for name in (*_KEPT, *vectors) if other.get(name)}


def _derived(samples: Iterable[str]) -> dict[str, Any]:
    rows = [_properties(decode(sample, dict[str, Any])) for sample in samples]
    names: set[str] = set()
    for row in rows:
        if isinstance(row.get("vectors"), dict):
            names |= row["vectors"].keys()
    vectors = _named_vectors(sorted(names))
    properties = _specs([row["properties"] for row in rows])
    if not properties:
        raise QueryError("the first rows have no values, so nothing says what properties the collection has")
    return {"properties": properties, **({"vectorConfig": vectors} if vectors else {"vectorizer": "none"})}


def _properties(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of an export as it is, and a document as its properties."""
    whole = isinstance(row.get("properties"), dict) and set(row) <= _MEMBERS
    return row if whole else {"properties": row}


def _specs(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None:
                values.setdefault(name, []).append(value)
    if odd := [name for name in values if not _PROPERTY.fullmatch(name)]:
        raise QueryError(f"{odd[0]!r} cannot be the name of a property", hint="map it to another name")
    return [{"name": name, **_spec(name, property_values)} for name, property_values in values.items()]


def _spec(name: str, values: list[Any]) -> dict[str, Any]:
    """Return the type that fits all values."""
    array = all(isinstance(value, list) for value in values)
    flat = [value for elements in values for value in elements if value is not None] if array else values
    mark = "[]" if array else ""
    if flat and all(isinstance(value, dict) for value in flat):
        return {"dataType": [f"object{mark}"], "nestedProperties": _specs(flat)}
    kinds = {type(value) for value in flat}
    if kinds <= {bool} and flat:
        return {"dataType": [f"boolean{mark}"]}
    if kinds <= {int, float} and flat:
        return {"dataType": [f"{'int' if kinds == {int} else 'number'}{mark}"]}
    if kinds <= {str}:
        return {"dataType": [f"{_of_texts(flat)}{mark}"]}
    type_names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise QueryError(
        f"the values of {name!r} have several types ({type_names})", hint="make the collection in the console"
    )


def _of_texts(texts: list[str]) -> str:
    if texts and all(map(_is_instant, texts)):
        return "date"
    return "uuid" if texts and all(map(_is_uuid, texts)) else "text"


def _is_instant(text: str) -> bool:
    with suppress(ValueError):
        return bool(operands.timestamp(text))
    return False


def _is_uuid(text: str) -> bool:
    with suppress(ValueError):
        return len(text) == 36 and bool(str(UUID(text)))
    return False
