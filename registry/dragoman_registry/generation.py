"""One installed release of a driver, and why it is here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from .lock import Locked
from .manifest import Manifest


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Why a generation is here.

    Attributes:
        asked: What asked for it: ``by name``, ``opening shop``, ``update``, ``sync`` or ``repair``.
        who: The user.
        skipped: Releases above it, and why each was passed over.
        publisher: Who signed its wheels, empty if nobody did.
        keys: Identifiers of the keys that could sign for them then.
    """

    asked: str = ""
    who: str = ""
    skipped: tuple[str, ...] = ()
    publisher: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One installed release of a driver; it never changes, only which one is active does.

    Attributes:
        id: Grows with each installation.
        plugin: The plugin's id.
        project: Name of the distribution.
        version: Of the distribution.
        registry: Name of the registry it came from.
        file: The driver's wheel.
        sha256: Of that wheel.
        manifest: As the wheel brought it.
        trees: Folders with the unpacked wheels, the driver's own first.
        locked: Every wheel of the release, as `plugins.lock` lists it.
        trusted: Its bytes were covered by a lock or a person's consent.
        api: Version of `dragoman-api` it was checked against.
        installed_at: Seconds since the epoch.
        origin: Why it is here.
        active: New connections use it.
        disabled: The plugin is switched off.
        pin: The version the plugin is pinned to, None for none.
    """

    id: int
    plugin: str
    project: str
    version: str
    registry: str
    file: str
    sha256: str
    manifest: Manifest
    trees: tuple[Path, ...]
    locked: Locked
    trusted: bool
    api: str
    installed_at: float
    origin: Origin
    active: bool
    disabled: bool
    pin: str | None

    @property
    def label(self) -> str:
        """Give the name a person reads."""
        return self.manifest.label

    @property
    def linked(self) -> bool:
        """Tell whether it runs from its author's working tree: no wheel, and nothing vouches for its bytes."""
        return not self.file

    @property
    def state(self) -> str:
        """Say in one word how it stands."""
        return "linked" if self.linked else "disabled" if self.disabled else "installed"

    def fits(self, api: str) -> bool:
        """Tell whether it runs with a version of `dragoman-api`; cheap for the version it was installed under."""
        if api == self.api:
            return True
        from packaging.specifiers import SpecifierSet

        return SpecifierSet(self.manifest.host_api).contains(api, prereleases=True)
