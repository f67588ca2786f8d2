"""Messages of the marketplace."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from .base import Message, Request


class DriverSummary(Message, frozen=True, kw_only=True):
    """A driver in a list.

    Attributes:
        state: ``available``, ``installed``, ``update``, ``disabled``, ``linked``, ``incompatible`` or ``unreadable``.
        reaches: What it can reach, in words.
        size: Bytes of its wheel, 0 if unknown.
        unavailable_here: Why it is not available on the device that asks (P6); empty if it is.
    """

    id: str
    label: str
    types: list[str]
    version: str
    state: str
    reaches: str
    summary: str
    registry: str
    size: int
    capabilities: list[str]
    unavailable_here: str = ""


class BrowseAsked(Request, frozen=True, kw_only=True):
    """A search: all words must occur."""

    words: Annotated[str, Meta(max_length=1_000)] = ""
    type: Annotated[str, Meta(max_length=64)] = ""
    capability: Annotated[str, Meta(max_length=64)] = ""
    compatible: bool = False


class Browsed(Message, frozen=True, kw_only=True):
    """Drivers, the best match first (500 at most), and the registries that could not be read, with the reason."""

    drivers: list[DriverSummary]
    more: int
    failures: dict[str, str]


class DriverNamed(Request, frozen=True, kw_only=True):
    """A driver by id; `version` only where a route takes one."""

    id: Annotated[str, Meta(min_length=1, max_length=200)]
    version: Annotated[str, Meta(max_length=64)] | None = None


class VersionSummary(Message, frozen=True, kw_only=True):
    """One version of a driver: `state` is ``offered``, ``yanked``, ``deprecated``, ``quarantined`` or empty."""

    version: str
    state: str
    reason: str
    uploaded: str
    size: int
    host_api: str
    installed: bool


class Report(Message, frozen=True, kw_only=True):
    """The conformance report, as its author published it."""

    summary: str
    sandbox: str
    engines: dict[str, dict[str, int]]
    skips: dict[str, int]
    deviations: list[str]
    failures: list[str]


class DriverPage(Message, frozen=True, kw_only=True):
    """Everything known about a driver.

    Attributes:
        permissions: In plain words.
        readme: Markdown of a stranger.
        changelog: Markdown of a stranger.
        skipped: Newer versions that do not fit, and why.
        kept: Versions to which one can roll back, the active one first.
        pin: The version it is pinned to; empty for none.
        used_by: Saved connections of its types.
    """

    driver: DriverSummary
    versions: list[VersionSummary]
    permissions: list[str]
    publisher: str
    readme: str
    changelog: str
    report: Report | None
    skipped: list[str]
    hooks: list[str]
    server_versions: list[str]
    licence: str
    docs: str
    kept: list[str]
    pin: str
    used_by: list[str]


class Installed(Message, frozen=True, kw_only=True):
    """What is active after an installation, an update or a roll-back."""

    id: str
    version: str


class UpdateOffer(Message, frozen=True, kw_only=True):
    """What an update changes; `permissions` and `publisher` are what it asks for beyond the installed version.

    Attributes:
        unavailable_here: As of `DriverSummary`.
    """

    id: str
    before: str
    version: str
    permissions: list[str]
    publisher: str
    state: str
    reason: str
    unavailable_here: str = ""


class Updates(Message, frozen=True, kw_only=True):
    """Available, or carried out, updates."""

    updates: list[UpdateOffer]


class Verified(Message, frozen=True, kw_only=True):
    """The files of an installed driver that differ from what was installed; none if it is intact."""

    faults: list[str]
