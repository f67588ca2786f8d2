"""The pages for pip and uv (PEP 503 and PEP 691), built from the catalog. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_registry.wheels.wheel_file import project_of

from .rendering import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_registry.index.catalog import Catalog, Project
    from dragoman_registry.wheels.wheel_file import WheelFile

    Listed = tuple[WheelFile, str | None, str | None]

META = {"api-version": "1.4"}


def project_pages(project: Project) -> Iterator[tuple[str, bytes]]:
    """Build both forms of the page of a driver's project."""
    # pip and uv ignore a project's status, so leave out quarantined releases.
    offered = [release for release in project.releases if release.quarantined is None]
    if offered:
        yield from _both(project.project, [(w, r.yanked, r.plugin) for r in offered for w in r.wheels])


def other_pages(catalog: Catalog) -> Iterator[tuple[str, bytes]]:
    """Build the pages of the libraries, and those that list every project."""
    libraries: dict[str, list[Listed]] = {}
    for wheel in catalog.libraries:
        libraries.setdefault(project_of(wheel.file), []).append((wheel, None, None))
    for name, files in sorted(libraries.items()):
        yield from _both(name, files)
    drivers = [p.project for p in catalog.projects if any(release.quarantined is None for release in p.releases)]
    names = sorted({*drivers, *libraries})
    yield "simple/index.v1+json", _encode({"meta": META, "projects": [{"name": name} for name in names]})
    links = [
        {"href": f"{name}/", "text": name, "metadata": "", "requires_python": "", "yanked": None} for name in names
    ]
    yield "simple/index.html", fill("simple.html", title="Projects", links=links)


def _both(project: str, files: list[Listed]) -> Iterator[tuple[str, bytes]]:
    yield f"simple/{project}/index.v1+json", _json_page(project, files)
    links = [_link(wheel, yanked) for wheel, yanked, _ in files]
    yield f"simple/{project}/index.html", fill("simple.html", title=project, links=links)


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
    return _encode({"meta": META, "name": project, "versions": versions, "files": listed})


def _link(wheel: WheelFile, yanked: str | None) -> dict[str, str | None]:
    return {
        "href": f"../../{wheel.path}#sha256={wheel.sha256}",
        "text": wheel.file,
        "metadata": f"sha256={wheel.metadata_sha256}",
        "requires_python": wheel.requires_python,
        "yanked": yanked,
    }


def _encode(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
