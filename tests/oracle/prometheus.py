"""Random calls of the Prometheus driver, each evaluated again from the samples that were stored, in plain Python."""

from __future__ import annotations

import json
import math
import re
import struct
import urllib.request
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from drivers.prometheus.samples import BEGIN, STEP, samples

from dragoman_api import CountRequest, ExportRequest, Filter, FilterRequest, PageRequest, Sort, TimeRange
from dragoman_api import Operator as Op
from dragoman_api.errors import FilterNotSupportedError
from dragoman_api.exports import ExportForm
from dragoman_api.summaries import SummaryRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from drivers.prometheus.rig import Rig

NEGATED = {Op.NE: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_CONTAINS: Op.CONTAINS}
ORDERED: dict[Op, Callable[[Any, Any], bool]] = {
    Op.GT: lambda a, b: a > b, Op.GE: lambda a, b: a >= b, Op.LT: lambda a, b: a < b, Op.LE: lambda a, b: a <= b
}  # fmt: skip
NUMBERS = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN, *ORDERED, Op.BETWEEN)
TEXTS = (
    Op.EQ,
    Op.NE,
    Op.IN,
    Op.NOT_IN,
    Op.CONTAINS,
    Op.NOT_CONTAINS,
    Op.STARTS,
    Op.ENDS,
    Op.NULL,
    Op.NOT_NULL,
    Op.REGEX,
)
KINDS = ("page", "walk", "count", "export", "summary")


@dataclass(frozen=True)
class Row:
    """One sample as a page should show it."""

    at: int
    labels: dict[str, str]
    value: float

    @property
    def series(self) -> str:
        return json.dumps(self.labels, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    def cell(self, column: str) -> Any:
        """Return the cell of a column, numbers as the page spells them."""
        if column == "timestamp":
            return text_of(self.at)
        if column == "value":
            finite = math.isfinite(self.value)
            return (
                self.value if finite else "NaN" if math.isnan(self.value) else f"{self.value:+}".replace("inf", "Inf")
            )
        if column == "series":
            return self.series
        return self.labels.get(column.removeprefix("label:"))


def text_of(at: int, micros: int = 0) -> str:
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at, microseconds=micros)
    return when.isoformat(timespec="microseconds" if micros else "milliseconds").replace("+00:00", "Z")


def stored(url: str, *, victoria: bool) -> dict[str, list[Row]]:
    """Return all rows by object. VictoriaMetrics says itself which digits it kept, but not to the driver."""
    kept: dict[tuple[int, str], float] = {}
    if victoria:
        query = "match[]=%7B__name__!=%22%22%7D&start=0"
        with urllib.request.urlopen(f"{url}/api/v1/export?{query}", timeout=30) as reply:
            for line in map(json.loads, re.sub(rb'[+]?(-?)Inf\b(?!")', rb"\1Infinity", reply.read()).splitlines()):
                pairs = zip(line["timestamps"], line["values"], strict=True)
                kept |= {
                    (at, Row(at, line["metric"], 0).series): float(value) for at, value in pairs if value is not None
                }
    rows: dict[str, list[Row]] = {}
    for name, group in samples().items():
        for at, labels, value in group:
            row = Row(at, {"__name__": name, **labels}, value)
            if struct.pack("<d", value) == struct.pack("<Q", 0x7FF0000000000002) or (victoria and math.isnan(value)):
                continue
            if victoria:
                number = kept[at, row.series]
                assert number == value or abs(number - value) <= 1e-11 * abs(value) or value == 5e-324, row
                row = Row(at, row.labels, number)
            rows.setdefault(name, []).append(row)
    rows["http_*"] = [*rows["http_requests_total"], *rows["http_duration_seconds"]]
    for group in rows.values():
        group.sort(key=lambda row: (row.at, row.series))
    return rows


@dataclass
class Call:
    """One random call."""

    kind: str
    object: str
    rows: list[Filter]
    match: str
    time: TimeRange | None
    sort: list[Sort]
    offset: int
    limit: int
    column: str


class Oracle:
    """The rows of a server, and what calls should answer."""

    def __init__(self, rig: Rig, url: str) -> None:
        self.rig, self.rows, self.answers = rig, stored(url, victoria=rig.victoria), Counter[str]()

    def columns(self, name: str) -> list[str]:
        labels = {label for row in self.rows[name] for label in row.labels} - (
            {"__name__"} if "*" not in name else set()
        )
        return [f"label:{label}" if label in ("timestamp", "value", "series") else label for label in sorted(labels)]

    def call(self, chance: Random) -> Call:
        """Draw a call."""
        name = chance.choice(["http_requests_total"] * 3 + [*self.rows])
        columns = self.columns(name)
        rows = [self._filter(chance, name, columns) for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3]))]
        shown = ["timestamp", "value", "series", *columns]
        sort = [
            Sort(chance.choice(shown), descending=chance.random() < 0.5) for _ in range(chance.choice([0, 0, 1, 1, 2]))
        ]
        time = None
        if chance.random() < 0.5:
            edges = sorted([self._instant(chance) for _ in range(2)])
            since, until = (edge if chance.random() < 0.8 else None for edge in edges)
            if since != until:
                time = TimeRange(column="timestamp", since=since, until=until)
        return Call(
            kind=chance.choice(KINDS), object=name, rows=rows, match=chance.choice(["all", "any"]), time=time,
            sort=sort,
            offset=chance.choice([0, 0, 1, chance.randrange(900)]), limit=chance.choice([1, 7, 50, 1_000]),
            column=chance.choice(shown),
        )  # fmt: skip

    def _instant(self, chance: Random) -> str:
        if chance.random() < 0.1:
            return text_of(BEGIN + chance.choice([-1, 0, 1]))  # midnight, where VictoriaMetrics changes the day
        at = BEGIN + chance.randrange(-2, 242) * STEP + chance.choice([0, 0, -1, 1, 7_000])
        return text_of(at, chance.choice([0, 0, 1, 999]))

    def _filter(self, chance: Random, name: str, columns: list[str]) -> Filter:
        column = chance.choice(["timestamp", "value", *columns, *columns])
        if column == "timestamp":
            return self._row(chance, column, NUMBERS, lambda: self._instant(chance))
        if column == "value":
            values = [row.cell("value") for row in self.rows[name]]
            return self._row(
                chance,
                column,
                NUMBERS,
                lambda: chance.choice([*values[:: max(1, len(values) // 9)], 0.5, 7, "+Inf", "-Inf", "NaN"]),
            )
        texts = sorted({text for row in self.rows[name] if (text := row.cell(column)) is not None})
        words = [
            *texts,
            *(text[: max(1, len(text) // 2)] for text in texts),
            *(text[-2:] for text in texts),
            "eu",
            ".",
            "nothing",
        ]
        row = self._row(chance, column, TEXTS, lambda: chance.choice(words))
        if row.op is Op.REGEX:
            return Filter(
                column, Op.REGEX, chance.choice([".*", "[0-9]+", "a:.*|b", "[^b]+", "", "200|500"]), case=row.case
            )
        return row

    def _row(self, chance: Random, column: str, ops: tuple[Op, ...], value: Callable[[], Any]) -> Filter:
        op = chance.choice(ops)
        operand = None if op in (Op.NULL, Op.NOT_NULL) else value()
        if op in (Op.IN, Op.NOT_IN):
            operand = [value() for _ in range(chance.randint(1, 3))]
        if op is Op.BETWEEN:
            operand = [value(), value()]
        return Filter(column, op, operand, case=chance.choice([None, None, True, False]) if ops is TEXTS else None)

    def holds(self, row: Filter, stored_row: Row) -> bool:
        """Evaluate a filter row."""
        op = NEGATED.get(row.op, row.op)
        return self._positive(op, row, stored_row) is (op is row.op)

    def _positive(self, op: Op, row: Filter, stored_row: Row) -> bool:
        cell: Any = stored_row.cell(row.column)
        read: Callable[[Any], Any] = str
        if row.column == "timestamp":
            cell, read = micros(cell), micros
        elif row.column == "value":
            cell, read = stored_row.value, float
        elif op in (Op.NULL, Op.NOT_NULL):
            return (cell is None) is (op is Op.NULL)
        elif cell is None:
            return False
        elif row.case is False:
            cell, read = (cell if op is Op.REGEX else cell.casefold()), str.casefold
        if op is Op.BETWEEN:
            return bool(read(row.value[0]) <= cell <= read(row.value[1]))  # type: ignore[index]
        values = [read(value) for value in row.value] if op is Op.IN else [read(row.value)]  # type: ignore[union-attr]
        if op in (Op.EQ, Op.IN):
            return any(cell == value or (cell != cell and value != value) for value in values)
        if op in ORDERED:
            return ORDERED[op](cell, values[0])
        if op is Op.REGEX:
            flags = re.DOTALL | (re.IGNORECASE if row.case is False else 0)
            return re.fullmatch(str(row.value), cell, flags) is not None
        return {
            Op.CONTAINS: values[0] in cell,
            Op.STARTS: cell.startswith(values[0]),
            Op.ENDS: cell.endswith(values[0]),
        }[op]

    def expected(self, call: Call, *, sorted_too: bool = True) -> list[Row]:
        """Return the rows that a call is about, in order."""
        join = all if call.match == "all" else any
        rows = [row for row in self.rows[call.object] if not call.rows or join(self.holds(f, row) for f in call.rows)]
        if call.time is not None:
            since, until = call.time.since, call.time.until
            rows = [row for row in rows if since is None or micros(since) <= row.at * 1000]
            rows = [row for row in rows if until is None or row.at * 1000 < micros(until)]
        if sorted_too and len(call.sort) == 1 and call.sort[0].column == "timestamp":
            return sorted(rows, key=lambda row: (row.at, row.series), reverse=call.sort[0].descending)
        for sort in reversed(call.sort if sorted_too else []):
            keyed = [(row.value if sort.column == "value" else row.cell(sort.column), row) for row in rows]
            valued = [pair for pair in keyed if pair[0] is not None and pair[0] == pair[0]]
            valued.sort(key=lambda pair: pair[0], reverse=sort.descending)
            rows = [row for _, row in (*valued, *(pair for pair in keyed if pair[0] is None or pair[0] != pair[0]))]
        return rows

    async def differs(self, call: Call) -> str:
        """Make a call, and say what differs; empty if nothing does."""
        driver, compiled = self.rig.driver, None
        await driver.describe_object(call.object)
        if call.rows:
            try:
                compiled = await driver.compile_filter(
                    FilterRequest(object=call.object, rows=call.rows, match=call.match)
                )
            except FilterNotSupportedError as error:
                self.answers["refused"] += 1
                united = call.match == "any" and len(call.rows) > 1
                due = [row for row in call.rows if row.op is Op.REGEX and (united or not str(row.value))]
                return "" if due else f"refused: {error.message}"
        self.answers[call.kind] += 1
        rows = self.expected(call, sorted_too=call.kind in ("page", "walk"))
        names = ["timestamp", "value", "series", *self.columns(call.object)]
        if call.kind == "count":
            count = await driver.count_rows(CountRequest(object=call.object, filter=compiled, time=call.time))
            return "" if count == len(rows) else f"count {count}, expected {len(rows)}"
        if call.kind == "export":
            lines: list[Any] = []
            request = ExportRequest(object=call.object, filter=compiled, time=call.time, form=ExportForm.ROWS)
            async with aclosing(driver.export_rows(request)) as parts:
                async for part in parts:
                    lines += map(json.loads, part.data.splitlines())
            wanted = [
                {"timestamp": row.cell("timestamp"), "value": row.cell("value"), "series": row.series}
                | ({"labels": labels} if (labels := self._labels(call.object, row)) else {})
                for row in rows
            ]
            return "" if lines == wanted else f"lines {lines[:3]}, expected {wanted[:3]}"
        if call.kind == "summary":
            request_summary = SummaryRequest(object=call.object, column=call.column, filter=compiled, time=call.time)
            summary = await driver.summarize_column(request_summary)
            cells = [cell for row in rows if (cell := row.cell(call.column)) is not None]
            got = (summary.rows, summary.distinct, summary.missing)
            due_figures = (len(rows), len({*cells}), len(rows) - len(cells))
            if "missing" in summary.approximate:
                got, due_figures = got[:1], due_figures[:1]
            return "" if got == due_figures else f"summary {got}, expected {due_figures}"
        return await self._pages(call, compiled, rows, names)

    def _labels(self, name: str, row: Row) -> dict[str, str]:
        return {label: text for label, text in row.labels.items() if label != "__name__" or "*" in name}

    async def _pages(self, call: Call, compiled: Any, rows: list[Row], names: list[str]) -> str:
        first = call.offset if call.kind == "page" else 0
        cursor, seen = None, list[Any]()
        while True:
            page = await self.rig.driver.fetch_page(
                PageRequest(
                    object=call.object,
                    filter=compiled,
                    time=call.time,
                    sort=call.sort,
                    offset=first + len(seen),
                    limit=max(call.limit, 50) if call.kind == "walk" else call.limit,
                    columns=names,
                    cursor=cursor,
                )
            )
            if page.total is not None and not (
                page.total == len(rows) or (not page.total_exact and page.total <= len(rows))
            ):
                return f"total {page.total} ({page.total_exact}), expected {len(rows)}"
            seen += page.cells
            cursor = page.next
            if call.kind == "page" or cursor is None:
                break
        due = [[row.cell(name) for name in names] for row in rows]
        due = due[first : first + call.limit] if call.kind == "page" else due
        if (cursor is not None) is not (call.kind == "page" and len(due) > 0 and first + len(due) < len(rows)):
            return f"next {cursor!r} after {first + len(due)} of {len(rows)}"
        at = next(
            (at for at, (one, other) in enumerate(zip(seen, due, strict=False)) if one != other),
            min(len(seen), len(due)),
        )
        return (
            ""
            if seen == due
            else f"row {at} of {len(seen)}: {seen[at : at + 1]}, expected {due[at : at + 1]} of {len(due)}"
        )


def micros(value: Any) -> int:
    """Return an instant as microseconds since 1970."""
    return (datetime.fromisoformat(str(value)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
