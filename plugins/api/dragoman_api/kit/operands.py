"""Operands of filter rows: one value or several, read as the type that a server compares, or refused with a reason.

A row's value is what a person typed on a command line or what a script passed, so a number may come as a text. Every
function raises ValueError with a reason that can follow the filter row in a message.

A period of time is its first instant, ``/`` and the instant after its last one. The host writes one where a person says
``today`` or ``last 24h``. A row compares with the whole period: equal is in it, greater is after it, less is before it.
``near`` takes a circle and ``in-box`` a rectangle, in degrees of WGS 84 and in metres.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import NamedTuple
from uuid import UUID

from dragoman_api.columns import Operator as Op
from dragoman_api.wording import quoted

_INTEGER = re.compile(r"[+-]?[0-9]{1,4300}")
_COMMA = re.compile(r"[+-]?[0-9]{1,40}([.'\u00a0\u202f ][0-9]{3}){0,12},[0-9]{1,40}")
_GROUPS = re.compile(r"[.'\u00a0\u202f ]")
_NUMBER = re.compile(r"[+-]?([0-9]{1,4300}(\.[0-9]{0,4300})?|\.[0-9]{1,4300})([eE][+-]?[0-9]{1,4})?")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,15})?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE = 40  # digits up to which a decimal without a fraction is an integer
_SHOWN = 100  # characters of a value in a reason


def listed(value: object) -> list[object]:
    """Split a list or a comma-separated text, and strip the parts of the text.

    >>> listed("a, b"), listed(["a, b"]), listed(1)
    (['a', 'b'], ['a, b'], [1])
    """
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def several(value: object, *, empty: bool = False) -> list[object]:
    """Split the operand of ``in`` and ``not-in``.

    Args:
        value: A list, or a comma-separated text.
        empty: An empty text is a value, unless it is between commas.

    Raises:
        ValueError: There is no value, or one is empty.
    """
    values = listed(value)
    if not values or (values == [""] and not empty):
        raise ValueError("the list of values is empty")
    if "" in values and not (empty and (len(values) == 1 or not isinstance(value, str))):
        raise ValueError("a value between the commas is empty")
    return values


def bounds(value: object) -> list[object]:
    """Split the operand of ``between`` into its two bounds.

    Raises:
        ValueError: There are not two.
    """
    pair = listed(value)
    if len(pair) != 2 or None in pair or (isinstance(value, str) and "" in pair):
        raise ValueError("it takes two bounds, the lower first, both included: 10,20")
    return pair


def single(value: object) -> bool | int | float | str | Decimal:
    """Check that an operand is one value.

    Raises:
        ValueError: It is not one value.
    """
    if not isinstance(value, bool | int | float | str | Decimal):
        raise ValueError("it takes one value; for rows without a value use 'null'")  # noqa: TRY004 - a reason like the others
    return value


def integer(value: object, *, signed: bool = True) -> int:
    """Read an integer of 64 bits; a float without a fraction is one.

    Args:
        value: The operand.
        signed: The server's type holds negative values.

    Raises:
        ValueError: It is not an integer, or out of range.

    >>> integer("18446744073709551615", signed=False)
    18446744073709551615
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    if isinstance(value, bool) or not _INTEGER.fullmatch(text):
        raise ValueError(f"{_shown(value)} is not an integer")
    number = int(text)
    if number < 0 and not signed:
        raise ValueError(f"{_shown(number)} is below 0")
    limit = 2 ** (64 - signed)
    if not -limit <= number < limit:
        raise ValueError(f"{_shown(number)} has more than 64 bits")
    return number


def decimal(value: object) -> int | Decimal:
    """Read a number with all its digits; up to 40 digits without a fraction are an integer.

    Raises:
        ValueError: It is not a finite number.

    >>> decimal("1.10"), decimal(3.0)
    (Decimal('1.10'), 3)
    """
    text = repr(value) if isinstance(value, float) else str(value).strip()
    if isinstance(value, bool) or not _NUMBER.fullmatch(text):
        hint = ""
        if not isinstance(value, bool) and _COMMA.fullmatch(text):  # 1.234,5 or 1'234,5
            hint = f": digits stand after a point, as in {re.sub(_GROUPS, '', text).replace(',', '.')}"
        raise ValueError(f"{_shown(value)} is not a number{hint}")
    exact = Decimal(text)
    return int(exact) if exact.adjusted() < _WHOLE and exact == exact.to_integral_value() else exact


def floating(value: object) -> float:
    """Read a finite number of 64 bits; digits beyond them are rounded, and a zero keeps its sign.

    Raises:
        ValueError: It is not a number, or too large.

    >>> floating("-0"), floating(3)
    (-0.0, 3.0)
    """
    decimal(value)
    number = _float(value) if isinstance(value, int) else float(str(value).strip())
    if not isfinite(number):
        raise ValueError(f"{_shown(value)} is not a finite number")
    return number


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def boolean(value: object, *, digits: bool = False) -> bool:
    """Read a boolean, in any letter case.

    Args:
        value: The operand.
        digits: ``1`` and ``0`` are booleans too.

    Raises:
        ValueError: It is neither true nor false.
    """
    texts = {"true": True, "false": False} | ({"1": True, "0": False} if digits else {})
    if (flag := texts.get(str(value).lower())) is None:
        raise ValueError(f"{_shown(value)} is neither true nor false: write one of the two")
    return flag


def timestamp(value: object) -> str:
    """Check a full RFC 3339 time stamp with its zone, and return it stripped.

    Raises:
        ValueError: It is not one.
    """
    text = str(value).strip()
    if _instant(text) is None:
        raise ValueError(f"{_shown(value)} is not a full RFC 3339 timestamp such as 2024-01-31T12:00:00Z")
    return text


def instant(value: object) -> Decimal:
    """Read a time stamp as seconds since 1970, with all digits of its fraction, so that two of them compare.

    Raises:
        ValueError: It is not a full RFC 3339 time stamp.

    >>> instant("1970-01-01T02:00:00.50+02:00")
    Decimal('0.50')
    """
    seconds = _instant(timestamp(value))
    assert seconds is not None
    return seconds


def _instant(text: str) -> Decimal | None:
    if (match := _TIMESTAMP.fullmatch(text)) is None:
        return None
    try:
        second = datetime.fromisoformat(match[1] + match[3])
    except ValueError:
        return None
    return Decimal(int(second.timestamp())) + Decimal(match[2] or 0)


def day(value: object) -> str:
    """Check a calendar day, ``2024-01-31``, and return it stripped.

    Raises:
        ValueError: It is not one.
    """
    text = str(value).strip()
    try:
        if _DAY.fullmatch(text):
            datetime.fromisoformat(text)
            return text
    except ValueError:
        pass
    raise ValueError(f"{_shown(value)} is not a day such as 2024-01-31")


def uuid(value: object) -> str:
    """Return a uuid in lower case with hyphens.

    Raises:
        ValueError: It is not a uuid.
    """
    try:
        return str(UUID(str(value).strip()))
    except ValueError:
        raise ValueError(f"{_shown(value)} is not a uuid") from None


def text(value: object) -> str:
    """Return a value as a text that can be sent; a boolean as JSON spells it.

    Raises:
        ValueError: It has lone surrogates.
    """
    spelling = str(value).lower() if isinstance(value, bool) else str(value)
    if _SURROGATE.search(spelling):
        raise ValueError("the value is not valid Unicode")
    return spelling


def _shown(value: object) -> str:
    quotation = quoted(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return quotation if len(quotation) <= _SHOWN else f"{quotation[:_SHOWN]}…"


class Period(NamedTuple):
    """A period: its first instant and the instant after its last one, both RFC 3339."""

    first: str
    after: str


def period(value: object) -> Period | None:
    """Read a period; None if the value is anything else, such as one instant.

    Raises:
        ValueError: It ends before it begins.

    >>> period("2026-11-23T00:00:00Z/2026-11-24T00:00:00Z")
    Period(first='2026-11-23T00:00:00Z', after='2026-11-24T00:00:00Z')
    """
    if not isinstance(value, str) or "/" not in value:
        return None
    try:
        first, after = map(timestamp, value.split("/"))
    except ValueError:
        return None
    if instant(first) >= instant(after):
        raise ValueError(f"{value} is no period: it ends before it begins")
    return Period(first, after)


def conditions(op: Op, value: object) -> list[tuple[Op, object]]:
    """Return the comparisons with single instants that together mean one with a period, or with two bounds.

    Args:
        op: ``=``, ``between`` or a comparison.
        value: A period, an instant, or for ``between`` a pair of them.

    Returns:
        Comparisons of which all must hold for one value; the row's own if there is nothing to split.

    Raises:
        ValueError: A period ends before it begins, or there are not two bounds.

    >>> conditions(Op.GT, "2026-11-23T00:00:00Z/2026-11-24T00:00:00Z")
    [(<Operator.GE: '>='>, '2026-11-24T00:00:00Z')]
    """
    if op is Op.BETWEEN:
        low, high = bounds(value)
        return [*conditions(Op.GE, low), *conditions(Op.LE, high)]
    if (span := period(value)) is None:
        return [(op, value)]
    begins, ends = (Op.GE, span.first), (Op.LT, span.after)
    parts = {
        Op.EQ: (begins, ends), Op.GE: (begins,), Op.LE: (ends,), Op.GT: ((Op.GE, span.after),),
        Op.LT: ((Op.LT, span.first),),
    }  # fmt: skip
    return [*parts[op]]


_DISTANCE = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?(m|km|mi|nmi|ft)")
_METRES = {"m": 1.0, "km": 1_000.0, "mi": 1_609.344, "nmi": 1_852.0, "ft": 0.3048}
_MOST = 20_100_000.0  # further than any place from any other


class Circle(NamedTuple):
    """The places around a centre; its border belongs to it."""

    latitude: float
    longitude: float
    metres: float


class Box(NamedTuple):
    """The places between two parallels and two meridians; its border belongs to it. West may be east of east."""

    south: float
    west: float
    north: float
    east: float


def circle(value: object) -> Circle:
    """Read the operand of ``near``: latitude, longitude, distance with its unit.

    Args:
        value: ``52.52,13.405,5km``, or a list of the three; the units are m, km, mi, nmi and ft.

    Raises:
        ValueError: It is no circle.

    >>> circle("52.52, 13.405, 5km")
    Circle(latitude=52.52, longitude=13.405, metres=5000.0)
    """
    parts = listed(value)
    if len(parts) != 3:
        raise ValueError("it takes a latitude, a longitude and a distance: 52.52,13.405,5km")
    match = _DISTANCE.fullmatch(str(parts[2]).strip())
    if match is None:
        raise ValueError(f"{str(parts[2])[:100]!r} is not a distance such as 500m, 5km or 3mi")
    metres = float(match[1]) * _METRES[match[2]]
    if not 0 < metres <= _MOST:
        raise ValueError("a distance is more than 0, and at most half the way around the Earth")
    return Circle(_degrees(parts[0], 90, "latitude"), _degrees(parts[1], 180, "longitude"), metres)


def box(value: object) -> Box:
    """Read the operand of ``in-box``: the south-western corner and the north-eastern one, each by latitude, longitude.

    Args:
        value: ``52.3,13.1,52.7,13.8``, or a list of the four. A box across longitude 180 has its west east of its east.

    Raises:
        ValueError: It is no box.

    >>> box("52.3,13.1,52.7,13.8")
    Box(south=52.3, west=13.1, north=52.7, east=13.8)
    """
    parts = listed(value)
    if len(parts) != 4:
        raise ValueError("it takes two corners as south,west,north,east: 52.3,13.1,52.7,13.8")
    south, north = (_degrees(parts[at], 90, "latitude") for at in (0, 2))
    west, east = (_degrees(parts[at], 180, "longitude") for at in (1, 3))
    if south > north:
        raise ValueError(f"its south, {south}, is north of its north, {north}; write south,west,north,east")
    if south == north or west == east or (west, east) == (180, -180):
        raise ValueError("a box has a height and a width; for one point use near with a small distance")
    return Box(south, west, north, east)


def _degrees(value: object, limit: int, axis: str) -> float:
    degrees = floating(value)
    if not isfinite(degrees) or abs(degrees) > limit:
        raise ValueError(f"{degrees} is no {axis}: it is between -{limit} and {limit}")
    return degrees
