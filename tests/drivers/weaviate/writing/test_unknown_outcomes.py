"""Answers to writes: which of them leave it open whether the server did the work, and what is said then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import Rig, apply_plan, connected, key, ordinary, profile
from drivers.weaviate.views import view
from drivers.weaviate.writing.test_changes import GUARDED, ROW, STORED, plan
from msgspec import Raw

from dragoman_api import ConnectionFailedError, Delete, Drop, Insert, QueryError, RowKey, Update
from dragoman_sample.fakes.weaviate import FakeWeaviate
from dragoman_weaviate import protocol, stored_objects
from dragoman_weaviate.protocol import Features
from fakes.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KNOWN = reply(view().structure)


@pytest.mark.parametrize(
    ("status", "unknown"),
    [(500, True), (502, True), (503, True), (504, True), (520, True), (408, True)]
    + [(status, False) for status in (301, 400, 401, 403, 404, 405, 413, 415, 422, 429)],
)
def test_one_function_says_which_answers_leave_a_write_unknown(status: int, unknown: bool) -> None:
    assert protocol.unsure(reply("", status)) is unknown
    for change, read in ((Insert("Book", {"title": "x"}), []), (Update(GUARDED, {"title": "x"}), [reply(STORED)])):
        answers = Answers(KNOWN, *read, reply("<html>", status))
        [outcome] = answers.run(apply_plan(plan(change), Features()))
        assert outcome.status == ("unknown" if unknown else "failed")
        assert outcome.reason


@pytest.mark.parametrize(
    ("where", "unknown"),
    [("put local object", False), ("update local object", False), ("put object on replicas", True)],
)
def test_a_vector_of_another_length_is_in_doubt_unless_the_node_itself_refused_it(where: str, unknown: bool) -> None:
    lengths = "new node has a vector with length 2. Existing nodes have vectors with length 3: more"
    text = f'import into index book: {where}: shard="s": Validate vector index for {ROW}: {lengths}'
    refusal = reply({"error": [{"message": text}]}, 500)
    [outcome] = Answers(KNOWN, refusal).run(apply_plan(plan(Insert("Book", {"title": "x"})), Features()))
    assert outcome.status == ("unknown" if unknown else "failed")
    assert (
        outcome.reason == "Weaviate error: the vector has the length 2, and those of the collection have the length 3"
    )
    assert protocol.unsure(reply({"error": [{"message": text}]}, 502))  # a gateway may answer anything


@pytest.mark.parametrize(
    "error",
    [
        QueryError("the answer is longer than 10 bytes", details={"limit": 10}),
        ConnectionFailedError("no whole answer", details={"sent": True}),
    ],
)
def test_a_first_write_whose_answer_is_lost_is_an_outcome_unknown(error: Any) -> None:
    run = apply_plan(plan(Insert("Book", {"title": "one"}), Insert("Book", {"title": "two"})), Features())
    next(run)
    run.send([KNOWN])
    run.throw(error)
    with pytest.raises(StopIteration) as end:
        run.send([reply(STORED)])
    assert [each.status for each in end.value.value] == ["unknown", "applied"]


@pytest.mark.parametrize(
    ("stored", "sent", "same"),
    [
        ({"n": 1}, {"n": 1}, True),
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": 1, "m": None}, True),
        ({"n": 0, "t": "", "l": [], "b": False}, {"n": 0, "t": "", "l": [], "b": False}, True),
        ({}, {"n": 0}, False),
        ({}, {"t": ""}, False),
        ({"n": 1, "m": 2}, {"n": 1}, False),
        ({"n": 1}, {"n": 1, "m": 2}, False),
        ({"n": 2}, {"n": 1}, False),
    ],
)
def test_a_row_is_the_same_by_all_of_its_properties(stored: dict[str, Any], sent: dict[str, Any], same: bool) -> None:
    item = stored_objects.StoredObject(collection="Book", id=ROW, properties=stored)
    assert stored_objects.same(item, Raw(json.dumps(sent).encode()), Raw(), Raw()) is same


@pytest.mark.parametrize(
    ("member", "stored", "sent", "same"),
    [
        (member, stored if member == "vector" else {"a": stored, "b": [1]}, sent if member == "vector" else more, same)
        for member in ("vector", "vectors")
        for stored, sent, more, same in [
            ([0.1, 2], [0.10000000149011612, 2.0], {"a": [0.1, 2.0], "b": [1]}, True),
            ([0.1, 2], [0.1, 3], {"a": [0.1, 3], "b": [1]}, False),
            ([0.1, 2], [0.1], {"a": [0.1, 2]}, False),
            ([0.1, 2], [2, 0.1], {"a": [0.1, 2], "b": [2]}, False),
        ]
    ],
)
def test_a_row_is_the_same_by_each_of_its_vectors(member: str, stored: Any, sent: Any, same: bool) -> None:
    item = stored_objects.StoredObject(collection="Book", id=ROW, properties={})
    setattr(item, member, Raw(json.dumps(stored).encode()))
    vectors = {"vector": Raw(), "vectors": Raw()} | {member: Raw(json.dumps(sent).encode())}
    assert stored_objects.same(item, Raw(b"{}"), **vectors) is same
    assert stored_objects.same(item, Raw(b"{}"), Raw(), Raw()) is True  # none was sent


def test_a_row_counts_as_changed_by_the_plan_itself_only_where_that_change_was_applied() -> None:
    changed = STORED | {"lastUpdateTimeUnix": 6}
    twice = plan(Update(GUARDED, {"title": "one"}), Update(GUARDED, {"title": "two"}))
    for status, second, more in ((204, "applied", [reply("", 204)]), (422, "conflict", [])):
        answers = Answers(KNOWN, reply(STORED), reply("", status), reply(changed), *more)
        outcomes = answers.run(apply_plan(twice, Features()))
        assert [str(each.status) for each in outcomes] == ["applied" if status == 204 else "failed", second]


def test_a_lost_answer_to_the_read_before_a_write_leaves_no_doubt() -> None:
    run = apply_plan(plan(Insert("Book", {"title": "one"}), Update(GUARDED, {"title": "x"})), Features())
    next(run)
    run.send([KNOWN])
    run.send([reply(STORED)])
    with pytest.raises(StopIteration) as end:
        run.throw(ConnectionFailedError("no whole answer", details={"sent": True}))
    assert [each.status for each in end.value.value] == ["applied", "failed"]
    assert end.value.value[1].reason.startswith("not sent: ")


def test_a_proxys_404_does_not_say_that_the_row_is_gone() -> None:
    answers = Answers(KNOWN, reply(STORED), reply("<html>not found</html>", 404))
    [outcome] = answers.run(apply_plan(plan(Update(GUARDED, {"title": "x"})), Features()))
    assert (outcome.status, "deleted" in outcome.reason) == ("failed", False)


@pytest.mark.parametrize(
    ("sent", "stored", "holds"),
    [
        ("[1, 0.1]", "[1.0, 0.1]", True), ("[0.1]", "[0.10000000149]", True), ("[1, 0.1]", "[1, 0.2]", False),
        ("[1]", "[1, 1]", False), ("[1e300]", "[1]", False), ("[1]", "[1e300]", False), ("[1]", "null", False),
    ],
)  # fmt: skip
def test_a_row_that_exists_holds_the_change_only_with_its_vector(sent: str, stored: str, holds: bool) -> None:
    """A vector is compared in the server's 32-bit floats."""
    there = json.dumps(STORED)[:-1] + f', "vector": {stored}}}'
    exists = reply({"error": [{"message": "id already exists"}]}, 422)
    change = Insert("Book", {"title": "old", "vector": sent}, ROW)
    [outcome] = Answers(KNOWN, exists, reply(there)).run(apply_plan(plan(change), Features()))
    assert (outcome.status, outcome.holds) == ("conflict", holds)


class LostAnswerRules:
    """A proxy stands before the server: what it loses, the server did."""

    proxy: Proxy

    @pytest.mark.parametrize(("kind", "status"), [("lost", 502), ("lost", 504), ("cut", 0), ("garbage", 0)])
    async def test_a_write_whose_answer_is_lost_stays_unknown(self, wv: Rig, kind: Any, status: int) -> None:
        name = await wv.collection({"t": "text"}, [{"t": "a"}, {"t": "b"}])
        changes = {
            "/v1/objects": Insert(name, {"t": "new"}, ROW),
            f"/v1/objects/{key(0)}": Update(RowKey(name, key(0)), {"t": "changed"}),
            f"/v1/objects/{name}/{key(1)}": Delete(RowKey(name, key(1))),
            f"/v1/schema/{name}": Drop(name),
        }
        for path, change in changes.items():
            if kind == "cut" and not isinstance(change, Insert):
                continue  # the other answers have no body
            made = await wv.plan(change)
            self.proxy.misbehave(kind, on=path, after=int(isinstance(change, Delete)), status=status)
            done = await wv.driver.apply_change(made)
            self.proxy.behave()
            assert [each.status for each in done] == ["unknown"], change
            assert done[0].reason
        if kind == "lost":
            assert (await wv.raw("GET", f"/v1/schema/{name}")).status == 404

    @pytest.mark.slow
    @pytest.mark.parametrize(("status", "unknown"), [(502, True), (504, True), (429, False)])
    async def test_a_write_of_the_console_is_in_doubt_by_the_same_table(
        self, wv: Rig, status: int, unknown: bool
    ) -> None:
        name = await wv.collection({"t": "text"})
        self.proxy.misbehave("lost", on="/v1/objects", status=status)
        [answer] = await wv.console("POST /v1/objects " + json.dumps({"class": name, "properties": {"t": "x"}}))
        assert [note.code for note in answer.notes] == ["http-error", *["outcome-unknown"] * unknown]
        [answer] = await wv.console("GET /v1/objects")
        assert [note.code for note in answer.notes] == ["http-error"]


class TestLostAnswersOfFake(LostAnswerRules):
    @pytest.fixture
    async def wv(self) -> AsyncIterator[Rig]:
        async with (
            FakeWeaviate() as fake,
            Proxy(upstream=fake.url) as self.proxy,
            connected(profile(self.proxy.url)) as rig,
        ):
            yield rig


class TestLostAnswersOfServer(LostAnswerRules):
    pytestmark = pytest.mark.live("weaviate")

    @pytest.fixture
    async def wv(self, live_server: dict[str, Any]) -> AsyncIterator[Rig]:
        ordinary(live_server)
        if live_server["tls"] or live_server["access"] != "open":
            pytest.skip("the proxy speaks plain HTTP, to an engine without keys")
        async with Proxy(upstream=live_server["url"]) as self.proxy, connected(profile(self.proxy.url)) as rig:
            yield rig
