"""Drivers of one home: where they come from, what is offered, what is installed, and what becomes of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .installs import Update
    from .lifecycle import Plugins
    from .listings import Details, Listing, Version
    from .registries import Registries

_HOME = {
    "Details": "listings",
    "Listing": "listings",
    "Plugins": "lifecycle",
    "Registries": "registries",
    "Update": "installs",
    "Version": "listings",
}

__all__ = ["Details", "Listing", "Plugins", "Registries", "Update", "Version"]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: a list of registries needs no installer."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
