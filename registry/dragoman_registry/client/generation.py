"""One installed release of a driver, and why it was installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman_registry.wheels.manifest import Manifest
from dragoman_registry.wheels.packaging_parsers import holds

from .lockfile import Locked


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Why a generation was installed.

    Attributes:
        asked: What asked for it: ``by name``, ``opening shop``, ``update``, ``sync`` or ``repair``.
        who: The user.
        skipped: The higher releases, and why each was skipped.
        publisher: The publisher that signed its wheels; empty if they were not signed.
        keys: Identifiers of the publisher's keys at that time.
    """

    asked: str = ""
    who: str = ""
    skipped: tuple[str, ...] = ()
    publisher: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One installed release of a driver. A generation never changes; only the choice of the active one does.

    Attributes:
        id: A number that grows with each installation.
        plugin: The plugin's id.
        project: Name of the distribution.
        version: Version of the distribution.
        registry: Name of the registry it came from.
        file: File name of the driver's wheel; empty for a linked working tree.
        sha256: Digest of that wheel.
        manifest: The manifest in that wheel.
        trees: Folders with the unpacked wheels, the driver's own first.
        locked: Every wheel of the release, as `plugins.lock` lists it.
        trusted: Whether a lock or a person's consent covered its bytes.
        api: Version of `dragoman-api` it was checked against.
        installed_at: Seconds since the epoch.
        origin: Why it was installed.
        active: Whether new connections use it.
        disabled: Whether the plugin is switched off.
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
        """The display name."""
        return self.manifest.label

    @property
    def linked(self) -> bool:
        """Whether it runs from its author's working tree, without a wheel and without verified bytes."""
        return not self.file

    @property
    def state(self) -> str:
        """Its state in one word: ``linked``, ``disabled`` or ``installed``."""
        return "linked" if self.linked else "disabled" if self.disabled else "installed"

    def fits(self, api: str) -> bool:
        """Check whether it runs with a version of `dragoman-api`; cheap for the version it was installed under."""
        if api == self.api:
            return True
        return holds(self.manifest.host_api, api)
