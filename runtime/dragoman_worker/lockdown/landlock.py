"""Landlock: limits which files this process may read, and forbids it to write, create or execute any.

The numbers are those of the kernel's ``linux/landlock.h``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from typing import TYPE_CHECKING

from .kernel import LINUX, syscall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION_FLAG = ctypes.c_uint32(1)
_PATH_BENEATH = ctypes.c_int(1)
_NO_FLAGS = ctypes.c_uint32(0)

READ_FILE = 1 << 2
READ_DIR = 1 << 3
_FILE_RIGHTS = 0xC007  # the rights that a rule may hold unless it is about a directory; others are EINVAL
_FS_MASKS = {9: 0x1FFFF, 5: 0xFFFF, 3: 0x7FFF, 2: 0x3FFF, 1: 0x1FFF}  # all rights, by the ABI that introduced them
_NET_MASK = 3  # bind and connect of TCP, since ABI 4
_SCOPE_MASK = 3  # abstract Unix sockets and signals, since ABI 6


def abi() -> int:
    """Return the Landlock ABI of the kernel, or 0 if it has none. The kernel's release does not show it."""
    try:
        return version()
    except OSError:
        return 0


def version() -> int:
    """Return the Landlock ABI of the kernel.

    Raises:
        OSError: ENOSYS if the kernel lacks Landlock, EOPNOTSUPP if it is switched off, EPERM if a filter forbids this.
    """
    if not LINUX:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)


def ruleset_of(abi_version: int) -> bytes:
    """Encode a ruleset that handles every right of an ABI (1 or later). Kernels refuse rights that they do not know."""
    handled = next(mask for abi, mask in _FS_MASKS.items() if abi_version >= abi)
    attributes = struct.pack(
        "=QQQ", handled, _NET_MASK if abi_version >= 4 else 0, _SCOPE_MASK if abi_version >= 6 else 0
    )
    return attributes[: 8 if abi_version < 4 else 16 if abi_version < 6 else 24]


def restrict(
    readable: Iterable[str], *, files: Iterable[tuple[str, int, int]] = (), listable: Iterable[str] = ()
) -> list[str]:
    """Limit this thread to reading below some paths.

    The ruleset handles every right that this kernel knows, so every right that is not granted is refused.

    Args:
        readable: Files and directories whose content it may read.
        files: Regular files that it may read, by path, device and inode. A file that was replaced is not granted.
        listable: Directories that it may list, with everything below them, without reading files.

    Returns:
        The paths that were not granted, because they are missing or lead to another file now.

    Raises:
        OSError: The kernel has no Landlock, or refused the ruleset.
    """
    attributes = ruleset_of(version())
    ruleset = syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), _NO_FLAGS)
    missing = []
    try:
        for paths, rights in ((listable, READ_DIR), (readable, READ_FILE | READ_DIR)):
            missing += [path for path in paths if not _grant(ruleset, path, rights)]
        missing += [path for path, *which in files if not _grant(ruleset, path, READ_FILE, which)]
        syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), _NO_FLAGS)
    finally:
        os.close(ruleset)
    return missing


def forbid_all_but_reading() -> None:
    """Forbid this thread everything that Landlock knows but reading files and listing directories. Raises OSError."""
    attributes = bytearray(ruleset_of(version()))
    (handled,) = struct.unpack_from("=Q", attributes)
    struct.pack_into("=Q", attributes, 0, handled & ~(READ_FILE | READ_DIR))
    ruleset = syscall(_CREATE_RULESET, bytes(attributes), ctypes.c_size_t(len(attributes)), _NO_FLAGS)
    try:
        syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), _NO_FLAGS)
    finally:
        os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int, which: Sequence[int] | None = None) -> bool:
    """Grant rights on a path. With `which` (device, inode), only if the path leads to that regular file."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        if which is not None and not (stat.S_ISREG(status.st_mode) and [status.st_dev, status.st_ino] == [*which]):
            return False
        if not stat.S_ISDIR(status.st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        syscall(_ADD_RULE, ctypes.c_int(ruleset), _PATH_BENEATH, rule, _NO_FLAGS)
    finally:
        os.close(descriptor)
    return True
