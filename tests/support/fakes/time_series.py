"""A time series database as InfluxDB 1.x shows it, with its traps.

A point is its measurement, time and tags: a second one merges its fields into the first. An error may come with status
200. Times joined by OR find nothing and are no error. A deletion by a field is one. An unknown statement is an error.
Times are RFC 3339, without zeros at the end. A chunked answer has one JSON text for each chunk, and says that it
failed only inside of one.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Holds = Callable[[dict[str, Any]], bool]

DATABASE = "metrics"
DATABASES = ("_internal", DATABASE)
Key = tuple[int, tuple[tuple[str, str], ...]]
TYPES = {bool: "boolean", int: "integer", float: "float", str: "string"}

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>"(?:[^"\\]|\\.)*")|(?P<text>'(?:[^'\\]|\\.)*')|(?P<number>-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"""
    r"""|(?P<word>AND|OR|time|true|false)|(?P<sign>!=|>=|<=|[=<>()]))"""
)
_FROM = r'(?P<name>"(?:[^"\\]|\\.)*")'
_SELECT = re.compile(
    rf"SELECT \* FROM {_FROM}(?: WHERE (?P<where>.*?))?(?: ORDER BY time (?P<order>ASC|DESC))?"
    r"(?: LIMIT (?P<limit>\d+))?(?: OFFSET (?P<offset>\d+))?",
    re.DOTALL,
)
_OTHERS = re.compile(
    rf"(?P<what>SHOW TAG KEYS FROM|SHOW FIELD KEYS FROM|DROP MEASUREMENT|DELETE FROM) {_FROM}(?: WHERE (?P<where>.*))?",
    re.DOTALL,
)
_LINE = re.compile(r"((?:[^ \\]|\\.)+) ((?:[^ \\\"]|\\.|\"(?:[^\"\\]|\\.)*\")+) (-?\d+)")
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    ">": lambda value, wanted: value > wanted,
    ">=": lambda value, wanted: value >= wanted,
    "<": lambda value, wanted: value < wanted,
    "<=": lambda value, wanted: value <= wanted,
}


class TimeSeries:
    """The points of one database."""

    def __init__(self) -> None:
        self.app = web.Application()
        self.points: dict[str, dict[Key, dict[str, Any]]] = {}
        self.app.router.add_get("/ping", self._ping)
        self.app.router.add_get("/query", self._query)
        self.app.router.add_post("/query", self._query)
        self.app.router.add_post("/write", self._write)

    def add(self, name: str, time: int, tags: dict[str, str], fields: dict[str, Any]) -> None:
        """Write a point; one of the same time and tags keeps its other fields."""
        key = (time, tuple(sorted(tags.items())))
        self.points.setdefault(name, {}).setdefault(key, {}).update(fields)

    async def _ping(self, request: web.Request) -> web.Response:
        return web.Response(status=204, headers={"X-Influxdb-Version": "1.8.10"})

    async def _write(self, request: web.Request) -> web.Response:
        assert request.query == {"db": DATABASE, "precision": "ns"}, request.query
        found = _LINE.fullmatch(await request.text())
        if found is None:
            return web.json_response({"error": "unable to parse"}, status=400)
        name, *tags = re.split(r"(?<!\\),", found[1])
        fields = re.findall(r'((?:[^=,\\]|\\.)+)=("(?:[^"\\]|\\.)*"|[^,]+)', found[2])
        self.add(
            _plain(name), int(found[3]), dict(map(_plain, re.split(r"(?<!\\)=", tag)) for tag in tags),  # type: ignore[misc]
            {_plain(key): _field(value) for key, value in fields},
        )  # fmt: skip
        return web.Response(status=204)

    async def _query(self, request: web.Request) -> web.StreamResponse:
        asked = {**request.query, **await request.post()}
        assert asked.keys() <= {"db", "q", "chunked", "chunk_size"}, asked
        statement = str(asked["q"])
        if request.method == "GET" and not statement.startswith(("SELECT", "SHOW")):
            return web.json_response({"error": "only GET what reads"}, status=400)
        try:
            series = self._series(statement, str(asked.get("db")))
        except ValueError as error:
            return web.json_response({"results": [{"statement_id": 0, "error": str(error)}]})
        if asked.get("chunked") == "true":
            return await _chunked(request, series, int(str(asked["chunk_size"])))
        return web.json_response(_results(series))

    def _series(self, statement: str, database: str) -> list[dict[str, Any]]:
        if statement == "SHOW DATABASES":
            return _table("databases", ["name"], [[name] for name in DATABASES])
        if database not in DATABASES:
            raise ValueError(f"database not found: {database}")
        if database != DATABASE:
            return []
        if statement == "SHOW MEASUREMENTS":
            return _table("measurements", ["name"], [[name] for name in sorted(self.points)])
        if found := _SELECT.fullmatch(statement):
            return self._select(found)
        if (found := _OTHERS.fullmatch(statement)) is None:
            raise ValueError(f"error parsing query: {statement}")
        name = _quoted(found["name"])
        points = self.points.get(name, {})
        if found["what"] == "DROP MEASUREMENT":
            self.points.pop(name, None)
        elif found["what"] == "DELETE FROM":
            holds = _Condition(found["where"], tags_of(points), deletes=True).whole()
            self.points[name] = {key: fields for key, fields in points.items() if not holds(_row(key, {}))}
        elif found["what"] == "SHOW TAG KEYS FROM":
            return _table(name, ["tagKey"], [[tag] for tag in sorted(tags_of(points))])
        else:
            kinds = {field: TYPES[type(value)] for fields in points.values() for field, value in fields.items()}
            return _table(name, ["fieldKey", "fieldType"], [[*pair] for pair in sorted(kinds.items())])
        return []

    def _select(self, found: re.Match[str]) -> list[dict[str, Any]]:
        name = _quoted(found["name"])
        points = self.points.get(name, {})
        rows = [_row(key, points[key]) for key in sorted(points)]
        columns = ["time", *sorted({column for row in rows for column in row} - {"time"})]
        if found["where"]:
            condition = _Condition(found["where"], tags_of(points))
            holds = condition.whole()
            rows = [] if condition.times_by_or else [row for row in rows if holds(row)]
        if found["order"] == "DESC":
            rows.reverse()
        begin = int(found["offset"] or 0)
        rows = rows[begin : begin + int(found["limit"])] if found["limit"] else rows[begin:]
        values = [[_shown(row["time"]), *(row.get(column) for column in columns[1:])] for row in rows]
        return _table(name, columns, values)


class _Condition:
    """Reads a WHERE clause."""

    def __init__(self, text: str, tags: set[str], *, deletes: bool = False) -> None:
        self.times_by_or = False
        self._tags, self._deletes, self._at, self._tokens = tags, deletes, 0, list[re.Match[str]]()
        at = 0
        while at < len(text.rstrip()):
            if (token := _TOKEN.match(text, at)) is None:
                raise ValueError(f"error parsing query: {text[at:]}")
            self._tokens.append(token)
            at = token.end()

    def whole(self) -> Holds:
        holds, _ = self._either()
        if self._at < len(self._tokens):
            raise ValueError("error parsing query: text is left")
        return holds

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][0].strip()

    def _next(self) -> str:
        return self._tokens[self._at][0].strip() if self._at < len(self._tokens) else ""

    def _either(self) -> tuple[Holds, bool]:
        holds, times = self._both()
        while self._next() == "OR":
            self._take()
            other, more = self._both()
            self.times_by_or |= times or more
            holds, times = _joined(any, holds, other), times or more
        return holds, times

    def _both(self) -> tuple[Holds, bool]:
        holds, times = self._one()
        while self._next() == "AND":
            self._take()
            other, more = self._one()
            holds, times = _joined(all, holds, other), times or more
        return holds, times

    def _one(self) -> tuple[Holds, bool]:
        if (first := self._take()) == "(":
            inside = self._either()
            self._take()
            return inside
        name = "time" if first == "time" else _quoted(first)
        if self._deletes and name not in {"time", *self._tags}:
            raise ValueError("fields not supported in WHERE clause during deletion")
        compare, wanted = _SIGNS[self._take()], _literal(self._take())
        if name == "time":
            wanted = _nanoseconds(wanted)

        def holds(row: dict[str, Any]) -> bool:
            value = row.get(name, "" if name in self._tags else None)  # a missing tag is an empty one
            return value is not None and isinstance(value, str) == isinstance(wanted, str) and compare(value, wanted)

        return holds, name == "time"


def _joined(join: Callable[[Iterable[bool]], bool], one: Holds, other: Holds) -> Holds:
    return lambda row: join(holds(row) for holds in (one, other))


def tags_of(points: dict[Key, dict[str, Any]]) -> set[str]:
    """Return the names of all tags."""
    return {tag for _, tags in points for tag, _ in tags}


def _table(name: str, columns: list[str], values: list[list[Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "columns": columns, "values": values}] if values else []


def _row(key: Key, fields: dict[str, Any]) -> dict[str, Any]:
    return {"time": key[0], **dict(key[1]), **fields}


def _results(series: list[dict[str, Any]]) -> dict[str, Any]:
    return {"results": [{"statement_id": 0, **({"series": series} if series else {})}]}


async def _chunked(request: web.Request, series: list[dict[str, Any]], size: int) -> web.StreamResponse:
    """Send a series of rows in chunks, and break the bytes where no line ends."""
    chunks = [
        _results([{**each, "values": each["values"][at : at + size]}])
        for each in series
        for at in range(0, len(each["values"]), size)
    ]
    data = b"".join(json.dumps(each).encode() + b"\n" for each in chunks or [_results([])])
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for at in range(0, len(data), 700):
        await response.write(data[at : at + 700])
    await response.write_eof()
    return response


def _shown(time: int) -> str:
    """Write a time as the server does."""
    seconds, fraction = divmod(time, 10**9)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return whole + (f".{fraction:09}".rstrip("0") if fraction else "") + "Z"


def _nanoseconds(time: Any) -> int:
    """Read a time, a number or a text."""
    if not isinstance(time, str):
        return int(time)
    whole, _, fraction = time.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(whole + "+00:00").timestamp()) * 10**9 + int(fraction.ljust(9, "0") or 0)


def _quoted(text: str) -> str:
    return _plain(text[1:-1])


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _literal(text: str) -> Any:
    if text[0] == "'":
        return _quoted(text)
    if text in ("true", "false"):
        return text == "true"
    return float(text) if re.search(r"[.e]", text) else int(text)


def _field(text: str) -> Any:
    if text[0] == '"':
        return _quoted(text)
    if text in ("true", "false"):
        return text == "true"
    return int(text[:-1]) if text[-1] == "i" else float(text)
