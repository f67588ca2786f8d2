"""What to do when a connection of some type opens: one pure function, one next action for each outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Literal

from .manifest import BASELINE

if TYPE_CHECKING:
    from .choice import Choice  # noqa: TC004 - where a driver is installed, nothing pays for reading an index

Policy = Literal["auto", "require", "off"]
FULL = "full"
HOST = {"host-api", "python", "platform"}
"""Codes of the reasons that another host would not have."""


class Outcome(StrEnum):
    """What a decision can be; each has one next action."""

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
        type: The database type that is wanted.
        plugin: The plugin that serves it, installed or offered; None if nobody is known to.
        installed: Version of the active generation, None for none.
        disabled: The plugin is switched off.
        damaged: What is wrong with the installed files, empty for nothing.
        compatible: The installed version fits this host.
        quarantined: Why the installed version must not run, None if it may.
        safe: The nearest version that may run and fits, empty for none.
        choice: What the registries offer; None if they were not asked, or could not be.
        unreachable: Which URL or folder could not be read, and why; empty for none.
        expired: What the registry signed is past its date; then where the registry is, empty while it is not.
        locked: The chosen bytes are those of `plugins.lock` or pinned in the host.
        granted: Permissions of the installed generation, which a person agreed to.
        known_publisher: A trusted publisher's signature covers the chosen bytes.
        new_publisher: Who signs now, where that is not who signed what is installed; empty if it is.
        excluded_surfaces: Where the driver is not available (P6).
        surface: Where it is wanted.
        sandbox: The level this machine gives, and what is missing: ``full``, ``partial: no Landlock in this kernel``.
        policy: What is asked of the sandbox.
    """

    type: str
    plugin: str | None = None
    installed: str | None = None
    disabled: bool = False
    damaged: str = ""
    compatible: bool = True
    quarantined: str | None = None
    safe: str = ""
    choice: Choice | None = None
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
        """Tell whether the sandbox holds everything it promises."""
        return self.sandbox.partition(":")[0] == FULL and self.policy != "off"

    @property
    def fitting(self) -> bool:
        """Tell whether there is a release to install."""
        return self.choice is not None and self.choice.release is not None

    @property
    def beyond_baseline(self) -> tuple[str, ...]:
        """Give the permissions of the chosen release that need consent."""
        release = self.choice.release if self.choice else None
        covered = BASELINE.union(self.granted)
        return tuple(name for name in release.permissions if name not in covered) if release else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, why, and the one next action as a command.

    Attributes:
        outcome: One of the table.
        reason: One sentence.
        action: A command to paste; empty where the caller simply goes on.
        about: Of `ask` and `refuse`: ``permissions``, ``publisher``, ``sandbox`` or ``surface``.
        choice: What to install, of `install`, `ask` and `repair`.
        trusted: Its bytes are covered by a lock, a known publisher's signature, or the consent that is asked for.
    """

    outcome: Outcome
    reason: str
    action: str = ""
    about: str = ""
    choice: Choice | None = None
    trusted: bool = False


def decide(inputs: Inputs) -> Decision:
    """Decide what opening a connection of a type leads to; the first condition that holds wins."""
    return _here(inputs) or _offered(inputs)


def _here(i: Inputs) -> Decision | None:
    """Decide by what is installed, and by what may not be at all; None if something has to be fetched."""
    if i.plugin is None and not (i.unreachable or i.expired):
        reason = f"no registry has a driver for {i.type!r}"
        return Decision(outcome=Outcome.UNKNOWN_TYPE, reason=reason, action="dragoman plugins browse")
    if i.surface in i.excluded_surfaces:
        reason = f"{i.plugin} is not available on a {i.surface}"
        action = f"dragoman plugins show {i.plugin}"
        return Decision(outcome=Outcome.REFUSE, reason=reason, action=action, about="surface")
    if i.quarantined is not None:
        return _quarantined(i, f"{i.plugin} {i.installed}", i.quarantined)
    if i.installed is not None and i.disabled:
        # Opening a connection never switches on what a person switched off.
        action = f"dragoman plugins enable {i.plugin}"
        return Decision(outcome=Outcome.ENABLE, reason=f"{i.plugin} is disabled", action=action)
    if i.policy == "require" and not i.confined:
        reason = f"the sandbox is {i.sandbox}, and the policy requires {FULL}"
        return Decision(outcome=Outcome.REFUSE, reason=reason, action="dragoman doctor", about="sandbox")
    if i.installed is not None and i.compatible and not i.damaged:
        return Decision(outcome=Outcome.READY, reason=f"{i.plugin} {i.installed} is installed")
    return None


def _quarantined(i: Inputs, what: str, why: str) -> Decision:
    """Name the nearest version that may run, or show what is held against this one."""
    show = f"dragoman plugins show {i.plugin}"
    action = f"dragoman plugins install {i.plugin} --version {i.safe}" if i.safe else show
    reason = f"{what} must not run: {why}; " + (f"{i.safe} may" if i.safe else "no other version fits")
    return Decision(outcome=Outcome.QUARANTINED, reason=reason, action=action)


def _unfitting(i: Inputs) -> Decision:
    """Say why there is nothing to install: it may not run, the lock names other bytes, or this host is too old."""
    skipped = i.choice.skipped if i.choice else ()
    codes = {entry.code for entry in skipped}
    if (held := [entry for entry in skipped if entry.code == "quarantined"]) and not codes & HOST:
        return _quarantined(i, f"{i.plugin} {held[0].version}", held[0].reason)
    why = "; ".join(f"{entry.version}: {entry.reason}" for entry in skipped) or "there is no release"
    if "lock-mismatch" in codes:
        reason = f"{i.plugin} is not the one that plugins.lock names: {why}"
        return Decision(outcome=Outcome.REFUSE, reason=reason, action=f"dragoman plugins show {i.plugin}", about="lock")
    action = "python -m pip install --upgrade dragoman" if "host-api" in codes else f"dragoman plugins show {i.plugin}"
    reason = f"no release of {i.plugin} fits this host: {why}"
    return Decision(outcome=Outcome.UPDATE_HOST, reason=reason, action=action)


def _offered(i: Inputs) -> Decision:
    """Decide by what the registries offer."""
    if i.choice is None and i.unreachable:
        reason = f"the driver for {i.type!r} is missing and cannot be fetched: {i.unreachable}"
        return Decision(outcome=Outcome.OFFLINE_MISSING, reason=reason, action="dragoman registry add FOLDER")
    if i.expired and (i.choice is None or (i.fitting and not i.locked)):
        reason = f"the driver for {i.type!r} is missing, and what {i.expired} signed has expired"
        action = "dragoman doctor" if "://" in i.expired else f"dragoman registry sign {quote(i.expired)}"
        return Decision(outcome=Outcome.REGISTRY_STALE, reason=reason, action=action)
    if not i.fitting:
        return _unfitting(i)

    def ask(about: str, reason: str) -> Decision:
        action = f"dragoman plugins install {i.plugin}"
        return Decision(outcome=Outcome.ASK, reason=reason, action=action, about=about, choice=i.choice, trusted=True)

    if i.beyond_baseline:
        return ask("permissions", f"{i.plugin} asks for {', '.join(i.beyond_baseline)}")
    if i.new_publisher:
        return ask("publisher", f"{i.plugin} is signed by {i.new_publisher}, which is not who signed what is installed")
    trusted = i.locked or i.known_publisher
    if not (i.confined or trusted):
        return ask("sandbox", f"the sandbox is {'off' if i.policy == 'off' else i.sandbox}")
    outcome, verb = Outcome.INSTALL, "install"
    reason = f"{i.plugin} serves {i.type!r} and is not installed"
    if i.installed is not None:
        outcome, verb = Outcome.REPAIR, "repair"
        reason = f"{i.plugin} {i.installed} {f'is damaged: {i.damaged}' if i.damaged else 'does not fit this host'}"
    action = f"dragoman plugins {verb} {i.plugin}"
    return Decision(outcome=outcome, reason=reason, action=action, choice=i.choice, trusted=trusted)
