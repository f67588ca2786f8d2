"""Adds wheels to a catalog, and finds the faults that forbid it. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from dragoman_registry.index.catalog import Project, Release
from dragoman_registry.index.search_summaries import summarise
from dragoman_registry.validation import Fault
from dragoman_registry.wheels.host_environment import provided_projects
from dragoman_registry.wheels.packaging_parsers import parse_version, project_name
from dragoman_registry.wheels.wheel_file import WheelFile, project_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dragoman_registry.index.catalog import Catalog
    from dragoman_registry.index.search_summaries import Summary
    from dragoman_registry.wheels.manifest import Manifest
    from dragoman_registry.wheels.metadata_checks import WheelReport

    from .index_records import Index


def releases(catalog: Catalog) -> Iterator[Release]:
    """Return every release."""
    for project in catalog.projects:
        yield from project.releases


def wheels(catalog: Catalog) -> Iterator[WheelFile]:
    """Return every wheel: those of drivers, then the libraries."""
    yield from (wheel for release in releases(catalog) for wheel in release.wheels)
    yield from catalog.libraries


def immutable(index: Index, reports: dict[Path, WheelReport]) -> Iterator[Fault]:
    """Find files that are already published with other bytes."""
    projects = {project_of(path.name) for path in reports}
    listed = {wheel.file: wheel for project in projects for wheel in index.wheels(project)}
    for path, report in reports.items():
        if path.name in listed and listed[path.name].sha256 != report.sha256:
            yield Fault("immutable", "It is already published with other bytes; raise the version.", path.name)


def merged(index: Index, reports: dict[Path, WheelReport], stamp: str) -> tuple[Index, list[Fault]]:
    """Add wheels to an index; return it with the faults."""
    libraries = {wheel.file: wheel for wheel in index.libraries}
    for path, report in reports.items():
        if report.manifest is None:
            libraries.setdefault(path.name, _wheel_file(path.name, report, stamp))
    names = {project_of(path.name) for path, report in reports.items() if report.manifest is not None}
    projects = {name: project for name in names if (project := index.project(name)) is not None}
    claims = _Taken(index.rows.values())
    faults: list[Fault] = []
    for path, report in reports.items():
        if report.manifest is not None:
            problems = [
                *claims.conflicts(path.name, report.manifest),
                *_conflicts(projects, libraries, path.name, report),
            ]
            faults += problems
            if not problems:
                _add(projects, libraries, _wheel_file(path.name, report, stamp), report)
                claims.add(summarise(projects[project_of(path.name)]))
    return index.with_drivers(projects.values(), libraries=[libraries[name] for name in sorted(libraries)]), faults


def _wheel_file(file: str, report: WheelReport, stamp: str) -> WheelFile:
    return WheelFile(
        file=file,
        size=report.size,
        sha256=report.sha256,
        metadata_sha256=hashlib.sha256(report.metadata).hexdigest(),
        requires_python=report.requires_python,
        uploaded=stamp,
        summary=report.summary,
        requires=tuple(sorted({project_name(requirement.name) for requirement in report.requires})),
    )


def _key(file: str) -> tuple[str, str]:
    return project_of(file), file.split("-")[1]


class _Taken:
    """The project that owns each plugin and each type."""

    def __init__(self, rows: Iterable[Summary]) -> None:
        self._plugins, self._types = dict[str, str](), dict[str, str]()
        for row in rows:
            self.add(row)

    def add(self, row: Summary) -> None:
        self._plugins[row.plugin] = row.project
        for kind in row.types:
            self._types[kind] = row.project

    def conflicts(self, file: str, manifest: Manifest) -> Iterator[Fault]:
        """Find plugins and types of a driver that belong to other projects."""
        mine = (None, project_of(file))
        if (other := self._plugins.get(manifest.id)) not in mine:
            yield Fault("name-taken", f"The plugin {manifest.id!r} belongs to {other}.", file)
        for kind in manifest.types:
            if (other := self._types.get(kind.name)) not in mine:
                yield Fault("type-taken", f"The type {kind.name!r} is served by {other}.", file)


def _conflicts(
    projects: dict[str, Project], libraries: dict[str, WheelFile], file: str, report: WheelReport
) -> Iterator[Fault]:
    """Find differences from the version's other wheels, and missing wheels of its closed set."""
    manifest = report.manifest
    assert manifest is not None
    project = projects.get(project_of(file))
    same = [r for r in project.releases if (r.project, r.version) == _key(file)] if project else []
    if same and same[0].manifest_sha256 != hashlib.sha256(report.manifest_data).hexdigest():
        yield Fault("manifest", "It differs from the manifest of the version's other wheels.", file)
    available_projects = provided_projects() | {project_of(entry.file) for entry in manifest.dependencies}
    for dependency in manifest.dependencies:
        wheel = libraries.get(dependency.file)
        if wheel is None:
            yield Fault("dependency-missing", f"{dependency.file} is neither given nor published.", file)
            continue
        if wheel.sha256 != dependency.sha256:
            reason = f"the manifest says {dependency.sha256}, but the wheel is {wheel.sha256}"
            yield Fault("dependency-mismatch", f"{dependency.file}: {reason}.", file)
        if "native-code" not in manifest.permissions and not wheel.file.endswith("-any.whl"):
            yield Fault("native-code", f"{wheel.file} is native code without the permission native-code.", file)
        for name in set(wheel.requires) - available_projects:
            yield Fault("dependency-missing", f"{wheel.file} needs {name}, which the manifest does not list.", file)


def _add(projects: dict[str, Project], libraries: dict[str, WheelFile], wheel: WheelFile, report: WheelReport) -> None:
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
    newest = sorted(releases.values(), key=lambda entry: parse_version(entry.version), reverse=True)
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
