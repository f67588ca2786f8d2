"""Pages and exports of real servers through two checkouts: bench_checkouts.py CHECKOUT RECORDS [TASK …].

RECORDS is the file that `tests/servers` names in DRAGOMAN_LIVE; its first Elasticsearch and its first Weaviate are
taken. The other checkout has a `.venv` of its own, see `make setup`. Each round runs a task in this checkout and in the
other one, in turns, on the same data; processor time is that of the host and of the driver's process.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import aiohttp
import anyio
from benchmarks import bench_export, bench_weaviate

from dragoman_sample import servers as samples

PREFIX = "dragoman-checkouts-"
CHILD = r"""
import json, os, sys, tempfile, time
from pathlib import Path
import anyio
from dragoman import Filter, Reference, Runtime, SavedConnection

TICK = os.sysconf("SC_CLK_TCK")

def spent(processes):
    fields = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in processes]
    return sum(int(each[11]) + int(each[12]) for each in fields) / TICK

async def main(kind, values, key, prefix):
    os.environ["BENCH_KEY"] = key
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(Path(folder) / "home", spare=False) as runtime:
            if key:
                values |= {"auth_method": "api-key", "api_key": Reference("env", "BENCH_KEY")}
            runtime.connections.save(SavedConnection(name="real", type=kind, values=values))
            async with runtime.open("real") as session:
                target = Path(folder) / "rows"

                async def export(name, format, **choice):
                    target.unlink(missing_ok=True)
                    await session.rows(name, **choice).export(target, format=format)

                def rows(*names):
                    return lambda: export(prefix, format="rows", columns=["title", "i", "n", *names])

                async def page(name, total=True, **choice):
                    await session.rows(name, **choice).page(limit=100, total=total)

                filtered = {"filters": [Filter("i", ">", 500)], "columns": ["uuid", "title", "i", "n"], "total": False}
                tasks = {
                    "page": lambda: page(prefix + "orders"),
                    "export, 4 shards": lambda: export(prefix + "4", format="documents"),
                    "export, 1 shard": lambda: export(prefix + "1", format="documents"),
                    "export as rows, 4 shards": lambda: export(prefix + "4", format="rows"),
                    "filtered page": lambda: page(prefix, **filtered),
                    "export without vectors": rows(),
                    "export with vectors": rows("vector"),
                }
                children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
                processes = [os.getpid(), *map(int, children)]
                print("ready", flush=True)
                while line := await anyio.to_thread.run_sync(sys.stdin.readline):
                    task, times = json.loads(line)
                    before, began = spent(processes), time.perf_counter()
                    for _ in range(times):
                        await tasks[task]()
                    took = time.perf_counter() - began
                    print(json.dumps({"wall": took / times, "cpu": (spent(processes) - before) / times}), flush=True)

anyio.run(main, *json.loads(sys.argv[1]))
"""
TASKS = {  # of each task how often a round runs it
    "elasticsearch": {"page": 60, "export, 4 shards": 1, "export, 1 shard": 1, "export as rows, 4 shards": 1},
    "weaviate": {"filtered page": 60, "export without vectors": 1, "export with vectors": 1},
}


class Side:
    """A process that runs the code of one checkout, with one session open."""

    def __init__(self, checkout: Path, *arguments: Any) -> None:
        command = [str(checkout / ".venv/bin/python"), "-c", CHILD, json.dumps(arguments)]
        self._process = subprocess.Popen(command, cwd=checkout, stdin=-1, stdout=-1, text=True)
        if self._answer() != "ready":
            raise SystemExit(f"{checkout} cannot open a session; has `make setup` run there?")

    def run(self, task: str, times: int) -> dict[str, float]:
        """Run a task some times, and return seconds of the clock and of the processor for one."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([task, times]) + "\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._answer())
        return found

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def compare(kind: str, sides: dict[str, Side], names: list[str], rounds: int) -> None:
    """Print for each task the medians of both sides, and the ratio of this checkout to the other one."""
    for task, times in TASKS[kind].items():
        if names and task not in names:
            continue
        found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
        for number in range(-1, rounds):
            for name in [*sides] if number % 2 else [*sides][::-1]:
                took = sides[name].run(task, times)
                found[name] += [took] if number >= 0 else []
        here, other = found.values()
        print(f"{kind}, {task}:")
        for what in ("wall", "cpu"):
            mine, theirs = ([each[what] for each in side] for side in (here, other))
            pairs = sorted(one / two for one, two in zip(mine, theirs, strict=True) if two)
            spread = f"[{pairs[len(pairs) // 4]:.3f} to {pairs[-len(pairs) // 4 - 1]:.3f}]" if pairs else ""
            print(
                f"  {what}: {median(mine) * 1e3:.2f} ms, the other {median(theirs) * 1e3:.2f} ms,"
                f" pairs {median(pairs) if pairs else math.nan:.3f} x {spread}, sums {sum(mine) / sum(theirs):.3f} x"
            )


async def load(record: dict[str, Any], rows: int) -> None:
    """Make the data that both checkouts read."""
    if record["type"] == "elasticsearch":
        with suppress(RuntimeError):  # usually nothing of an earlier run is there
            await remove(record)
        await samples.load(record["url"], prefix=PREFIX)
        for shards in (4, 1):
            bench_export.load(record["url"], f"{PREFIX}{shards}", shards=shards, rows=rows)
        return
    async with client(record) as http:
        await bench_weaviate.load(http)


async def remove(record: dict[str, Any]) -> None:
    """Remove it again."""
    if record["type"] == "weaviate":
        async with client(record) as http:
            await http.delete(f"/v1/schema/{bench_weaviate.NAME}")
        return
    await samples.remove(record["url"], prefix=PREFIX)
    async with aiohttp.ClientSession(record["url"]) as http:
        for shards in (4, 1):
            await http.delete(f"/{PREFIX}{shards}")


def client(record: dict[str, Any]) -> aiohttp.ClientSession:
    """Return an HTTP client of a Weaviate server."""
    key = record["api_keys"].get("admin", "")
    return aiohttp.ClientSession(record["url"], headers={"authorization": f"Bearer {key}"} if key else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, nargs="?")
    parser.add_argument("records", type=Path, nargs="?")
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    if given.records is None:
        print("bench_checkouts.py needs another checkout, and real servers: the file that tests/servers names")
        return
    records = {each["type"]: each for each in reversed(json.loads(given.records.read_text(encoding="utf-8")))}
    for kind, record in records.items():
        if given.tasks and TASKS[kind].keys().isdisjoint(given.tasks):
            continue
        key = record["api_keys"].get("admin", "") if kind == "weaviate" else ""
        values = {"host": record["host"], "port": record["port"]}
        name = bench_weaviate.NAME if kind == "weaviate" else PREFIX
        sides: dict[str, Side] = {}
        try:
            anyio.run(load, record, given.rows)
            sides = {str(each): Side(each, kind, values, key, name) for each in (ROOT, given.checkout.resolve())}
            compare(kind, sides, given.tasks, given.rounds)
        finally:
            for side in sides.values():
                side.close()
            anyio.run(remove, record)


if __name__ == "__main__":
    main()
