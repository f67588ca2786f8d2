"""Copies of a registry that keep its authors' signatures: a folder with its own root, or one file."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dragoman_api.errors import ConfigurationError, IndexInvalidError, IntegrityError
from dragoman_registry.files import add_name, below, locked, replacing, write_below
from dragoman_registry.index.registry_reader import Registry, changed
from dragoman_registry.isolation import Apart
from dragoman_registry.names import ROLE, TARGET, plain_name
from dragoman_registry.sources import open_source, read
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.roles import YEAR, digest_name, publishers_of, served_name, strange
from dragoman_registry.trust.tuf_repository import Repository, exists
from dragoman_registry.validation import Fault
from dragoman_registry.wheels.archive_checks import inspect_apart

from .catalog_merge import releases, wheels
from .folder import belongs, place_of, reader, writing
from .index_records import Index
from .pages import pages

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path
    from typing import Protocol

    from dragoman_registry.index.catalog import Catalog, Release
    from dragoman_registry.trust.trust import Trust
    from dragoman_registry.wheels.wheel_file import WheelFile

    class Verified(Trust, Protocol):
        """Trust whose signed metadata can be copied."""

        def verified(self) -> Mapping[str, bytes]:
            """Return the verified metadata of every role, by name, and the root."""
            ...


MAX_FILE = 1 << 30
"""Maximum size of a mirrored file in bytes."""


class Mirrored(NamedTuple):
    """The result of a copy.

    Attributes:
        root: The digest of the copy's root, by which users add it.
        left_out: A fault for each record of the original that the copy does not offer, such as an invalid name.
    """

    root: str
    left_out: tuple[Fault, ...]


def mirror(
    location: str, *, to: Path, trust: Verified, keys: Path | None = None, days: int = YEAR, now: datetime | None = None
) -> Mirrored:
    """Copy a registry, or bring a copy up to date.

    The metadata of publishers, targets, index and advisories is copied unchanged and still verified with their keys.
    The copy has its own root, snapshot and timestamp, so it can be served where the original cannot be reached.

    Args:
        location: The original.
        to: The copy; made if missing.
        trust: Verifies the original.
        keys: Folder of the copy's own keys; by default beside the copy.
        days: Lifetime in days of the copy's own metadata.
        now: The time of the signatures.

    A bad record of the original's index is left out and reported; so is a release with a missing or damaged file, or
    with a wheel that cannot be inspected within bounds. All others are copied.

    Raises:
        TrustError: The original fails verification.
        ConfigurationError: The folder holds other files, or the copy's keys are not available.
        RegistryError: The original cannot be read, or the copy cannot be written.
    """
    roles = dict(trust.verified())
    root, registry = roles.pop("root"), Registry("original", location, trust=trust)
    if to.exists() and not exists(to) and any(to.iterdir()) and not (to / "metadata").is_dir():
        raise ConfigurationError(f"{to} is not empty", hint="dragoman registry mirror SOURCE ANOTHER-FOLDER")
    with writing(to):
        (to / "metadata").mkdir(parents=True, exist_ok=True)
        with locked(to):
            repository = Repository(
                to, Keys(keys or beside(to)), now=now, new_days=None if exists(to) else days, original=root
            )
            for name, data in roles.items():
                repository.copy(name, data)
            left_out = _copy_files(location, to, registry, repository)
            repository.renew()
            repository.commit()
        return Mirrored(Repository(to, Keys(keys or beside(to))).root_digest, tuple(left_out))


def _copy_files(location: str, to: Path, registry: Registry, repository: Repository) -> list[Fault]:
    """Copy the signed files and those that the catalog lists; return a fault for each that is left out."""
    source, (catalog, left_out) = open_source(location), registry.sifted()
    signed, strangers = _signed(repository)
    catalog, unsigned = _signed_releases(catalog, signed)
    copies = {wheel.path: (wheel.path, wheel.sha256) for wheel in catalog.libraries}
    copies |= {path: (served_name(path, digest), digest) for path, digest in signed.items()}
    lost: dict[str, Fault] = {}
    for path, (served, digest) in copies.items():
        file = below(to, f"targets/{path}")
        try:
            if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
                data = read(source, f"targets/{served}", limit=MAX_FILE)
                if (actual := hashlib.sha256(data).hexdigest()) != digest:
                    raise changed(registry.url(served), digest, actual)
                write_below(to, f"targets/{path}", data)
        except (IndexInvalidError, IntegrityError) as error:  # an unreachable source is not a fault of one file
            lost[path] = Fault("not-copied", f"{error.message}.", path)
            continue
        if path in signed:
            add_name(file, below(to, f"targets/{digest_name(path, digest)}"))
    with Apart() as apart:
        for wheel in wheels(catalog):
            if wheel.path in lost or below(to, f"targets/{wheel.path}.metadata").is_file():
                continue
            report = inspect_apart(apart, below(to, f"targets/{wheel.path}"), native=True)
            if report.metadata:
                write_below(to, f"targets/{wheel.path}.metadata", report.metadata)
            else:
                lost[wheel.path] = replace(report.faults[0], where=wheel.path)
    catalog, without = _whole_releases(catalog, lost)
    for name, data in pages(Index.of(catalog), reader(to), publishers=publishers_of(repository.targets)):
        write_below(to, place_of(name), data)
    return [*left_out, *strangers, *unsigned, *lost.values(), *without]


def _signed(repository: Repository) -> tuple[dict[str, str], list[Fault]]:
    """Map each signed path to its digest; also return a fault for each path or role with an invalid name."""
    faults = [Fault("name", f"{ROLE.reason(name)}.", "metadata/targets") for name in strange(repository.targets)]
    digests: dict[str, str] = {}
    for role in repository.names():
        for path, target in repository.role(role).signed.targets.items():
            if TARGET.fits(path):
                digests.setdefault(path, target.hashes["sha256"])
            else:
                faults.append(Fault("name", f"{TARGET.reason(path)}.", f"metadata/{role}"))
    return digests, faults


def _without(catalog: Catalog, releases: Container[Release], libraries: Iterable[WheelFile]) -> Catalog:
    """Leave out releases, drivers without remaining releases, and other libraries than these."""
    projects = []
    for project in catalog.projects:
        remaining_releases = tuple(release for release in project.releases if release not in releases)
        if remaining_releases or not project.releases:
            projects.append(replace(project, releases=remaining_releases))
    return replace(catalog, projects=tuple(projects), libraries=tuple(libraries))


def _whole_releases(catalog: Catalog, lost: Collection[str]) -> tuple[Catalog, list[Fault]]:
    """Leave out releases and libraries with a file that was not copied; missing documents do not matter."""
    faults: dict[Release, Fault] = {}
    for release in releases(catalog) if lost else ():
        own = [name for wheel in release.wheels for name in (wheel.path, f"{wheel.path}.driver.json")]
        if missed := [path for path in (*own, *(wheel.path for wheel in release.dependencies)) if path in lost]:
            reason = f"{release.plugin} {release.version} needs it and is left out."
            faults[release] = Fault("incomplete", reason, missed[0])
    libraries = (wheel for wheel in catalog.libraries if wheel.path not in lost)
    return _without(catalog, faults, libraries), [*faults.values()]


def _signed_releases(catalog: Catalog, signed: Mapping[str, str]) -> tuple[Catalog, list[Fault]]:
    """Leave out releases with an unsigned wheel, and libraries that were signed with other bytes."""
    faults: dict[Release, Fault] = {}
    for release in releases(catalog):
        if unsigned := [wheel.path for wheel in release.wheels if wheel.path not in signed]:
            faults[release] = Fault("unsigned", "Its publisher has not signed it.", unsigned[0])
    others = {wheel: None for wheel in catalog.libraries if signed.get(wheel.path, wheel.sha256) != wheel.sha256}
    reason = "The catalog and the signature name different bytes."
    libraries = (wheel for wheel in catalog.libraries if wheel not in others)
    further = [Fault("unsigned", reason, wheel.path) for wheel in others]
    return _without(catalog, faults, libraries), [*faults.values(), *further]


def pack(folder: Path, bundle: Path) -> None:
    """Write a registry as one file, which users can add as it is; leave out other files in its folder.

    Raises:
        RegistryError: It cannot be written.
    """
    with writing(bundle), replacing(bundle) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        for name in sorted(names):
            # Keep only the plain name of a file with two names: a bundle's reader resolves the other.
            if belongs(name) and not (name.startswith("targets/") and plain_name(name) in names - {name}):
                archive.write(folder / name, name)
