"""The choice of the target of an export in parts, by its path or URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.exports.stores import StoreFolder, parse_target
from dragoman_api.errors import DragomanError

from .folder import PartsFolder
from .store import PartsStore

if TYPE_CHECKING:
    from pathlib import Path

    from .target import PartsTarget


def parts_target(to: Path | str) -> PartsTarget:
    """Return the target that a path or a URL names.

    Raises:
        ConfigurationError: It is a URL that holds a password or options, or the package for it is missing.
    """
    place = parse_target(to)
    if isinstance(place, StoreFolder):
        return PartsStore(place)
    return PartsFolder(place)


def unfinished(to: Path | str) -> bool:
    """Return whether a target holds an export in parts that may be continued; False if it cannot be read."""
    try:
        return parts_target(to).unfinished()
    except DragomanError:
        return False
