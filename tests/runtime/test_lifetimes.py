"""How connections and runtimes live: in any task, on any asyncio loop, until they are closed, and never in a fork."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import textwrap
from contextlib import AsyncExitStack, aclosing, suppress
from io import BytesIO
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

import dragoman
import wheelhouse
from child_processes import children
from dragoman import Insert, Runtime
from dragoman.changes.sets import ChangeSet
from dragoman.sandbox import driver_process, stages
from dragoman_api.changes import OutcomeStatus, Plan
from dragoman_api.errors import ConfigurationError, DeadlineExceededError, DragomanError
from dragoman_api.grid import RowKey
from dragoman_worker.channel import Channel
from dragoman_worker.hooks_and_deadlines import HOOKS
from fakes.time_series import TimeSeries
from slow_cases import mostly_slow

SERIES = (
    "connect ping list_objects describe_object compile_filter fetch_page fetch_cell count_rows plan_change"
    " apply_change export_rows"
)
UVLOOP = ("asyncio", {"use_uvloop": True})
BOTH = pytest.mark.parametrize(
    "anyio_backend",
    [pytest.param(("asyncio", {}), marks=pytest.mark.slow), pytest.param(UVLOOP)],
    ids=["asyncio", "uvloop"],
)


BEFORE = set()


@pytest.fixture(autouse=True)
def before():
    """Note the processes that other tests keep."""
    BEFORE.clear()
    BEFORE.update(children())


def started():
    """Name the processes that this test has started."""
    return children() - BEFORE


async def beside(work):
    """Run a coroutine in a task of its own and return its result."""
    return await asyncio.get_running_loop().create_task(work)


@BOTH
async def test_every_loop_runs_what_goes_through_the_broker_and_the_pipe(open_stand_in, tmp_path):
    points = TimeSeries()
    for number in range(3_000):
        points.add("cpu", 1_700_000_000_000_000_000 + number, {"host": "a"}, {"load": number / 4})
    everything = dragoman.Span(all_time=True)
    async with (
        open_stand_in("series", points, "time_series.py", SERIES, ["browse", "sort", "filter", "export", "time-range"])
        as runtime,
        runtime.open("series") as session,
    ):  # fmt: skip
        assert len((await session.rows("metrics/cpu", span=everything).page()).rows) == 100
        assert await session.rows("metrics/cpu", span=everything).count() == 3_000
        result = await session.rows("metrics/cpu", span=everything).export(to=tmp_path / "cpu.ndjson")
        assert result.rows == len((tmp_path / "cpu.ndjson").read_bytes().splitlines()) == 3_000
        async with aclosing(session.rows("metrics/cpu", span=everything).stream()) as rows:
            assert len([row async for row in rows]) == 3_000
    assert not started()


@pytest.mark.slow
@BOTH
async def test_every_loop_runs_consoles_changes_and_an_end_of_the_drivers_process(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        assert (await session.console("GET /books"))[0].status == 200
        [outcome] = await session.apply(await session.plan(Insert("scratch", {"title": "new"})))
        assert outcome.status is OutcomeStatus.APPLIED
        [process] = started()
        os.kill(int(process), 9)
        with suppress(DragomanError):  # of a call that was quicker than the news of the end
            await session.objects()
        assert await session.objects()
        assert "plugin.restarted" in [event.name for event in runtime.seen]
    assert not started()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["asyncio", "uvloop"])
def test_a_blocking_connection_runs_on_the_loops_of_the_programs_policy(open_memory, monkeypatch, policy):
    open_memory()
    if policy == "uvloop":
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    try:
        with dragoman.connect("memory") as connection:
            assert connection.rows("books").count() == len(connection.rows("books").page().rows)
            assert list(connection.rows("books"))
    finally:
        asyncio.set_event_loop_policy(None)
    assert not started()


async def test_what_opened_in_a_task_closes_in_another(open_memory, tmp_path):
    runtime = open_memory()
    stack = AsyncExitStack()
    await beside(stack.enter_async_context(runtime))
    with runtime.events() as events:
        session = await beside(stack.enter_async_context(runtime.open("memory")))
        lone = await beside(stack.enter_async_context(dragoman.open("memory")))
        file = tmp_path / "changes.ndjson"
        file.write_text('{"op": "insert", "object": "scratch", "set": {"title": "a"}}\n')
        changes = await beside(stack.enter_async_context(ChangeSet(session, file)))
        await beside(changes.plan())
        assert (await beside(changes.apply())).counts["applied"] == 1
        rows = lone.rows("books").stream()
        assert await beside(anext(rows)) != await beside(anext(rows))
        await beside(rows.aclose())
        stream = aiter(events)
        assert (await beside(anext(stream))).name == "connection.opened"
        await beside(stack.aclose())
        names = [event.name async for event in stream]
    assert names[-1] == "connection.closed"
    assert not started()


async def test_a_task_that_is_cancelled_does_not_end_what_it_opened(open_memory):
    async with open_memory() as runtime, AsyncExitStack() as stack:

        async def open_and_wait(opened):
            opened.append(await stack.enter_async_context(runtime.open("memory")))
            await anyio.sleep_forever()

        opened = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_and_wait, opened)
            while not opened:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        assert await opened[0].rows("books").count()


# after the end ---------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "column": "title", "text": "GET /books", "plan": Plan(planned=[]), "parts": 2, "number": 0, "seconds": 60,
    "key": RowKey(object="books", id="1"), "object": "books", "filters": [], "function": lambda rows: rows.count(),
}  # fmt: skip


async def call(method, tmp_path, **further):
    """Call a method with an argument for each that it needs, and take the first item of an iterator."""
    values = {**ARGUMENTS, "to": tmp_path / "nothing.ndjson", "file": BytesIO(b""), **further}
    needed = [
        p
        for p in inspect.signature(method).parameters.values()
        if p.default is p.empty or (p.name == "key" and method.__name__ == "similar")  # it needs one of three
    ]
    result = method(**{p.name: values[p.name] for p in needed if p.kind is not p.VAR_POSITIONAL})
    if hasattr(result, "__anext__"):
        await anext(result)
    elif hasattr(result, "__next__"):
        next(result)
    elif inspect.isawaitable(result):
        await result


def calls_of(kind):
    """List the public methods that reach the driver."""
    plain = {"can", "close", "masked", "add_sink", "rows", "select", "command", "script", "check_origin", "emit"}
    plain.add("request_docs")  # the manifest says it
    return [
        name
        for name, value in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name not in plain
    ]


async def test_every_method_of_a_closed_session_says_that_it_is_closed(open_memory, tmp_path):
    async with open_memory() as runtime:
        async with runtime.open("memory") as session:
            split = await session.rows("books").split(parts=2)
            request = (await session.parse("GET /books"))[0]
            rows = session.rows("books")
            stream = rows.stream()
            await anext(stream)
        before = sorted(tmp_path.iterdir())
        codes = {}
        for owner in (session, rows):
            for name in calls_of(type(owner)):
                with pytest.raises(DragomanError) as caught:
                    await call(getattr(owner, name), tmp_path, split=split, request=request)
                codes[name] = caught.value.code
        assert set(codes.values()) == {"connection-closed"}, codes
        assert len(codes) > 20
        with pytest.raises(DragomanError) as caught:
            async for _ in stream:
                pass
        assert caught.value.code == "connection-closed"
        assert sorted(tmp_path.iterdir()) == before, "nothing is left by a call that could not begin"


async def test_every_method_of_a_closed_blocking_connection_says_that_it_is_closed(open_memory, tmp_path):
    open_memory()

    def use():
        with dragoman.connect("memory") as connection:
            split = connection.rows("books").split(parts=2)
            request = connection.parse("GET /books")[0]
            rows = connection.rows("books")
        for owner in (connection, rows):
            for name in calls_of(type(owner)):
                method = getattr(owner, name)
                with pytest.raises(DragomanError) as caught:
                    anyio.run(lambda method=method: call(method, tmp_path, split=split, request=request))
                assert caught.value.code == "connection-closed", name

    await to_thread.run_sync(use)


async def test_a_closed_runtime_and_a_closed_change_set_say_that_they_are_closed(open_memory, tmp_path):
    file = tmp_path / "changes.ndjson"
    file.write_text('{"op": "insert", "object": "scratch", "set": {"title": "a"}}\n')
    runtime = open_memory()
    with pytest.raises(ConfigurationError, match="not open yet"):
        await runtime.open("memory").__aenter__()
    async with runtime, runtime.open("memory") as session:
        async with ChangeSet(session, file) as changes:
            await changes.plan()
        for act in (changes.plan(), changes.apply(), anext(changes.planned())):
            with pytest.raises(ConfigurationError) as caught:
                await act
            assert caught.value.code == "change-set-closed"
    saved = runtime.connections.get("memory")
    calls = (
        lambda: runtime.open("memory").__aenter__(),
        lambda: runtime.save(saved, replace=True),
        lambda: runtime.pin("memory", fingerprints=[]),
        lambda: runtime.ask(None),
    )
    for act in calls:
        with pytest.raises(ConfigurationError) as caught:
            await act()
        assert caught.value.code == "runtime-closed"
    for act in (runtime.events, runtime.prewarm):
        with pytest.raises(ConfigurationError) as caught:
            act()
        assert caught.value.code == "runtime-closed"
    async with runtime, runtime.open("memory") as session:  # it may be entered again
        assert await session.rows("books").count()


async def test_a_write_that_is_under_way_when_its_connection_closes_is_in_doubt(make_runtime):
    code = """
    import anyio
    from dragoman_api import hookimpl
    from .memory_driver import MemoryDriver


    class Driver(MemoryDriver):
        @hookimpl
        async def apply_change(self, plan):
            await anyio.sleep(60)
    """
    driver = wheelhouse.Driver("memory", code=textwrap.dedent(code), hooks=[*HOOKS])
    failures = []
    async with make_runtime(driver, installed=True) as runtime:
        async with anyio.create_task_group() as tasks, runtime.open("memory") as session:
            plan = await session.plan(Insert("scratch", {"title": "a"}))

            async def write():
                with suppress(anyio.get_cancelled_exc_class()):
                    try:
                        await session.apply(plan)
                    except DragomanError as error:
                        failures.append(error)

            tasks.start_soon(write)
            await anyio.sleep(0.2)
        [failure] = failures
    assert failure.code == "connection-closed"
    assert failure.details["outcome"] == "unknown"


# other loops, threads and processes --------------------------------------------------------------------------------


async def test_another_loop_and_another_thread_are_told_to_call_where_it_was_opened(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:

        async def elsewhere():
            codes = []
            for act in (lambda: session.rows("books").count(), lambda: runtime.open("memory").__aenter__()):
                with pytest.raises(ConfigurationError) as caught:
                    await act()
                codes.append(caught.value.code)
            return codes

        assert await to_thread.run_sync(asyncio.run, elsewhere()) == ["other-loop", "other-loop"]
        assert await session.rows("books").count()


def test_one_runtime_serves_two_loops_one_after_the_other(open_memory):
    runtime, sessions = open_memory(), []

    async def use():
        async with runtime, runtime.open("memory") as session:
            sessions.append(session)
            return await session.rows("books").count()

    assert asyncio.run(use()) == asyncio.run(use())

    async def leave_open():
        await runtime.__aenter__()
        context = runtime.open("memory")
        sessions.append((await context.__aenter__(), context))

    asyncio.run(leave_open())
    session, context = sessions.pop()

    async def come_late():
        with pytest.raises(ConfigurationError) as caught:
            await session.rows("books").count()
        assert caught.value.code == "connection-closed"  # the first loop ended it
        await context.__aexit__(None, None, None)  # nothing is left to close, and nothing hangs
        return await use()

    assert asyncio.run(come_late())
    assert not started()


def test_other_libraries_get_one_clear_line(open_memory):
    runtime = open_memory()
    for entering in (runtime.__aenter__(), dragoman.open("memory").__aenter__()):
        with pytest.raises(ConfigurationError, match="dragoman runs on asyncio") as caught:
            entering.send(None)  # as trio does
        assert caught.value.code == "asyncio-needed"


FORKS = """
import asyncio, json, os, sys, time
import dragoman

def forked(act):
    pid = os.fork()
    if pid == 0:
        act()
        sys.exit(0)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if (ended := os.waitpid(pid, os.WNOHANG))[0]:
            return os.waitstatus_to_exitcode(ended[1])
        time.sleep(0.02)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"

def refused(call):
    def act():
        try:
            call()
        except dragoman.DragomanError as error:
            os._exit(7 if error.code == "process-forked" else 8)
    return act

def again():
    with dragoman.connect("memory") as own:
        assert own.rows("books").count()

with dragoman.connect("memory") as shop:
    rows = shop.rows("books").stream()
    first = next(rows)
    told = [forked(refused(lambda: shop.rows("books").count())), forked(refused(lambda: next(rows))),
            forked(refused(lambda: shop.rows("books").stream()))]
    told += [forked(lambda: None), forked(shop.close), forked(rows.close), forked(again)]
    told.append(shop.rows("books").count() > 0 and len(list(rows)) > 0)
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    began = time.monotonic()
told.append(time.monotonic() - began < 30)
os.kill(pid, 9)

async def within():
    async with dragoman.open("memory") as shop:
        pid = os.fork()
        if pid == 0:
            sys.exit(3)  # through every block of this coroutine, and asyncio.run
        until = time.monotonic() + 20
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < until:
            await asyncio.sleep(0.05)  # no thread: a fork that closes asyncio's loop takes its self-pipe away
        told.append([os.waitstatus_to_exitcode(ended[1]), await shop.rows("books").count() > 0])

asyncio.run(within())
print(json.dumps(told))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are forks on POSIX alone")
def test_a_fork_is_told_and_neither_hangs_nor_closes_what_its_parent_opened(open_memory):
    open_memory()
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=False, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [7, 7, 7, 0, 0, 0, 0, True, True, [3, True]]


# the stages of an opening ------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_cancelling_an_opening_at_any_moment_leaves_nothing(open_memory):
    descriptors = Path("/proc/self/fd")
    async with open_memory() as runtime:
        async with runtime.open("memory"):
            pass
        tasks, files = len(asyncio.all_tasks()), len(list(descriptors.iterdir()))
        for seconds in (0, 0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.3):
            with anyio.move_on_after(seconds):
                async with runtime.open("memory"):
                    await anyio.sleep_forever()
            for _ in range(100):
                if len(asyncio.all_tasks()) == tasks and not started():
                    break
                await anyio.sleep(0.02)
            assert (len(asyncio.all_tasks()), started()) == (tasks, set()), seconds
        assert len(list(descriptors.iterdir())) <= files + 2


SLOW_IMPORT = "import time\ntime.sleep(60)\n" + wheelhouse.CODE


def hang_start(monkeypatch):
    async def attach(self, sock):
        await anyio.sleep_forever()

    monkeypatch.setattr(Channel, "attach", attach)


def hang_lockdown(monkeypatch):
    async def fork_none(host_imports):
        return None  # the fork server of the test run is warm

    monkeypatch.setattr(driver_process, "fork_child", fork_none)
    monkeypatch.setattr("dragoman.sandbox.bare_process.BOOT", "import time; time.sleep(60)")


def hang_assessment(monkeypatch):
    import time

    monkeypatch.setattr("dragoman.sandbox.levels.read_status", lambda pid: time.sleep(0.8) or {})


def hang_preparation(monkeypatch):
    import time

    monkeypatch.setattr(driver_process, "configure", lambda *_: time.sleep(0.8))


def hang_hand_over(monkeypatch):
    async def drain(self):
        await anyio.sleep_forever()

    monkeypatch.setattr(Channel, "drain", drain)


def hang_secrets(monkeypatch):
    import time

    monkeypatch.setattr(Runtime, "_prepare", lambda *_: time.sleep(0.8))


def hang_lease(monkeypatch):
    import contextlib
    import time

    @contextlib.contextmanager
    def leasing(_):
        time.sleep(0.8)
        yield

    monkeypatch.setattr("dragoman.sessions.live_driver.leasing", leasing)


STAGES = {
    "secrets": hang_secrets,
    "lease": hang_lease,
    "preparation": hang_preparation,
    "start": hang_start,
    "lock-down": hang_lockdown,
    "assessment": hang_assessment,
    "hand-over": hang_hand_over,
}


@pytest.mark.parametrize("name", mostly_slow(STAGES, fast=["start", "lock-down"]))
async def test_a_stage_that_hangs_ends_at_its_deadline_and_is_named(open_memory, monkeypatch, name):
    async with open_memory() as runtime:
        STAGES[name](monkeypatch)
        monkeypatch.setitem(stages.SECONDS, name, 0.3)
        with anyio.fail_after(20), pytest.raises(DeadlineExceededError, match=f"'{name}'") as caught:
            async with runtime.open("memory"):
                pass
        assert caught.value.details["stage"] == name
        assert [event.code for event in runtime.seen if event.name == "connection.failed"] == ["deadline-exceeded"]
    assert not started()


@pytest.mark.slow
async def test_an_import_that_hangs_ends_at_its_deadline_and_is_named(make_runtime, monkeypatch):
    monkeypatch.setitem(stages.SECONDS, "import", 0.5)
    driver = wheelhouse.Driver("late", code=SLOW_IMPORT)
    async with make_runtime(driver) as runtime:
        with pytest.raises(DragomanError, match="'import'"):
            async with runtime.open("late"):
                pass
    assert not started()


def test_every_stage_is_tried(open_memory):
    elsewhere = {"import", "smoke test", "certificates", "record", "end"}
    assert set(stages.SECONDS) == {*STAGES} | elsewhere
