"""Filter rows: compiled one by one, and what one means for a cell.

All rows that cannot run are refused together, so that a filter never widens. What they become is used for the object
of their columns only. The meaning for a cell is told where it does not depend on the database.
"""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman_api.cells import MISSING, Json, as_bytes
from dragoman_api.columns import Operator as Op
from dragoman_api.errors import FilterNotSupportedError, ObjectChangedError, QueryError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.remedies import Remedy
from dragoman_api.wording import as_typed

from .operands import instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.filters import CompiledFilter, FilterRequest, TimeRange

T = TypeVar("T")

_SHOWN = 200
"""Characters of a value that a message shows."""
_SENT = "; nothing was sent"


def compile_rows(
    request: FilterRequest,
    compile_row: Callable[[int, Filter | RawQuery], T],
    *,
    hint: Callable[[Filter | RawQuery], str | Remedy],
) -> list[T]:
    """Compile each filter row, or refuse the whole filter.

    Args:
        request: The filter rows.
        compile_row: Gets the number of a row, from 0, and the row. It raises ValueError for a row that cannot run; the
            message is the reason.
        hint: Returns what to do about a row that cannot run, in words or as a remedy.

    Returns:
        What the rows became, in their order.

    Raises:
        FilterNotSupportedError: One or several rows cannot run; details, hint and remedies are those of the first.

    >>> from dragoman_api.filters import FilterRequest
    >>> request = FilterRequest(object="books", rows=[Filter("title", "=", "Dune")])
    >>> compile_rows(request, lambda number, row: f"{row.column} is {row.value}", hint=lambda row: "")
    ['title is Dune']
    """
    if request.match not in ("all", "any"):
        raise FilterNotSupportedError(f"match is 'all' or 'any', not {request.match!r}{_SENT}")
    compiled: list[T] = []
    refused: list[FilterNotSupportedError] = []
    for number, row in enumerate(request.rows):
        try:
            compiled.append(compile_row(number, row))
        except ValueError as reason:
            refused.append(refusal(row, str(reason), number=number, hint=hint(row)))
    if refused or not compiled:
        raise _together(refused)
    return compiled


def body_of(
    given: CompiledFilter | None,
    kind: type[T],
    *,
    object: str,  # noqa: A002 - the design's word
    revision: str | None = None,
) -> T | None:
    """Return the driver's own form of a compiled filter; None for all rows.

    Args:
        given: The filter of a request.
        kind: The type of the form.
        object: The object of the request.
        revision: The revision of the object's columns, if the filter must be compiled for it.

    Raises:
        QueryError: The filter was compiled for another object.
        ObjectChangedError: It was compiled for another revision.
    """
    if given is None:
        return None
    if given.object != object:
        raise QueryError(f"the filter was compiled for '{given.object}', not for '{object}'")
    if revision not in (None, given.revision):
        hint = "compile the filter, and send the call again"
        raise ObjectChangedError(f"'{object}' changed since the filter was compiled", hint=hint)
    return msgspec.json.decode(given.body, type=kind)


def refusal(row: Filter | RawQuery, reason: str, *, number: int, hint: str | Remedy = "") -> FilterNotSupportedError:
    """Return the refusal of one filter row; details name the row's number, its column, its operator and the reason."""
    column, operator = ("Raw SQL", None) if isinstance(row, RawQuery) else (row.column, str(row.op))
    details: dict[str, int | str | None] = {"row": number, "column": column, "operator": operator, "reason": reason}
    text = f"{spelled(row)}: {reason}{_SENT}"
    if isinstance(hint, Remedy):
        return FilterNotSupportedError(text, remedies=[hint], details=details)
    return FilterNotSupportedError(text, hint=hint, details=details)


def spelled(row: Filter | RawQuery) -> str:
    """Return a filter row as a message shows it."""
    if isinstance(row, RawQuery):
        return "the Raw row"
    value = "" if row.value is None else as_typed(row.value)
    operand = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    return f"'{row.column} {row.op}{operand and f' {operand}'}'"


def _together(refused: Sequence[FilterNotSupportedError]) -> FilterNotSupportedError:
    if len(refused) < 2:
        return refused[0] if refused else FilterNotSupportedError(f"the filter has no rows{_SENT}")
    text = "; ".join(error.message.removesuffix(_SENT) for error in refused)
    first = refused[0]
    return FilterNotSupportedError(f"{text}{_SENT}", hint=first.hint, remedies=first.remedies, details=first.details)


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
