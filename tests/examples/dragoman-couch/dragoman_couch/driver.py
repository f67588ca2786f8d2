"""The driver: each hook builds a request, sends it through `Http`, and maps the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from dragoman_api import (
    Cell,
    CellRequest,
    Column,
    ColumnKind,
    CompiledFilter,
    CountRequest,
    Delete,
    Description,
    Drop,
    FilterRequest,
    Http,
    HttpRequest,
    Insert,
    Note,
    Object,
    ObjectList,
    ObjectsRequest,
    Outcome,
    OutcomeStatus,
    Page,
    PageRequest,
    Plan,
    PlanRequest,
    Profile,
    Role,
    RowKey,
    Server,
    Written,
    hookimpl,
)
from dragoman_api.errors import ObjectNotFoundError, RowNotFoundError, ServerNotSupportedError
from dragoman_api.json_text import encode, exact_number
from dragoman_api.kit import cursors
from dragoman_api.kit.console_answers import RestConsole
from dragoman_api.kit.derived_hooks import PingByPath
from dragoman_api.kit.page_columns import cell_of, choose, kinds_of, sortable
from dragoman_api.kit.row_changes import NotSentError, Outcomes, PlanDraft, fold, status_of, typed
from dragoman_api.kit.writing import stored_value

from .filters import OPERATORS, compile_filter

if TYPE_CHECKING:
    from dragoman_api.changes import Change

SAMPLE = 200  # documents from which the columns of a database are learnt
BATCH = 1_000  # ids per request while counting
KEY, REVISION = "_id", "_rev"
READS = ("_find", "_explain", "_all_docs", "_dbs_info", "_bulk_get")  # what POST asks without changing anything
NO_SORT = "CouchDB sorts by an index only, and this driver makes none"

_decode = msgspec.json.Decoder(float_hook=exact_number).decode  # every digit stays


class Driver(RestConsole, PingByPath):
    """CouchDB over HTTP: a database is an object, a document a row, its revision what protects a change."""

    ping_path = "/_all_dbs?limit=1"  # needs the credentials

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
        await http.get_json(self.ping_path)
        return Server("CouchDB", told["version"])

    # objects

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List the databases a person made; those of the server begin with an underscore."""
        names = [name for name in await self.http.get_json("/_all_dbs") if not name.startswith("_")]
        infos = await self.http.post_json("/_dbs_info", {"keys": names}, read=True) if names else []
        return ObjectList(
            objects=[
                Object(each["key"], size=each["info"]["sizes"]["file"], kind="database")
                for each in infos
                if "info" in each
            ]
        )

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
        return compile_filter(request, self.columns[request.object])

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Fetch one page in the order of the ids."""
        cursors.refuse(request)
        known = self.columns[request.object]
        shown = choose(request.columns, known, object=request.object)
        selector = _decode(request.filter.body) if request.filter else {}
        found = await self._find(request.object, selector, skip=request.offset, limit=request.limit)
        return Page(
            columns=shown,
            cells=[[cell_of(document.get(column.name)) for column in shown] for document in found["docs"]],
            keys=[key_of(request.object, document) for document in found["docs"]],
            notes=sortable(request.sort, known.get, lambda column: NO_SORT)[1],
            offset=request.offset,
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Fetch one document and give one of its values, uncut."""
        response = await self.http.request("GET", path(request.key.object, request.key.id))
        if response.status == 404:
            raise RowNotFoundError(f"{request.key.object} has no document {request.key.id!r}")
        return cell_of(_decode(self.http.check(response).body).get(request.column))

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """Count exactly, by walking the ids: CouchDB has no count under a selector."""
        selector = _decode(request.filter.body) if request.filter else {}
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
        return await self.http.request("POST", where, body=encode(body), read=True)

    # changes

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Make one request of all changes of a document; it is written as a whole, so an update reads it first."""
        draft = PlanDraft(request.changes)
        for folded in fold(draft, keyed=lambda insert: insert.with_key(KEY)):
            with draft.judging(*folded.numbers):
                draft.send(await self._request(folded.change), *folded.numbers)
        return draft.plan()

    async def _request(self, change: Change) -> HttpRequest:
        """Return the request of a change, or raise the reason why there is none."""
        if isinstance(change, Drop):
            if change.object not in await self.http.get_json("/_all_dbs"):
                raise NotSentError(f"there is no database {change.object!r}")
            return HttpRequest("DELETE", path(change.object))
        if isinstance(change, Delete):
            guard = change.key.guard or (await self._stored(change.key))
            revision = quote(str(guard[REVISION]), safe="")
            return HttpRequest("DELETE", f"{path(change.key.object, change.key.id)}?rev={revision}")
        columns = self.columns.get(change.object if isinstance(change, Insert) else change.key.object, {})
        values = typed(change.values, lambda name, value: value_of(columns.get(name) or column(name), value))
        if isinstance(change, Insert):
            if change.document is not None:
                raise NotSentError("this driver takes a row as values, not as a document")
            if change.replace and REVISION not in change.guard:
                raise NotSentError("replacing a document needs its revision: update it instead")
            where = path(change.object, change.id) if change.id else path(change.object)
            return HttpRequest("PUT" if change.id else "POST", where, encode({**values, **change.guard}))
        where = path(change.key.object, change.key.id)
        document = {**(await self._stored(change.key)), **values, **change.key.guard}
        return HttpRequest("PUT", where, encode(document))

    async def _stored(self, key: RowKey) -> dict[str, Any]:
        """Read the document of a change; without a guard, its revision is the one that the change replaces."""
        response = await self.http.request("GET", path(key.object, key.id))
        if response.status == 404:
            raise NotSentError(f"{key.id} is gone")
        document: dict[str, Any] = _decode(self.http.check(response).body)
        return document

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Send what was planned; an error of one request is the outcome of its changes."""
        outcomes = Outcomes()
        for planned in plan.planned:
            with outcomes.sending(planned.changes):
                outcomes.tell(planned.changes, await self._apply(planned.request))
        return outcomes.told

    async def _apply(self, request: HttpRequest) -> Outcome:
        response = await self.http.request(request.method, request.path, body=request.body)
        status = status_of(response.status, conflicts=(409,))
        if status is OutcomeStatus.CONFLICT:
            reason = "it is there already, or changed since it was read"
            return Outcome(change=0, status=status, reason=reason)
        if status is not OutcomeStatus.APPLIED:
            return Outcome(change=0, status=status, reason=self.http.error(response).message)
        told = response.json()
        name, *row = request.path.removeprefix("/").split("/")
        if request.method == "DELETE" and not row and told["ok"]:
            return Outcome(change=0, status=status)  # a database is gone
        key = RowKey(name, told["id"], guard={REVISION: told["rev"]})
        return Outcome(change=0, status=status, id=told["id"], key=key)

    def console_writes(self, request: HttpRequest) -> bool:
        """Return whether a console request may change something: some posts only ask."""
        last = request.path.partition("?")[0].rpartition("/")[2]
        return super().console_writes(request) and not (request.method == "POST" and last in READS)


def path(*parts: str) -> str:
    """Write a path; ids may hold anything."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def value_of(column: Column, value: object) -> Any:
    """Return an edited value as it is stored; a column may be one that no document has yet."""
    if column.name.startswith("_"):
        raise ValueError("it is CouchDB's own and cannot be written")
    return stored_value(column, value)


def key_of(name: str, document: dict[str, Any]) -> RowKey:
    """Return where a document is; its revision guards it against being overwritten."""
    return RowKey(name, document[KEY], guard={REVISION: document[REVISION]})


def columns_of(documents: list[dict[str, Any]]) -> dict[str, Column]:
    """Name every column of some documents, the id first; the revision is the key's guard and no column."""
    kinds = {KEY: ColumnKind.TEXT, **kinds_of(documents)}
    return {name: column(name, kind) for name, kind in kinds.items() if name != REVISION}


def column(name: str, kind: ColumnKind = ColumnKind.OTHER) -> Column:
    """Describe a column by the kind of its values."""
    reasons = {"sort": NO_SORT}
    written = Written.INSERT if name == KEY else Written.NEVER if name.startswith("_") else Written.ALWAYS
    if written is not Written.ALWAYS:
        reasons["edit"] = "the _id of a document cannot be changed" if name == KEY else "the server keeps it"
    if kind not in OPERATORS:
        reasons["filter"] = "arrays, objects and columns of several types are not compared; use a raw selector"
    return Column(
        name=name,
        type=kind if kind is not ColumnKind.OTHER else "mixed",
        kind=kind,
        role=Role.KEY if name == KEY else Role.NONE,
        written=written,
        operators=OPERATORS.get(kind, ()),
        reasons=reasons,
    )
