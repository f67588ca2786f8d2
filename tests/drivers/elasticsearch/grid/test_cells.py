"""Documents to cells: paths, nested arrays, cut values, digits as stored."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig
from drivers.elasticsearch.test_objects import view
from drivers.replies import Answers, reply
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import CellRequest, CutJson, Json, RowKey, Sort
from dragoman_api.cells import CELL_CUT, MISSING
from dragoman_api.errors import ObjectNotFoundError, QueryError, RowNotFoundError
from dragoman_api.json_text import exact_number, narrowed, widened
from dragoman_querydsl.columns.mapping import SPECIAL
from dragoman_querydsl.grid import pages
from dragoman_querydsl.grid.cells import CellReader, _follow, _numbers, _ways, parse
from dragoman_querydsl.search import READ, DecodedHit, mended, search

if TYPE_CHECKING:
    from dragoman_api import Cell

NESTED = {
    "n": {
        "type": "nested",
        "properties": {
            "a": {"type": "keyword"},
            "b": {"type": "long"},
            "in": {"type": "nested", "properties": {"c": {"type": "long"}}},
        },
    }
}


@pytest.mark.parametrize("source", ["[{}]", "[[1]]", '"x"', "7"])
def test_a_document_that_is_no_object_is_a_clear_error(source: str) -> None:
    found = view({"properties": {"x": {"type": "long"}}})
    answer = f'{{"_index":"a","_id":"1","found":true,"_source":{source}}}'
    with pytest.raises(QueryError):
        Answers(reply(answer)).run(pages.fetch_cell(CellRequest(key=RowKey("a", "1"), column="x"), found))


@pytest.mark.parametrize("trouble", [{"_shards": {"total": 2, "failed": 1}}, {"timed_out": True}])
def test_a_row_on_a_shard_that_failed_is_not_called_gone(trouble: dict[str, Any]) -> None:
    found = view({"properties": {}, "runtime": {"r": {"type": "long", "script": {"source": "emit(1)"}}}})
    with pytest.raises(QueryError) as caught:
        Answers(reply({"hits": {"hits": []}, **trouble})).run(
            pages.fetch_cell(CellRequest(key=RowKey("a", "1"), column="r"), found)
        )
    assert not isinstance(caught.value, RowNotFoundError)


def cells(properties: dict[str, Any], document: str) -> dict[str, Cell]:
    found = view({"properties": properties})
    fields = list(found.fields.values())
    nested = [each.name for each in fields if each.type == "nested"]
    hit = DecodedHit(index="x", id="1", source=parse(document))
    return dict(zip(found.fields, CellReader(fields, nested).cells([hit])[0], strict=True))


@pytest.mark.parametrize(
    ("stored", "cell"),
    [
        ("true", True),
        ("null", None),
        ('"a \\u00fc"', "a ü"),
        ('""', ""),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551616", 2**64),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1.5", 1.5),
        ("1.10", Decimal("1.10")),
        ("0.1234567890123456789", Decimal("0.1234567890123456789")),
        ("1e400", Decimal("1e400")),
        ("1e99999999999999999999", Json("1e99999999999999999999")),
        ("-0.0", -0.0),
    ],
)
def test_scalars_come_back_as_stored(stored: str, cell: Cell) -> None:
    found = cells({"x": {"type": "keyword"}}, f'{{"x":{stored}}}')["x"]
    assert (type(found), found) == (type(cell), cell)


@pytest.mark.parametrize("digits", [4_300, 4_301, 5_000, 20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_integers_of_any_length_are_read_and_stay_as_they_are(digits: int) -> None:
    long = "7" * digits
    body = f'{{"x":{long},"y":[-{long},1.10,"{long}"],"{long}":"\\"{long}"}}'.encode()
    document = parse(widened(body))
    found = view({"properties": {name: {"type": "keyword"} for name in ("x", "y")}})
    hit = DecodedHit(index="x", id="1", source=document)
    row = dict(zip(found.fields, CellReader(list(found.fields.values()), []).cells([hit, hit])[0], strict=True))
    assert row["x"] == Decimal(long) if digits > 4_300 else int(long)
    assert str(row["y"]).startswith(f"[-{long}"[:9_000])
    assert "e-0000" not in str(row["y"])
    assert narrowed(widened(body).decode()) == body.decode()


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 20, 4_299, 4_300, 4_301, 8_599, 8_600, 9_000]), st.sampled_from([",", " ", "a"])),
        max_size=6,
    ),
    st.integers(0, 4_400),
)
def test_integers_are_found_wherever_they_begin(runs: list[tuple[int, str]], blanks: int) -> None:
    text = " " * blanks + "".join("7" * digits + end for digits, end in runs)
    wide = " " * blanks + "".join("7" * digits + ("e-0000" if digits > 4_300 else "") + end for digits, end in runs)
    assert widened(text.encode()).decode() == wide


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("-0", "-0e-0000"),
        ('{"-0":-0,"a":[-0 ,1]}', '{"-0":-0e-0000,"a":[-0e-0000 ,1]}'),
        ("[-0.0,-0e1,-0E1,10,-10,0]", "[-0.0,-0e1,-0E1,10,-10,0]"),
        (r'["-0",",-0e-0000,","\\",-0,"\"-0",-0]', r'["-0",",-0e-0000,","\\",-0e-0000,"\"-0",-0e-0000]'),
    ],
)
def test_the_sign_of_an_integer_zero_is_kept_and_nothing_else_changes(text: str, wide: str) -> None:
    assert widened(text.encode()).decode() == wide
    assert narrowed(wide) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_stays_a_float_where_it_gives_the_text_back(value: float) -> None:
    found = cells({"x": {"type": "double"}}, f'{{"x":{value!r}}}')["x"]
    assert isinstance(found, float)
    assert found == value


def test_E21_arrays_and_objects_are_json_with_their_digits_and_key_order() -> None:
    document = '{"a": [1.10, 1e400, "x y"], "o": {"z": 1, "a":\n 2}}'
    found = cells({"a": {"type": "double"}, "o": {"type": "object", "enabled": False}}, document)
    assert found["a"] == Json('[1.10,1e400,"x y"]')
    assert found["o"] == Json('{"z":1,"a":2}')
    assert isinstance(found["a"], Json)


def test_E22_a_json_cell_is_cut_at_10000_characters_and_marked() -> None:
    fits, long = json.dumps(["ü" * 9_996], ensure_ascii=False), json.dumps(["ü" * 9_997], ensure_ascii=False)
    found = cells({"a": {"type": "keyword"}, "b": {"type": "keyword"}}, f'{{"a":{fits},"b":{long}}}')
    assert (found["a"], type(found["a"])) == (fits, Json)
    assert (found["b"], type(found["b"])) == (long[:10_000] + "...", CutJson)


def test_E22_a_plain_string_is_not_cut() -> None:
    found = cells({"a": {"type": "keyword"}}, json.dumps({"a": "x" * 20_000}))["a"]
    assert found == "x" * 20_000


def test_E20_a_nested_array_has_a_json_column_and_one_entry_per_object_in_each_leaf() -> None:
    found = cells(NESTED, '{"n":[{"a":"x","b":1},{"b":2.50},{}]}')
    assert found["n"] == '[{"a":"x","b":1},{"b":2.50},{}]'
    assert found["n.a"] == '["x",null,null]'
    assert found["n.b"] == "[1,2.50,null]"


def test_E20_a_bare_object_is_an_array_of_one() -> None:
    found = cells(NESTED, '{"n":{"a":"x"}}')
    assert (found["n"], found["n.a"], found["n.b"]) == ('{"a":"x"}', '["x"]', "[null]")


def test_E20_nested_in_nested_keeps_its_shape() -> None:
    found = cells(NESTED, '{"n":[{"in":[{"c":1},{"c":2}]},{"a":"x"},{"in":{"c":3}}]}')
    assert found["n.in"] == '[[{"c":1},{"c":2}],null,{"c":3}]'
    assert found["n.in.c"] == "[[1,2],null,[3]]"


def test_E19_a_plain_object_that_holds_an_array_fills_its_leaves_likewise() -> None:
    properties = {"o": {"properties": {"a": {"type": "long"}, "p": {"properties": {"b": {"type": "long"}}}}}}
    assert cells(properties, '{"o":{"a":1,"p":{"b":2}}}')["o.p.b"] == 2
    found = cells(properties, '{"o":[{"a":1},{"p":[{"b":2},{"b":3}]}]}')
    assert (found["o.a"], found["o.p.b"]) == ("[1,null]", "[null,[2,3]]")


def test_a_dotted_key_in_one_row_leaves_the_arrays_of_another_as_they_are() -> None:
    found = view({"properties": {"o": {"properties": {"p": {"properties": {"b": {"type": "long"}}}}}}})
    documents = ['{"o.p.b":7}', '{"o":[{"a":1},{"p":{"b":2}},{"p.b":3},{"p":[{"b":4},{}]}]}']
    hits = [DecodedHit(source=parse(document)) for document in documents]
    assert CellReader([found.fields["o.p.b"]]).cells(hits) == [[7], ["[null,2,3,[4,null]]"]]


@pytest.mark.parametrize("document", ['{"a.b.c":7}', '{"a":{"b.c":7}}', '{"a.b":{"c":7}}', '{"a":{"b":{"c":7}}}'])
def test_every_spelling_of_a_path_is_read(document: str) -> None:
    assert cells({"a": {"properties": {"b": {"properties": {"c": {"type": "long"}}}}}}, document)["a.b.c"] == 7


def test_the_literal_key_comes_first_where_a_document_has_both() -> None:
    properties = {"a": {"properties": {"b": {"type": "long"}}}}
    for document in ('{"a.b":1,"a":{"b":2}}', '{"a":{"b":2},"a.b":1}'):
        assert cells(properties, document)["a.b"] == 1


@pytest.mark.parametrize(
    ("document", "leaf"),
    [
        ("{}", MISSING),
        ('{"o":null}', MISSING),
        ('{"o":{}}', MISSING),
        ('{"o":"text"}', MISSING),
        ('{"o":5}', MISSING),
        ('{"o.b":1}', MISSING),
        ('{"o":{"a":null}}', None),
        ('{"o.a":null}', None),
        ('{"o":{"a":""}}', ""),
        ('{"o":{"a":[]}}', "[]"),
        ('{"o":{"a":[null]}}', "[null]"),
        ('{"o":[]}', "[]"),
        ('{"o":[null,1]}', "[null,null]"),
    ],
)
def test_a_key_that_is_not_there_is_told_from_a_null(document: str, leaf: Cell) -> None:
    found = cells({"o": {"properties": {"a": {"type": "keyword"}}}}, document)["o.a"]
    assert (type(found) is tuple, found) == (leaf is MISSING, leaf)


@pytest.mark.parametrize(
    ("document", "array", "leaf"),
    [
        ("{}", MISSING, MISSING),
        ('{"n":null}', None, MISSING),
        ('{"n":[]}', "[]", "[]"),
        ('{"n":{}}', "{}", "[null]"),
        ('{"n":[{"b":1},{"a":null},null]}', '[{"b":1},{"a":null},null]', "[null,null,null]"),
        ('{"n.a":null}', MISSING, None),
    ],
)
def test_a_nested_array_that_is_not_there_is_told_from_a_null(document: str, array: Cell, leaf: Cell) -> None:
    found = cells(NESTED, document)
    assert (found["n"], found["n.a"]) == (array, leaf)


def test_a_document_that_was_not_stored_is_null_for_nothing_tells_what_it_held() -> None:
    fields = view(
        {"properties": {"a": {"type": "long"}}, "runtime": {"r": {"type": "long", "script": {"source": "emit(1)"}}}}
    ).fields
    hits = [DecodedHit(index="x", id="1", source=source) for source in ({}, None, {"a": None})]
    rows = [dict(zip(fields, row, strict=True)) for row in CellReader([*fields.values()]).cells(hits)]
    assert [(row["a"], row["r"]) for row in rows] == [(MISSING, None), (None, None), (None, None)]


def test_an_alias_shows_its_target() -> None:
    found = cells({"t": {"type": "keyword"}, "al": {"type": "alias", "path": "t"}}, '{"t":"x"}')
    assert (found["t"], found["al"]) == ("x", "x")


def test_special_columns_come_from_the_hit() -> None:
    hit = DecodedHit(index="i", id="7", score=1.5, source={})
    assert CellReader(SPECIAL).cells([hit])[0] == ["7", "i", 1.5]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", min_size=1, max_size=3), inner),
        max_leaves=8,
    )
)
def test_no_document_of_whatever_shape_breaks_a_page(value: Any) -> None:
    properties = NESTED | {"a": {"properties": {"b": {"type": "long"}}}}
    for document in ({"n": value}, {"a": value}, {"a.b": value}, value if isinstance(value, dict) else {}):
        cells(properties, json.dumps(document))


TREES = st.recursive(
    st.none() | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "a.b", "b.c"]), inner),
    max_leaves=9,
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "a.b", "a.b.c"]), TREES), max_size=4), st.booleans())
def test_a_page_read_by_columns_holds_what_its_documents_hold_one_by_one(documents: Any, nested: bool) -> None:
    leaf = {"type": "long"}
    inner = {"type": "nested" if nested else "object", "properties": {"c": leaf, "a": leaf}}
    found = view({"properties": {"a": {"type": "nested", "properties": {"b": inner, "c": leaf}}, "b": inner}})
    fields = [each for each in found.fields.values() if each not in SPECIAL]
    arrays = frozenset(each.name for each in fields if each.type == "nested")
    columns = CellReader(fields, arrays).columns([DecodedHit(source=document) for document in documents])
    ways = [_ways(each.field.split("."), "", arrays) for each in fields]
    assert columns == [[_follow(document, way) for document in documents] for way in ways]


@given(
    st.lists(
        st.decimals(-1, 1, places=6).map(lambda number: f"{number:f}")
        | st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.integers(-400, 400).map(lambda exponent: f"1e{exponent}"),
        max_size=3,
    )
)
def test_numbers_are_read_together_as_they_are_one_by_one(texts: list[str]) -> None:
    together = list(_numbers([msgspec.Raw(text.encode()) for text in texts]))
    assert [(type(each), str(each)) for each in together] == [
        (type(each), str(each)) for each in map(exact_number, texts)
    ]


def test_a_number_of_any_length_does_not_fail_its_page() -> None:
    """What a server does not index it may keep as it came."""
    long = "7" * 5_000
    values = {"big": long, "neg": f"-{long}", "list": f"[{long},1.10]", "far": "1e99999999999999999999"}
    document = "{" + ",".join(f'"{name}":{value}' for name, value in values.items()) + f',"s":"{long}"}}'
    hits = ",".join(f'{{"_index":"x","_id":"1","_source":{source}}}' for source in (document, '{"big":1}'))
    answers = Answers(reply(f'{{"hits":{{"hits":[{hits}]}},"_shards":{{"total":1,"successful":1,"failed":0}}}}'))
    found = answers.run(search("/x/_search", {}, READ))
    assert found.read.exact
    fields = view({"properties": {name: {"type": "keyword"} for name in (*values, "s")}}).fields
    row, other = (
        dict(zip(fields, cells, strict=True)) for cells in CellReader([*fields.values()]).cells(found.hits.hits)
    )
    assert {key: str(row[key]) for key in values} == values
    assert (row["s"], other["big"]) == (long, 1)


class CellRules:
    async def test_documents_come_back_digit_by_digit(self, es: Rig) -> None:
        """Nothing in the request may make the server write the documents anew."""
        document = '{"n":1.10,"big":123456789012345678901234567890,"huge":1e400,"s":"\\u00fc","z":1,"a":[1.0,2.50]}'
        name = await es.index(
            mapping={"dynamic": False},
            properties={key: {"type": "keyword", "index": False} for key in ("n", "big", "huge", "s", "z", "a")},
            documents=[document],
        )
        [row] = (await es.page(name)).rows
        assert row.to_dict() | {"_score": 1.0} == {
            "_id": "0", "_index": name, "_score": 1.0, "n": Decimal("1.10"), "s": "ü", "z": 1,
            "big": 123456789012345678901234567890, "huge": Decimal("1e400"), "a": "[1.0,2.50]",
        }  # fmt: skip

    async def test_null_missing_and_empty_are_told_apart(self, es: Rig) -> None:
        properties = NESTED | {"t": {"type": "keyword"}, "o": {"properties": {"a": {"type": "long"}}}}
        documents = [
            '{"t":null,"o":{"a":null},"n":null}',
            '{"o":null}',
            '{"t":"","n":[]}',
            '{"t":[],"n":[{"b":1}]}',
            "{}",
        ]
        name = await es.index(properties, documents)
        page = await es.page(name, columns=["_id", "t", "o.a", "n", "n.a"])
        found = {row[0]: row[1:] for row in page.cells}
        assert found == {
            "0": [None, None, None, MISSING], "1": [MISSING, MISSING, MISSING, MISSING],
            "2": ["", MISSING, "[]", "[]"], "3": ["[]", MISSING, '[{"b":1}]', "[null]"],
            "4": [MISSING, MISSING, MISSING, MISSING],
        }  # fmt: skip
        for key in page.keys:
            for at, column in enumerate(("t", "o.a", "n", "n.a")):
                cell = await es.driver.fetch_cell(CellRequest(key=key, column=column))
                assert cell == found[key.text][at], (key.id, column)
                assert (cell is MISSING) == (found[key.text][at] is MISSING)

    async def test_an_integer_zero_keeps_its_sign(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "long"}, "a": {"type": "long"}}, ['{"x":-0,"a":[-0,0]}', '{"x":0}'])
        page = await es.page(name, columns=["_id", "x", "a"], sort=[Sort("_index")])
        assert sorted((key, str(x), a) for key, x, a in page.cells) == [("0", "-0", "[-0,0]"), ("1", "0", MISSING)]
        key = next(key for key in page.keys if key.id == "0")
        assert str(await es.driver.fetch_cell(CellRequest(key=key, column="x"))) == "-0"

    async def test_a_comment_stored_in_a_document_does_not_fail_its_page(self, es: Rig) -> None:
        """The server stores comments and answers them verbatim, so its answer is no JSON."""
        name = await es.index({"x": {"type": "long"}}, [{"x": 2}])
        reply = await es.raw("PUT", f"/{name}/_doc/c?refresh=true", '{"x":1 /* note */}')
        assert reply.status == 201, reply.text
        page = await es.page(name, columns=["_id", "x"])
        assert sorted(map(tuple, page.cells)) == [("0", 2), ("c", 1)]
        assert [note.code for note in page.notes] == ["documents-rewritten"]
        key = next(key for key in page.keys if key.id == "c")
        assert await es.driver.fetch_cell(CellRequest(key=key, column="x")) == 1

    @pytest.mark.parametrize("comment", ["/* c */", "// c", "// c\n", "// }]"])
    async def test_a_comment_leaves_the_digits_of_all_rows_of_a_page(self, es: Rig, comment: str) -> None:
        name = await es.index({"x": {"type": "double"}}, ['{"x":1.10}', '{"x":1.20}'])
        assert (await es.raw("PUT", f"/{name}/_doc/c?refresh=true", f'{{"x":1.30}} {comment}')).status == 201
        page = await es.page(name, columns=["_id", "x"])
        assert sorted((key, str(cell)) for key, cell in page.cells) == [("0", "1.10"), ("1", "1.20"), ("c", "1.30")]
        assert [note.code for note in page.notes] == ["documents-rewritten"]
        key = next(key for key in page.keys if key.id == "c")
        assert str(await es.driver.fetch_cell(CellRequest(key=key, column="x"))) == "1.30"

    async def test_a_comment_that_reads_like_a_row_adds_none_to_a_page(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "double"}}, ['{"x":1.10}'])
        forged = f'{{"x":1}} // }},{{"_index":"{name}","_id":"9","_source":{{"x":9}}'
        assert (await es.raw("PUT", f"/{name}/_doc/c?refresh=true", forged)).status == 201
        page = await es.page(name, columns=["_id", "x"])
        assert [key for key, _ in page.cells] == ["0", "c"]
        assert "numbers of all these rows" in page.notes[0].reason

    async def test_a_lone_surrogate_does_not_fail_its_page(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "keyword", "index": False}}, ['{"x":"a\\ud800b"}'])
        page = await es.page(name, columns=["x"])
        assert page.cells == [["a\ufffdb"]]
        assert [note.code for note in page.notes] == ["documents-rewritten"]

    async def test_E22_a_cut_cell_is_fetched_whole(self, es: Rig) -> None:
        long = ["x" * 30_000]
        name = await es.index({"x": {"type": "keyword", "ignore_above": 10}}, [{"x": long}])
        page = await es.page(name)
        assert page.rows[0].is_cut("x")
        whole = await es.driver.fetch_cell(CellRequest(key=page.keys[0], column="x"))
        assert (type(whole), whole) == (Json, json.dumps(long))

    async def test_a_row_that_is_gone_is_told(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "long"}}, [{"x": 1}])
        [key] = (await es.page(name)).keys
        await es.call("DELETE", f"/{name}/_doc/0")
        with pytest.raises(RowNotFoundError, match="holds no document '0'"):
            await es.driver.fetch_cell(CellRequest(key=key, column="x"))
        await es.call("DELETE", f"/{name}")
        with pytest.raises(ObjectNotFoundError):
            await es.driver.fetch_cell(CellRequest(key=key, column="x"))

    async def test_odd_ids_are_found_again(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "long"}})
        odd = ["a/b", "a%b", "a b", "ü漢", "a+b", "?#", "..", ".", "a,b", "*", '"', "\\", "ü" * 256]
        lines = [line for each in odd for line in (json.dumps({"index": {"_id": each}}), '{"x":1}')]
        await es.call("POST", f"/{name}/_bulk?refresh=true", "\n".join(lines) + "\n")
        page = await es.page(name, limit=100)
        assert sorted(key.id for key in page.keys) == sorted(odd)
        for key in page.keys:
            assert await es.driver.fetch_cell(CellRequest(key=key, column="_id")) == key.id

    async def test_what_is_stored_and_not_indexed_is_said(self, es: Rig) -> None:
        if es.version < (7, 11):
            pytest.skip("7.10 does not say which values it ignored")
        name = await es.index({"x": {"type": "keyword", "ignore_above": 3}}, [{"x": "abcdef"}, {"x": "ab"}])
        page = await es.page(name)
        assert [(note.code, note.column) for note in page.notes] == [("value-not-indexed", "x")]

    async def test_an_index_that_keeps_no_documents_says_so(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "long"}}, [{"x": 1}], mapping={"_source": {"enabled": False}})
        page = await es.page(name)
        assert [note.code for note in page.notes] == ["source-missing"]
        assert page.rows[0]["x"] is None
        assert await es.driver.fetch_cell(CellRequest(key=page.keys[0], column="_id")) == "0"
        with pytest.raises(QueryError):
            await es.driver.fetch_cell(CellRequest(key=page.keys[0], column="x"))

    async def test_ids_alone_need_no_documents(self, es: Rig) -> None:
        """`_source:false` keeps the id."""
        name = await es.index({"x": {"type": "long"}}, [{"x": 1}])
        page = await es.page(name, columns=["_id", "_index"])
        assert page.cells == [["0", name]]
        assert msgspec.json.decode(es.sent("POST", "_search")[-1].body or "")["_source"] is False

    async def test_a_synthetic_source_is_read_as_the_server_rebuilds_it(self, es: Rig) -> None:
        if es.version < (8, 4) or es.fake:
            pytest.skip("needs a real server of 8.4 or later")
        settings = {"index.mapping.source.mode": "synthetic"} if es.version >= (8, 18) else {}
        mapping = {} if settings else {"_source": {"mode": "synthetic"}}
        name = await es.index({"k": {"type": "keyword"}}, [{"k": ["b", "a", "b"]}], settings=settings, mapping=mapping)
        [row] = (await es.page(name)).rows
        assert row["k"] == '["a","b"]'
        described = await es.driver.describe_object(name)
        assert [note.code for note in described.notes] == ["documents-rebuilt"]


class TestCellsOnFake(CellRules, OnFake):
    pass


class TestCellsOnServer(CellRules, OnServer):
    pass


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83dx", "\ufffdx"),
        (r"\\ud83d", "\\ud83d"),
        (r"\ude00\ud83d", "\ufffd\ufffd"),
        (r"\\\ud83d\n", "\\\ufffd\n"),
    ],
)
def test_only_halves_of_surrogate_pairs_are_mended(stored: str, read: str) -> None:
    assert json.loads(mended(f'"{stored}"'.encode())) == read


def test_a_computed_instant_is_read_to_the_millisecond_whatever_the_format_of_its_column() -> None:
    script = {"type": "date", "script": {"source": "emit(1)"}}
    fields = view({"properties": {}, "runtime": {"r": script, "s": {**script, "format": "yyyy"}}}).fields
    computed = CellReader([fields["r"], fields["s"]]).computed
    assert computed == ["r", {"field": "s", "format": "strict_date_optional_time"}]


def test_an_alias_that_several_indices_have_shows_their_values_and_is_not_there_in_the_others() -> None:
    long = {"type": "long"}
    mappings = [{"properties": {"x": long, f"only_{name}": long}} for name in "abc"]
    for each in mappings[:2]:
        each["properties"]["al"] = {"type": "alias", "path": "x"}
    found = view(*mappings)
    reader = CellReader([found.fields["x"], found.fields["al"]])
    hits = [DecodedHit(index=index, id="1", source={"x": 1}) for index in "abc"]
    assert reader.cells(hits) == [[1, 1], [1, 1], [1, MISSING]]


def test_a_computed_column_asks_for_whole_instants_and_shows_all_values() -> None:
    """Also where its default format comes first, and the format of another index leaves digits out."""
    script = {"script": {"source": "emit(1)"}}
    day, plain = {"type": "date", "format": "yyyy-MM-dd", **script}, {"type": "date", **script}
    whole = {"field": "d", "format": "strict_date_optional_time"}
    for mappings, asked in (([plain], "d"), ([day], whole), ([plain, day], whole), ([day, plain], whole)):
        found = view(*({"runtime": {"d": each}} for each in mappings))
        reader = CellReader([found.fields["d"]])
        assert reader.computed == [asked]
    hits = [DecodedHit(index="a", id="1", fields={"d": values} if values else {}) for values in ([], ["1"], ["1", "2"])]
    assert reader.cells(hits) == [[None], ["1"], ['["1","2"]']]


def test_columns_of_a_document_that_was_not_stored_are_null_and_those_of_its_neighbours_are_not() -> None:
    long = {"type": "long"}
    found = view({"properties": {"a": long, "o": {"properties": {"b": long, "c": long}}}})
    reader = CellReader([found.fields[name] for name in ("a", "o.b", "o.c")])
    sources: list[dict[str, Any] | None] = [{"a": 1}, None, {"o": {"b": 2}}, {"o.c": 3, "a": None}]
    hits = [DecodedHit(index="a", id=str(at), source=source) for at, source in enumerate(sources)]
    assert reader.cells(hits) == [[1, MISSING, MISSING], [None] * 3, [MISSING, 2, MISSING], [None, MISSING, 3]]


def test_the_longest_of_several_arrays_alone_is_cut_and_only_past_the_limit() -> None:
    found = view({"properties": {"k": {"type": "keyword"}}})
    sources = [{"k": ["x"]}, {"k": ["x" * (CELL_CUT - 4)]}, {"k": ["x" * (CELL_CUT - 3)]}]
    hits = [DecodedHit(index="a", id="1", source=source) for source in sources]
    for rows in (hits, hits[:2], hits[::-1]):
        shown = [row[0] for row in CellReader([found.fields["k"]]).cells(rows)]
        cut = [len(hit.source["k"][0]) > CELL_CUT - 4 for hit in rows if hit.source]
        assert [isinstance(cell, CutJson) for cell in shown] == cut
