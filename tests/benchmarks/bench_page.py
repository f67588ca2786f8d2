"""A page of 100 rows through a session, beside bare aiohttp sending the very same request: bench_page.py [URL].

Without a URL both ask the sample cluster, in a process of its own; with one they ask a real cluster, on which the
sample's indices are made for the run and removed afterwards.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
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

        found = await measure_async({"bare aiohttp": bare, "Session.page": page}, rounds=300)
        title = f"One page of 100 rows from {session.server.product} {session.server.version}"
        report(title, found, baseline="bare aiohttp", target="1.15 x")
        one, other = found["Session.page"], found["bare aiohttp"]
        # Said beside the ratio: a Java server takes three times as long for its first thousand requests.
        print(f"  the session adds {(median(one) - median(other)) * 1e3:.2f} [{(min(one) - min(other)) * 1e3:.2f}] ms")


if __name__ == "__main__":
    address = sys.argv[1] if len(sys.argv) > 1 else None
    introduce()
    with nothing() if address else serve_sample() as served:
        anyio.run(main, address, served)
