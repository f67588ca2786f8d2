"""A warm spare shortens a start, and a supervisor starts a driver again within limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from dragoman.sandbox import Spare, Supervisor, find_closure
from dragoman.sandbox import supervisor as module
from dragoman_api.connections import Health
from dragoman_api.errors import DriverCrashedError

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

CRASHING = "os._exit(3)"


async def test_a_spare_becomes_a_worker_like_any_other(workshop: Workshop) -> None:
    with Spare(find_closure()) as spare:
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
    with Spare(find_closure()) as spare:
        spare.fill()
        assert spare._child is not None
        spare._child.process.kill()
        spare._child.process.wait()
        async with workshop.attempting("return 1", spare=spare) as worker:
            assert await worker.call("ping") == Health(ok=True)


async def test_an_unused_spare_ends_with_its_owner() -> None:
    with Spare(find_closure()) as spare:
        spare.fill()
        assert spare._child is not None
        pid = spare._child.process.pid
    assert not Path(f"/proc/{pid}").exists()


async def test_a_crashed_driver_is_started_again_three_times_a_minute(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Supervisor(workshop.again(CRASHING, attempt=True)) as supervisor:
        for incarnation in (1, 2, 3, 4):
            worker = await supervisor.worker()
            assert supervisor.incarnation == incarnation
            assert await supervisor.worker() is worker, "as long as it lives, it is the same"
            with pytest.raises(DriverCrashedError, match="exit status 3"):
                await worker.call("describe_object", "x")
        with pytest.raises(DriverCrashedError, match="not started again"):
            await supervisor.worker()
        monkeypatch.setattr(module, "WINDOW_SECONDS", 0.0)
        assert (await supervisor.worker()).ended.is_set() is False


async def test_a_driver_that_does_not_start_says_so_and_may_start_later(workshop: Workshop) -> None:
    async with Supervisor(workshop.again("raise RuntimeError('not yet')")) as supervisor:
        with pytest.raises(Exception, match="not yet"):
            await supervisor.worker()
        workshop.write("class Driver:\n    @hookimpl\n    async def ping(self): ...")
        assert (await supervisor.worker()).hooks == {"ping"}


async def test_concurrent_callers_share_one_start(workshop: Workshop) -> None:
    got = []
    async with Supervisor(workshop.again("return 1", attempt=True)) as supervisor:

        async def ask() -> None:
            got.append(await supervisor.worker())

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
        assert len(set(map(id, got))) == 1
        assert supervisor.incarnation == 1


async def test_an_error_inside_the_supervisor_comes_out_unwrapped(workshop: Workshop) -> None:
    supervisor = Supervisor(workshop.again("return 1", attempt=True))
    with pytest.raises(KeyError):
        await fail_within(supervisor)


async def fail_within(supervisor: Supervisor) -> None:
    async with supervisor:
        await supervisor.worker()
        raise KeyError("mine")
