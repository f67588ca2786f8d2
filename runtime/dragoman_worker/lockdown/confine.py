"""The lock-down in its one possible order, each layer tried and reported."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

from dragoman_worker.wire import Sandboxed

from . import kernel, landlock, limits, seccomp, selftest

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_worker.wire import Lockdown


def confine(plan: Lockdown) -> Sandboxed:
    """Give up everything the plan names, then try whether it is gone.

    Args:
        plan: From the host. An empty list of layers gives up nothing but core files.

    Returns:
        What was enforced, what could not be, and what the self-test found.

    Raises:
        RuntimeError: There is more than one thread, and a second one would stay free.
    """
    os.umask(0o077)
    if plan.layers and limits.count_threads() != 1:
        raise RuntimeError("a thread was started before the lock-down")
    missing: list[str] = []
    program = (
        None if (arch := seccomp.ARCHES.get(kernel.MACHINE)) is None else seccomp.compile_filter(arch, os.getpid())
    )
    paths = [*plan.readable, *_library_directories(plan.readable), *_certificates()]

    def restrict_files() -> None:
        missing.extend(landlock.restrict(paths, listable=plan.listable))

    def filter_calls() -> None:
        if program is None:
            raise OSError(f"no system call table for {kernel.MACHINE}")
        seccomp.install(program)

    # capset and Landlock are refused once the filter holds, so it comes last.
    steps: dict[str, Callable[[], None]] = {
        "limits": lambda: limits.set_limits(memory=plan.memory, descriptors=plan.descriptors),
        "capabilities": limits.drop_capabilities,
        "landlock": restrict_files,
        "seccomp": filter_calls,
    }
    failures = {}
    version = landlock.abi()
    limits.hide_memory()
    limits.forbid_new_privileges()
    for layer, step in steps.items():
        if layer in plan.layers:
            try:
                step()
            except (OSError, ValueError, KeyError) as error:
                failures[layer] = str(error)
    layers = tuple(layer for layer in steps if layer in plan.layers and layer not in failures)
    return Sandboxed(
        layers=layers,
        failures=failures,
        landlock_abi=version,
        missing=tuple(missing),
        probes=_probe(plan) if {"seccomp", "landlock"} & set(layers) else {},
    )


def _probe(plan: Lockdown) -> dict[str, bool]:
    return selftest.run(secret_file=plan.secret_file, writable_dir=plan.writable_dir, program=plan.program)


def _library_directories(known: tuple[str, ...]) -> list[str]:
    """Find where this process's shared libraries lie, so that a driver's extension modules find theirs."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123
        mapped = {line.split(maxsplit=5)[-1].strip() for line in maps if ".so" in line}
    directories = {os.path.dirname(path) for path in mapped if path.startswith("/")}  # noqa: PTH120
    # A module lying loose in the host's site-packages must not open that whole directory.
    return sorted(d for d in directories if not any(f"{path}/".startswith(f"{d}/") for path in known))


def _certificates() -> list[str]:
    paths = ssl.get_default_verify_paths()
    return [path for path in (paths.cafile, paths.capath) if path]
