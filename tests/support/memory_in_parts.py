"""A driver over memory for exports in parts: parts of three rows, one of which fails once, and one that takes long."""

from __future__ import annotations

from dragoman import Insert

CODE = """
import os

import anyio

from dragoman_api import QueryError, hookimpl
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    reads = 0

    def __init__(self):
        super().__init__(part_rows=3)

    @hookimpl
    async def export_rows(self, request):
        type(self).reads += 1
        if request.share and len(self.server.objects["scratch"]) in (12, 15) and type(self).reads == 3:
            raise QueryError("a shard failed")
        async for part in super().export_rows(request):
            if request.object == "scratch" and type(self).reads == 90:
                await anyio.sleep(60)
            yield part
"""


async def fill(session, rows):
    """Insert so many rows into the object that fails or takes long."""
    await session.apply(await session.plan(*(Insert("scratch", {"title": f"{at}"}) for at in range(rows))))
