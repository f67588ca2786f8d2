"""What the manifests announce is what the drivers do: no more, and no less."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, get_args

import pytest
from drivers.chroma import rig as chroma
from drivers.elasticsearch import rig as elasticsearch
from drivers.opensearch import fake_rig as opensearch
from drivers.prometheus import rig as prometheus
from drivers.solr import rig as solr
from drivers.weaviate import rig as weaviate

from bundled_drivers import MANIFESTS
from dragoman_api import Drop, ExportRequest, Filter, PlanRequest, QueryError, RawQuery, Sort, Update
from dragoman_api.errors import DragomanError
from dragoman_registry.wheels.manifest import Capability

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from drivers.rigging import Rig

ROWS = [
    {"n": number, "t": text, "@timestamp": "2024-01-01T10:00:00Z"} for number, text in ((2, "b"), (1, "a"), (3, "c"))
]


async def an_index(es: Any) -> str:
    properties = {"n": "integer", "t": "keyword", "@timestamp": "date"}
    return str(await es.index({name: {"type": type_} for name, type_ in properties.items()}, ROWS))


async def a_collection(wv: Any) -> str:
    rows = [{"n": row["n"], "t": row["t"]} for row in ROWS]
    return str(await wv.collection({"n": "int", "t": "text"}, rows))


async def a_collection_of_records(server: Any) -> str:
    return str(await server.collection([chroma.record(row["n"], n=row["n"], t=row["t"]) for row in ROWS]))


async def a_metric(server: Any) -> str:
    for row in ROWS:  # labels are texts
        server.fake.add({"__name__": "rows", "n": str(row["n"]), "t": row["t"]}, prometheus.samples.BEGIN, 1.0)
    return "rows"


async def a_core(server: Any) -> str:
    return str(await server.core([{"id": row["t"], "n": row["n"], "t": row["t"]} for row in ROWS]))


FAKES = {
    "elasticsearch": (lambda: elasticsearch.on_fake("8.19.21"), an_index),
    "opensearch": (lambda: opensearch.on_fake("2.19.6"), an_index),
    "prometheus": (prometheus.on_fake, a_metric),
    "weaviate": (weaviate.on_fake, a_collection),
}
SERVERS = {"chroma": (chroma.on_server, a_collection_of_records), "solr": (solr.on_server, a_core)}  # without a fake


async def works(rig: Rig, name: str, capability: Capability) -> bool:
    """Try what a capability stands for, and return whether the driver does it."""
    match capability:
        case "browse":
            return bool((await rig.page(name)).cells)
        case "sort":
            return [int(row["n"]) for row in (await rig.page(name, sort=[Sort("n")])).rows] == [1, 2, 3]
        case "filter":
            return [int(row["n"]) for row in (await rig.page(name, Filter("t", "=", "c"))).rows] == [3]
        case "edit":
            [row_key, *_] = (await rig.page(name)).keys
            return not (await rig.driver.plan_change(PlanRequest(changes=[Update(row_key, {"n": 5})]))).refusals
        case "drop":
            return not (await rig.driver.plan_change(PlanRequest(changes=[Drop(name)]))).refusals
        case "console":
            return len(await rig.console("GET /")) == 1
        case "export":
            async with aclosing(rig.driver.export_rows(ExportRequest(object=name))) as parts:
                return sum([part.rows async for part in parts]) == len(ROWS)
        case "tenants":
            with pytest.raises(QueryError, match="tenant"):
                await rig.page(name, tenant="nobody")
            return True
        case "raw-filter":
            return [row["n"] for row in (await rig.page(name, RawQuery("t:b"))).rows] == [2]
        case "revisions":
            return bool((await rig.page(name)).revision)
        case "time-range":
            return (await rig.driver.describe_object(name)).time is not None
    raise AssertionError(f"say here what {capability} stands for")


async def agrees(plugin: str, server: AbstractAsyncContextManager[Any], load: Any, capability: Capability) -> None:
    """Compare what the driver does with what its manifest announces."""
    async with server as rig:
        name = await load(rig)
        await rig.driver.describe_object(name)
        try:
            does = await works(rig, name, capability)
        except (DragomanError, AttributeError, pytest.fail.Exception):  # a driver that only reads has no `plan_change`
            does = False
    assert does == (capability in MANIFESTS[plugin]["capabilities"])


@pytest.mark.parametrize("capability", get_args(Capability))
@pytest.mark.parametrize("plugin", FAKES)
async def test_a_manifest_announces_what_its_driver_does_and_nothing_else(plugin: str, capability: Capability) -> None:
    """E36: the page offers a raw filter row only if it is announced; W40: there is none here."""
    on_fake, load = FAKES[plugin]
    await agrees(plugin, on_fake(), load, capability)  # type: ignore[operator]


@pytest.mark.live(*SERVERS)
@pytest.mark.parametrize("capability", get_args(Capability))
async def test_a_manifest_announces_what_its_driver_does_on_a_server(
    live_server: dict[str, Any], capability: Capability
) -> None:
    on_server, load = SERVERS[live_server["type"]]
    await agrees(live_server["type"], on_server(live_server), load, capability)


def test_the_capabilities_of_every_driver_are_tried() -> None:
    assert FAKES.keys() | SERVERS.keys() == MANIFESTS.keys()
