"""The plan of a child's lock-down: the files that it may read, its limits, and the targets of its self-test."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_worker.wire import Lockdown

from .system import LAYERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .host_imports import HostImports
    from .levels import Policy


def lockdown_plan(
    host_imports: HostImports,
    *,
    readable: Iterable[str],
    files: Iterable[tuple[str, int, int]] = (),
    policy: Policy,
    memory: int,
    descriptors: int,
    cpu: int | None = None,
) -> Lockdown:
    """Build the plan of what a child gives up and what it keeps.

    Args:
        host_imports: The modules of the host's environment that it may import.
        readable: The driver's trees.
        files: Further files, as `Lockdown` has them: a client certificate.
        policy: The policy; ``off`` gives up nothing.
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time; None for no bound.
    """
    library, listable = _standard_library()
    return Lockdown(
        layers=() if policy == "off" else LAYERS,
        readable=(*library, *host_imports.paths, *readable, *_system_files()),
        files=tuple(files),
        listable=listable,
        memory=memory,
        descriptors=descriptors,
        cpu=cpu,
        **_probe_targets(),
    )


@cache
def _standard_library() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List the standard library's paths without its site-packages, which only the host may read."""
    roots = dict.fromkeys(
        sysconfig.get_path(name, vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix})
        for name in ("stdlib", "platstdlib")
    )
    readable = [
        entry.path
        for root in roots
        for entry in os.scandir(root)
        if entry.name not in ("site-packages", "dist-packages")
    ]
    return tuple(readable), tuple(roots)


def _system_files() -> tuple[str, ...]:
    paths = ("/dev/null", "/dev/zero", "/dev/urandom", "/etc/ssl/certs", "/etc/localtime", "/usr/share/zoneinfo")
    return tuple(path for path in paths if Path(path).exists())


@cache
def _probe_targets() -> dict[str, str]:
    """Choose the negative self-test's targets: the host must have access to them, or a refusal proves nothing."""
    secret = next(path for path in ("/etc/passwd", "/etc/hostname", __file__) if os.access(path, os.R_OK))
    writable = next((path for path in ("/dev/shm", "/tmp") if os.access(path, os.W_OK)), str(Path.cwd()))  # noqa: S108
    program = next(path for path in ("/bin/true", "/usr/bin/true", sys.executable) if os.access(path, os.X_OK))
    return {"secret_file": secret, "writable_dir": writable, "program": program}
