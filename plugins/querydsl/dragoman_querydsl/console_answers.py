"""Turns the reply to a console request into an answer: a grid, a table of an array, or text (E27, E38).

Aggregations are text, too, unless the request asks for tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import Answer, AnswerKind, Note, Page
from dragoman_api.grid import MAX_ROWS
from dragoman_api.json_text import decode, indented, widened
from dragoman_api.kit.console_answers import MAX_TABLES, chained, rows_page, text_answer
from dragoman_api.kit.exchanges import Exchange, ask
from dragoman_querydsl import console_aggregations, protocol
from dragoman_querydsl.grid.cells import parse, show
from dragoman_querydsl.search import Shards, Total, uncommented

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dragoman_api import ConsoleRequest, HttpRequest
    from dragoman_api.replies import Reply

JsonRow = dict[str, Raw]
_LEADING = ("_id", "_index", "_score")
_HIDDEN = ("_source", "fields", "_type")


class _Hits(msgspec.Struct):
    hits: list[JsonRow]
    total: Total | int | None = None


class _Item(msgspec.Struct):
    error: Raw = Raw()


class _Body(msgspec.Struct):
    """The keys that identify an answer, and the failures that a 200 may hide."""

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
    """One of several answers in a reply, as a reply of its own."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}


_rows = msgspec.json.Decoder(list[JsonRow])
_row = msgspec.json.Decoder(JsonRow)
_body = msgspec.json.Decoder(_Body)


def execute(console_request: ConsoleRequest) -> Exchange[Answer]:
    """Send one request exactly as parsed, and build its answer; an error status is an answer too."""
    request = console_request.request
    reply = yield from ask(request)
    notes: list[Note] = []
    if (
        not console_request.writes
        and reply.status == 200
        and _is_json(reply)
        and reply.body
        and not _formatted(reply.body)
    ):
        reply, notes = yield from _readable(request, reply)
    turned_away = protocol.retry_after(reply) is not None
    answer = text_answer(
        console_request, reply, lambda: protocol.exception(protocol.read(reply)).message, turned_away=turned_away
    )
    if answer.kind is AnswerKind.JSON:
        answer = _read(console_request, reply, answer, notes)
    return msgspec.structs.replace(answer, notes=[*notes, *answer.notes])


def _readable(request: HttpRequest, reply: Reply) -> Exchange[tuple[Reply, list[Note]]]:
    """Make an answer readable that a stored comment breaks."""
    reason = "a stored document is not valid JSON; it is shown without its comments"
    bare = uncommented(reply.body)
    if bare.certain and _formatted(bare.body):
        return _Part(bare.body, reply.status, reply.headers), [Note(code="answer-rewritten", reason=reason)]
    if protocol.moves_on(request.path):
        return reply, []
    # If asked to filter its answer, the server rewrites it.
    path = f"{request.path}{'&' if '?' in request.path else '?'}filter_path=*"
    again = yield from ask(msgspec.structs.replace(request, path=path))
    if again.status != 200 or not _formatted(again.body):
        return reply, []
    reason = "a stored document is not valid JSON; the answer was requested again, and its numbers may be rewritten"
    return again, [Note(code="answer-rewritten", reason=reason)]


def _is_json(reply: Reply) -> bool:
    return "json" in reply.headers.get("Content-Type", "")


def _formatted(body: bytes) -> str:
    try:
        return indented(body)
    except ValueError:
        return ""


def _read(console_request: ConsoleRequest, reply: Reply, plain: Answer, notes: list[Note]) -> Answer:
    try:
        if reply.body.lstrip()[:1] == b"[":
            return msgspec.structs.replace(plain, kind=AnswerKind.TABLE, page=_page(decode(reply.body, _rows)))
        body = decode(reply.body, _body)
    except ValueError:  # another shape of answer
        return plain
    if body.responses and "_msearch" in protocol.segments(plain.request.path):
        return _several(console_request, plain, body.responses, notes)
    if reply.status < 300:
        plain = msgspec.structs.replace(plain, failed=_hidden(body, reply))
    if console_request.tabular and bytes(body.aggregations):
        return _tables(plain, body, notes)
    if body.hits is None or bytes(body.aggregations) or bytes(body.suggest):
        return plain
    page = _grid(body.hits)
    return plain if page is None else msgspec.structs.replace(plain, kind=AnswerKind.GRID, page=page)


def _grid(hits: _Hits) -> Page | None:
    """Return the hits of a search as rows, None if they are not documents."""
    try:
        page = _page([_unfolded(hit) for hit in hits.hits], leading=_LEADING)
    except ValueError:
        return None
    total = hits.total
    if isinstance(total, Total):
        return msgspec.structs.replace(page, total=total.value, total_exact=total.relation == "eq")
    return msgspec.structs.replace(page, total=total)


def _tables(plain: Answer, body: _Body, notes: list[Note]) -> Answer:
    """Return the aggregations of a search as tables, below its hits; the answer as it was if they make none."""
    pages: list[tuple[str, Page]] = []
    if body.hits is not None and body.hits.hits and (grid := _grid(body.hits)) is not None:
        pages.append(("hits", grid))
    try:
        tables = console_aggregations.Tables(parse(widened(bytes(body.aggregations))))
        for table in tables:
            names, rows, roles = table.rows()
            pages.append((table.title, rows_page(rows, names, roles=roles, show=show)))
    except (ValueError, TypeError, AttributeError, RecursionError):  # another shape of answer
        return plain
    if not pages:
        return plain
    notes += tables.notes
    if bytes(body.suggest):
        notes.append(Note(code="suggestions-left-out", reason="the suggestions of the answer are in no table"))
    titled = len(pages) > 1
    return chained(plain, [(AnswerKind.TABLE, title if titled else "", page) for title, page in pages])


def _several(console_request: ConsoleRequest, whole: Answer, responses: list[Raw], notes: list[Note]) -> Answer:
    """Build a grid for each of several searches; the first one holds the whole text and the failures."""
    bare = msgspec.structs.replace(whole, kind=AnswerKind.JSON, notes=[])
    parts = [
        _read(console_request, _Part(body), msgspec.structs.replace(bare, text=_formatted(body)), notes)
        for body in map(bytes, responses)
    ]
    notes += [note for part in parts for note in part.notes]
    failed = [part.failed for part in parts if part.failed]
    failure = f"{len(failed)} of {len(parts)} searches failed; the first: {failed[0]}" if failed else ""
    answers: list[Answer] = []
    for number, part in enumerate(parts, 1):
        title = f"search {number} of {len(parts)}" if len(parts) > 1 else ""
        tables = _chain(part)
        answers += [
            msgspec.structs.replace(table, title=": ".join(filter(None, [title, table.title])), notes=[])
            for table in tables
        ]
    if len(answers) > MAX_TABLES:
        wording = "searches are shown as grids" if len(answers) == len(parts) else "grids and tables are shown"
        reason = f"the first {MAX_TABLES} of {len(answers)} {wording}"
        notes.append(Note(code="answers-cut", reason=reason, hint="send fewer in one request"))
    answer: Answer | None = None
    for part in reversed(answers[:MAX_TABLES]):
        answer = msgspec.structs.replace(part, next=answer)
    first = answer if answer is not None and answer.page is not None else whole
    return msgspec.structs.replace(first, text=whole.text, failed=failure, notes=whole.notes)


def _chain(answer: Answer | None) -> Iterator[Answer]:
    while answer is not None:
        yield answer
        answer = answer.next


def _unfolded(hit: JsonRow) -> JsonRow:
    """Merge the document's keys with the hit's own; of two equal names the document's comes first."""
    row = {name: hit[name] for name in _LEADING if name in hit}
    parts = [("_source", _inner(hit, "_source")), ("fields", _inner(hit, "fields"))]
    parts.append(("hit", {name: raw for name, raw in hit.items() if name not in (*_LEADING, *_HIDDEN)}))
    for prefix, part in parts:
        for name, raw in part.items():
            row[name if name not in row else f"{prefix}.{name}"] = raw
    return row


def _inner(hit: JsonRow, name: str) -> JsonRow:
    return decode(bytes(hit[name]), _row) if name in hit else {}


def _page(rows: list[JsonRow], *, leading: Iterable[str] = ()) -> Page:
    page_rows = rows[:MAX_ROWS]
    names = {name for row in page_rows for name in row}
    order = [
        *dict.fromkeys([*(name for name in leading if name in names), *(name for row in page_rows for name in row)])
    ]
    read = [{name: parse(widened(bytes(raw))) for name, raw in row.items()} for row in page_rows]
    return rows_page([*read, *rows[MAX_ROWS:]], order, show=show)


def _hidden(body: _Body, reply: Reply) -> str:
    """Return the failures that an answer with status 200 hides."""
    texts = []
    if bytes(body.error):
        texts.append(protocol.exception(protocol.read(reply)).message)
    if body.errors:
        failed = [item.error for operation in body.items for item in operation.values() if bytes(item.error)]
        texts.append(f"{len(failed)} of {len(body.items)} items failed{_first(failed)}")
    if body.timed_out:
        texts.append("the request timed out on the server: the answer is partial")
    if body.shards is not None and body.shards.failed:
        failures = body.shards.failures
        texts.append(f"{body.shards.failed} of {body.shards.total} shards failed{_first(failures)}")
    if body.failures:
        texts.append(f"failures: {len(body.failures)}{_first(body.failures)}")
    return "; ".join(texts)


def _first(failures: list[Raw]) -> str:
    """Return the cause of the first failure, which is the failure itself or a member of it."""
    for failure in map(msgspec.json.decode, failures):
        inner = failure.get("reason") or failure.get("cause") if isinstance(failure, dict) else None
        cause = inner if isinstance(inner, dict) else failure
        text = protocol.read(_Part(msgspec.json.encode({"error": cause}))).text
        return f"; the first: {text}" if text else ""
    return ""
