"""What a process of its own costs a driver: python tests/benchmarks/bench_worker.py

Prints medians, and the best in brackets, of one run: a confined worker beside an unconfined one and beside the same
driver in this process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import anyio
from compare import introduce

from dragoman.sandbox import Launch, Spare, Worker, find_closure
from dragoman_api.exports import ExportRequest
from dragoman_api.grid import PageRequest

SOURCE = """
from dragoman_api.columns import Column
from dragoman_api.connections import Health
from dragoman_api.exports import ExportPart
from dragoman_api.grid import Page
from dragoman_api.hookspecs import hookimpl

COLUMNS = [Column(name=f"c{at}", type="keyword") for at in range(20)]
CELLS = [[at, f"name {at}", at * 1.5, None, True] * 4 for at in range(1000)]

class Driver:
    @hookimpl
    async def ping(self):
        return Health(ok=True)

    @hookimpl
    async def fetch_page(self, request):
        return Page(columns=COLUMNS, cells=CELLS)

    @hookimpl
    async def export_rows(self, request):
        part = ExportPart(data=b'{"n":12345678}\\\\n' * 65536, rows=65536)
        for _ in range(100):
            yield part
"""

Act = Callable[[], Awaitable[Any]]


async def timed(act: Act, times: int) -> list[float]:
    """Give the seconds of some runs of one act."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        seconds.append(time.perf_counter() - began)
    return seconds


def show(what: str, runs: list[float], target: str = "", **against: list[float]) -> None:
    middle = median(runs)
    print(f"{what:32} {middle * 1e3:8.3f} ms [{min(runs) * 1e3:8.3f}] {target}")
    for name, others in against.items():
        other = median(others)
        print(f"  {name:30} {other * 1e3:8.3f} ms [{min(others) * 1e3:8.3f}] x {middle / other:.2f}")


def starting(launch: Launch, spare: Spare | None = None) -> Act:
    async def start() -> None:
        began = time.perf_counter()
        async with Worker(launch, spare=spare) as worker:
            await worker.call("ping")
            last.append(time.perf_counter() - began)

    last: list[float] = []
    start.last = last  # type: ignore[attr-defined]
    return start


async def starts(launch: Launch, times: int, spare: Spare | None = None) -> list[float]:
    """Give the seconds from nothing, or from a warm spare, to the first answer."""
    start = starting(launch, spare)
    for _ in range(times):
        if spare is not None:
            spare.fill()
            await anyio.sleep(2)  # it is warm long before, also on a busy machine
        await start()
    return start.last  # type: ignore[attr-defined,no-any-return]


async def main() -> None:
    introduce()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        (tree / "bench_driver.py").write_text(SOURCE)
        sys.path.append(folder)
        inside = import_module("bench_driver").Driver()
        confined = Launch(driver="bench_driver:Driver", trees=(tree,))
        plain = Launch(driver="bench_driver:Driver", trees=(tree,), policy="off")

        async def bare() -> None:
            code = "import aiohttp, anyio, msgspec, pluggy"
            await anyio.to_thread.run_sync(lambda: subprocess.run([sys.executable, "-B", "-c", code], check=True))

        closure = find_closure()
        await starts(confined, 1)
        show(
            "cold start to the first answer", await starts(confined, 9), "(<= 180 ms)",
            unconfined=await starts(plain, 9), imports=await timed(bare, 9),
        )  # fmt: skip
        with Spare(closure) as spare:
            show("warm spare to the first answer", await starts(confined, 9, spare), "(<= 10 ms)")
        async with Worker(confined) as worker, Worker(plain) as free:
            print(f"sandbox {worker.report}")
            page = PageRequest(object="o")
            for what, target, times, hook, arguments in (
                ("empty call", "(<= 0.15 ms)", 5_000, "ping", ()),
                ("page of 1,000 x 20", "(<= 1 ms)", 500, "fetch_page", (page,)),
            ):
                ways: list[Act] = [
                    lambda hook=hook, arguments=arguments, at=at: at.call(hook, *arguments)  # type: ignore[misc]
                    for at in (worker, free)
                ]
                ways.append(lambda hook=hook, arguments=arguments: getattr(inside, hook)(*arguments))  # type: ignore[misc]
                one, two, three = [await timed(way, times) for way in ways]
                show(what, one, target, unconfined=two, in_process=three)
            began, size = time.perf_counter(), 0
            async for part in worker.export(ExportRequest(object="o"), deadline=60):
                size += len(part.data)
            seconds = time.perf_counter() - began
            print(f"export of {size >> 20} MiB in parts of {size // 100 >> 10} KiB: {size / seconds / 1e6:,.0f} MB/s")


if __name__ == "__main__":
    anyio.run(main)
