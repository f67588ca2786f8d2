"""Changes of which one part is good and another is not: nothing of a row is sent in part, and nothing good is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import OnFake, OnServer, Rig, apply_plan, key
from drivers.weaviate.views import view
from msgspec.structs import replace

from dragoman_api import Delete, Insert, Note, OutcomeStatus, Plan, PlanRequest, RowKey, Update
from dragoman_api.cells import CutJson, Json
from dragoman_api.changes import Change, Drop
from dragoman_weaviate.protocol import Features
from dragoman_weaviate.writing.plan import plan_changes

ROW = RowKey("Book", key(5), None, {"lastUpdateTimeUnix": 5})
STORED = {"class": "Book", "id": ROW.id, "lastUpdateTimeUnix": 5, "properties": {"title": "old"}}
NESTED = {"dataType": ["object"], "nestedProperties": [
    {"name": "n", "dataType": ["int[]"]}, {"name": "t", "dataType": ["text"]}]}  # fmt: skip


def planned(*wanted: Change, replies: Any = (), **more: Any) -> Plan:
    script = Answers(reply(view(**more).structure), *replies)
    return script.run(plan_changes(PlanRequest(changes=list(wanted)), Features(), by_query=False))


def body(plan: Plan) -> dict[str, Any]:
    return dict(json.loads(plan.requests[0].body or ""))


def applied(wanted: Change, *replies: Any, planning: Any = ()) -> Any:
    made = planned(wanted, replies=planning)
    [outcome] = made.refusals or Answers(*replies).run(apply_plan(made, Features()))
    return outcome


def test_one_bad_column_keeps_the_good_one_from_being_sent():
    """W23: and only the bad one is named."""
    for values in ({"title": "tea", "pages": "x"}, {"pages": "x", "title": "tea"}):
        made = planned(Update(ROW, values))
        assert made.planned == []
        [outcome] = made.refusals
        assert outcome.reason.startswith("pages: ")
        assert "title" not in outcome.reason


def test_one_cut_cell_of_several_refuses_the_row():
    """W23: the whole value is written or none."""
    for values in ({"title": CutJson("abc"), "code": "new"}, {"code": "new", "title": CutJson("abc")}):
        made = planned(Update(ROW, values))
        assert made.planned == []
        assert made.refusals[0].reason.startswith("title: ")
        assert "code" not in made.refusals[0].reason


def test_each_change_of_several_is_judged_by_itself():
    """Those that can be carried out are planned under their own numbers; W27: the others say why, under theirs."""
    other = replace(ROW, id=key(6))
    made = planned(
        Update(ROW, {"title": "tea"}), Update(other, {"pages": "x"}), Delete(RowKey("Book", "")),
        Insert("Book", {"title": "new"}), Insert("Book", {"nope": 1}, key(9)), Drop("Now"), Delete(other),
        replies=[reply(view().structure)],
    )  # fmt: skip
    assert [each.changes for each in made.planned] == [[0], [3], [6]]
    assert [each.method for each in made.requests] == ["PATCH", "POST", "DELETE"]
    told = [(each.change, each.status, each.id) for each in made.refusals]
    assert told == [
        (1, OutcomeStatus.REFUSED, key(6)),
        (2, OutcomeStatus.SKIPPED, None),
        (4, OutcomeStatus.REFUSED, key(9)),
        (5, OutcomeStatus.REFUSED, None),
    ]


def test_an_empty_edit_is_refused():
    assert planned(Update(ROW, {})).refusals[0].reason == "there is nothing to write"


def test_an_id_that_was_left_empty_is_made_by_the_server():
    """W22."""
    for change in (Insert("Book", {"uuid": "", "title": "x"}), Insert("Book", {"uuid": None, "title": "x"})):
        assert body(planned(change)) == {"class": "Book", "properties": {"title": "x"}}


def test_a_null_of_a_nested_object_is_left_out_and_one_of_a_property_is_sent():
    made = planned(Update(ROW, {"o": {"t": None, "n": [1]}, "t": None}), types={"o": NESTED, "t": "text"})
    assert body(made)["properties"] == {"o": {"n": [1]}, "t": None}


@pytest.mark.parametrize(
    ("column", "value", "names"),
    [
        ("i", -(2**53) - 1, ["i"]),
        ("i", -(2**53), []),
        ("s", [1, 2**53 + 1], ["s"]),
        ("s", [1, 2], []),
        ("o", {"n": [2**60]}, ["o"]),
        ("o", {"n": [1], "t": "2305843009213693952"}, []),
    ],
)
def test_an_integer_that_the_server_rounds_is_said_at_every_depth(column: str, value: object, names: list[str]) -> None:
    made = planned(Update(ROW, {column: value}), types={"i": "int", "s": "int[]", "o": NESTED})
    assert made.refusals == []
    assert [note.column for note in made.notes if note.code == "integer-rounded"] == names


DOCUMENTS = {
    "properties": '{"%s":%s}',
    "a whole row": '{"properties":{"%s":%s},"vector":[1]}',
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize(
    ("column", "value", "codes"),
    [
        ("i", "9007199254740993", ["integer-rounded"]),
        ("i", "-9007199254740993", ["integer-rounded"]),
        ("i", "9007199254740992", []),
        ("s", "[1,9007199254740993]", ["integer-rounded"]),
        ("o", '{"n":[9007199254740993]}', ["integer-rounded"]),
        ("f", "0.1234567890123456789", ["number-rounded"]),
        ("f", "0.12345678901234568", []),
        ("f", "1.000000000000000000", []),
        ("t", '"9007199254740993"', []),
    ],
)
def test_a_number_of_a_document_that_the_server_rounds_is_said_as_one_of_a_value_is(document, column, value, codes):
    types = {"i": "int", "s": "int[]", "o": NESTED, "f": "number", "t": "text"}
    for new_row in (Insert("Book", document=document % (column, value)), Insert("Book", {column: Json(value)})):
        plan = planned(new_row, types=types)
        assert plan.refusals == []
        assert [note.code for note in plan.notes] == codes, new_row


@pytest.mark.parametrize(
    "new_row",
    [
        Insert("Book", document='{"t":"a","t":"b"}'),
        Insert("Book", document='{"o":{"t":"a","t":"b"}}'),
        Insert("Book", document='{"properties":{"t":"a","t":"b"},"vector":[1]}'),
        Insert("Book", document='{"properties":{},"properties":{"t":"b"}}'),
        Insert("Book", {"o": Json('{"t":"a","t":"b"}')}),
    ],
)
def test_a_member_that_occurs_twice_is_refused_because_the_server_keeps_only_the_last(new_row):
    plan = planned(new_row, types={"t": "text", "o": NESTED})
    assert plan.planned == []
    assert "occurs twice" in plan.refusals[0].reason


def test_a_vector_whose_name_occurs_twice_is_refused():
    plan = planned(
        Insert("Book", {"vector": Json('{"v":[1],"v":[2]}')}), vectorConfig={"v": {"vectorizer": {"none": {}}}}
    )
    assert "'v' occurs twice" in plan.refusals[0].reason


def test_a_note_is_made_once_for_each_column_and_collection():
    config = {"vectorConfig": {"v": {"vectorizer": {"text2vec-x": {}}}, "w": {"vectorizer": {"none": {}}}}}
    made = planned(
        Update(ROW, {"pages": 2**60}), Update(replace(ROW, id=key(6)), {"pages": 2**61, "sizes": [2**60]}), **config
    )
    assert [each.code for each in made.notes] == ["integer-rounded", "revectorised", "integer-rounded"]
    assert all(isinstance(each, Note) for each in made.notes)
    assert "text2vec-x:" in made.notes[1].reason
    assert planned(Update(ROW, {"title": "x"})).notes == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("place", {"latitude": 1, "longitude": 2, "height": 3}),
        ("place", {"longitude": 2}),
        ("place", "[1, 2]"),
        ("place", {"latitude": "x", "longitude": 2}),
        ("phone", {"defaultCountry": "nl"}),
        ("phone", "[]"),
        ("author", '"Ada"'),
        ("author", {"name": ["Ada"]}),
        ("title", {"a": 1}),
        ("title", ["a"]),
        ("cover", "YQ"),
        ("tags", "{"),
        ("tags", 5),
    ],
)
def test_a_value_of_another_shape_is_refused(column: str, value: object) -> None:
    made = planned(Update(ROW, {column: value}))
    assert made.planned == []
    assert made.refusals[0].reason.startswith(f"{column}: ")


def test_a_phone_keeps_the_country_only_where_one_is_given():
    def phone(value: object) -> object:
        return body(planned(Update(ROW, {"phone": value})))["properties"]["phone"]

    assert phone({"input": "+49 30 1"}) == {"input": "+49 30 1"}
    assert phone({"input": "+49 30 1", "defaultCountry": ""}) == {"input": "+49 30 1"}
    computed = ("internationalFormatted", "nationalFormatted", "national", "valid", "countryCode")
    for name in computed:
        assert phone(Json(json.dumps({"input": "1", "defaultCountry": "de", name: 1}))) == {
            "input": "1", "defaultCountry": "de",
        }  # fmt: skip


@pytest.mark.parametrize("text", ['{"title": "x", "nope": 1}', '{"author": {"name": "x", "age": 1}}'])
def test_one_unknown_key_of_a_whole_document_refuses_it(text: str) -> None:
    """W22: the server would make the property."""
    made = planned(Insert("Book", document=text))
    assert made.planned == []
    assert made.refusals[0].reason.startswith("the schema has no property ")
    assert "title" not in made.refusals[0].reason
    assert planned(Insert("Book", document='{"author": {"name": "x"}, "title": "y"}')).refusals == []


def test_a_document_that_is_no_object_or_no_json_is_refused():
    for text in ("[]", '"x"', "{", ""):
        made = planned(Insert("Book", document=text))
        assert (made.planned, len(made.refusals)) == ([], 1), text


def test_a_row_of_a_tenant_is_replaced_where_it_lies():
    """W33: the look whether it is there names the tenant too."""
    script = Answers(reply(view(multiTenancyConfig={"enabled": True}).structure), reply("", status=204))
    change = Insert("Book", {"title": "x"}, key(5), replace=True, tenant="ann")
    made = script.run(plan_changes(PlanRequest(changes=[change]), Features(), by_query=False))
    assert [str(each) for each in script.asked[1:]] == [f"HEAD /v1/objects/Book/{key(5)}?tenant=ann"]
    assert (made.requests[0].method, body(made)["tenant"]) == ("PUT", "ann")


def test_a_row_of_a_tenant_without_a_guard_is_compared_where_it_lies():
    """W33."""
    row = RowKey("Book", key(5), "ann")
    for change in (Update(row, {"title": "x"}), Delete(row)):
        script = Answers(reply(view(multiTenancyConfig={"enabled": True}).structure), reply(STORED))
        made = script.run(plan_changes(PlanRequest(changes=[change]), Features(), by_query=False))
        assert [planned.guard for planned in made.planned] == [{"lastUpdateTimeUnix": 5}]
        [read] = script.asked[1:]
        assert "tenant=ann" in read.path


def test_a_row_that_is_replaced_without_a_key_is_new():
    script = Answers(reply(view().structure))
    change = Insert("Book", {"title": "x"}, replace=True)
    made = script.run(plan_changes(PlanRequest(changes=[change]), Features(), by_query=False))
    assert made.requests[0].method == "POST"


# applying -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "expected"), [(200, "applied"), (300, "failed"), (304, "failed"), (199, "unknown"), (500, "unknown")]
)
def test_a_new_row_is_applied_by_a_success_only(status: int, expected: str) -> None:
    outcome = applied(Insert("Book", {"title": "x"}, key(5)), reply(view().structure), reply(STORED, status=status))
    assert (outcome.status, outcome.id) == (expected, key(5))
    assert (outcome.key is not None) == (expected == "applied")


def test_the_id_that_the_server_made_is_told_with_the_key_of_the_row():
    made = STORED | {"id": key(7), "lastUpdateTimeUnix": 12}
    outcome = applied(Insert("Book", {"title": "x"}), reply(view().structure), reply(made))
    assert (outcome.id, outcome.key) == (key(7), RowKey("Book", key(7), None, {"lastUpdateTimeUnix": 12}))


def test_what_a_row_conflicts_with_is_told_apart():
    """W23, W24: a missing row, a row that exists already, and every other refusal."""
    look, there = reply(view().structure), reply(STORED)
    exists = reply({"error": [{"message": "id '5' already exists"}]}, status=422)
    other = reply({"error": [{"message": "invalid text property"}]}, status=422)
    page = reply("<html>nothing here</html>", status=404)
    new, edit = Insert("Book", {"title": "x"}, key(5)), Update(ROW, {"title": "x"})
    gone = reply("", status=404)
    assert applied(new, look, exists, gone).status == "conflict"
    for stored, holds in (('{"title":"x"}', True), ('{"title":"y"}', False), ('{"title":"x","n":1}', False)):
        item = reply(f'{{"class":"Book","id":"{key(5)}","properties":{stored}}}')
        assert applied(new, look, exists, item).holds is holds
    assert applied(new, look, other).status == "failed"
    assert applied(edit, look, there, reply("", status=404)).status == "conflict"
    assert applied(edit, look, there, page).status == "failed"
    exists = reply({"error": [{"message": "already exists"}]}, status=500)
    assert applied(new, look, exists).status == "unknown"


def test_an_answer_of_another_success_says_what_it_is():
    look, there = reply(view().structure), reply(STORED)
    edit = Update(ROW, {"title": "x"})
    for text, status, said in (
        ("", 202, "HTTP 202 and says nothing"), ("wait", 204, "HTTP 204 and says wait"),
        ("", 200, "HTTP 200 and says nothing"),
    ):  # fmt: skip
        outcome = applied(edit, look, there, reply(text, status=status))
        assert (outcome.status, outcome.reason) == ("unknown", f"the answer is {said}")
    dropped = applied(Drop("Book"), reply("", status=204))
    assert (dropped.status, dropped.id) == ("unknown", None)
    assert applied(Drop("Book"), reply("", status=200)).status == "applied"


def test_a_change_without_a_guard_needs_the_row_as_it_was_planned():
    """W23, W24: planning reads the row, and it is read again just before the change is sent."""
    known, then, sent = reply(view().structure), [reply(STORED)], reply("", status=204)
    for change, looks in (
        (Update(replace(ROW, guard={}), {"title": "x"}), [known]),
        (Delete(replace(ROW, guard={})), []),
    ):
        assert applied(change, *looks, reply(STORED), sent, planning=then).status == "applied"
        newer = reply(STORED | {"lastUpdateTimeUnix": 6})
        for later in (newer, reply("", status=404)):
            assert applied(change, *looks, later, planning=then).status == "conflict"
        assert applied(change, planning=[reply("", status=404)]).status == "conflict"


def test_a_time_is_compared_as_it_reads():
    """A guard that came from a file may be a text."""
    texts = RowKey("Book", key(5), None, {"lastUpdateTimeUnix": "5"})
    known = reply(view().structure)
    assert applied(Update(texts, {"title": "x"}), known, reply(STORED), reply("", status=204)).status == "applied"


def test_an_insert_with_a_guard_replaces_only_what_it_read():
    guarded = Insert("Book", {"title": "x"}, key(5), guard={"lastUpdateTimeUnix": 5})
    known = reply(view().structure)
    assert applied(guarded, known, reply(STORED), reply(STORED)).status == "applied"
    assert applied(guarded, known, reply(STORED | {"lastUpdateTimeUnix": 6})).status == "conflict"


class Rules:
    async def test_a_row_with_one_bad_column_stays_as_it_was(self, wv: Rig):
        """W23: and the change beside it is carried out."""
        name = await wv.collection({"t": "text", "i": "int"}, [{"t": "a", "i": 1}, {"t": "b", "i": 2}])
        first, second = sorted((await wv.page(name)).rows, key=lambda row: str(row["t"]))
        bad, good = await wv.apply(Update(first.key, {"t": "new", "i": "x"}), Update(second.key, {"t": "new", "i": 3}))
        assert (bad.status, good.status) == ("refused", "applied")
        stored = [((await wv.stored(name, each.key.id)) or {})["properties"] for each in (first, second)]
        assert stored == [{"t": "a", "i": 1}, {"t": "new", "i": 3}]

    async def test_a_row_with_one_cut_cell_stays_as_it_was(self, wv: Rig):
        name = await wv.collection({"t": "text", "u": "text"}, [{"t": "a", "u": "b"}])
        [row] = (await wv.page(name)).rows
        [outcome] = await wv.apply(Update(row.key, {"u": "new", "t": CutJson("a")}))
        assert outcome.status == "refused"
        assert ((await wv.stored(name, row.key.id)) or {})["properties"] == {"t": "a", "u": "b"}


class TestMixedChangesOnFake(OnFake, Rules):
    pass


class TestMixedChangesOnServer(OnServer, Rules):
    pass
