"""The stand-in for the lock-down on Windows, which has none. Every surface of the host reports this."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING

from .wire import Sandboxed

if TYPE_CHECKING:
    from .wire import Lockdown

assert sys.platform == "win32"

_COMMIT, _RELEASE, _NO_ACCESS = 0x3000, 0x8000, 1


class NoConfinement:
    """Gives up nothing, and claims only the memory limit, if it holds."""

    def apply(self, plan: Lockdown) -> Sandboxed:
        """Test whether the host's job limits this process, and report it as the only layer."""
        layers = tuple(layer for layer in plan.layers if layer == "job" and not _can_take(plan.memory))
        return Sandboxed(layers=layers, failures={}, landlock_abi=0, probes={}, missing=())


def _can_take(size: int) -> bool:
    """Try to commit this many bytes of memory without touching them."""
    kernel32 = ctypes.WinDLL("kernel32")
    kernel32.VirtualAlloc.restype = ctypes.c_void_p
    address = kernel32.VirtualAlloc(None, ctypes.c_size_t(size), _COMMIT, _NO_ACCESS)
    return address is not None and bool(kernel32.VirtualFree(ctypes.c_void_p(address), ctypes.c_size_t(0), _RELEASE))
