"""What opening a connection does about its driver: install, repair, ask or refuse, as one decision says."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from dragoman.versions import installed_version
from dragoman_api.errors import (
    ConfigurationError,
    DragomanError,
    IncompatibleReleaseError,
    RegistryError,
)
from dragoman_registry.decision import Decision, Inputs, Outcome, decide

from .offers import Offer, offer_for_type, unknown_type

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.sandbox.policy import Policy
    from dragoman_registry.generation import Generation
    from dragoman_registry.lock import Locked
    from dragoman_registry.store import Store

    from .advisories import Advisories
    from .installs import Installs
    from .registries import Registries


ASKING_SECONDS = 2.0
"""How long an opening waits for what registries hold against what is installed."""
PAUSES = (0.0, 10.0, 60.0)
"""Seconds before each repair that nobody asked for; after the last one a person has to."""


class AutoInstall:
    """Gets a driver ready for a connection that opens."""

    def __init__(
        self,
        store: Store,
        *,
        registries: Registries,
        advisories: Advisories,
        installs: Installs,
        policy: Policy,
        surface: str,
        cache: Path,
    ) -> None:
        self._cache = cache
        self._store, self._registries, self._installs = store, registries, installs
        self._advisories, self._policy, self._surface = advisories, policy, surface

    async def ready_for(self, type: str, *, connection: str) -> Generation:  # noqa: A002 - the field's word
        """Give the installed driver of a type, installing or repairing it first where that needs no consent (P3).

        Raises:
            ConfigurationError: The driver is disabled, or not available on this surface.
            PluginNotFoundError: No registry has a driver for the type.
            RegistryError: It could not be installed.
            Refused: It needs consent that was not given.
        """
        await self._ask_registries(force=False)
        generation, decision, offer = await anyio.to_thread.run_sync(self._decide, type)
        if decision.outcome is Outcome.QUARANTINED:  # before nothing starts any more, it is made sure that it is so
            await self._ask_registries(force=True)
            generation, decision, offer = await anyio.to_thread.run_sync(self._decide, type)
        if offer is None or decision.choice is None:
            if decision.outcome is Outcome.READY and generation is not None:
                return generation
            raise _error_of(decision, type)
        if decision.outcome is Outcome.ASK:
            await self._installs.consent(decision, offer)
        elif decision.outcome is Outcome.REPAIR and generation is not None:
            await anyio.to_thread.run_sync(self._count_repair, generation, decision)
        return await self._installs.run(offer, decision.choice, connection=connection, trusted=decision.trusted)

    async def _ask_registries(self, *, force: bool) -> None:
        with anyio.move_on_after(ASKING_SECONDS):
            refresh = partial(self._advisories.refresh, force=force)
            await anyio.to_thread.run_sync(refresh, abandon_on_cancel=True)

    def notices(self, generation: Generation) -> tuple[str, ...]:
        """Say what a person should know of an installed version. Blocks."""
        return self._advisories.standing(generation).notices

    def _count_repair(self, generation: Generation, decision: Decision) -> None:
        """Note a repair, unless it is one too many or too soon: a disk that fails is not repaired by writing to it."""
        key = f"repairs of {generation.plugin}"
        count, last = self._store.note(key) or (0, 0.0)
        if count >= len(PAUSES) or time.time() < last + PAUSES[count]:
            reason = f"{decision.reason}; repaired {count} times of late, and no longer without being asked"
            raise RegistryError(reason, hint=decision.action, code="repair-needed")
        self._store.set_note(key, (count + 1, time.time()))

    def _decide(self, kind: str) -> tuple[Generation | None, Decision, Offer | None]:
        generation = self._store.active(kind)
        known = self._inputs(kind, generation)
        decision = decide(known)
        if decision.outcome in (Outcome.READY, Outcome.ENABLE):
            if decision.outcome is Outcome.READY and self._store.note(key := f"repairs of {known.plugin}"):
                self._store.set_note(key, None)
            return generation, decision, None  # the registries are not asked for what is here
        offer, unreachable, expired = self._find(kind)
        known = replace(known, unreachable=unreachable, expired=expired)
        if offer is not None:
            known = self._offered(known, generation, offer)
        return generation, decide(known), offer

    def _find(self, kind: str) -> tuple[Offer | None, str, str]:
        """Find who serves a type; else what could not be read, and whose signatures have expired."""
        try:
            return offer_for_type(self._registries.open(), kind), "", ""
        except RegistryError as error:
            if error.code != "registry-stale":
                return None, error.message, ""
            expired = str(error.details["location"])
        if not self._lock():
            return None, "", expired
        try:  # what the lock names needs no fresh word of the registry
            return offer_for_type(self._registries.open(allow_stale=True), kind), "", expired
        except RegistryError as error:
            return None, error.message, expired

    def _offered(self, known: Inputs, generation: Generation | None, offer: Offer) -> Inputs:
        """Add what a registry offers to what is known."""
        if known.confined:  # what the kernel offers is tried before anybody's code is let in on the strength of it
            from dragoman.sandbox.trial import measured_level

            known = replace(known, sandbox=str(measured_level(self._cache)))
        # A damaged or missing driver comes back as it was; one that no longer fits makes way for one that does.
        choice = self._installs.choose(offer, locked=known.compatible)
        free = self._installs.choose(offer, pinned=False).release
        entry, same = self._lock().get(offer.project.plugin), False
        if choice.release is not None and generation is not None:
            same = generation.locked.covers(choice.release)
        return replace(
            known,
            plugin=known.plugin or offer.project.plugin,
            excluded_surfaces=tuple(offer.project.excluded_surfaces),
            choice=choice,
            safe=free.version if free and free.version != known.installed else "",
            locked=choice.release is not None and entry is not None and entry.covers(choice.release),
            known_publisher=self._installs.knows(offer),
            new_publisher=self._installs.new_publisher(generation, offer) if generation and not same else "",
        )

    def _lock(self) -> dict[str, Locked]:
        from dragoman_registry import lock

        return lock.read(self._store.lock_file)

    def _inputs(self, kind: str, generation: Generation | None) -> Inputs:
        from dragoman.sandbox.policy import achievable_level

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
        case Outcome.UNKNOWN_TYPE:
            return unknown_type(kind)
        case Outcome.ENABLE | Outcome.REFUSE:
            code = f"plugin-{decision.about or 'disabled'}"
            return ConfigurationError(decision.reason, hint=decision.action, code=code)
        case Outcome.UPDATE_HOST:
            return IncompatibleReleaseError(decision.reason, hint=decision.action)
    return RegistryError(decision.reason, hint=decision.action, code=decision.outcome.replace("_", "-"))
