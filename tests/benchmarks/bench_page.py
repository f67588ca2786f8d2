"""A page of 100 rows, beside bare aiohttp with the very same requests, and the database's own client.

    bench_page.py             the sample cluster, in a process of its own
    bench_page.py RECORDS     the real servers in the file that `tests/servers` names in DRAGOMAN_LIVE: an open
                              Elasticsearch, an open Weaviate, or both

It prints the time of a page, the processor time of this process and of the driver's, and the rate and the slowest with
50 pages in flight; on a real server also how the processor time grows with columns and with filter rows, and what the
largest pages take. What it makes on a server is removed afterwards.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import aiohttp
import anyio
from benchmarks.compare import introduce, measure_async, report

from dragoman import Filter, Runtime, SavedConnection
from stranger import serve_sample

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman import Rows

    Sides = dict[str, Callable[[], Awaitable[object]]]

ROWS = 12_000
COLUMNS = (10, 30, 100, 300, 1_000)
FILTER_ROWS = (1, 10, 100, 500)
MOST_COLUMNS = 4_096
NAMES = {"elasticsearch": "dragoman-bench-page", "weaviate": "Dragoman_bench_page"}
GROWING = {"elasticsearch": "dragoman-bench-growth", "weaviate": "Dragoman_bench_growth"}


@contextmanager
def nothing():
    yield None


class Elasticsearch:
    """What the measurement needs of Elasticsearch."""

    type, client_name, pip = "elasticsearch", "elasticsearch-py, async", "elasticsearch[async]>=8,<9"

    def __init__(self, http: aiohttp.ClientSession, record: dict[str, Any]) -> None:
        self._http, self._record = http, record

    async def make(self, name: str, rows: list[dict[str, Any]]) -> None:
        limit = {"index.mapping.total_fields.limit": MOST_COLUMNS + 100, "index.number_of_replicas": 0}
        kinds = {str: "keyword", int: "long", float: "double"}
        properties = {key: {"type": kinds[type(value)], "index": key < "c5"} for key, value in rows[0].items()}
        for key, value in rows[0].items():
            if isinstance(value, str) and len(value) > 10_000:
                properties[key] = {"type": "text", "index": False}
        await self._send("PUT", f"/{name}", {"settings": limit, "mappings": {"properties": properties}})
        step = max(1, 20_000_000 // len(json.dumps(rows[0])))
        for start in range(0, len(rows), min(step, 1_000)):
            lines = (f'{{"index":{{}}}}\n{json.dumps(row)}\n' for row in rows[start : start + min(step, 1_000)])
            await self._send("POST", f"/{name}/_bulk", "".join(lines))
        await self._send("POST", f"/{name}/_refresh")

    async def drop(self, name: str) -> None:
        await self._send("DELETE", f"/{name}")

    async def _send(self, method: str, path: str, body: Any = None) -> None:
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        media = {"content-type": "application/x-ndjson" if isinstance(body, str) else "application/json"}
        async with self._http.request(method, path, data=data, headers=media if data else {}) as answer:
            answer.raise_for_status()

    async def peer(self, stack: AsyncExitStack, name: str) -> Callable[[], Awaitable[object]]:
        from elasticsearch import AsyncElasticsearch

        client = AsyncElasticsearch(self._record["url"])
        stack.push_async_callback(client.close)
        return lambda: client.search(index=name, query={"match_all": {}}, size=100, track_total_hits=True)


class Weaviate:
    """What the measurement needs of Weaviate."""

    type, client_name, pip = "weaviate", "weaviate-client, async", "weaviate-client"

    def __init__(self, http: aiohttp.ClientSession, record: dict[str, Any]) -> None:
        self._http, self._record = http, record

    async def make(self, name: str, rows: list[dict[str, Any]]) -> None:
        kinds = {str: "text", int: "int", float: "number"}
        properties = [
            {"name": key, "dataType": [kinds[type(value)]]}
            | ({"indexFilterable": False, "indexSearchable": False} if len(str(value)) > 10_000 or key >= "c5" else {})
            for key, value in rows[0].items()
        ]
        for listed in properties:
            if listed["dataType"] != ["text"]:
                listed.pop("indexSearchable", None)
        await self._send("POST", "/v1/schema", {"class": name, "vectorizer": "none", "properties": properties})
        step = max(1, min(1_000, 20_000_000 // len(json.dumps(rows[0]))))
        for start in range(0, len(rows), step):
            objects = [{"class": name, "properties": row} for row in rows[start : start + step]]
            await self._send("POST", "/v1/batch/objects", {"objects": objects})

    async def drop(self, name: str) -> None:
        await self._send("DELETE", f"/v1/schema/{name}")

    async def _send(self, method: str, path: str, body: object = None) -> None:
        async with self._http.request(method, path, json=body) as answer:
            answer.raise_for_status()

    async def peer(self, stack: AsyncExitStack, name: str) -> Callable[[], Awaitable[object]]:
        import weaviate

        ports = {"port": self._record["port"], "grpc_port": self._record["grpc_port"]}
        client = weaviate.use_async_with_local(self._record["host"], **ports, skip_init_checks=True)
        await stack.enter_async_context(client)
        collection = client.collections.get(name)

        async def page() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: collection.query.fetch_objects(limit=100))
                tasks.start_soon(lambda: collection.aggregate.over_all(total_count=True))

        return page


SERVERS = {"elasticsearch": Elasticsearch, "weaviate": Weaviate}


def sample(rows: int, columns: int = 12) -> list[dict[str, Any]]:
    """Return rows of texts, integers and numbers; the columns are `c0` and so on."""
    makers: list[Callable[[int], object]] = [
        lambda at: f"the tale of number {at}",
        lambda at: at,
        lambda at: at / 7 + 1,
    ]
    return [{f"c{n}": makers[n % 3](row) for n in range(columns)} for row in range(rows)]


def driver_seconds(process: int) -> float:
    """Return the processor time, in seconds, that all threads of a process have used so far."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


async def cpu(call: Callable[[], Awaitable[object]], process: int, *, calls: int) -> tuple[float, float]:
    """Return the processor time of one call, in milliseconds: of this process, and of the driver's."""
    own, driver = time.process_time(), driver_seconds(process)
    for _ in range(calls):
        await call()
    return (time.process_time() - own) / calls * 1e3, (driver_seconds(process) - driver) / calls * 1e3


async def measure_cpu(sides: Sides, process: int, *, turns: int = 6, calls: int = 50) -> None:
    """Print the processor time of a call, here and in the driver's process: medians of turns, the best in brackets."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, call in sides.items():
            times[name].append(await cpu(call, process, calls=calls))
    print("\nProcessor time of one call   (target: 0.6 ms here, 1.3 ms in the driver's process)")
    for name, pairs in times.items():
        here, there = zip(*pairs, strict=True)
        print(
            f"  {name:<46} {median(here):6.2f} [{min(here):.2f}] ms here, "
            f"{median(there):6.2f} [{min(there):.2f}] ms in the driver's process"
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
    print(f"\n{at_once} pages in flight   (target: 0.7 x the rate of the database's own client, its p99 x 1.5)")
    for name in sides:
        print(f"  {name:<46} {median(rates[name]):7.0f} a second, p99 {median(slowest[name]):7.1f} ms")


async def measure_growth(server: Elasticsearch | Weaviate, session: Any, process: int) -> None:
    """Print the processor time of a page by the number of columns and of filter rows, and of the largest pages."""

    async def line(label: str, rows: Rows, *, calls: int = 20) -> None:
        await rows.page(limit=100)
        here, there = min([await cpu(lambda: rows.page(limit=100), process, calls=calls) for _ in range(3)])
        print(f"  {label:<46} {here:8.2f} ms here, {there:8.2f} ms in the driver's process")

    async def of(label: str, rows: list[dict[str, Any]], *, calls: int = 20) -> None:
        await server.make(GROWING[server.type], rows)
        try:
            await line(label, session.rows(GROWING[server.type]), calls=calls)
        finally:
            await server.drop(GROWING[server.type])

    print("\nProcessor time of a page of 100 rows, by columns")
    for columns in COLUMNS:
        await of(f"{columns:,} columns", sample(100, columns), calls=20 if columns <= 100 else 5)
    print("\nProcessor time of a page of 100 rows, by filter rows")
    name = NAMES[server.type]
    for count in FILTER_ROWS:
        filters = [Filter("c1", ">=", number) for number in range(count)]
        await line(f"{count:,} filter rows", session.rows(name, filters=filters), calls=20 if count <= 100 else 5)
    print("\nProcessor time of the largest pages")
    with suppress(aiohttp.ClientResponseError):
        await of(f"{MOST_COLUMNS:,} columns", sample(100, MOST_COLUMNS), calls=2)
    await of("100 cells of 1 MB", [{"c0": "x" * 2**20, "c1": row} for row in range(100)], calls=2)


async def measure(record: dict[str, Any]) -> None:
    """Measure the pages of one server."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runtime = await stack.enter_async_context(Runtime(home, spare=False))
        headers = {"accept-encoding": "identity"}
        http = await stack.enter_async_context(aiohttp.ClientSession(record["url"], headers=headers))
        server, name = SERVERS[record["type"]](http, record), record.get("object")
        if name is None:
            name = NAMES[server.type]
            await server.make(name, sample(ROWS))
            stack.push_async_callback(server.drop, name)
        values = {"host": record["host"], "port": record["port"]}
        runtime.connections.save(SavedConnection(name="real", type=server.type, values=values))
        session = await stack.enter_async_context(runtime.open("real"))
        rows = session.rows(name)
        requests = await rows.preview_page(limit=100)

        async def send(request: Any) -> None:
            media = {"content-type": "application/json"} if request.body else {}
            async with http.request(request.method, request.path, data=request.body, headers=media) as answer:
                await answer.read()

        async def bare() -> None:
            if len(requests) == 1:
                await send(requests[0])
                return
            async with anyio.create_task_group() as tasks:
                for request in requests:
                    tasks.start_soon(send, request)

        sides: Sides = {"bare aiohttp": bare}
        try:
            sides[server.client_name] = await server.peer(stack, name)
        except ImportError:
            print(f"{server.client_name} is absent; its line needs: pip install '{server.pip}'")
        sides["Rows.page"] = lambda: rows.page(limit=100)

        times = await measure_async(sides, rounds=300)
        title = f"One page of 100 rows from {session.server.product} {session.server.version}"
        report(title, times, baseline=[*sides][-2], target="1.5 x the database's own client")
        own, others = times["Rows.page"], times["bare aiohttp"]
        # Said beside the ratio: a Java server takes three times as long for its first thousand requests.
        print(
            f"  the session adds {(median(own) - median(others)) * 1e3:.2f} [{(min(own) - min(others)) * 1e3:.2f}] ms"
        )
        process = session._calls.driver._worker._child.process.pid
        await measure_cpu(sides, process)
        await measure_in_flight(sides)
        if "object" not in record:
            await measure_growth(server, session, process)


async def main(records: list[dict[str, Any]]) -> None:
    for record in records:
        if record["type"] in SERVERS:
            await measure(record)


if __name__ == "__main__":
    introduce()
    path = sys.argv[1] if len(sys.argv) > 1 else None
    with nothing() if path else serve_sample() as port:
        sampled = {"type": "elasticsearch", "host": "127.0.0.1", "port": port, "object": "orders"}
        sampled["url"] = f"http://127.0.0.1:{port}"
        anyio.run(main, json.loads(Path(path).read_text(encoding="utf-8")) if path else [sampled])
