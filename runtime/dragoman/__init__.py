"""One grid and one console for databases without SQL: the runtime's public names."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dragoman_api.changes import Delete, Drop, Insert, Outcome, Plan, Update
    from dragoman_api.console import Answer
    from dragoman_api.errors import DragomanError, Refused
    from dragoman_api.filters import Filter, RawQuery
    from dragoman_api.grid import Page, RowKey, Sort

    from .automations.consent import Question
    from .blocking import BlockingSession, connect
    from .changes.sets import ChangeSet
    from .changes.undo import undo_lines
    from .connections.saved_connections import SavedConnection
    from .exports.formats import FileFormat
    from .imports.copy_plans import plan_copy
    from .imports.loads import load
    from .imports.previews import preview_import
    from .plugins.driver_views import DriverListing
    from .references import Reference
    from .runtime import Runtime, open  # noqa: A004 - dragoman.open("shop")
    from .sessions.relative_times import Span
    from .sessions.rows import Rows
    from .sessions.selections import RowSelection
    from .sessions.session import Session

_ROOMS = {
    "dragoman_api.changes": "Delete Drop Insert Outcome Plan Update",
    "dragoman_api.console": "Answer",
    "dragoman_api.errors": "DragomanError Refused",
    "dragoman_api.filters": "Filter RawQuery",
    "dragoman_api.grid": "Page RowKey Sort",
    "dragoman.blocking": "BlockingSession connect",
    "dragoman.changes.sets": "ChangeSet",
    "dragoman.changes.undo": "undo_lines",
    "dragoman.connections.saved_connections": "SavedConnection",
    "dragoman.sessions.relative_times": "Span",
    "dragoman.sessions.selections": "RowSelection",
    "dragoman.sessions.rows": "Rows",
    "dragoman.exports.formats": "FileFormat",
    "dragoman.imports.copy_plans": "plan_copy",
    "dragoman.imports.loads": "load",
    "dragoman.imports.previews": "preview_import",
    "dragoman.references": "Reference",
    "dragoman.plugins.driver_views": "DriverListing",
    "dragoman.automations.consent": "Question",
    "dragoman.runtime": "Runtime open",
    "dragoman.sessions.session": "Session",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [
    "Answer", "BlockingSession", "ChangeSet", "Delete", "DragomanError", "DriverListing", "Drop", "FileFormat",
    "Filter", "Insert", "Outcome", "Page", "Plan", "Question", "RawQuery", "Reference", "Refused", "RowKey",
    "RowSelection", "Rows", "Runtime", "SavedConnection", "Session", "Sort", "Span", "Update", "connect", "load",
    "open", "plan_copy", "preview_import", "undo_lines",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a name's module when it is first used: a command line starts without the rest."""
    if (room := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(room), name)
