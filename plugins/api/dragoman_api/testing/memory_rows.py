"""Columns of the memory driver, and its filter rows and sorts, evaluated in Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from dragoman_api.cells import cut
from dragoman_api.columns import Column, ColumnKind, Role
from dragoman_api.columns import Operator as Op
from dragoman_api.errors import FilterNotSupportedError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.kit.filter_meaning import holds
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from dragoman_api.cells import Cell
    from dragoman_api.grid import Sort

_EQUALS = (Op.EQ, Op.NE, Op.NULL, Op.NOT_NULL)
_TEXTS = (Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS, Op.EMPTY, Op.NOT_EMPTY, Op.REGEX)
_LISTS = (Op.IN, Op.NOT_IN, Op.BETWEEN)
OPERATORS = {
    ColumnKind.TEXT: (*_EQUALS, Op.IN, Op.NOT_IN, *_TEXTS),
    **dict.fromkeys((ColumnKind.INTEGER, ColumnKind.FLOAT), (*_EQUALS, *_LISTS, Op.GT, Op.GE, Op.LT, Op.LE)),
    ColumnKind.BOOLEAN: _EQUALS,
}
_TIMED = "rows are chosen by a range of time"
WHOLE = "arrays have no order and are not compared"


def column_of(name: str, kind: ColumnKind) -> Column:
    """Describe a column by its kind."""
    operators = OPERATORS.get(kind, ())
    reason = _TIMED if kind is ColumnKind.TIMESTAMP else WHOLE
    reasons = {} if operators else {"sort": reason, "filter": reason}
    return Column(
        name=name,
        type=kind,
        kind=kind,
        role=Role.TIME if kind is ColumnKind.TIMESTAMP else Role.NONE,
        sortable=bool(operators),
        operators=operators,
        reasons=reasons,
        path=("row", name),
    )


def typed(row: Filter, column: Column | None) -> Filter:
    """Check a filter row, and return it with a value of the column's kind. Raises FilterNotSupportedError."""
    if column is None or row.op not in column.operators:
        reason = "there is no such column" if column is None else column.reasons.get("filter", "no such comparison")
        raise _refusal(row, reason)
    if row.op in _LISTS:
        values = row.value if isinstance(row.value, list) else str(row.value or "").split(",")
        if row.op is Op.BETWEEN and len(values) != 2:
            raise _refusal(row, "it takes two values")
        return replace(row, value=[_value(row, operand, column.kind) for operand in values])
    unary = row.op in (Op.NULL, Op.NOT_NULL, Op.EMPTY, Op.NOT_EMPTY)
    return replace(row, value=None if unary else _value(row, row.value, column.kind))


def _value(row: Filter, value: Any, kind: ColumnKind) -> Any:
    expected_type: Any = int | float if kind.numeric else {ColumnKind.TEXT: str, ColumnKind.BOOLEAN: bool}[kind]
    try:
        typed = value if kind is ColumnKind.TEXT or not isinstance(value, str) else msgspec.json.decode(value.strip())
        typed = msgspec.convert(typed, expected_type)
        if row.op is Op.REGEX:
            re.compile(typed)
    except (msgspec.MsgspecError, re.error) as error:
        raise _refusal(row, f"{quoted(value)} does not fit: {error}") from error
    return typed


def _refusal(row: Filter, reason: str) -> FilterNotSupportedError:
    details = {"column": row.column, "operator": str(row.op), "reason": reason}
    return FilterNotSupportedError(f"{row.column} {row.op}: {reason}; nothing was sent", details=details)


def satisfies(row: Filter | RawQuery, values: dict[str, Any]) -> bool:
    """Return whether stored values satisfy a filter row."""
    if isinstance(row, RawQuery):
        return any(row.text in str(value) for value in values.values())
    exact = replace(row, case=row.case is not False)  # letter case counts here if the row leaves it open
    return holds(exact, cell(values.get(row.column))) is True


def ordered(rows: list[dict[str, Any]], sort: Sort) -> list[dict[str, Any]]:
    """Order rows by one column; rows without a value come last either way."""
    valued = [record for record in rows if record["row"].get(sort.column) is not None]
    valued.sort(key=lambda record: record["row"][sort.column], reverse=sort.descending)
    return valued + [record for record in rows if record["row"].get(sort.column) is None]


def cell(value: Any) -> Cell:
    """Return a stored value as a cell."""
    return cut(as_json(value)) if isinstance(value, list | dict) else value


def as_json(value: object) -> str:
    """Write JSON."""
    return msgspec.json.encode(value).decode()
