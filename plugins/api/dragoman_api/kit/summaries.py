"""A summary of a column that a driver makes of its cells, for a server that cannot summarize."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dragoman_api.cells import MISSING
from dragoman_api.columns import ColumnKind
from dragoman_api.summaries import Bucket, ColumnSummary, ValueCount

from .bucket_bounds import EPOCH, instant_bounds, instant_text, number_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.cells import Cell, Value
    from dragoman_api.columns import Column
    from dragoman_api.summaries import SummaryRequest


def summarize_cells(request: SummaryRequest, column: Column, cells: Iterable[Cell]) -> ColumnSummary:
    """Summarize the cells of a column: one scalar, None or `MISSING` for each row that the filter selects.

    Equal counts come in the order of the cells. Instants and days are ISO 8601 texts; those without an offset are taken
    as UTC.

    Args:
        request: How many values and buckets.
        column: The column.
        cells: Its cells, neither arrays nor objects.
    """
    values: list[Any] = []
    rows = 0
    for rows, cell in enumerate(cells, 1):  # noqa: B007 - the last number is the number of rows
        if cell is not None and cell is not MISSING:
            values.append(cell)
    counts = Counter(values)
    return ColumnSummary(
        column=column,
        rows=rows,
        missing=rows - len(values),
        values=[ValueCount(value, number) for value, number in counts.most_common(request.values)],
        distinct=len(counts),
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        buckets=_buckets(column.kind, values, limit=request.buckets) if values else [],
    )


def buckets_of(bounds: Sequence[Value], rows: Sequence[int]) -> list[Bucket]:
    """Return the buckets between bounds, from the number of rows in each.

    >>> buckets_of([0, 10, 20], [3, 4])
    [Bucket(lower=0, upper=10, rows=3), Bucket(lower=10, upper=20, rows=4)]
    """
    return [Bucket(lower, upper, n) for lower, upper, n in zip(bounds, bounds[1:], rows, strict=False)]


def _buckets(kind: ColumnKind, values: Sequence[Any], *, limit: int) -> list[Bucket]:
    if kind in (ColumnKind.TIMESTAMP, ColumnKind.DATE):
        values = [_milliseconds(value) for value in values]
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


def _milliseconds(text: str) -> int:
    at = datetime.fromisoformat(text)
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH) // timedelta(milliseconds=1)
