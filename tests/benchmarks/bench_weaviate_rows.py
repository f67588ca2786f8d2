"""Pages and exports of Weaviate without a server, in a driver's process: bench_weaviate_rows.py [CHECKOUT].

The driver's own functions read the same answers, built once, in this checkout and in another one, one round of each in
turn. Waiting and sockets are left out, so seconds are those of the processor.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
ROUNDS = 21
CHILD = r"""
import json, sys, time
from types import SimpleNamespace
from dragoman_api import ExportRequest, PageRequest, Sort
from dragoman_api.exports import ExportForm
from dragoman_weaviate.columns import grid_columns
from dragoman_weaviate.protocol import Features
from dragoman_weaviate.export import ExportReader
from dragoman_weaviate.grid import pages

ROWS, AGAIN = 1_000, 10
TYPES = {"title": "text", "i": "int", "n": "number"}
PROPERTIES = [{"name": name, "dataType": [kind]} for name, kind in TYPES.items()]
ITEMS = [
    {"class": "Book", "id": f"{at << 16:08x}-0000-4000-8000-{at:012x}", "creationTimeUnix": 1700000000000 + at,
     "lastUpdateTimeUnix": 1700000000000 + at, "properties": {"title": f"the tale {at}", "i": at, "n": at / 7}}
    for at in range(ROWS)
]

def answer(value):
    return SimpleNamespace(status=200, headers={}, body=json.dumps(value).encode())

def run(exchange, *answers):
    left = iter(answers)
    try:
        asked = next(exchange)
        while True:
            asked = exchange.send([next(left) for _ in asked])
    except StopIteration as ended:
        return ended.value

view = run(grid_columns.view("Book", Features()), answer({"class": "Book", "properties": PROPERTIES}))
listed = answer({"objects": ITEMS})
count = answer({"data": {"Aggregate": {"Book": [{"meta": {"count": ROWS}}]}}})
FOUND = [{**each["properties"], "_additional": {"id": each["id"], "creationTimeUnix": str(each["creationTimeUnix"]),
          "lastUpdateTimeUnix": str(each["lastUpdateTimeUnix"])}} for each in ITEMS]
searched = answer({"data": {"Get": {"Book": FOUND}}})

def page(**more):
    names = ["uuid", "title", "i", "n"]
    found = run(pages.page(PageRequest(object="Book", limit=ROWS, columns=names, **more), view), first, count)
    assert len(found.cells) == len(found.keys) == ROWS

def export(where=None, **more):
    reader = ExportReader(ExportRequest(object="Book", **more), view)
    reader.where = where
    span = reader.ranges[-1]
    span.position, span.bound, span.size = "", "", ROWS
    pieces = run(reader.pieces(span), first)
    assert sum([reader.part(piece).rows for piece in pieces]) == ROWS

WORK = {
    "page by REST": (listed, page),
    "page by GraphQL": (searched, lambda: page(sort=[Sort("i")])),
    "export": (listed, export),
    "export as rows": (listed, lambda: export(form=ExportForm.ROWS)),
    "filtered export": (searched, lambda: export({"operator": "And", "operands": []})),
}
for line in sys.stdin:
    first, work = WORK[line.strip()]
    began = time.process_time()
    for _ in range(AGAIN):
        work()
    print((time.process_time() - began) / AGAIN / ROWS * 1e6, flush=True)
"""
WORK = ("page by REST", "page by GraphQL", "export", "export as rows", "filtered export")


def start(checkout: Path) -> subprocess.Popen[str]:
    """Start a process that runs the code of a checkout."""
    paths = ":".join(str(checkout / "plugins" / name) for name in ("api", "weaviate"))
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": paths},
    )


def spent(child: subprocess.Popen[str], work: str) -> float:
    """Return the processor's microseconds per row of one round."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{work}\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def main(other: Path | None) -> None:
    """Print microseconds per row: medians, the best in brackets, and the median ratio of rounds side by side."""
    sides = {"this checkout": start(ROOT)} | ({"the other": start(other)} if other else {})
    for work in WORK:
        times: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(ROUNDS + 2):
            for name in [*sides] if number % 2 else [*sides][::-1]:
                took = spent(sides[name], work)
                times[name] += [took] if number > 1 else []
        text = ", ".join(f"{name} {median(each):.2f} [{min(each):.2f}] µs a row" for name, each in times.items())
        if other:
            here, there = times.values()
            ratio = median(one / two for one, two in zip(here, there, strict=True))
            text += f": {ratio:.3f} x [{min(here) / min(there):.3f}]"
        print(f"{work}: {text}")
    for child in sides.values():
        child.communicate()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None)
