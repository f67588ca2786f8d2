"""The list of 10 to 10,000 objects, beside elasticsearch-py and bare aiohttp: bench_objects.py [URL [COUNT]].

The sides run in turns. Without a URL they ask a server in a process of its own, which answers as Elasticsearch 8.19 and
Weaviate 1.38 do, in the time of a dictionary look-up, so that the figures are those of the clients. With the URL of an
open Elasticsearch, they ask that: COUNT indices (1,000) of one document are made for the run, beside those it has, and
removed afterwards. Processor time is that of the host and the driver, or of the client, without the server. pip fetches
elasticsearch-py into a cache.

`cat.indices` is what people call: one request, whose counts include the hidden documents of nested arrays. Exact counts
take searches: 200 of them in a request, one request after another, is what stands beside the session.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

ROUNDS = 7
SIZES = (10, 100, 1_000, 10_000)
COLLECTIONS = 1_000
AIM = 0.4  # seconds for 10,000 indices
Figures = dict[str, float]

# the server -----------------------------------------------------------------------------------------------------------

ROOT_ANSWER = {
    "name": "bench", "cluster_name": "bench", "tagline": "You Know, for Search",
    "version": {"number": "8.19.21", "build_flavor": "default", "lucene_version": "9.12.2"},
}  # fmt: skip
META = {"hostname": "http://[::]:8080", "modules": {}, "version": "1.38.11", "grpcMaxMessageSize": 104858000}


async def serve(count: int) -> None:
    """Answer for as many indices and collections as wanted, until the standard input ends."""
    import anyio
    from aiohttp import web

    names = [f"logs-application-{number:05}-2026.11" for number in range(count)]
    fields = ("index", "status", "docs.count", "store.size")
    indices = [dict(zip(fields, (name, "open", "7", "4961"), strict=True)) for name in names]
    by_name = dict(zip(names, indices, strict=True))
    counts = {
        name: {
            "took": 1, "timed_out": False, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {"total": {"value": 7, "relation": "eq"}, "max_score": None, "hits": []}, "status": 200,
        }
        for name in names
    }  # fmt: skip
    whole = {name: json.dumps(value) for name, value in counts.items()}
    short = (
        '{"_shards":{"failed":0,"total":1},"hits":{"total":{"relation":"eq","value":7}},"status":200,"timed_out":false}'
    )
    listings: dict[str, str] = {}
    properties = [{"name": f"field_{number}", "dataType": ["text"], "indexFilterable": True} for number in range(8)]
    schema = json.dumps(
        {
            "classes": [
                {"class": f"Collection{number:05}", "properties": properties, "multiTenancyConfig": {"enabled": False}}
                for number in range(count)
            ]
        }
    )

    def answer(text: str) -> web.Response:
        return web.Response(text=text, content_type="application/json", headers={"X-Elastic-Product": "Elasticsearch"})

    resolved = json.dumps(
        {
            "indices": [{"name": name, "attributes": ["open"]} for name in names],
            "aliases": [],
            "data_streams": [],
        }
    )

    async def cat(request: web.Request) -> web.Response:
        wanted = request.query["h"].split(",")
        if chosen := request.match_info.get("names"):
            return answer(json.dumps([{field: by_name[name][field] for field in wanted} for name in chosen.split(",")]))
        if request.query["h"] not in listings:
            listings[request.query["h"]] = json.dumps([{field: index[field] for field in wanted} for index in indices])
        return answer(listings[request.query["h"]])

    async def msearch(request: web.Request) -> web.Response:
        searched = re.findall(r'"index":\s?"([^"]+)"', await request.text())
        parts = [short] * len(searched) if "filter_path" in request.query else [whole[name] for name in searched]
        head = "" if "filter_path" in request.query else '"took":1,'
        return answer(f'{{{head}"responses":[{",".join(parts)}]}}')

    async def graphql(request: web.Request) -> web.Response:
        counted = re.findall(r"(\w+)\{meta\{count\}\}", (await request.json())["query"])
        counts = {name: [{"meta": {"count": 7}}] for name in counted}
        return answer(json.dumps({"data": {"Aggregate": counts}}))

    def fixed(value: object) -> Callable[[web.Request], Awaitable[web.Response]]:
        text = value if isinstance(value, str) else json.dumps(value)

        async def handle(_: web.Request) -> web.Response:
            return answer(text)

        return handle

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_get("/", fixed(ROOT_ANSWER))
    app.router.add_get("/_resolve/index/*", fixed(resolved))
    app.router.add_get("/_cat/indices", cat)
    app.router.add_get("/_cat/indices/{names}", cat)
    app.router.add_post("/_msearch", msearch)
    app.router.add_get("/v1/meta", fixed(META))
    app.router.add_get("/v1/schema", fixed(schema))
    app.router.add_get("/v1/aliases", fixed({"aliases": []}))
    app.router.add_post("/v1/graphql", graphql)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await anyio.to_thread.run_sync(sys.stdin.read)
    await runner.cleanup()


@contextmanager
def served(count: int) -> Iterator[str]:
    """Yield the address of a server with as many objects."""
    command = [sys.executable, __file__, "--serve", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.stdin.close()


# the sides ------------------------------------------------------------------------------------------------------------

PEER = r"""
import json, resource, sys, time
from elasticsearch import Elasticsearch

def cat():
    return client.cat.indices(format="json", h="index,docs.count,store.size", bytes="b", s="index").body

def exact():
    names, total = [index["index"] for index in cat() if not index["index"].startswith(".")], 0
    for start in range(0, len(names), 200):
        searches = []
        for name in names[start : start + 200]:
            searches += [{"index": name}, {"size": 0, "track_total_hits": True}]
        answers = client.msearch(searches=searches)["responses"]
        total += sum(answer["hits"]["total"]["value"] for answer in answers)
    return names

def exact_first():
    names, searches = [index["index"] for index in cat()][:100], []
    for name in names:
        searches += [{"index": name}, {"size": 0, "track_total_hits": True}]
    client.msearch(searches=searches)
    return names

SIDES = {"cat": cat, "exact": exact, "first": exact_first}
with Elasticsearch(sys.argv[1]) as client:
    for line in sys.stdin:
        side, times = line.split()
        began, before = time.perf_counter(), time.process_time()
        for _ in range(int(times)):
            number = len(SIDES[side]())
        print(json.dumps({"wall": (time.perf_counter() - began) / int(times),
                          "cpu": (time.process_time() - before) / int(times), "objects": number}), flush=True)
"""


def used() -> float:
    """Return the seconds of processor time of this process and those below it."""
    pending, ticks = [os.getpid()], 0
    for pid in pending:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:13]))
        pending += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


async def measured(call: Callable[[], Awaitable[int]], times: int) -> Figures:
    """Run a side of ours some times."""
    began, before = time.perf_counter(), used()
    for _ in range(times):
        number = await call()
    return {"wall": (time.perf_counter() - began) / times, "cpu": (used() - before) / times, "objects": number}


def report(title: str, rounds: dict[str, list[Figures]], *, baseline: str) -> None:
    """Print medians, and the ratios to one side."""
    print(f"\n{title}\n  {'':44}{'wall, ms':>10}{'ratio':>8}{'CPU, ms':>10}{'ratio':>8}{'objects':>9}")
    middle = {
        name: {key: median(turn[key] for turn in turns) for key in ("wall", "cpu", "objects")}
        for name, turns in rounds.items()
    }
    for name, figures in middle.items():
        ratios = [figures[key] / (middle[baseline][key] or 1e-9) for key in ("wall", "cpu")]
        print(
            f"  {name:44}{figures['wall'] * 1e3:10.2f}{ratios[0]:7.2f}x{figures['cpu'] * 1e3:10.2f}{ratios[1]:7.2f}x"
            f"{figures['objects']:9,.0f}"
        )


async def elasticsearch(url: str, python: str | None, times: int, title: str) -> float:
    """Measure the sides on one server, and return the seconds of the whole list."""
    from dragoman import Runtime, SavedConnection

    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(
            Runtime(Path(stack.enter_context(tempfile.TemporaryDirectory())), spare=False)
        )
        where = urlsplit(url)
        values = {"host": where.hostname, "port": where.port}
        runtime.connections.save(SavedConnection(name="bench", type="elasticsearch", values=values))
        session = await stack.enter_async_context(runtime.open("bench"))
        sides: dict[str, Callable[[], Awaitable[Figures]]] = {}
        if python is not None:
            peer = stack.enter_context(
                subprocess.Popen([python, "-c", PEER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )

            def of_peer(side: str) -> Callable[[], Awaitable[Figures]]:
                async def ask() -> Figures:
                    peer.stdin.write(f"{side} {times}\n")
                    peer.stdin.flush()
                    return json.loads(peer.stdout.readline())

                return ask

            sides["elasticsearch-py, cat.indices"] = of_peer("cat")
            sides["elasticsearch-py, cat.indices and msearch"] = of_peer("exact")
            sides["elasticsearch-py, the first 100 counted"] = of_peer("first")
            stack.callback(peer.stdin.close)

        def of_session(**wanted: object) -> Callable[[], Awaitable[Figures]]:
            async def objects() -> int:
                return len(await session.objects(**wanted))

            return lambda: measured(objects, times)

        sides["Session.objects()"] = of_session()
        sides["Session.objects(limit=100)"] = of_session(limit=100)
        sides["Session.objects(contains='0042')"] = of_session(contains="0042")
        sides["Session.objects(counts=False)"] = of_session(counts=False)
        rounds: dict[str, list[Figures]] = {name: [] for name in sides}
        for number in range(ROUNDS + 1):
            for name, side in sides.items():
                figures = await side()
                if number:
                    rounds[name].append(figures)
        exact = "elasticsearch-py, cat.indices and msearch"
        report(title, rounds, baseline=exact if exact in rounds else "Session.objects()")
        return median(turn["wall"] for turn in rounds["Session.objects()"])


async def weaviate(url: str, count: int) -> None:
    """Measure the list of collections beside bare aiohttp, which counts 100 in a request, one after another."""
    import aiohttp

    from dragoman import Runtime, SavedConnection

    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(
            Runtime(Path(stack.enter_context(tempfile.TemporaryDirectory())), spare=False)
        )
        where = urlsplit(url)
        values = {"host": where.hostname, "port": where.port}
        runtime.connections.save(SavedConnection(name="bench", type="weaviate", values=values))
        session = await stack.enter_async_context(runtime.open("bench"))
        client = await stack.enter_async_context(aiohttp.ClientSession(url))

        async def bare() -> int:
            async with client.get("/v1/schema") as answer:
                names = sorted(definition["class"] for definition in (await answer.json())["classes"])
            for start in range(0, len(names), 100):
                counts = " ".join(f"{name}{{meta{{count}}}}" for name in names[start : start + 100])
                async with client.post("/v1/graphql", json={"query": f"{{Aggregate{{{counts}}}}}"}) as answer:
                    await answer.json()
            return len(names)

        async def whole() -> int:
            return len(await session.objects())

        async def first() -> int:
            return len(await session.objects(limit=100))

        sides = {"bare aiohttp": bare, "Session.objects()": whole, "Session.objects(limit=100)": first}
        rounds: dict[str, list[Figures]] = {name: [] for name in sides}
        for number in range(ROUNDS + 1):
            for name, side in sides.items():
                figures = await measured(side, 2)
                if number:
                    rounds[name].append(figures)
        report(f"{count:,} collections of Weaviate", rounds, baseline="bare aiohttp")


@contextmanager
def indices_of_the_run(url: str, count: int) -> Iterator[None]:
    """Make `count` indices of one document in an open Elasticsearch, and remove them at the end."""
    names = [f"bench-objects-{number:05}" for number in range(count)]

    def send(method: str, path: str, body: object = None) -> None:
        request = urllib.request.Request(url + path, method=method, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, None if body is None else json.dumps(body).encode()) as answer:
            answer.read()

    send("PUT", "/_cluster/settings", {"transient": {"cluster.max_shards_per_node": count + 1_000}})
    try:
        settings = {"number_of_shards": 1, "number_of_replicas": 0}
        for name in names:
            send("PUT", f"/{name}", {"settings": settings, "mappings": {"properties": {"n": {"type": "long"}}}})
            send("PUT", f"/{name}/_doc/1", {"n": 1})
        send("POST", "/bench-objects-*/_refresh")
        yield
    finally:
        for start in range(0, count, 100):
            with suppress(OSError):
                send("DELETE", "/" + ",".join(names[start : start + 100]) + "?ignore_unavailable=true")
        send("PUT", "/_cluster/settings", {"transient": {"cluster.max_shards_per_node": None}})


def main(url: str | None, indices: int) -> None:
    import anyio
    from benchmarks.bench_export import python_with_client
    from benchmarks.compare import introduce

    introduce()
    python = python_with_client("8.19.21")
    if url is not None:
        with indices_of_the_run(url, indices):
            anyio.run(elasticsearch, url, python, 1, f"The indices of a real server, {indices:,} of them made here")
        return
    for count in SIZES:
        with ExitStack() as stack:
            address = stack.enter_context(served(count))
            title, times = f"{count:,} indices of Elasticsearch", max(1, min(50, 2_000 // count))
            seconds = anyio.run(elasticsearch, address, python, times, title)
            if count == SIZES[-1]:
                print(f"  all of them in {seconds:.2f} s   (target: {AIM} s)")
    with served(COLLECTIONS) as address:
        anyio.run(weaviate, address, COLLECTIONS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        import anyio

        anyio.run(serve, int(sys.argv[2]))
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else None, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000)
