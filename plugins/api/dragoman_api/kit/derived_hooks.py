"""Hooks derived from one another, where an author leaves them out.

Each is a function over the hook that it builds on, and a mixin that makes it a hook of a driver::

    class Driver(PageFromExport, CountFromExport):  # writes connect, list_objects, describe_object and export_rows
        ...

They cost more than a hook of the server's own: a count reads every row, and a page every row before it. A driver mixes
in a derived hook only where the server has no better way.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from dragoman_api.cells import as_bytes, cut, is_cut
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Column, ColumnKind, Note
from dragoman_api.errors import QueryError, UnsupportedOperationError, WindowExceededError
from dragoman_api.exports import ExportForm, ExportPart, ExportRequest
from dragoman_api.grid import CellRequest, CountRequest, Page, PageRequest, RowKey, check_id
from dragoman_api.hookspecs import hookimpl
from dragoman_api.json_text import decode, encode, exact_number, widened
from dragoman_api.wording import quoted

from . import cursors
from .line_parts import RowLines, export_parts
from .page_columns import sortable
from .rest import RestClient, health

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.columns import Description
    from dragoman_api.connections import Health
    from dragoman_api.grid import RowId

    FetchPage = Callable[[PageRequest], Awaitable[Page]]
    FetchCell = Callable[[CellRequest], Awaitable[Cell]]
    ExportRows = Callable[[ExportRequest], AsyncIterator[ExportPart]]

WALK = 100_000
"""Rows that a page derived from an export reads at most, for the page and its total."""

SAME_ROWS = ("object", "filter", "time", "tenant", "revision")
"""Attributes that say which rows a page, a count or an export reads."""

_ROWS = 1_000  # of one page
_SEEN = 100_000  # cursors of one walk that are remembered at once
_row = msgspec.json.Decoder(dict[str, Any], float_hook=exact_number)


class PingByPath(RestClient):
    """A ping that gets a path, which should need the credentials and cost the server little.

    Attributes:
        ping_path: The path.
    """

    ping_path: str = "/"

    @hookimpl
    async def ping(self) -> Health:
        """Get the path; a failure is an answer, not an exception."""
        return await health(self._get_path())

    async def _get_path(self) -> None:
        self.check(await self.send(HttpRequest("GET", self.ping_path)))


async def count_from_pages(fetch_page: FetchPage, request: CountRequest, *, limit: int = _ROWS) -> int:
    """Count rows exactly: by the total of the first page, or page by page if that is missing or a lower bound.

    Raises:
        QueryError: A page is partial, or the server repeats a cursor.
        WindowExceededError: The server does not reach the last row, so the number is unknown.
    """
    page_request = PageRequest(**_same_rows(request), limit=limit)
    rows = 0
    async for page in _pages(fetch_page, page_request):
        if not rows and page.total is not None and page.total_exact:
            return page.total
        rows += len(page.cells)
    return rows


async def count_from_export(export_rows: ExportRows, request: CountRequest) -> int:
    """Count rows exactly, by exporting all of them.

    Raises:
        QueryError: A part of the export has more or fewer lines than rows.
    """
    export_request = ExportRequest(**_same_rows(request), form=ExportForm.ROWS, keep_alive=0)
    async with _closing(export_rows(export_request)) as parts:
        return sum([_checked(part, request.object).rows async for part in parts])


async def page_from_export(export_rows: ExportRows, request: PageRequest, columns: Sequence[Column]) -> Page:
    """Cut a page out of an export, in the export's order.

    Args:
        export_rows: The hook; a row holds each column at `Column.path`.
        request: The page. A sort is dropped with a note ``sort-dropped``; a cursor is refused.
        columns: The object's columns. The values of the key columns are the id of a row, which is empty if they
            cannot be one; no guard protects it.

    Raises:
        WindowExceededError: The page ends past row 100,000.
        QueryError: A column does not exist or is not exported, or a part of the export has more or fewer lines than
            rows.
    """
    cursors.refuse(request)
    page_columns = _chosen(request, columns)
    first, end = request.offset, request.offset + request.limit
    if end > WALK:
        reason = f"row {end:,} lies past the {WALK:,} rows that pages of '{request.object}' reach"
        hint = "narrow the filter, or export, which has no limit"
        raise WindowExceededError(reason, hint=hint, details={"window": WALK, "asked": end})
    names = request.columns and [*request.columns, *(column.name for column in columns if column.is_key)]
    export_request = ExportRequest(
        **_same_rows(request),
        form=ExportForm.ROWS,
        columns=names and list(dict.fromkeys(names)),
        keep_alive=0,
    )
    reason = "rows come in the order of the export"
    columns_by_name = {column.name: column for column in columns}
    notes = sortable(request.sort, columns_by_name.get, lambda _: reason)[1]
    rows: list[dict[str, Any]] = []
    at, ended = 0, True
    total: int | None = None
    async with _closing(export_rows(export_request)) as parts:
        async for part in parts:
            _checked(part, request.object)
            if at < end and at + part.rows > first:
                lines = part.data.split(b"\n")[max(0, first - at) : min(end - at, part.rows)]
                rows += [decode(widened(line), _row) for line in lines]
            notes += [note for note in part.notes if note not in notes]
            at, total = at + part.rows, part.total
            if at >= end and (total is not None or not request.total or at >= WALK):
                ended = False
                break
    key = [column for column in columns if column.is_key]
    return Page(
        columns=page_columns,
        cells=[[_cell(_value(row, column.path), column.kind) for column in page_columns] for row in rows],
        keys=[RowKey(request.object, _id(row, key)) for row in rows] if key else [],
        notes=notes,
        total=(at if ended or total is None else total) if request.total else None,
        total_exact=ended or total is not None or not request.total,
        offset=request.offset,
    )


async def export_from_pages(
    fetch_page: FetchPage, request: ExportRequest, *, fetch_cell: FetchCell | None = None, limit: int = _ROWS
) -> AsyncIterator[ExportPart]:
    """Export the rows of pages, one after another; a line holds each column at `Column.path`, or under its name.

    A note ``derived-export`` says what such an export is; the notes of pages follow, each once. It has checkpoints if
    pages have cursors; by offset it could not continue exactly.

    Args:
        fetch_page: The hook.
        request: The export.
        fetch_cell: Reads the cells that a page shows cut.
        limit: Rows of a page.

    Raises:
        UnsupportedOperationError: The form is `ExportForm.BULK`.
        QueryError: A page is partial, the server repeats a cursor, a cell is cut and cannot be read whole, or the
            checkpoint belongs to another export.
        WindowExceededError: The server does not reach the last row.
    """
    if request.form is ExportForm.BULK:
        raise UnsupportedOperationError("this export is made of pages, which hold no input for a bulk endpoint")
    query = cursors.query_of(request)
    rows, cursor = cursors.continued(request, tuple[int, str]) or (0, None)
    page_request = PageRequest(
        **_same_rows(request),
        columns=request.columns,
        offset=rows,
        limit=limit,
        cursor=cursor,
    )
    total = None
    sent_notes: list[Note] = []
    async for page in _pages(fetch_page, page_request):
        notes = [] if sent_notes or request.checkpoint is not None else [_derived(page)]
        notes += [note for note in page.notes if note not in sent_notes]
        sent_notes += notes
        total = page.total if page.total is not None and page.total_exact else total
        rows += len(page.cells)
        checkpoint = None if page.next is None else cursors.seal(query, [rows, page.next])
        lines = await _lines(page, fetch_cell, request.revision)
        for part in export_parts(lines, total=total, checkpoint=checkpoint, notes=notes):
            yield part


class _SeenCursors:
    """Digests of the cursors of a walk, at most `_SEEN`; of more cursors it keeps every second, then every fourth one.

    It finds every cycle: at once while it keeps all of them, later after another turn of the cycle.
    """

    def __init__(self) -> None:
        self._digests: dict[bytes, None] = {}
        self._every, self._number = 1, 0

    def add(self, cursor: str) -> bool:
        """Return whether a cursor is new, and remember it."""
        digest = blake2b(cursor.encode(), digest_size=16).digest()
        if digest in self._digests:
            return False
        if self._number % self._every == 0:
            self._digests[digest] = None
        self._number += 1
        if len(self._digests) > _SEEN:
            self._digests = dict.fromkeys([*self._digests][::2])
            self._every *= 2
        return True


class _Pages(Protocol):
    async def fetch_page(self, request: PageRequest) -> Page: ...


class _Exports(Protocol):
    def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]: ...

    async def describe_object(self, name: str) -> Description: ...


class CountFromPages:
    """Count rows from `fetch_page`, see `count_from_pages`."""

    @hookimpl
    async def count_rows(self: _Pages, request: CountRequest) -> int:
        return await count_from_pages(self.fetch_page, request)


class CountFromExport:
    """Count rows from `export_rows`, see `count_from_export`."""

    @hookimpl
    async def count_rows(self: _Exports, request: CountRequest) -> int:
        return await count_from_export(self.export_rows, request)


class PageFromExport:
    """Fetch pages from `export_rows` and `describe_object`, see `page_from_export`."""

    @hookimpl
    async def fetch_page(self: _Exports, request: PageRequest) -> Page:
        columns = (await self.describe_object(request.object)).columns
        return await page_from_export(self.export_rows, request, columns)


class ExportFromPages:
    """Export rows from `fetch_page`, and from `fetch_cell` if the driver has it, see `export_from_pages`."""

    @hookimpl
    async def export_rows(self: _Pages, request: ExportRequest) -> AsyncIterator[ExportPart]:
        fetch_cell = getattr(self, "fetch_cell", None)
        async with _closing(export_from_pages(self.fetch_page, request, fetch_cell=fetch_cell)) as parts:
            async for part in parts:
                yield part


async def _pages(fetch_page: FetchPage, request: PageRequest) -> AsyncIterator[Page]:
    """Yield pages that have rows, by cursor if pages have one, else by offset until a total or an empty page ends."""
    seen = _SeenCursors()
    while True:
        if request.cursor is not None and not seen.add(request.cursor):
            raise QueryError(f"the pages of '{request.object}' end here: the server repeated a cursor")
        page = await fetch_page(request)
        if partial := [note for note in page.notes if note.code == "partial-result"]:
            raise QueryError(f"a page of '{request.object}' is partial: {partial[0].reason}")
        if page.cells:
            yield page
        if page.next is None and (request.cursor is not None or not page.cells or _is_whole(page, request)):
            return
        offset = request.offset + len(page.cells)
        request = msgspec.structs.replace(request, offset=offset, cursor=page.next, total=False)


def _is_whole(page: Page, request: PageRequest) -> bool:
    """Return whether the rows end with a page: a driver whose pages have cursors need not take an offset after it."""
    return page.total_exact and page.total == request.offset + len(page.cells)


def _checked(part: ExportPart, name: str) -> ExportPart:
    """Return a part that has one line per row.

    Raises:
        QueryError: It has more or fewer, so that no row could be told from the next.
    """
    lines = part.data.count(b"\n")
    if lines != part.rows or (part.data and not part.data.endswith(b"\n")):
        raise QueryError(f"a part of the export of '{name}' names {part.rows:,} rows, but has {lines:,} whole lines")
    return part


def _closing(parts: AsyncIterator[ExportPart]) -> aclosing[AsyncGenerator[ExportPart, None]]:
    return aclosing(cast("AsyncGenerator[ExportPart, None]", parts))  # by the colour of the hook


def _chosen(request: PageRequest, columns: Sequence[Column]) -> list[Column]:
    columns_by_name = {column.name: column for column in columns}
    names = request.columns or [name for name, column in columns_by_name.items() if column.path]
    if unknown := [name for name in names if name not in columns_by_name]:
        raise QueryError(f"'{request.object}' has no column {quoted(unknown)}")
    if hidden := [name for name in names if not columns_by_name[name].path]:
        raise QueryError(f"an export of '{request.object}' lacks {quoted(hidden)}, so pages lack it, too")
    return [columns_by_name[name] for name in names]


def _same_rows(request: PageRequest | CountRequest | ExportRequest) -> dict[str, Any]:
    """Return what says which rows a request reads."""
    return {name: getattr(request, name) for name in SAME_ROWS}


def _id(row: Any, key: Sequence[Column]) -> RowId:
    """Return a row's id; empty, so that no change can name the row, if its key columns hold none."""
    try:
        parts = [_part(_value(row, column.path), column.kind) for column in key]
        return check_id(parts if len(parts) > 1 else _single(parts[0]))
    except ValueError:
        return ""


def _part(value: Any, kind: ColumnKind) -> Any:
    """Return the value of a key column as a part of an id. Raises ValueError if it cannot be one."""
    if value is None or isinstance(value, dict):
        raise ValueError("there is no id")
    if isinstance(value, list):
        return [_part(element, kind) for element in value]
    if kind is ColumnKind.BINARY and isinstance(value, str):
        return as_bytes(value)  # JSON holds it as base64
    return value if isinstance(value, str | int) and not isinstance(value, bool) else encode(value)


def _single(part: Any) -> Any:
    return str(part) if isinstance(part, int) else part


def _value(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = row.get(name) if isinstance(row, dict) else None
    return row


def _cell(value: Any, kind: ColumnKind) -> Cell:
    if kind is ColumnKind.BINARY and isinstance(value, str):
        with suppress(ValueError):  # a text that is not base64 is shown as it is
            return as_bytes(value)
    return cut(encode(value)) if isinstance(value, list | dict) else value


async def _lines(page: Page, fetch_cell: FetchCell | None, revision: str) -> bytes:
    writer = RowLines([column.path or (column.name,) for column in page.columns])
    lines = []
    for at, cells in enumerate(page.cells):
        if any(map(is_cut, cells)):
            cells = [await _whole(page, at, number, fetch_cell, revision) for number in range(len(cells))]
        try:
            lines.append(writer.line(cells))
        except ValueError as error:
            reason = f"a row cannot be exported: {error}"
            raise QueryError(reason, hint="name the columns to export") from error
    return b"".join(lines)


async def _whole(page: Page, at: int, number: int, fetch_cell: FetchCell | None, revision: str) -> Cell:
    cell, name = page.cells[at][number], page.columns[number].name
    if not is_cut(cell):
        return cell
    if fetch_cell is None or not page.keys:
        raise QueryError(f"'{name}' is too long for a page, and the driver cannot read it whole")
    if is_cut(whole := await fetch_cell(CellRequest(key=page.keys[at], column=name, revision=revision))):
        raise QueryError(f"'{name}' is too long for a page, and the driver reads no more than a part of it")
    return whole


def _derived(page: Page) -> Note:
    reason = "lines are made of the columns of pages, not of stored documents"
    if page.next is None:
        reason += "; rows that are written meanwhile may be missing or repeated, since pages go by offset"
    return Note(code="derived-export", reason=reason)
