"""Build the documentation as a website: `website.py [--serve]`.

The pages are copied to `build/docs/pages`, and the site is `build/docs/site`. A link from a page to a file outside of
`docs` leads to a copy of that file, so the site needs neither a code host nor a network.
"""
# ruff: noqa: INP001, S603, T201 - a script prints, and runs what builds the site

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ICON = ROOT / "plugins/workbench/page/public/icon.svg"
TABS = {
    "tutorial": "Tutorial",
    "how-to": "How-to",
    "reference": "Reference",
    "explanation": "Explanation",
    "adr": "Decisions",
}
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
WRITTEN = {".md", ".ipynb", ".yml", ".css", ".js"}
ASSETS = ("site.css", "site.js", "iframe-worker.js")
SHOWN = {".md", ".png", ".svg", ".json"}
"""The files that browsers show; others are copied as text."""

FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
ENTRY = re.compile(r"^(?:- |\d+\. )\[([^\]]*)\]\(([^)\s]+\.(?:md|ipynb))\)|^## (.+)$", re.MULTILINE)


def place(path: Path) -> Path:
    """Return where a file of the repository is among the pages."""
    if path.suffix == ".ipynb":
        path = path.with_suffix(".md")
    if path.is_relative_to(DOCS) and path.suffix in SHOWN:
        return path.relative_to(DOCS)
    source = "source" / path.relative_to(ROOT)
    if source.name == "README.md":
        return source.parent.with_suffix(".md")
    return source if source.suffix in SHOWN else source.with_name(f"{source.name}.txt")


def notebook(text: str) -> str:
    """Return a notebook as Markdown."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n\n".join(f"```python\n{source}\n```" if kind == "code" else source for kind, source in cells) + "\n"


def copy(pages: Path) -> None:
    """Copy every page, and every file that a page links, and rewrite the links."""
    waiting = [DOCS / "index.md", *(DOCS / folder / "index.md" for folder in TABS), *(DOCS / name for name in PROJECT)]
    copied: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in copied:
            continue
        copied.add(path)
        target = pages / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix not in (".md", ".ipynb"):
            shutil.copyfile(path, target)
            continue

        def moved(link: re.Match[str], page: Path = path) -> str:
            linked = (page.parent / link[2]).resolve()
            waiting.append(linked)
            return f"{link[1]}{os.path.relpath(place(linked), place(page).parent)}{link[3]}"

        text = path.read_text(encoding="utf-8")
        parts = FENCE.split(notebook(text) if path.suffix == ".ipynb" else text)
        target.write_text("".join(part if part.startswith("```") else LINK.sub(moved, part) for part in parts))


def navigation() -> list[dict[str, object]]:
    """Return the entries of the navigation: those of each folder's index, below its headings."""
    nav: list[dict[str, object]] = [{"Home": "index.md"}]
    for folder, title in TABS.items():
        index = DOCS / folder / "index.md"
        entries: list[object] = [f"{folder}/index.md"]
        section = entries
        for text, link, heading in ENTRY.findall(index.read_text(encoding="utf-8")):
            if heading:
                section = []
                entries.append({heading: section})
            elif not link.endswith("index.md"):
                section.append({text.replace("`", ""): str(place((index.parent / link).resolve()))})
        nav.append({title: [entry for entry in entries if entry]})
    return [*nav, {"Project": [*PROJECT]}]


def stage(folder: Path) -> None:
    """Write the configuration and the pages into a folder."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    copy(pages)
    (pages / "assets").mkdir()
    for asset in (ICON, *(DOCS / name for name in ASSETS)):
        shutil.copyfile(asset, pages / "assets" / asset.name)
    config = (DOCS / "mkdocs.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(f"{config}nav: {json.dumps(navigation(), indent=1)}\n", encoding="utf-8")


def newest() -> float:
    """Return when a page was last changed."""
    return max(path.stat().st_mtime for path in DOCS.rglob("*") if path.suffix in WRITTEN)


def main() -> int:
    """Build the site once, or serve it and follow changes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="serve the site, and build it anew when a page changes")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/docs")
    parser.add_argument("--address", default="127.0.0.1:8000")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    stage(folder)
    zensical = [sys.executable, "-m", "zensical"]
    if not arguments.serve:
        status = subprocess.run([*zensical, "build", "--strict", "--clean"], cwd=folder, check=False).returncode
        if status == 0:
            print(f"open {folder / 'site/index.html'}")
        return status
    with subprocess.Popen([*zensical, "serve", "--dev-addr", arguments.address], cwd=folder) as server:
        built = newest()
        while server.poll() is None:
            time.sleep(1)
            if (changed := newest()) > built:
                built = changed
                stage(folder)
        return server.returncode


if __name__ == "__main__":
    sys.exit(main())
