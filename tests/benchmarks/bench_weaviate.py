"""Exports, a table and a page of Weaviate beside the official client and bare aiohttp: bench_weaviate.py RECORDS.

RECORDS is the file that `tests/servers` names in DRAGOMAN_LIVE; its first Weaviate is taken. The official client is
run by the Python that WEAVIATE_PYTHON names, which has `weaviate-client` and numpy installed; without it that side is
left out.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import aiohttp
import anyio
from benchmarks.bench_export import used
from benchmarks.compare import introduce, measure_async, report

from dragoman import Filter, Reference, Runtime, SavedConnection

ROWS = int(os.environ.get("ROWS", "100000"))
DIMENSIONS = 128
NAME = "DragomanBench"
ITERATE = """
import sys, time, weaviate
from weaviate.classes.init import Auth
host, port, grpc, key, name, vectors = sys.argv[1:]
auth = Auth.api_key(key) if key else None
with weaviate.connect_to_local(host, int(port), int(grpc), auth_credentials=auth, skip_init_checks=True) as client:
    began, rows = time.perf_counter(), 0
    items = client.collections.get(name).iterator(include_vector=vectors != "no")
    if vectors == "numpy":
        import numpy
        began = time.perf_counter()
        rows = len(numpy.array([item.vector["default"] for item in items], dtype=numpy.float32))
    else:
        for item in items:
            rows += 1
    print(rows, time.perf_counter() - began)
"""


async def load(http: aiohttp.ClientSession) -> None:
    """Make the collection and fill it."""
    types = {"title": "text", "i": "int", "n": "number"}
    definition = {
        "class": NAME,
        "vectorizer": "none",
        "vectorIndexType": "flat",
        "properties": [{"name": name, "dataType": [kind]} for name, kind in types.items()],
    }
    await http.delete(f"/v1/schema/{NAME}")
    async with http.post("/v1/schema", json=definition) as reply:
        reply.raise_for_status()
    chance = random.Random(7)
    for start in range(0, ROWS, 1_000):
        items = [
            {
                "class": NAME,
                "properties": {"title": f"the tale of number {at}", "i": at, "n": at / 7},
                "vector": [round(chance.random(), 6) for _ in range(DIMENSIONS)],
            }
            for at in range(start, min(ROWS, start + 1_000))
        ]
        async with http.post("/v1/batch/objects", json={"objects": items}) as reply:
            reply.raise_for_status()


def official(record: dict, vectors: str) -> float | None:
    """Iterate with the official client in a process of its own; return rows per second.

    Args:
        record: The server.
        vectors: ``no``, ``yes``, or ``numpy`` for one array of all vectors, in which properties are left out.
    """
    python = os.environ.get("WEAVIATE_PYTHON")
    if not python:
        print("the official client is left out: WEAVIATE_PYTHON names no Python that has it")
        return None
    key = record["api_keys"].get("admin", "")
    words = [record["host"], str(record["port"]), str(record["grpc_port"]), key, NAME, vectors]
    done = subprocess.run([python, "-c", ITERATE, *words], capture_output=True, text=True, check=True)
    rows, seconds = done.stdout.split()
    assert int(rows) == ROWS, done.stdout
    return ROWS / float(seconds)


async def exports(session, record: dict, folder: Path) -> None:
    """Compare whole exports, two rounds in turns, the better of each."""
    for title, vectors, target in (("without vectors", "no", 4.0), (f"with {DIMENSIONS} dimensions", "yes", 1.8)):
        ours, theirs = 0.0, 0.0
        for _ in range(2):
            began = time.perf_counter()
            columns = ["title", "i", "n", *(["vector"] if vectors == "yes" else [])]
            file = folder / f"rows-{time.monotonic_ns()}.ndjson"
            result = await session.rows(NAME, columns=columns).export(file, format="rows")
            assert result.rows == ROWS
            ours = max(ours, ROWS / (time.perf_counter() - began))
            theirs = max(theirs, await anyio.to_thread.run_sync(official, record, vectors) or 0.0)
        print(f"{ROWS:,} objects {title}: {ours:,.0f} rows/s to a file", end="")
        print(f", official iterator {theirs:,.0f}: {ours / theirs:.2f} x (target {target} x)" if theirs else "")


async def table(session, record: dict) -> None:
    """Compare a table of vectors and properties with one numpy array of the vectors, in turns, the better of each."""
    ours, theirs, cpu = 0.0, 0.0, 0.0
    for _ in range(2):
        began, before = time.perf_counter(), processor_seconds()
        found = await session.rows(NAME, columns=["title", "i", "n", "vector"]).table()
        seconds = time.perf_counter() - began
        assert found.num_rows == ROWS
        assert found.column("vector").null_count == 0
        cpu = processor_seconds() - before
        ours = max(ours, ROWS / seconds)
        theirs = max(theirs, await anyio.to_thread.run_sync(official, record, "numpy") or 0.0)
    print(f"{ROWS:,} objects with {DIMENSIONS} dimensions: {ours:,.0f} rows/s into a table", end="")
    print(f", {cpu * 1e6 / ROWS:.0f} s of the processor per million", end="")
    print(f", official iterator into numpy {theirs:,.0f}: {ours / theirs:.2f} x (target 2 x)" if theirs else "")


def processor_seconds() -> float:
    """Return the processor time of this process and its children so far."""
    processes = [os.getpid(), *map(int, Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())]
    return sum(used(process)[0] for process in processes)


async def page(session, http: aiohttp.ClientSession) -> None:
    """Compare a filtered page with the very same request."""
    compiled = await session.rows(NAME, filters=[Filter("i", ">", 500)]).explain()
    order = '[{path:["i"],order:asc},{path:["_id"],order:asc}]'
    text = (
        f"{{Get{{{NAME}(limit:100,where:{compiled.rows[0].clause},sort:{order})"
        "{title i n _additional{id creationTimeUnix lastUpdateTimeUnix}}}}"
    )
    body = json.dumps({"query": text}).encode()

    async def bare() -> None:
        async with http.post("/v1/graphql", data=body) as answer:
            assert b'"Get"' in await answer.read()

    async def ours() -> None:
        columns = ["uuid", "title", "i", "n"]
        found = await session.rows(NAME, filters=[Filter("i", ">", 500)], columns=columns).page(total=False)
        assert len(found.cells) == 100

    found = await measure_async({"bare aiohttp": bare, "Session.page": ours}, rounds=30)
    report("One filtered page of 100 rows", found, baseline="bare aiohttp", target="1.2 x")


async def main(record: dict) -> None:
    key = record["api_keys"].get("admin", "")
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(record["url"], headers=headers))
        await load(http)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runtime = await stack.enter_async_context(Runtime(folder / "home", spare=False))
        values = {"host": record["host"], "port": record["port"]}
        values |= {"auth_method": "api-key", "api_key": Reference("env", "BENCH_KEY")} if key else {}
        os.environ["BENCH_KEY"] = key
        runtime.connections.save(SavedConnection(name="real", type="weaviate", values=values))
        session = await stack.enter_async_context(runtime.open("real"))
        print(f"{session.server.product} {session.server.version}, sandbox {session.sandbox}")
        await page(session, http)
        await exports(session, record, folder)
        await table(session, record)
        await http.delete(f"/v1/schema/{NAME}")


if __name__ == "__main__":
    introduce()
    if len(sys.argv) < 2:
        print("needs a real server: tests/servers run weaviate-1.38.11 -- sh -c 'python … \"$DRAGOMAN_LIVE\"'")
        raise SystemExit
    records = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    anyio.run(main, next(record for record in records if record["type"] == "weaviate"))
