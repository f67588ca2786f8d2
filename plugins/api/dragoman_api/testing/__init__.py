"""The conformance kit: the conformance tests, and a proxy that loses answers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conformance.suite import DriverConformance, deviates
    from .proxy import Proxy, RecordedRequest
    from .target import Target, opened

_HOME = {
    "DriverConformance": "conformance.suite",
    "Proxy": "proxy",
    "RecordedRequest": "proxy",
    "Target": "target",
    "deviates": "conformance.suite",
    "opened": "target",
}

__all__ = [
    "DriverConformance",
    "Proxy",
    "RecordedRequest",
    "Target",
    "deviates",
    "opened",
]


def __getattr__(name: str) -> object:
    """Import a name's module on first use, because every test run loads the pytest plugin."""
    if (room := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{room}", __name__), name)
