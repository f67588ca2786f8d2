"""Conformance of the driver on real servers; flat objects stand in the place of flattened fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from drivers.elasticsearch.test_conformance import PROPERTIES, documents
from drivers.opensearch.rig import on_server
from drivers.rigging import behind_proxy, manifest_of

from dragoman_api.testing import DriverConformance, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivers.elasticsearch.rig import Rig


async def target_of(server: Rig, rows: int = 60) -> Target:
    properties = PROPERTIES | {"labels": {"type": "flat_object"}}
    name = await server.index(properties, documents(rows), settings={"number_of_shards": 2})
    scratch = await server.index(properties, name="scratch")
    return Target(
        driver=server.driver,
        object=name,
        rows=rows,
        log=server.log,
        lose=server.lose,
        scratch=scratch,
        manifest=manifest_of("opensearch"),
        row={"code": "N1", "pages": 12, "price": 2.5, "in_stock": True, "author.name": "Ada"},
        change={"pages": 13, "author.name": "Grace"},
        new_id=lambda: uuid4().hex,
        tells_missing=True,
        raw_filter="pages:[1 TO 5]",
        reads=[
            "GET /_cat/indices?format=json",
            f'POST /{name}/_search\n{{"size": 1}}',
            f"POST /{name}/_search/point_in_time?keep_alive=1s",
            "HEAD /",
        ],
        writes=[
            f"DELETE /{name}",
            f'POST /{name}/_doc\n{{"code": "x"}}',
            f"POST /{name}/_doc/_search\n{{}}",
            "DELETE /_search/point_in_time/_all",
        ],
        broken=[("no method", 1, 1), ('GET /_search\n{"a":}', 2, 6), ("GET //elsewhere/x", 1, 5)],
    )


@pytest.mark.live("opensearch")
@pytest.mark.one_engine
class TestConformanceOnServerFromTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with on_server(live_server, confined=True) as server:
            yield await target_of(server)


@pytest.mark.live("opensearch")
class TestConformanceOnServer(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with behind_proxy(live_server) as (record, lose), on_server(record) as server:
            server.lose = lose
            yield await target_of(server)
