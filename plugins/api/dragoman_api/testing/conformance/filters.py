"""Promises about filters: a filter runs as asked or is refused with a reason; it never widens."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import aclosing
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dragoman_api.cells import Json, as_bytes, is_cut
from dragoman_api.columns import VALUELESS, ColumnKind, Operator
from dragoman_api.errors import FilterNotSupportedError, QueryError
from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.filters import Filter, TimeRange
from dragoman_api.grid import CountRequest
from dragoman_api.kit.filter_rows import holds, within
from dragoman_api.kit.operands import instant
from dragoman_api.testing.target import SAMPLE, hooks_of, identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.cells import Cell
    from dragoman_api.columns import Column
    from dragoman_api.filters import CompiledFilter
    from dragoman_api.grid import Row
    from dragoman_api.testing.target import Target

USUAL: dict[ColumnKind, list[Any]] = {
    ColumnKind.TEXT: ["a", "b"],
    **{kind: [1, 2] for kind in ColumnKind if kind.numeric},
    ColumnKind.BOOLEAN: [True, False],
    ColumnKind.TIMESTAMP: ["2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"],
    ColumnKind.DATE: ["2024-01-01", "2025-01-01"],
    ColumnKind.TIME: ["08:00:00", "20:00:00"],
    ColumnKind.BINARY: ["AA==", "/w=="],
}
"""Values of each kind."""
_PLACES = {Operator.NEAR: "52.52,13.405,5km", Operator.IN_BOX: "52.3,13.1,52.7,13.8"}


class FilterConformance:
    """Promises to a person who filters."""

    async def test_announced_operators_compile(self, target: Target) -> None:
        """Every operator of every column compiles: one explanation per filter row, with what is not exact."""
        for _, row in await announced(target):
            compiled = await target.compile(row)
            assert compiled.object == target.object
            [explained] = compiled.rows
            assert explained.row == 0
            assert explained.clause, row
            assert explained.exact is not bool(explained.approximations or explained.unlikely), row

    async def test_other_operators_are_refused_with_column_operator_and_reason(self, target: Target) -> None:
        """An operator that a column does not announce raises FilterNotSupportedError that names all three."""
        target.needs("describe_object", "compile_filter")
        columns, samples = await _samples(target)
        for column in columns:
            for op in {*Operator} - {*column.operators}:
                value = _example(
                    op, samples[column.name] or USUAL.get(column.kind, USUAL[ColumnKind.TEXT]), column.kind
                )
                with pytest.raises(FilterNotSupportedError) as caught:
                    await target.compile(Filter(column.name, op, value))
                details = caught.value.details
                assert (details.get("column"), details.get("operator")) == (column.name, str(op))
                assert details.get("reason"), f"{column.name} {op}: no reason"

    async def test_an_unknown_column_is_refused(self, target: Target) -> None:
        """A filter on an unknown column raises FilterNotSupportedError and never runs without the row."""
        target.needs("describe_object", "compile_filter")
        await target.describe()
        with pytest.raises(FilterNotSupportedError) as caught:
            await target.compile(Filter("no such column", Operator.EQ, "a"))
        assert caught.value.details.get("column") == "no such column"

    async def test_compiling_looks_at_the_rows_once_at_most(self, target: Target) -> None:
        """`compile_filter` does no I/O but for one read of stored rows, for all filters on an object."""
        rows = [row for _, row in await announced(target)]
        if target.log is None:
            pytest.skip("the requests to the server cannot be observed")
        mark = target.sent()
        for row in rows:
            await target.compile(row)
        assert len(target.since(mark)) <= 1

    async def test_a_filter_never_widens(self, target: Target) -> None:
        """A filtered result is a subset of the rows, and each of its rows satisfies an exact filter."""
        target.needs("fetch_page")
        all_rows = {identity(row.key): row for row in await target.all_rows()}
        for _, row in await announced(target):
            compiled = await target.compile(row)
            filtered_rows = await target.all_rows(where=compiled)
            assert {identity(record.key) for record in filtered_rows} <= {*all_rows}, row
            assert await target.count(where=compiled) == len(filtered_rows), (
                f"{row}: the count is not the sum of the pages"
            )
            if compiled.rows[0].exact:
                wrong = [record.key.id for record in filtered_rows if holds(row, record[row.column]) is False]
                assert not wrong, f"{row}: these rows do not satisfy it: {wrong[:5]}"

    async def test_an_exact_filter_loses_nothing(self, target: Target) -> None:
        """Every row that satisfies an exact filter on a number, a boolean, the key or null is found."""
        target.needs("fetch_page")
        all_rows = await target.all_rows()
        for column, row in await announced(target):
            plain = column.is_key or column.kind.numeric or column.kind is ColumnKind.BOOLEAN
            compiled = await target.compile(row)
            if not compiled.rows[0].exact or not (plain or row.op in (Operator.NULL, Operator.NOT_NULL)):
                continue
            identities = {identity(record.key) for record in await target.all_rows(where=compiled)}
            due = {identity(record.key) for record in all_rows if holds(row, record[column.name])}
            assert due <= identities, f"{row} misses {sorted(due - identities)[:5]}"

    async def test_an_operand_means_the_same_however_it_is_spelled(self, target: Target) -> None:
        """A number, a boolean or a list of them selects the same rows as a text (``12.5``, ``true``, ``1,2``).

        A command line sends texts, a script numbers, Decimals and lists.
        """
        target.needs("fetch_page")
        for column, row in await announced(target):
            if not (column.kind.numeric or column.kind is ColumnKind.BOOLEAN) or row.op in VALUELESS:
                continue
            rows = await _found(target, await target.compile(row))
            for spelling in _spellings(row.value):
                spelled = msgspec.structs.replace(row, value=spelling)
                same = await _found(target, await target.compile(spelled))
                assert same == rows, f"{spelled} selects {len(same)} rows, and {row} {len(rows)}"

    async def test_all_narrows_and_any_unites(self, target: Target) -> None:
        """Under ``all``, a second filter row only narrows the result; under ``any``, it only adds its own matches.

        A column with a reason for ``any`` does not combine: the host refuses such a filter.
        """
        target.needs("fetch_page")
        for (column, row), (beside, other) in pairwise((await announced(target))[:12]):
            first, second, both = [
                await _found(target, compiled)
                for compiled in (
                    await target.compile(row),
                    await target.compile(other),
                    await target.compile(row, other),
                )
            ]
            assert both == first & second, (row, other)
            if "any" in column.reasons or "any" in beside.reasons:
                continue  # the host refuses it
            either = await _found(target, await target.compile(row, other, match="any"))
            assert either == first | second, (row, other)

    async def test_pages_tile_a_filtered_result(self, target: Target) -> None:
        """Reading a filtered result with any page size returns each of the same rows once."""
        target.needs("fetch_page")
        for _, row in (await announced(target))[:6]:
            compiled = await target.compile(row)
            whole = [identity(record.key) for record in await target.all_rows(where=compiled)]
            pages = [
                identity(record.key) for record in await target.all_rows(where=compiled, limit=target.rows // 7 + 1)
            ]
            assert pages == whole, row
            assert len(whole) == len(set(whole)), row


def _spellings(value: Any) -> list[Any]:
    """Return an operand as a text, and as numbers that are exact."""
    if isinstance(value, list):
        return [",".join(map(_typed, value)), *([[*map(_exact, value)]] if value else [])]
    return [_typed(value), _exact(value)]


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _exact(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(repr(value)) if is_number else value


async def _found(target: Target, compiled: CompiledFilter) -> set[tuple[str, object, str | None]]:
    """Return the identities of the rows that a filter leaves."""
    return {identity(record.key) for record in await target.all_rows(where=compiled)}


async def announced(target: Target) -> list[tuple[Column, Filter]]:
    """Make one filter row for each operator that each column announces."""
    target.needs("describe_object", "compile_filter")
    columns, samples = await _samples(target)
    return [
        (column, Filter(column.name, op, _example(op, values, column.kind)))
        for column in columns
        for op in column.operators
        if (values := samples[column.name] or USUAL.get(column.kind, [])) or op in VALUELESS
    ]


async def _samples(target: Target) -> tuple[list[Column], dict[str, list[Any]]]:
    """Yield the columns with values to filter them by: the target's own values, or some of its cells."""
    columns = (await target.describe()).columns
    rows = (await target.page(limit=min(target.rows, SAMPLE))).rows
    return columns, {
        column.name: list(target.values.get(column.name, ())) or _scalars([row[column.name] for row in rows])
        for column in columns
    }


def _scalars(cells: list[Any]) -> list[Any]:
    scalars: list[Any] = []
    for cell in cells:
        values = [] if is_cut(cell) else [cell]
        if isinstance(cell, Json):
            decoded = None if is_cut(cell) else msgspec.json.decode(cell.encode())
            values = decoded if isinstance(decoded, list) else []
        values = [b64encode(value).decode() if isinstance(value, bytes) else value for value in values]
        scalars += [
            value for value in values if isinstance(value, bool | int | float | str | Decimal) and value not in scalars
        ]
    same = [scalar for scalar in scalars if type(scalar) is type(scalars[0])]
    return same[:: max(1, len(same) // 3)][:3]


def _example(op: Operator, values: list[Any], kind: ColumnKind) -> Any:
    if op in VALUELESS:
        return None
    if op in (Operator.IN, Operator.NOT_IN):
        return values[:2]
    if op in _PLACES:
        return _PLACES[op]
    if op is Operator.BETWEEN:
        order = as_bytes if kind is ColumnKind.BINARY else None
        return [min(values, key=order), max(values, key=order)]
    value = values[len(values) // 2]
    if (
        isinstance(value, str)
        and kind is not ColumnKind.BINARY
        and op in (Operator.CONTAINS, Operator.NOT_CONTAINS, Operator.STARTS, Operator.REGEX)
    ):
        word = next(iter(re.findall(r"[^\W_]+", value)), "a")
        return f"{word}.*" if op is Operator.REGEX else word
    return value


class TimeConformance:
    """Promises to a person who reads a span of time; tests of an object without a time column are skipped."""

    async def test_the_time_column_is_described_and_holds_instants(self, target: Target) -> None:
        """`Description.time` names a column of the object, whose cells are null or RFC 3339 with a zone."""
        name, rows = await _timed(target)
        assert name in {column.name for column in (await target.describe()).columns}
        for cell in [row[name] for row in rows if row[name] is not None]:
            assert _is_instant(cell), f"{name}: {cell!r} is no instant, which has a date, a time and a zone"

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
