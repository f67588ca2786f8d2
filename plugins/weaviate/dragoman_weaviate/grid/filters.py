"""Turns filter rows into a filter: each runs as asked, or is refused with a reason (W38)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api import CompiledFilter, Explanation, Filter, FilterRequest, RawQuery
from dragoman_api.json_text import encode
from dragoman_api.kit.filter_rows import body_of
from dragoman_api.kit.page_columns import UNKNOWN
from dragoman_api.kit.residual import ResidualFilter, split_rows
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_weaviate.graphql import Where, literal

from .clauses import clause
from .exactness import Judgement
from .residual import kind_of

if TYPE_CHECKING:
    from dragoman_weaviate.columns.grid_columns import View

    from .exactness import Sample

_NO_RAW = "Weaviate has no query text for a grid; write a GraphQL query in the console"
_SHOWN = 300  # characters of a clause in an explanation


class FilterBody(msgspec.Struct, frozen=True):
    """The driver's own form of a compiled filter.

    Attributes:
        where: The clause; None if nothing is compiled.
        residual: The filter rows that are evaluated here.
    """

    where: Where | None = None
    residual: ResidualFilter | None = None


def compile_filter(
    request: FilterRequest, view: View, *, sample: Sample | None = None, undecided: list[str] | None = None
) -> CompiledFilter:
    """Translate filter rows, or refuse those that cannot run.

    Args:
        request: At least one filter row.
        view: The collection.
        sample: What a look at stored rows saw, if there was one.
        undecided: Receives the columns of which a look would tell more.

    Raises:
        FilterNotSupportedError: One or several filter rows cannot run, not even here; details name the first.
    """
    remedy = Remedy(RemedyKind.DESCRIBE_OBJECT, {"object": request.object})

    def compile_row(number: int, row: Filter | RawQuery) -> tuple[Where, Explanation]:
        compiled, explanation, open_to_look = _row(number, row, view, sample)
        if undecided is not None and isinstance(row, Filter) and open_to_look:
            undecided.append(row.column)
        return compiled, explanation

    rows, residual = split_rows(request, compile_row, hint=lambda _: remedy, kind=lambda row: kind_of(row, view))
    clauses = [clause for clause, _ in rows]
    where = {"operator": "And" if request.match == "all" else "Or", "operands": clauses} if clauses else None
    filter_body = FilterBody(clauses[0] if len(clauses) == 1 else where, residual)
    explained = [*(explained for _, explained in rows), *(residual.explained() if residual else ())]
    explained.sort(key=lambda explanation: explanation.row)
    return CompiledFilter(object=request.object, body=encode(filter_body), rows=explained, revision=view.revision)


def body(name: str, compiled: CompiledFilter | None) -> FilterBody:
    """Return the driver's own form of a compiled filter. Raises QueryError if it was compiled for another object."""
    return body_of(compiled, FilterBody, object=name) or FilterBody()


def where_of(name: str, compiled: CompiledFilter | None, *, operation: str) -> Where | None:
    """Return the clause of a compiled filter for an operation on all rows.

    Args:
        name: The object.
        compiled: The filter.
        operation: The operation, for a refusal: ``a count``.

    Raises:
        QueryError: It was compiled for another object.
        FilterNotSupportedError: A part of it is to be evaluated here.
    """
    filter_body = body(name, compiled)
    if filter_body.residual is not None:
        raise filter_body.residual.refusal(operation)
    return filter_body.where


def _row(number: int, row: Filter | RawQuery, view: View, sample: Sample | None) -> tuple[Where, Explanation, bool]:
    if isinstance(row, RawQuery):
        raise ValueError(_NO_RAW)  # noqa: TRY004 - a reason
    if (field := view.fields.get(row.column)) is None:
        raise ValueError(UNKNOWN)
    operators, reasons = field.support(view.features)
    if row.op not in operators:
        raise ValueError(reasons.get("filter") or reasons[row.op])
    if row.group is not None:
        raise ValueError("it is not a leaf of a nested array, so the row cannot belong to an element group")
    judgement = Judgement()
    compiled = clause(row, field, view.features, judgement, sample=sample)
    text = literal(compiled)
    explanation = Explanation(
        row=number,
        clause=text if len(text) <= _SHOWN else text[:_SHOWN] + "…",
        exact=not (judgement.approximations or judgement.unlikely),
        approximations=judgement.approximations,
        unlikely=judgement.unlikely,
    )
    return compiled, explanation, judgement.undecided
