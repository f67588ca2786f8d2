"""Every format of an export on every driver, with all, shown and chosen columns, through the page and the real host."""

from __future__ import annotations

import csv
import json
import re
from itertools import product
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import browsing, read_address, serving
from workbench.browser.test_flows import SAVE, command
from workbench.browser.walking import Hands

from thorough import one_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page
    from workbench.browser.conftest import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

TABLES = {"CSV": "csv", "TSV": "tsv", "Parquet": "parquet"}
DOCUMENTS = {
    "NDJSON, the documents": "ndjson",
    "NDJSON, with keys and metadata": "ndjson",
    "JSON, one array of the documents": "json",
    "Bulk lines of the server": "ndjson",
}
COLUMNS = ["all that are stored", "those that the grid shows", "chosen here"]
PLACES = {"elasticsearch": ("shop", "books", "isbn"), "weaviate": ("library", "Article", "words")}
"""The connection, the object, and a column of it that is hidden."""

SORTED = {"elasticsearch": "pages", "weaviate": "score"}
"""A column to sort by."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the exports."""
    return tmp_path_factory.mktemp("matrix")


@pytest.fixture(scope="module")
def place(cluster: Cluster, vectors: int, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file that leads into a workbench over both samples."""
    home = tmp_path_factory.mktemp("both") / "home"
    command(home, *SAVE, "--port", cluster.port)
    words = ("connections", "add", "library", "--type", "weaviate", "--host", "127.0.0.1", "--auth", "none", "--yes")
    command(home, *words, "--port", vectors)
    with serving(home, "--export-to", folder) as file:
        yield file


def rows_of(page: Page, driver: str) -> int:
    """Go to the rows, hide a column with the mouse, and return how many there are."""
    connection, name, hidden = PLACES[driver]
    page.get_by_role("link", name=connection).first.click()
    page.locator(".facts").wait_for()
    with page.expect_response(lambda answer: answer.url.endswith("/preferences") and name in answer.request.post_data):
        page.locator(".object", has_text=name).click()  # the columns are arranged as they were left
    page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    from playwright.sync_api import TimeoutError as PageTimeoutError

    head = page.locator("[role=columnheader]", has=page.locator(".head-name", has_text=re.compile(f"^{hidden}$")))
    try:
        head.wait_for(state="detached", timeout=2_000)  # the arrangement is remembered
    except PageTimeoutError:
        head.click(button="right")
        page.get_by_role("menuitem", name="Hide").click()
        head.wait_for(state="detached")
    return int(page.locator(".status-line").inner_text().split(" rows")[0].replace(",", ""))


def exported(page: Page, file: str) -> Locator:
    """The card of an export that has finished."""
    page.get_by_role("dialog").get_by_role("button", name="Export").click()
    card = page.locator(".card", has_text=file)
    card.locator(".badge", has_text=re.compile("finished|failed")).wait_for(timeout=60_000)
    assert "finished" in card.inner_text(), card.inner_text()
    page.go_back()
    page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    return card


def read_table(path: Path) -> tuple[list[str], int]:
    """The columns of a file, and its rows."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.read_table(path)
        return table.column_names, table.num_rows
    with path.open(newline="") as file:
        head, *rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
    return head, len(rows)


@pytest.mark.parametrize(("label", "driver"), one_in(5, product(TABLES, PLACES)))
def test_a_table_holds_the_columns_that_were_chosen(
    chromium: Browser, place: Path, folder: Path, driver: str, label: str
) -> None:
    hidden = PLACES[driver][2]
    with browsing(chromium, read_address(place)) as page:
        total, hands = rows_of(page, driver), Hands(page)
        heads: dict[str, list[str]] = {}
        for number, columns in enumerate(COLUMNS):
            name = f"{driver}-{number}.{TABLES[label]}"
            page.get_by_role("button", name="Export", exact=True).click()
            dialog = page.get_by_role("dialog")
            hands.choose(dialog.get_by_label("Format"), label)
            hands.choose(dialog.get_by_role("combobox", name="Columns"), columns)
            if columns == "chosen here":
                hands.write(dialog.get_by_label("Search columns"), hidden)
                dialog.get_by_role("checkbox", name=hidden).click()
            if driver == "elasticsearch":
                assert "Left out: _score (computed for a page and not stored)." in dialog.inner_text()
            hands.write(dialog.get_by_label("File name"), name)
            exported(page, name)
            heads[columns], rows = read_table(folder / name)
            assert rows == total
    every, shown, chosen = (heads[columns] for columns in COLUMNS)
    assert hidden in every
    assert {*shown} == {*every} - {hidden}
    assert {*chosen} == {*every}


@pytest.mark.parametrize(("label", "driver"), one_in(3, product(DOCUMENTS, PLACES)))
def test_documents_are_exported_whole_whatever_the_grid_shows(
    chromium: Browser, place: Path, folder: Path, driver: str, label: str
) -> None:
    hidden = PLACES[driver][2]
    with browsing(chromium, read_address(place)) as page:
        total, hands = rows_of(page, driver), Hands(page)
        name = f"{driver}-{list(DOCUMENTS).index(label)}.{DOCUMENTS[label]}"
        page.get_by_role("button", name="Export", exact=True).click()
        dialog = page.get_by_role("dialog")
        hands.choose(dialog.get_by_label("Format"), label)
        assert dialog.get_by_role("combobox", name="Columns").count() == 0
        hands.write(dialog.get_by_label("File name"), name)
        exported(page, name)
    text = (folder / name).read_text()
    documents = json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    assert len(documents) == total * (2 if label.startswith("Bulk") and driver == "elasticsearch" else 1)
    assert f'"{hidden}"' in text


@pytest.mark.parametrize("driver", PLACES)
def test_a_sort_that_a_file_cannot_have_is_said_before_and_after(
    chromium: Browser, place: Path, folder: Path, driver: str
) -> None:
    """As for a saved query that sorts, in a terminal: the rows come in the server's order, and a note says so."""
    names = [f"{driver}-{text}.ndjson" for text in ("unsorted", "sorted")]
    with browsing(chromium, read_address(place)) as page:
        total, hands = rows_of(page, driver), Hands(page)
        for name, is_sorted in zip(names, (False, True), strict=True):
            if is_sorted:
                pattern = re.compile(f"^{SORTED[driver]}$")
                head = page.locator("[role=columnheader]:visible", has=page.locator(".head-name", has_text=pattern))
                for _ in range(2):  # up, then down
                    with page.expect_response("**/api/page"):
                        head.click()
            page.get_by_role("button", name="Export", exact=True).click()
            dialog = page.get_by_role("dialog")
            assert (f"not sorted by {SORTED[driver]}, descending" in dialog.inner_text()) == is_sorted
            assert ("the order of the server" in dialog.inner_text()) == is_sorted
            hands.write(dialog.get_by_label("File name"), name)
            dialog.get_by_role("button", name="Export").click()
            card = page.locator(".card", has_text=re.compile(rf"\b{name}"))
            card.locator(".badge", has_text="finished").wait_for(timeout=60_000)
            assert ("a sort orders the rows of pages only" in card.inner_text()) == is_sorted
            page.go_back()
            page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    plain, in_order = (sorted((folder / name).read_text().splitlines()) for name in names)
    assert len(plain) == total
    assert in_order == plain
