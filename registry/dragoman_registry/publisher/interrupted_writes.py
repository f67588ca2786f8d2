"""Leftovers of killed work in a registry, known from a record of the files it was about to write."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman_registry.files import read_plain, write
from dragoman_registry.index.registry_reader import MAX_INDEX
from dragoman_registry.names import plain_name
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.manifest import MAX_MANIFEST
from dragoman_registry.wheels.wheel_file import project_of

from .catalog_merge import wheels
from .folder import belongs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dragoman_registry.index.catalog import Catalog
    from dragoman_registry.trust.tuf_repository import Repository

RECORD = ".unfinished"
"""Name of the record in the registry's folder; it is not part of the registry and is never served."""


_ADDED = re.compile(r"targets/(wheels|docs|simple)/[^/]+/|metadata/[0-9]+\.pub-")


class _Dependency(msgspec.Struct):
    file: str


class _Named(msgspec.Struct):
    dependencies: tuple[_Dependency, ...] = ()


@contextmanager
def recorded(root: Path) -> Iterator[None]:
    """Record the work of the block, and delete the record if it succeeds; the caller holds the registry's lock."""
    record(root, ())
    try:
        yield
    except BaseException:
        if not _read(root):  # the work ended before it wrote a file
            (root / RECORD).unlink(missing_ok=True)
        raise
    (root / RECORD).unlink()


def record(root: Path, names: Iterable[str]) -> None:
    """Record files about to be written, by their paths in the registry; existing files are not recorded."""
    new = [name for name in names if not (root / name).exists()]
    if new or not (root / RECORD).exists():
        write(root / RECORD, msgspec.json.encode([*_read(root), *new]))


def is_unfinished(root: Path) -> bool:
    """Check whether work was killed here, or is running."""
    return any(root.glob(f"*{RECORD}*"))  # a draft of the record counts too


def find(root: Path, used_names: set[str]) -> list[str]:
    """List the leftovers by their paths in the registry: drafts, and recorded files that are not in use.

    Args:
        root: The registry.
        used_names: The result of `in_use`.
    """
    leftovers = list[str]()
    for name in _read(root):
        if belongs(name) and name not in used_names:
            leftovers += [name, *_second_names(root, name)]
    drafts = [str(file.relative_to(root)) for file in root.rglob(".*.tmp")] if is_unfinished(root) else []
    return [name for name in dict.fromkeys([*leftovers, *drafts]) if (root / name).is_file()]


def sweep(root: Path, used_names: set[str]) -> None:
    """Remove the leftovers; the caller holds the registry's lock."""
    for name in find(root, used_names):
        (root / name).unlink()
        with suppress(OSError):  # the folder holds other files
            (root / name).parent.rmdir()
    (root / RECORD).unlink(missing_ok=True)


def _second_names(root: Path, name: str) -> Iterator[str]:
    """Find the digest-prefixed names of a file."""
    file = root / name
    for second in file.parent.glob(f"*.{file.name}"):
        if plain_name(second.name) == file.name:
            yield second.relative_to(root).as_posix()


def in_use(root: Path, catalog: Catalog, repository: Repository, *, accepted: bool = True) -> set[str]:
    """Return the paths of every file that the catalog, an accepted role or a waiting submission needs.

    A file with two names is listed by its plain one. A submission recorded by killed work counts only if it could
    be accepted.
    """
    targets = (
        {name for role in repository.names() for name in repository.role(role).signed.targets}
        if accepted
        else set[str]()
    )
    targets |= {wheel.path for wheel in wheels(catalog)}
    roles = {f"metadata/{repository.role(name).signed.version}.{name}.json" for name in repository.names()}
    recorded = set(_read(root))
    for name, waiting in repository.pending().items():
        if (file := f"metadata/{waiting.signed.version}.{name}.json") in recorded and [
            *repository.problems(name, waiting)
        ]:
            continue
        roles.add(file)
        targets |= set(waiting.signed.targets)
        for target in waiting.signed.targets:  # a driver's libraries are in use with it
            if target.endswith(".driver.json") and belongs(f"targets/{target}"):
                needed = _dependencies(root / "targets" / target)
                targets |= {f"wheels/{project_of(library)}/{library}" for library in needed}
    for kind in ("metadata", "driver.json", "report.json"):
        targets |= {f"{name}.{kind}" for name in targets if name.endswith(".whl")}
    projects = {project.project for project in catalog.projects} | {
        project_of(wheel.file) for wheel in catalog.libraries
    }
    targets |= {f"simple/{project}/index.{kind}" for project in projects for kind in ("html", "v1+json")}
    return roles | {f"targets/{name}" for name in targets}


def _dependencies(sidecar: Path) -> list[str]:
    with suppress(OSError, Unreadable):
        manifest = decode(read_plain(sidecar, limit=MAX_MANIFEST), _Named)
        return [dependency.file for dependency in manifest.dependencies]
    return []


def _read(root: Path) -> list[str]:
    """Read the record; ignore names other than added files, so a bad record cannot remove the registry's own files."""
    with suppress(OSError, Unreadable):
        names = decode(read_plain(root / RECORD, limit=MAX_INDEX), list[str])
        return [name for name in names if _ADDED.match(name)]
    return []
