"""Exports in parts to a store of fsspec: whole parts, a claim, and a manifest that comes last."""

from __future__ import annotations

import gzip
import json
import threading
from functools import partial

import fsspec
import msgspec
import pytest
from anyio.to_thread import run_sync as in_thread
from fsspec.implementations.memory import MemoryFileSystem

import dragoman_dask
from dragoman import FileFormat
from dragoman_api.errors import ConfigurationError, ExportError, QueryError
from dragoman_api.installation import add_command
from dragoman_dask import object_store_target as store
from dragoman_dask.exports import export_part, parts_target
from dragoman_dask.object_stores import ObjectStore, parse_target
from memory_in_parts import fill

pytestmark = pytest.mark.slow


class Memory(MemoryFileSystem):
    """A store in this process, under a name of its own."""

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix(f"{cls.protocol}://"))


class Forgetful(Memory):
    """A store that replaces a file that should not be there."""

    protocol = "forgetful"
    store, pseudo_dirs = {}, [""]

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        super().pipe_file(path, value, **kwargs)


class Old(Forgetful):
    """A store whose backend has no mode of writing."""

    protocol = "old"

    def pipe_file(self, path, value):
        super().pipe_file(path, value)


class Closed(Memory):
    """A store that lets nobody write, and says too much."""

    protocol = "closed"

    def pipe_file(self, path, value, **kwargs):
        raise PermissionError("403 for https://who:word@host/key?sig=hidden&x=1")


for kind in (Forgetful, Old, Closed):
    fsspec.register_implementation(kind.protocol, kind, clobber=True)


@pytest.fixture(autouse=True)
def empty():
    yield
    for kind in (MemoryFileSystem, Forgetful):
        kind.store.clear()
        kind.pseudo_dirs[:] = [""]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(store, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(store, "LEASE_SECONDS", 1.0)


def names(path="/d", kind=MemoryFileSystem):
    return sorted(name.removeprefix(f"{path}/") for name in kind.store if name.startswith(path))


def read(name):
    return MemoryFileSystem.store[name].getvalue()


@pytest.mark.parametrize("compress", [None, "gzip", "zstd"])
@pytest.mark.parametrize("kind", ["ndjson", "csv", "arrow", "parquet"])
async def test_a_store_gets_the_bytes_that_a_folder_gets(open_memory, tmp_path, kind, compress):
    if compress and kind == "arrow":
        pytest.skip("the other two show it")
    async with open_memory() as runtime, runtime.open("memory") as session:
        for to in (tmp_path / "d", "memory://d/", "memory://e", f"file://{tmp_path}/f"):
            await dragoman_dask.export(
                session.rows("books"), to=to, parts=3, format=FileFormat(kind, compression=compress)
            )
    files = {path.name: path.read_bytes() for path in (tmp_path / "d").glob("part-*")}
    assert len(files) == 3
    for place in ("/d", "/e"):
        assert names(place) == ["manifest.json", *sorted(files)]
        assert {name: read(f"{place}/{name}") for name in files} == files
    assert {path.name: path.read_bytes() for path in (tmp_path / "f").glob("part-*")} == files
    told, here = json.loads(read("/d/manifest.json")), json.loads((tmp_path / "d/manifest.json").read_bytes())
    assert (told["target"], here["target"]) == ("memory://d", str(tmp_path / "d"))
    assert (told["parts"], told["rows"], told["notes"]) == (here["parts"], here["rows"], here["notes"])


async def test_nothing_private_is_left_on_this_machine(open_memory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 12)
        with pytest.raises(QueryError):
            await dragoman_dask.export(session.rows("scratch"), to="memory://e", parts=4, at_once=1)
        await dragoman_dask.export(
            session.rows("books"), to="memory://d", parts=3, format=FileFormat("csv", compression="gzip")
        )
        assert gzip.decompress(read("/d/part-00000.csv.gz")).startswith(b"id")
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_a_failed_export_continues_with_the_missing_parts_only(open_memory, monkeypatch):
    put = []
    uploaded = ObjectStore.put
    monkeypatch.setattr(ObjectStore, "put", lambda *args, **more: (put.append(args[2]), uploaded(*args, **more)))
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 12)
        with pytest.raises(QueryError, match="a shard failed"):
            await dragoman_dask.export(session.rows("scratch"), to="memory://d", parts=4, at_once=1)
        assert names() == [".export.done", ".export.json", "part-00000.ndjson", "part-00001.ndjson"]
        first = read("/d/part-00000.ndjson")
        MemoryFileSystem().pipe_file("/d/part-00001.ndjson", b"damaged")
        await fill(session, 3)  # the snapshot does not hold these
        with pytest.raises(ExportError, match="another number of parts"):
            await dragoman_dask.export(session.rows("scratch"), to="memory://d", parts=3, resume=True)
        with pytest.raises(ExportError, match="holds an unfinished export"):
            await dragoman_dask.export(session.rows("scratch"), to="memory://d", parts=4)
        put.clear()
        result = await dragoman_dask.export(session.rows("scratch"), to="memory://d", parts=4, resume=True)
        assert sorted(put) == [f"part-0000{number}.ndjson" for number in (1, 2, 3)]
        with pytest.raises(ExportError, match="is complete"):
            await dragoman_dask.export(session.rows("scratch"), to="memory://d", parts=4, resume=True)
    assert result.rows == 12
    assert read("/d/part-00000.ndjson") == first
    assert names() == ["manifest.json", *(f"part-0000{number}.ndjson" for number in range(4))]


async def test_a_target_that_holds_anything_is_refused_unchanged(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ExportError, match="holds no unfinished export"):
            await dragoman_dask.export(session.rows("books"), to="memory://d", parts=2, resume=True)
        await dragoman_dask.export(session.rows("books"), to="memory://d", parts=2)
        before = {name: read(f"/d/{name}") for name in names()}
        with pytest.raises(ExportError, match="holds a complete export") as caught:
            await dragoman_dask.export(session.rows("books"), to="memory://d", parts=3)
        assert caught.value.code == "target-occupied"
        assert {name: read(f"/d/{name}") for name in names()} == before
        MemoryFileSystem().pipe_file("/e/mine", b"mine")
        with pytest.raises(ExportError, match="holds 'mine'"):
            await dragoman_dask.export(session.rows("books"), to="memory://e", parts=2)
        with pytest.raises(ExportError, match="is a file"):
            await dragoman_dask.export(session.rows("books"), to="memory://e/mine", parts=2)
    assert names("/e") == ["mine"]


def test_a_claim_that_is_renewed_keeps_others_out_and_one_of_a_dead_process_does_not(quick):
    first, second = parts_target("memory://d"), parts_target("memory://d")
    assert first.open(resume=False) is None
    with pytest.raises(ExportError, match=r"another export \(process \d+ on .+\) is writing memory://d") as caught:
        second.open(resume=False)
    assert caught.value.code == "export-running"
    first._left.set()  # as if its process had died
    first._renewing.join()
    assert second.open(resume=False) is None
    assert names() == [".export.claim-00002"]
    with pytest.raises(ExportError, match="another export"):  # it was not dead after all
        first.finish(None)
    first.leave()
    second.leave()
    assert names() == []


def test_an_export_whose_claim_was_taken_over_records_nothing_more(quick):
    first = parts_target("memory://d")
    first.open(resume=False)
    MemoryFileSystem().pipe_file("/d/.export.claim-00002", b'{"token":"t","host":"h","pid":1}')
    first._renewing.join(5)
    with pytest.raises(ExportError, match="process 1 on h"):
        first.record(None)
    first.leave()
    assert names() == [".export.claim-00002"]


@pytest.mark.parametrize(("kind", "let_in"), [("memory", 1), ("forgetful", 2)])
def test_of_two_claims_at_the_same_moment_one_is_granted_where_the_store_can_refuse(quick, kind, let_in, monkeypatch):
    targets = [parts_target(f"{kind}://d") for _ in range(2)]
    listed, both = ObjectStore.names, threading.Barrier(2)
    monkeypatch.setattr(ObjectStore, "names", lambda self: (listed(self), both.wait(5))[0])  # none has seen the other
    results = []

    def take(target):
        try:
            target._take(resume=False)
            results.append([note.code for note in target.notes])
        except ExportError as error:
            results.append(error.code)

    monkeypatch.setattr(store.ObjectStoreTarget, "_renew", lambda self: None)
    threads = [threading.Thread(target=take, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    granted = [each for each in results if each != "export-running"]
    assert (len(results), len(granted)) == (2, let_in)
    assert granted[0] == ([] if kind == "memory" else ["target-not-claimed"])


@pytest.mark.parametrize("kind", ["forgetful", "old"])
async def test_a_store_that_cannot_refuse_a_claim_is_told_in_the_manifest(open_memory, kind):
    async with open_memory() as runtime, runtime.open("memory") as session:
        result = await dragoman_dask.export(session.rows("books"), to=f"{kind}://d", parts=2)
    assert [note.code for note in result.notes] == ["target-not-claimed"]
    assert names(kind=Forgetful) == ["manifest.json", "part-00000.ndjson", "part-00001.ndjson"]


async def test_a_store_that_lets_nobody_write_is_named_without_its_secrets(open_memory):
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ExportError, match="closed://d cannot be read or written: 403 for") as caught:
            await dragoman_dask.export(session.rows("books"), to="closed://d", parts=2)
    assert not [word for word in ("hidden", "word@", "who") if word in str(caught.value)]
    assert "credentials come from the environment" in caught.value.hint


def test_a_part_that_cannot_be_uploaded_whole_leaves_nothing(tmp_path):
    class Torn:
        closed = False
        discarded = committed = False

        def write(self, data):
            if self.discarded is None:
                raise OSError("No space left on device")
            Torn.discarded = None

        def commit(self):
            Torn.committed = True

        def close(self):
            self.closed = True

        def discard(self):
            Torn.discarded = True

    class Files(Memory):
        protocol = "torn"

        def open(self, path, mode, **kwargs):
            assert (mode, kwargs["autocommit"]) == ("wb", False)
            return Torn()

    fsspec.register_implementation("torn", Files, clobber=True)
    (tmp_path / "part").write_bytes(bytes(20 << 20))
    with pytest.raises(ExportError, match="No space left on device"):
        parse_target("torn://d").put(tmp_path / "part", "part")
    assert (Torn.discarded, Torn.committed) == (True, False)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://key:secret@bucket/d", "holds a password"),
        ("s3://bucket/d?token=secret", "without options"),
        ("simplecache::s3://bucket/secret", "without options"),
        ("memory://", "is one place"),
        ("nonsense://secret/d", "no object store is known by nonsense://: Protocol not known"),
        ("gs://bucket/d", "gs:// needs the package gcsfs"),
    ],
)
async def test_a_url_that_cannot_be_a_target_is_refused(open_memory, url, said):
    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ConfigurationError, match=said) as caught:
            await dragoman_dask.export(session.rows("books"), to=url, parts=2)
    assert "secret" not in str(caught.value)
    if url.startswith("gs"):
        assert caught.value.hint == add_command("gcsfs")


def test_a_url_that_became_a_path_is_told(tmp_path):
    from pathlib import Path

    with pytest.raises(ConfigurationError, match="is no path"):
        parse_target(Path("s3://bucket/d"))
    assert parse_target(tmp_path / "a:b") == tmp_path / "a:b"
    assert parse_target("C:/d") == Path("C:/d")
    assert parse_target(f"file://{tmp_path}/d") == tmp_path / "d"


def test_a_worker_that_has_another_place_under_this_name_is_told(quick, tmp_path):
    target = parts_target("memory://d")
    target.open(resume=False)
    here = parts_target("memory://d")
    here.probe(target.claim)
    with pytest.raises(ExportError, match="is another place here"):
        here.probe("another")
    with pytest.raises(ExportError, match="is another place here"):
        parts_target("memory://e").probe(target.claim)
    target.leave()
    assert names() == []
    with pytest.raises(ExportError, match="is not here"):
        parts_target(tmp_path / "missing").probe("")
    with pytest.raises(ExportError, match="is another folder here"):
        parts_target(tmp_path).probe("t")
    own = parts_target(tmp_path / "d")
    own.open(resume=False)
    parts_target(tmp_path / "d").probe(own.claim)
    with pytest.raises(ExportError, match="is another folder here"):
        parts_target(tmp_path / "d").probe("another")
    own.leave()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["memory://d", "file://{}/d", "{}/d"])
async def test_a_worker_that_an_ended_export_left_behind_replaces_no_part(open_memory, quick, tmp_path, place):
    """Its coordinator was killed, and the export was done again, while it read its part."""
    to = place.format(tmp_path)
    async with open_memory() as runtime, runtime.open("memory") as session:
        await fill(session, 6)
        split = await session.rows("scratch").split(parts=1)
        lost = await in_thread(parts_target, to)
        await in_thread(partial(lost.open, resume=False))
        confirm = partial((await in_thread(parts_target, to)).confirm, lost.claim)
        rows = session.rows("scratch")
        worker = partial(export_part, rows, split, 0, to=lost.file(split.file(0)), confirm=confirm)
        await worker()
        await in_thread(lost.discard, split)
        await in_thread(lost.leave)
        with pytest.raises(ExportError, match=r"no longer needs this part|cannot be written"):  # the folder is gone
            await worker()
        await fill(session, 3)
        result = await dragoman_dask.export(session.rows("scratch"), to=to, parts=1)
        with pytest.raises(ExportError, match="no longer needs this part"):
            await worker()
        assert result.rows == 9
        assert await in_thread(lost.size, split.file(0)) == result.bytes
        assert sorted(await in_thread(lost._others)) == ["manifest.json", split.file(0)]


@pytest.mark.parametrize("name", ["", "x", "9" * 5000, "-1", "00001.bak", "²²²²²"])
def test_a_name_that_only_begins_as_a_claim_does_is_something_else_in_the_target(quick, name):
    MemoryFileSystem().pipe_file(f"/d/.export.claim-{name}", b"")
    with pytest.raises(ExportError, match="holds") as caught:
        parts_target("memory://d").open(resume=False)
    assert caught.value.code == "target-occupied"
    assert names() == [f".export.claim-{name}"]


@pytest.mark.timeout(20)
def test_a_long_error_of_a_store_is_cut_before_it_is_read_and_shows_no_secret(monkeypatch):
    said = "a://" * 500_000 + " https://who:word@host/key?sig=hidden"
    monkeypatch.setattr(Closed, "pipe_file", lambda *_, **__: (_ for _ in ()).throw(PermissionError(said)))
    with pytest.raises(ExportError, match="cannot be read or written") as caught:
        ObjectStore("closed", "d").write("x", b"")
    assert len(str(caught.value)) < 1000
    said = "x" * 3_970 + " https://who:word@host/key"
    with pytest.raises(ExportError) as caught:
        ObjectStore("closed", "d").write("x", b"")
    assert "word" not in str(caught.value)


async def test_the_memory_of_one_process_is_no_target_of_a_cluster(open_memory):
    from dragoman_dask import on_cluster

    async with open_memory() as runtime, runtime.open("memory") as session:
        with pytest.raises(ConfigurationError, match="is the memory of one process"):
            await dragoman_dask.export(session.rows("books"), to="memory://d", parts=2, runner=on_cluster("local"))
    assert names() == []


def test_a_claim_is_plain_data():
    claim = store._Claim(token="t", host="h", pid=1)
    assert msgspec.json.decode(msgspec.json.encode(claim)) == {"token": "t", "host": "h", "pid": 1, "renewals": 0}
