"""The file side of an export: parts in, one complete file out, or none."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import anyio.to_thread
import msgspec

from dragoman_api.errors import ConfigurationError, ExportError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

FORMATS = ("ndjson", "csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """A complete export: rows, bytes of the file, its SHA-256 in hexadecimal, and how long it took."""

    target: str
    rows: int
    bytes: int
    sha256: str
    seconds: float


class ExportTarget:
    """Where an export goes: a file that appears only when it is complete, or an open stream.

    An async context manager: leaving it after `complete` puts the file in place, leaving it otherwise removes what
    was written so far.
    """

    def __init__(self, to: Path | BinaryIO) -> None:
        self._final = to if isinstance(to, Path) else None
        self._part: Path | None = None
        self._stream: BinaryIO | None = None if isinstance(to, Path) else to
        self._digest = hashlib.sha256()
        self._complete = False
        self.bytes = 0

    @property
    def name(self) -> str:
        """Name the target for messages and events."""
        return str(self._final) if self._final else getattr(self._stream, "name", "stream")

    @property
    def sha256(self) -> str:
        """Give the digest of what was written so far."""
        return self._digest.hexdigest()

    async def __aenter__(self) -> Self:
        if self._final is not None:
            await anyio.to_thread.run_sync(self._open, self._final)
        return self

    def _open(self, final: Path) -> None:
        if final.is_dir():
            raise ExportError(f"{final} is a folder", hint="give the name of a file in it")
        self._part = final.with_name(f".{final.name}.{os.getpid()}.part")
        try:
            handle = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            hint = "choose a folder that is there and that you may write into"
            raise ExportError(f"{final} cannot be written: {error.strerror}", hint=hint) from error
        self._stream = os.fdopen(handle, "wb", buffering=0)

    async def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            ExportError: The disk is full, or the target went away.
        """
        await anyio.to_thread.run_sync(self._write, data)

    def _write(self, data: bytes) -> None:
        assert self._stream is not None
        view = memoryview(data)
        try:
            while view:
                view = view[self._stream.write(view) :]
        except BrokenPipeError:
            raise  # the reader has seen enough; the command line ends quietly
        except OSError as error:
            raise self._failed(error) from error
        self._digest.update(data)
        self.bytes += len(data)

    def _failed(self, error: OSError) -> ExportError:
        hint = "free some space and export again; no file was left under the final name"
        return ExportError(f"{self.name} cannot be written: {error.strerror}", hint=hint)

    def complete(self) -> None:
        """Say that everything was written."""
        self._complete = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):  # a cancelled export must still remove what it began
            await anyio.to_thread.run_sync(self._finish)

    def _finish(self) -> None:
        assert self._stream is not None
        if self._part is None or self._final is None:
            self._stream.flush()
            return
        try:
            with self._stream:
                if self._complete:
                    os.fsync(self._stream.fileno())
            if self._complete:
                self._part.replace(self._final)
                _sync(self._final.parent)
        except OSError as error:  # some file systems tell only now that the disk is full
            raise self._failed(error) from error
        finally:
            self._part.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class NdjsonFormat:
    """The documents as they are stored, byte for byte, one a line."""

    def head(self) -> bytes:
        """Give what stands before the first row."""
        return b""

    def convert(self, lines: bytes) -> bytes:
        """Give the bytes for a part of whole lines."""
        return lines


class CsvFormat:
    """One line per document, one field per column; arrays and objects as JSON, RFC 4180 quoting."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._paths = [name.split(".") for name in columns]
        self._decoder = msgspec.json.Decoder(float_hook=str)

    def head(self) -> bytes:
        """Give the line of column names."""
        return _csv_lines([self._columns])

    def convert(self, lines: bytes) -> bytes:
        """Give the bytes for a part of whole lines."""
        documents = (self._decoder.decode(line) for line in lines.splitlines() if line.strip())
        return _csv_lines(
            [_field(document, name, path) for name, path in zip(self._columns, self._paths, strict=True)]
            for document in documents
        )


def make_format(name: str, columns: Sequence[str]) -> NdjsonFormat | CsvFormat:
    """Choose a format by name.

    Raises:
        ConfigurationError: There is no such format.
    """
    match name:
        case "ndjson":
            return NdjsonFormat()
        case "csv":
            return CsvFormat(columns)
    raise ConfigurationError(f"no format is called {name!r}", hint=f"use one of: {', '.join(FORMATS)}")


def _csv_lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def _field(document: object, name: str, path: list[str]) -> object:
    """Find one column in a document: the literal dotted key first, then the path through objects and arrays."""
    if isinstance(document, dict) and name in document:
        return _plain(document[name])
    return _plain(_walk(document, path))


def _walk(value: object, path: list[str]) -> object:
    if not path:
        return value
    if isinstance(value, list):
        return [_walk(item, path) for item in value]
    return _walk(value.get(path[0]), path[1:]) if isinstance(value, dict) else None


def _plain(value: object) -> object:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | dict():
            return msgspec.json.encode(value).decode()
    return value
