"""The driver as the host's hooks see it: one method per hook, each a call to its process."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from dragoman_api.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dragoman_api.cells import Cell
    from dragoman_api.changes import Outcome, Plan, PlanRequest
    from dragoman_api.columns import Description, Object
    from dragoman_api.connections import Health, Profile, Server
    from dragoman_api.console import Answer, ConsoleRequest, ConsoleText
    from dragoman_api.exports import ExportPart, ExportRequest
    from dragoman_api.filters import CompiledFilter, FilterRequest
    from dragoman_api.grid import CellRequest, CountRequest, Page, PageRequest

    from .process import Worker

PART_SECONDS = 120.0
"""Time between two parts of an export."""


class DriverProxy:
    """Stands for a driver in a pluggy manager of the host. The deadline of a call is the caller's scope."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __dir__(self) -> list[str]:
        """List what the driver announced: pluggy registers what it finds here, and the rest is not supported."""
        return sorted(self._worker.hooks)

    @hookimpl
    async def connect(self, profile: Profile) -> Server | None:
        """Forward `connect`; the worker makes the HTTP client and adds the secrets."""
        return cast("Server | None", await self._worker.call("connect", profile))

    @hookimpl
    async def ping(self) -> Health | None:
        """Forward `ping`."""
        return cast("Health | None", await self._worker.call("ping"))

    @hookimpl
    async def close(self) -> None:
        """Forward `close`."""
        await self._worker.call("close")

    @hookimpl
    async def list_objects(self) -> list[Object] | None:
        """Forward `list_objects`."""
        return cast("list[Object] | None", await self._worker.call("list_objects"))

    @hookimpl
    async def describe_object(self, name: str) -> Description | None:
        """Forward `describe_object`."""
        return cast("Description | None", await self._worker.call("describe_object", name))

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter | None:
        """Forward `compile_filter`."""
        return cast("CompiledFilter | None", await self._worker.call("compile_filter", request))

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page | None:
        """Forward `fetch_page`."""
        return cast("Page | None", await self._worker.call("fetch_page", request))

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Forward `fetch_cell`."""
        return cast("Cell", await self._worker.call("fetch_cell", request))

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int | None:
        """Forward `count_rows`."""
        return cast("int | None", await self._worker.call("count_rows", request))

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan | None:
        """Forward `plan_change`."""
        return cast("Plan | None", await self._worker.call("plan_change", request))

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome] | None:
        """Forward `apply_change`."""
        return cast("list[Outcome] | None", await self._worker.call("apply_change", plan))

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest] | None:
        """Forward `parse_console`."""
        return cast("list[ConsoleRequest] | None", await self._worker.call("parse_console", text))

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer | None:
        """Forward `execute_console`."""
        return cast("Answer | None", await self._worker.call("execute_console", request))

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncGenerator[ExportPart, None]:
        """Forward `export_rows`, part by part."""
        async with aclosing(self._worker.export(request, deadline=PART_SECONDS)) as parts:
            async for part in parts:
                yield part
