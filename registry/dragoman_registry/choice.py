"""Choosing a release: the highest that fits, and for every other one why not, as data. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .index import Release, WheelFile, project_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .lock import Locked
    from .wheels import Host


@dataclass(frozen=True, slots=True)
class Skipped:
    """A release that was not chosen, with a stable code and a sentence."""

    version: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to install.

    Attributes:
        release: The chosen one, None if none fits.
        files: Its wheel for this platform, then those of its closed set that fit.
        skipped: Newer or equal releases that were passed over, newest first.
    """

    release: Release | None
    files: tuple[WheelFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def choose(
    releases: Iterable[Release], *, host: Host, locked: Locked | None = None, pinned: str | None = None
) -> Choice:
    """Choose the highest fitting release.

    Args:
        releases: Of one driver, in any order.
        host: What it must fit.
        locked: What `plugins.lock` says of the driver: only these bytes are acceptable, even when yanked.
        pinned: The one version wanted, even when yanked or a pre-release.

    Returns:
        The choice, with an explanation for each release above it.
    """
    from packaging.version import Version

    skipped = []
    for release in sorted(releases, key=lambda entry: Version(entry.version), reverse=True):
        if locked and locked.version == release.version:
            release = locked.narrow(release)
        if reason := _misfit(release, host, locked, pinned):
            skipped.append(Skipped(release.version, *reason))
            continue
        return Choice(release=release, files=_files(release, host), skipped=tuple(skipped))
    return Choice(release=None, skipped=tuple(skipped))


def _misfit(release: Release, host: Host, locked: Locked | None, pinned: str | None) -> tuple[str, str] | None:
    """Say why a release is not acceptable; first what nobody here can change."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    wanted = pinned or (locked.version if locked else None)
    if release.quarantined is not None:
        return "quarantined", release.quarantined
    if release.yanked is not None and wanted != release.version:
        return "yanked", release.yanked
    if wanted is not None and wanted != release.version:
        return ("pinned", f"{wanted} is pinned") if pinned else ("locked", f"plugins.lock holds {wanted}")
    if locked and locked.version == release.version and not locked.covers(release):
        return "lock-mismatch", "its files differ from those in plugins.lock"
    if wanted is None and Version(release.version).is_prerelease:
        return "pre-release", "a pre-release is installed only when pinned"
    if not SpecifierSet(release.host_api).contains(host.api, prereleases=True):
        return "host-api", f"needs dragoman-api {release.host_api}, this is {host.api}"
    pythons = {wheel.requires_python for wheel in release.wheels}
    if not any(SpecifierSet(text).contains(host.python, prereleases=True) for text in pythons):
        return "python", f"needs Python {' or '.join(sorted(pythons))}, this is {host.python}"
    if not _files(release, host):
        return "platform", f"no wheel for this platform ({host.tags[0]}, …)"
    return None


def _files(release: Release, host: Host) -> tuple[WheelFile, ...]:
    """Pick the best wheel of each project; empty if one has none."""
    best = []
    wheels = (*release.wheels, *release.dependencies)
    for project in dict.fromkeys(project_of(wheel.file) for wheel in wheels):
        if (wheel := _best([wheel for wheel in wheels if project_of(wheel.file) == project], host)) is None:
            return ()
        best.append(wheel)
    return tuple(best)


def _best(wheels: list[WheelFile], host: Host) -> WheelFile | None:
    from .wheels import rank

    ranked = [(place, wheel.file, wheel) for wheel in wheels if (place := rank(wheel.file, host.tags)) is not None]
    return min(ranked)[2] if ranked else None
