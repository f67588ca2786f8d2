"""Summaries of columns: figures beside those of an evaluation in Python, on fakes and on real servers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from drivers.replies import reply
from drivers.weaviate.rig import INDEXED, OnFake, OnServer, Rig, key, needs, on_fake, on_server

from dragoman_api import CountRequest, Filter, QueryError, UnsupportedOperationError
from dragoman_api.summaries import Bucket, ColumnSummary, Figure, SummaryRequest
from dragoman_weaviate import aggregates
from dragoman_weaviate.grid.summaries import FEW_BUCKETS, nanoseconds

if TYPE_CHECKING:
    from dragoman_api import Cell

FIELD = {"dataType": ["text"], "tokenization": "field"}
TYPES: dict[str, Any] = {
    "word": "text", "code": FIELD, "tags": "text[]", "stock": "int", "sizes": "int[]", "price": "number",
    "big": "int", "ok": "boolean", "flags": "boolean[]", "sold": "date", "shelf": "uuid", "shelves": "uuid[]",
    "void": "int", "many": "number", "days": "date", "range": {"dataType": ["int"], "indexFilterable": False,
    "indexRangeFilters": True}, "bare": {"dataType": ["int"], "indexFilterable": False, "indexRangeFilters": False},
    "place": "geoCoordinates", "cover": "blob",
    "author": {"dataType": ["object"], "nestedProperties": [{"name": "name", "dataType": ["text"]}]},
}  # fmt: skip
DATES = ("2026-01-15T10:00:00Z", "2026-01-15T11:00:00+01:00", "2026-03-01T00:00:00.123456789Z", "1969-12-31T23:59:59Z")
NUMBER = 700
OBJECTS: list[dict[str, Any]] = [
    {
        "word": ["Tea time", "tea", ""][at % 3], "code": ["  a ", "A", "é", "A"][at % 4],
        "tags": ["a", "b", "a"][: at % 4],
        "stock": at % 5 - 2, "sizes": [at % 3, 7, 7][: at % 4], "price": [0.1, -0.0, 0.0, 1e300, -2.5][at % 5],
        "big": [2**53 + 2, 2**40, -5][at % 3], "ok": at % 3 == 0, "flags": [True, False, True][: at % 4],
        "sold": DATES[at % 4], "shelf": key(at % 3), "shelves": [key(1), key(2)][: at % 3], "many": at / 4 - 30,
        "days": f"2026-{1 + at % 12:02}-{1 + at % 28:02}T00:00:{at % 60:02}.{at:03}Z", "range": at, "bare": at % 2,
    } if at != 5 else {} for at in range(NUMBER)
]  # fmt: skip


async def summarized(wv: Rig, name: str, column: str, *rows: Filter, **more: Any) -> ColumnSummary:
    compiled = await wv.filter(name, *rows) if rows else None
    await wv.driver.describe_object(name)
    request = SummaryRequest(object=name, column=column, filter=compiled, **more)
    summary: ColumnSummary = await wv.driver.summarize_column(request)
    return summary


def shown(found: ColumnSummary) -> list[tuple[Cell, int]]:
    return [(each.value, each.rows) for each in found.values]


def counted(column: str, objects: list[dict[str, Any]] | None = None) -> Counter[Any]:
    """Count the rows of each value, once for each row."""
    counts: Counter[Any] = Counter()
    for each in OBJECTS if objects is None else objects:
        value = each.get(column)
        counts.update({*value} if isinstance(value, list) else () if value is None else (value,))
    return counts


class Rules:
    """What a summary tells, whatever the number of shards."""

    shards = 1

    async def library(self, wv: Rig) -> str:
        return await wv.collection(TYPES, OBJECTS, shards=self.shards)

    async def test_texts_are_shown_as_they_are_stored(self, wv: Rig) -> None:
        """Without a filter, the server lists them as JSON escapes them."""
        texts = ["R&D <b>", "two\nlines", 'say "hi"', "C:\\new", "tab\there", "plain é😀", "\u2028"]
        rows = [{"code": text} for at, text in enumerate(texts) for _ in range(at + 1)]
        name = await wv.collection({"code": FIELD}, rows, shards=self.shards)
        for filters, held in (((), texts), ((Filter("code", "!=", texts[0]),), texts[1:])):
            found = await summarized(wv, name, "code", *filters)
            assert shown(found) == [(text, texts.index(text) + 1) for text in reversed(held)]
            assert (found.distinct, found.minimum, found.maximum) == (len(held), min(held), max(held))

    async def test_values_are_counted_row_by_row(self, wv: Rig) -> None:
        name = await self.library(wv)
        for column in (
            "word",
            "code",
            "tags",
            "stock",
            "sizes",
            "price",
            "big",
            "ok",
            "flags",
            "sold",
            "shelf",
            "shelves",
        ):
            found, held = await summarized(wv, name, column, values=100), counted(column)
            assert dict(shown(found)) == held, column
            assert [rows for _, rows in shown(found)] == sorted(held.values(), reverse=True), column
            assert (found.rows, found.distinct) == (NUMBER, len(held)), column
            assert found.missing == sum(each.get(column) in (None, []) for each in OBJECTS), column
            assert not {*found.approximate}, column
        few = await summarized(wv, name, "stock", values=2)
        assert (len(few.values), few.distinct) == (2, 5)

    async def test_extremes_and_a_histogram_of_values_that_are_all_known(self, wv: Rig) -> None:
        name = await self.library(wv)
        stock = await summarized(wv, name, "stock", buckets=5)
        held = counted("stock")
        assert (stock.minimum, stock.maximum) == (-2, 2)
        assert stock.buckets == [Bucket(at, at + 1, held[at]) for at in range(-2, 3)]
        price = await summarized(wv, name, "price")
        assert (price.minimum, price.maximum) == (-2.5, 1e300)
        assert sum(each.rows for each in price.buckets) == NUMBER - 1
        big = await summarized(wv, name, "big")
        assert (big.minimum, big.maximum, type(big.maximum)) == (-5, 2**53 + 2, int)
        sold = await summarized(wv, name, "sold", buckets=6)
        assert (sold.minimum, sold.maximum) == (DATES[3], DATES[2])
        assert sum(each.rows for each in sold.buckets) == NUMBER - 1
        code = await summarized(wv, name, "code")
        assert (code.minimum, code.maximum, code.buckets) == ("  a ", "é", [])
        ok = await summarized(wv, name, "ok")
        assert (ok.minimum, ok.maximum) == (False, True)
        assert Figure.BUCKETS in (await summarized(wv, name, "sizes", buckets=1)).absent
        sizes = await summarized(wv, name, "sizes", buckets=8)
        assert [each.rows for each in sizes.buckets] == [counted("sizes")[at] for at in range(8)]

    async def test_more_values_than_a_shard_reports_are_counted_between_bounds(self, wv: Rig) -> None:
        name = await self.library(wv)
        held = counted("many")
        for most in (1, 2, 3, 4, 12):
            found = await summarized(wv, name, "many", buckets=most)
            assert (found.rows, found.missing, found.minimum, found.maximum) == (NUMBER, 1, -30.0, 144.75)
            assert 0 < len(found.buckets) <= most
            for each in found.buckets:
                assert each.rows == sum(held[at] for at in held if each.lower <= at < each.upper)  # type: ignore[operator]
            assert {*found.approximate} <= {Figure.VALUES}
            assert (found.distinct, {*found.absent}) == (None, {Figure.DISTINCT})
            assert "at least" in found.absent[Figure.DISTINCT]
        days = await summarized(wv, name, "days", buckets=12)
        instants = [datetime.fromisoformat(each) for each in counted("days")]
        assert [datetime.fromisoformat(str(each)) for each in (days.minimum, days.maximum)] == [
            min(instants), max(instants)
        ]  # fmt: skip
        assert "1677" in days.approximate[Figure.MINIMUM]
        assert "1677" in days.approximate[Figure.BUCKETS]
        assert [each.rows for each in days.buckets] == [
            sum(rows for text, rows in counted("days").items() if text.startswith(f"2026-{month:02}"))
            for month in range(1, 13)
        ]

    async def test_a_filter_narrows_every_figure(self, wv: Rig) -> None:
        name = await self.library(wv)
        chosen = [each for each in OBJECTS if each.get("stock", 0) > 0]
        rows = Filter("stock", ">", 0)
        for column in ("word", "tags", "stock", "ok", "flags", "sold", "shelf", "many", "days", "bare"):
            found, held = await summarized(wv, name, column, rows), counted(column, chosen)
            compiled = await wv.filter(name, rows)
            count = await wv.driver.count_rows(CountRequest(object=name, filter=compiled))
            assert found.rows == count == len(chosen), column
            if found.distinct is not None:
                assert shown(found) == [(each.value, held[each.value]) for each in found.values], column
            if column not in ("tags", "flags"):
                assert found.missing == 0, column
                assert not found.buckets or sum(each.rows for each in found.buckets) == len(chosen), column
        many = await summarized(wv, name, "many", rows)
        assert (many.minimum, many.maximum) == (min(counted("many", chosen)), max(counted("many", chosen)))
        none = await summarized(wv, name, "price", Filter("stock", ">", 99))
        assert (none.rows, none.missing, none.present, none.distinct) == (0, 0, 0, 0)
        assert (none.values, none.minimum, none.maximum, none.buckets, none.absent) == ([], None, None, [], {})

    async def test_a_column_without_values_and_a_collection_without_rows(self, wv: Rig) -> None:
        name = await self.library(wv)
        empty = await wv.collection(TYPES, name="Empty")
        void = await summarized(wv, name, "void")
        assert (void.rows, void.missing, void.distinct, void.values, void.minimum) == (NUMBER, NUMBER, 0, [], None)
        for column in ("word", "tags", "price", "sold", "ok", "shelf", "bare", "range"):
            found = await summarized(wv, empty, column)
            assert (found.rows, found.missing, found.distinct, found.values, found.minimum) == (0, 0, 0, [], None)
            assert (found.absent, found.approximate) == ({}, {})

    async def test_without_values_nothing_is_grouped(self, wv: Rig) -> None:
        name = await self.library(wv)
        mark = len(wv.sent("POST", "/v1/graphql"))
        stock = await summarized(wv, name, "stock", values=0, buckets=5)
        assert "groupBy" not in str(wv.sent("POST", "/v1/graphql")[mark:])
        assert (stock.values, stock.minimum, stock.maximum, stock.missing) == ([], -2, 2, 1)
        assert [each.rows for each in stock.buckets] == [counted("stock")[at] for at in range(-2, 3)]
        assert "none were asked for" in stock.absent[Figure.DISTINCT]

    async def test_a_column_without_an_index_is_grouped_all_the_same(self, wv: Rig) -> None:
        name = await self.library(wv)
        bare = await summarized(wv, name, "bare")
        assert (dict(shown(bare)), bare.missing, bare.minimum, bare.maximum) == (counted("bare"), 1, 0, 1)
        ranged = await summarized(wv, name, "range")
        assert (ranged.missing, ranged.minimum, ranged.buckets) == (1, None, [])
        assert "indexFilterable" in ranged.absent[Figure.MINIMUM]

    async def test_a_collection_that_does_not_index_nulls_cannot_tell_which_arrays_are_missing(self, wv: Rig) -> None:
        name = await wv.collection({"tags": "text[]", "n": "int"}, [{"tags": ["a"]}, {"n": 1}], index={})
        tags = await summarized(wv, name, "tags")
        assert (tags.missing, shown(tags)) == (None, [("a", 1)])
        assert "indexNullState" in tags.absent[Figure.MISSING]
        assert (await summarized(wv, name, "n")).missing == 1

    async def test_integers_and_dates_that_the_index_does_not_hold_are_said(self, wv: Rig) -> None:
        """The index takes 2^63 - 1 for the smallest integer, and the year 9999 for another."""
        objects = [{"i": 2**63 - 1, "d": "9999-01-01T00:00:00Z"}, {"i": 3, "d": "2026-01-01T00:00:00Z"}]
        name = await wv.collection({"i": "int", "d": "date"}, objects)
        listed = await summarized(wv, name, "i")
        assert (listed.minimum, listed.maximum, listed.approximate) == (3, 9223372036854776000, {})
        unlisted = await summarized(wv, name, "i", values=0)
        assert unlisted.minimum == -9223372036854776000
        assert {Figure.MINIMUM, Figure.MAXIMUM, Figure.BUCKETS} <= {*unlisted.approximate}
        assert "smallest" in unlisted.approximate[Figure.MINIMUM]
        dates = await summarized(wv, name, "d")
        assert (dates.maximum, dates.approximate) == ("9999-01-01T00:00:00Z", {})
        far = await summarized(wv, name, "d", values=0)
        assert "1677" in far.approximate[Figure.MAXIMUM]

    async def test_a_column_that_cannot_be_summarized_says_why_and_what_would_help(self, wv: Rig) -> None:
        name = await self.library(wv)
        for column, reason in {
            "uuid": "of its own", "vector": "vectors", "place": "counts no values", "cover": "counts no values",
            "author": "inside objects",
        }.items():  # fmt: skip
            with pytest.raises(UnsupportedOperationError, match=reason) as caught:
                await summarized(wv, name, column)
            assert caught.value.hint
        with pytest.raises(QueryError, match="no column") as missing:
            await summarized(wv, name, "nope")
        assert missing.value.details == {"column": "nope"}

    async def test_a_property_with_the_name_of_a_figure_is_summarized(self, wv: Rig) -> None:
        types = {"meta": FIELD, "groupedBy": "int"}
        name = await wv.collection(types, [{"meta": "", "groupedBy": 1}, {"meta": "x"}, {"groupedBy": 2}])
        meta = await summarized(wv, name, "meta")
        assert (dict(shown(meta)), meta.rows) == ({"": 1, "x": 1}, 3)
        assert (meta.missing == 1) or "empty" in meta.approximate[Figure.MISSING]
        grouped = await summarized(wv, name, "groupedBy")
        assert (grouped.missing, grouped.minimum, grouped.maximum) == (1, 1, 2)


class ShardRules:
    """What several shards cannot tell."""

    async def test_shards_leave_values_out_and_the_summary_says_so(self, wv: Rig) -> None:
        objects = [{"k": f"v{at % 900}", "w": f"v{at % 900}"} for at in range(1_500)]
        name = await wv.collection({"k": FIELD, "w": "text"}, objects, shards=3)
        for column in ("k", "w"):
            found = await summarized(wv, name, column, values=5)
            assert "too low" in found.approximate[Figure.VALUES], column
            assert (found.rows, found.missing, found.distinct) == (1_500, 0, None)
            assert "order" in found.absent[Figure.MINIMUM]


class OverShards(Rules):
    """The same over several shards."""

    shards = 3


class TestOnFake(OnFake, Rules):
    """The rules on fakes."""


class TestShardsOnFake(OnFake, ShardRules):
    """What several shards cannot tell, on fakes."""


@pytest.mark.slow
class TestOnFakeOverShards(OnFake, OverShards):
    """The rules on fakes with several shards."""


@pytest.mark.one_engine
class TestOnServer(OnServer, Rules):
    """The rules on real servers."""


@pytest.mark.one_engine
class TestOnServerOverShards(OnServer, OverShards, ShardRules):
    """The rules on real servers, with several shards."""


class TestTenants:
    """A tenant has one shard of its own."""

    async def check(self, wv: Rig) -> None:
        name = await wv.collection({"k": FIELD, "n": "int"}, multiTenancyConfig={"enabled": True})
        await wv.call("POST", f"/v1/schema/{name}/tenants", [{"name": "a"}, {"name": "b"}])
        await wv.load(name, [{"k": f"v{at}", "n": at} for at in range(300)], tenant="a")
        await wv.load(name, [{"k": "x"}], tenant="b")
        one = await summarized(wv, name, "k", tenant="a", values=3)
        assert (one.rows, one.missing, one.approximate, len(one.values)) == (300, 0, {}, 3)
        numbers = await summarized(wv, name, "n", tenant="a", buckets=3)
        assert numbers.buckets == [Bucket(0, 100, 100), Bucket(100, 200, 100), Bucket(200, 300, 100)]
        assert shown(await summarized(wv, name, "k", tenant="b")) == [("x", 1)]
        with pytest.raises(QueryError) as caught:
            await summarized(wv, name, "k")
        assert caught.value.code == "tenant-required"

    async def test_on_fake(self) -> None:
        async with on_fake() as wv:
            await self.check(wv)

    @pytest.mark.live("weaviate")
    async def test_on_server(self, live_server: dict[str, Any]) -> None:
        if "tenants" not in live_server["engine"]:
            pytest.skip("tenants break the routes without a collection for the whole server")
        async with on_server(live_server) as wv:
            await self.check(wv)


class TestRequests:
    """What is sent, and what of an answer is believed."""

    async def test_a_large_collection_is_spread_over_few_buckets_unless_it_has_an_index_for_ranges(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dragoman_weaviate.grid.summaries.LARGE", 500)
        ranged = {"dataType": ["int"], "indexRangeFilters": True}
        async with on_fake() as wv:
            name = await wv.collection({"slow": "int", "fast": ranged}, [{"slow": at, "fast": at} for at in range(600)])
            assert 3 < len((await summarized(wv, name, "slow", buckets=50)).buckets) <= FEW_BUCKETS
            assert len((await summarized(wv, name, "fast", buckets=50)).buckets) > FEW_BUCKETS

    async def test_text_and_numbers_of_few_values_take_one_request(self) -> None:
        async with on_fake() as wv:
            name = await wv.collection(TYPES, OBJECTS)
            for column, requests in {"word": 1, "stock": 1, "tags": 1, "ok": 1, "many": 2, "days": 2}.items():
                mark = len(wv.sent("POST", "/v1/graphql"))
                await summarized(wv, name, column)
                assert len(wv.sent("POST", "/v1/graphql")) - mark == requests, column

    @pytest.mark.live("weaviate")
    async def test_without_graphql_a_summary_says_so(self, live_server: dict[str, Any]) -> None:
        needs(live_server, DISABLE_GRAPHQL="true")
        async with on_server(live_server) as wv:
            name = await wv.collection({"k": FIELD}, [{"k": "x"}], index=INDEXED)
            with pytest.raises(QueryError, match="summaries need it") as caught:
                await summarized(wv, name, "k")
            assert caught.value.code == "graphql-unavailable"


def test_an_answer_without_the_figures_of_a_property_has_none() -> None:
    wanted = aggregates.PropertyQuery(prop="stock", figures="count")
    figures = {"count": 0, "topOccurrences": []}
    for row, figured, groups in (
        ({"stock": {"count": 3}}, True, None),
        ({"stock": figures}, True, []),
        ({}, False, None),
    ):
        answer = reply({"data": {"Aggregate": {"rows": [{"meta": {"count": 3}} | row]}}})
        found = aggregates.read(answer, wanted)
        assert (found.rows, found.figures is not None, found.groups) == (3, figured, groups)
    hidden = aggregates.PropertyQuery(prop="meta")
    answer = reply({"data": {"Aggregate": {"rows": [{"meta": {"count": 3}}]}}})  # the number of rows, not its figures
    assert aggregates.read(answer, hidden) == aggregates.Aggregate(rows=3)
    with pytest.raises(QueryError, match="lacks the count"):
        aggregates.read(reply({"data": {"Aggregate": {"rows": []}}}), wanted)


def test_digits_beyond_nanoseconds_do_not_count() -> None:
    for digits, wanted in (("5", 500_000_000), ("123456789", 123_456_789), ("1234567899", 123_456_789)):
        assert nanoseconds(f"1970-01-01T00:00:01.{digits}Z") == 1_000_000_000 + wanted
