"""The modules of the host's environment that a driver's process may import, and their locations."""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution

_ROOT = "dragoman-api"
_FILE = "host-imports.json"


class HostImports(NamedTuple):
    """The API, the worker, and the declared dependencies of the API.

    Attributes:
        modules: Top-level import name → the directory that holds it.
        paths: Their files and directories.
    """

    modules: dict[str, str]
    paths: tuple[str, ...]

    def __hash__(self) -> int:
        return hash(self.paths)


@cache
def find_host_imports(folder: Path | None = None) -> HostImports:
    """Find what this interpreter has for a driver's process.

    Reading the metadata takes some 30 ms, so the result is cached in a file until a directory of the path changes.

    Args:
        folder: A cache directory; None always computes it.
    """
    file = folder / _FILE if folder else None
    key = [sys.executable, sys.version, [[path, _mtime(path)] for path in sys.path]]
    if file is not None:
        try:
            cached = json.loads(file.read_bytes())
            if cached["key"] == key:
                return HostImports(modules=cached["modules"], paths=tuple(cached["paths"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass  # missing or damaged: compute it again
    host_imports = _compute()
    if file is not None:
        try:
            from dragoman_registry.files import write

            write(file, json.dumps({"key": key, **host_imports._asdict()}).encode(), durable=False)
        except OSError:
            pass  # a cache that cannot be written is only slower
    return host_imports


def _mtime(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def _compute() -> HostImports:
    modules: dict[str, str] = {}
    paths: list[str] = []
    for name, extra in [("dragoman_worker", None), *_tops()]:
        spec = PathFinder.find_spec(name)
        if spec is not None:
            places = _places(spec)
            modules[name] = str(Path(places[0]).parent)
            paths += places
        elif extra is not None and extra.exists():
            paths.append(str(extra))  # shared libraries that a wheel brought beside its package
    return HostImports(modules=modules, paths=tuple(dict.fromkeys(paths)))


def _places(spec: ModuleSpec) -> list[str]:
    return list(spec.submodule_search_locations or ()) or [str(spec.origin)]


def _tops() -> Iterator[tuple[str, Path | None]]:
    """Return the top-level import names of each distribution that the API needs, and its own."""
    for distribution in _distributions():
        fallback = distribution.name.replace("-", "_").lower()
        tops = {Path(file.parts[0]) for file in distribution.files or ()}
        has_tops = False
        for top in sorted(tops):
            if top.suffix in (".dist-info", ".pth") or top.name in ("..", "__pycache__"):
                continue
            has_tops = True
            yield (
                top.name.split(".")[0] if top.suffix != ".libs" else top.name,
                Path(str(distribution.locate_file(top))),
            )
        if not has_tops:  # an editable install records a path file only
            yield fallback, None


def _distributions() -> Iterator[Distribution]:
    from importlib.metadata import PackageNotFoundError, distribution

    from dragoman_registry.wheels.packaging_parsers import parse_requirement

    todo, seen = [(_ROOT, frozenset[str]())], set()
    while todo:
        name, extras = todo.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # an optional dependency, or one for another platform
        yield package
        for text in package.requires or ():
            requirement = parse_requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or ("",)):
                todo.append((requirement.name, frozenset(requirement.extras)))
