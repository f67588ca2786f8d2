"""Whatever is done, and from wherever, a guard sees it first and can veto it; what happens then is told."""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from jsonschema import Draft202012Validator

import dragoman_dask
import wheelhouse
from dragoman.connections.saved_connections import SavedConnection
from dragoman.plugins.lifecycle import Plugins
from dragoman.runtime import Runtime
from dragoman.sandbox.driver_process import Worker
from dragoman.sessions.rows import Rows
from dragoman.sessions.session import Session
from dragoman_api import Delete, Drop, Filter, Insert, Refused, RowKey, hookimpl
from dragoman_api.errors import UnsupportedOperationError
from dragoman_worker.hooks_and_deadlines import HOOKS

MEMORY = "from .memory_driver import MemoryDriver as Driver\n"
REFERENCE = Path(__file__).parents[2] / "docs/reference"
SCHEMA = Draft202012Validator(json.loads((REFERENCE / "events.schema.json").read_text()))
KEY = RowKey(object="books", id="7")
ROWS = [Filter("title", "contains", "a")]


async def every(rows):
    return [row async for row in rows]


async def opened(runtime):
    async with runtime.open("memory"):
        pass


async def changed(session, *changes):
    await session.apply(await session.plan(*changes))


async def one_part(session, to):
    rows = session.rows("books")
    await rows.part(await rows.split(parts=2), number=0, to=to)


async def part_read(session):
    rows = session.rows("books")
    await every(rows.part_batches(await rows.split(parts=2, format="arrow"), number=0))


async def near(session):
    with suppress(UnsupportedOperationError):  # the object has no vectors
        await session.rows("books").similar(KEY)


async def held(session):
    rows = session.rows("books")
    await rows.hold(await rows.split(parts=2), seconds=60)


SESSION = {
    "objects": ("list_objects", lambda session, _: session.objects()),
    "describe": ("describe_object", lambda session, _: session.describe("books")),
    "explain": (
        "compile_filter",
        lambda session, _: session.rows("books", filters=ROWS).explain(),
    ),
    "page": ("fetch_page", lambda session, _: session.rows("books").page()),
    "page of a filter": (
        "compile_filter",
        lambda session, _: session.rows("books", filters=ROWS).page(),
    ),
    "count": ("count_rows", lambda session, _: session.rows("books").count()),
    "preview_page": ("preview_read", lambda session, _: session.rows("books").preview_page()),
    "preview_count": ("preview_read", lambda session, _: session.rows("books").preview_count()),
    "summarize": ("summarize_column", lambda session, _: session.rows("books").summarize("title")),
    "similar": ("similar_rows", lambda session, _: near(session)),
    "complete": ("complete_console", lambda session, _: session.complete("GE", 2)),
    "cell": ("fetch_cell", lambda session, _: session.rows(KEY.object).cell(KEY, "title")),
    "plan": ("plan_change", lambda session, _: session.plan(Delete(KEY))),
    "apply": ("apply_change", lambda session, _: changed(session, Insert("books", {"title": "x"}))),
    "apply a drop": ("apply_change", lambda session, _: changed(session, Drop("scratch"))),
    "parse": ("parse_console", lambda session, _: session.parse("GET /books")),
    "execute": ("execute_console", lambda session, _: session.console("GET /books")),
    "console": ("parse_console", lambda session, _: session.console("GET /books")),
    "ping": ("ping", lambda session, _: session.ping()),
    "status": ("read_status", lambda session, _: session.status()),
    "stream": ("export_rows", lambda session, _: every(session.rows("books"))),
    "batches": ("export_rows", lambda session, _: every(session.rows("books").batches())),
    "table": ("export_rows", lambda session, _: session.rows("books").table()),
    "split": ("split_export", lambda session, _: session.rows("books").split(parts=2)),
    "split for an export": (
        "split_export",
        lambda session, folder: dragoman_dask.export(session.rows("books"), folder / "d", parts=2),
    ),
    "part": ("export_rows", lambda session, folder: one_part(session, folder / "part.ndjson")),
    "part_batches": ("export_rows", lambda session, _: part_read(session)),
    "hold": ("hold_snapshot", lambda session, _: held(session)),
    "export": ("export_rows", lambda session, folder: session.rows("books").export(to=folder / "books.ndjson")),
}
RUNTIME = {  # in this order, for each leaves behind what the next one needs
    "open, installing": ("install_plugin", opened),
    "open": ("connect", opened),
    "install": ("install_plugin", lambda runtime: runtime.plugins.install("memory", version="1.0.0")),
    "update": ("update_plugin", lambda runtime: runtime.plugins.update("memory")),
    "rollback": ("update_plugin", lambda runtime: runtime.plugins.rollback("memory")),
    "pin": ("update_plugin", lambda runtime: runtime.plugins.pin("memory", "1.0.0")),
    "disable": ("update_plugin", lambda runtime: runtime.plugins.disable("memory")),
    "enable": ("update_plugin", lambda runtime: runtime.plugins.enable("memory")),
    "repair": ("update_plugin", lambda runtime: runtime.plugins.repair("memory")),
    "repair_all": ("update_plugin", lambda runtime: runtime.plugins.repair_all()),
    "remove": ("remove_plugin", lambda runtime: runtime.plugins.remove("memory")),
    "sync": ("install_plugin", lambda runtime: runtime.plugins.sync()),
    "collect": ("remove_plugin", lambda runtime: runtime.plugins.collect()),
}
READING = {"browse", "show", "for_type", "form", "verify", "why"}  # of Plugins: they look at registries and files
ASKING = {"ask"}  # of Runtime: it is how somebody else asks the guards
SAVING = {"save"}  # of Runtime: it writes what a person entered; guards are asked when the connection opens


class Guard:
    """Vetoes one hook, and writes down what it sees."""

    def __init__(self):
        self.vetoes, self.calls, self.heard = "", [], []

    @hookimpl
    async def before_call(self, call):
        self.calls.append(call.hook)
        if call.hook == self.vetoes:
            raise Refused("not now")

    @hookimpl
    async def on_event(self, event):
        self.heard.append(event)


@pytest.fixture
def sent(monkeypatch):
    """Write down each call that reaches a driver's process."""
    seen, send = [], Worker._send

    def spy(self, waiting, hook, request):
        seen.append(hook)
        return send(self, waiting, hook, request)

    monkeypatch.setattr(Worker, "_send", spy)
    return seen


def public_coroutines(kind):
    return {
        name
        for name, value in inspect.getmembers_static(kind)
        if not name.startswith("_") and inspect.isroutine(value) and _waits(inspect.unwrap(value))
    }


def _waits(function):
    waits = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return waits or inspect.signature(function).return_annotation in ("RowStream", "Batches")


def test_no_operation_is_left_out():
    assert public_coroutines(Session) | public_coroutines(Rows) == {name.partition(" ")[0] for name in SESSION}
    covered = {name.partition(" ")[0].rstrip(",") for name in RUNTIME} | READING | ASKING | SAVING
    assert public_coroutines(Plugins) | public_coroutines(Runtime) == covered


async def test_every_operation_of_a_session_can_be_vetoed_before_anything_is_sent(make_runtime, sent, tmp_path):
    guard = Guard()
    async with (
        make_runtime(wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS]), use=[guard]) as runtime,
        runtime.open("memory") as session,
    ):
        for name, (hook, operation) in SESSION.items():
            guard.vetoes = hook
            sent.clear()
            with pytest.raises(Refused, match="Guard: not now; nothing was sent"):
                await operation(session, tmp_path)
            assert hook not in sent, name
            [refused] = [event for event in runtime.seen if event.name == "call.refused"]
            assert (refused.hook, refused.automation, refused.connection) == (hook, "Guard", "memory")
            runtime.seen.clear()
            guard.vetoes = ""
            guard.calls.clear()
            await operation(session, tmp_path)
            assert hook in guard.calls, name
            assert set(sent) <= set(guard.calls), "something was sent that no guard was asked about"
            runtime.seen.clear()
    for event in guard.heard:
        SCHEMA.validate(json.loads(event.to_json()))
    heard = {event.name for event in guard.heard}
    told = {"page.fetched", "row.inserted", "object.dropped", "console.executed", "export.finished", "call.refused"}
    assert heard >= told | {"connection.opened", "connection.closed", "plugin.installed"}


@pytest.mark.slow
async def test_every_change_of_what_is_installed_can_be_vetoed_before_anything_is_changed(registry):
    guard, versions = Guard(), ("1.0.0", "1.1.0")
    drivers = [wheelhouse.Driver("memory", each, code=MEMORY, hooks=[*HOOKS]) for each in versions]
    runtime = Runtime(spare=False, use=[guard])
    runtime.registries.add(str(registry(*drivers)))
    runtime.connections.save(SavedConnection(name="memory", type="memory", values={}))
    async with runtime:
        for name, (hook, operation) in RUNTIME.items():
            with prepared(name, runtime):
                before = state(runtime)
                guard.vetoes = hook
                with pytest.raises(Refused, match="Guard: not now; nothing was sent"):
                    await operation(runtime)
                assert state(runtime) == before, name
                guard.vetoes = ""
                guard.calls.clear()
                await operation(runtime)
                assert hook in guard.calls, name
    for event in guard.heard:
        SCHEMA.validate(json.loads(event.to_json()))
    heard = [event.name for event in guard.heard]
    told = "installed removed rolled_back disabled enabled pinned"
    assert {f"plugin.{name}" for name in told.split()} <= set(heard)
    assert heard.count("call.refused") == len(RUNTIME)


@contextmanager
def prepared(name, runtime):
    """Damage what is to be repaired, and keep the lock of what is removed for what installs by it."""
    store = runtime.plugins._store
    if name == "repair":
        module = next(file for tree in store.active("memory").trees for file in tree.rglob("driver.py"))
        module.chmod(0o644)
        module.write_text("damaged")
    lock = store.lock_file.read_text() if store.lock_file.exists() else ""
    yield
    if name == "remove":
        store.lock_file.write_text(lock)


def state(runtime):
    """Return everything that is kept about what is installed."""
    store = runtime.plugins._store
    return [*store.installed(), *store.generations("memory")], store.lock_file.exists() and store.lock_file.read_text()


@pytest.mark.slow
async def test_a_session_whose_user_is_cancelled_leaves_no_descriptor_and_no_process(make_runtime):
    kept = []  # so that nothing is tidied up only because nothing refers to it any more
    async with make_runtime() as runtime:
        async with runtime.open("demo") as session:
            kept.append(session)
        before = descriptors()
        for _ in range(3):
            with anyio.CancelScope() as scope:
                async with runtime.open("demo") as session:
                    kept.append(session)
                    scope.cancel()
        assert descriptors() == before


def descriptors():
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sorted(str(link.readlink()).partition("[")[0] for link in links)
