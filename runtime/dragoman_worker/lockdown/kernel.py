"""The two doors to the kernel that Python has no function for: `syscall` and `prctl`."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys

from . import syscalls

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

LINUX = sys.platform == "linux"
MACHINE = platform.machine()
# Another system on the same processor has other calls behind the same numbers.
NUMBERS = {"x86_64": syscalls.X86_64, "aarch64": syscalls.AARCH64}.get(MACHINE, {}) if LINUX else {}
"""System call numbers of this machine; empty where the lock-down knows none."""


def syscall(number: int, *arguments: object) -> int:
    """Make one system call.

    Args:
        number: Of the call, on this machine.
        arguments: ctypes values, buffers or None.

    Returns:
        What the kernel returned, zero or more.

    Raises:
        OSError: The kernel refused.
    """
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def code_of(error: Exception) -> str:
    """Name what the kernel answered, ``EPERM``; the error's text where it was not the kernel."""
    number = (isinstance(error, OSError) and error.errno) or 0
    return errno.errorcode[number] if number in errno.errorcode else str(error)


def prctl(option: int, argument: int = 0) -> int:
    """Change or read one attribute of this process.

    Raises:
        OSError: The kernel refused.
    """
    zero = ctypes.c_ulong(0)
    result = int(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(argument), zero, zero, zero))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
