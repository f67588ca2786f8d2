"""Changes of which one part is good and another is not: nothing of a row is sent in part, and nothing good is lost."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig
from drivers.replies import Answers, reply
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import (
    CutJson,
    Delete,
    Drop,
    Insert,
    Json,
    OutcomeStatus,
    Plan,
    PlanRequest,
    QueryError,
    RowKey,
    Update,
)
from dragoman_api.changes import InsertBatch
from dragoman_api.json_text import MAX_DIGITS
from dragoman_querydsl.columns.mapping import FieldCaps, IndexMapping, read
from dragoman_querydsl.writing import plan, planned_rows, requests
from dragoman_querydsl.writing.apply import Sender
from dragoman_querydsl.writing.edited_values import respelled
from dragoman_querydsl.writing.plan import described, plan_changes
from dragoman_querydsl.writing.planned_rows import digest, read_rows, same
from dragoman_querydsl.writing.requests import RowWrite, planned_requests

if TYPE_CHECKING:
    from dragoman_api.changes import Change

MAPPING = {"properties": {"n": {"type": "long"}, "k": {"type": "keyword"}, "o": {"properties": {"a": {"type": "long"}}},
                          "arr": {"type": "nested", "properties": {"x": {"type": "long"}}}}}  # fmt: skip
VIEW = read("books", {"books": IndexMapping(msgspec.Raw(json.dumps(MAPPING).encode()))}, FieldCaps(["books"]))
SETTINGS = reply({"books": {"settings": {}}})
PROPERTIES: dict[str, Any] = {"n": {"type": "long"}, "k": {"type": "keyword"}, "t": {"type": "text"}}


def stored(key: str = "1", **more: Any) -> dict[str, Any]:
    source = {"n": 1, "k": "old", "o": {"a": 1}}
    return {"_index": "books", "_id": key, "found": True, "_seq_no": 3, "_primary_term": 2, "_source": source} | more


def planned(*changes: Change, docs: Any = None, undo: bool = False) -> Plan:
    answers = [] if docs is None else [reply({"docs": list(docs)})]
    script = Answers(SETTINGS, *answers)
    return script.run(plan_changes(PlanRequest(changes=list(changes), undo=undo), {"books": VIEW}))


def key(row: str = "1", **guard: int) -> RowKey:
    return RowKey("books", row, None, dict(guard))


def test_E28_one_bad_column_keeps_the_good_one_from_being_sent() -> None:
    for values in ({"k": "new", "n": "x"}, {"n": "x", "k": "new"}):
        made = planned(Update(key(), values), docs=[stored()])
        assert made.planned == []
        [outcome] = made.refusals
        assert outcome.status is OutcomeStatus.REFUSED
        assert "n" in outcome.reason.split(":")[0]
        assert "k:" not in outcome.reason


def test_E23_one_cut_cell_of_several_refuses_the_row() -> None:
    for values in ({"k": CutJson("abc"), "n": 5}, {"n": 5, "k": CutJson("abc")}):
        made = planned(Update(key(), values), docs=[stored()])
        assert (made.planned, [each.status for each in made.refusals]) == ([], ["refused"])


def test_every_bad_column_of_a_row_is_told_at_once() -> None:
    [outcome] = planned(Update(key(), {"n": "x", "nope": 1, "k": "fine"}), docs=[stored()]).refusals
    assert "nope" in outcome.reason
    assert "'x'" in outcome.reason


def test_a_value_and_a_part_of_it_are_not_changed_at_once() -> None:
    mapping = msgspec.Raw(b'{"properties":{"f":{"type":"flattened"}}}')
    view = read("books", {"books": IndexMapping(mapping)}, FieldCaps(["books"]))
    for values in ({"f": '{"a":"x"}', "f.a": "y"}, {"f.a": "y", "f": '{"a":"x"}'}):
        request = PlanRequest(changes=[Update(key(), values)])
        answers = Answers(SETTINGS, reply({"docs": [stored(_source={"f": {"a": "old"}})]}))
        made = answers.run(plan_changes(request, {"books": view}))
        assert made.planned == []
        [outcome] = made.refusals
        assert (outcome.status, outcome.reason) == ("refused", "'a' is changed as a whole and in part")
    request = PlanRequest(changes=[Update(key(), {"f": '{"a":{"b":"x"}}', "f.a.b": "y"})])
    answers = Answers(SETTINGS, reply({"docs": [stored(_source={"f": {"a": {"b": "old"}}})]}))
    [outcome] = answers.run(plan_changes(request, {"books": view})).refusals
    assert outcome.reason == "'b' is changed as a whole and in part"


def test_each_change_of_several_is_judged_by_itself() -> None:
    made = planned(
        Update(key("1"), {"n": 5}), Update(key("2"), {"n": "x"}), Delete(RowKey("books", "")), Delete(key("3")),
        Update(key("4"), {"n": 7}), Drop("Books"),
        docs=[stored("1"), stored("2"), stored("3"), {"_index": "books", "_id": "4", "found": False}],
    )  # fmt: skip
    assert [each.changes for each in made.planned] == [[0, 3]]
    [lines] = [each.body or "" for each in made.requests]
    assert [json.loads(line) for line in lines.splitlines()] == [
        {"update": {"_id": "1", "if_seq_no": 3, "if_primary_term": 2}}, {"doc": {"n": 5}},
        {"delete": {"_id": "3", "if_seq_no": 3, "if_primary_term": 2}},
    ]  # fmt: skip
    assert made.planned[0].rows == [[0], [3]]
    told = [(each.change, each.status, each.id) for each in made.refusals]
    assert [each[0] for each in told] == [1, 2, 4, 5]
    assert [each[1] for each in told] == ["refused", "skipped", "refused", "refused"]
    assert told[0][2] == "2"


def test_nothing_is_written_to_an_index_behind_its_drop() -> None:
    """Drops are sent last, so a later insert would be sent before its index is deleted, and lost with it."""
    made = planned(Insert("books", {"n": 1}), Drop("books"), Insert("books", {"n": 2}), Drop("books"))
    assert [each.changes for each in made.planned] == [[0], [1]]
    assert [(each.change, each.status) for each in made.refusals] == [(2, "refused"), (3, "refused")]


@pytest.mark.parametrize("routing", [None, "a+b", "a b", "ä&c", "a/b"])
def test_E28_E30_routing_is_carried_as_it_is_in_paths_and_in_lines(routing: str | None) -> None:
    """A `+` in a query is a blank unless it is encoded."""
    encoded = {None: "", "a+b": "a%2Bb", "a b": "a%20b", "ä&c": "%C3%A4%26c", "a/b": "a%2Fb"}[routing]
    row = RowKey("books", "1", routing)
    doc = stored() | ({"_routing": routing} if routing else {})
    for change, method in ((Update(row, {"n": 5}), "POST"), (Delete(row), "DELETE")):
        [sent] = planned(change, docs=[doc]).requests
        assert sent.method == method
        assert sent.path.partition("routing=")[2] == encoded
    made = planned(Update(row, {"n": 5}), Delete(RowKey("books", "2", routing)), docs=[doc, doc | {"_id": "2"}])
    heads = [json.loads(line) for line in (made.requests[0].body or "").splitlines()]
    assert [each.get("routing") for each in (heads[0]["update"], heads[2]["delete"])] == [routing, routing]


@pytest.mark.parametrize(
    ("action", "row", "guard", "request_"),
    [
        ("create", "1", {}, "PUT /b/_doc/1?op_type=create&refresh=wait_for"),
        ("index", "1", {}, "PUT /b/_doc/1?refresh=wait_for"),
        ("index", "1", {"if_seq_no": 3, "if_primary_term": 2},
         "PUT /b/_doc/1?if_seq_no=3&if_primary_term=2&refresh=wait_for"),
        ("create", None, {}, "POST /b/_doc?refresh=wait_for"),
        ("update", "a/b", {"if_seq_no": 3, "if_primary_term": 2},
         "POST /b/_update/a%2Fb?if_seq_no=3&if_primary_term=2&refresh=wait_for"),
        ("delete", "1", {}, "DELETE /b/_doc/1?refresh=wait_for"),
    ],
)  # fmt: skip
def test_E28_E29_E30_each_action_has_its_request(action: str, row: str | None, guard: Any, request_: str) -> None:
    write = RowWrite(action=action, index="b", id=row, body=None if action == "delete" else "{}", guard=guard)
    sent = write.planned().request
    assert f"{sent.method} {sent.path}" == request_
    off = RowWrite(action=action, index="b", id=row, body=None, guard=guard, refresh=False).planned().request
    assert "refresh" not in off.path


def writes(number: int, **more: Any) -> list[RowWrite]:
    return [RowWrite(**{"action": "index", "index": "b", "id": str(at), "body": "{}", "changes": [at]} | more)
            for at in range(number)]  # fmt: skip


def test_rows_are_collected_by_index_and_by_refresh() -> None:
    mixed = [*writes(2), *writes(2, index="c"), *writes(1, refresh=False), *writes(1, body='{\n"a":1}')]
    made = [(each.request.path, len(batch)) for each, batch in planned_requests(mixed)]
    assert made == [
        ("/b/_doc/0?refresh=wait_for", 1), ("/b/_bulk?refresh=wait_for", 2), ("/c/_bulk?refresh=wait_for", 2),
        ("/b/_doc/0", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("ends", ["\n", "\r", "\r\n"])
def test_a_document_of_several_lines_goes_alone_and_keeps_its_bytes(ends: str) -> None:
    body = f'{{{ends}"a":1}}'
    [(first, _), (second, _)] = planned_requests([*writes(1, body=body), *writes(1, id="x")])
    assert (first.request.body, second.request.body) == (body, "{}")


def test_a_bulk_request_is_bounded_in_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BULK_ROWS", 3)
    assert [len(batch) for _, batch in planned_requests(writes(7))] == [3, 3, 1]
    monkeypatch.setattr(requests, "BULK_ROWS", 100)
    line = len(writes(1)[0].lines().encode())
    for room, sizes in ((2 * line, [2, 2, 2, 1]), (2 * line + 1, [2, 2, 2, 1]), (3 * line - 1, [2, 2, 2, 1]),
                        (3 * line, [3, 3, 1]), (1, [1] * 7)):  # fmt: skip
        monkeypatch.setattr(requests, "BULK_BYTES", room)
        assert [len(batch) for _, batch in planned_requests(writes(7))] == sizes


@pytest.mark.parametrize(
    ("row", "roams"),
    [("..", True), (".", True), ("a/..", True), ("../a", True), ("a\\..\\b", True), ("a/./b", True), ("...", False),
     ("a..", False), ("..a", False), ("a/..b", False), ("/", False), ("a.b", False)],
)  # fmt: skip
def test_an_id_that_reads_like_a_step_goes_in_a_body(row: str, roams: bool) -> None:
    """A proxy would follow it to another row or index."""
    [(made, _)] = planned_requests(writes(1, id=row))
    assert made.request.path.startswith("/b/_bulk") is roams


def test_the_size_of_a_write_is_that_of_what_it_sends_and_of_what_takes_it_back() -> None:
    undo = Insert("b", {}, "1", document="ä" * 10)
    assert RowWrite(index="b", id="1", body="ä").size == 2
    assert RowWrite(index="b", id="1", body="ab", undo=undo).size == 22
    assert RowWrite(index="b", id="1", undo=Delete(key())).size == 0


# several changes of one row -------------------------------------------------------------------------------------------


def test_changes_of_one_row_are_one_request_in_their_order() -> None:
    made = planned(Update(key(), {"n": 5}), Update(key(), {"k": "new", "n": 6}), docs=[stored()])
    [sent] = made.requests
    assert json.loads(sent.body or "") == {"doc": {"n": 6, "k": "new"}}
    assert made.planned[0].changes == [0, 1]


def test_a_row_that_is_deleted_takes_no_further_change() -> None:
    made = planned(Delete(key()), Update(key(), {"n": 5}), docs=[stored()])
    assert [(each.method, planned_.changes) for each, planned_ in zip(made.requests, made.planned, strict=True)] == [
        ("DELETE", [0])
    ]
    assert [(each.change, each.status) for each in made.refusals] == [(1, "refused")]


def test_guards_of_one_row_have_to_agree() -> None:
    """E28: the same twice is one; another one is a conflict, whichever comes first."""
    same, other = {"seq_no": 9, "primary_term": 2}, {"seq_no": 8, "primary_term": 2}
    made = planned(Update(key(**same), {"n": 5}), Update(key(**same), {"k": "x"}), docs=[stored()])
    assert "if_seq_no=9&if_primary_term=2" in made.requests[0].path
    made = planned(Update(key(**same), {"n": 5}), Update(key(**other), {"k": "x"}), docs=[stored()])
    assert [(each.change, each.status) for each in made.refusals] == [(1, "conflict")]
    assert "if_seq_no=9" in made.requests[0].path
    assert json.loads(made.requests[0].body or "") == {"doc": {"n": 5}}


@pytest.mark.parametrize(
    "guard", [{"seq_no": 1}, {"seq_no": 1, "primary_term": "2"}, {"version": 1}, {"sha256": "0" * 64}]
)
def test_a_guard_of_another_form_or_another_document_stops_the_change(guard: dict[str, Any]) -> None:
    made = planned(Update(RowKey("books", "1", None, guard), {"n": 5}), docs=[stored()])
    assert made.planned == []
    assert made.refusals[0].status == ("conflict" if "sha256" in guard else "refused")


def test_a_guard_by_value_holds_for_the_same_values_in_another_order() -> None:
    same = digest(b'{"o":{"a":1},"k":"old","n":1}')
    made = planned(Update(RowKey("books", "1", None, {"sha256": same}), {"n": 5}), docs=[stored()])
    assert "if_seq_no=3&if_primary_term=2" in made.requests[0].path
    assert digest(b'{"n":1}') != digest(b'{"n":1.0}') != digest(b'{"n":"1"}')
    assert digest(b'{"n":1}') != digest(b'{"n":["1"]}')


@pytest.mark.parametrize("digits", [MAX_DIGITS, MAX_DIGITS + 1, 10_000])
def test_a_guard_by_value_holds_for_integers_that_are_too_long_for_python(digits: int) -> None:
    one, other = (f'{{"n":{"9" * (digits - 1)}{last}}}' for last in (8, 9))
    row = json.dumps(stored(_source="?")).replace('"?"', one)
    for document, status in ((one, []), (other, ["conflict"])):
        change = Update(RowKey("books", "1", None, {"sha256": digest(document.encode())}), {"k": "new"})
        script = Answers(SETTINGS, reply(f'{{"docs":[{row}]}}'))
        made = script.run(plan_changes(PlanRequest(changes=[change]), {"books": VIEW}))
        assert [each.status for each in made.refusals] == status


@pytest.mark.parametrize("there", [b'{"n":\xff}', b'{"n":1', b'{"n":' + b"[" * 200_000 + b"]" * 200_000 + b"}"])
def test_a_stored_document_that_cannot_be_read_equals_only_itself(there: bytes) -> None:
    assert not same(there, b'{"n":1}')
    assert not same(b'{"n":1}', there)
    assert same(there, there)


@pytest.mark.parametrize(
    ("change", "undo", "names"),
    [
        (Insert("books", {"n": 1}), False, {"books"}),
        (Update(key(), {"n": 1}), False, {"books"}),
        (Update(key(), {"n": 1}), True, {"books"}),
        (Delete(key()), False, set()),
        (Delete(key()), True, {"books"}),
    ],
)
def test_a_plan_takes_the_columns_that_are_known_if_it_types_values_or_keeps_rows(
    change: Change, names: set[str], *, undo: bool
) -> None:
    """Otherwise it would read the mapping again for every edit."""
    assert described(PlanRequest(changes=[change], undo=undo)) == names


@pytest.mark.parametrize(
    ("change", "undo", "read"),
    [
        (Insert("books", {"n": 1}, "1"), False, False),
        (Insert("books", {"n": 1}, "1"), True, True),
        (Insert("books", {"n": 1}, "1", replace=True, guard={"seq_no": 3, "primary_term": 2}), False, True),
        (Insert("books", document='{"n":1}', id="1"), False, True),
        (Insert("books", document='{"n":1}', id="1", replace=True), False, False),
        (Insert("books", {"n": 1}), True, False),
    ],
)
def test_an_insert_reads_the_row_that_it_may_replace(change: Insert, *, undo: bool, read: bool) -> None:
    answers = [reply({"docs": [stored()]})] if read else []
    script = Answers(SETTINGS, *answers)
    script.run(plan_changes(PlanRequest(changes=[change], undo=undo), {"books": VIEW}))
    assert [each.path for each in script.asked if each.path.endswith("/_mget")] == ["/books/_mget"] * read


@pytest.mark.parametrize(("undo", "kept", "sent"), [(True, True, True), (True, False, False), (False, False, True)])
def test_a_deletion_that_could_not_be_taken_back_is_not_planned(*, undo: bool, kept: bool, sent: bool) -> None:
    row = stored()
    if not kept:
        del row["_source"]
    made = planned(Delete(key(seq_no=3, primary_term=2)), docs=[row], undo=undo)
    assert (bool(made.planned), bool(made.refusals)) == (sent, not sent)


def test_a_row_without_an_id_is_not_read() -> None:
    [outcome] = planned(Update(key(""), {"n": 1})).refusals
    assert outcome.status is OutcomeStatus.SKIPPED


@pytest.mark.parametrize(("index", "sent"), [("books", True), ("other", True), ("a,b", False), ("b*", False)])
def test_a_row_of_a_hidden_alias_comes_from_one_index(index: str, *, sent: bool) -> None:
    hidden = reply({"error": {"type": "security_exception", "reason": "no"}, "status": 403}, 403)
    script = Answers(hidden, reply({"docs": [stored(_index=index)]}))
    made = script.run(plan_changes(PlanRequest(changes=[Update(key(), {"n": 5})], undo=False), {"books": VIEW}))
    assert bool(made.planned) is sent
    assert bool(made.refusals) is not sent


def test_a_row_that_cannot_be_read_is_told_by_itself() -> None:
    lost = reply({"error": {"type": "x_exception", "reason": "broken"}, "status": 400}, 400)
    [fault] = Answers(lost).run(read_rows("books", [("1", None)]))
    assert isinstance(fault, QueryError)
    assert "broken" in fault.message
    good = reply({"docs": [stored("2")]})
    script = Answers(lost, lost, good)
    fault, row = script.run(read_rows("books", [("1", None), ("2", None)]))
    assert isinstance(fault, QueryError)
    assert isinstance(row, tuple)
    assert [json.loads(each.body or "")["docs"] for each in script.asked[1:]] == [[{"_id": "1"}], [{"_id": "2"}]]


def test_an_answer_with_too_few_or_too_many_rows_is_taken_for_none_of_them() -> None:
    none, both = reply({"docs": []}), reply({"docs": [stored("2"), stored("2")]})
    script = Answers(reply({"docs": [stored("2")]}), none, reply({"docs": [stored("2")]}))
    fault, row = script.run(read_rows("books", [("1", None), ("2", None)]))
    assert isinstance(fault, QueryError)
    assert fault.message == "the server answered 0 of 1 documents"
    assert isinstance(row, tuple)
    [fault] = Answers(both).run(read_rows("books", [("1", None)]))
    assert isinstance(fault, QueryError)
    assert fault.message == "the server answered 2 of 1 documents"


def test_a_row_that_the_server_cannot_read_is_refused_with_its_reason_and_alone() -> None:
    broken = {"_index": "books", "_id": "1", "error": {"type": "x_exception", "reason": "the shard is broken"}}
    made = planned(Update(key("1"), {"n": 5}), Update(key("2"), {"n": 5}), docs=[broken, stored("2")])
    assert [each.changes for each in made.planned] == [[1]]
    [outcome] = made.refusals
    assert (outcome.change, outcome.status, outcome.id) == (0, "refused", "1")
    assert "the shard is broken" in outcome.reason


@pytest.mark.parametrize("source", [[1], "x", 5])
def test_a_document_that_is_no_object_is_no_row(source: Any) -> None:
    [fault] = Answers(reply({"docs": [stored(_source=source)]})).run(read_rows("books", [("1", None)]))
    assert isinstance(fault, QueryError)


@pytest.mark.parametrize(
    ("number", "said"),
    [("-1.5E10", False), ("1.5E10", False), ("-1.0E7", False), ("-12345678.5", True), ("-1.50E10", True),
     ("-1.5e10", True), ("-0", True), ("-1.5", False), ("0", False), ("0.0", False), ("-0.0", False), ("0.00", True),
     ("0e0", True), ("0.001", False), ("0.0009", True), ("9.0E-4", False), ("1.0E-3", True), ("9999999.0", False),
     ("10000000.0", True), ("1.0E7", False), ("1E5", True), ("1e5", True), ("100000.0", False),
     ("9.007199254740991E15", False), ("9.007199254740992E15", True), ("9007199254740993", False), ("4.9E-324", True)],
)  # fmt: skip
def test_a_number_is_respelled_unless_the_server_writes_it_so(number: str, *, said: bool) -> None:
    assert respelled(f'{{"a":{number}}}'.encode()) == (number if said else "")
    assert respelled(f'{{"a":["-0",1.5,{{"b":{number}}}]}}'.encode()) == (number if said else ""), "behind others"


# one of several that differs, and the second of two


def plan_of(*changes: Change, settings: Any = SETTINGS, docs: Any = None, found: Any = VIEW, **more: Any) -> Plan:
    """Plan changes of one name; a list of lists are the answers to several reads."""
    reads = [] if docs is None else [reply({"docs": some}) for some in (docs if isinstance(docs[0], list) else [docs])]
    return Answers(settings, *reads).run(plan_changes(PlanRequest(changes=[*changes], **more), {"books": found}))


def heads(made: Plan) -> list[dict[str, Any]]:
    """Return the first line of each row of the one bulk request of a plan."""
    [request] = made.requests
    lines = [json.loads(line) for line in (request.body or "").splitlines()]
    return [line for line in lines if {*line} <= {"create", "index", "update", "delete"}]


def test_rows_of_one_id_and_several_routings_are_several_rows() -> None:
    changes = [Update(RowKey("books", "1", routing), {"n": at}) for at, routing in enumerate("ab")]
    docs = [stored(_routing=routing, _seq_no=at) for at, routing in enumerate("ab")]
    script = Answers(SETTINGS, reply({"docs": docs}))
    made = script.run(plan_changes(PlanRequest(changes=[*changes]), {"books": VIEW}))
    assert json.loads(script.asked[1].body or "")["docs"] == [{"_id": "1", "routing": each} for each in "ab"]
    assert [(each["update"]["routing"], each["update"]["if_seq_no"]) for each in heads(made)] == [("a", 0), ("b", 1)]
    inserts = [Insert("books", {"n": at}, "1", routing=routing) for at, routing in enumerate("ab")]
    assert [each["create"] for each in heads(plan_of(*inserts))] == [{"_id": "1", "routing": each} for each in "ab"]


def test_rows_are_read_in_batches_and_all_of_them_count(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [Delete(key(str(at))) for at in range(5)]
    docs = [stored(str(at), _seq_no=at) for at in range(5)]
    monkeypatch.setattr(plan, "_BATCH", 2)
    made = plan_of(*changes, docs=[docs[:2], docs[2:4], docs[4:]])
    assert [(each["delete"]["_id"], each["delete"]["if_seq_no"]) for each in heads(made)] == [
        (str(at), at) for at in range(5)
    ]
    size = len(json.dumps(docs[0]["_source"]))
    for room, fits in ((5 * size, True), (5 * size - 1, False)):
        monkeypatch.setattr(plan, "PLAN_BYTES", room)
        if fits:
            plan_of(*changes, docs=[docs[:2], docs[2:4], docs[4:]])
        else:
            with pytest.raises(QueryError) as caught:
                plan_of(*changes, docs=[docs[:2], docs[2:4], docs[4:]])
            assert caught.value.code == "plan-too-large"
    monkeypatch.setattr(plan, "PLAN_BYTES", 1)
    assert plan_of(changes[0], docs=docs[:1]).planned, "one row has no smaller plan"


def test_a_document_that_could_not_be_brought_back_is_changed_only_in_part_and_without_an_undo() -> None:
    """Its comment is lost in what was read; a partial update leaves it where it is."""
    row = json.dumps(stored(_source="?")).replace('"?"', '{"n":1 /* c */}')
    changes: list[tuple[Change, bool, bool]] = [
        (Update(key(), {"n": 5}), False, True),
        (Update(key(), {"n": 5}), True, False),
        (Update(key(), {"arr": Json('{"x":1}')}), False, False),
        (Update(key(), {"n": 5, "arr": Json('{"x":1}')}), False, False),
        (Delete(key()), False, True),
        (Delete(key()), True, False),
    ]
    for change, undo, sent in changes:
        script = Answers(SETTINGS, reply(f'{{"docs":[{row}]}}'))
        made = script.run(plan_changes(PlanRequest(changes=[change], undo=undo), {"books": VIEW}))
        assert (bool(made.planned), bool(made.refusals)) == (sent, not sent), (change, undo)


def test_a_later_change_of_a_row_builds_on_the_earlier_ones() -> None:
    """What was written whole stays so, in either order, and an insert writes every value that is one."""
    array, number = Update(key(), {"arr": Json('{"x":1}')}), Update(key(), {"n": 5, "k": ""})
    whole = {"n": 5, "k": "", "o": {"a": 1}, "arr": {"x": 1}}
    for changes in ((array, number), (number, array), (Update(key(), {"n": 5, "k": "", "arr": Json('{"x":1}')}),)):
        [request] = plan_of(*changes, docs=[stored()]).requests
        assert (request.method, json.loads(request.body or "")) == ("PUT", whole)
    for values in ({"n": 5, "k": Json("1.10")}, {"k": Json("1.10"), "n": 5}):
        [request] = plan_of(Update(key(), values), docs=[stored()]).requests
        assert request.method == "PUT", "the server would respell one of them"
    [request] = plan_of(Insert("books", {"n": 0, "k": "", "o.a": None}, "1")).requests
    assert json.loads(request.body or "") == {"n": 0, "k": ""}


@pytest.mark.parametrize(
    ("undo", "document", "status", "action"),
    [
        (True, None, [], "create"),
        (False, None, [], "index"),
        (True, {"n": 1, "k": "old", "o": {"a": 1}}, [], "index"),
    ],
)
def test_a_row_that_may_replace_another_is_guarded_by_what_was_read(
    undo: bool, document: dict[str, Any] | None, status: list[str], action: str
) -> None:
    """Nothing there: then nothing may be there when it is sent; something: that, and no other."""
    docs = None if not undo else [stored(**({"found": False} if document is None else {}))]
    made = plan_of(Insert("books", {"n": 7}, "1", replace=True), docs=docs, undo=undo)
    assert [each.status for each in made.refusals] == status
    options = made.requests[0].path.partition("?")[2].split("&")
    assert ("op_type=create" in options) is (action == "create")
    assert ("if_seq_no=3" in options) is (document is not None)


def test_a_row_that_is_there_already_says_whether_it_holds_the_change() -> None:
    for document, holds in (('{"o":{"a":1},"k":"old","n":1}', True), ('{"n":2}', False)):
        [refusal] = plan_of(Insert("books", id="1", document=document), docs=[stored()]).refusals
        assert (refusal.status, refusal.holds) == ("conflict", holds)


def test_a_row_that_needs_a_routing_is_refused_without_one_and_an_empty_one_is_none() -> None:
    routed = msgspec.structs.replace(VIEW, routed=True)
    for routing, sent in ((None, False), ("", False), ("r", True)):
        made = plan_of(Insert("books", {"n": 1}, "1", routing=routing), found=routed)
        assert (bool(made.planned), bool(made.refusals)) == (sent, not sent)
    broken = {"_index": "books", "_id": "1", "error": {"type": "routing_missing_exception", "reason": "x"}}
    [refusal] = plan_of(Update(key(), {"n": 1}), docs=[broken], found=routed).refusals
    assert "needs a routing" in refusal.reason
    [refusal] = plan_of(Insert("books", id="1", document="", replace=True)).refusals
    assert refusal.reason.startswith("the document is not a JSON object")


def test_arrays_are_not_edited_where_the_index_of_the_row_rebuilds_its_documents() -> None:
    """One of two indices behind the name does; whichever is listed first."""
    modes = {"books-1": {"settings": {}}, "books-2": {"settings": {"index.mode": "logsdb"}}}
    for settings in (modes, dict(reversed(modes.items()))):
        for values in ({"k": ["a"], "n": 5}, {"n": 5, "k": ["a"]}, {"arr": Json('{"x":1}')}):
            for index, sent in (("books-1", True), ("books-2", False)):
                made = plan_of(Update(key(), values), settings=reply(settings), docs=[stored(_index=index)])
                assert (bool(made.planned), bool(made.refusals)) == (sent, not sent)
        assert plan_of(Update(key(), {"n": 5}), settings=reply(settings), docs=[stored(_index="books-2")]).planned


@pytest.mark.parametrize(
    ("intervals", "bulk", "last", "waits"),
    [
        (["1s", "2m"], False, False, False), (["2m", "1s"], False, False, False), (["-1", "1s"], False, False, False),
        (["10s", "1s"], False, False, True), (["10001ms"], False, False, False), (["10000ms"], False, False, True),
        (["1s"], True, False, False), (["1s"], True, True, True), ([None], False, False, True),
        (["5"], False, False, True),
    ],
)  # fmt: skip
def test_a_write_waits_for_a_refresh_that_every_index_of_its_name_makes_soon(
    intervals: list[str | None], *, bulk: bool, last: bool, waits: bool
) -> None:
    settings = {
        f"books-{at}": {"settings": {} if text is None else {"index.refresh_interval": text}}
        for at, text in enumerate(intervals)
    }
    made = plan_of(Insert("books", {"n": 1}, "1"), settings=reply(settings), bulk=bulk, last=last)
    assert ("refresh=wait_for" in made.requests[0].path) is waits
    assert [note.code[:7] for note in made.notes] == ["refresh"] * (not waits and not bulk)


def test_many_requests_of_a_slow_and_a_fast_index_wait_for_none_of_them() -> None:
    """The slow one decides, whichever was looked up last."""
    text = '{\n"n":1}'
    slow = [Insert("books", id=str(at), document=text, replace=True) for at in range(11)]
    fast = [Insert("fast", id="1", document=text, replace=True)]
    answers = {"books": reply({"books": {"settings": {"index.refresh_interval": "10s"}}}), "fast": reply({"fast": {}})}
    for changes, order in (([*slow, *fast], ("books", "fast")), ([*fast, *slow], ("fast", "books"))):
        script = Answers(*(answers[name] for name in order))
        made = script.run(plan_changes(PlanRequest(changes=[*changes]), {"books": VIEW, "fast": VIEW}))
        assert [each.path for each in made.requests if "refresh" in each.path] == []
        assert [note.code for note in made.notes] == ["refresh-late"]


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (".ds-logs-x-2024.12.31-000001", "logs-x"), (".ds-logs-2024.12.31-1000000", "logs"),
        ("logs-2024.12.31-000001", "logs-2024.12.31-000001"), (".ds-logs-2024.12-000001", ".ds-logs-2024.12-000001"),
    ],
)  # fmt: skip
def test_what_takes_a_change_back_names_the_row_its_routing_and_its_state(index: str, name: str) -> None:
    """A deleted row of a data stream comes back through the stream; a changed one is where it was."""
    row, settings = stored(_index=index, _routing="r"), reply({index: {"settings": {}}})
    before = json.dumps(row["_source"])
    for change, document in ((Delete(key()), None), (Update(key(), {"n": 5}), '{"n":5,"k":"old","o":{"a":1}}')):
        [undo] = plan_of(change, settings=settings, docs=[row], undo=True).undo
        assert isinstance(undo, Insert)
        assert (undo.object, undo.id, undo.routing) == (name if document is None else index, "1", "r")
        assert (undo.replace, undo.document) == (document is not None, before)
        assert undo.guard == ({} if document is None else {"sha256": digest(document.encode())})
    insert = Insert("books", {"n": 5}, "new", routing="r")
    [undo] = plan_of(insert, docs=[{"_index": "books", "_id": "new", "found": False}], undo=True).undo
    assert undo == Delete(RowKey("books", "new", "r", {"sha256": digest(b'{"n":5}')}))


def test_a_guard_that_comes_with_a_later_change_of_a_row_is_another_one() -> None:
    for guard in ({"seq_no": 9, "primary_term": 2}, {"seq_no": 3, "primary_term": 1}):
        made = plan_of(Update(key(), {"n": 5}), Update(key(**guard), {"k": "x"}), docs=[stored()])
        assert [(each.change, each.status) for each in made.refusals] == [(1, "conflict")]
    made = plan_of(Update(key(), {"n": 5}), Update(key(seq_no=3, primary_term=2), {"k": "x"}), docs=[stored()])
    assert made.refusals == [], "it is the state that was read"
    guard = {"sha256": digest(json.dumps(stored()["_source"]).encode())}
    kept_nowhere = {name: value for name, value in stored().items() if name != "_source"}
    [refusal] = plan_of(Delete(RowKey("books", "1", None, guard)), docs=[kept_nowhere]).refusals
    assert refusal.status == "conflict", "nothing tells that it is that document"
    twice = [Update(RowKey("books", "1", None, guard), values) for values in ({"n": 5}, {"k": "x"})]
    assert plan_of(*twice, docs=[stored()]).refusals == []
    guard = {"sha256": digest(b'{"n":1}')}
    fresh = Insert("books", {"n": 5}, "1", replace=True, guard=guard)
    [refusal] = plan_of(fresh, docs=[stored(found=False)]).refusals
    assert refusal.status == "conflict"


@pytest.mark.parametrize(
    ("undo", "room", "sent"), [(False, 12, True), (True, 12, False), (True, 40, True), (False, 11, False)]
)
def test_a_document_is_bounded_by_its_bytes_and_by_those_that_an_undo_keeps(
    monkeypatch: pytest.MonkeyPatch, *, undo: bool, room: int, sent: bool
) -> None:
    monkeypatch.setattr(requests, "ROW_BYTES", room)
    row = stored(_source={"k": "x" * 20})
    if not undo:
        assert bool(plan_of(Insert("books", id="1", document='{"k":"üü"}'), bulk=True).planned) is sent, "of a load"
    made = plan_of(
        Insert("books", id="1", document='{"k":"üü"}', replace=True), docs=[row] if undo else None, undo=undo
    )
    assert bool(made.planned) is sent


LOAD = [Insert("books", id="1", document="{}"), Insert("books", id="2", document='{"k":"ü"}', replace=True)]


@pytest.mark.parametrize(
    ("second", "more", "loads_"),
    [
        (LOAD[1], {}, True),
        (Insert("books", document="{}"), {}, True),
        (Insert("books", id="2", document=""), {}, True),
        (Insert("books", id="1", document="{}", routing="r"), {}, True),
        (LOAD[1], {"bulk": False}, False),
        (LOAD[1], {"undo": True}, False),
        (Insert("other", id="2", document="{}"), {}, False),
        (Insert("books", {"n": 1}, id="2"), {}, False),
        (Insert("books", {"n": 1}, id="2", document="{}"), {}, False),
        (Insert("books", id="2", document="{}", replace=True, guard={"seq_no": 1, "primary_term": 1}), {}, False),
        (Insert("books", id=b"2", document="{}"), {}, False),
        (Insert("books", id=b"", document="{}"), {}, False),
        (Insert("books", id="1", document="{}"), {}, False),
        (Update(key("2"), {"n": 1}), {}, False),
        (Delete(key("2")), {}, False),
    ],
)  # fmt: skip
def test_only_new_documents_of_one_index_each_of_its_own_id_are_a_load(
    second: Change, more: Any, *, loads_: bool
) -> None:
    """Of a load nothing is read beforehand: the second row too may not depend on what is stored, or on the first."""
    request = PlanRequest(**{"changes": [LOAD[0], second], "bulk": True} | more)
    assert planned_rows.is_load(request) is loads_
    assert not planned_rows.is_load(PlanRequest(changes=[], bulk=True))


def test_a_row_whose_document_is_not_kept_is_overwritten_and_no_undo_deletes_it() -> None:
    row = planned_rows.PlannedRow(index="books", id="1", before=b"", now=b"{}", whole=True)
    assert row.settle(undo=True)
    assert row.action == "index"
    assert isinstance(row.undo, Insert)


def test_each_row_of_a_load_is_written_as_it_says() -> None:
    rows = [*LOAD, Insert("books", document='{"n":0}', routing="r"), Insert("books", id="4", document="[1]"),
            Insert("books", id="5", document="{}", routing=""), Insert("books", id="", document="{}")]  # fmt: skip
    script = Answers(SETTINGS)
    made = script.run(plan_changes(PlanRequest(changes=[*rows], bulk=True), {"books": VIEW}))
    assert (made.requests[0].body or "").splitlines() == [
        '{"create":{"_id":"1"}}', "{}", '{"index":{"_id":"2"}}', '{"k":"ü"}', '{"create":{"routing":"r"}}', '{"n":0}',
    ]  # fmt: skip
    assert made.planned[0].rows == [[0], [1], [2]]
    assert [(each.change, each.status) for each in made.refusals] == [(at, "refused") for at in (3, 4, 5)]
    assert "its routing is an empty text" in made.refusals[1].reason
    routed = msgspec.structs.replace(VIEW, routed=True)
    made = Answers(SETTINGS).run(plan_changes(PlanRequest(changes=[*rows], bulk=True), {"books": routed}))
    assert [each.change for each in made.refusals] == [0, 1, 3, 4, 5]
    batch = InsertBatch("books", documents=["{}"] * 2, ids=["1", "2"], routings=["", None])
    made = Answers(SETTINGS).run(plan_changes(PlanRequest(changes=batch, bulk=True), {"books": VIEW}))
    assert [each.change for each in made.refusals] == [0]


class Rules:
    async def test_E28_a_row_with_one_bad_column_stays_as_it_was(self, es: Rig) -> None:
        """And the change beside it is carried out."""
        name = await es.index(PROPERTIES, [{"n": 1, "k": "a"}, {"n": 2, "k": "b"}])
        first, second = RowKey(name, "0"), RowKey(name, "1")
        bad, good = await es.apply(Update(first, {"k": "new", "n": "x"}), Update(second, {"k": "new", "n": 3}))
        assert (bad.status, good.status) == ("refused", "applied")
        assert json.loads(await es.source(name, "0")) == {"n": 1, "k": "a"}
        assert json.loads(await es.source(name, "1")) == {"n": 3, "k": "new"}

    async def test_E23_a_row_with_one_cut_cell_stays_as_it_was(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [{"k": "a", "t": "b"}])
        [outcome] = await es.apply(Update(RowKey(name, "0"), {"t": "new", "k": CutJson("a")}))
        assert outcome.status == "refused"
        assert json.loads(await es.source(name, "0")) == {"k": "a", "t": "b"}

    async def test_E28_E30_a_routing_with_odd_characters_finds_its_row(self, es: Rig) -> None:
        """One change by itself, and several at once."""
        name = await es.index(PROPERTIES, settings={"number_of_shards": 5})
        for routing in ("a+b", "x y", "ä&c=d", "50%"):
            [made] = await es.apply(Insert(name, {"n": 1}, routing, routing=routing))
            assert (made.status, made.key and made.key.routing) == ("applied", routing)
            [one] = await es.apply(Update(RowKey(name, routing, routing), {"n": 2}))
            several = await es.apply(
                Update(RowKey(name, routing, routing), {"k": "x"}),
                Insert(name, {"n": 9}, f"{routing}2", routing=routing),
            )
            assert [one.status, *(each.status for each in several)] == ["applied"] * 3
        rows = {
            key_.id: (row["n"], row["k"], key_.routing)
            for row in (await es.page(name, limit=50)).rows
            for key_ in [row.key]
        }
        assert len(rows) == 8
        assert rows["a+b"] == (2, "x", "a+b")
        assert {
            each.status for each in await es.apply(*(Delete(RowKey(name, id_, at[2])) for id_, at in rows.items()))
        } == {"applied"}


class TestMixedChangesOnFake(OnFake, Rules):
    pass


class TestMixedChangesOnServer(OnServer, Rules):
    pass


IDS = ("a", "b", "ž", 'q"', "back\\slash", "..", "x" * 128, "x" * 512, "ž" * 300, "", None)
DOCUMENTS = ('{"n":1}', '{"t":"ž€😀"}', "{}", '{"n":\n1}', '{"n":\r1}', f'{{"long":"{"y" * 90}"}}', '{"t":"\u2028"}')


@given(st.data())
def test_a_batch_has_the_plan_of_its_rows_one_by_one(data: st.DataObject) -> None:
    """E30: whether the rows fit into one request is seen from the whole of them."""
    rows = data.draw(st.integers(1, 6))

    def column(*values: str | None, **more: Any) -> list[Any]:
        return data.draw(st.just([]) | st.lists(st.sampled_from(values), min_size=rows, max_size=rows, **more))

    batch = InsertBatch(
        "books", documents=data.draw(st.lists(st.sampled_from(DOCUMENTS), min_size=rows, max_size=rows)),
        ids=column(*IDS, unique=True), routings=column("r", 'r"', None),
        replace=data.draw(st.sampled_from([[], [True] * rows, [True, False] * rows]))[:rows],
    )  # fmt: skip
    view = msgspec.structs.replace(VIEW, routed=data.draw(st.booleans()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "BULK_BYTES", data.draw(st.sampled_from((60, 200, 3 << 20))))
        patch.setattr(requests, "BULK_ROWS", data.draw(st.sampled_from((2, 5_000))))
        patch.setattr(requests, "ROW_BYTES", data.draw(st.sampled_from((30, 3 << 20))))
        plans = [
            Answers(SETTINGS).run(plan_changes(PlanRequest(changes=changes, bulk=True), {"books": view}))
            for changes in (batch, [*batch])
        ]
    assert plans[0] == plans[1]


WRITTEN = {"_index": "books", "_id": "1", "result": "created", "_shards": {"failed": 0}, "status": 201}


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"_shards": {"failed": 1}}, {"_id": "2"}, {"_id": ""}, {"_index": "other"}, {"result": "updated"},
        {"result": "noop"}, {"result": ""}, {"status": 0}, {"status": 409, "error": {"type": "x", "reason": "y"}},
        {"error": {"type": "x", "reason": "y"}}, {"status": 500, "error": "y"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("replace", [True, False])
def test_an_answer_about_a_row_of_a_load_says_of_it_what_it_says_of_any_row(answer: dict[str, Any], *, replace: bool):
    """E30: only rows that were written as asked are joined."""
    batch = InsertBatch("books", documents=["{}"] * 3, ids=["0", "1", "2"], replace=[replace] * 3)
    action = "index" if replace else "create"
    items = [{action: WRITTEN | {"_id": key} | (answer if key == "1" else {})} for key in ("0", "1", "2")]
    found = []
    for changes in (batch, [*batch]):
        made = Answers(SETTINGS).run(plan_changes(PlanRequest(changes=changes, bulk=True), {"books": VIEW}))
        sender = Sender(msgspec.structs.replace(made, changes=changes, bulk=True))
        unread = reply({"docs": [{"_index": "books", "_id": "1", "found": False}]})
        replies, sending = chain([SETTINGS, reply({"items": items})], repeat(unread)), sender.send()
        with suppress(StopIteration):
            sending.send(None)
            while True:  # a row of which the answer leaves something open is read
                sending.send([next(replies)])
        found.append({
            outcome.change + at: (str(outcome.status), outcome.reason)
            for outcome in sender.outcomes for at in range(outcome.rows)
        })  # fmt: skip
    assert found[0] == found[1]
