"""The trusted start of a driver's process: import, wait, lock down, prove it, and then load the driver."""

from __future__ import annotations

import sys

BOOT = """import sys; sys.path.append(sys.argv[4]); from dragoman_worker.main import main; main()"""
"""The program text of the child.

Its arguments: the control and broker descriptors (see `socket_passing`), the host's pid, and the directory that holds
this package. The first frame of the control socket says, as JSON, what the child may import of the host's environment.
"""


def main() -> None:
    """Run a driver's process to its end."""
    from .lockdown import process_limits

    process_limits.die_with(int(sys.argv[3]))
    process_limits.leave_behind(*map(int, sys.argv[1:3]))
    import gc

    gc.disable()  # most imported objects stay, and scanning them repeatedly costs 10 ms
    import asyncio  # noqa: F401 - the host needs the time that this takes to find what the child may import
    import json
    import os
    import ssl  # noqa: F401 - as above

    from . import frames, import_finder, socket_passing

    control, broker = socket_passing.first_two(sys.argv[1:])
    host_imports = frames.receive(control, limit=frames.FROM_HOST)
    if host_imports is None:
        os._exit(0)
    import_finder.install(json.loads(host_imports), bootstrap=sys.argv[4])
    sys.dont_write_bytecode = False  # from here on, imported code is as trusted as the host itself
    from .late_tls import late_certificates

    with late_certificates():
        from . import service
    sys.dont_write_bytecode = True
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # a page or a batch has thousands of values that are in no cycle
    gc.enable()
    service.run(control, broker)
