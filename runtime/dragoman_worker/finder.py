"""What a driver's process can import: the standard library, the API's closure, and the driver's own trees."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class ClosureFinder:
    """Finds a fixed set of top-level names, each where the host has it, and nothing beside them."""

    def __init__(self, closure: Mapping[str, str]) -> None:
        """Admit names.

        Args:
            closure: Top-level import name → the directory that holds it.
        """
        self._closure = {name: where for name, where in closure.items() if name not in sys.stdlib_module_names}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a top-level name of the closure; submodules are found through their package as ever."""
        if path is not None or (where := self._closure.get(fullname)) is None:
            return None
        return PathFinder.find_spec(fullname, [where], target)


def install(closure: Mapping[str, str], *, bootstrap: str) -> None:
    """Take the host's environment off the path and admit the closure instead.

    The closure goes before the path: what a driver brings by the same name does not replace it.

    Args:
        closure: As of `ClosureFinder`.
        bootstrap: The directory this package was found in.
    """
    sys.path.remove(bootstrap)
    sys.path_importer_cache.pop(bootstrap, None)
    before = sys.meta_path.index(PathFinder)
    sys.meta_path.insert(before, ClosureFinder(closure))


def admit_trees(trees: Iterable[str]) -> None:
    """Admit a driver's trees, behind everything else: its `http.py` cannot shadow the standard library's."""
    sys.path.extend(trees)
