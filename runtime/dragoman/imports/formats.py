"""Formats of files to import: chosen by the option, the manifest of an export, or the file's ending."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.exports.formats import COMPRESSED, PACKED, format_of_ending
from dragoman_api.errors import ConfigurationError
from dragoman_registry import files

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ("documents", "ndjson", "json", "rows", "csv", "tsv", "bulk", "parquet")
"""What `--format` takes: the formats of an export, read back."""

_MOST = 1 << 20  # bytes of a manifest


class _Manifest(msgspec.Struct):
    format: str
    bytes: int


def choose(path: Path | None, *, format: str | None) -> tuple[str, str | None]:  # noqa: A002 - the option's name
    """Choose a format, and say how the file's name says that it is compressed.

    Args:
        path: The file; None for standard input.
        format: What the caller says.

    Returns:
        The format, and ``gzip``, ``bzip2``, ``zstd`` or None.

    Raises:
        ConfigurationError: There is no such format, or nothing says which one it is.
    """
    if format is not None and format not in FORMATS:
        raise ConfigurationError(f"unknown format {format!r}", hint=f"use one of: {', '.join(FORMATS)}")
    suffixes = [each.lower() for each in path.suffixes] if path else []
    outer = COMPRESSED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if outer else suffixes
    if suffixes and suffixes[-1] in PACKED:
        hint = f"unpack it first, or pack it again as one of {', '.join(COMPRESSED)}"
        text = f"{path} is packed in a way that an import does not read: {suffixes[-1]}"
        raise ConfigurationError(text, hint=hint, code="format-unknown")
    found = format or (path and _of_manifest(path)) or format_of_ending(inner, FORMATS, what="an import")
    found = "documents" if found == "ndjson" else found
    if found == "parquet" and (outer or path is None):
        text = "a Parquet file has internal compression and cannot be streamed"
        raise ConfigurationError(text, hint="name a file that ends in .parquet")
    return found, outer


def _of_manifest(path: Path) -> str | None:
    """Return the format that the manifest beside an exported file names, if it is about this file."""
    try:
        data = files.read_plain(path.with_name(f"{path.name}.manifest.json"), limit=_MOST)
        told = msgspec.json.decode(data, type=_Manifest)
        return told.format if told.bytes == path.stat().st_size and told.format in FORMATS else None
    except (OSError, ValueError):
        return None
