"""Conformance of the driver in memory."""

from __future__ import annotations

import pytest

from dragoman_api.connections import Profile
from dragoman_api.testing import DriverConformance, MemoryDriver, Target

PROFILE = Profile(name="m", type="memory", host="127.0.0.1", port=1)


async def memory_target(driver: MemoryDriver) -> Target:
    """Connect a driver in memory and say what the conformance tests may expect of it."""
    await driver.connect(PROFILE, None)
    return Target(
        driver=driver,
        object="books",
        rows=23,
        log=driver.server.log,
        lose=driver.server.lose,
        scratch="scratch",
        row={"title": "New", "price": 2**63 + 5, "stock": 1},
        change={"price": 3.5},
        reads=["GET /books", "GET /books/1"],
        writes=['PUT /books/1 {"title": "x"}', "DELETE /books", "POST /books {}"],
        broken=[("nonsense", 1, 1), ("GET /\n\nPUT nowhere", 3, 5)],
    )


class TestMemoryDriver(DriverConformance):
    @pytest.fixture
    async def target(self) -> Target:
        return await memory_target(MemoryDriver())
