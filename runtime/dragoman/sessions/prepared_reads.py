"""What a read of an object needs first: the object's description, a compiled filter, and a span of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec

from dragoman.exports.results import filter_notes
from dragoman_api import events
from dragoman_api.columns import ColumnKind, Note, TimeColumn
from dragoman_api.errors import DriverFaultError, FilterNotSupportedError, ObjectChangedError, UnsupportedOperationError
from dragoman_api.filters import CompiledFilter, Filter, FilterRequest, RawQuery, TimeRange
from dragoman_api.hookspecs import DriverSpec

from .times import resolve, resolve_rows, show_instant

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman_api.columns import Description
    from dragoman_api.events import Event

    from .driver_calls import Calls
    from .live_driver import LiveDriver
    from .selections import RowSelection

T = TypeVar("T")

_CHANGES = 3  # times that a call is made again because its object changed
ANY = "any"
"""The key of `Column.reasons`, and the value of `FilterRequest.match`."""


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
    now: str | None = None

    @property
    def notes(self) -> list[Note]:
        """Notes on relative times and a default time window, then on where the filter is approximate."""
        return [*self.times, *filter_notes(self.filter)]


class _Known(msgspec.Struct, frozen=True):
    """What the driver's current process reported about an object."""

    incarnation: int
    excluded: Mapping[str, str]  # by column, see `match_any`
    time: TimeColumn | None
    instants: frozenset[str]  # columns


class Preparation:
    """Prepares the reads of one session.

    Attributes:
        driver: The session's driver.
        calls: Its calls.
        emit: Receives its events.
        keep_alive: Seconds for which an interrupted export can be resumed.
    """

    def __init__(
        self,
        driver: LiveDriver,
        calls: Calls,
        *,
        emit: Callable[[Event], None],
        keep_alive: int = 300,
        time_zone: str = "UTC",
    ) -> None:
        self.driver, self.calls, self.emit, self.keep_alive = driver, calls, emit, keep_alive
        self._time_zone = time_zone
        self._known: dict[str, _Known] = {}
        self._describing = anyio.Lock()

    async def describe(self, name: str) -> Description:
        """Describe the columns of one object, as the server has them now."""
        description = await self.calls.run(DriverSpec.describe_object, name, object=name)
        instants = frozenset(column.name for column in description.columns if column.kind is ColumnKind.TIMESTAMP)
        self._known[name] = _Known(self.driver.incarnation, excluded(description), description.time, instants)
        return description

    def _is_known(self, name: str) -> bool:
        facts = self._known.get(name)
        return facts is not None and facts.incarnation == self.driver.incarnation

    async def know(self, name: str) -> bool:
        """Describe an object before another hook names it, as the contract promises; return whether that was needed."""
        if self.driver.alive and self._is_known(name):
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
        compiled = await self.compile(selection, rows, fresh=fresh, times=times) if rows else None
        now = show_instant(selection.now) if times else None
        await self.know(selection.object)
        time_column = self._known[selection.object].time if "time-range" in self.capabilities else None
        time_range, windows = resolve(selection.span, time_column, object=selection.object, now=selection.now)
        return Prepared(compiled, time_range, [*times, *windows], now)

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
        facts = self._known[name]
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
            compiled = await self.calls.run(DriverSpec.compile_filter, request, object=name)
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

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities that the driver's manifest announces."""
        return frozenset(self.driver.generation.manifest.capabilities)

    def check(self, *, tenant: str | None = None, revision: str = "") -> None:
        """Check that the driver takes a tenant and a revision, if there are any.

        Raises:
            UnsupportedOperationError: The driver has no tenants, or no revisions.
        """
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

    Args:
        request: The filter.
        reasons: The reason of each excluded column, by name; from `excluded`.

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
