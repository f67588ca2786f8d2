"""Filter rows as a Mango selector. Pure: nothing here sends anything."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from dragoman_api import (
    Column,
    ColumnKind,
    CompiledFilter,
    Explanation,
    Filter,
    FilterNotSupportedError,
    FilterRequest,
    Operator,
    RawQuery,
)

_ANY = (Operator.NULL, Operator.NOT_NULL)
_EQUAL = (*_ANY, Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN)
_ORDERED = {Operator.GT: "$gt", Operator.GE: "$gte", Operator.LT: "$lt", Operator.LE: "$lte"}
_TEXTS = (Operator.CONTAINS, Operator.STARTS, Operator.ENDS, Operator.EMPTY, Operator.REGEX)

OPERATORS: dict[ColumnKind, tuple[Operator, ...]] = {
    ColumnKind.TEXT: (*_EQUAL, *_TEXTS),
    ColumnKind.NUMBER: (*_EQUAL, *_ORDERED, Operator.BETWEEN),
    ColumnKind.BOOLEAN: (*_ANY, Operator.EQ, Operator.NE),
}
WANTED = {ColumnKind.TEXT: str, ColumnKind.NUMBER: (int, float), ColumnKind.BOOLEAN: bool}


def compile_rows(request: FilterRequest, columns: dict[str, Column]) -> CompiledFilter:
    """Translate every row, or refuse the one that cannot run: a filter never widens."""
    clauses = []
    for row in request.rows:
        if isinstance(row, RawQuery):
            clauses.append(_raw(row))
        else:
            clauses.append(_clause(row, columns.get(row.column)))
    explained = [Explanation(row=at, clause=json.dumps(clause)) for at, clause in enumerate(clauses)]
    selector = {"$and" if request.match == "all" else "$or": clauses}
    return CompiledFilter(object=request.object, body=json.dumps(selector), rows=explained)


def _raw(row: RawQuery) -> dict[str, Any]:
    try:
        selector = json.loads(row.text)
    except ValueError as error:
        raise _refusal(row.text, "raw", f"it is no JSON selector: {error}") from error
    if not isinstance(selector, dict) or not selector:
        raise _refusal(row.text, "raw", "a selector is a JSON object that is not empty")
    return selector


def _clause(row: Filter, column: Column | None) -> dict[str, Any]:
    if column is None:
        raise _refusal(row.column, row.op, "there is no such column")
    if row.op not in column.operators:
        raise _refusal(row.column, row.op, column.reasons.get("filter", f"it does not run on {column.type}"))
    name = re.sub(r"([.$\\])", r"\\\1", row.column)  # a dot would lead into an object
    if row.op is Operator.NULL:
        return {"$or": [{name: {"$exists": False}}, {name: {"$eq": None}}]}
    if row.op is Operator.NOT_NULL:
        return {"$and": [{name: {"$exists": True}}, {name: {"$ne": None}}]}
    return {name: _condition(row, column)}


def _condition(row: Filter, column: Column) -> dict[str, Any]:
    if row.op is Operator.EMPTY:
        return {"$eq": ""}
    if row.op in (Operator.IN, Operator.NOT_IN, Operator.BETWEEN):
        values = [_value(row, column, each) for each in _listed(row.value)]
        if row.op is Operator.BETWEEN:
            if len(values) != 2:
                raise _refusal(row.column, row.op, "it needs two values")
            return {"$gte": values[0], "$lte": values[1], "$type": "number"}
        return {"$in" if row.op is Operator.IN else "$nin": values}
    value = _value(row, column, row.value)
    if row.op in _ORDERED:
        return {_ORDERED[row.op]: value, "$type": "number"}  # alone it would find every text and object too
    if row.op in (Operator.EQ, Operator.NE):
        return {"$eq" if row.op is Operator.EQ else "$ne": value}
    if row.op is Operator.REGEX:
        return {"$regex": f"^(?:{value})$"}
    before, after = {Operator.STARTS: ("^", ""), Operator.ENDS: ("", "$")}.get(row.op, ("", ""))
    return {"$regex": f"{before}{re.escape(str(value))}{after}"}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [part.strip() for part in str(value).split(",")]


def _value(row: Filter, column: Column, value: Any) -> Any:
    """Read a value as the column's kind: the command line gives texts."""
    wanted = WANTED[column.kind]
    if isinstance(value, str) and wanted is not str:
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise _refusal(row.column, row.op, f"{value!r} is no {column.type}")
    return value


def _refusal(column: str, operator: str, reason: str) -> FilterNotSupportedError:
    details = {"column": column, "operator": str(operator), "reason": reason}
    return FilterNotSupportedError(f"{column} {operator}: {reason}; nothing was sent", details=details)
