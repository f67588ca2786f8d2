"""An agent solves ten tasks with what the tools say of themselves, and nothing else."""

from __future__ import annotations

import json

import pytest
from anyio import run
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from agent_tasks import TASKS, refuse
from dragoman.automations.telemetry import Telemetry
from dragoman_mcp.protocol import tool_list
from library import load_tenants
from schema_agent import SchemaAgent


@pytest.fixture(scope="module")
def tenants(cluster):
    """Let the cluster have 600 more indices."""
    run(load_tenants, cluster.url)


@pytest.mark.slow
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


async def test_each_call_of_an_agent_is_a_span_with_its_tool_and_without_its_values(agents):
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with agents(use=[Telemetry(tracer_provider=provider)]) as served:
        row = {"column": "title", "operator": "=", "value": "Book 08"}
        await served.call("read_rows", object="books", filters=[row], columns=["title"])
        await served.call("read_rows", failing=True, object="nowhere")
    answered = [event for event in served.events if event.name == "agent.answered"]
    spans = [span for span in exporter.get_finished_spans() if span.name == "agent.answered"]
    assert [
        (span.attributes["gen_ai.tool.name"], span.attributes["db.collection.name"], span.attributes.get("error.type"))
        for span in spans
    ] == [("read_rows", "books", None), ("read_rows", "nowhere", "object-not-found")]
    assert [span.attributes["dragoman.bytes"] for span in spans] == [event.bytes for event in answered]
    assert spans[0].attributes["dragoman.rows"] == 1
    assert spans[0].attributes["dragoman.client"] == answered[0].client
    assert spans[0].kind is SpanKind.SERVER
    assert "Book 08" not in "".join(span.to_json() for span in exporter.get_finished_spans())
