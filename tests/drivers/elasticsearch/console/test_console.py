"""The console: texts to requests, reads told from writes, answers shaped."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, may_write, on_fake, parse
from drivers.replies import Answers, Canned, reply
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import Answer, AnswerKind, ConsoleRequest, HttpRequest
from dragoman_api.cells import MISSING
from dragoman_api.errors import ConsoleSyntaxError
from dragoman_querydsl import console_answers as answers
from dragoman_querydsl.console_text import NDJSON

# texts to requests


def one(text: str) -> tuple[str, str, str | None, str]:
    [found] = parse(text)
    return found.request.method, found.request.path, found.request.body, found.request.content_type


JSON = "application/json"


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("GET /_cat/indices?format=json", ("GET", "/_cat/indices?format=json", None, JSON)),
        ("get _search", ("GET", "/_search", None, JSON)),
        ("GET", ("GET", "/", None, JSON)),
        ("  PUT\t/a  ", ("PUT", "/a", None, JSON)),
        ('POST /a/_search\n{"size": 1}', ("POST", "/a/_search", '{"size": 1}', JSON)),
        ('POST /a/_search {"size": 1}', ("POST", "/a/_search", '{"size": 1}', JSON)),
        ('GET /a/_search\n{\n  "size": 1\n}\n\n', ("GET", "/a/_search", '{\n  "size": 1\n}', JSON)),
        ("GET /*/_search", ("GET", "/*/_search", None, JSON)),
        ("GET /é/_doc/a%20b", ("GET", "/%C3%A9/_doc/a%20b", None, JSON)),
        ("GET /a/_doc/x#y", ("GET", "/a/_doc/x%23y", None, JSON)),
        ("GET /a?", ("GET", "/a", None, JSON)),
        ("POST /_bulk\n{\"a\":1}\n{\"b\":2}", ("POST", "/_bulk", '{"a":1}\n{"b":2}\n', NDJSON)),
        ("POST /a/_bulk?refresh\n{\"a\":1}", ("POST", "/a/_bulk?refresh", '{"a":1}\n', NDJSON)),
        ("POST /_msearch\n{}\n{\"query\": {\n}}", ("POST", "/_msearch", '{}\n{"query":{}}\n', NDJSON)),
        ("POST /a/_doc\n{\"a\":1}\n{\"b\":2}", ("POST", "/a/_doc", '{"a":1}\n{"b":2}\n', NDJSON)),
        ("HEAD /a", ("HEAD", "/a", None, JSON)),
        ("POST /_bulk", ("POST", "/_bulk", None, JSON)),
    ],
)  # fmt: skip
def test_E26_any_method_any_path_and_an_optional_body(text: str, request_: tuple[str, str, str | None, str]) -> None:
    assert one(text) == request_


def test_E26_several_requests_each_with_its_line() -> None:
    found = parse('# first\nGET /a\n\n\nPOST /b/_search\n{"x": 1}\n// done\nDELETE /c')
    assert [(each.request.method, each.request.path, each.line) for each in found] == [
        ("GET", "/a", 2),
        ("POST", "/b/_search", 5),
        ("DELETE", "/c", 8),
    ]


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ('{"a": 1} # note', '{"a": 1}'),
        ('{"a": 1, // note\n"b": 2}', '{"a": 1, \n"b": 2}'),
        ('/* note */{"a": 1}', '{"a": 1}'),
        ('{"a": "http://x # /* y */"}', '{"a": "http://x # /* y */"}'),
        ('{"a": "quote \\" // x"}', '{"a": "quote \\" // x"}'),
    ],
)
def test_comments_never_reach_the_server(body: str, sent: str) -> None:
    """The server would take them, store them with the document, and answer with what is no JSON any more."""
    assert one(f"PUT /a/_doc/1\n{body}")[2] == sent


def test_nor_does_a_byte_order_mark() -> None:
    assert one('\ufeffPUT /a/_doc/1\n{"a":1}') == ("PUT", "/a/_doc/1", '{"a":1}', JSON)


def test_triple_quotes_make_a_json_string() -> None:
    _, _, body, _ = one('POST /a/_search\n{"q": """say "hi"\nGET /not-a-request\n\\d+"""}')
    assert json.loads(body or "") == {"q": 'say "hi"\nGET /not-a-request\n\\d+'}


@pytest.mark.parametrize("digits", ["1.10", "1e400", "123456789012345678901234567890", "1E5", "9" * 5000])
def test_a_body_goes_out_digit_by_digit(digits: str) -> None:
    assert one(f'POST /a/_search {{"x":  {digits}}}')[2] == f'{{"x":  {digits}}}'


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("hello", 1, 1, "expected a method and a path"),
        ("\n  hello", 2, 3, "expected a method and a path"),
        ('GET /a\n{"a":}', 2, 6, "not valid JSON"),
        ('GET /a {"a":}', 1, 13, "not valid JSON"),
        ('GET /a\n// c\n{"a":1,\n   x}', 4, 4, "not valid JSON"),
        ('GET /a\n{"a":1', 2, 7, "not valid JSON"),
        ("GET /a {} {}", 1, 11, "a second JSON value on one line"),
        ('GET /a\n{"a": """x}', 2, 7, '""" has no end'),
        ("GET /a\n/* x", 2, 1, "/* has no end"),
        ("GET //elsewhere/x", 1, 5, "connection's host only"),
        ("GET https://elsewhere/x", 1, 5, "connection's host only"),
        ("GET /a\nGET ftp://elsewhere", 2, 5, "connection's host only"),
        ('GET /a\n{"a":' + "[" * 100_000 + "]" * 100_000 + "}", 2, 1, "cannot be sent"),
        ('GET /a {"x":"\ud800"}', 1, 8, "cannot be sent"),
        ("GET /\ud800", 1, 5, "not valid Unicode"),
    ],
)
def test_what_cannot_be_parsed_is_told_with_its_place(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(ConsoleSyntaxError) as caught:
        parse(text)
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column)
    assert reason in caught.value.message


@given(st.text(alphabet='GET /a{}"\\#\n *_:1,[]é', max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        found = parse(text)
    except ConsoleSyntaxError:
        return
    for each in found:
        assert each.request.path.startswith("/")
        assert not each.request.path.startswith("//")
        assert each.request.path.isascii()


# reads and writes


@pytest.mark.parametrize(
    "request_",
    [
        "GET /", "HEAD /a", "GET /a/_doc/1", "POST /_search", "POST /a/_search", "POST /a,b/_search?size=1",
        "POST /_all/_count", "POST /a/_msearch", "POST /_search/scroll", "POST /a/_search/template", "POST /a/_pit",
        "POST /a/_validate/query", "POST /a/_explain/1", "POST /a/_field_caps", "POST /_mget", "POST /a/_termvectors/1",
        "POST /_sql", "POST /_sql/translate", "POST /_query", "POST /a/_eql/search", "POST /_analyze",
        "POST /a/_analyze", "POST /_security/user/_has_privileges", "POST /_ingest/pipeline/_simulate",
        "POST /_ingest/pipeline/x/_simulate", "POST /_scripts/painless/_execute",
        "POST /a/_terms_enum", "POST /a/_rank_eval", "POST /_render/template/x",
        "DELETE /_search/scroll", "DELETE /_search/scroll/x", "DELETE /_pit", "DELETE /_async_search/x",
        "POST /a%2Db/_search",
    ],
)  # fmt: skip
def test_what_only_reads_is_told(request_: str) -> None:
    method, path = request_.split()
    assert not may_write(method, path)


@pytest.mark.parametrize(
    "request_",
    [
        "PUT /a", "DELETE /a", "PATCH /a", "POST /a/_doc", "POST /a/_update/1", "POST /_bulk", "POST /_reindex",
        "POST /a/_doc/_search",  # a search on 7.17, a document on 8.x
        "POST /a/_doc/_count", "PUT /a/_doc/_search", "POST /a/_create/_search", "PUT /_search", "POST /a/type/_search",
        "GET /a/_flush", "GET /_refresh", "POST /a/_refresh", "POST /_cache/clear", "POST /a/_close",
        "POST /a/_forcemerge", "POST /_nosuch", "POST /",
        "DELETE /a/_doc/1", "DELETE /_search/scroll/x/y", "DELETE /_pit/x",
        "POST /a/_delete_by_query", "POST /a/_update_by_query", "POST /_aliases", "DELETE /a%2F_pit",
        "POST /a/_search/..%2F_doc", "POST /a/_search/../_doc", "POST /./_search", "POST /../_search",
        "POST /a%2F_doc/_search", "POST /a%2F_search", "POST /_tasks/1/_cancel",
        "POST /a/_explain/..", "POST /a/_termvectors/%2E%2E", "DELETE /_search/scroll/.",
    ],
)  # fmt: skip
def test_in_doubt_it_writes(request_: str) -> None:
    method, path = request_.split()
    assert may_write(method, path)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE /_search/scroll/_all", "DELETE /_search/scroll/%5Fall", "DELETE /_search/scroll?scroll_id=_all",
        'DELETE /_search/scroll\n{"scroll_id": "_all"}', 'DELETE /_search/scroll\n{"scroll_id": ["\\u005fall"]}',
    ],
)  # fmt: skip
def test_ending_the_searches_of_all_others_is_a_write(text: str) -> None:
    [request] = parse(text)
    assert request.writes


def test_ending_a_search_of_ones_own_is_a_read() -> None:
    [request] = parse('DELETE /_search/scroll\n{"scroll_id": ["FGluY2x1ZGVfY29udGV4dF91dWlk"]}')
    assert not request.writes


# answers


def shaped(
    answer: Canned, *, method: str = "GET", path: str = "/x", more: tuple[Canned, ...] = (), may_write: bool = False
) -> Answer:
    asked = ConsoleRequest(request=HttpRequest(method, path), writes=may_write)
    return Answers(answer, *more).run(answers.execute(asked))


def test_E38_a_search_answer_is_a_grid() -> None:
    hits = [
        {"_index": "a", "_id": "1", "_score": 1.5, "_source": {"n": 1, "o": {"x": [1, 2]}}},
        {"_index": "a", "_id": "2", "_score": None, "_source": {"m": "x"}, "highlight": {"m": ["x"]}},
    ]
    found = shaped(reply({"took": 1, "hits": {"total": {"value": 10_000, "relation": "gte"}, "hits": hits}}))
    assert found.kind is AnswerKind.GRID
    assert found.page is not None
    assert [column.name for column in found.page.columns] == ["_id", "_index", "_score", "n", "o", "m", "highlight"]
    assert [row.to_dict() for row in found.page.rows] == [
        {"_id": "1", "_index": "a", "_score": 1.5, "n": 1, "o": '{"x":[1,2]}', "m": None, "highlight": None},
        {
            "_id": "2",
            "_index": "a",
            "_score": None,
            "n": None,
            "o": None,
            "m": "x",
            "highlight": '{"m":["x"]}',
        },
    ]
    assert (found.page.total, found.page.total_exact) == (10_000, False)
    assert '"took": 1' in found.text, "the whole answer stays viewable"


def test_a_name_that_a_document_and_its_hit_share_is_shown_twice() -> None:
    hit = {"_index": "a", "_id": "1", "_source": {"sort": 1, "_id": 2}, "sort": [5], "fields": {"sort": [7]}}
    found = shaped(reply({"hits": {"total": 1, "hits": [hit]}}))
    assert found.page is not None
    assert found.page.rows[0].to_dict() == {
        "_id": "1", "_index": "a", "sort": 1, "_source._id": 2, "fields.sort": "[7]", "hit.sort": "[5]",
    }  # fmt: skip
    assert (found.page.total, found.page.total_exact) == (1, True)


def test_E27_E38_an_array_of_objects_is_a_table() -> None:
    found = shaped(reply([{"index": "a", "docs": "3"}, {"index": "b", "size": None}]))
    assert found.kind is AnswerKind.TABLE
    assert found.page is not None
    assert [column.name for column in found.page.columns] == ["index", "docs", "size"]
    assert found.page.cells == [["a", "3", MISSING], ["b", MISSING, None]]


@pytest.mark.parametrize(
    "body",
    [
        '{"acknowledged":true}',
        '{"hits":{"hits":[]},"aggregations":{"a":{"value":1.10}}}',
        '{"hits":{"hits":[]},"suggest":{}}',
        '{"hits":5}',
        '{"hits":{"hits":[1]}}',
        '{"hits":{"hits":[{"_source":5}]}}',
        '{"_shards":"odd","errors":"odd"}',
        "[1,2]",
        '"text"',
    ],
)
def test_E38_anything_else_is_formatted_json_with_its_digits(body: str) -> None:
    found = shaped(reply(body))
    assert (found.kind, found.page) == (AnswerKind.JSON, None)
    assert json.loads(found.text) == json.loads(body)
    assert ("1.10" in found.text) is ("1.10" in body)


def test_text_stays_text_and_head_shows_status_and_headers() -> None:
    found = shaped(reply("green open a\n", headers={"Content-Type": "text/plain; charset=UTF-8"}))
    assert (found.kind, found.text) == (AnswerKind.TEXT, "green open a\n")
    found = shaped(reply("", 404), method="HEAD")
    assert (found.kind, found.status) == (AnswerKind.TEXT, 404)
    assert found.text.splitlines()[0] == "HTTP 404"
    assert "Content-Type: application/json" in found.text


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 429, 500, 503])
def test_the_answer_to_a_head_is_its_status_and_every_other_failure_is_told(status: int) -> None:
    """An answer without a body has no reason; a read leaves nothing open, a write does."""
    found = shaped(reply("", status), method="HEAD")
    assert (found.kind, found.status, found.text.splitlines()[0]) == (AnswerKind.TEXT, status, f"HTTP {status}")
    assert found.notes == []
    for method, told in (("HEAD", []), ("GET", ["http-error"]), ("POST", ["http-error"])):
        for writes in (False, True):
            open_ = ["outcome-unknown"] * (writes and status >= 500)
            codes = [note.code for note in shaped(reply("", status), method=method, may_write=writes).notes]
            assert codes == (told if status != 200 else []) + open_


REASON = {"type": "mapper_parsing_exception", "reason": "no long", "caused_by": {"type": "x", "reason": "for 'a'"}}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"errors": True, "items": [{"index": {"status": 201}}, {"index": {"status": 400, "error": REASON}}]},
            "1 of 2 items failed; the first: no long: for 'a'",
        ),
        ({"timed_out": True, "hits": {"hits": []}}, "the request timed out on the server: the answer is partial"),
        ({"_shards": {"total": 5, "failed": 2}}, "2 of 5 shards failed"),
        (
            {"_shards": {"total": 5, "failed": 1, "failures": [{"shard": 0, "reason": REASON}]}, "hits": {"hits": []}},
            "1 of 5 shards failed; the first: no long: for 'a'",
        ),
        ({"failures": [{"cause": REASON}, {}]}, "failures: 2; the first: no long: for 'a'"),
        ({"failures": ["odd"]}, "failures: 1; the first: odd"),
        ({"errors": False, "failures": [], "_shards": {"total": 1, "failed": 0}}, ""),
        ({"failures": [{"reason": REASON, "shard": 1}]}, "failures: 1; the first: no long: for 'a'"),
        ({"failures": [{"type": "a", "reason": "plain"}]}, "failures: 1; the first: plain"),
        ({"error": REASON}, "server error: mapper_parsing_exception: no long: for 'a'"),
        (
            {
                "error": REASON,
                "errors": True,
                "items": [{"index": {"error": REASON}}, {"update": {"error": REASON}}],
                "timed_out": True,
                "_shards": {"total": 2, "failed": 2},
                "failures": ["odd"],
            },
            (
                "server error: mapper_parsing_exception: no long: for 'a'; 2 of 2 items failed; the first: "
                "no long: for 'a'; the request timed out on the server: the answer is partial; 2 of 2 shards failed; "
                "failures: 1; the first: odd"
            ),
        ),
    ],
)
def test_what_a_200_hides_fails_the_request(body: dict[str, Any], said: str) -> None:
    assert shaped(reply(body)).failed == said


def test_E38_the_columns_are_those_of_all_rows_and_the_rows_first_names_come_first() -> None:
    rows = [
        {"_id": "1", "_source": {"a": 1}},
        {"_id": "2", "_score": 2.0, "_index": "x", "_source": {"b": 2, "_id": 7}},
    ]
    for order in (rows, rows[::-1]):
        found = shaped(reply({"hits": {"hits": order}}))
        assert found.page is not None
        names = [column.name for column in found.page.columns]
        assert names[:3] == ["_id", "_index", "_score"]
        assert {*names[3:]} == {"a", "b", "_source._id"}
        shown = {row["_id"]: row.to_dict(missing=False) for row in found.page.rows}
        assert shown["2"] == {"_id": "2", "_index": "x", "_score": 2.0, "b": 2, "_source._id": 7}
    listed = shaped(reply([{"a": 1}, {"b": 2}]), path="/_cat/x")
    assert listed.page is not None
    assert [column.name for column in listed.page.columns] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"hits": {"hits": []}}, AnswerKind.GRID),
        ({"hits": {"hits": []}, "suggest": {"s": []}}, AnswerKind.JSON),
        ({"hits": {"hits": []}, "aggregations": {"a": {"value": 1}}}, AnswerKind.JSON),
        ({"responses": [{"hits": {"hits": []}}]}, AnswerKind.JSON),
    ],
)
def test_E38_an_answer_that_holds_more_than_rows_is_text_and_several_only_where_several_were_asked_for(
    body: dict[str, Any], kind: AnswerKind
) -> None:
    assert shaped(reply(body), path="/a/_search").kind is kind


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("POST /_msearch\n{}", ("POST", "/_msearch", "{}\n", NDJSON)),
        ("POST /a/_bulk\n{}", ("POST", "/a/_bulk", "{}\n", NDJSON)),
        ("POST /_bulk/x\n{}", ("POST", "/_bulk/x", "{}", JSON)),
        ("POST /a/_doc\n{}", ("POST", "/a/_doc", "{}", JSON)),
    ],
)
def test_a_single_line_goes_as_lines_only_where_lines_are_read(text: str, request_: tuple[str, str, str, str]) -> None:
    assert one(text) == request_


def test_each_of_several_requests_is_judged_by_its_own_body_and_line() -> None:
    found = parse('DELETE /_search/scroll\n{"scroll_id":"x"}\n\nDELETE /_search/scroll\n{"scroll_id":"_all"}\nGET /')
    assert [(each.writes, each.line) for each in found] == [(False, 1), (True, 4), (False, 6)]


def searched(*ids: str, **more: Any) -> dict[str, Any]:
    return {"hits": {"total": {"value": len(ids)}, "hits": [{"_id": each} for each in ids]}, "status": 200, **more}


def chain(found: Answer | None) -> list[Answer]:
    return [found, *chain(found.next)] if found is not None else []


def test_E38_several_searches_are_several_grids() -> None:
    responses = [searched("a", "b"), searched(aggregations={}), {"error": {"root_cause": [REASON], **REASON}}]
    found = shaped(reply({"took": 1, "responses": responses}), method="POST", path="/_msearch")
    first, second, third = chain(found)
    assert [each.title for each in chain(found)] == ["search 1 of 3", "search 2 of 3", "search 3 of 3"]
    assert [each.kind for each in chain(found)] == [AnswerKind.GRID, AnswerKind.JSON, AnswerKind.JSON]
    assert first.page is not None
    assert [row["_id"] for row in first.page.rows] == ["a", "b"]
    assert json.loads(first.text)["responses"][2]["error"], "the whole answer stays viewable"
    assert "aggregations" in second.text
    assert "no long: for 'a'" in third.failed
    assert first.failed.startswith("1 of 3 searches failed; the first: server error: mapper_parsing_exception:")


def test_several_searches_whose_first_is_no_grid_are_one_text() -> None:
    found = shaped(reply({"responses": [{"error": REASON, "status": 404}, searched("a")]}), path="/a/_msearch")
    assert (found.kind, found.next, found.page) == (AnswerKind.JSON, None, None)
    assert found.failed.startswith("1 of 2 searches failed")
    assert len(json.loads(found.text)["responses"]) == 2


def test_a_failure_behind_the_last_grid_is_told_too() -> None:
    responses = [searched("a")] * 60 + [{"error": REASON, "status": 404}]
    found = shaped(reply({"responses": responses}), path="/_msearch")
    assert len(chain(found)) == answers.MAX_TABLES
    assert [note.code for note in found.notes] == ["answers-cut"]
    assert found.failed.startswith("1 of 61 searches failed")


def test_an_error_is_an_answer_with_a_note() -> None:
    error = {"type": "index_not_found_exception", "reason": "no such index [x]"}
    found = shaped(reply({"error": {"root_cause": [error], **error}, "status": 404}, 404))
    assert (found.status, found.kind) == (404, AnswerKind.JSON)
    assert [(note.code, "no such index [x]" in note.reason) for note in found.notes] == [("http-error", True)]


def test_an_undecodable_answer_is_asked_for_again_only_if_that_changes_nothing() -> None:
    broken, fine = reply('{"_source":{"x":1} // c}'), reply({"x": 1})
    found = shaped(broken, more=(fine,))
    assert (found.kind, [note.code for note in found.notes]) == (AnswerKind.JSON, ["answer-rewritten"])
    found = shaped(broken, method="POST", may_write=True)
    assert (found.kind, found.text) == (AnswerKind.TEXT, '{"_source":{"x":1} // c}')


# on servers


class ConsoleRules:
    async def test_E2_E26_E38_a_search(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 2**53 + 1}, {"n": 2}])
        [found] = await es.console(f'POST /{name}/_search\n{{"sort": ["n"]}} # by n')
        assert found.kind is AnswerKind.GRID
        assert found.page is not None
        assert [row["n"] for row in found.page.rows] == [2, 2**53 + 1]

    async def test_E27_the_listing_of_indices_is_a_table(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        [found] = await es.console("GET /_cat/indices?format=json")
        assert found.kind is AnswerKind.TABLE
        assert found.page is not None
        assert name in [row["index"] for row in found.page.rows]

    async def test_E26_a_bulk_body_is_sent_line_by_line(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        text = f'POST /{name}/_bulk?refresh=true\n{{"index":{{"_id":"1"}}}}\n// the document\n{{"n": 1}}\n'
        [found] = await es.console(text)
        assert (found.status, found.notes) == (200, [])
        assert (await es.page(name)).total == 1

    async def test_E26_a_bulk_whose_items_fail_has_failed(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        text = f'POST /{name}/_bulk\n{{"index":{{}}}}\n{{"n":1}}\n{{"index":{{}}}}\n{{"n":"x"}}'
        [found] = await es.console(text)
        assert (found.status, found.kind) == (200, AnswerKind.JSON)
        assert found.failed.startswith("1 of 2 items failed; the first: ")
        assert "failed to parse" in found.failed

    async def test_E26_E38_several_searches_in_one_request(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}, {"n": 2}])
        query = '{"query": {\n"term": {"n": 2} # two\n}}'
        [found] = await es.console(f'POST /{name}/_msearch\n{{}}\n{{}}\n{{"index":"{name}"}}\n{query}')
        assert [len(each.page.rows) for each in chain(found) if each.page] == [2, 1]
        assert found.failed == ""
        [found] = await es.console(f'GET _msearch\n{{"index":"{name}"}}\n{{}}\n{{"index":"nosuch"}}\n{{}}')
        assert found.failed.startswith("1 of 2 searches failed; the first: no such index [nosuch]")

    async def test_several_requests_run_in_order(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        found = await es.console(
            f'PUT /{name}/_doc/1?refresh=true\n{{"n": 1.10}}\n\nGET /{name}/_doc/1\n\nHEAD /{name}/_doc/2\n'
        )
        assert [each.status for each in found] == [201, 200, 404]
        assert "1.10" in found[1].text
        assert found[2].kind is AnswerKind.TEXT

    async def test_an_error_is_an_answer(self, es: Rig) -> None:
        [found] = await es.console("GET /nosuch/_mapping")
        assert found.status == 404
        assert found.notes[0].code == "http-error"

    async def test_a_get_with_a_body_stays_one(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        [found] = await es.console(f'GET /{name}/_search\n{{"query":{{"term":{{"n":1}}}}}}')
        assert found.page is not None
        assert found.page.total == 1
        assert es.log[-1].method == "GET"

    async def test_a_comment_that_is_stored_already_does_not_fail_the_answer(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "long"}})
        await es.raw("PUT", f"/{name}/_doc/1?refresh=true", '{"x":1.10 // c\n}')
        [found] = await es.console(f"GET /{name}/_search")
        assert found.kind is AnswerKind.GRID
        assert [note.code for note in found.notes] == ["answer-rewritten"]
        assert '"x": 1.10' in found.text
        [found] = await es.console(f"GET /{name}/_source/1")
        assert (found.text, [note.code for note in found.notes]) == ('{\n  "x": 1.10\n}', ["answer-rewritten"])

    async def test_a_comment_in_a_page_of_a_scroll_skips_no_page(self, es: Rig) -> None:
        name = await es.index({"x": {"type": "long"}}, [{"x": at} for at in range(3)])
        await es.raw("PUT", f"/{name}/_doc/1?refresh=true", '{"x":1} // c')
        [found] = await es.console(f'POST /{name}/_search?scroll=1m\n{{"size":1,"sort":["x"]}}')
        scroll = json.loads(found.text)["_scroll_id"]
        [broken] = await es.console(f'POST /_search/scroll\n{{"scroll":"1m","scroll_id":"{scroll}"}}')
        assert '"_source":{"x":1} // c' in broken.text
        [last] = await es.console(f'POST /_search/scroll\n{{"scroll":"1m","scroll_id":"{scroll}"}}')
        assert json.loads(last.text)["hits"]["hits"][0]["_source"] == {"x": 2}


class TestConsoleOnFake(ConsoleRules, OnFake):
    pass


class TestConsoleOnServer(ConsoleRules, OnServer):
    async def test_E43_sql_goes_where_any_path_goes(self, es: Rig) -> None:
        [found] = await es.console('POST /_sql\n{"query": "SHOW TABLES"}')
        assert found.request == HttpRequest("POST", "/_sql", '{"query": "SHOW TABLES"}')
        assert found.status in (200, 400, 405)

    async def test_E44_delete_by_query_runs_in_the_console(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        [found] = await es.console(f'POST /{name}/_delete_by_query\n{{"query":{{"match_all":{{}}}}}}')
        assert found.status in (200, 400)
        [parsed] = parse(f"POST /{name}/_delete_by_query")
        assert parsed.writes


async def test_E26_the_file_of_the_guide_holds() -> None:
    """Variables and expectations are the host's, comments the driver's: together they read one text."""
    from pathlib import Path

    from dragoman.console import expectations
    from dragoman.console.variables import fill

    page = Path(__file__).parents[4] / "docs/how-to/use-the-console.md"
    text = fill(page.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0], {"index": "books"})
    requests = parse(text)
    expected = expectations.read(text, requests)
    assert [len(each) for each in expected] == [1, 1, 2]
    async with on_fake("8.19.21") as es:
        for request, rows in zip(requests, expected, strict=True):
            answer = await es.driver.execute_console(request)
            assert [str(each) for each in expectations.judge(answer, rows) if each.got] == []
            assert "expect" not in (request.request.body or "")


def test_E43_the_grid_never_asks_for_sql() -> None:
    from pathlib import Path

    import dragoman_elasticsearch
    import dragoman_querydsl

    folders = [Path(package.__file__).parent for package in (dragoman_querydsl, dragoman_elasticsearch)]
    users = {path.name for folder in folders for path in folder.rglob("*.py") if "_sql" in path.read_text()}
    assert users == {"protocol.py", "connect.py"}  # of the console: which requests read, and which paths there are
