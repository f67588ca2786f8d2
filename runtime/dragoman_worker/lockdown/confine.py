"""The lock-down: every layer, applied in the one order that works, and the report about it."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

from dragoman_worker.wire import Sandboxed

from . import kernel, landlock, process_limits, seccomp, selftest

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_worker.wire import Lockdown


_ANY_PID = (1 << 31) - 1
"""In the place of the process's number, which is 2²² at most."""


class Confinement:
    """One lock-down. Its preparation does not depend on the driver, so a spare or a fork server does it in advance."""

    def __init__(self) -> None:
        """Compile the filter and find the directories of libraries and certificates."""
        arch = seccomp.ARCHES.get(kernel.MACHINE)
        self._filter = None if arch is None else seccomp.compile_filter(arch, _ANY_PID)
        self._mapped = _library_directories()
        self._certificates = _certificates()

    def apply(self, plan: Lockdown) -> Sandboxed:
        """Drop everything that the plan names, then test that it is gone. Call this once.

        Args:
            plan: What the host wants given up. With no layers, only core files are given up.

        Returns:
            The layers that hold, the reason for each that does not, and the results of the self-test.

        Raises:
            RuntimeError: The process has more than one thread. The other threads would stay unconfined.
        """
        os.umask(0o077)
        if kernel.LINUX and plan.layers and process_limits.count_threads() != 1:
            raise RuntimeError("a thread was started before the lock-down")
        missing: list[str] = []
        # A loose module in the host's site-packages must not open that whole directory.
        libraries = (d for d in self._mapped if not any(f"{path}/".startswith(f"{d}/") for path in plan.readable))
        paths = [*plan.readable, *libraries, *self._certificates]
        # The filter refuses capset and Landlock, so it comes last.
        steps: dict[str, Callable[[], None]] = {
            "limits": lambda: process_limits.set_limits(memory=plan.memory, descriptors=plan.descriptors, cpu=plan.cpu),
            "capabilities": process_limits.drop_capabilities,
            "landlock": lambda: missing.extend(landlock.restrict(paths, files=plan.files, listable=plan.listable)),
            "seccomp": self._filter_calls,
        }
        failures = {}
        version = landlock.abi()
        if kernel.LINUX:
            process_limits.hide_memory()
            process_limits.forbid_new_privileges()
        for layer, step in steps.items():
            if layer in plan.layers:
                try:
                    step()
                except (OSError, ValueError, KeyError) as error:
                    failures[layer] = kernel.code_of(error)
        layers = tuple(layer for layer in steps if layer in plan.layers and layer not in failures)
        return Sandboxed(
            layers=layers,
            failures=failures,
            landlock_abi=version,
            missing=tuple(missing),
            probes=_probe(plan) if {"seccomp", "landlock"} & set(layers) else {},
        )

    def _filter_calls(self) -> None:
        if self._filter is None:
            raise OSError(f"no system call table for {kernel.MACHINE}")
        pid = os.getpid()  # a fork server compiled the filter for all that it forks
        program = [(code, yes, no, pid if value == _ANY_PID else value) for code, yes, no, value in self._filter]
        seccomp.install(program)


def _probe(plan: Lockdown) -> dict[str, bool]:
    return selftest.run(
        secret_file=plan.secret_file, writable_dir=plan.writable_dir, program=plan.program, memory=plan.memory
    )


def _library_directories() -> list[str]:
    """Find the directories of this process's shared libraries, where extension modules find theirs."""
    if not kernel.LINUX:
        return []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123
        mapped = {line.split(maxsplit=5)[-1].strip() for line in maps if ".so" in line}
    return sorted({os.path.dirname(path) for path in mapped if path.startswith("/")})  # noqa: PTH120


def _certificates() -> list[str]:
    paths = ssl.get_default_verify_paths()
    return [path for path in (paths.cafile, paths.capath) if path]
