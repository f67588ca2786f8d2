"""The compiled filter, run by an interpreter of classic BPF, on both architectures."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from dragoman_worker.lockdown import seccomp
from dragoman_worker.lockdown.seccomp import ALLOW, ARCHES, ERRNO, KILL, Instruction

if TYPE_CHECKING:
    from collections.abc import Iterable

PID = 4321
HIGH = 1 << 32


class Data(NamedTuple):
    number: int
    audit: int
    arguments: tuple[int, ...] = ()

    def word(self, offset: int) -> int:
        if offset == 0:
            return self.number
        if offset == 4:
            return self.audit
        index, high = divmod(offset - 16, 8)
        value = self.arguments[index] if index < len(self.arguments) else 0
        return value >> 32 & 0xFFFFFFFF if high else value & 0xFFFFFFFF


def run(program: list[Instruction], data: Data) -> int:
    at = accumulator = 0
    while True:
        code, yes, no, operand = program[at]
        at += 1
        match code:
            case seccomp.LOAD:
                accumulator = data.word(operand)
            case seccomp.AND:
                accumulator &= operand
            case seccomp.JEQ:
                at += yes if accumulator == operand else no
            case seccomp.JGE:
                at += yes if accumulator >= operand else no
            case seccomp.JA:
                at += operand
            case seccomp.RETURN:
                return operand
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


class Machine:
    def __init__(self, name: str) -> None:
        self.arch = ARCHES[name]
        self.program = seccomp.compile_filter(self.arch, PID)

    def knows(self, name: str) -> bool:
        return name in self.arch.numbers

    def __call__(self, name: str, *arguments: int) -> str:
        return self.raw(self.arch.numbers[name], *arguments)

    def raw(self, number: int, *arguments: int, audit: int | None = None) -> str:
        result = run(self.program, Data(number, self.arch.audit if audit is None else audit, arguments))
        if result in (ALLOW, KILL):
            return "allow" if result == ALLOW else "kill"
        assert result & ~0xFFFF == ERRNO
        return errno.errorcode[result & 0xFFFF]


@pytest.fixture(scope="module", params=sorted(ARCHES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return Machine(request.param)


def test_a_foreign_architecture_is_killed_before_anything_else(machine: Machine) -> None:
    for audit in {0x40000003, 0x40000028, 0xC000003E, 0xC00000B7} - {machine.arch.audit}:
        assert machine.raw(machine.arch.numbers["read"], audit=audit) == "kill"


def test_x32_numbers_are_killed_where_they_exist() -> None:
    assert Machine("x86_64").raw(0x40000000 + 1) == "kill"
    assert Machine("aarch64").raw(0x40000000 + 1) == "ENOSYS"


def test_unknown_and_newer_calls_do_not_exist(machine: Machine) -> None:
    assert machine.raw(9_999) == "ENOSYS"
    assert machine("clone3") == machine("openat2") == "ENOSYS"
    assert "mkdirat" not in machine.arch.numbers, "calls that change directories are not even named"


def test_everything_named_has_one_answer(machine: Machine) -> None:
    refused = [name for names in seccomp.REFUSED.values() for name in names.split()]
    named = [*seccomp.ALLOWED.split(), *seccomp.conditional_rules(PID), *refused]
    assert len(named) == len(set(named)), "a call named twice would silently take its first answer"
    assert all(machine(name) == "allow" for name in seccomp.ALLOWED.split() if machine.knows(name))
    assert not any(machine(name) == "allow" for name in refused if machine.knows(name))


def test_the_program_fits_the_kernels_limit(machine: Machine) -> None:
    assert len(machine.program) < 4_096
    assert all(0 <= yes < 256 and 0 <= no < 256 for _, yes, no, _ in machine.program)


def test_files_can_be_opened_for_reading_only(machine: Machine) -> None:
    assert machine("openat", 0, 0, 0o2000000) == "allow"
    for flags in (1, 2, 0x40, 0x200):
        assert machine("openat", 0, 0, flags) == "EACCES"
        assert machine("openat", 0, 0, flags | HIGH) == "EACCES"
        if machine.knows("open"):
            assert machine("open", 0, flags) == "EACCES"


def test_only_tcp_sockets_can_be_made(machine: Machine) -> None:
    nonblocking, cloexec = 0x800, 0x80000
    for domain in (2, 10):
        for protocol in (0, 6):
            assert machine("socket", domain, 1 | nonblocking | cloexec, protocol) == "allow"
    for domain, kind, protocol in ((1, 1, 0), (2, 2, 0), (2, 3, 6), (16, 3, 0), (40, 1, 0), (2, 1, 262), (2, 1, 132)):
        assert machine("socket", domain, kind, protocol) == "EACCES", (domain, kind, protocol)


def test_high_words_of_integers_do_not_fool_it(machine: Machine) -> None:
    assert machine("socket", 1 | HIGH, 1, 0) == "EACCES"
    assert machine("socket", 2 | HIGH, 1, 0) == "allow", "the kernel looks at the low word, and so does the filter"
    assert machine("kill", PID | HIGH, 0) == "allow"
    assert machine("kill", (PID + 1) | HIGH, 0) == "EPERM"


def test_the_process_cannot_connect_by_itself(machine: Machine) -> None:
    for name in ("connect", "bind", "listen", "accept", "accept4", "sendmmsg", "recvmmsg"):
        assert machine(name) == "EACCES"


def test_an_address_or_fast_open_in_a_send_is_refused(machine: Machine) -> None:
    assert machine("sendto", 3, 0, 0, 0x4000, 0) == "allow"
    assert machine("sendto", 3, 0, 0, 0, 0xDEAD) == "EACCES"
    assert machine("sendto", 3, 0, 0, 0, HIGH) == "EACCES", "a pointer is compared in both its words"
    assert machine("sendto", 3, 0, 0, 0x20000000, 0) == "EACCES"
    assert machine("sendmsg", 3, 0, 0x20000000) == "EACCES"
    assert machine("sendmsg", 3, 0, 0) == "allow"


def test_socket_options_are_named_one_by_one(machine: Machine) -> None:
    for level, option in ((1, 2), (1, 7), (1, 8), (1, 9), (1, 13), (6, 1), (6, 4), (6, 5), (6, 6), (6, 12), (6, 18)):
        assert machine("setsockopt", 3, level, option) == "allow"
    for level, option in ((6, 30), (1, 25), (0, 1), (1, 1)):
        assert machine("setsockopt", 3, level, option) == "ENOPROTOOPT"
    for level, option in ((1, 3), (1, 4), (1, 38), (1, 39), (6, 11)):
        assert machine("getsockopt", 3, level, option) == "allow"
    assert machine("getsockopt", 3, 1, 77) == "ENOPROTOOPT", "SO_PEERPIDFD would yield the host's pidfd"


def test_socketpairs_are_unix_streams(machine: Machine) -> None:
    assert machine("socketpair", 1, 1 | 0x80000) == "allow"
    assert machine("socketpair", 1, 2) == "EACCES"


def test_threads_can_be_made_and_processes_cannot(machine: Machine) -> None:
    glibc_thread = 0x3D0F00
    assert machine("clone", glibc_thread) == "allow"
    assert machine("clone", 0x1200011) == "EPERM", "fork"
    assert machine("clone", 0x4111) == "EPERM", "vfork"
    for namespace in (0x10000000, 0x00020000, 0x40000000, 0x02000000):
        assert machine("clone", glibc_thread | namespace) == "EPERM"
    for name in ("fork", "vfork", "execve", "execveat"):
        if machine.knows(name):
            assert machine(name) == "EPERM"


def test_signals_reach_the_process_itself_only(machine: Machine) -> None:
    assert machine("kill", PID, 9) == machine("tgkill", PID, PID, 9) == "allow"
    assert machine("kill", 1, 0) == machine("kill", 0xFFFFFFFF, 0) == machine("tgkill", 1, 1, 0) == "EPERM"
    assert machine("tkill", PID, 0) == "EPERM"


def test_ioctl_fcntl_prctl_and_limits_are_named_one_by_one(machine: Machine) -> None:
    assert machine("ioctl", 0, 0x5421) == "allow"
    assert machine("ioctl", 0, 0x5412) == "ENOTTY", "TIOCSTI would type into a terminal"
    assert machine("fcntl", 0, 1030) == machine("fcntl", 0, 4) == "allow"
    assert machine("fcntl", 0, 8) == "EPERM", "F_SETOWN would send signals"
    assert machine("prctl", 15) == machine("prctl", 39) == "allow"
    for option in (1, 4, 22, 38):
        assert machine("prctl", option) == "EPERM"
    assert machine("prlimit64", 0, 7) == "allow"
    assert machine("prlimit64", PID, 7) == "EPERM"


# the rules once more, written from the design and not from the code, over whole ranges --------------------------------

PLAIN, NETWORK, NO_OPTION, NO_TERMINAL = "EPERM", "EACCES", "ENOPROTOOPT", "ENOTTY"


def allowed_among(machine: Machine, name: str, candidates: Iterable[tuple[int, ...]], refusal: str) -> set[Any]:
    """Return the arguments that pass; every other must get the one refusal, and high words must change nothing."""
    passed = set()
    for arguments in candidates:
        answer = machine(name, *arguments)
        assert answer in ("allow", refusal), (name, arguments, answer)
        assert machine(name, *(argument | HIGH for argument in arguments)) == answer, "the kernel reads the low word"
        if answer == "allow":
            passed.add(arguments)
    return passed


def test_of_all_socket_options_only_the_named_pass(machine: Machine) -> None:
    options = [(3, level, option) for level in (0, 1, 6, 17, 41, 263, 282) for option in range(90)]
    set_ones = {(3, 1, n) for n in (2, 7, 8, 9, 13)} | {(3, 6, n) for n in (1, 4, 5, 6, 12, 18)}
    read_ones = {(3, 1, n) for n in (3, 4, 7, 8, 38, 39)} | {(3, 6, n) for n in (1, 4, 5, 6, 11)}
    assert allowed_among(machine, "setsockopt", options, NO_OPTION) == set_ones
    assert allowed_among(machine, "getsockopt", options, NO_OPTION) == read_ones


def test_of_all_sockets_only_tcp_passes(machine: Machine) -> None:
    protocols = (0, 1, 2, 6, 17, 132, 136, 255, 262)
    every = [(family, kind, protocol) for family in range(46) for kind in range(11) for protocol in protocols]
    tcp = {(family, 1, protocol) for family in (2, 10) for protocol in (0, 6)}
    assert allowed_among(machine, "socket", every, NETWORK) == tcp
    assert allowed_among(machine, "socketpair", [(*row[:2], 0) for row in every], NETWORK) == {(1, 1, 0)}


def test_of_all_open_flags_only_those_that_change_nothing_pass(machine: Machine) -> None:
    every = [1 << one | 1 << other for one in range(31) for other in range(one, 31)] + [0, 3]
    harmless = {flags for flags in every if not flags & (3 | 0x40 | 0x200)}
    assert {row[2] for row in allowed_among(machine, "openat", [(0, 0, f) for f in every], NETWORK)} == harmless
    if machine.knows("open"):
        assert {row[1] for row in allowed_among(machine, "open", [(0, f) for f in every], NETWORK)} == harmless


def test_of_all_clone_flags_only_those_of_threads_pass(machine: Machine) -> None:
    thread, never = 0x100 | 0x10000, 0x2000 | 0x7E020000
    every = [thread ^ (1 << one | 1 << other) for one in range(32) for other in range(one, 32)] + [thread, 17, 0]
    fitting = {(flags,) for flags in every if flags & thread == thread and not flags & never}
    assert allowed_among(machine, "clone", [(flags,) for flags in every], PLAIN) == fitting


def test_of_all_small_commands_only_the_named_pass(machine: Machine) -> None:
    commands = [(0, number) for number in [*range(64), *range(1020, 1045)]]
    assert {n for _, n in allowed_among(machine, "fcntl", commands, PLAIN)} == {*range(8), 36, 37, 38, 1030, 1032}
    controls = [(0, number) for number in [*range(0x5400, 0x5480), *range(0x8900, 0x89A0), 0x40049409, 0x6609]]
    terminal = {0x5421, 0x541B, 0x5450, 0x5451, 0x5401, 0x5413}
    assert {number for _, number in allowed_among(machine, "ioctl", controls, NO_TERMINAL)} == terminal
    attributes = [(number,) for number in [*range(90), 0x53564D41, 0x59616D61]]
    assert {n for (n,) in allowed_among(machine, "prctl", attributes, PLAIN)} == {3, 15, 16, 39, 0x53564D41}


def test_only_the_process_itself_is_signalled_or_limited(machine: Machine) -> None:
    processes = [(number, 0) for number in (0, 1, PID - 1, PID, PID + 1, 0xFFFFFFFF)]
    assert allowed_among(machine, "kill", processes, PLAIN) == {(PID, 0)}
    assert allowed_among(machine, "tgkill", processes, PLAIN) == {(PID, 0)}
    assert allowed_among(machine, "prlimit64", processes, PLAIN) == {(0, 0)}


def test_a_send_has_no_address_and_no_fast_open(machine: Machine) -> None:
    fast = 0x20000000
    for bit in range(32):
        flags = 1 << bit
        expected = NETWORK if flags == fast else "allow"
        assert machine("sendto", 3, 0, 0, flags, 0) == machine("sendmsg", 3, 0, flags) == expected
        assert machine("sendto", 3, 0, 0, flags | fast, 0) == machine("sendmsg", 3, 0, flags | fast) == NETWORK
    for bit in range(64):
        assert machine("sendto", 3, 0, 0, 0, 1 << bit) == NETWORK, "an address anywhere in memory"


def test_every_number_without_a_name_does_not_exist(machine: Machine) -> None:
    named = set(machine.arch.numbers.values())
    assert {machine.raw(number) for number in range(1_200) if number not in named} == {"ENOSYS"}
    assert not named - set(range(1_200))
    for number in (0xFFFFFFFF, 0x80000000, 0x40000000, 0x7FFFFFFF):
        assert machine.raw(number) == ("kill" if machine.arch.x32 else "ENOSYS")


def test_the_kernel_would_take_the_program(machine: Machine) -> None:
    """Every jump goes forward and stays inside, every load is one of the known words, every way ends in a return."""
    length = len(machine.program)
    for at, (code, yes, no, operand) in enumerate(machine.program):
        if code in (seccomp.JEQ, seccomp.JGE):
            assert at + 1 + max(yes, no) < length
        elif code == seccomp.JA:
            assert at + 1 + operand < length
        elif code == seccomp.LOAD:
            assert operand % 4 == 0
            assert operand < 64
        elif code == seccomp.RETURN:
            assert operand in (ALLOW, KILL) or operand & ~0xFFFF == ERRNO
        else:
            assert code == seccomp.AND
    assert machine.program[-1][0] == seccomp.RETURN


def test_calls_of_network_and_privilege_say_so(machine: Machine) -> None:
    refused = {
        "EACCES": "connect bind listen accept accept4 sendmmsg recvmmsg",
        "ENOSYS": "clone3 openat2",
        "EPERM": "execve execveat tkill ptrace process_vm_readv pidfd_open pidfd_getfd pidfd_send_signal bpf"
        " perf_event_open userfaultfd io_uring_setup keyctl add_key mount unshare setns open_by_handle_at memfd_create"
        " capset seccomp landlock_restrict_self vmsplice splice setpriority fchmodat utimensat shmget",
    }
    for answer, names in refused.items():
        assert {machine(name) for name in names.split()} == {answer}


CLONE_PARENT = 0x8000 | 0x1200000 | 17  # with the child's thread id written and cleared, and SIGCHLD at its end
LOCK_DOWN = "capset landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp prlimit64 prctl setsid"


@pytest.fixture(scope="module")
def server(machine: Machine) -> Machine:
    """Return the filter of a fork server."""
    server = Machine(next(name for name, arch in ARCHES.items() if arch is machine.arch))
    server.program = seccomp.compile_filter(server.arch, None)
    return server


def test_a_fork_server_may_fork_and_lock_down_and_nothing_else_beyond_a_driver(
    machine: Machine, server: Machine
) -> None:
    assert server("clone", CLONE_PARENT) == server("clone", 0x3D0F00) == "allow"
    assert {server("clone", namespace | 17) for namespace in (0x2000, 0x10000000, 0x20000000, 0x40000000)} == {"EPERM"}
    assert server("clone", 0x100 | 0x4000 | 17) == "EPERM", "no vfork: it would share the memory"
    assert {server(name) for name in LOCK_DOWN.split()} == {"allow"}
    assert server("prlimit64", 7) == "EPERM", "the limits of its own forks are theirs to set"
    beyond = {name for name in server.arch.numbers if server(name) == "allow" != machine(name)}
    assert beyond <= {*LOCK_DOWN.split(), "setrlimit", "kill", "tgkill", "clone"}, "which its forks give up again"


def test_all_that_a_driver_may_do_its_fork_server_may(machine: Machine, server: Machine) -> None:
    """The filters of both bind a forked process."""
    for name in machine.arch.numbers:
        for arguments in ((), (PID,), (2, 1, 6), (0, 0x1), (0x10100,), (0, 6, 1), (3,), (0, 0x5421)):
            if machine(name, *arguments) == "allow":
                assert server(name, *arguments) == "allow", (name, arguments)
