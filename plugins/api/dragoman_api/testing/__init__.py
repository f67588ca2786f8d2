"""The conformance kit: what a driver must hold, a driver that holds it, and strategies for property tests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contract import DriverContract, deviates
    from .evaluation import holds
    from .memory import MemoryDriver
    from .memory_server import MemoryServer
    from .target import Target, opened

_HOME = {
    "DriverContract": "contract",
    "MemoryDriver": "memory",
    "MemoryServer": "memory_server",
    "Target": "target",
    "deviates": "contract",
    "holds": "evaluation",
    "opened": "target",
}

__all__ = ["DriverContract", "MemoryDriver", "MemoryServer", "Target", "deviates", "holds", "opened"]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: the pytest plugin is loaded by every test run."""
    if (room := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{room}", __name__), name)
