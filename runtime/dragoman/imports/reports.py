"""Reports: the outcome of every row of a load, and the file of the rows that were not written."""

from __future__ import annotations

import os
from datetime import date, time
from decimal import Decimal
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.spellings import json_of
from dragoman_api.cells import Json
from dragoman_api.changes import OutcomeStatus
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError
from dragoman_api.grid import RowId
from dragoman_registry.files import sync

from .records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


# JSON texts keep their digits; msgspec takes them for a type of their own
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=lambda value: Raw(str(value).encode()))


def no_counts() -> dict[str, int]:
    """Return a count of 0 for every outcome."""
    return dict.fromkeys(map(str, OutcomeStatus), 0)


class LoadReport(msgspec.Struct, kw_only=True):
    """The outcomes of the rows of a file.

    Attributes:
        file: The file's name.
        object: The object that received the rows.
        format: The format that the file was read as.
        rows: The number of rows that were read, by earlier runs too.
        now: The number of rows that the last run read.
        counts: The number of rows per outcome; contains every outcome. ``refused`` includes rows that cannot be read;
            ``unknown`` rows were sent, but no answer came.
        complete: Every row of the file has its outcome. If not, the load can be resumed.
        resumed: How often the load was resumed.
        rejected: The file of the rows that were not written, with the reasons; None if there are none.
        undo: The file that takes the load back; None if there is none.
        seconds: The duration of the last run.
        notes: Notes for the user.
    """

    file: str
    object: str
    format: str
    rows: int = 0
    now: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=no_counts)
    complete: bool = False
    resumed: int = 0
    rejected: str | None = None
    undo: str | None = None
    seconds: float = 0.0
    notes: list[Note] = msgspec.field(default_factory=list)


class Rejection(msgspec.Struct, frozen=True):
    """A row that was not written, and the reason; `code` is its outcome, or ``unreadable``."""

    record: Record
    code: str
    reason: str
    id: RowId | None = None


class AppendedFile:
    """A file of lines that grows while a load runs; a resumed load continues it at a known place.

    Attributes:
        size: The size of the file so far, in bytes.
    """

    def __init__(self, path: Path, *, size: int = 0, mode: int) -> None:
        """Prepare; nothing is created until there is a line.

        Args:
            path: The file's path.
            size: The number of bytes of an earlier run to keep; later ones are removed. 0 for a new file.
            mode: The mode of a new file, which the umask narrows.

        Raises:
            ConfigurationError: The file of an earlier run is gone, or cannot be written.
        """
        self.path, self.size, self._mode = path, size, mode
        self._file: int | None = None
        self._unsynced = False
        try:
            if not size:
                path.unlink(missing_ok=True)
            elif path.stat().st_size < size:
                raise ConfigurationError(f"{path} was cut since the load was interrupted", code="resume-refused")
            else:
                self._file = os.open(path, os.O_WRONLY)
                os.ftruncate(self._file, size)
        except OSError as error:
            raise self._failed(error) from error

    def append(self, data: bytes) -> None:
        """Append lines. Raises ConfigurationError if the file cannot be written."""
        if not data:
            return
        try:
            if self._file is None:
                self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._mode)
                sync(self.path.parent)
            view, at = memoryview(data), self.size
            os.lseek(self._file, at, os.SEEK_SET)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            raise self._failed(error) from error
        self.size += len(data)
        self._unsynced = True

    def sync(self) -> None:
        """Sync the file to disk if it has changed. Raises ConfigurationError if that fails."""
        if self._file is not None and self._unsynced:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise self._failed(error) from error
            self._unsynced = False

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _failed(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"{self.path} cannot be written: {error.strerror}")


def rejected_lines(rejections: Sequence[Rejection], names: Sequence[str]) -> bytes:
    """Return one line for each rejected row: its number, code and reason, and the row as it was read.

    Args:
        rejections: The rejected rows.
        names: The columns of a table; empty for rows that are lines.
    """
    lines = []
    for rejection in rejections:
        line: dict[str, Any] = {"row": rejection.record.number, "code": rejection.code, "reason": rejection.reason}
        if rejection.id is not None:
            line["id"] = json_of(rejection.id)
        line["data"] = _as_read(rejection.record, names)
        lines.append(line)
    return _encoder.encode_lines(lines) if lines else b""


def _as_read(record: Record, names: Sequence[str]) -> object:
    data = record.data
    if isinstance(data, list):
        values = [*map(_as_json, data)]
        return dict(zip(names, values, strict=False)) if len(names) == len(values) else values
    parts = [_json_or_text(part) for part in data.split(b"\n")] if not record.fault else [data.decode(errors="replace")]
    return parts[0] if len(parts) == 1 else parts


def _as_json(value: Any) -> Any:
    """Return a value of a table in a type that JSON has; a number that JSON lacks becomes text: ``NaN`` or ``-inf``."""
    match value:
        case Json() | bool() | None:
            return value
        case str():
            return str(value)
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else str(value)
        case list() | tuple():
            return [*map(_as_json, value)]
        case dict():
            return {str(name): _as_json(member) for name, member in value.items()}
        case int() | float() | Decimal() | bytes() | date() | time():
            return value
    return str(value)


def _json_or_text(data: bytes) -> object:
    try:
        data.decode()
        msgspec.json.decode(data, type=Raw)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")
    return Raw(data)
