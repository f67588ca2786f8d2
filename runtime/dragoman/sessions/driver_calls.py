"""A session's calls to its driver: what a read needs first, then automations, deadlines and limits around each call."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

import anyio
import msgspec
from msgspec.structs import replace

from dragoman.automations import Meter
from dragoman.spellings import LONGEST_NAME, did_you_mean, near_names
from dragoman_api import events
from dragoman_api.changes import OutcomeStatus
from dragoman_api.columns import ColumnKind, Note, TimeColumn
from dragoman_api.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ConsoleSyntaxError,
    DragomanError,
    DriverFaultError,
    FilterNotSupportedError,
    ObjectChangedError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_api.exports import ExportForm
from dragoman_api.filters import CompiledFilter, Filter, FilterRequest, RawQuery, TimeRange
from dragoman_api.grid import CountRequest, PageRequest, SimilarRequest
from dragoman_api.hookspecs import DriverSpec
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_api.summaries import SummaryRequest
from dragoman_api.wording import quoted
from dragoman_worker.hooks_and_deadlines import EXPORT, HOOKS

from .relative_times import resolve_rows, resolve_span, show_instant
from .selections import check_owner

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Iterator,
        Mapping,
        Sequence,
    )

    from dragoman.settings import Limit
    from dragoman_api.columns import Description
    from dragoman_api.events import Call, Event
    from dragoman_api.exports import ExportPart, ExportRequest

    from .live_driver import LiveDriver
    from .selections import RowSelection

    Result = TypeVar("Result")
    Request = TypeVar("Request")
    Pending = Coroutine[Any, Any, Result | None]

T = TypeVar("T")
Read = TypeVar("Read", PageRequest, CountRequest, SummaryRequest, SimilarRequest)

_CHANGES = 3  # times that a call is made again because its object changed
ANY = "any"
"""The key of `Column.reasons`, and the value of `FilterRequest.match`."""
_SHORT = 60
"""The average length of a line, in bytes, below which lines count as short."""

SHOWN_COLUMNS = 20
"""Number of columns that an error about an unknown one names."""

AUTHOR_HINT = "tell the driver's author: dragoman driver check finds it too"
"""The advice where a driver broke its contract."""

HINT = "check the result before sending it again"
_DETAIL = "outcome"
_SAID = "the write was handed over, and it is unknown whether it was applied: "
_UNSENT = (Refused, UnsupportedOperationError, ConfigurationError, ConsoleSyntaxError)
_ANSWERS = (AuthenticationError, AccessDeniedError)
APPROXIMATE = "filter-approximate"


class Prepared(msgspec.Struct, frozen=True):
    """What a request for the rows of a selection carries, and the notes on it.

    Attributes:
        filter: The compiled filter; None for all rows.
        time: The span of time that the rows must lie in; None for all.
        times: Notes on relative times in the filter, and on a default time window.
        now: The instant that relative times of the filter count from, RFC 3339; None if it has none.
    """

    filter: CompiledFilter | None
    time: TimeRange | None
    times: list[Note]
    now: str | None

    def fill(self, request: Read) -> Read:
        """Return the request with the filter and the span of time."""
        return replace(request, filter=self.filter, time=self.time)

    @property
    def notes(self) -> list[Note]:
        """Notes on relative times and a default time window, then on where the filter is approximate.

        A row of the filter that is approximate only in unlikely cases has none.
        """
        return [
            *self.times,
            *(
                Note(
                    code=APPROXIMATE, reason=f"filter row {row.row + 1} ({row.clause}): {'; '.join(row.approximations)}"
                )
                for row in (self.filter.rows if self.filter else ())
                if row.approximations or not (row.exact or row.unlikely)
            ),
        ]


class _Facts(msgspec.Struct, frozen=True):
    """What the driver's current process reported about an object."""

    incarnation: int
    excluded: dict[str, str]  # reasons, by column; see `check_any`
    time: TimeColumn | None
    columns: tuple[str, ...]
    instants: frozenset[str]  # columns


class DriverCalls:
    """The calls of one session to its driver.

    Attributes:
        keep_alive: Seconds for which an interrupted export can be resumed.
        capabilities: The capabilities that the driver's manifest announces.
    """

    def __init__(
        self, driver: LiveDriver, *, emit: Callable[[Event], None], limit: Limit, keep_alive: int, time_zone: str
    ) -> None:
        self.driver, self.emit, self.keep_alive = driver, emit, keep_alive
        self.capabilities = frozenset(driver.generation.manifest.capabilities)
        self._limit, self._time_zone = limit, time_zone
        self._facts: dict[str, _Facts] = {}
        self._describing = anyio.Lock()

    @overload
    async def run(self, hook: Callable[[DriverSpec], Pending[Result]], /, **fields: Any) -> Result: ...
    @overload
    async def run(
        self, hook: Callable[[DriverSpec, Request], Pending[Result]], request: Request, /, **fields: Any
    ) -> Result: ...
    async def run(self, hook: Callable[..., Any], /, *request: object, **fields: Any) -> Any:
        """Ask the automations, call a hook, and measure its result.

        Args:
            hook: The hook's specification, which types the request and the result.
            request: The hook's only argument, if it has one.
            fields: Further fields of `Call` for the automations.

        Raises:
            DragomanError: An automation vetoed the call, or the call failed.
        """
        call = self.driver.call_of(hook.__name__, **fields)
        hooks = await self.driver.hooks()
        await self.driver.ask(call)
        meter = Meter(self._limit, call, emit=self.emit)
        try:
            with self.driver.explaining(), meter.timing():
                result = await hooks.call(call.hook, *request, deadline=meter.left(HOOKS[call.hook].seconds))
        except DragomanError as error:
            self._tell_failed(error, call, meter)
            tell_unknown(error, call)
            if not call.writes:  # of a write it is said what became of it
                self._suggest_columns(error, call.object or "")
            raise
        with after_a_write(writes=call.writes):
            meter.take_result(result)
        return result

    def _tell_failed(self, error: DragomanError, call: Call, meter: Meter) -> None:
        """Emit that a call failed; a limit that ended it has said so."""
        if not isinstance(error, Refused):
            self.emit(
                events.CallFailed(
                    hook=call.hook,
                    code=error.code,
                    seconds=meter.passed(),
                    connection=self.driver.info.name,
                    object=call.object,
                )
            )

    def _suggest_columns(self, error: DragomanError, object_name: str) -> None:
        """Name the near columns, and some of all, if an error is about a column that its object does not have."""
        column, facts = error.details.get("column"), self._facts.get(object_name)
        if not isinstance(column, str) or facts is None or not facts.columns or column in facts.columns:
            return
        # Names are the server's: one with a line break would pass for a line of the host's own advice.
        names = [name for name in facts.columns if name.isprintable()]
        error.message += did_you_mean(near_names(column, names))
        listed = ", ".join(name[:LONGEST_NAME] for name in names[:SHOWN_COLUMNS])
        rest = f" and {len(facts.columns) - SHOWN_COLUMNS:,} more" if len(facts.columns) > SHOWN_COLUMNS else ""
        remedy = Remedy(RemedyKind.DESCRIBE_OBJECT, {"connection": self.driver.info.name, "object": object_name})
        error.advise(f"the columns of {quoted(object_name)} are {listed}{rest}", remedy)

    @asynccontextmanager
    async def parts(self, request: ExportRequest) -> AsyncIterator[AsyncIterator[ExportPart]]:
        """Ask the automations, and stream the parts of an export while the block runs."""
        hooks = await self.driver.hooks()
        call = self.driver.call_of(EXPORT, object=request.object)
        await self.driver.ask(call)
        meter = Meter(self._limit, call, emit=self.emit)
        with self.driver.explaining():
            async with (
                aclosing(counted(hooks.stream(EXPORT, request), request)) as stream,
                aclosing(meter.parts(stream)) as parts,
            ):
                yield parts

    async def describe(self, name: str) -> Description:
        """Describe the columns of one object, as the server has them now."""
        description = await self.run(DriverSpec.describe_object, name, object=name)
        instants = frozenset(column.name for column in description.columns if column.kind is ColumnKind.TIMESTAMP)
        columns = tuple(column.name for column in description.columns)
        self._facts[name] = _Facts(self.driver.incarnation, excluded(description), description.time, columns, instants)
        return description

    def _is_known(self, name: str) -> bool:
        facts = self._facts.get(name)
        return facts is not None and facts.incarnation == self.driver.incarnation

    async def know(self, name: str) -> bool:
        """Describe an object before another hook names it, as the contract promises; return whether that was needed."""
        if self._is_known(name) and self.driver.alive:
            return False  # a lock, even a free one, is a turn of the event loop
        async with self._describing:
            await self.driver.hooks()
            if new := not self._is_known(name):
                await self.describe(name)
            return new

    async def prepare(self, selection: RowSelection, *, fresh: bool = False) -> Prepared:
        """Compile the filter of a selection and resolve its span of time.

        Args:
            selection: The rows, with the instant that relative times count from.
            fresh: Describe the object again before a filter is compiled.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
            UnsupportedOperationError: The selection has a span of time, and the object or the driver takes none.
        """
        assert selection.now is not None
        rows = [row for row in selection.filters if not (isinstance(row, RawQuery) and not row.text.strip())]
        times: list[Note] = []
        compiled: CompiledFilter | None = None
        if rows:
            compiled = await self.compile(selection, rows, fresh=fresh, times=times)
        await self.know(selection.object)  # again after a filter: the driver's process may have ended meanwhile
        now = show_instant(selection.now) if times else None
        time_column = self._facts[selection.object].time if "time-range" in self.capabilities else None
        time_range, windows = resolve_span(selection.span, time_column, object=selection.object, now=selection.now)
        return Prepared(compiled, time_range, [*times, *windows], now)

    async def read(
        self, hook: Callable[[DriverSpec, Read], Pending[Result]], request: Read, selection: RowSelection, **fields: Any
    ) -> tuple[Result, Prepared, list[Note]]:
        """Call a hook with a request for the rows of a selection, again if the object's columns changed meanwhile.

        `fields` are further ones of `Call`, for the automations. The result comes with what the request carried, and
        with the host's notes on it.
        """

        async def call() -> tuple[Result, Prepared]:
            prepared = await self.prepare(selection)
            return await self.run(hook, prepared.fill(request), object=selection.object, **fields), prepared

        answer: tuple[Result, Prepared]
        changes: list[Note]
        answer, changes = await until_unchanged(call)
        return *answer, [*changes, *answer[1].notes]

    async def compile(
        self,
        selection: RowSelection,
        rows: Sequence[Filter | RawQuery],
        *,
        fresh: bool,
        times: list[Note] | None = None,
    ) -> CompiledFilter:
        """Compile filter rows of a selection.

        Args:
            selection: The rows, with the instant that relative times count from.
            rows: The filter rows to compile.
            fresh: Describe the object again first.
            times: Receives a note for each filter row with a relative time.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        assert selection.now is not None
        name = selection.object
        new = await self.know(name)
        if fresh and not new:
            await self.describe(name)
        facts = self._facts[name]
        resolved, notes = resolve_rows(list(rows), facts.instants, now=selection.now, zone=self._time_zone)
        request = FilterRequest(
            object=name,
            rows=resolved,
            match=selection.match,
            residual=selection.residual,
            now=show_instant(selection.now),
        )
        try:
            check_any(request, facts.excluded)
            compiled = await self.run(DriverSpec.compile_filter, request, object=name)
        except FilterNotSupportedError as error:
            if not (fresh or new):  # the column may have come since
                return await self.compile(selection, rows, fresh=True, times=times)
            column, operator = (str(error.details.get(key, "")) for key in ("column", "operator"))
            reason = str(error.details.get("reason") or error.message)
            connection = self.driver.info.name
            self.emit(
                events.FilterRejected(
                    connection=connection, object=name, column=column, operator=operator, reason=reason
                )
            )
            raise
        if stray := [explanation.row for explanation in compiled.rows if not 0 <= explanation.row < len(rows)]:
            raise DriverFaultError(f"the driver explained row {stray[0]} of a filter of {len(rows)} rows")
        if times is not None:
            times += notes
        return compiled

    def check(self, *, tenant: str | None = None, revision: str = "") -> None:
        """Check that the driver takes a tenant and a revision, if there are any.

        Raises:
            ConfigurationError: The name of the tenant is empty.
            UnsupportedOperationError: The driver has no tenants, or no revisions.
        """
        check_owner(tenant=tenant)
        plugin = self.driver.generation.plugin
        if tenant is not None and "tenants" not in self.capabilities:
            raise UnsupportedOperationError(f"the driver {plugin} has no tenants; {tenant!r} cannot be used")
        if revision and "revisions" not in self.capabilities:
            text = f"the driver {plugin} reads only the rows as they are now, not at revision {revision!r}"
            raise UnsupportedOperationError(text)


async def until_unchanged(call: Callable[[], Awaitable[T]]) -> tuple[T, list[Note]]:
    """Make a call, and repeat it if the object's columns changed meanwhile; also return notes on these changes."""
    notes: list[Note] = []
    while True:
        try:
            return await call(), notes
        except ObjectChangedError as error:
            if len(notes) == _CHANGES:
                raise
            notes.append(Note(code=error.code, reason=error.message))


def excluded(description: Description) -> dict[str, str]:
    """Return the reason of each column that a filter cannot match with ``any``."""
    return {column.name: column.reasons[ANY] for column in description.columns if ANY in column.reasons}


def check_any(request: FilterRequest, reasons: Mapping[str, str]) -> None:
    """Refuse a filter of several rows that matches ``any`` of them and names an excluded column.

    Raises:
        FilterNotSupportedError: The filter names an excluded column; the details hold row, column, operator and reason.
    """
    if request.match != ANY or len(request.rows) < 2:
        return
    for number, row in enumerate(request.rows):
        if isinstance(row, Filter) and (reason := reasons.get(row.column)):
            raise FilterNotSupportedError(
                f"filter row {number + 1}: {row.column} does not combine with other rows by any: {reason}; "
                "nothing was sent",
                hint="match all rows, or filter by this column alone",
                details={"row": number, "column": row.column, "operator": str(row.op), "reason": reason},
            )


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
                raise DriverFaultError(f"after row {rows:,}: {fault}", hint=AUTHOR_HINT)
            if part.rows and part.checkpoint is not None and part.checkpoint == checkpoint:
                text = "the driver's checkpoint did not advance, so resuming there would repeat rows"
                raise DriverFaultError(f"after row {rows:,}: {text}", hint=AUTHOR_HINT)
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


def tell_unknown(error: DragomanError, call: Call) -> None:
    """Mark an error of a driver call if it leaves the outcome of a write unknown.

    The outcome is known if nothing was sent (the detail ``sent`` is False) or the server refused the only request.
    """
    error.details.pop(_DETAIL, None)  # a driver must not set this
    answered = len(call.requests) == 1 and isinstance(error, _ANSWERS)
    if not call.writes or answered or isinstance(error, _UNSENT) or error.details.get("sent") is False:
        return
    _mark(error)


def _mark(error: DragomanError) -> None:
    error.details[_DETAIL] = str(OutcomeStatus.UNKNOWN)
    error.message = f"{error.prefix}{_SAID}{error.message.removeprefix(error.prefix)}"
    error.args = (error.message,)
    error.advise(HINT)


@contextmanager
def after_a_write(*, writes: bool = True) -> Iterator[None]:
    """Do in a `with` block what follows a write that was sent, before its outcome is told or recorded.

    An error of the block, such as that of a full disk, says that the outcome is unknown. It does not pass for one of
    the write, which may be carried out.

    Args:
        writes: Whether it was a write at all.
    """
    try:
        yield
    except DragomanError as error:
        if writes and not unknown(error):
            _mark(error)
        raise


def unknown(error: DragomanError) -> bool:
    """Return whether an error leaves the outcome of a write unknown."""
    return error.details.get(_DETAIL) == OutcomeStatus.UNKNOWN


def reason_of(error: DragomanError) -> str:
    """Return why an error leaves the outcome unknown, as the reason of an outcome."""
    return error.message.partition(_SAID)[2]
