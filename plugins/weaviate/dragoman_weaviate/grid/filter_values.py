"""Values of filter rows: checked against the column and typed for the server, or refused with a reason (W12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.kit import operands
from dragoman_weaviate.columns.field_types import Family

if TYPE_CHECKING:
    from dragoman_weaviate.columns.field_types import Field

Scalar = bool | int | float | str
EXACT = 2**53
"""Integers up to this one are stored and compared exactly; larger ones become 64-bit floats."""

VALUES = {
    Family.ID: "valueText",
    Family.TEXT: "valueText",
    Family.UUID: "valueText",
    Family.INT: "valueInt",
    Family.NUMBER: "valueNumber",
    Family.BOOLEAN: "valueBoolean",
    Family.DATE: "valueDate",
}
"""Names of values in a filter; an array uses its elements' name."""


def typed(field: Field, value: object) -> Scalar:
    """Convert one value to what the server compares with the column, or with one element of it.

    Raises:
        ValueError: The value does not fit the column; the message says why.
    """
    value = operands.single(value)
    match field.family:
        case Family.INT:
            return operands.integer(value)
        case Family.NUMBER:
            return operands.floating(value)
        case Family.BOOLEAN:
            return operands.boolean(value, digits=True)
        case Family.DATE:
            return operands.timestamp(value)
        case Family.ID | Family.UUID:  # the server compares bytes, and upper case matches nothing
            return operands.uuid(value)
    return operands.text(value)
