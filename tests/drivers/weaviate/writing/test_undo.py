"""Undo: each row comes back as it was, with its vectors; a row that somebody else has changed stays."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import TYPES, OnFake, OnServer, Rig, key
from drivers.weaviate.views import view
from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import Delete, Insert, OutcomeStatus, Plan, PlanRequest, RowKey, Update
from dragoman_api.cells import Json
from dragoman_weaviate.protocol import Features
from dragoman_weaviate.writing import before_images, plan
from dragoman_weaviate.writing.plan import plan_changes

if TYPE_CHECKING:
    from dragoman_api.changes import Change

ROW = key(5)
FULL: dict[str, Any] = {
    "title": "Tea, é 😀", "code": "C-1", "pages": 2**40, "price": 1.1, "available": False,
    "published": "2024-05-01T10:00:00.12+02:00", "shelf": ROW, "tags": ["b", "a"], "sizes": [2**35, 1],
    "place": {"latitude": 52.366667, "longitude": 4.9}, "phone": {"input": "0171 1234567", "defaultCountry": "de"},
    "cover": "aGVsbG8=", "author": {"name": "Ada", "born": 1815},
}  # fmt: skip
VECTOR = [0.1, -2.0, 1e-7]
TENANTS = {"multiTenancyConfig": {"enabled": True}}


async def planned(wv: Rig, *changes: Change) -> Plan:
    made = await wv.driver.plan_change(PlanRequest(changes=list(changes), undo=True))
    assert [each.reason for each in made.refusals] == []
    return made


async def whole(wv: Rig, name: str) -> dict[str, Any]:
    """Return all that is stored, but for times."""
    found = (await wv.call("GET", f"/v1/objects?class={name}&include=vector"))["objects"]
    return {each["id"]: {part: each.get(part) for part in ("properties", "vector", "vectors")} for each in found}


def bits(vector: list[float]) -> bytes:
    """Return a vector as the server stores it, in floats of 32 bits."""
    return struct.pack(f"<{len(vector)}f", *vector)


class Rules:
    @pytest.mark.parametrize("vectors", [{"vector": VECTOR}, {}])
    async def test_every_change_is_taken_back_and_can_be_made_again(self, wv: Rig, vectors: dict[str, Any]):
        rows = [{**FULL, "title": f"{at}", **vectors} for at in range(4)]
        name = await wv.collection(TYPES, rows)
        first, second, third, fourth = (RowKey(name, key(at)) for at in range(4))
        before = await whole(wv, name)
        values = {"title": "new", "pages": None, "author": Json('{"name":"Grace"}'), "price": 2}
        plan = await planned(
            wv, Update(first, values), Delete(second), Insert(name, {"title": "new"}, third.id, replace=True),
            Insert(name, {**FULL, "phone": None, "author": None, "place": Json('{"latitude":1.1,"longitude":2}')}),
            Update(fourth, {"published": "2024-01-01T00:00:00.100Z"}),
        )  # fmt: skip
        assert {each.status for each in await wv.driver.apply_change(plan)} == {"applied"}
        after = await whole(wv, name)
        assert len(after) == len(before) == 4
        assert after != before
        again = await planned(wv, *plan.undo)
        assert {each.status for each in await wv.driver.apply_change(again)} == {"applied"}
        assert await whole(wv, name) == before
        assert {each.status for each in await wv.apply(*again.undo)} == {"applied"}
        assert await whole(wv, name) == after

    async def test_a_row_whose_integers_the_server_rounds_is_taken_back(self, wv: Rig):
        name = await wv.collection({"pages": "int", "sizes": "int[]"}, [{"pages": 1, "sizes": [1]}])
        before = await whole(wv, name)
        large = {"pages": 2**62 + 1, "sizes": [2**53 + 1, 1 - 2**62]}
        plan = await planned(wv, Insert(name, large, key(1)), Update(RowKey(name, key(0)), large))
        assert {each.status for each in await wv.driver.apply_change(plan)} == {"applied"}
        assert {each["properties"]["sizes"][0] for each in (await whole(wv, name)).values()} == {2**53}
        assert {each.status for each in await wv.apply(*plan.undo)} == {"applied"}
        assert await whole(wv, name) == before

    @pytest.mark.parametrize("old", [{"vector": VECTOR}, {}])
    async def test_a_written_vector_is_stored_bit_by_bit_and_taken_back(self, wv: Rig, old: dict[str, Any]):
        name = await wv.collection({"t": "text"}, [{"t": "x", **old}])
        before = await whole(wv, name)
        digits = "[0.1,-2.5e-10,16777217]"
        plan = await planned(wv, Update(RowKey(name, key(0)), {"vector": Json(digits)}))
        assert f'"vector":{digits}' in (plan.requests[0].body or "")
        assert {each.status for each in await wv.driver.apply_change(plan)} == {"applied"}
        [after] = (await whole(wv, name)).values()
        assert (after["properties"], bits(after["vector"])) == ({"t": "x"}, bits([0.1, -2.5e-10, 16777217]))
        assert {each.status for each in await wv.apply(*plan.undo)} == {"applied"}
        assert await whole(wv, name) == before

    async def test_a_named_vector_is_written_and_the_others_stay(self, wv: Rig):
        named = {each: {"vectorizer": {"none": {}}, "vectorIndexType": "flat"} for each in ("small", "large")}
        row = {"properties": {"t": "x"}, "vectors": {"small": [0.1, 2.0], "large": VECTOR}}
        name = await wv.collection({"t": "text"}, [row], vectorConfig=named)
        before = await whole(wv, name)
        plan = await planned(wv, Update(RowKey(name, key(0)), {"vector": Json('{"small":[7,8]}'), "t": "y"}))
        assert {each.status for each in await wv.driver.apply_change(plan)} == {"applied"}
        [after] = (await whole(wv, name)).values()
        assert (after["properties"], after["vectors"]) == ({"t": "y"}, {"small": [7, 8], "large": VECTOR})
        assert {each.status for each in await wv.apply(*plan.undo)} == {"applied"}
        assert await whole(wv, name) == before

    async def test_an_undo_finds_no_row_before_its_plan_is_applied(self, wv: Rig):
        name = await wv.collection(TYPES, [{"title": str(at), "vector": VECTOR} for at in range(3)])
        before = await whole(wv, name)
        changes = [
            Update(RowKey(name, key(0)), {"title": "x"}),
            Delete(RowKey(name, key(1))),
            Insert(name, {"title": "x"}),
        ]
        plan = await planned(wv, *changes, Insert(name, {"title": "x"}, key(2), replace=True))
        outcomes = await wv.apply(*plan.undo)
        assert [each.status for each in outcomes] == ["conflict"] * 4
        assert await whole(wv, name) == before

    @pytest.mark.parametrize("theirs", [{"properties": {"title": "theirs"}}, {"vector": [1.0, 2.0, 3.0]}])
    async def test_what_another_writer_made_of_the_row_stays(self, wv: Rig, theirs: dict[str, Any]):
        name = await wv.collection(TYPES, [{"title": "old", "vector": VECTOR}])
        plan = await planned(wv, Update(RowKey(name, key(0)), {"title": "mine"}))
        assert [each.status for each in await wv.driver.apply_change(plan)] == ["applied"]
        undoing = await wv.plan(*plan.undo)  # planned while the row still fits
        assert len(undoing.planned) == 1
        reply = await wv.raw("PATCH", f"/v1/objects/{name}/{key(0)}", {"class": name, "id": key(0), **theirs})
        assert reply.status == 204, reply.text
        stored = await whole(wv, name)
        [outcome] = await wv.driver.apply_change(undoing)
        assert (outcome.status, outcome.reason) == ("conflict", "the row was changed after that change")
        assert [each.status for each in await wv.apply(*plan.undo)] == ["conflict"]
        assert await whole(wv, name) == stored

    async def test_several_changes_of_a_row_are_one_step_back(self, wv: Rig):
        name = await wv.collection(TYPES, [{"title": "old", "pages": 1}])
        row, before = RowKey(name, key(0)), await whole(wv, name)
        changes: list[Change] = [Update(row, {"title": "one"}), Update(row, {"title": "two", "pages": 2})]
        new: list[Change] = [Insert(name, {"title": "n"}, key(7)), Update(RowKey(name, key(7)), {"pages": 3})]
        plan = await planned(wv, *changes, *new)
        assert [each.changes for each in plan.planned] == [[0, 1], [2, 3]]
        outcomes = await wv.driver.apply_change(plan)
        assert sorted(each.change for each in outcomes) == [0, 1, 2, 3]
        assert {each.status for each in outcomes} == {"applied"}
        assert {row["properties"]["title"] for row in (await whole(wv, name)).values()} == {"two", "n"}
        assert {each.status for each in await wv.apply(*plan.undo)} == {"applied"}
        assert await whole(wv, name) == before

    async def test_rows_of_a_tenant_come_back_to_it(self, wv: Rig):
        name = await wv.collection(TYPES, **TENANTS)
        await wv.call("POST", f"/v1/schema/{name}/tenants", [{"name": "ann"}, {"name": "bob"}])
        for tenant in ("ann", "bob"):
            await wv.load(name, [{"title": tenant}], tenant=tenant)
        plan = await planned(
            wv, Delete(RowKey(name, key(0), "ann")), Update(RowKey(name, key(0), "bob"), {"title": "x"})
        )
        assert {each.status for each in await wv.driver.apply_change(plan)} == {"applied"}
        assert {each.status for each in await wv.apply(*plan.undo)} == {"applied"}
        for tenant in ("ann", "bob"):
            assert (await wv.stored(name, key(0), tenant=tenant) or {})["properties"] == {"title": tenant}

    async def test_named_vectors_and_references_come_back(self, wv: Rig):
        other = await wv.collection({"t": "text"}, [{"t": "a"}], name="Other")
        named = {each: {"vectorizer": {"none": {}}, "vectorIndexType": "flat"} for each in ("small", "large")}
        beacon = [{"beacon": f"weaviate://localhost/{other}/{key(0)}"}]
        row = {"properties": {"t": "x", "ref": beacon}, "vectors": {"small": [0.1, 2.0], "large": VECTOR}}
        name = await wv.collection({"t": "text", "ref": {"dataType": [other]}}, [row], vectorConfig=named)
        before = await whole(wv, name)
        for change in (Delete(RowKey(name, key(0))), Insert(name, {"t": "y"}, key(0), replace=True)):
            plan = await planned(wv, change)
            assert {each.status for each in await wv.driver.apply_change(plan)} == {"applied"}
            assert await whole(wv, name) != before
            assert {each.status for each in await wv.apply(*plan.undo)} == {"applied"}
            assert await whole(wv, name) == before


class TestUndoOnFake(OnFake, Rules):
    pass


@pytest.mark.one_engine
class TestUndoOnServer(OnServer, Rules):
    pass


STORED = {"class": "Book", "id": ROW, "lastUpdateTimeUnix": 5, "properties": {"title": "old"}}


def plan_of(*changes: Change, stored: Any = STORED, undo: bool = True, **more: Any) -> Plan:
    read = [reply(stored)] * len(changes) if stored else [reply("", status=404)] * len(changes)
    request = PlanRequest(changes=list(changes), undo=undo)
    return Answers(reply(view(**more).structure), *read).run(plan_changes(request, Features(), by_query=False))


def test_a_plan_with_an_undo_says_that_the_server_guards_nothing():
    made = plan_of(Update(RowKey("Book", ROW), {"title": "new"}))
    assert [note.code for note in made.notes] == ["undo-unguarded"]
    assert len(made.undo) == 1


def test_a_digest_does_not_depend_on_how_a_value_is_written():
    """The server cuts fractions of seconds, keeps 32 bits of coordinates, and computes parts of a phone number."""
    book = view()
    sent = {"published": "2024-05-01T10:00:00.1234567890Z", "place": {"latitude": 52.366667, "longitude": 1},
            "phone": {"input": "020", "defaultCountry": "nl"},
            "author": {"name": "A", "born": None}, "tags": None}  # fmt: skip
    kept = {"published": "2024-05-01T10:00:00.123456789Z", "place": {"longitude": 1, "latitude": 52.36667},
            "phone": {"input": "020", "defaultCountry": "NL", "valid": True, "national": 20},
            "author": {"name": "A"}}  # fmt: skip
    assert before_images.guard(book, sent, []) == before_images.guard(book, kept, [])
    for name, value in (("published", "2024-05-01T10:00:01Z"), ("author", {"name": "B"}), ("title", "")):
        assert before_images.guard(book, kept | {name: value}, []) != before_images.guard(book, kept, [])


CODE = {"dataType": ["object[]"], "nestedProperties": [{"name": "n", "dataType": ["int"]}]}
EVERY = {
    "i": "int", "n": "number", "d": "date", "u": "uuid", "t": "text", "b": "boolean", "p": "phoneNumber",
    "g": "geoCoordinates", "ts": "text[]", "ns": "number[]", "o": CODE, "r": "Author",
}  # fmt: skip
HELD: dict[str, Any] = {
    "i": 5, "n": 0.0, "d": "2024-05-01T10:00:00Z", "u": ROW, "t": "", "b": False,
    "p": {"input": "020", "defaultCountry": "NL"}, "g": {"latitude": 1.5, "longitude": 2.0}, "ts": ["a", "b"],
    "ns": [1.0, 2.0], "o": [{"n": 1}, {"n": 2}], "r": [{"beacon": "x"}, {"beacon": "y"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "same", "others"),
    [
        ("i", [5, 5.0], [6, 0]),
        ("n", [0], [1e-300]),
        ("d", ["2024-05-01T10:00:00.000Z", "2024-05-01T10:00:00.0000000001Z"], ["2024-05-01T10:00:00.000000001Z"]),
        ("u", [ROW.upper()], [key(6)]),
        ("t", [""], ["x"]),
        ("b", [False], [True]),
        ("p", [{"input": "020", "defaultCountry": "nl", "national": 20}],
         [{"input": "021", "defaultCountry": "nl"}, {"input": "020", "defaultCountry": "de"}, {"input": "020"}]),
        ("g", [{"longitude": 2, "latitude": 1.5}],
         [{"latitude": 1.5, "longitude": 2.5}, {"latitude": 2, "longitude": 2}]),
        ("ts", [["a", "b"]], [["a"], ["b", "a"], ["a", "c"], []]),
        ("ns", [[1, 2]], [[1, 3], [1]]),
        ("o", [[{"n": 1.0, "m": None}, {"n": 2}]], [[{"n": 1}], [{"n": 1}, {"n": 3}], [{"n": 1}, {}]]),
        ("r", [[{"beacon": "x", "href": "/x"}, {"beacon": "y"}]],
         [[{"beacon": "x"}], [{"beacon": "x"}, {"beacon": "z"}]]),
    ],
)  # fmt: skip
def test_a_digest_tells_each_value_of_a_row(name: str, same: list[Any], others: list[Any]) -> None:
    book = view(EVERY)
    whole = before_images.guard(book, HELD, [])
    for value in same:
        assert before_images.guard(book, HELD | {name: value}, []) == whole
    for value in others:
        assert before_images.guard(book, HELD | {name: value}, []) != whole
    without = {column: value for column, value in HELD.items() if column != name}
    assert before_images.guard(book, without, []) == before_images.guard(book, HELD | {name: None}, []) != whole


def test_a_digest_tells_each_vector_of_a_row() -> None:
    texts = [(b"[1,2]", b""), (b"[1,3]", b""), (b"", b'{"a":[1],"b":[2]}'), (b"", b'{"a":[1],"b":[3]}'),
             (b"", b'{"a":[1]}'), (b"", b"")]  # fmt: skip
    digests = [before_images.guard(view(), {}, [Raw(one), Raw(other)])["sha256"] for one, other in texts]
    assert len({*digests}) == len(texts)
    for none in (b"null", b"[]", b"{}"):
        assert before_images.guard(view(), {}, [Raw(none), Raw(none)])["sha256"] == digests[-1]


@pytest.mark.parametrize(
    ("types", "document", "parts"),
    [
        ({"t": "text"}, '{"t":"x"}', {"properties": '{"t":"x"}'}),
        ({"t": "text"}, '{"properties":{"t":"x"}}', {"properties": '{"t":"x"}'}),
        ({"t": "text"}, '{"properties":{},"vector":[1]}', {"properties": "{}", "vector": "[1]"}),
        ({"t": "text"}, '{"properties":{},"vectors":{"a":[1]}}', {"properties": "{}", "vectors": '{"a":[1]}'}),
        ({"t": "text"}, '{"properties":{},"t":"x"}', {"properties": '{"properties":{},"t":"x"}'}),
        ({"properties": "text"}, '{"properties":"x"}', {"properties": '{"properties":"x"}'}),
        ({"t": "text"}, '{"vector":[1]}', {"properties": '{"vector":[1]}'}),
    ],
)
def test_a_document_is_a_whole_row_only_by_all_of_its_members(types: Any, document: str, parts: dict[str, str]) -> None:
    opened = before_images.opened(view(types), document)[0].parts
    assert {name: bytes(value).decode() for name, value in opened.items()} == parts


def test_a_row_that_no_undo_could_restore_is_refused():
    changed = Update(RowKey("Book", ROW), {"t": "new"})
    hashed = {**STORED, "properties": {"h": "abc"}}
    clash = {**STORED, "properties": {"t": "x"}, "vector": VECTOR}
    for stored, types in ((hashed, {"t": "text", "h": "blobHash"}), (clash, {"t": "text", "properties": "text"})):
        made = plan_of(changed, stored=stored, types=types)
        [outcome] = made.refusals
        assert (outcome.status, made.undo) == (OutcomeStatus.REFUSED, [])
        assert "no undo" in outcome.reason


def test_a_row_that_is_gone_is_a_conflict_before_anything_is_sent():
    for change in (Update(RowKey("Book", ROW), {"title": "x"}), Delete(RowKey("Book", ROW))):
        [outcome] = plan_of(change, stored=None).refusals
        assert outcome.status is OutcomeStatus.CONFLICT
    restoring = Insert("Book", id=ROW, document="{}")  # the row was never deleted
    [outcome] = plan_of(restoring, undo=False).refusals
    assert (outcome.status, outcome.reason) == (OutcomeStatus.CONFLICT, "a row with this uuid exists already")


def test_a_vector_of_a_module_is_no_part_of_a_digest():
    """The module computes another one for the changed row."""
    plain, computing = view(), view(vectorizer="text2vec-x")
    for book, same in ((plain, False), (computing, True)):
        one, two = (before_images.guard(book, {"title": "x"}, [before_images.Raw(text)]) for text in (b"[1]", b"[2]"))
        assert (one == two) is same


def test_a_plan_that_grows_too_large_is_split_by_the_host(monkeypatch):
    monkeypatch.setattr(plan, "PLAN_BYTES", 100)
    changes = [Update(RowKey("Book", key(at)), {"title": "x" * 60}) for at in range(2)]
    with pytest.raises(plan.QueryError) as caught:
        Answers(
            reply(view().structure), *(reply({**STORED, "id": key(at)}) for at in range(2))
        ).run(plan_changes(PlanRequest(changes=changes, undo=True), Features(), by_query=False))  # fmt: skip
    assert caught.value.code == "plan-too-large"


def test_a_plan_that_no_answer_of_a_driver_holds_is_refused():
    """The host refuses an answer of more than 64 MiB, and a plan is one."""
    text = "x" * (13 << 20)
    for rows, fits in ((1, True), (2, False)):
        run = plan.plan_changes(
            PlanRequest(changes=[Insert("Book", {"title": text})] * rows), Features(), by_query=False
        )
        if fits:
            assert len(Answers(reply(view().structure)).run(run).planned) == rows
            continue
        with pytest.raises(plan.QueryError) as caught:
            Answers(reply(view().structure)).run(run)
        assert caught.value.code == "plan-too-large"


def test_a_row_named_in_two_ways_is_changed_once():
    change = Update(RowKey("Book", ROW), {"title": "x"})
    other = replace(change, key=RowKey("Book", ROW.upper()))
    made = plan_of(change, other)
    assert (len(made.planned), len(made.undo)) == (1, 1)
    assert "names this row otherwise" in made.refusals[0].reason


def test_a_document_may_hold_the_vector_beside_the_properties():
    sent = plan_of(
        Insert("Book", id=ROW, document='{"properties":{"title":"x"},"vector":[1.0]}'), stored=None, undo=True
    )
    assert json.loads(sent.requests[0].body or "") == {
        "class": "Book", "id": ROW, "properties": {"title": "x"}, "vector": [1.0],
    }  # fmt: skip
