"""The driver: one method per hook; the only module that sends requests."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman_api import (
    MISSING,
    Answer,
    Cell,
    CellRequest,
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
    TimeRange,
    UnsupportedOperationError,
    hookimpl,
)  # fmt: skip
from dragoman_api.console import MAX_SUGGESTIONS, Completion, CompletionRequest, Suggestion, SuggestionKind
from dragoman_api.errors import DragomanError, ObjectNotFoundError, RowNotFoundError
from dragoman_api.exports import ExportForm
from dragoman_api.kit import cursors
from dragoman_api.kit.exchanges import Exchange, Exchanges, ask, get
from dragoman_api.kit.filter_rows import body_of
from dragoman_api.kit.line_parts import RowLines, export_parts
from dragoman_api.kit.object_lists import choose as choose_objects
from dragoman_api.kit.page_columns import check_bounds, choose, unknown_sort
from dragoman_api.kit.summaries import summarize_cells
from dragoman_api.kit.views import ReadOnce
from dragoman_api.replies import seconds_asked

from . import answers, selectors
from .answers import instant_text
from .rows import SampleRows
from .selectors import TIME, Query, View, quote

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dragoman_api.summaries import ColumnSummary, SummaryRequest

T = TypeVar("T")

_GROUP = re.compile(r"[^_:]+[_:]")
_WORD = re.compile(r"[\w:]*")
_FUNCTIONS = (
    "abs absent avg avg_over_time bottomk by ceil changes clamp count count_over_time count_values delta deriv exp "
    "floor group group_left group_right histogram_quantile ignoring increase irate label_join label_replace "
    "last_over_time ln log10 log2 max max_over_time min min_over_time offset on predict_linear quantile "
    "quantile_over_time query_range rate resets round scalar sort sort_desc sqrt stddev stdvar sum sum_over_time time "
    "timestamp topk vector without"
)


class Driver:
    """One connection to one Prometheus or one single-node VictoriaMetrics."""

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        self._views = dict[str, View]()
        self._profile, self._refused = profile, http.error
        self._exchanges = Exchanges(
            http, reads=lambda request: not answers.may_write(request),
            retry_after=lambda reply: seconds_asked(reply) if reply.status in (429, 503) else None,
        )  # fmt: skip
        self._names = ReadOnce(lambda _: self._read_names())
        server, self._features = answers.identify(await self._send(answers.BUILD), profile, self._refused)
        return server

    @hookimpl
    async def ping(self) -> Health:
        try:
            answers.identify(await self._send(answers.BUILD), self._profile, self._refused)
        except DragomanError as error:
            return Health(ok=False, reason=error.message, code=error.code)
        return Health(ok=True)

    # objects

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        """List metrics; those that begin with the same word lie in a branch, which is an object, too (M3)."""
        names = await self._names_of(None)
        groups: dict[str, list[str]] = {}
        for name in names:
            if match := _GROUP.match(name):
                groups.setdefault(f"{match[0]}*", []).append(name)
        branches = {group: members for group, members in groups.items() if len(members) > 1 and group not in names}
        if request.parent is not None:
            choice = choose_objects(request, [], branches.get(request.parent, []))
        elif request.contains:  # a search looks into the branches
            choice = choose_objects(request, branches, names)
        else:
            grouped = {name for members in branches.values() for name in members}
            choice = choose_objects(request, branches, [name for name in names if name not in grouped])
        objects = [Object(name, kind="group", branch=True) for name in choice.groups[0]]
        objects += [Object(name, kind="metric", parent=request.parent) for name in choice.groups[1]]
        return ObjectList(objects=objects, next=choice.next, total=choice.total)

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        return (await self._read_view(name)).describe()

    async def _read_view(self, name: str) -> View:
        """Read the label names of a metric or a group; the whole of its past counts (M7)."""
        matcher = f"__name__={quote(name)}"
        if not await self._names_of(matcher):
            prefix = name.removesuffix("*")
            matcher = f"__name__=~{quote(selectors.pattern(prefix) + '.*')}"
            if not (name.endswith("*") and _GROUP.fullmatch(prefix) and await self._names_of(matcher)):
                raise ObjectNotFoundError(f"there is no metric {name!r}")
        labels = await self._texts("/api/v1/labels", matcher)
        label_names = {*labels} - (set() if name.endswith("*") and "=~" in matcher else {"__name__"})
        self._views[name] = view = selectors.view(name, matcher, label_names, quotes=self._features.quotes)
        return view

    async def _names_of(self, matcher: str | None) -> list[str]:
        return await self._texts("/api/v1/label/__name__/values", matcher)

    async def _texts(self, path: str, matcher: str | None = None) -> list[str]:
        """Return names, each once."""
        request = get(path, **{"match[]": matcher and f"{{{matcher}}}", "start": 0})
        names = await self._get(request, [], answers.TEXTS, lambda names: [*dict.fromkeys(names or ())])
        if "" in names:
            raise QueryError(f"GET {path} was answered with an empty name")
        return names

    # grid

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        if (view := self._views.get(request.object)) is None:
            raise ObjectNotFoundError(f"'{request.object}' was not described on this connection yet")
        return selectors.compile_filter(request, view)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        check_bounds(request)
        parts, until, offset = cursors.query_of(request), None, request.offset
        if request.cursor is not None:
            until, offset = cursors.unseal(request.cursor, parts, tuple[int, int])
        rows = await self._select(request, until)
        columns = choose(request.columns, rows.view.columns, object=request.object)
        keys = [sort.column for sort in request.sort]
        if unknown := [key for key in keys if key not in rows.view.columns]:
            raise unknown_sort(unknown[0])
        native = keys in ([], [TIME])
        total = await rows.count() if not rows.query.tests and request.total else None
        if native:
            backwards = bool(keys) and request.sort[0].descending
            page_rows, ended, seen = await rows.take(offset, request.limit, backwards=backwards)
            total = seen if rows.query.tests and ended else total
        else:
            page_rows = await rows.all(f"a sort by {keys[0]!r}")
            for sort in reversed(request.sort):
                key = selectors.order(sort.column, rows.view)
                page_rows.sort(key=lambda row, key=key: key(row)[1], reverse=sort.descending)  # type: ignore[misc]
                page_rows.sort(key=lambda row, key=key: key(row)[0])  # type: ignore[misc]
            total = len(page_rows)
            ended, page_rows = offset + request.limit >= total, page_rows[offset : offset + request.limit]
        at = offset + len(page_rows)
        continues = at < total if total is not None else not ended
        return Page(
            columns=columns,
            cells=rows.cells(page_rows, columns),
            keys=[RowKey(request.object, [instant_text(row.at), row.series]) for row in page_rows],
            notes=rows.notes,
            total=None if not request.total else at if total is None else total,
            total_exact=total is not None or not request.total,
            offset=offset,
            next=cursors.seal(parts, [rows.until, at]) if continues and page_rows else None,
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Read the series and the millisecond that a key names; labels that a query cannot name are compared here."""
        view = self._views.get(request.key.object) or await self._read_view(request.key.object)
        [column] = choose([request.column], view.columns, object=view.name)
        if (query := selectors.query_of_row(request.key.id, view)) is not None:
            rows = self._rows(view, query)
            for row in await rows.all("a cell"):
                if row.series == request.key.id[1]:
                    return rows.cells([row], [column])[0][0]
        raise RowNotFoundError(f"'{view.name}' has no row {request.key.id!r}")

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        rows = await self._select(request)
        count = len(await rows.all("this filter")) if rows.query.tests else await rows.count()
        if rows.notes:
            raise QueryError(f"the count may lack rows: {rows.notes[0].reason}")
        return count

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary:
        rows = await self._select(request)
        [column] = choose([request.column], rows.view.columns, object=request.object)
        cells = [line[0] for line in rows.cells(await rows.all("a summary"), [column])]
        return msgspec.structs.replace(summarize_cells(request, column, cells), notes=rows.notes)

    # exports

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("the server's own form of bulk input is not that of its samples")
        parts = cursors.query_of(request)
        since, until = cursors.continued(request, tuple[int, int]) or (None, None)
        rows = await self._select(request, until)
        columns = choose(request.columns, rows.view.columns, object=request.object)
        total = None if rows.query.tests else await rows.count()
        if since is not None:
            rows.go_on(since)
        writer = RowLines([column.path for column in columns])
        async for end, _, _, batch in rows.batches():
            cells = rows.cells(batch, columns)
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
        return answers.answer(request.request, await self._send(request.request), self._refused)

    @hookimpl
    async def complete_console(self, request: CompletionRequest) -> Completion:
        if not 0 <= request.position <= len(request.text):
            raise QueryError(f"position {request.position} is not in the text")
        start = request.position
        while start and _WORD.fullmatch(request.text[start - 1]):
            start -= 1
        written = request.text[start : request.position]
        end = _WORD.match(request.text, request.position).end()  # type: ignore[union-attr]
        metrics, labels = await self._names.get("") or ([], [])
        words = (
            Suggestion(text=name, kind=kind, start=start, end=end)
            for names, kind in ((metrics, SuggestionKind.OBJECT), (labels, SuggestionKind.FIELD),
                                (_FUNCTIONS.split(), SuggestionKind.KEYWORD))
            for name in names if name.startswith(written) and len(name) <= 1_000 and _WORD.fullmatch(name)
        )  # fmt: skip
        suggestions = [*islice(words, MAX_SUGGESTIONS)]
        return Completion(suggestions=suggestions, more=next(words, None) is not None)

    async def _read_names(self) -> tuple[list[str], list[str]]:
        return await self._names_of(None), await self._texts("/api/v1/labels")

    # sending

    async def _select(self, request: PageRequest | CountRequest | SummaryRequest | ExportRequest,
                      until: int | None = None) -> SampleRows:  # fmt: skip
        view = self._views.get(request.object) or await self._read_view(request.object)
        query = body_of(request.filter, Query, object=request.object, revision=view.revision) or Query()
        return self._rows(view, query, request.time, until)

    def _rows(self, view: View, query: Query, time: TimeRange | None = None, until: int | None = None) -> SampleRows:
        return SampleRows(view, query, time, until, features=self._features, send=self._get, forget=self._views.pop)

    async def _send(self, request: HttpRequest) -> Any:
        return await self._exchanges.run(ask(request))

    async def _get(self, request: HttpRequest, notes: list[Note], kind: Any, shape: Callable[[Any], T]) -> T:
        def read() -> Exchange[T]:  # an answer of another form is an error of the exchange
            return shape(answers.read((yield from ask(request)), self._refused, notes, kind))

        return await self._exchanges.run(read())
