"""Files of Parquet to import: each value as JSON takes it, or its row is at fault."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pytest
from pyarrow import parquet

from dragoman.imports.parquet import ParquetRows
from dragoman_api.errors import ConfigurationError


def told(rows):
    return [(row.number, row.data, row.fault) for row in rows]


def parquet_rows(tmp_path, table):
    parquet.write_table(table, tmp_path / "a.parquet")
    with closing(ParquetRows(tmp_path / "a.parquet")) as rows:
        return list(rows)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (pa.array([316_398_960_000_000_000, 0]).cast(pa.timestamp("us")), "an instant before the year 1 or after 9999"),
        (pa.array([[316_398_960_000_000], None]).cast(pa.list_(pa.timestamp("ms"))), "an instant before the year 1"),
        (pa.array([10_000_000, 0], pa.int32()).cast(pa.date32()), "date value out of range"),
        (pa.array([[float("nan"), 1.0], [1.0]]), "nan in an array or object, and JSON has no such number"),
    ],
)
def test_a_value_of_parquet_that_no_change_can_hold_is_a_fault_of_its_row_and_no_other_value(tmp_path, values, reason):
    """A year that no text spells was a bare number, which a server takes for another instant; NaN was null."""
    table = pa.table({"n": pa.array([1, 2]), "v": values})
    first, second = parquet_rows(tmp_path, table)
    assert reason in first.fault
    assert (first.number, second.number, second.fault) == (1, 2, "")
    assert first.data[0] == 1  # what can be read stays, for the file of rejected rows
    assert first.data[1] is not None
    assert second.data[0] == 2


def test_a_value_of_parquet_arrives_as_json_takes_it(tmp_path):
    cases = [
        (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)), ["[1,2]", None, "[3,4]"]),
        (pa.array([["a", None], None, []], pa.list_(pa.string())), ['["a",null]', None, "[]"]),
        (pa.array([{"a": 1, "b": None}, None]), ['{"a":1}', None]),
        (pa.array([[{"a": 1}, {"a": 2}], []]), ['[{"a":1},{"a":2}]', "[]"]),
        (pa.array([1_500, -1], pa.timestamp("ms")), ["1970-01-01T00:00:01.5Z", "1969-12-31T23:59:59.999Z"]),
        (pa.array([10_000_020, None], pa.timestamp("us")), ["1970-01-01T00:00:10.00002Z", None]),
        (pa.array([1, 10**9], pa.timestamp("ns")), ["1970-01-01T00:00:00.000000001Z", "1970-01-01T00:00:01Z"]),
        (pa.array([3_600_500], pa.time32("ms")), ["01:00:00.5"]),
        (pa.array([86_399_000_000_001], pa.time64("ns")), ["23:59:59.000000001"]),
    ]  # fmt: skip
    columns = [pa.concat_arrays([column, pa.nulls(3 - len(column), column.type)]) for column, _ in cases]
    rows = parquet_rows(tmp_path, pa.table(columns, names=[str(column.type) for column in columns]))
    read = [list(values) for values in zip(*(row.data for row in rows), strict=True)]
    assert read == [values + [None] * (3 - len(values)) for _, values in cases]


@pytest.mark.slow
@pytest.mark.parametrize("aside", ["[1]", "{", '{"n":NaN}', '{"n":' + "[" * 100_000 + "]" * 100_000 + "}"])
def test_misfits_of_parquet_that_are_no_object_are_a_fault_of_their_row(tmp_path, aside):
    misfits = pa.field("_misfits", pa.string(), metadata={"role": "misfits", "values": "json"})
    schema = pa.schema([pa.field("n", pa.int64()), misfits])
    table = pa.table([pa.array([None, None, 3]), pa.array([aside, '{"n":"x"}', None])], schema=schema)
    first, *others = parquet_rows(tmp_path, table)
    assert first.fault
    assert told(others) == [(2, ["x"], ""), (3, [3], "")]


def test_a_strange_schema_of_parquet_is_refused(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ConfigurationError, match="the column 'a' occurs twice"):
        parquet_rows(tmp_path, twice)
    schema = pa.schema([pa.field("_misfits", pa.int64(), metadata={"role": "misfits"})])
    with pytest.raises(ConfigurationError, match="the column of misfits"):
        parquet_rows(tmp_path, pa.table([pa.array([1])], schema=schema))
