"""Machines with less than usual: a home without locks, read-only or full, few descriptors, a clock that was set back.

What can work does, and what cannot says why and what to do. Mounts are made in a namespace, which takes root.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from command_line import Ended
from dragoman.cli import app
from dragoman.plugins import install_steps
from dragoman_registry import files
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.trees import leasing

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Machine

SUPPORT = Path(wheelhouse.__file__).parent
CANNOT_LOCK = "its file system cannot lock files"
LOCAL = "set DRAGOMAN_HOME to a folder on a disk of this machine"


@dataclass
class Surrounding:
    """What a command finds around it.

    Attributes:
        refused: System calls that a filter answers with an error, as `refusing.py` takes them.
        mounts: Commands of a shell, run first in a mount namespace; HOME stands for the home.
        descriptors: Open files that it may have; 0 for as many as the tests.
    """

    refused: tuple[str, ...] = ()
    mounts: str = ""
    descriptors: int = 0

    def run(self, house: Machine, line: str) -> Ended:
        """Run `dragoman LINE` there."""
        command = house.words(*line.split())
        if self.refused:
            command = [sys.executable, "-B", str(SUPPORT / "refusing.py"), *self.refused, "--", *command]
        if self.mounts:
            if os.geteuid() != 0 or not shutil.which("unshare"):
                pytest.skip("NOT SHOWN HERE: only root makes mounts")
            mounts = self.mounts.replace("HOME", str(house.home))
            command = ["unshare", "-m", "sh", "-ec", f'{mounts}\nexec "$@"', "sh", *command]
        limit: Callable[[], None] | None = None
        if self.descriptors:
            limits = (self.descriptors, self.descriptors)
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits)  # noqa: E731
        done = subprocess.run(
            command, env=house.variables(), cwd=house.home.parent, capture_output=True, text=True, timeout=200,
            check=False, preexec_fn=limit,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return Ended((line,), done.returncode, done.stdout, done.stderr)


LOCKLESS = Surrounding(refused=("flock=ENOLCK",))
READ_ONLY = Surrounding(mounts="mount --bind HOME HOME\nmount -o remount,ro,bind HOME")
FULL = Surrounding(
    mounts="cp -a HOME HOME.kept\nmount -t tmpfs -o size=4m,mode=700 tmpfs HOME\ncp -a HOME.kept/. HOME\n"
    "rm -r HOME.kept\ndd if=/dev/zero of=HOME/filler bs=4k 2>/dev/null || true"
)
FEW = Surrounding(descriptors=24)
NONE_LEFT = Surrounding(descriptors=12)

SAVES = "connections add second --type demo --no-connect --yes"
INSTALLS = "plugins install demo --yes"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("surrounding", "line", "code", "reason", "action"),
    [
        (LOCKLESS, SAVES, 2, CANNOT_LOCK, LOCAL),
        (Surrounding(refused=("flock=ENOSYS",)), SAVES, 2, CANNOT_LOCK, LOCAL),
        (READ_ONLY, SAVES, 2, "Read-only file system", "set DRAGOMAN_HOME to a folder that can be written"),
        (FULL, SAVES, 2, "No space left on device", "free some space in "),
        (READ_ONLY, "plugins remove demo --yes", 1, "Read-only file system", "set DRAGOMAN_HOME"),
        (LOCKLESS, "plugins remove demo --yes", 1, CANNOT_LOCK, LOCAL),
        (FULL, "export shop books -o HOME/books.csv", 1, "No space left on device", "free some space"),
        (LOCKLESS, "export shop books -o books.csv", 1, CANNOT_LOCK, "choose a folder on a disk of this machine"),
    ],
)
def test_what_cannot_be_written_says_why_and_what_to_do(own, surrounding, line, code, reason, action):
    state = {path: path.read_bytes() for path in own.home.rglob("*.toml")}
    done = surrounding.run(own, line.replace("HOME", str(own.home)))
    assert done.code == code, done
    assert reason in done.err
    assert action in done.err
    assert {path: path.read_bytes() for path in own.home.rglob("*.toml")} == state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("surrounding", "reason", "action"),
    [
        (LOCKLESS, CANNOT_LOCK, LOCAL),
        (READ_ONLY, "Read-only file system", "set DRAGOMAN_HOME to a folder that can be written"),
        (FULL, "No space left on device", "free some space in "),
    ],
)
def test_what_cannot_be_installed_says_why_and_what_to_do(empty, surrounding, reason, action):
    done = surrounding.run(empty, INSTALLS)
    assert (done.code, reason in done.err, action in done.err) == (1, True, True), done


@pytest.mark.slow
@pytest.mark.parametrize("surrounding", [LOCKLESS, READ_ONLY, FULL, FEW])
def test_an_installed_driver_goes_on_reading(own, surrounding):
    done = surrounding.run(own, "page shop books --limit 2 --json")
    assert (done.code, len(done.json["rows"])) == (0, 2), done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("surrounding", "subject", "reason", "action"),
    [
        (LOCKLESS, "data", CANNOT_LOCK, LOCAL),
        (READ_ONLY, "config", "cannot be written", "set DRAGOMAN_HOME to a folder that can be written"),
        (FULL, "state", "is on a disk with 0 MiB left", "free some space in "),
        (FEW, "open files", "24 at most", "ulimit -n 8192"),
    ],
)
def test_doctor_says_what_is_wrong_with_the_surroundings(own, surrounding, subject, reason, action):
    done = surrounding.run(own, "doctor --json")
    finding = {finding["subject"]: finding for finding in done.json["findings"]}[subject]
    assert finding["state"] == "warning"
    assert reason in finding["found"]
    assert action in finding["remedy"]


@pytest.mark.slow
def test_a_driver_for_which_no_descriptor_is_left_says_how_to_allow_more(own):
    done = NONE_LEFT.run(own, "page shop books --limit 2")
    assert done.code == 1, done
    assert "ulimit -n 8192" in done.err


def test_a_command_takes_the_descriptors_that_it_may_have(monkeypatch):
    kept: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: kept.append(limits))
    for soft, hard in ((1024, 4096), (1024, resource.RLIM_INFINITY), (4096, 4096), (resource.RLIM_INFINITY,) * 2):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=(soft, hard): limits)
        app._allow_descriptors()
    assert kept == [(4096, 4096), (app.DESCRIPTORS, resource.RLIM_INFINITY)]


def test_where_nothing_can_be_locked_trees_are_leased_without_a_lock(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    before = len([*Path("/proc/self/fd").iterdir()])
    with leasing([tmp_path]):
        pass
    with pytest.raises(OSError, match=CANNOT_LOCK):
        files.share(tmp_path)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_repair_that_a_clock_puts_into_the_future_does_not_hold_up_the_next(own):
    note, store = install_steps._REPAIRS.format("demo"), Store(own.home / "data")
    store.change_note(note, lambda _: (1, time.time() + 30 * 86_400))
    file = next((own.home / "data" / "store").rglob("driver.py"))
    file.chmod(0o644)
    file.write_text("tampered")
    assert len(own("page", "shop", "books", "--limit", "2", "--json").json["rows"]) == 2
