"""Operands of filter rows: one value or several, read as the type that a server compares, or refused with a reason.

A row's value is what a person typed on a command line or what a script passed, so a number may come as a text. Every
function raises ValueError with a reason that can follow the filter row in a message.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from math import isfinite
from uuid import UUID

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
    if len(pair) != 2 or "" in pair or None in pair:
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


def integer(value: object, *, bits: int | None = 64, signed: bool = True) -> int:
    """Read an integer; a float without a fraction is one.

    Args:
        value: The operand.
        bits: The size of the server's type; None for any size.
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
    limit = 2 ** (bits - signed) if bits else None
    if limit and not -limit <= number < limit:
        raise ValueError(f"{_shown(number)} has more than {bits} bits")
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
    """Read a finite number of 64 bits; digits beyond them are rounded.

    Raises:
        ValueError: It is not a number, or too large.
    """
    number = float(decimal(value)) if not isinstance(value, int) or isinstance(value, bool) else _float(value)
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
