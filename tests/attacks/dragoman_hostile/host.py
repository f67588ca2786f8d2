"""Attacks on other processes: the host, a neighbour's driver, everybody."""
# ruff: noqa: PTH123, PTH208 - an attacker makes the calls themselves

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
import sys
from contextlib import suppress
from pathlib import Path

from dragoman_worker.lockdown.kernel import NUMBERS, syscall

from .book import FoiledError, Targets, UnsupportedError, attack, check_sentinel, in_a_fork

_PEER_PIDFD = 77
_SEIZE = 0x4206


def _spans(process: int) -> list[tuple[int, int]]:
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    ranges = [line.split()[0].split("-") for line in lines if " rw" in line and "[v" not in line]
    return [(int(low, 16), int(high, 16)) for low, high in ranges]


def _search(process: int) -> None:
    spans = _spans(process)
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        for low, high in spans:
            memory.seek(low)
            with suppress(FoiledError):
                check_sentinel(memory.read(min(high - low, 256 << 20)) or b"")
                return
    raise FoiledError("absent")


def _tracing_allowed() -> None:
    with suppress(OSError):
        if os.getuid() and int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text()):
            raise UnsupportedError("Yama lets nobody but root trace a process")


@attack
def parent_environ(targets: Targets) -> None:
    check_sentinel(Path(f"/proc/{os.getppid()}/environ").read_bytes())


@attack
def parent_arguments(targets: Targets) -> None:
    check_sentinel(Path(f"/proc/{os.getppid()}/cmdline").read_bytes())


@attack
def parent_maps(targets: Targets) -> None:
    _spans(os.getppid())


@attack
def parent_memory(targets: Targets) -> None:
    """Open the memory by a guessed address where the map is closed."""
    try:
        _search(os.getppid())
    except OSError:
        os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY))


@attack
def parent_descriptors(targets: Targets) -> None:
    os.listdir(f"/proc/{os.getppid()}/fd")


@attack
def parent_robust_list(targets: Targets) -> None:
    """Ask where the host keeps its locks: an address of its memory."""
    head, length = ctypes.c_void_p(), ctypes.c_size_t()
    syscall(NUMBERS["get_robust_list"], os.getppid(), ctypes.byref(head), ctypes.byref(length))


@attack
def neighbour_memory(targets: Targets) -> None:
    """Look for the secret of another connection in its driver's process."""
    _search(targets.neighbour)


@attack
def origin_maps(targets: Targets) -> None:
    """Read where the process that this one was forked from keeps what: all forks of it have the same addresses."""
    _spans(targets.origin)


@attack
def origin_memory(targets: Targets) -> None:
    os.close(os.open(f"/proc/{targets.origin}/mem", os.O_RDONLY))


@attack
def origin_descriptor(targets: Targets) -> None:
    """Take a descriptor of the process that forks the others, whose control socket would make it fork."""
    _tracing_allowed()
    os.close(syscall(NUMBERS["pidfd_getfd"], os.pidfd_open(targets.origin), 1, 0))


@attack
def signal_origin(targets: Targets) -> None:
    os.kill(targets.origin, 0)


@attack
def process_vm_readv(targets: Targets) -> None:
    _tracing_allowed()
    try:
        address = _spans(os.getppid())[0][0]
    except OSError:
        address = 0x400000
    buffer = ctypes.create_string_buffer(8)
    ours = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    theirs = (ctypes.c_void_p * 2)(address, 8)
    one = ctypes.c_ulong(1)
    syscall(NUMBERS["process_vm_readv"], os.getppid(), ours, one, theirs, one, ctypes.c_ulong(0))


@attack
def ptrace_seize(targets: Targets) -> None:
    _tracing_allowed()
    host = os.getppid()
    nothing = ctypes.c_void_p(0)
    in_a_fork(lambda: syscall(NUMBERS["ptrace"], ctypes.c_long(_SEIZE), ctypes.c_long(host), nothing, nothing))


@attack
def pidfd_getfd(targets: Targets) -> None:
    _tracing_allowed()
    os.close(syscall(NUMBERS["pidfd_getfd"], os.pidfd_open(os.getppid()), 1, 0))


@attack
def peer_pidfd(targets: Targets) -> None:
    """Have the kernel name the process at the other end of the control socket."""
    with socket.socket(fileno=os.dup(int(sys.argv[1]))) as control:
        os.close(int.from_bytes(control.getsockopt(socket.SOL_SOCKET, _PEER_PIDFD, 4), sys.byteorder))


@attack
def pidfd_signal(targets: Targets) -> None:
    descriptor = os.pidfd_open(os.getppid())
    try:
        syscall(NUMBERS["pidfd_send_signal"], descriptor, 0, None, 0)
    finally:
        os.close(descriptor)


@attack
def signal_parent(targets: Targets) -> None:
    os.kill(os.getppid(), 0)


@attack
def signal_everybody(targets: Targets) -> None:
    os.kill(-1, 0)


@attack
def signal_by_sigio(targets: Targets) -> None:
    """Make the host the owner of a socket, whose events the kernel would then signal."""
    with socket.socket() as sock:
        fcntl.fcntl(sock, fcntl.F_SETOWN, os.getppid())


@attack
def renice_parent(targets: Targets) -> None:
    os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid()) + 1)


@attack
def pin_parent(targets: Targets) -> None:
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid()))


@attack
def limit_parent(targets: Targets) -> None:
    resource.prlimit(os.getppid(), resource.RLIMIT_CORE, resource.prlimit(os.getppid(), resource.RLIMIT_CORE))


@attack
def outlive_the_host(targets: Targets) -> None:
    """Undo what makes the kernel end this process together with its host."""
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(1, zero, zero, zero, zero):
        raise OSError(ctypes.get_errno(), "")
    libc.prctl(1, ctypes.c_ulong(9), zero, zero, zero)


@attack
def secret_in_environment(targets: Targets) -> None:
    check_sentinel(repr(dict(os.environ)).encode())


@attack
def secret_in_arguments(targets: Targets) -> None:
    check_sentinel(repr(sys.argv).encode())


@attack
def secret_in_descriptors(targets: Targets) -> None:
    for descriptor in range(3, 1024):
        with suppress(OSError, FoiledError):
            check_sentinel(os.pread(descriptor, 4096, 0))
            return
    raise FoiledError("absent")


@attack
def secret_in_objects(targets: Targets) -> None:
    for module in list(sys.modules.values()):
        for value in list(vars(module).values()):
            if isinstance(value, str):
                with suppress(FoiledError):
                    check_sentinel(value.encode(errors="replace"))
                    return
    raise FoiledError("absent")


@attack
def patch_the_host(targets: Targets) -> None:
    """Replace the host's comparison of names by one that agrees."""
    try:
        from dragoman.sandbox.reach import broker
    except ImportError:
        raise FoiledError("absent") from None
    broker.Broker._allows = broker.Broker._allows
