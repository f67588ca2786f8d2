"""Somebody without a server: one button on the first page, and rows before the eyes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import browsing, read_address, serving
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]

PICTURES = os.environ.get("DRAGOMAN_PICTURES")


def look(page: Page, name: str) -> None:
    """Look at the page in both themes and widths: nothing sticks out, and nothing is hard to read."""
    for width in (1440, 400):
        page.set_viewport_size({"width": width, "height": 800})
        for theme in ("light", "dark"):
            page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            assert not AXE.is_file() or not findings(page), (name, width, theme)
            if PICTURES:
                page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{theme}.png")
    page.set_viewport_size({"width": 1440, "height": 800})


def test_the_first_page_adds_the_samples_and_takes_them_away(chromium: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as file, browsing(chromium, read_address(file)) as page:
        page.get_by_text("No connection is saved yet").wait_for()
        look(page, "offer")
        page.get_by_role("button", name="Add the samples").click()
        page.get_by_role("button", name="Loading the samples").wait_for()
        page.get_by_role("link", name="shop").last.wait_for(timeout=60_000)
        assert page.locator(".card .badge", has_text="sample").count() == 3
        page.wait_for_timeout(2_500)  # the workbench looks at its files every two seconds
        assert not page.locator(".toast").count()
        look(page, "added")
        page.get_by_role("main").get_by_role("link", name="shop").click()
        page.locator(".object", has_text="orders").click(timeout=60_000)
        page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for(timeout=60_000)
        page.get_by_role("link", name="dragoman").click()
        button = page.get_by_role("button", name="Remove the samples")
        button.focus()
        Hands(page).type("\n")
        page.get_by_text("No connection is saved yet").wait_for()
        assert "[shop]" not in (home / "config/connections.toml").read_text()
