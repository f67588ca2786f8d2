"""Exports in parts from real engines to a real S3 server: nothing that goes wrong leaves half an export or garbage."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from buckets import Bucket, keys
from stranger import stranger

pytestmark = pytest.mark.timeout(300)
EACH = pytest.mark.live("elasticsearch", "weaviate")
ONE = pytest.mark.live("elasticsearch")  # what happens does not depend on the engine
ROWS = 12_000
PARTS = 12


@pytest.fixture(scope="session")
def servers():
    found = {record["type"]: record for record in json.loads(Path(os.environ["DRAGOMAN_LIVE"]).read_text())}
    if not {"s3", "s3-full"} <= {*found}:
        pytest.skip("these need an S3 server: make stores")
    return found


@pytest.fixture(scope="session")
def loaded(live_server):
    """Load the rows into the engine."""
    url, kind = live_server["url"], live_server["type"]

    def send(path, lines, kind="application/json", method="POST"):
        request = urllib.request.Request(url + path, lines.encode(), {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read())

    rows = [{"title": f"row {at}", "big": 2**53 + at, "text": "x" * 300} for at in range(ROWS)]
    if kind == "elasticsearch":
        send("/orders", json.dumps({"settings": {"number_of_shards": 2, "number_of_replicas": 0}}), method="PUT")
        for begin in range(0, ROWS, 5_000):
            lines = "".join(f'{{"index":{{}}}}\n{json.dumps(row)}\n' for row in rows[begin : begin + 5_000])
            assert not send("/orders/_bulk", lines, "application/x-ndjson")["errors"]
        send("/orders/_refresh", "")
        yield "orders"
        send("/orders", "", method="DELETE")
        return
    types = {"title": "text", "big": "number", "text": "text"}
    properties = [{"name": name, "dataType": [type_]} for name, type_ in types.items()]
    send("/v1/schema", json.dumps({"class": "Orders", "vectorizer": "none", "properties": properties}))
    for begin in range(0, ROWS, 1_000):
        objects = [
            {"class": "Orders", "id": str(uuid.uuid5(uuid.NAMESPACE_URL, row["title"])), "properties": row}
            for row in rows[begin : begin + 1_000]
        ]
        answers = send("/v1/batch/objects", json.dumps({"objects": objects}))
        assert {each["result"]["status"] for each in answers} == {"SUCCESS"}
    yield "Orders"


@pytest.fixture(scope="session")
def machine(live_server, loaded, servers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exporter")
    shell = stranger(folder / "home", cwd=folder, port=live_server["port"], more=keys(servers["s3"]))
    kind = live_server["type"]
    none = {"elasticsearch": "--auth none", "weaviate": ""}[kind]
    shell(f"dragoman connections add shop --type {kind} --port $PORT {none} --yes")
    return shell


@pytest.fixture
def shell(machine, tmp_path):
    return machine.beside(cwd=tmp_path)


@pytest.fixture
def bucket(servers):
    return Bucket(servers["s3"])


@pytest.fixture(scope="session")
def whole(machine, loaded, tmp_path_factory):
    """The digests of an export to a folder that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    told = machine.beside(cwd=folder)(f"dragoman export shop {loaded} --parts {PARTS} -o orders --json").json
    assert told["rows"] == ROWS
    return {part["file"]: part["sha256"] for part in told["parts"]}


def command(loaded, bucket, more="", folder="orders"):
    return f"export shop {loaded} --parts {PARTS} -o s3://{bucket.name}/{folder}/ {more}"


@contextmanager
def started(shell, words, **variables):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    line = shell.words(*shlex.split(words))
    process = subprocess.Popen(line, env=shell.variables(**variables), cwd=shell.cwd, **pipes)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(condition, process=None):
    for _ in range(6000):
        if found := condition():
            return found
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("it never happened")


@EACH
def test_a_bucket_gets_the_bytes_that_a_folder_gets(shell, bucket, loaded, whole):
    told = shell("dragoman " + command(loaded, bucket, "--json")).json
    assert (told["target"], told["rows"]) == (f"s3://{bucket.name}/orders", ROWS)
    assert [note["code"] for note in told["notes"] if note["code"].startswith("target")] == []
    assert bucket.digests() == whole
    done = shell("dragoman " + command(loaded, bucket), code=None)
    assert "holds a complete export" in done.err
    assert bucket.digests() == whole


@ONE
@pytest.mark.parametrize("how", ["--format csv --compress gzip", "--format arrow", "--format parquet --compress zstd"])
def test_every_format_goes_to_a_bucket(shell, bucket, loaded, how):
    shell("dragoman " + command(loaded, bucket, how))
    told = shell(f"dragoman export shop {loaded} --parts {PARTS} -o here {how} --json").json
    assert bucket.digests() == {part["file"]: part["sha256"] for part in told["parts"]}


@EACH
def test_a_worker_that_dies_in_a_part_changes_no_byte(shell, bucket, loaded, whole):
    with started(shell, command(loaded, bucket, "--cluster local --workers 2")) as process:
        until(lambda: bucket.parts(), process)
        workers = [
            each for each in psutil.Process(process.pid).children() if "--multiprocessing-fork" in each.cmdline()
        ]
        assert len(workers) == 2
        workers[0].kill()
        assert "manifest.json" not in bucket.names()
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert bucket.digests() == whole


@ONE
def test_an_export_whose_process_was_killed_is_continued_once_its_claim_has_run_out(shell, bucket, loaded, whole):
    with started(shell, command(loaded, bucket, "--max-requests 1")) as process:
        until(lambda: len(bucket.parts()) > 2, process)
        process.kill()
        process.wait()
    kept = {name: bucket.files.info(f"{bucket.name}/orders/{name}")["LastModified"] for name in bucket.parts()[:2]}
    assert "manifest.json" not in bucket.names()
    with started(shell, command(loaded, bucket, "--resume")) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert bucket.digests() == whole
    assert kept == {name: bucket.files.info(f"{bucket.name}/orders/{name}")["LastModified"] for name in kept}


@EACH
def test_ctrl_c_leaves_an_empty_bucket(shell, live_server, bucket, loaded):
    with started(shell, command(loaded, bucket, "--cluster local --workers 2")) as process:
        until(lambda: bucket.parts(), process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    if live_server["type"] == "elasticsearch":  # without a snapshot, what is there can be continued
        assert bucket.names() == []
    assert not [name for name in bucket.names() if name == "manifest.json" or "claim" in name]
    assert bucket.uploads() == []


@ONE
def test_of_two_exports_at_once_one_is_refused(shell, bucket, loaded, whole):
    with started(shell, command(loaded, bucket)) as one, started(shell, command(loaded, bucket)) as other:
        ends = [each.communicate(timeout=120)[1] for each in (one, other)]
    assert sorted([one.returncode, other.returncode]) in ([0, 1], [0, 2]), ends
    [refused] = [said for process, said in zip((one, other), ends, strict=True) if process.returncode]
    assert "error[export-running]" in refused or "error[target-occupied]" in refused
    assert bucket.digests() == whole


@ONE
def test_a_bucket_without_the_right_to_write_is_refused(shell, bucket, loaded, servers):
    bucket.let_read("reader")
    bucket.files.pipe_file(f"{bucket.name}/other", b"")
    done = shell("dragoman " + command(loaded, bucket), code=1, **keys(servers["s3"], "reader"))
    assert f"s3://{bucket.name}/orders cannot be read or written: Access Denied" in done.err
    assert servers["s3"]["users"]["reader"]["secret_key"] not in done.said
    assert bucket.names() == []


@ONE
def test_a_bucket_that_is_not_there_is_not_made(shell, bucket, loaded):
    done = shell(f"dragoman export shop {loaded} --parts 2 -o s3://{bucket.name}-none/orders", code=1)
    assert "The specified bucket does not exist" in done.err
    assert not bucket.files.exists(f"{bucket.name}-none")


@ONE
def test_a_full_store_leaves_no_manifest_and_no_upload(shell, loaded, servers):
    full = Bucket(servers["s3-full"])
    done = shell("dragoman " + command(loaded, full), code=1, **keys(servers["s3-full"]))
    assert "No space left on device" in done.err
    assert "manifest.json" not in full.names()
    assert full.uploads() == []
    full.files.rm(full.name, recursive=True)


@contextmanager
def scheduler(folder):
    """Run a scheduler without encryption on the loopback, and yield its address."""
    file = folder / "scheduler"
    line = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
            "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]  # fmt: skip
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def address():
        try:
            return json.loads(file.read_text())["address"]
        except (OSError, ValueError):
            return ""

    try:
        yield until(address)
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def worker(address, shell, folder, variables):
    """Run a worker with these variables, and yield its address."""
    line = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--nworkers", "1",
            "--local-directory", str(folder), "--dashboard-address", "127.0.0.1:0"]  # fmt: skip
    log = folder.with_suffix(".log")
    with log.open("wb") as file:
        environment = shell.beside(more={}).variables(**variables)
        process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=file)
    try:
        until(lambda: "Starting established connection" in log.read_text())
        [started] = [each for each in log.read_text().splitlines() if "Start worker at" in each]
        yield started.split()[-1]
    finally:
        process.terminate()
        process.wait(20)


@ONE
def test_a_worker_without_credentials_or_with_another_store_stops_the_export_by_name(
    shell, bucket, loaded, servers, whole, tmp_path
):
    right, full = keys(servers["s3"]), keys(servers["s3-full"])
    other = Bucket(servers["s3-full"])
    none = {name: value for name, value in right.items() if "KEY" not in name}
    with scheduler(tmp_path) as address, worker(address, shell, tmp_path / "w1", right):
        words = "dragoman " + command(loaded, bucket, f"--insecure-cluster --cluster {address}")
        with worker(address, shell, tmp_path / "w2", none) as name:
            done = shell(words, code=2)
            assert f"error[worker-differs]: worker {name}: " in done.err
            assert "Unable to locate credentials" in done.err
        assert bucket.names() == []
        other.make(bucket.name)
        with worker(address, shell, tmp_path / "w3", full) as name:
            done = shell(words, code=2)
            assert f"error[worker-differs]: worker {name}: " in done.err
            assert "is another place here" in done.err
        assert bucket.names() == []
        shell(words)
    assert bucket.digests() == whole
