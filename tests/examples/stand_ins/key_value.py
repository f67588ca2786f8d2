"""A key-value store like etcd v3: keys and values are bytes, rows are ranges of keys, and each write has a revision.

What such a store cannot do, the driver says: it sorts by nothing, filters by ranges of keys only, has no offset, and
makes no keys. It reads every revision that it still has.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from dragoman_api import (
    Cell,
    CellRequest,
    Column,
    ColumnKind,
    CompiledFilter,
    Delete,
    Description,
    Drop,
    Explanation,
    Filter,
    FilterRequest,
    Health,
    Http,
    HttpRequest,
    Insert,
    Object,
    ObjectList,
    ObjectsRequest,
    Operator,
    Outcome,
    OutcomeStatus,
    Page,
    PageRequest,
    Plan,
    PlanRequest,
    Profile,
    QueryError,
    Role,
    RowKey,
    Server,
    Written,
    hookimpl,
)
from dragoman_api.cells import as_bytes
from dragoman_api.errors import (
    DragomanError,
    ObjectNotFoundError,
    RevisionGoneError,
    RowNotFoundError,
    WindowExceededError,
)
from dragoman_api.kit import cursors, operands
from dragoman_api.kit.derived_hooks import CountFromPages, ExportFromPages
from dragoman_api.kit.exchanges import send_all
from dragoman_api.kit.filter_rows import compile_rows
from dragoman_api.kit.page_columns import UNKNOWN, choose, sortable
from dragoman_api.kit.row_changes import NotSentError, Outcomes, PlanDraft, fold, status_of, typed
from dragoman_api.kit.sign_in import SessionToken, SignedIn
from dragoman_api.kit.writing import stored_value

if TYPE_CHECKING:
    from dragoman_api import PlannedRequest, RawQuery
    from dragoman_api.changes import Change

NO_SORT = "the store returns keys in the order of their bytes only"
NO_FILTER = "the store finds rows by their keys only"
NO_ANY = "the store reads one range of keys, so filter rows on the key cannot be joined by any"
NO_KEY = "the store makes no keys: name one, as bytes, that begins with the name of the object"
KEPT = "the store keeps it"
LEASED = "a lease is granted on its own: write its number into the column lease"
BEGIN, END = b"", b"\xff" * 64
SIGN_IN = SessionToken(path="/v3/auth/authenticate", members=("name", "password"), prefix="")


def column(name: str, kind: ColumnKind, edit: str = "", **more: Any) -> Column:
    """Describe a column; with a reason against edits, the store keeps it."""
    reasons = {"sort": NO_SORT, **({"any": NO_ANY} if "operators" in more else {"filter": NO_FILTER})}
    kept = {"written": Written.NEVER} if edit else {}
    type = "bytes" if kind is ColumnKind.BINARY else "int64"  # noqa: A001 - the design's word
    return Column(
        name=name, type=type, kind=kind, **{**kept, **more}, reasons=reasons | ({"edit": edit} if edit else {})
    )


RANGES = (
    Operator.EQ, Operator.STARTS, Operator.GT, Operator.GE, Operator.LT, Operator.LE, Operator.BETWEEN
)  # fmt: skip
COLUMNS = {
    each.name: each
    for each in (
        column(
            "key", ColumnKind.BINARY, "it names the row",
            role=Role.KEY, written=Written.INSERT, operators=RANGES, path=("key",),
        ),
        column("value", ColumnKind.BINARY, path=("value",)),
        column("lease", ColumnKind.INTEGER, path=("lease",)),
        column("ttl", ColumnKind.INTEGER, LEASED, role=Role.EXPIRY),
        column("version", ColumnKind.INTEGER, KEPT, role=Role.VERSION, path=("version",)),
        column("create_revision", ColumnKind.INTEGER, KEPT, path=("create_revision",)),
        column("mod_revision", ColumnKind.INTEGER, KEPT, path=("mod_revision",)),
    )
}  # fmt: skip


def spelled(prefix: bytes) -> str:
    """Write a prefix as the name of an object."""
    return quote_from_bytes(prefix, safe="/:@,;=+!$&'()*~[]{}|^`<>?#\"")


def after(prefix: bytes) -> bytes:
    """Return the first key after all that begin with a prefix."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else END


def prefix_of(name: str) -> tuple[bytes, bytes]:
    """Return the range of an object's keys; raise ObjectNotFoundError if the name is not how `spelled` writes one."""
    prefix = unquote_to_bytes(name)
    if len(prefix) < 2 or not prefix.endswith(b"/") or spelled(prefix) != name:
        raise ObjectNotFoundError(f"{name!r} is not a prefix that ends with a slash")
    return prefix, after(prefix)


def range_of(row: Filter | RawQuery, *, alone: bool) -> tuple[bytes, bytes]:
    """Return the range of keys that a filter row leaves; raise ValueError with the reason why there is none."""
    if not isinstance(row, Filter) or row.column not in COLUMNS:
        raise ValueError(UNKNOWN)
    if row.op not in COLUMNS[row.column].operators:
        raise ValueError(COLUMNS[row.column].reasons.get("filter") or f"keys are not compared with {row.op}")
    if not alone:
        raise ValueError(NO_ANY)
    if row.op is Operator.BETWEEN:
        low, high = map(as_bytes, operands.bounds(row.value))
        return low, high + b"\0"
    key = as_bytes(row.value)
    match row.op:
        case Operator.EQ:
            return key, key + b"\0"
        case Operator.STARTS:
            return key, after(key)
        case Operator.GT | Operator.GE:
            return key + (b"\0" if row.op is Operator.GT else b""), END
    return BEGIN, key + (b"\0" if row.op is Operator.LE else b"")


def base64(data: bytes) -> str:
    """Encode bytes for JSON."""
    return b64encode(data).decode()


class Driver(CountFromPages, ExportFromPages):
    """A prefix up to its first slash is an object, and a key below it a row."""

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Ask which version answers."""
        self.http = SignedIn(http, SIGN_IN) if profile.options.get("auth_method") == "session" else http
        return Server("Keys", (await self._post("/v3/maintenance/status", {}))["version"])

    @hookimpl
    async def ping(self) -> Health:
        """Ask again."""
        try:
            await self._post("/v3/maintenance/status", {})
        except DragomanError as error:
            return Health(ok=False, reason=error.message, code=error.code)
        return Health(ok=True)

    @hookimpl
    async def close(self) -> None:
        """End the session."""
        if isinstance(self.http, SignedIn):
            await self.http.close()

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """Go from prefix to prefix, one request each."""
        objects: list[Object] = []
        begin = prefix_of(request.cursor)[1] if request.cursor else b"\0"
        while found := (await self._range(begin, END, limit=1))["kvs"]:
            key = b64decode(found[0]["key"])
            first, slash, _ = key.partition(b"/")
            begin = after(first + slash) if first and slash else key + b"\0"
            if first and slash and len(objects) == request.limit:
                return ObjectList(objects=objects, next=objects[-1].name)
            if first and slash:
                objects.append(Object(spelled(first + slash), kind="prefix"))
        return ObjectList(objects=objects)

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Return the same columns for every prefix."""
        if not (await self._range(*prefix_of(name), limit=1))["kvs"]:
            raise ObjectNotFoundError(f"there is no key below {name!r}")
        return Description(object=name, columns=[*COLUMNS.values()])

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Intersect the ranges of all filter rows."""
        alone = len(request.rows) == 1 or request.match == "all"
        ranges = compile_rows(request, lambda _, row: range_of(row, alone=alone), hint=lambda row: "")
        lows, highs = zip(prefix_of(request.object), *ranges, strict=True)
        return CompiledFilter(
            object=request.object,
            body=json.dumps([base64(max(lows)), base64(min(highs))]),
            rows=[Explanation(row=at, clause=f"[{low!r}, {high!r})") for at, (low, high) in enumerate(ranges)],
        )

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Read one range; the next page begins after its last key, at the same revision."""
        if request.offset and request.cursor is None:
            raise WindowExceededError("the store has no offset", hint="begin without an offset, and follow the cursor")
        shown = choose(request.columns, COLUMNS, object=request.object)
        body = request.filter and json.loads(request.filter.body)
        begin, end = map(b64decode, body) if body else prefix_of(request.object)
        query, revision = cursors.query_of(request), request.revision
        if request.cursor is not None:
            pinned, last = cursors.unseal(request.cursor, query, tuple[str, bytes])
            revision = cursors.revision_of(request, pinned)
            begin = max(begin, last + b"\0")
        found = await self._range(begin, end, limit=request.limit + 1, revision=revision)
        kvs, revision = found["kvs"][: request.limit], revision or found["header"]["revision"]
        more = len(found["kvs"]) > request.limit
        return Page(
            columns=shown,
            cells=await self._cells(kvs, [each.name for each in shown]),
            keys=[row_key(request.object, kv) for kv in kvs],
            notes=sortable(request.sort, COLUMNS.get, lambda column: column.reasons["sort"])[1],
            total=None if request.cursor else int(found.get("count", 0)),
            offset=request.offset,
            next=cursors.seal(query, [revision, kvs[-1]["key"]]) if more else None,
            revision=revision,
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Read one key."""
        key = key_bytes(request.key.id)
        if not (kvs := (await self._range(key, key + b"\0", revision=request.revision))["kvs"]):
            raise RowNotFoundError(f"there is no key {key!r}")
        return (await self._cells(kvs, [request.column]))[0][0]

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Make one transaction of all changes of a row, which compares the revision that was read."""
        draft = PlanDraft(request.changes)
        for folded in fold(draft, keyed=keyed):
            with draft.judging(*folded.numbers):
                path, body, statement = operation(await self._guarded(folded.change))
                draft.send(HttpRequest("POST", path, json.dumps(body)), *folded.numbers, statement=statement)
        return draft.plan()

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Send the transactions."""
        outcomes = Outcomes()
        for planned in plan.planned:
            with outcomes.sending(planned.changes):
                outcomes.tell(planned.changes, await self._apply(planned, plan.changes[planned.changes[0]]))
        return outcomes.of_plan(plan)

    async def _guarded(self, change: Change) -> Change:
        """Return a change with its guard; without one, the key must keep the revision that it has now."""
        if isinstance(change, Insert | Drop) or change.key.guard:
            return change
        key = key_bytes(change.key.id, change.key.object)
        kvs = (await self._range(key, key + b"\0"))["kvs"]
        if not kvs:
            raise NotSentError("there is no such key", status=OutcomeStatus.CONFLICT)
        guarded = msgspec.structs.replace(change.key, guard=row_key(change.key.object, kvs[0]).guard)
        return msgspec.structs.replace(change, key=guarded)

    async def _apply(self, planned: PlannedRequest, change: Change) -> Outcome:
        response = await self.http.request("POST", planned.request.path, body=planned.request.body)
        status, told = status_of(response.status), {}
        if status is not OutcomeStatus.APPLIED:
            return Outcome(change=0, status=status, reason=self.http.error(response).message)
        told = response.json()
        if isinstance(change, Drop):
            return Outcome(change=0, status=status)
        if not told.get("succeeded"):
            reason = "the key is there already, or changed since it was read"
            return Outcome(change=0, status=OutcomeStatus.CONFLICT, reason=reason)
        name = change.object if isinstance(change, Insert) else change.key.object
        [written] = json.loads(planned.request.body or "")["success"][0].values()
        key = RowKey(name, b64decode(written["key"]), guard={"mod_revision": int(told["header"]["revision"])})
        return Outcome(change=0, status=status, id=key.id, key=key)

    async def _cells(self, kvs: list[dict[str, str]], names: list[str]) -> list[list[Cell]]:
        leases = list({kv["lease"] for kv in kvs if "lease" in kv}) if "ttl" in names else []
        answers = await send_all(leases, lambda lease: self._post("/v3/lease/timetolive", {"ID": lease}))
        seconds = {lease: max(0, int(each.get("TTL", 0))) for lease, each in zip(leases, answers, strict=True)}
        return [[cell(kv, name, seconds) for name in names] for kv in kvs]

    async def _range(self, begin: bytes, end: bytes, *, limit: int = 0, revision: str = "") -> Any:
        if begin >= end:
            return {"header": {"revision": revision}, "kvs": []}
        asked = {"key": base64(begin), "range_end": base64(end), "limit": str(limit), "revision": revision or "0"}
        return {"kvs": [], **(await self._post("/v3/kv/range", asked))}

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        response = await self.http.request("POST", path, body=json.dumps(body), read=True)
        if response.status == 400 and b"has been compacted" in response.body:
            raise RevisionGoneError(f"the store no longer has revision {body['revision']}")
        return self.http.check(response).json()


def cell(kv: dict[str, str], name: str, seconds: dict[str, int]) -> Cell:
    """Return one cell; int64 are texts in the gateway's JSON, and zeros are left out."""
    if name in ("key", "value"):
        return b64decode(kv.get(name, ""))
    if name == "ttl":
        return seconds.get(kv.get("lease", ""))
    return int(kv[name]) if name in kv else None


def row_key(name: str, kv: dict[str, str]) -> RowKey:
    """Return where a key is; its revision guards it."""
    return RowKey(name, b64decode(kv["key"]), guard={"mod_revision": int(kv["mod_revision"])})


def key_bytes(id: object, begin: str = "") -> bytes:  # noqa: A002 - the contract's word
    """Return a key; raise QueryError unless it is bytes that begin with an object's prefix."""
    if not isinstance(id, bytes) or not id.startswith(prefix_of(begin)[0] if begin else b""):
        raise QueryError(NO_KEY)
    return id


def keyed(change: Insert) -> Insert:
    """Return an insert with its key as id."""
    values = {name: as_bytes(value) if name == "key" else value for name, value in change.values.items()}
    return msgspec.structs.replace(change, values=values).with_key("key")


def operation(change: Change) -> tuple[str, dict[str, Any], str]:
    """Return the path and the body of a change, and what it does."""
    if isinstance(change, Drop):
        begin, end = prefix_of(change.object)
        return "/v3/kv/deleterange", {"key": base64(begin), "range_end": base64(end)}, f"del --prefix {begin!r}"
    if isinstance(change, Insert):
        key = key_bytes(change.id, change.object)
        guard = [] if change.replace else [{"target": "CREATE", "key": base64(key), "createRevision": "0"}]
        put, shown = written({"value": b"", **change.values})
    else:
        key = key_bytes(change.key.id, change.key.object)
        revision = str(change.key.guard.get("mod_revision", ""))
        guard = [{"target": "MOD", "key": base64(key), "modRevision": revision}] if revision else []
        if isinstance(change, Delete):
            body = {"compare": guard, "success": [{"requestDeleteRange": {"key": base64(key)}}]}
            return "/v3/kv/txn", body, f"del {key!r}"
        put, shown = written(change.values)
        put |= {"ignoreValue": True} if "value" not in put else {}
        put |= {"ignoreLease": True} if "lease" not in put else {}
    body = {"compare": guard, "success": [{"requestPut": {"key": base64(key), **put}}]}
    return "/v3/kv/txn", body, f"put {key!r}{shown}"


def written(values: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the members of a put, and how a person reads them."""

    def convert(name: str, value: object) -> str:
        if name not in COLUMNS or COLUMNS[name].written is not Written.ALWAYS:
            raise NotSentError(f"{name}: {COLUMNS[name].reasons['edit'] if name in COLUMNS else UNKNOWN}")
        value = stored_value(COLUMNS[name], value)
        return base64(value or b"") if name == "value" else str(operands.integer(0 if value is None else value))

    put = typed(values, convert)
    value = f" {b64decode(put['value'])!r}" if "value" in put else ""
    return dict(put), value + (f" --lease={put['lease']}" if "lease" in put else "")
