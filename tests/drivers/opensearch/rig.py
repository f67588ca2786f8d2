"""A real OpenSearch server to test on, and the driver connected to it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from drivers import rigging
from drivers.elasticsearch.rig import Rig

from dragoman_opensearch.driver import Driver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api import Profile


def profile(url: str, **more: Any) -> Profile:
    """Make a profile of a server without credentials."""
    return rigging.profile_of(url, **{"name": "shop", "type": "opensearch"} | more)


@asynccontextmanager
async def on_server(record: dict[str, Any], *, confined: bool = False, **more: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a real server, in this process or in its sandbox."""
    given = profile(record["url"], **more)
    way = rigging.confined(Rig, Driver, given) if confined else rigging.connected(Rig, Driver(), given)
    async with way as rig:
        rig.version = tuple(int(part) for part in record["version"].split("."))
        yield rig
