"""The driver: builds requests, sends them, maps the answers; the only module that does I/O."""

from __future__ import annotations

import random
from collections import OrderedDict
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec

from dragoman_api import (
    Answer,
    AuthenticationError,
    Cell,
    CellRequest,
    CompiledFilter,
    ConsoleRequest,
    ConsoleText,
    CountRequest,
    Description,
    ExportPart,
    ExportRequest,
    FilterRequest,
    Health,
    Http,
    HttpRequest,
    Object,
    Outcome,
    Page,
    PageRequest,
    Plan,
    PlanRequest,
    Profile,
    Server,
    hookimpl,
)
from dragoman_api.errors import ConnectionFailedError, DragomanError, ObjectNotFoundError
from dragoman_api.exchanges import carry_out

from . import (
    answers,
    changes,
    console,
    exports,
    faults,
    filters,
    objects,
    outcomes,
    paging,
    routes,
    search,
    server,
    slices,
    stream,
    walks,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from dragoman_api.exchanges import Reply

    from .exchange import Exchange
    from .mapping import View

T = TypeVar("T")

_WALKS = 4  # contexts one connection keeps open on the server
_FREE_SECONDS = 2.0
_WHY_SECONDS = 5.0  # for a reason that is nice to have
_PAUSES = (0.2, 0.6, 1.8)  # seconds before a read is sent again to a server that is busy
_WRITE_PAUSES = (0.2, 0.6, 1.8, 5.4)  # the same for rows that it turned away, and did not write


@dataclass(slots=True)
class _Walking:
    walk: walks.Walk | walks.Scroll
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class Driver:
    """One connection to one Elasticsearch cluster."""

    def __init__(self) -> None:
        self._views: dict[str, View] = {}
        self._walks: OrderedDict[str, _Walking] = OrderedDict()
        self._features = server.Features()
        self._preference = paging.preference()

    # connection

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """See `dragoman_api.hookspecs.DriverSpec.connect`."""
        server.check_key(profile)
        self._http, self._profile = http, profile
        found, self._features = await self._run(server.identify(profile))
        return found

    @hookimpl
    async def ping(self) -> Health:
        """See `dragoman_api.hookspecs.DriverSpec.ping`."""
        try:
            return await self._run(server.look())
        except DragomanError as error:
            return Health(ok=False, reason=error.message)

    @hookimpl
    async def close(self) -> None:
        """See `dragoman_api.hookspecs.DriverSpec.close`."""
        while self._walks:
            await self._free(self._walks.popitem()[1].walk)

    # objects

    @hookimpl
    async def list_objects(self) -> list[Object]:
        """See `dragoman_api.hookspecs.DriverSpec.list_objects`."""
        return await self._run(objects.list_objects())

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """See `dragoman_api.hookspecs.DriverSpec.describe_object`."""
        self._views[name] = view = await self._run(objects.view(name))
        for key in [key for key, each in self._walks.items() if each.walk.name == name and not each.lock.locked()]:
            await self._free(self._walks.pop(key).walk)  # a grid that is refreshed wants newer rows than a snapshot's
        return view.describe()

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """See `dragoman_api.hookspecs.DriverSpec.compile_filter`."""
        if (view := self._views.get(request.object)) is None:
            raise ObjectNotFoundError(f"'{request.object}' was not described on this connection yet")
        command = f"dragoman page {self._profile.name} {request.object}"
        return filters.compile_filter(request, view, self._features, command=command)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """See `dragoman_api.hookspecs.DriverSpec.fetch_page`."""
        view = await self._view(request.object)
        window = paging.WINDOW
        if self._profile.options.get("window") == "index":
            window = min(window, await self._run(paging.window_setting(request.object)))
        name = self._profile.name
        grid = paging.grid(request, view, window=window, preference=self._preference, connection=name)
        if grid.deep:
            async with self._walking(grid) as walk:
                return await self._run(grid.deep_page(walk))
        page = await self._run(grid.shallow_page())
        if grid.raw and not page.cells and request.offset == 0:
            with anyio.move_on_after(_WHY_SECONDS), suppress(DragomanError):
                why = await self._run(paging.why_nothing(request.object, grid.query))
                page = msgspec.structs.replace(page, notes=[*page.notes, *why])
        return page

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """See `dragoman_api.hookspecs.DriverSpec.fetch_cell`."""
        view = await self._view(request.key.object)
        return await self._run(paging.fetch_cell(request, view))

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """See `dragoman_api.hookspecs.DriverSpec.count_rows`."""
        query, _ = paging.filter_query(request.object, request.filter)
        return await self._run(search.count(request.object, query))

    # changes

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """See `dragoman_api.hookspecs.DriverSpec.plan_change`."""
        return await self._run(changes.plan(request, self._views))

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """See `dragoman_api.hookspecs.DriverSpec.apply_change`."""
        sending = outcomes.Sending(plan)
        for pause in (*_WRITE_PAUSES, 0.0):
            if not await self._run(sending.send()) or not pause:
                break
            await anyio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - jitter
        return sending.outcomes

    # console

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        """See `dragoman_api.hookspecs.DriverSpec.parse_console`."""
        return console.parse(text.text)

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        """See `dragoman_api.hookspecs.DriverSpec.execute_console`."""
        return await self._run(answers.execute(request))

    # exports

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """See `dragoman_api.hookspecs.DriverSpec.export_rows`."""
        query, _ = paging.filter_query(request.object, request.filter)
        export = exports.Export(request, query, scrolls=not self._features.point_in_time)
        try:
            await self._run(export.open())
            once = partial(self._run, pauses=(), limit=slices.LIMIT)
            async with stream.pages(export.slices, once, lambda: self._run(export.renew())) as pages:
                while not export.finished:
                    if (part := export.part(await pages.receive())) is not None:
                        yield part
        finally:
            await self._free(export)

    # sending

    async def _view(self, name: str) -> View:
        if name not in self._views:
            self._views[name] = await self._run(objects.view(name))
        return self._views[name]

    @asynccontextmanager
    async def _walking(self, grid: paging.Grid) -> AsyncIterator[walks.Walk | walks.Scroll]:
        """Lend the walk of a result to one page at a time; the walk used longest ago makes room for a new one."""
        key = grid.walk_key
        walking = self._walks.setdefault(key, _Walking(grid.walk(self._features)))
        self._walks.move_to_end(key)
        for old in [key for key, each in self._walks.items() if not each.lock.locked()][: len(self._walks) - _WALKS]:
            await self._free(self._walks.pop(old).walk)
        async with walking.lock:
            yield walking.walk

    async def _free(self, held: walks.Walk | walks.Scroll | exports.Export) -> None:
        """Free what the server holds, on every way out; an answer that it is gone already is as good."""
        with anyio.move_on_after(_FREE_SECONDS, shield=True), suppress(ConnectionFailedError):
            if (request := held.close()) is not None:
                await self._send(request)

    async def _run(self, exchange: Exchange[T], *, pauses: Sequence[float] = _PAUSES, limit: int | None = None) -> T:
        """Carry out an exchange: send what it yields, hand it what is answered."""
        try:
            return await carry_out(exchange, partial(self._send, pauses=pauses, limit=limit))
        except AuthenticationError as error:
            raise server.rejected(error, self._profile) from error

    async def _send(self, request: HttpRequest, pauses: Sequence[float] = _PAUSES, limit: int | None = None) -> Reply:
        """Send one request; one that changes nothing is sent again after a while where waiting helps."""
        # A page of a scroll moves it: sent twice, it would skip rows.
        read = not routes.writes(request.method, request.path) and not request.path.startswith("/_search/scroll")
        for pause in (*pauses, 0):
            kind = request.content_type
            reply = await self._http.request(
                request.method, request.path, body=request.body, content_type=kind, read=read, limit=limit
            )
            if not (pause and read and faults.busy(reply)):
                break
            await anyio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - jitter
        return reply
