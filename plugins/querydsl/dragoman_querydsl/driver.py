"""The driver of a family of servers: one method per hook; the only module that sends requests.

A driver derives from `QueryDslDriver`, and says which servers are its own and what each of them has.

What a page does not need is imported on first use, so that a page comes sooner.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import msgspec

from dragoman_api import (
    Answer,
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
    Server,
    hookimpl,
)
from dragoman_api.errors import ConnectionFailedError, DragomanError, ObjectChangedError, ObjectNotFoundError
from dragoman_api.exports import SnapshotHold
from dragoman_api.kit.exchanges import Exchanges, read_together
from dragoman_api.kit.retries import SHORT_BUDGET, Patience, jittered
from dragoman_api.kit.views import ReadOnce, Views

from . import connect, objects, protocol, search
from .columns.field_types import Look
from .grid import filters, pages
from .grid.deep_pages import Pager
from .protocol import Dialect, learn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from msgspec import Raw

    from dragoman_api import AuthenticationError, Note
    from dragoman_api.connections import ServerStatus
    from dragoman_api.console import Completion, CompletionRequest
    from dragoman_api.exports import ExportSplit, SplitRequest
    from dragoman_api.grid import PreviewRequest, SimilarRequest
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_api.replies import Reply
    from dragoman_api.summaries import ColumnSummary, SummaryRequest

    from .columns.field_types import Sample
    from .columns.grid_columns import View
    from .export import ExportReader, Slice, SlicePage

_PAGERS = 4  # search contexts that one connection keeps open
_FREE_SECONDS = 2.0
_LIFE = 5.0  # seconds for which large mappings of the same indices are taken to hold
_LOOK_SECONDS = 3.0  # for a look at stored rows, which explanations can do without
_WHY_SECONDS = 5.0  # for an explanation that the page can do without
_RENEWED = 40  # seconds, a third of the shortest keep-alive


class _OpenPager(msgspec.Struct):
    pager: Pager
    lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)


class _Exchanges(Exchanges):
    """Sends requests as the server's version takes them."""

    def __init__(
        self, http: Http, dialect: Dialect, *, rejected: Callable[[AuthenticationError], AuthenticationError]
    ) -> None:
        super().__init__(http, reads=dialect.reads, retry_after=protocol.retry_after, rejected=rejected)
        self.dialect = dialect

    async def send(self, request: HttpRequest, **options: Any) -> Reply:
        dialect = self.dialect
        reply = await super().send(dialect.complete(request), **options)
        if (newer_dialect := learn(dialect, request, reply)) is dialect:
            return reply
        self.dialect = newer_dialect
        if newer_dialect.asks_for_vectors:
            return reply
        return await super().send(newer_dialect.complete(request), **options)


class QueryDslDriver(ABC):
    """One connection to one cluster.

    Attributes:
        dialect: What every server of the product has.
    """

    dialect: ClassVar[Dialect]

    @abstractmethod
    def identify(self, profile: Profile) -> Exchange[tuple[Server, Dialect]]:
        """Check that the product, in a version of this driver, answers to the credentials, and say what it has.

        Raises:
            AuthenticationError: 401.
            ConfigurationError: A credential is malformed; it is not sent.
            ConnectionFailedError: The answer redirects, or the server takes no more requests.
            ServerNotSupportedError: Another product or version.
        """

    @abstractmethod
    def check_product(self, reply: Reply) -> None:
        """Check that an answer to `GET /` comes from the product.

        Raises:
            DragomanError: It is an error.
            ServerNotSupportedError: Another product or version.
        """

    @abstractmethod
    def rejected(self, error: AuthenticationError, profile: Profile) -> AuthenticationError:
        """Return the error for rejected credentials, with what a person may change."""

    def __init__(self) -> None:
        self._views = Views(self._read_view, self._revision)
        self._checked: dict[str, tuple[str, float]] = {}  # the revision of an object, and when the server said so
        self._pagers: OrderedDict[str, _OpenPager] = OrderedDict()
        self._names = ReadOnce(self._read_names)
        self._completed = ReadOnce(self._views.read)
        self._samples = ReadOnce(self._take_sample)
        self._preference = pages.preference()

    # connection

    @hookimpl
    async def connect(self, profile: Profile, http: Http, first_object: str | None) -> Server:
        rejected = partial(self.rejected, profile=profile)
        self._profile, self._exchanges = profile, _Exchanges(http, self.dialect, rejected=rejected)
        self._run = self._exchanges.run
        identity = self.identify(profile)
        if first_object is None:
            server, self._exchanges.dialect = await self._run(identity)
        else:  # which requests a view begins with depends on no version, only how it reads their answers
            server, self._exchanges.dialect = await self._exchanges.run_ahead_of(objects.view(first_object), identity)
        return server

    @hookimpl
    async def ping(self) -> Health:
        return await self._exchanges.ping(connect.ping(self.check_product))

    @hookimpl
    async def read_status(self) -> ServerStatus:
        from .nodes import read_status

        return await self._run(read_status(), budget=SHORT_BUDGET)

    @hookimpl
    async def close(self) -> None:
        while self._pagers:
            await self._free(self._pagers.popitem()[1].pager)

    # objects

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        listing = await self._run(objects.list_objects(request, **self._listing_options()))
        if len(listing) == listing.total and not request.contains:
            self._names.keep("", [index.name for index in listing])
        return listing

    async def _read_names(self, _: str) -> list[str]:
        return await self._run(objects.names(**self._listing_options()))

    def _listing_options(self) -> dict[str, bool]:
        resolves_names = self._exchanges.dialect.resolves_names
        return {"resolves_names": resolves_names, "secured": connect.secured(self._profile)}

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        return (await self._views.read(name)).describe()

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        view, look = self._views.known(request.object), Look()
        compiled = filters.compile_filter(request, view, self._exchanges.dialect, look)
        if not look.needs_sample:
            return compiled
        if (sample := await self._samples.get(f"{view.revision} {request.object}")) is None:
            return compiled
        return filters.compile_filter(request, view, self._exchanges.dialect, Look(sample))

    async def _take_sample(self, revision_and_name: str) -> Sample | None:
        """Look at stored rows, once for each mapping that a filter depends on; a busy server is spared."""
        view = self._views.known(revision_and_name.partition(" ")[2])
        exchange = filters.take_sample(view)
        return await self._run(exchange, budget=_LOOK_SECONDS, pauses=(), limit=filters.SAMPLE_BYTES)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        return await self._views.use(request.object, lambda view: self._fetch_page(request, view), given=request.filter)

    async def _page_query(self, request: PageRequest, view: View) -> pages.PageQuery:
        window = pages.WINDOW
        if self._profile.options.get("window") == "index":
            window = min(window, await self._run(pages.window_setting(request.object)))
        return pages.page_query(request, view, self._exchanges.dialect, window=window, preference=self._preference)

    async def _fetch_page(self, request: PageRequest, view: View) -> Page:
        page_query = await self._page_query(request, view)
        if page_query.deep:
            async with self._lend(page_query) as pager:
                return await self._run(page_query.deep_page(pager))
        page = await self._run(page_query.shallow_page())
        if page_query.raw and not page.cells and request.offset == 0:
            with anyio.move_on_after(_WHY_SECONDS), suppress(DragomanError):
                query, _ = pages.filter_query(request.object, request.filter)
                why = await self._run(pages.why_nothing(request.object, query))
                page = msgspec.structs.replace(page, notes=[*page.notes, *why])
        return page

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        return await self._views.use(request.key.object, lambda view: self._run(pages.fetch_cell(request, view)))

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        query, _ = pages.filter_query(request.object, request.filter)
        if request.filter is None and request.time is None:
            return await self._run(search.count(request.object, query))

        async def work(view: View) -> int:
            return await self._run(search.count(request.object, filters.within(query, request.time, view)))

        return await self._views.use(request.object, work, given=request.filter)

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary:
        from .grid import summaries

        query, _ = pages.filter_query(request.object, request.filter)

        async def work(view: View) -> ColumnSummary:
            timed = filters.within(query, request.time, view)
            exchange = summaries.summarize(
                request, view, self._exchanges.dialect, query=timed, preference=self._preference
            )
            return await self._run(exchange)

        return await self._views.use(request.object, work, given=request.filter)

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Page:
        """Find the rows whose `dense_vector` or `knn_vector` is nearest (E46-E48)."""
        from .grid import nearest

        async def work(view: View) -> Page:
            return await self._run(nearest.similar(request, view, self._exchanges.dialect, preference=self._preference))

        return await self._views.use(request.object, work, given=request.filter)

    @hookimpl
    async def preview_read(self, request: PreviewRequest) -> list[HttpRequest]:
        read = request.read

        async def work(view: View) -> list[HttpRequest]:
            if isinstance(read, PageRequest):
                query = await self._page_query(read, view)
                return [self._exchanges.dialect.complete(query.request_by_offset())]
            matching, _ = pages.filter_query(read.object, read.filter)
            return [*next(search.count(read.object, filters.within(matching, read.time, view)))]

        return await self._views.use(read.object, work, given=read.filter)

    # changes

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        from .writing.plan import described, plan_changes

        if request.new is not None:
            from .writing.plan import plan_index

            return plan_index(request.new, types=self._exchanges.dialect.words.types)
        names = described(request)
        for name in names:
            self._checked.pop(name, None)  # a change is planned for the columns of now
        views = await self._views.holding(names)
        return await self._run(plan_changes(request, views))

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        from .writing.apply import Sender

        sender = Sender(plan)
        await self._exchanges.write(sender.send)
        return sender.outcomes

    # console

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        from .console_text import parse

        return parse(text.text, self.dialect)

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        from . import console_answers

        return await self._run(console_answers.execute(request))

    @hookimpl
    async def complete_console(self, request: CompletionRequest) -> Completion:
        from .console_text import ask

        place = ask(request, self.dialect.words)
        names = await self._names.get("") if place.names else None
        return place.complete(names or [], await self._view_of(place.target) if place.target else None)

    async def _view_of(self, name: str) -> View | None:
        """Return what is known of an object, without asking whether it is still valid."""
        try:
            return self._views.known(name)
        except ObjectNotFoundError:
            return await self._completed.get(name)

    # exports

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        from .export import ExportReader

        notes = self._document_notes(request)
        if request.share is not None:
            from .export_shares import ShareReader

            export: ExportReader = ShareReader(request, self.dialect.points)
        else:
            query = await self._exported(request)
            export = ExportReader(request, query, points=self._exchanges.dialect.snapshots)
        try:
            if request.share is None:
                await self._run(export.open())
                # The open context keeps to the indices that were searched.
                await self._check_time_column(request, query)
            else:
                async for opening_part in self._open_share(export):
                    yield opening_part
            readers = [self._read_slice(export_slice) for export_slice in export.slices]
            async with read_together(readers, beside=partial(self._renew, export)) as fetched:
                async for page in fetched:
                    if (part := export.part(page)) is not None:
                        yield msgspec.structs.replace(part, notes=[*notes, *part.notes]) if notes else part
                        notes = []
        finally:
            await self._free(export)

    def _document_notes(self, request: ExportRequest) -> list[Note]:
        """Return the notes on what documents lack or hold anew; a table of columns says by itself which it lacks."""
        if request.columns is None:
            with suppress(ObjectNotFoundError):  # the host describes an object first
                return self._views.known(request.object).document_notes()
        return []

    @hookimpl
    async def split_export(self, request: SplitRequest) -> ExportSplit:
        from . import export_shares

        query = await self._exported(request.export)
        split = await self._run(export_shares.split(request, query, points=self._exchanges.dialect.snapshots))
        try:
            await self._check_time_column(request.export, query)
        except DragomanError:
            if split.snapshot:
                await self.hold_snapshot(SnapshotHold(snapshot=split.snapshot, seconds=0))
            raise
        return msgspec.structs.replace(split, notes=[*self._document_notes(request.export), *split.notes])

    @hookimpl
    async def hold_snapshot(self, request: SnapshotHold) -> bool:
        from . import export_shares

        return await self._run(export_shares.hold(request, self.dialect.points))

    async def _check_time_column(self, request: ExportRequest, query: Raw) -> None:
        """Raise ObjectChangedError if the time column of a query changed since the query was made."""
        if (request.filter or request.time) and await self._exported(request) != query:
            raise ObjectChangedError(f"the time column of '{request.object}' changed", hint="export again")

    async def _exported(self, request: ExportRequest) -> Raw:
        """Return the query of an export, for the columns as the server has them now."""
        query, _ = pages.filter_query(request.object, request.filter)
        if request.filter is None and request.time is None:
            return query
        return filters.within(query, request.time, await self._views.check(request.object, request.filter))

    async def _open_share(self, export: ExportReader) -> AsyncGenerator[ExportPart, None]:
        """Open the reader of a share, from a busy server after a pause; yield a part without rows for each."""
        patience = Patience()
        while True:
            try:
                await self._run(export.open(), pauses=())
            except DragomanError as error:
                if (pause := patience.pause(error, away=isinstance(error, ConnectionFailedError))) is None:
                    raise
                if "retry_after" in error.details:
                    yield ExportPart(data=b"", rows=0, turned_away=1)
                await anyio.sleep(jittered(pause))
            else:
                return

    async def _read_slice(self, export_slice: Slice) -> AsyncGenerator[SlicePage, None]:
        from .export import LIMIT, SlicePage

        while export_slice.mark is not True:
            page = await self._run(export_slice.page(), pauses=(), limit=LIMIT)
            if isinstance(page, float | int):
                if export_slice.turned_away:
                    yield SlicePage(export_slice.number, (), export_slice.mark, turned_away=True)
                await anyio.sleep(jittered(page))
            else:
                yield page

    async def _renew(self, export: ExportReader) -> None:
        """Renew the search context, however long the consumer of a part takes."""
        while True:
            await anyio.sleep(_RENEWED)
            with suppress(DragomanError):  # the next page will report the error
                await self._run(export.renew())

    # sending

    async def _read_view(self, name: str) -> View:
        dialect = self._exchanges.dialect
        exchange = objects.view(
            name, leaves_out_vectors=dialect.asks_for_vectors, orders_unsigned=dialect.orders_unsigned
        )
        view = await self._run(exchange)
        if view.vectors_apart and not view.hidden:
            self._exchanges.dialect = msgspec.structs.replace(self._exchanges.dialect, leaves_out_vectors=True)
        stale = [
            key
            for key, open_pager in self._pagers.items()
            if open_pager.pager.name == name and not open_pager.lock.locked()
        ]
        for pager in [self._pagers.pop(key).pager for key in stale]:  # a refreshed grid wants newer rows
            await self._free(pager)
        return view

    async def _revision(self, view: View) -> str:
        """Ask for the revision of a view; as long as its indices are the same, large mappings only now and then."""
        revision, checked = self._checked.get(view.target, ("", 0.0))
        recent = view.identity and view.revision == revision and anyio.current_time() < checked + _LIFE
        if recent and await self._run(objects.identity(view.target)) == view.identity:
            return revision
        server_revision = await self._run(objects.current_revision(view))
        if server_revision == view.revision:
            self._checked[view.target] = server_revision, anyio.current_time()
        return server_revision

    @asynccontextmanager
    async def _lend(self, query: pages.PageQuery) -> AsyncIterator[Pager]:
        """Lend the pager of a result to one page at a time; the least recently used one makes room for a new one."""
        key = query.result_key
        open_pager = self._pagers.setdefault(key, _OpenPager(query.pager(self._exchanges.dialect)))
        self._pagers.move_to_end(key)
        surplus = max(0, len(self._pagers) - _PAGERS)
        idle = [key for key, candidate in self._pagers.items() if not candidate.lock.locked()][:surplus]
        for pager in [self._pagers.pop(key).pager for key in idle]:
            await self._free(pager)
        async with open_pager.lock:
            yield open_pager.pager

    async def _free(self, owner: Pager | ExportReader) -> None:
        """Free a search context, even when cancelled; it does not matter if it is already gone."""
        with anyio.move_on_after(_FREE_SECONDS, shield=True), suppress(ConnectionFailedError):
            if (request := owner.close()) is not None:
                await self._exchanges.send(request)
