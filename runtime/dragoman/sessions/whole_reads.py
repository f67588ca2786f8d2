"""Reads of all rows of a selection: row by row, as Arrow record batches, or as an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman.exports.export_run import Export, ExportSource, add_notes
from dragoman.exports.formats import FileFormat, TableColumns, choose, choose_columns, column_notes, need
from dragoman_api.columns import Column, Note
from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.grid import PageRequest
from dragoman_api.hookspecs import DriverSpec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable
    from pathlib import Path
    from typing import BinaryIO

    from pyarrow import RecordBatch, Table

    from dragoman.exports.arrow_parquet import TableReader
    from dragoman.exports.export_run import ExportResult, Parts
    from dragoman_api.columns import Description

    from .driver_calls import DriverCalls, Prepared
    from .selections import RowSelection

T = TypeVar("T")

Lists = Sequence[str] | Mapping[str, str] | None
"""The names of the columns that are lists, or a mapping from them to what a list of one stands for; None to look."""

LOOK_ROWS = 200
"""The number of rows, of one request, in which arrays are looked for."""

_LISTED = 10  # columns that a note names


class _Stream(Generic[T]):
    """An async iterator that reads as it is consumed, and holds notes."""

    def __init__(self, read: Callable[[list[Note]], AsyncGenerator[T, None]]) -> None:
        """Prepare; `read` yields the items and adds notes to the list that it gets."""
        self.notes: list[Note] = []
        self._items = read(self.notes)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Release the server's resources."""
        await self._items.aclose()


class RowStream(_Stream[dict[str, Any]]):
    """The rows of an object, an async iterator that reads them while they arrive.

    Attributes:
        notes: Remarks on the rows: some are there with the first row, all of them after the last one.
    """


class Batches(_Stream[Any]):
    """The rows of an object as Arrow record batches, an async iterator that reads them while they arrive.

    Attributes:
        notes: Remarks on the rows: some are there with the first batch, all of them after the last one. The notes
            ``values-misfit``, which count the values that do not fit their column's type, come after the last batch.
    """


class WholeRead(msgspec.Struct, frozen=True, kw_only=True):
    """A read of all rows of a selection, ready to be sent.

    Attributes:
        table: The columns of a table; none for other formats.
        notes: Notes on the filter and the span of time, on the columns, and on the order.
    """

    request: ExportRequest
    table: TableColumns
    notes: list[Note]


async def plan_read(
    calls: DriverCalls, selection: RowSelection, *, file_format: FileFormat, lists: Lists = None, keep_alive: int = 0
) -> WholeRead:
    """Prepare a read of all rows of a selection.

    Args:
        calls: The calls of the session.
        selection: The rows, with the instant that relative times count from.
        file_format: What the rows become.
        lists: The names of the columns that are lists; None for those that the format names.
        keep_alive: Seconds for which the server keeps what it holds for the read; 0 for one that is never resumed.

    Raises:
        ConfigurationError: There is no such column.
        FilterNotSupportedError: A filter row cannot run as asked.
    """
    tabular, columns = file_format.tabular, selection.columns
    description = await calls.describe(selection.object) if tabular else None
    table = table_columns(description, columns, typed=file_format.typed) if description else []
    prepared = await calls.prepare(selection, fresh=not tabular)
    notes = prepared.notes
    if file_format.typed:
        lists = file_format.lists if lists is None else lists
        table, list_notes = await with_lists(calls, selection, prepared, table, lists=lists)
        notes += list_notes
    if description:
        notes += column_notes(description, columns)
    if selection.sort:
        reason = "the rows come in the order of the server: a sort orders the rows of pages only"
        notes.append(Note(code="sort-unused", reason=reason))
    request = ExportRequest(
        object=selection.object,
        filter=prepared.filter,
        time=prepared.time,
        form=file_format.form,
        columns=[column.name for column in table] if tabular else selection.listed_columns,
        tenant=selection.tenant,
        revision=selection.revision,
        keep_alive=keep_alive,
    )
    if description is None:
        return WholeRead(request=request, table=TableColumns(), notes=notes)
    described = TableColumns(
        columns=table,
        described=description.columns,
        whole=columns is None,
        server_members=[*description.server_members, description.object_member],
    )
    return WholeRead(request=request, table=described, notes=notes)


def table_columns(description: Description, columns: Sequence[str] | None, *, typed: bool) -> list[Column]:
    """Return the columns of a table, in order; in a typed table of all columns, an array of objects is one column.

    Raises:
        ConfigurationError: There is no such column.
    """
    table = choose_columns(description, columns)
    if not typed or columns is not None:
        return table
    from dragoman_api.arrow.schema import without_leaves

    return without_leaves(table)


async def with_lists(
    calls: DriverCalls, selection: RowSelection, prepared: Prepared, table: list[Column], *, lists: Lists
) -> tuple[list[Column], list[Note]]:
    """Decide which columns of a table are lists; return the columns, and notes on the decision.

    Args:
        calls: The session's calls.
        selection: The rows.
        prepared: The filter and the span of time of a request for the rows.
        table: The table's columns.
        lists: The names of the columns that are lists; None to look at the first 200 rows. A mapping also says what a
            list of one stands for, as an earlier run decided.

    Raises:
        ConfigurationError: A named column is not in the table, or cannot hold several values.
    """
    if lists is not None:
        chosen = {**lists} if isinstance(lists, Mapping) else dict.fromkeys(lists, "array")
        _check_lists(table, chosen)
        return as_lists(table, chosen), []
    from dragoman_api.arrow.schema import may_be_lists

    names = [column.name for column in table if may_be_lists(column)]
    if not names:
        return table, []
    request = PageRequest(
        object=selection.object,
        filter=prepared.filter,
        time=prepared.time,
        limit=LOOK_ROWS,
        columns=names,
        total=False,
        tenant=selection.tenant,
        revision=selection.revision,
    )
    try:
        page = await calls.run(DriverSpec.fetch_page, request, object=selection.object, rows=LOOK_ROWS)
    except DragomanError as error:
        reason = f"no column was looked at for arrays, so none is read as lists: {error.message}"
        return table, [Note(code="lists-unknown", reason=reason)]
    from dragoman_api.arrow.pages import find_lists

    chosen = {name: many for name, many in find_lists(page.columns, page.cells).items() if name in names}
    if not chosen:
        return table, []
    listing = ", ".join([*chosen][:_LISTED]) + (f" and {len(chosen) - _LISTED:,} more" if len(chosen) > _LISTED else "")
    reason = f"read as lists, since some of the first {len(page.cells):,} rows hold arrays there: {listing}"
    return as_lists(table, chosen), [Note(code="lists-found", reason=reason)]


def _check_lists(table: list[Column], names: Iterable[str]) -> None:
    from dragoman_api.arrow.schema import may_be_lists

    columns = {column.name: column for column in table}
    for name in names:
        if name not in columns:
            raise ConfigurationError(f"lists names {name!r}, which is no column of the table", code="column-unknown")
        column = columns[name]
        is_list = column.many or column.repeated or column.arrays or column.dimensions is not None
        if not (is_list or may_be_lists(column)):
            text = f"the column {name!r} cannot be one of lists: its type is {column.type}, and its kind {column.kind}"
            raise ConfigurationError(text, hint=f"leave {name!r} out of lists", details={"column": name})


def as_lists(table: list[Column], chosen: Mapping[str, str]) -> list[Column]:
    """Return the columns, with the chosen ones as lists where they may be lists."""
    from dragoman_api.arrow.schema import may_be_lists

    return [
        replace(column, many=chosen[column.name]) if column.name in chosen and may_be_lists(column) else column
        for column in table
    ]


async def read_rows(
    calls: DriverCalls, selection: RowSelection, notes: list[Note], *, form: str
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the rows of a selection, and add the notes on them to the list as they become known.

    Raises:
        ConfigurationError: There is no such form.
    """
    from dragoman.exports.values import read_row

    if form not in list(ExportForm):
        raise ConfigurationError(f"form is {form!r}; it can be {', '.join(ExportForm)}")
    read = await plan_read(calls, selection.of_server(), file_format=FileFormat(form))
    notes += read.notes
    host_note_count, count = len(notes), 0
    async with calls.parts(read.request) as parts:
        async for part in parts:
            count += part.rows
            add_notes(notes, part.notes, rows=count, known=host_note_count)
            for line in part.data.split(b"\n"):
                if line:
                    yield read_row(line)


async def read_batches(
    calls: DriverCalls, selection: RowSelection, notes: list[Note], *, file_format: FileFormat
) -> AsyncGenerator[RecordBatch, None]:
    """Yield the rows of a selection as record batches, at least one, and add the notes on them to the list.

    Raises:
        ConfigurationError: There is no such column, or pyarrow is not installed.
        ExportError: A value does not fit its column's type, code ``values-misfit``, if strict.
    """
    await run_sync(partial(need, "arrow"))
    from dragoman.exports.arrow_parquet import TableReader

    read = await plan_read(calls, selection.of_server(), file_format=file_format)
    notes += read.notes
    reader = TableReader.of(read.table, strict=file_format.strict)
    async with aclosing(requested_batches(calls.parts, read.request, reader, notes)) as batches:
        async for batch in batches:
            yield batch


async def requested_batches(
    parts_of: Parts, request: ExportRequest, reader: TableReader, notes: list[Note]
) -> AsyncGenerator[RecordBatch, None]:
    """Yield the rows of a request as record batches, at least one, and add the notes on them to the list.

    Raises:
        ExportError: A value does not fit its column's type, code ``values-misfit``, if the reader is strict.
    """
    from dragoman.exports.values import blocks

    host_note_count, total = len(notes), None
    async with parts_of(request) as parts:
        async for part in parts:
            total = part.total
            add_notes(notes, part.notes, rows=reader.rows + part.rows, known=host_note_count)
            if part.rows:
                for block in blocks(part.data, rows=part.rows, columns=len(reader.misfits)):
                    yield await run_sync(reader.read, block)
    if not reader.rows:
        yield await run_sync(reader.read, b"")
    notes += reader.notes
    if total is not None and total != reader.rows:
        reason = f"{total:,} rows were counted beforehand, but {reader.rows:,} arrived"
        notes.append(Note(code="rows-differ", reason=reason))


async def collect_table(batches: Batches) -> Table:
    """Collect batches into a table, whose schema's metadata hold the notes as JSON, under ``notes``."""
    async with aclosing(batches):
        record_batches = [batch async for batch in batches]
    import pyarrow as pa

    notes = msgspec.json.encode(batches.notes)
    table = pa.Table.from_batches(record_batches)
    return table.replace_schema_metadata({**table.schema.metadata, "notes": notes})


async def run_export(
    calls: DriverCalls,
    selection: RowSelection,
    *,
    to: Path | BinaryIO,
    file_format: FileFormat | str | None,
    keep_alive: int,
    resume: bool,
    manifest: bool,
) -> ExportResult:
    """Export the rows of a selection into a file or a stream.

    Raises:
        ConfigurationError: There is no such format or column, or a package for it is missing.
        ExportError: The target cannot be written or resumed.
        DragomanError: The read failed; no file was created.
    """
    driver = calls.driver
    source = ExportSource(
        connection=driver.info.name,
        object=selection.object,
        server=f"{driver.server.product} {driver.server.version}",
        plugin=driver.generation.plugin,
        version=driver.generation.version,
    )
    chosen = await run_sync(choose, to, file_format)
    export = Export(source, to=to, file_format=chosen, resume=resume, emit=calls.emit)
    with export.reporting():
        read = await plan_read(
            calls,
            selection.of_server(None if selection.now else await run_sync(export.now)),
            file_format=chosen,
            lists=await run_sync(export.lists) if chosen.typed and chosen.lists is None else None,
            keep_alive=keep_alive if export.resumable else 0,
        )
        return await export.run(read.request, table=read.table, manifest=manifest, parts=calls.parts, notes=read.notes)
