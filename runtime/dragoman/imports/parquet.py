"""Parquet: row groups to records whose fields are values of a change."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dragoman.changes.files import literal, value_of
from dragoman_api.cells import Json
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import encode

from .records import Record
from .sources import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_ROWS = 2_000  # rows that are read at a time
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class ParquetRows:
    """The rows of a Parquet file.

    Attributes:
        names: The names of its columns.
    """

    def __init__(self, path: Path) -> None:
        """Read the file's schema.

        Raises:
            ConfigurationError: It is no Parquet file, or pyarrow is missing.
        """
        try:
            from pyarrow import ArrowException
            from pyarrow.parquet import ParquetFile
        except ImportError:
            hint = "pip install 'dragoman[parquet]'"
            raise ConfigurationError("this needs the package pyarrow", hint=hint) from None
        self._path, self._error = path, ArrowException
        try:
            self._file = ParquetFile(path)
        except (OSError, ArrowException) as error:
            raise self._damaged(error) from error
        self._schema = self._file.schema_arrow
        self.names = list(self._schema.names)

    def __iter__(self) -> Iterator[Record]:
        convert = [_converter(field) for field in self._schema]
        number = 0
        try:
            for batch in self._file.iter_batches(batch_size=_ROWS):
                columns = [make(column) for make, column in zip(convert, batch.columns, strict=True)]
                for values in zip(*columns, strict=True):
                    number += 1
                    yield Record(number, list(values))
        except (OSError, self._error) as error:
            raise self._damaged(error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _damaged(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(f"{self._path} cannot be read as Parquet: {error}", code=DAMAGED)


def _converter(field: Any) -> Callable[[Any], list[Any]]:
    import pyarrow as pa

    kind = field.type
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None
    make, plain = _scalar(inner or kind, json=(field.metadata or {}).get(b"values") == b"json")

    def convert(column: Any) -> list[Any]:
        if inner is None:
            return [None if value is None else make(value) for value in column.cast(plain).to_pylist()]
        found = column.cast(pa.list_(plain)).to_pylist()
        return [None if row is None else Json(encode([_plain(each, make) for each in row])) for row in found]

    return convert


def _plain(value: Any, make: Callable[[Any], Any]) -> Any:
    """Return an element of an array as JSON takes it."""
    if value is None or isinstance(value, str):
        return value
    made = make(value)
    return b64encode(made).decode() if isinstance(made, bytes) else made


def _scalar(kind: Any, *, json: bool) -> tuple[Callable[[Any], Any], Any]:
    """Return what makes a value of an Arrow value, and the type that this is read as."""
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(kind):
        return lambda value: _instant(value, kind.unit), pa.int64()
    if types.is_time(kind):
        return lambda value: _instant(value, kind.unit)[11:-1], pa.int64() if kind.bit_width == 64 else pa.int32()
    if types.is_date(kind):
        return date.isoformat, pa.date32()
    if types.is_string(kind) or types.is_large_string(kind):
        return (lambda text: value_of(text.encode())) if json else literal, kind
    return lambda value: value, kind


def _instant(value: int, unit: str) -> str:
    """Return an instant as ISO text with as many digits of its second as it needs."""
    seconds, part = divmod(value, _PER_SECOND[unit])
    try:
        text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:  # a year that no text spells
        return str(value)
    digits = str(part).zfill(len(str(_PER_SECOND[unit])) - 1).rstrip("0") if part else ""
    return f"{text.zfill(19)}{'.' if digits else ''}{digits}Z"
