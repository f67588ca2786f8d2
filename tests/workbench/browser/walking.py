"""The steps of a walk through the workbench, each one point of what it offers, on a real server."""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.request
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page

PACE = 25
"""Milliseconds between two keys: as fast as a person types."""

PROGRESS = """() => {
  window.seen = [];
  new MutationObserver(() => {
    for (const one of document.querySelectorAll('.progress')) window.seen.push(one.innerText);
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def digits(text: str) -> Any:
    """Read JSON; a number with a point or an exponent stays the text that was sent."""
    return json.loads(text, parse_float=str)


def becomes(page: Page, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, for ten seconds.

    Asking is on this side: the page's policy lets a browser read a script of ours once, when we send it, and never
    again by itself, as `wait_for_function` would.
    """
    for _ in range(500):
        if condition():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it never happened")


class Hands:
    """A person's hands on a page: the only way in which its tests enter anything.

    They type key by key, paste, use dead keys and input methods, and choose with the keyboard. Nothing sets a field
    from outside, which would hide what the page does with the keys; `test_hands.py` holds that.
    """

    def __init__(self, page: Page) -> None:
        self._page = page

    def type(self, text: str) -> None:
        """Press the keys of a text, one after another, wherever the focus is."""
        self._page.keyboard.type(text, delay=PACE)

    def write(self, field: Locator, text: str) -> None:
        """Go into a field with the mouse, and type over what it holds."""
        self._empty(field)
        self.type(text)

    def paste(self, text: str) -> None:
        """Copy a text elsewhere, and paste it where the focus is."""
        self._page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self._page.keyboard.press("Control+v")

    def paste_into(self, field: Locator, text: str) -> None:
        """Go into a field with the mouse, and paste over what it holds."""
        self._empty(field)
        self.paste(text)

    def _empty(self, field: Locator) -> None:
        field.click()
        self._page.keyboard.press("Control+a")
        self._page.keyboard.press("Delete")

    def choose(self, choice: Locator, wanted: str) -> None:
        """Choose an option, by its label or value, with the keyboard: the first word of its label, then the arrows."""
        options = choice.evaluate("list => [...list.options].map(({ label, value }) => [label, value])")
        number = next(at for at, names in enumerate(options) if wanted in names or names[0].startswith(f"{wanted} ("))
        choice.focus()
        self.type(re.split(r"[ ,]", options[number][0])[0])
        at = choice.evaluate("list => list.selectedIndex")
        for _ in range(abs(number - at)):
            self._page.keyboard.press("ArrowDown" if number > at else "ArrowUp")
        assert choice.evaluate("list => list.selectedIndex") == number, options

    def set_time(self, field: Locator, moment: datetime) -> None:
        """Type a moment into the parts of a field for times, in the order in which the browser has them."""
        orders = (("%m", "%d", "%Y", "%I", "%M", "%S", "%p"), ("%d", "%m", "%Y", "%H", "%M", "%S"))
        for order in orders:
            field.click()
            for _ in range(6):
                self._page.keyboard.press("ArrowLeft")
            for part in order:
                self.type(moment.strftime(part))
                if part == "%Y":
                    self._page.keyboard.press("ArrowRight")  # a year may have more digits, so it does not go on itself
            written = field.input_value()
            if written and datetime.fromisoformat(written) == moment.replace(tzinfo=None):
                return
        raise AssertionError(f"{moment} became {written}")

    def dead_key(self, accent: str, letter: str) -> None:
        """Press a dead key, and the letter that completes it, as Chromium tells a page of them."""
        with self._session() as send:
            send("Input.dispatchKeyEvent", type="rawKeyDown", key="Dead", windowsVirtualKeyCode=219)
            send("Input.imeSetComposition", text=accent, selectionStart=1, selectionEnd=1)
            send("Input.dispatchKeyEvent", type="keyUp", key="Dead", windowsVirtualKeyCode=219)
            send("Input.dispatchKeyEvent", type="rawKeyDown", key="Process", windowsVirtualKeyCode=229)
            send("Input.insertText", text=letter)
            send("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def compose(self, *steps: str) -> None:
        """Write with an input method, which shows a text in steps; the last one is taken."""
        with self._session() as send:
            for step in steps:
                send("Input.imeSetComposition", text=step, selectionStart=len(step), selectionEnd=len(step))
                self._page.wait_for_timeout(PACE)
            send("Input.insertText", text=steps[-1])

    def pick(self, text: str) -> None:
        """Take a sign from a picker of the system, which comes without a key."""
        with self._session() as send:
            send("Input.insertText", text=text)

    def drop(self, file: Path, *, x: int, y: int) -> None:
        """Drag a file from the desktop to a place of the page, and drop it."""
        files = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        with self._session() as send:
            for step in ("dragEnter", "dragOver", "drop"):
                send("Input.dispatchDragEvent", type=step, x=x, y=y, data=files)
                self._page.wait_for_timeout(200)  # until the page has said whether it takes what is over it

    @contextmanager
    def _session(self) -> Iterator[Callable[..., object]]:
        session = self._page.context.new_cdp_session(self._page)
        yield lambda method, **values: session.send(method, values)
        session.detach()


def write_filter(page: Page, text: str) -> None:
    """Type a filter, such as `total >= 100`, into the field for the next one."""
    page.get_by_role("button", name=re.compile(r"^Filter( \(\d+\))?$")).click()
    Hands(page).type(text)


def add_filter(page: Page, text: str) -> Any:
    """Type a filter and make it a pill; returns the answer with the rows that it leaves."""
    write_filter(page, text)
    with page.expect_response("**/api/page") as answered:
        page.keyboard.press("Enter")
    return answered.value.json()


def pill(page: Page, number: int) -> Locator:
    """A filter that was made, by its number."""
    return page.get_by_role("group", name=f"Filter {number}", exact=True)


class Server:
    """A real server as its administrator reaches it, beside the workbench.

    Attributes:
        record: What `tests/servers` tells of it.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        context = ssl.create_default_context(cafile=record["ca_file"]) if record["tls"] else None
        secure = [urllib.request.HTTPSHandler(context=context)] if context else []
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *secure)

    def send(self, method: str, path: str, body: str = "", kind: str = "application/json") -> Any:
        """Send a request that must work, and return its answer; numbers stay the digits that were sent."""
        headers = {"Content-Type": kind} | ({"Authorization": self._authorization()} if self.record["security"] else {})
        request = urllib.request.Request(self.record["url"] + path, body.encode() or None, headers, method=method)
        with self._opener.open(request, timeout=60) as answer:
            return digits(answer.read().decode() or "null")

    def _authorization(self) -> str:
        if self.record["type"] == "weaviate":
            return f"Bearer {self.record['api_keys']['admin']}"
        user = self.record["users"]["superuser"]
        return "Basic " + base64.b64encode(f"{user['username']}:{user['password']}".encode()).decode()


class Walk:
    """One person's way through the workbench.

    Attributes:
        page: The tab.
        hands: The person's hands.
        server: The server.
        object: The object whose rows are looked at.
        type: The type of its connection, which is the connection's name, too.
    """

    def __init__(self, page: Page, server: Server, name: str) -> None:
        self.page, self.server, self.object = page, server, name
        self.hands = Hands(page)
        self.type = str(server.record["type"])

    # connections and drivers ------------------------------------------------------------------------------------------

    def install_and_fill(self, label: str, fields: dict[str, str], choices: dict[str, str]) -> None:
        """P2: take the driver that is offered, then fill in the form that comes after it."""
        page = self.page
        page.get_by_role("button", name="New connection").last.click()
        page.get_by_role("link", name=label).click()
        page.get_by_role("heading", name="is not installed yet").wait_for()
        assert page.locator("form").count() == 0
        page.get_by_role("button", name="Install").click()
        page.get_by_role("heading", name=f"New {label}").wait_for()
        self.hands.write(page.get_by_label("Name", exact=True), self.type)
        for name, value in choices.items():
            self.hands.choose(page.get_by_label(name), value)
        if page.locator("details.advanced").count():
            page.locator("details.advanced summary").click()
        for name, value in fields.items():
            self.hands.write(page.get_by_label(re.compile(rf"^{name}\b")), value)  # a label may end another: More Hosts

    def test_of_the_form(self) -> str:
        """What the form says when the connection is tested."""
        with self.page.expect_response("**/api/connections/test"):
            self.page.get_by_role("button", name="Test", exact=True).click()
        said = self.page.locator("form [role=alert], form [role=status].banner").first
        said.wait_for()
        return said.inner_text()

    def save_and_connect(self) -> None:
        """Save, and wait for what the server says of itself."""
        self.page.get_by_role("button", name="Save & Connect").click()
        self.page.locator(".facts").wait_for()

    def verify_and_remove_the_driver(self) -> None:
        """P4: close the connection, and go to its driver in the marketplace."""
        page = self.page
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("menuitem", name=f"Close {self.type}").click()
        page.get_by_role("heading", name="Connections").wait_for()
        page.get_by_role("link", name="Drivers").click()
        self.hands.write(page.get_by_label("Search drivers"), self.type)
        page.locator(".card-link", has_text=self.type).first.click()
        manage = page.get_by_role("button", name="Manage")
        manage.click()
        page.get_by_role("menuitem", name="Verify the files").click()
        page.locator(".toast", has_text="are intact").first.wait_for()
        manage.click()
        page.get_by_role("menuitem", name="Remove").click()
        assert self.type in page.get_by_role("dialog").locator("p").inner_text()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        page.get_by_role("button", name=re.compile("^Install ")).wait_for()

    def open(self) -> str:
        """P3: open the connection, whose driver installs itself with visible progress; returns the header's text."""
        page = self.page
        page.evaluate(PROGRESS)
        page.get_by_role("navigation").get_by_role("link", name=self.type).first.click()
        page.locator(".facts").wait_for()
        seen = page.evaluate("window.seen")
        assert any(f"Installing {self.type}" in text for text in seen), seen
        return page.locator(".header").inner_text()

    # objects and rows -------------------------------------------------------------------------------------------------

    def find_the_object(self, others: str) -> str:
        """Filter the sidebar as one types, and go to the rows; returns what the sidebar says of the object."""
        listed = self.page.locator(".object")
        listed.filter(has_text=others).wait_for()
        self.hands.write(self.page.get_by_label("Filter the objects"), self.object[:-1].lower())
        listed.filter(has_text=others).wait_for(state="detached")
        one = listed.filter(has_text=self.object)
        said = f"{one.get_attribute('title')}"
        one.click()
        self.cell(1, 0).wait_for()
        return said

    def cell(self, row: int, column: str | int) -> Locator:
        """A cell of a row, counted from 1, once it is there; column 0 is the first pinned one."""
        at = column + 2 if isinstance(column, int) else self.head(column).get_attribute("aria-colindex")
        drawn = f'[role=row][aria-rowindex="{row + 1}"] [role=gridcell][aria-colindex="{at}"]:not(.loading):visible'
        return self.page.locator(drawn)

    def head(self, column: str) -> Locator:
        """The head of a column."""
        name = self.page.locator(".head-name", has_text=re.compile(rf"^{re.escape(column)}$"))
        return self.page.locator("[role=columnheader]:visible", has=name)

    def sort(self, column: str, direction: str) -> None:
        """Click a head until it sorts in a direction."""
        for _ in range(3):
            if self.head(column).get_attribute("aria-sort") == direction:
                break
            with self.page.expect_response("**/api/page"):
                self.head(column).click()
        assert self.head(column).get_attribute("aria-sort") == direction

    def filter(self, column: str, operator: str, value: str) -> str:
        """Type a filter in place of the one that is being typed; returns what the page says is sent for it."""
        page = self.page
        field = page.get_by_role("combobox", name="Add a filter")
        if not field.count():
            page.get_by_role("button", name="Filter", exact=True).click()
        while field.get_attribute("aria-description") or field.input_value():
            page.keyboard.press("Backspace")
        self.hands.type(f"{column} {operator} ")
        meaning = page.locator(".meaning.refused, .meaning:has(code)").first
        before = meaning.inner_text() if meaning.count() else ""

        def says_it_whole(response: Any) -> bool:  # there is an answer to each key
            return response.url.endswith("/api/explain") and value in (response.request.post_data or "")

        with page.expect_response(says_it_whole):
            self.hands.type(value)
        meaning.wait_for()
        for _ in range(40):  # until the page shows the answer
            if meaning.inner_text() != before:
                break
            page.wait_for_timeout(50)
        return meaning.inner_text()

    def apply_the_filter(self) -> int:
        """Apply the filter; returns how many rows match."""
        with self.page.expect_response("**/api/page") as answered:
            self.page.keyboard.press("Enter")
        return int(answered.value.json()["total"])

    # changes ----------------------------------------------------------------------------------------------------------

    def edit(self, column: str, text: str) -> None:
        """Edit the cell of the first row with the keyboard."""
        self.cell(1, column).click()
        self.page.keyboard.press("F2")
        self.page.keyboard.press("Control+a")
        self.hands.type(text)
        self.page.keyboard.press("Enter")

    def review(self) -> str:
        """Review the change list; returns the exact request."""
        self.page.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
        request = self.page.locator(".request").first
        request.wait_for()
        return request.inner_text()

    def send(self) -> str:
        """Send the reviewed requests; returns what became of the first."""
        with self.page.expect_response("**/api/changes/apply") as applied:
            self.page.get_by_role("button", name="Send 1 request").click()
        return str(applied.value.json()["outcomes"][0]["status"])

    def close_the_review(self) -> None:
        """Close what says what became of the changes."""
        self.page.get_by_role("dialog").get_by_role("button", name="Close", exact=True).last.click()
        self.page.get_by_role("dialog").wait_for(state="detached")

    def compare(self) -> list[str]:
        """Ask for mine beside theirs; returns what was, mine, and theirs."""
        self.page.get_by_role("button", name="Compare").click()
        self.page.locator(".conflict").wait_for()
        return self.page.locator(".conflict tbody td").all_inner_texts()

    # console, exports, summaries --------------------------------------------------------------------------------------

    def run(self, before: str, typed: str, completed: str, after: str) -> dict[str, Any]:
        """Write a request whose middle is typed and completed by keyboard; returns its one answer."""
        page = self.page
        page.get_by_role("link", name="Console").click()
        page.get_by_role("textbox", name=f"Console of {self.type}").wait_for()
        page.keyboard.press("Control+a")
        self.hands.paste(before)
        self.hands.type(typed)
        page.get_by_role("option").filter(has_text=completed).first.wait_for()
        page.wait_for_timeout(200)  # the editor takes no choice in the first moments of a list
        page.keyboard.press("Enter")
        self.hands.paste(after)
        with page.expect_response("**/api/console/execute") as executed:
            page.keyboard.press("Control+Enter")
        [answer] = executed.value.json()["answers"]
        page.locator(".answer", has_text=answer["request"]["path"]).wait_for()
        return dict(answer)

    def draw(self, text: str) -> tuple[dict[str, Any], list[list[str]]]:
        """Run a request in the console, laid out by key; returns its answer, and its chart's groups and figures."""
        page = self.page
        page.get_by_role("textbox", name=f"Console of {self.type}").click()
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        self.hands.paste(text)
        page.keyboard.press("Control+i")
        with page.expect_response("**/api/console/execute") as executed:
            page.keyboard.press("Control+Enter")
        [answer] = executed.value.json()["answers"]
        page.locator(".answers[aria-busy=false] .answer-chart").wait_for()
        bars = page.locator(".group-bars > li").all_inner_texts()
        times = [str(one.get_attribute("aria-valuetext")) for one in page.get_by_role("slider").all()]
        return dict(answer), [bar.split("\n") for bar in bars] or [time.split(": ") for time in times]

    def export(self, folder: Path) -> list[Any]:
        """Export what the grid shows as documents into the folder; returns them."""
        page, name = self.page, f"{self.type}.ndjson"
        page.get_by_role("button", name="Export", exact=True).click()
        self.hands.write(page.get_by_role("dialog").get_by_label("File name"), name)
        page.get_by_role("dialog").get_by_role("button", name="Export").click()
        card = page.locator(".card", has_text=name)
        card.locator(".badge", has_text="finished").wait_for()
        page.go_back()
        self.cell(1, 0).wait_for()
        return [digits(line) for line in (folder / name).read_text().splitlines()]

    def glance(self, column: str) -> dict[str, str]:
        """Look at a column at a glance; returns its figures, and the most frequent values with their rows."""
        page = self.page
        strip = page.get_by_role("button", name="At a glance", exact=True)
        if strip.get_attribute("aria-pressed") != "true":
            strip.click()
        page.get_by_role("button", name=re.compile(rf"^{re.escape(column)} at a glance: .*rows")).click()
        panel = page.get_by_role("dialog")
        panel.locator(".glance-figures").wait_for()
        found = dict(
            zip(*(panel.locator(f".glance-figures {tag}").all_inner_texts() for tag in ("dt", "dd")), strict=True)
        )
        for value in panel.locator(".glance-values .glance-value").all():
            text, rows = (value.locator(part).inner_text() for part in (".glance-text", ".glance-count"))
            found[text] = rows.partition(" ·")[0]
        page.keyboard.press("Escape")
        panel.wait_for(state="detached")
        return found
