"""Restrictions that need no ruleset: death with the host, capabilities, memory, descriptors."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from contextlib import suppress

from .kernel import LINUX, NUMBERS, code_of, prctl, syscall

_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS, _CAP_AMBIENT = 1, 4, 38, 47
_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522

MEMORY = 2 << 30
DESCRIPTORS = 256


def die_with(parent: int) -> None:
    """Make the kernel kill this process when the thread that started it ends. Exit if the parent ended already.

    On systems other than Linux, the process ends with its control socket, which a blocking driver does not notice.
    """
    if LINUX:
        prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(3)


def leave_behind(*further: int) -> None:
    """Leave what the host passed on unasked: its terminal's signals, its folder, and all descriptors but its output.

    Args:
        further: Further descriptors to keep.
    """
    os.setsid()
    os.chdir("/")
    try:
        descriptors = {int(name) for name in os.listdir("/dev/fd")}  # noqa: PTH208 - pathlib takes longer than the rest
    except OSError:
        descriptors = set(range(os.sysconf("SC_OPEN_MAX")))
    for descriptor in descriptors.difference(further, (0, 1, 2)):
        with suppress(OSError):  # the listing's own
            os.close(descriptor)


def hide_memory() -> None:
    """Make this process non-dumpable, so that others of its user can read neither its memory nor its environment."""
    prctl(_SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Drop every capability, the ambient ones first. This is essential if the host runs as root."""
    prctl(_CAP_AMBIENT, _CLEAR_ALL)
    syscall(NUMBERS.get("capset", -1), struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24))


def forbid_new_privileges() -> None:
    """Take the power from setuid programs. seccomp and Landlock require this."""
    prctl(_SET_NO_NEW_PRIVS, 1)


def set_limits(*, memory: int = MEMORY, descriptors: int = DESCRIPTORS, cpu: int | None = None) -> None:
    """Limit memory and descriptors, and forbid file content, core files and locked memory.

    Args:
        memory: Maximum address space in bytes.
        descriptors: Maximum number of open descriptors.
        cpu: Maximum processor time in seconds, after which the kernel ends the process. None sets no limit.
    """
    limits = {
        "AS": memory,
        "NOFILE": descriptors,
        "FSIZE": 0,  # exports leave through a pipe, which has no file size
        "CORE": 0,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        **({} if cpu is None else {"CPU": cpu}),
    }
    for name, limit in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:  # systems differ in the limits they have
            continue
        hard = resource.getrlimit(kind)[1]
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        # One second above the soft limit, whose signal says why the process ended.
        resource.setrlimit(kind, (value, value + 1 if name == "CPU" and value == limit else value))


def count_threads() -> int:
    """Count this process's threads. Landlock binds only the calling thread, so there may be no other."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - the child does not import pathlib for this


def seccomp_refusal() -> str:
    """Ask the kernel whether a filter could kill the process, without installing one.

    Returns:
        An empty text if it could, else the name of the error.
    """
    get_action_available, kill_process = ctypes.c_uint(2), ctypes.c_uint32(0x80000000)
    try:
        syscall(NUMBERS.get("seccomp", -1), get_action_available, ctypes.c_uint(0), ctypes.byref(kill_process))
    except OSError as error:
        return code_of(error)
    return ""
