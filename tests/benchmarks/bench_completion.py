"""The console completion of both drivers in long texts, and in texts twice as long: bench_completion.py [KB].

Once names and columns are known, a completion waits for nothing, so seconds are those of the processor.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "plugins" / name) for name in ("api", "querydsl", "elasticsearch", "weaviate")]

from dragoman_api.console import Completion, CompletionRequest
from dragoman_querydsl import console_text as elasticsearch
from dragoman_querydsl.columns import mapping
from dragoman_weaviate import console_text as weaviate

if TYPE_CHECKING:
    from collections.abc import Callable

WANTED = 50.0  # milliseconds for 100 kB: a person types a key every 100 ms
FIELDS = [f"field_{number}" for number in range(300)]
NAMES = [f"books-{number}" for number in range(1_000)]
SCHEMA = {f"Book{number}": [(name, "text") for name in FIELDS[:50]] for number in range(200)}
KEYWORD = {"keyword": mapping.TypeCapabilities()}
PROPERTIES = {"properties": {name: {"type": "keyword"} for name in FIELDS}}
VIEW = mapping.read(
    "books-1",
    {"books-1": mapping.IndexMapping(msgspec.Raw(msgspec.json.encode(PROPERTIES)))},
    mapping.FieldCaps(indices=["books-1"], fields=dict.fromkeys(FIELDS, KEYWORD)),
)


def of_elasticsearch(request: CompletionRequest) -> Completion:
    """Complete as the driver does, with names and columns known."""
    asked = elasticsearch.ask(request)
    return asked.complete(NAMES if asked.names else [], VIEW if asked.target else None)


def of_weaviate(request: CompletionRequest) -> Completion:
    """Complete as the driver does, with the schema known."""
    return weaviate.complete(request, SCHEMA)


TERM = '{"term":{"field_1":{"value":"some words"}}},\n'
ROW = '{"index":{"_id":"1"}}\n{"title":"Some words # that are no comment","stock":1}\n'
SEARCH = "GET /books-1/_search\n"
QUERY = "Book1(limit: 5) { field_1 field_2 } # a comment\n"
TEXTS = {  # how the text begins, what is repeated, and how it ends
    "Elasticsearch, the path after many requests": (of_elasticsearch, "", SEARCH + '{"size":1}\n', "GET /books-1"),
    "Elasticsearch, a field in a long body": (
        of_elasticsearch, SEARCH + '{"query":{"bool":{"filter":[\n', TERM, '{"term":{"fie',
    ),
    "Elasticsearch, the path after a long _bulk": (of_elasticsearch, "POST /books-1/_bulk\n", ROW, "\nGET /boo"),
    "Weaviate, the path after many requests": (
        of_weaviate, "", 'POST /v1/objects\n{"class":"Book1"}\n', "GET /v1/schema/Bo",
    ),
    "Weaviate, a property in a long query": (of_weaviate, "{ Get { ", QUERY, "Book1 { fie"),
}  # fmt: skip


def request_of(begin: str, row: str, end: str, size: int) -> CompletionRequest:
    """Return a text of at least a size in bytes, with the cursor at its end."""
    text = begin + row * (size // len(row) + 1) + end
    return CompletionRequest(text=text, position=len(text))


def seconds(complete: Callable[[CompletionRequest], Completion], request: CompletionRequest) -> float:
    """Return the processor's seconds of one completion."""
    begun = time.process_time()
    for _ in range(5):
        complete(request)
    return (time.process_time() - begun) / 5


def main() -> None:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 100) * 1_000)
    print(f"texts of {size / 1_000:g} and {size / 500:g} kB, milliseconds of the processor, best of 7 rounds in turn")
    for name, (complete, begin, row, end) in TEXTS.items():
        once, twice = (request_of(begin, row, end, each) for each in (size, 2 * size))
        if not (found := complete(once)).suggestions:
            raise SystemExit(f"{name}: nothing is suggested")
        rounds = [(seconds(complete, once), seconds(complete, twice)) for _ in range(7)]
        first, second = (1_000 * min(each) for each in zip(*rounds, strict=True))
        print(
            f"  {name:46} {first:7.2f} {second:7.2f}  {second / first:.2f} times for twice the text, "
            f"{len(found.suggestions)} suggestions"
        )
    print(f"target: {WANTED:g} ms for 100 kB, twice the time for twice the text")


if __name__ == "__main__":
    main()
