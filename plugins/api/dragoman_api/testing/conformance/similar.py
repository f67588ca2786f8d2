"""Promises about rows that are near to a row or to a vector."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dragoman_api.columns import Column, Operator
from dragoman_api.errors import QueryError, RowNotFoundError, UnsupportedOperationError
from dragoman_api.filters import Filter
from dragoman_api.grid import MAX_SIMILAR, CellRequest, Page, SimilarRequest
from dragoman_api.testing.target import identity

from .grid import missing_id

if TYPE_CHECKING:
    from dragoman_api.grid import RowKey
    from dragoman_api.testing.target import Target

_FEW = 5
_NOISE = 1e-5
"""By how much distances of equal vectors may differ."""


class SimilarConformance:
    """Promises to a person who looks for similar rows; tests of an object without vectors are skipped."""

    async def test_rows_near_a_row_come_nearest_first_and_without_it(self, target: Target) -> None:
        """Rows of the object, each once, at growing distances, which are the last column; at most as many as asked."""
        names = {column.name for column in (await target.describe()).columns}
        stored = {identity(row.key) for row in await target.all_rows()}
        for column, key, _ in await _vectors(target):
            for limit in (1, _FEW):
                page = await _similar(target, column=column, key=key, limit=limit)
                assert [name.name for name in page.columns[:-1]] == [
                    name.name for name in (await target.page(limit=1)).columns
                ]
                assert page.columns[-1].name not in names
                assert len(page.cells) == len(page.keys) == min(limit, len(page.cells))
                identities = [identity(row_key) for row_key in page.keys]
                assert len({*identities}) == len(identities), column
                assert {*identities} <= stored - {identity(key)}, column
                distances: list[Any] = [cells[-1] for cells in page.cells]
                assert distances == sorted(distances), column

    async def test_the_vector_of_a_row_finds_that_row_first(self, target: Target) -> None:
        """A row whose vector is given is at the smallest distance, and only the columns that are asked for come."""
        for column, key, vector in await _vectors(target):
            page = await _similar(target, column=column, vector=vector, limit=MAX_SIMILAR, columns=[])
            assert [len(cells) for cells in page.cells] == [1] * len(page.keys), column
            distances: dict[Any, Any] = {
                identity(row_key): cells[-1] for row_key, cells in zip(page.keys, page.cells, strict=True)
            }
            assert identity(key) in distances or target.rows > MAX_SIMILAR, column
            nearest = min(distances.values())
            assert distances.get(identity(key), nearest) <= nearest + _NOISE, column

    async def test_similar_rows_go_by_their_filter(self, target: Target) -> None:
        """Rows near a row are of those that the filter selects, and the nearest is no nearer than that of all rows."""
        target.needs("compile_filter")
        rows = await target.all_rows()
        for column, key, _ in await _vectors(target):
            whole = await _similar(target, column=column, key=key, limit=_FEW)
            for condition in (await target.describe()).columns:
                values: set[Any] = {row[condition.name] for row in rows if type(row[condition.name]) in (bool, str)}
                if condition.is_key or Operator.EQ not in condition.operators or not values:
                    continue
                value = min(values, key=str)
                where = await target.compile(Filter(condition.name, Operator.EQ, value))
                selected = {identity(row.key) for row in await target.all_rows(where=where)}
                page = await _similar(target, column=column, key=key, limit=_FEW, filter=where)
                assert {identity(row_key) for row_key in page.keys} <= selected, condition.name
                assert len(page.cells) >= min(_FEW, len(selected - {identity(key)})) or page.notes, condition.name
                if page.cells and len(whole.cells) == _FEW:
                    assert page.cells[0][-1] >= whole.cells[0][-1], condition.name  # type: ignore[operator]

    async def test_what_nothing_is_near_to_is_refused(self, target: Target) -> None:
        """An unknown column, a vector of another length and a row that is gone are errors, and say what is wrong."""
        for column, key, vector in await _vectors(target):
            with pytest.raises((QueryError, UnsupportedOperationError)):
                await _similar(target, column="no such column", key=key)
            with pytest.raises(QueryError):
                await _similar(target, column=column, vector=[*vector, 1.0])
            gone = type(key)(key.object, missing_id(key.id), key.routing)
            with pytest.raises(RowNotFoundError):
                await _similar(target, column=column, key=gone)


async def _similar(target: Target, **request: Any) -> Page:
    page: Page = await target.driver.similar_rows(SimilarRequest(object=target.object, **request))
    return page


async def _vectors(target: Target) -> list[tuple[str, RowKey, list[float]]]:
    """Return each name of vectors, with the key of a row that has one, and the vector."""
    target.needs("describe_object", "fetch_page", "fetch_cell", "similar_rows")
    vectors: list[tuple[str, RowKey, list[float]]] = []
    for column in (await target.describe()).columns:
        if column.dimensions is not None:
            names = {f"{column.name}.{member}": member for member in column.members} or {column.name: ""}
            named_vectors = [(name, await _vector(target, column, member)) for name, member in names.items()]
            vectors += [(name, *vector) for name, vector in named_vectors if vector is not None]
    if not vectors:
        pytest.skip("no row of the object has a vector")
    return vectors


async def _vector(target: Target, column: Column, member: str) -> tuple[RowKey, list[float]] | None:
    for key in (await target.page(limit=20)).keys[3:]:
        cell = await target.driver.fetch_cell(CellRequest(key=key, column=column.name))
        value = json.loads(cell) if isinstance(cell, str) else None
        if member and isinstance(value, dict):
            value = value.get(member)
        if isinstance(value, list) and value:
            return key, [float(number) for number in value]
    return None
