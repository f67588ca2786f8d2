"""Agents are served over HTTP on this machine, to whoever holds the token."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from dragoman_mcp.serving import serving_http
from library import ROWS

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


async def test_two_agents_work_over_http_and_nobody_without_the_token(shop_home, cluster):
    async with serving_http(shop_home, connections=["shop"]) as (url, token):
        authorization = {"Authorization": f"Bearer {token}"}

        async def status(**headers):
            accept = {"Accept": "application/json, text/event-stream"}
            async with httpx2.AsyncClient() as http:
                return (await http.post(url, json=INITIALIZE, headers=accept | headers)).status_code

        cluster.requests.clear()
        assert await status() == 401
        assert await status(Authorization="Bearer x") == 401
        assert await status(Authorization=f"Basic {token}") == 401
        assert await status(**authorization, Host="evil.example") == 421
        assert await status(**authorization, Origin="http://evil.example") == 403
        assert await status(**authorization, Origin="http://localhost:3000") == 403
        assert not cluster.requests
        async with (
            httpx2.AsyncClient(headers=authorization) as http,
            Client(streamable_http_client(url, http_client=http)) as one,
            Client(streamable_http_client(url, http_client=http), mode="legacy") as other,
        ):
            for client in (one, other):
                answer = await client.call_tool("count_rows", {"connection": "shop", "object": "books"})
                assert answer.structured_content["rows"] == ROWS


@pytest.fixture
def over_http(shop_home):
    """Return a context manager: what connects agents over HTTP to one server that may write, each with its client."""

    @asynccontextmanager
    async def served():
        async with AsyncExitStack() as stack:
            url, token = await stack.enter_async_context(serving_http(shop_home, connections=["shop"], allow="write"))
            headers = {"Authorization": f"Bearer {token}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))

            async def connect(mode, callback=None):
                transport = streamable_http_client(url, http_client=http)
                client = Client(transport, mode=mode, elicitation_callback=callback)
                await stack.enter_async_context(client)

                async def call(tool, **arguments):
                    answer = await client.call_tool(tool, {"connection": "shop"} | arguments)
                    return answer.structured_content

                return call

            yield connect

    return served


REPLIES = [
    (ElicitResult(action="decline", content={"send": True}), "not-confirmed"),
    (ElicitResult(action="cancel", content={"send": True}), "not-confirmed"),
    (ElicitResult(action="accept"), "not-confirmed"),
    (ElicitResult(action="accept", content={"send": False}), "not-confirmed"),
    (ElicitResult(action="accept", content={"send": True}), ""),
    (None, ""),
]
"""What a user says to a question, None for a program that cannot ask; and the code of the answer."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_rows_are_written_over_http_if_the_user_agrees_or_cannot_be_asked(over_http, cluster, mode):
    asked = []

    async def ask(_context, params):
        asked.append(params.message)
        return reply

    async with over_http() as connect:
        asking, unable = await connect(mode, ask), await connect(mode)
        for reply, code in REPLIES:
            call = asking if reply else unable
            new = {"kind": "insert", "object": "books", "id": "http", "values": {"title": "x"}}
            plan = await call("plan_changes", changes=[new])
            cluster.requests.clear()
            asked.clear()
            applied = await call("apply_plan", plan=plan["plan"])
            assert applied.get("code", "") == code
            sent = [request.body.decode() for request in cluster.requests if "/http" in request.path]
            body = plan["requests"][0].split("\n", 1)[1]
            assert sent == ([] if code else [body])
            assert [body in text for text in asked] == ([True] if reply else [])
            if not code:
                assert applied["outcomes"][0]["status"] == "applied"
                row = applied["outcomes"][0]["row"]
                removal = await call("plan_changes", changes=[{"kind": "delete", "row": row}])
                await unable("apply_plan", plan=removal["plan"])


@pytest.mark.slow
async def test_two_agents_that_work_at_once_get_their_own_answers_and_cannot_both_change_a_row(over_http):
    async with over_http() as connect:
        agents = [await connect(mode) for mode in ("auto", "legacy")]
        pages = {}

        async def read(agent, number):
            few = [{"column": "pages", "operator": "=", "value": 100 + number}]
            page = await agents[agent]("read_rows", object="books", filters=few, columns=["pages"])
            pages[agent, number] = page["rows"]

        async with anyio.create_task_group() as tasks:
            for number in range(1, 21):
                for agent in (0, 1):
                    tasks.start_soon(read, agent, number)
        assert pages == {(agent, number): [[100 + number]] for agent in (0, 1) for number in range(1, 21)}
        one = [{"column": "_id", "operator": "=", "value": "30"}]
        plans, outcomes = [], []
        for at, call in enumerate(agents):
            row = (await call("read_rows", object="books", filters=one))["first_key"]
            change = {"kind": "update", "row": row, "values": {"title": f"by {at}"}}
            plans.append((await call("plan_changes", changes=[change]))["plan"])

        async def apply(call, plan):
            outcomes.extend((await call("apply_plan", plan=plan))["outcomes"])

        async with anyio.create_task_group() as tasks:
            for call, plan in zip(agents, plans, strict=True):
                tasks.start_soon(apply, call, plan)
        assert sorted(outcome["status"] for outcome in outcomes) == ["applied", "conflict"]


@pytest.mark.slow
def test_the_command_ends_when_it_is_told_to(shop_home, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(shop_home))
    words = [sys.executable, "-m", "dragoman", "--json", "mcp", "--connection", "shop", "--http", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        place = json.loads(server.stdout.readline())
        assert httpx2.post(place["url"], json=INITIALIZE).status_code == 401
        server.send_signal(signal.SIGTERM)
        assert server.wait(10) in (0, 143)
