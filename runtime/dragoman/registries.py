"""The configured registries: where drivers come from, in the order they are asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

from .settings import RegistryEntry, change_settings, read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_registry.index import Registry

    from .settings import Paths

BUNDLED = "bundled"
"""Name of the registry that ships inside the host: a folder of package data, never imported."""


class Registries:
    """Adds, lists and removes registries in `config.toml`."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def list(self) -> list[RegistryEntry]:
        """Give every registry in the order it is asked: as configured, then the bundled one."""
        entries = list(read_settings(self._paths).registries)
        bundled = Path(__file__).parent / BUNDLED
        if (bundled / "targets").is_dir():
            entries.append(RegistryEntry(BUNDLED, str(bundled)))
        return entries

    def open(self) -> tuple[Registry, ...]:
        """Give readers of all registries; nothing is read yet."""
        from dragoman_registry.index import Registry

        return tuple(Registry(entry.name, entry.location) for entry in self.list())

    def add(self, location: str, *, name: str | None = None) -> RegistryEntry:
        """Add a registry, to be asked after those that are there.

        Args:
            location: A folder's path, or a ``file:``, ``http:`` or ``https:`` URL.
            name: What to call it; the folder's name when not given.

        Raises:
            ConfigurationError: The name is taken.
            RegistryError: There is no registry at the location.
        """
        from dragoman_registry.index import Registry

        if "://" not in location:
            location = str(Path(location).expanduser().absolute())
        entry = RegistryEntry(name or location.rstrip("/").rsplit("/", 1)[-1] or "registry", location)
        entries = list(read_settings(self._paths).registries)
        if entry.name == BUNDLED or any(known.name == entry.name for known in entries):
            hint = "choose another: --name NAME"
            raise ConfigurationError(f"a registry called {entry.name!r} is there already", hint=hint)
        Registry(entry.name, entry.location).catalog()  # a registry that cannot be read is not added
        self._write([*entries, entry])
        return entry

    def remove(self, name: str) -> None:
        """Forget a registry; what was installed from it stays.

        Raises:
            ConfigurationError: There is none of that name, or it is the bundled one.
        """
        entries = list(read_settings(self._paths).registries)
        kept = [entry for entry in entries if entry.name != name]
        if len(kept) == len(entries):
            known = ", ".join(entry.name for entry in entries) or "none"
            raise ConfigurationError(f"no registry called {name!r} is configured (there are: {known})")
        self._write(kept)

    def _write(self, entries: Sequence[RegistryEntry]) -> None:
        values = [{"name": entry.name, "location": entry.location} for entry in entries]
        change_settings(self._paths, "registries", values or None)
