"""An export that was interrupted goes on where it is safe, or says why it cannot (E32, promise 8)."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import os
import shutil
from pathlib import Path

import anyio
import pyarrow as pa
import pytest
from backports import zstd
from msgspec import to_builtins
from msgspec.structs import replace
from pyarrow import parquet

from cancelling import cancelled
from dragoman import Filter
from dragoman.exports.checkpoints import read_checkpoint, unfinished
from dragoman_api import hookimpl
from dragoman_api.columns import Note
from dragoman_api.errors import ExportError, QueryError
from dragoman_api.kit import cursors
from exporting import Line, breaks_before
from memory_driver import MemoryDriver
from memory_server import MemoryServer

UNPACK = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".zst": zstd.decompress}


@pytest.fixture(autouse=True)
def checkpoint_after_every_part(monkeypatch):
    monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", 0)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def read(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    if path.suffix == ".arrow":
        return pa.ipc.open_stream(path.read_bytes()).read_all().to_pylist()
    return UNPACK.get(path.suffix, bytes)(path.read_bytes())


async def until_safe(target, number):
    """Wait for a checkpoint, which there must be when a third part is asked for, and a moment longer."""
    with anyio.move_on_after(10 if number > 1 else 0.02):
        while not await anyio.Path(target.with_name(f".{target.name}.checkpoint")).exists():
            await anyio.sleep(0.01)
    await anyio.sleep(0.02)


def snapshot(folder, target):
    """Copy files as one instant could have left them: the checkpoint before the part, which only grows."""
    target.mkdir()
    for path in sorted(folder.glob(".*.checkpoint")) + sorted(folder.glob(".*.part")):
        shutil.copy(path, target)


def rows_before(request):
    """Return the rows that the checkpoint of a request to the driver in memory says are safe."""
    return cursors.unseal(request.checkpoint, cursors.query_of(request), int)


async def interrupted(target, *, notes=lambda number: [], **more):
    """Leave an unfinished export behind, fifteen rows of it safe."""
    line = Line()
    line.notes = notes
    line.before = breaks_before(3, QueryError("a shard failed"))
    with pytest.raises(QueryError):
        await line(target, **more)
    assert not target.exists()


@pytest.mark.parametrize(
    "name",
    [
        "b.ndjson",
        "b.csv",
        "b.json",
        "b.ndjson.gz",
        "b.csv.zst",
        "b.tsv.bz2",
        "b.json.bz2",
        "b.arrow",
        "b.parquet",
    ],
)
async def test_E32_from_whatever_is_on_disk_at_any_moment_exactly_the_rows_come_out(tmp_path, name):
    """Each moment's files are what a kill at that moment leaves: none doubled, none lost."""
    line = Line()
    (tmp_path / "whole").mkdir()

    async def copy(number):
        await until_safe(tmp_path / "whole" / name, number)
        await anyio.to_thread.run_sync(snapshot, tmp_path / "whole", tmp_path / f"moment {number}")

    line.before = copy
    await line(tmp_path / "whole" / name)
    moments = sorted(tmp_path.glob("moment *"))
    assert len(moments) == 5
    resumed = 0
    for moment in moments:
        again = Line()
        if (moment / f".{name}.checkpoint").exists():
            resumed += 1
            safe = json.loads((moment / f".{name}.checkpoint").read_bytes())["rows"]
            result = await again(moment / name, resume=True)
            assert rows_before(again.requests[0]) == safe
            assert (result.resumed, result.rows) == (1, 23)
            assert again.last("export.started").resumed == safe
            assert read(moment / name) == read(tmp_path / "whole" / name)
            assert [*contents(moment)] == [name, f"{name}.manifest.json"]
    assert resumed >= 3


async def test_a_failure_keeps_everything_that_arrived_before_it(tmp_path):
    await interrupted(tmp_path / "b.ndjson")
    kept = json.loads((tmp_path / ".b.ndjson.checkpoint").read_bytes())
    assert kept["rows"] == 15
    line = Line()
    await line(tmp_path / "b.ndjson", resume=True)
    assert rows_before(line.requests[0]) == 15


def notes_on(number):
    """Return as many notes as the part's number, each of its own."""
    return [Note(code="documents-rewritten", reason=f"{number}.{at}") for at in range(number)]


async def test_what_the_driver_noted_on_rows_is_kept_across_runs_and_bounded(tmp_path, monkeypatch):
    await interrupted(tmp_path / "b.ndjson", notes=notes_on)
    line = Line()
    line.notes = notes_on
    result = await line(tmp_path / "b.ndjson", resume=True)
    assert [note.reason for note in result.notes] == ["1.0", "2.0", "2.1", "3.0", "3.1", "3.2", "1.0", "2.0", "2.1"]
    assert json.loads((tmp_path / "b.ndjson.manifest.json").read_bytes())["notes"] == to_builtins(result.notes)
    monkeypatch.setattr("dragoman.exports.export_run.NOTES", 4)
    result = await line(tmp_path / "c.ndjson")
    assert [note.reason for note in result.notes[:-1]] == ["1.0", "2.0", "2.1", "3.0"]
    assert (result.notes[-1].code, len(result.notes)) == ("notes-cut", 5)
    monkeypatch.setattr("dragoman.exports.export_run.NOTES", 6)
    result = await line(tmp_path / "d.ndjson")
    assert [note.code for note in result.notes] == ["documents-rewritten"] * 6 + ["notes-cut"]


async def test_an_export_can_be_interrupted_again_and_again(tmp_path):
    whole, parts = Line(), Line()
    await whole(tmp_path / "whole")
    for time in range(4):
        parts.before = breaks_before(1, QueryError("a shard failed"))
        with pytest.raises(QueryError):
            await parts(tmp_path / "b.ndjson", resume=time > 0)
    parts.before = lambda number: None
    result = await parts(tmp_path / "b.ndjson", resume=True)
    assert (tmp_path / "b.ndjson").read_bytes() == (tmp_path / "whole").read_bytes()
    assert result.resumed == 4


async def test_bytes_behind_the_checkpoint_are_cut_off(tmp_path):
    await interrupted(tmp_path / "b.ndjson")
    with (tmp_path / ".b.ndjson.part").open("ab") as file:
        file.write(b'{"half a row' * 1_000)
    await Line()(tmp_path / "b.ndjson", resume=True)
    assert len([json.loads(line) for line in (tmp_path / "b.ndjson").read_bytes().splitlines()]) == 23


@pytest.mark.parametrize(
    ("more", "difference"),
    [
        ({"name": "scratch"}, "another object"),
        ({"filters": [Filter("stock", "=", 1)]}, "another filter"),
        ({"format": "rows"}, "another format"),
        ({"compress": "gzip"}, "another compression"),
        ({"columns": ["title"]}, "another columns"),
        ({"tenant": "acme"}, "another tenant"),
    ],
)
async def test_another_export_does_not_go_on_with_it(tmp_path, more, difference):
    await interrupted(tmp_path / "b.ndjson")
    before = contents(tmp_path)
    with pytest.raises(ExportError, match=difference) as caught:
        await Line()(tmp_path / "b.ndjson", resume=True, **more)
    assert caught.value.code == "resume-refused"
    assert contents(tmp_path) == before


def shorten(folder):
    with (folder / ".b.ndjson.part").open("r+b") as file:
        file.truncate(10)


def alter(folder):
    with (folder / ".b.ndjson.part").open("r+b") as file:
        file.write(b'{"Title"')


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (shorten, "has 10 bytes"),
        (alter, "was changed since"),
        (lambda folder: (folder / ".b.ndjson.part").unlink(), "has 0 bytes"),
        (lambda folder: (folder / ".b.ndjson.checkpoint").unlink(), "no readable checkpoint"),
        (lambda folder: (folder / ".b.ndjson.checkpoint").write_bytes(b'{"version":1,'), "no readable checkpoint"),
        (lambda folder: (folder / ".b.ndjson.checkpoint").write_bytes(b'{"version":0}'), "no readable checkpoint"),
        (lambda folder: (folder / ".b.ndjson.checkpoint").write_bytes(b'{"part":"\xff"'), "no readable checkpoint"),
        (
            lambda folder: (folder / ".b.ndjson.checkpoint").write_bytes(b'{"identity":{"a":' + b"[" * 50_000),
            "no readable checkpoint",
        ),
    ],
)
async def test_what_lies_there_and_does_not_fit_is_refused_and_left_alone(tmp_path, spoil, reason):
    await interrupted(tmp_path / "b.ndjson")
    spoil(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ExportError, match=reason) as caught:
        await Line()(tmp_path / "b.ndjson", resume=True)
    assert caught.value.code == "resume-refused"
    assert caught.value.hint == "export without --resume to start again"
    assert contents(tmp_path) == before


async def test_the_formulas_before_an_interruption_are_counted_as_well(tmp_path):
    server = MemoryServer()
    for row in server.objects["books"].values():
        row["title"] = "=1"
    line = Line(MemoryDriver(server, part_rows=5))
    line.before = breaks_before(3, QueryError("a shard failed"))
    with pytest.raises(QueryError):
        await line(tmp_path / "b.csv")
    result = await line(tmp_path / "b.csv", resume=True)
    assert [note.reason[:8] for note in result.notes if note.code == "formulas-kept"] == ["23 cells"]


async def test_a_checkpoint_that_names_no_formulas_and_no_notes_has_none(tmp_path):
    await interrupted(tmp_path / "b.ndjson")
    path = tmp_path / ".b.ndjson.checkpoint"
    kept = json.loads(path.read_bytes())
    path.write_text(json.dumps({name: value for name, value in kept.items() if name not in ("formulas", "notes")}))
    found = await anyio.to_thread.run_sync(read_checkpoint, path)
    assert (found.rows, found.formulas, found.notes) == (kept["rows"], 0, [])


async def test_an_export_is_unfinished_while_its_checkpoint_can_be_read(tmp_path):
    await interrupted(tmp_path / "b.ndjson")
    for path, expected in ((tmp_path / "b.ndjson", True), (tmp_path / "c.ndjson", False), (Path("/"), False)):
        assert await anyio.to_thread.run_sync(unfinished, path) == expected


async def test_a_checkpoint_is_for_its_owner_alone(tmp_path):
    """It holds the filter."""
    await interrupted(tmp_path / "x.ndjson")
    assert (tmp_path / ".x.ndjson.checkpoint").stat().st_mode & 0o777 == 0o600


async def test_the_checkpoint_of_another_user_is_not_continued(tmp_path):
    if os.geteuid():
        pytest.skip("only root can give a file away")
    await interrupted(tmp_path / "b.ndjson")
    os.chown(tmp_path / ".b.ndjson.checkpoint", 65534, -1)
    with pytest.raises(ExportError) as caught:
        await Line()(tmp_path / "b.ndjson", resume=True)
    assert caught.value.code == "resume-refused"


async def test_there_may_be_nothing_to_resume(tmp_path):
    with pytest.raises(ExportError, match="no readable checkpoint") as caught:
        await Line()(tmp_path / "b.ndjson", resume=True)
    assert caught.value.code == "resume-refused"
    assert contents(tmp_path) == {}


async def test_what_the_server_has_lost_is_its_own_refusal_and_deletes_nothing(tmp_path):
    await interrupted(tmp_path / "b.ndjson")
    before = contents(tmp_path)
    line = Line()
    line.before = breaks_before(0, QueryError("the point in time is gone", hint="export anew"))
    with pytest.raises(QueryError, match="gone") as caught:
        await line(tmp_path / "b.ndjson", resume=True)
    assert caught.value.hint == "export anew"
    assert contents(tmp_path) == before


async def test_an_export_that_fails_at_once_takes_no_older_ones_place(tmp_path):
    await interrupted(tmp_path / "b.ndjson")
    before = contents(tmp_path)
    line = Line()
    line.before = breaks_before(0, QueryError("refused"))
    with pytest.raises(QueryError):
        await line(tmp_path / "b.ndjson")
    assert contents(tmp_path) == before
    line.before = breaks_before(0, QueryError("refused"))
    with pytest.raises(QueryError):
        await line(tmp_path / "other")
    assert contents(tmp_path) == before


async def test_a_long_making_of_parquet_can_be_interrupted_and_is_resumed_without_the_server(tmp_path, monkeypatch):
    import time

    monkeypatch.setattr("dragoman.exports.arrow_parquet.GROUP_ROWS", 1)
    real, written = parquet.ParquetWriter.write_table, []

    def slow(self, table, **more):
        written.append(table)
        time.sleep(0.3)
        real(self, table, **more)

    with monkeypatch.context() as patch:
        patch.setattr(parquet.ParquetWriter, "write_table", slow)
        await cancelled(Line()(tmp_path / "b.parquet"), when=lambda: len(written) >= 2)
    assert len(written) < 10, "of 23"
    line = Line()
    await line(tmp_path / "b.parquet", resume=True)
    assert line.requests == []
    assert parquet.read_table(tmp_path / "b.parquet").num_rows == 23


async def test_without_being_asked_to_go_on_an_export_begins_anew_and_says_what_it_replaces(tmp_path, monkeypatch):
    await interrupted(tmp_path / "b.ndjson")
    monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", 60)
    line = Line()
    there = []

    async def look():
        there.append(await anyio.Path(tmp_path / ".b.ndjson.checkpoint").exists())

    line.before = lambda number: look() if number == 4 else None
    await line(tmp_path / "b.ndjson", format="csv", columns=["id"])
    assert there == [False], "the old checkpoint says nothing about the new part"
    assert len((tmp_path / "b.ndjson").read_bytes().splitlines()) == 24
    assert line.last("export.started").replaced == 15
    assert line.requests[0].checkpoint is None
    await line(tmp_path / "b.ndjson")
    assert line.last("export.started").replaced is None


async def test_a_checkpoint_is_written_after_the_data_it_speaks_of(tmp_path, monkeypatch):
    """What it counts is on the disk before it: fsync of the part, then the checkpoint."""
    import os

    from dragoman_registry import files

    order = []
    real_fsync, real_write = os.fsync, files.write
    part = tmp_path / ".b.ndjson.part"

    def fsync(handle):
        if part.exists() and os.path.samestat(os.fstat(handle), part.stat()):
            order.append(("part", part.stat().st_size))
        real_fsync(handle)

    def write(path, data, **more):
        if path.name.endswith(".checkpoint"):
            order.append(("checkpoint", json.loads(data)["offset"]))
        real_write(path, data, **more)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(files, "write", write)
    await interrupted(tmp_path / "b.ndjson")
    marks = [at for at, (kind, _) in enumerate(order) if kind == "checkpoint"]
    assert marks
    for at in marks:
        assert order[at - 1][0] == "part"
        assert order[at - 1][1] >= order[at][1]


async def test_a_checkpoint_that_may_not_be_on_the_disk_is_not_left_without_its_part(tmp_path, monkeypatch):
    from dragoman_registry import files

    real_write = files.write

    def write(path, data, **more):
        real_write(path, data, **more)
        raise OSError(errno.EIO, "its folder cannot be synced")

    monkeypatch.setattr(files, "write", write)
    with pytest.raises(ExportError, match="cannot be synced"):
        await Line()(tmp_path / "b.ndjson")
    assert contents(tmp_path) == {}


async def test_checkpoints_are_not_written_for_every_part(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", 60)
    line = Line()
    there = []

    async def look(number):
        there.append(await anyio.Path(tmp_path / ".b.ndjson.checkpoint").exists())

    line.before = look
    await line(tmp_path / "b.ndjson")
    assert there == [False] * 5


async def test_a_stream_has_no_checkpoints(tmp_path):
    stream = io.BytesIO()
    result = await Line()(stream, compress="gzip")
    assert result.rows == 23
    assert gzip.decompress(stream.getvalue()).count(b"\n") == 23


async def test_a_finished_stream_of_a_parquet_file_needs_the_server_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", 60)

    def broken(*args, **more):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("dragoman.exports.arrow_parquet.write_parquet", broken)
        with pytest.raises(ExportError, match="No space left"):
            await Line()(tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet").exists()
    line = Line()
    await line(tmp_path / "b.parquet", resume=True)
    assert line.requests == []
    assert parquet.read_table(tmp_path / "b.parquet").num_rows == 23


@pytest.mark.parametrize("name", ["b.ndjson", "b.csv.gz"])
async def test_a_disk_that_is_full_keeps_the_checkpoint_before(tmp_path, monkeypatch, name):
    """What a failed write left behind, half in a compressor and half on disk, is not taken for safe."""
    from dragoman.exports.target_files import FileTarget

    real, left = FileTarget.write, [8 if name.endswith("gz") else 4]

    def write(self, data):
        left[0] -= 1
        if left[0] == 0:
            real(self, data[: len(data) // 2])
            with self.guarding():
                raise OSError(28, "No space left on device")
        real(self, data)

    line = Line()
    line.before = lambda number: until_safe(tmp_path / name, number)
    with monkeypatch.context() as patch:
        patch.setattr(FileTarget, "write", write)
        with pytest.raises(ExportError, match="No space left"):
            await line(tmp_path / name)
    saved = json.loads((tmp_path / f".{name}.checkpoint").read_bytes())
    assert saved["rows"] in (5, 10, 15)
    await line(tmp_path / name, resume=True)
    await Line()(tmp_path / f"whole-{name}")
    assert read(tmp_path / name) == read(tmp_path / f"whole-{name}")


def refuse_once(patch, final):
    """Make the first move to the final name fail, as it does where another program holds the file open."""
    real, left = Path.replace, [PermissionError(13, "in use")]

    def replace(self, target):
        if target == final and left:
            raise left.pop()
        return real(self, target)

    patch.setattr(Path, "replace", replace)


def cancel_before_the_end(patch, scope):
    """Cancel once every byte is written and before the file gets its name."""
    from dragoman.exports.export_run import Export

    real = Export._make

    def make(self):
        real(self)
        anyio.from_thread.run_sync(scope.cancel)

    patch.setattr(Export, "_make", make)


@pytest.mark.parametrize("reason", ["refused", "cancelled"])
@pytest.mark.parametrize("seconds", [0, 60])
@pytest.mark.parametrize("name", ["b.json", "b.json.gz", "b.json.zst", "b.csv", "b.tsv.bz2", "b.ndjson.gz"])
async def test_what_failed_after_its_last_byte_gets_no_second_ending(tmp_path, monkeypatch, name, seconds, reason):
    monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", seconds)
    with monkeypatch.context() as patch:
        if reason == "cancelled":
            with anyio.CancelScope() as scope:
                cancel_before_the_end(patch, scope)
                await Line()(tmp_path / name)
            assert scope.cancelled_caught
        else:
            refuse_once(patch, tmp_path / name)
            with pytest.raises(ExportError, match="in use"):
                await Line()(tmp_path / name)
    line = Line()
    result = await line(tmp_path / name, resume=True)
    assert rows_before(line.requests[0]) == 23, "nothing is sent again"
    assert (result.rows, result.resumed) == (23, 1)
    await Line()(tmp_path / f"whole-{name}")
    assert read(tmp_path / name) == read(tmp_path / f"whole-{name}")


def breaks_once_all_rows_came(patch, line):
    """Make the first write after the last row fail half way, as a limit on the size of files does."""
    from dragoman.exports.target_files import FileTarget

    real = FileTarget.write

    def write(self, data):
        if data and any(event.name == "export.progressed" and event.rows == 23 for event in line.seen):
            real(self, data[: len(data) // 2])
            with self.guarding():
                raise OSError(27, "File too large")
        real(self, data)

    patch.setattr(FileTarget, "write", write)


@pytest.mark.parametrize("name", ["b.ndjson.bz2", "b.ndjson.gz", "b.csv.zst", "b.json", "b.json.bz2"])
async def test_rows_that_the_compressor_still_held_when_the_last_write_failed_are_not_taken_for_safe(
    tmp_path, monkeypatch, name
):
    line = Line()

    async def rare(number):
        await until_safe(tmp_path / name, number)
        if number == 3:
            monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", 60)

    line.before = rare
    with monkeypatch.context() as patch:
        breaks_once_all_rows_came(patch, line)
        with pytest.raises(ExportError, match="File too large"):
            await line(tmp_path / name)
    saved = json.loads((tmp_path / f".{name}.checkpoint").read_bytes())
    assert saved["rows"] == 23 if name == "b.json" else saved["rows"] in (5, 10, 15)
    result = await Line()(tmp_path / name, resume=True)
    assert result.rows == 23
    await Line()(tmp_path / f"whole-{name}")
    assert read(tmp_path / name) == read(tmp_path / f"whole-{name}")


@pytest.mark.parametrize("name", ["b.ndjson.bz2", "b.ndjson.gz", "b.ndjson.zst"])
async def test_a_last_write_that_fails_before_any_checkpoint_leaves_nothing(tmp_path, monkeypatch, name):
    monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", 60)
    line = Line()
    breaks_once_all_rows_came(monkeypatch, line)
    with pytest.raises(ExportError, match="File too large"):
        await line(tmp_path / name)
    assert contents(tmp_path) == {}


class Broken(MemoryDriver):
    """The last row of its third part cannot be read."""

    @hookimpl
    async def export_rows(self, request):
        number = 0
        async for part in super().export_rows(request):
            number += 1
            before = part.data[:-1].rpartition(b"\n")[0]
            yield replace(part, data=before + b"\n[]\n") if number == 3 else part


@pytest.mark.parametrize("name", ["b.csv", "b.arrow"])
async def test_a_part_that_breaks_in_its_last_block_is_read_again_whole(tmp_path, monkeypatch, name):
    """Its first rows are in the file when the export fails."""
    monkeypatch.setattr("dragoman.exports.values.CELLS", 1)
    await Line()(tmp_path / f"whole.{name}")
    with pytest.raises(ExportError, match="cannot be read"):
        await Line(Broken(part_rows=5))(tmp_path / name)
    await Line()(tmp_path / name, resume=True)
    assert read(tmp_path / name) == read(tmp_path / f"whole.{name}")
