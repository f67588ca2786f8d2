"""From the command to a usable workbench, and what an idle one costs: bench_workbench_start.py.

The browser runs already, as a person's does; its own start is not counted. The sample cluster is the server.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

from benchmarks.compare import introduce, report
from benchmarks.serving_workbench import serving_workbench
from playwright.sync_api import sync_playwright

from stranger import serve_sample

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROUNDS = int(os.environ.get("ROUNDS", "9"))
IDLE = 20.0
"""Seconds over which the processor time of an idle workbench is counted."""
TICKS = os.sysconf("SC_CLK_TCK")


def save_connection(home: Path, port: int) -> None:
    """Save the sample cluster as `shop`, which installs the driver."""
    words = ["--type", "elasticsearch", "--host", "127.0.0.1", "--auth", "none", "--yes", "--port", str(port)]
    command = [sys.executable, "-m", "dragoman", "connections", "add", "shop", *words]
    subprocess.run(command, check=True, env={**os.environ, "DRAGOMAN_HOME": str(home)}, capture_output=True)
    subprocess.run([*command[:3], "page", "shop", "orders", "--limit", "1"], check=True,
                   env={**os.environ, "DRAGOMAN_HOME": str(home)}, capture_output=True)  # fmt: skip


def start(browser: Browser, home: Path, times: dict[str, list[float]]) -> None:
    """Start the command once and open what it prints; notes when each step was reached."""
    began = time.perf_counter()

    def reached(step: str) -> None:
        times.setdefault(step, []).append(time.perf_counter() - began)

    with serving_workbench(home, "shop") as served:
        reached("the command prints its address")
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(served["address"])
        page.get_by_role("navigation", name="Connections").wait_for()
        reached("the page lists the connections")
        page.locator(".object").first.wait_for()
        reached("the connection is open, its objects are listed")
        page.locator(".object", has_text="orders").click()
        page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
        reached("the rows of an object")
        page.close()


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


def memory(pid: int) -> list[tuple[str, float, float]]:
    """The name, resident and own share of memory of each process of a family, in megabytes."""
    found = []
    for one in family(pid):
        told = dict(line.split(":", 1) for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()[1:])
        resident, share = (int(told[key].split()[0]) / 1024 for key in ("Rss", "Pss"))
        words = Path(f"/proc/{one}/cmdline").read_bytes().decode().split("\0")
        found.append((" ".join(Path(word).name for word in words[:4] if word), resident, share))
    return found


def spent(pid: int) -> float:
    """Seconds of the processor that a family has used."""
    total = 0
    for one in family(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def idle(title: str, pid: int) -> None:
    """Print what an unused workbench costs."""
    time.sleep(5)
    before = spent(pid)
    time.sleep(IDLE)
    used = (spent(pid) - before) / IDLE
    processes = memory(pid)
    print(f"\n{title}   (target: 120 MB, no processor)")
    for name, resident, share in processes:
        print(f"  {resident:6.1f} MB resident, {share:6.1f} MB its share   {name[:70]}")
    resident, share = (sum(one[at] for one in processes) for at in (1, 2))
    print(f"  {resident:6.1f} MB resident, {share:6.1f} MB share in all; {used * 100:.2f} % of a core")


def main() -> None:
    """Measure starts, then memory and processor time."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    introduce()
    with tempfile.TemporaryDirectory() as folder, serve_sample() as port, sync_playwright() as playwright:
        home = Path(folder)
        save_connection(home, port)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        times: dict[str, list[float]] = {}
        start(browser, home, {})
        for _ in range(ROUNDS):
            start(browser, home, times)
        report("From `dragoman workbench shop` on", times, baseline=next(iter(times)), target="1.5 s to a usable page")
        with serving_workbench(home) as served:
            idle("Idle, no tab, no connection open", served["pid"])
        with serving_workbench(home, "shop") as served:
            page = browser.new_page()
            page.goto(served["address"])
            page.locator(".object").first.wait_for()
            idle("Idle, one tab, one connection open", served["pid"])
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
