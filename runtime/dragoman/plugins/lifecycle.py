"""Drivers as a person meets them: lists of what is offered and installed, and the verbs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from dragoman.versions import installed_version
from dragoman_api import events
from dragoman_api.calls import Call
from dragoman_api.errors import ConfigurationError, DragomanError, PluginNotFoundError
from dragoman_registry.decision import Outcome

from .installs import Update
from .listings import Details, Listing, listing_of
from .marketplace import describe, search
from .offers import Offer, find_offer, unknown_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman._hooks import Hooks
    from dragoman_api.events import Event
    from dragoman_api.forms import FormField
    from dragoman_registry.collecting import Collected
    from dragoman_registry.generation import Generation
    from dragoman_registry.lock import Locked
    from dragoman_registry.store import Store
    from dragoman_registry.validation import Fault

    from .installs import Installs
    from .registries import Registries


class Plugins:
    """The drivers of one home. Made by the Runtime."""

    def __init__(
        self,
        store: Store,
        *,
        registries: Registries,
        installs: Installs,
        hooks: Hooks,
        emit: Callable[[Event], None],
    ) -> None:
        self._store, self._registries, self._installs = store, registries, installs
        self._hooks, self._emit = hooks, emit

    # lists ----------------------------------------------------------------------------------------------------------

    def installed(self) -> list[Listing]:
        """List what is installed. Blocks for a few milliseconds.

        Raises:
            RegistryError: The state database is damaged.
        """
        return [listing_of(generation) for generation in self._store.installed()]

    async def browse(
        self,
        words: str = "",
        *,
        type: str | None = None,  # noqa: A002 - the field's word
        capability: str | None = None,
        compatible: bool = False,
    ) -> list[Listing]:
        """Find drivers that the registries offer, or that are installed: the best match first.

        Args:
            words: All of them must occur in id, label, summary or types; an id counts most, a summary least.
            type: Only drivers of this database type.
            capability: Only drivers that can do this, as their manifests name it.
            compatible: Only drivers of which a version fits this host.

        Raises:
            RegistryError: No registry could be read.
        """
        find = partial(search, words=words, type=type, capability=capability, compatible=compatible)
        listings, failures = await anyio.to_thread.run_sync(lambda: find(self._store, self._registries.open()))
        for name, error in failures.items():
            self._emit(events.RegistryFailed(registry=name, code=error.code, reason=error.message))
        return listings

    async def show(self, id: str) -> Details:  # noqa: A002 - the registry's word
        """Give everything known of a driver.

        Raises:
            PluginNotFoundError: No registry has it and it is not installed.
        """
        return await anyio.to_thread.run_sync(
            lambda: describe(self._store, self._registries.open(), id, self._installs.choose)
        )

    async def for_type(self, type: str) -> Listing:  # noqa: A002 - the field's word
        """Give the driver of a database type, installed or offered (P2).

        Raises:
            PluginNotFoundError: There is none.
        """
        if listings := await self.browse(type=type):
            return listings[0]
        raise unknown_type(type)

    async def form(self, type: str) -> tuple[FormField, ...]:  # noqa: A002 - the field's word
        """Give the form of a database type, from the installed driver, else from the registry; no code is run.

        Raises:
            PluginNotFoundError: There is no driver for the type.
        """
        generation = await anyio.to_thread.run_sync(self._store.active, type)
        if generation is not None:
            return generation.manifest.form
        return (await self.show((await self.for_type(type)).id)).manifest.form

    # verbs ----------------------------------------------------------------------------------------------------------

    async def install(self, id: str, *, version: str | None = None) -> Generation:  # noqa: A002 - the registry's word
        """Install a driver by its id; asking for it by name is the consent.

        Args:
            id: The plugin's id.
            version: The one wanted, to which a pin moves along; None for the pinned one, or the highest that fits.

        Raises:
            PluginNotFoundError: No registry has it.
            IncompatibleReleaseError: No release fits this host; the message says why.
            RegistryError: The wheel, its digest or the disk is not in order; what was active before still is.
        """
        offer = await self._offer(id)
        installed = await anyio.to_thread.run_sync(self._store.active, id)
        choose = partial(self._installs.choose, offer, version=version, locked=installed is None)
        made = await self._installs.run(offer, await anyio.to_thread.run_sync(choose), trusted=True)
        if version is not None and made.pin not in (None, version):
            await anyio.to_thread.run_sync(partial(self._store.set_pin, made.plugin, version=version))
        return made

    async def _offer(self, plugin: str) -> Offer:
        return await anyio.to_thread.run_sync(lambda: find_offer(self._registries.open(), plugin))

    async def update(self, id: str | None = None, *, dry_run: bool = False) -> list[Update]:  # noqa: A002 - the registry's word
        """Install the newest fitting release of one driver, or of all that are not pinned.

        Wider permissions, and another publisher, are asked about. A live connection keeps the version it opened with.

        Args:
            id: The plugin's id; None for all, where one that fails does not stop the others.
            dry_run: Only say what there is.

        Returns:
            Those that changed, or were to.

        Raises:
            PluginNotFoundError: It is not installed.
            Refused: It needs consent that was not given.
            RegistryError: It could not be installed; what was active before still is.
        """
        updates = []
        for generation in await anyio.to_thread.run_sync(self._chosen, id):
            if id is None and generation.pin:
                continue
            try:
                update = await self._update(generation, dry_run=dry_run)
            except DragomanError as error:
                if id is not None:
                    raise
                version, reason = generation.version, error.message
                update = Update(plugin=generation.plugin, before=version, version="", state="failed", reason=reason)
            if update is not None:
                updates.append(update)
        return updates

    def _chosen(self, plugin: str | None) -> list[Generation]:
        found = [one for one in self._store.installed() if not one.linked and plugin in (None, one.plugin)]
        if plugin is not None and not found:
            raise PluginNotFoundError(f"{plugin} is not installed", hint=f"dragoman plugins install {plugin}")
        return found

    async def _update(self, generation: Generation, *, dry_run: bool) -> Update | None:
        offer = await self._offer(generation.plugin)
        choice = await anyio.to_thread.run_sync(self._installs.choose, offer)
        update, decision = await anyio.to_thread.run_sync(self._installs.compare, generation, offer, choice)
        if choice.release is not None and (update is None or dry_run):
            return update
        if decision.outcome is Outcome.ASK:
            await self._installs.consent(decision, offer)
        await self._installs.run(offer, choice, trusted=True, asked="update", hook="update_plugin")
        return update and replace(update, state="updated")

    async def remove(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Forget an installed driver; saved connections stay and would install it again.

        Raises:
            PluginNotFoundError: It is not installed.
        """
        await self._ask(id, hook="remove_plugin")
        before = await anyio.to_thread.run_sync(self._store.remove, id)
        self._emit(events.PluginRemoved(plugin=before.plugin, version=before.version))

    async def enable(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Let connections use a driver again. Raises PluginNotFoundError."""
        await self._ask(id)
        await anyio.to_thread.run_sync(partial(self._store.set_disabled, id, disabled=False))
        self._emit(events.PluginEnabled(plugin=id))

    async def disable(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Keep a driver installed and unused; opening does not switch it on. Raises PluginNotFoundError."""
        await self._ask(id)
        await anyio.to_thread.run_sync(partial(self._store.set_disabled, id, disabled=True))
        self._emit(events.PluginDisabled(plugin=id))

    async def rollback(self, id: str, *, version: str | None = None) -> Generation:  # noqa: A002 - the registry's word
        """Go back to the version that was active before, or to one before that; a pointer write.

        Raises:
            PluginNotFoundError: It is not kept.
            RegistryError: Its files are damaged.
        """
        await self._ask(id)
        made = await anyio.to_thread.run_sync(partial(self._store.rollback, id, version=version))
        self._emit(events.PluginRolledBack(plugin=made.plugin, version=made.version))
        return made

    async def pin(self, id: str, version: str | None) -> None:  # noqa: A002 - the registry's word
        """Stay at a version, or at none in particular (None)."""
        await self._ask(id)
        await anyio.to_thread.run_sync(partial(self._store.set_pin, id, version=version))
        self._emit(events.PluginPinned(plugin=id, version=version))

    async def _ask(self, plugin: str | None, *, hook: str = "update_plugin") -> None:
        await self._hooks.ask(Call(hook=hook, object=plugin, writes=True, unattended=self._installs.unattended))

    # upkeep ---------------------------------------------------------------------------------------------------------

    async def verify(self, id: str | None = None) -> list[tuple[Generation, list[Fault]]]:  # noqa: A002 - the registry's word
        """Compare what is installed with what was unpacked, file by file.

        Returns:
            Each driver, and every bad file of it. Raises PluginNotFoundError.
        """

        def look() -> list[tuple[Generation, list[Fault]]]:
            return [(generation, self._store.verify(generation)) for generation in self._chosen(id)]

        return await anyio.to_thread.run_sync(look)

    async def repair(self, id: str) -> Generation:  # noqa: A002 - the registry's word
        """Fetch a damaged driver again, or one that fits this host where the installed one does not.

        Raises:
            PluginNotFoundError: It is not installed.
            RegistryError: It could not be fetched; the message names the place.
        """
        [(generation, faults)] = await self.verify(id)
        fits = generation.fits(await anyio.to_thread.run_sync(installed_version, "dragoman-api"))
        if fits and not faults:
            return generation
        offer = await self._offer(id)
        choose = partial(self._installs.choose, offer, version=generation.version if fits else None, pinned=False)
        choice = await anyio.to_thread.run_sync(choose)
        made = await self._installs.run(offer, choice, trusted=True, asked="repair", hook="update_plugin")
        await anyio.to_thread.run_sync(self._store.set_note, f"repairs of {id}", None)
        return made

    async def sync(self, *, frozen: bool = False) -> tuple[list[Generation], list[str]]:
        """Install exactly what `plugins.lock` names.

        Args:
            frozen: Only compare, file by file; nothing is changed.

        Returns:
            What was installed, and with `frozen` every difference.

        Raises:
            ConfigurationError: There is no lock, it is damaged, or a registry has other bytes than it names.
            RegistryError: Something could not be installed; what was active before still is.
        """
        entries, installed = await anyio.to_thread.run_sync(self._locked_and_installed)
        made, differences = [], []
        for plugin, entry in entries.items():
            here = installed.get(plugin)
            faults = await anyio.to_thread.run_sync(self._store.verify, here) if here else []
            if here is not None and here.locked == entry and not faults:
                continue
            if frozen:
                state = faults[0] if faults else f"{here.version} is installed" if here else "it is not installed"
                differences.append(f"{plugin} {entry.version}: {state}")
                continue
            offer = await self._offer(plugin)
            choose = partial(self._installs.choose, offer, locked=True, pinned=False)
            choice = await anyio.to_thread.run_sync(choose)
            made.append(await self._installs.run(offer, choice, trusted=True, asked="sync"))
        differences += [f"{plugin} is installed and not locked" for plugin in installed if plugin not in entries]
        return made, differences

    def _locked_and_installed(self) -> tuple[dict[str, Locked], dict[str, Generation]]:
        from dragoman_registry import lock

        if not self._store.lock_file.is_file():
            hint = "copy it from the machine where the drivers are installed"
            raise ConfigurationError(f"there is no {self._store.lock_file}", hint=hint)
        return lock.read(self._store.lock_file), {one.plugin: one for one in self._chosen(None)}

    async def collect(self, *, dry_run: bool = False) -> list[Collected]:
        """Remove what nobody goes back to and nobody runs from; `dry_run` only says what. Raises RegistryError."""
        from dragoman_registry.collecting import collect

        if not dry_run:
            await self._ask(None, hook="remove_plugin")
        found = await anyio.to_thread.run_sync(partial(collect, self._store, dry_run=dry_run))
        for one in found if not dry_run else ():
            self._emit(events.PluginCollected(plugin=one.plugin, version=one.version, bytes=one.size))
        return found

    async def why(self, id: str) -> list[Generation]:  # noqa: A002 - the registry's word
        """Give the generations of a driver, the active one first; each says why it is here.

        Raises:
            PluginNotFoundError: It is not installed.
        """

        def look() -> list[Generation]:
            active = self._store.active(id)
            if active is None:
                raise PluginNotFoundError(f"{id} is not installed", hint=f"dragoman plugins install {id}")
            others = self._store.generations(active.plugin)
            return [active, *(one for one in others if one.id != active.id)]

        return await anyio.to_thread.run_sync(look)
