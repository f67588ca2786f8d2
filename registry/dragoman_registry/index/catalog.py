"""The contents of a registry's index: drivers, releases, wheels, type bindings and advisories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dragoman_registry.names import Digest, PluginId, ProjectName, ReleaseVersion
from dragoman_registry.wheels.manifest import DatabaseType
from dragoman_registry.wheels.wheel_file import WheelFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version of a driver: its wheels, and the closed set of wheels published with it.

    Attributes:
        plugin: The plugin's id.
        project: Name of the distribution.
        version: Version of the distribution.
        host_api: Range of `dragoman-api` versions.
        permissions: The permissions in the manifest.
        manifest_sha256: Digest of `driver.json`, which is beside each wheel.
        wheels: The driver's wheels, one per platform or one for all.
        dependencies: Wheels beyond the API's own dependencies, for every platform.
        yanked: Why it is no longer offered; None if it is offered.
        quarantined: Why it must not run; None if it may.
        deprecated: Why users should leave it, though it is still offered; None if it is not deprecated.
        replaced_by: The replacement of a deprecated release.
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
