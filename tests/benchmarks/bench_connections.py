"""What a connection costs where a runtime lives on, spawned and forked: bench_connections.py [COUNT …]

Both ways open connections to the sample cluster in turns, each time in a host of its own. Processor time is that of all
processes which the host started, to their end. Memory is proportional (shared pages are divided among their users), and
takes root to read. Both include the fork server, or the warm spare.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import anyio
from benchmarks.compare import introduce

from dragoman import Runtime, SavedConnection
from stranger import serve_sample

WAYS = ("spawn", "fork")
ROUNDS = 3


def memory_of_children() -> float:
    """Return the proportional memory of this process's children, in MB."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() for pid in children]
    return sum(int(line.split()[1]) for lines in rollups for line in lines if line.startswith("Pss:")) / 1024


async def host(way: str, count: int, home: Path) -> None:
    """Open connections, read a page of each, and print what that cost."""
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(Runtime(home, spare=way != "cold"))
        await anyio.sleep(1)  # until the spare or the server is warm
        began = time.perf_counter()
        for _ in range(count):
            session = await stack.enter_async_context(runtime.open("shop"))
            await session.rows("orders").page(limit=10)
        seconds = time.perf_counter() - began
        memory = memory_of_children()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = usage.ru_utime + usage.ru_stime
    print(json.dumps({"ms": processor * 1e3 / count, "MB": memory / count, "wall": seconds * 1e3 / count}))


def measured(way: str, count: int, home: Path) -> dict[str, float]:
    """Do so in a process of its own."""
    (home / "config/config.toml").write_text(f'processes = "{way}"\n')
    words = [sys.executable, __file__, "--host", way, str(count), str(home)]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main(counts: list[int]) -> None:
    introduce()
    with serve_sample() as port, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        Runtime(home).connections.save(SavedConnection(name="shop", type="elasticsearch", values={"port": port}))
        measured("spawn", 1, home)  # installs the driver
        for count in counts:
            rounds = [{way: measured(way, count, home) for way in WAYS} for _ in range(ROUNDS)]
            print(f"\nOne of {count} connections in one runtime, with a page of 10 rows   (targets: 40 ms, 9 MB)")
            for unit, title in (("ms", "processor time, ms"), ("MB", "memory, MB"), ("wall", "from open to page, ms")):
                spawn, fork = (median(turn[way][unit] for turn in rounds) for way in WAYS)
                print(f"  {title:<24} spawned {spawn:7.1f}   forked {fork:7.1f}   {fork / spawn:.2f} x")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--host"]:
        anyio.run(host, sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        main(list(map(int, sys.argv[1:])) or [20, 100])
