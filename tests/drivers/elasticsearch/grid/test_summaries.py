"""Summaries of columns: figures beside those of an evaluation in Python, on fakes and on real servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from drivers.elasticsearch.test_objects import view
from drivers.elasticsearch.test_on_servers import offers
from drivers.replies import Answers, reply
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman_api import CountRequest, Filter, Operator, QueryError, UnsupportedOperationError
from dragoman_api.summaries import Bucket, ColumnSummary, Figure, SummaryRequest, ValueCount
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl.columns.field_types import Family, Field
from dragoman_querydsl.grid import summaries

if TYPE_CHECKING:
    from dragoman_api import Cell
    from dragoman_querydsl.columns.grid_columns import View

TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
WHOLE = {"type": "long", "coerce": False}
PROPERTIES = {
    "title": TEXT, "note": {"type": "text"}, "stock": WHOLE, "big": WHOLE, "price": {"type": "double"},
    "short": {"type": "float"}, "sold": {"type": "date"}, "exact": {"type": "date_nanos"}, "ok": {"type": "boolean"},
    "tags": {"type": "keyword"}, "ip": {"type": "ip"}, "labels": {"type": "flattened"}, "void": WHOLE,
    "unindexed": {"type": "keyword", "index": False, "doc_values": False}, "place": {"type": "geo_point"},
    "items": {"type": "nested", "properties": {
        "sku": {"type": "keyword"}, "qty": WHOLE, "when": {"type": "date"},
        "parts": {"type": "nested", "properties": {"n": WHOLE}},
    }},
}  # fmt: skip
DOCUMENTS: list[dict[str, Any]] = [
    {
        "title": ["Tea", "tea", "Ale"][at % 3], "note": "some words", "stock": at % 5, "big": 2**62 + at,
        "price": at / 4 - 2, "short": 0.1 * (at % 3), "sold": f"2026-{1 + at % 4:02}-15", "ok": at % 3 == 0,
        "exact": f"2026-01-01T00:00:00.{at:09}Z", "tags": ["a", "b", "a"][: at % 4], "ip": f"10.0.0.{at % 7}",
        "labels": {"env": "prod" if at % 2 else "test"},
        "items": [{"sku": "A", "qty": at, "when": "2026-01-01", "parts": [{"n": at}, {"n": 7}]}, {"sku": "A"},
                  {"sku": "B", "qty": 1}][: at % 4],
    } if at != 5 else {} for at in range(20)
]  # fmt: skip


async def has_flattened(es: Rig) -> bool:
    """Whether the server has the type, which the open build of 7.10 lacks."""
    made = await es.raw("PUT", "/t-labels", {"mappings": {"properties": {"x": {"type": "flattened"}}}})
    await es.raw("DELETE", "/t-labels")
    return made.status == 200


async def indexed(es: Rig) -> str:
    """Make the index, without labels where the server does not know their type, and return its name."""
    if await has_flattened(es):
        return await es.index(PROPERTIES, DOCUMENTS)
    properties = {name: each for name, each in PROPERTIES.items() if name != "labels"}
    documents = [{name: each for name, each in row.items() if name != "labels"} for row in DOCUMENTS]
    return await es.index(properties, documents)


async def summarized(es: Rig, name: str, column: str, *rows: Filter, **more: Any) -> ColumnSummary:
    compiled = await es.filter(name, *rows) if rows else None
    await es.driver.describe_object(name)
    request = SummaryRequest(object=name, column=column, filter=compiled, **more)
    summary: ColumnSummary = await es.driver.summarize_column(request)
    return summary


def shown(found: ColumnSummary) -> list[tuple[Cell, int]]:
    return [(each.value, each.rows) for each in found.values]


class Rules:
    """What a summary tells, whatever the server's version."""

    async def test_values_are_counted_and_rows_without_one(self, es: Rig) -> None:
        name = await indexed(es)
        title = await summarized(es, name, "title")
        assert (title.rows, title.missing, title.present, title.distinct) == (20, 1, 19, 3)
        assert shown(title) == [("Tea", 7), ("tea", 7), ("Ale", 5)]
        assert (title.minimum, title.maximum, title.buckets) == ("Ale", "tea", [])
        assert (title.approximate, title.absent, title.column.name) == ({}, {}, "title")
        stock = await summarized(es, name, "stock", values=2)
        assert stock.values == [ValueCount(1, 4), ValueCount(2, 4)]
        assert Figure.DISTINCT in stock.approximate
        assert stock.distinct == 5
        ok = await summarized(es, name, "ok", values=1)
        assert (shown(ok), ok.minimum, ok.maximum, ok.distinct) == ([(False, 12)], False, True, 2)
        assert shown(await summarized(es, name, "tags")) == [("a", 14), ("b", 10)]
        if await has_flattened(es):
            assert shown(await summarized(es, name, "labels.env")) == [("prod", 9), ("test", 10)][::-1]
        address = await summarized(es, name, "ip", values=1)
        assert (shown(address), address.minimum, address.maximum) == ([("10.0.0.0", 3)], "10.0.0.0", "10.0.0.6")
        assert shown(await summarized(es, name, "_index")) == [(name, 20)]

    async def test_numbers_have_a_histogram_and_keep_their_digits(self, es: Rig) -> None:
        name = await indexed(es)
        price = await summarized(es, name, "price", buckets=4)
        assert (price.minimum, price.maximum) == (-2.0, 2.75)
        assert price.buckets == [Bucket(-2.0, 0.0, 7), Bucket(0.0, 2.0, 8), Bucket(2.0, 4.0, 4)]
        assert not {*price.approximate} - {Figure.DISTINCT}
        big = await summarized(es, name, "big", buckets=5, values=1)
        assert (big.minimum, big.maximum) == (2**62, 2**62 + 19)
        assert type(big.minimum) is int
        assert sum(each.rows for each in big.buckets) == 19
        assert big.buckets[0] == Bucket(2**62 - 4, 2**62 + 1, 1)
        short = await summarized(es, name, "short")
        assert {each.value for each in short.values} == {0.0, 0.1, 0.2}
        assert "24 bits" in short.approximate[Figure.VALUES]
        assert (short.minimum, short.maximum) == (0.0, 0.2)

    async def test_a_value_that_its_column_cannot_hold_has_no_bucket(self, es: Rig) -> None:
        numbers = {"n": {"type": "long", "ignore_malformed": True}}
        name = await es.index(numbers, [{"n": 1}, {"n": 5}, {"n": 9}, {"n": "many"}])
        for most, counts in ((1, [3]), (2, [1, 2])):
            summary = await summarized(es, name, "n", buckets=most)
            assert ([bucket.rows for bucket in summary.buckets], summary.present) == (counts, 4)

    async def test_dates_have_buckets_of_the_calendar(self, es: Rig) -> None:
        name = await indexed(es)
        sold = await summarized(es, name, "sold", buckets=6)
        assert shown(sold)[0] == ("2026-01-15T00:00:00.000Z", 5)
        assert (sold.minimum, sold.maximum) == ("2026-01-15T00:00:00.000Z", "2026-04-15T00:00:00.000Z")
        assert sold.buckets == [
            Bucket(f"2026-{month:02}-01T00:00:00Z", f"2026-{month + 1:02}-01T00:00:00Z", 4 if month == 2 else 5)
            for month in (1, 2, 3, 4)
        ]
        bars = await summarized(es, name, "sold", values=0, buckets=6)
        assert (bars.buckets, bars.values, bars.distinct) == (sold.buckets, [], None)
        assert "none were asked for" in bars.absent[Figure.DISTINCT]
        exact = await summarized(es, name, "exact", values=1)
        assert shown(exact) == [("2026-01-01T00:00:00.000Z", 19)]
        assert "millisecond" in exact.approximate[Figure.VALUES]
        assert sum(each.rows for each in exact.buckets) == 19
        assert (exact.minimum, exact.maximum) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000000019Z")
        assert Figure.MAXIMUM not in exact.approximate

    async def test_a_row_with_several_dates_counts_once_in_each_bucket(self, es: Rig) -> None:
        days = [["2026-01-01", "2026-01-02", "2026-03-05"], ["2026-03-01"], []]
        name = await es.index({"at": {"type": "date"}}, [{"at": day} for day in days])
        found = await summarized(es, name, "at", values=0, buckets=3)
        assert [(bucket.lower, bucket.rows) for bucket in found.buckets] == [
            (f"2026-0{month}-01T00:00:00Z", rows) for month, rows in ((1, 1), (2, 0), (3, 2))
        ]
        none = await summarized(es, name, "at", Filter("at", Operator.NULL), values=0)
        assert (none.missing, none.distinct, none.absent) == (1, 0, {})

    @pytest.mark.parametrize("kind", ["date", "date_nanos"])
    @pytest.mark.parametrize("format", ["yyyy-MM-dd||strict_date_optional_time", "yyyy||strict_date_optional_time"])
    async def test_an_instant_is_not_told_in_a_format_of_its_column_that_leaves_out_digits(
        self,
        es: Rig,
        kind: str,
        format: str,  # noqa: A002
    ) -> None:
        fraction = "123" if kind == "date" else "123456789"
        texts = [f"2024-01-31T{hour:02}:00:00.{fraction}Z" for hour in (1, 2, 3)]
        name = await es.index({"at": {"type": kind, "format": format}}, [{"at": text} for text in texts])
        found = await summarized(es, name, "at")
        assert [value for value, _ in shown(found)] == [f"2024-01-31T{hour:02}:00:00.123Z" for hour in (1, 2, 3)]
        assert (found.minimum, found.maximum) == (texts[0], texts[-1])

    async def test_an_element_of_a_nested_array_counts_for_its_row(self, es: Rig) -> None:
        name = await indexed(es)
        sku = await summarized(es, name, "items.sku")
        held = [each for each in DOCUMENTS if each.get("items")]
        assert (sku.rows, sku.missing) == (20, 20 - len(held))
        assert shown(sku) == [("A", len(held)), ("B", sum(len(each["items"]) == 3 for each in held))]
        assert (sku.minimum, sku.maximum) == ("A", "B")
        quantity = await summarized(es, name, "items.qty", buckets=5)
        assert (quantity.minimum, quantity.maximum) == (1, 19)
        held_in = [{item["qty"] for item in each["items"] if "qty" in item} for each in held]
        for bucket in quantity.buckets:
            assert bucket.rows == sum(any(bucket.lower <= n < bucket.upper for n in each) for each in held_in)  # type: ignore[operator]
        parts = await summarized(es, name, "items.parts.n", values=1, buckets=2)
        assert shown(parts) == [(7, len(held))]
        assert parts.missing == 20 - len(held)
        when = await summarized(es, name, "items.when")
        assert shown(when) == [("2026-01-01T00:00:00.000Z", len(held))]

    async def test_a_filter_narrows_every_figure(self, es: Rig) -> None:
        name = await indexed(es)
        rows = [Filter("stock", ">", 2), Filter("items.sku", "=", "B", group="1")]
        found = await summarized(es, name, "stock", *rows)
        compiled = await es.filter(name, *rows)
        assert found.rows == await es.driver.count_rows(CountRequest(object=name, filter=compiled)) > 0
        assert sum(count for _, count in shown(found)) == found.rows
        assert found.minimum == 3
        none = await summarized(es, name, "price", Filter("stock", ">", 99))
        assert (none.rows, none.missing, none.present, none.distinct) == (0, 0, 0, 0)
        assert (none.values, none.minimum, none.maximum, none.buckets) == ([], None, None, [])

    async def test_a_column_without_values_and_an_object_without_rows(self, es: Rig) -> None:
        name = await indexed(es)
        void = await summarized(es, name, "void")
        assert (void.rows, void.missing, void.values, void.minimum, void.buckets) == (20, 20, [], None, [])
        empty = await es.index({name: each for name, each in PROPERTIES.items() if name != "labels"}, [], name="empty")
        for column in ("title", "price", "sold", "items.qty", "ok", "ip"):
            found = await summarized(es, empty, column)
            assert (found.rows, found.missing, found.values, found.minimum, found.maximum) == (0, 0, [], None, None)

    async def test_a_column_that_cannot_be_summarized_says_why_and_what_would_help(self, es: Rig) -> None:
        name = await indexed(es)
        reasons = {
            "note": "keyword", "_id": "of its own", "_score": "page", "items": "nested", "unindexed": "doc values",
            "place": "list of the values",
        }  # fmt: skip
        if await has_flattened(es):
            reasons["labels"] = "many keys"
        for column, reason in reasons.items():
            with pytest.raises(UnsupportedOperationError, match=reason) as caught:
                await summarized(es, name, column)
            assert caught.value.hint
        with pytest.raises(QueryError, match="no column") as missing:
            await summarized(es, name, "nope")
        assert missing.value.details == {"column": "nope"}

    async def test_several_indices_and_one_that_lacks_the_column(self, es: Rig) -> None:
        one = await es.index({"n": WHOLE, "k": {"type": "keyword"}}, [{"n": 1, "k": "x"}, {"n": 2}], name="many-a")
        two = await es.index({"k": {"type": "keyword"}}, [{"k": "x"}, {"k": "y"}], name="many-b")
        both = f"{one},{two}"
        found = await summarized(es, both, "n")
        assert (found.rows, found.missing, shown(found)) == (4, 2, [(1, 1), (2, 1)])
        assert (found.minimum, found.maximum, found.buckets) == (1, 2, [Bucket(1, 2, 1), Bucket(2, 3, 1)])
        text = await summarized(es, both, "k")
        assert (text.missing, shown(text), text.minimum, text.maximum) == (1, [("x", 2), ("y", 1)], "x", "y")

    async def test_what_the_index_leaves_out_or_changes_is_said(self, es: Rig) -> None:
        properties = {
            "k": {"type": "keyword", "ignore_above": 3}, "n": {"type": "keyword", "null_value": "none"},
            "c": {"type": "long"},
        }  # fmt: skip
        name = await es.index(properties, [{"k": "abcd", "n": None, "c": 1}, {"k": "ab", "n": "x", "c": 1}])
        left = await summarized(es, name, "k")
        assert "longer than 3" in left.approximate[Figure.VALUES]
        assert shown(left) == [("ab", 1)]
        nulls = await summarized(es, name, "n")
        assert "null_value" in nulls.approximate[Figure.MISSING]
        assert "null_value" in nulls.approximate[Figure.VALUES]
        assert "coerce" in (await summarized(es, name, "c")).approximate[Figure.VALUES]

    async def test_what_is_said_does_not_depend_on_values_that_came(self, es: Rig) -> None:
        """The only value is not indexed; the only value counts as another, and no values are wanted."""
        properties = {"k": {"type": "keyword", "ignore_above": 3}, "b": {"type": "boolean"}}
        name = await es.index(properties, [{"k": "abcd", "b": ""}])
        left = await summarized(es, name, "k", values=0)
        assert (left.rows, left.values, left.minimum, left.maximum) == (1, [], None, None)
        assert Figure.BUCKETS not in left.approximate  # a text has none
        if not left.missing:
            figures = (Figure.VALUES, Figure.DISTINCT, Figure.MINIMUM, Figure.MAXIMUM)
            assert all("longer than 3" in left.approximate[figure] for figure in figures)
        empty = await summarized(es, name, "b", values=0)
        assert (empty.missing, empty.values, empty.distinct) == (0, [], 1)
        assert "empty text" in empty.approximate[Figure.DISTINCT]

    async def test_numbers_without_an_index_have_no_histogram_where_ranges_need_one(self, es: Rig) -> None:
        spec = {"type": "integer", "index": False, "coerce": False}
        name = await es.index({"n": spec}, [{"n": at} for at in (1, 2, 2)])
        found = await summarized(es, name, "n", values=5, buckets=4)
        assert (found.minimum, found.maximum, shown(found)) == (1, 2, [(2, 2), (1, 1)])
        if es.version >= (8, 1):
            assert sum(each.rows for each in found.buckets) == 3
        else:
            assert (found.buckets, "no index" in found.absent[Figure.BUCKETS]) == ([], True)


class TestOnFake(OnFake, Rules):
    """The rules on fakes."""


class TestOnServer(OnServer, Rules):
    """The rules on real servers."""

    async def test_shards_estimate_and_say_so(self, es: Rig) -> None:
        """More values than a shard reports: counts may be too low, and the summary says by how much."""
        documents = [{"k": f"v{at % 3_000}"} for at in range(6_100)]
        settings = {"number_of_shards": 4}
        name = await es.index({"k": {"type": "keyword"}}, documents, name="wide", settings=settings)
        found = await summarized(es, name, "k", values=5)
        assert "too low" in found.approximate[Figure.VALUES]
        assert "estimates" in found.approximate[Figure.DISTINCT]
        assert found.distinct is not None
        assert 2_900 < found.distinct < 3_100
        assert await offers(es, type="keyword")


class TestRequests:
    """What is sent, and what of an answer is believed."""

    async def test_text_takes_one_search_and_numbers_two(self) -> None:
        async with on_fake("8.19.21") as es:
            name = await indexed(es)
            for column, searches in {"price": 2, "title": 3, "ok": 1, "big": 4, "stock": 2}.items():
                mark = len(es.sent("POST", "_search"))
                await summarized(es, name, column)
                assert len(es.sent("POST", "_search")) - mark == searches, column

    async def test_the_outermost_buckets_are_open_and_those_between_meet(self) -> None:
        async with on_fake("8.19.21") as es:
            name = await indexed(es)
            found = await summarized(es, name, "stock")
            body = json.loads(es.sent("POST", "_search")[-1].body or "")
            ranges = [each["range"]["stock"] for each in body["aggs"]["spread"]["filters"]["filters"]]
            assert len(ranges) == len(found.buckets) > 1
            assert (ranges[0].keys(), ranges[-1].keys()) == ({"lt"}, {"gte"})
            for one, following, bucket in zip(ranges, ranges[1:], found.buckets, strict=False):
                assert one["lt"] == following["gte"] == bucket.upper

    async def test_a_failed_shard_is_an_error_not_a_smaller_count(self) -> None:
        async with on_fake("8.19.21") as es:
            name = await es.index(PROPERTIES, DOCUMENTS, settings={"number_of_shards": 2})
            assert es.fake is not None
            es.fake.cluster.failing_shards.add((name, 0))
            with pytest.raises(QueryError):
                await summarized(es, name, "stock")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_short_float_is_written_with_the_fewest_digits_that_bring_it_back(value: float) -> None:
    field = Field(name="f", types=("float",), family=Family.NUMBER, field="f")
    found = summaries._number(field, value)
    assert summaries._same(found, value, "f")
    assert len(repr(found)) <= len(repr(value))


# one summary of one answer, without a server


def asked(
    column: str, found: View, *answers: dict[str, Any], **more: Any
) -> tuple[ColumnSummary, list[dict[str, Any]]]:
    """Summarize a column by canned answers, without a histogram; also return the bodies that were sent."""
    request = SummaryRequest(**{"object": "x", "column": column, "buckets": 0} | more)
    script = Answers(*map(reply, answers))
    exchange = summaries.summarize(request, found, dialect_of((8, 19, 21)), query=Raw(b"{}"), preference="p")
    summary = script.run(exchange)
    return summary, [json.loads(each.body or "") for each in script.asked]


def figures(rows: int, missing: int = 0, **more: Any) -> dict[str, Any]:
    return {"hits": {"hits": [], "total": {"value": rows, "relation": "eq"}},
            "aggregations": {"missing": {"doc_count": missing}, "distinct": {"value": 9}, **more}}  # fmt: skip


def terms(*values: Any, others: int = 0, error: int = 0) -> dict[str, Any]:
    buckets = [{"key": value, "doc_count": 3 - at} for at, value in enumerate(values)]
    return {"buckets": buckets, "sum_other_doc_count": others, "doc_count_error_upper_bound": error}


def extreme(sort: Any, **more: Any) -> dict[str, Any]:
    return {"hits": {"hits": [{"_index": "a", "_id": "1", "sort": [sort], **more}]}}


@pytest.mark.parametrize(
    ("others", "error", "values", "distinct"),
    [
        (0, 0, "", False),
        (5, 0, "", True),
        (5, 7, "too low by up to 7", True),
        (5, -1, "too low by an unknown number", True),
        (0, 7, "too low by up to 7", True),
        (0, -1, "too low by an unknown number", True),
    ],
)
def test_what_shards_leave_out_or_do_not_know_is_said(others: int, error: int, values: str, *, distinct: bool) -> None:
    found = view({"properties": {"k": {"type": "keyword"}}})
    answer = figures(9, 2, values=terms("a", "b", others=others, error=error))
    summary, _ = asked("k", found, answer, extreme("a"), extreme("z"))
    assert (summary.rows, summary.missing, summary.minimum, summary.maximum) == (9, 2, "a", "z")
    assert shown(summary) == [("a", 3), ("b", 2)]
    assert summary.distinct == (9 if distinct else 2)
    assert values in summary.approximate.get(Figure.VALUES, "")
    assert (Figure.VALUES in summary.approximate, Figure.DISTINCT in summary.approximate) == (bool(values), distinct)


@pytest.mark.parametrize(
    ("low", "high", "searches"),
    [
        (0, 2**53 - 1, 1), (0, 2**53, 3), (-(2**53), 0, 3), (1 - 2**53, 0, 1), (None, None, 1),
    ],
)  # fmt: skip
def test_extremes_that_a_double_may_not_hold_are_looked_up_with_their_digits(
    low: Any, high: Any, searches: int
) -> None:
    """The aggregation told 2^53 of 2^53 + 1; the sort tells what is stored."""
    found = view({"properties": {"n": WHOLE}})
    answer = figures(3, 0 if low is not None else 3, low={"value": low}, high={"value": high}, values=terms())
    exact = [extreme(low), extreme(2**53 + 1)][: searches - 1]
    summary, bodies = asked("n", found, answer, *exact)
    assert (summary.minimum, summary.maximum) == ((low, 2**53 + 1) if searches == 3 else (low, high))
    assert [next(iter(body["sort"][0].values()))["order"] for body in bodies[1:]] == ["asc", "desc"][: searches - 1]


def test_extremes_of_nanoseconds_are_the_first_and_the_last_of_a_row() -> None:
    found = view({"properties": {"d": {"type": "date_nanos"}}})
    texts = ["2024-12-31T00:00:00.000000001Z", "2024-12-31T23:59:59.999999999Z"]
    answer = figures(1, low={"value": 1735603200000.0}, high={"value": 1735689599999.0}, values=terms())
    rows = [extreme(1, fields={"d": texts}), extreme(1, fields={"d": texts})]
    summary, bodies = asked("d", found, answer, *rows)
    assert (summary.minimum, summary.maximum) == (texts[0], texts[1])
    assert all(body["docvalue_fields"][0]["format"] == "strict_date_optional_time_nanos" for body in bodies[1:])


def test_a_leaf_of_an_inner_array_is_counted_there_and_by_its_rows() -> None:
    inner = {"type": "nested", "properties": {"k": {"type": "keyword"}}}
    found = view({"properties": {"n": {"type": "nested", "properties": {"in": inner}}}})
    bucket = {"key": "a", "doc_count": 7, "rows": {"doc_count": 2}}
    elements = {"doc_count": 9, "distinct": {"value": 1}, "values": terms() | {"buckets": [bucket]}}
    summary, bodies = asked("n.in.k", found, figures(3, 1, elements=elements), extreme("a"), extreme("a"))
    assert shown(summary) == [("a", 2)]
    assert [body["size"] for body in bodies] == [0, 1, 1]
    assert bodies[0]["aggs"]["elements"]["nested"] == {"path": "n.in"}
    assert "missing" in bodies[0]["aggs"]
    assert bodies[0]["aggs"]["elements"]["aggs"]["values"]["aggs"] == {"rows": {"reverse_nested": {}}}


@pytest.mark.parametrize(
    ("held", "low", "high"),
    [((True, False), False, True), ((True,), True, True), ((False,), False, False), ((), None, None)],
)
def test_the_extremes_of_a_boolean_are_among_its_values(held: tuple[bool, ...], low: Any, high: Any) -> None:
    found = view({"properties": {"b": {"type": "boolean"}}})
    values = terms(*map(int, held))
    for bucket, value in zip(values["buckets"], held, strict=True):
        bucket["key_as_string"] = str(value).lower()
    summary, bodies = asked("b", found, figures(3, 0 if held else 3, values=values), values=1)
    assert (summary.minimum, summary.maximum) == (low, high)
    assert shown(summary) == [(value, 3) for value in held[:1]]
    assert bodies[0]["aggs"]["values"]["terms"]["size"] == 2


def test_every_reason_of_a_figure_is_said_beside_the_others() -> None:
    found = view({"properties": {"k": {"type": "keyword", "ignore_above": 3, "null_value": "nil"}}})
    summary, _ = asked("k", found, figures(9, values=terms("nil", others=1, error=2)), extreme("a"), extreme("z"))
    values = summary.approximate[Figure.VALUES]
    assert all(word in values for word in ("too low by up to 2", "longer than 3", "null_value"))
    assert all(word in summary.approximate[Figure.DISTINCT] for word in ("estimates", "null_value"))
    for figure in (Figure.MINIMUM, Figure.MAXIMUM, Figure.MISSING):
        assert "null_value" in summary.approximate[figure]


@pytest.mark.parametrize("more", [{"_shards": {"total": 2, "failed": 1}}, {"timed_out": True}])
def test_figures_of_a_part_are_none_whichever_request_told_them(more: dict[str, Any]) -> None:
    found = view({"properties": {"k": {"type": "keyword"}}})
    whole = [figures(9, values=terms("a")), extreme("a"), extreme("z")]
    for at in range(3):
        answers = [answer | (more if number == at else {}) for number, answer in enumerate(whole)]
        with pytest.raises(QueryError, match="rows are missing"):
            asked("k", found, *answers[: at + 1])


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("one", "two", "against"),
    [
        ({"type": "date"}, {"type": "date_nanos"}, "counted differently"),
        ({"type": "long"}, {"type": "unsigned_long"}, "counted differently"),
        ({"type": "long"}, {"type": "keyword"}, "counted differently"),
        ({"type": "long"}, {"properties": {"a": {"type": "long"}}}, "an object in one index"),
        ({"type": "text"}, {"type": "text"}, "analysed text"),
        ({"type": "long"}, {"type": "integer"}, ""),
    ],
)
def test_a_column_of_several_types_is_summarized_only_where_they_are_counted_alike(
    one: dict[str, Any], two: dict[str, Any], against: str, order: int
) -> None:
    found = view(*({"properties": {"x": spec}} for spec in (one, two)[::order]))
    with pytest.raises(UnsupportedOperationError if against else IndexError, match=against or "pop"):
        asked("x", found)


def test_a_column_that_only_some_indices_hold_by_an_alias_is_not_summarized() -> None:
    alias = {"x": {"type": "long"}, "al": {"type": "alias", "path": "x"}}
    found = view({"properties": alias}, {"properties": {"x": {"type": "long"}}})
    with pytest.raises(UnsupportedOperationError, match="lacks the alias"):
        asked("al", found)


def test_zero_has_no_sign_where_a_bucket_begins() -> None:
    """The server orders -0.0 before 0, and a bucket from 0 holds both."""
    for kind, low in (("double", "-0.0"), ("long", "0")):
        found = view({"properties": {"n": {"type": kind, "coerce": False} if kind == "long" else {"type": kind}}})
        answer = figures(4, low={"value": -4}, high={"value": 4}, values=terms())
        request = SummaryRequest(object="x", column="n", buckets=2)
        exchange = summaries.summarize(request, found, dialect_of((8, 19, 21)), query=Raw(b"{}"), preference="p")
        next(exchange)
        [sent] = exchange.send([reply(answer)])
        assert f'"gte":{low}' in (sent.body or "")
        assert f'"lt":{low}' in (sent.body or "")
