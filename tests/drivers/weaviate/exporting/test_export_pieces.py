"""The pieces of an export: where each ends, how many rows it has, and what a row looks like in each form."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import OnFake, OnServer, Rig, key
from drivers.weaviate.views import view

from dragoman_api import (
    ConnectionFailedError,
    DragomanError,
    ExportPart,
    ExportRequest,
    Filter,
    FilterRequest,
    QueryError,
)
from dragoman_api.exports import ExportForm
from dragoman_api.kit import cursors
from dragoman_weaviate import export as exporting
from dragoman_weaviate.export import ExportReader
from dragoman_weaviate.grid.filters import compile_filter


def uuid(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012x}"


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"class": "Book", "id": uuid(number), "creationTimeUnix": 3, "lastUpdateTimeUnix": 5,
            "properties": {"title": "tea"}} | more  # fmt: skip


def listed(*rows: dict[str, Any]) -> Any:
    return reply({"objects": list(rows)})


def reader(**more: Any) -> ExportReader:
    return ExportReader(ExportRequest(object="Book", **more), view())


def left(export: ExportReader, part: ExportPart) -> list[tuple[str, str]]:
    """Read the ranges that are left after a part."""
    return cursors.unseal(part.checkpoint or "", cursors.query_of(export.request), list[tuple[str, str]])


def test_a_page_of_long_rows_is_several_pieces_and_each_knows_its_last_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed export continues after what was passed on, not after what was read."""
    monkeypatch.setattr(exporting, "_BYTES", 100)
    export = reader(form=ExportForm.DOCUMENTS)
    rows = [row(at, properties={"title": "x" * 60}) for at in range(1, 9)]
    pieces = Answers(listed(*rows)).run(export.pieces(export.ranges[0]))
    assert [(each.rows, each.last) for each in pieces] == [(2, uuid(2)), (2, uuid(4)), (2, uuid(6)), (2, uuid(8))]
    assert [each.ends for each in pieces] == [False, False, False, True]
    assert b"".join(each.data for each in pieces).count(b"\n") == 8
    assert [len(each.data.splitlines()) for each in pieces] == [2] * 4
    assert export.ranges[0].position == uuid(8)
    part = export.part(pieces[0])
    assert left(export, part)[0] == (uuid(2), export.ranges[0].bound)
    assert (part.rows, part.data) == (2, pieces[0].data)
    assert len(left(export, export.part(pieces[3]))) == len(export.ranges) - 1


def test_a_row_that_is_longer_than_a_piece_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_BYTES", 10)
    export = reader()
    [piece] = Answers(listed(row(1))).run(export.pieces(export.ranges[0]))
    assert (piece.rows, piece.ends, export.ranges[0].size) == (1, True, 20)


def test_the_ranges_meet_and_each_stops_at_its_bound():
    export = reader()
    bounds = [(each.position, each.bound) for each in export.ranges]
    assert bounds[0][0] == bounds[-1][1] == ""
    assert [end for _, end in bounds[:-1]] == [start for start, _ in bounds[1:]]
    assert [end[:2] for _, end in bounds[:-1]] == ["3f", "7f", "bf"]
    inside, at, behind = row(1), row(2) | {"id": bounds[0][1]}, row(3) | {"id": "40000000-0000-0000-0000-000000000000"}
    [piece] = Answers(listed(inside, at, behind)).run(export.pieces(export.ranges[0]))
    assert (piece.rows, piece.last, piece.ends) == (2, bounds[0][1], True)


def test_an_empty_range_ends_at_once_where_it_began():
    export = reader()
    [piece] = Answers(listed()).run(export.pieces(export.ranges[1]))
    assert (piece.data, piece.rows, piece.last, piece.ends) == (b"", 0, export.ranges[0].bound, True)


def test_a_range_goes_on_while_its_pages_are_full():
    export = reader()
    span = export.ranges[0]
    span.size = 2
    [first] = Answers(listed(row(1), row(2))).run(export.pieces(span))
    assert (first.ends, span.position) == (False, uuid(2))
    span.size = 2
    second = Answers(listed(row(3)))
    [last] = second.run(export.pieces(span))
    assert f"after={uuid(2)}" in second.asked[0].path
    assert (last.ends, last.rows) == (True, 1)


@pytest.mark.parametrize(
    ("form", "more"),
    [
        (ExportForm.ROWS, {"creationTimeUnix": 3, "lastUpdateTimeUnix": 5}),
        (ExportForm.BULK, {}),
    ],
)
def test_a_row_has_in_each_form_what_that_form_says(form: ExportForm, more: dict[str, Any]) -> None:
    export = reader(form=form)
    rows = listed(row(1, vector=[1.5], vectors={}), row(2, properties=None, vector=[]))
    [piece] = Answers(rows).run(export.pieces(export.ranges[0]))
    first, second = (json.loads(each) for each in piece.data.splitlines())
    assert first == {"class": "Book", "id": uuid(1), "properties": {"title": "tea"}, "vector": [1.5]} | more
    assert second == {"class": "Book", "id": uuid(2), "properties": {}} | more


def test_a_document_is_the_properties_alone():
    export = reader(form=ExportForm.DOCUMENTS)
    [piece] = Answers(listed(row(1, vector=[1.5]), row(2, properties=None))).run(export.pieces(export.ranges[0]))
    assert [json.loads(each) for each in piece.data.splitlines()] == [{"title": "tea"}, {}]


def test_vectors_are_asked_for_only_by_name():
    for columns, said in (None, False), (["title"], False), (["title", "vector"], True):
        script = Answers(listed())
        export = reader(columns=columns)
        script.run(export.pieces(export.ranges[0]))
        assert ("include=vector" in script.asked[0].path) is said


@pytest.mark.parametrize(
    ("error", "sizes"),
    [
        (ConnectionFailedError("no answer in 30 s", details={"sent": True}), [500, 250, 125]),
        (ConnectionFailedError("refused", details={"sent": False}), [500, 250, 125]),
        (QueryError("slow", details={"status": 500}), [500, 250, 125]),
        (QueryError("slow", details={"status": 504}), [500, 250, 125]),
        (QueryError("busy", details={"status": 429, "retry_after": 0}), [500, 250, 125, 62, 31, 20, 20, 20]),
        (QueryError("busy", details={"status": 503, "retry_after": 0}), [500, 250, 125, 62, 31, 20, 20, 20]),
        (QueryError("no such class", details={"status": 499}), []),
        (DragomanError("slow"), []),
    ],
)
def test_a_page_that_is_too_slow_is_asked_for_again_smaller_and_no_other_error_is(
    error: DragomanError, sizes: list[int]
) -> None:
    """As often as patience allows: 3 times if the server is away, 8 times if it is busy."""
    export, asked = reader(), []
    span = export.ranges[0]
    for _ in range(len(sizes) + 1):
        run = export.pieces(span)
        [request] = next(run)
        asked.append(int(request.path.partition("limit=")[2]))
        with pytest.raises(type(error)) as caught:  # a page does not ask again by itself
            run.throw(error)
        assert caught.value is error
        if len(asked) <= len(sizes):
            assert span.again(error) > 0
    assert asked == [1_000, *sizes]
    with pytest.raises(type(error)) as caught:
        span.again(error)
    assert caught.value is error
    assert span.size == asked[-1]


def test_a_page_that_is_too_long_is_asked_for_in_quarters_down_to_20_rows():
    export = reader()
    run = export.pieces(export.ranges[0])
    error = QueryError("too long", details={"limit": 10})
    asked = [next(run), *(run.throw(error) for _ in range(3))]
    with pytest.raises(QueryError, match="too long"):
        run.throw(error)
    assert [request.path.partition("limit=")[2] for [request] in asked] == ["1000", "250", "62", "20"]


def test_a_page_that_was_shortened_by_the_server_stays_so():
    """W39."""
    text = "query maximum results exceeded: invalid pagination params: offset '0' and limit '1000' > '30'"
    export = reader()
    [piece] = Answers(reply({"error": [{"message": text}]}, 422), listed(row(1))).run(export.pieces(export.ranges[0]))
    assert (piece.rows, export.ranges[0].max_rows) == (1, 30)
    assert export.ranges[0].size <= 30


def test_a_damaged_checkpoint_and_a_server_without_a_cursor_are_refused():
    query = cursors.query_of(ExportRequest(object="Book"))
    for text in ("", "{}", "[]", cursors.seal(query, [["a"]]), cursors.seal({**query, "tenant": "other"}, [])):
        with pytest.raises(QueryError, match="checkpoint") as caught:
            reader(checkpoint=text)
        assert caught.value.code == "export-not-resumable"
    with pytest.raises(QueryError, match=r"1\.18"):
        ExportReader(ExportRequest(object="Book"), view(version=(1, 17, 9)))
    assert ExportReader(ExportRequest(object="Book"), view(version=(1, 18, 0))).ranges


def test_a_resumed_export_goes_on_in_the_ranges_that_are_left():
    query = cursors.query_of(ExportRequest(object="Book"))
    export = reader(checkpoint=cursors.seal(query, [[uuid(4), uuid(9)], [uuid(20), ""]]))
    assert [(each.position, each.bound, each.passed_on_to) for each in export.ranges] == [
        (uuid(4), uuid(9), uuid(4)), (uuid(20), "", uuid(20)),
    ]  # fmt: skip


def test_a_filtered_export_asks_between_its_bounds():
    compiled = compile_filter(FilterRequest(object="Book", rows=[Filter("pages", ">", 1)]), view())
    for at, operators in ((0, ["LessThanEqual"]), (1, ["GreaterThan", "LessThanEqual"]), (3, ["GreaterThan"])):
        export = reader(filter=compiled)
        script = Answers(reply({"data": {"Get": {"Book": []}}}))
        script.run(export.pieces(export.ranges[at]))
        text = str(script.asked[0].body)
        assert [op for op in ("GreaterThan", "LessThanEqual") if f'path:[\\"id\\"],operator:{op},' in text] == operators
        assert "limit:2500" in text


def filtered(total: int) -> ExportReader:
    """Make a filtered export whose rows were counted."""
    compiled = compile_filter(FilterRequest(object="Book", rows=[Filter("title", "=", "tea")]), view())
    export = reader(filter=compiled)
    Answers(reply({"data": {"Aggregate": {"Book": [{"meta": {"count": total}}]}}})).run(export.count())
    return export


def searched(*ids: str) -> Any:
    return reply({"data": {"Get": {"Book": [{"_additional": {"id": each}} for each in ids]}}})


def bounds(script: Answers) -> list[list[str]]:
    """Return the bounds of ids in each search."""
    return [re.findall(r'path:\[\\"id\\"\],operator:\w+,valueText:\\"(.{8})', str(each.body)) for each in script.asked]


def test_a_filtered_export_asks_for_no_more_ids_than_a_page_needs():
    """The server would sort all rows of the range for each page."""
    export = filtered(100_000)
    span = export.ranges[1]
    script = Answers(searched("40000000-0000-0000-0000-000000000001", "45000000-0000-0000-0000-000000000000"))
    [piece] = script.run(export.pieces(span))
    assert bounds(script) == [["3fffffff", "46666666"]]  # of 2,500 rows, as many ids as 100,000 rows leave to them
    assert (piece.rows, piece.last[:8], piece.ends) == (2, "46666666", False)  # what it ends with was read
    assert left(export, export.part(piece))[1] == (piece.last, span.bound)


def test_a_full_page_of_a_filtered_export_goes_on_behind_its_last_row():
    export = filtered(100_000)
    span = export.ranges[0]
    span.size = 2
    [piece] = Answers(searched(uuid(4), uuid(8))).run(export.pieces(span))
    assert (piece.last, piece.ends, span.position) == (uuid(8), False, uuid(8))
    span.size = 2
    script = Answers(searched(uuid(10)))
    [piece] = script.run(export.pieces(span))
    assert f'LessThanEqual,valueText:\\"{uuid(16)}' in str(script.asked[0].body)  # 4 ids to a row
    assert (piece.rows, piece.last, piece.ends) == (1, uuid(16), False)


def test_where_no_id_matches_a_filtered_export_goes_on_in_larger_steps_to_the_bound():
    """Ids that begin with a time leave most of the range empty; each step is eight times the one before."""
    export = filtered(1_000_000)
    span = export.ranges[0]
    none = [searched()] * 3
    script = Answers(*none, searched())
    [piece] = script.run(export.pieces(span))
    assert [each[-1] for each in bounds(script)] == ["00a3d70a", "05c28f5c", "2eb851eb", "3fffffff"]
    assert [each[0] for each in bounds(script)[1:]] == ["00a3d70a", "05c28f5c", "2eb851eb"]
    assert (piece.rows, piece.ends, piece.data) == (0, True, b"")


@pytest.mark.parametrize(
    "strange", ["zzz", "{00000000-0000-0000-0000-000000000009}", "00000000-0000-0000-0000-00000000000A"]
)
def test_ids_that_are_written_otherwise_are_no_bounds(strange: str):
    """Their place among the ids is unknown, and an export must not go back."""
    export = filtered(3)
    span = export.ranges[3]
    span.position = ""
    [piece] = Answers(searched(strange)).run(export.pieces(span))
    assert (piece.last, span.position, span.gap) == (strange, strange, 0)
    resumed = reader(checkpoint=cursors.seal(cursors.query_of(ExportRequest(object="Book")), [[strange, uuid(9)]]))
    resumed.ranges[0].gap = 5
    assert resumed.ranges[0].edge() == uuid(9)


def test_a_filtered_export_of_unknown_length_asks_for_all_ids_of_a_range():
    for total in (0, 3):
        assert filtered(total).ranges[1].edge() == filtered(total).ranges[1].bound
    plain = reader()
    Answers(reply({"data": {"Aggregate": {"Book": [{"meta": {"count": 100_000}}]}}})).run(plain.count())
    assert plain.ranges[1].edge() == plain.ranges[1].bound


def test_the_count_stays_unknown_where_nothing_counts():
    export = reader()
    Answers(reply({"errors": [{"message": "no"}]})).run(export.count())
    assert export.total is None
    Answers(reply({"data": {"Aggregate": {"Book": [{"meta": {"count": 7}}]}}})).run(export.count())
    assert export.total == 7


class Rules:
    async def test_a_filtered_export_has_what_a_plain_one_has(self, wv: Rig):
        """References, times and the class of each row, whether it came by REST or by GraphQL."""
        author = await wv.collection({"n": "text"}, [{"n": "Ada"}], name="Author")
        beacon = {"beacon": f"weaviate://localhost/{author}/{key(0)}"}
        rows = [{"i": at, "by": [beacon] if at % 2 else None, "vector": [at, 1.5]} for at in range(6)]
        name = await wv.collection(
            {"i": "int", "by": author}, [{k: v for k, v in each.items() if v is not None} for each in rows]
        )
        for form in ExportForm:
            plain = await wv.export(name, form=form, columns=["vector"])
            found = await wv.export(name, Filter("i", ">=", 0), form=form, columns=["vector"])
            order = str if form is ExportForm.DOCUMENTS else (lambda each: each["id"])
            assert sorted(plain, key=order) == sorted(found, key=order)
            assert len(plain) == 6

    async def test_a_filtered_export_has_the_named_vectors_that_a_plain_one_has(self, wv: Rig):
        config = {each: {"vectorizer": {"none": {}}, "vectorIndexType": "flat"} for each in ("front", "back")}
        vectors = [{"front": [1.5, 0.1], "back": [0.25]}, {"back": [0.5]}, {}]
        rows = [{"i": at} | ({"vectors": each} if each else {}) for at, each in enumerate(vectors)]
        name = await wv.collection({"i": "int"}, rows, vectorConfig=config)
        for filters in ([], [Filter("i", ">=", 0)]):
            lines = await wv.export(name, *filters, form=ExportForm.ROWS, columns=["vector"])
            assert {line["properties"]["i"]: line.get("vectors", {}) for line in lines} == dict(enumerate(vectors))
            assert all(line["creationTimeUnix"] > 0 < line["lastUpdateTimeUnix"] for line in lines)

    @pytest.mark.parametrize("start", ["", "0" * 8, "f" * 8])
    async def test_a_filtered_export_has_each_row_once_wherever_the_ids_are(
        self, wv: Rig, start: str, monkeypatch: pytest.MonkeyPatch
    ):
        """Also from the checkpoint of any of its parts."""
        monkeypatch.setattr(exporting, "_MOST", 25)
        rows = [{"id": start + key(at)[len(start) :], "t": "tea" if at % 3 else "war"} for at in range(300)]
        name = await wv.collection({"t": "text"}, rows, shards=3)
        due = sorted(each["id"] for each in rows if each["t"] == "tea")
        compiled = await wv.filter(name, Filter("t", "=", "tea"))
        request = ExportRequest(object=name, filter=compiled, form=ExportForm.ROWS)
        parts = [part async for part in wv.driver.export_rows(request)]
        assert sorted(ids(parts)) == due
        for at in (0, len(parts) // 2, len(parts) - 1):
            again = msgspec.structs.replace(request, checkpoint=parts[at].checkpoint)
            rest = [part async for part in wv.driver.export_rows(again)]
            assert sorted(ids([*parts[: at + 1], *rest])) == due


def ids(parts: list[ExportPart]) -> list[str]:
    return [json.loads(line)["id"] for part in parts for line in part.data.splitlines()]


class TestPiecesOnFake(OnFake, Rules):
    pass


class TestPiecesOnServer(OnServer, Rules):
    pass
