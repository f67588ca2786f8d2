"""Cores of Solr from a seed, random calls, and what plain Python makes of the stored documents.

`python -m tests.oracle.solr --url URL` makes calls by hand. A document is a dict, and each call is evaluated from all
of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from math import copysign, isnan
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
from drivers.solr.rig import Rig, on_server

from dragoman_api import (
    CellRequest,
    CountRequest,
    Delete,
    DragomanError,
    Filter,
    FilterNotSupportedError,
    FilterRequest,
    Insert,
    Json,
    OutcomeStatus,
    PageRequest,
    RowKey,
    Sort,
    Update,
)
from dragoman_api import Operator as Op
from dragoman_api.columns import PATTERNS, VALUELESS
from dragoman_api.kit.filter_rows import NEGATED
from dragoman_api.summaries import SummaryRequest

from .chroma import Report

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS_OF_A_WORLD = 100
TEXTS = [
    "", "a", "A", "ab", "abc", "Abc", "ü", "Ü", "x%_y", "a*b", "[a]?", "*", "\n", "1", "true", "long " * 8, "😀", "\\",
    "a\\", '"', 'a" TO "b', "!", " ", "a/b", "{!term f=id}x", "OR", "a b", "(a)", "~", "^$.", "b]", "b}", "&&", "#@<>",
]  # fmt: skip
INTEGERS = [0, 1, -1, 2, 2**31 - 1, -(2**31), 7, 1000]
LONGS = [*INTEGERS, 2**53 + 1, -(2**63), 2**63 - 1]
DOUBLES = [0.0, -0.0, 0.5, 1.0, -1.5, 1e300, 1e-7, 0.1, 3e15, 2.5e-300]
SINGLES = [0.0, -0.0, 0.5, 0.1, 16777216.0, 3e38, -1.5]
DATES = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "2024-02-29T12:00:00.500Z", "2024-02-29T12:00:00Z",
         "9999-12-31T23:59:59.999Z", "2024-03-01T00:00:00Z"]  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "s": TEXTS, "column": TEXTS, "asked": TEXTS, "plain": TEXTS, "t": TEXTS, "ss": TEXTS, "columns": TEXTS,
    "i": INTEGERS, "l": LONGS, "ls": LONGS, "d": DOUBLES, "f": SINGLES, "b": [True, False], "dt": DATES, "dts": DATES,
}  # fmt: skip
SEVERAL = ("ss", "columns", "ls", "dts")
NAMES = [*(f"x_{suffix}" for suffix in VALUES), "n_d", "n_s", "odd ü"]


def suffix_of(name: str) -> str:
    """Return the pattern that makes a field."""
    return "s" if name == "odd ü" else name.rpartition("_")[2]


def value(random: Random, name: str) -> Any:
    """Return a value that the server keeps as it is."""
    suffix = suffix_of(name)
    if suffix not in SEVERAL:
        return random.choice(VALUES[suffix])
    values = [random.choice(VALUES[suffix]) for _ in range(random.randint(1, 3))]
    return sorted(set(values)) if suffix == "columns" else values


def _order(item: Any) -> Any:
    if isinstance(item, float):
        return (isnan(item), 0.0 if isnan(item) else item, copysign(1, item))
    if isinstance(item, str) and item.endswith("Z") and item[:4].isdecimal():
        item = item.removesuffix("Z")
    return item.encode() if isinstance(item, str) else item


def holds(row: Filter, stored: Any) -> bool:
    """Evaluate a filter row on a stored value: None, a scalar, or a list of which one element has to match."""
    values = stored if isinstance(stored, list) else [] if stored is None else [stored]
    if row.op in NEGATED:
        return not holds(Filter(row.column, NEGATED[row.op], row.value, case=row.case), stored)
    if row.op in (Op.NULL, Op.NOT_NULL):
        return bool(values) is (row.op is Op.NOT_NULL)
    return any(_matches(row, item) for item in values)


def _matches(row: Filter, item: Any) -> bool:
    op, operand, item = row.op, row.value, _typed(item, row.column)
    if op in (Op.EMPTY, Op.NOT_EMPTY):
        return (item == "") is (op is Op.EMPTY)
    if op in PATTERNS:
        text, part = (item, str(operand)) if row.case else (item.lower(), str(operand).lower())
        return {Op.CONTAINS: part in text, Op.STARTS: text.startswith(part), Op.ENDS: text.endswith(part)}[op]

    def compared(one: Any) -> Any:
        if suffix_of(row.column) in ("dt", "dts"):  # without its zone and the zeros of its fraction, a text orders
            return one.removesuffix("Z").ljust(23, ".") if "." not in one else one.removesuffix("Z")
        return one.encode() if isinstance(one, str) else one

    at = compared(item)
    if op is Op.IN:
        return any(at == compared(one) for one in operand)
    if op is Op.BETWEEN:
        return bool(compared(operand[0]) <= at <= compared(operand[1]))
    other = compared(operand)
    return bool({Op.EQ: at == other, Op.GT: at > other, Op.GE: at >= other, Op.LT: at < other, Op.LE: at <= other}[op])


@dataclass
class World:
    """One core, and its documents by their keys."""

    random: Random
    name: str = ""
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    async def build(self, rig: Rig) -> None:
        """Make the core, with one document that has every field."""
        random = self.random
        self.names = [name for name in NAMES if name != "x_asked" or random.random() < 0.3]
        for at in range(random.choice([1, 7, 40, 130])):
            key = random.choice(["k{}", "k/{}", "ü{}", "a b{}", "{}'\"", "%2F{}", "\\{}", "K{}"]).format(at)
            names = [name for name in self.names if not at or random.random() < 0.7]
            self.documents[key] = {"id": key, **{name: value(random, name) for name in names}}
        for document in self.documents.values():
            if "n_d" in document and random.random() < 0.1:
                document["n_d"] = "NaN"
        self.name = await rig.core(self.documents.values())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The documents in the order of their keys."""
        return sorted(self.documents.values(), key=lambda document: document["id"].encode())

    def row(self, columns: list[Any]) -> Filter | None:
        """Make a filter row for one of the columns."""
        random = self.random
        column = random.choice([column for column in columns if column.name in (*NAMES, "id") and column.operators])
        op = random.choice(column.operators)
        known = [document.get(column.name) for document in self.documents.values()]
        operands = [one for stored in known for one in (stored if isinstance(stored, list) else [stored])]
        operands = [one for one in operands if one not in (None, "NaN")]
        if not operands or random.random() < 0.4:
            operands = VALUES["s" if column.name == "id" else suffix_of(column.name)]
        operand: Any = random.choice(operands)
        if op in VALUELESS:
            operand = None
        elif op in (Op.IN, Op.NOT_IN):
            operand = [random.choice(operands) for _ in range(random.randint(1, 3))]
        elif op is Op.BETWEEN:
            operand = [random.choice(operands), random.choice(operands)]
        elif op in PATTERNS:
            start = random.randint(0, len(operand))
            operand = operand[start : start + random.randint(0, 3)]
        return Filter(column.name, op, operand, case=random.choice([None, None, None, True, False]))


async def run(rig: Rig, *, seed: int, calls: int, say: Callable[[str], None] = lambda _: None) -> Report:
    """Make calls, a world for every hundred of them."""
    report = Report()
    for first in range(seed, seed + calls, CALLS_OF_A_WORLD):
        world = World(Random(f"solr {first}"))
        await world.build(rig)
        for number in range(first, min(seed + calls, first + CALLS_OF_A_WORLD)):
            world.random = Random(f"call {number}")
            try:
                await _call(rig, world, report, number)
            except DragomanError as error:
                report.expect(number, "an error", error.message, "an answer")
            report.calls += 1
        await rig.remove()
        rig.made.clear()
        say(f"{report.calls:,} of {calls:,} calls, {len(report.differences)} differences")
    return report


async def _call(rig: Rig, world: World, report: Report, seed: int) -> None:
    random = world.random
    columns = (await rig.driver.describe_object(world.name)).columns
    kind = random.choice(["page"] * 6 + ["count", "count", "export", "cell", "walk", "summary", "summary", "change"])
    report.tally[kind] += 1
    if kind == "change":
        return await _change(rig, world, report, seed)
    if kind == "cell":
        document, column = random.choice(world.rows), random.choice(columns)
        if column.name in ("_version_", "_nest_path_"):
            return None
        got = await rig.driver.fetch_cell(CellRequest(key=RowKey(world.name, document["id"]), column=column.name))
        return report.expect(seed, f"cell {column.name}", _plain(got), document.get(column.name))
    rows = [row for _ in range(random.choice([0, 1, 1, 1, 2, 3])) if (row := world.row(columns))]
    match = random.choice(["all", "all", "any"])
    compiled = None
    if rows:
        try:
            compiled = await rig.driver.compile_filter(FilterRequest(object=world.name, rows=rows, match=match))
        except FilterNotSupportedError:
            report.tally["refused"] += 1
            return None
        if any(row.approximations for row in compiled.rows):
            report.tally["approximate"] += 1
            return None
    report.tally["exact"] += all(row.exact for row in compiled.rows) if compiled else 1
    join = all if match == "all" else any
    due = [row for row in world.rows if not rows or join(holds(test, row.get(test.column)) for test in rows)]
    text = f"{kind} {match} {rows}"
    if kind == "count":
        got = await rig.driver.count_rows(CountRequest(object=world.name, filter=compiled))
        return report.expect(seed, text, got, len(due))
    if kind == "export":
        lines = [json.loads(line) for line in await rig.export(world.name, *(rows if match == "all" else []))]
        lines = [{name: cell for name, cell in line.items() if name != "_version_"} for line in lines]
        return report.expect(seed, text, lines, due if match == "all" else world.rows)
    if kind == "summary":
        return await _summary(rig, world, report, seed, due, columns, compiled)
    sortable = [column.name for column in columns if column.sortable and column.name in (*NAMES, "id")]
    sorts = [Sort(random.choice(sortable), random.random() < 0.5) for _ in range(random.choice([0, 1, 1, 2]))]
    for sort in reversed(sorts):
        numbers = {row["id"]: _typed(row[sort.column], sort.column) for row in due if sort.column in row}
        due = [*_stable(due, sort, numbers), *(row for row in due if sort.column not in row)]
    if kind == "walk":
        cursor, keys, limit = None, list[Any](), random.choice([1, 3, 20])
        while True:
            request = PageRequest(object=world.name, filter=compiled, sort=sorts, limit=limit, cursor=cursor)
            page = await rig.driver.fetch_page(request)
            keys += [key.id for key in page.keys]
            if (cursor := page.next) is None or len(keys) > 60:
                break
        return report.expect(seed, f"{text} {sorts}", keys, [row["id"] for row in due][: len(keys) if cursor else None])
    offset, limit = random.choice([0, 0, 3, 50, 200]), random.choice([1, 5, 20, 1000])
    wanted = random.choice([None, None, ["id"], ["x_s", "x_asked"], ["odd ü"]])
    wanted = (wanted and [name for name in wanted if name in {column.name for column in columns}]) or None
    request = PageRequest(object=world.name, filter=compiled, sort=sorts, offset=offset, limit=limit, columns=wanted)
    page = await rig.driver.fetch_page(request)
    report.expect(seed, f"total of {text}", (page.total, page.total_exact), (len(due), True))
    due = due[offset : offset + limit]
    report.expect(seed, f"{text} {sorts} {offset} {limit}", [key.id for key in page.keys], [row["id"] for row in due])
    for cells, document in zip(page.cells, due, strict=False):
        got = {column.name: _plain(cell) for column, cell in zip(page.columns, cells, strict=True)}
        got = {name: cell for name, cell in got.items() if name not in ("_version_", "_nest_path_")}
        report.expect(seed, f"cells of {text}", got, {name: document.get(name) for name in got})
    return None


def _stable(rows: list[dict[str, Any]], sort: Sort, numbers: dict[str, Any]) -> list[dict[str, Any]]:
    present = [row for row in rows if sort.column in row]
    return sorted(present, key=lambda row: _order(numbers[row["id"]]), reverse=sort.descending)


def _typed(stored: Any, name: str) -> Any:
    return float(stored) if suffix_of(name) in ("d", "f") else stored


def _plain(cell: Any) -> Any:
    return json.loads(cell) if isinstance(cell, Json) else cell


async def _summary(
    rig: Rig, world: World, report: Report, seed: int, due: list[dict[str, Any]], columns: list[Any], compiled: Any
) -> None:
    names = [column.name for column in columns if column.name in NAMES and suffix_of(column.name) not in ("d", "f")]
    name = world.random.choice(names)
    request = SummaryRequest(object=world.name, column=name, filter=compiled, values=3)
    summary = await rig.driver.summarize_column(request)
    stored = [row[name] for row in due if name in row]
    sets = [set(one) if isinstance(one, list) else {one} for one in stored]
    counts = {one: sum(one in values for values in sets) for values in sets for one in values}
    missing = summary.missing if "missing" in summary.absent else len(due) - len(stored)
    report.expect(seed, f"summary of {name}", (summary.rows, summary.missing), (len(due), missing))
    if "values" not in summary.absent:
        frequent = sorted(counts.values(), reverse=True)[:3]
        report.expect(seed, f"frequent {name}", [one.rows for one in summary.values], frequent)
        report.expect(seed, f"counts of {name}", [counts.get(one.value) for one in summary.values], frequent)
        report.expect(seed, f"distinct {name}", summary.distinct, len(counts))
    if "minimum" not in summary.absent:
        ends = (min(counts, key=_order, default=None), max(counts, key=_order, default=None))
        report.expect(seed, f"extremes of {name}", (summary.minimum, summary.maximum), ends)


async def _change(rig: Rig, world: World, report: Report, seed: int) -> None:
    random = world.random
    kind = random.choice(["insert", "update", "update", "delete"])
    if kind == "insert" or len(world.documents) < 2:
        key = f"new{seed}" if random.random() < 0.7 else random.choice([*world.documents])
        values = {name: value(random, name) for name in world.names if random.random() < 0.5}
        change: Any = Insert(world.name, _exactly(values), id=key)
        status = OutcomeStatus.CONFLICT if key in world.documents else OutcomeStatus.APPLIED
        if status is OutcomeStatus.APPLIED:
            world.documents[key] = {"id": key, **values}
    else:
        page = await rig.driver.fetch_page(PageRequest(object=world.name, limit=1000, columns=["id"]))
        row_key, status = random.choice(page.keys), OutcomeStatus.APPLIED
        if kind == "delete":
            change = Delete(row_key)
            del world.documents[row_key.id]
        else:
            name = random.choice(world.names)
            stored = None if random.random() < 0.3 else value(random, name)
            lossy = "x_asked" in world.names  # a deleted document may have been the last one with it
            change = Update(row_key, _exactly({name: stored}))
            status = OutcomeStatus.REFUSED if lossy else status
            if not lossy:
                world.documents[row_key.id].pop(name, None)
                world.documents[row_key.id] |= {} if stored is None else {name: stored}
    [outcome] = await rig.apply(change)
    report.tally[f"change {outcome.status}"] += 1
    report.expect(seed, f"outcome of {change}: {outcome.reason}", outcome.status, status)
    answer = await rig.call("POST", f"/solr/{world.name}/select", {"query": "*:*", "limit": 1000, "sort": "id asc",
                                                                   "fields": ["*", "x_asked"]})  # fmt: skip
    got = [{name: cell for name, cell in row.items() if name != "_version_"} for row in answer["response"]["docs"]]
    report.expect(seed, f"after {change}", got, world.rows)


def _exactly(values: dict[str, Any]) -> dict[str, Any]:
    """Keep texts from being read as what their column holds: a text is what a person typed, Json is not."""
    return {name: Json(json.dumps(stored)) if isinstance(stored, str | list) else stored
            for name, stored in values.items()}  # fmt: skip


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.solr")
    parser.add_argument("--url", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=1_000)
    options = parser.parse_args()
    async with on_server({"url": options.url}) as rig:
        say = lambda text: print(text, file=sys.stderr)  # noqa: E731
        report = await run(rig, seed=options.seed, calls=options.calls, say=say)
    print(report.calls, dict(report.tally), *report.differences[:8], f"{len(report.differences)} differences", sep="\n")
    return bool(report.differences)


if __name__ == "__main__":
    sys.exit(anyio.run(_main))
