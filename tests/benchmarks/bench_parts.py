"""How an export in parts scales with Dask workers: python tests/benchmarks/bench_parts.py [WORKERS … | URL]

A stand-in server, in a process of its own, answers each page of 1,000 documents of 580 bytes after 200 ms, however many
are asked for at once, so that the server's cores do not limit what is measured. It prints, for 1, 2, 4 and 8 local
workers, the seconds from the first part to the last, the part of linear, the processor time of the workers for a part,
and the memory of a worker beside a bare Dask worker.

With the URL of a real Elasticsearch without security, it exports 200,000 documents there: as a whole in one process,
and in 16 parts by one and by two workers, in turn; printed are medians of three rounds.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import psutil
from bench_export import call, load
from compare import introduce

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/support")]

from dragoman import Runtime, SavedConnection
from dragoman_dask import on_cluster
from dragoman_dask.clusters import client_of
from dragoman_dask.exports import parts_target
from paged_server import PagedServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from multiprocessing.connection import Connection

    from dragoman_dask.target import PartsTarget

INDEX = "dragoman-bench-parts"
PARTS, PAGES, ROWS, SECONDS = 32, 5, 1_000, 0.2


def serve(told: Connection) -> None:
    """Serve until the process ends, and tell the port."""

    async def forever() -> None:
        server = PagedServer(PAGES, ROWS, SECONDS)
        async with server.serve():
            told.send(server.port)
            await anyio.sleep_forever()

    asyncio.run(forever())


@asynccontextmanager
async def claimed(folder: Path) -> AsyncIterator[PartsTarget]:
    """Claim a folder for an export, as its coordinator does; workers look for that."""
    target = parts_target(folder)
    await asyncio.to_thread(lambda: target.open(resume=False))
    try:
        yield target
    finally:
        await asyncio.to_thread(target.leave)


def family(process: psutil.Process) -> tuple[int, float]:
    """Return the bytes that a process and its children do not share with others, and their processor seconds."""
    every = [process, *process.children(recursive=True)]
    times = [each.cpu_times() for each in every]
    return sum(each.memory_full_info().uss for each in every), sum(each.user + each.system for each in times)


async def bare() -> int:
    async with client_of("local", workers=1) as client:
        [found] = (await client.run(lambda: psutil.Process().memory_full_info().uss)).values()
        return int(found)


async def measure(home: Path, workers: int, folder: Path) -> tuple[float, float, int]:
    """Return the seconds of all parts on so many workers, their processor seconds, and the memory of the largest."""
    memory = 0
    here = psutil.Process()

    def look() -> float:
        """Return the processor seconds of all workers, and note the memory of the largest."""
        nonlocal memory
        used = 0.0
        for each in here.children():
            try:
                if "--multiprocessing-fork" in each.cmdline() and each.pid not in others:
                    size, spent = family(each)
                    memory, used = max(memory, size), used + spent
            except psutil.Error:
                continue
        return used

    async def watch() -> None:
        while True:
            await asyncio.to_thread(look)
            await asyncio.sleep(2)

    others = {each.pid for each in here.children()}
    async with Runtime(home, spare=False) as runtime, runtime.open("shop") as session:
        split = await session.rows("docs").split(parts=PARTS)
        runner = on_cluster("local", workers=workers, home=home)
        async with anyio.create_task_group() as tasks:
            async with claimed(folder) as target, runner(split, range(PARTS), target, lambda *_: None) as parts:
                before, began = await asyncio.to_thread(look), time.perf_counter()
                tasks.start_soon(watch)
                rows = sum([part.rows async for _, part in parts])
                seconds = time.perf_counter() - began
                spent = await asyncio.to_thread(look) - before
            tasks.cancel_scope.cancel()
    assert rows == PARTS * PAGES * ROWS
    return seconds, spent, memory


async def on_a_server(url: str) -> None:
    """Compare one process with workers on a real server."""
    where, rows, shards = urlsplit(url), 200_000, 4
    await asyncio.to_thread(partial(load, url, INDEX, shards=shards, rows=rows))
    times: dict[str, list[float]] = {}
    try:
        with tempfile.TemporaryDirectory() as name:
            home = Path(name) / "home"
            async with Runtime(home, spare=False) as runtime:
                values = {"host": where.hostname, "port": where.port}
                runtime.connections.save(SavedConnection(name="shop", type="elasticsearch", values=values))
                async with runtime.open("shop") as session:
                    for turn in range(3):
                        began = time.perf_counter()
                        await session.rows(INDEX).export(to=Path(name) / f"whole-{turn}.ndjson")
                        times.setdefault("one process", []).append(time.perf_counter() - began)
                        for workers in (1, 2):
                            target = Path(name) / f"{turn}-{workers}"
                            target.mkdir()
                            split = await session.rows(INDEX).split(parts=16)
                            runner = on_cluster("local", workers=workers, home=home)
                            async with (
                                claimed(target) as place,
                                runner(split, range(16), place, lambda *_: None) as parts,
                            ):
                                began = time.perf_counter()
                                assert sum([part.rows async for _, part in parts]) == rows
                                seconds = time.perf_counter() - began
                            times.setdefault(f"{workers} workers", []).append(seconds)
                            await session.rows(split.request.object).hold(split, seconds=0)
    finally:
        await asyncio.to_thread(call, "DELETE", f"{url}/{INDEX}")
    first = median(times["one process"])
    for side, seconds in times.items():
        middle = median(seconds)
        print(f"{side}: {middle:6.2f} s, {rows / middle:8,.0f} rows/s, {first / middle:.2f} of one process")


async def main(numbers: list[int]) -> None:
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    serving = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    serving.start()
    try:
        with tempfile.TemporaryDirectory() as name:
            server = PagedServer(PAGES, ROWS, SECONDS, port=await asyncio.to_thread(ours.recv))
            machine = await asyncio.to_thread(server.machine, Path(name))
            alone = await bare()
            print(f"a bare Dask worker: {alone / 2**20:.0f} MiB of its own")
            first = 0.0
            for workers in numbers:
                target = Path(name) / f"on-{workers}"
                target.mkdir()
                seconds, spent, memory = await measure(machine.home, workers, target)
                first = first or seconds * workers
                rate = PARTS * PAGES * ROWS / seconds
                print(
                    f"{workers} workers: {seconds:6.2f} s, {rate:8,.0f} rows/s, {first / seconds / workers:.2f} of "
                    f"linear, {spent / PARTS:.2f} s of a processor a part, a worker {(memory - alone) / 2**20:+.0f} MiB"
                    f", load {os.getloadavg()[0]:.0f}",
                    flush=True,
                )
    finally:
        serving.terminate()


if __name__ == "__main__":
    introduce()
    if sys.argv[1:] and "://" in sys.argv[1]:
        asyncio.run(on_a_server(sys.argv[1]))
    else:
        asyncio.run(main([int(each) for each in sys.argv[1:]] or [1, 2, 4, 8]))
