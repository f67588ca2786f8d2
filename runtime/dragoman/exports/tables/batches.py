"""Blocks of exported rows to Arrow record batches: a compiled decoder takes what it can, the rest goes one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from dragoman.exports.values import UNREADABLE, ValueReader, unreadable
from dragoman_api.arrow.schema import MISFIT, schema_of, table_columns
from dragoman_api.columns import Note
from dragoman_api.errors import ExportError

from .rows import RowDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.columns import Column

NOTED = 50
"""Maximum number of columns with a note of their own."""

_SHOWN = 60  # characters of a value in an error

_FEW = 32
"""A block that has one misfit in fewer rows is worth a change of the decoder."""

_KINDS = {b"0": b"0", b"123456789.": b"1", b"eE": b"e", b"-": b"-", b":,[]} \t\r\n": b"s"}  # other bytes are no digits
_CLASSES = bytes(ord(next((kind for members, kind in _KINDS.items() if each in members), b"_")) for each in range(256))
_SMALL, _ZERO = (b"0e-", b"1e-"), b"s-0s"
_DIGITS = bytes(0x30 if each in b"0123456789." else 0x5F for each in range(256))
_SAMPLE, _LONG = b"0000", b"0" * 16


class TableReader:
    """Makes record batches of blocks of lines.

    A value that does not fit its column's type is null there; the last column of its row holds it as it is stored.

    Attributes:
        schema: The schema of all batches.
        rows: Number of rows so far.
        misfits: Number of values so far that do not fit, for each column.
    """

    def __init__(self, columns: Sequence[Column], *, described: Sequence[Column], strict: bool = False) -> None:
        """Choose the types.

        Args:
            columns: The columns of the table.
            described: All columns of the object.
            strict: Refuse a value that does not fit.
        """
        self._columns = table_columns(columns, described=described)
        self._strict = strict
        self._reader = ValueReader(columns)
        self._names = [msgspec.json.encode(column.name) for column in columns]
        self.misfits = [0] * len(columns)
        self._floats = [at for at, each in enumerate(self._columns) if each.kind.floats]
        self._wary: set[int] = set()
        self._decoder = self._compile()
        self.schema = schema_of(self._columns)
        self.rows = 0

    def go_on(self, rows: int, misfits: Sequence[int]) -> None:
        """Count on after rows that an earlier reader made batches of."""
        self.rows = rows
        self.misfits = list(misfits) or self.misfits

    def _compile(self) -> RowDecoder | None:
        try:
            return RowDecoder(self._columns, wary=self._wary)
        except (ValueError, TypeError):
            return None

    @property
    def notes(self) -> list[Note]:
        """What did not fit so far, one note for each column."""
        found = [at for at, count in enumerate(self.misfits) if count]
        notes = []
        for at in found[:NOTED]:
            count, name, type_ = self.misfits[at], self._columns[at].column.name, self._columns[at].kind.type
            values = "1 value does" if count == 1 else f"{count:,} values do"
            reason = f"{values} not fit {type_}: null here, and as stored in the column {self.schema.names[-1]}"
            notes.append(Note(code="values-misfit", column=name, reason=reason))
        if len(found) > NOTED:
            reason = f"values of {len(found) - NOTED:,} more columns do not fit their types"
            notes.append(Note(code="values-misfit", reason=reason))
        return notes

    def read(self, block: bytes) -> pa.RecordBatch:
        """Make a batch of whole lines.

        Raises:
            ExportError: A line is not a JSON object; or a value does not fit, code ``values-misfit``, if strict.
        """
        try:
            return self._read(block)
        except UNREADABLE as error:
            raise unreadable(f"a row after the first {self.rows:,}", error) from error

    def _read(self, block: bytes) -> pa.RecordBatch:
        lines = _Lines(block)
        exact = bool(self._floats) and may_round(block)
        values, left = self._decode(lines, exact=exact)
        misfits: dict[int, dict[int, bytes]] = {}
        for at in left:
            for number, raw in enumerate(self._reader.read(lines.all[at])):
                values[number][at] = self._value(number, raw, at, misfits)
        texts = self._decoder.texts if self._decoder else ()
        for number in texts:
            done = {*left}
            values[number] = [
                value if at in done else self._value(number, value, at, misfits)
                for at, value in enumerate(values[number])
            ]
        arrays = []
        for number, found in enumerate(values):
            mend = exact and number in self._floats and number not in texts
            made = self._array(number, found, mend=mend)
            if isinstance(made, list):
                for at in made:
                    raw = self._reader.read(lines.all[at])[number]
                    assert raw is not None
                    found[at] = None
                    misfits.setdefault(at, {})[number] = raw
                made = self._columns[number].kind.build(found)
            arrays.append(made)
        rows = len(values[0]) if values else lines.count
        arrays.append(self._companion(misfits, rows))
        self.rows += rows
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _decode(self, lines: _Lines, *, exact: bool) -> tuple[list[list[Any]], list[int]]:
        """Decode what the decoder takes; return the values of each column, and the numbers of the rows that are left.

        Where many rows are left, the columns that are the reason become text for the decoder, from then on.
        """
        while self._decoder is not None:
            values, left = self._decoder.decode(lines.block, exact=exact)
            if len(left) <= len(values[0]) // _FEW:
                return values, left
            found: dict[int, dict[int, bytes]] = {}
            for number, raw in enumerate(self._reader.read(lines.all[left[0]])):
                self._value(number, raw, 0, found)
            if not {*found.get(0, ())} - self._wary:
                return values, left
            self._wary |= {*found[0]}
            self._decoder = self._compile()
        return [[None] * lines.count for _ in self._columns], list(range(lines.count))

    def _value(self, number: int, raw: bytes | None, at: int, misfits: dict[int, dict[int, bytes]]) -> Any:
        """Return one JSON text as `ArrowKind.build` takes it; if it does not fit, None, and add it to the misfits."""
        if raw is None:
            return None
        try:
            return self._columns[number].value(raw)
        except MISFIT:
            misfits.setdefault(at, {})[number] = raw
            return None

    def _array(self, number: int, values: list[Any], *, mend: bool) -> pa.Array | list[int]:
        """Make an array of a column's values, mended where needed, or return the numbers of those that do not fit."""
        kind = self._columns[number].kind
        if not mend:
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

    def _companion(self, misfits: dict[int, dict[int, bytes]], rows: int) -> pa.Array:
        if not misfits:
            return pa.nulls(rows, pa.string())
        texts: list[str | None] = [None] * rows
        if self._strict:
            at = min(misfits)
            raise self._refusal(self.rows + at, *next(iter(misfits[at].items())))
        for at, found in misfits.items():
            members = [b"%b:%b" % (self._names[number], raw) for number, raw in found.items()]
            texts[at] = (b"{%b}" % b",".join(members)).decode()
            for number in found:
                self.misfits[number] += 1
        return pa.array(texts, pa.string())

    def _refusal(self, row: int, number: int, raw: bytes) -> ExportError:
        column, type_ = self._columns[number].column, self._columns[number].kind.type
        shown = raw[:_SHOWN].decode(errors="replace") + ("…" if len(raw) > _SHOWN else "")
        text = f"row {row + 1:,} holds {shown} in the column {column.name!r}, which does not fit {type_}"
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
        """Number of lines."""
        return self.block.count(b"\n")


def may_round(block: bytes) -> bool:
    """Return whether a block may hold a number that a float changes: long digits, a small exponent, a signed zero."""
    # Of sixteen digits in a row, four lie on every fourth byte; few blocks without so many look like that.
    if _SAMPLE in block[::4].translate(_DIGITS) and _LONG in block.translate(_DIGITS):
        return True
    classes = block.translate(_CLASSES)
    return _ZERO in classes or any(each in classes for each in _SMALL)
