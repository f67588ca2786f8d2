"""Landlock: which file contents this process may read; nothing may be written, made or executed."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from typing import TYPE_CHECKING

from .kernel import LINUX, syscall

if TYPE_CHECKING:
    from collections.abc import Iterable

assert sys.platform != "win32"

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION_FLAG = ctypes.c_uint32(1)
_PATH_BENEATH = ctypes.c_int(1)
_NO_FLAGS = ctypes.c_uint32(0)

READ_FILE = 1 << 2
READ_DIR = 1 << 3
_FILE_RIGHTS = 0xC007  # the rights a rule on something that is no directory may hold; others are EINVAL
_FS_MASKS = {9: 0x1FFFF, 5: 0xFFFF, 3: 0x7FFF, 2: 0x3FFF, 1: 0x1FFF}  # all rights, from that ABI on
_NET_MASK = 3  # bind and connect of TCP, from ABI 4
_SCOPE_MASK = 3  # abstract unix sockets and signals, from ABI 6


def abi() -> int:
    """Ask the kernel which Landlock it has, 0 for none; its version number would not tell."""
    try:
        return version()
    except OSError:
        return 0


def version() -> int:
    """Ask the kernel which Landlock it has.

    Raises:
        OSError: None: ENOSYS for a kernel without it, EOPNOTSUPP for one that has it switched off, EPERM for a filter.
    """
    if not LINUX:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)


def ruleset_of(known: int) -> bytes:
    """Write the attributes of a ruleset that handles what an ABI, 1 or later, has; a kernel refuses what it has not."""
    handled = next(mask for abi, mask in _FS_MASKS.items() if known >= abi)
    attributes = struct.pack("=QQQ", handled, _NET_MASK if known >= 4 else 0, _SCOPE_MASK if known >= 6 else 0)
    return attributes[: 8 if known < 4 else 16 if known < 6 else 24]


def restrict(readable: Iterable[str], *, listable: Iterable[str] = ()) -> list[str]:
    """Leave this thread nothing but reading below some paths.

    Every right that this kernel's Landlock knows is handled, so what is not granted here is refused.

    Args:
        readable: Files and directories whose content may be read.
        listable: Directories that may be listed, with all below them, without reading a file.

    Returns:
        The paths that are not there, and so were not granted.

    Raises:
        OSError: The kernel has no Landlock, or refused.
    """
    attributes = ruleset_of(version())
    ruleset = syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), _NO_FLAGS)
    missing = []
    try:
        for paths, rights in ((listable, READ_DIR), (readable, READ_FILE | READ_DIR)):
            missing += [path for path in paths if not _grant(ruleset, path, rights)]
        syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), _NO_FLAGS)
    finally:
        os.close(ruleset)
    return missing


def _grant(ruleset: int, path: str, rights: int) -> bool:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        syscall(_ADD_RULE, ctypes.c_int(ruleset), _PATH_BENEATH, rule, _NO_FLAGS)
    finally:
        os.close(descriptor)
    return True
