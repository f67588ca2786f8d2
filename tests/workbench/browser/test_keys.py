"""Keys that work everywhere: the palette, the list of keys, and lines of tools and pills as one stop each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands, add_filter, becomes, pill

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]


def focused(page: Page) -> str:
    """The name of what has the focus."""
    return str(page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.innerText"))


def test_keys_right_after_the_first_call_of_the_palette_go_into_it(orders: Page) -> None:
    """On a slow line, too: a cell would be edited with them."""
    orders.route("**/palette*.js", lambda route: (orders.wait_for_timeout(1_000), route.continue_()))
    orders.locator(".cell").nth(3).click()
    orders.keyboard.press("Control+k")
    for key in "books":
        orders.keyboard.press(key)
    palette = orders.get_by_role("combobox", name="Go to, or do")
    assert palette.input_value() == "books"
    assert not orders.get_by_role("region", name="Changes").count()
    palette.press("Enter")
    orders.get_by_role("heading", name="books").wait_for()


def test_keys_right_after_the_list_of_keys_go_into_it(orders: Page) -> None:
    """On a slow line, too: they would move the focus under it."""
    orders.route("**/keys*.js", lambda route: (orders.wait_for_timeout(1_000), route.continue_()))
    orders.get_by_role("button", name="Filter", exact=True).focus()
    orders.keyboard.press("?")
    orders.keyboard.press("ArrowRight")
    orders.get_by_role("dialog", name="Keys").wait_for()
    orders.keyboard.press("Escape")
    orders.get_by_role("dialog").wait_for(state="detached")
    assert focused(orders) == "Filter"


def test_the_palette_finds_what_can_be_done_with_the_cell_its_row_and_its_column(orders: Page) -> None:
    palette, hands = orders.get_by_role("dialog", name="Go to"), Hands(orders)

    def choose(words: str, label: str) -> None:
        orders.keyboard.press("Control+k")
        hands.type(words)
        becomes(orders, lambda: palette.get_by_role("option", selected=True).inner_text().startswith(label))
        orders.keyboard.press("Enter")
        palette.wait_for(state="detached")

    orders.locator(".cell").nth(3).click()
    choose("delete", "Delete the row")
    orders.locator(".line.deleted").wait_for()
    choose("discard", "Discard")
    orders.locator(".line.deleted").wait_for(state="detached")
    orders.locator(".cell").nth(3).click()
    choose("descending", "Sort descending")
    orders.locator("[role=columnheader][aria-sort=descending]").wait_for()


def test_the_palette_leads_to_objects_tools_and_keys(orders: Page) -> None:
    palette, hands = orders.get_by_role("dialog", name="Go to"), Hands(orders)
    orders.locator(".cell").first.click()
    orders.keyboard.press("Control+k")
    palette.get_by_role("option", name="books").wait_for()
    hands.type("side")
    becomes(orders, lambda: palette.get_by_role("option", selected=True).inner_text().startswith("Side pane"))
    orders.keyboard.press("Enter")
    orders.get_by_role("complementary", name="Side pane").wait_for()
    orders.keyboard.press("Control+k")
    hands.type("boo")
    palette.get_by_role("option", name="books").wait_for()
    if AXE.is_file():
        for theme in ("light", "dark"):
            orders.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            assert not findings(orders)
    for _ in "boo":
        orders.keyboard.press("Backspace")
    hands.type("books")
    orders.keyboard.press("Enter")
    orders.get_by_role("heading", name="books").wait_for()
    assert not palette.count()
    orders.get_by_role("button", name="Go to").click()
    hands.type("nothing of this kind")
    palette.get_by_text("Nothing fits").wait_for()
    orders.keyboard.press("Escape")
    palette.wait_for(state="detached")
    assert focused(orders) == "Go to"
    hands.type("?")
    orders.get_by_role("dialog", name="Keys").wait_for()
    if AXE.is_file():
        assert not findings(orders)


def test_tools_are_one_stop_and_pills_another(orders: Page) -> None:
    orders.get_by_role("button", name="Filter", exact=True).focus()
    orders.keyboard.press("ArrowLeft")
    assert focused(orders) == "Structure"
    orders.keyboard.press("ArrowRight")
    assert focused(orders) == "Filter"
    orders.keyboard.press("ArrowRight")
    assert focused(orders) == "Refresh"
    tools = orders.get_by_role("toolbar", name="Grid tools")
    stops = "tools => [...tools.querySelectorAll('button, a')].filter(({ tabIndex }) => tabIndex === 0).length"
    assert tools.evaluate(stops) == 1
    add_filter(orders, "total >= 100")
    add_filter(orders, "gift = true")
    orders.keyboard.press("ArrowLeft")
    orders.keyboard.press("ArrowLeft")
    orders.keyboard.press("Delete")
    orders.keyboard.press("Delete")  # at once: the pill that follows has the focus
    becomes(orders, lambda: not pill(orders, 1).count())
    assert focused(orders) == "Add a filter"
    orders.keyboard.press("Shift+Tab")
    assert focused(orders) == "Filter"


def test_keys_go_on_in_the_view_that_a_key_led_to(page: Page) -> None:
    page.get_by_role("navigation").get_by_role("link", name="shop").first.click()
    page.locator(".object-table").get_by_role("link", name="orders").press("Enter")
    active = page.locator("[role=gridcell]:focus")
    active.wait_for()
    before = active.get_attribute("aria-colindex")
    page.keyboard.press("ArrowRight")
    becomes(page, lambda: active.get_attribute("aria-colindex") != before)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    palette.wait_for()
    Hands(page).type("books")
    palette.get_by_role("option", name="books").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="books").wait_for()
    active.wait_for()
    page.get_by_role("link", name="Structure").press("Enter")
    page.get_by_role("table").first.wait_for()
    assert page.evaluate("document.activeElement.id") == "main"
