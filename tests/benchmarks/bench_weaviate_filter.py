"""Filtered pages of Weaviate beside the naive request, which loses rows: bench_weaviate_filter.py RECORDS.

RECORDS is the file that `tests/servers` names in DRAGOMAN_LIVE; its first Weaviate is taken. The same client sends in
turn: the clause alone, unsorted; what the driver sends for the page; the clause negated twice, in the order of ids,
which is right too; and the first rows of all, the least that a request for so many rows can cost. The pages are
measured just after loading, and again once the server has written the index to the disk, a minute after the last
change. At the end, each filter is exported. ROWS, ROUNDS and SHARDS (`1,3`) change what is measured.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import UUID

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support"), str(ROOT / "plugins/weaviate")]

import aiohttp
import anyio
import msgspec
from benchmarks.compare import introduce, measure_async, report
from drivers.rigging import profile_of

from dragoman_api import ExportRequest, Filter, FilterRequest, PageRequest
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.exports import ExportForm
from dragoman_api.testing.target import opened
from dragoman_weaviate.driver import Driver

ROWS = int(os.environ.get("ROWS", "100000"))
ROUNDS = int(os.environ.get("ROUNDS", "15"))
SETTLES = 75  # seconds until the server has written its index to the disk
LIMIT = 100
WALK = int(os.environ.get("WALK", "30"))  # pages that are compared with one long page
SHARDS = [int(each) for each in os.environ.get("SHARDS", "1,3").split(",")]
FILTERS = {
    "n > 100000, 9 rows of 10": Filter("n", ">", 100_000),
    "n < 900000, 9 rows of 10": Filter("n", "<", 900_000),
    "ranged < 900000, 9 rows of 10": Filter("ranged", "<", 900_000),
    "day > 2001-06, 9 rows of 10": Filter("day", ">", "2001-06-01T00:00:00Z"),
    "kind = k1, 2 rows of 10": Filter("kind", "=", "k1"),
    "kind = rare, 1 row of 1,000": Filter("kind", "=", "rare"),
}
NAIVE, OURS = "the clause alone: may lose rows", "the driver's requests"
BY_ID, LEAST = "negated twice, by id", "the first rows of all"


def named(shards: int) -> str:
    return f"DragomanFilter{shards}"


async def load(http: aiohttp.ClientSession, shards: int) -> None:
    """Make a collection and fill it: integers of many values without and with an index for ranges, days, six texts."""
    definition = {
        "class": named(shards),
        "vectorizer": "none",
        "vectorIndexType": "flat",
        "shardingConfig": {"desiredCount": shards},
        "properties": [
            {"name": "n", "dataType": ["int"]},
            {"name": "ranged", "dataType": ["int"], "indexRangeFilters": True},
            {"name": "day", "dataType": ["date"]},
            {"name": "kind", "dataType": ["text"], "tokenization": "field"},
        ],
    }
    await http.delete(f"/v1/schema/{named(shards)}")
    async with http.post("/v1/schema", json=definition) as reply:
        reply.raise_for_status()
    chance = random.Random(7)
    for start in range(0, ROWS, 2_000):
        items = []
        for _ in range(min(2_000, ROWS - start)):
            number = chance.randrange(1_000_000)
            day = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=number * 8)  # 15 years
            kind = "rare" if number % 1_000 == 0 else f"k{chance.randrange(5)}"
            values = {"n": number, "ranged": number, "day": day.isoformat(), "kind": kind}
            items.append({"class": named(shards), "id": str(UUID(int=chance.getrandbits(128))), "properties": values})
        async with http.post("/v1/batch/objects", json={"objects": items}) as reply:
            reply.raise_for_status()


def processor(pid: int) -> float:
    """Return the seconds of the processor that a process has used, which other work on the machine does not change."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


class Bench:
    """A connected driver with its log, and a client that sends the same texts."""

    def __init__(self, http: aiohttp.ClientSession, driver: Driver, log: list, pid: int) -> None:
        self.http, self.driver, self.log, self.pid = http, driver, log, pid

    async def texts(self, shards: int, row: Filter, offset: int, limit: int = LIMIT) -> dict[str, list[str]]:
        """Return the requests for one page."""
        name = named(shards)
        await self.driver.describe_object(name)
        compiled = await self.driver.compile_filter(FilterRequest(object=name, rows=[row]))
        request = PageRequest(object=name, filter=compiled, offset=offset, limit=limit, total=False)
        await self.driver.fetch_page(msgspec.structs.replace(request, total=True))  # a grid counts what matches, once
        mark = len(self.log)
        await self.driver.fetch_page(request)
        ours = [json.loads(each.body)["query"] for each in self.log[mark:] if "/graphql" in each.path]
        selection = re.search(r"\)(\{.*?_additional\{[^}]*\}\}\}).*$", ours[-1])[1] + "}"
        clause = compiled.rows[0].clause
        by_id = f'{{operator:Not,operands:[{{operator:Not,operands:[{clause}]}}]}},sort:[{{path:["_id"],order:asc}}]'
        start = f"{{Get{{{name}(limit:{limit},offset:{offset}"
        return {
            NAIVE: [f"{start},where:{clause}){selection}"],
            OURS: ours,
            BY_ID: [f"{start},where:{by_id}){selection}"],
            LEAST: [f"{start}){selection}"],
        }

    async def ids(self, texts: list[str]) -> list[str]:
        """Send requests one after another, and return the ids in the answer to the last."""
        for text in texts:
            rows = await self._rows(text)
        return rows

    async def _rows(self, text: str) -> list[str]:
        async with self.http.post("/v1/graphql", json={"query": text}) as reply:
            answer = await reply.json()
        assert not answer.get("errors"), answer
        [rows] = answer["data"]["Get"].values()
        return [each["_additional"]["id"] for each in rows]

    async def compare(self, shards: int, title: str, row: Filter, offset: int, state: str) -> None:
        texts = await self.texts(shards, row, offset)
        spent: dict[str, list[float]] = {name: [] for name in texts}

        async def run(side: str) -> None:
            before = processor(self.pid)
            await self.ids(texts[side])
            spent[side].append((processor(self.pid) - before) * 1e3)

        sides = {name: partial(run, name) for name in texts}
        found = await measure_async(sides, rounds=ROUNDS)
        ratios = {
            side: median(each / naive for each, naive in zip(found[side], found[NAIVE], strict=True))
            for side in (OURS, LEAST)
        }
        heading = f"{title}; {shards} shard{'s' * (shards > 1)}, from row {offset:,}, {state}"
        report(heading, found, baseline=NAIVE)
        print(f"  median of the ratios to the naive request: the driver's {len(texts[OURS])}: {ratios[OURS]:.2f} x,")
        print(f"  the first rows of all: {ratios[LEAST]:.2f} x")
        for side, each in spent.items():
            print(f"  {median(each):9.2f} [{min(each):8.2f}] ms of the server's processor: {side}")

    async def walk(self, shards: int, title: str, row: Filter) -> None:
        """Print how many rows of 30 pages are held once, by the naive request and by the driver's."""
        seen: dict[str, list[str]] = {NAIVE: [], OURS: []}
        for at in range(WALK):
            texts = await self.texts(shards, row, at * LIMIT)
            for side, rows in seen.items():
                rows += await self.ids(texts[side])
        held = {side: len(set(rows)) for side, rows in seen.items()}
        whole = await self.ids((await self.texts(shards, row, 0, WALK * LIMIT))[OURS])
        assert seen[OURS] == whole, f"{title}, {shards} shards: the pages are not the long page"
        parts = f"{shards} shard{'s' * (shards > 1)}"
        print(f"{title}; {parts}: of {len(whole):,} rows {held[NAIVE]:,} naively, {held[OURS]:,} by the driver")

    async def export(self, shards: int, title: str, row: Filter) -> None:
        """Print how long an export of the filter takes."""
        compiled = await self.driver.compile_filter(FilterRequest(object=named(shards), rows=[row]))
        began, rows = perf_counter(), 0
        async with aclosing(
            self.driver.export_rows(ExportRequest(object=named(shards), filter=compiled, form=ExportForm.ROWS))
        ) as parts:
            async for part in parts:
                rows += part.rows
        took = perf_counter() - began
        print(f"{title}; {shards} shards: {rows:,} rows exported in {took:.2f} s, {rows / took:,.0f} a second")


async def main(record: dict) -> None:
    key = (record["api_keys"] or {}).get("admin", "")
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    secrets = {"auth_scheme": AuthScheme.BEARER, "secrets": Secrets(values={"api_key": key})} if key else {}
    driver = Driver()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(record["url"], headers=headers))
        log = await stack.enter_async_context(
            opened(driver, profile_of(record["url"], name="bench", type="weaviate", **secrets))
        )
        bench = Bench(http, driver, log, record["pid"])
        for shards in SHARDS:
            await load(http, shards)
            for title, row in FILTERS.items():
                await bench.compare(shards, title, row, 0, "just loaded")
        await anyio.sleep(SETTLES)
        for shards in SHARDS:
            for title, row in FILTERS.items():
                for offset in (0, 2_000):
                    await bench.compare(shards, title, row, offset, "settled")
        print()
        for shards in SHARDS:
            for title, row in FILTERS.items():
                await bench.walk(shards, title, row)
            for title, row in FILTERS.items():
                await bench.export(shards, title, row)
            await http.delete(f"/v1/schema/{named(shards)}")


if __name__ == "__main__":
    introduce()
    if len(sys.argv) < 2:
        print("needs a real server: tests/servers run weaviate-1.38.11 -- sh -c 'python … \"$DRAGOMAN_LIVE\"'")
        raise SystemExit
    records = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    anyio.run(main, next(record for record in records if record["type"] == "weaviate"))
