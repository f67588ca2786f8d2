"""Copies: an export is loaded while it runs, through a pipe, so that neither side gets far ahead of the other."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman_api.columns import Written
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from dragoman.sessions.selections import RowSelection
    from dragoman.sessions.session import Session

    from .loads import Load, LoadReport


def make_pipe() -> tuple[BinaryIO, BinaryIO]:
    """Return the two ends of a pipe: the one that a load reads from, and the one that an export writes to."""
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", buffering=0), os.fdopen(writing, "wb", buffering=0)


async def copy(
    load: Load,
    pipe: tuple[BinaryIO, BinaryIO],
    *,
    source: Session,
    selection: RowSelection,
    target: Session,
) -> LoadReport:
    """Copy the rows of an object: export them into a pipe, and load them from it.

    Args:
        load: The load, of format ``rows``, that reads from the pipe.
        pipe: The result of `make_pipe`; both ends are closed in the end.
        source: The connection that the rows come from.
        selection: The rows to copy.
        target: The connection that receives them.

    Raises:
        ConfigurationError: The two connections have different types.
        DragomanError: The export or the load failed; the report of the load counts the rows until then.
    """
    reader, writer = pipe
    failures: list[Exception] = []

    async def export() -> None:
        try:
            columns = await _columns_to_name(source, selection.object)
            await source.select(replace(selection, columns=columns)).export(writer, format="rows")
        except BrokenPipeError:  # the load has ended, and says why
            pass
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            await _close(writer)

    async def read() -> None:
        try:
            await load.run()
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            await _close(reader)

    try:
        if source.type != target.type:
            text = f"{source.name} is {source.type} and {target.name} is {target.type}: their rows have different forms"
            raise ConfigurationError(text, hint="export documents or CSV, and import that file")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(export)
            tasks.start_soon(read)
    finally:
        await _close(writer)
        await _close(reader)
    if failures:
        load.report.complete = False
        raise failures[0]
    return load.report


async def _columns_to_name(source: Session, name: str) -> tuple[str, ...] | None:
    """Return the columns that an export holds only if they are named, such as vectors; None if there are none."""
    columns = (await source.describe(name)).columns
    outer = [column for column in columns if len(column.path) == 1 and not column.is_key]
    return tuple(column.name for column in outer if column.written is not Written.NEVER) or None


async def _close(end: BinaryIO) -> None:
    with anyio.CancelScope(shield=True), suppress(OSError):
        await run_sync(end.close)
