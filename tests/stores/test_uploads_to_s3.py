"""What a real S3 server makes of uploads and claims."""

from __future__ import annotations

import os
import threading

import anyio
import pytest
from anyio.to_thread import run_sync

from buckets import Bucket, keys, s3fs
from dragoman_api.errors import ExportError
from dragoman_dask.object_store_target import ObjectStoreTarget
from dragoman_dask.object_stores import ObjectStore

ROOMY, FULL = pytest.mark.live("s3"), pytest.mark.live("s3-full")


@pytest.fixture
def bucket(live_server, monkeypatch):
    for name, value in keys(live_server).items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    return Bucket(live_server)


@pytest.fixture
def store(bucket):
    return ObjectStore("s3", f"{bucket.name}/orders")


@ROOMY
def test_a_large_part_goes_up_in_pieces_and_appears_whole(store, bucket, tmp_path):
    data = os.urandom(20 << 20)
    (tmp_path / "part").write_bytes(data)
    store.put(tmp_path / "part", "part")
    assert bucket.files.cat_file(f"{bucket.name}/orders/part") == data
    assert b"".join(store.read_pieces("part")) == data
    assert bucket.uploads() == []


@FULL
def test_an_upload_to_a_full_store_leaves_nothing(store, bucket, tmp_path):
    (tmp_path / "part").write_bytes(bytes(20 << 20))
    with pytest.raises(ExportError, match="No space left on device"):
        store.put(tmp_path / "part", "part")
    assert (bucket.names(), bucket.uploads()) == ([], [])


@ROOMY
async def test_a_cancelled_upload_leaves_nothing(store, bucket, tmp_path, monkeypatch):
    (tmp_path / "part").write_bytes(bytes(40 << 20))
    seen = []
    async with anyio.create_task_group() as tasks:
        written = s3fs.core.S3File.write

        def write(file, data):
            done = written(file, data)
            seen.append(bucket.uploads())
            anyio.from_thread.run_sync(tasks.cancel_scope.cancel)
            return done

        monkeypatch.setattr(s3fs.core.S3File, "write", write)
        tasks.start_soon(run_sync, store.put, tmp_path / "part", "part")
    assert len(seen) == 1
    assert (bucket.names(), bucket.uploads()) == ([], [])


@ROOMY
def test_what_a_killed_process_left_is_removed_with_the_export(store, bucket):
    for name in ("part-00000.ndjson", "of-others"):
        file = bucket.files.open(f"{bucket.name}/orders/{name}", "wb", autocommit=False, block_size=5 << 20)
        file.write(bytes(10 << 20))
        file.closed = True
    assert len(bucket.uploads()) == 2
    store.abort_uploads({"part-00000.ndjson"})
    assert [upload["Key"] for upload in bucket.uploads()] == ["orders/of-others"]


@ROOMY
def test_one_of_many_claims_at_the_same_moment_is_granted(bucket):
    targets = [ObjectStoreTarget(ObjectStore("s3", f"{bucket.name}/orders")) for _ in range(6)]
    granted, refused = [], []

    def take(target):
        try:
            target.open(resume=False)
            granted.append(target)
        except ExportError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=take, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(granted), refused) == (1, ["export-running"] * 5)
    assert granted[0].notes == []
    granted[0].leave()
    assert bucket.names() == []


@ROOMY
def test_a_folder_that_a_browser_made_is_empty(store, bucket):
    bucket.files.call_s3("put_object", Bucket=bucket.name, Key="orders/", Body=b"")
    assert store.names() == []
