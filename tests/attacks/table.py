"""Every attack: what it does, how it must end at `full`, and where it must succeed.

The second level is the control. An attack that succeeds nowhere proves nothing: its target may be missing, its numbers
may be wrong. One that must succeed without a layer tells when that layer has silently become a no-op.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

SUCCEEDED = "succeeded"
COLUMNS = ("full", "full-landlock", "full-seccomp", "subprocess")
"""The levels at which all that the kernel holds is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack and what is expected of it.

    Attributes:
        name: Of the function in the hostile driver.
        what: For a reader.
        full: How it ends at `full`.
        control: The level at which it must succeed; empty where there can be none.
        why: Why there can be no control.
        held: What holds it.
        root: Why an ordinary user's control cannot succeed.
        alone: It needs a process of its own, which it may end.
        processor: The only one that has what it is aimed at, as `platform.machine()` names it.
        end: How it ends at the control where that is no plain success.
        hook: The call it is made in.
        deadline: Seconds it is given.
    """

    name: str
    what: str
    full: str
    control: str = ""
    why: str = ""
    held: str
    root: str = ""
    alone: bool = False
    processor: str = ""
    end: str = SUCCEEDED
    hook: str = "describe_object"
    deadline: float = 20.0


def _group(title: str, held: str, *rows: tuple[str, str, str, str], **common: object) -> tuple[str, list[Attack]]:
    return title, [
        Attack(name=name, what=what, full=full, control=control, held=held, **common)  # type: ignore[arg-type]
        for name, what, full, control in rows
    ]


_ROOT = "only root may do this on any machine"
_HOST_BOUND = "the host's own code bounds it; its tests replace that code"
_ANSWER = "killed"

_L, _S, _ONLY_HOST = "full-landlock", "full-seccomp", "the host"
_PLAIN = "subprocess"

GROUPS: tuple[tuple[str, list[Attack]], ...] = (
    _group(
        "Reading files",
        "Landlock",
        ("read_key", "read a private key in the user's home", "EACCES", _L),
        ("read_foreign_secret", "read the file with another connection's secret", "EACCES", _L),
        ("read_other_driver", "read the code of another driver", "EACCES", _L),
        ("read_what_lies_around", "read any of several hundred files of the system and its users", "EACCES", _L),
        ("list_home", "list the user's home", "EACCES", _L),
        ("walk_down_to_key", "change into the key's directory and open the key by a relative name", "EACCES", _L),
        ("read_through_proc_root", "open the key through `/proc/self/root`", "EACCES", _L),
        ("read_own_maps", "read its own `/proc/self/maps`", "EACCES", _L),
        ("list_processes", "list the machine's processes", "EACCES", _L),
        ("parent_arguments", "read the host's command line in `/proc`", "EACCES", _L),
    ),
    _group(
        "Reading files",
        "Landlock",
        ("read_shadow", "read `/etc/shadow`", "EACCES", _L),
        root="only root may read it",
    ),
    _group(
        "Reading files",
        "nothing",
        ("stat_foreign", "`stat` a file that it may not read, and read where a link leads", SUCCEEDED, "full"),
    ),
    _group(
        "Reading files",
        "Landlock, seccomp",
        ("openat2", "open the key with `openat2`, whose flags no filter sees", "ENOSYS", _PLAIN),
        ("symlink_to_key", "reach the key through a symbolic link", "ENOSYS", _PLAIN),
        ("hard_link_to_key", "reach the key through a hard link", "ENOSYS", _PLAIN),
    ),
    _group(
        "Reading files",
        "Landlock, seccomp, capabilities",
        ("open_by_handle_at", "open the key by a file handle", "EPERM", _PLAIN),
        root=_ROOT,
    ),
    _group(
        "Changing files",
        "Landlock, seccomp",
        ("write_home", "create a file in the user's home", "EACCES", _PLAIN),
        ("write_scratch", "create a file where everyone may", "EACCES", _PLAIN),
        ("write_itself", "open its own code for writing", "EACCES", _PLAIN),
        ("reopen_for_writing", "open its own code for writing through `/proc/self/fd`", "EACCES", _PLAIN),
        ("write_own_memory_file", "open `/proc/self/mem` for writing", "EACCES", _PLAIN),
        ("make_directory", "make a directory", "ENOSYS", _PLAIN),
        ("remove_file", "delete a file of the user's", "ENOSYS", _PLAIN),
        ("rename_file", "rename a file of the user's", "ENOSYS", _PLAIN),
        ("truncate_path", "empty a file of the user's with `truncate`", "EPERM", _PLAIN),
        ("truncate_by_opening", "empty a file that it may read, with `O_RDONLY | O_TRUNC`", "EACCES", _PLAIN),
    ),
    _group(
        "Changing files",
        "Landlock, seccomp",
        ("write_the_hosts_packages", "open a library of the host's for writing", "EACCES", _PLAIN),
        ("core_pattern", "set the program that the kernel starts for a core file", "EACCES", _PLAIN),
        root="an ordinary user may not do this anyway",
    ),
    _group(
        "Changing files",
        "seccomp, resource limits",
        ("fill_the_disk", "write a file of a megabyte", "EACCES", "bare"),
    ),
    _group(
        "Changing files",
        "seccomp",
        ("chmod", "make the key readable by everyone", "EPERM", _S),
        ("chown", "change the key's owner", "EPERM", _S),
        ("utime", "change the key's times", "EPERM", _S),
        ("setxattr", "give the key an extended attribute", "EPERM", _S),
        ("lock_its_tree", "lock the folder of its own code, so that others wait for it", "EPERM", _S),
        ("inotify_on_home", "watch the user's home with `inotify`", "EPERM", _S),
    ),
    _group(
        "Changing files",
        "capabilities",
        ("raise_limits", "raise its own resource limits", "ValueError", _PLAIN),
        root="only root may raise a hard limit",
    ),
    _group(
        "Other processes",
        "Landlock, a host that is not dumpable",
        ("parent_environ", "read the host's environment", "EACCES", "open-host"),
        ("parent_maps", "read the host's memory map", "EACCES", "open-host"),
        ("parent_memory", "search the host's memory for a secret", "EACCES", "open-host"),
        ("parent_descriptors", "list the numbers of the host's descriptors", "EACCES", "open-host"),
        ("parent_robust_list", "learn an address in the host's memory with `get_robust_list`", "EPERM", "open-host"),
        ("neighbour_memory", "search another driver's memory for its secret", "EACCES", "open-host"),
        ("origin_maps", "read the fork server's memory map", "EACCES", "open-host"),
        ("origin_memory", "open the fork server's memory", "EACCES", "open-host"),
    ),
    _group(
        "Other processes",
        "Landlock, seccomp, a host that is not dumpable",
        ("process_vm_readv", "read the host's memory with `process_vm_readv`", "EPERM", _PLAIN),
        ("ptrace_seize", "attach to the host as a debugger", "EPERM", _PLAIN),
        ("pidfd_getfd", "take a descriptor of the host with `pidfd_getfd`", "EPERM", _PLAIN),
        ("origin_descriptor", "take a descriptor of the fork server with `pidfd_getfd`", "EPERM", _PLAIN),
    ),
    _group(
        "Other processes",
        "Landlock, seccomp",
        ("signal_parent", "signal the host", "EPERM", _PLAIN),
        ("signal_origin", "signal the fork server", "EPERM", _PLAIN),
        ("pidfd_signal", "signal the host through a descriptor", "EPERM", _PLAIN),
    ),
    _group(
        "Other processes",
        "seccomp",
        ("peer_pidfd", "get a descriptor of the host with `SO_PEERPIDFD`", "ENOPROTOOPT", _S),
        ("signal_everybody", "`kill(-1, 0)`", "EPERM", _S),
        ("signal_by_sigio", "have the kernel signal the host with `F_SETOWN`", "EPERM", _S),
        ("limit_parent", "change the host's resource limits", "EPERM", _S),
        ("outlive_the_host", "undo its own death with the host", "EPERM", _S),
        ("become_dumpable", "open its own `/proc` again", "EPERM", _S),
    ),
    _group(
        "Other processes",
        "seccomp, capabilities",
        ("renice_parent", "lower the host's priority", "EPERM", _PLAIN),
        ("pin_parent", "pin the host to a processor", "ENOSYS", _PLAIN),
    ),
    _group(
        "Other processes",
        "a process of its own",
        ("secret_in_environment", "find another driver's secret in its own environment", "absent", "in-process"),
        ("secret_in_arguments", "find another driver's secret in its own arguments", "absent", "in-process"),
        (
            "secret_in_descriptors",
            "find another driver's secret through an inherited descriptor",
            "absent",
            "in-process",
        ),
        ("secret_in_objects", "find another driver's secret in a loaded module", "absent", "in-process"),
        ("patch_the_host", "replace a function of the host", "absent", "in-process"),
        ("shadow_the_standard_library", "ship a module with the name of a standard library module", "absent", ""),
        why="only an interpreter that puts a driver first on its path would import it",
    ),
    _group(
        "Programs and processes",
        "Landlock, seccomp",
        ("shell", "run `/bin/sh`", "EPERM", _PLAIN),
        ("execv", "replace itself with another program", "EPERM", _PLAIN),
        ("posix_spawn", "start a program with `posix_spawn`", "EPERM", _PLAIN),
        ("loader", "start a program through the dynamic loader", "EPERM", _PLAIN),
    ),
    _group(
        "Programs and processes",
        "seccomp, resource limits",
        ("memfd_execveat", "execute a file that is in memory only", "EPERM", "bare"),
    ),
    _group("Programs and processes", "seccomp", ("fork_bomb", "fork, and fork again", "EPERM", _S)),
    _group(
        "Network and sockets",
        "Landlock, seccomp",
        ("connect_other_port", "connect to another port", "EACCES", _PLAIN),
        ("connect_other_host", "connect to another host", "EACCES", _PLAIN),
        ("connect_approved_port_itself", "connect to its own server without the broker", "EACCES", _PLAIN),
        ("bind_and_listen", "listen on a port", "EACCES", _PLAIN),
        ("abstract_socket", "connect to an abstract Unix socket", "EACCES", _PLAIN),
    ),
    _group(
        "Network and sockets",
        "seccomp",
        ("listen_unbound", "listen on whatever port the kernel picks", "EACCES", _S),
        ("mptcp", "connect to another port over MPTCP", "EACCES", _S),
        ("fast_open", "connect by sending: TCP Fast Open", "EACCES", _S),
        ("fast_open_by_sendmsg", "connect by sending with `sendmsg`", "EACCES", _S),
        ("fast_open_connect", "switch `TCP_FASTOPEN_CONNECT` on", "ENOPROTOOPT", _S),
        ("bind_to_device", "bind a socket to a device", "ENOPROTOOPT", _S),
        ("other_socket_option", "set a TCP option that drivers do not need", "ENOPROTOOPT", _S),
        ("udp", "send a datagram", "EACCES", _S),
        ("netlink", "ask the kernel for the machine's interfaces over netlink", "EACCES", _S),
        ("interfaces_by_ioctl", "ask for the machine's interfaces with `ioctl` on a TCP socket", "ENOTTY", _S),
        ("vsock", "open a socket to the hypervisor", "EACCES", _S),
        ("unix_socket", "connect to a Unix socket in the file system", "EACCES", _S),
        ("unix_socket_by_pair", "send to a Unix socket from a pair of datagram sockets", "EACCES", _S),
        ("unix_socket_by_high_bits", "make a Unix socket with `socket(AF_UNIX | 1 << 32)`", "EACCES", _S),
    ),
    _group(
        "Network and sockets",
        "seccomp, capabilities",
        ("packet_socket", "open a packet socket", "EACCES", _PLAIN),
        ("raw_socket", "open a raw socket", "EACCES", _PLAIN),
        root=_ROOT,
    ),
    _group(
        "Network and sockets",
        "Landlock",
        ("libc_lookup", "look up a name with the C library, which reads `/etc/hosts`", "EAI_AGAIN", _L),
    ),
    _group(
        "Network and sockets",
        "seccomp",
        ("terminal_input", "type into the terminal with `TIOCSTI`", "ENOTTY", ""),
        why="its process has no terminal at any level; the compiled filter's rule is tested by itself",
    ),
    _group(
        "Kernel surface",
        "seccomp",
        ("userfaultfd", "`userfaultfd`", "EPERM", _S),
        ("add_key", "store a key in the kernel", "EPERM", _S),
        ("keyctl", "look at the user's keyring", "EPERM", _S),
        ("unshare_user", "a user namespace with `unshare`", "EPERM", _S),
        ("clone3_user", "a user namespace with `clone3`, whose flags no filter sees", "ENOSYS", _S),
        ("clone_user", "a user namespace with `clone`", "EPERM", _S),
        ("shared_memory", "System V shared memory", "EPERM", _S),
        ("message_queue", "a System V message queue", "EPERM", _S),
        ("vmsplice", "lend its pages to a pipe with `vmsplice`", "EPERM", _S),
        ("splice", "`splice`", "EPERM", _S),
        ("personality", "`personality`", "EPERM", _S),
        ("looser_filter", "install a looser filter", "EPERM", _S),
        ("looser_landlock", "put a looser ruleset over the present one", "EPERM", _S),
    ),
    _group(
        "Kernel surface",
        "seccomp",
        ("foreign_architecture", "make a call through the 32-bit gate, `int 0x80`", "SIGSYS", _S),
        ("x32_number", "make a call by its x32 number", "SIGSYS", _S),
        alone=True,
        processor="x86_64",
    ),
    _group(
        "Kernel surface",
        "seccomp",
        ("local_descriptor_table", "`modify_ldt`", "EPERM", _S),
        processor="x86_64",
    ),
    _group("Kernel surface", "seccomp, resource limits", ("io_uring", "`io_uring_setup`", "EPERM", "bare")),
    _group(
        "Kernel surface",
        "seccomp, capabilities",
        ("bpf", "make a BPF map", "EPERM", "bare"),
        ("perf_event_open", "count the instructions of every process", "EPERM", "bare"),
        ("mount", "mount a file system", "EPERM", _PLAIN),
        ("regain_capabilities", "take every capability back", "EPERM", _PLAIN),
        root=_ROOT,
    ),
    _group(
        "Broker",
        "the host",
        ("broker_other_port", "ask for another port of the approved host", "EACCES", "no-comparison"),
        ("broker_other_name", "ask for another name", "EACCES", "no-comparison"),
        ("broker_other_spelling", "ask for the approved address in another spelling", "EACCES", "no-comparison"),
        ("broker_name_with_data", "ask for a name that carries data", "EACCES", "no-comparison"),
        ("broker_redirect", "follow a redirect to another port", "EACCES", "no-comparison"),
        ("broker_proxy_from_environment", "go through a proxy that the environment names", "EACCES", "no-comparison"),
        (
            "broker_trailing_dot",
            "ask for another port of the approved address, with a dot after it",
            "EACCES",
            "no-comparison",
        ),
        (
            "broker_address_as_a_number",
            "ask for another port of the approved address, as one number",
            "EACCES",
            "no-comparison",
        ),
        (
            "broker_moved_name",
            "reach this machine through a name that led to a public address before",
            "EACCES",
            "no-judgement",
        ),
        (
            "broker_mixed_answer",
            "reach this machine through a name that leads to it and to a dead public address",
            "ECONNREFUSED",
            "no-judgement",
        ),
        (
            "broker_wrapped_address",
            "reach this machine through a name that leads to `::ffff:127.0.0.1`",
            "EACCES",
            "no-judgement",
        ),
        (
            "broker_metadata",
            "reach a cloud's credentials through a name that leads to 169.254.169.254",
            "EACCES",
            "no-judgement",
        ),
        ("broker_manifests_host", "reach this machine through a name in its manifest", "EACCES", "no-judgement"),
    ),
    _group(
        "Broker",
        "seccomp",
        ("brokered_dissolve", "dissolve a brokered connection with `connect(AF_UNSPEC)`", "EACCES", _S),
        ("brokered_fast_open", "send a brokered socket elsewhere with Fast Open", "EACCES", _S),
        ("brokered_listen", "listen on a brokered socket", "EACCES", _S),
    ),
    _group(
        "Broker",
        "Landlock, seccomp",
        ("brokered_reconnect", "dissolve a brokered connection and connect elsewhere", "EACCES", _PLAIN),
    ),
    _group(
        "Broker",
        "resource limits",
        ("broker_two_thousand_opens", "open 2,000 approved connections", "exit status 4", "full-limits"),
        alone=True,
        end="deadline",
        deadline=20.0,
    ),
    _group(
        "Broker",
        "the host",
        ("broker_descriptors_to_host", "send the host 200 descriptors", "dropped", ""),
        ("broker_malformed_request", "send the broker data that is not a request", _ANSWER, ""),
        ("broker_long_request", "announce a request of 4 GiB", _ANSWER, "no-bounds"),
        ("broker_flood", "ask without ever reading an answer", _ANSWER, ""),
        alone=True,
        why=_HOST_BOUND,
        end="deadline, killed",
        deadline=6.0,
    ),
    _group(
        "Protocol",
        "the host",
        ("wire_no_msgpack", "bytes that are not msgpack", _ANSWER, ""),
        ("wire_empty_frame", "an empty frame", _ANSWER, ""),
        ("wire_four_gigabytes", "a frame that announces 4 GiB", _ANSWER, "no-bounds"),
        ("wire_unknown_message", "a message of an unknown kind", _ANSWER, ""),
        ("wire_unsolicited_answer", "an answer to no call", _ANSWER, ""),
        ("wire_forged_report", "a second, forged report of its confinement", _ANSWER, ""),
        ("wire_second_ready", "a second list of hooks", _ANSWER, ""),
        ("wire_a_million_levels", "a million levels of nesting", _ANSWER, ""),
        ("wire_invalid_text", "text that is not UTF-8", _ANSWER, ""),
        ("wire_other_type", "an answer of a wrong type", _ANSWER, ""),
        ("wire_unsolicited_parts", "a flood of parts that belong to no answer", _ANSWER, ""),
        ("wire_part_that_belongs_nowhere", "a part for a field that the answer does not have", _ANSWER, ""),
        ("wire_long_error", "an error of 100,000 characters", _ANSWER, ""),
        ("wire_endless_parts", "parts of an answer without end", _ANSWER, "no-bounds"),
        alone=True,
        why=_HOST_BOUND,
        end="deadline, killed",
        deadline=6.0,
    ),
    _group(
        "Protocol",
        "the host",
        ("wire_amplified_page", "cells of three bytes each that take sixty in the host", _ANSWER, "no-bounds"),
        ("wire_amplified_rows", "four million rows of one byte each", _ANSWER, ""),
        alone=True,
        why=_HOST_BOUND,
        end="deadline, killed",
        hook="fetch_page",
        deadline=6.0,
    ),
    _group(
        "Protocol",
        "the host",
        ("export_without_credit", "more pieces of an export than the host asked for", _ANSWER, "no-bounds"),
        alone=True,
        end="deadline, killed",
        hook="export_rows",
        deadline=6.0,
    ),
    _group(
        "Protocol",
        "the host",
        ("export_byte_by_byte", "a piece of an export, byte by byte", "deadline", "no-deadline"),
        alone=True,
        hook="export_rows",
        deadline=1.0,
    ),
    _group(
        "Protocol",
        "the host",
        ("export_overfilled", "more bytes of an export than were announced", "killed", ""),
        alone=True,
        hook="export_rows",
        why=_HOST_BOUND,
    ),
    _group(
        "Resources",
        "resource limits",
        ("memory_bomb", "take 3 GiB of memory", "MemoryError", "full-limits"),
        ("thread_bomb", "start 500 threads", "EAGAIN", "full-limits"),
        ("descriptor_bomb", "open 600 descriptors", "EMFILE", "full-limits"),
    ),
    _group(
        "Resources",
        "the host",
        ("endless_await", "never answer", "deadline", "no-deadline"),
        ("processor_spin", "compute without end", "deadline, killed", "no-deadline"),
        ("blocked_loop", "block, with every signal blocked", "deadline, killed", "no-deadline"),
        ("stubborn_await", "continue through every cancellation", "deadline, killed", "no-deadline"),
        alone=True,
        deadline=0.3,
    ),
    _group(
        "Resources",
        "the host",
        ("stop_itself", "stop itself with a signal", "deadline, killed", ""),
        alone=True,
        why="nothing would resume it",
        deadline=0.3,
    ),
    _group(
        "Resources",
        "the host",
        ("log_flood", "print megabytes of terminal escapes", "dropped", ""),
        alone=True,
        why=_HOST_BOUND,
    ),
)
"""Title of a section of the page → its attacks; a title may come more than once."""

ATTACKS = {attack.name: attack for _, attacks in GROUPS for attack in attacks}
POSSIBLE = [attack.name for attack in ATTACKS.values() if attack.processor in ("", platform.machine())]
"""Names of the attacks for which this processor has a target."""

WORDS = {
    "full": "`full`",
    "full-landlock": "without Landlock",
    "full-seccomp": "without seccomp",
    "full-limits": "without resource limits",
    "subprocess": "plain subprocess",
    "bare": "plain subprocess without resource limits",
    "open-host": "without Landlock and dropped capabilities, of a dumpable host",
    "no-comparison": "without the broker's comparison",
    "no-judgement": "without the broker's check of addresses",
    "no-bounds": "without the host's bounds",
    "no-deadline": "without a deadline",
    "in-process": "inside the host's process",
    SUCCEEDED: "**succeeds**",
    "killed": "killed",
    "deadline": "given up at the deadline",
    "deadline, killed": "given up and killed at the deadline",
    "exit status 4": "its process ends",
    "absent": "nothing there",
}
"""Words for a reader, of levels and of ends that are no errno."""
