"""Leaving with unsent changes: the page asks first, and a person who stays loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, address_of, browsing, read_address, serving, show
from workbench.browser.test_flows import SAVE, command
from workbench.browser.walking import Hands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Dialog, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def two(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two connections to the sample cluster."""
    home = tmp_path_factory.mktemp("two") / "home"
    for name in ("shop", "other"):
        command(home, *(name if word == "shop" else word for word in SAVE), "--port", cluster.port)
    return home


@pytest.fixture(scope="module")
def place(two: Path) -> Iterator[Path]:
    """The file that leads into a workbench with two connections."""
    with serving(two) as file:
        yield file


@pytest.fixture
def edited(chromium: Browser, place: Path, cluster: Cluster) -> Iterator[Page]:
    """A tab with one changed cell that is not sent, two views behind the first."""
    if "drafts" not in cluster.send("GET", "/_all/_settings"):
        cluster.put("drafts", [{"title": "old"}, {"title": "other"}], {"title": {"type": "keyword"}})
    with browsing(chromium, read_address(place)) as page:
        page.get_by_role("link", name="shop").first.click()
        page.locator(".facts").wait_for()
        show(page, "drafts")
        change(page, "mine")
        yield page


def change(page: Page, text: str) -> None:
    """Change the title of the first row."""
    page.locator('[role=row][aria-rowindex="2"] .cell', has_text="old").click()
    page.keyboard.press("F2")
    page.keyboard.press("Control+a")
    Hands(page).type(text)
    page.keyboard.press("Enter")
    kept(page, text)


def kept(page: Page, text: str = "mine") -> None:
    """Assert that the change waits in its grid."""
    page.get_by_role("region", name="Changes").get_by_text("1 change", exact=True).wait_for()
    page.locator(".cell.edited", has_text=text).wait_for()


def question(page: Page) -> Locator:
    """The question, once it is there."""
    found = page.get_by_role("dialog", name="A change is not sent")
    found.wait_for()
    return found


def place_of(page: Page) -> str:
    """The view in the address."""
    found: str = page.evaluate("location.hash")
    return found


HERE = address_of("drafts")


def test_going_to_another_object_asks_and_staying_keeps_all(edited: Page) -> None:
    edited.locator(".object", has_text="orders").click()
    asked = question(edited)
    assert place_of(edited) == HERE
    asked.get_by_role("button", name="Stay").click()
    asked.wait_for(state="detached")
    kept(edited)
    edited.locator(".object", has_text="orders").focus()
    edited.keyboard.press("Enter")
    question(edited)
    edited.keyboard.press("Escape")
    asked.wait_for(state="detached")
    kept(edited)
    edited.locator(".object", has_text="orders").click()
    question(edited).get_by_role("button", name="Keep it and leave").click()
    edited.wait_for_url(lambda url: url.endswith(address_of("orders")))
    edited.locator(".cell.when").first.wait_for()
    edited.locator(".object", has_text="drafts").get_by_text("1 not sent").wait_for(state="attached")
    edited.locator(".object", has_text="drafts").click()
    kept(edited)


def test_back_asks_and_the_history_stays_as_it_was(edited: Page) -> None:
    before = edited.evaluate("history.length")
    edited.go_back()
    question(edited).get_by_role("button", name="Stay").click()
    kept(edited)
    assert (place_of(edited), edited.evaluate("history.length")) == (HERE, before)
    edited.go_back()
    question(edited).get_by_role("button", name="Discard and leave").click()
    edited.locator(".facts").wait_for()
    assert place_of(edited) == "#/connection/shop"
    edited.go_forward()
    edited.locator(".cell", has_text="old").wait_for()
    assert edited.get_by_role("region", name="Changes").count() == 0


def test_going_to_another_connection_asks_and_the_change_waits(edited: Page) -> None:
    edited.get_by_role("link", name="other").click()
    question(edited).get_by_role("button", name="Stay").click()
    kept(edited)
    edited.get_by_role("link", name="other").click()
    question(edited).get_by_role("button", name="Keep it and leave").click()
    edited.get_by_role("heading", name="other").wait_for()
    edited.get_by_role("link", name="shop").get_by_text("1 not sent").wait_for(state="attached")
    show(edited, "drafts")
    kept(edited)


def test_closing_the_connection_asks_before_it_closes(edited: Page) -> None:
    edited.get_by_role("button", name="More", exact=True).click()
    edited.get_by_role("menuitem", name="Close shop").click()
    question(edited).get_by_role("button", name="Stay").click()
    kept(edited)
    assert edited.get_by_role("link", name="shop").first.locator(".dot.open").count() == 1
    edited.get_by_role("button", name="More", exact=True).click()
    edited.get_by_role("menuitem", name="Close shop").click()
    question(edited).get_by_role("button", name="Keep it and leave").click()
    edited.get_by_role("heading", name="Connections").wait_for()
    show(edited, "drafts")
    kept(edited)


def test_signing_out_says_that_the_change_is_lost(edited: Page) -> None:
    edited.get_by_role("button", name="More", exact=True).click()
    edited.get_by_role("menuitem", name="Sign out").click()
    asked = question(edited)
    assert "loses" in asked.inner_text()
    asked.get_by_role("button", name="Stay").click()
    kept(edited)
    edited.get_by_role("button", name="More", exact=True).click()
    edited.get_by_role("menuitem", name="Sign out").click()
    asked.get_by_role("button", name="Sign out").click()
    edited.get_by_text("This tab is not signed in").wait_for()


def test_a_tab_whose_secret_has_expired_is_signed_in_again_and_has_its_changes(edited: Page, place: Path) -> None:
    edited.evaluate("""() => fetch("api/leave", {
      method: "POST", body: "{}",
      headers: {"Content-Type": "application/json", "Dragoman-Secret": sessionStorage["dragoman-secret"]},
    }).then((answer) => answer.json())""")
    edited.get_by_role("button", name="Refresh", exact=True).click()
    edited.get_by_text("This tab is not signed in").wait_for()
    edited.goto(read_address(place))
    edited.get_by_role("heading", name="Connections").wait_for()
    show(edited, "drafts")
    kept(edited)


@pytest.mark.parametrize("way", ["close", "reload", "leave"])
def test_the_browser_asks_before_the_tab_is_closed_or_loaded_anew(edited: Page, way: str) -> None:
    seen: list[str] = []

    def stay(dialog: Dialog) -> None:
        seen.append(dialog.type)
        dialog.dismiss()

    edited.on("dialog", stay)
    if way == "close":
        edited.close(run_before_unload=True)
    else:
        edited.evaluate("way => { way === 'reload' ? location.reload() : location.assign('about:blank') }", way)
    for _ in range(100):
        if seen:
            break
        edited.wait_for_timeout(50)
    assert seen == ["beforeunload"]
    kept(edited)
    edited.get_by_role("region", name="Changes").get_by_role("button", name="Discard").click()
    edited.reload()
    edited.locator(".cell", has_text="old").wait_for()
    assert seen == ["beforeunload"]


def test_a_form_that_is_not_saved_asks_before_it_is_left(chromium: Browser, place: Path) -> None:
    with browsing(chromium, read_address(place)) as page:
        page.get_by_role("button", name="New connection").first.click()
        page.get_by_role("link", name="Elasticsearch").click()
        page.get_by_role("heading", name="New Elasticsearch").wait_for()
        Hands(page).write(page.get_by_label("Name", exact=True), "third")
        asked = page.get_by_role("dialog", name="The connection is not saved")
        for way, answer in (("link", "Stay"), ("Cancel", "Stay"), ("back", "Leave")):
            if way == "link":
                page.get_by_role("link", name="Drivers").click()
            elif way == "back":
                page.go_back()
            else:
                page.get_by_role("button", name="Cancel").click()
            asked.get_by_role("button", name=answer).click()
            asked.wait_for(state="detached")
            if answer == "Stay":
                assert page.get_by_label("Name", exact=True).input_value() == "third"
        page.get_by_role("heading", name="New Elasticsearch").wait_for(state="detached")
