"""Hypothesis strategies for property tests of drivers: filters of a page's columns, pages that tile, values."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from dragoman_api.cells import Json
from dragoman_api.columns import VALUELESS, ColumnKind, Operator
from dragoman_api.filters import Filter
from dragoman_api.grid import Sort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

    from dragoman_api.columns import Column
    from dragoman_api.grid import Page


def values(kind: ColumnKind) -> SearchStrategy[Any]:
    """Draw values of one kind, awkward ones included: 64 bits and more, empty texts, other scripts."""
    if kind.numeric:
        return _numbers(kind)
    if kind is ColumnKind.BOOLEAN:
        return st.booleans()
    if kind is ColumnKind.TIMESTAMP:
        return st.datetimes().map(lambda at: f"{at.isoformat(timespec='milliseconds')}Z")
    if kind in (ColumnKind.DATE, ColumnKind.TIME):
        return (st.dates() if kind is ColumnKind.DATE else st.times()).map(lambda at: at.isoformat())
    if kind is ColumnKind.BINARY:
        return st.binary(max_size=30).map(lambda data: b64encode(data).decode())
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def _numbers(kind: ColumnKind) -> SearchStrategy[Any]:
    if kind is ColumnKind.DECIMAL:
        return st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str)
    whole = st.integers(0 if kind is ColumnKind.UNSIGNED else -(2**70), 2**70)
    return whole | st.floats(allow_nan=False, allow_infinity=False) if kind is ColumnKind.FLOAT else whole


def filters(page: Page) -> SearchStrategy[Filter]:
    """Draw filter rows that the columns of a page announce, with values that its rows hold or might hold."""
    usable = [column for column in page.columns if column.operators]
    return st.sampled_from(usable).flatmap(lambda column: _filter(column, [row[column.name] for row in page.rows]))


def _filter(column: Column, cells: Sequence[Any]) -> SearchStrategy[Filter]:
    samples = [cell for cell in cells if cell is not None and not isinstance(cell, Json)]
    value = st.sampled_from(samples) | values(column.kind) if samples else values(column.kind)

    def row(op: Operator) -> SearchStrategy[Filter]:
        if op in VALUELESS:
            return st.just(Filter(column.name, op))
        if op in (Operator.NEAR, Operator.IN_BOX):
            places = st.lists(st.integers(-90, 90), min_size=4, max_size=4)
            near = places.map(lambda numbers: f"{numbers[0]},{numbers[1]},{abs(numbers[2]) + 1}km")
            box = places.map(lambda numbers: f"{min(numbers[::2])},{numbers[1]},{max(numbers[::2])},{numbers[3]}")
            return (near if op is Operator.NEAR else box).map(lambda text: Filter(column.name, op, text))
        if op is Operator.BETWEEN:
            return st.lists(value, min_size=2, max_size=2).map(lambda two: Filter(column.name, op, sorted(two)))
        if op in (Operator.IN, Operator.NOT_IN):
            return st.lists(value, min_size=1, max_size=4).map(lambda some: Filter(column.name, op, some))
        if op is Operator.REGEX:
            return st.from_regex(r"[a-z]{1,3}(\.\*)?", fullmatch=True).map(lambda text: Filter(column.name, op, text))
        return st.builds(Filter, st.just(column.name), st.just(op), value, case=st.sampled_from([None, True, False]))

    return st.sampled_from(column.operators).flatmap(row)


def sorts(page: Page) -> SearchStrategy[list[Sort]]:
    """Draw up to three keys over different sortable columns of a page."""
    names = [column.name for column in page.columns if column.sortable]
    if not names:
        return st.just([])
    key = st.builds(Sort, st.sampled_from(names), descending=st.booleans())
    return st.lists(key, max_size=3, unique_by=lambda sort: sort.column)


def tilings(rows: int) -> SearchStrategy[list[tuple[int, int]]]:
    """Draw (offset, limit) pairs that cover a number of rows without a gap or an overlap."""
    cuts = st.lists(st.integers(1, max(1, rows - 1)), unique=True, max_size=6).map(sorted)
    return cuts.map(lambda at: [(a, b - a) for a, b in zip([0, *at], [*at, max(rows, *at, 1)], strict=True) if b > a])
