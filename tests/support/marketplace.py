"""Registries to look at: a small one made of real wheels, a hostile one, and catalogs of any size."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_registry.index.catalog import Catalog, Project, Release
from dragoman_registry.index.search_summaries import summarise
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.edit import editing
from dragoman_registry.publisher.folder import write_index
from dragoman_registry.publisher.index_records import Index
from dragoman_registry.publisher.pages import catalogue_pages
from dragoman_registry.trust.roles import PUBLISHER, patterns
from dragoman_registry.wheels.manifest import DatabaseType
from dragoman_registry.wheels.wheel_file import WheelFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CAPABILITIES = ("browse", "sort", "filter", "edit", "drop", "console", "export", "tenants", "raw-filter")

README = """\
# Meilisearch driver

Browse, filter and edit the documents of a [Meilisearch](https://www.meilisearch.com/docs) server.

| Setting | Meaning | Default |
| --- | --- | --- |
| `host` | where the server listens | `localhost` |
| `port` | its port | `7700` |

## Filters

1. Every operator of the grid is translated to the server's own filter language.
2. What it cannot say is refused **before** anything is sent.

```console
$ dragoman connections add movies --type meilisearch --host localhost --auth api-key --api-key env:MEILI_KEY --yes
$ dragoman page movies films --filter 'year >= 1990' --sort -rating --limit 20
```

> A key that may only search is enough for reading.

See [the notes on ranking](docs/ranking.md), which lie in the source.
"""
CHANGELOG = (
    "# Changes\n\n## 1.2.0\n\n- Facets as columns\n- `null` is told from missing\n\n## 1.1.0\n\n- Keys of a tenant\n"
)
REPORT = {
    "plugin": "meili", "version": "1.2.0", "wheel": "w.whl", "sha256": "0" * 64, "api": "1.0.0", "python": "3.11.9",
    "system": "Linux x86_64", "sandbox": "full", "denied": [], "hooks": ["export_rows"],
    "engines": {"fake": {"passed": 41, "skipped": 12}, "meilisearch 1.9": {"passed": 38, "skipped": 15}},
    "skips": {"the driver has no hook export_rows": 12}, "deviations": [], "failures": [],
}  # fmt: skip


def sample(folder: Path) -> Path:
    """Put a handful of real wheels, which are published once, into `folder/registry`."""
    for original in _sample().iterdir():
        wheelhouse.copy(original, folder / original.name)
    return folder / "registry"


@cache
def _sample() -> Path:
    """Publish the sample, with documents, a yank and a quarantine."""
    folder = wheelhouse.template_folder()
    root, wheels = folder / "registry", folder / "wheels"
    made = [
        wheelhouse.Driver(
            "meili", version, label="Meilisearch Driver", types=[{"name": "meilisearch", "label": "Meilisearch"}],
            summary="Browse, filter and edit the documents of a Meilisearch server",
            capabilities=["browse", "sort", "filter", "edit"], permissions=["net:connection", "secrets:connection"],
            docs="https://example.org/meili",
        )
        for version in ("1.0.0", "1.1.0", "1.2.0")
    ]  # fmt: skip
    for driver in made:
        driver.readme = README
    made += [
        wheelhouse.Driver("redis", label="Redis Driver", summary="Keys as rows, one column per field of a hash",
                          capabilities=["browse", "filter", "console"]),
        wheelhouse.Driver("files", "0.4.0", label="Folder of Parquet Files", summary="Reads a folder of Parquet files",
                          types=[{"name": "parquet", "label": "Parquet"}, {"name": "arrow", "label": "Arrow"}],
                          capabilities=["browse", "sort", "export"], excluded_surfaces=["phone"],
                          permissions=["net:connection", "net:host=files.example.org,b.example.org", "memory=512MiB"]),
    ]  # fmt: skip
    paths = [driver.write(wheels) for driver in made]
    paths += [path for name in ("elasticsearch", "weaviate") for path in wheelhouse.project_wheels(f"plugins/{name}")]
    beside = {"report.json": json.dumps(REPORT).encode(), "CHANGELOG.md": CHANGELOG.encode()}
    publish.build(paths, to=root, now=wheelhouse.NOW, beside={made[2].file: beside})
    publish.mark(root, project="meili", version="1.1.0", status="yanked", reason="loses the order of facets")
    publish.mark(root, project="meili", version="1.0.0", status="quarantined", reason="sends keys to a foreign host")
    return folder


BOMB = "<script>window.owned=1;document.title='owned'</script>"
HOSTILE = (
    BOMB, "</script>" + BOMB, "--><img src=x onerror=window.owned=1>", '"><svg onload=window.owned=1>',
    "<style>body{display:none}</style>", "\u202egnp.exe\u202c\u2066x\u2069", "</template>" + BOMB, "${label} $label $$",
    "<a href=javascript:window.owned=1>x</a>", "&lt;script&gt;", "\x1b]0;owned\x07", "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>", "]]><!--", "{{7*7}}", "x" * 400,
)  # fmt: skip
"""What an author may put into a text."""

HOSTILE_README = "\n\n".join(
    [
        *HOSTILE,
        "[click](javascript:window.owned=1) [data](data:text/html,<script>window.owned=1</script>) [file](file:///etc)",
        "[vb](vbscript:x) [tab](java&#9;script:window.owned=1) [rel](../index.html) [proto](//evil.example/)",
        "[ok](https://ok.example/)",
        "![picture](https://evil.example/track.png) ![x](javascript:window.owned=1) <https://ok.example/auto>",
        '[a](https://ok.example/" onmouseover="window.owned=1)',
        '[t](https://ok.example "title\\" onfocus=window.owned=1")',
        "[ref]\n\n[ref]: javascript:window.owned=1 'x'",
        "```html onmouseover=window.owned=1\n</code></pre>" + BOMB + "\n```",
        "| a |\n| :-: |\n| <img src=x onerror=window.owned=1> |",
        "<div style='position:fixed;inset:0'>over all</div>",
        "# " + "wide" * 200,
        "    " + "indented " * 200,
    ]
)


def hostile(folder: Path) -> Path:
    """Publish drivers whose author writes nothing but attacks into `folder/registry`."""
    wheels, beside = [], {}
    for number, text in enumerate(HOSTILE):
        shown = "".join(each if each.isprintable() else "?" for each in text)
        driver = wheelhouse.Driver(
            f"evil{number}", label=shown[:100], summary=shown,
            types=[{"name": f"evil{number}", "label": shown[:100]}],
            server_versions=[shown],
        )  # fmt: skip
        driver.readme = HOSTILE_README
        report = {
            "sandbox": text,
            "api": text,
            "engines": {text: {"passed": 1}},
            "failures": [text],
            "skips": {text: 1},
        }
        beside[driver.file] = {
            "report.json": json.dumps({**report, "denied": [text], "hooks": [text], "deviations": [text]}).encode(),
            "CHANGELOG.md": HOSTILE_README.encode(),
        }
        wheels.append(driver.write(folder / "wheels"))
    publish.build(wheels, to=folder / "registry", now=wheelhouse.NOW, beside=beside)
    for number, text in enumerate(HOSTILE):
        publish.mark(folder / "registry", project=f"evil{number}", version="1.0.0", status="deprecated", reason=text)
    return folder / "registry"


def catalog(count: int, *, releases: int = 2) -> Catalog:
    """Make up a catalog of any size."""
    return Catalog(projects=tuple(project(number, releases=releases) for number in range(count)))


def project(number: int, *, releases: int = 2) -> Project:
    """Make up one driver of a catalog."""
    name = f"store{number:06}"
    made = []
    for version in range(releases, 0, -1):
        digest = hashlib.sha256(f"{name} {version}".encode()).hexdigest()
        wheel = WheelFile(
            file=f"dragoman_{name}-{version}.0.0-py3-none-any.whl", size=40_000 + number, sha256=digest,
            metadata_sha256=digest, requires_python=">=3.11", uploaded=f"2026-0{version}-02T03:04:05Z",
            summary="Made up", requires=("dragoman-api",),
        )  # fmt: skip
        made.append(
            Release(
                plugin=name,
                project=f"dragoman-{name}",
                version=f"{version}.0.0",
                host_api="~=1.0" if number % 3 else ">=1.1,<3",
                permissions=("net:connection", "secrets:connection"),
                manifest_sha256=digest,
                wheels=(wheel,),
            )
        )
    word = ("tables", "documents", "vectors", "graphs", "series")[number % 5]
    return Project(
        plugin=name, project=f"dragoman-{name}", label=f"Store {number:,} Driver",
        summary=f"Browse, filter and edit the {word} of store {number:,}, and put questions to it",
        types=(DatabaseType(name=name, label=f"Store {number:,}"),),
        capabilities=CAPABILITIES[: 1 + number % len(CAPABILITIES)], releases=tuple(made),
    )  # fmt: skip


def signed(root: Path, count: int, *, of_each: int = 20) -> Path:
    """Publish a made-up catalog of any size, signed by publishers who have `of_each` drivers, without the wheels.

    Nothing is synced to disk, since nothing needs to survive.
    """
    made = catalog(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _descriptor: None)
        publish.init(root)
        with editing(root) as edit:
            key = edit.repository.keys.new("publishers").public_key
            for first in range(0, count, of_each):
                projects = made.projects[first : first + of_each]
                role = f"{PUBLISHER}p{first // of_each}"
                paths = [pattern for project in projects for pattern in patterns(project.project)]
                edit.repository.delegate(role, key, paths)
                edit.repository.submit(role, _documents(root, projects))
                edit.repository.adopt(role, edit.repository.pending()[role])
            types = {project.types[0].name: project.project for project in made.projects}
            names = {project.project for project in made.projects}
            write_index(root, edit.repository, Index.of(made), types=types, changed=names)
    return root


def _documents(root: Path, projects: Iterable[Project]) -> dict[str, bytes]:
    """Write what lies beside the wheels of drivers, and return what their publisher signs."""
    files: dict[str, bytes] = {}
    for project in projects:
        for release in project.releases:
            path = release.wheels[0].path
            beside = {
                f"{path}.driver.json": b"{}",
                f"docs/{project.project}/{release.version}/README.md": README.encode(),
            }
            for name, data in beside.items():
                (root / "targets" / name).parent.mkdir(parents=True, exist_ok=True)
                (root / "targets" / name).write_bytes(data)
            files |= {path: b"a wheel", **beside}
    return files


def front(root: Path, catalog: Catalog) -> Path:
    """Write the pages of all drivers, without a page for each of them, into a registry."""
    for name, content in catalogue_pages(map(summarise, catalog.projects)):
        (root / "targets" / name).write_bytes(content)
    return root
