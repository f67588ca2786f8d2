"""Reads of all rows of a scope: row by row, as Arrow record batches, or as an export."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman.exports import TYPED, add_notes, choose_columns, need, read_row
from dragoman.exports.blocks import blocks
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError
from dragoman_api.exports import ExportForm, ExportRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from pyarrow import RecordBatch, Table

    from dragoman.exports import Export, ExportResult, Shape
    from dragoman.exports.export import Parts
    from dragoman.exports.tables import TableReader
    from dragoman_api.columns import Column, Description

    from .counts_and_rows import Batches
    from .driver_calls import Calls
    from .prepared_reads import Preparation, Prepared, Scope


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
    notes += made.notes
    reader = TableReader(table, described=description.columns, strict=strict)
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
    return pa.Table.from_batches(found).replace_schema_metadata({"notes": notes})


async def run_export(
    export: Export,
    calls: Calls,
    reads: Preparation,
    scope: Scope,
    *,
    shape: Shape,
    columns: Sequence[str] | None,
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
        named = [column.name for column in table] if shape.tabular else columns
        request = _request(scope, made, form=shape.form, columns=named)
        if export.resumable:
            request = replace(request, keep_alive=keep_alive)
        about: dict[str, Any] = {"columns": table, "described": described.columns if described else []}
        return await export.run(request, **about, manifest=manifest, parts=calls.parts, notes=made.times)
