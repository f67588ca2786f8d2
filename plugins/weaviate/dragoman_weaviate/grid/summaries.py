"""Summaries of columns by Aggregate: what the server counts, and why a figure is estimated or missing."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from dragoman_api import Filter, UnsupportedOperationError
from dragoman_api import Operator as Op
from dragoman_api.errors import QueryError
from dragoman_api.kit.exchanges import Exchange, ask
from dragoman_api.kit.summaries import EPOCH, buckets_of, instant_bounds, instant_text, number_bounds
from dragoman_api.summaries import Bucket, ColumnSummary, Figure, SummaryRequest, ValueCount
from dragoman_weaviate import aggregates
from dragoman_weaviate.aggregates import Aggregate, PropertyQuery, joined
from dragoman_weaviate.columns.field_types import ORDERED, Family, Field
from dragoman_weaviate.columns.grid_columns import View
from dragoman_weaviate.graphql import Where

from . import exactness, filters
from .filters import where_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.cells import Value

SHARD_VALUES = 200
"""Values that each shard reports at least; with fewer different ones, every figure is counted from them."""

FEW_BUCKETS = 10
"""Buckets of a column without an index for ranges in a large collection: each is read key by key."""

LARGE = 20_000
"""Rows from which on a collection is large."""

_EXTREMES = (Figure.MINIMUM, Figure.MAXIMUM)
_SMALLEST, _OVERFLOWING = -(2**63), 2**63 - 512
_SECONDS_OF_DAY = 86_400
_NANOSECONDS = 10**9
_FRACTION = re.compile(r"\.(\d+)")
_COUNTED = (Family.TEXT, Family.BOOLEAN, Family.UUID, *ORDERED)

_AGAINST = {
    Family.ID: ("every row has a uuid of its own", "count the rows instead"),
    Family.VECTOR: ("vectors are not counted by their values", "search by vector in the console, with nearVector"),
    Family.REFERENCE: ("it refers to other objects", "group by it in the console: Aggregate with groupBy"),
    Family.OBJECT: ("the server does not look inside objects", "store what is to be counted as a property of its own"),
}
_UNLISTED = ("the server counts no values of this type", "use a filter on another column to count rows")

_BY_VALUES = "it is counted along with the values, and none were asked for"


class _Summing(msgspec.Struct, kw_only=True):
    """A summary while it is made."""

    request: SummaryRequest
    view: View
    column: Field
    where: Where | None
    tenant: str | None
    approximate: dict[Figure, str] = msgspec.field(default_factory=dict)
    absent: dict[Figure, str] = msgspec.field(default_factory=dict)

    def exchange(self) -> Exchange[ColumnSummary]:
        property_query = self._build_query()
        request = aggregates.ask(self.view, property_query, where=self.where, tenant=self.tenant)
        aggregate = aggregates.read((yield from ask(request)), property_query)
        if self.where is None and not property_query.groups and any("\\" in text for text, _ in aggregate.groups or ()):
            aggregate = yield from self._unescaped(aggregate)
        values = self._values(aggregate)
        every = values if values is not None and len(values) < self._limit else None
        missing = self._missing(aggregate, every)
        low, high = self._extremes(aggregate, every)
        buckets = yield from self._buckets(aggregate, low, high, every)
        listed, distinct = self._most_frequent(values, every), self._distinct(values, every)
        if missing == aggregate.rows:  # there is nothing to estimate
            distinct = 0
            self.approximate.clear()
            self.absent.clear()
        return ColumnSummary(
            column=self.view.columns[self.column.name],
            rows=aggregate.rows,
            missing=missing,
            values=listed,
            distinct=distinct,
            minimum=low,
            maximum=high,
            buckets=buckets,
            approximate=self.approximate,
            absent=self.absent,
        )

    def _unescaped(self, aggregate: Aggregate) -> Exchange[Aggregate]:
        """Ask for the values again: without a filter, the server lists frequent texts as JSON escapes them."""
        again = PropertyQuery(prop=self.column.prop, groups=self._limit)
        reply = yield from ask(aggregates.ask(self.view, again, where=None, tenant=self.tenant))
        return replace(aggregate, groups=aggregates.read(reply, again).groups)

    # what is asked

    @property
    def _limit(self) -> int:
        return max(SHARD_VALUES, self.request.values + 1)

    @property
    def _read_by_index(self) -> bool:
        """Whether figures come from the index of the property."""
        return self.where is None and not self.column.array and self.column.family is not Family.TEXT

    @property
    def _figured(self) -> bool:
        """Whether the server computes figures for the property."""
        spec = self.column.spec
        if self.column.family is Family.UUID or spec is None or not aggregates.has_figures(self.column.prop):
            return False
        return spec.filterable or not self._read_by_index

    def _against(self, op: Op) -> str:
        """Return why a filter with an operator does not run; empty if it does."""
        _, reasons = self.column.support(self.view.features)
        return reasons.get("filter") or reasons.get(op, "")

    def _build_query(self) -> PropertyQuery:
        family, listed = self.column.family, self.request.values > 0
        figures = "count" if self._figured else ""
        if figures and family in ORDERED:
            figures += " minimum maximum"
        if figures and not self.column.array and family is Family.BOOLEAN:
            figures, listed = f"{figures} totalTrue totalFalse", False
        if figures and not self.column.array and family is Family.TEXT and listed:  # twice as fast as groups
            figures, listed = f"{figures} topOccurrences(limit:{self._limit}){{value occurs}}", False
        missing = None
        if not self._against(Op.NULL) and (self.column.array or not self._figured):
            null = Filter(self.column.name, Op.NULL)
            missing = filters.clause(null, self.column, self.view.features, exactness.Judgement())
        return PropertyQuery(
            prop=self.column.prop, figures=figures, groups=self._limit if listed else 0, missing=missing
        )

    # what came

    def _values(self, aggregate: Aggregate) -> list[ValueCount] | None:
        """Return the reported values, the most frequent first; None if none were asked for."""
        figures = aggregate.figures
        if figures is not None and figures.total_true is not None:
            totals = {True: figures.total_true, False: figures.total_false or 0}
            values = [ValueCount(value, rows) for value, rows in totals.items() if rows]
        elif aggregate.groups is not None:
            values = [ValueCount(self._value(text), rows) for text, rows in aggregate.groups]
        else:
            return None
        return sorted(values, key=lambda value_count: -value_count.rows)

    def _value(self, text: str) -> Any:
        match self.column.family:
            case Family.INT:
                return int(Decimal(text))
            case Family.NUMBER:
                return float(text) or 0.0  # -0.0 and 0.0 are one group, and either names it
            case Family.BOOLEAN:
                return text == "true"
        return text

    def _most_frequent(self, values: list[ValueCount] | None, every: list[ValueCount] | None) -> list[ValueCount]:
        if values and every is None and not self.view.collection.one_shard:
            reason = f"each shard reports its {self._limit:,} most frequent values"
            self.approximate[Figure.VALUES] = f"{reason}: a count may be too low, and a value may be missing"
        return (values or [])[: self.request.values]

    def _distinct(self, values: list[ValueCount] | None, every: list[ValueCount] | None) -> int | None:
        if every is not None:
            return len(every)
        reason = f"the server does not count different values; there are at least {len(values or ()):,}"
        self.absent[Figure.DISTINCT] = _BY_VALUES if values is None else reason
        return None

    def _missing(self, aggregate: Aggregate, every: list[ValueCount] | None) -> int | None:
        if aggregate.missing is not None:
            comparison = exactness.Comparison(op=Op.NULL, field=self.column, features=self.view.features)
            ignored = exactness.EMPTY_IS_NULL if self.column.array else ""  # a summary counts it so, too
            reasons = [reason for reason in exactness.judge([comparison]).approximations if reason != ignored]
            if reasons:
                self.approximate[Figure.MISSING] = "; ".join(reasons)
            return aggregate.missing
        if not self.column.array:
            if aggregate.figures is not None:
                return aggregate.rows - aggregate.figures.count
            if every is not None:
                return aggregate.rows - sum(value_count.rows for value_count in every)
        elif every == []:
            return aggregate.rows
        self.absent[Figure.MISSING] = self._against(Op.NULL) or "it is counted along with the values"
        return None

    def _extremes(self, aggregate: Aggregate, every: list[ValueCount] | None) -> tuple[Value, Value]:
        family, figures = self.column.family, aggregate.figures
        if every is not None:
            values = sorted((value_count.value for value_count in every), key=self._place)
            return (values[0], values[-1]) if values else (None, None)
        if family in ORDERED and figures is not None:
            low, high = self._figure(figures.minimum), self._figure(figures.maximum)
            if low is not None:
                self._judge_extremes(low)
            return low, high
        if family in ORDERED:
            reason = "the server reads it from an index that the property does not have (indexFilterable is off)"
        else:
            reason = "the server does not report the order of these values"
        self.absent |= dict.fromkeys(_EXTREMES, reason)
        return None, None

    def _figure(self, value: float | str | None) -> Any:
        if value is None or isinstance(value, str):
            return value
        return int(Decimal(repr(value))) if self.column.family is Family.INT else value

    def _judge_extremes(self, low: Any) -> None:
        """Say where the server compares other numbers or dates than those that are stored."""
        reasons = self._reasons(Op.BETWEEN, 0) if self.column.family is not Family.INT else []
        if self.column.family is Family.INT and self._read_by_index and low <= _SMALLEST:
            reasons = self._reasons(Op.LT, 0)
        if reasons:
            self.approximate |= dict.fromkeys(_EXTREMES, "; ".join(reasons))

    def _reasons(self, op: Op, value: Any) -> list[str]:
        """Return why a comparison with a value is not exact."""
        if self.column.family is Family.DATE:
            value = instant_text(int(value))
        written = repr(value) if isinstance(value, float) else value
        value = float(value) if self.column.family is Family.NUMBER else value
        comparison = exactness.Comparison(
            op=op, field=self.column, features=self.view.features, value=value, written=written
        )
        try:
            return exactness.judge([comparison]).approximations
        except ValueError as refusal:
            return [str(refusal)]

    # a histogram

    def _place(self, value: Any) -> Any:
        return nanoseconds(value) if self.column.family is Family.DATE else value

    def _buckets(
        self, aggregate: Aggregate, low: Any, high: Any, every: list[ValueCount] | None
    ) -> Exchange[list[Bucket]]:
        if low is None or self.column.family not in ORDERED or not self.request.buckets:
            return []
        max_buckets = self.request.buckets
        if every is None:
            if against := self._against_counting(low, high):
                self.absent[Figure.BUCKETS] = against
                return []
            by_keys = self.column.spec is None or not self.column.spec.ranged
            max_buckets = min(max_buckets, FEW_BUCKETS) if by_keys and aggregate.rows > LARGE else max_buckets
        bounds = self._bounds(low, high, max_buckets=max_buckets)
        if not bounds:
            self.absent[Figure.BUCKETS] = "some dates lie outside of the years that a histogram shows"
            return []
        if every is not None:
            counts = self._spread(bounds, every)
        else:
            counts = yield from self._count(
                bounds, aggregate.figures.count if aggregate.figures is not None else aggregate.rows
            )
            self._judge_buckets(bounds, low, high)
        return buckets_of([self._shown(bound) for bound in bounds], counts) if counts else []

    def _against_counting(self, low: Any, high: Any) -> str:
        """Return why the server cannot count the rows between bounds; empty if it can."""
        if self.column.array:
            return "two bounds may hold for different elements of an array"
        if against := self._against(Op.LT):
            return against
        if self.column.family is Family.DATE and not (exactness.comparable(low) and exactness.comparable(high)):
            return "some dates lie outside of those that the server compares"
        if self._place(low) > self._place(high):
            return "some dates lie outside of those that the server compares"
        return ""

    def _bounds(self, low: Any, high: Any, *, max_buckets: int) -> list[Any]:
        if self.column.family is Family.DATE:
            first, last = (self._place(extreme) // 10**6 for extreme in (low, high))
            return list(instant_bounds(first, last, most=max_buckets))
        return list(number_bounds(low, high, most=max_buckets, whole=self.column.family is Family.INT))

    def _spread(self, bounds: Sequence[Any], every: list[ValueCount]) -> list[int]:
        """Spread values that are all known. Of an array, a bucket with two of them may count a row twice."""
        dates = self.column.family is Family.DATE
        counts, values = Counter[int](), Counter[int]()
        for value_count in every:
            place = self._place(value_count.value) // 10**6 if dates else value_count.value
            at = bisect_right(bounds, place) - 1
            counts[at] += value_count.rows
            values[at] += 1
        if self.column.array and max(values.values()) > 1:
            self.absent[Figure.BUCKETS] = "a row may have several values in one bucket"
            return []
        return [counts[at] for at in range(len(bounds) - 1)]

    def _count(self, bounds: Sequence[Any], present: int) -> Exchange[list[int]]:
        """Count the rows below and above the inner bounds, each from the end where fewer keys are read.

        The differences are the buckets; the one in the middle is counted itself. The outermost bounds stay open.
        """
        inner = bounds[1:-1]
        if not inner:
            return [present]
        half = (len(inner) + 1) // 2
        below = [self._compared(Op.LT, bound) for bound in inner[:half]]
        above = [self._compared(Op.GE, bound) for bound in inner[half:]]
        middle = joined(self._compared(Op.GE, inner[half - 1]), *(self._compared(Op.LT, at) for at in inner[half:][:1]))
        filters = [joined(self.where, clause) for clause in (*below, middle, *above)]
        reply = yield from ask(aggregates.ask_counts(self.view, filters, tenant=self.tenant))
        counts = aggregates.read_counts(reply, len(filters))
        low, high = [0, *counts[:half]], [*counts[half + 1 :], 0]
        rising = [after - before for before, after in pairwise(low)]
        falling = [before - after for before, after in pairwise(high)]
        return [max(count, 0) for count in (*rising, counts[half], *falling)]  # rows may be written meanwhile

    def _compared(self, op: Op, bound: Any) -> Where:
        value = float(bound) if self.column.family is Family.NUMBER else self._shown(bound)
        return filters.compare(op, self.column, value)

    def _shown(self, bound: Any) -> Any:
        return instant_text(bound) if self.column.family is Family.DATE else bound

    def _judge_buckets(self, bounds: Sequence[Any], low: Any, high: Any) -> None:
        reasons = [reason for bound in bounds[1:-1] for reason in self._reasons(Op.BETWEEN, bound)]
        if self.column.family is Family.INT and (low <= _SMALLEST or high >= _OVERFLOWING):
            reasons += self._reasons(Op.LT, 0)
        if reasons:
            self.approximate[Figure.BUCKETS] = "; ".join(dict.fromkeys(reasons))


def summarize(request: SummaryRequest, view: View) -> Exchange[ColumnSummary]:
    """Summarize a column.

    Raises:
        UnsupportedOperationError: The server cannot summarize such a column.
        QueryError: There is no such column, or the server refused or answered in part.
        FilterNotSupportedError: A part of the filter is to be evaluated here.
    """
    field = view.fields.get(request.column)
    if field is None:
        reason = f"'{request.object}' has no column '{request.column}'"
        raise QueryError(reason, hint="describe the object to see them", details={"column": request.column})
    if field.family not in _COUNTED:
        reason, hint = _AGAINST.get(field.family, _UNLISTED)
        raise UnsupportedOperationError(f"'{request.column}' cannot be summarized: {reason}", hint=hint)
    summing = _Summing(
        request=request,
        view=view,
        column=field,
        where=where_of(request.object, request.filter, operation="a summary"),
        tenant=view.tenant(request.tenant),
    )
    return (yield from summing.exchange())


def nanoseconds(date: str) -> int:
    """Return the nanoseconds from 1970 to a date as RFC 3339.

    >>> nanoseconds("1970-01-01T01:00:00.5+00:30")
    1800500000000
    """
    fraction = _FRACTION.search(date)
    digits = fraction[1] if fraction else ""
    since = datetime.fromisoformat(_FRACTION.sub("", date)) - EPOCH
    return (since.days * _SECONDS_OF_DAY + since.seconds) * _NANOSECONDS + int(digits.ljust(9, "0")[:9])
