"""The meaning of a filter row for one cell, where it does not depend on the database."""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dragoman_api.cells import MISSING, Json, as_bytes
from dragoman_api.columns import Operator as Op

from .operands import instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.cells import Cell
    from dragoman_api.filters import Filter, TimeRange

NEGATED = {Op.NE: Op.EQ, Op.NOT_CONTAINS: Op.CONTAINS, Op.NOT_IN: Op.IN}
"""Negated operators, and the operators that they negate."""
_EQUALITY = (Op.EQ, Op.IN)

_ORDERED: dict[Op, Callable[[Any, Any], bool]] = {
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.LT: operator.lt,
    Op.LE: operator.le,
}
_TEXTS: dict[Op, Callable[[str, str], bool]] = {
    Op.CONTAINS: lambda cell, part: part in cell,
    Op.STARTS: lambda cell, part: cell.startswith(part),
    Op.ENDS: lambda cell, part: cell.endswith(part),
    Op.REGEX: lambda cell, pattern: re.fullmatch(pattern, cell) is not None,
}


def within(time: TimeRange, cell: Cell) -> bool:
    """Check whether the cell of a time column, RFC 3339, lies in a range; one without a value lies in none.

    Raises:
        ValueError: The cell is not an instant.

    >>> from dragoman_api.filters import TimeRange
    >>> within(TimeRange(column="at", since="2026-11-23T12:00:00Z"), "2026-11-23T12:00:00.5Z")
    True
    """
    if cell is None:
        return False
    at = instant(cell)
    after = time.since is None or instant(time.since) <= at
    return after and (time.until is None or at < instant(time.until))


def holds(row: Filter, cell: Cell) -> bool | None:
    """Check whether a cell satisfies a filter row.

    Args:
        row: The filter row; its value has the column's type.
        cell: The cell of the row's column.

    Returns:
        None if it depends on the database: arrays, order of texts, letter case that the row leaves open, nulls
        under a negated operator.

    >>> from dragoman_api.filters import Filter
    >>> holds(Filter("price", ">=", 10), 12.5)
    True
    """
    if cell is MISSING:
        cell = None
    if row.op in (Op.NULL, Op.NOT_NULL):
        return (cell is None) is (row.op is Op.NULL)
    if isinstance(cell, Json):
        return None
    if row.op in (Op.EMPTY, Op.NOT_EMPTY):
        return (cell == "") is (row.op is Op.EMPTY) if isinstance(cell, str) else None
    if cell is None:
        return None if row.op in NEGATED else False
    if (positive := NEGATED.get(row.op)) is not None:
        verdict = _positive(positive, cell, row)
        return None if verdict is None else not verdict
    return _positive(row.op, cell, row)


def _positive(op: Op, cell: object, row: Filter) -> bool | None:
    if op is Op.BETWEEN:
        if not isinstance(row.value, list) or len(row.value) != 2:
            return None
        low, high = (
            _text_or_value(bound, cell, value, row) for bound, value in zip((Op.GE, Op.LE), row.value, strict=True)
        )
        return None if low is None or high is None else low and high
    if op is Op.IN:
        values = row.value if isinstance(row.value, list) else [row.value]
        answers = [_text_or_value(Op.EQ, cell, value, row) for value in values]
        return True if True in answers else None if None in answers else False
    return _text_or_value(op, cell, row.value, row)


def _text_or_value(op: Op, cell: object, value: object, row: Filter) -> bool | None:
    if isinstance(cell, bytes):
        return _bytes(op, cell, as_bytes(value))
    if not isinstance(cell, str) or not isinstance(value, str):
        return _compare(op, cell, value)
    test = _TEXTS.get(op) or ((lambda a, b: a == b) if op in _EQUALITY else None)
    if test is None:
        return None
    strict, loose = test(cell, value), _ignoring_case(op, test, cell, value)
    return strict if strict == loose or row.case else loose if row.case is False else None


def _ignoring_case(op: Op, test: Callable[[str, str], bool], cell: str, value: str) -> bool:
    if op is Op.REGEX:  # folding its letters would turn `\D` into `\d`
        return re.fullmatch(value, cell, re.IGNORECASE) is not None
    return test(cell.casefold(), value.casefold())


def _bytes(op: Op, cell: bytes, value: bytes) -> bool | None:
    if op is Op.STARTS:
        return cell.startswith(value)
    if op is Op.ENDS:
        return cell.endswith(value)
    if op is Op.CONTAINS:
        return value in cell
    return cell == value if op in _EQUALITY else _ORDERED[op](cell, value) if op in _ORDERED else None


def _compare(op: Op, cell: object, value: object) -> bool | None:
    if isinstance(cell, bool) or isinstance(value, bool):
        return cell is value if op in _EQUALITY and isinstance(cell, bool) and isinstance(value, bool) else None
    if not isinstance(cell, int | float | Decimal) or not isinstance(value, int | float | Decimal):
        return None
    if op in _EQUALITY:
        return cell == value
    return _ORDERED[op](cell, value) if op in _ORDERED else None
