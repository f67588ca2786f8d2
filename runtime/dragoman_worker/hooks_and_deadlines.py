"""The hooks on the wire: the types of request and result of each, and its deadline in seconds."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman_api.cells import Cell
from dragoman_api.changes import HttpRequest, Outcome, Plan, PlanRequest
from dragoman_api.columns import Description, ObjectList, ObjectsRequest
from dragoman_api.connections import Health, Server, ServerStatus
from dragoman_api.console import Answer, Completion, CompletionRequest, ConsoleRequest, ConsoleText
from dragoman_api.exports import ExportRequest, ExportSplit, SnapshotHold, SplitRequest
from dragoman_api.filters import CompiledFilter, FilterRequest
from dragoman_api.grid import CellRequest, CountRequest, Page, PageRequest, PreviewRequest, SimilarRequest
from dragoman_api.summaries import ColumnSummary, SummaryRequest


class HookType(NamedTuple):
    """A hook on the wire.

    Attributes:
        request: The type of its last argument, the only one that travels with the call; None if it takes none.
        result: The type of its result, or None if it returns nothing.
        seconds: The deadline, after which the host gives up on the call; for a stream, the longest time between parts.
        stream: Whether it yields parts.
    """

    request: Any
    result: Any
    seconds: float
    stream: bool = False


EXPORT = "export_rows"

HOOKS: dict[str, HookType] = {
    "connect": HookType(str | None, Server | None, 60.0),  # the profile is handed over before the first call
    "ping": HookType(None, Health | None, 15.0),
    "read_status": HookType(None, ServerStatus | None, 15.0),
    "close": HookType(None, None, 5.0),
    "list_objects": HookType(ObjectsRequest, ObjectList | None, 60.0),
    "describe_object": HookType(str, Description | None, 60.0),
    "compile_filter": HookType(FilterRequest, CompiledFilter | None, 10.0),
    "fetch_page": HookType(PageRequest, Page | None, 120.0),
    "fetch_cell": HookType(CellRequest, Cell, 120.0),
    "count_rows": HookType(CountRequest, int | None, 120.0),
    "summarize_column": HookType(SummaryRequest, ColumnSummary | None, 120.0),
    "similar_rows": HookType(SimilarRequest, Page | None, 120.0),
    "preview_read": HookType(PreviewRequest, list[HttpRequest] | None, 60.0),
    "plan_change": HookType(PlanRequest, Plan | None, 120.0),
    "apply_change": HookType(Plan, list[Outcome] | None, 600.0),
    "parse_console": HookType(ConsoleText, list[ConsoleRequest] | None, 30.0),
    "execute_console": HookType(ConsoleRequest, Answer | None, 600.0),
    "complete_console": HookType(CompletionRequest, Completion | None, 15.0),
    EXPORT: HookType(ExportRequest, None, 120.0, stream=True),
    "split_export": HookType(SplitRequest, ExportSplit | None, 120.0),
    "hold_snapshot": HookType(SnapshotHold, bool | None, 60.0),
}
"""Each hook by its name."""
