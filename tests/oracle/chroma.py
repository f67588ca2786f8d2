"""Collections of Chroma from a seed, random calls, and what plain Python makes of the stored records.

`python -m tests.oracle.chroma --url URL` makes calls by hand. Chroma has neither mappings nor a fake, so that little of
the other drivers' worlds applies: a record is a dict, and each call is evaluated from all of them.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from math import dist, isclose
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
from drivers.chroma.rig import Rig, on_server

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
from dragoman_api.grid import SimilarRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api import CompiledFilter

CALLS_OF_A_WORLD = 60
OWN = ("id", "document", "uri", "embedding")
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "abc",
    "Abc",
    "ß",
    "SS",
    "ü",
    "x%_y",
    "a*b",
    "[a]?",
    "\n",
    "1",
    "true",
    "long " * 8,
    "’",
    "😀",
]
NUMBERS = [0, 1, -1, 2, 2**31, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0.5, 1.0, -1.5, 1e300, 1e-7, 0.1, 3.0e15]
NAMES = {"s": "text", "i": "integer", "f": "float", "b": "boolean", "ts": "texts", "is": "numbers", "m": "mixed"}
ODD = {"id": "text", "a.b": "integer", "metadata.x": "text", "k ü\"'": "boolean"}
TEXT_OPS = [Op.EQ, Op.NE, Op.IN, Op.NOT_IN, Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS, Op.EMPTY, Op.NOT_EMPTY]
NUMBER_OPS = [Op.EQ, Op.NE, Op.IN, Op.NOT_IN, Op.GT, Op.GE, Op.LT, Op.LE, Op.BETWEEN]
NULLS = [Op.NULL, Op.NOT_NULL]


def value(random: Random, kind: str) -> Any:
    """Return a value that the server keeps."""
    if kind == "mixed":
        kind = random.choice(["text", "integer", "float", "boolean"])
    if kind == "texts":
        return [random.choice(TEXTS) for _ in range(random.randint(1, 3))]
    if kind == "numbers":
        whole = random.random() < 0.5
        numbers = [number for number in NUMBERS if isinstance(number, int) is whole]
        return [random.choice(numbers) for _ in range(random.randint(1, 3))]
    if kind == "text":
        return random.choice(TEXTS)
    if kind == "boolean":
        return random.random() < 0.5
    return random.choice([number for number in NUMBERS if isinstance(number, int) or kind == "float"])


def name_of(key: str) -> str:
    """Return the column of a metadata key."""
    return f"metadata.{key}" if key in OWN or key.startswith("metadata.") else key


def holds(row: Filter, cell: Any) -> bool:
    """Evaluate a filter row on a stored value: None, a scalar, or a list of which one element has to match."""
    values = [item for item in (cell if isinstance(cell, list) else [cell]) if item is not None]
    negated = {Op.NE: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_CONTAINS: Op.CONTAINS}
    if row.op in negated:
        return not holds(Filter(row.column, negated[row.op], row.value, case=row.case), cell)
    if row.op in NULLS:
        return bool(values) is (row.op is Op.NOT_NULL)
    return any(_scalar(row, item) for item in values)


def _scalar(row: Filter, item: Any) -> bool:
    op, operand = row.op, row.value
    if op is Op.IN:
        return any(_same(item, one, row.case) for one in operand)
    if op is Op.BETWEEN:
        return _number(item) and operand[0] <= item <= operand[1]
    if op in (Op.EMPTY, Op.NOT_EMPTY):
        return isinstance(item, str) and (item == "") is (op is Op.EMPTY)
    if op is Op.EQ:
        return _same(item, operand, row.case)
    if op in (Op.GT, Op.GE, Op.LT, Op.LE):
        tests = {Op.GT: "__gt__", Op.GE: "__ge__", Op.LT: "__lt__", Op.LE: "__le__"}
        return _number(item) and bool({"__gt__": item > operand, "__ge__": item >= operand, "__lt__": item < operand,
                                       "__le__": item <= operand}[tests[op]])  # fmt: skip
    if not isinstance(item, str):
        return False
    text, part = (item.casefold(), operand.casefold()) if row.case is False else (item, operand)
    return {Op.CONTAINS: part in text, Op.STARTS: text.startswith(part), Op.ENDS: text.endswith(part)}[op]


def _number(item: Any) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool)


def _same(item: Any, operand: Any, case: bool | None) -> bool:
    if isinstance(item, str) and isinstance(operand, str) and case is False:
        return item.casefold() == operand.casefold()
    return (isinstance(item, bool), isinstance(item, str)) == (
        isinstance(operand, bool),
        isinstance(operand, str),
    ) and (bool(item == operand))


def single(number: float) -> float:
    """Round to 32 bits."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


@dataclass
class World:
    """One collection, and its records in the server's order."""

    random: Random
    name: str = ""
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    async def build(self, rig: Rig) -> None:
        """Make the collection."""
        random = self.random
        self.kinds = NAMES | (ODD if random.random() < 0.5 else {})
        for at in range(random.choice([0, 1, 7, 40, 130])):
            metadata = {key: value(random, kind) for key, kind in self.kinds.items() if random.random() < 0.7}
            key = random.choice(["k{}", "k/{}", "ü{}", "a b{}", "{}'\"", "%2F{}"]).format(at)
            self.records[key] = {
                "id": key,
                "document": random.choice([None, *TEXTS]),
                "uri": random.choice([None, "file:///a", "B"]),
                "metadata": metadata,
                "embedding": [single(random.uniform(-2, 2) * 10 ** random.randint(-9, 9)) for _ in range(3)],
            }
        self.name = await rig.collection(self.records.values())

    def cell(self, record: dict[str, Any], name: str) -> Any:
        """Return the stored value of a column."""
        if name in OWN:
            return record[name]
        return record["metadata"].get(name.removeprefix("metadata.") if name.startswith("metadata.") else name)

    def row(self, columns: list[Any]) -> Filter:
        """Make a filter row for one of the columns."""
        random = self.random
        column = random.choice([column for column in columns if column.name != "embedding"])
        kind = "text" if column.kind == "text" else "boolean" if column.kind == "boolean" else "float"
        operators = {"text": TEXT_OPS, "boolean": TEXT_OPS[:4], "float": NUMBER_OPS}[kind] + NULLS
        op = random.choice(operators)
        stored = [self.cell(record, column.name) for record in self.records.values()]
        known = [item for cell in stored for item in (cell if isinstance(cell, list) else [cell])]
        known = [item for item in known if _kind(item) == kind]
        operands = known if known and random.random() < 0.7 else [value(random, kind)]
        operand: Any = random.choice(operands)
        if op in (Op.IN, Op.NOT_IN):
            operand = [random.choice(operands) for _ in range(random.randint(1, 3))]
        elif op is Op.BETWEEN:
            operand = sorted([random.choice(operands), value(random, kind)])
        elif op in (Op.EMPTY, Op.NOT_EMPTY, *NULLS):
            operand = None
        elif op in (Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS):
            at = random.randint(0, len(operand))
            operand = operand[at : at + random.randint(0, 3)]
        return Filter(column.name, op, operand, case=random.choice([None, None, None, True, False]))


def _kind(item: Any) -> str:
    return (
        "boolean" if isinstance(item, bool) else "text" if isinstance(item, str) else "float" if _number(item) else ""
    )


@dataclass
class Report:
    """What a run made, and what differed."""

    calls: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def expect(self, seed: int, text: str, got: object, due: object) -> None:
        """Compare an answer with what Python makes of the records."""
        if got != due:
            if (
                isinstance(got, list) and isinstance(due, list) and len(got) == len(due)
            ):  # the first that differs is enough
                got, due = next((one, other) for one, other in zip(got, due, strict=True) if one != other)
            self.differences.append(f"seed {seed}: {text}\n  got: {str(got)[:600]}\n  due: {str(due)[:600]}")


async def run(rig: Rig, *, seed: int, calls: int, say: Callable[[str], None] = lambda _: None) -> Report:
    """Make calls, a world for every sixty of them."""
    report = Report()
    for first in range(seed, seed + calls, CALLS_OF_A_WORLD):
        world = World(Random(f"chroma {first}"))
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
    kind = random.choice(
        ["page"] * 6 + ["count", "count", "export", "cell", "update", "insert", "delete", "similar", "similar"]
    )
    report.tally[kind] += 1
    if kind in ("update", "insert", "delete"):
        return await _change(rig, world, report, seed, kind, columns)
    if kind == "cell":
        if not world.records:
            return None
        record, column = random.choice([*world.records.values()]), random.choice(columns)
        got = await rig.driver.fetch_cell(CellRequest(key=RowKey(world.name, record["id"]), column=column.name))
        return report.expect(seed, f"cell {column.name}", _plain(got), _singles(world.cell(record, column.name)))
    rows = [world.row(columns) for _ in range(random.choice([0, 1, 1, 1, 2, 3]))]
    match = random.choice(["all", "all", "any"])
    if match == "any" and len(rows) > 1 and any(row.column == "id" for row in rows):
        match = "all"  # the host refuses what a column says under `any`
    residual = random.choice([None, 10_000]) if kind == "page" else None
    compiled = None
    if rows:
        try:
            request = FilterRequest(object=world.name, rows=rows, match=match, residual=residual)
            compiled = await rig.driver.compile_filter(request)
        except FilterNotSupportedError:
            report.tally["refused"] += 1
            return None
    report.tally["exact"] += all(row.exact for row in compiled.rows) if compiled else 1
    join = all if match == "all" else any
    due = [record for record in world.records.values() if not rows or join(_holds(world, record, row) for row in rows)]
    text = f"{kind} {match} {rows}"
    if kind == "similar":
        return await _similar(rig, world, report, seed, due, text, compiled)
    if kind == "count":
        got = await rig.driver.count_rows(CountRequest(object=world.name, filter=compiled))
        return report.expect(seed, text, got, len(due))
    if kind == "export":
        lines = (
            [json.loads(line) for line in await rig.export(world.name, *rows)] if match == "all" or not rows else None
        )
        return None if lines is None else report.expect(seed, text, [*map(_rounded, lines)], due)
    sort = []
    if residual is not None and random.random() < 0.5:
        sort = [Sort(random.choice(columns).name, descending=random.random() < 0.5)]
    offset, limit = random.choice([0, 0, 3, 50, 200]), random.choice([1, 5, 20, 1000])
    page = await rig.driver.fetch_page(
        PageRequest(
            object=world.name, filter=compiled, sort=sort, offset=offset, limit=limit, residual=residual,
            columns=random.choice([None, None, ["id"]]),
        )
    )  # fmt: skip
    report.expect(seed, f"total of {text}", (page.total, page.total_exact), (len(due), True))
    if sort and sort[0].column not in {note.column for note in page.notes if note.code == "sort-dropped"}:
        due = _sorted(world, due, sort[0], columns)
    due = due[offset : offset + limit]
    report.expect(seed, f"{text} {sort} {offset} {limit}", [key.id for key in page.keys], [row["id"] for row in due])
    for cells, record in zip(page.cells, due, strict=False):
        got = {column.name: _plain(cell) for column, cell in zip(page.columns, cells, strict=True)}
        report.expect(seed, f"cells of {text}", got, {name: _singles(world.cell(record, name)) for name in got})
    return None


async def _similar(
    rig: Rig,
    world: World,
    report: Report,
    seed: int,
    due: list[dict[str, Any]],
    text: str,
    compiled: CompiledFilter | None,
) -> None:
    """Compare the nearest records with those whose squared distances are the smallest, as far as 32 bits tell."""
    random = world.random
    if not world.records:
        return
    origin, limit = random.choice([*world.records.values()]), random.choice([1, 5, 40, 1000])
    if by_key := random.random() < 0.5:
        near: dict[str, Any] = {"key": RowKey(world.name, origin["id"])}
        due = [record for record in due if record is not origin]
    else:
        near = {"vector": [number * random.choice([1, 1, 1.5]) for number in origin["embedding"]]}
    vector = origin["embedding"] if by_key else near["vector"]
    page = await rig.driver.similar_rows(
        SimilarRequest(object=world.name, filter=compiled, limit=limit, columns=["id"], **near)
    )
    distances = {record["id"]: dist(vector, record["embedding"]) ** 2 for record in due}
    got = [(key.text, cells[-1]) for key, cells in zip(page.keys, page.cells, strict=True)]
    nearest = sorted(distances.values())[:limit]
    report.expect(seed, f"number of {text} {near} {limit}", len(got), len(nearest))
    for (key, distance), smallest in zip(got, nearest, strict=False):
        alike = [isclose(distance, other, rel_tol=1e-4, abs_tol=1e-6) for other in (distances.get(key, -1), smallest)]
        report.expect(seed, f"{text} {near} {limit}: {key} at {distance}, the nearest {smallest}", alike, [True, True])


def _holds(world: World, record: dict[str, Any], row: Filter) -> bool:
    return holds(row, world.cell(record, row.column))


def _sorted(world: World, records: list[dict[str, Any]], sort: Sort, columns: list[Any]) -> list[dict[str, Any]]:
    kind = next(column.kind for column in columns if column.name == sort.column)
    name = "text" if kind == "text" else "boolean" if kind == "boolean" else "float"
    comparable = [record for record in records if _kind(world.cell(record, sort.column)) == name]
    others = [record for record in records if record not in comparable]
    return [*sorted(comparable, key=lambda record: world.cell(record, sort.column), reverse=sort.descending), *others]


def _plain(cell: Any) -> Any:
    return _singles(json.loads(cell)) if isinstance(cell, Json) else cell


def _singles(values: Any) -> Any:
    """Round the floats of an embedding, of which the server writes as many digits as 32 bits need."""
    embedding = isinstance(values, list) and len(values) == 3 and all(isinstance(one, float) for one in values)
    return [single(one) for one in values] if embedding and max(map(abs, values)) < 1e38 else values


def _rounded(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"embedding": _singles(record["embedding"]), "metadata": record["metadata"] or {}}


async def _change(rig: Rig, world: World, report: Report, seed: int, kind: str, columns: list[Any]) -> None:
    random = world.random
    if kind == "insert":
        key = f"new{seed}" if random.random() < 0.7 or not world.records else random.choice([*world.records])
        values = {name_of(key): value(random, of) for key, of in world.kinds.items() if random.random() < 0.5}
        vector = [single(random.uniform(-2, 2)) for _ in range(3)]
        change: Any = Insert(
            world.name, {**_exactly(values), "embedding": vector, "document": random.choice(TEXTS)}, id=key
        )
        due = {name.removeprefix("metadata."): stored for name, stored in values.items() if name not in OWN}
        if key not in world.records:
            world.records[key] = {
                "id": key, "document": change.values["document"], "uri": None, "metadata": due, "embedding": vector,
            }  # fmt: skip
            status = OutcomeStatus.APPLIED
        else:
            status = OutcomeStatus.CONFLICT
    else:
        page = await rig.driver.fetch_page(PageRequest(object=world.name, limit=1000, columns=["id"]))
        if not page.keys:
            return
        row_key = random.choice(page.keys)
        status = OutcomeStatus.APPLIED
        if kind == "delete":
            change = Delete(row_key)
            del world.records[row_key.id]
        else:
            name = random.choice([*world.kinds])
            stored = None if random.random() < 0.3 else value(random, world.kinds[name])
            change = Update(row_key, _exactly({name_of(name): stored}))
            metadata = world.records[row_key.id]["metadata"]
            metadata.pop(name, None)
            if stored is not None:
                metadata[name] = stored
    [outcome] = await rig.apply(change)
    report.expect(seed, f"outcome of {change}: {outcome.reason}", outcome.status, status)
    report.expect(seed, f"after {change}", [*map(_rounded, await rig.stored(world.name))], [*world.records.values()])


def _exactly(values: dict[str, Any]) -> dict[str, Any]:
    """Keep texts from being read as what their column holds: a text is what a person typed, Json is not."""
    return {name: Json(json.dumps(stored)) if isinstance(stored, str) else stored for name, stored in values.items()}


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.chroma")
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
