"""The console in a real browser: charts of aggregations, layout, history, and what was edited after it was sent."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import browsing, read_address, serving, show
from workbench.browser.test_flows import command
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands, becomes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]

SEARCH = 'POST /orders/_search\n{"size":0,"aggs":'
BY_STATUS = f'{SEARCH}{{"status":{{"terms":{{"field":"status"}},"aggs":'
BY_MONTH = '{"months":{"date_histogram":{"field":"placed_at","calendar_interval":"month"}}}'
STATUS = f'{BY_STATUS}{{"mean":{{"avg":{{"field":"total"}}}}}}}}}}}}'
MONTHS = f"{SEARCH}{BY_MONTH}}}"
NESTED = f"{BY_STATUS}{BY_MONTH}}}}}}}"
SECTIONS = '{ Aggregate { Article(groupBy: ["section"]) { groupedBy { value } meta { count } } } }'


@pytest.fixture
def console(page: Page) -> Page:
    """The console, with nothing written."""
    return emptied(page, "shop")


def emptied(page: Page, connection: str) -> Page:
    page.evaluate("hash => { location.hash = hash }", f"#/connection/{connection}/console")
    page.get_by_role("textbox", name=f"Console of {connection}").wait_for()
    write(page, "")
    return page


def write(page: Page, text: str) -> None:
    """Write a text over what the console holds."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    if text:
        Hands(page).paste(text)


def run(page: Page, key: str = "Control+Enter") -> list[dict[str, Any]]:
    """Run by key, and return the answers once they are shown."""
    with page.expect_response("**/api/console/execute") as executed:
        page.keyboard.press(key)
    sent: list[dict[str, Any]] = executed.value.json()["answers"]
    becomes(page, lambda: cards(page).count() == len(sent))
    return sent


def cards(page: Page) -> Locator:
    return page.get_by_role("region", name="Answers").locator(".answer")


def written(page: Page) -> str:
    """What the editor holds, as far as it is drawn."""
    return "\n".join(line.rstrip("\n") for line in page.locator(".cm-line").all_inner_texts())


def bars(card: Locator) -> dict[str, str]:
    """The groups of a chart with their figures."""
    return dict(line.inner_text().split("\n") for line in card.locator(".group-bars > li").all())


def test_an_object_that_a_request_makes_or_drops_comes_and_goes_in_the_sidebar(console: Page) -> None:
    listed = console.get_by_role("navigation").get_by_role("link", name=re.compile("^made-here"))
    for request, shown in (("PUT /made-here", 1), ("DELETE /made-here", 0)):
        write(console, request)
        run(console)
        becomes(console, lambda count=shown: listed.count() == count)  # type: ignore[misc]


def test_groups_are_bars_with_exact_figures_and_the_grid_and_the_tree_are_beside_them(console: Page) -> None:
    write(console, STATUS)
    [answer] = run(console)
    card = cards(console).first
    buckets = json.loads(answer["text"])["aggregations"]["status"]["buckets"]
    card.locator(".group-bars").wait_for()
    assert bars(card) == {bucket["key"]: f"{bucket['doc_count']:,}" for bucket in buckets}
    widths = [bar.bounding_box()["width"] for bar in card.locator(".group-track > span").all()]  # type: ignore[index]
    for bucket, width in zip(buckets, widths, strict=True):
        assert abs(width / widths[0] - bucket["doc_count"] / buckets[0]["doc_count"]) < 0.02
    card.get_by_role("button", name="status.doc_count").click()
    console.keyboard.press("ArrowDown")
    console.keyboard.press("Enter")
    means = [re.search(r'"mean": \{\s*"value": ([0-9.]+)', part) for part in answer["text"].split('"key"')[1:]]
    assert [*bars(card).values()] == [mean[1] for mean in means if mean]
    card.get_by_role("tab", name="Chart").focus()
    console.keyboard.press("ArrowRight")
    card.get_by_role("gridcell").first.wait_for()
    assert card.get_by_role("gridcell").all_inner_texts()[:2] == ["delivered", str(buckets[0]["doc_count"])]
    console.keyboard.press("ArrowRight")
    card.get_by_role("treeitem").first.wait_for()
    assert "hits:\n[]" in card.get_by_role("treeitem").all_inner_texts()
    console.keyboard.press("ArrowLeft")
    console.keyboard.press("ArrowLeft")
    card.locator(".group-bars").wait_for()


def test_times_are_bars_that_the_arrows_and_the_mouse_go_through(console: Page) -> None:
    write(console, MONTHS)
    [answer] = run(console)
    buckets = json.loads(answer["text"])["aggregations"]["months"]["buckets"]
    plot = cards(console).first.get_by_role("slider")
    plot.wait_for()
    assert plot.locator(".times-bar").count() == len(buckets)
    plot.focus()
    console.keyboard.press("End")
    last = f"{buckets[-1]['key_as_string'][:10]} 00:00:00: {buckets[-1]['doc_count']:,}"
    assert cards(console).first.locator(".answer-chart-told").inner_text() == last
    assert plot.get_attribute("aria-valuetext") == last
    console.keyboard.press("ArrowLeft")
    assert buckets[-2]["key_as_string"][:10] in (plot.get_attribute("aria-valuetext") or "")
    box = plot.bounding_box()
    assert box
    console.mouse.move(box["x"] + 4, box["y"] + 30)
    assert buckets[0]["key_as_string"][:10] in (plot.get_attribute("aria-valuetext") or "")


def test_buckets_in_buckets_begin_as_a_grid_of_joined_keys_and_are_a_chart_for_each_outer_one(console: Page) -> None:
    write(console, NESTED)
    [answer] = run(console)
    card = cards(console).first
    buckets = json.loads(answer["text"])["aggregations"]["status"]["buckets"]
    card.get_by_role("gridcell").first.wait_for()
    assert card.get_by_role("gridcell").all_inner_texts()[:2] == ["delivered", "2025-01-01 00:00:00"]
    assert len(answer["page"]["rows"]) == sum(len(bucket["months"]["buckets"]) for bucket in buckets)
    card.get_by_role("tab", name="Chart").click()
    card.get_by_role("slider").nth(len(buckets) - 1).wait_for()
    assert card.locator(".answer-panel-line > strong").all_inner_texts() == [bucket["key"] for bucket in buckets]
    assert card.get_by_role("slider").count() == len(buckets)
    assert card.locator(".answer-chart-line").inner_text().startswith("months.doc_count")


def test_an_aggregate_of_weaviate_is_drawn_and_laid_out(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, vectors: int
) -> None:
    home = tmp_path_factory.mktemp("vectors")
    words = ("connections", "add", "library", "--type", "weaviate", "--host", "127.0.0.1", "--auth", "none", "--yes")
    command(home, *words, "--port", vectors)
    with serving(home) as file, browsing(chromium, read_address(file)) as page:
        emptied(page, "library")
        write(page, SECTIONS)
        [before] = run(page)
        card = cards(page).first
        card.locator(".group-bars").wait_for()
        groups = json.loads(before["text"])["data"]["Aggregate"]["Article"]
        assert bars(card) == {group["groupedBy"]["value"]: str(group["meta"]["count"]) for group in groups}
        page.locator(".cm-content").click()
        page.keyboard.press("Control+i")
        assert written(page).startswith('{\n  Aggregate {\n    Article(groupBy: ["section"]) {\n')
        assert cards(page).first.locator(".answer-edited").count() == 0  # it says the same
        [after] = run(page)
        assert after["text"] == before["text"]


RANGE = '{"range":{"pages":{"gte":9007199254740993,"lt":1.10e400}}}'
ODD = f'POST /books/_search\n{{"size":1,"size":  2, # two\n"query":{RANGE}}}'
LAID_OUT = """POST /books/_search
{
  "size": 1,
  "size": 2, # two
  "query": {
    "range": {
      "pages": {
        "gte": 9007199254740993,
        "lt": 1.10e400
      }
    }
  }
}"""
BULK = 'POST /_bulk\n{"index":\n{"_index":"laid","_id":"1"}}\n{"n" :  12345678901234567890}'


def test_a_request_is_laid_out_by_key_and_button_and_one_step_takes_it_back(console: Page) -> None:
    write(console, f"{ODD}\n\n{BULK}")
    console.keyboard.press("Control+Home")
    console.keyboard.press("Control+i")
    assert written(console) == f"{LAID_OUT}\n\n{BULK}"
    console.keyboard.press("Control+z")
    assert written(console) == f"{ODD}\n\n{BULK}"
    console.keyboard.press("Control+End")
    console.get_by_role("button", name="Format").click()
    lines = 'POST /_bulk\n{"index": {"_index": "laid", "_id": "1"}}\n{"n": 12345678901234567890}'
    assert written(console) == f"{ODD}\n\n{lines}"
    Hands(console).type(" ")  # the editor has the focus again
    assert written(console) == f"{ODD}\n\n{lines} "


def test_what_is_sent_is_the_same_after_the_layout(console: Page) -> None:
    for text in (ODD, BULK):
        write(console, text)
        [before] = run(console)
        console.keyboard.press("Control+i")
        [after] = run(console)
        signs = [re.sub(r"\s", "", answer["request"]["body"]) for answer in (before, after)]
        assert signs[0] == signs[1]
        assert before["request"]["path"] == after["request"]["path"]


def test_a_text_that_cannot_be_laid_out_stays_and_says_where(console: Page) -> None:
    write(console, 'GET /a\n\nPOST /books/_search\n{"query": [1}')
    console.keyboard.press("Control+i")
    console.locator(".toast", has_text="Line 4: this } closes nothing. Nothing was changed.").wait_for()
    assert written(console) == 'GET /a\n\nPOST /books/_search\n{"query": [1}'


TWO = 'POST /books/_search\n{"size": 1}\n\nGET /books/_count\n'


def stale(page: Page) -> list[bool]:
    return [card.locator(".answer-edited").count() > 0 for card in cards(page).all()]


def test_a_request_that_was_edited_after_it_was_sent_is_marked_until_it_says_the_same_again(console: Page) -> None:
    hands = Hands(console)
    write(console, TWO)
    run(console, "Control+Shift+Enter")
    assert stale(console) == [False, False]
    console.keyboard.press("Control+Home")
    hands.type("# a note\n")
    console.keyboard.press("Control+End")
    hands.type("# another\n\nGET /_cat/indices")
    assert stale(console) == [False, False]
    assert console.locator(".cm-unsent").count() == 0
    for _ in range(3):
        console.keyboard.press("ArrowUp")
    console.keyboard.press("End")
    hands.type("?q=x")
    assert stale(console) == [False, True]
    assert console.locator(".cm-unsent", has_text="GET /books/_count?q=x").count() == 1
    for _ in "?q=x":
        console.keyboard.press("Backspace")
    assert stale(console) == [False, False]
    console.keyboard.press("ArrowUp")
    console.keyboard.press("ArrowUp")
    console.keyboard.press("End")
    console.keyboard.press("ArrowLeft")
    hands.type("0")
    assert stale(console) == [True, False]
    run(console)
    assert stale(console) == [False]


def test_a_body_below_a_request_that_had_none_makes_it_another_request(console: Page) -> None:
    write(console, "POST /books/_search")
    run(console)
    Hands(console).type('\n{"size": 3')
    assert stale(console) == [True]


def test_an_edit_while_the_answer_is_on_its_way_or_after_the_console_was_left_is_seen(console: Page) -> None:
    write(console, "GET /books/_count")
    held: list[Any] = []
    console.route("**/api/console/execute", lambda route: held.append(route))
    console.keyboard.press("Control+Enter")
    becomes(console, lambda: bool(held))
    Hands(console).type("?q=tea")
    held[0].continue_()
    cards(console).first.wait_for()
    assert stale(console) == [True]
    console.unroute("**/api/console/execute")
    show(console, "books")
    console.evaluate("location.hash = '#/connection/shop/console'")
    cards(console).first.wait_for()
    becomes(console, lambda: stale(console) == [True])
    console.locator(".cm-content").click()
    console.keyboard.press("Control+End")
    for _ in "?q=tea":
        console.keyboard.press("Backspace")
    assert stale(console) == [False]


def test_another_value_of_a_variable_makes_it_another_request(console: Page) -> None:
    def set_name(value: str) -> None:
        console.get_by_role("button", name=re.compile("^Variables")).click()
        Hands(console).write(console.get_by_label("Name 1"), "name")
        Hands(console).write(console.get_by_label("Value 1"), value)
        console.get_by_role("button", name="Keep").click()

    write(console, "GET /${name}/_count")
    set_name("books")
    console.locator(".cm-content").click()
    run(console)
    assert stale(console) == [False]
    set_name("orders")
    assert stale(console) == [True]


def test_a_history_is_searched_shown_and_taken_by_keys(console: Page) -> None:
    hands = Hands(console)
    for text in (f"# first\n{STATUS}", "GET /books/_count?q=past", "GET /orders/_count?q=past"):
        write(console, text)
        run(console)
    console.keyboard.press("Control+h")
    field = console.get_by_role("combobox", name="Search what was run")
    field.wait_for()
    options = console.get_by_role("option")
    options.first.wait_for()
    assert options.first.inner_text().startswith("GET /orders/_count?q=past")
    hands.type("Q=PAST get")
    becomes(console, lambda: all("q=past" in text for text in options.all_inner_texts()))
    console.keyboard.press("ArrowDown")
    assert console.get_by_role("region", name="The text that is chosen").inner_text() == "GET /books/_count?q=past"
    console.keyboard.press("Enter")
    field.wait_for(state="detached")
    becomes(console, lambda: written(console) == "GET /books/_count?q=past")
    assert stale(console) == [True]
    console.keyboard.press("Control+z")  # the editor has the focus
    becomes(console, lambda: written(console) == "GET /orders/_count?q=past")
    assert stale(console) == [False]
    console.get_by_role("button", name="History").click()
    hands.type("first mean")
    becomes(console, lambda: options.count() == 1)
    assert "# first" in console.get_by_role("region", name="The text that is chosen").inner_text()
    hands.type(" nothing")
    console.get_by_text("Nothing fits.").wait_for()
    console.keyboard.press("Escape")
    field.wait_for(state="detached")
    assert written(console) == "GET /orders/_count?q=past"


ELASTIC = "https://www.elastic.co/docs/api/doc/elasticsearch"


def test_the_page_on_the_request_under_the_cursor_is_one_link_away_and_nothing_is_fetched(console: Page) -> None:
    asked: list[str] = []
    console.context.on("request", lambda request: "elastic" in request.url and asked.append(request.url))
    write(console, "GET /_cat/indices\n\nPOST /books/_search\n{}\n\nGET /nothing")
    link = console.get_by_role("link", name="Documentation")
    console.keyboard.press("Control+Home")
    becomes(console, lambda: link.get_attribute("href") == f"{ELASTIC}/operation/operation-cat-indices")
    assert link.inner_text().split() == ["Documentation", "www.elastic.co"]
    assert [link.get_attribute(name) for name in ("target", "rel")] == ["_blank", "noopener noreferrer"]
    for _ in range(3):
        console.keyboard.press("ArrowDown")
    becomes(console, lambda: link.get_attribute("href") == f"{ELASTIC}/operation/operation-search")
    console.keyboard.press("Escape")
    console.keyboard.press("Shift+Tab")
    for _ in range(9):
        if console.evaluate("document.activeElement.classList.contains('request-docs')"):
            break
        console.keyboard.press("ArrowLeft")
    assert not asked
    console.context.route("https://www.elastic.co/**", lambda route: route.fulfill(body="<h1>pages</h1>"))
    with console.context.expect_page() as opened:
        console.keyboard.press("Enter")
    opened.value.wait_for_load_state()
    assert opened.value.url == f"{ELASTIC}/operation/operation-search"
    assert opened.value.evaluate("window.opener === null && document.referrer === ''")
    opened.value.close()
    write(console, "")
    link.wait_for(state="detached")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 400])
def test_charts_marks_and_the_history_have_no_serious_finding_and_fit(console: Page, width: int, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: python plugins/workbench/build.py")
    console.set_viewport_size({"width": width, "height": 800})
    console.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    write(console, f"{STATUS}\n\n{MONTHS}\n\n{NESTED}")
    run(console, "Control+Shift+Enter")
    cards(console).nth(2).get_by_role("tab", name="Chart").click()
    console.get_by_role("slider").nth(3).wait_for()
    console.locator(".cm-content").click()
    console.keyboard.press("Control+Home")
    console.keyboard.press("End")
    Hands(console).type("?q=x")
    console.locator(".answer-edited").wait_for()
    assert not findings(console)
    assert console.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    wide = "list => list.filter(one => one.scrollWidth > one.clientWidth).length"
    assert console.locator(".answer-chart").evaluate_all(wide) == 0
    console.keyboard.press("Control+h")
    console.get_by_role("option").first.wait_for()
    assert not findings(console)
    assert console.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
