"""What a connection costs where a runtime lives on, spawned and forked: bench_connections.py [COUNT …]

Both ways open connections to the sample cluster in turns, each time in a host of its own. Processor time is that of all
processes which the host started, to their end. Memory is proportional (shared pages are divided among their users), and
takes root to read. Both include the fork server, or the warm spare. A last table shows how forked connections grow.
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
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import anyio
from benchmarks.compare import introduce

from dragoman import Runtime, SavedConnection
from stranger import serve_sample

WAYS = ("spawn", "fork")
ROUNDS = 3
STEPS = (1, 10, 25, 50, 100)
"""Numbers of open connections at which growth is measured."""


def memory_of(*processes: str) -> float:
    """Return the proportional memory of processes together, in MB."""
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() for pid in processes]
    return sum(int(line.split()[1]) for lines in rollups for line in lines if line.startswith("Pss:")) / 1024


def children() -> list[str]:
    """Return the numbers of this process's children."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def processor_of(*processes: str) -> float:
    """Return the milliseconds that processes of one thread have spent on a processor together."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in processes) / 1e6


async def host(way: str, count: int, home: Path) -> None:
    """Open connections, read a page of each, and print what that cost."""
    growth = []
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(Runtime(home))
        await anyio.sleep(1)  # until the spare or the server is warm
        began, own = time.perf_counter(), time.process_time()
        seconds = 0.0
        for number in range(1, count + 1):
            session = await stack.enter_async_context(runtime.open("shop"))
            await session.rows("orders").page(limit=10)
            if number in STEPS:
                pause = time.perf_counter()
                growth.append({
                    "open": number, "children": processor_of(*children()), "host": (time.process_time() - own) * 1e3,
                    "MB": memory_of(*children()), "host MB": memory_of("self"),
                    "descriptors": len(list(Path("/proc/self/fd").iterdir())),
                })  # fmt: skip
                seconds -= time.perf_counter() - pause
        seconds += time.perf_counter() - began
        memory = memory_of(*children())
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = usage.ru_utime + usage.ru_stime
    figures = {"ms": processor * 1e3 / count, "MB": memory / count, "wall": seconds * 1e3 / count}
    print(json.dumps({**figures, "growth": growth}))


def measured(way: str, count: int, home: Path) -> dict[str, Any]:
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
        print("\nForked connections, one after another: all together, with the fork server, until then")
        print("   open   processor, ms: drivers    host   memory, MB: drivers    host   descriptors of the host")
        for step in rounds[-1]["fork"]["growth"]:
            processor = f"{step['children']:>22.0f}{step['host']:>8.0f}"
            print(f"{step['open']:>7}{processor}{step['MB']:>22.1f}{step['host MB']:>8.1f}{step['descriptors']:>10}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--host"]:
        anyio.run(host, sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        main(list(map(int, sys.argv[1:])) or [20, 100])
