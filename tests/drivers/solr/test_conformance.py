"""Conformance of the driver on the real server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from drivers.rigging import behind_proxy, manifest_of
from drivers.solr.rig import Rig, on_server

from dragoman_api import Json
from dragoman_api.testing import DriverConformance, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api import HttpRequest


def documents(number: int) -> list[dict[str, Any]]:
    rows = []
    for at in range(number):
        values: dict[str, Any] = {
            "title_s": f"Book {at} about tea",
            "pages_l": at * 3 if at % 5 else 2**53 + at,
            "count_i": at - 20,
            "price_d": at * 1.25,
            "weight_f": at / 8,
            "available_b": at % 2 == 0,
            "at_dt": f"2024-01-{at % 28 + 1:02}T12:00:00{'.5' if at % 3 else ''}Z",
            "text_t": f"Document {at} of tea, Überblick\n{'cats' if at % 2 else 'dogs'}",
            "tags_ss": [f"tag{at % 4}", "all"],
            "sizes_ls": [at, 2**40],
            "only_column": f"v{at % 7}",
            "bytes_bin": "AQID",
            "place_p": f"{at / 2},{-at}",
            "long_s": "x" * (12_000 if at == 7 else at + 1),
        }
        kept = {name: value for name, value in values.items() if (at + len(name)) % 11}
        rows.append({"id": f"b{at:03} /ü\"'{at}", **kept})
    return rows


def reads(request: HttpRequest) -> bool:
    """Return whether a POST of Solr only reads."""
    return request.path.partition("?")[0].endswith(("/select", "/get"))


async def target_of(rig: Rig) -> Target:
    name = await rig.core(documents(60))
    scratch = await rig.core([documents(1)[0] | {"id": "seed"}, documents(13)[12]])
    return Target(
        driver=rig.driver,
        object=name,
        rows=60,
        log=rig.log,
        lose=rig.lose,
        scratch=scratch,
        row={
            "title_s": "New", "pages_l": 12, "price_d": 2.5, "available_b": True, "text_t": "text",
            "tags_ss": Json('["b","a"]'), "at_dt": "2024-02-29T23:59:59.250Z",
        },
        new_id=lambda: uuid4().hex,
        change={"pages_l": 2**60, "title_s": "Other"},
        posts_that_read=reads,
        manifest=manifest_of("solr"),
        raw_filter="count_i:[0 TO 9]",
        reads=["GET /solr/admin/info/system", f"GET /{name}/schema", f'POST /{name}/select {{"query": "*:*"}}'],
        writes=[
            f'POST /{name}/update {{"delete": {{"id": "x"}}}}',
            "GET /admin/cores?action=UNLOAD&core=x",
            f"GET /solr/{name}/update?stream.body=<commit/>",
        ],
        broken=[("DELETE FROM x", 1, 13), (f'POST /{name}/select\n{{"a":}}', 2, 6), ("{}", 1, 1)],
    )  # fmt: skip


@pytest.mark.live("solr")
@pytest.mark.one_engine
class TestConformanceOnServerFromTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with on_server(live_server, confined=True) as rig:
            yield await target_of(rig)


@pytest.mark.live("solr")
class TestConformanceOnServer(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with behind_proxy(live_server) as (record, lose), on_server(record) as rig:
            rig.lose = lose
            yield await target_of(rig)
