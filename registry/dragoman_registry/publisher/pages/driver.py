"""The page of one driver: its description, permissions, test results and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_registry.index.release_documents import MAX_TEXT, Documents, read_documents
from dragoman_registry.index.search_summaries import offered, standing
from dragoman_registry.permission_wording import plain_permissions
from dragoman_registry.wheels.manifest import decode

from .escaping import address, markdown
from .rendering import Markup, capitalised, fill, size, words

if TYPE_CHECKING:
    from dragoman_registry.index.catalog import Project, Release
    from dragoman_registry.index.release_documents import Read
    from dragoman_registry.wheels.manifest import Manifest

MOST = 50
"""Maximum lines of a list in a conformance report; longer ones are not written by hand."""


def driver_page(project: Project, read: Read, *, publisher: str, stamp: str) -> bytes:
    """Build the page of a driver.

    Args:
        project: The driver, with at least one release.
        read: Returns a file by its path below `targets/`, or None if it is missing.
        publisher: The operator's name for the publisher whose signature it needs.
        stamp: Written at the end of the page to identify what the page was made from.
    """
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
        versions=[{"release": r, "held": standing(r), "facts": _version(r)} for r in project.releases],
        changelog=_prose(documents.changelog),
        report=documents.report,
        results=_results(documents),
    )
    return page + f"<!-- {stamp} -->\n".encode()


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
        ("Size", [size(release.wheels[0].size)]),
        ("Not available on", [", ".join(project.excluded_surfaces)]),
    ]
    if manifest is not None:
        facts += [("Server versions", [", ".join(manifest.server_versions)]), ("Licence", [manifest.licence])]
    return facts


def _version(release: Release) -> list[str]:
    total = size(sum(wheel.size for wheel in release.wheels))
    return [release.wheels[0].uploaded[:10], f"dragoman-api {release.host_api}", total]


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
