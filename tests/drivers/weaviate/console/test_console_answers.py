"""The console: methods with and without a body, what their answers are, and which rows keep their keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import OnFake, OnServer, Rig, key
from drivers.weaviate.views import view
from msgspec.structs import replace

from dragoman_api import Answer, HttpRequest, RowKey
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.errors import ConsoleSyntaxError
from dragoman_api.grid import MAX_ROWS
from dragoman_weaviate import console_answers as answers
from dragoman_weaviate.console_text import parse
from dragoman_weaviate.protocol import Features

GET = "{ Get { Book { title _additional { id } } } }"
LIST = "GET /v1/objects?class=Book"


def shown(text: str, *replies: Any) -> Answer:
    [request] = parse(text)
    return Answers(*replies).run(answers.execute(request, Features()))


def found(*rows: dict[str, Any]) -> Any:
    return reply({"data": {"Get": {"Book": list(rows)}}})


# requests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "DELETE", "POST", "PUT", "HEAD", "GET"])
@pytest.mark.parametrize("gap", [" ", "\n", "\n\n  # why\n"])
def test_every_method_takes_a_body_and_none(method: str, gap: str) -> None:
    """W26."""
    [bare, full] = parse(f'{method} /v1/a\n\n{method.lower()} /v1/b{gap}{{"x": [1]}}')
    assert bare.request == HttpRequest(method, "/v1/a", None)
    assert full.request == HttpRequest(method, "/v1/b", '{"x": [1]}')
    assert full.line == 3


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "PUT", "POST"])
def test_every_method_that_may_change_something_writes_also_with_a_body(method: str) -> None:
    """W29."""
    for path in ("/v1/objects/Book/1", "/v1/schema/Book", "/v1/graphql/x", "/v1/batch/objects/x"):
        [bare, full] = parse(f'{method} {path}\n\n{method} {path} {{"dryRun": true}}')
        assert (bare.writes, full.writes) == (True, True)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_every_method_that_reads_reads_also_with_a_body(method: str) -> None:
    [found] = parse(f'{method} /v1/objects {{"class": "Book"}}')
    assert found.writes is False


@pytest.mark.parametrize("path", ["/v1/batch/objects?x=1", "/v1/batch%2fobjects", "/batch/objects"])
def test_a_dry_run_is_one_however_its_path_is_written(path: str) -> None:
    """W29."""
    [dry, real] = parse(f'DELETE {path} {{"dryRun": true}}\n\nDELETE {path} {{"dryRun": false}}')
    assert (dry.writes, real.writes) == (False, True)


def test_a_dry_run_of_anything_else_is_none():
    for text in ('DELETE /v1/objects {"dryRun": true}', 'PUT /v1/batch/objects {"dryRun": true}'):
        [request] = parse(text)
        assert request.writes


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("POST /v1/x {} []\nGET /v1/y", 1, 15),
        ('# this\n\n  {"query": null}', 3, 3),
        ("{ Get { A { b } } } }", 1, 21),
        ("{ Get { A { b } }\n\n { Get { A ", 3, 8),
        (" query X", 1, 2),
        ("fragment F on A { b } mutation { c }", 1, 23),
    ],
)
def test_a_fault_is_where_it_stands(text: str, line: int, column: int) -> None:
    with pytest.raises(ConsoleSyntaxError) as caught:
        parse(text)
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column)


def test_a_query_as_json_below_a_rest_line_is_its_body_and_elsewhere_a_request():
    text = '{"query": "{ Get { Book { title } } }"}'
    [one] = parse(f"POST /v1/graphql\n{text}")
    assert one.request == HttpRequest("POST", "/v1/graphql", text)
    [first, second] = parse(f"{text}\n{text}")
    assert first.request == second.request == HttpRequest("POST", "/v1/graphql", text)
    [first, second] = parse(f"{GET}\n{text}")
    assert (json.loads(first.request.body or "")["query"], second.request.body) == (GET, text)
    fragment = "fragment F on Book { title }"
    [first, second] = parse(f"{fragment}\n{text}")
    assert (json.loads(first.request.body or "")["query"], second.request.body) == (fragment, text)


# answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "codes"), [(200, []), (299, []), (300, ["http-error"]), (404, ["http-error"]), (199, ["http-error"])]
)
def test_every_status_but_a_success_is_noted(status: int, codes: list[str]) -> None:
    for method in ("PATCH", "OPTIONS", "DELETE", "GET", "PUT"):
        answer = shown(f"{method} /v1/x {{}}", reply({"a": 1}, status=status))
        unknown = ["outcome-unknown"] if status == 199 and method in ("PATCH", "DELETE", "PUT") else []
        assert [each.code for each in answer.notes] == codes + unknown
        assert (answer.status, answer.failed) == (status, "")


def test_a_head_that_is_not_found_is_an_answer_and_no_error():
    answer = shown("HEAD /v1/objects/Book/1", reply("", status=404))
    assert (answer.notes, answer.status, answer.text) == ([], 404, "HTTP 404\nContent-Type: application/json")


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_write_that_may_have_happened_is_in_doubt_and_a_read_is_not(status: int) -> None:
    for method in ("PATCH", "DELETE", "PUT", "POST"):
        codes = [each.code for each in shown(f"{method} /v1/x {{}}", reply("", status=status)).notes]
        assert codes == ["http-error", "outcome-unknown"]
    for method in ("GET", "OPTIONS"):
        codes = [each.code for each in shown(f"{method} /v1/x", reply("", status=status)).notes]
        assert codes == ["http-error"]


def test_a_table_is_only_what_a_search_or_a_list_answers():
    """W32: another request whose answer looks like rows is shown as JSON."""
    rows = {"objects": [{"class": "Book", "id": key(1), "properties": {"title": "tea"}}]}
    for text in ("GET /v1/objects/x", "PUT /v1/objects {}", "POST /v1/objects {}", "GET /v1/graphql"):
        assert shown(text, reply(rows)).kind == "json"
    both = {"data": {"Get": {"Book": [{"title": "x"}]}, "Aggregate": {}}}
    assert shown(GET, reply(both)).kind == "json"
    assert shown("POST /v1/graphql/batch {}", reply({"data": {"Get": {"Book": []}}})).kind == "json"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("GET /v1/objects/", {"objects": [{"class": "Book", "id": key(1), "properties": {"title": "tea"}}]}),
        ("POST /v1/graphql/ " + json.dumps({"query": GET}), {"data": {"Get": {"Book": [{"title": "tea"}]}}}),
    ],
)
def test_a_slash_at_the_end_of_a_path_keeps_the_grid(text: str, answer: dict[str, Any]) -> None:
    """W32: the server drops it."""
    page = shown(text, reply(answer), reply(view().structure)).page
    assert page is not None
    assert [row["title"] for row in page.rows] == ["tea"]


def test_a_list_is_a_grid_of_each_collection_with_the_guards_of_its_rows():
    rows = [
        {"class": "Book", "id": key(1), "lastUpdateTimeUnix": 7, "properties": {"title": "tea", "pages": 2}},
        {"class": "Author", "id": key(2), "properties": None},
        {"class": "Book", "id": key(3), "vector": [1.5], "vectors": {}, "properties": {"title": "sea"}},
    ]
    answer = shown(LIST, reply({"objects": rows}), reply(view().structure), reply(view(name="Author").structure))
    assert answer.title == "Book"
    assert answer.page is not None
    assert answer.next is not None
    assert answer.page.keys == [RowKey("Book", key(1), None, {"lastUpdateTimeUnix": 7}), RowKey("Book", key(3))]
    assert [each.name for each in answer.page.columns] == ["uuid", "title", "pages", "lastUpdateTimeUnix", "vector"]
    assert [list(row.to_dict().values()) for row in answer.page.rows] == [
        [key(1), "tea", 2, 7, None], [key(3), "sea", None, None, "[1.5]"],
    ]  # fmt: skip
    assert (answer.next.title, answer.next.next) == ("Author", None)
    assert answer.next.page is not None
    assert [each.id for each in answer.next.page.keys] == [key(2)]


def test_rows_have_keys_only_where_each_has_a_uuid_and_none_belongs_to_a_tenant():
    """A deletion by a wrong key would end another row."""
    whole, without = {"title": "a", "_additional": {"id": key(1)}}, {"title": "b"}
    plain, shared = reply(view().structure), reply(view(multiTenancyConfig={"enabled": True}).structure)
    for rows, schema, ids in (
        ((whole,), plain, [key(1)]),
        ((whole, without), plain, []),
        ((whole, {"title": "c", "_additional": {"id": None}}), plain, []),
        ((whole,), shared, []),
        ((whole,), reply("", status=404), []),
    ):
        page = shown(GET, found(*rows), schema).page
        assert page is not None
        assert [each.id for each in page.keys] == ids
        assert len(page.cells) == len(rows)
        assert [row["title"] for row in page.rows] == [each["title"] for each in rows]


def test_the_key_of_a_row_that_was_found_by_an_alias_names_the_collection():
    schema = reply({"class": "Book", "properties": []})
    [request] = parse("{ Get { Now { _additional { id } } } }")
    answer = Answers(reply({"data": {"Get": {"Now": [{"_additional": {"id": key(1)}}]}}}), schema).run(
        answers.execute(request, Features())
    )
    assert answer.page is not None
    assert [each.object for each in answer.page.keys] == ["Book"]


@pytest.mark.parametrize(
    "query",
    [
        "{ Get { Book(where: {path: [\"t\"]}) { title _additional { id } } } }",
        "query($n: Int) { Get { Book(limit: $n) { title _additional { id } } } }",
        'query Q { Get { Book(bm25: {query: "a : b"}) { title _additional { id } } } }',
    ],
)  # fmt: skip
def test_a_colon_between_parentheses_is_no_alias(query: str) -> None:
    page = shown(query, found({"title": "a", "_additional": {"id": key(1)}}), reply(view().structure)).page
    assert page is not None
    assert len(page.keys) == 1


@pytest.mark.parametrize(
    "query",
    [
        "{ Get { Book(limit: 1) { title: code _additional { id } } } }",
        "{ Get { Book(limit: 1, offset: (2)) { title  : code _additional { id } } } }",
        '{ Get { Book(where: {valueText: "("}) { x: title _additional { id } } } }',
        '{ Get { Book(where: {valueText: """ " ( """}) { x: title _additional { id } } } }',
        "{ Get { Book { x: title # (\n _additional { id } } } }",
    ],
)
def test_a_colon_behind_parentheses_is_an_alias(query: str) -> None:
    page = shown(query, found({"title": "a", "_additional": {"id": key(1)}})).page
    assert page is not None
    assert page.keys == []


@pytest.mark.parametrize("names", [["Query"], ["query", "Query"], ["QUERY", "query"]])
def test_rows_of_a_query_in_another_spelling_have_no_keys(names: list[str]) -> None:
    """The server reads `Query` too, so its aliases are what counts."""
    body = json.dumps(dict.fromkeys(names, GET))
    page = shown(f"POST /v1/graphql {body}", found({"title": "a", "_additional": {"id": key(1)}})).page
    assert page is not None
    assert page.keys == []


def test_a_table_has_the_rows_and_columns_that_a_page_may_have_and_says_so():
    exact = shown(GET, found(*[{"title": "x"}] * MAX_ROWS), reply(view().structure)).page
    assert exact is not None
    assert (len(exact.cells), exact.notes) == (MAX_ROWS, [])
    for number, codes in ((MAX_COLUMNS, []), (MAX_COLUMNS + 1, ["columns-cut"])):
        page = shown(GET, found({f"c{at}": at for at in range(number)}), reply(view().structure)).page
        assert page is not None
        assert len(page.columns) == len(page.cells[0]) == MAX_COLUMNS
        assert [each.code for each in page.notes] == codes


def test_columns_of_the_console_are_typed_as_declared_and_never_edited():
    row = {"title": "x", "pages": 1, "zz": 2, "_additional": {"id": key(1), "distance": 0.5}}
    page = shown(GET, found(row), reply(view().structure)).page
    assert page is not None
    assert [(each.name, each.type, each.kind, each.is_key) for each in page.columns] == [
        ("uuid", "uuid", "text", True), ("title", "text", "text", False), ("pages", "int", "integer", False),
        ("zz", "", "other", False), ("distance", "", "other", False),
    ]  # fmt: skip
    assert all(each.written == "never" for each in page.columns)


@pytest.mark.parametrize("status", [199, 300, 302, 399, 400])
def test_rows_are_a_grid_only_where_the_server_says_success(status: int) -> None:
    rows = {"data": {"Get": {"Book": [{"title": "x"}]}}}
    assert shown(GET, reply(rows, status=status)).kind == "json"


def test_of_several_tables_one_that_cannot_be_shown_leaves_the_answer_as_json():
    """Half of an answer would look like all of it."""
    for odd in ("Book", "Author"):
        tables = {name: [{"title": "x", "_additional": 5 if name == odd else None}] for name in ("Book", "Author")}
        seen = [reply(view(name=name).structure) for name in tables]
        answer = shown("{ Get { Book { title } Author { title } } }", reply({"data": {"Get": tables}}), *seen)
        assert (answer.kind, answer.next, json.loads(answer.text)["data"]["Get"]) == ("json", None, tables)


def test_several_tables_come_in_the_order_of_the_answer():
    [request] = parse("{ Get { Book { title } } Aggregate { B { meta { count } } A { meta { count } } } }")
    for number in (1, 2, answers.MAX_TABLES - 1, answers.MAX_TABLES):  # beside the grid
        counts = {f"B{number - at}": [{"meta": {"count": at}}] for at in range(number)}
        body = {"Get": {"Book": [{"title": "x"}]}, "Aggregate": counts}
        tabular = replace(request, tabular=True)
        replies = reply({"data": body}), reply(view().structure)
        answer: Answer | None = Answers(*replies).run(answers.execute(tabular, Features()))
        assert answer is not None
        cut = ["answers-cut"] * (number == answers.MAX_TABLES)
        assert [each.code for each in answer.notes] == cut
        titles = []
        while answer is not None:
            titles.append((str(answer.kind), answer.title))
            answer = answer.next
        shown_tables = [("table", f"Aggregate {name}") for name in counts][: answers.MAX_TABLES - 1]
        assert sorted(titles) == sorted([("grid", "Book"), *shown_tables])
        assert [each for each in titles if each[0] == "table"] == shown_tables


def test_a_list_shows_vectors_with_and_without_names():
    rows = [{"class": "Book", "id": key(at), "properties": {}, **more}
            for at, more in enumerate([{"vector": [1.5]}, {"vectors": {"front": [2.5]}}])]  # fmt: skip
    page = shown(LIST, reply({"objects": rows}), reply(view().structure)).page
    assert page is not None
    assert [each.name for each in page.columns] == ["uuid", "vector", "vectors"]
    assert [(row["vector"], row["vectors"]) for row in page.rows] == [("[1.5]", None), (None, '{"front":[2.5]}')]


@pytest.mark.parametrize("path", ["/v1/graphql/batch", "/v1/graphql/batch/", "/v1/graphql/batch?x=1"])
def test_a_batch_says_that_its_parts_run_without_the_key(path: str) -> None:
    assert [each.code for each in shown(f"POST {path} []", reply([])).notes] == ["batch-without-key"]


@pytest.mark.parametrize(
    ("low", "high", "codes"),
    [
        (-(2**31), 2**31 - 1, []), (0, 2**31, ["integers-null"]), (-(2**31) - 1, 0, ["integers-null"]),
        (None, None, []), (0, 0, []),
    ],
)  # fmt: skip
def test_a_null_may_stand_for_an_integer_where_either_extreme_has_more_than_32_bits(
    low: int | None, high: int | None, codes: list[str]
) -> None:
    extremes = reply({"data": {"Aggregate": {"Book": [{"pages": {"minimum": low, "maximum": high}}]}}})
    answer = shown(GET, found({"pages": None, "title": None}), reply(view().structure), extremes)
    assert [each.code for each in answer.notes] == codes


def test_nulls_are_noted_wherever_one_of_several_rows_elements_and_keys_has_them():
    nested = [{"name": "n", "dataType": ["int"]}, {"name": "ns", "dataType": ["int[]"]}]
    types = {"many": "int[]", "o": {"dataType": ["object[]"], "nestedProperties": nested}, "i": "int", "j": "int"}
    rows = [
        {"many": [1], "o": [{"n": 1, "ns": [1]}], "i": 1, "j": 1},
        {"many": [2], "o": [{"n": 1, "ns": [1]}, {"n": None, "ns": [1, None]}], "i": None, "j": None},
        {"many": [3, None], "o": None, "i": 1, "j": 1},
    ]
    small, large = {"minimum": 0, "maximum": 1}, {"minimum": 0, "maximum": 2**31}
    extremes = reply({"data": {"Aggregate": {"Book": [{"i": small, "j": large}]}}})
    script = Answers(found(*rows), reply(view(types).structure), extremes)
    notes = script.run(answers.execute(parse(GET)[0], Features())).notes
    assert [each.code for each in notes] == ["integers-null"] * 2
    assert "nulls in many, o.ns are such" in notes[0].reason
    assert "nulls in j, o.n may be such" in notes[1].reason
    assert "Aggregate{Book{i{minimum maximum} j{minimum maximum}}}" in str(script.asked[2].body)


def test_a_grid_has_the_columns_of_all_rows():
    rows = [
        {"title": "a", "_additional": {"id": key(1)}},
        {"pages": 2, "z": 0, "_additional": {"id": key(2), "score": "1"}},
    ]
    page = shown(GET, found(*rows), reply(view().structure)).page
    assert page is not None
    assert [each.name for each in page.columns] == ["uuid", "title", "pages", "z", "score"]
    assert page.cells == [[key(1), "a", None, None, None], [key(2), None, 2, 0, "1"]]


def test_several_errors_of_one_kind_are_told_once():
    errors = [{"message": "a"}, {"message": "b"}, {"message": "a"}]
    assert shown(GET, reply({"errors": errors})).failed == "a; b"
    assert shown(GET, reply({"errors": [], "data": {"Get": {"Book": []}}}), reply(view().structure)).failed == ""


def test_a_body_that_is_no_json_is_shown_as_text():
    answer = shown("GET /v1/x", reply(b"\xffplain"))
    assert (answer.kind, answer.text, [note.code for note in answer.notes]) == ("text", "", ["answer-binary"])
    assert shown("GET /v1/x", reply("")).text == "HTTP 200"
    answer = shown("GET /v1/x", reply('{"b":1,"a":2}'))
    assert (answer.kind, json.loads(answer.text), answer.text.count("\n")) == ("json", {"b": 1, "a": 2}, 3)


class Rules:
    async def test_every_method_reaches_the_server_with_its_body(self, wv: Rig):
        """W26, W32: PATCH, DELETE with a body, and OPTIONS."""
        name = await wv.collection({"t": "text", "i": "int"}, [{"t": "a", "i": 1}, {"t": "b", "i": 2}])
        match = {"class": name, "where": {"path": ["t"], "operator": "Equal", "valueText": "b"}}
        changed, dry, left, real = await wv.console(
            f"""
PATCH /v1/objects/{name}/{key(0)} {{"class": "{name}", "id": "{key(0)}", "properties": {{"i": 7}}}}

DELETE /v1/batch/objects
{json.dumps({"match": match, "dryRun": True})}

GET /v1/objects?class={name}

DELETE /v1/batch/objects
{json.dumps({"match": match, "dryRun": False})}
            """
        )
        assert [each.status for each in (changed, dry, left, real)] == [204, 200, 200, 200]
        assert json.loads(dry.text)["results"]["matches"] == 1
        assert left.page is not None
        assert sorted((row["t"], row["i"]) for row in left.page.rows) == [("a", 7), ("b", 2)]
        assert [row["t"] for row in (await wv.page(name)).rows] == ["a"]


class TestAnswersOnFake(OnFake, Rules):
    pass


class TestAnswersOnServer(OnServer, Rules):
    pass
