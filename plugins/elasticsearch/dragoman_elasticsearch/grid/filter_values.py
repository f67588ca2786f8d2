"""Values of filter rows: checked against the column and typed for the server, or refused with a reason."""

from __future__ import annotations

import ipaddress
import re
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING

from dragoman_api.kit import operands
from dragoman_api.kit.operands import Period, period
from dragoman_elasticsearch.columns import dates
from dragoman_elasticsearch.columns.field_types import BOUNDS, DATE_FORMAT, Family

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_elasticsearch.columns.field_types import Field

Scalar = bool | int | float | str | Decimal
MAX_TERMS = 65_536
"""Values of one `terms` query at most: the default of `index.max_terms_count`."""

_MONTH = re.compile(r"\d{4}(-\d{2})?")
_YEAR = re.compile(r"\w*optional_time\w*|(strict_)?year(_month)?|(yyyy|uuuu)(-MM)?")
_NO_YEAR = re.compile(r"epoch_\w+|[YxHhKkmsSdDMLEewWF]{4}")  # formats that take four digits for something else
_NO_MONTH = re.compile(r"(?!(yyyy|uuuu)-MM)[a-zA-Z]{4}-[a-zA-Z]{2}")
_LAST_NANOS = Decimal("9223372036.854775807")  # seconds
_DOUBLE = Decimal("1.7976931348623157e308")
_FLOATS = {"half_float": Decimal(65504), "float": Decimal("3.4028235e38")}  # as Java prints the greatest


def typed(field: Field, value: object, *, pattern: bool = False) -> Scalar:
    """Convert one value to what the server compares with the column.

    Args:
        field: The column.
        value: The value as entered.
        pattern: The value is a part of a string.

    Raises:
        ValueError: The value does not fit the column; the message says why.
    """
    value = operands.single(value)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is not a value of a document")
    if field.family is Family.NUMBER:
        return _number(value, field.types)
    if field.family is Family.BOOLEAN:
        return operands.boolean(value)
    text = operands.text(value)
    if not text and (pattern or (field.family not in (Family.KEYWORD, Family.KEYED) and not field.keyword)):
        raise ValueError("an empty value matches nothing here")
    if field.family is Family.DATE and not pattern:
        _date(text, field)
    return _address(text) if field.family is Family.IP else text


def _date(text: str, field: Field) -> None:
    """Refuse a date that is no ISO date and that no format of the column reads.

    Date maths (`now-1d`, `2024-01-01||/M`) is the server's.
    """
    if (span := period(text)) is not None:
        _check_nanos(span, field)
        return
    anchor = text.partition("||")[0]
    if field.formats_known and not anchor.startswith("now") and not dates.is_iso(anchor):
        dates.check(anchor, field.formats)


def _check_nanos(span: Period, field: Field) -> None:
    if "date_nanos" not in field.types:
        return
    for bound in span:
        if not 0 <= operands.instant(bound) <= _LAST_NANOS:
            raise ValueError(f"{bound} is out of range: a date_nanos holds 1970 to 2262")


def _number(value: object, types: Iterable[str]) -> int | Decimal:
    exact = operands.decimal(value)
    for kind in types:
        greatest = _FLOATS.get(kind, _DOUBLE)
        low, high = BOUNDS.get(kind) or (-greatest, greatest)
        if not low <= exact <= high:
            raise ValueError(f"{value} is out of range for a field of type {kind}")
    return exact


def _address(text: str) -> str:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address") from None
    return text


def period_in(field: Field, value: Scalar) -> Period | None:
    """Return the period that a date names, with bounds in `iso_format`; None for one instant, or a day in any format.

    `term` would take a month or a year for its first day, knows no periods, and rounds date maths to milliseconds.
    """
    if field.family is not Family.DATE:
        return None
    text = str(value)
    if _is_named_month(field, value):
        return _month(text) if own_format(field, value) is None else None
    if own_format(field, text.partition("||")[0]) is not None:
        return None
    return dates.period_of(text)


def _is_named_month(field: Field, value: Scalar) -> bool:
    return field.family is Family.DATE and _MONTH.fullmatch(str(value)) is not None


def is_foreign(field: Field, value: Scalar) -> bool:
    """Return whether a date is written in ISO, though no format of the column is: the request must name the format."""
    if period_in(field, value) is not None:
        return False
    anchor = str(value).partition("||")[0]
    if field.family is not Family.DATE or not field.formats_known or _is_named_month(field, anchor):
        return False
    return dates.is_iso(anchor) and not dates.may_read(anchor, field.formats)


def own_format(field: Field, value: Scalar) -> str | None:
    """Return the format in which a month or a year means something else in every index: seconds, an hour, a week."""
    if not _is_named_month(field, value):
        return None
    other = _NO_MONTH if "-" in str(value) else _NO_YEAR
    firsts = [
        next((name for name in formats.split("||") if _YEAR.fullmatch(name) or other.fullmatch(name)), "")
        for formats in field.formats
    ]
    return firsts[0] if all(map(other.fullmatch, firsts)) else None


def _month(text: str) -> Period:
    unit = "M" if "-" in text else "y"
    return Period(f"{text}||/{unit}", f"{text}||+1{unit}/{unit}")


def iso_format(field: Field) -> str:
    """Return the format of a range with an ISO date in it; its other bound may be in the field's own format."""
    names = "||".join([DATE_FORMAT.split("||", maxsplit=1)[0], *field.formats]).split("||")
    return "||".join(dict.fromkeys(names))


def escape(text: str) -> str:
    r"""Escape the special characters of a wildcard pattern.

    >>> print(escape("50%*?"))
    50%\*\?
    """
    return re.sub(r"([\\*?])", r"\\\1", text)
