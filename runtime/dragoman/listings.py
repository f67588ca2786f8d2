"""Drivers as lists and details show them, permissions in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman_registry.manifest import Manifest

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


_WORDS = {
    "net:connection": "reaches the connection's host and port",
    "secrets:connection": "is given that connection's credentials",
    "native-code": "brings compiled code",
}


def plain_permissions(permissions: tuple[str, ...]) -> tuple[str, ...]:
    """Say in plain words what a driver may do.

    >>> plain_permissions(("net:connection", "net:host=example.org"))
    ("reaches the connection's host and port", 'reaches example.org')
    """
    return tuple(_WORDS.get(name) or _in_words(name) for name in permissions)


_VERBS = {"net:host": "reaches", "fs:read": "reads the file chosen as", "memory": "uses up to", "cpu": "computes up to"}


def _in_words(permission: str) -> str:
    kind, _, value = permission.partition("=")
    return f"{_VERBS.get(kind, kind)} {value}".rstrip()


def describe_reach(permissions: tuple[str, ...]) -> str:
    """Say what a driver can reach, as one cell of a list."""
    found = [words for words in plain_permissions(permissions) if words.startswith("reaches ")]
    return ", ".join(words.removeprefix("reaches ") for words in found) or "nothing"
