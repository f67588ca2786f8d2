"""What the page shows when a question fails, and when its answer is of another kind than the one before."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, show
from workbench.browser.test_flows import command, visit
from workbench.browser.walking import Hands, add_filter, pill, write_filter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]


@pytest.fixture
def visits(page: Page, cluster: Cluster) -> Iterator[Page]:
    """A grid of 30 rows with a time."""
    rows = [{"@timestamp": f"2026-01-{day:02}T00:00:00Z", "n": day} for day in range(1, 31)]
    cluster.put("visits", rows, {"@timestamp": {"type": "date"}, "n": {"type": "long"}})
    show(page, "visits")
    page.get_by_role("button", name=re.compile("^Time: ")).wait_for()  # the object is described
    yield page
    if "visits" in cluster.send("GET", "/_all/_settings"):
        cluster.send("DELETE", "/visits")


def emptied(page: Page) -> None:
    """Assert that no row and no total of the question before stands under the one that failed."""
    page.locator(".error-box").wait_for()
    page.get_by_text("These rows could not be read").wait_for()
    assert page.locator('[role=row][aria-rowindex="2"]:not([aria-hidden]) [role=gridcell]').count() == 0
    assert "rows" not in page.locator(".status-line").inner_text()


def test_a_filter_that_fails_leaves_no_rows_and_leads_back(visits: Page) -> None:
    write_filter(visits, "n = many")
    visits.keyboard.press("Enter")
    emptied(visits)
    assert "many" in visits.locator(".error-box").first.inner_text()
    visits.get_by_role("button", name="Show the rows before").click()
    visits.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    assert visits.locator(".error-box").count() == 0
    visits.locator(".status-line", has_text=re.compile(r"^30 rows")).wait_for()
    pill(visits, 1).get_by_role("button", name="many").click()  # to be corrected
    Hands(visits).write(visits.get_by_role("combobox", name="Edit filter 1"), "7")
    with visits.expect_response("**/api/page") as answered:
        visits.keyboard.press("Enter")
    assert answered.value.json()["total"] == 1


@pytest.mark.parametrize("way", ["sort", "time", "refresh"])
def test_a_question_to_an_object_that_is_gone_leaves_no_rows(visits: Page, cluster: Cluster, way: str) -> None:
    cluster.send("DELETE", "/visits")
    if way == "sort":
        visits.locator("[role=columnheader]", has=visits.locator(".head-name", has_text=re.compile("^n$"))).click()
    elif way == "time":
        visits.get_by_role("button", name=re.compile("^Time: ")).click()
        visits.get_by_role("menuitemcheckbox", name="last hour").click()
    else:
        visits.get_by_role("button", name="Refresh", exact=True).click()
    emptied(visits)
    assert visits.get_by_role("button", name="Show the rows before").count() == (way != "refresh")


def test_an_unknown_tenant_leaves_no_rows_and_leads_back(chromium: Browser, tmp_path: Path, vectors: int) -> None:
    home = tmp_path / "home"
    words = ("connections", "add", "library", "--type", "weaviate", "--host", "127.0.0.1", "--auth", "none", "--yes")
    command(home, *words, "--port", vectors)
    with visit(chromium, home, "library") as page:
        page.locator(".object", has_text="Review").click()
        tenant = page.get_by_label("Tenant")
        for name in ("lisbon", "nowhere"):
            Hands(page).write(tenant, name)
            page.keyboard.press("Enter")
            if name == "lisbon":
                page.get_by_text("of lisbon").first.wait_for()
        emptied(page)
        page.get_by_role("button", name="Show the rows before").click()
        page.get_by_text("of lisbon").first.wait_for()
        assert tenant.input_value() == "lisbon"


def test_a_filter_is_typed_edited_and_removed_with_the_keys_alone(visits: Page) -> None:
    assert add_filter(visits, "n >= 20")["total"] == 11
    Hands(visits).type("n ")
    Hands(visits).type("between")
    visits.keyboard.press("Enter")
    Hands(visits).type("25")
    visits.keyboard.press("Enter")
    visits.keyboard.press("Enter")  # one of two values is no filter
    assert not pill(visits, 2).count()
    Hands(visits).type("27")
    with visits.expect_response("**/api/page") as answered:
        visits.keyboard.press("Enter")
    assert answered.value.json()["total"] == 3
    visits.keyboard.press("Backspace")  # the last pill is edited, and no key is lost while the field takes its place
    visits.keyboard.press("Backspace")
    Hands(visits).type("8")
    with visits.expect_response("**/api/page") as answered:
        visits.keyboard.press("Enter")
    assert answered.value.json()["total"] == 4
    visits.keyboard.press("ArrowLeft")
    visits.keyboard.press("ArrowLeft")
    with visits.expect_response("**/api/page") as answered:
        visits.keyboard.press("Delete")
    assert answered.value.json()["total"] == 4
    assert "between" in pill(visits, 1).inner_text()


def test_a_filter_that_is_being_written_outlives_its_editor(visits: Page) -> None:
    write_filter(visits, "n >= 20")
    visits.keyboard.press("Escape")
    assert not visits.get_by_role("combobox", name="Add a filter").count()
    visits.get_by_role("button", name="Filter", exact=True).click()
    with visits.expect_response("**/api/page") as answered:
        visits.keyboard.press("Enter")
    assert answered.value.json()["total"] == 11
    with visits.expect_response("**/api/page") as answered:
        visits.get_by_role("button", name="Clear", exact=True).click()
    assert answered.value.json()["total"] == 30
    with visits.expect_response("**/api/page") as answered:
        visits.locator(".toast", has_text="cleared").get_by_role("button", name="Undo").click()
    assert answered.value.json()["total"] == 11


@pytest.fixture
def console(page: Page) -> Page:
    """The console, with nothing written."""
    page.evaluate("location.hash = '#/connection/shop/console'")
    page.locator(".cm-content").wait_for()
    write(page, "")
    return page


def write(page: Page, text: str) -> None:
    """Write a text over what the console holds."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    if text:
        Hands(page).paste(text)


def answers(page: Page) -> Locator:
    """The answers that are shown."""
    return page.get_by_role("region", name="Answers").locator(".answer")


THREE = "GET /_cluster/health\n\nGET /nope/_search\n\nGET /books/_count\n"


def test_run_all_goes_on_after_a_failure_or_says_what_it_did_not_send(console: Page) -> None:
    write(console, THREE)
    console.keyboard.press("Control+Shift+Enter")
    answers(console).nth(2).wait_for()
    assert [text.split()[0] for text in answers(console).all_inner_texts()] == ["200", "404", "200"]
    console.get_by_label("stop at a failure").click()
    console.get_by_role("button", name="Run all").click()
    left = console.get_by_role("region", name="Not sent")
    left.wait_for()
    assert "GET /books/_count" in left.inner_text()
    assert answers(console).count() == 2


def test_an_answer_of_another_kind_shows_its_first_tab(console: Page) -> None:
    for text, tab in (("GET /_cluster/health", "Tree"), ("GET /books/_search?size=2", "Grid"), ("GET /", "Tree")):
        write(console, text)
        with console.expect_response("**/api/console/execute"):
            console.keyboard.press("Control+Enter")
        answers(console).locator("code", has_text=re.compile(f"^{re.escape(text)}$")).wait_for()
        tabs = answers(console).get_by_role("tab")
        answers(console).get_by_role("tab", selected=True).and_(tabs.get_by_text(tab, exact=True)).wait_for()
        assert answers(console).get_by_role("tab", selected=True).count() == 1
        cells = answers(console).get_by_role("tabpanel").get_by_role("gridcell")
        cells.first.wait_for(state="visible" if tab == "Grid" else "detached")
    tabs.first.focus()
    console.keyboard.press("ArrowRight")
    assert console.evaluate("document.activeElement.ariaSelected") == "true"


def test_a_console_that_is_left_keeps_its_text_variables_and_answers(console: Page) -> None:
    write(console, "GET /${name}/_count?token_of=mine")
    console.get_by_role("button", name="Variables").click()
    Hands(console).write(console.get_by_label("Name 1"), "name")
    Hands(console).write(console.get_by_label("Value 1"), "books")
    console.get_by_role("button", name="Keep").click()
    console.get_by_role("button", name="Run", exact=True).click()
    answers(console).first.wait_for()
    show(console, "books")
    console.evaluate("location.hash = '#/connection/shop/console'")
    console.locator(".cm-content", has_text="token_of=mine").wait_for()
    answers(console).first.wait_for()
    console.get_by_role("button", name="Variables (1)").wait_for()


def test_answers_to_another_text_do_not_stand_beside_one_that_fails(console: Page) -> None:
    write(console, "GET /books/_count")
    console.keyboard.press("Control+Enter")
    answers(console).first.wait_for()
    write(console, "GET /${missing}/_count")
    console.keyboard.press("Control+Enter")
    console.get_by_role("region", name="Answers").get_by_role("alert").wait_for()
    assert answers(console).count() == 0


def test_each_kind_of_value_keeps_its_place_in_its_row(page: Page, cluster: Cluster) -> None:
    """An empty text, among others: a class of some other part of the page must not move it."""
    rows = [{"a": "text"}, {"a": ""}, {"a": None}, {}, {"a": ["x"]}, {"a": "x" * 400}, {"b": 5, "c": True, "d": "AAEC"}]
    kinds = {"a": "keyword", "b": "long", "c": "boolean", "d": "binary"}
    cluster.put("places", rows, {name: {"type": kind} for name, kind in kinds.items()})
    show(page, "places")
    boxes = page.evaluate("""() => [...document.querySelectorAll('.line:not([aria-hidden])')].map((line) => {
      const top = line.getBoundingClientRect().top;
      return [...line.querySelectorAll('.cell')].map((cell) => {
        const { top: at, height } = cell.getBoundingClientRect();
        const range = document.createRange();
        range.selectNodeContents(cell);
        const text = range.getBoundingClientRect();
        const inside = !cell.textContent || (text.top >= at - 1 && text.bottom <= at + height + 1);
        return [at - top, height, getComputedStyle(cell).position, inside];
      });
    })""")
    cluster.send("DELETE", "/places")
    assert {json.dumps(box) for line in boxes for box in line} == {'[0, 28, "absolute", true]'}


def test_rows_and_columns_stand_in_the_order_of_the_document(page: Page, cluster: Cluster) -> None:
    names = [f"f{number:02}" for number in range(40)]
    rows = [{name: f"{row} {name}" for name in names} for row in range(300)]
    cluster.put("ordered", rows, {name: {"type": "keyword"} for name in names})
    show(page, "ordered")
    page.locator("[role=gridcell]").first.click()
    for keys in ("Control+End", "PageUp", "Control+Home", "Control+ArrowRight", "End", "Home"):
        page.keyboard.press(keys)
        page.wait_for_timeout(500)
        read = page.evaluate("""() => {
          const of = (root, role, index) => [...root.querySelectorAll(`[role=${role}]`)].map((one) => +one[index]);
          const lines = [...document.querySelectorAll('.line:not([aria-hidden])')];
          return [
            lines.map((line) => +line.ariaRowIndex),
            of(document, 'columnheader', 'ariaColIndex'),
            ...lines.map((line) => of(line, 'gridcell', 'ariaColIndex')),
          ];
        }""")
        assert all(line == sorted(line) for line in read), keys
        assert page.evaluate("document.activeElement.getAttribute('role')") == "gridcell", keys
        if keys.endswith("Home"):
            assert page.locator("[role=grid]").evaluate("grid => grid.scrollLeft") == 0
    cluster.send("DELETE", "/ordered")
