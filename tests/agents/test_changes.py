"""Agents change rows by plans: shown exactly, sent once, and only where rules and the user agree."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest
from aiohttp import web
from mcp_types import ElicitResult

from command_line import Machine
from dragoman.extending import AgentRules
from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.errors import Refused
from dragoman_mcp.rules import ConnectionRules, surely_reads
from library import fill

WRITES = ("PUT", "DELETE")


def written(requests):
    """Return the requests that may have changed something."""
    return [
        request
        for request in requests
        if request.method in WRITES
        or (request.method == "POST" and not request.path.endswith(("_search", "_count", "_field_caps", "_mget")))
    ]


async def first(agent, number):
    """Return the handle of a book."""
    rows = [{"column": "_id", "operator": "=", "value": str(number)}]
    return (await agent.call("read_rows", object="books", filters=rows))["first_key"]


@pytest.fixture
def answers():
    """What the user says to each question; the questions asked so far."""
    return {"content": {"send": True}, "action": "accept", "asked": []}


@pytest.fixture
def consent(answers):
    async def ask(_context, params):
        answers["asked"].append(params.message)
        return ElicitResult(action=answers["action"], content=answers["content"])

    return ask


async def test_a_plan_is_sent_once_and_as_it_was_shown_and_a_row_that_changed_is_a_conflict(agents):
    async with agents('allow = "write"') as agent:
        row = await first(agent, 20)
        change = {"kind": "update", "row": row, "values": {"pages": 777, "serial": {"$integer": "9007199254740999"}}}
        agent.requests.clear()
        plan = await agent.call("plan_changes", changes=[change])
        rival = await agent.call("plan_changes", changes=[{**change, "values": {"pages": 778}}])
        twin = await agent.call("plan_changes", changes=[change])
        assert not written(agent.requests)
        [request] = plan["requests"]
        line, body = request.split("\n", 1)
        assert "9007199254740999" in body
        applied = await agent.call("apply_plan", plan=plan["plan"])
        assert [outcome["status"] for outcome in applied["outcomes"]] == ["applied"]
        [sent] = written(agent.requests)
        assert line.startswith(f"{sent.method} {sent.path}")
        assert sent.body.decode() == body
        assert (await agent.call("apply_plan", failing=True, plan=plan["plan"]))["code"] == "plan-gone"
        late = await agent.call("apply_plan", plan=rival["plan"])
        assert [(outcome["status"], "holds" in outcome) for outcome in late["outcomes"]] == [("conflict", False)]
        same = await agent.call("apply_plan", plan=twin["plan"])
        assert [(outcome["status"], outcome["holds"]) for outcome in same["outcomes"]] == [("unknown", True)]
        new = {"kind": "insert", "object": "books", "id": "new", "values": {"title": "New"}}
        plan = await agent.call("plan_changes", changes=[new])
        [outcome] = (await agent.call("apply_plan", plan=plan["plan"]))["outcomes"]
        plan = await agent.call("plan_changes", changes=[{"kind": "delete", "row": outcome["row"]}])
        [outcome] = (await agent.call("apply_plan", plan=plan["plan"]))["outcomes"]
        assert outcome["status"] == "applied"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_user_is_asked_with_the_exact_requests_and_decides(agents, answers, consent, mode):
    async with agents('allow = "write"', client={"elicitation_callback": consent, "mode": mode}) as agent:
        change = {"kind": "update", "row": await first(agent, 21), "values": {"title": "Asked"}}
        agent.requests.clear()
        plan = await agent.call("plan_changes", changes=[change])
        answers["content"] = {"send": False}
        assert (await agent.call("apply_plan", failing=True, plan=plan["plan"]))["code"] == "not-confirmed"
        assert (await agent.call("apply_plan", failing=True, plan=plan["plan"]))["code"] == "plan-gone"
        plan = await agent.call("plan_changes", changes=[change])
        answers.update(content=None, action="decline")
        assert (await agent.call("apply_plan", failing=True, plan=plan["plan"]))["code"] == "not-confirmed"
        assert not written(agent.requests)
        plan = await agent.call("plan_changes", changes=[change])
        answers.update(content={"send": True}, action="accept")
        await agent.call("apply_plan", plan=plan["plan"])
        assert plan["requests"][0] in answers["asked"][-1]
        assert len(written(agent.requests)) == 1
        answers.update(content={"send": False})
        request = "DELETE /books/_doc/21"
        assert (await agent.call("run_console", failing=True, text=request))["code"] == "not-confirmed"
        await agent.call("run_console", text="GET /books/_count")
        assert len(answers["asked"]) == 4


FORBIDDEN = [
    "PUT /books/_doc/1\n{}", "POST /books/_doc\n{}", "DELETE /books/_doc/1", "DELETE /books", "PUT /other\n{}",
    "POST /_bulk\n{\"delete\":{\"_index\":\"books\",\"_id\":\"1\"}}\n", "GET /_bulk\n{}", "GET /books/_bulk\n{}",
    "POST /books/_update/1\n{\"doc\":{}}", "POST /books/_update_by_query\n{}", "POST /books/_delete_by_query\n{}",
    "GET /books/_delete_by_query\n{}", "POST /_reindex\n{}", "POST /books/_search/template\n{}",
    "GET /_msearch/template\n{}", "POST /_scripts/x\n{}", "DELETE /_search/scroll\n{}", "POST /_search/scroll\n{}",
    "GET /books/_search?scroll=1m", "POST /books/_pit?keep_alive=1m", "GET /books/%5Fbulk\n{}", "POST /books/_close",
    "POST /books/_search%2F..%2F_bulk\n{}", "POST /books/_forcemerge", "POST /_aliases\n{}", "GET /_cat/../_bulk",
    "POST /books/_search/../_delete_by_query\n{}", "POST /_cluster/reroute\n{}", "PUT /_cluster/settings\n{}",
    "POST /_sql\n{\"query\":\"x\"}", "GET /_nodes/hot_threads", "POST /_security/user/x\n{}",
]  # fmt: skip
"""Texts that hide a write, or that the host cannot show to be a read."""


async def test_a_console_request_that_may_write_never_reaches_the_server(agents):
    async with agents('allow = "plan"') as agent:
        tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
        assert "plan_changes" in tools
        assert "apply_plan" not in tools
        assert tools["run_console"].annotations.read_only_hint
        row = await first(agent, 22)
        plan = await agent.call("plan_changes", changes=[{"kind": "delete", "row": row}])
        agent.requests.clear()
        codes = {text: (await agent.call("run_console", failing=True, text=text))["code"] for text in FORBIDDEN}
        assert {text: code for text, code in codes.items() if code not in ("not-allowed", "console-syntax")} == {}
        assert sum(code == "not-allowed" for code in codes.values()) >= 25
        both = "GET /books/_count\n\nDELETE /books/_doc/22"
        assert (await agent.call("run_console", failing=True, text=both))["code"] == "not-allowed"
        assert (await agent.call("apply_plan", failing=True, plan=plan["plan"]))["code"] == "not-allowed"
        assert not agent.requests
        count = await agent.call("run_console", text="GET /books/_count")
        assert count["replies"][0]["status"] == 200
    async with agents('hidden = ["card"]') as agent:
        for tool, arguments in (
            ("run_console", {"text": "GET /books/_search"}),
            ("plan_changes", {"changes": [{"kind": "insert", "object": "books"}]}),
        ):
            assert (await agent.call(tool, failing=True, **arguments))["code"] == "not-allowed"
    async with agents('allow = "write"\nobjects = ["books"]\nhidden = ["card"]', allow="plan") as agent:
        for change, code in (
            ({"kind": "insert", "object": "salaries"}, "object-not-found"),
            ({"kind": "insert", "object": "books", "values": {"card": "1"}}, "column-unknown"),
            ({"kind": "update", "row": "r000000.1", "values": {}}, "handle-unknown"),
            ({"kind": "delete"}, "argument-invalid"),
            ({"kind": "drop", "object": "books"}, "argument-invalid"),
            ({"kind": "insert", "object": "books", "values": {"title": {"$cut": "x"}}}, "value-invalid"),
            ({"kind": "insert", "object": "books", "values": {"title": {"$masked": True}}}, "value-invalid"),
        ):
            assert (await agent.call("plan_changes", failing=True, changes=[change]))["code"] == code


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("{ Get { Book { title } } }", True),
        ('query Q { Get { Book(where: {valueText: "mutation"}) { title } } }', True),
        ("mutation { addBook { id } }", False),
        ("{ Get { Book { title } } } mutation { x }", False),
        ('query Q { a } # "\nmutation { x } # "', False),
        ("subscription { x }", False),
        ("fragment F on B { x } mutation { y }", False),
        ('{ a(b: "\\"", c: """ \\""" " """) } # "', True),
        ('{ a(b: "\\") }', False),
        ('{ a(b: "x\n") }', False),
        ('{ a(b: """ x ") }', False),
        # Minutes, if what follows each quote is looked at:
        pytest.param('{ a(b: """' + 200_000 * '\\"' + ") }", False, id="a long text that is not closed"),
    ],
)
def test_a_graphql_request_reads_only_if_it_holds_no_other_operation(text, reads):
    request = HttpRequest("POST", "/v1/graphql", json.dumps({"query": text}))
    assert surely_reads(request, database="weaviate") is reads
    assert not surely_reads(request, database="solr")


@pytest.mark.parametrize(
    "body",
    [
        '{"query":"{ a }","Query":"mutation { x }"}', '{"query":"mutation { x }","query":"{ a }"}',
        '{"query":"{ a }","QUERY":null}', '{"query":"{ a }","extensions":{}}', '[{"query":"{ a }"}]', "{}", "",
    ],
)  # fmt: skip
def test_a_body_of_graphql_that_a_server_may_read_in_another_way_is_no_read(body):
    assert not surely_reads(HttpRequest("POST", "/v1/graphql", body), database="weaviate")
    whole = '{"query":"{ a }","variables":{"a":1},"operationName":"x"}'
    assert surely_reads(HttpRequest("POST", "/v1/graphql", whole), database="weaviate")


READS = {
    "elasticsearch": [
        "GET /", "GET /books", "HEAD /books", "GET /books/_search", "GET /b*,c/_search?size=1", "POST /_search",
        "POST /books/_count", "GET /_count", "GET /books/_mapping", "GET /_mappings", "GET /_settings", "GET /_alias",
        "GET /books/_stats", "POST /books/_field_caps", "GET /books/_doc/1", "GET /books/_source/a-B.c",
        "GET /_cat/indices", "GET /_cat/indices/b*", "GET /_cluster/health",
    ],
    "weaviate": ["GET /v1/meta", "GET /v1/schema/Book", "GET /v1/objects/Book/0-1_a", "GET /v1/nodes"],
}  # fmt: skip
OTHERS = {
    "elasticsearch": [
        "PUT /books", "DELETE /books", "POST /books", "POST /", "POST /books/_mapping", "PUT /books/_search",
        "POST /books/_doc/1", "GET /books,other", "GET /Books", "GET /_nodes", "GET /_cluster/state", "GET /_cat",
        "GET /_cat/indices/b*/x", "GET /v1/meta", "GET /books/_search?preference=_only_local", "GET /_search?scroll",
        "GET /books/_search?source_content_type=application/json", "GET /books/_search?x=1&scroll=1m",
        "GET /books/_search?size=1;scroll=1m",
        "GET /b*/_doc/1", "GET /books/_search/x", "PATCH /_count", "GET /books/_doc/1/_update", "GET /a?scr%6fll=1",
    ],
    "weaviate": ["POST /v1/objects", "GET /v1/backups", "GET /v1/schemas", "GET /meta", "GET /", "PUT /v1/schema"],
    "solr": ["GET /", "GET /_search", "GET /v1/meta", "POST /v1/graphql"],
}  # fmt: skip


@pytest.mark.parametrize("reads", [True, False])
def test_the_list_of_console_requests_that_read_holds_these_and_not_those(reads):
    judged = {
        (database, text): surely_reads(HttpRequest(*text.split(" ")), database=database)
        for database, texts in (READS if reads else OTHERS).items()
        for text in texts
    }
    assert [key for key, value in judged.items() if value is not reads] == []
    if reads:
        assert all(
            surely_reads(HttpRequest(*text.split(" ")), database="opensearch") for text in READS["elasticsearch"]
        )


def console(method, path, body=None, *, writes=False):
    return ConsoleRequest(request=HttpRequest(method, path, body), writes=writes)


def rules_of(database="elasticsearch", **rules):
    return ConnectionRules(AgentRules(**rules), name="shop", type=database, host="", power=rules.get("allow", "read"))


@pytest.mark.parametrize("writes", [True, False])
def test_a_driver_and_the_host_must_agree_that_a_console_request_reads(writes):
    assert rules_of().reads(console("GET", "/books/_count", writes=writes)) is not writes
    assert not surely_reads(HttpRequest("GET", "/books/_search?scrol%6c=1m"), database="elasticsearch")


@pytest.mark.parametrize(
    ("method", "path", "reads"),
    [
        ("GET", "/_nodes/stats", True),
        ("GET", "/_nodes/stats/", True),
        ("GET", "/_nodes/stats?human=true", True),
        ("GET", "/_nodes/stats?human=%20;x/../y", True),
        ("HEAD", "/_nodes/stats", False),
        ("get", "/_nodes/stats", True),
        ("GET", "/_nodes", False),
        ("GET", "/_nodes/a/stats", False),
        ("GET", "/_nodes/..", False),
        ("GET", "/_nodes//", False),
        ("GET", "/_nodes/%73tats", False),
        ("GET", "/_nodes/a;b", False),
        ("GET", "/_nodes/stats?scroll=1m", False),
        ("POST", "/books/_explain/1", True),
        ("POST", "/books/_explain/1/2", False),
        ("POST", "/api/query/a/b", True),
        ("DELETE", "/api/query/a/b", True),
        ("DELETE", "/api/query", False),
    ],
)
def test_an_owner_says_which_other_console_requests_read(method, path, reads):
    rules = rules_of("prometheus", console_reads=("GET /_nodes/*", "POST /*/_explain/*", "* /api/query/**"))
    assert rules.reads(console(method, path, writes=True)) is reads


def test_an_owner_cannot_make_a_mutation_of_graphql_a_read():
    rules = rules_of("weaviate", console_reads=("POST /v1/graphql",))
    assert not rules.reads(console("POST", "/v1/graphql", json.dumps({"query": "mutation { x }"})))
    assert rules.reads(console("POST", "/v1/graphql", json.dumps({"query": "{ x }"}), writes=True))


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("DELETE", "/books", False),
        ("delete", "/books/", False),
        ("DELETE", "/books?x", False),
        ("PUT", "/books/_doc/1", True),
        ("GET", "/", True),
        ("GET", "/_cluster/health", False),
        ("GET", "/_cluster/health/", False),
        ("POST", "/_cluster/a/b", False),
        ("GET", "/_cluster", True),
        ("GET", "/./_cluster/health", False),
        ("GET", "/x/../_cluster/health", False),
        ("GET", "/x//_cluster/health", False),
        ("GET", "/_clust%65r/health", False),
        ("GET", "/_cluster/health;x", False),
    ],
)
def test_an_owner_forbids_console_requests_however_they_are_spelled(method, path, sent):
    rules = rules_of(allow="write", console_forbidden=("DELETE /**", "* /_cluster/**"), console_reads=("* /**",))
    with nullcontext() if sent else pytest.raises(Refused, match="nothing was sent"):
        rules.check_console([console("GET", "/books/_count"), console(method, path)])


async def test_an_owners_word_on_the_console_holds_on_the_way_to_the_server(agents, consent):
    rules = 'console_reads = ["PUT /books/_doc/*"]\nconsole_forbidden = ["* /books/_search"]'
    text = 'PUT /books/_doc/read\n{"title": "x"}'
    async with agents(rules, client={"elicitation_callback": consent}) as agent:
        replies = await agent.call("run_console", text=text)
        assert replies["replies"][0]["status"] in (200, 201)
        await agent.call("run_console", text="GET /books/_count")
        agent.requests.clear()
        for refused in ("GET /books/_search", f"{text}\n\nPOST /books/_search\n{{}}", "DELETE /books/_doc/read"):
            assert (await agent.call("run_console", failing=True, text=refused))["code"] == "not-allowed"
        assert not agent.requests
    async with agents(f'{rules}\nobjects = ["books"]') as agent:
        assert (await agent.call("run_console", failing=True, text=text))["code"] == "not-allowed"


async def test_rows_are_exported_into_new_files_of_one_folder_without_what_is_hidden(agents, tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    rules = 'hidden = ["owner.email", "lines.card"]\nmasked = ["card"]\nrows_an_hour = 70'
    async with agents(rules, export_to=folder) as agent:
        few = [{"column": "pages", "operator": "<=", "value": 104}]
        exported = await agent.call("export_rows", object="books", filters=few, file="books.csv")
        text = (folder / "books.csv").read_text()
        assert (exported["rows"], len(text.splitlines())) == (4, 5)
        assert [event.rows for event in agent.events if event.name == "agent.answered"] == [4]
        assert "pages" in text
        assert not [secret for secret in ("example.org", "4111", "4222") if secret in text]
        for arguments, code in (
            ({"file": "books.csv"}, "file-exists"),
            ({"file": "../books.csv"}, "argument-invalid"),
            ({"file": "/tmp/x.csv"}, "argument-invalid"),
            ({"file": ".bashrc"}, "argument-invalid"),
            ({"file": "all.ndjson", "format": "documents"}, "not-allowed"),
            ({"file": "card.csv", "columns": ["card"]}, "column-masked"),
            ({"file": "lines.csv", "columns": ["lines"]}, "column-unknown"),
        ):
            wrong = await agent.call("export_rows", failing=True, object="books", **{"filters": few} | arguments)
            assert wrong["code"] == code
        await agent.call("export_rows", object="books", file="all.csv")
        late = await agent.call("export_rows", failing=True, object="books", file="again.csv")
        assert late["code"] == "limit-exceeded"
        assert sorted(path.name for path in folder.iterdir()) == ["all.csv", "books.csv"]
        drivers = (await agent.client.call_tool("find_drivers", {"words": "weaviate"})).structured_content
        assert drivers["drivers"][0]["id"] == "weaviate"
    async with agents() as agent:
        assert "export_rows" not in [tool.name for tool in (await agent.client.list_tools()).tools]
        wrong = await agent.call("export_rows", failing=True, object="books", file="x.csv")
        assert wrong["code"] == "not-allowed"


@pytest.mark.parametrize(("program", "key"), [("claude", "mcpServers"), ("vscode", "servers")])
def test_the_settings_of_an_agents_program_start_the_server(shop_home, program, key):
    words = f"dragoman mcp --connection shop --allow plan --print-config {program}"
    server = Machine(shop_home)(words).json[key]["dragoman"]
    assert server["args"][-5:] == ["mcp", "--connection", "shop", "--allow", "plan"]
    assert server["env"] == {"DRAGOMAN_HOME": str(shop_home)}


@pytest.mark.parametrize(
    "rules",
    ['hidden = ["card"]', 'masked = ["card"]', 'columns = ["price", "title"]', 'hidden = ["lines.card", "own*"]'],
)
async def test_no_plan_shows_what_is_hidden_of_a_row_that_is_written_as_a_whole(agents, cluster, rules):
    """A number that a partial update would spell anew makes the driver write the whole document."""
    properties = {"price": {"type": "double"}, "title": {"type": "keyword"}, "card": {"type": "keyword"}}
    properties["lines"] = {"type": "nested", "properties": {"card": {"type": "keyword"}}}
    properties["owner"] = {"properties": {"card": {"type": "keyword"}}}
    row = {"price": 1, "title": "a", "card": "4111", "lines": [{"card": "4222"}], "owner": {"card": "4333"}}
    await fill(cluster, "sold", properties, row)
    exact = {"$decimal": "1.50"}
    async with agents('allow = "plan"') as agent:
        handle = (await agent.call("read_rows", object="sold"))["first_key"]
        change = {"kind": "update", "row": handle, "values": {"price": exact}}
        assert "4111" in str(await agent.call("plan_changes", changes=[change]))
    async with agents(f'allow = "plan"\n{rules}') as agent:
        handle = (await agent.call("read_rows", object="sold"))["first_key"]
        whole = await agent.call("plan_changes", failing=True, changes=[{**change, "row": handle}])
        assert whole["code"] == "not-allowed"
        part = {**change, "row": handle, "values": {"title": "b"}}
        [request] = (await agent.call("plan_changes", changes=[part]))["requests"]
        assert request.endswith('{"doc":{"title":"b"}}')


async def test_no_plan_shows_a_key_that_is_hidden(agents):
    for rules in ('hidden = ["_id"]', 'masked = ["_id"]'):
        async with agents(f'allow = "plan"\n{rules}') as agent:
            row = (await agent.call("read_rows", object="books", limit=1))["first_key"]
            for change in ({"kind": "update", "row": row, "values": {"title": "x"}}, {"kind": "delete", "row": row}):
                assert (await agent.call("plan_changes", failing=True, changes=[change]))["code"] == "not-allowed"
            new = {"kind": "insert", "object": "books", "values": {"title": "x"}}
            assert (await agent.call("plan_changes", changes=[new]))["requests"]


async def test_no_note_of_a_plan_shows_a_figure_of_a_column_that_is_hidden(agents, cluster):
    await fill(
        cluster, "sold", {"price": {"type": "double"}, "title": {"type": "keyword"}}, '{"price":1.50,"title":"a"}'
    )
    for rules, shows in (("", True), ('hidden = ["price"]', False), ('masked = ["price"]', False)):
        async with agents(f'allow = "plan"\n{rules}') as agent:
            handle = (await agent.call("read_rows", object="sold"))["first_key"]
            change = {"kind": "update", "row": handle, "values": {"title": "b"}}
            plan = await agent.call("plan_changes", changes=[change])
            assert [note["code"] for note in plan["notes"]] == ["digits-rewritten"]
            assert ("1.50" in str(plan)) is shows


async def test_all_replies_of_a_console_text_fit_into_one_answer(agents):
    async with agents("bytes = 3_000") as agent:
        text = "\n\n".join(["GET /books/_search?size=20"] * 40)
        answer = await agent.client.call_tool("run_console", {"connection": "shop", "text": text})
        replies = answer.structured_content["replies"]
        assert len(replies) == 40
        assert len(answer.content[0].text) < 6_000
        assert all(reply.get("length") or reply.get("columns") for reply in replies[:1])
        many = "\n\n".join(["GET /"] * 101)
        assert (await agent.call("run_console", failing=True, text=many))["code"] == "too-many"


async def test_no_outcome_and_no_reply_names_the_host(agents, cluster, monkeypatch):
    answer = cluster.answer

    async def failing(request, path, query, raw):
        if path.endswith("_doc/named"):
            error = {"type": "node_exception", "reason": "127.0.0.1 cannot take it"}
            return web.json_response({"error": error, "status": 400}, status=400)
        return await answer(request, path, query, raw)

    for rules, named in (("", False), ("hosts = true", True)):
        async with agents(f'allow = "write"\n{rules}') as agent:
            change = {"kind": "insert", "object": "books", "id": "named", "values": {"title": "x"}}
            plan = await agent.call("plan_changes", changes=[change])
            monkeypatch.setattr(cluster, "answer", failing)
            [outcome] = (await agent.call("apply_plan", plan=plan["plan"]))["outcomes"]
            monkeypatch.setattr(cluster, "answer", answer)
            assert "cannot take it" in outcome["reason"]
            assert ("127.0.0.1" in outcome["reason"]) is named


@pytest.mark.parametrize("rules", ['columns = ["title"]', 'hidden = ["_*", "card"]', 'masked = ["_index", "owner.*"]'])
async def test_new_rows_are_planned_where_the_servers_own_columns_are_hidden(agents, rules):
    async with agents(f'allow = "plan"\n{rules}') as agent:
        changes = [{"kind": "insert", "object": "books", "id": f"n{at}", "values": {"title": "x"}} for at in range(3)]
        plan = await agent.call("plan_changes", changes=changes)
        assert sum(request.count('"title":"x"') for request in plan["requests"]) == 3
