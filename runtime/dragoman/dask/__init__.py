"""Exports and dataframes on a Dask cluster, whose workers read the parts of one split. Needs ``dragoman[dask]``.

A script that starts a local cluster needs ``if __name__ == "__main__":``, as every script that starts processes does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .clusters import cluster
    from .reading import close, read
    from .runner import on_cluster

_HOME = {"close": "reading", "cluster": "clusters", "on_cluster": "runner", "read": "reading"}

__all__ = ["close", "cluster", "on_cluster", "read"]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: a worker does not need the coordinator's."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
