"""Arrow record batches from blocks of exported rows, and the files of them: a stream of messages, and Parquet.

The object's description gives the types, and no value is changed to fit.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import anyio.from_thread
import msgspec
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from dragoman_api.arrow.kinds import array_of, opened
from dragoman_api.arrow.schema import MISFIT, may_be_lists, schema_of, table_columns
from dragoman_api.columns import Note
from dragoman_api.errors import ExportError
from dragoman_registry.files import open_new

from .row_decoder import DOUBTFUL, RowDecoder, UnknownKey
from .values import UNREADABLE, ValueReader, unreadable

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from pathlib import Path

    from dragoman_api.columns import Column

    from .formats import TableColumns
    from .values import RowKeys

NOTED = 50
"""Maximum number of columns with a note of their own."""

_SPELLED = (pa.string(), pa.int64(), pa.uint64(), pa.float64(), pa.bool_())
"""Types of values that keep their text when they are decoded; others are read again where it is needed."""

_ZEROS = (0, [0])  # perhaps stored as -0

_SHOWN = 60  # characters of a value in an error

_LISTS_HINT = "if they are arrays, name the column in `lists`: all its values are lists then"

_FEW = 32
"""The number of rows per misfit below which a change of the decoder pays off."""

_LOOKS, _CHANGES = 64, 8
"""The number of rows looked at for a change, and the number of changes; with the last, all columns become text."""


_LESSONS = 8
"""How many times keys without a column are learned; after that, rows with new ones are read one by one."""

Misfits = list[dict[int, bytes]]
"""The JSON texts that do not fit, for each column by the number of their row."""
_END = b"\xff\xff\xff\xff\0\0\0\0"  # https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
GROUP_ROWS = 65_536
GROUP_BYTES = 32 << 20
"""Maximum size of a row group, which is in memory at once. A batch is not divided."""


class TableReader:
    """Converts blocks of lines to record batches.

    A value that does not fit its column's type is null there; the last column of its row holds it as it is stored. In a
    column of lists, a list of one stands either for an array of one value or for a single value; the last column also
    holds the other of the two.

    Attributes:
        schema: The schema of all batches.
        rows: The number of rows so far.
        misfits: The number of values so far that do not fit, for each column.
        keys: What counts the fields that no column shows; None if a caller named the columns.
    """

    @classmethod
    def of(cls, table: TableColumns, *, strict: bool = False) -> TableReader:
        """Return a reader for the columns of an export."""
        described = table.described or table.columns
        return cls(table.columns, described=described, strict=strict, keys=table.row_keys())

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        described: Sequence[Column],
        strict: bool = False,
        keys: RowKeys | None = None,
    ) -> None:
        """Choose the types of the columns.

        Args:
            columns: The columns of the table.
            described: All columns of the object.
            strict: Refuse a value that does not fit its column's type.
            keys: Counts the fields that no column shows; None if a caller named the columns.
        """
        self._columns = table_columns(columns, described=described)
        self._strict = strict
        self._reader = ValueReader(columns)
        self._names = [msgspec.json.encode(column.name) for column in columns]
        self.misfits = [0] * len(columns)
        self._many = [number for number, column in enumerate(self._columns) if column.many]
        self.keys = keys
        self._learned: set[UnknownKey] = set()
        self._wary: set[int] = set()
        self._changes = self._lessons = 0
        self._full = False
        self._decoder = self._compile()
        self.schema = schema_of(self._columns)
        self.rows = 0

    def go_on(self, rows: int, misfits: Sequence[int]) -> None:
        """Continue the counts after rows that an earlier reader converted."""
        self.rows = rows
        self.misfits = list(misfits) or self.misfits

    def _compile(self) -> RowDecoder | None:
        try:
            keys = None if self.keys is None or self.keys.left_out.full else self.keys
            return RowDecoder(self._columns, wary=self._wary, keys=keys, learned=self._learned)
        except (ValueError, TypeError):
            return None

    @property
    def notes(self) -> list[Note]:
        """Notes on the values so far that do not fit, one for each column, and on fields that no column shows."""
        numbers = [at for at, count in enumerate(self.misfits) if count]
        notes = []
        for at in numbers[:NOTED]:
            count, name, type_ = self.misfits[at], self._columns[at].column.name, self._columns[at].kind.type
            values = "1 value does" if count == 1 else f"{count:,} values do"
            reason = f"{values} not fit {type_}: null here, and as stored in the column {self.schema.names[-1]}"
            hint = _LISTS_HINT if may_be_lists(self._columns[at].column) else ""
            notes.append(Note(code="values-misfit", column=name, reason=reason, hint=hint))
        if len(numbers) > NOTED:
            reason = f"values of {len(numbers) - NOTED:,} more columns do not fit their types"
            notes.append(Note(code="values-misfit", reason=reason))
        return [*notes, *(self.keys.left_out.notes() if self.keys is not None else ())]

    def read(self, block: bytes) -> pa.RecordBatch:
        """Convert whole lines to one batch.

        Raises:
            ExportError: A line is not a JSON object; or, if strict, a value does not fit (code ``values-misfit``).
        """
        try:
            return self._read(block)
        except UNREADABLE as error:
            raise unreadable(f"a row after the first {self.rows:,}", error) from error

    def _read(self, block: bytes) -> pa.RecordBatch:
        lines = _Lines(block)
        values, left = self._decode(lines)
        misfits: Misfits = [{} for _ in self._columns]
        for at in left:
            for number, raw in enumerate(self._reader.read(lines.all[at])):
                values[number][at] = self._value(number, raw, at, misfits)
        for number in self._decoder.texts if self._decoder else ():
            self._mend_texts(number, values[number], {*left}, misfits)
        for number in self._many:
            values[number] = opened(values[number])
        arrays = []
        for number, column_values in enumerate(values):
            array_or_misfits = self._array(number, column_values)
            if isinstance(array_or_misfits, list):
                for at in array_or_misfits:
                    raw = self._reader.read(lines.all[at])[number]
                    assert raw is not None
                    column_values[at] = None
                    misfits[number][at] = raw
                array_or_misfits = self._columns[number].kind.build(column_values)
            arrays.append(array_or_misfits)
        rows = len(values[0]) if values else lines.count
        arrays.append(self._companion(misfits, self._asides(values, lines), rows))
        self.rows += rows
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _decode(self, lines: _Lines) -> tuple[list[list[Any]], list[int]]:
        """Decode the rows that the decoder takes; return the values of each column, and the numbers of the other rows.

        If there are many other rows, the columns that are the reason become text for the decoder from then on.
        """
        while self._decoder is not None:
            values, left, missed = self._decoder.decode(lines.block)
            if len(left) <= len(values[0]) // _FEW:
                self._count(lines, left, missed)
                return values, left
            if self._learn(lines.all[at] for at in left[:: len(left) // _LOOKS + 1]):
                continue
            column_numbers = self._misfitting(lines.all[at] for at in left[:: len(left) // _LOOKS + 1])
            if column_numbers <= self._wary:
                self._count(lines, left, missed)
                return values, left
            self._changes += 1
            self._wary |= column_numbers if self._changes < _CHANGES else {*range(len(self._columns))}
            self._decoder = self._compile()
        rows = list(range(lines.count))
        self._count(lines, rows, {})
        return [[None] * lines.count for _ in self._columns], rows

    def _learn(self, lines: Iterable[bytes]) -> bool:
        """Let the decoder take and count the keys without a column; return whether the decoder is a new one."""
        if self.keys is None or self.keys.left_out.full or self._lessons == _LESSONS:
            return False
        unknown: set[UnknownKey] = set()
        for line in lines:
            unknown |= self.keys.missed(line)[0]
        unknown = {pair for pair in unknown - self._learned if pair[1]}
        if not unknown:
            return False
        self._learned |= unknown
        self._lessons += 1
        self._decoder = self._compile()
        return True

    def _count(self, lines: _Lines, left: Sequence[int], missed: dict[int, set[UnknownKey]]) -> None:
        """Count the fields that no column shows: in the rows that the decoder left, and in those that it took."""
        if self.keys is None:
            return
        alone = {*left, *(at for at, unknown in missed.items() if DOUBTFUL in unknown)}
        for at in alone:
            self.keys.add(lines.all[at])
        for at, unknown in missed.items():
            if at not in alone and not self.keys.left_out.full:
                self.keys.add_keys(unknown)
        if self.keys.left_out.full and not self._full:  # from now on the decoder passes over all keys without a column
            self._full = True
            self._decoder = self._compile()

    def _misfitting(self, lines: Iterable[bytes]) -> set[int]:
        """Return the numbers of the columns that hold values that do not fit."""
        misfits: Misfits = [{} for _ in self._columns]
        for line in lines:
            for number, raw in enumerate(self._reader.read(line)):
                self._value(number, raw, 0, misfits)
                if raw is not None and raw[:1] == b"[" and self._columns[number].is_gathered:
                    misfits[number][0] = raw  # the decoder takes no array on the way to a value
        return {number for number, column_misfits in enumerate(misfits) if column_misfits}

    def _value(self, number: int, raw: bytes | None, at: int, misfits: Misfits) -> Any:
        """Return the value of a JSON text for `ArrowKind.build`; None, and a misfit, if it does not fit."""
        if raw is None:
            return None
        try:
            return self._columns[number].value(raw)
        except MISFIT:
            misfits[number][at] = raw
            return None

    def _mend_texts(self, number: int, texts: list[Any], done: Container[int], misfits: Misfits) -> None:
        """Replace a column's JSON texts by values for `ArrowKind.build`; None for those that do not fit."""
        begins, aside = self._columns[number].begins, misfits[number]
        for at, text in enumerate(texts):
            if text is None or at in done:
                continue
            if text[0] in begins:
                texts[at] = self._value(number, text, at, misfits)
            else:
                texts[at], aside[at] = None, text

    def _array(self, number: int, values: list[Any]) -> pa.Array | list[int]:
        """Return an Arrow array of a column's values, or the numbers of the rows whose values do not fit."""
        kind = self._columns[number].kind
        try:
            return kind.build(values)
        except MISFIT:
            pass
        bad = []
        for at, value in enumerate(values):
            if value is not None:
                try:
                    values[at] = kind.mend(value)
                except MISFIT:
                    bad.append(at)
        return bad or kind.build(values)

    def _asides(self, values: Sequence[Sequence[Any]], lines: _Lines) -> Misfits:
        """Return the values for which a list of one does not stand, as they are stored."""
        asides: Misfits = [{} for _ in self._columns]
        for number in self._many:
            column = self._columns[number]
            for at, value in enumerate(values[number]):
                if not column.is_aside(value):
                    continue
                if column.leaf.type.value_type in _SPELLED and value not in _ZEROS:
                    asides[number][at] = msgspec.json.encode(value)
                else:
                    raw = self._reader.read(lines.all[at])[number]
                    assert raw is not None
                    asides[number][at] = raw
        return asides

    def _companion(self, misfits: Misfits, asides: Misfits, rows: int) -> pa.Array:
        numbers = [number for number, column_misfits in enumerate(misfits) if column_misfits or asides[number]]
        if not numbers:
            return pa.nulls(rows, pa.string())
        if self._strict and any(misfits):
            numbers = [number for number in numbers if misfits[number]]
            at, number = min((min(misfits[number]), number) for number in numbers)
            raise self._refusal(self.rows + at, number, misfits[number][at])
        members: dict[int, list[bytes]] = {}
        texts: list[bytes | None] = [None] * rows
        for number in numbers:
            self.misfits[number] += len(misfits[number])
            name = self._names[number] + b":"
            pairs = chain(misfits[number].items(), asides[number].items())
            if len(numbers) == 1:  # the usual case: arrays in one column
                for at, raw in pairs:
                    texts[at] = b"{%b%b}" % (name, raw)
            else:
                for at, raw in pairs:
                    members.setdefault(at, []).append(name + raw)
        for at, parts in members.items():
            texts[at] = b"{" + b",".join(parts) + b"}"
        return array_of(texts, pa.string())

    def _refusal(self, row: int, number: int, raw: bytes) -> ExportError:
        column, type_ = self._columns[number].column, self._columns[number].kind.type
        excerpt = raw[:_SHOWN].decode(errors="replace") + ("…" if len(raw) > _SHOWN else "")
        text = f"row {row + 1:,} holds {excerpt} in the column {column.name!r}, which does not fit {type_}"
        hint = "read without strict: such values then stand in a column of their own"
        return ExportError(text, hint=hint, code="values-misfit", details={"column": column.name, "row": row + 1})


class _Lines:
    """The lines of a block, divided when one is needed."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self._all: list[bytes] | None = None

    @property
    def all(self) -> list[bytes]:
        """All lines."""
        if self._all is None:
            self._all = self.block.split(b"\n")[:-1]
        return self._all

    @property
    def count(self) -> int:
        """The number of lines."""
        return self.block.count(b"\n")


class ArrowStream:
    """One message per part, so that a file of them can be truncated after any part and continued there.

    Attributes:
        formulas: Always 0: a table holds no text that a spreadsheet would run.
    """

    formulas = 0

    def __init__(self, reader: TableReader) -> None:
        """Begin a file with the columns of a reader."""
        self._reader = reader

    @property
    def misfits(self) -> list[int]:
        """The number of values so far that do not fit, for each column."""
        return self._reader.misfits

    @property
    def notes(self) -> list[Note]:
        """Notes on the values so far that do not fit, and on fields that no column shows."""
        return self._reader.notes

    def go_on(self, rows: int, _formulas: int, misfits: Sequence[int] = ()) -> None:
        """Continue after rows that are safe on disk."""
        self._reader.go_on(rows, misfits)

    def head(self) -> bytes:
        """Return the bytes of the schema message."""
        return bytes(self._reader.schema.serialize())

    def convert(self, data: bytes) -> bytes:
        """Convert whole lines of rows to the bytes of one message; none for no lines.

        Raises:
            ExportError: A value does not fit its column's type (code ``values-misfit``), if strict.
        """
        return bytes(self._reader.read(data).serialize()) if data else b""

    def tail(self) -> bytes:
        """Return the end of the stream."""
        return _END


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
