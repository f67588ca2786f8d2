"""Exports in parts, here or on a Dask cluster, into a folder or an object store, and dataframes of Dask.

A script that starts a local cluster needs ``if __name__ == "__main__":``, as every script that starts processes does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .clusters import cluster
    from .exports import abandon, export, unfinished
    from .reading import close, read
    from .runner import on_cluster
    from .target import PartsResult

_HOME = {
    "PartsResult": "target",
    "abandon": "exports",
    "close": "reading",
    "cluster": "clusters",
    "export": "exports",
    "on_cluster": "runner",
    "read": "reading",
    "unfinished": "exports",
}

__all__ = ["PartsResult", "abandon", "close", "cluster", "export", "on_cluster", "read", "unfinished"]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: a worker does not need the coordinator's."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
