"""Attacks on files: content, names, and what is written about them."""
# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH115, PTH116, PTH123, PTH208, PTH211 - an attacker makes the calls themselves

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import struct
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman_worker.lockdown.kernel import NUMBERS, syscall

from .book import FoiledError, Targets, UnsupportedError, attack, check_sentinel

_HERE = -100  # AT_FDCWD
_RESOURCE = 1 << 24  # CAP_SYS_RESOURCE


def _read(path: str) -> None:
    check_sentinel(Path(path).read_bytes())


def _create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)


@attack
def read_key(targets: Targets) -> None:
    _read(targets.key)


@attack
def read_foreign_secret(targets: Targets) -> None:
    _read(targets.foreign)


@attack
def read_other_driver(targets: Targets) -> None:
    """Read the code of a driver that is installed beside it."""
    _read(targets.other_driver)


@attack
def read_what_lies_around(targets: Targets) -> None:
    """Try a few hundred files of the system and of its users; one that opens is enough."""
    for path in targets.around:
        with suppress(PermissionError):
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            return
    raise PermissionError(errno.EACCES, "all of them")


@attack
def read_shadow(targets: Targets) -> None:
    Path("/etc/shadow").read_bytes()


@attack
def list_home(targets: Targets) -> None:
    os.listdir(targets.home)


@attack
def walk_down_to_key(targets: Targets) -> None:
    """Change into the directory, which is allowed, and open by a relative name."""
    os.chdir(Path(targets.key).parent)
    try:
        _read(Path(targets.key).name)
    finally:
        os.chdir("/")


@attack
def stat_foreign(targets: Targets) -> None:
    found = os.stat(targets.key)
    if not (found.st_size and found.st_mtime and os.readlink(targets.link) == targets.key):
        raise FoiledError("nothing learnt")


@attack
def symlink_to_key(targets: Targets) -> None:
    path = f"{targets.scratch}/symlink"
    os.symlink(targets.key, path)
    try:
        _read(path)
    finally:
        os.unlink(path)


@attack
def hard_link_to_key(targets: Targets) -> None:
    path = f"{targets.scratch}/hardlink"
    os.link(targets.key, path)
    try:
        _read(path)
    finally:
        os.unlink(path)


@attack
def read_through_proc_root(targets: Targets) -> None:
    _read(f"/proc/self/root{targets.key}")


@attack
def write_home(targets: Targets) -> None:
    _create(f"{targets.home}/.profile")


@attack
def write_scratch(targets: Targets) -> None:
    _create(f"{targets.scratch}/new")


@attack
def write_itself(targets: Targets) -> None:
    os.close(os.open(__file__, os.O_WRONLY))


@attack
def write_the_hosts_packages(targets: Targets) -> None:
    os.close(os.open(msgspec.__file__, os.O_WRONLY))


@attack
def make_directory(targets: Targets) -> None:
    os.mkdir(f"{targets.scratch}/directory")
    os.rmdir(f"{targets.scratch}/directory")


@attack
def remove_file(targets: Targets) -> None:
    os.unlink(targets.spoil)
    Path(targets.spoil).touch()


@attack
def rename_file(targets: Targets) -> None:
    os.rename(targets.spoil, targets.spoil + "2")
    os.rename(targets.spoil + "2", targets.spoil)


@attack
def openat2(targets: Targets) -> None:
    how = struct.pack("=QQQ", 0, 0, 0)
    descriptor = syscall(NUMBERS["openat2"], _HERE, targets.key.encode(), how, ctypes.c_size_t(24))
    os.close(descriptor)


@attack
def open_by_handle_at(targets: Targets) -> None:
    """Open by a handle of the file system, which asks no directory; a forged one where none is given."""
    handle = ctypes.create_string_buffer(
        struct.pack("=Ii", 128, 1) + struct.pack("=Q", os.stat(targets.key).st_ino), 200
    )
    mount = ctypes.c_int()
    with suppress(OSError):
        syscall(NUMBERS["name_to_handle_at"], _HERE, targets.key.encode(), handle, ctypes.byref(mount), 0)
    directory = os.open(Path(__file__).parent, os.O_RDONLY)
    try:
        os.close(syscall(NUMBERS["open_by_handle_at"], directory, handle, os.O_RDONLY))
    finally:
        os.close(directory)


@attack
def truncate_path(targets: Targets) -> None:
    os.truncate(targets.spoil, 0)


@attack
def truncate_by_opening(targets: Targets) -> None:
    """`O_RDONLY | O_TRUNC` on a file that may be read."""
    os.close(os.open(Path(__file__).with_name("ballast.txt"), os.O_RDONLY | os.O_TRUNC))


@attack
def chmod(targets: Targets) -> None:
    os.chmod(targets.key, 0o644)


@attack
def chown(targets: Targets) -> None:
    os.chown(targets.key, os.getuid(), os.getgid())


@attack
def utime(targets: Targets) -> None:
    os.utime(targets.key, (0, 0))


@attack
def setxattr(targets: Targets) -> None:
    os.setxattr(targets.key, "user.dragoman", b"x")


@attack
def inotify_on_home(targets: Targets) -> None:
    descriptor = syscall(NUMBERS["inotify_init1"], 0)
    try:
        syscall(NUMBERS["inotify_add_watch"], descriptor, targets.home.encode(), ctypes.c_uint32(0xFFF))
    finally:
        os.close(descriptor)


@attack
def lock_its_tree(targets: Targets) -> None:
    """Take the lock by which the host and other processes agree on what may be removed."""
    descriptor = os.open(Path(__file__).parent.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


@attack
def fill_the_disk(targets: Targets) -> None:
    path = f"{targets.scratch}/full"
    with open(path, "wb") as file:
        try:
            file.write(bytes(1 << 20))
            file.flush()
        finally:
            os.unlink(path)


@attack
def raise_limits(targets: Targets) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    except ValueError:
        with suppress(OSError):
            status = Path("/proc/self/status").read_text()
            held = int(status.partition("CapEff:")[2].split()[0], 16)
            if held and not held & _RESOURCE:
                raise UnsupportedError("this machine's root has no CAP_SYS_RESOURCE") from None
        raise FoiledError("ValueError") from None


@attack
def reopen_for_writing(targets: Targets) -> None:
    """Open what one may read once more, for writing, through the list of one's own descriptors."""
    descriptor = os.open(__file__, os.O_RDONLY)
    try:
        os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY))
    finally:
        os.close(descriptor)


@attack
def write_own_memory_file(targets: Targets) -> None:
    os.close(os.open("/proc/self/mem", os.O_RDWR))


@attack
def read_own_maps(targets: Targets) -> None:
    Path("/proc/self/maps").read_bytes()


@attack
def core_pattern(targets: Targets) -> None:
    """Have the kernel start a program of the attacker's at the next crash."""
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


@attack
def list_processes(targets: Targets) -> None:
    if not [name for name in os.listdir("/proc") if name.isdigit()]:
        raise FoiledError("nothing learnt")


@attack
def shadow_the_standard_library(targets: Targets) -> None:
    """Ship a module of the standard library's name and have every driver import it."""
    sys.modules.pop("colorsys", None)
    import colorsys

    if colorsys.__file__ != str(Path(__file__).parent.with_name("colorsys.py")):
        raise FoiledError("absent")
