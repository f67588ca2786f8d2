"""A session over a whole driver in its sandbox: pages, changes, the console, exports, and what each of them says."""

from __future__ import annotations

import json
from contextlib import aclosing
from decimal import Decimal

import anyio
import pytest

import wheelhouse
from dragoman import Delete, Drop, Filter, Insert, RawQuery, Sort, Update
from dragoman_api.cells import CutJson, Json
from dragoman_api.changes import OutcomeStatus
from dragoman_api.errors import (
    ConfigurationError,
    FilterNotSupportedError,
    ObjectChangedError,
    QueryError,
    Refused,
    RevisionGoneError,
    UnsupportedOperationError,
)
from dragoman_api.hookspecs import hookimpl
from dragoman_worker.hooks_and_deadlines import HOOKS

MEMORY = """
from dragoman_api import ExportPart, Health, QueryError, hookimpl
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    healthy = True

    @hookimpl
    async def ping(self):
        self.healthy = not self.healthy
        return Health(ok=self.healthy, reason="" if self.healthy else "the key was revoked")

    @hookimpl
    async def export_rows(self, request):
        if request.object == "scratch":
            yield ExportPart(data=b'{"a":1}\\n', rows=1)
            raise QueryError("a shard failed")
        async for part in super().export_rows(request):
            yield part
"""


def memory():
    return wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS])


@pytest.fixture
def open_memory(make_runtime):
    """Return a function that makes a runtime with the memory driver."""
    return lambda **options: make_runtime(memory(), installed=True, **options)


def last(runtime, name):
    return [event for event in runtime.seen if event.name == name][-1]


EXCLUDES = """
from dragoman_api import QueryError, hookimpl
from .memory_driver import MemoryDriver
from msgspec.structs import replace


class Driver(MemoryDriver):
    reasons = {"any": "it is a tag of the series"}

    def _columns(self):
        return [replace(each, reasons=self.reasons) if each.name == "stock" else each for each in super()._columns()]

    @hookimpl
    async def compile_filter(self, request):
        if request.match == "any" and len(request.rows) > 1 and "stock" in {row.column for row in request.rows}:
            raise QueryError("the driver was called")
        return await super().compile_filter(request)

    @hookimpl
    async def ping(self):
        self.reasons = {}
        return await super().ping()
"""


@pytest.mark.slow
async def test_a_filter_on_any_that_names_an_excluded_column_is_refused_before_the_driver_is_called(make_runtime):
    """A column may combine with others under all, and stand alone under any, but not beside other rows."""
    runtime = make_runtime(wheelhouse.Driver("memory", code=EXCLUDES, hooks=[*HOOKS]), installed=True)
    title, stock = Filter("title", "contains", "Book"), Filter("stock", ">=", 3)
    async with runtime, runtime.open("memory") as session:
        rows = session.rows("books", filters=[title, stock], match="any")
        for call in (rows.page, rows.count, rows.explain):
            with pytest.raises(FilterNotSupportedError) as caught:
                await call()
            details = {"row": 1, "column": "stock", "operator": ">=", "reason": "it is a tag of the series"}
            assert caught.value.details == details
        rejected = last(runtime, "filter.rejected")
        assert (rejected.column, rejected.operator, rejected.reason) == ("stock", ">=", "it is a tag of the series")
        assert await session.rows("books", filters=[stock], match="any").count() == 9
        assert await session.rows("books", filters=[title, stock]).count() == 8
        await session.ping()  # the limit ends
        with pytest.raises(QueryError, match="the driver was called"):
            await session.rows("books", filters=[title, stock], match="any").count()


CHECKS = """
import anyio
from dragoman_api import Health, QueryError, hookimpl
from dragoman_api.connections import ServerStatus
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    running = frozenset()

    async def _alone(self, hook):
        if hook in self.running:
            raise QueryError(f"{hook} was called twice at a time")
        self.running = self.running | {hook}
        await anyio.sleep(0.05)
        self.running = self.running - {hook}

    @hookimpl
    async def ping(self):
        await self._alone("ping")
        return Health(ok=True)

    @hookimpl
    async def read_status(self):
        await self._alone("read_status")
        return ServerStatus()
"""


@pytest.mark.slow
async def test_a_driver_is_checked_by_one_call_at_a_time_however_many_ask(make_runtime):
    runtime = make_runtime(wheelhouse.Driver("memory", code=CHECKS, hooks=[*HOOKS]), installed=True)
    healths = []
    async with runtime, runtime.open("memory") as session:

        async def check():
            healths.append(await session.ping())
            await session.status()

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(check)
    assert [health.reason for health in healths] == [""] * 4


async def test_a_page_has_rows_with_keys_and_cells_as_stored(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        page = await session.rows("books", sort=[Sort("price", descending=True)]).page(limit=2)
        assert [row["price"] for row in page.rows] == [2**63 + 22, 2**63 + 18]
        assert page.rows[0].key.id == "22"
        assert page.total == 23
        cut = (await session.rows("books", filters=[Filter("id", "=", "7")]).page()).rows[0]
        assert cut.is_cut("tags")
        assert isinstance(cut["tags"], CutJson)
        assert len(cut["tags"]) == 10_003
        whole = await session.rows(cut.key.object).cell(cut.key, "tags")
        assert isinstance(whole, Json)
        assert len(json.loads(whole)) == 2_000
        event = last(runtime, "page.fetched")
        assert (event.connection, event.object, event.rows) == ("memory", "books", 1)


@pytest.mark.slow
async def test_reads_at_a_revision_show_the_rows_as_they_were(make_runtime, tmp_path):
    driver = wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS], capabilities=["browse", "revisions"])
    async with make_runtime(driver, installed=True) as runtime, runtime.open("memory") as session:
        before = await session.rows("books").page()
        await session.apply(await session.plan(Delete(before.keys[0])))
        assert (await session.rows("books").page()).total == 22
        page = await session.rows("books", revision=before.revision).page()
        assert (page.cells, page.revision) == (before.cells, before.revision)
        assert await session.rows("books", revision=before.revision).count() == 23
        assert (
            await session.rows(before.keys[0].object, revision=before.revision).cell(before.keys[0], "title")
            == before.rows[0]["title"]
        )
        async with aclosing(session.rows("books", revision=before.revision).stream()) as rows:
            assert len([row async for row in rows]) == 23
        result = await session.rows("books", revision=before.revision).export(to=tmp_path / "then.ndjson")
        assert result.rows == 23
        with pytest.raises(RevisionGoneError):
            await session.rows("books", revision="99").page()


async def test_a_revision_never_reaches_a_driver_that_does_not_announce_them(open_memory, tmp_path):
    async with open_memory() as runtime, runtime.open("memory") as session:
        page = await session.rows("books").page()
        for read in (
            lambda: session.rows("books", revision="0").page(),
            lambda: session.rows("books", revision="0").count(),
            lambda: session.rows(page.keys[0].object, revision="0").cell(page.keys[0], "title"),
            lambda: anext(session.rows("books", revision="0").stream()),
            lambda: session.rows("books", revision="0").export(to=tmp_path / "x.ndjson"),
        ):
            with pytest.raises(UnsupportedOperationError, match="as they are now"):
                await read()


async def test_a_filter_that_cannot_run_is_an_event_and_an_error_and_nothing_else(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(FilterNotSupportedError):
            await session.rows("books", filters=[Filter("tags", "contains", "a")]).page()
        event = last(runtime, "filter.rejected")
        assert (event.object, event.column, event.operator) == ("books", "tags", "contains")
        assert "page.fetched" not in [event.name for event in runtime.seen]


@pytest.mark.parametrize(
    ("call", "reason", "hint"),
    [
        (
            lambda session: session.rows("books", filters=["stock > 1"]).page(),
            "'stock > 1' is not a filter row",
            "Filter(",
        ),
        (
            lambda session: session.rows("books", filters="stock > 1").count(),
            "'stock > 1' is not a filter row",
            "Filter(",
        ),
        (lambda session: session.rows("books", sort=["stock"]).page(), "'stock' is not a sort", "Sort("),
        (lambda session: session.rows("books", sort="stock").page(), "'stock' is not a sort", "Sort("),
        (lambda session: session.rows("books", sort=Sort("stock")).page(), "is not a list", "in a list"),
        (lambda session: session.rows("books", filters=Filter("stock", ">", 1)).count(), "is not a list", "in a list"),
        (lambda session: session.rows("books", filters=iter([])).count(), "is not a list", "in a list"),
        (lambda session: session.plan(Update("1", {"stock": 2})), "'1' is not the key of a row", "row.key"),
        (lambda session: session.rows("books").cell("1", "stock"), "'1' is not the key of a row", "row.key"),
        (lambda session: session.plan({"stock": 2}), "is not a change", "Update("),
    ],
)
async def test_an_argument_of_another_kind_is_the_callers_fault_and_not_the_drivers(open_memory, call, reason, hint):
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ConfigurationError) as caught:
            await call(session)
    assert reason in str(caught.value)
    assert hint in caught.value.hint


async def test_an_empty_raw_row_is_no_filter_and_match_is_checked(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        assert await session.rows("books", filters=[RawQuery("  ")]).count() == 23
        with pytest.raises(ConfigurationError, match=r"match is 'some'; .* all or any"):
            await session.rows("books", filters=[Filter("stock", "=", 1)], match="some").count()
        for offset, limit, reason in ((-1, 1, "offset of 0"), (0, 0, "10,000"), (0, 10_001, "10,000")):
            with pytest.raises(ConfigurationError, match=reason):
                await session.rows("books").page(offset=offset, limit=limit)


async def test_a_change_is_planned_as_exact_requests_and_applied_with_outcomes(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        row = (await session.rows("books", filters=[Filter("id", "=", "1")]).page()).rows[0]
        plan = await session.plan(Update(row.key, {"stock": 99}), Insert("books", {"title": "New"}))
        assert [request.method for request in plan.requests] == ["PUT", "POST"]
        assert await session.rows("books").count() == 23, "planning writes nothing"
        outcomes = await session.apply(plan)
        assert [outcome.status for outcome in outcomes] == [OutcomeStatus.APPLIED] * 2
        assert await session.rows("books").count() == 24
        stale = await session.apply(await session.plan(Update(row.key, {"stock": 1})))
        assert stale[0].status is OutcomeStatus.CONFLICT
        assert last(runtime, "row.skipped").status == "conflict"
        assert last(runtime, "row.updated").id == "1"
        assert last(runtime, "row.inserted").object == "books"
        await session.apply(await session.plan(Delete(row.key)))
        await session.apply(await session.plan(Drop("scratch")))
        assert last(runtime, "object.dropped").object == "scratch"


async def test_a_guard_sees_the_exact_requests_before_they_are_sent(open_memory):
    class Guard:
        def __init__(self):
            self.calls = []

        @hookimpl
        async def before_call(self, call):
            self.calls.append(call)
            if call.writes:
                raise Refused("not today")

    guard = Guard()
    async with open_memory(use=[guard]) as runtime, runtime.open("memory") as session:
        plan = await session.plan(Insert("books", {"title": "New"}))
        with pytest.raises(Refused):
            await session.apply(plan)
        assert await session.rows("books").count() == 23
        call = next(call for call in guard.calls if call.hook == "apply_change")
        assert call.requests == tuple(plan.requests)
        assert call.object == "books"
        assert [type(change).__name__ for change in call.changes] == ["Insert"]
        for request in await session.parse("PUT /books/1 {}"):
            with pytest.raises(Refused):
                await session.execute(request)
        assert last(runtime, "call.refused").hook == "execute_console"


async def test_the_console_answers_request_by_request(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        answers = await session.console("GET /\nGET /books/1")
        assert [answer.status for answer in answers] == [200, 200]
        assert last(runtime, "console.executed").path == "/books/1"


async def test_a_session_says_what_it_is_connected_to_and_with_what(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        assert (session.name, session.type, session.plugin) == ("memory", "memory", "memory")
        assert session.server.product
        assert session.plugin_version == "1.0.0"
        assert session.sandbox


async def test_W35_a_change_of_health_is_an_event_and_staying_the_same_is_none(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        assert not (await session.ping()).ok
        assert (await session.ping()).ok
        states = [event.state for event in runtime.seen if event.name == "connection.health_changed"]
        assert states == ["failed", "ok"]
        assert [event.reason for event in runtime.seen if event.name == "connection.health_changed"] == [
            "the key was revoked",
            "",
        ]


async def test_rows_iterates_over_whole_documents_with_exact_numbers(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        documents = [document async for document in session.rows("books")]
    assert len(documents) == 23
    prices = {document["price"] for document in documents}
    assert 2**63 + 22 in prices
    assert not any(isinstance(price, Decimal) for price in prices)


async def test_leaving_an_iteration_early_ends_the_stream(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        async for _ in session.rows("books"):
            break
        assert await session.rows("books").count() == 23


@pytest.mark.slow
async def test_a_missing_hook_is_said(make_runtime):
    async with make_runtime(installed=True) as runtime, runtime.open("demo") as session:
        assert not session.can("fetch_page")
        with pytest.raises(UnsupportedOperationError):
            await session.rows("things").page()


CHANGING = """
from dragoman_api import hookimpl
from dragoman_api.errors import ObjectChangedError
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    changes = 0

    def change(self, name):
        self.changes += 1
        if name == "scratch" or self.changes % 2:
            raise ObjectChangedError(f"'{name}' changed: {self.changes}")

    @hookimpl
    async def fetch_page(self, request):
        self.change(request.object)
        return await super().fetch_page(request)

    @hookimpl
    async def fetch_cell(self, request):
        self.change(request.key.object)
        return await super().fetch_cell(request)

    @hookimpl
    async def count_rows(self, request):
        self.change(request.object)
        return await super().count_rows(request)
"""


class Watch:
    """Notes which hooks are called."""

    def __init__(self):
        self.hooks = []

    @hookimpl
    async def before_call(self, call):
        self.hooks.append(call.hook)


async def test_a_call_on_an_object_that_changed_is_compiled_and_made_again_and_a_page_says_so(make_runtime):
    watch = Watch()
    driver = wheelhouse.Driver("memory", code=CHANGING, hooks=[*HOOKS])
    async with make_runtime(driver, installed=True, use=[watch]) as runtime, runtime.open("memory") as session:
        await session.describe("books")
        watch.hooks.clear()
        page = await session.rows("books", filters=[Filter("id", "=", "1")]).page()
        assert [(note.code, note.reason) for note in page.notes] == [("object-changed", "'books' changed: 1")]
        assert watch.hooks == ["compile_filter", "fetch_page"] * 2
        assert last(runtime, "page.fetched").notes == ["object-changed"]
        assert await session.rows("books").count() == 23
        assert await session.rows(page.rows[0].key.object).cell(page.rows[0].key, "stock") == page.rows[0]["stock"]
        for call in (session.rows("scratch").page, session.rows("scratch").count):
            watch.hooks.clear()
            with pytest.raises(ObjectChangedError, match="'scratch' changed"):
                await call()
            made = [hook for hook in watch.hooks if hook != "describe_object"]
            assert len(made) == 4, "it is not asked for ever"


@pytest.mark.slow
async def test_compiling_by_itself_describes_anew(make_runtime):
    """An explanation is about the columns as the server has them now."""
    watch = Watch()
    async with make_runtime(memory(), installed=True, use=[watch]) as runtime, runtime.open("memory") as session:
        for _ in range(2):
            watch.hooks.clear()
            await session.rows("books", filters=[Filter("id", "=", "1")]).explain()
            assert watch.hooks == ["describe_object", "compile_filter"]
        watch.hooks.clear()
        with pytest.raises(FilterNotSupportedError):
            await session.rows("books", filters=[Filter("tags", "contains", "a")]).count()
        assert watch.hooks == ["compile_filter", "describe_object", "compile_filter"], "the column may have changed"
        rejected = [event for event in runtime.seen if event.name == "filter.rejected"]
        assert len(rejected) == 1
