"""One command for one page, beside a script with the server's own client: bench_one_shot.py [RECORDS].

RECORDS is the file that `tests/servers` names in DRAGOMAN_LIVE; its first open Elasticsearch and Weaviate are taken.
Without it, Elasticsearch is the sample cluster, in a process of its own. Both sides print the page, from here and over
a link of 50 ms: a process between them delays each direction by 25 ms, and each new connection by a round trip. The
driver is installed and everything is compiled. Processor time is that of a side's processes together.

elasticsearch-py in the server's major version and weaviate-client are fetched into a cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import anyio
from benchmarks.bench_export import CACHE, python_with_client
from benchmarks.compare import introduce

from stranger import serve_sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anyio.abc import ByteReceiveStream, ByteSendStream, SocketStream

ROUNDS = int(os.environ.get("ROUNDS", "15"))
ROWS = 100
LINK = 0.050
NAMES = {"elasticsearch": "dragoman-bench-page", "weaviate": "DragomanBenchPage"}
SCRIPTS = {
    "elasticsearch": """
import sys
from elasticsearch import Elasticsearch
with Elasticsearch(f"http://{sys.argv[1]}:{sys.argv[2]}") as client:
    answer = client.search(index=sys.argv[3], size=int(sys.argv[4]))
for hit in answer["hits"]["hits"]:
    print(hit["_id"], hit["_source"])
""",
    "weaviate": """
import sys, weaviate
host, port, name, rows, grpc = sys.argv[1:]
with weaviate.connect_to_local(host, int(port), int(grpc)) as client:
    for item in client.collections.get(name).query.fetch_objects(limit=int(rows)).objects:
        print(item.uuid, item.properties)
""",
}


async def delay(host: str, port: int) -> None:
    """Forward connections to a server over a link of `LINK`; print the port."""

    async def forward(source: ByteReceiveStream, target: ByteSendStream, extra: float) -> None:
        give, take = anyio.create_memory_object_stream[tuple[float, bytes]](1_000)

        async def arrive() -> None:
            async with take:
                async for at, data in take:
                    await anyio.sleep(max(at - anyio.current_time(), 0))
                    await target.send(data)

        async with anyio.create_task_group() as tasks, give:
            tasks.start_soon(arrive)
            begins = anyio.current_time() + extra
            async for data in source:
                now = max(anyio.current_time(), begins)
                await give.send((now + LINK / 2, data))

    async def serve(near: SocketStream) -> None:
        async with near, await anyio.connect_tcp(host, port) as far:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(forward, far, near, 0.0)
                    await forward(near, far, LINK)
                    tasks.cancel_scope.cancel()
            except* (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                pass

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    print(listener.extra(anyio.abc.SocketAttribute.local_port), flush=True)
    await listener.serve(serve)


@contextmanager
def link(host: str, port: int) -> Iterator[int]:
    """Run `delay` in a process of its own, and yield its port."""
    words = [sys.executable, __file__, "--delay", host, str(port)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def send(url: str, method: str, path: str, body: str, kind: str = "application/json") -> None:
    """Send one request."""
    request = urllib.request.Request(url + path, body.encode() or None, {"Content-Type": kind}, method=method)
    urllib.request.urlopen(request, timeout=60).close()


def load(engine: str, url: str) -> None:
    """Make the object and fill it."""
    name = NAMES[engine]
    rows = [
        {"title": f"the tale of number {number}", "i": number, "n": number / 7, "text": "x" * 400}
        for number in range(ROWS * 10)
    ]
    if engine == "elasticsearch":
        lines = (line for row in rows for line in ('{"index":{}}', json.dumps(row)))
        send(url, "POST", f"/{name}/_bulk?refresh=true", "\n".join(lines) + "\n", "application/x-ndjson")
        return
    types = {"title": "text", "i": "int", "n": "number", "text": "text"}
    properties = [{"name": column, "dataType": [kind]} for column, kind in types.items()]
    send(url, "POST", "/v1/schema", json.dumps({"class": name, "vectorizer": "none", "properties": properties}))
    objects = [{"class": name, "properties": row} for row in rows]
    send(url, "POST", "/v1/batch/objects", json.dumps({"objects": objects}))


def remove(engine: str, url: str) -> None:
    """Delete the object."""
    send(url, "DELETE", f"/{NAMES[engine]}" if engine == "elasticsearch" else f"/v1/schema/{NAMES[engine]}", "")


def python_of(engine: str, version: str) -> str | None:
    """Return an interpreter with the engine's own client, which pip compiled."""
    if engine == "elasticsearch":
        python = python_with_client(version)
    else:
        folder, client = CACHE / "weaviate-client-4", "lib/*/site-packages/weaviate"
        if not list(folder.glob(client)):
            subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, check=False)
            wanted = ["-m", "pip", "install", "-q", "weaviate-client>=4,<5"]
            subprocess.run([folder / "bin/python", *wanted], check=False)
        python = str(folder / "bin/python") if list(folder.glob(client)) else None
    return python


def run(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command; return its seconds, and those of the processor with those of its children."""
    began = time.perf_counter()
    process = subprocess.Popen(
        words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    with process.stderr:
        errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, errors.decode()
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def compare(title: str, sides: dict[str, list[str]], environment: dict[str, str]) -> None:
    """Run both sides in turns; print medians, the best in brackets, and ratios to the last side."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for number in range(ROUNDS + 1):
        for name, words in sides.items():
            seconds = run(words, environment)
            if number:  # the first round warms up
                figures[name].append(seconds)
    print(f"\n{title}")
    *_, (_, last) = figures.items()
    for name, taken in figures.items():
        line = f"  {name:<20}"
        for at, what in enumerate(("wall", "processor")):
            own, other = [pair[at] for pair in taken], [pair[at] for pair in last]
            ratios = f"{median(own) / median(other):.2f} [{min(own) / min(other):.2f}] x"
            line += f"   {what} {median(own) * 1e3:6.0f} [{min(own) * 1e3:5.0f}] ms {ratios}"
        print(line)


def measure(record: dict[str, Any]) -> None:
    """Compare both sides on one server, from here and over the link."""
    engine, host, port = record["type"], record["host"], record["port"]
    name = record.get("object") or NAMES[engine]
    python = python_of(engine, record["version"])
    if python is None:
        print(f"the client of {engine} is absent: it can neither be found nor fetched here")
    with ExitStack() as stack:
        if "object" not in record:
            load(engine, record["url"])
            stack.callback(remove, engine, record["url"])
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment = {**kept, "DRAGOMAN_HOME": f"{folder}/dragoman", "HOME": folder}
        command = [str(Path(sys.executable).with_name("dragoman"))]
        slow = stack.enter_context(link(host, port))
        for connection, own_port in (("near", port), ("far", slow)):
            address = ["--host", host, "--port", str(own_port), "--auth-method", "none"]
            run([*command, "connections", "add", connection, "--type", engine, *address, "--yes"], environment)
            sides = {"dragoman page": [*command, "page", connection, name, "--limit", str(ROWS)]}
            if python is not None:
                grpc = [str(record["grpc_port"])] if "grpc_port" in record else []
                words = [host, str(own_port), name, str(ROWS), *grpc]
                sides["the server's client"] = [python, "-c", SCRIPTS[engine], *words]
            where = f"over a link of {LINK * 1e3:.0f} ms (target: 450 ms)"
            if connection == "near":
                where = "from here (targets: wall 1.15 x, processor 1.6 x)"
            compare(f"A page of {ROWS} rows of {engine} {record['version']}, {where}", sides, environment)


def main(records: str | None) -> None:
    introduce()
    if records is None:
        with serve_sample() as port:
            measure(
                {"type": "elasticsearch", "version": "8.19.21", "host": "127.0.0.1", "port": port, "object": "orders"}
            )
        return
    servers = [record for record in json.loads(Path(records).read_text()) if not record.get("security")]
    for engine in NAMES:
        for record in [record for record in servers if record["type"] == engine][:1]:
            measure(record)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--delay"]:
        anyio.run(delay, sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else None)
