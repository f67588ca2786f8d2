"""The trusted start of a driver's process: import, wait, lock down, prove it, and only then load the driver."""

from __future__ import annotations

import sys

BOOT = """import sys; sys.path.append(sys.argv[5]); from dragoman_worker.main import main; main()"""
"""The program text of the child. It gets: control and broker descriptor (see `passing`), the host's pid, the closure as
JSON, and the directory that holds this package."""


def main() -> None:
    """Run a driver's process to its end."""
    if sys.platform != "win32":  # where it is in a job of its host's
        from .lockdown import limits

        limits.die_with(int(sys.argv[3]))
    import gc

    gc.disable()  # most of what is imported stays; looking through it again and again costs 10 ms
    import json

    from . import finder

    finder.install(json.loads(sys.argv[4]), bootstrap=sys.argv[5])
    sys.dont_write_bytecode = False  # what is imported from here on is as trusted as the host itself
    from .late_tls import late_certificates

    with late_certificates():
        from . import passing, service
    sys.dont_write_bytecode = True
    gc.freeze()
    gc.enable()
    service.run(*passing.first_two(sys.argv[1:]))
