"""Objects that contain others, in the sidebar: the databases of a real Chroma and their collections."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import browsing, read_address, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.live("chroma"), pytest.mark.timeout(200)]
BASE = "/api/v2/tenants/default_tenant/databases"


def test_a_database_opens_and_its_collection_is_a_grid(
    live_server: dict[str, Any], chromium: Browser, tmp_path: Path
) -> None:
    def send(path: str, body: object) -> Any:
        request = urllib.request.Request(live_server["url"] + path, json.dumps(body).encode(), method="POST")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    send(BASE, {"name": "walk-db"})
    for database, name in (("walk-db", "walk-films"), ("default_database", "walk-books")):
        made = send(f"{BASE}/{database}/collections", {"name": name})["id"]
        rows = {"ids": [f"{name} {at}" for at in range(3)], "embeddings": [[at, 1] for at in range(3)]}
        send(f"{BASE}/{database}/collections/{made}/add", rows)
    words = ("connections", "add", "vectors", "--type", "chroma", "--host", "127.0.0.1", "--yes")
    command = [sys.executable, "-m", "dragoman", *words, "--port", str(live_server["port"])]
    subprocess.run(command, check=True, env={**os.environ, "DRAGOMAN_HOME": str(tmp_path)}, capture_output=True)
    with serving(tmp_path) as file, browsing(chromium, read_address(file)) as page:
        page.locator(".connection", has_text="vectors").click()
        branch = page.locator(".branch", has_text="walk-db")
        assert branch.get_attribute("aria-expanded") == "false"
        branch.click()
        page.locator(".object", has_text="walk-films").click()
        page.locator("[role=gridcell]", has_text="walk-films 2").wait_for()
        assert page.locator(".object", has_text="walk-books").count() == 0
        branch.click()
        page.locator(".object", has_text="walk-films").wait_for(state="detached")
        page.locator(".branch", has_text="default_database").click()
        page.locator(".object", has_text="walk-books").click()
        page.locator("[role=gridcell]", has_text="walk-books 2").wait_for()
