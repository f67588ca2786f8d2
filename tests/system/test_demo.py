"""`make demo` as a process of its own: where it listens, and what it leaves when it is interrupted at any stage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from thorough import one_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what is left is looked for in /proc"),
]
ROOT = Path(__file__).parents[2]
STAGES = {
    "at once": "",
    "when its servers are up": "walks through its story",
    "while a driver is installed": "$ dragoman objects",
    "while an export is written": "$ dragoman export",
}


def environment_of(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def started_for(folder):
    """Find all processes that the demo in this folder started, however far down and whoever's children they are now."""
    mark = f"TMPDIR={folder}".encode()
    return {int(each.name) for each in Path("/proc").glob("[0-9]*") if mark in environment_of(each.name).split(b"\0")}


def below(parent):
    """Find the children of a process, and theirs, by number and start."""
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (each / "stat").read_text().rpartition(")")[2].split()
            found[int(each.name)] = int(state[1]), state[19]
    known, more = set(), {parent}
    while more:
        known |= more
        more = {pid for pid, (of, _) in found.items() if of in more} - known
    return {(pid, found[pid][1]) for pid in known - {parent} if pid in found}


def alive(processes):
    return {pid for pid, start in processes if (pid, start) in below(os.getpid()) | below(1)}


def listening(pids):
    """Return the addresses on which processes listen."""
    sockets = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                sockets.add(str(link.readlink()))
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table]
    return {line[1].partition(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets}


@pytest.mark.parametrize(("stage", "number"), one_in(3, product(STAGES, (signal.SIGINT, signal.SIGTERM))))
def test_an_interrupted_demo_leaves_no_process_and_no_folder(tmp_path, stage, number):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    environment.pop("DRAGOMAN_DEMO_URL", None)
    environment.pop("DRAGOMAN_HOME", None)
    told = tmp_path.parent / f"{tmp_path.name}.txt"
    with told.open("wb") as output:
        demo = subprocess.Popen(
            [sys.executable, "-m", "docs.demo"], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        until = time.monotonic() + 120
        while STAGES[stage] not in told.read_text() and demo.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        if "servers" in stage:
            assert listening(started_for(tmp_path)) == {"0100007F"}, "it listens on more than 127.0.0.1"
        family = below(demo.pid)
        demo.send_signal(number)
        code = demo.wait(60)
    if stage == "at once":  # the interpreter itself may not have begun
        assert code != 0
    else:
        assert code == 128 + number, told.read_text()
        assert "Traceback" not in told.read_text()
    until = time.monotonic() + 10
    while (left := started_for(tmp_path) | alive(family)) and time.monotonic() < until:
        time.sleep(0.05)  # a process that was killed ends a moment later
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == set()
    assert [each.name for each in tmp_path.iterdir()] == []
