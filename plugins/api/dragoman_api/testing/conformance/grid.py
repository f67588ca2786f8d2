"""Promises about pages, cells and summaries of columns."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import partial
from itertools import dropwhile, pairwise
from math import isnan
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dragoman_api.cells import ELLIPSIS, MISSING, CutBytes, CutJson, CutText, Json, is_cut
from dragoman_api.columns import ColumnKind, Operator, Written
from dragoman_api.console import MAX_SUGGESTIONS, SUGGESTION_TEXT, Completion, CompletionRequest, SuggestionKind
from dragoman_api.errors import (
    QueryError,
    RowNotFoundError,
    UnsupportedOperationError,
    WindowExceededError,
)
from dragoman_api.filters import CompiledFilter, Filter
from dragoman_api.grid import CellColumns, CellRequest, CountRequest, PageRequest, PreviewRequest, Sort
from dragoman_api.json_text import decode
from dragoman_api.kit.row_evaluation import TextOrder, ValueKind, sort_key
from dragoman_api.summaries import ColumnSummary, Figure, SummaryRequest
from dragoman_api.testing.target import SAMPLE, identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.columns import Column
    from dragoman_api.grid import RowId
    from dragoman_api.testing.target import Target

_CELLS = {type(None), bool, int, float, str, bytes, Decimal, Json, CutJson, CutText, CutBytes}
_TEXTS = {type(None), str, type(MISSING)}
_SCALARS = (ColumnKind.TEXT, ColumnKind.BOOLEAN)


class GridConformance:
    """Promises to a grid."""

    async def test_a_page_has_every_described_column(self, target: Target) -> None:
        """A page without chosen columns shows all columns that `describe_object` named, in that order."""
        target.needs("describe_object", "fetch_page")
        described = await target.describe()
        page = await target.page(limit=5)
        page_names = [column.name for column in page.columns]
        assert [name for name in page_names if name in {column.name for column in described.columns}] == [
            column.name for column in described.columns
        ]

    async def test_cells_match_columns_and_keys_match_rows(self, target: Target) -> None:
        """Every row has one cell per column, of a type that travels, one key, and its id in the key columns."""
        target.needs("describe_object", "fetch_page")
        await target.describe()
        page = await target.page(limit=min(target.rows, SAMPLE))
        assert len(page.keys) == len(page.cells) == min(target.rows, SAMPLE)
        keys = [at for at, column in enumerate(page.columns) if column.is_key]
        for cells, key in zip(page.cells, page.keys, strict=True):
            assert len(cells) == len(page.columns)
            foreign = {type(cell) for cell in cells if cell is not MISSING} - _CELLS
            assert not foreign, f"cells of types that do not travel: {foreign}"
            assert target.tells_missing or MISSING not in cells, "the target does not say that the driver tells MISSING"
            parts = [cells[at] for at in keys]
            assert parts in ([], key.id if len(keys) > 1 else [key.id]), (
                f"the key of a row is {key.id!r}, and its key columns hold {parts}: they are of one type and spelling"
            )

    async def test_chosen_columns_come_in_the_order_asked_for(self, target: Target) -> None:
        """`PageRequest.columns` selects these columns, with the cells of the whole page."""
        target.needs("describe_object", "fetch_page")
        names = [column.name for column in (await target.describe()).columns][-2:][::-1]
        whole, chosen = await target.page(limit=7), await target.page(limit=7, columns=names)
        assert [column.name for column in chosen.columns] == names
        assert [row.to_dict() for row in chosen.rows] == [{name: row[name] for name in names} for row in whole.rows]

    async def test_a_preview_names_the_requests_that_a_read_sends_first(self, target: Target) -> None:
        """The requests of `preview_read` are those that `fetch_page` and `count_rows` send, byte for byte."""
        target.needs("describe_object", "fetch_page", "count_rows", "preview_read")
        await target.describe()
        page = PageRequest(object=target.object, limit=3)
        count = CountRequest(object=target.object)
        for preview_request, read, request in (
            (PreviewRequest(page=page), target.driver.fetch_page, page),
            (PreviewRequest(count=count), target.driver.count_rows, count),
        ):
            await read(request)  # what a driver learns once is known from here on
            preview = await target.driver.preview_read(preview_request)
            mark = target.sent()
            await read(request)
            sent = target.since(mark)
            assert preview, "a read sends something"
            assert target.log is None or not [previewed for previewed in preview if previewed not in sent], (
                preview_request
            )

    async def test_marked_columns_hold_what_their_marks_say(self, target: Target) -> None:
        """A column of `CellColumns` that is marked as JSON holds texts, and every whole `Json` holds JSON."""
        target.needs("describe_object", "fetch_page")
        await target.describe()
        page = await target.page(limit=min(target.rows, SAMPLE))
        if isinstance(page.cells, CellColumns):
            kinds = [{*map(type, column)} for column in page.cells.columns]
            assert page.cells.json <= {*range(len(kinds))}, "a mark of a column that is not there"
            for at in page.cells.json:
                assert kinds[at] <= _TEXTS, f"{page.columns[at].name} holds more than texts"
        for row in page.cells:
            for column, cell in zip(page.columns, row, strict=True):
                if isinstance(cell, Json) and not is_cut(cell):
                    _check_json(column.name, cell)

    async def test_pages_tile_the_rows(self, target: Target) -> None:
        """Whatever the page size, walking by offset, or else by cursor, returns every row once, in one order."""
        target.needs("describe_object", "fetch_page")
        await target.describe()
        walks = []
        for limit in (target.rows + 1, target.rows // 2 + 1, target.rows // 7 + 1):
            rows = await target.all_rows(limit=min(limit, 10_000))
            walks.append([identity(row.key) for row in rows])
            assert len(walks[-1]) == len(set(walks[-1])) == target.rows, f"pages of {limit}"
        assert walks[0] == walks[1] == walks[2]

    async def test_cursors_walk_the_same_rows(self, target: Target) -> None:
        """If pages carry `next`, following it returns every row exactly once and ends."""
        target.needs("describe_object", "fetch_page")
        await target.describe()
        page = await target.page(limit=target.rows // 5 + 1)
        if (cursor := page.next) is None:
            pytest.skip("pages go by offset only")
        seen = [identity(key) for key in page.keys]
        while cursor is not None and len(seen) <= target.rows:
            page = await target.page(limit=target.rows // 5 + 1, offset=len(seen), cursor=cursor)
            seen, cursor = seen + [identity(key) for key in page.keys], page.next
        assert len(seen) == len(set(seen)) == target.rows

    async def test_a_text_that_is_no_cursor_is_refused(self, target: Target) -> None:
        """A cursor that no page of this query gave is an error, never the first page again."""
        target.needs("describe_object", "fetch_page")
        await target.describe()
        next_cursor = (await target.page(limit=target.rows // 5 + 1)).next
        for cursor in ("abc", *([next_cursor[:-1], next_cursor + next_cursor] if next_cursor else [])):
            with pytest.raises(QueryError):
                await target.page(limit=5, cursor=cursor)

    async def test_a_page_behind_the_last_row_is_empty(self, target: Target) -> None:
        """An offset beyond the last row returns no rows, but the columns, and where the page is."""
        target.needs("describe_object", "fetch_page")
        await target.describe()
        try:
            page = await target.page(offset=target.rows, limit=10)
        except WindowExceededError:
            assert (await target.page(limit=1)).next is not None, "no page can be reached but the first"
            pytest.skip("pages are reached by cursor only")
        assert (page.cells, page.keys, page.offset) == ([], [], target.rows)
        assert page.columns

    async def test_the_total_of_a_page_and_the_count_are_the_rows(self, target: Target) -> None:
        """A total is the number of rows, or says that it is a lower bound; `count_rows` is exact."""
        target.needs("describe_object", "fetch_page")
        await target.describe()
        page = await target.page(limit=1)
        if page.total is not None:
            fits = page.total == target.rows if page.total_exact else page.total <= target.rows
            assert fits, f"the page has a total of {page.total:,}, and the object {target.rows:,} rows"
        count = await target.count()
        assert count == target.rows, f"count_rows returns {count:,}, and the object has {target.rows:,} rows"

    async def test_a_sort_orders_the_rows(self, target: Target) -> None:
        """A sort orders numbers by value, texts by code points, reverses a column when it descends, and loses no row.

        Infinities lie beyond all numbers. NaN has no order: it comes last either way, as nulls may, too. A column whose
        parts no filter finds, such as an address, may have an order of its own; any other order of texts has a note
        ``sort-approximate`` that says how it differs.
        """
        target.needs("describe_object", "fetch_page")
        for column in (await target.describe()).columns:
            if not column.sortable:
                continue
            walks = []
            for descending in (False, True):
                sort = [Sort(column.name, descending=descending)]
                page = await target.page(sort=sort, limit=min(target.rows, 10_000))
                assert len({identity(key) for key in page.keys}) == target.rows, column.name
                assert not [note for note in page.notes if note.code == "sort-dropped"], column.name
                cells = [row[column.name] for row in page.rows]
                ranked = [cell for cell in cells if not _is_nan(cell)]
                behind = dropwhile(lambda cell: not _is_nan(cell), cells)
                assert all(cell is None or _is_nan(cell) for cell in behind), f"{column.name}: NaN is not last"
                walks.append([cell for cell in ranked if cell is not None and not isinstance(cell, Json)])
                if not [note for note in page.notes if note.code == "sort-approximate" and note.column == column.name]:
                    _in_order(column, walks[-1], descending=descending)
            assert _runs(walks[0]) == _runs(walks[1])[::-1] or any(isinstance(c, Json) for c in cells), column.name

    async def test_a_sort_that_has_no_effect_is_dropped_and_said(self, target: Target) -> None:
        """Sorting on a column that does not sort keeps the order and leaves a note ``sort-dropped`` that names it."""
        target.needs("describe_object", "fetch_page")
        plain = await target.page(limit=10)
        for column in (await target.describe()).columns:
            if column.sortable:
                continue
            page = await target.page(sort=[Sort(column.name, descending=True)], limit=10)
            assert [note.column for note in page.notes if note.code == "sort-dropped"] == [column.name]
            assert page.keys == plain.keys, column.name

    async def test_a_sort_by_a_column_that_does_not_exist_is_refused(self, target: Target) -> None:
        """A misspelt column in a sort is an error that names it in its detail ``column``, never another order."""
        target.needs("describe_object", "fetch_page")
        names = [column.name for column in (await target.describe()).columns]
        with pytest.raises(QueryError) as caught:
            await target.page(sort=[Sort(f"{names[0]}_no_such_column")], limit=5)
        assert caught.value.details.get("column") == f"{names[0]}_no_such_column"

    async def test_a_cell_alone_is_the_cell_of_the_page(self, target: Target) -> None:
        """`fetch_cell` returns what the page shows; a cut cell is the beginning of the whole value, then ``...``.

        A column that is computed for the page, such as a score, may have no value elsewhere: no change
        may name it, it takes no filter, does not sort and is not exported.
        """
        target.needs("describe_object", "fetch_page", "fetch_cell")
        computed = {
            column.name
            for column in (await target.describe()).columns
            if column.written is Written.NEVER
            and not (column.is_key or column.operators or column.sortable or column.path)
        }
        page = await target.page(limit=min(target.rows, SAMPLE))
        chosen = [(row, name) for row in page.rows for name in row if row.is_cut(name)][:3]
        chosen += [(row, name) for row in page.rows for name in row if row[name] is None][:9]
        chosen += [(page.rows[0], name) for name in page.rows[0] if not page.rows[0].is_cut(name)]
        for row, name in chosen:
            whole: Cell = await target.driver.fetch_cell(CellRequest(key=row.key, column=name))
            page_cell: Cell = MISSING if row.is_missing(name) else row[name]
            if isinstance(page_cell, CutJson | CutText):
                assert not is_cut(whole), f"{name}: the whole value is cut too"
                assert isinstance(whole, Json if isinstance(page_cell, CutJson) else str)
                assert page_cell.endswith(ELLIPSIS)
                assert len(whole) > len(page_cell) - len(ELLIPSIS)
                assert whole.startswith(page_cell.removesuffix(ELLIPSIS)), (
                    f"{name}: the cut cell is not the beginning of the value"
                )
            elif isinstance(page_cell, CutBytes):
                assert type(whole) is bytes, name
                assert whole.startswith(page_cell), f"{name}: the cut cell is not the beginning of the value"
                assert len(whole) > len(page_cell), name
            elif name not in computed or whole is not None:
                assert (type(whole), whole) == (type(page_cell), page_cell), name

    async def test_a_cell_of_a_missing_row_is_told(self, target: Target) -> None:
        """`fetch_cell` of a row that is gone raises RowNotFoundError."""
        target.needs("describe_object", "fetch_page", "fetch_cell")
        column = (await target.describe()).columns[-1].name
        key = (await target.page(limit=1)).keys[0]
        gone = msgspec.structs.replace(key, id=missing_id(key.id))
        with pytest.raises(RowNotFoundError):
            await target.driver.fetch_cell(CellRequest(key=gone, column=column))


def missing_id(id: RowId) -> RowId:  # noqa: A002 - the contract's word
    """Return an id of the same form that no row has."""
    if isinstance(id, list):
        return [*id[:-1], id[-1] - 1 if isinstance(id[-1], int) else missing_id(id[-1])]  # type: ignore[list-item]
    return id + b"\xff missing" if isinstance(id, bytes) else "00000000-0000-4000-8000-000000000000"


def _check_json(name: str, cell: Json) -> None:
    try:
        decode(cell, msgspec.Raw)
    except ValueError as error:
        pytest.fail(f"{name}: a cell marked as JSON is none: {error}")


def _is_nan(cell: Cell) -> bool:
    return isinstance(cell, float) and isnan(cell)


def _in_order(column: Column, cells: Sequence[Cell], *, descending: bool) -> None:
    name, kind = column.name, column.kind
    numbers = [cell for cell in cells if isinstance(cell, int | float | Decimal)]
    if (kind.numeric or kind is ColumnKind.BOOLEAN) and len(numbers) == len(cells):
        assert numbers == sorted(numbers, reverse=descending), f"{name} is not in order"
    if Operator.STARTS in column.operators and all(type(cell) is str for cell in cells):
        orders = [
            sorted(cells, key=partial(sort_key, kind=ValueKind.TEXT, order=order), reverse=descending)
            for order in TextOrder
        ]
        assert [*cells] in orders, f"{name} is not in order: texts are ordered by code points, whatever their case"


def _runs(cells: Sequence[Cell]) -> list[Cell]:
    """Drop repetitions: rows with equal values may come in any order."""
    return [cell for at, cell in enumerate(cells) if at == 0 or cell != cells[at - 1]]


class SummaryConformance:
    """Promises about a column at a glance, and about completion while a person types."""

    async def test_a_summary_counts_the_rows_that_pages_show(self, target: Target) -> None:
        """A figure that is not named in `approximate` is the figure of the cells of all rows.

        A column that cannot be summarized raises UnsupportedOperationError with a reason.
        """
        target.needs("describe_object", "fetch_page", "summarize_column")
        columns = (await target.describe()).columns
        rows = await target.all_rows()
        summarized = 0
        for column in columns:
            summary = await _summary(target, column)
            if summary is not None:
                summarized += 1
                _check(summary, column, [row[column.name] for row in rows])
        assert summarized, "no column can be summarized"

    async def test_a_summary_goes_by_its_filter(self, target: Target) -> None:
        """A summary under a filter is of the rows that the filter selects."""
        target.needs("describe_object", "compile_filter", "fetch_page", "summarize_column")
        for column in (await target.describe()).columns:
            if Operator.NOT_NULL not in column.operators:
                continue
            where = await target.compile(Filter(column.name, Operator.NOT_NULL))
            if (summary := await _summary(target, column, where)) is not None:
                assert summary.rows == await target.count(where=where), column.name
                if Figure.MISSING not in summary.approximate and summary.missing is not None:
                    assert summary.missing == 0, column.name

    async def test_a_summary_has_no_more_than_was_asked_for(self, target: Target) -> None:
        """`values` and `buckets` bound the lists of a summary, and 0 means none; an unknown column is a QueryError."""
        target.needs("describe_object", "summarize_column")
        for column in (await target.describe()).columns:
            for limit in (0, 1):
                if (summary := await _summary(target, column, values=limit, buckets=limit)) is not None:
                    assert max(len(summary.values), len(summary.buckets)) <= limit, column.name
        with pytest.raises(QueryError):
            await target.driver.summarize_column(SummaryRequest(object=target.object, column="no such column"))

    async def test_suggestions_replace_characters_of_the_text(self, target: Target) -> None:
        """At any place of any text, suggestions are bounded, and replace characters of the text around the place."""
        target.needs("complete_console")
        target.given("reads")
        for text in ["", *target.reads, *target.writes, *(text for text, _, _ in target.broken)]:
            for position in {*range(0, len(text), 7), len(text)}:
                completion = await _complete(target, text, position)
                assert len(completion.suggestions) <= MAX_SUGGESTIONS
                for suggestion in completion.suggestions:
                    assert 0 <= suggestion.start <= position <= suggestion.end <= len(text), (text, position)
                    assert 0 < len(suggestion.text) <= SUGGESTION_TEXT
                    assert not {*suggestion.text} & {*"\r\n"}, suggestion.text
            for position in (-1, len(text) + 1):
                with pytest.raises(QueryError):
                    await _complete(target, text, position)

    async def test_the_name_of_the_object_is_completed_and_read_once(self, target: Target) -> None:
        """The beginning of an object's name in a reading request is completed; the second time, nothing is sent."""
        target.needs("complete_console")
        target.given("reads")
        texts = [text for text in target.reads if target.object in text]
        if not texts:
            pytest.skip("no reading request names the object")
        text = texts[0]
        at = text.index(target.object)
        for begun in (text[: at + 1], text[: at + len(target.object)]):
            await _complete(target, begun, len(begun))
            mark = target.sent()
            completion = await _complete(target, begun, len(begun))
            assert target.since(mark) == []
            completed = {
                begun[: suggestion.start] + suggestion.text + begun[suggestion.end :]
                for suggestion in completion.suggestions
                if suggestion.kind is SuggestionKind.OBJECT
            }
            assert text[: at + len(target.object)] in completed or completion.more, begun


async def _summary(
    target: Target, column: Column, where: CompiledFilter | None = None, **options: Any
) -> ColumnSummary | None:
    request = SummaryRequest(object=target.object, column=column.name, filter=where, **options)
    try:
        summary: ColumnSummary = await target.driver.summarize_column(request)
    except UnsupportedOperationError as error:
        refusal = error
    else:
        assert summary.column.name == column.name
        return summary
    assert refusal.message.strip(), f"{column.name}: a refusal says why"
    return None


async def _complete(target: Target, text: str, position: int) -> Completion:
    completion: Completion = await target.driver.complete_console(CompletionRequest(text=text, position=position))
    return completion


def _check(summary: ColumnSummary, column: Column, cells: list[Cell]) -> None:
    name, exact = column.name, {*Figure} - {*summary.approximate, *summary.absent}
    if Figure.ROWS in exact:
        assert summary.rows == len(cells), name
    for bucket, other in pairwise(summary.buckets):
        assert bucket.upper == other.lower, f"{name}: a gap between buckets"
    counts = [value_count.rows for value_count in summary.values]
    assert min([*counts, *(bucket.rows for bucket in summary.buckets)], default=0) >= 0, name
    assert counts == sorted(counts, reverse=True) or Figure.VALUES not in exact, f"{name}: not the most frequent first"
    if any(isinstance(cell, Json) or is_cut(cell) for cell in cells):
        return  # an array is not a cell of its elements
    frequencies: Counter[Any] = Counter(cell for cell in cells if cell is not None)
    if Figure.MISSING in exact and summary.missing is not None:
        assert summary.missing == len(cells) - frequencies.total(), name
    if Figure.DISTINCT in exact and summary.distinct is not None:
        assert summary.distinct == len(frequencies), name
    if Figure.VALUES in exact and (column.kind in _SCALARS or column.kind.numeric):
        assert {value_count.value: value_count.rows for value_count in summary.values}.items() <= frequencies.items(), (
            name
        )
        assert counts == [number for _, number in frequencies.most_common(len(counts))], name
    numbers = [cell for cell in frequencies if isinstance(cell, int | float | Decimal)]
    if column.kind.numeric and numbers and len(numbers) == len(frequencies):
        _check_numbers(summary, name, exact, frequencies)


def _check_numbers(summary: ColumnSummary, name: str, exact: set[Figure], frequencies: Counter[Any]) -> None:
    if Figure.MINIMUM in exact:
        assert summary.minimum == min(frequencies), name
    if Figure.MAXIMUM in exact:
        assert summary.maximum == max(frequencies), name
    if Figure.BUCKETS in exact:
        for bucket in summary.buckets:
            low, high = bucket.lower, bucket.upper
            assert isinstance(low, int | float | Decimal)
            assert isinstance(high, int | float | Decimal)
            assert low < high, name
            assert bucket.rows == sum(n for cell, n in frequencies.items() if low <= cell < high), name
        assert sum(bucket.rows for bucket in summary.buckets) == frequencies.total(), name
