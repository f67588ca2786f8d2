"""The connection for code without `async`: the same methods, threads, notebooks, Ctrl-C, and how it ends."""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import dragoman
import wheelhouse
from dragoman import BlockingSession, Filter, Rows, Session, Update
from dragoman.blocking import BlockingRows
from dragoman.connections.saved_connections import SavedConnection
from dragoman.runtime import Runtime
from dragoman_api.errors import ConfigurationError, FilterNotSupportedError, QueryError, Refused
from dragoman_api.hookspecs import hookimpl
from dragoman_worker.hooks_and_deadlines import HOOKS

MEMORY = """
import anyio
from dragoman_api import ExportPart, QueryError, hookimpl
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    ended = ""
    closed = late = False

    @hookimpl
    async def list_objects(self, request):
        if request.contains == "ended":
            raise QueryError(self.ended or "no call was cancelled")
        if request.contains == "late":
            self.late = True
            while not self.closed:
                await anyio.sleep(0.01)
            raise AssertionError("the client is not open")
        if request.contains == "hang":
            try:
                await anyio.sleep(60)
            finally:
                self.ended = "the call was cancelled"
        return await super().list_objects(request)

    @hookimpl
    async def close(self):
        self.closed = True
        if self.late:
            await anyio.sleep(0.6)

    @hookimpl
    async def count_rows(self, request):
        assert not self.closed, "the client is not open"
        return await super().count_rows(request)

    @hookimpl
    async def export_rows(self, request):
        if request.object == "scratch":
            yield ExportPart(data=b'{"a":1}\\n', rows=1)
            raise QueryError("a shard failed")
        for first in range(0, 5000, 500):
            yield ExportPart(data=b"".join(b'{"n":%d}\\n' % (first + n) for n in range(500)), rows=500)
"""


DRIVER = wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS])


@pytest.fixture
def connect(make_runtime):
    """Return `dragoman.connect` for the memory driver."""
    make_runtime(DRIVER, installed=True)
    return lambda **options: dragoman.connect("memory", **options)


@pytest.fixture(scope="module")
def memory(published, furnished, tmp_path_factory):
    """Open one connection for all tests that leave it open; the one thread has one fork server."""
    folder = tmp_path_factory.mktemp("memory")
    installed = furnished(published([DRIVER.write(folder / "wheels")]), ["memory"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_HOME", str(shutil.copytree(installed, folder / "home")))
        Runtime(spare=False).connections.save(SavedConnection(name="memory", type="memory", values={}))
        session = dragoman.connect("memory")
    with session:
        yield session


def settled(threads):
    """Wait until no more than so many threads are left."""
    deadline = time.monotonic() + 20
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.05)
    return threading.active_count() <= threads


PUBLIC = [
    pytest.param(kind, blocking, name, id=f"{kind.__name__}.{name}")
    for kind, blocking in ((Session, BlockingSession), (Rows, BlockingRows))
    for name, member in inspect.getmembers_static(kind)
    if not name.startswith("_") and not inspect.ismemberdescriptor(member)
]


@pytest.mark.parametrize(("kind", "blocking", "name"), PUBLIC)
def test_each_method_has_the_signature_and_the_documentation_of_the_asynchronous_one(kind, blocking, name):
    theirs, ours = inspect.getattr_static(kind, name), inspect.getattr_static(blocking, name)
    if isinstance(theirs, property):
        assert isinstance(ours, property)
        assert theirs.fget.__annotations__ == ours.fget.__annotations__
        assert inspect.getdoc(theirs) == inspect.getdoc(ours)
        return
    assert inspect.signature(ours).parameters == inspect.signature(theirs).parameters
    assert not inspect.iscoroutinefunction(ours)
    assert ours.__qualname__ == f"{blocking.__name__}.{name}"
    assert inspect.getdoc(ours) == inspect.getdoc(theirs).replace("async with aclosing(", "with closing(")


def test_a_blocking_load_has_the_signature_of_the_asynchronous_one_which_also_copies():
    ours, theirs = (list(inspect.signature(each).parameters.values()) for each in (BlockingSession.load, dragoman.load))
    of_copies = ("rows", "ids", "confirm")
    expected = [parameter for parameter in theirs[1:] if parameter.name not in of_copies]
    file = expected.index(next(parameter for parameter in expected if parameter.name == "file"))
    assert ours[file + 1].default is inspect.Parameter.empty  # without rows, there is nothing else to load
    assert [*ours[1 : file + 1], *ours[file + 2 :]] == [*expected[:file], *expected[file + 1 :]]


def test_a_file_is_loaded_and_a_failure_is_that_of_the_load(memory, tmp_path):
    file = tmp_path / "more.csv"
    file.write_text("title\na\nb\n")
    seen = []
    report = memory.load("scratch", file=file, progress=seen.append)
    assert (report.counts["applied"], memory.rows("scratch").count(), seen[-1].now) == (2, 2, 2)
    with pytest.raises(ConfigurationError, match="on_conflict"):
        memory.load("scratch", file=file, on_conflict="perhaps")


def test_connect_takes_what_open_takes():
    ours, theirs = inspect.signature(dragoman.connect), inspect.signature(dragoman.open)
    assert ours.parameters == theirs.parameters


def test_a_page_a_count_and_a_cell_are_those_of_the_session(memory):
    page = memory.rows("books", filters=[Filter("price", ">", 10)]).page(limit=2)
    assert page.rows
    assert all(row["price"] > 10 for row in page.rows)
    assert memory.rows("books").count() >= len(page.rows)
    assert memory.rows(page.rows[0].key.object).cell(page.rows[0].key, "title") == page.rows[0]["title"]
    assert (memory.name, memory.type, memory.plugin) == ("memory", "memory", "memory")
    assert memory.can("fetch_page")
    assert "memory" in repr(memory)


def test_a_change_is_planned_and_applied(memory):
    row = memory.rows("books").page(limit=1).rows[0]
    plan = memory.plan(Update(row.key, {"title": "Renamed"}))
    assert plan.requests
    [outcome] = memory.apply(plan)
    assert outcome.status == "applied"
    assert memory.rows(row.key.object).cell(row.key, "title") == "Renamed"


def test_a_guard_refuses_as_it_does_for_the_session(connect):
    class Veto:
        @hookimpl
        async def before_call(self, call):
            if call.hook == "fetch_page":
                raise Refused("not today")

    with connect(use=[Veto()]) as session:
        assert session.objects().objects
        with pytest.raises(Refused, match="not today"):
            session.rows("books").page()


def test_errors_are_those_of_the_session(memory):
    with pytest.raises(FilterNotSupportedError):
        memory.rows("books", filters=[Filter("no_such_column", "=", 1)]).page()


def test_an_unknown_connection_leaves_no_thread(connect):
    before = threading.active_count()
    with pytest.raises(ConfigurationError, match="nothing-like-it"):
        dragoman.connect("nothing-like-it")
    assert settled(before)


def test_several_threads_use_one_connection(memory):
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: memory.rows("books").count(), range(40)))
    assert len(set(counts)) == 1


def test_rows_arrive_in_order_and_end(memory):
    rows = memory.rows("books").stream()
    assert [row["n"] for row in rows] == list(range(5000))
    assert list(rows) == []


def test_rows_that_are_not_read_to_their_end_hold_up_nothing(memory):
    with closing(memory.rows("books").stream()) as rows:
        assert next(rows) == {"n": 0}
    assert list(rows) == []
    assert memory.rows("books").count() > 0


def test_an_error_in_the_middle_of_rows_comes_after_the_rows_before_it(memory):
    rows = memory.rows("scratch").stream()
    assert next(rows) == {"a": 1}
    with pytest.raises(QueryError, match="a shard failed"):
        next(rows)


def test_an_export_writes_its_file(memory, tmp_path):
    result = memory.rows("books").export(to=tmp_path / "books.ndjson")
    assert result.rows == 5000
    assert len((tmp_path / "books.ndjson").read_bytes().splitlines()) == 5000


def test_a_closed_connection_says_so_however_it_is_used(connect):
    session = connect()
    rows = session.rows("books").stream()
    next(rows)
    session.close()
    session.close()
    for call in (session.objects, lambda: session.rows("books").page(), lambda: list(session.rows("books"))):
        with pytest.raises(ConfigurationError) as caught:
            call()
        assert caught.value.code == "connection-closed"
    assert "closed" in repr(session)


def test_a_call_while_another_thread_closes_says_so_instead_of_blaming_the_driver(connect):
    session = connect()
    with ThreadPoolExecutor(2) as pool:
        before = pool.submit(session.objects, contains="late")
        time.sleep(0.2)
        closing = pool.submit(session.close)
        time.sleep(0.2)
        for call in (
            lambda: session.rows("books").count(),
            lambda: next(session.rows("books").stream()),
            before.result,
        ):
            with pytest.raises(ConfigurationError) as caught:
                call()
            assert caught.value.code == "connection-closed"
        closing.result(20)


@pytest.mark.slow
def test_a_call_that_waits_while_another_thread_closes_ends(connect):
    session = connect()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(session.objects, contains="hang")
        time.sleep(0.3)
        session.close()
        with pytest.raises(dragoman.DragomanError):
            waiting.result(20)


@pytest.mark.slow
def test_a_connection_that_is_no_longer_used_closes(connect):
    before = threading.active_count()
    session = connect()
    assert threading.active_count() > before
    del session
    assert settled(before)


def test_a_connection_stays_open_while_rows_or_streams_of_it_are_used(connect):
    before = threading.active_count()
    total = connect().rows("books").page(limit=1).total
    lengths = [len([*connect().rows("books")]), len([*connect().rows("books").stream()])]
    rows = connect().rows("books")
    lengths.append(len([*rows]))
    del rows
    assert total == 23
    assert lengths == [5_000] * 3
    assert settled(before)


@pytest.mark.slow
def test_a_connection_that_the_collector_finds_in_its_own_loop_closes_too(connect):
    async def collect():
        gc.collect()

    before = threading.active_count()
    session = connect()
    loop, session.itself = session._loop, session  # only the collector ends it
    del session
    loop.wait(collect)
    assert settled(before)


def test_code_in_the_connections_own_loop_is_told_and_does_not_hang(connect):
    class Asks:
        @hookimpl
        async def before_call(self, call):
            if call.hook == "count_rows":
                session.objects()

    session = connect(use=[Asks()])
    with closing(session), pytest.raises(dragoman.DragomanError, match="event loop"):
        session.rows("books").count()


def script(text, **options):
    """Start a program that uses the home of this test."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ), **options,
    )  # fmt: skip


@pytest.mark.slow
def test_ctrl_c_cancels_the_call_in_the_driver_and_the_connection_goes_on(connect):
    program = script(
        """
        import dragoman

        memory = dragoman.connect("memory")
        print("ready", flush=True)
        try:
            memory.objects(contains="hang")
        except KeyboardInterrupt:
            print("interrupted")
        try:
            memory.objects(contains="ended")
        except dragoman.DragomanError as error:
            print(error)
        print(memory.rows("books").count() > 0)
        """
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(0.5)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert out.splitlines() == ["interrupted", "the call was cancelled", "True"], err


@pytest.mark.slow
def test_it_works_beside_an_event_loop_of_the_program(connect):
    program = script(
        """
        import asyncio
        import dragoman

        async def notebook():
            with dragoman.connect("memory") as memory:  # blocks this loop, as a cell of a notebook does
                return memory.rows("books").count()

        print(asyncio.run(notebook()) > 0)
        """
    )
    out, err = program.communicate(timeout=60)
    assert (out, err) == ("True\n", "")


@pytest.mark.slow
def test_a_program_that_closes_nothing_ends_by_itself_and_leaves_no_process(connect):
    program = script(
        """
        import dragoman

        memory = dragoman.connect("memory")
        rows = memory.rows("books").stream()
        print(next(rows)["n"], memory.server.product)
        """
    )
    out, err = program.communicate(timeout=60)
    assert out.startswith("0 ")
    assert (err, program.returncode) == ("", 0)
