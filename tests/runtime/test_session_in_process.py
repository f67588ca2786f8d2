"""What a session asks its driver for, in which order, and what it makes of the answers."""

from __future__ import annotations

import io
import itertools
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from dragoman import Delete, Drop, Filter, Insert, RawQuery, Sort, Update, undo_lines
from dragoman.automations.event_bus import Bus
from dragoman.changes.files import read_line
from dragoman.imports.loads import load
from dragoman.sessions.driver_calls import unknown
from dragoman.sessions.plans import completed
from dragoman.sessions.relative_times import Span
from dragoman.sessions.selections import RowSelection
from dragoman.sessions.session import Session
from dragoman.settings import Limit
from dragoman_api.changes import HttpRequest, InsertBatch, NewObject, Outcome, OutcomeStatus, Plan, PlannedRequest
from dragoman_api.columns import Column, ColumnKind, Note, TimeColumn
from dragoman_api.connections import Health
from dragoman_api.console import Answer, AnswerKind, ConsoleRequest
from dragoman_api.errors import (
    AccessDeniedError,
    ConfigurationError,
    DragomanError,
    DriverFaultError,
    FilterNotSupportedError,
    ObjectChangedError,
    QueryError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_api.filters import CompiledFilter, Explanation
from dragoman_api.grid import RowKey
from dragoman_api.hookspecs import hookimpl
from dragoman_api.summaries import SummaryRequest
from dragoman_worker.oversized_results import MAX_ANSWERS
from in_process import Here
from memory_driver import MemoryDriver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api.exports import ExportPart

ALL = ("tenants", "revisions", "time-range")
KEY = RowKey(object="books", id="7")


class Asked:
    """Remembers every call that is about to happen, and refuses one hook on request."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.refused = ""

    @hookimpl
    async def before_call(self, call: Any) -> None:
        self.calls.append(call)
        if call.hook == self.refused:
            raise Refused("no")

    def hooks(self) -> list[str]:
        """Return the hooks since the last time."""
        named = [call.hook for call in self.calls]
        self.calls.clear()
        return named


class Driver(MemoryDriver):
    """The driver in memory; it remembers requests, and raises or answers what a test wants."""

    def __init__(self) -> None:
        super().__init__(part_rows=5)
        self.requests: list[Any] = []
        self.errors: list[Exception] = []
        self.answers: dict[str, Any] = {}
        self.time: TimeColumn | None = None

    def _told(self, hook: str, request: Any) -> Any:
        self.requests.append(request)
        if self.errors and hook != "describe_object":
            raise self.errors.pop(0)
        return self.answers.get(hook)

    @hookimpl
    async def ping(self) -> Any:
        return self._told("ping", None) or Health(ok=True)

    @hookimpl
    async def describe_object(self, name: str) -> Any:
        self._told("describe_object", name)
        return replace(await super().describe_object(name), time=self.time)

    @hookimpl
    async def compile_filter(self, request: Any) -> Any:
        return self._told("compile_filter", request) or await super().compile_filter(request)

    @hookimpl
    async def fetch_page(self, request: Any) -> Any:
        return self._told("fetch_page", request) or await super().fetch_page(replace(request, revision=""))

    @hookimpl
    async def fetch_cell(self, request: Any) -> Any:
        return self._told("fetch_cell", request) or await super().fetch_cell(replace(request, revision=""))

    @hookimpl
    async def count_rows(self, request: Any) -> Any:
        return self._told("count_rows", request) or await super().count_rows(replace(request, revision=""))

    @hookimpl
    async def summarize_column(self, request: Any) -> Any:
        return self._told("summarize_column", request) or await super().summarize_column(request)

    @hookimpl
    async def plan_change(self, request: Any) -> Any:
        return self._told("plan_change", request) or await super().plan_change(request)

    @hookimpl
    async def apply_change(self, plan: Any) -> Any:
        return self._told("apply_change", plan) or await super().apply_change(plan)

    @hookimpl
    async def execute_console(self, request: Any) -> Any:
        return self._told("execute_console", request) or await super().execute_console(request)

    @hookimpl
    async def export_rows(self, request: Any) -> AsyncIterator[ExportPart]:
        self._told("export_rows", request)
        number = 0
        async for part in super().export_rows(replace(request, revision="")):
            number += 1
            yield replace(part, notes=[Note(code="told", reason=str(number))])


class Place:
    """A driver, what was asked of automations, and a session."""

    def __init__(self, *capabilities: str, **options: Any) -> None:
        self.driver, self.asked = Driver(), Asked()
        self.here = Here(self.driver, self.asked, capabilities=capabilities)
        self.session = self.here.session(**options)

    def last(self, kind: type) -> Any:
        """Return the last request of a type."""
        return [each for each in self.driver.requests if type(each) is kind][-1]

    def named(self, name: str) -> list[Any]:
        """Return the events of a name."""
        return [event for event in self.here.seen if event.name == name]


# reads ----------------------------------------------------------------------------------------------------------------


async def test_a_summary_has_ten_values_and_twenty_buckets_unless_the_caller_says_otherwise():
    place = Place(*ALL)
    await place.session.rows("books").summarize("stock")
    request = place.last(SummaryRequest)
    assert (request.values, request.buckets) == (10, 20)
    await place.session.rows("books").summarize("stock", values=0, buckets=50)
    request = place.last(SummaryRequest)
    assert (request.values, request.buckets) == (0, 50)


async def test_a_page_is_asked_for_as_the_caller_says():
    place = Place(*ALL)
    place.driver.time = TimeColumn(column="stock")
    place.driver.answers["fetch_page"] = await MemoryDriver().fetch_page(await a_page_request())
    chosen: dict[str, Any] = {
        "sort": [Sort("price", descending=True)], "columns": ["title"], "tenant": "acme", "revision": "9",
        "residual": 50,
    }  # fmt: skip
    place_of_page: dict[str, Any] = {"offset": 3, "limit": 4, "total": False}
    span = Span(since="2024-01-01T00:00:00Z", until="2024-02-01T00:00:00Z")
    rows = place.session.rows("books", filters=[Filter("stock", ">=", 1)], match="any", span=span, **chosen)
    await rows.page(**place_of_page)
    request = place.driver.requests[-1]
    assert {name: getattr(request, name) for name in chosen | place_of_page} == chosen | place_of_page
    assert request.object == "books"
    assert request.filter.rows[0].clause == "stock >= 1"
    assert (request.time.column, request.time.since[:10], request.time.until[:10]) == (
        "stock", "2024-01-01", "2024-02-01",
    )  # fmt: skip
    compiled = place.driver.requests[-2]
    assert (compiled.object, compiled.match, compiled.residual, len(compiled.rows)) == ("books", "any", 50, 1)
    call = place.asked.calls[-1]
    assert (call.hook, call.object, call.rows, call.writes, call.unattended) == ("fetch_page", "books", 4, False, True)
    await place.session.rows("books").page()
    request = place.driver.requests[-1]
    assert (request.filter, request.time, request.columns, request.total, request.cursor) == (
        None, None, None, True, None,
    )  # fmt: skip
    assert (request.offset, request.limit) == (0, 100)


async def test_a_page_has_the_notes_of_all_who_took_part_in_their_order():
    place = Place("time-range")
    place.driver.time = TimeColumn(column="stock", window=60)
    approximate = Explanation(row=0, clause="x", exact=False, approximations=["nearly", "so"])
    place.driver.answers["compile_filter"] = CompiledFilter(object="books", body="{}", rows=[approximate])
    page = await MemoryDriver().fetch_page(await a_page_request())
    place.driver.answers["fetch_page"] = replace(page, notes=[Note(code="mine", reason="the driver's")])
    place.driver.errors = [ObjectChangedError("it changed")]
    await place.session.describe("books")
    page = await place.session.rows("books", filters=[Filter("stock", "=", 1)]).page()
    assert [(note.code, note.reason) for note in page.notes] == [
        ("object-changed", "it changed"), ("time-window", page.notes[1].reason),
        ("filter-approximate", "filter row 1 (x): nearly; so"), ("mine", "the driver's"),
    ]  # fmt: skip
    [event] = place.named("page.fetched")
    assert (event.connection, event.object, event.rows) == ("shop", "books", len(page.cells))
    assert event.notes == ["object-changed", "time-window", "filter-approximate", "mine"]
    rows = [
        replace(approximate, approximations=[], unlikely=["hardly"]),
        replace(approximate, row=1, unlikely=["hardly"]),
    ]
    place.driver.answers["compile_filter"] = CompiledFilter(object="books", body="{}", rows=rows)
    page = await place.session.rows("books", filters=[Filter("stock", "=", 1), Filter("stock", "=", 2)]).page()
    assert [note.reason for note in page.notes[1:]] == ["filter row 2 (x): nearly; so", "the driver's"]
    assert 0 <= event.seconds < 60


async def a_page_request() -> Any:
    place = Place()
    await place.session.rows("books").page(limit=3)
    return place.driver.requests[-1]


async def test_a_page_has_one_to_ten_thousand_rows():
    place = Place()
    for offset, limit in ((0, 1), (0, 10_000), (5, 1)):
        assert (await place.session.rows("books").page(offset=offset, limit=limit)).cells
    place.asked.calls.clear()
    for offset, limit in ((-1, 1), (0, 0), (0, -5), (0, 10_001)):
        said = "offset of 0 or more, not -1" if offset else "1 to 10,000 rows"
        with pytest.raises(ConfigurationError, match=said):
            await place.session.rows("books").page(offset=offset, limit=limit)
    assert place.asked.hooks() == []


async def test_an_object_is_described_once_before_another_hook_names_it_and_again_in_a_new_process():
    place = Place()
    reads = {
        "fetch_page": lambda: place.session.rows("books").page(),
        "count_rows": lambda: place.session.rows("books").count(),
        "fetch_cell": lambda: place.session.rows(KEY.object).cell(KEY, "title"),
        "plan_change": lambda: place.session.plan(Delete(KEY)),
        "compile_filter": lambda: place.session.rows("books", filters=[Filter("stock", "=", 1)]).explain(),
        "export_rows": lambda: anext(place.session.rows("books").stream()),
    }
    for hook, read in reads.items():
        place.here.alive = False
        await read()
        assert place.asked.hooks() == ["describe_object", hook]
        place.here.incarnation += 1
        await read()
        assert place.asked.hooks() == ["describe_object", hook]
    for hook in ("fetch_page", "count_rows", "fetch_cell", "plan_change"):
        await reads[hook]()
        assert place.asked.hooks() == [hook]
    await reads["compile_filter"]()
    assert place.asked.hooks() == ["describe_object", "compile_filter"], "an explanation is about the present columns"


async def test_a_read_of_an_object_that_keeps_changing_is_made_four_times_and_then_fails():
    place = Place()
    reads = (
        lambda: place.session.rows("books").page(), lambda: place.session.rows("books").count(),
        lambda: place.session.rows(KEY.object).cell(KEY, "title"),
    )  # fmt: skip
    for read in reads:
        place.driver.errors = [ObjectChangedError(f"change {at}") for at in range(3)]
        found = await read()
        assert place.driver.errors == []
        if not isinstance(found, str):
            assert [note.reason for note in found.notes] == ["change 0", "change 1", "change 2"]
        place.driver.errors = [ObjectChangedError(f"change {at}") for at in range(5)]
        with pytest.raises(ObjectChangedError, match="change 3"):
            await read()
        assert len(place.driver.errors) == 1
        place.driver.errors = []


async def test_a_filter_that_is_refused_is_tried_once_more_on_fresh_columns_and_then_told():
    place = Place()
    await place.session.describe("books")
    refused = FilterNotSupportedError("no such column", details={"column": "c", "operator": "=", "reason": "why"})
    place.driver.errors, rows = [refused], [Filter("stock", "=", 1)]
    place.asked.calls.clear()
    assert await place.session.rows("books", filters=rows).count() == 5
    assert place.asked.hooks() == ["compile_filter", "describe_object", "compile_filter", "count_rows"]
    assert place.named("filter.rejected") == []
    place.driver.errors = [refused, refused]
    with pytest.raises(FilterNotSupportedError):
        await place.session.rows("books", filters=rows).count()
    assert place.asked.hooks() == ["compile_filter", "describe_object", "compile_filter"]
    place.driver.errors = [FilterNotSupportedError("plainly")]
    with pytest.raises(FilterNotSupportedError):
        await place.session.rows("books", filters=rows).explain()
    assert place.asked.hooks() == ["describe_object", "compile_filter"]
    told = [(each.connection, each.object, each.column, each.operator, each.reason)
            for each in place.named("filter.rejected")]  # fmt: skip
    assert told == [("shop", "books", "c", "=", "why"), ("shop", "books", "", "", "plainly")]


@pytest.mark.parametrize("row", [-1, 1, 7])
async def test_an_explanation_of_a_row_that_was_not_given_is_the_drivers_fault(row: int):
    place = Place()
    explained = [Explanation(row=0, clause="x"), Explanation(row=row, clause="y")]
    place.driver.answers["compile_filter"] = CompiledFilter(object="books", body="{}", rows=explained)
    with pytest.raises(DriverFaultError, match=rf"explained row {row} of a filter of 1 rows"):
        await place.session.rows("books", filters=[Filter("stock", "=", 1)]).explain()


async def test_empty_raw_rows_are_left_out_of_a_read():
    place = Place()
    assert await place.session.rows("books", filters=[RawQuery(" "), RawQuery("")]).count() == 23
    assert "compile_filter" not in place.asked.hooks()
    await place.session.rows("books", filters=[RawQuery(" "), Filter("stock", "=", 1), RawQuery("x")]).count()
    assert place.driver.requests[-2].rows == [Filter("stock", "=", 1), RawQuery("x")]


async def test_what_the_manifest_does_not_announce_is_refused_before_the_driver_is_asked(tmp_path: Any):
    place = Place()
    for more, reason in (({"tenant": "acme"}, "memory has no tenants; 'acme'"), ({"revision": "9"}, "revision '9'")):
        for read in (
            lambda more=more: place.session.rows("books", **more).page(),
            lambda more=more: place.session.rows("books", **more).count(),
            lambda more=more: anext(place.session.rows("books", **more).stream()),
            lambda more=more: place.session.rows("books", **more).export(to=tmp_path / "x"),
        ):
            with pytest.raises(UnsupportedOperationError, match=reason):
                await read()
    with pytest.raises(UnsupportedOperationError, match="revision '9'"):
        await place.session.rows(KEY.object, revision="9").cell(KEY, "title")
    with pytest.raises(UnsupportedOperationError, match="no tenants"):
        await place.session.plan(Delete(KEY), Insert("books", {}, tenant="acme"))
    for number in (0, -1, 10_001):
        with pytest.raises(ConfigurationError, match=rf"1 to 10,000 rows, not {number}"):
            place.session.rows("books", residual=number)
    with pytest.raises(ConfigurationError, match="match is 'some'; it can be all or any"):
        await place.session.rows("books", filters=[Filter("stock", "=", 1)], match="some").count()
    assert not {"fetch_page", "count_rows", "fetch_cell", "export_rows", "plan_change"} & {*place.asked.hooks()}


async def test_an_empty_tenant_or_routing_is_refused_and_never_taken_for_none(tmp_path: Any):
    place = Place(*ALL)
    session, key = place.session, RowKey("books", "7", "")
    batches = [InsertBatch("books", documents=["{}"], **{name: [""]}) for name in ("tenants", "routings")]
    for refused, word in (
        (lambda: session.rows("books", tenant="").page(), "tenant"),
        (lambda: session.select(RowSelection(object="books", tenant="")).count(), "tenant"),
        (lambda: session.rows("books").cell(key, "title"), "routing"),
        (lambda: session.plan(Insert("books", {}, tenant="")), "tenant"),
        (lambda: session.plan(Insert("books", {}, routing="")), "routing"),
        (lambda: session.plan(Update(key, {"stock": 1})), "routing"),
        (lambda: session.plan(Delete(key)), "routing"),
        (lambda: session.plan(batch=batches[0]), "tenant"),
        (lambda: session.plan(batch=batches[1]), "routing"),
        (lambda: load(session, "books", file=tmp_path / "x.ndjson", tenant=""), "tenant"),
    ):
        with pytest.raises(ConfigurationError, match=f"the {word} is an empty text") as caught:
            await refused()
        assert (caught.value.code, "leave" in str(caught.value.hint)) == (f"{word}-empty", True)
    assert place.driver.requests == []
    for member in ("routing", "tenant"):
        with pytest.raises(ValueError, match="empty"):
            read_line(b'{"op":"insert","object":"books","set":{"stock":1},"%b":""}' % member.encode())


async def test_counts_cells_and_rows_carry_the_tenant_and_revision_that_were_asked_for():
    place = Place(*ALL)
    await place.session.rows("books", tenant="acme", revision="9").count()
    request = place.driver.requests[-1]
    assert (request.object, request.tenant, request.revision) == ("books", "acme", "9")
    assert await place.session.rows(KEY.object, revision="9").cell(KEY, "title")
    request = place.driver.requests[-1]
    assert (request.key, request.column, request.revision) == (KEY, "title", "9")
    selection = {"tenant": "acme", "revision": "9", "columns": ["title"], "sort": [Sort("title")]}
    async with aclosing(place.session.rows("books", **selection).stream()) as rows:
        assert [row["title"] async for row in rows]
    request = place.driver.requests[-1]
    assert (request.object, request.tenant, request.revision, request.form, request.columns, request.keep_alive) == (
        "books", "acme", "9", "documents", ["title"], 0,
    )  # fmt: skip
    assert [note.code for note in rows.notes][:1] == ["sort-unused"]
    assert [note.reason for note in rows.notes][1:] == ["1", "2", "3", "4", "5"]
    with pytest.raises(ConfigurationError, match=r"form is 'tea'; it can be documents, rows, bulk"):
        await anext(place.session.rows("books").stream(form="tea"))


async def test_notes_on_rows_that_are_too_many_say_from_which_row_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.exports.export_run.NOTES", 2)
    rows = Place().session.rows("books").stream()
    assert len([row async for row in rows]) == 23
    assert [note.code for note in rows.notes] == ["told", "told", "notes-cut"]
    assert "rows after the first 15;" in rows.notes[-1].reason


async def test_an_export_says_where_it_comes_from_and_how_long_it_can_go_on(tmp_path: Any):
    place = Place(*ALL, keep_alive=77)
    result = await place.session.rows("books", tenant="acme", columns=["title", "id"]).export(to=tmp_path / "b.csv")
    request = place.driver.requests[-1]
    assert (request.keep_alive, request.form, request.columns, request.tenant) == (
        77, "rows", ["title", "id"], "acme",
    )  # fmt: skip
    assert (result.connection, result.object, result.server, result.driver) == (
        "shop", "books", "Memory 1.0", "memory 1.2.3",
    )  # fmt: skip
    assert (result.format, result.rows, [note.reason for note in result.notes][:5]) == (
        "csv", 23, ["1", "2", "3", "4", "5"],
    )  # fmt: skip
    assert (tmp_path / "b.csv.manifest.json").exists()
    rows = [Filter("stock", ">=", 1)]
    await place.session.rows("books", columns=["x"], filters=rows).export(
        to=tmp_path / "c", keep_alive=5, manifest=False
    )
    request = place.driver.requests[-1]
    assert (request.keep_alive, request.form, request.columns) == (5, "documents", ["x"])
    assert request.filter.rows[0].clause == "stock >= 1"
    assert not (tmp_path / "c.manifest.json").exists()
    await place.session.rows("books").export(to=io.BytesIO(), format="rows")
    assert place.driver.requests[-1].keep_alive == 0
    place.asked.calls.clear()
    await place.session.rows("books", filters=rows).export(to=tmp_path / "d")
    assert place.asked.hooks() == ["describe_object", "compile_filter", "export_rows"]
    await place.session.rows("books", filters=rows).export(to=tmp_path / "d.csv")
    assert place.asked.hooks() == ["describe_object", "compile_filter", "export_rows"]


async def test_a_level_of_objects_is_read_whole_or_in_parts():
    place = Place()
    assert [each.name for each in (await place.session.objects()).objects] == ["books", "scratch"]
    first = await place.session.objects(limit=1)
    assert ([each.name for each in first.objects], place.asked.calls[-1].object) == (["books"], None)
    rest = await place.session.objects(limit=1, cursor=first.next)
    assert ([each.name for each in rest.objects], rest.next) == (["scratch"], None)
    assert [each.name for each in (await place.session.objects(contains="SCR")).objects] == ["scratch"]


def test_a_session_tells_what_it_is_connected_to():
    session = Place("browse").session
    told = (session.name, session.type, session.plugin, session.plugin_version, session.sandbox, session.warnings)
    assert told == ("shop", "memory", "memory", "1.2.3", "full", ["careful"])
    assert (session.server.product, session.capabilities) == ("Memory", {"browse"})
    assert session.can("fetch_page")


# limits and failures of a call ----------------------------------------------------------------------------------------


async def test_an_answer_beyond_a_limit_is_withheld():
    place = Place(limit=Limit(bytes=10))
    with pytest.raises(Refused, match="bytes arrived"):
        await place.session.rows("books").page()
    with pytest.raises(Refused, match="bytes arrived"):
        await anext(place.session.rows("books").stream())
    assert [event.hook for event in place.named("call.refused")] == ["fetch_page", "export_rows"]


async def test_a_failed_write_is_in_doubt_and_a_failed_read_is_not():
    place = Place()
    plan = await place.session.plan(Delete(KEY))
    for act, in_doubt in (
        (lambda: place.session.apply(plan), True), (lambda: place.session.rows("books").count(), False),
        (lambda: place.session.execute(ConsoleRequest(request=HttpRequest("DELETE", "/x"), writes=True)), True),
        (lambda: place.session.execute(ConsoleRequest(request=HttpRequest("GET", "/x"), writes=False)), False),
    ):  # fmt: skip
        place.driver.errors = [QueryError("odd")]
        with pytest.raises(QueryError) as caught:
            await act()
        assert (caught.value.details.get("outcome") == "unknown") == in_doubt


# changes --------------------------------------------------------------------------------------------------------------


async def test_a_plan_describes_each_object_of_a_row_and_holds_its_changes():
    place = Place()
    changes = [Insert("scratch", {}), Update(KEY, {"stock": 1}), Delete(KEY), Drop("scratch")]
    plan = await place.session.plan(*changes, undo=True)
    assert place.asked.hooks() == ["describe_object", "describe_object", "plan_change"]
    assert place.driver.requests[:2] == ["books", "scratch"]
    assert place.driver.requests[-1].changes == plan.changes == changes
    assert (place.driver.requests[-1].undo, place.driver.requests[-1].bulk) == (True, False)
    batch = InsertBatch("scratch", documents=["{}"], ids=["1"])
    assert (await place.session.plan(batch=batch)).changes == batch
    assert (place.driver.requests[-1].bulk, place.driver.requests[-1].changes) == (True, batch)
    assert place.asked.calls[-1].changes == batch
    place.asked.hooks()
    await place.session.plan(Drop("books"))
    assert place.asked.calls[-1].object == "books"
    assert place.asked.calls[-1].changes == (Drop("books"),)
    assert place.asked.hooks() == ["plan_change"]
    assert place.driver.requests[-1].undo is False
    assert (await place.session.plan()).changes == []
    assert place.asked.calls[-1].object is None


async def test_the_requests_of_a_load_stay_in_the_drivers_process_only_if_nobody_looks_at_them_before():
    batch, driver = InsertBatch("scratch", documents=["{}"], ids=["1"]), Driver()

    class Pages:
        decides_on = frozenset({"fetch_page"})

        @hookimpl
        async def before_call(self, call):
            pass

    for guards, whole, outline in (((), False, True), ((), True, False), ((Pages(),), False, True),
                                   ((Asked(),), False, False)):  # fmt: skip
        session = Here(driver, *guards).session()
        plan = await session.plan(batch=batch, whole=whole)
        assert (driver.requests[-1].outline, plan.bulk, plan.number) == (outline, True, 0)
    assert (await Here(driver).session().plan(Insert("scratch", {}), whole=False)).number == 0
    assert driver.requests[-1].outline is False


APPLIED = OutcomeStatus.APPLIED
SET = [Update(KEY, {"stock": 1}), Insert("books", {}, id="9"), Update(KEY, {"stock": 2})]
UNDO = [Delete(KEY)] * 2


def planned(*rows: list[int], **fields: Any) -> PlannedRequest:
    request = HttpRequest("PUT", "/books")
    return PlannedRequest(**{"request": request, "changes": [*itertools.chain(*rows)], "rows": [*rows]} | fields)


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        (Plan(planned=[planned([0, 2], [1])]), None),
        (Plan(planned=[planned([1]), planned([0, 2])], changes=SET, undo=UNDO), None),
        (Plan(planned=[planned([0, 2])], refusals=[Outcome(change=1, status=OutcomeStatus.CONFLICT)]), None),
        (Plan(planned=[planned([0]), planned([2])], refusals=[Outcome(change=1, status=OutcomeStatus.SKIPPED)]), None),
        (Plan(planned=[planned([0, 2])]), "every change exactly once"),
        (Plan(planned=[planned([0, 2], [1], [3])]), "every change exactly once"),
        (Plan(planned=[planned([0, 2], [1]), planned([1])]), "every change exactly once"),
        (Plan(planned=[planned([0, 2], [1], [])]), "every change exactly once"),
        (
            Plan(planned=[planned([0, 2], [1])], refusals=[Outcome(change=1, status=OutcomeStatus.REFUSED)]),
            "every change exactly once",
        ),
        (Plan(planned=[planned([0, 2], [1], changes=[0, 2])]), "in the rows of a request"),
        (Plan(planned=[planned([0, 2], changes=[0, 2, 1])]), "every change exactly once"),
        (Plan(planned=[planned([2, 0], [1])]), "in another order"),
        (Plan(planned=[planned([2]), planned([0], [1])]), "in another order"),
        (Plan(planned=[planned([0, 2], [1])], changes=SET[:2]), "other changes"),
        (Plan(planned=[planned([0, 2], [1])], changes=[*SET, SET[0]]), "other changes"),
        (Plan(planned=[planned([0, 2], [1])], changes=[SET[2], SET[1], SET[0]]), "other changes"),
        (Plan(planned=[planned([0, 2], [1])], changes=[Update(KEY, {"stock": 1.0}), *SET[1:]]), "other changes"),
        (Plan(planned=[planned([0, 2], [1])], changes=[Update(KEY, {"stock": True}), *SET[1:]]), "other changes"),
        (Plan(planned=[planned([0, 2], [1])], undo=UNDO[:1]), "1 changes that undo 2 rows"),
        (Plan(planned=[planned([0, 2], [1])], undo=[Drop("books"), *UNDO[:1]]), "2 changes that undo 2 rows"),
        (Plan(planned=[planned([0, 2])], refusals=[Outcome(change=1, status=APPLIED)]), "may have been applied"),
        (Plan(planned=[planned([0, 2])], refusals=[Outcome(change=1, status=OutcomeStatus.UNKNOWN)]), "may have been"),
    ],
)
async def test_a_plan_of_other_changes_than_those_that_were_requested_is_the_drivers_fault(plan, fault):
    place = Place()
    place.driver.answers["plan_change"] = plan
    if fault is None:
        assert (await place.session.plan(*SET, undo=True)).changes == SET
        return
    with pytest.raises(DriverFaultError, match=rf"the plan of memory .*{fault}.*; nothing was sent"):
        await place.session.plan(*SET, undo=True)


async def test_a_drop_keeps_its_place_among_the_changes_of_its_object_and_has_no_undo():
    place = Place()
    changes = [Update(KEY, {"stock": 1}), Drop("books"), Drop("scratch")]
    for order, undo, whole in (("012", 1, True), ("021", 1, True), ("201", 0, True), ("102", 0, False)):
        plan = Plan(planned=[planned([int(number)]) for number in order], undo=UNDO[:undo])
        place.driver.answers["plan_change"] = plan
        if whole:
            plan = await place.session.plan(*changes, undo=True)
            assert len(undo_lines(plan, outcomes=[]).splitlines()) == undo
        else:
            with pytest.raises(DriverFaultError, match="in another order"):
                await place.session.plan(*changes)


async def test_a_plan_that_makes_an_object_has_one_request_and_nothing_else():
    place, new = Place(), NewObject("fresh")
    refusal = Outcome(change=0, status=OutcomeStatus.REFUSED)
    for plan in (
        Plan(planned=[planned(), planned()]), Plan(planned=[planned([0])]), Plan(planned=[], refusals=[refusal]),
    ):  # fmt: skip
        place.driver.answers["plan_change"] = plan
        with pytest.raises(DriverFaultError, match="the plan of memory"):
            await place.session.plan(new=new)
    place.driver.answers["plan_change"] = Plan(planned=[planned()])
    assert len((await place.session.plan(new=new)).planned) == 1


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ([Outcome(change=0, status=APPLIED, rows=4)], "aaaa"),
        ([Outcome(change=1, status=APPLIED, rows=2)], "?aa?"),
        ([Outcome(change=2, status=APPLIED, rows=2), Outcome(change=0, status=OutcomeStatus.FAILED)], "f?aa"),
        ([Outcome(change=0, status=APPLIED, rows=3), Outcome(change=1, status=OutcomeStatus.FAILED)], "af??"),
        ([Outcome(change=1, status=APPLIED, rows=4)], "?a??"),
        ([Outcome(change=0, status=APPLIED, rows=10**18)], "a???"),
        ([Outcome(change=0, status=OutcomeStatus.FAILED, rows=4)], "f???"),
        ([Outcome(change=0, status=APPLIED, id="1", rows=4)], "a???"),
        ([Outcome(change=-1, status=APPLIED, rows=3), Outcome(change=9, status=APPLIED)], "????"),
        ([Outcome(change=0, status=APPLIED, rows=1), Outcome(change=0, status=APPLIED, rows=4)], "a???"),
        ([Outcome(change=1, status=OutcomeStatus.FAILED), Outcome(change=1, status=APPLIED)], "????"),
    ],
)
def test_outcomes_are_joined_only_where_they_say_of_each_row_what_became_of_it(told, known):
    outcomes = completed(told, changes=4, bulk=True)
    signs = {OutcomeStatus.UNKNOWN: "?", OutcomeStatus.APPLIED: "a", OutcomeStatus.FAILED: "f"}
    assert "".join(signs[outcome.status] * outcome.rows for outcome in outcomes) == known
    assert [outcome.change for outcome in outcomes] == [
        sum(before.rows for before in outcomes[:at]) for at in range(len(outcomes))
    ]
    assert {outcome.rows for outcome in completed(told, changes=4, bulk=False)} == {1}


async def test_each_change_has_one_outcome_and_one_event_in_the_order_of_the_changes():
    place = Place()
    changes = [Delete(KEY), Update(RowKey("books", "8"), {"id": "x"}), Insert("books", {}), Drop("scratch")]
    plan = await place.session.plan(*changes)
    assert [each.change for each in plan.refusals] == [1]
    place.asked.calls.clear()
    place.driver.answers["apply_change"] = [
        Outcome(change=3, status=OutcomeStatus.APPLIED), Outcome(change=0, status=OutcomeStatus.APPLIED, id="7"),
        Outcome(change=99, status=OutcomeStatus.APPLIED), Outcome(change=1, status=OutcomeStatus.APPLIED),
    ]  # fmt: skip
    outcomes = await place.session.apply(plan)
    assert [(each.change, each.status.value) for each in outcomes] == [
        (0, "applied"), (1, "refused"), (2, "unknown"), (3, "applied"),
    ]  # fmt: skip
    assert [event.name for event in place.here.seen] == ["row.deleted", "row.skipped", "row.skipped", "object.dropped"]
    assert {event.connection for event in place.here.seen} == {"shop"}
    [call] = place.asked.calls
    assert (call.hook, call.object, call.writes) == ("apply_change", "books", True)
    assert (call.requests, call.changes) == (tuple(plan.requests), tuple(changes))
    assert call.statements == ("", "", "")


async def test_a_listener_that_fails_changes_no_outcome_and_no_answer():
    def fail(event: Any) -> None:
        raise OSError(28, "No space left on device")

    bus, seen = Bus(), []
    bus.add_sink(fail)
    bus.add_sink(seen.append)
    session = Session(Place().here, emit=bus.emit)
    plan = await session.plan(Delete(KEY))
    assert [outcome.status for outcome in await session.apply(plan)] == [APPLIED]
    assert len(await session.console("DELETE /books/8")) == 1
    assert [event.name for event in seen] == [
        "row.deleted", "automation.failed", "console.executed", "automation.failed",
    ]  # fmt: skip


async def test_a_plan_without_requests_is_not_sent_and_one_without_changes_keeps_its_outcomes():
    place = Place()
    refused = await place.session.plan(Drop("nothing"))
    place.asked.calls.clear()
    [outcome] = await place.session.apply(refused)
    assert (outcome.status, place.asked.hooks()) == (OutcomeStatus.REFUSED, [])
    plan = replace(await place.session.plan(Delete(KEY), Delete(RowKey("books", "8"))), changes=[])
    place.asked.calls.clear()
    outcomes = await place.session.apply(plan)
    assert [(each.change, each.status) for each in outcomes] == [(0, "applied"), (1, "applied")]
    assert (place.asked.calls[-1].object, place.asked.calls[-1].changes) == (None, ())
    assert await place.session.apply(Plan(planned=[])) == []


# the console ----------------------------------------------------------------------------------------------------------


def chain(length: int) -> Answer | None:
    answer = None
    for at in reversed(range(length)):
        request = HttpRequest("GET", "/x")
        answer = Answer(kind=AnswerKind.TEXT, status=200, request=request, text=str(at), next=answer)
    return answer


async def test_a_request_may_have_many_answers_and_each_request_has_its_own():
    place = Place()
    place.driver.answers["execute_console"] = chain(MAX_ANSWERS)
    answers = await place.session.console("GET /x\nGET /y")
    assert [answer.text for answer in answers] == [str(at) for at in range(MAX_ANSWERS)] * 2
    assert not any(answer.next for answer in answers)
    place.driver.answers["execute_console"] = chain(MAX_ANSWERS + 1)
    with pytest.raises(DriverFaultError, match="more than 500 answers to one request"):
        await place.session.console("GET /x")
    for method, writes in (("GET", False), ("DELETE", True)):
        with pytest.raises(DriverFaultError) as caught:
            await place.session.console(f"{method} /x")
        assert unknown(caught.value) is writes
        assert place.named("console.executed")[-1].method == method


async def test_a_console_request_is_told_with_its_status_and_without_secrets():
    place = Place()
    await place.session.console("GET /${name}?api_key=s3same", variables={"name": "books"})
    [event] = place.named("console.executed")
    assert (event.connection, event.method, event.status) == ("shop", "GET", 200)
    assert event.path.startswith("/books?")
    assert "s3same" not in event.path
    await place.session.console("DELETE /books/7")
    call = place.asked.calls[-1]
    assert (call.hook, call.writes, call.requests) == ("execute_console", True, (HttpRequest("DELETE", "/books/7"),))
    [request] = await place.session.parse("GET /${name}")
    assert request.request.path == "/${name}"


async def test_W35_a_change_of_health_is_told_once_with_its_reason_and_code():
    place = Place()
    assert (await place.session.ping()).ok
    assert place.here.seen == []
    bad = Health(ok=False, reason="throttled", code="overloaded")
    for answer in (bad, bad, Health(ok=True)):
        place.driver.answers["ping"] = answer
        assert await place.session.ping() == answer
    place.driver.errors = [AccessDeniedError("the key was revoked")]
    failed = await place.session.ping()
    assert (failed.ok, failed.code, "revoked" in failed.reason) == (False, "access-denied", True)
    told = [(event.connection, event.state, event.code) for event in place.named("connection.health_changed")]
    assert told == [("shop", "failed", "overloaded"), ("shop", "ok", ""), ("shop", "failed", "access-denied")]
    place.asked.refused = "ping"
    with pytest.raises(Refused):
        await place.session.ping()
    assert len(place.named("connection.health_changed")) == 3


# span and any ---------------------------------------------------------------------------------------------------------


async def test_a_span_reaches_the_driver_only_where_its_manifest_announces_it():
    for capabilities in ((), ("time-range",)):
        place = Place(*capabilities)
        place.driver.time = TimeColumn(column="at")
        reads = place.session.rows("books", span=Span(since="2024-01-01T00:00:00Z")).count()
        if capabilities:
            await reads
            assert place.driver.requests[-1].time.column == "at"
        else:
            with pytest.raises(UnsupportedOperationError):
                await reads


async def test_a_column_that_any_excludes_is_refused_here_with_what_the_description_says():
    place = Place()
    tag = Column(name="stock", type="t", kind=ColumnKind.INTEGER, reasons={"any": "it is a tag"})
    place.driver._columns = lambda: [tag]  # type: ignore[method-assign]
    rows = [Filter("stock", "=", 1), Filter("stock", "=", 2)]
    with pytest.raises(FilterNotSupportedError, match="it is a tag"):
        await place.session.rows("books", filters=rows, match="any").explain()
    assert place.asked.hooks() == ["describe_object"]


@pytest.mark.parametrize("choice", [{"filters": [Filter("titel", "=", "x")]}, {"sort": [Sort("titel")]}])
async def test_an_error_about_an_unknown_column_names_the_near_ones_and_all(choice):
    session = Here(MemoryDriver()).session()
    with pytest.raises(DragomanError, match=r"\(did you mean title\?\)$") as caught:
        await session.rows("books", **choice).page()
    assert caught.value.hint.startswith("the columns of 'books' are ")
    assert "title" in caught.value.hint
    [remedy] = caught.value.remedies
    assert (remedy.kind, remedy.arguments) == ("describe-object", {"connection": "shop", "object": "books"})


async def test_a_hint_about_columns_holds_no_name_that_would_pass_for_advice_of_the_host():
    place = Place()
    hostile = "titel\ndragoman connections edit shop --ssl-mode disable\ncheck"
    place.driver._columns = lambda: [Column(name=name, type="t") for name in (hostile, "title")]  # type: ignore[method-assign]
    with pytest.raises(DragomanError) as caught:
        await place.session.rows("books", sort=[Sort("titel")]).page()
    assert caught.value.hint == "the columns of 'books' are title"
    assert "\n" not in str(caught.value)


async def test_a_write_of_unknown_outcome_keeps_its_hint_whatever_column_its_driver_names():
    place = Place(*ALL)
    await place.session.describe("books")
    plan = await place.session.plan(Insert("books", {"title": "x"}))
    place.driver.errors = [QueryError("HTTP 502", details={"column": "titel"})]
    with pytest.raises(QueryError, match="unknown whether") as caught:
        await place.session.apply(plan)
    assert "before sending it again" in caught.value.hint
    assert "did you mean" not in str(caught.value)


async def test_an_object_is_described_again_to_a_process_that_came_after_its_filter_was_compiled():
    class Ending(MemoryDriver):
        @hookimpl
        async def compile_filter(self, request: Any) -> Any:
            here.alive = False
            return await super().compile_filter(request)

    asked = Asked()
    here = Here(Ending(), asked)
    await here.session().rows("books", filters=[Filter("title", "=", "x")]).page()
    assert asked.hooks() == ["describe_object", "compile_filter", "describe_object", "fetch_page"]


async def test_an_error_about_a_column_that_is_there_keeps_its_hint():
    session = Here(MemoryDriver()).session()
    with pytest.raises(FilterNotSupportedError) as caught:
        await session.rows("books", filters=[Filter("price", "contains", "x")]).page()
    assert "did you mean" not in caught.value.message
    assert "the columns of" not in caught.value.hint
