"""Parquet from exported rows: a column has its mapped type if every value fits, else a lossless one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import anyio.from_thread
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from dragoman_api.columns import ColumnKind, Note
from dragoman_registry.files import open_new

from .values import ValueReader, items_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dragoman_api.columns import Column

GROUP_ROWS = 65_536
GROUP_CELLS = 1_000_000
GROUP_BYTES = 16 << 20
"""Bounds of one row group: it is built in memory."""

_SCALARS = (ColumnKind.TEXT, ColumnKind.NUMBER, ColumnKind.BOOLEAN, ColumnKind.DATE)
_INTEGERS = frozenset(("long", "integer", "int", "short", "byte", "token_count", "unsigned_long"))
_EXACT = 1 << 53
"""Up to here a float holds every integer."""

# A timestamp in microseconds would truncate more than six fractional digits.
_DATE = re.compile(rb'"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?"')


class _Facts:
    """Facts collected about one column's values."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._seen: set[str] = set()
        self._low = self._high = 0
        self.array = column.type.endswith("[]")

    def learn(self, value: bytes, *, inside: bool = False) -> None:
        """Record one value."""
        first = value[:1]
        if first == b'"':
            self._seen.add("date" if self._column.kind is ColumnKind.DATE and _is_date(value) else "text")
        elif first in b"tf":
            self._seen.add("bool")
        elif first == b"[" and not inside:
            self.array = True
            for item in items_of(value):
                self.learn(item, inside=True)
        elif first in b"[{":
            self._seen.add("json")
        elif first != b"n":
            self._number(value)

    def _number(self, value: bytes) -> None:
        if value.lstrip(b"-").isdigit():
            self._seen.add("integer")
            number = int(value) if len(value) < 40 else 1 << 99
            self._low, self._high = min(self._low, number), max(self._high, number)
        else:
            self._seen.add("float" if _is_exact(value.decode()) else "digits")

    def decide(self) -> tuple[pa.DataType, Callable[[bytes], Any], str]:
        """Return the column's type, its conversion, and a note for the user."""
        mapped = self._mapped()
        if mapped is not None and (not self._seen or self._fits(mapped)):
            return mapped, _TYPES[mapped][0], ""
        other = next((each for each in _TYPES if mapped is not None and self._fits(each)), None)
        text = f"not every value is a {self._column.type}: the column is {other or 'JSON text'}"
        if other is not None:
            return other, _TYPES[other][0], text
        self.array = False
        return pa.string(), bytes.decode, text if self._column.kind in _SCALARS else ""

    def _mapped(self) -> pa.DataType | None:
        name = self._column.type.removesuffix("[]")
        match self._column.kind:
            case ColumnKind.NUMBER if name == "unsigned_long":
                return pa.uint64()
            case ColumnKind.NUMBER:
                return pa.int64() if name in _INTEGERS else pa.float64()
            case ColumnKind.BOOLEAN:
                return pa.bool_()
            case ColumnKind.DATE:
                return _TIMESTAMP
            case ColumnKind.JSON:
                return None
        return pa.string()

    def _fits(self, wanted: pa.DataType) -> bool:
        _, holds, low, high = _TYPES[wanted]
        return self._seen <= holds and low <= self._low <= self._high <= high


def _is_exact(text: str) -> bool:
    """Return whether a float represents the number exactly."""
    value = repr(float(text))
    try:
        return value == text or (len(text) < 400 and Decimal(value) == Decimal(text))
    except InvalidOperation:  # an exponent beyond Decimal's range
        return False


def _is_date(value: bytes) -> bool:
    if not _DATE.fullmatch(value):
        return False
    try:
        _as_time(value)
    except (ValueError, OverflowError):
        return False
    return True


def _as_time(value: bytes) -> datetime:
    time = datetime.fromisoformat(value[1:-1].decode())
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


_TIMESTAMP = pa.timestamp("us", tz="UTC")
_TYPES: dict[pa.DataType, tuple[Callable[[bytes], Any], set[str], int, int]] = {
    pa.string(): (text_of, {"text", "date"}, 0, 0),
    pa.int64(): (int, {"integer"}, -(1 << 63), (1 << 63) - 1),
    pa.uint64(): (int, {"integer"}, 0, (1 << 64) - 1),
    pa.float64(): (float, {"integer", "float"}, -_EXACT, _EXACT),
    pa.bool_(): (lambda value: value == b"true", {"bool"}, 0, 0),
    _TIMESTAMP: (_as_time, {"date"}, 0, 0),
}
"""For each type: what makes a value, what it holds, and between which integers."""


def write_parquet(source: Path, target: Path, *, columns: Sequence[Column], compression: str | None) -> list[Note]:
    """Write a Parquet file from a file of rows in constant memory: one pass for the types, one for the values.

    Like the rows, only its owner can read it. An existing file of that name is removed.

    Returns:
        The columns that lack their mapped type, and why.
    """
    facts = [_Facts(column) for column in columns]
    reader = ValueReader(columns)
    for group in _groups(source, len(columns)):
        for line in group:
            for fact, value in zip(facts, reader.read(line), strict=True):
                if value is not None:
                    fact.learn(value)
    chosen = [fact.decide() for fact in facts]
    types = [pa.list_(kind) if fact.array else kind for fact, (kind, _, _) in zip(facts, chosen, strict=True)]
    makers = [_items(make) if fact.array else make for fact, (_, make, _) in zip(facts, chosen, strict=True)]
    fields = [
        pa.field(column.name, type_, metadata={"type": column.type})
        for column, type_ in zip(columns, types, strict=True)
    ]
    schema = pa.schema(fields)
    target.unlink(missing_ok=True)
    with (
        open_new(target, mode=0o600) as file,
        ParquetWriter(file, schema, compression=compression or "snappy") as writer,
    ):
        for group in _groups(source, len(columns)):
            made: list[list[Any]] = [[] for _ in columns]
            for line in group:
                for values, make, value in zip(made, makers, reader.read(line), strict=True):
                    values.append(None if value is None else make(value))
            arrays = [pa.array(values, type=type_) for values, type_ in zip(made, types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    told = zip(columns, chosen, strict=True)
    return [Note(code="type-changed", column=column.name, reason=text) for column, (_, _, text) in told if text]


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
