"""Rows over time: bars to drag over or go through, their span in words, and rows that are read again by themselves."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, rows_of, show
from workbench.browser.walking import becomes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page, Request

pytestmark = [pytest.mark.slow, pytest.mark.browser]

FIRST = datetime(2026, 3, 3, tzinfo=UTC)
HOURS = 168
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def visits(cluster: Cluster) -> Iterator[str]:
    """The name of an index with a row every hour of a week, from 3 to 9 March 2026."""
    hours = [(FIRST + timedelta(hours=at)).isoformat() for at in range(HOURS)]
    documents = [{"@timestamp": hour, HOSTILE: hour, "n": at} for at, hour in enumerate(hours)]
    cluster.put("visits", documents, {"@timestamp": {"type": "date"}, HOSTILE: {"type": "date"}, "n": {"type": "long"}})
    yield "visits"
    cluster.send("DELETE", "/visits")


@pytest.fixture
def chart(page: Page, visits: str) -> Locator:
    """The chart over the rows."""
    show(page, visits)
    page.get_by_text("3 to 9 March 2026, bars of 6 hours").wait_for()
    return page.get_by_role("region", name="Rows over time")


def bounds_of(request: Request) -> list[tuple[str, str]]:
    """Return the operators and values of the filter that a request of the page holds."""
    return [(row["op"], row["value"]) for row in rows_of(request)["filters"]]


def test_a_drag_over_bars_shows_their_rows_and_back_undoes_it(page: Page, chart: Locator) -> None:
    asked: list[str] = []
    page.on("request", lambda request: request.url.endswith("/api/summarize") and asked.append(request.url))
    bars = chart.get_by_role("option")
    assert bars.count() == 28
    assert {bar.get_attribute("aria-label") or "" for bar in bars.all()[:1]} == {"6 rows, 3 March 2026, 00:00 to 06:00"}
    boxes = [bars.nth(at).bounding_box() for at in (4, 7)]
    places = [(box["x"] + box["width"] / 2, box["y"] + 20) for box in boxes if box]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=4)
    chart.get_by_text("24 rows, 4 March 2026", exact=True).wait_for()
    with page.expect_response("**/api/page") as answered:
        page.mouse.up()
    assert bounds_of(answered.value.request) == [(">=", "2026-03-04T00:00:00Z"), ("<", "2026-03-05T00:00:00Z")]
    assert answered.value.json()["total"] == 24
    chart.get_by_text("4 March 2026, bars of 30 minutes").wait_for()
    page.go_back()
    chart.get_by_text("3 to 9 March 2026, bars of 6 hours").wait_for()
    assert page.get_by_role("group", name=re.compile("^Filter 1")).count() == 0
    assert len(asked) == 2


def test_the_keys_go_through_bars_and_a_further_part_takes_the_place_of_the_first(page: Page, chart: Locator) -> None:
    chart.get_by_role("listbox").focus()
    for key in ("Home", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    chart.get_by_text("18 rows, 3 March 2026, 06:00 to 24:00").wait_for()
    with page.expect_response("**/api/page") as answered:
        page.keyboard.press("Enter")
    assert bounds_of(answered.value.request) == [(">=", "2026-03-03T06:00:00Z"), ("<", "2026-03-04T00:00:00Z")]
    chart.get_by_text("3 March 2026, 06:00 to 24:00, bars of 30 minutes").wait_for()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    with page.expect_response("**/api/page") as answered:
        page.keyboard.press("Enter")
    assert bounds_of(answered.value.request) == [(">=", "2026-03-03T23:00:00Z"), ("<", "2026-03-03T23:30:00Z")]
    chart.get_by_text("all at 2026-03-03 23:00:00").wait_for()
    assert page.get_by_role("group", name=re.compile(r"^Filter \d$")).count() == 2


def test_another_column_and_no_chart_are_remembered_and_a_failure_says_so(page: Page, chart: Locator) -> None:
    page.route("**/api/summarize", lambda route: route.abort())
    chart.get_by_role("button", name="@timestamp").click()
    page.get_by_role("menuitemcheckbox", name=HOSTILE).click()
    chart.get_by_role("alert").filter(has_text="does not answer").wait_for()
    page.unroute("**/api/summarize")
    chart.get_by_role("button", name="Try again").click()
    chart.get_by_text("3 to 9 March 2026, bars of 6 hours").wait_for()
    with page.expect_response("**/api/preferences/set"):
        page.get_by_role("button", name="Over time").press("Enter")
    page.reload()
    button = page.get_by_role("button", name="Over time")
    button.wait_for()
    assert button.get_attribute("aria-pressed") == "false"
    assert chart.count() == 0
    with page.expect_request("**/api/summarize") as sent:
        button.press("Enter")
    assert sent.value.post_data_json["column"] == HOSTILE
    with page.expect_response("**/api/preferences/set"):
        chart.get_by_role("button", name=HOSTILE).click()
        page.get_by_role("menuitemcheckbox", name="@timestamp").click()


def test_rows_read_again_by_themselves_stay_where_they_are(page: Page, cluster: Cluster, chart: Locator) -> None:
    page.clock.install()
    grid = page.locator(".grid")
    page.locator('[role=row][aria-rowindex="2"] [role=gridcell]', has_text="2026").first.click()
    for _ in range(5):
        page.keyboard.press("PageDown")
    place = grid.evaluate("grid => [grid.scrollTop, document.activeElement.innerText]")
    assert place[0] > 0
    page.get_by_role("button", name="Refresh by itself").press("Enter")
    page.get_by_role("menuitemcheckbox", name="every 5 seconds").press("Enter")
    page.locator(".grid [tabindex='0']").first.focus()
    late = (FIRST + timedelta(hours=HOURS + 18)).isoformat()
    path = "/visits/_doc/late?refresh=true"
    cluster.send("PUT", path, f'{{"@timestamp": "{late}"}}')
    asked: list[str] = []
    page.on("request", lambda request: request.url.endswith("/api/page") and asked.append(request.url))
    try:
        page.keyboard.press("F2")
        page.locator(".cell-editor").wait_for()
        page.clock.fast_forward(5_500)
        page.wait_for_timeout(300)
        assert not asked  # the row of a value that is being written stays where it is
        page.keyboard.press("Escape")
        page.clock.fast_forward(5_500)
        page.get_by_text(f"{HOURS + 1} rows", exact=True).wait_for()
        chart.get_by_text("3 to 10 March 2026").wait_for()
        last = "1 row, 10 March 2026, 18:00 to 24:00"
        becomes(page, lambda: chart.get_by_role("option").last.get_attribute("aria-label") == last)
        assert grid.evaluate("grid => [grid.scrollTop, document.activeElement.innerText]") == place
    finally:
        cluster.send("DELETE", path)
