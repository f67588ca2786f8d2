"""The combined offers of the configured registries: a driver comes from the first registry that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import PluginNotFoundError, RegistryError
from dragoman_registry.client.install_decision import Inputs, decide
from dragoman_registry.index.catalog import Project
from dragoman_registry.index.registry_reader import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence


class Offer(msgspec.Struct, frozen=True):
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
            for project in registry.sifted()[0].projects:
                offers.setdefault(project.plugin, Offer(registry, project))
        except RegistryError as error:
            failures[registry.name] = error
    if failures and len(failures) == len(registries):
        raise next(iter(failures.values()))
    return list(offers.values()), failures


class SkippedRegistries(dict[str, RegistryError]):
    """The skipped registries by name, with the reason: no other registry may serve what they claim.

    An unreachable registry claims nothing meanwhile. A reachable but untrusted one keeps the claims it had while it was
    trusted; one that was never trusted may claim anything.
    """

    def pass_over(self, registry: Registry, error: RegistryError, wanted: str, *, is_type: bool = False) -> None:
        """Record a failed registry. Raises RegistryError if it claims the wanted driver and cannot be trusted."""
        self.setdefault(registry.name, error)
        if error.code == "registry-unreachable" or registry.memory is None:
            return
        claims = registry.memory.claims_type if is_type else registry.memory.claims_name
        if (claimed := claims(wanted)) is not False:
            claim = f"{registry.name!r} {'claims' if claimed else 'may claim'} {wanted!r}"
            text = f"{error.message}; {claim}, so no other registry may serve it"
            own_fault = error.code == "trust-cache"  # this machine's disk, and not the registry
            hint = error.hint if claimed or own_fault else f"dragoman registry remove {registry.name}"
            raise type(error)(text, hint=hint, code=error.code, details=error.details) from error


def find_offer(registries: Sequence[Registry], plugin: str, *, skipped: SkippedRegistries | None = None) -> Offer:
    """Find a driver by the plugin's id or its project. Blocks.

    Raises:
        PluginNotFoundError: No registry has it.
        RegistryError: A registry that claims it cannot be trusted; or one could not be read, and no other has it.
    """
    skipped = SkippedRegistries() if skipped is None else skipped
    for registry in registries:
        try:
            return Offer(registry, registry.project(plugin))
        except PluginNotFoundError:
            continue
        except RegistryError as error:
            skipped.pass_over(registry, error, plugin)
    for failure in skipped.values():
        raise failure
    hint = "dragoman plugins browse"
    raise PluginNotFoundError(f"no configured registry has a plugin called {plugin!r}", hint=hint)


def offer_for_type(
    registries: Sequence[Registry], kind: str, *, skipped: SkippedRegistries | None = None
) -> Offer | None:
    """Find the driver bound to a database type: the registry's binding decides, not the driver's claim. Blocks.

    Returns:
        None if no registry binds the type.

    Raises:
        RegistryError: A registry that claims it cannot be trusted; or one could not be read, and no other binds it.
    """
    skipped = SkippedRegistries() if skipped is None else skipped
    for registry in registries:
        try:
            if (project := registry.types().get(kind)) is not None:
                return Offer(registry, registry.project(project))
        except RegistryError as error:
            skipped.pass_over(registry, error, kind, is_type=True)
    for failure in skipped.values():
        raise failure
    return None


def unknown_type(kind: str) -> PluginNotFoundError:
    """Build the error for a type that no registry binds to a driver."""
    decision = decide(Inputs(type=kind))
    return PluginNotFoundError(decision.reason, hint=decision.action, details={"type": kind})
