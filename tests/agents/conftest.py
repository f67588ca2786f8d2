"""A server for agents over a real driver and a fake cluster in this process, spoken to by the protocol's own client."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from anyio import run
from anyio.from_thread import start_blocking_portal

import wheelhouse
from browsing import shop
from dragoman import Runtime
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from library import load


@pytest.fixture(scope="module")
def cluster():
    """Serve the fake from a thread of this process, for the tests of one file."""
    with start_blocking_portal() as portal:
        server = FakeElasticsearch(version="8.19.21")
        with portal.wrap_async_context_manager(server):
            portal.call(load, server.url)
            yield server


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, cluster):
    """Prepare a home once for each file: the driver is installed, and the connection saved."""
    home = tmp_path_factory.mktemp("prepared") / "home"

    async def prepare():
        async with Runtime(home, spare=False) as runtime:
            await runtime.plugins.install("elasticsearch")
            await runtime.save(shop(cluster.port))

    run(prepare)
    return home


@pytest.fixture
def shop_home(home, prepared):
    """Copy the prepared home into the test's own."""
    return wheelhouse.copy(prepared, home)


@pytest.fixture
def agents(shop_home, cluster):
    """Return a context manager: an agent that is connected to a server under rules, with what it sees and causes."""
    from mcp import Client  # takes a second, which other tests need not wait

    from dragoman_mcp.serving import agent_server

    @asynccontextmanager
    async def connected(rules="", client=None, **options):
        (shop_home / "config").mkdir(exist_ok=True)
        (shop_home / "config/config.toml").write_text(f"[connections.shop.agents]\n{rules}\n")
        events = []
        async with (
            agent_server(shop_home, sinks=[events.append], **options) as agents,
            Client(agents.server, **client or {}) as session,
        ):

            async def call(tool, failing=False, **arguments):
                answer = await session.call_tool(tool, {"connection": "shop"} | arguments)
                assert answer.is_error is failing, answer.content[0].text
                return answer.structured_content

            yield SimpleNamespace(call=call, client=session, events=events, requests=cluster.requests)

    return connected
