"""A warm spare shortens a start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from dragoman.sandbox import Spare, find_host_imports
from dragoman_api.connections import Health

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop


async def test_a_spare_becomes_a_worker_like_any_other(workshop: Workshop) -> None:
    with Spare(find_host_imports()) as spare:
        spare.fill()
        child = spare._child
        assert child is not None
        await anyio.sleep(0.6)
        async with workshop.attempting("return 1", spare=spare, secrets={"password": "hunter2"}) as worker:
            assert worker._child is child
            assert str(worker.report) == str(worker.report)
            assert await worker.call("ping") == Health(ok=True)
        assert spare.take() is None, "a spare is used once"


async def test_a_spare_that_died_is_not_used(workshop: Workshop) -> None:
    with Spare(find_host_imports()) as spare:
        spare.fill()
        assert spare._child is not None
        spare._child.process.kill()
        spare._child.process.wait()
        async with workshop.attempting("return 1", spare=spare) as worker:
            assert await worker.call("ping") == Health(ok=True)


async def test_an_unused_spare_ends_with_its_owner() -> None:
    with Spare(find_host_imports()) as spare:
        spare.fill()
        assert spare._child is not None
        pid = spare._child.process.pid
    assert not Path(f"/proc/{pid}").exists()
