"""Answers to console requests: a reply as JSON, text or tables, and the console of a server that speaks REST.

A driver whose console takes `GET /path` and a JSON body has both hooks from the mixin::

    class Driver(RestConsole):
        console_prefix = "/api/v2"  # a path may be typed without it

One that reads more from some replies begins with `text_answer`, which says what every answer has to say, and puts
tables in place of the text: `rows_page` makes a page of rows that no object describes, `chained` one answer of several
pages.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from dragoman_api.cells import MISSING
from dragoman_api.columns import MAX_COLUMNS, Column, ColumnKind, Note, Role, Written
from dragoman_api.console import Answer, AnswerKind, ConsoleRequest, ConsoleText
from dragoman_api.grid import MAX_ROWS, Page
from dragoman_api.hookspecs import hookimpl
from dragoman_api.json_text import decode, exact_number, indented

from .console_text import rest_requests
from .exchanges import unsure
from .page_columns import cell_of
from .rest import RestClient
from .row_changes import unknown_note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.changes import HttpRequest
    from dragoman_api.replies import Reply

MAX_TABLES = 16
"""Tables of one answer at most, since each is nested in the one before; the answer's text holds the rest."""

_READS = ("GET", "HEAD", "OPTIONS")
_NO_ROLES: Mapping[str, Role] = MappingProxyType({})
_rows = msgspec.json.Decoder(list[dict[str, Any]], float_hook=exact_number)


def text_answer(
    console_request: ConsoleRequest, reply: Reply, reason: Callable[[], str], *, turned_away: bool = False
) -> Answer:
    """Return a reply as formatted JSON or as text; an error status is an answer too, and has a note.

    Args:
        console_request: The request.
        reply: The server's reply.
        reason: Returns why the server refused; called for an error status only.
        turned_away: The body says that the server was too busy to begin, so that nothing was written.
    """
    request, notes = console_request.request, list[Note]()
    kind, text = _read(request, reply, notes)
    if not 200 <= reply.status < 300:
        why = reason()
        if request.method != "HEAD":
            notes.append(Note(code="http-error", reason=f"HTTP {reply.status}: {why}"))
        if console_request.writes and unsure(reply.status, turned_away=turned_away):
            notes.append(unknown_note(why))
    return Answer(kind=kind, status=reply.status, request=request, text=text, notes=notes)


def _read(request: HttpRequest, reply: Reply, notes: list[Note]) -> tuple[AnswerKind, str]:
    if request.method == "HEAD" or not reply.body:
        headers = reply.headers.items() if request.method == "HEAD" else ()
        return AnswerKind.TEXT, "\n".join([f"HTTP {reply.status}", *(f"{name}: {value}" for name, value in headers)])
    content_type = reply.headers.get("Content-Type", "")
    if "json" in content_type or reply.body.lstrip()[:1] in (b"{", b"["):
        try:
            return AnswerKind.JSON, indented(reply.body)
        except ValueError:
            pass
    try:
        return AnswerKind.TEXT, reply.body.decode()
    except UnicodeDecodeError:
        form = content_type or "an unknown type"
        reason = f"the server answered {len(reply.body):,} bytes of {form}, which is no text and is not shown"
        notes.append(Note(code="answer-binary", reason=reason, hint="ask for JSON"))
        return AnswerKind.TEXT, ""


def cut_notes(*, columns: int, rows: int) -> list[Note]:
    """Return the notes on a table of which a page holds only the first columns or rows; none if it holds all."""
    notes = []
    if rows > MAX_ROWS:
        notes.append(Note(code="rows-cut", reason=f"{rows:,} rows; the first {MAX_ROWS:,} are shown"))
    if columns > MAX_COLUMNS:
        notes.append(Note(code="columns-cut", reason=f"{columns} columns; the first {MAX_COLUMNS} are shown"))
    return notes


def _cells(table: list[list[Any]]) -> list[list[Cell]]:
    return [[*map(cell_of, row)] for row in table]


def rows_page(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str] | None = None,
    *,
    roles: Mapping[str, Role] = _NO_ROLES,
    show: Callable[[list[list[Any]]], list[list[Cell]]] = _cells,
) -> Page:
    """Return rows as a page of columns that nothing describes; what a row does not hold is `MISSING`.

    Args:
        rows: The rows.
        names: The columns; None for all that the rows hold, in the order of their first appearance.
        roles: What columns are for, by name. With ``KEY``, the groups that figures are of, the innermost last, and
            ``TIME``, a surface can draw the figures.
        show: Turns values into cells.
    """
    names = [*dict.fromkeys(name for row in rows[:MAX_ROWS] for name in row)] if names is None else names
    notes = cut_notes(columns=len(names), rows=len(rows))
    names, rows = names[:MAX_COLUMNS], rows[:MAX_ROWS]
    return Page(
        columns=[
            Column(name=name, type="", kind=ColumnKind.OTHER, role=roles.get(name, Role.NONE), written=Written.NEVER)
            for name in names
        ],
        cells=show([[row.get(name, MISSING) for name in names] for row in rows]),
        notes=notes,
    )


def chained(answer: Answer, pages: Sequence[tuple[AnswerKind, str, Page]]) -> Answer:
    """Return an answer as one for each page, the first with its text and notes.

    Args:
        answer: The answer as text.
        pages: At least one, each with how it is shown and its title.
    """
    notes, following = [*answer.notes], None
    if len(pages) > MAX_TABLES:
        reason = f"the first {MAX_TABLES} of {len(pages)} tables are shown"
        notes.append(Note(code="answers-cut", reason=reason, hint="ask for fewer in one request"))
    for kind, title, page in reversed(pages[:MAX_TABLES]):
        following = Answer(
            kind=kind, status=answer.status, request=answer.request, page=page, title=title, next=following
        )
    assert following is not None
    return replace(following, text=answer.text, failed=answer.failed, notes=notes)


class RestConsole(RestClient):
    """The console hooks of a server that speaks REST: a method, a path, and a JSON body if there is one.

    A list of objects is a table.

    Attributes:
        console_prefix: What is put before a path that does not begin with it.
    """

    console_prefix: str = ""

    def console_writes(self, request: HttpRequest) -> bool:
        """Return whether a request may change something on the server; override it for searches by POST."""
        return request.method not in _READS

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        """Split a text into requests."""
        prefix = self.console_prefix

        def prefixed(request: HttpRequest) -> HttpRequest:
            beneath = request.path == prefix or request.path.startswith((f"{prefix}/", f"{prefix}?"))
            return request if beneath else replace(request, path=f"{prefix}{request.path}")

        parsed = rest_requests(text.text, lambda request: self.console_writes(prefixed(request)))
        return [replace(console_request, request=prefixed(console_request.request)) for console_request in parsed]

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        """Send one request as it stands; an error status is an answer too."""
        reply = await self.send(request.request, read=not request.writes)
        answer = text_answer(request, reply, lambda: self.error(reply).message)
        if answer.kind is AnswerKind.JSON and answer.text.startswith("["):
            try:
                rows: list[dict[str, Any]] = decode(reply.body, _rows)
            except ValueError:  # a list of something else
                return answer
            return replace(answer, kind=AnswerKind.TABLE, page=rows_page(rows))
        return answer
