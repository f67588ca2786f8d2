"""The workbench beside Elasticvue, in turns on one real Elasticsearch: bench_workbench.py RECORDS.

RECORDS is the file that `tests/servers` names in DRAGOMAN_LIVE; its first Elasticsearch without users is taken.
ELASTICVUE names the folder of a built Elasticvue; without it the workbench stands alone. Each side has a Chromium of
its own. That of Elasticvue runs without its checks of origins, so that it reaches a server as it is installed; this
spares it the preflight requests that a person's browser would send.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import aiohttp
import anyio
from benchmarks.compare import introduce, report
from benchmarks.serving_workbench import serving_workbench
from playwright.async_api import async_playwright

from dragoman import Runtime, SavedConnection, Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from playwright.async_api import Locator, Page, Playwright

INDICES = int(os.environ.get("ROUNDS", "8"))
"""Each round clicks on an index that no side has seen, or presses the mouse on it."""
ROWS, FIELDS = 5_000, 38
OURS, THEIRS, SESSION = "workbench", "Elasticvue", "Session.page"

TIMED = """() => new Promise((resolve) => {
  const began = performance.now();
  const drawn = new MessageChannel();
  drawn.port1.onmessage = () => resolve(performance.now() - began);
  const look = () => ((DONE) ? drawn.port2.postMessage(0) : requestAnimationFrame(look));
  (ACT);
  requestAnimationFrame(look);
})"""
"""Milliseconds from an act until the frame is drawn in which it is done."""
WATCHED = """() => {
  window.timed = new Promise((resolve) => {
    const watch = ({ timeStamp }) => {
      const drawn = new MessageChannel();
      drawn.port1.onmessage = () => resolve(performance.now() - timeStamp);
      const look = () => ((DONE) ? drawn.port2.postMessage(0) : requestAnimationFrame(look));
      requestAnimationFrame(look);
    };
    addEventListener("click", watch, { capture: true, once: true });
  });
}"""
"""The same from the next click of the mouse, that is, from the release of its button; the promise is `timed`."""
PRESS = 0.08
"""Seconds that a person holds the button of a mouse."""


def document(number: int) -> dict[str, Any]:
    """A document of 38 flat fields and about 625 bytes."""
    kinds = (
        lambda at: f"w{number * at % 97:03}",
        lambda at: number * at,
        lambda at: number % 7 + at / 4,
        lambda at: f"2024-0{at % 9 + 1}-03",
    )
    return {f"f{at:02}": kinds[at % len(kinds)](at) for at in range(1, FIELDS + 1)}


async def load(http: aiohttp.ClientSession) -> list[str]:
    """Make equal indices and fill them; returns their names."""
    names = [f"bench-{at:02}" for at in range(2 * INDICES + 1)]
    for name in names:
        body = "".join(f'{{"index": {{"_id": "{at:05}"}}}}\n{json.dumps(document(at))}\n' for at in range(ROWS))
        headers = {"Content-Type": "application/x-ndjson"}
        async with http.post(f"/{name}/_bulk?refresh=true", data=body, headers=headers) as answer:
            assert not (await answer.json())["errors"]
    return names


async def timed(page: Page, act: str, done: str) -> float:
    """Seconds from an act in a page until what it leads to is drawn."""
    return float(await page.evaluate(TIMED.replace("ACT", act).replace("DONE", done))) / 1e3


async def pressed(page: Page, link: Locator, done: str) -> float:
    """Seconds from the release of the mouse on a link until what it leads to is drawn."""
    await link.hover()
    await page.evaluate(WATCHED.replace("DONE", done))
    await page.mouse.down()
    await anyio.sleep(PRESS)
    await page.mouse.up()
    return float(await page.evaluate("timed")) / 1e3


class Scripts:
    """The script that a page loads, as a server would compress it."""

    def __init__(self, page: Page) -> None:
        self._loads: set[str] = set()
        page.on("request", lambda one: one.resource_type == "script" and self._loads.add(one.url))

    async def kilobytes(self, http: aiohttp.ClientSession) -> tuple[float, float]:
        """Kilobytes so far, as they are and compressed by gzip."""
        bodies = []
        for url in self._loads:
            async with http.get(url) as answer:
                bodies.append(await answer.read())
        return sum(map(len, bodies)) / 1e3, sum(len(gzip.compress(body, 9)) for body in bodies) / 1e3


class Workbench:
    """Our side: a tab in a workbench."""

    def __init__(self, page: Page, root: str) -> None:
        self.page, self.root, self.scripts = page, root, Scripts(page)

    async def enter(self, address: str) -> None:
        """Open the address, and wait for the objects of its connection."""
        await self.page.goto(address)
        await self.page.locator(".object").first.wait_for()

    async def back(self) -> None:
        """Show the list of objects, and no rows."""
        await self.page.evaluate("location.hash = '#/connection/bench'")
        await self.page.locator(".facts").wait_for()

    async def click(self, index: str) -> float:
        """Seconds from a click on an object to its rows."""
        return await timed(
            self.page,
            f"[...document.querySelectorAll('.object')].find((one) => one.innerText.includes('{index}')).click()",
            self._shown(0),
        )

    async def press(self, index: str) -> float:
        """Seconds from the release of the mouse on an object to its rows."""
        return await pressed(self.page, self.page.locator(".object", has_text=index), self._shown(0))

    def _shown(self, row: int) -> str:
        cells = f"[...document.querySelectorAll('[role=row][aria-rowindex=\"{row + 2}\"] [role=gridcell]')]"
        return f"{cells}.some((one) => one.offsetParent && one.textContent && !one.classList.contains('loading'))"

    async def next_page(self, number: int) -> float:
        """Seconds from a scroll to the rows of a block that was not fetched."""
        row = number * 300 + 20
        act = f"document.querySelector('[role=grid]').scrollTop = {row} * PITCH"
        pitch = await self.page.evaluate("document.querySelector('.line').getBoundingClientRect().height")
        return await timed(self.page, act.replace("PITCH", str(pitch)), self._shown(row + 5))

    async def editor(self) -> None:
        """Load the editor."""
        await self.page.evaluate("location.hash = '#/connection/bench/console'")
        await self.page.locator(".cm-content").wait_for()


class Elasticvue:
    """The other side: a tab in Elasticvue, which talks to the server directly."""

    def __init__(self, page: Page, root: str) -> None:
        self.page, self.root, self.scripts = page, root, Scripts(page)

    async def enter(self, server: dict[str, Any], url: str) -> None:
        """Save the server as Elasticvue itself does, and open the list of indices."""
        about = {"clusterName": "bench", "version": server["version"], "majorVersion": "8", "status": "green"}
        about |= {"distribution": "elasticsearch", "uuid": "bench", "flavor": "default", "name": "bench", "uri": url}
        about["auth"] = {"authType": "none", "authData": {}}
        kept = json.dumps({"clusters": [about], "activeClusterIndex": 0})
        await self.page.add_init_script(f"localStorage.connection ??= {json.dumps(kept)}")
        await self.page.goto(f"{self.root}/cluster/0/indices")
        await self.page.locator("tbody tr").first.wait_for()
        await self._choose_hundred()  # indices

    async def back(self) -> None:
        """Show the list of indices."""
        await self.page.get_by_role("tab", name="Indices").click()
        await self.page.locator("tbody a", has_text="bench-").first.wait_for()

    async def click(self, index: str) -> float:
        """Seconds from a click on an index to its rows; Elasticvue asks for ten."""
        act = f"[...document.querySelectorAll('tbody a')].find((one) => one.innerText.trim() === '{index}').click()"
        return await timed(self.page, act, self._shown(index, "true"))

    async def press(self, index: str) -> float:
        """Seconds from the release of the mouse on an index to its rows."""
        return await pressed(self.page, self.page.locator("tbody a", has_text=index), self._shown(index, "true"))

    def _shown(self, index: str, first: str) -> str:
        rows = "[...document.querySelectorAll('tbody tr')]"
        return f"{rows}.length && {rows}[0].cells[1]?.innerText.trim() === '{index}' && ({first})"

    async def hundred(self) -> None:
        """Show a hundred rows on a page."""
        await self._choose_hundred()
        await self.page.locator("tbody tr").nth(99).wait_for()

    async def _choose_hundred(self) -> None:
        await self.page.locator(".q-table__bottom .q-select").first.click()
        await self.page.locator(".q-menu .q-item").filter(has_text="100").first.click()

    async def next_page(self, _: int) -> float:
        """Seconds from a click on the next page to its hundred rows."""
        await self.page.evaluate("window.before = document.querySelector('tbody tr').innerText")
        rows = "[...document.querySelectorAll('tbody tr')]"
        done = f"{rows}.length === 100 && {rows}[0].innerText !== window.before"
        buttons = "[...document.querySelectorAll('.q-table__bottom button')]"
        act = f"{buttons}.find((one) => one.innerHTML.includes('chevron_right')).click()"
        return await timed(self.page, act, done)

    async def editor(self) -> None:
        """Load the editor."""
        await self.page.goto(f"{self.root}/cluster/0/rest")
        await self.page.locator(".cm-content").first.wait_for()


class Quiet(SimpleHTTPRequestHandler):
    """Serves a page whose router is the browser's history."""

    def log_message(self, *words: Any) -> None:
        pass

    def do_GET(self) -> None:
        if not Path(self.translate_path(self.path)).is_file():
            self.path = "/index.html"
        super().do_GET()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@asynccontextmanager
async def chromium(playwright: Playwright, *words: str) -> AsyncIterator[Page]:
    """A tab in a Chromium that knows no name but this machine: Elasticvue asks its maker for updates."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    words = ("--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", *words)
    browser = await playwright.chromium.launch(executable_path=program, args=words)
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(120_000)  # a busy machine
    yield page
    await browser.close()


async def in_turns(
    sides: dict[str, Callable[[Any], Awaitable[float]]], rounds: list[Any], times: dict[str, list[float]]
) -> None:
    """Run each side once a round; another begins each time, for the first one warms the server."""
    names = [*sides]
    for number, given in enumerate(rounds):
        for at in range(len(names)):
            name = names[(number + at) % len(names)]
            times.setdefault(name, []).append(await sides[name](given))


async def main(server: dict[str, Any]) -> None:
    """Load the server, open both sides, and measure them in turns."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(server["url"]))
        warm, *names = await load(http)
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runtime = await stack.enter_async_context(Runtime(home, spare=False))
        values = {"host": "127.0.0.1", "port": server["port"], "auth_method": "none"}
        runtime.connections.save(SavedConnection(name="bench", type="elasticsearch", values=values))
        session = await stack.enter_async_context(runtime.open("bench"))
        served = stack.enter_context(serving_workbench(home, "bench"))
        playwright = await stack.enter_async_context(async_playwright())
        ours = Workbench(await stack.enter_async_context(chromium(playwright)), served["url"])
        await ours.enter(served["address"])
        sides: list[Workbench | Elasticvue] = [ours]
        if folder := os.environ.get("ELASTICVUE"):
            root = stack.enter_context(serving(Path(folder)))
            page = await stack.enter_async_context(chromium(playwright, "--disable-web-security"))
            theirs = Elasticvue(page, root)
            await theirs.enter(server, server["url"])
            sides.append(theirs)
        await measure(session, sides, warm, names)


async def measure(session: Session, sides: list[Any], warm: str, names: list[str]) -> None:
    """Print scripts, clicks and pages of both sides."""
    labels = dict(zip((OURS, THEIRS), sides, strict=False))

    async def page(index: str) -> float:
        began = time.perf_counter()
        await session.rows(index).page(limit=100)
        return time.perf_counter() - began

    async def first(side: Any, way: str, index: str) -> float:
        await side.back()
        return float(await getattr(side, way)(index))

    ways = {"click": "a click without a mouse", "press": f"the release of a mouse pressed for {PRESS * 1e3:.0f} ms"}
    for at, (way, text) in enumerate(ways.items()):
        clicks = {name: partial(first, side, way) for name, side in labels.items()} | {SESSION: page}
        await in_turns(clicks, [warm], {})
        found: dict[str, list[float]] = {}
        await in_turns(clicks, names[at :: len(ways)], found)
        target = f"0.5 x {THEIRS}, and {SESSION} + 60 ms"
        report(f"From {text} to an object's rows, {FIELDS} columns", found, baseline=[*found][-2], target=target)
        over = [one - other for one, other in zip(found[OURS], found[SESSION], strict=True)]
        print(f"  the workbench adds {sorted(over)[len(over) // 2] * 1e3:.0f} ms to {SESSION}")

    for side in sides[1:]:
        await side.hundred()

    found = {}
    pages = {name: side.next_page for name, side in labels.items()}
    await in_turns(pages, [*range(1, INDICES + 1)], found)
    report(
        f"To the rows of another page of 100 rows and {FIELDS} columns", found, baseline=[*found][-1], target="0.1 x"
    )

    print("\nScript until rows, and with the editor   (target: 150 kB, and 320 kB, compressed)")
    async with aiohttp.ClientSession() as http:
        for name, side in labels.items():
            whole, packed = await side.scripts.kilobytes(http)
            await side.editor()
            most, with_editor = await side.scripts.kilobytes(http)
            print(
                f"  {name:<12} {packed:6.0f} kB of {whole:5.0f}, with the editor {with_editor:6.0f} kB of {most:5.0f}"
            )


if __name__ == "__main__":
    introduce()
    if len(sys.argv) < 2:
        print(
            "needs a real server: tests/servers run elasticsearch-8.19.21-plain -- sh -c 'python … \"$DRAGOMAN_LIVE\"'"
        )
        raise SystemExit
    records = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    anyio.run(main, next(one for one in records if one["type"] == "elasticsearch" and not one["security"]))
