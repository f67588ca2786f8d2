"""Drivers as lists and details show them, permissions in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman_registry.manifest import Manifest
from dragoman_registry.permissions import describe_reach as describe_reach
from dragoman_registry.permissions import plain_permissions as plain_permissions

if TYPE_CHECKING:
    from dragoman_registry.store import Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One driver as a list shows it.

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
    excluded_surfaces: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Give what a search looks into, in lower case."""
        return " ".join((self.id, self.label, self.summary, *self.types)).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Everything a person may want to know of a driver before or after installing it."""

    listing: Listing
    versions: tuple[str, ...]
    permissions: tuple[str, ...]
    manifest: Manifest
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
        excluded_surfaces=tuple(manifest.excluded_surfaces),
    )
