"""Layers that a level below full lacks: the cause of each, and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

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
