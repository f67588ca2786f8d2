"""Which rows, as a plain value: a choice of rows and columns; and checks of what callers choose."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from dragoman_api.changes import Delete, Drop, Insert, Update
from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import Filter, RawQuery, TimeRange
from dragoman_api.grid import MAX_ROWS, RowKey, Sort
from dragoman_api.wording import quoted

from .relative_times import DEFAULT, Span, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_api.columns import Note


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
