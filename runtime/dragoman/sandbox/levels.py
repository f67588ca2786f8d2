"""The level of a child's confinement, judged by what was enforced and tested."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from dragoman_api.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_worker.wire import Sandboxed

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
_ESSENTIAL = ("network", "exec", "process", "host_memory")  # without these it is only a process
_LOADED = Path("/sys/kernel/security/lsm")
_PROFILE = "a container's profile forbids it: run with --security-opt seccomp=PROFILE.json that allows {calls}"
_CALLS = {"landlock": "landlock_*", "seccomp": "seccomp"}
_CAUSES = {
    ("landlock", "ENOSYS"): "no Landlock in this kernel",
    ("landlock", "EOPNOTSUPP"): "Landlock is switched off in this kernel",
    ("seccomp", "ENOSYS"): "no seccomp filter in this kernel",
    ("seccomp", "EINVAL"): "no seccomp filter in this kernel",
}
_REMEDIES = {
    ("landlock", "ENOSYS"): "use Linux 5.13 or newer, built with Landlock (CONFIG_SECURITY_LANDLOCK)",
    ("landlock", "EOPNOTSUPP"): "boot with landlock in the kernel's list of security modules (lsm=landlock,…)",
    ("seccomp", "ENOSYS"): "use a kernel with seccomp filters (CONFIG_SECCOMP_FILTER)",
    ("seccomp", "EINVAL"): "use a kernel with seccomp filters (CONFIG_SECCOMP_FILTER)",
    ("capabilities", "EPERM"): "run dragoman as an ordinary user",
}
_NAMES = {"landlock": "Landlock", "seccomp": "seccomp", "capabilities": "dropping capabilities", "limits": "a limit"}


class Level(StrEnum):
    """The strength of a driver's confinement."""

    FULL = "full"
    PARTIAL = "partial"
    PROCESS = "process"


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one permission: enforced, limited or not_enforced, and by which layer."""

    state: Literal["enforced", "limited", "not_enforced"]
    by: tuple[str, ...] = ()


class SandboxReport(msgspec.Struct, frozen=True, kw_only=True):
    """The level of one driver's process, or the one that this machine can reach.

    Attributes:
        level: From what was enforced and tested.
        missing: Why it is not full, one phrase each.
        landlock_abi: 0 for no Landlock.
        permissions: By name; empty where no process was started.
        remedies: Known remedies for the missing layers.
    """

    level: Level
    missing: tuple[str, ...] = ()
    landlock_abi: int = 0
    permissions: dict[str, Permission]
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.level}: {'; '.join(self.missing)}" if self.missing else str(self.level)


@cache
def achievable_level() -> SandboxReport:
    """Predict the level that a driver would get here, without starting one.

    Returns:
        A report without permissions, which are known only for a started process.
    """
    version, missing, level = 0, list[MissingLayer](), Level.PROCESS
    if sys.platform == "linux":
        from dragoman_worker.lockdown import kernel, landlock, process_limits

        try:
            version = landlock.version()
        except OSError as error:
            missing.append(missing_layer("landlock", kernel.code_of(error)))
        if code := process_limits.seccomp_refusal():
            missing.append(missing_layer("seccomp", code) if kernel.NUMBERS else _no_lockdown(kernel.MACHINE))
        else:
            level = Level.PARTIAL if missing else Level.FULL
    else:
        missing.append(_no_lockdown(sys.platform))
    return _report(level, missing, landlock_abi=version)


def _no_lockdown(system: str) -> MissingLayer:
    return MissingLayer(f"no lock-down on {system}", "full confinement needs Linux on x86-64 or arm64")


def _report(
    level: Level,
    missing: list[MissingLayer],
    *,
    landlock_abi: int = 0,
    permissions: dict[str, Permission] | None = None,
) -> SandboxReport:
    return SandboxReport(
        level=level,
        missing=tuple(layer.cause for layer in missing),
        landlock_abi=landlock_abi,
        permissions=permissions or {},
        remedies=tuple(dict.fromkeys(layer.remedy for layer in missing if layer.remedy)),
    )


def assess(
    told: Sandboxed, *, status: str | None, own: str | None = None, policy: Policy, cpu: bool = False
) -> SandboxReport:
    """Judge a child by the report of its trusted start and by the kernel's status of it.

    Args:
        told: The child's report, sent before any driver code.
        status: Content of the child's ``/proc/<pid>/status``, None where it cannot be read.
        own: The same content for this process.
        policy: As configured; ``off`` is named as the reason.
        cpu: Its processor time is also bounded.
    """
    missing = [missing_layer(layer, code) for layer, code in told.failures.items()]
    if policy == "off":
        missing = [MissingLayer("switched off")]
    elif sys.platform != "linux":
        missing = [_no_lockdown(sys.platform)]
    permissions = {"fs_metadata": Permission(state="not_enforced")}
    for name, probes in _PROBES.items():
        by = tuple(layer for layer in _BY[name] if layer in told.layers or layer == "host")
        holds = bool(by) and all(told.probes.get(probe) for probe in probes)
        permissions[name] = Permission(state="enforced", by=by) if holds else Permission(state="not_enforced")
        if told.probes and not holds and not told.failures.keys() >= {*_BY[name]}:
            missing.append(MissingLayer(f"{name} is not refused"))
    if permissions["network"].by:
        permissions["network"] = Permission(state="enforced", by=("seccomp", "broker"))
    limited = "limits" in told.layers and told.probes.get("memory", not told.probes)
    if not limited and told.probes and "limits" not in told.failures:
        missing.append(MissingLayer("memory is not bounded"))
    by = ("rlimits",) if limited else ()
    permissions["memory"] = Permission(state="limited" if by else "not_enforced", by=by)
    permissions["cpu"] = Permission(state="limited", by=("deadline", *(("rlimits",) if limited and cpu else ())))
    if policy != "off" and sys.platform == "linux" and (unconfirmed := _unconfirmed(status, own, told.failures)):
        hidden = "mount /proc without hidepid, or with gid= of a group of yours" if status is None else ""
        missing.append(MissingLayer(unconfirmed, hidden))
    essential = all(permissions[name].state == "enforced" for name in _ESSENTIAL)
    level = Level.PROCESS if not essential else Level.PARTIAL if missing else Level.FULL
    return _report(level, missing, landlock_abi=told.landlock_abi, permissions=permissions)


def _unconfirmed(status: str | None, own: str | None, failures: Iterable[str]) -> str:
    if status is None:
        return "unverified: the child's status cannot be read"
    have, expected = _fields(status), {"NoNewPrivs": 1}
    if "seccomp" not in failures:
        expected["Seccomp"] = 2
    if "capabilities" not in failures:
        expected |= dict.fromkeys(("CapEff", "CapPrm", "CapInh"), 0)
    wrong = [name for name, value in expected.items() if int(have.get(name, "-1"), 16) != value]
    # A child inherits the seccomp mark of a host that is itself filtered, for example in a container.
    if (own is not None and "Seccomp" in expected) and (filters := _fields(own).get(_FILTERS)) is not None:
        wrong += [_FILTERS] if int(have.get(_FILTERS, "0")) <= int(filters) else []
    return f"the kernel does not confirm {', '.join(wrong)}" if wrong else ""


def read_status(pid: int) -> str | None:
    """Read the kernel's status of a process; None if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def counts_filters(status: str | None) -> bool:
    """Whether a status tells how many seccomp filters bind a process. Linux before 5.9 does not count them."""
    return status is not None and _FILTERS in _fields(status)


def _fields(status: str) -> dict[str, str]:
    return dict(line.split(":", 1) for line in status.splitlines() if ":" in line)


def enforce(report: SandboxReport, *, policy: Policy, trusted: bool) -> None:
    """Refuse to continue if the level is below the policy's minimum.

    Args:
        report: Of the child.
        policy: ``require`` asks for full; ``auto`` for the network half at least, unless the source is trusted.
        trusted: The driver's bytes come from a source that the user trusts: a pinned lock, a known signature.

    Raises:
        SandboxError: The level is too low; the message names what is missing.
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


class MissingLayer(NamedTuple):
    """One reason for a level below full.

    Attributes:
        cause: A phrase that names the layer.
        remedy: What to do, beginning with layer and error; empty if no remedy is known.
    """

    cause: str
    remedy: str = ""


def missing_layer(layer: str, code: str) -> MissingLayer:
    """Explain why a layer is unavailable.

    Args:
        layer: ``landlock``, ``seccomp``, ``capabilities`` or ``limits``.
        code: Name of the error that the kernel gave, ``ENOSYS``, or a text.
    """
    name, code = _NAMES.get(layer, layer), code.replace("ENOTSUP", "EOPNOTSUPP")  # one number, two names
    cause, remedy = _CAUSES.get((layer, code)), _REMEDIES.get((layer, code), "")
    if layer == "landlock" and code == "ENOSYS" and _is_loaded("landlock"):
        # The kernel supports it, so something else refused the call.
        cause, remedy = None, _PROFILE.format(calls=_CALLS[layer])
    elif code in ("EPERM", "EACCES") and layer in _CALLS:
        remedy = _PROFILE.format(calls=_CALLS[layer])
    return MissingLayer(cause or f"{name} is refused ({code})", f"{name}: {code}: {remedy}" if remedy else "")


def _is_loaded(module: str) -> bool:
    try:
        return module in _LOADED.read_text(encoding="ascii").strip().split(",")
    except OSError:
        return False
