"""Filtered pages of Weaviate beside the naive request, which loses rows: bench_weaviate_filter.py RECORDS.

RECORDS is the file that `tests/servers` names in DRAGOMAN_LIVE; its first Weaviate is taken. Three requests are sent in
turn by the same client: the clause alone, unsorted; what the driver sends for the page; and the clause twice under And,
sorted by id, which is right too. The pages are measured just after loading, and again once the server has written the
index to the disk, a minute after the last change.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from uuid import UUID

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support"), str(ROOT / "plugins/weaviate")]

import aiohttp
import anyio
from benchmarks.compare import introduce, measure_async, report
from drivers.rigging import profile_of

from dragoman_api import Filter, FilterRequest, PageRequest
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.testing.target import opened
from dragoman_weaviate.driver import Driver

ROWS = int(os.environ.get("ROWS", "100000"))
ROUNDS = int(os.environ.get("ROUNDS", "15"))
SETTLES = 75  # seconds until the server has written its index to the disk
LIMIT = 100
WALK = 30  # pages that are compared with one long page
SHARDS = (1, 3)
FILTERS = {
    "n > 100000, 9 rows of 10": Filter("n", ">", 100_000),
    "n < 900000, 9 rows of 10": Filter("n", "<", 900_000),
    "kind = k1, 2 rows of 10": Filter("kind", "=", "k1"),
}
NAIVE, OURS, TWICE = "the clause alone: loses rows", "the driver's request", "the clause twice, by id"


def named(shards: int) -> str:
    return f"DragomanFilter{shards}"


async def load(http: aiohttp.ClientSession, shards: int) -> None:
    """Make a collection and fill it: an integer of many values without an index for ranges, and one of five texts."""
    definition = {
        "class": named(shards),
        "vectorizer": "none",
        "vectorIndexType": "flat",
        "shardingConfig": {"desiredCount": shards},
        "properties": [
            {"name": "n", "dataType": ["int"]},
            {"name": "kind", "dataType": ["text"], "tokenization": "field"},
        ],
    }
    await http.delete(f"/v1/schema/{named(shards)}")
    async with http.post("/v1/schema", json=definition) as reply:
        reply.raise_for_status()
    chance = random.Random(7)
    for start in range(0, ROWS, 2_000):
        items = [
            {
                "class": named(shards),
                "id": str(UUID(int=chance.getrandbits(128))),
                "properties": {"n": chance.randrange(1_000_000), "kind": f"k{chance.randrange(5)}"},
            }
            for _ in range(min(2_000, ROWS - start))
        ]
        async with http.post("/v1/batch/objects", json={"objects": items}) as reply:
            reply.raise_for_status()


class Bench:
    """A connected driver with its log, and a client that sends the same texts."""

    def __init__(self, http: aiohttp.ClientSession, driver: Driver, log: list) -> None:
        self.http, self.driver, self.log = http, driver, log

    async def texts(self, shards: int, row: Filter, offset: int, limit: int = LIMIT) -> dict[str, str]:
        """Return the three requests for one page."""
        name = named(shards)
        await self.driver.describe_object(name)
        compiled = await self.driver.compile_filter(FilterRequest(object=name, rows=[row]))
        request = PageRequest(object=name, filter=compiled, offset=offset, limit=limit, total=False)
        await self.driver.fetch_page(request)
        ours = next(json.loads(each.body)["query"] for each in reversed(self.log) if "/graphql" in each.path)
        selection = re.search(r"\)(\{[^()]*)$", ours)[1]
        clause = compiled.rows[0].clause
        twice = f'{{operator:And,operands:[{clause},{clause}]}},sort:[{{path:["_id"],order:asc}}]'
        start = f"{{Get{{{name}(limit:{limit},offset:{offset},where:"
        return {NAIVE: f"{start}{clause}){selection}", OURS: ours, TWICE: f"{start}{twice}){selection}"}

    async def ids(self, text: str) -> list[str]:
        async with self.http.post("/v1/graphql", json={"query": text}) as reply:
            answer = await reply.json()
        assert not answer.get("errors"), answer
        [rows] = answer["data"]["Get"].values()
        return [each["_additional"]["id"] for each in rows]

    async def compare(self, shards: int, title: str, row: Filter, offset: int, state: str) -> None:
        texts = await self.texts(shards, row, offset)
        sides = {name: lambda text=text: self.ids(text) for name, text in texts.items()}
        found = await measure_async(sides, rounds=ROUNDS)
        ratio = median(ours / naive for ours, naive in zip(found[OURS], found[NAIVE], strict=True))
        heading = f"{title}; {shards} shard{'s' * (shards > 1)}, from row {offset:,}, {state}"
        report(heading, found, baseline=NAIVE)
        print(f"  of each pair, the driver's request takes {ratio:.2f} x the naive one (median)")

    async def walk(self, shards: int, title: str, row: Filter) -> None:
        """Print how many rows of 30 pages are held once, by the naive request and by the driver's."""
        held: dict[str, int] = {}
        for side in (NAIVE, OURS):
            seen: list[str] = []
            for at in range(WALK):
                seen += await self.ids((await self.texts(shards, row, at * LIMIT))[side])
            held[side] = len(set(seen))
        whole = await self.ids((await self.texts(shards, row, 0, WALK * LIMIT))[OURS])
        assert seen == whole, f"{title}, {shards} shards: the pages are not the long page"
        parts = f"{shards} shard{'s' * (shards > 1)}"
        print(f"{title}; {parts}: of {len(whole):,} rows {held[NAIVE]:,} naively, {held[OURS]:,} by the driver")


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
        bench = Bench(http, driver, log)
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
            await http.delete(f"/v1/schema/{named(shards)}")


if __name__ == "__main__":
    introduce()
    if len(sys.argv) < 2:
        print("needs a real server: tests/servers run weaviate-1.38.11 -- sh -c 'python … \"$DRAGOMAN_LIVE\"'")
        raise SystemExit
    records = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    anyio.run(main, next(record for record in records if record["type"] == "weaviate"))
