"""How well a driver's process is confined: from what was enforced and tested, never from what was configured."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman_api.errors import SandboxError
from dragoman_worker.wire import Lockdown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_worker.wire import Sandboxed

    from .closure import Closure

Policy = Literal["auto", "require", "off"]

LAYERS = ("limits", "capabilities", "landlock", "seccomp")

_PROBES = {
    "fs_read": ("fs_read",),
    "fs_write": ("fs_write",),
    "network": ("udp", "unix", "tcp"),
    "exec": ("exec",),
    "process": ("fork",),
    "signals": ("signals",),
    "host_memory": ("host_memory",),
}
_BY = {
    "fs_read": ("landlock",),
    "fs_write": ("landlock", "seccomp"),
    "network": ("seccomp",),
    "exec": ("landlock", "seccomp"),
    "process": ("seccomp",),
    "signals": ("seccomp",),
    "host_memory": ("landlock", "host"),
}
_ESSENTIAL = ("network", "exec", "process", "host_memory")  # without these it is only a process


class Level(StrEnum):
    """How strongly a driver is confined."""

    FULL = "full"
    PARTIAL = "partial"
    PROCESS = "process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What became of one thing a driver might do: enforced, limited or not_enforced, and by what."""

    state: Literal["enforced", "limited", "not_enforced"]
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The level of one driver's process, or the one this machine can give.

    Attributes:
        level: From what was enforced and tested.
        missing: Why it is not full, one phrase each.
        landlock_abi: 0 for no Landlock.
        permissions: By name; empty where no process was started.
    """

    level: Level
    missing: tuple[str, ...] = ()
    landlock_abi: int = 0
    permissions: dict[str, Permission]

    def __str__(self) -> str:
        return f"{self.level}: {'; '.join(self.missing)}" if self.missing else str(self.level)


@cache
def achievable_level() -> Report:
    """Look which level a driver would get here, without starting one.

    Returns:
        A report without permissions: those are known of a started process only.
    """
    if sys.platform != "linux":
        return Report(level=Level.PROCESS, missing=(f"no lock-down for {sys.platform}",), permissions={})
    from dragoman_worker.lockdown import kernel, landlock, limits

    version = landlock.abi()
    missing = _absent_landlock(version)
    if not limits.seccomp_available():
        reason = "no seccomp filter in this kernel" if kernel.NUMBERS else f"no lock-down for {kernel.MACHINE}"
        return Report(level=Level.PROCESS, missing=(*missing, reason), landlock_abi=version, permissions={})
    level = Level.PARTIAL if missing else Level.FULL
    return Report(level=level, missing=missing, landlock_abi=version, permissions={})


def _absent_landlock(version: int) -> tuple[str, ...]:
    return () if version else ("no Landlock in this kernel",)


def assess(told: Sandboxed, *, status: str | None, policy: Policy) -> Report:
    """Judge a child by what its trusted start told and by what the kernel says of it.

    Args:
        told: The child's report, sent before any driver code.
        status: Content of the child's ``/proc/<pid>/status``, None where it cannot be read.
        policy: As configured; ``off`` is named as the reason.
    """
    missing = ["switched off"] if policy == "off" else [*_absent_landlock(told.landlock_abi)]
    missing += [f"{layer}: {why}" for layer, why in told.failures.items() if layer != "landlock" or told.landlock_abi]
    permissions = {"fs_metadata": Permission(state="not_enforced")}
    for name, probes in _PROBES.items():
        by = tuple(layer for layer in _BY[name] if layer in told.layers or layer == "host")
        holds = bool(by) and all(told.probes.get(probe) for probe in probes)
        permissions[name] = Permission(state="enforced", by=by) if holds else Permission(state="not_enforced")
        if told.probes and not holds and not (name == "fs_read" and not told.landlock_abi):
            missing.append(f"{name} is not refused")
    if permissions["network"].by:
        permissions["network"] = Permission(state="enforced", by=("seccomp", "broker"))
    limited = "limits" in told.layers
    permissions["memory"] = (
        Permission(state="limited", by=("rlimits",)) if limited else Permission(state="not_enforced")
    )
    permissions["cpu"] = Permission(state="limited", by=("deadline",))
    if policy != "off" and (doubt := _doubt(status)):
        missing.append(doubt)
    essential = all(permissions[name].state == "enforced" for name in _ESSENTIAL)
    level = Level.PROCESS if not essential else Level.PARTIAL if missing else Level.FULL
    return Report(level=level, missing=tuple(missing), landlock_abi=told.landlock_abi, permissions=permissions)


def _doubt(status: str | None) -> str:
    if status is None:
        return "unverified: the child's status cannot be read"
    have = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    wanted = {"NoNewPrivs": 1, "Seccomp": 2, "CapEff": 0, "CapPrm": 0, "CapInh": 0}
    wrong = [name for name, value in wanted.items() if int(have.get(name, "-1"), 16) != value]
    return f"the kernel does not confirm {', '.join(wrong)}" if wrong else ""


def enforce(report: Report, *, policy: Policy, trusted: bool) -> None:
    """Refuse to go on where the level is below what the policy asks for.

    Args:
        report: Of the child.
        policy: ``require`` asks for full; ``auto`` for the network half at least, unless the source is trusted.
        trusted: The driver's bytes come from a source that the user trusts: a pinned lock, a known signature.

    Raises:
        SandboxError: It is below; what is missing is named.
    """
    if policy == "off" or report.level is Level.FULL:
        return
    if policy == "require":
        raise SandboxError(
            f"the sandbox is {report}, and full is required",
            code="sandbox-insufficient",
            hint='run on Linux 5.13 or newer with Landlock enabled, or set sandbox = "auto" in config.toml',
        )
    if report.level is Level.PROCESS and not trusted:
        raise SandboxError(
            f"the driver cannot be confined here ({report}), and its source is not trusted",
            code="sandbox-insufficient",
            hint="run `dragoman doctor` to see what this machine lacks",
        )


def lockdown_plan(
    closure: Closure, *, readable: Iterable[str], policy: Policy, memory: int, descriptors: int
) -> Lockdown:
    """Write down what a child gives up, and the little it keeps.

    Args:
        closure: What it may import of the host's environment.
        readable: The driver's trees, and further files: a client certificate.
        policy: ``off`` gives up nothing.
        memory: Bytes of address space.
        descriptors: Open descriptors.
    """
    library, listable = _standard_library()
    return Lockdown(
        layers=() if policy == "off" else LAYERS,
        readable=(*library, *closure.paths, *readable, *_system_files()),
        listable=listable,
        memory=memory,
        descriptors=descriptors,
        **_probe_targets(),
    )


@cache
def _standard_library() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List the standard library without the site-packages inside it, whose content is the host's alone."""
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
    """Choose what the negative self-test tries: things that the host can do itself, or a refusal proves nothing."""
    secret = next(path for path in ("/etc/passwd", "/etc/hostname", __file__) if os.access(path, os.R_OK))
    writable = next((path for path in ("/dev/shm", "/tmp") if os.access(path, os.W_OK)), str(Path.cwd()))  # noqa: S108
    program = next(path for path in ("/bin/true", "/usr/bin/true", sys.executable) if os.access(path, os.X_OK))
    return {"secret_file": secret, "writable_dir": writable, "program": program}
