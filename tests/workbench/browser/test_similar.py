"""Rows similar to a row: asked for by mouse and by key, filtered, left by the chip, by Back, and by their link."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import address_of
from workbench.browser.test_flows import command, visit
from workbench.browser.walking import becomes, write_filter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def library(vectors: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a connection to the sample of vectors."""
    home = tmp_path_factory.mktemp("library")
    words = ("connections", "add", "library", "--type", "weaviate", "--host", "127.0.0.1", "--auth", "none", "--yes")
    command(home, *words, "--port", vectors)
    return home


@pytest.fixture
def articles(chromium: Browser, library: Path) -> Iterator[Page]:
    """The rows of a collection with vectors."""
    with visit(chromium, library, "library") as page:
        page.locator(".object", has_text="Article").click()
        row(page, 1).wait_for()
        yield page


def row(page: Page, number: int) -> Locator:
    """The first cell of a row that is not loading."""
    return page.locator(f'[role=row][aria-rowindex="{number + 1}"] [role=gridcell]:not(.loading)').first


def chip(page: Page) -> Locator:
    """What says that the rows are similar to one."""
    return page.get_by_role("button", name=re.compile("^similar to "))


def heads(page: Page) -> list[str]:
    """The names of the columns in view, from the left."""
    return page.locator("[role=columnheader] .head-name").all_inner_texts()


def by_mouse(page: Page, number: int) -> dict[str, Any]:
    """Ask for the rows similar to a row in the menu of its cell."""
    row(page, number).click(button="right")
    with page.expect_response("**/api/similar") as answered:
        page.get_by_role("menuitem", name="Similar rows").click()
    answer: dict[str, Any] = answered.value.json()
    return answer


def test_the_menu_of_a_row_shows_similar_rows_with_their_distances_first(articles: Page) -> None:
    origin = row(articles, 3).inner_text()
    answer = by_mouse(articles, 3)
    assert (answer["columns"][0]["name"], answer["near"]) == ("_distance", origin)
    distances = [float(each["cells"][0][1]) for each in answer["rows"]]
    assert distances == sorted(distances)
    assert origin not in {each["id"] for each in answer["rows"]}
    chip(articles).wait_for()
    assert chip(articles).inner_text() == f"similar to {origin}"
    articles.get_by_text("the nearest 100 rows").wait_for()
    assert heads(articles)[0] == "_distance"
    vectors = articles.locator(".cell.vector > .bars:visible")
    becomes(articles, lambda: vectors.count() > 0)
    assert articles.locator(".cell:not(.vector) > .bars:visible").count() == 0  # it would strike a number through
    for name in ("Export", "At a glance"):  # they would be of all rows
        assert articles.get_by_role("button", name=name, exact=True).count() == 0
    chip(articles).click()
    articles.get_by_text("320 rows").wait_for()
    assert chip(articles).count() == 0
    assert "_distance" not in heads(articles)


def test_a_key_shows_them_and_back_leads_to_the_rows_before(articles: Page) -> None:
    articles.get_by_text("320 rows").wait_for()
    row(articles, 1).click()
    articles.keyboard.press("ArrowDown")
    articles.keyboard.press("Control+Enter")
    articles.get_by_text("the nearest 100 rows").wait_for()
    near = articles.url
    articles.go_back()
    articles.get_by_text("320 rows").wait_for()
    assert chip(articles).count() == 0
    articles.go_forward()
    articles.get_by_text("the nearest 100 rows").wait_for()
    assert articles.url == near


def test_a_filter_holds_for_similar_rows_and_their_link_shows_the_same(articles: Page) -> None:
    by_mouse(articles, 2)
    write_filter(articles, "section = travel")
    with articles.expect_response("**/api/similar") as answered:
        articles.keyboard.press("Enter")
    filtered = answered.value.json()
    section = [column["name"] for column in filtered["columns"]].index("section")
    assert {each["cells"][section] for each in filtered["rows"]} == {"travel"}
    articles.get_by_text(f"the nearest {len(filtered['rows'])} rows").wait_for()
    with articles.expect_response("**/api/similar") as again:
        articles.reload()
    assert [each["id"] for each in again.value.json()["rows"]] == [each["id"] for each in filtered["rows"]]
    chip(articles).wait_for()
    with articles.expect_response("**/api/page") as answered:
        chip(articles).click()
    assert json.loads(answered.value.request.post_data or "")["rows"]["filters"][0]["value"] == "travel"


def test_similar_rows_have_no_other_order(articles: Page) -> None:
    by_mouse(articles, 1)
    articles.get_by_text("the nearest 100 rows").wait_for()
    articles.locator("[role=columnheader]", has_text="title").first.click()
    articles.get_by_text("Similar rows come nearest first. Show all rows to sort them.").wait_for()


def test_a_link_to_a_row_that_is_none_is_refused_and_leads_back(articles: Page) -> None:
    articles.evaluate(
        "hash => { location.hash = hash }", address_of("Article", connection="library") + "/near/bm90IGEga2V5"
    )
    articles.get_by_text("this is not the key of a row").first.wait_for()
    articles.get_by_role("button", name="Show the rows before").click()
    articles.get_by_text("320 rows").wait_for()
    assert chip(articles).count() == 0


def test_rows_without_vectors_offer_no_similar_ones(orders: Page) -> None:
    row(orders, 1).click(button="right")
    orders.get_by_role("menuitem", name="Show whole value").wait_for()
    assert orders.get_by_role("menuitem", name="Similar rows").count() == 0
    orders.keyboard.press("Escape")
    row(orders, 1).click()
    orders.keyboard.press("Control+Enter")
    orders.get_by_text("These rows have no vectors.").wait_for()
    assert chip(orders).count() == 0


def test_a_vector_is_a_length_and_bars_in_its_cell_and_larger_in_the_pane(articles: Page) -> None:
    cell = articles.get_by_role("gridcell", name="vector of 8 numbers").first
    assert cell.inner_text() == "8"
    bars = cell.locator(".bars > path").get_attribute("d") or ""
    assert bars.count("M") == 8
    others = {one.get_attribute("d") for one in articles.locator(".cell .bars > path").all()[:5]}
    assert len(others) == 5
    cell.click()
    articles.keyboard.press("Space")
    figure = articles.get_by_role("figure")
    figure.get_by_role("img", name="vector of 8 numbers").wait_for()
    assert re.match(r"8 numbers, from -?[\d.]+ to -?[\d.]+$", figure.inner_text())
    articles.keyboard.press("ArrowLeft")  # a column without vectors
    figure.wait_for(state="detached")
