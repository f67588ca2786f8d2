"""Rows that a server only hands out one after another: filtered, sorted, counted, summarized and exported here.

A driver writes `connect`, `list_objects`, `describe_object` and `scan`; the mixin is the rest of its reads::

    class Driver(ScannedRows):
        async def scan(self, name, revision):
            async for document in ...:
                yield ScannedRow(RowKey(name, document["id"]), document)

Every call reads the rows from the first one, so this fits objects of up to some hundred thousand rows, or a server that
has no better way. No call holds more rows than its answer needs.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec.json import Decoder

from dragoman_api.cells import MISSING
from dragoman_api.columns import Column, ColumnKind, Operator, Role, Written
from dragoman_api.errors import ObjectChangedError, QueryError, RowNotFoundError, UnsupportedOperationError
from dragoman_api.exports import ExportForm, ExportPart
from dragoman_api.filters import CompiledFilter, Explanation, Filter, FilterRequest, RawQuery
from dragoman_api.grid import CellRequest, Page, RowKey
from dragoman_api.hookspecs import hookimpl
from dragoman_api.json_text import decode, encode, exact_number

from . import cursors, similar_rows
from .filter_rows import compile_rows, spelled, within
from .line_parts import RowLines, export_parts
from .page_columns import cell_of, check_bounds, choose, kinds_of, sortable
from .row_evaluation import TextOrder, not_evaluated, operators_of, ordered, row_test, sort_key, value_kind
from .summaries import summarize_cells

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.columns import Description
    from dragoman_api.exports import ExportRequest
    from dragoman_api.filters import TimeRange
    from dragoman_api.grid import CountRequest, PageRequest, SimilarRequest, Sort
    from dragoman_api.summaries import ColumnSummary, SummaryRequest

    from .row_evaluation import ValueKind

    Reads = PageRequest | CountRequest | ExportRequest | SummaryRequest | SimilarRequest

_SPARE = 1_000  # rows beyond those of a page that a sort holds
_PART_ROWS = 1_000
_WHOLE = "arrays and objects have no order here"
_filter = Decoder(FilterRequest, float_hook=exact_number)


class ScannedRow(NamedTuple):
    """A row of a scan.

    Attributes:
        key: The key.
        values: The stored values by column; a name that is not there is missing.
    """

    key: RowKey
    values: Mapping[str, object]


def scanned_column(
    name: str, kind: ColumnKind, *, order: TextOrder = TextOrder.CODE_POINTS, **attributes: Any
) -> Column:
    """Describe a column with the operators that a scan evaluates on its kind.

    >>> scanned_column("n", ColumnKind.INTEGER).sortable, scanned_column("tags", ColumnKind.JSON).reasons["sort"]
    (True, 'arrays and objects have no order here')

    Args:
        name: The name, which is also the path in an exported row.
        kind: What the values are.
        order: The order of texts.
        attributes: Further attributes of `Column`, which win.
    """
    compared = value_kind(kind)
    operators = operators_of(compared, order) if compared is not None else ()
    reasons = {} if operators else {"sort": _WHOLE, "filter": _WHOLE}
    defaults: dict[str, Any] = {
        "type": kind, "path": (name,), "sortable": bool(operators), "operators": operators,
        "reasons": reasons | attributes.pop("reasons", {}),
    }  # fmt: skip
    return Column(name=name, kind=kind, **(defaults | attributes))


def sampled_columns(
    rows: Iterable[Mapping[str, object]], *, key: str, edit: str = "", order: TextOrder = TextOrder.CODE_POINTS
) -> list[Column]:
    """Describe the columns of a server without a schema by the values of some rows, the key first.

    Args:
        rows: Some rows of decoded JSON.
        key: The name of the key, a text.
        edit: Why nothing can be edited; empty if everything but the key can.
        order: The order of texts.
    """
    columns = []
    for name, kind in {key: ColumnKind.TEXT, **kinds_of(rows)}.items():
        attributes: dict[str, Any] = {}
        if name == key or edit:
            written = Written.NEVER if edit else Written.INSERT
            attributes = {"written": written, "reasons": {"edit": edit or "the key of a row cannot be changed"}}
        attributes |= {"role": Role.KEY} if name == key else {}
        columns.append(scanned_column(name, kind, order=order, **attributes))
    return columns


class ScannedRows:
    """The reading hooks over `scan`: filters, pages, cells, counts, summaries and exports.

    Attributes:
        text_order: How texts are ordered.
        scan_most: The most rows of an object that a call reads; None for all.
    """

    text_order: TextOrder = TextOrder.CODE_POINTS
    scan_most: int | None = None
    _described: Mapping[str, dict[str, Column]] = MappingProxyType({})  # by object, for `compile_filter` alone

    def scan(self, name: str, revision: str) -> AsyncIterator[ScannedRow]:
        """Yield the rows of an object, in one order, at one revision; an empty one is the present."""
        raise NotImplementedError("a driver with ScannedRows writes 'scan'")

    def scan_within(
        self, name: str, revision: str, time: TimeRange | None, texts: Mapping[str, str]
    ) -> AsyncIterator[ScannedRow]:
        """Yield rows that `scan` yields, and all of those that count; for a server that finds some of them itself.

        What else it yields is left out, so that a driver may leave a part of this to the kit.

        Args:
            name: The object.
            revision: The revision.
            time: The only range of time; None for all times.
            texts: The text that a column has, letter by letter, in every row that a filter leaves.
        """
        return self.scan(name, revision)

    async def scan_revision(self, name: str) -> str:
        """Return the present revision of an object, which `scan` reads again; empty if the server keeps none."""
        return ""

    @hookimpl
    async def compile_filter(self, request: FilterRequest) -> CompiledFilter:
        """Check every filter row against its column; it is evaluated here, exactly as written."""
        columns = self._described.get(request.object) or await self._columns(request.object)

        def compile_row(number: int, row: Filter | RawQuery) -> Explanation:
            self._test(row, columns)
            return Explanation(row=number, clause=f"evaluated here: {spelled(row)}")

        explained = compile_rows(request, compile_row, hint=lambda row: "")
        return CompiledFilter(object=request.object, body=encode(request), rows=explained)  # bytes as base64

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page:
        """Filter, sort and cut out the page; an unsorted one without a total ends the scan after its last row."""
        cursors.refuse(request)
        check_bounds(request)
        columns = await self._columns(request.object)
        columns_read = choose(request.columns, columns, object=request.object)
        reasons = {name: "" if column.sortable else column.reasons["sort"] for name, column in columns.items()}
        sorts, notes = sortable(request.sort, columns.get, lambda column: reasons[column.name])
        revision = request.revision or await self.scan_revision(request.object)
        end, total = request.offset + request.limit, 0
        rows: list[ScannedRow] = []
        async with self._matching(request, revision, columns) as matching:
            async for row in matching:
                total += 1
                if sorts:
                    rows.append(row)
                    if len(rows) >= 2 * end + _SPARE:
                        rows = self._ordered(rows, sorts)[:end]
                elif request.offset < total <= end:
                    rows.append(row)
                if not sorts and total == end and not request.total:
                    break
        page_rows = self._ordered(rows, sorts)[request.offset : end] if sorts else rows
        return Page(
            columns=columns_read,
            cells=_cells(page_rows, columns_read),
            keys=[row.key for row in page_rows],
            notes=notes,
            total=total if request.total else None,
            offset=request.offset,
            revision=revision,
        )

    @hookimpl
    async def fetch_cell(self, request: CellRequest) -> Cell:
        """Look for one row; override it if the server finds a row by its key."""
        columns = await self._columns(request.key.object)
        choose([request.column], columns, object=request.key.object)
        async with aclosing(self._scanned(request.key.object, request.revision)) as rows:
            async for row in rows:
                if (row.key.id, row.key.routing) == (request.key.id, request.key.routing):
                    return cell_of(row.values.get(request.column, MISSING))
        raise RowNotFoundError(f"{request.key.object} has no row {request.key.id!r}")

    @hookimpl
    async def count_rows(self, request: CountRequest) -> int:
        """Count the rows that the filter leaves."""
        async with self._matching(request, request.revision, await self._columns(request.object)) as rows:
            return sum([1 async for _ in rows])

    @hookimpl
    async def summarize_column(self, request: SummaryRequest) -> ColumnSummary:
        """Summarize the cells of the rows that the filter leaves."""
        columns = await self._columns(request.object)
        if (column := columns.get(request.column)) is None:
            reason = f"{request.object} has no column {request.column!r}"
            raise QueryError(reason, details={"column": request.column})
        if not column.sortable or column.repeated:
            raise UnsupportedOperationError(f"{column.name!r} cannot be summarized: {_WHOLE}")
        async with self._matching(request, request.revision, columns) as rows:
            cells = [cell_of(row.values.get(column.name)) async for row in rows]
        return summarize_cells(request, column, cells)

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Yield the rows that the filter leaves, as lines of their columns."""
        if request.form is ExportForm.BULK:
            raise UnsupportedOperationError("this server has no bulk endpoint", hint="export rows or documents")
        if request.checkpoint is not None:
            reason = "an export of a scan does not continue"
            raise QueryError(reason, code="export-not-resumable", hint="export again, without the checkpoint")
        columns = await self._columns(request.object)
        columns_read = [column for column in choose(request.columns, columns, object=request.object) if column.path]
        writer, lines = RowLines([column.path for column in columns_read]), list[bytes]()
        revision = request.revision or await self.scan_revision(request.object)
        async with self._matching(request, revision, columns) as rows:
            async for row in rows:
                lines.append(writer.line([row.values.get(column.name, MISSING) for column in columns_read]))
                if len(lines) == _PART_ROWS:
                    for part in export_parts(b"".join(lines), total=None, checkpoint=None):
                        yield part
                    lines.clear()
        for part in export_parts(b"".join(lines), total=None, checkpoint=None):
            yield part

    async def _columns(self, name: str) -> dict[str, Column]:
        described: Description = await self.describe_object(name)  # type: ignore[attr-defined]
        columns = {column.name: column for column in described.columns}
        self._described = {**self._described, name: columns}
        return columns

    def _test(self, row: Filter | RawQuery, columns: Mapping[str, Column]) -> Callable[[object], bool]:
        """Return the test of a filter row; raise ValueError if there is none."""
        if isinstance(row, RawQuery):
            raise ValueError("the server has no query language; filter by columns")  # noqa: TRY004 - a reason
        if (column := columns.get(row.column)) is None:
            raise ValueError("there is no such column")
        kind = value_kind(column.kind)
        if row.op not in column.operators or kind is None:
            reason = column.reasons.get(row.op) or column.reasons.get("filter")
            raise ValueError(reason or (not_evaluated(row.op, kind) if kind else _WHOLE))
        return row_test(row, kind, self.text_order)

    async def _scanned(
        self, name: str, revision: str, time: TimeRange | None = None, texts: Mapping[str, str] = MappingProxyType({})
    ) -> AsyncGenerator[ScannedRow, None]:
        number, scan = 0, self.scan_within(name, revision, time, texts)
        async with aclosing(cast("AsyncGenerator[ScannedRow, None]", scan)) as rows:
            async for row in rows:
                number += 1
                if self.scan_most is not None and number > self.scan_most:
                    reason = f"'{name}' has more than the {self.scan_most:,} rows that one call reads"
                    raise QueryError(reason, code="scan-too-long", details={"limit": self.scan_most})
                yield row

    def _matching(
        self, request: Reads, revision: str, columns: Mapping[str, Column]
    ) -> aclosing[AsyncGenerator[ScannedRow, None]]:
        """Yield the rows that filter and range of time leave."""
        return aclosing(self._matches(request, revision, columns))

    async def _matches(
        self, request: Reads, revision: str, columns: Mapping[str, Column]
    ) -> AsyncGenerator[ScannedRow, None]:
        time, tests, join, texts = request.time, list[tuple[str, Any]](), all, dict[str, str]()
        if request.filter is not None:
            if request.filter.object != request.object:
                raise QueryError(f"the filter was compiled for '{request.filter.object}', not for '{request.object}'")
            where = decode(request.filter.body, _filter)
            try:
                tests = [(row.column, self._test(row, columns)) for row in where.rows if isinstance(row, Filter)]
            except ValueError as error:  # a column is gone, or its values are of another kind
                reason = f"the columns of '{request.object}' changed since the filter was compiled: {error}"
                raise ObjectChangedError(reason, hint="compile the filter again") from None
            join = all if where.match == "all" else any
            if join is all or len(where.rows) == 1:
                texts = {row.column: row.value for row in where.rows if _is_exact(row, columns)}  # type: ignore[union-attr, misc]
        async with aclosing(self._scanned(request.object, revision, time, texts)) as rows:
            async for row in rows:
                if time is not None and not within(time, cast("Cell", row.values.get(time.column))):
                    continue
                if not tests or join(test(row.values.get(name)) for name, test in tests):
                    yield row

    def _ordered(self, rows: list[ScannedRow], sorts: Sequence[tuple[Sort, Column]]) -> list[ScannedRow]:
        """Order rows by columns, the most significant first; rows without a value come last."""
        for sort, column in reversed(sorts):
            kind = value_kind(column.kind)
            assert kind is not None
            key = partial(self._sort_key, column.name, kind)
            rows = ordered(rows, key, descending=sort.descending)
        return rows

    def _sort_key(self, name: str, kind: ValueKind, row: ScannedRow) -> Any:
        return sort_key(row.values.get(name), kind, self.text_order)


class SimilarRows(ScannedRows):
    """`ScannedRows` with the hook for similar rows, for a server that finds the rows near a vector.

    The scan evaluates filters. A column of vectors has `Column.dimensions`::

        class Driver(SimilarRows):
            async def near(self, name, vectors, vector, limit, keys):
                hits = await self.http.post_json(..., read=True)
                return [(ScannedRow(RowKey(name, hit["id"]), hit), hit["distance"]) for hit in hits]

    Attributes:
        near_most: The most rows that a filter may leave, since `near` gets their keys.
    """

    near_most: int = 100_000

    async def near(
        self, name: str, vectors: str, vector: Sequence[float], limit: int, keys: Sequence[RowKey] | None
    ) -> list[tuple[ScannedRow, float]]:
        """Return the rows nearest to a vector, each with its distance.

        Args:
            name: The object.
            vectors: The column of vectors, or for one of several vectors of a column its name after a dot.
            vector: The vector.
            limit: How many rows at most.
            keys: The only rows that may come, those that a filter leaves; None for all.
        """
        raise NotImplementedError("a driver with SimilarRows writes 'near'")

    @hookimpl
    async def similar_rows(self, request: SimilarRequest) -> Page:
        """Ask for the rows near a vector, or near that of a row."""
        columns = await self._columns(request.object)
        column, member = similar_rows.vector_column(request, columns.values())
        columns_read = choose(request.columns, columns, object=request.object)
        if request.text is not None:
            raise UnsupportedOperationError("the server makes no vectors of texts", hint="give a vector or a row")
        similar_rows.check_length(request, column.dimensions)
        vector = request.vector or await self._vector(request, column, member)
        keys = None
        if request.filter is not None or request.time is not None:
            async with self._matching(request, request.revision, columns) as matching:
                keys = list[RowKey]()
                async for row in matching:
                    if len(keys) == self.near_most:
                        reason = f"the filter leaves more than {self.near_most:,} rows, among which the near ones are"
                        raise QueryError(reason, code="scan-too-long", hint="filter more narrowly")
                    keys.append(row.key)
        limit = request.limit + (request.key is not None)
        vectors = f"{column.name}.{member}" if member else column.name
        nearest = await self.near(request.object, vectors, vector, limit, keys) if keys != [] else []
        rows = [row for row, _ in nearest]
        page = Page(
            columns=columns_read,
            cells=_cells(rows, columns_read),
            keys=[row.key for row in rows],
            notes=[similar_rows.MISSED],
            revision=request.revision,
        )
        return similar_rows.nearest(request, page, [distance for _, distance in nearest], columns)

    async def _vector(self, request: SimilarRequest, column: Column, member: str) -> list[float]:
        """Return the vector of the row that the request names."""
        assert request.key is not None
        cell = await self.fetch_cell(CellRequest(key=request.key, column=column.name, revision=request.revision))
        vector: Any = decode(cell, Any) if isinstance(cell, str) else None
        vector = vector.get(member) if member and isinstance(vector, dict) else vector
        if not isinstance(vector, list) or not vector:
            raise QueryError(f"the row {request.key.id!r} has no vector in {column.name!r}")
        return [float(number) for number in vector]


def _is_exact(row: Filter | RawQuery, columns: Mapping[str, Column]) -> bool:
    """Return whether a row of a filter asks for one text, letter by letter."""
    if not isinstance(row, Filter) or row.op is not Operator.EQ or row.case is False or not isinstance(row.value, str):
        return False
    column = columns[row.column]
    return column.kind is ColumnKind.TEXT and not column.repeated


def _cells(rows: Iterable[ScannedRow], columns: Sequence[Column]) -> list[list[Cell]]:
    return [[cell_of(row.values.get(column.name, MISSING)) for column in columns] for row in rows]
