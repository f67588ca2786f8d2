"""The index of a registry: catalog, type bindings, advisories, and where its wheels lie."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from dragoman_api.errors import IndexInvalidError, IntegrityError, PluginNotFoundError, TrustError

from .manifest import MAX_MANIFEST, DatabaseType, Manifest
from .sources import iter_chunks, open_source, read
from .trust import UNSIGNED, Target, Trust, TrustedPath
from .validation import load
from .wheels import NotAWheel, parse_name

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from .trust import Publisher

T = TypeVar("T")

MAX_INDEX = 256 << 20
"""Bytes of a file of the index at most: room for 100,000 drivers."""

MAX_DOCUMENT = 4 << 20
"""Bytes of a readme, a changelog or a conformance report at most."""


def project_of(file: str) -> str:
    """Give the project a wheel belongs to, from its file name.

    >>> project_of("dragoman_elasticsearch-1.0.0-py3-none-any.whl")
    'dragoman-elasticsearch'
    """
    return re.sub(r"[-_.]+", "-", file.partition("-")[0]).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """One wheel of a registry.

    Attributes:
        file: Its name.
        size: Bytes.
        sha256: Of its bytes.
        metadata_sha256: Of its METADATA, which lies beside it.
        requires_python: Range of Python versions, empty for any.
        uploaded: When it came into the registry, UTC.
        summary: One sentence.
        requires: Projects it needs, without extras.
    """

    file: str
    size: int
    sha256: str
    metadata_sha256: str = ""
    requires_python: str = ""
    uploaded: str = ""
    summary: str = ""
    requires: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Give where it lies below `targets/`."""
        return f"wheels/{project_of(self.file)}/{self.file}"

    @property
    def version(self) -> str:
        """Give its version, from its file name."""
        return self.file.split("-")[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version of a driver: its wheels, and the closed set of wheels it was published with.

    Attributes:
        plugin: The plugin's id.
        project: Name of the distribution.
        version: Of the distribution.
        host_api: Range of `dragoman-api` versions.
        permissions: As the manifest asks for them.
        manifest_sha256: Of `driver.json`, which lies beside each wheel.
        wheels: The driver, one per platform or one for all.
        dependencies: Wheels beyond the API's own dependencies, every platform.
        yanked: Why it is no longer offered, None while it is.
        quarantined: Why it must not run, None while it may.
        deprecated: Why it should be left, None while it should not; it is still offered.
        replaced_by: What to use instead of a deprecated one.
    """

    plugin: str
    project: str
    version: str
    host_api: str
    permissions: tuple[str, ...]
    manifest_sha256: str
    wheels: tuple[WheelFile, ...]
    dependencies: tuple[WheelFile, ...] = ()
    yanked: str | None = None
    quarantined: str | None = None
    deprecated: str | None = None
    replaced_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One driver of a registry; label, summary, types, capabilities and surfaces are those of its newest release."""

    plugin: str
    project: str
    label: str
    summary: str
    types: tuple[DatabaseType, ...]
    capabilities: tuple[str, ...] = ()
    excluded_surfaces: tuple[str, ...] = ()
    releases: tuple[Release, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Everything a registry offers: drivers, and the libraries their closed sets consist of."""

    catalog_version: Literal[1] = 1
    projects: tuple[Project, ...] = ()
    libraries: tuple[WheelFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Types:
    """Database type → project; decides what may be installed for a type."""

    types_version: Literal[1] = 1
    types: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisories:
    """Project → version → why it must not run, why it is no longer offered, why it should be left for what."""

    advisories_version: Literal[1] = 1
    quarantined: dict[str, dict[str, str]] = field(default_factory=dict)
    yanked: dict[str, dict[str, str]] = field(default_factory=dict)
    deprecated: dict[str, dict[str, str]] = field(default_factory=dict)


class _Name(msgspec.Struct, frozen=True, gc=False):
    plugin: str
    project: str


class _Names(msgspec.Struct, frozen=True):
    projects: tuple[_Name, ...]


class _Parts(msgspec.Struct, frozen=True):
    projects: tuple[msgspec.Raw, ...]


class Registry:
    """A configured registry, read on each call.

    Attributes:
        name: As the user calls it.
        location: A path, or a ``file:``, ``http:`` or ``https:`` URL.
    """

    def __init__(self, name: str, location: str, *, trust: Trust | None = None) -> None:
        self.name = name
        self.location = location
        self._source = open_source(location)
        self._trust = trust or TrustedPath()

    def catalog(self) -> Catalog:
        """Read what is offered. What is quarantined is so by the advisories, whatever the catalog says.

        Raises:
            IndexInvalidError: The file is missing, truncated or malformed; the message names every fault.
            TrustError: Nobody vouches for it, or its signatures have expired (code ``registry-stale``).
            IntegrityError: It is not the file that was signed.
            RegistryError: The registry cannot be reached (code ``registry-unreachable``).
        """
        return self._judged(self._index(Catalog, "catalog"))

    def _judged(self, catalog: Catalog) -> Catalog:
        if faults := list(_unsound(catalog)):
            raise _invalid(self.url("catalog"), faults)
        return _held_back(catalog, self.advisories().quarantined)

    def types(self) -> dict[str, str]:
        """Read which project serves which database type. Raises as `catalog`."""
        return self._index(Types, "types").types

    def advisories(self) -> Advisories:
        """Read what is held against published versions, and why. Raises as `catalog`."""
        return self._index(Advisories, "advisories")

    def project(self, name: str) -> Project:
        """Find a driver by its plugin id or its project; of the others only the names are read.

        Raises:
            PluginNotFoundError: The registry does not have it. Else as `catalog`.
        """
        data = self.index_file("catalog")
        try:
            names = msgspec.json.decode(data, type=_Names).projects
            for at, entry in enumerate(names):
                if name in (entry.plugin, entry.project):
                    found = msgspec.json.decode(msgspec.json.decode(data, type=_Parts).projects[at], type=Project)
                    return self._judged(Catalog(projects=(found,))).projects[0]
        except msgspec.DecodeError:
            self.catalog()  # which names every fault
        raise PluginNotFoundError(f"the registry {self.name!r} has no plugin {name!r}", hint="dragoman plugins browse")

    def releases(self, name: str) -> tuple[Release, ...]:
        """Read the releases of a driver, newest first. Raises as `project`."""
        return self.project(name).releases

    def manifest(self, release: Release) -> Manifest:
        """Read the manifest of a release without fetching its wheel.

        Raises:
            IntegrityError: It is not the file the index names.
            IndexInvalidError: It is malformed.
        """
        from .vetting import check_manifest

        manifest, faults = check_manifest(self.sidecar(release, release.wheels[0]))
        if manifest is None:
            raise _invalid(self.url(f"{release.wheels[0].path}.driver.json"), [fault.reason for fault in faults])
        return manifest

    def sidecar(self, release: Release, wheel: WheelFile) -> bytes:
        """Read the `driver.json` beside a wheel. Raises IntegrityError if it is not the one the index names."""
        target = Target(path=f"{wheel.path}.driver.json", size=MAX_MANIFEST, sha256=release.manifest_sha256)
        return self._checked(target)

    def chunks(self, wheel: WheelFile) -> Generator[bytes]:
        """Read a wheel piece by piece, unchecked: the caller counts and hashes, as `admitted` says."""
        return iter_chunks(self._source, f"targets/{wheel.path}")

    def admitted(self, wheel: WheelFile, release: Release) -> Target:
        """Give size and digest a wheel of a release must have.

        A library is vouched for by the author of the driver, whose signed manifest names it by its digest.

        Raises:
            TrustError: Nobody vouches for it.
        """
        target = Target(path=wheel.path, size=wheel.size, sha256=wheel.sha256)
        if wheel.file in {own.file for own in release.wheels}:
            return self._trust.admit(target)
        if (wheel.file, wheel.sha256) not in {(each.file, each.sha256) for each in self.manifest(release).dependencies}:
            text = f"{release.plugin} {release.version} does not name {wheel.file} with the digest {wheel.sha256}"
            raise TrustError(text, hint="tell whoever runs the registry; nothing was installed")
        return target

    def publisher(self, project: str) -> Publisher | None:
        """Give who may publish a project; None where the host itself vouches for its files. Raises as `catalog`."""
        return self._trust.publishers().get(project)

    def url(self, path: str) -> str:
        """Give where a target lies, for messages."""
        return f"{self.location.rstrip('/')}/targets/{path}"

    def document(self, path: str) -> bytes | None:
        """Read a file for people: a readme, a changelog, a conformance report. None where there is none.

        Raises:
            IntegrityError: It is not the file that was signed.
            RegistryError: The registry cannot be reached.
        """
        try:
            return self._admitted(path, MAX_DOCUMENT)
        except IndexInvalidError:
            return None
        except TrustError as error:
            if error.code != UNSIGNED:
                raise
            return None

    def index_file(self, name: str) -> bytes:
        """Read a file of the index, undecoded. Raises as `catalog`."""
        return self._admitted(name, MAX_INDEX)

    def _admitted(self, path: str, limit: int) -> bytes:
        return self._checked(Target(path=path, size=limit))

    def _checked(self, target: Target) -> bytes:
        admitted = self._trust.admit(target)
        data = read(self._source, f"targets/{admitted.path}", limit=admitted.size)
        if admitted.sha256 is not None and (actual := hashlib.sha256(data).hexdigest()) != admitted.sha256:
            raise changed(self.url(admitted.path), admitted.sha256, actual)
        return data

    def _index(self, kind: type[T], name: str) -> T:
        value, faults = load(kind, self.index_file(name), code="index")
        if value is None:
            raise _invalid(self.url(name), [fault.reason for fault in faults])
        return value


_FILE = re.compile(r"[A-Za-z0-9_.]+-[A-Za-z0-9_.!+]+(-[0-9][A-Za-z0-9_.]*)?(-[A-Za-z0-9_.]+){3}\.whl")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def _unsound(catalog: Catalog) -> Iterator[str]:
    """Check what types alone cannot say: file names, digests and ranges that are none."""
    releases = [release for project in catalog.projects for release in project.releases]
    listed = [wheel for release in releases for wheel in (*release.wheels, *release.dependencies)]
    for wheel in (*catalog.libraries, *listed):
        if not _FILE.fullmatch(wheel.file) or not _DIGEST.fullmatch(wheel.sha256) or wheel.size <= 0:
            yield f"{wheel.file!r} has no proper name, size or digest"
    for release in releases:
        named = f"{release.project} {release.version}"
        if not release.wheels:
            yield f"{named} has no wheel"
        for wheel in release.wheels:
            try:
                name = parse_name(wheel.file)
            except NotAWheel as error:
                yield str(error)
            else:
                if (name.project, name.version) != (release.project, release.version):
                    yield f"{wheel.file!r} is no wheel of {named}"
        for text in (release.host_api, *(wheel.requires_python for wheel in release.wheels)):
            if not _is_range(text):
                yield f"{named} has {text!r}, which is no version range"


@cache
def _is_range(text: str) -> bool:
    """Judge a range once: thousands of releases have the same few."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def _held_back(catalog: Catalog, quarantined: Mapping[str, Mapping[str, str]]) -> Catalog:
    """Let the advisories say what is quarantined: their key is another one than the catalog's."""

    def wrong(release: Release) -> bool:
        return release.quarantined != quarantined.get(release.project, {}).get(release.version)

    def judged(release: Release) -> Release:
        reason = quarantined.get(release.project, {}).get(release.version)
        return replace(release, quarantined=reason) if wrong(release) else release

    if not any(wrong(release) for project in catalog.projects for release in project.releases):
        return catalog
    projects = (replace(each, releases=tuple(map(judged, each.releases))) for each in catalog.projects)
    return replace(catalog, projects=tuple(projects))


def changed(where: str, expected: str, actual: str) -> IntegrityError:
    """Build the error for bytes that differ from their promised digest."""
    return IntegrityError(
        f"{where} was changed after publication: expected {expected}, got {actual}",
        hint="dragoman registry verify FOLDER",
        details={"path": where, "expected": expected, "actual": actual},
    )


def _invalid(where: str, faults: list[str]) -> IndexInvalidError:
    shown = "; ".join(faults[:10]) + (f"; and {len(faults) - 10} more" if len(faults) > 10 else "")
    hint = "dragoman registry verify FOLDER"
    return IndexInvalidError(f"{where} is not valid: {shown}", hint=hint, details={"path": where})
