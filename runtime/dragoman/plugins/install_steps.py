"""Installing one driver: choose a release, ask the automations, run the installer, report what happened."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from dragoman.automations.consent import Question, ask_consent
from dragoman.settings import user_name
from dragoman_api import events
from dragoman_api.errors import DragomanError, InstallError, IntegrityError, Refused, RegistryError
from dragoman_api.events import Call
from dragoman_api.wording import failure
from dragoman_registry.client import lockfile
from dragoman_registry.client.install_decision import Inputs, decide
from dragoman_registry.names import called
from dragoman_registry.wheels.manifest import plain_permissions
from dragoman_registry.wheels.packaging_parsers import parse_version

from .registries import ASK_OPERATOR, BUNDLED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman.automations.consent import Confirm
    from dragoman.automations.hook_manager import Hooks
    from dragoman.sandbox.levels import Policy
    from dragoman_api.events import Event
    from dragoman_registry.client.generation import Generation, Origin
    from dragoman_registry.client.install_decision import Decision
    from dragoman_registry.client.installed_drivers import Store
    from dragoman_registry.client.resolver import Resolution
    from dragoman_registry.wheels.manifest import Manifest

    from .combined_catalog import Offer

PAUSES = (0.0, 10.0, 60.0)
"""Seconds before each automatic repair; after the last one, a person must request it."""
_REPAIRS = "repairs of {}"


class AvailableUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """A driver that has another version available.

    Attributes:
        before: The version that was active.
        version: The one chosen, empty where none could be.
        permissions: Permissions beyond those granted, in plain words.
        publisher: Its signer, if different from the previous version's.
        state: ``available``, ``updated``, ``pinned`` or ``failed``.
        reason: Why it failed, or stays.
    """

    plugin: str
    before: str
    version: str
    permissions: tuple[str, ...] = ()
    publisher: str = ""
    state: str = "available"
    reason: str = ""


class PluginInstaller:
    """Installs into one store, with a smoke test in the sandbox, hooks before and events after.

    Attributes:
        unattended: No person can be asked.
        left_out: Registries skipped while looking for an offer; reported with the next installation.
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
        self.left_out: dict[str, RegistryError] = {}

    def resolve(
        self, offer: Offer, *, version: str | None = None, locked: bool = False, pinned: bool = True
    ) -> Resolution:
        """Choose a release of an offered driver. Blocks.

        Args:
            offer: The driver.
            version: The one wanted; None for the pinned one, else the highest that fits.
            locked: Hold it to the bytes that `plugins.lock` names.
            pinned: Hold it to the version it is pinned to.
        """
        from dragoman_registry.client.resolver import resolve
        from dragoman_registry.wheels.host_environment import Host

        plugin = offer.project.plugin
        entry = lockfile.read(self._store.lock_file).get(plugin) if locked and version is None else None
        exact_version = version or (self._store.pin_of(plugin) if pinned else None)
        return resolve(offer.project.releases, host=Host.here(), pinned=exact_version, locked=entry)

    def knows(self, offer: Offer) -> bool:
        """Return whether a person trusted a driver's publisher before, under its current keys. Blocks."""
        publisher = offer.registry.publisher(offer.project.project)
        origins = [
            generation.origin for generation in self._store.installed() if generation.trusted and not generation.linked
        ]
        return publisher is not None and any(
            origin.publisher == publisher.name and {*publisher.keys} <= {*origin.keys} for origin in origins
        )

    def new_publisher(self, generation: Generation, offer: Offer) -> str:
        """Return a driver's signer and keys if they differ from the installed version's. Blocks."""
        origin, publisher = generation.origin, offer.registry.publisher(offer.project.project)
        if publisher is None or not origin.asked:  # the host vouches for it, or no signer was recorded
            return ""
        if publisher.name == origin.publisher and {*publisher.keys} <= {*origin.keys}:
            return ""
        return f"{publisher.name} (key {', '.join(key[:12] for key in publisher.keys)})"

    def compare(
        self, generation: Generation, offer: Offer, choice: Resolution
    ) -> tuple[AvailableUpdate | None, Decision]:
        """Return what an update would change, and whether it needs consent.

        Returns:
            None if the chosen release is the installed one, or is older and the installed one has no advisory.
        """
        inputs, release = self._beside(generation, offer, choice), choice.release
        decision = decide(inputs)
        if release is None or generation.locked.covers(release):
            return None, decision
        passed_over = {entry.version for entry in choice.skipped if entry.code != "pre-release"}
        if parse_version(release.version) < parse_version(generation.version) and generation.version not in passed_over:
            return None, decision
        update = AvailableUpdate(
            plugin=generation.plugin,
            before=generation.version,
            version=release.version,
            permissions=plain_permissions(inputs.beyond_baseline),
            publisher=inputs.new_publisher,
        )
        return update, replace(decision, action=f"dragoman plugins update {generation.plugin} --yes")

    def _beside(self, generation: Generation | None, offer: Offer, choice: Resolution) -> Inputs:
        return Inputs(
            type=offer.project.plugin,
            plugin=offer.project.plugin,
            choice=choice,
            granted=tuple(generation.manifest.permissions) if generation else (),
            new_publisher=self.new_publisher(generation, offer) if generation else "",
        )

    def refuse_other_bytes(self, offer: Offer, choice: Resolution) -> None:
        """Refuse a release whose files differ from the installed ones of the same version. Blocks.

        The drivers that come with dragoman are excepted: they are replaced together with it.

        Raises:
            IntegrityError: The version was changed after its publication.
        """
        plugin, release = offer.project.plugin, choice.release
        for generation in self._store.generations(plugin) if release else ():
            among_bundled = {generation.registry, offer.registry.name} == {BUNDLED}
            if release is None or generation.version != release.version or among_bundled:
                continue
            ours = {wheel.file: wheel.sha256 for wheel in (*generation.locked.wheels, *generation.locked.dependencies)}
            for wheel in (*release.wheels, *release.dependencies):
                if (expected := ours.get(wheel.file, wheel.sha256)) != wheel.sha256:
                    again = f"dragoman plugins remove {plugin}, then dragoman plugins install {plugin}"
                    raise IntegrityError(
                        f"the registry {offer.registry.name} has other bytes under {plugin} {release.version} than "
                        "those that are installed; nothing was installed",
                        hint=f"{ASK_OPERATOR}. To accept them: {again}",
                        details={"path": wheel.file, "expected": expected, "actual": wheel.sha256},
                    )

    async def agree(
        self, generation: Generation | None, offer: Offer, choice: Resolution, *, action: str, named: bool = True
    ) -> None:
        """Ask for consent to a release's additional permissions or new publisher.

        Args:
            generation: What is installed, None for nothing.
            offer: The driver.
            choice: What is about to replace it.
            action: The command that agrees.
            named: A person, not a lock, asked for it by name, which is consent if nothing is installed.

        Raises:
            Refused: It needs consent that was not given.
        """
        if not choice.release or (generation is None and named):
            return
        if generation is not None and (generation.linked or generation.locked.covers(choice.release)):
            return
        inputs = await anyio.to_thread.run_sync(self._beside, generation, offer, choice)
        decision = decide(inputs)
        if decision.about in ("permissions", "publisher"):
            await self.consent(replace(decision, action=action), offer)

    async def consent(self, decision: Decision, offer: Offer) -> None:
        """Ask for a person's consent. Raises Refused if it is denied or no person can be asked."""
        release = decision.choice.release if decision.choice else None
        question = Question(
            subject=decision.about,
            text=f"{decision.reason}. Install {_called(offer)} anyway?",
            details=plain_permissions(release.permissions) if release else (),
        )
        if self._confirm is None:
            raise Refused(f"{decision.reason}; nothing was installed without consent", hint=decision.action)
        if not await ask_consent(self._confirm, question):
            raise Refused(f"{_called(offer)} was not installed", hint=decision.action)

    def count_repair(self, plugin: str, decision: Decision) -> None:
        """Count a repair, and refuse too many or too frequent ones: writing does not repair a failing disk."""

        def count_one(note: Any) -> tuple[int, float]:
            count, last = note or (0, 0.0)
            # Where a clock was set back, a repair may lie in the future.
            if count >= len(PAUSES) or 0 <= time.time() - last < PAUSES[count]:
                reason = f"{decision.reason}; it was repaired {count} times recently, so the next needs a command"
                raise RegistryError(reason, hint=decision.action, code="repair-needed")
            return count + 1, time.time()

        self._store.change_note(_REPAIRS.format(plugin), count_one)

    def forget_repairs(self, plugin: str) -> None:
        """Reset the repair count, since the driver is intact. Blocks."""
        if self._store.note(key := _REPAIRS.format(plugin)):
            self._store.change_note(key, lambda _: None)

    async def run(
        self,
        offer: Offer,
        choice: Resolution,
        *,
        trusted: bool,
        asked: str = "by name",
        connection: str | None = None,
        hook: str = "install_plugin",
    ) -> Generation:
        """Install what was chosen.

        Raises:
            Refused: An automation vetoed it.
            IncompatibleReleaseError: The choice is empty.
            IntegrityError: The version is installed, with other bytes.
            RegistryError: The wheel, its digest or the disk is faulty; the previously active version stays active.
            SandboxError: The smoke test failed.
        """
        from dragoman_registry.client.installer import install

        plugin, began = offer.project.plugin, time.monotonic()
        while self.left_out:
            name, error = self.left_out.popitem()
            self._emit(events.RegistryFailed(registry=name, code=error.code, reason=error.message))
        version = choice.expect(plugin).version
        await self._hooks.ask(Call(hook=hook, object=plugin, writes=True, unattended=self.unattended))
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
                smoke_test=partial(self._smoke_test, trusted=trusted),
                on_progress=progress,
                trusted=trusted,
                refuse=partial(self.refuse_other_bytes, offer, choice),
                origin=partial(_origin, offer, choice, f"opening {connection}" if connection else asked),
            )
        except BaseException as error:  # even if the caller was cancelled
            code, reason = _failure_of(error)
            self._emit(events.PluginInstallFailed(plugin=plugin, version=version, code=code, reason=reason))
            raise
        seconds = time.monotonic() - began
        self._emit(events.PluginInstalled(plugin=plugin, version=version, sha256=generation.sha256, seconds=seconds))
        for removed in await anyio.to_thread.run_sync(self._store.collect_unasked):
            self._emit(events.PluginCollected(plugin=removed.plugin, version=removed.version, bytes=removed.size))
        return generation

    async def _smoke_test(self, trees: tuple[Path, ...], manifest: Manifest, *, trusted: bool) -> None:
        from dragoman.sandbox.driver_process import Launch, smoke_test
        from dragoman.sandbox.launch import granted

        launch = Launch(driver=manifest.entry, trees=trees, policy=self._policy, trusted=trusted, cache=self._cache)
        await smoke_test(granted(launch, manifest.permissions), manifest)


def _failure_of(error: BaseException) -> tuple[str, str]:
    """Return the code and the reason of an installation that did not end well."""
    if isinstance(error, DragomanError):
        return error.code, error.message
    if isinstance(error, Exception):
        return InstallError.code, failure(error)
    return "cancelled", "it was cancelled"


def _origin(offer: Offer, choice: Resolution, request: str) -> Origin:
    from dragoman_registry.client.generation import Origin

    skipped = tuple(f"{entry.version}: {entry.reason}" for entry in choice.skipped)
    publisher = offer.registry.publisher(offer.project.project)
    name, keys = (publisher.name, publisher.keys) if publisher else ("", ())
    return Origin(asked=request, who=user_name(), skipped=skipped, publisher=name, keys=keys)


def _called(offer: Offer) -> str:
    return called(offer.project.label, offer.project.project)
