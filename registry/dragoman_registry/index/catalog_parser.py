"""Reads a catalog record by record: an unsound record is left out without affecting the others. Pure.

Each release of a driver is a separate record.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from dragoman_registry.names import PROJECT, TYPE
from dragoman_registry.validation import Fault, decode, load
from dragoman_registry.wheels.manifest import MAX_LABEL, MAX_TEXT
from dragoman_registry.wheels.packaging_parsers import Unreadable, is_wheel_of, parse_range
from dragoman_registry.wheels.wheel_file import WheelFile

from .catalog import Catalog, Project, Release, Types

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class RawCatalog(msgspec.Struct, frozen=True):
    """A catalog with undecoded records."""

    projects: tuple[msgspec.Raw, ...]
    catalog_version: Literal[1] = 1
    libraries: tuple[msgspec.Raw, ...] = ()


class _Bindings(msgspec.Struct, frozen=True):
    types: dict[str, object]
    types_version: Literal[1] = 1


def sound_bindings(data: bytes) -> tuple[dict[str, str] | None, list[Fault]]:
    """Read the bindings of database types to projects.

    Returns:
        The bindings, and a fault (code ``index``) for each that is left out; None instead of the bindings if the
        file has none.
    """
    whole, faults = load(Types, data, code="index")
    try:
        written = whole.types if whole is not None else decode(data, _Bindings).types
    except Unreadable:
        return None, faults
    bindings = {
        kind: to for kind, to in written.items() if TYPE.fits(kind) and isinstance(to, str) and PROJECT.fits(to)
    }
    reason = "or the project it is bound to is not a valid name"
    return bindings, [Fault("index", f"{kind[:80]!a} {reason}", "types") for kind in written if kind not in bindings]


def sound_records(data: bytes) -> tuple[Catalog | None, list[Fault]]:
    """Read a catalog, record by record if the whole is unsound.

    Returns:
        The sound records, and a fault (code ``index``) for each that is left out; None instead of the records if the
        file has none.
    """
    whole, faults = load(Catalog, data, code="index")
    if whole is not None:
        projects, libraries = list(enumerate(whole.projects)), list(enumerate(whole.libraries))
    else:
        try:
            raw = decode(data, RawCatalog)
        except Unreadable:
            return None, faults
        judged = [(at, *_project(bytes(record), at)) for at, record in enumerate(raw.projects)]
        projects = [(at, project) for at, project, _ in judged if project is not None]
        libraries, worse = _records(WheelFile, raw.libraries, "libraries")
        faults = [*(fault for _, _, bad in judged for fault in bad), *worse]
    sound_projects: dict[str, Project] = {}
    plugins: set[str] = set()
    for at, project in projects:
        reasons = list(unsound(project))
        if project.project in sound_projects or project.plugin in plugins:
            reasons.append(f"{project.project} or {project.plugin} appears twice")
        if reasons:
            faults.append(_left_out(f"projects[{at}]", reasons))
            continue
        sound, reasons = without_unsound(project)
        if reasons:
            faults.append(_left_out(f"projects[{at}].releases", reasons))
        if sound is not None:
            sound_projects[project.project] = sound
            plugins.add(project.plugin)
    sized = tuple(wheel for _, wheel in libraries if wheel.size > 0)
    faults += [_left_out(f"libraries[{at}]", ["it has no size"]) for at, wheel in libraries if wheel.size <= 0]
    return Catalog(projects=tuple(sound_projects.values()), libraries=sized), faults


def _project(data: bytes, at: int) -> tuple[Project | None, list[Fault]]:
    """Read a driver without its unreadable releases; None if no release is left."""
    whole, wrong = load(Project, data, code="index")
    if whole is not None:
        return whole, []
    refused = [_left_out(f"projects[{at}]", [fault.reason for fault in wrong])]
    try:
        fields = decode(data, dict[str, msgspec.Raw])
        releases = decode(bytes(fields.pop("releases")), tuple[msgspec.Raw, ...])
    except (Unreadable, KeyError):
        return None, refused
    rest, _ = load(Project, msgspec.json.encode(fields), code="index")
    sound, faults = _records(Release, releases, f"projects[{at}].releases")
    if rest is None or not sound:
        return None, refused
    return replace(rest, releases=tuple(release for _, release in sound)), faults


def _records(kind: type[T], raw: tuple[msgspec.Raw, ...], key: str) -> tuple[list[tuple[int, T]], list[Fault]]:
    records, faults = [], []
    for at, data in enumerate(raw):
        record, wrong = load(kind, bytes(data), code="index")
        if record is None:
            faults.append(_left_out(f"{key}[{at}]", [fault.reason for fault in wrong]))
        else:
            records.append((at, record))
    return records, faults


def _left_out(record: str, reasons: list[str]) -> Fault:
    suffix = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    return Fault("index", f"$.{record} is left out: {'; '.join(reasons[:3])}{suffix}", "catalog")


def without_unsound(project: Project) -> tuple[Project | None, list[str]]:
    """Leave out the unsound releases of a driver, and return it with the reasons; None if no release is left."""
    judged = [(release, list(_unsound_release(project, release))) for release in project.releases]
    reasons = [reason for _, release_reasons in judged for reason in release_reasons]
    if not reasons:
        return project, []
    sound_releases = tuple(release for release, wrong in judged if not wrong)
    return (replace(project, releases=sound_releases) if sound_releases else None), reasons


def unsound(project: Project) -> Iterator[str]:
    """Check the sizes of a whole driver, which types alone cannot limit."""
    if any(len(label) > MAX_LABEL for label in (project.label, *(kind.label for kind in project.types))):
        yield f"{project.project} has a label of more than {MAX_LABEL} characters"
    if len(project.summary) > MAX_TEXT:
        yield f"{project.project} has a text of more than {MAX_TEXT:,} characters"


def _unsound_release(project: Project, release: Release) -> Iterator[str]:
    """Check a release: sizes, contradictory names and invalid ranges."""
    title = f"{release.project} {release.version}"
    if any(len(text) > MAX_TEXT for text in release.permissions):
        yield f"{title} has a text of more than {MAX_TEXT:,} characters"
    if (release.plugin, release.project) != (project.plugin, project.project):
        yield f"{title} is not a release of {project.project}"
    if not release.wheels:
        yield f"{title} has no wheel"
    if any(wheel.size <= 0 for wheel in (*release.wheels, *release.dependencies)):
        yield f"{title} has a wheel without a size"
    for wheel in release.wheels:
        try:
            if not is_wheel_of(wheel.file, project=release.project, version=release.version):
                yield f"{wheel.file!r} is not a wheel of {title}"
        except Unreadable as error:
            yield str(error)
    for text in (release.host_api, *(wheel.requires_python for wheel in release.wheels)):
        if not _is_range(text):
            yield f"{title} has {text[:80]!r}, which is not a version range"


@cache
def _is_range(text: str) -> bool:
    """Check a range, and cache the result: thousands of releases share a few ranges."""
    try:
        parse_range(text)
    except Unreadable:
        return False
    return True
