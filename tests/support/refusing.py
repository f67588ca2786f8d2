"""A machine that gives less: run a program under a filter that refuses system calls, as an old kernel or a container.

    python tests/support/refusing.py landlock=ENOSYS seccomp=EPERM -- PROGRAM ARGUMENT…

The program and all it starts inherit the filter. `seccomp` covers the system call and `prctl(PR_SET_SECCOMP)`.
"""

from __future__ import annotations

import errno
import os
import sys

from dragoman_worker.lockdown import process_limits, seccomp
from dragoman_worker.lockdown.kernel import NUMBERS
from dragoman_worker.lockdown.seccomp import ALLOW, ERRNO, JEQ, LOAD, RETURN, Instruction

CALLS = {
    "landlock": ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"),
    "seccomp": ("seccomp",),
    "capset": ("capset",),
    "flock": ("flock",),
    "container": (
        "acct",
        "add_key",
        "bpf",
        "clock_settime",
        "finit_module",
        "fsconfig",
        "fsmount",
        "fsopen",
        "fspick",
        "init_module",
        "io_uring_enter",
        "io_uring_register",
        "io_uring_setup",
        "ioperm",
        "iopl",
        "kcmp",
        "kexec_file_load",
        "kexec_load",
        "keyctl",
        "mbind",
        "migrate_pages",
        "mount",
        "mount_setattr",
        "move_mount",
        "move_pages",
        "open_by_handle_at",
        "open_tree",
        "perf_event_open",
        "pivot_root",
        "process_vm_readv",
        "process_vm_writev",
        "ptrace",
        "quotactl",
        "reboot",
        "request_key",
        "set_mempolicy",
        "sethostname",
        "setns",
        "settimeofday",
        "swapoff",
        "swapon",
        "syslog",
        "umount2",
        "unshare",
        "userfaultfd",
        "vhangup",
    ),
}
"""By a word; `container` is what the default profile of containers refuses to a process without capabilities."""
PR_SET_SECCOMP = 22


def program(refused: dict[str, str]) -> list[Instruction]:
    """Compile a filter that answers these calls with these errors and allows everything else."""
    code: list[Instruction] = [(LOAD, 0, 0, 0)]
    for name, error in refused.items():
        answer = ERRNO | getattr(errno, error)
        for call in CALLS[name]:
            code += [(JEQ, 0, 1, NUMBERS[call]), (RETURN, 0, 0, answer)]
        if name == "seccomp":
            code += [
                (JEQ, 0, 3, NUMBERS["prctl"]), (LOAD, 0, 0, 16), (JEQ, 0, 1, PR_SET_SECCOMP), (RETURN, 0, 0, answer),
                (LOAD, 0, 0, 0),
            ]  # fmt: skip
    return [*code, (RETURN, 0, 0, ALLOW)]


def main() -> None:
    at = sys.argv.index("--")
    process_limits.forbid_new_privileges()
    seccomp.install(program(dict(word.split("=") for word in sys.argv[1:at])))
    os.execvp(sys.argv[at + 1], sys.argv[at + 1 :])


if __name__ == "__main__":
    main()
