"""Back pressure: where the server turns one worker's request away, all workers slow down, and recover."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import asynccontextmanager

import pytest
from anyio.from_thread import start_blocking_portal

from dask_processes import until
from dragoman_api.exports import ExportPart
from dragoman_dask import pace as pacing
from dragoman_dask.pace import Pace
from paged_server import PagedServer

WORKERS = 3


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_one_request_turned_away_slows_every_worker_until_the_server_recovers(tmp_path):
    server = PagedServer(pages=100_000, rows=1, seconds=0.05)

    def rates(begin, end):
        """Requests a second of each worker in a span of time."""
        found = [share for at, share in list(server.asked) if begin <= at < end]
        return [found.count(str(share)) / (end - begin) for share in range(WORKERS)]

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.serve()):
        machine = server.machine(tmp_path)
        words = f"dragoman export shop docs --parts {WORKERS} --cluster local --workers {WORKERS} -o".split()
        export = subprocess.Popen(
            machine.words(*words[1:], str(tmp_path / "docs")),
            env=machine.variables(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: min(rates(time.monotonic() - 1, time.monotonic())) > 2)
            time.sleep(2)
            server.busy, turned = 1, time.monotonic()
            time.sleep(3 * pacing.EASED + 4)
        finally:
            export.send_signal(signal.SIGINT)
            assert export.wait(60) == 130
    before = rates(turned - 2, turned)
    slowed = rates(turned + 1.5, turned + pacing.EASED)
    after = rates(turned + 3 * pacing.EASED + 1.5, turned + 3 * pacing.EASED + 4)
    print("requests a second of each worker:", before, slowed, after)
    assert all(slow < 0.5 * fast for slow, fast in zip(slowed, before, strict=True))
    assert all(again > 1.5 * slow for again, slow in zip(after, slowed, strict=True))


def test_the_pace_doubles_with_each_overload_and_recovers(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(pacing.time, "monotonic", lambda: now)
    pace = Pace()
    assert pace.pause == 0
    pace.slow_down()
    pace.slow_down()  # of the same overload
    assert pace.pause == pacing.FIRST
    for _ in range(10):
        now += pacing.TOGETHER
        pace.slow_down()
    assert pace.pause == pacing.MOST
    now += pacing.EASED
    assert pace.pause == pacing.MOST / 2
    now += 5 * pacing.EASED
    assert pace.pause == pacing.MOST / 64 > pacing.LEAST
    now += pacing.EASED
    assert pace.pause == 0  # half of it is not worth while
    now += 100_000 * pacing.EASED
    assert pace.pause == 0


async def test_a_request_that_was_turned_away_is_told_and_pauses_before_the_next_page(monkeypatch):
    slept, told = [], []

    async def sleep(seconds):
        slept.append(seconds)

    async def stream():
        yield ExportPart(data=b"1\n", rows=1)
        yield ExportPart(data=b"", rows=0, turned_away=2)
        yield ExportPart(data=b"2\n3\n", rows=2, turned_away=1)
        yield ExportPart(data=b"", rows=0)

    @asynccontextmanager
    async def parts():
        yield stream()

    monkeypatch.setattr(pacing.anyio, "sleep", sleep)
    pace = Pace(lambda: told.append(pace.pause))
    async with pace.parts(parts()) as paced:
        found = [part.rows async for part in paced]
    assert found == [1, 2, 0]  # a part that tells of a busy server alone has no rows for anyone
    assert told == [pacing.FIRST] * 2  # of one overload
    assert len(slept) == 3
    slept.clear()
    async with pace.parts(parts()):
        assert len(slept) == 1  # a part that begins meanwhile waits, too
