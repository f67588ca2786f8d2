"""Arrow types of exported columns: the type of the column's kind if every value fits, else a lossless one."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dragoman_api.columns import ColumnKind

from .values import items_of, text_of

if TYPE_CHECKING:
    from dragoman_api.columns import Column

_EXACT = 1 << 53
"""Up to here a float holds every integer."""

_FAR = 1 << 99
"""Stands for every longer integer; it fits no type of integers."""

_DIGITS = 400
"""A number of more characters is not compared as a Decimal."""

_FRACTION = rb"(?:\.(?P<fraction>\d{1,9}))?"
_TIME = rb"\d\d:\d\d(?::\d\d" + _FRACTION + rb")?"
_TIMESTAMP = re.compile(rb'"(\d{4}-\d\d-\d\d(?:T' + _TIME + rb'(?:Z|[+-]\d\d:?\d\d)?)?)"')
_CLOCK = re.compile(rb'"(' + _TIME + rb')"')
_DAY = re.compile(rb'"(\d{4}-\d\d-\d\d)"')
_DECIMAL = re.compile(rb'"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?)"')
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ArrowType:
    """An Arrow type and what it holds.

    Attributes:
        type: The type.
        convert: Converts one JSON text to a value of the type.
        holds: The kinds of values that fit, in the words of `ColumnFacts`.
        low: The smallest integer that fits.
        high: The largest integer that fits.
        json: The values are JSON texts.
    """

    type: pa.DataType
    convert: Callable[[bytes], Any]
    holds: frozenset[str]
    low: int = 0
    high: int = 0
    json: bool = False


def _type(type_: pa.DataType, convert: Callable[[bytes], Any], holds: str, low: int = 0, high: int = 0) -> ArrowType:
    return ArrowType(type_, convert, frozenset(holds.split()), low, high)


class ColumnFacts:
    """Facts about the values of one column, collected to choose its type."""

    def __init__(self, column: Column) -> None:
        """Begin without a value."""
        self._column = column
        self._seen: set[str] = set()
        self._low = self._high = 0
        self._whole = self._scale = 0  # digits before and after the decimal point
        self._classify = _CLASSIFY.get(column.kind)
        self.array = column.repeated

    def learn(self, value: bytes, *, inside: bool = False) -> None:
        """Record one value, given as JSON text."""
        first = value[:1]
        if first == b'"':
            self._text(value)
        elif first in b"tf":
            self._seen.add("bool")
        elif first == b"[" and not inside:
            self.array = True
            for item in items_of(value):
                self.learn(item, inside=True)
        elif first in b"[{":
            self._seen.add("json")
        elif first != b"n":
            self._number(value)

    def _text(self, value: bytes) -> None:
        if self._column.kind is ColumnKind.DECIMAL and _DECIMAL.fullmatch(value):
            self._measure(value[1:-1].decode())
            self._seen.add("decimal")
        else:
            self._seen.add((self._classify and self._classify(value)) or "text")

    def _number(self, value: bytes) -> None:
        if self._column.kind is ColumnKind.DECIMAL:
            self._measure(value.decode())
        if value.lstrip(b"-").isdigit():
            self._seen.add("integer")
            number = int(value) if len(value) < 40 else _FAR
            self._low, self._high = min(self._low, number), max(self._high, number)
        else:
            self._seen.add("float" if _is_exact(value.decode()) else "digits")

    def _measure(self, text: str) -> None:
        """Record how many digits a decimal has on either side of its point."""
        if len(text) > _DIGITS:
            self._whole = _DIGITS
            return
        try:
            _, digits, exponent = Decimal(text).as_tuple()
        except InvalidOperation:  # an exponent beyond Decimal's range
            exponent, digits = _DIGITS, ()
        assert isinstance(exponent, int)
        self._whole = max(self._whole, len(digits) + exponent)
        self._scale = max(self._scale, -exponent)

    def decide(self) -> tuple[ArrowType, str]:
        """Return the column's type, and a note for the user if it is not the type of its kind."""
        mapped = self._mapped()
        if fitting := next((each for each in mapped if self._fits(each)), None):
            return fitting, ""
        other = next((each for each in _FALLBACKS if mapped and self._fits(each)), None)
        text = f"not every value is a {self._column.type}: the column is {other.type if other else 'JSON text'}"
        if other is not None:
            return other, text
        self.array = False
        return _JSON_TEXT, text if self._column.kind in _SCALARS else ""

    def _mapped(self) -> tuple[ArrowType, ...]:
        if self._column.kind is not ColumnKind.DECIMAL:
            return _MAPPED.get(self._column.kind, (_STRING,))
        digits = self._whole + self._scale
        if digits > 76:
            return (_STRING,) if self._seen <= {"text"} else ()
        make, digits = (pa.decimal128, 38) if digits <= 38 else (pa.decimal256, 76)
        bound = 10**digits
        return (_type(make(digits, self._scale), _as_decimal, "decimal integer float digits", -bound, bound),)

    def _fits(self, wanted: ArrowType) -> bool:
        return self._seen <= wanted.holds and wanted.low <= self._low <= self._high <= wanted.high


def _is_exact(text: str) -> bool:
    """Return whether a float represents the number exactly."""
    value = repr(float(text))
    try:
        return value == text or (len(text) < _DIGITS and Decimal(value) == Decimal(text))
    except InvalidOperation:  # an exponent beyond Decimal's range
        return False


# what a text is -------------------------------------------------------------------------------------------------------


def _timestamp(value: bytes) -> str:
    if not (found := _TIMESTAMP.fullmatch(value)):
        return ""
    try:
        instant = _nanoseconds(value)
    except (ValueError, OverflowError):
        return ""
    near = -(1 << 63) <= instant < 1 << 63
    return ("nanos" if near else "") if len(found["fraction"] or b"") > 6 else "instant" if near else "far"


def _day(value: bytes) -> str:
    if not _DAY.fullmatch(value):
        return ""
    try:
        _as_day(value)
    except ValueError:
        return ""
    return "day"


def _clock(value: bytes) -> str:
    if not _CLOCK.fullmatch(value):
        return ""
    try:
        _as_clock(value)
    except ValueError:
        return ""
    return "clock"


def _base64(value: bytes) -> str:
    try:
        return "base64" if base64.b64encode(_as_bytes(value)) == text_of(value).encode() else ""
    except (binascii.Error, ValueError):
        return ""


_CLASSIFY: dict[ColumnKind, Callable[[bytes], str]] = {
    ColumnKind.TIMESTAMP: _timestamp,
    ColumnKind.DATE: _day,
    ColumnKind.TIME: _clock,
    ColumnKind.BINARY: _base64,
}

# values ---------------------------------------------------------------------------------------------------------------


def _nanoseconds(value: bytes) -> int:
    """Return an ISO instant as nanoseconds since 1970; without an offset, it is UTC."""
    found = _TIMESTAMP.fullmatch(value)
    assert found
    fraction = found["fraction"] or b""
    text = found[1].replace(b"." + fraction, b"", 1) if fraction else found[1]
    time = datetime.fromisoformat(text.decode())
    since = (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + int(fraction.ljust(9, b"0"))


def _as_clock(value: bytes) -> int:
    """Return a time of day as nanoseconds since midnight."""
    return _nanoseconds(b'"1970-01-01T' + value[1:])


def _as_day(value: bytes) -> date:
    return date.fromisoformat(value[1:-1].decode())


def _as_bytes(value: bytes) -> bytes:
    return base64.b64decode(text_of(value), validate=True)


def _as_decimal(value: bytes) -> Decimal:
    return Decimal(value.strip(b'"').decode())


_TEXTS = "text instant far nanos day clock base64 decimal"
_STRING = _type(pa.string(), text_of, _TEXTS)
_JSON_TEXT = ArrowType(pa.string(), bytes.decode, frozenset(), json=True)
_INT = _type(pa.int64(), int, "integer", -(1 << 63), (1 << 63) - 1)
_UNSIGNED = _type(pa.uint64(), int, "integer", 0, (1 << 64) - 1)
_FLOAT = _type(pa.float64(), float, "integer float", -_EXACT, _EXACT)
_BOOLEAN = _type(pa.bool_(), lambda value: value == b"true", "bool")
_MICROS = _type(pa.timestamp("us", tz="UTC"), lambda value: _nanoseconds(value) // 1000, "instant far")
_NANOS = _type(pa.timestamp("ns", tz="UTC"), _nanoseconds, "instant nanos")

_FALLBACKS = (_STRING, _INT, _UNSIGNED, _FLOAT, _BOOLEAN)
_MAPPED: dict[ColumnKind, tuple[ArrowType, ...]] = {
    ColumnKind.TEXT: (_STRING,),
    ColumnKind.INTEGER: (_INT,),
    ColumnKind.UNSIGNED: (_UNSIGNED,),
    ColumnKind.FLOAT: (_FLOAT,),
    ColumnKind.BOOLEAN: (_BOOLEAN,),
    ColumnKind.TIMESTAMP: (_MICROS, _NANOS),
    ColumnKind.DATE: (_type(pa.date32(), _as_day, "day"),),
    ColumnKind.TIME: (_type(pa.time64("ns"), _as_clock, "clock"),),
    ColumnKind.BINARY: (_type(pa.binary(), _as_bytes, "base64"),),
    ColumnKind.JSON: (),
}
"""The types of each kind, the preferred one first."""

_SCALARS = {*_MAPPED, ColumnKind.DECIMAL} - {ColumnKind.JSON}
