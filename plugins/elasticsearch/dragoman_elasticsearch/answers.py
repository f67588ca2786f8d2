"""A console request to its answer: search results as a grid, arrays as a table, all else as text (E27, E38)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import Answer, AnswerKind, Column, ColumnKind, Note, Page
from dragoman_api.columns import MAX_COLUMNS

from . import faults
from .documents import parse, show
from .search import Shards, Total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_api import ConsoleRequest, HttpRequest

    from .exchange import Exchange, Reply

Row = dict[str, Raw]
_LEADING = ("_id", "_index", "_score")
_HIDDEN = ("_source", "fields", "_type")


class _Hits(msgspec.Struct):
    hits: list[Row]
    total: Total | int | None = None


class _Body(msgspec.Struct):
    """What tells one answer from another, and what a 200 may hide."""

    hits: _Hits | None = None
    aggregations: Raw = Raw()
    suggest: Raw = Raw()
    errors: bool = False
    timed_out: bool = False
    shards: Shards | None = msgspec.field(name="_shards", default=None)
    failures: list[Raw] = []


_rows = msgspec.json.Decoder(list[Row])
_row = msgspec.json.Decoder(Row)
_body = msgspec.json.Decoder(_Body)


def execute(asked: ConsoleRequest) -> Exchange[Answer]:
    """Send one request exactly as parsed and shape its answer; an error status is an answer too."""
    request = asked.request
    reply = yield request
    notes: list[Note] = []
    if not asked.writes and reply.status == 200 and _is_json(reply) and reply.body and not _formatted(reply.body):
        # A stored comment breaks every answer with the document in it; filtered, the answer is written anew.
        path = f"{request.path}{'&' if '?' in request.path else '?'}filter_path=*"
        again = yield msgspec.structs.replace(request, path=path)
        if again.status == 200 and _formatted(again.body):
            reply = again
            reason = "a stored document is no JSON; the answer was asked for again and numbers may be written anew"
            notes.append(Note(code="answer-rewritten", reason=reason))
    return _shape(request, reply, notes)


def _is_json(reply: Reply) -> bool:
    return "json" in reply.headers.get("Content-Type", "")


def _formatted(body: bytes) -> str:
    try:
        return msgspec.json.format(body, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _shape(request: HttpRequest, reply: Reply, notes: list[Note]) -> Answer:
    page, kind = None, AnswerKind.TEXT
    text = _formatted(reply.body) if _is_json(reply) else ""
    if text:
        kind, page, said = _read(reply.body)
        notes += said
    elif request.method == "HEAD":
        headers = (f"{name}: {value}" for name, value in reply.headers.items())
        text = "\n".join([f"HTTP {reply.status}", *headers])
    if not 200 <= reply.status < 300 and request.method != "HEAD":
        reason = faults.error(faults.read(reply)).message
        notes.append(Note(code="http-error", reason=f"HTTP {reply.status}: {reason}"))
    text = text or reply.body.decode(errors="replace")
    return Answer(kind=kind, status=reply.status, request=request, page=page, text=text, notes=notes)


def _read(body: bytes) -> tuple[AnswerKind, Page | None, list[Note]]:
    try:
        if body.lstrip()[:1] == b"[":
            return AnswerKind.TABLE, _page(_rows.decode(body)), []
        answer = _body.decode(body)
    except msgspec.DecodeError:  # an array of other things, or keys of these names with another meaning
        return AnswerKind.JSON, None, []
    notes = _warnings(answer)
    if answer.hits is None or bytes(answer.aggregations) or bytes(answer.suggest):
        return AnswerKind.JSON, None, notes
    try:
        page = _page([_unfolded(hit) for hit in answer.hits.hits], leading=_LEADING)
    except msgspec.DecodeError:
        return AnswerKind.JSON, None, notes
    total = answer.hits.total
    if isinstance(total, Total):
        page = msgspec.structs.replace(page, total=total.value, total_exact=total.relation == "eq")
    else:
        page = msgspec.structs.replace(page, total=total)
    return AnswerKind.GRID, page, notes


def _unfolded(hit: Row) -> Row:
    """Lay the document's keys beside the hit's own; where names meet, the document's come first."""
    row = {name: hit[name] for name in _LEADING if name in hit}
    parts = [("_source", _inner(hit, "_source")), ("fields", _inner(hit, "fields"))]
    parts.append(("hit", {name: raw for name, raw in hit.items() if name not in (*_LEADING, *_HIDDEN)}))
    for prefix, part in parts:
        for name, raw in part.items():
            row[name if name not in row else f"{prefix}.{name}"] = raw
    return row


def _inner(hit: Row, name: str) -> Row:
    return _row.decode(hit[name]) if name in hit else {}


def _page(rows: list[Row], *, leading: Iterable[str] = ()) -> Page:
    names = list(dict.fromkeys([*(name for name in leading if any(name in row for row in rows)), *_union(rows)]))
    notes = []
    if len(names) > MAX_COLUMNS:
        reason = f"{len(names)} columns; the first {MAX_COLUMNS} are shown"
        notes.append(Note(code="columns-cut", reason=reason))
        del names[MAX_COLUMNS:]
    return Page(
        columns=[Column(name=name, type="", kind=ColumnKind.OTHER, read_only=True) for name in names],
        cells=show([[parse(bytes(row[name])) if name in row else None for name in names] for row in rows]),
        notes=notes,
    )


def _union(rows: Iterable[Row]) -> Iterable[str]:
    return (name for row in rows for name in row)


def _warnings(answer: _Body) -> list[Note]:
    """Say what an answer with status 200 hides."""
    notes = []
    if answer.errors:
        notes.append(Note(code="partial-failure", reason="some items failed: see errors in the answer"))
    if answer.timed_out:
        notes.append(Note(code="partial-result", reason="the request timed out on the server: the answer is partial"))
    if answer.shards is not None and answer.shards.failed:
        reason = f"{answer.shards.failed} of {answer.shards.total} shards failed"
        notes.append(Note(code="partial-result", reason=reason))
    if answer.failures:
        notes.append(
            Note(code="partial-failure", reason=f"{len(answer.failures)} failures: see failures in the answer")
        )
    return notes
