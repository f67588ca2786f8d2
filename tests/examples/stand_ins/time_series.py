"""A time series like InfluxDB 1.x: a point is its time and its tags, and is written once.

What such a database cannot do, the driver says: it updates nothing, sorts by time only, joins no times by any, counts
no rows, and merges a point into one that exists, so the driver looks first.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from msgspec.structs import replace

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
    ExportPart,
    ExportRequest,
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
    PlannedRequest,
    PlanRequest,
    Profile,
    QueryError,
    Role,
    RowKey,
    Server,
    TimeColumn,
    TimeRange,
    UnsupportedOperationError,
    Written,
    hookimpl,
)
from dragoman_api.errors import DragomanError, ObjectNotFoundError, RowNotFoundError, ServerNotSupportedError
from dragoman_api.exports import ExportForm
from dragoman_api.json_text import encode
from dragoman_api.kit import cursors, operands
from dragoman_api.kit.derived_hooks import CountFromExport
from dragoman_api.kit.filter_rows import compile_rows
from dragoman_api.kit.page_columns import UNKNOWN, choose, sortable
from dragoman_api.kit.row_changes import NotSentError, PlanDraft, fold, status_of, typed
from dragoman_api.kit.writing import send_after_a_look, stored_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api import RawQuery, RowId
    from dragoman_api.changes import Change

FORM, LINES = "application/x-www-form-urlencoded", "text/plain; charset=utf-8"
KINDS = {
    "integer": ColumnKind.INTEGER,
    "float": ColumnKind.FLOAT,
    "boolean": ColumnKind.BOOLEAN,
    "string": ColumnKind.TEXT,
}
READERS = {
    ColumnKind.INTEGER: operands.decimal,
    ColumnKind.FLOAT: operands.decimal,
    ColumnKind.BOOLEAN: operands.boolean,
    ColumnKind.TEXT: operands.text,
    ColumnKind.TIMESTAMP: operands.timestamp,
}
EQUAL, ORDERED = (Operator.EQ, Operator.NE), (Operator.GT, Operator.GE, Operator.LT, Operator.LE)
OPERATORS = {
    ColumnKind.INTEGER: (*EQUAL, *ORDERED),
    ColumnKind.FLOAT: (*EQUAL, *ORDERED),
    ColumnKind.BOOLEAN: EQUAL,
    ColumnKind.TEXT: EQUAL,
}
NO_SORT = "points are in the order of their time only"
NO_ANY = "the server finds nothing where times are joined by or"
NO_UPDATE = "a point is written once: delete it, and insert another one"
TIME = Column(
    name="time", type="timestamp", kind=ColumnKind.TIMESTAMP, role=Role.KEY, written=Written.INSERT, sortable=True,
    operators=(Operator.EQ, *ORDERED, Operator.BETWEEN), path=("time",), reasons={"any": NO_ANY, "edit": NO_UPDATE},
)  # fmt: skip
WINDOW = 86_400  # seconds


class Driver(CountFromExport):
    """A database is a branch, a measurement in it an object, and a point a row."""

    def __init__(self) -> None:
        self.columns: dict[str, dict[str, Column]] = {}

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Ask which version answers."""
        self.http = http
        response = http.check(await http.request("GET", "/ping"))
        if (version := response.headers.get("X-Influxdb-Version")) is None:
            raise ServerNotSupportedError("no time series database answered", hint="check Host and Port")
        return Server("Series", version)

    @hookimpl
    async def ping(self) -> Health:
        """Ask for something that needs the credentials."""
        try:
            await self._read("", "SHOW DATABASES")
        except DragomanError as error:
            return Health(ok=False, reason=error.message, code=error.code)
        return Health(ok=True)

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List the databases, or the measurements of one."""
        if (parent := request.parent) is None:
            rows = await self._read("", "SHOW DATABASES")
            return ObjectList(objects=[Object(name_of(row["name"]), kind="database", branch=True) for row in rows])
        rows = await self._read(unquote(parent), "SHOW MEASUREMENTS")
        names = [name_of(unquote(parent), row["name"]) for row in rows]
        return ObjectList(objects=[Object(name, kind="measurement", parent=parent) for name in names])

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        """Return time, tags and fields."""
        database, measurement = parts_of(name)
        tags = await self._read(database, f"SHOW TAG KEYS FROM {identifier(measurement)}")
        fields = await self._read(database, f"SHOW FIELD KEYS FROM {identifier(measurement)}")
        if not fields:
            raise ObjectNotFoundError(f"there is no measurement {name!r}")
        columns = [TIME, *(tag_column(row["tagKey"]) for row in tags)]
        columns += [field_column(row["fieldKey"], row["fieldType"]) for row in fields]
        self.columns[name] = {column.name: column for column in columns}
        return Description(object=name, columns=columns, time=TimeColumn(column="time", window=WINDOW))

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Write a condition for each filter row."""
        columns, alone = self.columns[request.object], len(request.rows) == 1 or request.match == "all"
        clauses = compile_rows(
            request, lambda _, row: clause_of(row, columns, alone=alone), hint=lambda row: "describe the object"
        )
        joined = (" AND " if request.match == "all" else " OR ").join(f"({clause})" for clause in clauses)
        explained = [Explanation(row=number, clause=clause) for number, clause in enumerate(clauses)]
        return CompiledFilter(object=request.object, body=joined, rows=explained)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Select all columns: without a field among them, the server would answer nothing."""
        cursors.refuse(request)
        known = self.columns[request.object]
        shown = choose(request.columns, known, object=request.object)
        kept, notes = sortable(request.sort, known.get, lambda column: "" if column.sortable else NO_SORT)
        order = "DESC" if kept and kept[0][0].descending else "ASC"
        rows = await self._read(
            parts_of(request.object)[0],
            f"{select(request)} ORDER BY time {order} LIMIT {request.limit} OFFSET {request.offset}",
        )
        rows = [self._row(request.object, row) for row in rows]
        return Page(
            columns=shown,
            cells=[[row.get(column.name) for column in shown] for row in rows],
            keys=[RowKey(request.object, [row[name] for name in self._keys(request.object)]) for row in rows],
            notes=notes,
            offset=request.offset,
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Read one point."""
        if not (rows := await self._points(request.key)):
            raise RowNotFoundError(f"there is no point {request.key.id!r}")
        cell: Cell = self._row(request.key.object, rows[0]).get(request.column)
        return cell

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Read one answer chunk by chunk: it may be longer than memory."""
        if request.form is ExportForm.BULK or request.checkpoint is not None:
            raise UnsupportedOperationError("points are exported as rows, from the first to the last")
        async with aclosing(self._chunks(parts_of(request.object)[0], select(request))) as chunks:
            async for rows in chunks:
                lines = [encode(self._row(request.object, row)) + "\n" for row in rows]
                yield ExportPart(data="".join(lines).encode(), rows=len(lines))

    @hookimpl
    async def plan_change(self, request: PlanRequest) -> Plan:
        """Make one request of all changes of a point."""
        draft = PlanDraft(request.changes)
        for folded in fold(draft, keyed=self._keyed):
            with draft.judging(*folded.numbers):
                planned = await self._request(folded.change)
                draft.send(planned.request, *folded.numbers, statement=planned.statement)
        return draft.plan()

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        """Look whether the point exists, then send what was planned."""
        keyed = [self._keyed(change) if isinstance(change, Insert) else change for change in plan.changes]
        return await send_after_a_look(replace(plan, changes=keyed), look=self._look, send=self._send)

    def _keyed(self, change: Insert) -> Insert:
        return change.with_key(*self._keys(change.object))

    async def _request(self, change: Change) -> PlannedRequest:
        if isinstance(change, Drop):
            return await self._drop(change.object)
        if not isinstance(change, Insert | Delete):
            raise NotSentError(NO_UPDATE)
        name = change.object if isinstance(change, Insert) else change.key.object
        database, measurement = parts_of(name)
        point = self._point(name, change.id if isinstance(change, Insert) else change.key.id)
        if isinstance(change, Delete):
            return statement(database, f"DELETE FROM {identifier(measurement)} WHERE {condition(point)}")
        known = self.columns[name]
        fixed = [column for column in change.values if column in known and known[column].is_key]
        if change.replace or not change.values or fixed:
            raise NotSentError("a point needs a field, replaces no other one, and names its time and tags once")
        time = int(operands.instant(point.pop("time")) * 10**9)
        line = ",".join([escaped(measurement), *(f"{escaped(k)}={escaped(v)}" for k, v in sorted(point.items()) if v)])
        values = typed(change.values, lambda column, value: field(known.get(column), value))
        fields = ",".join(f"{escaped(name)}={value}" for name, value in values.items())
        path = f"/write?{urlencode({'db': database, 'precision': 'ns'})}"
        request = HttpRequest("POST", path, f"{line} {fields} {time}", LINES)
        return PlannedRequest(request=request, changes=[])

    async def _drop(self, name: str) -> PlannedRequest:
        database, measurement = parts_of(name)
        if {"name": measurement} not in await self._read(database, "SHOW MEASUREMENTS"):
            raise ObjectNotFoundError(f"there is no measurement {name!r}")
        return statement(database, f"DROP MEASUREMENT {identifier(measurement)}")

    async def _look(self, key: RowKey) -> dict[str, int | str] | None:
        return {} if await self._points(key) else None

    async def _send(self, planned: PlannedRequest, change: Change) -> Outcome:
        sent = planned.request
        response = await self.http.request(sent.method, sent.path, body=sent.body, content_type=sent.content_type)
        status = status_of(response.status)
        if status is not OutcomeStatus.APPLIED:
            return Outcome(change=0, status=status, reason=self.http.error(response).message)
        if response.body and (reason := failure(response.json())):
            return Outcome(change=0, status=OutcomeStatus.FAILED, reason=reason)
        key = RowKey(change.object, change.id or "") if isinstance(change, Insert) else None
        return Outcome(change=0, status=status, id=key and key.id, key=key)

    def _keys(self, name: str) -> list[str]:
        return [column.name for column in self.columns[name].values() if column.is_key]

    def _row(self, name: str, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row in which a missing tag is an empty one, as it is for the server."""
        return {key: "" if row.get(key) is None else row[key] for key in self._keys(name)} | {
            key: value for key, value in row.items() if value is not None
        }

    def _point(self, name: str, id: RowId | None) -> dict[str, str]:  # noqa: A002 - the contract's word
        """Return time and tags of a point; without its empty tags, a condition would hold for other points too."""
        names, parts = self._keys(name), [id] if isinstance(id, str) else id
        if not isinstance(parts, list) or len(parts) != len(names) or not all(isinstance(one, str) for one in parts):
            raise QueryError(f"a point of {name!r} is its {', '.join(names)}, each a text, not {id!r}")
        try:
            return {**dict(zip(names, map(str, parts), strict=True)), "time": operands.timestamp(parts[0])}
        except ValueError as error:
            raise QueryError(str(error)) from error

    async def _points(self, key: RowKey) -> list[dict[str, Any]]:
        database, measurement = parts_of(key.object)
        where = condition(self._point(key.object, key.id))
        return await self._read(database, f"SELECT * FROM {identifier(measurement)} WHERE {where}")

    async def _read(self, database: str, text: str) -> list[dict[str, Any]]:
        query = urlencode({"db": database, "q": text} if database else {"q": text})
        return rows_of(await self.http.get_json(f"/query?{query}"))

    async def _chunks(self, database: str, text: str) -> AsyncIterator[list[dict[str, Any]]]:
        query = urlencode({"db": database, "chunked": "true", "chunk_size": "1000", "q": text})
        async with self.http.stream("GET", f"/query?{query}") as answer:
            if answer.status != 200:
                self.http.check(await answer.response())
            rest = b""
            async for chunk in answer:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield rows_of(json.loads(line))
            if rest:
                raise QueryError("the server's answer ends within a line")


def name_of(database: str, measurement: str | None = None) -> str:
    """Return the name of a database, or of a measurement in it."""
    return quote(database, safe="") + ("" if measurement is None else f"/{measurement}")


def parts_of(name: str) -> tuple[str, str]:
    """Return database and measurement; raise ObjectNotFoundError unless the name is how `name_of` writes both."""
    database, slash, measurement = name.partition("/")
    if not slash or not measurement or name_of(unquote(database), measurement) != name:
        raise ObjectNotFoundError(f"{name!r} is not the name of a measurement in a database")
    return unquote(database), measurement


def tag_column(name: str) -> Column:
    """Describe a tag, which is part of the key."""
    return Column(
        name=name, type="tag", kind=ColumnKind.TEXT, role=Role.KEY, written=Written.INSERT, operators=EQUAL,
        path=(name,), reasons={"sort": NO_SORT, "edit": NO_UPDATE},
    )  # fmt: skip


def field_column(name: str, type: str) -> Column:  # noqa: A002 - the design's word
    """Describe a field."""
    kind, reasons = KINDS[type], {"sort": NO_SORT, "edit": NO_UPDATE}
    return Column(
        name=name, type=type, kind=kind, written=Written.INSERT, operators=OPERATORS[kind], path=(name,),
        reasons=reasons,
    )  # fmt: skip


def clause_of(row: Filter | RawQuery, columns: dict[str, Column], *, alone: bool) -> str:
    """Write a condition; raise ValueError with the reason why there is none."""
    column = columns.get(row.column) if isinstance(row, Filter) else None
    if column is None or not isinstance(row, Filter):
        raise ValueError(UNKNOWN)
    if row.op not in column.operators:
        raise ValueError(f"a {column.type} is not compared with {row.op}")
    if not alone and "any" in column.reasons:
        raise ValueError(column.reasons["any"])
    read, name = READERS[column.kind], "time" if column is TIME else identifier(column.name)
    if row.op is Operator.BETWEEN:
        low, high = (literal(read(bound)) for bound in operands.bounds(row.value))
        return f"{name} >= {low} AND {name} <= {high}"
    return f"{name} {row.op} {literal(read(operands.single(row.value)))}"


def select(request: PageRequest | ExportRequest) -> str:
    """Write the statement for the points of a request."""
    conditions = [request.filter.body] if request.filter else []
    conditions += span(request.time) if request.time else []
    where = " WHERE " + " AND ".join(f"({each})" for each in conditions) if conditions else ""
    return f"SELECT * FROM {identifier(parts_of(request.object)[1])}{where}"


def span(time: TimeRange) -> list[str]:
    """Write the conditions of a range of time."""
    bounds = ((">=", time.since), ("<", time.until))
    return [f"time {sign} {literal(bound)}" for sign, bound in bounds if bound is not None]


def condition(point: dict[str, str]) -> str:
    """Write the condition that names one point."""
    sides = ((name if name == "time" else identifier(name), literal(part)) for name, part in point.items())
    return " AND ".join(f"{name} = {part}" for name, part in sides)


def rows_of(answer: Any) -> list[dict[str, Any]]:
    """Return the rows of an answer."""
    if reason := failure(answer):  # its status is 200
        raise QueryError(f"the server refused the statement: {reason}")
    series = answer["results"][0].get("series", [])
    return [dict(zip(each["columns"], values, strict=True)) for each in series for values in each["values"]]


def failure(answer: Any) -> str:
    """Return the error of an answer whose status is 200; empty if there is none."""
    return str(next((each["error"] for each in answer["results"] if "error" in each), ""))


def statement(database: str, text: str) -> PlannedRequest:
    """Return a request that writes."""
    request = HttpRequest("POST", "/query", urlencode({"db": database, "q": text}), FORM)
    return PlannedRequest(request=request, changes=[], statement=text)


def identifier(name: str) -> str:
    """Quote a name."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(value: object) -> str:
    """Write a value in a statement."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return encode(value)


def escaped(text: str) -> str:
    """Write a name or a tag in line protocol."""
    return "".join(f"\\{letter}" if letter in "\\, =" else letter for letter in text)


def field(column: Column | None, value: object) -> str:
    """Write a field in line protocol, where integers end in i."""
    value = stored_value(column or Column(name="", type=""), value)
    if isinstance(value, str):
        return identifier(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return f"{value}i" if whole and (column is None or column.kind is not ColumnKind.FLOAT) else encode(value)
