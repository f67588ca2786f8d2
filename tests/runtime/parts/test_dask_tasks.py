"""Parts on a cluster of Dask within this process: what workers compare, what an export makes of their answers."""

from __future__ import annotations

import logging
import pickle
import shutil
import sys
import time
from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace

import anyio
import msgspec
import pytest
from anyio.to_thread import run_sync
from distributed import Client
from distributed.comm import CommClosedError

from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, ExportError
from dragoman_dask import clusters, on_cluster, reading, runner, workers
from dragoman_dask.exports import parts_target
from dragoman_dask.pace import Pace
from splits import SPLIT, part

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_blocking_calls():
    """Let the loop of the test block: a worker, whose process is another one otherwise, closes connections in it."""


@pytest.fixture
def memory(open_memory, monkeypatch):
    """Save a connection to memory in the home of this process, which is a worker's, too."""
    open_memory()
    yield
    for key in [*workers._open]:
        workers.stop(*key)


@pytest.fixture
def here(monkeypatch):
    """Let every address lead to a cluster within this process."""

    @asynccontextmanager
    async def client_of(address, **options):
        client = await Client(processes=False, dashboard_address=None, n_workers=1, asynchronous=True)
        try:
            yield client
        finally:
            await clusters._closed(client)

    monkeypatch.setattr(runner, "client_of", client_of)
    return client_of


def split_of(**options):
    with workers.lend("memory", "") as (session, _):
        return session.rows("books").split(3, **options)


def decoded(end):
    return msgspec.json.decode(end, type=workers.TaskEnd)


async def run_all(split, target, **options):
    run = on_cluster("local", **options)
    async with run(split, range(len(split.shares)), target, lambda *_: None) as parts:
        return dict([each async for each in parts])


def export(split, target, *, claim=None):
    """Export a part as a task on a worker does."""
    words = (str(target.address), split.file(0), target.claim if claim is None else claim, "")
    return decoded(workers.export_part(msgspec.json.encode(split), *words))


async def opened(folder):
    target = parts_target(folder)
    await run_sync(lambda: target.open(resume=False))
    return target


def test_an_address_where_no_scheduler_answers_is_told(monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ConfigurationError, match="no Dask scheduler answers at tcp:") as caught:
        clusters.cluster("tcp://127.0.0.1:9", insecure=True).__enter__()
    assert "certificates" in caught.value.hint


def test_the_log_of_dask_is_quiet_only_while_the_export_runs():
    logger = logging.getLogger("distributed.client")
    before = logger.level
    with clusters._quiet():
        assert logger.level == logging.CRITICAL
    assert logger.level == before


def test_a_local_cluster_has_a_process_for_each_core_or_so_many_as_wanted(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    for wanted, processes in ((None, 7), (3, 3)):
        with clusters._local(wanted) as options:
            assert (options["n_workers"], options["silence_logs"]) == (processes, logging.ERROR)


async def test_a_local_cluster_runs_in_the_loop_of_its_caller(monkeypatch):
    """It does not keep the loop waiting while it starts."""
    pages = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = {"n_workers": 0, "processes": False, "scheduler_kwargs": pages, "dashboard_address": None}
    monkeypatch.setattr(clusters, "_local", lambda _: nullcontext(options | {"security": None}))
    async with clusters.client_of("local") as client:
        assert client.cluster.asynchronous


async def test_workers_export_the_parts_and_close_the_connection(memory, here, tmp_path):
    split = await run_sync(split_of)
    target = await opened(tmp_path / "d")
    done = await run_all(split, target)
    assert sorted(done) == [0, 1, 2]
    assert sum(part.rows for part in done.values()) == split.total
    assert not workers._open
    await run_sync(target.leave)


async def test_a_cancelled_export_has_closed_the_connections_before_it_leaves_the_cluster(
    memory, here, tmp_path, monkeypatch
):
    leaving, close = [], clusters._closed

    async def closed(client):
        leaving.append([*workers._open])
        await close(client)

    monkeypatch.setattr(clusters, "_closed", closed)
    split, target = await run_sync(split_of), await opened(tmp_path / "d")
    with anyio.CancelScope() as scope:
        async with on_cluster("local")(split, range(3), target, lambda *_: None) as parts:
            await anext(parts)
            assert workers._open
            scope.cancel()
            await anyio.sleep(0)
    assert leaving == [[]]
    await run_sync(target.leave)


async def test_no_more_parts_are_submitted_than_wanted(memory, here, tmp_path, monkeypatch):
    most, under_way = [], set()
    as_done = runner._done

    async def done(future):
        if future.key.startswith("dragoman-"):
            under_way.discard(future.key)
        return await as_done(future)

    submit = Client.submit

    def submitted(self, function, *words, key=None, **options):
        if key:
            under_way.add(key)
            most.append(len(under_way))
        return submit(self, function, *words, key=key, **options)

    monkeypatch.setattr(runner, "_done", done)
    monkeypatch.setattr(Client, "submit", submitted)
    target = await opened(tmp_path / "d")
    split = await run_sync(split_of)
    assert len(await run_all(split, target, max_requests=1)) == 3
    assert max(most) <= 2  # the next one is submitted when one is done, before its answer is read
    most.clear()
    under_way.clear()
    target = await opened(tmp_path / "e")
    assert len(await run_all(await run_sync(split_of), target)) == 3
    assert max(most) == 3


async def test_a_worker_that_has_another_server_or_no_such_folder_is_named(memory, here, tmp_path):
    split = await run_sync(split_of)
    other = msgspec.structs.replace(split, origin=msgspec.structs.replace(split.origin, endpoints="e1"))
    target = await opened(tmp_path / "d")
    with pytest.raises(ConfigurationError, match="has another host or port for 'memory'") as caught:
        await run_all(other, target)
    assert (caught.value.code, caught.value.message[:8]) == ("worker-differs", "worker i")
    target.address = str(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="elsewhere is not here") as caught:
        await run_all(split, target)
    assert caught.value.code == "worker-differs"
    assert "under the same path" in caught.value.hint


async def test_the_failure_of_a_part_is_told_with_its_number_code_and_hint(memory, here, tmp_path):
    split = msgspec.structs.replace(await run_sync(split_of), shares=["damaged"])
    with pytest.raises(ExportError, match=r"^part 0: ") as caught:
        await run_all(split, target := await opened(tmp_path / "d"))
    end = await run_sync(export, split, target)
    assert (end.part, end.code, end.hint) == (None, caught.value.code, caught.value.hint)
    assert caught.value.message == f"part 0: {end.message}"


def test_what_a_worker_cannot_write_is_told_with_what_to_do(memory, tmp_path):
    (tmp_path / "file").touch()
    end = export(split_of(), parts_target(tmp_path / "file"))
    assert end.part is None
    assert end.hint == "choose a folder that you can write to"


async def test_a_worker_that_an_ended_export_left_behind_writes_no_part(memory, tmp_path):
    target, split = await opened(tmp_path / "d"), await run_sync(split_of)
    assert (await run_sync(export, split, target)).part is not None
    before = target.claim
    target.leave()
    shutil.rmtree(tmp_path / "d")
    later = await opened(tmp_path / "d")
    (tmp_path / "d" / split.file(0)).write_bytes(b"of a later export")
    end = await run_sync(lambda: export(split, later, claim=before))
    assert (end.part, end.code) == (None, "export-running")
    assert (tmp_path / "d" / split.file(0)).read_bytes() == b"of a later export"
    assert (await run_sync(export, split, later)).part is not None
    later.leave()
    assert (await run_sync(export, split, later)).code == "export-running"


def test_a_worker_exports_and_reads_at_the_pace_of_its_connection(memory, tmp_path):
    paced = []

    class Counted(Pace):
        def parts(self, stream):
            paced.append(stream)
            return super().parts(stream)

    with workers.lend("memory", ""):
        workers._open["memory", ""].pace = Counted()
    target = parts_target(tmp_path / "d")
    target.open(resume=False)
    assert not export(split_of(), target).code
    assert len(paced) == 1
    workers.read_part(split_of(format="arrow"), "")
    assert len(paced) == 2


async def test_a_file_that_only_the_worker_sees_is_no_part(memory, here, tmp_path, monkeypatch):
    target = await opened(tmp_path / "d")
    for size, found in ((-1, "is not here"), (1, "has 1 bytes instead of ")):
        monkeypatch.setattr(type(target), "size", lambda self, name, size=size: size)
        with pytest.raises(ExportError, match=f"{found}.*although a worker has written it") as caught:
            await run_all(await run_sync(split_of), target)
        assert caught.value.code == "parts-differ"


async def test_a_worker_that_cannot_run_a_part_at_all_is_told(here):
    def fail():
        raise ImportError("no module")

    async with here("local") as client:
        with pytest.raises(ExportError, match=r"a worker could not run a part: .*no module") as caught:
            await runner._done(client.submit(fail, pure=False))
        assert caught.value.code == "worker-failed"
        assert "same version" in caught.value.hint

        future = client.submit(time.sleep, 1, pure=False)
        await client.cancel([future])
        with pytest.raises(ExportError, match="connection to the Dask scheduler was lost") as caught:
            await runner._done(future)
        assert caught.value.code == "cluster-lost"

    async def closed():
        raise CommClosedError("in <TCP (closed)>")

    with pytest.raises(ExportError, match="connection to the Dask scheduler was lost") as caught:
        await runner._done(closed())
    assert caught.value.code == "cluster-lost"


async def test_a_request_that_a_server_turned_away_slows_every_worker(memory, here):
    await run_sync(lambda: workers.lend("memory", "").__enter__())
    pace = workers._open["memory", ""].pace

    def tell():
        workers._teller("memory", "")()

    async with here("local") as client:
        runner.share_pace(client)
        await client.submit(tell, pure=False)
        with anyio.fail_after(10):
            while not pace.pause:
                await anyio.sleep(0.01)
    assert workers._teller("memory", "") is None  # outside of a worker
    workers.slow_down("memory", "another home")


class Timer:
    """A timer that runs out when the test says so."""

    made = None

    def __init__(self, seconds, act, args):
        self.seconds, self.act, self.args, self.cancelled, self.started = seconds, act, args, False, False
        Timer.made.append(self)

    def start(self):
        self.started = self.daemon

    def cancel(self):
        self.cancelled = True

    def run_out(self):
        assert self.started
        self.act(*self.args)


def test_a_connection_is_kept_while_it_is_used_and_for_a_while_longer(memory, monkeypatch):
    monkeypatch.setattr(workers.threading, "Timer", Timer)
    monkeypatch.setattr(Timer, "made", [])
    with workers.lend("memory", "") as (first, _):
        with workers.lend("memory", "") as (second, _):
            assert first is second
        assert not Timer.made  # it is still used
    [idle] = Timer.made
    assert idle.seconds == workers.IDLE_SECONDS
    with workers.lend("memory", "") as (third, _):
        assert third is first
        assert idle.cancelled
        idle.run_out()  # it was too late to cancel it
        assert third.rows("books").count() == 23
    [_, idle] = Timer.made
    idle.run_out()
    assert not workers._open
    with pytest.raises(ConfigurationError, match="the connection is closed"):
        third.rows("books").count()
    with workers.lend("memory", "") as (fourth, _):
        pass
    idle.run_out()  # that of a connection that is closed leaves the next one alone
    assert fourth.rows("books").count() == 23


def test_a_reader_takes_neither_home_nor_snapshot_along():
    class Left:
        def leave(self):
            pass

    made = reading.PartReader(msgspec.structs.replace(SPLIT, shares=[]), "/a/home", Left())
    there = pickle.loads(pickle.dumps(made))
    assert (there.plan, there.home, there.snapshot) == (made.plan, "", None)
    assert made.__dask_tokenize__() == there.__dask_tokenize__()
    other = reading.PartReader(msgspec.structs.replace(made.plan, snapshot="another"))
    assert made.__dask_tokenize__() != other.__dask_tokenize__()


def test_two_dataframes_of_the_same_rows_share_no_task(monkeypatch):
    """Their labels differ: without a snapshot, one read again may have other rows."""
    labels = []

    def from_map(*_, label="", **__):
        labels.append(label)

    monkeypatch.setitem(sys.modules, "dask.dataframe", SimpleNamespace(from_map=from_map))
    for _ in range(2):
        reading._dataframe(reading.PartReader(SPLIT), SPLIT.shares)
    assert len({label for label in labels if label.startswith("dragoman-shop-")}) == 2


def test_every_snapshot_that_a_dataframe_reads_is_freed_once():
    freed = []

    class Held:
        def leave(self):
            pass

        def free(self):
            freed.append(self)

    snapshots = [Held(), Held()]
    first, second = [reading.PartReader(SPLIT, "", snapshot) for snapshot in snapshots]
    nodes = [SimpleNamespace(operands=operands) for operands in ([first, 1], ["a", second, None], [first])]
    reading.close(SimpleNamespace(expr=SimpleNamespace(walk=lambda: nodes)))
    assert sorted(map(snapshots.index, freed)) == [0, 1]


def test_every_note_of_a_split_is_a_warning(monkeypatch):
    notes = [Note(code="no-snapshot", reason="rows may move"), Note(code="partial", reason="a shard failed")]
    split = msgspec.structs.replace(SPLIT, snapshot="", notes=notes)
    monkeypatch.setattr(reading, "_dataframe", lambda reader, shares: shares)
    with pytest.warns(UserWarning, match="rows may move"), pytest.warns(UserWarning, match="a shard failed"):
        assert reading.read(SimpleNamespace(home=None, split=lambda *_, **__: split), parts=2) == split.shares


@pytest.mark.parametrize("lost", [True, False])
def test_a_snapshot_is_renewed_over_failures_until_it_is_lost_or_left(memory, monkeypatch, lost):
    monkeypatch.setattr(reading, "RENEWALS", 60 / 0.01)
    split, asked = split_of(keep_alive=60), []

    def hold(self, split, *, seconds):
        asked.append(seconds)
        if len(asked) == 1:
            raise ConnectionFailedError("for a moment")
        return not lost or len(asked) < 3

    monkeypatch.setattr("dragoman.blocking.BlockingRows.hold", hold)
    snapshot = reading.Snapshot(split, "")
    [renewing] = [each for each in reading.threading.enumerate() if each.name == "dragoman-snapshot"]
    for _ in range(1000):
        if len(asked) >= 3:
            break
        time.sleep(0.01)
    if not lost:
        assert renewing.is_alive()
        snapshot.leave()
    renewing.join(10)
    assert not renewing.is_alive()
    assert set(asked) == {60}


def test_a_part_whose_file_is_as_the_worker_wrote_it_is_taken(tmp_path):
    target = parts_target(tmp_path)
    (tmp_path / SPLIT.file(0)).write_bytes(b'{"a":1}\n')
    runner._check(target, part(SPLIT, 0))
