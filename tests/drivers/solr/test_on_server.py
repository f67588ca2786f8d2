"""The rules of the driver on the real server; each was measured there first."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from drivers.solr.rig import Rig, on_server
from msgspec.structs import replace

from dragoman_api import (
    ConsoleText,
    CountRequest,
    Delete,
    Drop,
    ExportRequest,
    Filter,
    FilterNotSupportedError,
    Insert,
    Json,
    ObjectsRequest,
    OutcomeStatus,
    PageRequest,
    PlanRequest,
    QueryError,
    RawQuery,
    RowKey,
    Sort,
    UnsupportedOperationError,
    Update,
)
from dragoman_api.changes import InsertBatch, NewObject
from dragoman_api.errors import ConnectionFailedError, ObjectChangedError, ObjectNotFoundError, RowNotFoundError
from dragoman_api.exports import ExportForm
from dragoman_api.grid import CellRequest
from dragoman_api.summaries import SummaryRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.live("solr")
APPLIED, CONFLICT, REFUSED = OutcomeStatus.APPLIED, OutcomeStatus.CONFLICT, OutcomeStatus.REFUSED


@pytest.fixture
async def rig(live_server: dict[str, Any]) -> AsyncIterator[Rig]:
    async with on_server(live_server) as connected:
        yield connected


async def test_cores_are_listed_with_what_searches_see(rig: Rig) -> None:
    """S1, S4: documents count after a commit; a name that is none is no core's."""
    name = await rig.core([{"id": "a"}, {"id": "b"}])
    await rig.call("POST", f"/solr/{name}/update", [{"id": "c"}])
    listed = {item.name: item for item in await rig.driver.list_objects(ObjectsRequest())}
    assert (listed[name].rows, listed[name].kind) == (2, "core")
    assert [*await rig.driver.list_objects(ObjectsRequest(parent=name))] == []
    assert (await rig.page(name)).total == 2
    for other in ("no_such_core", f"{name}/../{name}", "a b"):
        with pytest.raises(ObjectNotFoundError):
            await rig.driver.describe_object(other)


async def test_columns_are_those_of_the_schema_and_of_the_index(rig: Rig) -> None:
    """S5, S6, S7: with kinds, and why what is not shown is not."""
    name = await rig.core([{"id": "a", "n_l": 1, "ts_ss": ["x"], "at_dt": "2024-01-01T00:00:00Z", "d_d": 1, "b_b": True,
                            "w_t": "x", "h_hidden": "h", "title_s": "T", "odd ü": "o", "k_asked": "k", "x_plain": "p",
                            "x_bin": "AQID"}])  # fmt: skip
    description = await rig.driver.describe_object(name)
    columns = {column.name: column for column in description.columns}
    assert next(iter(columns)) == "id"
    kinds = {column.name: (str(column.kind), column.repeated) for column in description.columns}
    assert (kinds["n_l"], kinds["ts_ss"], kinds["at_dt"]) == (("integer", False), ("text", True), ("timestamp", False))
    assert (kinds["d_d"], kinds["b_b"], kinds["x_bin"]) == (("float", False), ("boolean", False), ("binary", False))
    assert {"h_hidden", "title_copied", "_root_", "_text_"}.isdisjoint(columns)
    assert {note.code for note in description.notes} == {"columns-left-out"}
    assert any("h_hidden" in note.reason for note in description.notes)
    assert columns["_version_"].written == "never"
    assert (columns["x_plain"].operators, columns["x_bin"].operators) == ((), ())
    assert {"_version_", "_nest_path_"} <= set(description.server_members)
    [row] = (await rig.page(name)).rows
    assert (row["odd ü"], row["k_asked"], row["ts_ss"], row["x_bin"]) == ("o", "k", '["x"]', "AQID")
    [row] = (await rig.page(name, columns=["odd ü"])).rows
    assert row.to_dict() == {"odd ü": "o"}
    assert await rig.ids(name, Filter("odd ü", "not-null")) == ["a"]
    assert await rig.ids(name, RawQuery("title_copied:t AND h_hidden:h")) == ["a"]


async def test_a_field_that_appears_later_is_noted_and_a_filter_of_before_refused(rig: Rig) -> None:
    """S5: what no column shows is said; a filter of other columns is compiled again."""
    name = await rig.core([{"id": "a", "n_i": 1}])
    compiled = await rig.filter(name, Filter("n_i", "=", 1))
    await rig.load(name, [{"id": "b", "n_i": 1, "late_s": "x"}])
    assert [note.code for note in (await rig.page(name)).notes] == ["keys-left-out"]
    parts = [part async for part in rig.driver.export_rows(ExportRequest(object=name))]
    assert [note.code for part in parts for note in part.notes] == ["no-snapshot", "keys-left-out"]
    await rig.driver.describe_object(name)
    with pytest.raises(ObjectChangedError):
        await rig.driver.fetch_page(PageRequest(object=name, filter=compiled))


async def test_a_search_is_what_the_driver_says_whatever_the_handler_is_set_to(rig: Rig) -> None:
    """S8: parser, form and number of rows are named in the request."""
    name = await rig.core([{"id": f"{at}"} for at in range(20)])
    defaults = {"defType": "edismax", "wt": "xml", "rows": 3, "fl": "id"}
    handler = {"name": "/select", "class": "solr.SearchHandler", "defaults": defaults}
    await rig.call("POST", f"/solr/{name}/config", {"update-requesthandler": handler})
    try:
        page = await rig.page(name, limit=15)
    finally:  # the set of settings is that of all cores of the tests
        usual = {"name": "/select", "class": "solr.SearchHandler"}
        await rig.call("POST", f"/solr/{name}/config", {"update-requesthandler": usual})
    assert (len(page.cells), page.total) == (15, 20)


async def test_nulls_nan_zeros_and_missing_values(rig: Rig) -> None:
    """S9, S10, S13: NaN is a value, 0 finds both zeros, and a negation finds what has no value."""
    name = await rig.core([{"id": "a", "d_d": -0.0}, {"id": "b", "d_d": 0.0}, {"id": "c", "d_d": "NaN"}, {"id": "d"},
                           {"id": "e", "d_d": 1.5}])  # fmt: skip
    assert await rig.ids(name, Filter("d_d", "not-null")) == ["a", "b", "c", "e"]
    assert await rig.ids(name, Filter("d_d", "null")) == ["d"]
    assert await rig.ids(name, Filter("d_d", "=", 0)) == ["a", "b"]
    assert await rig.ids(name, Filter("d_d", "!=", 0)) == ["c", "d", "e"]
    assert await rig.ids(name, Filter("d_d", "in", [0, 1.5])) == ["a", "b", "e"]
    assert await rig.ids(name, Filter("d_d", "<", 0)) == []
    assert await rig.ids(name, Filter("d_d", ">=", 0)) == ["a", "b", "e"]
    assert await rig.ids(name, Filter("d_d", ">", 0)) == ["e"]
    assert await rig.ids(name, Filter("d_d", "!=", 0), Filter("d_d", "null"), match="any") == ["c", "d", "e"]
    for value in (-0.0, Json("-0.0")):
        [outcome] = await rig.apply(Insert(name, {"x_d": value, "x_f": value}, id="new", replace=True))
        stored = await rig.stored(name, "new")
        assert (outcome.status, str(stored["x_d"]), str(stored["x_f"])) == (APPLIED, "-0.0", "-0.0")  # type: ignore[index]
    await rig.apply(Delete(RowKey(name, "new")))
    assert await rig.ids(name, Filter("d_d", "!=", 1.5), Filter("d_d", "not-in", [0])) == ["c", "d"]


@pytest.mark.parametrize(
    ("column", "value", "kept"),
    [
        ("n_i", 2**31, None), ("n_i", 1.5, None), ("n_i", -(2**31), -(2**31)), ("n_l", 2**63 - 1, 2**63 - 1),
        ("n_l", 2**63, None), ("x_f", 16777217, None), ("x_f", 0.1, 0.1), ("x_f", 1e39, None),
        ("x_f", 0.100000001, None),
        ("x_d", "0.12345678901234567890", None), ("x_d", 0.1, 0.1), ("x_d", "NaN", None), ("x_b", "maybe", None),
        ("at_dt", "2024-01-01T00:00:00.0001Z", None), ("at_dt", "2024-01-01T02:00:00+02:00", "2024-01-01T00:00:00Z"),
        ("at_dt", "2024-01-01", None), ("at_dt", "NOW", None),
    ],
)  # fmt: skip
async def test_a_value_that_the_field_would_change_is_refused(rig: Rig, column: str, value: Any, kept: Any) -> None:
    """S10, S24: Solr answers 200 to each of them, and keeps another value."""
    name = await rig.core([{"id": "a", "n_i": 1, "n_l": 1, "x_f": 1, "x_d": 1, "x_b": True,
                            "at_dt": "2020-01-01T00:00:00Z"}])  # fmt: skip
    [row_key] = (await rig.page(name)).keys
    [outcome] = await rig.apply(Update(row_key, {column: value}))
    assert outcome.status is (REFUSED if kept is None else APPLIED), outcome
    with pytest.raises(FilterNotSupportedError) if kept is None else nullcontext():
        assert await rig.ids(name, Filter(column, "=", value)) == ["a"]
    if kept is not None:
        assert (await rig.stored(name, "a"))[column] == kept  # type: ignore[index]


TEXTS = ["", "a", "A", "a\\", '"', 'a" TO "b', "*", "!", "a b", "{!term f=id v=x}", "OR", "]", "ü", "\n", "a/b", "😀"]


async def test_texts_are_compared_whatever_they_hold(rig: Rig) -> None:
    """S11: equal, in order, and as the beginning of others; the empty text is a text."""
    name = await rig.core([{"id": f"{at:02}", "t_s": text, "v_column": text} for at, text in enumerate(TEXTS)])
    for column in ("t_s", "v_column"):
        for text in TEXTS:
            for op, test in (("=", text.__eq__), ("<", text.__gt__), ("<=", text.__ge__), (">", text.__lt__),
                             (">=", text.__le__)):  # fmt: skip
                due = [f"{at:02}" for at, other in enumerate(TEXTS) if test(other)]
                assert await rig.ids(name, Filter(column, op, text)) == due, (op, text)
            due = [f"{at:02}" for at, other in enumerate(TEXTS) if text in other]
            assert await rig.ids(name, Filter(column, "contains", text, case=True)) == due
    assert await rig.ids(name, Filter("t_s", "empty")) == ["00"]
    assert len(await rig.ids(name, Filter("t_s", "not-empty"))) == len(TEXTS) - 1
    for low, high in (("a\\", "b"), ('"', "a\\"), ("a\\", 'a"')):
        due = [f"{at:02}" for at, other in enumerate(TEXTS) if low <= other <= high]
        assert await rig.ids(name, Filter("t_s", "between", [low, high])) == due
    assert await rig.ids(name, Filter("t_s", "between", ["A", "a"])) == ["01", "02", "10", "11"]


async def test_patterns_ignore_letter_case_unless_told_otherwise(rig: Rig) -> None:
    """S12."""
    name = await rig.core([{"id": "a", "t_s": "Tea Über"}, {"id": "b", "t_s": "tea"}])
    assert await rig.ids(name, Filter("t_s", "contains", "TEA")) == ["a", "b"]
    assert await rig.ids(name, Filter("t_s", "starts", "tea", case=True)) == ["b"]
    assert await rig.ids(name, Filter("t_s", "ends", "üBER")) == ["a"]
    assert await rig.ids(name, Filter("t_s", "not-contains", "über")) == ["b"]
    compiled = await rig.filter(name, Filter("t_s", "contains", "x"), Filter("t_s", "contains", "x", case=True))
    assert [row.exact for row in compiled.rows] == [False, True]
    with pytest.raises(FilterNotSupportedError, match="letter case"):
        await rig.filter(name, Filter("t_s", "=", "x", case=False))


async def test_words_are_found_and_said_to_be_words(rig: Rig) -> None:
    """S14."""
    name = await rig.core([{"id": "a", "w_t": "Hello wide World"}, {"id": "b", "w_t": "worldly"}, {"id": "c"}])
    assert await rig.ids(name, Filter("w_t", "contains", "WIDE world")) == ["a"]
    assert await rig.ids(name, Filter("w_t", "contains", "wor")) == []
    assert await rig.ids(name, Filter("w_t", "not-contains", "world")) == ["b", "c"]
    [row] = (await rig.filter(name, Filter("w_t", "contains", "world"))).rows
    assert not row.exact
    assert row.approximations
    with pytest.raises(FilterNotSupportedError):
        await rig.filter(name, Filter("w_t", "=", "world"))


async def test_a_filter_is_bounded_and_a_raw_row_joins_by_and(rig: Rig) -> None:
    """S15, S16: an excluding Raw row means what it says."""
    name = await rig.core([{"id": f"k{at:04}", "n_i": at} for at in range(30)])
    many = [f"k{at:04}" for at in range(980)]
    assert len(await rig.ids(name, Filter("id", "in", many))) == 30
    with pytest.raises(FilterNotSupportedError, match="1,000"):
        await rig.filter(name, Filter("id", "in", many), Filter("id", "not-in", many))
    assert await rig.ids(name, RawQuery("-n_i:[2 TO *]")) == ["k0000", "k0001"]
    assert await rig.ids(name, RawQuery("-n_i:[2 TO *]"), Filter("n_i", ">", 0)) == ["k0001"]
    with pytest.raises(FilterNotSupportedError, match="excludes"):
        await rig.filter(name, RawQuery("-n_i:1"), Filter("n_i", "=", 1), match="any")
    with pytest.raises(QueryError, match="undefined field"):
        await rig.ids(name, RawQuery("nothing_here:x"))
    with pytest.raises(FilterNotSupportedError, match="no such column"):
        await rig.filter(name, Filter("nothing_here", "!=", 1))


async def test_a_sort_puts_what_has_no_value_last(rig: Rig) -> None:
    """S17: the server alone would sort it as 0."""
    name = await rig.core([{"id": "a", "n_i": -5}, {"id": "b"}, {"id": "c", "n_i": 7}, {"id": "d", "n_i": 7},
                           {"id": "e", "n_i": 0, "ts_ss": ["x"], "w_t": "w", "odd ü": "o"}])  # fmt: skip
    assert await rig.ids(name, sort=[Sort("n_i")]) == ["a", "e", "c", "d", "b"]
    assert await rig.ids(name, sort=[Sort("n_i", descending=True)]) == ["c", "d", "e", "a", "b"]
    assert await rig.ids(name, sort=[Sort("n_i"), Sort("id", descending=True)]) == ["a", "e", "d", "c", "b"]
    page = await rig.page(name, sort=[Sort("ts_ss"), Sort("w_t"), Sort("odd ü")])
    assert [note.code for note in page.notes] == ["sort-dropped"] * 3
    assert [key.id for key in page.keys] == ["a", "b", "c", "d", "e"]


async def test_pages_go_on_behind_the_last_row(rig: Rig) -> None:
    """S18: by cursor mark, while rows before it come; an offset has no next page, and totals are exact."""
    name = await rig.core([{"id": f"k{at:02}", "n_i": at % 3} for at in range(25)])
    request = PageRequest(object=name, sort=[Sort("n_i")], limit=10)
    first = await rig.driver.fetch_page(request)
    await rig.load(name, [{"id": "k000", "n_i": 0}])
    second = await rig.driver.fetch_page(replace(request, cursor=first.next))
    third = await rig.driver.fetch_page(replace(request, cursor=second.next))
    keys = [key.id for page in (first, second, third) for key in page.keys]
    assert len(keys) == len(set(keys)) == 25
    assert (second.offset, second.total, third.next) == (10, 26, None) or third.next is not None
    at_offset = await rig.driver.fetch_page(replace(request, offset=20))
    assert (len(at_offset.cells), at_offset.next, at_offset.total) == (6, None, 26)
    with pytest.raises(QueryError, match="another"):
        await rig.driver.fetch_page(replace(request, sort=[], cursor=first.next))
    assert await rig.driver.count_rows(CountRequest(object=name)) == 26
    with pytest.raises(RowNotFoundError):
        await rig.driver.fetch_cell(CellRequest(key=RowKey(name, "none"), column="n_i"))


async def test_an_export_holds_every_document_once_and_continues(rig: Rig) -> None:
    """S19: with its own numbers, behind a checkpoint, and without a snapshot."""
    documents = [{"id": f"k{at:04}", "n_l": 2**53 + at, "ts_ss": ["b", "a"], "x" * 50 + "_s": "y" * 500}
                 for at in range(1_200)]  # fmt: skip
    name = await rig.core(documents)
    request = ExportRequest(object=name)
    parts = [part async for part in rig.driver.export_rows(request)]
    lines = [json.loads(line) for part in parts for line in part.data.splitlines()]
    assert [{key: value for key, value in line.items() if key != "_version_"} for line in lines] == documents
    assert [note.code for part in parts for note in part.notes] == ["no-snapshot"]
    rest = [part async for part in rig.driver.export_rows(replace(request, checkpoint=parts[0].checkpoint))]
    assert sum(part.rows for part in rest) == 1_200 - parts[0].rows
    some = await rig.export(name, Filter("n_l", "<", 2**53 + 2), columns=["n_l"])
    assert some == [b'{"n_l":9007199254740992}', b'{"n_l":9007199254740993}']
    with pytest.raises(UnsupportedOperationError):
        await rig.export(name, form=ExportForm.BULK)


async def test_a_summary_counts_values(rig: Rig) -> None:
    """S20."""
    rows = [{"id": f"{at}", "t_s": "ab"[at % 2], "n_l": at, "b_b": at > 3, "ts_ss": ["x", "x", f"{at}"], "w_t": "w"}
            for at in range(5)]  # fmt: skip
    name = await rig.core([*rows, {"id": "none"}])
    texts, numbers, words = [
        await rig.driver.summarize_column(SummaryRequest(object=name, column=column))
        for column in ("t_s", "n_l", "w_t")
    ]
    assert (texts.rows, texts.missing, texts.distinct) == (6, 1, 2)
    assert [(one.value, one.rows) for one in texts.values] == [("a", 3), ("b", 2)]
    assert (numbers.minimum, numbers.maximum, numbers.distinct) == (0, 4, 5)
    assert (words.missing, words.values, {*words.absent} >= {"values", "distinct"}) == (1, [], True)
    flags = await rig.driver.summarize_column(SummaryRequest(object=name, column="b_b"))
    assert [(one.value, one.rows) for one in flags.values] == [(False, 4), (True, 1)]
    several = await rig.driver.summarize_column(SummaryRequest(object=name, column="ts_ss", values=1))
    assert [(one.value, one.rows) for one in several.values] == [("x", 5)]


async def test_a_change_carries_the_version(rig: Rig) -> None:
    """S21: the server compares it, and an insert of what exists is a conflict."""
    name = await rig.core([{"id": "a", "n_i": 1}])
    [row_key] = (await rig.page(name)).keys
    plan = await rig.plan(Update(row_key, {"n_i": 2}))
    version = row_key.guard["_version_"]
    assert json.loads(plan.requests[0].body or "") == {"add": [{"id": "a", "_version_": version, "n_i": {"set": 2}}]}
    await rig.load(name, [{"id": "a", "n_i": 5}])
    [outcome] = await rig.driver.apply_change(plan)
    assert (outcome.status, "changed" in outcome.reason) == (CONFLICT, True)
    for change in (Delete(RowKey(name, "a")), Insert(name, {"n_i": 3}, id="a", replace=True)):
        plan = await rig.plan(change)
        await rig.load(name, [{"id": "a", "n_i": 5}])
        assert [one.status for one in await rig.driver.apply_change(plan)] == [CONFLICT]
    assert (await rig.plan(Update(row_key, {"n_i": 2}))).refusals[0].status is CONFLICT
    assert [one.status for one in await rig.apply(Insert(name, {"n_i": 1}, id="a"))] == [CONFLICT]
    [outcome] = await rig.apply(Insert(name, {"n_i": 7}, id="a", replace=True))
    assert outcome.status is APPLIED
    [outcome] = await rig.apply(Update(outcome.key, {"n_i": 8}))  # type: ignore[arg-type]
    assert outcome.status is APPLIED
    assert [one.status for one in await rig.apply(Delete(row_key))] == [CONFLICT]
    assert [one.status for one in await rig.apply(Delete(outcome.key))] == [APPLIED]  # type: ignore[arg-type]
    assert await rig.stored(name, "a") is None
    assert [one.status for one in await rig.apply(Insert(name, {"n_i": 1}))] == [REFUSED]


async def test_an_update_that_would_lose_a_field_is_refused(rig: Rig) -> None:
    """S22: neither an indexed field nor one that is returned only if it is named survives an update."""
    for field in ("h_hidden", "k_asked"):
        name = await rig.core([{"id": "a", "n_i": 1}, {"id": "b", field: "x"}])
        row_key = (await rig.page(name)).keys[0]
        [outcome] = await rig.apply(Update(row_key, {"n_i": 2}))
        assert (outcome.status, field in outcome.reason) == (REFUSED, True)
        assert [one.status for one in await rig.apply(Insert(name, {"n_i": 2}, id="c"))] == [APPLIED]
        undone = await rig.driver.plan_change(PlanRequest(changes=[Delete(row_key)], undo=True))
        assert undone.refusals
    name = await rig.core([{"id": "a", "title_s": "Old", "v_column": "c"}])
    [outcome] = await rig.apply(Update((await rig.page(name)).keys[0], {"title_s": "New"}))
    assert outcome.status is APPLIED
    assert await rig.ids(name, RawQuery("title_copied:new"), Filter("v_column", "=", "c")) == ["a"]


@pytest.mark.parametrize(
    ("document", "values", "field"),
    [
        ({"a_source": "A"}, {"a_source": "B"}, ""),
        ({"a_source": "A", "b_source": "B"}, {"n_i": 1}, ""),
        ({"a_source": "A", "kept_copy": ["own"]}, {"n_i": 1}, "kept_copy"),
        ({"kept_copy": ["own"]}, {"n_i": 1}, "kept_copy"),
        ({"a_ignored": "A"}, {"n_i": 1}, "words_copied"),
        ({"a_twice": "A"}, {"n_i": 1}, "a_filled"),
        ({"b_source": "B"}, {"b_source": None}, ""),
    ],
)  # fmt: skip
async def test_an_update_that_would_lose_or_double_what_was_copied_is_refused(
    rig: Rig, document: dict[str, Any], values: dict[str, Any], field: str
) -> None:
    """S29: an update fills the fields of copies anew, from what the document still has."""
    name = await rig.core([{"id": "a", **document}, {"id": "b", "n_i": 2}])
    before = await rig.call("POST", f"/solr/{name}/select", {"query": "id:a"})
    [row_key] = [key for key in (await rig.page(name)).keys if key.id == "a"]
    [outcome] = await rig.apply(Update(row_key, values))
    assert (outcome.status, field in outcome.reason) == (REFUSED if field else APPLIED, True), outcome
    [after] = (await rig.call("POST", f"/solr/{name}/select", {"query": "id:a"}))["response"]["docs"]
    sources = [value for source, value in sorted(after.items()) if source.endswith("_source")]
    if field:
        assert [after] == before["response"]["docs"]
        plan = await rig.driver.plan_change(PlanRequest(changes=[Delete(row_key)], undo=True))
        assert field in plan.refusals[0].reason
        if field != "words_copied":
            replaced = await rig.plan(Insert(name, {"n_i": 3}, id="a", replace=True))
            assert [note.code for note in replaced.notes] == ["values-lost"]
            assert replaced.notes[0].column == field
    else:
        assert after.get("kept_copy", []) == sources
        assert [one.status for one in await rig.apply(Delete(RowKey(name, "a")))] == [APPLIED]


async def test_a_field_that_copies_fill_and_no_answer_returns_is_named_before_an_update(rig: Rig) -> None:
    """S29: what else it holds cannot be seen."""
    name = await rig.core([{"id": "a", "title_s": "T", "title_copied": "own"}])
    plan = await rig.plan(Update((await rig.page(name)).keys[0], {"n_i": 1}))
    assert [(note.code, "title_copied" in note.reason) for note in plan.notes] == [("fields-remade", True)]


async def test_the_changes_of_many_rows_are_one_request_with_an_outcome_for_each(rig: Rig) -> None:
    """S30: the server stops at the first row that it refuses, and passes over conflicts; the rest is sent again."""
    name = await rig.core([{"id": f"k{at}", "n_i": at} for at in range(6)])
    keys = (await rig.page(name)).keys
    changes = [
        Delete(keys[0]), Update(keys[1], {"n_i": 9}), Insert(name, {"n_i": 1}, id="new1"),
        Insert(name, {"t_s": "x" * 40_000}, id="long"), Update(keys[2], {"n_i": 9}), Insert(name, {}, id="k3"),
        Delete(keys[4]), Insert(name, {"n_i": 2}, id="new2"), Update(keys[5], {"n_i": 9}),
    ]  # fmt: skip
    plan = await rig.plan(*changes)
    assert [len(planned.rows) for planned in plan.planned] == [9]
    await rig.load(name, [{"id": "k2", "n_i": 5}, {"id": "k4", "n_i": 5}])
    outcomes = sorted(await rig.driver.apply_change(plan), key=lambda outcome: outcome.change)
    expected = [APPLIED, APPLIED, APPLIED, OutcomeStatus.FAILED, CONFLICT, CONFLICT, CONFLICT, APPLIED, APPLIED]
    assert [outcome.status for outcome in outcomes] == expected
    assert [outcome.id for outcome in outcomes] == ["k0", "k1", "new1", "long", "k2", "k3", "k4", "new2", "k5"]
    assert "immense" in outcomes[3].reason
    rows = (await rig.page(name)).rows
    assert {row["id"]: row["n_i"] for row in rows} == {
        "k1": 9,
        "k2": 5,
        "k3": 3,
        "k4": 5,
        "k5": 9,
        "new1": 1,
        "new2": 2,
    }
    [outcome] = await rig.apply(Update(outcomes[7].key, {"n_i": 3}))  # type: ignore[arg-type]
    assert outcome.status is APPLIED


async def test_a_load_goes_as_few_requests_and_says_what_exists(rig: Rig) -> None:
    """S30, S26: a row that is there as it was to be written says so."""
    name = await rig.core([{"id": "k0003", "n_i": 3}, {"id": "k0004", "n_i": -1}])
    ids: list[str | None] = [f"k{at:04}" for at in range(1_200)]
    batch = InsertBatch(name, values=[{"n_i": at} for at in range(1_200)], ids=ids)
    plan = await rig.driver.plan_change(PlanRequest(changes=batch, bulk=True, last=True))
    assert [len(planned.rows) for planned in plan.planned] == [500, 500, 200]
    outcomes = await rig.driver.apply_change(replace(plan, changes=batch, bulk=True))
    assert sum(outcome.rows for outcome in outcomes if outcome.status is APPLIED) == 1_198
    others = [(outcome.id, outcome.status, outcome.holds) for outcome in outcomes if outcome.status is not APPLIED]
    assert others == [("k0003", CONFLICT, True), ("k0004", CONFLICT, False)]
    assert await rig.driver.count_rows(CountRequest(object=name)) == 1_200


async def test_a_part_of_a_nested_document_is_not_changed(rig: Rig) -> None:
    """S23: neither the whole nor its parts."""
    name = await rig.core([{"id": "p", "n_i": 1, "kids": [{"id": "c", "n_i": 2}]}, {"id": "alone", "n_i": 3}])
    page = await rig.page(name)
    outcomes = await rig.apply(*(Update(row_key, {"n_i": 9}) for row_key in page.keys))
    assert {outcome.id: outcome.status for outcome in outcomes} == {"p": REFUSED, "c": REFUSED, "alone": APPLIED}
    outcomes = await rig.apply(*(Delete(replace(row_key, guard={})) for row_key in page.keys))
    assert {outcome.id: outcome.status for outcome in outcomes} == {"p": REFUSED, "c": REFUSED, "alone": APPLIED}
    assert await rig.ids(name) == ["c", "p"]
    many = [{"id": f"k{at:03}", "n_i": at} for at in range(300)]
    many[250]["kids"] = [{"id": "k250c"}]
    await rig.load(name, many)
    changes = [Insert(name, {"n_i": 0}, id=row["id"], replace=True) for row in many]
    outcomes = await rig.apply(*changes)
    assert [outcome.id for outcome in outcomes if outcome.status is not APPLIED] == ["k250"]


@pytest.mark.parametrize(
    "values",
    [
        {"t_s": Json('{"inc": 5}')}, {"ts_ss": Json('["a", null]')}, {"t_s": Json('["a"]')}, {"_version_": 5},
        {"cs_columns": Json('["b", "a"]')}, {"cs_columns": Json('["a", "a"]')}, {"title_copied": "x"}, {"nofield": 1},
        {"h_hidden": "x"}, {"n_i": Json('{"set": 1}')},
    ],
)  # fmt: skip
async def test_what_the_server_would_read_otherwise_is_refused(rig: Rig, values: Any) -> None:
    """S7, S24: an object is an instruction for the server, and some values come back in another form."""
    name = await rig.core([{"id": "a", "t_s": "x", "n_i": 1, "ts_ss": ["x"], "cs_columns": ["x"]}])
    [row_key] = (await rig.page(name)).keys
    for change in (Update(row_key, values), Insert(name, values, id="new")):
        assert [outcome.status for outcome in await rig.apply(change)] == [REFUSED]
    assert await rig.ids(name) == ["a"]


async def test_a_new_field_comes_by_its_pattern_and_a_null_removes_one(rig: Rig) -> None:
    """S5, S9."""
    name = await rig.core([{"id": "a", "n_i": 1}])
    [row_key] = (await rig.page(name)).keys
    [outcome] = await rig.apply(Update(row_key, {"n_i": None, "fresh_s": "new", "fresh_ls": Json("[3,1,3]")}))
    assert outcome.status is APPLIED, outcome
    stored = await rig.stored(name, "a")
    assert stored is not None
    assert (stored["fresh_s"], stored["fresh_ls"], "n_i" in stored) == ("new", [3, 1, 3], False)


async def test_searches_see_a_change_at_once_and_a_load_at_its_end(rig: Rig) -> None:
    """S25: a plan begins from what was written, whether searches see it or not."""
    name = await rig.core()
    assert [one.status for one in await rig.apply(Insert(name, {"n_i": 1}, id="a"))] == [APPLIED]
    assert await rig.ids(name) == ["a"]
    for last, seen in ((False, 1), (True, 5)):
        batch = InsertBatch(name, values=[{"n_i": 1}, {"n_i": 2}], ids=[f"{last}1", f"{last}2"])
        plan = await rig.driver.plan_change(PlanRequest(changes=batch, bulk=True, last=last))
        await rig.driver.apply_change(replace(plan, changes=batch, bulk=True))
        assert await rig.driver.count_rows(CountRequest(object=name)) == seen
    await rig.call("POST", f"/solr/{name}/update", [{"id": "a", "n_i": 5}])
    assert (await rig.plan(Update(RowKey(name, "a", guard={"_version_": 1}), {"n_i": 2}))).refusals[
        0
    ].status is CONFLICT


async def test_a_write_without_an_answer_is_looked_after(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """S26: what holds what was written was applied; what was not written is unknown."""
    name = await rig.core([{"id": "a", "n_i": 1, "d_dt": "2024-01-01T00:00:00Z"}, {"id": "b"}, {"id": "c"}])
    first, second, third = (await rig.page(name)).keys
    send, arrives = rig.driver.http.request, True

    async def lossy(method: str, path: str, **options: Any) -> Any:
        reply = await send(method, path, **options) if arrives or "/update" not in path else None
        if "/update" in path:
            raise ConnectionFailedError("the connection ended", details={"sent": True})
        return reply

    monkeypatch.setattr(rig.driver.http, "request", lossy)
    for change in (Update(first, {"n_i": 2, "d_dt": "2024-01-01T01:00:00.50+01:00"}), Delete(second)):
        [outcome] = await rig.apply(change)
        assert (outcome.status, "no answer" in outcome.reason) == (APPLIED, True)
    arrives = False
    for change in (Update(third, {"n_i": 2}), Delete(third), Insert(name, {"n_i": 2}, id="d")):
        [outcome] = await rig.apply(change)
        assert (outcome.status, outcome.holds) == (OutcomeStatus.UNKNOWN, False)
    assert await rig.ids(name) == ["a", "c"]


async def test_a_drop_unloads_one_core_with_its_settings(rig: Rig) -> None:
    """S27."""
    name = await rig.core([{"id": "a"}])
    plan = await rig.plan(Drop(name))
    assert [note.code for note in plan.notes] == ["settings-go"]
    assert [outcome.status for outcome in await rig.driver.apply_change(plan)] == [APPLIED]
    assert name not in [item.name for item in await rig.driver.list_objects(ObjectsRequest())]
    with pytest.raises(ObjectNotFoundError):
        await rig.page(name)
    with pytest.raises(UnsupportedOperationError):
        await rig.driver.plan_change(PlanRequest(changes=[], new=NewObject(name)))


async def test_the_console_tells_reads_from_writes(rig: Rig) -> None:
    """S28."""
    name = await rig.core([{"id": "a"}])
    reads = [
        f"GET /{name}/select?q=*:*",
        f'POST /solr/{name}/select {{"query": "*:*"}}',
        "GET /admin/cores?action=STATUS",
    ]
    writes = [
        f"GET /{name}/update?commit=true", f"POST /{name}/update {{}}", "GET /admin/cores?action=RELOAD&core=x",
        f"GET /{name}/select?q=*:*&stream.body=x", f"GET /{name}/select?qt=/update",
        f"GET /{name}/stream?expr=delete(x)",
        "GET /admin/cores?act%69on=unload&core=x", f"POST /{name}/schema {{}}", f"GET /{name}/upd%61te/json",
    ]  # fmt: skip
    parsed = [(await rig.driver.parse_console(ConsoleText(text)))[0] for text in reads + writes]
    assert [request.writes for request in parsed] == [False] * len(reads) + [True] * len(writes)
    assert all(request.request.path.startswith("/solr/") for request in parsed)
    [answer] = await rig.console(f"GET /{name}/select?q=*:*&wt=json")
    assert json.loads(answer.text)["response"]["numFound"] == 1
    [answer] = await rig.console(f"GET /{name}/select?q=nothing_here:x&wt=json")
    assert (answer.status, "undefined field" in answer.notes[0].reason) == (400, True)
