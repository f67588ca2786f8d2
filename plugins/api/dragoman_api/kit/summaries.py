"""Summaries of columns: bounds of a histogram in round numbers and calendar units, and a whole summary of cells.

The latter is for a server that cannot summarize.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import count, product
from math import isfinite, isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman_api.cells import MISSING
from dragoman_api.columns import ColumnKind
from dragoman_api.summaries import Bucket, ColumnSummary, Figure, ValueCount

from .row_evaluation import comparable, value_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dragoman_api.cells import Cell, Value
    from dragoman_api.columns import Column
    from dragoman_api.summaries import SummaryRequest


def summarize_cells(request: SummaryRequest, column: Column, cells: Iterable[Cell]) -> ColumnSummary:
    """Summarize the cells of a column: one scalar, None or `MISSING` for each row that the filter selects.

    Equal counts come in the order of the cells. Instants without an offset are taken as UTC. A value of another kind
    than the column, such as a text among numbers, counts as a value; extremes and histogram leave it out and say so.

    Args:
        request: How many values and buckets.
        column: The column.
        cells: Its cells, arrays and objects as `Json`.
    """
    values: list[Any] = []
    rows = 0
    for rows, cell in enumerate(cells, 1):  # noqa: B007 - the last number is the number of rows
        if cell is not None and cell is not MISSING:
            values.append(cell)
    counts = Counter((*map(_identity, values),))
    places = [(place, value) for value in values if (place := _place(value, column.kind)) is not None]
    summary = ColumnSummary(
        column=column,
        rows=rows,
        missing=rows - len(values),
        values=[ValueCount(value, number) for (_, value), number in counts.most_common(request.values)],
        distinct=len(counts),
        minimum=min(places, key=itemgetter(0))[1] if places else None,
        maximum=max(places, key=itemgetter(0))[1] if places else None,
        buckets=_buckets(column.kind, [value for _, value in places], limit=request.buckets) if places else [],
    )
    if strays := len(values) - len(places):
        reason = f"leaves out {strays:,} values that are no finite values of the column's kind"
        return replace(summary, approximate=dict.fromkeys(_ORDERED, reason))
    return summary


_ORDERED = (Figure.MINIMUM, Figure.MAXIMUM, Figure.BUCKETS)
_TIMES = (ColumnKind.TIMESTAMP, ColumnKind.DATE)


_NAN = float("nan")


def _identity(value: Any) -> tuple[type, Any]:
    """Return what tells a value from others that Python takes for equal: true from 1, a JSON text from a text.

    Every NaN is the same value here, although none equals another.
    """
    if isinstance(value, float) and isnan(value):
        return object, _NAN
    return value.__class__ if isinstance(value, (bool, str)) else object, value


def _place(value: Any, kind: ColumnKind) -> Any:
    """Return what orders a value among those of its column; None if nothing does."""
    if kind in _TIMES:
        moment = _moment(value)
        return None if moment is None else (moment, value)  # the text for digits that no datetime has
    place = None if (compared := value_kind(kind)) is None else comparable(value, compared)
    return None if isinstance(place, float) and not isfinite(place) else place


def buckets_of(bounds: Sequence[Value], rows: Sequence[int]) -> list[Bucket]:
    """Return the buckets between bounds, from the number of rows in each.

    >>> buckets_of([0, 10, 20], [3, 4])
    [Bucket(lower=0, upper=10, rows=3), Bucket(lower=10, upper=20, rows=4)]
    """
    return [Bucket(lower, upper, n) for lower, upper, n in zip(bounds, bounds[1:], rows, strict=False)]


def _buckets(kind: ColumnKind, values: Sequence[Any], *, limit: int) -> list[Bucket]:
    if kind in _TIMES:
        values = [(moment - EPOCH) // timedelta(milliseconds=1) for value in values if (moment := _moment(value))]
        places = instant_bounds(min(values), max(values), most=limit)
        texts: list[Value] = [instant_text(place) for place in places]
        return buckets_of(texts, _spread(places, values))
    if not kind.numeric:
        return []
    whole = kind in (ColumnKind.INTEGER, ColumnKind.UNSIGNED)
    bounds = number_bounds(min(values), max(values), most=limit, whole=whole)
    return buckets_of(bounds, _spread(bounds, values))


def _spread(bounds: Sequence[Any], values: Iterable[Any]) -> list[int]:
    counts = Counter(bisect_right(bounds, value) - 1 for value in values)
    return [counts[at] for at in range(len(bounds) - 1)]


def _moment(value: object) -> datetime | None:
    """Return the instant of a text; None if it has none."""
    try:
        at = datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


if TYPE_CHECKING:
    Number = int | float | Decimal
    Spaced = tuple[Callable[[int], int], Callable[[int], int]]  # instant to number of bucket, and that to its beginning

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_MONDAY = 4 * _DAY  # 1970-01-05
_FIXED = (
    *(size * unit for unit, size in product((1, 10, 100), (1, 2, 5))),
    *(size * unit for unit, size in product((_SECOND, _MINUTE), (1, 2, 5, 10, 15, 30))),
    *(size * _HOUR for size in (1, 2, 3, 6, 12)),
    _DAY,
)
_MONTHS = (1, 3, 6, *(12 * size * unit for unit, size in product((1, 10, 100, 1_000), (1, 2, 5))))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FINER = 10  # buckets that one bucket around everything is made of


def number_bounds(low: Number, high: Number, *, most: int, whole: bool = False) -> list[Value]:
    """Return the bounds of equal buckets around numbers, in order; neighbouring buckets share one.

    Args:
        low: The smallest number.
        high: The greatest.
        most: The maximum number of buckets.
        whole: All numbers are integers, and so are the bounds.

    Returns:
        One bound more than buckets; the last is above `high`. Empty if `most` is 0.

    >>> number_bounds(3, 97, most=5, whole=True)
    [0, 20, 40, 60, 80, 100]
    >>> number_bounds(0.05, 0.31, most=4)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    if most < 1:
        return []
    first, last = _exact(low), _exact(high)
    least, step, exponent = most if most > 1 else _FINER, Fraction(1), 0
    if first != last or not whole:
        fitting = _steps((last - first) / least or _tenth(first), whole=whole)
        step, exponent = next(scale for scale in fitting if last // scale[0] - first // scale[0] < least)
    size = int(step / Fraction(10) ** exponent)
    numbers = range(first // step, last // step + 2)
    bounds = [_number(number * size, exponent, whole=whole) for number in numbers]
    return [*bounds] if most > 1 else [bounds[0], bounds[-1]]


def instant_bounds(low: int, high: int, *, most: int) -> list[int]:
    """Return the bounds of buckets around instants, in milliseconds since 1970: units of the calendar in UTC.

    Args:
        low: The first instant.
        high: The last one.
        most: The maximum number of buckets.

    Returns:
        One bound more than buckets; the last is after `high`. Empty if `most` is 0, or a bound would lie outside of the
        years 1 to 9999.

    >>> [instant_text(each) for each in instant_bounds(0, 100 * 86_400_000, most=5)][:2]
    ['1970-01-01T00:00:00Z', '1970-02-01T00:00:00Z']
    """
    if most < 1:
        return []
    least = most if most > 1 else _FINER
    try:
        for number, begin in _calendar():
            first, last = number(low), number(high)
            if last - first < least:
                bounds = [begin(ordinal) for ordinal in range(first, last + 2)]
                return bounds if most > 1 else [bounds[0], bounds[-1]]
    except (OverflowError, ValueError):
        pass
    return []


def instant_text(milliseconds: int) -> str:
    """Return an instant as RFC 3339 in UTC.

    Raises:
        OverflowError: It lies outside of the years 1 to 9999.

    >>> instant_text(1_700_000_000_500)
    '2023-11-14T22:13:20.500Z'
    """
    at = _instant(milliseconds)
    fraction = f".{milliseconds % _SECOND:03}" if milliseconds % _SECOND else ""
    return f"{at.year:04}-{at:%m-%dT%H:%M:%S}{fraction}Z"


def _exact(number: Number) -> Fraction:
    return Fraction(Decimal(repr(number)) if isinstance(number, float) else number)


def _tenth(number: Fraction) -> Fraction:
    """Return the width of the one bucket around a number that is not whole."""
    return Fraction(10) ** (_exponent(abs(number)) - 1) if number else Fraction(1)


def _exponent(number: Fraction) -> int:
    return (Decimal(number.numerator) / Decimal(number.denominator)).adjusted()


def _steps(least: Fraction, *, whole: bool) -> Iterator[tuple[Fraction, int]]:
    """Yield 1, 2 and 5 times the powers of ten from about the width that equal buckets would have, with the power."""
    start = _exponent(least)
    for exponent, size in ((at, size) for at in count(max(start, 0) if whole else start) for size in (1, 2, 5)):
        if (step := size * Fraction(10) ** exponent) >= least:
            yield step, exponent


def _number(digits: int, exponent: int, *, whole: bool) -> int | float | Decimal:
    if whole:
        return int(digits * 10**exponent)
    exact = Decimal((int(digits < 0), Decimal(abs(digits)).as_tuple().digits, exponent))
    close = float(exact) if abs(exact) < Decimal("1e308") else float("inf")
    return close if Decimal(repr(close)) == exact else exact


def _instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def _calendar() -> Iterator[Spaced]:
    for size in _FIXED:
        yield _fixed(size, 0)
    yield _fixed(7 * _DAY, _MONDAY)
    for months in _MONTHS:
        yield _monthly(months)


def _fixed(size: int, offset: int) -> Spaced:
    def begin(number: int) -> int:
        _instant(number * size + offset)  # raises outside of the calendar
        return number * size + offset

    return lambda at: (at - offset) // size, begin


def _monthly(months: int) -> Spaced:
    def number(at: int) -> int:
        when = _instant(at)
        return (when.year * 12 + when.month - 1) // months

    def begin(number: int) -> int:
        year, month = divmod(number * months, 12)
        if months > 12 and number == 0:
            year = 1  # the calendar has no year 0
        return (datetime(year, month + 1, 1, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)

    return number, begin
