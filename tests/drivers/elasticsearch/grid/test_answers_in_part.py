"""Answers that are right in part: rows that came before a time-out, counts of some shards, cells read by search."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from drivers.elasticsearch.test_objects import view
from drivers.replies import Answers, reply
from msgspec.json import Decoder

from dragoman_api import (
    Cell,
    CellRequest,
    CompiledFilter,
    Filter,
    FilterNotSupportedError,
    FilterRequest,
    Page,
    PageRequest,
    QueryError,
    RowKey,
)
from dragoman_api import Operator as Op
from dragoman_api.errors import RowNotFoundError
from dragoman_api.kit.exchanges import post
from dragoman_api.wording import quoted
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl import search
from dragoman_querydsl.grid import pages
from dragoman_querydsl.grid.filters import compile_filter

MODERN = dialect_of((8, 19, 0))
ROWS = [{"_index": "a", "_id": str(at), "_seq_no": at, "_primary_term": 1, "_source": {"n": at}} for at in range(3)]
SEEN = view({"properties": {"n": {"type": "long"}, "k": {"type": "keyword"}}})


def answer(**more: Any) -> dict[str, Any]:
    return {
        "hits": {"total": {"value": 3, "relation": "eq"}, "hits": ROWS},
        "_shards": {"total": 5, "failed": 0},
    } | more


def paged(found: dict[str, Any], **more: Any) -> Page:
    request = PageRequest(object="x", **more)
    made = pages.page_query(request, SEEN, MODERN, window=10_000, preference="p")
    return Answers(reply(found)).run(made.shallow_page())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, []),
        ({"timed_out": True}, ["timed out"]),
        ({"_shards": {"total": 5, "failed": 1}}, ["1 of 5 shards failed"]),
        ({"_shards": {"total": 5, "failed": 2}, "timed_out": True}, ["2 of 5 shards failed", "timed out"]),
    ],
)
def test_rows_that_came_are_shown_and_what_is_missing_is_said(more: dict[str, Any], said: list[str]) -> None:
    page = paged(answer(**more))
    assert [row["n"] for row in page.rows] == [0, 1, 2]
    assert page.total == 3
    assert len(page.notes) == len(said)
    for note, word in zip(page.notes, said, strict=True):
        assert note.code == "partial-result"
        assert word in note.reason


@pytest.mark.parametrize("failed", [1, 2, 4, 5])
def test_a_count_of_which_one_shard_is_missing_is_none(failed: int) -> None:
    with pytest.raises(QueryError, match=f"{failed} of 5 shards failed"):
        Answers(reply({"count": 7, "_shards": {"total": 5, "failed": failed}})).run(search.count("x", search.MATCH_ALL))
    assert (
        Answers(reply({"count": 7, "_shards": {"total": 5, "failed": 0}})).run(search.count("x", search.MATCH_ALL)) == 7
    )
    assert Answers(reply({"count": 0})).run(search.count("x", search.MATCH_ALL)) == 0


def test_an_answer_without_hits_or_with_more_rows_than_asked_for_is_none() -> None:
    for found, said in (({"took": 1}, "without 'hits'"), (answer(), "3 rows instead of 2")):
        with pytest.raises(QueryError, match=said):
            paged(found, limit=2)
    assert len(paged(answer(), limit=3).rows) == 3


def test_a_total_that_is_a_lower_bound_or_was_not_asked_for() -> None:
    assert paged(answer(hits={"hits": ROWS})).total is None
    assert paged(answer(hits={"hits": ROWS, "total": 3})).total == 3


@pytest.mark.parametrize(("path", "sign"), [("/x/_search", "?"), ("/x?a=1", "&")])
def test_a_document_with_a_comment_is_asked_for_again_only_if_its_end_is_a_guess(path: str, sign: str) -> None:
    """A comment within a document ends with its line. One after a document may hold the text of another row."""
    decoder = Decoder(dict[str, Any])
    fine, inside = reply('{"_id":"1","_source":{"a":1.10}}'), reply('{"_id":"1","_source":{"a": // x\n1.10}}')
    guess, other, rewritten = reply('{"_id":"1","_source":{"a":1}// x}'), reply('{"_id":"2"}'), reply('{"a":2}')
    mine = {"_id": "1", "_source": {"a": 1}}
    addresses = f"{path}{sign}filter_path=hits.hits._index,hits.hits._id,docs._index,docs._id,_index,_id"
    for replies, again, expected, exact in (
        ([fine], [], {"_id": "1", "_source": {"a": 1.10}}, True),
        ([inside], [], {"_id": "1", "_source": {"a": 1.10}}, False),
        ([guess, reply('{"_id":"1"}')], [addresses], mine, False),
        ([guess, other, rewritten], [addresses, f"{path}{sign}filter_path=*"], {"a": 2}, False),
    ):
        script = Answers(*replies)
        assert script.run(search.documents(post(path), decoder)) == (expected, exact)
        assert [each.path for each in script.asked] == [path, *again]


# one cell -------------------------------------------------------------------------------------------------------------


def fetched(column: str, *replies: Any, of: Any = None) -> Cell:
    return Answers(*replies).run(pages.fetch_cell(CellRequest(key=RowKey("a", "1"), column=column), of or SEEN))


def test_a_cell_is_the_value_of_its_column() -> None:
    found = {
        "_index": "a",
        "_id": "1",
        "found": True,
        "_seq_no": 1,
        "_primary_term": 1,
        "_source": {"n": 7, "k": "x" * 300_000},
    }
    assert fetched("n", reply(found)) == 7
    assert fetched("k", reply(found)) == "x" * 300_000
    with pytest.raises(QueryError, match="_source"):
        fetched("n", reply({name: value for name, value in found.items() if name != "_source"}))
    with pytest.raises(QueryError, match="no column 'nope'"):
        fetched("nope")


def test_a_computed_cell_is_read_by_search_and_a_failed_shard_is_no_missing_row() -> None:
    seen = view(
        {"runtime": {"r": {"type": "long", "script": {"source": "emit(1)"}}}, "properties": {"n": {"type": "long"}}}
    )
    row = {"_index": "a", "_id": "1", "fields": {"r": [9]}}
    none: dict[str, Any] = {"hits": {"hits": []}}
    assert fetched("r", reply({"hits": {"hits": [row]}}), of=seen) == 9
    with pytest.raises(RowNotFoundError):
        fetched("r", reply(none), of=seen)
    for more, said in (({"_shards": {"total": 2, "failed": 1}}, "1 of 2 shards"), ({"timed_out": True}, "timed out")):
        with pytest.raises(QueryError, match=said):
            fetched("r", reply(none | more), of=seen)


def test_a_computed_cell_is_that_of_the_row_and_not_of_another_with_its_id() -> None:
    """Rows of one id may lie on several shards, each with a routing of its own."""
    seen = view({"runtime": {"r": {"type": "long", "script": {"source": "emit(1)"}}}, "properties": {}})
    rows = [{"_index": "a", "_id": "1", "_routing": routing, "fields": {"r": [at]}} for at, routing in enumerate("xy")]
    plain = {"_index": "a", "_id": "1", "fields": {"r": [7, 8]}}

    def cell(routing: str | None, *hits: dict[str, Any]) -> Cell:
        request = CellRequest(key=RowKey("a", "1", routing), column="r")
        script = Answers(reply({"hits": {"hits": [*hits]}}))
        value = script.run(pages.fetch_cell(request, seen))
        assert json.loads(script.asked[0].body or "")["query"] == {"term": {"_id": "1"}}
        return value

    assert [cell(routing, *rows, plain) for routing in ("x", "y", None)] == [0, 1, "[7,8]"]
    assert cell(None, rows[1]) == 1
    for routing, hits in (("z", rows), ("z", [plain]), (None, rows), (None, [plain | {"_id": "2"}])):
        with pytest.raises(RowNotFoundError):
            cell(routing, *hits)


def test_a_stored_cell_is_asked_for_with_the_routing_of_its_row() -> None:
    found = {"_index": "a", "_id": "1", "found": True, "_source": {"n": 7}}
    script = Answers(reply(found))
    request = CellRequest(key=RowKey("a", "1", "r/1"), column="n")
    assert script.run(pages.fetch_cell(request, SEEN)) == 7
    assert [each.path for each in script.asked] == ["/a/_doc/1?routing=r%2F1"]


# filter values --------------------------------------------------------------------------------------------------------

TYPES = {name: {"type": name} for name in (
    "byte", "short", "integer", "long", "half_float", "float", "double", "keyword", "text", "boolean", "date", "ip",
    "binary", "integer_range", "geo_point", "version")}  # fmt: skip


def clause(*rows: Filter, match: str = "all", types: dict[str, Any] | None = None) -> dict[str, Any]:
    request = FilterRequest(object="x", rows=list(rows), match=match)
    made: CompiledFilter = compile_filter(request, view({"properties": types or TYPES}), MODERN)
    return dict(json.loads(made.body)["query"])


def refused(*rows: Filter, types: dict[str, Any] | None = None) -> str:
    with pytest.raises(FilterNotSupportedError) as caught:
        clause(*rows, types=types)
    return str(caught.value.details["reason"])


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        ("byte", -128, 127), ("short", -(2**15), 2**15 - 1), ("integer", -(2**31), 2**31 - 1),
        ("long", -(2**63), 2**63 - 1),
        ("half_float", -65504, 65504), ("float", -(2**127), 2**127),
        ("double", -(2**1023), 2**1023),
    ],
)  # fmt: skip
def test_E34_a_number_fits_up_to_its_bounds(column: str, low: Any, high: Any) -> None:
    for value in (low, high):
        assert clause(Filter(column, "=", value))
        assert clause(Filter(column, ">=", value))
    for value in (low - 1, high + 1) if column not in ("float", "double") else (2 * low,):
        assert "out of range" in refused(Filter(column, "<", value))


def test_E34_an_unsigned_number_has_64_bits() -> None:
    types = {"u": {"type": "unsigned_long"}}
    for value in (0, 2**64 - 1):
        assert clause(Filter("u", "=", value), types=types)
    for value in (-1, 2**64):
        assert "out of range" in refused(Filter("u", "=", value), types=types)


@pytest.mark.parametrize("value", [True, False, "abc", "0x10", "1_000", "½"])
def test_E34_what_is_no_number_is_refused(value: Any) -> None:
    assert refused(Filter("long", "=", value)) == f"{quoted(value)} is not a number"


def test_E34_white_space_around_a_number_does_not_matter() -> None:
    assert clause(Filter("long", "=", " 5 ")) == clause(Filter("long", "=", 5))


def test_a_query_without_a_filter_holds_no_raw_row() -> None:
    assert pages.filter_query("x", None) == (search.MATCH_ALL, False)


@pytest.mark.parametrize("other", ["a", "xx", "y"])
def test_a_filter_of_another_object_is_refused(other: str) -> None:
    compiled = compile_filter(FilterRequest(object="x", rows=[Filter("n", "=", 1)]), SEEN, MODERN)
    assert pages.filter_query("x", compiled)[1] is False
    with pytest.raises(QueryError, match=f"not for '{other}'"):
        pages.filter_query(other, compiled)


@pytest.mark.parametrize(
    ("column", "greatest", "beyond"),
    [
        ("half_float", "65504", "65505"),
        ("float", "3.4028235e38", "3.5e38"),
        ("double", "1.7976931348623157e308", "1.7976931348623159e308"),
    ],
)
def test_E34_the_greatest_float_fits_as_its_type_prints_it(column: str, greatest: str, beyond: str) -> None:
    for sign in ("", "-"):
        assert clause(Filter(column, "=", sign + greatest))
        assert "out of range" in refused(Filter(column, "<", sign + beyond))


def test_E34_bounds_are_those_of_the_operator() -> None:
    for op, name in ((">", "gt"), (">=", "gte"), ("<", "lt"), ("<=", "lte")):
        assert clause(Filter("long", op, 5)) == {"range": {"long": {name: 5}}}
    assert clause(Filter("long", "between", [5, 9])) == {"range": {"long": {"gte": 5, "lte": 9}}}


@pytest.mark.parametrize("column", list(TYPES))
def test_E34_every_operator_that_a_column_refuses_says_why(column: str) -> None:
    """And each that it announces compiles: the two lists are one."""
    seen = view({"properties": TYPES})
    [described] = [each for each in seen.columns.values() if each.name == column]
    examples: dict[str, Any] = {
        "boolean": "true",
        "date": "2024-01-05",
        "ip": "10.0.0.1",
        "keyword": "a",
        "text": "a",
        "version": "1",
    }
    for op in Op:
        value: Any = examples.get(column, 5)
        value = None if op in (Op.NULL, Op.NOT_NULL, Op.EMPTY, Op.NOT_EMPTY) else value
        value = [value, value] if op in (Op.IN, Op.NOT_IN, Op.BETWEEN) else value
        value = {Op.NEAR: "52.5,13.4,5km", Op.IN_BOX: "52,13,53,14"}.get(op, value)
        if op in described.operators:
            assert clause(Filter(column, op, value))
        else:
            assert refused(Filter(column, op, value)) == described.reasons[op]
            assert len(described.reasons[op]) > 10


def test_what_an_operator_needs_is_said_by_the_kind_of_column() -> None:
    assert "only strings" in refused(Filter("long", "contains", "1"))
    assert "only strings" in refused(Filter("boolean", "empty"))
    assert "no order" in refused(Filter("boolean", ">", "true"))
    for column in ("binary", "integer_range", "geo_point"):
        assert "null and not-null only" in refused(Filter(column, "=", "1"))
    assert "no .keyword" in refused(Filter("text", ">", "a")) or "without a .keyword" in refused(
        Filter("text", ">", "a")
    )


def test_E35_a_row_of_an_element_is_on_a_leaf_of_an_array() -> None:
    """On the array itself, and on a column outside of one, an element means nothing."""
    types = {
        "n": {"type": "nested", "properties": {"a": {"type": "keyword"}, "q": {"type": "long"}}},
        "k": {"type": "keyword"},
    }
    for row in (Filter("n", "null", group="1"), Filter("n", "=", "x", group="1"), Filter("n", "not-null", group="1")):
        assert refused(row, types=types)
    assert refused(Filter("k", "=", "x", group="1"), types=types)
    both = clause(Filter("n.a", "=", "x", group="1"), Filter("n.q", "=", 1, group="2"), types=types)
    assert len(both["bool"]["filter"]) == 2


class Rules:
    async def test_E34_every_bound_includes_or_excludes_as_it_says(self, es: Rig) -> None:
        """Results, from below and from above, of whole and of broken numbers and of texts."""
        properties = {"n": {"type": "long"}, "f": {"type": "double"}, "k": {"type": "keyword"}, "d": {"type": "date"}}
        rows = [{"n": at, "f": at / 2, "k": f"k{at}", "d": f"2024-01-0{at + 1}"} for at in range(6)]
        name = await es.index(properties, rows)
        for column, at in (("n", 3), ("f", 1.5), ("k", "k3"), ("d", "2024-01-04")):
            for op, expected in (("=", "3"), ("!=", "01245"), (">", "45"), (">=", "345"), ("<", "012"), ("<=", "0123")):
                assert await es.ids(name, Filter(column, op, at)) == list(expected), (column, op)
        assert await es.ids(name, Filter("n", "between", [1, 4])) == list("1234")
        assert await es.ids(name, Filter("d", "between", ["2024-01-02", "2024-01-03"])) == list("12")
        assert await es.ids(name, Filter("k", "in", "k0,k5")) == list("05")
        assert await es.ids(name, Filter("k", "not-in", ["k0", "k5"])) == list("1234")

    async def test_E35_a_group_of_an_array_is_one_element(self, es: Rig) -> None:
        properties = {"n": {"type": "nested", "properties": {"a": {"type": "keyword"}, "q": {"type": "long"}}}}
        one, two = {"a": "x", "q": 1}, {"a": "y", "q": 2}
        rows = [{"n": [one, two]}, {"n": [{"a": "x", "q": 2}]}, {"n": []}, {"n": [two]}]
        name = await es.index(properties, rows)
        apart = Filter("n.a", "=", "x"), Filter("n.q", "=", 2)
        together = Filter("n.a", "=", "x", group="1"), Filter("n.q", "=", 2, group="1")
        assert await es.ids(name, *apart) == list("01")
        assert await es.ids(name, *together) == ["1"]
        assert await es.ids(name, *together, match="any") == list("013")
        assert await es.ids(name, Filter("n.a", "=", "x", group="1"), Filter("n.q", "!=", 1, group="1")) == ["1"]


class TestAnswersOnFake(OnFake, Rules):
    pass


class TestAnswersOnServer(OnServer, Rules):
    pass


async def test_what_a_server_says_of_a_search_reaches_the_page() -> None:
    """Through the driver: what was cut is a note of the page, and no error."""
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        await es.page(name)
        late = {"took": 1, "timed_out": True, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
                "hits": {"hits": [{"_index": name, "_id": "0", "_source": {"n": 1}}]}}  # fmt: skip
        es.fake.misbehave("answer", on=f"/{name}/_search", status=200, body=late)
        page = await es.page(name)
        es.fake.behave()
        assert [row["n"] for row in page.rows] == [1]
        assert [note.code for note in page.notes] == ["partial-result"]
