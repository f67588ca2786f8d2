"""What a person's hands do in the grid: no key is lost, whatever opens the field, and each step can be taken back."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from workbench.browser.conftest import Cluster, show
from workbench.browser.test_views import AXE, findings
from workbench.browser.walking import Hands, becomes

from thorough import THOROUGH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Locator, Page

browser = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]

HANDLES = {"fill", "select_option", "insert_text", "set_input_files", "dispatch_event", "press_sequentially"}
"""What sets a field at once."""
SETS = re.compile(
    r"\.(value|checked|selectedIndex|innerText|textContent)\s*=[^=]|execCommand|new (Input|Keyboard)Event|^Input\."
)
"""Scripts that set a field, and the browser's own protocol; keys at a person's pace belong to `Hands`, too."""


WAITS = {"wait_for_function"}
"""What the page's policy forbids from the second look on: a test passes only if it need not wait."""


def handles(source: str) -> list[str]:
    """Name what a test sets from outside instead of typing it, and what it waits for in vain."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, owner = node.func.attr, ast.unparse(node.func.value)
            if name in HANDLES | WAITS or (name == "type" and owner.endswith("keyboard")):
                found.append(f"{node.lineno}: {owner}.{name}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and SETS.search(node.value):
            found.append(f"{node.lineno}: {node.value[:60]}")
    return found


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.py")), ids=lambda path: path.name)
def test_no_test_of_the_page_sets_a_value_from_outside(path: Path) -> None:
    source = path.read_text()
    if path.name == "walking.py":  # the hands themselves
        begin = source.index("class Hands:")
        source = source[:begin] + source[source.index("\nclass ", begin) :]
    if path != Path(__file__):
        assert handles(source) == []


def test_what_sets_a_value_is_noticed() -> None:
    for line in (
        "page.get_by_label('Name').fill('x')",
        "page.keyboard.type('x')",
        "page.keyboard.insert_text('x')",
        "page.locator('select').select_option('x')",
        "page.evaluate('() => { field.value = 1 }')",
        "session.send('Input.insertText', {})",
        "page.wait_for_function('() => true')",
    ):
        assert handles(line), line
    assert handles("Hands(page).type('x'); page.keyboard.press('Enter'); page.evaluate('field.value === 1')") == []


OLD = "old text"


@pytest.fixture
def notes(page: Page, cluster: Cluster) -> Iterator[Page]:
    """A grid of three rows with a text, a number and a document."""
    rows = [{"title": f"{OLD} {at}", "price": at + 0.5, "tags": ["a"]} for at in range(1, 40)]
    kinds = {"title": {"type": "keyword"}, "price": {"type": "double"}, "tags": {"type": "keyword"}}
    cluster.put("notes", rows, kinds)
    show(page, "notes")
    yield page
    cluster.send("DELETE", "/notes")


def cell(page: Page, row: int, column: str) -> Locator:
    """A cell by its row, from 1, and its column."""
    head = page.locator("[role=columnheader]", has=page.locator(".head-name", has_text=re.compile(f"^{column}$")))
    at = head.get_attribute("aria-colindex")
    return page.locator(f'[role=row][aria-rowindex="{row + 1}"] [role=gridcell][aria-colindex="{at}"]')


def holds(page: Page, row: int, column: str, text: str) -> None:
    """Assert that a cell shows a text as its change."""
    changed = cell(page, row, column)
    page.locator(".cell-editor").wait_for(state="detached")
    shows(changed, text)
    assert "edited" in (changed.get_attribute("class") or "")


def shows(place: Locator, text: str) -> None:
    """Wait until a cell shows a text; the grid draws in the next frame."""
    from playwright.sync_api import expect

    expect(place).to_have_text(text)


def by_typing(page: Page, place: Locator) -> None:
    place.click()
    Hands(page).type("112.5")


def by_f2(page: Page, place: Locator) -> None:
    place.click()
    page.keyboard.press("F2")
    Hands(page).type("112.5")


def by_enter(page: Page, place: Locator) -> None:
    place.click()
    page.keyboard.press("Enter")
    Hands(page).type("112.5")


def by_double_click(page: Page, place: Locator) -> None:
    place.dblclick()
    Hands(page).type("112.5")


def by_the_menu(page: Page, place: Locator) -> None:
    place.click(button="right")
    page.get_by_role("menuitem", name="Edit", exact=True).click()
    Hands(page).type("112.5")


def by_pasting(page: Page, place: Locator) -> None:
    place.click()
    Hands(page).paste("112.5")


def by_pasting_and_typing_on(page: Page, place: Locator) -> None:
    place.click()
    Hands(page).paste("112")
    Hands(page).type(".5")


def while_the_cell_is_out_of_view(page: Page, place: Locator) -> None:
    place.click()
    page.mouse.wheel(0, 900)
    page.wait_for_timeout(300)
    Hands(page).type("112.5")


def by_a_picker(page: Page, place: Locator) -> None:
    place.click()
    Hands(page).pick("1")
    Hands(page).type("12.5")


def by_an_input_method(page: Page, place: Locator) -> None:
    place.click()
    Hands(page).compose("\N{FULLWIDTH DIGIT ONE}", "11", "112")
    Hands(page).type(".5")


WAYS = [
    by_typing, by_f2, by_enter, by_double_click, by_the_menu, by_pasting, by_pasting_and_typing_on,
    while_the_cell_is_out_of_view, by_a_picker, by_an_input_method,
]  # fmt: skip


@pytest.mark.parametrize(
    ("way", "column"),
    [
        pytest.param(way, column, id=f"{way.__name__}-{column}")
        for at, way in enumerate(WAYS)
        for column in (("price", "title") if THOROUGH else (("price", "title")[at % 2],))
    ],
)
@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(240)
def test_a_cell_keeps_every_key_whatever_opens_its_field(
    notes: Page, cluster: Cluster, way: Callable[[Page, Locator], None], column: str
) -> None:
    way(notes, cell(notes, 1, column))
    notes.keyboard.press("Enter")
    holds(notes, 1, column, "112.5")
    notes.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
    with notes.expect_response("**/api/changes/apply"):
        notes.get_by_role("button", name="Send 1 request").click()
    notes.locator(".badge", has_text="applied").wait_for()
    stored = cluster.send("GET", "/notes/_doc/0")["_source"][column]
    assert stored == (112.5 if column == "price" else "112.5")


class TestHands:
    """In the browser."""

    pytestmark = browser

    def test_dead_keys_and_input_methods_keep_their_first_sign(self, notes: Page) -> None:
        hands = Hands(notes)
        cell(notes, 1, "title").click()
        hands.dead_key("^", "ê")
        hands.type("tre")
        notes.keyboard.press("Enter")
        holds(notes, 1, "title", "être")
        hands.compose("に", "にほ", "日本")
        notes.locator(".cell-editor").wait_for()
        hands.type("!")
        notes.keyboard.press("Enter")
        holds(notes, 2, "title", "日本!")

    def test_keys_that_follow_at_once_are_all_kept(self, notes: Page) -> None:
        """One row after another, without a pause."""
        cell(notes, 1, "title").click()
        for word in ("one", "two", "three"):
            Hands(notes).type(word)
            notes.keyboard.press("Enter")
        for row, word in enumerate(("one", "two", "three"), 1):
            holds(notes, row, "title", word)

    def test_a_text_with_line_breaks_is_pasted_whole(self, notes: Page) -> None:
        cell(notes, 1, "title").click()
        Hands(notes).paste("first\nsecond")
        notes.keyboard.press("Enter")
        holds(notes, 1, "title", "first↵second")

    def test_a_block_is_pasted_in_one_step_and_what_cannot_be_is_named_first(self, notes: Page) -> None:
        hands, edited = Hands(notes), notes.locator(".cell.edited")
        cell(notes, 1, "price").click()
        hands.paste("12.50\tx\nmuch\ty\n3\tz\n")  # the title is the next column
        dialog = notes.get_by_role("dialog")
        dialog.get_by_text("takes a number").wait_for()
        assert dialog.locator("tbody td").all_inner_texts() == ["2", "price", "much", "takes a number"]
        assert edited.count() == 0
        dialog.get_by_role("button", name="Paste nothing").click()
        hands.paste("12.50\nmuch\n3")  # no number has several lines
        dialog.get_by_role("button", name="Paste the other 2 cells").click()
        holds(notes, 1, "price", "12.50")
        holds(notes, 3, "price", "3")
        assert edited.count() == 2
        notes.keyboard.press("Control+z")
        edited.first.wait_for(state="detached")

    def test_a_value_fills_what_is_selected_and_copied_rows_are_pasted_as_rows(self, notes: Page) -> None:
        edited = notes.locator(".cell.edited")
        cell(notes, 1, "title").click()
        for _ in range(2):
            notes.keyboard.press("Shift+ArrowDown")
        Hands(notes).paste("same")
        becomes(notes, lambda: edited.count() == 3)
        notes.keyboard.press("Control+c")
        notes.locator(".toast", has_text="Copied 3").wait_for()
        cell(notes, 6, "title").click()
        notes.keyboard.press("Control+v")
        becomes(notes, lambda: edited.count() == 6)
        holds(notes, 8, "title", "same")
        notes.keyboard.press("Control+z")
        becomes(notes, lambda: edited.count() == 3)

    def test_escape_drops_what_was_typed_and_the_next_key_begins_anew(self, notes: Page) -> None:
        cell(notes, 1, "title").click()
        Hands(notes).type("wrong")
        notes.keyboard.press("Escape")
        assert notes.get_by_role("region", name="Changes").count() == 0
        Hands(notes).type("right")
        notes.keyboard.press("Tab")
        holds(notes, 1, "title", "right")

    def test_each_step_is_undone_and_done_again(self, notes: Page) -> None:
        title = cell(notes, 1, "title")
        title.click()
        Hands(notes).type("one")
        notes.keyboard.press("Enter")
        Hands(notes).type("two")
        notes.keyboard.press("Enter")
        notes.keyboard.press("Delete")
        notes.locator(".line.deleted").wait_for()
        notes.keyboard.press("Control+z")
        notes.locator(".line.deleted").wait_for(state="detached")
        notes.keyboard.press("Control+z")
        shows(cell(notes, 2, "title"), f"{OLD} 2")
        notes.keyboard.press("Control+z")
        shows(title, f"{OLD} 1")
        assert notes.get_by_role("region", name="Changes").count() == 0
        notes.keyboard.press("Control+z")
        notes.locator(".toast", has_text="nothing to undo").wait_for()
        for _ in range(2):
            notes.keyboard.press("Control+Shift+z")
        holds(notes, 1, "title", "one")
        holds(notes, 2, "title", "two")

    def test_what_is_discarded_comes_back(self, notes: Page) -> None:
        cell(notes, 1, "title").click()
        Hands(notes).type("kept")
        notes.keyboard.press("Enter")
        for way in ("button", "keys"):
            notes.get_by_role("region", name="Changes").get_by_role("button", name="Discard").click()
            notes.get_by_role("region", name="Changes").wait_for(state="detached")
            if way == "button":
                notes.locator(".toast", has_text="discarded").get_by_role("button", name="Undo").click()
            else:
                notes.keyboard.press("Control+z")
            holds(notes, 1, "title", "kept")

    def test_a_value_that_its_column_does_not_take_is_marked_at_once(self, notes: Page) -> None:
        cell(notes, 1, "price").click()
        Hands(notes).type("12,5")
        notes.keyboard.press("Enter")
        holds(notes, 1, "price", "12,5")
        assert "misfit" in (cell(notes, 1, "price").get_attribute("class") or "")
        notes.keyboard.press("ArrowUp")
        notes.locator(".status-line", has_text="price takes a number with a point: 12.5").wait_for()
        Hands(notes).type("12.5")
        notes.keyboard.press("Enter")
        holds(notes, 1, "price", "12.5")
        assert "misfit" not in (cell(notes, 1, "price").get_attribute("class") or "")

    def test_a_row_that_was_sent_stays_where_it_is(self, notes: Page, cluster: Cluster) -> None:
        """Elasticsearch puts it at its end."""
        cell(notes, 2, "title").click()
        Hands(notes).type("corrected")
        notes.keyboard.press("Enter")
        notes.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
        notes.get_by_role("button", name="Send 1 request").click()
        notes.locator(".badge", has_text="applied").wait_for()
        if AXE.is_file():
            assert not findings(notes)
        notes.keyboard.press("Escape")
        becomes(notes, lambda: "edited" not in (cell(notes, 2, "title").get_attribute("class") or ""))
        shows(cell(notes, 2, "title"), "corrected")
        assert cluster.send("GET", "/notes/_search")["hits"]["hits"][1]["_source"]["title"] != "corrected"
        cell(notes, 2, "title").click()
        Hands(notes).type("again")  # over what was sent, without a conflict
        notes.keyboard.press("Enter")
        notes.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
        notes.get_by_role("button", name="Send 1 request").click()
        notes.locator(".badge", has_text="applied").wait_for()
        assert cluster.send("GET", "/notes/_doc/1")["_source"]["title"] == "again"

    def test_the_number_of_a_row_has_the_menu_of_the_row(self, notes: Page) -> None:
        notes.get_by_role("rowheader", name="3", exact=True).click(button="right")
        notes.get_by_role("menuitem", name="Delete the row").click()
        assert notes.locator(".line.deleted").get_attribute("aria-rowindex") == "4"

    def test_what_was_sent_is_not_undone(self, notes: Page) -> None:
        cell(notes, 1, "title").click()
        Hands(notes).type("sent")
        notes.keyboard.press("Enter")
        notes.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
        notes.get_by_role("button", name="Send 1 request").click()
        notes.locator(".badge", has_text="applied").wait_for()
        notes.get_by_role("dialog").get_by_role("button", name="Close", exact=True).last.click()
        cell(notes, 1, "title").click()
        notes.keyboard.press("Control+z")
        notes.locator(".toast", has_text="nothing to undo").wait_for()
        assert notes.get_by_role("region", name="Changes").count() == 0

    def test_what_is_written_beside_the_grid_is_not_lost(self, notes: Page) -> None:
        hands = Hands(notes)
        cell(notes, 1, "title").click()
        notes.keyboard.press("Space")
        notes.get_by_role("button", name="Edit the value").click()
        hands.write(notes.get_by_label("New value of title"), "from the pane")
        cell(notes, 3, "title").click()
        holds(notes, 1, "title", "from the pane")
        cell(notes, 2, "tags").click()
        notes.get_by_role("button", name="Edit the value").click()
        notes.get_by_role("textbox", name="New value of tags").wait_for()
        for text, change in (('["b", "c"', "]"), ('"d', '"')):
            notes.keyboard.press("Control+a")
            hands.paste(text)
            notes.locator(".pane-edit .field-error").wait_for()
            notes.keyboard.press("Control+Enter")  # in vain
            hands.type(change)
            notes.locator(".pane-edit .field-error").wait_for(state="detached")
        notes.keyboard.press("Control+Enter")
        holds(notes, 2, "tags", "d")
        notes.get_by_role("button", name="New row").click()
        hands.write(notes.get_by_role("dialog").get_by_label("title"), "half written")
        notes.keyboard.press("Escape")
        notes.get_by_role("button", name="New row").click()
        assert notes.get_by_role("dialog").get_by_label("title").input_value() == "half written"
