"""Exports: from a driver's parts to one complete file, or none."""

from .export import Export, Source
from .formats import COMPRESSIONS, FORMATS, choose, choose_columns
from .results import ExportResult
from .targets import unfinished

__all__ = ["COMPRESSIONS", "FORMATS", "Export", "ExportResult", "Source", "choose", "choose_columns", "unfinished"]
