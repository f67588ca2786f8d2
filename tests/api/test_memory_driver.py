"""Conformance of the driver in memory."""

from __future__ import annotations

import pytest

from dragoman_api import ExportRequest, Filter, FilterRequest, QueryError
from dragoman_api.cells import Json
from dragoman_api.columns import ColumnKind
from dragoman_api.connections import Profile
from dragoman_api.exports import SplitRequest
from dragoman_api.testing import DriverConformance, Target
from memory_driver import MemoryDriver
from memory_server import MemoryServer

TAGS = Json('["a",1,0.1234567890123456789]')
PROFILE = Profile(name="m", type="memory", host="127.0.0.1", port=1)


async def memory_target(driver: MemoryDriver) -> Target:
    """Connect a driver in memory and say what the conformance tests may expect of it."""
    await driver.connect(PROFILE, None)
    return Target(
        driver=driver,
        object="books",
        rows=23,
        log=driver.server.log,
        lose=driver.server.lose,
        scratch="scratch",
        row={
            "title": "New",
            "price": 2**63 + 5,
            "stock": 1,
            "available": True,
            "tags": Json('["a",1,0.1234567890123456789]'),
        },
        change={"price": 3.5},
        tells_missing=True,
        raw_filter="tea",
        reads=["GET /books", "GET /books/1"],
        writes=['PUT /books/1 {"title": "x"}', "DELETE /books", "POST /books {}"],
        broken=[("nonsense", 1, 1), ("GET /\n\nPUT nowhere", 3, 5)],
    )


def timed_server() -> MemoryServer:
    """Return a server whose rows have a time, two of them the same, or none."""
    server = MemoryServer()
    server.kinds = {**server.kinds, "at": ColumnKind.TIMESTAMP}
    for name, row in server.objects["books"].items():
        row["at"] = None if name == "5" else f"2026-11-23T12:00:{int(name) // 2:02}.{int(name) % 4 // 2}Z"
    return server


def vector_server() -> MemoryServer:
    """Return a server whose rows have a vector, two of them the same one, or none."""
    server = MemoryServer(vectors={"shape": 3})
    server.kinds = {**server.kinds, "shape": ColumnKind.JSON}
    for name, row in server.objects["books"].items():
        number = int(name)
        row["shape"] = None if number == 5 else [number // 2 / 2, number % 7, 1]
    return server


async def test_a_checkpoint_of_another_export_is_refused() -> None:
    driver = MemoryDriver()
    where = await driver.compile_filter(FilterRequest(object="books", rows=[Filter("stock", ">=", 0)]))
    part = await anext(driver.export_rows(ExportRequest(object="books")))
    for request in (
        ExportRequest(object="scratch", checkpoint=part.checkpoint),
        ExportRequest(object="books", filter=where, checkpoint=part.checkpoint),
        ExportRequest(object="books", checkpoint="10"),
    ):
        with pytest.raises(QueryError) as caught:
            await anext(driver.export_rows(request))
        assert caught.value.code == "export-not-resumable"


def test_neither_a_share_nor_the_rest_of_an_export_is_split_or_continued() -> None:
    """An empty text, too, is a share or a checkpoint of a driver's own."""
    for share, checkpoint in (("1 of 2", "5"), ("", "5"), ("1 of 2", "")):
        with pytest.raises(ValueError, match="so it has no checkpoint"):
            ExportRequest(object="books", share=share, checkpoint=checkpoint)
    for part in ({"share": "1 of 2"}, {"share": ""}, {"checkpoint": "5"}, {"checkpoint": ""}):
        with pytest.raises(ValueError, match="a whole export is split"):
            SplitRequest(export=ExportRequest(object="books", **part), shares=2)


class TestMemoryDriver(DriverConformance):
    @pytest.fixture
    async def target(self) -> Target:
        return await memory_target(MemoryDriver())


class TestMemoryDriverOfVectors(DriverConformance):
    @pytest.fixture
    async def target(self) -> Target:
        return await memory_target(MemoryDriver(vector_server()))


class TestMemoryDriverOfATimeSeries(DriverConformance):
    @pytest.fixture
    async def target(self) -> Target:
        return await memory_target(MemoryDriver(timed_server()))
