"""A session reads an object as record batches or as a table, with what an export takes."""

from __future__ import annotations

import json
from contextlib import aclosing, closing

import pyarrow as pa
import pytest

import dragoman
import wheelhouse
from dragoman import FileFormat, Filter
from dragoman.sessions.whole_reads import LOOK_ROWS
from dragoman.settings import Limit
from dragoman_api import ExportPart, Json, Page, hookimpl
from dragoman_api.cells import MISSING
from dragoman_api.columns import Column, ColumnKind, Description, Note
from dragoman_api.errors import ConfigurationError, ExportError, QueryError, Refused, UnsupportedOperationError
from dragoman_api.exports import ExportSplit
from dragoman_api.installation import add_command
from dragoman_worker.hooks_and_deadlines import HOOKS
from in_process import Here
from memory_driver import MemoryDriver
from memory_server import BOOKS

MEMORY = "from .memory_driver import MemoryDriver as Driver"


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
    table = await session.rows("books").table()
    assert isinstance(table, pa.Table)
    assert table.column("title").to_pylist() == [row["title"] for row in BOOKS.values()]
    assert table.schema.field("title").type == pa.string()
    assert table.schema.names[-1] == "_misfits"
    described = [column.name for column in (await session.describe("books")).columns if column.path]
    assert table.schema.names[:-1] == described


async def test_batches_come_while_the_rows_arrive(session):
    async with aclosing(session.rows("books").batches()) as batches:
        first = await anext(batches)
        assert first.num_rows == 5
        assert sum([batch.num_rows async for batch in batches]) == len(BOOKS) - 5


async def test_a_batch_has_no_more_cells_than_fit_the_memory_whatever_a_part_holds(session, monkeypatch):
    whole = await session.rows("books").table()
    monkeypatch.setattr("dragoman.exports.values.CELLS", 2 * (whole.num_columns - 1) + 1)
    async with aclosing(session.rows("books").batches()) as batches:
        found = [batch async for batch in batches]
    assert {batch.num_rows for batch in found} == {1, 2}
    assert pa.Table.from_batches(found).to_pylist() == whole.to_pylist()


async def test_filters_and_columns_are_those_of_an_export(session):
    table = await session.rows("books", filters=[Filter("stock", "=", 1)], columns=["title", "id"]).table()
    assert table.schema.names == ["title", "id", "_misfits"]
    wanted = [row["title"] for row in BOOKS.values() if row["stock"] == 1]
    assert table.column("title").to_pylist() == wanted != []
    with pytest.raises(ConfigurationError, match="no column 'nope'"):
        await session.rows("books", columns=["nope"]).table()


async def test_an_empty_object_has_its_columns_and_no_rows(session):
    table = await session.rows("books", filters=[Filter("stock", "=", 123456)]).table()
    assert (table.num_rows, table.schema.field("title").type) == (0, pa.string())


async def test_a_misfit_is_counted_in_a_note_of_the_table_and_of_the_batches(session):
    table = await session.rows("odd").table()
    assert table.to_pylist() == [
        {"n": 1, "_misfits": None}, {"n": 2, "_misfits": None}, {"n": None, "_misfits": '{"n":"3"}'},
    ]  # fmt: skip
    assert notes(table) == [("told", None), ("values-misfit", "n")]
    async with aclosing(session.rows("odd").batches()) as batches:
        assert [batch.num_rows async for batch in batches] == [2, 1]
    assert [note.code for note in batches.notes] == ["told", "values-misfit"]


@pytest.mark.parametrize("content", ["csv", FileFormat("arrow", compression="gzip"), FileFormat(escape=True)])
async def test_a_table_in_memory_is_no_file_of_another_format(session, content):
    for read in (session.rows("odd").batches, session.rows("odd").table):
        with pytest.raises(ConfigurationError, match="a table in memory is of the format arrow"):
            await read(format=content)


class Several(MemoryDriver):
    """Has an object whose rows hold one value or several, and says of which columns; counts the looks at it."""

    def __init__(self, *documents, fails=False):
        super().__init__()
        self.documents, self.fails, self.looks = documents, fails, []

    @hookimpl
    async def describe_object(self, name):
        columns = [
            Column(name=name, type=kind.value, kind=kind, path=(name,), multiple=multiple)
            for name, kind, multiple in (
                ("tags", ColumnKind.TEXT, True), ("n", ColumnKind.INTEGER, True), ("one", ColumnKind.TEXT, False),
            )
        ]  # fmt: skip
        return Description(object=name, columns=columns)

    @hookimpl
    async def fetch_page(self, request):
        self.looks.append(request)
        if self.fails:
            raise QueryError("no page")
        columns = [each for each in (await self.describe_object("")).columns if each.name in request.columns]
        found = self.documents[: request.limit]
        rows = [[document.get(each.name, MISSING) for each in columns] for document in found]
        cells = [[Json(json.dumps(each)) if isinstance(each, list) else each for each in row] for row in rows]
        return Page(columns=columns, cells=cells, keys=[])

    @hookimpl
    async def split_export(self, request):
        return ExportSplit(shares=[""] * request.shares, total=len(self.documents))

    @hookimpl
    async def export_rows(self, request):
        data = b"".join(json.dumps(each).encode() + b"\n" for each in self.documents)
        yield ExportPart(data=data, rows=len(self.documents))


DOCUMENTS = [{"tags": ["a", "b"], "n": 1, "one": "x"}, {"tags": "c", "n": None}, {"tags": ["d"]}, {"tags": ["e"]}]


async def test_arrays_in_the_first_rows_make_a_column_one_of_lists():
    driver = Several(*DOCUMENTS)
    table = await Here(driver).session().rows("things").table()
    assert table.schema.field("tags").type == pa.list_(pa.string())
    assert table.schema.field("n").type == pa.int64()
    assert table.to_pylist()[:3] == [
        {"tags": ["a", "b"], "n": 1, "one": "x", "_misfits": None},
        {"tags": ["c"], "n": None, "one": None, "_misfits": '{"tags":"c"}'},
        {"tags": ["d"], "n": None, "one": None, "_misfits": None},
    ]
    [note] = json.loads(table.schema.metadata[b"notes"])
    assert note["code"] == "lists-found"
    assert note["reason"] == "read as lists, since some of the first 4 rows hold arrays there: tags"
    [look] = driver.looks
    assert (look.limit, look.columns, look.total) == (LOOK_ROWS, ["tags", "n"], False)


class Watching:
    """Notes which object every call is about."""

    def __init__(self):
        self.calls = []

    @hookimpl
    async def before_call(self, call):
        self.calls.append((call.hook, call.object))


async def test_the_look_is_at_the_rows_of_the_filter_and_of_the_tenant():
    driver, watching = Several(*DOCUMENTS), Watching()
    here = Here(driver, watching, capabilities=("tenants",))
    await here.session().rows("things", tenant="t", columns=["tags"]).table()
    assert watching.calls == [(hook, "things") for hook in ("describe_object", "fetch_page", "export_rows")]
    [look] = driver.looks
    assert (look.tenant, look.columns) == ("t", ["tags"])


async def test_named_columns_are_lists_and_nothing_is_looked_at():
    driver = Several(*DOCUMENTS)
    table = await Here(driver).session().rows("things").table(format=FileFormat("arrow", lists=["n"]))
    assert table.schema.field("n").type == pa.list_(pa.int64())
    assert table.schema.field("tags").type == pa.string()
    assert table.column("n").to_pylist() == [[1], None, None, None]
    assert notes(table) == [("values-misfit", "tags")]
    assert "lists" in json.loads(table.schema.metadata[b"notes"])[0]["hint"]
    assert driver.looks == []
    plain = await Here(driver).session().rows("things").table(format=FileFormat(lists=[]))
    assert (plain.schema.field("n").type, driver.looks) == (pa.int64(), [])


@pytest.mark.parametrize(("name", "match"), [("one", "cannot be one of lists"), ("nope", "no column of the table")])
async def test_a_column_that_cannot_be_one_of_lists_is_refused(name, match):
    with pytest.raises(ConfigurationError, match=match):
        await Here(Several(*DOCUMENTS)).session().rows("things").table(format=FileFormat(lists=[name]))


async def test_a_look_that_fails_leaves_the_columns_as_they_are_and_says_so():
    table = await Here(Several(*DOCUMENTS, fails=True)).session().rows("things").table()
    assert table.schema.field("tags").type == pa.string()
    assert notes(table) == [("lists-unknown", None), ("values-misfit", "tags")]


async def test_rows_without_arrays_change_nothing_and_say_nothing():
    table = await Here(Several({"tags": "a", "n": 1})).session().rows("things").table()
    assert table.schema.field("tags").type == pa.string()
    assert notes(table) == []


async def test_a_split_decides_the_lists_once_for_all_parts():
    driver = Several(*DOCUMENTS)
    session = Here(driver).session()
    split = await session.rows("things").split(parts=2, format="arrow")
    assert [note.code for note in split.notes] == ["lists-found"]
    driver.documents = ({"tags": "a"},)
    for number in range(len(split.shares)):
        async with aclosing(session.rows(split.request.object).part_batches(split, number=number)) as batches:
            assert [batch.schema.field("tags").type async for batch in batches] == [pa.list_(pa.string())]
    assert len(driver.looks) == 1
    assert split.identity()["choice of lists"] == [("tags", "array")]
    for lists in (["tags", "n"], []):
        split = await session.rows("things").split(parts=2, format=FileFormat("arrow", lists=lists))
        assert split.identity()["choice of lists"] == [(name, "array") for name in lists]


async def test_a_resumed_export_keeps_the_lists_that_its_first_run_found(tmp_path):
    file = tmp_path / "o.arrow"

    class Broken(Several):
        @hookimpl
        async def export_rows(self, request):
            if request.checkpoint is None:
                yield ExportPart(data=b'{"tags":["a","b"]}\n', rows=1, checkpoint="1")
                raise QueryError("a shard failed")
            yield ExportPart(data=b'{"tags":["c"]}\n', rows=1, checkpoint="2")

    driver = Broken(*DOCUMENTS)
    session = Here(driver).session()
    with pytest.raises(QueryError, match="a shard failed"):
        await session.rows("things").export(to=file)
    driver.documents = ({"tags": "a"},)
    with pytest.raises(ExportError, match="has another lists"):
        await session.rows("things").export(to=file, resume=True, format=FileFormat(lists=[]))
    await session.rows("things").export(to=file, resume=True)
    table = pa.ipc.open_stream(file.read_bytes()).read_all()
    assert table.column("tags").to_pylist() == [["a", "b"], ["c"]]
    assert len(driver.looks) == 1


async def test_lists_of_a_file_without_types_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="only the columns of Arrow and Parquet"):
        await (
            Here(Several(*DOCUMENTS))
            .session()
            .rows("things")
            .export(to=tmp_path / "o.csv", format=FileFormat(lists=["tags"]))
        )


async def test_strict_refuses_a_misfit(session):
    async with aclosing(session.rows("odd").batches(format=FileFormat(strict=True))) as batches:
        assert (await anext(batches)).num_rows == 2
        with pytest.raises(ExportError, match="row 3 holds"):
            await anext(batches)


async def test_an_error_of_the_server_ends_the_table(session):
    with pytest.raises(QueryError, match="a shard failed"):
        await session.rows("odd", tenant="fails").table()


async def test_a_driver_without_tenants_or_revisions_is_not_asked():
    session = Here(MemoryDriver()).session()
    with pytest.raises(UnsupportedOperationError):
        await session.rows("books", tenant="x").table()
    with pytest.raises(UnsupportedOperationError):
        await session.rows("books", revision="1").table()


async def test_limits_hold_for_a_table_as_for_an_export(here):
    with pytest.raises(Refused, match="limit"):
        await here.session(limit=Limit(rows=7)).rows("books").table()


async def test_a_missing_package_is_named_with_the_command_that_installs_it(session, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pyarrow") as caught:
        await session.rows("books").table()
    assert caught.value.hint == add_command("dragoman[arrow]")


def test_the_blocking_connection_has_both(make_runtime):
    make_runtime(wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS]), installed=True)
    with dragoman.connect("memory") as memory:
        table = memory.rows("books", columns=["title"]).table()
        with closing(memory.rows("books", columns=["title"]).batches()) as batches:
            assert pa.Table.from_batches(list(batches)).equals(table.replace_schema_metadata(None))
        assert table.num_rows == len(BOOKS)
        stream = pa.RecordBatchReader.from_stream(memory.rows("books", columns=["title"]).batches())
        assert stream.read_all().column("title").equals(table.column("title"))


def test_a_library_takes_the_blocking_batches_whole_and_once(make_runtime):
    """DuckDB asks for a stream twice: for the schema first."""
    import duckdb

    make_runtime(wheelhouse.Driver("memory", code=MEMORY, hooks=[*HOOKS]), installed=True)
    with dragoman.connect("memory") as memory:
        batches = memory.rows("books", columns=["title"]).batches()
        assert duckdb.sql("select count(*) from batches").fetchall() == [(len(BOOKS),)]
        with pytest.raises(ConfigurationError, match="have been read"):
            batches.__arrow_c_stream__()
        batches = memory.rows("books", columns=["title"]).batches()
        batches.__arrow_c_stream__()
        assert sum(batch.num_rows for batch in batches) == len(BOOKS)
