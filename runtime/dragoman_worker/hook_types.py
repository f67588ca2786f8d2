"""The hooks on the wire: what each takes and returns, and its deadline."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman_api.cells import Cell
from dragoman_api.changes import HttpRequest, Outcome, Plan, PlanRequest
from dragoman_api.columns import Description, ObjectList, ObjectsRequest
from dragoman_api.connections import Health, Server
from dragoman_api.console import Answer, Completion, CompletionRequest, ConsoleRequest, ConsoleText
from dragoman_api.exports import ExportRequest, ExportSplit, SnapshotHold, SplitRequest
from dragoman_api.filters import CompiledFilter, FilterRequest
from dragoman_api.grid import CellRequest, CountRequest, Page, PageRequest, PreviewRequest
from dragoman_api.summaries import ColumnSummary, SummaryRequest

from .deadlines import DEADLINES


class HookType(NamedTuple):
    """A hook on the wire.

    Attributes:
        request: The type of its one argument, or None if it takes none.
        result: The type of its result, or None if it returns nothing.
        seconds: The deadline. For a stream, the longest time between two parts.
        stream: Whether it yields parts.
    """

    request: Any
    result: Any
    seconds: float
    stream: bool = False


EXPORT = "export_rows"

_TYPES: dict[str, tuple[Any, Any]] = {
    "connect": (None, Server | None),  # the profile is handed over before the first call
    "ping": (None, Health | None),
    "close": (None, None),
    "list_objects": (ObjectsRequest, ObjectList | None),
    "describe_object": (str, Description | None),
    "compile_filter": (FilterRequest, CompiledFilter | None),
    "fetch_page": (PageRequest, Page | None),
    "fetch_cell": (CellRequest, Cell),
    "count_rows": (CountRequest, int | None),
    "summarize_column": (SummaryRequest, ColumnSummary | None),
    "preview_read": (PreviewRequest, list[HttpRequest] | None),
    "plan_change": (PlanRequest, Plan | None),
    "apply_change": (Plan, list[Outcome] | None),
    "parse_console": (ConsoleText, list[ConsoleRequest] | None),
    "execute_console": (ConsoleRequest, Answer | None),
    "complete_console": (CompletionRequest, Completion | None),
    EXPORT: (ExportRequest, None),
    "split_export": (SplitRequest, ExportSplit | None),
    "hold_snapshot": (SnapshotHold, bool | None),
}
"""The types of each hook's request and result."""

HOOKS: dict[str, HookType] = {
    name: HookType(request, result, DEADLINES[name], stream=name == EXPORT)
    for name, (request, result) in _TYPES.items()
}
