"""`plugins.lock`: what is installed here, by hash and for every platform, for another machine to get the same bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman_api.errors import ConfigurationError

from .files import write

if TYPE_CHECKING:
    from pathlib import Path

    from .index import Release, WheelFile

NAME = "plugins.lock"


class LockedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One wheel, by hash."""

    file: str
    sha256: str
    size: int


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One driver as it was installed: every wheel of the release, whatever the platform."""

    project: str
    version: str
    wheels: tuple[LockedFile, ...]
    dependencies: tuple[LockedFile, ...] = ()

    def covers(self, release: Release) -> bool:
        """Tell whether a release is made of exactly these files."""
        return _digests(self.wheels, self.dependencies) == _digests(release.wheels, release.dependencies)

    def narrow(self, release: Release) -> Release:
        """Leave out the wheels that the release was given after it was locked, for further platforms."""
        ours = _digests(self.wheels, self.dependencies)
        if not ours <= _digests(release.wheels, release.dependencies):
            return release
        wheels = tuple(wheel for wheel in release.wheels if (wheel.file, wheel.sha256) in ours)
        dependencies = tuple(wheel for wheel in release.dependencies if (wheel.file, wheel.sha256) in ours)
        return replace(release, wheels=wheels, dependencies=dependencies)


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lock_version: Literal[1] = 1
    plugins: dict[str, Locked] = {}


def _digests(*sets: tuple[LockedFile, ...] | tuple[WheelFile, ...]) -> set[tuple[str, str]]:
    return {(wheel.file, wheel.sha256) for wheels in sets for wheel in wheels}


def lock_release(release: Release) -> Locked:
    """Describe a release as a lock does."""
    wheels, dependencies = (
        tuple(LockedFile(file=wheel.file, sha256=wheel.sha256, size=wheel.size) for wheel in found)
        for found in (release.wheels, release.dependencies)
    )
    return Locked(project=release.project, version=release.version, wheels=wheels, dependencies=dependencies)


def read(path: Path) -> dict[str, Locked]:
    """Read a lock: plugin id → what is locked; empty if there is no file.

    Raises:
        ConfigurationError: The file is damaged.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).plugins
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        hint = f"restore {path.name} from version control, or remove it to lock what is installed next"
        raise ConfigurationError(f"{path} cannot be read: {error}", hint=hint) from error


def updated(path: Path, plugin: str, locked: Locked | None) -> bytes:
    """Give the text of a lock in which one plugin's entry is replaced, or dropped. Raises as `read`."""
    plugins = read(path) | ({plugin: locked} if locked else {})
    if locked is None:
        plugins.pop(plugin, None)
    text = msgspec.json.encode(_File(plugins=dict(sorted(plugins.items()))))
    return msgspec.json.format(text, indent=2) + b"\n"


def update(path: Path, plugin: str, locked: Locked | None) -> None:
    """Replace or drop one plugin's entry on disk. Raises as `read`, and OSError."""
    write(path, updated(path, plugin, locked))
