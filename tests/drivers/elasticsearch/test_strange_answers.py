"""A server that is broken or hostile: what it answers leads no write elsewhere, ends no export wrongly or never."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.elasticsearch.rig import on_fake, parse, profile
from drivers.replies import Answers, reply
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import Delete, DragomanError, Drop, Insert, PageRequest, Plan, PlanRequest, QueryError, RowKey, Update
from dragoman_api.grid import MAX_ROWS
from dragoman_api.json_text import widened
from dragoman_elasticsearch import connect
from dragoman_elasticsearch.connect import POINTS, dialect_of
from dragoman_querydsl import console_answers as answers
from dragoman_querydsl import export, objects, protocol, search
from dragoman_querydsl.columns.mapping import FieldCaps, IndexMapping, read
from dragoman_querydsl.grid import deep_pages, pages
from dragoman_querydsl.search import MATCH_ALL, uncommented
from dragoman_querydsl.writing import requests
from dragoman_querydsl.writing.apply import Sender
from dragoman_querydsl.writing.plan import plan_changes
from dragoman_querydsl.writing.planned_rows import read_rows
from dragoman_querydsl.writing.requests import planned_requests

if TYPE_CHECKING:
    from dragoman_api import Outcome
    from dragoman_api.changes import Change
    from wording import Wording

NESTED = '{"a":' * 100_000 + "1" + "}" * 100_000
DIGITS = "9" * 5_000
SETTINGS = reply({"books": {"settings": {}}})
MAPPING = msgspec.Raw(b'{"properties":{"n":{"type":"long"}}}')
VIEW = read("books", {"books": IndexMapping(MAPPING)}, FieldCaps(["books"]))


def stored(key: str = "1", **more: Any) -> dict[str, Any]:
    given = {"_index": "books", "_id": key, "found": True, "_seq_no": 1, "_primary_term": 1, "_source": {"n": 1}}
    return given | more


def planned(change: list[Change], *docs: Any, undo: bool = False) -> Plan:
    request = PlanRequest(changes=change, undo=undo)
    answers = [reply({"docs": [*docs]})] if docs else []
    return Answers(SETTINGS, *answers).run(plan_changes(request, {"books": VIEW}))


def updates(*keys: str) -> list[Change]:
    return [Update(RowKey("books", key), {"n": 2}) for key in keys]


def write(*keys: str, action: str = "update") -> Plan:
    body = None if action == "delete" else '{"doc":{"n":2}}'
    made = [
        requests.RowWrite(action=action, index="books", id=key, body=body, changes=[at]) for at, key in enumerate(keys)
    ]
    return Plan(planned=[each for each, _ in planned_requests(made)])


def sent(plan: Plan, *replies: Any) -> list[Outcome]:
    sending = Sender(plan)
    Answers(*replies).run(sending.send())
    return sending.outcomes


def gone(*keys: str) -> Any:
    """Make the answer to a look at rows of unknown outcome."""
    return reply({"docs": [stored(key, found=False) for key in keys]})


# rows that a change is planned for


@pytest.mark.parametrize(
    ("strange", "said"),
    [
        (stored("2"), "answered the document '2' in place of '1'"),
        (stored(_index="users"), "a row of 'users'"),
        (stored(_index="*"), "a row of '*'"),
        (stored(_index=".."), "a row of '..'"),
        (stored(_source="text"), "not a JSON object"),
    ],
)
def test_a_change_goes_to_no_row_but_the_one_it_names(strange: dict[str, Any], said: str) -> None:
    plan = planned([*updates("1"), Delete(RowKey("books", "1"))], strange)
    assert plan.planned == []
    assert [each.status for each in plan.refusals] == ["refused"] * 2
    assert all(said in each.reason for each in plan.refusals)


def test_one_row_that_is_answered_wrongly_spoils_no_other() -> None:
    plan = planned(updates("1", "2"), stored("7"), stored("2"))
    assert [each.change for each in plan.refusals] == [0]
    assert [each.path.partition("?")[0] for each in plan.requests] == ["/books/_update/2"]


def test_documents_that_are_fewer_than_were_asked_for_are_read_one_by_one(wording: Wording) -> None:
    request = PlanRequest(changes=updates("1", "2"))
    one, none = reply({"docs": [stored("1")]}), reply({"docs": []})
    plan = Answers(SETTINGS, one, one, none).run(plan_changes(request, {"books": VIEW}))
    assert [each.path.partition("?")[0] for each in plan.requests] == ["/books/_update/1"]
    wording(plan.refusals[0].reason)


@pytest.mark.parametrize(
    "name", ["a,b", "*", "a*", "..", ".", "-a", "+a", "_all", "a/b", "a?b", "<logs-{now/d}>", "a\x1bb"]
)
def test_an_insert_names_one_index(wording: Wording, name: str) -> None:
    request = PlanRequest(changes=[Insert(name, {}, document='{"n":1}')])
    plan = Answers().run(plan_changes(request, {}))
    assert plan.planned == []
    wording(plan.refusals[0].reason)


@pytest.mark.parametrize("key", ["..", ".", "../../users", "a/./b", "..\\x"])
def test_an_id_that_a_proxy_could_follow_as_a_path_travels_in_a_body(key: str) -> None:
    """`DELETE /books/_doc/..` is `DELETE /books/` behind a proxy that resolves paths: it would drop the index."""
    plan = planned([Delete(RowKey("books", key))], stored(key))
    [request] = plan.requests
    assert (request.method, request.path) == ("POST", "/books/_bulk?refresh=wait_for")
    assert json.loads(request.body or "")["delete"]["_id"] == key
    done = {"delete": {"_index": "books", "_id": key, "status": 200, "result": "deleted"}}
    [outcome] = sent(plan, SETTINGS, reply({"items": [done]}))
    assert outcome.status == "applied"


def test_a_document_of_several_lines_is_not_written_under_such_an_id(wording: Wording) -> None:
    plan = planned([Insert("books", {}, id="..", document='{\n"n":1}')], stored("..", found=False))
    assert plan.planned == []
    wording(plan.refusals[0].reason)


def test_a_document_with_very_long_numbers_can_be_taken_back() -> None:
    plan = planned([Insert("books", {}, id="1", document=f'{{"n":{DIGITS}}}')], stored("1", found=False), undo=True)
    assert len(plan.undo) == 1


# what became of rows


def item(key: str = "1", **more: Any) -> dict[str, Any]:
    return {"update": {"_index": "books", "_id": key, "status": 200, "result": "updated"} | more}


@pytest.mark.parametrize(
    "odd",
    [
        item("2"),
        item(_index="users"),
        item(error={"type": "x", "reason": "no"}),
        item(result="deleted"),
        item(result=""),
    ],
)
def test_a_row_is_applied_only_where_the_answer_says_so_of_that_row(odd: dict[str, Any]) -> None:
    done = sent(write("1", "2"), SETTINGS, reply({"items": [odd, item("2")]}), gone("1"))
    assert done[0].status == "unknown"
    assert done[0].key is None


def test_outcomes_in_another_order_are_of_no_row() -> None:
    answer = reply({"items": [item("2"), item("1", status=409, error={"type": "version_conflict_engine_exception"})]})
    now = reply({"docs": [stored("1", _source={"n": 2}), stored("2")]})
    done = sent(write("1", "2"), SETTINGS, answer, now)
    assert [each.status for each in done] == ["applied", "unknown"]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"error": {"type": "x"}},
        {"acknowledged": True},
        {"_index": "users", "_id": "1", "result": "updated"},
        {"_index": "books", "_id": "2", "result": "updated", "_seq_no": 4, "_primary_term": 1},
        {"_index": "books", "_id": "1", "result": "not_found"},
    ],
)
@pytest.mark.parametrize("action", ["update", "delete", "index", "create"])
def test_a_single_row_is_applied_only_where_the_answer_says_so(answer: dict[str, Any], action: str) -> None:
    before = [] if action == "delete" else [SETTINGS]
    now = reply({"docs": [stored("1", _source={"n": 7})]})
    [outcome] = sent(write("1", action=action), *before, reply(answer), now)
    assert outcome.status == "unknown"
    assert outcome.key is None


@pytest.mark.parametrize(
    ("status", "kind"), [(500, ""), (502, ""), (504, ""), (500, "exception"), (503, "x_timeout_exception")]
)
@pytest.mark.parametrize("keys", [("1",), ("1", "2")])
def test_a_failure_between_here_and_the_shard_is_unknown(status: int, kind: str, keys: tuple[str, ...]) -> None:
    """A gateway that waited too long does not know whether the server wrote."""
    fault = reply({"error": {"type": kind, "reason": "late"}} if kind else "<html>", status)
    done = sent(write(*keys), SETTINGS, fault, gone(*keys))
    assert [each.status for each in done] == ["unknown"] * len(keys)


def test_a_failed_write_that_is_found_done_is_applied() -> None:
    now = reply({"docs": [stored(_source={"n": 2})]})
    [outcome] = sent(write("1"), SETTINGS, reply("<html>", 504), now)
    assert outcome.status == "applied"


@pytest.mark.parametrize("answer", [{"acknowledged": False}, {}, {"_index": "books", "_id": "1", "result": "deleted"}])
def test_a_drop_is_applied_only_when_it_is_acknowledged(answer: dict[str, Any]) -> None:
    plan = Answers(SETTINGS).run(plan_changes(PlanRequest(changes=[Drop("books")]), {}))
    [outcome] = sent(plan, reply(answer))
    assert outcome.status == "unknown"


@pytest.mark.parametrize("source", [NESTED, f'{{"n":{DIGITS}}}'])
def test_a_row_that_cannot_be_read_again_stays_unknown(source: str) -> None:
    now = json.dumps({"docs": [stored()]}).replace('{"n": 1}', source)
    [outcome] = sent(
        write("1"), SETTINGS, reply("<html>", 504), reply(now), *([reply(now)] if source is NESTED else [])
    )
    assert outcome.status == "unknown"


# pages and walks


def found(*rows: dict[str, Any], total: Any = 20_000, **more: Any) -> Any:
    hits = {"hits": [*rows], "total": {"value": total, "relation": "eq"}}
    return reply({"_shards": {"total": 1, "failed": 0}, "hits": hits} | more)


def hit(*sort: Any, **more: Any) -> dict[str, Any]:
    return stored(sort=list(sort)) | more


def grid(offset: int = 0, limit: int = 2) -> pages.PageQuery:
    request = PageRequest(object="books", offset=offset, limit=limit)
    return pages.page_query(request, VIEW, dialect_of((8, 0, 0)), window=10_000, preference="p")


@pytest.mark.parametrize(
    ("rows", "said"),
    [([hit(_index="users")], "rows of 'users'"), ([hit()] * 3, "3 rows")],
)
def test_a_page_of_other_or_more_rows_than_were_asked_for_is_none(rows: list[Any], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        Answers(found(*rows)).run(grid().shallow_page())


def test_pages_of_one_connection_keep_to_their_copies_and_those_of_another_to_theirs() -> None:
    words = {pages.preference() for _ in range(20)}
    assert len(words) == 20
    assert all(word.startswith("dragoman-") for word in words)


@pytest.mark.parametrize("ends", ["\n", "\r", "\r\n"])
def test_documents_that_are_not_on_one_line_are_kept_as_they_came(ends: str) -> None:
    lines = found(hit()).body.decode().replace('"hits"', f'{ends}"hits"', 1)
    read_ = Answers(reply(lines)).run(search.search("/books/_search", {"size": 1}, search.READ))
    assert read_.odd == lines.encode()
    assert Answers(found(hit())).run(search.search("/books/_search", {"size": 1}, search.READ)).odd == b""


def test_a_document_that_stays_bytes_keeps_its_zeros_as_they_are_written() -> None:
    decoder = msgspec.json.Decoder(search.SearchAnswer[search.StoredHit])
    lines = b'{"hits":{"hits":[{"_id":"1","_source":{"n":-0}}]}}'
    answer = Answers(reply(lines)).run(search.search("/books/_search", {"size": 1}, decoder))
    assert bytes(answer.hits.hits[0].source) == b'{"n":-0}'


def test_a_row_is_guarded_by_both_numbers_or_not_at_all() -> None:
    for hit_ in (search.Hit(seq_no=1), search.Hit(primary_term=1)):
        assert hit_.key.guard == {}


@pytest.mark.parametrize("total", [-1, 10**30, "1"])
def test_a_count_that_is_none_is_refused(wording: Wording, total: Any) -> None:
    with pytest.raises(QueryError) as caught:
        Answers(found(total=total), found(total=total)).run(grid().shallow_page())
    wording(caught.value.hint)


@pytest.mark.parametrize("number", [-1, 2**63])
def test_a_sequence_number_that_is_none_is_refused(wording: Wording, number: int) -> None:
    with pytest.raises(QueryError) as caught:
        Answers(found(hit(_seq_no=number)), found(hit(_seq_no=number))).run(grid().shallow_page())
    wording(caught.value.hint)


def test_a_walk_that_does_not_move_ends(wording: Wording) -> None:
    walk = deep_pages.PointInTimePager("books", MATCH_ALL, [], 2, "p", pit="x", total=20_000, points=POINTS)
    same = found(hit(1, 1), hit(1, 1))
    with pytest.raises(QueryError) as caught:
        Answers(same, same).run(walk.fetch(6, 2, {}))
    wording(caught.value.message)


# exports


def export_slice(mark: Any = False) -> export.Slice:
    source = export.ExportQuery("books", MATCH_ALL, export.DOCUMENTS, "120s", [{}, *POINTS.order], pit="x", size=2)
    return export.Slice(source, 0, 1, mark)


@pytest.mark.parametrize("mark", [(5, 1), (5, 2), (6, 0)])
def test_an_export_whose_pages_repeat_is_not_whole(wording: Wording, mark: tuple[int, int]) -> None:
    with pytest.raises(QueryError) as caught:
        Answers(found(hit(4, 9), hit(5, 1))).run(export_slice(mark).page())
    wording(caught.value.message)


@pytest.mark.parametrize("sort", [[], ["x", None], [1], [1.5, 2], None, 5])
def test_an_export_whose_rows_have_no_place_is_not_whole(wording: Wording, sort: Any) -> None:
    row = stored() if sort is None else {**stored(), "sort": sort}
    with pytest.raises(QueryError) as caught:
        Answers(found(row, row)).run(export_slice().page())
    wording(caught.value.hint)


@pytest.mark.parametrize("limit", [0, 2, 9])
def test_a_limit_that_is_none_ends_an_export(limit: int) -> None:
    text = f"Result window is too large, from + size must be less than or equal to: [{limit}] but was [2]"
    refusal = reply({"error": {"type": "illegal_argument_exception", "reason": text}}, 400)
    with pytest.raises(DragomanError, match=rf"\[{limit}\]"):
        Answers(refusal).run(export_slice().page())


# anything else


@pytest.mark.parametrize(
    "reading",
    [
        lambda: Answers(reply({"version": {"number": f"{DIGITS}.1"}})).run(connect.identify(profile("http://h:1"))),
        lambda: Answers(reply([{"index": "a", "store.size": "²"}]), reply({"responses": [{}]})).run(
            objects.list_objects()
        ),
        lambda: protocol.check(reply({}, 429, {"Retry-After": DIGITS})),
        lambda: protocol.check(reply({}, 429, {"Retry-After": "²"})),
    ],
)
def test_a_number_of_a_server_is_bounded_before_it_is_read(reading: Any) -> None:
    with suppress(DragomanError):
        reading()


MAPPINGS: list[Any] = [
    [], {"properties": ["a"]}, {"properties": {"a": "x"}}, {"_source": "x"},
    {"properties": {"a": {"type": "text", "fields": {"keyword": 1}}}},
    {"_source": {"includes": 5}, "properties": {"a": {"type": "long"}}},
]  # fmt: skip


@pytest.mark.parametrize("mapping", MAPPINGS)
async def test_a_mapping_of_another_form_is_told_as_the_servers(wording: Wording, mapping: Any) -> None:
    async with on_fake("8.19.21") as es:
        answer = reply({"books": {"mappings": mapping}})
        told = iter([answer, reply({"indices": ["books"], "fields": {}}), reply({"books": {"settings": {}}})])

        async def send(*_: Any, **__: Any) -> Any:
            return next(told)

        es.driver._exchanges.send = send
        with pytest.raises(QueryError) as caught:
            await es.driver.describe_object("books")
        wording(caught.value.hint)


@pytest.mark.parametrize("answer", [[{"a": 1}] * (MAX_ROWS + 1), {"hits": {"hits": [{"_id": "1"}] * (MAX_ROWS + 1)}}])
def test_a_table_of_the_console_has_the_rows_that_a_page_may_have(answer: Any) -> None:
    [request] = parse("GET /_cat/shards?format=json")
    shown = Answers(reply(answer)).run(answers.execute(request))
    assert shown.page is not None
    assert len(shown.page.cells) == MAX_ROWS
    assert [each.code for each in shown.page.notes] == ["rows-cut"]
    assert json.loads(shown.text) == answer


# text that would be scanned again and again


@pytest.mark.parametrize(
    "text",
    [b'"' + b'\\"' * 30_000, b"9" * 150_000 + b".", b"[" + b"9" * 150_000 + b"e1", b"-" + b"9" * 150_000 + b".5"],
    ids=["an unclosed string", "digits and a point", "digits and an exponent", "a negative number"],
)
def test_no_byte_of_an_answer_is_scanned_again_and_again(text: bytes) -> None:
    began = time.process_time()
    assert widened(b"9" * 5_000 + b" " + text).startswith(b"9" * 5_000 + b"e-0000 ")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        b"/*" * 50_000,
        b'"' * 50_001,
        b'{"_source":{} // x\n' * 5_000,
        b'{"_source":{}//' + b"}" * 200_000,
        b"\xef" * 50_000,
    ],
    ids=["open comments", "an open string", "comments behind documents", "brackets in a comment", "marks"],
)
def test_no_byte_is_scanned_again_and_again_for_comments(text: bytes) -> None:
    began = time.process_time()
    assert len(uncommented(text).body) == len(text)
    assert time.process_time() - began < 2


VALUES = st.text() | st.floats(allow_nan=False) | st.lists(st.integers())
COMMENTS = st.sampled_from(["", " /* c } */", " // c\n", "/*{*/ \r\n"])


@given(st.lists(st.tuples(st.dictionaries(st.text(max_size=3), VALUES), COMMENTS, st.booleans()), max_size=4))
def test_only_comments_are_blanked(rows: list[tuple[dict[str, object], str, bool]]) -> None:
    def hits(*, comments: bool) -> str:
        texts = (
            json.dumps(document)[:-1] + (f"{comment}}}" if inside else f"}}{comment}")
            if comments
            else json.dumps(document)
            for document, comment, inside in rows
        )
        found = (f'{{"_index":"i","_id":"\\"_source\\":{{","_source":{text},"sort":[1]}}' for text in texts)
        return f'{{"hits":{{"hits":[{",".join(found)}]}}}}'

    found = uncommented(hits(comments=True).encode())
    assert json.loads(found.body) == json.loads(hits(comments=False))
    assert len(found.body) == len(hits(comments=True).encode())
    assert found.rows == {number for number, (_, comment, _) in enumerate(rows) if comment}
    assert found.certain


def test_a_field_named_as_the_document_begins_no_other_row() -> None:
    text = b'{"hits":{"hits":[{"_source":{"_source":/* c */{"a":1}}},{"_source":/* c */{"a":1}}]}}'
    assert uncommented(text).rows == {0, 1}


def test_blanks_in_a_reason_cost_no_more_than_their_length() -> None:
    began = time.process_time()
    body = {"error": {"type": "x", "reason": f"a{' ' * 100_000}b Was expecting one of: c"}, "status": 400}
    assert protocol.exception(protocol.read(reply(body, 400))).message.endswith("a b")
    assert time.process_time() - began < 2


def test_a_field_without_capabilities_breaks_no_hidden_mapping() -> None:
    answers = [
        reply({"error": {"type": "security_exception"}}, 403),
        reply({"indices": ["books"], "fields": {"a": {}}}),
        reply({"error": {"type": "security_exception"}}, 403),
    ]
    assert Answers(*answers).run(objects.view("books")).fields.keys() >= {"_id"}


def test_a_document_of_bytes_that_are_no_text_is_told() -> None:
    body = b'{"docs":[{"_index":"x","_id":"1","found":true,"_source":{"a":"\xff"}}]}'
    [fault] = Answers(reply(body)).run(read_rows("x", [("1", None)]))
    assert isinstance(fault, QueryError)
