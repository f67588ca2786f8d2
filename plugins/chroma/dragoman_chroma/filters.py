"""Filter rows as one condition and ids, and the numbers that the server compares exactly. Pure.

The rule of a measured fact is in parentheses, as in C20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman_api import ColumnKind, CompiledFilter, Explanation, Filter, RawQuery
from dragoman_api.columns import LISTS, NULLS
from dragoman_api.columns import Operator as Op
from dragoman_api.json_text import encode
from dragoman_api.kit import operands
from dragoman_api.kit.page_columns import UNKNOWN
from dragoman_api.kit.residual import split_rows

from .columns import DOCUMENT, EQUAL, ID, NO_CONDITION, ORDERED, kept, key_of, value_kind
from .queries import MOST_IDS, FilterBody

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dragoman_api import Column, FilterRequest
    from dragoman_api.kit.row_evaluation import ValueKind

_HOLDS = {"$eq": "$contains", "$ne": "$not_contains"}  # the same of an array's elements
_HINT = "a page can evaluate many conditions that Chroma lacks over a bounded number of rows, if you allow it"


def compile_filter(request: FilterRequest, columns: Mapping[str, Column], revision: str) -> CompiledFilter:
    """Translate filter rows into one condition and ids, and leave the others to be evaluated here if that is allowed.

    Raises:
        FilterNotSupportedError: A filter row can neither run on the server nor be evaluated here.
    """

    def sensitive(row: Filter | RawQuery) -> Filter | RawQuery:  # as the server compares documents (C22)
        plain = isinstance(row, Filter) and row.case is None
        return replace(row, case=True) if plain else row

    def kind(row: Filter) -> ValueKind | None:
        return value_kind(columns[row.column]) if row.column in columns else None

    request = replace(request, rows=[sensitive(row) for row in request.rows])
    alone = request.match == "all" or len(request.rows) == 1
    compiled, residual = split_rows(
        request, lambda number, row: (number, *_clause(row, columns, alone=alone)), hint=lambda row: _HINT, kind=kind
    )
    ids: list[str] | None = None
    for _, _, chosen in compiled:
        if chosen is not None:
            ids = chosen if ids is None else [key for key in ids if key in chosen]
    clauses = [clause for _, clause, chosen in compiled if chosen is None]
    join = "$and" if request.match == "all" else "$or"
    where = encode(clauses[0] if len(clauses) == 1 else {join: clauses}) if clauses else ""
    rows = [Explanation(row=number, clause=encode(clause)) for number, clause, _ in compiled]
    rows = sorted([*rows, *(residual.explained() if residual else [])], key=lambda explanation: explanation.row)
    body = encode(FilterBody(where, ids, residual))
    return CompiledFilter(object=request.object, body=body, rows=rows, revision=revision)


def _clause(row: Filter | RawQuery, columns: Mapping[str, Column], *, alone: bool) -> tuple[Any, list[str] | None]:
    """Return the condition of a filter row, and the ids if it is one of ids; raise ValueError if there is none."""
    if isinstance(row, RawQuery) or (column := columns.get(row.column)) is None:
        raise ValueError("this driver takes no Raw row" if isinstance(row, RawQuery) else UNKNOWN)
    if row.op not in column.operators:
        raise ValueError(column.reasons.get("filter") or f"{NO_CONDITION}: '{row.op}'")
    if row.group is not None:
        raise ValueError("the elements of an array are single values, so that a group has no meaning")
    if column.name == DOCUMENT:
        if row.case is False:
            raise ValueError("Chroma compares the letter case of documents")
        text = "" if row.op in NULLS else operands.text(operands.single(row.value))
        return {"#document": {"$contains" if row.op in (Op.CONTAINS, Op.NOT_NULL) else "$not_contains": text}}, None
    if column.name == ID:
        if not alone:
            raise ValueError(column.reasons["any"])
        values = operands.several(row.value) if row.op is Op.IN else [operands.single(row.value)]
        ids = list(dict.fromkeys(operands.text(value) for value in values))
        if len(ids) > MOST_IDS:
            raise ValueError(f"{len(ids):,} ids are more than the {MOST_IDS:,} that one request takes")
        return {"ids": ids}, ids
    if row.case is False and column.kind is ColumnKind.TEXT:
        raise ValueError("Chroma compares the letter case of texts")
    return _compared(row, column, key_of(column.name)), None


def _compared(row: Filter, column: Column, key: str) -> dict[str, Any]:
    readers: dict[ColumnKind, Callable[[object], Any]]
    readers = {ColumnKind.TEXT: operands.text, ColumnKind.BOOLEAN: operands.boolean}
    read = readers.get(column.kind, comparable)
    if key.startswith(("#", "$", "chroma:")):
        raise ValueError(f"Chroma gives keys that begin like '{key[:20]}' a meaning of its own")
    if row.op is Op.EMPTY:
        return {key: {"$eq": ""}}
    if row.op is Op.BETWEEN:
        low, high = map(read, operands.bounds(row.value))
        return {"$and": [_condition(key, "$gte", low), _condition(key, "$lte", high)]}
    if row.op in ORDERED:
        return _condition(key, ORDERED[row.op], read(operands.single(row.value)))
    sign, empty = EQUAL[row.op], column.kind is ColumnKind.TEXT
    values = operands.several(row.value, empty=empty) if row.op in LISTS else [operands.single(row.value)]
    typed = [read(value) for value in values]
    if column.repeated:  # integers and floats are told apart in arrays (C21)
        sign = _HOLDS[sign]
        conditions = [{key: {sign: same}} for value in typed for same in _spellings(value)]
    else:
        conditions = [_condition(key, sign, value) for value in typed]
    return conditions[0] if len(conditions) == 1 else {"$or" if sign in ("$eq", "$contains") else "$and": conditions}


def _condition(key: str, sign: str, value: Any) -> dict[str, Any]:
    """Return a condition that holds for integers and floats: the server cuts the fraction off for integers (C20)."""
    condition = {key: {sign: value}}
    if not isinstance(value, float):
        return condition
    whole = int(value)
    if sign == "$eq" or (sign == "$gte" and whole < value) or (sign == "$lte" and whole > value):
        return {"$and": [condition, {key: {"$ne": whole}}]}
    if sign == "$ne" or (sign == "$lt" and whole < value) or (sign == "$gt" and whole > value):
        return {"$or": [condition, {key: {"$eq": whole}}]}
    return condition


def _spellings(value: Any) -> list[Any]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return [value]
    whole = [int(value)] if float(value).is_integer() and -(1 << 63) <= value < 1 << 63 else []
    return [*whole, float(value)]


def comparable(value: object) -> int | float:
    """Read a number that the server compares exactly (C19). Raises ValueError for any other."""
    exact = operands.decimal(value)
    if isinstance(exact, int):
        if not -(1 << 63) <= exact < 1 << 63 or int(float(exact)) != exact:
            raise ValueError(f"{exact} is beyond the integers that Chroma compares exactly with floats")
        return exact
    number = kept(value)
    if number.is_integer():
        raise ValueError(f"Chroma reads {exact} as another number")
    return number
