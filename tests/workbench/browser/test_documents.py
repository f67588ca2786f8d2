"""A row is written as a document: several values are one change, faults are named, and digits stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, show
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands, becomes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]

BIG = 9_007_199_254_740_993
BODY = {"deep": {"n": 12345678901234567890, "list": [1, None]}}


@pytest.fixture
def records(page: Page, cluster: Cluster) -> Iterator[Page]:
    """A grid of rows with numbers that a float cannot hold, and a document."""
    rows = [{"title": f"Row {at}", "big": BIG + at, "price": at + 0.5, "body": BODY} for at in range(9)]
    kinds = {"title": "keyword", "big": "long", "price": "double"}
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    cluster.put("records", rows, properties | {"body": {"type": "object", "enabled": False}})
    show(page, "records")
    yield page
    cluster.send("DELETE", "/records")


def open_the_row(page: Page, number: int) -> None:
    """Go to a row, from 1, and edit it as a document with the keys."""
    page.locator(f'[role=row][aria-rowindex="{number + 1}"] [role=gridcell]').nth(1).click()
    page.keyboard.press("Shift+Enter")
    page.get_by_role("textbox", name=f"Row {number - 1} as JSON").wait_for()


def line(page: Page, text: str) -> Locator:
    """A line of the document."""
    return page.locator(".row-editor .cm-line", has_text=text)


def write_over(page: Page, text: str, old: str, new: str) -> None:
    """Go to the end of a line, and type over what is there."""
    line(page, text).click()
    page.keyboard.press("End")
    for _ in old:
        page.keyboard.press("Backspace")
    Hands(page).type(new)


def send(page: Page) -> str:
    """Send the only change; returns the request that was reviewed."""
    page.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
    request = page.locator(".request").first.inner_text()
    with page.expect_response("**/api/changes/apply"):
        page.get_by_role("button", name="Send 1 request").click()
    page.locator(".badge", has_text="applied").wait_for()
    return request


def test_several_values_are_one_change_with_every_digit(records: Page, cluster: Cluster) -> None:
    open_the_row(records, 2)
    write_over(records, '"big"', "4,", "5,")
    write_over(records, '"n"', "90,", "91,")
    records.get_by_text("Differs: big, body").wait_for()
    assert "cm-changed" in str(line(records, '"big"').get_attribute("class"))
    records.keyboard.press("Control+Enter")
    bar = records.get_by_role("region", name="Changes")
    bar.get_by_text("1 changed").wait_for()
    records.keyboard.press("Control+z")  # the focus is in the grid again
    bar.wait_for(state="detached")
    records.keyboard.press("Control+Shift+z")
    request = send(records)
    assert str(BIG + 2) in request
    stored = cluster.send("GET", "/records/_doc/1")["_source"]
    deep = {"n": 12345678901234567891, "list": [1, None]}
    assert stored == {"title": "Row 1", "big": BIG + 2, "price": 1.5, "body": {"deep": deep}}


def test_faults_are_named_with_their_lines_and_nothing_is_lost(records: Page) -> None:
    open_the_row(records, 1)
    change = records.get_by_role("button", name="Change", exact=True)
    assert change.is_disabled()  # nothing differs
    write_over(records, '"_id"', '0",', '9",')
    write_over(records, '"price"', "0.5,", '"much",')
    faults = records.get_by_role("list", name="What is wrong")
    becomes(records, lambda: "price takes a number" in faults.inner_text())
    assert "_id is the key of the row" in faults.inner_text()
    assert change.is_disabled()
    if AXE.is_file():
        for theme in ("light", "dark"):
            records.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            assert not findings(records)
    faults.get_by_role("button").first.click()
    assert "cm-activeLine" in str(line(records, '"_id"').get_attribute("class"))
    records.keyboard.press("Escape")
    records.locator(".toast", has_text="dropped").get_by_role("button", name="Undo").click()
    line(records, '"much"').wait_for()
    records.get_by_role("button", name="Close the pane").click()
    records.get_by_role("button", name="Side pane").click()
    line(records, '"much"').wait_for()
    records.locator(".object", has_text="books").click()
    records.get_by_role("dialog", name="A row is not finished").get_by_role("button", name="Keep it and leave").click()
    records.get_by_role("heading", name="books").wait_for()
    records.go_back()
    line(records, '"much"').wait_for()
    assert records.get_by_role("region", name="Changes").count() == 0


def test_a_duplicate_is_a_new_row_whose_key_is_free(records: Page, cluster: Cluster) -> None:
    records.locator('[role=row][aria-rowindex="4"] [role=gridcell]').nth(1).click(button="right")
    records.get_by_role("menuitem", name="Duplicate the row").click()
    records.get_by_role("textbox", name="New row as JSON").wait_for()
    assert not line(records, '"_id"').count()
    write_over(records, '"title"', '2"', 'copied"')
    Hands(records).write(records.get_by_label("Id", exact=True), "twin")
    records.get_by_role("button", name="Add to the changes").click()
    send(records)
    stored = cluster.send("GET", "/records/_doc/twin")["_source"]
    assert stored == {"title": "Row copied", "big": BIG + 2, "price": 2.5, "body": BODY}
