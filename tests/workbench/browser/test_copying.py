"""Rows that go to another connection: the menu of an object, what is made there, progress, and the way back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import Cluster, address_of, browsing, read_address, running, serving
from workbench.browser.test_importing import accessible
from workbench.browser.walking import Hands, add_filter, becomes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def attic() -> Iterator[Cluster]:
    """A second sample cluster."""
    with running("-m", "dragoman", "sample", "shop", "--port", 0, "--json") as served:
        yield Cluster(served["samples"][0]["port"])


@pytest.fixture(scope="module")
def two(chromium: Browser, cluster: Cluster, attic: Cluster, vectors: int, tmp_path_factory: Any) -> Iterator[Page]:
    """A tab with two connections of one type, and one of another."""
    home = tmp_path_factory.mktemp("two")
    for name, kind, port in (("shop", "elasticsearch", cluster.port), ("attic", "elasticsearch", attic.port),
                             ("lib", "weaviate", vectors)):  # fmt: skip
        words = ["connections", "add", name, "--type", kind, "--host", "127.0.0.1", "--auth", "none", "--yes"]
        command = [sys.executable, "-m", "dragoman", *words, "--port", str(port)]
        subprocess.run(command, check=True, env={**os.environ, "DRAGOMAN_HOME": str(home)}, capture_output=True)
    with serving(home) as file, browsing(chromium, read_address(file)) as page:
        yield page


def documents(cluster: Cluster, name: str) -> dict[str, Any]:
    cluster.send("POST", f"/{name}/_refresh")
    hits = cluster.send("POST", f"/{name}/_search", json.dumps({"size": 1_000}))["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def overview(page: Page) -> None:
    page.evaluate("location.hash = '#/'")
    page.get_by_role("heading", name="Connections").wait_for()
    page.evaluate("location.hash = '#/connection/shop'")
    page.locator(".object-table a", has_text="books").wait_for()


def test_a_keyboard_copies_an_object_that_is_made_there_and_takes_it_back(
    two: Page, cluster: Cluster, attic: Cluster
) -> None:
    values = [{"n": 9_007_199_254_740_993, "text": "<img src=x onerror=attacked(1)>"}, {"n": -1, "text": None}]
    cluster.put("exact", values, {"n": {"type": "long"}, "text": {"type": "keyword"}})
    overview(two)
    two.locator(".object-table a", has_text="exact").focus()
    two.keyboard.press("Tab")
    two.keyboard.press("Enter")
    hands = Hands(two)
    hands.type("c")
    two.keyboard.press("Enter")
    dialog = two.get_by_role("dialog", name="Copy exact")
    there, make = dialog.get_by_label("To the connection"), dialog.get_by_role("button", name="Copy the rows")
    assert (there.input_value(), make.is_disabled()) == ("", True)
    hands.choose(there, "shop (this one)")
    becomes(two, lambda: dialog.get_by_label("Into the object").input_value() == "exact-copy")
    hands.choose(there, "attic")
    dialog.get_by_text("exact does not exist, and is made with these types").wait_for()
    listed = "list => [...list.options].filter(one => !one.disabled).map(one => one.text)"
    assert there.evaluate(listed) == ["attic", "shop (this one)", "lib (weaviate)"]
    columns = dialog.locator(".copy-columns tbody tr").all_inner_texts()
    assert columns == ["n\tlong", "text\tkeyword"]
    accessible(two)
    dialog.get_by_label("Into the object").focus()
    two.keyboard.press("Control+a")
    hands.type("exact-there")
    dialog.get_by_text("exact-there does not exist").wait_for()
    make = dialog.get_by_role("button", name="Make it with these types, and copy")
    becomes(two, make.is_enabled)
    make.focus()
    two.keyboard.press("Enter")
    card = two.locator("li.card").first
    card.locator(".badge", has_text="finished").wait_for()
    assert "2 rows read: 2 written" in card.inner_text()
    assert documents(attic, "exact-there") == documents(cluster, "exact")
    card.get_by_role("button", name="Undo the import").press("Enter")
    two.get_by_role("dialog").get_by_role("button", name="Undo the import").press("Enter")
    two.locator(".badge", has_text="taken back").wait_for()
    assert documents(attic, "exact-there") == {}


def test_a_keyboard_copies_into_another_type_of_database_and_sees_what_changes(two: Page, cluster: Cluster) -> None:
    values = [{"n": 1, "place": {"lat": 1, "lon": 2}, "note": "x"}, {"n": 2, "note": ""}]
    cluster.put("places", values, {"n": {"type": "long"}, "place": {"type": "geo_point"}, "note": {"type": "keyword"}})
    overview(two)
    two.locator(".object-table a", has_text="places").focus()
    two.keyboard.press("Tab")
    two.keyboard.press("Enter")
    hands = Hands(two)
    hands.type("c")
    two.keyboard.press("Enter")
    dialog = two.get_by_role("dialog", name="Copy places")
    hands.choose(dialog.get_by_label("To the connection"), "lib (weaviate)")
    dialog.get_by_text("cannot be the name of a collection").wait_for()
    dialog.get_by_label("Into the object").focus()
    two.keyboard.press("Control+a")
    hands.type("Places")
    dialog.get_by_text("Places does not exist, and is made in another type of database").wait_for()
    columns = dialog.locator(".copy-columns tbody tr")
    assert [row.split("\t")[1:] for row in columns.all_inner_texts()] == [
        ["n", "long", "integer", ""], ["note", "keyword", "text", ""],
        ["place", "geo_point", "text", "as its JSON text, because there is no such type"],
    ]  # fmt: skip
    assert dialog.get_by_label("Ids").input_value() == "derive"
    dialog.get_by_text("ids there are UUIDs, and these are not").wait_for()
    accessible(two)
    note = dialog.get_by_label("Copy note")
    note.focus()
    two.keyboard.press("Space")
    dialog.get_by_text("left out, as you asked").wait_for()
    make = dialog.get_by_role("button", name="Make it with these types, and copy")
    becomes(two, make.is_enabled)
    make.focus()
    two.keyboard.press("Enter")
    card = two.locator("li.card").first
    card.locator(".badge", has_text="finished").wait_for()
    assert "2 rows read: 2 written" in card.inner_text()
    card.get_by_role("button", name="Undo the import").press("Enter")
    two.get_by_role("dialog").get_by_role("button", name="Undo the import").press("Enter")
    two.locator(".badge", has_text="taken back").wait_for()


def test_the_rows_of_a_filter_are_copied_into_an_object_that_differs(
    two: Page, cluster: Cluster, attic: Cluster
) -> None:
    cluster.put(
        "pieces", [{"n": at, "more": "x"} for at in range(20)], {"n": {"type": "long"}, "more": {"type": "keyword"}}
    )
    attic.put("pieces", [{"n": 0}], {"n": {"type": "double"}, "other": {"type": "keyword"}})
    overview(two)
    two.locator(".object-table tr", has_text="pieces").click(button="right")
    two.get_by_role("menuitem", name="Rows", exact=True).click()
    two.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    add_filter(two, "n >= 15")
    two.get_by_role("button", name="Copy to a connection").click()
    dialog, hands = two.get_by_role("dialog", name="Copy pieces"), Hands(two)
    hands.choose(dialog.get_by_label("To the connection"), "attic")
    dialog.get_by_text("pieces exists; the rows are added").wait_for()
    columns = [row.split("\t")[1:] for row in dialog.locator(".copy-columns tbody tr").all_inner_texts()]
    unknown = "there is no such column: the server adds it, or refuses the row"
    assert columns == [
        ["more", "keyword", "", unknown], ["n", "long", "double", "a value that does not fit makes a rejected row"],
    ]  # fmt: skip
    assert "1 filter row" in dialog.inner_text()
    two.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    two.get_by_role("button", name="Copy to a connection").click()
    hands.choose(dialog.get_by_label("To the connection"), "attic")
    name, copy = dialog.get_by_label("Name of more there"), dialog.get_by_role("button", name="Copy the rows")
    hands.write(name, "n")
    dialog.get_by_text("Several columns would be called n.").wait_for()
    assert (name.get_attribute("aria-invalid"), copy.is_disabled()) == ("true", True)
    hands.write(name, "other")
    dialog.get_by_text(unknown).wait_for(state="detached")
    becomes(two, copy.is_enabled)
    assert name.evaluate("field => field === document.activeElement")
    copy.click()
    two.locator("li.card").first.locator(".badge", has_text="finished").wait_for()
    assert "5 rows read: 5 written" in two.locator("li.card").first.inner_text()
    rows = sorted(documents(attic, "pieces").values(), key=lambda row: row["n"])
    assert rows == [{"n": 0}, *({"n": number, "other": "x"} for number in range(15, 20))]


def test_one_decision_per_reason_and_typed_names_hold_for_a_copy_to_another_type(two: Page, cluster: Cluster) -> None:
    values = [{"n": 1, "place": {"lat": 1, "lon": 2}, "area": {"gte": 1, "lt": 3}, "note": "x"}]
    kinds = {"n": "long", "place": "geo_point", "area": "integer_range", "note": "keyword"}
    cluster.put("areas", values, {name: {"type": kind} for name, kind in kinds.items()})
    overview(two)
    two.locator(".object-table tr", has_text="areas").click(button="right")
    two.get_by_role("menuitem", name="Copy to a connection").click()
    hands, dialog = Hands(two), two.get_by_role("dialog", name="Copy areas")
    hands.choose(dialog.get_by_label("To the connection"), "lib (weaviate)")
    hands.write(dialog.get_by_label("Into the object"), "Areas")
    dialog.get_by_text("Areas does not exist, and is made in another type of database").wait_for()
    reason = dialog.get_by_role("checkbox", name="as its JSON text, because there is no such type (2: area, place)")
    assert reason.is_checked()
    reason.focus()
    two.keyboard.press("Space")
    columns = dialog.locator(".copy-columns tbody tr")
    becomes(two, lambda: columns.filter(has_text="left out, as you asked").count() == 2)
    dialog.get_by_label("Copy place").focus()
    two.keyboard.press("Space")
    becomes(two, lambda: columns.filter(has_text="left out, as you asked").count() == 1)
    assert reason.evaluate("box => box.indeterminate")
    hands.write(dialog.get_by_label("Name of note there"), "remark")
    hands.write(dialog.get_by_label("Name of place there"), "9 places")  # no name there: the table stays, to mend it
    dialog.get_by_role("alert").wait_for()
    hands.write(dialog.get_by_label("Name of place there"), "spot")
    make = dialog.get_by_role("button", name="Make it with these types, and copy")
    becomes(two, make.is_enabled)
    accessible(two)
    make.focus()
    two.keyboard.press("Enter")
    card = two.locator("li.card").first
    card.locator(".badge", has_text="finished").wait_for()
    two.evaluate("hash => { location.hash = hash }", address_of("Areas", connection="lib"))
    two.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    heads = two.locator(".head-name").all_inner_texts()
    assert {"n", "remark", "spot"} <= {*heads}
    assert not {"area", "note", "place"} & {*heads}


def test_a_copy_is_cancelled_and_the_rest_follows(two: Page, attic: Cluster) -> None:
    overview(two)
    two.locator(".object-table tr", has_text="orders").click(button="right")
    two.get_by_role("menuitem", name="Copy to a connection").click()
    hands, dialog = Hands(two), two.get_by_role("dialog", name="Copy orders")
    hands.choose(dialog.get_by_label("To the connection"), "attic")
    hands.write(dialog.get_by_label("Into the object"), "orders-there")
    make = dialog.get_by_role("button", name="Make it with these types, and copy")
    becomes(two, make.is_enabled)
    make.click()
    card = two.locator("li.card").first
    becomes(two, lambda: "written" in card.inner_text())
    cancel = card.get_by_role("button", name="Cancel")
    if cancel.count():
        cancel.click()
    card.locator(".badge", has_text="cancelled").wait_for()
    card.get_by_text("To copy the rest").wait_for()
    overview(two)
    two.locator(".object-table tr", has_text="orders").click(button="right")
    two.get_by_role("menuitem", name="Copy to a connection").click()
    hands.choose(dialog.get_by_label("To the connection"), "attic")
    hands.write(dialog.get_by_label("Into the object"), "orders-there")
    dialog.get_by_text("orders-there exists").wait_for()
    hands.choose(dialog.get_by_label("If the id exists"), "keep the stored row")
    becomes(two, dialog.get_by_role("button", name="Copy the rows").is_enabled)
    dialog.get_by_role("button", name="Copy the rows").click()
    card.locator(".badge", has_text="finished").wait_for()
    attic.send("POST", "/orders-there/_refresh")
    assert attic.send("GET", "/orders-there/_count")["count"] == 12_003
