"""Chooses the highest release that fits, and records why each higher one does not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman_api.errors import IncompatibleReleaseError
from dragoman_registry.index.catalog import Release
from dragoman_registry.wheels.packaging_parsers import holds, parse_version, rank_wheel
from dragoman_registry.wheels.wheel_file import WheelFile, project_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_registry.wheels.host_environment import Host

    from .lockfile import Locked


@dataclass(frozen=True, slots=True)
class SkippedRelease:
    """A release that was not chosen, with a stable code and a one-sentence reason."""

    version: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What to install.

    Attributes:
        release: The chosen release; None if none fits.
        files: Its wheel for this platform, then the fitting wheels of its closed set.
        skipped: Newer or equal releases that were skipped, newest first.
    """

    release: Release | None
    files: tuple[WheelFile, ...] = ()
    skipped: tuple[SkippedRelease, ...] = ()

    def expect(self, plugin: str = "the driver") -> Release:
        """Return the chosen release. Raises IncompatibleReleaseError: None fits."""
        if self.release is None:
            reasons = "; ".join(f"{entry.version} skipped: {entry.reason}" for entry in self.skipped)
            text = f"no release of {plugin} fits this host: {reasons or 'it has no release'}"
            raise IncompatibleReleaseError(text, hint=f"dragoman plugins show {plugin}")
        return self.release


def resolve(
    releases: Iterable[Release], *, host: Host, locked: Locked | None = None, pinned: str | None = None
) -> Resolution:
    """Choose the highest fitting release.

    Args:
        releases: The releases of one driver, in any order.
        host: The host that the release must fit.
        locked: The driver's entry in `plugins.lock`: only these bytes are acceptable, even when yanked.
        pinned: The only acceptable version, even when yanked or a pre-release.
    """
    skipped = []
    for release in sorted(releases, key=lambda entry: parse_version(entry.version), reverse=True):
        if locked and locked.version == release.version:
            release = locked.narrow(release)
        if reason := _misfit(release, host, locked, pinned):
            skipped.append(SkippedRelease(release.version, *reason))
            continue
        return Resolution(release=release, files=_files(release, host), skipped=tuple(skipped))
    return Resolution(release=None, skipped=tuple(skipped))


def _misfit(release: Release, host: Host, locked: Locked | None, pinned: str | None) -> tuple[str, str] | None:
    """Return the code and reason why a release is not acceptable, or None; the registry's reasons come first."""
    fixed_version = pinned or (locked.version if locked else None)
    if release.quarantined is not None:
        return "quarantined", release.quarantined
    if release.yanked is not None and fixed_version != release.version:
        return "yanked", release.yanked
    if fixed_version is not None and fixed_version != release.version:
        return ("pinned", f"{fixed_version} is pinned") if pinned else ("locked", f"plugins.lock names {fixed_version}")
    if locked and locked.version == release.version and not locked.covers(release):
        return "lock-mismatch", "its files differ from those in plugins.lock"
    if fixed_version is None and parse_version(release.version).is_prerelease:
        return "pre-release", "a pre-release is installed only when pinned"
    if not holds(release.host_api, host.api):
        return "host-api", f"needs dragoman-api {release.host_api}, this is {host.api}"
    pythons = {wheel.requires_python for wheel in release.wheels}
    if not any(holds(text, host.python) for text in pythons):
        return "python", f"needs Python {' or '.join(sorted(pythons))}, this is {host.python}"
    if not _files(release, host):
        return "platform", f"no wheel for this platform ({host.tags[0]}, …)"
    return None


def _files(release: Release, host: Host) -> tuple[WheelFile, ...]:
    """Pick the best wheel of each project; empty if a project has no fitting wheel."""
    best = []
    wheels = (*release.wheels, *release.dependencies)
    for project in dict.fromkeys(project_of(wheel.file) for wheel in wheels):
        if (wheel := _best([wheel for wheel in wheels if project_of(wheel.file) == project], host)) is None:
            return ()
        best.append(wheel)
    return tuple(best)


def _best(wheels: list[WheelFile], host: Host) -> WheelFile | None:
    ranks = [(rank_wheel(wheel.file, host.tags), wheel.file, wheel) for wheel in wheels]
    ranked = [(rank, file, wheel) for rank, file, wheel in ranks if rank is not None]
    return min(ranked)[2] if ranked else None
