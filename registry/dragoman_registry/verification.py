"""Checking a whole registry on disk: signatures, and every file against what was signed for it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from dragoman_api.errors import RegistryError

from .folder import Own, encode, index_files, reader
from .index import Registry, Types
from .merging import releases
from .pages import pages
from .preflight import inspect
from .trust.keys import Keys, beside
from .trust.ledger import Ledger
from .trust.roles import PUBLISHER, publishers_of, served_name
from .validation import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .index import Catalog, Release, WheelFile


def verify(path: Path, *, keys: Path | None = None, now: datetime | None = None) -> list[Fault]:
    """Check a registry: signatures and dates, every file against them and the catalog, the catalog against every wheel.

    Args:
        path: The registry.
        keys: Folder of keys, whose copy of the first root is compared; beside the registry when not given.
        now: By which time.
    """
    faults: list[Fault] = []
    try:
        ledger = Ledger(path, Keys(keys or beside(path)))
        registry = Registry("registry", str(path), trust=Own(ledger))
        catalog, types = registry.catalog(), registry.types()
        faults += _signatures(path, ledger, now or datetime.now(UTC))
        faults += _wheels(path, catalog, ledger)
    except RegistryError as error:
        where = str(error.details.get("path", "")).rpartition("targets/")[2] or "metadata"
        return [*faults, Fault("index", error.message, where)]
    content = chain(
        pages(catalog, reader(path), publishers=publishers_of(ledger.targets)),
        index_files(catalog).items(),
        [("types", encode(Types(types=types)))],
    )
    for name, data in content:
        if not (path / "targets" / name).is_file():
            faults.append(Fault("missing", f"{name} is missing.", name))
        elif (path / "targets" / name).read_bytes() != data:
            faults.append(Fault("page", f"{name} does not say what the catalog says.", name))
    said = "A key lies where others read it."
    return faults + [Fault("private-key", said, str(file.relative_to(path))) for file in path.rglob("*.pem")]


def _signatures(path: Path, ledger: Ledger, now: datetime) -> Iterator[Fault]:
    for name, metadata in ledger.everything():
        if not ledger.verified(name, metadata):
            said = "Its publisher has another key now, and signs it anew: dragoman registry sign FOLDER --sign KEY."
            yield Fault("signature", said, f"metadata/{name}")
        if metadata.signed.is_expired(now):
            yield Fault("expired", f"It expired on {metadata.signed.expires:%Y-%m-%d}.", f"metadata/{name}")
    for role in ledger.names():
        for target, signed in ledger.role(role).signed.targets.items():
            name = served_name(target, signed.hashes["sha256"])
            file = path / "targets" / name
            if not file.is_file():
                yield Fault("missing", f"{name} is missing.", name)
            elif hashlib.sha256(file.read_bytes()).hexdigest() != signed.hashes["sha256"]:
                yield Fault("signed", f"It is not what {role.removeprefix(PUBLISHER)} signed.", name)


def _wheels(path: Path, catalog: Catalog, ledger: Ledger) -> Iterator[Fault]:
    targets = path / "targets"
    # What waits to be accepted, and the libraries that may come with it, are no strangers.
    listed = {name for waiting in ledger.pending().values() for name in waiting.signed.targets}
    listed |= {f"{name}.metadata" for name in listed if name.endswith(".whl")}
    for release in releases(catalog):
        for wheel in release.wheels:
            yield from _wheel(targets, wheel, release)
            listed |= {wheel.path, *(f"{wheel.path}.{kind}" for kind in ("metadata", "driver.json", "report.json"))}
    for wheel in catalog.libraries:
        yield from _wheel(targets, wheel, None)
        listed |= {wheel.path, f"{wheel.path}.metadata"}
    there = {str(file.relative_to(targets)) for file in (targets / "wheels").rglob("[!.]*") if file.is_file()}
    for name in sorted(there - listed):
        yield Fault("unlisted", f"{name} is not in the catalog.", name)


def _wheel(targets: Path, wheel: WheelFile, release: Release | None) -> Iterator[Fault]:
    sidecar = None
    names: Sequence[str] = (wheel.path, f"{wheel.path}.metadata", *([f"{wheel.path}.driver.json"] if release else []))
    if missing := [name for name in names if not (targets / name).is_file()]:
        yield from (Fault("missing", f"{name} is missing.", name) for name in missing)
        return
    if release is not None:
        sidecar = (targets / f"{wheel.path}.driver.json").read_bytes()
        if hashlib.sha256(sidecar).hexdigest() != release.manifest_sha256:
            yield Fault("manifest", "It is not the manifest the catalog names.", f"{wheel.path}.driver.json")
    report = inspect(targets / wheel.path, expected=wheel, sidecar=sidecar, driver=release is not None, native=True)
    yield from (replace(fault, where=wheel.path) for fault in report.faults)
    if (targets / f"{wheel.path}.metadata").read_bytes() != report.metadata:
        yield Fault("metadata", "It differs from the METADATA in the wheel.", f"{wheel.path}.metadata")
