"""Turns filter rows into a filter: each runs as asked, on the server or here, or is refused with a reason (W38).

A sample of stored objects shows whether they hold values by which the server compares something else.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import CompiledFilter, Explanation, Filter, FilterRequest, RawQuery
from dragoman_api import Operator as Op
from dragoman_api.columns import EMPTINESS, NULLS, PATTERNS
from dragoman_api.json_text import encode, exact_number
from dragoman_api.kit import operands
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.kit.filter_rows import NEGATED, body_of
from dragoman_api.kit.operands import conditions, period
from dragoman_api.kit.page_columns import UNKNOWN
from dragoman_api.kit.residual import ResidualFilter, split_rows
from dragoman_api.kit.row_evaluation import ValueKind
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_weaviate.columns import field_types
from dragoman_weaviate.columns.field_types import COMPARISONS, EQUALITY, LISTS, ORDERED, Family, Field
from dragoman_weaviate.graphql import Where, literal
from dragoman_weaviate.stored_objects import read_list

from .exactness import Comparison, Judgement, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_weaviate.columns.field_types import Scalar
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.protocol import Features
    from dragoman_weaviate.stored_objects import StoredObject

    from .exactness import Sample

_COMPARE = {
    Op.EQ: "Equal",
    Op.NE: "NotEqual",
    Op.GT: "GreaterThan",
    Op.GE: "GreaterThanEqual",
    Op.LT: "LessThan",
    Op.LE: "LessThanEqual",
}
_LIKE = {Op.CONTAINS: "*{}*", Op.NOT_CONTAINS: "*{}*", Op.STARTS: "{}*", Op.ENDS: "*{}"}


def clause(
    row: Filter, field: Field, features: Features, judgement: Judgement, *, sample: Sample | None = None
) -> Where:
    """Translate one row.

    Args:
        row: A row whose operator the column takes.
        field: The column.
        features: What the server's version takes.
        judgement: Receives a sentence for whatever is not exact.
        sample: What a look at stored rows saw, if there was one.

    Raises:
        ValueError: The value does not fit, or the server would compare something else; the message says why.
    """
    if row.op is Op.NEAR:
        at = operands.circle(row.value)
        judgement.add(judge([Comparison(op=row.op, field=field, features=features)]))
        centre = {"latitude": at.latitude, "longitude": at.longitude}
        within = {"geoCoordinates": centre, "distance": {"max": at.metres}}
        return {"path": field.path, "operator": "WithinGeoRange", "valueGeoRange": within}
    written_values = _written_values(row)
    if field.family is Family.DATE and any(map(period, written_values)):
        return _periods(row, written_values, field, features, judgement, sample)
    values = [field_types.typed(field, written) for written in written_values]
    build_comparison = partial(Comparison, op=row.op, field=field, features=features, case=row.case, sample=sample)
    pairs = zip(values, written_values, strict=True)
    judgement.add(
        judge([build_comparison(value=value, written=written) for value, written in pairs] or [build_comparison()])
    )
    if row.op in NULLS or row.op in EMPTINESS:
        return _nothing(row.op, field, features)
    if row.op in PATTERNS:
        like: Where = {"path": field.path, "operator": "Like", "valueText": _LIKE[row.op].format(values[0])}
        return _not(like) if row.op is Op.NOT_CONTAINS else like
    if row.op is Op.BETWEEN:
        bounds = zip((Op.GE, Op.LE), values, strict=True)
        return {"operator": "And", "operands": [compare(op, field, value) for op, value in bounds]}
    if row.op in LISTS:
        return _list(row.op, field, features, list(dict.fromkeys(values)))
    if row.op is Op.NE and field.range_only:  # the index for ranges omits rows without a value
        return _not(compare(Op.EQ, field, values[0]))
    return compare(row.op, field, values[0])


def _periods(
    row: Filter,
    written_values: list[object],
    field: Field,
    features: Features,
    judgement: Judgement,
    sample: Sample | None,
) -> Where:
    """Translate a row with a period of time in place of an instant."""
    positive = NEGATED.get(row.op, row.op)
    alternatives = (
        [conditions(row.op, written_values)]
        if row.op is Op.BETWEEN
        else [conditions(Op.EQ if positive is Op.IN else positive, written) for written in written_values]
    )
    pairs = [(op, field_types.typed(field, value), value) for alternative in alternatives for op, value in alternative]
    if field.array and any(len(alternative) > 1 for alternative in alternatives):
        raise ValueError("the two bounds of a period may hold for different elements of an array")
    if positive is not row.op and not features.negation:
        raise ValueError("below 1.33 the server has no Not, and a row outside a period needs it")
    build_comparison = partial(Comparison, field=field, features=features, case=row.case, sample=sample)
    period_judgement = judge([build_comparison(op=op, value=value, written=written) for op, value, written in pairs])
    if positive is not row.op:
        judgement.add(judge([build_comparison(op=row.op, value=pairs[0][1], written=pairs[0][2])]))
    judgement.add(period_judgement)
    joined = _joined(
        "Or",
        [_joined("And", [_compared(field, *condition) for condition in alternative]) for alternative in alternatives],
    )
    return joined if positive is row.op else _not(joined)


def _compared(field: Field, op: Op, value: object) -> Where:
    return compare(op, field, field_types.typed(field, value))


def _written_values(row: Filter) -> list[object]:
    """Return the values of a row as they were written."""
    if row.op in NULLS or row.op in EMPTINESS:
        return []
    if row.op is Op.BETWEEN:
        return operands.bounds(row.value)
    return operands.several(row.value) if row.op in LISTS else [row.value]


def compare(op: Op, field: Field, value: Scalar) -> Where:
    """Return the clause of one comparison, or of an equality."""
    return {"path": field.path, "operator": _COMPARE[op], field_types.VALUES[field.family]: value}


def _not(where: Where) -> Where:
    return {"operator": "Not", "operands": [where]}


def _nothing(op: Op, field: Field, features: Features) -> Where:
    """Ask for null or empty.

    The server notes that a property is absent when it writes an object, so it knows nothing of the objects that are
    older than the property. They are among those that are not known to have a value.
    """
    if op in NULLS:
        if op is Op.NULL and features.negation:
            return _not({"path": field.path, "operator": "IsNull", "valueBoolean": False})
        return {"path": field.path, "operator": "IsNull", "valueBoolean": op is Op.NULL}
    length = {"path": [f"len({field.prop})"]}
    filled: Where = {**length, "operator": "GreaterThan", "valueInt": 0}
    if op is Op.NOT_EMPTY:
        return filled
    if features.negation and field.index.index_null_state:
        return _not(filled)
    return {**length, "operator": "Equal", "valueInt": 0}


def _list(op: Op, field: Field, features: Features, values: list[Scalar]) -> Where:
    each_by_itself = field.family is Family.ID
    if op is Op.IN:
        if features.contains and not each_by_itself:
            return {"path": field.path, "operator": "ContainsAny", field_types.VALUES[field.family]: values}
        return _joined("Or", [compare(Op.EQ, field, value) for value in values])
    if features.negation and not each_by_itself:
        return {"path": field.path, "operator": "ContainsNone", field_types.VALUES[field.family]: values}
    return _joined("And", [compare(Op.NE, field, value) for value in values])


def _joined(operator: str, clauses: list[Where]) -> Where:
    return clauses[0] if len(clauses) == 1 else {"operator": operator, "operands": clauses}


_KINDS = {
    Family.TEXT: ValueKind.TEXT,
    Family.INT: ValueKind.NUMBER,
    Family.NUMBER: ValueKind.NUMBER,
    Family.BOOLEAN: ValueKind.BOOLEAN,
    Family.DATE: ValueKind.TIMESTAMP,
}
_SORTED = _KINDS | {Family.ID: ValueKind.TEXT, Family.UUID: ValueKind.TEXT}


def kind_of(row: Filter, view: View) -> ValueKind | None:
    """Return how the column of a filter row compares; None if the row must not be evaluated here."""
    field = view.fields.get(row.column)
    if field is None or field.family not in _KINDS:
        return None
    text = field.family is Family.TEXT
    if row.op in PATTERNS:
        return ValueKind.TEXT if text else None
    if row.op in EQUALITY or row.op in LISTS:
        return _KINDS[field.family] if field.exact_tokens or not text else None
    ordered = row.op in COMPARISONS or row.op is Op.BETWEEN
    return _KINDS[field.family] if ordered and field.family in ORDERED else None


def sort_kind(name: str, view: View) -> ValueKind | None:
    """Return how a column is ordered; None if its values have no order."""
    field = view.fields.get(name)
    return _SORTED.get(field.family) if field is not None and not field.array else None


def stored_value(item: StoredObject, field: Field) -> Any:
    """Return the stored value of a column with numbers that compare."""
    value = item.value(field)
    return [_number(element) for element in value] if isinstance(value, list) else _number(value)


def _number(value: Any) -> Any:
    return exact_number(bytes(value).decode()) if isinstance(value, Raw) else value


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
    body = body_of(compiled, FilterBody, object=name) or FilterBody()
    if body.residual is not None:
        raise body.residual.refusal(operation)
    return body.where


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


SAMPLE_ROWS = 100
"""Objects that a look reads at most, by REST, which keeps the digits of integers."""

SAMPLE_BYTES = 4 << 20
"""Bytes of its answer at most."""

_FAMILIES = (Family.TEXT, Family.INT, Family.NUMBER, Family.DATE)


def take_sample(view: View) -> Exchange[Sample | None]:
    """Read a sample of a collection; None if there are no objects, or if they belong to tenants.

    Raises:
        DragomanError: The server refused.
    """
    if view.collection.tenancy.enabled:
        return None
    reply = yield from ask(get("/v1/objects", **{"class": view.target}, limit=SAMPLE_ROWS))
    items = read_list(reply, view, None)
    if not items:
        return None
    columns = [field for field in view.fields.values() if field.family in _FAMILIES]
    return {field.name: [values for item in items if (values := [*_values(item.value(field))])] for field in columns}


def _values(stored: Any) -> Iterator[Any]:
    for value in stored if isinstance(stored, list) else [stored]:
        if value is not None:
            yield float(bytes(value)) if isinstance(value, Raw) else value
