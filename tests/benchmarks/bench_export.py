"""An export through a session, beside everything else that reads a whole index: bench_export.py URL.

Needs a real server without security; without a URL nothing is measured. Two indices of the same documents, with four
shards and with one, are made for the run and removed afterwards. Each side runs in a process of its own, in turn;
printed are medians, and of memory the greatest. With `--apart` the server has all cores but the last, and each side
the last one, as if they were two machines: else they take each other's time, and a side that does more for its rows
slows the server down as well. `ESDUMP` and `ELASTICDUMP` are paths of the two tools; where they are
not given, Go and npm are asked to fetch them into a cache, and pip is for elasticsearch-py.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CACHE = Path.home() / ".cache" / "dragoman-benchmarks"
INDEX = "dragoman-bench-export"
SLICES, SIZE = 4, 3_800  # as the driver asks for documents of this length
LARGE = 10_000  # the most that a server gives unless it is told otherwise, and what tools ask for
Figures = dict[str, float]
TOTAL = re.compile(rb'"total":{"value":(\d+)')

# the documents --------------------------------------------------------------------------------------------------------


def call(method: str, url: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(url, body, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def load(url: str, index: str, *, shards: int, rows: int) -> None:
    """Make an index of documents of about 550 bytes."""
    settings = {"number_of_shards": shards, "number_of_replicas": 0, "refresh_interval": "-1"}
    fields = {"title": {"type": "keyword"}, "text": {"type": "keyword", "index": False, "doc_values": False}}
    call("PUT", f"{url}/{index}", json.dumps({"settings": settings, "mappings": {"properties": fields}}).encode())
    dice = random.Random(7)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 11))) for _ in range(2_000)]
    for start in range(0, rows, 10_000):
        lines = []
        for number in range(start, min(start + 10_000, rows)):
            document = {
                "id": number,
                "title": " ".join(dice.choices(words, k=8)),
                "text": " ".join(dice.choices(words, k=36)),
                "price": round(dice.random() * 1_000, 2),
                "tags": dice.choices(words, k=3),
                "created": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}T{number % 24:02}:00:00Z",
                "customer": {"city": dice.choice(words), "active": number % 2 == 0},
            }
            lines += [f'{{"index":{{"_id":"{number}"}}}}', json.dumps(document)]
        assert not call("POST", f"{url}/{index}/_bulk", ("\n".join(lines) + "\n").encode())["errors"]
    call("POST", f"{url}/{index}/_flush")
    call("POST", f"{url}/{index}/_refresh")


# the sides in Python, each in a process of its own --------------------------------------------------------------------


async def walk(url: str, index: str, slices: int, take: Callable[[bytes], object], *, size: int = SIZE) -> Figures:
    """Fetch all pages; of each slice the next is asked for when the one before it has been taken.

    Nothing is decoded here: the first answer says how many rows there are, the end of each where to go on.
    """
    import aiohttp
    import anyio

    began, total = time.perf_counter(), 0
    async with aiohttp.ClientSession(url, headers={"accept-encoding": "identity"}) as client:
        async with client.post(f"/{index}/_pit?keep_alive=2m") as answer:
            pit = (await answer.json())["id"]

        async def one(number: int) -> None:
            nonlocal total
            body: dict[str, Any] = {
                "size": size,
                "query": {"match_all": {}},
                "pit": {"id": pit, "keep_alive": "2m"},
                "sort": [{"_doc": "asc"}, {"_shard_doc": "asc"}],
                "track_total_hits": True,
            }
            if slices > 1:
                body["slice"] = {"id": number, "max": slices}
            left = 1
            while left > 0:
                async with client.post("/_search?allow_partial_search_results=false", json=body) as answer:
                    page = await answer.read()
                take(page)
                if body["track_total_hits"]:
                    found = TOTAL.search(page, 0, 2_000)
                    assert found
                    left = int(found[1])
                    total += left
                at = page.rindex(b'"sort":[')
                left -= size
                body |= {"search_after": json.loads(page[at + 7 : page.index(b"]", at) + 1]), "track_total_hits": False}

        async with anyio.create_task_group() as tasks:
            for number in range(slices):
                tasks.start_soon(one, number)
        seconds = time.perf_counter() - began
        async with client.delete("/_pit", json={"id": pit}) as answer:
            await answer.read()
    return {"seconds": seconds, "rows": total}


async def ceiling(url: str, index: str, _: Path) -> Figures:
    """Fetch the same pages as the driver and throw their bytes away."""
    return await walk(url, index, SLICES, len)


async def large_pages(url: str, index: str, _: Path) -> Figures:
    """Fetch everything in pages as large as they may be, and throw their bytes away."""
    return await walk(url, index, SLICES, len, size=LARGE)


async def least(url: str, index: str, file: Path) -> Figures:
    """Do only what any export to a file has to do besides: write the bytes, digest them, bring them to the disk."""
    digest = hashlib.sha256()
    with file.open("wb", buffering=0) as out:

        def take(page: bytes) -> None:
            out.write(page)
            digest.update(page)

        began = time.perf_counter()
        found = await walk(url, index, SLICES, take)
        os.fsync(out.fileno())
        seconds = time.perf_counter() - began
    file.unlink()  # these are pages, not documents
    return found | {"seconds": seconds}


async def plain_loop(url: str, index: str, file: Path) -> Figures:
    """Fetch a page, write it, fetch the next one; decoded as fast as the driver does it."""
    from msgspec import Raw, defstruct, json
    from msgspec import field as member

    hit = defstruct("Hit", [("source", Raw, member(name="_source"))], gc=False)
    decoder = json.Decoder(defstruct("Found", [("hits", defstruct("Hits", [("hits", list[hit])]))]))
    with file.open("wb", buffering=0) as out:

        def take(page: bytes) -> None:
            out.write(b"\n".join([*(each.source for each in decoder.decode(page).hits.hits), b""]))

        return await walk(url, index, 1, take)


def used(pid: int) -> tuple[float, float]:
    """Return the seconds of CPU and the greatest memory, in MB, of a running process."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"), int(status["VmHWM"].split()[0]) / 1024


async def session_export(url: str, index: str, file: Path) -> Figures:
    """Export through a session and the driver's own process, confined as always."""
    from dragoman import Runtime, SavedConnection

    where = urlsplit(url)
    async with Runtime(file.parent / "home", spare=False) as runtime:
        values = {"host": where.hostname, "port": where.port}
        runtime.connections.save(SavedConnection(name="bench", type="elasticsearch", values=values), replace=True)
        async with runtime.open("bench") as session:
            await session.describe(index)
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            processes = [os.getpid(), *map(int, children)]
            before = [used(process)[0] for process in processes]
            began = time.perf_counter()
            result = await session.rows(index).export(to=file, format="documents")
            seconds = time.perf_counter() - began
            after = [used(process) for process in processes]
    cpu = [now[0] - then for now, then in zip(after, before, strict=True)]
    memory = sum(now[1] for now in after)
    return {"seconds": seconds, "rows": result.rows, "host": cpu[0], "cpu": sum(cpu), "memory": memory}


async def scan(url: str, index: str, file: Path) -> Figures:
    """Read with helpers.scan of elasticsearch-py and write each document with json."""
    return _scan(url, index, file, json.dumps)


async def scan_orjson(url: str, index: str, file: Path) -> Figures:
    """Do the same with orjson."""
    import orjson
    from elasticsearch import OrjsonSerializer

    return _scan(url, index, file, lambda document: orjson.dumps(document).decode(), serializer=OrjsonSerializer())


def _scan(url: str, index: str, file: Path, dumps: Callable[[Any], str], **options: Any) -> Figures:
    from elasticsearch import Elasticsearch, helpers

    total, began = 0, time.perf_counter()
    with file.open("w", encoding="utf-8") as out, Elasticsearch(url, **options) as client:
        for hit in helpers.scan(client, index=index, size=5_000):
            out.write(dumps(hit["_source"]) + "\n")
            total += 1
    return {"seconds": time.perf_counter() - began, "rows": total}


SIDES: dict[str, Callable[[str, str, Path], Awaitable[Figures]]] = {
    "bare aiohttp, bytes thrown away": ceiling,
    "the same in pages of 10,000": large_pages,
    "bare, written, digested, synced": least,
    "Session.export": session_export,
    "a loop without prefetch": plain_loop,
    "helpers.scan, json": scan,
    "helpers.scan, orjson": scan_orjson,
}

# the sides that are programs ------------------------------------------------------------------------------------------


def tool(name: str, at: str, *fetch: str) -> str | None:
    """Return the path of a tool: from the environment, from the cache, or fetched into it where that can be done."""
    if given := os.environ.get(name.upper()):
        return given
    if not (CACHE / at).exists() and shutil.which(fetch[0]):
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(fetch, env={**os.environ, "GOBIN": str(CACHE)}, cwd=CACHE, capture_output=True, check=False)
    return str(CACHE / at) if (CACHE / at).exists() else None


def python_with_client(version: str) -> str | None:
    """Return an interpreter that has elasticsearch-py in the server's major version."""
    major = int(version.split(".")[0])
    folder = CACHE / f"elasticsearch-py-{major}"
    client = "lib/*/site-packages/elasticsearch"
    if not list(folder.glob(client)):
        subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, check=False)
        wanted = [f"elasticsearch>={major},<{major + 1}", "orjson"]
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", *wanted], check=False)
    return str(folder / "bin/python") if list(folder.glob(client)) else None


def run(command: list[str], folder: Path, *, documents: Path) -> Figures:
    """Run one side: what it says of itself counts, and else what the system knows of it."""
    query = folder / "query"
    query.write_text('{"query":{"match_all":{}}}')  # esdump reads one where it has no terminal
    with documents.open("wb") as out, (folder / "errors").open("wb") as errors, query.open("rb") as given:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
    assert process.returncode == 0, (folder / "errors").read_text()[-2_000:]
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss / 1024}


def measure(name: str, python: str, url: str, index: str, folder: Path) -> Figures:
    """Run a side of ours in an interpreter of its own."""
    said = folder / "said"
    command = [python, __file__, url, "--side", name, index, str(folder / "documents")]
    found = run(command, folder, documents=said)
    return found | json.loads(said.read_bytes().splitlines()[-1])


def compare(url: str, version: str, index: str, folder: Path, *, rounds: int, rows: int) -> dict[str, list[Figures]]:
    """Run all sides in turn, the slow ones less often; the first round warms up."""
    client, esdump = python_with_client(version), tool("esdump", "esdump", "go", "install", f"{ESDUMP}@latest")
    npm = ("npm", "install", "--silent", "--prefix", ".", "elasticdump")
    elasticdump = tool("elasticdump", "node_modules/.bin/elasticdump", *npm)
    target = folder / "documents"
    sides: dict[str, Callable[[], Figures]] = {}
    for name in SIDES:
        python = client if name.startswith("helpers") else sys.executable
        if python:
            sides[name] = lambda name=name, python=python: measure(name, python, url, index, folder)  # type: ignore[misc]
    if esdump:
        sides["esdump -t0 -z"] = lambda: run([esdump, "-t0", "-z", url, index], folder, documents=target)
    if elasticdump:
        dump = [elasticdump, f"--input={url}/{index}", "--output=$", "--type=data", "--sourceOnly", "--limit=10000"]
        sides["elasticdump --limit 10000"] = lambda: run(dump, folder, documents=target)
    for name, there in (("elasticsearch-py", client), ("esdump", esdump), ("elasticdump", elasticdump)):
        if not there:
            print(f"{name} is absent: it can neither be found nor fetched here")
    found: dict[str, list[Figures]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            slow = name.startswith(("helpers", "elasticdump"))
            if slow and number not in (1, rounds // 2 + 1):
                continue
            figures = side()
            if target.exists():
                with target.open("rb") as file:
                    assert sum(1 for _ in file) == rows, f"{name} lost documents"
                target.unlink()
            if number:
                found[name].append(figures)
    return found


ESDUMP = "github.com/hchargois/esdump"


def report(title: str, found: dict[str, list[Figures]], rows: int) -> None:
    """Print one table; a rate above 1 x means that Session.export is the faster one."""
    middle = {name: median(each["seconds"] for each in runs) for name, runs in found.items()}
    print(f"\n{title}\n  {'':34}  seconds   thousand/s  Session.export is  CPU s per million  memory")
    for name, runs in found.items():
        cpu = median(each["cpu"] for each in runs) * 1e6 / rows
        memory = max(each["memory"] for each in runs)
        ratio = middle[name] / middle["Session.export"]
        rate = rows / middle[name] / 1e3
        print(f"  {name:34} {middle[name]:8.2f} {rate:12.0f} {ratio:15.2f} x {cpu:18.2f} {memory:7.0f} MB")
    own = [each["host"] / each["cpu"] for each in found["Session.export"]]
    print(f"  of the CPU of Session.export the host has {median(own):.0%}; whole processes are counted for the others")


def apart(url: str) -> None:
    """Part the cores between the server, on this machine, and everything that this process starts."""
    node = next(iter(call("GET", f"{url}/_nodes/process")["nodes"].values()))
    *theirs, ours = sorted(os.sched_getaffinity(0))
    for thread in Path(f"/proc/{node['process']['id']}/task").iterdir():
        os.sched_setaffinity(int(thread.name), theirs)
    os.sched_setaffinity(0, [ours])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--apart", action="store_true", help="give the server and the sides cores of their own")
    parser.add_argument("--side", nargs=3, metavar=("NAME", "INDEX", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.url is None:
        print("bench_export.py needs the URL of a real server: python tests/servers start elasticsearch-8.19.21-plain")
        return
    url = given.url.rstrip("/")
    if given.side:
        import asyncio

        name, index, file = given.side
        print(json.dumps(asyncio.run(SIDES[name](url, index, Path(file)))))
        return
    version = call("GET", url)["version"]["number"]
    if given.apart:
        apart(url)
    with tempfile.TemporaryDirectory() as folder:
        for shards in (4, 1):
            index = f"{INDEX}-{shards}"
            with contextlib.suppress(OSError):
                call("DELETE", f"{url}/{index}")
            try:
                load(url, index, shards=shards, rows=given.rows)
                found = compare(url, version, index, Path(folder), rounds=given.rounds, rows=given.rows)
            finally:
                call("DELETE", f"{url}/{index}")
            plural = "shards" if shards > 1 else "shard"
            report(f"{given.rows:,} documents, {shards} {plural}, Elasticsearch {version}", found, given.rows)


if __name__ == "__main__":
    main()
