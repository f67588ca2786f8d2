"""The documentation's pictures, from a real workbench over the sample cluster: `make pictures` takes them anew."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright
from workbench.browser.conftest import CHROMIUM, Cluster, browsing, read_address, running, serving, show
from workbench.browser.walking import Hands, add_filter

from captions import caption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
REGISTRY = ROOT / "runtime/dragoman/bundled/index.html"
SIZE = {"width": 1180, "height": 660}
QUALITY = 85
"""Of WebP, from 1 to 100: text stays sharp."""
MOMENT = 600
"""Milliseconds in which what slides in has arrived."""
SEARCH = """GET /logs/_search
{
  "size": 0,
  "query": {"term": {"level": "error"}},
  "aggs": {
    "service": {"terms": {"field": "service"}}
  }
}
"""


def log_documents() -> Iterator[dict[str, Any]]:
    """Yield 6,000 lines of a week's log, the same on every run; one service fails for some hours."""
    random, moment = Random("dragoman pictures"), datetime(2026, 3, 2, tzinfo=UTC)
    services = ("checkout", "catalogue", "search", "accounts", "payments", "shipping")
    for number in range(6_000):
        moment += timedelta(seconds=random.expovariate(1 / (50 + 12 * abs(moment.hour - 14))))  # busy in the afternoon
        service = random.choice(services)
        outage = service == "payments" and 2_900 < number < 3_300
        level = (
            "error" if outage or random.random() < 0.04 else random.choice(("info", "info", "info", "debug", "warn"))
        )
        yield {
            "@timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level,
            "service": service,
            "status": 503 if level == "error" else random.choice((200, 200, 200, 201, 304, 404)),
            "took_ms": round(random.lognormvariate(3.2, 1.1), 1),
            "message": f"{random.choice(('accepted', 'retried', 'cached'))} order {random.randrange(10**6)}",
            "host": {"name": f"{service}-{random.randrange(1, 9)}", "zone": random.choice(("eu-1", "eu-2"))},
        }


LOG_COLUMNS = {
    "@timestamp": {"type": "date"},
    "level": {"type": "keyword"},
    "service": {"type": "keyword"},
    "status": {"type": "integer"},
    "took_ms": {"type": "double"},
    "message": {"type": "text"},
    "host": {"properties": {"name": {"type": "keyword"}, "zone": {"type": "keyword"}}},
}


def customer_table() -> bytes:
    """Return a table as a spreadsheet exports it: semicolons, windows-1252, and a column that is nearly numbers."""
    random = Random("dragoman pictures")
    names = ("Müller", "Strauß", "Núñez", "Ødegård", "O'Hara", "Almeida")
    lines = ["customer;name;since;turnover;active;postcode"]
    for number in range(400):
        turnover = "n/a" if number % 97 == 5 else f"{random.randint(100, 99_999) / 100}"
        since = f"20{number % 26:02}-{number % 12 + 1:02}-{number % 28 + 1:02}"
        lines.append(f"{100_000 + number};{random.choice(names)};{since};{turnover};true;{random.randrange(99_999):05}")
    return "\r\n".join(lines).encode("windows-1252")


def keep(page: Page, name: str) -> None:
    """Keep what the page shows as a picture of the documentation."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(MOMENT)
    session = page.context.new_cdp_session(page)
    picture = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    session.detach()
    data = base64.b64decode(picture["data"])
    (IMAGES / f"{name}.webp").write_bytes(data)
    print(f"  {name}.webp  {len(data):,} bytes")


def take_overview(page: Page) -> None:
    """The server's health, its nodes, and the objects with their states."""
    page.evaluate("location.hash = '#/connection/shop'")
    page.locator(".node-table tbody tr").first.wait_for()
    page.locator(".object-table td.state").first.wait_for()
    page.get_by_role("cell", name="…", exact=True).first.wait_for(state="detached")
    keep(page, "workbench-overview")


def take_grid(page: Page) -> None:
    """Rows over time, the grid, and a row as a tree."""
    show(page, "logs")
    page.get_by_role("region", name="Rows over time").get_by_role("option").first.wait_for()
    page.locator(".cell").nth(3).click()
    page.keyboard.press("Space")
    page.get_by_role("complementary", name="Side pane").get_by_role("tab", name="Row").click()
    keep(page, "workbench-grid")
    page.get_by_role("button", name="Side pane").press("Enter")


def take_filter(page: Page) -> None:
    """A filter that stands, one that is being typed, and the values that the column has."""
    add_filter(page, "level is error")
    page.get_by_role("button", name="Filter (1)").click()
    Hands(page).type("service is")
    page.keyboard.press("Enter")
    page.get_by_role("option", name="payments").first.wait_for()
    keep(page, "workbench-filter")
    page.keyboard.press("Escape")


def take_console(page: Page) -> None:
    """An aggregation, its chart, and its answer."""
    page.evaluate("location.hash = '#/connection/shop/console'")
    page.get_by_role("textbox", name="Console of shop").click()
    page.keyboard.press("Control+a")
    Hands(page).paste(SEARCH)
    page.keyboard.press("Control+Enter")
    page.locator(".answers[aria-busy=false] .answer-chart").wait_for()
    keep(page, "workbench-console")


def take_import(page: Page, folder: Path) -> None:
    """The first rows of a table, and the types that they propose."""
    table = folder / "customers.csv"
    table.write_bytes(customer_table())
    page.evaluate("location.hash = '#/connection/shop/import'")
    Hands(page).write(page.get_by_label("Into the object"), "customers")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a").click()
    chooser.value.set_files(table)
    page.get_by_role("button", name="Read it as windows-1252").click()
    page.get_by_role("cell", name="Müller").first.wait_for()
    keep(page, "workbench-import")


def take_marketplaces(chromium: Browser, folder: Path) -> None:
    """A driver that is not installed, in the workbench, and a registry's own page."""
    with (
        serving(folder / "fresh") as file,
        browsing(chromium, read_address(file), viewport=SIZE) as page,
    ):
        page.evaluate("location.hash = '#/new/weaviate'")
        page.locator(".offer").wait_for()
        keep(page, "workbench-marketplace")
    page = chromium.new_page(viewport={"width": 1100, "height": 1240})  # all drivers, without the foot
    page.goto(REGISTRY.as_uri())
    page.locator(".drivers h2").first.wait_for()
    keep(page, "marketplace")
    caption(
        IMAGES / "marketplace.webp", [" ".join(text.split()) for text in page.locator(".drivers h2").all_inner_texts()]
    )
    page.close()


def main() -> None:
    """Take every picture, and remove those that no longer are one."""
    for old in IMAGES.iterdir():
        old.unlink()
    with (
        tempfile.TemporaryDirectory() as name,
        running("-m", "dragoman", "sample", "shop", "--port", 0, "--json") as served,
        sync_playwright() as playwright,
    ):
        folder = Path(name)
        port = served["samples"][0]["port"]
        Cluster(port).put("logs", [*log_documents()], LOG_COLUMNS)
        words = [
            "connections",
            "add",
            "shop",
            "--type",
            "elasticsearch",
            "--host",
            "127.0.0.1",
            "--auth",
            "none",
            "--yes",
        ]
        command = [sys.executable, "-m", "dragoman", *words, "--port", str(port)]
        subprocess.run(command, check=True, env={**os.environ, "DRAGOMAN_HOME": str(folder / "home")})
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with (
            serving(folder / "home") as file,
            browsing(chromium, read_address(file), viewport=SIZE) as page,
        ):
            take_overview(page)
            take_grid(page)
            take_filter(page)
            take_console(page)
            take_import(page, folder)
        take_marketplaces(chromium, folder)
        chromium.close()


if __name__ == "__main__":
    main()
