"""Loads of rows through a session, beside the tools that people load with: bench_import.py RECORDS.

RECORDS is the file that `tests/servers` names in DRAGOMAN_LIVE; of each type its first server is taken, without
security. Each side reads the same file of rows and runs in a process of its own, in turns, into an empty object;
printed are medians, and of memory the greatest. A load of twice the rows says whether memory grows. elasticsearch-py,
elasticdump and the client of Weaviate that sends its batches by REST (3.x) are fetched into a cache if pip and npm can.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from benchmarks.bench_export import CACHE, call, python_with_client, run, tool, used

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

INDEX, COLLECTION = "dragoman-bench-import", "DragomanBenchImport"
DIMENSIONS = 128
OURS = "dragoman.load"
Figures = dict[str, float]

# the rows -------------------------------------------------------------------------------------------------------------


def documents(path: Path, *, rows: int) -> None:
    """Write documents of about 550 bytes as an export in rows writes them, which elasticdump writes, too."""
    dice = random.Random(7)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 11))) for _ in range(2_000)]
    with path.open("w", encoding="utf-8") as out:
        for number in range(rows):
            document = {
                "id": number,
                "title": " ".join(dice.choices(words, k=8)),
                "text": " ".join(dice.choices(words, k=36)),
                "price": round(dice.random() * 1_000, 2),
                "tags": dice.choices(words, k=3),
                "created": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}T{number % 24:02}:00:00Z",
                "customer": {"city": dice.choice(words), "active": number % 2 == 0},
            }
            out.write(json.dumps({"_index": INDEX, "_id": f"row-{number}", "_source": document}) + "\n")


def objects(path: Path, *, rows: int) -> None:
    """Write objects with their vectors as an export in rows writes them."""
    dice = random.Random(7)
    with path.open("w", encoding="utf-8") as out:
        for number in range(rows):
            properties = {"title": f"the tale of number {number}", "i": number, "n": number / 7}
            vector = [round(dice.random(), 6) for _ in range(DIMENSIONS)]
            key = f"00000000-0000-4000-8000-{number:012x}"
            out.write(json.dumps({"id": key, "properties": properties, "vector": vector}) + "\n")


def make_index(url: str) -> None:
    """Make the empty index."""
    forget_index(url)
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
    fields = {"title": {"type": "keyword"}, "text": {"type": "keyword", "index": False, "doc_values": False}}
    body = {"settings": settings, "mappings": {"properties": fields}}
    call("PUT", f"{url}/{INDEX}", json.dumps(body).encode())


def forget_index(url: str) -> None:
    """Remove the index, if it is there."""
    call("DELETE", f"{url}/{INDEX}?ignore_unavailable=true")


def count_index(url: str) -> int:
    """Count the rows of the index."""
    call("POST", f"{url}/{INDEX}/_refresh")
    return int(call("GET", f"{url}/{INDEX}/_count")["count"])


def make_collection(url: str) -> None:
    """Make the empty collection."""
    forget_collection(url)
    types = {"title": "text", "i": "int", "n": "number"}
    body = {
        "class": COLLECTION,
        "vectorizer": "none",
        "vectorIndexType": "flat",
        "properties": [{"name": name, "dataType": [kind]} for name, kind in types.items()],
    }
    call("POST", f"{url}/v1/schema", json.dumps(body).encode())


def forget_collection(url: str) -> None:
    """Remove the collection, if it is there."""
    urllib.request.urlopen(urllib.request.Request(f"{url}/v1/schema/{COLLECTION}", method="DELETE"), timeout=120)


def count_collection(url: str) -> int:
    """Count the rows of the collection."""
    query = {"query": f"{{Aggregate{{{COLLECTION}{{meta{{count}}}}}}}}"}
    found = call("POST", f"{url}/v1/graphql", json.dumps(query).encode())
    return int(found["data"]["Aggregate"][COLLECTION][0]["meta"]["count"])


# the sides in Python, each in a process of its own --------------------------------------------------------------------


async def load(url: str, file: Path, *, type: str, name: str, on_conflict: str) -> Figures:  # noqa: A002
    """Load through a session and the driver's own process, confined as always."""
    from urllib.parse import urlsplit

    import dragoman
    from dragoman import Runtime, SavedConnection

    where = urlsplit(url)
    with tempfile.TemporaryDirectory() as home:
        async with Runtime(Path(home), spare=False) as runtime:
            values = {"host": where.hostname, "port": where.port}
            runtime.connections.save(SavedConnection(name="bench", type=type, values=values), replace=True)
            async with runtime.open("bench") as session:
                await session.describe(name)
                children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
                processes = [os.getpid(), *map(int, children)]
                before = [used(process)[0] for process in processes]
                began = time.perf_counter()
                report = await dragoman.load(session, name, file=file, format="rows", on_conflict=on_conflict)
                seconds = time.perf_counter() - began
                after = [used(process) for process in processes]
    assert report.counts["applied"] == report.rows, report
    cpu = [now[0] - then for now, then in zip(after, before, strict=True)]
    return {"seconds": seconds, "host": cpu[0], "cpu": sum(cpu), "memory": sum(now[1] for now in after)}


def lines_of(file: Path, loads: Callable[[bytes], Any]) -> Iterator[Any]:
    """Read the rows of the file."""
    with file.open("rb") as lines:
        yield from map(loads, lines)


async def parallel_bulk(url: str, file: Path, *, fast: bool) -> Figures:
    """Load with helpers.parallel_bulk of elasticsearch-py; fast is with orjson and chunks of the session's size."""
    import elasticsearch
    from elasticsearch import helpers

    loads, options, chunk = json.loads, {}, 500
    if fast:
        import orjson

        loads, options, chunk = orjson.loads, {"serializer": elasticsearch.OrjsonSerializer()}, 2_000
    began = time.perf_counter()
    with elasticsearch.Elasticsearch(url, **options) as client:
        actions = (
            {"_op_type": "create", "_index": INDEX, "_id": row["_id"], "_source": row["_source"]}
            for row in lines_of(file, loads)
        )
        for fine, found in helpers.parallel_bulk(client, actions, thread_count=4, chunk_size=chunk):
            assert fine, found
    return {"seconds": time.perf_counter() - began}


async def client_batch(url: str, file: Path, *, workers: int) -> Figures:
    """Load with the batches of the Weaviate client that sends them by REST."""
    import weaviate

    began = time.perf_counter()
    client = weaviate.Client(url)
    client.batch.configure(batch_size=500, num_workers=workers, callback=None)
    with client.batch as batch:
        for row in lines_of(file, json.loads):
            batch.add_data_object(row["properties"], COLLECTION, uuid=row["id"], vector=row["vector"])
    return {"seconds": time.perf_counter() - began}


ELASTICSEARCH: dict[str, Callable[[str, Path], Awaitable[Figures]]] = {
    OURS: partial(load, type="elasticsearch", name=INDEX, on_conflict="fail"),
    "parallel_bulk, json, chunks of 500": partial(parallel_bulk, fast=False),
    "parallel_bulk, orjson, chunks of 2,000": partial(parallel_bulk, fast=True),
}
WEAVIATE: dict[str, Callable[[str, Path], Awaitable[Figures]]] = {
    OURS: partial(load, type="weaviate", name=COLLECTION, on_conflict="fail"),
    f"{OURS}, overwrite": partial(load, type="weaviate", name=COLLECTION, on_conflict="overwrite"),
    "client 3.x, batches of 500": partial(client_batch, workers=1),
    "client 3.x, 4 workers": partial(client_batch, workers=4),
}
SIDES = {"elasticsearch": ELASTICSEARCH, "weaviate": WEAVIATE}


def measure(python: str, type: str, name: str, url: str, file: Path, folder: Path) -> Figures:  # noqa: A002
    """Run a side of ours in an interpreter of its own."""
    said = folder / "said"
    found = run([python, __file__, "--side", type, name, url, str(file)], folder, documents=said)
    return found | json.loads(said.read_bytes().splitlines()[-1])


def elasticdump(program: str, url: str, file: Path, folder: Path) -> Figures:
    """Load with elasticdump, by as many rows at a time as the session."""
    to = [f"--output={url}/{INDEX}", "--type=data", "--limit=2000", "--noRefresh", "--quiet"]
    return run([program, f"--input={file}", *to], folder, documents=folder / "said")


# the comparison -------------------------------------------------------------------------------------------------------


def weaviate_python() -> str | None:
    """Return an interpreter that has the client of Weaviate that sends its batches by REST."""
    folder = CACHE / "weaviate-client-3"
    client = "lib/*/site-packages/weaviate"
    if not list(folder.glob(client)):
        subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, check=False)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "weaviate-client>=3,<4"], check=False)
    return str(folder / "bin/python") if list(folder.glob(client)) else None


def sides_of(record: dict[str, Any], folder: Path) -> dict[str, Callable[[Path], Figures]]:
    """Return what can be measured on a server."""
    kind, url = record["type"], record["url"]
    client = python_with_client(record["version"]) if kind == "elasticsearch" else weaviate_python()
    sides: dict[str, Callable[[Path], Figures]] = {}
    for name in SIDES[kind]:
        if python := sys.executable if name.startswith(OURS) else client:
            sides[name] = lambda file, name=name, python=python: measure(python, kind, name, url, file, folder)  # type: ignore[misc]
    if kind == "elasticsearch":
        fetch = ("npm", "install", "--silent", "--prefix", ".", "elasticdump")
        program = tool("elasticdump", "node_modules/.bin/elasticdump", *fetch)
        if program:
            sides["elasticdump --limit 2000"] = lambda file: elasticdump(program, url, file, folder)
        else:
            print("elasticdump is absent: it can neither be found nor fetched here")
    if not client:
        print(f"the client of {kind} is absent: it can neither be found nor fetched here")
    return sides


def compare(record: dict[str, Any], folder: Path, *, rounds: int, rows: int) -> None:
    """Run all sides in turn, and twice the rows at the end; the first round warms up."""
    kind, url = record["type"], record["url"]
    write, make, forget, count = (
        (documents, make_index, forget_index, count_index)
        if kind == "elasticsearch"
        else (objects, make_collection, forget_collection, count_collection)
    )
    file, twice = folder / f"{kind}.rows", folder / f"{kind}-twice.rows"
    write(file, rows=rows)
    write(twice, rows=2 * rows)
    sides = sides_of(record, folder)
    found: dict[str, list[Figures]] = {name: [] for name in sides}
    try:
        for number in range(rounds + 1):
            for name, side in sides.items():
                make(url)
                figures = side(file)
                assert count(url) == rows, f"{name} lost rows"
                if number:
                    found[name].append(figures)
        make(url)
        memory = sides[OURS](twice)["memory"]
    finally:
        forget(url)
    report(f"{rows:,} rows into {record['engine']}", found, rows)
    before = max(each["memory"] for each in found[OURS])
    print(f"  {OURS} of twice the rows: {memory:.0f} MB, {memory / before:.2f} x")


def report(title: str, found: dict[str, list[Figures]], rows: int) -> None:
    """Print one table; a rate above 1 x means that the session is the faster one."""
    middle = {name: median(each["seconds"] for each in runs) for name, runs in found.items()}
    print(f"\n{title}\n  {'':40}  seconds  [best]   rows/s  {OURS} is  CPU s per million  memory")
    for name, runs in found.items():
        best = min(each["seconds"] for each in runs)
        cpu = median(each["cpu"] for each in runs) * 1e6 / rows
        memory = max(each["memory"] for each in runs)
        ratio, rate = middle[name] / middle[OURS], rows / middle[name]
        print(f"  {name:40} {middle[name]:8.2f} {best:7.2f} {rate:8,.0f} {ratio:15.2f} x {cpu:18.1f} {memory:7.0f} MB")
    own = [each["host"] / each["cpu"] for each in found[OURS]]
    print(f"  of the CPU of {OURS} the host has {median(own):.0%}; whole processes are counted for the others")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--side", nargs=4, metavar=("TYPE", "NAME", "URL", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        import asyncio

        kind, name, url, file = given.side
        print(json.dumps(asyncio.run(SIDES[kind][name](url, Path(file)))))
        return
    if given.records is None:
        engines = "elasticsearch-8.19.21-plain weaviate-1.38.11-open"
        print(f"needs real servers: tests/servers run {engines} -- sh -c 'python … \"$DRAGOMAN_LIVE\"'")
        return
    records = json.loads(given.records.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for kind in SIDES:
            if record := next((each for each in records if each["type"] == kind), None):
                compare(record, Path(folder), rounds=given.rounds, rows=given.rows)


if __name__ == "__main__":
    main()
