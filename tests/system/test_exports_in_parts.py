"""Exports in parts by the command line and on a cluster: a worker dies, a person interrupts, a worker differs."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from time import sleep

import psutil
import pytest
from anyio.from_thread import start_blocking_portal

from dask_processes import scheduler, until, worker
from dragoman_api.errors import ConfigurationError
from dragoman_dask.clusters import check_address
from dragoman_sample import servers as samples
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from stranger import connected, stranger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 12_003


@pytest.fixture
def shell(machine, tmp_path):
    return machine.beside(cwd=tmp_path)


def digests(folder):
    return {part["file"]: part["sha256"] for part in json.loads((folder / "manifest.json").read_text())["parts"]}


@pytest.fixture(scope="module")
def whole(machine, tmp_path_factory):
    """The digests of an export in six parts that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    machine.beside(cwd=folder)("dragoman export shop orders --format rows --parts 6 -o orders")
    return digests(folder / "orders")


@contextmanager
def started(shell, words, **more):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(shell.words(*shlex.split(words)), env=shell.variables(), cwd=shell.cwd, **pipes)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def parts_begun(shell):
    return list(shell.cwd.glob("orders/.part-*.part"))


def test_parts_hold_every_row_once_and_are_told_as_data(shell, server, whole):
    told = shell("dragoman export shop orders --format rows --parts 6 -o orders/ --json").json
    assert (told["rows"], told["total"], told["snapshot"]) == (ROWS, ROWS, True)
    files = sorted((shell.cwd / "orders").glob("part-*"))
    ids = [json.loads(line)["_id"] for file in files for line in file.read_bytes().splitlines()]
    assert len(ids) == len(set(ids)) == ROWS
    assert {part["file"]: part["sha256"] for part in told["parts"]} == whole
    assert not server.cluster.contexts


def test_a_failed_export_in_parts_names_the_command_that_continues_it(shell, server, whole):
    server.misbehave("garbage", on="/_search", after=9)
    done = shell("dragoman export shop orders --format rows --parts 6 --max-requests 1 -o orders", code=1)
    server.behave()
    [line] = [line for line in done.err.splitlines() if "--resume" in line]
    assert not (shell.cwd / "orders/manifest.json").exists()
    shell(line.partition("try: ")[2])
    assert digests(shell.cwd / "orders") == whole


def test_a_worker_that_dies_in_a_part_changes_no_byte(shell, server, whole):
    server.misbehave("slow", on="/_search", after=4, seconds=2)
    with started(shell, "export shop orders --format rows --parts 6 -o orders --cluster local --workers 2") as process:
        until(lambda: parts_begun(shell), process)
        workers = [
            each for each in psutil.Process(process.pid).children() if "--multiprocessing-fork" in each.cmdline()
        ]
        assert len(workers) == 2
        workers[0].kill()
        until(lambda: not workers[0].is_running() or workers[0].status() == psutil.STATUS_ZOMBIE)
        server.behave()
        _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said
    assert digests(shell.cwd / "orders") == whole
    assert sorted(path.name for path in (shell.cwd / "orders").iterdir()) == ["manifest.json", *sorted(whole)]
    assert not server.cluster.contexts


def test_no_more_parts_are_under_way_than_wanted(shell, server, whole):
    server.misbehave("slow", on="/_search", seconds=0.3)
    words = "export shop orders --format rows --parts 6 -o orders --cluster local --workers 2 --max-requests 1"
    most = 0
    with started(shell, words) as process:
        while process.poll() is None:
            most = max(most, len(parts_begun(shell)))
            sleep(0.01)
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert most == 1
    assert digests(shell.cwd / "orders") == whole


def test_ctrl_c_ends_every_worker_and_frees_the_snapshot(shell, server):
    server.misbehave("slow", on="/_search", after=4, seconds=2)
    with started(shell, "export shop orders --parts 6 -o orders --cluster local --workers 2") as process:
        until(lambda: parts_begun(shell), process)
        family = psutil.Process(process.pid).children(recursive=True)
        assert server.cluster.contexts
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert not (shell.cwd / "orders").exists()
    assert not server.cluster.contexts
    until(lambda: not [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE])


FULL = """
mkdir orders && mount -t tmpfs -o size=256k tmpfs orders || exit 99
"$@"
code=$?
ls -A orders
exit $code
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="a small disk cannot be mounted here")
def test_a_full_folder_leaves_no_manifest(shell, server):
    words = shell.words("export", "shop", "orders", "--parts", "6", "-o", "orders")
    line = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL, "sh", *words]
    done = subprocess.run(line, env=shell.variables(), cwd=shell.cwd, capture_output=True, text=True, timeout=100)
    if done.returncode in (1, 99) and "dragoman" not in done.stderr and "error[" not in done.stderr:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr}")
    assert done.returncode == 1, done
    assert "cannot be written: No space left on device" in done.stderr
    assert "manifest.json" not in done.stdout
    assert not server.cluster.contexts or ".export.json" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--parts 0 -o d", 2, "0 is not in the range 1<=x<=1024"),
        ("--parts 2", 2, "an export in parts needs a folder or a URL: -o FOLDER"),
        ("--cluster local -o d", 2, "say how many: --parts 64"),
        ("--max-requests 2 -o d", 2, "say how many: --parts 64"),
        ("--parts 2 -o d --no-manifest", 2, "always has a manifest"),
        ("--parts 2 -o d --workers 2", 2, "belong to --cluster"),
        ("--parts 2 -o d --cluster tcp://127.0.0.1:9", 2, "is not the address of an encrypted Dask scheduler"),
        ("--parts 2 -o d --cluster 127.0.0.1:9 --insecure-cluster", 2, "is not the address of an encrypted"),
        ("--parts 2 -o d --resume", 1, "holds no unfinished export"),
        ("-o s3://bucket/d.ndjson", 2, "a single file cannot be a URL; add --parts 1"),
        ("--parts 2 -o s3://key:secret@bucket/d", 2, "a s3:// target holds a password"),
        ("--parts 2 -o memory://d --cluster local", 2, "is the memory of one process"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(shell, server, words, code, said):
    done = shell(f"dragoman export shop orders {words}", code=None)
    assert said in done.err
    assert done.code == code
    assert list(shell.cwd.iterdir()) == []
    assert not server.cluster.contexts


LOOK = """
import asyncio, json, sys, urllib.error, urllib.request
import psutil
from dragoman_dask.clusters import client_of
from dragoman_api.errors import ConfigurationError

def get(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0

async def main():
    async with client_of("local", workers=1) as client:
        here = psutil.Process()
        family = [here, *here.children(recursive=True)]
        listening = [
            each.laddr for process in family for each in process.net_connections() if each.status == "LISTEN"
        ]
        paths = ("/", "/status", "/metrics", "/info/main/workers.html", "/api/v1/retire_workers")
        urls = [f"http://127.0.0.1:{port}{path}" for _, port in listening for path in paths]
        statuses = [await asyncio.to_thread(get, url) for url in urls]
        address = client.scheduler.address
        try:
            await client_of(address.replace("tls://", "tcp://"), insecure=True).__aenter__()
        except ConfigurationError as error:
            plain = str(error)
        print(json.dumps([address, sorted({ip for ip, _ in listening}), sorted(set(statuses)), plain]))

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_local_cluster_is_closed_to_others(tmp_path):
    script = tmp_path / "look.py"
    script.write_text(LOOK)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    address, hosts, statuses, plain = json.loads(done.stdout)
    assert address.startswith("tls://127.0.0.1:")
    assert hosts == ["127.0.0.1"]
    assert set(statuses) <= {0, 404}
    assert "no Dask scheduler answers" in plain


def test_an_address_without_encryption_needs_insisting():
    check_address("local", insecure=False)
    check_address("tls://cluster:8786", insecure=False)
    check_address("tcp://cluster:8786", insecure=True)
    with pytest.raises(ConfigurationError, match="not the address of an encrypted"):
        check_address("tcp://cluster:8786", insecure=False)


def test_workers_have_their_own_homes_and_one_that_differs_stops_the_export_by_name(shell, server, whole, tmp_path):
    words = "dragoman export shop orders --format rows --parts 6 --insecure-cluster --cluster "
    with scheduler(tmp_path) as (address, _):
        assert "the cluster has no worker" in shell(f"{words}{address} -o orders", code=2).err
        own = connected(tmp_path / "own", port=shell.port)
        with worker(address, own.home, tmp_path / "w1"):
            shell(f"{words}{address} -o first")
            assert digests(shell.cwd / "first") == whole
            (tmp_path / "empty").mkdir()
            with worker(address, tmp_path / "empty", tmp_path / "w2"):
                done = shell(f"{words}{address} -o second", code=2)
                assert "error[worker-differs]: worker tcp://127.0.0.1:" in done.err
                assert "no connection" in done.err
        own("dragoman connections edit shop --host 127.0.0.1 --yes")
        with worker(address, own.home, tmp_path / "w3"):
            done = shell(f"{words}{address} -o third", code=2)
            assert "has another host or port for 'shop'" in done.err
    assert not list(shell.cwd.glob("second/*"))
    assert not list(shell.cwd.glob("third/*"))
    assert not server.cluster.contexts


def test_a_scheduler_that_dies_ends_the_export_which_another_run_continues(shell, server, whole, tmp_path):
    words = "export shop orders --format rows --parts 6 -o orders"
    with scheduler(tmp_path) as (address, process):
        own = connected(tmp_path / "own", port=shell.port)
        with (
            worker(address, own.home, tmp_path / "w1"),
            started(shell, f"{words} --insecure-cluster --cluster {address}") as export,
        ):
            until(lambda: (shell.cwd / "orders/.export.done").exists(), export)
            server.misbehave("slow", on="/_search", seconds=1)
            process.kill()
            _, said = export.communicate(timeout=120)
        server.behave()
    assert export.returncode == 1, said
    assert "error[cluster-lost]: the connection to the Dask scheduler was lost" in said
    assert "--resume" in said
    assert not (shell.cwd / "orders/manifest.json").exists()
    shell(f"dragoman {words} --resume")
    assert digests(shell.cwd / "orders") == whole
    assert not server.cluster.contexts


def test_a_point_in_time_that_ends_in_the_middle_is_named_and_nothing_is_complete(shell, server):
    server.misbehave("slow", on="/_search", after=6, seconds=0.5)
    words = "export shop orders --parts 6 -o orders --cluster local --workers 1"
    with started(shell, words) as process:
        until(lambda: (shell.cwd / "orders/part-00000.ndjson").exists(), process)
        server.cluster.contexts.clear()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "error[context-lost]: part " in said
    assert "the server no longer holds the state of 'orders' for this export" in said
    assert not (shell.cwd / "orders/manifest.json").exists()
    assert "--resume" not in said
    assert "no longer holds the snapshot" in shell(f"dragoman {words} --resume", code=1).err


def test_a_worker_with_other_credentials_is_named_before_any_part(tmp_path):
    with start_blocking_portal() as portal:
        server = FakeElasticsearch(version="8.19.21", users={"ann": "right", "elastic": "admin"})
        with portal.wrap_async_context_manager(server), scheduler(tmp_path) as (address, _):
            portal.call(samples.load, server.url.replace("//", "//elastic:admin@"))
            machine = stranger(tmp_path / "own", cwd=tmp_path, port=server.port)
            login = "--auth-method username-password --username ann --password env:SHOP_PASSWORD"
            machine(
                f"dragoman connections add shop --type elasticsearch --port $PORT {login} --yes", SHOP_PASSWORD="right"
            )
            right, wrong = ({"SHOP_PASSWORD": each} for each in ("right", "wrong"))
            with (
                worker(address, machine.home, tmp_path / "w1", right),
                worker(address, machine.home, tmp_path / "w2", wrong),
            ):
                words = f"dragoman export shop orders --parts 2 -o orders --insecure-cluster --cluster {address}"
                said = machine(words, code=None, SHOP_PASSWORD="right").err
    assert "error[worker-differs]: worker tcp://127.0.0.1:" in said
    assert "the user name or the password was rejected" in said
    assert not list(tmp_path.glob("orders/*"))
    assert not server.cluster.contexts
