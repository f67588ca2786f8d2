"""Rules hold: what they hide does not exist for agents, and what they forbid never reaches the server."""

from __future__ import annotations

import re
from itertools import product

import anyio
import pytest

from command_line import Machine
from dragoman.extending import AgentRules
from dragoman_api import Column, ColumnKind, Note
from dragoman_api.errors import Refused
from dragoman_mcp.answers import as_json
from dragoman_mcp.failures import Helper, without_hosts
from dragoman_mcp.protocol import MOST_AT_ONCE
from dragoman_mcp.rules import Allowance, ConnectionRules, matches, may_contain
from library import ROWS, fill

RULES = """
objects = ["book*"]
hidden = ["owner.email", "lines.card"]
masked = ["card"]
"""
HIDDEN = (
    "salaries", "books,salaries", "b*", "book*", "bookz", "book*,salaries", "<book{now/d}>", "books:salaries",
    "_all", "BOOKS", "books/../salaries", "books%2Fsalaries", "_search", " books",
)  # fmt: skip
"""Names that are no object which agents see, though most of them match the pattern or lead a server elsewhere."""


def row(column, value="x", operator="="):
    return {"column": column, "operator": operator, "value": value}


ATTEMPTS = [
    *(("read_rows", {"object": name}, "object-not-found") for name in HIDDEN),
    *((tool, {"object": "salaries"}, "object-not-found") for tool in ("count_rows", "explain_rows", "describe_object")),
    ("summarize_column", {"object": "salaries", "column": "euros"}, "object-not-found"),
    ("similar_rows", {"object": "salaries", "text": "x"}, "object-not-found"),
    ("list_objects", {"parent": "salaries"}, "object-not-found"),
    *(
        (tool, {"object": "books", "filters": [row(column)]}, "column-unknown")
        for tool in ("read_rows", "count_rows", "explain_rows")
        for column in ("owner.email", "lines.card", "owner.email.keyword", "lines", "*", "owner.*")
    ),
    *((tool, {"object": "books", "filters": [row("card", "4", "starts")]}, "column-masked")
      for tool in ("read_rows", "count_rows", "explain_rows")),
    ("read_rows", {"object": "books", "sort": [{"column": "owner.email"}]}, "column-unknown"),
    ("read_rows", {"object": "books", "sort": [{"column": "card"}]}, "column-masked"),
    ("read_rows", {"object": "books", "columns": ["title", "owner.email"]}, "column-unknown"),
    ("read_rows", {"object": "books", "columns": ["_source"]}, "column-unknown"),
    ("summarize_column", {"object": "books", "column": "owner.email"}, "column-unknown"),
    ("summarize_column", {"object": "books", "column": "card"}, "column-masked"),
    ("read_rows", {"object": "books", "raw": ['{"term":{"owner.email":"x"}}']}, "not-allowed"),
    ("count_rows", {"object": "books", "raw": ['{"match_all":{}}']}, "not-allowed"),
    ("read_rows", {"connection": "prod", "object": "books"}, "connection-unknown"),
    ("read_rows", {"connection": "", "object": "books"}, "argument-invalid"),
    ("read_rows", {"object": "books", "cursor": "c000000.1"}, "handle-unknown"),
    ("read_cell", {"row": "r000000.1", "column": "title"}, "handle-unknown"),
    ("read_cell", {"row": "", "column": "title"}, "argument-invalid"),
    ("similar_rows", {"object": "books", "row": "r1.1"}, "handle-unknown"),
    ("similar_rows", {"object": "books", "row": "r1.1", "text": "x"}, "configuration-invalid"),
    ("read_rows", {"object": "books", "limit": 0}, "argument-invalid"),
    ("read_rows", {"object": "books", "limit": 10**9}, "argument-invalid"),
    ("read_rows", {"object": "books", "cell_length": 10**9}, "argument-invalid"),
    ("read_rows", {"object": "books", "allow": "write"}, "argument-invalid"),
    ("read_rows", {"object": "books", "residual": 10_000}, "argument-invalid"),
    ("read_rows", {"object": ["books"]}, "argument-invalid"),
    ("read_rows", {"object": "books", "filters": [row("title")] * 101}, "argument-invalid"),
    ("read_rows", {"object": "b" * 2_000}, "argument-invalid"),
    ("read_rows", {"object": "books", "filters": [row("title", operator="script")]}, "argument-invalid"),
]  # fmt: skip
"""Calls that the rules refuse, and the code of each refusal."""


async def test_nothing_that_rules_hide_is_answered_or_asked_for(agents):
    assert len(ATTEMPTS) >= 60
    async with agents(RULES) as agent:
        await agent.call("describe_object", object="books")
        agent.requests.clear()
        codes = []
        for tool, arguments, _ in ATTEMPTS:
            codes.append((await agent.call(tool, failing=True, **arguments))["code"])
        assert codes == [code for _, _, code in ATTEMPTS]
        reading = [
            request for request in agent.requests if request.path.split("/")[-1] in ("_search", "_count", "_doc")
        ]
        assert reading == []
        assert not [request for request in agent.requests if request.path.startswith("/salaries")]


async def test_hidden_columns_and_objects_do_not_exist_and_masked_values_are_not_shown(agents):
    async with agents(RULES) as agent:
        listed = await agent.call("list_objects")
        assert [item["name"] for item in listed["objects"]] == ["books"]
        description = await agent.call("describe_object", object="books")
        columns = {column["name"]: column for column in description["columns"]}
        assert not columns.keys() & {"owner.email", "lines", "lines.card"}
        assert columns.keys() >= {"owner.city", "title"}
        assert columns["card"]["masked"]
        answer = await agent.client.call_tool("read_rows", {"connection": "shop", "object": "books", "limit": ROWS})
        page, text = answer.structured_content, answer.content[0].text
        assert "example.org" not in text
        assert "4111" not in text
        assert "4222" not in text
        assert page["rows"][0][page["columns"].index("card")] == {"$masked": True}
        for column, code in (("card", "column-masked"), ("owner.email", "column-unknown")):
            wrong = await agent.call("read_cell", failing=True, row=page["first_key"], column=column)
            assert wrong["code"] == code
        elsewhere = await agent.call("read_rows", object="books", filters=[row("owner.city", "Ghent")], limit=1)
        assert elsewhere["total"] == ROWS


async def test_a_cell_counts_as_a_row_of_the_hour(agents):
    async with agents("rows_an_hour = 3") as agent:
        page = await agent.call("read_rows", object="books", limit=1)
        cell = {"row": page["first_key"], "column": "title"}
        assert [(await agent.call("read_cell", **cell, start=start))["text"] for start in (0, 1)]
        agent.requests.clear()
        assert (await agent.call("read_cell", failing=True, **cell))["code"] == "limit-exceeded"
        assert not agent.requests


async def test_a_value_of_a_summary_counts_as_a_row_of_the_hour(agents):
    async with agents("rows_an_hour = 3") as agent:
        summary = {"object": "books", "column": "title", "values": 2}
        lengths = [len((await agent.call("summarize_column", **summary))["values"]) for _ in range(2)]
        assert lengths == [2, 1]
        assert (await agent.call("summarize_column", failing=True, **summary))["code"] == "limit-exceeded"


async def test_an_hour_has_so_many_rows_and_bytes(agents):
    async with agents("rows_an_hour = 10\nbytes_an_hour = 100_000") as agent:
        first = await agent.call("read_rows", object="books", limit=8, columns=["title"])
        second = await agent.call("read_rows", object="books", limit=8, columns=["title"])
        assert [len(answer["rows"]) for answer in (first, second)] == [8, 2]
        agent.requests.clear()
        assert (await agent.call("read_rows", failing=True, object="books"))["code"] == "limit-exceeded"
        assert not agent.requests
        assert (await agent.call("count_rows", object="books"))["rows"] == ROWS
        [connection] = (await agent.client.call_tool("list_connections", {})).structured_content["connections"]
        assert connection["rows_left"] == 0
        assert 0 < connection["bytes_left"] < 100_000


def test_a_column_may_hold_what_a_pattern_names_if_some_name_below_it_matches():
    """Compared with all short names below; a bracket stands for itself."""
    below = ["".join(letters) for length in (0, 1, 2, 3) for letters in product("a.[", repeat=length)]
    patterns = ["".join(letters) for length in (1, 2, 3, 4) for letters in product("a*.?", repeat=length)]
    wrong = []
    for pattern in [*patterns, "a.[*", "a.**a", "**a.a"]:
        for name in ("a", "aa", "a.a"):
            holds = any(matches(f"{name}.{rest}", pattern) for rest in below)
            if may_contain(name, pattern) is not holds:
                wrong.append((name, pattern, holds))
    assert wrong == []


def column(name, kind="text"):
    return Column(name=name, type="x", kind=ColumnKind(kind))


@pytest.mark.parametrize(
    ("rules", "name", "kind", "hidden", "masked"),
    [
        ({}, "a", "text", False, False),
        ({"columns": ("b", "a*")}, "ab", "text", False, False),
        ({"columns": ("b", "a*")}, "c", "text", True, False),
        ({"hidden": ("b", "a")}, "a", "text", True, False),
        ({"hidden": ("a",)}, "a.b", "text", True, False),
        ({"hidden": ("a.b",)}, "a", "json", True, False),
        ({"hidden": ("a.b",)}, "a", "other", True, False),
        ({"hidden": ("a.b",)}, "a", "text", False, False),
        ({"hidden": ("a.b",)}, "a.c", "json", False, False),
        ({"hidden": ("a.[bc]",)}, "a.b", "text", False, False),
        ({"masked": ("x", "a?")}, "ab.c", "text", False, True),
        ({"masked": ("a.b",)}, "a", "json", False, True),
        ({"hidden": ("A",)}, "a", "text", False, False),
    ],
)
def test_patterns_hide_and_mask_columns_with_what_lies_in_them_or_around_them(rules, name, kind, hidden, masked):
    rules = ConnectionRules(AgentRules(**rules), name="shop", type="x", host="", power="read")
    assert (rules.hides(column(name, kind)), rules.masks(column(name, kind))) == (hidden, masked)


@pytest.mark.parametrize(
    ("rules", "wanted", "rows", "size"),
    [
        ({}, 1_000, 500, 32_768),
        ({}, 10, 10, 32_768),
        ({"rows": 0, "bytes": 0, "rows_an_hour": 0, "bytes_an_hour": 0}, 9_000, 9_000, 1 << 40),
        ({"rows": 0, "rows_an_hour": 100, "bytes": 0, "bytes_an_hour": 1_000}, 500, 93, 800),
        ({"rows": 50, "rows_an_hour": 100, "bytes": 500}, 500, 50, 500),
        ({"rows_an_hour": 7}, 1, None, None),
        ({"bytes_an_hour": 200}, 1, None, None),
    ],
)
def test_an_answer_has_the_least_of_what_is_asked_for_allowed_and_left(rules, wanted, rows, size):
    rules = ConnectionRules(AgentRules(**rules), name="shop", type="x", host="", power="read")
    rules.allowance.charge(rows=3, size=150)
    rules.allowance.charge(rows=4, size=50)
    if rows is None:
        for ask in (rules.bytes_for, lambda: rules.rows_for(wanted)):
            with pytest.raises(Refused, match="one hour allows"):
                ask()
        return
    assert (rules.rows_for(wanted), rules.bytes_for()) == (rows, size)


def test_what_was_read_an_hour_ago_counts_no_more():
    now = [0.0]
    allowance = Allowance(AgentRules(rows_an_hour=10, bytes_an_hour=100), clock=lambda: now[0])
    allowance.charge(rows=4, size=40)
    now[0] = 3_600.0
    allowance.charge(rows=9, size=30)
    assert allowance.left() == (0, 30)
    now[0] = 3_600.5
    assert allowance.left() == (1, 70)
    assert Allowance(AgentRules(rows_an_hour=0, bytes_an_hour=0)).left() == (None, None)


NO_REQUESTS = (
    "GTE /x", "get /x", "GET x", "GET  /x", " GET /x", "GET /x/", "GET //x", "GET /x?y", "GET /%78", "GET /a/../b",
    "GET /.", "GET /x;y", "/x", "GET /x\\ty",
)  # fmt: skip
"""Console requests that can be none, or would never match one."""


@pytest.mark.parametrize(
    ("config", "words", "text"),
    [
        ("", "", "no connection is named"),
        ('[connections.shop.agents]\nallow = "wirte"', "", "wirte"),
        ('[connections.shop.agents]\nhiden = ["card"]', "", "hiden"),
        ("[connections.shop]\nagent = {}", "", "agent"),
        ("[connections.shpo.agents]", "", "shpo"),
        *((f'[connections.shop.agents]\nconsole_reads = ["GET /x", "{word}"]', "", word) for word in NO_REQUESTS),
        ('[connections.shop.agents]\nconsole_forbidden = ["DELETE"]', "", "DELETE"),
        ('[connections.shop.agents]\nconsole_forbids = ["DELETE /x"]', "", "console_forbids"),
        ("", "--connection shpo", "shpo"),
        ("", "--connection shop --allow all", "all"),
    ],
)
def test_a_rule_that_is_misspelt_starts_no_server(shop_home, config, words, text):
    (shop_home / "config").mkdir(exist_ok=True)
    (shop_home / "config/config.toml").write_text(config)
    ended = Machine(shop_home)(f"dragoman mcp {words}", code=2)
    assert text in ended.err
    assert not ended.out


VISITS = {"@timestamp": {"type": "date"}, "who": {"type": "keyword"}, "card": {"type": "keyword", "ignore_above": 5}}
VISIT = {"@timestamp": "2024-01-03T00:00:00Z", "who": "Ada", "card": "4111-1111"}


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ('hidden = ["@timestamp"]', "operation-not-supported"),
        ('columns = ["who"]', "operation-not-supported"),
        ('masked = ["@timestamp"]', "column-masked"),
    ],
)
async def test_no_span_of_time_tells_of_a_time_column_that_agents_do_not_see(agents, cluster, rules, code):
    await fill(cluster, "visits", VISITS, VISIT)
    async with agents(rules) as agent:
        for tool, bound in product(("read_rows", "count_rows", "explain_rows"), ("since", "until")):
            answer = await agent.call(tool, failing=True, object="visits", **{bound: "2024-01-02T00:00:00Z"})
            assert answer["code"] == code
            assert ("@timestamp" in answer["message"]) is (code == "column-masked")
        assert (await agent.call("count_rows", object="visits", all_time=True))["rows"] == 1
    async with agents('hidden = ["card"]') as agent:
        assert (await agent.call("count_rows", object="visits", since="2024-01-04T00:00:00Z"))["rows"] == 0


async def test_no_note_names_a_column_that_does_not_exist_for_agents(agents, cluster):
    await fill(cluster, "visits", VISITS, VISIT)
    async with agents() as agent:
        [note] = (await agent.call("read_rows", object="visits", columns=["who"]))["notes"]
        assert note["column"] == "card"
    async with agents('hidden = ["card"]') as agent:
        for arguments in ({}, {"columns": ["who"]}, {"columns": []}):
            assert "card" not in str(await agent.call("read_rows", object="visits", **arguments))
    async with agents('masked = ["card"]') as agent:
        assert "card" in str((await agent.call("read_rows", object="visits"))["notes"])


def test_no_reason_of_a_note_names_a_hidden_column():
    helper = Helper("describe_object", {}, connection="shop", safe=str, hides=lambda name: name == "card")
    notes = [Note(code="rebuilt", reason=f"the server keeps {name} apart") for name in ("'near'", "'a.b' and 2 more")]
    notes += [Note(code="conflict", column=name, reason="mapped twice") for name in ("card", "a.b", "near")]
    remarks = helper.remarks(notes, {"a.b", "card"})
    assert [(remark.code, remark.column) for remark in remarks] == [
        ("rebuilt", None), ("rebuilt", None), ("conflict", "near")
    ]  # fmt: skip
    assert "'near'" in remarks[0].reason
    assert "a.b" not in remarks[1].reason
    assert len(helper.remarks(notes)) == 4


async def test_no_query_in_the_servers_syntax_looks_values_up_in_an_object_that_agents_do_not_see(agents):
    lookup = '{"terms":{"title":{"index":"salaries","id":"1","path":"name"}}}'
    async with agents('objects = ["books"]') as agent:
        agent.requests.clear()
        for tool in ("read_rows", "count_rows", "explain_rows"):
            assert (await agent.call(tool, failing=True, object="books", raw=[lookup]))["code"] == "not-allowed"
        assert not [request for request in agent.requests if request.path.endswith(("_search", "_count"))]


async def test_calls_at_a_time_read_no_more_than_one_hour_allows(agents):
    answers = []
    async with agents("rows_an_hour = 20") as agent:

        async def read():
            answers.append(await agent.client.call_tool("read_rows", {"connection": "shop", "object": "books"}))

        async with anyio.create_task_group() as tasks:
            for _ in range(MOST_AT_ONCE):
                tasks.start_soon(read)
        assert sum(len(answer.structured_content.get("rows", ())) for answer in answers) == 20
        assert {answer.structured_content.get("code") for answer in answers} == {None, "limit-exceeded"}
        assert (await agent.call("count_rows", object="books"))["rows"] >= ROWS


async def test_exports_at_a_time_write_no_more_rows_than_one_hour_allows(agents, tmp_path):
    answers = []
    async with agents(f"rows_an_hour = {ROWS + 20}", export_to=tmp_path) as agent:

        async def export(number):
            arguments = {"connection": "shop", "object": "books", "file": f"{number}.csv"}
            answers.append((await agent.client.call_tool("export_rows", arguments)).structured_content)

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(export, number)
    assert sorted(answer.get("code", "") for answer in answers) == ["", *["limit-exceeded"] * 3]
    assert len([path for path in tmp_path.iterdir() if path.suffix == ".csv"]) == 1


async def test_a_row_of_many_long_values_fits_into_the_bytes_of_an_answer(agents, cluster):
    names = [f"text{number}" for number in range(20)]
    properties = {name: {"type": "keyword"} for name in names}
    await fill(cluster, "long", properties, *[dict.fromkeys(names, "<long> " * 1_000)] * 2)
    async with agents("bytes = 10_000") as agent:
        page = await agent.call("read_rows", object="long", cell_length=10_000)
        assert len(as_json(page["rows"])) <= 10_000
        assert "values-cut" in [note["code"] for note in page["notes"]]
        assert all("$cut" in cell for cell in page["rows"][0][1:])
        assert len(as_json((await agent.call("read_rows", object="long", cell_length=100))["rows"])) > 5_000


@pytest.mark.parametrize(
    ("addresses", "text"),
    [
        ("DB.example", "no answer from db.example:9200"),
        ("a.example b.example:9200,c.example", "b.example and C.example are gone"),
        ("https://user@login.example:8443/token?x=y", "login.example refuses"),
        ("bücher.example", "xn--bcher-kva.example is gone, Bücher.example too"),
        ("[2001:db8::1]:9200 2001:db8::2", "2001:db8::1 and 2001:DB8::2 are gone"),
        ("10.0.0.5", "10.0.0.5:9200 is gone"),
    ],
)
def test_errors_do_not_name_a_host_in_whichever_case_or_alphabet(addresses, text):
    for hosts in (False, True):
        rules = ConnectionRules(AgentRules(hosts=hosts), name="shop", type="x", host=addresses, power="read")
        answer = without_hosts(text, rules.hosts)
        assert bool(re.findall("example|2001|10[.]", answer, re.IGNORECASE)) is hosts
        assert (answer == text) is hosts
