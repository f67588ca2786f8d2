"""The level of this machine, found by trying: one process is locked down as a driver's would be, without a driver."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import SandboxError
from dragoman_worker import wire
from dragoman_worker.frames import FROM_CHILD, FrameError, receive
from dragoman_worker.wire import Sandboxed

from . import policy
from .child import Child
from .closure import find_closure
from .launch import Launch, configure
from .log import harmless

if TYPE_CHECKING:
    from pathlib import Path

    from .policy import Report

SECONDS = 30.0


@cache
def measured_level(folder: Path | None = None) -> Report:
    """Try once what a driver's process gets here; takes some 0.2 s the first time. Blocks.

    Args:
        folder: A cache directory, as `find_closure` takes it.

    Raises:
        SandboxError: The process does not start, or does not survive its own lock-down.
    """
    closure = find_closure(folder)
    try:
        child = Child(closure)
    except OSError as error:
        raise SandboxError(f"a driver's process cannot be started: {error.strerror}") from error
    try:
        child.control.settimeout(SECONDS)
        config = configure(Launch(driver="", trees=()), closure)
        child.process.bound(config.lockdown)
        child.control.sendall(wire.pack(config))
        body = receive(child.control, limit=FROM_CHILD)
        told = msgspec.msgpack.decode(body or b"", type=Sandboxed)
        status = policy.read_status(child.process.pid)
    except (OSError, FrameError, *wire.MALFORMED) as error:
        text = f"a process cannot lock itself down here: it ended instead of reporting{_last_words(child)}"
        raise SandboxError(text, code="sandbox-insufficient") from error
    finally:
        child.discard()
    return policy.assess(told, status=status, own=policy.read_status(os.getpid()), policy="auto")


def _last_words(child: Child) -> str:
    try:
        lines = harmless(child.output.read().decode(errors="replace")).splitlines()
    except BlockingIOError:  # it lives, and says nothing
        lines = []
    return f": {lines[-1][:200]}" if lines else ""
