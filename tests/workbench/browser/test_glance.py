"""Columns at a glance, and completion in the console, in a real browser over the real server."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, rows_of, show
from workbench.browser.walking import Hands

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]


def glance(page: Page) -> None:
    """Open the strip above the grid."""
    page.get_by_role("button", name="At a glance", exact=True).click()


def card(page: Page, column: str, says: str = "rows") -> str:
    """What the card of a column says, once it is there."""
    found = page.get_by_role("button", name=re.compile(rf"^{re.escape(column)} at a glance: .*{says}"))
    found.wait_for()
    return found.locator(".unseen").text_content() or ""


def to_the_right(page: Page) -> None:
    """Bring the last columns into view."""
    page.locator(".grid").evaluate("grid => { grid.scrollLeft = grid.scrollWidth }")


def test_cards_stand_above_their_columns_and_say_what_they_draw(orders: Page) -> None:
    glance(orders)
    assert "12,003 rows" in card(orders, "customer.city")
    head = orders.locator("[role=columnheader]", has_text="customer.city").bounding_box()
    box = orders.get_by_role("button", name="customer.city at a glance").bounding_box()
    assert head
    assert box
    assert abs(head["x"] - box["x"]) < 2
    assert abs(head["width"] - box["width"]) < 2
    assert "_id" in card(orders, "_id", "")


def test_a_click_on_a_value_filters_by_it(orders: Page) -> None:
    glance(orders)
    card(orders, "customer.city")
    orders.get_by_role("button", name="customer.city at a glance").click()
    value = orders.get_by_role("region", name="Most frequent values").get_by_role("button").first
    text, rows = (value.locator(part).inner_text() for part in (".glance-text", ".glance-count"))
    with orders.expect_request("**/api/page") as sent:
        value.click()
    row = {"type": "filter", "column": "customer.city", "op": "=", "value": text, "group": None, "case": None}
    assert rows_of(sent.value)["filters"] == [row]
    shown = rows.partition(" ")[0]
    assert f"{shown} rows" in card(orders, "customer.city", f"{shown} rows")
    orders.get_by_text(f"{shown} rows", exact=True).wait_for()


def test_a_bar_is_a_filter_of_its_rows(orders: Page) -> None:
    to_the_right(orders)
    orders.locator("[role=columnheader]", has_text="total").click(button="right")
    orders.get_by_role("menuitem", name="At a glance").click()
    bar = orders.get_by_role("region", name="Histogram").get_by_role("button", disabled=False).first
    said = re.search(r": ([\d,]+) rows", bar.get_attribute("aria-label") or "")
    assert said
    bar.press("Enter")
    orders.get_by_text(f"{said[1]} rows", exact=True).wait_for()


def test_a_value_is_filtered_out_and_a_range_kept_with_the_keys(orders: Page) -> None:
    orders.locator("[role=columnheader]", has_text="customer.city").click(button="right")
    orders.get_by_role("menuitem", name="At a glance").click()
    out = orders.get_by_role("button", name=re.compile("^Filter out ")).first
    with orders.expect_response("**/api/page") as answered:
        out.press("Enter")
    assert [row["op"] for row in rows_of(answered.value.request)["filters"]] == ["!="]
    orders.locator(".grid-host:not(.stale)").wait_for()
    cell = orders.locator('[role=row][aria-rowindex="2"] .cell.when')
    cell.click()
    for key in ("Shift+ArrowDown", "Shift+ArrowDown", "Shift+F10"):
        orders.keyboard.press(key)
    with orders.expect_response("**/api/page") as answered:
        orders.get_by_role("menuitem", name="Only this range").press("Enter")
    [_, kept] = rows_of(answered.value.request)["filters"]
    assert kept["op"] == "between"
    assert kept["value"] == sorted(kept["value"])
    assert 1 < answered.value.json()["total"] < 12_003


def test_wide_objects_are_asked_for_a_few_columns_at_a_time(page: Page, cluster: Cluster) -> None:
    names = [f"field{at:02}" for at in range(60)]
    cluster.put("wide", [dict.fromkeys(names, "a value of some width")], {name: {"type": "keyword"} for name in names})
    show(page, "wide")
    asked: list[str] = []
    running = most = 0

    def began(request: Request) -> None:
        nonlocal running, most
        if request.url.endswith("/api/summarize"):
            asked.append(json.loads(request.post_data or "")["column"])
            running += 1
            most = max(most, running)

    def ended(request: Request) -> None:
        nonlocal running
        running -= request.url.endswith("/api/summarize")

    page.on("request", began)
    page.on("requestfinished", ended)
    page.on("requestfailed", ended)
    glance(page)
    card(page, "field03")
    assert most <= 2
    to_the_right(page)
    card(page, "field59")
    assert len(asked) < 40
    assert "field30" not in asked


def test_what_a_server_says_is_text(page: Page, cluster: Cluster) -> None:
    attempt = "<img src=x onerror=alert(1)>"
    cluster.put("attempts", [{attempt: attempt}], {attempt: {"type": "keyword"}})
    show(page, "attempts")
    glance(page)
    assert attempt in card(page, attempt)
    page.get_by_role("button", name=f"{attempt} at a glance").click()
    page.get_by_role("dialog").locator(".glance-text", has_text=attempt).wait_for()
    assert page.locator("img").count() == 0


def test_the_console_completes_names_by_keyboard(page: Page) -> None:
    page.evaluate("location.hash = '#/connection/shop/console'")
    editor = page.get_by_role("textbox", name="Console of shop")
    editor.press("Control+End")
    Hands(page).type("\n# \N{GRINNING FACE}\nGET /ord")
    option = page.get_by_role("option").filter(has_text="orders").first
    option.wait_for()
    page.wait_for_timeout(200)  # the editor takes no choice in the first moments of a list
    page.keyboard.press("Enter")
    assert editor.locator(".cm-line").last.inner_text().startswith("GET /orders")
