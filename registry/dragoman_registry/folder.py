"""The folder of a registry: what lies where in it, and the order in which it is written."""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import RegistryError

from . import summaries
from .files import write
from .index import Advisories, Catalog, Types
from .merging import releases
from .pages import pages
from .trust import Target
from .trust.roles import publishers_of, served_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from .claims import Report
    from .trust import Publisher
    from .trust.ledger import Ledger

_OF = {"types": "targets", "advisories": "advisories", "catalog": "index", summaries.NAME: "index"}
"""File of the index → the role that signs it."""
_LAYOUT = re.compile(
    rf"""
      index\.html
    | drivers/ [^/]+ \.html
    | metadata/ (?: \d+\. [\w-]+ | timestamp ) \.json
    | targets/ (?: [0-9a-f]{{64}}\. )? (?: {"|".join(_OF)} )
    | targets/simple/ (?: [^/]+/ )? index\. (?: html | v1\+json )
    | targets/wheels/ [^/]+ / [^/]+ \.whl (?: \.metadata | \.driver\.json | \.report\.json )?
    | targets/docs/ [^/]+ / [^/]+ / (?: README | CHANGELOG ) \.md
    """,
    re.VERBOSE,
)


def belongs(path: str) -> bool:
    """Tell whether a path below the folder of a registry is that of one of its files, and not of a stray one.

    >>> belongs("metadata/timestamp.json"), belongs("targets-0f3a.pem")
    (True, False)
    """
    return _LAYOUT.fullmatch(path) is not None


class Own:
    """Trust what the ledger of one's own registry says."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def admit(self, target: Target) -> Target:
        """Hold a file of the index to its signed digest."""
        signed = self._ledger.signed(_OF[target.path], target.path) if target.path in _OF else None
        if signed is None:
            return target
        digest = signed.hashes["sha256"]
        return Target(path=served_name(target.path, digest), size=signed.length, sha256=digest)

    def publishers(self) -> Mapping[str, Publisher]:
        """Give nothing: nobody asks."""
        return {}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the disk says into an error that names the file."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or path}"
        hint = "dragoman registry verify FOLDER; then build again"
        raise RegistryError(f"{path} cannot be written: {reason}", code="registry-not-written", hint=hint) from error


def write_wheel(root: Path, path: Path, report: Report, more: Mapping[str, bytes]) -> dict[str, bytes]:
    """Put a wheel and what lies beside it in place; nothing points there yet. Give what its publisher signs."""
    assert report.name is not None
    folder = f"wheels/{report.name.project}"
    wheel = f"{folder}/{path.name}"
    signed = {wheel: path.read_bytes()}
    if report.manifest is not None:
        signed[f"{wheel}.driver.json"] = report.manifest_data
        docs = f"docs/{report.name.project}/{report.name.version}"
        if report.readme:
            signed[f"{docs}/README.md"] = report.readme.encode()
        if "CHANGELOG.md" in more:
            signed[f"{docs}/CHANGELOG.md"] = more["CHANGELOG.md"]
        # The report of the bytes that are there already stays: it was published with them.
        kept = root / "targets" / f"{wheel}.report.json"
        if kept.exists() or "report.json" in more:
            signed[f"{wheel}.report.json"] = kept.read_bytes() if kept.exists() else more["report.json"]
    for name, data in {f"{wheel}.metadata": report.metadata, **signed}.items():
        file = root / "targets" / name
        if not file.exists() or file.read_bytes() != data:
            write(file, data)
    return signed


def index_files(catalog: Catalog) -> dict[str, bytes]:
    """Make the files of the index that follow from the catalog."""
    held: dict[str, dict[str, dict[str, str]]] = {"quarantined": {}, "yanked": {}, "deprecated": {}}
    for release in releases(catalog):
        instead = f"; use {release.replaced_by} instead" if release.replaced_by else ""
        for status, versions in held.items():
            if (reason := getattr(release, status)) is not None:
                versions.setdefault(release.project, {})[release.version] = reason + instead
    advisories = Advisories(quarantined=held["quarantined"], yanked=held["yanked"], deprecated=held["deprecated"])
    return {
        "advisories": encode(advisories), "catalog": encode(catalog), summaries.NAME: summaries.encode(catalog),
    }  # fmt: skip


def reader(root: Path) -> Callable[[str], bytes | None]:
    """Make a function that reads a file by its path below `targets/`, None where there is none."""

    def read(name: str) -> bytes | None:
        file = root / "targets" / name
        return file.read_bytes() if file.is_file() else None

    return read


def encode(value: object) -> bytes:
    """Write a file of the index."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def write_index(
    root: Path,
    ledger: Ledger,
    catalog: Catalog,
    *,
    types: dict[str, str] | None = None,
    changed: Collection[str] = (),
) -> None:
    """Write what follows from a catalog, then the metadata that names it, in an order in which a crash does no harm."""
    targets, kept = root / "targets", set()
    files = index_files(catalog) | (
        {"types": encode(Types(types=dict(sorted(types.items()))))} if types is not None else {}
    )
    for name, data in files.items():
        if (old := ledger.signed(_OF[name], name)) is not None:
            kept.add(served_name(name, old.hashes["sha256"]))
        kept.add(served := served_name(name, ledger.vouch(_OF[name], name, data)))
        if not (targets / served).is_file():
            write(targets / served, data)
    names = publishers_of(ledger.targets)
    for name, data in chain(pages(catalog, reader(root), publishers=names, changed=changed), files.items()):
        file = targets / name  # the index under its plain names is for tools that know nothing of signatures
        if not file.is_file() or file.read_bytes() != data:
            write(file, data)
    done = ledger.commit()
    projects = [targets / "wheels" / name for name in changed]
    for folder in (root, root / "drivers", root / "metadata", targets, targets / "simple", *projects):
        for draft in folder.glob(".*.tmp"):  # of somebody who was killed: under the lock nobody else is here
            draft.unlink()
    for name in files if done else ():
        for file in targets.glob(f"*.{name}"):  # readers of the state before this one are let finish
            if file.name not in kept:
                file.unlink()
