"""Attacks on the kernel's surface: calls that a client of a database never needs."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct

from dragoman_worker.lockdown.kernel import NUMBERS, syscall

from .book import Targets, UnsupportedError, attack, in_a_fork

_NEW_USER, _NEW_NET, _NEW_MOUNT = 0x10000000, 0x40000000, 0x20000


@attack
def userfaultfd(targets: Targets) -> None:
    os.close(syscall(NUMBERS["userfaultfd"], 1))  # of user mode only, which needs no privilege


@attack
def add_key(targets: Targets) -> None:
    key = syscall(NUMBERS["add_key"], b"user", b"dragoman", b"x", ctypes.c_size_t(1), ctypes.c_int(-2))
    syscall(NUMBERS["keyctl"], 3, key, 0, 0, 0)  # revoke: keys outlive a process


@attack
def keyctl(targets: Targets) -> None:
    """Look at the user's keyring."""
    syscall(NUMBERS["keyctl"], 0, ctypes.c_long(-4), 1, 0, 0)


@attack
def unshare_user(targets: Targets) -> None:
    in_a_fork(lambda: syscall(NUMBERS["unshare"], ctypes.c_long(_NEW_USER)))


@attack
def clone3_user(targets: Targets) -> None:
    arguments = ctypes.create_string_buffer(struct.pack("=11Q", _NEW_USER, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)
    child = syscall(NUMBERS["clone3"], arguments, ctypes.c_size_t(88))
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


@attack
def clone_user(targets: Targets) -> None:
    """A process in a user namespace of its own, with flags that can be compared."""
    zero = ctypes.c_long(0)
    child = syscall(NUMBERS["clone"], ctypes.c_ulong(_NEW_USER | 17), zero, zero, zero, zero)
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


@attack
def shared_memory(targets: Targets) -> None:
    number = syscall(NUMBERS["shmget"], 0, ctypes.c_size_t(4096), 0o1600)
    syscall(NUMBERS["shmctl"], number, 0, None)  # remove: segments outlive a process


@attack
def message_queue(targets: Targets) -> None:
    number = syscall(NUMBERS["msgget"], 0, 0o1600)
    syscall(NUMBERS["msgctl"], number, 0, None)


@attack
def io_uring(targets: Targets) -> None:
    os.close(syscall(NUMBERS["io_uring_setup"], 4, ctypes.create_string_buffer(120)))


@attack
def bpf(targets: Targets) -> None:
    request = ctypes.create_string_buffer(struct.pack("=IIII", 2, 4, 4, 1), 128)  # an array of one
    os.close(syscall(NUMBERS["bpf"], 0, request, 128))


@attack
def perf_event_open(targets: Targets) -> None:
    """Count the instructions of every process on the first processor."""
    request = ctypes.create_string_buffer(struct.pack("=IIQ", 1, 128, 0), 128)
    try:
        os.close(syscall(NUMBERS["perf_event_open"], request, -1, 0, -1, 0))
    except OSError as error:
        if error.errno in (2, 19, 95):
            raise UnsupportedError("no counters on this machine") from None
        raise


@attack
def mount(targets: Targets) -> None:
    def act() -> None:
        if targets.may_unshare:  # no other process sees a success
            syscall(NUMBERS["unshare"], ctypes.c_long(_NEW_MOUNT))
            syscall(NUMBERS["mount"], b"none", b"/", None, ctypes.c_ulong(0x44000), None)
        syscall(NUMBERS["mount"], b"tmpfs", targets.scratch.encode(), b"tmpfs", ctypes.c_ulong(0), None)

    in_a_fork(act)


def _run_code(code: bytes) -> None:
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()


@attack
def foreign_architecture(targets: Targets) -> None:
    """Make a call by the gate of 32-bit programs, which has other numbers."""
    if platform.machine() != "x86_64":
        raise UnsupportedError("not this processor")
    in_a_fork(lambda: _run_code(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3"))  # getpid by int 0x80


@attack
def x32_number(targets: Targets) -> None:
    if platform.machine() != "x86_64":
        raise UnsupportedError("not this processor")
    try:
        syscall(0x40000000 + NUMBERS["getpid"])
    except OSError:
        raise UnsupportedError("no x32 in this kernel") from None


@attack
def looser_filter(targets: Targets) -> None:
    program = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000), 8)
    header = struct.pack("@HP", 1, ctypes.addressof(program))
    in_a_fork(lambda: syscall(NUMBERS["seccomp"], ctypes.c_uint(1), ctypes.c_uint(0), header))


@attack
def looser_landlock(targets: Targets) -> None:
    """Make a ruleset that governs next to nothing and put it over the present one."""
    ruleset = syscall(NUMBERS["landlock_create_ruleset"], struct.pack("=Q", 1 << 12), ctypes.c_size_t(8), 0)
    try:
        in_a_fork(lambda: syscall(NUMBERS["landlock_restrict_self"], ruleset, 0))
    finally:
        os.close(ruleset)


@attack
def vmsplice(targets: Targets) -> None:
    """Lend one's own pages to the host through the log pipe."""
    page = mmap.mmap(-1, 4096)
    reading, writing = os.pipe()
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(ctypes.c_char.from_buffer(page)), 4096)
    try:
        syscall(NUMBERS["vmsplice"], writing, vector, ctypes.c_ulong(1), 0)
    finally:
        os.close(reading)
        os.close(writing)


@attack
def splice(targets: Targets) -> None:
    reading, writing = os.pipe()
    zero = os.open("/dev/zero", os.O_RDONLY)
    try:
        syscall(NUMBERS["splice"], zero, None, writing, None, ctypes.c_size_t(10), 0)
    finally:
        for descriptor in (reading, writing, zero):
            os.close(descriptor)


@attack
def personality(targets: Targets) -> None:
    syscall(NUMBERS["personality"], ctypes.c_ulong(syscall(NUMBERS["personality"], ctypes.c_ulong(0xFFFFFFFF))))


@attack
def local_descriptor_table(targets: Targets) -> None:
    if "modify_ldt" not in NUMBERS:
        raise UnsupportedError("not this processor")
    syscall(NUMBERS["modify_ldt"], 0, ctypes.create_string_buffer(64), ctypes.c_ulong(64))


@attack
def regain_capabilities(targets: Targets) -> None:
    """Take the capabilities back that open files, processes and their memory."""
    wanted = 1 << 1 | 1 << 5 | 1 << 19  # CAP_DAC_OVERRIDE, CAP_KILL, CAP_SYS_PTRACE
    in_a_fork(
        lambda: syscall(
            NUMBERS["capset"], struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", wanted, wanted, 0, 0, 0, 0)
        )
    )


@attack
def become_dumpable(targets: Targets) -> None:
    """Open one's own /proc again, to others of the same user."""
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(4, ctypes.c_ulong(1), zero, zero, zero):
        raise OSError(ctypes.get_errno(), "")
    libc.prctl(4, zero, zero, zero, zero)
