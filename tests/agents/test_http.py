"""Agents are served over HTTP on this machine, to whoever holds the token."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

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


@pytest.mark.slow
def test_the_command_ends_when_it_is_told_to(shop_home, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(shop_home))
    words = [sys.executable, "-m", "dragoman", "--json", "mcp", "--connection", "shop", "--http", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        place = json.loads(server.stdout.readline())
        assert httpx2.post(place["url"], json=INITIALIZE).status_code == 401
        server.send_signal(signal.SIGTERM)
        assert server.wait(10) in (0, 143)
