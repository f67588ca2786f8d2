"""A fake OpenSearch server, and the driver connected to it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from drivers import rigging
from drivers.elasticsearch.rig import Rig

from dragoman_opensearch.driver import Driver
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

VERSIONS = (pytest.param("2.19.6", marks=pytest.mark.slow), "3.9.0")


@asynccontextmanager
async def on_fake(version: str, *, confined: bool = False, **more: Any) -> AsyncIterator[Rig]:
    """Connect the driver to a fake server; a request that no server understands fails the test."""
    async with FakeElasticsearch(opensearch=version) as fake:
        given = rigging.profile_of(fake.url, name="shop", type="opensearch", **more)
        way = rigging.confined(Rig, Driver, given) if confined else rigging.connected(Rig, Driver(), given)
        async with way as rig:
            rig.version = tuple(int(part) for part in version.split("."))
            rig.fake, rig.lose = fake, fake.lose
            yield rig
        assert fake.faults == []
