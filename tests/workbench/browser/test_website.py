"""The documentation's website: it builds without a warning, asks no other host, and reads well in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import product
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import ROOT
from workbench.browser.test_views import AXE
from workbench.browser.walking import Hands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytest.importorskip("zensical", reason="zensical needs Python 3.11.5")
pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
PAGES = ("index", "how-to/use-the-workbench", "reference/python", "SECURITY", "tutorial/first-page")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages and the site."""
    folder = tmp_path_factory.mktemp("docs")
    words = [sys.executable, ROOT / "docs/website.py", "--folder", folder]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@contextmanager
def reading(chromium: Browser, page: Path, *, dark: bool = False, width: int = 1440) -> Iterator[Page]:
    """A tab with a page of the folder. The test fails if the page asks for anything outside of it."""
    context = chromium.new_context(
        color_scheme="dark" if dark else "light", viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    tab = context.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    yield tab
    context.close()
    assert [url for url in asked if not url.startswith("file://")] == []


class Loads(HTMLParser):
    """What a browser loads for a page by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of a script, a style, a font or an image."""
        self.addresses += [value for name, value in attrs if value and LOADED.get(tag) == name]


def test_no_page_loads_anything_from_another_host(built: Path) -> None:
    pages = [*(built / "site").rglob("*.html")]
    assert len(pages) > 90
    loads = [address for page in pages for address in Loads(page.read_text()).addresses]
    assert len(loads) > 5 * len(pages)
    assert {address for address in loads if re.match(r"(\w+:)?//", address)} == set()
    styles = [path.read_text() for path in (built / "site").rglob("*.css")]
    assert styles
    assert not [text for text in styles if re.search(r"""url\(["']?(\w+:)?//|@import""", text)]


def test_a_link_to_a_heading_that_is_not_there_fails_the_build(built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    shutil.copytree(built, folder, ignore=shutil.ignore_patterns("site", ".cache"))
    with (folder / "pages/how-to/edit.md").open("a") as page:
        page.write("\n[gone](export.md#no-such-heading)\n")
    words = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "how-to/edit.md" in done.stdout + done.stderr


def test_five_pages_have_no_finding_and_fit_in_each_colour_and_width(built: Path, chromium: Browser) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python plugins/workbench/build.py")
    faults = []
    for name, dark, width in product(PAGES, (False, True), (1440, 400)):
        with reading(chromium, built / f"site/{name}.html", dark=dark, width=width) as tab:
            tab.evaluate(AXE.read_text())
            found = tab.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)")
            rows = [(rule["id"], node["html"][:160]) for rule in found for node in rule["nodes"]]
            if tab.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
                rows.append(("too-wide", ""))
            faults += [(name, "dark" if dark else "light", width, *row) for row in rows]
    assert faults == []


def test_the_search_works_in_a_folder_that_no_server_serves(built: Path, chromium: Browser) -> None:
    with reading(chromium, built / "site/index.html") as tab:
        tab.get_by_role("button", name="Search").click()
        Hands(tab).type("quarantined")
        tab.get_by_role("option", name="dragoman registry mark").click(timeout=60_000)
        tab.wait_for_url("**/reference/commands.html*", timeout=60_000)


def test_a_link_to_a_file_of_the_repository_leads_to_a_copy(built: Path, chromium: Browser) -> None:
    with reading(chromium, built / "site/SECURITY.html") as tab:
        tab.locator("a", has_text="attacks/test_").first.click()
        assert tab.url.endswith(".py.txt")
        assert "def test_" in tab.inner_text("body")


def test_a_copy_of_a_console_has_the_commands_alone(built: Path, chromium: Browser) -> None:
    with reading(chromium, built / "site/tutorial/first-page.html") as tab:
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
        block = tab.locator(".language-console", has_text="of 1,204")
        block.hover()
        block.get_by_title("Copy to clipboard").click()
        copied = tab.evaluate("navigator.clipboard.readText()").splitlines()
        assert copied[0].startswith("dragoman page shop orders --filter")
        assert all(line.startswith("dragoman ") for line in copied)
