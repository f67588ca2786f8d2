"""Locks between processes: a descriptor holds each lock, so the lock ends with its process at the latest."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def open_file(path: Path, *, mode: int) -> int:
    """Open or create a file to lock; do not follow a symbolic link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)


def open_folder(folder: Path) -> int:
    """Open a folder to lock; it need not be writable."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def acquire(descriptor: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Take the lock, exclusive or shared; return whether it was taken."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def holds(descriptor: int, path: Path) -> bool:
    """Check whether the descriptor's file still has this path; another process may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
