"""User operations on drivers: list offered and installed ones, install, update, repair and so on.

What reads registries is imported on first use: to open a connection, its driver is usually there.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from dragoman.connections.form_values import effective
from dragoman.folders import installed_version
from dragoman.spellings import did_you_mean, near_names
from dragoman_api import events
from dragoman_api.errors import ConfigurationError, DragomanError, PluginNotFoundError
from dragoman_api.events import Call
from dragoman_registry.client import lockfile
from dragoman_registry.client.generation import Generation
from dragoman_registry.client.install_decision import InstallOutcome

from .install_steps import AvailableUpdate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman.automations.hook_manager import Hooks
    from dragoman_api.connections import FormField
    from dragoman_api.events import Event
    from dragoman_registry.client.installed_drivers import Collected, Store
    from dragoman_registry.client.lockfile import Locked
    from dragoman_registry.validation import Fault

    from .combined_catalog import Offer
    from .driver_views import DriverDetails, DriverListing
    from .install_steps import PluginInstaller
    from .registries import Registries


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of repairing everything.

    Attributes:
        aside: The new location of the damaged state database; None if it was intact.
        copied: An intact copy replaced it; otherwise data that the lock does not hold is lost.
        made: Drivers that were fetched again.
        left: Drivers that could not be fetched, and why.
    """

    aside: Path | None
    copied: bool
    made: list[Generation]
    left: dict[str, DragomanError]


class Synced(NamedTuple):
    """The outcome of following `plugins.lock`.

    Attributes:
        made: What was installed.
        differences: Remaining differences from the lock: with `frozen` all of them, else drivers it does not name.
        skipped: Drivers it names that could not be installed as it says, and why.
    """

    made: list[Generation]
    differences: list[str]
    skipped: dict[str, DragomanError]


class Plugins:
    """The drivers of one home. Made by the Runtime."""

    def __init__(
        self,
        store: Store,
        *,
        registries: Registries,
        installer: PluginInstaller,
        hooks: Hooks,
        emit: Callable[[Event], None],
    ) -> None:
        self._store, self._registries, self._installer = store, registries, installer
        self._hooks, self._emit = hooks, emit

    # lists ----------------------------------------------------------------------------------------------------------

    def installed(self) -> list[DriverListing]:
        """List what is installed. Blocks for a few milliseconds.

        Raises:
            RegistryError: The state database is damaged.
        """
        from .driver_views import listing_of

        return [listing_of(generation) for generation in self._store.installed()]

    async def browse(
        self,
        words: str = "",
        *,
        type: str | None = None,  # noqa: A002 - the field's word
        capability: str | None = None,
        compatible: bool = False,
    ) -> list[DriverListing]:
        """Find drivers that the registries offer, or that are installed: the best match first.

        Args:
            words: Words that must all occur in id, label, summary or types; an id counts most, a summary least.
            type: Only drivers of this database type.
            capability: Only drivers that can do this, as their manifests name it.
            compatible: Only drivers with a version that fits this host.

        Raises:
            RegistryError: No registry could be read.
        """
        from .driver_search import search

        find = partial(search, words=words, type=type, capability=capability, compatible=compatible)
        hidden: list[events.Event] = []
        listings, failures = await anyio.to_thread.run_sync(
            lambda: find(self._store, self._registries.open(), on_hidden=hidden.append)
        )
        for event in hidden:
            self._emit(event)
        for name, error in failures.items():
            self._emit(events.RegistryFailed(registry=name, code=error.code, reason=error.message))
        return listings

    async def show(self, id: str) -> DriverDetails:  # noqa: A002 - the registry's word
        """Return everything known about a driver.

        Raises:
            PluginNotFoundError: No registry has it and it is not installed.
        """
        from .driver_search import describe

        try:
            return await anyio.to_thread.run_sync(
                lambda: describe(self._store, self._registries.open(), id, self._installer.resolve)
            )
        except PluginNotFoundError as error:
            raise await self._nearer(error, id, lambda listing: [listing.id]) from None

    async def for_type(self, type: str) -> DriverListing:  # noqa: A002 - the field's word
        """Return the driver of a database type, installed or offered (P2).

        Raises:
            PluginNotFoundError: No driver serves the type.
        """
        from .combined_catalog import unknown_type

        if listings := await self.browse(type=type):
            return listings[0]
        raise await self._nearer(unknown_type(type), type, lambda listing: listing.types)

    async def _nearer(
        self, error: PluginNotFoundError, unknown_name: str, names: Callable[[DriverListing], Iterable[str]]
    ) -> PluginNotFoundError:
        """Add the names of known drivers that resemble an unknown one."""
        with suppress(DragomanError):  # the first error is reported
            known_names = {name for listing in await self.browse() for name in names(listing)}
            error.message += did_you_mean(near_names(unknown_name, sorted(known_names)))
        return error

    async def form(self, type: str) -> tuple[FormField, ...]:  # noqa: A002 - the field's word
        """Return a database type's form from the installed driver, else from the registry; no code runs.

        Its fields are as the host treats them: no manifest hides where a connection leads, or chooses that by default.

        Raises:
            PluginNotFoundError: There is no driver for the type.
        """
        generation = await anyio.to_thread.run_sync(self._store.active, type)
        if generation is not None:
            form = generation.manifest.form
        else:
            form = (await self.show((await self.for_type(type)).id)).manifest.form
        return tuple(map(effective, form))

    # verbs ----------------------------------------------------------------------------------------------------------

    async def install(self, id: str, *, version: str | None = None) -> Generation:  # noqa: A002 - the registry's word
        """Install a driver by id. The request is the consent, except to permissions beyond the installed version.

        Args:
            id: The plugin's id.
            version: The wanted version, to which a pin moves; None for the pinned one, or the highest that fits.

        Raises:
            PluginNotFoundError: No registry has it.
            Refused: Wider permissions, or another publisher, did not get consent.
            IncompatibleReleaseError: No release fits this host; the message says why.
            RegistryError: The wheel, its digest or the disk is faulty; the previously active version stays active.
        """
        offer = await self._offer(id)
        installed = await anyio.to_thread.run_sync(self._store.active, id)
        resolve = partial(self._installer.resolve, offer, version=version, locked=installed is None)
        choice = await anyio.to_thread.run_sync(resolve)
        action = f"dragoman plugins install {id}{f' --version {version}' if version else ''} --yes"
        await self._installer.agree(installed, offer, choice, action=action)
        generation = await self._installer.run(offer, choice, trusted=True)
        if version is not None and generation.pin not in (None, version):
            await anyio.to_thread.run_sync(partial(self._store.set_pin, generation.plugin, version=version))
        return generation

    async def _offer(self, plugin: str) -> Offer:
        from .combined_catalog import SkippedRegistries, find_offer

        skipped = SkippedRegistries()
        find = partial(find_offer, plugin=plugin, skipped=skipped)
        offer = await anyio.to_thread.run_sync(lambda: find(self._registries.open()))
        self._installer.left_out |= skipped
        return offer

    async def update(self, id: str | None = None, *, dry_run: bool = False) -> list[AvailableUpdate]:  # noqa: A002 - the registry's word
        """Install the newest fitting release of one driver, or of all that are not pinned.

        Wider permissions, and another publisher, need consent. A live connection keeps the version it opened with.

        Args:
            id: The plugin's id; None for all, where a failure does not stop the others.
            dry_run: Only report the available updates.

        Returns:
            The drivers that changed, would change, or stay because they are pinned.

        Raises:
            PluginNotFoundError: It is not installed.
            Refused: It needs consent that was not given.
            RegistryError: It could not be installed; the previously active version stays active.
        """
        updates = []
        for generation in await anyio.to_thread.run_sync(self._chosen, id):
            if generation.pin and (id is None or generation.pin == generation.version):
                updates.append(_stays(generation))
                continue
            try:
                update = await self._update(generation, dry_run=dry_run)
            except DragomanError as error:
                if id is not None:
                    raise
                version, reason = generation.version, error.message
                update = AvailableUpdate(
                    plugin=generation.plugin, before=version, version="", state="failed", reason=reason
                )
            if update is not None:
                updates.append(update)
        return updates

    def _chosen(self, plugin: str | None) -> list[Generation]:
        generations = [
            generation
            for generation in self._store.installed()
            if not generation.linked and plugin in (None, generation.plugin)
        ]
        if plugin is not None and not generations:
            raise PluginNotFoundError(f"{plugin} is not installed", hint=f"dragoman plugins install {plugin}")
        return generations

    async def _update(self, generation: Generation, *, dry_run: bool) -> AvailableUpdate | None:
        offer = await self._offer(generation.plugin)
        choice = await anyio.to_thread.run_sync(self._installer.resolve, offer)
        await anyio.to_thread.run_sync(self._installer.refuse_other_bytes, offer, choice)
        update, decision = await anyio.to_thread.run_sync(self._installer.compare, generation, offer, choice)
        if choice.release is not None and (update is None or dry_run):
            return update
        if decision.outcome is InstallOutcome.ASK:
            await self._installer.consent(decision, offer)
        await self._installer.run(offer, choice, trusted=True, asked="update", hook="update_plugin")
        return update and replace(update, state="updated")

    async def remove(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Uninstall a driver; saved connections stay, and opening one installs it again.

        Raises:
            PluginNotFoundError: It is not installed.
        """
        await self._ask(id, hook="remove_plugin")
        before = await anyio.to_thread.run_sync(self._store.remove, id)
        self._emit(events.PluginRemoved(plugin=before.plugin, version=before.version))

    async def enable(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Enable a driver for connections again. Raises PluginNotFoundError."""
        await self._ask(id)
        await anyio.to_thread.run_sync(partial(self._store.set_disabled, id, disabled=False))
        self._emit(events.PluginEnabled(plugin=id))

    async def disable(self, id: str) -> None:  # noqa: A002 - the registry's word
        """Disable an installed driver; opening a connection does not enable it. Raises PluginNotFoundError."""
        await self._ask(id)
        await anyio.to_thread.run_sync(partial(self._store.set_disabled, id, disabled=True))
        self._emit(events.PluginDisabled(plugin=id))

    async def rollback(self, id: str, *, version: str | None = None) -> Generation:  # noqa: A002 - the registry's word
        """Go back to the previously active version, or to an older one; only a pointer is written.

        Raises:
            PluginNotFoundError: It is not kept.
            RegistryError: Its files are damaged.
        """
        await self._ask(id)
        generation = await anyio.to_thread.run_sync(partial(self._store.rollback, id, version=version))
        self._emit(events.PluginRolledBack(plugin=generation.plugin, version=generation.version))
        return generation

    async def pin(self, id: str, version: str | None) -> None:  # noqa: A002 - the registry's word
        """Pin a driver to a version; None unpins it."""
        await self._ask(id)
        await anyio.to_thread.run_sync(partial(self._store.set_pin, id, version=version))
        self._emit(events.PluginPinned(plugin=id, version=version))

    async def _ask(self, plugin: str | None, *, hook: str = "update_plugin") -> None:
        await self._hooks.ask(Call(hook=hook, object=plugin, writes=True, unattended=self._installer.unattended))

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
            Refused: Another version would take its place, with wider permissions that did not get consent.
            RegistryError: It could not be fetched; the message names the place.
        """
        [(generation, faults)] = await self.verify(id)
        fits = generation.fits(await anyio.to_thread.run_sync(installed_version, "dragoman-api"))
        if fits and not faults:
            return generation
        offer = await self._offer(id)
        resolve = partial(self._installer.resolve, offer, version=generation.version if fits else None, pinned=False)
        choice = await anyio.to_thread.run_sync(resolve)
        await self._installer.agree(generation, offer, choice, action=f"dragoman plugins repair {id} --yes")
        replacement = await self._installer.run(offer, choice, trusted=True, asked="repair", hook="update_plugin")
        await anyio.to_thread.run_sync(self._installer.forget_repairs, id)
        return replacement

    async def repair_all(self) -> Repaired:
        """Repair a damaged state database, then every driver that is damaged or differs from `plugins.lock`.

        A driver that cannot be repaired does not stop the others. Raises InstallError: The disk fails.
        """
        await self._ask(None)
        unreadable = await anyio.to_thread.run_sync(self._unreadable)
        restored = await anyio.to_thread.run_sync(self._store.restore)
        entries, installed = await anyio.to_thread.run_sync(self._locked_and_installed)
        generations, left = [], dict[str, DragomanError]()
        for plugin in dict.fromkeys([*entries, *installed]):
            try:
                entry = entries.get(plugin)
                done = await (self._sync(plugin, entry, installed.get(plugin)) if entry else self._mend(plugin))
                generations += [done] if done else []
            except DragomanError as error:
                left[plugin] = error
        for plugin in unreadable.keys() - entries.keys() - installed.keys():
            reason = f"{plugin} {unreadable[plugin]} could not be read, and plugins.lock does not name it"
            left[plugin] = PluginNotFoundError(reason, hint=f"dragoman plugins install {plugin}")
        return Repaired(
            aside=restored and restored[0], copied=bool(restored and restored[1]), made=generations, left=left
        )

    def _unreadable(self) -> dict[str, str]:
        try:
            return self._store.unreadable()
        except DragomanError:  # all of it is damaged
            return {}

    async def _mend(self, plugin: str) -> Generation | None:
        [(generation, faults)] = await self.verify(plugin)
        return await self.repair(generation.plugin) if faults else None

    async def sync(self, *, frozen: bool = False) -> Synced:
        """Install exactly what `plugins.lock` names; skip and report drivers that cannot be installed that way.

        Args:
            frozen: Only compare, file by file; nothing is changed.

        Raises:
            ConfigurationError: The lock is missing or damaged.
            Refused: An automation vetoed it.
        """
        if not await anyio.to_thread.run_sync(self._store.lock_file.is_file):
            hint = "copy it from the machine where the drivers are installed"
            raise ConfigurationError(f"there is no {self._store.lock_file}", hint=hint)
        if not frozen:
            await self._ask(None, hook="install_plugin")
        entries, installed = await anyio.to_thread.run_sync(self._locked_and_installed)
        done, differences, skipped = list[Generation](), list[str](), dict[str, DragomanError]()
        for plugin, entry in entries.items():
            generation = installed.get(plugin)
            if frozen:
                faults = await anyio.to_thread.run_sync(self._store.verify, generation) if generation else []
                state = (
                    faults[0]
                    if faults
                    else f"{generation.version} is installed"
                    if generation
                    else "it is not installed"
                )
                if generation is None or generation.locked != entry or faults:
                    differences.append(f"{plugin} {entry.version}: {state}")
                continue
            try:
                new_generation = await self._sync(plugin, entry, generation)
                done += [new_generation] if new_generation else []
            except DragomanError as error:
                skipped[plugin] = error
        differences += [f"{plugin} is installed and not locked" for plugin in installed if plugin not in entries]
        return Synced(done, differences, skipped)

    async def _sync(self, plugin: str, entry: Locked, generation: Generation | None) -> Generation | None:
        """Install what the lock names, unless every file of it is already installed."""
        if (
            generation is not None
            and generation.locked == entry
            and not await anyio.to_thread.run_sync(self._store.verify, generation)
        ):
            return None
        offer = await self._offer(plugin)
        resolve = partial(self._installer.resolve, offer, locked=True, pinned=False)
        choice = await anyio.to_thread.run_sync(resolve)
        await self._installer.agree(generation, offer, choice, action="dragoman plugins sync --yes", named=False)
        return await self._installer.run(offer, choice, trusted=True, asked="sync")

    def _locked_and_installed(self) -> tuple[dict[str, Locked], dict[str, Generation]]:
        return lockfile.read(self._store.lock_file), {
            generation.plugin: generation for generation in self._chosen(None)
        }

    async def collect(self, *, dry_run: bool = False) -> list[Collected]:
        """Remove generations neither running nor kept for rollback; `dry_run` only lists them. Raises RegistryError."""
        if not dry_run:
            await self._ask(None, hook="remove_plugin")
        garbage = await anyio.to_thread.run_sync(partial(self._store.collect, dry_run=dry_run))
        for generation in garbage if not dry_run else ():
            self._emit(
                events.PluginCollected(plugin=generation.plugin, version=generation.version, bytes=generation.size)
            )
        return garbage

    async def why(self, id: str) -> list[Generation]:  # noqa: A002 - the registry's word
        """Return a driver's generations, the active one first, each with the reason why it is kept.

        Raises:
            PluginNotFoundError: It is not installed.
        """

        def look() -> list[Generation]:
            active = self._store.active(id)
            if active is None:
                raise PluginNotFoundError(f"{id} is not installed", hint=f"dragoman plugins install {id}")
            others = self._store.generations(active.plugin)
            return [active, *(generation for generation in others if generation.id != active.id)]

        return await anyio.to_thread.run_sync(look)


def _stays(generation: Generation) -> AvailableUpdate:
    """Return what an update does to a pinned driver: nothing."""
    reason = f"it is pinned to {generation.pin}: dragoman plugins unpin {generation.plugin}"
    return AvailableUpdate(
        plugin=generation.plugin, before=generation.version, version=generation.version, state="pinned", reason=reason
    )
