"""A column at a glance: its most frequent values, its extremes, and how its values spread."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from .cells import Value
from .columns import Column, Note
from .filters import CompiledFilter, TimeRange

MAX_VALUES = 100
"""Maximum number of frequent values of one summary."""

MAX_BUCKETS = 50
"""Maximum number of buckets of one summary."""

SUMMARY_TEXT = 32 * 2**10
"""Maximum size of one text (as UTF-8) of a summary in bytes; the driver's process cuts longer ones."""


class Figure(StrEnum):
    """The figures of a summary, by the names of its fields."""

    ROWS = "rows"
    MISSING = "missing"
    VALUES = "values"
    DISTINCT = "distinct"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    BUCKETS = "buckets"


class SummaryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A summary of one column, over the rows that a filter selects.

    Attributes:
        object: The object's name.
        column: The column's name.
        filter: From `compile_filter`, None for all rows.
        time: The span of time that the rows must lie in, None for all; only with the capability ``time-range``.
        tenant: The tenant whose rows are wanted, if the object has tenants.
        revision: `Page.revision` of an earlier page, to summarize the rows as they were then; empty for now.
        values: The maximum number of frequent values to return; 0 for none.
        buckets: The maximum number of buckets to return; 0 for none.
    """

    object: str
    column: str
    filter: CompiledFilter | None = None
    time: TimeRange | None = None
    tenant: str | None = None
    revision: str = ""
    values: Annotated[int, msgspec.Meta(ge=0, le=MAX_VALUES)] = 10
    buckets: Annotated[int, msgspec.Meta(ge=0, le=MAX_BUCKETS)] = 20


class ValueCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One frequent value.

    Attributes:
        value: Typed like a cell of the column; of a column of arrays, like one element.
        rows: Number of rows that hold it. A row with an array counts once for each different value in it.
    """

    value: Value
    rows: int


class Bucket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One bar of a histogram: the values from `lower`, which it includes, to `upper`, which it does not.

    Attributes:
        lower: A number, or an instant as RFC 3339 in UTC.
        upper: The same, greater; the `lower` of the next bucket.
        rows: Number of rows with such a value. A row with an array counts in each bucket in which it has a value.
    """

    lower: Value
    upper: Value
    rows: int


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A summary of one column. A figure is exact unless `approximate` names it.

    Attributes:
        column: The column.
        rows: Number of rows that the filter selects.
        missing: How many of them have no value, None if unknown. A null, an absent member and an empty array all count
            as no value.
        values: The most frequent values, the most frequent first, each once.
        distinct: Number of different values, None if unknown.
        minimum: The smallest value, typed like a cell; None if there is none or it is unknown.
        maximum: The greatest.
        buckets: Contiguous, in order, empty ones included; all values lie in them. There are none for columns
            that are neither numbers nor dates, nor without values.
        approximate: Why a figure is not exact, one sentence each, by `Figure`.
        absent: Why a figure is not given although the column has values, one sentence each, by `Figure`.
        notes: Further remarks.
    """

    column: Column
    rows: int
    missing: int | None = None
    values: Annotated[list[ValueCount], msgspec.Meta(max_length=MAX_VALUES)] = []
    distinct: int | None = None
    minimum: Value = None
    maximum: Value = None
    buckets: Annotated[list[Bucket], msgspec.Meta(max_length=MAX_BUCKETS)] = []
    approximate: dict[Figure, str] = {}
    absent: dict[Figure, str] = {}
    notes: list[Note] = []

    @property
    def present(self) -> int | None:
        """Number of rows that have a value, None if unknown."""
        return None if self.missing is None else self.rows - self.missing
