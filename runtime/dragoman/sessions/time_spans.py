"""Spans of time as a caller gives them, and the ranges of time that requests carry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError, UnsupportedOperationError
from dragoman_api.filters import TimeRange

from .instants import parse_instant, show_instant

if TYPE_CHECKING:
    from dragoman_api.columns import TimeColumn


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A span of time, as a caller gives it.

    Attributes:
        since: The first instant, ISO 8601 or relative to now (``-1h``, ``now-7d``); None for no lower bound.
        until: The instant after the last one, in the same form.
        all_time: Take all rows, even if the object has a default time window.
    """

    since: str | None = None
    until: str | None = None
    all_time: bool = False

    @classmethod
    def of(cls, time: TimeRange | None) -> Span:
        """Return the span of a range with absolute instants, such as `Page.time`; all time if there is none."""
        return cls(all_time=True) if time is None else cls(since=time.since, until=time.until)


DEFAULT = Span()
"""The default of the object's description: a time window before now, or all rows."""


def resolve(
    span: Span,
    about: TimeColumn | None,
    *,
    object: str,  # noqa: A002
    now: datetime | None = None,
) -> tuple[TimeRange | None, list[Note]]:
    """Return the range of time of a request, and a note if it is the object's default time window.

    Args:
        span: The span that the caller gave.
        about: The object's time column; None if it has none, or the driver takes no ranges.
        object: The object's name, for errors.
        now: The instant that relative times count from; None for the current one.

    Raises:
        ConfigurationError: The span contradicts itself, or a bound is not an instant.
        UnsupportedOperationError: The span has a bound, and there is no time column.
    """
    now = whole(now or datetime.now(UTC))
    since, until = (None if text is None else parse_instant(text, now=now) for text in (span.since, span.until))
    if since is None and until is None:
        return (None, []) if span.all_time or about is None else _default(about, now)
    if span.all_time:
        raise ConfigurationError("a span of all time has neither since nor until")
    if about is None:
        reason = f"the rows of {object!r} cannot be chosen by time: the driver names no time column"
        raise UnsupportedOperationError(reason, hint="use a filter on a column")
    if since is not None and until is not None and _order(since) >= _order(until):
        raise ConfigurationError(f"since {since} is not before until {until}")
    return TimeRange(column=about.column, since=since, until=until), []


def _default(time_column: TimeColumn, now: datetime) -> tuple[TimeRange | None, list[Note]]:
    if time_column.window is None:
        return None, []
    since = show_instant(now - timedelta(seconds=time_column.window))
    reason = f"only rows since {since} are read, the default for this object; ask for another time, or for all of it"
    return TimeRange(column=time_column.column, since=since), [
        Note(code="time-window", column=time_column.column, reason=reason)
    ]


def whole(now: datetime) -> datetime:
    """Return the time in whole milliseconds: many time columns hold no more digits to compare with."""
    return now.replace(microsecond=now.microsecond // 1_000 * 1_000)


def whole_now(text: str | None) -> datetime:
    """Read the instant that relative times count from, in whole milliseconds; None for the current one.

    Raises:
        ConfigurationError: The text is not an instant.
    """
    now = datetime.now(UTC)
    return whole(now if text is None else datetime.fromisoformat(parse_instant(text, now=now)))


def _order(instant: str) -> tuple[str, str]:
    """Return a sort key for instants in UTC, whatever the number of digits of their fractions."""
    whole, _, fraction = instant.removesuffix("Z").partition(".")
    return whole, fraction.ljust(9, "0")
