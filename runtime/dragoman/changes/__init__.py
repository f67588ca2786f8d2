"""Changes by the file: read, planned as a whole, applied in parts, and taken back."""

from .files import ChangeFile
from .sets import ChangeSet, LineOutcome, Report
from .undo import UndoFile

__all__ = ["ChangeFile", "ChangeSet", "LineOutcome", "Report", "UndoFile"]
