"""A real workbench over the sample cluster, and a real Chromium; where either is missing the tests say so."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page, Request

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "plugins/workbench/dragoman_workbench/page/index.html"
PATIENCE = 120
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _need(there: object, missing: str) -> None:
    if there:
        return
    if os.environ.get("REQUIRE_BROWSER"):
        pytest.fail(missing)
    pytest.skip(missing)


@contextmanager
def running(*words: object, **variables: str) -> Iterator[dict[str, Any]]:
    """Run a command that prints one JSON line once it serves; yield that with the `pid`, and end it afterwards."""
    command = [sys.executable, *map(str, words)]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield {**json.loads(process.stdout.readline()), "pid": process.pid}
        finally:
            process.terminate()


class Cluster:
    """The sample cluster; `put` adds documents to it."""

    def __init__(self, port: int) -> None:
        self.port = port

    def send(self, method: str, path: str, body: str = "", kind: str = "application/json") -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", body.encode(), {"Content-Type": kind}, method=method
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def put(self, index: str, documents: list[dict[str, Any]], properties: dict[str, Any]) -> None:
        self.send("PUT", f"/{index}", json.dumps({"mappings": {"properties": properties}}))
        lines = [json.dumps(part) for at, one in enumerate(documents) for part in ({"index": {"_id": str(at)}}, one)]
        answer = self.send("POST", f"/{index}/_bulk", "\n".join(lines) + "\n", "application/x-ndjson")
        assert not answer["errors"], answer
        self.send("POST", f"/{index}/_refresh")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running("-m", "dragoman", "sample", "shop", "--port", 0, "--json") as served:
        yield Cluster(served["samples"][0]["port"])


@pytest.fixture(scope="session")
def home(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    words = ["connections", "add", "shop", "--type", "elasticsearch", "--host", "127.0.0.1", "--auth", "none", "--yes"]
    command = [sys.executable, "-m", "dragoman", *words, "--port", str(cluster.port)]
    subprocess.run(command, check=True, env={**os.environ, "DRAGOMAN_HOME": str(folder)}, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def vectors() -> Iterator[int]:
    """The port of the sample of Weaviate."""
    with running("-m", "dragoman", "sample", "library", "--port", 0, "--json") as served:
        yield served["samples"][0]["port"]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the workbench may export."""
    return tmp_path_factory.mktemp("exports")


@contextmanager
def serving(home: Path, *words: object) -> Iterator[Path]:
    """Serve a workbench; yields the file that leads into it, which holds a new token whenever one was used."""
    _need(PAGE.is_file(), "the page is not built: python plugins/workbench/build.py")
    with running("-m", "dragoman", "workbench", "--no-browser", "--json", *words, DRAGOMAN_HOME=str(home)) as served:
        yield next(home.rglob(f"workbench/open-{served['pid']}.html"))  # others may serve the same home


@pytest.fixture(scope="session")
def workbench(home: Path, exported: Path) -> Iterator[Path]:
    """The file that leads into a running workbench."""
    with serving(home, "--export-to", exported) as file:
        yield file


def read_address(file: Path) -> str:
    """The address with the unused token that a workbench's file holds."""
    found = re.search(r"url=([^\"]+)", file.read_text())
    assert found
    return html.unescape(found[1])


@pytest.fixture
def address(workbench: Path) -> str:
    """The workbench's address with an unused token."""
    return read_address(workbench)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A Chromium for a file of tests. While Playwright runs, no other test of its process can have an event loop."""
    _need(CHROMIUM, "no Chromium here; try: apt-get install -y chromium")
    _need(find_spec("playwright"), "no Playwright here; try: pip install playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def browsing(chromium: Browser, address: str, *, wait: bool = True, **options: Any) -> Iterator[Page]:
    """A tab in a workbench. The test fails if the page breaks its policy or raises an error."""
    usual = {"viewport": {"width": 1280, "height": 800}, "permissions": ["clipboard-read", "clipboard-write"]}
    context = chromium.new_context(**usual | options)
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE * 1000 / 4)
    faults: list[str] = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda said: "Content Security Policy" in said.text and faults.append(said.text))
    tab.goto(address)
    if wait:
        tab.locator("nav.sidebar").wait_for(state="attached")  # out of sight on a narrow screen
    yield tab
    context.close()
    assert not faults


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """A tab in the shared workbench."""
    with browsing(chromium, address) as tab:
        yield tab


@pytest.fixture
def orders(page: Page) -> Page:
    """The rows of `orders`."""
    show(page, "orders")
    return page


def address_of(name: str, *, connection: str = "shop", **parts: object) -> str:
    """Return the address of rows of an object, as the page writes it: of all rows, or of a selection's other parts."""
    rows = quote(msgspec.json.encode({"object": name} | parts), safe="!'()*")
    return f"#/connection/{connection}/rows/{rows}"


def rows_of(request: Request) -> dict[str, Any]:
    """Return the selection of rows that a request of the page holds."""
    rows: dict[str, Any] = json.loads(request.post_data or "")["rows"]
    return rows


def show(page: Page, name: str) -> None:
    """Go to the rows of an object and wait for the first."""
    page.evaluate("hash => { location.hash = hash }", address_of(name))
    page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
