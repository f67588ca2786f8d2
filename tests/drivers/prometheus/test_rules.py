"""The rules of the driver, on a fake server and on real ones."""

from __future__ import annotations

import json
import math
import re
from contextlib import aclosing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from aiohttp import web
from drivers.prometheus import rig as rigs
from drivers.prometheus.rig import OnServer, Rig, on_fake, profile
from drivers.prometheus.samples import BEGIN, STEP, samples
from msgspec.structs import replace

from dragoman_api import (
    CellRequest,
    CountRequest,
    ExportRequest,
    Filter,
    FilterNotSupportedError,
    Json,
    ObjectsRequest,
    PageRequest,
    QueryError,
    RowKey,
    Sort,
    TimeRange,
)
from dragoman_api.connections import AuthScheme, Secrets, SslMode
from dragoman_api.console import CompletionRequest
from dragoman_api.errors import (
    AuthenticationError,
    ObjectChangedError,
    RowNotFoundError,
    ServerNotSupportedError,
    WindowExceededError,
)  # fmt: skip
from dragoman_api.exports import ExportForm
from dragoman_api.summaries import SummaryRequest
from dragoman_prometheus import answers
from dragoman_prometheus import rows as walks
from dragoman_prometheus.columns import instant_text
from dragoman_prometheus.driver import Driver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

NAME = "http_requests_total"


def span(since: int, until: int) -> TimeRange:
    return TimeRange(column="timestamp", since=instant_text(since), until=instant_text(until))


class Rules:
    """What holds on every server."""

    async def test_metrics_of_one_word_lie_in_a_branch_that_opens(self, metrics: Rig) -> None:
        """M3: a search looks into the branches."""
        top = await metrics.driver.list_objects(ObjectsRequest())
        assert {one.name for one in top if one.branch} == {"http_*"}
        assert {"odd", "plain", "job:rate:sum", "utf8 name.ü"} <= {one.name for one in top if not one.branch}
        inside = await metrics.driver.list_objects(ObjectsRequest(parent="http_*"))
        assert [one.name for one in inside] == ["http_duration_seconds", NAME]
        searched = await metrics.driver.list_objects(ObjectsRequest(contains="DURATION"))
        assert [one.name for one in searched] == ["http_duration_seconds"]
        page = await metrics.page("http_*", limit=3)
        assert page.total == len(samples()[NAME]) + len(samples()["http_duration_seconds"])
        assert [row["__name__"] for row in page.rows] == ["http_duration_seconds", NAME, NAME]

    async def test_a_span_includes_its_first_instant_and_not_its_last(self, metrics: Rig) -> None:
        """M4: Prometheus 2 includes both ends of a range, Prometheus 3 and VictoriaMetrics the last one only."""
        for since, until, due in (
            (0, STEP, 2),
            (1, STEP, 0),
            (0, STEP + 1, 6),
            (0, 1, 2),
            (-1, 0, 0),
            (STEP, STEP + 1, 4),
        ):
            time = span(BEGIN + since, BEGIN + until)
            page = await metrics.page(NAME, time=time)
            count = await metrics.driver.count_rows(CountRequest(object=NAME, time=time))
            assert (len(page.cells), page.total, count) == (due, due, due), (since, until)

    async def test_a_span_of_any_length_includes_its_first_instant(self, metrics: Rig) -> None:
        """M4: VictoriaMetrics takes 4007 ms for 4006, and 1035003 for 1035002."""
        for length in (*range(4005, 4018), *range(1_035_000, 1_035_006)):
            time = span(BEGIN + STEP, BEGIN + STEP + length)
            count = await metrics.driver.count_rows(CountRequest(object="gone", time=time))
            instants = [row["timestamp"] for row in (await metrics.page("gone", time=time)).rows]
            due = [BEGIN + STEP, BEGIN + 3 * STEP][: 2 if length > 2 * STEP else 1]
            assert (count, instants) == (len(due), [*map(instant_text, due)]), length

    async def test_an_hour_is_shown_unless_a_time_is_named(self, metrics: Rig) -> None:
        """M5: the host reads this window, and says so."""
        described = await metrics.driver.describe_object(NAME)
        assert described.time is not None
        assert (described.time.column, described.time.window) == ("timestamp", 3_600)

    async def test_values_keep_their_bits_and_a_mark_of_staleness_is_no_row(self, metrics: Rig) -> None:
        """M6: VictoriaMetrics stores 12 digits and no NaN, which its page of deviations says."""
        cells = {row["kind"]: row["value"] for row in (await metrics.page("odd")).rows}
        assert (cells["inf"], cells["minus"]) == ("+Inf", "-Inf")
        if metrics.victoria and metrics.fake is None:
            assert cells["third"] == 0.333333333333
        else:
            assert (cells["tiny"], cells["third"], cells["big"]) == (5e-324, 1 / 3, 1.7976931348623157e308)
            assert math.copysign(1, cells["zero"]) == -1
        assert cells.get("nan") == (None if metrics.victoria else "NaN")
        assert (await metrics.page("gone")).total == 3
        if not metrics.victoria:
            [row] = (await metrics.page("sizes")).rows
            assert isinstance(row["value"], Json)
            assert json.loads(row["value"])["sum"] == "12.5"

    async def test_a_label_called_like_a_column_of_the_sample_has_a_prefix(self, metrics: Rig) -> None:
        """M7: its filter and its export are those of the label."""
        page = await metrics.page("clash", Filter("label:timestamp", "=", "t"))
        assert [column.name for column in page.columns] == [
            "timestamp", "value", "le", "label:series", "label:timestamp", "label:value", "series",
        ]  # fmt: skip
        assert page.rows[0]["label:value"] == "v"

    @pytest.mark.parametrize(
        ("row", "due"),
        [
            (Filter("a", "=", "x\ny"), [1]),
            (Filter("a", "!=", "xzy"), [1, 3]),
            (Filter("a", "in", ["xzy", "x\ny"]), [1, 2]),
            (Filter("a", "not-in", ["xzy", "q"]), [1, 3]),
            (Filter("a", "contains", "zy"), [2]),
            (Filter("a", "not-contains", "z"), [1, 3]),
            (Filter("a", "starts", "x"), [1, 2]),
            (Filter("a", "ends", "Y", case=False), [1, 2]),
            (Filter("a", "regex", "x.y"), [1, 2]),
            (Filter("a", "regex", ".*"), [1, 2]),
            (Filter("a", "null"), [3]),
            (Filter("a", "not-null"), [1, 2]),
            (Filter("a", "contains", "."), []),
        ],
        ids=str,
    )
    async def test_a_filter_row_on_a_label_is_a_matcher(self, metrics: Rig, row: Filter, due: list[int]) -> None:
        """M8, M9: a dot is any character, a line break included; a series without the label is found if negated."""
        page = await metrics.page("breaks", row)
        assert [cells["value"] for cells in page.rows] == due
        sent = metrics.sent("POST", "/query")[-1].body or ""
        assert "a%3D" in sent or "a%21" in sent, "the server filters"
        if row.op != "regex":
            either = await metrics.page("breaks", row, Filter("value", "=", -1), match="any")
            assert [cells["value"] for cells in either.rows] == due

    async def test_a_filter_row_on_the_time_is_a_shorter_span(self, metrics: Rig) -> None:
        """M8: nothing else is read."""
        at = instant_text(BEGIN + STEP)
        for op, due in (("=", 4), ("<", 2), ("<=", 6)):
            assert (await metrics.page(NAME, Filter("timestamp", op, at))).total == due
        assert "[1ms]" not in at
        mark = len(metrics.log or ())
        await metrics.page(NAME, Filter("timestamp", "=", at))
        assert any(re.search(r"%5B1(\.5)?ms%5D", str(sent.body)) for sent in (metrics.log or [])[mark:])

    async def test_values_are_filtered_and_sorted_by_the_driver(self, metrics: Rig) -> None:
        """M10: NaN is no number, and comes last."""
        page = await metrics.page(NAME, Filter("value", ">=", 700), sort=[Sort("value", descending=True)], limit=3)
        assert [row["value"] for row in page.rows] == [717.0, 717.0, 714.0]
        assert page.total == 2 * len([number for number in range(240) if number * 3 >= 700])
        assert [row["value"] for row in (await metrics.page("odd", Filter("value", "=", "+Inf"))).rows] == ["+Inf"]
        ascending, nan = ["minus", "zero", "third", "big", "inf"], [] if metrics.victoria else ["nan"]
        for descending, kinds in ((False, ascending), (True, ascending[::-1])):
            rows = (await metrics.page("odd", sort=[Sort("value", descending=descending)])).rows
            assert [row["kind"] for row in rows if row["kind"] != "tiny"] == [*kinds, *nan]

    async def test_all_rows_of_a_filter_hold_together(self, metrics: Rig) -> None:
        """M8: matchers join, and the spans of several rows on the time are cut to what they share."""
        later, end = instant_text(BEGIN + 3 * STEP), instant_text(BEGIN + 5 * STEP)
        rows = [Filter("timestamp", "<=", end), Filter("timestamp", ">=", later), Filter("timestamp", "<", end)]
        page = await metrics.page(NAME, *rows, Filter("code", "=", "500"), Filter("instance", "starts", "b"))
        assert [(row["timestamp"], row["instance"]) for row in page.rows] == [(later, "b:1")]
        either = await metrics.page(NAME, Filter("timestamp", "=", later), Filter("zone", "=", "Eu"), match="any")
        assert either.total == 240 + 2

    async def test_the_last_samples_come_first_if_the_time_descends(self, metrics: Rig) -> None:
        """M4: from any offset."""
        page = await metrics.page(NAME, sort=[Sort("timestamp", descending=True)], offset=3, limit=2)
        assert [(row["timestamp"], row["code"]) for row in page.rows] == [
            (instant_text(BEGIN + 239 * STEP), "200"),
            (instant_text(BEGIN + 238 * STEP), "200"),
        ]
        rows = [
            (await metrics.page(NAME, *where, sort=[Sort("timestamp", descending=True)], limit=9)).cells
            for where in ([], [Filter("value", ">=", 0)])
        ]
        assert rows[0] == rows[1], "rows of one instant come in one order, whoever filters"

    async def test_a_label_of_any_name_can_be_filtered(self, metrics: Rig) -> None:
        """M11: Prometheus 3 takes its name in quotation marks; elsewhere the driver compares."""
        for value, due in (("x", 1), ("y", 0)):
            assert len((await metrics.page("utf8 name.ü", Filter("lab.el", "=", value))).cells) == due

    async def test_promql_and_rest_lines_are_sent_as_parsed(self, metrics: Rig) -> None:
        """M12: a table for results of queries, JSON for the rest."""
        [scalar, listed] = await metrics.console("# one\nvector(1)\n\nGET /api/v1/label/job/values\n")
        assert scalar.page is not None
        assert [row["value"] for row in scalar.page.rows] == [1.0]
        assert json.loads(listed.text)["data"] == ["api", "x"]

    async def test_an_error_keeps_the_words_of_the_server(self, metrics: Rig) -> None:
        """M14: the answer of a console shows it; a grid raises it."""
        [answer] = await metrics.console('up{a=~"("}')
        assert answer.status in (400, 422)
        assert "error" in answer.text
        with pytest.raises(QueryError, match="the server refused: "):
            await metrics.page(NAME, Filter("code", "regex", "("))

    async def test_an_export_goes_on_after_each_request(self, metrics: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        """M15: the rows of all parts are those of the metric, in order; a checkpoint leads to the next one."""
        monkeypatch.setattr(walks, "CHUNK", 100)
        request = ExportRequest(object=NAME, form=ExportForm.ROWS)
        await metrics.driver.describe_object(NAME)
        async with aclosing(metrics.driver.export_rows(request)) as stream:
            parts = [part async for part in stream]
        lines = [json.loads(line) for part in parts for line in part.data.splitlines()]
        assert len(parts) > 7
        assert max(part.rows for part in parts) <= 100
        assert [line["timestamp"] for line in lines] == sorted(instant_text(row.at) for row in samples()[NAME])
        again = ExportRequest(object=NAME, form=ExportForm.ROWS, checkpoint=parts[2].checkpoint)
        async with aclosing(metrics.driver.export_rows(again)) as stream:
            rest = b"".join([part.data async for part in stream])
        assert rest == b"".join(part.data for part in parts[3:])

    async def test_what_continues_ends_where_it_would_have_ended(
        self, metrics: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """M15: samples that came meanwhile are not among them."""
        ends = [(BEGIN + number * STEP) / 1000 for number in (60, 240)]
        monkeypatch.setattr(walks, "CHUNK", 50)
        monkeypatch.setattr(walks, "time", SimpleNamespace(time=lambda: ends[0]))
        request = ExportRequest(object=NAME, form=ExportForm.ROWS)
        await metrics.driver.describe_object(NAME)
        parts = [part async for part in metrics.driver.export_rows(request)]
        page_request = PageRequest(object=NAME, limit=10)
        page = await metrics.driver.fetch_page(page_request)
        monkeypatch.setattr(walks, "time", SimpleNamespace(time=lambda: ends[1]))
        rest = replace(request, checkpoint=parts[0].checkpoint)
        assert [part.data async for part in metrics.driver.export_rows(rest)] == [part.data for part in parts[1:]]
        assert len(parts) > 2
        following = await metrics.driver.fetch_page(replace(page_request, cursor=page.next))
        assert (following.total, (await metrics.page(NAME)).total > page.total) == (page.total, True)

    async def test_a_cell_is_read_by_the_key_of_its_row(self, metrics: Rig) -> None:
        """M6, M11: whatever its labels are; a query cannot name each of them."""
        for name in ("odd", "breaks", "clash", "http_duration_seconds", "http_*", "utf8 name.ü"):
            page = await metrics.page(name, limit=9)
            for row in page.rows:
                assert row.key is not None
                for column in page.columns:
                    cell = await metrics.driver.fetch_cell(CellRequest(key=row.key, column=column.name))
                    assert cell == row[column.name], (name, column.name)
            gone = RowKey(name, [instant_text(BEGIN - 1), page.keys[0].id[1]])
            for key in (gone, RowKey(name, "x"), RowKey(name, ["x", "{}"]), RowKey(name, [instant_text(BEGIN), "[]"])):
                with pytest.raises(RowNotFoundError):
                    await metrics.driver.fetch_cell(CellRequest(key=key, column="value"))

    async def test_the_health_check_asks_for_the_build(self, metrics: Rig) -> None:
        """M16."""
        assert (await metrics.driver.ping()).ok
        assert (metrics.log or [])[-1].path == "/api/v1/status/buildinfo"


class TestRulesOnFake(Rules):
    @pytest.fixture(
        params=["2.42.0", pytest.param("3.16.0", marks=pytest.mark.slow), ""], ids=["2", "3", "victoriametrics"]
    )
    async def metrics(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        async with on_fake(request.param) as rig:
            yield rig


class TestRulesOnServer(OnServer, Rules):
    pass


BUILDS = [
    ({"application": "Grafana Mimir", "version": "2.9.0"}, "Grafana Mimir"),
    ({"version": "0.34.1"}, "something other than Prometheus"),
    ({}, "something other than Prometheus"),
]


@pytest.mark.parametrize(("build", "text"), BUILDS)
async def test_another_product_is_refused_by_name(build: dict[str, str], text: str) -> None:
    """M1: Thanos counts from 0, Mimir names itself; VictoriaMetrics says nothing, but has a header."""
    with pytest.raises(ServerNotSupportedError, match=text):
        async with on_fake(instead=lambda *_: web.json_response({"status": "success", "data": build})):
            pass


def result(kind: str, *series: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": series}})


def sample(at: Any, value: Any, **more: Any) -> dict[str, Any]:
    return {"metric": {"__name__": NAME}, "values": [[at, value]]} | more


SECOND = BEGIN // 1000
COUNTS = [[SECOND, text] for text in ("-1", "NaN", "+Inf", "1.5", "1e300", "x", 5)]
BODIES = {
    '{"status":"success","data":[': "cut",
    "<html>": "no JSON",
    "[]": "no object",
    "": "nothing",
    '{"status":1}': "a number as the status",
    '{"status":"success"}': "no data",
    '{"status":"success","data":{"result":7}}': "a number as the result",
    '{"status":"success","data":{"resultType":"matrix","result":%s}}' % ("[" * 9_999 + "]" * 9_999): "deep",
    result("streams"): "another type",
    result("matrix", {"values": [[SECOND, "1"]]}): "no labels",
    result("matrix", sample(SECOND, "1", metric={"a": 1})): "a number as a label",
    result("matrix", sample(SECOND, "1", metric={"a": {}})): "an object as a label",
    result("matrix", sample(SECOND, 1)): "a number as a value",
    result("matrix", sample(SECOND, "one")): "a word as a value",
    result("matrix", sample(SECOND, "1", values=[[SECOND]])): "no value",
    result("matrix", sample(SECOND, "1", values=[], histograms=[[SECOND, "x"]])): "a text as a histogram",
    result("matrix", sample("x", "1")): "a text as a time",
    result("matrix", sample(1e300, "1")): "a time beyond all years",
    result("matrix", sample(10**400, "1")): "a time beyond all numbers",
    result("matrix", sample(SECOND + 86_400, "1")): "a time outside of the span",
    result("matrix"): "fewer samples than were counted",
    result("vector", {"metric": {}}): "a count without a value",
    **{result("vector", {"metric": {}, "value": count}): f"a count of {count[1]}" for count in COUNTS},
}


@pytest.mark.parametrize("counted", [False, True])
async def test_an_answer_of_another_shape_is_an_error_of_the_query(counted: bool) -> None:
    """M14: never a fault of the driver, and nothing that is missing in silence, also after a count that is right."""
    async with on_fake() as rig:
        [key] = (await rig.page(NAME, limit=1)).keys
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: rig.page(NAME),
            lambda: rig.page(NAME, sort=[Sort("value")]),
            lambda: rig.driver.summarize_column(SummaryRequest(object=NAME, column="code")),
            lambda: rig.driver.fetch_cell(CellRequest(key=key, column="code")),
            lambda: exported(rig),
        ]
        for body, name in BODIES.items():
            rig.fake.instead = lambda _, answer, body=body: (
                answer if counted and b"matrix" not in answer.body else web.Response(text=body)
            )
            for number, call in enumerate(calls):
                with pytest.raises(QueryError):
                    pytest.fail(f"{name}: call {number} returned {await call()}")
            assert counted or not (await rig.driver.ping()).ok
            assert (await rig.console("up"))[0].status == 200


async def exported(rig: Rig) -> list[bytes]:
    async with aclosing(rig.driver.export_rows(ExportRequest(object=NAME, form=ExportForm.ROWS))) as parts:
        return [part.data async for part in parts]


async def test_names_of_another_shape_are_an_error() -> None:
    """M14: an old server has null where it means no names; anything else would hide metrics."""
    async with on_fake() as rig:
        for data in ("false", "0", '""', "{}", "[1]", "[null]", '[""]', '["\\ud800"]'):
            rig.fake.instead = lambda *_, data=data: web.Response(text=f'{{"status":"success","data":{data}}}')
            with pytest.raises(QueryError):
                pytest.fail(f"{data}: {await rig.driver.list_objects(ObjectsRequest())}")
        rig.fake.instead = lambda *_: web.Response(text='{"status":"success","data":null}')
        assert not (await rig.driver.list_objects(ObjectsRequest())).objects
        rig.fake.instead = lambda *_: web.Response(text='{"status":"success","data":["a_b","a_b"]}')
        assert [one.name for one in (await rig.driver.list_objects(ObjectsRequest())).objects] == ["a_b"]


async def test_a_result_that_no_table_holds_is_shown_as_it_is() -> None:
    """M12: a time after the year 9999, which a query may name, and what is no result."""
    year_10000 = {"metric": {}, "value": [253_402_300_800, "1"]}
    async with on_fake() as rig:
        for body in (result("vector", year_10000), result("vector", {"metric": {}}), result("matrix", sample(1, 1))):
            rig.fake.instead = lambda *_, body=body: web.Response(text=body)
            [answer] = await rig.console("up")
            assert (answer.page, json.loads(answer.text)) == (None, json.loads(body))


async def test_labels_called_like_other_columns_have_a_prefix_in_the_console() -> None:
    """M7, M12: as in the grid, so no column has the name of another one."""
    labels = {"value": "1", "timestamp": "2", "label:value": "3", "a": "4"}
    async with on_fake() as rig:
        rig.fake.instead = lambda *_: web.Response(
            text=result("vector", {"metric": labels, "value": [SECOND, "5"]}, {"metric": {}, "value": [SECOND, "NaN"]})
        )
        [answer] = await rig.console("up")
        assert answer.page is not None
        assert [column.name for column in answer.page.columns] == [
            "a", "label:label:value", "label:timestamp", "label:value", "timestamp", "value",
        ]  # fmt: skip
        assert [column.role for column in answer.page.columns] == [*["key"] * 4, "time", ""]
        assert answer.page.cells == [
            ["4", "3", "2", "1", instant_text(BEGIN), 5.0], [None, None, None, None, instant_text(BEGIN), "NaN"],
        ]  # fmt: skip


async def test_completion_offers_what_can_be_written() -> None:
    """M12: a name of other characters needs quotation marks, which completion does not write."""
    async with on_fake() as rig:
        for text, due in (("utf", []), ("http_d", ["http_duration_seconds"]), ("label_r", ["label_replace"])):
            completion = await rig.driver.complete_console(CompletionRequest(text=text, position=len(text)))
            assert [suggestion.text for suggestion in completion.suggestions] == due


async def test_warnings_are_notes_of_a_page_and_errors_of_a_count_and_an_export() -> None:
    """M14: what a remote store did not answer would be missing in silence."""
    async with on_fake() as rig:
        rig.fake.warnings = ["remote_read: connection refused"]
        page = await rig.page(NAME)
        [note] = page.notes  # however many answers warn of it
        assert (note.code, note.reason) == ("partial-result", "the server warns: remote_read: connection refused")
        with pytest.raises(QueryError, match="connection refused"):
            await rig.driver.count_rows(CountRequest(object=NAME))
        with pytest.raises(QueryError, match="connection refused"):
            async with aclosing(rig.driver.export_rows(ExportRequest(object=NAME))) as parts:
                [part async for part in parts]


async def test_warnings_are_notes_of_a_table() -> None:
    """M14: also in the console."""
    async with on_fake() as rig:
        rig.fake.warnings = ["remote_read: connection refused"]
        [answer] = await rig.console(NAME)
        assert answer.page is not None
        assert [note.code for note in answer.page.notes] == ["partial-result"]


async def test_nan_equals_itself_and_compares_with_nothing() -> None:
    """M10: a filter takes NaN and infinities as the grid shows them; a histogram is no number."""
    async with on_fake() as rig:
        for row, due in (
            (Filter("value", "=", "NaN"), {"nan"}),
            (Filter("value", "in", ["NaN", "-Inf"]), {"nan", "minus"}),
            (Filter("value", "not-in", ["NaN", "-Inf", "0"]), {"inf", "tiny", "big", "third"}),
            (Filter("value", ">=", "NaN"), set()),
            (Filter("value", "between", [0.3, "+Inf"]), {"third", "big", "inf"}),
        ):
            assert {cells["kind"] for cells in (await rig.page("odd", row)).rows} == due, row
        for op, count in (("=", 0), ("!=", 1), ("<", 0)):
            assert (await rig.page("sizes", Filter("value", op, 12.5))).total == count


@pytest.mark.parametrize(("victoria", "due"), [(True, 1), (False, 2)])
def test_nan_of_victoriametrics_is_the_end_of_a_series(victoria: bool, due: int) -> None:
    """M6: and so no row; Prometheus leaves out its marks, and stores NaN."""
    matrix = answers.Matrix([answers.Series({"a": "b"}, values=[(SECOND, "1"), (SECOND + 15, "NaN")])])
    assert len([*answers.samples(matrix, answers.Features(victoria=victoria))]) == due


async def test_what_is_too_much_for_one_query_is_counted_in_parts() -> None:
    """M4: a count, a page and an export go on with shorter spans."""
    async with on_fake("2.42.0") as rig:
        rig.fake.most = 50
        assert await rig.driver.count_rows(CountRequest(object=NAME)) == len(samples()[NAME])


async def test_a_sort_and_a_filter_here_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """M10: they are refused with the reason, never approximated."""
    monkeypatch.setattr(walks, "SCAN", 100)
    monkeypatch.setattr(walks, "CHUNK", 50)
    async with on_fake() as rig:
        for rows, sort in (([], [Sort("value")]), ([Filter("value", "=", -1)], [])):
            with pytest.raises(WindowExceededError, match="evaluated here, over 100 samples at most"):
                await rig.page(NAME, *rows, sort=sort)
        with pytest.raises(WindowExceededError):
            await rig.driver.summarize_column(SummaryRequest(object=NAME, column="value"))
        assert (await rig.page(NAME, limit=500)).total == len(samples()[NAME])


async def test_a_filter_here_reads_all_samples_up_to_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """M10: however few of them each request reads."""
    monkeypatch.setattr(walks, "SCAN", 720)
    monkeypatch.setattr(walks, "CHUNK", 80)
    async with on_fake() as rig:
        assert (await rig.page(NAME, Filter("value", "=", 717))).total == 2


async def test_a_label_that_appears_later_makes_the_object_a_changed_one() -> None:
    """M7: no row is shown without it."""
    async with on_fake() as rig:
        compiled = await rig.filter(NAME, Filter("code", "=", "200"))
        rig.fake.add({"__name__": NAME, "code": "200", "pod": "p"}, BEGIN, 1.0)
        with pytest.raises(ObjectChangedError):
            await rig.page(NAME)
        assert "pod" in [column.name for column in (await rig.page(NAME)).columns]
        with pytest.raises(ObjectChangedError):
            await rig.driver.count_rows(CountRequest(object=NAME, filter=compiled))


async def test_a_page_goes_on_in_the_span_of_the_first_one() -> None:
    """M5: a sample that arrived between two pages is on no further page, but on a new first one."""
    async with on_fake() as rig:
        first = await rig.page(NAME, limit=700)
        at = rig.fake.now() + 2  # after the end of that span
        rig.fake.add({"__name__": NAME, "code": "200"}, at, 1.0)
        while rig.fake.now() <= at:
            await anyio.sleep(0.001)
        second = await rig.page(NAME, limit=700, cursor=first.next)
        assert (len(second.cells), second.total, second.next) == (20, 720, None)
        assert (await rig.page(NAME)).total == 721


async def test_the_last_seconds_are_read_from_victoriametrics() -> None:
    """M4: without `nocache` it leaves out the last 30 s of an answer."""
    async with on_fake("") as rig:
        rig.fake.add({"__name__": "fresh"}, rig.fake.now() - 2_000, 1.0)
        assert (await rig.page("fresh")).total == 1


async def test_a_request_that_may_change_something_is_a_write_and_columns_say_why_nothing_is_edited() -> None:
    """M13."""
    async with on_fake() as rig:
        for column in (await rig.driver.describe_object(NAME)).columns:
            assert "its API changes no sample" in column.reasons["edit"]
    assert not {"plan_change", "apply_change"} & {*dir(Driver)}


async def test_rows_that_nothing_can_run_are_refused_with_the_reason() -> None:
    """M10."""
    async with on_fake() as rig:
        for row, other, text in (
            (Filter("code", "=", ""), None, "use 'null'"),
            (Filter("series", "=", "x"), None, "filter by the labels"),
            (Filter("code", ">", "2"), None, "has no '>'"),
            (Filter("code", "regex", "2.."), Filter("value", ">", 1), "all rows of a filter must hold"),
        ):
            with pytest.raises(FilterNotSupportedError, match=text):
                await rig.page(NAME, row, *([other] if other else []), match="any" if other else "all")


async def test_credentials_and_a_path_prefix_are_sent() -> None:
    """M2."""
    async with on_fake(options={"path_prefix": "/gate"}, gate="/gate", auth_scheme=AuthScheme.BEARER,
                       secrets=Secrets(values={"token": "t0ken"})) as rig:  # fmt: skip
        assert rig.fake.seen == {"Bearer t0ken"}
        assert (await rig.page(NAME, limit=1)).total == 720


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again(status: int) -> None:
    turned_away: list[str] = []

    def once(path: str, answer: web.Response) -> web.Response:
        if path in turned_away:
            return answer
        turned_away.append(path)
        return web.Response(status=status)

    async with on_fake() as rig:
        rig.fake.instead = once
        assert (await rig.page(NAME, limit=1)).total == 720
    assert turned_away


@pytest.mark.live("prometheus-secured")
async def test_a_user_over_tls_is_let_in_and_another_is_not(live_server: dict[str, Any]) -> None:
    """M2, M16."""
    user = live_server["users"]["reader"]
    with open(live_server["ca_file"], encoding="utf-8") as file:  # noqa: PTH123 - a test
        authority = file.read()
    for password, allowed in ((user["password"], True), ("wrong", False)):
        saved = profile(
            live_server["url"], ssl_mode=SslMode.VERIFY_CA, ca_pem=authority, auth_scheme=AuthScheme.BASIC,
            options={"username": user["username"]}, secrets=Secrets(values={"password": password}),
        )  # fmt: skip
        if allowed:
            async with rigs.connected(saved) as rig:
                assert (await rig.driver.ping()).ok
        else:
            with pytest.raises(AuthenticationError):
                async with rigs.connected(saved):
                    pass
