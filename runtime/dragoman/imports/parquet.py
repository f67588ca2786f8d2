"""Parquet: converts row groups to records whose fields are values of a change."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from collections import Counter
from contextlib import suppress
from datetime import date, datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.spellings import exact_json, value_of
from dragoman_api.cells import Json
from dragoman_api.columns import ColumnKind
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode, encode

from . import parquet_reader
from .records import Record, too_long
from .sources import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_members = msgspec.json.Decoder(dict[str, Raw])
_MESSAGE_BYTES = 1 << 14
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of UTC, as all here
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class FileType(msgspec.Struct, frozen=True):
    """What a file says of a column: the kind of its values, None for objects, and whether each is an array of them."""

    kind: ColumnKind | None
    repeated: bool = False


class ParquetRows:
    """The rows of a Parquet file.

    Attributes:
        names: The names of the file's columns.
        types: Their types, by name.
    """

    def __init__(self, path: Path) -> None:
        """Begin to read the file, in a process of its own, which bounds its memory (`parquet_reader`).

        Raises:
            ConfigurationError: The file is not a Parquet file, or the package pyarrow is not installed.
        """
        try:
            import pyarrow as pa
        except ImportError:
            from dragoman_api.installation import packages_missing

            raise packages_missing("this needs the package pyarrow", "dragoman[arrow]") from None
        self._path, self._error = path, pa.ArrowException
        # Without what an environment adds to the start of an interpreter; pyarrow is the one that this process found.
        words = [sys.executable, "-I", "-S", parquet_reader.__file__, str(path), str(Path(pa.__file__).parents[1])]
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with a program of this package
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            self._stream = pa.ipc.open_stream(self._process.stdout)
        except (OSError, pa.ArrowException) as error:
            raise self._ended(error) from error
        except BaseException:
            self.close()
            raise
        self._schema = pa.schema([*self._stream.schema][:-1])
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        path = self._path
        if twice := [name for name, count in Counter(self._schema.names).items() if count > 1]:
            raise ConfigurationError(f"the column {min(twice)!r} occurs twice in {path}")
        roles = [(field.metadata or {}).get(b"role") for field in self._schema]
        self._aside = roles.index(b"misfits") if b"misfits" in roles else None
        if self._aside is not None and str(self._schema.field(self._aside).type) != "string":
            raise ConfigurationError(f"the column of misfits in {path} holds no text", hint="export the rows again")
        self.names = [name for at, name in enumerate(self._schema.names) if at != self._aside]
        self._places = {name: at for at, name in enumerate(self.names)}
        self.types = {name: _type_of(self._schema.field(name)) for name in self.names}

    def __iter__(self) -> Iterator[Record]:
        convert = [_converter(field) for field in self._schema]
        number = 0
        try:
            for batch in self._stream:
                [*columns, sizes] = batch.columns
                if (size := sizes[0].as_py()) is None:
                    records = self._records(columns, convert)
                else:
                    records = [Record(0, self._shown(columns), too_long(size))]
                for record in records:
                    number += 1
                    record.number = number
                    yield record
        except (OSError, self._error) as error:
            raise self._ended(error) from error
        reason = self._leave()
        if self._process.returncode:
            raise self._error_of(reason)

    def _records(self, columns: Sequence[Any], convert: Sequence[Callable[[Any], list[Any]]]) -> list[Record]:
        """Return the rows of a batch, not yet numbered; a row with a value that no change can hold has a fault."""
        try:
            values_by_column = [make(column) for make, column in zip(convert, columns, strict=True)]
            rows = [list(row) for row in zip(*values_by_column, strict=True)]
            if self._aside is not None:
                for values in rows:
                    self._restore(values, values.pop(self._aside))
        except (ValueError, OverflowError) as error:
            if isinstance(error, self._error):
                raise
            if (count := len(columns[0])) == 1:
                return [Record(0, self._shown(columns), str(error))]
            # Halves, so that one bad row costs its neighbours little. A slice would keep the values of the other half.
            halves = [[column.take(places) for column in columns] for places in _halves(count)]
            return [record for half in halves for record in self._records(half, convert)]
        return [Record(0, values) for values in rows]

    def _shown(self, columns: Sequence[Any]) -> list[Any]:
        """Return the values of the only row, as a person reads them."""
        return [_shown(column) for at, column in enumerate(columns) if at != self._aside]

    def _restore(self, values: list[Any], aside: str | None) -> None:
        """Put back the values that did not fit their columns, from the last column of an exported table."""
        for name, raw in decode(aside, _members).items() if aside else ():
            if (at := self._places.get(name)) is not None:
                values[at] = value_of(bytes(raw))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._leave()

    def _leave(self) -> str:
        """Wait for the process, which writes no more, to end; return its error message."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        if self._process.stderr.closed:
            return ""
        self._process.stdout.close()
        with self._process.stderr as stderr:
            message = stderr.read(_MESSAGE_BYTES)
        self._process.wait()
        return message.decode(errors="replace")

    def _ended(self, error: Exception) -> ConfigurationError:
        """Return the error for a reading process that ended too early, or whose rows could not be read."""
        return self._error_of(self._leave() or str(error))

    def _error_of(self, reason: str) -> ConfigurationError:
        if self._process.returncode in (parquet_reader.DAMAGED, 0):
            return ConfigurationError(f"{self._path} cannot be read as Parquet: {reason}", code=DAMAGED)
        reason = reason or f"its process ended with {self._process.returncode}"
        text = f"{self._path} cannot be read within {parquet_reader.MEMORY_BYTES >> 20:,} MB of memory: {reason}"
        return ConfigurationError(text, hint="write it again with smaller row groups and pages", code=DAMAGED)


def _halves(count: int) -> tuple[Any, Any]:
    import pyarrow as pa

    return pa.array(range(count // 2)), pa.array(range(count // 2, count))


def _converter(field: Any) -> Callable[[Any], list[Any]]:
    import pyarrow as pa

    make, plain = _scalar(field.type, json=_holds_json(field))
    if (field.metadata or {}).get(b"role") == b"misfits":
        make = str

    # What a list of one stands for in an exported column of lists; what it does not stand for is among the misfits.
    alone = (field.metadata or {}).get(b"one") == b"value" and pa.types.is_list(field.type)

    def convert(column: Any) -> list[Any]:
        if alone:
            return [_alone(value) for value in _nested(column)]
        if pa.types.is_nested(field.type):
            return [None if value is None else Json(encode(value)) for value in _nested(column)]
        return [None if value is None else make(value) for value in column.cast(plain).to_pylist()]

    return convert


def _alone(values: list[Any] | None) -> Any:
    """Return a list as a value of a change; a list of one value becomes that value."""
    if values is None:
        return None
    return value_of(encode(values[0] if len(values) == 1 else values).encode())


def _shown(column: Any) -> Any:
    """Return the only value of a column, whatever it is, as a person reads it."""
    for read in (column.to_pylist, lambda: column.cast("int64").to_pylist(), lambda: [column.to_string()]):
        with suppress(ValueError, OverflowError, ImportError, NotImplementedError):  # pyarrow's errors among them
            [value] = read()
            return value
    return None


def _nested(column: Any, *, json: bool = False) -> list[Any]:
    """Return the values of a column in the types that JSON has; members of objects that are null are left out.

    Args:
        column: The column, or a part of it.
        json: The texts of the column are JSON.
    """
    import pyarrow as pa

    kind = column.type
    valid = column.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        parts = [(field.name, _nested(column.field(at), json=_holds_json(field))) for at, field in enumerate(kind)]
        rows = [{name: values[at] for name, values in parts if values[at] is not None} for at in range(len(valid))]
        return [row if is_valid else None for row, is_valid in zip(rows, valid, strict=True)]
    if pa.types.is_fixed_size_list(kind):
        starts = [(column.offset + at) * kind.list_size for at in range(len(valid) + 1)]
        flat = _nested(column.values)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        starts, flat = column.offsets.to_pylist(), _nested(column.values)
    else:
        if json:
            return [None if text is None else Raw(decode(text, Raw)) for text in column.to_pylist()]
        make, plain = _scalar(kind, json=False)
        return [_plain(value, make) for value in column.cast(plain).to_pylist()]
    return [flat[starts[at] : starts[at + 1]] if is_valid else None for at, is_valid in enumerate(valid)]


def _type_of(field: Any) -> FileType:
    import pyarrow as pa

    types, kind = pa.types, field.type
    if _holds_json(field) or types.is_struct(kind) or types.is_map(kind):
        return FileType(None)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = _type_of(kind.value_field)
        alone = (field.metadata or {}).get(b"one") == b"value"
        return FileType(None if inner.repeated else inner.kind, repeated=not alone)
    if types.is_boolean(kind):
        return FileType(ColumnKind.BOOLEAN)
    if types.is_integer(kind):
        return FileType(ColumnKind.INTEGER)
    if types.is_floating(kind) or types.is_decimal(kind):
        return FileType(ColumnKind.FLOAT)
    if types.is_timestamp(kind):
        return FileType(ColumnKind.TIMESTAMP)
    if types.is_date(kind):
        return FileType(ColumnKind.DATE)
    return FileType(ColumnKind.BINARY if types.is_binary(kind) or types.is_large_binary(kind) else ColumnKind.TEXT)


def _holds_json(field: Any) -> bool:
    return (field.metadata or {}).get(b"values") == b"json"


def _plain(value: Any, make: Callable[[Any], Any]) -> Any:
    """Return an element of an array in a type that JSON has."""
    if value is None or isinstance(value, str):
        return value
    scalar = make(value)
    if isinstance(scalar, float) and not isfinite(scalar):
        raise ValueError(f"it holds {scalar} in an array or object, and JSON has no such number")
    return b64encode(scalar).decode() if isinstance(scalar, bytes) else scalar


def _scalar(kind: Any, *, json: bool) -> tuple[Callable[[Any], Any], Any]:
    """Return the function that converts an Arrow value, and the type to read the value as."""
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(kind):
        return lambda value: _instant(value, kind.unit), pa.int64()
    if types.is_time(kind):
        return lambda value: _instant(value, kind.unit)[11:-1], pa.int64() if kind.bit_width == 64 else pa.int32()
    if types.is_date(kind):
        return date.isoformat, pa.date32()
    if json and (types.is_string(kind) or types.is_large_string(kind)):
        return lambda text: exact_json(bytes(decode(text, Raw)).decode()), kind
    return lambda value: value, kind


def _instant(value: int, unit: str) -> str:
    """Return an instant as ISO 8601 text, with as many digits of its second as it needs.

    Raises:
        ValueError: The year has no ISO 8601 text; as a bare number, it could be taken for another instant.
    """
    seconds, part = divmod(value, _PER_SECOND[unit])
    try:
        text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        raise ValueError(f"it holds an instant before the year 1 or after 9999: {value:,} {unit} from 1970") from None
    digits = str(part).zfill(len(str(_PER_SECOND[unit])) - 1).rstrip("0") if part else ""
    return f"{text}{'.' if digits else ''}{digits}Z"
