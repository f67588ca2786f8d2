"""A driver's process ends, and an agent gives up, in the middle of a call: the next call works, and the log says so."""

from __future__ import annotations

import json
import os
import signal
import threading

import anyio
import pytest

from cancelling import cancelled
from child_processes import children
from dragoman_mcp.protocol import MOST_AT_ONCE
from library import ROWS

COUNT = {"connection": "shop", "object": "books"}


@pytest.fixture
def stopped(cluster, monkeypatch):
    """Stop answers of the fake whose path ends so: returns how many wait, and what lets them go."""
    answer, waiting, going = cluster.answer, [], threading.Event()

    def stop(ending):
        async def wait(request, path, query, raw):
            if path.endswith(ending):
                waiting.append(path)
                while not going.is_set():
                    await anyio.sleep(0.01)
            return await answer(request, path, query, raw)

        monkeypatch.setattr(cluster, "answer", wait)
        return waiting, going

    yield stop
    going.set()


async def until(condition):
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_driver_that_ends_in_a_call_fails_that_call_and_no_other(agents, stopped, mode):
    waiting, going = stopped("_count")
    earlier = children()
    async with agents(client={"mode": mode}) as agent, anyio.create_task_group() as tasks:
        failures = []

        async def count():
            failures.append(await agent.call("count_rows", failing=True, object="books"))

        row = (await agent.call("read_rows", object="books", limit=1, sort=[{"column": "pages"}]))["first_key"]
        tasks.start_soon(count)
        await until(lambda: waiting)
        [process] = children() - earlier
        os.kill(int(process), signal.SIGKILL)
        await until(lambda: failures)
        assert failures[0]["code"] == "driver-crashed"
        going.set()
        assert (await agent.call("count_rows", object="books"))["rows"] == ROWS
        cell = await agent.call("read_cell", row=row, column="pages")
        assert cell["text"] == "101"
        answered = [event.code for event in agent.events if event.name == "agent.answered"]
        assert answered == ["", "driver-crashed", "", ""]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_calls_that_an_agent_gives_up_leave_their_places_to_others(agents, stopped, mode):
    waiting, going = stopped("_count")
    async with agents(client={"mode": mode}) as agent:
        for _ in range(MOST_AT_ONCE + 1):
            waiting.clear()
            await cancelled(agent.client.call_tool("count_rows", COUNT), when=lambda: bool(waiting))
        with anyio.fail_after(20):
            page = await agent.call("read_rows", object="books", limit=1)
        assert page["total"] == ROWS
        going.set()
        assert (await agent.call("count_rows", object="books"))["rows"] == ROWS
        [content] = (await agent.client.read_resource("dragoman://calls")).contents
        codes = [call.get("code", "") for call in json.loads(content.text)["calls"]]
        assert codes == ["cancelled"] * (MOST_AT_ONCE + 1) + ["", ""]


async def test_a_plan_whose_sending_is_given_up_is_not_sent_again(agents, stopped, cluster):
    async with agents('allow = "write"') as agent:
        new = {"kind": "insert", "object": "books", "id": "given-up", "values": {"title": "x"}}
        plan = (await agent.call("plan_changes", changes=[new]))["plan"]
        waiting, going = stopped("given-up")
        applying = agent.client.call_tool("apply_plan", {"connection": "shop", "plan": plan})
        await cancelled(applying, when=lambda: bool(waiting))
        going.set()
        assert (await agent.call("apply_plan", failing=True, plan=plan))["code"] == "plan-gone"
        assert len(waiting) == 1
        answered = [event.code for event in agent.events if event.name == "agent.answered"]
        assert answered == ["", "cancelled", "plan-gone"]
