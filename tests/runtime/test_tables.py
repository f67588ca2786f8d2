"""A session reads an object as record batches or as a table, with what an export takes."""

from __future__ import annotations

import json
from contextlib import aclosing, closing

import duckdb
import pyarrow as pa
import pytest

import dragoman
import wheelhouse
from dragoman import Filter
from dragoman.settings import Limit
from dragoman_api import ExportPart, hookimpl
from dragoman_api.columns import Column, ColumnKind, Description, Note
from dragoman_api.errors import ConfigurationError, ExportError, QueryError, Refused, UnsupportedOperationError
from dragoman_api.testing.memory_driver import MemoryDriver
from dragoman_api.testing.memory_server import BOOKS
from dragoman_worker.hook_types import HOOKS
from in_process import Here

MEMORY = "from dragoman_api.testing.memory_driver import MemoryDriver as Driver"


class Odd(MemoryDriver):
    """Has an object whose second part holds what its columns do not."""

    @hookimpl
    async def describe_object(self, name):
        if name != "odd":
            return await super().describe_object(name)
        columns = [Column(name="n", type="long", kind=ColumnKind.INTEGER, path=("n",))]
        return Description(object=name, columns=columns)

    @hookimpl
    async def export_rows(self, request):
        if request.object != "odd":
            async for part in super().export_rows(request):
                yield part
            return
        yield ExportPart(data=b'{"n":1}\n{"n":2}\n', rows=2)
        yield ExportPart(data=b'{"n":"3"}\n', rows=1, notes=[Note(code="told", reason="by the driver")])
        if "fails" in (request.tenant or ""):
            raise QueryError("a shard failed")


@pytest.fixture
def here():
    return Here(Odd(part_rows=5), capabilities=("tenants",))


@pytest.fixture
def session(here):
    return here.session()


def notes(table):
    return [(note["code"], note.get("column")) for note in json.loads(table.schema.metadata[b"notes"])]


async def test_a_table_holds_every_row_with_the_types_of_the_description(session):
    table = await session.table("books")
    assert isinstance(table, pa.Table)
    assert table.column("title").to_pylist() == [row["title"] for row in BOOKS.values()]
    assert table.schema.field("title").type == pa.string()
    assert table.schema.names[-1] == "_misfits"
    described = [column.name for column in (await session.describe("books")).columns if column.path]
    assert table.schema.names[:-1] == described


async def test_batches_come_while_the_rows_arrive(session):
    async with aclosing(session.batches("books")) as batches:
        first = await anext(batches)
        assert first.num_rows == 5
        assert sum([batch.num_rows async for batch in batches]) == len(BOOKS) - 5


async def test_a_batch_has_no_more_cells_than_fit_the_memory_whatever_a_part_holds(session, monkeypatch):
    whole = await session.table("books")
    monkeypatch.setattr("dragoman.exports.blocks.CELLS", 2 * (whole.num_columns - 1) + 1)
    async with aclosing(session.batches("books")) as batches:
        found = [batch async for batch in batches]
    assert {batch.num_rows for batch in found} == {1, 2}
    assert pa.Table.from_batches(found).to_pylist() == whole.to_pylist()


async def test_filters_and_columns_are_those_of_an_export(session):
    table = await session.table("books", filters=[Filter("stock", "=", 1)], columns=["title", "id"])
    assert table.schema.names == ["title", "id", "_misfits"]
    wanted = [row["title"] for row in BOOKS.values() if row["stock"] == 1]
    assert table.column("title").to_pylist() == wanted != []
    with pytest.raises(ConfigurationError, match="no column 'nope'"):
        await session.table("books", columns=["nope"])


async def test_an_empty_object_has_its_columns_and_no_rows(session):
    table = await session.table("books", filters=[Filter("stock", "=", 123456)])
    assert (table.num_rows, table.schema.field("title").type) == (0, pa.string())


async def test_a_misfit_is_counted_in_a_note_of_the_table_and_of_the_batches(session):
    table = await session.table("odd")
    assert table.to_pylist() == [
        {"n": 1, "_misfits": None}, {"n": 2, "_misfits": None}, {"n": None, "_misfits": '{"n":"3"}'},
    ]  # fmt: skip
    assert notes(table) == [("told", None), ("values-misfit", "n")]
    async with aclosing(session.batches("odd")) as batches:
        assert [batch.num_rows async for batch in batches] == [2, 1]
    assert [note.code for note in batches.notes] == ["told", "values-misfit"]


async def test_strict_refuses_a_misfit(session):
    async with aclosing(session.batches("odd", strict=True)) as batches:
        assert (await anext(batches)).num_rows == 2
        with pytest.raises(ExportError, match="row 3 holds"):
            await anext(batches)


async def test_an_error_of_the_server_ends_the_table(session):
    with pytest.raises(QueryError, match="a shard failed"):
        await session.table("odd", tenant="fails")


async def test_a_driver_without_tenants_or_revisions_is_not_asked():
    session = Here(MemoryDriver()).session()
    with pytest.raises(UnsupportedOperationError):
        await session.table("books", tenant="x")
    with pytest.raises(UnsupportedOperationError):
        await session.table("books", revision="1")


async def test_limits_hold_for_a_table_as_for_an_export(here):
    with pytest.raises(Refused, match="limit"):
        await here.session(limit=Limit(rows=7)).table("books")


async def test_a_missing_package_is_named_with_the_command_that_installs_it(session, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pyarrow") as caught:
        await session.table("books")
    assert caught.value.hint == "pip install 'dragoman[arrow]'"


def test_the_blocking_connection_has_both(make_runtime):
    make_runtime(wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS]), installed=True)
    with dragoman.connect("memory") as memory:
        table = memory.table("books", columns=["title"])
        with closing(memory.batches("books", columns=["title"])) as batches:
            assert pa.Table.from_batches(list(batches)).equals(table.replace_schema_metadata(None))
        assert table.num_rows == len(BOOKS)
        stream = pa.RecordBatchReader.from_stream(memory.batches("books", columns=["title"]))
        assert stream.read_all().column("title").equals(table.column("title"))


def test_a_library_takes_the_blocking_batches_whole_and_once(make_runtime):
    """DuckDB asks for a stream twice: for the schema first."""
    make_runtime(wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS]), installed=True)
    with dragoman.connect("memory") as memory:
        batches = memory.batches("books", columns=["title"])
        assert duckdb.sql("select count(*) from batches").fetchall() == [(len(BOOKS),)]
        with pytest.raises(ConfigurationError, match="have been read"):
            batches.__arrow_c_stream__()
        batches = memory.batches("books", columns=["title"])
        batches.__arrow_c_stream__()
        assert sum(batch.num_rows for batch in batches) == len(BOOKS)
