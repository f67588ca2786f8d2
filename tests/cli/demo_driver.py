"""A driver that keeps its rows in memory, packed into a wheel by the tests of the command line."""

from __future__ import annotations

import json
from urllib.parse import quote

import anyio

from dragoman_api import hookimpl
from dragoman_api.cells import MISSING, CutJson, Json
from dragoman_api.changes import Delete, Drop, HttpRequest, Insert, Outcome, OutcomeStatus, Plan, PlannedRequest, Update
from dragoman_api.columns import (
    Column,
    ColumnKind,
    Condition,
    ConditionLevel,
    Description,
    Note,
    Object,
    ObjectList,
    Operator,
    Role,
    Written,
)
from dragoman_api.connections import Health, Server, ServerNode, ServerStatus
from dragoman_api.console import Answer, AnswerKind, Completion, ConsoleRequest, Suggestion, SuggestionKind
from dragoman_api.errors import (
    AuthenticationError,
    ConnectionFailedError,
    ConsoleSyntaxError,
    FilterNotSupportedError,
    ObjectNotFoundError,
    QueryError,
    RowNotFoundError,
)
from dragoman_api.exports import ExportPart
from dragoman_api.filters import CompiledFilter, Explanation, RawQuery
from dragoman_api.grid import Page, RowKey
from dragoman_api.kit.page_columns import sortable


def route(*segments):
    return "".join(f"/{quote(str(segment), safe=chr(44))}" for segment in segments)


ROWS = [
    {"id": "1", "title": "Oolong", "price": 12.5, "tags": ["a", None]},
    {"id": "2", "title": "evil \x1b[31m\u202ered\x1b]0;owned\x07\nnext", "price": 2**70, "tags": []},
    {"id": "3", "title": None, "price": 3, "tags": [{"deep": [1, 2]}]},
]
COLUMNS = [
    Column(
        name="id",
        path=("id",),
        type="keyword",
        kind=ColumnKind.TEXT,
        role=Role.KEY,
        written=Written.NEVER,
        reasons={"edit": "the server makes it"},
    ),
    Column(
        name="title",
        path=("title",),
        type="text",
        kind=ColumnKind.TEXT,
        operators=(Operator.EQ,),
        reasons={"sort": "text", "any": "it is analysed"},
    ),
    Column(
        name="price",
        path=("price",),
        type="double",
        kind=ColumnKind.FLOAT,
        sortable=True,
        operators=(Operator.EQ, Operator.GE),
    ),
    Column(name="tags", path=("tags",), type="nested", kind=ColumnKind.JSON),
]


HOSTILE = ["tra\x1b]0;owned\x07", "tra\u202egnp", "trb;touch owned", "trb$(touch owned)", "tr*", "tr'b`x`", "tr\nb"]
"""Names that a server may give to objects, to the harm of a terminal or a shell."""


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        if profile.options.get("auth_method") == "api-key" and profile.secrets.get("api_key") != "open sesame":
            raise AuthenticationError(
                "the API key was rejected", hint="dragoman connections edit NAME --api-key env:KEY"
            )
        if profile.port == 1:
            raise ConnectionFailedError("nothing listens at localhost:1")
        self._strange = profile.port == 3
        self._states = (
            [Condition("green", ConditionLevel.GOOD), Condition("closed")] if profile.port == 4 else [None, None]
        )
        return Server("Demo\x1b[0m", "4.2", ["this server \x1b]0;x\x07is a test"] if profile.port == 2 else [])

    @hookimpl
    async def ping(self):
        return Health(ok=True)

    @hookimpl
    async def read_status(self):
        if self._states[0] is None:
            return ServerStatus(notes=[Note(code="nodes-hidden", reason="the credentials may not list the nodes")])
        full = ServerNode(
            name="n1", state=Condition("up", ConditionLevel.GOOD), roles="data", memory=1_000, memory_limit=4_000
        )
        return ServerStatus(
            state=Condition("limping", ConditionLevel.WARNING),
            nodes=[full, ServerNode(name="n2", state=Condition("lost", ConditionLevel.BAD), roles="data")],
        )

    @hookimpl
    async def list_objects(self, request):
        strange = [Object("trap", rows=1, size=1), *map(Object, HOSTILE)] if self._strange else []
        return ObjectList(
            objects=[
                Object("books", rows=3, size=210_400, state=self._states[0]),
                Object("orders", rows=12_003, size=5_100_000, state=self._states[1]),
                *strange,
            ]
        )

    @hookimpl
    async def describe_object(self, name):
        if name not in ("books", "orders", "ledger", "tape", "trap"):
            raise ObjectNotFoundError(f"there is no object {name!r}")
        return Description(object=name, columns=COLUMNS, structure='{"mappings":\n{}}')

    @hookimpl
    async def compile_filter(self, request):
        told = []
        for at, row in enumerate(request.rows):
            if isinstance(row, RawQuery):
                told.append(Explanation(row=at, clause=f"query_string {row.text}"))
                continue
            column = next((one for one in COLUMNS if one.name == row.column), None)
            if column is None or row.op not in column.operators:
                details = {"column": row.column, "operator": row.op, "reason": "it cannot"}
                raise FilterNotSupportedError(f"{row.column!r} has no {row.op}; nothing was sent", details=details)
            approximations = ["ignores case"] if row.column == "title" else []
            unlikely = ["rounds; none in 3 rows"] if (row.column, row.op) == ("price", "=") else []
            told.append(
                Explanation(
                    row=at,
                    clause=f"term {row.column}",
                    exact=not (approximations or unlikely),
                    approximations=approximations,
                    unlikely=unlikely,
                )
            )
        body = json.dumps([[row.column, row.op, row.value] for row in request.rows if not isinstance(row, RawQuery)])
        return CompiledFilter(object=request.object, body=body, rows=told)

    def _matching(self, compiled):
        def holds(row, column, op, value):
            cell = row[column]
            return str(cell) == value if op == "=" else cell is not None and cell >= float(value)

        wanted = json.loads(compiled.body) if compiled else []
        if compiled and any("nothing" in told.clause for told in compiled.rows):
            return []
        return [row for row in ROWS if all(holds(row, *one) for one in wanted)]

    @hookimpl
    async def fetch_page(self, request):
        names = request.columns or [column.name for column in COLUMNS]
        if unknown := [name for name in names if name not in [column.name for column in COLUMNS]]:
            raise QueryError(f"there is no column {unknown[0]!r}", details={"column": unknown[0]})
        rows = self._matching(request.filter)
        known = {column.name: column for column in COLUMNS}
        _, notes = sortable(request.sort, known.get, lambda column: "a text field" if column.name == "title" else "")
        for key in request.sort:
            if key.column == "price":
                rows = sorted(rows, key=lambda row: row["price"], reverse=key.descending)
        if request.filter and not rows:
            notes.append(Note(code="raw-query-void", reason="unmapped fields [nothing]"))
        shown = rows[request.offset : request.offset + request.limit]
        cut = request.object == "orders"
        return Page(
            columns=[column for column in COLUMNS if column.name in names],
            cells=[[_kept(_cell(row[name], cut=cut), request.object) for name in names] for row in shown],
            keys=[RowKey("books", row["id"], guard={"seq_no": 41}) for row in shown],
            notes=notes,
            total=len(rows) if request.total else None,
            offset=request.offset,
        )

    @hookimpl
    async def fetch_cell(self, request):
        for row in ROWS:
            if row["id"] == request.key.id:
                return _kept(_cell(row[request.column]), request.key.object)
        raise RowNotFoundError(f"there is no row {request.key.id!r}")

    @hookimpl
    async def count_rows(self, request):
        return len(self._matching(request.filter))

    @hookimpl
    async def plan_change(self, request):
        planned, refusals = [], []
        for at, change in enumerate(request.changes):
            match change:
                case Insert():
                    sent = HttpRequest("PUT", route(change.object, "_doc", change.id), _body(change.values))
                case Update() if "id" in change.values:
                    reason = "id is read-only"
                    refusals.append(Outcome(change=at, status=OutcomeStatus.SKIPPED, id=change.key.id, reason=reason))
                    continue
                case Update(key=key):
                    query = "".join(f"&if_{name}={value}" for name, value in key.guard.items())
                    sent = HttpRequest(
                        "POST", route(key.object, "_update", key.id) + f"?refresh{query}", _body(change.values)
                    )
                case Delete(key=key):
                    sent = HttpRequest("DELETE", route(key.object, "_doc", key.id))
                case Drop():
                    sent = HttpRequest("DELETE", route(change.object))
            said = "DELETE FROM spoken\x07" if sent.path.endswith("/spoken") else ""
            planned.append(PlannedRequest(request=sent, changes=[at], statement=said))
        return Plan(planned=planned, refusals=refusals)

    @hookimpl
    async def apply_change(self, plan):
        outcomes = []
        for planned in plan.planned:
            row = planned.request.path.split("/")[-1].split("?")[0]
            status, reason = OutcomeStatus.APPLIED, ""
            if "if_seq_no=40" in planned.request.path:
                status, reason = OutcomeStatus.CONFLICT, "changed since it was read (seq_no 40 → 41)"
            if row == "lost":
                status, reason = OutcomeStatus.UNKNOWN, "the connection ended before the answer"
            outcomes.append(Outcome(change=planned.changes[0], status=status, id=row, reason=reason))
        return outcomes

    @hookimpl
    async def preview_read(self, request):
        what = "_search" if request.page else "_count"
        return [HttpRequest("POST", route(request.read.object, what), '{"q":"it\'s"}')]

    @hookimpl
    async def parse_console(self, text):
        requests = []
        for number, line in enumerate(text.text.splitlines(), 1):
            line = line.partition("#")[0].strip()
            if not line:
                continue
            if line[0] in '{}"' and requests:  # it goes on
                last = requests[-1]
                body = f"{last.request.body or ''}{line}"
                sent = HttpRequest(last.request.method, last.request.path, body)
                requests[-1] = ConsoleRequest(request=sent, writes=last.writes, line=last.line)
                continue
            line, brace, body = line.partition(" {")
            method, _, path = line.partition(" ")
            if not path.startswith("/"):
                raise ConsoleSyntaxError(
                    f"line {number}: {line!r} is no request", details={"line": number, "column": 1}
                )
            sent = HttpRequest(method, path, f"{{{body}" if brace else None)
            requests.append(ConsoleRequest(request=sent, writes=method != "GET", line=number))
        return requests

    @hookimpl
    async def complete_console(self, request):
        start = request.text.rfind("/", 0, request.position) + 1
        names = ["books", "trap", *HOSTILE]
        typed = request.text[start : request.position]
        return Completion(
            suggestions=[
                Suggestion(text=name, kind=SuggestionKind.OBJECT, start=start, end=request.position)
                for name in names
                if name.startswith(typed)
            ]
        )

    @hookimpl
    async def execute_console(self, request):
        path = request.request.path
        if path == "/table":
            page = Page(columns=COLUMNS[:2], cells=[["1", "a,b"], ["2", None]])
            return Answer(kind=AnswerKind.TABLE, status=200, request=request.request, page=page)
        if path == "/buckets" and request.tabular:
            pages = [Page(columns=COLUMNS[:2], cells=[["a\tb", 2]]), Page(columns=COLUMNS[:1], cells=[["c"]])]
            last = Answer(kind=AnswerKind.TABLE, status=200, request=request.request, page=pages[1], title="by id")
            return Answer(
                kind=AnswerKind.TABLE, status=200, request=request.request, page=pages[0], text='{"buckets":2}',
                title="by title", next=last,
            )  # fmt: skip
        if path == "/missing":
            text = '{"error":"no such thing"}'
            return Answer(kind=AnswerKind.JSON, status=404, request=request.request, text=text)
        if path == "/hang":
            await anyio.sleep(30)
        if path == "/lost":
            raise ConnectionFailedError("it went away")
        if path == "/text":
            return Answer(kind=AnswerKind.TEXT, status=200, request=request.request, text="plain \x1b[31mred\n")
        if path == "/several":
            pages = [Page(columns=COLUMNS[:1], cells=[["1"]]), Page(columns=COLUMNS[:1], cells=[["2"], ["3"]])]
            last = Answer(kind=AnswerKind.GRID, status=200, request=request.request, page=pages[1], title="second")
            return Answer(
                kind=AnswerKind.GRID, status=200, request=request.request, page=pages[0], text='{"all":[1,2]}',
                title="first", failed="1 of 2 failed", next=last,
            )  # fmt: skip
        text = '{"n":1.10000000000000000001,"path":"' + path + '"}'
        notes = [Note(code="partial", reason="one shard failed")] if path == "/partial" else []
        return Answer(kind=AnswerKind.JSON, status=200, request=request.request, text=text, notes=notes)

    @hookimpl
    async def export_rows(self, request):
        if request.object in ("ledger", "tape"):  # a long one: the ledger breaks once in its middle, the tape is slow
            for at in range(int(request.checkpoint or 0), 100):
                if request.object == "ledger" and at == 60 and request.checkpoint is None:
                    raise QueryError("a shard failed")
                if request.object == "tape" and request.checkpoint is None:
                    await anyio.sleep(0.03)
                data = json.dumps({"id": str(at), "title": "x" * 5_000}).encode() + b"\n"
                yield ExportPart(data=data, rows=1, total=100, checkpoint=str(at + 1))
            return
        for at, row in enumerate(self._matching(request.filter)):
            if request.object == "orders" and at:
                raise QueryError("a shard failed")
            yield ExportPart(data=json.dumps(row).encode() + b"\n", rows=1, total=len(ROWS))


def _kept(cell, name):
    """The ledger stores no nulls."""
    return MISSING if cell is None and name == "ledger" else cell


def _cell(value, *, cut=False):
    if isinstance(value, list):
        text = json.dumps(value, separators=(",", ":"))
        return CutJson(text[:4] + "...") if cut and len(text) > 4 else Json(text)
    return value


def _body(values):
    def plain(value):
        return json.loads(value) if isinstance(value, Json) else value

    return json.dumps({name: plain(value) for name, value in values.items()}, default=str)
