"""What wheels bring to a catalog, and what speaks against it. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from .index import Catalog, Project, Release, WheelFile, project_of
from .validation import Fault
from .wheels import provided

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .claims import Report


def releases(catalog: Catalog) -> Iterator[Release]:
    """Give every release."""
    for project in catalog.projects:
        yield from project.releases


def wheels(catalog: Catalog) -> Iterator[WheelFile]:
    """Give every wheel: those of drivers, then the libraries."""
    yield from (wheel for release in releases(catalog) for wheel in release.wheels)
    yield from catalog.libraries


def immutable(catalog: Catalog, found: dict[Path, Report]) -> Iterator[Fault]:
    """Find files that are published with other bytes."""
    listed = {wheel.file: wheel for wheel in wheels(catalog)}
    for path, report in found.items():
        if path.name in listed and listed[path.name].sha256 != report.sha256:
            yield Fault("immutable", "It is published with other bytes; raise the version.", path.name)


def merged(catalog: Catalog, found: dict[Path, Report], stamp: str) -> tuple[Catalog, list[Fault]]:
    """Add what wheels bring to a catalog."""
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
