"""The driver: each hook builds requests, sends them, and maps the answers. Rules in parentheses, as in C30."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    Answer,
    AuthenticationError,
    Cell,
    CellRequest,
    Column,
    CompiledFilter,
    ConsoleRequest,
    ConsoleText,
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
    PlannedRequest,
    PlanRequest,
    Profile,
    QueryError,
    RowKey,
    Server,
    UnsupportedOperationError,
    hookimpl,
)
from dragoman_api.errors import ObjectChangedError, ObjectNotFoundError, RowNotFoundError, ServerNotSupportedError
from dragoman_api.exports import ExportForm
from dragoman_api.grid import PreviewRequest, SimilarRequest, text_id
from dragoman_api.json_text import decode, encode
from dragoman_api.kit import cursors, similar_rows
from dragoman_api.kit.console_answers import text_answer
from dragoman_api.kit.exchanges import send_all
from dragoman_api.kit.line_parts import PART, rows_that_fit, split_lines
from dragoman_api.kit.object_lists import choose as choose_part
from dragoman_api.kit.page_columns import check_bounds, choose, sortable
from dragoman_api.kit.residual import residual_keys, select
from dragoman_api.remedies import Remedy, RemedyKind

from .filters import compile_filter
from .records import (
    EMBEDDING,
    NO_SORT,
    Checks,
    Definition,
    FilterBody,
    GetAnswer,
    QueryAnswer,
    StoredRecord,
    View,
    body_for,
    columns_of,
    console_requests,
    get_request,
    line_of,
    only_reads,
    page_of,
    query_request,
    value_kind,
)
from .writing import body_of_new, plan_rows, send_planned

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

API = "/api/v2"
SAMPLE = 200  # records from which the metadata columns of a collection are learnt
LISTED = 1_000  # names per request
COUNTED = 50_000  # ids per request of a count under a filter
TOTALED = 100_000  # rows after a filtered page up to which its total is exact
EXPORTED = 1_000  # most records per request of an export
UNORDERED = "Chroma has neither snapshots nor a documented order: rows that others delete meanwhile end the export"


class Driver:
    """Chroma over HTTP: a database is a branch, a collection an object, a record a row."""

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Check that Chroma 1.x answers, that the credentials hold, and that the tenant exists (C1-C6)."""
        self.http, self._views = http, dict[str, View]()
        token = profile.secrets.get("api_key") if profile.options.get("auth_method") == "chroma-token" else ""
        self._headers = {"X-Chroma-Token": token} if token else {}
        self._tenant = f"{API}/tenants/{quote(str(profile.options.get('tenant') or 'default_tenant'), safe='')}"
        self._database = str(profile.options.get("database") or "default_database")
        response = await self._request(HttpRequest("GET", f"{API}/heartbeat"))
        if response.status not in (401, 403):
            self._recognize(response)
        version = await self._json(HttpRequest("GET", f"{API}/version"), str)
        if version.partition(".")[0] == "0":
            raise ServerNotSupportedError(f"Chroma {version} answered; this driver needs 1.0 or newer")
        checks = await self._json(HttpRequest("GET", f"{API}/pre-flight-checks"), Checks)
        self._batch = max(1, min(checks.max_batch_size or 1, 1_000))
        await self._check_tenant()
        return Server("Chroma", version)

    def _recognize(self, response: Any) -> None:
        try:
            beat = decode(response.body, dict[str, Any]) if response.status == 200 else {}
        except ValueError:
            beat = {}
        if "nanosecond heartbeat" not in beat:
            reason = f"GET {API}/heartbeat was answered with HTTP {response.status} by something other than Chroma 1.x"
            raise ServerNotSupportedError(reason, hint="check Host, Port and Path Prefix of the connection")

    async def _check_tenant(self) -> None:
        response = await self._request(HttpRequest("GET", self._tenant))
        if response.status == 404:
            remedy = Remedy(RemedyKind.EDIT_FIELD, {"field": "tenant"})
            raise QueryError(f"the server has no such tenant{self.http.quote(response)}", remedies=[remedy])
        self._check(response)

    @hookimpl
    async def ping(self) -> Health:
        """Ask for the tenant, which needs the credentials."""
        try:
            await self._check_tenant()
        except DragomanError as error:
            return Health(ok=False, reason=error.message, code=error.code)
        return Health(ok=True)

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List the databases of the tenant, or the collections of one of them (C7-C9)."""
        if request.parent is None:
            part = choose_part(request, [item.name for item in await self._names(f"{self._tenant}/databases")])
            databases = [Object(name, kind="database", branch=True) for name in part.names]
            return ObjectList(objects=databases, next=part.next, total=part.total)
        base = f"{self._tenant}/databases/{quote(request.parent, safe='')}/collections"
        ids = {f"{request.parent}/{item.name}": item.id for item in await self._names(base)}
        part = choose_part(request, ids)

        async def count(name: str) -> int | None:
            response = await self._request(HttpRequest("GET", f"{base}/{quote(ids[name], safe='')}/count"))
            return None if response.status == 404 else self._read(response, int)  # it was deleted meanwhile

        counts = await send_all(part.names, count) if request.counts else [None] * len(part.names)
        objects = [
            Object(name, rows=rows, kind="collection", parent=request.parent)
            for name, rows in zip(part.names, counts, strict=True)
        ]
        return ObjectList(objects=objects, next=part.next, total=part.total)

    async def _names(self, path: str) -> list[Definition]:
        items: dict[str, Definition] = {}
        while True:
            page = await self._json(HttpRequest("GET", f"{path}?limit={LISTED}&offset={len(items)}"), list[Definition])
            before = len(items)
            items |= {item.id: item for item in page}
            if len(page) < LISTED or len(items) == before:
                return [*items.values()]

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Read a collection's definition, and its columns from the first records (C10-C14)."""
        view, structure = await self._read_view(name)
        note = Note(code="sampled", reason=f"the metadata columns are those of the first {SAMPLE} records")
        return Description(object=name, columns=[*view.columns.values()], structure=structure, notes=[note])

    async def _read_view(self, name: str) -> tuple[View, str]:
        database, _, collection = name.rpartition("/")
        base = f"{self._tenant}/databases/{quote(database or self._database, safe='')}/collections"
        response = await self._request(HttpRequest("GET", f"{base}/{quote(collection, safe='')}"))
        if response.status == 404 or not collection:
            self._views.pop(name, None)
            raise ObjectNotFoundError(f"there is no collection {name!r}")
        definition = self._read(response, Definition)
        path = f"{base}/{quote(definition.id, safe='')}"
        body = encode({"limit": SAMPLE, "include": ["metadatas"]})
        sample = await self._json(HttpRequest("POST", f"{path}/get", body), GetAnswer)
        columns = columns_of([record.metadata for record in sample.records()], definition.dimension)
        view = View(f"{database or self._database}/{collection}", path, columns, definition.dimension)
        self._views[name] = view
        return view, response.text

    async def _view(self, name: str) -> View:
        return self._views.get(name) or (await self._read_view(name))[0]

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Translate filter rows into a condition and ids (C15-C25)."""
        view = await self._view(request.object)
        return compile_filter(request, view.columns, view.path)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Fetch a page in the server's order, or filter and sort a bounded number of records here (C27-C29)."""
        view, body, columns = await self._prepared(request)
        dropped = sortable(request.sort, view.columns.get, lambda _: NO_SORT)[1]
        keys, notes = residual_keys(
            request.sort,
            dropped,
            lambda name: value_kind(view.columns[name]) if request.residual is not None else None,
        )
        if not keys and body.residual is None:
            records = await self._records(request.object, view, self._page_request(request, view, body, columns))
            total, exact = await self._total(request, view, body, len(records))
        else:
            limit = body.residual.limit if body.residual is not None else request.residual or 1
            names = [column.name for column in columns]
            include = [*names, *(key.column for key in keys)]
            include += [row.row.column for row in body.residual.rows] if body.residual is not None else []
            rows = await self._records(request.object, view, get_request(view, body, include, limit=limit))
            matched = len(rows) if len(rows) < limit else None
            if matched is None and not body.where and body.ids is None:
                matched = await self._count(request.object, view)
            chosen = select(rows, StoredRecord.value, limit=limit, matched=matched, where=body.residual, sort=keys)
            records, notes = chosen.rows[request.offset :][: request.limit], [*notes, *chosen.notes]
            total, exact = (chosen.total, chosen.total_exact) if request.total else (None, True)
        return replace(page_of(view, columns, records, notes), total=total, total_exact=exact, offset=request.offset)

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Page:
        """Query the index by an embedding: a given one, or that of a record (C42-C43)."""
        view = await self._view(request.object)
        body = body_for(request, view)
        if body.residual is not None:
            raise body.residual.refusal("a search for similar rows")
        if request.text is not None:
            reason = "a Chroma server makes no embeddings of texts; its clients do"
            raise UnsupportedOperationError(reason, hint="give the embedding of the text as a vector")
        similar_rows.vector_column(request, view.columns.values())
        columns = choose(request.columns, view.columns, object=request.object)
        similar_rows.check_length(request, view.dimension)
        key, limit = request.key, request.limit + (request.key is not None)  # the row itself is found, too
        vector = encode(request.vector) if key is None else await self._embedding(request.object, view, key)
        if body.ids is not None:  # the server fails on ids that it does not hold (C42)
            body = replace(body, ids=await self._ids(request.object, view, body, 0, len(body.ids)) if body.ids else [])
        answer = QueryAnswer([[]], [[]])
        if body.ids != []:
            query = query_request(view, body, [column.name for column in columns], vector, limit)
            response = await self._request(query)
            await self._notice_change(request.object, view, response)
            answer = self._read(response, QueryAnswer)
        records, distances = answer.nearest()
        page = page_of(view, columns, records, [similar_rows.MISSED])
        return similar_rows.nearest(request, page, distances, view.columns)

    async def _embedding(self, name: str, view: View, key: RowKey) -> str:
        record = (await self._stored_at(view.path, [text_id(key.id)], name=name)).get(key.text)
        if record is None or record.embedding is None:
            raise RowNotFoundError(f"{name} has no record {key.id!r} with an embedding")
        return record.embedding

    async def _prepared(self, request: PageRequest) -> tuple[View, FilterBody, list[Column]]:
        cursors.refuse(request)
        check_bounds(request)
        view = await self._view(request.object)
        return view, body_for(request, view), choose(request.columns, view.columns, object=request.object)

    def _page_request(
        self, request: PageRequest, view: View, body: FilterBody, columns: Sequence[Column]
    ) -> HttpRequest:
        names = [column.name for column in columns]
        return get_request(view, body, names, offset=request.offset, limit=request.limit)

    async def _records(self, name: str, view: View, request: HttpRequest) -> list[StoredRecord]:
        response = await self._request(request)
        await self._notice_change(name, view, response)
        answer: GetAnswer = self._read(response, GetAnswer)
        records = answer.records()
        if len(records) > decode(request.body or "{}", dict[str, Any]).get("limit", len(records)):
            raise QueryError(
                f"the server's answer is wrong: it has {len(records):,} records, more than it was asked for"
            )
        return records

    async def _notice_change(self, name: str, view: View, response: Any) -> None:
        """Raise ObjectChangedError if a collection was made anew, ObjectNotFoundError if it is gone (C11)."""
        if response.status == 404 and (await self._read_view(name))[0].path != view.path:
            raise ObjectChangedError(
                f"{name!r} was deleted and made anew", hint="compile the filter, and send the call again"
            )

    async def _total(self, request: PageRequest, view: View, body: FilterBody, rows: int) -> tuple[int | None, bool]:
        """Return the number of rows of a page's result: counted by the server, or by ids behind the page (C28)."""
        if not request.total:
            return None, True
        if not body.where and body.ids is None:
            return await self._count(request.object, view), True
        start = request.offset + rows
        if 0 < rows < request.limit:
            return start, True
        start = 0 if rows == 0 else start
        behind = len(await self._ids(request.object, view, body, start, TOTALED + 1))
        return start + min(behind, TOTALED), behind <= TOTALED

    async def _count(self, name: str, view: View) -> int:
        response = await self._request(HttpRequest("GET", f"{view.path}/count"))
        await self._notice_change(name, view, response)
        count: int = self._read(response, int)
        return count

    async def _ids(self, name: str, view: View, body: FilterBody, offset: int, limit: int) -> list[str]:
        request = get_request(view, body, (), offset=offset, limit=limit)
        bare = {**decode(request.body or "", dict[str, msgspec.Raw]), "include": []}
        records = await self._records(name, view, HttpRequest("POST", request.path, encode(bare)))
        return [record.id for record in records]

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch one record, and return one of its values whole."""
        view = await self._view(request.key.object)
        choose([request.column], view.columns, object=request.key.object)
        body = FilterBody(ids=[text_id(request.key.id)])
        records = await self._records(request.key.object, view, get_request(view, body, [request.column], limit=1))
        if not records:
            raise RowNotFoundError(f"{request.key.object} has no record {request.key.id!r}")
        return records[0].cell(request.column)

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """Count the records: the server counts all of them, and those of a filter are counted by their ids (C28)."""
        view = await self._view(request.object)
        body = body_for(request, view)
        if body.residual is not None:
            raise body.residual.refusal("a count")
        if not body.where and body.ids is None:
            return await self._count(request.object, view)
        rows = 0
        while True:
            ids = await self._ids(request.object, view, body, rows, COUNTED)
            rows += len(ids)
            if len(ids) < COUNTED:
                return rows

    @hookimpl
    async def preview_read(self, request: PreviewRequest) -> list[HttpRequest]:
        """Return the requests of a page or a count that depend on no answer."""
        read: Any = request.page or request.count
        view = await self._view(read.object)
        body = body_for(read, view)
        whole = not body.where and body.ids is None
        count = [HttpRequest("GET", f"{view.path}/count")]
        if request.page is None:
            if not whole:
                raise UnsupportedOperationError(
                    "Chroma counts the rows of a filter by no request; their ids are counted"
                )
            return count
        _, _, columns = await self._prepared(request.page)
        page = self._page_request(request.page, view, body, columns)
        return [page, *(count if whole and request.page.total else [])]

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Stream the records in the server's order; a record that vanishes before the walk ends it (C30-C31)."""
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("Chroma has no bulk format; export rows or documents")
        view = await self._view(request.object)
        body = body_for(request, view)
        if body.residual is not None:
            raise body.residual.refusal("an export")
        names = [column.name for column in choose(request.columns, view.columns, object=request.object)]
        query, rows, last = cursors.query_of(request), 0, ""
        if request.checkpoint is not None:
            wording = {
                "what": "checkpoint",
                "code": "export-not-resumable",
                "hint": "export again, without the checkpoint",
            }
            rows, last = cursors.unseal(request.checkpoint, query, tuple[int, str], **wording)
        total = None if body.where or body.ids is not None else await self._count(request.object, view)
        notes = [Note(code="no-order", reason=UNORDERED)] if request.checkpoint is None else []
        limit = 50
        while True:
            overlap = 1 if rows else 0  # the last row is read again: if it moved, rows before it are gone
            page = get_request(view, body, names, offset=rows - overlap, limit=limit + overlap)
            records = await self._records(request.object, view, page)
            if overlap and (not records or records[0].id != last):
                reason = f"records of {request.object!r} were deleted meanwhile, so that the export would lose some"
                raise QueryError(reason, hint="export again", code="export-not-resumable")
            fresh = records[overlap:]
            lines = b"".join([line_of(record, names) for record in fresh])
            for part in split_lines(lines):
                rows, last = rows + part.rows, fresh[part.rows - 1].id
                fresh = fresh[part.rows :]
                checkpoint = cursors.seal(query, [rows, last])
                yield ExportPart(data=part.data, rows=part.rows, total=total, checkpoint=checkpoint, notes=notes)
                notes = []
            if len(records) < limit + overlap:
                return
            limit = rows_that_fit(PART, rows=limit, size=len(lines), most=EXPORTED)

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Read the rows of the changes, and make requests that write them (C32-C40)."""
        if request.new is not None:
            database, _, name = request.new.name.rpartition("/")
            path = f"{self._tenant}/databases/{quote(database or self._database, safe='')}/collections"
            creation = HttpRequest("POST", path, body_of_new(name, request.new.like))
            return Plan(planned=[PlannedRequest(request=creation, changes=[])])
        return await plan_rows(request, self._stored, self._batch)

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Look again at each row just before it is written, and send what was planned."""
        return await send_planned(plan, self._stored_at, self._request, self.http.error)

    async def _stored(self, name: str, ids: Sequence[str]) -> tuple[View, dict[str, StoredRecord]]:
        view = await self._view(name)
        return view, await self._stored_at(view.path, ids, name=name)

    async def _stored_at(self, path: str, ids: Sequence[str], *, name: str = "") -> dict[str, StoredRecord]:
        """Return the records of some ids as they are now, whole."""
        view = View(name, path, {}, None)
        request = get_request(view, FilterBody(ids=[*ids]), [EMBEDDING])
        if not name:
            return {record.id: record for record in self._read(await self._request(request), GetAnswer).records()}
        return {record.id: record for record in await self._records(name, view, request)} if ids else {}

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        """Split a text into REST requests (C41)."""
        return console_requests(text.text, API)

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        """Send one request as it stands; an error status is an answer too."""
        response = await self._request(request.request, read=not request.writes)
        return text_answer(request, response, lambda: self.http.error(response).message)

    async def _request(self, request: HttpRequest, *, read: bool | None = None) -> Any:
        reads = only_reads(request) if read is None else read
        return await self.http.request(
            request.method, request.path, body=request.body, read=reads, headers=self._headers
        )

    async def _json(self, request: HttpRequest, kind: Any) -> Any:
        return self._read(await self._request(request), kind)

    def _read(self, response: Any, kind: Any) -> Any:
        try:
            return decode(self._check(response).body, kind)
        except ValueError as error:
            raise QueryError(f"the answer of {self.http.profile.where} cannot be read: {error}") from error

    def _check(self, response: Any) -> Any:
        if response.status == 401 and self._headers:
            reason = f"the token in X-Chroma-Token was rejected by {self.http.profile.where} (401)"
            raise AuthenticationError(f"{reason}{self.http.quote(response)}", hint="check Auth Method and Token")
        return self.http.check(response)
