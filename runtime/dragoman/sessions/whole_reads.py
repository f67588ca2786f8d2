"""Reads of all rows of a scope: row by row, as Arrow record batches, or as an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman.exports import TYPED, add_notes, choose_columns, need, read_row
from dragoman.exports.blocks import blocks
from dragoman.exports.formats import column_notes
from dragoman.exports.values import RowKeys
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.grid import PageRequest
from dragoman_api.hookspecs import DriverSpec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from datetime import datetime

    from pyarrow import RecordBatch, Table

    from dragoman.exports import Export, ExportResult, Shape
    from dragoman.exports.export import Parts
    from dragoman.exports.tables import TableReader
    from dragoman_api.columns import Column, Description

    from .counts_and_rows import Batches
    from .driver_calls import Calls
    from .prepared_reads import Preparation, Prepared, Scope


Lists = Sequence[str] | Mapping[str, str] | None
"""What a caller says of the columns that are lists, see `with_lists`."""

LOOK_ROWS = 200
"""The rows that are looked at for arrays, with one request."""

_LISTED = 10  # columns that a note names


def _request(scope: Scope, made: Prepared, *, form: ExportForm, columns: Sequence[str] | None) -> ExportRequest:
    return ExportRequest(
        object=scope.object,
        filter=made.filter,
        time=made.time,
        form=form,
        columns=None if columns is None else list(columns),
        tenant=scope.tenant,
        revision=scope.revision,
        keep_alive=0,
    )


def table_columns(description: Description, columns: Sequence[str] | None, *, typed: bool) -> list[Column]:
    """Return the columns of a table, in order; of those with types, an array of objects is one unless they are named.

    Raises:
        ConfigurationError: There is no such column.
    """
    table = choose_columns(description, columns)
    if not typed or columns is not None:
        return table
    from dragoman.exports.tables import without_leaves

    return without_leaves(table)


async def with_lists(
    calls: Calls,
    scope: Scope,
    made: Prepared,
    table: list[Column],
    *,
    lists: Lists,
) -> tuple[list[Column], list[Note]]:
    """Decide which columns of a table are lists; return the columns, and the notes on what was found.

    Args:
        calls: The session's calls.
        scope: The rows.
        made: What a request for them carries.
        table: The table's columns.
        lists: The names of those that are lists; None to look at the first rows. A mapping says what a list of one
            stands for, as an earlier run decided it.

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
        object=scope.object,
        filter=made.filter,
        time=made.time,
        limit=LOOK_ROWS,
        columns=names,
        total=False,
        tenant=scope.tenant,
        revision=scope.revision,
    )
    try:
        page = await calls.run(DriverSpec.fetch_page, request, object=scope.object, rows=LOOK_ROWS)
    except DragomanError as error:
        reason = f"no column was looked at for arrays, so none is read as lists: {error.message}"
        return table, [Note(code="lists-unknown", reason=reason)]
    from dragoman_api.arrow.pages import find_lists

    chosen = {name: one for name, one in find_lists(page.columns, page.cells).items() if name in names}
    if not chosen:
        return table, []
    shown = ", ".join([*chosen][:_LISTED]) + (f" and {len(chosen) - _LISTED:,} more" if len(chosen) > _LISTED else "")
    reason = f"read as lists, since some of the first {len(page.cells):,} rows hold arrays there: {shown}"
    return as_lists(table, chosen), [Note(code="lists-found", reason=reason)]


def check_format(lists: Lists, *, typed: bool) -> None:
    """Check that a file whose lists a caller names has lists. Raises ConfigurationError."""
    if lists and not typed:
        hint = "omit them, or export with format='parquet'"
        raise ConfigurationError("only the columns of Arrow and Parquet files are lists", hint=hint)


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
    """Return the columns, the chosen ones of those that may be lists as such."""
    from dragoman_api.arrow.schema import may_be_lists

    return [
        replace(column, many=chosen[column.name]) if column.name in chosen and may_be_lists(column) else column
        for column in table
    ]


def lists_of(table: Sequence[Column]) -> dict[str, str]:
    """Return what was decided on the columns of a table: by the name of each list, what a list of one stands for."""
    return {column.name: column.many for column in table if column.many}


async def read_rows(
    calls: Calls,
    reads: Preparation,
    scope: Scope,
    notes: list[Note],
    *,
    form: str,
    columns: Sequence[str] | None,
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the rows of a scope, and add the notes on them to the list as they become known.

    Raises:
        ConfigurationError: There is no such form.
    """
    if form not in list(ExportForm):
        raise ConfigurationError(f"form is {form!r}; it can be {', '.join(ExportForm)}")
    reads.check(tenant=scope.tenant, revision=scope.revision)
    made = await reads.prepare(scope, fresh=True)
    notes += made.notes
    known, count = len(notes), 0
    async with calls.parts(_request(scope, made, form=ExportForm(form), columns=columns)) as parts:
        async for part in parts:
            count += part.rows
            add_notes(notes, part.notes, rows=count, known=known)
            for line in part.data.split(b"\n"):
                if line:
                    yield read_row(line)


async def read_batches(
    calls: Calls,
    reads: Preparation,
    scope: Scope,
    notes: list[Note],
    *,
    columns: Sequence[str] | None,
    lists: Lists,
    strict: bool,
) -> AsyncGenerator[RecordBatch, None]:
    """Yield the rows of a scope as record batches, at least one, and add the notes on them to the list.

    Raises:
        ConfigurationError: There is no such column, or pyarrow is not installed.
        ExportError: A value does not fit its column's type, code ``values-misfit``, if strict.
    """
    await run_sync(partial(need, "pyarrow", extra="arrow"))
    from dragoman.exports.tables import TableReader

    reads.check(tenant=scope.tenant, revision=scope.revision)
    description = await reads.describe(scope.object)
    table = table_columns(description, columns, typed=True)
    made = await reads.prepare(scope)
    table, found = await with_lists(calls, scope, made, table, lists=lists)
    notes += [*made.notes, *found, *column_notes(description, columns)]
    keys = RowKeys(description.columns) if columns is None else None
    reader = TableReader(table, described=description.columns, strict=strict, keys=keys)
    request = _request(scope, made, form=ExportForm.ROWS, columns=[column.name for column in table])
    async with aclosing(requested_batches(calls.parts, request, reader, notes)) as batches:
        async for batch in batches:
            yield batch


async def requested_batches(
    parts_of: Parts, request: ExportRequest, reader: TableReader, notes: list[Note]
) -> AsyncGenerator[RecordBatch, None]:
    """Yield the rows of a request as record batches, at least one, and add the notes on them to the list.

    Raises:
        ExportError: A value does not fit its column's type, code ``values-misfit``, if the reader is strict.
    """
    known, total = len(notes), None
    async with parts_of(request) as parts:
        async for part in parts:
            total = part.total
            add_notes(notes, part.notes, rows=reader.rows + part.rows, known=known)
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
        found = [batch async for batch in batches]
    import pyarrow as pa

    notes = msgspec.json.encode(batches.notes)
    table = pa.Table.from_batches(found)
    return table.replace_schema_metadata({**table.schema.metadata, "notes": notes})


async def run_export(
    export: Export,
    calls: Calls,
    reads: Preparation,
    scope: Scope,
    *,
    shape: Shape,
    columns: Sequence[str] | None,
    lists: Lists,
    keep_alive: int,
    manifest: bool,
    now: datetime | None,
) -> ExportResult:
    """Export the rows of a scope.

    Args:
        export: The export, not yet begun.
        calls: The session's calls.
        reads: What prepares its reads.
        scope: The rows.
        shape: Format and compression.
        columns: Of a table, in order; None for all.
        lists: As for `with_lists`.
        keep_alive: Seconds for which an interrupted export can be resumed.
        manifest: Write a manifest beside the file.
        now: The instant that relative times count from; None for the one at which the export's first run began.

    Raises:
        DragomanError: As for `Session.export`.
    """
    with export.reporting():
        reads.check(tenant=scope.tenant, revision=scope.revision)
        described = await reads.describe(scope.object) if shape.tabular else None
        table = table_columns(described, columns, typed=shape.format in TYPED) if described else []
        scope = msgspec.structs.replace(scope, now=now if now is not None else await run_sync(export.now))
        made = await reads.prepare(scope, fresh=not shape.tabular)
        found: list[Note] = []
        check_format(lists, typed=shape.format in TYPED)
        if shape.format in TYPED:
            lists = lists if lists is not None else await run_sync(export.lists)
            table, found = await with_lists(calls, scope, made, table, lists=lists)
        named = [column.name for column in table] if shape.tabular else columns
        request = _request(scope, made, form=shape.form, columns=named)
        if export.resumable:
            request = replace(request, keep_alive=keep_alive)
        about: dict[str, Any] = {"columns": table, "described": described.columns if described else []}
        about |= {"whole": shape.tabular and columns is None}
        notes = [*made.times, *found, *(column_notes(described, columns) if described else ())]
        return await export.run(request, **about, manifest=manifest, parts=calls.parts, notes=notes)
