"""Filter rows, compiled one by one: all that cannot run are refused together, so that a filter never widens.

What they become is used for the object of their columns only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman_api.errors import FilterNotSupportedError, QueryError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.remedies import Remedy
from dragoman_api.wording import as_typed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_api.filters import CompiledFilter, FilterRequest

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


def body_of(given: CompiledFilter | None, kind: type[T], *, object: str) -> T | None:  # noqa: A002 - the design's word
    """Return the driver's own form of a compiled filter; None for all rows.

    Args:
        given: The filter of a request.
        kind: The type of the form.
        object: The object of the request.

    Raises:
        QueryError: The filter was compiled for another object.
    """
    if given is None:
        return None
    if given.object != object:
        raise QueryError(f"the filter was compiled for '{given.object}', not for '{object}'")
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
