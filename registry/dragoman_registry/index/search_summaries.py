"""The file `browse` of a registry: a short row per driver, so that a search reads little even of a large index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from dragoman_api.errors import IndexInvalidError
from dragoman_registry.names import PLUGIN, PluginId, ProjectName, ReleaseVersion, TypeName
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.manifest import MAX_LABEL, MAX_TEXT
from dragoman_registry.wheels.packaging_parsers import holds, parse_tags, parse_version
from dragoman_registry.wheels.wheel_file import ByteCount

from .catalog import held_against

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dragoman_registry.wheels.host_environment import Host
    from dragoman_registry.wheels.wheel_file import WheelFile

    from .catalog import Project, Release
    from .registry_reader import Registry

    OnFault = Callable[[str, str], None]
    """A function that receives the name of an unusable record and the reason."""

NAME = "browse"
_ANY = "py3-none-any"


class Candidate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A release that some host would select.

    Attributes:
        host_api: Range of `dragoman-api` versions.
        pythons: Ranges of Python versions, one of which must hold.
        platforms: For each wheel that is not for every platform, the tags of its variants.
    """

    version: ReleaseVersion
    host_api: str
    pythons: tuple[str, ...]
    platforms: tuple[tuple[str, ...], ...]
    size: ByteCount
    permissions: tuple[str, ...]


class Summary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The row of one driver for searches.

    Attributes:
        label: The display name (P4).
        types: Database types it serves, by name.
        capabilities: What a person can do with it.
        excluded_surfaces: Surfaces on which it is not available (P6).
        candidates: The candidates, newest first, without releases that a newer one always precedes.
    """

    plugin: PluginId
    project: ProjectName
    label: Annotated[str, msgspec.Meta(max_length=MAX_LABEL)]
    summary: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
    types: tuple[TypeName, ...]
    capabilities: tuple[str, ...]
    excluded_surfaces: tuple[str, ...]
    newest: str
    candidates: tuple[Candidate, ...]


class _File(msgspec.Struct, frozen=True, kw_only=True):
    browse_version: Literal[1] = 1
    drivers: tuple[Summary, ...]


class _Rows(msgspec.Struct, frozen=True, kw_only=True):
    browse_version: Literal[1] = 1
    drivers: tuple[msgspec.Raw, ...]


def summarise(project: Project) -> Summary:
    """Build the row of a driver."""
    candidates: dict[tuple[object, ...], Candidate] = {}
    for release in project.releases:
        if offered(release):
            candidate = _candidate(release)
            candidates.setdefault((candidate.host_api, candidate.pythons, candidate.platforms), candidate)
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
    """Return the mark against a release in one word, and its reason; None if there is none."""
    if release.quarantined is not None:
        return "quarantined", release.quarantined
    if release.yanked is not None:
        return "yanked", release.yanked
    if release.deprecated is not None:
        instead = f" (use {release.replaced_by} instead)" if release.replaced_by else ""
        return "deprecated", release.deprecated + instead
    return None


def offered(release: Release) -> bool:
    """Check whether a release is offered without a request for its version."""
    if release.yanked is not None or release.quarantined is not None:
        return False
    return release.version.replace(".", "").isdigit() or not parse_version(release.version).is_prerelease


def _candidate(release: Release) -> Candidate:
    variants: dict[str, set[str]] = {}
    for wheel in (*release.wheels, *release.dependencies):
        variants.setdefault(wheel.path.split("/")[1], set()).add(_tags(wheel))
    return Candidate(
        version=release.version,
        host_api=release.host_api,
        pythons=tuple(sorted({wheel.requires_python for wheel in release.wheels})),
        platforms=tuple(tuple(sorted(tags)) for tags in variants.values() if _ANY not in tags),
        size=release.size,
        permissions=release.permissions,
    )


def _tags(wheel: WheelFile) -> str:
    return "-".join(wheel.file.removesuffix(".whl").split("-")[-3:])


def encode(summaries: Iterable[Summary]) -> bytes:
    """Encode rows."""
    return msgspec.json.encode(_File(drivers=tuple(summaries))) + b"\n"


def decode_rows(data: bytes) -> tuple[Summary, ...]:
    """Decode rows. Raises Unreadable if any is malformed."""
    return decode(data, _File).drivers


def read(registry: Registry, *, on_fault: OnFault | None = None) -> tuple[Summary, ...]:
    """Read the rows of a registry, without versions that its advisories hold back. Blocks.

    Args:
        registry: The registry.
        on_fault: Called for each unusable row, which is left out; without it such a row is an error.

    Raises:
        IndexInvalidError: A file is missing, truncated or malformed.
        RegistryError: The registry cannot be reached (code ``registry-unreachable``).
    """
    data = registry.index_file(NAME)
    try:
        drivers = decode_rows(data)
    except Unreadable as error:
        try:
            texts = decode(data, _Rows).drivers if on_fault else ()
        except Unreadable:
            texts = ()
        if not texts or on_fault is None:
            registry.refuse_newer(NAME, data)
            message = f"{registry.url(NAME)} is malformed: {error}"
            raise IndexInvalidError(message, hint="dragoman registry verify FOLDER") from error
        drivers = tuple(_readable(texts, on_fault))
    quarantined = registry.advisories().quarantined
    return tuple(_without(summary, quarantined) if summary.project in quarantined else summary for summary in drivers)


def _readable(rows: Iterable[msgspec.Raw], on_fault: OnFault) -> Iterator[Summary]:
    for at, row in enumerate(rows, 1):
        try:
            yield decode(bytes(row), Summary)
        except Unreadable as error:
            on_fault(_name(row) or f"row {at}", str(error))


def _name(row: msgspec.Raw) -> str:
    """Return the name of an unreadable row; empty if the name is unreadable, too."""
    try:
        name = decode(bytes(decode(bytes(row), list[msgspec.Raw])[0]), str)
    except (Unreadable, IndexError):
        return ""
    return name if PLUGIN.fits(name) else ""


def _without(summary: Summary, quarantined: Mapping[str, Mapping[str, str]]) -> Summary:
    candidates = tuple(
        candidate
        for candidate in summary.candidates
        if held_against(quarantined, summary.project, candidate.version) is None
    )
    return msgspec.structs.replace(summary, candidates=candidates)


def fitting(host: Host) -> Callable[[Iterable[Candidate]], Candidate | None]:
    """Return a function that selects the candidate for a host, or None if none fits; the function raises Unreadable.

    It evaluates each range and tag once, since the drivers of a registry have few different ones.
    """
    verdicts: dict[tuple[object, ...], bool] = {}

    def fits(candidate: Candidate) -> bool:
        key = (candidate.host_api, candidate.pythons, candidate.platforms)
        if key not in verdicts:
            verdicts[key] = _fits(candidate, host)
        return verdicts[key]

    return lambda candidates: next(filter(fits, candidates), None)


def _fits(candidate: Candidate, host: Host) -> bool:
    return (
        holds(candidate.host_api, host.api)
        and any(holds(text, host.python) for text in candidate.pythons)
        and all(any(not parse_tags(text).isdisjoint(host.tags) for text in tags) for tags in candidate.platforms)
    )
