"""What to do when a connection of some type opens: one pure function, one next action for each outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from .manifest import BASELINE

if TYPE_CHECKING:
    from .choice import Choice  # noqa: TC004 - where a driver is installed, nothing pays for reading an index

Policy = Literal["auto", "require", "off"]
FULL = "full"


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
        quarantined: Why the installed or locked version must not run, None if it may.
        choice: What the registries offer; None if they were not asked, or could not be.
        unreachable: Which URL or folder could not be read, and why; empty for none.
        expired: The registry's metadata is past its date.
        locked: The chosen bytes are those of `plugins.lock` or pinned in the host.
        granted: Permissions of the installed generation, which a person agreed to.
        known_publisher: A trusted publisher's signature covers the chosen bytes.
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
    choice: Choice | None = None
    unreachable: str = ""
    expired: bool = False
    locked: bool = False
    granted: tuple[str, ...] = ()
    known_publisher: bool = False
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
        about: Of `ask` and `refuse`: ``permissions``, ``sandbox`` or ``surface``.
        choice: What to install, of `install`, `ask` and `repair`.
    """

    outcome: Outcome
    reason: str
    action: str = ""
    about: str = ""
    choice: Choice | None = None


def decide(inputs: Inputs) -> Decision:
    """Decide what opening a connection of a type leads to; the first condition that holds wins."""
    return _here(inputs) or _offered(inputs)


def _here(i: Inputs) -> Decision | None:
    """Decide by what is installed, and by what may not be at all; None if something has to be fetched."""
    if i.plugin is None and not i.unreachable:
        reason = f"no registry has a driver for {i.type!r}"
        return Decision(outcome=Outcome.UNKNOWN_TYPE, reason=reason, action="dragoman plugins browse")
    if i.surface in i.excluded_surfaces:
        reason = f"{i.plugin} is not available on a {i.surface}"
        action = f"dragoman plugins show {i.plugin}"
        return Decision(outcome=Outcome.REFUSE, reason=reason, action=action, about="surface")
    if i.quarantined is not None:
        reason = f"{' '.join(filter(None, (i.plugin, i.installed)))} must not run: {i.quarantined}"
        return Decision(outcome=Outcome.QUARANTINED, reason=reason, action=f"dragoman plugins update {i.plugin}")
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


def _offered(i: Inputs) -> Decision:
    """Decide by what the registries offer."""
    install = f"dragoman plugins install {i.plugin}"
    if i.choice is None and i.unreachable:
        reason = f"the driver for {i.type!r} is missing and cannot be fetched: {i.unreachable}"
        return Decision(outcome=Outcome.OFFLINE_MISSING, reason=reason, action="dragoman registry add FOLDER")
    if not i.fitting:
        skipped = i.choice.skipped if i.choice else ()
        why = "; ".join(f"{entry.version}: {entry.reason}" for entry in skipped) or "there is no release"
        reason = f"no release of {i.plugin} fits this host: {why}"
        return Decision(outcome=Outcome.UPDATE_HOST, reason=reason, action=f"dragoman plugins show {i.plugin}")
    if i.expired and not i.locked:
        reason = f"what the registry says of {i.plugin} has expired"
        return Decision(outcome=Outcome.REGISTRY_STALE, reason=reason, action="dragoman registry list")
    if i.beyond_baseline:
        reason = f"{i.plugin} asks for {', '.join(i.beyond_baseline)}"
        return Decision(outcome=Outcome.ASK, reason=reason, action=install, about="permissions", choice=i.choice)
    if not (i.confined or i.locked or i.known_publisher):
        reason = f"the sandbox is {'off' if i.policy == 'off' else i.sandbox}"
        return Decision(outcome=Outcome.ASK, reason=reason, action=install, about="sandbox", choice=i.choice)
    if i.installed is not None:
        state = f"is damaged: {i.damaged}" if i.damaged else "does not fit this host"
        reason = f"{i.plugin} {i.installed} {state}"
        return Decision(outcome=Outcome.REPAIR, reason=reason, action=install, choice=i.choice)
    reason = f"{i.plugin} serves {i.type!r} and is not installed"
    return Decision(outcome=Outcome.INSTALL, reason=reason, action=install, choice=i.choice)
