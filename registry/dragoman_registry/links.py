"""Developer mode: drivers that run from their author's working tree until they are unlinked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import PluginNotFoundError, RegistryError

from .files import locked, write
from .generation import Generation, Origin
from .lock import Locked
from .manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A driver of developer mode; its manifest is the one that was checked when it was linked."""

    version: str
    trees: tuple[str, ...]
    manifest: Manifest


class Links:
    """The linked drivers of one home. Every method blocks.

    Attributes:
        file: Plugin id → the working tree it runs from.
    """

    def __init__(self, file: Path, *, lock: Path) -> None:
        self.file, self._lock = file, lock

    def list(self) -> list[Generation]:
        """Give the linked drivers as what runs: like a generation, but with no wheel. Raises RegistryError."""
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
        """Find the linked driver that serves a database type, or of a plugin.

        Raises:
            RegistryError: Its working tree is gone (code ``link-broken``), or the file is damaged.
        """
        for found in self.list():
            if name in (found.plugin, *(kind.name for kind in found.manifest.types)):
                if not found.trees[0].is_dir():
                    message = f"{found.plugin} is linked to {found.trees[0]}, which is not there"
                    hint = f"dragoman driver unlink {found.plugin}"
                    raise RegistryError(message, code="link-broken", hint=hint)
                return found
        return None

    def add(self, manifest: Manifest, *, version: str, trees: Sequence[Path]) -> Generation:
        """Let a driver run from its author's working tree until it is removed from here; what is installed stays.

        Args:
            manifest: Checked.
            version: Of the working tree.
            trees: Folders to import from, the working tree first.
        """
        self._write(manifest.id, _Link(version=version, trees=tuple(map(str, trees)), manifest=manifest))
        return next(found for found in self.list() if found.plugin == manifest.id)

    def remove(self, plugin: str) -> None:
        """End what `add` began. Raises PluginNotFoundError if it is not linked."""
        if plugin not in self._read():
            raise PluginNotFoundError(f"{plugin} is not linked", hint="dragoman plugins list")
        self._write(plugin, None)

    def _read(self) -> dict[str, _Link]:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, _Link])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            hint = f"remove {self.file}, and link again"
            raise RegistryError(f"{self.file} cannot be read: {error}", code="state-damaged", hint=hint) from error

    def _write(self, plugin: str, entry: _Link | None) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._lock):
            links = {name: link for name, link in self._read().items() if name != plugin}
            write(self.file, msgspec.json.encode(links | ({plugin: entry} if entry else {})))
