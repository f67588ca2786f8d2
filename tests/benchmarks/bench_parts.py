"""How an export in parts scales with Dask workers: python tests/benchmarks/bench_parts.py [WORKERS …]

A stand-in server answers each page of 1,000 documents of 580 bytes after 200 ms, however many are asked for at once,
so that the server's cores do not limit what is measured. It prints, for 1, 2, 4 and 8 local workers, the seconds from
the first part to the last, the part of linear, and the memory of a worker beside a bare Dask worker.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import anyio
import psutil
from aiohttp import web
from compare import introduce

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/support")]

from command_line import Machine
from dragoman import Runtime
from dragoman.dask import on_cluster
from dragoman.dask.clusters import client_of
from dragoman_worker.hook_types import HOOKS
from wheelhouse import Driver, registry

PARTS, PAGES, ROWS, SECONDS = 32, 5, 1_000, 0.2
PAGE = b"".join(json.dumps({"n": at, "text": "x" * 560}).encode().ljust(579) + b"\n" for at in range(ROWS))

SOURCE = """
from dragoman_api import Description, Server, hookimpl
from dragoman_api.columns import Column
from dragoman_api.exports import ExportPart, ExportSplit


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        self.http = http
        return Server("bench")

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=[Column(name="n", type="long", path=("n",))])

    @hookimpl
    async def split_export(self, request):
        return ExportSplit(shares=[str(at) for at in range(request.shares)], snapshot="s")

    @hookimpl
    async def hold_snapshot(self, request):
        return True

    @hookimpl
    async def export_rows(self, request):
        for page in range(PAGES):
            reply = await self.http.request("GET", f"/{request.share}/{page}")
            yield ExportPart(data=reply.body, rows=ROWS)
"""
FORM = [
    {"name": "host", "label": "Host", "default": "127.0.0.1", "required": True},
    {"name": "port", "label": "Port", "kind": "integer", "default": 7700, "required": True},
]


async def answer(request: web.Request) -> web.Response:
    await asyncio.sleep(SECONDS)
    return web.Response(body=PAGE)


def family(process: psutil.Process) -> int:
    """Return the bytes that a process and its children do not share with others."""
    return sum(each.memory_full_info().uss for each in [process, *process.children(recursive=True)])


async def bare() -> int:
    async with client_of("local", workers=1) as client:
        [found] = (await client.run(lambda: psutil.Process().memory_full_info().uss)).values()
        return int(found)


async def measure(home: Path, workers: int, folder: Path) -> tuple[float, int]:
    """Return the seconds of all parts on so many workers, and the memory of the largest one."""
    memory = 0

    async def watch() -> None:
        nonlocal memory
        here = psutil.Process()
        while True:
            for each in here.children():
                try:
                    if "--multiprocessing-fork" in each.cmdline():
                        memory = max(memory, await asyncio.to_thread(family, each))
                except psutil.Error:
                    continue
            await asyncio.sleep(0.5)

    async with Runtime(home, spare=False) as runtime, runtime.open("shop") as session:
        split = await session.split("docs", parts=PARTS)
        runner = on_cluster("local", workers=workers, home=home)
        async with anyio.create_task_group() as tasks:
            async with runner(split, range(PARTS), folder, lambda *_: None) as parts:
                began = time.perf_counter()
                tasks.start_soon(watch)
                rows = sum([part.rows async for _, part in parts])
                seconds = time.perf_counter() - began
            tasks.cancel_scope.cancel()
    assert rows == PARTS * PAGES * ROWS
    return seconds, memory


async def main(numbers: list[int]) -> None:
    server = web.Application()
    server.router.add_get("/{share}/{page}", answer)
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        code = SOURCE.replace("PAGES", str(PAGES)).replace("ROWS", str(ROWS))
        wheel = Driver("bench", code=code, hooks=[hook for hook in HOOKS if f"def {hook}(" in code], form=FORM)
        machine = Machine(folder / "home", inside=False)
        add = f"dragoman connections add shop --type bench --port {port} --yes"
        for words in (("registry", "add", registry(folder / "team", [wheel.write(folder / "wheels")])), (add,)):
            await asyncio.to_thread(machine, *words)
        alone = await bare()
        print(f"a bare Dask worker: {alone / 2**20:.0f} MiB of its own")
        first = 0.0
        for workers in numbers:
            target = folder / f"on-{workers}"
            target.mkdir()
            seconds, memory = await measure(machine.home, workers, target)
            first = first or seconds * workers
            rate = PARTS * PAGES * ROWS / seconds
            print(
                f"{workers} workers: {seconds:6.2f} s, {rate:8,.0f} rows/s, {first / seconds / workers:.2f} of linear, "
                f"a worker {(memory - alone) / 2**20:+.0f} MiB"
            )
    await runner.cleanup()


if __name__ == "__main__":
    introduce()
    asyncio.run(main([int(each) for each in sys.argv[1:]] or [1, 2, 4, 8]))
