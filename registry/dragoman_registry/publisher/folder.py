"""The folder of a registry: its layout, and the order of writing."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from dragoman_api.errors import RegistryError
from dragoman_registry.files import add_name, below, read_plain, write_below
from dragoman_registry.index import search_summaries
from dragoman_registry.index.catalog import Types
from dragoman_registry.index.registry_reader import MAX_INDEX
from dragoman_registry.names import BESIDE, DIGEST, INDEX, PROJECT, TARGET, VERSION, WHEEL
from dragoman_registry.trust.roles import digest_name, publishers_of, roles_of, served_name
from dragoman_registry.trust.trust import SignedFile
from dragoman_registry.validation import Unreadable

from .index_records import FILES, Index, encode
from .pages import FRONT, is_made_by_this_code, pages

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from dragoman_registry.index.registry_reader import Registry
    from dragoman_registry.trust.trust import Publisher
    from dragoman_registry.trust.tuf_repository import Repository
    from dragoman_registry.wheels.metadata_checks import WheelReport

_OF = {"types": "targets", "advisories": "advisories", "catalog": "index", search_summaries.NAME: "index"}
"""Maps each file of the index to the role that signs it."""
_LAYOUT = re.compile(
    rf"""
      (?: index | all | drivers/{PROJECT.pattern} )\.html
    | metadata/ (?: \d+\. [\w-]+ | timestamp ) \.json
    | targets/ (?: {DIGEST.pattern}\. )? (?: {"|".join(INDEX)} )
    | targets/simple/ (?: {PROJECT.pattern}/ )? index\. (?: html | v1\+json )
    | targets/wheels/{PROJECT.pattern}/ (?: {DIGEST.pattern}\. )? {WHEEL.pattern} {BESIDE}
    | targets/docs/{PROJECT.pattern}/{VERSION.pattern}/ (?: {DIGEST.pattern}\. )? (?: README | CHANGELOG ) \.md
    """,
    re.VERBOSE,
)


def belongs(path: str) -> bool:
    """Check whether a path below a registry's folder belongs to the registry, rather than to a stray file.

    >>> belongs("metadata/timestamp.json"), belongs("targets-0f3a.pem")
    (True, False)
    """
    return _LAYOUT.fullmatch(path) is not None


class Own:
    """Trusts the repository of one's own registry."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def admit(self, file: SignedFile) -> SignedFile:
        """Return a file of the index with its signed digest."""
        signed = self._repository.signed(_OF[file.path], file.path) if file.path in _OF else None
        if signed is None:
            return file
        digest = signed.hashes["sha256"]
        return SignedFile(path=served_name(file.path, digest), size=signed.length, sha256=digest)

    def publishers(self) -> Mapping[str, Publisher]:
        """Return no publishers; no caller needs them."""
        return {}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into an error that names the file."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or path}"
        hint = "dragoman registry verify FOLDER\nthen build again"
        raise RegistryError(f"{path} cannot be written: {reason}", code="registry-not-written", hint=hint) from error


def write_wheel(root: Path, path: Path, report: WheelReport, side_files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Write a wheel and the files beside it, before any metadata names them; return the files its publisher signs."""
    assert report.name is not None
    folder = f"wheels/{report.name.project}"
    wheel = f"{folder}/{path.name}"
    signed = {wheel: path.read_bytes()}
    if report.manifest is not None:
        signed[f"{wheel}.driver.json"] = report.manifest_data
        docs = f"docs/{report.name.project}/{report.name.version}"
        if report.readme:
            signed[f"{docs}/README.md"] = report.readme.encode()
        if "CHANGELOG.md" in side_files:
            signed[f"{docs}/CHANGELOG.md"] = side_files["CHANGELOG.md"]
        # If these bytes are already published, keep their report, which was published with them.
        published_report = root / "targets" / f"{wheel}.report.json"
        if published_report.exists():
            signed[f"{wheel}.report.json"] = published_report.read_bytes()
        elif "report.json" in side_files:
            signed[f"{wheel}.report.json"] = side_files["report.json"]
    for name, data in {f"{wheel}.metadata": report.metadata, **signed}.items():
        write_new(root, f"targets/{name}", data)
    return signed


def write_new(root: Path, name: str, data: bytes) -> None:
    """Write a file of a registry unless it already holds these bytes."""
    file = below(root, name)
    if not file.is_file() or file.stat().st_size != len(data) or file.read_bytes() != data:
        write_below(root, name, data)


def place_of(page: str) -> str:
    """Return the path of a page below the registry's root; its name is relative to `targets/`."""
    return page.removeprefix("../") if page.startswith("../") else f"targets/{page}"


def add_digest_names(root: Path, repository: Repository, projects: Collection[str]) -> None:
    """Add the digest-prefixed names of the signed files of projects, for clients of The Update Framework."""
    publishers = roles_of(repository.targets)
    for role in {publishers.get(project) for project in projects} - {None}:
        for path, signed in repository.role(str(role)).signed.targets.items():
            if TARGET.fits(path) and path.split("/")[1] in projects:
                file = below(root, f"targets/{path}")
                if file.is_file():  # `verify` reports missing files
                    add_name(file, below(root, f"targets/{digest_name(path, signed.hashes['sha256'])}"))


def read_index(root: Path, repository: Repository, registry: Registry) -> Index:
    """Read the signed index of one's own registry: as text where this code wrote it, else record by record.

    Raises:
        IndexInvalidError: A file is missing or malformed.
        IntegrityError: A file differs from the signed one.
    """
    signed = {name: repository.signed(_OF[name], name) for name in FILES}
    digests = {name: file.hashes["sha256"] for name, file in signed.items() if file is not None}
    if digests.keys() == set(FILES) and is_made_by_this_code(end_reader(root)(FRONT), digests):
        with suppress(Unreadable):
            return Index.read({name: registry.index_file(name) for name in FILES})
    return Index.of(registry.catalog())


def reader(root: Path) -> Callable[[str], bytes | None]:
    """Return a function that reads a file by its path below `targets/`, or returns None if it is missing."""

    def read(name: str) -> bytes | None:
        file = root / "targets" / name
        return read_plain(file, limit=MAX_INDEX) if file.is_file() else None

    return read


def end_reader(root: Path) -> Callable[[str], bytes | None]:
    """Return a function as `reader` does, which reads the last 128 bytes of a file only."""
    folder = os.path.join(root, "targets")  # noqa: PTH118 - a path object for each of many thousand files costs more

    def read(name: str) -> bytes | None:
        try:
            descriptor = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            return os.pread(descriptor, 128, max(0, status.st_size - 128)) if S_ISREG(status.st_mode) else None
        finally:
            os.close(descriptor)

    return read


def write_index(
    root: Path,
    repository: Repository,
    index: Index,
    *,
    types: dict[str, str] | None = None,
    changed: Collection[str] = (),
) -> None:
    """Write the files of an index, then the metadata that names them, in an order that survives a crash."""
    targets, served_names = root / "targets", set()
    files = dict(index.files)
    if types is not None:
        files["types"] = encode(Types(types=dict(sorted(types.items()))))
    for name, data in files.items():
        if (old := repository.signed(_OF[name], name)) is not None:
            served_names.add(served_name(name, old.hashes["sha256"]))
        served_names.add(served := served_name(name, repository.vouch(_OF[name], name, data)))
        if not (targets / served).is_file():
            write_below(targets, served, data)
    names = publishers_of(repository.targets)
    # Tools that ignore signatures read the index under its plain names.
    page_files = pages(index, reader(root), publishers=names, changed=changed, read_end=end_reader(root))
    for name, data in chain(page_files, files.items()):
        write_new(root, place_of(name), data)
    add_digest_names(root, repository, changed)
    done = repository.commit()
    projects = [targets / "wheels" / name for name in changed]
    for folder in (root, root / "drivers", root / "metadata", targets, targets / "simple", *projects):
        for draft in _drafts(folder):  # left by a killed process, since we hold the lock
            draft.unlink()
    for name in files if done else ():
        for file in targets.glob(f"*.{name}"):  # keep the previous state for current readers
            if file.name not in served_names:
                file.unlink()


def _drafts(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.name.startswith(".") and entry.name.endswith(".tmp")]
    return []
