"""Checks of summaries and completions: whether a request is allowed, and whether its result fits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError, DriverFaultError
from dragoman_api.summaries import MAX_BUCKETS, MAX_VALUES

if TYPE_CHECKING:
    from dragoman_api.console import Completion
    from dragoman_api.summaries import ColumnSummary, SummaryRequest


def check_summary(*, values: int, buckets: int) -> None:
    """Check the numbers of values and buckets of a summary.

    Raises:
        ConfigurationError: A number is negative or too large.
    """
    if not (0 <= values <= MAX_VALUES and 0 <= buckets <= MAX_BUCKETS):
        text = f"a summary has 0 to {MAX_VALUES} values and 0 to {MAX_BUCKETS} buckets, not {values} and {buckets}"
        raise ConfigurationError(text)


def within(request: SummaryRequest, summary: ColumnSummary) -> ColumnSummary:
    """Return a summary if it is of the requested column, and no larger than requested.

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
    return summary


def check_position(text: str, position: int) -> None:
    """Check that a position lies in a text.

    Raises:
        ConfigurationError: The position is negative or greater than the length of the text.
    """
    if not 0 <= position <= len(text):
        raise ConfigurationError(f"position is 0 to {len(text):,}, the length of the text, not {position:,}")


def inside(text: str, completion: Completion) -> Completion:
    """Return a completion if each suggestion replaces characters of the text.

    Raises:
        DriverFaultError: A suggestion ends after the text.
    """
    last = max((suggestion.end for suggestion in completion.suggestions), default=0)
    if last > len(text):
        raise DriverFaultError(f"the driver suggested to replace characters up to {last:,} of {len(text):,}")
    return completion
