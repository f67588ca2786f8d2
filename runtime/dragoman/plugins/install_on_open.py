"""The driver step of opening a connection: one decision to install, repair, ask or refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio.to_thread

from dragoman.folders import installed_version
from dragoman_api.errors import (
    ConfigurationError,
    DragomanError,
    IncompatibleReleaseError,
    IntegrityError,
    RegistryError,
    TrustError,
)
from dragoman_registry.client import lockfile
from dragoman_registry.client.install_decision import Decision, Inputs, InstallOutcome, decide

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.sandbox.levels import Policy
    from dragoman_registry.client.generation import Generation
    from dragoman_registry.client.installed_drivers import Store
    from dragoman_registry.client.lockfile import Locked

    from .advisory_cache import AdvisoryCache
    from .combined_catalog import Offer
    from .install_steps import PluginInstaller
    from .registries import Registries


class InstallOnOpen:
    """Gets a driver ready for a connection that opens."""

    def __init__(
        self,
        store: Store,
        *,
        registries: Registries,
        advisories: AdvisoryCache,
        installer: PluginInstaller,
        policy: Policy,
        surface: str,
        cache: Path,
    ) -> None:
        self._cache = cache
        self._store, self._registries, self._installer = store, registries, installer
        self._advisories, self._policy, self._surface = advisories, policy, surface

    async def ready_for(self, type: str, *, connection: str) -> Generation:  # noqa: A002 - the field's word
        """Return the installed driver of a type, after installing or repairing it where no consent is needed (P3).

        Raises:
            ConfigurationError: The driver is disabled, or not available on this surface.
            PluginNotFoundError: No registry has a driver for the type.
            RegistryError: It could not be installed.
            Refused: It needs consent that was not given.
        """
        generation, decision, offer = await anyio.to_thread.run_sync(self._look, type)
        if offer is None or decision.choice is None:
            if decision.outcome is InstallOutcome.READY and generation is not None:
                return generation
            raise _error_of(decision, type)
        if decision.outcome is InstallOutcome.ASK:
            await self._installer.consent(decision, offer)
        return await self._installer.run(offer, decision.choice, connection=connection, trusted=decision.trusted)

    def notices(self, generation: Generation) -> tuple[str, ...]:
        """Return the notices for an installed version. Blocks."""
        return self._advisories.standing(generation).notices

    def _look(self, kind: str) -> tuple[Generation | None, Decision, Offer | None]:
        """Inspect what is installed and offered, and decide."""
        self._advisories.refresh()
        generation, decision, offer = self._decide(kind)
        if decision.outcome is InstallOutcome.QUARANTINED:  # the registries may have lifted it meanwhile
            self._advisories.refresh(force=True)
            generation, decision, offer = self._decide(kind)
        if generation is not None and decision.outcome is InstallOutcome.REPAIR:
            self._installer.count_repair(generation.plugin, decision)
        elif generation is not None and decision.outcome is InstallOutcome.READY:
            self._installer.forget_repairs(generation.plugin)
        return generation, decision, offer

    def _decide(self, kind: str) -> tuple[Generation | None, Decision, Offer | None]:
        generation = self._store.active(kind)
        inputs, offer = self._inputs(kind, generation), None
        if not inputs.settled:
            offer, unreachable, expired = self._find(kind)
            inputs = replace(inputs, unreachable=unreachable, expired=expired)
            if offer is not None:
                inputs = self._offered(inputs, generation, offer)
        return generation, decide(inputs), offer

    def _find(self, kind: str) -> tuple[Offer | None, str, str]:
        """Find the driver for a type; else the registries that are unreadable or have expired signatures.

        Raises TrustError and IntegrityError of a registry that claims the type, or may.
        """
        from .combined_catalog import SkippedRegistries, offer_for_type

        skipped = SkippedRegistries()
        try:
            offer = offer_for_type(self._registries.open(), kind, skipped=skipped)
        except RegistryError as error:
            if error.code != "registry-stale":
                if isinstance(error, TrustError | IntegrityError):
                    raise
                return None, error.message, ""
            expired = str(error.details["location"])
        else:
            self._installer.left_out |= skipped
            return offer, "", ""
        if not self._lock():
            return None, "", expired
        try:  # a locked release needs no fresh metadata
            return offer_for_type(self._registries.open(allow_stale=True), kind), "", expired
        except RegistryError as error:
            return None, error.message, expired

    def _offered(self, inputs: Inputs, generation: Generation | None, offer: Offer) -> Inputs:
        """Add what a registry offers to the inputs."""
        if inputs.confined:  # measure the sandbox before relying on it to admit code
            from dragoman.sandbox.machine_level import measured_level

            inputs = replace(inputs, sandbox=str(measured_level(self._cache)))
        # Restore a damaged or missing driver unchanged; replace one that no longer fits.
        choice = self._installer.resolve(offer, locked=inputs.compatible)
        free = self._installer.resolve(offer, pinned=False).release
        entry, same = self._lock().get(offer.project.plugin), False
        if choice.release is not None and generation is not None:
            same = generation.locked.covers(choice.release)
        return replace(
            inputs,
            plugin=inputs.plugin or offer.project.plugin,
            excluded_surfaces=tuple(offer.project.excluded_surfaces),
            choice=choice,
            safe=free.version if free and free.version != inputs.installed else "",
            locked=choice.release is not None and entry is not None and entry.covers(choice.release),
            known_publisher=self._installer.knows(offer),
            new_publisher=self._installer.new_publisher(generation, offer) if generation and not same else "",
        )

    def _lock(self) -> dict[str, Locked]:
        return lockfile.read(self._store.lock_file)

    def _inputs(self, kind: str, generation: Generation | None) -> Inputs:
        from dragoman.sandbox.levels import achievable_level

        common = Inputs(type=kind, surface=self._surface, sandbox=str(achievable_level()), policy=self._policy)
        if generation is None:
            return common
        faults = self._store.verify(generation)
        return replace(
            common,
            plugin=generation.plugin,
            installed=generation.version,
            disabled=generation.disabled,
            damaged=str(faults[0]) if faults else "",
            compatible=generation.fits(installed_version("dragoman-api")),
            quarantined=self._advisories.standing(generation).quarantined,
            granted=tuple(generation.manifest.permissions),
            excluded_surfaces=tuple(generation.manifest.excluded_surfaces),
        )


def _error_of(decision: Decision, kind: str) -> DragomanError:
    match decision.outcome:
        case InstallOutcome.UNKNOWN_TYPE:
            from .combined_catalog import unknown_type

            return unknown_type(kind)
        case InstallOutcome.ENABLE | InstallOutcome.REFUSE:
            code = f"plugin-{decision.about or 'disabled'}"
            return ConfigurationError(decision.reason, hint=decision.action, code=code)
        case InstallOutcome.UPDATE_HOST:
            return IncompatibleReleaseError(decision.reason, hint=decision.action)
    return RegistryError(decision.reason, hint=decision.action, code=decision.outcome.replace("_", "-"))
