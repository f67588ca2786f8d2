"""The overview of a connection: health, a table that sorts and filters, and objects that come and go by themselves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from workbench.browser.conftest import address_of, browsing, read_address, running, serving
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route
    from workbench.browser.conftest import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(200)]
HOSTILE = '<img src=x onerror="document.title=1">'


WITHOUT_TIME = {"object": "", "columns": [], "structure": "", "notes": [], "time": None}


def _names(page: Page) -> list[str]:
    return page.locator(".object-table .object-name").all_inner_texts()


def _object(name: str, rows: int | None = None, size: int | None = None) -> dict[str, Any]:
    return {"name": name, "rows": rows, "size": size, "kind": "table", "parent": None, "branch": False, "state": None}


def test_keys_sort_filter_and_open_an_object(page: Page) -> None:
    page.locator(".connection", has_text="shop").click()
    page.locator(".object-table a", has_text="orders").wait_for()
    page.locator(".health", has_text="answers").wait_for()
    assert "Elasticsearch" in page.locator(".facts").inner_text()
    by_name = _names(page)
    rows = page.locator(".object-table thead").get_by_role("button", name="Rows")
    rows.press("Enter")
    figures = [text.replace(",", "") for text in page.locator(".object-table td.rows").all_inner_texts()]
    counts = [int(text) for text in figures if text.isdigit()]
    assert counts == sorted(counts, reverse=True)
    assert page.locator(".object-table th.rows").get_attribute("aria-sort") == "descending"
    page.locator(".object-table thead").get_by_role("button", name="Object").click()
    assert _names(page) == by_name
    page.get_by_placeholder("Filter by name").click()
    Hands(page).type("zzz")
    page.get_by_role("button", name="Clear the filter").click()
    page.get_by_placeholder("Filter by name").click()
    Hands(page).type("ORDERS")
    assert all("orders" in name for name in _names(page))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("[role=gridcell]").first.wait_for()


def _node(name: str, **fields: Any) -> dict[str, Any]:
    figures = dict.fromkeys(("rows", "memory", "memory_limit", "disk", "disk_limit"))
    return {"name": name, "state": None, "roles": "", "version": ""} | figures | fields


def test_nodes_and_states_are_shown_and_keys_sort_and_choose_by_state(page: Page, cluster: Cluster) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/status") else None)
    try:
        cluster.put("state-shut", [{"n": 1}], {"n": {"type": "long"}})
        cluster.send("POST", "/state-shut/_close")
        page.locator(".connection", has_text="shop").click()
        nodes = page.locator(".node-table tbody tr")
        nodes.first.wait_for()
        assert "elected master, data" in nodes.first.inner_text()
        assert "224 MB of 537 MB" in nodes.first.inner_text()
        page.locator(".health", has_text="yellow, answers").wait_for()  # made with the usual copy, which has no node
        page.get_by_text("on no node: they are copies, so no row is missing").wait_for()
        shut = page.locator(".object-table tr", has_text="state-shut")
        assert shut.locator("td.state").inner_text() == "closed"
        page.locator(".object-table thead").get_by_role("button", name="State").press("Enter")
        assert page.locator(".object-table th.state").get_attribute("aria-sort") == "descending"
        assert page.locator(".object-table tbody tr").last.locator("td.state").inner_text() == "green"
        chip = page.get_by_role("group", name="Filter by state").get_by_role("button", name="closed")
        chip.press("Enter")
        assert chip.get_attribute("aria-pressed") == "true"
        assert _names(page) == ["state-shut"]
        assert "1 shown of" in page.locator(".overview-tools [role=status]").inner_text()
        page.get_by_placeholder("Filter by name").click()
        Hands(page).type("zzz")
        page.get_by_role("button", name="Clear the filter").click()
        assert len(_names(page)) > 1
        assert len(asked) == 1
    finally:
        page.locator(".object-table thead").get_by_role("button", name="Object").click()
        cluster.send("DELETE", "/state-shut")


@pytest.mark.parametrize("width", [1280, 400])
def test_many_nodes_fit_any_width_and_states_come_with_them(chromium: Browser, address: str, width: int) -> None:
    bad = {"word": "UNHEALTHY", "level": "bad"}
    good = {"word": "HEALTHY", "level": "good"}
    nodes = [
        _node(f"{HOSTILE}{at}", state=bad if at == 7 else good, roles="data, ingest", disk=9 * 10**9, disk_limit=10**10)
        for at in range(40)
    ]
    states = {"constructor": good, "b": {"word": "READONLY", "level": "warning"}}
    body = {"state": None, "nodes": nodes, "objects": states, "notes": []}
    with browsing(chromium, address, viewport={"width": width, "height": 900}) as page:
        objects = [_object(name, 3) for name in ("constructor", "toString", "b")]
        told = {"objects": objects, "notes": [], "next": None, "total": 3}
        page.route(re.compile(r"/objects$"), lambda route: route.fulfill(json=told))
        page.route(re.compile(r"/status$"), lambda route: route.fulfill(json=body))
        page.route(re.compile(r"/describe$"), lambda route: route.fulfill(json=WITHOUT_TIME))
        page.evaluate("location.hash = '#/connection/shop'")
        page.locator(".nodes summary", has_text="40 nodes: 1 UNHEALTHY, 39 HEALTHY").wait_for()
        assert page.locator(".nodes").get_attribute("open") is not None  # one of them is not well
        assert page.locator(".node-table img").count() == 0
        assert page.locator(".object-table tr", has_text="toString").locator(".condition").count() == 0
        assert page.locator(".object-table tr", has_text="constructor").locator("td .condition").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert findings(page) == []
        page.locator(".nodes summary").press("Enter")
        assert not page.locator(".node-table").is_visible()


def test_a_status_that_cannot_be_read_is_said_and_the_objects_stay(chromium: Browser, address: str) -> None:
    failed = {"error": {"code": "deadline-exceeded", "message": "read_status took too long"}}
    with browsing(chromium, address) as page:
        page.route(re.compile(r"/status$"), lambda route: route.fulfill(status=504, json=failed))
        page.evaluate("location.hash = '#/connection/shop'")
        page.get_by_text("read_status took too long").wait_for()
        page.locator(".object-table a", has_text="orders").wait_for()
        assert page.locator(".nodes").count() == 0


def test_a_slow_status_is_asked_for_once_however_many_parts_the_objects_come_in(
    chromium: Browser, address: str
) -> None:
    asked, waiting = [], []

    def list_part(route: Route) -> None:
        part = int(json.loads(route.request.post_data or "{}").get("cursor") or 0)
        more = {"next": str(part + 1) if part < 4 else None, "total": 5}
        route.fulfill(json={"objects": [_object(f"part-{part}")], "notes": [], **more})

    def wait(route: Route) -> None:
        asked.append(route.request.url)
        waiting.append(route)

    with browsing(chromium, address) as page:
        page.route(re.compile(r"/objects$"), list_part)
        page.route(re.compile(r"/describe$"), lambda route: route.fulfill(json=WITHOUT_TIME))
        page.route(re.compile(r"/status$"), wait)
        page.evaluate("location.hash = '#/connection/shop'")
        page.locator(".object-table tr", has_text="part-4").wait_for()
        page.wait_for_timeout(300)
        assert len(asked) == 1
        waiting[0].fulfill(json={"state": None, "nodes": [_node("only")], "objects": {}, "notes": []})
        page.locator(".node-table tr", has_text="only").wait_for()


def test_a_new_object_appears_and_a_hostile_name_is_text(page: Page, cluster: Cluster) -> None:
    page.clock.install()
    page.locator(".connection", has_text="shop").click()
    page.locator(".object-table a", has_text="orders").wait_for()
    cluster.put("overview-new", [{"title": HOSTILE}], {"title": {"type": "keyword"}})
    try:
        for _ in range(10):
            page.clock.run_for(11_000)
            if page.locator(".object-table tr", has_text="overview-new").count():
                break
            page.wait_for_timeout(300)
        line = page.locator(".object-table tr", has_text="overview-new")
        line.locator(".badge", has_text="new").wait_for()
        assert page.locator(".object-table .badge").count() == 1
    finally:
        cluster.send("DELETE", "/overview-new")


def test_ten_thousand_empty_and_broken_each_look_their_own_way(chromium: Browser, address: str) -> None:
    answer: dict[str, Any] = {}

    def reply(route: Route) -> None:
        route.fulfill(status=answer["status"], content_type="application/json", body=json.dumps(answer["body"]))

    def listing(objects: list[dict[str, Any]]) -> dict[str, Any]:
        return {"status": 200, "body": {"objects": objects, "notes": [], "next": None, "total": len(objects)}}

    with browsing(chromium, address, viewport={"width": 400, "height": 900}) as page:
        page.route(re.compile(r"/objects$"), reply)
        answer |= listing([_object(f"{HOSTILE} {at}", at) for at in range(10_000)])
        page.evaluate("location.hash = '#/connection/shop'")
        page.locator(".object-table .object-name").first.wait_for()
        assert HOSTILE in _names(page)[0]
        assert page.locator(".object-table .object-name").count() < 100
        page.locator(".object-table .object-name").first.focus()
        page.keyboard.press("End")
        page.locator(".object-table .object-name:focus", has_text="9999").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator(".object-table img").count() == 0
        answer |= listing([])
        page.evaluate("location.hash = '#/'")
        page.get_by_role("heading", name="Connections").wait_for()
        page.evaluate("location.hash = '#/connection/shop'")
        page.get_by_text("The server holds no objects yet").wait_for()
        page.locator(".blank").get_by_role("link", name="Import rows").press("Enter")
        page.get_by_role("heading", name="Import rows").wait_for()
        answer |= {"status": 502, "body": {"error": {"code": "connection-failed", "message": "nobody answers"}}}
        page.evaluate("location.hash = '#/'")
        page.get_by_role("heading", name="Connections").wait_for()
        page.evaluate("location.hash = '#/connection/shop'")
        page.locator("main .error-box", has_text="nobody answers").wait_for()
        assert "cannot be read" in page.locator(".health").inner_text()
        answer |= listing([_object("orders", 3)])
        page.locator("main").get_by_role("button", name="Try again").click()
        page.locator(".object-table a", has_text="orders").wait_for()


def test_the_newest_time_stands_beside_each_object_and_sorts(page: Page, cluster: Cluster) -> None:
    dated = {"at": {"type": "date"}}
    for name, day in (("time-a", "2031-01-02"), ("time-b", "2032-01-02"), ("time-none", "")):
        cluster.put(name, [{"at": f"{day}T03:04:05Z"} if day else {"n": 1}], dated if day else {"n": {"type": "long"}})
    try:
        page.locator(".connection", has_text="shop").click()
        page.locator(".object-table tr", has_text="time-a").get_by_text("2031-01-02 03:04:05").wait_for()
        page.locator(".object-table tr", has_text="time-none").get_by_title("no time is known").wait_for()
        head = page.locator(".object-table thead").get_by_role("button", name="Newest")
        head.press("Enter")
        page.locator(".object-table tbody tr").first.get_by_text("time-b").wait_for()
        assert page.locator(".object-table th.newest").get_attribute("aria-sort") == "descending"
    finally:
        page.locator(".object-table thead").get_by_role("button", name="Object").click()
        cluster.send("DELETE", "/time-a,time-b,time-none")


def test_six_hundred_objects_are_asked_for_their_times_only_in_view_and_a_few_at_a_time(
    chromium: Browser, address: str
) -> None:
    asked: list[str] = []
    waiting: list[Route] = []

    def listed(route: Route) -> None:
        objects = [_object(f"log-{at:04}", at) for at in range(600)]
        body = {"objects": objects, "notes": [], "next": None, "total": 600}
        route.fulfill(content_type="application/json", body=json.dumps(body))

    def described(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or "")["object"])
        waiting.append(route)

    def answer_all() -> None:
        for route in waiting[:]:
            waiting.remove(route)
            route.fulfill(content_type="application/json", body=json.dumps(WITHOUT_TIME))

    with browsing(chromium, address) as page:
        page.route(re.compile(r"/objects$"), listed)
        page.route(re.compile(r"/describe$"), described)
        page.evaluate("location.hash = '#/connection/shop'")
        page.locator(".object-table .object-name").first.wait_for()
        page.wait_for_timeout(1_500)
        assert len(asked) == 3
        while waiting:
            answer_all()
            page.wait_for_timeout(150)
        assert 20 < len(asked) == len(set(asked)) < 60
        assert page.locator(".object-table th.newest").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_missing_says_so_in_a_sentence_with_a_button_that_leads_on_and_no_command(
    page: Page, theme: str
) -> None:
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    gone = quote(json.dumps({"object": "gone"}))
    for place, sentence, button, heading in (
        ("connection/nothere", "no connection is called 'nothere'", "New connection", "New connection"),
        (f"connection/shop/rows/{gone}", "This object does not exist", "Show all objects", "shop"),
        ("connection/shop/structure/gone", "This object does not exist", "Show all objects", "shop"),
        ("drivers/none", "No registry has this driver", "Show all drivers", "Drivers"),
    ):
        page.evaluate("place => { location.hash = `#/${place}` }", place)
        box = page.locator("main .error-box")
        box.get_by_text(sentence).wait_for()
        assert "dragoman " not in page.locator("main").inner_text()
        assert page.get_by_role("button", name="Edit this connection").count() == 0
        if AXE.is_file():
            assert not findings(page)
        box.get_by_role("button", name=button).press("Enter")
        page.get_by_role("heading", name=heading, exact=True).wait_for()


def test_a_server_that_hangs_is_told_within_a_minute_and_taken_back_when_it_goes_on(
    chromium: Browser, tmp_path: Path
) -> None:
    with running("-m", "dragoman", "sample", "shop", "--port", 0, "--json") as served:
        port = str(served["samples"][0]["port"])
        words = ["connections", "add", "slow", "--type", "elasticsearch", "--host", "127.0.0.1", "--auth", "none"]
        command = [sys.executable, "-m", "dragoman", *words, "--yes", "--port", port]
        subprocess.run(command, check=True, env={**os.environ, "DRAGOMAN_HOME": str(tmp_path)}, capture_output=True)
        with serving(tmp_path) as file, browsing(chromium, read_address(file)) as page:
            page.evaluate("hash => { location.hash = hash }", address_of("orders", connection="slow"))
            page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
            os.kill(served["pid"], signal.SIGSTOP)
            try:
                told = page.locator(".toast.bad", has_text=f"slow does not answer: 127.0.0.1:{port} gave no answer")
                told.wait_for(timeout=60_000)
                badge = page.locator(".header .badge", has_text="no answer")
                assert badge.is_visible()
                page.reload()
                badge.wait_for()
            finally:
                os.kill(served["pid"], signal.SIGCONT)
            page.locator(".toast.good", has_text="slow answers again.").wait_for(timeout=60_000)
            assert told.count() == 0
            assert badge.count() == 0
