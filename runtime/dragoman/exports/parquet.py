"""Parquet from the Arrow stream that an export collects first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio.from_thread
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from dragoman_registry.files import open_new

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROUP_ROWS = 65_536
GROUP_BYTES = 32 << 20
"""Maximum size of a row group, which is in memory at once. A batch is not divided."""


def write_parquet(source: Path, target: Path, *, compression: str | None, mode: int = 0o666) -> None:
    """Write a Parquet file from a file that holds an Arrow stream, in constant memory.

    An existing file of that name is removed. The umask narrows `mode`.
    """
    target.unlink(missing_ok=True)
    with (
        pa.memory_map(str(source)) as stream,
        pa.ipc.open_stream(stream) as reader,
        open_new(target, mode=mode) as file,
        ParquetWriter(file, reader.schema, compression=compression or "snappy") as writer,
    ):
        for group in _groups(reader):
            writer.write_table(group, row_group_size=GROUP_ROWS)


def _groups(reader: Any) -> Iterator[pa.Table]:
    """Yield the batches of each row group as a table."""
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        anyio.from_thread.check_cancelled()  # a person need not wait for the whole file
        if group and (rows + batch.num_rows > GROUP_ROWS or size + batch.nbytes > GROUP_BYTES):
            yield pa.Table.from_batches(group)
            group, rows, size = [], 0, 0
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if group:
        yield pa.Table.from_batches(group)
