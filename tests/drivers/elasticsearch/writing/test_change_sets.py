"""Several changes at once: one write a row, many in one bulk request, and what takes them back."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from drivers.replies import Answers, reply

from dragoman_api import (
    ConnectionFailedError,
    Delete,
    Drop,
    HttpRequest,
    Insert,
    Json,
    Outcome,
    OutcomeStatus,
    Plan,
    PlannedRequest,
    PlanRequest,
    RowKey,
    Update,
)
from dragoman_api.kit import exchanges
from dragoman_querydsl.writing import requests
from dragoman_querydsl.writing.apply import Sender
from dragoman_querydsl.writing.requests import planned_requests

if TYPE_CHECKING:
    from dragoman_api.changes import Change

PROPERTIES: dict[str, Any] = {
    "code": {"type": "keyword"},
    "price": {"type": "double"},
    "author": {"properties": {"name": {"type": "keyword"}}},
    "items": {"type": "nested", "properties": {"sku": {"type": "keyword"}}},
    "extra": {"type": "object", "enabled": False},
}
APPLIED, SKIPPED, REFUSED = OutcomeStatus.APPLIED, OutcomeStatus.SKIPPED, OutcomeStatus.REFUSED
CONFLICT, FAILED, UNKNOWN = OutcomeStatus.CONFLICT, OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN
DOCUMENTS = [
    '{"code":"a","price":1.10,"author":{"name":"Ada"},"extra":{"x":1,"y":2}}',
    '{"price":2,"author.name":"Bob","items":[{"sku":"s"}]}',
    '{"code":"\\u00fc","big":9007199254740993}',
]


def known(outcome: Outcome) -> RowKey:
    assert outcome.key is not None, outcome
    return outcome.key


async def undoing(es: Rig, *changes: Change) -> Plan:
    return await es.driver.plan_change(PlanRequest(changes=list(changes), undo=True))


async def everything(es: Rig, name: str) -> dict[str, tuple[str, str | None]]:
    """Return every document as its bytes and its routing."""
    await es.call("POST", f"/{name}/_refresh")
    found = {}
    for key in (await es.page(name, limit=1000)).keys:
        path = f"/{name}/_source/{requests.segment(key.id)}"
        reply = await es.raw("GET", path + (f"?routing={requests.segment(key.routing)}" if key.routing else ""))
        found[key.id] = (reply.text, key.routing)
    return found


class ChangeSetRules:
    @pytest.fixture
    async def books(self, es: Rig) -> str:
        name = await es.index(PROPERTIES, DOCUMENTS)
        await es.call("PUT", f"/{name}/_doc/r?routing=a%2Fb&refresh=true", {"code": "routed"})
        return name

    async def test_changes_of_several_rows_go_in_one_bulk_request_each_row_guarded(self, es: Rig, books: str) -> None:
        plan = await es.plan(
            Update(RowKey(books, "0"), {"author.name": "Grace"}),
            Update(RowKey(books, "1"), {"author.name": "Grace"}),
            Delete(RowKey(books, "r", "a/b")),
            Insert(books, {"code": "n"}, id='n/1%"'),
            Insert(books, {"code": "n"}),
            Update(RowKey(books, "2"), {"extra": Json('{"z":1}')}),
        )
        lines = [
            '{"update":{"_id":"0","if_seq_no":0,"if_primary_term":1}}', '{"doc":{"author":{"name":"Grace"}}}',
            '{"update":{"_id":"1","if_seq_no":1,"if_primary_term":1}}', '{"doc":{"author.name":"Grace"}}',
            '{"delete":{"_id":"r","if_seq_no":3,"if_primary_term":1,"routing":"a/b"}}',
            '{"create":{"_id":"n/1%\\""}}', '{"code":"n"}',
            '{"create":{}}', '{"code":"n"}',
            '{"index":{"_id":"2","if_seq_no":2,"if_primary_term":1}}',
            '{"code":"\\u00fc","big":9007199254740993,"extra":{"z":1}}',
        ]  # fmt: skip
        request = HttpRequest("POST", f"/{books}/_bulk?refresh=wait_for", "\n".join(lines) + "\n", requests.NDJSON)
        assert plan.requests == [request]
        done = await es.driver.apply_change(plan)
        assert [(each.change, each.status) for each in done] == [(number, APPLIED) for number in range(6)], done
        assert [each for each in es.log if each.method == "POST" and "_bulk" in each.path] == [request]
        assert (done[1].id, done[3].id, done[2].key) == ("1", 'n/1%"', None)
        after = await everything(es, books)
        assert len(after) == 5
        assert json.loads(after["1"][0])["author.name"] == "Grace"
        assert after["2"][0] == lines[-1]
        [again] = await es.apply(Update(known(done[0]), {"code": "by the key of the outcome"}))
        assert again.status is APPLIED, again.reason

    async def test_each_row_of_a_bulk_request_has_an_outcome_of_its_own(self, es: Rig, books: str) -> None:
        stale = {"seq_no": 40, "primary_term": 1}
        plan = await es.plan(
            Update(RowKey(books, "0"), {"price": 7}),
            Update(RowKey(books, "1", None, stale), {"price": 7}),
            Delete(RowKey(books, "2", None, stale)),
            Insert(books, {"code": "x"}, id="0x"),
            Insert(books, {"code": "x"}, id="r"),
            Update(RowKey(books, "nope"), {"price": 7}),
            Update(RowKey(books, "0"), {"items.sku": "x"}),
            Insert(books, {"extra": Json('{"a":1}')}, id="y"),
            Drop("*"),
        )
        await es.call("PUT", f"/{books}/_doc/0x?refresh=true", {})
        done = sorted([*plan.refusals, *await es.driver.apply_change(plan)], key=lambda each: each.change)
        statuses = [APPLIED, CONFLICT, CONFLICT, CONFLICT, CONFLICT, REFUSED, SKIPPED, APPLIED, REFUSED]
        assert [each.status for each in done] == statuses, done
        assert [each.change for each in done] == list(range(9))
        assert done[1].reason == "changed since it was read (seq_no 40 → 1)"
        assert done[3].reason == "a row with this id exists already"
        after = await everything(es, books)
        assert [after[key][0] for key in ("1", "2")] == DOCUMENTS[1:]

    async def test_an_insert_that_may_replace_writes_its_row_whether_or_not_it_is_there(
        self, es: Rig, books: str
    ) -> None:
        plan = await es.plan(*(Insert(books, {"code": "new"}, id=key, replace=True) for key in ("0", "fresh")))
        [sent] = plan.requests
        assert (sent.body or "").splitlines() == [
            '{"index":{"_id":"0"}}', '{"code":"new"}', '{"index":{"_id":"fresh"}}', '{"code":"new"}',
        ]  # fmt: skip
        assert [each.status for each in await es.driver.apply_change(plan)] == [APPLIED] * 2
        after = await everything(es, books)
        assert after["0"] == after["fresh"] == ('{"code":"new"}', None)

    async def test_a_row_the_server_refuses_fails_alone(self, es: Rig) -> None:
        name = await es.index({"d": {"type": "date", "format": "yyyy'.'MM'.'dd"}})  # too special to judge here
        done = await es.apply(*(Insert(name, {"d": text}, id=text) for text in ("2024.01.01", "soon", "2024.01.02")))
        assert [each.status for each in done] == [APPLIED, FAILED, APPLIED]
        assert "failed to parse field [d] of type [date]" in done[1].reason

    async def test_several_changes_of_a_row_are_one_write_that_has_the_effect_of_all(self, es: Rig, books: str) -> None:
        zero, one, two = (RowKey(books, each) for each in "012")
        [page] = [each for each in (await es.page(books)).keys if each.id == "2"]
        plan = await es.plan(
            Update(zero, {"price": 2, "code": "b"}), Update(zero, {"price": 3}),
            Delete(one), Insert(books, {"code": "new"}, id="1"), Update(one, {"price": 4}),
            Insert(books, {"code": "n"}, id="n"), Update(RowKey(books, "n"), {"author.name": "N"}),
            Insert(books, {"code": "gone"}, id="g"), Delete(RowKey(books, "g")),
            Update(two, {"price": 5}), Update(page, {"extra": Json('{"a":1}')}), Delete(page),
        )  # fmt: skip
        assert [each.by_row for each in plan.planned] == [[[0, 1], [2, 3, 4], [5, 6], [9, 10, 11]]]
        done = await es.driver.apply_change(plan)
        assert {each.status for each in done} == {APPLIED}, done
        assert [(each.change, each.status) for each in plan.refusals] == [(7, SKIPPED), (8, SKIPPED)]
        after = {key: json.loads(text) for key, (text, _) in (await everything(es, books)).items()}
        assert (after["0"]["price"], after["0"]["code"]) == (3, "b")
        assert after["1"] == {"code": "new", "price": 4}
        assert after["n"] == {"code": "n", "author": {"name": "N"}}
        assert sorted(after) == ["0", "1", "n", "r"]

    async def test_a_change_that_an_earlier_one_leaves_no_room_for_is_refused(self, es: Rig, books: str) -> None:
        zero = RowKey(books, "0")
        plan = await es.plan(
            Delete(zero), Update(zero, {"price": 2}), Delete(zero),
            Insert(books, {"code": "n"}, id="n"), Insert(books, {"code": "m"}, id="n"),
            Update(RowKey(books, "1"), {"price": 1}),
            Update(RowKey(books, "1", None, {"seq_no": 77, "primary_term": 1}), {"price": 2}),
        )  # fmt: skip
        assert [(each.change, each.status) for each in plan.refusals] == [
            (1, REFUSED), (2, REFUSED), (4, REFUSED), (6, CONFLICT),
        ]  # fmt: skip
        assert [row for each in plan.planned for row in each.by_row] == [[0], [3], [5]]

    async def test_one_row_under_two_names_is_one_row(self, es: Rig, books: str) -> None:
        alias = f"{books}-alias"
        await es.call("POST", "/_aliases", {"actions": [{"add": {"index": books, "alias": alias}}]})
        done = await es.apply(Update(RowKey(alias, "0"), {"price": 8}), Update(RowKey(books, "0"), {"code": "z"}))
        assert {each.status for each in done} == {APPLIED}, done
        after = json.loads(await es.source(books, "0"))
        assert (after["price"], after["code"]) == (8, "z")

    async def test_a_row_keeps_its_routing_though_the_change_does_not_name_it(self, es: Rig, books: str) -> None:
        """On one shard the row is found without it, and a plain PUT would store it without."""
        [outcome] = await es.apply(Update(RowKey(books, "r"), {"extra": Json('{"a":1}')}))
        assert (outcome.status, known(outcome).routing) == (APPLIED, "a/b")
        text, routing = (await everything(es, books))["r"]
        assert (json.loads(text), routing) == ({"code": "routed", "extra": {"a": 1}}, "a/b")

    async def test_a_document_of_several_lines_goes_by_itself_and_keeps_its_bytes(self, es: Rig, books: str) -> None:
        text = '{\n  "code": "x",\r\n  "price": 1.0\n}'
        plan = await es.plan(
            Insert(books, {"code": "a"}, id="a"),
            Insert(books, id="m", document=text),
            Insert(books, {"code": "b"}, id="b"),
        )
        assert [each.path.partition("?")[0] for each in plan.requests] == [f"/{books}/_doc/m", f"/{books}/_bulk"]
        assert {each.status for each in await es.driver.apply_change(plan)} == {APPLIED}
        assert await es.source(books, "m") == text

    async def test_a_bulk_request_revives_no_index(self, es: Rig, books: str) -> None:
        plan = await es.plan(*(Update(RowKey(books, key), {"price": 2}) for key in "012"))
        await es.call("DELETE", f"/{books}")
        done = await es.driver.apply_change(plan)
        assert [each.status for each in done] == [FAILED] * 3
        assert all(each.reason.startswith("not sent: ") for each in done)
        assert (await es.raw("HEAD", f"/{books}")).status == 404

    async def test_one_odd_row_does_not_spoil_the_request_of_the_others(self, es: Rig, books: str) -> None:
        """The server refuses a whole bulk request for an id of 513 bytes, or for half a guard."""
        done = await es.apply(
            Insert(books, {"code": "x"}, id="x" * 513),
            Update(RowKey(books, "y" * 513), {"code": "x"}),
            Update(RowKey(books, ""), {"code": "x"}),
            Update(RowKey(books, "0", None, {"seq_no": 0}), {"code": "x"}),
            Update(RowKey(books, "1"), {"code": "x"}),
            Insert(books, {"code": "x"}, id="ü" * 256),
            Insert(books, {"code": "x"}, id="i", guard={"seq_no": 0, "primary_term": 1}),
            Insert(books, {"code": "x"}, id="i", document="{}"),
            Insert(books, id="i", document="[1]"),
        )
        statuses = [REFUSED, REFUSED, SKIPPED, REFUSED, APPLIED, APPLIED, REFUSED, REFUSED, REFUSED]
        assert [each.status for each in done] == statuses, done

    # undo

    async def test_what_is_planned_can_be_taken_back_exactly(self, es: Rig, books: str) -> None:
        """Updates, removed and added fields, a replaced object, deletes with routing, new rows: all bytes return."""
        before = await everything(es, books)
        plan = await undoing(
            es,
            Update(RowKey(books, "0"), {"price": 2.5, "author.name": "Grace", "items": [{"sku": "t"}]}),
            Update(RowKey(books, "1"), {"extra": Json('{"new":[1.10]}')}),
            Delete(RowKey(books, "2")),
            Delete(RowKey(books, "r", "a/b")),
            Insert(books, {"code": "with"}, id="n"),
            Insert(books, {"code": "without"}),
            Insert(books, {"code": "over"}, id="0x", replace=True),
        )
        done = await es.driver.apply_change(plan)
        assert {each.status for each in done} == {APPLIED}, done
        assert await everything(es, books) != before
        assert len(plan.undo) == 7
        taken_back = await es.apply(*plan.undo)
        assert {each.status for each in taken_back} == {APPLIED}, taken_back
        assert await everything(es, books) == before

    async def test_the_undo_of_what_was_not_applied_changes_nothing(self, es: Rig, books: str) -> None:
        before = await everything(es, books)
        plan = await undoing(
            es,
            Update(RowKey(books, "0"), {"price": 2.5}),
            Delete(RowKey(books, "2")),
            Insert(books, {"code": "with"}, id="n"),
            Insert(books, {"code": "over"}, id="1", replace=True),
        )
        done = await es.apply(*plan.undo)
        assert {each.status for each in done} <= {CONFLICT, REFUSED}, done
        assert await everything(es, books) == before

    async def test_the_undo_does_not_touch_what_somebody_changed_since(self, es: Rig, books: str) -> None:
        plan = await undoing(
            es,
            Update(RowKey(books, "0"), {"price": 2.5}),
            Update(RowKey(books, "1"), {"price": 2.5}),
            Insert(books, {"code": "n"}, id="n"),
            Delete(RowKey(books, "2")),
        )
        await es.driver.apply_change(plan)
        for key in ("0", "n", "2"):
            await es.call("PUT", f"/{books}/_doc/{key}?refresh=true", {"code": "somebody's"})
        done = await es.apply(*plan.undo)
        assert [each.status for each in done] == [CONFLICT, APPLIED, CONFLICT, CONFLICT], done
        after = await everything(es, books)
        assert [json.loads(after[key][0]) for key in ("0", "n", "2")] == [{"code": "somebody's"}] * 3

    async def test_a_full_write_with_a_guard_takes_the_place_of_that_row_only(self, es: Rig, books: str) -> None:
        key = next(each for each in (await es.page(books)).keys if each.id == "0")
        change = Insert(books, id="0", replace=True, guard=key.guard, document='{"code":"1.0"}')
        [first, again] = [*await es.apply(change), *await es.apply(change)]
        assert (first.status, again.status) == (APPLIED, UNKNOWN)
        [second] = await es.apply(msgspec.structs.replace(change, document='{"code":"2.0"}'))
        assert second.status is CONFLICT
        missing = Insert(books, {"code": "x"}, id="nope", replace=True, guard=key.guard)
        [third] = await es.apply(missing)
        assert third.status is CONFLICT
        assert await es.source(books, "0") == '{"code":"1.0"}'


class TestChangeSetsOnFake(ChangeSetRules, OnFake):
    pass


class TestChangeSetsOnServer(ChangeSetRules, OnServer):
    async def test_what_is_taken_from_a_data_stream_comes_back_through_the_stream(self, es: Rig) -> None:
        if es.version < (8, 0):
            pytest.skip("this build has no data streams")
        stream = f"t-undo-{time.time_ns()}"  # these builds have no way to remove one
        mappings = {"properties": {"@timestamp": {"type": "date"}, "n": {"type": "long"}}}
        template = {"settings": {"number_of_replicas": 0}, "mappings": mappings}
        body = {"index_patterns": [stream], "data_stream": {}, "template": template}
        await es.call("PUT", f"/_index_template/{stream}", body)
        try:
            created = await es.raw("POST", f"/{stream}/_doc?refresh=true", {"@timestamp": "2024-01-01", "n": 1})
            if created.status != 201:
                pytest.skip(f"this build makes no data streams: {created.text[:100]}")
            [key] = (await es.page(stream)).keys
            plan = await undoing(es, Delete(key), Insert(stream, {"@timestamp": "2024-01-02"}, id="new"))
            [gone, new] = await es.driver.apply_change(plan)
            assert (gone.status, new.status) == (APPLIED, APPLIED)
            assert isinstance(plan.undo[0], Insert)
            assert plan.undo[0].object == stream
            done = await es.apply(plan.undo[0], Delete(known(new)))  # no row can be read by the stream's name
            assert [each.status for each in done] == [APPLIED, APPLIED], done
            assert [row["n"] for row in (await es.page(stream)).rows] == [1]
        finally:
            await es.raw("DELETE", f"/_data_stream/{stream}")
            await es.raw("DELETE", f"/_index_template/{stream}")


# a server that is busy, or goes away

SETTINGS = reply({"books": {"settings": {}}})
DONE = {"_index": "books", "result": "updated", "_seq_no": 9, "_primary_term": 1, "_shards": {"failed": 0}}
BUSY = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "rejected execution"}}
BLOCKED = {"status": 429, "error": {"type": "cluster_block_exception", "reason": "index [books] blocked by: [12]"}}
MOVED = {"status": 409, "error": {
    "type": "version_conflict_engine_exception",
    "reason": "[b]: version conflict, required seqNo [1], primary term [1]. current document has seqNo [9] and x",
}}  # fmt: skip


def bulk(*keys: str) -> Plan:
    made = [
        requests.RowWrite(action="update", index="books", id=key, body='{"doc":{"a":1}}', changes=[at])
        for at, key in enumerate(keys)
    ]
    return Plan(planned=[planned for planned, _ in planned_requests(made)])


def items(*told: dict[str, Any]) -> Any:
    return reply({"errors": True, "items": [{"update": each} for each in told]})


def found(*sources: dict[str, Any]) -> Any:
    return reply({"docs": [{"_index": "books", "_id": "b", "found": True, "_seq_no": 9, "_primary_term": 1,
                            "_source": each} for each in sources]})  # fmt: skip


def test_rows_that_a_busy_server_turned_away_are_sent_again_and_no_others() -> None:
    sending = Sender(bulk("a", "b", "c"))
    first = Answers(SETTINGS, items({**DONE, "_id": "a", "status": 200}, {"_id": "b", **BUSY}, {"_id": "c", **BLOCKED}))
    assert first.run(sending.send())
    again = Answers(items({**DONE, "_id": "b", "status": 200}))
    assert not again.run(sending.send())
    assert again.asked[0].body == '{"update":{"_id":"b"}}\n{"doc":{"a":1}}\n'
    assert [(each.change, each.status) for each in sending.outcomes] == [(0, APPLIED), (1, APPLIED), (2, FAILED)]


def test_a_line_ends_where_json_ends_it_and_nowhere_else() -> None:
    made = [
        requests.RowWrite(action="create", index="books", id=f"\u2028{at}", body='{"a":"\u2028\x85"}', changes=[at])
        for at in range(2)
    ]
    sending = Sender(Plan(planned=[planned for planned, _ in planned_requests(made)]))
    told = [{"create": {"_id": f"\u2028{at}", **BUSY}} for at in range(2)]
    assert Answers(SETTINGS, reply({"items": told})).run(sending.send())
    [again] = sending.waiting
    assert again.request.body == "".join(write.lines() for write in made)


def test_a_row_that_stays_turned_away_has_failed_and_says_why() -> None:
    sending = Sender(bulk("a", "b"))
    assert Answers(SETTINGS, items({"_id": "a", **BUSY}, {"_id": "b", **BUSY})).run(sending.send())
    assert Answers(items({"_id": "a", **BUSY}, {"_id": "b", **BUSY})).run(sending.send())
    assert [each.status for each in sending.outcomes] == [FAILED] * 2
    assert "rejected execution" in sending.outcomes[0].reason


def test_a_conflict_on_the_second_attempt_is_told_from_a_change_that_had_arrived() -> None:
    for source, status in (({"a": 1, "z": 2}, APPLIED), ({"a": 3}, CONFLICT)):
        sending = Sender(bulk("a", "b"))
        Answers(SETTINGS, items({**DONE, "_id": "a", "status": 200}, {"_id": "b", **BUSY})).run(sending.send())
        Answers(items({"_id": "b", **MOVED}), found(source)).run(sending.send())
        assert [each.status for each in sending.outcomes] == [APPLIED, status]


def write(key: str | None, action: str = "update", index: str = "books", **more: Any) -> requests.RowWrite:
    body = None if action == "delete" else '{"doc":{"a":1}}' if action == "update" else '{"a":1}'
    return requests.RowWrite(action=action, index=index, id=key, body=body, **more)


def sending_of(*writes: requests.RowWrite) -> Sender:
    for number, each in enumerate(writes):
        each.changes = [number]
    return Sender(Plan(planned=[planned for planned, _ in planned_requests(writes)]))


@pytest.mark.parametrize(
    ("action", "result", "applied"),
    [
        ("create", "created", True), ("create", "updated", False), ("create", "noop", False),
        ("index", "created", True), ("index", "updated", True), ("index", "noop", False),
        ("update", "updated", True), ("update", "noop", True), ("update", "created", False),
        ("delete", "deleted", True), ("delete", "updated", False), ("delete", "", False),
    ],
)  # fmt: skip
def test_each_action_is_done_by_the_results_that_it_can_have(action: str, result: str, *, applied: bool) -> None:
    """Of the first row, and of the second."""
    sending = sending_of(write("a", action), write("b", action))
    told = [{"_index": "books", "_id": key, "result": result, "status": 200} for key in "ab"]
    looked_up = [] if applied else [found({"a": 3}, {"a": 3})]
    Answers(SETTINGS, reply({"items": [{action: each} for each in told]}), *looked_up).run(sending.send())
    assert [each.status is APPLIED for each in sending.outcomes] == [applied] * 2


def test_requests_of_several_indices_are_each_judged_by_their_own_and_sent_again() -> None:
    """Each name is looked up once; what is turned away of one request does not replace what is of another."""
    keys = ("a", "b")
    sending = sending_of(*(write(key, index=index) for index in ("books", "alias", "hidden") for key in keys))
    settings = {"books": SETTINGS, "alias": reply({"books-2": {"settings": {}}}), "hidden": reply("", 403)}

    def busy(index: str) -> Any:
        return items({**DONE, "_index": index, "_id": "a", "status": 200}, {"_index": index, "_id": "b", **BUSY})

    first = Answers(
        settings["books"], busy("books"), settings["alias"], busy("books-2"), settings["hidden"], busy("any"),
    )  # fmt: skip
    assert first.run(sending.send())
    assert [each.status for each in sending.outcomes] == [APPLIED, FAILED] * 3
    assert [(each.changes, each.request.path.split("/")[1]) for each in sending.waiting] == [
        ([1], "books"), ([3], "alias"), ([5], "hidden"),
    ]  # fmt: skip
    again = [items({**DONE, "_index": index, "_id": "b", "status": 200}) for index in ("books", "books-2", "any")]
    assert not Answers(*again).run(sending.send())
    assert {each.status for each in sending.outcomes} == {APPLIED}
    assert [known(each).object for each in sending.outcomes] == ["books"] * 2 + ["books-2"] * 2 + ["any"] * 2


def test_a_row_of_another_index_than_its_own_is_not_taken_for_it() -> None:
    for index, status in (("books", APPLIED), ("books-2", UNKNOWN), ("", UNKNOWN)):
        sending = sending_of(write("a"), write("b"))
        told = items(*({**DONE, "_index": index, "_id": key, "status": 200} for key in "ab"))
        looked_up = [] if status is APPLIED else [found({"a": 3}, {"a": 3})]
        Answers(SETTINGS, told, *looked_up).run(sending.send())
        assert [each.status for each in sending.outcomes] == [status] * 2


@pytest.mark.parametrize("lines", [True, False])
def test_every_row_of_a_lost_answer_is_named_and_read_with_its_routing(*, lines: bool) -> None:
    """The second is there as it was to be, the first is not; a routing is a text, an empty one none."""
    rows = [write("a", routing="r/1"), write("b", routing="0")] if lines else [write("b", routing="r&1")]
    sending = sending_of(*rows)
    exchange = sending.send()
    next(exchange)
    exchange.send([SETTINGS])
    [read] = exchange.throw(ConnectionFailedError("lost", details={"sent": True}))
    wanted = (
        [{"_id": "a", "routing": "r/1"}, {"_id": "b", "routing": "0"}] if lines else [{"_id": "b", "routing": "r&1"}]
    )
    assert json.loads(read.body or "")["docs"] == wanted
    stored = {"_index": "books", "found": True, "_seq_no": 9, "_primary_term": 1}
    docs = [stored | {"_id": "a", "_source": {"a": 3}}] * lines + [stored | {"_id": "b", "_source": {"a": 1, "z": 2}}]
    with pytest.raises(StopIteration):
        exchange.send([reply({"docs": docs})])
    assert [(each.id, each.status) for each in sending.outcomes] == [("a", UNKNOWN)] * lines + [("b", APPLIED)]


def test_every_row_of_a_lost_answer_is_named_though_nothing_can_be_read() -> None:
    sending = sending_of(write("a"), write("b"), write("c", "create"))
    exchange = sending.send()
    next(exchange)
    exchange.send([SETTINGS])
    exchange.throw(ConnectionFailedError("lost", details={"sent": True}))
    with pytest.raises(StopIteration):
        exchange.throw(ConnectionFailedError("lost again"))
    assert [(each.id, each.status) for each in sending.outcomes] == [(key, UNKNOWN) for key in "abc"]


def test_the_key_of_an_outcome_holds_the_first_sequence_number_and_the_routing() -> None:
    """0 is a number; a row that is gone has no key."""
    sending = sending_of(write("a", routing="r"), write("b", "delete"), write("c", "index"))
    zero = {"_index": "books", "_seq_no": 0, "_primary_term": 1, "status": 200}
    told = [{"update": zero | {"_id": "a", "result": "updated"}}, {"delete": zero | {"_id": "b", "result": "deleted"}}]
    told.append({"index": zero | {"_id": "c", "result": "created", "_shards": {"failed": 1}}})
    Answers(SETTINGS, reply({"items": told})).run(sending.send())
    guard = {"seq_no": 0, "primary_term": 1}
    assert [each.key for each in sending.outcomes] == [
        RowKey("books", "a", "r", guard),
        None,
        RowKey("books", "c", None, guard),
    ]
    assert [each.reason for each in sending.outcomes] == ["", "", "1 copies of the shard failed to store it"]


@pytest.mark.parametrize(
    ("body", "stored", "holds"),
    [
        ('{"doc":{"o":{"a":1}}}', '{"o":{"a":1,"b":{"c":2}},"z":1}', True),
        ('{"doc":{"o":{"b":{"c":2}}}}', '{"o":{"a":1,"b":{"c":2,"d":3}}}', True),
        ('{"doc":{"o":{"b":{"c":2}}}}', '{"o":{"a":1,"b":{"c":3}}}', False),
        ('{"doc":{"o":{"a":1}}}', '{"o":[{"a":1}]}', False),
        ('{"doc":{"o":[1]}}', '{"o":[1,2]}', False),
        ('{"doc":{"a":1,"b":2}}', '{"a":1,"b":3}', False),
        ('{"doc":{"a":9007199254740993}}', '{"a":9007199254740992}', False),
        ('{"doc":{"a":null}}', '{"b":1}', False),
    ],
)
def test_a_partial_update_is_held_by_a_row_with_all_its_values_whatever_else_the_row_has(
    body: str, stored: str, *, holds: bool
) -> None:
    row = write("b")
    row.body = body
    sending = sending_of(row)
    there = f'{{"docs":[{{"_index":"books","_id":"b","found":true,"_source":{stored}}}]}}'
    Answers(SETTINGS, reply("<html>", 504), reply(there)).run(sending.send())
    assert [each.status for each in sending.outcomes] == [APPLIED if holds else UNKNOWN]


@pytest.mark.parametrize(
    ("second", "status"),
    [
        ({**DONE, "_id": "b", "status": 200}, APPLIED),
        ({**DONE, "_id": "b"}, UNKNOWN),
        ({**DONE, "_id": "b", "status": 301}, FAILED),
        ({"_id": "b", "status": 404, "result": "not_found"}, CONFLICT),
        ({"_id": "b", "status": 404, "error": {"type": "document_missing_exception", "reason": "[b]: x"}}, CONFLICT),
        ({"_id": "b", "status": 404}, FAILED),
        (None, UNKNOWN),
        ("third", UNKNOWN),
        ("<html>", UNKNOWN),
    ],
)
def test_the_answer_to_the_second_row_is_judged_by_itself_and_one_of_another_form_leaves_all_open(
    second: Any, status: OutcomeStatus
) -> None:
    """Where the number of answers, or one without a status, tells nothing of the others either."""
    first = {**DONE, "_id": "a", "status": 200}
    told = [first, *([second] if isinstance(second, dict) else [first, first] if second == "third" else [])]
    sending = sending_of(write("a"), write("b"))
    whole = status is UNKNOWN
    answer = reply(second) if second == "<html>" else items(*told)
    Answers(SETTINGS, answer, *[found({"a": 3}, {"a": 3})] * whole).run(sending.send())
    assert [each.status for each in sending.outcomes] == [UNKNOWN if whole else APPLIED, status]


def test_a_whole_request_that_was_turned_away_is_sent_again() -> None:
    sending = Sender(bulk("a", "b"))
    busy = reply({"error": BUSY["error"], "status": 429}, 429)
    assert Answers(SETTINGS, busy).run(sending.send())
    again = Answers(items({**DONE, "_id": "a", "status": 200}, {**DONE, "_id": "b", "status": 200}))
    assert not again.run(sending.send())
    assert {each.status for each in sending.outcomes} == {APPLIED}


async def test_rows_that_stay_turned_away_are_sent_after_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = list[float]()
    monkeypatch.setattr(exchanges, "jittered", lambda pause: pauses.append(pause) or 0.0)
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index(PROPERTIES, DOCUMENTS)
        plan = await es.plan(*(Update(RowKey(name, key), {"price": 9}) for key in "01"))
        es.fake.misbehave("answer", status=429, body=BUSY, on=f"/{name}/_bulk")
        es.fake.requests.clear()
        done = await es.driver.apply_change(plan)
        assert [each.status for each in done] == [FAILED] * 2
        assert sum("_bulk" in request.path for request in es.fake.requests) == 5
    assert pauses == [0.2, 0.6, 1.8, 5.4]


def test_an_answer_about_other_rows_leaves_all_unknown() -> None:
    sending = Sender(bulk("a", "b"))
    Answers(SETTINGS, items({**DONE, "_id": "a", "status": 200}), found({"a": 2}, {"a": 2})).run(sending.send())
    assert [each.status for each in sending.outcomes] == [UNKNOWN] * 2


async def test_rows_of_a_lost_answer_are_looked_up_and_told_as_they_are() -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index(PROPERTIES, DOCUMENTS)
        changes: list[Change] = [
            Update(RowKey(name, "0"), {"price": 9}),
            Delete(RowKey(name, "1")),
            Insert(name, {"code": "n"}, id="n"),
        ]
        plan = await es.plan(*changes)
        es.fake.misbehave("cut", on=f"/{name}/_bulk")
        done = await es.driver.apply_change(plan)
        assert [each.status for each in done] == [APPLIED] * 3
        assert all("its answer was lost" in each.reason for each in done)
        es.fake.behave()
        plan = await es.plan(Update(RowKey(name, "0"), {"price": 10}), Insert(name, {"code": "m"}, id="m"))
        es.fake.misbehave("drop", on=f"/{name}/_bulk")
        done = await es.driver.apply_change(plan)
        assert [each.status for each in done] == [UNKNOWN] * 2
        assert all(each.reason for each in done)


async def test_a_request_that_never_left_raises_before_the_first_outcome_and_is_one_after_it() -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index(PROPERTIES, DOCUMENTS)
        plan = await es.plan(*(Update(RowKey(name, key), {"price": 9}) for key in "012"))
        single = await es.plan(Update(RowKey(name, "0"), {"price": 9}))
        twice = Plan(
            planned=[*single.planned, *(PlannedRequest(request=each, changes=[1]) for each in single.requests)]
        )
        await es.fake.__aexit__(None, None, None)
        es.made.clear()
        for each in (plan, single, twice):
            with pytest.raises(ConnectionFailedError):
                await es.driver.apply_change(each)


def test_a_bulk_request_has_bounds() -> None:
    made = [
        requests.RowWrite(
            action="create", index="books", id=str(at), body=json.dumps({"a": "x" * 100_000}), changes=[at]
        )
        for at in range(50)
    ]
    planned = [each for each, _ in planned_requests(made)]
    assert len(planned) == 2
    assert all(len(each.request.body or "") <= requests.BULK_BYTES for each in planned)
    assert [number for each in planned for number in each.changes] == list(range(50))
