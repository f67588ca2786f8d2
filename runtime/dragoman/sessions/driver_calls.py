"""A session's calls to its driver: they ask automations first, and have deadlines and limits."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from dragoman.automations import Meter
from dragoman_api.calls import Call
from dragoman_api.errors import ConfigurationError, DragomanError, DriverFaultError
from dragoman_api.exports import ExportForm
from dragoman_api.summaries import MAX_BUCKETS, MAX_VALUES
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
    from collections.abc import AsyncGenerator

    from dragoman_api.console import Completion
    from dragoman_api.summaries import ColumnSummary, SummaryRequest

_SHORT = 60
"""The average length of a line, in bytes, below which lines count as short."""

_HINT = "tell the driver's author: dragoman driver check finds it too"


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


def check_summary(*, values: int, buckets: int) -> None:
    """Check the numbers of values and buckets of a summary.

    Raises:
        ConfigurationError: A number is negative or too large.
    """
    if not (0 <= values <= MAX_VALUES and 0 <= buckets <= MAX_BUCKETS):
        text = f"a summary has 0 to {MAX_VALUES} values and 0 to {MAX_BUCKETS} buckets, not {values} and {buckets}"
        raise ConfigurationError(text)


def within(request: SummaryRequest, summary: ColumnSummary) -> ColumnSummary:
    """Return a summary if it is of the requested column, and no larger than requested.

    Raises:
        DriverFaultError: The summary does not fit the request.
    """
    if summary.column.name != request.column:
        raise DriverFaultError(f"the driver summarized column {summary.column.name!r} instead of {request.column!r}")
    if len(summary.values) > request.values or len(summary.buckets) > request.buckets:
        sizes = f"{len(summary.values)} values and {len(summary.buckets)} buckets"
        raise DriverFaultError(f"the driver returned {sizes}, not {request.values} and {request.buckets} at most")
    if summary.missing is not None and summary.missing > summary.rows:
        raise DriverFaultError(f"the driver counted {summary.missing:,} rows without a value of {summary.rows:,} rows")
    return summary


def check_position(text: str, position: int) -> None:
    """Check that a position lies in a text.

    Raises:
        ConfigurationError: The position is negative or greater than the length of the text.
    """
    if not 0 <= position <= len(text):
        raise ConfigurationError(f"position is 0 to {len(text):,}, the length of the text, not {position:,}")


def inside(text: str, completion: Completion) -> Completion:
    """Return a completion if each suggestion replaces characters of the text.

    Raises:
        DriverFaultError: A suggestion ends after the text.
    """
    last = max((suggestion.end for suggestion in completion.suggestions), default=0)
    if last > len(text):
        raise DriverFaultError(f"the driver suggested to replace characters up to {last:,} of {len(text):,}")
    return completion


async def counted(stream: AsyncGenerator[ExportPart, None], request: ExportRequest) -> AsyncGenerator[ExportPart, None]:
    """Yield the parts of an export while they match what the driver claims of them.

    For documents and rows, a line is one row; in the bulk form, a row has at least one line.

    Raises:
        DriverFaultError: A part ends inside a line, or has an empty line or a wrong number of rows; or its checkpoint
            is a repeated one, after which rows would come twice.
    """
    checkpoint, rows = request.checkpoint, 0
    async with aclosing(stream):
        async for part in stream:
            if fault := _fault(part, request.form):
                raise DriverFaultError(f"after row {rows:,}: {fault}", hint=_HINT)
            if part.rows and part.checkpoint is not None and part.checkpoint == checkpoint:
                text = "the driver's checkpoint did not advance, so resuming there would repeat rows"
                raise DriverFaultError(f"after row {rows:,}: {text}", hint=_HINT)
            checkpoint, rows = part.checkpoint, rows + part.rows
            yield part


def _fault(part: ExportPart, form: ExportForm) -> str:
    """Return a sentence on what is wrong with a part; empty if nothing is."""
    if part.data and not part.data.endswith(b"\n"):
        return "a part of the export ends inside a line"
    lines = _lines(part.data)
    if lines < 0:
        return "a part of the export has an empty line"
    if part.rows > lines or (part.rows != lines and form is not ExportForm.BULK):
        return f"the driver claims {part.rows:,} rows for a part that has {lines:,} lines"
    return ""


def _lines(data: bytes) -> int:
    """Return the number of lines; -1 if one is empty."""
    if data[:1] == b"\n":
        return -1
    lines, find, end = 0, data.find, len(data)
    at = find(b"\n") + 1
    while at:
        lines += 1
        if at < _SHORT * lines:  # many short lines: counting all bytes is faster than to stop at each of them
            return -1 if data.rfind(b"\n\n") >= 0 else data.count(b"\n")
        if at == end:
            break
        line_end = find(b"\n", at) + 1
        if line_end == at + 1:
            return -1
        at = line_end
    return lines
