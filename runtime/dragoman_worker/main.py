"""The trusted start of a driver's process: import, wait, lock down, prove it, and only then load the driver."""

from __future__ import annotations

import os
import sys

BOOT = """import sys; sys.path.append(sys.argv[5]); from dragoman_worker.main import main; main()"""
"""The program text of the child. It gets: control and broker descriptor, the host's pid, the closure as JSON, and the
directory that holds this package."""


def main() -> None:
    """Run a driver's process to its end."""
    control_fd, broker_fd, host = (int(argument) for argument in sys.argv[1:4])
    from .lockdown import limits

    limits.die_with(host)
    import gc

    gc.disable()  # most of what is imported stays; looking through it again and again costs 10 ms
    import json

    from . import finder

    finder.install(json.loads(sys.argv[4]), bootstrap=sys.argv[5])
    sys.dont_write_bytecode = False  # what is imported from here on is as trusted as the host itself
    from .late_tls import late_certificates

    with late_certificates():
        from . import service
    sys.dont_write_bytecode = True
    gc.freeze()
    gc.enable()
    for descriptor in (control_fd, broker_fd):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - os has no keyword for it
    service.run(control_fd, broker_fd)
