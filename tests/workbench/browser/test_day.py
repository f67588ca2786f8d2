"""A day in the page alone: logs are loaded, explored and corrected; awkward rows follow; all of it is exported."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.test_documents import write_over
from workbench.browser.test_importing import card, choose
from workbench.browser.test_real_servers import IMPORTS, walking
from workbench.browser.walking import Server, Walk, add_filter, becomes, digits

from thorough import THOROUGH

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1_500)]

LOGS, SALES = (300_000, 50_000) if THOROUGH else (12_000, 3_000)
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
SERVICES = ("auth", "billing", "search", "Zustellung", "<b>web</b>")
LEVELS = ("INFO", "INFO", "INFO", "INFO", "INFO", "INFO", "WARN", "WARN", "DEBUG", "ERROR")
TRACE = 9_007_199_254_740_993
"""The first trace: a float holds none of them."""


def log(number: int) -> dict[str, Any]:
    """Return what is stored of an event; all of them are spread evenly over a week."""
    return {
        "@timestamp": (BEGIN + timedelta(seconds=number * 604_800 // LOGS)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "level": LEVELS[number * 7 % 10],
        "service": SERVICES[number // 10 % 5],
        "status": (200, 200, 204, 404, 500)[number // 3 % 5],
        "duration": number % 997 + 0.25,
        "trace": TRACE + number,
        "message": f'request {number} said "done" in Malmö\n{"at line " * (number % 4)}',
        "host": {"name": f"node-{number % 12}", "zone": "eu"},
    }


def sale(number: int) -> tuple[list[str], dict[str, Any] | None]:
    """Return a row as a spreadsheet writes it, and what must be stored of it; None if it is rejected."""
    euros, cents = number * 37 % 100_000, number % 100
    amount = f"{euros:,}".replace(",", ".") + f",{cents:02}"
    day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number % 365)
    note = ("", 'sagt "ja"', "zwei\nZeilen", "a;b", " mit Rand ")[number % 5]
    fields = [
        f"{number:06}",
        f"Müller & Söhne {number % 90}",
        amount,
        f"{day:%d.%m.%Y}",
        "ja" if number % 3 else "nein",
        note,
    ]
    stored = {
        "Kunde": fields[1],
        "Betrag": f"{euros}.{cents:02}",
        "Datum": f"{day:%Y-%m-%d}",
        "Bezahlt": number % 3 > 0,
    }
    if number % 1_000 == 999:
        return [*fields[:2], "auf Anfrage", *fields[3:]], None
    return fields, {"Nr": fields[0], **stored, **({"Notiz": note} if note else {})}


def quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if set(field) & set('";\n') else field


def written_logs(folder: Path) -> Path:
    file = folder / "logs.ndjson.gz"
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=1) as lines:
        lines.writelines(json.dumps(log(number), ensure_ascii=False) + "\n" for number in range(LOGS))
    return file


def written_sales(folder: Path) -> Path:
    file = folder / "Umsätze.csv"
    lines = [
        "Nr;Kunde;Betrag;Datum;Bezahlt;Notiz",
        *(";".join(map(quoted, sale(number)[0])) for number in range(SALES)),
    ]
    file.write_bytes(("\r\n".join(lines) + "\r\n").encode("windows-1252"))
    return file


def load_the_logs(walk: Walk, file: Path, target: str) -> None:
    """Load documents into an index that is made, and go to its rows."""
    page = walk.page
    page.get_by_role("link", name="Import rows").click()
    walk.hands.write(page.get_by_label("Into the object"), target)
    choose(page, file)
    page.get_by_text("The server decides on the types").wait_for()
    start = page.get_by_role("button", name="Make it, and import")
    becomes(page, start.is_enabled)
    start.click()
    loaded = card(page, "finished", patience=900)
    assert f"{LOGS:,} rows read: {LOGS:,} written" in loaded.inner_text()
    loaded.get_by_role("link", name=target).click()
    walk.cell(1, 0).wait_for()


def explore(walk: Walk) -> None:
    """Look at the errors of a day of one service: a drag over the chart, a typed filter, a value from its cell."""
    page, day = walk.page, LOGS // 7
    chart = page.get_by_role("region", name="Rows over time")
    chart.get_by_text("2 to 8 March 2026").wait_for()
    bars = chart.get_by_role("option")
    boxes = [box for bar in bars.all()[4:8] if (box := bar.bounding_box())]
    page.mouse.move(boxes[0]["x"] + 2, boxes[0]["y"] + 20)
    page.mouse.down()
    page.mouse.move(boxes[-1]["x"] + 2, boxes[-1]["y"] + 20, steps=5)
    with page.expect_response("**/api/page") as answered:
        page.mouse.up()
    assert abs(answered.value.json()["total"] - day) <= 1
    assert add_filter(page, "level = ERROR")["total"] == pytest.approx(day / 10, abs=2)
    walk.cell(1, "service").click(button="right")
    with page.expect_response("**/api/page") as answered:
        page.get_by_role("menuitem", name="Filter by this value").press("Enter")
    found = answered.value.json()
    assert found["total"] == pytest.approx(day / 50, abs=2)
    walk.sort("duration", "descending")
    glance = walk.glance("status")
    assert int(glance["rows"].replace(",", "")) == found["total"]


def correct(walk: Walk) -> int:
    """Edit a cell, and several values of a row as a document, and send both at once; returns the row's number."""
    page = walk.page
    trace = int(walk.cell(1, "trace").inner_text())
    walk.edit("level", "FATAL")
    walk.cell(1, "trace").click()
    page.keyboard.press("Shift+Enter")
    page.locator(".row-editor .cm-line", has_text='"duration"').wait_for()
    write_over(page, '"status"', f"{log(trace - TRACE)['status']},", "418,")
    page.keyboard.press("Control+Enter")
    walk.review()
    assert walk.send() == "applied"
    walk.close_the_review()
    return trace - TRACE


def load_the_sales(walk: Walk, file: Path, target: str) -> None:
    """Load a table as a spreadsheet writes it, where it is doubtful as chosen; look at what is rejected."""
    page = walk.page
    page.get_by_role("link", name="elasticsearch").first.click()
    page.get_by_role("link", name="Import rows").click()
    walk.hands.write(page.get_by_label("Into the object"), target)
    choose(page, file)
    page.get_by_role("button", name="Read it as windows-1252").press("Enter")
    page.get_by_text("does not exist, and is made").wait_for()
    walk.hands.choose(page.get_by_label("Reading of Betrag"), "decimal-comma")
    becomes(page, lambda: page.get_by_label("Type of Betrag").input_value() == "float")
    types = {name: page.get_by_label(f"Type of {name}").input_value() for name in ("Nr", "Kunde", "Datum", "Bezahlt")}
    assert types == {"Nr": "text", "Kunde": "text", "Datum": "date", "Bezahlt": "boolean"}
    walk.hands.choose(page.get_by_label("Id of a row"), "Nr")
    start = page.get_by_role("button", name="Make it with these types")
    becomes(page, start.is_enabled)
    start.press("Enter")
    loaded, bad = card(page, "finished", patience=300), SALES // 1_000
    assert f"{SALES:,} rows read: {SALES - bad:,} written, {bad} rejected" in loaded.inner_text()
    loaded.get_by_role("button", name="Show the rejected rows").press("Enter")
    becomes(page, lambda: loaded.get_by_role("row").filter(has_text="auf Anfrage").count() == bad)
    loaded.get_by_role("link", name=target).click()
    walk.cell(1, 0).wait_for()


def compare(walk: Walk) -> None:
    """Put two rows beside each other."""
    page = walk.page
    walk.sort("Nr", "ascending")
    walk.cell(1, "Nr").click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Space")
    page.get_by_role("table", name="Two rows, compared").wait_for()
    differing = page.locator(".compared tbody tr").all_inner_texts()
    assert [row.partition("\t")[0] for row in differing] == [
        "_id",
        "Betrag",
        "Bezahlt",
        "Datum",
        "Kunde",
        "Notiz",
        "Nr",
    ]


@pytest.mark.live("elasticsearch")
def test_a_day_on_elasticsearch(live_server: dict[str, Any], chromium: Browser, tmp_path: Path) -> None:
    if live_server["engine"] not in IMPORTS:
        pytest.skip(f"the day is spent on {', '.join(IMPORTS)}")
    server = Server(live_server)
    fields = {"Host": "127.0.0.1", "Port": str(server.record["port"])}
    with walking(chromium, server, "day-logs", tmp_path) as walk:
        server.send("DELETE", "/day-logs,day-sales?ignore_unavailable=true")
        walk.install_and_fill("Elasticsearch", fields, {"Auth Method": "none"})
        walk.save_and_connect()
        load_the_logs(walk, written_logs(tmp_path), "day-logs")
        explore(walk)
        number = correct(walk)
        server.send("POST", "/day-logs/_refresh")
        found = server.send("POST", "/day-logs/_search", json.dumps({"query": {"term": {"trace": TRACE + number}}}))
        [hit] = found["hits"]["hits"]
        assert hit["_source"] == digits(json.dumps(log(number) | {"level": "FATAL", "status": 418}))
        load_the_sales(walk, written_sales(tmp_path), "day-sales")
        exported = {row["Nr"]: row for row in walk.export(tmp_path / "exports")}
        sold = [stored for number in range(SALES) if (stored := sale(number)[1]) is not None]
        assert exported == {row["Nr"]: row for row in sold}
        compare(walk)
