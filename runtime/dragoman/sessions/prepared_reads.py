"""What a read of an object needs first: the object's description, a compiled filter, and a range of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec
from msgspec.structs import replace

from dragoman.filter_notes import filter_notes
from dragoman_api import events
from dragoman_api.columns import ColumnKind, Note, TimeColumn
from dragoman_api.errors import (
    ConfigurationError,
    DriverFaultError,
    FilterNotSupportedError,
    ObjectChangedError,
    UnsupportedOperationError,
)
from dragoman_api.filters import CompiledFilter, Filter, FilterRequest, RawQuery, TimeRange
from dragoman_api.grid import MAX_ROWS
from dragoman_api.hookspecs import DriverSpec

from .arguments import check_filters
from .instants import show_instant
from .match_any import check_any, excluded
from .relative_times import resolve_rows
from .time_spans import DEFAULT, Span, resolve, whole

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman_api.columns import Description
    from dragoman_api.events import Event

    from .driver_calls import Calls
    from .live_driver import LiveDriver

T = TypeVar("T")

_CHANGES = 3  # times that a call is made again because its object changed


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that a read is about.

    Attributes:
        object: The object's name.
        filters: Rows of the filter.
        match: ``all`` or ``any``.
        span: The rows' span of time.
        tenant: The tenant whose rows are read, if the object has tenants.
        revision: The revision to read at; empty for the current one.
        residual: As in `PageRequest`.
        now: The instant that relative times count from, in whole milliseconds; by default the one at which the scope
            is made.
    """

    object: str
    filters: Sequence[Filter | RawQuery] = ()
    match: str = "all"
    span: Span = DEFAULT
    tenant: str | None = None
    revision: str = ""
    residual: int | None = None
    now: datetime = msgspec.field(default_factory=lambda: whole(datetime.now(UTC)))

    def __post_init__(self) -> None:
        check_filters(self.filters)


class Prepared(msgspec.Struct, frozen=True):
    """What a request for the rows of a scope carries, and the notes on it.

    Attributes:
        filter: The compiled filter.
        time: The range of time.
        times: Notes on relative times of the filter, and on a default window.
        now: The instant that relative times of the filter count from, RFC 3339; None if it has none.
    """

    filter: CompiledFilter | None
    time: TimeRange | None
    times: list[Note]
    now: str | None = None

    @property
    def notes(self) -> list[Note]:
        """What relative times stand for and a default window leaves out, then what the filter makes approximate."""
        return [*self.times, *filter_notes(self.filter)]


class _Known(msgspec.Struct, frozen=True):
    """What the driver's present process reported about an object."""

    incarnation: int
    excluded: Mapping[str, str]  # by column, see `match_any`
    time: TimeColumn | None
    instants: frozenset[str]  # columns


class Preparation:
    """Prepares the reads of one session."""

    def __init__(
        self, driver: LiveDriver, calls: Calls, *, emit: Callable[[Event], None], time_zone: str = "UTC"
    ) -> None:
        self._driver, self._calls, self._emit, self._time_zone = driver, calls, emit, time_zone
        self._known: dict[str, _Known] = {}
        self._describing = anyio.Lock()

    async def describe(self, name: str) -> Description:
        """Describe the columns of one object, as the server has them now."""
        description = await self._calls.run(DriverSpec.describe_object, name, object=name)
        instants = frozenset(each.name for each in description.columns if each.kind is ColumnKind.TIMESTAMP)
        self._known[name] = _Known(self._driver.incarnation, excluded(description), description.time, instants)
        return description

    def _is_known(self, name: str) -> bool:
        known = self._known.get(name)
        return known is not None and known.incarnation == self._driver.incarnation

    async def know(self, name: str) -> bool:
        """Describe an object before another hook names it, as the contract promises; return whether it was needed."""
        if self._driver.alive and self._is_known(name):
            return False  # a lock, even a free one, is a turn of the event loop
        async with self._describing:
            await self._driver.hooks()
            if new := not self._is_known(name):
                await self.describe(name)
            return new

    async def prepare(self, scope: Scope, *, fresh: bool = False) -> Prepared:
        """Compile the filter of a scope and resolve its span of time.

        Args:
            scope: The rows.
            fresh: Describe the object again before a filter is compiled.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
            UnsupportedOperationError: A range of time was asked for, and the driver or the object has none.
        """
        rows = [row for row in scope.filters if not (isinstance(row, RawQuery) and not row.text.strip())]
        times: list[Note] = []
        compiled = await self.compile(replace(scope, filters=rows), fresh=fresh, times=times) if rows else None
        now = show_instant(scope.now) if times else None
        await self.know(scope.object)
        about = self._known[scope.object].time if "time-range" in self.capabilities else None
        time_range, windows = resolve(scope.span, about, object=scope.object, now=scope.now)
        return Prepared(compiled, time_range, [*times, *windows], now)

    async def compile(self, scope: Scope, *, fresh: bool, times: list[Note] | None = None) -> CompiledFilter:
        """Compile the filter of a scope.

        Args:
            scope: The rows.
            fresh: Describe the object again first.
            times: Receives a note for each filter row with a relative time.

        Raises:
            FilterNotSupportedError: A filter row cannot run as asked.
        """
        name, filters = scope.object, list(scope.filters)
        if scope.match not in ("all", "any"):
            raise ConfigurationError(f"match is {scope.match!r}; it can be all or any")
        new = await self.know(name)
        if fresh and not new:
            await self.describe(name)
        known = self._known[name]
        rows, told = resolve_rows(filters, known.instants, now=scope.now, zone=self._time_zone)
        request = FilterRequest(
            object=name, rows=rows, match=scope.match, residual=scope.residual, now=show_instant(scope.now)
        )
        try:
            check_any(request, known.excluded)
            compiled = await self._calls.run(DriverSpec.compile_filter, request, object=name)
        except FilterNotSupportedError as error:
            if not (fresh or new):  # the column may have come since
                return await self.compile(scope, fresh=True, times=times)
            column, operator = (str(error.details.get(key, "")) for key in ("column", "operator"))
            reason = str(error.details.get("reason") or error.message)
            connection = self._driver.info.name
            self._emit(
                events.FilterRejected(
                    connection=connection, object=name, column=column, operator=operator, reason=reason
                )
            )
            raise
        if stray := [told.row for told in compiled.rows if not 0 <= told.row < len(filters)]:
            raise DriverFaultError(f"the driver explained row {stray[0]} of a filter of {len(filters)} rows")
        if times is not None:
            times += told
        return compiled

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities that the driver's manifest announces."""
        return frozenset(self._driver.generation.manifest.capabilities)

    def check(self, *, tenant: str | None = None, revision: str = "", residual: int | None = None) -> None:
        """Refuse what the driver does not take.

        Raises:
            ConfigurationError: There cannot be so many residual rows.
            UnsupportedOperationError: The driver has no tenants, or no revisions.
        """
        plugin = self._driver.generation.plugin
        if residual is not None and not 1 <= residual <= MAX_ROWS:
            raise ConfigurationError(f"residual is 1 to {MAX_ROWS:,} rows, not {residual}")
        if tenant is not None and "tenants" not in self.capabilities:
            raise UnsupportedOperationError(f"the driver {plugin} has no tenants; {tenant!r} cannot be used")
        if revision and "revisions" not in self.capabilities:
            text = f"the driver {plugin} reads only the rows as they are now, not at revision {revision!r}"
            raise UnsupportedOperationError(text)


async def until_unchanged(call: Callable[[], Awaitable[T]]) -> tuple[T, list[Note]]:
    """Make a call, and again if the object's columns changed meanwhile; return notes on these changes too."""
    notes: list[Note] = []
    while True:
        try:
            return await call(), notes
        except ObjectChangedError as error:
            if len(notes) == _CHANGES:
                raise
            notes.append(Note(code=error.code, reason=error.message))
