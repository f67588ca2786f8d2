"""Copies: rows are exported into a pipe and loaded from it, on another connection of the same type."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman_api.changes import NewObject
from dragoman_api.columns import Description, Role, Written
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import ConfigurationError, ObjectNotFoundError, QueryError, UnsupportedOperationError
from dragoman_workbench.messages.imports import CopyColumn, CopyPlanned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from dragoman import RowSelection, Session
    from dragoman_api.changes import PlannedRequest
    from dragoman_api.columns import Column, Note
    from dragoman_workbench.messages.imports import CopyAsked, CopyPlanAsked

KNOWN_TO_THE_CALLER = "rows-of-others"
"""The code of the note that rows name the object which they were read from."""

_SAID = 1_000  # characters of a server's answer in a message


def _check_pair(source: Session, target: Session, request: CopyPlanAsked) -> None:
    if source.type != target.type:
        text = f"{source.name} is {source.type} and {target.name} is {target.type}: their rows have different forms"
        raise ConfigurationError(text, hint="export the rows, and import that file", code="types-differ")
    if (source.name, request.rows.object) == (target.name, request.object):
        raise ConfigurationError("the rows would be copied onto themselves", hint="name another object")


def _stored(description: Description) -> list[Column]:
    """Return the columns that rows hold, also those inside documents."""
    return [column for column in description.columns if column.path and column.role not in (Role.KEY, Role.SERVER)]


def _named(description: Description) -> tuple[str, ...] | None:
    """Return the columns that an export holds only if they are named, such as vectors; None if there are none."""
    outer = [column for column in description.columns if len(column.path) == 1 and not column.is_key]
    return tuple(column.name for column in outer if column.written is not Written.NEVER) or None


async def _described(session: Session, name: str) -> Description | None:
    try:
        return await session.describe(name)
    except ObjectNotFoundError:
        return None


async def _planned_object(target: Session, name: str, structure: str) -> PlannedRequest:
    plan = await target.plan(new=NewObject(name, structure))
    if not plan.planned:
        text = f"{name!r} does not exist, and the driver {target.plugin} does not make objects"
        raise UnsupportedOperationError(text, hint="make it first, then copy")
    return plan.planned[0]


def _shown(planned: PlannedRequest) -> str:
    return f"{planned.request.method} {planned.request.path}\n{planned.request.body or ''}"


async def plan_copy(source: Session, target: Session, request: CopyPlanAsked) -> CopyPlanned:
    """Return what a copy would make, and where the columns of the two objects differ; nothing is written.

    Raises:
        ConfigurationError: The connections have different types (code ``types-differ``), or the rows would be copied
            onto themselves.
        UnsupportedOperationError: The object is missing, and the driver makes none.
        QueryError: The driver cannot make this object.
    """
    _check_pair(source, target, request)
    description = await source.describe(request.rows.object)
    existing = await _described(target, request.object)
    making = "" if existing else _shown(await _planned_object(target, request.object, description.structure))
    types = {column.name: column.type for column in existing.columns} if existing else {}
    columns = [
        CopyColumn(name=column.name, type=column.type, target=types.get(column.name) if existing else column.type)
        for column in _stored(description)
    ]
    return CopyPlanned(exists=existing is not None, making=making, columns=columns)


async def prepare_copy(source: Session, target: Session, request: CopyAsked) -> None:
    """Make the object that receives the rows, if it is missing, by the very request that a person has confirmed.

    Raises:
        ConfigurationError: Another request would make it (code ``plan-gone``), or as `plan_copy`.
        QueryError: The server refused the request.
    """
    _check_pair(source, target, request)
    if await _described(target, request.object) is not None:
        return
    structure = (await source.describe(request.rows.object)).structure
    planned = await _planned_object(target, request.object, structure)
    if _shown(planned) != request.making:
        text = f"{request.object!r} would be made in another way than was shown"
        raise ConfigurationError(text, hint="look at it again", code="plan-gone")
    answer = await target.execute(ConsoleRequest(request=planned.request, writes=True))
    if answer.failed or not 200 <= answer.status < 300:
        reason = answer.failed or " ".join(answer.text.split())[:_SAID]
        raise QueryError(f"{request.object!r} was not made: HTTP {answer.status} {reason}")


async def stream_copy(
    source: Session, selection: RowSelection, *, path: Path, consume: Callable[[BinaryIO], Awaitable[None]]
) -> list[Note]:
    """Export rows while they are loaded, so that neither side gets far ahead of the other.

    Args:
        source: The connection that the rows come from.
        selection: The rows; their columns are all that can be written, also those that a driver must be asked for.
        path: The name of the stream, beside which the load writes its rejected rows.
        consume: Loads the rows of a stream.

    Returns:
        The notes of the export.

    Raises:
        DragomanError: The export or the load failed.
    """
    reading, writing = os.pipe()
    reader, writer = io.FileIO(reading), io.FileIO(writing, "wb")
    reader.name = path
    failures: list[Exception] = []
    notes: list[Note] = []

    async def export() -> None:
        try:
            columns = _named(await source.describe(selection.object))
            exported = await source.select(replace(selection, columns=columns)).export(writer, format="rows")
            notes.extend(exported.notes)
        except BrokenPipeError:  # the load has ended, and says why
            pass
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            await _close(writer)

    async def load() -> None:
        try:
            await consume(reader)
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            await _close(reader)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(export)
            tasks.start_soon(load)
    finally:
        await _close(writer)
        await _close(reader)
    if failures:
        raise failures[0]
    return notes


async def _close(end: BinaryIO) -> None:
    with anyio.CancelScope(shield=True), suppress(OSError):
        await run_sync(end.close)
