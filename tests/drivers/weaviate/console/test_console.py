"""The console: REST lines and GraphQL, told apart, split, marked read or write, and answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import OnFake, OnServer, Rig, key
from drivers.weaviate.views import view

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.errors import ConsoleSyntaxError
from dragoman_weaviate import console_answers as answers
from dragoman_weaviate.console_text import parse
from dragoman_weaviate.protocol import Features

GET = "{ Get { Book(limit: 2) { title _additional { id } } } }"


def one(text: str) -> ConsoleRequest:
    [request] = parse(text)
    return request


def test_half_a_character_in_graphql_is_a_fault_with_its_place():
    with pytest.raises(ConsoleSyntaxError) as caught:
        parse('\n{ Get { Book(where: "\ud800") { title } } }')
    assert caught.value.details == {"line": 2, "column": 1}


# W26, W28: REST lines -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "method", "path", "body"),
    [
        ("GET /v1/schema", "GET", "/v1/schema", None),
        ('POST /v1/objects {"class": "Book"}', "POST", "/v1/objects", '{"class": "Book"}'),
        ('POST /v1/objects\n{\n  "class": "Book"\n}', "POST", "/v1/objects", '{\n  "class": "Book"\n}'),
        ('PUT /v1/x {"a": 1}\n{"b": 2}', "PUT", "/v1/x", '{"b": 2}'),
        ('put /v1/x # why\n# because\n{"a": "#1"} # so', "PUT", "/v1/x", '{"a": "#1"}'),
        ("HEAD /v1/objects/Book/1", "HEAD", "/v1/objects/Book/1", None),
        ("PATCH /v1/x [1,\n2]\n", "PATCH", "/v1/x", "[1,\n2]"),
        ("DELETE /v1/schema/Book", "DELETE", "/v1/schema/Book", None),
        ("  OPTIONS /v1/schema  ", "OPTIONS", "/v1/schema", None),
    ],
)
def test_a_rest_line_takes_any_method_and_a_body_behind_or_below(text, method, path, body):
    """W26: the body below stands for the one on the line."""
    assert one(text).request == HttpRequest(method, path, body)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("/nodes", "/v1/nodes"),
        ("/schema?consistency=false", "/v1/schema?consistency=false"),
        ("/v1/nodes", "/v1/nodes"),
        ("/v1?x=1", "/v1?x=1"),
        ("/", "/"),
        ("/v1", "/v1"),
        ("/v1/", "/v1/"),
        ("/v10/x", "/v1/v10/x"),
        ("/.well-known/ready", "/v1/.well-known/ready"),
        ("/objects/Bücher", "/v1/objects/B%C3%BCcher"),
    ],
)
def test_a_path_without_the_version_gets_it(given, sent):
    """W28."""
    assert one(f"GET {given}").request.path == sent


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("DELETE FROM x", 1, 1),
        ("SELECT 1", 1, 1),
        ("GET //elsewhere/x", 1, 5),
        ("GET http://elsewhere/x", 1, 1),
        ('GET /v1/schema\n\nPOST /v1/x\n{"a":}', 4, 6),
        ("{ Get { Book { title } }", 1, 1),
        ("GET /v1/schema\n{ Get } }", 2, 9),
        ("mutation { x }", 1, 1),
        ("subscription { x }", 1, 1),
        ('{"a": 1}', 1, 1),
        ('{"query": 1}', 1, 1),
        ('{"query": -1.5e3}', 1, 1),
        ('{"query": null}', 1, 1),
        ('{"query": ["{ Get { A { t } } }"]}', 1, 1),
        ('{"query": NaN}', 1, 1),
        ("POST /v1/x {} {}", 1, 15),
        ("[1]", 1, 1),
    ],
)
def test_what_is_no_request_is_told_with_its_place(text, line, column):
    """W26, W29: there is no mutation type; SQL is not spoken (W40)."""
    with pytest.raises(ConsoleSyntaxError) as caught:
        parse(text)
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column)
    assert ("GraphQL only reads" in caught.value.message) is text.startswith(("mutation", "subscription"))


# W2, W29, W30: GraphQL ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        GET,
        "query { Aggregate { Book { meta { count } } } }",
        "query Named($x: Int) { Get { Book { title } } }",
        "fragment F on Book { title }\nquery { Get { Book { ...F } } }",
        "query { Get { Book { ...F } } }\nfragment F on Book { title }",
        '{ Get { Book(nearText: {concepts: ["a } b", "c # d"]}, limit: 3) { _additional { distance score } } } }',
        '{ # a } comment\n Get { Book(where: {valueText: """block } " """}) { title } } }',
    ],
)
def test_graphql_goes_out_as_it_was_typed(text):
    """W2, W29, W30: as `{"query": …}` to `/v1/graphql`; it only reads."""
    found = one(text)
    assert json.loads(found.request.body or "") == {"query": text}
    assert (found.request.method, found.request.path, found.writes) == ("POST", "/v1/graphql", False)


def test_an_integer_of_thousands_of_digits_goes_out_as_it_is():
    text = '{"query": "{ Get { A { t } } }", "variables": {"n": %s}}' % ("9" * 5_000)
    [found] = parse(text)
    assert found.request.body == text


def test_a_query_with_variables_is_sent_as_json():
    text = '{"query": "query($l: Int) { Get { Book(limit: $l) { title } } }", "variables": {"l": 1}}'
    assert one(text).request == HttpRequest("POST", "/v1/graphql", text)


def test_several_requests_are_split():
    """W26: at REST lines and between operations; each knows its line."""
    count = "query { Aggregate { Book { meta { count } } } }"
    text = f'# look\nGET /schema\n\n{GET}\n{count}\n\nPOST /v1/objects\n{{"class": "A"}}\n{GET}'
    found = parse(text)
    assert [(each.request.path, each.line, each.writes) for each in found] == [
        ("/v1/schema", 2, False),
        ("/v1/graphql", 4, False),
        ("/v1/graphql", 5, False),
        ("/v1/objects", 7, True),
        ("/v1/graphql", 9, False),
    ]
    assert parse("# nothing\n\n") == []


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("GET /v1/schema", False),
        ("HEAD /v1/objects/Book/1", False),
        ("POST /v1/graphql {}", False),
        ("POST /graphql/batch []", False),
        ("POST /v1/objects/validate {}", False),
        ("POST /v1/search/Book/bm25 {}", False),
        ("POST /v1/aggregate/Book {}", False),
        ("POST /v1/objects {}", True),
        ("POST /v1/batch/objects {}", True),
        ("POST /v1/schema/graphql {}", True),
        ("POST /v1/graphql%2f..%2fobjects {}", True),
        ("POST /v1/backups/filesystem {}", True),
        ("PUT /v1/objects/Book/1 {}", True),
        ("PATCH /v1/objects/1 {}", True),
        ("DELETE /v1/schema/Book", True),
        ('DELETE /v1/batch/objects {"dryRun": true, "match": {}}', False),
        ('DELETE /v1/batch/objects {"dryRun": false, "match": {}}', True),
        ('DELETE /v1/batch/objects {"dryRun": "true", "match": {}}', True),
        ('DELETE /v1/batch/objects {"dryRun": true, "DRYRUN": false}', True),
        ('DELETE /v1/batch/objects {"match": {"dryRun": true}}', True),
        ("DELETE /v1/batch/objects", True),
    ],
)
def test_reading_and_writing_are_told_apart(text, writes):
    """W29: if in doubt, it counts as a write; a dry run counts as reading only where it plainly is one."""
    assert one(text).writes is writes


# W31, W32: answers ----------------------------------------------------------------------------------------------------


def answered(body: Any) -> Any:
    return Answers(reply(body), reply(view().structure)).run(answers.execute(one(GET), Features()))


def rows(*found: dict[str, Any], name: str = "Book") -> dict[str, Any]:
    return {"data": {"Get": {name: list(found)}}}


def test_a_get_is_a_grid_of_the_selected_fields():
    """W31: `_additional.id` is the uuid, every other member a column; declared ones in their order, the vector last."""
    found = rows(
        {
            "_additional": {"vector": [1.5], "id": key(1), "score": "0", "distance": None},
            "zz": 1, "pages": 2, "title": "tea",
        }
    )  # fmt: skip
    answer = answered(found)
    assert (answer.kind, answer.title, answer.failed) == ("grid", "Book", "")
    [row] = answer.page.rows
    assert list(row.to_dict().items()) == [
        ("uuid", key(1)), ("title", "tea"), ("pages", 2), ("zz", 1), ("score", "0"), ("distance", None),
        ("vector", "[1.5]"),
    ]  # fmt: skip
    assert row.key.id == key(1)


def test_a_declared_list_is_a_column_of_lists():
    script = Answers(
        reply(rows({"tags": ["a"], "title": "tea"})), reply(view({"tags": "text[]", "title": "text"}).structure)
    )
    page = script.run(answers.execute(one(GET), Features())).page
    assert page is not None
    assert [(column.name, column.repeated) for column in page.columns] == [("tags", True), ("title", False)]


def test_only_what_was_selected_is_shown():
    """W31: without an id there is not a uuid, and no row can be addressed."""
    answer = answered(rows({"title": "tea"}, {"title": None}))
    assert [column.name for column in answer.page.columns] == ["title"]
    assert answer.page.keys == []


def test_members_and_properties_of_one_name_are_kept_apart():
    """W31."""
    types = {"uuid": "text", "vector": "int", "distance": "number"}
    additional = {"id": key(1), "vector": [1], "distance": 0.5}
    script = Answers(
        reply(rows({"uuid": "mine", "vector": 7, "distance": 3, "_additional": additional})),
        reply(view(types).structure),
    )
    page = script.run(answers.execute(one(GET), Features())).page
    assert page is not None
    assert page.rows[0].to_dict() == {
        "uuid": key(1), "properties.uuid": "mine", "properties.vector": 7, "distance": 3, "_additional.distance": 0.5,
        "vector": "[1]",
    }  # fmt: skip


def test_several_collections_are_several_grids():
    """W31."""
    found = {"data": {"Get": {"Book": [{"title": "tea"}], "Author": [{"name": "Ada"}]}}}
    script = Answers(reply(found), reply(view().structure), reply("", status=404))
    answer = script.run(answers.execute(one(GET), Features()))
    assert (answer.title, answer.next.title, answer.next.next) == ("Book", "Author", None)
    assert answer.next.page.rows[0].to_dict() == {"name": "Ada"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"data": {"Aggregate": {"Book": [{"meta": {"count": 3}}]}}}, GET),
        ({"data": {"Get": {"Book": []}, "Aggregate": {}}}, GET),
        ({"version": "1"}, "GET /v1/meta"),
        ([{"name": "node1"}], "GET /nodes"),
    ],
)
def test_anything_else_is_formatted_json(body, text):
    """W32."""
    script = Answers(reply(body))
    answer = script.run(answers.execute(one(text), Features()))
    assert (answer.kind, answer.page) == ("json", None)
    assert json.loads(answer.text) == body
    assert answer.text.startswith(("{\n", "[\n"))


def test_an_error_beside_a_200_is_a_failure(wording):
    """W31: with the data there is."""
    errors = [{"message": "no shard"}, {"message": "no shard"}]
    answer = answered(rows({"title": "tea"}) | {"errors": errors})
    assert (answer.failed, answer.kind, len(answer.page.cells)) == ("no shard", "grid", 1)
    script = Answers(reply({"data": {"Get": {"Book": None}}, "errors": errors}))
    answer = script.run(answers.execute(one(GET), Features()))
    assert (answer.failed, answer.kind) == ("no shard", "json")
    fragments = [{"message": "interface conversion: ast.Selection is *ast.FragmentSpread, not *ast.Field"}]
    script = Answers(reply({"errors": fragments}))
    wording(script.run(answers.execute(one(GET), Features())).failed)


def test_an_error_status_is_an_answer_with_its_body():
    script = Answers(reply({"error": [{"message": "no such class"}]}, status=422))
    answer = script.run(answers.execute(one("GET /v1/schema/X"), Features()))
    assert (answer.status, answer.kind) == (422, "json")
    assert answer.notes[0].code == "http-error"
    assert answer.notes[0].reason.endswith("no such class")


def test_an_answer_without_a_body_says_its_status():
    script = Answers(reply("", status=204))
    answer = script.run(answers.execute(one("DELETE /v1/objects/Book/1"), Features()))
    assert (answer.kind, answer.text) == ("text", "HTTP 204")


def test_a_batch_of_queries_says_why_it_fails_with_a_key():
    script = Answers(reply([]))
    [note] = script.run(answers.execute(one("POST /v1/graphql/batch []"), Features())).notes
    assert note.code == "batch-without-key"


class Rules:
    @pytest.mark.parametrize(
        ("large", "selection", "notes"),
        [
            ({"i": 2**31}, "i", ["nulls in i may be such integers"]),
            ({"i": -(2**31) - 1}, "i is", ["nulls in i may be such integers"]),
            ({"i": 2**31 - 1}, "i is t", []),
            ({"is": [2**31]}, "i is", ["nulls in is are such integers"]),
            ({"is": [2**31 - 1]}, "i is", []),
            ({"i": 2**40, "is": [2**40]}, "i is", ["nulls in is are", "nulls in i may be"]),
            ({"i": 2**31}, "other: i", ["nulls in other may be such integers"]),
            ({"i": 2**31}, "t", []),
        ],
    )
    async def test_nulls_that_stand_for_large_integers_are_noted(self, wv: Rig, large, selection, notes):
        """W31: GraphQL has integers of 32 bits, and answers larger ones with null."""
        name = await wv.collection({"t": "text", "i": "int", "is": "int[]"}, [{"t": "a"} | large, {"t": "b"}])
        [answer] = await wv.console(f"{{ Get {{ {name} {{ {selection} _additional {{ id }} }} }} }}")
        found = [note.reason for note in answer.notes if note.code == "integers-null"]
        assert len(found) == len(notes)
        assert all(text in reason for text, reason in zip(notes, found, strict=True))
        [rest] = await wv.console(f"GET /v1/objects?class={name}")
        assert rest.notes == []

    async def test_the_console_of_the_specification(self, wv: Rig):
        """W2, W26, W28 to W32: GraphQL and REST lines in one text."""
        name = await wv.collection({"t": "text", "i": "int"}, [{"t": "tea", "i": 1}, {"t": "sea", "i": 2}])
        found = await wv.console(
            f"""
            {{ Get {{ {name}(limit: 5, sort: [{{path: ["i"], order: desc}}]) {{ i t _additional {{ id }} }} }} }}
            query {{ Aggregate {{ {name} {{ meta {{ count }} }} }} }}
GET /schema/{name}
GET /objects?class={name}&limit=1
POST /v1/graphql {{"query": "{{Get{{{name}{{t}}}}}}"}}
POST /objects
{{"class": "{name}", "properties": {{"t": "new"}}}}
            """
        )
        assert [each.status for each in found] == [200] * 6
        assert [each.kind for each in found] == ["grid", "json", "json", "grid", "grid", "json"]
        page = found[0].page
        assert page is not None
        assert [list(row.to_dict().values()) for row in page.rows] == [[key(1), "sea", 2], [key(0), "tea", 1]]
        assert [each.id for each in page.keys] == [key(1), key(0)]

    async def test_a_broken_query_is_a_failure_with_its_reason(self, wv: Rig):
        """W31: the server answers 200."""
        name = await wv.collection({"t": "text"})
        [answer] = await wv.console(f"{{ Get {{ {name} {{ nope }} }} }}")
        assert answer.status == 200
        assert "nope" in answer.failed

    @pytest.mark.parametrize(
        "query",
        [
            "{ Get { %(one)s: %(two)s { t _additional { id } } } }",
            "{ Get { %(one)s : %(two)s(limit: 5) { t _additional { id } } } }",
            'query { Get { # "\n %(one)s: # )\n %(two)s(limit: 1, offset: 0) {t _additional{id}}}}',
            "{ Get { %(one)s { _additional { id: lastUpdateTimeUnix } } } }",
        ],
    )
    async def test_rows_under_another_name_have_no_keys(self, wv: Rig, query: str) -> None:
        """A deletion by such a key would end another row."""
        one = await wv.collection({"t": "text"}, [{"t": "one"}])
        two = await wv.collection({"t": "text"}, [{"t": "two"}])
        for text in (query % {"one": one, "two": two}, json.dumps({"query": query % {"one": one, "two": two}})):
            [answer] = await wv.console(text)
            assert answer.page is not None, answer
            assert len(answer.page.cells) == 1
            assert answer.page.keys == []

    async def test_a_colon_in_an_argument_or_a_text_costs_no_keys(self, wv: Rig) -> None:
        name = await wv.collection({"t": "text"}, [{"t": "a:b"}])
        where = 'where: {path: ["t"], operator: Equal, valueText: "a:b"}'
        [answer] = await wv.console(f"{{ Get {{ {name}({where}) {{ t # a: b\n _additional {{ id }} }} }} }}")
        assert answer.page is not None
        assert [each.object for each in answer.page.keys] == [name]


class TestConsoleOnFake(OnFake, Rules):
    pass


class TestConsoleOnServer(OnServer, Rules):
    pass
