"""Answers of the HTTP API: which server it is, samples, rows of a console; and the console's texts."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from dragoman_api import (
    Answer,
    Cell,
    Column,
    ColumnKind,
    ConsoleRequest,
    DragomanError,
    HttpRequest,
    Json,
    Note,
    Page,
    Profile,
    QueryError,
    Server,
    Written,
    replies,
)  # fmt: skip
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.console import AnswerKind
from dragoman_api.errors import ServerNotSupportedError
from dragoman_api.grid import MAX_ROWS
from dragoman_api.json_text import decode, encode, indented
from dragoman_api.kit.console_text import ConsoleReader, rest_requests, text_blocks
from dragoman_api.kit.page_columns import columns_cut

from .selectors import TIME, VALUE, Sample, column_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dragoman_api.replies import Reply

    Refused = Callable[[Any], DragomanError]  # makes the error of an answer

BUILD = HttpRequest("GET", "/api/v1/status/buildinfo")
FORM = "application/x-www-form-urlencoded"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_WARNINGS = 20
_READING = re.compile(r"/api/v1/(query|query_range|query_exemplars|series|labels|format_query|parse_query)(\?|$)")
_REST = re.compile(r"\s*(GET|HEAD|POST|PUT|PATCH|DELETE)\b", re.IGNORECASE)
_RANGE = re.compile(r"\s*query_range\s+(\d+)([smhdwy])\s+(\d+[smhdwy])\s+")
_TOKEN = re.compile(r"""#[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|["'`()\[\]{}]""", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_CLOSING = {")": "(", "]": "[", "}": "{"}


T = TypeVar("T")


class Body(msgspec.Struct, Generic[T], frozen=True, rename="camel"):
    """An answer of the API; `data` is null where an old server has an empty list."""

    status: Literal["success", "error"]
    data: T | msgspec.UnsetType | None = msgspec.UNSET
    error: str = ""
    error_type: str = ""
    warnings: list[str] | None = None


class Series(msgspec.Struct, frozen=True):
    """The samples of one series: all of a range, or one at an instant."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    histograms: list[tuple[float, dict[str, Any]]] = []
    value: tuple[float, str] | None = None
    histogram: tuple[float, dict[str, Any]] | None = None


class Matrix(msgspec.Struct, frozen=True, tag_field="resultType", tag="matrix"):
    """The series of a range."""

    result: list[Series]


class Vector(msgspec.Struct, frozen=True, tag_field="resultType", tag="vector"):
    """The series of an instant."""

    result: list[Series]


class _Scalar(msgspec.Struct, frozen=True, tag_field="resultType", tag="scalar"):
    result: tuple[float, str]


class _String(msgspec.Struct, frozen=True, tag_field="resultType", tag="string"):
    result: tuple[float, str]


TEXTS = msgspec.json.Decoder(Body[list[str]])
MATRIX = msgspec.json.Decoder(Body[Matrix])
VECTOR = msgspec.json.Decoder(Body[Vector])
_BUILD = msgspec.json.Decoder(Body[dict[str, Any]])
_RESULT = msgspec.json.Decoder(Body[Matrix | Vector | _Scalar | _String])


class Features(msgspec.Struct, frozen=True):
    """What differs between servers: ranges that include both ends (M4), quoted label names, NaN as a marker (M6)."""

    victoria: bool = False
    closed: bool = False
    quotes: bool = False


def identify(reply: Reply, profile: Profile, refused: Refused) -> tuple[Server, Features]:
    """Tell the server by its build information (M1)."""
    if error := replies.turned_away(reply, profile):
        raise error
    if reply.status in (401, 403):
        raise refused(reply)
    build: dict[str, Any] | None = None
    with suppress(DragomanError, ValueError):
        build = read(reply, refused, [], _BUILD)
    if "X-Server-Hostname" in reply.headers and build is not None:
        return Server("VictoriaMetrics"), Features(victoria=True)
    build = build or {}
    version = str(build.get("version") or "")[:100]
    major = int(match[1]) if (match := re.match(r"(\d{1,4})\.\d", version)) else 0
    if major < 2 or "application" in build:
        name = build.get("application") or "something other than Prometheus or VictoriaMetrics"
        reason = f"GET {BUILD.path} was answered with HTTP {reply.status} by {name}"[:500]
        hint = "check Host, Port and Path Prefix; Prometheus before 2.14, Thanos, Mimir and Cortex are not supported"
        raise ServerNotSupportedError(reason, hint=hint)
    return Server("Prometheus", version), Features(closed=major < 3, quotes=major >= 3)


def read(reply: Reply, refused: Refused, notes: list[Note], kind: msgspec.json.Decoder[Body[T]]) -> T | None:
    """Return the data of an answer; each of its warnings becomes a note.

    Raises:
        QueryError: The server refused.
        ValueError: The answer has another form.
    """
    succeeded = 200 <= reply.status < 300
    try:
        body = decode(reply.body, kind)
    except ValueError:
        if succeeded:
            raise
        raise refused(reply) from None
    if body.status == "error" and reply.status not in (401, 403):
        details: dict[str, str | int] = {"status": reply.status, "type": body.error_type[:100]}
        raise QueryError(f"the server refused: {body.error[:2_000]}", details=details)
    if not succeeded or body.data is msgspec.UNSET:
        raise refused(reply)
    for warning in (body.warnings or [])[:MAX_WARNINGS]:
        note = Note(code="partial-result", reason=f"the server warns: {warning[:500]}")
        if note not in notes and len(notes) < MAX_WARNINGS:
            notes.append(note)
    return body.data


def samples(matrix: Matrix, features: Features) -> Iterator[Sample]:
    """Yield the samples of a matrix. NaN of VictoriaMetrics marks the end of a series: it stores no other (M6)."""
    for series in matrix.result:
        labels, text = series.metric, series_text(series.metric)
        for at, value in series.values:
            number = float(value)
            if not (features.victoria and isnan(number)):
                yield Sample(round(at * 1000), text, labels, number)
        for at, histogram in series.histograms:
            yield Sample(round(at * 1000), text, labels, Json(encode(histogram)))


def counted(vector: Vector) -> int:
    """Return the sum of a vector of counts; no series is no sample."""
    total = sum(float(series.value[1] if series.value else "NaN") for series in vector.result) + 0.0
    if not (0 <= total < 2**53 and total.is_integer()):
        raise ValueError(f"{total} is no number of samples")
    return int(total)


def series_text(labels: dict[str, str]) -> str:
    """Return the text of a series: its labels as a JSON object, sorted, so that no two series share one."""
    return msgspec.json.encode(labels, order="sorted").decode()


def instant_text(at: int) -> str:
    """Return milliseconds since 1970 as RFC 3339 in UTC. Raises ValueError outside of the years 1 to 9999."""
    try:
        return (EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError as error:
        raise ValueError(f"{at} ms lies outside of the years 1 to 9999") from error


def number_cell(value: Any) -> Cell:
    """Return a value as a cell: what JSON has no number for is the server's text (M6)."""
    if isinstance(value, str) or isfinite(value):
        return value  # type: ignore[no-any-return]
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"


def parse(text: str) -> list[ConsoleRequest]:
    """Split a console text at empty lines: REST requests, `query_range SPAN STEP PROMQL`, and PromQL (M12)."""
    requests, reader = list[ConsoleRequest](), ConsoleReader(text)
    for plain, line, source, at in text_blocks(reader):
        if _REST.match(plain):
            rest = rest_requests("\n" * (line - 1) + plain, may_write)
            requests += rest
            continue
        _check(source, at, reader)
        path, form = "/api/v1/query", {"query": plain}
        if span := _RANGE.match(plain):
            end = int(time.time())
            start, path = end - int(span[1]) * _SECONDS[span[2]], "/api/v1/query_range"
            form = {"query": plain[span.end() :], "start": str(start), "end": str(end), "step": span[3]}
        requests.append(
            ConsoleRequest(request=HttpRequest("POST", path, urlencode(form), FORM), writes=False, line=line)
        )
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


def answer(request: HttpRequest, reply: Reply, refused: Refused) -> Answer:
    """Shape the answer to a console request: rows if it holds a query's result, else its JSON or text."""
    notes: list[Note] = []
    try:
        page = _table(read(reply, refused, notes, _RESULT), notes)
        return Answer(kind=AnswerKind.TABLE, status=reply.status, request=request, page=page)
    except (DragomanError, ValueError):
        kind, text = AnswerKind.JSON, ""
    try:
        text = indented(reply.body)
    except (ValueError, msgspec.MsgspecError):
        kind, text = AnswerKind.TEXT, reply.body.decode(errors="replace") or f"HTTP {reply.status}"
    return Answer(kind=kind, status=reply.status, request=request, text=text, notes=notes)


def _table(result: Matrix | Vector | _Scalar | _String | None, notes: list[Note]) -> Page:
    """Return the samples of a result as rows. Raises ValueError for a value or a time that no cell holds."""
    if result is None:
        raise ValueError("there is no result")
    rows = _rows(result)
    first = [*islice(rows, MAX_ROWS)]
    names = column_names({label for labels, _, _ in first for label in labels})
    label_columns = [*names.items()][: MAX_COLUMNS - 2]
    columns = [
        Column(name=name, type="label", kind=ColumnKind.TEXT, written=Written.NEVER) for name, _ in label_columns
    ]
    columns += [
        Column(name=TIME, type=TIME, kind=ColumnKind.TIMESTAMP, written=Written.NEVER),
        Column(name=VALUE, type=VALUE, kind=ColumnKind.FLOAT, written=Written.NEVER),
    ]
    total = len(first) + sum(1 for _ in rows)
    if total > len(first):
        notes.append(Note(code="rows-cut", reason=f"the first {len(first):,} of {total:,} rows are shown"))
    notes += columns_cut(len(names) + 2)
    cells: list[list[Cell]] = [
        [*(labels.get(label) for _, label in label_columns), at, value] for labels, at, value in first
    ]
    return Page(columns=columns, cells=cells, notes=notes, total=total)


def _rows(result: Matrix | Vector | _Scalar | _String) -> Iterator[tuple[dict[str, str], str, Cell]]:
    """Yield labels, time and value of each sample."""
    if isinstance(result, _String):
        yield {}, instant_text(round(result.result[0] * 1000)), result.result[1]
        return
    for series in [Series({}, value=result.result)] if isinstance(result, _Scalar) else result.result:
        if isinstance(result, Vector) and series.value is None and series.histogram is None:
            raise ValueError("a series has no value")
        for at, text in [*series.values, *([series.value] if series.value else [])]:
            yield series.metric, instant_text(round(at * 1000)), number_cell(float(text))
        for at, histogram in [*series.histograms, *([series.histogram] if series.histogram else [])]:
            yield series.metric, instant_text(round(at * 1000)), Json(encode(histogram))
