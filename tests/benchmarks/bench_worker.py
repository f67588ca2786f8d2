"""What a process of its own costs a driver: python tests/benchmarks/bench_worker.py

Prints medians, and the best in brackets, of one run: a confined worker beside an unconfined one and beside the same
driver in this process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import anyio
from compare import introduce

from dragoman.sandbox.bare_process import Spare
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.host_imports import find_host_imports
from dragoman.sandbox.launch import Launch
from dragoman_api.connections import Profile
from dragoman_api.exports import ExportRequest
from dragoman_api.grid import PageRequest
from dragoman_api.http import Http

SOURCE = """
import json, time
from dragoman_api.columns import Column, Description
from dragoman_api.connections import Health, Server
from dragoman_api.exports import ExportPart
from dragoman_api.grid import Page
from dragoman_api.hookspecs import hookimpl

COLUMNS = [Column(name=f"c{at}", type="keyword") for at in range(20)]
CELLS = [[at, f"name {at}", at * 1.5, None, True] * 4 for at in range(1000)]

class Driver:
    @hookimpl
    async def connect(self, profile, http):
        self.http = http
        return Server("bench")

    @hookimpl
    async def describe_object(self, name):
        path, _, times = name.partition(" ")
        seconds = []
        for _ in range(int(times)):
            began = time.perf_counter()
            await self.http.request("GET", path)
            seconds.append(time.perf_counter() - began)
        return Description(object=path, columns=[], structure=json.dumps(seconds))

    @hookimpl
    async def ping(self):
        return Health(ok=True)

    @hookimpl
    async def fetch_page(self, request):
        return Page(columns=COLUMNS, cells=CELLS)

    @hookimpl
    async def export_rows(self, request):
        size, parts = (65536, 100) if request.object == "bytes" else (1000, 200)
        part = ExportPart(data=b'{"n":12345678}\\\\n' * size, rows=size)
        for _ in range(parts):
            yield part
"""

SERVER = """
import asyncio

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            body = bytes(1_000_000) if b" /large " in head else b"hello"
            more = b"Connection: close\\r\\n" if b" /close " in head else b""
            writer.write(b"HTTP/1.1 200 OK\\r\\n%bContent-Length: %d\\r\\n\\r\\n" % (more, len(body)) + body)
            await writer.drain()
            if more:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""

Act = Callable[[], Awaitable[Any]]


async def timed(act: Act, times: int) -> list[float]:
    """Return the seconds of some runs of one act."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        seconds.append(time.perf_counter() - began)
    return seconds


def show(what: str, runs: list[float], target: str = "", **against: list[float]) -> None:
    middle = median(runs)
    print(f"{what:32} {middle * 1e3:8.3f} ms [{min(runs) * 1e3:8.3f}] {target}")
    for name, others in against.items():
        other = median(others)
        print(f"  {name:30} {other * 1e3:8.3f} ms [{min(others) * 1e3:8.3f}] x {middle / other:.2f}")


def starting(launch: Launch, spare: Spare | None = None) -> Act:
    async def start() -> None:
        began = time.perf_counter()
        async with Worker(launch, spare=spare) as worker:
            await worker.call("ping")
            last.append(time.perf_counter() - began)

    last: list[float] = []
    start.last = last  # type: ignore[attr-defined]
    return start


async def starts(launch: Launch, times: int, spare: Spare | None = None) -> list[float]:
    """Return the seconds from nothing, or from a warm spare, to the first answer."""
    start = starting(launch, spare)
    for _ in range(times):
        if spare is not None:
            spare.fill()
            await anyio.sleep(2)  # it is warm long before, even on a busy machine
        await start()
    return start.last  # type: ignore[attr-defined,no-any-return]


async def main() -> None:
    introduce()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        (tree / "bench_driver.py").write_text(SOURCE)
        sys.path.append(folder)
        inside = import_module("bench_driver").Driver()
        confined = Launch(driver="bench_driver:Driver", trees=(tree,))
        plain = Launch(driver="bench_driver:Driver", trees=(tree,), policy="off")

        async def bare() -> None:
            code = "import aiohttp, anyio, msgspec, pluggy"
            await anyio.to_thread.run_sync(lambda: subprocess.run([sys.executable, "-B", "-c", code], check=True))

        host_imports = find_host_imports()
        await starts(confined, 1)
        show(
            "cold start to the first answer", await starts(confined, 9), "(<= 180 ms)",
            unconfined=await starts(plain, 9), imports=await timed(bare, 9),
        )  # fmt: skip
        with Spare(host_imports) as spare:
            show(
                "warm spare to the first answer", await starts(confined, 9, spare), "(<= 10 ms)",
                unconfined=await starts(plain, 9, spare),
            )  # fmt: skip
        async with Worker(confined) as worker, Worker(plain) as free:
            print(f"sandbox {worker.report}")
            page = PageRequest(object="o")
            for what, target, times, hook, arguments in (
                ("empty call", "(<= 0.15 ms)", 5_000, "ping", ()),
                ("page of 1,000 x 20", "(<= 1 ms)", 500, "fetch_page", (page,)),
            ):
                ways: list[Act] = [
                    lambda hook=hook, arguments=arguments, at=at: at.call(hook, *arguments)  # type: ignore[misc]
                    for at in (worker, free)
                ]
                ways.append(lambda hook=hook, arguments=arguments: getattr(inside, hook)(*arguments))  # type: ignore[misc]
                one, two, three = [await timed(way, times) for way in ways]
                show(what, one, target, unconfined=two, in_process=three)
            for what, target, name in (
                ("stream of 200,000 rows, by 1,000", "(<= 200 ms)", "rows"),
                ("stream of 93 MiB, by 0.9 MiB", "", "bytes"),
            ):
                streams = [
                    lambda at=at, name=name: drained(at.export(ExportRequest(object=name), deadline=60))  # type: ignore[misc]
                    for at in (worker, free)
                ]
                streams.append(lambda name=name: drained(inside.export_rows(ExportRequest(object=name))))  # type: ignore[misc]
                one, two, three = [await timed(way, 5) for way in streams]
                show(what, one, target, unconfined=two, in_process=three)
        await requests(confined, plain, inside)


async def drained(parts: AsyncIterator[Any]) -> None:
    async for _ in parts:
        pass


async def requests(confined: Launch, plain: Launch, inside: Any) -> None:
    """Compare HTTP through the broker with a client that connects by itself."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(await anyio.to_thread.run_sync(server.stdout.readline))
        profile = Profile(name="bench", type="bench", host="127.0.0.1", port=port)
        near = ((profile.host, port),)
        async with (
            Worker(replace(confined, approved=near, profile=profile)) as worker,
            Worker(replace(plain, approved=near, profile=profile)) as free,
            Http(profile) as http,
        ):
            for one in (worker, free):
                await one.call("connect")
            await inside.connect(profile, http)
            for what, name in (
                ("small HTTP answer, brokered", "/small 2000"), ("1 MB HTTP answer, brokered", "/large 300"),
                ("new connection, brokered", "/close 300"),
            ):  # fmt: skip
                found = [json.loads((await at.call("describe_object", name)).structure) for at in (worker, free)]
                direct = json.loads((await inside.describe_object(name)).structure)
                show(what, found[0], unconfined=found[1], direct=direct)
        server.kill()


if __name__ == "__main__":
    anyio.run(main)
