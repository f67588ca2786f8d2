"""Export formats: choosing one, and converting lines to it."""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import msgspec

from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.errors import ConfigurationError
from dragoman_api.exports import ExportForm
from dragoman_api.kit.left_out import CUT, columns_left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_api.columns import Column, Description, Note

FORMS = {
    "documents": ExportForm.DOCUMENTS,
    "rows": ExportForm.ROWS,
    "json": ExportForm.DOCUMENTS,
    "csv": ExportForm.ROWS,
    "tsv": ExportForm.ROWS,
    "bulk": ExportForm.BULK,
    "arrow": ExportForm.ROWS,
    "parquet": ExportForm.ROWS,
}
"""What each format is made of."""

FORMATS = (*FORMS, "ndjson")
COMPRESSIONS = ("gzip", "bzip2", "zstd")
SEPARATED = ("csv", "tsv")
"""Formats of lines of fields, which a spreadsheet opens."""

COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
"""Compressions by the ending of a file's name."""

ENDINGS = {
    ".ndjson": "documents",
    ".jsonl": "documents",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".parquet": "parquet",
}
"""Formats by the ending of a file's name, without that of a compression."""

TYPED = ("arrow", "parquet")
"""Formats of columns that have types."""

PACKED = (".xz", ".lzma", ".lz4", ".br", ".zip", ".7z", ".tgz")
"""Endings of compressed files that an export cannot be."""


class Shape(msgspec.Struct, frozen=True):
    """The format and compression of an export.

    Attributes:
        format: One of `FORMS`.
        compression: One of `COMPRESSIONS`; None for no compression.
        escape: Put an apostrophe before formulas; CSV and TSV only.
        strict: Refuse a value that does not fit its column's type; Arrow and Parquet only.
    """

    format: str
    compression: str | None
    escape: bool = False
    strict: bool = False

    @property
    def form(self) -> ExportForm:
        """The form to request from the driver."""
        return FORMS[self.format]

    @property
    def tabular(self) -> bool:
        """Whether the file has columns."""
        return self.format in (*SEPARATED, *TYPED)


def choose(
    to: Path | BinaryIO,
    *,
    format: str | None,  # noqa: A002
    compress: str | None,
    escape_formulas: bool = False,
    strict: bool = False,
) -> Shape:
    """Choose the shape: from the arguments, else from the file's name; unchanged documents if that has no ending.

    Raises:
        ConfigurationError: The format is unknown, does not fit the target, or needs a missing package; or the file's
            name has an unknown ending, and the arguments do not say the format.
    """
    suffixes = [each.lower() for each in to.suffixes] if isinstance(to, Path) else []
    outer = COMPRESSED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if outer else suffixes
    if not compress and suffixes and suffixes[-1] in PACKED:
        text = f"an export cannot be compressed as {suffixes[-1]!r} says"
        raise ConfigurationError(text, hint=f"end the file's name in {' or '.join(COMPRESSED)}", code="format-unknown")
    chosen = format or format_of_ending(inner, FORMATS, what="an export")
    chosen = "documents" if chosen == "ndjson" else chosen
    if chosen not in FORMS:
        raise ConfigurationError(f"unknown format {chosen!r}", hint=f"use one of: {', '.join(FORMATS)}")
    if compress is not None and compress not in COMPRESSIONS:
        raise ConfigurationError(f"unknown compression {compress!r}", hint=f"use {' or '.join(COMPRESSIONS)}")
    shape = Shape(chosen, compress or outer, escape_formulas, strict)
    if escape_formulas and chosen not in SEPARATED:
        hint = "omit it, or export with --format csv"
        raise ConfigurationError(f"only CSV and TSV files have escaped formulas, but the format is {chosen}", hint=hint)
    if strict and chosen not in TYPED:
        hint = "omit it, or export with --format parquet"
        raise ConfigurationError(f"only Arrow and Parquet files are strict, but the format is {chosen}", hint=hint)
    if chosen == "arrow":
        need("pyarrow", extra="arrow")
    if chosen == "parquet":
        if outer or not isinstance(to, Path):
            text = "a Parquet file has internal compression and cannot be streamed"
            raise ConfigurationError(text, hint="use a file name that ends in .parquet")
        if shape.compression == "bzip2":
            raise ConfigurationError("a Parquet file is not compressed with bzip2", hint="use gzip or zstd")
        need("pyarrow", extra="parquet")
    if shape.compression == "zstd" and chosen != "parquet":
        zstd()
    return shape


def format_of_ending(suffixes: Sequence[str], formats: Sequence[str], *, what: str) -> str:
    """Return the format that the endings of a file's name say; documents if there is none.

    Args:
        suffixes: The endings in lower case, without that of a compression.
        formats: Those that are possible.
        what: The subject of the refusal: ``an export``.

    Raises:
        ConfigurationError: The last ending names no format.
    """
    if not suffixes:
        return "documents"
    endings = {ending: each for ending, each in ENDINGS.items() if each in formats}
    if (found := endings.get(suffixes[-1])) is None:
        known = f"{', '.join(endings)} and {', '.join(COMPRESSED)} after them"
        text = f"the ending {suffixes[-1]!r} names no format of {what}; known are {known}"
        raise ConfigurationError(text, hint="choose the format: --format documents", code="format-unknown")
    return found


def need(module: str, *, extra: str) -> None:
    """Check that a package of an extra is installed.

    Raises:
        ConfigurationError: It is not.
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise ConfigurationError(f"this needs the package {module}", hint=f"pip install 'dragoman[{extra}]'")


def zstd() -> Any:
    """Return the module of zstd: of the standard library since Python 3.14, else the backport.

    Raises:
        ConfigurationError: The backport is not installed.
    """
    from importlib import import_module

    for name in ("backports.zstd", "compression.zstd"):
        with suppress(ImportError):
            return import_module(name)
    raise ConfigurationError("zstd needs the package backports.zstd", hint="pip install 'dragoman[zstd]'")


class Compressing(Protocol):
    """The interface that the compressors of zlib, bz2 and zstd share."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress bytes; return the output that is ready."""

    def flush(self) -> bytes:
        """End the member or frame; return the remaining output."""


def _gzip() -> Callable[[], Compressing]:
    # 31: a gzip member with its own header; its time stays 0, so equal exports are equal files
    return lambda: zlib.compressobj(wbits=31)


def _bzip2() -> Callable[[], Compressing]:
    from bz2 import BZ2Compressor

    return BZ2Compressor


def _zstd() -> Callable[[], Compressing]:
    made: Callable[[], Compressing] = zstd().ZstdCompressor
    return made


_COMPRESSORS = {"gzip": _gzip, "bzip2": _bzip2, "zstd": _zstd}


class Compressor:
    """Compresses in members that can end anywhere, so that a file can be truncated after each of them."""

    def __init__(self, compression: str) -> None:
        self._make = _COMPRESSORS[compression]()
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
            raise unknown_column(description, name)
        if not columns[name].path:
            why = columns[name].reasons.get("export", "it is computed for a page")
            reason = f"an export does not hold the column {name!r}: {why}"
        elif name in names[:at]:
            reason = f"the column {name!r} is named twice"
        if reason:
            raise ConfigurationError(reason, details={"column": name})
    return [columns[name] for name in names]


def column_notes(description: Description, names: Sequence[str] | None) -> list[Note]:
    """Return notes on the columns that a table of all columns leaves out; none if its columns are named."""
    if names is not None:
        return []
    reasons = {
        column.name: column.reasons["export"]
        for column in description.columns
        if not column.path and "export" in column.reasons
    }
    cut = [note for note in description.notes if note.code == CUT]
    return [*cut, *columns_left_out(reasons)]


def lists_not_all(description: Description) -> bool:
    """Return whether an object has more columns than its description lists."""
    return any(note.code == CUT for note in description.notes)


def unknown_column(description: Description, name: str) -> ConfigurationError:
    """Return the error for a column that a description does not list; an object may have more than it lists."""
    text, hint = f"{description.object!r} has no column {name!r}", ""
    if lists_not_all(description):
        text = (
            f"{name!r} is not among the {MAX_COLUMNS:,} columns that are read of {description.object!r}, which has more"
        )
        hint = "use documents (NDJSON), which hold all that is stored"
    return ConfigurationError(text, hint=hint, code="column-unknown", details={"column": name})
