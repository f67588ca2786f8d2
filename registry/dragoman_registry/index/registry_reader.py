"""The index of a registry: catalog, type bindings, advisories, locations of wheels, and its last trusted claims."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.errors import IndexInvalidError, IntegrityError, PluginNotFoundError, RegistryError, TrustError
from dragoman_registry.files import change, read_plain
from dragoman_registry.sources import is_missing, iter_chunks, open_source, read
from dragoman_registry.trust.trust import UNSIGNED, SignedFile, Trust
from dragoman_registry.validation import Fault, Unreadable, decode
from dragoman_registry.wheels.manifest import MAX_MANIFEST, Manifest

from .catalog import Advisories, Catalog, Project, Release, held_against, read_advisories
from .catalog_parser import RawCatalog, sound_bindings, sound_records, unsound, without_unsound

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from pathlib import Path

    from dragoman_registry.trust.trust import Publisher
    from dragoman_registry.wheels.wheel_file import WheelFile

MAX_INDEX = 256 << 20
"""Maximum bytes of a file of the index: room for 100,000 drivers."""

MAX_DOCUMENT = 4 << 20
"""Maximum bytes of a readme, a changelog or a conformance report."""

MAX_CLAIMS = 64 << 20
"""Maximum bytes of a record: room for everything that a registry may offer."""


class _Name(msgspec.Struct, frozen=True, gc=False):
    plugin: str
    project: str


class _Names(msgspec.Struct, frozen=True):
    projects: tuple[_Name, ...]


class _Wheel(msgspec.Struct, frozen=True, gc=False):
    file: str
    sha256: str


class _Release(msgspec.Struct, frozen=True):
    wheels: tuple[_Wheel, ...]


class _Driver(msgspec.Struct, frozen=True):
    releases: tuple[_Release, ...]


class _Wheels(msgspec.Struct, frozen=True):
    projects: tuple[_Driver, ...]
    libraries: tuple[_Wheel, ...] = ()


class Registry:
    """A configured registry, read on each call.

    Attributes:
        name: The user's name for it.
        location: A path, or a ``file:``, ``http:`` or ``https:`` URL.
        memory: Keeps its claims; None to keep none.
    """

    def __init__(self, name: str, location: str, *, trust: Trust, memory: Memory | None = None) -> None:
        self.name = name
        self.memory = memory
        self.location = location
        self._source = open_source(location)
        self._trust = trust

    def catalog(self) -> Catalog:
        """Read the catalog. The advisories decide what is quarantined, regardless of the catalog.

        Raises:
            IndexInvalidError: The file is missing, truncated or malformed; the message names every fault.
            TrustError: It is not signed, or its signatures have expired (code ``registry-stale``).
            IntegrityError: It differs from the signed file.
            RegistryError: The registry cannot be reached (code ``registry-unreachable``).
        """
        catalog, faults = self._records()
        if faults:
            raise _invalid(self.url("catalog"), [fault.reason for fault in faults])
        return catalog

    def digests(self) -> dict[str, str]:
        """Map the file name of every wheel in the catalog to its digest; decode nothing else. Raises as `catalog`."""
        try:
            catalog = decode(self.index_file("catalog"), _Wheels)
        except Unreadable as error:
            raise _invalid(self.url("catalog"), [str(error)]) from error
        of_drivers = (wheel for project in catalog.projects for release in project.releases for wheel in release.wheels)
        return {wheel.file: wheel.sha256 for wheel in (*of_drivers, *catalog.libraries)}

    def _keep_names(self, names: _Names) -> None:
        """Keep its claims, including those of records that are left out."""
        if self.memory is not None:
            self.memory.keep_names(name for project in names.projects for name in (project.plugin, project.project))

    def sifted(self) -> tuple[Catalog, list[Fault]]:
        """Read the sound records of the catalog: a bad record is left out without affecting the others.

        Returns:
            The sound records, and a fault (code ``index``) for each record and type binding that is left out. Raises
            as `catalog`, but for records only if they are not in a list.
        """
        catalog, faults = self._records()
        return catalog, [*faults, *sound_bindings(self.index_file("types"))[1]]

    def _records(self) -> tuple[Catalog, list[Fault]]:
        data = self.index_file("catalog")
        catalog, faults = sound_records(data)
        if catalog is None:
            self.refuse_newer("catalog", data)
            raise _invalid(self.url("catalog"), [fault.reason for fault in faults])
        with suppress(Unreadable):  # if unreadable, keep the earlier names
            self._keep_names(decode(data, _Names))
        return _held_back(catalog, self.advisories().quarantined), faults

    def types(self) -> dict[str, str]:
        """Read the bindings of database types to projects, without invalid names. Raises as `catalog`."""
        data = self.index_file("types")
        bindings, faults = sound_bindings(data)
        if bindings is None:
            self.refuse_newer("types", data)
            raise _invalid(self.url("types"), [fault.reason for fault in faults])
        if self.memory is not None:
            self.memory.keep_types(bindings)
        return bindings

    def advisories(self) -> Advisories:
        """Read the advisories against published versions, with their reasons.

        If a project's advisories cannot be read, they apply to each of its versions. Raises as `catalog`.
        """
        data = self.index_file("advisories")
        try:
            return read_advisories(data)
        except Unreadable as error:
            self.refuse_newer("advisories", data)
            raise _invalid(self.url("advisories"), [str(error)]) from error

    def project(self, name: str) -> Project:
        """Find a driver by its plugin id or project; decode only the names of the others.

        Raises:
            PluginNotFoundError: The registry does not have it. Otherwise raises as `catalog`.
        """
        data = self.index_file("catalog")
        try:
            catalog_names = decode(data, _Names)
            self._keep_names(catalog_names)
            names = catalog_names.projects
            for at, entry in enumerate(names):
                if name in (entry.plugin, entry.project):
                    record = decode(bytes(decode(data, RawCatalog).projects[at]), Project)
                    project, reasons = without_unsound(record)
                    if project is None or (reasons := list(unsound(record))):
                        raise _invalid(self.url("catalog"), reasons)
                    return _held_back(Catalog(projects=(project,)), self.advisories().quarantined).projects[0]
        except Unreadable as error:
            catalog, faults = self._records()
            if sound := [driver for driver in catalog.projects if name in (driver.plugin, driver.project)]:
                return sound[0]
            raise _invalid(self.url("catalog"), [fault.reason for fault in faults] or [str(error)]) from error
        raise PluginNotFoundError(f"the registry {self.name!r} has no plugin {name!r}", hint="dragoman plugins browse")

    def releases(self, name: str) -> tuple[Release, ...]:
        """Read the releases of a driver, newest first. Raises as `project`."""
        return self.project(name).releases

    def manifest(self, release: Release) -> Manifest:
        """Read the manifest of a release without fetching its wheel.

        Raises:
            IntegrityError: It differs from the file in the index.
            IndexInvalidError: It is malformed.
        """
        from dragoman_registry.wheels.manifest_checks import check_manifest

        manifest, faults = check_manifest(self.sidecar(release, release.wheels[0]))
        if manifest is None:
            raise _invalid(self.url(f"{release.wheels[0].path}.driver.json"), [fault.reason for fault in faults])
        return manifest

    def sidecar(self, release: Release, wheel: WheelFile) -> bytes:
        """Read the `driver.json` beside a wheel. Raises IntegrityError if it differs from the one in the index."""
        file = SignedFile(path=f"{wheel.path}.driver.json", size=MAX_MANIFEST, sha256=release.manifest_sha256)
        return self._checked(file)

    def chunks(self, wheel: WheelFile) -> Generator[bytes]:
        """Read a wheel piece by piece, unchecked: the caller compares size and digest with those of `admitted`."""
        return iter_chunks(self._source, f"targets/{wheel.path}")

    def admitted(self, wheel: WheelFile, release: Release) -> SignedFile:
        """Return the size and digest that a wheel of a release must have.

        For a library, the driver's signed manifest states the digest.

        Raises:
            TrustError: No signature covers it.
        """
        file = SignedFile(path=wheel.path, size=wheel.size, sha256=wheel.sha256)
        if wheel.file in {own.file for own in release.wheels}:
            return self._trust.admit(file)
        if (wheel.file, wheel.sha256) not in {
            (dependency.file, dependency.sha256) for dependency in self.manifest(release).dependencies
        }:
            text = f"{release.plugin} {release.version} does not name {wheel.file} with the digest {wheel.sha256}"
            raise TrustError(text, hint="tell the registry's operator; nothing was installed")
        return file

    def publisher(self, project: str) -> Publisher | None:
        """Return the publisher of a project; None if the host's own list covers its files. Raises as `catalog`."""
        return self._trust.publishers().get(project)

    def url(self, path: str) -> str:
        """Return the location of a file, for messages."""
        return f"{self.location.rstrip('/')}/targets/{path}"

    def document(self, path: str) -> bytes | None:
        """Read a readme, a changelog or a conformance report; None if there is none.

        Raises:
            IntegrityError: It differs from the signed file.
            RegistryError: The registry cannot be reached.
        """
        try:
            return self._admitted(path, MAX_DOCUMENT)
        except RegistryError as error:
            if not is_missing(error) and not (isinstance(error, TrustError) and error.code == UNSIGNED):
                raise
            return None

    def index_file(self, name: str) -> bytes:
        """Read a file of the index, undecoded. Raises as `catalog`."""
        return self._admitted(name, MAX_INDEX)

    def refuse_newer(self, name: str, data: bytes) -> None:
        """Refuse a file of the index that could not be read, if its version is the reason. Raises IndexInvalidError."""
        from dragoman_api.file_versions import refuse_newer

        refuse_newer(self.url(name), data, member=f"{name}_version", kind=IndexInvalidError)

    def _admitted(self, path: str, limit: int) -> bytes:
        return self._checked(SignedFile(path=path, size=limit))

    def _checked(self, file: SignedFile) -> bytes:
        admitted = self._trust.admit(file)
        data = read(self._source, f"targets/{admitted.path}", limit=admitted.size)
        if admitted.sha256 is not None and (actual := hashlib.sha256(data).hexdigest()) != admitted.sha256:
            raise changed(self.url(admitted.path), admitted.sha256, actual)
        return data


def _held_back(catalog: Catalog, quarantined: Mapping[str, Mapping[str, str]]) -> Catalog:
    """Apply the advisories' quarantines in place of the catalog's, since a different key signs the advisories."""

    def wrong(release: Release) -> bool:
        return release.quarantined != held_against(quarantined, release.project, release.version)

    def judged(release: Release) -> Release:
        reason = held_against(quarantined, release.project, release.version)
        return replace(release, quarantined=reason) if wrong(release) else release

    if not any(wrong(release) for project in catalog.projects for release in project.releases):
        return catalog
    projects = (replace(project, releases=tuple(map(judged, project.releases))) for project in catalog.projects)
    return replace(catalog, projects=tuple(projects))


def changed(where: str, expected: str, actual: str) -> IntegrityError:
    """Build the error for bytes that differ from their promised digest."""
    return IntegrityError(
        f"{where} was changed after publication: expected {expected}, got {actual}",
        hint="dragoman registry verify FOLDER",
        details={"path": where, "expected": expected, "actual": actual},
    )


def _invalid(where: str, faults: list[str]) -> IndexInvalidError:
    summary = "; ".join(faults[:10]) + (f"; and {len(faults) - 10} more" if len(faults) > 10 else "")
    hint = "dragoman registry verify FOLDER"
    return IndexInvalidError(f"{where} is not valid: {summary}", hint=hint, details={"path": where})


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a registry.

    Attributes:
        types: Maps database types to the project each is bound to; None if they were never read.
        names: Plugins and projects; None if they were never read.
    """

    types: dict[str, str] | None = None
    names: tuple[str, ...] | None = None


class Memory:
    """A registry's last trusted claims, in a file, for times when it cannot be trusted. Every method blocks."""

    def __init__(self, file: Path) -> None:
        """Set the file; it need not exist."""
        self._file = file

    def keep_types(self, types: Mapping[str, str]) -> None:
        """Keep the type bindings, which the caller has just verified."""
        self._keep(types=dict(types))

    def keep_names(self, names: Iterable[str]) -> None:
        """Keep the names of plugins and projects, which the caller has just verified."""
        self._keep(names=tuple(sorted(set(names))))

    def claims_type(self, kind: str) -> bool | None:
        """Check whether it claims a database type; None if unknown."""
        types = self._read().types
        return None if types is None else kind in types

    def claims_name(self, name: str) -> bool | None:
        """Check whether it claims a plugin or project; None if unknown."""
        claims = self._read()
        return None if claims.names is None else name in claims.names or name in (claims.types or {}).values()

    def _read(self) -> Claims:
        try:
            return _claims(read_plain(self._file, limit=MAX_CLAIMS))
        except OSError:
            return Claims()

    def _keep(self, **changes: Any) -> None:
        claims, replaced = self._read(), msgspec.structs.replace
        if replaced(claims, **changes) != claims:
            with suppress(OSError):  # a read-only home keeps its old record
                change(self._file, lambda data: msgspec.json.encode(replaced(_claims(data), **changes)), mode=0o644)


def _claims(data: bytes) -> Claims:
    try:
        return decode(data, Claims) if data else Claims()
    except Unreadable:
        return Claims()  # unknown claims exclude no name
