"""Formats of files to import, chosen by the option, the manifest of an export, or the ending of the file's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.exports.formats import COMPRESSED, PACKED, format_of_ending
from dragoman_api.errors import ConfigurationError
from dragoman_registry import files

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ("documents", "ndjson", "json", "rows", "csv", "tsv", "bulk", "parquet")
"""The values of `--format`: the formats of an export that an import reads back."""

_MOST = 1 << 20  # bytes of a manifest


class _Noted(msgspec.Struct):
    code: str


class ExportManifest(msgspec.Struct):
    """The fields that an import reads of an export's manifest, which anyone may have written.

    Attributes:
        format: The name of the file's format, as ``csv``.
        bytes: The file's size.
        notes: The codes of the notes on the file.
    """

    format: str
    bytes: int
    notes: list[_Noted] = []

    @property
    def escaped(self) -> bool:
        """Whether the export put an apostrophe before formulas."""
        return any(note.code == "formulas-escaped" for note in self.notes)


def choose(path: Path | None, *, format: str | None) -> tuple[str, str | None]:  # noqa: A002 - the option's name
    """Choose the format of a file, and the compression that its name stands for.

    Args:
        path: The file; None for standard input.
        format: The format that the caller named; None to find it out.

    Returns:
        The format, and ``gzip``, ``bzip2``, ``zstd`` or None.

    Raises:
        ConfigurationError: There is no such format, or neither a manifest nor the name tells the format.
    """
    if format is not None and format not in FORMATS:
        raise ConfigurationError(f"unknown format {format!r}", hint=f"use one of: {', '.join(FORMATS)}")
    suffixes = [suffix.lower() for suffix in path.suffixes] if path else []
    outer = COMPRESSED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if outer else suffixes
    if suffixes and suffixes[-1] in PACKED:
        hint = f"unpack it first, or pack it again as one of {', '.join(COMPRESSED)}"
        text = f"{path} is packed in a way that an import does not read: {suffixes[-1]}"
        raise ConfigurationError(text, hint=hint, code="format-unknown")
    manifest = read_manifest(path) if path and not format else None
    format_name = format or (manifest and manifest.format) or format_of_ending(inner, FORMATS, what="an import")
    format_name = "documents" if format_name == "ndjson" else format_name
    if format_name == "parquet" and (outer or path is None):
        text = "a Parquet file has internal compression and cannot be streamed"
        raise ConfigurationError(text, hint="name a file that ends in .parquet")
    return format_name, outer


def read_manifest(path: Path) -> ExportManifest | None:
    """Return the manifest beside an exported file; None if there is none, or it does not fit the file."""
    try:
        data = files.read_plain(path.with_name(f"{path.name}.manifest.json"), limit=_MOST)
        manifest = msgspec.json.decode(data, type=ExportManifest)
        return manifest if manifest.bytes == path.stat().st_size and manifest.format in FORMATS else None
    except (OSError, ValueError):
        return None
