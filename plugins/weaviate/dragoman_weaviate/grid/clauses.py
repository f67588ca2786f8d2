"""Turns one filter row into a clause, with notes on what the server really compares."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dragoman_api import Filter
from dragoman_api import Operator as Op
from dragoman_api.columns import EMPTINESS, NULLS, PATTERNS
from dragoman_api.kit import operands
from dragoman_api.kit.filter_rows import NEGATED
from dragoman_api.kit.operands import conditions, period
from dragoman_weaviate.columns.field_types import LISTS, Family, Field

from . import filter_values
from .exactness import Comparison, Judgement, judge

if TYPE_CHECKING:
    from dragoman_weaviate.connect import Features
    from dragoman_weaviate.graphql import Where

    from .exactness import Sample
    from .filter_values import Scalar


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
    values = [filter_values.typed(field, written) for written in written_values]
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
    pairs = [
        (op, filter_values.typed(field, value), value) for alternative in alternatives for op, value in alternative
    ]
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
    return compare(op, field, filter_values.typed(field, value))


def _written_values(row: Filter) -> list[object]:
    """Return the values of a row as they were written."""
    if row.op in NULLS or row.op in EMPTINESS:
        return []
    if row.op is Op.BETWEEN:
        return operands.bounds(row.value)
    return operands.several(row.value) if row.op in LISTS else [row.value]


def compare(op: Op, field: Field, value: Scalar) -> Where:
    """Return the clause of one comparison, or of an equality."""
    return {"path": field.path, "operator": _COMPARE[op], filter_values.VALUES[field.family]: value}


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
            return {"path": field.path, "operator": "ContainsAny", filter_values.VALUES[field.family]: values}
        return _joined("Or", [compare(Op.EQ, field, value) for value in values])
    if features.negation and not each_by_itself:
        return {"path": field.path, "operator": "ContainsNone", filter_values.VALUES[field.family]: values}
    return _joined("And", [compare(Op.NE, field, value) for value in values])


def _joined(operator: str, clauses: list[Where]) -> Where:
    return clauses[0] if len(clauses) == 1 else {"operator": operator, "operands": clauses}
