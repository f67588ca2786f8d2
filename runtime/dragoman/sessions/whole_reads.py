"""Reads of all rows of a scope: row by row, or as an export."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman.exports import add_notes, choose_columns, read_row
from dragoman_api.errors import ConfigurationError
from dragoman_api.exports import ExportForm, ExportRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from dragoman.exports import Export, ExportResult, Shape
    from dragoman_api.columns import Note

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
        table = choose_columns(await reads.describe(scope.object), columns) if shape.tabular else []
        scope = dataclasses.replace(scope, now=now if now is not None else await run_sync(export.now))
        made = await reads.prepare(scope, fresh=not shape.tabular)
        named = [column.name for column in table] if shape.tabular else columns
        request = _request(scope, made, form=shape.form, columns=named)
        if export.resumable:
            request = replace(request, keep_alive=keep_alive)
        return await export.run(request, columns=table, manifest=manifest, parts=calls.parts, notes=made.times)
