"""A server to test on, and the driver connected to it."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from drivers import rigging
from drivers.prometheus import samples

from dragoman_prometheus.driver import Driver
from dragoman_sample.fakes.prometheus import FakePrometheus
from dragoman_sample.fakes.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from dragoman_api import Profile

_loaded: set[str] = set()


class Rig(rigging.Rig):
    """A connected driver."""

    path = ""
    victoria = False


def profile(url: str, **more: Any) -> Profile:
    """Make a profile of a server without credentials."""
    return rigging.profile_of(url, **{"name": "metrics", "type": "prometheus"} | more)


def connected(given: Profile, *, confined: bool = False) -> AbstractAsyncContextManager[Rig]:
    """Connect a driver, in this process or in its sandbox."""
    return rigging.confined(Rig, Driver, given) if confined else rigging.connected(Rig, Driver(), given)


@asynccontextmanager
async def on_fake(
    version: str = "3.16.0", *, confined: bool = False, instead: Any = None, gate: str = "", **more: Any
) -> AsyncIterator[Rig]:
    """Connect a driver to a fake server that holds the samples; VictoriaMetrics has no version, and stores no NaN."""
    stored = [
        ({"__name__": name, **labels}, at, value)
        for name, rows in samples.samples().items()
        for at, labels, value in rows
    ]
    fake = FakePrometheus(
        [sample for sample in stored if not samples.is_stale(sample[2]) and (version or not math.isnan(sample[2]))],
        version=version,
        gate=gate,
    )
    fake.instead = instead or fake.instead
    fake.add({"__name__": samples.LAST, "lab.el": "x"}, samples.BEGIN + 3_600_000, 1.0)
    histogram = {"count": "10", "sum": "12.5", "buckets": [[3, "-1e-128", "1e-128", "1"], [0, "0.5", "1", "9"]]}
    fake.add({"__name__": "sizes"}, samples.BEGIN + 3_600_000, histogram)
    async with (
        serving(fake) as (_, host, port),
        connected(profile(f"http://{host}:{port}", **more), confined=confined) as rig,
    ):
        rig.fake, rig.victoria = fake, not version
        yield rig


@asynccontextmanager
async def on_server(record: dict[str, Any], *, confined: bool = False) -> AsyncIterator[Rig]:
    """Connect a driver to a real server that holds the samples."""
    if record["url"] not in _loaded:
        samples.load(record["url"])
        _loaded.add(record["url"])
    async with connected(profile(record["url"]), confined=confined) as rig:
        rig.victoria = "victoriametrics" in record["engine"]
        yield rig


class OnServer:
    """Run the rules of a class on every real server of ``--live``."""

    pytestmark = pytest.mark.live("prometheus")

    @pytest.fixture
    async def metrics(self, live_server: dict[str, Any]) -> AsyncIterator[Rig]:
        async with on_server(live_server) as rig:
            yield rig
