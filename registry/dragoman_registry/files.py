"""Files that survive a crash: atomic replacement, fsync of folders, locks between processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator


def sync(path: Path) -> None:
    """Bring a file or folder to the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file anew as a whole: after a crash, or an error in the block, it holds the old bytes."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
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
    """Make everything below `root` read-only; `root` itself stays writable, so that it can be renamed."""
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


def try_lock(path: Path, *, folder: bool = False) -> int | None:
    """Take the lock on a file, which is made when it is not there, or on a folder, if nobody holds it.

    Returns:
        A descriptor that holds the lock until it is closed, also by the death of the process; None if it is taken.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def share(folder: Path) -> int:
    """Wait for a share in the lock on a folder, which need not be writable.

    Returns:
        A descriptor, as of `try_lock`.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file or folder, waiting for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
