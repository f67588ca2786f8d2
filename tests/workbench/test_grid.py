"""The grid in the page: objects, pages, digits, whole values, and what a filter sends."""

from __future__ import annotations

import json
import threading
import urllib.request
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import anyio
import msgspec
import pytest
from anyio.to_thread import run_sync
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import dragoman
from browsing import Asked, Recorder
from dragoman import Page, RowKey, Runtime
from dragoman_api.cells import CutBytes, CutJson, CutText, Json
from dragoman_api.columns import Column, Note
from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import TimeRange
from dragoman_api.summaries import Bucket, ColumnSummary, Figure, ValueCount
from dragoman_workbench.cells import (
    answer_page,
    answer_similar,
    answer_summary,
    entered,
    key_text,
    read_key,
    shown,
    spelled,
)
from dragoman_workbench.messages.connections import DescriptionAsked, ObjectsAsked
from dragoman_workbench.messages.rows import (
    Bar,
    CellAsked,
    FrequentValue,
    GridRow,
    PageAnswer,
    PageAsked,
    RowsAsked,
    SavedQuery,
    SimilarAsked,
    Summarized,
    SummaryAsked,
)
from dragoman_workbench.messages.work import ExportAsked, ExportedFile
from dragoman_workbench.routes.exports import ExportRoutes
from dragoman_workbench.routes.grid import GridRoutes
from dragoman_workbench.server import RefusedError, _decode
from drawn_selections import FULL, SELECTIONS


def filter_row(column, op, value=None, **others):
    """Return a filter row as the page sends it."""
    return {"type": "filter", "column": column, "op": op, "value": value, **others}


async def test_objects_are_listed_and_described(shop_tab):
    objects = (await shop_tab("objects", connection="shop"))["objects"]
    assert [each["name"] for each in objects] == ["books", "orders"]
    assert all(each["rows"] > 0 for each in objects)
    assert [each["name"] for each in (await shop_tab("objects", connection="shop", contains="ORD"))["objects"]] == [
        "orders"
    ]
    first = await shop_tab("objects", connection="shop", limit=1)
    assert ([entry["name"] for entry in first["objects"]], first["total"]) == (["books"], 2)
    second = await shop_tab("objects", connection="shop", limit=1, cursor=first["next"])
    assert ([entry["name"] for entry in second["objects"]], second.get("next")) == (["orders"], None)
    about = await shop_tab("describe", connection="shop", object="orders")
    total = next(each for each in about["columns"] if each["name"] == "total")
    assert ">=" in total["operators"]
    assert "properties" in about["structure"]


async def test_a_page_is_filtered_sorted_and_counted(shop_tab):
    rows = {"object": "orders", "filters": [filter_row("total", ">=", "100")]}
    sort = [{"column": "total", "descending": True}]
    page = await shop_tab("page", connection="shop", rows=rows | {"sort": sort, "columns": ["_id", "total"]}, limit=5)
    totals = [Decimal(each["cells"][1][1]) for each in page["rows"]]
    assert totals == sorted(totals, reverse=True)
    assert min(totals) >= 100
    assert len(page["rows"]) == 5
    assert page["total"] == int((await shop_tab("count", connection="shop", rows=rows))["rows"])
    assert [each["id"] for each in page["rows"]] == [each["cells"][0] for each in page["rows"]]


def logs(port, name, moments):
    """Put an index of log lines into the sample cluster."""
    lines = [
        json.dumps(part) for at, when in enumerate(moments) for part in ({"index": {}}, {"@timestamp": when, "n": at})
    ]
    mapping = json.dumps({"mappings": {"properties": {"@timestamp": {"type": "date"}, "n": {"type": "integer"}}}})
    bodies = [("PUT", f"/{name}", mapping, "json"), ("POST", f"/{name}/_bulk", "\n".join(lines) + "\n", "x-ndjson")]
    bodies.append(("POST", f"/{name}/_refresh", "", "json"))
    for method, path, body, kind in bodies:
        kind = {"Content-Type": f"application/{kind}"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body.encode(), kind, method=method)
        urllib.request.urlopen(request).close()


async def test_rows_of_a_relative_span_go_on_in_the_range_that_was_read(shop_tab, sample_port):
    now = datetime.now(UTC)
    moments = [(now - timedelta(seconds=20 * at)).isoformat() for at in range(300)]
    name = f"logs-{now.timestamp():.0f}"
    await anyio.to_thread.run_sync(logs, sample_port, name, moments)
    about = await shop_tab("describe", connection="shop", object=name)
    assert about["time"] == {"column": "@timestamp", "window": None}
    rows = {"object": name, "sort": [{"column": "n"}]}
    whole = await shop_tab("page", connection="shop", rows=rows, limit=20)
    assert (whole["time"], whole["total"]) == (None, 300)
    first = await shop_tab("page", connection="shop", rows=rows | {"span": {"since": "-1h"}}, limit=20)
    assert 170 <= first["total"] <= 180
    time = first["time"]
    assert time["since"].startswith((now - timedelta(hours=1)).strftime("%Y-%m-%dT%H:"))
    assert time["until"] is None
    rows["span"] = {"since": time["since"], "until": time["until"]}
    if first["next"]:
        second = await shop_tab("page", connection="shop", rows=rows, limit=20, cursor=first["next"])
        assert [row["cells"] for row in second["rows"]] != [row["cells"] for row in first["rows"]]
    assert int((await shop_tab("count", connection="shop", rows=rows))["rows"]) == first["total"]
    told = await shop_tab("explain", connection="shop", rows=rows)
    assert f"--since {time['since']}" in told["command"]
    assert f"Span(since='{time['since']}'" in told["python"]


async def test_a_page_continues_at_its_cursor(shop_tab):
    asked = {"connection": "shop", "rows": {"object": "orders", "sort": [{"column": "total"}]}, "limit": 20}
    first = await shop_tab("page", **asked)
    where = {"cursor": first["next"]} if first["next"] else {"offset": 20}
    second = await shop_tab("page", **asked, **where)
    assert not {each["id"] for each in first["rows"]} & {each["id"] for each in second["rows"]}


async def test_a_whole_value_is_fetched_by_the_key_of_its_row(shop_tab):
    page = await shop_tab("page", connection="shop", rows={"object": "orders"}, limit=1)
    at = [each["name"] for each in page["columns"]].index("items")
    row = page["rows"][0]
    assert row["cells"][at][0] == "json"
    cell = await shop_tab("cell", connection="shop", key=row["key"], column="items")
    assert cell["cell"] == row["cells"][at]


async def test_a_filter_is_explained_with_its_command_and_code(shop_tab):
    filters = [filter_row("total", "between", ["10", "20"]), filter_row("items.sku", "=", "A-17")]
    told = await shop_tab("explain", connection="shop", rows={"object": "orders", "filters": filters})
    assert [each["row"] for each in told["rows"]] == [0, 1]
    assert all(each["clause"] for each in told["rows"])
    assert told["command"] == "dragoman page shop orders --filter 'total between 10,20' --filter 'items.sku = A-17'"
    compile(told["python"], "script", "exec")


async def test_a_filter_that_cannot_run_says_why_and_in_which_row(shop_tab):
    rows = {"object": "orders", "filters": [filter_row("total", "=", "1"), filter_row("nothing", "=", "1")]}
    failure = await shop_tab.failure("explain", connection="shop", rows=rows)
    assert failure["code"] == "filter-not-supported"
    assert "nothing" in failure["message"]


@pytest.mark.parametrize(
    "part", [{"filters": [filter_row("total", "~", "1")]}, {"filter": []}, {"span": {"from": "-1h"}}, {"filters": [{}]}]
)
async def test_a_selection_that_cannot_be_read_chooses_no_rows(shop_tab, part):
    """A part that is misspelled is never left out: more rows would come than were asked for."""
    failure = await shop_tab.failure("page", status=400, connection="shop", rows={"object": "orders"} | part)
    assert failure["code"] == "bad-request"
    assert "rows" in failure["message"]


async def test_a_column_is_summarized_under_the_filter(shop_tab):
    row = filter_row("total", ">=", "100")
    asked = {"connection": "shop", "rows": {"object": "orders", "filters": [row]}}
    rows = int((await shop_tab("count", **asked))["rows"])
    total = await shop_tab("summarize", **asked, column="total", values=3, buckets=8)
    assert (total["rows"], total["missing"]) == (rows, 0)
    assert sum(each["rows"] for each in total["bars"]) == rows
    assert 1 <= len(total["bars"]) <= 8
    assert len(total["values"]) <= 3
    assert Decimal(total["minimum"][1]) >= 100
    city = await shop_tab("summarize", **asked, column="customer.city")
    assert city["bars"] == []
    first = city["values"][0]
    filters = [row, filter_row("customer.city", "=", first["cell"])]
    counted = await shop_tab("count", connection="shop", rows={"object": "orders", "filters": filters})
    assert int(counted["rows"]) == first["rows"]


async def test_a_column_that_cannot_be_summarized_says_why(shop_tab):
    asked = {"connection": "shop", "rows": {"object": "orders"}}
    failure = await shop_tab.failure("summarize", **asked, column="_id")
    assert "_id" in failure["message"]
    assert failure["hint"]
    assert (await shop_tab.failure("summarize", status=400, **asked, column="total", buckets=51))["code"]


async def test_bounds_of_requests_are_held(shop_tab):
    for more in ({"limit": 0}, {"limit": 1001}, {"offset": -1}, {"connection": ""}):
        asked = {"connection": "shop", "rows": {"object": "orders"}} | more
        assert (await shop_tab.failure("page", status=400, **asked))["code"] == "bad-request"


LONG = "a" * 4_096
BOUNDS = [
    ("object", "a" * 4_096), ("tenant", LONG), ("revision", LONG), ("columns", ["a"] * 4_096), ("columns", [LONG]),
    ("sort", [{"column": "a"}] * 64), ("sort", [{"column": LONG}]), ("span", {"since": "a" * 64}),
    ("span", {"until": "a" * 64}), ("filters", [filter_row("a", "=", "1")] * 200), ("filters", [filter_row(LONG, "=")]),
    ("filters", [filter_row("a", "=", "1", group="g" * 64)]), ("filters", [filter_row("a", "=", "a" * 65_536)]),
    ("filters", [filter_row("a", "in", ["1"] * 10_000)]), ("filters", [filter_row("a", "in", ["1", "a" * 65_536])]),
    ("filters", [filter_row("a", "=", "1"), {"type": "raw", "text": "a" * 65_536}]),
]  # fmt: skip
"""Parts of a selection that are as long as a request can have them."""
NAMELESS = [
    ("object", ""), ("columns", ["a", ""]), ("sort", [{"column": "a"}, {"column": ""}]),
    ("filters", [filter_row("", "=", "1")]),
]  # fmt: skip


def longer(part):
    """Return a part whose longest text or list is longer by one."""
    if isinstance(part, str):
        return f"{part}a"
    if isinstance(part, dict):
        name = max((name for name in part if isinstance(part[name], str | list)), key=lambda name: len(str(part[name])))
        return part | {name: longer(part[name])}
    return [*part, part[-1]] if len(part) > 2 else [*part[:-1], longer(part[-1])]


@pytest.mark.parametrize(("name", "part"), BOUNDS, ids=lambda part: str(part)[:20])
def test_a_selection_has_bounds_in_every_part(name, part):
    rows = {"object": "orders", name: part}
    assert _decode(msgspec.json.encode({"connection": "shop", "rows": rows}), RowsAsked)
    body = {"connection": "shop", "rows": rows | {name: longer(part)}, "to": "folder", "file": "a.csv"}
    with pytest.raises(RefusedError) as caught:
        _decode(msgspec.json.encode(body), ExportAsked)
    assert f"$.rows.{name}" in caught.value.failure.message
    assert "are possible, not" in caught.value.failure.message


@pytest.mark.parametrize(("name", "part"), NAMELESS, ids=str)
def test_every_name_of_a_selection_has_a_character(name, part):
    with pytest.raises(RefusedError, match=f"rows.{name}"):
        _decode(msgspec.json.encode({"connection": "shop", "rows": {"object": "orders", name: part}}), RowsAsked)


async def test_an_operator_that_does_not_exist_is_reported_at_its_filter_row(shop_tab):
    """The page marks the row; no text of a person moves the mark."""
    bad = filter_row("total", "` - at `$.rows.filters[7].op`", "1")
    rows = {"object": "orders", "filters": [filter_row("total", "=", "1"), {"type": "raw", "text": "a"}, bad]}
    failure = await shop_tab.failure("explain", status=400, connection="shop", rows=rows)
    assert (failure["code"], failure["row"]) == ("bad-request", 2)
    rows["filters"][2] = filter_row("a" * 4_097, "=", "1")
    assert (await shop_tab.failure("explain", status=400, connection="shop", rows=rows))["row"] == 2
    rows["sort"], rows["filters"] = [{"column": ""}], []
    assert (await shop_tab.failure("explain", status=400, connection="shop", rows=rows))["row"] is None


async def test_other_requests_are_answered_while_many_values_are_spelled(shop_tab, monkeypatch):
    """The spelling waits here until the other request has its answer, which it never has on the event loop."""
    answered = threading.Event()

    def command(rows):
        assert answered.wait(20)
        return ["dragoman"]

    monkeypatch.setattr(dragoman.Rows, "command", command)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(shop_tab, "explain", connection="shop", rows={"object": "orders"}))
        await anyio.sleep(0.2)
        await shop_tab("state")
        answered.set()


CELLS = [
    (None, None), (True, True), ("", ""), ("a", "a"), (2**70, ["integer", str(2**70)]), (0, ["integer", "0"]),
    (1.0, ["decimal", "1.0"]), (1e300, ["decimal", "1e+300"]), (Decimal("1.10"), ["decimal", "1.10"]),
    (Json("[]"), ["json", "[]"]), (Json('{"b":1,"a":1.10}'), ["json", '{"b":1,"a":1.10}']),
    (CutJson("[1..."), ["cut-json", "[1..."]), (CutText("ab"), ["cut-text", "ab"]), (b"\xff", ["bytes", "/w=="]),
    (CutBytes(b"\xff"), ["cut-bytes", "/w=="]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "cell"), CELLS, ids=repr)
def test_each_kind_of_cell_is_told_apart(value, cell):
    assert msgspec.json.decode(msgspec.json.encode(shown(value))) == cell


@given(
    st.none()
    | st.booleans()
    | st.text()
    | st.integers()
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False)
)
def test_a_value_comes_back_digit_for_digit(value):
    back = entered(shown(value), column="c")
    if isinstance(value, Decimal):  # a float where that has the same digits
        back = Decimal(str(back))
    assert (back, type(back) is bool) == (value, type(value) is bool)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back_with_its_sign(value):
    back = entered(shown(value), column="c")
    assert repr(float(back)) == repr(value)


@pytest.mark.parametrize("text", ['{"a":[1.10, 12345678901234567890]}', "[]", '[{"b":null}]'])
def test_an_entered_object_or_array_keeps_its_text(text):
    value = entered(("json", text), column="c")
    assert (type(value), value) == (Json, text)


@pytest.mark.parametrize(("text", "value"), [('"tea"', "tea"), ("true", True), ("null", None), ("7", 7)])
def test_json_of_a_single_value_is_that_value(text, value):
    assert entered(("json", text), column="c") == value


@pytest.mark.parametrize("digits", ["9007199254740993", "-0", "1" * 5_000, "12345678901234567890"])
def test_long_integers_and_the_sign_of_zero_survive(digits):
    value = entered(("integer", digits), column="c")
    assert Decimal(str(value)) == Decimal(digits)
    assert str(value).startswith("-") is digits.startswith("-")


@pytest.mark.parametrize(
    "cell",
    [
        ("integer", "1.5"), ("integer", ""), ("integer", "\u0661"), ("integer", "1e5"), ("decimal", "x"),
        ("decimal", "true"), ("decimal", "NaN"), ("json", "{"), ("bytes", "?"), ("cut-text", "a"),
        ("cut-json", "[1..."), ("missing", ""),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_value_is_refused_with_its_column(cell):
    with pytest.raises(ConfigurationError) as caught:
        entered(cell, column="price")
    assert caught.value.details["column"] == "price"
    whole = cell[0] not in ("cut-text", "cut-json", "missing")
    assert caught.value.message.startswith(f"price: {cell[1]!r} cannot be stored: ") is whole


TOTAL, TITLE = Column(name="total", type="double"), Column(name="title", type="text")
NOTES = [Note(code="partial", reason="two of three shards"), Note(code="cut", reason="a long text is cut")]


def test_a_page_reaches_the_tab_whole():
    keys = [RowKey("orders", "17"), RowKey("orders", ["eu", 17]), RowKey("orders", ""), RowKey("orders", b"")]
    cells = [[1, "a"], [2, None], [(), "c"], [4, CutText("d")]]
    time = TimeRange(column="at", since="2026-01-31T00:00:00Z", until="2026-12-31T00:00:00Z")
    page = Page(
        columns=[TOTAL, TITLE],
        cells=cells,
        keys=keys,
        notes=NOTES,
        total=2**53 + 1,
        total_exact=False,
        offset=40,
        next="cursor",
        revision="r7",
        time=time,
        now="2026-12-31T12:00:00Z",
    )
    rows = [
        GridRow(id="17", key=key_text(keys[0]), cells=[("integer", "1"), "a"]),
        GridRow(id='["eu",17]', key=key_text(keys[1]), cells=[("integer", "2"), None]),
        GridRow(id="", key=None, cells=[("missing", ""), "c"]),
        GridRow(id=spelled(b""), key=None, cells=[("integer", "4"), ("cut-text", "d")]),
    ]
    assert answer_page(page, seconds=0.25) == PageAnswer(
        columns=[TOTAL, TITLE],
        rows=rows,
        notes=NOTES,
        total=2**53 + 1,
        total_exact=False,
        offset=40,
        next="cursor",
        revision="r7",
        seconds=0.25,
        time=time,
        now="2026-12-31T12:00:00Z",
    )
    table = answer_page(msgspec.structs.replace(page, keys=[], total_exact=True), seconds=0)
    assert [(row.id, row.key, row.cells) for row in table.rows] == [("", None, row.cells) for row in rows]
    assert table.total_exact is True


def test_a_summary_reaches_the_tab_whole():
    summary = ColumnSummary(
        column=TOTAL,
        rows=9,
        missing=2,
        values=[ValueCount(5, 4), ValueCount(Decimal("1.10"), 2)],
        distinct=3,
        minimum=1,
        maximum=5,
        buckets=[Bucket(1, 3, 6), Bucket(3, 5, 1)],
        approximate={Figure.DISTINCT: "it is an estimate"},
        absent={Figure.VALUES: "there are too many"},
        notes=NOTES,
    )
    assert answer_summary(summary, seconds=0.5) == Summarized(
        column=TOTAL,
        rows=9,
        missing=2,
        values=[
            FrequentValue(cell=("integer", "5"), rows=4),
            FrequentValue(cell=("decimal", "1.10"), rows=2),
        ],
        distinct=3,
        minimum=("integer", "1"),
        maximum=("integer", "5"),
        bars=[
            Bar(lower=("integer", "1"), upper=("integer", "3"), rows=6),
            Bar(lower=("integer", "3"), upper=("integer", "5"), rows=1),
        ],
        approximate={"distinct": "it is an estimate"},
        absent={"values": "there are too many"},
        notes=NOTES,
        seconds=0.5,
    )


CHOSEN, PLAIN = FULL, dragoman.RowSelection(object="orders")
SELECTION = {"connection": "shop", "rows": CHOSEN}
PAGE = {"offset": 40, "limit": 20, "total": False, "cursor": "next"}
FIRST = {"offset": 0, "limit": 100, "total": True, "cursor": None}
HERE = {"connection": "shop", "object": "orders"}
LISTED = {"parent": "sales", "contains": "ord", "cursor": "next", "limit": 7}


@pytest.mark.parametrize(
    ("route", "request_", "asked"),
    [
        ("page", PageAsked(**SELECTION, **PAGE), ("page", (), PAGE, CHOSEN)),
        ("page", PageAsked(connection="shop", rows=PLAIN), ("page", (), FIRST, PLAIN)),
        ("count", RowsAsked(**SELECTION), ("count", (), {}, CHOSEN)),
        (
            "summarize",
            SummaryAsked(**SELECTION, column="total", values=3, buckets=8),
            ("summarize", ("total",), {"values": 3, "buckets": 8}, CHOSEN),
        ),
        ("explain", RowsAsked(**SELECTION), ("explain", (), {}, CHOSEN)),
        ("objects", ObjectsAsked(connection="shop", **LISTED), ("objects", (), LISTED)),
        ("describe", DescriptionAsked(**HERE), ("describe", ("orders",), {})),
        (
            "cell",
            CellAsked(connection="shop", key=key_text(RowKey("orders", "17")), column="items", revision="r7"),
            ("cell", (RowKey("orders", "17"), "items"), {}, "orders", {"revision": "r7"}),
        ),
    ],
)
async def test_every_part_of_a_request_reaches_the_session(route, request_, asked):
    with pytest.raises(Asked) as caught:
        await getattr(GridRoutes(Recorder()), route)(request_)
    assert caught.value.args == asked


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    ("content", "file_format"),
    [
        (ExportedFile(format="csv", compression="zstd"), dragoman.FileFormat("csv", compression="zstd", escape=True)),
        (ExportedFile(format="tsv"), dragoman.FileFormat("tsv", escape=True)),
        (ExportedFile(format="csv", escape=False), dragoman.FileFormat("csv")),
        (ExportedFile(format="rows", escape=True), dragoman.FileFormat("rows")),
        (ExportedFile(), dragoman.FileFormat("documents")),
    ],
)
async def test_every_part_of_an_export_reaches_the_session(resume, content, file_format):
    """No text of a server becomes a formula of a spreadsheet unless the request says so."""
    request = ExportAsked(**SELECTION, to="folder", file="orders.csv", format=content)
    runtime = SimpleNamespace(add_sink=lambda _: None)
    room = ExportRoutes(runtime, Recorder(), stream=None, work=None, downloads=None, folder=None)
    with pytest.raises(Asked) as caught:
        await room._export("1", request, "there", resume=resume)
    options = {"format": file_format, "resume": resume}
    assert caught.value.args == ("export", ("there",), options, CHOSEN)


KEYS = st.builds(
    RowKey,
    object=st.text(min_size=1),
    id=st.text() | st.binary() | st.lists(st.text() | st.integers(0, 2**64 - 1) | st.binary(), min_size=1, max_size=4),
    routing=st.none() | st.text(),
    guard=st.dictionaries(st.text(), st.integers(-(2**63), 2**64 - 1) | st.text(), max_size=3),
)


@given(KEYS)
def test_a_key_comes_back_unchanged(key):
    assert read_key(key_text(key)) == key


@pytest.mark.parametrize("text", ["", "?", "AAAA", "gA==", "k8A=", "a" * 60_000, "3dwB" * 100])
def test_a_text_that_is_no_key_is_refused(text):
    with pytest.raises(ConfigurationError):
        read_key(text)


async def test_the_rows_of_the_page_as_a_command_and_as_python(shop_tab):
    filters = [filter_row("total", ">=", "1"), filter_row("note", "null")]
    rows = {"object": "orders", "filters": filters, "match": "any"}
    explained = await shop_tab("explain", connection="shop", rows=rows)
    assert explained["command"] == "dragoman page shop orders --filter 'total >= 1' --filter 'note null' --match any"
    arguments = "filters=[Filter('total', '>=', '1'), Filter('note', 'null')], match='any'"
    assert f"session.rows('orders', {arguments}).page()" in explained["python"]
    filters[0]["value"] = "1\0"  # no argument of a command can hold it
    assert (await shop_tab.failure("explain", connection="shop", rows=rows))["code"]


async def test_what_the_page_saves_the_shell_runs_and_the_other_way_round(shop_tab, shop_home):
    saved = replace(FULL, tenant=None, revision="")  # this driver has neither
    rows = msgspec.json.decode(msgspec.json.encode(saved))
    assert (await shop_tab("queries", connection="shop"))["queries"] == []
    await shop_tab("queries/save", connection="shop", name="mine", rows=rows)
    queries = (await run_sync(Runtime, shop_home)).queries("shop")
    texts = await run_sync(queries.get, "mine")
    assert (texts.filters, texts.raw) == (["a in 1,2 @g -case"], ["raw"])
    await run_sync(queries.save, "typed", texts)
    assert await run_sync(queries.get, "typed") == texts
    listed = (await shop_tab("queries", connection="shop"))["queries"]
    assert [(query["name"], query["shared"]) for query in listed] == [("mine", False), ("typed", False)]
    assert [query["rows"] for query in listed] == [rows, rows]


@settings(max_examples=40, deadline=None)
@given(SELECTIONS)
def test_a_selection_reaches_the_host_and_the_page_whole(selection):
    """A new field of a selection that a message loses fails here; `test_page_units` goes on with the page's address."""
    request = msgspec.json.decode(msgspec.json.encode(RowsAsked(connection="shop", rows=selection)), type=RowsAsked)
    [rows] = anyio.run(chosen, request)
    assert rows == selection
    answer = msgspec.json.encode(SavedQuery(name="mine", shared=False, rows=rows))
    assert msgspec.json.decode(answer, type=SavedQuery).rows == selection


async def chosen(request):
    """Return which rows a route reads for a request."""
    with pytest.raises(Asked) as caught:
        await GridRoutes(Recorder()).count(request)
    return caught.value.args[3:]


async def test_a_name_is_taken_once_unless_it_is_replaced_and_what_is_removed_is_gone(shop_tab):
    rows = {"object": "orders"}
    await shop_tab("queries/save", connection="shop", name="mine", rows=rows)
    failure = await shop_tab.failure("queries/save", connection="shop", name="mine", rows=rows)
    assert "has a query called 'mine' already" in failure["message"]
    await shop_tab("queries/save", connection="shop", name="mine", rows=rows | {"object": "books"}, replace=True)
    [query] = (await shop_tab("queries", connection="shop"))["queries"]
    assert query["rows"]["object"] == "books"
    failure = await shop_tab.failure("queries/save", connection="shop", name="a b", rows=rows)
    assert "cannot name a query" in failure["message"]
    await shop_tab("queries/remove", connection="shop", name="mine")
    assert (await shop_tab("queries", connection="shop"))["queries"] == []


NEAR = Page(
    columns=[Column(name="id", type="text"), Column(name="_distance", type="distance")],
    cells=[["b", 0.25], ["c", 0.5]],
    keys=[RowKey("books", "b"), RowKey("books", "c")],
)


def test_distances_come_first_and_similar_rows_are_a_whole_page():
    answer = answer_similar(NEAR, RowKey("books", "a"), seconds=0)
    assert [column.name for column in answer.columns] == ["_distance", "id"]
    assert [(row.id, row.cells) for row in answer.rows] == [
        ("b", [("decimal", "0.25"), "b"]), ("c", [("decimal", "0.5"), "c"]),
    ]  # fmt: skip
    assert (answer.total, answer.total_exact, answer.next, answer.near) == (2, True, None, "a")
    assert answer_page(NEAR, seconds=0).near == ""


async def test_rows_similar_to_a_row_are_asked_for_by_its_key_and_with_the_filter():
    asked = []

    class Rows:
        async def similar(self, key, **options):
            asked.append((key, options))
            return NEAR

    class Session:
        def select(self, rows):
            asked.append(rows)
            return Rows()

    class Open:
        async def session(self, name):
            return Session()

    rows = dragoman.RowSelection(object="books", filters=[dragoman.Filter("id", "!=", "d")])
    key = RowKey("books", "a", routing="r")
    request = SimilarAsked(connection="shop", rows=rows, key=key_text(key), column="vector", limit=7)
    answer = await GridRoutes(Open()).similar(request)
    assert asked == [rows, (key, {"column": "vector", "limit": 7})]
    assert answer.near == "a"
    with pytest.raises(ConfigurationError, match="this is not the key of a row"):
        await GridRoutes(Open()).similar(SimilarAsked(connection="shop", rows=rows, key="bm90IGEga2V5"))
