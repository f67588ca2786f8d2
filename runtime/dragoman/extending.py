"""What a distribution beside the host builds on, apart from the names of `dragoman` itself, such as dragoman-dask."""

from __future__ import annotations

from dragoman_registry import files

from .blocking import BlockingRows
from .exports.splits import PartResult, Split
from .exports.targets import is_url, reporting, unwritable
from .folders import scratch_folder
from .lifetimes import background

__all__ = [
    "BlockingRows",
    "PartResult",
    "Split",
    "background",
    "files",
    "is_url",
    "reporting",
    "scratch_folder",
    "unwritable",
]
