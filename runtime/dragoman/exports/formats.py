"""Export formats: choosing one, and converting lines to it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from dragoman_api.errors import ConfigurationError
from dragoman_api.exports import ExportForm

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


@dataclass(frozen=True, slots=True)
class Shape:
    """The format and compression of an export.

    Attributes:
        format: One of `FORMS`.
        compression: One of `COMPRESSIONS`; None for no compression.
        escape: Put an apostrophe before formulas; CSV only.
    """

    format: str
    compression: str | None
    escape: bool = False

    @property
    def form(self) -> ExportForm:
        """The form to request from the driver."""
        return FORMS[self.format]

    @property
    def tabular(self) -> bool:
        """Whether the file has columns."""
        return self.format in _TABLES.values()


def choose(
    to: Path | BinaryIO,
    *,
    format: str | None,  # noqa: A002
    compress: str | None,
    escape_formulas: bool = False,
) -> Shape:
    """Choose the shape: from the arguments, else from the file's name, else unchanged documents.

    Raises:
        ConfigurationError: The format is unknown, does not fit the target, or needs a missing package.
    """
    suffixes = [each.lower() for each in to.suffixes] if isinstance(to, Path) else []
    outer = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if outer else suffixes
    chosen = format or _TABLES.get(inner[-1] if inner else "", "documents")
    chosen = "documents" if chosen == "ndjson" else chosen
    if chosen not in FORMS:
        raise ConfigurationError(f"unknown format {chosen!r}", hint=f"use one of: {', '.join(FORMATS)}")
    if compress is not None and compress not in COMPRESSIONS:
        raise ConfigurationError(f"unknown compression {compress!r}", hint=f"use {' or '.join(COMPRESSIONS)}")
    shape = Shape(chosen, compress or outer, escape_formulas)
    if escape_formulas and chosen != "csv":
        hint = "omit it, or export with --format csv"
        raise ConfigurationError(f"only CSV files have escaped formulas, but the format is {chosen}", hint=hint)
    if chosen == "parquet":
        if outer or not isinstance(to, Path):
            text = "a Parquet file has internal compression and cannot be streamed"
            raise ConfigurationError(text, hint="use a file name that ends in .parquet")
        _need("pyarrow", extra="parquet")
    if shape.compression == "zstd" and chosen != "parquet":
        zstd()
    return shape


def _need(module: str, *, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise ConfigurationError(f"this needs the package {module}", hint=f"pip install 'dragoman[{extra}]'")


def zstd() -> Callable[[], Compressing]:
    """Return the zstd compressor class: from the standard library since Python 3.14, else from the backport.

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
    """The interface that zlib and zstd compressors share."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress bytes; return the output that is ready."""

    def flush(self) -> bytes:
        """End the member or frame; return the remaining output."""


class Compressor:
    """Compresses in members that can end anywhere, so that a file can be truncated after each of them."""

    def __init__(self, compression: str) -> None:
        # 31: a gzip member with its own header; its time stays 0, so equal exports are equal files
        self._make = zstd() if compression == "zstd" else lambda: zlib.compressobj(wbits=31)
        self._member: Compressing | None = None

    def compress(self, data: bytes) -> bytes:
        """Compress bytes; return the output that is ready."""
        if self._member is None:
            self._member = self._make()
        return self._member.compress(data)

    def end(self) -> bytes:
        """End the member."""
        member, self._member = self._member, None
        return member.flush() if member else b""


def choose_columns(description: Description, names: Sequence[str] | None) -> list[Column]:
    """Choose a table's columns: the named ones in their order, else all that an export holds.

    Raises:
        ConfigurationError: A column does not exist, is not part of an export, or is named twice.
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
