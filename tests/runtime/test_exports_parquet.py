"""A Parquet file has the mapped types where every value fits, and loses nothing where one does not."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import anyio.to_thread
import pyarrow as pa
import pytest
from pyarrow import parquet

from dragoman.exports import parquet as writing
from dragoman_api.columns import Column, ColumnKind

N, U, F, X = ColumnKind.INTEGER, ColumnKind.UNSIGNED, ColumnKind.FLOAT, ColumnKind.DECIMAL
T, B, J = ColumnKind.TEXT, ColumnKind.BOOLEAN, ColumnKind.JSON
D, DAY, CLOCK, BYTES = ColumnKind.TIMESTAMP, ColumnKind.DATE, ColumnKind.TIME, ColumnKind.BINARY
TIMESTAMP = pa.timestamp("us", tz="UTC")
NANOSECONDS = pa.timestamp("ns", tz="UTC")
BIG = 123456789012345678901234567890


def column(name, type_, kind, **more):
    return Column(name=name, type=type_, kind=kind, path=("row", name), **more)


@pytest.fixture
def make(tmp_path):
    """Write a column of raw JSON texts; give the table and the notes."""

    async def made(type_, kind, *values, compression=None, **more):
        source, target = tmp_path / "rows", tmp_path / "x.parquet"
        source.write_bytes(b"".join(b'{"row":{"v":%s}}\n' % value.encode() for value in values))
        columns = [column("v", type_, kind, **more)]
        notes = await anyio.to_thread.run_sync(
            lambda: writing.write_parquet(source, target, columns=columns, compression=compression)
        )
        read = parquet.read_table(target).column("v")
        # Python's datetime holds no nanoseconds.
        values = read.cast(pa.int64()) if read.type == NANOSECONDS else read
        return read.type, values.to_pylist(), [note.column for note in notes]

    return made


@pytest.mark.parametrize(
    ("type_", "kind", "values", "arrow", "read"),
    [
        ("long", N, ["1", "null", str(2**63 - 1), str(-(2**63))], pa.int64(), [1, None, 2**63 - 1, -(2**63)]),
        ("unsigned_long", U, ["1", str(2**64 - 1)], pa.uint64(), [1, 2**64 - 1]),
        ("double", F, ["1", "2.50", str(2**53)], pa.float64(), [1.0, 2.5, 2.0**53]),
        ("boolean", B, ["true", "false", "null"], pa.bool_(), [True, False, None]),
        ("keyword", T, ['"ä\\n"', '""', "null"], pa.string(), ["ä\n", "", None]),
        ("nested", J, ['[{"a":1.10}]', "null"], pa.string(), ['[{"a":1.10}]', None]),
        ("keyword", T, ['["a",null]', '"b"', "[]"], pa.list_(pa.string()), [["a", None], ["b"], []]),
        ("long", N, ["null"], pa.int64(), [None]),
        ("DATE", DAY, ['"2024-02-29"', "null"], pa.date32(), [date(2024, 2, 29), None]),
        ("TIME", CLOCK, ['"23:59"', '"00:00:01.5"'], pa.time64("ns"), [time(23, 59), time(0, 0, 1, 500_000)]),
        ("bytea", BYTES, ['"AP8="', '""'], pa.binary(), [b"\0\xff", b""]),
        ("numeric", X, ['"1.10"', "-20", "3e2"], pa.decimal128(38, 2), [Decimal("1.10"), Decimal(-20), Decimal(300)]),
        ("numeric", X, [str(BIG), "0.5"], pa.decimal128(38, 1), [Decimal(BIG), Decimal("0.5")]),
        ("numeric", X, [str(BIG**2)], pa.decimal256(76, 0), [Decimal(BIG**2)]),
    ],
)
async def test_a_column_of_fitting_values_has_the_mapped_type(make, type_, kind, values, arrow, read):
    assert await make(type_, kind, *values) == (arrow, read, [])


@pytest.mark.parametrize(
    ("type_", "kind", "values", "arrow", "read"),
    [
        ("long", N, ["1", '"n/a"'], pa.string(), ["1", '"n/a"']),
        ("long", N, ["1", "1.5"], pa.float64(), [1.0, 1.5]),
        ("long", N, ["1", str(2**64 - 1)], pa.uint64(), [1, 2**64 - 1]),
        ("long", N, ["-1", str(BIG)], pa.string(), ["-1", str(BIG)]),
        ("double", F, ["0.1", "0.12345678901234567890123"], pa.string(), ["0.1", "0.12345678901234567890123"]),
        ("double", F, ["1e400"], pa.string(), ["1e400"]),
        ("double", F, [str(2**53 + 1)], pa.int64(), [2**53 + 1]),
        ("boolean", B, ["true", '"yes"'], pa.string(), ["true", '"yes"']),
        ("long", N, ["1", '{"a":1}', "[2]"], pa.string(), ["1", '{"a":1}', "[2]"]),
        ("long", N, ["[1]", "[[2]]"], pa.string(), ["[1]", "[[2]]"]),
        ("long", N, ['"1"', '"2"'], pa.string(), ["1", "2"]),
        ("date", D, ["1700000000000"], pa.int64(), [1700000000000]),
        ("date", D, ['"2024-01-01"', '"yesterday"'], pa.string(), ["2024-01-01", "yesterday"]),
        ("date", D, ['"2024-13-01"'], pa.string(), ["2024-13-01"]),
        ("date", D, ['"2300-01-01T00:00:00.123456789Z"'], pa.string(), ["2300-01-01T00:00:00.123456789Z"]),
        ("day", DAY, ['"2024-02-30"', '"2024-02-29"'], pa.string(), ["2024-02-30", "2024-02-29"]),
        ("time", CLOCK, ['"24:01"'], pa.string(), ["24:01"]),
        ("bytes", BYTES, ['"AP8"', '"AP8="'], pa.string(), ["AP8", "AP8="]),
        ("numeric", X, ['"NaN"', '"1.5"'], pa.string(), ["NaN", "1.5"]),
        ("numeric", X, ["1e400"], pa.string(), ["1e400"]),
        ("numeric", X, [str(BIG**3)], pa.string(), [str(BIG**3)]),
    ],
)
async def test_a_value_that_does_not_fit_is_kept_and_the_change_is_said(make, type_, kind, values, arrow, read):
    assert await make(type_, kind, *values) == (arrow, read, ["v"])


async def test_dates_that_all_parse_are_timestamps(make):
    arrow, read, notes = await make(
        "date", D, '"2024-02-29"', '"2024-02-29T12:00:00+02:00"', '"1999-12-31T23:59:59.5Z"', "null"
    )
    assert (arrow, notes) == (TIMESTAMP, [])
    assert read == [
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(2024, 2, 29, 10, tzinfo=UTC),
        datetime(1999, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
        None,
    ]


async def test_nanoseconds_are_kept(make):
    arrow, read, notes = await make("t", D, '"2024-01-01T00:00:00.123456789+01:00"', '"1969-12-31T23:59:59.5Z"')
    assert (arrow, notes) == (NANOSECONDS, [])
    assert read == [1_704_063_600_123_456_789, -500_000_000]


async def test_a_timestamp_beyond_nanoseconds_is_one_in_microseconds(make):
    arrow, read, notes = await make("t", D, '"0001-01-01T00:00:00.000001Z"', '"9999-12-31T23:59:59.999999Z"')
    assert (arrow, notes) == (TIMESTAMP, [])
    assert read == [datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]


@pytest.mark.parametrize("kind", [T, N, U, F, B, D])
async def test_no_spelling_of_the_servers_type_decides(make, kind):
    """The type follows the kind, whatever the server calls it."""
    found = {(await make(name, kind, "null"))[0] for name in ("unsigned_long", "int", "double", "text[]", "bigint")}
    assert len(found) == 1
    assert (await make("int", kind, "null", repeated=True))[0] == pa.list_(*found)


async def test_row_groups_are_bounded(tmp_path, monkeypatch, make):
    monkeypatch.setattr(writing, "GROUP_ROWS", 100)
    await make("long", N, *map(str, range(250)), compression="zstd")
    file = parquet.ParquetFile(tmp_path / "x.parquet")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [100, 100, 50]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.schema_arrow.field("v").metadata[b"type"].decode() == "long"


async def test_an_empty_export_has_its_columns(make):
    assert await make("date", D) == (TIMESTAMP, [], [])


async def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    """Two readings of 120,000 rows, groups of 2,000: no more than one group is in memory."""
    monkeypatch.setattr(writing, "GROUP_ROWS", 2_000)
    source = tmp_path / "rows"
    source.write_bytes(b'{"row":{"v":"%s"}}\n' % (b"x" * 200) * 120_000)
    before = pa.total_allocated_bytes()
    peak = 0
    real = parquet.ParquetWriter.write_table

    def write_table(self, table):
        nonlocal peak
        peak = max(peak, pa.total_allocated_bytes() - before)
        real(self, table)

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", write_table)
    columns = [column("v", "keyword", T)]
    await anyio.to_thread.run_sync(
        lambda: writing.write_parquet(source, tmp_path / "x", columns=columns, compression=None)
    )
    assert 0 < peak < 8_000_000
