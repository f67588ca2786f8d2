"""Summaries of columns: one search with aggregations, and further ones for exact extremes and for a histogram."""

from __future__ import annotations

import struct
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw

from dragoman_api import Operator as Op
from dragoman_api import Sort, UnsupportedOperationError
from dragoman_api.errors import QueryError
from dragoman_api.kit.exchanges import Exchange, ask, post
from dragoman_api.kit.summaries import buckets_of, instant_bounds, instant_text, number_bounds
from dragoman_api.summaries import ColumnSummary, Figure, SummaryRequest, ValueCount
from dragoman_querydsl import protocol
from dragoman_querydsl.columns import exactness
from dragoman_querydsl.columns.field_types import BOUNDS, Family, Field
from dragoman_querydsl.columns.grid_columns import View, column
from dragoman_querydsl.protocol import Dialect, target
from dragoman_querydsl.search import Count, Hit, SearchAnswer

from .clauses import Clause, exists, signed_zero
from .filters import nested
from .pages import compile_sort

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.cells import Value

A = TypeVar("A", bound="SearchAnswer[Any]")

SHARD_VALUES = 1_000
"""Values that each shard reports at least; with as many different ones or fewer, counts are exact."""

_SAFE = 2**53
_PRECISION = 3_000  # up to about so many values, the server's estimate of their number is close
_TEXTS = (Family.KEYWORD, Family.KEYED, Family.TEXT)
_SORTED = (Family.KEYWORD, Family.KEYED, Family.TEXT, Family.IP, Family.VERSION, Family.INDEX)
_EXTREMES = (Figure.MINIMUM, Figure.MAXIMUM)
_PACKED = {"half_float": "e", "float": "f"}

_AGAINST = {
    Family.TEXT: (
        "it is analysed text without a .keyword subfield, and the server lists no whole texts of it",
        (
            'add a subfield, then write the rows again: PUT /INDEX/_mapping {"properties":{"NAME":{"type":"text",'
            '"fields":{"keyword":{"type":"keyword","ignore_above":256}}}}}'
        ),
    ),
    Family.ID: ("every row has an _id of its own", "count the rows instead"),
    Family.SCORE: ("the score is computed for a page", "summarize another column"),
    Family.NESTED: ("it is the JSON column of a nested array", "summarize one of its leaves"),
    Family.OBJECT: ("it is an object without mapped fields", "map the fields to summarize"),
    Family.FLATTENED: ("it holds the values of many keys", "summarize one of its keys, such as NAME.KEY"),
    Family.MIXED: (
        "the indices behind this name map it to types that are counted differently",
        "summarize it in one index at a time",
    ),
}
_OTHER = ("the server has no list of the values of this type", "use not-null as a filter to count its rows")


class _Term(msgspec.Struct, frozen=True):
    key: bool | int | float | str
    doc_count: Count
    key_as_string: str = ""
    rows: _Filtered | None = None


class _Filtered(msgspec.Struct, frozen=True):
    doc_count: Count


class _Terms(msgspec.Struct, frozen=True):
    buckets: list[_Term]
    error: int = msgspec.field(name="doc_count_error_upper_bound", default=0)
    others: Count = msgspec.field(name="sum_other_doc_count", default=0)


class _Number(msgspec.Struct, frozen=True):
    value: int | float | None = None
    value_as_string: str = ""


class _Figures(msgspec.Struct, frozen=True):
    missing: _Filtered | None = None
    values: _Terms | None = None
    distinct: _Number = _Number()
    low: _Number = _Number()
    high: _Number = _Number()
    elements: _Figures | None = None


class _Answer(SearchAnswer[Hit], frozen=True):
    aggregations: _Figures = _Figures()


class _Spread(msgspec.Struct, frozen=True):
    buckets: list[_Filtered]


class _Spreads(msgspec.Struct, frozen=True):
    spread: _Spread


class _Counted(SearchAnswer[Hit], frozen=True):
    aggregations: _Spreads = _Spreads(_Spread([]))


class _Summing(msgspec.Struct, kw_only=True):
    """A summary while it is made."""

    request: SummaryRequest
    view: View
    field: Field
    dialect: Dialect
    query: Raw
    preference: str
    approximate: dict[Figure, str] = msgspec.field(default_factory=dict)
    absent: dict[Figure, str] = msgspec.field(default_factory=dict)

    @property
    def _counts_distinct(self) -> bool:
        """Whether different values are counted: for bars of dates alone, that costs as much as the bars."""
        return self.request.values > 0 or self.field.family is not Family.DATE

    def exchange(self) -> Exchange[ColumnSummary]:
        answer = yield from self._search(self._body(), _Answer)
        figures = answer.aggregations
        inner = figures.elements or figures
        rows = answer.count or 0
        missing = figures.missing.doc_count if figures.missing is not None else 0
        if self._counts_distinct:
            listed, distinct = self._values(inner)
        else:
            listed, distinct = [], 0 if missing == rows else None
            if missing < rows:
                self.absent[Figure.DISTINCT] = "it is counted along with the values, and none were asked for"
        low, high = self._extremes(inner)
        if missing < rows and (self.field.family in _SORTED or self._is_finer(low, high)):
            low = yield from self._extreme(descending=False)
            high = yield from self._extreme(descending=True)
        bounds, buckets = self._bounds(inner, low, high), []
        if bounds:
            counts = yield from self._spread(bounds)
            buckets = buckets_of([_bound_value(bound, self.field) for bound in bounds], counts)
        self._tell(listed, low, high, bounds, has_values=missing < rows)
        return ColumnSummary(
            column=self.view.columns.get(self.request.column) or column(self.field),
            rows=rows,
            missing=missing,
            values=listed[: self.request.values],
            distinct=distinct,
            minimum=low,
            maximum=high,
            buckets=buckets,
            approximate=self.approximate,
            absent=self.absent,
        )

    def _search(self, body: dict[str, Any], kind: type[A]) -> Exchange[A]:
        where = f"/{target(self.request.object)}/_search?allow_partial_search_results=false"
        answer = protocol.decode((yield from ask(post(f"{where}&preference={self.preference}", body))), kind)
        if partial := answer.partial():
            raise QueryError(partial[0].reason, hint="try again")
        return answer

    # what is asked

    def _body(self) -> dict[str, Any]:
        field = self.field
        inner: dict[str, Any] = {}
        if self._counts_distinct:
            inner["distinct"] = _of("cardinality", field.whole, precision_threshold=_PRECISION)
        # Which of two values a column holds determines its extremes.
        if size := max(self.request.values, 2 if field.family is Family.BOOLEAN else 0):
            inner["values"] = _of("terms", field.whole, size=size, shard_size=max(SHARD_VALUES, size))
        if field.family in (Family.NUMBER, Family.DATE):
            inner |= {"low": _of("min", field.whole), "high": _of("max", field.whole)}
        outer = inner
        if field.nested:
            if "values" in inner:  # which count elements: ask for the rows around them
                inner["values"]["terms"]["order"] = [{"rows": "desc"}, {"_key": "asc"}]
                inner["values"]["aggs"] = {"rows": {"reverse_nested": {}}}
            outer = {"elements": {"nested": {"path": field.nested[-1]}, "aggs": inner}}
        if field.family is not Family.INDEX:
            has = nested(exists(field, self.dialect), [field])
            outer["missing"] = {"filter": {"bool": {"must_not": [has]}}}
        return {"size": 0, "track_total_hits": True, "query": self.query, "aggs": outer}

    def _extreme(self, *, descending: bool) -> Exchange[Value]:
        """Find the smallest or the greatest value by a sort, which keeps the digits that a `min` loses."""
        keys, _ = compile_sort([Sort(self.request.column, descending=descending)], self.view, self.dialect)
        if not keys:
            reason = "the server does not order its values"
            self.absent[Figure.MAXIMUM if descending else Figure.MINIMUM] = reason
            return None
        has = nested(exists(self.field, self.dialect), [self.field])
        query = self.query if self.field.family is Family.INDEX else {"bool": {"filter": [self.query, has]}}
        body: dict[str, Any] = {"size": 1, "query": query, "sort": keys, "_source": False, "track_total_hits": False}
        dates = self.field.family is Family.DATE
        # The column's own format may leave out digits; so does 7.10 with the default one.
        instants = {"field": self.field.field, "format": "strict_date_optional_time_nanos"}
        body |= {"docvalue_fields": [instants]} if dates else {}
        hit = next(iter((yield from self._search(body, SearchAnswer[Hit])).hits.hits), None)
        if hit is None:
            return None
        if dates:
            return str(hit.fields[self.field.field][-1 if descending else 0])  # in order, to the nanosecond
        return msgspec.json.decode(hit.sort[-1]) if hit.sort else None

    def _spread(self, bounds: Sequence[int | float | Decimal]) -> Exchange[list[int]]:
        """Count the rows between bounds. The outermost stay open: the type may have no room for a round number."""
        last = len(bounds) - 2
        ranges = [
            nested(self._range(None if at == 0 else bounds[at], None if at == last else bounds[at + 1]), [self.field])
            for at in range(last + 1)
        ]
        if {*self.field.types} == {"date"} and not self.field.nested and last:
            spread = self._date_range(bounds)
        else:
            spread = {"filters": {"filters": ranges}}
        body = {"size": 0, "track_total_hits": False, "query": self.query, "aggs": {"spread": spread}}
        answer = yield from self._search(body, _Counted)
        counts = [bucket.doc_count for bucket in answer.aggregations.spread.buckets]
        if len(counts) != len(ranges):
            raise QueryError(f"the server counted {len(counts)} of {len(ranges)} buckets")
        return counts

    def _date_range(self, bounds: Sequence[Any]) -> Clause:
        """Count by one pass over the values: under a query, a filter for each bucket takes ten times as long."""
        texts = [instant_text(bound) for bound in bounds]
        ranges = [{"from": low, "to": high} for low, high in pairwise(texts)]
        del ranges[0]["from"], ranges[-1]["to"]
        return _of("date_range", self.field.field, format="strict_date_optional_time", ranges=ranges)

    def _range(self, low: Any, high: Any) -> Clause:
        if low is None and high is None:
            return {"exists": {"field": self.field.field}}  # what the index holds: no malformed value has a bucket
        bounds = {name: value for name, value in (("gte", low), ("lt", high)) if value is not None}
        if self.field.family is Family.DATE:
            texts = {name: instant_text(value) for name, value in bounds.items()}
            return {"range": {self.field.field: texts | {"format": "strict_date_optional_time"}}}
        if signed_zero(self.field):  # the server orders -0.0 before 0
            bounds = {name: -0.0 if value == 0 else value for name, value in bounds.items()}
        return {"range": {self.field.field: bounds}}

    # what came

    def _values(self, figures: _Figures) -> tuple[list[ValueCount], int | None]:
        terms, estimate = figures.values, figures.distinct.value
        listed = [
            ValueCount(self._value(bucket), bucket.doc_count if bucket.rows is None else bucket.rows.doc_count)
            for bucket in (terms.buckets if terms else ())
        ]
        distinct = None if estimate is None else int(estimate)
        if "date_nanos" in self.field.types and listed:
            note = "the server counts values of the same millisecond together"
            self.approximate |= {Figure.VALUES: note, Figure.DISTINCT: note}
        if terms and not terms.others and not terms.error:
            return listed, len(listed)
        self._add(Figure.DISTINCT, ["the server estimates the number of different values (cardinality)"])
        if terms and terms.error:
            reason = f"each shard reports its {SHARD_VALUES:,} most frequent values: "
            shortfall = "by an unknown number" if terms.error < 0 else f"by up to {terms.error:,}"
            self._add(Figure.VALUES, [f"{reason}a count may be too low {shortfall}, and a value may be missing"])
        return listed, distinct

    def _value(self, term: _Term) -> Value:
        if self.field.family is Family.BOOLEAN:
            return term.key_as_string == "true"
        if self.field.family is Family.DATE:
            return _instant(term.key, term.key_as_string)
        return _number(self.field, term.key) if self.field.family is Family.NUMBER else term.key

    def _extremes(self, figures: _Figures) -> tuple[Value, Value]:
        if self.field.family is Family.BOOLEAN:
            values = {self._value(bucket) for bucket in (figures.values.buckets if figures.values else ())}
            return (False not in values if values else None), (True in values if values else None)
        if self.field.family is Family.DATE:
            low, high = figures.low, figures.high
            return _instant(low.value, low.value_as_string), _instant(high.value, high.value_as_string)
        return _number(self.field, figures.low.value), _number(self.field, figures.high.value)

    def _is_finer(self, low: Value, high: Value) -> bool:
        """Return whether values may have digits that a `min` or a `max` does not report."""
        if "date_nanos" in self.field.types and low is not None:
            if not self.field.nested:
                return True
            self.approximate |= dict.fromkeys(_EXTREMES, "the server tells it to the millisecond")
        return any(isinstance(extreme, int) and abs(extreme) >= _SAFE for extreme in (low, high))

    def _bounds(self, figures: _Figures, low: Value, high: Value) -> list[Any]:
        limit = self.request.buckets
        if low is None or high is None or not limit:
            return []
        if self.field.family in (Family.DATE, Family.NUMBER) and not self.field.searchable:  # before 8.1
            self.absent[Figure.BUCKETS] = "the field has no index, and the server counts in ranges only by one"
            return []
        if self.field.family is Family.DATE:
            first, last = figures.low.value, figures.high.value
            bounds = [] if first is None or last is None else instant_bounds(int(first), int(last), most=limit)
            if not bounds:
                self.absent[Figure.BUCKETS] = "some dates lie outside of the years that a histogram shows"
            return list(bounds)
        if (
            self.field.family is Family.NUMBER
            and not isinstance(low, str | bytes)
            and not isinstance(high, str | bytes)
        ):
            whole = isinstance(low, int) and isinstance(high, int)
            round_numbers = list(number_bounds(low, high, most=limit, whole=whole))
            if not self.dialect.reads_any_bound and any(map(self._is_beyond, round_numbers[1:-1])):
                self.absent[Figure.BUCKETS] = "an index behind this name holds smaller numbers, and refuses the others"
                return []
            return round_numbers
        return []

    def _is_beyond(self, bound: Any) -> bool:
        """Return whether an index of the column has no room for a number."""
        rooms = [BOUNDS[kind] for kind in self.field.types if kind in BOUNDS]
        return not all(least <= bound <= greatest for least, greatest in rooms)

    def _tell(
        self, values: Sequence[ValueCount], low: Value, high: Value, bounds: Sequence[Any], *, has_values: bool
    ) -> None:
        """Say where the index differs from the stored rows; where rows `has_values`, it may hold none."""
        extremes = [extreme for extreme in (low, high) if extreme is not None]
        plain_values = [count.value for count in values]
        rule = Op.STARTS if self.field.keyword or self.field.family in _TEXTS else Op.BETWEEN
        self._add(Figure.MISSING, self._reasons(Op.NULL, ()))
        if has_values or extremes or plain_values:
            for figure in {Figure.VALUES, Figure.DISTINCT} - {*self.absent}:
                self._add(figure, [*self._reasons(Op.EQ, plain_values), *self._reasons(rule, plain_values)])
        for figure, figure_values in (
            (Figure.MINIMUM, extremes[:1]), (Figure.MAXIMUM, extremes[1:]), (Figure.BUCKETS, bounds),
        ):  # fmt: skip
            if figure_values:
                self._add(
                    figure, self._reasons(Op.BETWEEN, [_bound_value(value, self.field) for value in figure_values])
                )
            elif has_values and figure is not Figure.BUCKETS:
                self._add(figure, self._reasons(rule, ()))

    def _reasons(self, op: Op, values: Sequence[Any]) -> list[str]:
        exact = tuple(Decimal(repr(value)) if isinstance(value, float) else value for value in values)
        row = exactness.Asked(op=op, values=exact, field=self.field, dialect=self.dialect)
        return exactness.differences(row).approximations

    def _add(self, figure: Figure, reasons: Iterable[str]) -> None:
        earlier_reasons = [self.approximate[figure]] if figure in self.approximate else []
        if all_reasons := list(dict.fromkeys([*earlier_reasons, *reasons])):
            self.approximate[figure] = "; ".join(all_reasons)


def summarize(
    request: SummaryRequest, view: View, dialect: Dialect, *, query: Raw, preference: str
) -> Exchange[ColumnSummary]:
    """Summarize a column.

    Args:
        request: The column, and how much is wanted.
        view: The object.
        dialect: What the server's version takes.
        query: The query of the filter.
        preference: Keeps pages and figures on the same copies of the shards.

    Raises:
        UnsupportedOperationError: The server cannot summarize such a column.
        QueryError: There is no such column, or the server refused or answered in part.
    """
    field = view.find(request.column)
    if field is None:
        reason = f"'{request.object}' has no column '{request.column}'"
        raise QueryError(reason, hint="describe the object to see them", details={"column": request.column})
    if against := _against(field):
        reason, hint = against
        raise UnsupportedOperationError(f"'{request.column}' cannot be summarized: {reason}", hint=hint)
    summing = _Summing(request=request, view=view, field=field, dialect=dialect, query=query, preference=preference)
    return (yield from summing.exchange())


def _against(field: Field) -> tuple[str, str] | None:
    """Return why a column cannot be summarized, and what would help."""
    if field.conflict:
        return field.conflict, "summarize it in one index at a time"
    if len({*field.types}) > 1 and (field.family is Family.DATE or "unsigned_long" in field.types):
        return _AGAINST[Family.MIXED]
    if field.within:
        return "an index behind this name lacks the alias", f"summarize {field.field!r}"
    family = Family.KEYWORD if field.keyword else field.family
    counted = (*_SORTED, Family.NUMBER, Family.DATE, Family.BOOLEAN)
    if family is Family.TEXT or family not in counted:
        return _AGAINST.get(family, _OTHER)
    if not field.aggregatable and family is not Family.INDEX:
        return "it has no doc values, which the server counts by", "map it with doc_values, and write the rows again"
    if not field.exists and family is not Family.INDEX:
        return "the server cannot tell which rows have it", "map it with an index, and write the rows again"
    return None


def _of(kind: str, name: str, **options: Any) -> dict[str, Any]:
    return {kind: {"field": name, **options}}


def _number(field: Field, value: Any) -> Any:
    """Type a number as the column's; the server writes the bits of a short float as a long one."""
    if value is None or isinstance(value, str | bool):
        return value
    if {*field.types} <= {*BOUNDS, "token_count"} and value == int(value):
        return int(value)
    packed = [_PACKED[kind] for kind in field.types if kind in _PACKED]
    if not packed or len(field.types) > 1:
        return value
    return next(short for digits in range(1, 18) if _same(short := float(f"{value:.{digits}g}"), value, packed[0]))


def _same(short: float, value: float, packed: str) -> bool:
    try:
        return struct.pack(packed, short) == struct.pack(packed, value)
    except OverflowError:
        return short == value


def _instant(milliseconds: Any, text: str) -> Value:
    """Return an instant to the millisecond: the column's own format may leave out its time, or its year.

    Args:
        milliseconds: Since 1970.
        text: As the server writes it, for a year that RFC 3339 cannot write.
    """
    if milliseconds is None or not isinstance(milliseconds, int | float):
        return text or milliseconds
    try:
        instant = instant_text(int(milliseconds))
    except OverflowError:
        return text or int(milliseconds)
    return instant if "." in instant else f"{instant.removesuffix('Z')}.000Z"  # no span of a second, as a filter value


def _bound_value(bound: Any, field: Field) -> Value:
    return instant_text(bound) if field.family is Family.DATE and isinstance(bound, int) else bound
