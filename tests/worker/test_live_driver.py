"""One connection's driver is started again within limits, and once for all who wait for it."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from dragoman.automations.hook_manager import Hooks
from dragoman.sandbox.launch import Launch
from dragoman.sessions import live_driver as module
from dragoman.sessions.live_driver import LiveDriver
from dragoman_api.connections import Profile
from dragoman_api.errors import DriverCrashedError, DriverFaultError
from dragoman_api.events import PluginRestarted
from dragoman_api.exports import ExportRequest

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

CRASHING = """
class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server("Demo", str(os.getpid()))

    @hookimpl
    async def describe_object(self, name):
        os._exit(3)
"""

DYING = f"""{CRASHING}
    @hookimpl
    async def export_rows(self, request):
        yield ExportPart(data=b"{{}}\\n", rows=1)
        os._exit(3)
"""


class Made(LiveDriver):
    """A driver written on the spot; what happens to it is kept."""

    def __init__(self, workshop: Workshop, source: str = CRASHING) -> None:
        self.told: list[Any] = []
        tree = workshop.write(source)
        super().__init__(
            generation=SimpleNamespace(plugin="tiny", trees=(tree,), linked=False),  # type: ignore[arg-type]
            launch=Launch(
                driver="tiny_driver:Driver", trees=(tree,), profile=Profile(name="n", type="t", host="db", port=1)
            ),
            hooks=Hooks([], emit=self.told.append),
            emit=self.told.append,
            spare=workshop.spare,
            reached=SimpleNamespace(),  # type: ignore[arg-type]
            unattended=True,
        )


async def crash(driver: LiveDriver) -> None:
    with pytest.raises(DriverCrashedError) as caught:
        await (await driver.hooks()).call("describe_object", "x", deadline=10)
    assert caught.value.details["status"] == "exit status 3"
    assert not driver.alive


async def test_a_crashed_driver_is_started_again_three_times_a_minute(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = set()
    async with Made(workshop) as driver:
        for incarnation in (1, 2, 3, 4):
            hooks = await driver.hooks()
            assert driver.incarnation == incarnation
            pids.add(driver.server.version)
            assert await driver.hooks() is hooks
            assert driver.incarnation == incarnation, "as long as it lives, it is the same"
            await crash(driver)
        assert len(pids) == 4
        with pytest.raises(DriverCrashedError, match="not started again"):
            await driver.hooks()
        monkeypatch.setattr(module, "WINDOW_SECONDS", 0.0)
        await driver.hooks()
        assert driver.alive
    assert [told.attempt for told in driver.told if isinstance(told, PluginRestarted)] == [1, 2, 3, 4]


async def test_each_end_of_a_process_is_told_once_whatever_was_going_on(workshop: Workshop) -> None:
    async with Made(workshop, DYING) as driver:
        await crash(driver)
        with pytest.raises(DriverCrashedError):
            async for _ in (await driver.hooks()).stream("export_rows", ExportRequest(object="x")):
                pass
        await driver.hooks()
        os.kill(int(driver.server.version), signal.SIGKILL)  # while it is idle
        with anyio.fail_after(5):
            while driver.alive:
                await anyio.sleep(0.01)
        await driver.hooks()
    found = [(told.name, getattr(told, "attempt", 0)) for told in driver.told]
    crashed, restarted = ("plugin.crashed", 0), "plugin.restarted"
    assert found == [crashed, (restarted, 1), crashed, (restarted, 2), crashed, (restarted, 3)]


async def test_an_orderly_end_is_no_crash(workshop: Workshop) -> None:
    with anyio.CancelScope() as scope:
        async with Made(workshop) as driver:
            scope.cancel()
            await anyio.sleep_forever()
    assert driver.told == []


async def test_a_driver_that_does_not_start_says_so_and_may_start_later(workshop: Workshop) -> None:
    with pytest.raises(DriverFaultError, match="not yet"):
        async with Made(workshop, "raise RuntimeError('not yet')"):
            pass
    async with Made(workshop) as driver:
        await crash(driver)
        workshop.write("raise RuntimeError('not yet')")
        for _ in range(2):
            with pytest.raises(DriverFaultError, match="not yet"):
                await driver.hooks()
        assert not driver.alive
        workshop.write(CRASHING.replace("describe_object(self, name)", "ping(self)"))
        await driver.hooks()
        assert driver.alive
        assert driver.offers("ping")
        assert not driver.offers("describe_object"), "it has the hooks of what runs now"


async def test_a_driver_that_does_not_connect_is_asked_again_and_not_started_again(workshop: Workshop) -> None:
    fail = "raise KeyError('once')"
    failing = f"self.asked = getattr(self, 'asked', 0) + 1\n        if self.asked == 1:\n            {fail}"
    again = CRASHING.replace("return Server(", f"{failing}\n        return Server(")
    async with Made(workshop) as driver:
        await crash(driver)
        workshop.write(again)
        with pytest.raises(DriverFaultError, match="once"):
            await driver.hooks()
        assert not driver.alive
        await driver.hooks()
        assert driver.alive
        assert driver.incarnation == 2
    assert [told.attempt for told in driver.told if isinstance(told, PluginRestarted)] == [1]


async def test_concurrent_callers_share_one_start(workshop: Workshop) -> None:
    got: list[Any] = []
    async with Made(workshop) as driver:
        await crash(driver)

        async def ask() -> None:
            got.append(await driver.hooks())

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
        assert len(got) == 5
        assert len(set(map(id, got))) == 1
        assert driver.incarnation == 2


async def test_an_error_inside_a_connection_comes_out_unwrapped(workshop: Workshop) -> None:
    with pytest.raises(KeyError):
        await fail_within(Made(workshop))


async def fail_within(driver: LiveDriver) -> None:
    async with driver:
        raise KeyError("mine")
