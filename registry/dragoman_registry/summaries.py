"""The file `browse` of a registry: a short row per driver, so that a search reads little of even a large index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from dragoman_api.errors import IndexInvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .index import Catalog, Project, Registry, Release, WheelFile
    from .wheels import Host

T = TypeVar("T")

NAME = "browse"
_ANY = "py3-none-any"


class Candidate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A release that some host would be given.

    Attributes:
        version: Of the distribution.
        host_api: Range of `dragoman-api` versions.
        pythons: Ranges of Python versions, one of which must hold.
        platforms: For each wheel that is not for every platform, the tags of its variants.
        size: Bytes of the driver's wheel.
        permissions: As the manifest asks for them.
    """

    version: str
    host_api: str
    pythons: tuple[str, ...]
    platforms: tuple[tuple[str, ...], ...]
    size: int
    permissions: tuple[str, ...]


class Summary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One driver as a search sees it.

    Attributes:
        plugin: The plugin's id.
        project: Name of the distribution.
        label: As a person reads it (P4).
        summary: One sentence.
        types: Database types it serves, by name.
        capabilities: What a person can do with it.
        excluded_surfaces: Where it is not available (P6).
        newest: The newest version, offered or not.
        candidates: Newest first; a release that a newer one always precedes is none.
    """

    plugin: str
    project: str
    label: str
    summary: str
    types: tuple[str, ...]
    capabilities: tuple[str, ...]
    excluded_surfaces: tuple[str, ...]
    newest: str
    candidates: tuple[Candidate, ...]


class _Advisories(msgspec.Struct, frozen=True, kw_only=True):
    quarantined: dict[str, dict[str, str]] = {}


class _File(msgspec.Struct, frozen=True, kw_only=True):
    browse_version: Literal[1] = 1
    drivers: tuple[Summary, ...]


def summarise(project: Project) -> Summary:
    """Make the row of a driver."""
    candidates: dict[tuple[object, ...], Candidate] = {}
    for release in project.releases:
        if offered(release):
            found = _candidate(release)
            candidates.setdefault((found.host_api, found.pythons, found.platforms), found)
    return Summary(
        plugin=project.plugin,
        project=project.project,
        label=project.label,
        summary=project.summary,
        types=tuple(kind.name for kind in project.types),
        capabilities=project.capabilities,
        excluded_surfaces=project.excluded_surfaces,
        newest=project.releases[0].version if project.releases else "",
        candidates=tuple(candidates.values()),
    )


def standing(release: Release) -> tuple[str, str] | None:
    """Say in a word what is held against a release, and why; None if nothing is."""
    if release.quarantined is not None:
        return "quarantined", release.quarantined
    if release.yanked is not None:
        return "yanked", release.yanked
    if release.deprecated is not None:
        instead = f" (use {release.replaced_by} instead)" if release.replaced_by else ""
        return "deprecated", release.deprecated + instead
    return None


def offered(release: Release) -> bool:
    """Tell whether a release is given to those who ask for no version in particular."""
    from packaging.version import Version

    if release.yanked is not None or release.quarantined is not None:
        return False
    return release.version.replace(".", "").isdigit() or not Version(release.version).is_prerelease


def _candidate(release: Release) -> Candidate:
    variants: dict[str, set[str]] = {}
    for wheel in (*release.wheels, *release.dependencies):
        variants.setdefault(wheel.path.split("/")[1], set()).add(_tags(wheel))
    return Candidate(
        version=release.version,
        host_api=release.host_api,
        pythons=tuple(sorted({wheel.requires_python for wheel in release.wheels})),
        platforms=tuple(tuple(sorted(found)) for found in variants.values() if _ANY not in found),
        size=release.wheels[0].size,
        permissions=release.permissions,
    )


def _tags(wheel: WheelFile) -> str:
    return "-".join(wheel.file.removesuffix(".whl").split("-")[-3:])


def encode(catalog: Catalog) -> bytes:
    """Write the rows of a catalog."""
    return msgspec.json.encode(_File(drivers=tuple(map(summarise, catalog.projects)))) + b"\n"


def read(registry: Registry) -> tuple[Summary, ...]:
    """Read the rows of a registry, without what its advisories hold back. Blocks.

    Raises:
        IndexInvalidError: A file is missing, truncated or malformed.
        RegistryError: The registry cannot be reached (code ``registry-unreachable``).
    """
    drivers = _decode(registry, NAME, _File).drivers
    held = _decode(registry, "advisories", _Advisories).quarantined
    return tuple(_without(one, held.get(one.project, {})) for one in drivers) if held else drivers


def _decode(registry: Registry, name: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(registry.index_file(name), type=kind)
    except msgspec.DecodeError as error:
        message = f"{registry.url(name)} is malformed: {error}"
        raise IndexInvalidError(message, hint="dragoman registry verify FOLDER") from error


def _without(one: Summary, held: dict[str, str]) -> Summary:
    return msgspec.structs.replace(one, candidates=tuple(each for each in one.candidates if each.version not in held))


def fitting(host: Host) -> Callable[[Iterable[Candidate]], Candidate | None]:
    """Make a function that gives the candidate a host would be given, None if none fits.

    Ranges and tags are judged once each, since the drivers of a registry have few different ones.
    """
    known: dict[tuple[object, ...], bool] = {}

    def fits(one: Candidate) -> bool:
        key = (one.host_api, one.pythons, one.platforms)
        if key not in known:
            known[key] = _fits(one, host)
        return known[key]

    return lambda candidates: next(filter(fits, candidates), None)


def _fits(one: Candidate, host: Host) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.tags import parse_tag

    return (
        SpecifierSet(one.host_api).contains(host.api, prereleases=True)
        and any(SpecifierSet(text).contains(host.python, prereleases=True) for text in one.pythons)
        and all(any(str(tag) in host.tags for text in tags for tag in parse_tag(text)) for tags in one.platforms)
    )
