"""The trial of this machine's sandbox level: it locks down one process like a driver's, but without a driver."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import SandboxError
from dragoman_registry.files import remedy
from dragoman_worker import wire
from dragoman_worker.channel import FROM_CHILD, FrameError, receive
from dragoman_worker.wire import Sandboxed

from . import levels
from .bare_process import Child
from .host_imports import find_host_imports
from .launch import Launch, configure
from .sanitizing import harmless

if TYPE_CHECKING:
    from pathlib import Path

    from .host_imports import HostImports
    from .levels import SandboxReport

SECONDS = 30.0


def measured_level(folder: Path | None = None) -> SandboxReport:
    """Return the level that a driver's process gets here; the first call takes some 0.2 s. Blocks.

    The level is the machine's: one trial serves every home of this program.

    Args:
        folder: A cache directory, as `find_host_imports` takes it.

    Raises:
        SandboxError: The process does not start, or its lock-down ends it.
    """
    return tried_level(find_host_imports(folder))


@cache
def tried_level(host_imports: HostImports) -> SandboxReport:
    """Try it with one process. Raises as `measured_level`. Blocks."""
    try:
        child = Child()
    except OSError as error:
        text = f"a driver's process cannot be started: {error.strerror}"
        raise SandboxError(text, hint=remedy(error)) from error
    try:
        child.admit(host_imports)
        child.control.settimeout(SECONDS)
        config = configure(Launch(driver="", trees=()), host_imports)
        child.control.sendall(wire.pack(config))
        body = receive(child.control, limit=FROM_CHILD)
        report = msgspec.msgpack.decode(body or b"", type=Sandboxed)
        status = levels.read_status(child.process.pid)
    except (OSError, FrameError, *wire.MALFORMED) as error:
        text = f"a process cannot lock itself down here: it ended without a report{_last_words(child)}"
        raise SandboxError(text, code="sandbox-insufficient") from error
    finally:
        child.discard()
    return levels.assess(report, status=status, own=levels.read_status(os.getpid()), policy="auto")


def _last_words(child: Child) -> str:
    try:
        lines = harmless(child.output.read().decode(errors="replace")).splitlines()
    except BlockingIOError:  # it is alive and silent
        lines = []
    return f": {lines[-1][:200]}" if lines else ""
