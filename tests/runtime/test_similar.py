"""Similar rows of a session: nearest first under a filter, and what of a call or of a driver's result is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from dragoman import Filter, RowKey, Sort
from dragoman_api import Column, Note, hookimpl
from dragoman_api.columns import ColumnKind
from dragoman_api.errors import ConfigurationError, DriverFaultError, FilterNotSupportedError, UnsupportedOperationError
from dragoman_api.events import PageFetched
from dragoman_api.grid import DISTANCE, MAX_SIMILAR, Page, SimilarRequest
from dragoman_api.kit.similar_rows import nearest, vector_column
from in_process import Here
from memory_driver import MemoryDriver
from memory_server import MemoryServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.sessions.session import Session

KEY = RowKey("books", "4")


class Spoilt(MemoryDriver):
    """A driver whose similar rows can be spoilt; it keeps each request."""

    def __init__(self) -> None:
        server = MemoryServer(vectors={"shape": 2})
        server.kinds = {**server.kinds, "shape": ColumnKind.JSON}
        for number, row in server.objects["books"].items():
            row["shape"] = [int(number), 1] if number != "5" else None
        super().__init__(server)
        self.requests: list[SimilarRequest] = []
        self.spoil: Callable[[Page], Page] = lambda page: page

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Page:
        self.requests.append(request)
        return self.spoil(await super().similar_rows(request))


def place() -> tuple[Spoilt, Session]:
    driver = Spoilt()
    return driver, Here(driver, capabilities=("tenants", "revisions")).session()


async def test_rows_near_a_row_come_nearest_first_under_the_filter_with_the_chosen_columns() -> None:
    _, session = place()
    page = await session.rows("books", filters=[Filter("stock", ">", 1)], columns=["id"]).similar(KEY, limit=3)
    assert [column.name for column in page.columns] == ["id", DISTANCE]
    assert [(row["id"], row[DISTANCE]) for row in page.rows] == [("3", 1.0), ("2", 2.0), ("7", 3.0)]
    assert [key.id for key in page.keys] == ["3", "2", "7"]


async def test_a_vector_takes_the_place_of_a_row_and_its_own_row_is_found() -> None:
    driver, session = place()
    for vector in ([4, 1], (4.0, 1.0)):
        page = await session.rows("books").similar(vector=vector, limit=1)
        assert [(row["id"], row[DISTANCE]) for row in page.rows] == [("4", 0.0)]
        assert driver.requests[-1].vector == [4.0, 1.0]


async def test_everything_that_is_chosen_reaches_the_driver() -> None:
    driver, session = place()
    rows = session.rows("books", filters=[Filter("stock", ">", 1)], columns=["title"], tenant="ann", revision="0")
    await rows.similar(KEY, column="shape", limit=7)
    [request] = driver.requests
    assert request.filter is not None
    assert replace(request, filter=None) == SimilarRequest(
        object="books", key=KEY, column="shape", limit=7, columns=["title"], tenant="ann", revision="0"
    )


async def test_a_page_of_similar_rows_is_told_and_keeps_the_notes_of_the_driver() -> None:
    driver = Spoilt()
    here = Here(driver)
    note = Note(code="nearest-approximate", reason="may miss some")
    driver.spoil = lambda page: replace(page, notes=[note])
    page = await here.session().rows("books", raw=["Book"]).similar(KEY)
    assert [found.code for found in page.notes] == ["filter-approximate", "nearest-approximate"]
    [event] = [event for event in here.seen if isinstance(event, PageFetched)]
    assert (event.object, event.rows) == ("books", len(page.cells))


CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exactly one of them": ({}, {}),
    "exactly one": ({}, {"key": KEY, "vector": [1, 2]}),
    "exactly": ({}, {"vector": [1, 2], "text": "tea"}),
    "have a sort": ({"sort": [Sort("stock")]}, {"key": KEY}),
    "not 0": ({}, {"key": KEY, "limit": 0}),
    "not 1,001": ({}, {"key": KEY, "limit": MAX_SIMILAR + 1}),
    "list of 1 to": ({}, {"vector": []}),
    "list of 1": ({}, {"vector": [1.0, float("nan")]}),
    "list of": ({}, {"vector": ["x", 1]}),
    "a list": ({}, {"vector": [0.0] * 65_537}),
    "is of a row of": ({}, {"key": RowKey("scratch", "1")}),
}


@pytest.mark.parametrize("reason", CALLS)
async def test_a_call_that_means_nothing_is_refused_before_the_driver_hears_of_it(reason: str) -> None:
    driver, session = place()
    choice, call = CALLS[reason]
    with pytest.raises(ConfigurationError, match=reason):
        await session.rows("books", **choice).similar(**call)
    assert driver.requests == []


async def test_a_filter_row_that_only_a_page_evaluates_is_refused() -> None:
    """`residual` is for pages: an index of vectors knows nothing of it."""
    driver, session = place()
    with pytest.raises(FilterNotSupportedError):
        await session.rows("books", filters=[Filter("tags", "=", "a")], residual=50).similar(KEY)
    assert driver.requests == []


async def test_an_object_without_vectors_has_no_similar_rows() -> None:
    with pytest.raises(UnsupportedOperationError, match="no vectors"):
        await Here(MemoryDriver()).session().rows("books").similar(KEY)


SPOILT: dict[str, Callable[[Page], Page]] = {
    "2 rows, not 1": lambda page: replace(page, cells=page.cells * 2, keys=page.keys * 2),
    "the nearest first": lambda page: replace(page, cells=[[*page.cells[0][:-1], "0.5"]]),
    "does not hold distances": lambda page: replace(page, cells=[[*page.cells[0][:-1], True]]),
    "distances, the": lambda page: replace(page, cells=[[*page.cells[0][:-1], None]]),
    "the row itself": lambda page: replace(page, keys=[KEY]),
}


@pytest.mark.parametrize("reason", SPOILT)
async def test_rows_that_are_not_the_nearest_first_are_a_fault_of_the_driver(reason: str) -> None:
    driver, session = place()
    driver.spoil = SPOILT[reason]
    with pytest.raises(DriverFaultError, match=reason):
        await session.rows("books").similar(KEY, limit=1)


async def test_rows_that_come_farthest_first_are_a_fault_of_the_driver() -> None:
    driver, session = place()
    driver.spoil = lambda page: replace(page, cells=page.cells[::-1], keys=page.keys[::-1])
    with pytest.raises(DriverFaultError, match="nearest first"):
        await session.rows("books").similar(KEY)


SHAPES = Column(name="shapes", type="vectors", members=("front", "side"), dimensions=0)
VECTOR = Column(name="vector", type="vector", dimensions=2)
PLAIN = Column(name="title", type="text")


@pytest.mark.parametrize(
    ("columns", "name", "meant"),
    [
        ([PLAIN, VECTOR], None, ("vector", "")),
        ([PLAIN, VECTOR], "vector", ("vector", "")),
        ([VECTOR, SHAPES], "shapes.side", ("shapes", "side")),
        ([VECTOR, SHAPES], None, "name one of them: vector, shapes.front, shapes.side"),
        ([SHAPES], "shapes", "its vectors: shapes.front, shapes.side"),
        ([VECTOR], "title", "its vectors: vector"),
        ([PLAIN], None, "no vectors"),
    ],
)
def test_a_column_of_vectors_is_named_or_the_only_one(
    columns: list[Column], name: str | None, meant: tuple[str, str] | str
) -> None:
    request = SimilarRequest(object="films", column=name, vector=[1.0, 2.0])
    if isinstance(meant, tuple):
        column, member = vector_column(request, columns)
        assert (column.name, member) == meant
        return
    with pytest.raises(Exception, match="vectors") as caught:
        vector_column(request, columns)
    assert meant in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def test_the_column_of_distances_is_called_like_no_other() -> None:
    page = Page(columns=[PLAIN], cells=[["a"], ["b"]], keys=[RowKey("o", "a"), RowKey("o", "b")])
    request = SimilarRequest(object="o", vector=[1.0], limit=2)
    named = nearest(request, page, [0.5, -1.0], ["title", DISTANCE, f"_{DISTANCE}"])
    assert named.columns[-1].name == f"__{DISTANCE}"
    assert (named.cells, [key.id for key in named.keys]) == ([["b", -1.0], ["a", 0.5]], ["b", "a"])
