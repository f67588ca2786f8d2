"""The driver: each hook builds a request, sends it through `Http`, and maps the answer."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import msgspec

from dragoman_api import (
    Answer,
    AnswerKind,
    Cell,
    CellRequest,
    Column,
    ColumnKind,
    CompiledFilter,
    ConsoleRequest,
    ConsoleText,
    CountRequest,
    Delete,
    Description,
    DragomanError,
    Drop,
    FilterRequest,
    Health,
    Http,
    HttpRequest,
    Insert,
    Json,
    Note,
    Object,
    Outcome,
    OutcomeStatus,
    Page,
    PageRequest,
    Plan,
    PlannedRequest,
    PlanRequest,
    Profile,
    QueryError,
    RowKey,
    Server,
    hookimpl,
)
from dragoman_api.cells import cut, exact_number
from dragoman_api.errors import ObjectNotFoundError, RowNotFoundError, ServerNotSupportedError

from .console import parse
from .filters import OPERATORS, compile_rows

SAMPLE = 200  # documents from which the columns of a database are learnt
BATCH = 1_000  # ids per request while counting
KEY, REVISION = "_id", "_rev"
KINDS = {str: ColumnKind.TEXT, bool: ColumnKind.BOOLEAN, int: ColumnKind.NUMBER, float: ColumnKind.NUMBER}
NO_SORT = "CouchDB sorts by an index only, and this driver makes none"

# Every digit stays, in both directions.
_decode = msgspec.json.Decoder(float_hook=exact_number).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Driver:
    """CouchDB over HTTP: a database is an object, a document a row, its revision what protects a change."""

    def __init__(self) -> None:
        self.columns: dict[str, dict[str, Column]] = {}

    # connection

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Look who answers."""
        self.http = http
        told = await http.get_json("/")
        if "couchdb" not in told:
            raise ServerNotSupportedError("the server that answered is no CouchDB", hint="check Host and Port")
        await self.ping_or_raise()
        return Server("CouchDB", told["version"])

    async def ping_or_raise(self) -> None:
        """Ask something that needs the credentials."""
        await self.http.get_json("/_all_dbs?limit=1")

    @hookimpl
    async def ping(self) -> Health:
        """Look whether the connection still works; a failure is a value."""
        try:
            await self.ping_or_raise()
        except DragomanError as error:
            return Health(ok=False, reason=error.message, code=error.code)
        return Health(ok=True)

    # objects

    @hookimpl
    async def list_objects(self) -> list[Object]:
        """List the databases a person made; those of the server begin with an underscore."""
        names = [name for name in await self.http.get_json("/_all_dbs") if not name.startswith("_")]
        infos = await self.http.post_json("/_dbs_info", {"keys": names}, read=True) if names else []
        return [
            Object(each["key"], size=each["info"]["sizes"]["file"], kind="database") for each in infos if "info" in each
        ]

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Learn the columns from the first documents: CouchDB has no schema."""
        found = await self._find(name, {}, limit=SAMPLE)
        self.columns[name] = columns_of(found["docs"])
        note = Note(code="sampled", reason=f"columns are those of the first {SAMPLE} documents")
        return Description(object=name, columns=[*self.columns[name].values()], notes=[note])

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Make a selector of the rows."""
        return compile_rows(request, self.columns[request.object])

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Fetch one page in the order of the ids."""
        known = self.columns[request.object]
        if unknown := set(request.columns or ()) - set(known):
            raise QueryError(f"{request.object} has no column {min(unknown)!r}")
        shown = [known[name] for name in request.columns or known]
        selector = json.loads(request.filter.body) if request.filter else {}
        found = await self._find(request.object, selector, skip=request.offset, limit=request.limit)
        return Page(
            columns=shown,
            cells=[[cell(document.get(column.name)) for column in shown] for document in found["docs"]],
            keys=[key_of(request.object, document) for document in found["docs"]],
            notes=[Note(code="sort-dropped", column=sort.column, reason=NO_SORT) for sort in request.sort],
            offset=request.offset,
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch one document and give one of its values, uncut."""
        response = await self.http.request("GET", path(request.key.object, request.key.id))
        if response.status == 404:
            raise RowNotFoundError(f"{request.key.object} has no document {request.key.id!r}")
        value = _decode(self.http.check(response).body).get(request.column)
        return Json(text_of(value)) if isinstance(value, list | dict) else value

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """Count exactly, by walking the ids: CouchDB has no count under a selector."""
        selector = json.loads(request.filter.body) if request.filter else {}
        count, bookmark = 0, None
        while True:
            more = {"bookmark": bookmark} if bookmark else {}
            found = await self._find(request.object, selector, limit=BATCH, fields=[KEY], **more)
            count, bookmark = count + len(found["docs"]), found["bookmark"]
            if len(found["docs"]) < BATCH:
                return count

    async def _find(self, name: str, selector: dict[str, Any], **more: Any) -> Any:
        response = await self._post(path(name, "_find"), {"selector": selector, **more})
        if response.status == 404:
            raise ObjectNotFoundError(f"there is no database {name!r}")
        return _decode(self.http.check(response).body)

    async def _post(self, where: str, body: dict[str, Any]) -> Any:
        return await self.http.request("POST", where, body=json.dumps(body), read=True)

    # changes

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Make one request of each change; a document is written as a whole, so an update reads it first."""
        planned, refusals = [], []
        for number, change in enumerate(request.changes):
            made = await self._request(change)
            if isinstance(made, HttpRequest):
                planned.append(PlannedRequest(request=made, changes=[number]))
            else:
                refusals.append(Outcome(change=number, status=OutcomeStatus.REFUSED, reason=made))
        return Plan(planned=planned, refusals=refusals)

    async def _request(self, change: Any) -> HttpRequest | str:
        """Return the request of a change, or the reason why there is none."""
        if isinstance(change, Drop):
            known = change.object in await self.http.get_json("/_all_dbs")
            return HttpRequest("DELETE", path(change.object)) if known else f"there is no database {change.object!r}"
        if isinstance(change, Delete):
            revision = quote(str(change.key.guard[REVISION]), safe="")
            return HttpRequest("DELETE", f"{path(change.key.object, change.key.id)}?rev={revision}")
        if fixed := [name for name in change.values if name.startswith("_")]:
            return f"{fixed[0]} is CouchDB's own and cannot be written"
        values = {name: _decode(value) if isinstance(value, Json) else value for name, value in change.values.items()}
        if isinstance(change, Insert):
            if change.replace:
                return "replacing a document needs its revision: update it instead"
            where = path(change.object, change.id) if change.id else path(change.object)
            return HttpRequest("PUT" if change.id else "POST", where, text_of(values))
        where = path(change.key.object, change.key.id)
        response = await self.http.request("GET", where)
        if response.status == 404:
            return f"{change.key.id} is gone"
        document = {**_decode(self.http.check(response).body), **values, **change.key.guard}
        return HttpRequest("PUT", where, text_of(document))

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Send what was planned."""
        return [await self._apply(planned) for planned in plan.planned]

    async def _apply(self, planned: PlannedRequest) -> Outcome:
        request, number = planned.request, planned.changes[0]
        response = await self.http.request(request.method, request.path, body=request.body)
        if response.status == 409:
            reason = "it is there already, or changed since it was read"
            return Outcome(change=number, status=OutcomeStatus.CONFLICT, reason=reason)
        if not 200 <= response.status < 300:
            status = OutcomeStatus.UNKNOWN if response.status >= 500 else OutcomeStatus.FAILED
            return Outcome(change=number, status=status, reason=self.http.error(response).message)
        told = response.json()
        if "id" not in told:
            return Outcome(change=number, status=OutcomeStatus.APPLIED)  # a database is gone
        name = request.path.split("/")[1]
        key = RowKey(name, told["id"], guard={REVISION: told["rev"]})
        return Outcome(change=number, status=OutcomeStatus.APPLIED, id=told["id"], key=key)

    # console

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        """Split a text into requests."""
        return parse(text.text)

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        """Send one request as it stands; an error status is an answer too."""
        sent = request.request
        response = await self.http.request(sent.method, sent.path, body=sent.body, read=not request.writes)
        kind = AnswerKind.JSON if "json" in response.headers.get("Content-Type", "") else AnswerKind.TEXT
        return Answer(kind=kind, status=response.status, request=sent, text=response.text)


def path(*parts: str) -> str:
    """Write a path; ids may hold anything."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def key_of(name: str, document: dict[str, Any]) -> RowKey:
    """Return where a document is; its revision guards it against being overwritten."""
    return RowKey(name, document[KEY], guard={REVISION: document[REVISION]})


def columns_of(documents: list[dict[str, Any]]) -> dict[str, Column]:
    """Name every column of some documents, the id first; the revision is the key's guard and no column."""
    kinds: dict[str, set[ColumnKind]] = {KEY: {ColumnKind.TEXT}}
    for document in documents:
        for name, value in document.items():
            if name == REVISION:
                continue
            found = kinds.setdefault(name, set())
            if value is not None:
                found.add(
                    KINDS.get(type(value), ColumnKind.JSON if isinstance(value, list | dict) else ColumnKind.NUMBER)
                )
    return {name: column(name, found) for name, found in kinds.items()}


def column(name: str, kinds: set[ColumnKind]) -> Column:
    """Describe a column by the kinds of its values."""
    kind = kinds.pop() if len(kinds) == 1 else ColumnKind.OTHER
    reasons = {"sort": NO_SORT}
    if kind not in OPERATORS:
        reasons["filter"] = "arrays, objects and columns of several types are not compared; use a raw selector"
    return Column(
        name=name,
        type=kind if kind is not ColumnKind.OTHER else "mixed",
        kind=kind,
        key=name == KEY,
        read_only=name.startswith("_"),
        operators=OPERATORS.get(kind, ()),
        reasons=reasons,
    )


def cell(value: Any) -> Cell:
    """Return a value as a cell: an array or an object is its JSON text, cut where it is long."""
    return cut(text_of(value)) if isinstance(value, list | dict) else value


def text_of(value: Any) -> str:
    """Write JSON; numbers keep their digits."""
    return _encode(value).decode()
