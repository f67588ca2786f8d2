"""The negative self-test: what the lock-down forbids is tried, before anything of the driver is loaded.

A probe passes only with the kernel's refusal (EACCES, EPERM, ENOSYS). A missing file or a closed port is no pass:
the host names targets that it could reach itself.
"""

from __future__ import annotations

import errno
import mmap
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

assert sys.platform != "win32"

_REFUSALS = (errno.EACCES, errno.EPERM, errno.ENOSYS)


def run(*, secret_file: str, writable_dir: str, program: str, memory: int) -> dict[str, bool]:
    """Try everything once.

    Args:
        secret_file: A file that the host can read and this process must not.
        writable_dir: A directory in which the host could create a file.
        program: An executable file. Where it is not refused it replaces this process, and the host sees the end.
        memory: Bytes of address space that it may have in all, so that as many more must be refused.

    Returns:
        True for each probe that the kernel refused.
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
    except FileNotFoundError:  # the host lives, so /proc hides it (hidepid), or is not there: no way to its memory
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _take_memory(size: int) -> None:
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE, prot=0).close()  # of no use, so that only the limit can refuse it
    except OSError as error:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error


def _create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)  # noqa: PTH108 - one call less under the filter


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        probe.connect(("127.0.0.1", 9))


def _fork() -> None:
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        os._exit(0)
