"""Every call of a session is put to the automations before its driver hears of it, an export too."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import wheelhouse
from child_processes import children
from dragoman.automations.audit import Audit
from dragoman.connections.saved_connections import SavedConnection
from dragoman.sandbox.reach.route import HttpProxy
from dragoman_api import hookimpl
from dragoman_api.changes import Delete, HttpRequest
from dragoman_api.errors import Refused
from dragoman_api.events import Call, ConnectionClosed, PluginRemoved
from dragoman_api.grid import RowKey
from dragoman_worker.hooks_and_deadlines import HOOKS

if TYPE_CHECKING:
    from pathlib import Path

CODE = "from .memory_driver import MemoryDriver as Driver\n"
KEY = RowKey(object="books", id="7")


class Veto:
    """Notes every call, and refuses one hook."""

    def __init__(self) -> None:
        self.hook = ""
        self.asked: list[Call] = []

    @hookimpl
    async def before_call(self, call: Call) -> None:
        self.asked.append(call)
        if call.hook == self.hook:
            raise Refused(f"no {call.hook}")


async def listed(session: Any) -> list[Any]:
    return [row async for row in session.rows("books")]


async def applied(session: Any) -> Any:
    return await session.apply(await session.plan(Delete(KEY)))


async def test_each_hook_can_be_refused_and_nothing_of_it_happens(make_runtime: Any, tmp_path: Path) -> None:
    veto = Veto()
    driver = wheelhouse.Driver("memory", code=CODE, hooks=[*HOOKS])
    calls: dict[str, Any] = {
        "ping": lambda session: session.ping(),
        "read_status": lambda session: session.status(),
        "list_objects": lambda session: session.objects(),
        "describe_object": lambda session: session.describe("books"),
        "fetch_page": lambda session: session.rows("books").page(),
        "count_rows": lambda session: session.rows("books").count(),
        "summarize_column": lambda session: session.rows("books").summarize("stock"),
        "similar_rows": lambda session: session.rows("books").similar(KEY),
        "preview_read": lambda session: session.rows("books").preview_count(),
        "complete_console": lambda session: session.complete("GET /"),
        "plan_change": applied,
        "apply_change": applied,
        "execute_console": lambda session: session.console("GET /books"),
        "split_export": lambda session: session.rows("books").split(parts=2),
        "hold_snapshot": lambda session: session.rows("books").hold(split, seconds=60),
    }
    exports = [
        lambda session: session.rows("books").export(to=tmp_path / "books.ndjson"),
        lambda session: session.rows("books").part(split, number=0, to=tmp_path / "books.ndjson"),
        lambda session: anext(session.rows("books").part_batches(typed, number=0)),
        listed,
    ]
    async with make_runtime(driver, installed=True, use=[veto]) as runtime, runtime.open("memory") as session:
        assert await session.rows("books").count() == 23
        split = await session.rows("books").split(parts=2)
        typed = await session.rows("books").split(parts=2, format="arrow")
        for hook, act in [*calls.items(), *(("export_rows", act) for act in exports)]:
            veto.hook, veto.asked[:] = hook, []
            with pytest.raises(Refused, match=f"no {hook}"):
                await act(session)
            assert [each.hook for each in veto.asked].count(hook) == 1
            assert veto.asked[-1].hook == hook
            assert veto.asked[-1].connection is not None
            assert veto.asked[-1].connection.name == "memory"
        veto.hook = ""
        assert await session.rows("books").count() == 23
        assert not (tmp_path / "books.ndjson").exists()
        await session.rows("books").export(to=tmp_path / "books.ndjson")
        assert [(each.hook, each.object, each.writes) for each in veto.asked][-1] == ("export_rows", "books", False)


FIRST = """
from dragoman_api import Server
from dragoman_api.hookspecs import hookimpl
from .memory_driver import MemoryDriver

class Driver(MemoryDriver):
    @hookimpl
    async def connect(self, profile, http, first_object):
        return Server(f"told {first_object}")
"""


@pytest.mark.parametrize("hook", ["", "describe_object", "connect"])
async def test_a_first_object_is_asked_about_once_before_the_driver_hears_of_it(make_runtime: Any, hook: str) -> None:
    veto = Veto()
    veto.hook = hook
    driver = wheelhouse.Driver("memory", code=FIRST, hooks=[*HOOKS])
    async with make_runtime(driver, installed=True, use=[veto]) as runtime:
        if hook == "connect":
            with pytest.raises(Refused):
                async with runtime.open("memory", first_object="books"):
                    pytest.fail("it was opened")
            assert [call.hook for call in veto.asked] == ["connect"]
            return
        async with runtime.open("memory", first_object="books") as session:
            assert session.server.product == ("told books" if not hook else "told None")
            if hook:
                with pytest.raises(Refused, match="no describe_object"):
                    await session.rows("books").page()
            else:
                await session.rows("books").page()
                await session.describe("books")
    calls = [(call.hook, call.object) for call in veto.asked]
    described = [("connect", None), ("describe_object", "books")]
    assert calls == described + ([] if hook else [("fetch_page", "books"), ("describe_object", "books")])
    assert [event.hook for event in runtime.seen if event.name == "call.refused"] == ([hook] if hook else [])


@pytest.mark.parametrize(("scheme", "product"), [("basic", "told None"), ("none", "told books")])
async def test_a_password_is_never_sent_with_several_requests_at_once(
    make_runtime: Any, scheme: str, product: str
) -> None:
    """A server counts each as an attempt, and locks the account of a person who mistyped once."""
    method = {"value": "own", "label": "Own"}
    form = wheelhouse.manifest()["form"]
    form += [{"name": "auth_method", "label": "Auth Method", "kind": "choice", "default": "own", "choices": [method]}]
    methods = [{**method, "scheme": scheme}]
    driver = wheelhouse.Driver("memory", code=FIRST, hooks=[*HOOKS], form=form, auth_methods=methods)
    async with (
        make_runtime(driver, installed=True) as runtime,
        runtime.open("memory", first_object="books") as session,
    ):
        assert session.server.product == product


async def test_a_proxy_is_asked_for_one_connection_first(make_runtime: Any) -> None:
    """Its password may be a person's, too."""
    driver = wheelhouse.Driver("memory", code=FIRST, hooks=[*HOOKS])
    async with make_runtime(driver, installed=True) as runtime:
        proxied = SavedConnection(name="memory", type="memory", values={}, via=HttpProxy(host="127.0.0.1", port=9))
        runtime.connections.save(proxied, replace=True)
        async with runtime.open("memory", first_object="books") as session:
            assert session.server.product == "told None"


async def test_a_decision_on_a_first_object_ends_with_the_process_that_it_was_made_for(make_runtime: Any) -> None:
    veto = Veto()
    driver, earlier = wheelhouse.Driver("memory", code=FIRST, hooks=[*HOOKS]), children()
    async with (
        make_runtime(driver, installed=True, use=[veto]) as runtime,
        runtime.open("memory", first_object="books") as session,
    ):
        [process] = children() - earlier
        os.kill(int(process), signal.SIGKILL)
        with anyio.fail_after(10):
            while "plugin.crashed" not in [event.name for event in runtime.seen]:
                await anyio.sleep(0.01)
        await session.describe("books")
    assert [call.hook for call in veto.asked].count("describe_object") == 2


async def test_a_decision_on_a_first_object_does_not_hold_for_later(
    make_runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.sessions.live_driver.DECISION_SECONDS", -1.0)
    veto, driver = Veto(), wheelhouse.Driver("memory", code=FIRST, hooks=[*HOOKS])
    async with (
        make_runtime(driver, installed=True, use=[veto]) as runtime,
        runtime.open("memory", first_object="books") as session,
    ):
        await session.describe("books")
    assert [call.hook for call in veto.asked] == ["connect", "describe_object", "describe_object"]


async def test_the_audit_records_events_of_watched_connections_and_of_none(tmp_path: Path) -> None:
    """And of writes alike; what belongs to another connection is left out."""
    audit = Audit(tmp_path / "log", lambda name: name == "mine")
    for name in ("mine", "other"):
        await audit.on_event(ConnectionClosed(connection=name))
    await audit.on_event(PluginRemoved(plugin="demo", version="1.0"))
    told = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert [(each["name"], each.get("connection")) for each in told] == [
        ("connection.closed", "mine"), ("plugin.removed", None),
    ]  # fmt: skip
    request = HttpRequest("DELETE", "/x")
    await audit.before_call(Call(hook="apply_change", writes=True, requests=(request,)))
    await audit.before_call(Call(hook="fetch_page", writes=False))
    assert len((tmp_path / "log").read_text().splitlines()) == 3
