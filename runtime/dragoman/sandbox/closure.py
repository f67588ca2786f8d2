"""The closure: what a driver's process may import of the host's environment, and where the host has it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution

_ROOT = "dragoman-api"
_FILE = "closure.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """The API, the worker, and all that the API declares to need.

    Attributes:
        modules: Top-level import name → the directory that holds it.
        paths: Files and directories that make them up.
    """

    modules: dict[str, str]
    paths: tuple[str, ...]


@cache
def find_closure(folder: Path | None = None) -> Closure:
    """Find the closure of this interpreter.

    Reading the metadata takes some 30 ms, so the result is kept in a file as long as no directory of the path changes.

    Args:
        folder: A cache directory; None computes it anew.
    """
    file = folder / _FILE if folder else None
    key = [sys.executable, sys.version, [[path, _mtime(path)] for path in sys.path]]
    if file is not None:
        try:
            kept = json.loads(file.read_bytes())
            if kept["key"] == key:
                return Closure(modules=kept["modules"], paths=tuple(kept["paths"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass  # absent or damaged: computed anew
    closure = _compute()
    if file is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = file.with_name(f"{_FILE}.{id(closure):x}")
            fresh.write_text(json.dumps({"key": key, **asdict(closure)}))
            fresh.replace(file)
        except OSError:
            pass  # a cache that cannot be written is only slower
    return closure


def _mtime(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def _compute() -> Closure:
    modules: dict[str, str] = {}
    paths: list[str] = []
    for name, extra in [("dragoman_worker", None), *_tops()]:
        spec = PathFinder.find_spec(name)
        if spec is not None:
            found = _places(spec)
            modules[name] = str(Path(found[0]).parent)
            paths += found
        elif extra is not None and extra.exists():
            paths.append(str(extra))  # shared libraries that a wheel brought beside its package
    return Closure(modules=modules, paths=tuple(dict.fromkeys(paths)))


def _places(spec: ModuleSpec) -> list[str]:
    return list(spec.submodule_search_locations or ()) or [str(spec.origin)]


def _tops() -> Iterator[tuple[str, Path | None]]:
    """Name what each distribution of the closure put at the top of the path."""
    for distribution in _distributions():
        fallback = distribution.name.replace("-", "_").lower()
        tops = {Path(file.parts[0]) for file in distribution.files or ()}
        found = False
        for top in sorted(tops):
            if top.suffix in (".dist-info", ".pth") or top.name in ("..", "__pycache__"):
                continue
            found = True
            yield (
                top.name.split(".")[0] if top.suffix != ".libs" else top.name,
                Path(str(distribution.locate_file(top))),
            )
        if not found:  # an editable install records a path file only
            yield fallback, None


def _distributions() -> Iterator[Distribution]:
    from importlib.metadata import PackageNotFoundError, distribution

    from packaging.requirements import Requirement

    todo, seen = [(_ROOT, frozenset[str]())], set()
    while todo:
        name, extras = todo.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # an optional dependency, or one that the marker of another platform names
        yield found
        for text in found.requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or ("",)):
                todo.append((requirement.name, frozenset(requirement.extras)))
