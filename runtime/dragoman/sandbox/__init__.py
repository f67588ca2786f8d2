"""The host side of a driver's process: start, confine, broker, call, end. The child side is `dragoman_worker`."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .driver_process import Worker
    from .host_imports import find_host_imports
    from .launch import Launch
    from .levels import Level, Policy, SandboxReport, achievable_level
    from .machine_level import measured_level
    from .proxy import DriverProxy
    from .spare import Spare

_HOME = {
    "DriverProxy": "proxy",
    "Launch": "launch",
    "Level": "levels",
    "Policy": "levels",
    "SandboxReport": "levels",
    "Spare": "spare",
    "Worker": "driver_process",
    "achievable_level": "levels",
    "find_host_imports": "host_imports",
    "measured_level": "machine_level",
}

__all__ = [
    "DriverProxy",
    "Launch",
    "Level",
    "Policy",
    "SandboxReport",
    "Spare",
    "Worker",
    "achievable_level",
    "find_host_imports",
    "measured_level",
]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: most commands start no driver."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
