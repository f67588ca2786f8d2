"""The parent side of a driver's process: start, confine, broker, call, end."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .closure import find_closure
    from .launch import Launch
    from .policy import Level, Policy, Report, achievable_level
    from .process import Worker
    from .proxy import DriverProxy
    from .spare import Spare
    from .supervisor import Supervisor
    from .trial import measured_level

_HOME = {
    "DriverProxy": "proxy",
    "Launch": "launch",
    "Level": "policy",
    "Policy": "policy",
    "Report": "policy",
    "Spare": "spare",
    "Supervisor": "supervisor",
    "Worker": "process",
    "achievable_level": "policy",
    "find_closure": "closure",
    "measured_level": "trial",
}

__all__ = [
    "DriverProxy",
    "Launch",
    "Level",
    "Policy",
    "Report",
    "Spare",
    "Supervisor",
    "Worker",
    "achievable_level",
    "find_closure",
    "measured_level",
]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: most commands start no driver."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
