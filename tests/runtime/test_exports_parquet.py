"""Arrow and Parquet files hold the columns of a table, and lose nothing; what they hold is in test_tables_values."""

from __future__ import annotations

import gzip
import io
import json

import anyio.to_thread
import pyarrow as pa
import pytest
from pyarrow import parquet

from dragoman.exports import arrow_parquet as writing
from dragoman.exports.arrow_parquet import ArrowStream, TableReader
from dragoman_api import ExportPart, hookimpl
from dragoman_api.columns import Column, ColumnKind, Description
from dragoman_api.errors import ConfigurationError, ExportError, QueryError
from exporting import Line, breaks_before
from memory_driver import MemoryDriver
from memory_server import BOOKS

N, T, D = ColumnKind.INTEGER, ColumnKind.TEXT, ColumnKind.TIMESTAMP


def column(name, kind, **more):
    return Column(name=name, type=kind.value, kind=kind, path=("row", name), **more)


class Odd(MemoryDriver):
    """Rows of which every other one does not fit, two in a part."""

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=[column("n", N), column("at", D)])

    @hookimpl
    async def export_rows(self, request):
        for at in range(int(request.checkpoint or 0), 10, 2):
            data = b'{"row":{"n":%d,"at":"2024-01-01T00:00:00.00000000%dZ"}}\n{"row":{"n":"%d"}}\n' % (at, at, at + 1)
            yield ExportPart(data=data, rows=2, checkpoint=str(at + 2))


def read(path):
    if ".parquet" in path.suffixes:
        return parquet.read_table(path)
    data = path.read_bytes()
    return pa.ipc.open_stream(gzip.decompress(data) if path.suffix == ".gz" else data).read_all()


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow", "o.arrows", "o.arrow.gz"])
async def test_a_file_has_the_types_of_the_description_and_what_does_not_fit(tmp_path, name):
    result = await Line(Odd())(tmp_path / name)
    table = read(tmp_path / name)
    assert (result.rows, result.format) == (10, "parquet" if "parquet" in name else "arrow")
    assert table.schema.names == ["n", "at", "_misfits"]
    assert table.schema.field("at").type == pa.timestamp("ns", tz="UTC")
    assert table.column("n").to_pylist() == [0, None, 2, None, 4, None, 6, None, 8, None]
    assert table.column("at").cast(pa.int64()).to_pylist()[8] == 1_704_067_200_000_000_008
    assert [each and json.loads(each) for each in table.column("_misfits").to_pylist()] == [
        None if at % 2 == 0 else {"n": str(at)} for at in range(10)
    ]
    assert table.schema.field("_misfits").metadata == {b"values": b"json", b"role": b"misfits"}
    assert table.schema.field("n").metadata[b"type"] == b"integer"
    [note] = result.notes
    assert (note.code, note.column) == ("values-misfit", "n")
    assert note.reason.startswith("5 values")


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow"])
async def test_a_resumed_file_is_the_same_and_counts_all_misfits(tmp_path, name):
    line = Line(Odd())
    line.before = breaks_before(3, QueryError("a shard failed"))
    with pytest.raises(QueryError):
        await line(tmp_path / name)
    assert not (tmp_path / name).exists()
    again = Line(Odd())
    result = await again(tmp_path / name, resume=True)
    assert again.requests[0].checkpoint == "6"
    await Line(Odd())(tmp_path / f"whole{name[1:]}")
    assert read(tmp_path / name).equals(read(tmp_path / f"whole{name[1:]}"))
    assert result.notes[0].reason.startswith("5 values")


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow"])
async def test_a_strict_export_refuses_a_misfit_and_leaves_no_file(tmp_path, name):
    with pytest.raises(ExportError, match="row 2 holds") as caught:
        await Line(Odd())(tmp_path / name, strict=True)
    assert caught.value.code == "values-misfit"
    assert not (tmp_path / name).exists()


async def test_only_typed_files_are_strict(tmp_path):
    with pytest.raises(ConfigurationError, match="Arrow and Parquet"):
        await Line()(tmp_path / "o.csv", strict=True)


async def test_an_arrow_stream_goes_to_a_stream():
    stream = io.BytesIO()
    await Line()(stream, format="arrow", columns=["title"])
    table = pa.ipc.open_stream(stream.getvalue()).read_all()
    assert table.column("title").to_pylist() == [row["title"] for row in BOOKS.values()]


@pytest.fixture
def make(tmp_path):
    """Write a Parquet file of numbered rows, so many in a batch."""

    async def made(rows, *, batch, compression=None, text="x"):
        stream = ArrowStream(TableReader([column("v", N), column("t", T)], described=[]))
        lines = [b'{"row":{"v":%d,"t":"%b"}}\n' % (at, text.encode()) for at in range(rows)]
        parts = [stream.convert(b"".join(lines[at : at + batch])) for at in range(0, rows, batch)]
        source, target = tmp_path / "rows", tmp_path / "x.parquet"
        source.write_bytes(b"".join([stream.head(), *parts, stream.tail()]))
        del lines, parts
        await anyio.to_thread.run_sync(lambda: writing.write_parquet(source, target, compression=compression))
        return parquet.ParquetFile(target)

    return made


async def test_row_groups_are_bounded_and_have_the_compression(make, monkeypatch):
    monkeypatch.setattr(writing, "GROUP_ROWS", 100)
    file = await make(250, batch=50, compression="zstd")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [100, 100, 50]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    file = await make(250, batch=250)
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [100, 100, 50]
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
    assert file.read().column("v").to_pylist() == list(range(250))


async def test_an_empty_export_has_its_columns(make):
    file = await make(0, batch=1)
    assert (file.schema_arrow.field("v").type, file.metadata.num_rows) == (pa.int64(), 0)


async def test_memory_does_not_grow_with_the_rows(make, monkeypatch):
    """120,000 rows in groups of 2,000: no more than one group is in memory."""
    monkeypatch.setattr(writing, "GROUP_ROWS", 2_000)
    peak = 0
    real = parquet.ParquetWriter.write_table

    def write_table(self, *table, **more):
        nonlocal peak
        peak = max(peak, pa.total_allocated_bytes() - before)
        real(self, *table, **more)

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", write_table)
    before = pa.total_allocated_bytes()
    await make(120_000, batch=1_000, text="x" * 200)
    assert 0 < peak < 8_000_000
