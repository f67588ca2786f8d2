"""A network of one's own: a namespace with nothing but `lo`, so that servers and tests reach only each other."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1


def isolate() -> str:
    """Move this process, and all it will start, into a network namespace with only `lo`.

    Returns:
        Nothing when it did, otherwise the reason why this machine does not allow it.
    """
    if sys.platform != "linux":
        return f"{sys.platform} has no network namespaces"
    reason = _rehearse()
    if not reason:
        _enter()
    return reason


def _rehearse() -> str:
    """Try it in a child, since a process that got half of it has no way back."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            _enter()
        except OSError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reason = pipe.read().decode()
    os.waitpid(child, 0)
    return reason


def _enter() -> None:
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(_CLONE_NEWNET)
    except PermissionError:
        # The user keeps its own number inside: tests that ask who runs them get the same answer as outside.
        _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _raise_loopback()


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        request = fcntl.ioctl(anything, _SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
        flags = struct.unpack_from("16sh", request)[1] | _IFF_UP
        fcntl.ioctl(anything, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags))
