"""Ranges of time: the column they are of, and exactly the rows whose stored instants lie in them."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig

from dragoman_api import (
    CountRequest,
    ExportRequest,
    Filter,
    FilterRequest,
    PageRequest,
    QueryError,
    RawQuery,
    Role,
    TimeRange,
)
from dragoman_api.exports import ExportForm
from dragoman_api.kit.filter_rows import within
from dragoman_api.summaries import SummaryRequest
from dragoman_querydsl.columns import mapping
from dragoman_querydsl.grid import filters

DATE, NANOS = {"type": "date"}, {"type": "date_nanos"}
INSTANTS = [
    "1970-01-01T00:00:00Z",
    "2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00.000000001Z",
    "2024-01-01T00:00:00.000999999Z",
    "2024-01-01T00:00:00.001Z",
    "2024-01-01T02:00:00.002+02:00",
    "2024-01-01T00:00:00.002Z",
    "2262-04-11T23:47:16.854775807Z",
]
AGES = ["1969-12-31T23:59:59.9995Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"]
BOUNDS = [
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999Z",
    "1970-01-01T00:00:00Z",
    "2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00.001Z",
    "2024-01-01T00:00:00.002Z",
    "2300-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
]
FINE = ["2024-01-01T00:00:00.000000001Z", "2024-01-01T00:00:00.000999999Z", "2262-04-11T23:47:16.854775807Z"]


def rows_of(texts: list[str]) -> list[dict[str, Any]]:
    return [{"@timestamp": text, "n": at} for at, text in enumerate(texts)] + [{"@timestamp": None}, {"n": 99}]


def ranges(bounds: list[str]) -> list[TimeRange]:
    some = [None, *bounds]
    return [TimeRange(column="@timestamp", since=since, until=until) for since in some for until in some]


async def page_ids(es: Rig, name: str, time: TimeRange, **more: Any) -> list[str]:
    page = await es.driver.fetch_page(PageRequest(object=name, limit=50, time=time, **more))
    assert page.total == len(page.keys)
    return sorted(key.text for key in page.keys)


async def exported(es: Rig, name: str, **more: Any) -> list[str]:
    request = ExportRequest(object=name, form=ExportForm.ROWS, **more)
    async with aclosing(es.driver.export_rows(request)) as parts:
        return sorted([json.loads(line)["_id"] async for part in parts for line in part.data.splitlines()])


class TimeRules:
    @pytest.mark.parametrize(
        ("spec", "texts", "bounds"), [(DATE, INSTANTS + AGES, BOUNDS), (NANOS, INSTANTS, BOUNDS + FINE)]
    )
    async def test_a_page_and_a_count_have_the_rows_of_a_range(
        self, es: Rig, spec: dict[str, Any], texts: list[str], bounds: list[str]
    ) -> None:
        rows = rows_of(texts)
        name = await es.index({"@timestamp": spec, "n": {"type": "long"}}, rows)
        described = await es.driver.describe_object(name)
        assert described.time is not None
        assert (described.time.column, described.time.window) == ("@timestamp", None)
        assert [each.name for each in described.columns if each.role is Role.TIME] == ["@timestamp"]
        for time in ranges(bounds):
            expected = [str(at) for at, row in enumerate(rows) if within(time, row.get("@timestamp"))]
            assert await page_ids(es, name, time) == sorted(expected), time
            assert await es.driver.count_rows(CountRequest(object=name, time=time)) == len(expected), time

    async def test_an_export_and_a_summary_keep_to_a_range_beside_a_filter(self, es: Rig) -> None:
        name = await es.index({"@timestamp": NANOS, "n": {"type": "long"}}, rows_of(INSTANTS))
        await es.driver.describe_object(name)
        time = TimeRange(column="@timestamp", since=INSTANTS[2], until=INSTANTS[6])
        where = await es.driver.compile_filter(FilterRequest(object=name, rows=[Filter("n", "!=", 3)]))
        assert await exported(es, name, time=time) == ["2", "3", "4"]
        assert await exported(es, name, time=time, filter=where) == ["2", "4"]
        assert await page_ids(es, name, time, filter=where) == ["2", "4"]
        assert await es.driver.count_rows(CountRequest(object=name, time=time, filter=where)) == 2
        found = await es.driver.summarize_column(SummaryRequest(object=name, column="n", time=time))
        assert (found.rows, found.minimum, found.maximum) == (3, 2, 4)

    @pytest.mark.parametrize(
        ("spec", "first", "second"),
        [
            ({"type": "date", "format": "epoch_second"}, 1_704_067_199, 1_704_067_200),
            ({"type": "date", "format": "dd/MM/yyyy"}, "31/12/2023", "01/01/2024"),
            ({"type": "date", "format": "strict_date_optional_time||epoch_millis"}, "2023-12-31", 1_704_067_200_000),
        ],
    )
    async def test_the_format_of_a_column_does_not_matter(self, es: Rig, spec: Any, first: Any, second: Any) -> None:
        name = await es.index({"timestamp": spec}, [{"timestamp": first}, {"timestamp": second}])
        time = TimeRange(column="timestamp", since="2024-01-01T00:00:00Z")
        assert await page_ids(es, name, time) == ["1"]
        assert await page_ids(es, name, TimeRange(column="timestamp", until=time.since)) == ["0"]

    async def test_indices_of_milliseconds_and_of_nanoseconds_are_read_together(self, es: Rig) -> None:
        one = await es.index({"@timestamp": DATE}, rows_of(INSTANTS))
        two = f"{one}-2"
        await es.call(
            "PUT", f"/{two}", {"settings": {"number_of_replicas": 0}, "mappings": {"properties": {"@timestamp": NANOS}}}
        )
        es.made.append(two)
        await es.load(two, rows_of(INSTANTS))
        time = TimeRange(column="@timestamp", since=INSTANTS[4], until=INSTANTS[5])
        assert await page_ids(es, f"{one}*", time) == ["4", "4"]
        for bound in ("1969-12-31T23:59:59Z", "2300-01-01T00:00:00Z"):
            with pytest.raises(QueryError, match="from 1970 to 2262"):
                await page_ids(es, f"{one}*", TimeRange(column="@timestamp", since=bound))

    async def test_a_bound_finer_than_the_column_is_refused(self, es: Rig) -> None:
        name = await es.index({"@timestamp": DATE}, rows_of(INSTANTS))
        for bound in (FINE[0], "2024-01-01T00:00:00.0001Z"):
            for time in (TimeRange(column="@timestamp", since=bound), TimeRange(column="@timestamp", until=bound)):
                with pytest.raises(QueryError, match="holds 3 digits of a second"):
                    await page_ids(es, name, time)
                with pytest.raises(QueryError, match="holds 3 digits of a second"):
                    await es.driver.count_rows(CountRequest(object=name, time=time))

    async def test_a_range_that_is_none_or_of_another_column_never_widens(self, es: Rig) -> None:
        name = await es.index({"@timestamp": DATE, "other": DATE}, [{"other": INSTANTS[0]}])
        for time in (
            TimeRange(column="other", since=BOUNDS[0]),
            TimeRange(column="@timestamp", since="yesterday"),
            TimeRange(column="@timestamp", until="2024-01-01"),
        ):
            with pytest.raises(QueryError):
                await page_ids(es, name, time)
            with pytest.raises(QueryError):
                await es.driver.count_rows(CountRequest(object=name, time=time))
            with pytest.raises(QueryError):
                await exported(es, name, time=time)
            with pytest.raises(QueryError):
                await es.driver.summarize_column(SummaryRequest(object=name, column="other", time=time))

    async def test_a_checkpoint_of_another_range_is_refused(self, es: Rig) -> None:
        name = await es.index({"@timestamp": NANOS}, rows_of(INSTANTS))
        time = TimeRange(column="@timestamp", since=INSTANTS[1])
        request = ExportRequest(object=name, form=ExportForm.ROWS, time=time, keep_alive=60)
        async with aclosing(es.driver.export_rows(request)) as parts:
            checkpoint = (await anext(parts)).checkpoint
        if checkpoint is None:
            pytest.skip("this server has no points in time that an export uses")
        with pytest.raises(QueryError, match="another time range"):
            await exported(es, name, checkpoint=checkpoint, keep_alive=60)

    async def test_rows_past_the_window_keep_to_the_range_and_rows_keep_their_scores(self, es: Rig) -> None:
        name = await es.index({"@timestamp": DATE}, rows_of(INSTANTS))
        time = TimeRange(column="@timestamp", until=INSTANTS[4])
        deep = await es.driver.fetch_page(PageRequest(object=name, offset=10_000, limit=5, time=time))
        assert (deep.cells, deep.total) == ([], 4)
        page = await es.driver.fetch_page(PageRequest(object=name, time=time, columns=["_score"]))
        assert page.cells == [[1.0]] * 4

    async def test_a_range_without_rows_is_not_blamed_on_the_raw_row(self, es: Rig) -> None:
        name = await es.index({"@timestamp": NANOS, "k": {"type": "keyword"}}, [{"@timestamp": INSTANTS[1], "k": "x"}])
        await es.driver.describe_object(name)
        where = await es.driver.compile_filter(FilterRequest(object=name, rows=[RawQuery("k:x")]))
        for until, found in ((BOUNDS[0], 0), (BOUNDS[-1], 1)):
            time = TimeRange(column="@timestamp", until=until)
            page = await es.driver.fetch_page(PageRequest(object=name, time=time, filter=where))
            assert (len(page.cells), page.notes) == (found, [])


class TestTimeRangesOnFake(OnFake, TimeRules):
    pass


class TestTimeRangesOnServer(OnServer, TimeRules):
    pass


def view_of(*properties: dict[str, Any], **root: Any) -> Any:
    caps = mapping.FieldCaps(indices=[f"i{at}" for at in range(len(properties))])
    every = {name for each in (*properties, root.get("runtime", {})) for name in each}
    caps = msgspec.structs.replace(caps, fields={name: {"date": mapping.TypeCapabilities()} for name in every})
    mappings = {
        f"i{at}": mapping.IndexMapping(msgspec.Raw(msgspec.json.encode({"properties": each, **root})))
        for at, each in enumerate(properties)
    }
    return mapping.read("i*", mappings, caps)


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ([{"@timestamp": DATE}], "@timestamp"),
        ([{"timestamp": NANOS}], "timestamp"),
        ([{"@timestamp": DATE, "timestamp": {"type": "keyword"}}], "@timestamp"),
        ([{"@timestamp": DATE, "timestamp": DATE}], ""),
        ([{"@timestamp": DATE}, {"@timestamp": NANOS}], "@timestamp"),
        ([{"@timestamp": DATE}, {"n": DATE}], "@timestamp"),
        ([{"@timestamp": DATE}, {"@timestamp": {"type": "keyword"}}], ""),
        ([{"created": DATE}], ""),
        ([{"timestamp": {"type": "alias", "path": "created"}, "created": DATE}], ""),
        ([{"@timestamp": DATE | {"null_value": "2024-01-01"}}], ""),
        ([{"@timestamp": DATE, "n": DATE | {"copy_to": "@timestamp"}}], ""),
        ([{"@timestamp": DATE | {"ignore_malformed": True}}], "@timestamp"),
        ([{"@timestamp": DATE | {"ignore_malformed": True, "format": "epoch_second"}}], ""),
        ([{"@timestamp": NANOS | {"ignore_malformed": True}}], ""),
        ([{"@timestamp": DATE | {"ignore_malformed": True}}, {"@timestamp": DATE | {"format": "epoch_second"}}], ""),
        ([{"@timestamp": DATE | {"format": "epoch_second"}}, {"@timestamp": DATE | {"ignore_malformed": True}}], ""),
        ([{"@timestamp": DATE | {"ignore_malformed": True}}, {"@timestamp": NANOS}], ""),
        ([{"@timestamp": DATE}, {"n": {"type": "long"}, "@timestamp": DATE | {"null_value": "2024-01-01"}}], ""),
        ([{"@timestamp": DATE}, {"n": {"type": "long"}, "@timestamp": {"properties": {"a": DATE}}}], ""),
        ([{"@timestamp": DATE}, {"timestamp": DATE}], ""),
    ],
)
def test_the_time_column_is_the_one_whose_index_is_exact(properties: Any, found: str) -> None:
    view = view_of(*properties)
    assert view.time == found
    assert (view.describe().time is None) is (found == "")


def test_the_time_column_of_a_data_stream_is_its_own() -> None:
    both = {"@timestamp": DATE, "timestamp": DATE}
    assert view_of(both, _data_stream_timestamp={"enabled": True}).time == "@timestamp"
    assert view_of({"timestamp": DATE}, _data_stream_timestamp={"enabled": True}).time == ""


@pytest.mark.parametrize("order", [1, -1])
def test_a_data_stream_beside_another_index_is_none(order: int) -> None:
    """The index may hold the other column of that name."""
    both = {"properties": {"@timestamp": DATE, "timestamp": DATE}}
    roots = [both | {"_data_stream_timestamp": {"enabled": True}}, both][::order]
    caps = mapping.FieldCaps(indices=["i0", "i1"])
    caps = msgspec.structs.replace(
        caps, fields={name: {"date": mapping.TypeCapabilities()} for name in both["properties"]}
    )
    mappings = {f"i{at}": mapping.IndexMapping(msgspec.Raw(msgspec.json.encode(each))) for at, each in enumerate(roots)}
    assert mapping.read("i*", mappings, caps).time == ""


@pytest.mark.parametrize(
    ("spec", "since", "until", "sent"),
    [
        (NANOS, "1970-01-01T00:00:00Z", "2262-04-11T23:47:16.854775807Z", ("gte", "lt")),
        (NANOS, "1969-12-31T23:59:59.999999999Z", "2262-04-11T23:47:16.854775808Z", ()),
        (NANOS, "1969-12-31T23:59:59Z", "2024-12-31T00:00:00Z", ("lt",)),
        (NANOS, "2262-04-11T23:47:16.854775808Z", None, None),
        (NANOS, None, "1969-12-31T23:59:59.999999999Z", None),
        (DATE, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", ("gte", "lt")),
    ],
)
def test_the_bounds_that_are_sent_are_those_that_the_column_can_hold(
    spec: dict[str, Any], since: str | None, until: str | None, sent: tuple[str, ...] | None
) -> None:
    """A bound at the very edge goes; one beyond it holds for all rows, or for none. The query keeps its scores."""
    view, query = view_of({"@timestamp": spec}), msgspec.Raw(b'{"match_all":{}}')
    found = json.loads(bytes(filters.within(query, TimeRange(column="@timestamp", since=since, until=until), view)))
    [clause] = found["bool"]["filter"]
    assert found["bool"]["must"] == [{"match_all": {}}]
    if sent is None:
        assert clause == {"match_none": {}}
    elif not sent:
        assert clause == {"exists": {"field": "@timestamp"}}
    else:
        bounds = {name: text for name, text in (("gte", since), ("lt", until)) if name in sent}
        assert clause == {"range": {"@timestamp": bounds | {"format": "strict_date_optional_time_nanos"}}}


@pytest.mark.parametrize("order", [1, -1])
def test_a_range_over_two_types_is_no_finer_than_the_coarser(order: int) -> None:
    view = view_of(*({"@timestamp": spec} for spec in (DATE, NANOS)[::order]))
    query = msgspec.Raw(b'{"match_all":{}}')
    assert filters.within(query, TimeRange(column="@timestamp", since="2024-01-01T00:00:00.001Z"), view) != query
    for bound, said in (("2024-01-01T00:00:00.0001Z", "3 digits"), ("1969-12-31T00:00:00Z", "1970 to 2262")):
        for time in (TimeRange(column="@timestamp", since=bound), TimeRange(column="@timestamp", until=bound)):
            with pytest.raises(QueryError, match=said):
                filters.within(query, time, view)


def test_a_hidden_mapping_or_a_computed_column_has_no_time_column() -> None:
    caps = mapping.FieldCaps(indices=["i"], fields={"@timestamp": {"date": mapping.TypeCapabilities()}})
    assert mapping.read("i", None, caps).time == ""
    assert view_of({"n": DATE}, runtime={"@timestamp": DATE}).time == ""
