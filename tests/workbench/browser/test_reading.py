"""The grid as a person reads it, on samples of Elasticsearch and Weaviate, in both themes and widths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import Cluster, address_of
from workbench.browser.test_flows import SAVE, command, visit
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands, becomes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

LOOKS = [(theme, width) for theme in ("light", "dark") for width in (1440, 400)]
SAMPLES = {
    "shop": ("orders", ["_id", "placed_at", "customer.city"], ["_index", "_score"]),
    "library": ("Article", ["uuid", "published", "title"], ["free", "vector"]),
}
"""By connection: the object, the columns that come first, and those that come last."""


@pytest.fixture(scope="module")
def page(chromium: Browser, cluster: Cluster, vectors: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab in a workbench with a connection to either sample."""
    home = tmp_path_factory.mktemp("reading")
    command(home, *SAVE, "--port", cluster.port)
    words = ("connections", "add", "library", "--type", "weaviate", "--host", "127.0.0.1", "--auth", "none", "--yes")
    command(home, *words, "--port", vectors)
    with visit(chromium, home) as tab:
        yield tab


def look(page: Page, connection: str, name: str, theme: str = "light", width: int = 1440) -> None:
    """Go to the rows of an object in a theme and a width."""
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    page.evaluate("hash => { location.hash = hash }", address_of(name, connection=connection))
    page.locator("h1", has_text=name).wait_for()
    page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    page.locator(".cell.active").focus()


def column(page: Page, name: str) -> str:
    """The number of a column in view, from 1."""
    return str(
        page.locator("[role=columnheader]", has=page.get_by_text(name, exact=True)).get_attribute("aria-colindex")
    )


def cell(page: Page, row: int, name: str) -> Locator:
    """A drawn cell of a row, from 1."""
    return page.locator(f'[role=row][aria-rowindex="{row + 1}"] [role=gridcell][aria-colindex="{column(page, name)}"]')


def head_in_focus(page: Page) -> str:
    """The name in the head above the cell that has the focus."""
    at = page.evaluate("document.activeElement.ariaColIndex")
    return page.locator(f'.head-cell[aria-colindex="{at}"] .head-name').inner_text()


def cut(page: Page, kind: str) -> list[str]:
    """The texts of the cells in view that end in dots."""
    texts: list[str] = page.locator(f".line:not([aria-hidden]) .cell.{kind}").evaluate_all(
        "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"
    )
    return texts


@pytest.mark.parametrize(("theme", "width"), LOOKS)
@pytest.mark.parametrize("connection", SAMPLES)
def test_what_a_row_is_comes_first_and_what_the_server_says_last(
    page: Page, connection: str, theme: str, width: int
) -> None:
    name, first, last = SAMPLES[connection]
    look(page, connection, name, theme, width)
    heads = []
    for _ in first:
        heads.append(head_in_focus(page))
        page.keyboard.press("ArrowRight")
    assert heads == first
    page.keyboard.press("End")
    assert head_in_focus(page) == last[-1]
    page.keyboard.press("ArrowLeft")
    assert head_in_focus(page) == last[-2]
    page.keyboard.press("Home")
    assert head_in_focus(page) == first[0]
    assert not cut(page, "digits")
    assert not cut(page, "when")
    if AXE.is_file():
        assert not findings(page)


@pytest.mark.parametrize("connection", SAMPLES)
def test_a_time_is_short_in_its_cell_and_exact_under_the_mouse_and_in_the_copy(page: Page, connection: str) -> None:
    name, (_, time, _), _ = SAMPLES[connection]
    look(page, connection, name)
    at = cell(page, 3, time)
    shown = at.inner_text()
    assert len(shown) == len("2026-01-02 03:04:05"), shown
    at.hover()
    exact = str(at.get_attribute("title"))
    assert "T" in exact
    assert exact[:19].replace("T", " ") == shown
    at.click()
    page.keyboard.press("Control+c")
    page.locator(".toast", has_text="Copied the cell").last.wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == exact


def test_columns_are_as_wide_as_their_content(page: Page, cluster: Cluster) -> None:
    rows: list[dict[str, Any]] = [
        {"flag": True, "title": "The market garden", "note": "long " * 60, "big": 9_007_199_254_740_993 + at}
        for at in range(250)
    ]
    rows[245]["big"] = -9_007_199_254_740_993_123
    properties = {
        "flag": {"type": "boolean"},
        "note": {"type": "text"},
        "big": {"type": "long"},
        "title": {"type": "keyword"},
    }
    cluster.put("broad", rows, properties)
    look(page, "shop", "broad")
    widths = {name: cell(page, 1, name).bounding_box()["width"] for name in properties}  # type: ignore[index]
    assert widths["flag"] < 90 < 110 < widths["title"] < 200 < widths["note"] <= 320
    assert not cut(page, "digits")
    assert set(cut(page, "text")) == {rows[0]["note"]}
    cell(page, 1, "note").hover()
    assert cell(page, 1, "note").get_attribute("title") == rows[0]["note"]
    cell(page, 1, "big").click()
    page.keyboard.press("Control+ArrowDown")
    page.locator(".cell.digits", has_text="-9007199254740993123").wait_for()
    assert not cut(page, "digits")
    assert cell(page, 250, "big").bounding_box()["width"] > widths["big"]  # type: ignore[index]


def test_documents_and_arrays_are_previews_of_their_first_values(page: Page, cluster: Cluster) -> None:
    text = {"type": "keyword"}
    rows = [{"parts": [{"sku": "A-17", "qty": 1, "price": 2.5}, {"sku": "B-02"}], "sizes": [1.5, 20], "tag": ["a"]}]
    number = {"type": "double"}
    part = {"type": "nested", "properties": {"sku": text, "qty": {"type": "integer"}, "price": number}}
    properties = {"parts": part, "sizes": number, "tag": text}
    cluster.put("previews", rows, properties)
    look(page, "shop", "previews")
    assert cell(page, 1, "parts").inner_text() == '[2] {sku: "A-17", qty: 1, \N{HORIZONTAL ELLIPSIS}}, {1}'
    assert cell(page, 1, "sizes").inner_text() == "[1.5, 20]"
    assert cell(page, 1, "tag").inner_text() == '["a"]'
    cell(page, 1, "parts").click()
    page.keyboard.press("Control+c")
    page.locator(".toast", has_text="Copied the cell").last.wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith('[{"sku":"A-17"')


def test_null_and_missing_stand_where_the_columns_values_do(page: Page, cluster: Cluster) -> None:
    cluster.put("gaps", [{"n": 1}, {"n": None}, {}], {"n": {"type": "integer"}})
    look(page, "shop", "gaps")
    for at, look_of_it in ((2, "null"), (3, "missing")):
        gap = cell(page, at, "n")
        assert look_of_it in str(gap.get_attribute("class"))
        assert gap.evaluate("cell => getComputedStyle(cell).textAlign") == "right"


def width_of(page: Page, name: str) -> float:
    """The pixels that a column takes."""
    return float(cell(page, 1, name).evaluate("cell => cell.offsetWidth"))


def test_a_column_fits_its_content_by_mouse_and_by_key(page: Page, cluster: Cluster) -> None:
    rows = [{"note": "a rather long line of words " * 2, "word": "short"} for _ in range(3)]
    cluster.put("fitting", rows, {"note": {"type": "text"}, "word": {"type": "keyword"}})
    look(page, "shop", "fitting")
    assert width_of(page, "note") == 320
    grip = page.locator("[role=columnheader]", has_text="note").locator(".head-grip").bounding_box()
    assert grip
    page.mouse.dblclick(grip["x"] + 3, grip["y"] + 9)
    becomes(page, lambda: width_of(page, "note") > 330)
    assert not cut(page, "text")
    cell(page, 1, "word").click()
    page.keyboard.press("ArrowUp")
    for _ in range(4):
        page.keyboard.press("Alt+Shift+ArrowRight")
    assert width_of(page, "word") > 120
    page.keyboard.press("Space")
    item = page.get_by_role("menuitem", name="Fit to the content")
    item.wait_for()
    for _ in range(12):
        if item.evaluate("item => item === document.activeElement"):
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    becomes(page, lambda: width_of(page, "word") < 100)


def test_letters_move_where_nothing_can_be_changed(page: Page) -> None:
    page.evaluate("location.hash = '#/connection/shop/console'")
    Hands(page).write(page.locator(".cm-content"), "GET /orders/_search")
    page.keyboard.press("Control+Enter")
    first = page.locator('.answer [role=row][aria-rowindex="2"] .cell').first
    first.click()
    for key in "jjlkh":
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.closest('[role=row]').ariaRowIndex") == "3"
    assert page.evaluate("document.activeElement.ariaColIndex") == "2"


def names_listed(page: Page) -> list[str]:
    """The names in the pane of columns."""
    return page.locator(".column-list .grow").all_inner_texts()


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_columns_are_searched_hidden_and_moved_in_a_pane_that_stays(page: Page, theme: str, width: int) -> None:
    look(page, "shop", "books", theme, width)
    page.get_by_role("button", name="Columns", exact=True).click()
    pane = page.get_by_role("complementary", name="Columns")
    assert names_listed(page)[:2] == ["_id", "published"]
    assert names_listed(page)[-2:] == ["_index", "_score"]
    if AXE.is_file():
        assert not findings(page)
    pane.get_by_label("Search the columns").click()
    Hands(page).type("author")
    pane.get_by_role("button", name="None").click()
    pane.locator("li").nth(1).locator("input:not(:checked)").wait_for()
    assert page.locator(".head-name", has_text="author").count() == 0
    pane.get_by_role("button", name="All").click()
    page.locator(".head-name", has_text="author.born").wait_for(state="attached")
    pane.get_by_label("Search the columns").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    pane.locator("li").nth(5).wait_for()
    born = names_listed(page).index("author.born")
    pane.locator("li input").nth(born).focus()
    page.keyboard.press("Space")
    pane.locator("li").nth(born).locator("input:not(:checked)").wait_for()
    page.keyboard.press("Space")
    page.keyboard.press("Alt+ArrowUp")
    assert names_listed(page).index("author.born") == born - 1
    assert page.evaluate("document.activeElement.closest('li').innerText").startswith("author.born")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('li').innerText").startswith("published")
    pane.locator("li", has_text="blurb").drag_to(pane.locator("li", has_text="published"))
    assert names_listed(page)[1:4] == ["author.born", "blurb", "published"]
    pane.get_by_role("button", name="As at first").click()
    assert names_listed(page)[1] == "published"
    page.keyboard.press("Escape")
    pane.wait_for(state="detached")
    assert page.locator(".cell.active").evaluate("cell => cell === document.activeElement")
