"""What a driver's process does on Windows, told as JSON; `test_on_windows.py` starts it with the Python it is given.

`workers.py FOLDER` tells what workers do whose driver it writes there; `workers.py FOLDER hang` starts one that hangs,
prints its number and waits to be killed.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

from dragoman.sandbox import Launch, Worker, measured_level
from dragoman_api.columns import ObjectsRequest
from dragoman_api.errors import DragomanError
from dragoman_api.exports import ExportRequest

DRIVER = """
import asyncio, os, sys, time
from dragoman_api.columns import Description
from dragoman_api.exports import ExportPart
from dragoman_api.hookspecs import hookimpl

class Driver:
    @hookimpl
    async def describe_object(self, name):
        host, port = name.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        said = await reader.readline()
        writer.close()
        return Description(object=name, columns=[], structure=said.decode())

    @hookimpl
    async def export_rows(self, request):
        for rows in (1, 2):
            yield ExportPart(data=b"x" * 3_000_000, rows=rows)

    @hookimpl
    async def list_objects(self, request):
        print("hanging", flush=True)
        time.sleep(600)

    @hookimpl
    async def ping(self):
        sys.stderr.write("last words\\n")
        os._exit(7)
"""
SYNCHRONIZE, TIMED_OUT = 0x100000, 0x102


async def attempt(launch: Launch) -> str:
    try:
        async with Worker(launch):
            return "started"
    except DragomanError as error:
        return f"{error.code}: {error.message}"


async def tell(launch: Launch) -> dict[str, Any]:
    told: dict[str, Any] = {"measured": str(await anyio.to_thread.run_sync(measured_level))}
    lines: list[str] = []
    denied: list[str] = []
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:

        async def greet(stream: Any) -> None:
            async with stream:
                await stream.send(b"hello\n")

        tasks.start_soon(listener.serve, greet)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        launch_here = Launch(driver=launch.driver, trees=launch.trees, trusted=True, approved=(("localhost", port),))
        note = lambda host, port: denied.append(f"{host}:{port}")  # noqa: E731
        async with Worker(launch_here, on_log=lines.append, on_denied=note) as worker:
            told["level"] = str(worker.report)
            told["said"] = (await worker.call("describe_object", f"localhost:{port}", deadline=30)).structure
            request = ExportRequest(object="o")
            told["parts"] = [(part.rows, len(part.data)) async for part in worker.export(request, deadline=30)]
            try:
                await worker.call("describe_object", "example.org:1", deadline=30)
            except DragomanError as error:
                told["refused"] = error.message
            try:
                await worker.call("ping", deadline=30)
            except DragomanError as error:
                told["crash"] = error.message
        tasks.cancel_scope.cancel()
    told |= {"lines": lines, "denied": denied}
    trusted = {"driver": launch.driver, "trees": launch.trees, "trusted": True}
    told["untrusted"] = await attempt(Launch(driver=launch.driver, trees=launch.trees))
    told["require"] = await attempt(Launch(**trusted, policy="require"))
    told["off"] = await attempt(Launch(**trusted, policy="off"))
    return told


async def hang(launch: Launch) -> None:
    async with Worker(launch) as worker:
        print(worker._child.process.pid, flush=True)
        await worker.call("list_objects", ObjectsRequest())


def outlives(folder: str) -> bool:
    """Kill a host whose driver hangs, and tell whether that driver goes on."""
    kernel32 = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel32.OpenProcess.restype = ctypes.c_void_p
    with subprocess.Popen([sys.executable, __file__, folder, "hang"], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        driver = ctypes.c_void_p(kernel32.OpenProcess(SYNCHRONIZE, 0, int(host.stdout.readline())))
        assert kernel32.WaitForSingleObject(driver, 1_000) == TIMED_OUT, "it hangs, and so lives"
        host.kill()
    return bool(kernel32.WaitForSingleObject(driver, 10_000) == TIMED_OUT)


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "tiny.py").write_text(DRIVER, encoding="utf-8")
    launch = Launch(driver="tiny:Driver", trees=(folder,), trusted=True)
    if sys.argv[2:]:
        anyio.run(hang, launch)
    else:
        print(json.dumps(anyio.run(tell, launch) | {"outlives": outlives(str(folder))}))


if __name__ == "__main__":
    main()
