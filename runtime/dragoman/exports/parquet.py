"""Parquet from exported rows, in two passes over the file: one for the types, one for the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio.from_thread
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from dragoman_api.columns import Note
from dragoman_registry.files import open_new

from .arrow import ColumnFacts
from .values import ValueReader, items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dragoman_api.columns import Column

GROUP_ROWS = 65_536
GROUP_CELLS = 1_000_000
GROUP_BYTES = 16 << 20
"""Bounds of one row group: it is built in memory."""


def write_parquet(
    source: Path, target: Path, *, columns: Sequence[Column], compression: str | None, mode: int = 0o666
) -> list[Note]:
    """Write a Parquet file from a file of rows in constant memory: one pass for the types, one for the values.

    An existing file of that name is removed. The umask narrows `mode`.

    Returns:
        The columns that lack the type of their kind, and why.
    """
    facts = [ColumnFacts(column) for column in columns]
    reader = ValueReader(columns)
    for group in _groups(source, len(columns)):
        for line in group:
            for fact, value in zip(facts, reader.read(line), strict=True):
                if value is not None:
                    fact.learn(value)
    chosen = [fact.decide() for fact in facts]
    arrays = [fact.array for fact in facts]
    types = [pa.list_(arrow.type) if array else arrow.type for array, (arrow, _) in zip(arrays, chosen, strict=True)]
    makers = [
        _items(arrow.convert) if array else arrow.convert for array, (arrow, _) in zip(arrays, chosen, strict=True)
    ]
    fields = [
        pa.field(column.name, type_, metadata={"type": column.type} | ({"values": "json"} if arrow.json else {}))
        for column, type_, (arrow, _) in zip(columns, types, chosen, strict=True)
    ]
    schema = pa.schema(fields)
    target.unlink(missing_ok=True)
    with (
        open_new(target, mode=mode) as file,
        ParquetWriter(file, schema, compression=compression or "snappy") as writer,
    ):
        for group in _groups(source, len(columns)):
            made: list[list[Any]] = [[] for _ in columns]
            for line in group:
                for values, make, value in zip(made, makers, reader.read(line), strict=True):
                    values.append(None if value is None else make(value))
            whole = [pa.array(values, type=type_) for values, type_ in zip(made, types, strict=True)]
            writer.write_table(pa.Table.from_arrays(whole, schema=schema))
    told = zip(columns, chosen, strict=True)
    return [Note(code="type-changed", column=column.name, reason=text) for column, (_, text) in told if text]


def _items(make: Callable[[bytes], Any]) -> Callable[[bytes], list[Any]]:
    """Build a converter to lists; a single value, which the server treats as an array of one, becomes a list."""

    def made(value: bytes) -> list[Any]:
        items = items_of(value) if value[:1] == b"[" else [value]
        return [None if item == b"null" else make(item) for item in items]

    return made


def _groups(source: Path, columns: int) -> Iterator[list[bytes]]:
    """Yield the lines of each row group."""
    most = max(1, min(GROUP_ROWS, GROUP_CELLS // max(columns, 1)))
    group: list[bytes] = []
    size = 0
    with source.open("rb") as file:
        for line in file:
            group.append(line)
            size += len(line)
            if len(group) >= most or size >= GROUP_BYTES:
                anyio.from_thread.check_cancelled()  # a person need not wait for the whole file
                yield group
                group, size = [], 0
    if group:
        yield group
