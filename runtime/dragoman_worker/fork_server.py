"""The fork server: a process without driver, secret and thread, which has imported what each driver's process needs.

The processes that it forks are children of the host and not its own. The kernel therefore ends them with the host,
tells the host how they ended, and lets them live on if the server ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import ssl
import sys
from contextlib import suppress
from importlib import import_module

from .channel import FORK_REPLY, FORK_REQUEST, FORK_UNSUPPORTED
from .lockdown import landlock, process_limits, seccomp
from .lockdown.kernel import MACHINE, prctl

_GET_TID_ADDRESS = 40
_CLONE_PARENT, _CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
_CLONE = {"x86_64": (56, 3), "aarch64": (220, 4)}
"""The number of the system call `clone`, and the place of the child's thread id among its arguments."""


def prepare() -> None:
    """Import what most drivers will import, and make what each process would make, so that they share it."""
    import difflib  # noqa: F401 - as of the API
    import pkgutil
    import secrets  # noqa: F401 - as of the API

    from dragoman_api import kit
    from dragoman_api.connections import Profile

    from . import values
    from .hooks_and_deadlines import HOOKS

    for kind in (Profile | None, *(hook.request for hook in HOOKS.values() if hook.request is not None)):
        values.decoder_of(kind)

    for module in pkgutil.iter_modules(kit.__path__, f"{kit.__name__}."):
        import_module(module.name)


def serve(control: socket.socket, host: int) -> tuple[socket.socket, socket.socket]:
    """Fork a process for each request until the host closes the socket.

    Returns:
        In each of the forked processes: its control and broker sockets.

    Raises:
        RuntimeError: This process has more than one thread, which the forked processes would lack.
    """
    if process_limits.count_threads() != 1:
        raise RuntimeError("a thread was started before the fork server serves")
    try:
        fork = Fork()
    except OSError:
        os._exit(FORK_UNSUPPORTED)
    _lock_down()
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, len(FORK_REQUEST), 3)
        if not request:
            os._exit(0)
        try:
            pid = fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            control.close()
            return _begin(host, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        control.sendall(FORK_REPLY.pack(pid))


def _begin(host: int, control: int, broker: int, output: int) -> tuple[socket.socket, socket.socket]:
    """Make a forked process what a spawned one is at this point."""
    process_limits.die_with(host)
    for stream in (1, 2):
        os.dup2(output, stream)
    process_limits.leave_behind(control, broker)
    ssl.RAND_add(os.urandom(48), 48.0)  # also where OpenSSL does not notice the fork by itself
    return socket.socket(fileno=control), socket.socket(fileno=broker)


class Fork:
    """Forks this process so that the new one is a child of this one's parent.

    The C library has no function for that, and a process that it knows nothing of would have the thread id of this one
    in its memory. The kernel writes the new one there, as in the library's own fork.
    """

    def __init__(self) -> None:
        """Prepare it.

        Raises:
            OSError: The kernel does not say where the C library keeps the thread id, or it is not there.
        """
        address = ctypes.c_void_p()
        prctl(_GET_TID_ADDRESS, ctypes.addressof(address))
        if not address.value or ctypes.c_int.from_address(address.value).value != os.getpid():
            raise OSError("the C library does not keep the thread id where the kernel clears it")
        if MACHINE not in _CLONE:
            raise OSError(f"the numbers of {MACHINE} are unknown")
        number, place = _CLONE[MACHINE]
        flags = _CLONE_PARENT | _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID | signal.SIGCHLD
        arguments: list[object] = [ctypes.c_long(number), ctypes.c_ulong(flags), *[ctypes.c_void_p()] * 4]
        arguments[1 + place] = address
        self._arguments = arguments
        self._syscall = ctypes.PyDLL(None, use_errno=True).syscall  # which keeps the interpreter's lock
        self._syscall.restype = ctypes.c_long
        self._before, self._in_parent, self._in_child = (
            getattr(ctypes.pythonapi, f"PyOS_{name}") for name in ("BeforeFork", "AfterFork_Parent", "AfterFork_Child")
        )
        for function in (self._before, self._in_parent, self._in_child):
            function.restype = None

    def __call__(self) -> int:
        """Fork. Return the new process's number, and 0 in that process. Raises OSError."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._before()
        pid = int(self._syscall(*self._arguments))
        if pid == 0:
            self._in_child()
            return 0
        code = ctypes.get_errno()
        self._in_parent()
        if pid < 0:
            raise OSError(code, os.strerror(code))
        return pid


def _lock_down() -> None:
    """Give up what no forked process needs before its own lock-down, whose report depends on nothing of this.

    What remains: to read files, to fork, and the calls of the lock-down.
    """
    process_limits.hide_memory()
    process_limits.forbid_new_privileges()
    arch = seccomp.ARCHES.get(MACHINE)
    for layer in (
        process_limits.drop_capabilities,
        landlock.forbid_all_but_reading,
        lambda: seccomp.install(seccomp.compile_filter(arch, None)) if arch else None,
    ):
        with suppress(OSError):  # each forked process reports what this machine lacks
            layer()
