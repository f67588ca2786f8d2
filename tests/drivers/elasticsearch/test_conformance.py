"""Conformance of the driver on fakes and on real servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OLD, Rig, on_fake, on_server
from drivers.rigging import behind_proxy, manifest_of

from dragoman_api.testing import DriverConformance, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROPERTIES = {
    "@timestamp": {"type": "date_nanos"},
    "title": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
    "blurb": {"type": "text"},
    "code": {"type": "keyword"},
    "pages": {"type": "integer"},
    "sold": {"type": "long"},
    "price": {"type": "double"},
    "in_stock": {"type": "boolean"},
    "published": {"type": "date"},
    "address": {"type": "ip"},
    "author": {"properties": {"name": {"type": "keyword"}, "born": {"type": "integer"}}},
    "items": {"type": "nested", "properties": {"sku": {"type": "keyword"}, "qty": {"type": "integer"}}},
    "labels": {"type": "flattened"},
    "cover": {"type": "binary"},
    "place": {"type": "geo_point"},
    "extra": {"type": "object", "enabled": False},
}


def documents(number: int) -> list[dict[str, Any]]:
    rows = []
    for at in range(number):
        row: dict[str, Any] = {
            "@timestamp": f"2024-01-01T10:00:{at // 4:02}.00000000{at % 2}Z",
            "title": f"Book {at} of {number}",
            "blurb": f"a story about number {at}",
            "code": f"C{at % 7}",
            "pages": at * 3,
            "sold": 2**60 + at,
            "price": at * 1.25,
            "in_stock": at % 2 == 0,
            "published": f"2024-{1 + at % 12:02}-{1 + at % 28:02}T10:00:00Z",
            "address": f"10.0.0.{at % 250}",
            "author": {"name": f"Author {at % 5}", "born": 1900 + at % 90},
            "items": [{"sku": f"S-{at % 9}", "qty": at % 4}, {"qty": at % 3}],
            "labels": {"shelf": f"s{at % 3}"},
            "place": {"lat": at % 90, "lon": at % 180},
            "extra": {"text": "x" * (12_000 if at == 3 else 5)},
        }
        rows.append({name: value for name, value in row.items() if (at + len(name)) % 11})
    return rows


async def target_of(es: Rig, rows: int = 60, *, plugin: str = "elasticsearch") -> Target:
    properties = PROPERTIES
    if (await es.raw("PUT", "/t-flattened", {"mappings": {"properties": {"x": {"type": "flattened"}}}})).status != 200:
        properties = PROPERTIES | {"labels": {"type": "object"}}  # builds without the module
    await es.raw("DELETE", "/t-flattened")
    index_rows = documents(rows)
    vector = {"vector": {"type": "dense_vector", "dims": 3, "index": True, "similarity": "l2_norm"}}
    if plugin == "elasticsearch" and es.version >= (8, 4):  # searches take `knn`
        properties = properties | vector
        index_rows = [row | {"vector": [at % 7, at / 4, 1.5]} for at, row in enumerate(index_rows)]
    name = await es.index(properties, index_rows, settings={"number_of_shards": 2})
    scratch = await es.index(properties, name="scratch")
    return Target(
        driver=es.driver,
        object=name,
        rows=rows,
        log=es.log,
        lose=es.lose,
        scratch=scratch,
        manifest=manifest_of(plugin),
        row={"code": "N1", "pages": 12, "price": 2.5, "in_stock": True, "author.name": "Ada"},
        change={"pages": 13, "author.name": "Grace"},
        tells_missing=True,
        raw_filter="pages:[1 TO 5]",
        reads=[
            "GET /_cat/indices?format=json",
            f'POST /{name}/_search\n{{"size": 1}}',
            f"GET /{name}/_mapping",
            "HEAD /",
        ],
        writes=[f"DELETE /{name}", f'POST /{name}/_doc\n{{"code": "x"}}', f"POST /{name}/_doc/_search\n{{}}"],
        broken=[("no method", 1, 1), ('GET /_search\n{"a":}', 2, 6), ("GET //elsewhere/x", 1, 5)],
    )


class TestConformanceOnFake(DriverConformance):
    @pytest.fixture(scope="class", params=["8.19.21", OLD])
    async def target(self, request: pytest.FixtureRequest) -> AsyncIterator[Target]:
        async with on_fake(request.param) as es:
            yield await target_of(es, rows=30)  # all kinds of rows, in half the time


@pytest.mark.slow
class TestConformanceInTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self) -> AsyncIterator[Target]:
        async with on_fake("8.19.21", confined=True) as es:
            yield await target_of(es)


@pytest.mark.live("elasticsearch")
@pytest.mark.one_engine
class TestConformanceOnServerFromTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with on_server(live_server, confined=True) as es:
            yield await target_of(es)


@pytest.mark.live("elasticsearch")
class TestConformanceOnServer(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with behind_proxy(live_server) as (record, lose), on_server(record) as es:
            es.lose = lose
            yield await target_of(es)
