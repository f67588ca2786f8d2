"""Conformance of the driver on the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from drivers.chroma.rig import Rig, on_server
from drivers.rigging import behind_proxy

from dragoman_api import Json
from dragoman_api.testing import DriverConformance, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api import HttpRequest

MANIFEST = Path(__file__).parents[3] / "plugins/chroma/dragoman_chroma/driver.json"


def records(number: int) -> list[dict[str, Any]]:
    rows = []
    for at in range(number):
        metadata: dict[str, Any] = {
            "title": f"Book {at} about tea",
            "pages": at * 3 if at % 5 else 2**40 + at,
            "price": at * 1.25,
            "available": at % 2 == 0,
            "tags": [f"tag{at % 4}", "all"],
            "sizes": [at, 2**35],
            "ratios": [at / 4, 0.5],
            "mixed": at if at % 2 else f"m{at}",
            "id": f"other {at}",
            "a.b": at % 3,
            "long": "x" * (12_000 if at == 7 else at),
        }
        kept = {key: value for key, value in metadata.items() if (at + len(key)) % 11}
        document = (
            {} if at % 9 == 8 else {"document": f"Document {at} of tea, Überblick\n{'cats' if at % 2 else 'dogs'}"}
        )
        uri = {"uri": f"file:///{at}"} if at % 3 else {}
        vector = [at / 7, -at / 3, 1e-7 * at, 0.1]
        rows.append({"id": f"b{at:03} /ü\"'{at}", "metadata": kept, "embedding": vector, **document, **uri})
    return rows


def reads(request: HttpRequest) -> bool:
    """Return whether a POST of Chroma only reads."""
    return request.path.endswith("/get")


async def target_of(rig: Rig) -> Target:
    name = await rig.collection(records(60))
    scratch = await rig.collection([records(1)[0] | {"id": "seed", "metadata": records(12)[11]["metadata"]}])
    base = "/api/v2/tenants/default_tenant/databases/default_database/collections"
    return Target(
        driver=rig.driver,
        object=name,
        rows=60,
        log=rig.log,
        lose=rig.lose,
        scratch=scratch,
        row={
            "title": "New",
            "pages": 12,
            "price": 2.5,
            "available": True,
            "document": "text",
            "embedding": Json("[1.0,2.5,0.1,-4.0]"),
        },
        new_id=lambda: uuid4().hex,
        change={"pages": 2**33, "title": "Other"},
        posts_that_read=reads,
        manifest=json.loads(MANIFEST.read_text()),
        reads=[
            "GET /api/v2/version",
            f"GET {base}",
            f"GET /api/v2/tenants/default_tenant/databases/{name.replace('/', '/collections/')}",
        ],
        writes=[f"DELETE {base}/x", f'POST {base}\n{{"name": "abc"}}', f'POST {base}/x/upsert {{"ids": []}}'],
        broken=[("DELETE FROM x", 1, 13), (f'POST {base}\n{{"a":}}', 2, 6), ("{}", 1, 1)],
    )


@pytest.mark.live("chroma")
class TestConformanceOnServerFromTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with on_server(live_server, confined=True) as rig:
            yield await target_of(rig)


@pytest.mark.live("chroma")
class TestConformanceOnServer(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with behind_proxy(live_server) as (record, lose), on_server(record) as rig:
            rig.lose = lose
            yield await target_of(rig)
