"""Developer mode: drivers that run from their author's working tree until unlinked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from dragoman_api.errors import PluginNotFoundError, RegistryError
from dragoman_registry.files import change
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.manifest import Manifest

from .generation import Generation, Origin
from .lockfile import Locked

if TYPE_CHECKING:
    from collections.abc import Sequence


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
                if not os.path.isdir(generation.trees[0]):  # noqa: PTH112 - Path.is_dir raises for impossible names
                    message = f"{generation.plugin} is linked to {generation.trees[0]}, which is not there"
                    hint = f"dragoman driver unlink {generation.plugin}"
                    raise RegistryError(message, code="link-broken", hint=hint)
                return generation
        return None

    def add(self, manifest: Manifest, *, version: str, trees: Sequence[Path]) -> Generation:
        """Run a driver from its author's working tree until `remove`; the installed release stays on disk.

        Args:
            manifest: The checked manifest.
            version: Version of the working tree.
            trees: Folders to import from, the working tree first.
        """
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
