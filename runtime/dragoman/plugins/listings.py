"""Drivers as lists and details show them, permissions in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dragoman_registry.documents import Report
from dragoman_registry.manifest import Manifest
from dragoman_registry.permissions import describe_reach as describe_reach
from dragoman_registry.permissions import plain_permissions as plain_permissions
from dragoman_registry.summaries import standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_registry.generation import Generation
    from dragoman_registry.index import Release


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One driver as a list shows it; a struct, because a list may hold thousands.

    Attributes:
        id: The plugin's id.
        label: As a person reads it (P4).
        types: Database types it serves, by name.
        version: The newest that fits this host, or the installed one.
        state: ``available``, ``installed``, ``update``, ``disabled``, ``linked`` or ``incompatible``.
        reaches: What it can reach, in plain words.
        summary: One sentence.
        registry: Where it comes from.
        size: Bytes of its wheel, 0 when not known.
        capabilities: What a person can do with it.
        excluded_surfaces: Where it is not available (P6).
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
        """Give the id by the name it has in a registry."""
        return self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a driver.

    Attributes:
        version: Of the distribution.
        state: ``offered``, ``yanked``, ``deprecated`` or ``quarantined``; empty where no registry was asked.
        reason: Why it is no longer, or should no longer be used.
        uploaded: When it was published, UTC.
        size: Bytes of its wheels.
        host_api: Range of `dragoman-api` versions.
        installed: It is the one that connections use here.
    """

    version: str
    state: str = ""
    reason: str = ""
    uploaded: str = ""
    size: int = 0
    host_api: str = ""
    installed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Everything a person may want to know of a driver before or after installing it.

    Attributes:
        listing: As a list shows it.
        versions: Newest first.
        permissions: In plain words.
        manifest: Of the version that would be installed, or is.
        publisher: Who vouches for its bytes, in words.
        readme: Markdown of its author, empty where there is none.
        changelog: Markdown of its author, empty where there is none.
        report: Of its conformance tests, as its author published it.
        skipped: Newer versions that do not fit, and why.
    """

    listing: Listing
    versions: tuple[Version, ...]
    permissions: tuple[str, ...]
    manifest: Manifest
    publisher: str = ""
    readme: str = ""
    changelog: str = ""
    report: Report | None = None
    skipped: tuple[str, ...] = ()


def listing_of(generation: Generation) -> Listing:
    """Describe an installed driver."""
    manifest = generation.manifest
    return Listing(
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


def versions_of(releases: Iterable[Release], *, installed: str | None) -> tuple[Version, ...]:
    """Describe the releases of a driver."""
    found = []
    for release in releases:
        state, reason = standing(release) or ("offered", "")
        found.append(
            Version(
                version=release.version,
                state=state,
                reason=reason,
                uploaded=release.wheels[0].uploaded,
                size=sum(wheel.size for wheel in release.wheels),
                host_api=release.host_api,
                installed=release.version == installed,
            )
        )
    return tuple(found)
