"""Two rows beside each other in the side pane: by key, by mouse and by the palette."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, show
from workbench.browser.test_importing import accessible
from workbench.browser.walking import Hands, becomes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(200)]
LONG = "<b>a</b>" * 40_000
"""More than a page holds of a cell."""


@pytest.fixture
def trio(page: Page, cluster: Cluster) -> Iterator[Page]:
    """A grid of three rows."""
    rows = [
        {"n": 1, "word": "Malmö", "text": "1", "long": LONG, "same": "x"},
        {"n": 2, "word": "Lund", "long": LONG, "same": "y"},
        {"n": 1, "word": "Malmö", "text": None, "long": LONG, "same": "x"},
    ]
    kinds = {"n": "long", "word": "keyword", "text": "keyword", "long": "text", "same": "keyword"}
    cluster.put("trio", rows, {name: {"type": kind} for name, kind in kinds.items()})
    show(page, "trio")
    yield page
    cluster.send("DELETE", "/trio")


def cell(page: Page, row: int) -> Locator:
    return page.locator(f'[role=row][aria-rowindex="{row + 1}"] .cell:visible').nth(1)


def lines(page: Page) -> dict[str, list[str]]:
    rows = page.locator(".compared tbody tr").all_inner_texts()
    return {name: values for name, *values in (row.split("\t") for row in rows)}


def test_keys_compare_two_rows_and_show_only_what_differs(trio: Page) -> None:
    cell(trio, 1).click()
    trio.keyboard.press("Shift+ArrowDown")
    trio.keyboard.press("Space")
    trio.get_by_role("table", name="Two rows, compared").wait_for()
    cut = ["Their beginnings are equal; the rest is not here."]
    differing = {"n": ["1", "2"], "same": ['"x"', '"y"'], "text": ['"1"', "missing"], "word": ['"Malmö"', '"Lund"']}
    assert lines(trio) == {"_id": ['"0"', '"1"'], "long": cut} | differing
    assert trio.locator(".compared mark").all_inner_texts()[-2:] == ["Malmö", "Lund"]
    accessible(trio)
    trio.keyboard.press("Shift+ArrowDown")  # the first and the third
    becomes(trio, lambda: lines(trio) == {"_id": ['"0"', '"2"'], "long": cut, "text": ['"1"', "null"]})
    equal = trio.get_by_role("checkbox", name="equal")
    equal.focus()
    trio.keyboard.press("Space")
    becomes(trio, lambda: lines(trio).get("same") == ['"x"'])
    cell(trio, 3).focus()
    trio.keyboard.press("Space")
    trio.get_by_role("complementary", name="Side pane").wait_for(state="detached")


def test_the_mouse_and_the_palette_compare_two_rows_and_the_pane_asks_for_two(trio: Page) -> None:
    cell(trio, 1).click()
    cell(trio, 3).click(modifiers=["Shift"])
    cell(trio, 3).click(button="right")
    trio.get_by_role("menuitem", name="Compare rows 1 and 3").click()
    trio.get_by_role("table", name="Two rows, compared").wait_for()
    assert trio.get_by_role("tab", name="Compare").get_attribute("aria-selected") == "true"
    cell(trio, 2).click()
    trio.get_by_text("Select two rows").wait_for()
    trio.keyboard.press("Shift+ArrowUp")
    trio.get_by_role("tab", name="Value").click()
    trio.keyboard.press("Control+k")
    Hands(trio).type("compare")
    trio.keyboard.press("Enter")
    trio.get_by_role("table", name="Two rows, compared").wait_for()
    assert trio.locator(".compared thead th").all_inner_texts() == ["row 1", "row 2"]
