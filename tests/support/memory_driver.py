"""A driver of an in-memory database: it proves that the contract can be met, and serves tests of the host."""

from __future__ import annotations

import re
from math import dist
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from dragoman_api.cells import MISSING, Json
from dragoman_api.changes import Delete, Drop, HttpRequest, Insert, Outcome, OutcomeStatus, Plan, PlannedRequest
from dragoman_api.columns import (
    Column,
    ColumnKind,
    Condition,
    ConditionLevel,
    Description,
    Note,
    Object,
    ObjectList,
    Role,
    TimeColumn,
    Written,
)
from dragoman_api.connections import Health, Server, ServerNode, ServerStatus
from dragoman_api.console import (
    MAX_SUGGESTIONS,
    Answer,
    AnswerKind,
    Completion,
    ConsoleRequest,
    Suggestion,
    SuggestionKind,
)
from dragoman_api.errors import (
    ConnectionFailedError,
    ConsoleSyntaxError,
    ObjectNotFoundError,
    QueryError,
    RevisionGoneError,
    RowNotFoundError,
    UnsupportedOperationError,
)
from dragoman_api.exports import ExportForm, ExportPart, ExportSplit
from dragoman_api.filters import CompiledFilter, Explanation, FilterRequest, RawQuery
from dragoman_api.grid import Page, RowKey, text_id
from dragoman_api.hookspecs import hookimpl
from dragoman_api.json_text import encode
from dragoman_api.kit import cursors, similar_rows
from dragoman_api.kit.filter_rows import within
from dragoman_api.kit.page_columns import unknown_sort
from dragoman_api.kit.row_changes import NotSentError
from dragoman_api.kit.summaries import summarize_cells
from dragoman_api.kit.writing import writable
from dragoman_api.wording import as_typed
from memory_server import OPERATORS, WHOLE, MemoryServer, cell, column_of, ordered, satisfies, typed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from dragoman_api.cells import Cell
    from dragoman_api.changes import Change, PlanRequest
    from dragoman_api.columns import ObjectsRequest
    from dragoman_api.connections import Profile
    from dragoman_api.console import CompletionRequest, ConsoleText
    from dragoman_api.exports import ExportRequest, SnapshotHold, SplitRequest
    from dragoman_api.grid import CellRequest, CountRequest, PageRequest, PreviewRequest, SimilarRequest
    from dragoman_api.http import Http
    from dragoman_api.summaries import ColumnSummary, SummaryRequest

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_LINE = re.compile(r"(?P<method>GET|HEAD|POST|PUT|DELETE)\s+(?P<path>/\S*)(?:\s+(?P<body>\S.*))?")
_KEY = "id"
_STATUSES = {200: OutcomeStatus.APPLIED, 404: OutcomeStatus.CONFLICT, 409: OutcomeStatus.CONFLICT}


class MemoryDriver:
    """All hooks over a `MemoryServer`; the HTTP client is not used.

    Args:
        server: Its database; if None, a new one with the objects ``books`` and ``scratch``.
        part_rows: Rows of one part of an export.
    """

    def __init__(self, server: MemoryServer | None = None, *, part_rows: int = 10) -> None:
        self.server = server or MemoryServer()
        self._part_rows = part_rows

    # connection -------------------------------------------------------------------------------------------------------

    @hookimpl
    async def connect(self, profile: Profile, http: Http | None) -> Server:
        """Send one request to the server."""
        self.server.send("GET", "/")
        return Server("Memory", "1.0")

    @hookimpl
    async def ping(self) -> Health:
        """Send one more request to the server."""
        status, _ = self.server.send("GET", "/")
        return Health(ok=status == 200)

    @hookimpl
    async def read_status(self) -> ServerStatus:
        """Say what a server of one node would."""
        return ServerStatus(nodes=[ServerNode(name="memory", state=Condition("up", ConditionLevel.GOOD), rows=23)])

    @hookimpl
    async def close(self) -> None:
        """Do nothing: the server keeps no state for a connection."""

    # objects ----------------------------------------------------------------------------------------------------------

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List the objects in parts; a cursor is the number of objects before it."""
        text = request.contains.casefold()
        records = [record for record in self.server.send("GET", "/")[1] if text in record["name"].casefold()]
        objects = [Object(record["name"], record["rows"] if request.counts else None) for record in records]
        end = int(request.cursor or 0) + request.limit
        part = objects[end - request.limit : end]
        return ObjectList(objects=part, next=str(end) if end < len(objects) else None, total=len(objects))

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Describe the columns, the key first."""
        self._fetch(name)
        time = next((TimeColumn(column=column.name) for column in self._columns() if column.role is Role.TIME), None)
        return Description(object=name, columns=self._columns(), time=time)

    def _columns(self) -> list[Column]:
        key = Column(
            name=_KEY,
            type="key",
            kind=ColumnKind.TEXT,
            role=Role.KEY,
            written=Written.INSERT,
            reasons={"edit": "the key of a row cannot be changed"},
            sortable=True,
            operators=OPERATORS[ColumnKind.TEXT],
            path=(_KEY,),
        )
        vectors = self.server.vectors
        return [key, *(column_of(name, kind, vectors.get(name)) for name, kind in self.server.kinds.items())]

    def _fetch(self, name: str, revision: str = "") -> list[dict[str, Any]]:
        status, rows = self.server.send(
            "GET", _path(name) + (f"?revision={quote(revision, safe='')}" if revision else "")
        )
        if status == 404:
            raise ObjectNotFoundError(f"there is no object {name!r}")
        if status == 410:
            raise RevisionGoneError(f"the server no longer has revision {revision}")
        return list(rows)

    # grid -------------------------------------------------------------------------------------------------------------

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Check every row against its column; the body is the request with typed values."""
        columns = {column.name: column for column in self._columns()}
        rows = [row if isinstance(row, RawQuery) else typed(row, columns.get(row.column)) for row in request.rows]
        explained = [
            Explanation(row=at, clause=f"any cell contains {row.text!r}", exact=False, approximations=["as a text"])
            if isinstance(row, RawQuery)
            else Explanation(row=at, clause=f"{row.column} {row.op} {as_typed(row.value)}")
            for at, row in enumerate(rows)
        ]
        body = msgspec.json.encode(replace(request, rows=rows)).decode()
        return CompiledFilter(object=request.object, body=body, rows=explained)

    def _rows(
        self, request: PageRequest | CountRequest | ExportRequest | SummaryRequest | SimilarRequest, revision: str
    ) -> list[dict[str, Any]]:
        """Return the rows that filter and range of time leave, each with its key among the values."""
        fetched, time, where = self._fetch(request.object, revision), request.time, request.filter
        rows = [{**record, "row": {_KEY: record["id"], **record["row"]}} for record in fetched]
        if time is not None:
            rows = [record for record in rows if within(time, record["row"].get(time.column))]
        if where is None:
            return rows
        filter_request = msgspec.json.decode(where.body, type=FilterRequest)
        test = all if filter_request.match == "all" else any
        return [record for record in rows if test(satisfies(row, record["row"]) for row in filter_request.rows)]

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Filter, sort, and cut out the page."""
        columns = {column.name: column for column in self._columns()}
        query, offset = cursors.query_of(request), request.offset
        revision = request.revision or str(self.server.revision)
        if request.cursor is not None:
            pinned, offset = cursors.unseal(request.cursor, query, tuple[str, int])
            revision = cursors.revision_of(request, pinned)
        rows = self._rows(request, revision)
        notes = []
        for sort in reversed(request.sort):
            if (column := columns.get(sort.column)) is None:
                raise unknown_sort(sort.column)
            if column.sortable:
                rows = ordered(rows, sort)
            else:
                notes.append(Note(code="sort-dropped", column=sort.column, reason=column.reasons["sort"]))
        end = offset + request.limit
        return replace(
            self._shown(request, rows[offset:end]),
            notes=notes,
            total=len(rows) if request.total else None,
            offset=offset,
            next=cursors.seal(query, [revision, end]) if end < len(rows) else None,
            revision=revision,
        )

    def _shown(self, request: PageRequest | SimilarRequest, rows: list[dict[str, Any]]) -> Page:
        """Return rows as a page."""
        columns = {column.name: column for column in self._columns()}
        if unknown := {*(request.columns or ())} - {*columns}:
            raise QueryError(f"{request.object} has no column {min(unknown)!r}")
        chosen = [columns[name] for name in (columns if request.columns is None else request.columns)]
        return Page(
            columns=chosen,
            cells=[[cell(record["row"].get(column.name, MISSING)) for column in chosen] for record in rows],
            keys=[RowKey(request.object, record["id"], guard={"seq": record["seq"]}) for record in rows],
        )

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Page:
        """Measure the distance of each row to a vector, or to that of a row."""
        column, _ = similar_rows.vector_column(request, self._columns())
        if request.text is not None:
            raise UnsupportedOperationError("the server makes no vectors of texts", hint="give a vector")
        similar_rows.check_length(request, column.dimensions)
        revision = request.revision or str(self.server.revision)
        vector = request.vector
        if request.key is not None:
            places = {record["id"]: record["row"] for record in self._fetch(request.object, revision)}
            if request.key.text not in places:
                raise RowNotFoundError(f"{request.object} has no row {request.key.id!r}")
            vector = places[request.key.text].get(column.name)
        if vector is None:
            raise QueryError("the row has no vector")
        rows = [record for record in self._rows(request, revision) if record["row"].get(column.name) is not None]
        rows.sort(key=lambda record: dist(vector, record["row"][column.name]))
        rows = rows[: request.limit + (request.key is not None)]
        distances = [dist(vector, record["row"][column.name]) for record in rows]
        names = [column.name for column in self._columns()]
        page = replace(self._shown(request, rows), revision=revision)
        return similar_rows.nearest(request, page, distances, names)

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch one row and return one of its values, uncut."""
        then = f"?revision={request.revision}" if request.revision else ""
        status, row = self.server.send("GET", _path(request.key.object, request.key.text) + then)
        if status == 404:
            raise RowNotFoundError(f"{request.key.object} has no row {request.key.id!r}")
        if status == 410:
            raise RevisionGoneError(f"the server no longer has revision {request.revision}")
        value = {_KEY: row["id"], **row["row"]}.get(request.column, MISSING)
        return Json(encode(value)) if isinstance(value, list | dict) else value

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """Count the rows that the filter leaves."""
        return len(self._rows(request, request.revision))

    @hookimpl
    async def preview_read(self, request: PreviewRequest) -> list[HttpRequest]:
        """Name the one request that reads all rows, of which every read is made here."""
        revision = request.read.revision
        if (page := request.page) is not None:
            revision = revision or str(self.server.revision)
            if page.cursor is not None:
                revision, _ = cursors.unseal(page.cursor, cursors.query_of(page), tuple[str, int])
        return [
            HttpRequest(
                "GET", _path(request.read.object) + (f"?revision={quote(revision, safe='')}" if revision else "")
            )
        ]

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary:
        """Summarize the cells of the rows that the filter leaves; arrays are not summarized."""
        column = next((candidate for candidate in self._columns() if candidate.name == request.column), None)
        if column is None:
            reason = f"{request.object} has no column {request.column!r}"
            raise QueryError(reason, details={"column": request.column})
        if not column.operators:
            raise UnsupportedOperationError(f"{column.name!r} cannot be summarized: {WHOLE}", hint="choose another one")
        rows = self._rows(request, request.revision)
        return summarize_cells(request, column, [record["row"].get(column.name) for record in rows])

    # changes ----------------------------------------------------------------------------------------------------------

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Turn each change into one request, or into a refusal."""
        planned: list[PlannedRequest] = []
        refusals: list[Outcome] = []
        for number, change in enumerate(request.changes):
            request_or_reason = self._request(change)
            if isinstance(request_or_reason, HttpRequest):
                planned.append(PlannedRequest(request=request_or_reason, changes=[number]))
            else:
                refusals.append(Outcome(change=number, status=OutcomeStatus.REFUSED, reason=request_or_reason))
        return Plan(planned=planned, refusals=refusals)

    def _request(self, change: Change) -> HttpRequest | str:
        """Return the request of a change, or the reason against it."""
        if isinstance(change, Drop):
            exists = change.object in self.server.objects
            return HttpRequest("DELETE", _path(change.object)) if exists else f"there is no object {change.object!r}"
        if isinstance(change, Delete):
            path = _path(change.key.object, change.key.text)
            if change.key.guard:
                return HttpRequest("DELETE", path + _guard(change.key.guard))
            status, row = self.server.send("GET", path)
            return "the row is gone" if status == 404 else HttpRequest("DELETE", path + _guard(row))
        if isinstance(change, Insert):
            try:
                change = change.with_key(_KEY)
            except ValueError as error:
                return str(error)
        try:
            body = writable(change, self._columns())
        except NotSentError as error:
            return str(error)
        if isinstance(change, Insert):
            if change.id is None:
                return HttpRequest("POST", _path(change.object), encode(body))
            path = _path(change.object, text_id(change.id)) + ("" if change.replace else "?seq=0")
            return HttpRequest("PUT", path, encode(body))
        status, row = self.server.send("GET", path := _path(change.key.object, change.key.text))
        if status == 404:
            return "the row is gone"
        return HttpRequest("PUT", path + _guard(change.key.guard or row), encode({**row["row"], **body}))

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Send the planned requests and read their answers."""
        outcomes = []
        for planned in plan.planned:
            try:
                status, answer = self._send(planned.request)
            except ConnectionFailedError as error:
                status, answer = 0, {"error": error.message}
            name, row = planned.request.path.split("/")[1], answer.get("id")
            outcomes += [
                Outcome(
                    change=number,
                    status=_STATUSES.get(status, OutcomeStatus.UNKNOWN),
                    id=row,
                    reason=answer.get("error", ""),
                    key=RowKey(name, row, guard={"seq": answer["seq"]}) if "seq" in answer else None,
                )
                for number in planned.changes
            ]
        return outcomes

    def _send(self, request: HttpRequest) -> tuple[int, Any]:
        return self.server.send(request.method, request.path, request.body)

    # console ----------------------------------------------------------------------------------------------------------

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        """Read one request per line: a method, a path, JSON."""
        requests = []
        for number, line in enumerate(text.text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if (match := _LINE.fullmatch(line.rstrip())) is None:
                method_match = re.match(r"(GET|HEAD|POST|PUT|DELETE)\s+", line)
                where = {"line": number, "column": method_match.end() + 1 if method_match else 1}
                raise ConsoleSyntaxError(f"line {number} is not a request: {line!r}", details=where)
            request = HttpRequest(match["method"], match["path"], match["body"])
            writes = request.method not in ("GET", "HEAD")
            requests.append(ConsoleRequest(request=request, writes=writes, line=number))
        return requests

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        """Show a list as a table and anything else as JSON."""
        status, answer = self._send(request.request)
        if not isinstance(answer, list):
            return Answer(kind=AnswerKind.JSON, status=status, request=request.request, text=encode(answer))
        names = list(dict.fromkeys(name for record in answer for name in record))
        page = Page(
            columns=[Column(name=name, type="mixed") for name in names],
            cells=[[cell(record.get(name, MISSING)) for name in names] for record in answer],
        )
        return Answer(kind=AnswerKind.TABLE, status=status, request=request.request, page=page)

    @hookimpl
    async def complete_console(self, request: CompletionRequest) -> Completion:
        """Complete methods, and the names of objects after the first slash of a line."""
        if not 0 <= request.position <= len(request.text):
            raise QueryError(f"position {request.position} is not in the text")
        before = request.text[: request.position].rpartition("\n")[2]
        method, blank, path = before.partition(" ")
        if blank:
            names, kind, word = [f"/{name}" for name in self.server.objects], SuggestionKind.OBJECT, path
        else:
            names, kind, word = list(_METHODS), SuggestionKind.METHOD, method
        start = request.position - len(word)
        fitting = [name for name in names if name.startswith(word)]
        return Completion(
            suggestions=[
                Suggestion(text=name, kind=kind, start=start, end=request.position)
                for name in fitting[:MAX_SUGGESTIONS]
            ],
            more=len(fitting) > MAX_SUGGESTIONS,
        )

    # exports ----------------------------------------------------------------------------------------------------------

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Yield the rows in parts; a checkpoint holds the number of rows before it."""
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("this server has no bulk endpoint", hint="export rows or documents")
        query, first = cursors.query_of(request), 0
        if request.checkpoint is not None:
            wording = {
                "what": "checkpoint",
                "code": "export-not-resumable",
                "hint": "export again, without the checkpoint",
            }
            first = cursors.unseal(request.checkpoint, query, int, **wording)
        rows = self._rows(request, request.revision)
        if request.share is not None:
            wording = {"what": "share", "code": "export-not-resumable", "hint": "split the export again"}
            revision, number, of = cursors.unseal(request.share, query, tuple[str, int, int], **wording)
            if revision not in self.server.held:
                raise QueryError("the server no longer holds the snapshot", code="context-lost", hint="export again")
            rows = self._rows(request, revision)[number::of]
        for at in range(first, len(rows), self._part_rows):
            part = rows[at : at + self._part_rows]
            stored = [{name: value for name, value in record["row"].items() if name != _KEY} for record in part]
            lines = [
                {_KEY: record["id"], "row": row} if request.form is ExportForm.ROWS else row
                for record, row in zip(part, stored, strict=True)
            ]
            data = "".join(f"{encode(line)}\n" for line in lines).encode()
            checkpoint = cursors.seal(query, at + len(part)) if request.share is None else None
            yield ExportPart(data=data, rows=len(part), total=len(rows), checkpoint=checkpoint)

    @hookimpl
    async def split_export(self, request: SplitRequest) -> ExportSplit:
        """Hold the present revision, or the wanted one; each share has every so many rows of it."""
        export = request.export
        revision = export.revision or str(self.server.revision)
        rows = len(self._rows(export, revision))
        of, query = max(1, min(request.shares, rows)), cursors.query_of(export)
        self.server.held.add(revision)
        shares = [cursors.seal(query, [revision, number, of]) for number in range(of)]
        return ExportSplit(shares=shares, snapshot=revision, total=rows)

    @hookimpl
    async def hold_snapshot(self, request: SnapshotHold) -> bool:
        """Say whether the server holds the revision, and forget it if no time is wanted."""
        is_held = request.snapshot in self.server.held
        if not request.seconds:
            self.server.held.discard(request.snapshot)
        return is_held


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _guard(state: Mapping[str, Any]) -> str:
    return f"?seq={state['seq']}" if "seq" in state else ""
