"""The names that authors of drivers and automations import."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cells import MISSING, Cell, CutBytes, CutJson, CutText, Json
    from .changes import (
        Delete,
        Drop,
        HttpRequest,
        Insert,
        Outcome,
        OutcomeStatus,
        Plan,
        PlannedRequest,
        PlanRequest,
        Update,
    )
    from .columns import (
        Column,
        ColumnKind,
        Description,
        Note,
        Object,
        ObjectList,
        ObjectsRequest,
        Operator,
        Role,
        TimeColumn,
        Written,
    )
    from .connections import Health, Profile, Server
    from .console import Answer, AnswerKind, ConsoleRequest, ConsoleText
    from .errors import (
        AuthenticationError,
        ConnectionFailedError,
        DragomanError,
        FilterNotSupportedError,
        QueryError,
        Refused,
        UnsupportedOperationError,
    )
    from .events import Call, Event
    from .exports import ExportPart, ExportRequest
    from .filters import CompiledFilter, Explanation, Filter, FilterRequest, RawQuery, TimeRange
    from .grid import CellRequest, CountRequest, Page, PageRequest, RowId, RowKey, Sort
    from .hookspecs import hookimpl
    from .http import Http

_ROOMS = {
    "cells": "Cell CutBytes CutJson CutText Json MISSING",
    "changes": "Delete Drop HttpRequest Insert Outcome OutcomeStatus Plan PlanRequest PlannedRequest Update",
    "columns": "Column ColumnKind Description Note Object ObjectList ObjectsRequest Operator Role TimeColumn Written",
    "connections": "Health Profile Server",
    "console": "Answer AnswerKind ConsoleRequest ConsoleText",
    "errors": "AuthenticationError ConnectionFailedError DragomanError FilterNotSupportedError QueryError Refused "
    "UnsupportedOperationError",
    "events": "Call Event",
    "exports": "ExportPart ExportRequest",
    "filters": "CompiledFilter Explanation Filter FilterRequest RawQuery TimeRange",
    "grid": "CellRequest CountRequest Page PageRequest RowId RowKey Sort",
    "hookspecs": "hookimpl",
    "http": "Http",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [
    "MISSING", "Answer", "AnswerKind", "AuthenticationError", "Call", "Cell", "CellRequest", "Column", "ColumnKind",
    "CompiledFilter", "ConnectionFailedError", "ConsoleRequest", "ConsoleText", "CountRequest", "CutBytes", "CutJson",
    "CutText", "Delete", "Description", "DragomanError", "Drop", "Event", "Explanation", "ExportPart", "ExportRequest",
    "Filter", "FilterNotSupportedError", "FilterRequest", "Health", "Http", "HttpRequest", "Insert", "Json", "Note",
    "Object", "ObjectList", "ObjectsRequest", "Operator", "Outcome", "OutcomeStatus", "Page", "PageRequest", "Plan",
    "PlanRequest", "PlannedRequest", "Profile", "QueryError", "RawQuery", "Refused", "Role", "RowId", "RowKey",
    "Server", "Sort", "TimeColumn", "TimeRange", "UnsupportedOperationError", "Update", "Written", "hookimpl",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a name's module on first use, so that the command line does not load aiohttp."""
    if (room := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{room}", __name__), name)
