"""A page and a console's answer are Arrow tables for the libraries that people use: pandas, polars, DuckDB."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest

from dragoman_api import HttpRequest
from dragoman_api.cells import MISSING, CutText, Json
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.console import Answer, AnswerKind
from dragoman_api.errors import ConfigurationError, UnsupportedOperationError
from dragoman_api.grid import Page

K = ColumnKind
COLUMNS = [
    Column(name="n", type="long", kind=K.INTEGER), Column(name="x", type="double", kind=K.FLOAT),
    Column(name="t", type="text", kind=K.TEXT), Column(name="at", type="date", kind=K.TIMESTAMP),
    Column(name="j", type="object", kind=K.JSON), Column(name="b", type="binary", kind=K.BINARY),
]  # fmt: skip
CELLS = [
    [2**63 - 1, 0.1, "a", "2024-01-01T00:00:00.000000001Z", Json('{"a":1.10}'), b"\0\xff"],
    [None, MISSING, None, None, None, None],
    ["12", Decimal("0.1234567890123456789"), Json('["a"]'), 1700000000000, "plain", "AP8="],
    [2**63, 10**400, CutText("long..."), "x", Json("[1]"), Json("[]")],
]
PAGE = Page(columns=COLUMNS, cells=CELLS)
ANSWER = Answer(kind=AnswerKind.GRID, status=200, request=HttpRequest("GET", "/"), page=PAGE)
NUMBERS = [2**63 - 1, None, None, None]


def table(page):
    return pa.RecordBatchReader.from_stream(page).read_all()


def test_every_cell_is_exact_in_its_column_or_stands_aside():
    found = table(PAGE)
    assert found.column("n").to_pylist() == NUMBERS
    assert found.column("x").to_pylist() == [0.1, None, None, None]
    assert found.column("t").to_pylist() == ["a", None, None, None]
    assert found.column("at").cast(pa.int64()).to_pylist() == [1_704_067_200_000_000_001, None, None, None]
    assert found.column("j").to_pylist() == ['{"a":1.10}', None, '"plain"', "[1]"]
    assert found.column("b").to_pylist() == [b"\0\xff", None, b"\0\xff", None]
    aside = [each and json.loads(each, parse_float=str) for each in found.column("_misfits").to_pylist()]
    assert aside == [
        None,
        None,
        {"n": "12", "x": "0.1234567890123456789", "t": ["a"], "at": 1700000000000},
        {"n": 2**63, "x": 10**400, "t": "long...", "at": "x", "b": []},
    ]


def test_a_column_that_holds_arrays_here_is_one_of_lists_if_the_driver_says_that_it_may():
    columns = [
        Column(name="t", type="text", kind=K.TEXT, multiple=True),
        Column(name="v", type="long", kind=K.INTEGER, multiple=True),
        Column(name="o", type="long", kind=K.INTEGER, multiple=True), Column(name="s", type="text", kind=K.TEXT),
    ]  # fmt: skip
    cells = [
        [Json('["a","b"]'), Json("[1]"), 1, Json('["x"]')], ["c", 2, None, None], [None, 3, MISSING, None],
        [CutText('["long..."]'), Json("[4]"), 5, "y"], [Json("[]"), 7, 8, None],
    ]  # fmt: skip
    found = table(Page(columns=columns, cells=cells))
    assert found.schema.types[:4] == [pa.list_(pa.string()), pa.list_(pa.int64()), pa.int64(), pa.string()]
    assert found.column("t").to_pylist() == [["a", "b"], ["c"], None, None, []]
    assert found.column("v").to_pylist() == [[1], [2], [3], [4], [7]]
    aside = [each and json.loads(each) for each in found.column("_misfits").to_pylist()]
    assert aside == [{"v": [1], "s": ["x"]}, None, None, {"t": '["long..."]', "v": [4]}, None]


@pytest.mark.parametrize("result", [PAGE, ANSWER])
def test_polars_pandas_and_duckdb_take_it(result):
    import duckdb
    import pandas as pd
    import polars as pl

    assert pl.DataFrame(result)["n"].to_list() == NUMBERS
    assert pl.from_arrow(result).struct.unnest().equals(pl.DataFrame(result))  # polars makes one series of a stream
    frame = pd.DataFrame.from_arrow(result)
    assert frame["t"].tolist()[0] == "a"
    assert list(frame.columns) == [*(column.name for column in COLUMNS), "_misfits"]
    assert duckdb.sql("select n from result where t = 'a'").fetchall() == [(2**63 - 1,)]


def test_a_schema_is_there_without_rows():
    schema = pa.schema(Page(columns=COLUMNS))
    assert schema == table(PAGE).schema == pa.schema(ANSWER)
    assert str(schema.field("at").type) == "timestamp[ns, tz=UTC]"
    assert table(Page(columns=COLUMNS)).num_rows == table(Page(columns=[])).num_rows == 0


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        ([1, None, -3], pa.int64()), ([1, 2**64 - 1], pa.uint64()), ([1, 1.5], pa.float64()), ([True], pa.bool_()),
        (["a", MISSING], pa.string()), ([None], pa.int64()),
    ],
)  # fmt: skip
def test_a_column_without_a_type_has_one_that_all_its_cells_fit(cells, type_):
    """The columns of an aggregation, which no mapping describes."""
    found = table(Page(columns=[Column(name="c", type="")], cells=[[cell] for cell in cells]))
    assert found.schema.field("c").type == type_
    assert found.column("c").to_pylist() == [None if cell is MISSING else cell for cell in cells]
    assert found.column("_misfits").null_count == len(cells)


def test_a_column_without_a_type_and_of_many_kinds_is_json():
    found = table(Page(columns=[Column(name="c", type="")], cells=[["a"], [1], [Json("[1.10]")]]))
    assert found.column("c").to_pylist() == ['"a"', "1", "[1.10]"]
    assert found.schema.field("c").metadata[b"values"] == b"json"


def test_an_answer_without_rows_says_so():
    with pytest.raises(UnsupportedOperationError, match="without rows"):
        pa.RecordBatchReader.from_stream(Answer(kind=AnswerKind.TEXT, status=200, request=ANSWER.request, text="x"))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dragoman_api.arrow.pages", None)
    with pytest.raises(ConfigurationError, match="pyarrow"):
        PAGE.__arrow_c_stream__()
