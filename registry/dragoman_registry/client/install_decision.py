"""Decides what to do when a connection opens: one pure function, one next action for each outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Literal

from dragoman_registry.wheels.manifest import BASELINE

if TYPE_CHECKING:
    from .resolver import Resolution  # noqa: TC004 - with an installed driver, loading the index code is wasted time

Policy = Literal["auto", "require", "off"]
FULL = "full"
HOST = {"host-api", "python", "platform"}
"""Codes of the reasons that depend on this host."""


class InstallOutcome(StrEnum):
    """The possible outcomes of a decision; each has one next action."""

    READY = "ready"
    INSTALL = "install"
    ASK = "ask"
    ENABLE = "enable"
    REPAIR = "repair"
    REFUSE = "refuse"
    UPDATE_HOST = "update_host"
    UNKNOWN_TYPE = "unknown_type"
    QUARANTINED = "quarantined"
    OFFLINE_MISSING = "offline_missing"
    REGISTRY_STALE = "registry_stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything a decision depends on.

    Attributes:
        plugin: The plugin that serves it, installed or offered; None if no known plugin does.
        installed: Version of the active generation, None for none.
        damaged: The damage to the installed files; empty for none.
        compatible: Whether the installed version fits this host.
        quarantined: Why the installed version must not run, None if it may.
        safe: The nearest version that may run and fits, empty for none.
        choice: What the registries offer; None if they were not asked or could not be reached.
        unreachable: Which URL or folder could not be read, and why; empty for none.
        expired: Location of the registry if its signed metadata has expired; empty otherwise.
        locked: Whether the chosen bytes are those of `plugins.lock` or are pinned in the host.
        granted: Permissions of the installed generation, which a person agreed to.
        known_publisher: Whether a trusted publisher's signature covers the chosen bytes.
        new_publisher: The publisher of the chosen bytes if it differs from the installed one's; empty otherwise.
        excluded_surfaces: Where the driver is not available (P6).
        sandbox: This machine's level, and what it lacks: ``full``, ``partial: no Landlock in this kernel``.
    """

    type: str
    plugin: str | None = None
    installed: str | None = None
    disabled: bool = False
    damaged: str = ""
    compatible: bool = True
    quarantined: str | None = None
    safe: str = ""
    choice: Resolution | None = None
    unreachable: str = ""
    expired: str = ""
    locked: bool = False
    granted: tuple[str, ...] = ()
    known_publisher: bool = False
    new_publisher: str = ""
    excluded_surfaces: tuple[str, ...] = ()
    surface: str = "cli"
    sandbox: str = FULL
    policy: Policy = "auto"

    @property
    def confined(self) -> bool:
        """Whether the sandbox is on and complete."""
        return self.sandbox.partition(":")[0] == FULL and self.policy != "off"

    @property
    def settled(self) -> bool:
        """Whether the installed version runs or a person disabled it; then no registry is asked."""
        may_run = self.installed is not None and self.quarantined is None
        return may_run and (self.disabled or (self.compatible and not self.damaged))

    @property
    def fitting(self) -> bool:
        """Whether there is a release to install."""
        return self.choice is not None and self.choice.release is not None

    @property
    def beyond_baseline(self) -> tuple[str, ...]:
        """The permissions of the chosen release that need consent."""
        release = self.choice.release if self.choice else None
        covered = BASELINE.union(self.granted)
        return tuple(name for name in release.permissions if name not in covered) if release else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision: its outcome, its reason, and the one next action as a command.

    Attributes:
        action: A command to paste; empty if the caller simply continues.
        about: For `ask` and `refuse`: ``permissions``, ``publisher``, ``sandbox``, ``surface`` or ``lock``.
        choice: What to install, for `install`, `ask` and `repair`.
        trusted: Whether a lock, a known publisher's signature, or the requested consent covers its bytes.
    """

    outcome: InstallOutcome
    reason: str
    action: str = ""
    about: str = ""
    choice: Resolution | None = None
    trusted: bool = False


def decide(inputs: Inputs) -> Decision:
    """Decide what to do when a connection of a type opens; the first matching condition wins."""
    return _here(inputs) or _offered(inputs)


def _here(i: Inputs) -> Decision | None:
    """Decide from the installed version and the absolute refusals; None if a release must be fetched."""
    if i.plugin is None and not (i.unreachable or i.expired):
        reason = f"no configured registry has a driver for {i.type!r}"
        return Decision(outcome=InstallOutcome.UNKNOWN_TYPE, reason=reason, action="dragoman plugins browse")
    if i.surface in i.excluded_surfaces:
        reason = f"{i.plugin} is not available on a {i.surface}"
        action = f"dragoman plugins show {i.plugin}"
        return Decision(outcome=InstallOutcome.REFUSE, reason=reason, action=action, about="surface")
    if i.quarantined is not None:
        return _quarantined(i, f"{i.plugin} {i.installed}", i.quarantined)
    if i.installed is not None and i.disabled:
        # Opening a connection never enables a plugin that a person disabled.
        action = f"dragoman plugins enable {i.plugin}"
        return Decision(outcome=InstallOutcome.ENABLE, reason=f"{i.plugin} is disabled", action=action)
    if i.policy == "require" and not i.confined:
        reason = f"the sandbox is {i.sandbox}, but the policy requires {FULL}"
        return Decision(outcome=InstallOutcome.REFUSE, reason=reason, action="dragoman doctor", about="sandbox")
    if i.settled:
        return Decision(outcome=InstallOutcome.READY, reason=f"{i.plugin} {i.installed} is installed")
    return None


def _quarantined(i: Inputs, release: str, why: str) -> Decision:
    """Refuse a quarantined version; suggest the nearest one that may run, or else show the advisory."""
    show = f"dragoman plugins show {i.plugin}"
    action = f"dragoman plugins install {i.plugin} --version {i.safe}" if i.safe else show
    reason = f"{release} must not run: {why}; " + (f"{i.safe} may run" if i.safe else "no other version fits")
    return Decision(outcome=InstallOutcome.QUARANTINED, reason=reason, action=action)


def _unfitting(i: Inputs) -> Decision:
    """Explain why no release can be installed: quarantine, a lock on other bytes, or a host that is too old."""
    skipped = i.choice.skipped if i.choice else ()
    codes = {entry.code for entry in skipped}
    if (quarantined := [entry for entry in skipped if entry.code == "quarantined"]) and not codes & HOST:
        return _quarantined(i, f"{i.plugin} {quarantined[0].version}", quarantined[0].reason)
    why = "; ".join(f"{entry.version}: {entry.reason}" for entry in skipped) or "it has no release"
    if "lock-mismatch" in codes:
        reason = f"{i.plugin} differs from plugins.lock: {why}"
        return Decision(
            outcome=InstallOutcome.REFUSE, reason=reason, action=f"dragoman plugins show {i.plugin}", about="lock"
        )
    action = f"dragoman plugins show {i.plugin}"
    if "host-api" in codes:
        from dragoman_api.installation import upgrade_command

        action = upgrade_command()
    reason = f"no release of {i.plugin} fits this host: {why}"
    return Decision(outcome=InstallOutcome.UPDATE_HOST, reason=reason, action=action)


def _offered(i: Inputs) -> Decision:
    """Decide from what the registries offer."""
    if i.choice is None and i.unreachable:
        reason = f"the driver for {i.type!r} is missing and cannot be fetched: {i.unreachable}"
        return Decision(outcome=InstallOutcome.OFFLINE_MISSING, reason=reason, action="dragoman registry add FOLDER")
    if i.expired and (i.choice is None or (i.fitting and not i.locked)):
        reason = f"the driver for {i.type!r} is missing, and the signatures of {i.expired} have expired"
        action = "dragoman doctor" if "://" in i.expired else f"dragoman registry sign {quote(i.expired)}"
        return Decision(outcome=InstallOutcome.REGISTRY_STALE, reason=reason, action=action)
    if not i.fitting:
        return _unfitting(i)

    def ask(topic: str, reason: str) -> Decision:
        action = f"dragoman plugins install {i.plugin}{' --yes' if i.installed else ''}"
        return Decision(
            outcome=InstallOutcome.ASK, reason=reason, action=action, about=topic, choice=i.choice, trusted=True
        )

    if i.beyond_baseline:
        return ask("permissions", f"{i.plugin} asks for {', '.join(i.beyond_baseline)}")
    if i.new_publisher:
        return ask("publisher", f"{i.plugin} is signed by {i.new_publisher}, not by the installed release's publisher")
    trusted = i.locked or i.known_publisher
    if not (i.confined or trusted):
        return ask("sandbox", f"the sandbox is {'off' if i.policy == 'off' else i.sandbox}")
    outcome, verb = InstallOutcome.INSTALL, "install"
    reason = f"{i.plugin} serves {i.type!r} and is not installed"
    if i.installed is not None:
        outcome, verb = InstallOutcome.REPAIR, "repair"
        reason = f"{i.plugin} {i.installed} {f'is damaged: {i.damaged}' if i.damaged else 'does not fit this host'}"
    action = f"dragoman plugins {verb} {i.plugin}"
    return Decision(outcome=outcome, reason=reason, action=action, choice=i.choice, trusted=trusted)
