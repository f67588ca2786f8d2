"""Copies: an export is loaded while it runs, through a pipe, so that neither side gets far ahead of the other."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

import anyio
import msgspec
from anyio.to_thread import run_sync

from dragoman_api.columns import Written
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dragoman.sessions.rows import Rows
    from dragoman.sessions.session import Session
    from dragoman_api.columns import Description, Note


def check_copy(rows: Rows, target: Session) -> None:
    """Check that rows can be copied to another connection as they are.

    Raises:
        ConfigurationError: They have another form (code ``types-differ``), or columns were chosen: a copy is of whole
            rows.
    """
    if rows.type != target.type:
        text = f"{rows.connection} is {rows.type} and {target.name} is {target.type}: their rows have different forms"
        raise ConfigurationError(text, hint="export documents or CSV, and import that file", code="types-differ")
    if rows.selection.columns is not None:
        text = "a copy is of whole rows, and cannot leave columns out"
        raise ConfigurationError(text, hint="export the columns to CSV, and import that file")


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
    outer = [column for column in description.columns if len(column.path) == 1 and not column.is_key]
    columns = tuple(column.name for column in outer if column.written is not Written.NEVER) or None
    writable = replace(rows, selection=msgspec.structs.replace(rows.selection, columns=columns))

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
