"""Copies: an export is loaded while it runs, through a pipe, so that neither side gets far ahead of the other.

For a target of another type, the columns and the first rows of the source say what there is to carry.
"""

from __future__ import annotations

import os
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

import anyio
import msgspec
from anyio.to_thread import run_sync

from dragoman.exports.values import RowKeys
from dragoman_api.columns import Column, ColumnKind, Role, Written
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import encode

from .translations import ObjectReader, holds_null, members_of, null_note, object_paths

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from dragoman.sessions.rows import Rows
    from dragoman_api.columns import Description, Note


def check_copy(rows: Rows) -> None:
    """Check that whole rows are to be copied. Raises ConfigurationError if columns were chosen."""
    if rows.selection.columns is not None:
        text = "a copy is of whole rows, and cannot leave columns out"
        raise ConfigurationError(text, hint="export the columns to CSV, and import that file")


def written_columns(description: Description) -> tuple[str, ...] | None:
    """Return the columns to name in an export of whole rows, also those that a driver must be asked for."""
    outer = [column for column in description.columns if len(column.path) == 1 and not column.is_key]
    return tuple(column.name for column in outer if column.written is not Written.NEVER) or None


LOOKED_AT = 200
"""The number of rows that are looked at before a copy."""
LOOKED_AT_BYTES = 16 << 20
"""The size of these rows after which no further one is looked at."""


async def stream_rows(
    rows: Rows, *, description: Description, consume: Callable[[BinaryIO], Awaitable[object]]
) -> list[Note]:
    """Export rows with their ids into a pipe, while `consume` reads them from it.

    Args:
        rows: The rows; all columns that can be written are exported, also those that a driver must be asked for.
        description: Their object.
        consume: Reads the stream, which is closed in the end.

    Returns:
        The notes of the export.

    Raises:
        DragomanError: The export failed, or `consume`; its own error is raised as it is.
    """
    reading, writing = os.pipe()
    reader, writer = os.fdopen(reading, "rb", buffering=0), os.fdopen(writing, "wb", buffering=0)
    failures: list[Exception] = []
    notes: list[Note] = []
    writable = replace(rows, selection=msgspec.structs.replace(rows.selection, columns=written_columns(description)))

    async def export() -> None:
        try:
            notes.extend((await writable.export(writer, format="rows")).notes)
        except BrokenPipeError:  # the load has ended, and says why
            pass
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            await _close(writer)

    async def read() -> None:
        try:
            await consume(reader)
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            await _close(reader)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(export)
            tasks.start_soon(read)
    finally:
        await _close(writer)
        await _close(reader)
    if failures:
        raise failures[0]
    return notes


async def _close(end: BinaryIO) -> None:
    with anyio.CancelScope(shield=True), suppress(OSError):
        await run_sync(end.close)


def stored_columns(description: Description) -> tuple[list[Column], list[Column]]:
    """Return the columns whose values rows hold, each value in one of them, and columns of values that are lost."""
    columns, lost = list[Column](), list[Column]()
    outer = {column.path for column in description.columns if column.path and not column.arrays}
    written = {column.path for column in description.columns if column.written is not Written.NEVER}
    for column in description.columns:
        if column.is_key or column.role is Role.SERVER:
            continue
        if not column.path:
            lost += [column] if "export" in column.reasons else []
        elif column.arrays and (*column.path[:-1], column.arrays[0]) in outer:
            continue  # the array holds it
        elif column.written is Written.NEVER:
            lost += [] if column.path in written else [column]  # an alias of another column loses nothing
        elif column.dimensions is not None and column.members:
            columns += [_part(column, name) for name in column.members]
        else:
            columns.append(column)
    return columns, lost


def _part(column: Column, name: str) -> Column:
    """Return one of the vectors of a column of several as a column of its own."""
    return msgspec.structs.replace(
        column, name=f"{column.name}.{name}", type="vector", path=(*column.path, name), members=()
    )


def why_lost(column: Column) -> str:
    """Return why a column is left out, whatever the target is."""
    reason = column.reasons.get("export" if not column.path else "edit", "")
    return f"left out: {reason or 'the server computes it'}"


async def first_lines(rows: Rows, description: Description) -> list[bytes]:
    """Return the first rows, as an export writes them."""
    whole = replace(rows, selection=msgspec.structs.replace(rows.selection, columns=written_columns(description)))
    lines, size = list[bytes](), 0
    async with aclosing(whole.stream(form="rows")) as stream:
        async for row in stream:
            lines.append(encode(row).encode())
            size += len(lines[-1])
            if len(lines) == LOOKED_AT or size >= LOOKED_AT_BYTES:
                break
    return lines


def notes_on(lines: Sequence[bytes], description: Description) -> list[Note]:
    """Return notes on what the first rows hold that no column carries."""
    keys = RowKeys(description.columns, server_members=members_of(description))
    for line in lines:
        keys.add(line)
    nulls = sum(map(holds_null, lines))
    return [*keys.left_out.notes(), *([] if not nulls else [null_note(nulls)])]


def with_whole_arrays(columns: list[Column], lines: Sequence[bytes]) -> list[Column]:
    """Have one column of JSON stand for the members of objects that lie in arrays, which a table would mix up."""
    while object_paths(columns):
        reader = ObjectReader(columns)
        arrays = {path for line in lines for path in reader.read(line)[1]}
        if not arrays:
            break
        gathered, wholes = list[Column](), set[tuple[str, ...]]()
        for column in columns:
            *group, name = column.path
            parts = name.split(".")
            ways = ((*group, ".".join(parts[:end])) for end in range(1, len(parts)))
            path = next((way for way in ways if way in arrays), None)  # the outermost one holds the others
            if path is None:
                gathered.append(column)
            elif path not in wholes:
                wholes.add(path)
                whole_name = column.name.removesuffix(name) + path[-1]
                whole = Column(name=whole_name, type="array of objects", kind=ColumnKind.JSON, path=path)
                gathered.append(whole)
        columns = gathered
    return columns
