"""The negative self-test: it tries forbidden actions before any driver code is loaded.

A probe passes only if the kernel refuses it (EACCES, EPERM, ENOSYS). A missing file or a closed port does not count:
the host names targets that it can reach itself.
"""

from __future__ import annotations

import errno
import mmap
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_REFUSALS = (errno.EACCES, errno.EPERM, errno.ENOSYS)


def run(*, secret_file: str, writable_dir: str, program: str, memory: int) -> dict[str, bool]:
    """Try every forbidden action once.

    Args:
        secret_file: A file that the host can read and this process must not.
        writable_dir: A directory in which the host could create a file.
        program: An executable file. If the kernel runs it, it replaces this process, and the host notices the end.
        memory: Maximum address space of this process in bytes. That many more must be refused.

    Returns:
        Whether the kernel refused, by name of the probe.
    """
    parent = os.getppid()
    target = f"{writable_dir}/.dragoman-{os.getpid()}"
    probes: dict[str, Callable[[], None]] = {
        "fs_read": lambda: os.close(os.open(secret_file, os.O_RDONLY)),
        "fs_write": lambda: _create(target),
        "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "unix": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
        "tcp": _connect,
        "signals": lambda: os.kill(parent, 0),
        "host_memory": lambda: _read_environment(parent),
        "memory": lambda: _take_memory(memory),
        "fork": _fork,
        "exec": lambda: os.execv(program, [program]),  # noqa: S606 - it must fail
    }
    return {name: _refused(probe) for name, probe in probes.items()}


def _refused(probe: Callable[[], None]) -> bool:
    try:
        probe()
    except OSError as error:
        return error.errno in _REFUSALS
    return False


def _read_environment(host: int) -> None:
    try:
        os.close(os.open(f"/proc/{host}/environ", os.O_RDONLY))
    except FileNotFoundError:  # the host lives, so hidepid hides it or /proc is missing: its memory is out of reach
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _take_memory(size: int) -> None:
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE, prot=0).close()  # inaccessible pages, so only the limit can refuse
    except OSError as error:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error


def _create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)  # noqa: PTH108 - pathlib makes one more system call


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        probe.connect(("127.0.0.1", 9))


def _fork() -> None:
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        os._exit(0)
