"""A span of time beside the filter: chosen by mouse and by keyboard, kept while time goes on, and shown as code."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import Cluster, browsing, rows_of, show
from workbench.browser.walking import Hands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page, Request

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

EVERY, LINES = 36, 1_000  # seconds between two lines: ten hours of them


@pytest.fixture(scope="module")
def lines(cluster: Cluster) -> str:
    """The name of an index with a line every 36 seconds until now."""
    now = datetime.now(UTC)
    documents = [{"@timestamp": (now - timedelta(seconds=EVERY * at)).isoformat(), "n": at} for at in range(LINES)]
    cluster.put("lines", documents, {"@timestamp": {"type": "date"}, "n": {"type": "integer"}})
    return "lines"


@pytest.fixture
def logs(page: Page, lines: str) -> Page:
    """The rows of the index."""
    show(page, lines)
    return page


@pytest.fixture
def sent(logs: Page) -> list[dict[str, Any]]:
    """The requests for pages, as they are sent."""
    found: list[dict[str, Any]] = []

    def note(request: Request) -> None:
        if request.url.endswith("/api/page"):
            found.append(rows_of(request) | {"offset": json.loads(request.post_data or "")["offset"]})

    logs.on("request", note)
    return found


def control(page: Page) -> Locator:
    """The control of the span."""
    return page.get_by_role("button", name="Time: ")


def choose(page: Page, name: str) -> dict[str, Any]:
    """Choose a span in the menu, and return the page that is then shown."""
    control(page).click()
    with page.expect_response("**/api/page") as answered:
        page.get_by_role("menuitemcheckbox", name=name, exact=True).click()
    answer: dict[str, Any] = answered.value.json()
    return answer


def test_a_preset_is_asked_for_and_its_range_holds_while_one_scrolls(logs: Page, sent: list[dict[str, Any]]) -> None:
    assert control(logs).inner_text() == "Time: all"
    logs.get_by_text("1,000 rows").wait_for()
    answer = choose(logs, "last 7 days")
    assert answer["total"] == LINES
    assert sent[0]["span"] == {"since": "-7d"}
    assert control(logs).inner_text() == "Time: last 7 days"
    time.sleep(1.5)  # another "7 days ago" than before
    logs.locator(".cell").first.click()
    logs.keyboard.press("Control+End")
    logs.locator(f'[role=row][aria-rowindex="{LINES + 1}"] [role=gridcell]:not(.loading)').first.wait_for()
    assert len(sent) > 1
    assert {json.dumps(one["span"]) for one in sent[1:]} == {
        json.dumps({"since": answer["time"]["since"], "until": None})
    }
    assert logs.get_by_role("alert").count() == 0


def test_a_preset_is_chosen_by_keyboard_and_unchosen(logs: Page) -> None:
    control(logs).focus()
    logs.keyboard.press("Enter")
    with logs.expect_response("**/api/page") as answered:
        logs.keyboard.press("ArrowDown")
        logs.keyboard.press("Enter")
    assert 95 <= answered.value.json()["total"] <= 101
    assert control(logs).inner_text() == "Time: last hour"
    control(logs).click()
    assert logs.get_by_role("menuitemcheckbox", name="last hour").get_attribute("aria-checked") == "true"
    logs.keyboard.press("Escape")
    assert choose(logs, "all time")["total"] == LINES


def test_an_own_span_is_in_the_time_of_the_browser(chromium: Browser, address: str, lines: str) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    since, until = now - timedelta(hours=3), now - timedelta(hours=1)
    with browsing(chromium, address, timezone_id="Asia/Kathmandu", locale="en-GB") as page:
        show(page, lines)
        control(page).click()
        page.get_by_role("menuitem", name="From").click()
        dialog = page.get_by_role("dialog", name="Rows by @timestamp")
        ahead = timedelta(hours=5, minutes=45)
        assert "Kathmandu" in dialog.inner_text() or "Katmandu" in dialog.inner_text()
        hands = Hands(page)
        hands.set_time(dialog.get_by_label("From"), until + ahead)
        hands.set_time(dialog.get_by_label("To"), since + ahead)
        dialog.get_by_text("From is not before to").wait_for()
        assert dialog.get_by_role("button", name="Show").is_disabled()
        hands.set_time(dialog.get_by_label("From"), since + ahead)
        hands.set_time(dialog.get_by_label("To"), until + ahead)
        with page.expect_response("**/api/page") as answered:
            dialog.get_by_label("To").press("Enter")
        asked = rows_of(answered.value.request)
        assert asked["span"] == {name: f"{at:%Y-%m-%dT%H:%M:%S}Z" for name, at in (("since", since), ("until", until))}
        assert 199 <= answered.value.json()["total"] <= 201
        assert (since + ahead).strftime("%Y-%m-%d %H:%M") in control(page).inner_text()
        control(page).click()
        page.get_by_role("menuitem", name="From").click()
        kept = datetime.fromisoformat(dialog.get_by_label("To").input_value())  # a browser leaves out :00
        assert kept == (until + ahead).replace(tzinfo=None)


def test_the_span_is_in_the_command_and_the_code_and_exports_what_is_shown(logs: Page, exported: Path) -> None:
    logs.get_by_role("button", name="Filter", exact=True).click()
    total = choose(logs, "last hour")["total"]
    copied = {}
    for name in ("command", "Python"):
        logs.wait_for_timeout(1_500)
        logs.get_by_role("button", name="As code").click()
        logs.get_by_role("menuitem", name=f"Copy as {name}").click()
        logs.get_by_text("Copied the").first.wait_for()
        copied[name] = logs.evaluate("navigator.clipboard.readText()")
    assert "--since=-1h" in copied["command"]
    assert "span=Span(since='-1h'" in copied["Python"]
    logs.get_by_role("button", name="Export", exact=True).click()
    dialog = logs.get_by_role("dialog")
    Hands(logs).write(dialog.get_by_label("File name"), "hour.ndjson")
    dialog.get_by_role("button", name="Export").click()
    logs.locator(".card", has_text="hour.ndjson").locator(".badge", has_text="finished").wait_for()
    assert len((exported / "hour.ndjson").read_text().splitlines()) == total


def test_an_object_without_a_time_column_has_no_control(orders: Page) -> None:
    with orders.expect_response("**/api/describe"):
        orders.reload()
    orders.locator(".cell.when").first.wait_for()
    assert control(orders).count() == 0


@pytest.fixture(scope="module", autouse=True)
def _remove(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.send("DELETE", "/lines")


def test_a_part_of_a_relative_span_is_a_span_of_its_own_which_stays_while_time_goes_on(
    logs: Page, sent: list[dict[str, Any]]
) -> None:
    answer = choose(logs, "last 24 hours")
    chart = logs.get_by_role("region", name="Rows over time")
    if not chart.count():
        logs.get_by_role("button", name="Over time").press("Enter")
    bars = chart.get_by_role("option")
    bars.last.wait_for(state="attached")
    chart.get_by_role("listbox").focus()
    filled = [at for at, bar in enumerate(bars.all()) if not (bar.get_attribute("aria-label") or "").startswith("0 ")]
    logs.keyboard.press("Home")
    for _ in range(filled[1]):
        logs.keyboard.press("ArrowRight")
    told = chart.locator(".time-chart-told").inner_text()
    with logs.expect_response("**/api/page") as answered:
        logs.keyboard.press("Enter")
    part = answered.value.json()
    assert f"{part['total']} rows" in told
    assert sent[-1]["filters"] == []
    span = sent[-1]["span"]
    assert answer["time"]["since"] <= span["since"] < span["until"]
    assert "last" not in control(logs).inner_text()
    time.sleep(1.2)
    with logs.expect_response("**/api/page") as answered:
        logs.get_by_role("button", name="Refresh", exact=True).click()
    assert (answered.value.json()["total"], answered.value.json()["time"]["since"]) == (
        part["total"],
        part["time"]["since"],
    )
    logs.go_back()
    logs.get_by_role("button", name="Time: last 24 hours").wait_for()
