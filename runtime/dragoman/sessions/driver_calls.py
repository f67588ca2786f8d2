"""A session's calls to its driver: they ask automations first, and have deadlines and limits."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from dragoman.automations import Meter
from dragoman_api.calls import Call
from dragoman_api.errors import DragomanError
from dragoman_worker.hook_types import EXPORT, HOOKS

from .unknown_outcomes import tell_unknown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from dragoman.settings import Limit
    from dragoman_api.events import Event
    from dragoman_api.exports import ExportPart, ExportRequest
    from dragoman_api.hookspecs import DriverSpec

    from .live_driver import LiveDriver

    Result = TypeVar("Result")
    Request = TypeVar("Request")
    Pending = Coroutine[Any, Any, Result | None]


class Calls:
    """The calls of one open connection."""

    def __init__(self, driver: LiveDriver, *, emit: Callable[[Event], None], limit: Limit) -> None:
        self._driver, self._emit, self._limit = driver, emit, limit

    @overload
    async def run(self, hook: Callable[[DriverSpec], Pending[Result]], /, **about: Any) -> Result: ...
    @overload
    async def run(
        self, hook: Callable[[DriverSpec, Request], Pending[Result]], request: Request, /, **about: Any
    ) -> Result: ...
    async def run(self, hook: Callable[..., Any], /, *request: object, **about: Any) -> Any:
        """Ask the automations, call a hook, and measure its result.

        Args:
            hook: The hook's specification, which types the request and the result.
            request: The hook's only argument, if it has one.
            about: Further fields of `Call` for the automations.

        Raises:
            DragomanError: An automation vetoed the call, or the call failed.
        """
        call = self._call(hook.__name__, **about)
        hooks = await self._driver.hooks()
        await hooks.ask(call)
        meter = Meter(self._limit, call, emit=self._emit)
        try:
            with self._driver.explaining(), meter.timing():
                result = await hooks.call(call.hook, *request, deadline=meter.left(HOOKS[call.hook].seconds))
        except DragomanError as error:
            tell_unknown(error, call)
            raise
        meter.take_result(result)
        return result

    @asynccontextmanager
    async def parts(self, request: ExportRequest) -> AsyncIterator[AsyncIterator[ExportPart]]:
        """Ask the automations, and stream the parts of an export while the block runs."""
        from dragoman.exports.part_checks import counted

        hooks = await self._driver.hooks()
        call = self._call(EXPORT, object=request.object)
        await hooks.ask(call)
        meter = Meter(self._limit, call, emit=self._emit)
        with self._driver.explaining():
            async with (
                aclosing(counted(hooks.stream(EXPORT, request), request)) as stream,
                aclosing(meter.parts(stream)) as parts,
            ):
                yield parts

    def _call(self, hook: str, **fields: Any) -> Call:
        return Call(hook=hook, connection=self._driver.info, unattended=self._driver.unattended, **fields)
