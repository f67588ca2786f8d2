"""The pages of a registry, made from the catalog: PEP 503 and PEP 691 for pip and uv, one for people. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import msgspec

from .index import project_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .index import Catalog, WheelFile

FRONT = "../index.html"
"""The page for people lies at the root of the registry, beside `targets/`."""

META = {"api-version": "1.4"}


def pages(catalog: Catalog) -> dict[str, bytes]:
    """Make both forms of every page: path below `targets/` → content."""
    offered: dict[str, list[tuple[WheelFile, str | None, str | None]]] = {}
    for wheel, yanked, plugin in _offered(catalog):
        offered.setdefault(project_of(wheel.file), []).append((wheel, yanked, plugin))
    made = {}
    for project, files in sorted(offered.items()):
        made[f"simple/{project}/index.v1+json"] = _json_page(project, files)
        made[f"simple/{project}/index.html"] = _html(project, [_anchor(wheel, yanked) for wheel, yanked, _ in files])
    names = [{"name": project} for project in sorted(offered)]
    made["simple/index.v1+json"] = _encode({"meta": META, "projects": names})
    made["simple/index.html"] = _html("Projects", [f'<a href="{name}/">{name}</a>' for name in sorted(offered)])
    made[FRONT] = _front(catalog)
    return made


def _offered(catalog: Catalog) -> Iterator[tuple[WheelFile, str | None, str | None]]:
    for project in catalog.projects:
        for release in project.releases:
            # pip and uv ignore the status of a project and would install: what is quarantined is left out.
            if release.quarantined is None:
                yield from ((wheel, release.yanked, release.plugin) for wheel in release.wheels)
    yield from ((wheel, None, None) for wheel in catalog.libraries)


def _json_page(project: str, files: list[tuple[WheelFile, str | None, str | None]]) -> bytes:
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


def _anchor(wheel: WheelFile, yanked: str | None) -> str:
    attributes = {
        "href": f"../../{wheel.path}#sha256={wheel.sha256}",
        "data-core-metadata": f"sha256={wheel.metadata_sha256}",
    }
    if wheel.requires_python:
        attributes["data-requires-python"] = wheel.requires_python
    if yanked is not None:
        attributes["data-yanked"] = yanked
    written = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<a {written}>{wheel.file}</a>"


def _html(title: str, anchors: list[str]) -> bytes:
    head = f'<meta charset="utf-8"><meta name="pypi:repository-version" content="1.4"><title>{escape(title)}</title>'
    body = "\n".join(f"{anchor}<br>" for anchor in anchors)
    return f"<!DOCTYPE html>\n<html><head>{head}</head><body>\n{body}\n</body></html>\n".encode()


def _front(catalog: Catalog) -> bytes:
    blocks = []
    for project in catalog.projects:
        rows = [
            f'<li><a href="targets/{escape(wheel.path)}">{escape(release.version)}</a>'
            f' (<a href="targets/{escape(wheel.path)}.driver.json">manifest</a>) sha256 {wheel.sha256}'
            f"{escape(f' yanked: {release.yanked}') if release.yanked is not None else ''}</li>"
            for release in project.releases
            if release.quarantined is None
            for wheel in release.wheels
        ]
        asked = ", ".join(project.releases[0].permissions) if project.releases else ""
        kinds = ", ".join(kind.name for kind in project.types)
        head = f"<h2>{escape(project.label)}</h2><p>{escape(project.summary)}</p>"
        blocks.append(f"{head}<p>type: {escape(kinds)}; may use: {escape(asked)}</p><ul>{''.join(rows)}</ul>")
    title = '<meta charset="utf-8"><title>Drivers for dragoman</title>'
    body = "\n".join(blocks) or "<p>No driver is published here yet.</p>"
    return f"<!DOCTYPE html>\n<html><head>{title}</head><body>\n<h1>Drivers</h1>\n{body}\n</body></html>\n".encode()


def _encode(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
