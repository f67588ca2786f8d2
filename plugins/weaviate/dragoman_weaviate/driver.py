"""The driver: one method per hook; the only module that sends requests.

What a page does not need is imported on first use, so that a page comes sooner.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
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
    ObjectList,
    ObjectsRequest,
    Outcome,
    Page,
    PageRequest,
    Plan,
    PlanRequest,
    Profile,
    QueryError,
    Server,
    hookimpl,
)
from dragoman_api.errors import ConnectionFailedError, DragomanError
from dragoman_api.kit.exchanges import Exchanges, read_together
from dragoman_api.kit.retries import SHORT_BUDGET, jittered
from dragoman_api.kit.views import ReadOnce, Views

from . import connect, objects, protocol
from .columns import grid_columns
from .grid import filters, pages

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from dragoman_api.connections import ServerStatus
    from dragoman_api.console import Completion, CompletionRequest
    from dragoman_api.exports import ExportSplit, SplitRequest
    from dragoman_api.grid import PreviewRequest, SimilarRequest
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_api.summaries import ColumnSummary, SummaryRequest

    from .columns.grid_columns import View
    from .export import ExportReader, IdRange, Piece
    from .grid.exactness import Sample

T = TypeVar("T")
_LOOK_SECONDS = 3.0  # for a look at stored objects, which explanations can do without


class Driver:
    """One connection to one Weaviate instance."""

    def __init__(self) -> None:
        self._views = Views(self._read_view, self._revision)
        self._features = protocol.Features()
        self._few_shards = False  # until a list of all collections shows that none has tenants
        self._samples = ReadOnce(self._take_sample)
        self._schemas = ReadOnce(lambda _: self._run(objects.properties()))

    # connection

    @hookimpl
    async def connect(self, profile: Profile, http: Http, first_object: str | None) -> Server:
        self._profile = profile
        self._exchanges = Exchanges(
            http,
            reads=lambda request: not protocol.may_write(request),
            retry_after=protocol.retry_after,
            rejected=partial(connect.credentials_rejected, profile=profile),
        )
        self._run = self._exchanges.run
        identity = connect.identify(profile)
        try:
            if first_object is None:
                server, self._features = await self._run(identity)
            else:  # the request of a definition depends on no version, only how its answer is read
                view = grid_columns.view(first_object, self._features)
                server, self._features = await self._exchanges.run_ahead_of(view, identity)
        except (AuthenticationError, ConnectionFailedError) as error:
            raise connect.advise(error, profile) from error
        return server

    @hookimpl
    async def ping(self) -> Health:
        return await self._exchanges.ping(connect.ping())

    @hookimpl
    async def read_status(self) -> ServerStatus:
        from .nodes import read_status

        return await self._run(read_status(with_shards=self._few_shards), budget=SHORT_BUDGET)

    # objects

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        listing = await self._run(objects.list_objects(self._features, request))
        self._few_shards = len(listing) == listing.total and not any(item.state == objects.TENANTS for item in listing)
        return listing

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        return (await self._views.read(name)).describe()

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        view, undecided = self._views.known(request.object), list[str]()
        compiled = filters.compile_filter(request, view, undecided=undecided)
        if not undecided or (sample := await self._samples.get(f"{view.revision} {request.object}")) is None:
            return compiled
        return filters.compile_filter(request, view, sample=sample)

    async def _take_sample(self, revision_and_name: str) -> Sample | None:
        """Look at stored objects, once for each definition that a filter depends on; a busy server is spared."""
        view = self._views.known(revision_and_name.partition(" ")[2])
        exchange = filters.take_sample(view)
        return await self._run(exchange, budget=_LOOK_SECONDS, pauses=(), limit=filters.SAMPLE_BYTES)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        return await self._views.use(
            request.object, lambda view: self._rows(request, view, pages.page(request, view)), given=request.filter
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        return await self._views.use(request.key.object, lambda view: self._run(pages.fetch_cell(request, view)))

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        return await self._views.use(
            request.object, lambda view: self._rows(request, view, pages.count(request, view)), given=request.filter
        )

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary:
        from .grid import summaries

        return await self._views.use(
            request.object,
            lambda view: self._rows(request, view, summaries.summarize(request, view)),
            given=request.filter,
        )

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Page:
        return await self._views.use(
            request.object, lambda view: self._rows(request, view, pages.similar(request, view)), given=request.filter
        )

    @hookimpl
    async def preview_read(self, request: PreviewRequest) -> list[HttpRequest]:
        read = request.read
        return await self._views.use(
            read.object, lambda view: self._rows(read, view, pages.preview(read, view)), given=read.filter
        )

    # changes

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        from .writing.plan import plan_changes

        if request.new is not None:
            from .writing.creations import plan_collection

            return plan_collection(request.new)
        by_query = self._profile.options.get("delete_route") == "query"
        return await self._run(plan_changes(request, self._features, by_query=by_query))

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        from .writing.apply import Sender

        sender = Sender(plan, self._features)
        await self._exchanges.write(sender.send)
        return sender.outcomes

    # console

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        from .console_text import parse

        return parse(text.text)

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        from . import console_answers

        return await self._run(console_answers.execute(request, self._features))

    @hookimpl
    async def complete_console(self, request: CompletionRequest) -> Completion:
        from .console_text import complete

        return complete(request, await self._schemas.get("") or {})

    # exports

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        from .export import ExportReader

        view = await self._views.check(request.object, request.filter)
        export = ExportReader(request, view)
        async with self._naming_tenants(request, view):
            await self._run(export.count())
            await self._run(export.look_for_vectors())
            async with read_together([self._read_range(export, span) for span in export.ranges]) as pieces:
                async for piece in pieces:
                    if (part := export.part(piece)) is not None:
                        yield part

    @hookimpl
    async def split_export(self, request: SplitRequest) -> ExportSplit:
        from .export import ExportReader, split_rows

        export_request = request.export
        export = ExportReader(export_request, await self._views.check(export_request.object, export_request.filter))
        async with self._naming_tenants(export_request, export.view):
            await self._run(export.count())
            await self._run(export.look_for_vectors())
        return split_rows(request, export.total, export.notes)

    async def _read_range(self, export: ExportReader, span: IdRange) -> AsyncGenerator[Piece, None]:
        """Fetch the pages of a range, from a busy server after a pause."""
        ends = False
        while not ends:
            try:
                pieces = await self._run(export.pieces(span), pauses=())
            except DragomanError as error:
                pause = span.again(error)
                if "retry_after" in error.details:
                    yield span.turned_away()
                await anyio.sleep(jittered(pause))
                continue
            for piece in pieces:
                ends = piece.ends
                yield piece

    # sending

    async def _read_view(self, name: str) -> View:
        return await self._run(grid_columns.view(name, self._features))

    async def _revision(self, view: View) -> str:
        return await self._run(grid_columns.current_revision(view))

    async def _rows(
        self, request: PageRequest | CountRequest | SummaryRequest | SimilarRequest, view: View, exchange: Exchange[T]
    ) -> T:
        async with self._naming_tenants(request, view):
            return await self._run(exchange)

    @asynccontextmanager
    async def _naming_tenants(
        self, request: PageRequest | CountRequest | SummaryRequest | SimilarRequest | ExportRequest, view: View
    ) -> AsyncIterator[None]:
        """Let the error for an unknown tenant name the ones that resemble it."""
        try:
            yield
        except QueryError as error:
            if not request.tenant or not protocol.UNKNOWN_TENANT.search(error.message):
                raise
            tenants: list[str] = []
            with suppress(DragomanError):  # the key may not list them
                tenants = await self._run(objects.tenants(view.target))
            raise objects.tenant_unknown(request.tenant, view.name, tenants) from error
