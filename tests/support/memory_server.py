"""An in-memory database that answers requests, as a real one does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from dragoman_api.cells import cut
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import LISTS, VALUELESS, Column, ColumnKind, Role
from dragoman_api.columns import Operator as Op
from dragoman_api.errors import ConnectionFailedError, FilterNotSupportedError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.json_text import decode, encode, exact_number
from dragoman_api.kit import operands
from dragoman_api.kit.filter_rows import holds
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from dragoman_api.cells import Cell
    from dragoman_api.grid import Sort

_EQUALS = (Op.EQ, Op.NE, Op.NULL, Op.NOT_NULL)
_TEXTS = (Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS, Op.EMPTY, Op.NOT_EMPTY, Op.REGEX)
OPERATORS = {
    ColumnKind.TEXT: (*_EQUALS, Op.IN, Op.NOT_IN, *_TEXTS),
    **dict.fromkeys((ColumnKind.INTEGER, ColumnKind.FLOAT), (*_EQUALS, *LISTS, Op.GT, Op.GE, Op.LT, Op.LE)),
    ColumnKind.BOOLEAN: _EQUALS,
}
_TIMED = "rows are chosen by a range of time"
WHOLE = "arrays have no order and are not compared"


def column_of(name: str, kind: ColumnKind, dimensions: int | None = None) -> Column:
    """Describe a column by its kind, and by the length of its vectors if it holds some."""
    operators = OPERATORS.get(kind, ())
    reason = _TIMED if kind is ColumnKind.TIMESTAMP else WHOLE
    reasons = {} if operators else {"sort": reason, "filter": reason}
    return Column(
        name=name,
        type=kind,
        kind=kind,
        role=Role.TIME if kind is ColumnKind.TIMESTAMP else Role.NONE,
        sortable=bool(operators),
        operators=operators,
        reasons=reasons,
        path=("row", name),
        dimensions=dimensions,
    )


def typed(row: Filter, column: Column | None) -> Filter:
    """Check a filter row, and return it with a value of the column's kind. Raises FilterNotSupportedError."""
    if column is None or row.op not in column.operators:
        reason = "there is no such column" if column is None else column.reasons.get("filter", "no such comparison")
        raise _refusal(row, reason)
    if row.op in LISTS:
        values = row.value if isinstance(row.value, list) else str(row.value or "").split(",")
        if row.op is Op.BETWEEN and len(values) != 2:
            raise _refusal(row, "it takes two values")
        return replace(row, value=[_value(row, operand, column.kind) for operand in values])
    unary = row.op in VALUELESS
    return replace(row, value=None if unary else _value(row, row.value, column.kind))


def _value(row: Filter, value: Any, kind: ColumnKind) -> Any:
    try:
        if kind.numeric:
            number = operands.decimal(value)
            return number if isinstance(number, int) else float(number)
        if kind is ColumnKind.BOOLEAN:
            return operands.boolean(value)
        if row.op is Op.REGEX:
            re.compile(value)
    except (ValueError, re.error) as error:
        raise _refusal(row, f"{quoted(value)} does not fit: {error}") from error
    return value


def _refusal(row: Filter, reason: str) -> FilterNotSupportedError:
    details = {"column": row.column, "operator": str(row.op), "reason": reason}
    return FilterNotSupportedError(f"{row.column} {row.op}: {reason}; nothing was sent", details=details)


def satisfies(row: Filter | RawQuery, values: dict[str, Any]) -> bool:
    """Return whether stored values satisfy a filter row."""
    if isinstance(row, RawQuery):
        return any(row.text in str(value) for value in values.values())
    exact = replace(row, case=row.case is not False)  # letter case counts here if the row leaves it open
    return holds(exact, cell(values.get(row.column))) is True


def ordered(rows: list[dict[str, Any]], sort: Sort) -> list[dict[str, Any]]:
    """Order rows by one column; rows without a value come last either way."""
    valued = [record for record in rows if record["row"].get(sort.column) is not None]
    valued.sort(key=lambda record: record["row"][sort.column], reverse=sort.descending)
    return valued + [record for record in rows if record["row"].get(sort.column) is None]


def cell(value: Any) -> Cell:
    """Return a stored value as a cell."""
    return cut(encode(value)) if isinstance(value, list | dict) else value


_row: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(float_hook=exact_number)

BOOKS: dict[str, dict[str, object]] = {
    str(number): {
        "title": f"Book {number:02} of {'Tea' if number % 3 else 'tea'}" if number != 4 else "",
        "price": [9.5, 12, 2**63 + number, None][number % 4],
        "stock": number % 5,
        "available": number % 2 == 0 if number != 9 else None,
        "tags": ["a", "ä", None] if number != 7 else [f"tag {at}" for at in range(2_000)],
    }
    for number in range(1, 24)
}
"""The rows of the object ``books``: nulls, an empty text, an integer of 64 bits and an array above the cut."""


@dataclass
class MemoryServer:
    """Objects with rows, served through a handful of requests.

    ``GET /`` lists objects, ``GET /OBJECT`` its rows, ``GET /OBJECT/ID`` one; ``POST /OBJECT`` inserts,
    ``PUT /OBJECT/ID?seq=N`` writes a row that is at that sequence number (0: not there), ``DELETE`` deletes a row or an
    object. ``GET`` with ``?revision=N`` reads the rows as they were then.

    Attributes:
        kinds: Columns of every object; with one of kind ``timestamp``, the driver takes ranges of time.
        vectors: The lengths of the vectors in columns of kind ``json``, in which rows are near to each other.
        objects: Rows by object and id.
        log: The requests that it received.
        revision: The number of changes so far.
        held: Revisions that exports in parts hold.
    """

    kinds: Mapping[str, ColumnKind] = field(
        default_factory=lambda: {
            "title": ColumnKind.TEXT,
            "price": ColumnKind.FLOAT,
            "stock": ColumnKind.INTEGER,
            "available": ColumnKind.BOOLEAN,
            "tags": ColumnKind.JSON,
        }
    )
    objects: dict[str, dict[str, dict[str, object]]] = field(
        default_factory=lambda: {"books": {key: dict(row) for key, row in BOOKS.items()}, "scratch": {}}
    )
    log: list[HttpRequest] = field(default_factory=list)
    revision: int = 0
    held: set[str] = field(default_factory=set)
    vectors: Mapping[str, int] = field(default_factory=dict)
    _past: dict[int, MemoryServer] = field(default_factory=dict)
    _seq: dict[tuple[str, str], int] = field(default_factory=dict)
    _next: int = 1
    _lost: tuple[HttpRequest, int] | None = None
    _losing: bool = False

    @contextmanager
    def lose(self, request: HttpRequest, status: int) -> Iterator[None]:
        """Lose the answers from one request on, as `Target.lose` says."""
        self._lost = request, status
        try:
            yield
        finally:
            self._lost, self._losing = None, False

    def send(self, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
        """Answer a request with a status and a value.

        Raises:
            ConnectionFailedError: The answer was lost, see `lose`.
        """
        self.log.append(HttpRequest(method, path, body))
        answer = self._answer(method, path, body)
        if self._lost is None or not (self._losing or self.log[-1] == self._lost[0]):
            return answer
        self._losing = True
        if self._lost[1] == 0:
            raise ConnectionFailedError("the server ended the connection", details={"sent": True})
        return self._lost[1], {"error": f"HTTP {self._lost[1]} from a gateway"}

    def _answer(self, method: str, path: str, body: str | None) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        if query.startswith("revision="):
            return self._answer_of(unquote(query.removeprefix("revision=")), method, path)
        name, key = [unquote(part) for part in [*path.lstrip("/").split("/"), ""][:2]]
        if not name:
            return 200, [{"name": object_name, "rows": len(rows)} for object_name, rows in self.objects.items()]
        if name not in self.objects:
            return 404, {"error": f"no object {name}"}
        rows = self.objects[name]
        if method == "POST" and not key:
            key, self._next = f"new-{self._next}", self._next + 1
            self._remember()
            return self._write(name, key, body)
        if method == "GET" and not key:
            return 200, [self._row(name, row_key) for row_key in rows]
        if method != "GET":
            self._remember()
        if not key:
            del self.objects[name]
            return 200, {"dropped": name}
        if query and int(query.removeprefix("seq=")) != (self._seq.get((name, key), 1) if key in rows else 0):
            return 409, {"error": f"{key} changed since it was read" if key in rows else f"{key} is gone"}
        if method == "PUT":
            return self._write(name, key, body)
        if key not in rows:
            return 404, {"error": f"no row {key}"}
        if method == "DELETE":
            del rows[key]
            return 200, {"id": key}
        return 200, self._row(name, key)

    def _answer_of(self, revision: str, method: str, path: str) -> tuple[int, Any]:
        if revision == str(self.revision):
            return self._answer(method, path, None)
        then = self._past.get(int(revision)) if revision.isdecimal() else None
        return (410, {"error": f"no revision {revision}"}) if then is None else then.send(method, path)

    def _remember(self) -> None:
        rows = {name: dict(rows) for name, rows in self.objects.items()}
        self._past[self.revision] = MemoryServer(self.kinds, rows, _seq=dict(self._seq))
        self.revision += 1

    def _row(self, name: str, key: str) -> dict[str, object]:
        return {"id": key, "seq": self._seq.get((name, key), 1), "row": self.objects[name][key]}

    def _write(self, name: str, key: str, body: str | None) -> tuple[int, Any]:
        self.objects[name][key] = decode(body or "{}", _row)
        self._seq[name, key] = self._seq.get((name, key), 1) + 1
        return 200, self._row(name, key)
