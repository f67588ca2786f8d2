"""What a driver's process can import: the standard library, the host's imports for it, and the driver's own trees."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class HostImportFinder:
    """Finds a fixed set of top-level modules, each in the directory where the host has it."""

    def __init__(self, host_imports: Mapping[str, str]) -> None:
        """Set the modules that may be found.

        Args:
            host_imports: The directory of each top-level module, by import name.
        """
        self._host_imports = {
            name: where for name, where in host_imports.items() if name not in sys.stdlib_module_names
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a top-level module among the host's imports. Python finds submodules through their package."""
        if path is not None or (where := self._host_imports.get(fullname)) is None:
            return None
        return PathFinder.find_spec(fullname, [where], target)


def install(host_imports: Mapping[str, str], *, bootstrap: str) -> None:
    """On the import path, replace the host's environment with the given imports.

    They precede the path, so a module of a driver cannot replace one of the same name.

    Args:
        host_imports: The directory of each top-level module, by import name.
        bootstrap: The directory that holds this package.
    """
    sys.path.remove(bootstrap)
    sys.path_importer_cache.pop(bootstrap, None)
    before = sys.meta_path.index(PathFinder)
    sys.meta_path.insert(before, HostImportFinder(host_imports))


def admit_trees(trees: Iterable[str]) -> None:
    """Append a driver's trees to the path. Its `http.py` cannot shadow the standard library's."""
    sys.path.extend(trees)
