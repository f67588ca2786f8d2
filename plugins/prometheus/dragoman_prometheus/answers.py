"""Answers of the HTTP API: which server it is, samples, tables of a console; and the console's texts."""

from __future__ import annotations

import re
import time
from itertools import islice
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from dragoman_api import (
    Cell,
    ColumnKind,
    ConsoleRequest,
    HttpRequest,
    Json,
    Note,
    Page,
    Profile,
    QueryError,
    Server,
    replies,
)
from dragoman_api.columns import MAX_COLUMNS, Role
from dragoman_api.errors import ServerNotSupportedError
from dragoman_api.grid import MAX_ROWS
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.console_answers import cut_notes, rows_page
from dragoman_api.kit.console_text import ConsoleReader, rest_requests, text_blocks

from .columns import TIME, VALUE, Sample, column_names, instant_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.replies import Reply

BUILD = HttpRequest("GET", "/api/v1/status/buildinfo")
MAX_WARNINGS = 20
_READING = re.compile(r"/api/v1/(query|query_range|query_exemplars|series|labels|format_query|parse_query)(\?|$)")
_REST = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE)\b", re.IGNORECASE)
_RANGE = re.compile(r"query_range\s+(\d+)([smhdwy])\s+(\d+[smhdwy])\s+")
_TOKEN = re.compile(r"""#[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|["'`()\[\]{}]""", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_CLOSING = {")": "(", "]": "[", "}": "{"}
_COLUMNS = {TIME: ColumnKind.TIMESTAMP, VALUE: ColumnKind.FLOAT}

T = TypeVar("T")
Point = tuple[float, str]
Histogram = tuple[float, dict[str, Any]]


class Body(msgspec.Struct, Generic[T], frozen=True):
    """An answer of the API."""

    status: Literal["success"]
    data: T
    warnings: list[str] | None = None

    @property
    def notes(self) -> list[Note]:
        """The first of its warnings: a remote store did not answer (M14)."""
        warnings = (self.warnings or [])[:MAX_WARNINGS]
        return [Note(code="partial-result", reason=f"the server warns: {warning[:500]}") for warning in warnings]


class _Refusal(msgspec.Struct, frozen=True, rename="camel"):
    status: Literal["error"]
    error: str
    error_type: str = ""


class Series(msgspec.Struct, frozen=True):
    """The samples of one series: all of a range, or one at an instant."""

    metric: dict[str, str]
    values: list[Point] = []
    histograms: list[Histogram] = []
    value: Point | None = None
    histogram: Histogram | None = None

    def points(self) -> Iterator[tuple[int, float | Json]]:
        """Yield milliseconds since 1970 and values; a histogram is its JSON. Raises ValueError if there are none."""
        numbers = self.values if self.value is None else [self.value]
        histograms = self.histograms if self.histogram is None else [self.histogram]
        if not numbers and not histograms:
            raise ValueError("a series has no value")
        for at, text in numbers:
            yield round(at * 1000), float(text)
        for at, histogram in histograms:
            yield round(at * 1000), Json(encode(histogram))


class Matrix(msgspec.Struct, frozen=True, tag_field="resultType", tag="matrix"):
    """The series of a range."""

    result: list[Series]


class Vector(msgspec.Struct, frozen=True, tag_field="resultType", tag="vector"):
    """The series of an instant."""

    result: list[Series]


class _Scalar(msgspec.Struct, frozen=True, tag_field="resultType", tag="scalar"):
    result: Point


class _String(msgspec.Struct, frozen=True, tag_field="resultType", tag="string"):
    result: Point


_result = msgspec.json.Decoder(Body[Matrix | Vector | _Scalar | _String])


class Features(msgspec.Struct, frozen=True):
    """What differs between servers: ranges that include both ends (M4), quoted label names, NaN as a marker (M6)."""

    victoria: bool = False
    closed: bool = False
    quotes: bool = False


def identify(reply: Reply, profile: Profile) -> tuple[Server, Features]:
    """Tell the server by its build information (M1)."""
    if error := replies.turned_away(reply, profile):
        raise error
    build: dict[str, Any] = {}
    try:
        build = decode(reply.body, Body[dict[str, Any]]).data
        if "X-Server-Hostname" in reply.headers:
            return Server("VictoriaMetrics"), Features(victoria=True)
    except ValueError:
        pass
    version = str(build.get("version") or "")[:100]
    major = int(match[1]) if (match := re.match(r"(\d{1,4})\.\d", version)) else 0
    if major < 2 or "application" in build:
        name = build.get("application") or "something other than Prometheus or VictoriaMetrics"
        reason = f"GET {BUILD.path} was answered with HTTP {reply.status} by {name}"[:500]
        hint = "check Host, Port and Path Prefix; Prometheus before 2.14, Thanos, Mimir and Cortex are not supported"
        raise ServerNotSupportedError(reason, hint=hint)
    return Server("Prometheus", version), Features(closed=major < 3, quotes=major >= 3)


def refusal(reply: Reply) -> QueryError | None:
    """Return the error of the API that an answer is, in the words of the server (M14); None if it is none."""
    try:
        refused = decode(reply.body, _Refusal)
    except ValueError:
        return None
    details: dict[str, str | int] = {"status": reply.status, "type": refused.error_type[:100]}
    return QueryError(f"the server refused: {refused.error[:2_000]}", details=details)


def samples(matrix: Matrix, features: Features) -> Iterator[Sample]:
    """Yield the samples of a matrix. NaN of VictoriaMetrics marks the end of a series: it stores no other (M6)."""
    for series in matrix.result:
        text = msgspec.json.encode(series.metric, order="sorted").decode()  # no two series share one
        for at, value in series.points():
            if not (features.victoria and value != value):
                yield Sample(at, text, series.metric, value)


def counted(vector: Vector) -> int:
    """Return the sum of a vector of counts; no series is no sample."""
    total = sum(float(value) for series in vector.result for _, value in series.points())
    if not (0 <= total < 2**53 and total == int(total)):
        raise ValueError(f"{total} is no number of samples")
    return int(total)


def number_cell(value: Any) -> Cell:
    """Return a value as a cell: what JSON has no number for is the server's text (M6)."""
    if isinstance(value, str) or isfinite(value):
        return value  # type: ignore[no-any-return]
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"


def form(path: str, **fields: str) -> HttpRequest:
    """Return a request with a form, which may be longer than a URL."""
    return HttpRequest("POST", path, urlencode(fields), "application/x-www-form-urlencoded")


def parse(text: str) -> list[ConsoleRequest]:
    """Split a console text at empty lines: REST requests, `query_range SPAN STEP PROMQL`, and PromQL (M12)."""
    requests, reader = list[ConsoleRequest](), ConsoleReader(text)
    for query, line, source, at in text_blocks(reader):
        if _REST.match(query):
            requests += rest_requests("\n" * (line - 1) + query, may_write)
            continue
        _check(source, at, reader)
        request = form("/api/v1/query", query=query)
        if span := _RANGE.match(query):
            end = int(time.time())
            start = end - int(span[1]) * _SECONDS[span[2]]
            request = form(
                "/api/v1/query_range", query=query[span.end() :], start=f"{start}", end=f"{end}", step=span[3]
            )
        requests.append(ConsoleRequest(request=request, writes=False, line=line))
    return requests


def may_write(request: HttpRequest) -> bool:
    """Return whether a request may change something: any but GET and those that only ask."""
    return request.method not in ("GET", "HEAD") and not (request.method == "POST" and _READING.match(request.path))


def _check(block: str, start: int, reader: ConsoleReader) -> None:
    """Refuse brackets and quotation marks without a counterpart."""
    opened: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(block):
        if token[0] in ('"', "'", "`"):
            raise reader.error(start + token.start(), "the text has no closing quotation mark")
        if token[0] in "([{":
            opened.append((token[0], token.start()))
        elif token[0] in _CLOSING and (not opened or opened.pop()[0] != _CLOSING[token[0]]):
            raise reader.error(start + token.start(), f"'{token[0]}' closes nothing")
    if opened:
        raise reader.error(start + opened[-1][1], f"'{opened[-1][0]}' is not closed")


def table(reply: Reply) -> Page:
    """Return the result of a query as rows.

    Raises:
        ValueError: The answer holds no result, or a series without a value.
        OverflowError: No cell holds one of its times.
    """
    body = decode(reply.body, _result)
    result = body.data
    all_series = result.result if isinstance(result, Matrix | Vector) else [Series({}, value=result.result)]
    names = column_names({label for series in all_series for label in series.metric})
    points: Iterator[tuple[dict[str, str], int, Any]] = (
        (series.metric, *point) for series in all_series for point in series.points()
    )
    if isinstance(result, _String):
        points = iter([({}, round(result.result[0] * 1000), result.result[1])])
    rows: list[dict[str, Cell]] = [
        {column: labels.get(label) for column, label in names.items()}
        | {TIME: instant_text(at), VALUE: number_cell(value)}
        for labels, at, value in islice(points, MAX_ROWS)
    ]
    total = len(rows) + sum(1 for _ in points)
    roles = {**dict.fromkeys(names, Role.KEY), TIME: Role.TIME}
    page = rows_page(rows, [*islice(names, MAX_COLUMNS - 2), TIME, VALUE], roles=roles)
    columns = [replace(column, kind=_COLUMNS.get(column.name, ColumnKind.TEXT)) for column in page.columns]
    notes = [*body.notes, *cut_notes(columns=len(names) + 2, rows=total)]
    return replace(page, columns=columns, notes=notes, total=total)
