"""Drivers of one home: their registries, offers, installations and updates."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .driver_views import DriverDetails, DriverListing, DriverVersion
    from .install_steps import AvailableUpdate
    from .lifecycle import Plugins
    from .registries import Registries

_HOME = {
    "AvailableUpdate": "install_steps",
    "DriverDetails": "driver_views",
    "DriverListing": "driver_views",
    "DriverVersion": "driver_views",
    "Plugins": "lifecycle",
    "Registries": "registries",
}

__all__ = ["AvailableUpdate", "DriverDetails", "DriverListing", "DriverVersion", "Plugins", "Registries"]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: a list of registries needs no installer."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
