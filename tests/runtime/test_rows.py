"""Rows: one selection, checked where it is made; nothing is sent until a method is called, and all read the same."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pytest

import dragoman
import dragoman_dask
from dragoman import Filter, RawQuery, Rows, Session, Sort, Span
from dragoman.blocking import BlockingRows, BlockingSession
from dragoman.sessions.selections import RowSelection
from dragoman_api.columns import ColumnKind
from dragoman_api.errors import ConfigurationError, UnsupportedOperationError
from dragoman_api.exports import ExportRequest, SplitRequest
from dragoman_api.filters import FilterRequest
from dragoman_api.grid import CountRequest, PageRequest, PreviewRequest, RowKey, SimilarRequest
from dragoman_api.hookspecs import hookimpl
from in_process import Here
from memory_driver import MemoryDriver
from memory_server import MemoryServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from dragoman_api.exports import ExportPart
    from dragoman_api.summaries import SummaryRequest

CHOICE = set(inspect.signature(Session.rows).parameters) - {"self", "object"}


class Recorder(MemoryDriver):
    """The driver in memory, which keeps each request."""

    def __init__(self, server: MemoryServer | None = None) -> None:
        server = server or MemoryServer()
        server.kinds, server.vectors = {**server.kinds, "shape": ColumnKind.JSON}, {"shape": 1}
        super().__init__(server, part_rows=5)
        self.requests: list[Any] = []

    @hookimpl
    async def describe_object(self, name: str) -> Any:
        self.requests.append(name)
        return await super().describe_object(name)

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> Any:
        self.requests.append(request)
        return await super().compile_filter(request)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Any:
        self.requests.append(request)
        return await super().fetch_page(request)

    @hookimpl
    async def count_rows(self, request: CountRequest) -> Any:
        self.requests.append(request)
        return await super().count_rows(request)

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> Any:
        self.requests.append(request)
        return await super().summarize_column(request)

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Any:
        self.requests.append(request)
        return await super().similar_rows(request)

    @hookimpl
    async def preview_read(self, request: PreviewRequest) -> Any:
        self.requests.append(request)
        return await super().preview_read(request)

    @hookimpl
    async def split_export(self, request: SplitRequest) -> Any:
        self.requests.append(request)
        return await super().split_export(request)

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        self.requests.append(request)
        async for part in super().export_rows(request):
            yield part


def place() -> tuple[Recorder, Session]:
    driver = Recorder()
    return driver, Here(driver, capabilities=("tenants", "revisions")).session()


EVENTS = {"title": ColumnKind.TEXT, "stock": ColumnKind.INTEGER, "at": ColumnKind.TIMESTAMP}
BOTH = [Filter("stock", ">", 1), Filter("title", "contains", "a")]
OTHER: dict[str, Any] = {
    "filters": BOTH[:1],
    "raw": ["x"],
    "match": "any",
    "sort": [Sort("stock")],
    "columns": ["title"],
    "tenant": "ann",
    "revision": "0",
    "span": Span(since="2024-01-01T00:00:00Z"),
    "now": "2024-05-01T00:00:00Z",
    "residual": 50,
}
"""Another value of each argument of `Session.rows`."""

UNUSED: dict[str, set[str]] = {
    "sort": {"count", "explain", "preview_count", "summarize"},
    "columns": {"count", "explain", "preview_count", "summarize"},
    "tenant": {"explain"},
    "revision": {"explain"},
    "span": {"explain"},
    "residual": {"count", "preview_count", "summarize", "similar", "stream", "batches", "export", "split"},
}
"""Arguments that change nothing about the answer of a read: an order has no number, and a filter no rows.

`residual` allows what only a page may do: elsewhere, such a filter row is refused, which says it.
"""


async def read_as(read: str, folder: Path, **choice: Any) -> tuple[list[Any], set[str]]:
    """Return what a read of a new connection asks the driver, and the codes of the notes that it gives."""
    driver = Recorder(MemoryServer(kinds=EVENTS))
    session = Here(driver, capabilities=("tenants", "revisions", "time-range")).session()
    rows = session.rows("books", **{"filters": BOTH, "now": "2024-04-01T00:00:00Z"} | choice)
    reads: dict[str, Any] = {
        "page": rows.page,
        "explain": rows.explain,
        "count": rows.count,
        "summarize": lambda: rows.summarize("stock"),
        "similar": lambda: rows.similar(vector=[1]),
        "preview_page": rows.preview_page,
        "preview_count": rows.preview_count,
        "stream": rows.stream,
        "batches": rows.batches,
        "export": lambda: rows.export(folder / f"{uuid4()}.ndjson"),
        "split": lambda: rows.split(2),
    }
    result = reads[read]()
    if read in ("stream", "batches"):
        async for _ in result:
            pass
    else:
        result = await result
    return driver.requests, {note.code for note in getattr(result, "notes", [])}


@pytest.mark.parametrize("argument", [*OTHER])
@pytest.mark.parametrize("read", ["page", "explain", "count", "summarize", "similar", "preview_page", "preview_count",
                                  "stream", "batches", "export", "split"])  # fmt: skip
async def test_no_read_drops_an_argument_without_a_word(read: str, argument: str, tmp_path: Path) -> None:
    """It reaches the driver, or a note says that it does not, or it is listed here why nothing depends on it."""
    assert {*OTHER} == CHOICE
    if (read, argument) == ("similar", "sort"):
        with pytest.raises(ConfigurationError, match="nearest first"):
            await read_as(read, tmp_path, sort=OTHER["sort"])
        return
    requests, codes = await read_as(read, tmp_path)
    others, other_codes = await read_as(read, tmp_path, **{argument: OTHER[argument]})
    assert (others == requests and other_codes == codes) == (read in UNUSED.get(argument, ()))


def test_rows_are_immutable_and_keep_no_list_of_their_caller() -> None:
    _, session = place()
    filters, columns = [Filter("stock", ">", 1)], ["title"]
    rows = session.rows("books", filters=filters, columns=columns)
    filters.clear()
    columns.append("id")
    assert (rows.selection.filters, rows.selection.columns) == ((Filter("stock", ">", 1),), ("title",))
    with pytest.raises(AttributeError):
        rows.selection = RowSelection(object="other")  # type: ignore[misc]
    with pytest.raises(AttributeError):
        rows.selection.object = "other"  # type: ignore[misc]


def test_equal_choices_of_one_connection_are_equal_rows() -> None:
    (_, here), (_, there) = place(), place()
    rows = here.rows("books", filters=[Filter("stock", ">", 1)], match="any")
    assert rows == here.rows("books", filters=(Filter("stock", ">", 1),), match="any")
    assert hash(rows) == hash(here.rows("books", filters=[Filter("stock", ">", 1)], match="any"))
    assert rows != here.rows("books", filters=[Filter("stock", ">", 2)], match="any")
    assert rows != there.rows("books", filters=[Filter("stock", ">", 1)], match="any")


def test_rows_show_what_they_choose() -> None:
    _, session = place()
    assert repr(session.rows("books")) == "<shop.rows('books')>"
    shown = repr(session.rows("books", match="any", columns=["title"], sort=[Sort("stock")]))
    assert shown == ("<shop.rows('books', match='any', sort=[Sort('stock')], columns=['title'])>")


async def test_nothing_is_sent_until_a_method_is_called() -> None:
    driver, session = place()
    rows = session.rows("books", filters=[Filter("stock", ">", 1)])
    rows.stream()
    rows.batches()
    assert driver.requests == []
    assert await rows.count() > 0
    assert driver.requests


async def test_every_read_asks_for_the_same_rows(tmp_path: Any) -> None:
    driver, session = place()
    rows = session.rows(
        "books", filters=[Filter("stock", ">", 1)], raw=["x"], match="any", columns=["title"], now="2024-05-01",
        residual=50,
    )  # fmt: skip
    reads: dict[str, Any] = {
        "page": rows.page,
        "explain": rows.explain,
        "count": rows.count,
        "summarize": lambda: rows.summarize("stock"),
        "similar": lambda: rows.similar(vector=[1]),
        "preview_page": rows.preview_page,
        "preview_count": rows.preview_count,
        "stream": lambda: anext(rows.stream()),
        "iteration": lambda: anext(aiter(rows)),
        "batches": lambda: anext(rows.batches()),
        "table": rows.table,
        "export": lambda: rows.export(tmp_path / "books.ndjson"),
        "split": lambda: rows.split(2),
    }
    for name, read in reads.items():
        driver.requests.clear()
        await read()
        [compiled] = [request for request in driver.requests if isinstance(request, FilterRequest)]
        assert (compiled.rows, compiled.match) == ([Filter("stock", ">", 1), RawQuery("x")], "any"), name
        assert compiled.now == "2024-05-01T00:00:00Z", name
        assert compiled.residual == (50 if name in ("page", "explain", "preview_page") else None), name
        last = driver.requests[-1]
        request = (last.page or last.count) if isinstance(last, PreviewRequest) else last
        request = request.export if isinstance(request, SplitRequest) else request
        if not isinstance(request, FilterRequest):
            assert request.object == "books", name
            assert request.filter is not None, name
        if isinstance(request, PageRequest | ExportRequest):
            assert request.columns == ["title"], name


async def test_what_all_rows_leave_out_of_the_choice_is_a_note() -> None:
    _, session = place()
    sorted_rows = session.rows("books", sort=[Sort("stock")])
    for stream in (sorted_rows.stream(), sorted_rows.batches()):
        async for _ in stream:
            pass
        assert [note.code for note in stream.notes].count("sort-unused") == 1
    assert [note.code for note in (await sorted_rows.page()).notes] == []


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ({"filters": "stock > 1"}, "'stock > 1' is not a filter row"),
        ({"filters": ["stock > 1"]}, "'stock > 1' is not a filter row"),
        ({"filters": Filter("stock", ">", 1)}, "is not a list"),
        ({"sort": ["stock"]}, "'stock' is not a sort"),
        ({"raw": "status:open"}, "raw is 'status:open', which is not a list of texts"),
        ({"raw": [RawQuery("x")]}, "which is not a list of texts"),
        ({"columns": "title"}, "columns is 'title', which is not a list of texts"),
        ({"match": "some"}, "match is 'some'; it can be all or any"),
        ({"span": "-1h"}, "'-1h' is not a span of time"),
        ({"now": "noon"}, "'noon' is not an instant"),
        ({"residual": 0}, "residual is 1 to 10,000 rows, not 0"),
        ({"residual": 10_001}, "residual is 1 to 10,000 rows, not 10001"),
    ],
)
def test_an_argument_that_is_not_what_it_should_be_is_refused_where_the_rows_are_chosen(
    choice: dict[str, Any], reason: str
) -> None:
    _, session = place()
    with pytest.raises(ConfigurationError) as caught:
        session.rows("books", **choice)
    assert reason in caught.value.message


def test_an_argument_that_does_not_exist_and_a_tenant_of_a_driver_without_tenants_are_refused() -> None:
    session = Here(MemoryDriver()).session()
    with pytest.raises(TypeError, match="filtr"):
        session.rows("books", filtr=[])  # type: ignore[call-arg]
    with pytest.raises(UnsupportedOperationError, match="no tenants"):
        session.rows("books", tenant="acme")


async def test_a_cell_of_another_object_is_refused() -> None:
    driver, session = place()
    with pytest.raises(ConfigurationError, match="the key is of a row of 'other', not of 'books'"):
        await session.rows("books").cell(RowKey("other", "7"), "title")
    assert driver.requests == []


def test_a_selection_travels_as_plain_data() -> None:
    _, session = place()
    rows = session.rows(
        "books", filters=[Filter("n", "in", [1, 2]), RawQuery("x")], now="2024-05-01", span=Span(since="-1h")
    )
    again = msgspec.json.decode(msgspec.json.encode(rows.selection), type=RowSelection)
    assert session.select(again) == rows


def test_no_other_public_signature_takes_what_chooses_rows() -> None:
    written = {"load": {"tenant"}}  # where rows go, not which are read
    kinds = (Rows, BlockingRows, Session, BlockingSession)
    public = [
        (name, method)
        for kind in kinds
        for name, method in inspect.getmembers(kind, callable)
        if not name.startswith("_") and name != "rows"
    ]
    public += [
        (name, value) for name in dragoman_dask.__all__ if inspect.isfunction(value := getattr(dragoman_dask, name))
    ]
    public += [(name, getattr(dragoman, name)) for name in ("open", "connect", "load", "undo_lines")]
    for name, function in public:
        taken = CHOICE & set(inspect.signature(function).parameters)
        assert taken <= written.get(name, set()), name
    assert inspect.signature(Rows.page).parameters.keys() >= {"limit", "offset", "cursor"}
