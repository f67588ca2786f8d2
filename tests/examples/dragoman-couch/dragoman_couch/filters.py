"""Filter rows as a Mango selector. Pure: nothing here sends anything."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from dragoman_api import (
    Column,
    ColumnKind,
    CompiledFilter,
    Explanation,
    Filter,
    FilterRequest,
    Operator,
    RawQuery,
)
from dragoman_api.json_text import encode
from dragoman_api.kit import operands
from dragoman_api.kit.filter_rows import compile_rows
from dragoman_api.kit.page_columns import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

_ANY = (Operator.NULL, Operator.NOT_NULL)
_EQUAL = (*_ANY, Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN)
_ORDERED = {Operator.GT: "$gt", Operator.GE: "$gte", Operator.LT: "$lt", Operator.LE: "$lte"}
_TEXTS = (Operator.CONTAINS, Operator.STARTS, Operator.ENDS, Operator.EMPTY, Operator.REGEX)

OPERATORS: dict[ColumnKind, tuple[Operator, ...]] = {
    ColumnKind.TEXT: (*_EQUAL, *_TEXTS),
    ColumnKind.INTEGER: (*_EQUAL, *_ORDERED, Operator.BETWEEN),
    ColumnKind.FLOAT: (*_EQUAL, *_ORDERED, Operator.BETWEEN),
    ColumnKind.BOOLEAN: (*_ANY, Operator.EQ, Operator.NE),
}
READERS: dict[ColumnKind, Callable[[object], Any]] = {
    ColumnKind.TEXT: operands.text,
    ColumnKind.INTEGER: operands.decimal,
    ColumnKind.FLOAT: operands.decimal,
    ColumnKind.BOOLEAN: operands.boolean,
}


def compile_filter(request: FilterRequest, columns: dict[str, Column]) -> CompiledFilter:
    """Translate every row, or refuse those that cannot run: a filter never widens."""
    clauses = compile_rows(request, lambda _, row: _clause(row, columns), hint=lambda row: "")
    explained = [Explanation(row=at, clause=encode(clause)) for at, clause in enumerate(clauses)]
    selector = {"$and" if request.match == "all" else "$or": clauses}
    return CompiledFilter(object=request.object, body=encode(selector), rows=explained)


def _raw(row: RawQuery) -> dict[str, Any]:
    try:
        selector = json.loads(row.text)
    except ValueError as error:
        raise ValueError(f"it is no JSON selector: {error}") from error
    if not isinstance(selector, dict) or not selector:
        raise ValueError("a selector is a JSON object that is not empty")
    return selector


def _clause(row: Filter | RawQuery, columns: dict[str, Column]) -> dict[str, Any]:
    """Return the clause of a row; raise ValueError with the reason why there is none."""
    if isinstance(row, RawQuery):
        return _raw(row)
    if (column := columns.get(row.column)) is None:
        raise ValueError(UNKNOWN)
    if row.op not in column.operators:
        raise ValueError(column.reasons.get("filter", f"it does not run on {column.type}"))
    name = re.sub(r"([.$\\])", r"\\\1", row.column)  # a dot would lead into an object
    if row.op is Operator.NULL:
        return {"$or": [{name: {"$exists": False}}, {name: {"$eq": None}}]}
    if row.op is Operator.NOT_NULL:
        return {"$and": [{name: {"$exists": True}}, {name: {"$ne": None}}]}
    return {name: _condition(row, column)}


def _condition(row: Filter, column: Column) -> dict[str, Any]:
    if row.op is Operator.EMPTY:
        return {"$eq": ""}
    read = READERS[column.kind]
    if row.op is Operator.BETWEEN:
        low, high = map(read, operands.bounds(row.value))
        return {"$gte": low, "$lte": high, "$type": "number"}
    if row.op in (Operator.IN, Operator.NOT_IN):
        values = [read(value) for value in operands.several(row.value, empty=True)]
        return {"$in" if row.op is Operator.IN else "$nin": values}
    value = read(operands.single(row.value))
    if row.op in _ORDERED:
        return {_ORDERED[row.op]: value, "$type": "number"}  # alone it would find every text and object too
    if row.op in (Operator.EQ, Operator.NE):
        return {"$eq" if row.op is Operator.EQ else "$ne": value}
    if row.op is Operator.REGEX:
        return {"$regex": f"^(?:{value})$"}
    before, after = {Operator.STARTS: ("^", ""), Operator.ENDS: ("", "$")}.get(row.op, ("", ""))
    return {"$regex": f"{before}{re.escape(str(value))}{after}"}
