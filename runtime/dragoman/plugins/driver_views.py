"""Drivers as lists and detail views show them, with permissions in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_registry.index.release_documents import ConformanceReport
from dragoman_registry.index.search_summaries import standing
from dragoman_registry.wheels.manifest import Manifest, describe_reach

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_registry.client.generation import Generation
    from dragoman_registry.index.catalog import Release


class DriverListing(msgspec.Struct, frozen=True, kw_only=True):
    """One driver as a list shows it; a struct, because a list may hold thousands.

    Attributes:
        id: The plugin's id.
        label: The display name (P4).
        types: Database types it serves, by name.
        version: The newest that fits this host, or the installed one.
        state: ``available``, ``installed``, ``update``, ``disabled``, ``linked``, ``incompatible``, or
            ``unreadable`` where its registry says what cannot be read; `summary` then says why.
        reaches: The hosts and resources it can reach, in plain words.
        summary: One sentence.
        registry: Its registry.
        size: Bytes of its wheels, 0 if unknown.
        capabilities: The operations it supports.
        excluded_surfaces: Surfaces where it is not available (P6).
    """

    id: str
    label: str
    types: tuple[str, ...]
    version: str
    state: str
    reaches: str
    summary: str
    registry: str
    size: int = 0
    capabilities: tuple[str, ...] = ()
    excluded_surfaces: tuple[str, ...] = ()

    @property
    def plugin(self) -> str:
        """The id under its registry name."""
        return self.id


class DriverVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a driver.

    Attributes:
        state: ``offered``, ``yanked``, ``deprecated`` or ``quarantined``; empty where no registry was asked.
        reason: Why it can no longer, or should no longer, be used.
        uploaded: When it was published, UTC.
        host_api: Range of `dragoman-api` versions.
        installed: Connections here use this version.
    """

    version: str
    state: str = ""
    reason: str = ""
    uploaded: str = ""
    size: int = 0
    host_api: str = ""
    installed: bool = False


class DriverDetails(msgspec.Struct, frozen=True, kw_only=True):
    """All details of a driver, before or after its installation.

    Attributes:
        versions: Newest first.
        publisher: The party that vouches for its bytes, in words.
        skipped: Newer versions that do not fit, and why.
    """

    listing: DriverListing
    versions: tuple[DriverVersion, ...]
    permissions: tuple[str, ...]
    manifest: Manifest
    publisher: str = ""
    readme: str = ""
    changelog: str = ""
    report: ConformanceReport | None = None
    skipped: tuple[str, ...] = ()


def listing_of(generation: Generation) -> DriverListing:
    """Describe an installed driver."""
    manifest = generation.manifest
    return DriverListing(
        id=generation.plugin,
        label=manifest.label,
        types=tuple(kind.name for kind in manifest.types),
        version=generation.version,
        state=generation.state,
        reaches=describe_reach(manifest.permissions),
        summary=manifest.summary,
        registry=generation.registry,
        capabilities=manifest.capabilities,
        excluded_surfaces=tuple(manifest.excluded_surfaces),
    )


def versions_of(releases: Iterable[Release], *, installed: str | None) -> tuple[DriverVersion, ...]:
    """Describe the releases of a driver."""
    versions = []
    for release in releases:
        state, reason = standing(release) or ("offered", "")
        versions.append(
            DriverVersion(
                version=release.version,
                state=state,
                reason=reason,
                uploaded=release.wheels[0].uploaded,
                size=release.size,
                host_api=release.host_api,
                installed=release.version == installed,
            )
        )
    return tuple(versions)
