"""Any filter over any documents either finds what plain Python finds, or is refused: never more, never all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from drivers.elasticsearch.rig import Rig, on_fake, on_server
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_api import Filter, FilterNotSupportedError
from dragoman_api import Operator as Op

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

PROPERTIES: dict[str, Any] = {
    "k": {"type": "keyword"},
    "t": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
    "i": {"type": "integer"},
    "f": {"type": "double"},
    "b": {"type": "boolean"},
    "d": {"type": "date"},
    "o": {"properties": {"k": {"type": "keyword"}}},
    "n": {"type": "nested", "properties": {"k": {"type": "keyword"}, "i": {"type": "integer"}}},
    "geo": {"type": "geo_point"},
}
WORDS = st.sampled_from(["", "a", "A", "ab", "Ab*", "b?", "a b", "\\", "é", "true", "12", "a,b"])
NUMBERS = st.sampled_from([-3, 0, 1, 2, 7, 2**31 - 1])
DAYS = st.sampled_from(["2024-01-05", "2024-01-31T23:59:59Z", "2024-02-01", "2023-12-31"])
FLOATS = st.sampled_from([-1.5, 0.0, 0.1, 2.0, 1e10])


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values | st.lists(values, max_size=2)


ELEMENT = st.fixed_dictionaries({}, optional={"k": WORDS, "i": NUMBERS})
DOCUMENT = st.fixed_dictionaries(
    {},
    optional={
        "k": some(WORDS), "t": some(WORDS), "i": some(NUMBERS), "f": some(FLOATS), "b": some(st.booleans()),
        "d": some(DAYS), "o": st.fixed_dictionaries({}, optional={"k": some(WORDS)}),
        "n": st.lists(ELEMENT, max_size=3),
    },
)  # fmt: skip
# Values that fit their column, and now and then one that does not.
FITTING = {
    **dict.fromkeys(["k", "t", "o.k", "n.k"], WORDS),
    **dict.fromkeys(["i", "n.i"], NUMBERS),
    "f": FLOATS,
    "b": st.booleans(),
    "d": DAYS | st.sampled_from(["2024-01", "2024"]),
    "_id": st.sampled_from(["0", "1", "2"]),
    "_index": WORDS,
    **dict.fromkeys(["n", "geo", "nope"], WORDS),
}
ODD = st.none() | WORDS | NUMBERS | FLOATS | st.booleans()
COLUMN = st.sampled_from(["k", "t", "i", "f", "b", "d", "o.k", "n.k", "n.i"]) | st.sampled_from(list(FITTING))


@st.composite
def filter_row(draw: st.DrawFn) -> Filter:
    column, op = draw(COLUMN), draw(st.sampled_from(list(Op)))
    fitting = FITTING[column]
    value: Any = draw(st.lists(fitting, min_size=2, max_size=2) if op in (Op.IN, Op.NOT_IN, Op.BETWEEN) else fitting)
    if draw(st.integers(0, 9)) == 0:
        value = draw(ODD | st.lists(ODD, max_size=2))
    group = draw(st.none() | st.sampled_from(["1", "1", "2"])) if column.startswith("n.") else None
    return Filter(column, op, value, group=group, case=draw(st.none() | st.booleans()))


def flat(value: object) -> list[Any]:
    return [] if value is None else [each for each in value if each is not None] if isinstance(value, list) else [value]


def day(text: str) -> tuple[str, str]:
    """Return the first and the last instant a date stands for."""
    whole = {4: "-01-01T00:00:00Z", 7: "-01T00:00:00Z", 10: "T00:00:00Z"}.get(len(text), "")
    last = {4: "-12-31T23:59:59Z", 7: "-31T23:59:59Z", 10: "T23:59:59Z"}.get(len(text), "")
    return text + whole, text + last or text


def compare(column: str, op: Op, cell: Any, value: Any, *, fold: bool) -> bool:
    """Say what one value of a document means for one value of a row, in plain Python."""
    kind = {"i": "number", "f": "number", "n.i": "number", "b": "boolean", "d": "date"}.get(column, "text")
    if kind == "date":
        low, high = day(str(value))
        moment = day(cell)[0]
        return {
            Op.EQ: low <= moment <= high, Op.GT: moment > high, Op.GE: moment >= low, Op.LT: moment < low,
            Op.LE: moment <= high,
        }[op]  # fmt: skip
    if kind == "number":
        left, right = float(cell), float(value)
    elif kind == "boolean":
        left, right = cell, str(value).lower() == "true"
    else:
        left, right = str(cell), str(value).lower() if isinstance(value, bool) else str(value)
        if fold:
            left, right = (text.translate(str.maketrans("ABC", "abc")) for text in (left, right))
    tests: dict[Op, Callable[[Any, Any], bool]] = {
        Op.EQ: lambda a, b: a == b, Op.GT: lambda a, b: a > b, Op.GE: lambda a, b: a >= b, Op.LT: lambda a, b: a < b,
        Op.LE: lambda a, b: a <= b, Op.CONTAINS: lambda a, b: b in a, Op.STARTS: lambda a, b: a.startswith(b),
        Op.ENDS: lambda a, b: a.endswith(b),
    }  # fmt: skip
    return tests[op](left, right)


def given_values(row: Filter) -> list[Any]:
    if isinstance(row.value, str):
        return [part.strip() for part in row.value.split(",")]
    return row.value if isinstance(row.value, list) else [row.value]


def positive(row: Filter, cells: list[Any]) -> bool:
    """Tell whether some value satisfies a row, its negation left aside."""
    fold = row.case is not True if row.op in (Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS) else row.case is False
    if row.op in (Op.NULL, Op.NOT_NULL):
        return bool(cells)
    if row.op in (Op.EMPTY, Op.NOT_EMPTY):
        return ("" in cells) if row.op is Op.EMPTY else bool(cells) and "" not in cells
    if row.op in (Op.IN, Op.NOT_IN):
        return any(compare(row.column, Op.EQ, cell, value, fold=fold) for cell in cells for value in given_values(row))
    if row.op is Op.BETWEEN:
        low, high = given_values(row)
        return any(
            compare(row.column, Op.GE, cell, low, fold=False) and compare(row.column, Op.LE, cell, high, fold=False)
            for cell in cells
        )
    op = {Op.NE: Op.EQ, Op.NOT_CONTAINS: Op.CONTAINS}.get(row.op, row.op)
    return any(compare(row.column, op, cell, row.value, fold=fold) for cell in cells)


NEGATED = (Op.NE, Op.NOT_IN, Op.NOT_CONTAINS, Op.NULL)


def cells_of(document: dict[str, Any], column: str, number: int, index: str) -> list[Any]:
    if column == "_id":
        return [str(number)]
    if column == "_index":
        return [index]
    if column == "o.k":
        return flat(document.get("o", {}).get("k"))
    return flat(document.get(column))


def holds(rows: list[Filter], document: dict[str, Any], number: int, index: str, *, match: str) -> bool:
    """Evaluate a whole filter over one document."""
    join = all if match == "all" else any
    results, done = [], set()
    for at, row in enumerate(rows):
        leaf = row.column.partition(".")[2] if row.column.startswith("n.") else ""
        mates = [
            other for other, each in enumerate(rows)
            if leaf and row.group is not None and each.group == row.group and each.column.startswith("n.")
        ]  # fmt: skip
        if at in done:
            continue
        if len(mates) > 1:
            done.update(mates)
            results.append(
                any(
                    join(
                        positive(rows[mate], flat(element.get(rows[mate].column[2:]))) is not (rows[mate].op in NEGATED)
                        for mate in mates
                    )
                    for element in document.get("n", [])
                )
            )
            continue
        if leaf:
            found = any(positive(row, flat(element.get(leaf))) for element in document.get("n", []))
        else:
            found = positive(row, cells_of(document, row.column, number, index))
        results.append(found is not (row.op in NEGATED))
    return join(results)


def check(connection: AbstractAsyncContextManager[Rig], *, examples: int) -> None:
    """Hold the law over generated documents and rows on one connection."""
    outcomes = {"ran": 0, "refused": 0}

    async def run(es: Rig, documents: list[dict[str, Any]], asked: list[tuple[list[Filter], str]]) -> None:
        name = await es.index(PROPERTIES, documents)
        try:
            for rows, match in asked:
                await ask(es, name, documents, rows, match)
        finally:
            await es.remove()
            es.made.clear()

    async def ask(es: Rig, name: str, documents: list[dict[str, Any]], rows: list[Filter], match: str) -> None:
        try:
            found = await es.ids(name, *rows, match=match)
        except FilterNotSupportedError as refusal:
            outcomes["refused"] += bool(refusal.details["reason"])
            return
        outcomes["ran"] += 1
        numbers = [at for at, document in enumerate(documents) if holds(rows, document, at, name, match=match)]
        assert found == sorted(map(str, numbers)), (rows, match, documents)

    with anyio.from_thread.start_blocking_portal() as portal, portal.wrap_async_context_manager(connection) as es:

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(
            st.lists(DOCUMENT, min_size=1, max_size=6),
            st.lists(
                st.tuples(st.lists(filter_row(), min_size=1, max_size=3), st.sampled_from(["all", "any"])),
                min_size=2,
                max_size=4,
            ),
        )
        def law(documents: list[dict[str, Any]], asked: list[tuple[list[Filter], str]]) -> None:
            portal.call(run, es, documents, asked)

        law()
    assert min(outcomes.values()) > examples / 5, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8.19.21", "7.10.2"])
def test_a_filter_never_widens(version: str) -> None:
    """Any rows over any documents find what plain Python finds, or are refused with a reason."""
    check(on_fake(version), examples=70)


@pytest.mark.live("elasticsearch")
@pytest.mark.timeout(180)  # an index per example, on a machine that may be busy
def test_a_filter_never_widens_on_a_server(live_server: dict[str, Any]) -> None:
    check(on_server(live_server), examples=20)
