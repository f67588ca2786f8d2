"""Pages, summaries, similar rows and cells: the request of each within its bounds, and whether an answer fits it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from dragoman_api.columns import MAX_DIMENSIONS
from dragoman_api.errors import ConfigurationError, DriverFaultError
from dragoman_api.grid import MAX_ROWS, MAX_SIMILAR, PageRequest, SimilarRequest
from dragoman_api.summaries import MAX_BUCKETS, MAX_VALUES, SummaryRequest

from .selections import check_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.grid import Page, RowKey
    from dragoman_api.summaries import ColumnSummary

    from .selections import RowSelection


def check_row_key(key: RowKey, selection: RowSelection) -> None:
    """Check that a value is the key of a row of the same object.

    Raises:
        ConfigurationError: It is not a row's key, or is that of another object.
    """
    check_key(key)
    if key.object != selection.object:
        reason = f"the key is of a row of {key.object!r}, not of {selection.object!r}"
        raise ConfigurationError(reason, hint="use rows of the key's object: session.rows(key.object)")


def page_request(selection: RowSelection, limit: int, offset: int, *, total: bool, cursor: str | None) -> PageRequest:
    """Return the request for a page, without its filter and span of time.

    Raises:
        ConfigurationError: `limit` or `offset` is out of range.
    """
    if offset < 0:
        raise ConfigurationError(f"a page begins at an offset of 0 or more, not {offset:,}")
    if not 1 <= limit <= MAX_ROWS:
        raise ConfigurationError(f"a page has 1 to {MAX_ROWS:,} rows, not {limit:,}")
    return PageRequest(
        object=selection.object,
        sort=list(selection.sort),
        offset=offset,
        limit=limit,
        columns=selection.listed_columns,
        total=total,
        cursor=cursor,
        tenant=selection.tenant,
        revision=selection.revision,
        residual=selection.residual,
    )


def summary_request(selection: RowSelection, column: str, *, values: int, buckets: int) -> SummaryRequest:
    """Return the request for a summary, without its filter and span of time.

    Raises:
        ConfigurationError: `values` or `buckets` is out of range.
    """
    if not (0 <= values <= MAX_VALUES and 0 <= buckets <= MAX_BUCKETS):
        text = f"a summary has 0 to {MAX_VALUES} values and 0 to {MAX_BUCKETS} buckets, not {values} and {buckets}"
        raise ConfigurationError(text)
    return SummaryRequest(
        object=selection.object,
        column=column,
        tenant=selection.tenant,
        revision=selection.revision,
        values=values,
        buckets=buckets,
    )


def check_summary(request: SummaryRequest, summary: ColumnSummary) -> None:
    """Check that a driver's summary is of the requested column, and no larger than requested.

    Raises:
        DriverFaultError: The summary does not fit the request.
    """
    if summary.column.name != request.column:
        raise DriverFaultError(f"the driver summarized column {summary.column.name!r} instead of {request.column!r}")
    if len(summary.values) > request.values or len(summary.buckets) > request.buckets:
        sizes = f"{len(summary.values)} values and {len(summary.buckets)} buckets"
        raise DriverFaultError(f"the driver returned {sizes}, not {request.values} and {request.buckets} at most")
    if summary.missing is not None and summary.missing > summary.rows:
        raise DriverFaultError(f"the driver counted {summary.missing:,} rows without a value of {summary.rows:,} rows")


def similar_request(
    selection: RowSelection,
    *,
    key: RowKey | None,
    vector: Sequence[float] | None,
    text: str | None,
    column: str | None,
    limit: int,
) -> SimilarRequest:
    """Return the request for similar rows, without its filter and span of time.

    Raises:
        ConfigurationError: The rows have a sort, `limit` is out of range, there is not exactly one of `key`, `vector`
            and `text`, the vector is none, or the key is that of a row of another object.
    """
    if key is not None:
        check_row_key(key, selection)
    if selection.sort:
        reason = "similar rows come nearest first, and these rows have a sort of their own"
        raise ConfigurationError(reason, hint="leave out the sort")
    if not 1 <= limit <= MAX_SIMILAR:
        raise ConfigurationError(f"1 to {MAX_SIMILAR:,} similar rows can be found, not {limit:,}")
    if sum(origin is not None for origin in (key, vector, text)) != 1:
        raise ConfigurationError("rows are similar to a row, a vector or a text: exactly one of them")
    return SimilarRequest(
        object=selection.object,
        column=column,
        key=key,
        vector=None if vector is None else _numbers(vector),
        text=text,
        limit=limit,
        columns=selection.listed_columns,
        tenant=selection.tenant,
        revision=selection.revision,
    )


def _numbers(vector: Sequence[float]) -> list[float]:
    try:
        numbers = [*map(float, vector)]
    except (TypeError, ValueError, OverflowError):
        numbers = []
    if not 1 <= len(numbers) <= MAX_DIMENSIONS or not all(map(isfinite, numbers)):
        raise ConfigurationError(f"a vector is a list of 1 to {MAX_DIMENSIONS:,} numbers")
    return numbers


def check_similar(request: SimilarRequest, page: Page) -> None:
    """Check that a driver's similar rows are no more than requested, and in the order of their distances.

    Raises:
        DriverFaultError: The page does not fit the request.
    """
    if len(page.cells) > request.limit:
        raise DriverFaultError(f"the driver returned {len(page.cells):,} rows, not {request.limit:,} at most")
    cells = [row[-1] if row else None for row in page.cells]
    distances = [cell for cell in cells if isinstance(cell, int | float) and not isinstance(cell, bool)]
    if len(distances) < len(cells) or distances != sorted(distances):
        raise DriverFaultError("the last column of the driver's rows does not hold distances, the nearest first")
    if (origin := request.key) is not None and any(
        (key.id, key.routing) == (origin.id, origin.routing) for key in page.keys
    ):
        raise DriverFaultError("the driver returned the row itself among those similar to it")
