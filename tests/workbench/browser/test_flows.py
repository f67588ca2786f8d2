"""What a person does from end to end, each in a workbench of its own: connections, drivers, production, tenants."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from workbench.browser.conftest import Cluster, address_of, browsing, read_address, rows_of, serving, show
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands, add_filter, pill, write_filter

import wheelhouse
from dragoman_registry.publisher import publish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]

PASSWORD = "correct-horse-9"


def command(home: Path, *words: object) -> str:
    """Run a command of dragoman in a home, and return its output."""
    line = [sys.executable, "-m", "dragoman", *map(str, words)]
    done = subprocess.run(line, env={**os.environ, "DRAGOMAN_HOME": str(home)}, capture_output=True, check=True)
    return done.stdout.decode()


@contextmanager
def visit(chromium: Browser, home: Path, *words: object) -> Iterator[Page]:
    """Serve a workbench in a home, and open a tab in it."""
    with serving(home, *words) as file, browsing(chromium, read_address(file)) as tab:
        yield tab


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An empty home."""
    return tmp_path / "home"


@pytest.fixture
def shop(empty: Path, cluster: Cluster) -> Path:
    """A home with the sample cluster saved."""
    command(empty, *SAVE, "--port", cluster.port)
    return empty


SAVE = ("connections", "add", "shop", "--type", "elasticsearch", "--host", "127.0.0.1", "--auth", "none", "--yes")


def test_a_connection_is_made_edited_and_removed(chromium: Browser, empty: Path, cluster: Cluster) -> None:
    """P2: the driver is offered before the form; P3: and installs with progress."""
    with visit(chromium, empty) as page:
        page.get_by_text("No connection is saved yet").wait_for()
        page.get_by_role("button", name="New connection").last.click()
        page.get_by_role("link", name="Elasticsearch").click()
        page.get_by_role("heading", name="is not installed yet").wait_for()
        assert page.locator("form").count() == 0
        page.get_by_role("button", name="Install").click()
        page.get_by_role("heading", name="New Elasticsearch").wait_for()
        hands = Hands(page)
        hands.write(page.get_by_label("Name", exact=True), "mine")
        hands.write(page.get_by_role("textbox", name="Host required"), "127.0.0.1")
        hands.write(page.get_by_label("Port"), str(cluster.port))
        hands.choose(page.get_by_label("Auth Method"), "username-password")
        hands.write(page.get_by_label("Username"), "elastic")
        hands.write(page.get_by_label("Password"), PASSWORD)
        page.get_by_role("button", name="Save & Connect").click()
        page.get_by_role("heading", name="mine").wait_for()
        page.locator(".object", has_text="orders").wait_for()
        assert "stored" in command(empty, "connections", "show", "mine").lower()
        kept = [file for file in empty.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
        assert [file.stat().st_mode & 0o777 for file in kept] == [0o600]
        elsewhere = page.locator(".toast", has_text="changed elsewhere")
        page.wait_for_timeout(2_200)  # the workbench looks at its files every two seconds
        assert not elsewhere.count()
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("menuitem", name="Edit this connection").click()
        page.get_by_role("heading", name="Edit mine").wait_for()
        assert PASSWORD not in page.content()
        hands.choose(page.get_by_label("Auth Method"), "none")
        with page.expect_response("**/api/connections/save") as saved:
            page.get_by_role("button", name="Save", exact=True).click()
        assert saved.value.ok, saved.value.text()
        page.get_by_role("heading", name="Connections").wait_for()
        page.get_by_role("button", name="More about mine").click()
        page.get_by_role("menuitem", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        page.get_by_text("No connection is saved yet").wait_for()
        assert not [file for file in empty.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
        page.wait_for_timeout(3_000)
        assert not elsewhere.count()
        command(empty, *SAVE, "--port", cluster.port)
        elsewhere.wait_for()


def test_opening_installs_a_missing_driver_before_the_eyes(chromium: Browser, shop: Path) -> None:
    """P3."""
    command(shop, "plugins", "remove", "elasticsearch", "--yes")
    with visit(chromium, shop) as page:
        page.evaluate("""() => {
          window.seen = new Set();
          new MutationObserver(() => {
            for (const one of document.querySelectorAll('.progress')) window.seen.add(one.innerText);
          }).observe(document.body, { childList: true, subtree: true, characterData: true });
        }""")
        page.get_by_role("link", name="shop").first.click()
        page.locator(".facts").wait_for()
        seen = page.evaluate("[...window.seen]")
        assert any("Installing elasticsearch" in text for text in seen), seen
        page.get_by_text("sandbox").first.wait_for()


@pytest.fixture
def market(empty: Path, tmp_path: Path) -> Path:
    """A home whose registry has two versions of a driver; the newer wants more."""
    paths = []
    for version, permissions in (("1.0.0", ["net:connection"]), ("1.1.0", ["net:connection", "net:host=example.org"])):
        (tmp_path / version).mkdir()
        paths.append(wheelhouse.Driver("demo", version=version, permissions=permissions).write(tmp_path / version))
    news = {paths[1].name: {"CHANGELOG.md": b"# Changes\n\n## 1.1.0\n\nIt wants more.\n"}}
    publish.build(paths, to=tmp_path / "registry", now=wheelhouse.NOW, beside=news)
    command(empty, "registry", "add", tmp_path / "registry")
    return empty


def test_the_life_of_a_driver_in_the_marketplace(chromium: Browser, market: Path) -> None:
    """P4."""
    with visit(chromium, market) as page:
        page.get_by_role("link", name="Drivers").click()
        Hands(page).write(page.get_by_label("Search drivers"), "demo")
        page.locator(".card", has_text="weaviate").wait_for(state="detached")
        page.locator(".card-link", has_text="demo").click()
        page.get_by_role("tab", name="Versions").click()
        page.get_by_role("row", name="1.0.0").get_by_role("button", name="Install").click()
        page.get_by_role("row", name="1.0.0").get_by_text("installed").wait_for()
        manage = page.get_by_role("button", name="Manage")

        def choose(name: str, said: str) -> None:
            manage.click()
            page.get_by_role("menuitem", name=name).click()
            page.locator(".toast", has_text=said).first.wait_for()

        if page.get_by_text("pinned to 1.0.0").count():
            choose("Unpin", "Unpinned")
        page.get_by_role("button", name="Update to 1.1.0").click()
        page.get_by_role("dialog", name="What a driver may do").wait_for()
        assert "example.org" in page.get_by_role("dialog").inner_text()
        page.get_by_role("dialog").get_by_role("button", name="Yes").click()
        page.get_by_role("row", name="1.1.0").get_by_text("installed").wait_for()
        choose("Verify the files", "are intact")
        manage.click()
        page.get_by_role("menuitem", name="Pin to 1.1.0").click()
        Hands(page).write(page.get_by_label("Why"), "the <b>next</b> one breaks us")
        page.keyboard.press("Enter")
        page.locator(".badge", has_text="pinned to 1.1.0").wait_for()
        page.locator(".banner.pinned", has_text="The reason given: the <b>next</b> one breaks us").wait_for()
        page.reload()
        page.locator(".banner.pinned", has_text="the <b>next</b> one breaks us").wait_for()
        page.get_by_role("tab", name="Versions").click()
        page.get_by_text("Beside 1.1.0: ").wait_for()
        page.get_by_text("What changed in 1.1.0").press("Enter")
        page.locator(".version-news .markdown", has_text="It wants more").wait_for()
        page.get_by_text("The changelog says nothing of 1.0.0").wait_for()
        if AXE.is_file():
            assert not findings(page)
        choose("Unpin", "Unpinned")
        choose("Roll back to 1.0.0", "1.0.0 is active")
        page.get_by_role("row", name="1.0.0").get_by_text("installed").wait_for()
        manage.click()
        page.get_by_role("menuitem", name="Disable").click()
        page.locator(".badge", has_text="disabled").wait_for()
        manage.click()
        page.get_by_role("menuitem", name="Enable").click()
        page.locator(".badge", has_text="disabled").wait_for(state="detached")
        manage.click()
        page.get_by_role("menuitem", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        page.get_by_role("button", name="Install 1.1.0").wait_for()


def test_an_object_is_dropped_behind_its_typed_name(page: Page, cluster: Cluster) -> None:
    """E31."""
    cluster.put("doomed", [{"a": 1}], {"a": {"type": "integer"}})
    page.evaluate("location.hash = '#/connection/shop/structure/doomed'")
    page.get_by_role("button", name="Drop").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("button", name="Show the request").is_disabled()
    Hands(page).write(dialog.get_by_label("Type the name"), "doomed")
    dialog.get_by_role("button", name="Show the request").click()
    dialog.locator(".request", has_text="DELETE").wait_for()
    dialog.get_by_role("button", name="Drop doomed").click()
    page.get_by_text("doomed is dropped").wait_for()
    page.locator(".object", has_text="doomed").wait_for(state="detached")
    assert "doomed" not in cluster.send("GET", "/_all/_settings")


def test_production_is_read_only_until_it_is_unlocked(chromium: Browser, shop: Path, cluster: Cluster) -> None:
    cluster.put("guarded", [{"title": "first"}], {"title": {"type": "keyword"}})
    settings = next(shop.rglob("connections.toml")).with_name("config.toml")
    settings.write_text("[guards.connections.shop]\nproduction = true\n")
    with visit(chromium, shop) as page:
        show(page, "guarded")
        page.locator(".cell", has_text="first").click()
        page.keyboard.press("F2")
        Hands(page).type("changed")
        page.keyboard.press("Enter")
        page.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
        page.get_by_role("button", name="Send 1 request").click()
        page.get_by_role("button", name="Unlock").first.click()
        unlock = page.get_by_role("dialog", name="Allow writes on shop?")
        assert unlock.get_by_role("button", name="Unlock for").is_disabled()
        Hands(page).write(unlock.get_by_label("Name of the connection"), "shop")
        unlock.get_by_role("button", name="Unlock for").click()
        unlock.wait_for(state="detached")
        page.get_by_text("production, unlocked").wait_for()
        review = page.get_by_role("dialog")
        with page.expect_response("**/api/changes/apply") as applied:
            review.get_by_role("button", name="Send 1 request").click()
        assert applied.value.ok, applied.value.text()
        page.locator(".badge", has_text="applied").wait_for()
        page.get_by_role("button", name="Close", exact=True).last.click()
        page.get_by_text("production, unlocked").click()
        page.get_by_text("production, read-only").wait_for()
    assert cluster.send("GET", "/guarded/_doc/0")["_source"] == {"title": "changed"}


def test_weaviate_is_opened_filtered_asked_and_scoped_to_a_tenant(chromium: Browser, empty: Path, vectors: int) -> None:
    words = ("connections", "add", "library", "--type", "weaviate", "--host", "127.0.0.1", "--auth", "none", "--yes")
    command(empty, *words, "--port", vectors)
    with visit(chromium, empty, "library") as page:
        page.locator(".object", has_text="Article").click()
        page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
        write_filter(page, "")
        page.get_by_role("option", name="words").wait_for()
        assert page.get_by_label("Tenant").count() == 0  # this collection has none
        assert page.get_by_role("option", name="Raw text").count() == 0  # W40: the server has no such text
        Hands(page).type("words >= 2000")
        with page.expect_response("**/api/page") as answered:
            page.keyboard.press("Enter")
        assert 0 < answered.value.json()["total"] < 320
        pill(page, 1).hover()
        page.locator(".meaning code").wait_for()
        Hands(page).type("section = ")
        page.get_by_role("option", name="travel").wait_for()
        for _ in range(3):
            page.keyboard.press("Backspace")
        page.get_by_role("link", name="Console").click()
        page.locator(".cm-content", has_text="GET /v1/meta").wait_for()  # the example of the manifest
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        Hands(page).paste("{ Get { Article(limit: 2) { title } } }")
        with page.expect_response("**/api/console/execute") as executed:
            page.get_by_role("button", name="Run", exact=True).click()
        [answer] = executed.value.json()["answers"]
        assert not answer.get("error"), answer
        page.locator(".answer").first.wait_for()
        page.locator(".object", has_text="Review").click()
        page.get_by_label("Tenant").wait_for()
        Hands(page).write(page.get_by_label("Tenant"), "lisbon")
        page.get_by_label("Tenant").press("Enter")
        page.get_by_text("of lisbon").first.wait_for()
        assert page.get_by_text("of berlin").count() == 0
        file = empty / "reviews.csv"
        file.write_text("text\nof porto\n", encoding="utf-8")
        page.get_by_role("link", name="library").first.click()
        page.get_by_role("link", name="Import rows").click()
        Hands(page).write(page.get_by_label("Into the object"), "Article")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Choose a").click()
        chooser.value.set_files(file)
        page.locator(".import-table").wait_for()
        assert page.get_by_label("Tenant").count() == 0
        Hands(page).write(page.get_by_label("Into the object"), "Review")
        page.get_by_label("Tenant").wait_for()


ABOVE = {"type": "filter", "column": "total", "op": ">=", "value": "100"}


def test_E36_a_raw_filter_row_is_offered_typed_and_sent(orders: Page) -> None:
    """E36: in the server's query string syntax, beside a row of a column."""
    add_filter(orders, "total >= 100")
    Hands(orders).type("raw")
    orders.keyboard.press("Enter")
    Hands(orders).type("total:<=200")
    orders.locator(".meaning code", has_text="query_string").wait_for()
    with orders.expect_response("**/api/page") as answered:
        orders.keyboard.press("Enter")
    page = answered.value.json()
    assert rows_of(answered.value.request)["filters"][1] == {
        "type": "raw",
        "text": "total:<=200",
    }
    at = [column["name"] for column in page["columns"]].index("total")
    totals = [float(row["cells"][at][1]) for row in page["rows"]]
    assert totals
    assert all(100 <= total <= 200 for total in totals)
    assert pill(orders, 2).inner_text().split() == ["raw", "total:<=200"]


@pytest.mark.parametrize("parts", [{}, {"residual": 1_000}, {"filters": [ABOVE], "residual": 1_000}])
def test_the_filter_of_an_address_waits_to_be_applied_if_it_is_bold(orders: Page, parts: dict[str, Any]) -> None:
    """A stranger may have sent the link: no text in the server's own syntax, and no long work, without a person."""
    parts = {"filters": [ABOVE, {"type": "raw", "text": "total:<=200"}]} | parts
    sent: list[dict[str, Any]] = []
    orders.on("request", lambda request: sent.append(rows_of(request)) if "rows" in (request.post_data or "") else None)
    address = address_of("orders", **parts)
    for visit in (lambda: orders.evaluate("hash => { location.hash = hash }", address), orders.reload):
        visit()
        orders.get_by_text("is not sent until you apply it").wait_for()
        assert "100" in pill(orders, 1).inner_text()
        orders.locator(".cell.when").first.wait_for()
        orders.wait_for_timeout(600)  # an explanation would have been asked for by now
        assert sent
        assert not [rows for rows in sent if rows.get("filters") or rows.get("residual")]
        assert unquote(orders.evaluate("location.hash")) == unquote(address)
    with orders.expect_response("**/api/page") as answered:
        orders.get_by_role("button", name="Apply").click()
    applied = rows_of(answered.value.request)
    assert (len(applied["filters"]), applied["residual"]) == (len(parts["filters"]), parts.get("residual"))
    assert orders.get_by_text("is not sent until you apply it").count() == 0
    orders.get_by_role("link", name="Structure").click()
    orders.locator("table").first.wait_for()
    with orders.expect_response("**/api/page") as answered:
        orders.go_back()
    assert rows_of(answered.value.request)["filters"] == applied["filters"]


def test_rows_are_saved_by_name_used_and_forgotten(orders: Page) -> None:
    add_filter(orders, "total >= 100")
    saved = orders.get_by_role("button", name="Saved", exact=True)
    saved.click()
    orders.get_by_role("menuitem", name="Save these rows").click()
    dialog = orders.get_by_role("dialog")
    Hands(orders).write(dialog.get_by_role("textbox"), "large ones")
    assert dialog.get_by_role("alert").inner_text() == "A name has letters, digits, dots, hyphens and underscores."
    assert dialog.get_by_role("button", name="Save").is_disabled()
    for _ in range(len(" ones")):
        orders.keyboard.press("Backspace")
    assert dialog.get_by_title("dragoman page shop @large").is_visible()
    with orders.expect_response("**/api/queries/save") as kept:
        dialog.get_by_role("button", name="Save").click()
    assert kept.value.ok
    show(orders, "orders")
    orders.reload()
    orders.locator(".cell.when").first.wait_for()
    orders.get_by_role("button", name="Filter", exact=True).click()
    saved.click()
    with orders.expect_response("**/api/page") as answered:
        orders.get_by_role("menuitem", name="large", exact=True).click()
    assert 0 < answered.value.json()["total"] < 12_003
    assert "100" in pill(orders, 1).inner_text()
    saved.click()
    orders.get_by_role("menuitem", name="Forget a query").click()
    with orders.expect_response("**/api/queries/remove"):
        orders.get_by_role("menuitem", name="large", exact=True).click()
    with orders.expect_response("**/api/queries/save"):
        orders.get_by_role("button", name="Undo").click()
    saved.click()
    orders.get_by_role("menuitem", name="large", exact=True).wait_for()


def test_a_saved_query_that_cannot_be_used_says_why(orders: Page, home: Path) -> None:
    file = home / "config/connections.toml"
    before = file.read_text()
    try:
        file.write_text(f'{before}\n[shop.saved-queries.broken]\nobject = "orders"\nfilters = ["total"]\n')
        orders.get_by_role("button", name="Filter", exact=True).click()
        orders.get_by_role("button", name="Saved", exact=True).click()
        orders.get_by_role("menuitem", name="broken cannot be used …").click()
        orders.get_by_text("filter 'total' cannot be read").wait_for()
    finally:
        file.write_text(before)


def test_typing_over_a_selection_in_the_console_breaks_no_policy(page: Page) -> None:
    """The browser's own editing would set style attributes, which the page's policy reports."""
    page.evaluate("location.hash = '#/connection/shop/console'")
    page.locator(".cm-content").wait_for()
    page.keyboard.press("Control+a")
    Hands(page).paste('GET /books/_count\n{\n  "query": {}\n}\n')
    page.keyboard.press("Control+a")
    Hands(page).type("GET /")
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+v")
    page.keyboard.press("Control+a")
    Hands(page).paste("GET /orders/_count")
    assert page.locator(".cm-content").inner_text() == "GET /orders/_count"
    page.keyboard.press("Control+a")
    page.keyboard.press("{")
    assert page.locator(".cm-content").inner_text() == "{GET /orders/_count}"
