"""An agent solves ten tasks with what the tools say of themselves, and nothing else."""

from __future__ import annotations

import json

import pytest
from anyio import run

from agent_tasks import TASKS, refuse
from dragoman_mcp.protocol import tool_list
from library import load_tenants
from schema_agent import SchemaAgent


@pytest.fixture(scope="module")
def tenants(cluster):
    """Let the cluster have 600 more indices."""
    run(load_tenants, cluster.url)


async def test_an_agent_that_only_reads_schemas_solves_the_tasks(agents, tenants, tmp_path):
    async with agents('allow = "write"', export_to=tmp_path) as served:
        agent = SchemaAgent(served.client)
        await agent.look_around()
        for task in TASKS:
            await task(agent)
        assert len(set(agent.calls)) >= 10


async def test_an_agent_that_may_not_write_changes_nothing(agents):
    async with agents() as served:
        agent = SchemaAgent(served.client)
        await agent.look_around()
        served.requests.clear()
        await refuse(agent)
        assert not [request for request in served.requests if request.method in ("PUT", "DELETE")]


def test_the_list_of_tools_costs_an_agent_few_bytes():
    """Half of it are schemas of answers, which most programs keep from their model."""
    tools = tool_list("write", exports=True)
    whole = tools.model_dump(by_alias=True, exclude_none=True, mode="json")["tools"]
    given = [{name: part for name, part in tool.items() if name != "outputSchema"} for tool in whole]
    assert len(json.dumps(whole, separators=(",", ":"))) < 32_000
    assert len(json.dumps(given, separators=(",", ":"))) < 22_000
