"""A span of time beside the filter: asked for, or the window that an object's description names."""

from __future__ import annotations

import json
from contextlib import aclosing
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

import wheelhouse
from dragoman import Span
from dragoman.sessions.relative_times import parse_instant, resolve_span, whole, whole_now
from dragoman.sessions.selections import RowSelection
from dragoman_api.columns import TimeColumn
from dragoman_api.errors import ConfigurationError, ExportError, QueryError, UnsupportedOperationError
from dragoman_api.filters import TimeRange
from slow_cases import mostly_slow

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)
SPANS = [Span(), Span(since="-1h"), Span(since="-2h", until="now-1m")]
HOOKS = ["connect", "list_objects", "describe_object", "fetch_page", "count_rows", "export_rows"]
CODE = """
import msgspec
from dragoman_api import (
    Column, Description, ExportPart, Note, Object, ObjectList, Page, QueryError, Server, TimeColumn, hookimpl
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
        window = 3600 if name in ("cpu", "broken") else None
        time = None if name == "plain" else TimeColumn(column="time", window=window)
        return Description(object=name, columns=[Column(name="time", type="timestamp")], time=time)

    @hookimpl
    async def fetch_page(self, request):
        asked = request.time and [request.time.column, request.time.since, request.time.until]
        query = cursors.query_of(request)
        if request.cursor is not None:
            cursors.unseal(request.cursor, query, int)
        return Page(columns=[Column(name="asked", type="text")], cells=[[str(asked)]], next=cursors.seal(query, 1))

    @hookimpl
    async def count_rows(self, request):
        return 0 if request.time is None else 1

    @hookimpl
    async def export_rows(self, request):
        if request.object == "broken":
            for at in range(int(request.checkpoint or 0), 4):
                if at == 2 and request.checkpoint is None:
                    raise QueryError("a shard failed")
                yield ExportPart(data=msgspec.json.encode(request.time) + b"\\n", rows=1, checkpoint=str(at + 1))
            return
        notes = [Note(code="documents-rewritten", reason="x")] if request.object == "plain" else []
        yield ExportPart(data=msgspec.json.encode(request.time or {}) + b"\\n", rows=1, notes=notes)
"""


@pytest.fixture
def open_timed(make_runtime):
    """Return a function that makes a runtime with a driver of time series."""

    def make(*capabilities):
        driver = wheelhouse.Driver("timed", code=CODE, hooks=HOOKS, capabilities=["browse", *capabilities])
        return make_runtime(driver, installed=True)

    return make


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", "2026-11-23T12:00:00Z"),
        ("-90s", "2026-11-23T11:58:30Z"),
        ("now-2w", "2026-11-09T12:00:00Z"),
        ("2026-11-23", "2026-11-23T00:00:00Z"),
        ("2026-11-23 12:30", "2026-11-23T12:30:00Z"),
        ("2026-11-23T12:00:00+05:30", "2026-11-23T06:30:00Z"),
        ("2026-11-23T12:00:00.123456789Z", "2026-11-23T12:00:00.123456789Z"),
        ("2026-11-23T12:00:00.50-01:00", "2026-11-23T13:00:00.50Z"),
    ],
)
def test_an_instant_is_absolute_or_relative_to_now(text, instant):
    assert parse_instant(text, now=NOW) == instant


@pytest.mark.parametrize(
    "text",
    ["", "1h", "+1h", "-1y", "--1h", "now+1h", "-999999999w", "2026-02-30", "2026-11-23T25:00", "12:00", "-\u0661h"],
)
def test_what_is_no_instant_is_refused_with_the_forms_that_are(text):
    for read in (partial(parse_instant, text, now=NOW), partial(whole_now, text)):
        with pytest.raises(ConfigurationError) as caught:
            read()
        assert "-1h" in caught.value.hint


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)), st.integers(-840, 840))  # noqa: DTZ001
def test_every_instant_of_any_zone_is_the_same_in_utc(naive, minutes):
    aware = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert datetime.fromisoformat(parse_instant(aware.isoformat(), now=NOW)) == aware


def test_bounds_in_the_wrong_order_and_a_bounded_span_of_all_time_are_refused():
    about = TimeColumn(column="time")
    for since, until in (("now", "-1h"), ("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.50Z")):
        with pytest.raises(ConfigurationError, match="not before"):
            resolve_span(Span(since=since, until=until), about, object="cpu", now=NOW)
    assert resolve_span(
        Span(since="2026-01-01T00:00:00Z", until="2026-01-01T00:00:00.1Z"), about, object="cpu", now=NOW
    )[0]
    with pytest.raises(ConfigurationError, match="all time"):
        resolve_span(Span(since="-1h", all_time=True), about, object="cpu", now=NOW)


def test_the_default_window_ends_with_now_and_is_noted():
    found, [note] = resolve_span(Span(), TimeColumn(column="time", window=60), object="cpu", now=NOW)
    assert found == TimeRange(column="time", since="2026-11-23T11:59:00Z")
    assert (note.code, note.column) == ("time-window", "time")
    assert resolve_span(Span(all_time=True), TimeColumn(column="time", window=60), object="cpu", now=NOW) == (None, [])
    assert resolve_span(Span(), TimeColumn(column="time"), object="cpu", now=NOW) == (None, [])


def test_relative_instants_have_whole_milliseconds():
    about, now = TimeColumn(column="time", window=60), whole(NOW.replace(microsecond=120_999))
    assert RowSelection(object="cpu").at(NOW.replace(microsecond=120_999)).now == now
    found, _ = resolve_span(Span(since="-1h", until="now"), about, object="cpu", now=now)
    assert found == TimeRange(column="time", since="2026-11-23T11:00:00.12Z", until="2026-11-23T12:00:00.12Z")
    found, _ = resolve_span(Span(), about, object="cpu", now=now)
    assert found == TimeRange(column="time", since="2026-11-23T11:59:00.12Z")
    found, _ = resolve_span(Span(since="2026-11-23T11:00:00.000000001Z"), about, object="cpu", now=now)
    assert found == TimeRange(column="time", since="2026-11-23T11:00:00.000000001Z")


async def test_a_range_reaches_every_read_of_a_driver_that_announces_it(open_timed, tmp_path):
    span = Span(since="2026-11-23", until="2026-11-24")
    sent = {"column": "time", "since": "2026-11-23T00:00:00Z", "until": "2026-11-24T00:00:00Z"}
    async with open_timed("export", "time-range") as runtime, runtime.open("timed") as session:
        page = await session.rows("events", span=span).page()
        assert page.cells == [[str([*sent.values()])]]
        assert page.notes == []
        count = await session.rows("events", span=span).count()
        assert (count, to_builtins(count.time)) == (1, sent)
        async with aclosing(session.rows("events", span=span).stream()) as rows:
            assert [row async for row in rows] == [sent]
        result = await session.rows("events", span=span).export(to=tmp_path / "events.ndjson")
        assert result.time == sent
        assert (await session.rows("events").page()).cells == [["None"]]


async def test_the_default_window_is_applied_to_every_read_and_said(open_timed, tmp_path):
    async with open_timed("export", "time-range") as runtime, runtime.open("timed") as session:
        page = await session.rows("cpu").page()
        assert page.cells != [["None"]]
        assert [note.code for note in page.notes] == ["time-window"]
        count = await session.rows("cpu").count()
        assert (count, [note.code for note in count.notes]) == (1, ["time-window"])
        assert (await session.rows("cpu", span=Span(all_time=True)).count()).notes == []
        async with aclosing(session.rows("cpu").stream()) as rows:
            assert [row["since"] is not None async for row in rows] == [True]
            assert [note.code for note in rows.notes] == ["time-window"]
        result = await session.rows("cpu").export(to=tmp_path / "cpu.ndjson")
        assert "time-window" in [note.code for note in result.notes]
        everything = await session.rows("cpu", span=Span(all_time=True)).page()
        assert (everything.cells, everything.notes) == ([["None"]], [])


@pytest.mark.parametrize("span", mostly_slow(SPANS, fast=[Span(since="-2h", until="now-1m")]))
async def test_the_pages_behind_a_cursor_keep_the_instants_of_the_first(open_timed, span):
    async with open_timed("time-range") as runtime, runtime.open("timed") as session:
        first = await session.rows("cpu", span=span).page()
        assert first.cells == [[str(["time", first.time.since, first.time.until])]]
        await anyio.sleep(1.1)  # instants have whole seconds here
        for other in (span, Span(all_time=True), Span(since="-3h")):
            with pytest.raises(QueryError, match="another time range"):
                await session.rows("cpu", span=other).page(cursor=first.next)
        following = await session.rows("cpu", span=Span.of(first.time)).page(cursor=first.next)
        assert (following.time, following.cells) == (first.time, first.cells)
        count = await session.rows("cpu", span=span).count()
        assert count.time != first.time
        assert (await session.rows("cpu", span=Span.of(count.time)).count()).time == count.time


async def test_pages_of_all_time_have_no_range_to_pass_on(open_timed):
    async with open_timed("time-range") as runtime, runtime.open("timed") as session:
        first = await session.rows("cpu", span=Span(all_time=True)).page()
        assert first.time is None
        assert (await session.rows("cpu", span=Span.of(first.time)).page(cursor=first.next)).cells == [["None"]]


async def test_rows_carry_what_the_driver_noted_on_them(open_timed):
    async with open_timed("export") as runtime, runtime.open("timed") as session:
        async with aclosing(session.rows("plain").stream()) as rows:
            assert [row async for row in rows] == [{}]
        assert [note.code for note in rows.notes] == ["documents-rewritten"]


@pytest.mark.parametrize("span", mostly_slow(SPANS, fast=[Span(since="-2h", until="now-1m")]))
async def test_a_resumed_export_continues_with_the_instants_of_its_first_run(open_timed, tmp_path, span):
    file = tmp_path / "broken.ndjson"
    async with open_timed("export", "time-range") as runtime, runtime.open("timed") as session:
        with pytest.raises(QueryError):
            await session.rows("broken", span=span).export(to=file)
        await anyio.sleep(1.1)  # a second run at once would resolve to the same second
        with pytest.raises(ExportError, match="another time"):
            await session.rows("broken", span=Span(since="-3h")).export(to=file, resume=True)
        result = await session.rows("broken", span=span).export(to=file, resume=True)
    ranges = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert ranges == [result.time] * 4
    noted = [note.reason for note in result.notes if note.code == "time-window"]
    assert [result.time["since"] in reason for reason in noted] == ([True] if span == Span() else [])


async def test_a_range_never_reaches_a_driver_that_does_not_announce_it(open_timed, tmp_path):
    span = Span(since="-1h")
    async with open_timed("export") as runtime, runtime.open("timed") as session:
        for read in (
            lambda: session.rows("cpu", span=span).page(),
            lambda: session.rows("cpu", span=span).count(),
            lambda: anext(session.rows("cpu", span=span).stream()),
            lambda: session.rows("cpu", span=span).export(to=tmp_path / "cpu.ndjson"),
        ):
            with pytest.raises(UnsupportedOperationError):
                await read()
        page = await session.rows("cpu").page()
        assert (page.cells, page.notes) == ([["None"]], [])


async def test_an_object_without_a_time_column_takes_no_range(open_timed):
    async with open_timed("time-range") as runtime, runtime.open("timed") as session:
        with pytest.raises(UnsupportedOperationError, match="plain"):
            await session.rows("plain", span=Span(since="-1h")).page()
