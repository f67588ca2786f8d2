"""Which rows, as a plain value: a choice of rows and columns, and a span of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from dragoman_api.changes import Delete, Drop, Insert, Update
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError, UnsupportedOperationError
from dragoman_api.filters import Filter, RawQuery, TimeRange
from dragoman_api.grid import MAX_ROWS, RowKey, Sort
from dragoman_api.wording import quoted

from .relative_times import parse_instant, show_instant, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_api.columns import TimeColumn

_FILTER = 'Filter("total", ">=", 100), in a list'
_SORT = 'Sort("total", descending=True), in a list'
_KEY = "row.key of a row of a page"
_CHANGE = 'Update(row.key, {"total": 12.5}), Insert(…), Delete(…) or Drop(…)'


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
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


class RowSelection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The choice of rows that a read is about, as a plain value; `Session.select` reads them.

    ``msgspec.json`` writes it and reads it: messages and links of the workbench hold that JSON.

    Attributes:
        object: The object's name.
        filters: The filter rows.
        match: Whether ``all`` filter rows must match, or ``any``.
        sort: The sort keys of a page, the most significant first.
        columns: The columns, in order; None for all.
        tenant: The tenant whose rows are read, if the object has tenants.
        revision: The revision to read at; empty for the current one.
        span: The span of time that the rows must lie in.
        now: The instant that relative times count from, in whole milliseconds; None for the beginning of each read.
        residual: The maximum number of rows, 1 to 10,000, that the driver may filter and sort itself; None for none.
    """

    object: str
    filters: tuple[Filter | RawQuery, ...] = ()
    match: Literal["all", "any"] = "all"
    sort: tuple[Sort, ...] = ()
    columns: tuple[str, ...] | None = None
    tenant: str | None = None
    revision: str = ""
    span: Span = DEFAULT
    now: datetime | None = None
    residual: int | None = None

    def __post_init__(self) -> None:
        if self.now is not None:
            try:
                now = self.now.astimezone(UTC) if self.now.tzinfo else self.now.replace(tzinfo=UTC)
            except OverflowError:
                raise ConfigurationError(f"the instant {self.now.isoformat()} is no year 1 to 9999 in UTC") from None
            msgspec.structs.force_setattr(self, "now", whole(now))
        if self.match not in ("all", "any"):
            raise ConfigurationError(f"match is {self.match!r}; it can be all or any")
        if not isinstance(self.span, Span):
            raise ConfigurationError(f"{quoted(self.span)} is not a span of time", hint='Span(since="-1h")')
        if self.residual is not None and not 1 <= self.residual <= MAX_ROWS:
            raise ConfigurationError(f"residual is 1 to {MAX_ROWS:,} rows, not {self.residual}")

    def at(self, instant: datetime | None = None) -> RowSelection:
        """Return the selection with an instant that its relative times count from: its own, or the given one.

        Args:
            instant: The instant to use if the selection has none; None for the current one.
        """
        if self.now is not None:
            return self
        return msgspec.structs.replace(self, now=whole(instant or datetime.now(UTC)))

    def of_server(self, instant: datetime | None = None) -> RowSelection:
        """Return the selection with an instant for a read that is no page: the driver evaluates no filter row itself.

        Args:
            instant: The instant to use if the selection has none; None for the current one.
        """
        selection = self.at(instant)
        return selection if self.residual is None else msgspec.structs.replace(selection, residual=None)

    @property
    def listed_columns(self) -> list[str] | None:
        """The names of the columns as a list, as a request takes them; None for all."""
        return None if self.columns is None else list(self.columns)


def check_filters(filters: Sequence[Any]) -> None:
    """Raise ConfigurationError unless the argument is a sequence of filter rows."""
    _check(filters, (Filter, RawQuery), expected="a filter row", hint=_FILTER)


def check_sort(sort: Sequence[Any]) -> None:
    """Raise ConfigurationError unless the argument is a sequence of sort keys."""
    _check(sort, (Sort,), expected="a sort", hint=_SORT)


def check_names(names: Any, *, name: str) -> None:
    """Raise ConfigurationError unless the argument is a sequence of strings; `name` is its name in the message."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(text, str) for text in names):
        raise ConfigurationError(f"{name} is {quoted(names)}, which is not a list of texts", hint=f'{name}=["…"]')


def check_key(key: Any) -> None:
    """Raise ConfigurationError unless the argument is the key of a row; the id of the row alone is not."""
    _check((key,), (RowKey,), expected="the key of a row", hint=_KEY)


def check_changes(changes: Sequence[Any]) -> None:
    """Raise ConfigurationError unless the arguments are changes, with keys where these are needed."""
    _check(changes, (Insert, Update, Delete, Drop), expected="a change", hint=_CHANGE)
    for change in changes:
        if isinstance(change, Update | Delete):
            check_key(change.key)


def _check(arguments: Sequence[Any], kinds: tuple[type, ...], *, expected: str, hint: str) -> None:
    if not isinstance(arguments, Sequence):  # one alone; or an iterator, which a check would use up
        raise ConfigurationError(f"{quoted(arguments)} is not a list", hint=hint)
    for argument in [arguments] if isinstance(arguments, str | bytes) else arguments:
        if not isinstance(argument, kinds):
            raise ConfigurationError(f"{quoted(argument)} is not {expected}", hint=hint)


class Count(int):
    """A number of rows.

    Attributes:
        notes: Remarks on the count: where the filter is approximate, a default time window, columns that changed during
            the count.
        time: The span of time that the counted rows lie in; None for all rows.
    """

    notes: list[Note]
    time: TimeRange | None

    def __new__(cls, number: int, notes: Iterable[Note] = (), *, time: TimeRange | None = None) -> Self:
        """Build a count from its number, notes and span of time."""
        count = super().__new__(cls, number)
        count.notes, count.time = list(notes), time
        return count


def resolve(
    span: Span,
    time_column: TimeColumn | None,
    *,
    object: str,  # noqa: A002
    now: datetime,
) -> tuple[TimeRange | None, list[Note]]:
    """Return the range of time of a request, and a note if it is the object's default time window.

    Args:
        span: The span that the caller gave.
        time_column: The object's time column; None if it has none, or the driver takes no ranges.
        object: The object's name, for errors.
        now: The instant that relative times count from, in whole milliseconds.

    Raises:
        ConfigurationError: The span contradicts itself, or a bound is not an instant.
        UnsupportedOperationError: The span has a bound, and there is no time column.
    """
    if span.since is None and span.until is None:
        return (None, []) if span.all_time or time_column is None else _default(time_column, now)
    since, until = (None if text is None else parse_instant(text, now=now) for text in (span.since, span.until))
    if span.all_time:
        raise ConfigurationError("a span of all time has neither since nor until")
    if time_column is None:
        reason = f"the rows of {object!r} cannot be chosen by time: the driver names no time column"
        raise UnsupportedOperationError(reason, hint="use a filter on a column")
    if since is not None and until is not None and _order(since) >= _order(until):
        raise ConfigurationError(f"since {since} is not before until {until}")
    return TimeRange(column=time_column.column, since=since, until=until), []


def _default(time_column: TimeColumn, now: datetime) -> tuple[TimeRange | None, list[Note]]:
    if time_column.window is None:
        return None, []
    since = show_instant(now - timedelta(seconds=time_column.window))
    reason = f"only rows since {since} are read, the default for this object; ask for another time, or for all of it"
    return TimeRange(column=time_column.column, since=since), [
        Note(code="time-window", column=time_column.column, reason=reason)
    ]


def _order(instant: str) -> tuple[str, str]:
    """Return a sort key for instants in UTC, whatever the number of digits of their fractions."""
    whole, _, fraction = instant.removesuffix("Z").partition(".")
    return whole, fraction.ljust(9, "0")
