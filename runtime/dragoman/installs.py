"""Installing one driver: choose a release, ask the automations, run the installer, tell what happened."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from dragoman_api import events
from dragoman_api.calls import Call
from dragoman_api.errors import DragomanError, IncompatibleReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman_api.events import Event
    from dragoman_registry.choice import Choice
    from dragoman_registry.manifest import Manifest
    from dragoman_registry.store import Generation, Store

    from ._hooks import Hooks
    from .offers import Offer
    from .sandbox.policy import Policy


class Installs:
    """Installs into one store, with a smoke test in the sandbox, hooks before and events after.

    Attributes:
        unattended: Nobody is there to be asked.
    """

    def __init__(
        self,
        store: Store,
        *,
        cache: Path,
        hooks: Hooks,
        emit: Callable[[Event], None],
        policy: Policy,
        unattended: bool,
    ) -> None:
        self._store, self._cache, self._hooks, self._emit, self._policy = store, cache, hooks, emit, policy
        self.unattended = unattended

    def choose(self, offer: Offer, *, version: str | None = None, locked: bool = False) -> Choice:
        """Choose a release of an offered driver. Blocks.

        Args:
            offer: The driver.
            version: The one wanted; None for the pinned one, else the highest that fits.
            locked: Hold it to the bytes that `plugins.lock` names.
        """
        from dragoman_registry import lock
        from dragoman_registry.choice import choose
        from dragoman_registry.wheels import Host

        plugin = offer.project.plugin
        entry = lock.read(self._store.lock_file).get(plugin) if locked and version is None else None
        pinned = version or self._store.pin_of(plugin)
        return choose(offer.project.releases, host=Host.here(), pinned=pinned, locked=entry)

    async def run(self, offer: Offer, choice: Choice, *, connection: str | None, trusted: bool) -> Generation:
        """Install what was chosen.

        Args:
            offer: The driver.
            choice: The release, and why others were passed over.
            connection: The one that waits for it.
            trusted: Its bytes are covered by a lock or a person's consent.

        Raises:
            Refused: An automation vetoed it.
            IncompatibleReleaseError: The choice is empty.
            RegistryError: The wheel, its digest or the disk is not in order; what was active before still is.
            SandboxError: The smoke test failed.
        """
        from dragoman_registry.installer import install
        from dragoman_registry.wheels import Host

        plugin, began = offer.project.plugin, time.monotonic()
        if choice.release is None:
            reasons = "; ".join(f"{entry.version} skipped: {entry.reason}" for entry in choice.skipped)
            text = f"no release of {plugin} fits this host: {reasons or 'there is none'}"
            raise IncompatibleReleaseError(text, hint=f"dragoman plugins show {plugin}")
        version = choice.release.version
        await self._hooks.ask(Call(hook="install_plugin", object=plugin, writes=True, unattended=self.unattended))
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
        from .sandbox.grants import granted
        from .sandbox.process import Launch

        launch = Launch(
            driver=manifest.entry,
            trees=trees,
            policy=self._policy,
            trusted=trusted,
            cache=self._cache,
        )
        await smoke_test(granted(launch, manifest.permissions), manifest)
