"""Change files: they are read and planned as a whole, applied in parts, and undone."""

from .files import ChangeFile
from .sets import ChangeReport, ChangeSet, LineOutcome
from .undo import UndoFile, undo_lines

__all__ = ["ChangeFile", "ChangeReport", "ChangeSet", "LineOutcome", "UndoFile", "undo_lines"]
