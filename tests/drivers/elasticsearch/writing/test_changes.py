"""Changes: exact requests that protect what is there, and what became of each."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.grid.test_filters import PROPERTIES as FILTERED
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, may_write, on_fake
from drivers.elasticsearch.test_objects import view
from drivers.replies import Answers
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import (
    CutJson,
    Delete,
    Drop,
    Filter,
    HttpRequest,
    Insert,
    Json,
    OutcomeStatus,
    PlanRequest,
    RowKey,
    Update,
)
from dragoman_querydsl.columns.field_types import Family, Field
from dragoman_querydsl.writing import edited_values
from dragoman_querydsl.writing.plan import plan_changes

if TYPE_CHECKING:
    from dragoman_api.changes import Change

PROPERTIES: dict[str, Any] = {
    "title": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
    "code": {"type": "keyword"},
    "price": {"type": "double"},
    "pages": {"type": "integer"},
    "stock": {"type": "boolean"},
    "when": {"type": "date"},
    "author": {"properties": {"name": {"type": "keyword"}, "born": {"type": "integer"}}},
    "items": {"type": "nested", "properties": {"sku": {"type": "keyword"}, "qty": {"type": "integer"}}},
    "extra": {"type": "object", "enabled": False},
    "address": {"type": "ip"},
    "al": {"type": "alias", "path": "code"},
}
NOWHERE = "2024-01-31T12:00:00+99:00"
"""A date that only the server refuses: no zone is that far."""

APPLIED, SKIPPED, REFUSED = OutcomeStatus.APPLIED, OutcomeStatus.SKIPPED, OutcomeStatus.REFUSED
CONFLICT, FAILED, UNKNOWN = OutcomeStatus.CONFLICT, OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN

# values


@pytest.mark.parametrize(
    ("column", "given_", "stored"),
    [
        ("i", "12", "12"),
        ("f", "12.50", "12.50"),
        ("f", 12.5, "12.5"),
        ("f", "1.0", "1.0"),
        ("f", " 1.50 ", "1.50"),
        ("f", "1e3", "1e3"),
        ("f", "-0", "-0"),
        ("f", "-0.0", "-0.0"),
        ("f", 1.0, "1.0"),
        ("f", Decimal("1.0"), "1.0"),
        ("f", "12345678901234567890.123", "12345678901234567890.123"),
        ("f", "+.5", "0.5"),
        ("f", "007", "7"),
        ("i", "1.0", "1.0"),
        ("k", "1.0", '"1.0"'),
        ("k", "1e3", '"1e3"'),
        ("t", "1.0", '"1.0"'),
        ("i", 2**31 - 1, "2147483647"),
        ("b", "True", "true"),
        ("k", "12", '"12"'),
        ("k", 12, "12"),
        ("k", 1e3, "1000.0"),
        ("k", Decimal("1.10"), "1.10"),
        ("k", Json("1e3"), "1e3"),
        ("k", Json('"[1]"'), '"[1]"'),
        ("k", Json("[1e3,-0]"), "[1e3,-0]"),
        ("k", True, "true"),
        ("i", Json('"12"'), '"12"'),
        ("i", Json('""'), '""'),
        ("i", Json("1e2"), "1e2"),
        ("i", Json("null"), "null"),
        ("b", Json('"true"'), '"true"'),
        ("b", "", '""'),
        ("b", True, "true"),
        ("d", Json('"2024-01-05"'), '"2024-01-05"'),
        ("d", Json("1700000000000"), "1700000000000"),
        ("d", Json('["2024-01-05",null,1]'), '["2024-01-05",null,1]'),
        ("k", "", '""'),
        ("k", '["a", 1.10]', '"[\\"a\\", 1.10]"'),
        ("t", "[1]", '"[1]"'),
        ("k", ["a", Decimal("1.10")], '["a",1.10]'),
        ("i", "[1, 2]", "[1, 2]"),
        ("k", '{"a":1}', '"{\\"a\\":1}"'),
        ("k", "[not json", '"[not json"'),
        ("p", "", '""'),
        ("d", "2024-01-05", '"2024-01-05"'),
        ("d", 1700000000000, "1700000000000"),
        ("ip", "10.0.0.1", '"10.0.0.1"'),
        ("ip", "2001:DB8::2", '"2001:DB8::2"'),
        ("ip", "::ffff:10.0.0.1", '"::ffff:10.0.0.1"'),
        ("n", '[{"a":"x"}]', '[{"a":"x"}]'),
        ("n", '{"a":"x"}', '{"a":"x"}'),
        ("n", Json('[null,{"a":1e3},[{"a":1}]]'), '[null,{"a":1e3},[{"a":1}]]'),
        ("n", [{"a": "x"}], '[{"a":"x"}]'),
        ("fl", Json('{"a": 1e400}'), '{"a": 1e400}'),
        ("fl", Json('{"a":1e3,"b":-0}'), '{"a":1e3,"b":-0}'),
        ("i", None, "null"),
        ("n", Json("null"), "null"),
        ("fl", Json("null"), "null"),
        ("ip", Json("null"), "null"),
    ],
)
def test_values_are_typed_by_column(column: str, given_: object, stored: str) -> None:
    found = view({"properties": FILTERED}).fields[column]
    assert edited_values.encode(edited_values.edited(found, given_)) == stored


def test_bytes_are_stored_as_base64_in_a_binary_column_only() -> None:
    binary = Field(name="x", types=("binary",), family=Family.BINARY, field="x")
    assert edited_values.encode(edited_values.edited(binary, b"hello")) == '"aGVsbG8="'
    for column in ("k", "i", "t", "b"):
        with pytest.raises(ValueError, match="bytes"):
            edited_values.edited(view({"properties": FILTERED}).fields[column], b"hello")


def test_ids_that_are_no_texts_are_refused_one_by_one() -> None:
    changes = [Delete(RowKey("a", b"x")), Update(RowKey("a", ["x", 1]), {"k": "y"}), Insert("a", {"k": "y"}, b"x")]
    plan = Answers().run(plan_changes(PlanRequest(changes=changes), {}))
    assert [(each.change, each.status, each.id) for each in plan.refusals] == [
        (0, REFUSED, b"x"), (1, REFUSED, ["x", 1]), (2, REFUSED, b"x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "given_"),
    [
        ("i", "x"), ("i", True), ("i", 2**31), ("i", {"a": 1}), ("b", "yes"), ("ip", "x"), ("n", "x"), ("n", "[1]"),
        ("n", 5), ("fl", "x"), ("k", {"a": 1}), ("k", "a\ud800"), ("f", float("nan")), ("k", float("nan")),
        ("k", [1, [float("-inf")]]), ("k", Decimal("NaN")),
        ("fl", {"a": [float("nan")]}), ("k", Json("[1")), ("n", Json("[1]")), ("n", Json("5")), ("k", Json('{"a":1}')),
        ("d", Json('"x"')), ("d", Json('["2024-01-05","x"]')), ("b", 1), ("ip", 5), ("ip", 0),
        ("n", Json('[{"a":1},5]')), ("n", '[5,{"a":1}]'), ("n", [{"a": 1}, "x"]),
        ("n", Json('[[{"a":1}],[{"a":1},5]]')),
        ("fl", {"a": 1, "b": float("nan")}), ("fl", Json("5")), ("i", [1, float("nan")]), ("d", ["2024-12-31", "soon"]),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_here(column: str, given_: object) -> None:
    found = view({"properties": FILTERED}).fields[column]
    with pytest.raises(ValueError, match=r".+"):
        edited_values.edited(found, given_)


@pytest.mark.parametrize(
    ("spec", "given_", "stored"),
    [
        *(({"type": kind}, '{"a":[1.10]}', '{"a":[1.10]}') for kind in (
            "object", "nested", "flattened", "long_range", "geo_point", "geo_shape", "point", "shape", "join")),
        *(({"type": kind}, text, json.dumps(text)) for text in ('{"a":1}', "[1]", "1.0") for kind in (
            "keyword", "text", "match_only_text", "annotated_text", "version", "completion", "semantic_text")),
        *(({"type": kind}, "[1.10, 2]", "[1.10, 2]") for kind in ("long_range", "geo_point", "dense_vector", "double")),
        # an index that stores what it cannot index
        ({"type": "long", "ignore_malformed": True}, "many", '"many"'),
        ({"type": "long", "ignore_malformed": "true"}, Json('{"a":1}'), '{"a":1}'),
        ({"type": "date", "ignore_malformed": True}, "soon", '"soon"'),
        ({"type": "date", "ignore_malformed": True}, Json('["2024","soon"]'), '["2024","soon"]'),
        ({"type": "ip", "ignore_malformed": True}, "here", '"here"'),
        # a table's instant, as the column takes it
        ({"type": "date", "format": "dd.MM.yyyy"}, "2024-12-31T00:00:00Z", '"31.12.2024"'),
    ],
)  # fmt: skip
def test_a_typed_text_is_json_only_where_no_texts_are_kept(spec: dict[str, Any], given_: object, stored: str) -> None:
    found = view({"properties": {"x": spec}})
    assert edited_values.encode(edited_values.edited(found.fields["x"], given_)) == stored


@pytest.mark.parametrize("text", ["12", "[1]", '{"a":1}', ""])
def test_a_key_of_a_flattened_column_keeps_texts(text: str) -> None:
    found = view({"properties": {"x": {"type": "flattened"}}}).find("x.k")
    assert found is not None
    assert edited_values.encode(edited_values.edited(found, text)) == json.dumps(text)


def test_E23_the_fragment_of_a_cut_cell_is_stored_as_the_text_it_is() -> None:
    found = view({"properties": FILTERED}).fields["k"]
    assert edited_values.encode({"doc": edited_values.edited(found, '["aaaa...')}) == '{"doc":"[\\"aaaa..."}'


# where a value belongs

AB = view({"properties": {"a": {"properties": {"b": {"properties": {"c": {"type": "long"}}}}}}}).fields["a.b.c"]


@pytest.mark.parametrize(
    ("document", "way"),
    [
        ("{}", ("a", "b", "c")),
        ('{"a":{"b":{"c":1}}}', ("a", "b", "c")),
        ('{"a":{}}', ("a", "b", "c")),
        ('{"a":null}', ("a", "b", "c")),
        ('{"a.b.c":1}', ("a.b.c",)),
        ('{"a.b":{"x":1}}', ("a.b", "c")),
        ('{"a":{"b.c":1}}', ("a", "b.c")),
        ('{"a":{"b":5}}', ("a", "b", "c")),
        ('{"a":{"b":{"c":1}},"a.b.c":2}', ("a.b.c",)),
        ('{"a":{"b":{"c":1}},"a.b":{"c":2}}', ("a.b", "c")),
        ('{"a":{"b":{"c":1},"b.c":2}}', ("a", "b.c")),
    ],
)
def test_E28_a_dotted_column_is_written_as_the_document_spells_it(document: str, way: tuple[str, ...]) -> None:
    """The other form would add a second key, and both would be indexed."""
    assert edited_values.spelled(document.encode(), AB) == way


def test_an_array_on_the_way_is_not_replaced() -> None:
    for document, key in (
        (b'{"a":[{"b":{"c":1}}]}', "a"),
        (b'{"a":[]}', "a"),
        (b'{"a":{"b":[{"c":1}]}}', "b"),
        (b'{"a.b":[{"c":1}]}', "a.b"),
    ):
        with pytest.raises(ValueError, match=f"'{key}' is an array in this document"):
            edited_values.spelled(document, AB)
    assert edited_values.spelled(b'{"a.b":[1]}', AB) == ("a", "b", "c"), "a field of its own beside it"


def test_a_name_with_a_dot_of_its_own_stays_one_key() -> None:
    found = view({"subobjects": False, "properties": {"a.b": {"type": "long"}}}).fields["a.b"]
    assert edited_values.spelled(b"{}", found) == ("a.b",)


@given(st.dictionaries(st.sampled_from("abc"), st.recursive(
    st.integers() | st.text(max_size=3), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)), st.lists(st.sampled_from("abc"), min_size=1, max_size=3))  # fmt: skip
def test_replacing_one_value_keeps_all_others(document: dict[str, Any], way: list[str]) -> None:
    found = json.loads(edited_values.replaced(json.dumps(document).encode(), way, "new"))
    inner = found
    for key in way:
        inner = inner[key]
    assert inner == "new"
    assert {key: value for key, value in found.items() if key != way[0]} == {
        key: value for key, value in document.items() if key != way[0]
    }


def test_replacing_keeps_bytes_and_order() -> None:
    document = b'{"z":1.10,"a": {"y":1e400,"x":2},"s":"\\u00fc"}'
    assert edited_values.replaced(document, ("a", "x"), 3) == b'{"z":1.10,"a":{"y":1e400,"x":3},"s":"\\u00fc"}'


class ChangeRules:
    @pytest.fixture
    async def books(self, es: Rig) -> str:
        document = {
            "title": "T", "code": "c", "price": 1.5, "author": {"name": "Ada", "born": 1815},
            "items": [{"sku": "s", "qty": 1}], "extra": {"a": 1, "b": 2},
        }  # fmt: skip
        return await es.index(PROPERTIES, [document])

    async def stored(self, es: Rig, name: str, key: str = "0") -> dict[str, Any]:
        return json.loads(await es.source(name, key))  # type: ignore[no-any-return]

    # E28

    async def test_E28_a_partial_edit_sends_the_changed_fields_guarded(self, es: Rig, books: str) -> None:
        [key] = (await es.page(books)).keys
        plan = await es.plan(Update(key, {"price": 12.5, "author.name": "Grace"}))
        assert plan.requests == [
            HttpRequest(
                "POST",
                f"/{books}/_update/0?if_seq_no=0&if_primary_term=1&refresh=wait_for",
                '{"doc":{"price":12.5,"author":{"name":"Grace"}}}',
            )
        ]
        [outcome] = await es.driver.apply_change(plan)
        assert (outcome.status, outcome.id, outcome.reason) == (APPLIED, "0", "")
        assert outcome.key == RowKey(books, "0", None, {"seq_no": 1, "primary_term": 1})
        after = await self.stored(es, books)
        assert (after["price"], after["author"], after["title"]) == (12.5, {"name": "Grace", "born": 1815}, "T")
        [row] = (await es.page(books)).rows
        assert row["price"] == 12.5, "a search sees the change at once"

    async def test_E28_without_a_guard_the_row_as_it_is_now_is_guarded(self, es: Rig, books: str) -> None:
        plan = await es.plan(Update(RowKey(books, "0"), {"price": 2}))
        assert "if_seq_no=0&if_primary_term=1" in plan.requests[0].path

    async def test_E28_changes_chain_by_the_key_of_the_outcome(self, es: Rig, books: str) -> None:
        [key] = (await es.page(books)).keys
        for price in (2, 3, 4):
            [outcome] = await es.apply(Update(key, {"price": price}))
            assert outcome.status is APPLIED
            assert outcome.key is not None
            key = outcome.key
        assert (await self.stored(es, books))["price"] == 4

    async def test_E28_a_row_that_changed_meanwhile_is_a_conflict(self, es: Rig, books: str) -> None:
        [key] = (await es.page(books)).keys
        await es.apply(Update(key, {"price": 2}))
        [outcome] = await es.apply(Update(key, {"price": 3}))
        assert outcome.status is CONFLICT
        assert outcome.reason == "changed since it was read (seq_no 0 → 1)"
        [outcome] = await es.apply(Delete(key))
        assert outcome.status is CONFLICT
        assert (await self.stored(es, books))["price"] == 2

    async def test_a_row_deleted_meanwhile_is_a_conflict(self, es: Rig, books: str) -> None:
        [key] = (await es.page(books)).keys
        plans = [await es.plan(Update(key, {"price": 2})), await es.plan(Update(key, {"extra": {"x": 1}}))]
        plans.append(await es.plan(Delete(key)))
        await es.call("DELETE", f"/{books}/_doc/0")
        for plan, status in zip(plans, (CONFLICT, CONFLICT, UNKNOWN), strict=True):  # it is gone, as the deletion asked
            [outcome] = await es.driver.apply_change(plan)
            assert (outcome.status, outcome.reason.startswith("the row was deleted since")) == (status, True)
        [outcome] = await es.apply(Update(key, {"price": 2}))
        assert (outcome.status, "holds no document '0'" in outcome.reason) == (REFUSED, True)

    async def test_the_same_values_again_change_nothing_and_say_so(self, es: Rig, books: str) -> None:
        [outcome] = await es.apply(Update(RowKey(books, "0"), {"price": 1.5}))
        assert outcome.status is APPLIED
        assert "nothing changed" in outcome.reason

    async def test_null_is_stored_as_null(self, es: Rig, books: str) -> None:
        await es.apply(Update(RowKey(books, "0"), {"price": None}))
        after = await self.stored(es, books)
        assert after["price"] is None

    async def test_E28_a_literal_dotted_key_is_updated_in_place(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, ['{"author.name":"Ada"}'])
        await es.apply(Update(RowKey(name, "0"), {"author.name": "Grace"}))
        assert json.loads(await es.source(name, "0")) == {"author.name": "Grace"}
        assert (await es.page(name)).rows[0]["author.name"] == "Grace"

    async def test_an_object_is_replaced_whole_and_all_else_keeps_its_bytes(self, es: Rig) -> None:
        """`_update` merges objects, so a removed key would stay; the document is written with a guard instead."""
        name = await es.index(PROPERTIES, ['{"price":1.10,"extra":{"a":1,"b":2},"code":"\\u00fc"}'])
        plan = await es.plan(Update(RowKey(name, "0"), {"extra": '{"b":3}'}))
        assert plan.requests[0].method == "PUT"
        assert plan.requests[0].path == f"/{name}/_doc/0?if_seq_no=0&if_primary_term=1&refresh=wait_for"
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status is APPLIED, outcome.reason
        assert await es.source(name, "0") == '{"price":1.10,"extra":{"b":3},"code":"\\u00fc"}'

    async def test_a_nested_object_is_replaced_by_an_object_whole(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [{"items": {"sku": "s", "qty": 1}}])
        [outcome] = await es.apply(Update(RowKey(name, "0"), {"items": '{"qty": 2}'}))
        assert outcome.status is APPLIED, outcome.reason
        assert await self.stored(es, name) == {"items": {"qty": 2}}

    @pytest.mark.parametrize(
        "digits",
        [
            "1.10", "12345678.5", "10000000.0", "0.0001", "-0", "1e5", "9999999.5", "-0.0", "12", "0.0", "1.0E7", "1e7",
            "1.23456785E7", "1.0E-4", "1.0E+7", "0.001", "0.0010", "1.5E0", "123456789012345678901234567890", "1e400",
            "1E5", "0e0", "[1.50]", '{"a":-0}', "[1.5,true]", "1234567890123.5", "4.35", "100", "1.0E12",
        ],
    )  # fmt: skip
    async def test_digits_that_the_server_will_change_are_said_before(self, es: Rig, digits: str) -> None:
        name = await es.index(PROPERTIES, [f'{{"extra":{{"x":{digits}}},"title":"-0 \\" -0"}}'])
        plan = await es.plan(Update(RowKey(name, "0"), {"code": "x"}))
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status is APPLIED
        kept = f'"x":{digits}}}' in await es.source(name, "0")
        assert [note.code for note in plan.notes] == ([] if kept else ["digits-rewritten"])
        assert kept or f" {digits.strip('[]{}').rpartition(':')[2]} " in plan.notes[0].reason

    @pytest.mark.parametrize(
        ("column", "value", "stored"),
        [
            ("price", "1.10", "1.10"),
            ("price", "1.0", "1.0"),
            ("price", "12345678.5", "12345678.5"),
            ("price", "-0", "-0"),
            ("price", Decimal("0.00010"), "0.00010"),
            ("price", Decimal("-0"), "-0"),
            ("price", Json("-0"), "-0"),
            ("price", Json("1.10"), "1.10"),
            ("price", "[1.50,2]", "[1.50,2]"),
            ("price", "[-0,1.50,2,0,-0.0]", "[-0,1.50,2,0,-0.0]"),
            ("items", '[{"sku":"-0","qty":-0}]', '[{"sku":"-0","qty":-0}]'),
            ("code", Json("1.10"), "1.10"),
            ("code", Json("1e3"), "1e3"),
            ("code", Json("-0"), "-0"),
            ("pages", "7.0", "7.0"),
            ("code", "1.0", '"1.0"'),
            ("address", "2001:DB8::2", '"2001:DB8::2"'),
        ],
    )
    async def test_an_edited_value_keeps_its_spelling_and_so_does_the_row_then(
        self, es: Rig, column: str, value: object, stored: str
    ) -> None:
        """`_update` respells what it is given; a value that it would change is written with the whole document."""
        name = await es.index(PROPERTIES, ['{"title":"a","extra":{"x":12}}'])
        for before in (None, "2.50"):
            if before is not None:
                await es.call("PUT", f"/{name}/_doc/0?refresh=true", f'{{"title":"a","extra":{{"x":{before}}}}}')
            plan = await es.plan(Update(RowKey(name, "0"), {column: value}))
            [outcome] = await es.driver.apply_change(plan)
            assert outcome.status is APPLIED, outcome.reason
            found = await es.source(name, "0")
            assert f'"{column}":{stored}' in found
            kept = before is None or f'"x":{before}' in found
            assert [note.code for note in plan.notes] == ([] if kept else ["digits-rewritten"])

    async def test_a_guard_protects_a_row_that_is_written_whole_for_its_digits(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, ['{"title":"a","price":1}'])
        plan = await es.plan(Update(RowKey(name, "0"), {"price": "1.10"}))
        await es.call("PUT", f"/{name}/_doc/0?refresh=true", {"title": "b"})
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status is CONFLICT
        assert await es.source(name, "0") == '{"title": "b"}'

    async def test_the_digits_of_a_commented_document_are_said_before_too(self, es: Rig) -> None:
        name = await es.index(PROPERTIES)
        assert (await es.raw("PUT", f"/{name}/_doc/0?refresh=true", '{"price":1.10 /* c */}')).status == 201
        plan = await es.plan(Update(RowKey(name, "0"), {"code": "x"}))
        assert [note.code for note in plan.notes] == ["digits-rewritten"]
        plan = await es.plan(Update(RowKey(name, "0"), {"price": "2.10"}))
        assert " 2.10 " in plan.notes[0].reason

    async def test_routing_is_carried(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, settings={"number_of_shards": 3})
        await es.call("PUT", f"/{name}/_doc/r?routing=a%2Fb%26c&refresh=true", {"price": 1})
        [key] = (await es.page(name)).keys
        [outcome] = await es.apply(Update(key, {"price": 2}))
        assert outcome.status is APPLIED, outcome.reason
        assert outcome.key is not None
        assert outcome.key.routing == "a/b&c"
        [outcome] = await es.apply(Delete(outcome.key))
        assert outcome.status is APPLIED, outcome.reason
        assert (await es.page(name)).total == 0

    @pytest.mark.parametrize("key", ["a/b", "a%b", "a b", "ü漢", "?#", "..", "a,b", '"', "ü" * 256])
    async def test_odd_ids_go_there_and_back(self, es: Rig, key: str) -> None:
        name = await es.index(PROPERTIES)
        [outcome] = await es.apply(Insert(name, {"code": "x"}, id=key))
        assert (outcome.status, outcome.id) == (APPLIED, key)
        assert outcome.key is not None
        [outcome] = await es.apply(Update(outcome.key, {"code": "y"}))
        assert (outcome.status, outcome.id) == (APPLIED, key)
        assert outcome.key is not None
        [outcome] = await es.apply(Delete(outcome.key))
        assert (outcome.status, outcome.id, outcome.key) == (APPLIED, key, None)

    async def test_E23_a_cut_cell_is_refused_and_its_text_is_stored(self, es: Rig) -> None:
        """A value that is marked as cut destroys what it was cut from; the same text without the mark is the letter."""
        name = await es.index({"code": {"type": "keyword", "ignore_above": 10}}, [{"code": ["x" * 12_000]}])
        [row] = (await es.page(name)).rows
        shown = row["code"]
        assert isinstance(shown, CutJson)
        [outcome] = await es.apply(Update(row.key, {"code": shown}))
        assert (outcome.status, "only the beginning" in outcome.reason) == (REFUSED, True)
        [outcome] = await es.apply(Update(row.key, {"code": str(shown)}))
        assert outcome.status is APPLIED, outcome.reason
        assert (await self.stored(es, name))["code"] == '["' + "x" * 9_998 + "..."

    # E33 and what is not sent

    async def test_E33_an_edit_of_a_nested_leaf_is_not_sent(self, es: Rig, books: str) -> None:
        """8.x would take it, and index a phantom object."""
        before = len(es.log)
        [outcome] = await es.apply(Update(RowKey(books, "0"), {"items.qty": 5}))
        assert outcome.status is SKIPPED
        assert outcome.reason == "items.qty is a nested leaf; edit 'items'"
        assert not [each for each in es.log[before:] if may_write(each.method, each.path)]
        assert (await self.stored(es, books))["items"] == [{"sku": "s", "qty": 1}]

    @pytest.mark.parametrize(
        ("values", "reasons"),
        [
            ({"_id": "x"}, ["_id: the _id of a row cannot be changed"]),
            ({"al": "x"}, ["al: an alias is not stored"]),
            ({"nope": 1}, ["nope: there is no such column"]),
            ({"pages": "many", "stock": "perhaps"}, ["pages: 'many' is not a number", "stock: 'perhaps' is neither"]),
            ({"pages": "many", "items.qty": 1}, ["pages: ", "items.qty is a nested leaf"]),
            ({"items": "x"}, ["items: a nested array takes a JSON array of objects"]),
            ({}, ["there is nothing to write"]),
        ],
    )
    async def test_what_cannot_be_stored_is_refused_with_all_reasons(
        self, es: Rig, books: str, values: dict[str, Any], reasons: list[str]
    ) -> None:
        [outcome] = await es.apply(Update(RowKey(books, "0"), values))
        assert outcome.status is REFUSED
        assert all(reason in outcome.reason for reason in reasons), outcome.reason

    async def test_what_the_server_refuses_is_a_failure_with_its_reason(self, es: Rig, books: str) -> None:
        """The error's type has changed its name between versions."""
        [outcome] = await es.apply(Update(RowKey(books, "0"), {"when": NOWHERE}))
        assert outcome.status is FAILED
        assert "failed to parse field [when] of type [date]" in outcome.reason

    @pytest.mark.parametrize("way", ["mapping", "setting"])
    async def test_a_document_that_is_not_kept_cannot_be_changed(self, es: Rig, way: str) -> None:
        if way == "setting" and es.version < (8, 17):
            pytest.skip("the setting came with 8.17")
        given: dict[str, Any] = (
            {"mapping": {"_source": {"enabled": False}}}
            if way == "mapping"
            else {"settings": {"index.mapping.source.mode": "disabled"}}
        )
        name = await es.index(PROPERTIES, [{"price": 1}], **given)
        key = RowKey(name, "0")
        [outcome] = await es.apply(Update(key, {"price": 2}))
        assert outcome.status is REFUSED
        assert "_source" in outcome.reason
        plan = await es.driver.plan_change(PlanRequest(changes=[Delete(key)], undo=True))
        assert (plan.planned, "taken back" in plan.refusals[0].reason) == ([], True)
        [outcome] = await es.apply(Delete(key))
        assert outcome.status is APPLIED

    @pytest.mark.parametrize("source", [{"excludes": ["co*", "author"]}, {"includes": ["pages", "pri*"]}])
    async def test_an_edit_would_lose_what_the_stored_document_leaves_out(
        self, es: Rig, source: dict[str, list[str]]
    ) -> None:
        """The server indexes what is stored, and fields outside of `_source` would be found no more."""
        document = {"code": "kept", "price": 1, "author": {"name": "Ada"}}
        name = await es.index(PROPERTIES, [document], mapping={"_source": source})
        assert json.loads(await es.source(name, "0")) == {"price": 1}
        key = RowKey(name, "0")
        for values in ({"price": 2}, {"extra": {"a": 1}}):
            [outcome] = await es.apply(Update(key, values))
            assert outcome.status is REFUSED, outcome
            assert f"_source.{next(iter(source))}: " in outcome.reason
        assert await es.ids(name, Filter("code", "=", "kept")) == ["0"]
        changes: list[Change] = [Delete(key), Insert(name, {"price": 3}, id="0", replace=True)]
        for change in changes:
            plan = await es.driver.plan_change(PlanRequest(changes=[change], undo=True))
            assert (plan.planned, "taken back" in plan.refusals[0].reason) == ([], True)
        done = await es.apply(*changes, Update(key, {"price": 4}), Insert(name, {"code": "new"}, id="n"))
        assert {each.status for each in done} == {APPLIED}, done
        assert await es.ids(name, Filter("code", "=", "new")) == ["n"]

    @pytest.mark.parametrize("way", ["mapping", "setting"])
    async def test_arrays_of_rebuilt_documents_are_not_edited(self, es: Rig, way: str) -> None:
        if es.version < ((8, 17) if way == "setting" else (8, 4)) or (way == "mapping" and es.version >= (9,)):
            pytest.skip("this version has no such way to ask for synthetic documents")
        given: dict[str, Any] = (
            {"mapping": {"_source": {"mode": "synthetic"}}}
            if way == "mapping"
            else {"settings": {"index.mapping.source.mode": "synthetic"}}
        )
        properties = {name: PROPERTIES[name] for name in ("code", "pages")}
        name = await es.index(properties, [{"pages": 1, "code": ["b", "a", "b"]}], **given)
        assert await self.stored(es, name) == {"code": ["a", "b"], "pages": 1}
        key = RowKey(name, "0")
        [outcome] = await es.apply(Update(key, {"code": ["z", "y", "z"]}))
        assert (outcome.status, "synthetic" in outcome.reason) == (REFUSED, True), outcome
        [outcome] = await es.apply(Update(key, {"pages": 2}))
        assert outcome.status is APPLIED, outcome
        assert await self.stored(es, name) == {"code": ["a", "b"], "pages": 2}

    async def test_an_edit_of_a_field_keeps_the_one_whose_name_it_continues(self, es: Rig) -> None:
        """Without subobjects, `cpu` and `cpu.max` are two fields; a server older than 8.19 takes no object for them."""
        if es.version < (8, 3):
            pytest.skip("subobjects came with 8.3")
        flat = {"subobjects": False, "properties": {"cpu": {"type": "long"}, "cpu.max": {"type": "long"}}}
        objects = es.version >= (8, 19)
        third, edited = ({"cpu": {"max": 5}}, {"cpu": {"max": 9}}) if objects else ({}, {"cpu.max": 9})
        documents = [{"cpu": 3}, {"cpu": 3, "cpu.max": 4}, third, {"cpu": [1, 2]}, {"cpu": None}]
        after = [{"cpu": 3, "cpu.max": 9}, {"cpu": 3, "cpu.max": 9}, edited, {"cpu": [1, 2], "cpu.max": 9}]
        after += [{"cpu": None, "cpu.max": 9}]
        root = await es.index(documents=documents, mapping=flat)
        below = await es.index({"m": flat}, [{"m": each} for each in documents[:2]] + [{}, {"m.cpu": 3}, {"m": {}}])
        wanted = {root: after, below: [{"m": each} for each in after[:2]]}
        wanted[below] += [{"m": {"cpu.max": 9}}, {"m.cpu": 3, "m": {"cpu.max": 9}}, {"m": {"cpu.max": 9}}]
        for name, column in ((root, "cpu.max"), (below, "m.cpu.max")):
            keys = [RowKey(name, str(number)) for number in range(5)]
            done = await es.apply(*(Update(key, {column: 9}) for key in keys))
            assert {each.status for each in done} == {APPLIED}, done
            assert [await self.stored(es, name, key.id) for key in keys] == wanted[name]
            assert len(await es.ids(name, Filter(column, "=", 9))) == 5
        found = await es.call("POST", f"/{root}/_search", {"query": {"term": {"cpu": 3}}})
        assert [hit["_id"] for hit in found["hits"]["hits"]] == ["0", "1"]

    # E29

    async def test_E29_a_new_row_with_an_id_never_overwrites(self, es: Rig, books: str) -> None:
        plan = await es.plan(Insert(books, {"code": "new", "author.name": "G", "price": None, "title": ""}, id="n1"))
        assert plan.requests == [
            HttpRequest(
                "PUT",
                f"/{books}/_doc/n1?op_type=create&refresh=wait_for",
                '{"code":"new","author":{"name":"G"},"title":""}',
            )
        ]
        [outcome] = await es.driver.apply_change(plan)
        assert (outcome.status, outcome.id) == (APPLIED, "n1")
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status == UNKNOWN
        assert "a row with this id exists already, and the row holds this change" in outcome.reason
        [outcome] = await es.apply(Insert(books, {"code": "other"}, id="n1"))
        assert (outcome.status, outcome.reason) == (CONFLICT, "a row with this id exists already")

    async def test_a_value_that_does_not_fit_is_told_before_the_id_is_looked_at(self, es: Rig, books: str) -> None:
        [outcome] = await es.apply(Insert(books, {"when": NOWHERE}, id="0"))
        assert outcome.status is FAILED
        assert "failed to parse field [when]" in outcome.reason

    async def test_E29_a_full_write_is_a_plain_put(self, es: Rig, books: str) -> None:
        plan = await es.plan(Insert(books, {"code": "all"}, id="0", replace=True))
        assert plan.requests[0].path == f"/{books}/_doc/0?refresh=wait_for"
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status is APPLIED
        assert await self.stored(es, books) == {"code": "all"}

    async def test_a_new_row_without_an_id_gets_one(self, es: Rig, books: str) -> None:
        [outcome] = await es.apply(Insert(books, {"code": "x"}))
        assert outcome.status is APPLIED
        assert outcome.id
        assert (await self.stored(es, books, outcome.id)) == {"code": "x"}

    async def test_ids_have_1_to_512_bytes(self, es: Rig, books: str) -> None:
        for key in ("", "x" * 513, "ü" * 257):
            [outcome] = await es.apply(Insert(books, {"code": "x"}, id=key))
            assert outcome.status is REFUSED

    async def test_nothing_is_written_to_an_index_that_is_not_there(self, es: Rig) -> None:
        """The server would create it."""
        missing = "t-nosuch"
        for change in (
            Insert(missing, {"code": "x"}),
            Insert(missing, {"code": "x"}, id="1"),
            Update(RowKey(missing, "1"), {"code": "x"}),
            Delete(RowKey(missing, "1")),
        ):
            [outcome] = await es.apply(change)
            assert (outcome.status, "no such index" in outcome.reason) == (REFUSED, True), outcome.reason
        assert (await es.raw("HEAD", f"/{missing}")).status == 404

    async def test_an_index_dropped_after_the_plan_is_not_revived(self, es: Rig, books: str) -> None:
        plans = [await es.plan(Insert(books, {"code": "x"})), await es.plan(Update(RowKey(books, "0"), {"price": 2}))]
        await es.call("DELETE", f"/{books}")
        for plan in plans:
            [outcome] = await es.driver.apply_change(plan)
            assert (outcome.status, outcome.reason.startswith("not sent: ")) == (FAILED, True), outcome.reason
        assert (await es.raw("HEAD", f"/{books}")).status == 404

    async def test_an_index_that_refreshes_on_request_is_not_waited_for(self, es: Rig) -> None:
        """`wait_for` would wait until somebody refreshes."""
        name = await es.index(PROPERTIES, settings={"index.refresh_interval": "-1"})
        plan = await es.plan(Insert(name, {"code": "x"}, id="1"))
        assert plan.requests[0].path == f"/{name}/_doc/1?op_type=create"
        assert [note.code for note in plan.notes] == ["refresh-off"]
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status is APPLIED

    @pytest.mark.parametrize("interval", ["2m", "90s", "1h", "11000ms"])
    async def test_an_index_that_refreshes_rarely_is_not_waited_for(self, es: Rig, interval: str) -> None:
        """`wait_for` waits for the next refresh, and the wait for an answer ends after a minute."""
        name = await es.index(PROPERTIES, [{"code": "a"}], settings={"index.refresh_interval": interval})
        changes: list[Change] = [
            Insert(name, {"code": "x"}, id="1"),
            Update(RowKey(name, "0"), {"code": "b"}),
            Insert(name, {"code": "x"}),
        ]
        plan = await es.plan(*changes)
        assert not [each.path for each in plan.requests if "refresh" in each.path]
        assert [note.code for note in plan.notes] == ["refresh-late"]
        assert interval in plan.notes[0].reason
        began = time.monotonic()
        outcomes = await es.driver.apply_change(plan)
        assert [outcome.status for outcome in outcomes] == [APPLIED] * 3
        assert time.monotonic() - began < 5

    async def test_a_refresh_that_comes_soon_is_waited_for(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, settings={"index.refresh_interval": "1500ms"})
        plan = await es.plan(Insert(name, {"code": "x"}, id="1"))
        assert (plan.requests[0].path.partition("?")[2], plan.notes) == ("op_type=create&refresh=wait_for", [])
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status is APPLIED
        assert (await es.page(name)).total == 1

    async def test_many_requests_wait_for_no_refresh_each(self, es: Rig) -> None:
        """A document of several lines is a request of its own: together they would wait past the deadline."""
        name = await es.index(PROPERTIES, settings={"index.refresh_interval": "1s"})
        rows = [Insert(name, {}, str(at), document='{\n"code":"x"}') for at in range(130)]
        plan = await es.plan(*rows)
        assert not [each.path for each in plan.requests if "refresh" in each.path]
        assert [note.code for note in plan.notes] == ["refresh-late"]
        plan = await es.plan(*rows[:20])
        assert all(each.path.endswith("refresh=wait_for") for each in plan.requests)

    # E30

    async def test_E30_a_delete_is_guarded(self, es: Rig, books: str) -> None:
        plan = await es.plan(Delete(RowKey(books, "0")))
        expected = f"/{books}/_doc/0?if_seq_no=0&if_primary_term=1&refresh=wait_for"
        assert plan.requests == [HttpRequest("DELETE", expected)]
        [outcome] = await es.driver.apply_change(plan)
        assert (outcome.status, outcome.id, outcome.key) == (APPLIED, "0", None)

    # E31

    async def test_E31_a_drop_shows_and_sends_this_exact_request(self, es: Rig, books: str) -> None:
        plan = await es.plan(Drop(books))
        assert [str(request) for request in plan.requests] == [f"DELETE /{books}"]
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status is APPLIED
        assert es.log[-1] == HttpRequest("DELETE", f"/{books}")
        assert (await es.raw("HEAD", f"/{books}")).status == 404

    @pytest.mark.parametrize(
        "name",
        ["", "_all", "*", "a*", "a,b", "-a", "+a", "_a", ".", "..", ".hidden", "a/b", "a?b", "a b", "a\tb", "a\\b",
         '"a"', "<a>", "a|b", "a#b", "a%2Cb", "%3Ca%3E", "Upper", "a:b"],
    )  # fmt: skip
    async def test_E31_a_name_that_could_widen_is_refused(self, es: Rig, name: str) -> None:
        mark = len(es.log)
        [outcome] = await es.apply(Drop(name))
        assert outcome.status is REFUSED
        assert not [each for each in es.log[mark:] if each.method == "DELETE"]

    async def test_E31_an_alias_and_a_missing_index_are_refused(self, es: Rig, books: str) -> None:
        alias = f"{books}-alias"
        await es.call("POST", "/_aliases", {"actions": [{"add": {"index": books, "alias": alias}}]})
        [aliased, missing] = await es.apply(Drop(alias), Drop("t-nosuch"))
        assert (aliased.status, missing.status) == (REFUSED, REFUSED)
        assert f"is an alias or a data stream of {books}" in aliased.reason
        assert (await es.raw("HEAD", f"/{books}")).status == 200

    async def test_a_change_through_an_alias_goes_to_the_concrete_index(self, es: Rig, books: str) -> None:
        alias = f"{books}-alias"
        await es.call("POST", "/_aliases", {"actions": [{"add": {"index": books, "alias": alias}}]})
        plan = await es.plan(Update(RowKey(alias, "0"), {"price": 9}))
        assert plan.requests[0].path.startswith(f"/{books}/_update/0?")


class TestChangesOnFake(ChangeRules, OnFake):
    pass


class TestChangesOnServer(ChangeRules, OnServer):
    async def test_arrays_of_an_index_for_logs_are_not_edited(self, es: Rig) -> None:
        if es.version < (8, 17):
            pytest.skip("the mode came with 8.17")
        if es.version >= (9, 0):
            pytest.skip("the build of 9.5.3 lacks the native zstd library that the mode needs there")
        properties = {"@timestamp": {"type": "date"}, "code": {"type": "keyword"}}
        name = await es.index(properties, [{"@timestamp": "2024-01-01"}], settings={"index.mode": "logsdb"})
        [outcome] = await es.apply(Update(RowKey(name, "0"), {"code": ["z", "y", "z"]}))
        assert (outcome.status, "synthetic" in outcome.reason) == (REFUSED, True), outcome

    async def test_data_streams_change_in_their_backing_index(self, es: Rig) -> None:
        if es.version < (8, 0):
            pytest.skip("this build has no data streams")
        stream = f"t-stream-{time.time_ns()}"  # these builds have no way to remove one
        template = {
            "index_patterns": [stream],
            "data_stream": {},
            "template": {
                "settings": {"number_of_replicas": 0},
                "mappings": {
                    "properties": {"@timestamp": {"type": "date"}, "n": {"type": "long"}, "o": {"enabled": False}}
                },
            },
        }
        await es.call("PUT", f"/_index_template/{stream}", template)
        try:
            created = await es.raw("POST", f"/{stream}/_doc?refresh=true", {"@timestamp": "2024-01-01", "n": 1})
            if created.status != 201:
                pytest.skip(f"this build makes no data streams: {created.text[:100]}")
            [key] = (await es.page(stream)).keys
            assert key.object.startswith(".ds-")
            for values in ({"n": 2}, {"o": {"x": 1}}):
                [outcome] = await es.apply(Update(key, values))
                assert outcome.status is APPLIED, outcome.reason
                assert outcome.key is not None
                key = outcome.key
            [outcome] = await es.apply(Insert(stream, {"@timestamp": "2024-01-02", "n": 3}, id="new"))
            assert outcome.status is APPLIED, outcome.reason
            [outcome] = await es.apply(Drop(stream))
            assert outcome.status is REFUSED
            [outcome] = await es.apply(Delete(key))
            assert outcome.status is APPLIED, outcome.reason
        finally:
            await es.raw("DELETE", f"/_data_stream/{stream}")
            await es.raw("DELETE", f"/_index_template/{stream}")


# a server that goes away


async def test_a_write_is_sent_once_even_if_the_connection_breaks() -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index(PROPERTIES)
        plan = await es.plan(Insert(name, {"code": "x"}))
        es.fake.misbehave("drop", on=f"/{name}/_doc")
        [outcome] = await es.driver.apply_change(plan)
        assert outcome.status == UNKNOWN
        assert outcome.reason
        assert len([each for each in es.fake.requests if each.path == f"/{name}/_doc"]) == 1
