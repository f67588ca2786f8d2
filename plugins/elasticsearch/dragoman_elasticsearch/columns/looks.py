"""What a look at some stored rows saw, and which values make an index differ from its documents."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

PRECISION = {
    "half_float": "numbers are compared with 11 bits, about 3 digits",
    "float": "numbers are compared with 24 bits, about 7 digits",
    "double": "numbers are compared with 53 bits, about 15 digits",
}
"""How the server compares the numbers of a type that are not whole."""

_SHORT = {PRECISION["half_float"]: (3, Decimal("6.2e-5")), PRECISION["float"]: (6, Decimal("1.2e-38"))}
"""The digits that every number of a type keeps, and the smallest number that keeps them."""


class StoredValues(msgspec.Struct, frozen=True):
    """The values of one column in the rows of a look, and how many rows have one."""

    values: tuple[Any, ...]
    rows: int


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What a look saw.

    Attributes:
        columns: The values of the columns that it read, by name; none of a column of which it read no value.
        ignored: Of each field of which the server left out a value, the id of a row.
        complete: `ignored` holds every such field, unless more than a look's rows crowd it out.
    """

    columns: dict[str, StoredValues]
    ignored: dict[str, str]
    complete: bool


class Look(msgspec.Struct):
    """The sample that explanations are based on.

    Attributes:
        sample: None if there was no look.
        needs_sample: Receives whether a sample would have told more.
    """

    sample: Sample | None = None
    needs_sample: bool = False


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, (bool, dict)):
        return None
    text = bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value)
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def has_decimals(value: object, _details: tuple[Any, ...]) -> bool:
    """Return whether a number loses decimals in an integer field."""
    return (number := _decimal(value)) is not None and number != number.to_integral_value()


def is_long(value: object, details: tuple[Any, ...]) -> bool:
    """Return whether a number has more digits than its type keeps; a shorter one differs from all other such."""
    number = _decimal(value)
    if not number:
        return False
    digits, least = max((_SHORT.get(detail, (0, Decimal(0))) for detail in details), key=lambda precision: precision[1])
    return abs(number) < least or len(number.normalize().as_tuple().digits) > digits


def is_empty(value: object, _details: tuple[Any, ...]) -> bool:
    """Return whether a value is the empty text."""
    return value == ""
