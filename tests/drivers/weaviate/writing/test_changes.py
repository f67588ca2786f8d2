"""Changes: exact requests, one row each, nothing overwritten and nothing made by accident."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import TYPES, OnFake, OnServer, Rig, apply_plan, connected, key
from drivers.weaviate.views import view

from dragoman_api import Delete, Insert, OutcomeStatus, Plan, PlanRequest, RowKey, Update
from dragoman_api.cells import CutJson, Json
from dragoman_api.changes import Change, Drop
from dragoman_api.errors import ConnectionFailedError
from dragoman_weaviate.protocol import Features
from dragoman_weaviate.writing.plan import plan_changes

ROW = key(5)
GUARDED = RowKey("Book", ROW, None, {"lastUpdateTimeUnix": 5})
STORED = {"class": "Book", "id": ROW, "lastUpdateTimeUnix": 5, "properties": {"title": "old"}}


def plan(*wanted: Change, replies: Any = (), by_query: bool = False, **more: Any) -> Plan:
    answers = Answers(reply(view(**more).structure), *replies)
    made = answers.run(plan_changes(PlanRequest(changes=list(wanted)), Features(), by_query=by_query))
    assert not [each for each in answers.asked if each.method not in ("GET", "HEAD")]
    return made


def refused(wanted: Change, **more: Any) -> str:
    made = plan(wanted, **more)
    assert made.planned == []
    [outcome] = made.refusals
    assert outcome.status is OutcomeStatus.REFUSED
    return outcome.reason


def sent(wanted: Change, **more: Any) -> str:
    made = plan(wanted, **more)
    assert made.refusals == []
    return str(made.requests[0])


# W22: new rows --------------------------------------------------------------------------------------------------------


def test_a_new_row_has_an_id_only_if_one_was_typed():
    """W22."""
    assert sent(Insert("Book", {"title": "tea"})) == ('POST /v1/objects\n{"class":"Book","properties":{"title":"tea"}}')
    for typed in (Insert("Book", {}, ROW.upper()), Insert("Book", {"uuid": ROW})):
        assert sent(typed) == f'POST /v1/objects\n{{"class":"Book","id":"{ROW}","properties":{{}}}}'
    assert "not a uuid" in refused(Insert("Book", {}, "17"))


def test_a_row_of_a_tenant_says_whose_it_is():
    """W33: in the body of a write, in the query of a deletion."""
    tenants, guard = {"multiTenancyConfig": {"enabled": True}}, {"lastUpdateTimeUnix": 5}
    body = json.loads(sent(Insert("Book", {}, tenant="ann"), **tenants).partition("\n")[2])
    assert body == {"class": "Book", "properties": {}, "tenant": "ann"}
    assert '"tenant":"ann"' in sent(Update(RowKey("Book", ROW, "ann", guard), {"title": "x"}), **tenants)
    assert sent(Delete(RowKey("Book", ROW, "a&b", guard)), **tenants) == f"DELETE /v1/objects/Book/{ROW}?tenant=a%26b"
    assert "none was named" in refused(Insert("Book", {}), **tenants)
    assert "has no tenants" in refused(Insert("Book", {}, tenant="ann"))


def test_a_whole_document_goes_out_as_it_stands():
    text = '{"pages": 1.0,  "title":"tea"}'
    gone = [reply("", status=404)]  # it may bring back a row that was never deleted
    assert sent(Insert("Book", id=ROW, document=text), replies=gone).endswith(f'"properties":{text}}}')
    assert "no property nope" in refused(Insert("Book", document='{"nope":1}'))
    assert "either" in refused(Insert("Book", {"title": "x"}, document="{}"))
    assert refused(Insert("Book", document="[1"))


def test_replacing_puts_what_is_there_and_posts_what_is_not():
    there, gone = [reply("", status=204)], [reply("", status=404)]
    wanted = Insert("Book", {"title": "tea"}, ROW, replace=True)
    assert sent(wanted, replies=there).startswith(f"PUT /v1/objects/Book/{ROW}\n")
    assert sent(wanted, replies=gone).startswith("POST /v1/objects\n")
    for status in (403, 500):  # nobody knows, and a POST overwrites nothing
        assert sent(wanted, replies=[reply("", status=status)]).startswith("POST /v1/objects\n")


NAMED = {"vectorConfig": {each: {"vectorizer": {"none": {}}} for each in ("front", "back")}}


@pytest.mark.parametrize(
    ("document", "stored", "holds"),
    [
        ({"title": "old"}, {}, True),
        ({"title": "new"}, {}, False),
        ({"properties": {"title": "old"}, "vectors": {"front": [1], "back": [2]}},
         {"vectors": {"front": [1], "back": [2]}}, True),
        ({"properties": {"title": "old"}, "vectors": {"front": [1], "back": [2]}},
         {"vectors": {"front": [1], "back": [3]}}, False),
        ({"properties": {"title": "old"}, "vectors": {"front": [1]}}, {}, False),
    ],
)  # fmt: skip
def test_a_row_that_is_brought_back_and_is_there_is_told_by_all_that_it_holds(
    document: dict[str, Any], stored: dict[str, Any], holds: bool
) -> None:
    made = plan(Insert("Book", id=ROW, document=json.dumps(document)), replies=[reply(STORED | stored)], **NAMED)
    assert [(each.status, each.holds) for each in made.refusals] == [("conflict", holds)]


def test_a_new_row_names_its_tenant_and_its_vectors_once() -> None:
    tenants = {"multiTenancyConfig": {"enabled": True}}
    for more in ({"tenant": "a"}, {"routing": "a"}, {"tenant": "a", "routing": "a"}):
        assert '"tenant":"a"' in sent(Insert("Book", {}, **more), **tenants)
    assert "its routing" in refused(Insert("Book", {}, tenant="a", routing="b"), **tenants)
    for document, vector, more in (({"vector": [1]}, "[2]", {}), ({"vectors": {"front": [1]}}, '{"back":[2]}', NAMED)):
        whole = json.dumps({"properties": {}} | document)
        assert "one of the two" in refused(Insert("Book", {"vector": Json(vector)}, document=whole), **more)
    for member, vectors, more, reason in (
        ("vector", [1], NAMED, "vector: "), ("vectors", {"front": [1]}, {}, "vectors: "),
        ("vector", ["x"], {}, "array of numbers"),
    ):  # fmt: skip
        whole = json.dumps({"properties": {}, member: vectors})
        assert reason in refused(Insert("Book", document=whole), **more)


def test_a_change_of_a_row_that_the_set_makes_reads_nothing() -> None:
    for tenant, more in ((None, {}), ("a", {"multiTenancyConfig": {"enabled": True}})):
        key = RowKey("Book", ROW, tenant)
        new = Insert("Book", {"title": "x"}, ROW, tenant=tenant)
        made = plan(new, Update(key, {"title": "y"}), Delete(key), **more)
        assert [each.method for each in made.requests] == ["POST", "PATCH", "DELETE"]
    another = RowKey("Book", ROW, "b")  # of the same id, in another tenant
    made = plan(new, Update(another, {"title": "y"}), replies=[reply(STORED)], **more)
    assert [each.guard for each in made.planned] == [{}, {"lastUpdateTimeUnix": 5}]


def test_changes_of_several_collections_go_each_to_its_own() -> None:
    changes = [Insert(name, {"title": name}) for name in ("Book", "Film", "Book")]
    seen = [reply(view(name=name).structure) for name in ("Book", "Film")]
    made = Answers(*seen).run(plan_changes(PlanRequest(changes=[*changes]), Features(), by_query=False))
    assert [json.loads(each.body or "")["class"] for each in made.requests] == ["Book", "Film", "Book"]
    stored = [reply(STORED | {"class": name, "id": key(at)}) for at, name in enumerate(("Book", "Film", "Book"))]
    answers = Answers(seen[0], stored[0], seen[1], *stored[1:])
    outcomes = answers.run(apply_plan(msgspec.structs.replace(made, changes=[*changes]), Features()))
    assert [(str(each.status), each.key and each.key.object) for each in outcomes] == [
        ("applied", "Book"), ("applied", "Film"), ("applied", "Book"),
    ]  # fmt: skip


@pytest.mark.parametrize("most", [2**53, -(2**53)])
def test_an_integer_that_the_server_rounds_is_noted_wherever_it_stands(most: int) -> None:
    beyond = most + (1 if most > 0 else -1)
    for value, codes in ((most, []), (beyond, ["integer-rounded"])):
        for column, given in (("pages", value), ("sizes", [1, value]), ("sizes", [value, 1]),
                              ("author", {"name": "A", "born": value})):  # fmt: skip
            assert [note.code for note in plan(Update(GUARDED, {column: given})).notes] == codes, (column, value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('{"front":[1],"side":[2]}', "no vector 'side'"),
        ('{"front":[1],"back":"x"}', "a JSON object of arrays of numbers"),
        ("[1,2]", "a vector without a name"),
        (CutJson('{"front":[1...'), "only the beginning"),
    ],
)
def test_each_of_several_vectors_is_checked(value: str, reason: str) -> None:
    assert reason in refused(Update(GUARDED, {"vector": value}), **NAMED)
    for fits in ('{"front":[1],"back":[[1,2],[3,4]]}', '{"back":[1]}'):
        assert f'"vectors":{fits}' in sent(Update(GUARDED, {"vector": fits}), **NAMED)


def test_every_key_that_the_schema_lacks_is_named() -> None:
    document = json.dumps({"nope": 1, "author": {"bad": 1, "name": "A", "worse": 2}, "no": 0})
    assert "no property nope, author.bad, author.worse, no," in refused(Insert("Book", document=document))


def test_bytes_are_of_a_blob_alone() -> None:
    for column in ("title", "pages", "published", "shelf", "tags", "author", "place"):
        assert "no bytes" in refused(Update(GUARDED, {column: b"12"}))


def test_a_guard_that_is_a_digest_is_compared_when_the_change_is_planned() -> None:
    """An undo must not take back what somebody else wrote, nor what is gone."""
    key = RowKey("Book", ROW, None, {"sha256": "0" * 64})
    changes = [Delete(key), Update(key, {"title": "x"}), Insert("Book", {}, ROW, replace=True, guard=key.guard)]
    for change in changes:
        for stored in (reply("", status=404), reply(STORED)):
            made = plan(change, replies=[stored])
            assert [(str(each.status), each.id) for each in made.refusals] == [("conflict", ROW)]


def test_a_document_that_replaces_a_row_is_not_compared_with_it() -> None:
    wanted = Insert("Book", id=ROW, document="{}", replace=True)
    assert sent(wanted, replies=[reply("", status=204)]).startswith(f"PUT /v1/objects/Book/{ROW}\n")


def test_only_a_change_of_properties_has_modules_compute_a_vector() -> None:
    modules = {"vectorizer": "text2vec-a"}
    for values, codes in (({"title": "x"}, ["revectorised"]), ({"vector": "[1]"}, [])):
        assert [note.code for note in plan(Update(GUARDED, values), **modules).notes] == codes


# W23: edits -----------------------------------------------------------------------------------------------------------


def test_an_edit_patches_the_changed_properties_with_class_and_id_in_the_body():
    """W23: the server takes the collection from the body, whatever the path says."""
    assert sent(Update(GUARDED, {"title": "new", "pages": None})) == (
        f"PATCH /v1/objects/{ROW}?class=Book\n"
        f'{{"class":"Book","id":"{ROW}","properties":{{"title":"new","pages":null}}}}'
    )


@pytest.mark.parametrize(
    ("column", "given", "stored"),
    [
        ("title", "tea", "tea"),
        ("title", "[1]", "[1]"),
        ("title", "12", "12"),
        ("title", Json('"12"'), "12"),
        ("pages", Json("12.0"), 12),
        ("price", Json("1e3"), 1000.0),
        ("available", Json("true"), True),
        ("title", Json('"[\\"a\\"]"'), '["a"]'),
        ("pages", "12", 12),
        ("pages", 12.0, 12),
        ("price", "2", 2.0),
        ("available", "0", False),
        ("published", "2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("shelf", "ABCDEF0011112222333344445555FFFF", "abcdef00-1111-2222-3333-44445555ffff"),
        ("tags", Json('["a","b"]'), ["a", "b"]),
        ("tags", [], []),
        ("sizes", "[1, 2]", [1, 2]),
        ("place", '{"latitude": 1, "longitude": 2.5}', {"latitude": 1.0, "longitude": 2.5}),
        (
            "phone",
            Json('{"input":"020","defaultCountry":"nl","valid":false}'),
            {"input": "020", "defaultCountry": "nl"},
        ),
        ("cover", "aGVsbG8=", "aGVsbG8="),
        ("cover", b"hello", "aGVsbG8="),
        ("author", Json('{"name":"Ada","born":1815}'), {"name": "Ada", "born": 1815}),
        ("author", {"born": None, "name": "Ada"}, {"name": "Ada"}),
        ("author", None, None),
    ],
)
def test_a_value_is_stored_by_its_type(column, given, stored):
    """W23: an int never as 1.0, a phone without what the server computes."""
    body = json.loads(sent(Update(GUARDED, {column: given})).partition("\n")[2])
    assert body["properties"] == {column: stored}
    assert type(body["properties"][column]) is type(stored)


@pytest.mark.parametrize(
    ("column", "given", "reason"),
    [
        ("nope", 1, "no such column"),
        ("uuid", ROW, "cannot be changed"),
        ("vector", "[1, null]", "a JSON array of numbers"),
        ("vector", None, "a JSON array of numbers"),
        ("vector", Json('{"a":[1]}'), "a JSON array of numbers"),
        ("pages", "1.5", "not an integer"),
        ("pages", 2**63, "64 bits"),
        ("published", "2024-05-01", "RFC 3339"),
        ("shelf", "x", "not a uuid"),
        ("tags", "a,b", "JSON"),
        ("tags", '{"a":1}', "JSON array"),
        ("tags", ["a", None], "no null"),
        ("tags", [["a"]], "a text"),
        ("sizes", [1, "x"], "takes a number, not a text"),
        ("sizes", Json('[1, "2"]'), "takes a number, not a text"),
        ("title", 12, "takes a text, not a number"),
        ("title", True, "takes a text, not a boolean"),
        ("title", Json('["a"]'), "takes a text, not an array"),
        ("title", Json("1e3"), "takes a text, not a number"),
        ("title", Json("[1"), "is not JSON"),
        ("tags", [1], "takes a text, not a number"),
        ("pages", Json('"12"'), "takes a number, not a text"),
        ("pages", True, "takes a number, not a boolean"),
        ("price", float("nan"), "not a"),
        ("available", 1, "takes a boolean, not a number"),
        ("available", Json('"true"'), "takes a boolean, not a text"),
        ("published", 17, "takes a text, not a number"),
        ("cover", 1234, "takes a text, not a number"),
        ("author", {"born": "1815"}, "takes a number, not a text"),
        ("author", Json('{"name": 12}'), "takes a text, not a number"),
        ("place", {"latitude": "1", "longitude": 2}, "are numbers"),
        ("phone", {"input": 20, "defaultCountry": "nl"}, "it takes"),
        ("phone", {"input": "020", "defaultCountry": 31}, "computes the rest"),
        ("place", '{"latitude": 1}', "latitude"),
        ("phone", '{"input": "020", "extra": 1}', "computes the rest"),
        ("cover", "no base64!", "base64"),
        ("cover", "", "base64"),
        ("cover", b"", "base64"),
        ("title", b"hello", "no bytes"),
        ("tags", b"hello", "no bytes"),
        ("tags", Json('"[\\"a\\"]"'), "takes a JSON array"),
        ("place", Json('"{}"'), "latitude"),
        ("author", '{"name": "Ada", "age": 3}', "no key age"),
        ("author", "[1]", "JSON object"),
        ("author", '{"born": 1.5}', "not an integer"),
        ("title", CutJson("abc..."), "only the beginning"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(column, given, reason):
    """W23: an unknown property or key would be made by the server."""
    assert reason in refused(Update(GUARDED, {column: given}))


@pytest.mark.parametrize("given", ["[1.50, 0.1000000000000000055]", Json("[1.50, 0.1000000000000000055]"), [1.5, 0.1]])
def test_a_vector_is_sent_as_it_was_entered(given):
    text = given if isinstance(given, str) else "[1.5,0.1]"
    for change in (Update(GUARDED, {"vector": given}), Insert("Book", {"vector": given}, ROW)):
        assert f'"vector":{text}' in sent(change)
    named = {"vectorConfig": {"v": {"vectorizer": {"none": {}}}}}
    whole = f'{{"v":{text}}}' if isinstance(given, str) else {"v": given}
    assert f'"vectors":{{"v":{text}}}' in sent(Update(GUARDED, {"vector": whole}), **named)


def test_every_fault_of_a_row_is_told_at_once():
    reason = refused(Update(GUARDED, {"nope": 1, "pages": "x"}))
    assert "no such column" in reason
    assert "not an integer" in reason


def test_nested_keys_are_checked_at_every_depth():
    inner = [{"name": "deep", "dataType": ["object[]"], "nestedProperties": [{"name": "k", "dataType": ["int"]}]}]
    types = {"o": {"dataType": ["object"], "nestedProperties": inner}}
    assert "no key deep.z" in refused(Update(GUARDED, {"o": {"deep": [{"k": 1}, {"z": 1}]}}), types=types)


def test_a_reference_is_not_edited_in_the_grid():
    """W9: a PATCH would append to it."""
    assert "append" in refused(Update(GUARDED, {"by": "[]"}), types={"by": "Author"})


def test_what_a_write_costs_or_loses_is_said():
    config = {"vectorConfig": {"v": {"vectorizer": {"text2vec-x": {}}}}}
    assert [note.code for note in plan(Update(GUARDED, {"title": "x"}), **config).notes] == ["revectorised"]
    assert [note.code for note in plan(Update(GUARDED, {"pages": 2**53 + 1})).notes] == ["integer-rounded"]
    assert plan(Update(GUARDED, {"pages": 2**53})).notes == []


# W24: deletions -------------------------------------------------------------------------------------------------------


def test_a_deletion_names_the_collection_in_its_path():
    """W24: the parameter of the other route is ignored, and the uuid would go from every collection."""
    assert sent(Delete(GUARDED)) == f"DELETE /v1/objects/Book/{ROW}"


def test_the_route_of_the_letter_is_taken_only_where_it_hits_one_row():
    """W24."""
    schema = reply({"classes": [{"class": "Book"}, {"class": "Other"}]})
    gone, there = reply("", status=404), reply("", status=204)
    letter = sent(Delete(GUARDED), replies=[schema, gone], by_query=True)
    assert letter == f"DELETE /v1/objects/{ROW}?class=Book"
    assert "Other may hold" in refused(Delete(GUARDED), replies=[schema, there], by_query=True)
    shared = reply({"classes": [{"class": "Book"}, {"class": "Mix", "multiTenancyConfig": {"enabled": True}}]})
    assert "has tenants" in refused(Delete(GUARDED), replies=[shared], by_query=True)
    three = reply({"classes": [{"class": "Other"}, {"class": "Book"}, {"class": "Third"}]})
    for status in (200, 204, 403, 500):  # whatever is not a plain no
        may = reply("", status=status)
        assert "Third may hold" in refused(Delete(GUARDED), replies=[three, gone, may], by_query=True)
    shared = reply(
        {"classes": [{"class": "A"}, {"class": "Book"}, {"class": "Mix", "multiTenancyConfig": {"enabled": True}}]}
    )
    assert "'Mix' has tenants" in refused(Delete(GUARDED), replies=[shared], by_query=True)


@pytest.mark.parametrize("change", [Update(RowKey("Book", ""), {"title": "x"}), Delete(RowKey("Book", ""))])
def test_a_change_without_a_uuid_is_skipped(change):
    """W27: nothing is sent, and the reason is told."""
    answers = Answers()
    made = answers.run(plan_changes(PlanRequest(changes=[change]), Features(), by_query=False))
    assert (made.planned, answers.asked) == ([], [])
    assert [(each.status, each.reason) for each in made.refusals] == [("skipped", "the row has no uuid")]


def test_a_drop_takes_the_exact_name_of_one_collection():
    assert sent(Drop("Book")) == "DELETE /v1/schema/Book"
    assert "exact name" in refused(Drop("Now"))
    assert "exact name" in refused(Drop("book"))  # the server takes it for Book


# applying -------------------------------------------------------------------------------------------------------------


def applied(wanted: Change, *replies: Any, **more: Any) -> tuple[Any, list[str]]:
    made = plan(wanted, **more)
    answers = Answers(*replies)
    [outcome] = answers.run(apply_plan(made, Features()))
    return outcome, [f"{each.method} {each.path}" for each in answers.asked]


def test_a_row_is_compared_just_before_it_is_patched():
    """W23: the server compares nothing."""
    row, known = f"/v1/objects/Book/{ROW}", reply(view().structure)
    outcome, asked = applied(Update(GUARDED, {"title": "new"}), known, reply(STORED), reply("", status=204))
    assert (outcome.status, outcome.reason) == ("applied", "")
    assert asked == ["GET /v1/schema/Book", f"GET {row}", f"PATCH /v1/objects/{ROW}?class=Book"]
    newer = STORED | {"lastUpdateTimeUnix": 6}
    outcome, asked = applied(Update(GUARDED, {"title": "new"}), known, reply(newer))
    assert (outcome.status, outcome.id, asked[-1]) == ("conflict", ROW, f"GET {row}")
    assert "5 → 6" in outcome.reason
    outcome, _ = applied(Update(GUARDED, {"title": "new"}), known, reply("", status=404))
    assert (outcome.status, outcome.reason) == ("conflict", "the row was deleted since it was read")


def test_a_deletion_that_would_meanwhile_hit_another_collection_is_not_sent():
    """W24: the row of the other collection was made between the plan and its sending."""
    schema = reply({"classes": [{"class": "Book"}, {"class": "Other"}]})
    gone, there = reply("", status=404), reply("", status=204)
    letter = {"replies": [schema, gone], "by_query": True}
    outcome, asked = applied(Delete(GUARDED), reply(STORED), schema, there, **letter)
    assert (outcome.status, "Other may hold" in outcome.reason) == ("conflict", True)
    assert asked[-1] == f"HEAD /v1/objects/Other/{ROW}"
    outcome, asked = applied(Delete(GUARDED), reply(STORED), schema, gone, reply("", status=204), **letter)
    assert (outcome.status, asked[-1]) == ("applied", f"DELETE /v1/objects/{ROW}?class=Book")


def test_several_changes_of_one_row_are_carried_out_in_their_order():
    made = plan(Update(GUARDED, {"title": "one"}), Update(GUARDED, {"pages": 2}))
    mine = STORED | {"lastUpdateTimeUnix": 9}
    answers = Answers(reply(view().structure), reply(STORED), reply("", status=204), reply(mine), reply("", status=204))
    assert [each.status for each in answers.run(apply_plan(made, Features()))] == ["applied", "applied"]


def test_a_property_that_went_meanwhile_is_not_made_anew():
    """The collection was dropped and made again with fewer properties."""
    less = view({"pages": "int"}).structure
    for change in (Update(GUARDED, {"title": "new"}), Insert("Book", {"title": "new"})):
        outcome, asked = applied(change, reply(less))
        assert (outcome.status, len(asked)) == ("conflict", 1)
        assert "no property title any more" in outcome.reason


def test_a_collection_that_went_meanwhile_is_not_made_anew():
    outcome, asked = applied(Insert("Book", {"title": "new"}), reply("", status=404))
    assert (outcome.status, asked) == ("failed", ["GET /v1/schema/Book"])


def test_a_401_in_the_middle_is_an_outcome():
    """W35: and it is known that nothing was written."""
    known, key_gone = reply(view().structure), reply({"code": 401, "message": "unauthorized: invalid api key"}, 401)
    outcome, _ = applied(Insert("Book", {"title": "new"}), known, key_gone)
    assert outcome.status == "failed"
    assert outcome.reason.startswith("Authentication failed: ")


def test_an_answer_that_makes_no_sense_is_unknown():
    outcome, _ = applied(Insert("Book", {"title": "new"}), reply(view().structure), reply(""))
    assert outcome.status == "unknown"


def test_a_server_that_dies_after_the_first_change_leaves_it_unknown():
    made = plan(Insert("Book", {"title": "one"}), Insert("Book", {"title": "two"}))
    run = apply_plan(made, Features())
    next(run)
    run.send([reply(view().structure)])
    run.send([reply(STORED)])
    with pytest.raises(StopIteration) as end:
        run.throw(ConnectionFailedError("gone", details={"sent": True}))
    assert [each.status for each in end.value.value] == ["applied", "unknown"]
    run = apply_plan(made, Features())
    next(run)
    with pytest.raises(ConnectionFailedError):
        run.throw(ConnectionFailedError("gone"))


def test_a_missing_collection_is_refused_and_not_made():
    made = Answers(reply("", status=404)).run(
        plan_changes(PlanRequest(changes=[Insert("Nope", {})]), Features(), by_query=False)
    )
    assert "no collection" in made.refusals[0].reason


class Rules:
    @pytest.mark.parametrize(
        "given",
        [
            "1.10",
            "0.1",
            "0.12345678901234567891",
            2**53 + 1,
            2**53,
            "12345678901234567890.5",
            Decimal("1.25"),
            1e300,
            "1e-9",
        ],
    )
    async def test_a_number_that_64_bits_cannot_hold_is_said_before(self, wv: Rig, given: Any):
        name = await wv.collection(TYPES)
        plan = await wv.plan(Insert(name, {"price": given}, ROW))
        [made] = await wv.driver.apply_change(plan)
        assert made.status == "applied", made.reason
        stored = (await wv.stored(name, ROW) or {})["properties"]["price"]
        kept = Decimal(repr(stored)) == Decimal(str(given))
        assert [note.code for note in plan.notes] == ([] if kept else ["number-rounded"])
        assert kept or str(given) in plan.notes[0].reason

    async def test_a_row_lives_its_life(self, wv: Rig):
        """W22, W23, W24."""
        name = await wv.collection(TYPES)
        values: dict[str, Any] = {
            "title": "Tea", "pages": 12, "price": 2.5, "available": True, "published": "2024-05-01T10:00:00Z",
            "shelf": ROW, "tags": ["alpha"], "sizes": [2**40], "place": {"latitude": 1.5, "longitude": 2.5},
            "phone": {"input": "0171 1234567", "defaultCountry": "DE"}, "cover": "aGVsbG8=",
            "author": {"name": "Ada", "born": 1815},
        }  # fmt: skip
        [made] = await wv.apply(Insert(name, values, ROW))
        assert (made.status, made.id) == ("applied", ROW), made.reason
        assert made.key is not None
        [changed] = await wv.apply(Update(made.key, {"pages": 13, "tags": None, "author": {"name": "Grace"}}))
        assert changed.status == "applied", changed.reason
        stored = (await wv.stored(name, ROW) or {})["properties"]
        assert (stored["title"], stored["pages"], stored["author"]) == ("Tea", 13, {"name": "Grace"})
        assert "tags" not in stored
        [stale] = await wv.apply(Delete(made.key))
        assert (stale.status, await wv.stored(name, ROW) is not None) == ("conflict", True)
        [row] = (await wv.page(name)).rows
        [gone] = await wv.apply(Delete(row.key))
        assert (gone.status, await wv.stored(name, ROW)) == ("applied", None)
        [again] = await wv.apply(Delete(row.key))
        assert (again.status, again.reason) == ("conflict", "the row was deleted since it was read")

    async def test_a_vector_of_another_length_is_rejected_and_nothing_is_stored(self, wv: Rig):
        """The server answers 500, as if it did not know, but validates before it stores."""
        name = await wv.collection(
            {"t": "text"}, [{"t": "old", "id": ROW, "vector": [1, 2, 3]}], vectorIndexType="hnsw"
        )
        [row] = (await wv.page(name)).rows
        longer = Update(row.key, {"t": "new", "vector": "[1, 2, 3, 4]"})
        replaced = Insert(name, {"t": "new", "vector": "[1]"}, ROW, replace=True)
        outcomes = await wv.apply(Insert(name, {"t": "new", "vector": "[1, 2]"}, key(9)), longer, replaced)
        reasons = [
            f"Weaviate error: the vector has the length {length}, and those of the collection have the length 3"
            for length in (2, 4, 1)
        ]
        assert [(outcome.status, outcome.reason) for outcome in outcomes] == [("failed", reason) for reason in reasons]
        assert await wv.stored(name, key(9)) is None
        stored = await wv.call("GET", f"/v1/objects/{name}/{ROW}?include=vector")
        assert (stored["properties"], stored["vector"]) == ({"t": "old"}, [1, 2, 3])

    async def test_an_insert_never_overwrites(self, wv: Rig):
        """W22: the batch endpoint would, without a word."""
        name = await wv.collection({"t": "text"}, [{"t": "old", "id": ROW}])
        [outcome] = await wv.apply(Insert(name, {"t": "new"}, ROW))
        assert (outcome.status, outcome.reason) == ("conflict", "a row with this uuid exists already")
        [outcome] = await wv.apply(Insert(name, {"t": "new"}, ROW, replace=True))
        assert outcome.status == "applied", outcome.reason
        assert ((await wv.stored(name, ROW)) or {})["properties"] == {"t": "new"}

    async def test_a_uuid_in_two_collections_is_deleted_in_one(self, wv: Rig):
        """W24."""
        first = await wv.collection({"t": "text"}, [{"t": "one", "id": ROW}])
        second = await wv.collection({"t": "text"}, [{"t": "two", "id": ROW}])
        [outcome] = await wv.apply(Delete(RowKey(second, ROW)))
        assert outcome.status == "applied"
        assert [await wv.stored(each, ROW) is None for each in (first, second)] == [False, True]

    async def test_the_route_of_the_letter_refuses_a_uuid_in_two_collections(self, wv: Rig):
        """W24: it would delete both."""
        first = await wv.collection({"t": "text"}, [{"t": "one", "id": ROW}])
        second = await wv.collection({"t": "text"}, [{"t": "two", "id": ROW}, {"t": "only"}])
        given = msgspec.structs.replace(wv.driver._profile, options={"delete_route": "query"})
        async with connected(given) as letter:
            outcomes = await letter.apply(Delete(RowKey(second, ROW)), Delete(RowKey(second, key(1))))
        assert [each.status for each in outcomes] == ["refused", "applied"], outcomes
        assert first in outcomes[0].reason
        assert await wv.stored(first, ROW) is not None

    async def test_nothing_is_added_to_a_schema_by_accident(self, wv: Rig):
        """W23: auto-schema is on, and would make properties and nested keys."""
        name = await wv.collection(TYPES)
        before = await wv.call("GET", f"/v1/schema/{name}")
        outcomes = await wv.apply(
            Insert(name, {"nope": 1}),
            Insert(name, {"author": {"name": "Ada", "age": 3}}),
            Insert(name, document='{"author":{"age":3}}'),
            Insert(f"{name}Typo", {"title": "x"}),
        )
        assert [each.status for each in outcomes] == ["refused"] * 4
        assert await wv.call("GET", f"/v1/schema/{name}") == before
        assert (await wv.raw("GET", f"/v1/schema/{name}Typo")).status == 404

    async def test_a_collection_is_dropped_by_its_exact_name(self, wv: Rig):
        name = await wv.collection({"t": "text"})
        assert [each.status for each in await wv.apply(Drop(name[:-1]), Drop(name))] == ["refused", "applied"]
        assert (await wv.raw("GET", f"/v1/schema/{name}")).status == 404


class TestChangesOnFake(OnFake, Rules):
    pass


class TestChangesOnServer(OnServer, Rules):
    @pytest.mark.parametrize("kind", ["hnsw", "flat"])
    async def test_a_named_vector_of_another_length_is_rejected_by_its_name(self, wv: Rig, kind: str):
        vectors = {name: {"vectorizer": {"none": {}}, "vectorIndexType": kind} for name in ("front", "back")}
        name = await wv.collection({"t": "text"}, vectorConfig=vectors)
        [made] = await wv.apply(Insert(name, {"vector": '{"front": [1, 2, 3], "back": [1]}'}, ROW))
        assert made.status == "applied", made.reason
        outcomes = await wv.apply(
            Insert(name, {"vector": '{"front": [1, 2, 3], "back": [1, 2]}'}, key(9)),
            Update(made.key, {"t": "new", "vector": '{"front": [1, 2, 3], "back": [1, 2]}'}),
        )
        reason = "Weaviate error: the vector 'back' has the length 2, and those of the collection have the length 1"
        assert [(outcome.status, outcome.reason) for outcome in outcomes] == [("failed", reason)] * 2
        assert await wv.stored(name, key(9)) is None
        assert (await wv.stored(name, ROW) or {})["properties"] == {}
