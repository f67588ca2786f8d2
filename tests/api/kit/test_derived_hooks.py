"""Derived hooks: minimal drivers conform, and what is derived is exact, bounded, or an error."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from api.kit.minimal_drivers import CursorDriver, ExportingDriver, PagingDriver
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import (
    CellRequest,
    Column,
    CountRequest,
    ExportPart,
    ExportRequest,
    Note,
    Page,
    PageRequest,
    QueryError,
    Role,
    RowKey,
    Sort,
)
from dragoman_api.cells import CutText
from dragoman_api.errors import UnsupportedOperationError, WindowExceededError
from dragoman_api.exports import ExportForm
from dragoman_api.kit import derived_hooks, line_parts
from dragoman_api.kit.derived_hooks import WALK, count_from_pages, export_from_pages, page_from_export
from dragoman_api.kit.line_parts import split_lines
from dragoman_api.testing import DriverConformance, Target
from memory_server import MemoryServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DRIVERS = (ExportingDriver, PagingDriver, CursorDriver)


class _Minimal(DriverConformance):
    driver: type[Any]

    @pytest.fixture
    async def target(self) -> Target:
        return Target(driver=self.driver(), object="books", rows=23)


class TestExportingDriver(_Minimal):
    driver = ExportingDriver


class TestPagingDriver(_Minimal):
    driver = PagingDriver


class TestCursorDriver(_Minimal):
    driver = CursorDriver


def server(rows: int) -> MemoryServer:
    books: dict[str, dict[str, object]] = {str(at): {"title": f"Book {at}", "stock": at} for at in range(rows)}
    return MemoryServer(objects={"books": books})


async def exported(driver: Any, **more: Any) -> list[ExportPart]:
    async with aclosing(driver.export_rows(ExportRequest(object="books", form=ExportForm.ROWS, **more))) as parts:
        return [part async for part in parts]


def ids(parts: list[ExportPart]) -> list[str]:
    return [json.loads(line)["id"] for part in parts for line in part.data.splitlines()]


@given(st.integers(0, 40), st.integers(0, 45), st.integers(1, 45), st.booleans())
def test_every_page_of_an_export_holds_its_rows(rows: int, offset: int, limit: int, total: bool) -> None:
    async def run() -> Page:
        request = PageRequest(object="books", offset=offset, limit=limit, total=total)
        return await ExportingDriver(server(rows)).fetch_page(request)

    page = anyio.run(run)
    assert [key.id for key in page.keys] == [str(at) for at in range(rows)][offset : offset + limit]
    assert page.total == (rows if total else None)


@pytest.mark.parametrize("driver", DRIVERS)
@given(rows=st.integers(0, 40), limit=st.integers(1, 45))
def test_counts_and_exports_have_every_row(driver: Any, rows: int, limit: int) -> None:
    async def run() -> tuple[int, list[ExportPart]]:
        made = driver(server(rows))
        if driver is ExportingDriver:
            return await made.count_rows(CountRequest(object="books")), await exported(made)
        count = await count_from_pages(made.fetch_page, CountRequest(object="books"), limit=limit)
        request = ExportRequest(object="books")
        return count, [part async for part in export_from_pages(made.fetch_page, request, limit=limit)]

    count, parts = anyio.run(run)
    assert count == rows == sum(part.rows for part in parts)
    assert ids(parts) == [str(at) for at in range(rows)]


@given(st.integers(1, 40), st.integers(1, 10), st.data())
def test_an_export_goes_on_behind_each_of_its_checkpoints(rows: int, limit: int, data: st.DataObject) -> None:
    async def run() -> None:
        made = CursorDriver(server(rows))

        async def parts(checkpoint: str | None) -> list[ExportPart]:
            request = ExportRequest(object="books", checkpoint=checkpoint)
            return [part async for part in export_from_pages(made.fetch_page, request, limit=limit)]

        whole = await parts(None)
        at = data.draw(st.integers(0, len(whole) - 1))
        if whole[at].checkpoint is not None:
            assert ids([*whole[: at + 1], *await parts(whole[at].checkpoint)]) == ids(whole)

    anyio.run(run)


async def test_a_resumed_export_tells_the_pages_how_many_rows_came_before() -> None:
    made = CursorDriver(server(2_500))
    first = (await exported(made))[0]
    asked: list[PageRequest] = []

    async def fetch(request: PageRequest) -> Page:
        asked.append(request)
        return await made.fetch_page(request)

    request = ExportRequest(object="books", form=ExportForm.ROWS, checkpoint=first.checkpoint)
    assert sum([part.rows async for part in export_from_pages(fetch, request)]) == 1_500
    assert [each.offset for each in asked] == [1_000, 2_000]


async def test_a_checkpoint_of_another_export_is_refused() -> None:
    made = CursorDriver(server(2_500))
    first = (await exported(made))[0]
    for checkpoint in (first.checkpoint, ""):
        with pytest.raises(QueryError) as caught:
            await exported(made, checkpoint=checkpoint, columns=["id"])
        assert caught.value.code == "export-not-resumable"


async def test_an_export_by_offset_has_no_checkpoint_and_says_what_it_is() -> None:
    parts = await exported(PagingDriver(server(2_500)))
    assert {part.checkpoint for part in parts} == {None}
    assert [[note.code for note in part.notes] for part in parts] == [["derived-export"], [], []]
    assert "pages go by offset" in parts[0].notes[0].reason
    by_cursor = await exported(CursorDriver(server(2_500)))
    assert [note.code for part in by_cursor for note in part.notes] == ["derived-export"]
    assert "pages go by offset" not in by_cursor[0].notes[0].reason


async def test_a_cut_cell_is_read_whole_or_the_export_fails() -> None:
    made = PagingDriver()
    made.server.objects["books"]["7"]["tags"] = ["x" * 1_000] * 500
    lines = [json.loads(line) for part in await exported(made) for line in part.data.splitlines()]
    assert next(line for line in lines if line["id"] == "7")["tags"] == ["x" * 1_000] * 500
    with pytest.raises(QueryError, match="tags"):
        _ = [part async for part in export_from_pages(made.fetch_page, ExportRequest(object="books"))]


async def test_a_page_behind_the_bound_is_refused() -> None:
    with pytest.raises(WindowExceededError) as caught:
        await ExportingDriver().fetch_page(PageRequest(object="books", offset=WALK, limit=1))
    assert caught.value.details["window"] == WALK


async def test_a_total_that_would_need_more_rows_is_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_hooks, "WALK", 10)
    page = await ExportingDriver(server(23)).fetch_page(PageRequest(object="books", limit=4))
    assert (page.total, page.total_exact) == (10, False)
    page = await ExportingDriver(server(9)).fetch_page(PageRequest(object="books", limit=4))
    assert (page.total, page.total_exact) == (9, True)


async def test_a_column_that_an_export_lacks_is_an_error_of_its_page() -> None:
    made = ExportingDriver()
    columns = (await made.describe_object("books")).columns
    for names, known in (
        (["title", "nope"], columns),
        (["id"], [type(columns[0])(name="id", type="text", role=Role.KEY)]),
    ):
        with pytest.raises(QueryError):
            await page_from_export(made.export_rows, PageRequest(object="books", columns=names), known)


async def test_a_sort_of_a_derived_page_is_dropped_and_said() -> None:
    page = await ExportingDriver().fetch_page(PageRequest(object="books", sort=[Sort("title")]))
    assert [(note.code, note.column) for note in page.notes] == [("sort-dropped", "title")]


async def test_lines_for_a_bulk_endpoint_are_refused() -> None:
    request = ExportRequest(object="books", form=ExportForm.BULK)
    with pytest.raises(UnsupportedOperationError):
        _ = [part async for part in PagingDriver().export_rows(request)]


async def _partial(request: PageRequest) -> Page:
    return Page(columns=[], cells=[[]], notes=[Note(code="partial-result", reason="a shard failed")])


async def _stuck(request: PageRequest) -> Page:
    return Page(columns=[], cells=[[]], next="a")


async def _bounded(request: PageRequest) -> Page:
    if request.offset >= 2:
        raise WindowExceededError("only two rows")
    return Page(columns=[], cells=[[]] * min(request.limit, 2), total=2, total_exact=False)


@pytest.mark.parametrize("fetch", [_partial, _stuck, _bounded])
async def test_a_count_that_would_be_too_low_is_an_error(fetch: Any) -> None:
    with pytest.raises(QueryError):
        await count_from_pages(fetch, CountRequest(object="books"))


def circling(seen: list[str | None], *, first: int, length: int) -> Any:
    """Return a hook of pages whose cursors, after some, go round in a circle."""

    async def fetch(request: PageRequest) -> Page:
        seen.append(request.cursor)
        assert len(seen) < 1_000, "the walk goes on forever"
        at = int(request.cursor or 0) + 1
        return Page(columns=[], cells=[[]], next=str(at if at < first + length else first))

    return fetch


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([4, 7, 100]))
def test_cursors_that_go_round_are_an_error_and_few_are_remembered(first: int, length: int, most: int) -> None:
    async def run() -> None:
        seen: list[str | None] = []
        with pytest.raises(QueryError, match="repeated a cursor"):
            await count_from_pages(circling(seen, first=first, length=length), CountRequest(object="books"))
        if most > first + length:
            assert len(seen) == len(set(seen)), "rows repeat"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derived_hooks, "_SEEN", most)
        anyio.run(run)


async def test_an_export_of_cursors_a_b_a_b_ends_with_an_error_and_doubles_no_row() -> None:
    seen: list[str | None] = []
    made = []
    with pytest.raises(QueryError, match="repeated a cursor"):
        made = [
            part async for part in export_from_pages(circling(seen, first=1, length=2), ExportRequest(object="books"))
        ]
    assert seen == [None, "1", "2"]
    assert not made


def test_of_many_cursors_few_digests_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_hooks, "_SEEN", 50)
    seen = derived_hooks._SeenCursors()
    assert all(seen.add(str(at)) for at in range(5_000))
    assert 20 < len(seen._digests) <= 50


@pytest.mark.parametrize(
    ("data", "rows"),
    [(b'{"id":"1"}\n', 2), (b'{"id":"1"}\n{"id":"2"}\n', 1), (b'{"id":"1"}', 1), (b'{"id":"1"}\n{}', 1), (b"", 1)],
)
async def test_a_part_with_other_lines_than_rows_is_an_error_of_pages_and_counts(data: bytes, rows: int) -> None:
    async def export_rows(request: ExportRequest) -> Any:
        yield ExportPart(data=data, rows=rows)

    columns = (await ExportingDriver().describe_object("books")).columns
    for offset in (0, 10):
        with pytest.raises(QueryError, match="whole lines"):
            await page_from_export(export_rows, PageRequest(object="books", offset=offset, columns=["id"]), columns)
    with pytest.raises(QueryError, match="whole lines"):
        await derived_hooks.count_from_export(export_rows, CountRequest(object="books"))


async def test_an_exact_total_is_the_count_and_one_page_is_enough() -> None:
    asked: list[PageRequest] = []

    async def fetch(request: PageRequest) -> Page:
        asked.append(request)
        return Page(columns=[], cells=[[]], total=1_000_000)

    assert await count_from_pages(fetch, CountRequest(object="books")) == 1_000_000
    assert len(asked) == 1


def test_a_derived_request_reads_the_same_rows() -> None:
    fields = [{*each.__struct_fields__} for each in (PageRequest, CountRequest, ExportRequest)]
    assert {*derived_hooks.SAME_ROWS} == set.intersection(*fields)


COLUMNS = [Column(name="a", type="t", path=("a",)), *(
    Column(name=name, type="t", path=(name,), role=Role.KEY) for name in ("k", "l")
)]  # fmt: skip


async def test_an_export_behind_a_page_is_asked_for_its_columns_and_those_of_the_key() -> None:
    asked: list[ExportRequest] = []

    async def export(request: ExportRequest) -> AsyncIterator[ExportPart]:
        asked.append(request)
        yield ExportPart(data=b'{"a":0,"k":"x","l":1}\n{"a":2,"k":"y","l":2}\n', rows=2, total=50)
        yield ExportPart(data=b'{"a":4,"k":"z","l":3}\n', rows=1, total=50)

    request = PageRequest(object="books", columns=["a"], limit=2)
    page = await page_from_export(export, request, COLUMNS)
    assert asked[0].columns == ["a", "k", "l"]
    assert [key.id for key in page.keys] == [["x", 1], ["y", 2]]
    assert (page.cells, page.total, page.total_exact) == ([[0], [2]], 50, True)
    unbounded = msgspec.structs.replace(request, columns=None, limit=9)
    assert (await page_from_export(export, unbounded, COLUMNS)).total == 3
    assert asked[1].columns is None


@pytest.mark.parametrize(("offset", "fits"), [(WALK - 1, True), (WALK, False)])
async def test_a_page_ends_with_the_last_row_of_a_walk_at_most(offset: int, fits: bool) -> None:
    request = PageRequest(object="books", offset=offset, limit=1)
    if fits:
        assert (await ExportingDriver(server(3)).fetch_page(request)).cells == []
    else:
        with pytest.raises(WindowExceededError):
            await ExportingDriver(server(3)).fetch_page(request)


async def test_an_export_passes_on_what_its_request_says_and_no_lower_bound() -> None:
    asked: list[PageRequest] = []
    note = Note(code="sort-dropped", reason="no")

    async def fetch(request: PageRequest) -> Page:
        asked.append(request)
        last = request.cursor == "b"
        return Page(
            columns=COLUMNS[:1], cells=[[len(asked)]], total=None if asked[1:] else 7, total_exact=False, notes=[note],
            next=None if last else "b" if request.cursor else "a",
        )  # fmt: skip

    request = ExportRequest(object="books", columns=["a"], tenant="t", revision="r", form=ExportForm.ROWS)
    parts = [part async for part in export_from_pages(fetch, request, limit=5)]
    first = PageRequest(object="books", columns=["a"], tenant="t", revision="r", limit=5)
    later = [
        msgspec.structs.replace(first, offset=at, cursor=cursor, total=False) for at, cursor in ((1, "a"), (2, "b"))
    ]
    assert asked == [first, *later]
    assert [part.total for part in parts] == [None] * 3
    assert [[each.code for each in part.notes] for part in parts] == [["derived-export", "sort-dropped"], [], []]
    rest = msgspec.structs.replace(request, checkpoint=parts[0].checkpoint)
    parts = [part async for part in export_from_pages(fetch, rest, limit=5)]
    assert [[each.code for each in part.notes] for part in parts] == [["sort-dropped"], []]


async def test_only_the_last_part_of_a_page_has_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_parts, "split_lines", lambda data: split_lines(data, most=1))
    made = CursorDriver(server(5))
    parts = [part async for part in export_from_pages(made.fetch_page, ExportRequest(object="books"), limit=2)]
    assert [part.rows for part in parts] == [1] * 5
    assert [part.checkpoint is not None for part in parts] == [False, True, False, True, False]


async def test_a_cut_cell_is_read_at_the_revision_of_the_export_and_needs_a_key() -> None:
    keys = [RowKey("books", "1"), RowKey("books", "2")]
    page = Page(columns=COLUMNS[:1], cells=[["whole"], [CutText("be...")]], keys=keys, total=2)
    asked: list[CellRequest] = []

    async def fetch(_: PageRequest) -> Page:
        return page

    async def cell(request: CellRequest) -> str:
        asked.append(request)
        return "beginning and end"

    request = ExportRequest(object="books", revision="r", form=ExportForm.ROWS)
    [part] = [part async for part in export_from_pages(fetch, request, fetch_cell=cell)]
    assert part.data == b'{"a":"whole"}\n{"a":"beginning and end"}\n'
    assert asked == [CellRequest(key=keys[1], column="a", revision="r")]
    page = msgspec.structs.replace(page, keys=[])
    with pytest.raises(QueryError, match="cannot read it whole"):
        [part async for part in export_from_pages(fetch, request, fetch_cell=cell)]
