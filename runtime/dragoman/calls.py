"""How each call of a session reaches its driver: automations are asked, deadlines and limits hold, a crash is told."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from dragoman_api.calls import Call
from dragoman_api.errors import SandboxError
from dragoman_api.events import PluginCrashed

from .automations import Meter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dragoman_api.events import Event
    from dragoman_api.exports import ExportPart, ExportRequest

    from .loader import LiveDriver
    from .settings import Limit

DEADLINES = {
    "ping": 15.0,
    "list_objects": 60.0,
    "describe_object": 60.0,
    "compile_filter": 10.0,
    "fetch_page": 120.0,
    "fetch_cell": 120.0,
    "count_rows": 120.0,
    "plan_change": 120.0,
    "apply_change": 600.0,
    "parse_console": 30.0,
    "execute_console": 600.0,
}
"""Seconds each hook may take before the driver is taken for hung."""


class Calls:
    """The calls of one open connection."""

    def __init__(self, driver: LiveDriver, *, emit: Callable[[Event], None], limit: Limit) -> None:
        self._driver, self._emit, self._limit = driver, emit, limit

    def about(self, hook: str, object: str | None = None, **more: Any) -> Call:  # noqa: A002 - the design's word
        """Describe a call as automations see it."""
        return Call(hook=hook, connection=self._driver.info, object=object, unattended=self._driver.unattended, **more)

    async def run(self, call: Call, /, **arguments: Any) -> Any:
        """Ask the automations, call the hook, and measure what came. Raises DragomanError."""
        hooks = await self._driver.hooks()
        await hooks.ask(call)
        meter = Meter(self._limit, call, emit=self._emit)
        try:
            with meter.timing():
                result = await hooks.call(call.hook, deadline=meter.left(DEADLINES[call.hook]), **arguments)
        except SandboxError as error:
            if not self._driver.alive:
                plugin, name = self._driver.generation.plugin, self._driver.info.name
                self._emit(PluginCrashed(plugin=plugin, connection=name, reason=error.message))
            raise
        meter.take_result(result)
        return result

    @asynccontextmanager
    async def parts(self, request: ExportRequest) -> AsyncIterator[AsyncIterator[ExportPart]]:
        """Ask the automations, and stream the parts of an export while the block runs."""
        hooks = await self._driver.hooks()
        call = self.about("export_rows", request.object)
        await hooks.ask(call)
        meter = Meter(self._limit, call, emit=self._emit)
        async with (
            aclosing(hooks.stream("export_rows", request=request)) as stream,
            aclosing(meter.parts(stream)) as parts,
        ):
            yield parts
