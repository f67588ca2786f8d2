"""Similar rows beside a scan: the server finds them, and the scan says which of them a filter leaves."""

from __future__ import annotations

from math import dist

import pytest

from dragoman_api import Column, Description, Filter, FilterRequest, Operator, QueryError, RowKey, hookimpl
from dragoman_api.columns import ColumnKind
from dragoman_api.errors import RowNotFoundError, UnsupportedOperationError
from dragoman_api.grid import SimilarRequest
from dragoman_api.kit.scan import ScannedRow, SimilarRows, sampled_columns, scanned_column

ROWS = {
    "a": {"id": "a", "kind": "x", "place": [0, 0]},
    "b": {"id": "b", "kind": "y", "place": [0, 1]},
    "c": {"id": "c", "kind": "x", "place": [0, 3]},
    "d": {"id": "d", "kind": "z"},
}


class Places(SimilarRows):
    """Rows with a vector each, but for one."""

    def __init__(self, *columns: Column):
        vectors = columns or (scanned_column("place", ColumnKind.JSON, dimensions=2),)
        texts = [{"id": row["id"], "kind": row["kind"]} for row in ROWS.values()]
        self.columns = [*sampled_columns(texts, key="id"), *vectors]
        self.rows, self.calls, self.vectors = ROWS, [], []

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=self.columns)

    async def scan(self, name, revision):
        for key, row in self.rows.items():
            yield ScannedRow(RowKey(name, key), row)

    async def near(self, name, vectors, vector, limit, keys):
        self.calls.append((vectors, limit, None if keys is None else [key.id for key in keys]))
        self.vectors.append(vector)
        if vectors != "place":
            return []
        rows = [
            row for row in self.rows.values() if "place" in row and (keys is None or RowKey(name, row["id"]) in keys)
        ]
        rows.sort(key=lambda row: dist(row["place"], vector))
        return [(ScannedRow(RowKey(name, row["id"]), row), dist(row["place"], vector)) for row in rows[:limit]]


async def similar(driver, **request):
    return await driver.similar_rows(SimilarRequest(object="rows", **request))


async def filtered(driver, value):
    return await driver.compile_filter(FilterRequest(object="rows", rows=[Filter("kind", Operator.EQ, value)]))


async def test_the_server_is_asked_for_one_row_more_than_those_near_a_row():
    driver = Places()
    page = await similar(driver, key=RowKey("rows", "a"), limit=1, columns=["kind"])
    assert (page.cells, [key.id for key in page.keys]) == ([["y", 1.0]], ["b"])
    assert driver.calls == [("place", 2, None)]
    assert [note.code for note in page.notes] == ["nearest-approximate"]


async def test_a_filter_leaves_the_only_rows_that_may_come():
    driver = Places()
    page = await similar(driver, vector=[0, 1], filter=await filtered(driver, "x"))
    assert [key.id for key in page.keys] == ["a", "c"]
    assert driver.calls == [("place", 10, ["a", "c"])]


async def test_a_filter_leaves_no_more_rows_than_the_server_can_be_told():
    driver = Places()
    driver.near_most = 2
    assert len((await similar(driver, vector=[0, 1], filter=await filtered(driver, "x"))).keys) == 2
    driver.near_most = 1
    with pytest.raises(QueryError, match="more than 1 rows, among which"):
        await similar(driver, vector=[0, 1], filter=await filtered(driver, "x"))


async def test_two_columns_of_one_name_are_refused_where_they_are_described():
    driver = Places()
    driver.columns.append(driver.columns[0])
    with pytest.raises(ValueError, match="two columns of 'rows' are called 'id'"):
        await driver.describe_object("rows")


async def test_a_filter_that_leaves_nothing_asks_the_server_nothing():
    driver = Places()
    page = await similar(driver, vector=[0, 1], filter=await filtered(driver, "nothing"))
    assert (page.cells, page.keys, driver.calls) == ([], [], [])


async def test_of_several_vectors_the_server_is_asked_with_the_one_that_is_named():
    driver = Places(scanned_column("place", ColumnKind.JSON, dimensions=0, members=("front", "side")))
    driver.rows = {"a": {"id": "a", "kind": "x", "place": {"front": [0, 0], "side": [9, 8]}}}
    await similar(driver, key=RowKey("rows", "a"), column="place.side")
    assert (driver.calls, driver.vectors) == ([("place.side", 11, None)], [[9.0, 8.0]])


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        ({"key": RowKey("rows", "d")}, QueryError, "'d' has no vector in 'place'"),
        ({"key": RowKey("rows", "gone")}, RowNotFoundError, "gone"),
        ({"text": "a house"}, UnsupportedOperationError, "makes no vectors of texts"),
        ({"vector": [1, 2, 3]}, QueryError, "have 2 numbers, not 3"),
        ({"vector": [1, 2], "columns": ["nope"]}, QueryError, "nope"),
    ],
)
async def test_what_nothing_is_near_to_is_refused_before_the_server_is_asked(request_, error, words):
    driver = Places()
    with pytest.raises(error, match=words):
        await similar(driver, **request_)
    assert driver.calls == []
