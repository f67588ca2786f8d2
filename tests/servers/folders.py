"""The cache outside the tree: what was installed once, and one folder per running server."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OWNER = "owner.lock"
_MEMORY = Path("/dev/shm")
_ROOM = 6 << 30
"""Much more than the bytes that all servers of a run write."""


def cache() -> Path:
    """Name the cache folder: `$DRAGOMAN_SERVERS_CACHE`, or the platform's place for caches."""
    named = os.environ.get("DRAGOMAN_SERVERS_CACHE")
    if named:
        return Path(named).expanduser().resolve()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dragoman-servers"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman-servers"


@contextmanager
def exclusive(name: str, *, wait: bool = True) -> Iterator[None]:
    """Let one process at a time, of all that use this cache, do what the name stands for.

    Raises:
        BlockingIOError: Another one does it, and we were not to wait.
    """
    locks = cache() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def build_once(folder: Path, build: Callable[[Path], None], *, shared: str = "") -> bool:
    """Make a folder of the cache unless it is there; a half-made one is never seen under its name.

    One process at a time makes a folder beside others of its kind; different kinds do not wait for each other.

    Args:
        folder: The folder that should exist.
        build: Fills an empty folder beside it, which then takes its name.
        shared: What folders of several kinds download into, if only one process at a time may: ``maven``.

    Returns:
        Whether it was made by this call.
    """
    if folder.is_dir():
        return False
    with exclusive(f"install-{shared or folder.parent.name}"):
        if folder.is_dir():
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as scratch:
            made = Path(scratch, "made")
            made.mkdir()
            build(made)
            made.rename(folder)
    return True


def _runs() -> Path:
    """Name the folder of what servers write: in memory where there is room, since they sync each change to the disk."""
    runs_programs = os.access(_MEMORY, os.W_OK) and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    if runs_programs and shutil.disk_usage(_MEMORY).free > _ROOM:
        return _MEMORY / f"dragoman-servers-{os.getuid()}-{cache().stat().st_ino}"
    return cache() / "runs"


@contextmanager
def run_folder(name: str) -> Iterator[Path]:
    """Yield a private folder for a server, and remove it afterwards.

    The owner holds a lock in it, so a folder whose owner was killed is known by its free lock and swept by the next
    run.
    """
    with exclusive("runs"):  # else a folder could be swept between its making and its locking
        runs = _runs()
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in runs.iterdir():
            if not is_owned(left):
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=runs))
        lock = (folder / _OWNER).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def is_owned(folder: Path) -> bool:
    """Tell whether the process that made this run folder lives."""
    try:
        with (folder / _OWNER).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
