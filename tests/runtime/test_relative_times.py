"""Times as people say them in filter rows: what each stands for, in which zone, and one instant for all of a walk."""

from __future__ import annotations

import json
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wheelhouse
from dragoman import Filter, Runtime
from dragoman.sessions.relative_times import is_relative, read_zone, resolve_rows, resolve_time
from dragoman_api.errors import ConfigurationError, QueryError
from dragoman_api.filters import RawQuery

NOW = datetime(2026, 11, 25, 12, 30, 15, 120_000, tzinfo=UTC)  # a Wednesday
BERLIN = ZoneInfo("Europe/Berlin")
HOOKS = ["connect", "list_objects", "describe_object", "compile_filter", "fetch_page", "count_rows", "export_rows"]
CODE = """
import msgspec
from dragoman_api import (
    Column, CompiledFilter, Description, Explanation, ExportPart, Object, ObjectList, Operator, Page, QueryError,
    Server, hookimpl
)
from dragoman_api.kit import cursors


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server("Demo", "1")

    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[Object("cpu")])

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=[
            Column(name="at", type="date", kind="timestamp", operators=(*Operator,)),
            Column(name="word", type="text", kind="text", operators=(*Operator,)),
        ])

    @hookimpl
    async def compile_filter(self, request):
        told = [[str(each.op), each.value] for each in request.rows]
        rows = [Explanation(row=at, clause=str(each)) for at, each in enumerate(told)]
        body = msgspec.json.encode([*told, request.now]).decode()
        return CompiledFilter(object=request.object, body=body, rows=rows)

    @hookimpl
    async def fetch_page(self, request):
        query = cursors.query_of(request)
        if request.cursor is not None:
            cursors.unseal(request.cursor, query, int)
        body = request.filter.body if request.filter else ""
        return Page(columns=[Column(name="asked", type="text")], cells=[[body]], next=cursors.seal(query, 1))

    @hookimpl
    async def count_rows(self, request):
        return len(request.filter.body)

    @hookimpl
    async def export_rows(self, request):
        for at in range(int(request.checkpoint or 0), 4):
            if at == 2 and request.checkpoint is None and request.object == "broken":
                raise QueryError("a shard failed")
            line = msgspec.json.encode({"asked": request.filter.body}) + b"\\n"
            yield ExportPart(data=line, rows=1, checkpoint=str(at + 1))
"""


@pytest.fixture
def open_said(make_runtime):
    """Return a runtime with a driver that shows the filter rows that reach it."""
    return make_runtime(
        wheelhouse.Driver("said", code=CODE, hooks=HOOKS, capabilities=["browse", "filter", "export"]), installed=True
    )


def period(first: str, after: str) -> str:
    return "/".join(f"{each}T00:00:00Z" for each in (first, after))


@pytest.mark.parametrize(
    ("text", "stands_for"),
    [
        ("now", "2026-11-25T12:30:15.12Z"),
        ("now-90m", "2026-11-25T11:00:15.12Z"),
        ("now+1d", "2026-11-26T12:30:15.12Z"),
        ("today", period("2026-11-25", "2026-11-26")),
        ("Yesterday", period("2026-11-24", "2026-11-25")),
        ("tomorrow", period("2026-11-26", "2026-11-27")),
        ("this week", period("2026-11-23", "2026-11-30")),
        ("last week", period("2026-11-16", "2026-11-23")),
        ("this  month", period("2026-11-01", "2026-12-01")),
        ("next month", period("2026-12-01", "2027-01-01")),
        ("this quarter", period("2026-10-01", "2027-01-01")),
        ("last quarter", period("2026-07-01", "2026-10-01")),
        ("last year", period("2025-01-01", "2026-01-01")),
        ("this hour", "2026-11-25T12:00:00Z/2026-11-25T13:00:00Z"),
        ("last minute", "2026-11-25T12:29:00Z/2026-11-25T12:30:00Z"),
        ("last 24h", "2026-11-24T12:30:15.12Z/2026-11-25T12:30:15.12Z"),
        ("last 24 hours", "2026-11-24T12:30:15.12Z/2026-11-25T12:30:15.12Z"),
        ("next 7 days", "2026-11-25T12:30:15.12Z/2026-12-02T12:30:15.12Z"),
        ("last 3 months", "2026-08-25T12:30:15.12Z/2026-11-25T12:30:15.12Z"),
    ],
)
def test_a_relative_time_is_an_instant_or_a_period(text, stands_for):
    assert is_relative(text)
    assert resolve_time(text, now=NOW) == stands_for


def test_every_word_for_a_unit_stands_for_that_unit_alone():
    units = ["s sec secs second seconds", "m min mins minute minutes", "h hour hours", "d day days", "w week weeks",
             "month months", "quarter quarters", "y year years"]  # fmt: skip
    periods = [{resolve_time(f"last 2 {word}", now=NOW) for word in words.split()} for words in units]
    assert [len(period) for period in periods] == [1] * 8
    assert len(set.union(*periods)) == 8


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-25", "last", "last h", "this 2 days", "last 0h", "last 24", "last 24M", "now-1M", "now-1d/d",
     "nowhere", "last night", "todays", "24h", "-1h"],
)  # fmt: skip
def test_what_is_no_relative_time_is_left_to_the_driver(text):
    """`M` is a month to Elasticsearch and `m` a minute: nothing is made of a capital."""
    assert not is_relative(text)


def test_a_month_before_the_31st_ends_with_the_shorter_month():
    assert resolve_time("last 1 month", now=NOW.replace(month=3, day=31)).startswith("2026-02-28T")
    assert resolve_time("next 1 month", now=NOW.replace(month=1, day=31)).endswith("/2026-02-28T12:30:15.12Z")


@pytest.mark.parametrize(("text", "minute"), [("now", 30), ("now-10m", 20), ("now+10m", 40)])
def test_a_whole_second_is_written_as_an_instant_and_not_as_the_span_of_a_second(text, minute):
    now = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
    assert resolve_time(text, now=now) == f"2026-11-25T12:{minute}:00.000Z"


def test_days_begin_in_the_zone_and_have_23_to_25_hours_where_clocks_change():
    spring, autumn = datetime(2026, 3, 29, 12, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert resolve_time("today", now=spring, zone=BERLIN) == "2026-03-28T23:00:00Z/2026-03-29T22:00:00Z"
    assert resolve_time("today", now=autumn, zone=BERLIN) == "2026-10-24T22:00:00Z/2026-10-25T23:00:00Z"
    assert resolve_time("last 1 day", now=spring, zone=BERLIN).startswith("2026-03-28T13:00:00Z/")
    assert resolve_time("last 24h", now=spring, zone=BERLIN).startswith("2026-03-28T12:00:00Z/")
    repeated = resolve_time("this hour", now=autumn + timedelta(hours=1), zone=BERLIN)
    assert repeated == "2026-10-25T01:00:00Z/2026-10-25T02:00:00Z"


@given(
    st.datetimes(min_value=datetime(1950, 1, 1), max_value=datetime(2100, 1, 1)),  # noqa: DTZ001
    st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia"]),
    st.sampled_from(["second", "minute", "hour", "day", "week", "month", "quarter", "year"]),
)
def test_the_last_this_and_next_of_a_unit_follow_each_other_and_hold_now(naive, zone, unit):
    now, place = naive.replace(tzinfo=UTC), read_zone(zone)
    last, this, following = (
        [datetime.fromisoformat(each) for each in resolve_time(f"{step} {unit}", now=now, zone=place).split("/")]
        for step in ("last", "this", "next")
    )
    assert last[1] == this[0] <= now < this[1] == following[0]
    local = this[0].astimezone(place)
    if unit in ("week", "month", "quarter", "year") and zone in ("UTC", "Europe/Berlin"):
        assert (local.hour, local.minute) == (0, 0)
        assert local.weekday() == 0 if unit == "week" else local.day == 1


@pytest.mark.parametrize("text", ["last 99999 years", "now-999999999w", "next 99999 years"])
def test_a_time_beyond_the_calendar_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"before the year 1 or after 9999|not an instant"):
        resolve_time(text, now=NOW)


@pytest.mark.parametrize("name", ["Nowhere/City", "", "../UTC", "Europe"])
def test_an_unknown_zone_is_refused_with_what_to_write(name):
    with pytest.raises(ConfigurationError, match="no time zone") as caught:
        read_zone(name)
    assert "Europe/Berlin" in caught.value.hint


def test_only_columns_of_instants_have_relative_times_and_each_is_told():
    rows = [
        Filter("at", "in", "today, 2026-01-01T00:00:00Z"), Filter("word", "=", "today"), Filter("at", ">", "now-1d/d"),
        Filter("at", "between", ["now-1h", "now"], group="1"), Filter("at", "=", 7), RawQuery("at:today"),
    ]  # fmt: skip
    made, notes = resolve_rows(rows, {"at"}, now=NOW, zone="Europe/Berlin")
    day = "2026-11-24T23:00:00Z/2026-11-25T23:00:00Z"
    assert made[0] == Filter("at", "in", [day, "2026-01-01T00:00:00Z"])
    assert made[3] == Filter("at", "between", ["2026-11-25T11:30:15.12Z", "2026-11-25T12:30:15.12Z"], group="1")
    assert [made[at] for at in (1, 2, 4, 5)] == [rows[at] for at in (1, 2, 4, 5)]
    assert {note.code for note in notes} == {"relative-time"}
    assert [note.reason for note in notes] == [
        "filter row 1: 'today' is 2026-11-24T23:00:00Z to before 2026-11-25T23:00:00Z, in Europe/Berlin",
        "filter row 3: now is 2026-11-25T12:30:15.12Z",
        "filter row 4: 'now-1h' is 2026-11-25T11:30:15.12Z; 'now' is 2026-11-25T12:30:15.12Z",
    ]


async def test_all_of_a_call_and_of_a_walk_count_from_one_instant(open_said):
    rows = [Filter("at", "in", "last 1h")]
    async with open_said as runtime, runtime.open("said") as session:
        first = await session.rows("cpu", filters=rows).page()
        [[op, [value]], now] = json.loads(first.cells[0][0])
        assert (op, now, value.partition("/")[2]) == ("in", first.now, first.now)
        assert [note.code for note in first.notes] == ["relative-time"]
        await anyio.sleep(0.01)
        with pytest.raises(QueryError, match="another"):
            await session.rows("cpu", filters=rows).page(cursor=first.next)
        following = await session.rows("cpu", filters=rows, now=first.now).page(cursor=first.next)
        assert (following.cells, following.now) == (first.cells, first.now)
        count = await session.rows("cpu", filters=rows, now=first.now).count()
        assert [note.reason for note in count.notes] == [note.reason for note in first.notes]
        assert (await session.rows("cpu", filters=rows, now=first.now).explain()).rows[0].clause == str(["in", [value]])
        async with aclosing(session.rows("cpu", filters=rows, now=first.now).stream()) as found:
            assert {row["asked"] async for row in found} == {first.cells[0][0]}
        assert (await session.rows("cpu", filters=[Filter("word", "=", "today")]).page()).now is None
        with pytest.raises(ConfigurationError, match="not an instant"):
            await session.rows("cpu", now="soon").page()


@pytest.mark.slow
async def test_a_resumed_export_counts_from_its_first_run(open_said, tmp_path):
    rows, file = [Filter("at", "=", "last 1h")], tmp_path / "broken.ndjson"
    async with open_said as runtime, runtime.open("said") as session:
        with pytest.raises(QueryError):
            await session.rows("broken", filters=rows).export(to=file)
        await anyio.sleep(1.1)  # a second run at once would begin in the same second
        result = await session.rows("broken", filters=rows).export(to=file, resume=True)
        assert "relative-time" in [note.code for note in result.notes]
        lines = {*file.read_bytes().splitlines()}
        assert len(lines) == 1
        fixed = await session.rows("cpu", filters=rows, now="2026-01-01T01:00:00Z").export(to=tmp_path / "fixed.ndjson")
    assert "2026-01-01T00:00:00Z to before 2026-01-01T01:00:00Z" in fixed.notes[0].reason


async def test_the_zone_comes_from_the_settings(open_said):
    rows = [Filter("at", "=", "today")]
    open_said.paths.settings.parent.mkdir(parents=True, exist_ok=True)
    open_said.paths.settings.write_text('time_zone = "Asia/Kathmandu"\n')
    ZoneInfo.clear_cache(only_keys=["Asia/Kathmandu"])
    async with Runtime(spare=False) as runtime, runtime.open("said") as session:
        page = await session.rows("cpu", filters=rows, now="2026-11-25T12:00:00Z").page()
    assert json.loads(page.cells[0][0])[0] == ["=", "2026-11-24T18:15:00Z/2026-11-25T18:15:00Z"]
