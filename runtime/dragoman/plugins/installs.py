"""Installing one driver: choose a release, ask the automations, run the installer, tell what happened."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from dragoman.questions import Question
from dragoman.settings import user_name
from dragoman_api import events
from dragoman_api.calls import Call
from dragoman_api.errors import DragomanError, IncompatibleReleaseError, Refused
from dragoman_registry.decision import Inputs, decide

from .listings import plain_permissions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman._hooks import Hooks
    from dragoman.questions import Confirm
    from dragoman.sandbox.policy import Policy
    from dragoman_api.events import Event
    from dragoman_registry.choice import Choice
    from dragoman_registry.decision import Decision
    from dragoman_registry.generation import Generation, Origin
    from dragoman_registry.manifest import Manifest
    from dragoman_registry.store import Store

    from .offers import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One driver for which there is another version.

    Attributes:
        plugin: The plugin's id.
        before: The version that was active.
        version: The one chosen, empty where none could be.
        permissions: What it may do beyond what was granted, in plain words.
        publisher: Who signs it, where that is not who signed the one before.
        state: ``available``, ``updated`` or ``failed``.
        reason: Why it failed.
    """

    plugin: str
    before: str
    version: str
    permissions: tuple[str, ...] = ()
    publisher: str = ""
    state: str = "available"
    reason: str = ""


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
        confirm: Confirm | None,
    ) -> None:
        self._store, self._cache, self._hooks, self._emit, self._policy = store, cache, hooks, emit, policy
        self._confirm = confirm
        self.unattended = confirm is None

    def choose(self, offer: Offer, *, version: str | None = None, locked: bool = False, pinned: bool = True) -> Choice:
        """Choose a release of an offered driver. Blocks.

        Args:
            offer: The driver.
            version: The one wanted; None for the pinned one, else the highest that fits.
            locked: Hold it to the bytes that `plugins.lock` names.
            pinned: Hold it to the version it is pinned to.
        """
        from dragoman_registry import lock
        from dragoman_registry.choice import choose
        from dragoman_registry.wheels import Host

        plugin = offer.project.plugin
        entry = lock.read(self._store.lock_file).get(plugin) if locked and version is None else None
        wanted = version or (self._store.pin_of(plugin) if pinned else None)
        return choose(offer.project.releases, host=Host.here(), pinned=wanted, locked=entry)

    def knows(self, offer: Offer) -> bool:
        """Tell whether a person trusted the publisher of a driver before, under the keys of today. Blocks."""
        publisher = offer.registry.publisher(offer.project.project)
        known = [one.origin for one in self._store.installed() if one.trusted and not one.linked]
        return publisher is not None and any(
            origin.publisher == publisher.name and {*publisher.keys} <= {*origin.keys} for origin in known
        )

    def new_publisher(self, generation: Generation, offer: Offer) -> str:
        """Name who signs a driver now, with the keys, if that is not who signed what is installed. Blocks."""
        origin, publisher = generation.origin, offer.registry.publisher(offer.project.project)
        if publisher is None or not origin.asked:  # the host vouches for it, or nobody noted who signed
            return ""
        if publisher.name == origin.publisher and {*publisher.keys} <= {*origin.keys}:
            return ""
        return f"{publisher.name} (key {', '.join(key[:12] for key in publisher.keys)})"

    def compare(self, generation: Generation, offer: Offer, choice: Choice) -> tuple[Update | None, Decision]:
        """Say what an update would change, and whether it needs consent.

        Returns:
            None where the chosen release is the installed one, or an older one and nothing is held against ours.
        """
        from packaging.version import Version

        known = Inputs(
            type=generation.plugin,
            plugin=generation.plugin,
            choice=choice,
            granted=tuple(generation.manifest.permissions),
            new_publisher=self.new_publisher(generation, offer),
        )
        decision, release = decide(known), choice.release
        if release is None or generation.locked.covers(release):
            return None, decision
        passed_over = {entry.version for entry in choice.skipped if entry.code != "pre-release"}
        if Version(release.version) < Version(generation.version) and generation.version not in passed_over:
            return None, decision
        update = Update(
            plugin=generation.plugin,
            before=generation.version,
            version=release.version,
            permissions=plain_permissions(known.beyond_baseline),
            publisher=known.new_publisher,
        )
        return update, replace(decision, action=f"dragoman plugins update {generation.plugin} --yes")

    async def consent(self, decision: Decision, offer: Offer) -> None:
        """Ask for what needs a person's consent. Raises Refused if it is not given, or nobody is there to give it."""
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

    async def run(
        self,
        offer: Offer,
        choice: Choice,
        *,
        trusted: bool,
        asked: str = "by name",
        connection: str | None = None,
        hook: str = "install_plugin",
    ) -> Generation:
        """Install what was chosen.

        Args:
            offer: The driver.
            choice: The release, and why others were passed over.
            trusted: Its bytes are covered by a lock or a person's consent.
            asked: What asked for it.
            connection: The one that waits for it.
            hook: What automations are told that this is.

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
        await self._hooks.ask(Call(hook=hook, object=plugin, writes=True, unattended=self.unattended))
        self._emit(events.PluginInstallStarted(plugin=plugin, version=version, connection=connection))

        def progress(phase: str, done: int, total: int) -> None:
            self._emit(
                events.PluginInstallProgressed(plugin=plugin, version=version, phase=phase, done=done, total=total)
            )

        try:
            origin = await anyio.to_thread.run_sync(
                _origin, offer, choice, f"opening {connection}" if connection else asked
            )
            generation = await install(
                choice,
                store=self._store,
                registry=offer.registry,
                host=await anyio.to_thread.run_sync(Host.here),
                smoke_test=partial(self._smoke_test, trusted=trusted),
                on_progress=progress,
                trusted=trusted,
                origin=origin,
            )
        except DragomanError as error:
            failed = events.PluginInstallFailed(plugin=plugin, version=version, code=error.code, reason=error.message)
            self._emit(failed)
            raise
        seconds = time.monotonic() - began
        self._emit(events.PluginInstalled(plugin=plugin, version=version, sha256=generation.sha256, seconds=seconds))
        return generation

    async def _smoke_test(self, trees: tuple[Path, ...], manifest: Manifest, *, trusted: bool) -> None:
        from dragoman.loader import smoke_test
        from dragoman.sandbox.grants import granted
        from dragoman.sandbox.process import Launch

        launch = Launch(
            driver=manifest.entry,
            trees=trees,
            policy=self._policy,
            trusted=trusted,
            cache=self._cache,
        )
        await smoke_test(granted(launch, manifest.permissions), manifest)


def _origin(offer: Offer, choice: Choice, asked: str) -> Origin:
    from dragoman_registry.generation import Origin

    skipped = tuple(f"{entry.version}: {entry.reason}" for entry in choice.skipped)
    publisher = offer.registry.publisher(offer.project.project)
    name, keys = (publisher.name, publisher.keys) if publisher else ("", ())
    return Origin(asked=asked, who=user_name(), skipped=skipped, publisher=name, keys=keys)
