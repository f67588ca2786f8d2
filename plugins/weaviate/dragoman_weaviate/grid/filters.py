"""Turns filter rows into a filter: each runs as asked, or is refused with a reason (W38)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api import (
    CompiledFilter,
    Explanation,
    Filter,
    FilterNotSupportedError,
    FilterRequest,
    QueryError,
    RawQuery,
)
from dragoman_api.exchanges import encode
from dragoman_weaviate.graphql import Where, literal

from .clauses import clause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_weaviate.columns.view import View

_NO_RAW = "Weaviate has no query text for a grid; write a GraphQL query in the console"
_SHOWN = 300  # characters of a clause in an explanation


def compile_filter(request: FilterRequest, view: View, *, connection: str = "NAME") -> CompiledFilter:
    """Translate filter rows, or refuse those that cannot run.

    Args:
        request: At least one filter row.
        view: The collection.
        connection: The connection's name, for the command in hints.

    Raises:
        FilterNotSupportedError: One or several filter rows cannot run; details name the first.
    """
    if request.match not in ("all", "any"):
        raise FilterNotSupportedError(f"match is 'all' or 'any', not {request.match!r}; nothing was sent")
    hint = f"dragoman describe {connection} {request.object}     shows each column's operators and reasons"
    clauses: list[Where] = []
    explained: list[Explanation] = []
    refused: list[FilterNotSupportedError] = []
    for number, row in enumerate(request.rows):
        notes: list[str] = []
        if isinstance(row, RawQuery):
            refused.append(_refusal(row, _NO_RAW, hint))
            continue
        try:
            clauses.append(_clause(row, view, notes))
        except ValueError as reason:
            refused.append(_refusal(row, str(reason), hint))
            continue
        text = literal(clauses[-1])
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        explained.append(Explanation(row=number, clause=shown, exact=not notes, approximations=notes))
    if refused or not clauses:
        raise _together(refused)
    operator = "And" if request.match == "all" else "Or"
    where = clauses[0] if len(clauses) == 1 else {"operator": operator, "operands": clauses}
    return CompiledFilter(object=request.object, body=encode(where), rows=explained, revision=view.revision)


def where_of(name: str, given: CompiledFilter | None) -> Where | None:
    """Return the clause of a compiled filter.

    Raises:
        QueryError: It was compiled for another object.
    """
    if given is None:
        return None
    if given.object != name:
        raise QueryError(f"the filter was compiled for '{given.object}', not for '{name}'")
    return msgspec.json.decode(given.body, type=Where)


def _clause(row: Filter, view: View, notes: list[str]) -> Where:
    field = view.fields.get(row.column)
    if field is None:
        raise ValueError("there is no such column")
    operators, reasons = field.support(view.features)
    if row.op not in operators:
        raise ValueError(reasons.get("filter") or reasons[row.op])
    if row.group is not None:
        raise ValueError("it is not a leaf of a nested array, so the row cannot belong to an element group")
    return clause(row, field, view.features, notes)


def _refusal(row: Filter | RawQuery, reason: str, hint: str) -> FilterNotSupportedError:
    column, op = ("Raw SQL", None) if isinstance(row, RawQuery) else (row.column, row.op)
    if isinstance(row, RawQuery):
        text = "the Raw row"
    else:
        text = f"'{row.column} {row.op}{'' if row.value is None else f' {row.value}'}'"
    details = {"column": column, "operator": None if op is None else str(op), "reason": reason}
    return FilterNotSupportedError(f"{text}: {reason}; nothing was sent", hint=hint, details=details)


def _together(refused: Sequence[FilterNotSupportedError]) -> FilterNotSupportedError:
    if len(refused) < 2:
        return refused[0] if refused else FilterNotSupportedError("the filter has no rows; nothing was sent")
    text = "; ".join(each.message.removesuffix("; nothing was sent") for each in refused)
    return FilterNotSupportedError(f"{text}; nothing was sent", hint=refused[0].hint, details=refused[0].details)
