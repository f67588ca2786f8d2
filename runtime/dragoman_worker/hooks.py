"""What each hook takes and gives on the wire."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman_api.cells import Cell
from dragoman_api.changes import Outcome, Plan, PlanRequest
from dragoman_api.columns import Description, Object
from dragoman_api.connections import Health, Profile, Server
from dragoman_api.console import Answer, ConsoleRequest, ConsoleText
from dragoman_api.exports import ExportRequest
from dragoman_api.filters import CompiledFilter, FilterRequest
from dragoman_api.grid import CellRequest, CountRequest, Page, PageRequest


class HookType(NamedTuple):
    """The one argument of a hook and its result, None where it has none."""

    request: Any
    result: Any


EXPORT = "export_rows"

HOOKS: dict[str, HookType] = {
    "connect": HookType(Profile, Server | None),
    "ping": HookType(None, Health | None),
    "close": HookType(None, None),
    "list_objects": HookType(None, list[Object] | None),
    "describe_object": HookType(str, Description | None),
    "compile_filter": HookType(FilterRequest, CompiledFilter | None),
    "fetch_page": HookType(PageRequest, Page | None),
    "fetch_cell": HookType(CellRequest, Cell),
    "count_rows": HookType(CountRequest, int | None),
    "plan_change": HookType(PlanRequest, Plan | None),
    "apply_change": HookType(Plan, list[Outcome] | None),
    "parse_console": HookType(ConsoleText, list[ConsoleRequest] | None),
    "execute_console": HookType(ConsoleRequest, Answer | None),
    EXPORT: HookType(ExportRequest, None),
}
