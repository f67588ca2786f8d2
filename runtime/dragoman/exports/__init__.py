"""Exports: turn a driver's parts into one complete file, or none."""

from .checkpoints import unfinished
from .driver_notes import add_notes
from .export import Export, ExportSource
from .formats import COMPRESSIONS, FORMATS, Shape, choose, choose_columns
from .results import ExportResult
from .targets import files_beside
from .values import read_row

__all__ = [
    "COMPRESSIONS",
    "FORMATS",
    "Export",
    "ExportResult",
    "ExportSource",
    "Shape",
    "add_notes",
    "choose",
    "choose_columns",
    "files_beside",
    "read_row",
    "unfinished",
]
