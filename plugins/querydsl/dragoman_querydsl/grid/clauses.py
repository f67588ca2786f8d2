"""Turns one filter row into a clause: its value is typed for the field, or refused with a reason (E34)."""

from __future__ import annotations

import ipaddress
import re
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING

from dragoman_api import Filter
from dragoman_api import Operator as Op
from dragoman_api.columns import EMPTINESS, NULLS, ORDER, PATTERNS, PLACES
from dragoman_api.kit import operands
from dragoman_api.kit.operands import Period, period
from dragoman_querydsl.columns import dates, exactness
from dragoman_querydsl.columns.field_types import BOUNDS, DATE_FORMAT, Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from dragoman_querydsl.columns.exactness import Differences
    from dragoman_querydsl.columns.field_types import Look
    from dragoman_querydsl.protocol import Dialect

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
        _check_date(text, field)
    return _address(text) if field.family is Family.IP else text


def _check_date(text: str, field: Field) -> None:
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


Clause = dict[str, "Any"]

MAX_CLAUSES = 1_024
"""Clauses of one `bool` query at most, on 7.x; later versions take more."""

_LISTS = (Op.IN, Op.NOT_IN)
_RANGE = {Op.GT: "gt", Op.GE: "gte", Op.LT: "lt", Op.LE: "lte"}
_WILDCARD = {Op.CONTAINS: "*{}*", Op.NOT_CONTAINS: "*{}*", Op.STARTS: "{}*", Op.ENDS: "*{}"}


def clause(
    row: Filter, field: Field, dialect: Dialect, remarks: Differences, *, look: Look, now: str | None = None
) -> Clause:
    """Translate one row without its negation.

    Args:
        row: A row whose operator the field takes.
        field: The column.
        dialect: What the server's version takes.
        remarks: Receives a sentence for whatever is not exact.
        look: The look at stored rows, if there was one.
        now: The instant that date maths count from; None for the server's clock.

    Raises:
        ValueError: The value does not fit; the message says why.
    """
    values = _values(row, field)
    if field.family is Family.DATE:
        values = tuple(dates.anchored(str(value), now) for value in values)
    differences = exactness.differences(
        exactness.Asked(op=row.op, values=values, field=field, dialect=dialect, look=look)
    )
    remarks.unlikely += differences.unlikely
    notes = remarks.approximations
    notes += differences.approximations
    if row.op in NULLS:
        return exists(field, dialect)
    if row.op is Op.EMPTY:
        return {"term": {field.whole: ""}}
    if row.op is Op.NOT_EMPTY:
        return {"bool": {"filter": [exists(field, dialect)], "must_not": [{"term": {field.whole: ""}}]}}
    if row.op in PLACES:
        return _place(row, field)
    if row.op in PATTERNS:
        return _pattern(str(values[0]), row, field, dialect, notes)
    if row.op in ORDER:
        return _range(values, row, field, notes)
    return _equal(values, row, field, dialect, notes)


def _values(row: Filter, field: Field) -> tuple[Scalar, ...]:
    """Type the values of a row, two for `between`, any number for a list."""
    if row.op in (*NULLS, *EMPTINESS, *PLACES):
        return ()
    if row.op in PATTERNS:
        return (typed(field, row.value, pattern=True),)
    if row.op is Op.BETWEEN:
        values = operands.bounds(row.value)
    else:
        values = operands.several(row.value, empty=True) if row.op in _LISTS else [row.value]
    return tuple(typed(field, value) for value in values)


def _place(row: Filter, field: Field) -> Clause:
    """Return the clause for points in a circle or a box; an index without the field would fail the search."""
    rest: Clause = {"ignore_unmapped": True} if field.partial else {}
    if row.op is Op.NEAR:
        at = operands.circle(row.value)
        centre = {"lat": at.latitude, "lon": at.longitude}
        return {"geo_distance": {"distance": f"{at.metres}m", field.field: centre, **rest}}
    corners = operands.box(row.value)
    box = {
        "top_left": {"lat": corners.north, "lon": corners.west},
        "bottom_right": {"lat": corners.south, "lon": corners.east},
    }
    return {"geo_bounding_box": {field.field: box, **rest}}


def exists(field: Field, dialect: Dialect) -> Clause:
    """Return the clause for rows that have a value, without the nested arrays around it."""
    clause: Clause = {"exists": {"field": field.field}}  # never the sub-field: it misses strings over ignore_above
    if field.family is Family.TEXT and not dialect.counts_wordless:  # a score keeps the server from its own count
        clause = {"function_score": {"query": clause, "min_score": 0.5}}
    if not exactness.ignored(field, dialect):
        return clause
    return _any([clause, {"term": {"_ignored": field.field}}])


def _equal(values: tuple[Scalar, ...], row: Filter, field: Field, dialect: Dialect, notes: list[str]) -> Clause:
    if field.family is Family.TEXT and not field.keyword:
        return _any([{"match_phrase": {field.field: value}} for value in values])
    if field.family is Family.INDEX and any(character in str(value) for value in values for character in "*?\\"):
        raise ValueError("an index cannot have such a name, and the server would expand '*'")
    for value in values:
        _warn_format(field, notes, value)
    if row.case is False and field.family in (Family.ID, Family.VERSION):
        notes.append("letter case is compared")
    if row.case is False and (field.keyword or field.family in (Family.KEYWORD, Family.KEYED, Family.FLATTENED)):
        return _any([{"term": {field.whole: _folding(str(value), dialect, notes)}} for value in values])
    if any(period_in(field, value) or is_foreign(field, value) for value in values):
        return _any([_date(field, value) for value in values])
    if len(values) > MAX_TERMS:
        raise ValueError(f"{len(values):,} values; the server takes {MAX_TERMS:,} at most")
    if signed_zero(field) and 0 in values:
        others = [value for value in values if value != 0]
        zero: Clause = {"range": {field.field: {"gte": -0.0, "lte": 0}}}  # as a term, 0 does not find -0.0
        return _any([{"terms": {field.field: others}}, zero]) if others else zero
    if row.op in _LISTS:
        return {"terms": {field.whole: list(values)}}
    return {"term": {field.whole: values[0]}}


def signed_zero(field: Field) -> bool:
    """Return whether the server orders -0.0 before 0 in a field."""
    return not {"double", "float", "half_float"}.isdisjoint(field.types)


def _date(field: Field, value: Scalar) -> Clause:
    if is_foreign(field, value):  # `term` takes no format; it means this range
        return {"range": {field.field: {"gte": value, "lte": value, "format": iso_format(field)}}}
    if (period := period_in(field, value)) is None:
        return {"term": {field.field: value}}
    bounds = {"gte": period.first, "lt": period.after}
    return {"range": {field.field: bounds | {"format": iso_format(field)}}}


def _any(clauses: list[Clause]) -> Clause:
    if len(clauses) > MAX_CLAUSES:
        raise ValueError(f"{len(clauses):,} values; compared this way, the server takes {MAX_CLAUSES:,} at most")
    return clauses[0] if len(clauses) == 1 else {"bool": {"should": clauses, "minimum_should_match": 1}}


def _folding(text: str, dialect: Dialect, notes: list[str]) -> Clause:
    if not text:  # 7.17 and 8.7 find no empty string with `case_insensitive`
        return {"value": text}
    if not dialect.case_insensitive:
        notes.append("letter case is compared: this version of the server cannot ignore it")
        return {"value": text}
    if not text.isascii():
        notes.append("letter case is ignored for ASCII letters only")
    return {"value": text, "case_insensitive": True}


def _pattern(text: str, row: Filter, field: Field, dialect: Dialect, notes: list[str]) -> Clause:
    if field.family is Family.TEXT and not field.keyword:
        return {"match_phrase": {field.field: text}}
    if field.family is Family.INDEX:
        if any(character in text for character in "*?\\"):
            raise ValueError("an index cannot have such a name, and the server would expand it")
        return {"wildcard": {"_index": {"value": _WILDCARD[row.op].format(text if row.case else text.lower())}}}
    value = _WILDCARD[row.op].format(escape(text))
    if row.case is True:
        return {"wildcard": {field.whole: {"value": value}}}
    return {"wildcard": {field.whole: _folding(value, dialect, notes)}}


def _warn_format(field: Field, notes: list[str], value: Scalar) -> None:
    """Note that a value that looks like a month or a year is something else in this field."""
    if (format_name := own_format(field, value)) is not None:
        notes.append(f"'{value}' is read in the field's own format, {format_name}, not as a month or a year")


def _range(values: tuple[Scalar, ...], row: Filter, field: Field, notes: list[str]) -> Clause:
    bounds: dict[str, Scalar] = {}
    for op, value in zip((Op.GE, Op.LE) if row.op is Op.BETWEEN else (row.op,), values, strict=True):
        if field.family is Family.IP and "/" in str(value):
            raise ValueError("networks have no order; use '=' to find its addresses")
        _warn_format(field, notes, value)
        if value == 0 and op in (Op.GE, Op.LT) and signed_zero(field):
            bounds[_RANGE[op]] = -0.0  # the server orders -0.0 before 0
            continue
        if op is Op.LT and "unsigned_long" in field.types and value == BOUNDS["unsigned_long"][1]:
            bounds["lte"] = BOUNDS["unsigned_long"][1] - 1  # OpenSearch finds nothing below it
            continue
        if (period := period_in(field, value)) is None:
            bounds[_RANGE[op]] = value
            if is_foreign(field, value):
                bounds["format"] = iso_format(field)
            continue
        name = "gte" if op in (Op.GT, Op.GE) else "lt"  # "after 2024-01" begins where the month ends
        bounds[name] = period.after if op in (Op.GT, Op.LE) else period.first
        bounds["format"] = iso_format(field)
    return {"range": {field.whole: bounds}}
