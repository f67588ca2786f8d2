"""The grid in a real browser, over the real server."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from workbench.browser.conftest import Cluster, rows_of, show
from workbench.browser.walking import Hands, add_filter, becomes, pill

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]


def row(page: Page, number: int) -> str:
    """The pinned id of a row, once it has arrived."""
    drawn = page.locator(f'[role=row][aria-rowindex="{number + 1}"]')
    drawn.locator(".fixed .cell:not(.loading):visible").first.wait_for()
    return drawn.locator(".fixed .cell:visible").inner_text()


def focused(page: Page) -> tuple[int, int]:
    """The row and column of the focused cell, from 1; 0 is the head."""
    found = page.evaluate("""() => {
      const cell = document.activeElement;
      return [cell.closest('[role=row]').ariaRowIndex - 1, cell.ariaColIndex - 1];
    }""")
    return tuple(found)


def test_rows_past_ten_thousand_are_reached_and_left_again(orders: Page) -> None:
    first = row(orders, 1)
    orders.locator(".cell.active").focus()
    orders.keyboard.press("Control+End")
    assert row(orders, 12_003)
    assert orders.locator("[role=grid]").get_attribute("aria-rowcount") == "12004"
    assert focused(orders)[0] == 12_003
    orders.keyboard.press("Control+Home")
    assert row(orders, 1) == first
    assert orders.locator("[role=row]").count() < 100


def drawn_rows(page: Page) -> list[tuple[int, int, int]]:
    """The number, top and height of each row that is drawn, in pixels below the head."""
    rows = page.evaluate("""() => {
      const top = document.querySelector('.grid-clip').getBoundingClientRect().top;
      return [...document.querySelectorAll('.line:not([aria-hidden])')].map((line) => {
        const box = line.getBoundingClientRect();
        return [Number(line.ariaRowIndex) - 1, Math.round(box.top - top), Math.round(box.height)];
      });
    }""")
    return sorted(map(tuple, rows))


def test_rows_are_as_high_as_a_person_wants_them_and_stay_so(orders: Page) -> None:
    """By keyboard through the palette, and by mouse; the active row keeps its place, and rows tile the view exactly."""
    row(orders, 1)
    hands, view = Hands(orders), orders.locator(".grid-clip").bounding_box()
    assert view
    orders.locator(".cell.active").focus()
    orders.keyboard.press("Control+End")
    row(orders, 12_003)
    for _ in range(40):
        orders.keyboard.press("ArrowUp")
    active = orders.locator(".cell.active")
    top = active.evaluate("cell => cell.getBoundingClientRect().top")
    orders.keyboard.press("Control+k")
    hands.type("row height")
    orders.keyboard.press("Enter")
    orders.get_by_role("menuitemcheckbox", name="Normal rows", checked=True).wait_for()
    hands.type("t")
    orders.keyboard.press("Enter")
    for height, following in ((60, "Compact rows"), (22, "Normal rows"), (28, "")):
        becomes(orders, lambda height=height: drawn_rows(orders)[0][2] == height)
        rows = drawn_rows(orders)
        assert all(after[:2] == (before[0] + 1, before[1] + height) for before, after in pairwise(rows))
        assert -height < rows[0][1] <= 0
        assert rows[-1][1] < view["height"] <= rows[-1][1] + height
        assert active.evaluate("cell => cell.getBoundingClientRect().top") == top
        assert active.evaluate("cell => Number(cell.closest('.line').ariaRowIndex)") == 11_964
        if following:
            orders.get_by_role("button", name="Row height").click()
            orders.get_by_role("menuitemcheckbox", name=following).click()
    orders.get_by_role("button", name="Row height").click()
    with orders.expect_response("**/api/preferences/set"):
        orders.get_by_role("menuitemcheckbox", name="Compact rows").click()
    orders.reload()
    row(orders, 1)
    becomes(orders, lambda: drawn_rows(orders)[0][2] == 22)
    orders.get_by_role("button", name="Row height").click()
    with orders.expect_response("**/api/preferences/set"):
        orders.get_by_role("menuitemcheckbox", name="Normal rows").click()


LINES = """cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const { bottom } = cell.getBoundingClientRect();
  return new Set([...range.getClientRects()].map(({ top }) => top).filter((top) => top < bottom)).size;
}"""


def test_a_tall_row_shows_three_lines_of_a_text(page: Page, cluster: Cluster) -> None:
    cluster.put("prose", [{"text": "one\ntwo\nthree\nfour"}, {"text": "word " * 60}], {"text": {"type": "text"}})
    show(page, "prose")
    cell = page.locator(".cell:visible", has_text="one")
    assert (cell.inner_text(), cell.evaluate(LINES)) == ("one↵two↵three↵four", 1)
    page.get_by_role("button", name="Row height").click()
    page.get_by_role("menuitemcheckbox", name="Tall rows").click()
    becomes(page, lambda: cell.evaluate(LINES) == 3)
    assert page.locator(".cell:visible", has_text="word").evaluate(LINES) == 3


def test_the_keyboard_alone_moves_selects_and_sorts(orders: Page) -> None:
    orders.locator(".cell.active").focus()
    orders.keyboard.press("ArrowDown")
    orders.keyboard.press("ArrowRight")
    assert focused(orders) == (2, 2)
    orders.keyboard.press("Shift+ArrowDown")
    orders.keyboard.press("Shift+ArrowRight")
    assert orders.locator(".status-line").inner_text().count("2 \N{MULTIPLICATION SIGN} 2 cells") == 1
    assert orders.locator("[role=gridcell][aria-selected=true]:visible").count() == 4
    head = orders.locator("[role=columnheader]", has_text="total")
    orders.keyboard.press("Control+Home")
    orders.keyboard.press("ArrowUp")
    for _ in range(40):
        if orders.evaluate("document.activeElement.innerText").startswith("total"):
            break
        orders.keyboard.press("ArrowRight")
    with orders.expect_response("**/api/page"):
        orders.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    with orders.expect_response("**/api/page"):
        orders.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"


def test_two_sorts_are_sent_in_their_order(orders: Page) -> None:
    orders.locator("[role=columnheader]", has_text="customer.city").click()
    orders.locator("[role=columnheader][aria-sort=ascending]").wait_for()
    with orders.expect_request("**/api/page") as sent:
        orders.locator("[role=columnheader]", has_text="gift").click(modifiers=["Shift"])
    assert [key["column"] for key in rows_of(sent.value)["sort"]] == [
        "customer.city",
        "gift",
    ]
    heads = orders.locator("[role=columnheader][aria-sort=ascending]")
    assert heads.count() == 2


def test_the_address_holds_the_rows_that_are_shown(orders: Page, cluster: Cluster) -> None:
    """It can be kept and sent to others: what the hands asked for comes back from it, and a plain link shows all."""

    def shown() -> dict[str, Any]:
        name = str(orders.evaluate("location.hash")).removeprefix("#/connection/shop/rows/")
        return dict(json.loads(unquote(name)))

    count = add_filter(orders, "total >= 100")["total"]
    with orders.expect_response("**/api/page"):
        orders.locator("[role=columnheader]", has_text="customer.city").click()
    total = {"type": "filter", "column": "total", "op": ">=", "value": "100", "group": None, "case": None}
    rows = {"object": "orders", "filters": [total], "sort": [{"column": "customer.city", "descending": False}]}
    assert shown() == rows
    with orders.expect_response("**/api/page") as answered:
        orders.reload()
    assert rows_of(answered.value.request)["sort"] == rows["sort"]
    assert answered.value.json()["total"] == count < 12_003
    assert "100" in pill(orders, 1).inner_text()
    steps = (("back", 1, 0), ("back", 0, 0), ("forward", 1, 0), ("forward", 1, 1))
    for way, filters, sort in steps:
        with orders.expect_response("**/api/page") as answered:
            orders.go_back() if way == "back" else orders.go_forward()
        sent = rows_of(answered.value.request)
        assert (len(sent["filters"]), len(sent["sort"])) == (filters, sort)
        assert orders.locator(".pill").count() == filters
    assert shown() == rows
    with orders.expect_response("**/api/page") as answered:
        orders.locator(".object", has_text="orders").click()
    assert answered.value.json()["total"] == 12_003
    orders.get_by_role("button", name="Filter", exact=True).wait_for()
    assert shown() == {"object": "orders"}
    with orders.expect_response("**/api/page") as answered:
        orders.go_back()
    assert answered.value.json()["total"] == count
    assert shown() == rows


def test_null_missing_empty_and_a_text_that_says_null_differ(page: Page, cluster: Cluster) -> None:
    names = [{"name": "null"}, {"name": None}, {"name": ""}, {"name": "  two\nlines"}]
    properties = {"name": {"type": "keyword"}, "big": {"type": "unsigned_long"}}
    cluster.put("kinds", [*names, {"big": 12345678901234567890}], properties)
    show(page, "kinds")
    found = page.evaluate("""() => [...document.querySelectorAll('.line:not([aria-hidden])')].map((line) => {
      const at = [...document.querySelectorAll('.head-cell')].find((head) => head.innerText.startsWith('name'));
      const cell = line.querySelector(`.cell[aria-colindex="${at.ariaColIndex}"]`);
      return [cell.className.split(' ')[1], cell.textContent];
    })""")
    assert found[0] == ["text", "null"]
    assert found[1] == ["null", "null"]
    assert found[2] == ["empty", "empty"]
    assert found[3] == ["text", "  two↵lines"]
    assert page.get_by_text("12345678901234567890").count() == 1


def test_columns_stay_as_arranged_after_a_reload(orders: Page) -> None:
    head = orders.locator("[role=columnheader]", has_text="customer.city")
    head.click(button="right")
    with orders.expect_response("**/api/preferences/set"):
        orders.get_by_role("menuitem", name="Hide").click()
    assert head.count() == 0
    orders.reload()
    orders.locator("[role=columnheader]", has_text="customer.name").wait_for()
    assert orders.locator("[role=columnheader]", has_text="customer.city").count() == 0
    orders.get_by_role("button", name="Columns").click()
    with orders.expect_response("**/api/preferences/set"):
        orders.get_by_role("button", name="As at first").click()
    orders.locator("[role=columnheader]", has_text="customer.city").wait_for()


def test_the_side_pane_shows_a_document_as_a_tree(orders: Page) -> None:
    at = orders.locator("[role=columnheader]", has=orders.get_by_text("items", exact=True)).get_attribute(
        "aria-colindex"
    )
    orders.locator(f'.line:not([aria-hidden]) .cell.json[aria-colindex="{at}"]').first.click()
    orders.keyboard.press("Space")
    pane = orders.get_by_role("complementary", name="Side pane")
    pane.get_by_role("treeitem").first.wait_for()
    assert "sku" in pane.inner_text()
    orders.keyboard.press("Space")
    pane.wait_for(state="detached")


def test_nothing_moves_while_rows_load(orders: Page) -> None:
    orders.evaluate("""() => {
      window.shifts = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shifts += entry.value;
      }).observe({ type: 'layout-shift', buffered: false });
    }""")
    grid = orders.locator("[role=grid]")
    for top in (4_000, 90_000, 200_000, 0):
        grid.evaluate("(grid, top) => { grid.scrollTop = top }", top)
        orders.wait_for_timeout(400)
    row(orders, 1)
    assert orders.evaluate("window.shifts") == 0


def pages_of(page: Page, name: str) -> list[int]:
    """The offsets of pages that are requested of an object, from now on."""
    offsets: list[int] = []

    def note(request: Request) -> None:
        if request.url.endswith("/api/page") and rows_of(request)["object"] == name:
            offsets.append(json.loads(request.post_data or "")["offset"])

    page.on("request", note)
    return offsets


def test_a_page_is_asked_for_while_the_link_is_pressed_and_not_again(orders: Page) -> None:
    offsets = pages_of(orders, "books")
    orders.locator(".object", has_text="books").hover()
    with orders.expect_response("**/api/page"):
        orders.mouse.down()
    assert not orders.url.endswith("books"), "only the click goes there"
    assert orders.locator("h1").inner_text() == "orders"
    orders.mouse.up()
    orders.locator("h1", has_text="books").wait_for()
    assert row(orders, 1)
    assert offsets == [0]


def test_a_link_that_is_held_for_long_leads_to_the_rows_as_they_are_then(page: Page, cluster: Cluster) -> None:
    cluster.put("held", [{"n": 1}], {"n": {"type": "long"}})
    show(page, "orders")
    offsets = pages_of(page, "held")
    page.locator(".object", has_text="held").hover()
    with page.expect_response("**/api/page"):
        page.mouse.down()
    cluster.send("PUT", "/held/_doc/late?refresh=true", '{"n": 2}')
    page.wait_for_timeout(1_200)
    page.mouse.up()
    page.locator("h1", has_text="held").wait_for()
    row(page, 2)
    assert page.locator(".status-line").inner_text().startswith("2 rows")
    assert offsets == [0, 0]


def test_the_keyboard_and_other_buttons_ask_for_nothing_before_their_click(orders: Page) -> None:
    offsets = pages_of(orders, "books")
    link = orders.locator(".object", has_text="books")
    link.click(button="right")
    link.click(modifiers=["ControlOrMeta"])
    orders.wait_for_timeout(200)
    assert offsets == []
    link.focus()
    orders.keyboard.press("Enter")
    orders.locator("h1", has_text="books").wait_for()
    assert row(orders, 1)
    assert offsets == [0]


DRAWN = """() => {
  const heads = [...document.querySelectorAll('.head-cell[aria-colindex]')];
  const names = new Map(heads.map((head) => [head.ariaColIndex, head.querySelector('.head-name')?.textContent]));
  const wrong = [], counts = new Set();
  for (const line of document.querySelectorAll('.line:not([aria-hidden])')) {
    const cells = [...line.querySelectorAll('.cell')];
    counts.add(new Set(cells.map((cell) => cell.ariaColIndex)).size);
    const id = cells.find((cell) => names.get(cell.ariaColIndex) === '_id').textContent;
    for (const cell of cells) {
      const name = names.get(cell.ariaColIndex);
      if (name?.[0] !== '_' && cell.textContent !== `${id} ${name}`) wrong.push([id, name, cell.textContent]);
    }
  }
  const { right, bottom } = document.querySelector('.grid-window').getBoundingClientRect();
  const under = Array.from({ length: 28 }, (_, up) => document.elementFromPoint(right - 3, bottom - 3 - up));
  return [wrong, [...counts], under.every((element) => element.classList.contains('cell'))];
}"""


def test_each_drawn_cell_shows_its_row_and_column_wherever_the_grid_is_scrolled(page: Page, cluster: Cluster) -> None:
    names = [f"f{at:02}" + "x" * (at % 5 * 6) for at in range(60)]
    rows = [{name: f"{at} {name}" for name in names} for at in range(400)]
    cluster.put("plane", rows, {name: {"type": "keyword"} for name in names})
    show(page, "plane")
    grid = page.locator("[role=grid]")
    counted = set()
    for left, top in [(0, 0), (1_500, 0), (1_640, 280), (777, 301), (10_000_000, 5_000), (37, 5_280), (0, 0)]:
        grid.evaluate("(grid, [left, top]) => grid.scrollTo({ left, top })", [left, top])
        page.wait_for_timeout(200)
        page.locator(".line:not([aria-hidden]) .cell.loading").first.wait_for(state="detached")
        wrong, counts, covered = page.evaluate(DRAWN)
        assert wrong == []
        assert covered
        counted |= set(counts)
    assert len(counted) == 1


def test_a_copied_selection_keeps_digits_and_columns(orders: Page) -> None:
    orders.locator(".cell.active").focus()
    orders.keyboard.press("Control+c")
    orders.keyboard.press("Control+c")
    orders.get_by_text("Copied the cell").wait_for()  # said once
    assert orders.evaluate("navigator.clipboard.readText()") == orders.locator(".cell.active").inner_text()
    orders.locator(".cell.active").click(button="right")
    orders.get_by_role("menuitem", name="Copy rows as JSON").click()
    orders.get_by_text("Copied 1 \N{MULTIPLICATION SIGN}").wait_for()
    copied = json.loads(orders.evaluate("navigator.clipboard.readText()"))
    assert copied[0]["_index"] == "orders"
    assert isinstance(copied[0]["total"], int | float)


def test_an_edit_is_reviewed_as_a_request_and_then_sent(page: Page, cluster: Cluster) -> None:
    cluster.put("editable", [{"title": "first"}, {"title": "second"}], {"title": {"type": "keyword"}})
    show(page, "editable")
    page.locator(".cell", has_text="first").click()
    page.keyboard.press("F2")
    Hands(page).type("changed")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
    page.locator(".request", has_text="if_seq_no").wait_for()
    with page.expect_response("**/api/changes/apply"):
        page.get_by_role("button", name="Send 1 request").click()
    page.locator(".badge", has_text="applied").wait_for()
    page.get_by_role("button", name="Close", exact=True).last.click()
    found = cluster.send("GET", "/editable/_doc/0")
    assert found["_source"] == {"title": "changed"}


def test_a_conflict_shows_mine_beside_theirs(page: Page, cluster: Cluster) -> None:
    cluster.put("contested", [{"title": "first"}], {"title": {"type": "keyword"}})
    show(page, "contested")
    page.locator(".cell", has_text="first").click()
    page.keyboard.press("F2")
    Hands(page).type("mine")
    page.keyboard.press("Enter")
    cluster.send("PUT", "/contested/_doc/0?refresh=true", '{"title": "theirs"}')
    page.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
    page.get_by_role("button", name="Send 1 request").click()
    page.get_by_role("button", name="Compare").click()
    page.locator(".conflict").wait_for()
    cells = page.locator(".conflict tbody td").all_inner_texts()
    assert cells == ['"first"', '"mine"', '"theirs"']
    page.get_by_role("button", name="Keep theirs").click()
    page.get_by_role("button", name="Close", exact=True).last.click()
    assert page.get_by_role("region", name="Changes").count() == 0
    assert cluster.send("GET", "/contested/_doc/0")["_source"] == {"title": "theirs"}


@pytest.mark.parametrize(("width", "words"), [(1_700, 7), (1_440, 4), (1_280, 0)])
def test_tools_have_words_where_there_is_room_and_one_line(orders: Page, width: int, words: int) -> None:
    orders.set_viewport_size({"width": width, "height": 800})
    tools = orders.get_by_role("toolbar", name="Grid tools")
    named = ("Over time", "Columns", "Row height", "Side pane", "New row", "Export", "Import")
    buttons = [tools.get_by_role("button", name=name, exact=True) for name in named]
    assert sum(button.inner_text() != "" for button in buttons) == words
    assert all(button.get_attribute("title") for button in buttons)
    box = tools.bounding_box()
    assert box
    assert box["height"] < 50


def test_tools_that_are_used_seldom_are_in_a_menu_on_a_phone(orders: Page) -> None:
    orders.set_viewport_size({"width": 400, "height": 800})
    tools = orders.get_by_role("toolbar", name="Grid tools")
    more = tools.get_by_role("button", name="More tools")
    more.wait_for()
    box = tools.bounding_box()
    assert box
    assert box["height"] < 90  # the name, and one line below it
    more.click()
    orders.get_by_role("menuitem", name="Row height").click()
    menu = orders.get_by_role("menu", name="Row height").bounding_box()
    assert menu
    assert menu["y"] > 50  # below the button
    orders.get_by_role("menuitemcheckbox", name="Compact rows").click()
    orders.locator(".grid[data-rows=compact]").wait_for()
    more.click()
    orders.get_by_role("menuitemcheckbox", name="Side pane").click()
    orders.get_by_role("complementary", name="Side pane").wait_for()
    tools.get_by_role("button", name="Filter", exact=True).focus()
    orders.keyboard.press("End")
    assert orders.evaluate("document.activeElement.ariaLabel") == "More tools"
