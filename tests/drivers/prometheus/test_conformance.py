"""Conformance of the driver on the fake and on real servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.prometheus.rig import Rig, on_fake, on_server
from drivers.prometheus.samples import samples
from drivers.rigging import manifest_of

from dragoman_api.testing import DriverConformance, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NAME = "http_requests_total"


READS_OF_FAKE = [
    f'{NAME}{{code="200"}}',
    "vector(1)",
    f"GET /api/v1/series?match[]={NAME}",
    f"GET /api/v1/query?query={NAME}",
    "GET /api/v1/label/job/values",
]
LATER = [pytest.param(version, marks=pytest.mark.slow) for version in ("3.16.0", "")]
"""Fakes whose answers differ in little from those of the first; the empty version is VictoriaMetrics."""

READS = [*READS_OF_FAKE, f"sum by (job) (rate({NAME}[5m])) or vector(1)"]


def target_of(rig: Rig, reads: list[str] = READS) -> Target:
    return Target(
        driver=rig.driver,
        object=NAME,
        rows=len(samples()[NAME]),
        manifest=manifest_of("prometheus"),
        log=rig.log,
        reads=reads,
        writes=["POST /api/v1/admin/tsdb/delete_series?match[]=up", "DELETE /api/v1/series?match[]=up"],
        broken=[("up{a='b}", 1, 6), ("GET //elsewhere/api", 1, 5), ("\nsum(rate(up[5m])", 2, 4), ("up)", 1, 3)],
    )


class TestConformanceOnFake(DriverConformance):
    @pytest.fixture(scope="class", params=["2.42.0", *LATER])
    async def target(self, request: pytest.FixtureRequest) -> AsyncIterator[Target]:
        async with on_fake(request.param) as rig:
            yield target_of(rig, reads=READS_OF_FAKE)


@pytest.mark.slow
class TestConformanceInTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self) -> AsyncIterator[Target]:
        async with on_fake(confined=True) as rig:
            yield target_of(rig, reads=READS_OF_FAKE)


@pytest.mark.live("prometheus")
class TestConformanceOnServer(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, live_server: dict[str, Any]) -> AsyncIterator[Target]:
        async with on_server(live_server) as rig:
            yield target_of(rig)
