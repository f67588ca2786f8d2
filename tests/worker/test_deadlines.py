"""A driver that hangs costs its caller the deadline, and itself its process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest

from dragoman.sandbox import conversation
from dragoman.sandbox.conversation import PendingCall, PendingCalls, open_pipe
from dragoman_api.connections import Health
from dragoman_api.errors import DeadlineExceededError, DriverCrashedError
from slow_cases import mostly_slow

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

SLOW = """
class Driver:
    @hookimpl
    async def ping(self):
        return Health(ok=True)

    @hookimpl
    async def describe_object(self, name):
        if name == "block":
            time.sleep(60)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("cancelled", name)
            while name == "stubborn":
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass
            if name == "late":
                return Description(object=name, columns=[])
            raise
"""


async def test_an_endless_await_is_cancelled_and_the_driver_lives_on(workshop: Workshop) -> None:
    async with workshop.worker(SLOW) as worker:
        for name in ("obedient", "late"):
            with pytest.raises(DeadlineExceededError, match=r"\b0\.05\b"):
                await worker.call("describe_object", name, deadline=0.05)
        assert await worker.call("ping", deadline=5) == Health(ok=True)
        await anyio.sleep(1.1)
        assert not worker.ended.is_set(), "an answer within the grace keeps it alive, even a late one"
    assert [line for line in workshop.lines if line] == ["cancelled obedient", "cancelled late"]


@pytest.mark.parametrize("name", mostly_slow(["block", "stubborn"], fast=["block"]))
async def test_a_driver_that_ignores_the_cancellation_is_killed_after_the_grace(workshop: Workshop, name: str) -> None:
    async with workshop.worker(SLOW) as worker:
        began = anyio.current_time()
        with pytest.raises(DeadlineExceededError):
            await worker.call("describe_object", name, deadline=0.05)
        assert anyio.current_time() - began < 0.5, "the caller does not wait for the kill"
        with pytest.raises(DriverCrashedError, match=r"\b1\b"), anyio.fail_after(3):
            await worker.call("describe_object", "obedient")
        assert worker.ended.is_set()


async def test_a_caller_that_goes_away_cancels_the_call(workshop: Workshop) -> None:
    async with workshop.worker(SLOW) as worker:
        with anyio.move_on_after(0.05):
            await worker.call("describe_object", "obedient")
        assert await worker.call("ping") == Health(ok=True)
    assert "cancelled obedient" in workshop.lines


async def test_a_call_and_its_cancellation_may_arrive_together(workshop: Workshop) -> None:
    async with workshop.worker(SLOW) as worker:
        for _ in range(20):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await worker.call("describe_object", "obedient")
        await anyio.sleep(1.2)
        assert not worker.ended.is_set()
        assert await worker.call("ping", deadline=5) == Health(ok=True)


async def test_closing_while_a_call_hangs_is_quick(workshop: Workshop) -> None:
    async with anyio.create_task_group() as tasks:
        async with workshop.worker(SLOW) as worker:

            async def hang() -> None:
                with pytest.raises(DriverCrashedError, match="closed"):
                    await worker.call("describe_object", "block")

            tasks.start_soon(hang)
            await anyio.sleep(0.05)
            began = anyio.current_time()
        assert anyio.current_time() - began < 1


async def test_many_calls_run_at_once(workshop: Workshop) -> None:
    source = SLOW.replace("await asyncio.sleep(60)", "await asyncio.sleep(0.2)", 1).replace('"late"', "name")
    source += "        return Description(object=name, columns=[])\n"
    seen = []
    async with workshop.worker(source) as worker:
        began = anyio.current_time()

        async def one(name: str) -> None:
            seen.append((await worker.call("describe_object", name)).object)

        async with anyio.create_task_group() as tasks:
            for at in range(50):
                tasks.start_soon(one, str(at))
        assert anyio.current_time() - began < 2
    assert sorted(seen) == sorted(map(str, range(50)))


async def test_no_grace_lasts_longer_than_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "GRACE_SECONDS", 0.01)
    disobedience: list[str] = []
    calls = PendingCalls(on_disobedience=lambda _grace: disobedience.append("late"))
    assert [calls.abandon(calls.add(PendingCall(Health))) for _ in range(2)] == [True, True]
    calls.end(lambda: DriverCrashedError("it ended"))
    await anyio.sleep(0.03)
    assert disobedience == []


async def test_a_cancelled_call_has_longer_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "GRACE_SECONDS", 0.01)
    monkeypatch.setattr(conversation, "SHARED_GRACE_SECONDS", 0.02)
    graces: list[float] = []
    calls = PendingCalls(on_disobedience=graces.append)
    read, write = (calls.add(PendingCall(Health)) for _ in range(2))
    calls.abandon(read)  # its end would be the end of the write, too
    calls.abandon(write)
    with anyio.fail_after(5):
        while len(graces) < 2:
            await anyio.sleep(0.01)
    assert sorted(graces) == [0.01, 0.02]


def test_neither_end_of_a_pipe_blocks() -> None:
    reading, writing = open_pipe()
    with reading, writing:
        assert [os.get_blocking(end.fileno()) for end in (reading, writing)] == [False, False]
