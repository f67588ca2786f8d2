"""Making and checking a registry: a folder of static files in which a published version never changes."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman_api.errors import (
    ConfigurationError,
    IndexInvalidError,
    PluginNotFoundError,
    RegistryError,
    WheelRejectedError,
)

from . import summaries
from .files import locked, write
from .index import Advisories, Catalog, Project, Registry, Release, Types, WheelFile, project_of
from .pages import pages
from .preflight import inspect
from .validation import Fault
from .wheels import provided

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from .claims import Report

Status = Literal["active", "yanked", "deprecated", "quarantined"]


def init(path: Path) -> None:
    """Make an empty registry.

    Raises:
        ConfigurationError: The folder holds something else.
        RegistryError: It cannot be written (code ``registry-not-written``).
    """
    with _writing(path):
        if (path / "targets" / "catalog").exists():
            return
        if path.exists() and (not path.is_dir() or {file.name for file in path.iterdir()} - {"metadata", "targets"}):
            raise ConfigurationError(f"{path} is not empty", hint="dragoman registry init ANOTHER-FOLDER")
        for folder in ("metadata", "targets/wheels", "targets/docs"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        _write_index(path, Catalog())


def build(
    wheels: Iterable[Path],
    *,
    to: Path,
    now: datetime | None = None,
    beside: Mapping[str, Mapping[str, bytes]] | None = None,
    dry_run: bool = False,
) -> list[Release]:
    """Publish wheels: drivers, and the libraries their closed sets consist of. All of them, or none.

    Args:
        wheels: Files; one that is published already with the same bytes is left alone.
        to: A registry, made when it is not there.
        now: When they come in, for builds that can be repeated.
        beside: File name of a driver's wheel → what lies beside it: ``report.json``, ``CHANGELOG.md``.
        dry_run: Only look for faults.

    Returns:
        The releases the wheels belong to.

    Raises:
        WheelRejectedError: With every fault of every wheel; the registry is unchanged.
        IndexInvalidError: The registry is damaged.
        RegistryError: It cannot be written; what was published before still is.
    """
    if not dry_run:
        init(to)
    with _writing(to), nullcontext() if dry_run else locked(to):
        catalog = _catalog(to)
        stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = {path: inspect(path, native=True) for path in wheels}
        faults = [replace(fault, where=path.name) for path, report in found.items() for fault in report.faults]
        faults += [fault for path, report in found.items() for fault in _immutable(catalog, path, report)]
        if not faults:
            catalog, more = _merged(catalog, found, stamp)
            faults += more
        if faults:
            others = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            shown = f"nothing was published: {faults[0]}{others}"
            pairs = tuple((fault.code, str(fault)) for fault in faults)
            raise WheelRejectedError(shown, hint="correct the wheel and build it again", faults=pairs)
        for path, report in found.items() if not dry_run else ():
            _write_wheel(to, path, report, (beside or {}).get(path.name, {}))
        if not dry_run:
            _write_index(to, catalog, changed={project_of(path.name) for path in found})
    names = {path.name for path in found}
    return [release for release in _releases(catalog) if names & {wheel.file for wheel in release.wheels}]


def mark(path: Path, *, project: str, version: str, status: Status, reason: str = "", replaced_by: str = "") -> Release:
    """Yank, deprecate or quarantine a version, or offer it again.

    Raises:
        PluginNotFoundError: There is no such version.
        ConfigurationError: No reason is given for taking it back.
    """
    if status != "active" and not reason:
        raise ConfigurationError(f"no reason is given why {project} {version} is {status}", hint="--reason TEXT")
    with _writing(path), locked(path):
        catalog = read_catalog(path)
        found = [r for r in _releases(catalog) if project in (r.project, r.plugin) and r.version == version]
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
            for entry in catalog.projects
        )
        _write_index(path, replace(catalog, projects=projects))
    return marked


def verify(path: Path) -> list[Fault]:
    """Check a whole registry: every file against the catalog, and the catalog against every wheel."""
    faults: list[Fault] = []
    try:
        catalog = read_catalog(path)
    except IndexInvalidError as error:
        return [Fault("index", error.message, "catalog")]
    targets = path / "targets"
    listed = set()
    for release in _releases(catalog):
        for wheel in release.wheels:
            faults += _verify_wheel(targets, wheel, release)
            listed |= {wheel.path, *(f"{wheel.path}.{kind}" for kind in ("metadata", "driver.json", "report.json"))}
    for wheel in catalog.libraries:
        faults += _verify_wheel(targets, wheel, None)
        listed |= {wheel.path, f"{wheel.path}.metadata"}
    for name, content in chain(pages(catalog, _reader(path)), _index(catalog).items()):
        if not (targets / name).is_file():
            faults.append(Fault("missing", f"{name} is missing.", name))
        elif (targets / name).read_bytes() != content:
            faults.append(Fault("page", f"{name} does not say what the catalog says.", name))
    there = {str(file.relative_to(targets)) for file in (targets / "wheels").rglob("*") if file.is_file()}
    return faults + [Fault("unlisted", f"{name} is not in the catalog.", name) for name in sorted(there - listed)]


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or path}"
        hint = "dragoman registry verify FOLDER; then build again"
        raise RegistryError(f"{path} cannot be written: {reason}", code="registry-not-written", hint=hint) from error


def read_catalog(path: Path) -> Catalog:
    """Read the catalog of a registry on disk. Raises IndexInvalidError, with a hint how to mend it."""
    return Registry("registry", str(path)).catalog()


def _releases(catalog: Catalog) -> Iterator[Release]:
    for project in catalog.projects:
        yield from project.releases


def _immutable(catalog: Catalog, path: Path, report: Report) -> Iterator[Fault]:
    listed = {wheel.file: wheel for wheel in _wheels(catalog)}
    if path.name in listed and listed[path.name].sha256 != report.sha256:
        yield Fault("immutable", "It is published with other bytes; raise the version.", path.name)


def _merged(catalog: Catalog, found: dict[Path, Report], stamp: str) -> tuple[Catalog, list[Fault]]:
    """Add what the wheels bring to a catalog."""
    libraries = {wheel.file: wheel for wheel in catalog.libraries}
    for path, report in found.items():
        if report.manifest is None:
            libraries.setdefault(path.name, _wheel_file(path.name, report, stamp))
    projects = {project.project: project for project in catalog.projects}
    faults: list[Fault] = []
    for path, report in found.items():
        if report.manifest is not None:
            problems = list(_conflicts(projects, libraries, path.name, report))
            faults += problems
            if not problems:
                _add(projects, libraries, _wheel_file(path.name, report, stamp), report)
    ordered = tuple(projects[name] for name in sorted(projects))
    return Catalog(projects=ordered, libraries=tuple(libraries[name] for name in sorted(libraries))), faults


def _wheel_file(file: str, report: Report, stamp: str) -> WheelFile:
    from packaging.utils import canonicalize_name

    return WheelFile(
        file=file,
        size=report.size,
        sha256=report.sha256,
        metadata_sha256=hashlib.sha256(report.metadata).hexdigest(),
        requires_python=report.requires_python,
        uploaded=stamp,
        summary=report.summary,
        requires=tuple(sorted({canonicalize_name(requirement.name) for requirement in report.requires})),
    )


def _key(file: str) -> tuple[str, str]:
    return project_of(file), file.split("-")[1]


def _conflicts(
    projects: dict[str, Project], libraries: dict[str, WheelFile], file: str, report: Report
) -> Iterator[Fault]:
    """Find what a driver takes from others, and what its closed set lacks."""
    manifest = report.manifest
    assert manifest is not None
    for other in projects.values():
        if other.project == project_of(file):
            continue
        if other.plugin == manifest.id:
            yield Fault("name-taken", f"The plugin {manifest.id!r} is {other.project}.", file)
        for kind in {kind.name for kind in other.types} & {kind.name for kind in manifest.types}:
            yield Fault("type-taken", f"The type {kind!r} is served by {other.project}.", file)
    same = [r for p in projects.values() for r in p.releases if (r.project, r.version) == _key(file)]
    if same and same[0].manifest_sha256 != hashlib.sha256(report.manifest_data).hexdigest():
        yield Fault("manifest", "It differs from that of the version's other wheels.", file)
    there = set(provided().values()) | {project_of(dependency.file) for dependency in manifest.dependencies}
    for dependency in manifest.dependencies:
        wheel = libraries.get(dependency.file)
        if wheel is None:
            yield Fault("dependency-missing", f"{dependency.file} is neither given nor published.", file)
            continue
        if wheel.sha256 != dependency.sha256:
            reason = f"the manifest says {dependency.sha256}, it is {wheel.sha256}"
            yield Fault("dependency-mismatch", f"{dependency.file}: {reason}.", file)
        if "native-code" not in manifest.permissions and not wheel.file.endswith("-any.whl"):
            yield Fault("native-code", f"{wheel.file} is native code; the manifest does not ask for it.", file)
        for name in set(wheel.requires) - there:
            yield Fault("dependency-missing", f"{wheel.file} needs {name}, which the manifest does not list.", file)


def _add(projects: dict[str, Project], libraries: dict[str, WheelFile], wheel: WheelFile, report: Report) -> None:
    from packaging.version import Version

    manifest = report.manifest
    assert manifest is not None
    name = project_of(wheel.file)
    project = projects.get(name)
    releases = {release.version: release for release in project.releases} if project else {}
    release = releases.get(wheel.version) or Release(
        plugin=manifest.id,
        project=name,
        version=wheel.version,
        host_api=manifest.host_api,
        permissions=manifest.permissions,
        manifest_sha256=hashlib.sha256(report.manifest_data).hexdigest(),
        wheels=(),
        dependencies=tuple(libraries[dependency.file] for dependency in manifest.dependencies),
    )
    if wheel.file not in {entry.file for entry in release.wheels}:
        wheels = sorted((*release.wheels, wheel), key=lambda entry: entry.file)
        releases[wheel.version] = replace(release, wheels=tuple(wheels))
    newest = sorted(releases.values(), key=lambda entry: Version(entry.version), reverse=True)
    if project is None or newest[0].version == wheel.version:
        project = Project(
            plugin=manifest.id,
            project=name,
            label=manifest.label,
            summary=manifest.summary,
            types=manifest.types,
            capabilities=manifest.capabilities,
            excluded_surfaces=manifest.excluded_surfaces,
        )
    projects[name] = replace(project, releases=tuple(newest))


def published(path: Path) -> dict[str, str]:
    """Give the digest of every wheel a registry holds, by its file name; none where there is no registry yet."""
    return {wheel.file: wheel.sha256 for wheel in _wheels(_catalog(path))}


def _catalog(path: Path) -> Catalog:
    return read_catalog(path) if (path / "targets" / "catalog").exists() else Catalog()


def _wheels(catalog: Catalog) -> Iterator[WheelFile]:
    yield from (wheel for release in _releases(catalog) for wheel in release.wheels)
    yield from catalog.libraries


def _write_wheel(root: Path, path: Path, report: Report, more: Mapping[str, bytes]) -> None:
    """Put a wheel and what lies beside it in place; nothing points there yet."""
    assert report.name is not None
    folder = root / "targets" / "wheels" / report.name.project
    beside = {f"{path.name}.metadata": report.metadata, path.name: path.read_bytes()}
    if report.manifest is not None:
        beside[f"{path.name}.driver.json"] = report.manifest_data
        docs = root / "targets" / "docs" / report.name.project / report.name.version
        if report.readme:
            write(docs / "README.md", report.readme.encode())
        if "CHANGELOG.md" in more:
            write(docs / "CHANGELOG.md", more["CHANGELOG.md"])
        # The report of the bytes that are there already stays: it was published with them.
        if "report.json" in more and not (folder / f"{path.name}.report.json").exists():
            beside[f"{path.name}.report.json"] = more["report.json"]
    for name, data in beside.items():
        if not (folder / name).exists() or (folder / name).read_bytes() != data:
            write(folder / name, data)


def _index(catalog: Catalog) -> dict[str, bytes]:
    """Make the files that dragoman reads, in the order in which a crash between two of them does no harm."""
    types = {kind.name: project.project for project in catalog.projects for kind in project.types}
    held: dict[str, dict[str, dict[str, str]]] = {"quarantined": {}, "yanked": {}, "deprecated": {}}
    for release in _releases(catalog):
        instead = f"; use {release.replaced_by} instead" if release.replaced_by else ""
        for status, versions in held.items():
            if (reason := getattr(release, status)) is not None:
                versions.setdefault(release.project, {})[release.version] = reason + instead
    files = {
        "advisories": Advisories(quarantined=held["quarantined"], yanked=held["yanked"], deprecated=held["deprecated"]),
        "catalog": catalog,
        "types": Types(types=types),
    }
    written = {name: msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n" for name, value in files.items()}
    return written | {summaries.NAME: summaries.encode(catalog)}


def _reader(root: Path) -> Callable[[str], bytes | None]:
    """Make a function that reads a file by its path below `targets/`, None where there is none."""

    def read(name: str) -> bytes | None:
        file = root / "targets" / name
        return file.read_bytes() if file.is_file() else None

    return read


def _write_index(root: Path, catalog: Catalog, *, changed: Collection[str] = ()) -> None:
    for name, content in chain(pages(catalog, _reader(root), changed=changed), _index(catalog).items()):
        file = root / "targets" / name
        if not file.is_file() or file.read_bytes() != content:
            write(file, content)


def _verify_wheel(targets: Path, wheel: WheelFile, release: Release | None) -> Iterator[Fault]:
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
