"""Exports in parts: one folder that is complete once it has a manifest, or that another run continues."""

from __future__ import annotations

import gzip
import hashlib
import inspect
import json
import os
from contextlib import asynccontextmanager
from itertools import product

import anyio
import msgspec
import pyarrow as pa
import pytest

import dragoman
import dragoman_dask
from dragoman import FileFormat, Filter
from dragoman.sessions.splits import Split
from dragoman_api.errors import ConfigurationError, ExportError, QueryError
from dragoman_dask.folder_target import FolderTarget
from dragoman_registry import files
from memory_in_parts import CODE, fill
from slow_cases import mostly_slow

NO_SNAPSHOT = """
from dragoman_api import Note, hookimpl
from dragoman_api.exports import NO_SNAPSHOT
from .memory_driver import MemoryDriver
from msgspec.structs import replace


class Driver(MemoryDriver):
    @hookimpl
    async def split_export(self, request):
        made = await super().split_export(request)
        note = Note(code=NO_SNAPSHOT, reason="nothing is held")
        return replace(made, snapshot="", total=made.total + 1, notes=[note])
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def lines(folder):
    return sorted(line for path in folder.glob("part-*") for line in path.read_bytes().splitlines())


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


async def test_the_parts_are_the_whole_and_the_manifest_describes_them(open_memory, tmp_path):
    async with open_memory() as runtime, runtime.open("memory") as session:
        whole = tmp_path / "whole.ndjson"
        await session.rows("books").export(to=whole)
        result = await dragoman_dask.export(session.rows("books"), to=tmp_path / "books", parts=5)
    folder = tmp_path / "books"
    assert names(folder) == ["manifest.json", *(f"part-{number:05}.ndjson" for number in range(5))]
    assert lines(folder) == sorted(whole.read_bytes().splitlines())
    told = manifest(folder)
    assert told == msgspec.to_builtins(result)
    assert (told["rows"], told["total"], told["snapshot"], told["object"]) == (23, 23, True, "books")
    for part in told["parts"]:
        data = (folder / part["file"]).read_bytes()
        assert (part["rows"], part["bytes"]) == (data.count(b"\n"), len(data))
        assert part["sha256"] == hashlib.sha256(data).hexdigest()
    kinds = [event.name for event in runtime.seen if event.name.startswith("export.")]
    assert kinds.count("export.started") == kinds.count("export.finished") == 2  # a part is no export of its own
    assert kinds[-1] == "export.finished"
    assert runtime.seen[-2].rows == 23


@pytest.mark.parametrize(
    ("kind", "compress"),
    mostly_slow(
        product(["ndjson", "csv", "parquet"], [None, "gzip", "zstd"]), fast=[("csv", "gzip"), ("parquet", "zstd")]
    ),
)
async def test_a_repetition_has_the_same_bytes(open_memory, tmp_path, kind, compress):
    async with open_memory() as runtime, runtime.open("memory") as session:
        for name in ("a", "b"):
            await dragoman_dask.export(
                session.rows("books"), to=tmp_path / name, parts=3, format=FileFormat(kind, compression=compress)
            )
    digests = [[part["sha256"] for part in manifest(tmp_path / name)["parts"]] for name in ("a", "b")]
    assert digests[0] == digests[1]
    assert names(tmp_path / "a") == names(tmp_path / "b")


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 3])
async def test_no_more_parts_are_under_way_than_wanted(open_memory, tmp_path, at_once):
    seen = []

    async def look():
        while True:
            seen.append(await anyio.to_thread.run_sync(lambda: len(list((tmp_path / "d").glob(".part-*.part")))))

    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 60)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            await dragoman_dask.export(session.rows("scratch"), to=tmp_path / "d", parts=40, at_once=at_once)
            tasks.cancel_scope.cancel()
    assert 1 <= max(seen) <= at_once
    assert manifest(tmp_path / "d")["rows"] == 60


async def test_files_are_named_after_format_and_compression(open_memory, tmp_path):
    async with open_memory() as runtime, runtime.open("memory") as session:
        await dragoman_dask.export(
            session.rows("books", columns=["id"]),
            to=tmp_path / "d",
            parts=2,
            format=FileFormat("csv", compression="gzip"),
        )
    assert names(tmp_path / "d") == ["manifest.json", "part-00000.csv.gz", "part-00001.csv.gz"]
    assert gzip.decompress((tmp_path / "d" / "part-00001.csv.gz").read_bytes()).splitlines()[0] == b"id"


async def test_parts_are_of_one_snapshot_and_go_by_the_filter(open_memory, tmp_path):
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 12)
        split = await session.rows("scratch", filters=[Filter("title", "contains", "1")]).split(parts=2)
        await fill(session, 4)
        split = msgspec.json.decode(msgspec.json.encode(split), type=Split)
        parts = [
            await session.rows("scratch").part(split, number=number, to=tmp_path / split.file(number))
            for number in (1, 0)
        ]
        assert sum(part.rows for part in parts) == split.total == 3  # 1, 10, 11
        assert await session.rows("scratch").hold(split, seconds=60)
        assert await session.rows("scratch").hold(split, seconds=0)
        assert not await session.rows("scratch").hold(split, seconds=60)
        with pytest.raises(ConfigurationError, match="the split is of 'scratch', not of 'books'"):
            await session.rows("books").hold(split, seconds=0)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 10])
async def test_there_are_no_more_parts_than_rows(open_memory, tmp_path, rows):
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, rows)
        result = await dragoman_dask.export(session.rows("scratch"), to=tmp_path / "d", parts=100)
    assert (len(result.parts), result.rows) == (max(rows, 1), rows)


async def test_a_failed_export_continues_with_the_missing_parts_only(open_memory, tmp_path):
    folder = tmp_path / "d"
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 12)
        with pytest.raises(QueryError, match="a shard failed") as caught:
            await dragoman_dask.export(session.rows("scratch"), to=folder, parts=4, at_once=1)
        assert "resume=True" in caught.value.hint
        failed = runtime.seen[-1]
        assert (failed.name, failed.code, failed.object, failed.target) == (
            "export.failed", caught.value.code, "scratch", str(folder)
        )  # fmt: skip
        assert names(folder) == [".export.done", ".export.json", "part-00000.ndjson", "part-00001.ndjson"]
        kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}
        (folder / "part-00001.ndjson").write_bytes(b"damaged")
        await fill(session, 3)  # the snapshot does not hold these
        with pytest.raises(ExportError, match="another number of parts"):
            await dragoman_dask.export(session.rows("scratch"), to=folder, parts=3, resume=True)
        result = await dragoman_dask.export(session.rows("scratch"), to=folder, parts=4, resume=True)
    assert result.rows == 12
    assert names(folder)[0] == "manifest.json"
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert after["part-00000.ndjson"] == kept["part-00000.ndjson"]
    assert after["part-00001.ndjson"] != kept["part-00001.ndjson"]
    assert len(set(lines(folder))) == 12


async def test_the_plan_of_another_user_is_not_continued(open_memory, tmp_path):
    if os.geteuid():
        pytest.skip("only root can give a file away")
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / ".export.json").write_bytes(b"{}")
    os.chown(folder / ".export.json", 65534, -1)
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ExportError, match="belongs to another user") as caught:
            await dragoman_dask.export(session.rows("books"), to=folder, parts=2, resume=True)
    assert caught.value.code == "resume-refused"
    assert [path.name for path in folder.iterdir()] == [".export.json"]


async def test_the_batches_of_all_parts_are_the_table(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        whole = await session.rows("books").table()
        split = await session.rows("books").split(parts=3, format="arrow")
        batches = [
            batch for number in (2, 0, 1) async for batch in session.rows("books").part_batches(split, number=number)
        ]
        found = pa.Table.from_batches(batches)
        assert found.schema.equals(whole.schema)
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, whole.to_pylist()))
        documents = await session.rows("books").split(parts=3)
        with pytest.raises(ConfigurationError, match="the format documents has no columns with types"):
            await anext(session.rows("books").part_batches(documents, number=0))
        with pytest.raises(ConfigurationError, match="parts 0 to 2, not 3"):
            await anext(session.rows("books").part_batches(split, number=3))


async def test_a_part_read_as_batches_must_have_the_counted_rows(open_memory):
    code = CODE.replace("            yield part\n", "            yield replace(part, total=99)\n")
    code = code.replace("import anyio\n", "import anyio\nfrom msgspec.structs import replace\n")
    async with open_memory(code) as runtime, runtime.open("memory") as session:
        split = await session.rows("books").split(parts=1, format="arrow")
        with pytest.raises(ExportError, match="99 rows were counted beforehand, but 23 arrived") as caught:
            [batch async for batch in session.rows("books").part_batches(split, number=0)]
        assert caught.value.code == "parts-differ"


def test_a_dataframe_of_dask_takes_what_a_table_takes():
    table, frame = (inspect.signature(each).parameters for each in (dragoman.Rows.table, dragoman_dask.read))
    assert {*table} - {*frame} == {"self"}
    assert {*frame} - {*table} == {"rows", "parts", "insecure", "keep_alive"}


@pytest.mark.slow
async def test_an_export_that_fails_before_its_first_part_leaves_nothing(open_memory, tmp_path):
    splits = []

    async with open_memory() as runtime, runtime.open("memory") as session:

        @asynccontextmanager
        async def fail(split, numbers, folder, progressed):
            splits.append(split)
            raise ConfigurationError("a worker differs", code="worker-differs")
            yield

        with pytest.raises(ConfigurationError):
            await dragoman_dask.export(session.rows("books"), to=tmp_path / "d", parts=2, runner=fail)
        assert not (tmp_path / "d").exists()
        assert not await session.rows("books").hold(splits[0], seconds=60)


async def test_a_full_disk_frees_the_snapshot(open_memory, tmp_path, monkeypatch):
    splits = []

    def full(folder, split):
        splits.append(split)
        raise ExportError("No space left on device")

    monkeypatch.setattr("dragoman_dask.folder_target.FolderTarget.begin", full)
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ExportError, match="No space left"):
            await dragoman_dask.export(session.rows("books"), to=tmp_path / "d", parts=2, keep_alive=77)
        assert splits[0].request.keep_alive == 77
        assert not (tmp_path / "d").exists()
        assert not await session.rows("books").hold(splits[0], seconds=60)


async def test_a_folder_without_the_right_to_write_is_refused(open_memory, tmp_path):
    if not os.geteuid():
        pytest.skip("root may write everywhere")
    (tmp_path / "d").mkdir(mode=0o500)
    async with open_memory() as runtime, runtime.open("memory") as session:
        for to in (tmp_path / "d", tmp_path / "d" / "deeper"):
            with pytest.raises(ExportError, match="cannot be written: Permission denied") as caught:
                await dragoman_dask.export(session.rows("books"), to=to, parts=2)
            assert caught.value.hint == "choose a folder that you can write to"
    assert list((tmp_path / "d").iterdir()) == []


async def test_an_export_cannot_continue_without_its_snapshot(open_memory, tmp_path):
    folder = tmp_path / "d"
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 12)
        with pytest.raises(QueryError):
            await dragoman_dask.export(session.rows("scratch"), to=folder, parts=4, at_once=1)
        split = msgspec.json.decode((folder / ".export.json").read_bytes(), type=Split)
        await session.rows("scratch").hold(split, seconds=0)
        with pytest.raises(ExportError, match="no longer holds the snapshot") as caught:
            await dragoman_dask.export(session.rows("scratch"), to=folder, parts=4, resume=True)
    assert caught.value.code == "snapshot-lost"
    assert "manifest.json" not in names(folder)


@pytest.mark.slow
async def test_a_lost_snapshot_ends_an_export_that_waits(open_memory, tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman_dask.coordinator.RENEWALS", 600)
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 90)
        whole = tmp_path / "d"

        async def lose():
            while not (whole / ".export.json").exists():
                await anyio.sleep(0.01)
            split = msgspec.json.decode((whole / ".export.json").read_bytes(), type=Split)
            await session.rows("scratch").hold(split, seconds=0)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lose)
            with pytest.raises((ExportError, QueryError)) as caught:
                await dragoman_dask.export(session.rows("scratch"), to=whole, parts=90, at_once=1, keep_alive=60)
    assert caught.value.code in ("snapshot-lost", "context-lost")


@pytest.mark.slow
async def test_a_cancelled_export_frees_its_snapshot_and_removes_its_parts(open_memory, tmp_path):
    folder = tmp_path / "d"
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 95)
        done = anyio.Event()
        runtime.add_sink(lambda event: done.set() if getattr(event, "rows", 0) >= 60 else None)

        async def export():
            await dragoman_dask.export(session.rows("scratch"), to=folder, parts=95, at_once=1)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(export)
            await done.wait()
            split = msgspec.json.decode((folder / ".export.json").read_bytes(), type=Split)
            tasks.cancel_scope.cancel()
        assert not folder.exists()
        assert not await session.rows("scratch").hold(split, seconds=60)


@pytest.mark.slow
async def test_an_export_without_a_snapshot_says_so_in_the_manifest(open_memory, tmp_path):
    async with open_memory(NO_SNAPSHOT) as runtime, runtime.open("memory") as session:
        await dragoman_dask.export(session.rows("books"), to=tmp_path / "d", parts=2)
    told = manifest(tmp_path / "d")
    assert told["snapshot"] is False
    assert [note["code"] for note in told["notes"]] == ["no-snapshot", "rows-differ"]


@pytest.mark.slow
async def test_rows_that_are_missing_from_a_snapshot_are_an_error(open_memory, tmp_path):
    code = NO_SNAPSHOT.replace('snapshot="", ', "")
    async with open_memory(code) as runtime, runtime.open("memory") as session:
        with pytest.raises(ExportError, match="24 rows were counted beforehand, but 23 arrived") as caught:
            await dragoman_dask.export(session.rows("books"), to=tmp_path / "d", parts=2)
    assert caught.value.code == "parts-differ"
    assert "manifest.json" not in names(tmp_path / "d")


async def test_a_folder_that_holds_anything_else_is_refused(open_memory, tmp_path):
    folder = tmp_path / "d"
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ExportError, match="holds no unfinished export"):
            await dragoman_dask.export(session.rows("books"), to=folder, parts=2, resume=True)
        assert not folder.exists()
        await dragoman_dask.export(session.rows("books"), to=folder, parts=2)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(ExportError, match="holds a complete export") as caught:
            await dragoman_dask.export(session.rows("books"), to=folder, parts=3)
        assert caught.value.code == "target-occupied"
        with pytest.raises(ExportError, match="is complete"):
            await dragoman_dask.export(session.rows("books"), to=folder, parts=2, resume=True)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        (tmp_path / "e").mkdir()
        (tmp_path / "e" / "mine.txt").write_text("mine")
        with pytest.raises(ExportError, match=r"holds 'mine.txt'"):
            await dragoman_dask.export(session.rows("books"), to=tmp_path / "e", parts=3)
        with pytest.raises(ExportError, match="is not a folder"):
            await dragoman_dask.export(session.rows("books"), to=tmp_path / "e" / "mine.txt", parts=3)
        with pytest.raises(ConfigurationError, match="1 to 1,024 parts, not 0"):
            await dragoman_dask.export(session.rows("books"), to=tmp_path / "f", parts=0)
        assert not (tmp_path / "f").exists()


@pytest.mark.slow
async def test_two_exports_do_not_write_one_folder(open_memory, tmp_path):
    async with open_memory() as runtime, runtime.open("memory") as session:
        results = []

        async def export():
            try:
                results.append(await dragoman_dask.export(session.rows("books"), to=tmp_path / "d", parts=6, at_once=1))
            except ExportError as error:
                results.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(export)
            tasks.start_soon(export)
    [error] = [each for each in results if isinstance(each, ExportError)]
    assert error.code == "export-running"
    assert manifest(tmp_path / "d")["rows"] == 23


@pytest.mark.slow
async def test_another_server_or_driver_is_refused_before_a_part_is_read(open_memory, tmp_path):
    async with open_memory() as runtime, runtime.open("memory") as session:
        split = await session.rows("books").split(parts=2)
        for name, word in (("endpoints", "host or port"), ("server", "server"), ("wheel", "wheel of the driver")):
            origin = msgspec.structs.replace(split.origin, **{name: "other"})
            with pytest.raises(ConfigurationError, match=f"another {word} for 'memory'") as caught:
                await session.rows("books").part(
                    msgspec.structs.replace(split, origin=origin), number=0, to=tmp_path / "p"
                )
            assert caught.value.code == "worker-differs"
        with pytest.raises(ConfigurationError, match="parts 0 to 1, not 2"):
            await session.rows("books").part(split, number=2, to=tmp_path / "p")
    assert not (tmp_path / "p").exists()


async def test_what_is_recorded_goes_through_no_link(open_memory, tmp_path, monkeypatch):
    """Another user of the folder could lay one while the export begins."""
    (tmp_path / "other").write_bytes(b"other")
    begin = FolderTarget.begin

    def lay(self, split):
        begin(self, split)
        (self.path / ".export.done").symlink_to(tmp_path / "other")

    monkeypatch.setattr(FolderTarget, "begin", lay)
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ExportError, match="cannot be written"):
            await dragoman_dask.export(session.rows("books"), to=tmp_path / "d", parts=2)
    assert (tmp_path / "other").read_bytes() == b"other"


def test_a_lock_that_its_owner_removes_at_this_moment_claims_nothing(tmp_path, monkeypatch):
    """Else a third export would make a new one, and write the same folder."""
    taken = []
    real = files.take_lock

    def removed(descriptor, path, **more):
        taken.append(descriptor)
        found = real(descriptor, path, **more)
        if len(taken) == 1:
            (tmp_path / ".export.lock").unlink()
        return found

    monkeypatch.setattr(files, "take_lock", removed)
    first, second = FolderTarget(tmp_path), FolderTarget(tmp_path)
    first.open(resume=False)
    assert len(taken) == 2
    with pytest.raises(ExportError, match="another export is writing"):
        second.open(resume=False)
    first.leave()
    assert list(tmp_path.iterdir()) == []
