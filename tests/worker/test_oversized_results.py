"""What exceeds the budget of a page or an answer is cut before it is sent, and the notes say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.cells import (
    CELL_BUDGET,
    ELLIPSIS,
    PAGE_BUDGET,
    ROW_BUDGET,
    TEXT_BUDGET,
    CutBytes,
    CutJson,
    CutText,
    Json,
    is_cut,
)
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Column
from dragoman_api.console import Answer, AnswerKind, ConsoleRequest
from dragoman_api.grid import CellRequest, Page, PageRequest, RowKey
from dragoman_worker import oversized_results
from dragoman_worker.oversized_results import within_budget

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

LONG = """
from dragoman_api import PageRequest

class Driver:
    @hookimpl
    async def fetch_page(self, request):
        columns = [Column(name="id", type="keyword"), Column(name="body", type="text")]
        return Page(columns=columns, cells=[[at, f"{at} " + "x" * 1_300_000] for at in range(request.limit)])

    @hookimpl
    async def execute_console(self, request):
        page = await self.fetch_page(PageRequest(object="o", limit=50))
        text = "[" + "1," * 40_000_000 + "1]"
        last = Answer(kind=AnswerKind.TABLE, status=200, request=request.request, page=page)
        return Answer(kind=AnswerKind.JSON, status=200, request=request.request, text=text, next=last)
"""


BINARY = """
class Driver:
    @hookimpl
    async def fetch_page(self, request):
        columns = [Column(name="blob", type="bytes", kind="binary")]
        return Page(columns=columns, cells=[[b"\\xff" * 1_300_000] for _ in range(request.limit)])

    @hookimpl
    async def fetch_cell(self, request):
        return b"\\xff" * 6_000_000
"""


def page_of(cells: list[list[Any]]) -> Page:
    return Page(columns=[Column(name=f"c{at}", type="text") for at in range(len(cells[0]))], cells=cells)


def size(cell: object) -> int:
    return len(cell) if isinstance(cell, bytes) else len(cell.encode()) if isinstance(cell, str) else 0


@pytest.mark.slow
async def test_a_page_of_130_megabytes_arrives_cut_and_says_so(workshop: Workshop) -> None:
    async with workshop.worker(LONG) as worker:
        page = await worker.call("fetch_page", PageRequest(object="o", limit=100))
        assert len(page.cells) == 100
        for at, (number, body) in enumerate(page.cells):
            assert (number, type(body)) == (at, CutText)
            assert body.startswith(f"{at} xxx")
            assert 200_000 < len(body) <= CELL_BUDGET + len(ELLIPSIS)
        [note] = page.notes
        assert (note.code, note.column) == ("cells-cut", "body")
        assert "100 " in note.reason


@pytest.mark.slow
async def test_a_page_of_130_megabytes_in_bytes_arrives_cut_and_a_cell_of_them_whole(workshop: Workshop) -> None:
    async with workshop.worker(BINARY) as worker:
        page = await worker.call("fetch_page", PageRequest(object="o", limit=100))
        assert [(type(row[0]), row[0][:1], len(row[0]) > 200_000) for row in page.cells] == [
            (CutBytes, b"\xff", True)
        ] * 100
        assert [(note.code, note.column) for note in page.notes] == [("cells-cut", "blob")]
        cell = await worker.call("fetch_cell", CellRequest(key=RowKey("o", "1"), column="blob"))
    assert (type(cell), cell) == (bytes, b"\xff" * 6_000_000)


async def test_an_answer_of_the_console_arrives_cut_and_says_so(workshop: Workshop) -> None:
    async with workshop.worker(LONG) as worker:
        request = ConsoleRequest(request=HttpRequest("GET", "/"), writes=False)
        answer = await worker.call("execute_console", request)
    assert (answer.kind, [note.code for note in answer.notes]) == (AnswerKind.TEXT, ["text-cut"])
    assert len(answer.text) == TEXT_BUDGET + len(ELLIPSIS)
    assert all(is_cut(row[1]) for row in answer.next.page.cells)
    assert [note.column for note in answer.next.page.notes] == ["body"]


def test_a_page_within_the_budget_is_the_same_object() -> None:
    page = page_of([["x" * CELL_BUDGET, "ü" * (CELL_BUDGET // 2), 1], [Json("[1]"), None, 2**70]])
    assert within_budget(page) is page


@pytest.mark.parametrize("letter", ["x", "ü", "€", "😀"])
def test_a_cell_is_cut_at_a_whole_character_and_keeps_its_type(letter: str) -> None:
    text = "a" + letter * CELL_BUDGET
    [[plain, json]] = within_budget(page_of([[text + "!", Json(text + "!")]])).cells
    assert (type(plain), type(json)) == (CutText, CutJson)
    for cell in (plain, json):
        assert cell.endswith(ELLIPSIS)
        assert text.startswith(cell.removesuffix(ELLIPSIS))
        assert CELL_BUDGET - 4 < size(cell) - len(ELLIPSIS) <= CELL_BUDGET


def test_a_long_cell_of_bytes_is_cut_and_marked() -> None:
    [[cell, short]] = within_budget(page_of([[b"\xfe" * (CELL_BUDGET + 1), b"\xfe"]])).cells
    assert (type(cell), cell) == (CutBytes, b"\xfe" * CELL_BUDGET)
    assert is_cut(cell)
    assert type(short) is bytes


def test_a_row_of_many_long_cells_fits_into_one_message() -> None:
    page = within_budget(page_of([["short", *["y" * CELL_BUDGET] * 100]]))
    assert sum(map(size, page.cells[0])) <= ROW_BUDGET + 100 * len(ELLIPSIS)
    assert page.cells[0][0] == "short"
    assert len(page.notes) == 100


def test_many_rows_share_the_budget_and_short_cells_stay_whole() -> None:
    page = within_budget(page_of([["k" * 100, "z" * 200_000] for _ in range(1_000)]))
    assert sum(size(cell) for row in page.cells for cell in row) <= PAGE_BUDGET + 1_000 * len(ELLIPSIS)
    assert {row[0] for row in page.cells} == {"k" * 100}
    assert [note.column for note in page.notes] == ["c1"]


def test_the_answers_of_one_request_share_one_budget() -> None:
    request = HttpRequest("GET", "/")
    answer: Answer | None = None
    for _ in range(20):
        page = page_of([["z" * 200_000] for _ in range(20)])
        answer = Answer(
            kind=AnswerKind.TABLE, status=200, request=request, page=page, text="t" * 4_000_000, next=answer
        )
    cut: Answer | None = within_budget(answer)
    cells = texts = 0
    while cut is not None:
        assert cut.page is not None
        cells += sum(size(cell) for row in cut.page.cells for cell in row)
        texts += len(cut.text)
        cut = cut.next
    assert cells <= PAGE_BUDGET + 400 * len(ELLIPSIS)
    assert texts <= TEXT_BUDGET + 20 * len(ELLIPSIS)


def test_a_lone_surrogate_is_cut_too_and_stays_for_the_wire_to_refuse() -> None:
    [[cell]] = within_budget(page_of([["\ud800" * CELL_BUDGET]])).cells
    assert cell.startswith("\ud800")
    assert is_cut(cell)


@given(st.lists(st.integers(0, 1_000), max_size=30), st.integers(1, 5_000))
def test_the_bound_is_the_greatest_that_fits(sizes: list[int], budget: int) -> None:
    bound = oversized_results.fair_bound(sizes, budget)
    assert sum(min(size, bound) for size in sizes) <= budget
    if bound < max(sizes, default=0):
        assert sum(min(size, bound + 1) for size in sizes) > budget


def chained(texts: list[str], *, failed: str = "") -> Answer:
    answer = None
    for text in reversed(texts):
        answer = Answer(kind=AnswerKind.TEXT, status=200, request=HttpRequest("GET", "/"), text=text, next=answer)
        answer, failed = msgspec.structs.replace(answer, failed=failed), ""
    assert answer is not None
    return answer


@pytest.mark.parametrize(("number", "left"), [(499, 0), (500, 0), (501, 1), (1_700, 1_200)])
def test_answers_beyond_a_number_are_left_out_with_a_note_and_without_hiding_a_failure(number: int, left: int) -> None:
    first = chained([str(at) for at in range(number)], failed="a shard failed")
    shown: list[Answer] = []
    answer: Answer | None = within_budget(first)
    while answer is not None:
        shown.append(answer)
        answer = answer.next
    assert [each.text for each in shown] == [str(at) for at in range(min(number, 500))]
    assert [each.failed for each in shown] == [""] * (len(shown) - 1) + ["a shard failed"]
    assert [note.code for each in shown for note in each.notes] == ["answers-cut"] * bool(left)
    if left:
        assert shown[-1].notes[0].reason.startswith(f"{left:,} more answers are left out")
    else:
        assert within_budget(first) is first
