"""The page of one driver: what it is, what it may do, how it was tested, and every version of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_registry.documents import MAX_TEXT, Documents, read_documents
from dragoman_registry.manifest import decode
from dragoman_registry.permissions import plain_permissions
from dragoman_registry.summaries import offered, standing

from .filling import fill
from .safe import address, markdown, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_registry.documents import Read, Report
    from dragoman_registry.index import Project, Release, WheelFile
    from dragoman_registry.manifest import Manifest

MOST = 50
"""Lines of a list in a conformance report."""


def driver_page(project: Project, read: Read, *, publisher: str, stamp: str) -> bytes:
    """Make the page of a driver.

    Args:
        project: The driver, with at least one release.
        read: Gives a file by its path below `targets/`, None where there is none.
        publisher: Whose signature it needs, as the registry's operator calls them.
        stamp: Ends the page, and tells later what it was made from.
    """
    release = next(filter(offered, project.releases), project.releases[0])
    found = read_documents(release, read)
    sections = [
        _section("readme", "Readme", _prose(found.readme, release, "README.md")),
        _section("versions", "Versions", _versions(project)),
        _section("changelog", "Changelog", _prose(found.changelog, release, "CHANGELOG.md")),
        _section("conformance", "Conformance", _conformance(found)),
    ]
    page = fill(
        "driver.html",
        script="driver.js",
        label=text(project.label),
        summary=text(project.summary),
        plugin=text(project.plugin),
        version=text(release.version),
        notice=_notice(release),
        permissions=_permissions(release),
        facts=_facts(project, release, _manifest(release, read), publisher),
        sections="\n".join(filter(None, sections)),
    )
    return page + f"<!-- {stamp} -->\n".encode()


def _manifest(release: Release, read: Read) -> Manifest | None:
    try:
        return decode(read(f"{release.wheels[0].path}.driver.json") or b"")
    except msgspec.DecodeError:
        return None  # `verify` names the file


def _section(name: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n{body}\n</section>' if body else ""


def _items(values: Iterable[str]) -> str:
    """Write a list, cut where only a machine could have written that many."""
    listed = [text(value) for value in values]
    more = f"<li>and {len(listed) - MOST:,} more</li>" if len(listed) > MOST else ""
    return f"<ul>{''.join(f'<li>{value}</li>' for value in listed[:MOST])}{more}</ul>"


def _prose(source: str, release: Release, name: str) -> str:
    if not source.strip():
        return ""
    whole = (
        f'<p><a href="../targets/docs/{text(release.project)}/{text(release.version)}/{name}">The whole text</a></p>'
    )
    return f'<div class="text">{markdown(source)}</div>{whole if len(source) > MAX_TEXT else ""}'


def _facts(project: Project, release: Release, manifest: Manifest | None, publisher: str) -> str:
    """Write what stands beside everything else; what only the manifest knows is left out without it."""
    facts: list[tuple[str, Iterable[str]]] = [
        ("Database types", [f"{kind.label} ({kind.name})" for kind in project.types]),
        ("Can do", [", ".join(name.replace("-", " ") for name in project.capabilities)]),
        ("Works with", [f"dragoman-api {release.host_api}"]),
        ("Published", [release.wheels[0].uploaded[:10]]),
        ("Signed by", [publisher]),
        ("Size", [size(release.wheels[0].size)]),
        ("Not available on", [", ".join(project.excluded_surfaces)]),
    ]
    if manifest is not None:
        facts += [("Server versions", [", ".join(manifest.server_versions)]), ("Licence", [manifest.licence])]
    written = [f"<h2>{title}</h2>{_lines(values)}" for title, values in facts if any(values)]
    if manifest is not None and (url := address(manifest.docs)):
        written.append(
            f'<h2>Documentation</h2><p><a href="{text(url)}" rel="noopener noreferrer nofollow ugc">{text(url)}</a></p>'
        )
    return "\n".join(written)


def _lines(values: Iterable[str]) -> str:
    return "".join(f"<p>{text(value)}</p>" for value in values)


def size(count: int) -> str:
    """Give a number of bytes for people, in powers of 1000."""
    return f"{count / 1000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def _permissions(release: Release) -> str:
    asked = [words[:1].upper() + words[1:] for words in plain_permissions(release.permissions)]
    return f"{_items(asked or ['Nothing'])}<p>and nothing else, wherever the sandbox is full</p>"


def _notice(release: Release) -> str:
    if (held := standing(release)) is None:
        return ""
    return f'<p class="notice">Version {text(release.version)} is {held[0]}: {text(held[1])}</p>'


def _versions(project: Project) -> str:
    return f'<ol class="versions">{"".join(map(_version, project.releases))}</ol>'


def _version(release: Release) -> str:
    first = release.wheels[0]
    facts = (first.uploaded[:10], f"dragoman-api {release.host_api}", size(sum(wheel.size for wheel in release.wheels)))
    shown = "".join(f"<span>{text(fact)}</span>" for fact in facts if fact)
    held, told = standing(release), ""
    if held is not None:
        kind = "bad" if held[0] == "quarantined" else "warn"
        told = f'<p><span class="{kind}">{held[0]}</span>: {text(held[1])}</p>'
    files = "".join(_file(release, wheel) for wheel in (*release.wheels, *release.dependencies))
    details = f"<details><summary>Files of {text(release.version)}</summary><ul>{files}</ul></details>"
    return f'<li><h3>{text(release.version)}</h3><p class="facts">{shown}</p>{told}{details}</li>'


def _file(release: Release, wheel: WheelFile) -> str:
    name = f"<code>{text(wheel.file)}</code>"
    if release.quarantined is None:  # what must not run is offered to nobody
        name = f'<a href="../targets/{text(wheel.path)}">{name}</a>'
    return f'<li>{name} <span class="soft">{size(wheel.size)}, sha256 <code>{text(wheel.sha256)}</code></span></li>'


def _conformance(found: Documents) -> str:
    report = found.report
    if report is None:
        return '<p class="soft">No conformance report was published with this version.</p>'
    bad = bool(report.failures or report.denied)
    verdict = f'<p class="{"bad" if bad else "good"}">{text(str(report))}</p>'
    return (
        verdict
        + _engines(report)
        + "".join(
            f"<h3>{title}</h3>{_items(values)}"
            for title, values in (
                ("Failures", report.failures),
                ("Wanted to reach, and could not", report.denied),
                ("Tests the author replaced", report.deviations),
                ("Skipped", [f"{reason} ({count})" for reason, count in report.skips.items()]),
                ("Hooks it does not implement", report.hooks),
            )
            if values
        )
    )


def _engines(report: Report) -> str:
    if not report.engines:
        return ""
    words = ("passed", "failed", "skipped")
    rows = "".join(
        f"<tr><td>{text(name)}</td>{''.join(f'<td>{counts.get(word, 0)}</td>' for word in words)}</tr>"
        for name, counts in list(report.engines.items())[:MOST]
    )
    head = "".join(f"<th>{title}</th>" for title in ("Ran on", "Passed", "Failed", "Skipped"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Tests by engine">{table}</div>'
