"""Ranges of time as clauses of a query, exact to the resolution of the column.

Measured on 7.10.2, 7.17.29, 8.19.21 and 9.5.3: a `date` is cut off to whole milliseconds when it is stored, and so is a
bound; a `date_nanos` keeps nine digits, and a bound before 1970 or after 2262 fails the search.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman_api.errors import QueryError
from dragoman_api.json_text import encode
from dragoman_api.kit import operands

if TYPE_CHECKING:
    from dragoman_api import TimeRange
    from dragoman_elasticsearch.columns.field_types import Field
    from dragoman_elasticsearch.columns.grid_columns import View

FORMAT = "strict_date_optional_time_nanos"
"""The format of the bounds, whatever the column's own is."""

_FIRST, _LAST = Decimal(0), Decimal("9223372036.854775807")  # seconds that a date_nanos holds
_DIGITS = {"date": 3, "date_nanos": 9}  # of the fraction of a second
_NOTHING: dict[str, Any] = {"match_none": {}}


def within(query: Raw, time: TimeRange | None, view: View) -> Raw:
    """Narrow a query to a range of time; the scores of its rows stay.

    Raises:
        QueryError: The range is of another column than the object's time column, or a bound is finer than the column,
            no instant, or beyond what all indices of the object hold.
    """
    if time is None:
        return query
    if not view.time or time.column != view.time:
        hint = "describe the object again; or use a filter on a column"
        raise QueryError(f"'{view.target}' has no time column '{time.column}'", hint=hint)
    clause = _clause(time, view.fields[view.time])
    return Raw(encode({"bool": {"must": [query], "filter": [clause]}}).encode())


def _clause(time: TimeRange, field: Field) -> dict[str, Any]:
    bounds: dict[str, str] = {}
    for name, text in (("gte", time.since), ("lt", time.until)):
        if text is None:
            continue
        at = _instant(text, field)
        if "date_nanos" in field.types and not _FIRST <= at <= _LAST:
            if len(field.types) > 1:
                reason = f"{text} is out of range: an index behind this name holds '{field.name}' from 1970 to 2262"
                raise QueryError(reason, hint="choose the time in one index at a time")
            if (at < _FIRST) is (name == "lt"):
                return _NOTHING
            continue
        bounds[name] = text.strip()
    if not bounds:
        return {"exists": {"field": field.field}}
    return {"range": {field.field: {**bounds, "format": FORMAT}}}


def _instant(text: str, field: Field) -> Decimal:
    try:
        at = operands.instant(text)
    except ValueError as error:
        raise QueryError(f"a range of '{field.name}' has a bound that is not an instant: {error}") from error
    digits = min(_DIGITS[kind] for kind in field.types)
    if at != round(at, digits):
        reason = f"'{field.name}' holds {digits} digits of a second, so no range of it can begin or end at {text}"
        raise QueryError(reason, hint=f"write at most {digits} digits after the decimal point")
    return at
