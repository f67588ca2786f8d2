"""The contents of a registry's index: drivers, releases, wheels, type bindings and advisories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman_registry.names import Digest, PluginId, ProjectName, ReleaseVersion
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.manifest import DatabaseType
from dragoman_registry.wheels.wheel_file import WheelFile, project_of

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERY = "*"
"""Key for every version of a project, used if its advisory cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version of a driver: its wheels, and the closed set of wheels published with it.

    Attributes:
        host_api: Range of `dragoman-api` versions.
        manifest_sha256: Digest of `driver.json`, which is beside each wheel.
        wheels: The driver's wheels, one per platform or one for all.
        dependencies: Wheels beyond the API's own dependencies, for every platform.
        yanked: Why it is no longer offered; None if it is offered.
        quarantined: Why it must not run; None if it may.
        deprecated: Why users should leave it, though it is still offered; None if it is not deprecated.
    """

    plugin: PluginId
    project: ProjectName
    version: ReleaseVersion
    host_api: str
    permissions: tuple[str, ...]
    manifest_sha256: Digest
    wheels: tuple[WheelFile, ...]
    dependencies: tuple[WheelFile, ...] = ()
    yanked: str | None = None
    quarantined: str | None = None
    deprecated: str | None = None
    replaced_by: str = ""

    @property
    def size(self) -> int:
        """The bytes of an installation: one wheel of each project, for the platform whose wheel is the largest."""
        largest: dict[str, int] = {}
        for wheel in (*self.wheels, *self.dependencies):
            project = project_of(wheel.file)
            largest[project] = max(wheel.size, largest.get(project, 0))
        return sum(largest.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One driver of a registry; label, summary, types, capabilities and surfaces are those of its newest release."""

    plugin: PluginId
    project: ProjectName
    label: str
    summary: str
    types: tuple[DatabaseType, ...]
    capabilities: tuple[str, ...] = ()
    excluded_surfaces: tuple[str, ...] = ()
    releases: tuple[Release, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Everything a registry offers: drivers, and the libraries of their closed sets."""

    catalog_version: Literal[1] = 1
    projects: tuple[Project, ...] = ()
    libraries: tuple[WheelFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Types:
    """Maps each database type to the only project that may be installed for it."""

    types_version: Literal[1] = 1
    types: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisories:
    """Maps projects and versions to the reasons of quarantines, yanks and deprecations, with replacements."""

    advisories_version: Literal[1] = 1
    quarantined: dict[str, dict[str, str]] = field(default_factory=dict)
    yanked: dict[str, dict[str, str]] = field(default_factory=dict)
    deprecated: dict[str, dict[str, str]] = field(default_factory=dict)


class _RawAdvisories(msgspec.Struct, frozen=True):
    advisories_version: Literal[1] = 1
    quarantined: dict[str, msgspec.Raw] = {}
    yanked: dict[str, msgspec.Raw] = {}
    deprecated: dict[str, msgspec.Raw] = {}


def read_advisories(data: bytes) -> Advisories:
    """Read the file, or each project alone if the whole is malformed. Raises Unreadable if it is not such a file."""
    try:
        return decode(data, Advisories)
    except Unreadable:
        document = decode(data, _RawAdvisories)
        return Advisories(
            quarantined=_readable(document.quarantined),
            yanked=_readable(document.yanked),
            deprecated=_readable(document.deprecated),
        )


def _readable(projects: Mapping[str, msgspec.Raw]) -> dict[str, dict[str, str]]:
    reasons: dict[str, dict[str, str]] = {}
    for project, versions in projects.items():
        try:
            reasons[project] = decode(bytes(versions), dict[str, str])
        except Unreadable as error:
            reasons[project] = {EVERY: f"its advisory cannot be read: {error}"}
    return reasons


def held_against(projects: Mapping[str, Mapping[str, str]], project: str, version: str) -> str | None:
    """Return the reason of the advisory against a version, or None.

    >>> held_against({"x": {"1.0": "leaks"}, "y": {"*": "unreadable"}}, "y", "2.0")
    'unreadable'
    """
    versions = projects.get(project, {})
    return versions.get(version, versions.get(EVERY))
