"""What a distribution beside the host builds on, apart from the names of `dragoman` itself."""

from __future__ import annotations

from dragoman_registry import files

from .blocking import BlockingRows
from .exports.formats import in_memory
from .exports.target_files import is_url, reporting, unwritable
from .folders import scratch_folder
from .lifetimes import background
from .sessions.splits import PartResult, Split
from .settings import AgentRules

__all__ = [
    "AgentRules",
    "BlockingRows",
    "PartResult",
    "Split",
    "background",
    "files",
    "in_memory",
    "is_url",
    "reporting",
    "scratch_folder",
    "unwritable",
]
