"""What opening a connection does about its driver: install, repair, ask or refuse, as one decision says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio.to_thread

from dragoman_api.errors import (
    ConfigurationError,
    DragomanError,
    IncompatibleReleaseError,
    Refused,
    RegistryError,
)
from dragoman_registry.decision import Decision, Inputs, Outcome, decide

from .listings import plain_permissions
from .offers import Offer, offer_for_type, unknown_type
from .questions import Question
from .versions import installed_version

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_registry.index import Release
    from dragoman_registry.store import Generation, Store

    from .installs import Installs
    from .questions import Confirm
    from .registries import Registries
    from .sandbox.policy import Policy


class AutoInstall:
    """Gets a driver ready for a connection that opens."""

    def __init__(
        self,
        store: Store,
        *,
        registries: Registries,
        installs: Installs,
        confirm: Confirm | None,
        policy: Policy,
        surface: str,
        cache: Path,
    ) -> None:
        self._cache = cache
        self._store, self._registries, self._installs = store, registries, installs
        self._confirm, self._policy, self._surface = confirm, policy, surface

    async def ready_for(self, type: str, *, connection: str) -> Generation:  # noqa: A002 - the field's word
        """Give the installed driver of a type, installing or repairing it first where that needs no consent (P3).

        Raises:
            ConfigurationError: The driver is disabled, or not available on this surface.
            PluginNotFoundError: No registry has a driver for the type.
            RegistryError: It could not be installed.
            Refused: It needs consent that was not given.
        """
        generation, decision, offer = await anyio.to_thread.run_sync(self._decide, type)
        match decision.outcome:
            case Outcome.READY if generation is not None:
                return generation
            case Outcome.INSTALL | Outcome.REPAIR if offer is not None and decision.choice is not None:
                return await self._installs.run(offer, decision.choice, connection=connection, trusted=False)
            case Outcome.ASK if offer is not None and decision.choice is not None:
                await self._ask(decision, offer)
                return await self._installs.run(offer, decision.choice, connection=connection, trusted=True)
        raise _error_of(decision, type)

    def _decide(self, kind: str) -> tuple[Generation | None, Decision, Offer | None]:
        generation = self._store.active(kind)
        known = self._inputs(kind, generation)
        decision = decide(known)
        if decision.outcome in (Outcome.READY, Outcome.ENABLE):
            return generation, decision, None  # the registries are not asked for what is here
        unreachable, offer, choice = "", None, None
        try:
            offer = offer_for_type(self._registries.open(), kind)
        except RegistryError as error:
            unreachable = error.message
        if offer is not None:
            if known.confined:  # what the kernel offers is tried before anybody's code is let in on the strength of it
                from .sandbox.trial import measured_level

                known = replace(known, sandbox=str(measured_level(self._cache)))
            # A damaged or missing driver comes back as it was; one that no longer fits makes way for one that does.
            choice = self._installs.choose(offer, locked=known.compatible)
            known = replace(
                known,
                plugin=known.plugin or offer.project.plugin,
                excluded_surfaces=tuple(offer.project.excluded_surfaces),
                locked=choice.release is not None and self._locks(offer, choice.release),
            )
        return generation, decide(replace(known, choice=choice, unreachable=unreachable)), offer

    def _locks(self, offer: Offer, release: Release) -> bool:
        from dragoman_registry import lock

        entry = lock.read(self._store.lock_file).get(offer.project.plugin)
        return entry is not None and entry.version == release.version and entry.covers(release)

    def _inputs(self, kind: str, generation: Generation | None) -> Inputs:
        from .sandbox.policy import achievable_level

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
            granted=tuple(generation.manifest.permissions),
            excluded_surfaces=tuple(generation.manifest.excluded_surfaces),
        )

    async def _ask(self, decision: Decision, offer: Offer) -> None:
        release = decision.choice.release if decision.choice else None
        question = Question(
            about=decision.about,
            text=f"{decision.reason}. Install {offer.project.label} all the same?",
            details=plain_permissions(release.permissions) if release else (),
        )
        if self._confirm is None:
            raise Refused(f"{decision.reason}; nothing was installed without consent", hint=decision.action)
        if not await self._confirm(question):
            raise Refused(f"{offer.project.label} was not installed", hint=decision.action)


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
