"""The automations that come with dragoman: read-only connections, cut cells, the audit."""

from __future__ import annotations

import json

import anyio
import pytest

import wheelhouse
from dragoman._hooks import driver_hook_names
from dragoman.automations.audit import Audit
from dragoman_api.calls import Call
from dragoman_api.cells import CutText
from dragoman_api.changes import Delete, Drop, HttpRequest, Insert, Update
from dragoman_api.errors import ConfigurationError, Refused
from dragoman_api.events import ConsoleExecuted
from dragoman_api.grid import RowKey

MEMORY = "from dragoman_api.testing.memory import MemoryDriver as Driver\n"
KEY = RowKey(object="books", id="7")


@pytest.fixture
def open_memory(make_runtime, tmp_path, monkeypatch):
    """Give a function that makes a runtime with the memory driver and a `config.toml`."""
    homes = (tmp_path / f"home{number}" for number in range(9))

    def make(config, **options):
        home = next(homes)
        monkeypatch.setenv("DRAGOMAN_HOME", str(home))
        (home / "config").mkdir(parents=True)
        (home / "config/config.toml").write_text(config)
        return make_runtime(wheelhouse.Driver("memory", code=MEMORY, hooks=driver_hook_names()), **options)

    return make


async def write(session, *changes):
    return [outcome.status for outcome in await session.apply(await session.plan(*changes))]


async def test_a_read_only_connection_refuses_every_write_and_shows_its_plan(open_memory):
    async with open_memory('[guards.connections.memory]\nread_only = "read-only"\n') as runtime:
        async with runtime.open("memory") as session:
            assert (await session.page("books", limit=1)).cells
            plan = await session.plan(Delete(KEY))
            with pytest.raises(Refused, match="memory is read-only; nothing was sent"):
                await session.apply(plan)
            with pytest.raises(Refused):
                await session.console("DELETE /books/7")
            assert await session.console("GET /books")
            assert await session.count("books") == 23
        assert "call.refused" in [event.name for event in runtime.seen]


async def test_writes_are_confirmed_with_their_exact_requests_in_sight(open_memory):
    asked = []

    async def confirm(question):
        asked.append(question)
        return len(asked) > 1

    config = '[guards]\nread_only = "confirm-writes"\n'
    async with open_memory(config, confirm=confirm) as runtime, runtime.open("memory") as session:
        with pytest.raises(Refused, match="not confirmed"):
            await write(session, Delete(KEY))
        assert await write(session, Delete(KEY)) == ["applied"]
        assert asked[0].details == ("DELETE /books/7",)


async def test_writes_side_by_side_are_asked_about_one_after_the_other(open_memory):
    at_once = []

    async def confirm(question):
        at_once.append(question)
        assert len(at_once) == 1
        await anyio.sleep(0.01)
        at_once.clear()
        return True

    config = '[guards]\nread_only = "confirm-writes"\n'
    async with open_memory(config, confirm=confirm) as runtime, runtime.open("memory") as session:
        plans = [await session.plan(Delete(RowKey(object="books", id=str(number)))) for number in (1, 2, 3)]
        async with anyio.create_task_group() as tasks:
            for plan in plans:
                tasks.start_soon(session.apply, plan)
        assert await session.count("books") == 20


async def test_nobody_there_is_no_consent(open_memory):
    config = '[guards]\nread_only = "confirm-drops"\n'
    async with open_memory(config) as runtime, runtime.open("memory") as session:
        assert await write(session, Delete(KEY)) == ["applied"]
        with pytest.raises(Refused, match="nobody is here") as caught:
            await write(session, Drop("books"))
        assert caught.value.hint == "add --yes"
        assert await session.count("books") == 22


async def test_one_connection_may_do_what_the_others_may_not(open_memory):
    config = '[guards]\nread_only = "read-only"\n[guards.connections.memory]\nread_only = "off"\n'
    async with open_memory(config) as runtime, runtime.open("memory") as session:
        assert await write(session, Delete(KEY)) == ["applied"]


@pytest.mark.parametrize("value", [CutText("[1,2..."), "[" + "1" * 9_999 + "..."])
async def test_E23_what_a_grid_shows_of_a_cut_cell_is_not_stored_unless_switched_off(open_memory, value):
    async with open_memory("") as runtime, runtime.open("memory") as session:
        for change in (Update(KEY, {"tags": value}), Insert("books", {"tags": value})):
            with pytest.raises(Refused, match=r"tags of .* is the beginning of a longer value") as caught:
                await session.plan(change)
            assert caught.value.hint.endswith("dragoman cell memory books ID tags")
        assert await session.plan(Update(KEY, {"title": "an ellipsis..."}))
    config = "[guards.connections.memory]\ncut_cells = false\n"
    async with open_memory(config) as runtime, runtime.open("memory") as session:
        assert (await session.plan(Update(KEY, {"title": str(value)}))).requests


async def test_the_audit_tells_who_asked_for_which_requests_and_what_became_of_them(open_memory):
    async with open_memory("[guards]\naudit = true\n") as runtime:
        log = runtime.paths.state / "audit.ndjson"
        async with runtime.open("memory") as session:
            await write(session, Update(KEY, {"title": "New"}))
            await session.console('POST /books {"title": "x", "password": "hunter2", "api_key":"k\\"ey"}')
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line["who"] and line["pid"] and line["at"].endswith("+00:00") for line in lines)
    asked = [line for line in lines if line.get("call") in ("apply_change", "execute_console")]
    assert asked[0]["connection"] == "memory"
    assert asked[0]["requests"][0]["path"].startswith("/books/7")
    events = [line["event"]["name"] for line in lines if "event" in line]
    assert {"connection.opened", "row.updated", "console.executed"} <= set(events)
    assert lines.index(asked[0]) < [line.get("event", {}).get("name") for line in lines].index("row.updated")
    assert "hunter2" not in log.read_text()
    assert 'k\\"ey' not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


async def test_the_audit_leaves_secrets_out_of_paths_as_well(tmp_path):
    audit, path = Audit(tmp_path / "log", lambda _: True), "/_x?pretty&access_token=s3same&force=true"
    await audit.before_call(Call(hook="execute_console", writes=True, requests=(HttpRequest("POST", path),)))
    await audit.on_event(ConsoleExecuted(connection="shop", method="POST", path=path, status=200, seconds=0.1))
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 2
    assert all("s3same" not in line and "access_token=…&force=true" in line for line in lines)


async def test_a_write_that_cannot_be_recorded_is_not_sent(open_memory):
    async with open_memory("[guards]\naudit = true\n") as runtime, runtime.open("memory") as session:
        plan = await session.plan(Delete(KEY))
        log = runtime.paths.state / "audit.ndjson"
        log.unlink(missing_ok=True)
        log.mkdir(parents=True)
        with pytest.raises(Refused, match="audit failed with IsADirectoryError"):
            await session.apply(plan)
        assert await session.count("books") == 23


def test_an_unknown_level_is_named(open_memory):
    with pytest.raises(ConfigurationError, match="read_only"):
        open_memory('[guards]\nread_only = "readonly"\n')
