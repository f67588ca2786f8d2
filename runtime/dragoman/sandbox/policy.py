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

from .gaps import Gap, gap
from .system import LAYERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_worker.wire import Sandboxed

    from .closure import Closure

Policy = Literal["auto", "require", "off"]

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
_FILTERS = "Seccomp_filters"
_SUBSYSTEM = "use the Windows Subsystem for Linux (wsl --install), where drivers are confined fully"
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
        remedies: What to do about what is missing, as far as something is known.
    """

    level: Level
    missing: tuple[str, ...] = ()
    landlock_abi: int = 0
    permissions: dict[str, Permission]
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.level}: {'; '.join(self.missing)}" if self.missing else str(self.level)


@cache
def achievable_level() -> Report:
    """Look which level a driver would get here, without starting one.

    Returns:
        A report without permissions: those are known of a started process only.
    """
    version, gaps, level = 0, list[Gap](), Level.PROCESS
    if sys.platform == "linux":
        from dragoman_worker.lockdown import kernel, landlock, limits

        try:
            version = landlock.version()
        except OSError as error:
            gaps.append(gap("landlock", kernel.code_of(error)))
        if code := limits.seccomp_refusal():
            gaps.append(gap("seccomp", code) if kernel.NUMBERS else _no_lockdown(kernel.MACHINE))
        else:
            level = Level.PARTIAL if gaps else Level.FULL
    else:
        gaps.append(_no_lockdown(sys.platform))
    return _report(level, gaps, landlock_abi=version)


def _no_lockdown(system: str) -> Gap:
    if system == "win32":
        return Gap("no lock-down for Windows, so that a driver can do what you can", _SUBSYSTEM)
    return Gap(f"no lock-down for {system}", "full confinement is there on Linux, on x86-64 and arm64")


def _report(
    level: Level, gaps: list[Gap], *, landlock_abi: int = 0, permissions: dict[str, Permission] | None = None
) -> Report:
    return Report(
        level=level,
        missing=tuple(one.cause for one in gaps),
        landlock_abi=landlock_abi,
        permissions=permissions or {},
        remedies=tuple(dict.fromkeys(one.remedy for one in gaps if one.remedy)),
    )


def assess(told: Sandboxed, *, status: str | None, own: str | None = None, policy: Policy, cpu: bool = False) -> Report:
    """Judge a child by what its trusted start told and by what the kernel says of it.

    Args:
        told: The child's report, sent before any driver code.
        status: Content of the child's ``/proc/<pid>/status``, None where it cannot be read.
        own: The same of this process.
        policy: As configured; ``off`` is named as the reason.
        cpu: Its processor time is bounded, too.
    """
    gaps = [gap(layer, code) for layer, code in told.failures.items()]
    if policy == "off":
        gaps = [Gap("switched off")]
    elif sys.platform != "linux":
        gaps = [_no_lockdown(sys.platform)]
    permissions = {"fs_metadata": Permission(state="not_enforced")}
    for name, probes in _PROBES.items():
        by = tuple(layer for layer in _BY[name] if layer in told.layers or layer == "host")
        holds = bool(by) and all(told.probes.get(probe) for probe in probes)
        permissions[name] = Permission(state="enforced", by=by) if holds else Permission(state="not_enforced")
        if told.probes and not holds and not told.failures.keys() >= {*_BY[name]}:
            gaps.append(Gap(f"{name} is not refused"))
    if permissions["network"].by:
        permissions["network"] = Permission(state="enforced", by=("seccomp", "broker"))
    limited = "limits" in told.layers and told.probes.get("memory", not told.probes)
    if not limited and told.probes and "limits" not in told.failures:
        gaps.append(Gap("memory is not bounded"))
    by = ("rlimits",) if limited else ("job",) if "job" in told.layers else ()
    permissions["memory"] = Permission(state="limited" if by else "not_enforced", by=by)
    permissions["cpu"] = Permission(state="limited", by=("deadline", *(("rlimits",) if limited and cpu else ())))
    if policy != "off" and sys.platform == "linux" and (doubt := _doubt(status, own, told.failures)):
        hidden = "mount /proc without hidepid, or with gid= of a group of yours" if status is None else ""
        gaps.append(Gap(doubt, hidden))
    essential = all(permissions[name].state == "enforced" for name in _ESSENTIAL)
    level = Level.PROCESS if not essential else Level.PARTIAL if gaps else Level.FULL
    return _report(level, gaps, landlock_abi=told.landlock_abi, permissions=permissions)


def _doubt(status: str | None, own: str | None, failures: Iterable[str]) -> str:
    if status is None:
        return "unverified: the child's status cannot be read"
    have, wanted = _fields(status), {"NoNewPrivs": 1}
    if "seccomp" not in failures:
        wanted["Seccomp"] = 2
    if "capabilities" not in failures:
        wanted |= dict.fromkeys(("CapEff", "CapPrm", "CapInh"), 0)
    wrong = [name for name, value in wanted.items() if int(have.get(name, "-1"), 16) != value]
    # A host that is itself filtered, in a container, would lend the child its mark.
    if (own is not None and "Seccomp" in wanted) and (filters := _fields(own).get(_FILTERS)) is not None:
        wrong += [_FILTERS] if int(have.get(_FILTERS, "0")) <= int(filters) else []
    return f"the kernel does not confirm {', '.join(wrong)}" if wrong else ""


def read_status(pid: int) -> str | None:
    """Read what the kernel says of a process; None where it says nothing."""
    try:
        return Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def _fields(status: str) -> dict[str, str]:
    return dict(line.split(":", 1) for line in status.splitlines() if ":" in line)


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
            hint="; or ".join((*report.remedies, 'set sandbox = "auto" in config.toml')),
        )
    if report.level is Level.PROCESS and not trusted:
        raise SandboxError(
            f"the driver cannot be confined here ({report}), and its source is not trusted",
            code="sandbox-insufficient",
            hint="; ".join(report.remedies) or "run `dragoman doctor` to see what this machine lacks",
        )


def lockdown_plan(
    closure: Closure,
    *,
    readable: Iterable[str],
    policy: Policy,
    memory: int,
    descriptors: int,
    cpu: int | None = None,
) -> Lockdown:
    """Write down what a child gives up, and the little it keeps.

    Args:
        closure: What it may import of the host's environment.
        readable: The driver's trees, and further files: a client certificate.
        policy: ``off`` gives up nothing.
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time; None for no bound.
    """
    library, listable = _standard_library()
    return Lockdown(
        layers=() if policy == "off" else LAYERS,
        readable=(*library, *closure.paths, *readable, *_system_files()),
        listable=listable,
        memory=memory,
        descriptors=descriptors,
        cpu=cpu,
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
