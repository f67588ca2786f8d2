"""The whole way on a real engine: driver installed, locked down, brokered, over TLS where the engine has it."""

from __future__ import annotations

import json
import signal
import sys
from urllib.parse import quote

import anyio
import pytest

from dragoman import Filter, Insert, Reference, Runtime, SavedConnection, Sort, Update
from dragoman_api.changes import OutcomeStatus
from dragoman_api.errors import AuthenticationError, ConnectionFailedError
from dragoman_sample import servers as samples

pytestmark = [pytest.mark.live("elasticsearch"), pytest.mark.timeout(180)]
PREFIX = "dragoman-system-"


def values_for(server, **more):
    values = {"host": server["host"], "port": server["port"]}
    if server["tls"]:
        values |= {"ssl_mode": "verify-identity", "ca_file": Reference("path", server["ca_file"])}
    if server["security"]:
        values |= {
            "auth_method": "username-password",
            "username": "elastic",
            "password": Reference("env", "ELASTIC_PASSWORD"),
        }
    return {**values, **more}


@pytest.fixture
def runtime(live_server, monkeypatch):
    if live_server["security"]:
        monkeypatch.setenv("ELASTIC_PASSWORD", live_server["users"]["superuser"]["password"])
        monkeypatch.setenv("ELASTIC_KEY", live_server["api_keys"]["full"]["encoded"])
        monkeypatch.setenv("REVOKED_KEY", live_server["api_keys"]["revoked"]["encoded"])
    return Runtime(spare=False)


@pytest.fixture
async def bookshop(live_server):
    """Load the sample into the engine, and take it away again."""
    scheme = "https" if live_server["tls"] else "http"
    user = live_server["users"]["superuser"] if live_server["security"] else None
    credentials = f"{quote(user['username'])}:{quote(user['password'])}@" if user else ""
    url = f"{scheme}://{credentials}{live_server['host']}:{live_server['port']}"
    await samples.load(url, prefix=PREFIX, verify=False)
    yield
    await samples.remove(url, prefix=PREFIX, verify=False)


async def test_P3_the_story_of_the_first_hour_runs_on_a_real_engine(live_server, runtime, bookshop, tmp_path):
    books, orders = f"{PREFIX}books", f"{PREFIX}orders"
    runtime.connections.save(SavedConnection(name="real", type="elasticsearch", values=values_for(live_server)))
    async with runtime, runtime.open("real") as session:
        assert session.server.version == live_server["version"]
        assert session.sandbox == "full"
        assert {books, orders} <= {found.name for found in await session.objects()}
        assert await session.rows(orders).count() == 12_003
        page = await session.rows(
            orders, filters=[Filter("total", ">=", 100)], sort=[Sort("total", descending=True)]
        ).page(limit=2)
        assert page.total == 1_204
        assert [row["_id"] for row in page.rows] == ["8812", "1177"]
        deep = await session.rows(orders, sort=[Sort("total")]).page(offset=11_990, limit=13)
        assert len(deep.rows) == 13
        row = (await session.rows(books).page(limit=1)).rows[0]
        [outcome] = await session.apply(await session.plan(Update(row.key, {"price": 12.5})))
        assert outcome.status is OutcomeStatus.APPLIED
        [stale] = await session.apply(await session.plan(Update(row.key, {"price": 13.5})))
        assert stale.status is OutcomeStatus.CONFLICT
        [new] = await session.apply(await session.plan(Insert(books, {"title": "New"}, id="a/b %")))
        assert new.status is OutcomeStatus.APPLIED
        [answer] = await session.console(f"GET /_cat/indices/{PREFIX}*?format=json&s=index")
        assert [row["index"] for row in answer.page.rows] == [books, orders]
        result = await session.rows(orders).export(to=tmp_path / "orders.ndjson")
        assert result.rows == 12_003
        assert len((tmp_path / "orders.ndjson").read_bytes().splitlines()) == 12_003
        assert (await session.ping()).ok


DIES = """
import os, signal, sys
from pathlib import Path
import anyio
import dragoman.exports.export_run as export
from dragoman import Runtime

async def main(name, target):
    def die(event):
        if event.name == "export.progressed" and target.with_name(f".{target.name}.checkpoint").exists():
            os.kill(os.getpid(), signal.SIGKILL)

    runtime = Runtime(spare=False)
    runtime.add_sink(die)
    async with runtime, runtime.open("real") as session:
        await session.rows(name).export(target, format="rows")

export.CHECKPOINT_SECONDS = 0
anyio.run(main, sys.argv[1], Path(sys.argv[2]))
"""


async def test_E32_an_export_that_was_killed_goes_on_within_the_servers_snapshot(
    live_server, runtime, bookshop, tmp_path
):
    runtime.connections.save(SavedConnection(name="real", type="elasticsearch", values=values_for(live_server)))
    orders, target = f"{PREFIX}orders", tmp_path / "orders.ndjson"
    async with runtime, runtime.open("real") as session:  # installs the driver, for the process that dies as well
        done = await anyio.run_process([sys.executable, "-c", DIES, orders, str(target)], check=False)
        if done.returncode == 0:
            pytest.skip("this server gives nothing to go on with")
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not target.exists()
        safe = json.loads((tmp_path / ".orders.ndjson.checkpoint").read_bytes())["rows"]
        assert 0 < safe < 12_003
        result = await session.rows(orders).export(to=target, format="rows", resume=True)
    ids = [json.loads(line)["_id"] for line in target.read_bytes().splitlines()]
    assert len(ids) == len(set(ids)) == result.rows == 12_003


async def test_E39_E40_what_is_wrong_is_told_apart_on_a_real_engine(live_server, runtime):
    if not (live_server["security"] and live_server["tls"]):
        pytest.skip("needs an engine with security and TLS")
    cases = {
        "bad-key": (
            values_for(live_server, auth_method="api-key", api_key=Reference("env", "REVOKED_KEY")),
            AuthenticationError,
        ),
        "stranger": (
            values_for(live_server, ca_file=Reference("path", live_server["stranger_ca_file"])),
            ConnectionFailedError,
        ),
        "plain": (values_for(live_server, ssl_mode="disabled"), ConnectionFailedError),
    }
    async with runtime:
        for name, (values, _) in cases.items():
            runtime.connections.save(SavedConnection(name=name, type="elasticsearch", values=values))
        good = values_for(live_server, auth_method="api-key", api_key=Reference("env", "ELASTIC_KEY"))
        runtime.connections.save(SavedConnection(name="good", type="elasticsearch", values=good))
        async with runtime.open("good") as session:
            assert (await session.ping()).ok
        for name, (_, kind) in cases.items():
            with pytest.raises(kind) as caught:
                async with runtime.open(name):
                    pass
            assert caught.value.hint
