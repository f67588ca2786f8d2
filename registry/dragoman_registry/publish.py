"""Making a registry: a signed folder of static files in which a published version never changes."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from dragoman_api.errors import ConfigurationError, PluginNotFoundError, RegistryError, WheelRejectedError

from .files import locked
from .folder import Own, write_index, write_wheel, writing
from .index import Catalog, Registry, project_of
from .merging import immutable, merged, releases, wheels
from .preflight import inspect
from .trust import Publisher
from .trust.keys import Keys, beside, read_public
from .trust.ledger import Ledger, exists
from .trust.roles import (
    ONLINE,
    PUBLISHER,
    YEAR,
    delegated,
    patterns,
    projects_of,
    publisher_of,
)
from .validation import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from .claims import Report
    from .index import Release

Status = Literal["active", "yanked", "deprecated", "quarantined"]

OWNER = f"{PUBLISHER}owner"
"""Role of whoever holds the keys of a registry and publishes there themselves."""
_OWN = {"metadata", "targets"}


def init(path: Path, *, keys: Path | None = None, days: int = YEAR, now: datetime | None = None) -> str:
    """Make an empty registry, and its keys in a folder beside it.

    Args:
        path: The folder.
        keys: Where the private keys go; beside the registry when not given, never inside.
        days: For how many days what the registry says of itself holds before it must be renewed.
        now: The time of the signatures.

    Returns:
        The digest of its root, by which others add it.

    Raises:
        ConfigurationError: The folder holds something else, or the keys would lie in it.
        RegistryError: It cannot be written (code ``registry-not-written``).
    """
    folder = Keys(keys or beside(path))
    with writing(path):
        if not exists(path):
            names = {file.name for file in path.iterdir()} if path.is_dir() else {""}
            if path.exists() and names - _OWN and not names >= _OWN:
                raise ConfigurationError(f"{path} is not empty", hint="dragoman registry init ANOTHER-FOLDER")
            if path.resolve() in (folder.folder.resolve(), *folder.folder.resolve().parents):
                text = f"keys must not lie in {path}, which others read"
                raise ConfigurationError(text, hint="dragoman registry init FOLDER --keys ANOTHER-FOLDER")
            for name in ("metadata", "targets/wheels", "targets/docs"):
                (path / name).mkdir(parents=True, exist_ok=True)
            with locked(path):
                write_index(path, Ledger(path, folder, now=now, new_days=days), Catalog(), types={})
        return Ledger(path, folder).root_digest


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
    """Publish wheels: drivers, and the libraries their closed sets consist of. All of them, or none.

    The publisher of each driver signs for it. Where the registry's own keys are at hand too, it is accepted at once;
    else it waits until `accept`.

    Args:
        wheels: Files; one that is published already with the same bytes is left alone.
        to: A registry, made when it is not there.
        keys: Folder of keys; beside the registry when not given.
        sign: A publisher's key.
        now: When they come in, for builds that can be repeated.
        beside: File name of a driver's wheel → what lies beside it: ``report.json``, ``CHANGELOG.md``.
        dry_run: Only look for faults.

    Returns:
        The releases the wheels belong to.

    Raises:
        WheelRejectedError: With every fault of every wheel; the registry is unchanged.
        ConfigurationError: A key is missing.
        IndexInvalidError: The registry is damaged.
        TrustError: Somebody without the keys changed it.
        RegistryError: It cannot be written; what was published before still is.
    """
    if not dry_run:
        init(to, keys=keys, now=now)
    with writing(to), nullcontext() if dry_run else locked(to):
        desk = _Desk(to, keys, sign, now)
        found, catalog, faults = desk.look(wheels)
        refuse(faults)
        if not dry_run:
            desk.publish(found, beside or {}, catalog)
    names = {path.name for path in found}
    return [release for release in releases(catalog) if names & {wheel.file for wheel in release.wheels}]


def look(wheels: Iterable[Path], *, to: Path) -> list[Fault]:
    """Find what `build` would refuse of wheels that come together, each fault with its file. Raises as `build`."""
    with writing(to):
        return _Desk(to, None, None, None).look(wheels)[2]


def refuse(faults: list[Fault]) -> None:
    """Raise WheelRejectedError with every fault, if there is one."""
    if faults:
        shown = f"nothing was published: {faults[0]}" + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
        pairs = tuple((fault.code, str(fault)) for fault in faults)
        raise WheelRejectedError(shown, hint="correct the wheel and build it again", faults=pairs)


def accept(
    path: Path, *, keys: Path | None = None, uploads: Iterable[Path] = (), now: datetime | None = None
) -> list[Release]:
    """Accept what publishers have signed since: check all of it, then name it in index, snapshot and timestamp.

    Args:
        path: The registry.
        keys: Folder of keys; beside the registry when not given.
        uploads: Wheels that arrived by another way; those that a publisher signed are taken in.
        now: When they come in.

    Returns:
        The releases that are new, of the publishers in whose submission there is no fault.

    Raises:
        WheelRejectedError: With every fault; what other publishers signed is accepted all the same.
        ConfigurationError: A key is missing. Else as `build`.
    """
    with writing(path), locked(path):
        desk = _Desk(path, keys, None, now)
        desk.ledger.expect(*ONLINE)
        before, faults = {wheel.file for wheel in wheels(desk.catalog)}, []
        touched: set[str] = set()
        catalog, arrived = desk.catalog, {upload.name: upload for upload in uploads}
        for role, metadata in desk.ledger.pending().items():
            problems = [Fault(code, reason, role) for code, reason in desk.ledger.problems(role, metadata)]
            found, more = ({}, []) if problems else desk.signed_wheels(role, metadata.signed.targets, arrived)
            problems += more or [*immutable(catalog, found), *desk.claims(found)]
            following, conflicts = (catalog, []) if problems else merged(catalog, found, desk.stamp)
            if problems or conflicts:
                faults += [*problems, *conflicts]
                continue
            for file, report in found.items():
                write_wheel(path, file, report, {})
                touched.add(project_of(file.name))
            desk.ledger.adopt(role, metadata)
            catalog = following
        write_index(path, desk.ledger, catalog, changed=touched)
        refuse(faults)
    return [one for one in releases(catalog) if {wheel.file for wheel in one.wheels} - before]


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
        ConfigurationError: No reason is given for taking it back, or a key is missing.
    """
    if status != "active" and not reason:
        raise ConfigurationError(f"no reason is given why {project} {version} is {status}", hint="--reason TEXT")
    with writing(path), locked(path):
        desk = _Desk(path, keys, None, now)
        desk.ledger.expect(*ONLINE, "advisories")
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
        write_index(path, desk.ledger, replace(desk.catalog, projects=projects))
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
    """Let the holder of a key publish projects, and bind database types to the first of them.

    A publisher who is there already keeps their projects and gets this key in place of the one before. What they
    published is offered again once they have signed it anew.

    Args:
        path: The registry.
        name: What to call them: lower-case letters, digits and dashes.
        key: The file with their public key.
        projects: Distributions they may publish, beside those they may publish already.
        types: Database types that the first project serves from now on.
        rebind: Take types from the projects that serve them.
        keys: Folder of keys; beside the registry when not given.

    Raises:
        ConfigurationError: The name or key is none, a project is another publisher's, or a type another project's.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ConfigurationError(f"{name!r} is no name for a publisher", hint="lower-case letters, digits and dashes")
    role, public, named = f"{PUBLISHER}{name}", read_public(key), [re.sub(r"[-_.]+", "-", p).lower() for p in projects]
    with writing(path), locked(path):
        desk = _Desk(path, keys, None, None)
        desk.ledger.expect("targets", "snapshot", "timestamp")
        known = delegated(desk.ledger.targets).get(role)
        named = list(dict.fromkeys([*named, *(projects_of(known) if known else [])]))
        if not named:
            raise ConfigurationError(f"{name} would publish nothing", hint="--project NAME-OF-THE-DISTRIBUTION")
        for project in named:
            if (other := publisher_of(desk.ledger.targets, project)) not in (None, role):
                holder = str(other).removeprefix(PUBLISHER)
                raise ConfigurationError(f"{project} is published by {holder}", hint="choose another project")
        held = {kind: desk.types[kind] for kind in types if desk.types.get(kind, named[0]) != named[0]}
        if held and not rebind:
            said = ", ".join(f"the type {kind!r} is served by {holder}" for kind, holder in held.items())
            raise ConfigurationError(said, hint=f"--rebind, if {named[0]} is to serve it from now on")
        desk.ledger.delegate(role, public, [pattern for project in named for pattern in patterns(project)])
        bound = desk.types | dict.fromkeys(types, named[0])
        write_index(path, desk.ledger, desk.catalog, types=bound)
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
    """Renew what expires soon and what the keys at hand can sign; replace the keys of roles.

    Args:
        path: The registry.
        keys: Folder of keys; beside the registry when not given.
        sign: A publisher's key: their role is signed anew with it, as it was accepted, and waits for `accept`.
        rotate: Roles that get new keys.
        days: For how many days what the registry says of itself holds from now on.
        now: The time of the signatures.

    Returns:
        The names of the roles that were signed.

    Raises:
        ConfigurationError: A role is unknown, or a key is missing.
    """
    with writing(path), locked(path):
        desk = _Desk(path, keys, sign, now)
        ledger = desk.ledger
        rotated = list(rotate)
        for role in rotated:
            ledger.rotate(role)
        again = [name for name in ledger.names() if name.startswith(PUBLISHER) and ledger.can_sign(name)]
        for name in again if sign or OWNER in again else ():
            ledger.resign(name)
        waiting = ledger.pending() if ledger.can_sign(*ONLINE) and not sign else {}
        for name in set(waiting) & set(again):
            ledger.adopt(name, waiting[name])
        renewed = ledger.renew(days=days)
        ledger.commit()
        return [*rotated, *(name for name in [*again, *renewed] if name not in rotated)]


def read_catalog(path: Path) -> Catalog:
    """Read the signed catalog of a registry on disk; empty where there is no registry yet.

    Raises:
        IndexInvalidError: A file is missing or malformed.
        TrustError: A signature is not in order.
        IntegrityError: The catalog is not the one that was signed.
    """
    return _Desk(path, None, None, None).catalog


def published(path: Path) -> dict[str, str]:
    """Give the digest of every wheel a registry holds, by its file name; none where there is no registry yet."""
    return {wheel.file: wheel.sha256 for wheel in wheels(read_catalog(path))}


class _Desk:
    """One piece of work on a registry: its ledger, and what is published when the work begins."""

    def __init__(self, path: Path, keys: Path | None, sign: Path | None, now: datetime | None) -> None:
        self._path = path
        self.stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.catalog, self.types = Catalog(), dict[str, str]()
        if exists(path):
            self.ledger = Ledger(path, Keys(keys or beside(path), *([sign] if sign else [])), now=now)
            registry = Registry("registry", str(path), trust=Own(self.ledger))
            self.catalog, self.types = registry.catalog(), registry.types()
        elif (path / "targets").is_dir() and any((path / "targets").iterdir()):
            hint = "publish its wheels into a new one: dragoman registry build WHEELS --to FOLDER"
            raise RegistryError(f"{path} is a registry that nobody signed", hint=hint, code="not-signed")
        self._by_key = sign is not None

    def look(self, wheels: Iterable[Path]) -> tuple[dict[Path, Report], Catalog, list[Fault]]:
        """Look at wheels, and give the catalog with them in it if there is no fault."""
        found = {path: inspect(path, native=True) for path in wheels}
        faults = [replace(fault, where=path.name) for path, report in found.items() for fault in report.faults]
        faults += [*immutable(self.catalog, found), *self.claims(found)]
        catalog, more = (self.catalog, []) if faults else merged(self.catalog, found, self.stamp)
        return found, catalog, [*faults, *more]

    def claims(self, found: Mapping[Path, Report]) -> Iterator[Fault]:
        """Find projects and types that are not the signer's."""
        for path, report in found.items():
            if report.manifest is None:
                continue
            project = project_of(path.name)
            role = publisher_of(self.ledger.targets, project) if exists(self._path) else OWNER
            mine = role in (None, OWNER) and not self._by_key
            if role is None and not (mine and self.ledger.can_sign("targets")):
                reason = "Nobody may publish this project yet: dragoman registry add-publisher FOLDER NAME"
                yield Fault("no-publisher", f"{reason} --key KEY.pub --project {project}.", path.name)
            for kind in report.manifest.types:
                holder = self.types.get(kind.name)
                if holder not in (None, project):
                    yield Fault("type-taken", f"The type {kind.name!r} is served by {holder}.", path.name)
                if holder is None and exists(self._path) and not (mine and self.ledger.can_sign("targets")):
                    reason = f"The type {kind.name!r} is not bound to {project}: dragoman registry add-publisher"
                    yield Fault("type-not-bound", f"{reason} FOLDER NAME --type {kind.name}.", path.name)

    def publish(self, found: Mapping[Path, Report], more: Mapping[str, Mapping[str, bytes]], catalog: Catalog) -> None:
        """Write wheels, let their publishers sign, and accept them where the keys for that are here."""
        ledger, types = self.ledger, dict(self.types)
        drivers = {path: project_of(path.name) for path, report in found.items() if report.manifest is not None}
        if new := sorted({project for project in drivers.values() if publisher_of(ledger.targets, project) is None}):
            ledger.extend(OWNER, [pattern for project in new for pattern in patterns(project)])
        for path, project in drivers.items():
            manifest = found[path].manifest
            types |= {kind.name: project for kind in manifest.types} if manifest else {}
        signed: dict[str, dict[str, bytes]] = {}
        for project in drivers.values():
            signed[str(publisher_of(ledger.targets, project))] = {}
        for role in signed:
            ledger.expect_publisher(role)
        for path, report in found.items():
            files = write_wheel(self._path, path, report, more.get(path.name, {}))
            if path in drivers:
                signed[str(publisher_of(ledger.targets, drivers[path]))] |= files
        waiting = [role for role, files in signed.items() if ledger.submit(role, files)]
        if ledger.can_sign(*ONLINE):
            there = ledger.pending()
            for role in waiting:
                ledger.adopt(role, there[role])
            changed = {project_of(path.name) for path in found}
            write_index(self._path, ledger, catalog, types=types if types != self.types else None, changed=changed)

    def signed_wheels(
        self, role: str, targets: Iterable[str], arrived: Mapping[str, Path]
    ) -> tuple[dict[Path, Report], list[Fault]]:
        """Look at the wheels that a publisher signed and nobody accepted yet, and at the libraries they name."""
        there, waiting = {wheel.file for wheel in wheels(self.catalog)}, self.ledger.pending()[role].signed.targets
        found: dict[Path, Report] = {}
        faults: list[Fault] = []
        for target in targets:
            folder, _, name = target.rpartition("/")
            if name.endswith(".whl") and name not in there:
                path = self._path / "targets" / target
                path = path if path.is_file() else arrived.get(name, path)
                report = inspect(path, native=True, driver=True)
                faults += [replace(fault, where=name) for fault in report.faults]
                if not report.faults and report.sha256 != waiting[target].hashes["sha256"]:
                    faults.append(Fault("digest-mismatch", f"It is {report.sha256}, other bytes were signed.", name))
                beside = waiting.get(f"{target}.driver.json")
                if beside is None or beside.length != len(report.manifest_data):
                    faults.append(Fault("manifest", f"{folder}/{name}.driver.json is not signed beside it.", name))
                found[path] = report
        for report in list(found.values()):
            for dependency in report.manifest.dependencies if report.manifest else ():
                path = self._path / "targets/wheels" / project_of(dependency.file) / dependency.file
                path = path if path.is_file() else arrived.get(dependency.file, path)
                if dependency.file not in there and path.is_file():
                    found[path] = inspect(path, native=True, driver=False)
                    faults += [replace(fault, where=path.name) for fault in found[path].faults]
        return found, faults
