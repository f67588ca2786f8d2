"""`plugins.lock`: the installed drivers by hash, for every platform, so another machine can install the same bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import read_plain
from dragoman_registry.names import Digest, PluginId, ProjectName, ReleaseVersion, WheelName
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.wheel_file import ByteCount

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_registry.index.catalog import Release
    from dragoman_registry.wheels.wheel_file import WheelFile

NAME = "plugins.lock"
MAX_LOCK = 16 << 20
"""Maximum size of the file in bytes."""


class LockedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One wheel, by hash."""

    file: WheelName
    sha256: Digest
    size: ByteCount


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One installed driver: every wheel of the release, for every platform."""

    project: ProjectName
    version: ReleaseVersion
    wheels: tuple[LockedFile, ...]
    dependencies: tuple[LockedFile, ...] = ()

    def covers(self, release: Release) -> bool:
        """Check whether a release consists of exactly these files."""
        return _digests(self.wheels, self.dependencies) == _digests(release.wheels, release.dependencies)

    def contradicts(self, other: Locked | Release) -> bool:
        """Check whether a file of the same name has other bytes there."""
        theirs = dict(_digests(other.wheels, other.dependencies))
        return any(theirs.get(file, digest) != digest for file, digest in _digests(self.wheels, self.dependencies))

    def narrow(self, release: Release) -> Release:
        """Leave out the wheels that were added to the release after it was locked."""
        ours = _digests(self.wheels, self.dependencies)
        if ours - _digests(release.wheels, release.dependencies):
            return release
        wheels = tuple(wheel for wheel in release.wheels if (wheel.file, wheel.sha256) in ours)
        dependencies = tuple(wheel for wheel in release.dependencies if (wheel.file, wheel.sha256) in ours)
        return replace(release, wheels=wheels, dependencies=dependencies)


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lock_version: Literal[1] = 1
    plugins: dict[PluginId, Locked] = {}


def _digests(*sets: tuple[LockedFile, ...] | tuple[WheelFile, ...]) -> set[tuple[str, str]]:
    return {(wheel.file, wheel.sha256) for wheels in sets for wheel in wheels}


def lock_release(release: Release) -> Locked:
    """Build the lock entry of a release."""
    wheels, dependencies = (
        tuple(LockedFile(file=wheel.file, sha256=wheel.sha256, size=wheel.size) for wheel in files)
        for files in (release.wheels, release.dependencies)
    )
    return Locked(project=release.project, version=release.version, wheels=wheels, dependencies=dependencies)


def read(path: Path) -> dict[str, Locked]:
    """Read a lockfile as a mapping of plugin ids to entries; empty if there is no file.

    Raises:
        ConfigurationError: The file is damaged, or of a newer version of dragoman (code ``state-newer``).
    """
    try:
        data = read_plain(path, limit=MAX_LOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _damaged(path, error) from error
    try:
        return decode(data, _File).plugins
    except Unreadable as error:
        from dragoman_api.file_versions import refuse_newer

        refuse_newer(path, data, member="lock_version")
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ConfigurationError:
    hint = f"restore {path.name} from version control, or remove it; the next installation writes it again"
    return ConfigurationError(f"{path} cannot be read: {error}", hint=hint)


def updated(path: Path, plugin: str, locked: Locked | None) -> bytes:
    """Return the text of a lockfile with one plugin's entry replaced or dropped. Raises as `read`."""
    plugins = read(path) | ({plugin: locked} if locked else {})
    if locked is None:
        plugins.pop(plugin, None)
    text = msgspec.json.encode(_File(plugins=dict(sorted(plugins.items()))))
    return msgspec.json.format(text, indent=2) + b"\n"
