"""The driver: one method per hook; the only module that sends requests."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

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
from dragoman_api.errors import ConnectionFailedError, DragomanError
from dragoman_api.exchanges import carry_out
from dragoman_api.views import Views

from . import connect, error_answers, objects, read_or_write
from .console import answers
from .console.parser import parse
from .exporting.export import ExportReader, IdRange, Piece
from .grid import filters, pages
from .writing.apply import apply_plan
from .writing.plan import plan_changes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from anyio.streams.memory import MemoryObjectSendStream

    from dragoman_api.exchanges import Reply

    from .columns.view import View
    from .http_requests import Exchange

T = TypeVar("T")

_TOGETHER = 8  # concurrent requests of one operation
_PAUSES = (0.2, 0.6, 1.8)  # seconds before a read is sent again to a server that is busy
_LONGEST_PAUSE = 10.0


class Driver:
    """One connection to one Weaviate instance."""

    def __init__(self) -> None:
        self._views = Views(self._read_view, self._revision)
        self._features = connect.Features()

    # connection

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """See `dragoman_api.hookspecs.DriverSpec.connect`."""
        self._http, self._profile = http, profile
        try:
            found, self._features = await self._run(connect.identify())
        except (AuthenticationError, ConnectionFailedError) as error:
            raise connect.advise(error, profile) from error
        return found

    @hookimpl
    async def ping(self) -> Health:
        """See `dragoman_api.hookspecs.DriverSpec.ping`."""
        try:
            return await self._run(connect.ping())
        except DragomanError as error:
            return Health(ok=False, reason=error.message, code=error.code)

    # objects

    @hookimpl
    async def list_objects(self) -> list[Object]:
        """See `dragoman_api.hookspecs.DriverSpec.list_objects`."""
        return await self._run(objects.list_objects(self._features))

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """See `dragoman_api.hookspecs.DriverSpec.describe_object`."""
        return (await self._views.read(name)).describe()

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """See `dragoman_api.hookspecs.DriverSpec.compile_filter`."""
        view = self._views.known(request.object)
        return filters.compile_filter(request, view, connection=self._profile.name)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """See `dragoman_api.hookspecs.DriverSpec.fetch_page`."""
        return await self._views.use(
            request.object, lambda view: self._run(pages.page(request, view)), given=request.filter
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """See `dragoman_api.hookspecs.DriverSpec.fetch_cell`."""
        return await self._views.use(request.key.object, lambda view: self._run(pages.fetch_cell(request, view)))

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """See `dragoman_api.hookspecs.DriverSpec.count_rows`."""
        return await self._views.use(
            request.object, lambda view: self._run(pages.count(request, view)), given=request.filter
        )

    # changes

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """See `dragoman_api.hookspecs.DriverSpec.plan_change`."""
        by_query = self._profile.options.get("delete_route") == "query"
        return await self._run(plan_changes(request, self._features, by_query=by_query))

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """See `dragoman_api.hookspecs.DriverSpec.apply_change`."""
        return await self._run(apply_plan(plan, self._features))

    # console

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        """See `dragoman_api.hookspecs.DriverSpec.parse_console`."""
        return parse(text.text)

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        """See `dragoman_api.hookspecs.DriverSpec.execute_console`."""
        return await self._run(answers.execute(request, self._features))

    # exports

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """See `dragoman_api.hookspecs.DriverSpec.export_rows`."""
        export = ExportReader(request, await self._views.check(request.object, request.filter))
        await self._run(export.count())
        failure: DragomanError | None = None
        async with anyio.create_task_group() as tasks:
            outlet, inlet = anyio.create_memory_object_stream[Piece | DragomanError](len(export.ranges))
            with inlet, outlet:
                for span in export.ranges:
                    tasks.start_soon(self._read_range, export, span, outlet.clone())
                outlet.close()
                try:
                    async for piece in inlet:
                        if isinstance(piece, DragomanError):
                            failure = piece
                            break
                        yield export.part(piece)
                except GeneratorExit:  # in an exception group it would not end the iteration
                    pass
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _read_range(
        self, export: ExportReader, span: IdRange, outlet: MemoryObjectSendStream[Piece | DragomanError]
    ) -> None:
        with outlet:
            try:
                ends = False
                while not ends:
                    for piece in await self._page(export, span):
                        ends = piece.ends
                        await outlet.send(piece)
            except DragomanError as error:
                await outlet.send(error)

    async def _page(self, export: ExportReader, span: IdRange) -> list[Piece]:
        """Fetch the next page of a range, from a busy server after a pause."""
        while True:
            try:
                return await self._run(export.pieces(span), pauses=())
            except DragomanError as error:
                await anyio.sleep(span.again(error) * (0.5 + random.random()))  # noqa: S311 - jitter

    # sending

    async def _read_view(self, name: str) -> View:
        return await self._run(objects.view(name, self._features))

    async def _revision(self, view: View) -> str:
        return await self._run(objects.current_revision(view))

    async def _run(self, exchange: Exchange[T], *, pauses: Sequence[float] = _PAUSES) -> T:
        """Carry out an exchange: send the requests it yields, and pass it the replies."""
        try:
            return await carry_out(exchange, partial(self._send_all, pauses=pauses))
        except AuthenticationError as error:
            raise connect.credentials_rejected(error, self._profile) from error

    async def _send_all(self, requests: Sequence[HttpRequest], *, pauses: Sequence[float]) -> list[Reply]:
        if len(requests) == 1:
            return [await self._send(requests[0], pauses)]
        replies: dict[int, Reply] = {}
        failures: list[DragomanError] = []
        limiter = anyio.CapacityLimiter(_TOGETHER)

        async def one(at: int, request: HttpRequest) -> None:
            async with limiter:
                try:
                    replies[at] = await self._send(request, pauses)
                except DragomanError as error:
                    failures.append(error)
                    tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for at, request in enumerate(requests):
                tasks.start_soon(one, at, request)
        if failures:
            raise failures[0]
        return [replies[at] for at in range(len(requests))]

    async def _send(self, request: HttpRequest, pauses: Sequence[float]) -> Reply:
        """Send one request; retry a read after a pause if the server is busy."""
        read = not read_or_write.may_write(request)
        for pause in (*pauses, 0):
            reply = await self._http.request(
                request.method, request.path, body=request.body, content_type=request.content_type, read=read
            )
            if not (pause and read) or (asked := error_answers.retry_after(reply)) is None:
                break
            await anyio.sleep(min(asked, _LONGEST_PAUSE) or pause * (0.5 + random.random()))  # noqa: S311 - jitter
        return reply
