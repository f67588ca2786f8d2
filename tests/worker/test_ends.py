"""What ends leaves nothing: no descriptor, child, thread or folder; and a child does not outlive its host."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

DRIVER = """
class Driver:
    @hookimpl
    async def ping(self):
        return Health(ok=True)
"""

HOST = """
import sys, threading, time
from pathlib import Path
import anyio
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch

async def main():
    async with Worker(Launch(driver="tiny_driver:Driver", trees=(Path(sys.argv[1]),))) as worker:
        print(worker._child.process.pid, flush=True)
        await worker.call("describe_object", "x")

anyio.run(main)
"""


def traces(temporary: Path) -> dict[str, list[str]]:
    """List what a start might leave."""
    links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return {
        "descriptors": sorted(str(target).partition(":")[0] for target in links),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text().split(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "folders": [path.name for path in temporary.iterdir()],
    }


async def start_and_stop(workshop: Workshop, temporary: Path, times: int) -> None:
    make = workshop.again(DRIVER)
    async with make() as worker:  # what is made once and kept
        await worker.call("ping")
    before, began = await anyio.to_thread.run_sync(traces, temporary), time.monotonic()
    for _ in range(times):
        async with make() as worker:
            await worker.call("ping")
    assert await anyio.to_thread.run_sync(traces, temporary) == before
    print(f"{times} starts and stops, {(time.monotonic() - began) / times * 1e3:.0f} ms each")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which everything temporary would be made."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "temporary"


async def test_five_starts_and_stops_leave_nothing_behind(workshop: Workshop, temporary: Path) -> None:
    await start_and_stop(workshop, temporary, 5)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_two_hundred_starts_and_stops_leave_nothing_behind(workshop: Workshop, temporary: Path) -> None:
    await start_and_stop(workshop, temporary, 200)


@pytest.mark.skipif(sys.platform != "linux", reason="NOT SHOWN HERE: the kernel ends orphans on Linux only")
@pytest.mark.parametrize("way", ["while True: pass", pytest.param("time.sleep(600)", marks=pytest.mark.slow)])
def test_a_driver_that_blocks_ends_with_its_killed_host(workshop: Workshop, way: str) -> None:
    from tests.worker.conftest import attempts

    tree = workshop.write(attempts(way))
    with subprocess.Popen([sys.executable, "-c", HOST, str(tree)], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        child = Path(f"/proc/{int(host.stdout.readline())}")
        time.sleep(0.3)  # into the block
        assert child.exists()
        host.kill()
        host.wait()
    for _ in range(100):
        if not child.exists() or "\nState:\tZ" in (child / "status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the child outlived its host by 5 s")
