"""Turns one filter row into a clause, with notes on what the server really compares."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dragoman_api import Filter
from dragoman_api import Operator as Op
from dragoman_api.columns import EMPTINESS, NULLS, PATTERNS
from dragoman_api.kit import operands, places
from dragoman_api.kit.filter_meaning import NEGATED
from dragoman_api.kit.periods import conditions, period
from dragoman_weaviate.columns.field_types import LISTS, Family, Field

from . import filter_values
from .exactness import Asked, Judgement, judge

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


def clause(row: Filter, field: Field, features: Features, told: Judgement, *, sample: Sample | None = None) -> Where:
    """Translate one row.

    Args:
        row: A row whose operator the column takes.
        field: The column.
        features: What the server's version takes.
        told: Receives a sentence for whatever is not exact.
        sample: What a look at stored rows saw, if there was one.

    Raises:
        ValueError: The value does not fit, or the server would compare something else; the message says why.
    """
    if row.op is Op.NEAR:
        at = places.circle(row.value)
        told.add(judge([Asked(op=row.op, field=field, features=features)]))
        centre = {"latitude": at.latitude, "longitude": at.longitude}
        within = {"geoCoordinates": centre, "distance": {"max": at.metres}}
        return {"path": field.path, "operator": "WithinGeoRange", "valueGeoRange": within}
    given = _given(row)
    if field.family is Family.DATE and any(map(period, given)):
        return _periods(row, given, field, features, told, sample)
    values = [filter_values.typed(field, each) for each in given]
    asked = partial(Asked, op=row.op, field=field, features=features, case=row.case, sample=sample)
    pairs = zip(values, given, strict=True)
    told.add(judge([asked(value=value, given=each) for value, each in pairs] or [asked()]))
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
    row: Filter, given: list[object], field: Field, features: Features, told: Judgement, sample: Sample | None
) -> Where:
    """Translate a row with a period of time in place of an instant."""
    positive = NEGATED.get(row.op, row.op)
    alternatives = (
        [conditions(row.op, given)]
        if row.op is Op.BETWEEN
        else [conditions(Op.EQ if positive is Op.IN else positive, each) for each in given]
    )
    pairs = [(op, filter_values.typed(field, value), value) for each in alternatives for op, value in each]
    if field.array and any(len(each) > 1 for each in alternatives):
        raise ValueError("the two bounds of a period may hold for different elements of an array")
    if positive is not row.op and not features.negation:
        raise ValueError("below 1.33 the server has no Not, and a row outside a period needs it")
    asked = partial(Asked, field=field, features=features, case=row.case, sample=sample)
    judgement = judge([asked(op=op, value=value, given=each) for op, value, each in pairs])
    if positive is not row.op:
        told.add(judge([asked(op=row.op, value=pairs[0][1], given=pairs[0][2])]))
    told.add(judgement)
    joined = _joined("Or", [_joined("And", [_compared(field, *each) for each in one]) for one in alternatives])
    return joined if positive is row.op else _not(joined)


def _compared(field: Field, op: Op, value: object) -> Where:
    return compare(op, field, filter_values.typed(field, value))


def _given(row: Filter) -> list[object]:
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


def _joined(operator: str, operands: list[Where]) -> Where:
    return operands[0] if len(operands) == 1 else {"operator": operator, "operands": operands}
