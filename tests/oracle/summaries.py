"""What a summary of a column must tell, from the values that the rows hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dragoman_api.summaries import Figure

from .columns import Column, Date, MisfitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dragoman_api.summaries import ColumnSummary

    from .calls import Stored, World

Held = Sequence[tuple[Column | None, list[Any]]]
"""For each row the column as its index has it, None if it has none, and the scalars in it."""


def held(world: World, rows: Iterable[Stored], name: str) -> Held:
    """Return what rows hold in a column."""
    found = ((row, row.columns.get(name)) for row in rows)
    return [(column, [] if column is None else world.scalars(row, column)) for row, column in found]


def wrong(
    summary: ColumnSummary, rows: Held, column: Column, *, values: int, buckets: int
) -> Iterator[tuple[Any, Any]]:
    """Yield what the figures that claim to be exact should be, and what they are.

    Args:
        summary: The summary.
        rows: The rows that the filter selects.
        column: The column, as any index has it.
        values: The number of values that were asked for.
        buckets: The number of buckets that were asked for.
    """
    exact = {*Figure} - {*summary.approximate, *summary.absent}
    keys = [{each for one in values_ if (each := _key(own or column, one)) is not None} for own, values_ in rows]
    counts = Counter(each for row in keys for each in row)
    yield len(rows), summary.rows
    if Figure.MISSING in exact and summary.missing is not None:
        yield sum(not any(each is not None for each in values_) for _, values_ in rows), summary.missing
    signed = any(zeros(key) for key in counts)
    if Figure.DISTINCT in exact and summary.distinct is not None and not signed:
        yield len(counts), summary.distinct
    if Figure.VALUES in exact and not signed:
        told = [(_key(column, each.value), each.rows) for each in summary.values]
        yield [(key, counts[key]) for key, _ in told], told
        yield sorted(counts.values(), reverse=True)[:values], [number for _, number in told]
    places = [_places(own or column, values_) for own, values_ in rows]
    yield from _extremes(summary, set().union(*places), column, exact)
    if buckets and counts and Figure.BUCKETS in exact and summary.buckets:
        yield from _buckets(summary, places, column)
    yield True, len(summary.buckets) <= buckets
    yield True, all(each.strip() for each in (*summary.approximate.values(), *summary.absent.values()))


def _extremes(summary: ColumnSummary, held: set[Any], column: Column, exact: set[Figure]) -> Iterator[tuple[Any, Any]]:
    for figure, told, right in (
        (Figure.MINIMUM, summary.minimum, min(held, default=None)),
        (Figure.MAXIMUM, summary.maximum, max(held, default=None)),
    ):
        if figure in exact:
            yield right, None if told is None else _place(column, told)


def _buckets(summary: ColumnSummary, places: Sequence[set[Any]], column: Column) -> Iterator[tuple[Any, Any]]:
    bounds = [(_bound(column, each.lower), _bound(column, each.upper)) for each in summary.buckets]
    for (low, high), (next_low, _) in pairwise([*bounds, (bounds[-1][1], None)]):
        yield high, next_low
        yield True, low < high
    for (low, high), each in zip(bounds, summary.buckets, strict=True):
        yield sum(any(low <= place < high for place in row) for row in places), each.rows
    yield sum(map(bool, places)), sum(any(bounds[0][0] <= at < bounds[-1][1] for at in row) for row in places)


def _key(column: Column, value: Any) -> Any:
    """Return what is counted as one value; None for what is none."""
    if value is not None:
        with suppress(MisfitError):
            return column.counted(value)
    return None


def _place(column: Column, value: Any) -> Any:
    """Return what orders a value."""
    return column.meaning(value) if isinstance(column, Date) else column.counted(value)


def _places(column: Column, values: Iterable[Any]) -> set[Any]:
    found = set()
    for each in values:
        if each is not None:
            with suppress(MisfitError):
                found.add(_place(column, each))
    return found


def zeros(key: Any) -> bool:
    """Tell whether a value is a zero of a type with two zeros, which a server may count apart."""
    return isinstance(key, float) and key == 0


def _bound(column: Column, value: Any) -> Any:
    if isinstance(column, Date):
        return column.instant(value)
    return Decimal(repr(value)) if isinstance(value, float) else value
