"""The trusted start of a driver's process: import, wait, lock down, prove it, and then load the driver."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # without typing, which the host imports later
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

BOOT = """import sys; sys.path.append(sys.argv[4]); from dragoman_worker.main import main; main()"""
"""The program text of the child.

Its arguments: the control and broker descriptors, the host's pid, and the directory that holds
this package. The first frame of the control socket says, as JSON, what the child may import of the host's environment.
A fork server has `FORK_SERVER` and a number of its own in place of the broker's descriptor.
"""

FORK_SERVER = "fork-server"

LARGE_READ = 256 * 2**10
"""The bytes that asyncio asks a socket for, however few come."""


def main() -> None:
    """Run a driver's process, or a fork server and each process that it forks, to its end."""
    from .lockdown import process_limits

    *descriptors, host = (int(text) for text in sys.argv[1:4] if not text.startswith(FORK_SERVER))
    process_limits.die_with(host)
    process_limits.leave_behind(*descriptors)
    import gc

    gc.disable()  # most imported objects stay, and scanning them repeatedly costs 10 ms
    import asyncio  # noqa: F401 - the host needs the time that this takes to find what the child may import
    import json
    import os
    import socket
    import ssl  # noqa: F401 - as above

    from . import channel

    control, *brokers = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    host_imports = channel.receive(control, limit=channel.FROM_HOST)
    if host_imports is None:
        os._exit(0)
    keep_memory_of_reads()
    install_finder(json.loads(host_imports), bootstrap=sys.argv[4])
    sys.dont_write_bytecode = False  # from here on, imported code is as trusted as the host itself
    from .late_imports import late_imports

    with late_imports():
        from .service import Service
    service = Service()
    if not brokers:
        from . import fork_server

        fork_server.prepare()
    sys.dont_write_bytecode = True
    gc.freeze()
    if not brokers:
        control, broker = fork_server.serve(control, host)  # it returns in each forked process
        brokers = [broker]
        sys.argv[1:3] = [str(control.fileno()), str(broker.fileno())]
    for sock in (control, *brokers):
        sock.set_inheritable(False)
    gc.set_threshold(20_000, 20, 20)  # a page or a batch has thousands of values that are in no cycle
    gc.enable()
    service.run(control, brokers[0])


def keep_memory_of_reads() -> None:
    """Let glibc keep the memory of each read, instead of mapping it anew and returning it to the kernel.

    It maps what is longer than a threshold, which rises to the length of whatever is freed. A read never raises it: its
    memory is cut to what came before it is freed.
    """
    bytes(LARGE_READ + 2**12)


class HostImportFinder:
    """Finds a fixed set of top-level modules, each in the directory where the host has it."""

    def __init__(self, host_imports: Mapping[str, str]) -> None:
        """Set the modules that may be found.

        Args:
            host_imports: The directory of each top-level module, by import name.
        """
        self._host_imports = {
            name: where for name, where in host_imports.items() if name not in sys.stdlib_module_names
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a top-level module among the host's imports. Python finds submodules through their package."""
        if path is not None or (where := self._host_imports.get(fullname)) is None:
            return None
        return PathFinder.find_spec(fullname, [where], target)


def install_finder(host_imports: Mapping[str, str], *, bootstrap: str) -> None:
    """On the import path, replace the host's environment with the given imports.

    They precede the path, so a module of a driver cannot replace one of the same name.

    Args:
        host_imports: The directory of each top-level module, by import name.
        bootstrap: The directory that holds this package.
    """
    sys.path.remove(bootstrap)
    sys.path_importer_cache.pop(bootstrap, None)
    before = sys.meta_path.index(PathFinder)
    sys.meta_path.insert(before, HostImportFinder(host_imports))
