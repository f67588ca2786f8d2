"""Publishes wheels in a registry: a signed folder of static files in which a published version never changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError, WheelRejectedError
from dragoman_registry.files import locked
from dragoman_registry.index.catalog import Catalog
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.roles import ONLINE, YEAR, patterns, roles_of
from dragoman_registry.trust.tuf_repository import Repository, exists
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.wheel_file import project_of

from . import interrupted_writes
from .catalog_merge import immutable, merged, releases
from .catalog_merge import wheels as wheels_of
from .edit import OWNER, Edit, editing, reading
from .folder import write_index, write_wheel, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from dragoman_registry.index.catalog import Release
    from dragoman_registry.validation import Fault
    from dragoman_registry.wheels.wheel_report import WheelReport


_OWN = {"metadata", "targets"}


def init(path: Path, *, keys: Path | None = None, days: int = YEAR, now: datetime | None = None) -> str:
    """Make an empty registry and its keys.

    Args:
        path: The folder.
        keys: Folder for the private keys; by default beside the registry, never inside it.
        days: Lifetime in days of the registry's own metadata.
        now: The time of the signatures.

    Returns:
        The digest of its root, by which users add it.

    Raises:
        ConfigurationError: The folder holds other files, or the keys would be inside it.
        RegistryError: It cannot be written (code ``registry-not-written``).
    """
    folder = Keys(keys or beside(path))
    with writing(path):
        if not exists(path):
            names = {file.name for file in path.iterdir()} if path.is_dir() else {""}
            if path.exists() and names - _OWN and not names >= _OWN:
                raise ConfigurationError(f"{path} is not empty", hint="dragoman registry init ANOTHER-FOLDER")
            if path.resolve() in (folder.folder.resolve(), *folder.folder.resolve().parents):
                text = f"the keys cannot be inside {path}, which is published"
                raise ConfigurationError(text, hint="dragoman registry init FOLDER --keys ANOTHER-FOLDER")
            for name in ("metadata", "targets/wheels", "targets/docs"):
                (path / name).mkdir(parents=True, exist_ok=True)
            with locked(path):
                write_index(path, Repository(path, folder, now=now, new_days=days), Catalog(), types={})
        return Repository(path, folder).root_digest


def build(
    wheels: Iterable[Path],
    *,
    to: Path,
    keys: Path | None = None,
    sign: Path | None = None,
    now: datetime | None = None,
    beside: Mapping[str, Mapping[str, bytes]] | None = None,
    dry_run: bool = False,
) -> list[Release]:
    """Publish wheels of drivers and of the libraries in their closed sets: either all of them or none.

    The publisher of each driver signs for it. If the registry's own keys are available too, it is accepted at once;
    otherwise it waits for `accept`.

    Args:
        wheels: Wheel files; a wheel already published with the same bytes stays as it is.
        to: The registry; made if missing.
        keys: Folder of keys; by default beside the registry.
        sign: A publisher's key.
        now: The time of publication, for reproducible builds.
        beside: Maps the file name of a driver's wheel to the files beside it: ``report.json``, ``CHANGELOG.md``.
        dry_run: Only look for faults.

    Returns:
        The releases that the wheels belong to.

    Raises:
        WheelRejectedError: The checks failed; the error lists every fault of every wheel. The registry is unchanged.
        ConfigurationError: A key is missing.
        IndexInvalidError: The registry is damaged.
        TrustError: The registry was changed without its keys.
        RegistryError: It cannot be written; earlier releases stay published.
    """
    if not dry_run:
        init(to, keys=keys, now=now)
    with (reading if dry_run else editing)(to, keys, sign, now) as edit:
        reports, catalog, faults = _judge(edit, wheels)
        refuse(faults)
        if not dry_run:
            _publish(edit, reports, beside or {}, catalog)
    names = {path.name for path in reports}
    return [release for release in releases(catalog) if names & {wheel.file for wheel in release.wheels}]


def look(wheels: Iterable[Path], *, to: Path) -> list[Fault]:
    """Find the faults for which `build` would refuse these wheels together, each with its file. Raises as `build`."""
    with reading(to) as edit:
        return _judge(edit, wheels)[2]


def refuse(faults: list[Fault]) -> None:
    """Raise WheelRejectedError with every fault, if there are any."""
    if faults:
        message = f"nothing was published: {faults[0]}" + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
        pairs = tuple((fault.code, str(fault)) for fault in faults)
        raise WheelRejectedError(message, hint="correct the wheel and build it again", faults=pairs)


def read_catalog(path: Path) -> Catalog:
    """Read the signed catalog of a registry on disk; empty if there is no registry yet.

    Raises:
        IndexInvalidError: A file is missing or malformed.
        TrustError: A signature is invalid.
        IntegrityError: The catalog differs from the signed one.
    """
    return Edit(path).catalog


def published(path: Path) -> dict[str, str]:
    """Map the file name of every wheel in a registry to its digest; empty if there is no registry yet."""
    return {wheel.file: wheel.sha256 for wheel in wheels_of(read_catalog(path))}


def _judge(edit: Edit, wheels: Iterable[Path]) -> tuple[dict[Path, WheelReport], Catalog, list[Fault]]:
    """Inspect wheels, and return the catalog extended with them if there is no fault."""
    reports = {path: inspect(path, native=True) for path in wheels}
    faults = [replace(fault, where=path.name) for path, report in reports.items() for fault in report.faults]
    faults += [*immutable(edit.catalog, reports), *edit.claims(reports)]
    catalog, conflicts = (edit.catalog, []) if faults else merged(edit.catalog, reports, edit.stamp)
    return reports, catalog, [*faults, *conflicts]


def _publish(
    edit: Edit, reports: Mapping[Path, WheelReport], side_files: Mapping[str, Mapping[str, bytes]], catalog: Catalog
) -> None:
    """Write wheels, sign for their publishers, and accept them if the registry's keys are available."""
    repository, types = edit.repository, dict(edit.types)
    drivers = {path: project_of(path.name) for path, report in reports.items() if report.manifest is not None}
    if new := sorted(set(drivers.values()) - roles_of(repository.targets).keys()):
        repository.extend(OWNER, [pattern for project in new for pattern in patterns(project)])
    for path, project in drivers.items():
        manifest = reports[path].manifest
        types |= {kind.name: project for kind in manifest.types} if manifest else {}
    publishers = roles_of(repository.targets)
    signed: dict[str, dict[str, bytes]] = {publishers[project]: {} for project in drivers.values()}
    for role in signed:
        repository.expect_publisher(role)
    edit.record(reports)
    for path, report in reports.items():
        files = write_wheel(edit.path, path, report, side_files.get(path.name, {}))
        if path in drivers:
            signed[publishers[drivers[path]]] |= files
    interrupted_writes.record(edit.path, [f"metadata/{repository.next_version(role)}.{role}.json" for role in signed])
    waiting = [role for role, files in signed.items() if repository.submit(role, files)]
    if repository.can_sign(*ONLINE):
        pending = repository.pending()
        for role in waiting:
            repository.adopt(role, pending[role])
        changed = {project_of(path.name) for path in reports}
        write_index(edit.path, repository, catalog, types=types if types != edit.types else None, changed=changed)
