"""The driver: one method per hook; the only module that sends requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from dragoman_api import (
    MISSING,
    Answer,
    Cell,
    CellRequest,
    Column,
    CompiledFilter,
    ConsoleRequest,
    ConsoleText,
    CountRequest,
    Description,
    ExportPart,
    ExportRequest,
    FilterRequest,
    Health,
    Http,
    HttpRequest,
    Note,
    Object,
    ObjectList,
    ObjectsRequest,
    Page,
    PageRequest,
    Profile,
    QueryError,
    RowKey,
    Server,
    UnsupportedOperationError,
    hookimpl,
)
from dragoman_api.console import AnswerKind, Completion, CompletionRequest, SuggestionKind
from dragoman_api.errors import DragomanError, ObjectNotFoundError, RowNotFoundError
from dragoman_api.exports import ExportForm
from dragoman_api.kit import cursors
from dragoman_api.kit.console_answers import text_answer
from dragoman_api.kit.console_places import ConsolePlace, Where
from dragoman_api.kit.exchanges import get
from dragoman_api.kit.filter_rows import body_of
from dragoman_api.kit.line_parts import RowLines, export_parts
from dragoman_api.kit.object_lists import choose as choose_objects
from dragoman_api.kit.page_columns import check_bounds, choose, sortable
from dragoman_api.kit.rest import RestClient, health
from dragoman_api.kit.row_evaluation import ordered
from dragoman_api.kit.summaries import summarize_cells
from dragoman_api.kit.views import ReadOnce

from . import answers, filters
from .columns import TIME, View, instant_text, make_view, order, pattern, quote
from .filters import Query
from .rows import SampleRows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dragoman_api.kit.console_places import Word
    from dragoman_api.replies import Reply
    from dragoman_api.summaries import ColumnSummary, SummaryRequest

T = TypeVar("T")

_GROUP = re.compile(r"[^_:]+[_:]")
_WORD = re.compile(r"[\w:]*")
_TYPED = re.compile(r"[\w:]*\Z")
_FUNCTIONS = (
    "abs absent avg avg_over_time bottomk by ceil changes clamp count count_over_time count_values delta deriv exp "
    "floor group group_left group_right histogram_quantile ignoring increase irate label_join label_replace "
    "last_over_time ln log10 log2 max max_over_time min min_over_time offset on predict_linear quantile "
    "quantile_over_time query_range rate resets round scalar sort sort_desc sqrt stddev stdvar sum sum_over_time time "
    "timestamp topk vector without"
)


class Driver(RestClient):
    """One connection to one Prometheus or one single-node VictoriaMetrics."""

    busy = (429, 503)

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        self.http, self._profile, self._views = http, profile, dict[str, View]()
        self._words = ReadOnce(lambda _: self._read_words())
        return await self._identify()

    async def _identify(self) -> Server:
        reply = await self.send(answers.BUILD)
        if reply.status in (401, 403):
            raise self.error(reply)
        server, self._features = answers.identify(reply, self._profile)
        return server

    @hookimpl
    async def ping(self) -> Health:
        return await health(self._identify())

    def error(self, reply: Reply) -> DragomanError:
        """Return the error of the API in the server's words, unless it is about the credentials (M14)."""
        refusal = None if reply.status in (401, 403) else answers.refusal(reply)
        return refusal or super().error(reply)

    # objects

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List metrics; those that begin with the same word lie in a branch, which is an object, too (M3)."""
        names = await self._names()
        groups: dict[str, list[str]] = {}
        for name in names:
            if match := _GROUP.match(name):
                groups.setdefault(f"{match[0]}*", []).append(name)
        branches = {group: members for group, members in groups.items() if len(members) > 1 and group not in names}
        if request.parent is not None:
            choice = choose_objects(request, [], branches.get(request.parent, []))
        else:  # a search looks into the branches
            grouped = {name for members in branches.values() for name in members if not request.contains}
            choice = choose_objects(request, branches, [name for name in names if name not in grouped])
        objects = [Object(name, kind="group", branch=True) for name in choice.groups[0]]
        objects += [Object(name, kind="metric", parent=request.parent) for name in choice.groups[1]]
        return ObjectList(objects=objects, next=choice.next, total=choice.total)

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        return (await self._read_view(name)).describe()

    async def _read_view(self, name: str) -> View:
        """Read the label names of a metric or a group; the whole of its past counts (M7)."""
        matcher, prefix = f"__name__={quote(name)}", name.removesuffix("*")
        hidden = {"__name__"}
        if not await self._names(matcher):
            matcher, hidden = f"__name__=~{quote(pattern(prefix) + '.*')}", set()
            if not (name.endswith("*") and _GROUP.fullmatch(prefix) and await self._names(matcher)):
                raise ObjectNotFoundError(f"there is no metric {name!r}")
        labels = {*await self._texts("/api/v1/labels", matcher)} - hidden
        self._views[name] = view = make_view(name, matcher, labels, quotes=self._features.quotes)
        return view

    async def _names(self, matcher: str | None = None) -> list[str]:
        return await self._texts("/api/v1/label/__name__/values", matcher)

    async def _texts(self, path: str, matcher: str | None = None) -> list[str]:
        """Return names, each once; an old server has null where it means none."""
        request = get(path, **{"match[]": matcher and f"{{{matcher}}}", "start": 0})
        names: list[str] = await self._data(request, list[str] | None, lambda names: [*dict.fromkeys(names or ())], [])
        if "" in names:
            raise QueryError(f"GET {path} was answered with an empty name")
        return names

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        if (view := self._views.get(request.object)) is None:
            raise ObjectNotFoundError(f"'{request.object}' was not described on this connection yet")
        return filters.compile_filter(request, view)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        check_bounds(request)
        parts, until, offset = cursors.query_of(request), None, request.offset
        if request.cursor is not None:
            until, offset = cursors.unseal(request.cursor, parts, tuple[int, int])
        rows, columns = await self._select(request, request.columns, until)
        sorts = sortable(request.sort, rows.view.columns.get, lambda _: "")[0]
        by_time = [sort.column for sort, _ in sorts] in ([], [TIME])
        backwards = by_time and bool(sorts) and sorts[0][0].descending
        if by_time and not rows.query.tests:
            total, page_rows = await rows.count(), await rows.take(offset, request.limit, backwards=backwards)
        else:
            all_rows = await rows.all("this filter" if by_time else f"a sort by {sorts[0][0].column!r}")
            for sort, _ in [] if by_time else reversed(sorts):
                all_rows = ordered(all_rows, order(sort.column, rows.view), descending=sort.descending)
            all_rows = all_rows[::-1] if backwards else all_rows
            total, page_rows = len(all_rows), all_rows[offset : offset + request.limit]
        end = offset + len(page_rows)
        return Page(
            columns=columns,
            cells=rows.cells(page_rows, columns),
            keys=[RowKey(request.object, [instant_text(row.at), row.series]) for row in page_rows],
            notes=rows.notes,
            total=total if request.total else None,
            offset=offset,
            next=cursors.seal(parts, [rows.until, end]) if page_rows and end < total else None,
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Read the series and the millisecond that a key names; labels that a query cannot name are compared here."""
        name, row_id = request.key.object, request.key.id
        view = await self._view(name)
        columns = choose([request.column], view.columns, object=name)
        if (query := filters.query_of_row(row_id, view)) is not None:
            rows = self._rows(view, query)
            for row in await rows.all("a cell"):
                if row.series == row_id[1]:
                    return rows.cells([row], columns)[0][0]
        raise RowNotFoundError(f"'{name}' has no row {row_id!r}")

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        rows, _ = await self._select(request)
        count = len(await rows.all("this filter")) if rows.query.tests else await rows.count()
        if rows.notes:
            raise QueryError(f"the count may lack rows: {rows.notes[0].reason}")
        return count

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary:
        rows, columns = await self._select(request, [request.column])
        cells = [line[0] for line in rows.cells(await rows.all("a summary"), columns)]
        return replace(summarize_cells(request, columns[0], cells), notes=rows.notes)

    # exports

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("the server's own form of bulk input is not that of its samples")
        parts = cursors.query_of(request)
        since, until = cursors.continued(request, tuple[int, int]) or (None, None)
        rows, columns = await self._select(request, request.columns, until)
        total = None if rows.query.tests else await rows.count()
        if since is not None:
            rows.go_on(since)
        writer = RowLines([column.path for column in columns])
        async for end, _, batch in rows.batches():
            cells = rows.cells(rows.chosen(batch), columns)
            lines = b"".join(writer.line([MISSING if cell is None else cell for cell in line]) for line in cells)
            if rows.notes:
                raise QueryError(f"the export may lack rows: {rows.notes[0].reason}")
            for part in export_parts(lines, total=total, checkpoint=cursors.seal(parts, [end, rows.until])):
                yield part

    # console

    @hookimpl
    async def parse_console(self, text: ConsoleText) -> list[ConsoleRequest]:
        return answers.parse(text.text)

    @hookimpl
    async def execute_console(self, request: ConsoleRequest) -> Answer:
        """Send one request; rows if the answer holds a query's result, else its JSON or text (M12)."""
        reply = await self.send(request.request, read=not request.writes)
        answer = text_answer(request, reply, lambda: self.error(reply).message)
        try:
            page = answers.table(reply)
        except (ValueError, OverflowError):
            return answer
        return replace(answer, kind=AnswerKind.TABLE, text="", page=page)

    @hookimpl
    async def complete_console(self, request: CompletionRequest) -> Completion:
        if not 0 <= request.position <= len(request.text):
            raise QueryError(f"position {request.position} is not in the text")
        typed = _TYPED.search(request.text[: request.position])[0]  # type: ignore[index]
        end = _WORD.match(request.text, request.position).end()  # type: ignore[union-attr]
        words = [word for word in await self._words.get("") or [] if word[0].startswith(typed)]
        start = request.position - len(typed)
        return ConsolePlace(where=Where.PATH, typed=typed, start=start, end=end).complete(words)

    async def _read_words(self) -> list[Word]:
        """Return what can be written without quotation marks."""
        metrics, labels = await self._names(), await self._texts("/api/v1/labels")
        kinds = (
            (metrics, SuggestionKind.OBJECT),
            (labels, SuggestionKind.FIELD),
            (_FUNCTIONS.split(), SuggestionKind.KEYWORD),
        )
        return [(name, kind, "") for names, kind in kinds for name in names if _WORD.fullmatch(name)]

    # sending

    async def _view(self, name: str) -> View:
        return self._views.get(name) or await self._read_view(name)

    async def _select(
        self,
        request: PageRequest | CountRequest | SummaryRequest | ExportRequest,
        names: list[str] | None = None,
        until: int | None = None,
    ) -> tuple[SampleRows, list[Column]]:
        """Return the rows that a request reads, and the columns of some names."""
        view = await self._view(request.object)
        query = body_of(request.filter, Query, object=request.object, revision=view.revision) or Query()
        columns = choose(names, view.columns, object=request.object)
        return self._rows(view, query, request.time, until), columns

    def _rows(self, view: View, query: Query, *span: Any) -> SampleRows:
        return SampleRows(view, query, *span, features=self._features, ask=self._data, forget=self._views.pop)

    async def _data(self, request: HttpRequest, kind: Any, shape: Callable[[Any], T], notes: list[Note]) -> T:
        """Send a read, and shape the data of its answer; its warnings become notes."""
        body = await self.ask(request, answers.Body[kind])
        try:
            result = shape(body.data)
        except (ValueError, OverflowError) as error:
            raise QueryError(f"the answer of {self.http.profile.where} cannot be read: {error}") from error
        notes += [note for note in body.notes if note not in notes][: answers.MAX_WARNINGS - len(notes)]
        return result
