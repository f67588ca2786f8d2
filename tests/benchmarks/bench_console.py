"""A console text of `_bulk` lines through the drivers' parsers, and one of twice the size: bench_console.py [MB].

Parsing waits for nothing, so seconds are those of the processor: a busy machine changes them less.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "plugins" / name) for name in ("api", "querydsl", "elasticsearch", "weaviate")]

from dragoman_api.kit.console_text import rest_requests
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl.console_text import parse as querydsl
from dragoman_weaviate.console_text import parse as weaviate

if TYPE_CHECKING:
    from collections.abc import Callable

elasticsearch = partial(querydsl, dialect=dialect_of())
WANTED = 20.0  # MB per second of `_bulk` lines
ROW = (
    '{"name":"Book %d","url":"http://example.org/books/%d","price":12.50,"stock":%d,"tags":["a","b"],'
    '"author":{"name":"Ada","born":"1815-12-10"},"text":"Some words that go on for a while, as a document\'s do."}\n'
)


def kit(text: str) -> object:
    """Split a text by the kit's own function."""
    return rest_requests(text, lambda request: request.method != "GET")


TEXTS = {
    "_bulk": (elasticsearch, "POST /books/_bulk\n", '{"index":{"_id":"%d"}}\n' + ROW),
    "_bulk with comments": (elasticsearch, "POST /books/_bulk\n", '{"index":{"_id":"%d"}} // a row\n' + ROW),
    "requests with a comment in each body": (elasticsearch, "", "PUT /books/_doc/%d\n{ # a row\n" + ROW[1:]),
    "requests with a comment in each body (kit)": (kit, "", "PUT /books/_doc/%d\n{ # a row\n" + ROW[1:]),
    "REST lines (Weaviate)": (weaviate, "", "PUT /objects/Book/%d\n" + ROW),
}


def text(begin: str, row: str, size: int) -> str:
    """Repeat a row until the text has a size in bytes."""
    count = size // len(row % (1, 1, 1, 1)) + 1
    return begin + "".join([row % (number, number, number, number) for number in range(count)])


def seconds(parse: Callable[[str], object], text: str) -> float:
    """Return the processor's seconds of the fastest of three rounds."""
    times = []
    for _ in range(3):
        began = time.process_time()
        parse(text)
        times.append(time.process_time() - began)
    return min(times)


def main(size: int) -> int:
    """Print each parser's speed, and how much longer twice the text takes; return 1 if `_bulk` is too slow."""
    slow = 0
    for name, (parse, begin, row) in TEXTS.items():
        once, twice = (seconds(parse, text(begin, row, length)) for length in (size, 2 * size))
        print(f"{name}: {size / 1e6 / once:.1f} MB/s; twice the text takes {twice / once:.2f} times as long")
        slow |= name == "_bulk" and size / 1e6 / once < WANTED
    return slow


if __name__ == "__main__":
    sys.exit(main(int(float(sys.argv[1] if len(sys.argv) > 1 else 13.5) * 1e6)))
