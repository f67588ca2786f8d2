"""Publishes wheels in a registry: a signed folder of static files in which a published version never changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from dragoman_api.errors import ConfigurationError, PluginNotFoundError
from dragoman_api.wording import failure
from dragoman_registry.files import locked
from dragoman_registry.index.catalog import Catalog, Release
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.isolation import Apart
from dragoman_registry.names import PLUGIN, PROJECT, TYPE
from dragoman_registry.names import PUBLISHER as PUBLISHER_NAME
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.roles import ONLINE, PUBLISHER, YEAR, delegated, patterns, projects_of, roles_of
from dragoman_registry.trust.signers import read_public
from dragoman_registry.trust.trust import Publisher
from dragoman_registry.trust.tuf_repository import Repository, exists
from dragoman_registry.validation import Fault, rejected
from dragoman_registry.wheels.archive_checks import inspect, inspect_apart
from dragoman_registry.wheels.packaging_parsers import project_name
from dragoman_registry.wheels.wheel_file import project_of

from .catalog_merge import immutable, merged
from .edit import OWNER, Edit, editing, reading, record_files, refuse_unsigned
from .folder import Own, add_digest_names, write_index, write_wheel, writing
from .index_records import Index

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from tuf.api.metadata import Metadata, TargetFile, Targets

    from dragoman_registry.wheels.metadata_checks import WheelReport

_OWN = {"metadata", "targets"}
Status = Literal["active", "yanked", "deprecated", "quarantined"]


def init(path: Path, *, keys: Path | None = None, days: int = YEAR, now: datetime | None = None) -> str:
    """Make an empty registry, whose own metadata holds for `days`, and its keys, by default beside it.

    Returns:
        The digest of its root, by which users add it.

    Raises:
        ConfigurationError: The folder holds other files, or the keys would be inside it.
        RegistryError: It cannot be written (code ``registry-not-written``).
    """
    _begin(path, keys, days=days, now=now)
    return Repository(path, Keys(keys or beside(path))).root_digest


def _begin(path: Path, keys: Path | None, *, days: int = YEAR, now: datetime | None) -> None:
    """Make an empty registry unless there is one."""
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
                write_index(path, Repository(path, folder, now=now, new_days=days), Index.of(Catalog()), types={})


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
        _begin(to, keys, now=now)
    with (reading if dry_run else editing)(to, keys, sign, now) as edit:
        reports, index, faults = _judge(edit, wheels)
        refuse(faults)
        if not dry_run:
            _publish(edit, reports, beside or {}, index)
    return _releases_of(index, {path.name for path in reports})


def _releases_of(index: Index, files: Collection[str]) -> list[Release]:
    """List the releases of drivers that any of these wheels belongs to."""
    projects = (index.project(name) for name in sorted({project_of(file) for file in files}))
    every = (release for project in projects if project is not None for release in project.releases)
    return [release for release in every if any(wheel.file in files for wheel in release.wheels)]


def look(wheels: Iterable[Path], *, to: Path) -> list[Fault]:
    """Find the faults for which `build` would refuse these wheels together, each with its file. Raises as `build`."""
    with reading(to) as edit:
        return _judge(edit, wheels)[2]


def refuse(faults: list[Fault]) -> None:
    """Raise WheelRejectedError with every fault, if there are any."""
    if faults:
        raise rejected("nothing was published", faults, hint="correct the wheel and build it again")


def published(path: Path) -> dict[str, str]:
    """Map the file name of every wheel in a registry to its digest; empty if there is no registry yet.

    Raises:
        IndexInvalidError: A file is missing or malformed.
        TrustError: A signature is invalid.
        IntegrityError: The catalog differs from the signed one.
    """
    if not exists(path):
        refuse_unsigned(path)
        return {}
    repository = Repository(path, Keys(beside(path)))
    return Registry("registry", str(path), trust=Own(repository)).digests()


def _judge(edit: Edit, wheels: Iterable[Path]) -> tuple[dict[Path, WheelReport], Index, list[Fault]]:
    """Inspect wheels, and return the index extended with them if there is no fault."""
    reports = {path: inspect(path, native=True) for path in wheels}
    faults = [replace(fault, where=path.name) for path, report in reports.items() for fault in report.faults]
    faults += [*immutable(edit.index, reports), *edit.claims(reports)]
    index, conflicts = (edit.index, []) if faults else merged(edit.index, reports, edit.stamp)
    return reports, index, [*faults, *conflicts]


def _publish(
    edit: Edit, reports: Mapping[Path, WheelReport], side_files: Mapping[str, Mapping[str, bytes]], index: Index
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
        repository.check_publisher(role)
    if accepts := repository.can_sign(*ONLINE):
        repository.expect(*ONLINE)
    edit.record(reports)
    for path, report in reports.items():
        files = write_wheel(edit.path, path, report, side_files.get(path.name, {}))
        if path in drivers:
            signed[publishers[drivers[path]]] |= files
    record_files(edit.path, [f"metadata/{repository.next_version(role)}.{role}.json" for role in signed])
    waiting = [role for role, files in signed.items() if repository.submit(role, files)]
    if accepts:
        pending = repository.pending()
        for role in waiting:
            repository.adopt(role, pending[role])
        changed = {project_of(path.name) for path in reports}
        write_index(edit.path, repository, index, types=types if types != edit.types else None, changed=changed)


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
        ConfigurationError: The change needs a reason and has none, a key is missing, or the version is quarantined,
            which only `active` lifts.
    """
    if status != "active" and not reason:
        raise ConfigurationError(f"marking {project} {version} as {status} needs a reason", hint="--reason TEXT")
    if replaced_by:
        PLUGIN.check(replaced_by)
    with editing(path, keys, now=now) as edit:
        edit.repository.expect(*ONLINE, "advisories")
        names = [row.project for row in edit.index.rows.values() if project in (row.project, row.plugin)]
        drivers = [driver for name in names if (driver := edit.index.project(name)) is not None]
        matches = [(driver, r) for driver in drivers for r in driver.releases if r.version == version]
        if not matches:
            raise PluginNotFoundError(f"{path} has no {project} {version}", hint="dragoman plugins browse")
        [(driver, release), *_] = matches
        quarantine = release.quarantined
        if quarantine is not None and status in ("yanked", "deprecated"):
            hint = f"lift the quarantine first: dragoman registry mark {path} {project} {version} active"
            raise ConfigurationError(f"{project} {version} is quarantined ({quarantine})", hint=hint)
        marked = replace(
            release,
            yanked=reason if status == "yanked" else None,
            quarantined=reason if status == "quarantined" else None,
            deprecated=reason if status == "deprecated" else None,
            replaced_by=replaced_by if status == "deprecated" else "",
        )
        following = replace(driver, releases=tuple(marked if r is release else r for r in driver.releases))
        write_index(path, edit.repository, edit.index.with_drivers([following]))
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
    project_names = [PROJECT.check(project_name(project)) for project in projects]
    types = list(map(TYPE.check, types))
    role, public = f"{PUBLISHER}{PUBLISHER_NAME.check(name)}", read_public(key)
    with editing(path, keys) as edit:
        edit.repository.expect("targets", "snapshot", "timestamp")
        delegation = delegated(edit.repository.targets).get(role)
        project_names = list(dict.fromkeys([*project_names, *(projects_of(delegation) if delegation else [])]))
        if not project_names:
            raise ConfigurationError(f"{name} has no project to publish", hint="--project NAME-OF-THE-DISTRIBUTION")
        publishers = roles_of(edit.repository.targets)
        for project in project_names:
            if (other := publishers.get(project)) not in (None, role):
                holder = str(other).removeprefix(PUBLISHER)
                raise ConfigurationError(f"{project} is published by {holder}", hint="choose another project")
        holders = {
            kind: edit.types[kind] for kind in types if edit.types.get(kind, project_names[0]) != project_names[0]
        }
        if holders and not rebind:
            message = ", ".join(f"the type {kind!r} is served by {holder}" for kind, holder in holders.items())
            raise ConfigurationError(message, hint=f"--rebind makes {project_names[0]} serve it from now on")
        edit.repository.delegate(role, public, [pattern for project in project_names for pattern in patterns(project)])
        bound = edit.types | dict.fromkeys(types, project_names[0])
        write_index(path, edit.repository, edit.index, types=bound)
    return Publisher(name=name, keys=(public.keyid,))


def sign(
    path: Path,
    *,
    keys: Path | None = None,
    sign: Path | None = None,
    rotate: Iterable[str] = (),
    new_keys: Sequence[Path] = (),
    days: int | None = None,
    now: datetime | None = None,
) -> list[str]:
    """Renew the roles that expire soon and whose keys are available; replace the keys of roles.

    A publisher's key signs their accepted role again, which then waits for `accept`. `days` is the new lifetime of the
    registry's own metadata, and `new_keys` are files of the keys that a replaced role gets, which are made otherwise.

    Raises:
        ConfigurationError: A role is unknown, or a key is missing, does not open, or belongs to another role.
    """
    with editing(path, keys, sign, now) as edit:
        repository = edit.repository
        rotated = list(rotate)
        for role in rotated:
            repository.rotate(role, new_keys)
        again = [name for name in repository.names() if name.startswith(PUBLISHER) and repository.can_sign(name)]
        for name in again if sign or OWNER in again else ():
            repository.resign(name)
        waiting = repository.pending() if repository.can_sign(*ONLINE) and not sign else {}
        for name in set(waiting) & set(again):
            repository.adopt(name, waiting[name])
        renewed = repository.renew(days=days)
        add_digest_names(path, repository, set(edit.index.records))
        repository.commit()
        return [*rotated, *(name for name in [*again, *renewed] if name not in rotated)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The result of accepting publishers' submissions."""

    releases: list[Release]
    refused: list[Fault]


def accept(path: Path, *, keys: Path | None = None, uploads: Iterable[Path] = ()) -> Acceptance:
    """Check the publishers' new submissions, then add them to the index, snapshot and timestamp.

    Each publisher is judged alone, with the wheels in a separate process, so one submission cannot block another.

    Raises:
        ConfigurationError: A key is missing. Otherwise raises as `build`.
    """
    with Apart() as apart, editing(path, keys) as edit:
        edit.repository.expect(*ONLINE)
        index, touched, accepted = edit.index, set[str](), set[str]()
        arrived = {upload.name: upload for upload in uploads}
        refused = [Fault("unreadable", reason, file) for file, reason in edit.repository.unreadable().items()]
        for role, metadata in edit.repository.pending().items():
            reports, following, faults = _judge_submission(edit, role, metadata, arrived, index, apart)
            if faults:
                refused += faults
                continue
            edit.record(reports)
            for file, report in reports.items():
                write_wheel(path, file, report, {})
                touched.add(project_of(file.name))
            accepted |= {file.name for file in reports if not _is_published(index, file.name)}
            edit.repository.adopt(role, metadata)
            index = following
        write_index(path, edit.repository, index, changed=touched)
    return Acceptance(releases=_releases_of(index, accepted), refused=refused)


def _is_published(index: Index, file: str) -> bool:
    return file in {wheel.file for wheel in index.wheels(project_of(file))}


def _judge_submission(
    edit: Edit, role: str, metadata: Metadata[Targets], arrived: Mapping[str, Path], index: Index, apart: Apart
) -> tuple[dict[Path, WheelReport], Index, list[Fault]]:
    """Judge a publisher's submission, and return the index extended with it if there is no fault."""
    reports: dict[Path, WheelReport] = {}
    try:
        faults = [Fault(code, reason, role) for code, reason in edit.repository.problems(role, metadata)]
        if not faults:
            reports, faults = _signed_wheels(edit, metadata.signed.targets, arrived, apart)
        faults = faults or [*immutable(index, reports), *edit.claims(reports)]
        following, conflicts = (index, []) if faults else merged(index, reports, edit.stamp)
    except Exception as error:  # noqa: BLE001 - one publisher's bytes must not stop the others
        return {}, index, [Fault("unreadable", f"It cannot be checked: {failure(error)}.", role)]
    return reports, following, [*faults, *conflicts]


def _signed_wheels(
    edit: Edit, waiting: Mapping[str, TargetFile], arrived: Mapping[str, Path], apart: Apart
) -> tuple[dict[Path, WheelReport], list[Fault]]:
    """Inspect the signed wheels of a publisher that await acceptance, and the libraries they name."""
    reports: dict[Path, WheelReport] = {}
    faults: list[Fault] = []
    for target in waiting:
        folder, _, name = target.rpartition("/")
        if name.endswith(".whl") and not _is_published(edit.index, name):
            path = edit.path / "targets" / target
            path = path if path.is_file() else arrived.get(name, path)
            report = inspect_apart(apart, path, native=True, driver=True)
            faults += [replace(fault, where=name) for fault in report.faults]
            if not report.faults and report.sha256 != waiting[target].hashes["sha256"]:
                faults.append(Fault("digest-mismatch", f"Its digest {report.sha256} is not the signed one.", name))
            beside = waiting.get(f"{target}.driver.json")
            if beside is None or beside.hashes.get("sha256") != sha256(report.manifest_data).hexdigest():
                faults.append(Fault("manifest", f"{folder}/{name}.driver.json is not signed with it.", name))
            reports[path] = report
    for report in list(reports.values()):
        for dependency in report.manifest.dependencies if report.manifest else ():
            path = edit.path / "targets/wheels" / project_of(dependency.file) / dependency.file
            path = path if path.is_file() else arrived.get(dependency.file, path)
            if not _is_published(edit.index, dependency.file) and path.is_file():
                reports[path] = inspect_apart(apart, path, native=True, driver=False)
                faults += [replace(fault, where=path.name) for fault in reports[path].faults]
    return reports, faults
