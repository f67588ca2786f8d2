"""Budgets of pages and answers: anything beyond one is cut before it leaves the driver's process, with a note."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
from msgspec.structs import replace

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
)
from dragoman_api.columns import Note
from dragoman_api.console import Answer, AnswerKind
from dragoman_api.grid import Page
from dragoman_api.summaries import SUMMARY_TEXT, ColumnSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman_api.cells import Cell

T = TypeVar("T")

MAX_ANSWERS = 500
"""Answers to one console request at most: each is nested in the one before it, and no end of the wire nests deeper."""

_encoder = msgspec.msgpack.Encoder(enc_hook=str)
_CONTINUATION = 0xC0, 0x80  # mask and value of a byte that continues a character in UTF-8


def within_budget(result: T) -> T:
    """Return a hook's result without what exceeds `MAX_ANSWERS` and the budgets of `dragoman_api.cells`."""
    if isinstance(result, Page):
        return cast("T", _pages_within([result])[0])
    if isinstance(result, Answer):
        return cast("T", _answers_within(result))
    if isinstance(result, ColumnSummary):
        return cast("T", _summary_within(result))
    return result


def fair_bound(sizes: Sequence[int], budget: int) -> int:
    """Return the greatest size that each element may have so that all together fit into a budget.

    Short elements stay whole: what they leave is shared by the longer ones.
    """
    if sum(sizes) <= budget:
        return max(sizes, default=0)
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > budget:
            break
        budget, left = budget - size, left - 1
    return budget // left


# pages ----------------------------------------------------------------------------------------------------------------


def _pages_within(pages: list[Page]) -> list[Page]:
    if _fit(pages):
        return pages
    measured = [[list(map(_size, row)) for row in page.cells] for page in pages]
    sizes = [size for page in measured for row in page for size in row]
    longest = min(CELL_BUDGET, max(sizes, default=0))
    if sum(sizes) > PAGE_BUDGET:
        longest = min(longest, fair_bound([min(size, longest) for size in sizes], PAGE_BUDGET))
    return [_cut_page(page, rows, longest) for page, rows in zip(pages, measured, strict=True)]


def _fit(pages: list[Page]) -> bool:
    """Return whether all cells certainly fit, by the lengths of whole pages and rows: their encoding is the longer one.

    False means that each cell has to be measured.
    """
    cells = [page.cells for page in pages]
    with suppress(ValueError, OverflowError, RecursionError):  # half a character, an integer beyond 64 bits
        if (length := len(_encoder.encode(cells))) <= CELL_BUDGET:
            return True
        return length <= PAGE_BUDGET and all(len(_encoder.encode(row)) <= CELL_BUDGET for rows in cells for row in rows)
    return False


def _cut_page(page: Page, sizes: list[list[int]], longest: int) -> Page:
    cells = list(page.cells)
    counts: dict[int, int] = {}
    for at, row in enumerate(sizes):
        bound = longest
        if sum(row) > ROW_BUDGET:
            bound = min(bound, fair_bound([min(size, bound) for size in row], ROW_BUDGET))
        if max(row, default=0) > bound:
            cells[at] = [_cut(cell, bound) if size > bound else cell for cell, size in zip(cells[at], row, strict=True)]
            for column, size in enumerate(row):
                if size > bound:
                    counts[column] = counts.get(column, 0) + 1
    if not counts:
        return page
    return replace(page, cells=cells, notes=[*page.notes, *_cell_notes(page, counts)])


def _cell_notes(page: Page, counts: dict[int, int]) -> Iterator[Note]:
    for at, count in sorted(counts.items()):
        if at >= len(page.columns):  # refused later, with the row's shape as the reason
            continue
        name = page.columns[at].name
        which = "1 cell shows" if count == 1 else f"{count:,} cells show"
        reason = f"{which} only the beginning of the value, because the page would be too large; read the cell alone"
        yield Note(code="cells-cut", column=name, reason=reason)


def _size(cell: Cell) -> int:
    """Return the size of a text or of bytes, in bytes; 0 for all other values, which are short."""
    if isinstance(cell, bytes):
        return len(cell)
    if not isinstance(cell, str):
        return 0
    return len(cell) if cell.isascii() else len(cell.encode(errors="surrogatepass"))


def _cut(cell: Cell, size: int) -> Cell:
    if isinstance(cell, bytes):
        return CutBytes(cell[:size])
    assert isinstance(cell, str)
    kind = CutJson if isinstance(cell, Json) else CutText
    return kind(_beginning(cell, size) + ELLIPSIS)


def _beginning(text: str, size: int) -> str:
    """Return the whole characters at the beginning of a text that fit into a number of bytes."""
    if text.isascii():
        return text[:size]
    data = text[:size].encode(errors="surrogatepass")
    end = min(size, len(data))
    mask, value = _CONTINUATION
    while end < len(data) and data[end] & mask == value:
        end -= 1
    return data[:end].decode(errors="surrogatepass")


def _summary_within(summary: ColumnSummary) -> ColumnSummary:
    def short(cell: Cell) -> Cell:
        return _cut(cell, SUMMARY_TEXT) if _size(cell) > SUMMARY_TEXT else cell

    values = [replace(count, value=short(count.value)) for count in summary.values]
    return replace(summary, values=values, minimum=short(summary.minimum), maximum=short(summary.maximum))


# answers --------------------------------------------------------------------------------------------------------------


def _answers_within(first: Answer) -> Answer:
    answers = [first]
    while (following := answers[-1].next) is not None:
        answers.append(following)
    answer_count = len(answers)
    if answer_count > MAX_ANSWERS:
        answers[MAX_ANSWERS - 1 :] = [_last_shown(answers)]
    pages = iter(_pages_within([answer.page for answer in answers if answer.page is not None]))
    sizes = [_size(answer.text) for answer in answers]
    longest = fair_bound(sizes, TEXT_BUDGET)
    cut_answers: list[Answer] = []
    for answer, size in zip(answers, sizes, strict=True):
        page = None if answer.page is None else next(pages)
        cut = answer if size <= longest else _cut_text(answer, longest)
        cut_answers.append(cut if page is answer.page else replace(cut, page=page))
    if answer_count <= MAX_ANSWERS and all(new is old for new, old in zip(cut_answers, answers, strict=True)):
        return first
    answer = replace(cut_answers.pop(), next=None)
    while cut_answers:
        answer = replace(cut_answers.pop(), next=answer)
    return answer


def _last_shown(answers: list[Answer]) -> Answer:
    """Return the last answer that is shown, with a note, and with the failure of one that is left out."""
    last, left = answers[MAX_ANSWERS - 1], answers[MAX_ANSWERS:]
    reason = f"{len(left):,} more answers are left out, {MAX_ANSWERS:,} are shown at most; ask for fewer at a time"
    failed = last.failed or next((answer.failed for answer in left if answer.failed), "")
    return replace(last, failed=failed, notes=[*last.notes, Note(code="answers-cut", reason=reason)])


def _cut_text(answer: Answer, longest: int) -> Answer:
    text = _beginning(answer.text, longest) + ELLIPSIS
    reason = f"the text shows the first {longest:,} bytes of the answer; ask for less at a time"
    kind = AnswerKind.TEXT if answer.kind is AnswerKind.JSON else answer.kind  # its beginning is not JSON
    return replace(answer, kind=kind, text=text, notes=[*answer.notes, Note(code="text-cut", reason=reason)])
