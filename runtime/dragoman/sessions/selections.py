"""Which rows, as a plain value: a choice of rows and columns; and checks of what callers choose.

Pages, summaries and similar rows are bounded: here is the request of each, and whether an answer fits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from dragoman_api.changes import Delete, Drop, Insert, Update
from dragoman_api.columns import MAX_DIMENSIONS
from dragoman_api.errors import ConfigurationError, DriverFaultError
from dragoman_api.filters import Filter, RawQuery, TimeRange
from dragoman_api.grid import MAX_ROWS, MAX_SIMILAR, PageRequest, RowKey, SimilarRequest, Sort
from dragoman_api.summaries import MAX_BUCKETS, MAX_VALUES, SummaryRequest
from dragoman_api.wording import quoted

from .relative_times import DEFAULT, Span, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_api.columns import Note
    from dragoman_api.grid import Page
    from dragoman_api.summaries import ColumnSummary


_FILTER = 'Filter("total", ">=", 100), in a list'
_SORT = 'Sort("total", descending=True), in a list'
_KEY = "row.key of a row of a page"
_CHANGE = 'Update(row.key, {"total": 12.5}), Insert(…), Delete(…) or Drop(…)'


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
    check_owner(routing=key.routing)


def check_owner(*, tenant: str | None = None, routing: str | None = None) -> None:
    """Raise ConfigurationError if a tenant or a routing is an empty text, which servers take for none."""
    for word, value in (("tenant", tenant), ("routing", routing)):
        if value == "":
            hint = f"name one; or leave {word} out, where rows have none"
            code = "tenant-empty" if word == "tenant" else "routing-empty"
            raise ConfigurationError(f"the {word} is an empty text, which names none", hint=hint, code=code)


def check_changes(changes: Sequence[Any]) -> None:
    """Raise ConfigurationError unless the arguments are changes, with keys where these are needed."""
    _check(changes, (Insert, Update, Delete, Drop), expected="a change", hint=_CHANGE)
    for change in changes:
        if isinstance(change, Update | Delete):
            check_key(change.key)
        elif isinstance(change, Insert):
            check_owner(tenant=change.tenant, routing=change.routing)


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
