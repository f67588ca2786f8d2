"""What the page asks while a person types and looks, beside the bare aggregation: bench_summaries.py URL [DOCUMENTS].

Needs an open Elasticsearch; without a URL nothing is measured. The sides ask in turns for the values that a filter's
field suggests and for the bars over time, of an index of so many documents (1,000,000) that is made for the run and
removed afterwards.
"""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import anyio
from aiohttp import ClientSession
from benchmarks.compare import introduce, measure_async, report

from dragoman import Filter, Runtime, SavedConnection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Query = dict[str, Any]
EVERYTHING: Query = {"match_all": {}}
INDEX = "dragoman-bench-summaries"
PART = 10_000
WORDS = {"type": "keyword"}
PROPERTIES = {"@timestamp": {"type": "date"}, "level": WORDS, "user": WORDS, "city": WORDS, "n": {"type": "long"}}
USERS, CITIES = 50_000, 997
VALUES = 12
"""Values that a filter's field suggests at most."""


def send(url: str, method: str, path: str, body: str = "", kind: str = "application/json") -> Any:
    """Send a request that must work, and return its answer."""
    request = urllib.request.Request(url + path, body.encode() or None, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def fill(url: str, documents: int) -> None:
    """Make the index: events of 28 days, by many users of fewer cities."""
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
    send(url, "PUT", f"/{INDEX}", json.dumps({"settings": settings, "mappings": {"properties": PROPERTIES}}))
    for begin in range(0, documents, PART):
        lines = [
            f'{{"index":{{}}}}\n{{"@timestamp":"2026-03-{n % 28 + 1:02}T{n % 24:02}:00:00Z","level":"'
            f'{("INFO", "WARN", "ERROR")[n % 3]}","user":"user-{n * 7919 % USERS}","city":"city {n * 31 % CITIES}",'
            f'"n":{n}}}\n'
            for n in range(begin, min(begin + PART, documents))
        ]
        send(url, "POST", f"/{INDEX}/_bulk", "".join(lines), "application/x-ndjson")
    send(url, "POST", f"/{INDEX}/_refresh")
    send(url, "POST", f"/{INDEX}/_forcemerge?max_num_segments=5")


async def compare(url: str) -> None:
    """Measure and print."""
    place = urlsplit(url)
    values = {"host": place.hostname or "", "port": place.port or 9200, "auth_method": "none"}
    with tempfile.TemporaryDirectory() as folder:
        async with ClientSession() as http, Runtime(Path(folder)) as runtime:
            runtime.connections.save(SavedConnection(name="bench", type="elasticsearch", values=values))
            async with runtime.open("bench") as session:

                def ours(column: str, *filters: Filter, **sizes: int) -> Callable[[], Awaitable[object]]:
                    rows = session.rows(INDEX, filters=filters)
                    return lambda: rows.summarize(column, **sizes)

                def bare(
                    aggregation: dict[str, Any], query: dict[str, Any] | None = None
                ) -> Callable[[], Awaitable[object]]:
                    body = {"size": 0, "aggs": {"it": aggregation}, "query": query or {"match_all": {}}}

                    async def search() -> object:
                        async with http.post(f"{url}/{INDEX}/_search?request_cache=false", json=body) as answer:
                            return await answer.json()

                    return search

                bars = {"date_histogram": {"field": "@timestamp", "calendar_interval": "day"}}
                cases = {
                    "bars over time": (ours("@timestamp", buckets=50), bare(bars)),
                    "values of 'city', nothing typed": (
                        ours("city", values=VALUES), bare({"terms": {"field": "city", "size": VALUES}})
                    ),
                    "values of 'user', nothing typed": (
                        ours("user", values=VALUES), bare({"terms": {"field": "user", "size": VALUES}})
                    ),
                    "values of 'user', 'user-31' typed": (
                        ours("user", Filter("user", "starts", "user-31"), values=VALUES),
                        bare({"terms": {"field": "user", "size": VALUES}}, {"prefix": {"user": "user-31"}}),
                    ),
                }  # fmt: skip
                for title, (summarize, search) in cases.items():
                    sides = {"Rows.summarize": summarize, "the bare aggregation": search}
                    report(title, await measure_async(sides), baseline="the bare aggregation")


def main() -> None:
    """Make the index, compare, and remove it."""
    if len(sys.argv) == 1:
        print("bench_summaries.py: no URL of an Elasticsearch, so nothing is measured")
        return
    url, documents = sys.argv[1].rstrip("/"), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    introduce()
    try:
        fill(url, documents)
        anyio.run(compare, url)
    finally:
        send(url, "DELETE", f"/{INDEX}?ignore_unavailable=true")


if __name__ == "__main__":
    main()
