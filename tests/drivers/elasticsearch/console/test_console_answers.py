"""The console: methods with and without a body, statuses at the edges, and what a 200 hides."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, may_write, parse
from drivers.replies import Answers, reply

from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.errors import ConsoleSyntaxError
from dragoman_api.grid import MAX_ROWS
from dragoman_querydsl import console_answers as answers
from dragoman_querydsl.protocol import moves_on, segments

if TYPE_CHECKING:
    from dragoman_api import Answer


def shown(text: str, *replies: Any) -> Answer:
    [request] = parse(text)
    return Answers(*replies).run(answers.execute(request))


def hits(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hits": {"total": {"value": len(rows), "relation": "eq"}, "hits": list(rows)}} | more


# requests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "DELETE", "POST", "PUT", "HEAD", "GET"])
@pytest.mark.parametrize("gap", [" ", "\n", "\n\n  // why\n", " # so\n"])
def test_E26_every_method_takes_a_body_and_none(method: str, gap: str) -> None:
    [bare, full] = parse(f'{method} /a\n\n{method.lower()} /b{gap}{{"x": [1]}}')
    assert (bare.request.method, bare.request.path, bare.request.body, bare.line) == (method, "/a", None, 1)
    assert (full.request.method, full.request.path, full.request.body, full.line) == (method, "/b", '{"x": [1]}', 3)


@pytest.mark.parametrize("before", ["", "\n", "\n\n", "# a\n", "/* a\n b */\n"])
def test_E26_the_line_of_a_request_counts_every_line_before_it(before: str) -> None:
    [request] = parse(f"{before}GET /a")
    assert request.line == before.count("\n") + 1
    with pytest.raises(ConsoleSyntaxError) as caught:
        parse(f"{before}GET /a\n{{x}}")
    assert caught.value.details == {"line": before.count("\n") + 2, "column": 2}


@pytest.mark.parametrize("action", ["_flush", "_refresh", "_forcemerge", "_close", "_reindex", "_cache"])
def test_E32_what_acts_on_the_server_writes_by_every_method(action: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"):
        assert may_write(method, f"/books/{action}")
        assert may_write(method, f"/books/{action}/x?y=1")
    assert not may_write("GET", f"/books/x{action}")
    assert not may_write("GET", f"/books?x={action}")


@pytest.mark.parametrize("path", ["/books/_search", "/_all/_search", "/_search", "/a,b*/_count", "/_msearch/template"])
def test_E32_a_search_reads_by_post_and_by_no_other_changing_method(path: str) -> None:
    assert not may_write("POST", path)
    for method in ("PUT", "DELETE", "PATCH"):
        assert may_write(method, path)


@pytest.mark.parametrize("path", ["/_x/_search", "/a/b/_search", "/a%2Fb/_search", "/a/../_search", "/a/./_search",
                                  "/a/_doc/_search", "/a/_search/x"])  # fmt: skip
def test_E32_in_doubt_a_post_writes(path: str) -> None:
    assert may_write("POST", path)


@pytest.mark.parametrize(
    ("path", "body", "writes"),
    [
        ("/_search/scroll/abc", "", False), ("/_search/scroll", '{"scroll_id": "abc"}', False),
        ("/_pit", '{"id":"x"}', False),
        ("/_async_search/abc", "", False), ("/_search/scroll/_all", "", True), ("/_search/scroll/%5Fall", "", True),
        ("/_search/scroll?scroll_id=_all", "", True), ("/_search/scroll?scroll_id=%5fall", "", True),
        ("/_search/scroll", '{"scroll_id": "_all"}', True), ("/_search/scroll", '{"scroll_id": "\\u005fall"}', True),
        ("/_async_search", "", True), ("/books", "", True), ("/books/_doc/1", '{"x": 1}', True),
    ],
)  # fmt: skip
def test_E32_a_deletion_reads_only_where_it_ends_ones_own_search(path: str, body: str, writes: bool) -> None:
    assert may_write("DELETE", path, body) is writes


def test_the_segments_of_a_path_are_decoded_and_its_query_is_none_of_them() -> None:
    assert segments("/a%2Fb//c/?d=/e") == ["a/b", "c"]


# answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [199, 200, 201, 299, 300, 404, 500])
def test_every_status_but_a_success_is_noted(status: int) -> None:
    for method in ("PATCH", "OPTIONS", "DELETE", "GET", "PUT"):
        codes = [each.code for each in shown(f"{method} /x {{}}", reply({"a": 1}, status=status)).notes]
        unknown = ["outcome-unknown"] if status in (199, 500) and method in ("PATCH", "DELETE", "PUT") else []
        assert codes == ([] if 200 <= status < 300 else ["http-error", *unknown])


def test_a_head_that_is_not_found_is_an_answer_and_no_error() -> None:
    answer = shown("HEAD /x", reply("", status=404, headers={"X-Y": "z"}))
    assert (answer.notes, answer.status, answer.kind) == ([], 404, "text")
    assert answer.text.splitlines()[0] == "HTTP 404"
    assert "X-Y: z" in answer.text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"timed_out": True}, "timed out"),
        ({"timed_out": False, "_shards": {"total": 3, "failed": 0}}, ""),
        ({"_shards": {"total": 3, "failed": 1, "failures": [{"reason": {"type": "a", "reason": "deep"}}]}},
         "1 of 3 shards failed; the first: deep"),
        ({"_shards": {"total": 3, "failed": 2}, "timed_out": True}, "2 of 3 shards failed"),
    ],
)  # fmt: skip
def test_E38_rows_that_came_are_a_grid_and_what_is_missing_fails_the_request(more: dict[str, Any], said: str) -> None:
    row = {"_id": "1", "_index": "a", "_score": 1.0, "_source": {"n": 1}}
    answer = shown("GET /a/_search", reply(hits(row, **more)))
    assert answer.kind == "grid"
    assert answer.page is not None
    assert [each["n"] for each in answer.page.rows] == [1]
    assert (said in answer.failed, bool(answer.failed)) == (True, bool(said))


def test_what_is_hidden_is_hidden_in_a_success_only() -> None:
    body = {"timed_out": True}
    assert shown("GET /a", reply(body, status=200)).failed
    assert shown("GET /a", reply(body, status=299)).failed
    assert not shown("GET /a", reply(body, status=300)).failed


def test_E38_the_items_that_failed_are_counted() -> None:
    items = [
        {"index": {"status": 201}},
        {"index": {"error": {"type": "x", "reason": "no"}}},
        {"delete": {"error": "gone"}},
    ]
    answer = shown("POST /_bulk\n{}\n{}", reply({"errors": True, "items": items}))
    assert answer.failed == "2 of 3 items failed; the first: no"
    assert shown("POST /_bulk\n{}\n{}", reply({"errors": False, "items": items})).failed == ""


def test_E38_a_total_is_exact_a_bound_or_unknown() -> None:
    for total, expected in (
        ({"value": 9, "relation": "eq"}, (9, True)),
        ({"value": 9, "relation": "gte"}, (9, False)),
        (9, (9, True)),
    ):
        page = shown("GET /_search", reply({"hits": {"total": total, "hits": []}})).page
        assert page is not None
        assert (page.total, page.total_exact) == expected
    page = shown("GET /_search", reply({"hits": {"hits": []}})).page
    assert page is not None
    assert page.total is None


def test_E38_an_answer_with_more_than_rows_is_no_grid() -> None:
    for more in ({"aggregations": {"a": {}}}, {"suggest": {"a": []}}):
        assert shown("GET /_search", reply(hits({"_id": "1"}, **more))).kind == "json"


def test_E38_the_columns_of_a_hit_begin_with_what_names_it() -> None:
    row = {"_index": "a", "_type": "_doc", "_id": "1", "_score": None, "sort": [1], "_source": {"_id": "own", "n": 1},
           "fields": {"n": [2]}}  # fmt: skip
    page = shown("GET /_search", reply(hits(row))).page
    assert page is not None
    assert [each.name for each in page.columns] == ["_id", "_index", "_score", "_source._id", "n", "fields.n", "sort"]
    assert page.rows[0]["_source._id"] == "own"
    assert page.keys == []
    assert all(each.written == "never" for each in page.columns)


def test_a_table_has_the_rows_and_columns_that_a_page_may_have_and_says_so() -> None:
    for number, codes in ((MAX_ROWS, []), (MAX_ROWS + 1, ["rows-cut"])):
        page = shown("GET /_cat/x", reply([{"a": 1}] * number)).page
        assert page is not None
        assert (len(page.cells), [each.code for each in page.notes]) == (MAX_ROWS, codes)
    for number, codes in ((MAX_COLUMNS, []), (MAX_COLUMNS + 1, ["columns-cut"])):
        page = shown("GET /_cat/x", reply([{f"c{at}": at for at in range(number)}])).page
        assert page is not None
        assert len(page.columns) == len(page.cells[0]) == MAX_COLUMNS
        assert [each.code for each in page.notes] == codes


@pytest.mark.parametrize("number", [1, 2, answers.MAX_TABLES, answers.MAX_TABLES + 1])
def test_E38_several_searches_are_several_grids_up_to_a_bound(number: int) -> None:
    parts = [hits({"_id": str(at)}) for at in range(number)]
    answer: Answer | None = shown("GET /_msearch\n{}\n{}", reply({"responses": parts}))
    assert answer is not None
    cut = ["answers-cut"] if number > answers.MAX_TABLES else []
    assert [each.code for each in answer.notes] == cut
    assert len(json.loads(answer.text)["responses"]) == number
    seen = []
    while answer is not None:
        assert answer.page is not None
        seen.append((answer.title, answer.page.rows[0]["_id"]))
        answer = answer.next
    shown_ = min(number, answers.MAX_TABLES)
    assert seen == [(f"search {at + 1} of {number}" if number > 1 else "", str(at)) for at in range(shown_)]


def test_an_answer_is_asked_for_again_only_where_that_helps_and_only_for_a_read() -> None:
    """A comment is taken out of the answer, but one that may run past its document; a filtered answer is rewritten."""
    inside, broken, fine = reply('{"a": // x\n1.10}'), reply('{"_source":{"a":1.10} // x}'), reply('{"a":1.1}')
    for text, path, again in (("GET /x", "/x", "/x?filter_path=*"), ("GET /x?y=1", "/x?y=1", "/x?y=1&filter_path=*")):
        [request] = parse(text)
        for replies, paths, shown_ in (([inside], [path], "1.10"), ([broken, fine], [path, again], "1.1")):
            script = Answers(*replies)
            answer = script.run(answers.execute(request))
            assert [each.path for each in script.asked] == paths
            assert (answer.kind, [each.code for each in answer.notes]) == ("json", ["answer-rewritten"])
            assert answer.text == f'{{\n  "a": {shown_}\n}}'
    assert shown("PUT /x {}", inside).kind == "text"
    assert shown("PUT /x {}", broken).kind == "text"
    assert [each.code for each in shown("GET /x", broken, broken).notes] == []
    assert shown("GET /x", reply("", status=200)).text == "HTTP 200"
    assert shown("GET /x", reply("plain", headers={"Content-Type": "text/plain"})).text == "plain"


class Rules:
    async def test_E26_a_deletion_reaches_the_server_with_its_body(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}, {"n": 2}])
        wiped, left = await es.console(
            f"""
DELETE /{name}/_doc/1?refresh=true

POST /{name}/_search
{{"query": {{"match_all": {{}}}}}}
            """
        )
        assert (wiped.status, left.status) == (200, 200)
        assert left.page is not None
        assert [row["n"] for row in left.page.rows] == [1]
        opened = await es.call("POST", f"/{name}/_search?scroll=1m", {"size": 1})
        [freed] = await es.console(f'DELETE /_search/scroll\n{{"scroll_id": "{opened["_scroll_id"]}"}}')
        assert (freed.status, json.loads(freed.text)["num_freed"]) == (200, 1)


class TestAnswersOnFake(OnFake, Rules):
    pass


class TestAnswersOnServer(OnServer, Rules):
    pass


@pytest.mark.parametrize(
    ("path", "moves"),
    [
        ("/_search/scroll", True),
        ("/_search/scroll/abc", True),
        ("/_search?scroll=1m", True),
        ("/books/_search?scroll=1m", True),
        ("/_search", False),
        ("/_search/template", False),
        ("/zoo/scroll", False),
        ("/_zoo/zoo", False),
        ("/books/_search", False),
        ("/books/_search?size=1", False),
        ("/scroll/_search", False),
    ],
)
def test_a_read_that_moves_a_scroll_on_is_known(path: str, moves: bool) -> None:
    assert moves_on(path) is moves


def test_an_answer_that_is_no_text_is_said_and_not_shown() -> None:
    answer = shown(
        "GET /_cluster/health?format=cbor", reply(b"\xbf\x6cclu\xff", headers={"Content-Type": "application/cbor"})
    )
    [note] = answer.notes
    assert (answer.text, note.code) == ("", "answer-binary")
    assert "6 bytes of application/cbor" in note.reason
