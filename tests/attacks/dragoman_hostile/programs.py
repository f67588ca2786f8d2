"""Attacks that start programs or processes."""
# ruff: noqa: PTH110 - an attacker makes the calls themselves

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from pathlib import Path

from dragoman_worker.lockdown.kernel import NUMBERS, syscall

from .book import Targets, UnsupportedError, attack, in_a_fork


@attack
def shell(targets: Targets) -> None:
    subprocess.run(["/bin/sh", "-c", "exit 0"], check=True)


@attack
def execv(targets: Targets) -> None:
    in_a_fork(lambda: os.execv("/bin/true", ["true"]))


@attack
def posix_spawn(targets: Targets) -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


@attack
def loader(targets: Targets) -> None:
    """Start a program as an argument of the dynamic loader."""
    loaders = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
    path = loaders[platform.machine()]
    if not os.path.exists(path):
        raise UnsupportedError("no glibc")
    in_a_fork(lambda: os.execv(path, [path, "/bin/true"]))


@attack
def memfd_execveat(targets: Targets) -> None:
    """Execute a file that no file system has."""
    descriptor = os.memfd_create("x")
    os.write(descriptor, Path("/bin/true").read_bytes())
    arguments = (ctypes.c_char_p * 2)(b"true", None)
    empty = (ctypes.c_char_p * 1)(None)
    in_a_fork(lambda: syscall(NUMBERS["execveat"], descriptor, b"", arguments, empty, 0x1000))


@attack
def fork_bomb(targets: Targets) -> None:
    children = []
    for _ in range(20):
        if not (child := os.fork()):
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
