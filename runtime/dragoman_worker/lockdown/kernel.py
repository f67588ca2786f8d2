"""Two system interfaces that Python lacks: `syscall` and `prctl`."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

from . import syscall_numbers

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

LINUX = sys.platform == "linux"
MACHINE = os.uname().machine  # without platform, which takes a tenth of what comes before a driver's start
# Other systems on the same processor use the same numbers for other calls.
NUMBERS = {"x86_64": syscall_numbers.X86_64, "aarch64": syscall_numbers.AARCH64}.get(MACHINE, {}) if LINUX else {}
"""The system call numbers of this machine. Empty if the lock-down does not know the machine."""


def syscall(number: int, *arguments: object) -> int:
    """Make one system call.

    Args:
        number: The number of the call on this machine.
        arguments: ctypes values, buffers or None.

    Returns:
        What the kernel returned: zero or more.

    Raises:
        OSError: The kernel refused.
    """
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def code_of(error: Exception) -> str:
    """Return the name of the kernel's error, such as ``EPERM``, or the text of any other error."""
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
