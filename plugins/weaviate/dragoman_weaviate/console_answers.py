"""A console request to its answer: objects as a grid, the rest as formatted JSON (W31, W32).

An Aggregate is JSON, too, unless the request asks for tables.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import (
    Answer,
    AnswerKind,
    Column,
    ColumnKind,
    DragomanError,
    HttpRequest,
    Json,
    Note,
    Page,
    Role,
    RowKey,
    Written,
)
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.grid import MAX_ROWS
from dragoman_api.json_text import decode, encode, exact_number
from dragoman_api.kit.console_answers import MAX_TABLES, chained, cut_notes, rows_page, text_answer
from dragoman_api.kit.exchanges import Exchange, ask
from dragoman_weaviate import protocol
from dragoman_weaviate.columns import grid_columns
from dragoman_weaviate.columns.field_types import Family, family_of
from dragoman_weaviate.stored_objects import cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dragoman_api import Cell, ConsoleRequest
    from dragoman_api.replies import Reply
    from dragoman_weaviate.columns.field_types import PropertyBase
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.protocol import Features

JsonRow = dict[str, Any]
_NAMED, _NAME = 10, 100  # names in a note, and characters of one
_NO_TABLE = (LookupError, TypeError, ValueError, AttributeError)
_FRAGMENTS = "ast.FragmentSpread"


class _Error(msgspec.Struct):
    message: str = ""


class _GraphQL(msgspec.Struct):
    data: dict[str, Raw] | None = None
    errors: list[_Error] | None = None


class _Listed(msgspec.Struct):
    objects: list[JsonRow]


_members = msgspec.json.Decoder(dict[str, Raw])
_MARKS = re.compile(r'"""(?:\\"""|.)*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n\r]*|[():]', re.DOTALL)
_get = msgspec.json.Decoder(dict[str, list[JsonRow] | None], float_hook=Raw)
_listed = msgspec.json.Decoder(_Listed, float_hook=Raw)


def execute(console_request: ConsoleRequest, features: Features) -> Exchange[Answer]:
    """Send one request exactly as parsed, and build its answer; an error status is an answer too."""
    request = console_request.request
    reply = yield from ask(request)
    answer = text_answer(console_request, reply, lambda: protocol.exception(reply).message)
    notes = [*answer.notes]
    if request.path.startswith("/v1/graphql/batch"):
        notes.append(Note(code="batch-without-key", reason="the server runs the parts of a batch without the key"))
    if not 200 <= reply.status < 300:
        return msgspec.structs.replace(answer, notes=notes)
    failed, tables = _read(console_request, reply)
    aliased = bool(tables) and request.method == "POST" and _aliased(request.body or "")
    pages: list[tuple[AnswerKind, str, Page]] = []
    for title, rows in tables:
        view = None if aliased else (yield from _look_up(title, features))
        if _is_graphql(request):
            notes += yield from _lost_integers(rows, view)
        with suppress(*_NO_TABLE):
            pages.append((AnswerKind.GRID, title, _page(rows, view)))
    pages = pages if len(pages) == len(tables) else []
    aggregated = _aggregated(reply) if console_request.tabular and _is_graphql(request) else []
    titled = len(aggregated) + len(pages) > 1
    whole = bool(aggregated) or len(pages) > MAX_TABLES
    pages += [(AnswerKind.TABLE, title if titled else "", page) for title, page in aggregated]
    answer = msgspec.structs.replace(answer, notes=notes, failed=failed)
    return msgspec.structs.replace(chained(answer, pages), text=answer.text if whole else "") if pages else answer


def _aggregated(reply: Reply) -> list[tuple[str, Page]]:
    try:
        return _aggregate_pages(reply.body)
    except _NO_TABLE:  # another shape of answer is shown as text
        return []


def _path(request: HttpRequest) -> str:
    return request.path.partition("?")[0].rstrip("/")


def _is_graphql(request: HttpRequest) -> bool:
    return request.method == "POST" and _path(request) == "/v1/graphql"


def _read(console_request: ConsoleRequest, reply: Reply) -> tuple[str, list[tuple[str, list[JsonRow]]]]:
    """Return why a request failed in spite of its status, and the tables of the answer."""
    request = console_request.request
    besides = {"Aggregate"} if console_request.tabular else set()
    try:
        if _is_graphql(request):
            answer = decode(reply.body, _GraphQL)
            searched = answer.data and {*answer.data} - besides == {"Get"}
            tables = decode(bytes(answer.data["Get"]), _get) if answer.data and searched else {}
            return _failed(answer), [(name, rows) for name, rows in tables.items() if rows is not None]
        if request.method == "GET" and _path(request) == "/v1/objects":
            return "", _by_collection(decode(reply.body, _listed).objects)
    except _NO_TABLE:  # another shape of answer is shown as text
        pass
    return "", []


def _aliased(body: str) -> bool:
    """Return whether a GraphQL request has an alias: its answer may call anything the id, or a row of any collection.

    A colon outside of parentheses makes one; all others belong to arguments and variables.
    """
    members = decode(body, _members)
    if [name for name in members if name.lower() == "query"] != ["query"]:
        return True  # the server takes `Query` as well
    depth = 0
    for mark in _MARKS.finditer(decode(bytes(members["query"]), str)):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if mark[0] == ":" and depth == 0:
            return True
    return False


def _failed(answer: _GraphQL) -> str:
    text = protocol.shorten("; ".join(dict.fromkeys(error.message for error in answer.errors or [])))
    return f"{text}; named fragments inside a collection fail on this server" if _FRAGMENTS in text else text


def _by_collection(objects: Sequence[JsonRow]) -> list[tuple[str, list[JsonRow]]]:
    """Group the objects of a list by collection, in the form of GraphQL."""
    tables: dict[str, list[JsonRow]] = {}
    for row in objects:
        additional = {name: row[name] for name in ("id", "lastUpdateTimeUnix", "vector", "vectors") if row.get(name)}
        tables.setdefault(str(row.get("class")), []).append(
            {**(row.get("properties") or {}), "_additional": additional}
        )
    return list(tables.items())


def _look_up(name: str, features: Features) -> Exchange[View | None]:
    """Look up a collection for its columns and the keys of its rows; None if there is none."""
    try:
        return (yield from grid_columns.view(name, features))
    except DragomanError:
        return None


def _lost_integers(rows: Sequence[JsonRow], view: View | None) -> Exchange[list[Note]]:
    """Note the nulls of a search that may stand for integers: GraphQL has none beyond 32 bits (seen on 1.38.11).

    Where the rows alone do not tell, the extremes of a property do, which an aggregate answers in full.
    """
    if view is None:  # with aliases in the request, no name says what a value is
        names = {name for row in rows for name, value in row.items() if value is None}
        return [_lost(names, "may be")] if names else []
    surely: set[str] = set()
    perhaps: set[str] = set()
    for spec in view.collection.properties or []:
        _seek_nulls([row[spec.name] for row in rows if spec.name in row], spec, spec.name, surely, perhaps)
    if properties := sorted(name for name in perhaps if "." not in name):
        fields = " ".join(f"{name}{{minimum maximum}}" for name in properties)
        query = encode({"query": f"{{Aggregate{{{view.target}{{{fields}}}}}}}"})
        reply = yield from ask(HttpRequest("POST", "/v1/graphql", query))
        with suppress(*_NO_TABLE):  # a tenant is missing, or the collection is gone
            [extremes] = decode(reply.body, dict[str, dict[str, dict[str, list[dict[str, dict[str, Any]]]]]])["data"][
                "Aggregate"
            ][view.target]
            perhaps -= {name for name in properties if all(map(_fits, extremes[name].values()))}
    notes = [_lost(surely, "are")] if surely else []
    return [*notes, _lost(perhaps - surely, "may be")] if perhaps - surely else notes


def _seek_nulls(values: Sequence[Any], spec: PropertyBase, name: str, surely: set[str], perhaps: set[str]) -> None:
    """Collect the names under which nulls surely, or perhaps, stand for integers."""
    family, array = family_of(spec.data_type)
    elements = [element for value in values if isinstance(value, list) for element in value] if array else values
    if family is Family.INT and None in elements:
        (surely if array else perhaps).add(name)  # the server stores no null in an array
    if family is Family.REFERENCE:  # to objects of other collections
        rows = [row for value in values if isinstance(value, list) for row in value if isinstance(row, dict)]
        perhaps |= {f"{name}.{key}" for row in rows for key, value in row.items() if value is None}
    if family is Family.OBJECT:
        for part in spec.nested:
            inner = [element[part.name] for element in elements if isinstance(element, dict) and part.name in element]
            _seek_nulls(inner, part, f"{name}.{part.name}", surely, perhaps)


def _fits(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and -(2**31) <= value < 2**31)


def _lost(names: set[str], verb: str) -> Note:
    listed = ", ".join(name[:_NAME] for name in sorted(names)[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    reason = f"GraphQL answers integers beyond 32 bits with null, and nulls in {listed} {verb} such integers"
    return Note(code="integers-null", reason=reason, hint="GET /v1/objects?class=NAME answers them in full")


def _page(rows: Sequence[JsonRow], view: View | None) -> Page:
    count, rows = len(rows), rows[:MAX_ROWS]
    declared = {field.prop: view.columns[field.name] for field in view.fields.values() if field.prop} if view else {}
    selected = dict.fromkeys(name for row in rows for name in row if name != "_additional")
    added = dict.fromkeys(name for row in rows for name in row.get("_additional") or {} if name != "id")
    ours = {"uuid", *({"vector"} & {*added})}
    ways: list[tuple[Column, str, bool]] = []
    if any((row.get("_additional") or {}).get("id") for row in rows):
        ways.append(
            (Column(name="uuid", type="uuid", kind=ColumnKind.TEXT, role=Role.KEY, written=Written.NEVER), "id", True)
        )
    order = [*(name for name in declared if name in selected), *sorted({*selected} - {*declared})]
    for name in order:
        column = _column(f"properties.{name}" if name in ours else name, declared.get(name))
        ways.append((column, name, False))
    clashing = {*selected} - {"vector"}
    last = sorted(added, key=lambda name: name in ("vector", "vectors"))
    ways += [(_column(f"_additional.{name}" if name in clashing else name), name, True) for name in last]
    notes = cut_notes(columns=len(ways), rows=count)
    del ways[MAX_COLUMNS:]
    cells = [[cell(_value(row, name, added=added)) for _, name, added in ways] for row in rows]
    return Page(columns=[column for column, _, _ in ways], cells=cells, keys=_keys(rows, view), notes=notes)


def _value(row: Mapping[str, Any], name: str, *, added: bool) -> Any:
    return ((row.get("_additional") or {}) if added else row).get(name)


def _column(name: str, described: Column | None = None) -> Column:
    if described is not None:
        return Column(
            name=name, type=described.type, kind=described.kind, repeated=described.repeated, written=Written.NEVER
        )
    return Column(name=name, type="", kind=ColumnKind.OTHER, written=Written.NEVER)


def _keys(rows: Sequence[JsonRow], view: View | None) -> list[RowKey]:
    """Return the rows' keys if each has a uuid and the collection is known and has no tenants."""
    added = [row.get("_additional") or {} for row in rows]
    if view is None or view.collection.tenancy.enabled or not all(additional.get("id") for additional in added):
        return []
    times = [additional.get("lastUpdateTimeUnix") for additional in added]
    guards: list[dict[str, int | str]] = [{"lastUpdateTimeUnix": int(time)} if time else {} for time in times]
    return [RowKey(view.target, additional["id"], None, guard) for additional, guard in zip(added, guards, strict=True)]


class _Data(msgspec.Struct):
    data: dict[str, dict[str, list[dict[str, Any]] | None]]


_ROLES = {"groupedBy.value": Role.KEY}
_answer = msgspec.json.Decoder(_Data, float_hook=exact_number)


def _aggregate_pages(body: bytes) -> list[tuple[str, Page]]:
    """Return the aggregated collections of an answer, each with its name, or alias, in the query.

    An object becomes dotted columns (`price.mean`, `groupedBy.value`), an array JSON.

    Raises:
        ValueError: It is no such answer.
    """
    groups_by_name = decode(body, _answer).data.get("Aggregate", {})
    return [
        (
            f"Aggregate {name}",
            rows_page([*(dict(_flat(row)) for row in rows[:MAX_ROWS]), *rows[MAX_ROWS:]], roles=_ROLES),
        )
        for name, rows in groups_by_name.items()
        if rows is not None
    ]


def _flat(members: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Cell]]:
    for name, value in members.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", Json(encode(value)) if isinstance(value, list) else value
