"""Answers to writes: which of them leave it open whether the server did the work, and what is said then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import Rig, connected, profile
from drivers.elasticsearch.writing.test_change_sets import BLOCKED, BUSY, DONE, MOVED, SETTINGS, bulk, found, items
from drivers.replies import Answers, reply

from dragoman_api import Delete, Drop, Insert, OutcomeStatus, PlanRequest, QueryError, RowKey, Update
from dragoman_querydsl import protocol
from dragoman_querydsl.writing.apply import Sender
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from fakes.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api.changes import Change

APPLIED, CONFLICT = OutcomeStatus.APPLIED, OutcomeStatus.CONFLICT
FAILED, UNKNOWN = OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN
PROPERTIES: dict[str, Any] = {"code": {"type": "keyword"}, "price": {"type": "double"}}
DOCUMENTS = ['{"code":"a","price":1.10}', '{"code":"b","price":2}', '{"code":"c"}']


def told(kind: str) -> dict[str, str]:
    return {"type": kind, "reason": "it went wrong"}


@pytest.mark.parametrize(
    ("status", "error", "unknown"),
    [
        (500, None, True),
        (502, None, True),
        (503, None, True),
        (504, None, True),
        (520, None, True),
        (502, told("bad_gateway"), True),
        (504, told("gateway_timeout"), True),
        (500, told("illegal_state_exception"), True),
        (500, told("node_disconnected_exception"), True),
        (503, told("unavailable_shards_exception"), True),
        (503, told("master_not_discovered_exception"), True),
        (503, told("process_cluster_event_timeout_exception"), True),
        (503, told("cluster_block_exception"), True),
        (503, told("es_rejected_execution_exception"), False),
        (503, told("circuit_breaking_exception"), False),
        (500, told("es_rejected_execution_exception"), False),
        (408, None, True),
        (429, None, False),
        (429, told("circuit_breaking_exception"), False),
        (429, told("cluster_block_exception"), False),
        (403, told("cluster_block_exception"), False),
        (400, told("mapper_parsing_exception"), False),
        (401, None, False),
        (404, None, False),
        (404, told("index_not_found_exception"), False),
        (409, told("version_conflict_engine_exception"), False),
        (413, None, False),
        (301, None, False),
    ],
)
def test_one_function_says_which_answers_leave_a_write_unknown(
    status: int, error: dict[str, str] | None, unknown: bool
) -> None:
    """For a whole request, and for one row of a bulk request."""
    assert protocol.describe(status, error).unsure is unknown
    whole = reply({"error": error, "status": status} if error else "<html>", status)
    assert protocol.read(whole).unsure is unknown


@pytest.mark.parametrize(
    ("item", "unknown"),
    [
        ({"status": 503, "error": told("unavailable_shards_exception")}, True),
        ({"status": 500, "error": told("illegal_state_exception")}, True),
        ({"status": 502}, True),
        (BLOCKED, False),
        ({"status": 400, "error": told("mapper_parsing_exception")}, False),
    ],
)
def test_a_row_of_a_bulk_request_is_unknown_by_its_own_answer(item: dict[str, Any], unknown: bool) -> None:
    sending = Sender(bulk("a", "b"))
    replies = [SETTINGS, items({**DONE, "_id": "a", "status": 200}, {"_id": "b", **item})]
    Answers(*replies, *[found({"a": 3})] * unknown).run(sending.send())
    assert [each.status for each in sending.outcomes] == [APPLIED, UNKNOWN if unknown else FAILED]


@pytest.mark.parametrize(("status", "done"), [(199, False), (200, True), (203, True), (299, True), (300, False)])
def test_every_2xx_of_a_whole_request_is_success_and_nothing_else_is(status: int, *, done: bool) -> None:
    """A proxy that changes an answer may turn 200 into 203."""
    told = {"_index": "books", "_id": "a", "result": "updated"}
    sending = Sender(bulk("a"))
    looked_up = [found({"a": 3})] if status == 199 else []
    Answers(SETTINGS, reply(told, status), *looked_up).run(sending.send())
    assert [each.status is APPLIED for each in sending.outcomes] == [done]


def test_a_conflict_with_itself_is_unknown() -> None:
    """A proxy repeats a PUT whose answer it lost, and the server a write whose primary shard went away."""
    for source, status in (({"a": 1, "z": 2}, UNKNOWN), ({"a": 3}, CONFLICT)):
        sending = Sender(bulk("a", "b"))
        first = items({**DONE, "_id": "a", "status": 200}, {"_id": "b", **MOVED})
        Answers(SETTINGS, first, found(source)).run(sending.send())
        assert [each.status for each in sending.outcomes] == [APPLIED, status]


def test_a_row_that_was_turned_away_is_never_unknown() -> None:
    sending = Sender(bulk("a", "b"))
    assert Answers(SETTINGS, items({"_id": "a", **BUSY}, {"_id": "b", **BUSY})).run(sending.send())
    assert [each.status for each in sending.outcomes] == [FAILED] * 2


def test_an_answer_that_is_too_long_to_be_read_is_unknown() -> None:
    sending = Sender(bulk("a", "b"))
    exchange = sending.send()
    next(exchange)
    exchange.send([SETTINGS])
    exchange.throw(QueryError("the answer is longer than 10 bytes", details={"limit": 10}))
    with pytest.raises(StopIteration):
        exchange.send([found({"a": 3}, {"a": 3})])
    assert [each.status for each in sending.outcomes] == [UNKNOWN] * 2


class LostAnswerRules:
    """A proxy stands before the server: what it loses, the server did."""

    proxy: Proxy

    @pytest.mark.parametrize(
        ("kind", "status"), [("lost", 502), ("lost", 503), ("lost", 504), ("lost", 408), ("cut", 0)]
    )
    async def test_a_write_whose_answer_is_lost_is_looked_up(self, es: Rig, kind: Any, status: int) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        for single in (True, False):
            changes = [
                Update(RowKey(name, "0"), {"price": 9 if single else 8}),
                *([] if single else [Delete(RowKey(name, "1")), Insert(name, {"code": "n"}, id="n")]),
            ]
            plan = await es.plan(*changes)
            self.proxy.misbehave(kind, on=f"/{name}/_update" if single else f"/{name}/_bulk", status=status)
            done = await es.driver.apply_change(plan)
            self.proxy.behave()
            assert [each.status for each in done] == [APPLIED] * len(changes), done
            assert all("its answer was lost" in each.reason for each in done)

    @pytest.mark.parametrize("kind", ["lost", "cut", "html", "garbage", "empty"])
    async def test_where_nothing_can_be_looked_up_the_write_stays_unknown(self, es: Rig, kind: Any) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        plans = [
            await es.plan(Update(RowKey(name, "0"), {"price": 9})),
            await es.plan(*(Update(RowKey(name, key), {"code": "z"}) for key in "12")),
            await es.plan(Insert(name, {"code": "without an id"})),
            await es.plan(Drop(name)),
        ]
        for plan in plans:
            self.proxy.misbehave(kind, on=f"/{name}", after=0 if plan is plans[-1] else 1, status=504)
            done = await es.driver.apply_change(plan)
            self.proxy.behave()
            assert {each.status for each in done} == {UNKNOWN}, done
            assert all(each.reason for each in done)
        there = (await es.raw("HEAD", f"/{name}")).status
        assert there == (404 if kind in ("lost", "cut") else 200)
        es.made = es.made if there == 200 else []

    async def test_a_write_that_a_proxy_repeats_is_no_conflict_with_somebody_else(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        plan = await es.plan(Update(RowKey(name, "0"), {"price": 9}))
        self.proxy.misbehave("twice", on=f"/{name}/_update")
        [done] = await es.driver.apply_change(plan)
        assert done.status == UNKNOWN, done
        assert done.reason.startswith("changed since it was read (seq_no 0 → 3), and the row holds this change")
        assert json.loads(await es.source(name, "0"))["price"] == 9
        self.proxy.behave()
        plan = await es.plan(Delete(RowKey(name, "1")), Insert(name, {"code": "n"}, id="n"))
        self.proxy.misbehave("twice", on=f"/{name}/_bulk")
        done_twice = await es.driver.apply_change(plan)
        assert [each.status for each in done_twice] == [UNKNOWN] * 2, done_twice

    async def test_a_row_that_was_there_before_the_plan_is_a_conflict_and_not_unknown(self, es: Rig) -> None:
        """A change file that is applied once more would else take back, by its undo file, what the first one wrote."""
        name = await es.index(PROPERTIES, DOCUMENTS)
        changes: list[Change] = [Insert(name, id="0", document=DOCUMENTS[0]), Insert(name, {"code": "n"}, id="n")]
        plan = await es.driver.plan_change(PlanRequest(changes=changes, undo=True))
        assert [(each.change, each.status) for each in plan.refusals] == [(0, CONFLICT)]
        assert len(plan.undo) == len(plan.planned) == 1

    async def test_a_conflict_that_cannot_be_looked_into_is_unknown(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        plan = await es.plan(Update(RowKey(name, "0"), {"price": 9}))
        self.proxy.misbehave("twice", on=f"/{name}/_update")
        self.proxy.misbehave("html", on=f"/{name}/_mget", status=503)
        [done] = await es.driver.apply_change(plan)
        assert (done.status, "cannot be read" in done.reason) == (UNKNOWN, True), done

    async def test_a_proxys_404_does_not_say_that_the_row_is_gone(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        plan = await es.plan(Update(RowKey(name, "0"), {"price": 9}))
        self.proxy.misbehave("html", on=f"/{name}/_update", status=404)
        [done] = await es.driver.apply_change(plan)
        assert done.status == FAILED, done
        assert "deleted" not in done.reason

    @pytest.mark.slow
    @pytest.mark.parametrize(("status", "unknown"), [(502, True), (504, True), (429, False)])
    async def test_a_write_of_the_console_is_unknown_by_the_same_table(
        self, es: Rig, status: int, unknown: bool
    ) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        self.proxy.misbehave("lost", on=f"/{name}/", status=status)
        [answer] = await es.console(f'PUT /{name}/_doc/9\n{{"code":"x"}}')
        assert ([note.code for note in answer.notes] == ["http-error", "outcome-unknown"]) is unknown
        [answer] = await es.console(f"GET /{name}/_search")
        assert [note.code for note in answer.notes] == ["http-error"]


class TestLostAnswersOfFake(LostAnswerRules):
    @pytest.fixture
    async def es(self) -> AsyncIterator[Rig]:
        async with (
            FakeElasticsearch(version="8.19.21") as fake,
            Proxy(upstream=fake.url) as self.proxy,
            connected(profile(self.proxy.url), version="8.19.21") as rig,
        ):
            yield rig


class TestLostAnswersOfServer(LostAnswerRules):
    pytestmark = pytest.mark.live("elasticsearch")

    @pytest.fixture
    async def es(self, live_server: dict[str, Any]) -> AsyncIterator[Rig]:
        if live_server["security"]:
            pytest.skip("the proxy speaks plain HTTP, to an engine without users")
        async with (
            Proxy(upstream=live_server["url"]) as self.proxy,
            connected(profile(self.proxy.url), version=live_server["version"]) as rig,
        ):
            yield rig
