"""Checks a whole registry on disk: the signatures, and every file against its signed digest."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from dragoman_api.errors import RegistryError
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.isolation import Apart
from dragoman_registry.names import INDEX, ROLE, TARGET, plain_name
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.roles import PUBLISHER, digest_name, publishers_of, strange
from dragoman_registry.trust.tuf_repository import Repository
from dragoman_registry.validation import Fault
from dragoman_registry.wheels.archive_checks import inspect_apart

from .catalog_merge import releases
from .edit import files_in_use, find_leftovers
from .folder import Own, place_of, reader
from .index_records import Index
from .pages import pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dragoman_registry.index.catalog import Catalog, Release
    from dragoman_registry.wheels.wheel_file import WheelFile


LEFTOVER = "leftover"
"""Fault code for a harmless leftover of killed work; the next operation removes it."""


def verify(path: Path, *, keys: Path | None = None) -> list[Fault]:
    """Check a registry: signatures and dates, every file against them and the catalog, the catalog against every wheel.

    Args:
        path: The registry.
        keys: Folder of keys with the copy of the first root to compare; by default beside the registry.
    """
    faults: list[Fault] = []
    try:
        repository = Repository(path, Keys(keys or beside(path)))
        registry = Registry("registry", str(path), trust=Own(repository))
        catalog, left_out = registry.sifted()
        faults += left_out
        faults += _signatures(path, repository)
        left = find_leftovers(path, files_in_use(path, catalog, repository))
        reason = "A killed command left it, or a running one needs it."
        faults += [Fault(LEFTOVER, reason, name) for name in left]
        # If records were left out, their signed files are known too, so do not report those as unlisted.
        listed_names = files_in_use(path, catalog, repository, accepted=bool(left_out))
        with Apart() as apart:
            faults += _wheels(path, catalog, repository, {*listed_names, *left}, apart)
    except RegistryError as error:
        where = str(error.details.get("path", "")).rpartition("targets/")[2] or "metadata"
        return [*faults, Fault("index", error.message, where)]
    # Only a complete catalog determines the files of the index.
    index = Index.of(catalog)
    page_files = pages(index, reader(path), publishers=publishers_of(repository.targets))
    for name, data in chain(page_files, () if left_out else index.files.items()):
        if not (path / place_of(name)).is_file():
            faults.append(Fault("missing", "It is missing.", name))
        elif (path / place_of(name)).read_bytes() != data:
            faults.append(Fault("page", "It differs from the catalog.", name))
    reason = "The published folder contains a private key; move it out."
    return faults + [Fault("private-key", reason, str(file.relative_to(path))) for file in path.rglob("*.pem")]


def _signatures(path: Path, repository: Repository) -> Iterator[Fault]:
    for name, metadata in repository.everything():
        if not repository.verified(name, metadata):
            reason = "Its publisher has a new key and must sign it again: dragoman registry sign FOLDER --sign KEY."
            yield Fault("signature", reason, f"metadata/{name}")
        if metadata.signed.is_expired():
            yield Fault("expired", f"It expired on {metadata.signed.expires:%Y-%m-%d}.", f"metadata/{name}")
    for name in strange(repository.targets):
        yield Fault("name", f"{ROLE.reason(name)}.", "metadata/targets")
    for role in repository.names():
        for target, signed in repository.role(role).signed.targets.items():
            if not TARGET.fits(target):
                yield Fault("name", f"{TARGET.reason(target)}.", f"metadata/{role}")
                continue
            for name in (digest_name(target, signed.hashes["sha256"]), target):
                file = path / "targets" / name
                if not file.is_file():
                    yield Fault("missing", "It is missing.", name)
                elif hashlib.sha256(file.read_bytes()).hexdigest() != signed.hashes["sha256"]:
                    yield Fault(
                        "page" if name in INDEX else "signed",
                        f"It differs from the file that {role.removeprefix(PUBLISHER)} signed.",
                        name,
                    )


def _wheels(
    path: Path, catalog: Catalog, repository: Repository, listed_names: set[str], apart: Apart
) -> Iterator[Fault]:
    targets = path / "targets"
    for release in releases(catalog):
        for wheel in release.wheels:
            yield from _wheel(targets, wheel, release, apart)
    for wheel in catalog.libraries:
        yield from _wheel(targets, wheel, None, apart)
    for name, reason in repository.unreadable().items():
        yield Fault("unreadable", f"The publisher's metadata cannot be read: {reason}.", name)
    stored_names = {file.relative_to(path).as_posix() for file in (targets / "wheels").rglob("[!.]*") if file.is_file()}
    for name in sorted(name.removeprefix("targets/") for name in stored_names if plain_name(name) not in listed_names):
        yield Fault("unlisted", "It is not in the catalog.", name)


def _wheel(targets: Path, wheel: WheelFile, release: Release | None, apart: Apart) -> Iterator[Fault]:
    sidecar = None
    names: Sequence[str] = (wheel.path, f"{wheel.path}.metadata", *([f"{wheel.path}.driver.json"] if release else []))
    if missing := [name for name in names if not (targets / name).is_file()]:
        yield from (Fault("missing", "It is missing.", name) for name in missing)
        return
    if release is not None:
        sidecar = (targets / f"{wheel.path}.driver.json").read_bytes()
        if hashlib.sha256(sidecar).hexdigest() != release.manifest_sha256:
            yield Fault("manifest", "It is not the manifest in the catalog.", f"{wheel.path}.driver.json")
    path, driver = targets / wheel.path, release is not None
    report = inspect_apart(apart, path, expected=wheel, sidecar=sidecar, driver=driver, native=True)
    yield from (replace(fault, where=wheel.path) for fault in report.faults)
    if report.sha256 and (targets / f"{wheel.path}.metadata").read_bytes() != report.metadata:
        yield Fault("metadata", "It differs from the METADATA in the wheel.", f"{wheel.path}.metadata")
