"""Files as a person imports them: chosen or dropped, looked at, mapped, tried, loaded, and mended."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from workbench.browser import corpus
from workbench.browser.test_hostile import COLLECT, unharmed
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands, becomes

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page
    from workbench.browser.conftest import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]


def enter(page: Page, target: str) -> None:
    """Go from the overview to the view of imports, and name the object that gets the rows."""
    page.get_by_role("link", name="shop").first.click()
    page.get_by_role("link", name="Import rows").click()
    Hands(page).write(page.get_by_label("Into the object"), target)


def choose(page: Page, file: Path) -> None:
    """Choose a file with the mouse."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a").click()
    chooser.value.set_files(file)


def card(page: Page, state: str, *, patience: int = 60) -> Locator:
    """Wait for the newest import to be in a state, for some seconds, and return its card."""
    newest = page.get_by_role("list", name="Imports").locator("li.card").first
    newest.locator(".badge", has_text=re.compile(f"^{state}$")).wait_for(timeout=patience * 1_000)
    return newest


def test_a_dropped_table_is_typed_tried_loaded_and_its_rejected_rows_are_shown(
    page: Page, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "stock.csv"
    odd = '"  Böttcher\n1"'
    rows = "".join(f"0{at};{at}.5;{odd if at == 1 else at}\n" for at in range(1_999))
    file.write_bytes(f"code;price;kürzel\n{rows}x;n/a;y\n".encode("windows-1252"))
    enter(page, "stock-new")
    Hands(page).drop(file, x=640, y=240)
    page.get_by_text("it is not UTF-8").wait_for()
    page.get_by_role("button", name="Read it as windows-1252").click()
    page.get_by_text("does not exist, and is made").wait_for()
    assert page.get_by_label("Separator").input_value() == ";"
    assert page.locator(".import-table tbody tr").count() == 50
    [shown] = page.locator(".import-table tbody tr").nth(1).locator("bdi").filter(has_text="↵").all_inner_texts()
    assert shown == "  Böttcher↵1"  # as in the grid
    assert page.get_by_label("Type of price").input_value() == "float"
    assert page.get_by_label("Type of code").input_value() == "text"
    assert "after a look at the first 1,000 rows" in page.locator(".page.import").inner_text()
    Hands(page).write(page.get_by_label("Name of kürzel"), "name")
    page.get_by_role("button", name="Dry run").click()
    tried = card(page, "dry run, finished")
    assert "PUT /stock-new" in tried.inner_text()
    page.get_by_role("button", name="Make it with these types").click()
    loaded = card(page, "finished")
    assert "2,000 rows read: 1,999 written, 1 " in loaded.inner_text()
    page.get_by_role("navigation").get_by_role("link", name=re.compile("^stock-new")).wait_for()  # it is new there
    loaded.get_by_role("button", name="Show the rejected rows").click()
    rejected = loaded.get_by_role("row").nth(1)
    assert "2,000" in rejected.inner_text()
    assert "n/a" in rejected.inner_text()
    for button, ending in (("undo file", "undo-stock.csv.ndjson"), ("rejected rows", "stock.csv.rejected.ndjson")):
        with page.expect_download() as download:
            loaded.get_by_role("button", name=f"Download the {button}").click()
        assert download.value.suggested_filename == ending
    loaded.get_by_role("link", name="stock-new").click()
    page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    mapping = cluster.send("GET", "/stock-new/_mapping")["stock-new"]["mappings"]["properties"]
    assert {name: field["type"] for name, field in mapping.items()} == {
        "code": "text",
        "price": "double",
        "name": "text",
    }


EUROPEAN = """kunde;preis;datum;bezahlt;zeit;menge
Böttcher;1.234,50;01.04.2026;ja;31.12.2026 14:30;1.234
Ärzte;0,99;13.04.2026;nein;1.1.2026 09:00;2
Ö;n/a;14.04.2026;ja;2.1.2026 09:00;3
"""


def test_a_european_table_is_read_as_a_person_chose_and_tried_before_it_is_loaded(
    page: Page, cluster: Cluster, tmp_path: Path
) -> None:
    file, hands = tmp_path / "umsatz.csv", Hands(page)
    file.write_text(EUROPEAN)
    enter(page, "umsatz")
    choose(page, file)
    page.get_by_text("does not exist, and is made").wait_for()
    price, day = page.get_by_label("Reading of preis"), page.get_by_label("Reading of datum")
    day.wait_for()
    assert day.locator("option:checked").inner_text() == "01.04.2026 → 2026-04-01 (day first)"
    types = {name: page.get_by_label(f"Type of {name}").input_value() for name in ("preis", "datum", "bezahlt", "zeit")}
    assert types == {"preis": "text", "datum": "date", "bezahlt": "boolean", "zeit": "timestamp"}
    assert price.input_value() == "plain"
    hands.choose(price, "decimal-comma")
    becomes(page, lambda: page.get_by_label("Type of preis").input_value() == "float")
    page.locator(".import-why.bad", has_text="n/a").wait_for()
    page.get_by_text("the point in '1.234' may part thousands").wait_for()
    hands.choose(page.get_by_label("Reading of menge"), "decimal-comma")
    becomes(page, lambda: page.get_by_label("Type of menge").input_value() == "integer")
    accessible(page)
    start = page.get_by_role("button", name="Make it with these types")
    becomes(page, start.is_enabled)
    start.press("Enter")
    assert "3 rows read: 2 written, 1 rejected" in card(page, "finished").inner_text()
    cluster.send("POST", "/umsatz/_refresh")
    rows = [hit["_source"] for hit in cluster.send("GET", "/umsatz/_search")["hits"]["hits"]]
    assert sorted(rows, key=lambda row: row["kunde"]) == [
        {"kunde": "Böttcher", "preis": 1234.5, "datum": "2026-04-01", "bezahlt": True, "zeit": "2026-12-31T14:30:00Z",
         "menge": 1234},
        {"kunde": "Ärzte", "preis": 0.99, "datum": "2026-04-13", "bezahlt": False, "zeit": "2026-01-01T09:00:00Z",
         "menge": 2},
    ]  # fmt: skip
    choose(page, file)  # once more: now the object exists, and says the types
    page.get_by_text("exists; the rows are added").wait_for()
    becomes(page, lambda: day.locator("option:checked").inner_text() == "01.04.2026 → 2026-04-01T00:00:00Z (day first)")
    hands.choose(price, "decimal-comma")
    hands.choose(day, "plain")
    dry = page.get_by_role("button", name="Dry run")
    becomes(page, dry.is_enabled)
    dry.click()
    tried = card(page, r"dry run, \d rows? would be rejected")
    assert "warn" in (tried.locator(".badge").first.get_attribute("class") or "")
    assert "n/a" in tried.inner_text()
    accessible(page)


def test_a_day_that_no_row_settles_waits_for_a_choice(page: Page, cluster: Cluster, tmp_path: Path) -> None:
    cluster.put("visit-days", [{"day": "2026-01-01"}], {"day": {"type": "date"}})
    file, hands = tmp_path / "visits.csv", Hands(page)
    file.write_text("day\n1/4/2026\n2/4/2026\n")
    enter(page, "visit-days")
    choose(page, file)
    page.get_by_text("Choose how day is read: '1/4/2026' can be day-first or month-first").wait_for()
    start, reading = page.get_by_role("button", name="Import", exact=True), page.get_by_label("Reading of day")
    assert start.is_disabled()
    reading.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    becomes(page, lambda: reading.input_value() == "day-first")
    hands.choose(reading, "month-first")
    hands.choose(reading, "day-first")
    becomes(page, start.is_enabled)
    start.press("Enter")
    assert "2 rows read: 2 written" in card(page, "finished").inner_text()
    cluster.send("POST", "/visit-days/_refresh")
    days = {hit["_source"]["day"] for hit in cluster.send("GET", "/visit-days/_search")["hits"]["hits"]}
    assert days == {"2026-01-01", "2026-04-01T00:00:00Z", "2026-04-02T00:00:00Z"}


def test_columns_without_a_place_wait_for_a_choice_and_a_cancelled_import_goes_on(
    page: Page, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.put("depot", [{"n": 0}], {"n": {"type": "long"}})
    file = tmp_path / "many.csv"
    file.write_text("number,odd\n" + "".join(f"{at},x\n" for at in range(30_000)))
    enter(page, "depot")
    choose(page, file)
    page.get_by_text("2 columns have no place").wait_for()
    assert page.get_by_role("button", name="Import", exact=True).is_disabled()
    Hands(page).choose(page.get_by_label("Column of the object for number"), "n")
    Hands(page).choose(page.get_by_label("Column of the object for odd"), "")
    page.get_by_role("button", name="Import", exact=True).click()
    running = card(page, "running")
    becomes(page, lambda: "written" in running.inner_text())
    running.get_by_role("button", name="Cancel").click()
    card(page, "cancelled").get_by_role("button", name="Resume").click()
    assert "30,000 rows read: 30,000 written" in card(page, "finished").inner_text()
    cluster.send("POST", "/depot/_refresh")
    assert cluster.send("GET", "/depot/_count")["count"] == 30_001


def test_the_id_of_documents_is_theirs_a_column_or_made_by_the_server(
    page: Page, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.put("parts", [{"sku": "0"}], {"sku": {"type": "keyword"}})
    file, hands = tmp_path / "parts.ndjson", Hands(page)
    choice, start = page.get_by_label("Id of a row"), page.get_by_role("button", name="Import", exact=True)

    def ids() -> set[str]:
        cluster.send("POST", "/parts/_refresh")
        return {hit["_id"] for hit in cluster.send("GET", "/parts/_search")["hits"]["hits"]} - {"0"}

    file.write_text('{"_id": "a", "sku": "A-1", "price": 1.5}\n{"_id": "b", "sku": "A-2", "price": 2.5}\n')
    enter(page, "parts")
    choose(page, file)
    becomes(page, lambda: choice.count() == 1 and choice.input_value() == "_id")
    assert choice.locator("option").all_inner_texts() == ["the server makes one", "_id", "sku"]
    becomes(page, start.is_enabled)
    start.click()
    becomes(page, lambda: ids() == {"a", "b"})
    file.write_text('{"sku": "A-1", "price": 1.5}\n{"sku": "A-2", "price": 2.5}\n')
    choose(page, file)
    choice.wait_for()
    assert choice.input_value() == ""
    hands.choose(choice, "sku")
    becomes(page, start.is_enabled)
    page.get_by_role("button", name="Dry run").click()
    assert "A-1" in card(page, "dry run, finished").inner_text()
    start.press("Enter")
    becomes(page, lambda: ids() == {"a", "b", "A-1", "A-2"})
    choose(page, file)
    choice.wait_for()
    becomes(page, start.is_enabled)
    start.press("Enter")
    becomes(page, lambda: len(ids()) == 6)


def accessible(page: Page) -> None:
    """What axe-core finds in neither theme, on a wide screen and on a narrow one."""
    if not AXE.is_file():
        return
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        for width in (1_440, 400):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert not findings(page), (theme, width)
    page.set_viewport_size({"width": 1_440, "height": 900})


def test_a_keyboard_alone_chooses_a_file_imports_it_and_takes_it_back(
    page: Page, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.put("keys", [{"n": 1}, {"n": 2}], {"n": {"type": "long"}})
    file = tmp_path / "keys.csv"
    file.write_text("_id,n\n" + "".join(f"{at},{at}5\n" for at in range(1, 9)))
    page.evaluate("location.hash = '#/connection/shop/import/keys'")
    with page.expect_file_chooser() as chooser:  # from here: a key can come before the browser heeds it
        page.get_by_label("Into the object").click()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.innerText") == "Choose a file"
        page.keyboard.press("Enter")
    chooser.value.set_files(file)
    hands, start = Hands(page), page.get_by_role("button", name="Import", exact=True)
    start.wait_for()
    accessible(page)
    page.get_by_label("If the id exists").focus()
    hands.type("replace")
    for _ in range(2):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == "Import":
            break
    page.keyboard.press("Enter")
    loaded = card(page, "finished")
    assert "8 rows read: 8 written" in loaded.inner_text()
    cluster.send("POST", "/keys/_update/8?refresh=true", '{"doc":{"n":7}}')
    undo = loaded.get_by_role("button", name="Undo the import")
    undo.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Undo this import?").wait_for()
    accessible(page)
    page.keyboard.press("Escape")
    becomes(page, lambda: page.evaluate("document.activeElement.innerText") == "Undo the import …")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Undo the import").focus()
    page.keyboard.press("Enter")
    page.locator("li.card", has_text="Undo of").wait_for()
    undone = card(page, "finished")
    assert "8 rows to take back: 7 taken back, 1 changed since" in undone.inner_text()
    undone.get_by_role("button", name="Show the rows that were left").press("Enter")
    assert "8" in undone.get_by_role("row").nth(1).inner_text()
    own = page.locator("li.card", has_text="keys.csv")
    own.locator(".badge", has_text="taken back").wait_for()
    assert not own.get_by_role("button", name="Undo the import").count()
    accessible(page)
    hits = cluster.send("POST", "/keys/_search", '{"size":20}')["hits"]["hits"]
    assert {hit["_id"]: hit["_source"] for hit in hits} == {"0": {"n": 1}, "1": {"n": 2}, "8": {"n": 7}}


def test_a_dry_run_says_why_a_row_would_be_rejected(page: Page, cluster: Cluster, tmp_path: Path) -> None:
    cluster.put("prices", [{"price": 1.0}], {"price": {"type": "double"}})
    file = tmp_path / "prices.csv"
    file.write_bytes(b"\xef\xbb\xbf_id,price\r\na,1.5\r\nb,much\r\n")  # as spreadsheets write it
    enter(page, "prices")
    choose(page, file)
    page.get_by_role("button", name="Dry run").click()
    said = card(page, "dry run, 1 row would be rejected").inner_text()
    assert "1 rejected; nothing was sent" in said
    assert "row 2: " in said
    assert "'much' is not a number" in said


def test_hostile_names_and_cells_are_text(page: Page, tmp_path: Path) -> None:
    page.evaluate(COLLECT)
    file = tmp_path / "<img src=x onerror=attacked(1)>.csv"
    heads = ",".join('"{}"'.format(text.replace('"', '""')) for text in dict.fromkeys(corpus.TEXTS))
    file.write_text(f"{heads}\n{heads}\n{heads}\nshort\n")
    enter(page, "<svg onload=attacked(2)>")
    choose(page, file)
    page.locator(".import-table tbody tr").nth(2).wait_for()
    assert corpus.TEXTS[0] in page.locator(".import-table tbody").inner_text()
    page.get_by_role("button", name="Make it with these types").click()
    assert "<svg onload=attacked(2)>" in card(page, "failed").inner_text()
    unharmed(page)
    choose(page, file)
    documents = tmp_path / "d.ndjson"
    documents.write_text("".join(json.dumps({text: text}) + "\n" for text in corpus.TEXTS))
    choose(page, documents)
    page.locator(".import-documents li").nth(20).wait_for()
    unharmed(page)


def test_keys_go_on_where_a_file_was_chosen_read_and_loaded(page: Page, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "orte.csv"
    file.write_bytes("straße;plz\nGasse 1;08001\n".encode("windows-1252"))
    enter(page, "orte")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").press("Enter")
    chooser.value.set_files(file)
    page.get_by_role("button", name="Read it as windows-1252").press("Enter")
    again = page.get_by_role("button", name="Choose another file")
    start = page.get_by_role("button", name="Make it with these types")
    start.wait_for()
    becomes(page, lambda: bool(again.evaluate("button => button === document.activeElement")))
    becomes(page, start.is_enabled)
    start.press("Enter")
    loaded = card(page, "finished")
    assert loaded.evaluate("card => card === document.activeElement")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "orte"
    cluster.send("DELETE", "/orte")


def test_a_table_whose_head_is_ascii_can_be_read_in_the_encoding_that_its_rows_have(
    page: Page, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(("id;name\n" + "".join(f"{at};Müller {at}\n" for at in range(200))).encode("windows-1252"))
    enter(page, "people-new")
    choose(page, file)
    page.get_by_text("are not utf-8").wait_for()
    assert not AXE.is_file() or not findings(page)
    page.get_by_role("button", name="Read it as windows-1252").press("Enter")
    page.get_by_role("cell", name="Müller 0", exact=True).wait_for()
    assert page.get_by_label("Encoding").input_value() == "windows-1252"
    assert not page.get_by_role("button", name="Read it as windows-1252").count()


def test_a_file_on_its_way_says_how_much_of_it_arrived_and_can_be_stopped(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "logs.ndjson"
    file.write_bytes(b'{"n": 1}\n' * 1_000_000)
    enter(page, "logs-new")
    session = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 300_000}
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", slow)
    choose(page, file)
    bar = page.get_by_role("progressbar", name="Receiving logs.ndjson")
    bar.wait_for()
    becomes(page, lambda: 0 < bar.evaluate("bar => bar.value") < file.stat().st_size)
    alerts = page.get_by_role("alert").all_inner_texts
    before = alerts()  # earlier imports failed too
    assert not AXE.is_file() or not findings(page)
    page.get_by_role("button", name="Cancel").press("Enter")
    bar.wait_for(state="detached")
    assert alerts() == before
    session.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    choose(page, file)
    page.locator(".import-documents li").nth(20).wait_for()
