"""Conformance of the driver on the fake and on real servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.rigging import behind_proxy, manifest_of
from drivers.weaviate.rig import TYPES, Rig, on_fake, on_server, ordinary

from dragoman_api.testing import DriverConformance, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COVER = "iVBORw0KGgo="


def objects(number: int) -> list[dict[str, Any]]:
    rows = []
    for at in range(number):
        row: dict[str, Any] = {
            "title": f"{'Book' if at % 3 else 'book'} {at} about tea",  # its order does not depend on the case
            "code": f"C-{at}",
            "pages": at * 3 if at % 5 else 2**40 + at,
            "price": at * 1.25,
            "available": at % 2 == 0,
            "published": f"2024-{1 + at % 12:02}-{1 + at % 28:02}T10:00:00Z",
            "shelf": f"0000000{at % 9}-1111-4222-8333-444444444444",
            "tags": [f"tag{at % 4}", "all"],
            "sizes": [at, 2**35],
            "place": {"latitude": at % 90 + 0.25, "longitude": at % 180 + 0.5},
            "phone": {"input": "0171 1234567", "defaultCountry": "de"} if at % 2 else {"input": "+1 212 555 0123"},
            "cover": COVER,
            "author": {"name": f"Author {at % 5}", "born": 1900 + at % 90},
        }
        kept = {name: value for name, value in row.items() if (at + len(name)) % 11}
        rows.append(kept | {"vector": [at / 7, -at / 3, 1e-7 * at, 0.1]})
    return rows


async def target_of(wv: Rig, shards: int, rows: int = 60) -> Target:
    name = await wv.collection(TYPES, objects(rows), shards=shards)
    scratch = await wv.collection(TYPES, name="Scratch")
    return Target(
        driver=wv.driver,
        object=name,
        rows=rows,
        log=wv.log,
        lose=wv.lose,
        scratch=scratch,
        manifest=manifest_of("weaviate"),
        row={"title": "New", "pages": 12, "price": 2.5, "available": True, "published": "2024-05-01T00:00:00Z"},
        change={"pages": 2**33, "title": "Other"},
        reads=[
            "GET /v1/schema",
            f"{{ Get {{ {name}(limit: 2) {{ title _additional {{ id }} }} }} }}",
            f"GET /objects?class={name}&limit=1",
            f"query {{ Aggregate {{ {name} {{ meta {{ count }} }} }} }}",
            f'POST /v1/graphql {{"query": "{{Get{{{name}{{title}}}}}}"}}',
        ],
        writes=[
            f"DELETE /v1/schema/{name}",
            f'POST /v1/objects\n{{"class": "{name}"}}',
            f'DELETE /v1/batch/objects {{"match": {{"class": "{name}"}}, "dryRun": false}}',
        ],
        broken=[("DELETE FROM x", 1, 1), ('POST /v1/graphql\n{"a":}', 2, 6), ("{ Get { A { b } }", 1, 1)],
    )


class TestConformanceOnFake(DriverConformance):
    @pytest.fixture(scope="class", params=[pytest.param(1, marks=pytest.mark.slow), 3])
    async def target(self, request: pytest.FixtureRequest) -> AsyncIterator[Target]:
        async with on_fake() as wv:
            yield await target_of(wv, request.param, rows=30)  # all kinds of rows, in half the time


@pytest.mark.slow
class TestConformanceInTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self) -> AsyncIterator[Target]:
        async with on_fake(confined=True) as wv:
            yield await target_of(wv, 3)


@pytest.mark.live("weaviate")
@pytest.mark.one_engine
class TestConformanceOnServerFromTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        ordinary(live_server)
        async with on_server(live_server, confined=True) as wv:
            yield await target_of(wv, 3)


@pytest.mark.live("weaviate")
class TestConformanceOnServer(DriverConformance):
    @pytest.fixture(scope="class", params=[pytest.param(1, marks=pytest.mark.one_engine), 3])
    async def target(self, request: pytest.FixtureRequest, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        ordinary(live_server)
        async with behind_proxy(live_server) as (record, lose), on_server(record) as wv:
            wv.lose = lose
            yield await target_of(wv, request.param)
