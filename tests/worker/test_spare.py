"""A warm spare shortens a start."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

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


@pytest.mark.skipif(sys.platform != "linux", reason="Linux shows another process's folder and descriptors")
async def test_a_child_leaves_the_hosts_terminal_folder_and_descriptors() -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    pipe = str(Path(f"/proc/self/fd/{writing}").readlink())
    try:
        with Spare(find_host_imports()) as spare:
            spare.fill()
            assert spare._child is not None
            pid = spare._child.process.pid

            def told() -> bool:
                return os.getsid(pid) == pid and str(Path(f"/proc/{pid}/cwd").readlink()) == "/" and pipe not in links()

            def links() -> list[str]:
                found = []
                for link in Path(f"/proc/{pid}/fd").iterdir():
                    with suppress(OSError):  # it was closed meanwhile
                        found.append(str(link.readlink()))
                return found

            with anyio.fail_after(20):
                while not told():
                    await anyio.sleep(0.02)
            kept = links()
            assert kept.count("/dev/null") == 1
            assert sum(link.startswith("socket:") for link in kept) == 2
    finally:
        os.close(reading)
        os.close(writing)
