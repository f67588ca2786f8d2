"""The sample of Prometheus: requests and temperatures of the last three hours, on a fake server until interrupted."""

from __future__ import annotations

import sys
import time
from random import Random
from typing import TYPE_CHECKING, Any

from .sample_cluster import FAKES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HOURS = 3
_STEP = 15_000
_INSTANCES = ("web-1:8080", "web-2:8080")


async def serve() -> AsyncIterator[int]:
    """Serve the sample; yield the port, and serve until the iterator is closed."""
    if FAKES not in sys.path:
        sys.path.append(FAKES)
    from fakes.prometheus import FakePrometheus
    from fakes.serving import serving

    async with serving(FakePrometheus(_samples(int(time.time() * 1000)))) as (_, _, port):
        yield port


def _samples(now: int) -> Iterator[tuple[dict[str, str], int, Any]]:
    chance = Random(1)
    totals: dict[tuple[str, str], float] = {}
    for at in range(now - HOURS * 3_600_000, now, _STEP):
        for instance in _INSTANCES:
            labels = {"instance": instance, "job": "web"}
            yield {"__name__": "up", **labels}, at, 1.0
            for code, most in (("200", 90), ("404", 4), ("500", 2)):
                totals[instance, code] = totals.get((instance, code), 0.0) + chance.randrange(most)
                yield {"__name__": "http_requests_total", "code": code, **labels}, at, totals[instance, code]
            yield {"__name__": "http_requests_in_flight", **labels}, at, float(chance.randrange(20))
        for room in ("cellar", "roof"):
            degrees = round(12 + chance.random() * 9, 2)
            yield {"__name__": "temperature_celsius", "room": room}, at, degrees
