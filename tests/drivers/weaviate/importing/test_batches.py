"""Batches of a load: many rows in one request, each with an outcome that claims no more than is known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.importing.test_loads import rejected, session, stored
from drivers.weaviate.rig import OnFake, OnServer, Rig, apply_plan, key, on_fake
from drivers.weaviate.views import view
from msgspec.structs import replace

from dragoman.imports.loads import load
from dragoman_api import Delete, Insert, Plan, PlanRequest, RowKey, Update
from dragoman_api.errors import DragomanError
from dragoman_weaviate.protocol import Features
from dragoman_weaviate.writing import batches
from dragoman_weaviate.writing.apply import Sender
from dragoman_weaviate.writing.plan import plan_changes

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.imports.load_run import LoadReport

TYPES = {"n": "int"}
BATCH = "/v1/batch/objects"


def written(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


async def loaded(wv: Rig, name: str, file: Path, **more: Any) -> LoadReport:
    return await load(session(wv), name, file=file, format="rows", **more)


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"id": key(number), "properties": {"n": number}, "vector": [0.5, number], **more}


def sent(wv: Rig) -> list[list[str]]:
    """Return the ids of each batch."""
    assert wv.fake is not None
    return [
        [each["id"] for each in request.json()["objects"]]
        for request in wv.fake.requests
        if (request.method, request.path) == ("POST", BATCH)
    ]


class Rules:
    async def test_rows_that_fail_are_told_apart_from_the_others_of_their_batch(self, wv: Rig, tmp_path):
        name = await wv.collection(TYPES)
        bad = row(2, vector=[1, 2, 3]), row(4, properties={"n": "x"}), row(6, properties={"m": 1})
        file = written(tmp_path / "o.rows", row(1), bad[0], row(3), bad[1], row(5), bad[2])
        report = await loaded(wv, name, file)
        found = {each["row"]: each for each in rejected(file)}
        there = await stored(wv, name)
        assert set(there) >= {key(1), key(3), key(5)}
        assert (found[4]["code"], found[6]["code"]) == ("failed", "refused")
        assert report.counts["applied"] + len(found) == 6
        # Another length of vector is an error; a server may have stored the object nevertheless, and then it is told.
        assert (2 in found) != (key(2) in there)
        assert 2 not in found or "vector" in found[2]["reason"]

    async def test_rows_that_exist_are_not_overwritten_unless_that_is_asked_for(self, wv: Rig, tmp_path):
        name = await wv.collection(TYPES)
        await wv.load(name, [{"id": key(1), "n": 1, "vector": [0.5, 1]}, {"id": key(2), "n": 7, "vector": [9, 9]}])
        file = written(tmp_path / "o.rows", *map(row, range(1, 5)))
        report = await loaded(wv, name, file)
        assert (report.counts["applied"], report.counts["conflict"]) == (2, 2)
        same, other = rejected(file)
        assert "holds the same" in same["reason"]
        assert other["reason"] == "a row with this uuid exists already"
        assert (await stored(wv, name))[key(2)] == ({"n": 7}, [9, 9])
        assert batches.UNGUARDED in [note.code for note in report.notes]
        assert (await loaded(wv, name, file, on_conflict="skip")).counts["skipped"] == 4
        report = await loaded(wv, name, file, on_conflict="overwrite")
        assert report.counts["applied"] == 4
        assert report.notes == []
        assert (await stored(wv, name))[key(2)] == ({"n": 2}, [0.5, 2])

    async def test_a_row_that_replaces_another_goes_along_with_rows_that_must_be_new(self, wv: Rig):
        name = await wv.collection(TYPES)
        await wv.load(name, [{"id": key(at), "n": at} for at in (1, 2)])
        changes = [Insert(name, {"n": 7}, key(1), replace=True), Insert(name, {"n": 7}, key(2)),
                   Insert(name, {"n": 7, "uuid": key(3)}), Insert(name, {"n": 2, "uuid": key(2)})]  # fmt: skip
        plan = await wv.driver.plan_change(PlanRequest(changes=changes, bulk=True))
        outcomes = await wv.driver.apply_change(replace(plan, changes=changes))
        assert {each.change: (str(each.status), each.holds) for each in outcomes} == {
            0: ("applied", False), 1: ("conflict", False), 2: ("applied", False), 3: ("conflict", True),
        }  # fmt: skip
        assert {id_: row[0]["n"] for id_, row in (await stored(wv, name)).items()} == {key(1): 7, key(2): 2, key(3): 7}

    async def test_an_id_in_other_letters_is_the_same_id(self, wv: Rig, tmp_path):
        name = await wv.collection(TYPES)
        file = written(tmp_path / "o.rows", row(1), row(1, id=key(1).upper(), properties={"n": 8}), row(2))
        report = await loaded(wv, name, file)
        assert (report.counts["applied"], report.counts["conflict"]) == (2, 1)
        assert (await stored(wv, name))[key(1)][0] == {"n": 1}


class TestOnFake(Rules, OnFake):
    async def test_many_rows_are_one_request(self, wv: Rig, tmp_path):
        name = await wv.collection(TYPES)
        file = written(tmp_path / "o.rows", *map(row, range(300)))
        assert (await loaded(wv, name, file)).counts["applied"] == 300
        assert [len(each) for each in sent(wv)] == [300]

    @pytest.mark.slow
    async def test_a_lost_answer_is_settled_by_reading_the_rows(self, wv: Rig, tmp_path):
        assert wv.fake is not None
        name = await wv.collection(TYPES)
        for at, (kind, status) in enumerate([("lost", 502), ("lost", 0), ("garbage", 200)]):
            file = written(tmp_path / f"{kind}{status}.rows", *(row(number) for number in range(10 * at, 10 * at + 3)))
            wv.fake.misbehave(kind, on=BATCH, times=1, status=status)
            report = await loaded(wv, name, file)
            assert (report.counts["applied"], report.counts["unknown"]) == (3, 0), rejected(file)
        assert len(await stored(wv, name)) == 9

    async def test_rows_without_an_id_are_settled_as_well_and_never_doubled(self, wv: Rig, tmp_path):
        assert wv.fake is not None
        name = await wv.collection(TYPES)
        file = written(tmp_path / "o.rows", {"properties": {"n": 1}}, {"properties": {"n": 2}})
        wv.fake.misbehave("lost", on=BATCH, times=1)
        report = await loaded(wv, name, file)
        assert (report.counts["applied"], report.counts["unknown"]) == (2, 0)
        assert len(await stored(wv, name)) == 2

    @pytest.mark.slow
    async def test_a_batch_that_a_busy_server_turned_away_is_sent_again(self, wv: Rig, tmp_path):
        assert wv.fake is not None
        name = await wv.collection(TYPES)
        file = written(tmp_path / "o.rows", row(1), row(2))
        wv.fake.misbehave("answer", on=BATCH, times=2, status=429, body={"error": [{"message": "too many"}]})
        assert (await loaded(wv, name, file)).counts["applied"] == 2
        assert sent(wv) == [[key(1), key(2)]] * 3

    async def test_without_graphql_each_id_is_asked_for(self, tmp_path):
        async with on_fake(graphql=False) as wv:
            name = await wv.collection(TYPES)
            await wv.load(name, [{"id": key(2), "n": 2, "vector": [1, 1]}])
            file = written(tmp_path / "o.rows", row(1), row(2))
            report = await loaded(wv, name, file)
            assert (report.counts["applied"], report.counts["conflict"]) == (1, 1)


class TestOnServer(Rules, OnServer):
    pass


# without a server


def planned(*numbers: int) -> Plan:
    changes = [Insert("Book", {"title": f"t{at}"}, key(at), replace=True) for at in numbers]
    made = Answers(KNOWN).run(plan_changes(PlanRequest(changes=[*changes], bulk=True), Features(), by_query=False))
    [request] = made.planned
    assert request.rows == [[at] for at in range(len(numbers))]
    return made


KNOWN = reply(view().structure)


def told(number: int, **result: Any) -> dict[str, Any]:
    return {"class": "Book", "id": key(number), "properties": {}, "result": {"status": "SUCCESS", **result}}


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_batch_that_is_refused_as_a_whole_is_halved_until_the_row_at_fault_is_alone(status: int) -> None:
    refused = reply({"code": 601, "message": "body.objects.2 is wrong"}, status)
    missing = reply("", 404)
    answers = Answers(
        KNOWN, refused, reply([told(0), told(1)]), refused, refused, reply([told(3)]), missing
    )  # fmt: skip
    outcomes = answers.run(apply_plan(planned(0, 1, 2, 3), Features()))
    assert [(each.change, str(each.status)) for each in sorted(outcomes, key=lambda each: each.change)] == [
        (0, "applied"), (1, "applied"), (2, "failed"), (3, "applied"),
    ]  # fmt: skip


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 502])
def test_a_batch_that_failed_for_another_reason_is_sent_once(status: int) -> None:
    looks = [] if status == 429 else [reply("", 404), reply("", 404)]
    outcomes = Answers(KNOWN, reply("", status), *looks).run(apply_plan(planned(0, 1), Features()))
    assert {str(each.status) for each in outcomes} == {"unknown" if status >= 500 else "failed"}


@pytest.mark.parametrize(
    ("head", "get", "code"),
    [(403, 403, "access-denied"), (500, 200, "query-failed"), (500, 403, "access-denied"), (403, 200, "access-denied")],
)
def test_an_id_of_which_nobody_says_whether_it_is_taken_is_not_sent(head: int, get: int, code: str) -> None:
    """An answer to HEAD has no reason, so the same is asked with GET; the reason is that of whichever failed."""
    asked = batches.taken(view(version=(1, 20, 0)), [key(0), key(1)], None)
    with pytest.raises(DragomanError) as caught:
        Answers(reply("", 404), reply("", head), reply({"error": [{"message": "no"}]}, get)).run(asked)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([told(0)], ["unknown", "unknown"]),  # of one row only
        ([told(0), told(1) | {"class": "Users"}], ["applied", "unknown"]),
        ([told(1), told(0)], ["unknown", "unknown"]),  # in another order
        ([told(0), told(1, status="PENDING")], ["applied", "unknown"]),
        ([told(0), told(1, errors={"error": [{"message": "half"}]})], ["applied", "unknown"]),
        ([told(0), told(1, status="FAILED", errors={"error": [{"message": "no"}]})], ["applied", "failed"]),
        ({"objects": []}, ["unknown", "unknown"]),
    ],
)
def test_an_answer_that_does_not_say_success_of_a_row_proves_nothing(answer: Any, expected: list[str]) -> None:
    looks = [reply("", 404) for status in expected if status != "applied"]
    outcomes = Answers(KNOWN, reply(answer), *looks).run(apply_plan(planned(0, 1), Features()))
    assert [str(each.status) for each in outcomes] == expected
    assert all(each.reason for each in outcomes if each.status != "applied")


def test_a_failed_row_that_cannot_be_read_is_unknown() -> None:
    failed = reply([told(0, status="FAILED", errors={"error": [{"message": "half a shard"}]})])
    [outcome] = Answers(KNOWN, failed, reply("", 503)).run(apply_plan(planned(0), Features()))
    assert (str(outcome.status), "cannot be read" in outcome.reason) == ("unknown", True)
    there = {"class": "Book", "id": key(0), "properties": {"title": "t0"}}
    [outcome] = Answers(KNOWN, failed, reply(there)).run(apply_plan(planned(0), Features()))
    assert outcome.status == "applied"


def test_a_busy_server_gets_the_batch_again_and_a_gateway_that_failed_does_not() -> None:
    sender = Sender(planned(0, 1), Features())
    assert Answers(KNOWN, reply("", 429)).run(sender.send())
    assert {(str(each.status), each.busy) for each in sender.outcomes} == {("failed", True)}
    assert not Answers(reply([told(0), told(1)])).run(sender.send())
    assert {str(each.status) for each in sender.outcomes} == {"applied"}
    sender = Sender(planned(0), Features())
    assert not Answers(KNOWN, reply("", 503, {"Retry-After": "1"}), reply("", 404)).run(sender.send())
    assert [str(each.status) for each in sender.outcomes] == ["unknown"]


def test_every_batch_that_a_busy_server_turned_away_waits() -> None:
    changes = [Insert("Book", {"title": f"t{at}"}, key(at), replace=True) for at in (0, 1, 0)]
    made = Answers(KNOWN).run(plan_changes(PlanRequest(changes=[*changes], bulk=True), Features(), by_query=False))
    sender = Sender(made, Features())
    assert Answers(KNOWN, reply("", 429), reply("", 429)).run(sender.send())
    assert not Answers(reply([told(0), told(1)]), reply([told(0)])).run(sender.send())
    assert {each.change: str(each.status) for each in sender.outcomes} == dict.fromkeys(range(3), "applied")


@pytest.mark.parametrize(
    ("change", "asked", "load"),
    [
        (Insert("Book", {}), {"bulk": True}, True),
        (Insert("Book", {}), {"bulk": False}, False),
        (Insert("Book", {}), {"bulk": True, "undo": True}, False),
        (Insert("Book", {}, key(1), replace=True, guard={"lastUpdateTimeUnix": 5}), {"bulk": True}, False),
        (Update(RowKey("Book", key(1)), {"title": "x"}), {"bulk": True}, False),
        (Delete(RowKey("Book", key(1))), {"bulk": True}, False),
    ],
)
def test_only_new_rows_of_a_load_go_in_batches_that_compare_nothing(change: Any, asked: Any, load: bool) -> None:
    for changes in ([change], [Insert("Book", {}), change], [change, Insert("Book", {})]):
        assert batches.is_load(PlanRequest(changes=changes, **asked)) is load


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ([("A", "1", None), ("A", "2", None), ("A", "1", None), ("A", "2", None)], [[0, 1], [2, 3]]),
        ([("A", "1", None), ("B", "1", None), ("B", "2", "t"), ("B", "3", "u"), ("B", "4", "u")],
         [[0], [1], [2], [3, 4]]),
        ([("A", str(at), None) for at in range(1_001)], [[*range(1_000)], [1_000]]),
    ],
)  # fmt: skip
def test_batches_have_one_collection_and_tenant_and_each_id_once(rows: Any, sizes: list[list[int]]) -> None:
    drafts = batches.Drafts()
    for number, (name, id_, tenant) in enumerate(rows):
        drafts.add(number, RowKey(name, id_, tenant), '{"class":"A"}')
    drafts.close()
    assert [each.changes for each in drafts.planned] == sizes


@pytest.mark.parametrize("text", [" " * 2**20, "é" * 2**19])
def test_batches_have_a_bounded_size_in_bytes(text: str) -> None:
    drafts = batches.Drafts()
    for number in range(7):
        drafts.add(number, RowKey("A", str(number)), text)
    drafts.close()
    assert [len(each.changes) for each in drafts.planned] == [3, 3, 1]
