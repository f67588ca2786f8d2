"""The formats of an export: which one is meant, and how lines become it."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from dragoman_api.errors import ConfigurationError
from dragoman_api.exports import ExportForm

from .values import ValueReader, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_api.columns import Column, Description

FORMS = {
    "documents": ExportForm.DOCUMENTS,
    "rows": ExportForm.ROWS,
    "csv": ExportForm.ROWS,
    "bulk": ExportForm.BULK,
    "parquet": ExportForm.ROWS,
}
"""What each format is made of."""

FORMATS = (*FORMS, "ndjson")
COMPRESSIONS = ("gzip", "zstd")
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
_TABLES = {".csv": "csv", ".parquet": "parquet"}
_SPECIAL = re.compile(rb'[",\r\n]')


@dataclass(frozen=True, slots=True)
class Shape:
    """How an export is written.

    Attributes:
        format: One of `FORMS`.
        compression: One of `COMPRESSIONS`, None for none.
    """

    format: str
    compression: str | None

    @property
    def form(self) -> ExportForm:
        """Give what the driver is asked for."""
        return FORMS[self.format]

    @property
    def tabular(self) -> bool:
        """Tell whether the file has columns."""
        return self.format in _TABLES.values()


def choose(to: Path | BinaryIO, *, format: str | None, compress: str | None) -> Shape:  # noqa: A002
    """Find out what is meant: what is said wins, then the file's name decides, then it is documents as they are.

    Raises:
        ConfigurationError: There is no such format, it does not fit the target, or it needs a package that is missing.
    """
    suffixes = [each.lower() for each in to.suffixes] if isinstance(to, Path) else []
    outer = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if outer else suffixes
    chosen = format or _TABLES.get(inner[-1] if inner else "", "documents")
    chosen = "documents" if chosen == "ndjson" else chosen
    if chosen not in FORMS:
        raise ConfigurationError(f"no format is called {chosen!r}", hint=f"use one of: {', '.join(FORMATS)}")
    if compress is not None and compress not in COMPRESSIONS:
        raise ConfigurationError(f"no compression is called {compress!r}", hint=f"use {' or '.join(COMPRESSIONS)}")
    shape = Shape(chosen, compress or outer)
    if chosen == "parquet":
        if outer or not isinstance(to, Path):
            text = "a Parquet file is compressed inside and cannot be streamed"
            raise ConfigurationError(text, hint="give a file name that ends in .parquet, and --compress if you like")
        _need("pyarrow", extra="parquet")
    if shape.compression == "zstd" and chosen != "parquet":
        zstd()
    return shape


def _need(module: str, *, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise ConfigurationError(f"this needs the package {module}", hint=f"pip install 'dragoman[{extra}]'")


def zstd() -> Callable[[], Compressing]:
    """Give what makes a zstd compressor: the standard library's from Python 3.14, its backport before.

    Raises:
        ConfigurationError: The backport is not installed.
    """
    try:
        from backports.zstd import ZstdCompressor
    except ImportError:
        try:
            from compression.zstd import ZstdCompressor  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            hint = "pip install 'dragoman[zstd]'"
            raise ConfigurationError("zstd needs the package backports.zstd", hint=hint) from None
    return ZstdCompressor


class Compressing(Protocol):
    """What zlib and zstd share."""

    def compress(self, data: bytes, /) -> bytes:
        """Take bytes; give those that are ready."""

    def flush(self) -> bytes:
        """Give the rest; the member or frame ends."""


class Compressor:
    """Compresses in members that can be ended anywhere, so that a file may be cut off behind each of them."""

    def __init__(self, compression: str) -> None:
        # 31: a gzip member with a header of its own; its time stays 0, so equal exports are equal files
        self._make = zstd() if compression == "zstd" else lambda: zlib.compressobj(wbits=31)
        self._member: Compressing | None = None

    def compress(self, data: bytes) -> bytes:
        """Give the bytes that are ready."""
        if self._member is None:
            self._member = self._make()
        return self._member.compress(data)

    def end(self) -> bytes:
        """End the member."""
        member, self._member = self._member, None
        return member.flush() if member else b""


def choose_columns(description: Description, names: Sequence[str] | None) -> list[Column]:
    """Find the columns of a table: those that are named, in their order, else all that an export holds.

    Raises:
        ConfigurationError: There is no such column, an export does not hold it, or it is named twice.
    """
    columns = {column.name: column for column in description.columns}
    names = [column.name for column in columns.values() if column.path] if names is None else names
    if not names:
        raise ConfigurationError(f"an export of {description.object} has no columns", hint="use --format documents")
    for at, name in enumerate(names):
        reason = ""
        if name not in columns:
            reason = f"{description.object} has no column {name!r}"
        elif not columns[name].path:
            reason = f"an export does not hold the column {name!r}; it is computed for a page"
        elif name in names[:at]:
            reason = f"the column {name!r} is named twice"
        if reason:
            raise ConfigurationError(reason, details={"column": name})
    return [columns[name] for name in names]


class Csv:
    """One line per row, one field per column, quoted as RFC 4180 says.

    Numbers keep their digits, arrays and objects are JSON. Nothing stands for null, ``""`` for an empty text.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._names = [column.name for column in columns]
        self._reader = ValueReader([column.path for column in columns])
        self._null = b'""' if len(columns) == 1 else b""  # or the line would be empty, and passed over by readers

    def head(self) -> bytes:
        """Give the line of column names."""
        return b",".join([_quoted(name.encode()) for name in self._names]) + b"\r\n"

    def convert(self, lines: bytes) -> bytes:
        """Give the bytes for whole lines of rows."""
        read, null = self._reader.read, self._null
        rows = [
            b",".join([null if value is None else _field(value) for value in read(line)])
            for line in lines.split(b"\n")
            if line
        ]
        return b"\r\n".join([*rows, b""])


def _field(value: bytes) -> bytes:
    if value[0] != 0x22:  # no text: an array or object is full of quotes, anything else has nothing to quote
        return _quoted(value) if value[0] in b"[{" else value
    if b"\\" not in value and b"," not in value and len(value) > 2:  # a quote or a line break would be escaped
        return value[1:-1]
    return _quoted(text_of(value).encode())


def _quoted(text: bytes) -> bytes:
    return b'"' + text.replace(b'"', b'""') + b'"' if not text or _SPECIAL.search(text) else text
