"""A phone's browser (P6): what brings a driver's code is disabled there, with the reason beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import browsing, read_address, serving
from workbench.browser.test_flows import command
from workbench.test_opening import PHONE

import wheelhouse

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

REASON = "demo is not available on a phone"


@pytest.fixture
def market(tmp_path: Path) -> Path:
    """A home with a driver that is not for phones, installed in its older version."""
    paths = []
    for version in ("1.0.0", "1.1.0"):
        (tmp_path / version).mkdir()
        paths.append(wheelhouse.Driver("demo", version=version, excluded_surfaces=["phone"]).write(tmp_path / version))
    home = tmp_path / "home"
    command(home, "registry", "add", wheelhouse.registry(tmp_path / "registry", paths))
    command(home, "plugins", "install", "demo", "--version", "1.0.0", "--yes")
    command(home, "plugins", "unpin", "demo")
    return home


def refused(page: Page, name: str) -> None:
    """Assert that a button is disabled, and that the reason stands beside it and is told with it."""
    button = page.get_by_role("button", name=name, exact=True).first
    button.wait_for()
    assert button.is_disabled()
    assert page.locator(f"[id='{button.get_attribute('aria-describedby')}']").inner_text() == REASON


def test_P6_install_and_update_are_disabled_with_the_reason(chromium: Browser, market: Path) -> None:
    with serving(market) as file:
        size = {"width": 400, "height": 800}
        with browsing(chromium, read_address(file), user_agent=PHONE, viewport=size) as page:
            page.evaluate("location.hash = '#/drivers'")
            refused(page, "Update")
            page.get_by_text("not on this device").first.wait_for()
            page.evaluate("location.hash = '#/drivers/demo'")
            refused(page, "Update to 1.1.0")
            page.get_by_role("tab", name="Versions").click()
            refused(page, "Install")
            page.get_by_role("button", name="Manage").click()
            assert page.get_by_role("menuitem", name="Repair").is_disabled()
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        command(market, "plugins", "remove", "demo", "--yes")
        with browsing(chromium, read_address(file), user_agent=PHONE, viewport=size) as page:
            page.evaluate("location.hash = '#/drivers/demo'")
            refused(page, "Install 1.1.0")
            page.evaluate("location.hash = '#/new/demo'")
            page.locator(".offer").wait_for()
            button = page.get_by_role("button", name="Install 1.1.0")
            assert button.is_disabled()
            page.locator(".with-why", has_text=REASON).wait_for()
        with browsing(chromium, read_address(file)) as page:
            page.evaluate("location.hash = '#/drivers/demo'")
            assert page.get_by_role("button", name="Install 1.1.0").is_enabled()
            assert page.get_by_text(REASON).count() == 0
