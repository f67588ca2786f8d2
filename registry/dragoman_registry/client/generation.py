"""One installed release of a driver, why it was installed, and drivers that run from their author's working tree."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from dragoman_api.errors import PluginNotFoundError, RegistryError
from dragoman_registry.files import change
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.manifest import Manifest
from dragoman_registry.wheels.packaging_parsers import holds

from .lockfile import Locked

if TYPE_CHECKING:
    from collections.abc import Sequence


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Why a generation was installed.

    Attributes:
        asked: What asked for it: ``by name``, ``opening shop``, ``update``, ``sync`` or ``repair``.
        skipped: The higher releases, and why each was skipped.
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
        registry: Name of the registry it came from.
        file: File name of the driver's wheel; empty for a linked working tree.
        trees: Folders with the unpacked wheels, the driver's own first.
        locked: Every wheel of the release, as `plugins.lock` lists it.
        trusted: Whether a lock or a person's consent covered its bytes.
        api: Version of `dragoman-api` it was checked against.
        installed_at: Seconds since the epoch.
        active: Whether new connections use it.
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


class _Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A driver of developer mode, with the manifest that was checked when it was linked."""

    version: str
    trees: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    manifest: Manifest


class Links:
    """The linked drivers of one home. Every method blocks.

    Attributes:
        file: Maps each plugin id to the working tree it runs from.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def list(self) -> list[Generation]:
        """List the linked drivers as generations without a wheel. Raises RegistryError."""
        return [
            Generation(
                id=0,
                plugin=name,
                project="",
                version=f"{link.version}+linked",
                registry=link.trees[0],
                file="",
                sha256="",
                manifest=link.manifest,
                trees=tuple(map(Path, link.trees)),
                locked=Locked(project="", version="", wheels=()),
                trusted=True,
                api="",
                installed_at=0.0,
                origin=Origin(asked="driver link"),
                active=True,
                disabled=False,
                pin=None,
            )
            for name, link in sorted(self._read().items())
        ]

    def find(self, name: str) -> Generation | None:
        """Find the linked driver of a plugin or database type.

        Raises:
            RegistryError: Its working tree is gone (code ``link-broken``), or the file is damaged.
        """
        for generation in self.list():
            if name in (generation.plugin, *(kind.name for kind in generation.manifest.types)):
                # Path.is_dir raises for impossible names.
                if gone := [tree for tree in generation.trees if not os.path.isdir(tree)]:  # noqa: PTH112
                    message = f"{generation.plugin} is linked to {gone[0]}, which is not there"
                    hint = f"dragoman driver unlink {generation.plugin}"
                    raise RegistryError(message, code="link-broken", hint=hint)
                return generation
        return None

    def add(self, manifest: Manifest, *, version: str, trees: Sequence[Path]) -> Generation:
        """Run a driver from its author's working tree until `remove`; the installed release stays on disk."""
        self._write(manifest.id, _Link(version=version, trees=tuple(map(str, trees)), manifest=manifest))
        return next(generation for generation in self.list() if generation.plugin == manifest.id)

    def remove(self, plugin: str) -> None:
        """Unlink a driver. Raises PluginNotFoundError if it is not linked."""
        if plugin not in self._read():
            raise PluginNotFoundError(f"{plugin} is not linked", hint="dragoman plugins list")
        self._write(plugin, None)

    def _read(self) -> dict[str, _Link]:
        try:
            return self._decode(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._damaged(error) from error

    def _decode(self, data: bytes) -> dict[str, _Link]:
        try:
            return decode(data, dict[str, _Link]) if data else {}
        except Unreadable as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> RegistryError:
        hint = f"remove {self.file}, then link again"
        return RegistryError(f"{self.file} cannot be read: {error}", code="state-damaged", hint=hint)

    def _write(self, plugin: str, entry: _Link | None) -> None:
        def edit(data: bytes) -> bytes:
            links = {name: link for name, link in self._decode(data).items() if name != plugin}
            return msgspec.json.encode(links | ({plugin: entry} if entry else {}))

        change(self.file, edit, mode=0o644)
