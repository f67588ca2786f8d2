"""The system call filter: which calls a driver's process may make, compiled to classic BPF.

The filter is an allowlist. Unknown calls fail with ENOSYS, so that libc falls back from newer ones. Network calls fail
with EACCES, process and privilege calls with EPERM. Integer arguments are compared by their low 32 bits, as the kernel
reads them: a 64-bit comparison would let `socket(AF_UNIX | 1 << 32)` pass. A filter cannot compare what a pointer
leads to.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from .kernel import AARCH64, NUMBERS, X86_64, syscall

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, AND, JEQ, JGE, JA, RETURN = 0x20, 0x54, 0x15, 0x35, 0x05, 0x06

_MSG_FASTOPEN = 0x20000000
_THREAD = 0x10100  # CLONE_VM | CLONE_THREAD
_NEVER_CLONE = 0x2000 | 0x7E020000  # CLONE_PTRACE and every namespace
_WRITING = 0x3 | 0x40 | 0x200  # O_ACCMODE, O_CREAT, O_TRUNC: O_RDONLY|O_TRUNC empties a file below Landlock ABI 3
_SET_VMA = 0x53564D41

ALLOWED = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek dup dup2 dup3 pipe
pipe2 sendfile poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
eventfd eventfd2 timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4 stat lstat fstat newfstatat statx
access faccessat faccessat2 readlink readlinkat getcwd chdir fchdir getdents getdents64 statfs fstatfs ftruncate fsync
fdatasync fallocate fadvise64 umask mmap munmap mprotect mremap madvise brk msync mincore membarrier futex
futex_waitv set_robust_list get_robust_list rseq set_tid_address sched_yield sched_getaffinity sched_getparam
sched_getscheduler getcpu exit exit_group wait4 waitid restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn
rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack pause alarm getitimer setitimer clock_gettime clock_getres
clock_nanosleep nanosleep gettimeofday time times getpid gettid getppid getuid geteuid getgid getegid getgroups
getresuid getresgid getpgrp getpgid getsid getrusage getrlimit getpriority sysinfo uname getrandom capget arch_prctl
getsockname getpeername recvfrom recvmsg shutdown
"""

REFUSED = {
    errno.EACCES: "connect bind listen accept accept4 sendmmsg recvmmsg",
    # Their flags are behind a pointer. With ENOSYS, glibc uses clone and openat, whose flags can be compared.
    errno.ENOSYS: "clone3 openat2",
    errno.EPERM: """
fork vfork execve execveat tkill ptrace process_vm_readv process_vm_writev pidfd_open pidfd_getfd pidfd_send_signal
kcmp bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key mount
umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsmount fsconfig fspick mount_setattr
open_by_handle_at name_to_handle_at init_module finit_module delete_module kexec_load kexec_file_load reboot swapon
swapoff acct quotactl settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm
personality memfd_create memfd_secret modify_ldt chmod fchmod fchmodat chown fchown lchown fchownat utime utimes
utimensat futimesat mknod mknodat truncate setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr shmget
shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink inotify_init
inotify_init1 inotify_add_watch fanotify_init fanotify_mark setuid setgid setreuid setregid setresuid setresgid
setgroups setfsuid setfsgid capset rt_sigqueueinfo rt_tgsigqueueinfo sched_setscheduler sched_setparam sched_setattr
setpriority ioprio_set mlock mlockall mlock2 setrlimit sync syncfs vhangup syslog vmsplice splice tee copy_file_range
migrate_pages move_pages mbind set_mempolicy seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
process_madvise pkey_alloc pkey_mprotect pkey_free flock
""",
}


class Equal(NamedTuple):
    """The low word of an argument has this value under a mask."""

    argument: int
    value: int
    mask: int = 0xFFFFFFFF


class Null(NamedTuple):
    """A pointer argument is null in both of its words."""

    argument: int


class Rule(NamedTuple):
    """Allows a call if every condition of one alternative holds, and otherwise answers with an error number."""

    alternatives: tuple[tuple[Equal | Null, ...], ...]
    otherwise: int


class Arch(NamedTuple):
    """One architecture: its audit number and its system call numbers."""

    audit: int
    numbers: Mapping[str, int]
    x32: bool = False


ARCHES = {
    "x86_64": Arch(0xC000003E, X86_64, x32=True),
    "aarch64": Arch(0xC00000B7, AARCH64),
}


def _one_of(argument: int, *values: int) -> tuple[tuple[Equal, ...], ...]:
    return tuple((Equal(argument, value),) for value in values)


def conditional_rules(pid: int) -> dict[str, Rule]:
    """Return the rules for calls that depend on their arguments.

    Args:
        pid: The process that will be bound. It may signal itself.
    """
    own = ((Equal(0, pid),),)
    no_write = ((Equal(1, 0, _WRITING),),)
    tcp = tuple((Equal(0, domain), Equal(1, 1, 0xF), Equal(2, proto)) for domain in (2, 10) for proto in (0, 6))
    set_socket = tuple((Equal(1, 1), Equal(2, option)) for option in (2, 7, 8, 9, 13))
    set_tcp = tuple((Equal(1, 6), Equal(2, option)) for option in (1, 4, 5, 6, 12, 18))
    get_socket = tuple((Equal(1, 1), Equal(2, option)) for option in (3, 4, 7, 8, 38, 39))  # never PEERPIDFD, 77
    get_tcp = tuple((Equal(1, 6), Equal(2, option)) for option in (1, 4, 5, 6, 11))
    return {
        "open": Rule(no_write, errno.EACCES),
        "openat": Rule(((Equal(2, 0, _WRITING),),), errno.EACCES),
        "socket": Rule(tcp, errno.EACCES),
        "socketpair": Rule(((Equal(0, 1), Equal(1, 1, 0xF)),), errno.EACCES),
        "sendto": Rule(((Null(4), Equal(3, 0, _MSG_FASTOPEN)),), errno.EACCES),
        "sendmsg": Rule(((Equal(2, 0, _MSG_FASTOPEN),),), errno.EACCES),
        "setsockopt": Rule(set_socket + set_tcp, errno.ENOPROTOOPT),
        "getsockopt": Rule(get_socket + get_tcp, errno.ENOPROTOOPT),
        "clone": Rule(((Equal(0, _THREAD, _THREAD | _NEVER_CLONE),),), errno.EPERM),
        "kill": Rule(own, errno.EPERM),
        "tgkill": Rule(own, errno.EPERM),
        "ioctl": Rule(_one_of(1, 0x5421, 0x541B, 0x5450, 0x5451, 0x5401, 0x5413), errno.ENOTTY),
        "fcntl": Rule(_one_of(1, *range(8), 36, 37, 38, 1030, 1032), errno.EPERM),
        "prctl": Rule(_one_of(0, 3, 15, 16, 39, _SET_VMA), errno.EPERM),
        "prlimit64": Rule(_one_of(0, 0), errno.EPERM),
    }


_FORKING = """
capset landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp setrlimit prctl kill tgkill setsid
"""


def _fork_server_rules() -> dict[str, Rule]:
    """Return what a fork server may do beyond a driver's process: fork, and lock down what it forked."""
    always = Rule(((),), errno.EPERM)
    clone = Rule(((Equal(0, _THREAD, _THREAD | _NEVER_CLONE),), (Equal(0, 0, _THREAD | _NEVER_CLONE),)), errno.EPERM)
    return {**dict.fromkeys(_FORKING.split(), always), "clone": clone}


Instruction = tuple[int, int, int, int]


def compile_filter(arch: Arch, pid: int | None) -> list[Instruction]:
    """Compile the filter of one architecture.

    Args:
        arch: One of `ARCHES`.
        pid: The process that will be bound; None for a fork server, whose processes bind themselves again.

    Returns:
        Instructions as (code, jump if true, jump if false, operand). The first ones kill a foreign architecture.
    """
    rules = conditional_rules(0) | _fork_server_rules() if pid is None else conditional_rules(pid)
    dispatch: list[tuple[int, int | Rule]] = [
        *((arch.numbers[name], ALLOW) for name in ALLOWED.split() if name in arch.numbers),
        *((arch.numbers[name], rule) for name, rule in rules.items() if name in arch.numbers),
        *(
            (arch.numbers[name], ERRNO | code)
            for code, names in REFUSED.items()
            for name in names.split()
            if name in arch.numbers
        ),
    ]
    head: list[Instruction] = [(LOAD, 0, 0, 4), (JEQ, 1, 0, arch.audit), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    if arch.x32:
        head += [(JGE, 0, 1, 0x40000000), (RETURN, 0, 0, KILL)]
    blocks: list[Instruction] = []
    first_block = len(head) + 2 * len(dispatch) + 1
    for number, target in dispatch:
        head.append((JEQ, 0, 1, number))
        if isinstance(target, int):
            head.append((RETURN, 0, 0, target))
        else:  # conditional jumps reach 255 instructions, JA reaches all of them
            head.append((JA, 0, 0, first_block + len(blocks) - len(head) - 1))
            blocks += _block(target)
    return [*head, (RETURN, 0, 0, ERRNO | errno.ENOSYS), *blocks]


def _block(rule: Rule) -> list[Instruction]:
    block: list[Instruction] = []
    for alternative in rule.alternatives:
        steps: list[Instruction] = []
        for condition in alternative:
            low = 16 + 8 * condition.argument
            if isinstance(condition, Null):
                steps += [(LOAD, 0, 0, low), (JEQ, 0, 0, 0), (LOAD, 0, 0, low + 4), (JEQ, 0, 0, 0)]
                continue
            steps.append((LOAD, 0, 0, low))
            if condition.mask != 0xFFFFFFFF:
                steps.append((AND, 0, 0, condition.mask))
            steps.append((JEQ, 0, 0, condition.value))
        steps.append((RETURN, 0, 0, ALLOW))
        block += [
            (code, yes, len(steps) - at - 1, operand) if code == JEQ else (code, yes, no, operand)
            for at, (code, yes, no, operand) in enumerate(steps)
        ]
    return [*block, (RETURN, 0, 0, ERRNO | rule.otherwise)]


def install(program: list[Instruction]) -> None:
    """Bind every thread of this process to the filter permanently.

    Raises:
        OSError: The kernel refused the filter, or could not bind a thread.
    """
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    set_mode_filter, all_threads = ctypes.c_uint(1), ctypes.c_uint(1)
    if stray := syscall(NUMBERS["seccomp"], set_mode_filter, all_threads, header):
        raise OSError(errno.ESRCH, f"{os.strerror(errno.ESRCH)}: thread {stray}")
