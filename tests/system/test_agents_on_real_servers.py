"""An agent's whole day on a real engine: it makes an object, fills it by plans, reads it, and meets a conflict."""

from __future__ import annotations

import json

import aiohttp
import pytest
from mcp import Client

from agent_tasks import TASKS, refuse
from dragoman import Runtime, SavedConnection
from dragoman_mcp.serving import agent_server
from library import MAPPINGS, load, load_tenants
from schema_agent import SchemaAgent

pytestmark = [pytest.mark.one_engine, pytest.mark.timeout(180)]
BIG = 9_007_199_254_740_993
"""An integer that Elasticsearch stores exactly; Weaviate keeps 53 bits."""
FIELDS = {"title": {"type": "keyword"}, "serial": {"type": "long"}, "card": {"type": "keyword"}}
MAPPING = {"mappings": {"properties": FIELDS}}
BOOK = {
    "class": "AgentBook",
    "vectorizer": "none",
    "properties": [
        {"name": "title", "dataType": ["text"], "tokenization": "field"},
        {"name": "serial", "dataType": ["int"]},
        {"name": "card", "dataType": ["text"]},
    ],
}
ENGINES = {
    "elasticsearch": ("agent-books", f"PUT /agent-books\n{json.dumps(MAPPING)}", "DELETE /agent-books"),
    "weaviate": ("AgentBook", f"POST /schema {json.dumps(BOOK)}", "DELETE /schema/AgentBook"),
}


async def a_day(server):
    """Let an agent work on an open engine."""
    if server.get("security") or server.get("api_keys") or server["tls"] or server.get("settings"):
        pytest.skip("this engine wants credentials")
    name, create, remove = ENGINES[server["type"]]
    runtime = Runtime(spare=False)
    values = {"host": server["host"], "port": server["port"]}
    runtime.connections.save(SavedConnection(name="real", type=server["type"], values=values))
    async with agent_server(connections=["real"], allow="write") as agents, Client(agents.server) as client:

        async def call(tool, failing=False, **arguments):
            answer = await client.call_tool(tool, {"connection": "real"} | arguments)
            assert answer.is_error is failing, answer.content[0].text
            return answer.structured_content

        async def apply(*changes):
            plan = await call("plan_changes", changes=[*changes])
            return (await call("apply_plan", plan=plan["plan"]))["outcomes"]

        assert (await call("run_console", text=create))["replies"][0]["status"] == 200
        try:
            spelled = [{"$integer": str(BIG + at)} if server["type"] == "elasticsearch" else at for at in range(3)]
            rows = [{"title": f"Book {at}", "serial": number, "card": "4111"} for at, number in enumerate(spelled)]
            outcomes = await apply(*({"kind": "insert", "object": name, "values": row} for row in rows))
            assert [outcome["status"] for outcome in outcomes] == ["applied"] * 3
            two = [{"column": "title", "operator": "=", "value": "Book 2"}]
            page = await call("read_rows", object=name, filters=two, columns=["title", "serial"])
            assert page["rows"] == [["Book 2", spelled[2]]]
            assert (await call("count_rows", object=name))["rows"] == 3
            update = {"kind": "update", "row": page["first_key"], "values": {"title": "New"}}
            stale = await call("plan_changes", changes=[{**update, "values": {"title": "Late"}}])
            assert [outcome["status"] for outcome in await apply(update)] == ["applied"]
            outcomes = (await call("apply_plan", plan=stale["plan"]))["outcomes"]
            assert [outcome["status"] for outcome in outcomes] == ["conflict"], outcomes
            assert name in [item["name"] for item in (await call("list_objects", pattern="*gent*"))["objects"]]
        finally:
            await call("run_console", text=remove)


@pytest.mark.live("elasticsearch")
async def test_an_agent_works_on_a_real_elasticsearch(live_server):
    await a_day(live_server)


@pytest.mark.live("elasticsearch")
@pytest.mark.timeout(400)
async def test_an_agent_that_only_reads_schemas_solves_the_tasks_on_a_real_elasticsearch(live_server, tmp_path):
    """It makes 600 indices of its own beside the library's, which it removes as well."""
    if live_server.get("security") or live_server["tls"]:
        pytest.skip("this engine wants credentials")
    runtime = Runtime(spare=False)
    values = {"host": live_server["host"], "port": live_server["port"]}
    runtime.connections.save(SavedConnection(name="real", type="elasticsearch", values=values))
    try:
        await load(live_server["url"])
        await load_tenants(live_server["url"])
        async with (
            agent_server(connections=["real"], allow="write", export_to=tmp_path) as agents,
            Client(agents.server) as client,
        ):
            agent = SchemaAgent(client)
            await agent.look_around()
            for task in TASKS:
                await task(agent)
        async with agent_server(connections=["real"]) as agents, Client(agents.server) as client:
            agent = SchemaAgent(client)
            await agent.look_around()
            await refuse(agent)
    finally:
        async with aiohttp.ClientSession(live_server["url"]) as http:
            for pattern in (*MAPPINGS, *(f"tenant-0{digit}*" for digit in range(6))):
                async with http.get(f"/_cat/indices/{pattern}", params={"format": "json"}) as answer:
                    names = [item["index"] for item in await answer.json()] if answer.status == 200 else []
                if names:
                    await http.delete(f"/{','.join(names)}")


@pytest.mark.live("weaviate")
async def test_an_agent_works_on_a_real_weaviate(live_server):
    await a_day(live_server)
