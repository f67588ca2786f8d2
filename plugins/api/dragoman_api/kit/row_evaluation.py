"""What a filter row means for a stored value, and in which order values come, where a driver evaluates both itself.

A value is None, `MISSING`, a scalar, or a list of which one element must match. A negated operator holds wherever the
operator that it negates does not, so also for rows without a value.
"""

from __future__ import annotations

from enum import StrEnum
from math import isinf
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman_api.cells import MISSING, Json, as_bytes
from dragoman_api.columns import EMPTINESS, NULLS, ORDER, PATTERNS, VALUELESS, ColumnKind
from dragoman_api.columns import Operator as Op
from dragoman_api.filters import Filter

from . import operands
from .filter_rows import NEGATED, holds
from .operands import conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class ValueKind(StrEnum):
    """What is compared: a driver names it for a column whose stored values it can pass on."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    BINARY = "binary"


class TextOrder(StrEnum):
    """How a server orders texts: by code points, as the bytes of UTF-8 do, or by the units of UTF-16, as Java does."""

    CODE_POINTS = "code-points"
    UTF16 = "utf-16"


_EQUALITY = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN)
_OPERATORS = {  # no `regex`: a pattern from a stranger may take forever
    ValueKind.TEXT: (*_EQUALITY, *PATTERNS, *EMPTINESS, *NULLS),
    ValueKind.NUMBER: (*_EQUALITY, *ORDER, *NULLS),
    ValueKind.BOOLEAN: (*_EQUALITY, *NULLS),
    ValueKind.TIMESTAMP: (*_EQUALITY, *ORDER, *NULLS),
    ValueKind.BINARY: (*_EQUALITY, *PATTERNS, *ORDER, *NULLS),
}
_READ: dict[ValueKind, Callable[[object], Any]] = {
    ValueKind.TEXT: operands.text,
    ValueKind.NUMBER: operands.decimal,
    ValueKind.BOOLEAN: operands.boolean,
    ValueKind.TIMESTAMP: operands.instant,
}
_KINDS = {
    ColumnKind.TEXT: ValueKind.TEXT,
    ColumnKind.DATE: ValueKind.TEXT,  # ISO 8601
    ColumnKind.TIME: ValueKind.TEXT,
    ColumnKind.BOOLEAN: ValueKind.BOOLEAN,
    ColumnKind.TIMESTAMP: ValueKind.TIMESTAMP,
    ColumnKind.BINARY: ValueKind.BINARY,
    **{kind: ValueKind.NUMBER for kind in ColumnKind if kind.numeric},
}


def value_kind(kind: ColumnKind) -> ValueKind | None:
    """Return how values of a kind of column compare; None if they do not, such as objects."""
    return _KINDS.get(kind)


def operators_of(kind: ValueKind, order: TextOrder | None = None) -> tuple[Op, ...]:
    """Return the operators that are evaluated; without an order of texts, none that compares them."""
    ordered = kind is ValueKind.TEXT and order is not None
    return (*_OPERATORS[kind], *(ORDER if ordered else ()))


def not_evaluated(op: Op, kind: ValueKind) -> str:
    """Return why an operator is not evaluated on a kind of values, and what to use instead."""
    reason = f"'{op}' on values of kind {kind} is not evaluated here"
    if op is Op.REGEX:
        reason += ", since a regular expression may take forever; use 'contains', 'starts' or 'ends'"
    return reason


def row_test(row: Filter, kind: ValueKind, order: TextOrder | None = None) -> Callable[[object], bool]:
    """Return a function that checks a stored value.

    Letter case counts where the row leaves it open, but not for the operators `contains`, `starts` and `ends`.

    >>> row_test(Filter("n", ">=", "10"), ValueKind.NUMBER)(12.5)
    True
    >>> row_test(Filter("n", "!=", 10), ValueKind.NUMBER)(None)
    True

    Args:
        row: The filter row, as it was written.
        kind: How its column compares.
        order: The order of texts; None if it depends on the server.

    Raises:
        ValueError: The operator is not evaluated on that kind, or the operand does not fit; the message says why.
    """
    if row.op not in operators_of(kind, order):
        raise ValueError(not_evaluated(row.op, kind))
    op = NEGATED.get(row.op, row.op)
    negated = op is not row.op
    if op in NULLS:
        return lambda value: _has_value(value) is (op is Op.NOT_NULL)
    by_order = order if kind is ValueKind.TEXT and op in ORDER else None
    alternatives = _alternatives(row, op, kind, by_order)

    def test(value: object) -> bool:
        elements = value if isinstance(value, list) else [value]
        values = [at for element in elements if (at := comparable(element, kind)) is not None]
        if by_order is not None:
            values = [_ordered_text(at, by_order) for at in values]
        return any(all(holds(part, at) for part in parts) for parts in alternatives for at in values) is not negated

    return test


def _alternatives(row: Filter, op: Op, kind: ValueKind, order: TextOrder | None) -> list[list[Filter]]:
    """Return the comparisons of which all of one list must hold for one value, typed."""
    case = row.case if row.case is not None else op not in PATTERNS

    def part(op: Op, operand: object) -> Filter:
        value = None if op in VALUELESS else _typed(operand, kind, order)
        return Filter(row.column, op, value, case=case)

    if op is Op.BETWEEN:
        if kind is ValueKind.TIMESTAMP:  # a bound may be a period
            return [[part(*condition) for condition in conditions(op, row.value)]]
        low, high = operands.bounds(row.value)
        return [[part(Op.GE, low), part(Op.LE, high)]]
    values = operands.several(row.value, empty=kind is ValueKind.TEXT) if op is Op.IN else [row.value]
    op = Op.EQ if op is Op.IN else op
    if kind is ValueKind.TIMESTAMP:
        return [[part(*condition) for condition in conditions(op, value)] for value in values]
    return [[part(op, value)] for value in values]


def _typed(value: object, kind: ValueKind, order: TextOrder | None) -> Any:
    if kind is ValueKind.BINARY:
        return as_bytes(value)
    typed = _READ[kind](operands.single(value))
    return _ordered_text(typed, order) if order is not None else typed


def _ordered_text(text: str, order: TextOrder) -> bytes:
    """Return bytes that come in the order of texts; a lone surrogate, which no UTF-8 holds, comes at its code point."""
    return text.encode("utf-8" if order is TextOrder.CODE_POINTS else "utf-16-be", "surrogatepass")


def _has_value(value: object) -> bool:
    elements = value if isinstance(value, list) else [value]
    return any(element is not None and element is not MISSING for element in elements)


def comparable(value: object, kind: ValueKind) -> Any:
    """Return a stored value as one that compares with others of its kind.

    Returns:
        None if it is of another kind, or a list, or NaN, which has no order: it comes last, and only the negated
        operators hold for it.
    """
    if isinstance(value, bytes) or kind is ValueKind.BINARY:
        return value if isinstance(value, bytes) and kind is ValueKind.BINARY else None
    texts = kind in (ValueKind.TEXT, ValueKind.TIMESTAMP)
    if value is None or isinstance(value, Json) or isinstance(value, str) is not texts:
        return None
    if isinstance(value, bool) is not (kind is ValueKind.BOOLEAN):
        return None
    if isinstance(value, float) and isinf(value):
        return value
    try:
        return str(value) if kind is ValueKind.TEXT else _READ[kind](value)
    except ValueError:
        return None


def sort_key(value: object, kind: ValueKind, order: TextOrder) -> Any:
    """Return what orders a stored value; None, which comes last either way, if it has no order."""
    at = comparable(value, kind)
    return _ordered_text(at, order) if isinstance(at, str) else at


def ordered(rows: Iterable[T], key: Callable[[T], Any], *, descending: bool) -> list[T]:
    """Order rows by what compares; those without a key, which is None, come last either way.

    >>> ordered([2, None, 3], lambda number: number, descending=True)
    [3, 2, None]
    """
    keyed = [(key(row), row) for row in rows]
    valued = sorted((pair for pair in keyed if pair[0] is not None), key=lambda pair: pair[0], reverse=descending)
    return [row for _, row in (*valued, *(pair for pair in keyed if pair[0] is None))]
