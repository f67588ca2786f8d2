"""Every view in a real browser: reachable, named, in both themes and widths, and deaf to what strangers write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import Cluster, address_of, show
from workbench.browser.walking import Hands, add_filter, becomes, pill, write_filter

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

AXE = Path(__file__).parents[3] / "plugins/workbench/page/node_modules/axe-core/axe.min.js"
VIEWS = {
    "#/": "h1",
    "#/new": ".card",
    "#/new/weaviate": ".offer",
    "#/new/elasticsearch": "form.page",
    "#/drivers": ".card",
    "#/drivers/elasticsearch": ".tab-panel .markdown",
    "#/exports": "h1",
    "#/connection/shop": ".facts",
    "#/connection/shop/edit": "form.page",
    address_of("orders"): ".cell.when",
    "#/connection/shop/structure/orders": "table",
    "#/connection/shop/console": ".cm-content",
}


def findings(page: Page) -> list[tuple[str, str]]:
    """Serious and critical findings of axe-core."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text())
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)"
    )
    return [
        (one["id"], node["html"][:120])
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_no_view_has_a_serious_finding(page: Page, width: int, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python plugins/workbench/build.py")
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    for view, drawn in VIEWS.items():
        page.evaluate("hash => { location.hash = hash }", view)
        page.locator(drawn).first.wait_for()
        assert not findings(page), view
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"{view} is {overflow} pixels too wide"


def test_dialogs_and_menus_have_no_serious_finding(orders: Page) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python plugins/workbench/build.py")
    orders.get_by_role("button", name="Filter", exact=True).click()
    orders.get_by_role("button", name="Side pane").click()
    assert not findings(orders)
    orders.get_by_role("button", name="Columns").click()
    orders.get_by_role("complementary", name="Columns").wait_for()
    assert not findings(orders)
    orders.get_by_role("button", name="Columns").click()
    orders.get_by_role("complementary", name="Columns").wait_for(state="detached")
    for name in ("New row", "Export"):
        orders.get_by_role("button", name=name, exact=True).first.click()
        dialog = orders.get_by_role("dialog")
        dialog.wait_for()
        assert not findings(orders)
        orders.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        assert orders.evaluate("document.activeElement.ariaLabel") == name


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_columns_at_a_glance_have_no_serious_finding_and_fit(orders: Page, width: int, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python plugins/workbench/build.py")
    orders.set_viewport_size({"width": width, "height": 800})
    orders.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    if width < 480:
        orders.get_by_role("button", name="More tools").click()
    orders.get_by_role("button" if width > 480 else "menuitemcheckbox", name="At a glance", exact=True).click()
    card = orders.get_by_role("button", name="customer.city at a glance: 12,003 rows")
    card.locator(".glance-share").first.wait_for(timeout=120_000)
    assert not findings(orders)
    assert orders.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    strip, grid = (orders.locator(part).bounding_box() for part in (".glance", ".grid"))
    assert strip
    assert grid
    assert strip["width"] <= grid["width"] <= width
    assert grid["height"] > 200  # the cards leave room for rows
    card.click()
    orders.get_by_role("region", name="Most frequent values").wait_for()
    assert not findings(orders)
    box = orders.get_by_role("dialog").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rows_of_the_question_before_stay_readable_until_the_new_ones_come(orders: Page, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python plugins/workbench/build.py")
    orders.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    orders.locator('[role=row][aria-rowindex="3"] .cell:visible').nth(2).click()
    orders.keyboard.press("Control+a")
    color = "() => getComputedStyle(document.querySelector('.grid-clip .cell')).color"
    before = orders.evaluate(color)
    held: list[Route] = []
    orders.route("**/api/page", lambda route: held.append(route))
    write_filter(orders, "total > 10")
    orders.keyboard.press("Enter")
    orders.locator(".grid-host.stale").wait_for()
    orders.wait_for_timeout(600)
    assert orders.evaluate(color) != before
    assert not findings(orders)
    for route in held:
        route.continue_()
    orders.locator(".grid-host:not(.stale)").wait_for()
    assert orders.evaluate(color) == before


ACTIVE = "[role=gridcell][tabindex='0']:visible"


def test_the_active_cell_stays_in_view_beside_the_side_pane(orders: Page) -> None:
    host = orders.locator(".grid-host")
    last = orders.locator('[role=row][aria-rowindex="9"] .cell:visible').last
    last.click()
    orders.keyboard.press("End")
    before = orders.locator(ACTIVE).get_attribute("aria-colindex")
    orders.get_by_role("button", name="Side pane").click()
    orders.get_by_role("complementary", name="Side pane").wait_for()
    for key in ("", "ArrowDown", "Control+End", "Control+Home", "PageDown", "End"):
        if key:
            orders.locator(ACTIVE).focus()
            orders.keyboard.press(key)
        orders.wait_for_timeout(300)
        cell = orders.locator(ACTIVE)
        place, room = cell.bounding_box(), host.bounding_box()
        assert place
        assert room
        assert place["x"] >= room["x"], key
        assert place["x"] + place["width"] <= room["x"] + room["width"] + 1, key
        assert place["y"] + place["height"] <= room["y"] + room["height"] + 1, key
        if not key:
            assert cell.get_attribute("aria-colindex") == before


def test_a_dialog_holds_the_focus(orders: Page) -> None:
    orders.get_by_role("button", name="Export", exact=True).click()
    for _ in range(20):
        orders.keyboard.press("Tab")
        inside = orders.evaluate(
            "!document.activeElement || document.activeElement === document.body"
            " || !!document.activeElement.closest('dialog')"
        )
        assert inside


ATTACKS = [
    "<script>attacked(1)</script>",
    "<img src=x onerror=attacked(2)>",
    "<svg onload=attacked(3)>",
    "\"><iframe srcdoc='<script>parent.attacked(4)</script>'></iframe>",
    "javascript:attacked(5)",
    "<a href='javascript:attacked(6)'>x</a>",
    "<style>*{display:none}</style>",
    "{{constructor.constructor('attacked(7)')()}}",
    "${attacked(8)}",
    "<details open ontoggle=attacked(9)>",
    "<math><mtext><style><img src onerror=attacked(10)>",
    "<form action=//example.invalid><input name=x autofocus onfocus=attacked(11)>",
    "<meta http-equiv=refresh content='0;url=//example.invalid'>",
    "<base href=//example.invalid>",
    "</textarea><script>attacked(12)</script>",
    "]]><script>attacked(13)</script>",
]


def test_what_a_server_says_is_text(page: Page, cluster: Cluster) -> None:
    page.evaluate("() => { window.hits = []; window.attacked = (which) => window.hits.push(which) }")
    documents = [{"text": attack, "nested": {attack.replace(".", ""): attack}} for attack in ATTACKS]
    cluster.put("strange", documents, {"text": {"type": "keyword"}, "nested": {"type": "flattened"}})
    show(page, "strange")
    for attack in ATTACKS:
        assert page.locator(".cell", has_text=attack).count() >= 1, attack
    page.get_by_role("button", name="Side pane").click()
    for number in range(len(ATTACKS)):
        page.locator(f'[role=row][aria-rowindex="{number + 2}"] .cell.text').last.click()
    page.get_by_role("tab", name="Row").click()
    page.wait_for_timeout(500)
    assert page.evaluate("window.hits") == []
    assert page.locator("main iframe, main img, main style, main script, main base, main meta").count() == 0


def test_the_attacks_are_real_where_nothing_protects(chromium: Any) -> None:
    tab = chromium.new_page()
    tab.set_content("<div id=page></div>")
    tab.evaluate("() => { window.hits = []; window.attacked = (which) => window.hits.push(which) }")
    tab.evaluate("(all) => { document.getElementById('page').innerHTML = all.join('') }", ATTACKS)
    tab.wait_for_timeout(500)
    assert {2, 10} <= set(tab.evaluate("window.hits"))
    tab.close()


def test_the_console_runs_the_request_under_the_cursor(page: Page) -> None:
    page.evaluate("location.hash = '#/connection/shop/console'")
    page.locator(".cm-content").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    Hands(page).type("GET /books/_count\n\nGET /orders/_count\n")
    page.keyboard.press("ArrowUp")
    with page.expect_response("**/api/console/execute") as answered:
        page.keyboard.press("Control+Enter")
    answers = answered.value.json()["answers"]
    assert [answer["request"]["path"] for answer in answers] == ["/orders/_count"]
    page.locator(".answer", has_text="/orders/_count").wait_for()
    page.get_by_role("button", name="Run all").click()
    page.locator(".answer", has_text="/books/_count").wait_for()


def test_a_filter_says_what_is_sent_and_refuses_with_a_reason(orders: Page) -> None:
    write_filter(orders, "total >= 100")
    orders.locator(".meaning .badge", has_text="exact").wait_for()
    with orders.expect_response("**/api/page") as answered:
        orders.keyboard.press("Enter")
    assert 0 < answered.value.json()["total"] < 12_003
    Hands(orders).type("total >= many")
    orders.locator(".meaning.refused").wait_for()
    assert "many" in orders.locator(".meaning.refused").inner_text()


def test_a_made_filter_shows_its_rows_until_the_next_key(orders: Page) -> None:
    suggested = orders.get_by_role("option")
    write_filter(orders, "total")
    suggested.first.wait_for()
    Hands(orders).type(" >= 100")
    orders.keyboard.press("Enter")
    pill(orders, 1).wait_for()
    orders.wait_for_timeout(300)
    assert suggested.count() == 0
    orders.keyboard.press("ArrowDown")
    suggested.first.wait_for()
    orders.keyboard.press("Escape")
    suggested.first.wait_for(state="detached")
    Hands(orders).type("gif")
    suggested.filter(has_text="gift").wait_for()


def test_one_badge_stands_beside_the_name_on_a_phone(orders: Page) -> None:
    orders.set_viewport_size({"width": 400, "height": 800})
    header = orders.locator(".header").bounding_box()
    assert header
    assert header["height"] < 50


def test_values_are_suggested_and_filters_of_one_element_are_tied(orders: Page) -> None:
    assert add_filter(orders, "items.qty >= 2")["total"] > 0
    Hands(orders).type("customer.city = l")
    suggested = orders.get_by_role("option")
    suggested.filter(has_text="Lisbon").wait_for()
    assert suggested.nth(1).inner_text().startswith("L")  # after what is typed
    with orders.expect_response("**/api/page") as answered:
        suggested.filter(has_text="Lisbon").click()
    apart = add_filter(orders, "items.price > 40")["total"]
    assert 0 < apart < answered.value.json()["total"]
    orders.keyboard.press("Backspace")
    orders.get_by_label("In the same element of items as items.qty ≥ 2").click()
    with orders.expect_response("**/api/page") as answered:
        orders.keyboard.press("Enter")
    assert 0 < answered.value.json()["total"] < apart
    assert len({pill(orders, number).locator(".badge").inner_text() for number in (1, 3)}) == 1
    if AXE.is_file():
        orders.get_by_role("combobox").click()
        assert not findings(orders)


def test_enter_takes_what_is_marked_among_the_values(orders: Page) -> None:
    """What is typed is one of them, so that a value that came late is not taken for it."""
    hands, marked = Hands(orders), orders.get_by_role("option", selected=True)
    write_filter(orders, "customer.city = Lis")
    orders.get_by_role("option").filter(has_text="Lisbon").wait_for()
    assert marked.inner_text().split("\n") == ["Lis", "as it is typed"]
    hands.type("bon")
    becomes(orders, lambda: marked.count() == 1 and marked.inner_text().startswith("Lisbon"))
    assert orders.get_by_role("option", name="as it is typed").count() == 0
    for _ in "bon":
        orders.keyboard.press("Backspace")
    orders.get_by_role("option").filter(has_text="as it is typed").wait_for()
    orders.keyboard.press("ArrowDown")
    assert marked.inner_text().startswith("Lisbon")
    with orders.expect_response("**/api/page") as answered:
        orders.keyboard.press("Enter")
    assert answered.value.json()["total"] > 0
    assert "Lisbon" in pill(orders, 1).inner_text()


def test_a_filter_row_of_an_address_that_cannot_be_read_says_so_itself(orders: Page) -> None:
    row = {"type": "filter", "column": "total", "op": ">=", "value": "100"}
    filters = [row, row | {"op": "nonsense"}]
    orders.evaluate("hash => { location.hash = hash }", address_of("orders", filters=filters))
    orders.get_by_role("alert").first.wait_for()
    refused = orders.locator(".meaning.refused")
    refused.wait_for()
    assert "nonsense" in refused.inner_text()
    assert refused.count() == 1
    assert "refused" in (pill(orders, 2).get_attribute("class") or "")


def test_an_export_is_downloaded_with_the_filter(orders: Page, tmp_path: Path) -> None:
    orders.get_by_role("button", name="Export", exact=True).click()
    Hands(orders).choose(orders.get_by_role("dialog").get_by_label("To"), "a download in the browser")
    with orders.expect_download() as downloaded:
        orders.get_by_role("dialog").get_by_role("button", name="Export").click()
    target = tmp_path / "orders.ndjson"
    downloaded.value.save_as(target)
    lines = target.read_text().splitlines()
    assert len(lines) == 12_003
    assert "total" in json.loads(lines[0])
    orders.locator(".badge", has_text="finished").first.wait_for()


def test_a_tab_without_a_token_says_how_to_come_in(chromium: Any, address: str) -> None:
    tab = chromium.new_page()
    tab.goto(address.partition("#")[0])
    tab.get_by_text("This tab is not signed in").wait_for()
    tab.get_by_role("code").wait_for()
    tab.close()


def test_signing_out_ends_the_secret(page: Page) -> None:
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Sign out").click()
    page.get_by_text("This tab is not signed in").wait_for()
    page.reload()
    page.get_by_text("This tab is not signed in").wait_for()


def test_a_new_connection_offers_the_driver_and_then_its_form(page: Page) -> None:
    page.get_by_role("button", name="New connection").first.click()
    page.get_by_role("link", name="Elasticsearch").click()
    hands = Hands(page)
    hands.write(page.get_by_label("Name"), "second")
    hands.write(page.get_by_role("textbox", name="Host required"), "127.0.0.1")
    hands.write(page.get_by_label("Port"), "1")
    page.get_by_role("button", name="Test").click()
    page.get_by_role("alert").first.wait_for()
    assert "Connection failed" in page.locator("form").inner_text()
