"""Exports on a Dask cluster: its workers export the parts of one split export. Needs ``dragoman[dask]``.

A script that starts a local cluster needs ``if __name__ == "__main__":``, as every script that starts processes does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .runner import export, on_cluster

_HOME = {"export": "runner", "on_cluster": "runner"}

__all__ = ["export", "on_cluster"]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: a worker does not need the coordinator's."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
