"""Rows of a scan: what is evaluated here is what plain Python says, and a driver of nothing else is a whole one."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman_api import (
    CellRequest,
    CountRequest,
    Description,
    ExportRequest,
    Filter,
    FilterRequest,
    Object,
    ObjectList,
    Page,
    PageRequest,
    QueryError,
    RowKey,
    Server,
    Sort,
    hookimpl,
)
from dragoman_api import Operator as Op
from dragoman_api.cells import MISSING, Json
from dragoman_api.columns import ColumnKind, Role, TimeColumn
from dragoman_api.errors import ObjectChangedError, ObjectNotFoundError, RowNotFoundError
from dragoman_api.filters import TimeRange
from dragoman_api.json_text import encode
from dragoman_api.kit.row_evaluation import TextOrder, ValueKind, operators_of, row_test, sort_key
from dragoman_api.kit.scan import ScannedRow, ScannedRows, sampled_columns, scanned_column
from dragoman_api.summaries import SummaryRequest
from dragoman_api.testing import DriverConformance, Target

# the model: every operator on a value, said in another way ------------------------------------------------------------

TEXTS = ["", "a", "A", "ab", "\uffff", "\U00010000", "é", "z"]
STORED = {
    ValueKind.TEXT: TEXTS,
    ValueKind.NUMBER: [-1, 0, 0.5, Decimal("0.50"), 2**70, 3],
    ValueKind.BOOLEAN: [True, False],
    ValueKind.TIMESTAMP: ["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00.5Z"],
    ValueKind.BINARY: [b"", b"\0", b"\xff", b"\0\xff"],
}
INSTANTS = dict(zip(STORED[ValueKind.TIMESTAMP], (0, 0, 0.5), strict=True))
ORDERS = {TextOrder.CODE_POINTS: lambda text: [*map(ord, text)], TextOrder.UTF16: lambda text: text.encode("utf-16-be")}


@st.composite
def cases(draw):
    kind, order = draw(st.sampled_from(list(ValueKind))), draw(st.sampled_from(list(TextOrder)))
    op = draw(st.sampled_from(operators_of(kind, order)))
    one = st.sampled_from(STORED[kind])
    operand = {
        Op.IN: st.lists(one.filter(lambda value: value != ""), min_size=1, max_size=3),
        Op.NOT_IN: st.lists(one.filter(lambda value: value != ""), min_size=1, max_size=3),
        Op.BETWEEN: st.tuples(one, one).map(list),
    }.get(op, one)
    row = Filter("c", op, draw(operand), case=draw(st.sampled_from([None, True, False])))
    elements = st.sampled_from([None, MISSING, *STORED[kind], *STORED[ValueKind.TEXT], 7, b"x"])
    return kind, order, row, draw(elements | st.lists(elements.filter(lambda value: value is not MISSING), max_size=3))


def says(kind, order, row, value):
    elements = value if isinstance(value, list) else [value]
    elements = [element for element in elements if element is not None and element is not MISSING]
    if row.op in (Op.NULL, Op.NOT_NULL):
        return (elements != []) == (row.op is Op.NOT_NULL)
    opposite = {Op.NE: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_CONTAINS: Op.CONTAINS}.get(row.op)
    if opposite is not None:
        return not says(kind, order, Filter("c", opposite, row.value, case=row.case), value)
    python = {
        ValueKind.TEXT: str, ValueKind.NUMBER: (int, float, Decimal), ValueKind.BOOLEAN: bool,
        ValueKind.TIMESTAMP: str, ValueKind.BINARY: bytes,
    }[kind]  # fmt: skip
    fitting = [
        element
        for element in elements
        if isinstance(element, python) and isinstance(element, bool) == (kind is ValueKind.BOOLEAN)
    ]
    if kind is ValueKind.TIMESTAMP:
        fitting = [element for element in fitting if element in INSTANTS]
    return any(matches(kind, order, row, element) for element in fitting)


def matches(kind, order, row, element):
    operands = row.value if isinstance(row.value, list) else [row.value]
    if row.op in (Op.GT, Op.GE, Op.LT, Op.LE, Op.BETWEEN):
        by = {ValueKind.TEXT: ORDERS[order], ValueKind.TIMESTAMP: INSTANTS.get}.get(kind, lambda value: value)
        at, bounds = by(element), [by(operand) for operand in operands]
        return {
            Op.GT: at > bounds[0], Op.GE: at >= bounds[0], Op.LT: at < bounds[0], Op.LE: at <= bounds[0],
            Op.BETWEEN: bounds[0] <= at <= bounds[-1],
        }[row.op]  # fmt: skip
    if row.op in (Op.EMPTY, Op.NOT_EMPTY):
        return (element == "") == (row.op is Op.EMPTY)
    if kind is ValueKind.TIMESTAMP:
        return any(INSTANTS[element] == INSTANTS[operand] for operand in operands)
    pattern = row.op in (Op.CONTAINS, Op.STARTS, Op.ENDS)
    if isinstance(element, str) and not (row.case if row.case is not None else not pattern):
        element, operands = element.casefold(), [operand.casefold() for operand in operands]
    if not pattern:
        return any(element == operand for operand in operands)
    escaped = re.escape(operands[0])
    start, end = (b"\\A", b"\\Z") if isinstance(element, bytes) else ("\\A", "\\Z")
    expression = {Op.STARTS: start + escaped, Op.ENDS: escaped + end, Op.CONTAINS: escaped}[row.op]
    return re.search(expression, element, re.DOTALL) is not None


@given(cases())
def test_every_operator_means_on_a_value_what_plain_python_says(case):
    kind, order, row, value = case
    assert row_test(row, kind, order)(value) is says(kind, order, row, value)


@given(st.lists(st.sampled_from([None, MISSING, 5, *TEXTS]), max_size=6), st.sampled_from(list(TextOrder)))
def test_texts_come_in_the_order_of_the_server(values, order):
    keyed = [(sort_key(value, ValueKind.TEXT, order), value) for value in values]
    ordered = [value for key, value in sorted(((key, value) for key, value in keyed if key is not None))]
    assert ordered == sorted((value for value in values if isinstance(value, str)), key=ORDERS[order])
    assert {value for key, value in keyed if key is None} <= {None, MISSING, 5}


@pytest.mark.parametrize(
    ("op", "operand", "highest", "lowest", "none"),
    [
        (">", 10**400, True, False, False),
        ("<=", 0, False, True, False),
        ("between", [0, 10**400], False, False, False),
        ("=", 0, False, False, False),
        ("!=", 0, True, True, True),
    ],
)
def test_infinity_lies_beyond_all_numbers_and_nan_is_compared_with_none(op, operand, highest, lowest, none):
    test = row_test(Filter("n", op, operand), ValueKind.NUMBER)
    assert [test(float(text)) for text in ("inf", "-inf", "nan")] == [highest, lowest, none]
    keys = [sort_key(value, ValueKind.NUMBER, TextOrder.UTF16) for value in (2**70, float("inf"), float("-inf"), 0.1)]
    assert sorted(keys) == [float("-inf"), Decimal("0.1"), 2**70, float("inf")]
    assert sort_key(float("nan"), ValueKind.NUMBER, TextOrder.UTF16) is None


def test_a_regular_expression_is_refused_with_what_to_use_instead():
    with pytest.raises(ValueError, match=r"may take forever.* use 'contains', 'starts' or 'ends'"):
        row_test(Filter("t", "regex", "a+"), ValueKind.TEXT)


def test_without_an_order_of_texts_none_is_compared():
    assert not {Op.GT, Op.BETWEEN} & {*operators_of(ValueKind.TEXT)}
    with pytest.raises(ValueError, match="is not evaluated here"):
        row_test(Filter("c", ">", "b"), ValueKind.TEXT)


# a driver that has a scan and nothing else ----------------------------------------------------------------------------

ROWS = [
    {
        "id": f"r{number:02}", "n": number % 7 if number % 5 else None,
        "price": [0.5, 1.25, 2**63][number % 3], "at": f"2024-01-01T00:00:{number:02}Z",
        "text": "Tea"[: 1 + number % 3], "tags": ["a", number], "on": number % 2 == 0,
    } | ({"more": "x" * 20_000} if number == 3 else {})
    for number in range(40)
]  # fmt: skip


class Listed(ScannedRows):
    """The rows, one after another."""

    read = 0

    @hookimpl
    async def connect(self, profile, http):
        return Server("Listed", "1")

    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[Object("rows", rows=len(ROWS))])

    @hookimpl
    async def describe_object(self, name):
        if name != "rows":
            raise ObjectNotFoundError(f"there is no object {name!r}")
        return Description(object=name, columns=sampled_columns(ROWS, key="id", edit="it is read-only"))

    async def scan(self, name, revision):
        for row in ROWS:
            self.read += 1
            yield ScannedRow(RowKey(name, row["id"]), row)


class TestScan(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self):
        capabilities = ["browse", "sort", "filter", "export"]
        hooks = [
            "connect", "list_objects", "describe_object", "compile_filter", "fetch_page", "fetch_cell", "count_rows",
            "summarize_column", "export_rows",
        ]  # fmt: skip
        manifest = {"hooks": hooks, "capabilities": capabilities}
        return Target(driver=Listed(), object="rows", rows=len(ROWS), tells_missing=True, manifest=manifest)


async def test_a_cell_is_of_one_row_and_of_a_column_that_there_is():
    driver = Listed()
    assert await driver.fetch_cell(CellRequest(key=RowKey("rows", "r03"), column="text")) == "T"
    with pytest.raises(QueryError, match="nope"):
        await driver.fetch_cell(CellRequest(key=RowKey("rows", "r03"), column="nope"))
    with pytest.raises(RowNotFoundError):
        await driver.fetch_cell(CellRequest(key=RowKey("rows", "r03", routing="elsewhere"), column="text"))


async def test_a_stray_value_ends_no_summary():
    class Mixed(Listed):
        async def scan(self, name, revision):
            for value in (1, "1", [1], None, 3):
                yield ScannedRow(RowKey(name, "a"), {"n": value})

    summary = await Mixed().summarize_column(SummaryRequest(object="rows", column="n"))
    assert (summary.rows, summary.missing, summary.distinct, summary.maximum) == (5, 1, 4, 3)


async def test_a_page_without_a_total_reads_no_further_than_its_last_row():
    driver = Listed()
    page = await driver.fetch_page(PageRequest(object="rows", offset=5, limit=10, total=False))
    assert ([key.id for key in page.keys], page.total) == ([f"r{number:02}" for number in range(5, 15)], None)
    assert driver.read == 15


async def test_a_scan_that_looks_up_times_gets_the_range_of_each_read_and_may_yield_more():
    """A server that knows the time of a row only roughly yields rows beside the range; no read shows them."""

    class Timed(Listed):
        ranges: list[TimeRange | None] = []  # noqa: RUF012 - of this test

        @hookimpl
        async def describe_object(self, name):
            columns = [scanned_column("id", ColumnKind.TEXT, role=Role.KEY), scanned_column("at", ColumnKind.TIMESTAMP)]
            return Description(object=name, columns=columns, time=TimeColumn(column="at"))

        async def scan_within(self, name, revision, time, texts):
            self.ranges.append(time)
            for hour in (9, 10, 11):
                yield ScannedRow(RowKey(name, f"r{hour}"), {"id": f"r{hour}", "at": f"2026-01-01T{hour:02}:00:00Z"})

    driver = Timed()
    time = TimeRange(column="at", since="2026-01-01T10:00:00Z", until="2026-01-01T11:00:00Z")
    page = await driver.fetch_page(PageRequest(object="rows", time=time))
    assert [key.id for key in page.keys] == ["r10"]
    assert await driver.count_rows(CountRequest(object="rows", time=time)) == 1
    parts = [part async for part in driver.export_rows(ExportRequest(object="rows", time=time))]
    assert sum(part.rows for part in parts) == 1
    assert await driver.count_rows(CountRequest(object="rows")) == 3
    assert driver.ranges == [time, time, time, None]


@pytest.mark.parametrize(
    ("rows", "match", "texts"),
    [
        ([Filter("id", "=", "r03"), Filter("n", ">", 1)], "all", {"id": "r03"}),
        ([Filter("id", "=", "r03")], "any", {"id": "r03"}),
        ([Filter("id", "=", "r03"), Filter("id", "=", "r04")], "any", {}),
        ([Filter("id", "=", "r03", case=False)], "all", {}),
        ([Filter("id", "!=", "r03"), Filter("n", "=", "3")], "all", {}),
    ],
)
async def test_a_scan_that_looks_up_texts_gets_those_that_every_row_must_have(rows, match, texts):
    class Narrowed(Listed):
        narrowed: list[Any] = []  # noqa: RUF012 - of this test

        def scan_within(self, name, revision, time, texts):
            self.narrowed.append(texts)
            return self.scan(name, revision)

    driver = Narrowed()
    where = await driver.compile_filter(FilterRequest(object="rows", rows=rows, match=match))
    count = await driver.count_rows(CountRequest(object="rows", filter=where))
    assert driver.narrowed[-1] == texts
    assert count == await Listed().count_rows(CountRequest(object="rows", filter=where))


@pytest.mark.parametrize("limit", [1, 7, 40])
@pytest.mark.parametrize("descending", [False, True])
async def test_sorted_pages_tile_the_rows_with_nulls_last(limit, descending, monkeypatch):
    monkeypatch.setattr("dragoman_api.kit.scan._SPARE", 0)
    sort = [Sort("n", descending=descending), Sort("id", descending=True)]
    rows = []
    while len(rows) < len(ROWS):
        page: Page = await Listed().fetch_page(PageRequest(object="rows", sort=sort, offset=len(rows), limit=limit))
        rows += [(row["n"], row.key.id) for row in page.rows]
    expected = sorted(((row["n"], row["id"]) for row in ROWS), key=lambda row: row[1], reverse=True)
    expected.sort(key=lambda row: (0 if row[0] is None else row[0]) * (-1 if descending else 1))
    assert rows == [*(row for row in expected if row[0] is not None), *(row for row in expected if row[0] is None)]


async def test_a_compiled_filter_reads_columns_once_and_is_refused_when_its_column_changed():
    class Changing(Listed):
        rows, described = ROWS, 0

        @hookimpl
        async def describe_object(self, name):
            self.described += 1
            return Description(object=name, columns=sampled_columns(self.rows, key="id"))

    driver = Changing()
    requests = [FilterRequest(object="rows", rows=[Filter("n", ">", number)]) for number in range(3)]
    wheres = [await driver.compile_filter(request) for request in requests]
    assert driver.described == 1
    assert await driver.count_rows(CountRequest(object="rows", filter=wheres[0])) > 0
    for column in ({}, {"n": [1]}):  # gone, or without an order
        driver.rows = [{"id": "a"} | column]
        with pytest.raises(ObjectChangedError, match="changed since the filter was compiled"):
            await driver.count_rows(CountRequest(object="rows", filter=wheres[0]))


async def test_a_bounded_scan_refuses_what_would_need_more_rows():
    driver = Listed()
    driver.scan_most = 20
    assert len((await driver.fetch_page(PageRequest(object="rows", limit=20, total=False))).cells) == 20
    for call in (driver.count_rows(CountRequest(object="rows")), driver.fetch_page(PageRequest(object="rows"))):
        with pytest.raises(QueryError, match="more than the 20 rows") as caught:
            await call
        assert caught.value.code == "scan-too-long"


async def test_a_filter_of_another_object_is_refused_and_keeps_every_digit_of_its_operands():
    driver = Listed()
    filters = [Filter("price", "=", 2**63), Filter("id", "in", [row["id"] for row in ROWS])]
    where = await driver.compile_filter(FilterRequest(object="rows", rows=filters))
    assert await driver.count_rows(CountRequest(object="rows", filter=where)) == len(ROWS) // 3
    with pytest.raises(QueryError, match="compiled for"):
        await driver.count_rows(CountRequest(object="rows", filter=replace(where, object="others")))


async def test_an_export_writes_numbers_with_their_digits_and_nothing_for_what_is_missing(monkeypatch):
    rows = [ROWS[0], ROWS[1] | {"price": Decimal("1.10")}, *ROWS[2:]]
    monkeypatch.setattr(f"{__name__}.ROWS", rows)
    lines = b"".join([part.data async for part in Listed().export_rows(ExportRequest(object="rows"))]).splitlines()
    assert lines[1].decode() == encode(rows[1])
    assert b'"price":1.10' in lines[1]
    assert [b'"more"' in line for line in lines].count(True) == 1


def test_columns_of_samples_have_operators_by_kind():
    columns = {column.name: column for column in sampled_columns(ROWS, key="id")}
    assert columns["tags"].kind is ColumnKind.JSON
    assert (columns["tags"].operators, columns["tags"].sortable) == ((), False)
    assert {Op.GT, Op.CONTAINS, Op.EMPTY} <= {*columns["text"].operators}
    assert columns["id"].is_key
    assert Json("1") not in columns
