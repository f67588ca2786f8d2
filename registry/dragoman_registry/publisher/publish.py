"""Makes a registry: a signed folder of static files in which a published version never changes."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from dragoman_api.errors import ConfigurationError, PluginNotFoundError, RegistryError, WheelRejectedError
from dragoman_registry.files import locked
from dragoman_registry.index.catalog import Catalog, Release
from dragoman_registry.index.registry import Registry
from dragoman_registry.isolation import Apart
from dragoman_registry.names import PLUGIN, PROJECT, TYPE
from dragoman_registry.names import PUBLISHER as PUBLISHER_NAME
from dragoman_registry.trust import Publisher
from dragoman_registry.trust.keys import Keys, beside, read_public
from dragoman_registry.trust.repository import Repository, exists
from dragoman_registry.trust.roles import (
    ONLINE,
    PUBLISHER,
    YEAR,
    delegated,
    patterns,
    projects_of,
    publisher_of,
    roles_of,
)
from dragoman_registry.validation import Fault
from dragoman_registry.wheels.checks import inspect
from dragoman_registry.wheels.metadata_checks import WheelReport
from dragoman_registry.wheels.wheel_file import project_of

from . import interrupted_writes
from .folder import Own, add_digest_names, write_index, write_wheel, writing
from .merge import immutable, merged, releases, wheels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from tuf.api.metadata import Metadata, TargetFile, Targets

Status = Literal["active", "yanked", "deprecated", "quarantined"]

OWNER = f"{PUBLISHER}owner"
"""Role of an operator who holds the registry's keys and publishes there as well."""
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
    with (_looking if dry_run else _working)(to, keys, sign, now) as desk:
        found, catalog, faults = desk.look(wheels)
        refuse(faults)
        if not dry_run:
            desk.publish(found, beside or {}, catalog)
    names = {path.name for path in found}
    return [release for release in releases(catalog) if names & {wheel.file for wheel in release.wheels}]


def look(wheels: Iterable[Path], *, to: Path) -> list[Fault]:
    """Find the faults for which `build` would refuse these wheels together, each with its file. Raises as `build`."""
    with _looking(to, None, None, None) as desk:
        return desk.look(wheels)[2]


def refuse(faults: list[Fault]) -> None:
    """Raise WheelRejectedError with every fault, if there are any."""
    if faults:
        shown = f"nothing was published: {faults[0]}" + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
        pairs = tuple((fault.code, str(fault)) for fault in faults)
        raise WheelRejectedError(shown, hint="correct the wheel and build it again", faults=pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The result of accepting publishers' submissions.

    Attributes:
        releases: The new releases.
        refused: Every fault of the refused submissions, which stay where they are.
    """

    releases: list[Release]
    refused: list[Fault]


def accept(
    path: Path, *, keys: Path | None = None, uploads: Iterable[Path] = (), now: datetime | None = None
) -> list[Release]:
    """Accept submissions as `accept_each` does, and raise if any publisher was refused.

    Raises:
        WheelRejectedError: A publisher was refused; the error lists every fault. The other submissions are accepted.
    """
    done = accept_each(path, keys=keys, uploads=uploads, now=now)
    refuse(done.refused)
    return done.releases


def accept_each(
    path: Path, *, keys: Path | None = None, uploads: Iterable[Path] = (), now: datetime | None = None
) -> Acceptance:
    """Check the publishers' new submissions, then add them to the index, snapshot and timestamp.

    Each publisher is judged alone, with the wheels in a separate process, so one submission cannot block another.

    Args:
        path: The registry.
        keys: Folder of keys; by default beside the registry.
        uploads: Wheels that arrived another way; those that a publisher signed are added.
        now: The time of publication.

    Raises:
        ConfigurationError: A key is missing. Otherwise raises as `build`.
    """
    with Apart() as apart, _working(path, keys, None, now) as desk:
        desk.repository.expect(*ONLINE)
        before, touched = {wheel.file for wheel in wheels(desk.catalog)}, set[str]()
        catalog, arrived = desk.catalog, {upload.name: upload for upload in uploads}
        refused = [Fault("unreadable", reason, file) for file, reason in desk.repository.unreadable().items()]
        for role, metadata in desk.repository.pending().items():
            found, following, faults = desk.judge(role, metadata, arrived, catalog, apart)
            if faults:
                refused += faults
                continue
            desk.record(found)
            for file, report in found.items():
                write_wheel(path, file, report, {})
                touched.add(project_of(file.name))
            desk.repository.adopt(role, metadata)
            catalog = following
        write_index(path, desk.repository, catalog, changed=touched)
    new = [one for one in releases(catalog) if {wheel.file for wheel in one.wheels} - before]
    return Acceptance(releases=new, refused=refused)


def mark(
    path: Path,
    *,
    project: str,
    version: str,
    status: Status,
    reason: str = "",
    replaced_by: str = "",
    keys: Path | None = None,
    now: datetime | None = None,
) -> Release:
    """Yank, deprecate or quarantine a version, or offer it again.

    Raises:
        PluginNotFoundError: There is no such version.
        ConfigurationError: The change needs a reason and has none, or a key is missing.
    """
    if status != "active" and not reason:
        raise ConfigurationError(f"marking {project} {version} as {status} needs a reason", hint="--reason TEXT")
    if replaced_by:
        PLUGIN.check(replaced_by)
    with _working(path, keys, None, now) as desk:
        desk.repository.expect(*ONLINE, "advisories")
        found = [r for r in releases(desk.catalog) if project in (r.project, r.plugin) and r.version == version]
        if not found:
            raise PluginNotFoundError(f"{path} has no {project} {version}", hint="dragoman plugins browse")
        marked = replace(
            found[0],
            yanked=reason if status == "yanked" else None,
            quarantined=reason if status == "quarantined" else None,
            deprecated=reason if status == "deprecated" else None,
            replaced_by=replaced_by if status == "deprecated" else "",
        )
        projects = tuple(
            replace(entry, releases=tuple(marked if release is found[0] else release for release in entry.releases))
            for entry in desk.catalog.projects
        )
        write_index(path, desk.repository, replace(desk.catalog, projects=projects))
    return marked


def add_publisher(
    path: Path,
    name: str,
    *,
    key: Path,
    projects: Iterable[str],
    types: Collection[str] = (),
    rebind: bool = False,
    keys: Path | None = None,
) -> Publisher:
    """Let the holder of a key publish projects, and bind database types to the first project.

    An existing publisher keeps their projects, and this key replaces the earlier one. Their releases are offered
    again once they have signed them with the new key.

    Args:
        path: The registry.
        name: The publisher's name: lower-case letters, digits and dashes.
        key: The file with the publisher's public key.
        projects: Further distributions that they may publish.
        types: Database types that the first project serves from now on.
        rebind: Take the types away from the projects that serve them.
        keys: Folder of keys; by default beside the registry.

    Raises:
        ConfigurationError: The name or key is invalid, or a project or type belongs to another.
    """
    named = [PROJECT.check(re.sub(r"[-_.]+", "-", project).lower()) for project in projects]
    types = list(map(TYPE.check, types))
    role, public = f"{PUBLISHER}{PUBLISHER_NAME.check(name)}", read_public(key)
    with _working(path, keys, None, None) as desk:
        desk.repository.expect("targets", "snapshot", "timestamp")
        known = delegated(desk.repository.targets).get(role)
        named = list(dict.fromkeys([*named, *(projects_of(known) if known else [])]))
        if not named:
            raise ConfigurationError(f"{name} has no project to publish", hint="--project NAME-OF-THE-DISTRIBUTION")
        for project in named:
            if (other := publisher_of(desk.repository.targets, project)) not in (None, role):
                holder = str(other).removeprefix(PUBLISHER)
                raise ConfigurationError(f"{project} is published by {holder}", hint="choose another project")
        held = {kind: desk.types[kind] for kind in types if desk.types.get(kind, named[0]) != named[0]}
        if held and not rebind:
            said = ", ".join(f"the type {kind!r} is served by {holder}" for kind, holder in held.items())
            raise ConfigurationError(said, hint=f"--rebind makes {named[0]} serve it from now on")
        desk.repository.delegate(role, public, [pattern for project in named for pattern in patterns(project)])
        bound = desk.types | dict.fromkeys(types, named[0])
        write_index(path, desk.repository, desk.catalog, types=bound)
    return Publisher(name=name, keys=(public.keyid,))


def sign(
    path: Path,
    *,
    keys: Path | None = None,
    sign: Path | None = None,
    rotate: Iterable[str] = (),
    days: int | None = None,
    now: datetime | None = None,
) -> list[str]:
    """Renew the roles that expire soon and whose keys are available; replace the keys of roles.

    Args:
        path: The registry.
        keys: Folder of keys; by default beside the registry.
        sign: A publisher's key: it signs their accepted role again, which then waits for `accept`.
        rotate: Roles that get new keys.
        days: New lifetime in days of the registry's own metadata.
        now: The time of the signatures.

    Returns:
        The names of the signed roles.

    Raises:
        ConfigurationError: A role is unknown, or a key is missing.
    """
    with _working(path, keys, sign, now) as desk:
        repository = desk.repository
        rotated = list(rotate)
        for role in rotated:
            repository.rotate(role)
        again = [name for name in repository.names() if name.startswith(PUBLISHER) and repository.can_sign(name)]
        for name in again if sign or OWNER in again else ():
            repository.resign(name)
        waiting = repository.pending() if repository.can_sign(*ONLINE) and not sign else {}
        for name in set(waiting) & set(again):
            repository.adopt(name, waiting[name])
        renewed = repository.renew(days=days)
        add_digest_names(path, repository, {project.project for project in desk.catalog.projects})
        repository.commit()
        return [*rotated, *(name for name in [*again, *renewed] if name not in rotated)]


def read_catalog(path: Path) -> Catalog:
    """Read the signed catalog of a registry on disk; empty if there is no registry yet.

    Raises:
        IndexInvalidError: A file is missing or malformed.
        TrustError: A signature is invalid.
        IntegrityError: The catalog differs from the signed one.
    """
    return _Desk(path, None, None, None).catalog


def published(path: Path) -> dict[str, str]:
    """Map the file name of every wheel in a registry to its digest; empty if there is no registry yet."""
    return {wheel.file: wheel.sha256 for wheel in wheels(read_catalog(path))}


@contextmanager
def _looking(path: Path, keys: Path | None, sign: Path | None, now: datetime | None) -> Iterator[_Desk]:
    with writing(path):
        yield _Desk(path, keys, sign, now)


@contextmanager
def _working(path: Path, keys: Path | None, sign: Path | None, now: datetime | None) -> Iterator[_Desk]:
    """Lock the registry, remove the leftovers of killed work, and record this work so that it leaves none.

    Raises:
        ConfigurationError: There is no registry in the folder; nothing is written there.
    """
    if not exists(path) and not _unsigned(path):
        raise ConfigurationError(f"{path} is not a registry", hint="make one: dragoman registry init FOLDER")
    with writing(path), locked(path):
        desk = _Desk(path, keys, sign, now)
        if interrupted_writes.is_unfinished(path):
            interrupted_writes.sweep(path, interrupted_writes.in_use(path, desk.catalog, desk.repository))
            if desk.repository.can_sign(*ONLINE):  # killed work may have left pages newer than the catalog
                every = {project.project for project in desk.catalog.projects}
                write_index(path, desk.repository, desk.catalog, types=desk.types, changed=every)
        with interrupted_writes.recorded(path):
            yield desk


def _unsigned(path: Path) -> bool:
    return (path / "targets").is_dir() and any((path / "targets").iterdir())


class _Desk:
    """One operation on a registry: its repository, and the catalog and types as they were at the start."""

    def __init__(self, path: Path, keys: Path | None, sign: Path | None, now: datetime | None) -> None:
        self._path = path
        self.stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.catalog, self.types = Catalog(), dict[str, str]()
        if exists(path):
            self.repository = Repository(path, Keys(keys or beside(path), *([sign] if sign else [])), now=now)
            registry = Registry("registry", str(path), trust=Own(self.repository))
            self.catalog, self.types = registry.catalog(), registry.types()
        elif _unsigned(path):
            hint = "publish its wheels in a new registry: dragoman registry build WHEELS --to FOLDER"
            raise RegistryError(f"{path} is an unsigned registry", hint=hint, code="not-signed")
        self._by_key = sign is not None

    def look(self, wheels: Iterable[Path]) -> tuple[dict[Path, WheelReport], Catalog, list[Fault]]:
        """Inspect wheels, and return the catalog extended with them if there is no fault."""
        found = {path: inspect(path, native=True) for path in wheels}
        faults = [replace(fault, where=path.name) for path, report in found.items() for fault in report.faults]
        faults += [*immutable(self.catalog, found), *self.claims(found)]
        catalog, more = (self.catalog, []) if faults else merged(self.catalog, found, self.stamp)
        return found, catalog, [*faults, *more]

    def claims(self, found: Mapping[Path, WheelReport]) -> Iterator[Fault]:
        """Find projects and types that do not belong to the signer."""
        publishers = roles_of(self.repository.targets) if exists(self._path) else {}
        for path, report in found.items():
            if report.manifest is None:
                continue
            project = project_of(path.name)
            role = publishers.get(project) if exists(self._path) else OWNER
            mine = role in (None, OWNER) and not self._by_key
            if role is None and not (mine and self.repository.can_sign("targets")):
                reason = "This project has no publisher; run: dragoman registry add-publisher FOLDER NAME"
                yield Fault("no-publisher", f"{reason} --key KEY.pub --project {project}.", path.name)
            for kind in report.manifest.types:
                holder = self.types.get(kind.name)
                if holder not in (None, project):
                    yield Fault("type-taken", f"The type {kind.name!r} is served by {holder}.", path.name)
                if holder is None and exists(self._path) and not (mine and self.repository.can_sign("targets")):
                    reason = f"The type {kind.name!r} is not bound to {project}; run: dragoman registry add-publisher"
                    yield Fault("type-not-bound", f"{reason} FOLDER NAME --type {kind.name}.", path.name)

    def record(self, found: Mapping[Path, WheelReport]) -> None:
        """Record which files the wheels add, before any is written."""
        names = []
        for path, report in found.items():
            project, version = project_of(path.name), report.name.version if report.name else ""
            wheel = f"targets/wheels/{project}/{path.name}"
            names += [wheel, *(f"{wheel}.{kind}" for kind in ("metadata", "driver.json", "report.json"))]
            names += [f"targets/docs/{project}/{version}/{name}.md" for name in ("README", "CHANGELOG")]
            names += [f"targets/simple/{project}/index.{kind}" for kind in ("html", "v1+json")]
        interrupted_writes.record(self._path, names)

    def publish(
        self, found: Mapping[Path, WheelReport], more: Mapping[str, Mapping[str, bytes]], catalog: Catalog
    ) -> None:
        """Write wheels, sign for their publishers, and accept them if the registry's keys are available."""
        repository, types = self.repository, dict(self.types)
        drivers = {path: project_of(path.name) for path, report in found.items() if report.manifest is not None}
        if new := sorted(set(drivers.values()) - roles_of(repository.targets).keys()):
            repository.extend(OWNER, [pattern for project in new for pattern in patterns(project)])
        for path, project in drivers.items():
            manifest = found[path].manifest
            types |= {kind.name: project for kind in manifest.types} if manifest else {}
        publishers = roles_of(repository.targets)
        signed: dict[str, dict[str, bytes]] = {publishers[project]: {} for project in drivers.values()}
        for role in signed:
            repository.expect_publisher(role)
        self.record(found)
        for path, report in found.items():
            files = write_wheel(self._path, path, report, more.get(path.name, {}))
            if path in drivers:
                signed[publishers[drivers[path]]] |= files
        interrupted_writes.record(
            self._path, [f"metadata/{repository.next_version(role)}.{role}.json" for role in signed]
        )
        waiting = [role for role, files in signed.items() if repository.submit(role, files)]
        if repository.can_sign(*ONLINE):
            there = repository.pending()
            for role in waiting:
                repository.adopt(role, there[role])
            changed = {project_of(path.name) for path in found}
            write_index(self._path, repository, catalog, types=types if types != self.types else None, changed=changed)

    def judge(
        self, role: str, metadata: Metadata[Targets], arrived: Mapping[str, Path], catalog: Catalog, apart: Apart
    ) -> tuple[dict[Path, WheelReport], Catalog, list[Fault]]:
        """Judge a publisher's submission, and return the catalog extended with it if there is no fault."""
        found: dict[Path, WheelReport] = {}
        try:
            faults = [Fault(code, reason, role) for code, reason in self.repository.problems(role, metadata)]
            if not faults:
                found, faults = self._signed_wheels(metadata.signed.targets, arrived, apart)
            faults = faults or [*immutable(catalog, found), *self.claims(found)]
            following, conflicts = (catalog, []) if faults else merged(catalog, found, self.stamp)
        except Exception as error:  # noqa: BLE001 - one publisher's bytes must not stop the others
            return {}, catalog, [Fault("unreadable", f"It cannot be checked: {type(error).__name__}: {error}.", role)]
        return found, following, [*faults, *conflicts]

    def _signed_wheels(
        self, waiting: Mapping[str, TargetFile], arrived: Mapping[str, Path], apart: Apart
    ) -> tuple[dict[Path, WheelReport], list[Fault]]:
        """Inspect the signed wheels of a publisher that await acceptance, and the libraries they name."""
        there = {wheel.file for wheel in wheels(self.catalog)}
        found: dict[Path, WheelReport] = {}
        faults: list[Fault] = []
        for target in waiting:
            folder, _, name = target.rpartition("/")
            if name.endswith(".whl") and name not in there:
                path = self._path / "targets" / target
                path = path if path.is_file() else arrived.get(name, path)
                report = _looked_at(path, apart, driver=True)
                faults += [replace(fault, where=name) for fault in report.faults]
                if not report.faults and report.sha256 != waiting[target].hashes["sha256"]:
                    faults.append(Fault("digest-mismatch", f"Its digest {report.sha256} is not the signed one.", name))
                beside = waiting.get(f"{target}.driver.json")
                if beside is None or beside.length != len(report.manifest_data):
                    faults.append(Fault("manifest", f"{folder}/{name}.driver.json is not signed with it.", name))
                found[path] = report
        for report in list(found.values()):
            for dependency in report.manifest.dependencies if report.manifest else ():
                path = self._path / "targets/wheels" / project_of(dependency.file) / dependency.file
                path = path if path.is_file() else arrived.get(dependency.file, path)
                if dependency.file not in there and path.is_file():
                    found[path] = _looked_at(path, apart, driver=False)
                    faults += [replace(fault, where=path.name) for fault in found[path].faults]
        return found, faults


def _looked_at(path: Path, apart: Apart, *, driver: bool) -> WheelReport:
    """Inspect a wheel in a separate process; if that has to be stopped, report it as a fault of the wheel."""
    try:
        return apart.call(inspect, path, native=True, driver=driver)
    except RegistryError as error:
        return WheelReport(faults=[Fault(error.code, f"The check was stopped: {error.message}.")])
