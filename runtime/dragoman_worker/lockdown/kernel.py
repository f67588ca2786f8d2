"""The two doors to the kernel that Python has no function for: `syscall` and `prctl`."""

from __future__ import annotations

import ctypes
import os
import platform

from . import syscalls

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

MACHINE = platform.machine()
NUMBERS = {"x86_64": syscalls.X86_64, "aarch64": syscalls.AARCH64}.get(MACHINE, {})
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
