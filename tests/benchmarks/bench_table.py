"""A table through a session, beside exports to files and what else makes a DataFrame of an index: bench_table.py URL.

Needs a real server without security; without a URL nothing is measured. The documents are those of bench_export.py;
their `tags` are arrays, which no mapping declares, so that every row has a value that does not fit. With `--fitting`
they are left out. Each side runs in a process of its own, in turn; printed are medians, and of memory the greatest.
elasticsearch-py, pandas and eland in the server's major version are fetched into a cache.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))

from bench_export import CACHE, Figures, call, load, run, used

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman import Session

INDEX = "dragoman-bench-table"
COLUMNS = ("_id", "created", "customer.active", "customer.city", "id", "price", "text", "title")
"""All columns but `_index` and `tags`."""

SLOW = ("helpers.scan into pandas", "eland to_pandas")


async def through_session(url: str, folder: Path, act: Callable[[Session], Awaitable[int]]) -> Figures:
    """Open a session as anyone does, and measure one call with both processes."""
    import pandas as pd  # noqa: F401 - pyarrow imports it with its first array, and the other sides do beforehand
    import pyarrow as pa  # noqa: F401

    from dragoman import Runtime, SavedConnection

    where = urlsplit(url)
    async with Runtime(folder / "home", spare=False) as runtime:
        values = {"host": where.hostname, "port": where.port}
        runtime.connections.save(SavedConnection(name="bench", type="elasticsearch", values=values), replace=True)
        async with runtime.open("bench") as session:
            await session.describe(INDEX)
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            processes = [os.getpid(), *map(int, children)]
            before = [used(process)[0] for process in processes]
            began = time.perf_counter()
            rows = await act(session)
            seconds = time.perf_counter() - began
            after = [used(process) for process in processes]
    cpu = [now[0] - then for now, then in zip(after, before, strict=True)]
    return {"seconds": seconds, "rows": rows, "cpu": sum(cpu), "memory": sum(now[1] for now in after)}


async def table(url: str, folder: Path, columns: tuple[str, ...] | None) -> Figures:
    async def act(session: Session) -> int:
        return (await session.rows(INDEX, columns=columns).table()).num_rows

    return await through_session(url, folder, act)


def export(ending: str) -> Callable[[str, Path, tuple[str, ...] | None], Awaitable[Figures]]:
    async def side(url: str, folder: Path, columns: tuple[str, ...] | None) -> Figures:
        async def act(session: Session) -> int:
            named = columns if ending != "ndjson" else None
            return (await session.rows(INDEX, columns=named).export(to=folder / f"documents.{ending}")).rows

        return await through_session(url, folder, act)

    return side


async def scan(url: str, _: Path, columns: tuple[str, ...] | None) -> Figures:
    import pandas as pd
    from elasticsearch import Elasticsearch, helpers

    began, cpu = time.perf_counter(), time.process_time()
    with Elasticsearch(url) as client:
        frame = pd.DataFrame([hit["_source"] for hit in helpers.scan(client, index=INDEX, size=5_000)])
    return {"seconds": time.perf_counter() - began, "rows": len(frame), "cpu": time.process_time() - cpu}


async def eland(url: str, _: Path, columns: tuple[str, ...] | None) -> Figures:
    import eland as ed
    from elasticsearch import Elasticsearch

    began, cpu = time.perf_counter(), time.process_time()
    with Elasticsearch(url, request_timeout=120) as client:
        frame = ed.DataFrame(client, INDEX).to_pandas()
    return {"seconds": time.perf_counter() - began, "rows": len(frame), "cpu": time.process_time() - cpu}


SIDES = {
    "Session.table": table,
    "Session.export to NDJSON": export("ndjson"),
    "Session.export to Parquet": export("parquet"),
    "Session.export to Arrow": export("arrow"),
    SLOW[0]: scan,
    SLOW[1]: eland,
}


def python_with_clients(major: int) -> str | None:
    """Return an interpreter that has elasticsearch-py, pandas and eland for the server's major version."""
    folder = CACHE / f"tables-py-{major}"
    client = "lib/*/site-packages/eland"
    if not list(folder.glob(client)):
        subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, check=False)
        wanted = [f"{name}>={major},<{major + 1}" for name in ("elasticsearch", "eland")]
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "pandas", *wanted], check=False)
    return str(folder / "bin/python") if list(folder.glob(client)) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--fitting", action="store_true", help="read only columns whose values all fit")
    parser.add_argument("--no-eland", action="store_true", help="leave out eland, which takes minutes")
    parser.add_argument("--side", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.url is None:
        print("bench_table.py needs the URL of a real server: python tests/servers start elasticsearch-8.19.21-plain")
        return
    url, columns = given.url.rstrip("/"), COLUMNS if given.fitting else None
    if given.side:
        import asyncio

        name, folder = given.side
        print(json.dumps(asyncio.run(SIDES[name](url, Path(folder), columns))))
        return
    version = call("GET", url)["version"]["number"]
    client = python_with_clients(int(version.partition(".")[0]))
    if client is None:
        print("elasticsearch-py and eland are absent: they can neither be found nor fetched here")
    left_out = {*(SLOW if client is None else ()), *(SLOW[1:] if given.no_eland else ())}
    found: dict[str, list[Figures]] = {name: [] for name in SIDES if name not in left_out}
    with contextlib.suppress(OSError):
        call("DELETE", f"{url}/{INDEX}")
    try:
        load(url, INDEX, shards=given.shards, rows=given.rows)
        with tempfile.TemporaryDirectory() as folder:
            for number in range(given.rounds + 1):
                for name, runs in found.items():
                    if name in SLOW and number != 1:
                        continue
                    said = Path(folder) / "said"
                    python = str(client) if name in SLOW else sys.executable
                    words = [python, __file__, url, "--side", name, folder, *(["--fitting"] * given.fitting)]
                    figures = run(words, Path(folder), documents=said)
                    figures |= json.loads(said.read_bytes().splitlines()[-1])
                    assert figures["rows"] == given.rows, f"{name} lost documents"
                    if number:
                        runs.append(figures)
    finally:
        call("DELETE", f"{url}/{INDEX}")
    middle = {name: median(each["seconds"] for each in runs) for name, runs in found.items()}
    print(f"\n{given.rows:,} documents, {given.shards} shards, Elasticsearch {version}, load {os.getloadavg()[0]:.0f}")
    print(f"  {'':28}  seconds   thousand/s  rate of Session.table is  CPU s per million  memory")
    for name, runs in found.items():
        cpu = median(each["cpu"] for each in runs) * 1e6 / given.rows
        memory = max(each["memory"] for each in runs)
        ratio = middle[name] / middle["Session.table"]
        rate = given.rows / middle[name] / 1e3
        print(f"  {name:28} {middle[name]:8.2f} {rate:12.0f} {ratio:23.2f} x {cpu:18.2f} {memory:7.0f} MB")
    parquet = middle["Session.export to NDJSON"] / middle["Session.export to Parquet"]
    print(f"  Parquet is exported at {parquet:.2f} x the rate of NDJSON")


if __name__ == "__main__":
    main()
