"""Values of filter rows: checked against the column and typed for the server, or refused with a reason (W12)."""

from __future__ import annotations

import re
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING
from uuid import UUID

from dragoman_weaviate.columns.field_types import Family

if TYPE_CHECKING:
    from dragoman_weaviate.columns.field_types import Field

Scalar = bool | int | float | str
_INTEGER = re.compile(r"[+-]?\d{1,40}")
_DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")

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


def values(value: object) -> list[object]:
    """Split a list or a comma-separated text, and strip the parts (W16)."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def typed(field: Field, value: object) -> Scalar:
    """Convert one value to what the server compares with the column, or with one element of it.

    Raises:
        ValueError: The value does not fit the column; the message says why.
    """
    if value is None or isinstance(value, (list, tuple, dict)):
        raise ValueError("it takes one value; for rows without a value use 'null'")
    match field.family:
        case Family.INT:
            return integer(value)
        case Family.NUMBER:
            return number(value)
        case Family.BOOLEAN:
            return boolean(value)
        case Family.DATE:
            return date(value)
        case Family.ID | Family.UUID:
            return uuid(value)
    return text(value)


def integer(value: object) -> int:
    """Read an integer of 64 bits."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not _INTEGER.fullmatch(str(value).strip()):
        raise ValueError(f"{value!r} is not an integer")
    found = int(str(value))
    if not -(2**63) <= found < 2**63:
        raise ValueError(f"{value} has more than 64 bits")
    return found


def number(value: object) -> float:
    """Read a finite number."""
    try:
        found = float("nan") if isinstance(value, bool) else float(str(value))
    except ValueError:
        found = float("nan")
    if not isfinite(found):
        raise ValueError(f"{value!r} is not a finite number")
    return found


def boolean(value: object) -> bool:
    """Read a boolean."""
    if (found := {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower())) is None:
        raise ValueError(f"{value!r} is neither true nor false")
    return found


def date(value: object) -> str:
    """Check a full RFC 3339 time stamp, with its zone."""
    match = _DATE.fullmatch(str(value).strip())
    try:
        if match is not None:
            datetime.fromisoformat(match[1] + match[2])
            return match[0]
    except ValueError:
        pass
    raise ValueError(f"{value!r} is not a full RFC 3339 timestamp such as 2024-01-31T12:00:00Z")


def uuid(value: object) -> str:
    """Return a uuid as it is stored: the server compares bytes, and upper case matches nothing."""
    try:
        return str(UUID(str(value).strip()))
    except ValueError:
        raise ValueError(f"{value!r} is not a uuid") from None


def text(value: object) -> str:
    """Return a value as a text that can be sent."""
    found = str(value).lower() if isinstance(value, bool) else str(value)
    if any("\ud800" <= character <= "\udfff" for character in found):
        raise ValueError("the value is not valid Unicode")
    return found
