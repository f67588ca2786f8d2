"""What to do when a connection of some type opens: one pure function with a table of outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from .manifest import BASELINE

if TYPE_CHECKING:
    from collections.abc import Callable

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
        unreachable: A URL or folder that could not be read, empty for none.
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

    @property
    def agreed(self) -> bool:
        """Tell whether the chosen release may be installed without asking anybody."""
        return not self.beyond_baseline and (self.confined or self.locked or self.known_publisher)


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
    """Decide what opening a connection of a type leads to; the first row of the table that matches wins."""
    for matches, row in TABLE:
        if matches(inputs):
            return row(inputs)
    raise AssertionError("the last row of the table matches everything")


def _install(inputs: Inputs) -> str:
    return f"dragoman plugins install {inputs.plugin}"


def _no_release(inputs: Inputs) -> str:
    skipped = inputs.choice.skipped if inputs.choice else ()
    return "; ".join(f"{entry.version}: {entry.reason}" for entry in skipped) or "there is no release"


def _row(
    outcome: Outcome,
    reason: Callable[[Inputs], str],
    action: Callable[[Inputs], str] = lambda _: "",
    *,
    about: str = "",
) -> Callable[[Inputs], Decision]:
    installs = outcome in (Outcome.INSTALL, Outcome.ASK, Outcome.REPAIR)
    return lambda inputs: Decision(
        outcome=outcome,
        reason=reason(inputs),
        action=action(inputs),
        about=about,
        choice=inputs.choice if installs else None,
    )


TABLE: tuple[tuple[Callable[[Inputs], bool], Callable[[Inputs], Decision]], ...] = (
    (
        lambda i: i.plugin is None and not i.unreachable,
        _row(
            Outcome.UNKNOWN_TYPE,
            lambda i: f"no registry has a driver for {i.type!r}",
            lambda _: "dragoman plugins browse",
        ),
    ),
    (
        lambda i: i.surface in i.excluded_surfaces,
        _row(Outcome.REFUSE, lambda i: f"{i.plugin} is not available on a {i.surface}", about="surface"),
    ),
    (
        lambda i: i.quarantined is not None,
        _row(
            Outcome.QUARANTINED,
            lambda i: f"{i.plugin} {i.installed or ''} must not run: {i.quarantined}".replace("  ", " "),
            lambda i: f"dragoman plugins update {i.plugin}",
        ),
    ),
    (
        lambda i: i.installed is not None and i.disabled,
        # Opening a connection never switches on what a person switched off.
        _row(Outcome.ENABLE, lambda i: f"{i.plugin} is disabled", lambda i: f"dragoman plugins enable {i.plugin}"),
    ),
    (
        lambda i: i.policy == "require" and not i.confined,
        _row(
            Outcome.REFUSE,
            lambda i: f"the sandbox is {i.sandbox}, and the policy requires {FULL}",
            lambda _: "dragoman doctor",
            about="sandbox",
        ),
    ),
    (
        lambda i: i.installed is not None and i.compatible and not i.damaged,
        _row(Outcome.READY, lambda i: f"{i.plugin} {i.installed} is installed"),
    ),
    (
        lambda i: i.installed is not None and i.fitting and i.agreed,
        _row(
            Outcome.REPAIR,
            lambda i: f"{i.plugin} {i.installed} " + (f"is damaged: {i.damaged}" if i.damaged else "fits no longer"),
            _install,
        ),
    ),
    (
        lambda i: i.choice is None and bool(i.unreachable),
        _row(
            Outcome.OFFLINE_MISSING,
            lambda i: f"the driver for {i.type!r} is missing and {i.unreachable} cannot be read",
            lambda _: "dragoman registry add FOLDER",
        ),
    ),
    (
        lambda i: not i.fitting,
        _row(
            Outcome.UPDATE_HOST,
            lambda i: f"no release of {i.plugin} fits this host: {_no_release(i)}",
            lambda i: f"dragoman plugins show {i.plugin}",
        ),
    ),
    (
        lambda i: i.expired and not i.locked,
        _row(
            Outcome.REGISTRY_STALE,
            lambda i: f"what the registry says of {i.plugin} has expired",
            lambda _: "dragoman registry list",
        ),
    ),
    (
        lambda i: bool(i.beyond_baseline),
        _row(
            Outcome.ASK,
            lambda i: f"{i.plugin} asks for {', '.join(i.beyond_baseline)}",
            _install,
            about="permissions",
        ),
    ),
    (
        lambda i: not i.agreed,
        _row(
            Outcome.ASK,
            lambda i: f"the sandbox is {'off' if i.policy == 'off' else i.sandbox}",
            _install,
            about="sandbox",
        ),
    ),
    (
        lambda _: True,
        _row(Outcome.INSTALL, lambda i: f"{i.plugin} serves {i.type!r} and is not installed", _install),
    ),
)
"""Condition → outcome, in order of precedence."""
