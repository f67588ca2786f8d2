"""Every page of a registry, in writing order; pages that are up to date may be left out."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_registry.index import catalog, search_summaries
from dragoman_registry.index.release_documents import MAX_TEXT, Documents, read_documents
from dragoman_registry.index.search_summaries import offered, standing
from dragoman_registry.names import marked
from dragoman_registry.wheels.manifest import decode, describe_reach, plain_permissions
from dragoman_registry.wheels.packaging_parsers import parse_range, parse_version
from dragoman_registry.wheels.wheel_file import project_of

from . import index_records, page_rendering
from .index_records import FILES, encode
from .page_rendering import FOLDER, Markup, address, capitalised, clean, embedded, fill, list_row, markdown, size, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from dragoman_registry.index.catalog import Project, Release
    from dragoman_registry.index.release_documents import Read
    from dragoman_registry.index.search_summaries import Summary
    from dragoman_registry.wheels.manifest import Manifest
    from dragoman_registry.wheels.wheel_file import WheelFile

    from .index_records import Index

    Listed = tuple[WheelFile, str | None, str | None]

FRONT, ALL = "../index.html", "../all.html"
"""Pages for people, at the root of the registry beside `targets/`."""

SHOWN = 50
"""Number of drivers first shown on the front page; the script adds as many at a time."""
MOST = 50
"""Maximum lines of a list in a conformance report; longer ones are not written by hand."""
META = {"api-version": "1.4"}


def pages(
    index: Index,
    read: Read,
    *,
    publishers: Mapping[str, str],
    changed: Collection[str] | None = None,
    read_end: Read | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Build the pages as pairs of path below `targets/` and content; the same input yields the same bytes.

    Args:
        index: The registry's index.
        read: Returns a file by its path below `targets/`, or None if it is missing.
        publishers: Maps each project to its publisher.
        changed: Projects whose documents may be new; pages of other projects are built only if their catalog entry
            has changed since. None for every page.
        read_end: Returns at least the last 128 bytes of a file, or None if it is missing; by default `read`.
    """
    for project_name, record in index.records.items():
        name, publisher = f"../{page_of(project_name)}", publishers.get(project_name, "")
        stamp = _stamp(publisher.encode(), record)
        if changed is not None and project_name not in changed:
            end = (read_end or read)(name)
            if end is not None and end.endswith(_ending(stamp)):
                continue
        if (project := index.project(project_name)) is None:
            continue
        # The page for people comes last and carries the stamp: if it is up to date, the others are too.
        yield from project_pages(project)
        if project.releases:
            yield name, driver_page(project, read, publisher=publisher, stamp=stamp)
    yield from other_pages(index)
    yield from catalogue_pages(index.rows.values(), stamp=index_stamp(index.digests))


def index_stamp(digests: Mapping[str, str]) -> str:
    """Return the stamp of the front page that is made with an index: it names the code and the files of the index."""
    return _stamp(*(digests[name].encode() for name in FILES))


def is_made_by_this_code(front_page: bytes | None, digests: Mapping[str, str]) -> bool:
    """Check whether this very code made the front page together with an index whose files have these digests.

    What is signed decides what is true; this only tells whether it is also what this code would write.
    """
    return front_page is not None and front_page.endswith(_ending(index_stamp(digests)))


def _stamp(*made_from: bytes) -> str:
    return hashlib.sha256(b"\n".join((_generator(), *made_from))).hexdigest()


def _ending(stamp: str) -> bytes:
    return f"<!-- {stamp} -->\n".encode()


@cache
def _generator() -> bytes:
    """Return a digest of every file that affects the index and the pages."""
    modules = [__file__, index_records.__file__, page_rendering.__file__, search_summaries.__file__, catalog.__file__]
    files = [*map(Path, modules), *sorted(FOLDER.iterdir())]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def page_of(project: str) -> str:
    """Return the path of a driver's page below the root of the registry."""
    return f"drivers/{project}.html"


def catalogue_pages(summaries: Iterable[Summary], *, stamp: str = "") -> Iterator[tuple[str, bytes]]:
    """Build the front page, and a full page if the front page cannot show every driver without JavaScript."""
    drivers = sorted(summaries, key=lambda driver: driver.plugin)
    rows = [_row(driver) for driver in drivers]
    count = f"{len(rows):,} driver{'' if len(rows) == 1 else 's'}" if rows else "No driver is published here yet."
    if len(rows) > SHOWN:
        yield ALL, fill("all.html", count=count, rows=Markup("\n".join(rows)))
    apis, can = _apis(drivers), sorted({name for driver in drivers for name in driver.capabilities})
    yield (
        FRONT,
        fill(
            "catalog.html",
            script="catalog.js",
            count=count,
            rows=Markup("\n".join(rows[:SHOWN])),
            empty=list_row(),
            more=len(rows) if len(rows) > SHOWN else 0,
            apis=apis,
            capabilities=can,
            data=Markup(embedded(_data(drivers, apis, can))),
        )
        + _ending(stamp),
    )


def _row(driver: Summary) -> Markup:
    return list_row(
        file=page_of(driver.project),
        label=marked(driver.label),
        version=_version(driver),
        summary=driver.summary,
        types=", ".join(driver.types),
        can=_abilities(driver.capabilities),
        reaches=_reaches(driver),
    )


def _version(driver: Summary) -> str:
    return driver.candidates[0].version if driver.candidates else f"{driver.newest} withdrawn"


def _reaches(driver: Summary) -> str:
    return _reach(driver.candidates[0].permissions) if driver.candidates else ""


@lru_cache(maxsize=1024)
def _abilities(capabilities: tuple[str, ...]) -> str:
    return ", ".join(map(words, capabilities))


@lru_cache(maxsize=1024)  # thousands of drivers share a few
def _reach(permissions: tuple[str, ...]) -> str:
    return f"reaches {describe_reach(permissions)}"


def _apis(drivers: Sequence[Summary]) -> dict[str, set[str]]:
    """Map each API version that the drivers' ranges name to the ranges that include it."""
    texts = {candidate.host_api: None for driver in drivers for candidate in driver.candidates}
    ranges = {text: parse_range(text) for text in texts}
    versions = {spec.version.removesuffix(".*") for version_range in ranges.values() for spec in version_range}
    texts_by_version = {
        version: {text for text, version_range in ranges.items() if version_range.contains(version, prereleases=True)}
        for version in sorted(versions, key=parse_version)
    }
    return {version: texts for version, texts in texts_by_version.items() if texts}


def _data(drivers: Sequence[Summary], apis: dict[str, set[str]], can: list[str]) -> dict[str, object]:
    reach_of_each = [_reaches(driver) for driver in drivers]
    reaches = sorted(set(reach_of_each))
    reach_places = {reach: place for place, reach in enumerate(reaches)}
    range_sets = list(apis.values())
    places = {name: place for place, name in enumerate(can)}

    @cache  # thousands of drivers share a few
    def fitting(ranges: tuple[str, ...]) -> list[int]:
        return [place for place, texts in enumerate(range_sets) if any(text in texts for text in ranges)]

    @cache
    def abilities(capabilities: tuple[str, ...]) -> list[int]:
        return [places[name] for name in capabilities]

    return {
        "apis": list(apis),
        "can": list(map(words, can)),
        "reaches": list(map(clean, reaches)),
        "drivers": [
            (
                page_of(driver.project),
                driver.plugin,
                clean(marked(driver.label)),
                clean(driver.summary),
                driver.types,
                abilities(driver.capabilities),
                _version(driver),
                fitting(tuple([candidate.host_api for candidate in driver.candidates])),
                reach_places[reach],
            )
            for driver, reach in zip(drivers, reach_of_each, strict=True)
        ],
    }


def driver_page(project: Project, read: Read, *, publisher: str, stamp: str) -> bytes:
    """Build the page of a driver."""
    release = next(filter(offered, project.releases), project.releases[0])
    documents, manifest = read_documents(release, read), _manifest(release, read)
    page = fill(
        "driver.html",
        script="driver.js",
        most=MOST,
        project=project,
        release=release,
        held=standing(release),
        permissions=[*map(capitalised, plain_permissions(release.permissions))] or ["Nothing"],
        facts=_facts(project, release, manifest, publisher),
        docs=address(manifest.docs) if manifest is not None else None,
        readme=_prose(documents.readme),
        versions=[{"release": r, "held": standing(r), "facts": _version_facts(r)} for r in project.releases],
        changelog=_prose(documents.changelog),
        report=documents.report,
        results=_results(documents),
    )
    return page + _ending(stamp)


def _manifest(release: Release, read: Read) -> Manifest | None:
    try:
        return decode(read(f"{release.wheels[0].path}.driver.json") or b"")
    except (ValueError, RecursionError):
        return None  # `verify` reports the file


def _prose(source: str) -> dict[str, object] | None:
    return {"html": Markup(markdown(source)), "cut": len(source) > MAX_TEXT} if source.strip() else None


def _facts(
    project: Project, release: Release, manifest: Manifest | None, publisher: str
) -> list[tuple[str, list[str]]]:
    """Return the facts for the sidebar; without a manifest, leave out those that only it states."""
    facts = [
        ("Database types", [f"{kind.label} ({kind.name})" for kind in project.types]),
        ("Can do", [", ".join(map(words, project.capabilities))]),
        ("Works with", [f"dragoman-api {release.host_api}"]),
        ("Published", [release.wheels[0].uploaded[:10]]),
        ("Signed by", [publisher]),
        ("Size", [size(release.size)]),
        ("Not available on", [", ".join(project.excluded_surfaces)]),
    ]
    if manifest is not None:
        facts += [("Server versions", [", ".join(manifest.server_versions)]), ("Licence", [manifest.licence])]
    return facts


def _version_facts(release: Release) -> list[str]:
    return [release.wheels[0].uploaded[:10], f"dragoman-api {release.host_api}", size(release.size)]


def _results(documents: Documents) -> list[tuple[str, list[str]]]:
    report = documents.report
    if report is None:
        return []
    return [
        ("Failures", list(report.failures)),
        ("Blocked addresses", list(report.denied)),
        ("Tests the author replaced", list(report.deviations)),
        ("Skipped", [f"{reason} ({count})" for reason, count in report.skips.items()]),
        ("Hooks it does not implement", list(report.hooks)),
    ]


def project_pages(project: Project) -> Iterator[tuple[str, bytes]]:
    """Build both forms of the page of a driver's project."""
    # pip and uv ignore a project's status, so leave out quarantined releases.
    offered = [release for release in project.releases if release.quarantined is None]
    if offered:
        yield from _both(project.project, [(w, r.yanked, r.plugin) for r in offered for w in r.wheels])


def other_pages(index: Index) -> Iterator[tuple[str, bytes]]:
    """Build the pages of the libraries, and those that list every project."""
    libraries: dict[str, list[Listed]] = {}
    for wheel in index.libraries:
        libraries.setdefault(project_of(wheel.file), []).append((wheel, None, None))
    for name, files in sorted(libraries.items()):
        yield from _both(name, files)
    hidden = {name for name, row in index.rows.items() if not row.newest}
    hidden |= {name for name in index.advisories.quarantined if not _offers(index.project(name))}
    names = sorted({*(index.records.keys() - hidden), *libraries})
    yield "simple/index.v1+json", encode({"meta": META, "projects": [{"name": name} for name in names]})
    links = Markup("".join(f'<a href="{escape(name)}/">{escape(name)}</a><br>\n' for name in names))
    yield "simple/index.html", fill("simple.html", title="Projects", rows=links, links=())


def _offers(project: Project | None) -> bool:
    return project is not None and any(release.quarantined is None for release in project.releases)


def _both(project: str, files: list[Listed]) -> Iterator[tuple[str, bytes]]:
    yield f"simple/{project}/index.v1+json", _json_page(project, files)
    links = [_link(wheel, yanked) for wheel, yanked, _ in files]
    yield f"simple/{project}/index.html", fill("simple.html", title=project, rows="", links=links)


def _json_page(project: str, files: list[Listed]) -> bytes:
    listed = [
        {
            "filename": wheel.file,
            "url": f"../../{wheel.path}",
            "hashes": {"sha256": wheel.sha256},
            "size": wheel.size,
            "upload-time": wheel.uploaded,
            "yanked": yanked if yanked is not None else False,
            "core-metadata": {"sha256": wheel.metadata_sha256},
        }
        | ({"requires-python": wheel.requires_python} if wheel.requires_python else {})
        | ({"_plugin": {"id": plugin, "manifest": f"../../{wheel.path}.driver.json"}} if plugin else {})
        for wheel, yanked, plugin in files
    ]
    versions = list(dict.fromkeys(wheel.version for wheel, _, _ in files))
    return encode({"meta": META, "name": project, "versions": versions, "files": listed})


def _link(wheel: WheelFile, yanked: str | None) -> dict[str, str | None]:
    return {
        "href": f"../../{wheel.path}#sha256={wheel.sha256}",
        "text": wheel.file,
        "metadata": f"sha256={wheel.metadata_sha256}",
        "requires_python": wheel.requires_python,
        "yanked": yanked,
    }
