"""Export formats, compressions and columns, and their choice."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import msgspec

from dragoman_api.columns import MAX_COLUMNS, Column
from dragoman_api.errors import ConfigurationError
from dragoman_api.exports import ExportForm
from dragoman_api.kit.page_columns import CUT, columns_left_out

if TYPE_CHECKING:
    from dragoman_api.columns import Description, Note

    from .values import RowKeys

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
"""The form that each format requests from the driver."""

FORMATS = (*FORMS, "ndjson")
COMPRESSIONS = ("gzip", "bzip2", "zstd")
SEPARATED = ("csv", "tsv")
"""Formats with lines of fields, which a spreadsheet opens."""

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
"""Formats by the ending of a file's name, apart from the ending of a compression."""

TYPED = ("arrow", "parquet")
"""Formats whose columns have types."""

PACKED = (".xz", ".lzma", ".lz4", ".br", ".zip", ".7z", ".tgz")
"""Endings of compressed files that an export does not write."""


class FileFormat(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a file of an export is.

    Attributes:
        format: ``documents`` as they are stored, also called ``ndjson``; ``json`` for one array of them; ``rows`` with
            id and metadata; ``csv``; ``tsv``; ``bulk`` for the server's own bulk endpoint; ``arrow`` for an Arrow
            stream; ``parquet``. Empty goes by the ending of the file's name, and a name without one means documents.
        compression: ``gzip``, ``bzip2`` or ``zstd``; None goes by the file's name.
        escape: Put an apostrophe before the texts of a CSV or TSV file that a spreadsheet would take for a formula. If
            false, the texts stay unchanged and a note counts them.
        strict: Refuse a value that does not fit its type in an Arrow or Parquet file (code ``values-misfit``); see
            `Rows.batches`.
        lists: The names of the columns of an Arrow or Parquet file that are lists; None for those that hold an array in
            one of the first 200 rows. An export that is resumed keeps what its first run found.
    """

    format: str = ""
    compression: str | None = None
    escape: bool = False
    strict: bool = False
    lists: Sequence[str] | None = None

    @property
    def form(self) -> ExportForm:
        """The form to request from the driver."""
        return FORMS[self.format]

    @property
    def typed(self) -> bool:
        """Whether the file has columns that have types."""
        return self.format in TYPED

    @property
    def tabular(self) -> bool:
        """Whether the file has columns."""
        return self.format in (*SEPARATED, *TYPED)

    def choose(self, to: Path | BinaryIO) -> FileFormat:
        """Return the whole format of a file, whose name is never empty, without writing it. Blocks.

        Args:
            to: The path of the file, or an open binary stream.

        Raises:
            ConfigurationError: An export to that target would refuse the format.
        """
        return choose(to, self)


class TableColumns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of an export; none for a format without columns.

    Attributes:
        columns: The columns of the table, in order.
        described: All columns of the object, which say what objects in arrays hold; empty for those of the table.
        whole: The table has all columns of the object, so that fields without a column are counted.
        server_members: Members that the server adds to every row, which are not counted.
    """

    columns: list[Column] = []
    described: list[Column] = []
    whole: bool = False
    server_members: list[str] = []

    @property
    def lists(self) -> dict[str, str]:
        """What a list of one stands for in each column of lists, by the column's name."""
        return {column.name: column.many for column in self.columns if column.many}

    def row_keys(self) -> RowKeys | None:
        """Return what counts the fields of rows that have no column; None if the table leaves columns out."""
        from .values import RowKeys

        return RowKeys(self.described or self.columns, server_members=self.server_members) if self.whole else None


def choose(to: Path | BinaryIO, format: FileFormat | str | None = None) -> FileFormat:  # noqa: A002 - the public word
    """Decide the format of the file of an export: by the argument, else by the file's name.

    Args:
        to: The path of the file, or an open binary stream.
        format: The name of a format, or a `FileFormat` that may leave some of it open; None to go by the name.

    Returns:
        The whole format, whose name is one of `FORMS`.

    Raises:
        ConfigurationError: The format is unknown, does not fit the target, or needs a missing package; or the file's
            name has an unknown ending, and the argument does not say the format.
    """
    draft = format if isinstance(format, FileFormat) else FileFormat(format or "")
    if draft.format and draft.format not in FORMATS:
        raise ConfigurationError(f"unknown format {draft.format!r}", hint=f"use one of: {', '.join(FORMATS)}")
    if draft.compression is not None and draft.compression not in COMPRESSIONS:
        text = f"unknown compression {draft.compression!r}"
        raise ConfigurationError(text, hint=f"use {' or '.join(COMPRESSIONS)}")
    suffixes = [suffix.lower() for suffix in to.suffixes] if isinstance(to, Path) else []
    outer = COMPRESSED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if outer else suffixes
    if not draft.compression and suffixes and suffixes[-1] in PACKED:
        text = f"an export cannot be compressed as {suffixes[-1]!r} says"
        raise ConfigurationError(text, hint=f"end the file's name in {' or '.join(COMPRESSED)}", code="format-unknown")
    name = draft.format or format_of_ending(inner, FORMATS, what="an export")
    chosen = msgspec.structs.replace(
        draft, format="documents" if name == "ndjson" else name, compression=draft.compression or outer
    )
    if chosen.escape and chosen.format not in SEPARATED:
        hint = "omit it, or export with --format csv"
        text = f"only CSV and TSV files have escaped formulas, but the format is {chosen.format}"
        raise ConfigurationError(text, hint=hint)
    if chosen.strict and not chosen.typed:
        hint = "omit it, or export with --format parquet"
        text = f"only Arrow and Parquet files are strict, but the format is {chosen.format}"
        raise ConfigurationError(text, hint=hint)
    if chosen.lists and not chosen.typed:
        hint = "omit them, or export with format='parquet'"
        raise ConfigurationError("only the columns of Arrow and Parquet files are lists", hint=hint)
    if chosen.format == "parquet":
        if outer or not isinstance(to, Path):
            text = "a Parquet file has internal compression and cannot be streamed"
            raise ConfigurationError(text, hint="use a file name that ends in .parquet")
        if chosen.compression == "bzip2":
            raise ConfigurationError("a Parquet file is not compressed with bzip2", hint="use gzip or zstd")
    need(*["arrow"] * chosen.typed, *["zstd"] * (chosen.compression == "zstd" and chosen.format != "parquet"))
    return chosen


def in_memory(format: FileFormat | str) -> FileFormat:  # noqa: A002 - the public word
    """Return what a table in memory is: a format of Arrow.

    Raises:
        ConfigurationError: It is another format, or has what only a file has.
    """
    chosen = format if isinstance(format, FileFormat) else FileFormat(format)
    if chosen.format not in ("", "arrow") or chosen.compression is not None or chosen.escape:
        reason = f"a table in memory is of the format arrow, not {chosen.format or 'what a file is'}"
        raise ConfigurationError(reason, hint='FileFormat("arrow", lists=["…"], strict=True)')
    return msgspec.structs.replace(chosen, format="arrow")


def format_of_ending(suffixes: Sequence[str], formats: Sequence[str], *, what: str) -> str:
    """Return the format that the endings of a file's name stand for; documents if there is no ending.

    Args:
        suffixes: The endings in lower case, without that of a compression.
        formats: The possible formats.
        what: The subject of the error's message, such as ``an export``.

    Raises:
        ConfigurationError: The last ending names no format.
    """
    if not suffixes:
        return "documents"
    endings = {ending: name for ending, name in ENDINGS.items() if name in formats}
    if (name := endings.get(suffixes[-1])) is None:
        choices = f"{', '.join(endings)} and {', '.join(COMPRESSED)} after them"
        text = f"the ending {suffixes[-1]!r} names no format of {what}; known are {choices}"
        raise ConfigurationError(text, hint="choose the format: --format documents", code="format-unknown")
    return name


_PACKAGES = {"arrow": ("pyarrow",), "zstd": ("backports.zstd", "compression.zstd")}


def need(*extras: str) -> None:
    """Check that a package of each of these extras is installed: ``arrow``, ``zstd``.

    Raises:
        ConfigurationError: One is not installed (code ``extra-missing``).
    """
    missing = {extra: _PACKAGES[extra][0] for extra in extras if not any(map(_is_installed, _PACKAGES[extra]))}
    if missing:
        from dragoman_api.installation import packages_missing

        reason = f"this needs the package{'s' * (len(missing) > 1)} {' and '.join(missing.values())}"
        raise packages_missing(reason, *(f"dragoman[{extra}]" for extra in missing))


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    with suppress(ModuleNotFoundError):  # of the package that would hold it
        return find_spec(module) is not None
    return False


def zstd() -> Any:
    """Return the module for zstd: that of the standard library from Python 3.14 on, else the backport.

    Raises:
        ConfigurationError: The backport is not installed.
    """
    from importlib import import_module

    need("zstd")
    return import_module(next(filter(_is_installed, _PACKAGES["zstd"])))


class Compressing(Protocol):
    """The interface that the compressors of zlib, bz2 and zstd share."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress bytes, and return the output that is ready."""

    def flush(self) -> bytes:
        """End the member or frame, and return the rest of its output."""


class Compressor:
    """Compresses in members or frames of any length, so that a file can be truncated after each of them."""

    def __init__(self, compression: str) -> None:
        self._compression = compression
        self._member: Compressing | None = None

    def _begin(self) -> Compressing:
        if self._compression == "gzip":
            # 31: a gzip member with its own header; its time stays 0, so equal exports are equal files
            return zlib.compressobj(wbits=31)
        if self._compression == "bzip2":
            from bz2 import BZ2Compressor

            return BZ2Compressor()
        member: Compressing = zstd().ZstdCompressor()
        return member

    def compress(self, data: bytes) -> bytes:
        """Compress bytes, and return the output that is ready."""
        if self._member is None:
            self._member = self._begin()
        return self._member.compress(data)

    def end(self) -> bytes:
        """End the member or frame, and return the rest of its output."""
        member, self._member = self._member, None
        return member.flush() if member else b""


def choose_columns(description: Description, names: Sequence[str] | None) -> list[Column]:
    """Choose the columns of a table: the named ones in their order, else all that an export holds.

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
    """Return notes on columns that a table of all columns leaves out; none if a caller named the columns."""
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
