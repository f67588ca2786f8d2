"""A console request to its answer: search results as a grid, arrays as a table, all else as text (E27, E38)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import Answer, AnswerKind, Column, ColumnKind, Note, Page
from dragoman_api.columns import MAX_COLUMNS

from . import faults, routes
from .documents import parse, show
from .search import Shards, Total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_api import ConsoleRequest, HttpRequest
    from dragoman_api.exchanges import Reply

    from .exchange import Exchange

Row = dict[str, Raw]
MAX_PARTS = 16
"""Grids of one answer at most, for each is nested in the one before; the answer's text holds the rest."""

_LEADING = ("_id", "_index", "_score")
_HIDDEN = ("_source", "fields", "_type")


class _Hits(msgspec.Struct):
    hits: list[Row]
    total: Total | int | None = None


class _Item(msgspec.Struct):
    error: Raw = Raw()


class _Body(msgspec.Struct):
    """What tells one answer from another, and what a 200 may hide."""

    hits: _Hits | None = None
    aggregations: Raw = Raw()
    suggest: Raw = Raw()
    errors: bool = False
    items: list[dict[str, _Item]] = []
    timed_out: bool = False
    shards: Shards | None = msgspec.field(name="_shards", default=None)
    failures: list[Raw] = []
    responses: list[Raw] = []
    error: Raw = Raw()


class _Part(msgspec.Struct):
    """One of several answers in one, as a reply of its own."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = {}


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
    text = _formatted(reply.body) if _is_json(reply) else ""
    if text:
        answer = _read(request, reply, text, notes)
    else:
        text = reply.body.decode(errors="replace")
        if request.method == "HEAD":
            headers = (f"{name}: {value}" for name, value in reply.headers.items())
            text = "\n".join([f"HTTP {reply.status}", *headers])
        answer = Answer(kind=AnswerKind.TEXT, status=reply.status, request=request, text=text)
    if not 200 <= reply.status < 300 and request.method != "HEAD":
        reason = faults.error(faults.read(reply)).message
        notes.append(Note(code="http-error", reason=f"HTTP {reply.status}: {reason}"))
    return msgspec.structs.replace(answer, notes=notes)


def _read(request: HttpRequest, reply: Reply, text: str, notes: list[Note]) -> Answer:
    plain = Answer(kind=AnswerKind.JSON, status=reply.status, request=request, text=text)
    try:
        if reply.body.lstrip()[:1] == b"[":
            return msgspec.structs.replace(plain, kind=AnswerKind.TABLE, page=_page(_rows.decode(reply.body)))
        found = _body.decode(reply.body)
    except msgspec.DecodeError:  # an array of other things, or keys of these names with another meaning
        return plain
    if found.responses and "_msearch" in routes.segments(request.path):
        return _several(plain, found.responses, notes)
    if reply.status < 300:
        plain = msgspec.structs.replace(plain, failed=_hidden(found, reply))
    if found.hits is None or bytes(found.aggregations) or bytes(found.suggest):
        return plain
    try:
        page = _page([_unfolded(hit) for hit in found.hits.hits], leading=_LEADING)
    except msgspec.DecodeError:
        return plain
    total = found.hits.total
    if isinstance(total, Total):
        page = msgspec.structs.replace(page, total=total.value, total_exact=total.relation == "eq")
    else:
        page = msgspec.structs.replace(page, total=total)
    return msgspec.structs.replace(plain, kind=AnswerKind.GRID, page=page)


def _several(whole: Answer, responses: list[Raw], notes: list[Note]) -> Answer:
    """Give several searches a grid each; the first one keeps the text of all, and tells what failed among them."""
    if len(responses) > MAX_PARTS:
        reason = f"the first {MAX_PARTS} of {len(responses)} searches are shown as grids"
        notes.append(Note(code="answers-cut", reason=reason, hint="send fewer in one request"))
    parts = [_read(whole.request, _Part(bytes(raw)), _formatted(bytes(raw)), notes) for raw in responses]
    failed = [part.failed for part in parts if part.failed]
    said = f"{len(failed)} of {len(parts)} searches failed; the first: {failed[0]}" if failed else ""
    answer: Answer | None = None
    for number, part in reversed([*enumerate(parts[:MAX_PARTS], 1)]):
        title = f"search {number} of {len(parts)}" if len(parts) > 1 else ""
        answer = msgspec.structs.replace(part, title=title, next=answer)
    first = answer if answer is not None and answer.kind is AnswerKind.GRID else whole
    return msgspec.structs.replace(first, text=whole.text, failed=said)


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


def _hidden(found: _Body, reply: Reply) -> str:
    """Say what an answer with status 200 hides."""
    said = []
    if bytes(found.error):
        said.append(faults.error(faults.read(reply)).message)
    if found.errors:
        failed = [item.error for each in found.items for item in each.values() if bytes(item.error)]
        said.append(f"{len(failed)} of {len(found.items)} items failed{_first(failed)}")
    if found.timed_out:
        said.append("the request timed out on the server: the answer is partial")
    if found.shards is not None and found.shards.failed:
        failures = found.shards.failures
        said.append(f"{found.shards.failed} of {found.shards.total} shards failed{_first(failures)}")
    if found.failures:
        said.append(f"failures: {len(found.failures)}{_first(found.failures)}")
    return "; ".join(said)


def _first(failures: list[Raw]) -> str:
    """Tell the cause of the first failure; it stands in the failure, or in a member of it."""
    for failure in map(msgspec.json.decode, failures):
        inner = failure.get("reason") or failure.get("cause") if isinstance(failure, dict) else None
        cause = inner if isinstance(inner, dict) else failure
        text = faults.read(_Part(msgspec.json.encode({"error": cause}))).text
        return f"; the first: {text}" if text else ""
    return ""
