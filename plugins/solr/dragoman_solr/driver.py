"""The driver: each hook builds requests, sends them, and maps the answers. Rules in parentheses, as in S14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

import msgspec

from dragoman_api import (
    MISSING,
    Cell,
    CellRequest,
    Column,
    CompiledFilter,
    CountRequest,
    Description,
    ExportPart,
    ExportRequest,
    FilterRequest,
    HttpRequest,
    Note,
    Object,
    ObjectList,
    ObjectsRequest,
    Page,
    PageRequest,
    QueryError,
    RowKey,
    UnsupportedOperationError,
    hookimpl,
)  # fmt: skip
from dragoman_api.errors import RowNotFoundError
from dragoman_api.exports import NO_SNAPSHOT, ExportForm
from dragoman_api.grid import PreviewRequest, text_id
from dragoman_api.kit import cursors
from dragoman_api.kit.console_answers import RestConsole
from dragoman_api.kit.filter_rows import body_of
from dragoman_api.kit.line_parts import PART, RowLines, export_parts, rows_that_fit
from dragoman_api.kit.object_lists import choose as choose_part
from dragoman_api.kit.page_columns import KEYS, LeftOut, check_bounds, choose
from dragoman_api.summaries import ColumnSummary, Figure, SummaryRequest, ValueCount

from .cores import BASE
from .fields import VERSION, View, cell
from .queries import Filters, compile_filter, exists, search, sort_keys
from .writing import ChangeHooks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


EXPORTED = 1_000  # most documents of one request of an export
_READS = ("select", "query", "get", "export", "luke")  # what a POST asks without changing anything
_WRITERS = frozenset({"update", "stream", "sql", "replication", "dataimport"})  # handlers that write by GET, too
_LISTS = ("STATUS", "LIST", "CLUSTERSTATUS")
_UNSEEN = "Solr has no snapshot: documents that change meanwhile are read as they are when their turn comes"


class _Core(msgspec.Struct, rename="camel"):
    num_docs: int | None = None
    size_in_bytes: int | None = None


class _Status(msgspec.Struct):
    index: _Core = msgspec.field(default_factory=_Core)


class _Cores(msgspec.Struct):
    status: dict[str, _Status]


class Driver(RestConsole, ChangeHooks):
    """Solr without ZooKeeper over HTTP: a core is an object, a document a row."""

    console_prefix = BASE

    # objects

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List the cores, with the documents that searches see (S4)."""
        info = str(request.counts).lower()
        cores = (await self.get(f"{BASE}/admin/cores?action=STATUS&indexInfo={info}&wt=json", _Cores)).status
        part = choose_part(request, () if request.parent is not None else cores)
        objects = [
            Object(name, rows=cores[name].index.num_docs, size=cores[name].index.size_in_bytes, kind="core")
            for name in part.names
        ]
        return ObjectList(objects=objects, next=part.next, total=part.total)

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Read the schema, and the fields that documents have by a pattern (S5-S7)."""
        view, structure = await self.read_view(name)
        self.views[name] = view
        computed = tuple(column.name for column in view.columns.values() if column.written == "never")
        return Description(
            object=name, columns=[*view.columns.values()], structure=structure, notes=view.notes,
            server_members=computed,
        )  # fmt: skip

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Translate filter rows into conditions (S9-S16)."""
        return compile_filter(request, await self.view(request.object))

    async def _prepared(self, request: Any) -> tuple[View, Filters]:
        view = await self.view(request.object)
        return view, body_of(request.filter, Filters, object=request.object, revision=view.revision) or Filters()

    async def _page_body(self, request: PageRequest) -> tuple[View, list[Column], str, list[Note], int]:
        check_bounds(request)
        view, filters = await self._prepared(request)
        columns = choose(request.columns, view.columns, object=request.object)
        sort, notes = sort_keys(request.sort, view)
        mark, offset = "*", request.offset
        if request.cursor is not None:
            mark, offset = cursors.unseal(request.cursor, cursors.query_of(request), tuple[str, int])
        walks = bool(view.key) and (request.cursor is not None or not offset)  # a mark begins at the first row (S18)
        window = {"params": {"cursorMark": mark}} if walks else {"offset": offset}
        names = None if request.columns is None else [column.name for column in columns]
        order = {"sort": sort} if sort else {}
        return view, columns, search(view, filters, names, limit=request.limit, **order, **window), notes, offset

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Fetch a page by a cursor mark, or by its offset (S17-S18)."""
        view, columns, body, notes, offset = await self._page_body(request)
        answer = await self.search(request.object, body)
        rows, left_out = answer.response.docs, LeftOut()
        if len(rows) > request.limit:
            raise QueryError(f"the server's answer is wrong: it has {len(rows):,} documents, more than were asked for")
        if request.columns is None:
            for row in rows:
                left_out.add(KEYS, (name for name in row if name not in view.columns))
        end, total = offset + len(rows), answer.response.num_found
        goes_on = answer.next_cursor_mark and rows and end < total
        return Page(
            columns=columns,
            cells=[[cell(row.get(column.name)) for column in columns] for row in rows],
            keys=[_key(view, row) for row in rows],
            notes=[*notes, *left_out.notes()],
            total=total if request.total else None,
            total_exact=answer.response.num_found_exact or not request.total,
            offset=offset,
            next=cursors.seal(cursors.query_of(request), [answer.next_cursor_mark, end]) if goes_on else None,
        )

    @hookimpl
    async def preview_read(self, request: PreviewRequest) -> list[HttpRequest]:
        """Return the search of a page or a count."""
        if request.page is not None:
            body = (await self._page_body(request.page))[2]
        else:
            body = search(*await self._prepared(request.count), limit=0)
        return [HttpRequest("POST", f"{self.path(request.read.object)}/select", body)]

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch one document, and return one of its values whole."""
        name, key = request.key.object, text_id(request.key.id)
        view = await self.view(name)
        [column] = choose([request.column], view.columns, object=name)
        filters = Filters([{"field": {"f": view.key, "query": key}}])
        for row in (await self.search(name, search(view, filters, [column.name], limit=1))).response.docs:
            return cell(row.get(column.name))
        raise RowNotFoundError(f"'{name}' has no document {key!r}")

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """Count the documents that searches see."""
        rows = (await self.search(request.object, search(*await self._prepared(request), limit=0))).response
        if not rows.num_found_exact:
            raise QueryError("the server's count is a lower bound")
        return rows.num_found

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary:
        """Ask for facets: frequent values, and the number of different ones; extremes where there is an order (S20)."""
        view, filters = await self._prepared(request)
        [column] = choose([request.column], view.columns, object=request.object)
        name, facets = column.name, dict[str, Any]()
        field, words = view.fields[name], view.fields[name].tokenized
        if {*column.operators} & {"null"}:
            facets["present"] = {"type": "query", "q": exists(name)["lucene"]["query"]}
        values = field.simple and not words and (field.doc_values or (field.indexed and field.uninvertible))
        if values and column.kind != "other" and column.kind != "binary":
            facets |= {"values": {"type": "terms", "field": name, "limit": request.values or 1}}
            facets["distinct"] = f"unique({name})"
            if column.kind in ("integer", "timestamp") and not field.multi_valued:
                facets |= {"minimum": f"min({name})", "maximum": f"max({name})"}
        answer = await self.search(request.object, search(view, filters, limit=0, facet=facets))
        figures, rows = answer.facets, answer.response.num_found
        present = figures.get("present", {}).get("count", 0) if rows and "present" in facets else None
        reason = "Solr computes it for no field of this type here"
        buckets = figures.get("values", {}).get("buckets", [])[: request.values]
        facet_names = {Figure.MISSING: "present", Figure.VALUES: "values", Figure.DISTINCT: "distinct",
                 Figure.MINIMUM: "minimum", Figure.MAXIMUM: "maximum"}  # fmt: skip
        absent = {figure: reason for figure, facet in facet_names.items() if facet not in facets}
        return ColumnSummary(
            column=column, rows=rows,
            missing=0 if not rows else None if present is None else rows - present,
            values=[ValueCount(_typed(bucket["val"], column), bucket["count"]) for bucket in buckets],
            distinct=figures.get("distinct", 0) if "distinct" in facets else None,
            minimum=figures.get("minimum"), maximum=figures.get("maximum"),
            absent=absent | {Figure.BUCKETS: "this driver asks for no histogram"},
        )  # fmt: skip

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Walk through the documents in the order of their keys by cursor marks (S19)."""
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("Solr has no bulk format of its own; export rows or documents")
        view, filters = await self._prepared(request)
        if not view.key:
            raise UnsupportedOperationError("the schema has no unique key, so that no cursor leads through all rows")
        columns = choose(request.columns, view.columns, object=request.object)
        names = None if request.columns is None else [column.name for column in columns]
        query, limit, left_out = cursors.query_of(request), 50, LeftOut()
        checkpoint = cursors.continued(request, str)
        notes = [Note(code=NO_SNAPSHOT, reason=_UNSEEN)] if checkpoint is None else []
        writer, mark, following = RowLines([column.path for column in columns]), "", checkpoint or "*"
        while mark != following:
            mark = following
            window = {"sort": f"{view.key} asc", "params": {"cursorMark": mark}}
            answer = await self.search(request.object, search(view, filters, names, limit=limit, **window))
            rows, following = answer.response.docs, answer.next_cursor_mark
            if names is None:
                for row in rows:
                    left_out.add(KEYS, (name for name in row if name not in view.columns))
            lines = b"".join(
                writer.line([cell(row[column.name]) if column.name in row else MISSING for column in columns])
                for row in rows
            )
            seal, total = cursors.seal(query, following), answer.response.num_found
            for part in export_parts(lines, total=total, checkpoint=seal, notes=notes):
                yield part
                notes = []
            if not rows:
                break
            limit = rows_that_fit(PART, rows=limit, size=len(lines), most=EXPORTED)
        if notes := [*notes, *left_out.notes()]:
            yield ExportPart(data=b"", rows=0, notes=notes)

    # sending

    def console_writes(self, request: HttpRequest) -> bool:
        """Return whether a request may change something: an admin action by GET may, a search by POST may not (S28)."""
        path, _, query = request.path.partition("?")
        steps, pairs = unquote(path).split("/"), parse_qsl(query, keep_blank_values=True)
        if _WRITERS.intersection(steps) or any(name.startswith("stream.") or name == "qt" for name, _ in pairs):
            return True
        if any(name == "action" and value.upper() not in _LISTS for name, value in pairs):
            return True
        return request.method not in ("GET", "HEAD") and not (request.method == "POST" and steps[-1] in _READS)


def _key(view: View, row: dict[str, Any]) -> RowKey:
    version = row.get(VERSION)
    guard: dict[str, int | str] = {VERSION: version} if isinstance(version, int) else {}
    return RowKey(view.name, str(row.get(view.key, "")) if view.key else "", guard=guard)


def _typed(value: Any, column: Column) -> Any:
    return value == "true" if column.kind == "boolean" and isinstance(value, str) else value
