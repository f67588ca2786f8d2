"""Exports: every row once, as stored, whole or an error; in ranges side by side, resumable."""

from __future__ import annotations

import json
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import TYPES, OnFake, OnServer, Rig, key, on_fake
from drivers.weaviate.test_conformance import objects
from drivers.weaviate.test_connect import TOO_MANY
from drivers.weaviate.views import view
from msgspec.structs import replace

from dragoman_api import ExportRequest, Filter, FilterRequest, QueryError
from dragoman_api.errors import ConnectionFailedError, ObjectNotFoundError
from dragoman_api.exports import ExportForm, SplitRequest
from dragoman_weaviate.export import ExportReader
from dragoman_weaviate.grid.filters import compile_filter

if TYPE_CHECKING:
    from wording import Wording


def export(*rows: Filter, **more: Any) -> ExportReader:
    compiled = compile_filter(FilterRequest(object="Book", rows=list(rows)), view()) if rows else None
    return ExportReader(ExportRequest(object="Book", filter=compiled, **more), view())


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"class": "Book", "id": key(number), "properties": {"pages": number}} | more


def test_the_ids_are_cut_into_ranges_that_leave_none_out():
    """W39: read side by side by the cursor, which ends at no window."""
    ranges = export().ranges
    assert [each.position for each in ranges] == ["", *[each.bound for each in ranges[:-1]]]
    assert ranges[0].bound == "3fffffff-ffff-ffff-ffff-ffffffffffff"
    assert ranges[-1].bound == ""


def test_a_lane_stops_at_its_bound():
    made = export()
    below, above = item(0), item(1)
    assert below["id"] < made.ranges[0].bound < above["id"]
    answers = Answers(reply({"objects": [below, above]}))
    [piece] = answers.run(made.pieces(made.ranges[0]))
    assert ([json.loads(line) for line in piece.data.splitlines()], piece.ends) == ([{"pages": 0}], True)
    assert answers.asked[0].path == "/v1/objects?class=Book&limit=1000"


def test_vectors_leave_only_with_those_who_ask():
    """They would be most of the bytes."""
    for columns, wanted in ((None, False), (["pages"], False), (["pages", "vector"], True)):
        answers, made = Answers(reply({"objects": []})), export(columns=columns)
        answers.run(made.pieces(made.ranges[0]))
        assert ("include=vector" in answers.asked[0].path) is wanted


def test_a_filtered_export_seeks_by_id():
    """W39: `And[where, id > last]` goes beyond the window too."""
    made = export(Filter("pages", ">", 1))
    answers = Answers(reply({"data": {"Get": {"Book": []}}}))
    answers.run(made.pieces(made.ranges[1]))
    text = json.loads(answers.asked[0].body or "")["query"]
    assert 'path:["id"],operator:GreaterThan,valueText:"3fffffff-' in text
    assert 'path:["id"],operator:LessThanEqual,valueText:"7fffffff-' in text
    assert 'sort:[{path:["_id"],order:asc}]' in text
    assert "limit:2500" in text


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (ExportForm.DOCUMENTS, {"pages": 7}),
        (
            ExportForm.ROWS,
            {"class": "Book", "id": key(7), "creationTimeUnix": 1, "lastUpdateTimeUnix": 2, "properties": {"pages": 7},
             "vector": [0.1]},
        ),
        (ExportForm.BULK, {"class": "Book", "id": key(7), "properties": {"pages": 7}, "vector": [0.1]}),
    ],
)  # fmt: skip
def test_a_line_is_a_document_a_row_or_what_the_batch_endpoint_takes(form, line):
    given = item(7, creationTimeUnix=1, lastUpdateTimeUnix=2, vector=[0.1], vectorWeights=None)
    made = export(form=form, columns=["vector"])
    [piece] = Answers(reply({"objects": [given]})).run(made.pieces(made.ranges[1]))
    assert [json.loads(each) for each in piece.data.splitlines()] == [line]


@pytest.mark.parametrize("columns", [["pages"], ["pages", "vector"]])
@pytest.mark.parametrize(
    ("config", "asked", "sent", "exported"),
    [
        ({}, " vector}", {"vector": [0.5]}, {"vector": [0.5]}),
        ({}, " vector}", {"vector": None}, {}),
        (
            {"vectorConfig": {"front": {}, "back": {}}},
            " vectors{front back}}",
            {"vectors": {"front": [0.5, 1], "back": []}},
            {"vectors": {"front": [0.5, 1]}},
        ),
        ({"vectorConfig": {"front": {}}}, " vectors{front}}", {"vectors": {"front": None}}, {}),
    ],
)
def test_a_filtered_export_reads_vectors_by_their_names_if_they_are_asked_for(config, asked, sent, exported, columns):
    shown, wanted = view(**config), "vector" in columns
    compiled = compile_filter(FilterRequest(object="Book", rows=[Filter("pages", ">", 1)]), shown)
    made = ExportReader(ExportRequest(object="Book", filter=compiled, form=ExportForm.ROWS, columns=columns), shown)
    additional = {"id": key(7), "creationTimeUnix": "1", "lastUpdateTimeUnix": "2"} | (sent if wanted else {})
    answers = Answers(reply({"data": {"Get": {"Book": [{"pages": 7, "_additional": additional}]}}}))
    [piece] = answers.run(made.pieces(made.ranges[1]))
    assert (asked in json.loads(answers.asked[0].body or "")["query"]) is wanted
    line = json.loads(piece.data)
    assert {name: line[name] for name in ("vector", "vectors") if name in line} == (exported if wanted else {})


@pytest.mark.parametrize("name", ["title", "uuid", "vector"])
def test_columns_say_where_an_exported_row_holds_them(name):
    found = {column.name: column.path for column in view().describe().columns}
    assert found[name] == {"title": ("properties", "title"), "uuid": ("id",), "vector": ("vector",)}[name]
    named = view(vectorConfig={"front": {}}).describe().columns[-1]
    assert named.path == ("vectors",)


def test_a_server_that_repeats_itself_ends_the_export(wording: Wording):
    made = export()
    again = reply({"objects": sorted(map(item, range(1000)), key=lambda each: each["id"])})
    Answers(again).run(made.pieces(made.ranges[0]))
    with pytest.raises(QueryError) as caught:
        Answers(again).run(made.pieces(made.ranges[0]))
    wording(caught.value.message)


@pytest.mark.parametrize("body", ["", "{", '{"objects": 1}', '{"objects": [{"class": "Book"}]}'])
def test_an_answer_that_is_no_list_ends_the_export(body):
    made = export()
    with pytest.raises(QueryError):
        Answers(reply(body)).run(made.pieces(made.ranges[0]))


def test_an_answer_that_is_too_large_is_asked_for_in_parts():
    made = export()
    run = made.pieces(made.ranges[0])
    sizes = []
    requests = next(run)
    for _ in range(2):
        requests = run.throw(QueryError("too long", details={"limit": 10}))
        sizes.append(requests[0].path.partition("limit=")[2])
    assert sizes == ["250", "62"]
    with pytest.raises(ConnectionFailedError):
        run.throw(ConnectionFailedError("refused", details={"sent": False}))


def test_a_range_loses_patience_and_finds_it_again_behind_the_next_page():
    span = export().ranges[0]
    away = ConnectionFailedError("no complete answer", details={"sent": True})
    assert [span.again(away) for _ in range(3)] == [0.2, 0.6, 1.8]
    assert span.size == 125
    with pytest.raises(ConnectionFailedError):
        span.again(away)
    span.patience.renew()
    assert span.again(away) == 0.2
    with pytest.raises(QueryError):
        span.again(QueryError("no such property", details={"status": 422}))
    assert span.again(QueryError("slow down", details={"status": 429, "retry_after": 7})) == 7


def test_a_lower_limit_of_the_server_is_kept():
    text = (
        "query maximum results exceeded: the total limit calculated from the provided offset '0' and limit '1000' "
        "exceeds the configured value for QUERY_MAXIMUM_RESULTS '50'"
    )
    made = export()
    answers = Answers(
        reply({"error": [{"message": text}]}, status=422),
        reply({"objects": sorted(map(item, range(50)), key=lambda each: each["id"])}),
    )
    answers.run(made.pieces(made.ranges[0]))
    following = Answers(reply({"objects": []}))
    following.run(made.pieces(made.ranges[0]))
    assert ["limit=50" in each.path for each in (*answers.asked, *following.asked)] == [False, True, True]


@pytest.mark.parametrize("checkpoint", ["", "x", "[]", '{"lanes": 1}', '{"a":' * 50_000], ids=len)
def test_a_checkpoint_of_somebody_else_is_refused(checkpoint):
    with pytest.raises(QueryError, match="checkpoint"):
        export(checkpoint=checkpoint)


async def hold_whole(wv: Rig, name: str, *, rows: int) -> None:
    values = [{"i": at % 10, "big": at + 2**40 * (at % 20 == 9)} for at in range(rows)]
    await wv.load(name, values)
    found = await wv.export(name, form=ExportForm.ROWS)
    by_id = {row["id"]: row for row in found}
    assert len(found) == rows
    assert {each: row["properties"] for each, row in by_id.items()} == {key(at): values[at] for at in range(rows)}
    some = await wv.export(name, Filter("i", ">=", 5), form=ExportForm.ROWS)
    assert sorted(row["id"] for row in some) == sorted(key(at) for at in range(rows) if at % 10 >= 5)
    assert all(by_id[row["id"]] == row for row in some)


class Rules:
    @pytest.mark.parametrize("shards", [1, 3])
    async def test_an_export_is_whole_and_as_stored(self, wv: Rig, shards: int, monkeypatch: pytest.MonkeyPatch):
        """W39: by many pages of several ranges; a filter leaves what the filter counts."""
        monkeypatch.setattr("dragoman_weaviate.export._FIRST", 40)
        monkeypatch.setattr("dragoman_weaviate.export._MOST", 60)
        await hold_whole(wv, await wv.collection({"i": "int", "big": "int"}, shards=shards), rows=500)

    async def test_a_filtered_row_is_exported_as_an_unfiltered_one(self, wv: Rig):
        """Every type, vectors too."""
        name = await wv.collection(TYPES, [each | {"title": "tea"} for each in objects(30)])
        for form in ExportForm:
            more = {"form": form, "columns": [*TYPES, "vector"]}
            plain, found = await wv.export(name, **more), await wv.export(name, Filter("title", "=", "tea"), **more)
            assert sorted(map(json.dumps, plain)) == sorted(map(json.dumps, found))
            assert ("vector" in plain[0]) is (form is not ExportForm.DOCUMENTS)

    async def test_references_to_objects_that_are_gone_are_exported_with_a_filter_too(self, wv: Rig):
        other = await wv.collection({"t": "text"}, [{"t": "a"}])
        name = await wv.collection({"t": "text", "r": {"dataType": [other]}})
        reference = {"beacon": f"weaviate://localhost/{other}/{key(0)}"}
        await wv.call("POST", "/v1/objects", {"class": name, "properties": {"t": "x", "r": [reference]}})
        await wv.call("DELETE", f"/v1/objects/{other}/{key(0)}")
        [plain] = await wv.export(name)
        assert plain["r"][0]["beacon"] == reference["beacon"]
        assert await wv.export(name, Filter("t", "=", "x")) == [plain]

    @pytest.mark.parametrize("form", [*ExportForm])
    @pytest.mark.parametrize(
        ("vectors", "columns", "codes"),
        [
            ({"vector": [1, 2]}, None, ["vectors-left-out"]),
            ({"vector": [1, 2]}, ["i"], ["vectors-left-out"]),
            ({"vector": [1, 2]}, ["i", "vector"], []),
            ({"vectors": {"a": [1, 2]}}, None, ["vectors-left-out"]),
            ({}, None, []),
        ],
    )
    async def test_vectors_that_are_not_named_are_left_out_with_one_note(self, wv: Rig, form, vectors, columns, codes):
        config = {"vectorConfig": {"a": {"vectorizer": {"none": {}}, "vectorIndexType": "flat"}}}
        rows = [{"i": at} | vectors for at in range(30)]
        name = await wv.collection({"i": "int"}, rows, **(config if "vectors" in vectors else {}))
        request = ExportRequest(object=name, form=form, columns=columns)
        parts = [part async for part in wv.driver.export_rows(request)]
        if form is ExportForm.DOCUMENTS:
            codes = ["vectors-left-out"] if vectors else []
        assert [note.code for part in parts for note in part.notes] == codes
        made = await wv.driver.split_export(SplitRequest(export=request, shares=2))  # the notes of an export in parts
        assert [note.code for note in made.notes] == ["no-snapshot", *codes]
        shared = [part async for part in wv.driver.export_rows(replace(request, share=made.shares[0]))]
        assert [note for part in shared for note in part.notes] == []

    async def test_bulk_lines_go_back_in(self, wv: Rig):
        name = await wv.collection(TYPES, objects(10))
        other = await wv.collection(TYPES)
        lines = await wv.export(name, form=ExportForm.BULK, columns=["vector"])
        await wv.call("POST", "/v1/batch/objects", {"objects": [line | {"class": other} for line in lines]})
        copies = await wv.export(other, form=ExportForm.BULK, columns=["vector"])
        assert sorted(map(json.dumps, lines)) == sorted(json.dumps(line | {"class": name}) for line in copies)

    async def test_an_export_goes_on_behind_any_of_its_checkpoints(self, wv: Rig):
        """W39: no row twice, none missing."""
        name = await wv.collection({"i": "int"}, [{"i": at} for at in range(60)])
        async with aclosing(wv.driver.export_rows(ExportRequest(object=name))) as stream:
            parts = [part async for part in stream]
        assert sum(part.rows for part in parts) == 60
        for at, part in enumerate(parts):
            before = [json.loads(line)["i"] for each in parts[: at + 1] for line in each.data.splitlines()]
            rest = [line["i"] for line in await wv.export(name, checkpoint=part.checkpoint)]
            assert sorted(before + rest) == list(range(60))

    async def test_an_export_that_is_left_ends(self, wv: Rig):
        name = await wv.collection({"i": "int"}, [{"i": at} for at in range(60)])
        async with aclosing(wv.driver.export_rows(ExportRequest(object=name))) as stream:
            async for _ in stream:
                break
        assert (await wv.driver.ping()).ok

    async def test_a_collection_that_goes_away_ends_the_export_with_an_error(self, wv: Rig):
        name = await wv.collection({"i": "int"}, [{"i": 1}])
        await wv.driver.describe_object(name)
        await wv.call("DELETE", f"/v1/schema/{name}")
        with pytest.raises(ObjectNotFoundError):
            await wv.export(name)


@pytest.mark.slow
@pytest.mark.fake_only(reason="a server that is busy in the middle of an export")
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("status", [200, 429, 500, 502, 503, 504])
async def test_a_busy_server_in_the_middle_of_an_export_is_asked_again_after_a_pause(status: int, filtered: bool):
    """A search that is one too many for MAXIMUM_CONCURRENT_GET_REQUESTS says so with status 200."""
    if status == 200 and not filtered:
        pytest.skip("only GraphQL answers a failure with status 200")
    path = "/v1/graphql" if filtered else "/v1/objects"
    async with on_fake() as wv:
        assert wv.fake is not None
        name = await wv.collection({"i": "int"}, [{"i": at} for at in range(60)])
        rows = [Filter("i", ">=", 0)] if filtered else []
        body = TOO_MANY if status == 200 else {"error": [{"message": "busy"}]}
        wv.fake.misbehave("answer", on=path, after=3 if filtered else 2, times=2, status=status, body=body)
        began = time.monotonic()
        assert sorted(line["i"] for line in await wv.export(name, *rows)) == list(range(60))
        assert time.monotonic() - began > 0.09
        assert wv.fake.troubles[0].times < 0, "the server was not busy during the export"


class TestExportsOnFake(OnFake, Rules):
    pass


class TestExportsOnServer(OnServer, Rules):
    @pytest.mark.timeout(300)
    async def test_an_export_knows_no_window(self, wv: Rig):
        """W39: more rows than the server lists, with and without a filter."""
        await hold_whole(wv, await wv.collection({"i": "int", "big": "int"}, shards=3), rows=21_000)
