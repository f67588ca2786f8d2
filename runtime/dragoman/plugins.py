"""Drivers as a person meets them: lists of what is offered and installed, and the verbs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from dragoman_api import events
from dragoman_api.calls import Call
from dragoman_api.errors import PluginNotFoundError, RegistryError

from .listings import Details, Listing, describe_reach, listing_of, plain_permissions
from .offers import Offer, find_offer, read_offers, unknown_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.events import Event
    from dragoman_api.forms import FormField
    from dragoman_registry.store import Generation, Store

    from ._hooks import Hooks
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

    async def browse(self, words: str = "", *, type: str | None = None) -> list[Listing]:  # noqa: A002 - the field's word
        """List what the registries offer, and what is installed.

        Args:
            words: All of them must occur in id, label, summary or types.
            type: Only drivers of this database type.

        Raises:
            RegistryError: No registry could be read.
        """
        listings, failures = await anyio.to_thread.run_sync(self._browse)
        for name, error in failures.items():
            self._emit(events.RegistryFailed(registry=name, code=error.code, reason=error.message))
        wanted = words.lower().split()
        return [
            listing
            for listing in listings
            if (type is None or type in listing.types) and all(word in listing.text for word in wanted)
        ]

    def _browse(self) -> tuple[list[Listing], dict[str, RegistryError]]:
        installed = {generation.plugin: generation for generation in self._store.installed()}
        listings = {plugin: listing_of(generation) for plugin, generation in installed.items()}
        offers, failures = read_offers(self._registries.open())
        for offer in offers:
            plugin = offer.project.plugin
            listings[plugin] = self._listing(offer, installed.get(plugin))
        return [listings[plugin] for plugin in sorted(listings)], failures

    def _listing(self, offer: Offer, generation: Generation | None) -> Listing:
        project = offer.project
        release = self._installs.choose(offer).release
        newest = release or (project.releases[0] if project.releases else None)
        state = "available" if release else "incompatible"
        if generation is not None:
            update = release is not None and release.version != generation.version and generation.pin is None
            state = "update" if update and generation.state == "installed" else generation.state
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
        except RegistryError:
            if generation is None:
                raise
            listing = listing_of(generation)
            versions = tuple(dict.fromkeys(entry.version for entry in self._store.generations(generation.plugin)))
            words = plain_permissions(generation.manifest.permissions)
            return Details(listing=listing, versions=versions, permissions=words, manifest=generation.manifest)
        choice = self._installs.choose(offer)
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
            version: The one wanted; None for the highest that fits.

        Raises:
            PluginNotFoundError: No registry has it.
            IncompatibleReleaseError: No release fits this host; the message says why.
            RegistryError: The wheel, its digest or the disk is not in order; what was active before still is.
        """
        offer = await anyio.to_thread.run_sync(find_offer, self._registries.open(), id)
        choose = partial(self._installs.choose, offer, version=version, locked=not await self._is_installed(id))
        return await self._installs.run(offer, await anyio.to_thread.run_sync(choose), connection=None, trusted=True)

    async def _is_installed(self, plugin: str) -> bool:
        return await anyio.to_thread.run_sync(self._store.active, plugin) is not None

    async def update(self, id: str | None = None) -> list[Generation]:  # noqa: A002 - the registry's word
        """Install the newest fitting release of one driver, or of all that are not pinned.

        Returns:
            Those that changed; a live connection keeps the version it opened with.
        """
        changed = []
        for generation in await anyio.to_thread.run_sync(self._store.installed):
            if generation.linked or id not in (None, generation.plugin) or (id is None and generation.pin):
                continue
            offer = await anyio.to_thread.run_sync(find_offer, self._registries.open(), generation.plugin)
            choice = await anyio.to_thread.run_sync(self._installs.choose, offer)
            updated = await self._installs.run(offer, choice, connection=None, trusted=True)
            if updated.id != generation.id:
                changed.append(updated)
        if id is not None and not await anyio.to_thread.run_sync(self._store.active, id):
            raise PluginNotFoundError(f"{id} is not installed", hint=f"dragoman plugins install {id}")
        return changed

    async def remove(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Forget an installed driver; saved connections stay and would install it again.

        Raises:
            PluginNotFoundError: It is not installed.
        """
        await self._hooks.ask(Call(hook="remove_plugin", object=id, writes=True, unattended=self._installs.unattended))
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
        await self._hooks.ask(Call(hook="update_plugin", object=id, writes=True, unattended=self._installs.unattended))
        return await anyio.to_thread.run_sync(self._store.rollback, id)

    async def pin(self, id: str, version: str | None) -> None:  # noqa: A002 - the registry's word
        """Stay at a version, or at none in particular (None)."""
        await anyio.to_thread.run_sync(partial(self._store.set_pin, id, version=version))


