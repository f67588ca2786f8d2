"""What the configured registries offer, read together: the first that has a driver is the one it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman_api.errors import PluginNotFoundError, RegistryError
from dragoman_registry.index import Project, Registry

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Offer:
    """One driver of one registry."""

    registry: Registry
    project: Project


def read_offers(registries: Sequence[Registry]) -> tuple[list[Offer], dict[str, RegistryError]]:
    """Read every registry. Blocks.

    Returns:
        Offers, and the failures by name of registry: one that cannot be read does not hide the others.

    Raises:
        RegistryError: None could be read; the error is that of the first.
    """
    offers: dict[str, Offer] = {}
    failures: dict[str, RegistryError] = {}
    for registry in registries:
        try:
            for project in registry.catalog().projects:
                offers.setdefault(project.plugin, Offer(registry, project))
        except RegistryError as error:
            failures[registry.name] = error
    if failures and len(failures) == len(registries):
        raise next(iter(failures.values()))
    return list(offers.values()), failures


def find_offer(registries: Sequence[Registry], plugin: str) -> Offer:
    """Find a driver by the plugin's id or its project. Blocks.

    Raises:
        PluginNotFoundError: No registry has it.
        RegistryError: A registry could not be read, and none of the others has it.
    """
    failure: RegistryError | None = None
    for registry in registries:
        try:
            return Offer(registry, registry.project(plugin))
        except PluginNotFoundError:
            continue
        except RegistryError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    hint = "dragoman plugins browse"
    raise PluginNotFoundError(f"no configured registry has a plugin called {plugin!r}", hint=hint)


def offer_for_type(registries: Sequence[Registry], kind: str) -> Offer | None:
    """Find the driver a database type is bound to: the binding decides, not what a driver says of itself. Blocks.

    Returns:
        None if no registry binds the type.

    Raises:
        RegistryError: A registry could not be read, and none of the others binds the type.
    """
    failure: RegistryError | None = None
    for registry in registries:
        try:
            if (project := registry.types().get(kind)) is not None:
                return Offer(registry, registry.project(project))
        except RegistryError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return None


def unknown_type(kind: str) -> PluginNotFoundError:
    """Build the error for a type that no registry binds to a driver."""
    hint = "dragoman plugins browse"
    return PluginNotFoundError(f"no configured registry has a driver for {kind!r}", hint=hint, details={"type": kind})
