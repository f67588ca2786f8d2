"""Exports: turn a driver's parts into one complete file, or none."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .export import Export, ExportResult, ExportSource, add_notes
    from .formats import COMPRESSIONS, FORMATS, FileFormat, choose, choose_columns, need
    from .targets import files_beside, is_url, unfinished
    from .values import read_row

_HOME = {
    "COMPRESSIONS": "formats",
    "FORMATS": "formats",
    "Export": "export",
    "ExportResult": "export",
    "ExportSource": "export",
    "FileFormat": "formats",
    "add_notes": "export",
    "choose": "formats",
    "choose_columns": "formats",
    "files_beside": "targets",
    "is_url": "targets",
    "need": "formats",
    "read_row": "values",
    "unfinished": "targets",
}

__all__ = [
    "COMPRESSIONS",
    "FORMATS",
    "Export",
    "ExportResult",
    "ExportSource",
    "FileFormat",
    "add_notes",
    "choose",
    "choose_columns",
    "files_beside",
    "is_url",
    "need",
    "read_row",
    "unfinished",
]


def __getattr__(name: str) -> object:
    """Import a name's module at its first use: most commands export nothing."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
