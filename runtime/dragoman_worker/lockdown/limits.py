"""What a process gives up without a ruleset: outliving its host, capabilities, memory, descriptors."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys

from .kernel import LINUX, NUMBERS, code_of, prctl, syscall

assert sys.platform != "win32"

_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS, _CAP_AMBIENT = 1, 4, 38, 47
_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522

MEMORY = 2 << 30
DESCRIPTORS = 256


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent's spawning thread ends; exit when that has happened already.

    Off Linux it ends when its control socket does, which a driver that blocks does not see.
    """
    if LINUX:
        prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(3)


def hide_memory() -> None:
    """Make this process non-dumpable: others of its user can then read neither its memory nor its environment."""
    prctl(_SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Give up every capability, the ambient ones first. Matters for a root host only, and there decides."""
    prctl(_CAP_AMBIENT, _CLEAR_ALL)
    syscall(NUMBERS.get("capset", -1), struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24))


def forbid_new_privileges() -> None:
    """Make setuid programs powerless; seccomp and Landlock ask for it."""
    prctl(_SET_NO_NEW_PRIVS, 1)


def set_limits(*, memory: int = MEMORY, descriptors: int = DESCRIPTORS, cpu: int | None = None) -> None:
    """Bound memory and descriptors, and forbid file content, core files and locked memory.

    Args:
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time, after which the kernel ends the process; None for no bound but deadlines.
    """
    limits = {
        "AS": memory,
        "NOFILE": descriptors,
        "FSIZE": 0,  # exports leave through a pipe, which has no size
        "CORE": 0,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        **({} if cpu is None else {"CPU": cpu}),
    }
    for name, wanted in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:  # every system has a choice of its own
            continue
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        # A second more than the soft limit, whose signal says why the process ended.
        resource.setrlimit(kind, (value, value + 1 if name == "CPU" and value == wanted else value))


def count_threads() -> int:
    """Count this process's threads: Landlock binds the calling one only, so there may be no other."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - pathlib is not imported in the child for this


def seccomp_refusal() -> str:
    """Ask the kernel whether a filter could kill the process, without installing one.

    Returns:
        Empty if it could, else the name of the error.
    """
    get_action_available, kill_process = ctypes.c_uint(2), ctypes.c_uint32(0x80000000)
    try:
        syscall(NUMBERS.get("seccomp", -1), get_action_available, ctypes.c_uint(0), ctypes.byref(kill_process))
    except OSError as error:
        return code_of(error)
    return ""
