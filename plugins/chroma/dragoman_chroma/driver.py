"""The driver: each hook builds requests, sends them, and maps the answers. Rules in parentheses, as in C30."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from dragoman_api import (
    AuthenticationError,
    Cell,
    CellRequest,
    Column,
    CompiledFilter,
    CountRequest,
    Description,
    DragomanError,
    ExportPart,
    ExportRequest,
    FilterRequest,
    Health,
    Http,
    HttpRequest,
    Note,
    Object,
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
    UnsupportedOperationError,
    hookimpl,
)
from dragoman_api.errors import ObjectChangedError, ObjectNotFoundError, RowNotFoundError, ServerNotSupportedError
from dragoman_api.exports import ExportForm
from dragoman_api.grid import PreviewRequest, SimilarRequest, text_id
from dragoman_api.json_text import encode
from dragoman_api.kit import cursors, similar_rows
from dragoman_api.kit.console_answers import RestConsole
from dragoman_api.kit.exchanges import send_all
from dragoman_api.kit.filter_rows import body_of
from dragoman_api.kit.line_parts import PART, export_parts, rows_that_fit
from dragoman_api.kit.object_lists import choose as choose_part
from dragoman_api.kit.page_columns import LeftOut, check_bounds, choose, sortable
from dragoman_api.kit.residual import Residual, residual_of
from dragoman_api.kit.rest import health
from dragoman_api.remedies import Remedy, RemedyKind

from .columns import EMBEDDING, NO_SORT, SAMPLE, columns_of, value_kind
from .filters import compile_filter
from .queries import (
    MOST_IDS,
    Checks,
    Definition,
    FilterBody,
    QueryAnswer,
    Records,
    StoredRecord,
    View,
    get_request,
    line_of,
    page_of,
    query_request,
)
from .writing import plan_creation, plan_rows, send_planned

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

T = TypeVar("T")

API = "/api/v2"
LISTED = 1_000  # names per request
COUNTED = 50_000  # ids per request of a count under a filter
TOTALED = 100_000  # rows after a filtered page up to which its total is exact
EXPORTED = 1_000  # most records per request of an export
UNORDERED = "Chroma has neither snapshots nor a documented order: rows that others delete meanwhile end the export"
_READS = ("get", "query", "search", "count")  # what a POST asks without changing anything


class Driver(RestConsole):
    """Chroma over HTTP: a database is a branch, a collection an object, a record a row."""

    console_prefix = API

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Check that Chroma 1.x answers, that the credentials hold, and that the tenant exists (C1-C6)."""
        self.http, self._views = http, dict[str, View]()
        if profile.options.get("auth_method") == "chroma-token":
            self.headers = {"X-Chroma-Token": profile.secrets.get("api_key")}
        self._tenant = f"{API}/tenants/{quote(str(profile.options.get('tenant') or 'default_tenant'), safe='')}"
        self._database = str(profile.options.get("database") or "default_database")
        reply = await self.send(HttpRequest("GET", f"{API}/heartbeat"))
        if reply.status not in (401, 403) and (reply.status != 200 or b'"nanosecond heartbeat":' not in reply.body):
            reason = f"GET {API}/heartbeat was answered with HTTP {reply.status} by something other than Chroma 1.x"
            raise ServerNotSupportedError(reason, hint="check Host, Port and Path Prefix of the connection")
        version = await self.ask(HttpRequest("GET", f"{API}/version"), str)
        if version.partition(".")[0] == "0":
            raise ServerNotSupportedError(f"Chroma {version} answered; this driver needs 1.0 or newer")
        checks = await self.ask(HttpRequest("GET", f"{API}/pre-flight-checks"), Checks)
        self._batch = max(1, min(checks.max_batch_size or 1, 1_000))
        await self._check_tenant()
        return Server("Chroma", version)

    async def _check_tenant(self) -> None:
        reply = await self.send(HttpRequest("GET", self._tenant))
        if reply.status == 404:
            remedy = Remedy(RemedyKind.EDIT_FIELD, {"field": "tenant"})
            raise QueryError(f"the server has no such tenant{self.http.quote(reply)}", remedies=[remedy])
        self.check(reply)

    @hookimpl
    async def ping(self) -> Health:
        """Ask for the tenant, which needs the credentials."""
        return await health(self._check_tenant())

    def error(self, reply: Any) -> DragomanError:
        """Return the error that a status stands for; a rejected token names its field."""
        if reply.status == 401 and self.headers:
            reason = f"the token in X-Chroma-Token was rejected by {self.http.profile.where} (401)"
            return AuthenticationError(f"{reason}{self.http.quote(reply)}", hint="check Auth Method and Token")
        return super().error(reply)

    def console_writes(self, request: HttpRequest) -> bool:
        """Return whether a request may change something on the server (C41)."""
        last = request.path.partition("?")[0].rpartition("/")[2]
        return super().console_writes(request) and not (request.method == "POST" and last in _READS)

    # objects

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List the databases of the tenant, or the collections of one of them (C7-C9)."""
        if request.parent is None:
            part = choose_part(request, await self._ids_by_name(f"{self._tenant}/databases"))
            objects = [Object(name, kind="database", branch=True) for name in part.names]
            return ObjectList(objects=objects, next=part.next, total=part.total)
        base = self._collections(request.parent)
        ids = {f"{request.parent}/{name}": key for name, key in (await self._ids_by_name(base)).items()}
        part = choose_part(request, ids)

        async def count(name: str) -> int | None:
            reply = await self.send(HttpRequest("GET", f"{base}/{quote(ids[name], safe='')}/count"))
            return None if reply.status == 404 else self.read(reply, int)  # it was deleted meanwhile

        counts = await send_all(part.names, count) if request.counts else [None] * len(part.names)
        objects = [
            Object(name, rows=rows, kind="collection", parent=request.parent)
            for name, rows in zip(part.names, counts, strict=True)
        ]
        return ObjectList(objects=objects, next=part.next, total=part.total)

    def _collections(self, database: str) -> str:
        return f"{self._tenant}/databases/{quote(database, safe='')}/collections"

    async def _ids_by_name(self, path: str) -> dict[str, str]:
        ids: dict[str, str] = {}
        while True:
            page = await self.ask(HttpRequest("GET", f"{path}?limit={LISTED}&offset={len(ids)}"), list[Definition])
            before = len(ids)
            ids |= {item.name: item.id for item in page}
            if len(page) < LISTED or len(ids) == before:
                return ids

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Read a collection's definition, and its columns from the first records (C10-C14)."""
        view = await self._read_view(self._full(name))
        note = Note(code="sampled", reason=f"the metadata columns are those of the first {SAMPLE} records")
        return Description(object=name, columns=[*view.columns.values()], structure=view.definition, notes=[note])

    def _full(self, name: str) -> str:
        return name if "/" in name else f"{self._database}/{name}"

    async def _read_view(self, name: str) -> View:
        self._views.pop(name, None)
        database, _, collection = name.rpartition("/")
        base = self._collections(database)
        reply = await self.send(HttpRequest("GET", f"{base}/{quote(collection, safe='')}"))
        if reply.status == 404 or not collection:
            raise ObjectNotFoundError(f"there is no collection {name!r}")
        definition = self.read(reply, Definition)
        path = f"{base}/{quote(definition.id, safe='')}"
        sample = HttpRequest("POST", f"{path}/get", encode({"limit": SAMPLE, "include": ["metadatas"]}))
        records = (await self.ask(sample, Records)).records()
        columns = columns_of([record.metadata for record in records], definition.dimension)
        view = self._views[name] = View(name, path, columns, definition.dimension, reply.text)
        return view

    async def _view(self, name: str) -> View:
        name = self._full(name)
        return self._views.get(name) or await self._read_view(name)

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Translate filter rows into a condition and ids (C15-C25)."""
        view = await self._view(request.object)
        return compile_filter(request, view.columns, view.path)

    async def _filtered(self, request: Any, whole: str = "") -> tuple[View, FilterBody]:
        """Return what a read is about; refuse what is evaluated here in one that concerns all rows."""
        view = await self._view(request.object)
        body = body_of(request.filter, FilterBody, object=request.object, revision=view.path) or FilterBody()
        if whole and body.residual is not None:
            raise body.residual.refusal(whole)
        return view, body

    async def _prepared(
        self, request: PageRequest
    ) -> tuple[View, FilterBody, list[Column], HttpRequest, Residual | None, list[Note]]:
        cursors.refuse(request)
        check_bounds(request)
        view, body = await self._filtered(request)
        columns = choose(request.columns, view.columns, object=request.object)
        dropped = sortable(request.sort, view.columns.get, lambda _: NO_SORT)[1]
        residual, notes = residual_of(request, body.residual, dropped, lambda name: value_kind(view.columns[name]))
        names = [*(column.name for column in columns), *(residual.columns if residual is not None else ())]
        window = {"limit": residual.limit} if residual else {"offset": request.offset, "limit": request.limit}
        return view, body, columns, get_request(view.path, body, names, **window), residual, notes

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Fetch a page in the server's order, or filter and sort a bounded number of records here (C27-C29)."""
        view, body, columns, query, residual, notes = await self._prepared(request)
        records = await self._records(view, query, request.limit if residual is None else residual.limit)
        if residual is None:
            total, exact = await self._total(request, view, body, len(records)) if request.total else (None, True)
        else:
            counted = body.whole and len(records) == residual.limit
            matched = await self._count(view) if counted else None
            selection = residual.cut(request, records, StoredRecord.value, matched=matched)
            records, total, exact = selection.rows, selection.total, selection.total_exact
            notes = [*notes, *selection.notes]
        return replace(page_of(view, columns, records, notes), total=total, total_exact=exact, offset=request.offset)

    async def _records(self, view: View, query: HttpRequest, limit: int) -> list[StoredRecord]:
        records = (await self._ask(view, query, Records)).records()
        if len(records) > limit:
            reason = f"the server's answer is wrong: it has {len(records):,} records, more than it was asked for"
            raise QueryError(reason)
        return records

    async def _ask(self, view: View, query: HttpRequest, kind: type[T]) -> T:
        """Read from a collection; ObjectChangedError if it was made anew, ObjectNotFoundError if it is gone (C11)."""
        reply = await self.send(query, read=True)
        if reply.status == 404 and (await self._read_view(view.name)).path != view.path:
            hint = "compile the filter, and send the call again"
            raise ObjectChangedError(f"{view.name!r} was deleted and made anew", hint=hint)
        return self.read(reply, kind)

    async def _total(self, request: PageRequest, view: View, body: FilterBody, rows: int) -> tuple[int, bool]:
        """Return the number of rows of a page's result: counted by the server, or by ids behind the page (C28)."""
        if body.whole:
            return await self._count(view), True
        start = request.offset + rows if rows else 0
        if 0 < rows < request.limit:
            return start, True
        behind = len(await self._ids(view, body, start, TOTALED + 1))
        return start + min(behind, TOTALED), behind <= TOTALED

    async def _count(self, view: View) -> int:
        return await self._ask(view, HttpRequest("GET", f"{view.path}/count"), int)

    async def _ids(self, view: View, body: FilterBody, offset: int, limit: int) -> list[str]:
        query = get_request(view.path, body, None, offset=offset, limit=limit)
        return [record.id for record in await self._records(view, query, limit)]

    async def _stored(self, view: View, ids: Sequence[str]) -> dict[str, StoredRecord]:
        """Return those of some records that there are, whole."""
        query = get_request(view.path, FilterBody(ids=[*ids]), [EMBEDDING])
        return {record.id: record for record in await self._records(view, query, len(ids))} if ids else {}

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Page:
        """Query the index by an embedding: a given one, or that of a record (C42-C43)."""
        view, body = await self._filtered(request, "a search for similar rows")
        if request.text is not None:
            reason = "a Chroma server makes no embeddings of texts; its clients do"
            raise UnsupportedOperationError(reason, hint="give the embedding of the text as a vector")
        similar_rows.vector_column(request, view.columns.values())
        columns = choose(request.columns, view.columns, object=request.object)
        similar_rows.check_length(request, view.dimension)
        vector, limit = encode(request.vector), request.limit
        if request.key is not None:
            key, limit = text_id(request.key.id), limit + 1  # the row itself is found, too
            record = (await self._stored(view, [key])).get(key)
            if record is None or record.embedding is None:
                raise RowNotFoundError(f"{request.object} has no record {key!r} with an embedding")
            vector = record.embedding
        if body.ids is not None:  # the server fails on ids that it does not hold (C42)
            body = replace(body, ids=await self._ids(view, body, 0, MOST_IDS))
        answer = QueryAnswer([[]], [[]])
        if body.ids != []:
            query = query_request(view.path, body, [column.name for column in columns], vector, limit)
            answer = await self._ask(view, query, QueryAnswer)
        records, distances = answer.nearest()
        page = page_of(view, columns, records, [similar_rows.MISSED])
        return similar_rows.nearest(request, page, distances, view.columns)

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch one record, and return one of its values whole."""
        view = await self._view(request.key.object)
        choose([request.column], view.columns, object=request.key.object)
        query = get_request(view.path, FilterBody(ids=[text_id(request.key.id)]), [request.column])
        for record in await self._records(view, query, 1):
            return record.cell(request.column)
        raise RowNotFoundError(f"{request.key.object} has no record {request.key.id!r}")

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """Count the records: the server counts all of them, and those of a filter are counted by their ids (C28)."""
        view, body = await self._filtered(request, "a count")
        if body.whole:
            return await self._count(view)
        rows = 0
        while True:
            ids = await self._ids(view, body, rows, COUNTED)
            rows += len(ids)
            if len(ids) < COUNTED:
                return rows

    @hookimpl
    async def preview_read(self, request: PreviewRequest) -> list[HttpRequest]:
        """Return the requests of a page or a count that depend on no answer."""
        if request.page is not None:
            view, body, _, query, _, _ = await self._prepared(request.page)
            requests, counted = [query], request.page.total and body.whole
        else:
            view, body = await self._filtered(request.count, "a count")
            requests, counted = [], body.whole
            if not counted:
                reason = "Chroma counts the rows of a filter by no request; their ids are counted"
                raise UnsupportedOperationError(reason)
        return [*requests, *([HttpRequest("GET", f"{view.path}/count")] if counted else [])]

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Stream the records in the server's order; a record that vanishes before the walk ends it (C30-C31)."""
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("Chroma has no bulk format; export rows or documents")
        view, body = await self._filtered(request, "an export")
        names = [column.name for column in choose(request.columns, view.columns, object=request.object)]
        query, limit, left_out = cursors.query_of(request), 50, LeftOut()
        rows, last = cursors.continued(request, tuple[int, str]) or (0, "")
        total = await self._count(view) if body.whole else None
        notes = [] if rows else [Note(code="no-order", reason=UNORDERED)]
        while True:
            overlap = min(rows, 1)  # the last row is read again: if it moved, rows before it are gone
            size = limit + overlap
            page = get_request(view.path, body, names, offset=rows - overlap, limit=size)
            records = await self._records(view, page, size)
            if overlap and (not records or records[0].id != last):
                reason = f"records of {request.object!r} were deleted meanwhile, so that the export would lose some"
                raise QueryError(reason, hint="export again", code="export-not-resumable")
            lines = b"".join(line_of(record, request.columns) for record in records[overlap:])
            if request.columns is None and request.form is ExportForm.ROWS:
                view.count_unshown(records[overlap:], left_out)
            if len(records) > overlap:
                rows, last = rows + len(records) - overlap, records[-1].id
            for part in export_parts(lines, total=total, checkpoint=cursors.seal(query, [rows, last]), notes=notes):
                yield part
                notes = []
            if len(records) < size:
                break
            limit = rows_that_fit(PART, rows=limit, size=len(lines), most=EXPORTED)
        if notes := [*notes, *left_out.notes()]:
            yield ExportPart(data=b"", rows=0, notes=notes)

    # changes

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Read the rows of the changes, and make requests that write them (C32-C40)."""
        if request.new is not None:
            database, _, name = self._full(request.new.name).rpartition("/")
            return plan_creation(self._collections(database), name, request.new)
        return await plan_rows(request, self._view, self._stored, self._batch if request.bulk else 1)

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Look again at each row just before it is written, and send what was planned."""
        return await send_planned(plan, self)
