"""One edit of a registry: locked, recorded so that a kill leaves nothing behind, and only of what the signer owns."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import ConfigurationError, RegistryError
from dragoman_registry.files import locked, read_plain, write
from dragoman_registry.index.catalog import Catalog
from dragoman_registry.index.registry_reader import MAX_INDEX, Registry
from dragoman_registry.names import plain_name
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.roles import ONLINE, PUBLISHER, roles_of
from dragoman_registry.trust.tuf_repository import Repository, exists
from dragoman_registry.validation import Fault, Unreadable, decode
from dragoman_registry.wheels.manifest import MAX_MANIFEST
from dragoman_registry.wheels.wheel_file import project_of

from .catalog_merge import wheels
from .folder import Own, belongs, read_index, write_index, writing
from .index_records import Index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from dragoman_registry.wheels.metadata_checks import WheelReport

OWNER = f"{PUBLISHER}owner"
"""Role of an operator who holds the registry's keys and publishes there as well."""
RECORD = ".unfinished"
"""Name of the record in the registry's folder; it is not part of the registry and is never served."""
_ADDED = re.compile(r"targets/(wheels|docs|simple)/[^/]+/|metadata/[0-9]+\.pub-")


@contextmanager
def reading(
    path: Path, keys: Path | None = None, sign: Path | None = None, now: datetime | None = None
) -> Iterator[Edit]:
    """Read a registry for an edit that is only judged."""
    with writing(path):
        yield Edit(path, keys, sign, now)


@contextmanager
def editing(
    path: Path, keys: Path | None = None, sign: Path | None = None, now: datetime | None = None
) -> Iterator[Edit]:
    """Lock the registry, remove the leftovers of killed work, and record this work so that it leaves none.

    Raises:
        ConfigurationError: There is no registry in the folder; nothing is written there.
    """
    if not exists(path) and not _unsigned(path):
        raise ConfigurationError(f"{path} is not a registry", hint="make one: dragoman registry init FOLDER")
    with writing(path), locked(path):
        edit = Edit(path, keys, sign, now)
        if is_unfinished(path):
            sweep_leftovers(path, files_in_use(path, edit.index.catalog(), edit.repository))
            if edit.repository.can_sign(*ONLINE):  # killed work may have left pages newer than the catalog
                every = set(edit.index.records)
                write_index(path, edit.repository, edit.index, types=edit.types, changed=every)
        with recorded(path):
            yield edit


def _unsigned(path: Path) -> bool:
    return (path / "targets").is_dir() and any((path / "targets").iterdir())


def refuse_unsigned(path: Path) -> None:
    """Raise RegistryError if a folder without signatures holds a registry's files."""
    if _unsigned(path):
        hint = "publish its wheels in a new registry: dragoman registry build WHEELS --to FOLDER"
        raise RegistryError(f"{path} is an unsigned registry", hint=hint, code="not-signed")


class Edit:
    """One operation on a registry: its repository, and the index and types as they were at the start."""

    def __init__(
        self, path: Path, keys: Path | None = None, sign: Path | None = None, now: datetime | None = None
    ) -> None:
        self.path = path
        self.stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.index, self.types = Index.of(Catalog()), dict[str, str]()
        if exists(path):
            self.repository = Repository(path, Keys(keys or beside(path), *([sign] if sign else [])), now=now)
            registry = Registry("registry", str(path), trust=Own(self.repository))
            self.index, self.types = read_index(path, self.repository, registry), registry.types()
        else:
            refuse_unsigned(path)
        self._by_key = sign is not None

    def claims(self, reports: Mapping[Path, WheelReport]) -> Iterator[Fault]:
        """Find projects and types that do not belong to the signer."""
        publishers = roles_of(self.repository.targets) if exists(self.path) else {}
        for path, report in reports.items():
            if report.manifest is None:
                continue
            project = project_of(path.name)
            role = publishers.get(project) if exists(self.path) else OWNER
            mine = role in (None, OWNER) and not self._by_key
            if role is None and not (mine and self.repository.can_sign("targets")):
                reason = "This project has no publisher; run: dragoman registry add-publisher FOLDER NAME"
                yield Fault("no-publisher", f"{reason} --key KEY.pub --project {project}.", path.name)
            for kind in report.manifest.types:
                holder = self.types.get(kind.name)
                if holder not in (None, project):
                    yield Fault("type-taken", f"The type {kind.name!r} is served by {holder}.", path.name)
                if holder is None and exists(self.path) and not (mine and self.repository.can_sign("targets")):
                    reason = f"The type {kind.name!r} is not bound to {project}; run: dragoman registry add-publisher"
                    yield Fault("type-not-bound", f"{reason} FOLDER NAME --type {kind.name}.", path.name)

    def record(self, reports: Mapping[Path, WheelReport]) -> None:
        """Record which files the wheels add, before any is written."""
        names = []
        for path, report in reports.items():
            project, version = project_of(path.name), report.name.version if report.name else ""
            wheel = f"targets/wheels/{project}/{path.name}"
            names += [wheel, *(f"{wheel}.{kind}" for kind in ("metadata", "driver.json", "report.json"))]
            names += [f"targets/docs/{project}/{version}/{name}.md" for name in ("README", "CHANGELOG")]
            names += [f"targets/simple/{project}/index.{kind}" for kind in ("html", "v1+json")]
        record_files(self.path, names)


@contextmanager
def recorded(root: Path) -> Iterator[None]:
    """Record the work of the block, and delete the record if it succeeds; the caller holds the registry's lock."""
    record_files(root, ())
    try:
        yield
    except BaseException:
        if not _read(root):  # the work ended before it wrote a file
            (root / RECORD).unlink(missing_ok=True)
        raise
    (root / RECORD).unlink()


def record_files(root: Path, names: Iterable[str]) -> None:
    """Record files about to be written, by their paths in the registry; existing files are not recorded."""
    new = [name for name in names if not (root / name).exists()]
    if new or not (root / RECORD).exists():
        write(root / RECORD, msgspec.json.encode([*_read(root), *new]))


def is_unfinished(root: Path) -> bool:
    """Check whether work was killed here, or is running."""
    return any(root.glob(f"*{RECORD}*"))  # a draft of the record counts too


def find_leftovers(root: Path, used_names: set[str]) -> list[str]:
    """List the leftovers by their paths in the registry: drafts, and recorded files that are not in use."""
    leftovers = list[str]()
    for name in _read(root):
        if belongs(name) and name not in used_names:
            leftovers += [name, *_second_names(root, name)]
    drafts = [str(file.relative_to(root)) for file in root.rglob(".*.tmp")] if is_unfinished(root) else []
    return [name for name in dict.fromkeys([*leftovers, *drafts]) if (root / name).is_file()]


def sweep_leftovers(root: Path, used_names: set[str]) -> None:
    """Remove the leftovers; the caller holds the registry's lock."""
    for name in find_leftovers(root, used_names):
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


def files_in_use(root: Path, catalog: Catalog, repository: Repository, *, accepted: bool = True) -> set[str]:
    """Return the paths of every file that the catalog, an accepted role or a waiting submission needs.

    A file with two names is listed by its plain one. A submission recorded by killed work counts only if it could
    be accepted.
    """
    targets = {wheel.path for wheel in wheels(catalog)}
    if accepted:
        targets |= {name for role in repository.names() for name in repository.role(role).signed.targets}
    roles = {f"metadata/{repository.role(name).signed.version}.{name}.json" for name in repository.names()}
    recorded_names = _read(root)
    for name, waiting in repository.pending().items():
        file = f"metadata/{waiting.signed.version}.{name}.json"
        if file in recorded_names and any(repository.problems(name, waiting)):
            continue
        roles.add(file)
        targets |= set(waiting.signed.targets)
        for target in waiting.signed.targets:  # a driver's libraries are in use with it
            if target.endswith(".driver.json") and belongs(f"targets/{target}"):
                needed = _dependencies(root / "targets" / target)
                targets |= {f"wheels/{project_of(library)}/{library}" for library in needed}
    for kind in ("metadata", "driver.json", "report.json"):
        targets |= {f"{name}.{kind}" for name in targets if name.endswith(".whl")}
    projects = {*(project.project for project in catalog.projects), *(project_of(w.file) for w in catalog.libraries)}
    targets |= {f"simple/{project}/index.{kind}" for project in projects for kind in ("html", "v1+json")}
    return roles | {f"targets/{name}" for name in targets}


def _dependencies(sidecar: Path) -> list[str]:
    with suppress(OSError, Unreadable):
        manifest = decode(read_plain(sidecar, limit=MAX_MANIFEST), _Dependencies)
        return [dependency.file for dependency in manifest.dependencies]
    return []


def _read(root: Path) -> list[str]:
    """Read the record; ignore names other than added files, so a bad record cannot remove the registry's own files."""
    with suppress(OSError, Unreadable):
        names = decode(read_plain(root / RECORD, limit=MAX_INDEX), list[str])
        return [name for name in names if _ADDED.match(name)]
    return []


class _Dependency(msgspec.Struct):
    file: str


class _Dependencies(msgspec.Struct):
    dependencies: tuple[_Dependency, ...] = ()
