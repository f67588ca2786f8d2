"""The process that decodes a Parquet file for an import, in bounded memory: `python parquet_reader.py FILE FOLDER`.

FOLDER is the folder that holds pyarrow.

A few bytes of a file may stand for any number of values: a dictionary can repeat one text a million times, a page can
unpack to gigabytes. No number in the file can be trusted to say how many, so the system limits the memory of this
process, and what does not fit is read again in smaller pieces. Standard output gets an Arrow stream of the rows. Its
last column is null, except for a row that is longer than a row may be: there it holds the size of the row in bytes, and
the long values of the row are null. An error is a text on standard error, and one of the exit codes below.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY_BYTES = 1 << 30
"""Maximum memory of the process, in bytes."""

ROW_BYTES = 3 << 20
"""Maximum size of a row, and of a batch of several rows, in bytes."""

BATCH_ROWS = 2_000
DAMAGED, TOO_LARGE = 3, 4
"""Exit codes: the file cannot be read at all, or not in the memory of the process."""

_SHOWN_BYTES = 1 << 9  # of a value of a row that is too long
_BUFFER_BYTES = 1 << 16  # of each column that is read


def main(path: str, folder: str) -> None:
    """Write the rows of a file to standard output, and exit with a code."""
    _bound()
    sys.path.append(folder)
    # pyarrow does without these two, and they take most of the time of its start.
    sys.modules["numpy"] = sys.modules["cloudpickle"] = None  # type: ignore[assignment]
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            schema = pa.schema([*map(_plain_field, file.schema_arrow), pa.field("", pa.int64())])
            with pa.ipc.new_stream(sys.stdout.buffer, schema) as stream:
                sys.stdout.buffer.flush()
                for batch in _batches(file, schema):
                    stream.write_batch(batch)
                    sys.stdout.buffer.flush()
    except BrokenPipeError:  # nobody reads on
        os._exit(0)
    except MemoryError as error:
        _end(TOO_LARGE, error)
    except (OSError, pa.ArrowException) as error:
        _end(DAMAGED, error)


def _bound() -> None:
    with suppress(ImportError, OSError, ValueError):  # a system without such limits, or with a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def _end(code: int, error: BaseException) -> None:
    sys.stderr.write(str(error)[:2_000])
    sys.exit(code)


def _batches(file: Any, schema: Any) -> Iterator[Any]:
    """Yield each row once, in order; fewer at a time where the memory is too small."""
    import pyarrow as pa

    for group in range(file.num_row_groups):
        read, rows = 0, BATCH_ROWS
        while True:
            try:
                for batch in _after(read, file.iter_batches(rows, row_groups=[group], use_threads=False)):
                    for part in _parts(_plain(batch, schema)):
                        yield _bounded(part, schema)
                    read += batch.num_rows
            except (MemoryError, pa.ArrowCapacityError) as error:
                if rows == 1:
                    raise MemoryError(f"row {read + 1:,} of row group {group + 1:,}: {error}") from None
                rows = max(1, rows // 4)
            else:
                break


def _after(count: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches without their first `count` rows."""
    for batch in batches:
        if batch.num_rows > count:
            yield batch.slice(count)
        count = max(0, count - batch.num_rows)


def _plain(batch: Any, schema: Any) -> Any:
    """Return a batch whose dictionaries are replaced by their values."""
    import pyarrow as pa

    kinds = schema.types[:-1]
    columns = [column.cast(kind) for column, kind in zip(batch.columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*schema][:-1]))


def _plain_field(field: Any) -> Any:
    return field.with_type(_plain_type(field.type))


def _plain_type(kind: Any) -> Any:
    """Return a type whose dictionaries are replaced by their values, at any depth."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return pa.list_(_plain_field(kind.value_field)) if types.is_list(kind) else kind


def _parts(batch: Any) -> Iterator[Any]:
    """Yield the rows of a batch in parts of at most the maximum size; a larger row is a part of its own."""
    if (rows := batch.num_rows) <= 1 or batch.nbytes <= ROW_BYTES:
        yield batch
        return
    for part in (batch.slice(0, rows // 2), batch.slice(rows // 2)):
        yield from _parts(part)


def _bounded(batch: Any, schema: Any) -> Any:
    """Return a part with the last column, which holds the sizes of rows that are too long."""
    import pyarrow as pa

    if batch.num_rows == 1 and batch.nbytes > ROW_BYTES:
        bounded_columns = [
            column if column.nbytes <= _SHOWN_BYTES else pa.nulls(1, column.type) for column in batch.columns
        ]
        columns = [*bounded_columns, pa.array([batch.nbytes], pa.int64())]
    else:
        columns = [*batch.columns, pa.nulls(batch.num_rows, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


if __name__ == "__main__":
    main(*sys.argv[1:])
