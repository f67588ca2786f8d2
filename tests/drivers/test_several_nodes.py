"""Both drivers on a cluster of three nodes, of which one dies, hangs or is busy: as a driver in its sandbox, too."""

from __future__ import annotations

from typing import Any

import pytest
from api.loopback import http, serving
from api.test_nodes import free_port
from drivers.elasticsearch import rig as elasticsearch
from drivers.weaviate import rig as weaviate

from dragoman_api import ConnectionFailedError, Insert
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from fakes.proxy import Proxy


def nodes(room: Any, *ports: int) -> Any:
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports[1:])
    return room.profile(f"http://127.0.0.1:{ports[0]}", options={"hosts": hosts})


async def test_E6_reads_and_writes_go_on_after_a_node_has_died() -> None:
    async with FakeElasticsearch() as fake, Proxy(upstream=fake.url) as last:
        first = await Proxy(upstream=fake.url).__aenter__()
        given = nodes(elasticsearch, first.port, free_port(), last.port)
        async with elasticsearch.connected(given, version="8.19.21") as es:
            name = await es.index({"n": {"type": "long"}}, [{"n": 1}, {"n": 2}])
            assert len(await es.ids(name)) == 2
            await first.__aexit__(None, None, None)
            assert len(await es.ids(name)) == 2
            [outcome] = await es.apply(Insert(object=name, id="9", values={"n": 9}))
            assert outcome.status == "applied"
            assert len(await es.ids(name)) == 3
            assert (await es.driver.ping()).ok
            assert f"127.0.0.1:{first.port}: " in " ".join(note.reason for note in es.http.faults)
        assert fake.faults == []


@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
async def test_W5_in_its_sandbox_a_driver_reaches_the_next_node_and_health_tells_of_the_dead_one(driver: str) -> None:
    room, kind = {"elasticsearch": (elasticsearch, FakeElasticsearch), "weaviate": (weaviate, FakeWeaviate)}[driver]
    dead = free_port()
    async with kind() as fake:
        given = nodes(room, dead, fake.port)
        more = {} if driver == "weaviate" else {"version": "8.19.21"}
        async with room.connected(given, confined=True, **more) as rig:
            health = await rig.driver.ping()
            assert health.ok
            assert health.reason == f"127.0.0.1:{dead}: nothing listens there"


@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
async def test_a_cluster_without_a_living_node_tells_the_fault_of_each(driver: str) -> None:
    room = {"elasticsearch": elasticsearch, "weaviate": weaviate}[driver]
    async with serving(lambda _: http(status=502)) as gateway:
        dead = free_port()
        given = nodes(room, dead, gateway.port)
        more = {} if driver == "weaviate" else {"version": "8.19.21"}
        with pytest.raises(ConnectionFailedError) as caught:
            async with room.connected(given, **more):
                pass
    assert f"127.0.0.1:{dead}: nothing listens there; 127.0.0.1:{gateway.port}: HTTP 502" in caught.value.message
