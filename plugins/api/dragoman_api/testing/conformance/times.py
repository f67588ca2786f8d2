"""Promises about ranges of time, for a driver whose objects have a time column."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from dragoman_api.errors import QueryError
from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.filters import TimeRange
from dragoman_api.grid import CountRequest
from dragoman_api.kit.filter_meaning import within
from dragoman_api.kit.operands import instant
from dragoman_api.testing.conformance.filters import announced
from dragoman_api.testing.target import hooks_of, identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.cells import Cell
    from dragoman_api.grid import Row
    from dragoman_api.testing.target import Target


class TimeConformance:
    """Promises to a person who reads a span of time; tests of an object without a time column are skipped."""

    async def test_the_time_column_is_described_and_holds_instants(self, target: Target) -> None:
        """`Description.time` names a column of the object, whose cells are null or RFC 3339 with a zone."""
        name, rows = await _timed(target)
        assert name in {column.name for column in (await target.describe()).columns}
        for cell in [row[name] for row in rows if row[name] is not None]:
            assert _is_instant(cell), cell

    async def test_a_range_of_time_leaves_the_rows_inside_it(self, target: Target) -> None:
        """A range holds from its first instant up to, and without, its last one; a row without a time is in none."""
        name, rows = await _timed(target)
        for time in _ranges(name, [row[name] for row in rows]):
            expected = {identity(row.key) for row in rows if within(time, row[name])}
            page = await target.page(time=time, limit=min(target.rows + 1, 10_000))
            assert {identity(key) for key in page.keys} == expected, time
            assert page.total in (None, len(expected)) or not page.total_exact, time

    async def test_a_count_and_an_export_keep_to_the_range(self, target: Target) -> None:
        """`count_rows` and `export_rows` concern the same rows as pages under the same range."""
        name, rows = await _timed(target)
        for time in _ranges(name, [row[name] for row in rows]):
            expected = sum(within(time, row[name]) for row in rows)
            if "count_rows" in hooks_of(target.driver):
                assert await target.driver.count_rows(CountRequest(object=target.object, time=time)) == expected, time
            if "export_rows" in hooks_of(target.driver):
                request = ExportRequest(object=target.object, form=ExportForm.ROWS, time=time)
                async with aclosing(target.driver.export_rows(request)) as parts:
                    assert sum([part.rows async for part in parts]) == expected, time

    async def test_a_range_holds_beside_a_filter(self, target: Target) -> None:
        """A page under both has the rows that both leave, even if any filter row is enough."""
        name, rows = await _timed(target)
        target.needs("compile_filter")
        time = next(_ranges(name, [row[name] for row in rows]))
        inside = {identity(row.key) for row in rows if within(time, row[name])}
        limit = min(target.rows + 1, 10_000)
        for column, row in (await announced(target))[:6]:
            for match in ("all", *(["any"] if "any" not in column.reasons else [])):
                where = await target.compile(row, row, match=match)
                left = {identity(key) for key in (await target.page(filter=where, limit=limit)).keys}
                both = await target.page(filter=where, time=time, limit=limit)
                assert {identity(key) for key in both.keys} == left & inside, (row, match)

    async def test_a_cursor_of_another_range_is_refused(self, target: Target) -> None:
        """A cursor continues the range of time that its page had; under any other one it is an error."""
        name, rows = await _timed(target)
        times = [None, *_ranges(name, [row[name] for row in rows])]
        pages = [await target.page(time=time, limit=1) for time in times]
        if all(page.next is None for page in pages):
            pytest.skip("pages go by offset only")
        for time, page in zip(times, pages, strict=True):
            if page.next is None:
                continue
            following = await target.page(time=time, limit=1, offset=1, cursor=page.next)
            assert not {identity(key) for key in following.keys} & {identity(key) for key in page.keys}
            for other in [t for t in times if t != time]:
                with pytest.raises(QueryError):
                    await target.page(time=other, limit=1, offset=1, cursor=page.next)


async def _timed(target: Target) -> tuple[str, list[Row]]:
    """Return the name of the time column, and all rows; skip the test if there is no such column."""
    target.needs("describe_object", "fetch_page")
    time = (await target.describe()).time
    if time is None:
        pytest.skip("the object has no time column")
    rows = await target.all_rows()
    assert len(rows) == target.rows
    return time.column, rows


def _is_instant(cell: Cell) -> bool:
    try:
        instant(cell)
    except ValueError:
        return False
    return True


def _ranges(column: str, cells: list[Cell]) -> Iterator[TimeRange]:
    """Yield ranges whose bounds are instants of rows: with both bounds, with one, and empty."""
    instants = sorted({str(cell) for cell in cells if cell is not None}, key=instant)
    assert len(instants) > 1, "the object needs rows of different times"
    low, high = instants[len(instants) // 3], instants[-1]
    yield TimeRange(column=column, since=low, until=high)
    yield TimeRange(column=column, since=low)
    yield TimeRange(column=column, until=high)
    yield TimeRange(column=column, until=instants[0])
