"""The choice of rows that a read is about, as a plain value that is checked when it is built."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.grid import MAX_ROWS, Sort
from dragoman_api.wording import quoted

from .time_spans import DEFAULT, Span, whole


class RowSelection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The choice of rows that a read is about.

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
        if self.match not in ("all", "any"):
            raise ConfigurationError(f"match is {self.match!r}; it can be all or any")
        if not isinstance(self.span, Span):
            raise ConfigurationError(f"{quoted(self.span)} is not a span of time", hint='Span(since="-1h")')
        if self.residual is not None and not 1 <= self.residual <= MAX_ROWS:
            raise ConfigurationError(f"residual is 1 to {MAX_ROWS:,} rows, not {self.residual}")

    def at(self, now: datetime | None = None) -> RowSelection:
        """Return the selection with an instant that its relative times count from: its own, or the given one.

        Args:
            now: The instant to use if the selection has none; None for the current one.
        """
        if self.now is not None:
            return self
        return msgspec.structs.replace(self, now=whole(now or datetime.now(UTC)))

    def of_server(self, now: datetime | None = None) -> RowSelection:
        """Return the selection with an instant for a read that is no page: the driver evaluates no filter row itself.

        Args:
            now: The instant to use if the selection has none; None for the current one.
        """
        return msgspec.structs.replace(self.at(now), residual=None) if self.residual is not None else self.at(now)

    @property
    def listed_columns(self) -> list[str] | None:
        """The names of the columns as a list, as a request takes them; None for all."""
        return None if self.columns is None else list(self.columns)
