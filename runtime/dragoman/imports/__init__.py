"""Imports: the rows of a file are read block by block, written like any change, and each has an outcome."""

from .checkpoints import unfinished
from .copies import copy, make_pipe
from .loads import Load, LoadOptions, files_beside, load
from .reports import LoadReport
from .sources import FORMATS

__all__ = [
    "FORMATS",
    "Load",
    "LoadOptions",
    "LoadReport",
    "copy",
    "files_beside",
    "load",
    "make_pipe",
    "unfinished",
]
