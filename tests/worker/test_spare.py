"""A warm spare shortens a start."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from dragoman.sandbox.bare_process import Child, Spare
from dragoman.sandbox.host_imports import find_host_imports
from dragoman_api.connections import Health

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop


async def test_a_spare_becomes_a_worker_like_any_other(workshop: Workshop) -> None:
    with Spare(await anyio.to_thread.run_sync(find_host_imports)) as spare:
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
    with Spare(await anyio.to_thread.run_sync(find_host_imports)) as spare:
        spare.fill()
        assert spare._child is not None
        spare._child.process.kill()
        spare._child.process.wait()
        async with workshop.attempting("return 1", spare=spare) as worker:
            assert await worker.call("ping") == Health(ok=True)


async def test_an_unused_spare_ends_with_its_owner() -> None:
    with Spare(await anyio.to_thread.run_sync(find_host_imports)) as spare:
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
        with Spare(await anyio.to_thread.run_sync(find_host_imports)) as spare:
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


@pytest.mark.skipif(sys.platform != "linux", reason="Linux shows another process's descriptors")
def test_a_program_that_starts_beside_a_child_inherits_none_of_its_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other code of the host may start one at any moment, from any thread."""
    listing = "import os; print(*(os.path.realpath(f'/proc/self/fd/{name}') for name in os.listdir('/proc/self/fd')))"
    inherited: list[str] = []
    spawn = os.posix_spawn

    def beside(*arguments: Any, **options: Any) -> int:
        monkeypatch.undo()
        told = subprocess.check_output([sys.executable, "-c", listing], close_fds=False, stdin=DEVNULL)
        inherited.extend(told.decode().split())
        return spawn(*arguments, **options)

    monkeypatch.setattr(os, "posix_spawn", beside)
    child = Child()
    child.discard()
    assert inherited
    assert not [each for each in inherited if "socket:" in each]


def test_a_host_without_standard_streams_starts_a_child() -> None:
    """Its sockets and its pipe then have their numbers."""
    program = (
        "import os; [os.close(each) for each in (0, 1, 2)]\n"
        "from dragoman.sandbox.bare_process import Child\n"
        "child = Child()\n"
        "import time; time.sleep(0.5); alive = not child.process.ended; child.discard(); os._exit(0 if alive else 3)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
