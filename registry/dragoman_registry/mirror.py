"""Copies of a registry that keep its authors' signatures: a folder with a root of its own, or one file."""

from __future__ import annotations

import hashlib
import zipfile
from itertools import chain
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

from .files import locked, replacing, write
from .folder import belongs, encode, index_files, reader, writing
from .index import Registry, Types, changed
from .merging import wheels
from .pages import pages
from .preflight import inspect
from .sources import open_source, read
from .trust.keys import Keys, beside
from .trust.ledger import Ledger, exists
from .trust.roles import YEAR, publishers_of, served_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path
    from typing import Protocol

    from .trust import Trust

    class Verified(Trust, Protocol):
        """Trust whose signed statements can be copied."""

        def verified(self) -> Mapping[str, bytes]:
            """Give the verified metadata of every role, by name, and the root."""
            ...


MAX_FILE = 1 << 30
"""Bytes of a mirrored file at most."""


def mirror(
    location: str, *, to: Path, trust: Verified, keys: Path | None = None, days: int = YEAR, now: datetime | None = None
) -> str:
    """Copy a registry, or bring a copy up to date.

    What publishers, targets, index and advisories signed is copied as it is, and goes on being verified with their
    keys. A root and a statement of freshness of the copy's own take the place of the original's, so that it can be
    served where the original cannot be reached.

    Args:
        location: The original.
        to: The copy, made when it is not there.
        trust: Verifies the original.
        keys: Folder of the copy's own keys; beside it when not given.
        days: For how many days the copy's freshness holds.
        now: The time of the signatures.

    Returns:
        The digest of the copy's root, by which others add it.

    Raises:
        TrustError: The original is not in order.
        ConfigurationError: The folder holds something else, or the copy's keys are not here.
        RegistryError: The original cannot be read, or the copy not be written.
    """
    roles = dict(trust.verified())
    root, registry = roles.pop("root"), Registry("original", location, trust=trust)
    if to.exists() and not exists(to) and any(to.iterdir()) and not (to / "metadata").is_dir():
        raise ConfigurationError(f"{to} is not empty", hint="dragoman registry mirror SOURCE ANOTHER-FOLDER")
    with writing(to):
        (to / "metadata").mkdir(parents=True, exist_ok=True)
        with locked(to):
            ledger = Ledger(to, Keys(keys or beside(to)), now=now, new_days=None if exists(to) else days, original=root)
            for name, data in roles.items():
                ledger.copy(name, data)
            _copy_files(location, to, registry, ledger)
            ledger.renew()
            ledger.commit()
        return Ledger(to, Keys(keys or beside(to))).root_digest


def _copy_files(location: str, to: Path, registry: Registry, ledger: Ledger) -> None:
    source, catalog = open_source(location), registry.catalog()
    wanted = {
        served_name(path, signed.hashes["sha256"]): signed.hashes["sha256"]
        for role in ledger.names()
        for path, signed in ledger.role(role).signed.targets.items()
    } | {wheel.path: wheel.sha256 for wheel in catalog.libraries}
    for name, digest in wanted.items():
        file = to / "targets" / name
        if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == digest:
            continue
        data = read(source, f"targets/{name}", limit=MAX_FILE)
        if (actual := hashlib.sha256(data).hexdigest()) != digest:
            raise changed(registry.url(name), digest, actual)
        write(file, data)
    for wheel in wheels(catalog):
        sidecar = to / "targets" / f"{wheel.path}.metadata"
        if not sidecar.is_file():
            write(sidecar, inspect(to / "targets" / wheel.path, native=True).metadata)
    types = [("types", encode(Types(types=registry.types())))]
    made = pages(catalog, reader(to), publishers=publishers_of(ledger.targets))
    for name, data in chain(made, index_files(catalog).items(), types):
        write(to / "targets" / name, data)


def pack(folder: Path, bundle: Path) -> None:
    """Write a registry as one file, which can be added as it is; what else lies in its folder stays out.

    Raises:
        RegistryError: It cannot be written.
    """
    with writing(bundle), replacing(bundle) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        for name in sorted(filter(belongs, names)):
            archive.write(folder / name, name)
