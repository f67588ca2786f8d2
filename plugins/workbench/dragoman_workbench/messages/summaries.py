"""Messages of a column at a glance."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dragoman_api.columns import Column, Note

from .base import Cell, ColumnName, Message
from .rows import RowsAsked


class SummaryAsked(RowsAsked, frozen=True, kw_only=True):
    """One column at a glance, over the rows that a grid shows.

    Attributes:
        column: Its name.
        values: The maximum number of frequent values to return.
        buckets: The maximum number of bars in the histogram.
    """

    column: ColumnName
    values: Annotated[int, Meta(ge=0, le=50)] = 10
    buckets: Annotated[int, Meta(ge=0, le=50)] = 20


class FrequentValue(Message, frozen=True, kw_only=True):
    """A value and the number of rows that hold it."""

    cell: Cell
    rows: int


class Bar(Message, frozen=True, kw_only=True):
    """The number of rows with a value from `lower`, included, to `upper`, excluded."""

    lower: Cell
    upper: Cell
    rows: int


class Summarized(Message, frozen=True, kw_only=True):
    """One column at a glance; a figure that `approximate` does not name is exact.

    Attributes:
        column: The column.
        rows: Rows that the filter selects.
        missing: How many of them have no value; null if unknown.
        values: The most frequent first.
        distinct: Number of different values; null if unknown.
        minimum: The smallest value; null if there is none or it is unknown.
        maximum: The greatest.
        bars: In order, empty ones included; none for columns that are neither numbers nor dates.
        approximate: Why a figure is not exact, by the names of `dragoman_api.summaries.Figure`.
        absent: Why a figure is not given although the column has values, by the same names.
        notes: Further remarks.
        seconds: How long it took.
    """

    column: Column
    rows: int
    missing: int | None
    values: list[FrequentValue]
    distinct: int | None
    minimum: Cell
    maximum: Cell
    bars: list[Bar]
    approximate: dict[str, str]
    absent: dict[str, str]
    notes: list[Note]
    seconds: float
