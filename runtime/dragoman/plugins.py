"""Drivers: what is offered, what is installed, and getting from the one to the other."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from dragoman_api import events
from dragoman_api.calls import Call
from dragoman_api.errors import (
    ConfigurationError,
    DragomanError,
    IncompatibleReleaseError,
    PluginNotFoundError,
    Refused,
    RegistryError,
)
from dragoman_registry.decision import Decision, Inputs, Outcome, decide
from dragoman_registry.store import Store

from .listings import Details, Listing, describe_reach, listing_of, plain_permissions
from .offers import Offer, find_offer, offer_for_type, read_offers
from .versions import installed_version

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_api.events import Event
    from dragoman_api.forms import FormField
    from dragoman_registry.choice import Choice
    from dragoman_registry.index import Release
    from dragoman_registry.manifest import Manifest
    from dragoman_registry.store import Generation

    from ._hooks import Hooks
    from .registries import Registries
    from .sandbox.policy import Policy
    from .settings import Paths


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs a person's consent.

    Attributes:
        about: ``permissions``, ``sandbox``, or ``change``.
        text: The question.
        details: What a person should see before answering.
    """

    about: str
    text: str
    details: tuple[str, ...] = ()


Confirm = Callable[[Question], Awaitable[bool]]


class Plugins:
    """The drivers of one home. Made by the Runtime."""

    def __init__(
        self,
        paths: Paths,
        *,
        registries: Registries,
        hooks: Hooks,
        emit: Callable[[Event], None],
        confirm: Confirm | None,
        policy: Policy,
        surface: str,
    ) -> None:
        self._store = Store(paths.data)
        self._cache = paths.cache
        self._registries, self._hooks, self._emit = registries, hooks, emit
        self._confirm, self._policy, self._surface = confirm, policy, surface

    # lists ----------------------------------------------------------------------------------------------------------

    def installed(self) -> list[Listing]:
        """List what is installed. Blocks for a few milliseconds.

        Raises:
            RegistryError: The state database is damaged.
        """
        return [listing_of(generation) for generation in self._store.installed()]

    async def browse(self, words: str = "", *, type: str | None = None) -> list[Listing]:  # noqa: A002 - the field's word
        """List what the registries offer, and what is installed.

        Args:
            words: All of them must occur in id, label, summary or types.
            type: Only drivers of this database type.

        Raises:
            RegistryError: No registry could be read.
        """
        listings = await anyio.to_thread.run_sync(self._browse)
        wanted = words.lower().split()
        return [
            listing
            for listing in listings
            if (type is None or type in listing.types)
            and all(word in listing.text for word in wanted)
        ]

    def _browse(self) -> list[Listing]:
        installed = {generation.plugin: generation for generation in self._store.installed()}
        listings = {plugin: listing_of(generation) for plugin, generation in installed.items()}
        for offer in read_offers(self._registries.open()):
            plugin = offer.project.plugin
            listings[plugin] = self._listing(offer, installed.get(plugin))
        return [listings[plugin] for plugin in sorted(listings)]

    def _listing(self, offer: Offer, generation: Generation | None) -> Listing:
        project = offer.project
        release = self._choose(offer).release
        newest = release or (project.releases[0] if project.releases else None)
        state = "available" if release else "incompatible"
        if generation is not None:
            update = release is not None and release.version != generation.version and generation.pin is None
            state = "disabled" if generation.disabled else "update" if update else "installed"
        return Listing(
            id=project.plugin,
            label=project.label,
            types=tuple(kind.name for kind in project.types),
            version=generation.version if generation and state != "update" else newest.version if newest else "",
            state=state,
            reaches=describe_reach(newest.permissions if newest else ()),
            summary=project.summary,
            registry=offer.registry.name,
            size=newest.wheels[0].size if newest else 0,
            excluded_surfaces=tuple(project.excluded_surfaces),
        )

    async def show(self, id: str) -> Details:  # noqa: A002 - the registry's word
        """Give everything known of a driver.

        Raises:
            PluginNotFoundError: No registry has it and it is not installed.
        """
        return await anyio.to_thread.run_sync(self._show, id)

    def _show(self, plugin: str) -> Details:
        generation = self._store.active(plugin)
        try:
            offer = find_offer(self._registries.open(), plugin)
        except PluginNotFoundError:
            if generation is None:
                raise
            listing = listing_of(generation)
            versions = tuple(dict.fromkeys(entry.version for entry in self._store.generations(generation.plugin)))
            words = plain_permissions(generation.manifest.permissions)
            return Details(listing=listing, versions=versions, permissions=words, manifest=generation.manifest)
        choice = self._choose(offer)
        release = choice.release or offer.project.releases[0]
        manifest = offer.registry.manifest(release)
        return Details(
            listing=self._listing(offer, generation),
            versions=tuple(entry.version for entry in offer.project.releases),
            permissions=plain_permissions(manifest.permissions),
            manifest=manifest,
            skipped=tuple(f"{entry.version} skipped: {entry.reason}" for entry in choice.skipped),
        )

    async def for_type(self, type: str) -> Listing:  # noqa: A002 - the field's word
        """Give the driver of a database type, installed or offered (P2).

        Raises:
            PluginNotFoundError: There is none.
        """
        if listings := await self.browse(type=type):
            return listings[0]
        raise _unknown_type(type)

    async def form(self, type: str) -> tuple[FormField, ...]:  # noqa: A002 - the field's word
        """Give the form of a database type, from the installed driver, else from the registry; no code is run.

        Raises:
            PluginNotFoundError: There is no driver for the type.
        """
        generation = await anyio.to_thread.run_sync(self._store.active, type)
        if generation is not None:
            return generation.manifest.form
        return (await self.show((await self.for_type(type)).id)).manifest.form

    def _choose(self, offer: Offer, *, version: str | None = None, locked: bool = False) -> Choice:
        """Choose a release; `locked` holds it to the bytes that `plugins.lock` names."""
        from dragoman_registry import lock
        from dragoman_registry.choice import choose
        from dragoman_registry.wheels import Host

        plugin = offer.project.plugin
        entry = lock.read(self._store.lock_file).get(plugin) if locked and version is None else None
        pinned = version or self._store.pin_of(plugin)
        return choose(offer.project.releases, host=Host.here(), pinned=pinned, locked=entry)

    # opening --------------------------------------------------------------------------------------------------------

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
                return await self._install(offer, decision.choice, connection=connection, trusted=False)
            case Outcome.ASK if offer is not None and decision.choice is not None:
                await self._ask(decision, offer)
                return await self._install(offer, decision.choice, connection=connection, trusted=True)
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
            unreachable = str(error.details.get("url") or error.message)
        if offer is not None:
            # A damaged or missing driver comes back as it was; one that no longer fits makes way for one that does.
            choice = self._choose(offer, locked=known.compatible)
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

    # verbs ----------------------------------------------------------------------------------------------------------

    async def install(self, id: str, *, version: str | None = None) -> Generation:  # noqa: A002 - the registry's word
        """Install a driver by its id; asking for it by name is the consent.

        Args:
            id: The plugin's id.
            version: The one wanted; None for the highest that fits.

        Raises:
            PluginNotFoundError: No registry has it.
            IncompatibleReleaseError: No release fits this host; the message says why.
            RegistryError: The wheel, its digest or the disk is not in order; what was active before still is.
        """
        offer = await anyio.to_thread.run_sync(find_offer, self._registries.open(), id)
        choose = partial(self._choose, offer, version=version, locked=not await self._is_installed(id))
        return await self._install(offer, await anyio.to_thread.run_sync(choose), connection=None, trusted=True)

    async def _is_installed(self, plugin: str) -> bool:
        return await anyio.to_thread.run_sync(self._store.active, plugin) is not None

    async def update(self, id: str | None = None) -> list[Generation]:  # noqa: A002 - the registry's word
        """Install the newest fitting release of one driver, or of all that are not pinned.

        Returns:
            Those that changed; a live connection keeps the version it opened with.
        """
        changed = []
        for generation in await anyio.to_thread.run_sync(self._store.installed):
            if id not in (None, generation.plugin) or (id is None and generation.pin):
                continue
            offer = await anyio.to_thread.run_sync(find_offer, self._registries.open(), generation.plugin)
            choice = await anyio.to_thread.run_sync(self._choose, offer)
            updated = await self._install(offer, choice, connection=None, trusted=True)
            if updated.id != generation.id:
                changed.append(updated)
        if id is not None and not await anyio.to_thread.run_sync(self._store.active, id):
            raise PluginNotFoundError(f"{id} is not installed", hint=f"dragoman plugins install {id}")
        return changed

    async def _install(self, offer: Offer, choice: Choice, *, connection: str | None, trusted: bool) -> Generation:
        from dragoman_registry.installer import install
        from dragoman_registry.wheels import Host

        plugin, began = offer.project.plugin, time.monotonic()
        if choice.release is None:
            reasons = "; ".join(f"{entry.version} skipped: {entry.reason}" for entry in choice.skipped)
            text = f"no release of {plugin} fits this host: {reasons or 'there is none'}"
            raise IncompatibleReleaseError(text, hint=f"dragoman plugins show {plugin}")
        version = choice.release.version
        await self._hooks.ask(Call(hook="install_plugin", object=plugin, writes=True, unattended=self._confirm is None))
        self._emit(events.PluginInstallStarted(plugin=plugin, version=version, connection=connection))

        def progress(phase: str, done: int, total: int) -> None:
            self._emit(
                events.PluginInstallProgressed(plugin=plugin, version=version, phase=phase, done=done, total=total)
            )

        try:
            generation = await install(
                choice,
                store=self._store,
                registry=offer.registry,
                host=await anyio.to_thread.run_sync(Host.here),
                smoke_test=partial(self._smoke_test, trusted=trusted),
                on_progress=progress,
                trusted=trusted,
            )
        except DragomanError as error:
            failed = events.PluginInstallFailed(plugin=plugin, version=version, code=error.code, reason=error.message)
            self._emit(failed)
            raise
        seconds = time.monotonic() - began
        self._emit(
            events.PluginInstalled(plugin=plugin, version=version, sha256=generation.sha256, seconds=seconds)
        )
        return generation

    async def _smoke_test(self, trees: tuple[Path, ...], manifest: Manifest, *, trusted: bool) -> None:
        from .loader import smoke_test
        from .sandbox.process import Launch

        launch = Launch(
            driver=manifest.entry,
            trees=trees,
            policy=self._policy,
            trusted=trusted,
            cache=self._cache,
        )
        await smoke_test(launch, manifest)

    async def remove(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Forget an installed driver; saved connections stay and would install it again.

        Raises:
            PluginNotFoundError: It is not installed.
        """
        await self._hooks.ask(Call(hook="remove_plugin", object=id, writes=True, unattended=self._confirm is None))
        before = await anyio.to_thread.run_sync(self._store.remove, id)
        self._emit(events.PluginRemoved(plugin=before.plugin, version=before.version))

    async def enable(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Let connections use a driver again. Raises PluginNotFoundError."""
        await anyio.to_thread.run_sync(partial(self._store.set_disabled, id, disabled=False))

    async def disable(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Keep a driver installed and unused; opening does not switch it on. Raises PluginNotFoundError."""
        await anyio.to_thread.run_sync(partial(self._store.set_disabled, id, disabled=True))

    async def rollback(self, id: str) -> Generation:  # noqa: A002 - the registry's word
        """Go back to the version that was active before; a pointer write. Raises PluginNotFoundError."""
        await self._hooks.ask(Call(hook="update_plugin", object=id, writes=True, unattended=self._confirm is None))
        return await anyio.to_thread.run_sync(self._store.rollback, id)

    async def pin(self, id: str, version: str | None) -> None:  # noqa: A002 - the registry's word
        """Stay at a version, or at none in particular (None)."""
        await anyio.to_thread.run_sync(partial(self._store.set_pin, id, version=version))


def _unknown_type(kind: str) -> PluginNotFoundError:
    hint = "dragoman plugins browse"
    return PluginNotFoundError(f"no configured registry has a driver for {kind!r}", hint=hint, details={"type": kind})


def _error_of(decision: Decision, kind: str) -> DragomanError:
    match decision.outcome:
        case Outcome.UNKNOWN_TYPE:
            return _unknown_type(kind)
        case Outcome.ENABLE | Outcome.REFUSE:
            code = f"plugin-{decision.about or 'disabled'}"
            return ConfigurationError(decision.reason, hint=decision.action, code=code)
        case Outcome.UPDATE_HOST:
            return IncompatibleReleaseError(decision.reason, hint=decision.action)
    return RegistryError(decision.reason, hint=decision.action, code=decision.outcome.replace("_", "-"))
