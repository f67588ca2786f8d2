"""A Parquet file is read in bounded memory, whatever its few bytes stand for: long rows and long files say so."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from dragoman.imports import parquet_reader
from dragoman.imports.parquet import ParquetRows
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman.imports.records import Record

LONG = "x" * (4 << 20)
MIB = 1 << 20


def read(path: Path, table: pa.Table, **options: Any) -> list[Record]:
    parquet.write_table(table, path, compression="zstd", **options)
    with closing(ParquetRows(path)) as rows:
        return list(rows)


def named(count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([LONG]))


def in_lists(count: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), named(count))


BOMBS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "a text that a dictionary names": (lambda: named(600), {}),
    "one in lists": (lambda: in_lists(600), {}),
    "one after many short ones": (lambda: ["s"] * 4_000 + [LONG] * 20, {"use_dictionary": False}),
    "one that each value repeats from the one before": (
        lambda: [LONG] * 20, {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_of_long_rows_gives_every_row_and_the_long_ones_a_fault(tmp_path: Path, name: str) -> None:
    values, options = BOMBS[name]
    column = values()
    records = read(tmp_path / "bomb.parquet", pa.table({"id": range(len(column)), "a": column}), **options)
    assert (tmp_path / "bomb.parquet").stat().st_size < MIB
    assert [record.number for record in records] == [*range(1, len(column) + 1)]
    assert [record.data[0] for record in records] == [*range(len(column))]
    faults = [record.fault for record in records if record.data[1] is None]
    assert faults == [record.fault for record in records if record.fault]
    assert len(faults) == len(column) - 4_000 * (len(column) > 4_000)
    assert all(fault.startswith("the row has 4,194,") for fault in faults)


@pytest.mark.slow
def test_a_row_that_cannot_be_read_at_all_ends_the_file_after_the_rows_before_it(tmp_path: Path) -> None:
    count = 60_000_000
    offsets = pa.array([0, 1, count + 1, count + 2], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.nulls(count + 2, pa.int64()))
    parquet.write_table(pa.table({"a": lists}), tmp_path / "bomb.parquet", compression="zstd")
    with closing(ParquetRows(tmp_path / "bomb.parquet")) as rows:
        records = iter(rows)
        assert next(records).fault == ""
        with pytest.raises(ConfigurationError, match="within 1,024 MB of memory: row 2 of row group 1") as caught:
            next(records)
    assert "smaller row groups" in caught.value.hint


def test_a_row_is_refused_by_its_bytes_and_shows_its_short_values(tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b", "c"], "t": ["x", "y" * (parquet_reader.ROW_BYTES + 1), "z"]})
    first, second, third = read(tmp_path / "a.parquet", table)
    assert (first.data, first.fault, third.data, third.number) == (["a", "x"], "", ["c", "z"], 3)
    assert second.data == ["b", None]
    assert second.fault.endswith("and a row has 3,145,728 at most")


def test_fewer_rows_are_read_again_where_the_memory_is_too_small_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row comes once and in order, also those before the failure."""
    monkeypatch.setattr(parquet_reader, "BATCH_ROWS", 8)
    rows, asked = pa.table({"a": range(21)}), []

    class Group:
        num_row_groups = 1

        def iter_batches(self, size: int, **_: object) -> Any:
            asked.append(size)
            for batch in rows.to_batches(max_chunksize=size):
                if size > 2 and 11 in batch.column(0).to_pylist():
                    raise pa.ArrowMemoryError("malloc failed")
                yield batch

    schema = pa.schema([("a", pa.int64()), ("", pa.int64())])
    batches = [*parquet_reader._batches(Group(), schema)]
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == [*range(21)]
    assert asked == [8, 2]


def test_a_file_that_is_left_before_its_end_leaves_no_process(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": range(100_000)}), tmp_path / "a.parquet", row_group_size=100)
    rows = ParquetRows(tmp_path / "a.parquet")
    assert next(iter(rows)).data == [0]
    rows.close()
    assert rows._process.returncode is not None


@pytest.mark.parametrize("damage", ["all", "end"])
def test_a_damaged_file_says_so(tmp_path: Path, damage: str) -> None:
    parquet.write_table(pa.table({"a": range(10)}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(b"nonsense" if damage == "all" else data[:-5])
    with pytest.raises(ConfigurationError, match="cannot be read as Parquet: ") as caught:
        ParquetRows(tmp_path / "a.parquet")
    assert caught.value.code == "import-file-damaged"
