"""Files that survive a crash: atomic replacement, fsync of folders, locks between processes."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from .locks import acquire, open_file, open_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_WINDOWS = sys.platform == "win32"
_READER_SECONDS = 2.0


def sync(path: Path) -> None:
    """Bring a file or folder to the disk itself; on Windows folders get there by themselves."""
    if _WINDOWS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if _WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def patiently(move: Callable[[], object]) -> None:
    """Rename something; on Windows whoever just reads it, or what it replaces, is waited for, a moment."""
    until = time.monotonic() + _READER_SECONDS
    while True:
        try:
            move()
        except PermissionError:
            if not _WINDOWS or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file anew as a whole: after a crash, or an error in the block, it holds the old bytes."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        patiently(lambda: draft.replace(path))
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Replace a file as a whole: after a crash it holds the old bytes or the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, mode=mode) as file:
        file.write(data)


def sync_tree(root: Path) -> None:
    """Bring every file, then every folder below `root` to the disk, deepest folders first."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def freeze(root: Path) -> None:
    """Make everything below `root` read-only; `root` itself stays writable, so that it can be renamed.

    On Windows a read-only file could not be removed, so nothing is done there.
    """
    if _WINDOWS:
        return
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            Path(folder, name).chmod(0o444)
        if Path(folder) != root:
            Path(folder).chmod(0o555)


def remove_tree(root: Path) -> None:
    """Remove a folder, read-only parts included; what is not there is no fault."""
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(stat.S_IRWXU)
    shutil.rmtree(root, ignore_errors=True)


def try_lock(path: Path, *, folder: bool = False, mode: int = 0o644) -> int | None:
    """Take the lock on a file, which is made when it is not there, or on a folder, if nobody holds it.

    Returns:
        A descriptor that holds the lock until it is closed, also by the death of the process; None if it is taken.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    descriptor = open_folder(path) if folder else open_file(path, mode=mode)
    if acquire(descriptor, wait=False):
        return descriptor
    os.close(descriptor)
    return None


def share(folder: Path) -> int:
    """Wait for a share in the lock on a folder, which need not be writable.

    Returns:
        A descriptor, as of `try_lock`.
    """
    descriptor = open_folder(folder)
    acquire(descriptor, shared=True)
    return descriptor


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file or folder, waiting for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = open_folder(path) if path.is_dir() else open_file(path, mode=0o644)
    try:
        acquire(descriptor)
        yield
    finally:
        os.close(descriptor)
