"""Exports into the folder as a person does them: cancelled and resumed, on a full disk, and under names that lie."""

from __future__ import annotations

import hashlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, browsing, read_address, serving, show
from workbench.browser.slow_line import SlowLine
from workbench.browser.test_flows import SAVE, command
from workbench.browser.walking import Hands, becomes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

ROWS = 12_003


@pytest.fixture
def line(cluster: Cluster) -> Iterator[SlowLine]:
    """A line to the sample cluster that the test can hold up."""
    line = SlowLine(cluster.port)
    yield line
    line.close()


@pytest.fixture
def far(line: SlowLine, tmp_path: Path) -> Path:
    """A home whose connection goes over that line."""
    command(tmp_path / "home", *SAVE, "--port", line.port)
    return tmp_path / "home"


def export(page: Page, file: str) -> Locator:
    """Export the rows of the grid into the folder, and return the card of the export."""
    page.get_by_role("button", name="Export", exact=True).click()
    dialog = page.get_by_role("dialog")
    Hands(page).write(dialog.get_by_label("File name"), file)
    dialog.get_by_role("button", name="Export").click()
    return page.locator(".card", has_text=file)


def state(card: Locator, name: str) -> None:
    """Wait until an export is in a state; a failure tells what its card says."""
    from playwright.sync_api import TimeoutError as Late

    try:
        card.locator(".badge", has_text=name).wait_for(timeout=120_000)
    except Late as late:
        raise AssertionError(f"not {name}; the card says: {card.inner_text()}") from late


@pytest.mark.parametrize("into_a_folder", [True, False])
def test_a_page_without_exports_says_where_they_go(
    chromium: Browser, home: Path, tmp_path: Path, into_a_folder: bool
) -> None:
    words = ("--export-to", tmp_path) if into_a_folder else ()
    with serving(home, *words) as file, browsing(chromium, read_address(file)) as page:
        page.get_by_role("link", name="Exports").click()
        page.get_by_text("Nothing has been exported yet").wait_for()
        told = page.locator(".page").inner_text()
    assert (f"into the folder {tmp_path}" in told) is into_a_folder
    assert ("Export into a folder instead" in told) is not into_a_folder
    assert "--export-to" not in told


@pytest.mark.parametrize("again", ["at once", "after a reload"])
def test_an_export_is_cancelled_and_resumed(
    chromium: Browser, far: Path, line: SlowLine, tmp_path: Path, again: str
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    with serving(far, "--export-to", folder) as file, browsing(chromium, read_address(file)) as page:
        page.get_by_role("link", name="shop").first.click()
        page.locator(".facts").wait_for()
        show(page, "orders")
        before = line.passed
        state(export(page, "whole.ndjson"), "finished")
        whole = line.passed - before
        show(page, "orders")
        line.allow(whole // 2)
        card = export(page, "parts.ndjson")
        card.get_by_text("of 12,003 rows").wait_for()
        while not line.held:
            page.wait_for_timeout(50)
        card.get_by_role("button", name="Cancel").click()
        state(card, "cancelled")
        assert not (folder / "parts.ndjson").exists()
        line.allow(None)
        if again == "after a reload":
            page.reload()
        before = line.passed
        card.get_by_role("button", name="Resume").press("Enter")
        state(card, "finished")
        assert line.passed - before < 0.8 * whole  # it has not begun again
        assert card.get_by_role("button").count() == 0
        digest = hashlib.sha256((folder / "parts.ndjson").read_bytes()).hexdigest()
        assert digest in card.inner_text()
    lines = [(folder / name).read_text().splitlines() for name in ("whole.ndjson", "parts.ndjson")]
    assert sorted(lines[0]) == sorted(lines[1])  # slices are read in parallel, so their order is no promise
    assert len(lines[0]) == len(set(lines[0])) == ROWS


def test_workbenches_of_one_home_are_entered_by_a_file_each(home: Path) -> None:
    """The other tests here would otherwise export into the folder of another workbench."""
    with serving(home) as first, serving(home) as second, serving(home) as third:
        addresses = {read_address(file).partition("#")[0] for file in (first, second, third)}
    assert len(addresses) == 3


def test_a_full_disk_is_said_and_the_export_goes_on_once_there_is_room(
    chromium: Browser, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        with serving(home, "--export-to", folder) as file, browsing(chromium, read_address(file)) as page:
            page.get_by_role("link", name="shop").first.click()
            page.locator(".facts").wait_for()
            show(page, "orders")
            card = export(page, "orders.ndjson")
            state(card, "failed")
            told = card.get_by_role("alert").inner_text()
            assert "cannot be written: No space left on device" in told
            assert "free some space" in told
            assert not (folder / "orders.ndjson").exists()
            show(page, "books")  # everything else works
            page.get_by_role("link", name="Exports").click()
            subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
            card.get_by_role("button", name="Resume").click()
            state(card, "finished")
            rows = (folder / "orders.ndjson").read_text().splitlines()
            assert (len(rows), len(set(rows))) == (ROWS, ROWS)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_name_and_its_format_are_one_choice(orders: Page, exported: Path) -> None:
    """A person who writes `.csv` wants CSV, and one who then chooses TSV does not want it in a `.csv`."""
    hands, dialog = Hands(orders), orders.get_by_role("dialog")
    orders.get_by_role("button", name="Export", exact=True).click()
    name, format_, packed = (dialog.get_by_label(label) for label in ("File name", "Format", "Compression"))
    hands.write(name, "mine.csv.gz")
    assert (format_.input_value(), packed.input_value()) == ("csv", "gzip")
    for _ in ".gz":
        name.press("Backspace")
    assert (format_.input_value(), packed.input_value()) == ("csv", "")
    hands.choose(format_, "TSV")
    assert name.input_value() == "mine.tsv"
    hands.choose(packed, "bzip2")
    assert name.input_value() == "mine.tsv.bz2"
    hands.write(name, "mine.ndjson")
    assert format_.input_value() == "documents"
    hands.choose(format_, "Bulk lines of the server")
    assert name.input_value() == "mine.ndjson"
    hands.write(name, "by-name.csv")
    dialog.get_by_role("button", name="Export").click()
    state(orders.locator(".card", has_text="by-name.csv"), "finished")
    assert (exported / "by-name.csv").read_text().startswith("_id,")


def test_a_person_need_not_wait_for_a_server_that_does_not_answer(chromium: Browser, far: Path, line: SlowLine) -> None:
    with serving(far) as file, browsing(chromium, read_address(file)) as page:
        page.get_by_role("link", name="shop").first.click()
        page.locator(".facts").wait_for()
        show(page, "orders")
        line.allow(0)
        page.get_by_role("button", name="Refresh", exact=True).click()
        page.get_by_text("waiting for 4 s").wait_for()
        page.get_by_role("button", name="Stop waiting").click()
        page.get_by_role("alert").get_by_text("You stopped waiting for the server").wait_for()
        line.allow(None)
        page.get_by_role("button", name="Try again").click()
        becomes(page, lambda: page.get_by_role("alert").count() == 0)
        page.locator(".status-line", has_text="12,003 rows").wait_for()


def test_a_file_is_not_replaced_and_no_name_leads_elsewhere(orders: Page, exported: Path) -> None:
    state(export(orders, "once.ndjson"), "finished")
    assert len((exported / "once.ndjson").read_text().splitlines()) == ROWS
    orders.go_back()
    dialog = orders.get_by_role("dialog")
    export(orders, "once.ndjson")
    dialog.get_by_text("exists already").wait_for()
    for name in ("../x", "<img src=x onerror=alert(1)>"):
        Hands(orders).write(dialog.get_by_label("File name"), name)
        dialog.get_by_role("button", name="Export").click()
        dialog.get_by_text("cannot name a file").wait_for()
    assert orders.locator("main img").count() == 0
