"""A page of 100 rows, beside bare aiohttp with the very same request, and elasticsearch-py: bench_page.py [URL].

It prints the time of a page, the processor time of this process and of the driver's, and the rate and the slowest with
50 pages in flight. Without a URL all ask the sample cluster, in a process of its own; with one they ask a real cluster,
on which the sample's indices are made for the run and removed afterwards.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import aiohttp
import anyio
from benchmarks.compare import introduce, measure_async, report
from docs.demo import sample_cluster

from dragoman import Runtime, SavedConnection
from fakes.elasticsearch import FakeElasticsearch
from stranger import serve_sample

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Sides = dict[str, Callable[[], Awaitable[object]]]

PREFIX = "dragoman-bench-"


@contextmanager
def nothing():
    yield None


@asynccontextmanager
async def cluster(url: str | None, port: int | None):
    """Yield address and index of the cluster that both sides ask."""
    if url is None:
        yield "127.0.0.1", port, "orders"
        return
    parts = urlsplit(url)
    await sample_cluster.load(url, prefix=PREFIX)
    try:
        yield parts.hostname, parts.port, f"{PREFIX}orders"
    finally:
        await sample_cluster.remove(url, prefix=PREFIX)


async def request_of_a_page(runtime: Runtime, index: str) -> tuple[str, str, bytes]:
    """Record the request that a page sends, on a fake of its own."""
    async with FakeElasticsearch(version="8.19.21") as fake:
        await sample_cluster.load(fake.url, prefix=index.removesuffix("orders"))
        runtime.connections.save(SavedConnection(name="fake", type="elasticsearch", values={"port": fake.port}))
        async with runtime.open("fake") as session:
            await session.rows(index).page(limit=100)
            sent = [entry for entry in fake.requests if entry.path.endswith("_search")][-1]
            return sent.method, sent.path, sent.body


def driver_seconds(process: int) -> float:
    """Return the processor time, in seconds, that all threads of a process have used so far."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


async def measure_cpu(sides: Sides, process: int, *, turns: int = 6, calls: int = 50) -> None:
    """Print the processor time of a call, here and in the driver's process: medians of turns, the best in brackets."""
    here: dict[str, list[float]] = {name: [] for name in sides}
    there: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, call in sides.items():
            own, driver = time.process_time(), driver_seconds(process)
            for _ in range(calls):
                await call()
            here[name].append((time.process_time() - own) / calls * 1e3)
            there[name].append((driver_seconds(process) - driver) / calls * 1e3)
    print("\nProcessor time of one call   (target: 0.6 ms here, 1.3 ms in the driver's process)")
    for name in sides:
        own, driver = here[name], there[name]
        print(
            f"  {name:<46} {median(own):6.2f} [{min(own):.2f}] ms here, "
            f"{median(driver):6.2f} [{min(driver):.2f}] ms in the driver's process"
        )


async def measure_in_flight(sides: Sides, *, at_once: int = 50, calls: int = 1_000, turns: int = 3) -> None:
    """Print how many calls a second come back, and the time that 99 of 100 take at most, with many under way."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    slowest: dict[str, list[float]] = {name: [] for name in sides}

    async def ask(call: Callable[[], Awaitable[object]], seconds: list[float]) -> None:
        for _ in range(calls // at_once):
            began = time.perf_counter()
            await call()
            seconds.append(time.perf_counter() - began)

    for _ in range(turns):
        for name, call in sides.items():
            seconds: list[float] = []
            began = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for _ in range(at_once):
                    tasks.start_soon(ask, call, seconds)
            rates[name].append(len(seconds) / (time.perf_counter() - began))
            slowest[name].append(sorted(seconds)[len(seconds) * 99 // 100] * 1e3)
    print(f"\n{at_once} pages in flight   (target: 0.7 x the rate of elasticsearch-py, its p99 x 1.5)")
    for name in sides:
        print(f"  {name:<46} {median(rates[name]):7.0f} a second, p99 {median(slowest[name]):7.1f} ms")


async def main(url: str | None, port: int | None) -> None:
    async with AsyncExitStack() as stack:
        host, number, index = await stack.enter_async_context(cluster(url, port))
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runtime = await stack.enter_async_context(Runtime(home, spare=False))
        method, path, body = await request_of_a_page(runtime, index)
        values = {"host": host, "port": number}
        runtime.connections.save(SavedConnection(name="real", type="elasticsearch", values=values))
        session = await stack.enter_async_context(runtime.open("real"))
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        client = await stack.enter_async_context(aiohttp.ClientSession(f"http://{host}:{number}", headers=headers))

        async def bare() -> None:
            async with client.request(method, path, data=body) as answer:
                await answer.read()

        async def page() -> None:
            await session.rows(index).page(limit=100)

        sides: Sides = {"bare aiohttp": bare}
        try:
            from elasticsearch import AsyncElasticsearch
        except ImportError:
            print("elasticsearch-py is absent; its line needs: pip install 'elasticsearch[async]>=8,<9'")
        else:
            peer = AsyncElasticsearch(f"http://{host}:{number}")
            stack.push_async_callback(peer.close)

            async def search() -> None:
                await peer.search(index=index, query={"match_all": {}}, size=100, track_total_hits=True)

            sides["elasticsearch-py, async"] = search
        sides["Rows.page"] = page

        times = await measure_async(sides, rounds=300)
        title = f"One page of 100 rows from {session.server.product} {session.server.version}"
        report(title, times, baseline=[*sides][-2], target="1.5 x elasticsearch-py")
        own, others = times["Rows.page"], times["bare aiohttp"]
        # Said beside the ratio: a Java server takes three times as long for its first thousand requests.
        print(
            f"  the session adds {(median(own) - median(others)) * 1e3:.2f} [{(min(own) - min(others)) * 1e3:.2f}] ms"
        )
        worker = session._calls.driver._worker
        await measure_cpu(sides, worker._child.process.pid)
        await measure_in_flight(sides)


if __name__ == "__main__":
    address = sys.argv[1] if len(sys.argv) > 1 else None
    introduce()
    with nothing() if address else serve_sample() as served:
        anyio.run(main, address, served)
