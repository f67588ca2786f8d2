"""Objects as dataframes of Dask: in this process, on a local cluster and on another, and when the snapshot ends."""

from __future__ import annotations

import gc
import json
import time
from contextlib import contextmanager

import dask
import pyarrow as pa
import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal

import dragoman_dask
from clusters import send
from dask_processes import encryption, scheduler, until, worker
from dragoman import FileFormat, Filter, connect
from dragoman_api.errors import ConfigurationError, ExportError, QueryError
from dragoman_dask import reading, workers
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from stranger import stranger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 12_003


@pytest.fixture(scope="module")
def home(machine):
    return machine.home


@pytest.fixture(autouse=True)
def tidy(server):
    yield
    for connection, home in list(workers._open):
        workers.stop(connection, home)
    server.cluster.contexts.clear()


@pytest.fixture(scope="module")
def whole(home):
    with connect("shop", home=home) as shop:
        return shop.rows("orders").table()


@pytest.fixture
def elsewhere(home, monkeypatch):
    """Workers have the home by their environment, as on another machine."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))


def read(connection, name, *, home=None, parts, insecure=False, strict=False, keep_alive=None, **choice):
    """Make a dataframe of rows of a connection, which closes before anything is computed."""
    with connect(connection, home=home) as session:
        rows = session.rows(name, **choice)
        file_format = FileFormat("arrow", strict=strict)
        return dragoman_dask.read(rows, parts=parts, insecure=insecure, format=file_format, keep_alive=keep_alive)


def by_id(table):
    return table.replace_schema_metadata(None).sort_by("_id")


def arrow(frame, schema):
    return pa.Table.from_pandas(frame, preserve_index=False, schema=schema)


def test_a_dataframe_has_the_rows_and_the_types_of_the_table(home, server, whole):
    frame = read("shop", "orders", parts=6, home=home)
    assert frame.npartitions == 6
    assert [each.pyarrow_dtype for each in frame.dtypes] == whole.schema.types
    assert list(frame.columns) == whole.schema.names
    before = len(server.requests)
    assert len(server.cluster.contexts) == 1
    computed = frame.compute()
    assert len(server.requests) > before  # nothing was read until now
    assert computed.dtypes.equals(frame.dtypes)
    assert by_id(arrow(computed, whole.schema)).equals(by_id(whole.replace_schema_metadata(None)))
    assert int(frame.ledger.max().compute()) == max(whole["ledger"].to_pylist()) > 2**62


def test_columns_filters_and_a_single_row(home):
    some = {"columns": ["status", "total"], "filters": [Filter("status", "=", "shipped")], "home": home}
    frame = read("shop", "orders", parts=3, **some)
    with connect("shop", home=home) as shop:
        number = shop.rows("orders", filters=some["filters"]).count()
    assert list(frame.columns) == ["status", "total", "_misfits"]
    assert len(frame) == number
    assert set(frame.status.unique().compute()) == {"shipped"}
    one = read("shop", "orders", parts=100, filters=[Filter("_id", "=", "7")], home=home)
    assert (one.npartitions, len(one)) == (1, 1)
    none = read("shop", "orders", parts=100, filters=[Filter("_id", "=", "none")], home=home)
    assert (none.npartitions, len(none)) == (1, 0)
    assert none.compute().dtypes.equals(none.dtypes)


def test_the_parts_are_of_one_snapshot_that_lives_with_the_dataframes(home, server, monkeypatch):
    monkeypatch.setattr(reading, "RENEWALS", 300)
    frame = read("shop", "orders", parts=2, home=home, keep_alive=60)
    totals = frame.total.sum()
    del frame
    gc.collect()

    def renewed():
        return sum(b'"size":0' in each.body for each in server.requests)

    before = renewed()
    until(lambda: renewed() > before + 1)
    assert float(totals.compute()) > 0
    del totals
    gc.collect()
    until(lambda: not [each for each in reading.threading.enumerate() if each.name == "dragoman-snapshot"])
    assert len(server.cluster.contexts) == 1  # it ends by itself, for parts may be read without a dataframe


def test_a_snapshot_that_ended_says_what_to_do(home, server):
    frame = read("shop", "orders", parts=2, home=home, keep_alive=90)
    dragoman_dask.close(frame.assign(more=1)[["total"]])
    assert not server.cluster.contexts
    with pytest.raises(ExportError, match="no longer holds the snapshot of 'orders'") as caught:
        frame.compute()
    assert caught.value.code == "snapshot-lost"
    assert "dragoman_dask.read again" in caught.value.hint
    assert "90 seconds" in caught.value.hint


def test_a_snapshot_that_ends_in_the_middle_is_an_error(home, server, monkeypatch):
    frame = read("shop", "orders", parts=4, home=home)
    read_part = workers.read_part

    def and_lose(split, home):
        found = read_part(split, home)
        server.cluster.contexts.clear()
        return found

    monkeypatch.setattr(workers, "read_part", and_lose)
    with pytest.raises(ExportError, match="no longer holds the snapshot"), dask.config.set(scheduler="synchronous"):
        frame.compute()


def test_a_part_that_is_short_is_an_error(home, monkeypatch):
    frame = read("shop", "orders", parts=2, home=home)
    answer = FakeElasticsearch.answer

    async def short(self, request, path, query, raw):
        full = await answer(self, request, path, query, raw)
        body = json.loads(full.body)
        if len(body.get("hits", {}).get("hits", ())) > 1:
            del body["hits"]["hits"][-1]
        return web.json_response(body, headers={"X-Elastic-Product": "Elasticsearch"})

    monkeypatch.setattr(FakeElasticsearch, "answer", short)
    with pytest.raises(QueryError, match="the export is incomplete"):
        len(frame)


def test_what_does_not_fit_stands_beside_it_or_is_refused(home, server):
    send(server, "POST", "/odd/_doc?refresh=true", {"total": 1.5})
    send(server, "POST", "/odd/_doc?refresh=true", {"total": "12.5"})
    frame = read("shop", "odd", parts=2, home=home)
    assert sorted(frame["_misfits"].dropna().compute()) == ['{"total":"12.5"}']
    strict = read("shop", "odd", parts=2, home=home, strict=True)
    with pytest.raises(ExportError, match="does not fit double"):
        strict.compute()


def test_workers_of_a_local_cluster_read_the_parts(elsewhere, server, whole):
    with dragoman_dask.cluster(workers=2) as client:
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        kept = read("shop", "orders", parts=6).persist()
        gc.collect()
        assert len(kept) == ROWS
        counts = kept.status.value_counts().compute().to_dict()
        places = {place for held in client.who_has().values() for place in held}
    assert sum(counts.values()) == ROWS
    assert len(places) == 2
    assert by_id(whole)["status"].value_counts().to_pylist()
    assert not workers._open or list(workers._open) == [("shop", "")]  # the rows were not read here


@contextmanager
def settings(environment):
    """Give this process the settings of Dask that an environment would."""
    names = {name: name.removeprefix("DASK_").lower().replace("__", ".").replace("_", "-") for name in environment}
    with dask.config.set({names[name]: value for name, value in environment.items()}):
        yield


def test_an_encrypted_cluster_of_others_and_a_worker_that_lacks_the_connection(home, server, tmp_path):
    tls = encryption(tmp_path)
    with scheduler(tmp_path, tls) as (address, _), settings(tls):
        assert address.startswith("tls://")
        with worker(address, home, tmp_path / "w1", tls), dragoman_dask.cluster(address):
            assert len(read("shop", "orders", parts=3, home=home)) == ROWS
            server.cluster.contexts.clear()
            (tmp_path / "empty").mkdir()
            with worker(address, tmp_path / "empty", tmp_path / "w2", tls):
                with pytest.raises(ConfigurationError, match=r"worker tls://127.0.0.1:\d+: no connection") as caught:
                    read("shop", "orders", parts=3, home=home)
                assert caught.value.code == "worker-differs"
                assert not server.cluster.contexts


def test_an_open_client_without_encryption_needs_insisting(home, server, tmp_path):
    with scheduler(tmp_path) as (address, _), worker(address, home, tmp_path / "w"):
        with pytest.raises(ConfigurationError, match="not the address of an encrypted"), dragoman_dask.cluster(address):
            pass
        with dragoman_dask.cluster(address, insecure=True):
            with pytest.raises(ConfigurationError, match="not the address of an encrypted"):
                read("shop", "orders", parts=3, home=home)
            assert not server.cluster.contexts
            assert len(read("shop", "orders", parts=3, home=home, insecure=True)) == ROWS


def test_a_server_without_snapshots_is_warned_about(tmp_path):
    with start_blocking_portal() as portal:
        server = FakeWeaviate()
        with portal.wrap_async_context_manager(server):
            shell = stranger(tmp_path / "home", cwd=tmp_path, port=server.port)
            shell("dragoman connections add notes --type weaviate --port $PORT --auth none --yes")
            with connect("notes", home=shell.home) as notes:
                notes.console('POST /v1/schema\n{"class": "Note", "properties": [{"name": "n", "dataType": ["int"]}]}')
            with pytest.warns(UserWarning, match="Note: "):
                frame = read("notes", "Note", parts=2, home=shell.home)
            assert len(frame) == 0
            dragoman_dask.close(frame)
            workers.stop("notes", str(shell.home))


def test_a_connection_that_is_not_used_closes(home, monkeypatch):
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.2)
    with workers.lend("shop", str(home)) as (first, _), workers.lend("shop", str(home)) as (second, _):
        assert first is second
        time.sleep(0.5)
        assert first.rows("orders").count() >= ROWS
    until(lambda: not workers._open)
    with pytest.raises(ConfigurationError, match="the connection is closed"):
        first.rows("orders").count()
