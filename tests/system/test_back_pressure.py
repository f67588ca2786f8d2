"""Back pressure: where the server turns one worker's request away, all workers slow down, and recover."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest
from anyio.from_thread import start_blocking_portal

from dask_processes import until
from dragoman.exports.parts import pace as pacing
from dragoman.exports.parts.pace import Pace
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
    now += 100_000 * pacing.EASED
    assert pace.pause == 0
